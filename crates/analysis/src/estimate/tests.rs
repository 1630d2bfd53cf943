//! Estimates on simulated series with known properties.

use super::*;
use crate::fixture::test_rng::TestRng;

const CELL_NS: u64 = 10_000_000;

#[test]
fn a_few_operations_in_many_cells_are_no_warm_up() {
    // One every two seconds for five seconds, the first at once: MSER would call the first a
    // warm-up, and the rate would be 0.4.
    let sparse = series((0..500).map(|cell| f64::from(u8::from(cell % 200 == 0))));
    let known = rate(&sparse, 500 * CELL_NS);
    assert_eq!((known.settling_ns, known.ops.value), (0, 0.6));
    let once = series((0..50).map(|cell| f64::from(u8::from(cell == 0))));
    assert_eq!(rate(&once, 50 * CELL_NS).ops.value, 2.0);
}

#[test]
fn what_was_done_before_a_disk_hung_is_no_warm_up() {
    let hung = series((0..200).map(|cell| if cell < 45 { 60.0 } else { 0.0 }));
    let known = rate(&hung, 200 * CELL_NS);
    assert_eq!(
        (known.settling_ns, known.settled, known.ops.value),
        (0, Some(false), 1350.0)
    );
}

fn series(counts: impl IntoIterator<Item = f64>) -> TimeSeries {
    let mut series = TimeSeries::new(CELL_NS);
    series.cells = counts
        .into_iter()
        .map(|c| {
            let ops = c.round().max(0.0) as u64;
            Cell {
                ops,
                bytes: ops * 8192,
                ..Cell::default()
            }
        })
        .collect();
    series
}

fn wall(series: &TimeSeries) -> u64 {
    series.cells.len() as u64 * series.interval_ns
}

/// First-order autoregressive noise around 1000 per cell, with a standard deviation of 100.
fn autoregressive(rng: &mut TestRng, phi: f64, cells: usize) -> Vec<f64> {
    let mut x = rng.normal();
    (0..cells)
        .map(|_| {
            x = phi * x + (1.0 - phi * phi).sqrt() * rng.normal();
            1000.0 + 100.0 * x
        })
        .collect()
}

fn ramp(rng: &mut TestRng, cells: usize) -> Vec<f64> {
    let noise = autoregressive(rng, 0.3, cells);
    noise
        .into_iter()
        .enumerate()
        .map(|(i, v)| v * (1.0 - 0.7 * (-(i as f64) / (cells as f64 / 20.0)).exp()))
        .collect()
}

fn bimodal(rng: &mut TestRng, cells: usize) -> Vec<f64> {
    (0..cells)
        .map(|_| if rng.share() < 0.2 { 200.0 } else { 1200.0 })
        .collect()
}

