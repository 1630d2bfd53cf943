//! The gate as a user meets it: what is refused, with which exit code and words, and that not one
//! byte of it changes; and that what was released in full is really written to. What the gate finds
//! is tested in crates/device/tests.

use crate::program;
use crate::program::{
    Ran, argv, content_hash, counts, diskproof, eventually, needs, random_file, with_enough_time,
};
use diskproof_model::measurement::OpKind;
use diskproof_simdisk::testbed::{Loop, Mount, TempDir, place, run};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

const MIB: u64 = 1 << 20;

/// A loop device full of random bytes, which hold no signature.
struct Disk {
    device: Loop,
    place: TempDir,
}

impl Disk {
    fn new(size_bytes: u64) -> Self {
        let place = place();
        let image = place.path().join("image");
        random_file(&image, size_bytes);
        Self {
            device: Loop::over(&image, &["--direct-io=on"]),
            place,
        }
    }

    fn node(&self) -> &Path {
        &self.device.node
    }

    /// Runs the program on it with leave to destroy it.
    fn released(&self, verb: &str, flags: &str) -> Ran {
        let (node, name) = (self.node().display(), self.device.name());
        diskproof!("{verb} {node} {flags} --destroy {name}")
    }

    fn hash(&self) -> String {
        run("blockdev", &["--flushbufs", self.node().to_str().unwrap()]);
        content_hash(self.node())
    }
}

impl Drop for Disk {
    /// Partitions that the kernel was told of, and the write protection, outlive the loop device.
    fn drop(&mut self) {
        let _ = std::process::Command::new("blockdev")
            .arg("--setrw")
            .arg(self.node())
            .status();
        let _ = std::process::Command::new("partx")
            .arg("--delete")
            .arg(self.node())
            .stderr(std::process::Stdio::null())
            .status();
    }
}

fn diskproof<S: AsRef<OsStr>>(verb: &str, target: &Path, flags: &[S]) -> Ran {
    program::run(
        [OsStr::new(verb), target.as_os_str()]
            .into_iter()
            .chain(flags.iter().map(AsRef::as_ref)),
    )
}

/// Refused by every verb that writes: exit 3, nothing on stdout, all these parts on stderr, nothing
/// written.
fn assert_refused(disk: &Disk, target: &Path, name: &str, parts: &[&str]) {
    let before = disk.hash();
    for line in [
        "run --rw randwrite",
        "run --rw write --buffered --dry-run",
        "run --rw randrw --engine mmap",
        "check",
    ] {
        let words = argv(line);
        let flags = [&words[1..], &["--time", "1s", "--destroy", name]].concat();
        let ran = diskproof(words[0], target, &flags);
        ran.exits(3).shows_nothing().tells_all(parts);
        ran.tells_first("diskproof: error: refused to overwrite /");
        ran.tells("Nothing was written.");
    }
    assert_eq!(disk.hash(), before);
}

#[test]
fn released_disk_is_written_to() {
    needs!("losetup");
    let disk = Disk::new(64 * MIB);
    assert_dry_run_writes_nothing(&disk);
    for engine in ["uring", "sync", "aio", "mmap"] {
        assert_engine_writes(&disk, engine);
    }
    assert_check_writes(&disk);
    // Nothing of it keeps the next run away.
    disk.released("run", "--rw write --ops 10 --quiet").exits(0);
}

/// A dry run names what a run would write and destroy.
fn assert_dry_run_writes_nothing(disk: &Disk) {
    let before = disk.hash();
    let dry = disk.released("run", "--rw randwrite --bytes 8M --dry-run");
    assert_eq!(disk.hash(), before);
    dry.exits(0).shows("8 MiB").shows("content is lost");
}

fn assert_engine_writes(disk: &Disk, engine: &str) {
    let before = disk.hash();
    let flags = format!("--rw randwrite --bytes 8M --engine {engine} --verify --json");
    let ran = disk.released("run", &flags);
    ran.exits(0).tells("8 MiB to the device");
    let verified = ran.record().measurements[0].data.verify.clone().unwrap();
    assert!(verified.blocks > 0 && verified.bad_blocks == 0, "{engine}");
    assert_ne!(disk.hash(), before, "{engine}");
}

