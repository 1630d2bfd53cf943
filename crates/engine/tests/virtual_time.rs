//! The measuring path under a fake clock: every figure is known in advance.
#![allow(clippy::unwrap_used)] // a failed step fails the test

use diskproof_engine::{FakeClock, FakeDisk, simulate, simulate_on};
use diskproof_model::measurement::{
    Interruption, InterruptionKind, OpKind, SERIES_CELLS_MAX, StopReason,
};
use diskproof_model::plan::*;
use diskproof_model::progress::{Control, Progress, Watch};
use diskproof_model::series::Cell;
use diskproof_model::stream::Streams;

struct Patient;

impl Watch for Patient {
    fn tick(&mut self, _: &Progress<'_>) -> Control {
        Control::Continue
    }
}

fn workload(depth: u32, seconds: u64) -> Workload {
    Workload {
        depth,
        stop: Stop {
            time_ns: Some(seconds * 1_000_000_000),
            ..Stop::default()
        },
        warmup_ns: 100_000_000,
        ..Workload::named("virtual")
    }
}

const DISK: FakeDisk = FakeDisk {
    service_ns: 500_000,
    jitter_ns: 0,
    channels: 4,
    size_bytes: 1 << 30,
};

#[test]
fn simulated_rate_latency_and_depth_are_exact() {
    let seen = simulate(&workload(16, 2), DISK, 1, &mut Patient).unwrap();
    let read = &seen.ops[&OpKind::Read];
    // 4 channels of 500 µs: 8000/s; 16 in flight: 2 ms each. What is in flight at the end is
    // drained and counted.
    assert_eq!(read.series.total().ops, 16_000);
    assert_eq!((read.count, read.latency.count()), (16_000, 16_000 + 16));
    assert_eq!(seen.wall_ns, 2_000_000_000);
    assert_eq!(
        (read.latency.min_ns(), read.latency.max_ns()),
        (2_000_000, 2_000_000)
    );
    assert_eq!(seen.stopped, StopReason::Time);
    assert!(
        (seen.achieved_depth - 16.0).abs() < 1e-6,
        "{}",
        seen.achieved_depth
    );
    assert_eq!(
        seen.asked.read_bytes,
        (16_016 + 4 * 199) * 8192,
        "the drain and the warm-up, up to its last instant, included"
    );
}

#[test]
fn depth_one_has_no_dead_time() {
    let seen = simulate(
        &workload(1, 1),
        FakeDisk {
            channels: 1,
            ..DISK
        },
        1,
        &mut Patient,
    )
    .unwrap();
    assert_eq!(seen.ops[&OpKind::Read].latency.max_ns(), 500_000);
    assert!(seen.dead_time_ns.unwrap() < 1.0, "{:?}", seen.dead_time_ns);
}

#[test]
fn slow_disk_is_measured_for_the_requested_time() {
    // 90 ms each, one at a time: none completes just when the warm-up or the time ends.
    let slow = FakeDisk {
        service_ns: 90_000_000,
        channels: 1,
        ..DISK
    };
    for depth in [1, 32] {
        let seen = simulate(&workload(depth, 2), slow, 1, &mut Patient).unwrap();
        let read = &seen.ops[&OpKind::Read];
        assert_eq!(
            (seen.wall_ns, read.series.total().ops),
            (2_000_000_000, 2_100 / 90 - 100 / 90),
            "at depth {depth}"
        );
        // Of those in flight at either end, the part within the time counts.
        assert!(
            (seen.achieved_depth - f64::from(depth)).abs() < 1e-6,
            "{} at depth {depth}",
            seen.achieved_depth
        );
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
        let disk = FakeDisk {
            service_ns: service_ms * 1_000_000,
            channels,
            ..DISK
        };
        let seen = simulate(&workload(depth, 2), disk, 1, &mut Patient).unwrap();
        let read = &seen.ops[&OpKind::Read];
        assert_eq!(seen.stopped, StopReason::Time);
        assert_eq!(read.count, ops, "{service_ms} ms");
        assert_eq!(read.series.total().ops, ops, "{service_ms} ms");
        let rate = read.count as f64 * 1e9 / seen.wall_ns as f64;
        let truth = channels as f64 * 1e3 / service_ms as f64;
        assert!(
            (rate / truth - 1.0).abs() < 0.01,
            "{rate} is not {truth} at {service_ms} ms"
        );
        assert!(
            (seen.achieved_depth - f64::from(depth)).abs() < 0.01,
            "{} at {service_ms} ms",
            seen.achieved_depth
        );
        assert!(
            (read.series.cells.len() as u64 * read.series.interval_ns).abs_diff(seen.wall_ns)
                <= read.series.interval_ns
        );
    }
}

