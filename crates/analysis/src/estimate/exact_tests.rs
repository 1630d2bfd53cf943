//! Exact values of the estimates: computed by hand, or from the definitions with numpy 2 and scipy
//! 1.16 (`scipy.stats.t`). Each comment says which.

use super::batches::{batch_means, burst, widening};
use super::settle::{WarmUp, settle, starts_off_level};
use super::stats::{largest, mean, median, sorted, variance};
use super::stop::STOP_BATCHES_MIN;
use super::*;
use crate::fixture::test_rng::TestRng;

/// Counts without randomness that vary by some percent.
fn uneven(cells: u64) -> Vec<f64> {
    (0..cells)
        .map(|i| (90 + (i * i * 7 + i * 3) % 17) as f64)
        .collect()
}

fn ramp(cells: u32) -> Vec<f64> {
    (0..cells).map(f64::from).collect()
}

fn close(value: f64, truth: f64) {
    assert!(
        (value - truth).abs() <= 1e-9 * truth.abs(),
        "{value:?} is not {truth:?}"
    );
}

/// By hand.
#[test]
fn few_values_have_mean_variance_median_and_order() {
    let values = [5.0, 1.0, 4.0, 2.0];
    assert_eq!(mean(&values), 3.0);
    assert_eq!(variance(&values), 10.0 / 3.0);
    assert_eq!(sorted(&values), [1.0, 2.0, 4.0, 5.0]);
    assert_eq!(largest(&values), 5.0);
    assert_eq!(largest(&[]), 0.0);
    // Of an even number the upper one.
    assert_eq!(median(&values), 4.0);
    assert_eq!(median(&[9.0, 1.0, 3.0]), 3.0);
    assert_eq!(median(&[7.0]), 7.0);
}

/// numpy: r = Σ (x_i − m)(x_{i+1} − m) / Σ (x_i − m)², ρ = (r + 1/n)/(1 − 3/n); the share of the
/// mean is Σ_ij ρ^|i−j| / n², summed pair by pair.
#[test]
fn widening_follows_the_correlation() {
    close(widening(&uneven(10)), 1.5402790469376175);
    close(widening(&uneven(20)), 1.692091322570002);
    close(widening(&uneven(130)), 1.7646765995172058);
    let mut twice = ramp(11)[1..].to_vec();
    twice.extend_from_within(..);
    close(widening(&twice), 7.316367884270835);
    // ρ is bounded at 0.95.
    close(widening(&ramp(10)), 51.16072467479721);
    close(widening(&ramp(40)), 49.847026876935466);
    // Opposite neighbours do not narrow an interval. Equal values show no correlation; few of them
    // may hide some.
    assert_eq!(widening(&[1.0, -1.0, 1.0, -1.0, 1.0, -1.0]), 1.0);
    close(widening(&[5.0; 12]), 1.2523567802756568);
}

/// Four values 3, 1, 2, 2 by hand: r = (1·−1 + −1·0 + 0)/2 = −0.5, so ρ < 0. Four values 1, 2, 3,
/// 4: r = (0.75 + ... )/5 = 0.25; the bias of so few values is at most fourfold:
/// ρ = (0.25 + 0.25)/max(1 − 3/4, 0.25) = 2, bounded at 0.95.
#[test]
fn widening_of_a_few_values_is_bounded() {
    assert_eq!(widening(&[3.0, 1.0, 2.0, 2.0]), 1.0);
    // Σ_ij 0.95^|i−j| = 4 + 2 (3·0.95 + 2·0.9025 + 0.857375) = 15.02475; V = 0.939046875.
    let share = 15.02475 / 16.0;
    close(widening(&ramp(4)), 3.0 * share / (1.0 - share));
    let share = (3.0 + 2.0 * (2.0 * 0.95 + 0.9025)) / 9.0;
    close(widening(&ramp(3)), 2.0 * share / (1.0 - share));
}

