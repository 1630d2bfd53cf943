//! How often a run that its precision ends is wrong, on disks of many tempers: the evidence for
//! `estimate::may_end`, whose comment holds the table. Run by hand: `cargo bench -p
//! diskproof-analysis --features studies --bench stopping_study -- 120`; the number is that of runs
//! of each kind, 20 unless given.

use diskproof_analysis::estimate::{LONG_ENOUGH_NS, precise_enough, rate};
use diskproof_analysis::fixture::test_rng::TestRng;
use diskproof_model::series::{Cell, TimeSeries};

/// A cell of the series.
const CELL_NS: u64 = 10_000_000;
/// A run of 30 s.
const CELLS: usize = 3000;
/// A run is examined four times a second, as the program does.
const LOOK_CELLS: usize = 25;
/// The precision at which runs end.
const GOAL: f64 = 0.02;
/// Operations per cell of a disk that nothing disturbs.
const PACE: f64 = 1000.0;
/// No run is ended before this cell: one column of the table each.
const FLOORS: [usize; 5] = [100, 200, 300, 500, (LONG_ENOUGH_NS / CELL_NS) as usize];

fn series(counts: &[f64]) -> TimeSeries {
    let mut series = TimeSeries::new(CELL_NS);
    let cell = |c: &f64| Cell {
        ops: c.round().max(0.0) as u64,
        ..Cell::default()
    };
    series.cells = counts.iter().map(cell).collect();
    series
}

/// The counts of a disk's cells, and the true count at a given cell.
struct PacedDisk {
    counts: Vec<f64>,
    truth: Box<dyn Fn(usize) -> f64>,
}

/// Independent noise around `level(cell)` times the pace.
fn noisy(
    rng: &mut TestRng,
    sd: f64,
    mut level: impl FnMut(&mut TestRng, usize) -> f64,
) -> Vec<f64> {
    (0..CELLS)
        .map(|cell| PACE * level(rng, cell) * (1.0 + sd * rng.normal()))
        .collect()
}

fn steady(counts: Vec<f64>, truth: f64) -> PacedDisk {
    PacedDisk {
        counts,
        truth: Box::new(move |_| truth),
    }
}

/// A disk that wanders about its pace with this standard deviation, and forgets where it was within
/// `tau_s` (a first-order process).
fn wandering(rng: &mut TestRng, tau_s: f64, sd: f64) -> PacedDisk {
    let keeps = (-0.01 / tau_s).exp();
    let mut x = rng.normal();
    let counts = noisy(rng, 0.05, |rng, _| {
        x = keeps * x + (1.0 - keeps * keeps).sqrt() * rng.normal();
        1.0 + sd * x
    });
    steady(counts, PACE)
}

/// A disk that falls evenly by `share` in 30 s. The true rate is that at the end of the run.
fn falling(rng: &mut TestRng, share: f64) -> PacedDisk {
    let level = move |cell: usize| 1.0 + share * (0.5 - cell as f64 / CELLS as f64);
    PacedDisk {
        counts: noisy(rng, 0.05, |_, cell| level(cell)),
        truth: Box::new(move |cell| PACE * level(cell)),
    }
}

/// A disk with one step down by a fifth within the first 20 s.
fn stepping(rng: &mut TestRng) -> PacedDisk {
    let step_cell = rng.whole(50, 2000) as usize;
    let level = move |cell: usize| if cell < step_cell { 1.25 } else { 1.0 };
    PacedDisk {
        counts: noisy(rng, 0.05, |_, cell| level(cell)),
        truth: Box::new(move |cell| PACE * level(cell)),
    }
}

/// A disk that pauses at random, once in `every` cells on average, for `length` cells in which
/// `rest` of the pace is left.
fn pausing(rng: &mut TestRng, every: f64, length: usize, rest: f64) -> PacedDisk {
    let mut left = 0;
    let counts = noisy(rng, 0.05, |rng, _| {
        if left == 0 && rng.share() < 1.0 / every {
            left = length;
        }
        left = left.saturating_sub(1);
        if left > 0 { rest } else { 1.0 }
    });
    let length = length as f64 - 1.0;
    steady(counts, PACE * (every + rest * length) / (every + length))
}

