//! Rates with an honest 95 % interval: where the warm-up ends, what the rate is after it, how well
//! it is known. Works on counts per cell of time; knows nothing of workloads, disks or latencies.
//!
//! Warm-up by MSER-5 (White 1997; White, Cobb & Spratt 2000), interval by batch means with
//! Student's t (Law & Carson 1979).

pub(crate) mod student;

use diskproof_model::record::Estimate;
use diskproof_model::series::{Cell, TimeSeries};

/// Cells per batch of the warm-up statistic: the 5 of MSER-5.
const WARMUP_BATCH_CELLS: usize = 5;
/// Fewest batches that say anything about a warm-up, and fewest that an interval may rest on.
pub(crate) const BATCHES_MIN: usize = 10;
/// Fewest batches that may be left as the steady tail: the variance of fewer is small by chance too
/// often (Hoad, Robinson & Davies 2010).
const TAIL_BATCHES_MIN: usize = 5;
/// Batches to begin with. More than this gains 2 % of width and costs protection against slow
/// swings.
const BATCHES_FIRST: usize = 64;
/// Correlation beyond which an interval is no longer widened: ten values so correlated tell hardly
/// anything of their mean, and widen its variance 50 times.
const CORRELATION_MAX: f64 = 0.95;
/// Parts of a run that differ by less than this share of their mean count as alike, however sure
/// the difference is.
const DRIFT_MIN: f64 = 0.01;
/// A beginning that differs from the rest by less than this share of it needs no cut, however sure
/// the difference is: on a disk that does exactly as many operations in every cell, one more or
/// less is "significant", and what makes the variance smallest is chance.
const LEVEL_MIN: f64 = 0.001;
/// Where most cells of time are empty, a beginning that holds no more than so many full cells above
/// or below the rest is chance.
const SPARSE_CELLS: f64 = 2.0;
/// Batches of the test whether a tail still begins off its level: a first fifth of four, a last
/// half of ten.
const LEVEL_BATCHES: usize = 20;
/// Standard errors that make a step. More than the two or three of an ordinary test, as the place
/// where the step looks largest is chosen from the data (Hawkins 1977) and correlated noise
/// wanders; at 4 fewer than 3 % of the steady runs in the tests count as unsettled.
const STEP_ERRORS: f64 = 4.0;
/// A warm-up is at most one part in this many of a run.
const WARMUP_PARTS_MIN: usize = 3;
/// Parts of a run that differ by less than this share are the same pace.
const ALIKE: f64 = 0.05;
/// Steps in which the cut moves on while the tail begins off.
const CUT_STEPS: usize = 20;
/// The stopping rule wants the settling to be at most one part in this many of what was measured: a
/// slow ramp is only seen to be over well after its end.
const SETTLING_PARTS_MIN: usize = 3;
/// Fewest batches that the stopping rule trusts. With fewer, correlation hides in the noise and a
/// run stops at the first lucky moment: ten instead of twenty cover 82 % instead of 92 % of noise
/// with ρ = 0.9 at a goal of 5 % (simulated as in the tests).
const STOP_BATCHES_MIN: usize = 20;

/// A run that lasted so long may end as soon as its rate is known, see [`may_end`].
pub const LONG_ENOUGH_NS: u64 = 7_500_000_000;
/// One with less time in all may end after this share of it: who gave it so little has chosen the
/// risk.
const LONG_ENOUGH_SHARE: f64 = 0.25;

/// How fast operations and bytes went.
#[derive(Debug, Clone, PartialEq)]
pub struct RateEstimate {
    /// Operations per second, unit `1/s`.
    pub ops: Estimate,
    /// Bytes per second, unit `B/s`.
    pub bytes: Estimate,
    /// Prefix that was skipped because the rate had not settled, in nanoseconds after the start
    /// of the measured time.
    pub settling_ns: u64,
    /// Whether the rate settled; `None` when there was too little to tell.
    pub settled: Option<bool>,
}

/// Where the steady part of a run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settling {
    /// Prefix to skip, in nanoseconds after the start of the measured time.
    pub settling_ns: u64,
    /// Whether the rate settled; `None` when there was too little to tell.
    pub settled: Option<bool>,
}

/// The rates of a series whose measured time was `wall_ns`.
pub fn rate(series: &TimeSeries, wall_ns: u64) -> RateEstimate {
    rate_after(series, wall_ns, settling(series, wall_ns))
}

/// Where the operation rate of a series settles.
pub fn settling(series: &TimeSeries, wall_ns: u64) -> Settling {
    let (dropped, settled) = settle(&per_cell(series, wall_ns, |cell| cell.ops));
    let settling_ns = if dropped == 0 {
        0
    } else {
        series.start_ns + dropped as u64 * series.interval_ns
    };
    Settling {
        settling_ns,
        settled,
    }
}

