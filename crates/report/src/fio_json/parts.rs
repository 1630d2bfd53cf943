//! The parts of a job as fio writes them, keys in its order: latencies with their percentiles, bins
//! and shares by range, rates over time (`bw_min` to `iops_samples`), and the disks (`disk_util`).

use diskproof_model::fio_bins::{PERCENTILES, RateSamples, bins, range_shares};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::record::Record;
use diskproof_model::row::{LatencySummary, OpRow, Row};
use serde_json::Value;
use std::collections::BTreeMap;

/// Keys keep their order.
pub(super) type Object = serde_json::Map<String, Value>;

/// An object of the keys that have a value. JSON has no infinity and no NaN, and readers expect
/// numbers and not null: such keys are skipped.
pub(super) fn object<'a>(pairs: impl IntoIterator<Item = (&'a str, Value)>) -> Object {
    let known = pairs.into_iter().filter(|(_, value)| !value.is_null());
    known.map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Whole milliseconds.
pub(super) fn ms(ns: u64) -> u64 {
    ns / 1_000_000
}

/// A percentile needs this many latencies below it, as many as the record requires beyond it.
const SAMPLES_BELOW: f64 = 10.0;
/// A distribution with its figures.
pub(super) struct Latency<'a> {
    summary: &'a LatencySummary,
    histogram: &'a LatencyHistogram,
}

/// As fio prints a latency without samples; see docs/fio-json.md for `slat_ns`.
pub(super) fn without_samples() -> Value {
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
    pub(super) fn of(summary: &'a LatencySummary, histogram: &'a LatencyHistogram) -> Self {
        Self { summary, histogram }
    }

    /// With percentiles and bins, as fio's `clat_ns` and, with `--lat_percentiles=1`, its `lat_ns`.
    pub(super) fn object(&self) -> Value {
        let Self { summary, histogram } = self;
        if histogram.count() == 0 {
            return without_samples();
        }
        // By the starts of fio's bins.
        let bins: Object = bins(histogram)
            .into_iter()
            .map(|(ns, n)| (ns.to_string(), n.into()))
            .collect();
        let deviation = histogram.deviation_ns(summary.mean);
        object([
            ("min", summary.min.into()),
            ("max", summary.max.into()),
            ("mean", summary.mean.into()),
            ("stddev", deviation.into()),
            ("N", histogram.count().into()),
            ("percentile", self.percentiles().into()),
            ("bins", bins.into()),
        ])
        .into()
    }

    fn percentiles(&self) -> Object {
        let known = PERCENTILES.iter().filter_map(|percent| {
            Some((format!("{percent:.6}"), self.percentile(*percent)?.into()))
        });
        known.collect()
    }

    /// The record's own figure if it has one.
    fn percentile(&self, percent: f64) -> Option<u64> {
        let l = self.summary;
        let own = [
            (50.0, l.p50),
            (90.0, l.p90),
            (99.0, l.p99),
            (99.9, l.p99_9),
            (99.99, l.p99_99),
        ];
        if let Some((_, own)) = own.into_iter().find(|(own, _)| *own == percent) {
            return own;
        }
        let histogram = self.histogram;
        let below = histogram.count() as f64 * percent / 100.0;
        let found = histogram.percentile(percent / 100.0)?;
        (below >= SAMPLES_BELOW).then_some(found)
    }
}

/// `latency_ns`, `latency_us` and `latency_ms`: the share of all transfers in each range, in
/// percent.
pub(super) fn shares_by_latency<'a>(transfers: impl Iterator<Item = &'a Latency<'a>>) -> Object {
    let shares = range_shares(transfers.map(|latency| latency.histogram));
    let of_unit = |ranges: Vec<(&str, f64)>| -> Value {
        let ranges = ranges.into_iter();
        object(ranges.map(|(label, share)| (label, share.into()))).into()
    };
    object([
        ("latency_ns", of_unit(shares.ns)),
        ("latency_us", of_unit(shares.us)),
        ("latency_ms", of_unit(shares.ms)),
    ])
}

/// The default of fio's `bwavgtime` and `iopsavgtime`.
const SAMPLE_NS: u64 = 500_000_000;
const KIB: f64 = 1024.0;

/// KiB/s and operations per second of an operation, in cells of half a second, or in the record's
/// own cells if those are longer.
pub(super) fn rates(m: &Row, op: OpRow<'_>) -> Object {
    let shown = op.data.shown_series();
    let mut series = shown.thinned(SAMPLE_NS, shown.cells.len().max(1));
    let earlier_ns = m.steady_from_ns().saturating_sub(series.start_ns);
    let earlier = earlier_ns.div_ceil(series.interval_ns.max(1));
    let earlier = series.cells.len().min(earlier as usize);
    series.cells.drain(..earlier);
    series.start_ns += earlier as u64 * series.interval_ns;
    let cells = m.cells_of(&series);
    let kib = cells
        .iter()
        .map(|of| of.cell.bytes as f64 / KIB / of.length_s);
    let ops = cells.iter().map(|of| of.cell.ops as f64 / of.length_s);
    let bandwidth = RateSamples::of(kib);
    // fio's share of the group; each of our jobs is a separate group.
    let of_group = bandwidth.share_of(op.figures.throughput.value);
    rate_fields(bandwidth, of_group, RateSamples::of(ops))
}

