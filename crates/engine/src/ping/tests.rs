//! Pings in virtual time, on simulated disks with known properties.

use super::follow::{FollowedTarget, Follower, PingEvent, PingReport};
use super::log::PingLog;
use super::pinger::{CommitParts, PingAnswer, PingOrders, PingSignals, Pinger};
use crate::io::Extent;
use crate::io::clock::{ActiveClock, Clock as _, MonotonicClock};
use crate::measure::result::EndReason;
use crate::measure::sampler::Sampler;
use crate::run::supervise::StallTimeout;
use crate::testing::loads::{after_ns, after_ops, extent};
use crate::testing::sim_backend::{HOST_NS, SimBackend};
use crate::testing::simulate::simulated;
use diskproof_device::{Intent, OpenTarget, admit, probe};
use diskproof_model::measurement::{Measurement, OpKind, StopReason};
use diskproof_model::ping::{IgnoredBecause, PingPlan, SingleRequest};
use diskproof_model::plan::{CachePolicy, Stop, SyncCall, SyncPolicy, Workload};
use diskproof_model::progress::{Control, PingWatch, Progress, Watch};
use diskproof_model::stream::Streams;
use diskproof_simdisk::spec;
use std::sync::Arc;

const MILLISECOND_NS: u64 = 1_000_000;
const SECOND_NS: u64 = 1000 * MILLISECOND_NS;
const DISK_BYTES: u64 = 1 << 30;

fn reads(stop: Stop) -> Workload {
    Workload {
        block_bytes: 4096,
        stop,
        ..Workload::named("ping")
    }
}

fn every(interval_ns: u64) -> PingPlan {
    PingPlan {
        interval_ns,
        warmup_requests: 1,
        abort_above_ns: None,
        idle_ns: Vec::new(),
    }
}

/// All requests of a ping of this disk, and why it ended.
fn ping(model: &str, workload: Workload, plan: PingPlan) -> (Vec<PingAnswer>, EndReason) {
    let (answers, ending, _) = timed_ping(model, workload, plan);
    (answers, ending)
}

/// And when it ended.
fn timed_ping(
    model: &str,
    workload: Workload,
    plan: PingPlan,
) -> (Vec<PingAnswer>, EndReason, u64) {
    let model = spec::parse(model).unwrap();
    let backend = SimBackend::new(&model, DISK_BYTES, 1, 4096);
    let clock = backend.clock.clone();
    let extent = extent(0, DISK_BYTES);
    let orders = PingOrders {
        known: simulated(&workload, extent),
        plan,
        extent,
        seed: 7,
    };
    let mut pinger = Pinger::new(Sampler::new(backend, clock.clone(), 1, 1), orders);
    let mut answers = Vec::new();
    let ending = pinger.run(&PingSignals::default(), |answer| {
        answers.push(answer);
        Ok(())
    });
    (answers, ending.unwrap(), clock.now())
}

/// What the requests of a ping at this interval add up to.
fn measurement(answers: Vec<PingAnswer>, interval_ns: u64) -> Measurement {
    let known = simulated(&reads(Stop::default()), Extent::default());
    let mut log = PingLog::new(known, 0, interval_ns);
    for answer in answers {
        log.add(answer);
    }
    log.measurement()
}

fn requests(answers: &[PingAnswer]) -> Vec<&SingleRequest> {
    answers.iter().map(|answer| &answer.request).collect()
}

#[test]
fn requests_start_at_the_interval_and_never_faster_after_a_slow_one() {
    let model = "latency=500us,stall=450ms+1700ms";
    let (answers, ending) = ping(model, reads(after_ops(20)), every(100 * MILLISECOND_NS));
    assert_eq!((answers.len(), ending), (20, EndReason::Budget));
    for pair in answers.windows(2) {
        let gap_ns = pair[1].request.at_ns - pair[0].request.at_ns;
        let due_ns = (100 * MILLISECOND_NS).max(pair[0].request.latency_ns);
        assert!(
            (due_ns..due_ns + MILLISECOND_NS).contains(&gap_ns),
            "{gap_ns}"
        );
    }
    let longest = answers.iter().map(|answer| answer.request.latency_ns).max();
    assert!((1600 * MILLISECOND_NS..1701 * MILLISECOND_NS).contains(&longest.unwrap()));
    let usual = answers[0].request.latency_ns;
    assert_eq!(usual, 500_000 + HOST_NS);
}

