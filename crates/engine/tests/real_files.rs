//! Every I/O engine on a real scratch file: counts, bytes, spans and limits must be exact. These
//! tests do not check speed.
#![allow(clippy::unwrap_used)] // a failed step fails the test

use diskproof_device::{Intent, OpenTarget, admit, probe};
use diskproof_engine::Session;
use diskproof_model::measurement::{Measurement, OpKind, StopReason};
use diskproof_model::plan::{
    Access, BlockShare, CachePolicy, Distribution, EngineChoice, EngineKind, Layout, Span, Stop,
    SyncCall, SyncPolicy, Verify, Workload,
};
use diskproof_model::progress::{Control, Phase, Progress, Watch};

struct Patient;

impl Watch for Patient {
    fn tick(&mut self, _: &Progress<'_>) -> Control {
        Control::Continue
    }
}

/// Ends everything at the n-th look.
struct Impatient(u32, Control);

impl Watch for Impatient {
    fn tick(&mut self, _: &Progress<'_>) -> Control {
        self.0 = self.0.saturating_sub(1);
        if self.0 == 0 {
            self.1
        } else {
            Control::Continue
        }
    }
}

const MIB: u64 = 1 << 20;

fn workload(engine: EngineKind) -> Workload {
    Workload {
        depth: 4,
        stop: Stop {
            ops: Some(500),
            ..Stop::default()
        },
        engine: EngineChoice::Fixed(engine),
        ..Workload::named("test")
    }
}

fn scratch(size_bytes: u64) -> (tempfile::TempDir, OpenTarget) {
    // Not /tmp, which may be a tmpfs: the target directory of the build is on a disk.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let admission = admit(probe(dir.path()).unwrap(), Intent::Scratch { size_bytes }).unwrap();
    (dir, OpenTarget::open(admission).unwrap())
}

fn run(workload: &Workload, target: &mut OpenTarget) -> Measurement {
    let measured = Session::new(7).run(workload, std::slice::from_mut(target), &mut Patient);
    measured.unwrap_or_else(|e| panic!("{e}")).remove(0)
}

const ENGINES: [EngineKind; 5] = [
    EngineKind::Uring,
    EngineKind::Aio,
    EngineKind::Sync,
    EngineKind::Mmap,
    EngineKind::Null,
];

#[test]
fn every_engine_does_exactly_the_requested_work() {
    let (dir, mut target) = scratch(8 * MIB);
    for engine in ENGINES {
        for read_permille in [1000, 0, 500] {
            for (depth, workers) in [(1, 1), (4, 1), (3, 2)] {
                let asked = Workload {
                    read_permille,
                    depth,
                    workers,
                    ..workload(engine)
                };
                let seen = run(&asked, &mut target);
                let count = |kind| seen.ops.get(&kind).map_or(0, |op| op.count);
                let context = format!("{engine:?} {read_permille} {depth}x{workers}");
                assert_eq!(count(OpKind::Read) + count(OpKind::Write), 500, "{context}");
                assert_eq!(seen.asked.total(), 500 * 8192, "{context}");
                assert_eq!(count(OpKind::Read) > 0, read_permille > 0, "{context}");
                assert_eq!(count(OpKind::Write) > 0, read_permille < 1000, "{context}");
                for op in seen.ops.values() {
                    assert!(
                        op.errors.is_empty() && op.short == 0,
                        "{context}: {:?}",
                        op.errors
                    );
                    assert_eq!(op.latency.count(), op.count, "{context}");
                    assert_eq!(op.series.total().ops, op.count, "{context}");
                }
                assert_eq!(seen.stopped, StopReason::Ops, "{context}");
                assert_eq!(seen.engine.used, engine);
                assert!(
                    seen.zero_blocks.zero == 0 || engine == EngineKind::Null,
                    "{context}: read zeros from a scratch file of random data"
                );
            }
        }
    }
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        0,
        "the scratch file has no name"
    );
}

/// Ways to share a total between threads: queue depth and jobs.
const SHARED: [(u32, u32); 3] = [(1, 3), (4, 3), (3, 5)];

