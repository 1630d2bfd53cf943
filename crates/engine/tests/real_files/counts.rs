//! Counts, bytes and budgets of every I/O engine.

use crate::support::{
    CALLING, ENGINES, MIB, SHARED, UNIFORM, after_bytes, after_ns, after_ops, every, run, scratch,
    span, workload,
};
use diskproof_model::measurement::{OpKind, StopReason};
use diskproof_model::plan::{
    Access, BlockShare, CachePolicy, EngineChoice, EngineKind, Layout, SyncCall, SyncPolicy,
    Verify, Workload,
};
use diskproof_model::stream::Streams;

fn share(block_bytes: u32, weight: u32) -> BlockShare {
    BlockShare {
        block_bytes,
        weight,
    }
}

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
                    assert_eq!((op.errors.len(), op.short), (0, 0), "{context}");
                    assert_eq!(op.latency.count(), op.count, "{context}");
                    assert_eq!(op.series.total().ops, op.count, "{context}");
                }
                assert_eq!(seen.stopped, StopReason::Ops, "{context}");
                assert_eq!(seen.engine.used, engine);
                // A scratch file has random data.
                let has_data = seen.zero_blocks.zero == 0;
                assert!(has_data || engine == EngineKind::Null, "{context}");
            }
        }
    }
    // The scratch file has no name.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn sync_in_the_slot_of_a_read_is_no_block_of_zeros() {
    let (_dir, mut target) = scratch(8 * MIB);
    let asked = Workload {
        streams: Streams::with_reads(500),
        sync: every(8, SyncCall::Fdatasync),
        depth: 1,
        stop: after_ns(600_000_000),
        ..workload(EngineKind::Sync)
    };
    let seen = run(&asked, &mut target);
    assert!(seen.zero_blocks.sampled > 0);
    assert_eq!(seen.zero_blocks.zero, 0);
}

#[test]
fn budget_total_is_exact_for_any_number_of_workers() {
    let (_dir, mut target) = scratch(8 * MIB);
    let accesses = [
        UNIFORM,
        Access::Sequential,
        Access::Backward,
        Access::Stride {
            stride_bytes: 65536,
        },
    ];
    let each = |engine| accesses.clone().map(|access| (engine, access));
    for (engine, access) in ENGINES.into_iter().flat_map(each) {
        for (depth, workers) in SHARED {
            let asked = |stop| Workload {
                access: access.clone(),
                depth,
                workers,
                stop,
                ..workload(engine)
            };
            let context = format!("{engine:?} {access:?} {depth}x{workers}");
            let counted = run(&asked(after_ops(1237)), &mut target);
            assert_eq!(counted.ops[&OpKind::Read].count, 1237);
            assert_eq!(counted.stopped, StopReason::Ops, "{context}");
            // The last 100 bytes are no block.
            let moved = run(&asked(after_bytes(1237 * 8192 + 100)), &mut target);
            assert_eq!(moved.ops[&OpKind::Read].bytes, 1237 * 8192);
            assert_eq!(moved.stopped, StopReason::Bytes, "{context}");
        }
    }
}

#[test]
fn mixed_block_sizes_use_the_byte_budget_to_less_than_a_block() {
    let (_dir, mut target) = scratch(8 * MIB);
    let block_mix = vec![share(4096, 3), share(65536, 1)];
    for engine in ENGINES {
        for (depth, workers) in SHARED {
            let mixed = Workload {
                block_mix: block_mix.clone(),
                depth,
                workers,
                stop: after_bytes(10 * MIB),
                ..workload(engine)
            };
            let left = 10 * MIB - run(&mixed, &mut target).ops[&OpKind::Read].bytes;
            assert!(left < 65536, "{engine:?} {depth}x{workers}: {left}");
        }
    }
}

#[test]
fn ordered_pass_of_several_jobs_touches_every_block() {
    let (_dir, mut target) = scratch(8 * MIB);
    for engine in CALLING {
        let each = |access: Access| SHARED.map(|shared| (access.clone(), shared));
        let ways = [Access::Sequential, Access::Backward]
            .into_iter()
            .flat_map(each);
        for (access, (depth, workers)) in ways {
            let context = format!("{engine:?} {access:?} {depth}x{workers}");
            let pass = Workload {
                streams: Streams::with_reads(0),
                access,
                depth,
                workers,
                stop: after_bytes(8 * MIB),
                verify: Verify::Checksum,
                ..workload(engine)
            };
            let verified = run(&pass, &mut target).verify.unwrap();
            assert_eq!(verified.blocks, 8 * MIB / 8192);
            assert_eq!(verified.bad_blocks, 0, "{context}");
        }
    }
}

#[test]
fn first_pass_leaves_no_holes() {
    for engine in CALLING {
        let (_dir, mut target) = scratch(16 * MIB);
        let layout = Workload {
            streams: Streams::with_reads(0),
            access: Access::Sequential,
            block_bytes: MIB as u32,
            stop: after_bytes(16 * MIB),
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
        sync: every(1, SyncCall::Fdatasync),
        stop: after_ops(20),
        ..workload(EngineKind::Sync)
    };
    for engine in CALLING {
        let asked = Workload {
            engine: EngineChoice::Fixed(engine),
            ..commits.clone()
        };
        let seen = run(&asked, &mut target);
        let [write, sync, commit] =
            [OpKind::Write, OpKind::Sync, OpKind::Commit].map(|kind| &seen.ops[&kind]);
        let counts = [write, sync, commit].map(|op| op.count);
        assert_eq!(counts, [20; 3], "{engine:?}");
        let sum_ns = write.latency.sum_ns() + sync.latency.sum_ns();
        assert_eq!(commit.latency.sum_ns(), sum_ns, "{engine:?}");
    }
    let every_third = Workload {
        sync: every(3, SyncCall::Fsync),
        ..commits
    };
    let seen = run(&every_third, &mut target);
    assert_eq!(seen.ops[&OpKind::Write].count, 20);
    assert_eq!(seen.ops[&OpKind::Sync].count, 6);
    assert!(!seen.ops.contains_key(&OpKind::Commit));
}

#[test]
fn span_and_mixed_block_sizes_hold() {
    let (_dir, mut target) = scratch(4 * MIB);
    run(&workload(EngineKind::Sync), &mut target);
    let mixed = Workload {
        span: span(MIB, MIB),
        block_mix: vec![share(4096, 1), share(16384, 1)],
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
            assert!(accounted >= 0.99, "{engine:?}: {accounted}");
        }
    }
}

#[test]
fn many_workers_and_deep_queues_work() {
    let (_dir, mut target) = scratch(8 * MIB);
    let wide = Workload {
        workers: 64,
        depth: 8,
        stop: after_ops(6400),
        ..workload(EngineKind::Uring)
    };
    assert_eq!(run(&wide, &mut target).ops[&OpKind::Read].count, 6400);
    let deep = Workload {
        depth: 1024,
        stop: after_ops(4096),
        ..workload(EngineKind::Uring)
    };
    assert_eq!(run(&deep, &mut target).ops[&OpKind::Read].count, 4096);
}
