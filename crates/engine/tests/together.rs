//! Workloads that run at the same time on a real scratch file: they share one window and one end,
//! and each keeps its own page cache mode. These tests do not check speed.
#![allow(clippy::unwrap_used)] // a failed step fails the test

mod support;

use diskproof_device::OpenTarget;
use diskproof_engine::{RunError, Session};
use diskproof_model::group::Group;
use diskproof_model::measurement::{Measurement, OpKind, StopReason};
use diskproof_model::plan::{
    Access, CachePolicy, EngineKind, Span, Start, Stop, SyncCall, SyncPolicy, Verify, Workload,
};
use diskproof_model::progress::{Control, Phase, Progress, Watch};
use diskproof_model::shape::LoadShape;
use diskproof_model::slice::{EarlierSlices, SliceSpan};
use diskproof_model::stream::Streams;
use std::os::fd::AsRawFd as _;
use support::{
    ENGINES, MIB, Patient, after_bytes, after_ns, after_ops, every, scratch, span, workload,
};

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

/// Measures with one scratch file, with a watcher that never ends anything.
fn on_one(workloads: &[Workload]) -> Vec<Measurement> {
    let (_dir, mut target) = scratch(8 * MIB);
    let watch = &mut Watcher(Vec::new(), 0);
    together(workloads, std::slice::from_mut(&mut target), watch).unwrap()
}

fn reads(name: &str, stop: Stop) -> Workload {
    Workload {
        name: name.to_owned(),
        span: Span {
            start_bytes: 4 * MIB,
            length_bytes: None,
        },
        stop,
        start: Start::WithPrevious,
        ..workload(EngineKind::Uring)
    }
}