#[test]
fn budget_total_is_exact_for_any_number_of_workers() {
    let (_dir, mut target) = scratch(8 * MIB);
    let accesses = [
        Access::Random {
            distribution: Distribution::Uniform,
        },
        Access::Sequential,
        Access::Backward,
        Access::Stride {
            stride_bytes: 65536,
        },
    ];
    for (engine, access) in ENGINES
        .into_iter()
        .flat_map(|engine| accesses.clone().map(|access| (engine, access)))
    {
        for (depth, workers) in SHARED {
            let asked = |stop| Workload {
                access: access.clone(),
                depth,
                workers,
                stop,
                ..workload(engine)
            };
            let context = format!("{engine:?} {access:?} {depth}x{workers}");
            let counted = run(
                &asked(Stop {
                    ops: Some(1237),
                    ..Stop::default()
                }),
                &mut target,
            );
            assert_eq!(
                (counted.ops[&OpKind::Read].count, counted.stopped),
                (1237, StopReason::Ops),
                "{context}"
            );
            // The last 100 bytes are no block.
            let moved = run(
                &asked(Stop {
                    bytes: Some(1237 * 8192 + 100),
                    ..Stop::default()
                }),
                &mut target,
            );
            assert_eq!(
                (moved.ops[&OpKind::Read].bytes, moved.stopped),
                (1237 * 8192, StopReason::Bytes),
                "{context}"
            );
        }
    }
}

#[test]
fn mixed_block_sizes_use_the_byte_budget_to_less_than_a_block() {
    let (_dir, mut target) = scratch(8 * MIB);
    let block_mix = vec![
        BlockShare {
            block_bytes: 4096,
            weight: 3,
        },
        BlockShare {
            block_bytes: 65536,
            weight: 1,
        },
    ];
    for engine in ENGINES {
        for (depth, workers) in SHARED {
            let stop = Stop {
                bytes: Some(10 * MIB),
                ..Stop::default()
            };
            let mixed = Workload {
                block_mix: block_mix.clone(),
                depth,
                workers,
                stop,
                ..workload(engine)
            };
            let seen = run(&mixed, &mut target);
            let bytes = seen.ops[&OpKind::Read].bytes;
            assert!(
                bytes <= 10 * MIB && bytes > 10 * MIB - 65536,
                "{engine:?} {depth}x{workers}: {bytes}"
            );
        }
    }
}

#[test]
fn ordered_pass_of_several_jobs_touches_every_block() {
    let (_dir, mut target) = scratch(8 * MIB);
    for engine in [EngineKind::Uring, EngineKind::Aio, EngineKind::Sync] {
        for (access, (depth, workers)) in [Access::Sequential, Access::Backward]
            .into_iter()
            .flat_map(|a| SHARED.map(|s| (a.clone(), s)))
        {
            let stop = Stop {
                bytes: Some(8 * MIB),
                ..Stop::default()
            };
            let context = format!("{engine:?} {access:?} {depth}x{workers}");
            let pass = Workload {
                read_permille: 0,
                access,
                depth,
                workers,
                stop,
                verify: Verify::Checksum,
                ..workload(engine)
            };
            let verified = run(&pass, &mut target).verify.unwrap();
            assert_eq!(
                (verified.blocks, verified.bad_blocks),
                (8 * MIB / 8192, 0),
                "{context}"
            );
        }
    }
}

#[test]
fn first_pass_leaves_no_holes() {
    for engine in [EngineKind::Uring, EngineKind::Aio, EngineKind::Sync] {
        let (_dir, mut target) = scratch(16 * MIB);
        let stop = Stop {
            bytes: Some(16 * MIB),
            ..Stop::default()
        };
        let layout = Workload {
            read_permille: 0,
            access: Access::Sequential,
            block_bytes: MIB as u32,
            stop,
            layout: Layout::Provides,
            sync: SyncPolicy::AtEnd,
            ..workload(engine)
        };
        let seen = run(&layout, &mut target);
        assert_eq!(seen.ops[&OpKind::Write].bytes, 16 * MIB);
        assert_eq!(seen.ops[&OpKind::Sync].count, 1);
        assert_eq!(target.usable_bytes(), 16 * MIB);
        assert_eq!(target.unwritten_bytes(0, 16 * MIB), Some(0), "{engine:?}");
    }
}

