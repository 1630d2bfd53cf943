//! Latency distributions as fio's JSON has them: figures, percentiles, bins, and shares by range.

use super::form::{Object, object};
use diskproof_model::fio_bins::{PERCENTILES, bins, range_shares};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::record::LatencySummary;
use serde_json::Value;

/// A percentile needs this many latencies below it, as many as the record requires beyond it.
const SAMPLES_BELOW: f64 = 10.0;
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
        // By the starts of fio's bins.
        let bins = histogram.map(|histogram| {
            let bins = bins(histogram).into_iter();
            bins.map(|(ns, n)| (ns.to_string(), n.into()))
                .collect::<Object>()
        });
        let deviation = histogram.map(|histogram| histogram.deviation_ns(summary.mean));
        object([
            ("min", summary.min.into()),
            ("max", summary.max.into()),
            ("mean", summary.mean.into()),
            ("stddev", deviation.into()),
            ("N", histogram.map(LatencyHistogram::count).into()),
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
        let histogram = self.histogram.as_ref()?;
        let below = histogram.count() as f64 * percent / 100.0;
        // The histogram knows its longest latency to three digits, the summary exactly.
        let found = histogram.percentile(percent / 100.0)?.min(l.max);
        (below >= SAMPLES_BELOW).then_some(found)
    }
}

/// `latency_ns`, `latency_us` and `latency_ms`: the share of all transfers in each range, in
/// percent.
pub(super) fn shares_by_latency<'a>(transfers: impl Iterator<Item = &'a Latency<'a>>) -> Object {
    let shares = range_shares(transfers.filter_map(|latency| latency.histogram.as_ref()));
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

#[cfg(test)]
mod tests {
    use super::*;

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
