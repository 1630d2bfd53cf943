//! The measuring path under a fake clock: every figure is known in advance.
#![allow(clippy::unwrap_used)] // a failed step fails the test

mod support;

use diskproof_engine::{FakeClock, FakeDisk, simulate, simulate_on};
use diskproof_model::measurement::{
    Interruption, InterruptionKind, Measurement, OpKind, SERIES_CELLS_MAX, StopReason,
};
use diskproof_model::plan::*;
use diskproof_model::series::Cell;
use diskproof_model::stream::Streams;
use diskproof_model::window::Window;
use support::{Patient, after_ns, after_ops, every};

fn workload(depth: u32, seconds: u64) -> Workload {
    Workload {
        depth,
        stop: after_ns(seconds * 1_000_000_000),
        warmup_ns: 100_000_000,
        ..Workload::named("virtual")
    }
}

fn paced(rate: f64, depth: u32, seconds: u64) -> Workload {
    Workload {
        rate: Some(rate),
        ..workload(depth, seconds)
    }
}

fn disk(service_ns: u64, jitter_ns: u64, channels: usize) -> FakeDisk {
    FakeDisk {
        service_ns,
        jitter_ns,
        channels,
        size_bytes: 1 << 30,
    }
}

const DISK: FakeDisk = FakeDisk {
    service_ns: 500_000,
    jitter_ns: 0,
    channels: 4,
    size_bytes: 1 << 30,
};

fn measure(workload: &Workload, disk: FakeDisk) -> Measurement {
    simulate(workload, disk, 1, &mut Patient).unwrap()
}

#[track_caller]
fn near(value: f64, truth: f64, by: f64) {
    assert!((value - truth).abs() <= by, "{value} is not {truth} ± {by}");
}

#[test]
fn simulated_rate_latency_and_depth_are_exact() {
    let seen = measure(&workload(16, 2), DISK);
    let read = &seen.ops[&OpKind::Read];
    // 4 channels of 500 µs: 8000/s; 16 in flight: 2 ms each. What is in flight at the end is
    // drained and counted.
    assert_eq!(read.series.total().ops, 16_000);
    assert_eq!((read.count, read.latency.count()), (16_000, 16_000 + 16));
    assert_eq!(seen.wall_ns, 2_000_000_000);
    assert_eq!(read.latency.min_ns(), 2_000_000);
    assert_eq!(read.latency.max_ns(), 2_000_000);
    assert_eq!(seen.stopped, StopReason::Time);
    near(seen.achieved_depth, 16.0, 1e-6);
    // The drain and the warm-up, up to its last instant, included.
    assert_eq!(seen.asked.read_bytes, (16_016 + 4 * 199) * 8192);
}

#[test]
fn depth_one_has_no_dead_time() {
    let seen = measure(&workload(1, 1), disk(500_000, 0, 1));
    assert_eq!(seen.ops[&OpKind::Read].latency.max_ns(), 500_000);
    assert!(seen.dead_time_ns.unwrap() < 1.0, "{:?}", seen.dead_time_ns);
}

#[test]
fn slow_disk_is_measured_for_the_requested_time() {
    // 90 ms each, one at a time: none completes just when the warm-up or the time ends.
    let slow = disk(90_000_000, 0, 1);
    for depth in [1, 32] {
        let seen = measure(&workload(depth, 2), slow);
        let read = &seen.ops[&OpKind::Read];
        let figures = (seen.wall_ns, read.series.total().ops);
        let expected = (2_000_000_000, 2_100 / 90 - 100 / 90);
        assert_eq!(figures, expected, "at depth {depth}");
        // Of those in flight at either end, the part within the time counts.
        near(seen.achieved_depth, f64::from(depth), 1e-6);
        assert!(
            seen.dead_time_ns.is_none_or(|ns| ns < 1.0),
            "{:?}",
            seen.dead_time_ns
        );
    }
}