#[test]
fn reading_workload_lays_the_file_out_first() {
    let (_dir, mut target) = scratch(4 * MIB);
    let seen = run(&workload(EngineKind::Sync), &mut target);
    assert_eq!((seen.unwritten_bytes, seen.span_bytes), (Some(0), 4 * MIB));
    assert!(seen.zero_blocks.zero == 0);
}

#[test]
fn commit_is_one_write_and_one_sync() {
    let (_dir, mut target) = scratch(4 * MIB);
    let commits = Workload {
        read_permille: 0,
        access: Access::Sequential,
        depth: 1,
        sync: SyncPolicy::Every {
            writes: 1,
            call: SyncCall::Fdatasync,
        },
        stop: Stop {
            ops: Some(20),
            ..Stop::default()
        },
        ..workload(EngineKind::Sync)
    };
    for engine in [EngineKind::Sync, EngineKind::Uring, EngineKind::Aio] {
        let seen = run(
            &Workload {
                engine: EngineChoice::Fixed(engine),
                ..commits.clone()
            },
            &mut target,
        );
        let [write, sync, commit] =
            [OpKind::Write, OpKind::Sync, OpKind::Commit].map(|kind| &seen.ops[&kind]);
        assert_eq!(
            [write.count, sync.count, commit.count],
            [20, 20, 20],
            "{engine:?}"
        );
        assert!(commit.latency.mean_ns() >= sync.latency.mean_ns());
        assert_eq!(
            commit.latency.sum_ns(),
            write.latency.sum_ns() + sync.latency.sum_ns(),
            "{engine:?}"
        );
    }
    let every_third = Workload {
        sync: SyncPolicy::Every {
            writes: 3,
            call: SyncCall::Fsync,
        },
        ..commits
    };
    let seen = run(&every_third, &mut target);
    assert_eq!(
        (
            seen.ops[&OpKind::Write].count,
            seen.ops[&OpKind::Sync].count
        ),
        (20, 6)
    );
    assert!(!seen.ops.contains_key(&OpKind::Commit));
}

#[test]
fn span_and_mixed_block_sizes_hold() {
    let (_dir, mut target) = scratch(4 * MIB);
    run(&workload(EngineKind::Sync), &mut target);
    let span = Span {
        start_bytes: MIB,
        length_bytes: Some(MIB),
    };
    let mixed = Workload {
        span,
        block_mix: vec![
            BlockShare {
                block_bytes: 4096,
                weight: 1,
            },
            BlockShare {
                block_bytes: 16384,
                weight: 1,
            },
        ],
        ..workload(EngineKind::Uring)
    };
    let seen = run(&mixed, &mut target);
    assert_eq!((seen.span_start_bytes, seen.span_bytes), (MIB, MIB));
    let read = &seen.ops[&OpKind::Read];
    let large = (read.bytes - read.count * 4096) / (16384 - 4096);
    assert_eq!(read.bytes, read.count * 4096 + large * (16384 - 4096));
    assert!((200..300).contains(&large), "{large}");
}

#[test]
fn watcher_ends_a_workload_with_enough_or_interrupt() {
    let (_dir, mut target) = scratch(4 * MIB);
    let endless = Workload {
        stop: Stop::default(),
        ..workload(EngineKind::Uring)
    };
    for (control, reason) in [
        (Control::Enough, StopReason::Precision),
        (Control::Interrupt, StopReason::Interrupted),
    ] {
        let seen = Session::new(1)
            .run(
                &endless,
                std::slice::from_mut(&mut target),
                &mut Impatient(8, control),
            )
            .unwrap()
            .remove(0);
        assert_eq!(seen.stopped, reason);
        assert!(seen.ops[&OpKind::Read].count > 0);
    }
}

#[test]
fn open_loop_keeps_rate_and_counts_from_intended_start() {
    let (_dir, mut target) = scratch(4 * MIB);
    for engine in [EngineKind::Uring, EngineKind::Sync, EngineKind::Aio] {
        let stop = Stop {
            time_ns: Some(400_000_000),
            ..Stop::default()
        };
        let paced = Workload {
            rate: Some(500.0),
            stop,
            ..workload(engine)
        };
        let seen = run(&paced, &mut target);
        let read = &seen.ops[&OpKind::Read];
        // Never more than the schedule allows; fewer only when the target stalls.
        assert!(read.count <= 201, "{engine:?}: {}", read.count);
        let intended = read.latency_intended.as_ref().unwrap();
        // Where the machine held the worker up to the end, starts that were due and not made count
        // from their time all the same.
        let never_made = intended.count() - read.latency.count();
        assert!(
            never_made <= seen.missed_starts.unwrap(),
            "{engine:?}: {never_made} of {:?}",
            seen.missed_starts
        );
        assert!(intended.sum_ns() >= read.latency.sum_ns(), "{engine:?}");
    }
}

