//! The gate on real loop devices: what real programs put on a disk, and everybody who can use one.
//! Each must be refused with the reason and the command that ends it, and not one byte may change;
//! once the commands were followed, the same device must be let in and be writable.

use diskproof_device::{
    Admission, Consent, Intent, OpenError, OpenTarget, Overwriting, UnknownContent, admit, probe,
};
use diskproof_simdisk::testbed::{Loop, Mount, TempDir, can_run, place};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub(crate) const MIB: u64 = 1 << 20;

/// A loop device over a sparse file. Partitions that the kernel was told of, and write protection,
/// outlive it, so they are taken back first.
pub(crate) struct Disk {
    pub(crate) device: Loop,
    pub(crate) image: PathBuf,
    place: TempDir,
}

impl Disk {
    pub(crate) fn new(size_bytes: u64) -> Self {
        let place = place();
        let image = place.path().join("image");
        Self {
            device: Loop::sparse(&image, size_bytes, &[]),
            image,
            place,
        }
    }

    pub(crate) fn node(&self) -> &str {
        self.device.node.to_str().unwrap()
    }

    pub(crate) fn consent(&self) -> Consent {
        consent(self.device.name())
    }

    pub(crate) fn admit(&self) -> Result<Admission, Vec<String>> {
        admitted(&self.device.node, &self.consent())
    }

    pub(crate) fn hash(&self) -> String {
        run("blockdev", &["--flushbufs", self.node()]);
        run("sha256sum", &[self.node()])
    }

    /// The reasons; the device has not changed.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let before = self.hash();
        let reasons = self.admit().err().unwrap_or_default();
        assert_eq!(self.hash(), before, "the gate must not write");
        reasons
    }

    pub(crate) fn assert_refused(&self, what: &str, parts: &[&str]) {
        let reasons = self.reasons();
        assert!(
            parts
                .iter()
                .all(|part| reasons.iter().any(|reason| reason.contains(part))),
            "{what}: {parts:?} in {reasons:#?}"
        );
    }

    /// It is let in, unexplained data zeroed, and what is written to it arrives.
    pub(crate) fn assert_writable(&self) {
        let consent = Consent {
            unknown: UnknownContent::Wipe,
            ..self.consent()
        };
        // Who passes by between the gate and the opening is a reason again.
        let opened = (0..600).find_map(|_| {
            let admission = admitted(&self.device.node, &consent);
            match OpenTarget::open(admission.unwrap_or_else(|reasons| panic!("{reasons:#?}"))) {
                Err(error) if error.to_string().contains(" is held open by process ") => None,
                opened => Some(opened.unwrap()),
            }
        });
        let target = opened.expect("no process holds it open all the time");
        assert!(target.is_writable() && !target.is_scratch());
        assert_eq!(
            (target.usable_bytes(), target.capacity_bytes()),
            (target.identity().size_bytes, target.identity().size_bytes)
        );
        target.wipe_unknown().unwrap();
        let mut block = vec![0; 8192];
        let start = block.as_ptr().align_offset(4096);
        block[start..start + 4096].fill(0xa5);
        assert_eq!(
            rustix::io::pwrite(target.fd(), &block[start..start + 4096], 2 * MIB),
            Ok(4096)
        );
        target.write_back().unwrap();
        drop(target);
        let mut read = [0; 4096];
        std::fs::File::open(&self.device.node)
            .unwrap()
            .read_exact_at(&mut read, 2 * MIB)
            .unwrap();
        assert!(read.iter().all(|byte| *byte == 0xa5));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("blockdev")
            .args(["--setrw", self.node()])
            .status();
        let _ = Command::new("partx")
            .args(["--delete", self.node()])
            .stderr(Stdio::null())
            .status();
    }
}

pub(crate) fn consent(name: &str) -> Consent {
    Consent {
        destroy: vec![name.to_owned()],
        ..Consent::default()
    }
}

/// The answer of the gate. Programs that look into every block device (`pvcreate`, `blkid` and
/// `lsblk` of other tests, of other users of the machine) have this one open for a moment, too,
/// which is a reason against it; so it is asked again until they are gone. Who holds one here on
/// purpose is a shell.
pub(crate) fn admitted(path: &Path, consent: &Consent) -> Result<Admission, Vec<String>> {
    let passes_by =
        |reason: &String| reason.contains(" is held open by process ") && !reason.contains("(sh)");
    for _ in 0..600 {
        let answer = admit(probe(path).unwrap(), Intent::Overwrite(consent)).map_err(|refusal| {
            assert_eq!(refusal.remedy, "Nothing was written.");
            refusal.reasons
        });
        match answer {
            Err(reasons) if reasons.iter().any(passes_by) => {
                std::thread::sleep(std::time::Duration::from_millis(50))
            }
            answer => return answer,
        }
    }
    panic!(
        "{}: another process holds it open all the time",
        path.display()
    )
}

/// Runs a program; its output, or a panic with what it said. Another test may be starting a
/// process, which until its exec shares this one's claims on devices: what is busy is tried again.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    for attempt in 0.. {
        let output = Command::new(program)
            .args(arguments)
            .output()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        let said = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        if output.status.success() {
            return String::from_utf8(output.stdout).unwrap().trim().to_owned();
        }
        let is_busy = ["busy", "in use", "exclusively", "error deleting partition"]
            .iter()
            .any(|word| said.contains(word));
        assert!(
            is_busy && attempt < 600,
            "{program} {arguments:?}: {}: {said}",
            output.status
        );
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    unreachable!("it tries until it succeeds or fails")
}

fn shell(command: &str) {
    run("sh", &["-c", command]);
}