#[test]
fn request_longer_than_the_measured_time_counts_with_its_full_time() {
    // Nothing, two, and four requests complete within the warm-up of 0.1 s and the 2 s after it;
    // where the warm-up is too short for a first request, the gate extends it to 0.6 s at most.
    for (service_ms, depth, channels, ops) in [
        (7_000, 1, 1, 1),
        (7_000, 4, 4, 4),
        (900, 1, 1, 3),
        (1_000, 8, 1, 3),
        (590, 1, 1, 4),
    ] {
        let disk = disk(service_ms * 1_000_000, 0, channels);
        let seen = measure(&workload(depth, 2), disk);
        let read = &seen.ops[&OpKind::Read];
        assert_eq!(seen.stopped, StopReason::Time);
        assert_eq!(read.count, ops, "{service_ms} ms");
        assert_eq!(read.series.total().ops, ops, "{service_ms} ms");
        let rate = read.count as f64 * 1e9 / seen.wall_ns as f64;
        let truth = channels as f64 * 1e3 / service_ms as f64;
        near(rate / truth, 1.0, 0.01);
        near(seen.achieved_depth, f64::from(depth), 0.01);
        let series_ns = read.series.cells.len() as u64 * read.series.interval_ns;
        assert!(series_ns.abs_diff(seen.wall_ns) <= read.series.interval_ns);
    }
}

#[test]
fn stall_counts_in_full_from_intended_start() {
    // One slow service of 1.5 s among fast ones, 100 per second offered: everything that should
    // have started meanwhile waited.
    let paced = Workload {
        warmup_ns: 0,
        ..paced(100.0, 1, 10)
    };
    let seen = measure(&paced, disk(1_500_000_000, 0, 1));
    let read = &seen.ops[&OpKind::Read];
    // The closed view: each takes 1.5 s; the users' view.
    assert_eq!(read.latency.max_ns(), 1_500_000_000);
    let intended = read.latency_intended.as_ref().unwrap();
    assert!(intended.max_ns() > 8_000_000_000, "{}", intended.max_ns());
    assert!(seen.missed_starts.unwrap() >= 5);
}

#[test]
fn starts_never_made_count_as_missed_with_their_wait() {
    // Four requests are in flight when the time ends, and everything else that was due by then
    // still waits: 100 per second for 1 s, after a warm-up of 0.1 s.
    let seen = measure(&paced(100.0, 4, 1), disk(3_000_000_000, 0, 4));
    let read = &seen.ops[&OpKind::Read];
    // What comes after the end is no rate, but a latency.
    assert_eq!((read.count, read.latency.count()), (0, 4));
    let intended = read.latency_intended.as_ref().unwrap();
    // The last one, due 10 ms before the end, has waited for that long.
    assert_eq!(intended.count(), 4 + 100);
    assert_eq!(intended.min_ns(), 10_000_000);
    assert_eq!(intended.max_ns(), 3_000_000_000);
    assert_eq!(seen.missed_starts, Some(100));
}

#[test]
fn backlog_of_warm_up_counts_as_missed() {
    // A million due per second: all that start in a second were due in its first instants.
    let seen = measure(&paced(1e6, 1, 1), disk(500_000, 0, 1));
    let (made, missed) = (seen.ops[&OpKind::Read].count, seen.missed_starts.unwrap());
    assert!(missed > 990_000 + made, "{missed} of {made}");
}

#[test]
fn equal_seeds_give_equal_measurements() {
    let measure = |seed| {
        let jitter = disk(500_000, 400_000, 4);
        simulate(&workload(8, 1), jitter, seed, &mut Patient).unwrap()
    };
    let once = measure(42);
    assert_eq!(once, measure(42));
    assert_ne!(once, measure(43));
}

