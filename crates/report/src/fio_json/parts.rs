//! The parts of a job as fio writes them, keys in its order: latencies with their percentiles, bins
//! and shares by range, rates over time (`bw_min` to `iops_samples`), and the disks (`disk_util`).

use diskproof_model::fio_bins::{PERCENTILES, RateSamples, bins, range_shares};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::record::Record;
use diskproof_model::row::{LatencySummary, OpRow, Row};
use diskproof_model::series::TimeSeries;
use diskproof_model::units::SECTOR_BYTES;
use serde_json::Value;
use std::collections::BTreeMap;

/// A JSON object, whose keys keep their order.
pub(super) type Object = serde_json::Map<String, Value>;

/// An object of the keys that have a value. JSON has no infinity and no NaN, and readers expect
/// numbers and not null: such keys are skipped.
pub(super) fn object<'a>(pairs: impl IntoIterator<Item = (&'a str, Value)>) -> Object {
    let mut object = Object::new();
    for (key, value) in pairs {
        if !value.is_null() {
            object.insert(key.to_owned(), value);
        }
    }
    object
}

/// Whole milliseconds.
pub(super) fn whole_ms(ns: u64) -> u64 {
    ns / 1_000_000
}

/// A percentile needs this many latencies below it, as many as the record requires beyond it.
const SAMPLES_BELOW_MIN: f64 = 10.0;

/// A distribution of latencies with its figures.
pub(super) struct Latency<'a> {
    summary: &'a LatencySummary,
    histogram: &'a LatencyHistogram,
}

/// A latency without samples, as fio prints it. `slat_ns` is always one: see docs/fio-json.md.
pub(super) fn latency_without_samples() -> Value {
    object([
        ("min", 0.into()),
        ("max", 0.into()),
        ("mean", 0.0.into()),
        ("stddev", 0.0.into()),
        ("N", 0.into()),
    ])
    .into()
}

impl<'a> Latency<'a> {
    pub(super) fn from_op(op: OpRow<'a>) -> Self {
        Self {
            summary: &op.figures.latency,
            histogram: &op.data.latency,
        }
    }

    /// The object of fio's `clat_ns`, with percentiles and bins. With `--lat_percentiles=1` fio's
    /// `lat_ns` has them, too.
    pub(super) fn object(&self) -> Value {
        let Self { summary, histogram } = self;
        if histogram.count() == 0 {
            return latency_without_samples();
        }
        let mut counts = Object::new();
        for (bin_ns, n) in bins(histogram) {
            counts.insert(bin_ns.to_string(), n.into());
        }
        let deviation = histogram.deviation_ns(summary.mean);
        object([
            ("min", summary.min.into()),
            ("max", summary.max.into()),
            ("mean", summary.mean.into()),
            ("stddev", deviation.into()),
            ("N", histogram.count().into()),
            ("percentile", self.percentiles().into()),
            ("bins", counts.into()),
        ])
        .into()
    }

    fn percentiles(&self) -> Object {
        let mut percentiles = Object::new();
        for percent in PERCENTILES {
            if let Some(ns) = self.percentile(percent) {
                percentiles.insert(format!("{percent:.6}"), ns.into());
            }
        }
        percentiles
    }

    /// The record's own figure of this percentile if it has one, even an unknown one. Otherwise
    /// that of the histogram; `None` with too few samples.
    fn percentile(&self, percent: f64) -> Option<u64> {
        let own_figures = [
            (50.0, self.summary.p50),
            (90.0, self.summary.p90),
            (99.0, self.summary.p99),
            (99.9, self.summary.p99_9),
            (99.99, self.summary.p99_99),
        ];
        for (own_percent, own_figure) in own_figures {
            if own_percent == percent {
                return own_figure;
            }
        }
        let below = self.histogram.count() as f64 * percent / 100.0;
        if below < SAMPLES_BELOW_MIN {
            return None;
        }
        self.histogram.percentile(percent / 100.0)
    }
}