/// numpy and scipy: batches of ⌈n/64⌉ cells from the end, doubled while |r| > 1/√k and ten remain;
/// half-width t(0.975, k − 1) √(s²/k · widening).
#[test]
fn batch_means_are_those_of_the_definition() {
    let check = |values: &[f64], n: usize, mean: f64, half_width: f64| {
        let b = batch_means(values).unwrap();
        assert_eq!((b.n, b.cells), (n, values.len()));
        close(b.mean, mean);
        close(b.half_width, half_width);
    };
    check(&uneven(10), 10, 97.3, 5.261547205140651);
    check(&uneven(20), 20, 97.3, 3.511733626250085);
    check(&uneven(130), 10, 98.00769230769231, 1.0912069934836188);
    check(&uneven(641), 14, 98.00936037441498, 0.27394717873264407);
    check(&ramp(10), 10, 4.5, 15.491620070306164);
    check(&ramp(40), 10, 19.5, 61.966480281224655);
    let waves: Vec<f64> = uneven(200)
        .into_iter()
        .zip(0..)
        .map(|(value, i)| value + 10.0 * (f64::from(i) / 8.0).sin())
        .collect();
    check(&waves, 12, 98.0318230859446, 4.090448146715766);
    check(&[5.0; 12], 12, 5.0, 0.0);
    assert!(batch_means(&uneven(9)).is_none());
}

/// By hand: the 95th less the 5th percentile of the sorted values, ranks rounded down.
#[test]
fn burst_is_what_full_cells_hold_beyond_empty_ones() {
    assert_eq!(burst(&[]), 0.0);
    assert_eq!(burst(&ramp(101)), 90.0);
    assert_eq!(burst(&ramp(21)), 18.0);
    assert_eq!(burst(&[0.0, 32.0, 0.0, 32.0]), 32.0);
}

/// Ten last values of 99 and 101: s² = 10/9, four first: error √(10/9 (1/4 + 1/10)) = 0.623610,
/// times t(0.975, 9) = 2.262157 (scipy): 1.410704.
#[test]
fn beginning_is_off_from_the_critical_value_on() {
    let with = |first: f64, padding: &[f64], size: usize| {
        let mut values = padding.to_vec();
        let level = |batch: usize| match batch {
            0..4 => first,
            4..10 => 150.0,
            _ => 99.0 + 2.0 * (batch % 2) as f64,
        };
        values.extend((0..20).flat_map(|batch| vec![level(batch); size]));
        starts_off_level(&values)
    };
    assert!(!with(101.4107, &[], 1) && with(101.4108, &[], 1));
    assert!(!with(98.5893, &[], 1) && with(98.5892, &[], 1));
    // What does not fill a batch is skipped at the start.
    assert!(!with(101.4107, &[5e3; 3], 2) && with(101.4108, &[5e3; 3], 2));
    assert!(!starts_off_level(&[1.0, 100.0, 100.0]));
    // Less than a thousandth of the level is nothing, however sure it is.
    let even = |first: f64| starts_off_level(&[[first; 10], [1000.0; 10]].concat());
    assert!(!even(1001.0) && even(1001.01) && !even(999.0) && even(998.99));
}

/// A series of cells with this many operations.
fn series(counts: &[f64]) -> TimeSeries {
    let mut series = TimeSeries::new(10_000_000);
    series.cells = counts
        .iter()
        .map(|ops| Cell {
            ops: *ops as u64,
            bytes: *ops as u64 * 512,
            ..Cell::default()
        })
        .collect();
    series
}

/// Half-widths of `batch_means` above, times 100 cells per second. Seven of the last half of a cell
/// are in the value, not in the interval.
#[test]
fn rate_counts_everything_and_its_interval_whole_cells() {
    let mut counts = uneven(20);
    counts.push(7.0);
    let known = rate(&series(&counts), 205_000_000);
    assert_eq!((known.settling_ns, known.settled), (0, None));
    close(known.ops.value, (97.3 * 20.0 + 7.0) / 0.205);
    close(known.bytes.value, 512.0 * (97.3 * 20.0 + 7.0) / 0.205);
    close(known.ops.half_width_95.unwrap(), 351.1733626250085);
    close(
        known.bytes.half_width_95.unwrap(),
        512.0 * 351.1733626250085,
    );
    assert_eq!((known.ops.n, known.ops.unit.as_str()), (20, "1/s"));
    assert_eq!(known.bytes.unit, "B/s");
}

