//! Finds lasting falls of a rate, and suspiciously even rates, in counts per cell.
//!
//! A *fall* is the end of a burst credit, or a cache that is full. The rate after it is level to
//! the end, so that figures may begin there, however late it came. A drift, a pause, and a fall
//! shortly before the end do not count. The *head* is the part before the fall, the *tail* the part
//! after it.
//!
//! A rate that is more even than that of any medium comes from a limiter or a simulated disk. A
//! token bucket with credit left is even, too, and its rate promises nothing about the later one.
//!
//! Thresholds without a source of their own were chosen, and are checked on simulated disks by the
//! tests of this file.

use super::batches::BATCHES_MIN;
use super::stats::{mean, sorted, variance};

/// Cells per batch, as in the warm-up statistic (MSER-5).
const BATCH_CELLS: usize = 5;
/// A fall divides the rate by at least this. Disks that wander, and other programs that come and
/// go, mostly stay below it.
pub(super) const FALL_MIN: f64 = 1.5;
/// A fall to a level as even as a limiter's divides the rate by at least this: nothing wanders
/// there. Neighbouring zones of a rotating disk, which are even, too, differ by less. Every search
/// for the fall of a limiter uses it.
pub(crate) const LIMITER_FALL_MIN: f64 = 1.1;
/// The part after such a fall has at least this many batches: a second in the finest cells.
const LIMITER_TAIL_BATCHES_MIN: usize = 20;
/// The part after a fall is at least one of this many parts of the run.
const TAIL_PARTS: usize = 4;
/// The parts before and after a fall have at least this many batches each.
const PART_BATCHES_MIN: usize = BATCHES_MIN;
/// At least this share of the batches after a fall is below the middle between both levels.
const TAIL_BELOW_MIN: f64 = 0.95;
/// At least this share of the batches before a fall is above the middle. It is smaller, because
/// disturbances make a fast disk slower, not faster.
const HEAD_ABOVE_MIN: f64 = 0.85;
/// Near the fall, the mean of each part is off its own level by at most this share of the
/// difference between the levels. A slope is off by more.
const EDGE_MAX: f64 = 0.2;
/// One of this many parts of the head, and of the tail, lies near the fall.
const EDGE_PARTS: usize = 5;

/// The index of the first cell after the fall, in a series that is level from there on.
pub(super) fn last_fall(values: &[f64]) -> Option<usize> {
    let batches: Vec<f64> = values.chunks_exact(BATCH_CELLS).map(mean).collect();
    let tail_min = PART_BATCHES_MIN.max(batches.len() / TAIL_PARTS);
    if let Some(cut) = largest_step(&batches, PART_BATCHES_MIN, tail_min)
        && falls(&batches, cut, FALL_MIN)
        && first_after(cut) <= values.len()
    {
        return Some(first_after(cut));
    }
    let cut = largest_step(&batches, PART_BATCHES_MIN, LIMITER_TAIL_BATCHES_MIN)?;
    let tail = values.get(first_after(cut)..)?;
    if is_of_limiter(tail) && falls(&batches, cut, LIMITER_FALL_MIN) {
        Some(first_after(cut))
    } else {
        None
    }
}

/// The first cell after a fall within this batch. The batch itself belongs to neither side.
fn first_after(cut: usize) -> usize {
    (cut + 1) * BATCH_CELLS
}

/// The smallest factor of a fall to a tail with these counts that is not chance.
pub(super) fn least_fall(tail: &[f64]) -> f64 {
    if is_of_limiter(tail) {
        LIMITER_FALL_MIN
    } else {
        FALL_MIN
    }
}

/// The index at which one step explains most of the variance, with at least so many values on
/// either side.
pub(super) fn largest_step(values: &[f64], head_min: usize, tail_min: usize) -> Option<usize> {
    let (n, centre) = (values.len(), mean(values));
    if n < head_min + tail_min {
        return None;
    }
    let mut sum = 0.0;
    let mut most_explained = 0.0;
    let mut step = None;
    for (index, value) in values.iter().enumerate() {
        let before = index as f64;
        if index >= head_min && index + tail_min <= n {
            let explained = sum * sum / (before * (n as f64 - before));
            if explained > most_explained {
                most_explained = explained;
                step = Some(index);
            }
        }
        sum += value - centre;
    }
    step
}

/// Returns `true` if the values fall at `cut` from one level to a lower one, by a factor of `least`
/// or more.
pub(super) fn falls(values: &[f64], cut: usize, least: f64) -> bool {
    let (head, tail) = values.split_at(cut);
    let (high, low) = (mean(head), mean(tail));
    if high < least * low || low <= 0.0 {
        return false;
    }
    let middle = (high + low) / 2.0;
    let above = head.iter().filter(|value| **value > middle).count();
    let below = tail.iter().filter(|value| **value < middle).count();
    let margin = EDGE_MAX * (high - low);
    let head_end = &head[head.len() - edge_length(head)..];
    let tail_begin = &tail[..edge_length(tail)];
    above as f64 / head.len() as f64 >= HEAD_ABOVE_MIN
        && below as f64 / tail.len() as f64 >= TAIL_BELOW_MIN
        && mean(head_end) >= high - margin
        && mean(tail_begin) <= low + margin
}