/// A check of a released disk skips none of its writes.
fn assert_check_writes(disk: &Disk) {
    let writing = "sequential-write commit-fdatasync mixed-sequential mixed-random \
                   random-write-d32";
    with_enough_time(&["1s", "4s", "16s", "64s"], |time| {
        let ran = disk.released("check", &format!("--time {time} --json"));
        assert_ne!(ran.code, Some(3), "{ran}");
        let record = ran.record();
        assert_eq!(record.plan.skipped.len(), 0, "{ran}");
        let wrote = |name: &&str| {
            let mut all = record.measurements.iter();
            all.any(|m| m.data.workload.name == *name && m.data.asked.write_bytes > 0)
        };
        match ran.code == Some(0) && argv(writing).iter().all(wrote) {
            true => Ok(()),
            false => Err(format!("{time}: {ran}")),
        }
    });
}

#[test]
fn reading_needs_no_leave_and_uses_none() {
    needs!("losetup", "mkfs.ext4");
    let disk = Disk::new(64 * MIB);
    run("mkfs.ext4", &["-q", disk.node().to_str().unwrap()]);
    let before = disk.hash();
    run("blockdev", &["--setro", disk.node().to_str().unwrap()]);
    for destroy in [
        &["--destroy", "no such name"][..],
        &["--destroy", disk.device.name()],
        &[],
    ] {
        let flags = [&["--ops", "100", "--json"], destroy].concat();
        let record = diskproof("run", disk.node(), &flags).exits(0).record();
        assert_eq!(counts(&record.measurements[0], OpKind::Read).0, 100);
    }
    let ran = disk.released("check", "--time 1s --read-only --json");
    let record = ran.exits(0).record();
    assert!(
        record
            .measurements
            .iter()
            .all(|m| m.data.asked.write_bytes == 0)
    );
    assert_eq!(disk.hash(), before);
}

#[test]
fn destroy_refuses_a_name_that_is_not_the_devices() {
    needs!("losetup");
    let disk = Disk::new(64 * MIB);
    let name = disk.device.name();
    assert_refused(&disk, disk.node(), "", &["--destroy ''", "kernel name"]);
    let shorter = &name[..name.len() - 1];
    let part = format!("--destroy '{shorter}'");
    assert_refused(&disk, disk.node(), shorter, &[&part]);
}

#[test]
fn refusal_names_every_reason_with_its_remedy() {
    needs!("losetup", "mkfs.ext4", "sfdisk", "partx");
    let disk = Disk::new(64 * MIB);
    let (node, name) = (disk.node().to_str().unwrap(), disk.device.name());
    let table = "echo '2048,32768,L' | sfdisk -q --no-reread --no-tell-kernel --label gpt";
    run("sh", &["-c", &format!("{table} {node}")]);
    run("partx", &["--add", node]);
    let part = disk.device.partition(1);
    let part_node = part.to_str().unwrap();
    run("mkfs.ext4", &["-q", part_node]);
    let mount = Mount::new("ext4", part_node, &disk.place.path().join("mnt"), "ro");
    let point = mount.point.display();
    let mounted = format!("  - {part_node} is mounted at {point} (ext4) → umount ");
    let parts = [
        &mounted,
        "  - it holds a signature: GPT partition table (byte 512) → ",
        &format!(": wipefs --all {node}; "),
        "  - it holds a signature: backup GPT partition table",
        &format!(" in partition {name}p1 (byte 1049656) → "),
        &format!(": wipefs --all {part_node}"),
    ];
    assert_refused(&disk, disk.node(), name, &parts);
    let link: PathBuf = disk.place.path().join("link");
    std::os::unix::fs::symlink(&part, &link).unwrap();
    assert_refused(&disk, &link, &format!("{name}p1"), &[&mounted]);
    let without = diskproof("run", disk.node(), &["--rw", "write"]);
    without.exits(3).tells("unless you release it");
    drop(mount);
    // The kernel lets go of the partition a moment after the unmounting.
    let deleted = || {
        let mut partx = std::process::Command::new("partx");
        partx.args(["--delete", node]).status()
    };
    assert!(eventually(|| deleted().is_ok_and(|status| status.success())));
}

#[test]
fn leave_for_what_is_no_target_is_a_mistake() {
    let place = place();
    let file = place.path().join("data");
    random_file(&file, 2 * MIB);
    let ran = diskproof("run", &file, &["--destroy", "loop0"]);
    ran.exits(2).tells("--destroy ");
    let ran = diskproof("check", place.path(), &["--overwrite"]);
    ran.exits(2).tells("--overwrite ");
}