#[test]
fn buffered_io_reaches_the_disk_and_returns_from_it() {
    let (_dir, mut target) = scratch(4 * MIB);
    for engine in [EngineKind::Uring, EngineKind::Sync] {
        let buffered = Workload {
            cache: CachePolicy::Buffered,
            read_permille: 0,
            ..workload(engine)
        };
        let seen = run(&buffered, &mut target);
        assert_eq!(seen.cache.used, CachePolicy::Buffered);
        assert_eq!(seen.ops[&OpKind::Write].count, 500);
        if let Some(accounted) = seen.device.accounted {
            assert!(
                accounted >= 0.99,
                "{engine:?}: the disks saw {accounted} of what was written"
            );
        }
    }
}

#[test]
fn early_end_of_file_is_counted() {
    // A file that shrinks under our hands: the span was taken before.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("data");
    std::fs::write(&path, vec![1u8; 4 * MIB as usize]).unwrap();
    let mut target = OpenTarget::open(admit(probe(&path).unwrap(), Intent::Read).unwrap()).unwrap();
    std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(MIB)
        .unwrap();
    let seen = run(&workload(EngineKind::Sync), &mut target);
    let read = &seen.ops[&OpKind::Read];
    assert_eq!(read.count + read.errors["EOF"], 500);
    let mapped = run(&workload(EngineKind::Mmap), &mut target);
    assert!(
        mapped.ops[&OpKind::Read].errors["EIO"] > 0,
        "beyond the end a mapping gives SIGBUS; it must be an error instead"
    );
}

#[test]
fn read_only_target_is_never_written() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("data");
    std::fs::write(&path, vec![1u8; 4 * MIB as usize]).unwrap();
    let mut target = OpenTarget::open(admit(probe(&path).unwrap(), Intent::Read).unwrap()).unwrap();
    let writing = Workload {
        read_permille: 500,
        ..workload(EngineKind::Sync)
    };
    let error = Session::new(1)
        .run(&writing, std::slice::from_mut(&mut target), &mut Patient)
        .unwrap_err();
    assert!(
        error.to_string().contains("open for reading only"),
        "{error}"
    );
}

#[test]
fn unaligned_direct_block_is_refused_with_the_unit() {
    let (_dir, mut target) = scratch(4 * MIB);
    let odd = Workload {
        block_bytes: 1000,
        ..workload(EngineKind::Sync)
    };
    let error = Session::new(1)
        .run(&odd, std::slice::from_mut(&mut target), &mut Patient)
        .unwrap_err();
    assert!(error.to_string().contains("not a multiple of"), "{error}");
}

#[test]
fn ordered_workload_needs_a_block_for_each_part() {
    let (_dir, mut target) = scratch(4 * MIB);
    run(&workload(EngineKind::Sync), &mut target);
    // Eight blocks.
    let span = Span {
        start_bytes: 0,
        length_bytes: Some(8 * 8192),
    };
    let stride = Access::Stride {
        stride_bytes: 16384,
    };
    for (engine, access, too_much, fits) in [
        (EngineKind::Sync, Access::Backward, (16, 1), (8, 1)),
        (EngineKind::Mmap, stride, (5, 2), (4, 2)),
        (EngineKind::Uring, Access::Backward, (16, 9), (16, 8)),
        (EngineKind::Uring, Access::Sequential, (1, 9), (1, 8)),
    ] {
        let asked = |(depth, workers)| Workload {
            span,
            access: access.clone(),
            depth,
            workers,
            ..workload(engine)
        };
        let error = Session::new(1)
            .run(
                &asked(too_much),
                std::slice::from_mut(&mut target),
                &mut Patient,
            )
            .unwrap_err();
        assert!(
            error.to_string().contains("divides the span into"),
            "{engine:?}: {error}"
        );
        let seen = run(&asked(fits), &mut target);
        assert_eq!(
            (
                seen.ops[&OpKind::Read].count,
                seen.ops[&OpKind::Read].errors.len()
            ),
            (500, 0),
            "{engine:?}"
        );
    }
}

