//! Changes of a rate that are too slow for its batches. Real disks drift: the rates of parts of a
//! run vary almost as much as those of whole runs, so that a longer mean is hardly known better
//! (flicker noise; Allan 1966). Then a run varies as a part of it does, and its interval is the one
//! in which a further part lies, not that of the mean of so many parts.
//!
//! On a virtual disk that was read at random for 3 s at a time, the rates of parts of 0.1 s, 1 s
//! and 3 s varied by 20 %, 14 % and 13 % at depth 1, and by 13 %, 10 % and 9 % at depth 32.
//! Works on counts per cell.

use super::stats::{mean, variance};
use super::student::multiple_95;
use statrs::distribution::{ContinuousCDF as _, FisherSnedecor};

/// Parts of a run, as many as the most slices of `run`.
const PARTS: usize = 5;
/// Batches of a part: what changes faster than a batch lasts is not slow.
const PART_BATCHES: usize = 10;
/// Parts vary more than their batches explain if chance alone does so with a lower probability. At
/// 5 %, one in ten runs of 20 s whose pace wanders for 0.1 s would count as slow.
const CHANCE: f64 = 0.01;

/// What slow changes make of a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SlowChanges {
    /// Half-width of the 95 % interval in which a further part lies, relative to the rate.
    pub(crate) relative_half_width: f64,
    /// Parts behind it.
    pub(crate) parts: u64,
}

/// Of counts per cell. `None` where what varies from one batch to the next explains the variation
/// of the parts.
pub(super) fn of_counts(counts: &[f64]) -> Option<SlowChanges> {
    let cells = counts.len() / (PARTS * PART_BATCHES);
    if cells == 0 {
        return None;
    }
    let steady = &counts[counts.len() - PARTS * PART_BATCHES * cells..];
    let batches: Vec<f64> = steady.chunks_exact(cells).map(mean).collect();
    let parts: Vec<f64> = batches.chunks_exact(PART_BATCHES).map(mean).collect();
    let (level, of_parts) = (mean(&parts), variance(&parts));
    // Neighbours show what independent batches vary by, without what is slow.
    let pairs = batches.windows(2).map(|pair| (pair[1] - pair[0]).powi(2));
    let of_batches = pairs.sum::<f64>() / (2 * (batches.len() - 1)) as f64;
    // One operation more or less in a part is chance.
    let grain = 1.0 / (PART_BATCHES * cells) as f64;
    let explained = (of_batches / PART_BATCHES as f64).max(grain * grain);
    let chance = FisherSnedecor::new((PARTS - 1) as f64, (batches.len() - 1) as f64).ok()?;
    if level <= 0.0 || of_parts <= chance.inverse_cdf(1.0 - CHANCE) * explained {
        return None;
    }
    let n = PARTS as f64;
    let half_width = multiple_95(n - 1.0) * (of_parts * (1.0 + 1.0 / n)).sqrt();
    Some(SlowChanges {
        relative_half_width: half_width / level,
        parts: PARTS as u64,
    })
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
        let found = of_counts(&counts).unwrap();
        assert!(
            (found.relative_half_width * 100.0 - 4.808_944).abs() < 1e-5,
            "{found:?}"
        );
        assert_eq!(found.parts, 5);
    }

    #[test]
    fn even_idle_and_short_runs_show_no_slow_changes() {
        assert_eq!(of_counts(&[20.0; 500]), None);
        assert_eq!(of_counts(&[0.0; 500]), None);
        assert_eq!(of_counts(&[20.0; 49]), None);
        // One operation in 5 s.
        let mut counts = vec![20.0; 500];
        counts[77] = 21.0;
        assert_eq!(of_counts(&counts), None);
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
            of_counts(&counts).is_some()
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