/// The number of values of a part that lie near the fall.
fn edge_length(part: &[f64]) -> usize {
    (part.len() / EDGE_PARTS).max(2).min(part.len())
}

/// A step is searched in cells, or in groups of cells, with at least this many operations: counts
/// of fewer vary by more than a quarter by chance.
const STEP_OPS_MIN: f64 = 16.0;

/// The parts of a series before and after one step down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StepDown {
    /// The number of cells before the step.
    pub(crate) head: usize,
    /// The index of the first cell of the lower level.
    pub(crate) tail: usize,
}

/// The step down by at least the factor `least`, to a level that lasts to the end for at least
/// `tail_min` cells; `None` where there is no such step.
pub(crate) fn step_down(values: &[f64], tail_min: usize, least: f64) -> Option<StepDown> {
    if values.is_empty() {
        return None;
    }
    let per_cell = mean(values).max(f64::MIN_POSITIVE);
    let size = (STEP_OPS_MIN / per_cell)
        .ceil()
        .clamp(1.0, values.len() as f64) as usize;
    let batches: Vec<f64> = values.chunks_exact(size).map(mean).collect();
    let cut = largest_step(&batches, 1, tail_min.div_ceil(size).max(2))?;
    if !falls(&batches, cut, least) {
        return None;
    }
    Some(StepDown {
        head: cut * size,
        tail: (cut + 1) * size,
    })
}

/// Cells per batch: 100 ms in the finest cells. Requests that complete together spread over less.
const EVEN_BATCH_CELLS: usize = 10;
/// With fewer batches evenness may be chance.
const EVEN_BATCHES_MIN: usize = 10;
/// A rate is suspiciously even if its standard deviation is at most this share of its mean. Flash
/// and rotating disks vary by 1 to 10 % from one tenth of a second to the next. Every question
/// whether a rate is as even as a limiter's uses it.
pub(crate) const EVEN_SCATTER_MAX: f64 = 0.004;

/// Returns `true` if the rate is more even than a medium's.
pub(super) fn is_even(values: &[f64]) -> bool {
    let batches: Vec<f64> = values.chunks_exact(EVEN_BATCH_CELLS).map(mean).collect();
    if batches.len() < EVEN_BATCHES_MIN {
        return false;
    }
    // One operation more or less in a batch is chance.
    let grain = 1.0 / EVEN_BATCH_CELLS as f64;
    let scatter = (trimmed_variance(&batches) - grain * grain).max(0.0).sqrt();
    mean(&batches) > 0.0 && scatter <= EVEN_SCATTER_MAX * mean(&batches)
}

/// Batches of [`scatter`] have at least this many operations: one more or less is then 1.6 %.
const SCATTER_OPS_MIN: f64 = 64.0;
/// With fewer batches the scatter is unknown.
const SCATTER_BATCHES_MIN: usize = 6;

/// The standard deviation over the mean of counts, in batches that hold enough operations; `None`
/// of too few batches. The part that counting whole operations explains is subtracted.
pub(crate) fn scatter(values: &[f64]) -> Option<f64> {
    let per_cell = mean(values);
    if values.is_empty() || per_cell <= 0.0 {
        return None;
    }
    let cells = (SCATTER_OPS_MIN / per_cell).ceil().max(1.0) as usize;
    let batches: Vec<f64> = values
        .chunks_exact(cells)
        .map(|batch| batch.iter().sum())
        .collect();
    if batches.len() < SCATTER_BATCHES_MIN {
        return None;
    }
    Some((trimmed_variance(&batches) - 1.0).max(0.0).sqrt() / mean(&batches))
}

/// Fewer batches than this are not attributed to a limiter: six are even by chance now and then.
const LIMITER_BATCHES_MIN: usize = 12;

/// Returns `true` if counts vary as little as a limiter's, in enough batches to exclude chance.
pub(crate) fn is_of_limiter(values: &[f64]) -> bool {
    evenness(values) == Some(true)
}

/// True if counts vary as little as a limiter's, false if they vary more; `None` where they are too
/// few to exclude chance.
pub(crate) fn evenness(values: &[f64]) -> Option<bool> {
    let batches = (values.iter().sum::<f64>() / SCATTER_OPS_MIN) as usize;
    if batches.min(values.len()) < LIMITER_BATCHES_MIN {
        return None;
    }
    Some(scatter(values)? <= EVEN_SCATTER_MAX)
}