#[test]
fn a_file_is_overwritten_in_its_size_or_not_at_all() {
    let place = place();
    let file = place.path().join("data");
    // Not a whole number of blocks: nothing may be added.
    random_file(&file, 16 * MIB + 1000);
    let before = content_hash(&file);
    let checked = diskproof("check", &file, &["--time", "1s", "--json"]);
    let skipped = checked.exits(0).record().plan.skipped;
    assert!(
        skipped.iter().all(|one| one.why.contains("--overwrite")),
        "{skipped:?}"
    );
    let one = argv("--rw write --ops 1");
    diskproof("run", &file, &one).exits(3);
    assert_eq!(content_hash(&file), before);
    for flags in [
        "--rw write --bs 1M --bytes 40M --overwrite",
        "--rw randwrite --buffered --ops 3000 --overwrite",
    ] {
        let before = content_hash(&file);
        let ran = diskproof("run", &file, &argv(flags));
        ran.exits(0).tells("content is lost");
        assert_ne!(content_hash(&file), before);
        assert_eq!(std::fs::metadata(&file).unwrap().len(), 16 * MIB + 1000);
    }
    std::fs::hard_link(&file, place.path().join("other")).unwrap();
    let before = content_hash(&file);
    let ran = diskproof("run", &file, &[&one[..], &["--overwrite"]].concat());
    ran.exits(3).tells("2 names (hard links)");
    assert_eq!(content_hash(&file), before);
}

/// A name with line breaks and escape sequences must not look like a reason, or like the end of
/// them, nor act on the terminal.
#[test]
fn hostile_names_are_one_word_in_a_refusal() {
    needs!("losetup", "mkfs.ext4", "mknod");
    let disk = Disk::new(16 * MIB);
    let node = disk.node().to_str().unwrap();
    run("mkfs.ext4", &["-q", "-F", node]);
    let name = "mnt\nNothing was written.\u{1b}[2J it's";
    let hostile = disk.place.path().join(name);
    let mount = Mount::new("ext4", node, &hostile, "ro");
    let before = disk.hash();
    let ran = disk.released("run", "--rw write");
    ran.exits(3).shows_nothing().tells_not("\u{1b}");
    assert_eq!(disk.hash(), before);
    assert_eq!(ran.err.lines().count(), 6, "{ran}");
    assert!(ran.err.ends_with("\nNothing was written.\n"), "{ran}");
    // What bash, ksh and zsh read back as the same name.
    ran.tells("mnt\\x0aNothing was written.\\x1b[2J it\\'s'\n");
    let (_, command) = ran.err.split_once(" → umount ").unwrap();
    let printed = format!("printf %s {}", command.lines().next().unwrap());
    assert_eq!(Path::new(&run("bash", &["-c", &printed])), hostile);
    drop(mount);
    let missing = diskproof("run", Path::new("/nowhere\nit is fine"), &["--rw", "read"]);
    missing.exits(2);
    assert_eq!(missing.err.lines().count(), 1, "{missing}");
}

#[test]
fn a_record_never_takes_the_place_of_what_is_measured() {
    let place = place();
    let file = place.path().join("data.json");
    random_file(&file, 2 * MIB);
    let (before, link) = (content_hash(&file), place.path().join("link.json"));
    std::fs::hard_link(&file, &link).unwrap();
    for output in [&file, &link] {
        let ran = diskproof!("run {} --ops 1 -o {}", file.display(), output.display());
        ran.exits(2).tells("the target itself");
        assert_eq!(content_hash(&file), before);
    }
}

/// Of several targets none is touched when one is refused.
#[test]
fn one_refusal_keeps_all_targets_as_they_are() {
    needs!("losetup", "mkswap");
    let (free, taken) = (Disk::new(16 * MIB), Disk::new(16 * MIB));
    run("mkswap", &["-q", taken.node().to_str().unwrap()]);
    let before = (free.hash(), taken.hash());
    let destroy = [&free, &taken].map(|disk| format!("--destroy {}", disk.device.name()));
    for targets in [[free.node(), taken.node()], [taken.node(), free.node()]] {
        let targets = targets.map(|node| node.display().to_string()).join(" ");
        let ran = diskproof!("run {targets} --rw write --ops 1 {}", destroy.join(" "));
        ran.exits(3).shows_nothing();
        assert_eq!((free.hash(), taken.hash()), before);
    }
}

