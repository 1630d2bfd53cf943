//! Verified workloads: intact blocks, damaged blocks, and what cannot be verified.

use crate::support::{CALLING, MIB, UNIFORM, after_ops, run, scratch, watched, workload};
use diskproof_device::OpenTarget;
use diskproof_model::plan::{Access, CachePolicy, EngineKind, Verify, Workload};
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

/// A job of several laps reads each of them back, and none has to have written all blocks.
#[test]
fn blocks_are_read_back_by_as_many_reads_as_laps_had() {
    let (_dir, mut target) = scratch(MIB);
    for (reads_asked, reads) in [
        (Some(300), 300),
        (Some(600), 600),
        (Some(10), 256),
        (None, 256),
    ] {
        let mut asked = sequential(Verify::Checksum);
        asked.block_bytes = 4096;
        asked.shape.threads.ordinary_pages = true;
        asked.shape.content.verified_reads = reads_asked;
        let checked = run(&asked, &mut target).verify.unwrap();
        assert_eq!(
            (checked.blocks, checked.bad_blocks),
            (256, 0),
            "{reads_asked:?}"
        );
        let read_back = checked.read_back.unwrap();
        assert_eq!(read_back.latency.count(), reads, "{reads_asked:?}");
        assert_eq!(read_back.bytes, reads * 4096, "{reads_asked:?}");
    }
}

fn verified(engine: EngineKind) -> Workload {
    Workload {
        streams: Streams::with_reads(300),
        access: UNIFORM,
        verify: Verify::Checksum,
        stop: after_ops(2000),
        ..workload(engine)
    }
}

/// Writes 256 blocks, one after the other.
fn sequential(verify: Verify) -> Workload {
    Workload {
        streams: Streams::with_reads(0),
        access: Access::Sequential,
        stop: after_ops(256),
        verify,
        ..workload(EngineKind::Uring)
    }
}

#[test]
fn verified_writes_are_read_back_intact() {
    let (_dir, mut target) = scratch(2 * MIB);
    for engine in CALLING.into_iter().chain([EngineKind::Mmap]) {
        for cache in [CachePolicy::Direct, CachePolicy::Buffered] {
            let asked = Workload {
                depth: 16,
                workers: 2,
                cache,
                ..verified(engine)
            };
            let checked = run(&asked, &mut target).verify.unwrap();
            assert!(checked.blocks > 200, "{engine:?} {cache:?}: {checked:?}");
            assert_eq!(checked.bad_blocks, 0, "{engine:?} {cache:?}: {checked:?}");
        }
    }
    // Every block of the span.
    let checked = run(&sequential(Verify::Checksum), &mut target).verify;
    assert_eq!(checked.unwrap().blocks, 256);
}

#[test]
fn verify_names_damaged_block() {
    let (_dir, mut target) = scratch(2 * MIB);
    // The first block is written at once, the last after half a second: between the two it is
    // damaged.
    let slow = Workload {
        rate: Some(500.0),
        depth: 1,
        ..sequential(Verify::Checksum)
    };
    let mut vandal = Vandal(Some(target.fd().try_clone_to_owned().unwrap()));
    let seen = watched(&slow, &mut target, &mut vandal).unwrap();
    let checked = seen.verify.unwrap();
    assert_eq!(checked.blocks, 256);
    assert_eq!(checked.bad_blocks, 1);
    assert_eq!(checked.bad.len(), 1, "{checked:?}");
    assert_eq!(checked.bad[0].offset_bytes, 0);
}

/// Writes 256 signed blocks and does not read them back.
fn sign(target: &mut OpenTarget) {
    let signed = run(&sequential(Verify::SignOnly), target);
    assert_eq!(signed.verify, None, "a later one checks");
}

fn checking(engine: EngineKind) -> Workload {
    Workload {
        streams: Streams::with_reads(1000),
        depth: 16,
        workers: 2,
        stop: after_ops(256),
        ..verified(engine)
    }
}

#[test]
fn reads_check_what_an_earlier_workload_wrote() {
    let (_dir, mut target) = scratch(2 * MIB);
    let check =
        |workload: &Workload, target: &mut OpenTarget| run(workload, target).verify.unwrap();
    let never = check(&checking(EngineKind::Sync), &mut target);
    assert_eq!(never.blocks, 256);
    assert_eq!(never.bad_blocks, 256);
    assert_eq!(never.unsigned_blocks, Some(256));
    assert_eq!(never.runs, Some(0), "{never:?}");
    sign(&mut target);
    let caches = [
        CachePolicy::Direct,
        CachePolicy::Buffered,
        CachePolicy::Cached,
    ];
    for engine in CALLING {
        for cache in caches {
            for access in [UNIFORM, Access::Sequential] {
                let asked = Workload {
                    cache,
                    access: access.clone(),
                    ..checking(engine)
                };
                let found = check(&asked, &mut target);
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
    let found = check(&checking(EngineKind::Uring), &mut target);
    assert_eq!(found.blocks, 256);
    assert_eq!(found.bad_blocks, 2);
    assert_eq!(found.wrong_blocks(), 1);
    assert_eq!((found.bad.len(), found.bad[0].offset_bytes), (1, 8192));
}
