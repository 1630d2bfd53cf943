//! `bw_min` to `iops_samples`: the rate of an operation over time, from the record's series in the
//! interval that fio samples by default.

use super::form::{Object, object};
use diskproof_model::fio_bins::RateSamples;
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
    let bandwidth = RateSamples::of(kib);
    // fio's share of the group; each of our jobs is a separate group.
    let of_group = bandwidth.share_of(op.throughput.value);
    fields(bandwidth, of_group, RateSamples::of(ops))
}

/// A rate without samples, as fio prints it.
pub(super) fn without_samples() -> Object {
    fields(RateSamples::default(), 0.0, RateSamples::default())
}

fn fields(bandwidth: RateSamples, of_group: f64, iops: RateSamples) -> Object {
    let whole = |rate: f64| -> Value { (rate as u64).into() };
    object([
        ("bw_min", whole(bandwidth.min)),
        ("bw_max", whole(bandwidth.max)),
        ("bw_agg", of_group.into()),
        ("bw_mean", bandwidth.mean.into()),
        ("bw_dev", bandwidth.deviation.into()),
        ("bw_samples", bandwidth.count.into()),
        ("iops_min", whole(iops.min)),
        ("iops_max", whole(iops.max)),
        ("iops_mean", iops.mean.into()),
        ("iops_stddev", iops.deviation.into()),
        ("iops_samples", iops.count.into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_counts_are_shortened() {
        let spread = RateSamples::of([4.0, 2.0, 9.0]);
        assert_eq!(
            (spread.min, spread.max, spread.mean, spread.count),
            (2.0, 9.0, 5.0, 3)
        );
        assert!((spread.deviation - 13.0f64.sqrt()).abs() < 1e-12);
        assert_eq!(RateSamples::of([7.0]).deviation, 0.0);
    }
}