/// Two partitions of a loop device, known to the kernel.
fn divide(disk: &Disk) -> [PathBuf; 2] {
    let node = disk.node().to_str().unwrap();
    let zero = format!("dd if=/dev/zero of={node} bs=1M conv=fsync 2>/dev/null; true");
    let table = format!(
        "printf '2048,32768,L\\n40960,32768,L\\n' | sfdisk -q --no-reread --no-tell-kernel \
         --label dos {node}"
    );
    run("sh", &["-c", &zero]);
    run("sh", &["-c", &table]);
    run("partx", &["--add", node]);
    [1, 2].map(|number| disk.device.partition(number))
}

#[test]
fn two_partitions_of_one_disk_are_no_other_program_to_each_other() {
    needs!("losetup", "sfdisk", "partx");
    let disk = Disk::new(64 * MIB);
    let parts = divide(&disk);
    let before = parts.each_ref().map(|part| content_hash(part));
    let nodes = parts.each_ref().map(|part| part.display().to_string());
    let [one, two] = nodes
        .each_ref()
        .map(|node| node.trim_start_matches("/dev/"));
    let targets = nodes.join(" ");
    let ran = diskproof!("run {targets} --rw write --bytes 1M --destroy {one} --destroy {two}");
    ran.exits(0);
    for (part, before) in parts.iter().zip(before) {
        assert_ne!(content_hash(part), before);
    }
}

#[test]
fn device_under_a_second_node_is_named_twice() {
    needs!("losetup", "sfdisk", "partx", "mknod");
    let disk = Disk::new(64 * MIB);
    let [part, _] = divide(&disk);
    let before = disk.hash();
    for device in [disk.node(), &part] {
        let node = disk.place.path().join("node");
        let device = device.to_str().unwrap();
        let number = run("stat", &["--format", "%Hr %Lr", device]);
        let (major, minor) = number.trim().split_once(' ').unwrap();
        run("mknod", &[node.to_str().unwrap(), "b", major, minor]);
        let kernel_name = device.trim_start_matches("/dev/");
        let second = node.display();
        for flags in [
            "randread".to_owned(),
            format!("write --destroy {kernel_name}"),
        ] {
            let ran = diskproof!("run {device} {second} --rw {flags}");
            let message = format!("{device} is named twice, also as {second}");
            ran.exits(2).tells(&message);
        }
        std::fs::remove_file(node).unwrap();
    }
    assert_eq!(disk.hash(), before);
}

#[test]
fn an_empty_device_is_refused_for_that() {
    needs!("losetup");
    // A loop device without a file, which no other test gets meanwhile.
    let place = place();
    let image = place.path().join("image");
    std::fs::File::create(&image).unwrap();
    let device = Loop::over(&image, &[]);
    let write = format!("--rw write --destroy {}", device.name());
    for flags in [&write, "--rw read"] {
        let ran = diskproof("run", &device.node, &argv(flags));
        ran.exits(3).shows_nothing().tells("size of 0");
    }
}

/// What opens something under test for writing has to come through the gate: no other crate of
/// the program asks the kernel for it.
#[test]
fn nothing_but_the_gate_opens_for_writing() {
    // Files of the program's own: records, reports, the history; and the disks of tests.
    const OWN_FILES: [&str; 8] = [
        "cli/src/output_sink.rs",
        "cli/src/output_sink/",
        "cli/src/stdio.rs",
        "history/",
        "powercut/src/log_store.rs",
        "simdisk/",
        "device/",
        "report/",
    ];
    const WORDS: [&str; 9] = [
        ".write(true)",
        ".append(true)",
        "File::create",
        "File::options",
        "OpenOptions",
        "fs::write",
        "O_RDWR",
        "O_WRONLY",
        "OFlags::",
    ];
    let crates = all_crates();
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = std::fs::read_dir(crates)
        .unwrap()
        .map(|entry| entry.unwrap().path().join("src"))
        .collect();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
        {
            let name = path.strip_prefix(crates).unwrap().display().to_string();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".rs")
                && !name.ends_with("tests.rs")
                && !name.contains("/tests/")
                && !OWN_FILES.iter().any(|own| name.starts_with(own))
            {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = without_tests(&text);
                found.extend(
                    WORDS
                        .iter()
                        .filter(|word| code.contains(**word))
                        .map(|word| format!("{name}: {word}")),
                );
            }
        }
    }
    // What is under test is opened in crates/device only.
    assert_eq!(found, [""; 0]);
}

fn all_crates() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Up to the tests at the end of a file: a module of tests may be declared at its top, and items
/// for tests stand between others.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap()
}