#[test]
fn hour_long_series_is_bounded_and_keeps_maxima() {
    let seconds = 3600;
    let jitter = FakeDisk {
        jitter_ns: 3_000_000,
        ..DISK
    };
    let seen = simulate(&workload(4, seconds), jitter, 7, &mut Patient).unwrap();
    let read = &seen.ops[&OpKind::Read];
    assert_eq!(seen.wall_ns, seconds * 1_000_000_000);
    assert!(read.count > 1_000_000, "{}", read.count);
    assert_eq!(read.errors.len(), 0);
    // Cells double their length instead of growing in number, and cover every nanosecond.
    let series = &read.series;
    let (cells, most) = (series.cells.len(), SERIES_CELLS_MAX);
    assert!((most / 2..=most).contains(&cells), "{cells}");
    assert!(series.interval_ns * series.cells.len() as u64 >= seen.wall_ns);
    assert_eq!(series.total().ops, read.count);
    assert_eq!(series.total().bytes, read.bytes);
    let longest = |cells: &[Cell]| cells.iter().map(|cell| cell.latency_max_ns).max().unwrap();
    // What is in flight at the end counts as latency, but belongs to no cell.
    let in_cells = longest(&series.cells);
    assert!(
        (3_400_001..=read.latency.max_ns()).contains(&in_cells),
        "{in_cells}"
    );
    // As a record holds it.
    let thin = series.thinned(100_000_000, 1200);
    assert!(thin.cells.len() <= 1200 && thin.total() == series.total());
    assert_eq!(longest(&thin.cells), longest(&series.cells));
}

/// A process that is stopped for two seconds, half a second after the warm-up.
fn stopped() -> FakeClock {
    FakeClock::default().with_interruption(Interruption {
        start_ns: 600_123_456,
        length_ns: 2_000_000_000,
        kind: InterruptionKind::Stopped,
        requests: 0,
    })
}

#[test]
fn stop_of_the_process_is_in_no_figure() {
    let workload = workload(16, 2);
    let seen = simulate_on(&stopped(), &workload, DISK, 1, &mut Patient).unwrap();
    let read = &seen.ops[&OpKind::Read];
    assert_eq!(seen.wall_ns, 2_000_000_000, "two seconds were measured");
    // Neither the 16 requests in flight across the stop nor the stop itself count: at most one
    // batch of the four channels is lost.
    assert!((15_996..=16_000).contains(&read.count), "{}", read.count);
    assert_eq!(read.series.total().ops, read.count);
    // No latency has the stop in it, and no cell is empty.
    assert_eq!(read.latency.max_ns(), 2_000_000);
    let cells = &read.series.cells;
    let worst = cells.iter().map(|cell| cell.latency_max_ns).max();
    assert_eq!(worst, Some(2_000_000));
    assert!(cells.iter().all(|cell| cell.ops > 0));
    near(seen.achieved_depth, 16.0, 0.1);
    let [stop] = &seen.interruptions[..] else {
        panic!("{:?}", seen.interruptions)
    };
    assert_eq!(
        (stop.start_ns, stop.length_ns),
        (600_123_456, 2_000_000_000)
    );
    assert_eq!((stop.kind, stop.requests), (InterruptionKind::Stopped, 16));
    // Every byte that the disk moved is counted, also that of the interrupted requests.
    let moved = read.latency.count() + 16 + 4 * 199;
    assert_eq!(seen.asked.read_bytes, moved * 8192);
}

#[test]
fn stop_of_the_process_makes_no_start_late() {
    let paced = paced(100.0, 4, 2);
    let seen = simulate_on(&stopped(), &paced, DISK, 1, &mut Patient).unwrap();
    let read = &seen.ops[&OpKind::Read];
    assert_eq!(seen.missed_starts, Some(0));
    assert!((199..=200).contains(&read.count), "{}", read.count);
    let longest_ns = read.latency_intended.as_ref().unwrap().max_ns();
    assert!(longest_ns < 1_000_000, "{longest_ns}");
}

