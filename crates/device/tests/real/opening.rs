//! Admission, opening, scratch files, cache policies and counters on real filesystems and devices.

use diskproof_device::{
    Intent, OpenError, OpenTarget, Snapshot, TargetAccess, admit, host_facts, probe,
    scratch_bytes_max,
};
use diskproof_model::measurement::{ByteCount, CacheUse};
use diskproof_model::plan::CachePolicy;
use diskproof_simdisk::testbed::{Disk, Loop, Mount, can_run, place, run};
use diskproof_simdisk::{DirectAccess, SimDirectory};
use rustix::fs::OFlags;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

fn scratch(directory: &Path, size_bytes: u64) -> OpenTarget {
    OpenTarget::open(admit(probe(directory).unwrap(), Intent::Scratch { size_bytes }).unwrap())
        .unwrap()
}

fn reader(path: &Path) -> OpenTarget {
    OpenTarget::open(admit(probe(path).unwrap(), Intent::Read).unwrap()).unwrap()
}

fn refusal(path: &Path, intent: Intent) -> String {
    admit(probe(path).unwrap(), intent).unwrap_err().to_string()
}

/// A vector whose first byte is aligned to a page.
fn aligned(memory: &mut Vec<u8>, length: usize) -> &mut [u8] {
    memory.resize(length + 4096, 7);
    let start = memory.as_ptr().align_offset(4096);
    &mut memory[start..start + length]
}

fn write(target: &mut OpenTarget, offset: u64, length: u64) {
    let mut memory = Vec::new();
    let written =
        rustix::io::pwrite(target.fd(), aligned(&mut memory, length as usize), offset).unwrap();
    assert_eq!(written as u64, length);
    target.mark_written(offset + length);
}

#[test]
fn scratch_files_leave_nothing_and_give_the_space_back() {
    if !can_run(
        "scratch_files_leave_nothing_and_give_the_space_back",
        &["losetup", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"],
    ) {
        return;
    }
    for kind in ["ext4", "xfs", "btrfs"] {
        let disk = Disk::new(kind, 6 * GIB, "rw");
        let entries = || std::fs::read_dir(disk.path()).unwrap().count();
        run("sync", &["-f", disk.path().to_str().unwrap()]);
        let (entries_before, free_before) =
            (entries(), probe(disk.path()).unwrap().free_bytes.unwrap());

        let mut target = scratch(disk.path(), 64 * MIB);
        assert_eq!(
            (target.access(), target.is_writable(), target.is_scratch()),
            (TargetAccess::Write, true, true)
        );
        assert_eq!(
            (target.usable_bytes(), target.capacity_bytes()),
            (0, 64 * MIB)
        );
        assert_eq!(
            target.unwritten_bytes(0, 64 * MIB),
            Some(64 * MIB),
            "{kind}: nothing is written yet"
        );
        for index in 0..32 {
            write(&mut target, index * MIB, MIB);
        }
        assert_eq!(
            (target.usable_bytes(), target.capacity_bytes()),
            (32 * MIB, 64 * MIB)
        );
        assert_eq!(
            target.unwritten_bytes(0, 32 * MIB),
            Some(0),
            "{kind}: delayed allocation does not hide data"
        );
        assert_eq!(target.unwritten_bytes(31 * MIB, 2 * MIB), Some(MIB));
        assert_eq!(entries(), entries_before, "{kind}: no name while open");

        target.mark_written(MIB);
        assert_eq!(target.usable_bytes(), 32 * MIB, "the mark never falls");
        target.mark_written(65 * MIB);
        assert_eq!(target.usable_bytes(), 64 * MIB, "nor passes the capacity");
        drop(target);

        let mut target = scratch(disk.path(), 64 * MIB);
        target.lengthen(65 * MIB);
        let length = rustix::fs::fstat(target.fd()).unwrap().st_size as u64;
        assert_eq!(
            length,
            if kind == "btrfs" { 0 } else { 64 * MIB },
            "{kind}: where writes at the end go one by one"
        );
        assert_eq!(
            (target.usable_bytes(), target.unwritten_bytes(0, 64 * MIB)),
            (0, Some(64 * MIB))
        );
        write(&mut target, 0, 4 * MIB);
        target.trim_to_written().unwrap();
        assert_eq!(
            (target.usable_bytes(), target.capacity_bytes()),
            (4 * MIB, 4 * MIB)
        );
        assert_eq!(
            rustix::fs::fstat(target.fd()).unwrap().st_size as u64,
            4 * MIB
        );
        drop(target);

        assert_eq!(entries(), entries_before);
        run("sync", &["-f", disk.path().to_str().unwrap()]);
        let free_after = probe(disk.path()).unwrap().free_bytes.unwrap();
        assert!(
            free_after + 8 * MIB >= free_before,
            "{kind}: {free_before} free before, {free_after} after"
        );
    }
}

#[test]
fn a_scratch_file_survives_no_kill() {
    // O_TMPFILE has no name at any moment; the fallback is proven in scratch.rs. What is left to
    // prove: an inode with no name goes with the last descriptor, even when the process is
    // killed.
    if !can_run("a_scratch_file_survives_no_kill", &["losetup", "mkfs.ext4"]) {
        return;
    }
    const CHILD: &str = "DISKPROOF_TARGET_TEST_DIRECTORY";
    if let Ok(directory) = std::env::var(CHILD) {
        let mut target = scratch(Path::new(&directory), 32 * MIB);
        write(&mut target, 0, 32 * MIB);
        rustix::fs::fdatasync(target.fd()).unwrap();
        std::fs::write("/proc/self/fd/1", "ready\n").unwrap();
        loop {
            std::thread::park();
        }
    }
    let disk = Disk::new("ext4", 4 * GIB, "rw");
    let free = || probe(disk.path()).unwrap().free_bytes.unwrap();
    run("sync", &["-f", disk.path().to_str().unwrap()]);
    let before = free();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "opening::a_scratch_file_survives_no_kill",
            "--nocapture",
        ])
        .env(CHILD, disk.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    assert!(lines.any(|line| line.unwrap().contains("ready")));
    assert!(free() + 32 * MIB <= before);
    child.kill().unwrap();
    child.wait().unwrap();
    run("sync", &["-f", disk.path().to_str().unwrap()]);
    assert!(free() + MIB >= before);
    assert_eq!(
        std::fs::read_dir(disk.path()).unwrap().count(),
        1,
        "lost+found alone"
    );
}