/// Does what the refusal of a mark says, in full, until nothing speaks against the device any more.
fn follow(disk: &Disk, what: &str) {
    let mut last = Vec::new();
    let mut consent = disk.consent();
    for _ in 0..12 {
        let reasons = match admitted(&disk.device.node, &consent) {
            Ok(_) => return,
            Err(reasons) => reasons,
        };
        for reason in &reasons {
            let step = reason.split_once(" → ").unwrap().1;
            if step.contains("add --wipe-unknown") {
                consent.unknown = UnknownContent::Wipe;
                continue;
            }
            assert!(
                step.starts_with("after saving what it holds"),
                "{what}: no command: {reason}"
            );
            let step = step.split_once(": ").unwrap().1;
            let (first, second) = step
                .split_once("; where that finds nothing: ")
                .unwrap_or((step, step));
            shell(&format!(
                "{} 2>&1",
                if last.contains(reason) {
                    second
                } else {
                    first.split(", or ").next().unwrap()
                }
            ));
        }
        last = reasons;
    }
    panic!("{what}: the commands lead nowhere: {last:#?}");
}

/// Name, size in MiB, program, its arguments before the device, a part of the reason.
type Row = (&'static str, u64, &'static str, &'static str, &'static str);

const MADE_BY_PROGRAMS: &[Row] = &[
    ("ext4", 64, "mkfs.ext4", "-q", "ext2/3/4 filesystem"),
    ("ext2", 64, "mkfs.ext2", "-q", "ext2/3/4 filesystem"),
    (
        "journal of ext4",
        64,
        "mkfs.ext4",
        "-q -O journal_dev",
        "its journal",
    ),
    ("xfs", 320, "mkfs.xfs", "-q", "XFS filesystem"),
    ("btrfs", 128, "mkfs.btrfs", "-q", "btrfs filesystem"),
    ("f2fs", 64, "mkfs.f2fs", "-q", "F2FS filesystem"),
    ("fat12", 8, "mkfs.vfat", "-I -F12", "FAT filesystem"),
    ("fat16", 64, "mkfs.vfat", "-I -F16", "FAT filesystem"),
    ("fat32", 64, "mkfs.vfat", "-I -F32", "FAT filesystem"),
    ("ntfs", 64, "mkfs.ntfs", "-Q -q -F", "NTFS filesystem"),
    ("exfat", 64, "mkfs.exfat", "", "exFAT filesystem"),
    ("udf", 64, "mkudffs", "", "UDF"),
    ("jfs", 64, "mkfs.jfs", "-q", "JFS filesystem"),
    ("nilfs2", 160, "mkfs.nilfs2", "-q", "NILFS2 filesystem"),
    ("minix", 8, "mkfs.minix", "", "Minix filesystem"),
    ("minix 3", 8, "mkfs.minix", "-3", "Minix filesystem"),
    ("bfs", 8, "mkfs.bfs", "", "BFS filesystem"),
    ("swap", 64, "mkswap", "", "swap space"),
    (
        "swap of large pages",
        64,
        "mkswap",
        "-p 65536",
        "swap space",
    ),
    ("LVM", 64, "pvcreate", "-qq -ff -y", "LVM physical volume"),
    (
        "LVM label in the fourth sector",
        64,
        "pvcreate",
        "-qq -ff -y --labelsector 3",
        "LVM physical volume",
    ),
    ("bcache", 64, "make-bcache", "-B", "bcache device"),
    ("bcache's cache", 64, "make-bcache", "-C", "bcache device"),
    (
        "gfs2",
        64,
        "mkfs.gfs2",
        "-q -O -J 8 -p lock_nolock",
        "GFS2 filesystem",
    ),
    (
        "reiserfs",
        64,
        "mkfs.reiserfs",
        "-q -f",
        "reiserfs filesystem",
    ),
    ("apfs", 160, "mkapfs", "", "APFS filesystem"),
    ("hfs", 64, "hformat", "-f -l test", "HFS filesystem"),
];

/// Name, program, a shell command that makes IMAGE of the directory SOURCE, a part of the reason.
const MADE_AS_IMAGES: &[(&str, &str, &str, &str)] = &[
    (
        "squashfs",
        "mksquashfs",
        "mksquashfs SOURCE IMAGE -noappend -quiet",
        "squashfs filesystem",
    ),
    (
        "EROFS",
        "mkfs.erofs",
        "mkfs.erofs IMAGE SOURCE",
        "EROFS filesystem",
    ),
    (
        "cramfs",
        "mkfs.cramfs",
        "mkfs.cramfs SOURCE IMAGE",
        "cramfs filesystem",
    ),
    (
        "verity",
        "veritysetup",
        "veritysetup format --data-blocks 16 /bin/ls IMAGE",
        "dm-verity data",
    ),
    (
        "thin pool",
        "thin_restore",
        "truncate -s 4M IMAGE && echo '<superblock uuid=\"\" time=\"0\" transaction=\"0\" \
         data_block_size=\"128\" nr_data_blocks=\"64\"/>' > SOURCE.xml && thin_restore -i \
         SOURCE.xml -o IMAGE",
        "metadata of an LVM thin pool",
    ),
    (
        "cache",
        "cache_restore",
        "truncate -s 4M IMAGE && echo '<superblock uuid=\"\" block_size=\"128\" \
         nr_cache_blocks=\"8\" policy=\"mq\" hint_width=\"4\"> \
         <mappings></mappings><hints></hints></superblock>' > SOURCE.xml && cache_restore -i \
         SOURCE.xml -o IMAGE",
        "metadata of a dm-cache",
    ),
];

