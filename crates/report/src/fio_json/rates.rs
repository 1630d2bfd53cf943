//! `bw_min` to `iops_samples`: the rate of an operation over time, from the record's series in the
//! interval that fio samples by default.

use super::form::{Object, object};
use diskproof_model::record::{MeasurementRecord, OpRecord};
use serde_json::Value;

/// The default of fio's `bwavgtime` and `iopsavgtime`.
const SAMPLE_NS: u64 = 500_000_000;
const KIB: f64 = 1024.0;

/// KiB/s and operations per second of an operation, in cells of half a second, or in the record's
/// own cells if those are longer.
pub(super) fn of(m: &MeasurementRecord, op: &OpRecord) -> Object {
    let mut series = op.series.thinned(SAMPLE_NS, op.series.cells.len().max(1));
    let earlier_ns = m.steady_from_ns().saturating_sub(series.start_ns);
    let earlier = earlier_ns.div_ceil(series.interval_ns.max(1));
    let earlier = series.cells.len().min(earlier as usize);
    series.cells.drain(..earlier);
    series.start_ns += earlier as u64 * series.interval_ns;
    let cells = || m.cells_of(&series);
    let kib = cells().map(|(_, seconds, cell)| cell.bytes as f64 / KIB / seconds);
    let ops = cells().map(|(_, seconds, cell)| cell.ops as f64 / seconds);
    let (bandwidth, iops) = (
        Spread::of(&kib.collect::<Vec<_>>()),
        Spread::of(&ops.collect::<Vec<_>>()),
    );
    // fio's share of the group; each of our jobs is a separate group.
    let of_group = match bandwidth.samples {
        1.. if op.throughput.value > 0.0 => bandwidth.mean * KIB * 100.0 / op.throughput.value,
        _ => 0.0,
    };
    fields(&bandwidth, of_group.min(100.0), &iops)
}

/// A rate without samples, as fio prints it.
pub(super) fn without_samples() -> Object {
    fields(&Spread::default(), 0.0, &Spread::default())
}

fn fields(bandwidth: &Spread, of_group: f64, iops: &Spread) -> Object {
    let whole = |rate: f64| -> Value { (rate as u64).into() };
    object([
        ("bw_min", whole(bandwidth.min)),
        ("bw_max", whole(bandwidth.max)),
        ("bw_agg", of_group.into()),
        ("bw_mean", bandwidth.mean.into()),
        ("bw_dev", bandwidth.deviation.into()),
        ("bw_samples", bandwidth.samples.into()),
        ("iops_min", whole(iops.min)),
        ("iops_max", whole(iops.max)),
        ("iops_mean", iops.mean.into()),
        ("iops_stddev", iops.deviation.into()),
        ("iops_samples", iops.samples.into()),
    ])
}

/// A summary of samples; zeros without any.
#[derive(Default)]
struct Spread {
    min: f64,
    max: f64,
    mean: f64,
    /// Standard deviation of the sample.
    deviation: f64,
    samples: u64,
}

impl Spread {
    fn of(samples: &[f64]) -> Self {
        let count = samples.len();
        if count == 0 {
            return Self::default();
        }
        let mean = samples.iter().sum::<f64>() / count as f64;
        let square = samples
            .iter()
            .map(|sample| (sample - mean).powi(2))
            .sum::<f64>();
        Self {
            min: samples.iter().copied().fold(f64::INFINITY, f64::min),
            max: samples.iter().copied().fold(0.0, f64::max),
            mean,
            // The square of one sample is 0.
            deviation: (square / (count - 1).max(1) as f64).sqrt(),
            samples: count as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_counts_are_shortened() {
        let spread = Spread::of(&[4.0, 2.0, 9.0]);
        assert_eq!(
            (spread.min, spread.max, spread.mean, spread.samples),
            (2.0, 9.0, 5.0, 3)
        );
        assert!((spread.deviation - 13.0f64.sqrt()).abs() < 1e-12);
        assert_eq!(Spread::of(&[7.0]).deviation, 0.0);
    }
}
