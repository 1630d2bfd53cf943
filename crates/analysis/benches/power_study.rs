//! How often verdicts are right: pairs of runs on simulated disks whose speed differs by a known
//! share, under many kinds of noise, through the records that the program saves. docs/compare.md
//! holds the table. Run by hand: `cargo bench -p diskproof-analysis --features studies --bench
//! power_study -- 60`; the number is that of pairs of each kind, 6 unless given. `KIND=drift`,
//! `RUNS=3` and `DEPTH=8` select a kind of noise, runs a side and a queue depth.

use diskproof_analysis::compare::{MARGIN, Question, Run, RunGroup, compare};
use diskproof_analysis::fixture;
use diskproof_analysis::fixture::test_rng::TestRng;
use diskproof_model::comparison::{MetricComparison, Verdict};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::{OpKind, OpMeasurement, SERIES_INTERVAL_NS};
use diskproof_model::record::Record;
use diskproof_model::series::{Cell, TimeSeries};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A number from an environment variable, or `otherwise`.
fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(otherwise)
}

fn group<'a>(label: &str, records: &'a [Record]) -> RunGroup<'a> {
    let mut runs = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let name = format!("{label}{index}");
        runs.push(Run { name, record });
    }
    RunGroup {
        label: label.to_owned(),
        runs,
    }
}

fn metrics(a: &[Record], b: &[Record]) -> Vec<MetricComparison> {
    let question = Question {
        tool: fixture::record().tool,
        margin: MARGIN,
        baseline: group("a", a),
        candidates: vec![group("b", b)],
        history: Vec::new(),
        limits: Vec::new(),
    };
    let comparison = compare(&question).expect("both sides have runs");
    comparison
        .candidates
        .into_iter()
        .flat_map(|candidate| candidate.metrics)
        .collect()
}

/// The noise of request times. Every kind has the same mean of 1.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Noise {
    /// Every request takes the same time.
    Fixed,
    /// Evenly distributed between half and one and a half.
    Even,
    /// Exponentially distributed, like a queue somewhere below.
    Exponential,
    /// A pace that wanders by a share (first number), with a memory of so many seconds (second).
    Wandering(f64, f64),
    /// A cache answers most requests, the medium the others.
    Bimodal,
    /// A few requests take very long: a Pareto tail with this index.
    HeavyTail(f64),
    /// The disk stalls so many times a second of operations, for 20 ms on average.
    Stalls(f64),
    /// Two paces 20 % apart, each kept for so many seconds on average.
    Regimes(f64),
    /// Slower by this share at the end of the run than at its beginning.
    Drift(f64),
    /// Another pace in every run, by this share.
    Days(f64),
}

#[derive(Debug, Clone, Copy)]
struct NoisyDisk {
    kind: Noise,
    /// The mean time of a request.
    mean_ns: f64,
    channels: usize,
    depth: usize,
}

/// The pace changes once in this time, in seconds.
const STEP_S: f64 = 0.01;

/// The state of a disk's noise, in virtual time.
struct NoiseState {
    kind: Noise,
    rng: TestRng,
    /// The length of the run.
    seconds: f64,
    step: u64,
    wander: f64,
    slow: bool,
    day: f64,
}

impl NoiseState {
    fn new(kind: Noise, seconds: f64, seed: u64) -> Self {
        let mut rng = TestRng(seed.wrapping_mul(0xD134_2543_DE82_EF95));
        let (wander, slow, day) = (rng.normal(), rng.share() < 0.5, rng.normal());
        Self {
            kind,
            rng,
            seconds,
            step: 0,
            wander,
            slow,
            day,
        }
    }

