//! Cache modes on real filesystems: direct, buffered and cached.

use crate::support::{GIB, MIB, aligned, reader, scratch, write};
use diskproof_device::OpenError;
use diskproof_model::measurement::CacheUse;
use diskproof_model::plan::CachePolicy;
use diskproof_simdisk::testbed::{Disk, can_run, run};
use std::path::Path;

#[test]
fn direct_mode_is_proven_or_explained() {
    if !can_run(
        "direct_mode_is_proven_or_explained",
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
fn buffered_mode_replaces_refused_direct_mode() {
    // A large regular file on sysfs, which has no direct I/O; Linux 5.4 and later, when built with
    // type information.
    let file = Path::new("/sys/kernel/btf/vmlinux");
    if !file.exists() {
        eprintln!(
            "SKIPPED: buffered_mode_replaces_refused_direct_mode: {}",
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
fn buffered_mode_drops_the_cache_and_cached_keeps_it() {
    if !can_run(
        "buffered_mode_drops_the_cache_and_cached_keeps_it",
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
            target.is_writable(),
            target.capacity_bytes(),
            target.usable_bytes()
        ),
        (false, 0, 8 * MIB)
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
