//! Everything that a path may turn out to be: what can be measured is measured and left as it was;
//! what cannot is refused in a sentence that names the path, the reason and what to do.

use crate::program;
use crate::program::{
    Ran, SHORT, argv, check, check_unprivileged, content_hash, counts, eventually, free_bytes,
    names, needs, random_file, sim_disk,
};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::CachePolicy;
use diskproof_model::record::Record;
use diskproof_simdisk::testbed::{Disk, Loop, Mount, place, run};
use diskproof_simdisk::{Direct, DirectAccess, LoopDevice, SimDirectory};
use rustix::fs::Mode;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Refused with this exit code, nothing on stdout, and one line that names the path and says all of
/// `parts`.
fn assert_refused(ran: &Ran, code: i32, path: &Path, parts: &[&str]) {
    ran.exits(code).shows_nothing();
    assert_eq!(
        ran.err.lines().count(),
        1,
        "one sentence, no promises before it: {}",
        ran.err
    );
    ran.tells_first("diskproof: error: ")
        .tells(path.to_str().unwrap());
    ran.tells_all(parts);
}

#[test]
fn what_is_no_target_is_a_usage_error() {
    let place = place();
    let at = |name: &str| place.path().join(name);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("fifo"),
        rustix::fs::FileType::Fifo,
        Mode::RUSR,
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    std::fs::write(at("file"), "x").unwrap();
    let before = names(place.path());
    let cases: [(&Path, &[&str]); 7] = [
        (
            &at("missing"),
            &["does not exist (ENOENT)", "check the spelling"],
        ),
        (&at("missing/deeper"), &["'", "missing' does not exist"]),
        (
            &at("file/deeper"),
            &["is not a directory (ENOTDIR)", "check the spelling"],
        ),
        (
            &at("dangling"),
            &[
                "is a symlink to",
                "nowhere, which does not exist",
                "repair the link",
            ],
        ),
        (
            &at("fifo"),
            &[
                "it is a FIFO",
                "name a directory, a regular file or a block device",
            ],
        ),
        (&at("socket"), &["it is a socket", "name a directory"]),
        (
            Path::new("/dev/null"),
            &["it is a character device", "name a directory"],
        ),
    ];
    for (path, parts) in cases {
        assert_refused(&check(path, &SHORT), 2, path, parts);
        let info = program::run(["info".as_ref(), path.as_os_str()]);
        assert_refused(&info, 2, path, parts);
    }
    assert_eq!(names(place.path()), before);
}

#[test]
fn check_refuses_small_file_and_virtual_filesystem() {
    let place = place();
    let at = |name: &str| place.path().join(name);
    std::fs::write(at("small"), vec![1; 512 << 10]).unwrap();
    assert_refused(
        &check(&at("small"), &[]),
        3,
        &at("small"),
        &[
            "the file is too small: 512 KiB",
            "Name a larger file, or a directory",
        ],
    );
    for (path, parts) in [
        (
            "/dev/shm",
            ["tmpfs is in memory", "Name a directory on a disk"],
        ),
        (
            "/proc",
            ["proc is a kernel interface", "Name a directory on a disk"],
        ),
        (
            "/sys",
            ["sysfs is a kernel interface", "Name a directory on a disk"],
        ),
    ] {
        let ran = check(Path::new(path), &[]);
        assert_refused(&ran, 3, Path::new(path), &parts);
        ran.tells_not("free space").tells_not("too small");
    }
}

#[test]
fn check_refuses_postgres_data_directory() {
    let place = place();
    let data = place.path().join("data");
    std::fs::create_dir_all(data.join("global")).unwrap();
    std::fs::create_dir_all(data.join("base/5")).unwrap();
    std::fs::write(data.join("PG_VERSION"), "17\n").unwrap();
    std::fs::write(data.join("global/pg_control"), "x").unwrap();
    for path in [data.clone(), data.join("base/5")] {
        assert_refused(
            &check(&path, &SHORT),
            3,
            &path,
            &["is a PostgreSQL data directory", "Name another directory"],
        );
    }
    assert_eq!(names(&data), ["PG_VERSION", "base", "global"]);
}

