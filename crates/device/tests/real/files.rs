//! Regular files that --overwrite releases: whose they are, who needs them, and what they hold.

use crate::support::{MIB, Process, admitted, overwriting, run};
use diskproof_device::{Consent, Intent, OpenError, OpenTarget, admit, probe};
use diskproof_simdisk::testbed::{Loop, can_run, place};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn fill(path: &Path) {
    std::fs::write(path, vec![1; 4 * MIB as usize]).unwrap();
}

/// Refused with --overwrite for a reason with this part, and not one byte changes.
fn assert_refused(path: &Path, part: &str) {
    let before = run("sha256sum", &[path.to_str().unwrap()]);
    let reasons = overwriting(path).err().unwrap_or_default();
    assert!(
        reasons.iter().any(|reason| reason.contains(part)),
        "{}: {part}: {reasons:?}",
        path.display()
    );
    assert_eq!(run("sha256sum", &[path.to_str().unwrap()]), before);
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
