//! Finds changes of a rate that are slower than the batches of its interval, and widens for them.
//!
//! Real disks drift: the rates of parts of a run vary almost as much as those of whole runs, so
//! that a longer mean is hardly known better (flicker noise; Allan 1966). On a virtual disk that
//! was read at random for 3 s at a time, the rates of parts of 0.1 s, 1 s and 3 s varied by 20 %,
//! 14 % and 13 % at depth 1, and by 13 %, 10 % and 9 % at depth 32.
//!
//! This file divides a run into a few *parts*, and each part into *batches*. If the parts vary more
//! than the batches explain, a whole run varies as a part does. Its interval is then the one in
//! which a further part lies, which is wider than that of the mean of all parts.

use super::stats::{mean, variance};
use super::student::multiple_95;
use statrs::distribution::{ContinuousCDF as _, FisherSnedecor};

/// The number of parts of a run: as many as the most slices of `run`.
const PARTS: usize = 5;
/// The number of batches of a part. A change that is faster than a batch is not slow.
const PART_BATCHES: usize = 10;
/// The changes are slow if chance alone makes the parts vary so much with at most this probability.
/// At 5 %, one in ten runs of 20 s whose pace wanders for 0.1 s would count as slow.
const CHANCE: f64 = 0.01;

/// The uncertainty of a rate that changes slowly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SlowChanges {
    /// Half-width of the 95 % interval in which a further part lies, relative to the rate.
    pub(crate) relative_half_width: f64,
    /// The number of parts on which the interval rests.
    pub(crate) parts: u64,
}

/// The slow changes in counts per cell. `None` where the variation from one batch to the next
/// explains that of the parts, and of too few cells.
pub(super) fn slow_changes_in_counts(counts: &[f64]) -> Option<SlowChanges> {
    let batch_cells = counts.len() / (PARTS * PART_BATCHES);
    if batch_cells == 0 {
        return None;
    }
    let steady = &counts[counts.len() - PARTS * PART_BATCHES * batch_cells..];
    let batches: Vec<f64> = steady.chunks_exact(batch_cells).map(mean).collect();
    let parts: Vec<f64> = batches.chunks_exact(PART_BATCHES).map(mean).collect();
    let rate = mean(&parts);
    let part_variance = variance(&parts);
    // One operation more or less in a part is chance.
    let grain = 1.0 / (PART_BATCHES * batch_cells) as f64;
    let explained = (variance_of_neighbours(&batches) / PART_BATCHES as f64).max(grain * grain);
    let ratio_by_chance = FisherSnedecor::new((PARTS - 1) as f64, (batches.len() - 1) as f64)
        .ok()?
        .inverse_cdf(1.0 - CHANCE);
    if rate <= 0.0 || part_variance <= ratio_by_chance * explained {
        return None;
    }
    let count = PARTS as f64;
    let half_width = multiple_95(count - 1.0) * (part_variance * (1.0 + 1.0 / count)).sqrt();
    Some(SlowChanges {
        relative_half_width: half_width / rate,
        parts: PARTS as u64,
    })
}

/// The variance of values by the differences of neighbours. Slow changes hardly affect it.
fn variance_of_neighbours(values: &[f64]) -> f64 {
    let squares: f64 = values
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).powi(2))
        .sum();
    squares / (2 * (values.len() - 1)) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::test_rng::TestRng;

    /// Parts of 98, 99, 100, 101 and 102: s² = 2.5, t(0.975, 4) = 2.776445 (scipy): 2.776445 ×
    /// √(2.5 × 1.2) = 4.808944. Within a part nothing varies.
    #[test]
    fn half_width_is_that_of_a_further_part() {
        let parts = [98.0, 99.0, 100.0, 101.0, 102.0];
        let counts: Vec<f64> = parts.iter().flat_map(|part| vec![*part; 100]).collect();
        let found = slow_changes_in_counts(&counts).unwrap();
        assert!(
            (found.relative_half_width * 100.0 - 4.808_944).abs() < 1e-5,
            "{found:?}"
        );
        assert_eq!(found.parts, 5);
    }

    #[test]
    fn even_idle_and_short_runs_show_no_slow_changes() {
        assert_eq!(slow_changes_in_counts(&[20.0; 500]), None);
        assert_eq!(slow_changes_in_counts(&[0.0; 500]), None);
        assert_eq!(slow_changes_in_counts(&[20.0; 49]), None);
        // One operation in 5 s.
        let mut counts = vec![20.0; 500];
        counts[77] = 21.0;
        assert_eq!(slow_changes_in_counts(&counts), None);
    }

    /// Runs of first-order noise with a standard deviation of 5 %, that forgets in `memory` cells.
    fn slow_runs(memory: f64, cells: usize) -> usize {
        let mut rng = TestRng(11);
        let phi = if memory > 0.0 {
            (-1.0 / memory).exp()
        } else {
            0.0
        };
        let mut run = || {
            let mut x = rng.normal();
            let counts: Vec<f64> = (0..cells)
                .map(|_| {
                    x = phi * x + (1.0 - phi * phi).sqrt() * rng.normal();
                    100.0 * (1.0 + 0.05 * x)
                })
                .collect();
            slow_changes_in_counts(&counts).is_some()
        };
        (0..200).filter(|_| run()).count()
    }

    #[test]
    fn fast_noise_is_not_slow_and_wandering_is() {
        assert!(slow_runs(0.0, 500) <= 6);
        assert!(slow_runs(10.0, 2000) <= 16);
        assert!(slow_runs(200.0, 500) >= 180, "{}", slow_runs(200.0, 500));
    }
}