#[test]
fn stall_counts_in_full_from_intended_start() {
    // One slow service of 1.5 s among fast ones, 100 per second offered: everything that should
    // have started meanwhile waited.
    let paced = Workload {
        rate: Some(100.0),
        warmup_ns: 0,
        ..workload(1, 10)
    };
    let stalling = FakeDisk {
        service_ns: 1_500_000_000,
        channels: 1,
        jitter_ns: 0,
        size_bytes: 1 << 30,
    };
    let seen = simulate(&paced, stalling, 1, &mut Patient).unwrap();
    let read = &seen.ops[&OpKind::Read];
    assert_eq!(
        read.latency.max_ns(),
        1_500_000_000,
        "the closed view: each takes 1.5 s"
    );
    let intended = read.latency_intended.as_ref().unwrap();
    assert!(
        intended.max_ns() > 8_000_000_000,
        "the users' view: {}",
        intended.max_ns()
    );
    assert!(seen.missed_starts.unwrap() >= 5);
}

#[test]
fn starts_never_made_count_as_missed_with_their_wait() {
    // Four requests are in flight when the time ends, and everything else that was due by then
    // still waits: 100 per second for 1 s, after a warm-up of 0.1 s.
    let paced = Workload {
        rate: Some(100.0),
        ..workload(4, 1)
    };
    let hung = FakeDisk {
        service_ns: 3_000_000_000,
        channels: 4,
        jitter_ns: 0,
        size_bytes: 1 << 30,
    };
    let seen = simulate(&paced, hung, 1, &mut Patient).unwrap();
    let read = &seen.ops[&OpKind::Read];
    assert_eq!(
        (read.count, read.latency.count()),
        (0, 4),
        "what comes after the end is no rate, but a latency"
    );
    let intended = read.latency_intended.as_ref().unwrap();
    // The last one, due 10 ms before the end, has waited for that long.
    assert_eq!(
        (intended.count(), intended.min_ns(), intended.max_ns()),
        (4 + 100, 10_000_000, 3_000_000_000)
    );
    assert_eq!(seen.missed_starts, Some(100));
}

#[test]
fn backlog_of_warm_up_counts_as_missed() {
    // A million due per second: all that start in a second were due in its first instants.
    let seen = simulate(
        &Workload {
            rate: Some(1e6),
            ..workload(1, 1)
        },
        FakeDisk {
            channels: 1,
            ..DISK
        },
        1,
        &mut Patient,
    )
    .unwrap();
    let made = seen.ops[&OpKind::Read].count;
    assert!(
        seen.missed_starts.unwrap() > 990_000 + made,
        "{:?} of {made}",
        seen.missed_starts
    );
}

#[test]
fn equal_seeds_give_equal_measurements() {
    let jitter = FakeDisk {
        jitter_ns: 400_000,
        ..DISK
    };
    let once = simulate(&workload(8, 1), jitter, 42, &mut Patient).unwrap();
    assert_eq!(
        once,
        simulate(&workload(8, 1), jitter, 42, &mut Patient).unwrap()
    );
    assert_ne!(
        once,
        simulate(&workload(8, 1), jitter, 43, &mut Patient).unwrap()
    );
}