/// The rates of a series beyond a settling time that was found on a wider one (reads and writes of
/// a mix settle together).
pub fn rate_after(series: &TimeSeries, wall_ns: u64, settling: Settling) -> RateEstimate {
    let dropped = settling
        .settling_ns
        .saturating_sub(series.start_ns)
        .div_ceil(series.interval_ns) as usize;
    let steady = |count: fn(&Cell) -> u64| {
        let values = per_cell(series, wall_ns, count);
        let values = values.get(dropped..).unwrap_or_default();
        batch_means(values).map(|means| (means, burst(values)))
    };
    let total = series.total();
    let scale = 1e9 / series.interval_ns as f64;
    // The value is what was done over the time that it took, the end of the last cell included;
    // whole cells tell how well it is known.
    let per_second = |count: fn(&Cell) -> u64, dropped: usize| {
        let time_ns = wall_ns.saturating_sub(series.start_ns + dropped as u64 * series.interval_ns);
        let done: u64 = series.cells.iter().skip(dropped).map(count).sum();
        if time_ns == 0 {
            0.0
        } else {
            done as f64 * 1e9 / time_ns as f64
        }
    };
    // Counting cannot tell the rate better than to one operation more or less, or to one burst
    // where they complete in bursts, even where every batch holds the same number.
    let estimate = |count: fn(&Cell) -> u64, one: f64, whole: u64, unit: &str| match steady(count) {
        Some((b, burst)) if whole > 0 => {
            let half_width = b.half_width.max(one.max(burst) / b.cells as f64);
            Estimate {
                n: b.n as u64,
                value: per_second(count, dropped),
                half_width_95: Some(half_width * scale),
                unit: unit.to_owned(),
            }
        }
        _ => Estimate {
            n: 1,
            value: per_second(count, 0),
            half_width_95: None,
            unit: unit.to_owned(),
        },
    };
    RateEstimate {
        ops: estimate(|c| c.ops, 1.0, total.ops, "1/s"),
        bytes: estimate(
            |c| c.bytes,
            total.bytes as f64 / total.ops.max(1) as f64,
            total.bytes,
            "B/s",
        ),
        settling_ns: settling.settling_ns,
        settled: settling.settled,
    }
}

/// Whether a workload that has run for `elapsed_ns` of at most `time_ns` may end because its rate
/// is known to `goal`.
///
/// A perfectly even disk is known to 2 % within a second, and so is one that has merely not shown
/// yet what disturbs it: only time tells them apart. In per cent of 120 simulated runs of at most
/// 30 s each, how many were ended within them by a goal of 2 % with an error beyond it, had they
/// been allowed to end from the given second on, and behind `of` how many were ended at all
/// (crates/analysis/src/stopping.rs, which says how to repeat it):
///
/// | disk | 1 s | 2 s | 3 s | 5 s | 7.5 s |
/// |---|---|---|---|---|---|
/// | even | 0 of 100 | 0 of 100 | 0 of 100 | 0 of 100 | 0 of 100 |
/// | independent noise of 10 % in each 10 ms | 3 of 100 | 0 of 100 | 0 of 100 | 0 of 100 | 0 of 100 |
/// | independent noise of 50 % | 8 of 70 | 8 of 70 | 8 of 70 | 8 of 70 | 8 of 70 |
/// | 32 requests in one convoy | 0 of 100 | 0 of 100 | 0 of 100 | 0 of 100 | 0 of 100 |
/// | wanders by 10 %, forgets in 0.1 s | 13 of 81 | 13 of 81 | 13 of 81 | 13 of 81 | 13 of 80 |
/// | wanders by 5 %, in 0.5 s | 14 of 22 | 6 of 12 | 2 of 8 | 1 of 6 | 0 of 5 |
/// | wanders by 3 %, in 1 s | 28 of 64 | 21 of 48 | 10 of 29 | 2 of 7 | 0 of 1 |
/// | wanders by 3 %, in 2 s | 39 of 84 | 31 of 66 | 18 of 44 | 7 of 15 | 1 of 2 |
/// | wanders by 5 %, in 2 s | 33 of 45 | 17 of 26 | 5 of 9 | 1 of 2 | 0 of 0 |
/// | wanders by 5 %, in 5 s | 50 of 73 | 40 of 57 | 22 of 32 | 5 of 8 | 0 of 0 |
/// | falls by 10 % in 30 s, against its rate at the end | 0 of 100 | 0 of 100 | 0 of 100 | 0 of 100 | 0 of 62 |
/// | falls by 20 % in 30 s | 0 of 100 | 0 of 99 | 0 of 97 | 1 of 53 | 1 of 2 |
/// | one step of 20 % within 20 s | 0 of 100 | 0 of 100 | 0 of 100 | 1 of 100 | 2 of 86 |
/// | warm-up of 1 s from half its rate | 0 of 99 | 0 of 99 | 0 of 99 | 0 of 99 | 0 of 99 |
/// | pauses of 50 ms, one a second on average | 40 of 80 | 26 of 77 | 12 of 72 | 7 of 71 | 7 of 71 |
/// | pauses of 200 ms, one in three seconds | 79 of 79 | 64 of 64 | 51 of 51 | 28 of 28 | 13 of 13 |
///
/// The nastiest at 7.5 s are pauses of 200 ms and noise that is remembered for 0.1 s. Of the former
/// no rule sees what did not happen: with one in three seconds on average, 7.5 s go by without any
/// in e^-2.5 = 8 % of all runs. 120 runs tell these shares to about 6 %.
pub fn may_end(series: &TimeSeries, elapsed_ns: u64, time_ns: Option<u64>, goal: f64) -> bool {
    let share_ns = time_ns.map_or(LONG_ENOUGH_NS, |time_ns| {
        (time_ns as f64 * LONG_ENOUGH_SHARE) as u64
    });
    elapsed_ns >= share_ns.min(LONG_ENOUGH_NS) && precise_enough(series, goal)
}

