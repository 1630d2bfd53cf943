//! Each way of making writes durable, on a simulated disk that counts the flushes it gets.
#![allow(clippy::unwrap_used)] // a failed step fails the test

use diskproof_device::{Consent, Intent, OpenTarget, Overwriting, admit, probe};
use diskproof_engine::Session;
use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::plan::{
    Access, CachePolicy, EngineChoice, EngineKind, Span, Stop, SyncCall, SyncPolicy, Workload,
    WriteFlag,
};
use diskproof_model::progress::{Control, Progress, Watch};
use diskproof_model::stream::Streams;
use diskproof_simdisk::testbed::{can_run, place};
use diskproof_simdisk::{SimDisk, Stats, spec};

struct Patient;

impl Watch for Patient {
    fn tick(&mut self, _: &Progress<'_>) -> Control {
        Control::Continue
    }
}

const COMMITS: u64 = 40;
const FLUSH_NS: u64 = 2_000_000;

/// So many commits of a page, by `depth` sessions.
fn commits(sync: SyncPolicy, depth: u32) -> Workload {
    Workload {
        streams: Streams::with_reads(0),
        access: Access::Sequential,
        depth,
        span: Span {
            start_bytes: 0,
            length_bytes: Some(1 << 20),
        },
        stop: Stop {
            ops: Some(COMMITS),
            ..Stop::default()
        },
        sync,
        cache: CachePolicy::Cached,
        engine: EngineChoice::Fixed(EngineKind::Sync),
        ..Workload::named("commits")
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
    let targets = std::slice::from_mut(&mut target);
    let measured = Session::new(7).run(workload, targets, &mut Patient);
    let after = disk.stats();
    let stats = Stats {
        writes: after.writes - before.writes,
        flushes: after.flushes - before.flushes,
        data_flushes: after.data_flushes - before.data_flushes,
        written_bytes: after.written_bytes - before.written_bytes,
        ..after
    };
    (measured.unwrap().remove(0), stats)
}

#[test]
fn every_method_flushes_each_commit_once() {
    if !can_run("every_method_flushes_each_commit_once", &["fusermount3"]) {
        return;
    }
    let every = |call| SyncPolicy::Every { writes: 1, call };
    let with_write = |flag| SyncPolicy::WithWrite { flag };
    let elsewhere = |call| SyncPolicy::OtherDescriptor { call };
    // Flushes of data only are what fdatasync and O_DSYNC ask for, and fsync and O_SYNC do not.
    let methods = [
        (every(SyncCall::Fdatasync), COMMITS),
        (every(SyncCall::Fsync), 0),
        (with_write(WriteFlag::OpenDsync), COMMITS),
        (with_write(WriteFlag::OpenSync), 0),
        (with_write(WriteFlag::RwfDsync), COMMITS),
        (elsewhere(SyncCall::Fsync), 0),
        (elsewhere(SyncCall::Fdatasync), COMMITS),
    ];
    for (sync, data_flushes) in methods {
        let (seen, stats) = measure(&commits(sync, 1));
        assert_eq!(
            (stats.writes, stats.flushes, stats.data_flushes),
            (COMMITS, COMMITS, data_flushes),
            "{sync:?}"
        );
        let [write, commit] = [OpKind::Write, OpKind::Commit].map(|kind| &seen.ops[&kind]);
        assert_eq!(
            (write.count, commit.count, commit.bytes),
            (COMMITS, COMMITS, COMMITS * 8192),
            "{sync:?}"
        );
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
    let (alone, own) = measure(&commits(SyncPolicy::Every { writes: 1, call }, 8));
    let (together, shared) = measure(&commits(SyncPolicy::Shared { call }, 8));
    // How many share a sync is up to the scheduler; FUSE makes writes wait for it. The unit tests
    // of the engine fix the number.
    assert_eq!(own.flushes, COMMITS);
    assert!(
        (COMMITS / 8..COMMITS).contains(&shared.flushes),
        "{} flushes",
        shared.flushes
    );
    for seen in [alone, together] {
        let commit = &seen.ops[&OpKind::Commit];
        assert_eq!(commit.count, COMMITS);
        assert!(commit.latency.min_ns() >= FLUSH_NS);
    }
}
