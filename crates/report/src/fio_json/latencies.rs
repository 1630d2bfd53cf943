//! Latencies of a job as fio writes them: the figures, percentiles and bins of each operation
//! (`clat_ns`), and the shares of all transfers by range (`latency_us`).

use super::object::{Object, object};
use diskproof_model::fio_bins::{PERCENTILES, bins, range_shares};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::row::{LatencySummary, OpRow};
use serde_json::Value;

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
}