/// By hand: 4 cells are dropped after the 10 ms before the first cell, which leaves 16 from 50 ms
/// on. An even disk is known to one operation, or to one burst.
#[test]
fn rate_after_the_settling_time_begins_there() {
    let mut late = series(&[20.0; 20]);
    late.start_ns = 10_000_000;
    late.cells[3].ops = 0;
    let settling = Settling {
        settling_ns: 50_000_000,
        settled: Some(true),
    };
    let known = rate_after(&late, 210_000_000, settling);
    assert_eq!(known.ops.value, 2000.0);
    close(known.ops.half_width_95.unwrap(), 100.0 / 16.0);
    close(
        known.bytes.half_width_95.unwrap(),
        400.0 * 512.0 / 380.0 * 100.0 / 16.0,
    );
    // Part of a cell drops it whole.
    let part = Settling {
        settling_ns: 40_000_001,
        ..settling
    };
    assert_eq!(rate_after(&late, 210_000_000, part).ops, known.ops);
    let less = Settling {
        settling_ns: 40_000_000,
        ..settling
    };
    close(rate_after(&late, 210_000_000, less).ops.value, 320.0 / 0.17);
    // Too little is left for an interval: the rate is that of the rest all the same.
    late.cells[15..].iter_mut().for_each(|cell| cell.ops = 2);
    let rest = Settling {
        settling_ns: 160_000_000,
        ..settling
    };
    let known = rate_after(&late, 210_000_000, rest);
    close(known.ops.value, 200.0);
    assert_eq!((known.ops.n, known.ops.half_width_95), (1, None));
}

/// By hand: 60 cells of 10 after 20 of 4; MSER cuts at the step (4 batches of 5), and half as far
/// again is dropped: 30 cells, 300 ms.
#[test]
fn settling_drops_half_as_much_again() {
    let mut counts = vec![4.0; 20];
    counts.extend([10.0; 60]);
    assert_eq!(settle(&counts), WarmUp::Settled { dropped: 30 });
    let found = settling(&series(&counts), 800_000_000);
    assert_eq!(
        (found.settling_ns, found.settled),
        (300_000_000, Some(true))
    );
    let mut late = series(&counts);
    late.start_ns = 7_000_000;
    assert_eq!(settling(&late, 807_000_000).settling_ns, 307_000_000);
    // 49 cells are nine batches: too few.
    assert_eq!(settle(&counts[..49]), WarmUp::Unknown);
    assert_eq!(settle(&[10.0; 50]), WarmUp::Settled { dropped: 0 });
}

/// By the definition: the half-width of the whole is at most the goal, and that of the first half,
/// which is noisier here, at most √2 times the goal.
#[test]
fn first_half_must_have_promised_the_precision() {
    let mut rng = TestRng(2);
    let mut noise = |deviation: f64| (10_000.0 + deviation * rng.normal()).round();
    let mut counts: Vec<f64> = (0..640).map(|_| noise(150.0)).collect();
    counts.extend((0..640).map(|_| noise(100.0)));
    let share = |values: &[f64]| {
        let b = batch_means(values).unwrap();
        assert!(b.n >= STOP_BATCHES_MIN, "{b:?}");
        b.half_width.max(burst(values) / b.cells as f64) / b.mean
    };
    let (whole, half) = (share(&counts), share(&counts[..640]));
    let least = half / std::f64::consts::SQRT_2;
    assert!(least > 1.01 * whole, "{whole} {half}");
    // The last cell is still being filled.
    counts.push(3.0);
    let known = |goal: f64| precise_enough(&series(&counts), goal);
    assert!(known(least * 1.001) && !known(least * 0.999), "{least}");
}