#[test]
fn check_refuses_paths_without_permission() {
    needs!("setpriv");
    let place = place();
    let at = |name: &str| place.path().join(name);
    random_file(&at("secret"), 2 * MIB);
    std::fs::set_permissions(at("secret"), PermissionsExt::from_mode(0o600)).unwrap();
    let sentence = [
        "this user may not read it (EACCES)",
        "Run as a user who may read it",
    ];
    assert_refused(
        &check_unprivileged(&at("secret"), &[]),
        3,
        &at("secret"),
        &sentence,
    );
    let sentence = [
        "this user may not create files in it (EACCES)",
        "Name a writable directory",
    ];
    assert_refused(
        &check_unprivileged(place.path(), &SHORT),
        3,
        place.path(),
        &sentence,
    );
    std::fs::create_dir(at("closed")).unwrap();
    std::fs::set_permissions(at("closed"), PermissionsExt::from_mode(0o700)).unwrap();
    let sentence = ["may not access", "(EACCES)", "run as a user who may"];
    assert_refused(
        &check_unprivileged(&at("closed/inside"), &SHORT),
        2,
        &at("closed/inside"),
        &sentence,
    );
}

#[test]
fn a_filesystem_without_room_is_left_alone() {
    needs!("losetup", "mkfs.ext4", "fallocate");
    let disk = Disk::new("ext4", 4 * GIB, "rw");
    let filler = disk.path().join("filler");
    let leave = |wanted: u64| {
        let _ = std::fs::remove_file(&filler);
        let space = rustix::fs::statvfs(disk.path()).unwrap();
        let bytes = space.f_bavail * space.f_frsize - wanted;
        run(
            "fallocate",
            &["-l", &bytes.to_string(), filler.to_str().unwrap()],
        );
    };
    let space = rustix::fs::statvfs(disk.path()).unwrap();
    let reserve = space.f_blocks * space.f_frsize / 10;
    for free in [0, reserve - 16 * MIB] {
        leave(free + MIB);
        let before = free_bytes(disk.path());
        let sentence = ["not enough free space", "must stay free", "Free some space"];
        assert_refused(&check(disk.path(), &[]), 3, disk.path(), &sentence);
        assert!(
            names(disk.path()) == ["filler", "lost+found"]
                && free_bytes(disk.path()).abs_diff(before) <= MIB
        );
    }
    // Hardly any room: refused unless the user wants a scratch file that small.
    leave(reserve + 40 * MIB);
    assert_refused(
        &check(disk.path(), &[]),
        3,
        disk.path(),
        &["not enough free space", "Use a size of at most 3"],
    );
    let before = free_bytes(disk.path());
    let ran = check(disk.path(), &[&SHORT[..], &["--json"]].concat());
    ran.exits(0);
    assert_eq!(names(disk.path()), ["filler", "lost+found"]);
    assert!(eventually(
        || free_bytes(disk.path()).abs_diff(before) <= MIB
    ));
    // Some room: a smaller scratch file, by itself.
    leave(reserve + 200 * MIB);
    let ran = check(disk.path(), &["--time", "1s", "--json"]);
    let size = ran.record().plan.scratch_bytes.unwrap();
    assert!(
        ran.code == Some(0) && (190 * MIB..=200 * MIB).contains(&size),
        "{size}: {}",
        ran.err
    );
}

#[test]
fn a_read_only_filesystem_is_refused_but_its_files_are_read() {
    needs!("losetup", "mkfs.ext4");
    let disk = Disk::new("ext4", 3 * GIB, "rw");
    let file = disk.path().join("file");
    random_file(&file, 4 * MIB);
    run(
        "mount",
        &["-o", "remount,ro", disk.path().to_str().unwrap()],
    );
    assert_refused(
        &check(disk.path(), &SHORT),
        3,
        disk.path(),
        &[
            "is mounted read-only",
            "Name a directory on a writable filesystem",
        ],
    );
    let ran = check(&file, &["--time", "1s"]);
    ran.exits(0);
}