    /// The time of a request that begins at this second, as a multiple of the mean.
    fn factor(&mut self, second: f64) -> f64 {
        while (self.step as f64) < second / STEP_S {
            self.step += 1;
            match self.kind {
                Noise::Wandering(_, stays) => {
                    let phi = (-STEP_S / stays).exp();
                    self.wander = phi * self.wander + (1.0 - phi * phi).sqrt() * self.rng.normal();
                }
                Noise::Regimes(stays) if self.rng.share() < STEP_S / stays => {
                    self.slow = !self.slow
                }
                _ => {}
            }
        }
        let some = 0.8 + 0.2 * self.rng.exponential();
        match self.kind {
            Noise::Fixed => 1.0,
            Noise::Even => 0.5 + self.rng.share(),
            Noise::Exponential => self.rng.exponential(),
            Noise::Wandering(by, _) => some * (by * self.wander - by * by / 2.0).exp(),
            Noise::Bimodal => {
                if self.rng.share() < 0.9 {
                    0.1 * some
                } else {
                    9.1 * some
                }
            }
            Noise::HeavyTail(index) => {
                0.5 + 0.5 * (index - 1.0) / index * (1.0 - self.rng.share()).powf(-1.0 / index)
            }
            Noise::Stalls(_) => some,
            Noise::Regimes(_) => some * if self.slow { 1.1 } else { 0.9 },
            Noise::Drift(by) => some * (1.0 + by * (second / self.seconds - 0.5)),
            Noise::Days(by) => some * (by * self.day).exp(),
        }
    }
}

impl NoisyDisk {
    /// The measurement of a run of so many seconds, in virtual time.
    fn measure(self, speed: f64, seconds: f64, seed: u64) -> OpMeasurement {
        let mut pace = NoiseState::new(self.kind, seconds, seed);
        let mut free = vec![0.0_f64; self.channels];
        let mut in_flight = BinaryHeap::new();
        let (mut latency, mut series) =
            (LatencyHistogram::new(), TimeSeries::new(SERIES_INTERVAL_NS));
        let mut submit = |now: f64, in_flight: &mut BinaryHeap<_>| {
            let channel = free
                .iter_mut()
                .min_by(|a, b| a.total_cmp(b))
                .expect("a disk has a channel");
            let begin = channel.max(now);
            let mut ns = self.mean_ns / speed * pace.factor(begin / 1e9);
            if let Noise::Stalls(rate) = pace.kind
                && pace.rng.share() < rate * self.mean_ns / 1e9
            {
                ns += 20e6 / speed * pace.rng.exponential();
            }
            *channel = begin + ns;
            in_flight.push(Reverse((*channel as u64, now as u64)));
        };
        (0..self.depth).for_each(|_| submit(0.0, &mut in_flight));
        while let Some(Reverse((done, begun))) = in_flight
            .pop()
            .filter(|done| done.0.0 as f64 <= seconds * 1e9)
        {
            latency.record(done - begun);
            series.add(
                done,
                &Cell {
                    ops: 1,
                    bytes: 8192,
                    errors: 0,
                    latency_max_ns: done - begun,
                    latency_sum_ns: done - begun,
                },
                8192,
            );
            submit(done as f64, &mut in_flight);
        }
        let total = series.total();
        OpMeasurement {
            count: total.ops,
            bytes: total.bytes,
            latency,
            series,
            ..OpMeasurement::default()
        }
    }

    /// The record that the program would save of such a run.
    fn run(self, speed: f64, seconds: f64, seed: u64) -> Record {
        let name = if self.depth == 1 {
            "random-read-d1"
        } else {
            "random-read-d32"
        };
        let mut run = fixture::run();
        run.measurements.retain(|m| m.workload.name == name);
        run.facts.plan.workloads_mut().retain(|w| w.name == name);
        run.facts.run_id = format!("{speed} {seed}");
        run.measurements[0].workload.depth = self.depth as u32;
        run.measurements[0].wall_ns = (seconds * 1e9) as u64;
        run.measurements[0].ops =
            BTreeMap::from([(OpKind::Read, self.measure(speed, seconds, seed))]);
        fixture::judge(run)
    }
}

/// The verdicts on the pairs of one kind.
#[derive(Debug, Default)]
struct PairTally {
    /// Verdicts on the headline metric.
    verdicts: BTreeMap<Verdict, u64>,
    /// The number of pairs in which a metric had a false verdict, by metric.
    wrong: BTreeMap<String, u64>,
}

