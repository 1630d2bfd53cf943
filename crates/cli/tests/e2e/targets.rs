//! Everything that a path may turn out to be: what can be measured is measured and left as it was;
//! what cannot is refused in a sentence that names the path, the reason and what to do.

use crate::program;
use crate::program::{
    Ran, SHORT, argv, check, check_unprivileged, content_hash, counts, diskproof, eventually,
    free_bytes, names, needs, random_file, sim_disk,
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

/// Refused with this exit code, nothing on stdout, and one line, with no promises before it, that
/// names the path and says all of `parts`.
fn assert_refused(ran: &Ran, code: i32, path: &Path, parts: &[&str]) {
    ran.exits(code).shows_nothing().tells_all(parts);
    assert_eq!(ran.err.lines().count(), 1, "{ran}");
    ran.tells_first("diskproof: error: ");
    ran.tells(path.to_str().unwrap());
}

#[test]
fn what_is_no_target_is_a_usage_error() {
    let place = place();
    let at = |name: &str| place.path().join(name);
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), fifo, Mode::RUSR, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    std::fs::write(at("file"), "x").unwrap();
    let before = names(place.path());
    for (path, parts) in [
        (at("missing"), &["(ENOENT)"][..]),
        (at("missing/deeper"), &["missing' "]),
        (at("file/deeper"), &["(ENOTDIR)"]),
        (at("dangling"), &["symlink", "nowhere"]),
        (at("fifo"), &["FIFO"]),
        (at("socket"), &["socket"]),
        ("/dev/null".into(), &["character device"]),
    ] {
        assert_refused(&check(&path, &SHORT), 2, &path, parts);
        let info = program::run(["info".as_ref(), path.as_os_str()]);
        assert_refused(&info, 2, &path, parts);
    }
    assert_eq!(names(place.path()), before);
}

#[test]
fn check_refuses_small_file_and_virtual_filesystem() {
    let place = place();
    let small = place.path().join("small");
    std::fs::write(&small, vec![1; 512 << 10]).unwrap();
    for (path, part) in [
        (small.as_path(), "too small: 512 KiB"),
        (Path::new("/dev/shm"), "tmpfs "),
        (Path::new("/proc"), "proc "),
        (Path::new("/sys"), "sysfs "),
    ] {
        let ran = check(path, &[]);
        assert_refused(&ran, 3, path, &[part]);
        // Reasons that matter only.
        ran.tells_not("free space");
        assert_eq!(ran.err.contains("too small"), path == small, "{ran}");
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
        assert_refused(&check(&path, &SHORT), 3, &path, &["PostgreSQL data"]);
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
    std::fs::create_dir(at("closed")).unwrap();
    std::fs::set_permissions(at("closed"), PermissionsExt::from_mode(0o700)).unwrap();
    for (path, code, part) in [
        (at("secret"), 3, "read it (EACCES)"),
        (place.path().to_owned(), 3, "create files in it (EACCES)"),
        (at("closed/inside"), 2, "(EACCES)"),
    ] {
        assert_refused(&check_unprivileged(&path, &[]), code, &path, &[part]);
    }
}

#[test]
fn a_filesystem_without_room_is_left_alone() {
    needs!("losetup", "mkfs.ext4", "fallocate");
    let disk = Disk::new("ext4", 4 * GIB, "rw");
    let filler = disk.path().join("filler");
    let space = || rustix::fs::statvfs(disk.path()).unwrap();
    let leave = |wanted: u64| {
        let _ = std::fs::remove_file(&filler);
        let bytes = (space().f_bavail * space().f_frsize - wanted).to_string();
        run("fallocate", &["-l", &bytes, filler.to_str().unwrap()]);
    };
    let is_as_before = |before: u64| {
        names(disk.path()) == ["filler", "lost+found"]
            && free_bytes(disk.path()).abs_diff(before) <= MIB
    };
    let reserve = space().f_blocks * space().f_frsize / 10;
    for free in [0, reserve - 16 * MIB] {
        leave(free + MIB);
        let before = free_bytes(disk.path());
        let parts = ["free space", "must stay free"];
        assert_refused(&check(disk.path(), &[]), 3, disk.path(), &parts);
        assert!(is_as_before(before));
    }
    // Hardly any room: refused unless the user wants a scratch file that small.
    leave(reserve + 40 * MIB);
    assert_refused(
        &check(disk.path(), &[]),
        3,
        disk.path(),
        &["free space", "at most 3"],
    );
    let before = free_bytes(disk.path());
    check(disk.path(), &argv("--time 1s --size 16M --json")).exits(0);
    assert!(eventually(|| is_as_before(before)));
    // Some room: a smaller scratch file, by itself.
    leave(reserve + 200 * MIB);
    let ran = check(disk.path(), &["--time", "1s", "--json"]);
    let size = ran.exits(0).record().plan.scratch_bytes().unwrap();
    assert!((190 * MIB..=200 * MIB).contains(&size), "{size}");
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
        &["mounted read-only"],
    );
    check(&file, &["--time", "1s"]).exits(0);
}