#[test]
fn first_requests_do_not_count_and_the_load_is_the_announced_one() {
    let (answers, _) = ping(
        "latency=1ms",
        reads(after_ops(11)),
        every(100 * MILLISECOND_NS),
    );
    let measured = measurement(answers, 100 * MILLISECOND_NS);
    let (reads, wall_ns) = (&measured.ops[&OpKind::Read], measured.wall_ns);
    assert_eq!((reads.count, measured.asked.read_bytes), (10, 11 * 4096));
    assert_eq!(reads.latency.count(), 10);
    // Ten requests in ten intervals.
    assert!(
        (SECOND_NS..SECOND_NS + MILLISECOND_NS).contains(&wall_ns),
        "{wall_ns}"
    );
}

#[test]
fn error_of_a_request_that_does_not_count_counts() {
    let (answers, _) = ping(
        "latency=1ms,eio=0-1GiB",
        reads(after_ops(3)),
        every(100 * MILLISECOND_NS),
    );
    let measured = measurement(answers, 100 * MILLISECOND_NS);
    assert_eq!(measured.requests[0].ignored, Some(IgnoredBecause::Warmup));
    let reads = &measured.ops[&OpKind::Read];
    assert_eq!((reads.errors["EIO"], reads.count), (3, 0));
}

#[test]
fn no_request_starts_after_the_time() {
    let load = reads(after_ns(SECOND_NS));
    let (answers, ending, end_ns) = timed_ping("latency=1ms", load, every(300 * MILLISECOND_NS));
    // Nor does it wait for the one that would be due at 1.2 s.
    assert!(end_ns < SECOND_NS, "{end_ns}");
    assert_eq!((answers.len(), ending), (4, EndReason::Time));
    assert!(
        answers
            .iter()
            .all(|answer| answer.request.at_ns < SECOND_NS)
    );
}

#[test]
fn wake_up_after_two_seconds_of_idle_time_is_seen_and_nothing_else() {
    let idle_ms = [0, 1000, 0, 5000, 0, 1, 0, 1999, 0, 2000, 0, 10_000, 0];
    let idle_ns = idle_ms.map(|ms| ms * MILLISECOND_NS).to_vec();
    let plan = PingPlan {
        idle_ns: idle_ns.clone(),
        ..every(0)
    };
    let (answers, ending) = ping("latency=100us,sleep=2s+300ms", reads(Stop::default()), plan);
    assert_eq!(ending, EndReason::Budget);
    let seen = requests(&answers);
    assert_eq!(seen.len(), idle_ns.len());
    for (request, idle_ns) in seen.iter().zip(idle_ns) {
        let wake_ns = if idle_ns >= 2 * SECOND_NS {
            300 * MILLISECOND_NS
        } else {
            0
        };
        assert_eq!(request.idle_ns, Some(idle_ns));
        assert_eq!(request.latency_ns, wake_ns + 100_000 + HOST_NS, "{idle_ns}");
    }
    assert_eq!(seen[0].ignored, Some(IgnoredBecause::Warmup));
    assert!(seen[1..].iter().all(|request| request.counts()));
}

#[test]
fn reads_and_durable_writes_alternate() {
    let workload = Workload {
        streams: Streams::with_reads(500),
        sync: SyncPolicy::Every {
            writes: 1,
            call: SyncCall::Fdatasync,
        },
        ..reads(after_ops(6))
    };
    let (answers, _) = ping(
        "latency=100us,flush=4ms",
        workload,
        every(10 * MILLISECOND_NS),
    );
    let kinds: Vec<OpKind> = answers.iter().map(|answer| answer.request.op).collect();
    let (read, commit) = (OpKind::Read, OpKind::Commit);
    assert_eq!(kinds, [read, commit, read, commit, read, commit]);
    let CommitParts { write_ns, sync_ns } = answers[1].parts.unwrap();
    assert_eq!(write_ns, 100_000 + HOST_NS);
    assert_eq!(sync_ns, 4 * MILLISECOND_NS + HOST_NS);
    assert_eq!(answers[1].request.latency_ns, write_ns + sync_ns);
    let ops = measurement(answers, 10 * MILLISECOND_NS).ops;
    // The first read is the warm-up.
    let kinds = [OpKind::Read, OpKind::Write, OpKind::Sync, OpKind::Commit];
    assert_eq!(kinds.map(|kind| ops[&kind].count), [2, 3, 3, 3]);
    assert_eq!(ops.len(), 4);
}