#[test]
fn files_and_devices_are_only_read() {
    needs!("losetup", "chown", "chmod");
    let place = place();
    let image = place.path().join("image");
    random_file(&image, 16 * MIB);
    let (hash, modified) = (
        content_hash(&image),
        std::fs::metadata(&image).unwrap().modified().unwrap(),
    );
    let ran = check(&image, &["--time", "1s", "--json"]);
    assert_eq!(
        (
            ran.code,
            ran.record().measurements.len(),
            ran.record().plan.skipped.len()
        ),
        (Some(0), 3, 5),
        "{}",
        ran.err
    );
    {
        let device = Loop::over(&image, &["--direct-io=on"]);
        let ran = check(&device.node, &["--time", "1s", "--json"]);
        assert_eq!(
            (ran.code, ran.record().measurements.len()),
            (Some(0), 3),
            "{}",
            ran.err
        );
        assert!(
            ran.record()
                .measurements
                .iter()
                .all(|m| m.asked.write_bytes == 0)
        );
        assert_refused(
            &check(&device.node, &["--size", "16M"]),
            2,
            &device.node,
            &["--size is the size of a scratch file, but"],
        );
        let by_link = place.path().join("link");
        symlink(&device.node, &by_link).unwrap();
        check(&by_link, &["--time", "1s"]).exits(0);
        // Device nodes outlive loop devices, with any permissions that were set by hand.
        run("chown", &["root", device.node.to_str().unwrap()]);
        run("chmod", &["660", device.node.to_str().unwrap()]);
        let sentence = [
            "this user may not read it (EACCES)",
            "Run as root or as a member of the device's group",
        ];
        assert_refused(
            &check_unprivileged(&device.node, &[]),
            3,
            &device.node,
            &sentence,
        );
    }
    assert_eq!(
        (
            content_hash(&image),
            std::fs::metadata(&image).unwrap().modified().unwrap()
        ),
        (hash, modified)
    );
}

#[test]
fn a_user_measures_a_directory_of_his_own() {
    needs!("setpriv", "chown");
    let place = place();
    let home = place.path().join("home");
    std::fs::create_dir(&home).unwrap();
    run("chown", &["65534:65534", home.to_str().unwrap()]);
    let saved = home.join("run.json");
    let ran = check_unprivileged(
        &home,
        &[&SHORT[..], &["--json", "-o", saved.to_str().unwrap()]].concat(),
    );
    ran.exits(0);
    let record = ran.record();
    assert_eq!((record.measurements.len(), record.host.uid), (8, 65534));
    assert!(
        record
            .measurements
            .iter()
            .all(|m| m.device.accounted.is_some()),
        "the proof needs no root"
    );
    assert_eq!(names(&home), ["run.json"]);
}

#[test]
fn an_overlay_is_measured_and_left_as_it_was() {
    needs!("losetup", "mkfs.ext4");
    let disk = Disk::new("ext4", 4 * GIB, "rw");
    let at = |name: &str| disk.path().join(name).to_str().unwrap().to_owned();
    ["lower", "upper", "work"]
        .iter()
        .for_each(|name| std::fs::create_dir(at(name)).unwrap());
    let place = place();
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        at("lower"),
        at("upper"),
        at("work")
    );
    let overlay = Mount::new("overlay", "overlay", &place.path().join("merged"), &options);
    let before = free_bytes(disk.path());
    let ran = check(&overlay.point, &[&SHORT[..], &["--json"]].concat());
    assert_eq!(
        (ran.code, ran.record().measurements.len()),
        (Some(0), 8),
        "{}",
        ran.err
    );
    assert_eq!(
        (names(&overlay.point), names(Path::new(&at("upper")))),
        (vec![], vec![])
    );
    assert!(eventually(
        || free_bytes(disk.path()).abs_diff(before) <= MIB
    ));
}