/// What libblkid finds there, as `blkid` says it.
fn known_to_blkid(disk: &Disk) -> bool {
    let output = Command::new("blkid")
        .args(["--probe", disk.node()])
        .output()
        .unwrap();
    !output.stdout.is_empty()
}

#[test]
fn what_programs_make_is_refused_until_it_is_wiped() {
    const TEST: &str = "what_programs_make_is_refused_until_it_is_wiped";
    for (name, mib, program, arguments, part) in MADE_BY_PROGRAMS {
        if !can_run(TEST, &["losetup", "wipefs", "blkid", program]) {
            continue;
        }
        let disk = Disk::new(mib * MIB);
        shell(&format!("{program} {arguments} {} 2>&1", disk.node()));
        assert!(known_to_blkid(&disk), "{name}");
        disk.assert_refused(name, &[part, "→ after saving what it holds: "]);
        follow(&disk, name);
        disk.assert_writable();
    }
}

#[test]
fn images_of_programs_are_refused_until_they_are_wiped() {
    const TEST: &str = "images_of_programs_are_refused_until_they_are_wiped";
    for (name, program, command, part) in MADE_AS_IMAGES {
        if !can_run(TEST, &["losetup", "wipefs", program]) {
            continue;
        }
        let disk = Disk::new(8 * MIB);
        let (source, image) = (
            disk.place.path().join("source"),
            disk.place.path().join("made"),
        );
        std::fs::create_dir(&source).unwrap();
        std::fs::write(source.join("file"), "content").unwrap();
        let command = command
            .replace("SOURCE", source.to_str().unwrap())
            .replace("IMAGE", image.to_str().unwrap());
        shell(&format!(
            "({command}) >/dev/null 2>&1 && dd if={} of={} conv=notrunc,fsync 2>/dev/null",
            image.display(),
            disk.node()
        ));
        disk.assert_refused(name, &[part, "→ after saving what it holds: "]);
        follow(&disk, name);
        disk.assert_writable();
    }
}

#[test]
fn luks_is_refused_and_so_is_its_second_header_alone() {
    if !can_run(
        "luks_is_refused_and_so_is_its_second_header_alone",
        &["losetup", "cryptsetup", "wipefs"],
    ) {
        return;
    }
    for version in ["luks1", "luks2"] {
        let disk = Disk::new(64 * MIB);
        let pbkdf = if version == "luks2" {
            "--pbkdf pbkdf2"
        } else {
            ""
        };
        shell(&format!(
            "echo secret | cryptsetup luksFormat -q --type {version} {pbkdf} \
             --pbkdf-force-iterations 1000 {} -",
            disk.node()
        ));
        disk.assert_refused(
            version,
            &["LUKS encrypted volume (byte 0)", "wipefs --all /dev/loop"],
        );
        if version == "luks2" {
            shell(&format!(
                "dd if=/dev/zero of={} bs=512 count=1 conv=notrunc,fsync 2>/dev/null",
                disk.node()
            ));
            disk.assert_refused(
                version,
                &["second header of a LUKS2 encrypted volume (byte 16384)"],
            );
        }
        follow(&disk, version);
        disk.assert_writable();
    }
}

#[test]
fn partition_tables_are_refused_and_what_stands_in_their_partitions_is_named() {
    if !can_run(
        "partition_tables_are_refused_and_what_stands_in_their_partitions_is_named",
        &["losetup", "sfdisk", "parted", "mkfs.ext4", "partx"],
    ) {
        return;
    }
    let made = |commands: &str| {
        let disk = Disk::new(64 * MIB);
        let node = disk.node();
        // parted would tell the kernel of its partitions, so that it works on the file.
        shell(
            &commands
                .replace("DISK", node)
                .replace("IMAGE", disk.image.to_str().unwrap()),
        );
        run("blockdev", &["--flushbufs", node]);
        // A filesystem in the first partition, made past the kernel: it knows of no partition here.
        shell(&format!(
            "truncate -s 16M {0}/part && mkfs.ext4 -q {0}/part && dd if={0}/part of={node} bs=1M \
             seek=1 conv=notrunc,fsync 2>/dev/null",
            disk.place.path().display()
        ));
        disk
    };
    let ext = "ext2/3/4 filesystem or its journal in partition 1 of its table, at 1 MiB";
    let mbr = made("echo '2048,32768,L' | sfdisk -q --no-reread --no-tell-kernel --label dos DISK");
    mbr.assert_refused("MBR", &["MBR partition table", ext]);
    let gpt = made("parted -s IMAGE mklabel gpt mkpart data 1MiB 17MiB 2>/dev/null");
    gpt.assert_refused(
        "GPT",
        &[
            "GPT partition table (byte 512)",
            "backup GPT partition table",
            ext,
        ],
    );
    shell(&format!(
        "dd if=/dev/zero of={} bs=512 count=34 conv=notrunc,fsync 2>/dev/null",
        gpt.node()
    ));
    gpt.assert_refused("backup GPT", &["backup GPT partition table", ext]);
    assert!(
        !gpt.reasons()
            .iter()
            .any(|reason| reason.contains("GPT partition table (byte 512)"))
    );
    let logical = made(
        "printf ',4M,5\\n,,E\\n,8M,L\\n' | sfdisk -q --no-reread --no-tell-kernel --label dos \
         DISK 2>/dev/null; true",
    );
    logical.assert_refused("logical partitions", &["MBR partition table"]);
    for label in [
        "aix", "amiga", "atari", "bsd", "dvh", "gpt", "loop", "mac", "msdos", "pc98", "sun",
    ] {
        let disk = Disk::new(16 * MIB);
        // It reads AIX labels, and writes none.
        let made = if label == "aix" {
            "printf '\\311\\302\\324\\301' | dd of=IMAGE conv=notrunc"
        } else {
            "parted -s IMAGE mklabel LABEL"
        };
        let made = made
            .replace("LABEL", label)
            .replace("IMAGE", disk.image.to_str().unwrap());
        shell(&format!(
            "{made} 2>/dev/null && blockdev --flushbufs {}",
            disk.node()
        ));
        disk.assert_refused(
            label,
            &["it holds a mark of: ", "→ after saving what it holds: "],
        );
        follow(&disk, label);
        disk.assert_writable();
    }
    // Partitions that the kernel knows have nodes of their own.
    run("partx", &["--add", "--nr", "1", mbr.node()]);
    let part = mbr.device.partition(1);
    mbr.assert_refused("partx", &[&format!("wipefs --all {}", part.display())]);
    let inner = consent(part.file_name().unwrap().to_str().unwrap());
    let reasons = admitted(&part, &inner).unwrap_err();
    assert!(
        reasons.iter().all(|reason| reason.contains("ext2/3/4")),
        "the table is the disk's, the filesystem the partition's: {reasons:#?}"
    );
    run("wipefs", &["--all", "--quiet", part.to_str().unwrap()]);
    // The backup superblock in the middle.
    run("blkdiscard", &["--zeroout", part.to_str().unwrap()]);
    assert!(admitted(&part, &mbr.consent()).is_err(), "another name");
    let target = OpenTarget::open(admitted(&part, &inner).unwrap()).unwrap();
    assert_eq!(target.capacity_bytes(), 16 * MIB);
    drop(target);
    run("partx", &["--delete", mbr.node()]);
}