/// The variance without the highest and the lowest tenth of the batches, because the machine
/// interrupts a limiter, too.
fn trimmed_variance(batches: &[f64]) -> f64 {
    let ascending = sorted(batches);
    let tenth = ascending.len() / 10;
    variance(&ascending[tenth..ascending.len() - tenth])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::test_rng::TestRng;

    fn noisy(seed: u64, sd: f64, cells: usize, level: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut rng = TestRng(seed);
        (0..cells)
            .map(|cell| (level(cell) * (1.0 + sd * rng.normal())).max(0.0))
            .collect()
    }

    #[test]
    fn fall_is_found_to_a_batch() {
        for (seed, sd) in [(1, 0.0), (2, 0.05), (3, 0.2)] {
            for at in [60, 400, 700] {
                let level = |cell: usize| if cell < at { 66.0 } else { 5.0 };
                let found = last_fall(&noisy(seed, sd, 1000, level)).unwrap();
                assert!((at..=at + 2 * BATCH_CELLS).contains(&found), "{at} {found}");
            }
        }
    }

    #[test]
    fn rise_drift_pause_and_late_cliff_are_no_fall() {
        type Level = fn(usize) -> f64;
        let cases: [(&str, Level); 6] = [
            ("level", |_| 100.0),
            ("rise", |cell| if cell < 400 { 20.0 } else { 100.0 }),
            ("drift", |cell| 100.0 - 0.07 * cell as f64),
            ("pause", |cell| {
                if (400..600).contains(&cell) {
                    1.0
                } else {
                    100.0
                }
            }),
            ("late", |cell| if cell < 850 { 100.0 } else { 10.0 }),
            ("hung", |cell| if cell < 400 { 100.0 } else { 0.0 }),
        ];
        for (name, level) in cases {
            for seed in 0..20 {
                assert_eq!(last_fall(&noisy(seed, 0.1, 1000, level)), None, "{name}");
            }
        }
    }

    /// 25 and 18 operations a cell, as of a credit that lasts for most of the run.
    #[test]
    fn fall_to_an_even_rate_counts_from_a_tenth_on_however_late() {
        let levels = |high: f64, low: f64| move |cell: usize| if cell < 860 { high } else { low };
        for (head_sd, seed) in [(0.0, 1), (0.05, 2)] {
            let mut values = noisy(seed, head_sd, 1000, levels(25.0, 18.0));
            values[860..].fill(18.0);
            let found = last_fall(&values).unwrap();
            assert!((860..=870).contains(&found), "{found}");
        }
        let even = |high: f64, low: f64| last_fall(&noisy(1, 0.0, 1000, levels(high, low)));
        assert!(even(20.0, 18.0).is_some() && even(19.0, 18.0).is_none());
        // Noise after it is a medium's.
        assert_eq!(last_fall(&noisy(3, 0.05, 1000, levels(25.0, 18.0))), None);
        // Shorter than a second.
        let short = |cell: usize| if cell < 930 { 25.0 } else { 18.0 };
        assert_eq!(last_fall(&noisy(1, 0.0, 1000, short)), None);
        assert_eq!(least_fall(&[18.0; 100]), 1.1);
        assert_eq!(least_fall(&noisy(5, 0.05, 100, |_| 18.0)), 1.5);
        assert_eq!(least_fall(&[]), 1.5);
    }

    #[test]
    fn noise_alone_has_no_fall() {
        for seed in 0..300 {
            let mut rng = TestRng(seed);
            let mut x = 0.0;
            // Correlated over a second, a standard deviation of 15 %.
            let wander: Vec<f64> = (0..600)
                .map(|_| {
                    x = 0.99 * x + 0.141 * rng.normal();
                    100.0 * (1.0 + 0.15 * x)
                })
                .collect();
            assert_eq!(last_fall(&wander), None, "{seed}");
        }
    }
}

#[cfg(test)]
mod even_tests {
    use super::*;
    use crate::fixture::test_rng::TestRng;

    #[test]
    fn scatter_of_a_limiter_is_none_and_that_of_noise_is_its_own() {
        let even: Vec<f64> = (0..60)
            .map(|cell| f64::from(30 + u8::from(cell % 3 == 0)))
            .collect();
        assert_eq!(scatter(&even), Some(0.0));
        let mut rng = TestRng(4);
        let noisy: Vec<f64> = (0..200)
            .map(|_| 1000.0 * (1.0 + 0.03 * rng.normal()))
            .collect();
        let found = scatter(&noisy).unwrap();
        assert!((0.015..0.03).contains(&found), "{found}");
        // A rotating disk: 70/s, of which a tenth of a second holds 7 ± 2.
        let slow: Vec<f64> = (0..100)
            .map(|_| (7.0 + 2.0 * rng.normal()).round())
            .collect();
        assert!(scatter(&slow).unwrap() > 0.02);
        assert_eq!(scatter(&slow[..40]), None, "too few operations to tell");
        assert_eq!((scatter(&[]), scatter(&[0.0; 100])), (None, None));
    }

    #[test]
    fn limiter_is_even_and_noise_is_not() {
        let even: Vec<f64> = (0..500)
            .map(|cell| f64::from(30 + u8::from(cell % 3 == 0)))
            .collect();
        assert!(is_even(&even));
        let mut rng = TestRng(4);
        let noisy: Vec<f64> = (0..500)
            .map(|_| 1000.0 * (1.0 + 0.03 * rng.normal()))
            .collect();
        assert!(!is_even(&noisy));
        assert!(!is_even(&even[..50]), "too short to tell");
        assert!(!is_even(&[0.0; 500]), "nothing was done");
    }
}