/// 32 requests at a time, every 23.7 ms.
fn in_convoys(rng: &mut TestRng) -> PacedDisk {
    let (every, begin) = (2.37, rng.share() * 2.37);
    let reached = |cell: usize| ((cell as f64 + begin) / every).floor();
    steady(
        (0..CELLS)
            .map(|cell| (reached(cell + 1) - reached(cell)) * 32.0)
            .collect(),
        32.0 / every,
    )
}

fn warming_up(rng: &mut TestRng) -> PacedDisk {
    steady(
        noisy(rng, 0.05, |_, cell| {
            1.0 - 0.5 * (-(cell as f64) / 100.0).exp()
        }),
        PACE,
    )
}

type Temper = (&'static str, fn(&mut TestRng) -> PacedDisk);
const TEMPERS: [Temper; 16] = [
    ("even", |_| steady(vec![PACE; CELLS], PACE)),
    ("noise 10 %", |rng| {
        steady(noisy(rng, 0.1, |_, _| 1.0), PACE)
    }),
    ("noise 50 %", |rng| {
        steady(noisy(rng, 0.5, |_, _| 1.0), PACE)
    }),
    ("convoys", in_convoys),
    ("wander 0.1 s, 10 %", |rng| wandering(rng, 0.1, 0.1)),
    ("wander 0.5 s, 5 %", |rng| wandering(rng, 0.5, 0.05)),
    ("wander 1 s, 3 %", |rng| wandering(rng, 1.0, 0.03)),
    ("wander 2 s, 3 %", |rng| wandering(rng, 2.0, 0.03)),
    ("wander 2 s, 5 %", |rng| wandering(rng, 2.0, 0.05)),
    ("wander 5 s, 5 %", |rng| wandering(rng, 5.0, 0.05)),
    ("drift -10 % in 30 s", |rng| falling(rng, 0.1)),
    ("drift -20 % in 30 s", |rng| falling(rng, 0.2)),
    ("step -20 %", stepping),
    ("warm-up of 1 s", warming_up),
    ("pauses 50 ms, 1/s", |rng| pausing(rng, 100.0, 6, 0.0)),
    ("pauses 200 ms, 1/3 s", |rng| pausing(rng, 300.0, 21, 0.2)),
];

/// For each of [`FLOORS`]: the runs that were ended, and those of them with an error beyond the
/// goal.
fn ended(
    temper: fn(&mut TestRng) -> PacedDisk,
    runs: usize,
    floors: &[usize],
) -> Vec<(usize, usize)> {
    let (mut rng, mut counts) = (TestRng(11), vec![(0, 0); floors.len()]);
    for _ in 0..runs {
        let disk = temper(&mut rng);
        let mut open: Vec<usize> = (0..floors.len()).collect();
        for cell in (floors[0]..CELLS).step_by(LOOK_CELLS) {
            let is_due = open.iter().any(|column| cell >= floors[*column]);
            let seen = series(&disk.counts[..cell]);
            if !is_due || !precise_enough(&seen, GOAL) {
                continue;
            }
            let (measured, truth) = (
                rate(&seen, cell as u64 * CELL_NS).ops.value / 100.0,
                (disk.truth)(cell),
            );
            open.retain(|column| {
                if cell >= floors[*column] {
                    counts[*column].0 += 1;
                    counts[*column].1 += usize::from((measured - truth).abs() > GOAL * truth);
                }
                cell < floors[*column]
            });
            if open.is_empty() {
                break;
            }
        }
    }
    counts
}

fn main() {
    let runs = std::env::args()
        .find_map(|text| text.parse().ok())
        .unwrap_or(20_usize);
    let percent = |n: usize| (n * 100) as f64 / runs as f64;
    for (name, temper) in TEMPERS {
        let columns: Vec<String> = ended(temper, runs, &FLOORS)
            .iter()
            .map(|(all, bad)| format!("{:>5.1} of {:>3.0}", percent(*bad), percent(*all)))
            .collect();
        println!("{name:<22} {}", columns.join(" | "));
    }
}