#[test]
fn marks_without_a_program_here_are_refused() {
    if !can_run("marks_without_a_program_here_are_refused", &["losetup"]) {
        return;
    }
    let size = 8 * MIB;
    let md = [0xfc, 0x4e, 0x2b, 0xa9];
    let cases: [(&str, u64, &[u8]); 12] = [
        ("(md) member", size - 64 * 1024, &md),
        ("(md) member", size - 8 * 1024, &md),
        ("(md) member", 0, &md),
        ("(md) member", 4096, &md),
        ("ZFS pool member", 128 * 1024, &0x00ba_b10cu64.to_le_bytes()),
        (
            "ZFS pool member",
            size - 128 * 1024,
            &0x00ba_b10cu64.to_be_bytes(),
        ),
        ("DRBD metadata", size - 4096 + 60, &[0x83, 0x74, 0x02, 0x6d]),
        ("VMware VMFS", 2 << 20, &[0x5e, 0xf1, 0xab, 0x2f]),
        ("Ceph BlueStore", 0, b"bluestore block device\n"),
        ("Oracle ASM", 32, b"ORCLDISK"),
        ("BitLocker", 3, b"-FVE-FS-"),
        (
            "PostgreSQL data pages",
            0,
            &[
                0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 28, 0, 0, 0x1f, 0, 0x20, 4, 0x20,
            ],
        ),
    ];
    for (part, offset, bytes) in cases {
        let disk = Disk::new(size);
        std::fs::File::options()
            .write(true)
            .open(&disk.device.node)
            .unwrap()
            .write_all_at(bytes, offset)
            .unwrap();
        disk.assert_refused(part, &[part, "→ after saving what it holds: "]);
    }
}

#[test]
fn only_the_name_in_full_will_do() {
    if !can_run("only_the_name_in_full_will_do", &["losetup"]) {
        return;
    }
    let (disk, other) = (Disk::new(16 * MIB), Disk::new(16 * MIB));
    let name = disk.device.name();
    for wrong in [
        "",
        " ",
        "loop",
        &name[..name.len() - 1],
        &format!("{name}0"),
        &format!("{name} "),
        &format!(" {name}"),
        &name.to_uppercase(),
        disk.node(),
        other.device.name(),
        "*",
    ] {
        let reasons = admitted(&disk.device.node, &consent(wrong)).unwrap_err();
        assert!(
            reasons.len() == 1
                && reasons[0].contains("does not name it → ")
                && reasons[0].contains("kernel name in full"),
            "{wrong}: {reasons:?}"
        );
    }
    let nothing = admitted(
        &disk.device.node,
        &Consent {
            overwriting: Overwriting::Allowed,
            ..Consent::default()
        },
    )
    .unwrap_err();
    assert!(
        nothing.len() == 1 && nothing[0].contains("its name was not given"),
        "{nothing:?}"
    );
    assert!(
        admitted(
            &disk.device.node,
            &Consent {
                destroy: vec!["x".into(), name.into()],
                ..Consent::default()
            }
        )
        .is_ok()
    );
    disk.assert_writable();
}

/// Ended when dropped, on failure too.
struct Process(Child);