#[test]
fn direct_is_proven_or_its_lack_is_said() {
    if !can_run(
        "direct_is_proven_or_its_lack_is_said",
        &["losetup", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"],
    ) {
        return;
    }
    let direct = CacheUse {
        asked: CachePolicy::Direct,
        used: CachePolicy::Direct,
        why: None,
    };
    // Since Linux 6.15 btrfs carries direct writes of checksummed files through the page cache, but
    // waits for the disk and drops the pages.
    for kind in ["ext4", "xfs", "btrfs"] {
        let disk = Disk::new(kind, 4 * GIB, "rw");
        let mut target = scratch(disk.path(), 8 * MIB);
        assert_eq!(
            target.set_cache(CachePolicy::Direct).unwrap(),
            direct,
            "{kind}"
        );
        assert_eq!(
            rustix::fs::fstat(target.fd()).unwrap().st_size,
            0,
            "{kind}: the probing block is gone"
        );
        assert!(target.alignment_bytes() >= 512 && target.alignment_bytes() <= 4096);
        let flags = rustix::fs::fcntl_getfl(target.fd()).unwrap();
        assert!(flags.contains(rustix::fs::OFlags::DIRECT | rustix::fs::OFlags::NOATIME));

        write(&mut target, 0, MIB);
        assert_eq!(
            target.set_cache(CachePolicy::Direct).unwrap(),
            direct,
            "{kind}"
        );
        let mut memory = Vec::new();
        let block = aligned(&mut memory, MIB as usize);
        block.fill(0);
        assert_eq!(
            rustix::io::pread(target.fd(), &mut *block, 0),
            Ok(MIB as usize)
        );
        assert!(
            block.iter().all(|byte| *byte == 7),
            "{kind}: probing left the content as it was"
        );

        let cached = target.set_cache(CachePolicy::Cached).unwrap();
        assert_eq!((cached.used, cached.why), (CachePolicy::Cached, None));
        assert!(
            !rustix::fs::fcntl_getfl(target.fd())
                .unwrap()
                .contains(rustix::fs::OFlags::DIRECT)
        );
    }
    // A journal for data needs the page cache, so ext4 takes the flag and ignores it.
    let disk = Disk::new("ext4", 4 * GIB, "data=journal");
    let used = scratch(disk.path(), 8 * MIB)
        .set_cache(CachePolicy::Direct)
        .unwrap();
    assert_eq!(used.used, CachePolicy::Buffered);
    assert!(
        used.why
            .as_ref()
            .unwrap()
            .starts_with("the filesystem (ext4) "),
        "{used:?}"
    );
}

#[test]
fn a_filesystem_that_refuses_direct_is_read_buffered() {
    // A large regular file on sysfs, which has no direct I/O; Linux 5.4 and later, when built with
    // type information.
    let file = Path::new("/sys/kernel/btf/vmlinux");
    if !file.exists() {
        eprintln!(
            "SKIPPED: a_filesystem_that_refuses_direct_is_read_buffered: {}",
            file.display()
        );
        return;
    }
    let why = Some("the filesystem (sysfs) refuses O_DIRECT: EINVAL".to_owned());
    let mut target = reader(file);
    assert_eq!(
        target.set_cache(CachePolicy::Direct).unwrap(),
        CacheUse {
            asked: CachePolicy::Direct,
            used: CachePolicy::Buffered,
            why
        }
    );
    assert_eq!(
        target.alignment_bytes(),
        4096,
        "a filesystem that does not tell"
    );
    assert!(rustix::io::pread(target.fd(), &mut [0; 512], 0).is_ok());
}

#[test]
fn buffered_drops_the_cache_and_cached_keeps_it() {
    if !can_run(
        "buffered_drops_the_cache_and_cached_keeps_it",
        &["losetup", "mkfs.ext4", "fincore"],
    ) {
        return;
    }
    let disk = Disk::new("ext4", 4 * GIB, "rw");
    let file = disk.path().join("data");
    std::fs::write(&file, vec![1; 8 * MIB as usize]).unwrap();
    std::fs::File::open(&file).unwrap().sync_all().unwrap();
    let cached_bytes = |path: &Path| {
        run(
            "fincore",
            &[
                "--bytes",
                "--noheadings",
                "--output",
                "RES",
                path.to_str().unwrap(),
            ],
        )
        .parse::<u64>()
        .unwrap()
    };
    assert_eq!(cached_bytes(&file), 8 * MIB);
    let mut target = reader(&file);
    assert_eq!(
        (
            target.access(),
            target.capacity_bytes(),
            target.usable_bytes()
        ),
        (TargetAccess::Read, 0, 8 * MIB)
    );
    target.set_cache(CachePolicy::Cached).unwrap();
    target.set_cache(CachePolicy::Direct).unwrap();
    assert_eq!(
        cached_bytes(&file),
        8 * MIB,
        "another user's cache is left alone"
    );
    target.set_cache(CachePolicy::Buffered).unwrap();
    assert_eq!(cached_bytes(&file), 0);

    target.advise_sequential();
    target.advise_random();
    assert!(matches!(
        target.trim_to_written().unwrap_err(),
        OpenError::NotScratch { .. }
    ));
    target.mark_written(GIB);
    assert_eq!(
        (target.usable_bytes(), target.capacity_bytes()),
        (8 * MIB, 0)
    );
    assert_eq!(
        rustix::io::pwrite(target.fd(), b"x", 0),
        Err(rustix::io::Errno::BADF),
        "the descriptor itself cannot write"
    );
}

/// A second description of a scratch file, which has no name, has a way with the page cache of its
/// own and the same content.
#[test]
fn a_scratch_file_is_opened_again_everywhere() {
    if !can_run(
        "a_scratch_file_is_opened_again_everywhere",
        &[
            "losetup",
            "mkfs.ext4",
            "mkfs.xfs",
            "mkfs.btrfs",
            "fusermount3",
        ],
    ) {
        return;
    }
    let disks: Vec<Disk> = ["ext4", "xfs", "btrfs"]
        .map(|kind| Disk::new(kind, 6 * GIB, "rw"))
        .into();
    let here = place();
    let served = SimDirectory::serve(DirectAccess::Accepted, &here.path().join("served")).unwrap();
    for directory in disks.iter().map(Disk::path).chain([served.path()]) {
        let mut first = scratch(directory, 64 * MIB);
        write(&mut first, 0, MIB);
        let mut second = first
            .reopen()
            .unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
        assert_eq!((second.usable_bytes(), second.is_scratch()), (MIB, true));
        let direct = first.set_cache(CachePolicy::Direct).unwrap().used;
        assert_eq!(
            second.set_cache(CachePolicy::Cached).unwrap().used,
            CachePolicy::Cached
        );
        let flags = |target: &OpenTarget| {
            rustix::fs::fcntl_getfl(target.fd())
                .unwrap()
                .contains(rustix::fs::OFlags::DIRECT)
        };
        assert_eq!(
            (flags(&first), flags(&second)),
            (direct == CachePolicy::Direct, false),
            "{}",
            directory.display()
        );
        let mut memory = Vec::new();
        let block = aligned(&mut memory, 4096);
        block.fill(0x5a);
        assert_eq!(rustix::io::pwrite(second.fd(), block, 8192), Ok(4096));
        second.write_back().unwrap();
        drop(second);
        block.fill(0);
        assert_eq!(rustix::io::pread(first.fd(), &mut *block, 8192), Ok(4096));
        assert!(
            block.iter().all(|byte| *byte == 0x5a),
            "{}",
            directory.display()
        );
    }
}

#[test]
fn a_worker_gets_a_description_of_its_own_that_is_like_the_first() {
    let place = place();
    let mut target = scratch(place.path(), MIB);
    write(&mut target, 0, MIB);
    for policy in [CachePolicy::Direct, CachePolicy::Cached] {
        target.set_cache(policy).unwrap();
        let own = target.for_worker().unwrap();
        // What is no more than a memory of the opening (O_TMPFILE) is not there.
        let lasting = OFlags::RWMODE | OFlags::DIRECT | OFlags::NOATIME | OFlags::APPEND;
        let flags = |fd: BorrowedFd<'_>| rustix::fs::fcntl_getfl(fd).unwrap() & lasting;
        assert_eq!(flags(own.as_fd()), flags(target.fd()));
        // Another description: what is changed here does not show there.
        rustix::fs::fcntl_setfl(&own, flags(own.as_fd()) ^ OFlags::APPEND).unwrap();
        assert_ne!(flags(own.as_fd()), flags(target.fd()));
    }
    let reader = place.path().join("data");
    std::fs::write(&reader, vec![1; MIB as usize]).unwrap();
    let target = OpenTarget::open(admit(probe(&reader).unwrap(), Intent::Read).unwrap()).unwrap();
    assert!(
        rustix::io::pwrite(target.for_worker().unwrap(), &[2; 512], 0).is_err(),
        "no more rights than the first"
    );
}

#[test]
fn what_changed_since_the_probe_is_not_opened() {
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
        "size went from 2097152 to 1048576",
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
        "took its place",
    );
    changed(
        replace(&|| std::os::unix::fs::symlink("old", &file).unwrap()),
        "symlink",
    );
    std::fs::remove_file(&file).unwrap();
    changed(
        replace(&|| drop(run("mkfifo", &[file.to_str().unwrap()]))),
        "took its place",
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
fn unsuitable_directories_are_refused() {
    if !can_run(
        "unsuitable_directories_are_refused",
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
        "tmpfs lives in memory: there is no disk to measure. Name a directory on a disk."
    ));
    assert!(refusal(Path::new("/proc/self"), scratch).contains("window into the kernel"));

    let disk = Disk::new("ext4", 4 * GIB, "rw");
    assert!(scratch_bytes_max(&probe(disk.path()).unwrap()) > GIB);
    run(
        "mount",
        &["-o", "remount,ro", disk.path().to_str().unwrap()],
    );
    assert!(refusal(disk.path(), scratch).contains("is mounted read-only"));

    let full = Disk::new("ext4", 64 * MIB, "rw");
    assert_eq!(scratch_bytes_max(&probe(full.path()).unwrap()), 0);
    assert!(refusal(full.path(), scratch).contains("not enough free space"));
    let device = probe(&full.device.node).unwrap();
    assert!(
        admit(device, scratch)
            .unwrap_err()
            .to_string()
            .contains("not a directory")
    );
    let file = place.path().join("small");
    std::fs::write(&file, "x").unwrap();
    assert!(refusal(&file, Intent::Read).contains("too small"));
}

#[test]
fn a_filesystem_without_room_for_a_file_says_so() {
    if !can_run(
        "a_filesystem_without_room_for_a_file_says_so",
        &["losetup", "mkfs.ext4"],
    ) {
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
fn a_device_is_read_and_its_counters_agree() {
    if !can_run("a_device_is_read_and_its_counters_agree", &["losetup"]) {
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
            write_bytes: 0,
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
fn without_root_nothing_opens_that_should_not() {
    const AS_NOBODY: &str = "DISKPROOF_TARGET_TEST_PLACE";
    if let Ok(place) = std::env::var(AS_NOBODY) {
        return look_as_nobody(Path::new(&place));
    }
    if !can_run("without_root_nothing_opens_that_should_not", &["setpriv"]) {
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
    let name = "opening::without_root_nothing_opens_that_should_not";
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
fn look_as_nobody(place: &Path) {
    let at = |name: &str| place.join(name);
    assert_eq!(host_facts().uid, 65534);
    assert!(refusal(&at("secret"), Intent::Read).contains("this user may not read it (EACCES)"));
    assert!(
        refusal(place, Intent::Scratch { size_bytes: MIB })
            .contains("may not create files in it (EACCES)")
    );
    let error = probe(&at("closed/x")).unwrap_err().to_string();
    assert!(
        error.contains("may not look into") && error.contains("/closed (EACCES)"),
        "{error}"
    );
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