fn commits(name: &str, stop: Stop) -> Workload {
    Workload {
        streams: Streams::with_reads(0),
        access: Access::Sequential,
        cache: CachePolicy::Cached,
        span: span(0, 4 * MIB),
        sync: every(1, SyncCall::Fdatasync),
        stop,
        ..Workload::named(name)
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
        ..commits("commits", after_ns(400_000_000))
    };
    let reads = Workload {
        warmup_ns: 100_000_000,
        ..reads("reads", Stop::default())
    };
    let targets = std::slice::from_mut(&mut target);
    let seen = together(&[commits, reads], targets, &mut Watcher(Vec::new(), 0)).unwrap();
    let [commits, reads] = &seen[..] else {
        panic!("{} measurements", seen.len())
    };
    assert_eq!(commits.start_ns, reads.start_ns);
    assert_eq!(commits.wall_ns, reads.wall_ns, "one window");
    assert_eq!(reads.wall_ns, 400_000_000, "its end is the other's");
    assert_eq!(commits.stopped, StopReason::Time);
    assert_eq!(reads.stopped, StopReason::Time);
    assert_eq!(commits.cache.used, CachePolicy::Cached);
    assert_eq!(reads.cache.used, CachePolicy::Direct);
    assert_eq!(commits.asked, reads.asked);
    assert_eq!(&commits.device, &reads.device, "the disk counts for both");
    drop(target);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn first_workload_done_ends_the_others() {
    let group = [
        commits("commits", after_ops(60)),
        reads("reads", Stop::default()),
        reads("scan", after_ns(600_000_000_000)),
    ];
    let seen = on_one(&group);
    assert_eq!(count(&seen[0], OpKind::Commit), 60);
    assert_eq!(seen[0].stopped, StopReason::Ops);
    for other in &seen[1..] {
        let name = &other.workload.name;
        assert_eq!(other.stopped, StopReason::Companion, "{name}");
        assert!(other.asked.write_bytes >= 60 * 8192, "{name}");
        // Of less than a cell nothing can be cut.
        let (first_ns, ns) = (seen[0].wall_ns, other.wall_ns);
        assert!(
            first_ns < CELL_NS || ns <= first_ns,
            "{name}: {ns} after {first_ns}"
        );
    }
}

#[test]
fn each_target_ends_on_its_own_budget() {
    let ((_a, one), (_b, two)) = (scratch(8 * MIB), scratch(8 * MIB));
    let group = [
        commits("commits", after_ops(40)),
        reads("reads", Stop::default()),
    ];
    let seen = together(&group, &mut [one, two], &mut Watcher(Vec::new(), 0)).unwrap();
    let places = seen.iter().map(|m| (m.workload.name.as_str(), m.target));
    assert!(places.eq([("commits", 0), ("commits", 1), ("reads", 0), ("reads", 1)]));
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
    let mut run = |group: [Workload; 2], said: &[(&'static str, Control)]| {
        let seen = together(&group, targets, &mut Watcher(said.to_vec(), 0)).unwrap();
        [seen[0].stopped, seen[1].stopped]
    };
    let group = |of_commits, of_reads| [commits("commits", of_commits), reads("reads", of_reads)];
    let (day, endless) = (after_ns(86_400_000_000_000), Stop::default());
    let commits_known = ("commits", Control::Enough);
    let both = group(precise(day), precise(endless));
    let seen = run(both, &[commits_known, ("reads", Control::Enough)]);
    assert_eq!(seen, [StopReason::Precision; 2]);
    let seen = run(group(precise(endless), endless), &[commits_known]);
    assert_eq!(seen, [StopReason::Precision; 2]);
    // The other has time left.
    let seen = run(
        group(precise(endless), after_ns(300_000_000)),
        &[commits_known],
    );
    assert_eq!(seen, [StopReason::Time; 2]);
    let seen = run(group(day, endless), &[("reads", Control::Interrupt)]);
    assert_eq!(seen, [StopReason::Interrupted; 2]);
}

#[test]
fn verify_works_while_other_workloads_run() {
    let writes = |name: &str, mib: u64, cache: CachePolicy| Workload {
        streams: Streams::with_reads(0),
        depth: 8,
        cache,
        span: span(mib * MIB, 4 * MIB),
        stop: after_ops(400),
        verify: Verify::Checksum,
        ..Workload::named(name)
    };
    let group = [
        writes("direct", 0, CachePolicy::Direct),
        writes("buffered", 4, CachePolicy::Buffered),
    ];
    let seen = on_one(&group);
    for m in &seen {
        let verify = m.verify.as_ref().unwrap();
        assert!(verify.blocks > 0, "{}", m.workload.name);
        assert_eq!(verify.bad_blocks, 0, "{}: {verify:?}", m.workload.name);
    }
    let over_it = [
        writes("a", 0, CachePolicy::Direct),
        Workload {
            verify: Verify::Off,
            ..writes("b", 2, CachePolicy::Direct)
        },
    ];
    let (_dir, mut target) = scratch(8 * MIB);
    let targets = std::slice::from_mut(&mut target);
    let error = together(&over_it, targets, &mut Watcher(Vec::new(), 0)).unwrap_err();
    assert!(matches!(error, RunError::Together(_)), "{error}");
}

#[test]
fn final_sync_is_one_call_and_counts_for_every_writer() {
    let buffered = |name: &str, start_bytes: u64| Workload {
        streams: Streams::with_reads(0),
        cache: CachePolicy::Buffered,
        span: span(start_bytes, 4 * MIB),
        ..Workload::named(name)
    };
    let group = [
        Workload {
            stop: after_ns(200_000_000),
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
    let seen = on_one(&group);
    let [one, reads, direct, other] = &seen[..] else {
        panic!("{} measurements", seen.len())
    };
    let sync = &one.ops[&OpKind::Sync];
    assert_eq!(sync.count, 1);
    for writer in [direct, other] {
        let name = &writer.workload.name;
        assert_eq!(&writer.ops[&OpKind::Sync], sync, "{name}: the same call");
        // So the rates add up to what the disk wrote in that time.
        assert_eq!(writer.wall_ns, one.wall_ns, "{name}");
    }
    // All writers still wrote when the common time was over; the reader has nothing to make
    // durable.
    let sync_ns = u128::from(one.wall_ns - reads.wall_ns);
    assert_eq!(sync_ns, sync.latency.sum_ns());
    assert!(!reads.ops.contains_key(&OpKind::Sync));
}

#[test]
fn cpu_time_of_workloads_is_at_most_that_of_the_process() {
    let stop = after_ns(300_000_000);
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
    let seen = on_one(&group);
    let used = |m: &Measurement| m.cpu.user_ns + m.cpu.system_ns;
    let cpus = std::thread::available_parallelism().unwrap().get() as u64;
    let (sum_ns, most_ns) = (used(&seen[0]) + used(&seen[1]), cpus * 330_000_000);
    assert!(sum_ns <= most_ns, "{sum_ns}");
}

/// Of two files one has gone on for eight blocks before, the other for none.
#[test]
fn slice_goes_on_on_each_target_where_it_was() {
    const BLOCK: u64 = 64 << 10;
    let (_first_dir, first) = scratch(MIB);
    let (_second_dir, second) = scratch(MIB);
    let writes = Workload {
        streams: Streams::with_reads(0),
        access: Access::Sequential,
        block_bytes: BLOCK as u32,
        depth: 1,
        stop: after_bytes(BLOCK),
        span: span(0, MIB),
        ..workload(EngineKind::Sync)
    };
    let slice = SliceSpan::whole(&writes);
    let earlier = [
        EarlierSlices::default(),
        EarlierSlices {
            moved_bytes: 8 * BLOCK,
            engine: Some(EngineKind::Uring),
            ..EarlierSlices::default()
        },
    ];
    let mut targets = [first, second];
    let never_ends = &mut Watcher(Vec::new(), 0);
    Session::new(3)
        .run(&writes, &mut targets, never_ends)
        .unwrap();
    let before = targets.each_ref().map(blocks);
    let measured = Session::new(7)
        .run_slices(
            Group::alone(&writes),
            &[slice],
            &earlier,
            &mut targets,
            &mut Watcher(Vec::new(), 0),
        )
        .unwrap();
    let after = targets.each_ref().map(blocks);
    // A queue begins with up to three small requests, which write anywhere in a scratch file.
    for (target, written, others_max) in [(0, 0, 0), (1, 8, 3)] {
        let changed: Vec<usize> = (0..16)
            .filter(|block| before[target][*block] != after[target][*block])
            .collect();
        assert!(changed.contains(&written), "{target}: {changed:?}");
        assert!(changed.len() <= 1 + others_max, "{target}: {changed:?}");
    }
    assert_eq!(measured[0].engine.used, EngineKind::Sync);
    assert_eq!(measured[1].engine.used, EngineKind::Uring);
}

/// Three writes were made before, of which a sync follows each four.
#[test]
fn slice_syncs_after_the_writes_of_those_before_it() {
    let (_dir, mut target) = scratch(MIB);
    let mut writes = Workload {
        streams: Streams::with_reads(0),
        sync: SyncPolicy::Every {
            writes: 4,
            call: SyncCall::Fdatasync,
        },
        depth: 1,
        span: span(0, MIB),
        ..workload(EngineKind::Sync)
    };
    writes.stop.ops = Some(2);
    let slice = SliceSpan::whole(&writes);
    for (writes_before, syncs) in [(0, 0), (3, 1), (7, 1), (4, 0)] {
        let earlier = EarlierSlices {
            writes: writes_before,
            ran_ns: 1,
            ..EarlierSlices::default()
        };
        let measured = Session::new(7)
            .run_slices(
                Group::alone(&writes),
                &[slice],
                &[earlier],
                std::slice::from_mut(&mut target),
                &mut Watcher(Vec::new(), 0),
            )
            .unwrap();
        let seen = match measured[0].ops.get(&OpKind::Sync) {
            Some(op) => op.count,
            None => 0,
        };
        assert_eq!(seen, syncs, "after {writes_before}");
    }
}

/// The content of a file of a mebibyte in blocks of 64 KiB.
fn blocks(target: &OpenTarget) -> Vec<Vec<u8>> {
    let path = format!("/proc/self/fd/{}", target.fd().as_raw_fd());
    let content = std::fs::read(path).unwrap();
    assert_eq!(content.len() as u64, MIB);
    content.chunks(64 << 10).map(<[u8]>::to_vec).collect()
}

/// Reads by three workers, each of which is logged.
fn logged_reads(engine: EngineKind) -> Workload {
    Workload {
        workers: 3,
        warmup_ns: 1_000_000,
        stop: after_ns(5_000_000),
        shape: LoadShape {
            logs_requests: true,
            ..LoadShape::default()
        },
        ..workload(engine)
    }
}

/// When the requests of a measurement were sent, after the start of the run.
fn sent_ns(measured: &Measurement) -> Vec<u64> {
    let log = measured.request_log.as_deref();
    log.map_or(&[][..], |log| &log.requests)
        .iter()
        .map(|request| request.sent_ns)
        .collect()
}

/// What is measured from an instant on, which comes later where the machine is too busy to be ready
/// for it, and the instant.
fn measured_from_an_instant(workload: &Workload, target: &mut OpenTarget) -> (u64, Measurement) {
    let session = Session::new(7);
    let mut ahead_ns = 20_000_000;
    loop {
        let start_ns = session.elapsed_ns() + ahead_ns;
        let targets = std::slice::from_mut(target);
        match session
            .starting_at(start_ns)
            .run(workload, targets, &mut Patient)
        {
            Ok(measured) => return (start_ns, measured.into_iter().next().unwrap()),
            Err(RunError::NotReady { .. }) => ahead_ns *= 2,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn workers_never_begin_before_their_instant() {
    let (_dir, mut target) = scratch(8 * MIB);
    for engine in ENGINES.iter().cycle().take(4 * ENGINES.len()) {
        let (start_ns, measured) = measured_from_an_instant(&logged_reads(*engine), &mut target);
        let sent_ns = sent_ns(&measured);
        assert!(!sent_ns.is_empty(), "{engine:?}");
        for ns in sent_ns.iter().chain(&measured.began_ns) {
            assert!(*ns >= start_ns, "{engine:?}: {ns} before {start_ns}");
        }
    }
}

/// Ends the run at its first look.
struct Impatient;

impl Watch for Impatient {
    fn tick(&mut self, progress: &Progress<'_>) -> Control {
        match progress.phase {
            Phase::Measure | Phase::Warmup => Control::Interrupt,
            _ => Control::Continue,
        }
    }
}

#[test]
fn workers_that_are_stopped_before_their_instant_send_nothing() {
    let (_dir, mut target) = scratch(8 * MIB);
    for engine in ENGINES {
        let session = Session::new(7);
        // Far enough for any machine to look before it, and nobody waits for it.
        let start_ns = session.elapsed_ns() + 60_000_000_000;
        let targets = std::slice::from_mut(&mut target);
        let measured = session
            .starting_at(start_ns)
            .run(&logged_reads(engine), targets, &mut Impatient)
            .unwrap();
        assert!(session.elapsed_ns() < start_ns);
        assert_eq!(measured[0].stopped, StopReason::Interrupted, "{engine:?}");
        assert_eq!(measured[0].began_ns, None, "{engine:?}");
        assert_eq!(sent_ns(&measured[0]), [0; 0], "{engine:?}");
        assert_eq!(measured[0].asked.read_bytes, 0, "{engine:?}");
    }
}

/// The second one is busy for 600 ms, beyond the warm-up of the first.
#[test]
fn own_warm_up_is_none_of_the_others() {
    let paced = |name: &str, warmup_ns: u64, own_warmup: bool| {
        let mut workload = reads(name, after_ops(61));
        workload.rate = Some(100.0);
        workload.warmup_ns = warmup_ns;
        workload.shape.starts.own_warmup = own_warmup;
        workload.ends_alone = true;
        workload
    };
    for (own_warmup, all) in [(true, true), (false, false)] {
        let two = [
            paced("late", 300_000_000, own_warmup),
            paced("early", 0, own_warmup),
        ];
        let found = on_one(&two);
        let counts = found.iter().map(|one| one.ops[&OpKind::Read].count);
        let counts: Vec<u64> = counts.collect();
        assert!(counts[0] < 61, "{counts:?}");
        assert_eq!(counts[1] == 61, all, "{counts:?}");
        let early_ns = found[1].start_ns;
        assert_eq!(early_ns < found[0].start_ns, all);
    }
}