#[test]
fn stop_of_the_process_excludes_commits_and_syncs_in_flight() {
    let commits = Workload {
        streams: Streams::with_reads(0),
        sync: every(1, SyncCall::Fdatasync),
        ..workload(1, 2)
    };
    let whole = measure(&commits, DISK);
    let seen = simulate_on(&stopped(), &commits, DISK, 1, &mut Patient).unwrap();
    for kind in [OpKind::Write, OpKind::Sync, OpKind::Commit] {
        let (op, of_whole) = (&seen.ops[&kind], &whole.ops[&kind]);
        assert_eq!(op.latency.max_ns(), of_whole.latency.max_ns(), "{kind:?}");
        let lost = of_whole.count - op.count;
        assert!(lost <= 1, "{kind:?}: {} of {}", op.count, of_whole.count);
    }
}

/// Requests that take longer than the warm-up: without waiting for the first of them, the first
/// queue-full would lower the rate and the mean latency.
#[test]
fn measured_time_starts_when_the_queue_has_turned_over() {
    for (service_ns, channels, depth) in [(50_000_000, 1, 8), (30_000_000, 4, 32), (700_000, 2, 16)]
    {
        let workload = Workload {
            warmup_ns: 20_000_000,
            ..workload(depth, 8)
        };
        let m = measure(&workload, disk(service_ns, 0, channels));
        let latency_ns = service_ns * u64::from(depth) / channels as u64;
        let read = &m.ops[&OpKind::Read];
        assert_eq!(m.wall_ns, 8_000_000_000);
        assert!(m.start_ns >= latency_ns.max(20_000_000), "{}", m.start_ns);
        assert_eq!(read.latency.min_ns(), latency_ns);
        assert_eq!(read.latency.max_ns(), latency_ns);
        // Little's law: the requests in flight are the rate times the mean latency, up to one
        // completion of all channels at either end.
        let rate = read.count as f64 / 8.0;
        let depth_seen = rate * read.latency.mean_ns() / 1e9;
        let one = channels as f64 / read.count as f64;
        near(depth_seen / m.achieved_depth, 1.0, one);
        let depths = m.windows.iter().map(Window::depth);
        depths.for_each(|depth_seen| near(depth_seen, f64::from(depth), 0.01));
        let windows = m
            .windows
            .iter()
            .filter_map(|one| one.ops.get(&OpKind::Read));
        let counted: u64 = windows.map(|op| op.latency.count()).sum();
        assert_eq!(counted, read.latency.count());
    }
}

/// Four channels of 500 µs: one trim a time is 2000/s; a pair takes two rounds.
#[test]
fn trims_and_the_writes_after_them_are_operations_of_their_own() {
    let load = |does: &[OpKind]| Workload {
        streams: Streams::doing(does),
        stop: after_ops(300),
        warmup_ns: 0,
        ..workload(2, 1)
    };
    let seen = measure(&load(&[OpKind::Trim]), DISK);
    let trim = &seen.ops[&OpKind::Trim];
    assert_eq!((seen.ops.len(), trim.count), (1, 300));
    assert_eq!(trim.latency.min_ns(), 500_000);
    assert_eq!(trim.latency.max_ns(), 500_000);
    assert_eq!((seen.asked.trim_bytes, seen.asked.total()), (300 * 8192, 0));
    let pairs = measure(&load(&[OpKind::Trim, OpKind::Write]), DISK);
    assert_eq!(pairs.wall_ns, 2 * seen.wall_ns);
    for kind in [OpKind::Trim, OpKind::Write] {
        let op = &pairs.ops[&kind];
        assert_eq!(op.count, 300);
        assert_eq!(op.bytes, 300 * 8192);
        assert_eq!(op.short, 0, "{kind:?}");
        assert_eq!(op.latency.min_ns(), 500_000);
        assert_eq!(op.latency.max_ns(), 500_000);
    }
    assert_eq!(pairs.asked.trim_bytes, 300 * 8192);
    assert_eq!(pairs.asked.write_bytes, 300 * 8192);
}
