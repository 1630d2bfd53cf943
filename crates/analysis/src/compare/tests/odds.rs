//! How often verdicts are right: pairs of runs on simulated disks whose speed differs by a known
//! share, under many kinds of noise, through the records that the program saves. docs/compare.md
//! tells the shares found with `ODDS=60` and an optimized build: `ODDS=60 cargo test --config
//! 'profile.test.package.diskproof-analysis.opt-level=2' -p diskproof-analysis compare::tests::odds
//! -- --nocapture --ignored`

use super::*;
use crate::dice::Dice;

/// A number that whoever asks for the table may set.
fn asked(name: &str, otherwise: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(otherwise)
}

/// What makes one request take longer than another. Every kind has the same mean of 1.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// Nothing.
    Fixed,
    /// Half of it is by chance, evenly.
    Even,
    /// All of it is: a queue somewhere below.
    Exponential,
    /// A pace that wanders by a share, and stays where it is for so many seconds.
    Wandering(f64, f64),
    /// A cache below answers most requests, the medium the others.
    Bimodal,
    /// Few take very long: a Pareto tail of this index.
    HeavyTail(f64),
    /// So many times in a second of operations the disk stands still for 20 ms on average.
    Stalls(f64),
    /// Two paces 20 % apart, each kept for so many seconds on average.
    Regimes(f64),
    /// Slower by this share at the end of the run than at its beginning.
    Drift(f64),
    /// Another pace in every run, by this share.
    Days(f64),
}

/// A disk that is to be measured.
#[derive(Debug, Clone, Copy)]
struct Disk {
    kind: Kind,
    /// Mean time of a request.
    mean_ns: f64,
    channels: usize,
    depth: usize,
}

/// Standard deviation of a hundredth of a second's pace.
const STEP_S: f64 = 0.01;

/// The state of a disk's noise.
struct Pace {
    kind: Kind,
    dice: Dice,
    /// Length of the run.
    seconds: f64,
    step: u64,
    wander: f64,
    slow: bool,
    day: f64,
}

impl Pace {
    fn new(kind: Kind, seconds: f64, seed: u64) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0xD134_2543_DE82_EF95));
        let (wander, slow, day) = (dice.normal(), dice.share() < 0.5, dice.normal());
        Self {
            kind,
            dice,
            seconds,
            step: 0,
            wander,
            slow,
            day,
        }
    }

    /// How much longer than the mean a request takes that begins at this second.
    fn factor(&mut self, second: f64) -> f64 {
        while (self.step as f64) < second / STEP_S {
            self.step += 1;
            match self.kind {
                Kind::Wandering(_, stays) => {
                    let phi = (-STEP_S / stays).exp();
                    self.wander = phi * self.wander + (1.0 - phi * phi).sqrt() * self.dice.normal();
                }
                Kind::Regimes(stays) if self.dice.share() < STEP_S / stays => {
                    self.slow = !self.slow
                }
                _ => {}
            }
        }
        let some = 0.8 + 0.2 * self.dice.exponential();
        match self.kind {
            Kind::Fixed => 1.0,
            Kind::Even => 0.5 + self.dice.share(),
            Kind::Exponential => self.dice.exponential(),
            Kind::Wandering(by, _) => some * (by * self.wander - by * by / 2.0).exp(),
            Kind::Bimodal => {
                if self.dice.share() < 0.9 {
                    0.1 * some
                } else {
                    9.1 * some
                }
            }
            Kind::HeavyTail(index) => {
                0.5 + 0.5 * (index - 1.0) / index * (1.0 - self.dice.share()).powf(-1.0 / index)
            }
            Kind::Stalls(_) => some,
            Kind::Regimes(_) => some * if self.slow { 1.1 } else { 0.9 },
            Kind::Drift(by) => some * (1.0 + by * (second / self.seconds - 0.5)),
            Kind::Days(by) => some * (by * self.day).exp(),
        }
    }
}