/// Whether a running workload is known well enough to end it: settled long ago, and the relative
/// half-width of its operation rate at most `goal`. Fast enough to be asked several times a second.
///
/// A rule that looks often stops at the first lucky moment, and the interval then covers too
/// seldom. So the first half of the run must have promised the same already: √2 times the goal, as
/// the half-width falls with the root of time.
pub fn precise_enough(series: &TimeSeries, goal: f64) -> bool {
    // The last cell is still being filled.
    let full = series.cells.len().saturating_sub(1);
    let values: Vec<f64> = series.cells[..full].iter().map(|c| c.ops as f64).collect();
    let known = |values: &[f64], goal: f64| {
        let (dropped, settled) = settle(values);
        let steady = &values[dropped..];
        let grain = burst(steady).max(1.0);
        let precise = |b: BatchMeans| {
            b.n >= STOP_BATCHES_MIN
                && b.mean > 0.0
                && b.half_width.max(grain / b.cells as f64) <= goal * b.mean
        };
        settled == Some(true)
            && dropped * SETTLING_PARTS_MIN <= full
            && batch_means(steady).is_some_and(precise)
            && !begins_off(steady)
    };
    known(&values, goal) && known(&values[..full / 2], goal * std::f64::consts::SQRT_2)
}

/// Counts of the cells that `wall_ns` covers fully. Cells that are not there because nothing
/// completed in them count as zero.
fn per_cell(series: &TimeSeries, wall_ns: u64, count: impl Fn(&Cell) -> u64) -> Vec<f64> {
    let full = wall_ns.saturating_sub(series.start_ns) / series.interval_ns;
    series
        .cells
        .iter()
        .map(|c| count(c) as f64)
        .chain(std::iter::repeat(0.0))
        .take(full as usize)
        .collect()
}

/// MSER-5: the cells to drop, and whether the rate settled.
///
/// A minimum in the second half means no steady tail, but only where the rate drifts or steps
/// there: on counts the statistic is also smallest where a few batches happen to be equal. Where it
/// does not, the best cut in the first half holds.
///
/// MSER balances bias against variance, so it cuts a slow ramp too early for an interval that shall
/// cover: the cut moves on while the tail begins off its later level, and then half as far again,
/// because the end of a ramp hides in the noise.
fn settle(values: &[f64]) -> (usize, Option<bool>) {
    let batches: Vec<f64> = values.chunks_exact(WARMUP_BATCH_CELLS).map(mean).collect();
    if batches.len() < BATCHES_MIN {
        return (0, None);
    }
    let statistics = mser(&batches);
    let half = batches.len() / 2;
    if smallest(&statistics) > half && (halves_differ(values) || steps(&batches)) {
        return (0, Some(false));
    }
    let mut cut = smallest(&statistics[..=half.min(statistics.len() - 1)]);
    while cut < half && begins_off(&values[cut * WARMUP_BATCH_CELLS..]) {
        cut = half.min(cut + batches.len().div_ceil(CUT_STEPS));
    }
    let (head, tail) = values.split_at(cut * WARMUP_BATCH_CELLS);
    if cut == 0 || (mean(head) - mean(tail)).abs() <= LEVEL_MIN * mean(tail) {
        return (0, Some(true));
    }
    // A disk that does nothing any more has not warmed up.
    if mean(tail) == 0.0 {
        return (0, Some(false));
    }
    // Where most cells are empty, a cell more or less is no level.
    if median(values) == 0.0
        && (mean(head) - mean(tail)).abs() * head.len() as f64 <= SPARSE_CELLS * largest(values)
    {
        return (0, Some(true));
    }
    if cut <= batches.len() / WARMUP_PARTS_MIN {
        return (half.min(cut + cut / 2) * WARMUP_BATCH_CELLS, Some(true));
    }
    // That much is no warm-up. Where what would be dropped is like the rest, nothing needs
    // dropping; where it is not, the disk (or what else uses it) changed its pace in the middle
    // of the run, and the calmer part alone would flatter it.
    let alike = (mean(head) - mean(tail)).abs() <= ALIKE * mean(tail);
    (0, Some(alike))
}