/// Three files open something for writing: the one for scratch files, the one for what the user
/// released, and the one for new files that keep their names. `reopen.rs` opens the first two
/// again, with the rights of the first descriptor.
#[test]
fn gate_opens_for_writing_in_three_files() {
    let (mut writers, mut heirs): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let sources = all_crates().join("device/src");
    let mut folders = vec![sources.clone()];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let name = path.strip_prefix(&sources).unwrap().to_str().unwrap();
            let code = without_tests(&text);
            writers.extend(code.contains("OFlags::RDWR").then(|| name.to_owned()));
            heirs.extend(code.contains("OFlags::RWMODE").then(|| name.to_owned()));
        }
    }
    writers.sort();
    assert_eq!(
        writers,
        [
            "open/released.rs",
            "open/scratch.rs",
            "own_files/criteria.rs"
        ]
    );
    assert_eq!(heirs, ["open/reopen.rs"]);
}

/// Runs the program as a user without rights, from a copy that this user may run.
fn as_nobody(place: &Path, line: &str) -> Ran {
    let copy = place.join("diskproof");
    program::copy_program(&copy);
    let mut command = std::process::Command::new("setpriv");
    command.args(argv("--reuid=65534 --regid=65534 --clear-groups"));
    Ran::of(command.arg(&copy).args(argv(line)).current_dir(place))
}

/// Only the owner of a file may have a lease on it, and /proc hides the processes of others.
#[test]
fn file_of_another_owner_is_refused_where_its_users_cannot_be_seen() {
    needs!("setpriv");
    let place = place();
    let file = place.path().join("shared");
    random_file(&file, 4 * MIB);
    run("chmod", &["666", file.to_str().unwrap()]);
    let line = "run shared --rw randwrite --overwrite --time 1s";
    let before = content_hash(&file);
    // Its users are as unknown where nobody has it open.
    let open = std::fs::File::options().write(true).open(&file).unwrap();
    for held in [Some(open), None] {
        as_nobody(place.path(), line)
            .exits(3)
            .tells("is unknown")
            .tells("lease");
        drop(held);
    }
    assert_eq!(content_hash(&file), before);
    // The owner may have one.
    std::os::unix::fs::chown(&file, Some(65534), Some(65534)).unwrap();
    let open = std::fs::File::open(&file).unwrap();
    as_nobody(place.path(), line)
        .exits(3)
        .tells("something has it open");
    assert_eq!(content_hash(&file), before);
    drop(open);
    as_nobody(place.path(), line).exits(0);
    assert_ne!(content_hash(&file), before);
}

/// What a directory holds may be a server's; a user who may only write there cannot see it.
#[test]
fn directory_that_may_not_be_listed_is_refused() {
    needs!("setpriv");
    let place = place();
    let shared = place.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    let path = shared.to_str().unwrap();
    let line = "run shared --rw randread --size 1M --time 1s";
    for (mode, code) in [("0733", 3), ("0777", 0)] {
        run("chmod", &[mode, path]);
        as_nobody(place.path(), line).exits(code);
    }
}

/// The time of the last change of content can be set back, that of the inode cannot.
#[test]
fn dd_does_not_take_a_changed_file_with_its_old_time_for_its_own() {
    needs!("touch");
    let place = place();
    let (file, copy) = (place.path().join("out"), place.path().join("copy"));
    let dd = || diskproof!("as dd if=/dev/zero of={} bs=1M count=4", file.display());
    dd().exits(0);
    dd().exits(0);
    std::fs::copy(&file, &copy).unwrap();
    let (from, to) = (file.to_str().unwrap(), copy.to_str().unwrap());
    run("touch", &["-r", from, to]);
    // The clock of the filesystem has ticks of some milliseconds.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let precious = "printf precious | dd conv=notrunc status=none of=";
    run(
        "sh",
        &["-c", &format!("{precious}{from} && touch -r {to} {from}")],
    );
    let before = content_hash(&file);
    let refused = dd();
    assert_ne!(refused.code, Some(0), "{refused}");
    assert_eq!(content_hash(&file), before);
}

