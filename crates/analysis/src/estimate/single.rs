//! The mean of single values, such as latencies of requests that followed each other.

use super::batches::{BATCHES_MIN, batch_means};
use super::paired::PairedDifference;
use super::stats::mean;
use diskproof_model::record::Estimate;

/// From this many values on their correlation can be seen, and widens the interval.
const CORRELATED_FROM: usize = 4 * BATCHES_MIN;

/// Half the width of the 95 % interval of the mean of values in the order in which they were
/// measured, and the number of independent batches behind it. `None` of fewer than three.
fn half_width(values: &[f64]) -> Option<(f64, usize)> {
    if values.len() >= CORRELATED_FROM
        && let Some(means) = batch_means(values)
    {
        return Some((means.half_width, means.n));
    }
    let mean = PairedDifference::of(values)?;
    Some((mean.half_width(0.95), values.len()))
}

/// Latencies in nanoseconds, in order; `mean_ns` is the mean of these and perhaps of others before
/// them.
pub(crate) fn mean_latency(values: &[f64], mean_ns: f64) -> Estimate {
    let known = half_width(values);
    Estimate {
        n: known.map_or(values.len(), |(_, n)| n) as u64,
        value: mean_ns,
        half_width_95: known.map(|(half_width, _)| half_width),
        unit: "ns".to_owned(),
    }
}

/// Rates of measurements that lie apart in time, per second.
pub(crate) fn mean_rate(rates: &[f64]) -> Estimate {
    let known = PairedDifference::of(rates);
    Estimate {
        n: rates.len() as u64,
        value: mean(rates),
        half_width_95: known.map(|known| known.half_width(0.95)),
        unit: "1/s".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The interval of 1, 2, 3 and 6 is computed by hand in `paired.rs`.
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