/// Σ_{j>d}(Z_j − Z̄_d)²/(k−d)² for each cut d that leaves a tail long enough.
fn mser(batches: &[f64]) -> Vec<f64> {
    let (k, centre) = (batches.len(), mean(batches));
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut statistics = vec![0.0; k];
    for d in (0..k).rev() {
        let z = batches[d] - centre;
        sum += z;
        squares += z * z;
        let m = (k - d) as f64;
        statistics[d] = (squares - sum * sum / m).max(0.0) / (m * m);
    }
    statistics.truncate(k - TAIL_BATCHES_MIN + 1);
    statistics
}

/// Index of the first smallest value.
fn smallest(values: &[f64]) -> usize {
    let mut best = 0;
    for (index, value) in values.iter().enumerate() {
        // Rounding must not make a later, equal value look smaller.
        if *value < values[best] - 1e-9 * values[best].abs() {
            best = index;
        }
    }
    best
}

/// Whether the first and the second half of a run have different means: by more than [`DRIFT_MIN`],
/// and significantly at 1 % (Welch's t on five batches each).
fn halves_differ(values: &[f64]) -> bool {
    let size = values.len() / BATCHES_MIN;
    let batches: Vec<f64> = values[values.len() % BATCHES_MIN..]
        .chunks_exact(size)
        .map(mean)
        .collect();
    let (first, second) = batches.split_at(BATCHES_MIN / 2);
    let difference = (mean(first) - mean(second)).abs();
    let error = ((variance(first) + variance(second)) / first.len() as f64).sqrt();
    difference > DRIFT_MIN * mean(&batches)
        && difference > student::quantile(0.995, (BATCHES_MIN - 2) as f64) * error
}

/// Whether the level steps in the second half, where the step looks largest: by more than
/// [`DRIFT_MIN`], and by more than [`STEP_ERRORS`] standard errors of the residuals, widened for
/// their correlation. Finds a cliff near the end, which hardly moves the mean of its half.
fn steps(batches: &[f64]) -> bool {
    let (n, centre) = (batches.len() as f64, mean(batches));
    let mut sum = 0.0;
    let sums = batches.iter().map(|z| {
        sum += z - centre;
        sum
    });
    // The squares that a cut at `d` explains are sum² × n / (d (n − d)).
    let explained: Vec<f64> = sums
        .zip(1..)
        .map(|(sum, d)| -(sum * sum) / (f64::from(d) * (n - f64::from(d))))
        .collect();
    let cuts = TAIL_BATCHES_MIN..batches.len() - TAIL_BATCHES_MIN + 1;
    let cut = cuts.start + smallest(&explained[cuts.start - 1..cuts.end - 1]);
    let (before, after) = batches.split_at(cut);
    let residuals: Vec<f64> = [before, after]
        .into_iter()
        .flat_map(|part| part.iter().map(|z| z - mean(part)))
        .collect();
    let error = (variance(&residuals)
        * widening(&residuals)
        * (1.0 / before.len() as f64 + 1.0 / after.len() as f64))
        .sqrt();
    let difference = (mean(before) - mean(after)).abs();
    cut > batches.len() / 2
        && difference > DRIFT_MIN * mean(batches)
        && difference > STEP_ERRORS * error
}

