//! Workloads that run at the same time on a real scratch file: they share one window and one end,
//! and each keeps its own page cache mode. These tests do not check speed.
#![allow(clippy::unwrap_used)] // a failed step fails the test

use diskproof_device::{Intent, OpenTarget, admit, probe};
use diskproof_engine::{RunError, Session};
use diskproof_model::group::Group;
use diskproof_model::measurement::{Measurement, OpKind, StopReason};
use diskproof_model::plan::{
    Access, CachePolicy, EngineChoice, EngineKind, Span, Start, Stop, SyncCall, SyncPolicy, Verify,
    Workload,
};
use diskproof_model::progress::{Control, Progress, Watch};
use diskproof_model::stream::Streams;

const MIB: u64 = 1 << 20;
const CELL_NS: u64 = 10_000_000;

/// Says of each workload what was set for it, from the second look on.
struct Watcher(Vec<(&'static str, Control)>, u32);

impl Watch for Watcher {
    fn tick(&mut self, progress: &Progress<'_>) -> Control {
        self.1 += 1;
        let said = self
            .0
            .iter()
            .find(|(name, _)| *name == progress.name)
            .filter(|_| self.1 > 4);
        said.map_or(Control::Continue, |(_, control)| *control)
    }
}

fn patient() -> Watcher {
    Watcher(Vec::new(), 0)
}

fn scratch(size_bytes: u64) -> (tempfile::TempDir, OpenTarget) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let admission = admit(probe(dir.path()).unwrap(), Intent::Scratch { size_bytes }).unwrap();
    (dir, OpenTarget::open(admission).unwrap())
}

fn reads(name: &str, stop: Stop) -> Workload {
    let span = Span {
        start_bytes: 4 * MIB,
        length_bytes: None,
    };
    Workload {
        depth: 4,
        span,
        stop,
        engine: EngineChoice::Fixed(EngineKind::Uring),
        start: Start::WithPrevious,
        ..Workload::named(name)
    }
}

fn commits(name: &str, stop: Stop) -> Workload {
    Workload {
        streams: Streams::with_reads(0),
        access: Access::Sequential,
        cache: CachePolicy::Cached,
        span: Span {
            start_bytes: 0,
            length_bytes: Some(4 * MIB),
        },
        sync: SyncPolicy::Every {
            writes: 1,
            call: SyncCall::Fdatasync,
        },
        stop,
        ..Workload::named(name)
    }
}

fn time(ns: u64) -> Stop {
    Stop {
        time_ns: Some(ns),
        ..Stop::default()
    }
}

fn ops(count: u64) -> Stop {
    Stop {
        ops: Some(count),
        ..Stop::default()
    }
}

fn together(
    workloads: &[Workload],
    targets: &mut [OpenTarget],
    watch: &mut Watcher,
) -> Result<Vec<Measurement>, RunError> {
    Session::new(7).run_together(
        Group {
            first: 0,
            workloads,
        },
        targets,
        watch,
    )
}

fn count(m: &Measurement, kind: OpKind) -> u64 {
    m.ops.get(&kind).map_or(0, |op| op.count)
}

#[test]
fn workloads_share_the_window_and_keep_their_page_cache_policy() {
    let (dir, mut target) = scratch(8 * MIB);
    let commits = Workload {
        warmup_ns: 20_000_000,
        ..commits("commits", time(400_000_000))
    };
    let reads = Workload {
        warmup_ns: 100_000_000,
        ..reads("reads", Stop::default())
    };
    let seen = together(
        &[commits, reads],
        std::slice::from_mut(&mut target),
        &mut patient(),
    )
    .unwrap();
    let [commits, reads] = &seen[..] else {
        panic!("{} measurements", seen.len())
    };
    assert_eq!(
        (commits.start_ns, commits.wall_ns),
        (reads.start_ns, reads.wall_ns),
        "one window"
    );
    assert_eq!(reads.wall_ns, 400_000_000, "its end is the other's");
    assert_eq!(
        (commits.stopped, reads.stopped),
        (StopReason::Time, StopReason::Time)
    );
    assert_eq!(
        (commits.cache.used, reads.cache.used),
        (CachePolicy::Cached, CachePolicy::Direct)
    );
    assert_eq!(
        (commits.asked, &commits.device),
        (reads.asked, &reads.device),
        "the disk counts for both"
    );
    drop(target);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn first_workload_done_ends_the_others() {
    let (_dir, mut target) = scratch(8 * MIB);
    let group = [
        commits("commits", ops(60)),
        reads("reads", Stop::default()),
        reads("scan", time(600_000_000_000)),
    ];
    let seen = together(&group, std::slice::from_mut(&mut target), &mut patient()).unwrap();
    assert_eq!(
        (count(&seen[0], OpKind::Commit), seen[0].stopped),
        (60, StopReason::Ops)
    );
    for other in &seen[1..] {
        assert_eq!(
            other.stopped,
            StopReason::Companion,
            "{}",
            other.workload.name
        );
        assert!(
            other.asked.write_bytes >= 60 * 8192,
            "{}: {:?}",
            other.workload.name,
            other.asked
        );
        // Of less than a cell nothing can be cut.
        let is_cut = seen[0].wall_ns < CELL_NS || other.wall_ns <= seen[0].wall_ns;
        assert!(
            is_cut,
            "{}: {} after {}",
            other.workload.name, other.wall_ns, seen[0].wall_ns
        );
    }
}

#[test]
fn each_target_ends_on_its_own_budget() {
    let ((_a, one), (_b, two)) = (scratch(8 * MIB), scratch(8 * MIB));
    let group = [commits("commits", ops(40)), reads("reads", Stop::default())];
    let seen = together(&group, &mut [one, two], &mut patient()).unwrap();
    let places: Vec<_> = seen
        .iter()
        .map(|m| (m.workload.name.as_str(), m.target))
        .collect();
    assert_eq!(
        places,
        [("commits", 0), ("commits", 1), ("reads", 0), ("reads", 1)]
    );
    assert!(seen[..2].iter().all(|m| count(m, OpKind::Commit) == 40));
    assert!(seen[2..].iter().all(|m| m.stopped == StopReason::Companion));
}

#[test]
fn watcher_answers_combine_over_workloads() {
    let (_dir, mut target) = scratch(8 * MIB);
    let targets = std::slice::from_mut(&mut target);
    let precise = |stop: Stop| Stop {
        precision: Some(0.02),
        ..stop
    };
    let run =
        |group: &[Workload], said: Vec<(&'static str, Control)>, targets: &mut [OpenTarget]| {
            together(group, targets, &mut Watcher(said, 0))
                .unwrap()
                .iter()
                .map(|m| m.stopped)
                .collect::<Vec<_>>()
        };
    let day = time(86_400_000_000_000);
    let both = [
        commits("commits", precise(day)),
        reads("reads", precise(Stop::default())),
    ];
    let known = vec![("commits", Control::Enough), ("reads", Control::Enough)];
    assert_eq!(run(&both, known, targets), [StopReason::Precision; 2]);
    let endless = [
        commits("commits", precise(Stop::default())),
        reads("reads", Stop::default()),
    ];
    assert_eq!(
        run(&endless, vec![("commits", Control::Enough)], targets),
        [StopReason::Precision; 2]
    );
    let timed = [
        commits("commits", precise(Stop::default())),
        reads("reads", time(300_000_000)),
    ];
    assert_eq!(
        run(&timed, vec![("commits", Control::Enough)], targets),
        [StopReason::Time; 2],
        "the other has time left"
    );
    let interrupted = [commits("commits", day), reads("reads", Stop::default())];
    assert_eq!(
        run(&interrupted, vec![("reads", Control::Interrupt)], targets),
        [StopReason::Interrupted; 2]
    );
}

#[test]
fn verify_works_while_other_workloads_run() {
    let (_dir, mut target) = scratch(8 * MIB);
    let span = |mib: u64| Span {
        start_bytes: mib * MIB,
        length_bytes: Some(4 * MIB),
    };
    let writes = |name: &str, mib: u64, cache: CachePolicy| Workload {
        streams: Streams::with_reads(0),
        depth: 8,
        cache,
        span: span(mib),
        stop: ops(400),
        verify: Verify::Checksum,
        ..Workload::named(name)
    };
    let group = [
        writes("direct", 0, CachePolicy::Direct),
        writes("buffered", 4, CachePolicy::Buffered),
    ];
    let seen = together(&group, std::slice::from_mut(&mut target), &mut patient()).unwrap();
    for m in &seen {
        let verify = m.verify.as_ref().unwrap();
        assert!(
            verify.blocks > 0 && verify.bad_blocks == 0,
            "{}: {verify:?}",
            m.workload.name
        );
    }
    let over_it = [
        writes("a", 0, CachePolicy::Direct),
        Workload {
            verify: Verify::Off,
            ..writes("b", 2, CachePolicy::Direct)
        },
    ];
    let error = together(&over_it, std::slice::from_mut(&mut target), &mut patient()).unwrap_err();
    assert!(matches!(error, RunError::Together(_)), "{error}");
}

#[test]
fn final_sync_is_one_call_and_counts_for_every_writer() {
    let (_dir, mut target) = scratch(8 * MIB);
    let buffered = |name: &str, start_bytes: u64| Workload {
        streams: Streams::with_reads(0),
        cache: CachePolicy::Buffered,
        span: Span {
            start_bytes,
            length_bytes: Some(4 * MIB),
        },
        ..Workload::named(name)
    };
    let group = [
        Workload {
            stop: time(200_000_000),
            ..buffered("one", 0)
        },
        reads("reads", Stop::default()),
        Workload {
            cache: CachePolicy::Direct,
            sync: SyncPolicy::AtEnd,
            ..buffered("direct", 0)
        },
        buffered("other", 4 * MIB),
    ];
    let seen = together(&group, std::slice::from_mut(&mut target), &mut patient()).unwrap();
    let [one, reads, direct, other] = &seen[..] else {
        panic!("{} measurements", seen.len())
    };
    let sync = &one.ops[&OpKind::Sync];
    assert_eq!(sync.count, 1);
    for writer in [direct, other] {
        assert_eq!(
            &writer.ops[&OpKind::Sync],
            sync,
            "{}: the same call",
            writer.workload.name
        );
        assert_eq!(
            writer.wall_ns, one.wall_ns,
            "{}: so the rates add up to what the disk wrote in that time",
            writer.workload.name
        );
    }
    // All writers still wrote when the common time was over; the reader has nothing to make
    // durable.
    assert_eq!(
        u128::from(one.wall_ns - reads.wall_ns),
        sync.latency.sum_ns()
    );
    assert!(!reads.ops.contains_key(&OpKind::Sync));
}

#[test]
fn cpu_time_of_workloads_is_at_most_that_of_the_process() {
    let (_dir, mut target) = scratch(8 * MIB);
    let stop = time(300_000_000);
    let group = [
        Workload {
            start: Start::AfterPrevious,
            ..reads("a", stop)
        },
        Workload {
            depth: 1,
            rate: Some(20.0),
            ..reads("b", stop)
        },
    ];
    let seen = together(&group, std::slice::from_mut(&mut target), &mut patient()).unwrap();
    let used = |m: &Measurement| m.cpu.user_ns + m.cpu.system_ns;
    let cpus = std::thread::available_parallelism().unwrap().get() as u64;
    assert!(
        used(&seen[0]) + used(&seen[1]) <= cpus * 300_000_000 * 11 / 10,
        "{:?} {:?}",
        seen[0].cpu,
        seen[1].cpu
    );
}