#[test]
fn many_workers_and_deep_queues_work() {
    let (_dir, mut target) = scratch(8 * MIB);
    let wide = Workload {
        workers: 64,
        depth: 8,
        stop: Stop {
            ops: Some(6400),
            ..Stop::default()
        },
        ..workload(EngineKind::Uring)
    };
    assert_eq!(run(&wide, &mut target).ops[&OpKind::Read].count, 6400);
    let deep = Workload {
        depth: 1024,
        stop: Stop {
            ops: Some(4096),
            ..Stop::default()
        },
        ..workload(EngineKind::Uring)
    };
    assert_eq!(run(&deep, &mut target).ops[&OpKind::Read].count, 4096);
}

/// Damages the first block through the file's descriptor at the first look at the measured phase.
struct Vandal(Option<std::os::fd::OwnedFd>);

impl Watch for Vandal {
    fn tick(&mut self, progress: &Progress<'_>) -> Control {
        use std::os::unix::fs::FileExt as _;
        if progress.phase == Phase::Measure
            && let Some(fd) = self.0.take()
        {
            // 512 bytes of rubbish go through the page cache.
            rustix::fs::fcntl_setfl(&fd, rustix::fs::OFlags::empty()).unwrap();
            let file = std::fs::File::from(fd);
            file.write_all_at(&[0xAB; 512], 0).unwrap();
            file.sync_all().unwrap();
        }
        Control::Continue
    }
}

fn verified(engine: EngineKind) -> Workload {
    let access = Access::Random {
        distribution: Distribution::Uniform,
    };
    Workload {
        read_permille: 300,
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
        read_permille: 0,
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
        read_permille: 0,
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
        checked.bad[0].why.contains("not a block of ours"),
        "{checked:?}"
    );
}

#[test]
fn unverifiable_workload_is_refused_before_it_writes() {
    let (_dir, mut target) = scratch(2 * MIB);
    let mixed = Workload {
        block_mix: vec![BlockShare {
            block_bytes: 4096,
            weight: 1,
        }],
        ..verified(EngineKind::Sync)
    };
    let error = Session::new(1)
        .run(&mixed, std::slice::from_mut(&mut target), &mut Patient)
        .unwrap_err();
    assert!(error.to_string().contains("cannot be verified"), "{error}");
}

#[test]
fn targets_on_one_disk_are_compared_with_its_counters_together() {
    let ((_a, one), (_b, two)) = (scratch(4 * MIB), scratch(4 * MIB));
    let mut targets = [one, two];
    let workload = Workload {
        stop: Stop {
            ops: Some(3000),
            ..Stop::default()
        },
        ..workload(EngineKind::Uring)
    };
    let seen = Session::new(1)
        .run(&workload, &mut targets, &mut Patient)
        .unwrap();
    for measurement in &seen {
        assert_eq!(measurement.ops[&OpKind::Read].count, 3000);
        assert_eq!(measurement.asked.read_bytes, 2 * 3000 * 8192);
        if let Some(accounted) = measurement.device.accounted {
            assert!(accounted >= 0.99, "{accounted}");
        }
    }
}

#[test]
fn every_target_gets_the_whole_rate() {
    let ((_a, one), (_b, two)) = (scratch(4 * MIB), scratch(4 * MIB));
    let stop = Stop {
        time_ns: Some(500_000_000),
        ..Stop::default()
    };
    let paced = Workload {
        rate: Some(400.0),
        stop,
        ..workload(EngineKind::Uring)
    };
    let seen = Session::new(1)
        .run(&paced, &mut [one, two], &mut Patient)
        .unwrap();
    // 200 starts fall into half a second; of a shared schedule each would get about 100. What a
    // slow moment holds up is started later.
    for measurement in &seen {
        let count = measurement.ops[&OpKind::Read].count;
        assert!((130..=201).contains(&count), "{count}");
    }
}
