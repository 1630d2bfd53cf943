//! Counts, bytes and budgets of every I/O engine.

use crate::support::{ENGINES, MIB, SHARED, run, scratch, workload};
use diskproof_model::measurement::{OpKind, StopReason};
use diskproof_model::plan::{
    Access, BlockShare, CachePolicy, Distribution, EngineChoice, EngineKind, Layout, Span, Stop,
    SyncCall, SyncPolicy, Verify, Workload,
};
use diskproof_model::stream::Streams;

#[test]
fn every_engine_does_exactly_the_requested_work() {
    let (dir, mut target) = scratch(8 * MIB);
    for engine in ENGINES {
        for read_permille in [1000, 0, 500] {
            for (depth, workers) in [(1, 1), (4, 1), (3, 2)] {
                let asked = Workload {
                    streams: Streams::with_reads(read_permille),
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
                streams: Streams::with_reads(0),
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
            streams: Streams::with_reads(0),
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
        streams: Streams::with_reads(0),
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
fn buffered_io_reaches_the_disk_and_returns_from_it() {
    let (_dir, mut target) = scratch(4 * MIB);
    for engine in [EngineKind::Uring, EngineKind::Sync] {
        let buffered = Workload {
            cache: CachePolicy::Buffered,
            streams: Streams::with_reads(0),
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