/// ext4 with inodes of 128 bytes keeps times in whole seconds: what another program writes in the
/// second of the mark leaves them as they are.
#[test]
fn dd_sees_what_was_written_in_the_second_of_its_mark() {
    needs!("losetup", "mkfs.ext4", "dd");
    let outside = place();
    let device = Loop::sparse(&outside.path().join("disk.img"), 64 << 20, &[]);
    let node = device.node.to_str().unwrap();
    run("mkfs.ext4", &["-qF", "-I", "128", node]);
    let point = outside.path().join("mounted");
    std::fs::create_dir(&point).unwrap();
    let _mount = Mount::new("ext4", node, &point, "rw");
    let file = point.join("out");
    let dd = || diskproof!("as dd if=/dev/zero of={} bs=1M count=4", file.display());
    // The second may end between two commands, and then the time tells.
    for _ in 0..3 {
        dd().exits(0);
        let to = format!(
            "printf precious | dd conv=notrunc status=none of={}",
            file.display()
        );
        run("sh", &["-c", &to]);
        let before = content_hash(&file);
        let refused = dd();
        assert_ne!(refused.code, Some(0), "{refused}");
        assert_eq!(content_hash(&file), before);
        std::fs::remove_file(&file).unwrap();
    }
}

#[test]
fn passwords_reach_neither_terminal_nor_record() {
    const SECRET: &str = "hunter2";
    let place = place();
    let record = place.path().join("record.json");
    for line in [
        format!("watch --postgres postgres:{SECRET}@nohost.invalid"),
        format!("watch --postgres postgresql://u:{SECRET}@127.0.0.1:1/d?sslpassword={SECRET}"),
        format!("watch --postgress=postgres://u:{SECRET}@h"),
        format!("run /nonexistent/sslpassword={SECRET}"),
    ] {
        let ran = diskproof!("{line}");
        assert_ne!(ran.code, Some(0), "{ran}");
        assert!(!format!("{}{}", ran.out, ran.err).contains(SECRET), "{ran}");
    }
    let sysbench = "sysbench fileio --file-total-size=16M --file-num=1 --time=1";
    let given = format!("--file-test-mode=rndrd --mysql-password={SECRET}");
    let ran = Ran::of(
        program::program(argv(&format!("as {sysbench} prepare"))).current_dir(place.path()),
    );
    ran.exits(0);
    let output = record.display();
    let line = format!("as -o {output} {sysbench} {given} run");
    Ran::of(program::program(argv(&line)).current_dir(place.path())).exits(0);
    let text = std::fs::read_to_string(&record).unwrap();
    assert!(text.contains("--mysql-password=(hidden)") && !text.contains(SECRET));
}

#[test]
fn without_proc_the_refusal_is_about_proc_alone() {
    needs!("unshare");
    let place = place();
    random_file(&place.path().join("data"), 4 * MIB);
    let without_proc = |line: &str| {
        let program = program::program_path();
        let inside = format!("umount --lazy /proc && exec {program} {line}");
        let mut command = std::process::Command::new("unshare");
        Ran::of(
            command
                .args(["--mount", "sh", "-c", &inside])
                .current_dir(place.path()),
        )
    };
    let before = content_hash(&place.path().join("data"));
    for line in [
        "run . --rw randread --time 1s",
        "run data --rw randwrite --overwrite --time 1s",
        "run data --time 1s",
    ] {
        let ran = without_proc(line);
        ran.exits(3)
            .tells("/proc is not mounted")
            .tells_not("database");
    }
    assert_eq!(content_hash(&place.path().join("data")), before);
    without_proc("info .")
        .exits(0)
        .shows_not("0 B")
        .shows("unknown");
}

/// A message that nobody has received holds a descriptor that no table of a process shows.
#[test]
fn user_that_only_the_kernel_counts_is_refused_with_3() {
    needs!("python3");
    let place = place();
    let file = place.path().join("data");
    random_file(&file, 4 * MIB);
    let script = "import os, socket, sys; a, b = socket.socketpair(); \
                  f = os.open(sys.argv[1], os.O_RDONLY); socket.send_fds(a, [b'x'], [f]); \
                  os.close(f); print('there', flush=True); sys.stdin.readline()";
    let mut holder = std::process::Command::new("python3")
        .args(["-c", script, file.to_str().unwrap()])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = std::io::BufReader::new(holder.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut said, &mut String::new()).unwrap();
    let before = content_hash(&file);
    let ran = diskproof!(
        "run {} --rw randwrite --overwrite --time 1s",
        file.display()
    );
    ran.exits(3)
        .tells("something has it open")
        .tells_not("for writing");
    assert_eq!(content_hash(&file), before);
    drop(holder.stdin.take());
    holder.wait().unwrap();
}