#[test]
fn files_and_devices_are_only_read() {
    needs!("losetup", "chown", "chmod");
    let place = place();
    let image = place.path().join("image");
    random_file(&image, 16 * MIB);
    let state = || {
        let modified = std::fs::metadata(&image).unwrap().modified();
        (content_hash(&image), modified.unwrap())
    };
    let before = state();
    let read = |target: &Path| {
        let ran = check(target, &["--time", "1s", "--json"]);
        let record = ran.exits(0).record();
        assert_eq!(
            (record.measurements.len(), record.plan.skipped.len()),
            (3, 5)
        );
        assert!(
            record
                .measurements
                .iter()
                .all(|m| m.data.asked.write_bytes == 0)
        );
    };
    read(&image);
    {
        let device = Loop::over(&image, &["--direct-io=on"]);
        let node = device.node.as_path();
        read(node);
        assert_refused(&check(node, &["--size", "16M"]), 2, node, &["--size"]);
        let by_link = place.path().join("link");
        symlink(node, &by_link).unwrap();
        read(&by_link);
        // Device nodes outlive loop devices, with any permissions that were set by hand.
        run("chown", &["root", node.to_str().unwrap()]);
        run("chmod", &["660", node.to_str().unwrap()]);
        let ran = check_unprivileged(node, &[]);
        assert_refused(&ran, 3, node, &["read it (EACCES)", "group"]);
    }
    assert_eq!(state(), before);
}

#[test]
fn a_user_measures_a_directory_of_his_own() {
    needs!("setpriv", "chown");
    let place = place();
    let home = place.path().join("home");
    std::fs::create_dir(&home).unwrap();
    run("chown", &["65534:65534", home.to_str().unwrap()]);
    let flags = format!("--time 1s --size 16M --json -o {}/run.json", home.display());
    let record = check_unprivileged(&home, &argv(&flags)).exits(0).record();
    assert_eq!((record.measurements.len(), record.host.uid), (8, 65534));
    // The proof needs no root.
    let mut devices = record.measurements.iter().map(|m| &m.data.device);
    assert!(devices.all(|device| device.accounted.is_some()));
    assert_eq!(names(&home), ["run.json"]);
}

#[test]
fn an_overlay_is_measured_and_left_as_it_was() {
    needs!("losetup", "mkfs.ext4");
    let disk = Disk::new("ext4", 4 * GIB, "rw");
    let at = |name: &str| disk.path().join(name).to_str().unwrap().to_owned();
    let [lower, upper, work] = ["lower", "upper", "work"].map(at);
    for directory in [&lower, &upper, &work] {
        std::fs::create_dir(directory).unwrap();
    }
    let place = place();
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    let overlay = Mount::new("overlay", "overlay", &place.path().join("merged"), &options);
    let before = free_bytes(disk.path());
    let ran = check(&overlay.point, &argv("--time 1s --size 16M --json"));
    assert_eq!(ran.exits(0).record().measurements.len(), 8);
    assert_eq!(names(&overlay.point), [""; 0]);
    assert_eq!(names(Path::new(&upper)), [""; 0]);
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
        ("ext4", "mkfs.ext4 -q -E lazy_itable_init=1,nodiscard"),
        ("xfs", "mkfs.xfs -q -f -K"),
    ] {
        let make = argv(make);
        run(make[0], &[&make[1..], &[node]].concat());
        let mount = Mount::new(kind, node, &place.path().join(kind), "rw");
        let point = mount.point.display();
        for engine in ["uring", "aio"] {
            let attempt = || {
                let load = "--rw write --bs 64k --depth 8 --ops 160 --size 64M --no-history --json";
                diskproof!("run {point} {load} --engine {engine}").record()
            };
            // On a starved machine the queue is empty now and then.
            let seen = |record: &Record| record.measurements[0].data.device.queue_depth.unwrap();
            let mut record = attempt();
            for _ in 0..2 {
                if seen(&record) <= 2.0 {
                    record = attempt();
                }
            }
            // Otherwise each write waits for the one before.
            assert!(seen(&record) > 2.0, "{kind}, {engine}: {}", seen(&record));
            assert_eq!(counts(&record.measurements[0], OpKind::Write).0, 160);
            assert_eq!(names(&mount.point).len(), usize::from(kind == "ext4"));
        }
    }
}

