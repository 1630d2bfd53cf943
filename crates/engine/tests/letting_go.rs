//! A finished run holds nothing: its filesystem can be unmounted at once, with every I/O engine.
#![allow(clippy::unwrap_used)] // a failed step fails the test

use diskproof_device::{Intent, OpenTarget, admit, probe};
use diskproof_engine::Session;
use diskproof_model::plan::{CachePolicy, EngineChoice, EngineKind, Layout, Stop, Workload};
use diskproof_model::progress::{Control, Progress, Watch};
use diskproof_model::stream::Streams;
use diskproof_simdisk::testbed::{Disk, can_run};

struct Patient;

impl Watch for Patient {
    fn tick(&mut self, _: &Progress<'_>) -> Control {
        Control::Continue
    }
}

const MIB: u64 = 1 << 20;

#[test]
fn filesystem_unmounts_right_after_run() {
    if !can_run(
        "filesystem_unmounts_right_after_run",
        &["losetup", "mkfs.ext4", "umount"],
    ) {
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
        let admission = admit(
            probe(disk.path()).unwrap(),
            Intent::Scratch {
                size_bytes: 8 * MIB,
            },
        )
        .unwrap();
        let mut target = OpenTarget::open(admission).unwrap();
        let workload = Workload {
            streams: Streams::with_reads(500),
            depth: 8,
            workers: 2,
            cache,
            stop: Stop {
                ops: Some(500),
                ..Stop::default()
            },
            engine: EngineChoice::Fixed(engine),
            layout: Layout::Needed,
            ..Workload::named("brief")
        };
        let seen = Session::new(7)
            .run(&workload, std::slice::from_mut(&mut target), &mut Patient)
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(seen[0].engine.used, engine);
        drop(target);
        let Disk { mount, .. } = disk;
        assert_eq!(mount.unmount_at_once(), Ok(()), "{engine:?}, {cache:?}");
    }
}