/// `latency_ns`, `latency_us` and `latency_ms`: the share of all transfers in each range, in
/// percent.
pub(super) fn latency_shares(transfers: &[&LatencyHistogram]) -> Object {
    let shares = range_shares(transfers.iter().copied());
    object([
        ("latency_ns", shares_of_unit(&shares.ns)),
        ("latency_us", shares_of_unit(&shares.us)),
        ("latency_ms", shares_of_unit(&shares.ms)),
    ])
}

fn shares_of_unit(ranges: &[(&str, f64)]) -> Value {
    let pairs = ranges
        .iter()
        .map(|(label, share)| (*label, (*share).into()));
    object(pairs).into()
}

/// The time of a sample of a rate: the default of fio's `bwavgtime` and `iopsavgtime`.
const SAMPLE_NS: u64 = 500_000_000;
/// fio's bandwidths are in KiB/s.
const KIB: f64 = 1024.0;

/// KiB/s and operations per second of an operation, in cells of half a second, or in the record's
/// own cells if those are longer.
pub(super) fn rate_object(row: &Row, op: OpRow<'_>) -> Object {
    let mut kib_rates = Vec::new();
    let mut op_rates = Vec::new();
    for cell in row.cells_of_series(&steady_samples(row, op)) {
        kib_rates.push(cell.cell.bytes as f64 / KIB / cell.length_s);
        op_rates.push(cell.cell.ops as f64 / cell.length_s);
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
    let earlier = earlier_ns.div_ceil(series.interval_ns.max(1)) as usize;
    let skipped = earlier.min(series.cells.len());
    series.cells.drain(..skipped);
    series.start_ns += skipped as u64 * series.interval_ns;
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

/// Requests and bytes of a disk.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct DiskCounts {
    read_ops: u64,
    write_ops: u64,
    read_bytes: u64,
    write_bytes: u64,
}

impl DiskCounts {
    /// Combines each count with that of another disk or time.
    fn combined(self, other: Self, combine: fn(u64, u64) -> u64) -> Self {
        Self {
            read_ops: combine(self.read_ops, other.read_ops),
            write_ops: combine(self.write_ops, other.write_ops),
            read_bytes: combine(self.read_bytes, other.read_bytes),
            write_bytes: combine(self.write_bytes, other.write_bytes),
        }
    }
}

/// The counts of a disk between two times, in nanoseconds after the start of the run.
#[derive(Debug, Clone, Copy)]
struct CountedTime {
    start_ns: u64,
    end_ns: u64,
    counts: DiskCounts,
}

/// An entry of `disk_util` for each disk that was the only one below a target, summed over its
/// measurements. A target on several disks has none: the record has only the sum of them.
pub(super) fn disk_objects(record: &Record) -> Vec<Value> {
    let mut times: BTreeMap<&str, Vec<CountedTime>> = BTreeMap::new();
    for row in &record.measurements {
        let device = &row.data.device;
        if let ([disk], None) = (&device.disks[..], &device.unresolved) {
            times.entry(disk).or_default().push(counted_time(row));
        }
    }
    let mut disks = Vec::new();
    for (name, times) in times {
        disks.push(disk_object(name, summed_counts(times)));
    }
    disks
}

/// The counts of a row, and a time that only rows measured at the same instants share.
fn counted_time(row: &Row) -> CountedTime {
    let device = &row.data.device;
    let (start_ns, wall_ns) = match row.data.slices.first() {
        // The slices of other workloads lie between these. Those of other targets may be at the
        // same instants, and their counts have the same requests.
        Some(first) => (first.start_ns, first.wall_ns),
        None => {
            let start_ns = row.steady_start_ns();
            let end_ns = row.data.start_ns.saturating_add(row.data.wall_ns);
            (start_ns, end_ns.saturating_sub(start_ns))
        }
    };
    CountedTime {
        start_ns,
        end_ns: start_ns.saturating_add(wall_ns),
        counts: DiskCounts {
            read_ops: device.read_ops,
            write_ops: device.write_ops,
            read_bytes: device.read_bytes,
            write_bytes: device.write_bytes,
        },
    }
}

/// The sum of the counts. Of measurements at the same time the larger counts are taken: both
/// contain the same requests.
fn summed_counts(mut times: Vec<CountedTime>) -> DiskCounts {
    times.sort_by_key(|time| time.start_ns);
    let mut apart: Vec<CountedTime> = Vec::new();
    for time in times {
        match apart.last_mut() {
            Some(last) if time.start_ns < last.end_ns => {
                last.end_ns = last.end_ns.max(time.end_ns);
                last.counts = last.counts.combined(time.counts, u64::max);
            }
            _ => apart.push(time),
        }
    }
    let mut sum = DiskCounts::default();
    for time in apart {
        sum = sum.combined(time.counts, u64::saturating_add);
    }
    sum
}

fn disk_object(name: &str, counts: DiskCounts) -> Value {
    object([
        ("name", name.into()),
        ("read_ios", counts.read_ops.into()),
        ("write_ios", counts.write_ops.into()),
        ("read_sectors", (counts.read_bytes / SECTOR_BYTES).into()),
        ("write_sectors", (counts.write_bytes / SECTOR_BYTES).into()),
    ])
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{JsonLayout, laid_out};

    #[test]
    fn floats_have_six_digits_and_integers_none() {
        let nothing: Option<u64> = None;
        let pairs = object([
            ("a", 12.0.into()),
            ("b", 12.into()),
            ("c", f64::NAN.into()),
            ("d", nothing.into()),
            ("e", "x\"y".into()),
        ]);
        assert_eq!(
            laid_out(&pairs, JsonLayout::Fio).unwrap(),
            "{\n  \"a\" : 12.000000,\n  \"b\" : 12,\n  \"e\" : \"x\\\"y\"\n}"
        );
    }

    #[test]
    fn every_latency_is_in_one_bin() {
        let mut histogram = LatencyHistogram::new();
        (0..64)
            .flat_map(|bit| [1 << bit, (1_u64 << bit) + 1, (1_u64 << bit) - 1])
            .for_each(|ns| histogram.record(ns));
        let sum: u64 = bins(&histogram).values().sum();
        assert_eq!(sum, 3 * 64);
    }

    #[test]
    fn percentile_needs_ten_samples_on_both_sides() {
        assert_eq!(percentiles_of(19), Vec::<String>::new());
        assert_eq!(percentiles_of(25), ["40.000000", "50.000000", "60.000000"]);
        assert_eq!(percentiles_of(100_000).len(), PERCENTILES.len());
    }

    /// The percentiles of so many different latencies.
    fn percentiles_of(count: u64) -> Vec<String> {
        let mut histogram = LatencyHistogram::new();
        for k in 1..=count {
            histogram.record(k * 1_000);
        }
        let latency = Latency {
            summary: &LatencySummary::from_histogram(&histogram),
            histogram: &histogram,
        };
        latency.percentiles().keys().cloned().collect()
    }

    #[test]
    fn sample_counts_are_shortened() {
        let spread = RateSamples::from_rates([4.0, 2.0, 9.0]);
        assert_eq!((spread.min, spread.max, spread.mean), (2.0, 9.0, 5.0));
        assert_eq!(spread.count, 3);
        assert!((spread.deviation - 13.0f64.sqrt()).abs() < 1e-12);
        assert_eq!(RateSamples::from_rates([7.0]).deviation, 0.0);
    }

    #[test]
    fn concurrent_windows_count_once() {
        let mut times = Vec::new();
        for (start_ns, end_ns, read_ops) in [(10, 20, 1), (0, 10, 2), (12, 18, 5), (19, 30, 3)] {
            let counts = DiskCounts {
                read_ops,
                ..DiskCounts::default()
            };
            times.push(CountedTime {
                start_ns,
                end_ns,
                counts,
            });
        }
        let expected = DiskCounts {
            read_ops: 7,
            ..DiskCounts::default()
        };
        assert_eq!(summed_counts(times), expected);
    }
}