impl Process {
    /// A shell command that has said a line once it is where it should be.
    fn start(command: &str) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        std::io::BufRead::read_line(
            &mut std::io::BufReader::new(child.stdout.as_mut().unwrap()),
            &mut String::new(),
        )
        .unwrap();
        Self(child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Its end of input ends `read`, and with it what runs inside a namespace.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn a_mounted_disk_is_refused_by_whatever_way_it_is_reached() {
    if !can_run(
        "a_mounted_disk_is_refused_by_whatever_way_it_is_reached",
        &["losetup", "mkfs.ext4", "mknod", "unshare", "mkfs.btrfs"],
    ) {
        return;
    }
    let disk = Disk::new(64 * MIB);
    run("mkfs.ext4", &["-q", disk.node()]);
    let at = |name: &str| disk.place.path().join(name);
    {
        let mount = Mount::new("ext4", disk.node(), &at("a place"), "ro");
        let parts = [
            &format!(
                "is mounted at {} (ext4) → umount '{0}'",
                mount.point.display()
            )[..],
            "ext2/3/4 filesystem",
        ];
        disk.assert_refused("node", &parts);
        std::os::unix::fs::symlink(&disk.device.node, at("link")).unwrap();
        let number = disk.device.name().strip_prefix("loop").unwrap();
        run("mknod", &[at("node").to_str().unwrap(), "b", "7", number]);
        for other in ["link", "node"] {
            let reasons = admitted(&at(other), &disk.consent()).unwrap_err();
            assert!(
                reasons.iter().any(|reason| reason.contains(parts[0])),
                "{other}: {reasons:#?}"
            );
        }
        std::fs::create_dir(at("bound")).unwrap();
        run(
            "mount",
            &[
                "--bind",
                mount.point.to_str().unwrap(),
                at("bound").to_str().unwrap(),
            ],
        );
        let bound = Mount { point: at("bound") };
        disk.assert_refused("bind", &[&format!("umount {}", bound.point.display())]);
    }
    {
        let inside = format!(
            "unshare --mount sh -c 'mount -o ro {} {}; echo there; read line'",
            disk.node(),
            at("bound").display()
        );
        let process = Process::start(&inside);
        disk.assert_refused(
            "namespace",
            &["in the mount namespace of process ", "--mount umount "],
        );
        drop(process);
    }
    follow(&disk, "unmounted");
    disk.assert_writable();

    // Both members of a btrfs, though mountinfo names one of them only.
    let (one, two) = (Disk::new(128 * MIB), Disk::new(128 * MIB));
    run("mkfs.btrfs", &["-q", one.node(), two.node()]);
    let mount = Mount::new("btrfs", one.node(), &one.place.path().join("mnt"), "ro");
    for member in [&one, &two] {
        member.assert_refused("btrfs", &["belongs to the mounted btrfs filesystem"]);
    }
    drop(mount);
}

#[test]
fn a_mounted_partition_keeps_its_disk_away() {
    if !can_run(
        "a_mounted_partition_keeps_its_disk_away",
        &["losetup", "mkfs.ext4", "sfdisk", "partx"],
    ) {
        return;
    }
    let disk = Disk::new(64 * MIB);
    shell(&format!(
        "printf '2048,32768,L\\n40960,32768,L\\n' | sfdisk -q --no-reread --no-tell-kernel \
         --label dos {}",
        disk.node()
    ));
    run("partx", &["--add", disk.node()]);
    let (part, free) = (disk.device.partition(1), disk.device.partition(2));
    run("mkfs.ext4", &["-q", part.to_str().unwrap()]);
    let mount = Mount::new(
        "ext4",
        part.to_str().unwrap(),
        &disk.place.path().join("mnt"),
        "ro",
    );
    disk.assert_refused(
        "disk",
        &[
            &format!("{} is mounted at ", part.display()),
            "MBR partition table",
        ],
    );
    // Its neighbour is free.
    let neighbour = consent(free.file_name().unwrap().to_str().unwrap());
    let target = OpenTarget::open(admitted(&free, &neighbour).unwrap()).unwrap();
    // And is held: a second claim fails, on the disk too.
    let again = admitted(&free, &neighbour).unwrap_err();
    assert!(
        again.iter().any(|reason| reason.contains("EBUSY")),
        "{again:?}"
    );
    let locked = Command::new("flock")
        .args(["--nonblock", disk.node(), "true"])
        .status()
        .unwrap();
    assert!(!locked.success(), "the whole disk is locked against udev");
    drop((target, mount));
    run("partx", &["--delete", disk.node()]);
}

/// Such as the member of a RAID of the firmware, or of md with its superblock at the end: the
/// partitions that show on it are those of the volume.
#[test]
fn a_partition_of_what_is_one_thing_as_a_whole_is_refused() {
    if !can_run(
        "a_partition_of_what_is_one_thing_as_a_whole_is_refused",
        &["losetup", "sfdisk", "partx", "pvcreate", "wipefs"],
    ) {
        return;
    }
    let divide = |disk: &Disk| {
        shell(&format!(
            "echo '2048,32768,L' | sfdisk -q --wipe never --no-reread --no-tell-kernel --label \
             dos {}",
            disk.node()
        ));
        run("partx", &["--add", disk.node()]);
        let part = disk.device.partition(1);
        let name = part.file_name().unwrap().to_str().unwrap().to_owned();
        (part, consent(&name))
    };
    for mark in ["LVM", "Intel RAID"] {
        let disk = Disk::new(64 * MIB);
        if mark == "LVM" {
            run(
                "pvcreate",
                &["-qq", "-ff", "-y", "--labelsector", "3", disk.node()],
            );
        } else {
            let end = 64 * MIB - 1024;
            std::fs::File::options()
                .write(true)
                .open(&disk.device.node)
                .unwrap()
                .write_all_at(b"Intel Raid ISM Cfg Sig. ", end)
                .unwrap();
        }
        let (part, inner) = divide(&disk);
        let before = disk.hash();
        let reasons = admitted(&part, &inner).unwrap_err();
        assert!(
            reasons.len() == 1
                && reasons[0].contains(&format!("as a whole holds a mark of: {mark}")),
            "{reasons:#?}"
        );
        assert_eq!(disk.hash(), before);
        let (mut last, mut opened) = (Vec::new(), None);
        for _ in 0..6 {
            let reasons = match admitted(&part, &inner) {
                Ok(admission) => {
                    opened = Some(OpenTarget::open(admission).unwrap());
                    break;
                }
                Err(reasons) => reasons,
            };
            let step = reasons[0].split_once("what it holds: ").unwrap().1;
            let (first, second) = step.split_once("; where that finds nothing: ").unwrap();
            shell(&format!(
                "{} 2>&1",
                if last == reasons { second } else { first }
            ));
            last = reasons;
        }
        assert!(opened.is_some(), "{last:?}");
        drop(opened);
        // The partition table is still there, for others may need their partitions.
        assert!(
            disk.reasons()
                .iter()
                .any(|reason| reason.contains("MBR partition table"))
        );
        assert!(run("sfdisk", &["--dump", disk.node()]).contains("start=        2048"));
        run("partx", &["--delete", disk.node()]);
    }
}

/// Between its fork and its exec, every process that is being started shares the descriptors of
/// the process that starts it, claims among them.
#[test]
fn a_claim_of_a_moment_is_no_use() {
    if !can_run("a_claim_of_a_moment_is_no_use", &["losetup"]) {
        return;
    }
    let disk = Disk::new(MIB);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let starting = || {
            while !done.load(Relaxed) {
                let _ = Command::new("true").status();
            }
        };
        (0..4).for_each(|_| drop(scope.spawn(starting)));
        let opened: Vec<_> = (0..40)
            .map(|_| {
                disk.admit()
                    .map(|admission| OpenTarget::open(admission).map(drop))
            })
            .collect();
        done.store(true, Relaxed);
        opened
            .into_iter()
            .for_each(|opened| assert!(matches!(opened, Ok(Ok(()))), "{opened:?}"));
    });
}

