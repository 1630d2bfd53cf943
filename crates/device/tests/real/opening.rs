//! Admission, opening and counters on real filesystems and devices.

use crate::support::{GIB, MIB, aligned, reader, refusal, scratch, write};
use diskproof_device::{
    Intent, OpenError, OpenTarget, ProbeError, Snapshot, admit, host_facts, probe,
    scratch_bytes_max,
};
use diskproof_model::measurement::ByteCount;
use diskproof_model::plan::CachePolicy;
use diskproof_simdisk::testbed::{Disk, Loop, Mount, can_run, place, run};
use std::path::Path;

#[test]
fn opening_refuses_target_changed_since_the_probe() {
    let place = place();
    let file = place.path().join("data");
    let fill = |bytes: u64| std::fs::write(&file, vec![1; bytes as usize]).unwrap();
    let open_after = |change: &dyn Fn()| {
        let admission = admit(probe(&file).unwrap(), Intent::Read).unwrap();
        change();
        OpenTarget::open(admission).map(|target| target.usable_bytes())
    };
    let changed = |result: Result<u64, OpenError>, part: &str| {
        let Err(OpenError::Changed { what, .. }) = result else {
            panic!("{part}: {result:?}")
        };
        assert!(what.contains(part), "{what}");
    };
    fill(2 * MIB);
    changed(
        open_after(&|| std::fs::remove_file(&file).unwrap()),
        "vanished",
    );
    fill(2 * MIB);
    changed(
        open_after(&|| fill(MIB)),
        "size changed from 2097152 to 1048576",
    );
    fill(2 * MIB);
    assert_eq!(
        open_after(&|| fill(3 * MIB)),
        Ok(2 * MIB),
        "a growing file is a live table: what was there still is"
    );
    let replace = |make: &dyn Fn()| {
        fill(2 * MIB);
        std::fs::rename(&file, place.path().join("old")).unwrap();
        std::fs::copy(place.path().join("old"), &file).unwrap();
        open_after(&|| {
            std::fs::remove_file(&file).unwrap();
            make();
        })
    };
    changed(
        replace(&|| std::fs::rename(place.path().join("old"), &file).unwrap()),
        "replaced it",
    );
    changed(
        replace(&|| std::os::unix::fs::symlink("old", &file).unwrap()),
        "symlink",
    );
    std::fs::remove_file(&file).unwrap();
    changed(
        replace(&|| drop(run("mkfifo", &[file.to_str().unwrap()]))),
        "replaced it",
    );

    let directory = place.path().join("directory");
    std::fs::create_dir(&directory).unwrap();
    let admission = admit(
        probe(&directory).unwrap(),
        Intent::Scratch { size_bytes: MIB },
    )
    .unwrap();
    std::fs::rename(&directory, place.path().join("moved")).unwrap();
    std::fs::create_dir(&directory).unwrap();
    assert!(matches!(
        OpenTarget::open(admission),
        Err(OpenError::Changed { .. })
    ));
}

#[test]
fn gate_refuses_unsuitable_directories() {
    if !can_run(
        "gate_refuses_unsuitable_directories",
        &["losetup", "mkfs.ext4"],
    ) {
        return;
    }
    let scratch = Intent::Scratch {
        size_bytes: 16 * MIB,
    };
    let place = place();
    let memory = Mount::new("tmpfs", "tmpfs", &place.path().join("memory"), "size=64M");
    assert!(refusal(&memory.point, scratch).contains(
        "tmpfs is in memory, so there is no disk to measure. Name a directory on a disk."
    ));
    assert!(refusal(Path::new("/proc/self"), scratch).contains("kernel interface, so"));

    let disk = Disk::new("ext4", 4 * GIB, "rw");
    assert!(scratch_bytes_max(&probe(disk.path()).unwrap()) > GIB);
    run(
        "mount",
        &["-o", "remount,ro", disk.path().to_str().unwrap()],
    );
    assert!(refusal(disk.path(), scratch).contains("is mounted read-only"));

    let full = Disk::new("ext4", 64 * MIB, "rw");
    let filler = full.path().join("filler");
    run("fallocate", &["-l", "46M", filler.to_str().unwrap()]);
    assert_eq!(scratch_bytes_max(&probe(full.path()).unwrap()), 0);
    assert!(refusal(full.path(), scratch).contains("not enough free space"));
    let device = probe(&full.device.node).unwrap();
    assert!(
        admit(device, scratch)
            .unwrap_err()
            .to_string()
            .contains("not a directory")
    );
    let file = place.path().join("empty");
    std::fs::write(&file, "").unwrap();
    assert!(refusal(&file, Intent::Read).contains("empty"));
}

