//! Scratch files on real filesystems: they leave nothing behind and can be opened again.

use crate::support::{GIB, MIB, aligned, scratch, write};
use diskproof_device::{Intent, OpenTarget, WriteDurability, admit, probe};
use diskproof_model::plan::CachePolicy;
use diskproof_simdisk::testbed::{Disk, can_run, place, run};
use diskproof_simdisk::{DirectAccess, SimDirectory};
use rustix::fs::OFlags;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// A scratch file has no name, and counts what is written of it.
fn assert_written_part_is_counted(kind: &str, directory: &Path) {
    let entries_before = std::fs::read_dir(directory).unwrap().count();
    let mut target = scratch(directory, 64 * MIB);
    assert_eq!((target.is_writable(), target.is_scratch()), (true, true));
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
    assert_eq!(
        std::fs::read_dir(directory).unwrap().count(),
        entries_before,
        "{kind}: no name while open"
    );

    target.mark_written(MIB);
    assert_eq!(target.usable_bytes(), 32 * MIB, "the mark never falls");
    target.mark_written(65 * MIB);
    assert_eq!(target.usable_bytes(), 64 * MIB, "nor passes the capacity");
    drop(target);
}

/// A scratch file lengthens to its size and no further, and is cut to what is written.
fn assert_length_follows_writes(kind: &str, directory: &Path) {
    let mut target = scratch(directory, 64 * MIB);
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
}

#[test]
fn scratch_file_leaves_nothing_behind() {
    if !can_run(
        "scratch_file_leaves_nothing_behind",
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

        assert_written_part_is_counted(kind, disk.path());
        assert_length_follows_writes(kind, disk.path());

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
fn scratch_file_is_gone_after_kill() {
    // O_TMPFILE has no name at any moment; the fallback is proven in scratch.rs. What is left to
    // prove: an inode with no name goes with the last descriptor, even when the process is
    // killed.
    if !can_run("scratch_file_is_gone_after_kill", &["losetup", "mkfs.ext4"]) {
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
            "scratch::scratch_file_is_gone_after_kill",
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

/// A second description of a scratch file, which has no name, has a way with the page cache of its
/// own and the same content.
#[test]
fn scratch_file_is_reopened_on_every_filesystem() {
    if !can_run(
        "scratch_file_is_reopened_on_every_filesystem",
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
fn worker_gets_its_own_description() {
    let place = place();
    let mut target = scratch(place.path(), MIB);
    write(&mut target, 0, MIB);
    for policy in [CachePolicy::Direct, CachePolicy::Cached] {
        target.set_cache(policy).unwrap();
        let own = target.for_worker(WriteDurability::BySync).unwrap();
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
        rustix::io::pwrite(
            target.for_worker(WriteDurability::BySync).unwrap(),
            &[2; 512],
            0
        )
        .is_err(),
        "no more rights than the first"
    );
}