type Source = (&'static str, fn(&mut TestRng, usize) -> Vec<f64>);
const SOURCES: [Source; 5] = [
    ("independent", |rng, n| autoregressive(rng, 0.0, n)),
    ("rho 0.5", |rng, n| autoregressive(rng, 0.5, n)),
    ("rho 0.9", |rng, n| autoregressive(rng, 0.9, n)),
    ("warm-up", ramp),
    ("bimodal", bimodal),
];

fn covers(estimate: &Estimate) -> bool {
    (estimate.value - 100_000.0).abs() <= estimate.half_width_95.unwrap()
}

#[test]
fn intervals_cover_the_true_rate() {
    // ρ = 0.9 makes twenty cells worth one: 200 of them hold ten facts, too few for any method.
    for (name, source, cells) in SOURCES.into_iter().flat_map(|(name, source)| {
        let lengths: &[usize] = if name == "rho 0.9" {
            &[500, 2000]
        } else {
            &[200, 2000]
        };
        lengths.iter().map(move |cells| (name, source, *cells))
    }) {
        let mut rng = TestRng(7);
        let runs = 300;
        let estimates = (0..runs).map(|_| {
            let series = series(source(&mut rng, cells));
            rate(&series, wall(&series))
        });
        let (covering, settled) = estimates.fold((0, 0), |(c, s), r| {
            (
                c + i32::from(covers(&r.ops)),
                s + i32::from(r.settled == Some(true)),
            )
        });
        assert!(
            covering * 100 >= runs * 90,
            "{name}, {cells} cells: {covering} of {runs}"
        );
        // A ramp of a quarter of a short run now and then looks too long to be a warm-up.
        assert!(
            settled * 100 >= runs * 94,
            "{name}, {cells} cells: {settled} of {runs} settled"
        );
    }
}

#[test]
fn stopping_early_keeps_the_coverage() {
    for (name, source) in SOURCES {
        let mut rng = TestRng(9);
        let (runs, cells, goal) = (120, 3000, 0.03);
        let (mut covering, mut stopped) = (0, 0);
        for _ in 0..runs {
            let all = source(&mut rng, cells);
            let stop = (25..cells)
                .step_by(25)
                .find(|n| precise_enough(&series(all[..*n].iter().copied()), goal));
            stopped += i32::from(stop.is_some());
            let series = series(all[..stop.unwrap_or(cells)].iter().copied());
            covering += i32::from(covers(&rate(&series, wall(&series)).ops));
        }
        assert!(
            covering * 100 >= runs * 90,
            "{name}: {covering} of {runs} cover"
        );
        assert!(
            stopped * 100 >= runs * 75,
            "{name}: {stopped} of {runs} stopped early"
        );
    }
}

#[test]
fn a_drift_and_a_cliff_do_not_settle() {
    let mut rng = TestRng(1);
    let drift = autoregressive(&mut rng, 0.0, 400)
        .into_iter()
        .enumerate()
        .map(|(i, v)| v * (1.0 - 0.5 * i as f64 / 400.0));
    let cliff = autoregressive(&mut rng, 0.0, 400)
        .into_iter()
        .enumerate()
        .map(|(i, v)| if i < 320 { v } else { v / 5.0 });
    for (name, counts) in [
        ("drift", drift.collect::<Vec<_>>()),
        ("cliff", cliff.collect()),
    ] {
        let series = series(counts);
        let result = rate(&series, wall(&series));
        assert_eq!(
            (result.settled, result.settling_ns),
            (Some(false), 0),
            "{name}"
        );
        assert!(!precise_enough(&series, 0.5), "{name}");
    }
}

#[test]
fn slow_start_is_cut() {
    let mut rng = TestRng(3);
    let counts = autoregressive(&mut rng, 0.0, 400)
        .into_iter()
        .enumerate()
        .map(|(i, v)| if i < 50 { v / 4.0 } else { v });
    let series = series(counts);
    let result = rate(&series, wall(&series));
    assert!(
        (500_000_000..1_000_000_000).contains(&result.settling_ns),
        "{result:?}"
    );
    assert!(covers(&result.ops), "{result:?}");
    assert!((result.bytes.value / result.ops.value - 8192.0).abs() < 1e-6);
}

#[test]
fn a_disturbed_first_half_is_not_taken_for_a_warm_up() {
    let mut rng = TestRng(3);
    let counts = autoregressive(&mut rng, 0.0, 400)
        .into_iter()
        .enumerate()
        .map(|(i, v)| if i < 190 { v / 2.0 } else { v });
    let series = series(counts);
    let result = rate(&series, wall(&series));
    assert_eq!((result.settled, result.settling_ns), (Some(false), 0));
    assert!(
        (result.ops.value - series.total().ops as f64 / 4.0).abs() < 1.0,
        "all of the run counts: {result:?}"
    );
}

#[test]
fn a_run_ends_when_it_was_long_enough_for_its_time() {
    // One in ten of such series happens to begin off its level.
    let noisy = (0..20)
        .map(|seed| {
            let mut rng = TestRng(seed);
            series((0..1200).map(|_| 2000.0 * (1.0 + 0.05 * rng.normal())))
        })
        .find(|noisy| precise_enough(noisy, 0.02))
        .unwrap();
    let may = |elapsed_ms: u64, time_s: Option<u64>| {
        may_end(
            &noisy,
            elapsed_ms * 1_000_000,
            time_s.map(|s| s * 1_000_000_000),
            0.02,
        )
    };
    assert!(!may(7499, Some(30)) && may(7500, Some(30)));
    assert!(
        !may(7499, Some(600)) && may(7500, Some(600)),
        "a long limit does not make it run longer"
    );
    assert!(!may(999, Some(4)) && may(1000, Some(4)));
    assert!(!may(7499, None) && may(7500, None));
}

#[test]
fn suspiciously_even_rate_ends_a_run_late() {
    // A token bucket that still has credit.
    let even = series([20.0; 3100]);
    let may = |elapsed_s: u64| may_end(&even, elapsed_s * 1_000_000_000, None, 0.02);
    assert!(precise_enough(&even, 0.02));
    assert!(!may(8) && !may(29) && may(30));
}

#[test]
fn run_begins_at_the_lasting_level_however_late_that_came() {
    let mut rng = TestRng(6);
    let counts = autoregressive(&mut rng, 0.0, 1000);
    let fallen = counts
        .into_iter()
        .enumerate()
        .map(|(i, v)| if i < 700 { v } else { v / 10.0 });
    let series = series(fallen);
    let result = rate(&series, wall(&series));
    assert_eq!(result.settled, Some(true));
    assert!(
        (7_000_000_000..7_100_000_000).contains(&result.settling_ns),
        "{result:?}"
    );
    assert!((result.ops.value - 10_000.0).abs() < 300.0, "{result:?}");
}

#[test]
fn fall_shortly_before_the_end_is_told_but_not_cut() {
    let counts = (0..1000).map(|i| if i < 850 { 60.0 } else { 5.0 });
    let series = series(counts);
    assert_eq!(rate(&series, wall(&series)).settled, Some(false));
    let fall = lasting_fall(&series, wall(&series)).unwrap();
    assert_eq!(
        (fall.at_ns, fall.before, fall.after),
        (8_500_000_000, 6000.0, 500.0)
    );
    let short = self::series((0..1000).map(|i| if i < 950 { 60.0 } else { 5.0 }));
    assert_eq!(
        lasting_fall(&short, wall(&short)),
        None,
        "half a second shows nothing"
    );
}

/// The lower level varies by 40 % of itself.
#[test]
fn fall_to_an_uneven_level_is_none() {
    let tail = |i: usize| if i.is_multiple_of(2) { 3.0 } else { 7.0 };
    let series = series((0..1000).map(|i| if i < 850 { 60.0 } else { tail(i) }));
    assert_eq!(lasting_fall(&series, wall(&series)), None);
}

#[test]
fn slices_settle_at_the_cell_of_a_lasting_fall() {
    let mut series = series((0..1000).map(|i| if i < 700 { 60.0 } else { 6.0 }));
    series.start_ns = 500_000_000;
    let rates = [6000.0, 6000.0, 6000.0, 3300.0, 600.0];
    let ends_ns = [1, 2, 3, 4, 5].map(|i| i * 2_100_000_000);
    let settling = settling_of_slices(&series, wall(&series), &rates, &ends_ns);
    assert_eq!(settling.settled, Some(true));
    assert!(
        (7_500_000_000..7_600_000_000).contains(&settling.settling_ns),
        "{settling:?}"
    );
}

#[test]
fn single_operation_has_no_interval() {
    let once = series((0..500).map(|cell| f64::from(u8::from(cell == 499))));
    assert_eq!(rate(&once, 500 * CELL_NS).ops.half_width_95, None);
}

#[test]
fn an_even_disk_is_known_to_one_operation() {
    let series = series([20.0; 400]);
    let result = rate(&series, wall(&series));
    assert_eq!(
        (result.settled, result.settling_ns, result.ops.value),
        (Some(true), 0, 2000.0)
    );
    assert_eq!(result.ops.half_width_95, Some(0.25), "one operation in 4 s");
    assert!(precise_enough(&series, 0.02));
}

#[test]
fn convoys_are_known_no_better_than_to_one_of_them() {
    // Eight requests of 20.14 ms each that stay together for 2 s: 99 or 100 times eight,
    // whatever the batches say.
    for phase in 0..20 {
        let convoys = series((0..200_u64).map(|cell| {
            let reached = |ms: u64| (ms * 100 + phase * 100) / 2014;
            (reached(cell * 10 + 10) - reached(cell * 10)) as f64 * 8.0
        }));
        let result = rate(&convoys, 200 * CELL_NS).ops;
        let truth = 8.0 / 0.02014;
        assert!(
            (result.value - truth).abs() <= result.half_width_95.unwrap(),
            "{result:?} is not {truth}"
        );
    }
}

#[test]
fn start_that_is_only_less_even_is_not_cut() {
    // A disk of exactly 2000/s whose completions at first fall now into this cell, now into the
    // next.
    for uneven in [60, 600, 700, 900] {
        let series = series(
            (0..2000)
                .map(|i| {
                    if i < uneven {
                        [19.0, 21.0][i % 2]
                    } else {
                        20.0
                    }
                })
                .chain([21.0]),
        );
        let result = rate(&series, 2000 * CELL_NS);
        assert_eq!(
            (result.settled, result.settling_ns),
            (Some(true), 0),
            "{uneven} uneven cells"
        );
        assert!(precise_enough(&series, 0.02), "{uneven} uneven cells");
    }
}

#[test]
fn counts_that_happen_to_be_equal_at_the_end_are_no_drift() {
    let series = series((0..400).map(|i| if i < 350 && i % 7 == 0 { 21.0 } else { 20.0 }));
    assert_eq!(rate(&series, wall(&series)).settled, Some(true));
}

#[test]
fn slow_disks_have_a_rate() {
    // One operation every 130 ms, evenly: 13 cells of 10 ms each.
    let even = series((0..2000).map(|i| if i % 13 == 12 { 1.0 } else { 0.0 }));
    let result = rate(&even, wall(&even)).ops;
    assert!(
        (result.value - 7.69).abs() <= result.half_width_95.unwrap()
            && result.relative_half_width().unwrap() < 0.1,
        "{result:?}"
    );
    // The same at random: about 154 operations, known to 16 % at the best.
    let mut rng = TestRng(5);
    let random = series((0..2000).map(|_| if rng.share() < 1.0 / 13.0 { 1.0 } else { 0.0 }));
    let result = rate(&random, wall(&random)).ops;
    assert!(
        (result.value - 7.69).abs() <= result.half_width_95.unwrap(),
        "{result:?}"
    );
    assert!(
        (0.1..0.35).contains(&result.relative_half_width().unwrap()),
        "{result:?}"
    );
    assert!(!precise_enough(&random, 0.05));
}

#[test]
fn cells_that_nothing_completed_in_count() {
    let mut series = series([10.0; 50]);
    series.cells.resize(60, Cell::default());
    let stalled = rate(&series, wall(&series));
    series.cells.truncate(50);
    assert_eq!(stalled, rate(&series, 60 * CELL_NS));
}

#[test]
fn the_partly_covered_last_cell_counts_as_far_as_it_goes() {
    let mut series = series([20.0; 60]);
    series.cells.push(Cell {
        ops: 3,
        bytes: 3 * 8192,
        ..Cell::default()
    });
    assert_eq!(rate(&series, 60 * CELL_NS + 1_500_000).ops.value, 2000.0);
    // 320 operations, 32 at a time, 20 ms each: the last of them complete when the last whole
    // cell is over.
    let bursts = self::series((0..=20).map(|i| if i > 0 && i % 2 == 0 { 32.0 } else { 0.0 }));
    let result = rate(&bursts, 200_100_000).ops;
    assert!((result.value - 320.0 / 0.2001).abs() < 1e-6, "{result:?}");
}

#[test]
fn too_little_gives_a_figure_without_an_interval() {
    let short = series([5.0, 5.0, 2.0]);
    let result = rate(&short, 25_000_000);
    assert_eq!(
        (result.ops.value, result.ops.half_width_95, result.settled),
        (480.0, None, None)
    );
    let nothing = rate(&TimeSeries::new(CELL_NS), 5_000_000_000);
    assert_eq!((nothing.ops.value, nothing.ops.half_width_95), (0.0, None));
    assert_eq!(rate(&short, 0).ops.value, 0.0);
    assert!(!precise_enough(&TimeSeries::new(CELL_NS), 0.02));
}
