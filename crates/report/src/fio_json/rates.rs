//! Rates over time as fio writes them: from `bw_min` to `iops_samples`.

use super::object::{Object, object};
use diskproof_model::fio_bins::RateSamples;
use diskproof_model::row::{OpRow, Row};
use diskproof_model::series::TimeSeries;

/// The time of a sample of a rate: the default of fio's `bwavgtime` and `iopsavgtime`.
const SAMPLE_NS: u64 = 500_000_000;
/// fio's bandwidths are in KiB/s.
const KIB: f64 = 1024.0;

/// KiB/s and operations per second of an operation, in cells of half a second, or in the record's
/// own cells if those are longer.
pub(super) fn rate_object(row: &Row, op: OpRow<'_>) -> Object {
    let mut kib_rates = Vec::new();
    let mut op_rates = Vec::new();
    for sample in row.cells_of_series(&steady_samples(row, op)) {
        kib_rates.push(sample.counts.bytes as f64 / KIB / sample.length_s);
        op_rates.push(sample.counts.ops as f64 / sample.length_s);
    }
    let bandwidth = RateSamples::from_rates(kib_rates);
    // fio's share of the group; each of our jobs is a separate group.
    let share_of_group = bandwidth.share_of(op.figures.throughput.value);
    rate_fields(bandwidth, share_of_group, RateSamples::from_rates(op_rates))
}

/// The cells from which the figures come, joined to samples as fio takes them.
fn steady_samples(row: &Row, op: OpRow<'_>) -> TimeSeries {
    let shown = op.data.shown_series();
    let mut series = shown.thinned(SAMPLE_NS, shown.cells.len().max(1));
    let earlier_ns = row.steady_from_ns().saturating_sub(series.start_ns);
    let earlier_cells = earlier_ns.div_ceil(series.interval_ns.max(1)) as usize;
    let skipped_cells = earlier_cells.min(series.cells.len());
    series.cells.drain(..skipped_cells);
    series.start_ns += skipped_cells as u64 * series.interval_ns;
    series
}

/// A rate without samples, as fio prints it.
pub(super) fn rate_object_without_samples() -> Object {
    rate_fields(RateSamples::default(), 0.0, RateSamples::default())
}

/// The fields from `bw_min` to `iops_samples`.
fn rate_fields(bandwidth: RateSamples, share_of_group: f64, iops: RateSamples) -> Object {
    object([
        ("bw_min", (bandwidth.min as u64).into()),
        ("bw_max", (bandwidth.max as u64).into()),
        ("bw_agg", share_of_group.into()),
        ("bw_mean", bandwidth.mean.into()),
        ("bw_dev", bandwidth.deviation.into()),
        ("bw_samples", bandwidth.count.into()),
        ("iops_min", (iops.min as u64).into()),
        ("iops_max", (iops.max as u64).into()),
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
        let spread = RateSamples::from_rates([4.0, 2.0, 9.0]);
        assert_eq!((spread.min, spread.max, spread.mean), (2.0, 9.0, 5.0));
        assert_eq!(spread.count, 3);
        assert!((spread.deviation - 13.0f64.sqrt()).abs() < 1e-12);
        assert_eq!(RateSamples::from_rates([7.0]).deviation, 0.0);
    }
}