impl PairTally {
    fn share(&self, verdict: Verdict) -> f64 {
        100.0 * self.verdicts.get(&verdict).copied().unwrap_or(0) as f64
            / self.verdicts.values().sum::<u64>().max(1) as f64
    }
}

fn is_faster(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Better | Verdict::FasterOnce)
}

fn is_slower(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Worse | Verdict::SlowerOnce)
}

/// Compares so many pairs of sides, each with `runs` runs.
fn outcome(disk: NoisyDisk, speed: f64, seconds: f64, pairs: u64, runs: u64) -> PairTally {
    let mut outcome = PairTally::default();
    for pair in 0..pairs {
        let side = |speed: f64, from: u64| -> Vec<Record> {
            (0..runs)
                .map(|n| disk.run(speed, seconds, from + pair * runs + n))
                .collect()
        };
        let (a, b) = (side(1.0, 1), side(speed, 1_000_001));
        for m in metrics(&a, &b) {
            let is_wrong = is_slower(m.verdict) || (is_faster(m.verdict) && speed == 1.0);
            if is_wrong {
                let name = m.metric.rsplit('.').next().unwrap_or_default().to_owned();
                *outcome.wrong.entry(name).or_default() += 1;
            }
            if m.headline {
                *outcome.verdicts.entry(m.verdict).or_default() += 1;
            }
        }
    }
    outcome
}

const KINDS: [(&str, Noise); 17] = [
    ("fixed", Noise::Fixed),
    ("even", Noise::Even),
    ("exponential", Noise::Exponential),
    ("wanders 2 %, 0.1 s", Noise::Wandering(0.02, 0.1)),
    ("wanders 2 %, 0.5 s", Noise::Wandering(0.02, 0.5)),
    ("wanders 5 %, 0.1 s", Noise::Wandering(0.05, 0.1)),
    ("wanders 5 %, 1 s", Noise::Wandering(0.05, 1.0)),
    ("bimodal", Noise::Bimodal),
    ("Pareto 2.5", Noise::HeavyTail(2.5)),
    ("Pareto 1.5", Noise::HeavyTail(1.5)),
    ("stalls 2/s", Noise::Stalls(2.0)),
    ("stalls 0.3/s", Noise::Stalls(0.3)),
    ("regimes 0.1 s", Noise::Regimes(0.1)),
    ("regimes 0.5 s", Noise::Regimes(0.5)),
    ("drift 5 %", Noise::Drift(0.05)),
    ("days 1 %", Noise::Days(0.01)),
    ("days 3 %", Noise::Days(0.03)),
];

fn main() {
    let pairs = std::env::args()
        .find_map(|text| text.parse().ok())
        .unwrap_or(6);
    let (runs, depth) = (setting("RUNS", 1), setting("DEPTH", 1) as usize);
    let wanted = std::env::var("KIND").unwrap_or_default();
    println!(
        "kind, seconds | same better worse faster-once slower-once undecided (%), wrong metrics, \
         at 1.0, 1.03, 1.1"
    );
    for (name, kind) in KINDS.into_iter().filter(|(name, _)| name.contains(&wanted)) {
        let disk = NoisyDisk {
            kind,
            mean_ns: 1e6,
            channels: depth.min(8),
            depth,
        };
        for seconds in [2.0, 5.0, 10.0, 30.0] {
            let mut line = format!("{name:<20} {seconds:>3} s");
            for speed in [1.0, 1.03, 1.1] {
                let tally = outcome(disk, speed, seconds, pairs, runs);
                for verdict in [
                    Verdict::Same,
                    Verdict::Better,
                    Verdict::Worse,
                    Verdict::FasterOnce,
                    Verdict::SlowerOnce,
                    Verdict::Undecided,
                ] {
                    line.push_str(&format!(" {:>3.0}", tally.share(verdict)));
                }
                line.push_str(&format!(" {:?} |", tally.wrong));
            }
            println!("{line}");
        }
    }
}