#[test]
fn a_new_file_is_written_by_the_whole_queue() {
    needs!("losetup", "mkfs.ext4", "mkfs.xfs", "fusermount3");
    // Far slower than any processor that may be wanted elsewhere.
    let place = place();
    let simulated = sim_disk(&place, "latency=50ms", 3 * GIB);
    let device = LoopDevice::attach(simulated.path(), Direct::On, 4096).unwrap();
    let node = device.path().to_str().unwrap();
    for (kind, make) in [
        (
            "ext4",
            &["mkfs.ext4", "-q", "-E", "lazy_itable_init=1,nodiscard"][..],
        ),
        ("xfs", &["mkfs.xfs", "-q", "-f", "-K"]),
    ] {
        run(make[0], &[&make[1..], &[node]].concat());
        let mount = Mount::new(kind, node, &place.path().join(kind), "rw");
        for engine in ["uring", "aio"] {
            let words = format!(
                "--rw write --bs 64k --depth 8 --ops 160 --size 64M --engine {engine} --json"
            );
            let words = argv(&words);
            let attempt = || {
                let target = &["run", mount.point.to_str().unwrap(), "--no-history"][..];
                program::run([target, &words].concat()).record()
            };
            // On a starved machine the queue is empty now and then.
            let seen = |record: &Record| record.measurements[0].device.queue_depth.unwrap();
            let mut record = attempt();
            for _ in 0..2 {
                if seen(&record) <= 2.0 {
                    record = attempt();
                }
            }
            assert!(
                seen(&record) > 2.0,
                "{kind}, {engine}: each write waited for the one before, {} in the disk's queue",
                seen(&record)
            );
            assert_eq!(
                (
                    counts(&record.measurements[0], OpKind::Write).0,
                    names(&mount.point).len()
                ),
                (160, usize::from(kind == "ext4"))
            );
        }
    }
}

#[test]
fn where_direct_io_is_refused_the_figures_say_so() {
    needs!("fusermount3");
    for direct in [DirectAccess::RefusedAtOpen, DirectAccess::RefusedAtTransfer] {
        let place = place();
        let directory = SimDirectory::serve(direct, &place.path().join("mnt")).unwrap();
        let ran = check(directory.path(), &[&SHORT[..], &["--json"]].concat());
        ran.exits(0);
        let record = ran.record();
        assert_eq!(record.measurements.len(), 8);
        // Commits go through the page cache anyway.
        let direct_wanted = record
            .measurements
            .iter()
            .filter(|m| m.workload.name != "commit-fdatasync");
        for m in direct_wanted {
            assert_eq!(
                (m.cache.asked, m.workload.cache),
                (CachePolicy::Direct, CachePolicy::Buffered),
                "{direct:?}: {}",
                m.workload.name
            );
            assert!(
                m.cache
                    .why
                    .as_ref()
                    .is_some_and(|why| why.contains("O_DIRECT") || why.contains("direct")),
                "{:?}",
                m.cache.why
            );
        }
        assert!(
            ran.findings().iter().any(|code| code == "not-direct"),
            "{:?}",
            ran.findings()
        );
        assert_eq!(names(directory.path()), [""; 0]);
        let page = check(directory.path(), &SHORT).out;
        assert!(
            page.contains(" buffered") && !page.contains(", direct"),
            "{page}"
        );
    }
}

#[test]
fn a_directory_is_reached_by_any_name() {
    let place = place();
    let odd = place.path().join("with space, 'quotes' and ünï");
    std::fs::create_dir(&odd).unwrap();
    symlink(&odd, place.path().join("link")).unwrap();
    for path in [
        odd.clone(),
        place.path().join("link"),
        odd.join("../link/."),
    ] {
        let ran = check(&path, &[&SHORT[..], &["--json", "--read-only"]].concat());
        assert_eq!(
            (ran.code, ran.record().targets[0].path.as_str()),
            (Some(0), odd.to_str().unwrap()),
            "{}",
            ran.err
        );
    }
}
