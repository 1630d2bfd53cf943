//! Latency distributions as fio's JSON has them: figures, percentiles, bins, and shares by range.

use super::form::{Object, object};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::record::LatencySummary;
use serde_json::Value;
use std::collections::BTreeMap;

/// The percentiles that fio prints by default (its option `percentile_list`).
const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];
/// A percentile needs this many latencies below it, as many as the record requires beyond it.
const SAMPLES_BELOW: f64 = 10.0;
/// fio distinguishes latencies to this many binary digits after the first (`FIO_IO_U_PLAT_BITS` in
/// its stat.h).
const BIN_BITS: u32 = 6;
/// The start of fio's last bin, which counts all longer latencies (`plat_val_to_idx()` in its
/// stat.c). fio's readers know no larger one.
const LAST_BIN_NS: u64 = (1 << 33) + (63 << 27);
/// Upper ends of fio's ranges of nanoseconds, microseconds and milliseconds.
const RANGES: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// A distribution with its figures.
pub(super) struct Latency<'a> {
    summary: &'a LatencySummary,
    /// `None` if the record's histogram cannot be read.
    histogram: Option<LatencyHistogram>,
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
    pub(super) fn of(summary: &'a LatencySummary) -> Self {
        Self {
            summary,
            histogram: LatencyHistogram::from_hdr_base64(&summary.hdr).ok(),
        }
    }

    /// With percentiles and bins, as fio's `clat_ns` and, with `--lat_percentiles=1`, its `lat_ns`.
    pub(super) fn object(&self) -> Value {
        let Self { summary, histogram } = self;
        let histogram = histogram.as_ref();
        if histogram.is_some_and(|histogram| histogram.count() == 0) {
            return without_samples();
        }
        object([
            ("min", summary.min.into()),
            ("max", summary.max.into()),
            ("mean", summary.mean.into()),
            (
                "stddev",
                histogram
                    .map(|histogram| histogram.deviation_ns(summary.mean))
                    .into(),
            ),
            ("N", histogram.map(LatencyHistogram::count).into()),
            ("percentile", self.percentiles().into()),
            ("bins", histogram.map(bins).into()),
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
        let histogram = self.histogram.as_ref()?;
        let below = histogram.count() as f64 * percent / 100.0;
        // The histogram knows its longest latency to three digits, the summary exactly.
        histogram
            .percentile(percent / 100.0)
            .filter(|_| below >= SAMPLES_BELOW)
            .map(|ns| ns.min(l.max))
    }
}

/// Latencies by fio's bins. Our bins are finer and none crosses a border of fio's, so the counts
/// are exact.
fn bins(histogram: &LatencyHistogram) -> Object {
    let mut bins = BTreeMap::new();
    for (low, _, n) in histogram.buckets() {
        *bins.entry(bin(low)).or_insert(0) += n;
    }
    bins.into_iter()
        .map(|(ns, n)| (ns.to_string(), n.into()))
        .collect()
}

/// The middle of the bin in which fio counts this latency; fio names bins by it.
fn bin(ns: u64) -> u64 {
    let ns = ns.min(LAST_BIN_NS);
    let lost = (u64::BITS - ns.leading_zeros()).saturating_sub(BIN_BITS + 1);
    let (low, width) = (ns >> lost << lost, 1 << lost);
    low + width / 2
}

/// `latency_ns`, `latency_us` and `latency_ms`: the share of all transfers in each range, in
/// percent.
pub(super) fn shares_by_latency<'a>(transfers: impl Iterator<Item = &'a Latency<'a>>) -> Object {
    let mut counts = [[0_u64; 12]; 3];
    for (low, width, n) in transfers
        .filter_map(|latency| latency.histogram.as_ref())
        .flat_map(LatencyHistogram::buckets)
    {
        let (unit, range) = place(low + width / 2);
        counts[unit][range] += n;
    }
    let all = counts.iter().flatten().sum::<u64>().max(1) as f64;
    let labels = RANGES
        .map(|end| end.to_string())
        .into_iter()
        .chain(["2000".to_owned(), ">=2000".to_owned()]);
    let shares = |unit: usize, ranges: usize| -> Value {
        labels
            .clone()
            .zip(counts[unit])
            .take(ranges)
            .map(|(label, n)| (label, (n as f64 * 100.0 / all).into()))
            .collect::<Object>()
            .into()
    };
    object([
        ("latency_ns", shares(0, 10)),
        ("latency_us", shares(1, 10)),
        ("latency_ms", shares(2, 12)),
    ])
}

/// The unit and the range in it that a latency belongs to, as fio's `io_u_mark_latency()` has it:
/// whole units, and the label is the end that is not reached.
fn place(ns: u64) -> (usize, usize) {
    let (unit, count) = match ns {
        0..1_000 => (0, ns),
        1_000..1_000_000 => (1, ns / 1_000),
        _ => (2, ns / 1_000_000),
    };
    let beyond = if count < 2000 { 10 } else { 11 };
    (
        unit,
        RANGES.iter().position(|end| count < *end).unwrap_or(beyond),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_equal_those_of_fio() {
        // As fio 3.42 prints them: exact below 128 ns, then the middle of 64 bins an octave, and
        // one for all that is longer than 17 s.
        let pairs = [
            (0, 0),
            (127, 127),
            (128, 129),
            (129, 129),
            (255, 255),
            (256, 258),
            (1_000, 1_004),
            (87_100, 87_552),
            (104_500, 104_960),
        ];
        for (ns, named) in pairs
            .into_iter()
            .chain([(17_045_651_456, 17_112_760_320), (u64::MAX, 17_112_760_320)])
        {
            assert_eq!(bin(ns), named, "{ns}");
        }
    }

    #[test]
    fn every_latency_is_in_one_bin() {
        let mut histogram = LatencyHistogram::new();
        (0..64)
            .flat_map(|bit| [1 << bit, (1_u64 << bit) + 1, (1_u64 << bit) - 1])
            .for_each(|ns| histogram.record(ns));
        let sum: u64 = bins(&histogram).values().filter_map(Value::as_u64).sum();
        assert_eq!(sum, 3 * 64);
    }

    #[test]
    fn ranges_equal_those_of_fio() {
        let cases = [
            (1, (0, 0)),
            (2, (0, 1)),
            (999, (0, 9)),
            (1_000, (1, 0)),
            (1_999, (1, 0)),
            (2_000, (1, 1)),
            (999_999, (1, 9)),
        ];
        let more = [
            (1_000_000, (2, 0)),
            (999_999_999, (2, 9)),
            (1_000_000_000, (2, 10)),
            (2_000_000_000, (2, 11)),
        ];
        for (ns, expected) in cases.into_iter().chain(more) {
            assert_eq!(place(ns), expected, "{ns}");
        }
    }

    #[test]
    fn percentile_needs_ten_samples_on_both_sides() {
        let of = |count: u64| {
            let mut histogram = LatencyHistogram::new();
            (1..=count).for_each(|k| histogram.record(k * 1_000));
            let summary = LatencySummary::of(&histogram);
            Latency::of(&summary)
                .percentiles()
                .keys()
                .cloned()
                .collect::<Vec<_>>()
        };
        assert_eq!(of(19), Vec::<String>::new());
        assert_eq!(of(25), ["40.000000", "50.000000", "60.000000"]);
        assert_eq!(of(100_000).len(), PERCENTILES.len());
    }
}
