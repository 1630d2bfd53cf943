//! Regular files that --overwrite releases: whose they are, who needs them, and what they hold.

use crate::support::{MIB, Process, admitted, checksum, overwriting, run};
use diskproof_device::{Consent, Intent, OpenError, OpenTarget, admit, probe};
use diskproof_simdisk::testbed::{Loop, can_run, place};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{PoisonError, RwLock};

fn fill(path: &Path) {
    std::fs::write(path, vec![1; 4 * MIB as usize]).unwrap();
}

/// A new mount namespace has a copy of every mount, also of those of other tests, and keeps them
/// when they are unmounted. Whoever makes one writes, whoever mounts a file that is released later
/// reads.
static NAMESPACES: RwLock<()> = RwLock::new(());

/// Refused with --overwrite for a reason with this part, and not one byte changes.
fn assert_refused(path: &Path, part: &str) {
    let before = checksum(path);
    let reasons = overwriting(path).err().unwrap_or_default();
    assert!(
        reasons.iter().any(|reason| reason.contains(part)),
        "{}: {part}: {reasons:?}",
        path.display()
    );
    assert_eq!(checksum(path), before);
}

#[test]
fn gate_opens_released_file_for_writing() {
    if !can_run("gate_opens_released_file_for_writing", &[]) {
        return;
    }
    let place = place();
    let at = |name: &str| place.path().join(name);
    fill(&at("data"));
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
    assert!(overwriting(place.path()).unwrap_err()[0].contains("it is a directory"));
}

/// A bind mount, undone at the end. `Mount` makes a directory, and a file needs a file.
struct Bind(PathBuf);

impl Bind {
    fn new(from: &Path, to: &Path) -> Self {
        run(
            "mount",
            &["--bind", from.to_str().unwrap(), to.to_str().unwrap()],
        );
        Self(to.to_owned())
    }
}

impl Drop for Bind {
    fn drop(&mut self) {
        run("umount", &[self.0.to_str().unwrap()]);
    }
}

#[test]
fn gate_follows_bind_mount_to_directories_of_servers() {
    if !can_run(
        "gate_follows_bind_mount_to_directories_of_servers",
        &["mount"],
    ) {
        return;
    }
    let _copied_nowhere = NAMESPACES.read().unwrap_or_else(PoisonError::into_inner);
    // Not in /tmp: a filesystem in memory is refused anyway.
    let place = diskproof_simdisk::testbed::place();
    let at = |name: &str| place.path().join(name);
    for folder in [
        "pg/base/5",
        "pg/global",
        "redis/appendonlydir",
        "redis/more",
        "free/in",
        "x",
    ] {
        std::fs::create_dir_all(at(folder)).unwrap();
    }
    for file in ["pg/PG_VERSION", "pg/global/pg_control"] {
        std::fs::write(at(file), "16\n").unwrap();
    }
    for (folder, part) in [
        ("pg/base/5", "PostgreSQL data directory"),
        ("redis/more", "data directory of Redis"),
        ("free/in", ""),
    ] {
        fill(&at(folder).join("data"));
        let _bind = Bind::new(&at(folder), &at("x"));
        if part.is_empty() {
            overwriting(&at("x/data")).unwrap();
            continue;
        }
        assert_refused(&at("x/data"), part);
        let identity = probe(&at("x")).unwrap();
        let scratch = admit(identity, Intent::Scratch { size_bytes: MIB });
        assert_eq!(scratch.is_err(), folder.starts_with("pg"), "{folder}");
    }
    // An overlay writes to its upper directory.
    for folder in ["low", "work"] {
        std::fs::create_dir(at(folder)).unwrap();
    }
    let shown = |name: &str| at(name).display().to_string();
    let (low, work) = (shown("low"), shown("work"));
    for (upper, part) in [("pg/base/5", "PostgreSQL data directory"), ("free/in", "")] {
        let upper = shown(upper);
        let options = format!("lowerdir={low},upperdir={upper},workdir={work}");
        run(
            "mount",
            &["-t", "overlay", "overlay", "-o", &options, &shown("x")],
        );
        let _mounted = Bind(at("x"));
        match part {
            "" => drop(overwriting(&at("x/data")).unwrap()),
            part => assert_refused(&at("x/data"), part),
        }
    }
    // A file that is mounted, by both of its names.
    std::fs::write(at("point"), "").unwrap();
    for file in ["pg/base/5/data", "free/in/data"] {
        let _bind = Bind::new(&at(file), &at("point"));
        assert_refused(&at("point"), "bind mount of a file");
        assert_refused(&at(file), "bind mount of a file");
    }
    overwriting(&at("free/in/data")).unwrap();
}