#[test]
fn swap_holders_and_open_files_are_in_use() {
    if !can_run(
        "swap_holders_and_open_files_are_in_use",
        &["losetup", "mkswap", "swapon", "swapoff"],
    ) {
        return;
    }
    struct Swap(String);
    impl Drop for Swap {
        fn drop(&mut self) {
            let _ = Command::new("swapoff").arg(&self.0).status();
        }
    }
    let disk = Disk::new(64 * MIB);
    run("mkswap", &["-q", disk.node()]);
    {
        run("swapon", &["--priority", "0", disk.node()]);
        let _swap = Swap(disk.node().to_owned());
        // Not compared with its hash before: the kernel may swap to it at any time.
        let reasons = disk.admit().err().unwrap_or_default();
        let parts = [
            format!("{0} is in use as swap space → swapoff {0}", disk.node()),
            "swap space (byte 4086)".to_owned(),
        ];
        assert!(
            parts
                .iter()
                .all(|part| reasons.iter().any(|reason| reason.contains(part))),
            "{reasons:#?}"
        );
    }
    run("wipefs", &["--all", "--quiet", disk.node()]);
    disk.assert_writable();
    {
        let above = Loop::over(&disk.device.node, &[]);
        disk.assert_refused(
            "loop above",
            &[&format!(
                "is the file behind {0} → losetup --detach {0}",
                above.node.display()
            )],
        );
        // From above the disk below belongs to it.
        admitted(&above.node, &consent(above.name()))
            .unwrap_or_else(|reasons| panic!("{reasons:#?}"));
        let reader = Process::start(&format!("exec 3<{}; echo there; read line", disk.node()));
        let reasons = admitted(&above.node, &consent(above.name())).unwrap_err();
        assert!(
            reasons[0].contains(&format!("{} is held open by process ", disk.node())),
            "{reasons:?}"
        );
        drop(reader);
    }
    {
        let twin = Loop::over(&disk.image, &[]);
        disk.assert_refused(
            "the same file behind another",
            &[&format!("losetup --detach {}", twin.node.display())],
        );
    }
    for how in ["<", ">>"] {
        let process = Process::start(&format!(
            "exec 3{how}{}; echo there; read line",
            disk.node()
        ));
        disk.assert_refused(
            how,
            &[&format!(
                "{} is held open by process {} (sh) → ",
                disk.node(),
                process.0.id()
            )],
        );
    }
    run("blockdev", &["--setro", disk.node()]);
    disk.assert_refused("read-only", &["is read-only → blockdev --setrw"]);
    run("blockdev", &["--setrw", disk.node()]);
    disk.assert_writable();
}

