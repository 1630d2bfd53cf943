//! Each way of making writes durable, on a simulated disk that counts the flushes it gets.
#![allow(clippy::unwrap_used)] // a failed step fails the test

mod support;

use diskproof_device::{Consent, Intent, OpenTarget, Overwriting, admit, probe};
use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::plan::{
    Access, CachePolicy, EngineKind, SyncCall, SyncPolicy, Workload, WriteFlag,
};
use diskproof_model::stream::Streams;
use diskproof_simdisk::testbed::{can_run, place};
use diskproof_simdisk::{SimDisk, Stats, spec};
use support::{MIB, after_ops, every, run, span, workload};

const COMMITS: u64 = 40;
const FLUSH_NS: u64 = 2_000_000;

/// So many commits of a page, by `depth` sessions.
fn commits(sync: SyncPolicy, depth: u32) -> Workload {
    Workload {
        streams: Streams::with_reads(0),
        access: Access::Sequential,
        depth,
        span: span(0, MIB),
        stop: after_ops(COMMITS),
        sync,
        cache: CachePolicy::Cached,
        ..workload(EngineKind::Sync)
    }
}

/// What was measured, and what the disk saw of it.
fn measure(workload: &Workload) -> (Measurement, Stats) {
    let place = place();
    let model = spec::parse("write-latency=100us,flush=2ms,channels=64").unwrap();
    let disk = SimDisk::serve(model, 16 << 20, &place.path().join("disk")).unwrap();
    let consent = Consent {
        overwriting: Overwriting::Allowed,
        ..Consent::default()
    };
    let admission = admit(probe(disk.path()).unwrap(), Intent::Overwrite(&consent)).unwrap();
    let mut target = OpenTarget::open(admission).unwrap();
    let before = disk.stats();
    let measured = run(workload, &mut target);
    let after = disk.stats();
    let stats = Stats {
        writes: after.writes - before.writes,
        flushes: after.flushes - before.flushes,
        data_flushes: after.data_flushes - before.data_flushes,
        written_bytes: after.written_bytes - before.written_bytes,
        ..after
    };
    (measured, stats)
}

#[test]
fn every_method_flushes_each_commit_once() {
    if !can_run("every_method_flushes_each_commit_once", &["fusermount3"]) {
        return;
    }
    let with_write = |flag| SyncPolicy::WithWrite { flag };
    let elsewhere = |call| SyncPolicy::OtherDescriptor { call };
    // Flushes of data only are what fdatasync and O_DSYNC ask for, and fsync and O_SYNC do not.
    let methods = [
        (every(1, SyncCall::Fdatasync), COMMITS),
        (every(1, SyncCall::Fsync), 0),
        (with_write(WriteFlag::OpenDsync), COMMITS),
        (with_write(WriteFlag::OpenSync), 0),
        (with_write(WriteFlag::RwfDsync), COMMITS),
        (elsewhere(SyncCall::Fsync), 0),
        (elsewhere(SyncCall::Fdatasync), COMMITS),
    ];
    for (sync, data_flushes) in methods {
        let (seen, stats) = measure(&commits(sync, 1));
        assert_eq!(stats.writes, COMMITS);
        assert_eq!(stats.flushes, COMMITS);
        assert_eq!(stats.data_flushes, data_flushes, "{sync:?}");
        let [write, commit] = [OpKind::Write, OpKind::Commit].map(|kind| &seen.ops[&kind]);
        assert_eq!(write.count, COMMITS);
        assert_eq!(commit.count, COMMITS);
        assert_eq!(commit.bytes, COMMITS * 8192, "{sync:?}");
        assert!(commit.latency.min_ns() >= FLUSH_NS, "{sync:?}");
        let has_syncs = seen.ops.contains_key(&OpKind::Sync);
        assert_eq!(has_syncs, !matches!(sync, SyncPolicy::WithWrite { .. }));
        if let Some(sync) = seen.ops.get(&OpKind::Sync) {
            assert!(sync.latency.min_ns() >= FLUSH_NS && sync.count == COMMITS);
        }
    }
}

#[test]
fn sessions_that_share_syncs_need_fewer() {
    if !can_run("sessions_that_share_syncs_need_fewer", &["fusermount3"]) {
        return;
    }
    let call = SyncCall::Fdatasync;
    let (alone, own) = measure(&commits(every(1, call), 8));
    let (together, shared) = measure(&commits(SyncPolicy::Shared { call }, 8));
    // How many share a sync is up to the scheduler; FUSE makes writes wait for it. The unit tests
    // of the engine fix the number.
    assert_eq!(own.flushes, COMMITS);
    let flushes = shared.flushes;
    assert!((COMMITS / 8..COMMITS).contains(&flushes), "{flushes}");
    for seen in [alone, together] {
        let commit = &seen.ops[&OpKind::Commit];
        assert_eq!(commit.count, COMMITS);
        assert!(commit.latency.min_ns() >= FLUSH_NS);
    }
}