#[test]
fn gate_refuses_file_in_use() {
    if !can_run("gate_refuses_file_in_use", &["losetup"]) {
        return;
    }
    let place = place();
    let at = |name: &str| place.path().join(name);
    fill(&at("data"));
    std::fs::hard_link(at("data"), at("second")).unwrap();
    assert_refused(&at("data"), "it has 2 names (hard links)");
    std::fs::remove_file(at("second")).unwrap();
    {
        let device = Loop::over(&at("data"), &[]);
        assert_refused(
            &at("data"),
            &format!("losetup --detach {}", device.node.display()),
        );
    }
    for how in ["<", ">>"] {
        let process = Process::start(&format!(
            "exec 3{how}{}; echo there; read line",
            at("data").display()
        ));
        assert_refused(
            &at("data"),
            &format!("is held open by process {}", process.0.id()),
        );
    }
}

#[test]
fn gate_refuses_program_that_runs() {
    if !can_run("gate_refuses_program_that_runs", &[]) {
        return;
    }
    let place = place();
    let at = |name: &str| place.path().join(name);
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
    assert_refused(&at("program"), "is mapped into memory by process");
    running.kill().unwrap();
    running.wait().unwrap();
}

#[test]
fn gate_refuses_file_with_filesystem_or_database() {
    if !can_run(
        "gate_refuses_file_with_filesystem_or_database",
        &["mkfs.ext4"],
    ) {
        return;
    }
    let place = place();
    let at = |name: &str| place.path().join(name);
    std::fs::File::create(at("image"))
        .unwrap()
        .set_len(64 * MIB)
        .unwrap();
    run("mkfs.ext4", &["-q", at("image").to_str().unwrap()]);
    assert_refused(&at("image"), "it holds a signature: ext2/3/4 filesystem");
    for made in ["data.d/base/5", "wal", "space/PG_17_202406281/5"] {
        std::fs::create_dir_all(at(made)).unwrap();
    }
    std::fs::write(at("data.d/PG_VERSION"), "17\n").unwrap();
    for (file, part) in [
        ("data.d/base/5/16384", "is a PostgreSQL data directory"),
        ("wal/0000000100000000000000A1", "WAL segments"),
        ("space/PG_17_202406281/5/16385", "tablespace"),
    ] {
        fill(&at(file));
        assert_refused(&at(file), part);
    }
}

#[test]
fn gate_refuses_file_that_changed_since_admission() {
    if !can_run("gate_refuses_file_that_changed_since_admission", &[]) {
        return;
    }
    let place = place();
    let at = |name: &str| place.path().join(name);
    fill(&at("data"));
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
    fill(&at("data"));
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
}