/// A path in sysfs is the one that the loop device was set up with, wherever that leads by now.
#[test]
fn the_file_behind_a_loop_device_is_told_by_its_driver() {
    if !can_run(
        "the_file_behind_a_loop_device_is_told_by_its_driver",
        &["losetup", "unshare", "mount"],
    ) {
        return;
    }
    let place = place();
    let (folder, hidden) = (place.path().join("folder"), place.path().join("hidden"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::create_dir(&hidden).unwrap();
    let image = folder.join("image");
    let disk = Loop::sparse(&image, 16 * MIB, &[]);
    drop(OpenTarget::open(admitted(&disk.node, &consent(disk.name())).unwrap()).unwrap());
    // Another file of this name now stands where the path leads to.
    let cover = Mount::new("tmpfs", "tmpfs", &folder, "size=64M");
    std::fs::File::create(&image)
        .unwrap()
        .set_len(16 * MIB)
        .unwrap();
    let reasons = admitted(&disk.node, &consent(disk.name())).unwrap_err();
    assert!(
        reasons.len() == 1 && reasons[0].contains("cannot be inspected: it has no name here"),
        "{reasons:?}"
    );
    drop(cover);
    // The same file by a path that exists in another mount namespace only.
    std::fs::write(hidden.join("empty"), "").unwrap();
    let (from, at) = (image.display(), hidden.join("empty"));
    let inside = format!(
        "unshare --mount sh -c 'mount --bind {from} {0}; losetup --find --show {0}; read line'",
        at.display()
    );
    let mut child = Command::new("sh")
        .args(["-c", &inside])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut node = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(child.stdout.as_mut().unwrap()),
        &mut node,
    )
    .unwrap();
    let twin = Loop {
        node: node.trim().into(),
    };
    let process = Process(child);
    let reasons = admitted(&disk.node, &consent(disk.name())).unwrap_err();
    assert!(
        reasons
            .iter()
            .any(|reason| reason.contains(&format!("losetup --detach {}", twin.node.display()))),
        "{reasons:?}"
    );
    drop((twin, process));
}

#[test]
fn what_comes_between_the_look_and_the_opening_is_refused() {
    if !can_run(
        "what_comes_between_the_look_and_the_opening_is_refused",
        &["losetup", "mkfs.ext4", "mkswap"],
    ) {
        return;
    }
    let refused = |disk: &Disk, change: &dyn Fn()| {
        let admission = disk.admit().unwrap_or_else(|reasons| panic!("{reasons:?}"));
        change();
        let before = disk.hash();
        let Err(error) = OpenTarget::open(admission) else {
            panic!("opened")
        };
        assert_eq!(disk.hash(), before);
        let OpenError::Refused(refusal) = error else {
            panic!("{error}")
        };
        refusal.reasons.join("\n")
    };
    let disk = Disk::new(64 * MIB);
    assert!(refused(&disk, &|| drop(run("mkswap", &["-q", disk.node()]))).contains("swap space"));
    run("wipefs", &["--all", "--quiet", disk.node()]);
    let disk_2 = Disk::new(64 * MIB);
    let process = std::cell::RefCell::new(None);
    let reasons = refused(&disk_2, &|| {
        *process.borrow_mut() = Some(Process::start(&format!(
            "exec 3<{}; echo there; read line",
            disk_2.node()
        )))
    });
    assert!(reasons.contains("is held open by process"), "{reasons}");
    let disk_3 = Disk::new(64 * MIB);
    let lock = std::cell::RefCell::new(None);
    let reasons = refused(&disk_3, &|| {
        let command = format!("exec 3<{}; flock 3; echo there; read line", disk_3.node());
        *lock.borrow_mut() = Some(Process::start(&command));
    });
    assert!(
        reasons.contains("another program holds a lock on it"),
        "{reasons}"
    );
    // Another disk under the same node.
    let disk_4 = Disk::new(64 * MIB);
    let admission = disk_4.admit().unwrap();
    run("losetup", &["--detach", disk_4.node()]);
    std::fs::File::options()
        .write(true)
        .open(&disk_4.image)
        .unwrap()
        .set_len(32 * MIB)
        .unwrap();
    let again = Command::new("losetup")
        .args([disk_4.node(), disk_4.image.to_str().unwrap()])
        .status()
        .unwrap();
    assert!(again.success());
    assert!(matches!(
        OpenTarget::open(admission),
        Err(OpenError::Changed { .. } | OpenError::Refused(_))
    ));
}

/// Workloads that run at the same time use a description each: it opens no door that the first one
/// has not, and the device stays claimed until the last is gone.
#[test]
fn a_second_description_has_the_rights_of_the_first_and_keeps_its_claim() {
    if !can_run(
        "a_second_description_has_the_rights_of_the_first_and_keeps_its_claim",
        &["losetup"],
    ) {
        return;
    }
    let disk = Disk::new(64 * MIB);
    let before = disk.hash();
    let path = Path::new(disk.node());
    let reader = OpenTarget::open(admit(probe(path).unwrap(), Intent::Read).unwrap()).unwrap();
    let again = reader.reopen().unwrap();
    assert!(
        !again.is_writable()
            && rustix::io::pwrite(again.fd(), &[0xa5; 4096], 0) == Err(rustix::io::Errno::BADF)
    );
    drop((reader, again));
    assert_eq!(disk.hash(), before);

    let target = OpenTarget::open(
        disk.admit()
            .unwrap_or_else(|reasons| panic!("{reasons:#?}")),
    )
    .unwrap();
    let mut again = target.reopen().unwrap();
    assert!(
        again.is_writable()
            && again.capacity_bytes() == target.capacity_bytes()
            && again.identity() == target.identity()
    );
    let used = again
        .set_cache(diskproof_model::plan::CachePolicy::Cached)
        .unwrap()
        .used;
    assert_eq!(used, diskproof_model::plan::CachePolicy::Cached);
    let claim = || {
        let flags =
            rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::EXCL | rustix::fs::OFlags::CLOEXEC;
        rustix::fs::open(path, flags, rustix::fs::Mode::empty()).map(drop)
    };
    assert_eq!(claim(), Err(rustix::io::Errno::BUSY));
    drop(target);
    assert_eq!(
        claim(),
        Err(rustix::io::Errno::BUSY),
        "the first description lives as long as the second"
    );
    drop(again);
    // A process that another test is starting shares the claim until it has become another program.
    let is_free = (0..600).any(|_| {
        claim().is_ok() || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            false
        }
    });
    assert!(is_free);
}

pub(crate) fn overwriting(path: &Path) -> Result<Admission, Vec<String>> {
    admitted(
        path,
        &Consent {
            overwriting: Overwriting::Allowed,
            ..Consent::default()
        },
    )
}