#[test]
fn where_direct_io_is_refused_the_figures_say_so() {
    needs!("fusermount3");
    for direct in [DirectAccess::RefusedAtOpen, DirectAccess::RefusedAtTransfer] {
        let place = place();
        let directory = SimDirectory::serve(direct, &place.path().join("mnt")).unwrap();
        let ran = check(directory.path(), &argv("--time 1s --size 16M --json"));
        let record = ran.exits(0).record();
        assert_eq!(record.measurements.len(), 8);
        for m in &record.measurements {
            // Commits go through the page cache anyway.
            if m.data.workload.name == "commit-fdatasync" {
                continue;
            }
            let caches = (m.data.cache.asked, m.data.cache.used);
            assert_eq!(
                caches,
                (CachePolicy::Direct, CachePolicy::Buffered),
                "{direct:?} {m:?}"
            );
            assert!(m.data.cache.why.is_some(), "{m:?}");
        }
        let codes = ran.findings();
        assert!(codes.iter().any(|code| code == "not-direct"), "{codes:?}");
        assert_eq!(names(directory.path()), [""; 0]);
        let page = check(directory.path(), &SHORT);
        page.shows(" buffered").shows_not(", direct");
    }
}

/// The real tools end so, too. Where the file cannot even be opened so, ioping exits with 2 and
/// hdparm with 22.
#[test]
fn tool_that_is_asked_for_direct_io_fails_where_it_is_refused() {
    needs!("fusermount3");
    for direct in [DirectAccess::RefusedAtOpen, DirectAccess::RefusedAtTransfer] {
        let place = place();
        let directory = SimDirectory::serve(direct, &place.path().join("mnt")).unwrap();
        let folder = directory.path().to_str().unwrap();
        let file = format!("{folder}/file");
        std::fs::write(&file, vec![7; 4 << 20]).unwrap();
        for (code, line) in [
            (1, format!("dd if={file} of=/dev/null bs=64k iflag=direct")),
            (
                1,
                format!("dd if=/dev/zero of={folder}/new bs=64k count=2 oflag=direct"),
            ),
            // The kernel sets O_DIRECT here, and the first request fails.
            (3, format!("ioping -D -c 1 {file}")),
            (5, format!("hdparm -t --direct {file}")),
            (
                1,
                format!("fio --name=a --filename={file} --rw=read --size=1m --direct=1"),
            ),
        ] {
            let ran = program::run(argv(&format!("as {line}")));
            ran.exits(code)
                .tells_all(&["direct I/O"])
                .shows_not("copied");
        }
        // The jobs before it are shown, and the code is still that of the tool.
        let later = format!(
            "as fio --filename={file} --size=1m --name=b --rw=read --name=a --stonewall \
             --rw=randread --direct=1"
        );
        program::run(argv(&later))
            .exits(1)
            .tells_all(&["direct I/O"])
            .shows("io=1024KiB (1049kB)");
        let buffered = format!("as dd if={file} of=/dev/null bs=64k");
        program::run(argv(&buffered)).exits(0);
        // It prints n/a* for these, and goes on.
        let fsyncs = format!("as pg_test_fsync -s 1 -f {folder}/fsyncs");
        program::run(argv(&fsyncs)).exits(0).shows("n/a*");
    }
}

#[test]
fn a_directory_is_reached_by_any_name() {
    let place = place();
    let odd = place.path().join("with space, 'quotes' and ünï");
    let link = place.path().join("link");
    std::fs::create_dir(&odd).unwrap();
    symlink(&odd, &link).unwrap();
    for path in [odd.clone(), link, odd.join("../link/.")] {
        let ran = check(&path, &argv("--time 1s --size 16M --json --read-only"));
        let record = ran.exits(0).record();
        assert_eq!(record.targets[0].path, odd.to_str().unwrap());
    }
}