#[test]
fn gate_names_the_flag_of_chattr() {
    if !can_run("gate_names_the_flag_of_chattr", &["chattr"]) {
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
fn gate_refuses_holes_that_would_fill_the_filesystem() {
    let place = place();
    let file = place.path().join("sparse");
    let free = probe(place.path()).unwrap().free_bytes.unwrap();
    std::fs::File::create(&file).unwrap().set_len(free).unwrap();
    let reasons = overwriting(&file).unwrap_err();
    assert!(
        reasons.len() == 1 && reasons[0].contains("holes that need space"),
        "{reasons:?}"
    );
}

/// A mount namespace in which a file is mounted, and what makes it exist.
fn gate_sees_mounted_file(place: &Path, file: &Path) {
    let point = place.join("point");
    std::fs::write(&point, "").unwrap();
    let bind = format!("mount --bind {} {}", file.display(), point.display());
    {
        let inside = format!("unshare --mount sh -c '{bind}; echo there; read line'");
        let _process = Process::start(&inside);
        assert_refused(file, "in the mount namespace of process ");
    }
    overwriting(file).unwrap();
    // No process lives in a namespace that a mount keeps.
    let (folder, kept) = (place.join("kept"), place.join("kept/namespace"));
    std::fs::create_dir(&folder).unwrap();
    let _private = Bind::new(&folder, &folder);
    run("mount", &["--make-private", folder.to_str().unwrap()]);
    std::fs::write(&kept, "").unwrap();
    let keep = format!("unshare --mount={} {bind}", kept.display());
    run("sh", &["-c", &keep]);
    let unmount = Bind(kept.clone());
    let reason = format!("in the mount namespace that {} keeps", kept.display());
    assert_refused(file, &reason);
    drop(unmount);
    overwriting(file).unwrap();
}

#[test]
fn gate_refuses_file_that_another_namespace_has_mounted() {
    let name = "gate_refuses_file_that_another_namespace_has_mounted";
    if !can_run(name, &["unshare", "mount"]) {
        return;
    }
    let _alone = NAMESPACES.write().unwrap_or_else(PoisonError::into_inner);
    let place = place();
    let file = place.path().join("data");
    fill(&file);
    gate_sees_mounted_file(place.path(), &file);
}

#[test]
fn gate_refuses_device_that_a_kept_namespace_has_mounted() {
    let name = "gate_refuses_device_that_a_kept_namespace_has_mounted";
    if !can_run(name, &["losetup", "unshare", "mount", "mkfs.ext4"]) {
        return;
    }
    let _alone = NAMESPACES.write().unwrap_or_else(PoisonError::into_inner);
    let place = place();
    let image = place.path().join("image");
    let disk = Loop::sparse(&image, 16 * MIB, &[]);
    run("mkfs.ext4", &["-q", disk.node.to_str().unwrap()]);
    let (folder, kept) = (
        place.path().join("kept"),
        place.path().join("kept/namespace"),
    );
    std::fs::create_dir(&folder).unwrap();
    let _private = Bind::new(&folder, &folder);
    run("mount", &["--make-private", folder.to_str().unwrap()]);
    std::fs::write(&kept, "").unwrap();
    let keep = format!(
        "unshare --mount={} mount {} /mnt",
        kept.display(),
        disk.node.display()
    );
    run("sh", &["-c", &keep]);
    let _unmount = Bind(kept.clone());
    let consent = crate::support::consent(disk.name());
    let reasons = admitted(&disk.node, &consent).unwrap_err();
    // A gate that looks into the namespace at this moment is a process in it.
    let expected = "is mounted at /mnt (ext4) in the mount namespace ";
    assert!(
        reasons.iter().any(|reason| reason.contains(expected)),
        "{reasons:?}"
    );
}

#[test]
fn gate_follows_mounts_upon_mounts_to_directories_of_servers() {
    let name = "gate_follows_mounts_upon_mounts_to_directories_of_servers";
    if !can_run(name, &["losetup", "mount", "mkfs.btrfs", "btrfs"]) {
        return;
    }
    let place = place();
    let at = |name: &str| place.path().join(name);
    let shown = |name: &str| at(name).display().to_string();
    for folder in ["pg/base/up", "bound", "low", "pg/base/work", "merged"] {
        std::fs::create_dir_all(at(folder)).unwrap();
    }
    std::fs::write(at("pg/PG_VERSION"), "16\n").unwrap();
    std::fs::write(at("low/lower"), vec![1; 4 * MIB as usize]).unwrap();
    {
        // An overlay whose upper directory is reached by a bind mount of a part of the server's.
        let _bind = Bind::new(&at("pg/base"), &at("bound"));
        let (low, upper, work) = (shown("low"), shown("bound/up"), shown("bound/work"));
        let options = format!("lowerdir={low},upperdir={upper},workdir={work}");
        run(
            "mount",
            &["-t", "overlay", "overlay", "-o", &options, &shown("merged")],
        );
        let _mounted = Bind(at("merged"));
        fill(&at("merged/data"));
        assert_refused(&at("merged/data"), "PostgreSQL data directory");
        // A file of the lower directory is copied to the upper one when it is written to.
        assert_refused(&at("merged/lower"), "PostgreSQL data directory");
    }
    // A subvolume within the data directory, mounted elsewhere.
    let disk = Loop::sparse(&at("image"), 128 * MIB, &[]);
    run("mkfs.btrfs", &["-q", disk.node.to_str().unwrap()]);
    for folder in ["top", "sub", "bind"] {
        std::fs::create_dir(at(folder)).unwrap();
    }
    let node = disk.node.to_str().unwrap();
    run("mount", &[node, &shown("top")]);
    let _top = Bind(at("top"));
    std::fs::create_dir(at("top/pg")).unwrap();
    std::fs::write(at("top/pg/PG_VERSION"), "16\n").unwrap();
    run("btrfs", &["subvolume", "create", &shown("top/pg/base")]);
    std::fs::create_dir(at("top/pg/base/5")).unwrap();
    fill(&at("top/pg/base/5/data"));
    fill(&at("top/free"));
    run("mount", &["-o", "subvol=pg/base", node, &shown("sub")]);
    let _sub = Bind(at("sub"));
    assert_refused(&at("sub/5/data"), "PostgreSQL data directory");
    let _bind = Bind::new(&at("sub/5"), &at("bind"));
    assert_refused(&at("bind/data"), "PostgreSQL data directory");
    overwriting(&at("top/free")).unwrap();
}

/// Another process that has the file without a descriptor of its own.
fn holder(script: &str, file: &Path) -> Process {
    let command = format!("exec python3 -c '{script}' {}", file.display());
    Process::start(&command)
}

/// Registers a file in an io_uring, and closes its descriptor.
const RING: &str = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None)
ring = libc.syscall(425, 8, (ctypes.c_char * 120)())
file = os.open(sys.argv[1], os.O_RDONLY)
assert libc.syscall(427, ring, 2, (ctypes.c_int * 1)(file), 1) == 0
os.close(file)
print("there", flush=True)
sys.stdin.readline()
"#;

/// Sends a descriptor that nobody receives.
const MESSAGE: &str = r#"
import os, socket, sys
sender, receiver = socket.socketpair()
file = os.open(sys.argv[1], os.O_RDONLY)
socket.send_fds(sender, [b"x"], [file])
os.close(file)
print("there", flush=True)
sys.stdin.readline()
"#;

#[test]
fn gate_refuses_file_and_device_in_an_io_uring() {
    if !can_run(
        "gate_refuses_file_and_device_in_an_io_uring",
        &["losetup", "python3"],
    ) {
        return;
    }
    let place = place();
    let file = place.path().join("data");
    fill(&file);
    let held = holder(RING, &file);
    assert_refused(&file, "is registered in an io_uring by process ");
    drop(held);
    let disk = Loop::sparse(&place.path().join("image"), 16 * MIB, &[]);
    let held = holder(RING, &disk.node);
    let reasons = admitted(&disk.node, &crate::support::consent(disk.name())).unwrap_err();
    let expected = format!("{} is registered in an io_uring", disk.node.display());
    assert!(
        reasons.iter().any(|reason| reason.contains(&expected)),
        "{reasons:?}"
    );
    drop(held);
}

#[test]
fn gate_refuses_file_and_names_process_with_descriptor_in_flight() {
    let name = "gate_refuses_file_and_names_process_with_descriptor_in_flight";
    if !can_run(name, &["losetup", "python3"]) {
        return;
    }
    let place = place();
    let file = place.path().join("data");
    fill(&file);
    let before = checksum(&file);
    let held = holder(MESSAGE, &file);
    // /proc shows nothing; the lease does, once the file is open.
    let opened = OpenTarget::open(overwriting(&file).unwrap());
    assert!(
        matches!(&opened, Err(OpenError::Refused(refusal)) if refusal.reasons[0].contains("lease")),
        "{opened:?}"
    );
    assert_eq!(checksum(&file), before);
    let disk = Loop::sparse(&place.path().join("image"), 16 * MIB, &[]);
    let other = holder(MESSAGE, &disk.node);
    let admission = admitted(&disk.node, &crate::support::consent(disk.name())).unwrap();
    let hint = admission.hint().unwrap_or_default();
    assert!(hint.contains("without a descriptor"), "{hint}");
    drop((held, other));
}