/// Whether the first fifth of a run differs from its last half, significantly at 5 % by the
/// variance of the latter (Geweke 1992).
fn begins_off(values: &[f64]) -> bool {
    let size = values.len() / LEVEL_BATCHES;
    if size == 0 {
        return false;
    }
    let batches: Vec<f64> = values[values.len() % LEVEL_BATCHES..]
        .chunks_exact(size)
        .map(mean)
        .collect();
    let (first, last) = (&batches[..batches.len() / 5], &batches[batches.len() / 2..]);
    let error = (variance(last) * (1.0 / first.len() as f64 + 1.0 / last.len() as f64)).sqrt();
    let difference = (mean(first) - mean(last)).abs();
    difference > LEVEL_MIN * mean(last)
        && difference > student::multiple_95((last.len() - 1) as f64) * error
}

/// How much more a full cell holds than an empty one: where requests that began together stay
/// together, all of a queue, and the edges of the measured time decide whether one such convoy more
/// or less is counted.
fn burst(values: &[f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let sorted = sorted(values);
    let at = |share: usize| sorted[(sorted.len() - 1) * share / 100];
    at(95) - at(5)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// Of values that are not empty.
fn median(values: &[f64]) -> f64 {
    sorted(values)[values.len() / 2]
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// A mean per cell and how well it is known.
#[derive(Debug, Clone, Copy)]
struct BatchMeans {
    /// Batches.
    n: usize,
    /// Cells used.
    cells: usize,
    /// Mean per cell.
    mean: f64,
    /// Half-width of the 95 % interval of the mean.
    half_width: f64,
}

/// Batch means: batches grow until the lag-1 autocorrelation of their means is within one standard
/// deviation, 1/√n, of none (Bartlett 1946).
///
/// The usual test at two standard deviations lets a correlation of 0.4 pass unseen with 25 batches,
/// and the interval is then a third too narrow. What correlation is left widens the interval as
/// that of a first-order process would: [`widening`].
fn batch_means(values: &[f64]) -> Option<BatchMeans> {
    if values.len() < BATCHES_MIN {
        return None;
    }
    let mut size = values.len().div_ceil(BATCHES_FIRST);
    if values.len() / size < BATCHES_MIN {
        size = 1;
    }
    loop {
        let batches: Vec<f64> = values[values.len() % size..]
            .chunks_exact(size)
            .map(mean)
            .collect();
        let n = batches.len();
        let correlation = autocorrelation(&batches);
        if correlation.abs() > 1.0 / (n as f64).sqrt() && values.len() / (size * 2) >= BATCHES_MIN {
            size *= 2;
            continue;
        }
        let error = (variance(&batches) / n as f64 * widening(&batches)).sqrt();
        return Some(BatchMeans {
            n,
            cells: values.len(),
            mean: mean(values),
            half_width: student::multiple_95((n - 1) as f64) * error,
        });
    }
}

/// How much the variance of a mean grows by the correlation of what it is made of, at least 1: (1 +
/// ρ)/(1 − ρ) of many values of a first-order process.
///
/// Few values that swing slowly look too much alike: part of their swing is in their mean, about
/// which they are taken to vary. So the share V of the variance that the mean of n of them has
/// (Priestley 1981, 5.3.5) is compared with the 1 − V that is left to be seen. Of pairs of runs of
/// equal disks that wander for a fifth of a run, 9 % instead of 4 % seem to differ at the level of
/// 5 % without that; for a half, 21 % instead of 10 %.
pub(crate) fn widening(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    // The estimate of a correlation ρ from n values is too low by about (1 + 3ρ)/n (Marriott & Pope
    // 1954), which is solved for ρ here.
    let rho = ((autocorrelation(values) + 1.0 / n) / (1.0 - 3.0 / n).max(0.25))
        .clamp(0.0, CORRELATION_MAX);
    let of_mean = ((1.0 + rho) / (1.0 - rho)
        - 2.0 * rho / n * (1.0 - rho.powi(values.len() as i32)) / (1.0 - rho).powi(2))
        / n;
    ((n - 1.0) * of_mean / (1.0 - of_mean)).max(1.0)
}

/// Lag-1 autocorrelation; 0 where nothing varies.
fn autocorrelation(values: &[f64]) -> f64 {
    let centre = mean(values);
    let squares: f64 = values.iter().map(|v| (v - centre).powi(2)).sum();
    let products: f64 = values
        .windows(2)
        .map(|w| (w[0] - centre) * (w[1] - centre))
        .sum();
    if squares > 0.0 {
        products / squares
    } else {
        0.0
    }
}

/// Arithmetic mean.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Sample variance.
pub(crate) fn variance(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

#[cfg(test)]
mod tests {
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
    fn a_slow_start_is_left_out() {
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
        let even = series([20.0; 1200]);
        let may = |elapsed_ms: u64, time_s: Option<u64>| {
            may_end(
                &even,
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
    fn a_start_that_is_only_less_even_is_not_left_out() {
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
}
