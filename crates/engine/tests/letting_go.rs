//! A finished run holds nothing: its filesystem can be unmounted at once, with every I/O engine.
#![allow(clippy::unwrap_used)] // a failed step fails the test

mod support;

use diskproof_model::plan::{CachePolicy, EngineKind, Layout, Workload};
use diskproof_model::stream::Streams;
use diskproof_simdisk::testbed::{Disk, can_run};
use support::{MIB, run, scratch_in, workload};

#[test]
fn filesystem_unmounts_right_after_run() {
    let needed = ["losetup", "mkfs.ext4", "umount"];
    if !can_run("filesystem_unmounts_right_after_run", &needed) {
        return;
    }
    for (engine, cache) in [
        (EngineKind::Uring, CachePolicy::Direct),
        (EngineKind::Uring, CachePolicy::Buffered),
        (EngineKind::Aio, CachePolicy::Direct),
        (EngineKind::Sync, CachePolicy::Direct),
        (EngineKind::Mmap, CachePolicy::Buffered),
    ] {
        let disk = Disk::new("ext4", 3 << 30, "rw");
        let mut target = scratch_in(disk.path(), 8 * MIB);
        let brief = Workload {
            streams: Streams::with_reads(500),
            depth: 8,
            workers: 2,
            cache,
            layout: Layout::Needed,
            ..workload(engine)
        };
        let seen = run(&brief, &mut target);
        assert_eq!(seen.engine.used, engine);
        drop(target);
        let Disk { mount, .. } = disk;
        assert_eq!(mount.unmount_at_once(), Ok(()), "{engine:?}, {cache:?}");
    }
}