#[test]
fn hour_long_series_is_bounded_and_keeps_maxima() {
    let seconds = 3600;
    let seen = simulate(
        &workload(4, seconds),
        FakeDisk {
            jitter_ns: 3_000_000,
            ..DISK
        },
        7,
        &mut Patient,
    )
    .unwrap();
    let read = &seen.ops[&OpKind::Read];
    assert_eq!(seen.wall_ns, seconds * 1_000_000_000);
    assert!(
        read.count > 1_000_000 && read.errors.is_empty(),
        "{}",
        read.count
    );
    // Cells double their length instead of growing in number, and cover every nanosecond.
    let series = &read.series;
    assert!(
        (SERIES_CELLS_MAX / 2..=SERIES_CELLS_MAX).contains(&series.cells.len()),
        "{}",
        series.cells.len()
    );
    assert!(series.interval_ns * series.cells.len() as u64 >= seen.wall_ns);
    assert_eq!(
        (series.total().ops, series.total().bytes),
        (read.count, read.bytes)
    );
    let longest = |cells: &[Cell]| cells.iter().map(|cell| cell.latency_max_ns).max().unwrap();
    // What is in flight at the end counts as latency, but belongs to no cell.
    assert!(
        longest(&series.cells) <= read.latency.max_ns() && longest(&series.cells) > 3_400_000,
        "{}",
        longest(&series.cells)
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
    assert_eq!(
        read.latency.max_ns(),
        2_000_000,
        "no latency has the stop in it"
    );
    let worst = read
        .series
        .cells
        .iter()
        .map(|cell| cell.latency_max_ns)
        .max();
    assert_eq!(worst, Some(2_000_000));
    assert!(
        read.series.cells.iter().all(|cell| cell.ops > 0),
        "no cell is empty"
    );
    assert!(
        (seen.achieved_depth - 16.0).abs() < 0.1,
        "{}",
        seen.achieved_depth
    );
    assert_eq!(
        seen.interruptions,
        [Interruption {
            start_ns: 600_123_456,
            length_ns: 2_000_000_000,
            kind: InterruptionKind::Stopped,
            requests: 16,
        }]
    );
    // Every byte that the disk moved is counted, also that of the interrupted requests.
    let moved = read.latency.count() + 16 + 4 * 199;
    assert_eq!(seen.asked.read_bytes, moved * 8192);
}

#[test]
fn stop_of_the_process_makes_no_start_late() {
    let paced = Workload {
        rate: Some(100.0),
        ..workload(4, 2)
    };
    let seen = simulate_on(&stopped(), &paced, DISK, 1, &mut Patient).unwrap();
    let read = &seen.ops[&OpKind::Read];
    assert_eq!(seen.missed_starts, Some(0));
    assert!((199..=200).contains(&read.count), "{}", read.count);
    let intended = read.latency_intended.as_ref().unwrap();
    assert!(intended.max_ns() < 1_000_000, "{}", intended.max_ns());
}

#[test]
fn stop_of_the_process_excludes_commits_and_syncs_in_flight() {
    let commits = Workload {
        streams: Streams::with_reads(0),
        sync: SyncPolicy::Every {
            writes: 1,
            call: SyncCall::Fdatasync,
        },
        ..workload(1, 2)
    };
    let whole = simulate(&commits, DISK, 1, &mut Patient).unwrap();
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
        let disk = FakeDisk {
            service_ns,
            jitter_ns: 0,
            channels,
            size_bytes: 1 << 30,
        };
        let workload = Workload {
            depth,
            warmup_ns: 20_000_000,
            stop: Stop {
                time_ns: Some(8_000_000_000),
                ..Stop::default()
            },
            ..Workload::named("slow")
        };
        let m = simulate(&workload, disk, 1, &mut Patient).unwrap();
        let latency_ns = service_ns * u64::from(depth) / channels as u64;
        let read = &m.ops[&OpKind::Read];
        assert_eq!(m.wall_ns, 8_000_000_000);
        assert!(m.start_ns >= latency_ns.max(20_000_000), "{}", m.start_ns);
        assert_eq!(
            (read.latency.min_ns(), read.latency.max_ns()),
            (latency_ns, latency_ns)
        );
        // Little's law: the requests in flight are the rate times the mean latency, up to one
        // completion of all channels at either end.
        let rate = read.count as f64 / 8.0;
        let depth_seen = rate * read.latency.mean_ns() / 1e9;
        let one = channels as f64 / read.count as f64;
        assert!(
            (depth_seen / m.achieved_depth - 1.0).abs() <= one,
            "{depth_seen} {m:?}"
        );
        let depths = m.windows.iter().map(diskproof_model::window::Window::depth);
        assert!(
            depths
                .clone()
                .all(|depth_seen| (depth_seen - f64::from(depth)).abs() < 0.01)
        );
        let latencies = m
            .windows
            .iter()
            .filter_map(|window| window.ops.get(&OpKind::Read));
        let counted: u64 = latencies.map(|op| op.latency.count()).sum();
        assert_eq!(counted, read.latency.count());
    }
}

/// Four channels of 500 µs: one trim a time is 2000/s; a pair takes two rounds.
#[test]
fn trims_and_the_writes_after_them_are_operations_of_their_own() {
    let load = |does: &[OpKind]| Workload {
        streams: Streams::doing(does),
        stop: Stop {
            ops: Some(300),
            ..Stop::default()
        },
        warmup_ns: 0,
        ..workload(2, 1)
    };
    let seen = simulate(&load(&[OpKind::Trim]), DISK, 1, &mut Patient).unwrap();
    let trim = &seen.ops[&OpKind::Trim];
    assert_eq!((seen.ops.len(), trim.count), (1, 300));
    assert_eq!(
        (trim.latency.min_ns(), trim.latency.max_ns()),
        (500_000, 500_000)
    );
    assert_eq!((seen.asked.trim_bytes, seen.asked.total()), (300 * 8192, 0));
    let pairs = simulate(&load(&[OpKind::Trim, OpKind::Write]), DISK, 1, &mut Patient).unwrap();
    assert_eq!(pairs.wall_ns, 2 * seen.wall_ns);
    for kind in [OpKind::Trim, OpKind::Write] {
        let op = &pairs.ops[&kind];
        assert_eq!(
            (op.count, op.bytes, op.short),
            (300, 300 * 8192, 0),
            "{kind:?}"
        );
        assert_eq!(
            (op.latency.min_ns(), op.latency.max_ns()),
            (500_000, 500_000)
        );
    }
    assert_eq!(
        (pairs.asked.trim_bytes, pairs.asked.write_bytes),
        (300 * 8192, 300 * 8192)
    );
}
