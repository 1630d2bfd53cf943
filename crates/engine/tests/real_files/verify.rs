//! Verified workloads: intact blocks, damaged blocks, and what cannot be verified.

use crate::support::{MIB, run, scratch, workload};
use diskproof_engine::Session;
use diskproof_model::plan::{
    Access, CachePolicy, Distribution, EngineKind, Stop, Verify, Workload,
};
use diskproof_model::progress::{Control, Phase, Progress, Watch};
use diskproof_model::stream::Streams;

/// Damages the first block through the file's descriptor at the first look at the measured phase.
struct Vandal(Option<std::os::fd::OwnedFd>);

impl Vandal {
    fn damage(&mut self) {
        self.damage_at(0);
    }

    fn damage_at(&mut self, offset: u64) {
        use std::os::unix::fs::FileExt as _;
        if let Some(fd) = self.0.take() {
            // 512 bytes of rubbish go through the page cache.
            rustix::fs::fcntl_setfl(&fd, rustix::fs::OFlags::empty()).unwrap();
            let file = std::fs::File::from(fd);
            file.write_all_at(&[0xAB; 512], offset).unwrap();
            file.sync_all().unwrap();
        }
    }
}

impl Watch for Vandal {
    fn tick(&mut self, progress: &Progress<'_>) -> Control {
        // The first block must have been written, or its write would mend the damage.
        if progress.phase == Phase::Measure && progress.series.total().ops > 0 {
            self.damage();
        }
        Control::Continue
    }
}

fn verified(engine: EngineKind) -> Workload {
    let access = Access::Random {
        distribution: Distribution::Uniform,
    };
    Workload {
        streams: Streams::with_reads(300),
        access,
        verify: Verify::Checksum,
        stop: Stop {
            ops: Some(2000),
            ..Stop::default()
        },
        ..workload(engine)
    }
}

#[test]
fn verified_writes_are_read_back_intact() {
    let (_dir, mut target) = scratch(2 * MIB);
    for engine in [
        EngineKind::Uring,
        EngineKind::Aio,
        EngineKind::Sync,
        EngineKind::Mmap,
    ] {
        for cache in [CachePolicy::Direct, CachePolicy::Buffered] {
            let seen = run(
                &Workload {
                    depth: 16,
                    workers: 2,
                    cache,
                    ..verified(engine)
                },
                &mut target,
            );
            let checked = seen.verify.unwrap();
            assert!(
                checked.blocks > 200 && checked.bad_blocks == 0,
                "{engine:?} {cache:?}: {checked:?}"
            );
        }
    }
    let sequential = Workload {
        streams: Streams::with_reads(0),
        access: Access::Sequential,
        ..verified(EngineKind::Uring)
    };
    assert_eq!(
        run(&sequential, &mut target).verify.unwrap().blocks,
        256,
        "every block of the span"
    );
}

#[test]
fn verify_names_damaged_block() {
    let (_dir, mut target) = scratch(2 * MIB);
    // The first block is written at once, the last after half a second: between the two it is
    // damaged.
    let stop = Stop {
        ops: Some(256),
        ..Stop::default()
    };
    let slow = Workload {
        streams: Streams::with_reads(0),
        access: Access::Sequential,
        rate: Some(500.0),
        depth: 1,
        stop,
        ..verified(EngineKind::Uring)
    };
    let mut vandal = Vandal(Some(target.fd().try_clone_to_owned().unwrap()));
    let seen = Session::new(3)
        .run(&slow, std::slice::from_mut(&mut target), &mut vandal)
        .unwrap()
        .remove(0);
    let checked = seen.verify.unwrap();
    assert_eq!(
        (checked.blocks, checked.bad_blocks, checked.bad.len()),
        (256, 1, 1),
        "{checked:?}"
    );
    assert_eq!(checked.bad[0].offset_bytes, 0);
    assert!(
        checked.bad[0].why.contains("not written by diskproof"),
        "{checked:?}"
    );
}

/// Writes 256 signed blocks and does not read them back.
fn sign(target: &mut diskproof_device::OpenTarget) {
    let signed = Workload {
        streams: Streams::with_reads(0),
        access: Access::Sequential,
        verify: Verify::SignOnly,
        stop: Stop {
            ops: Some(256),
            ..Stop::default()
        },
        ..workload(EngineKind::Uring)
    };
    assert_eq!(run(&signed, target).verify, None, "a later one checks");
}

fn checking(engine: EngineKind) -> Workload {
    Workload {
        streams: Streams::with_reads(1000),
        depth: 16,
        workers: 2,
        stop: Stop {
            ops: Some(256),
            ..Stop::default()
        },
        ..verified(engine)
    }
}

#[test]
fn reads_check_what_an_earlier_workload_wrote() {
    let (_dir, mut target) = scratch(2 * MIB);
    let never = run(&checking(EngineKind::Sync), &mut target)
        .verify
        .unwrap();
    assert_eq!(
        (
            never.blocks,
            never.bad_blocks,
            never.unsigned_blocks,
            never.runs
        ),
        (256, 256, Some(256), Some(0)),
        "{never:?}"
    );
    sign(&mut target);
    for engine in [EngineKind::Uring, EngineKind::Aio, EngineKind::Sync] {
        for cache in [
            CachePolicy::Direct,
            CachePolicy::Buffered,
            CachePolicy::Cached,
        ] {
            for access in [checking(engine).access, Access::Sequential] {
                let check = Workload {
                    cache,
                    access: access.clone(),
                    ..checking(engine)
                };
                let found = run(&check, &mut target).verify.unwrap();
                assert_eq!(
                    (found.blocks, found.bad_blocks, found.runs),
                    (256, 0, Some(1)),
                    "{engine:?} {cache:?} {access:?}: {found:?}"
                );
            }
        }
    }
    // A block without its header looks as if it had never been written.
    let vandal = || Vandal(Some(target.fd().try_clone_to_owned().unwrap()));
    vandal().damage();
    vandal().damage_at(8192 + 1024);
    let found = run(&checking(EngineKind::Uring), &mut target)
        .verify
        .unwrap();
    assert_eq!(
        (found.blocks, found.bad_blocks, found.wrong_blocks()),
        (256, 2, 1)
    );
    assert_eq!((found.bad.len(), found.bad[0].offset_bytes), (1, 8192));
}
