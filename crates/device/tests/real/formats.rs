//! Formats on real loop devices: what real programs put on a disk. Each must be refused with the
//! reason and the command that ends it, and not one byte may change; once the commands were
//! followed, the same device must be let in and be writable.

use crate::support::{Disk, MIB, admitted, consent, follow, run, shell};
use diskproof_device::OpenTarget;
use diskproof_simdisk::testbed::can_run;
use std::os::unix::fs::FileExt as _;
use std::process::Command;

/// Name, size in MiB, program, its arguments before the device, for which NODE stands in them, too,
/// a part of the reason. `pvcreate` would open every block device, also those of other tests.
type Row = (&'static str, u64, &'static str, &'static str, &'static str);

const FILESYSTEMS_OF_LINUX: &[Row] = &[
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
    ("nilfs2", 160, "mkfs.nilfs2", "-q", "NILFS2 filesystem"),
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
];

const FILESYSTEMS_OF_OTHERS: &[Row] = &[
    ("fat12", 8, "mkfs.vfat", "-I -F12", "FAT filesystem"),
    ("fat16", 64, "mkfs.vfat", "-I -F16", "FAT filesystem"),
    ("fat32", 64, "mkfs.vfat", "-I -F32", "FAT filesystem"),
    ("ntfs", 64, "mkfs.ntfs", "-Q -q -F", "NTFS filesystem"),
    ("exfat", 64, "mkfs.exfat", "", "exFAT filesystem"),
    ("udf", 64, "mkudffs", "", "UDF"),
    ("jfs", 64, "mkfs.jfs", "-q", "JFS filesystem"),
    ("minix", 8, "mkfs.minix", "", "Minix filesystem"),
    ("minix 3", 8, "mkfs.minix", "-3", "Minix filesystem"),
    ("bfs", 8, "mkfs.bfs", "", "BFS filesystem"),
    ("apfs", 160, "mkapfs", "", "APFS filesystem"),
    ("hfs", 64, "hformat", "-f -l test", "HFS filesystem"),
];

const SWAP_SPACE_AND_MEMBERS: &[Row] = &[
    ("swap", 64, "mkswap", "", "swap space"),
    (
        "swap of large pages",
        64,
        "mkswap",
        "-p 65536",
        "swap space",
    ),
    (
        "LVM",
        64,
        "pvcreate",
        "-qq -ff -y --devices NODE",
        "LVM physical volume",
    ),
    (
        "LVM label in the fourth sector",
        64,
        "pvcreate",
        "-qq -ff -y --devices NODE --labelsector 3",
        "LVM physical volume",
    ),
    ("bcache", 64, "make-bcache", "-B", "bcache device"),
    ("bcache's cache", 64, "make-bcache", "-C", "bcache device"),
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

fn assert_refused_until_wiped(test: &str, rows: &[Row]) {
    for (name, mib, program, arguments, part) in rows {
        if !can_run(test, &["losetup", "wipefs", "blkid", program]) {
            continue;
        }
        let disk = Disk::new(mib * MIB);
        let arguments = arguments.replace("NODE", disk.node());
        // mkfs.nilfs2 compares the beginnings of names: /dev/loop1 counts as mounted while
        // /dev/loop10 is.
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("disk");
        let node = match *program {
            "mkfs.nilfs2" => {
                std::os::unix::fs::symlink(disk.node(), &link).unwrap();
                link.display().to_string()
            }
            _ => disk.node().to_owned(),
        };
        shell(&format!("{program} {arguments} {node} 2>&1"));
        assert!(known_to_blkid(&disk), "{name}");
        disk.assert_refused(name, &[part, "→ after saving what it holds: "]);
        follow(&disk, name);
        disk.assert_writable();
    }
}

// Several tests, so that they run beside each other.

#[test]
fn gate_refuses_filesystems_of_linux_until_they_are_wiped() {
    let test = "gate_refuses_filesystems_of_linux_until_they_are_wiped";
    assert_refused_until_wiped(test, FILESYSTEMS_OF_LINUX);
}

#[test]
fn gate_refuses_filesystems_of_others_until_they_are_wiped() {
    let test = "gate_refuses_filesystems_of_others_until_they_are_wiped";
    assert_refused_until_wiped(test, FILESYSTEMS_OF_OTHERS);
}

#[test]
fn gate_refuses_swap_space_and_members_of_devices_until_they_are_wiped() {
    let test = "gate_refuses_swap_space_and_members_of_devices_until_they_are_wiped";
    assert_refused_until_wiped(test, SWAP_SPACE_AND_MEMBERS);
}

#[test]
fn gate_refuses_images_of_programs_until_they_are_wiped() {
    const TEST: &str = "gate_refuses_images_of_programs_until_they_are_wiped";
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
fn gate_refuses_luks_and_its_second_header_alone() {
    if !can_run(
        "gate_refuses_luks_and_its_second_header_alone",
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

/// A disk with the partition table of these commands, and a filesystem in its first partition.
fn partitioned(commands: &str) -> Disk {
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
}

const ONE_MBR_PARTITION: &str =
    "echo '2048,32768,L' | sfdisk -q --no-reread --no-tell-kernel --label dos DISK";

#[test]
fn gate_refuses_partition_table_and_names_what_its_partitions_hold() {
    if !can_run(
        "gate_refuses_partition_table_and_names_what_its_partitions_hold",
        &["losetup", "sfdisk", "parted", "mkfs.ext4"],
    ) {
        return;
    }
    let ext = "ext2/3/4 filesystem or its journal in partition 1 of its table, at 1 MiB";
    let mbr = partitioned(ONE_MBR_PARTITION);
    mbr.assert_refused("MBR", &["MBR partition table", ext]);
    let gpt = partitioned("parted -s IMAGE mklabel gpt mkpart data 1MiB 17MiB 2>/dev/null");
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
    let logical = partitioned(
        "printf ',4M,5\\n,,E\\n,8M,L\\n' | sfdisk -q --no-reread --no-tell-kernel --label dos \
         DISK 2>/dev/null; true",
    );
    logical.assert_refused("logical partitions", &["MBR partition table"]);
}

#[test]
fn gate_refuses_every_disk_label_of_parted() {
    if !can_run(
        "gate_refuses_every_disk_label_of_parted",
        &["losetup", "parted"],
    ) {
        return;
    }
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
            &["it holds a signature: ", "→ after saving what it holds: "],
        );
        follow(&disk, label);
        disk.assert_writable();
    }
}

#[test]
fn gate_admits_cleaned_partition_of_partitioned_disk() {
    if !can_run(
        "gate_admits_cleaned_partition_of_partitioned_disk",
        &["losetup", "sfdisk", "mkfs.ext4", "partx"],
    ) {
        return;
    }
    let mbr = partitioned(ONE_MBR_PARTITION);
    // Partitions that the kernel knows have their own nodes.
    run("partx", &["--add", "--nr", "1", mbr.node()]);
    let part = mbr.device.partition(1);
    mbr.assert_refused("partx", &[&format!("wipefs --all {}", part.display())]);
    let inner = consent(part.file_name().unwrap().to_str().unwrap());
    let reasons = admitted(&part, &inner).unwrap_err();
    assert!(
        reasons[0].contains("ext2/3/4") && !reasons.iter().any(|reason| reason.contains("MBR")),
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
fn gate_refuses_signatures_planted_by_hand() {
    if !can_run("gate_refuses_signatures_planted_by_hand", &["losetup"]) {
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