impl Disk {
    /// What a run of so many seconds measures; in virtual time.
    fn measure(self, speed: f64, seconds: f64, seed: u64) -> OpMeasurement {
        let mut pace = Pace::new(self.kind, seconds, seed);
        let (mut free, mut in_flight) = (
            vec![0.0_f64; self.channels],
            std::collections::BinaryHeap::new(),
        );
        let (mut latency, mut series) =
            (LatencyHistogram::new(), TimeSeries::new(SERIES_INTERVAL_NS));
        let mut submit = |now: f64, in_flight: &mut std::collections::BinaryHeap<_>| {
            let channel = free.iter_mut().min_by(|a, b| a.total_cmp(b)).unwrap();
            let begin = channel.max(now);
            let mut ns = self.mean_ns / speed * pace.factor(begin / 1e9);
            if let Kind::Stalls(rate) = pace.kind
                && pace.dice.share() < rate * self.mean_ns / 1e9
            {
                ns += 20e6 / speed * pace.dice.exponential();
            }
            *channel = begin + ns;
            in_flight.push(std::cmp::Reverse((*channel as u64, now as u64)));
        };
        (0..self.depth).for_each(|_| submit(0.0, &mut in_flight));
        while let Some(std::cmp::Reverse((done, begun))) = in_flight
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

    /// The record that the program would save.
    fn run(self, speed: f64, seconds: f64, seed: u64) -> Record {
        let name = if self.depth == 1 {
            "random-read-d1"
        } else {
            "random-read-d32"
        };
        let mut run = healthy::run();
        run.1.retain(|m| m.workload.name == name);
        run.0.plan.workloads.retain(|w| w.name == name);
        run.0.run_id = format!("{speed} {seed}");
        run.1[0].workload.depth = self.depth as u32;
        run.1[0].wall_ns = (seconds * 1e9) as u64;
        run.1[0].ops = BTreeMap::from([(OpKind::Read, self.measure(speed, seconds, seed))]);
        healthy::judge(run)
    }
}

/// How the pairs of one kind came out.
#[derive(Debug, Default)]
struct Outcome {
    /// Of the headline.
    verdicts: BTreeMap<Verdict, u64>,
    /// Pairs in which any metric said what is not so.
    wrong: BTreeMap<String, u64>,
}

impl Outcome {
    fn share(&self, verdict: Verdict) -> f64 {
        100.0 * self.verdicts.get(&verdict).copied().unwrap_or(0) as f64
            / self.verdicts.values().sum::<u64>().max(1) as f64
    }
}

/// Holds so many pairs of sides of `runs` runs each against each other.
fn outcome(disk: Disk, speed: f64, seconds: f64, (pairs, runs): (u64, u64)) -> Outcome {
    let mut outcome = Outcome::default();
    for pair in 0..pairs {
        let side = |speed: f64, from: u64| -> Vec<Record> {
            (0..runs)
                .map(|n| disk.run(speed, seconds, from + pair * runs + n))
                .collect()
        };
        let (a, b) = (side(1.0, 1), side(speed, 1_000_001));
        for m in held(&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>()).metrics {
            let is_wrong =
                m.verdict == Verdict::Worse || (m.verdict == Verdict::Better && speed == 1.0);
            if is_wrong {
                *outcome
                    .wrong
                    .entry(m.metric.rsplit('.').next().unwrap().to_owned())
                    .or_default() += 1;
            }
            if m.headline {
                *outcome.verdicts.entry(m.verdict).or_default() += 1;
            }
        }
    }
    outcome
}

const KINDS: [(&str, Kind); 16] = [
    ("fixed", Kind::Fixed),
    ("even", Kind::Even),
    ("exponential", Kind::Exponential),
    ("wanders 2 %, 0.1 s", Kind::Wandering(0.02, 0.1)),
    ("wanders 2 %, 0.5 s", Kind::Wandering(0.02, 0.5)),
    ("wanders 5 %, 0.1 s", Kind::Wandering(0.05, 0.1)),
    ("wanders 5 %, 1 s", Kind::Wandering(0.05, 1.0)),
    ("bimodal", Kind::Bimodal),
    ("Pareto 2.5", Kind::HeavyTail(2.5)),
    ("Pareto 1.5", Kind::HeavyTail(1.5)),
    ("stalls 2/s", Kind::Stalls(2.0)),
    ("stalls 0.3/s", Kind::Stalls(0.3)),
    ("regimes 0.1 s", Kind::Regimes(0.1)),
    ("regimes 0.5 s", Kind::Regimes(0.5)),
    ("drift 5 %", Kind::Drift(0.05)),
    ("days 1 %", Kind::Days(0.01)),
];

/// Prints the table of docs/compare.md where the environment asks for it; else a corner of it, so
/// that it does not rot.
#[test]
fn table() {
    let (sizes, depth) = (
        (asked("ODDS", 1), asked("RUNS", 1)),
        asked("DEPTH", 1) as usize,
    );
    let wanted = std::env::var("KIND").unwrap_or_default();
    let lengths = if sizes.0 > 1 {
        &[2.0, 5.0, 10.0, 30.0][..]
    } else {
        &[2.0]
    };
    for (name, kind) in KINDS.into_iter().filter(|(name, _)| name.contains(&wanted)) {
        for &seconds in lengths {
            let disk = Disk {
                kind,
                mean_ns: 1e6,
                channels: depth.min(8),
                depth,
            };
            let mut line = format!("{name:<20} {seconds:>3} s");
            for speed in [1.0, 1.03, 1.1] {
                let o = outcome(disk, speed, seconds, sizes);
                let [same, better, worse, undecided] = [
                    Verdict::Same,
                    Verdict::Better,
                    Verdict::Worse,
                    Verdict::Undecided,
                ]
                .map(|v| o.share(v));
                line += &format!(
                    " | {same:>3.0} {better:>3.0} {worse:>3.0} {undecided:>3.0} {:?}",
                    o.wrong
                );
            }
            eprintln!("{line}");
        }
    }
}

/// One request at a time of 1 ms.
fn slow(kind: Kind) -> Disk {
    Disk {
        kind,
        mean_ns: 1e6,
        channels: 1,
        depth: 1,
    }
}

#[test]
fn ten_percent_are_never_reversed() {
    // A pace that stays as long as a run lasts is beyond what one run can tell, and that of a day
    // too.
    let told = KINDS.into_iter().filter(|(_, kind)| {
        !matches!(kind, Kind::Days(_) | Kind::Regimes(0.5)) && *kind != Kind::Wandering(0.05, 1.0)
    });
    for (name, kind) in told {
        let outcome = outcome(slow(kind), 1.1, 5.0, (6, 1));
        assert!(
            outcome.share(Verdict::Worse) == 0.0 && outcome.wrong.is_empty(),
            "{name}: {outcome:?}"
        );
    }
}

#[test]
fn who_takes_the_advice_gets_a_verdict() {
    // Of what is undecided after 2 s, most must be decided by the advised time; what advises more
    // than 60 s is left out to save time.
    let (mut advised, mut decided) = (0, 0);
    for (kind, speed) in [
        (Kind::Even, 1.0),
        (Kind::Even, 1.03),
        (Kind::Exponential, 1.1),
    ] {
        for seed in 0..16 {
            let held = |seconds: f64, from: u64| {
                let (a, b) = (
                    slow(kind).run(1.0, seconds, from + seed),
                    slow(kind).run(speed, seconds, from + seed + 500),
                );
                held(&[&a], &[&b])
                    .metrics
                    .into_iter()
                    .find(|m| m.headline)
                    .unwrap()
            };
            let first = held(2.0, 1);
            let Some(seconds) = first
                .needed
                .and_then(|needed| needed.measure_ns)
                .map(|ns| ns as f64 / 1e9)
                .filter(|s| *s <= 60.0)
            else {
                continue;
            };
            assert!(
                first.verdict == Verdict::Undecided && seconds > 2.0,
                "{first:?}"
            );
            let then = held(seconds, 10_000).verdict;
            (advised, decided) = (advised + 1, decided + u32::from(then != Verdict::Undecided));
        }
    }
    assert!(
        advised >= 12 && decided * 10 >= advised * 7,
        "{decided} of {advised} decided"
    );
}