#[test]
fn opening_reports_lack_of_inodes() {
    if !can_run("opening_reports_lack_of_inodes", &["losetup", "mkfs.ext4"]) {
        return;
    }
    let place = place();
    let device = Loop::sparse(&place.path().join("image"), 4 * GIB, &[]);
    run(
        "mkfs.ext4",
        &["-q", "-N", "16", device.node.to_str().unwrap()],
    );
    let mount = Mount::new(
        "ext4",
        device.node.to_str().unwrap(),
        &place.path().join("mnt"),
        "rw",
    );
    let admission = admit(
        probe(&mount.point).unwrap(),
        Intent::Scratch {
            size_bytes: 16 * MIB,
        },
    )
    .unwrap();
    let full = (0..1_000_000)
        .find_map(|n| std::fs::File::create(mount.point.join(n.to_string())).err())
        .unwrap();
    assert_eq!(full.raw_os_error(), Some(libc::ENOSPC));
    let error = OpenTarget::open(admission).unwrap_err();
    assert!(
        matches!(error, OpenError::NoSpace { .. }) && error.to_string().contains("inodes"),
        "{error}"
    );

    // Remounted read-only between admission and opening.
    std::fs::remove_file(mount.point.join("0")).unwrap();
    let admission = admit(
        probe(&mount.point).unwrap(),
        Intent::Scratch {
            size_bytes: 16 * MIB,
        },
    )
    .unwrap();
    run(
        "mount",
        &["-o", "remount,ro", mount.point.to_str().unwrap()],
    );
    assert!(matches!(
        OpenTarget::open(admission),
        Err(OpenError::ReadOnly { .. })
    ));
}