/// A rate without samples, as fio prints it.
pub(super) fn rates_without_samples() -> Object {
    rate_fields(RateSamples::default(), 0.0, RateSamples::default())
}

fn rate_fields(bandwidth: RateSamples, of_group: f64, iops: RateSamples) -> Object {
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

/// The unit of the kernel's counters on every disk (Documentation/block/stat.rst).
const SECTOR_BYTES: u64 = 512;

/// The operations of a disk: reads, writes, and the bytes of each.
type Counts = [u64; 4];

/// The operations of a disk between two times, in nanoseconds after the start of the run.
#[derive(Debug, Clone, Copy)]
struct CountedTime {
    start_ns: u64,
    end_ns: u64,
    counts: Counts,
}

/// Each disk that was the only one below its targets, over all measurements. For a target on
/// several disks the record has only their sum.
pub(super) fn disk_util(record: &Record) -> Vec<Value> {
    let mut disks: BTreeMap<&str, Vec<CountedTime>> = BTreeMap::new();
    for m in &record.measurements {
        if let ([disk], None) = (&m.data.device.disks[..], &m.data.device.unresolved) {
            disks.entry(disk).or_default().push(window(m));
        }
    }
    let disks = disks.into_iter();
    let disks = disks.map(|(name, windows)| disk(name, sum(windows)));
    disks.collect()
}

fn window(m: &Row) -> CountedTime {
    let (start_ns, device) = (m.steady_start_ns(), &m.data.device);
    CountedTime {
        start_ns,
        // Slices lie between those of other workloads, and none of them overlap.
        end_ns: if m.data.slices.is_empty() {
            m.data.start_ns.saturating_add(m.data.wall_ns)
        } else {
            start_ns
        },
        counts: [
            device.read_ops,
            device.write_ops,
            device.read_bytes,
            device.write_bytes,
        ],
    }
}

/// Concurrent measurements contain the same operations of the disk, which count once.
fn sum(mut windows: Vec<CountedTime>) -> Counts {
    windows.sort_by_key(|window| window.start_ns);
    let mut apart: Vec<CountedTime> = Vec::new();
    for window in windows {
        let last = apart.last_mut();
        match last.filter(|last| window.start_ns < last.end_ns) {
            Some(last) => {
                last.end_ns = last.end_ns.max(window.end_ns);
                last.counts = combined(last.counts, window.counts, u64::max);
            }
            None => apart.push(window),
        }
    }
    let counts = apart.iter().map(|window| window.counts);
    counts.fold([0; 4], |sum, counts| {
        combined(sum, counts, u64::saturating_add)
    })
}

fn combined(one: Counts, other: Counts, by: fn(u64, u64) -> u64) -> Counts {
    std::array::from_fn(|index| by(one[index], other[index]))
}

fn disk(name: &str, [read_ops, write_ops, read_bytes, write_bytes]: Counts) -> Value {
    object([
        ("name", name.into()),
        ("read_ios", read_ops.into()),
        ("write_ios", write_ops.into()),
        ("read_sectors", (read_bytes / SECTOR_BYTES).into()),
        ("write_sectors", (write_bytes / SECTOR_BYTES).into()),
    ])
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::laid_out;

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
            laid_out(&pairs, true).unwrap(),
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
        let of = |count: u64| {
            let mut histogram = LatencyHistogram::new();
            (1..=count).for_each(|k| histogram.record(k * 1_000));
            let percentiles =
                Latency::of(&LatencySummary::of(&histogram), &histogram).percentiles();
            Vec::from_iter(percentiles.keys().cloned())
        };
        assert_eq!(of(19), Vec::<String>::new());
        assert_eq!(of(25), ["40.000000", "50.000000", "60.000000"]);
        assert_eq!(of(100_000).len(), PERCENTILES.len());
    }

    #[test]
    fn sample_counts_are_shortened() {
        let spread = RateSamples::of([4.0, 2.0, 9.0]);
        assert_eq!((spread.min, spread.max, spread.mean), (2.0, 9.0, 5.0));
        assert_eq!(spread.count, 3);
        assert!((spread.deviation - 13.0f64.sqrt()).abs() < 1e-12);
        assert_eq!(RateSamples::of([7.0]).deviation, 0.0);
    }

    #[test]
    fn concurrent_windows_count_once() {
        let window = |start_ns, end_ns, read_ops| CountedTime {
            start_ns,
            end_ns,
            counts: [read_ops, 0, 0, 0],
        };
        let windows = [(10, 20, 1), (0, 10, 2), (12, 18, 5), (19, 30, 3)];
        let windows = windows.map(|(start, end, reads)| window(start, end, reads));
        assert_eq!(sum(windows.to_vec()), [7, 0, 0, 0]);
    }
}