#[test]
fn files_are_overwritten_only_when_nobody_needs_them() {
    if !can_run(
        "files_are_overwritten_only_when_nobody_needs_them",
        &["losetup", "mkfs.ext4"],
    ) {
        return;
    }
    let place = place();
    let at = |name: &str| place.path().join(name);
    let fill = |name: &str| std::fs::write(at(name), vec![1; 4 * MIB as usize]).unwrap();
    let refused = |name: &str, part: &str| {
        let before = run("sha256sum", &[at(name).to_str().unwrap()]);
        let reasons = overwriting(&at(name)).err().unwrap_or_default();
        assert!(
            reasons.iter().any(|reason| reason.contains(part)),
            "{name}: {part}: {reasons:?}"
        );
        assert_eq!(run("sha256sum", &[at(name).to_str().unwrap()]), before);
    };
    fill("data");
    assert!(admitted(&at("data"), &Consent::default()).unwrap_err()[0].contains("add --overwrite"));
    let mut target = OpenTarget::open(overwriting(&at("data")).unwrap()).unwrap();
    assert!(target.is_writable() && !target.is_scratch() && target.trim_to_written().is_err());
    assert_eq!(rustix::io::pwrite(target.fd(), b"new", 0), Ok(3));
    target.mark_written(100 * MIB);
    drop(target);
    let written = std::fs::read(at("data")).unwrap();
    assert_eq!(
        (written.len() as u64, &written[..4]),
        (4 * MIB, &b"new\x01"[..])
    );

    std::os::unix::fs::symlink("data", at("link")).unwrap();
    assert_eq!(
        overwriting(&at("link")).unwrap().identity().path,
        at("data").to_str().unwrap(),
        "the message names the file"
    );
    std::fs::hard_link(at("data"), at("second")).unwrap();
    refused("data", "it has 2 names (hard links)");
    std::fs::remove_file(at("second")).unwrap();
    {
        let device = Loop::over(&at("data"), &[]);
        refused(
            "data",
            &format!("losetup --detach {}", device.node.display()),
        );
    }
    for how in ["<", ">>"] {
        let process = Process::start(&format!(
            "exec 3{how}{}; echo there; read line",
            at("data").display()
        ));
        refused(
            "data",
            &format!("is held open by process {}", process.0.id()),
        );
    }
    std::fs::copy("/bin/sleep", at("program")).unwrap();
    std::fs::File::options()
        .write(true)
        .open(at("program"))
        .unwrap()
        .set_len(2 * MIB)
        .unwrap();
    std::fs::set_permissions(
        at("program"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let mut running = Command::new(at("program")).arg("600").spawn().unwrap();
    // It is mapped once /proc says that it runs.
    while std::fs::read_link(format!("/proc/{}/exe", running.id())).unwrap() != at("program") {
        std::thread::yield_now();
    }
    refused("program", "is mapped into memory by process");
    running.kill().unwrap();
    running.wait().unwrap();

    std::fs::File::create(at("image"))
        .unwrap()
        .set_len(64 * MIB)
        .unwrap();
    run("mkfs.ext4", &["-q", at("image").to_str().unwrap()]);
    refused("image", "it holds a mark of: ext2/3/4 filesystem");
    for made in ["data.d/base/5", "wal", "space/PG_17_202406281/5"] {
        std::fs::create_dir_all(at(made)).unwrap();
    }
    std::fs::write(at("data.d/PG_VERSION"), "17\n").unwrap();
    for (file, part) in [
        ("data.d/base/5/16384", "is a PostgreSQL data directory"),
        ("wal/0000000100000000000000A1", "WAL segments"),
        ("space/PG_17_202406281/5/16385", "tablespace"),
    ] {
        fill(file);
        refused(file, part);
    }
    let admission = overwriting(&at("data")).unwrap();
    std::fs::File::options()
        .write(true)
        .open(at("data"))
        .unwrap()
        .write_all_at(b"XFSB", 0)
        .unwrap();
    assert!(matches!(
        OpenTarget::open(admission),
        Err(OpenError::Refused(refusal)) if refusal.reasons[0].contains("XFS")
    ));
    fill("data");
    let admission = overwriting(&at("data")).unwrap();
    std::fs::File::options()
        .append(true)
        .open(at("data"))
        .unwrap()
        .set_len(5 * MIB)
        .unwrap();
    assert!(
        matches!(OpenTarget::open(admission), Err(OpenError::Changed { .. })),
        "grown: another process writes to it"
    );
    assert!(overwriting(place.path()).unwrap_err()[0].contains("it is a directory"));
}

#[test]
fn what_chattr_protects_is_refused_and_the_flag_is_named() {
    if !can_run(
        "what_chattr_protects_is_refused_and_the_flag_is_named",
        &["chattr"],
    ) {
        return;
    }
    let place = place();
    let file = place.path().join("data");
    std::fs::write(&file, vec![1; 4 * MIB as usize]).unwrap();
    for (flag, part) in [
        ("i", "immutable → chattr -i "),
        ("a", "append-only → chattr -a "),
    ] {
        run("chattr", &[&format!("+{flag}"), file.to_str().unwrap()]);
        let reasons = overwriting(&file).err().unwrap_or_default();
        run("chattr", &[&format!("-{flag}"), file.to_str().unwrap()]);
        assert!(
            reasons.len() == 1 && reasons[0].contains(part),
            "{reasons:?}"
        );
    }
}

#[test]
fn holes_that_would_fill_the_filesystem_are_refused() {
    let place = place();
    let file = place.path().join("sparse");
    let free = probe(place.path()).unwrap().free_bytes.unwrap();
    std::fs::File::create(&file).unwrap().set_len(free).unwrap();
    let reasons = overwriting(&file).unwrap_err();
    assert!(
        reasons.len() == 1 && reasons[0].contains("holes that take space"),
        "{reasons:?}"
    );
}
