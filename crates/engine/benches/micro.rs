//! What each part of the hot loop costs per I/O. Run by `bench/micro`; figures in
//! docs/performance.md.
#![allow(missing_docs)] // the benchmarks' names say what they are

use diskproof_engine::Extent;
use diskproof_engine::clock::{Clock as _, MonotonicClock, WorkerClock};
use diskproof_engine::pattern::{Pattern, Step};
use diskproof_engine::random::Random;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::plan::{Access, Distribution, Workload};
use diskproof_model::stream::Streams;
use divan::{Bencher, black_box};

fn main() {
    // Enough iterations a sample that the timer (20 ns) does not show.
    divan::Divan::from_args().sample_size(2_000).main();
}

/// Latencies around 100 µs, as a disk gives them.
fn latencies() -> Vec<u64> {
    let mut random = Random::new(1, 0);
    (0..1024).map(|_| 60_000 + random.below(80_000)).collect()
}

/// CLOCK_MONOTONIC by the vDSO.
#[divan::bench]
fn clock_monotonic() -> u64 {
    MonotonicClock.now()
}

/// What the hot loop reads, once per batch.
#[divan::bench]
fn clock_worker(bencher: Bencher) {
    let clock = WorkerClock::new();
    bencher.bench_local(|| clock.now());
}

#[divan::bench]
fn random_below(bencher: Bencher) {
    let mut random = Random::new(1, 0);
    bencher.bench_local(|| random.below(black_box(1 << 20)));
}

/// One latency into its bucket: the hot loop's share of the bookkeeping.
#[divan::bench]
fn histogram_bump(bencher: Bencher) {
    let (mut histogram, latencies, mut at) = (LatencyHistogram::new(), latencies(), 0);
    bencher.bench_local(|| {
        at = (at + 1) % 1024;
        histogram.bump(black_box(latencies[at]), 1);
    });
}

#[divan::bench]
fn histogram_record(bencher: Bencher) {
    let (mut histogram, latencies, mut at) = (LatencyHistogram::new(), latencies(), 0);
    bencher.bench_local(|| {
        at = (at + 1) % 1024;
        histogram.record(black_box(latencies[at]));
    });
}

/// Once per worker and kind of operation, at the end.
#[divan::bench]
fn histogram_merge(bencher: Bencher) {
    let mut one = LatencyHistogram::new();
    latencies().into_iter().for_each(|ns| one.record(ns));
    let mut sum = LatencyHistogram::new();
    bencher.bench_local(|| sum.merge(black_box(&one)));
}

fn pattern(access: Access, read_permille: u16) -> Pattern {
    let workload = Workload {
        streams: Streams::with_reads(read_permille),
        access,
        ..Workload::named("micro")
    };
    Pattern::new(
        &workload,
        Extent {
            start: 0,
            length: 1 << 40,
        },
        1,
        0,
    )
}

fn bench_steps(bencher: Bencher, mut pattern: Pattern) {
    bencher.bench_local(|| -> Step { pattern.step() });
}

#[divan::bench]
fn step_sequential(bencher: Bencher) {
    bench_steps(bencher, pattern(Access::Sequential, 1000));
}

#[divan::bench]
fn step_random(bencher: Bencher) {
    bench_steps(
        bencher,
        pattern(
            Access::Random {
                distribution: Distribution::Uniform,
            },
            1000,
        ),
    );
}

#[divan::bench]
fn step_random_mixed(bencher: Bencher) {
    bench_steps(
        bencher,
        pattern(
            Access::Random {
                distribution: Distribution::Uniform,
            },
            500,
        ),
    );
}

#[divan::bench]
fn step_hot_cold(bencher: Bencher) {
    let distribution = Distribution::HotCold {
        access_percent: 80.0,
        size_percent: 20.0,
    };
    bench_steps(bencher, pattern(Access::Random { distribution }, 1000));
}

#[divan::bench]
fn step_zipf(bencher: Bencher) {
    bench_steps(
        bencher,
        pattern(
            Access::Random {
                distribution: Distribution::Zipf { theta: 1.1 },
            },
            1000,
        ),
    );
}
