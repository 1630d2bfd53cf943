//! Whether a rate is more even than a medium is: a limiter, or a disk that is simulated. A token
//! bucket that is not used up yet is even, too, and its rate promises nothing of what follows.
//! Works on counts per cell.

use super::stats::{mean, variance};

/// Cells per batch: 100 ms at the finest. Requests that complete together spread over less.
const BATCH_CELLS: usize = 10;
/// The fewest batches that tell.
const BATCHES_MIN: usize = 10;
/// Standard deviation over mean, below which a rate is suspiciously even. Flash and rotating disks
/// scatter by 1 to 10 % from one tenth of a second to the next.
const EVEN: f64 = 0.004;

/// Whether the counts are suspiciously even.
pub(super) fn is_even(values: &[f64]) -> bool {
    let batches: Vec<f64> = values.chunks_exact(BATCH_CELLS).map(mean).collect();
    if batches.len() < BATCHES_MIN {
        return false;
    }
    // One operation more or less in a batch is chance.
    let grain = 1.0 / BATCH_CELLS as f64;
    let scatter = (trimmed_variance(&batches) - grain * grain).max(0.0).sqrt();
    mean(&batches) > 0.0 && scatter <= EVEN * mean(&batches)
}

/// The fewest operations in a batch of [`scatter`]: one more or less is then 1.6 %.
const SCATTER_OPS_MIN: f64 = 64.0;
/// The fewest batches of it.
const SCATTER_BATCHES_MIN: usize = 6;

/// Standard deviation over mean of the counts in batches that hold enough operations to tell;
/// `None` of too few. What the grain of counting explains is taken off.
pub(crate) fn scatter(values: &[f64]) -> Option<f64> {
    let per_cell = mean(values);
    if values.is_empty() || per_cell <= 0.0 {
        return None;
    }
    let cells = (SCATTER_OPS_MIN / per_cell).ceil().max(1.0) as usize;
    let sums = values.chunks_exact(cells).map(|batch| batch.iter().sum());
    let batches: Vec<f64> = sums.collect();
    let is_enough = batches.len() >= SCATTER_BATCHES_MIN;
    is_enough.then(|| (trimmed_variance(&batches) - 1.0).max(0.0).sqrt() / mean(&batches))
}

/// Fewest batches of counts that are a limiter's: six are even by chance now and then.
const LIMITER_BATCHES_MIN: usize = 12;

/// Whether counts vary as little as those of a limiter, in enough batches to exclude chance.
pub(super) fn is_of_limiter(values: &[f64]) -> bool {
    let batches = (values.iter().sum::<f64>() / SCATTER_OPS_MIN) as usize;
    batches.min(values.len()) >= LIMITER_BATCHES_MIN
        && scatter(values).is_some_and(|scatter| scatter <= EVEN)
}

/// The variance without the tenth of the batches that is farthest off on either side: the machine
/// interrupts a limiter, too.
fn trimmed_variance(batches: &[f64]) -> f64 {
    let sorted = super::stats::sorted(batches);
    let off = sorted.len() / 10;
    variance(&sorted[off..sorted.len() - off])
}

#[cfg(test)]
mod tests {
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
