//! Estimates a mean with its interval: of counts per cell by batch means with Student's t (Law &
//! Carson 1979), widened for correlation, and of single values, which are latencies or rates.

use super::stats::{mean, sorted, variance};
use super::student::{self, PairedDifference};
use diskproof_model::record::Estimate;

/// With fewer batches there is neither a warm-up test nor an interval.
pub(crate) const BATCHES_MIN: usize = 10;
/// The number of batches to begin with. More would narrow the interval by 2 %, and cost protection
/// against slow swings.
const BATCHES_FIRST: usize = 64;
/// An interval is widened for at most this correlation. Ten values with it increase the variance of
/// their mean 50 times, and say little about it.
const CORRELATION_MAX: f64 = 0.95;

/// A mean per cell and its uncertainty.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchMeans {
    /// The number of batches.
    pub n: usize,
    /// The number of cells in them.
    pub cells: usize,
    /// Mean per cell.
    pub mean: f64,
    /// Half-width of the 95 % interval of the mean.
    pub half_width: f64,
}

/// The mean per cell by batch means; `None` of fewer than ten cells. Batches grow until the lag-1
/// autocorrelation of their means is within one standard deviation, 1/√n, of zero (Bartlett 1946).
///
/// The usual test at two standard deviations lets a correlation of 0.4 pass unseen with 25 batches,
/// and the interval is then a third too narrow. The remaining correlation widens the interval as
/// that of a first-order process would: [`widening`].
pub(super) fn batch_means(values: &[f64]) -> Option<BatchMeans> {
    if values.len() < BATCHES_MIN {
        return None;
    }
    let mut size = values.len().div_ceil(BATCHES_FIRST);
    loop {
        let whole = &values[values.len() % size..];
        let batches: Vec<f64> = whole.chunks_exact(size).map(mean).collect();
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

/// The factor by which correlation increases the variance of a mean; at least 1. For many values of
/// a first-order process it is (1 + ρ)/(1 − ρ).
///
/// Few values that swing slowly look too much alike: part of their swing is in their mean, about
/// which their variance is taken. So the share V of the variance that the mean of n of them has
/// (Priestley 1981, 5.3.5) is compared with the remaining 1 − V. Without that, 9 % instead of 4 %
/// of pairs of runs on equal disks that wander for a fifth of a run seem to differ at the level of
/// 5 %; for a half of a run, 21 % instead of 10 %.
pub(crate) fn widening(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    // The estimate of a correlation ρ from n values is too low by about (1 + 3ρ)/n (Marriott & Pope
    // 1954), which is solved for ρ here.
    let rho = ((autocorrelation(values) + 1.0 / n) / (1.0 - 3.0 / n).max(0.25))
        .clamp(0.0, CORRELATION_MAX);
    let share_of_mean = ((1.0 + rho) / (1.0 - rho)
        - 2.0 * rho / n * (1.0 - rho.powi(values.len() as i32)) / (1.0 - rho).powi(2))
        / n;
    ((n - 1.0) * share_of_mean / (1.0 - share_of_mean)).max(1.0)
}

/// The lag-1 autocorrelation; 0 where nothing varies.
fn autocorrelation(values: &[f64]) -> f64 {
    let centre = mean(values);
    let squares: f64 = values.iter().map(|v| (v - centre).powi(2)).sum();
    let products: f64 = values
        .windows(2)
        .map(|pair| (pair[0] - centre) * (pair[1] - centre))
        .sum();
    if squares > 0.0 {
        products / squares
    } else {
        0.0
    }
}

/// The size of a convoy, by the difference between a full cell and an empty one. Requests that
/// begin together may stay together as a convoy, and the edges of the measured time decide whether
/// one more convoy is counted.
pub(super) fn burst(values: &[f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let ascending = sorted(values);
    let last = ascending.len() - 1;
    ascending[last * 95 / 100] - ascending[last * 5 / 100]
}

/// From this many values on their correlation is known well enough to widen the interval: batches
/// of four leave ten. Chosen, not measured.
const CORRELATED_VALUES_MIN: usize = 4 * BATCHES_MIN;

/// An interval of a mean.
struct MeanInterval {
    /// Half of the 95 % interval.
    half_width: f64,
    /// The number of independent batches, or of values.
    n: usize,
}

/// The interval of the mean of values in the order in which they were measured; `None` of fewer
/// than three.
fn mean_interval(values: &[f64]) -> Option<MeanInterval> {
    if values.len() >= CORRELATED_VALUES_MIN
        && let Some(means) = batch_means(values)
    {
        return Some(MeanInterval {
            half_width: means.half_width,
            n: means.n,
        });
    }
    let differences = PairedDifference::from_sample(values)?;
    Some(MeanInterval {
        half_width: differences.half_width(0.95),
        n: values.len(),
    })
}

/// The estimate of a mean latency from latencies in nanoseconds, in their order. `mean_ns` is their
/// mean, perhaps together with earlier latencies.
pub(crate) fn mean_latency(values: &[f64], mean_ns: f64) -> Estimate {
    match mean_interval(values) {
        Some(interval) => {
            Estimate::new(interval.n as u64, mean_ns, Some(interval.half_width), "ns")
        }
        None => Estimate::new(values.len() as u64, mean_ns, None, "ns"),
    }
}

/// The mean of rates per second that were measured apart in time; without an interval of fewer than
/// three.
pub(crate) fn mean_rate(rates: &[f64]) -> Estimate {
    let half_width = PairedDifference::from_sample(rates).map(|known| known.half_width(0.95));
    Estimate::new(rates.len() as u64, mean(rates), half_width, "1/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The interval of 1, 2, 3 and 6 is computed by hand in `student.rs`.
    #[test]
    fn mean_of_few_values_has_the_interval_of_student() {
        let mean = mean_latency(&[1.0, 2.0, 3.0, 6.0], 3.0);
        assert_eq!((mean.n, mean.value), (4, 3.0));
        assert!((mean.half_width_95.unwrap() - 3.437_434_5).abs() < 1e-6);
        assert_eq!(mean_latency(&[1.0, 2.0], 1.5).half_width_95, None);
    }

    #[test]
    fn correlation_widens_the_interval_of_many_values() {
        let alone: Vec<f64> = (0..400).map(|i| f64::from(i % 2)).collect();
        let swinging: Vec<f64> = (0..400).map(|i| f64::from(i / 50 % 2)).collect();
        let width = |values: &[f64]| mean_latency(values, 0.5).half_width_95.unwrap();
        assert!(width(&swinging) > 3.0 * width(&alone));
    }
}