/// sync_file_range(2) completes with 0, which is no end of the file.
#[test]
fn buffered_writes_count_until_the_device_has_them() {
    let workload = Workload {
        streams: Streams::doing(&[OpKind::Write]),
        cache: CachePolicy::Buffered,
        ..reads(after_ops(3))
    };
    let (answers, _) = ping(
        "latency=100us,flush=4ms",
        workload,
        every(10 * MILLISECOND_NS),
    );
    for answer in &answers {
        assert_eq!(answer.request.error, None);
        assert_eq!(answer.request.op, OpKind::Write);
        assert_eq!(
            answer.request.latency_ns,
            100_000 + HOST_NS + 4 * MILLISECOND_NS + HOST_NS
        );
    }
    let ops = measurement(answers, 10 * MILLISECOND_NS).ops;
    // The first write is the warm-up.
    assert_eq!(ops[&OpKind::Write].count, 2);
    assert!(ops[&OpKind::Write].errors.is_empty());
}

#[test]
fn failed_requests_are_reported_and_end_the_ping_after_a_hundred_in_a_row() {
    let (answers, ending) = ping(
        "latency=1ms,eio=0-1GiB",
        reads(after_ops(500)),
        every(MILLISECOND_NS),
    );
    assert_eq!((answers.len(), ending), (100, EndReason::Errors(libc::EIO)));
    let first = &answers[1].request;
    assert_eq!(first.error.as_deref(), Some("EIO"));
    assert!(!first.counts());
    let ops = measurement(answers, MILLISECOND_NS).ops;
    assert_eq!(ops[&OpKind::Read].errors["EIO"], 100);
}

#[test]
fn stopped_ping_sends_nothing_more() {
    let signals = PingSignals::default();
    assert_eq!(signals.in_flight_since(), None);
    signals.begin(5);
    assert_eq!(signals.in_flight_since(), Some(5));
    signals.end();
    signals.stop();
    assert!(signals.is_stopped() && signals.in_flight_since().is_none());
}

struct Patient;

impl Watch for Patient {
    fn tick(&mut self, _: &Progress<'_>) -> Control {
        Control::Continue
    }
}

impl PingWatch for Patient {
    fn request(&mut self, _: usize, _: &SingleRequest) {}

    fn ending(&self) -> Option<StopReason> {
        None
    }
}

#[test]
fn hung_target_ends_the_other_and_its_late_report_is_ignored() {
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let open = || {
        let size_bytes = 1 << 20;
        let intent = Intent::Scratch { size_bytes };
        OpenTarget::open(admit(probe(place.path()).unwrap(), intent).unwrap()).unwrap()
    };
    let (opens, workload) = ([open(), open()], reads(Stop::default()));
    let signals = [(); 2].map(|()| Arc::new(PingSignals::default()));
    // Its request never returns.
    signals[0].begin(MonotonicClock.now());
    let followed = |target: usize| {
        let known = simulated(&workload, Extent::default());
        let log = PingLog::new(known, 0, MILLISECOND_NS);
        FollowedTarget::new(&opens[target], Arc::clone(&signals[target]), log)
    };
    let follower = Follower {
        workload: &workload,
        targets: vec![followed(0), followed(1)],
        stall_timeout: StallTimeout::from_ns(MILLISECOND_NS),
    };
    let (sender, events) = std::sync::mpsc::channel();
    let other = Arc::clone(&signals[1]);
    let reports = std::thread::spawn(move || {
        while !other.is_stopped() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let error = std::io::Error::from_raw_os_error(libc::EIO);
        let late = PingReport {
            target: 0,
            event: PingEvent::Failed(error),
        };
        sender.send(late).unwrap();
        let done = PingReport {
            target: 1,
            event: PingEvent::Done {
                ending: EndReason::Stopped,
                interruptions: Vec::new(),
            },
        };
        sender.send(done).unwrap();
    });
    let measured = follower.follow(&events, &ActiveClock::new(), &mut Patient);
    let stopped: Vec<StopReason> = measured.unwrap().iter().map(|one| one.stopped).collect();
    assert_eq!(stopped, [StopReason::Hung, StopReason::Companion]);
    reports.join().unwrap();
}