#[test]
fn device_counters_agree_with_reads() {
    if !can_run("device_counters_agree_with_reads", &["losetup"]) {
        return;
    }
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let image = memory.path().join("image");
    std::fs::write(&image, vec![5; 32 * MIB as usize]).unwrap();
    let device = Loop::over(&image, &[]);
    let mut target = reader(&device.node);
    assert_eq!(
        (
            target.usable_bytes(),
            target.unwritten_bytes(0, MIB),
            target.is_writable()
        ),
        (32 * MIB, None, false)
    );
    let read_once = |target: &OpenTarget| {
        let snapshot = Snapshot::take(target.identity());
        let mut memory = Vec::new();
        let block = aligned(&mut memory, MIB as usize);
        for index in 0..32 {
            assert_eq!(
                rustix::io::pread(target.fd(), &mut *block, index * MIB),
                Ok(MIB as usize)
            );
            assert!(block.iter().all(|byte| *byte == 5));
        }
        snapshot.finish(ByteCount {
            read_bytes: 32 * MIB,
            ..ByteCount::default()
        })
    };
    // The counters count everybody: who looks into all block devices reads this one, and who
    // empties the machine's page cache empties that of this one, too. What is disturbed now is
    // not disturbed for good.
    let read_all = |target: &mut OpenTarget, cache: CachePolicy, accounted: f64| {
        for _ in 0..200 {
            assert_eq!(target.set_cache(cache).unwrap().used, cache);
            let found = read_once(target);
            if found.accounted == Some(accounted) {
                return found;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("{cache:?}: never {accounted} of what was asked")
    };
    let direct = read_all(&mut target, CachePolicy::Direct, 1.0);
    assert_eq!(
        (direct.disks.as_slice(), direct.unresolved.clone()),
        ([device.name().to_owned()].as_slice(), None)
    );
    assert_eq!(
        (direct.read_bytes, direct.write_bytes, direct.accounted),
        (32 * MIB, 0, Some(1.0))
    );
    assert!(direct.read_ops >= 32 && direct.flush_ops == Some(0));

    // An empty cache is filled from the device; a full one answers instead of it, and can be
    // dropped too.
    for (cache, accounted) in [
        (CachePolicy::Buffered, 1.0),
        (CachePolicy::Cached, 0.0),
        (CachePolicy::Buffered, 1.0),
    ] {
        read_all(&mut target, cache, accounted);
    }

    let iostats = format!("/sys/block/{}/queue/iostats", device.name());
    std::fs::write(&iostats, "0").unwrap();
    let uncounted = read_once(&target);
    std::fs::write(&iostats, "1").unwrap();
    assert!(
        uncounted
            .unresolved
            .unwrap()
            .contains(&format!("echo 1 > {iostats}"))
    );
}

#[test]
fn opening_without_root_keeps_to_permissions() {
    const AS_NOBODY: &str = "DISKPROOF_TARGET_TEST_PLACE";
    if let Ok(place) = std::env::var(AS_NOBODY) {
        return probe_as_unprivileged_user(Path::new(&place));
    }
    if !can_run("opening_without_root_keeps_to_permissions", &["setpriv"]) {
        return;
    }
    let place = place();
    let at = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let set_mode = |path: &str, mode| {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap()
    };
    set_mode(&at(""), 0o755);
    for (name, mode) in [("secret", 0o600), ("public", 0o644)] {
        std::fs::write(at(name), vec![1; MIB as usize]).unwrap();
        set_mode(&at(name), mode);
    }
    std::fs::create_dir(at("closed")).unwrap();
    set_mode(&at("closed"), 0o700);
    // The user who built this may have a home that others cannot enter: run a copy.
    std::fs::copy(std::env::current_exe().unwrap(), at("test")).unwrap();
    let (variable, test) = (
        format!("{AS_NOBODY}={}", place.path().display()),
        at("test"),
    );
    let name = "opening::opening_without_root_keeps_to_permissions";
    run(
        "setpriv",
        &[
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "env",
            &variable,
            &test,
            "--exact",
            name,
        ],
    );
}

/// The same test, in a process of another user.
fn probe_as_unprivileged_user(place: &Path) {
    let at = |name: &str| place.join(name);
    assert_eq!(host_facts().uid, 65534);
    assert!(refusal(&at("secret"), Intent::Read).contains("this user may not read it (EACCES)"));
    assert!(
        refusal(place, Intent::Scratch { size_bytes: MIB })
            .contains("may not create files in it (EACCES)")
    );
    let error = probe(&at("closed/x")).unwrap_err();
    let ProbeError::NotPermitted { component, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(Path::new(component), at("closed"));
    // Without ownership access times cannot be left alone, which must not stop the rest.
    let mut target = reader(&at("public"));
    assert_eq!(
        target.set_cache(CachePolicy::Buffered).unwrap().used,
        CachePolicy::Buffered
    );
    assert!(
        !rustix::fs::fcntl_getfl(target.fd())
            .unwrap()
            .contains(rustix::fs::OFlags::NOATIME)
    );
    let seen = Snapshot::take(target.identity()).finish(ByteCount::default());
    assert!(
        seen.others_hidden > 0,
        "root's processes cannot be looked at"
    );
    let mut own = scratch(Path::new("/var/tmp"), MIB);
    write(&mut own, 0, MIB);
}
