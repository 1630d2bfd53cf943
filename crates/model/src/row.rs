//! A row of a record: what was measured of one workload on one target, and the figures that follow
//! from it. Both are stored; on reading, the figures are derived again. The numbers that several
//! printers or rules need of a row are methods here, so that each is computed once.

use crate::estimate::Estimate;
use crate::finding::LimitedBy;
use crate::histogram::LatencyHistogram;
use crate::measurement::{Hang, Measurement, OpMeasurement};
use crate::op::{OpKind, PerOp};
use crate::ping::PingFigures;
use crate::series::{Cell, TimeSeries};
use crate::trend::RunToRun;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One workload on one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// The measurement: the time that the figures are about, and what came before it.
    pub data: Measurement,
    /// Variation of the rate from run to run; absent where the history does not show it. It is an
    /// input of the figures: their intervals cover it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_to_run: Option<RunToRun>,
    /// The figures, which follow from both.
    pub figures: RowFigures,
}

/// The figures of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RowFigures {
    /// Prefix of the measured time that the estimates skip because the rate had not settled, in
    /// nanoseconds.
    pub settling_ns: u64,
    /// True if the rate settled at all within the measured time; `null` when there was too little
    /// to tell.
    pub settled: Option<bool>,
    /// The phases of the workload, in order; empty where it was one. The first write of a new file
    /// is before the measured time. The figures of the row are those of the last phase, except for
    /// errors, short transfers and verification, which count over the whole time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseRecord>,
    /// Names of the workloads that ran at the same time on the same target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub together_with: Vec<String>,
    /// Per kind of operation.
    pub ops: PerOp<OpFigures>,
    /// Figures of single requests; present in the row of a ping only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ping: Option<PingFigures>,
    /// The thing that limited the rate, where the record shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<LimitedBy>,
    /// A one-line command of a well-known tool that shows the same figure.
    pub reproduce: String,
}

/// The figures of one kind of operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpFigures {
    /// Operations per second.
    pub iops: Estimate,
    /// Bytes per second.
    pub throughput: Estimate,
    /// Latency from before the submission to the reaping.
    pub latency: LatencySummary,
    /// Latency from the intended start (open loop only). Operations that were never started count
    /// with what they had waited at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_intended: Option<LatencySummary>,
}

impl OpFigures {
    /// The latency that counts and that pages show: that from the intended start, where the load
    /// was offered, not from when a free slot admitted the request (coordinated omission).
    pub fn seen_latency(&self) -> &LatencySummary {
        match &self.latency_intended {
            Some(intended) => intended,
            None => &self.latency,
        }
    }
}

/// One kind of operation of a row: what was measured of it, and its figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OpRow<'a> {
    /// The counts and latencies.
    pub data: &'a OpMeasurement,
    /// The figures, which follow from them.
    pub figures: &'a OpFigures,
}

impl Row {
    /// The kinds of operations that occurred, with their figures.
    pub fn ops(&self) -> impl Iterator<Item = (OpKind, OpRow<'_>)> + Clone {
        self.data.ops.iter().filter_map(|(kind, data)| {
            let figures = self.figures.ops.get(kind)?;
            Some((*kind, OpRow { data, figures }))
        })
    }

    /// One kind of operation; `None` where it did not occur.
    pub fn op(&self, kind: OpKind) -> Option<OpRow<'_>> {
        Some(OpRow {
            data: self.data.ops.get(&kind)?,
            figures: self.figures.ops.get(&kind)?,
        })
    }
}

/// The block size from which on the rate of a workload is shown in bytes per second: bytes limit a
/// disk with such blocks, operations limit it with smaller ones. Chosen, not measured.
const RATED_IN_BYTES_FROM: u32 = 64 << 10;

impl Row {
    /// The time at which its last operation was measured, in nanoseconds after the start of the
    /// run. The slices of a workload lie apart.
    pub fn end_ns(&self) -> u64 {
        let (start_ns, wall_ns) = match self.data.slices.last() {
            Some(last) => (last.start_ns, last.wall_ns),
            None => (self.data.start_ns, self.data.wall_ns),
        };
        start_ns.saturating_add(wall_ns)
    }

    /// Start of the time that the figures cover, in nanoseconds after the start of the measured
    /// time: the start of the last phase, or 0 where the workload had only one.
    pub fn steady_from_ns(&self) -> u64 {
        let last = self.figures.phases.last();
        last.map_or(0, |phase| phase.start_ns.saturating_sub(self.data.start_ns))
    }

    /// Length of the time that the figures cover, in nanoseconds.
    pub fn steady_ns(&self) -> u64 {
        self.data.wall_ns.saturating_sub(self.steady_from_ns())
    }

    /// Start of the time that the figures cover, in nanoseconds after the start of the run.
    pub fn steady_start_ns(&self) -> u64 {
        self.data.start_ns.saturating_add(self.steady_from_ns())
    }

    /// CPU time of this program over the time that the figures cover; 1.0 is one CPU fully used.
    pub fn cpu_share(&self) -> f64 {
        if self.steady_ns() == 0 {
            0.0
        } else {
            (self.data.cpu.user_ns + self.data.cpu.system_ns) as f64 / self.steady_ns() as f64
        }
    }

    /// True if its rates are shown in bytes per second, and not in operations per second. Commits
    /// of any size are shown as operations: a database counts them, not their bytes.
    pub fn is_rated_in_bytes(&self) -> bool {
        let is_large = self.data.workload.block_bytes >= RATED_IN_BYTES_FROM;
        is_large && !self.data.ops.contains_key(&OpKind::Commit)
    }

    /// The rate of an operation that pages show: in bytes or in operations per second.
    pub fn rate<'a>(&self, op: OpRow<'a>) -> &'a Estimate {
        if self.is_rated_in_bytes() {
            &op.figures.throughput
        } else {
            &op.figures.iops
        }
    }

    /// Operations per second of all kinds that a reader looks at.
    pub fn total_iops(&self) -> f64 {
        OpKind::headline(&self.figures.ops)
            .map(|(_, op)| op.iops.value)
            .sum()
    }

    /// Failed operations of all kinds.
    pub fn errors_total(&self) -> u64 {
        self.data
            .ops
            .values()
            .flat_map(|op| op.errors.values())
            .sum()
    }

    /// Failed operations of all kinds by errno name.
    pub fn errors_by_name(&self) -> BTreeMap<&str, u64> {
        let mut sum = BTreeMap::new();
        for (name, n) in self.data.ops.values().flat_map(|op| &op.errors) {
            *sum.entry(name.as_str()).or_insert(0) += n;
        }
        sum
    }

    /// The kinds that a reader looks at.
    pub fn headline_ops(&self) -> Vec<(OpKind, OpRow<'_>)> {
        OpKind::headline(&self.data.ops)
            .filter_map(|(kind, _)| Some((kind, self.op(kind)?)))
            .collect()
    }

    /// The cells that are shown of an operation, as [`Self::cells_of_series`] returns them.
    pub fn cells_over_time(&self, op: OpRow<'_>) -> Vec<CellOverTime> {
        self.cells_of_series(&op.data.shown_series())
    }

    /// The cells of a series of this measurement, each with its time. The last cell ends with the
    /// measured time; it is skipped where less than half a cell remains, which would be mostly
    /// noise.
    pub fn cells_of_series(&self, series: &TimeSeries) -> Vec<CellOverTime> {
        let interval_ns = series.interval_ns as f64;
        let wall_ns = self.data.wall_ns as f64;
        let mut cells = Vec::new();
        for (index, cell) in series.cells.iter().enumerate() {
            let start_ns = series.start_ns as f64 + index as f64 * interval_ns;
            let length_ns = (wall_ns - start_ns).min(interval_ns);
            if length_ns > 0.0 && length_ns >= interval_ns / 2.0 {
                cells.push(CellOverTime {
                    middle_s: (start_ns + length_ns / 2.0) / 1e9,
                    length_s: length_ns / 1e9,
                    counts: *cell,
                });
            }
        }
        cells
    }

    /// The widest relative half-width among the headline figures' rates; `None` when one of them
    /// has none.
    pub fn precision(&self) -> Option<f64> {
        OpKind::headline(&self.figures.ops)
            .map(|(_, op)| op.iops.relative_half_width())
            .collect::<Option<Vec<f64>>>()?
            .into_iter()
            .reduce(f64::max)
    }
}

impl<'a> OpRow<'a> {
    /// The latencies that count: those from the intended start, where the load was offered.
    pub fn seen_latencies(self) -> &'a LatencyHistogram {
        self.data.seen_latencies()
    }
}

/// A cell of a series with its time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellOverTime {
    /// The middle of the cell, in seconds after the start of the measured time.
    pub middle_s: f64,
    /// The length in seconds.
    pub length_s: f64,
    /// The events in the cell.
    pub counts: Cell,
}

/// A part of the measured time with its own rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseRecord {
    /// The kind of part of the time.
    pub name: PhaseKind,
    /// The start, in nanoseconds after the start of the run.
    pub start_ns: u64,
    /// The end, in nanoseconds after the start of the run.
    pub end_ns: u64,
    /// Per kind of operation; only kinds that occurred in it.
    pub ops: PerOp<PhaseOp>,
}

/// The kind of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseKind {
    /// The rate had not reached its level yet.
    Settling,
    /// The disk was faster than it stays: burst credit, or a cache that filled.
    Burst,
    /// The blocks of a new file were written, and allocated, for the first time.
    FirstWrite,
    /// The rate kept its level.
    Steady,
}

impl PhaseKind {
    /// The word of records and text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Settling => "settling",
            Self::Burst => "burst",
            Self::FirstWrite => "first-write",
            Self::Steady => "steady",
        }
    }
}

/// One kind of operation in a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseOp {
    /// Operations that succeeded in it.
    pub count: u64,
    /// Bytes that these operations moved.
    pub bytes: u64,
    /// Operations per second.
    pub rate: Estimate,
    /// Bytes per second.
    pub throughput: Estimate,
    /// Latency from before the submission to the reaping.
    pub latency: LatencySummary,
}

/// A latency distribution in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencySummary {
    /// Always `ns`.
    pub unit: String,
    /// Mean of all latencies.
    pub mean: f64,
    /// The shortest latency.
    pub min: u64,
    /// Median; like every percentile `null` when fewer than ten samples lie beyond it, or when it
    /// may lie among the requests that were never answered.
    pub p50: Option<u64>,
    /// 90th percentile; `null` when fewer than ten samples lie beyond it.
    pub p90: Option<u64>,
    /// 99th percentile; `null` when fewer than ten samples lie beyond it.
    pub p99: Option<u64>,
    /// 99.9th percentile; `null` when fewer than ten samples lie beyond it.
    #[serde(rename = "p99.9")]
    pub p99_9: Option<u64>,
    /// 99.99th percentile; `null` when fewer than ten samples lie beyond it.
    #[serde(rename = "p99.99")]
    pub p99_99: Option<u64>,
    /// The longest latency; of a row with a hang at least the time that requests without an answer
    /// had waited.
    pub max: u64,
}

/// The median latency of the slowest of some kinds of operation, in nanoseconds; its mean where too
/// few operations give a median.
pub fn usual_latency_ns<'a>(ops: impl IntoIterator<Item = &'a OpMeasurement>) -> f64 {
    let mut usual_ns: f64 = 0.0;
    for op in ops {
        let median_ns = match op.latency.percentile(0.50) {
            Some(ns) => ns as f64,
            None => op.latency.mean_ns(),
        };
        usual_ns = usual_ns.max(median_ns);
    }
    usual_ns
}

impl LatencySummary {
    /// The short form of a distribution.
    pub fn from_histogram(histogram: &LatencyHistogram) -> Self {
        Self {
            unit: "ns".to_owned(),
            mean: histogram.mean_ns(),
            min: histogram.min_ns(),
            p50: histogram.percentile(0.50),
            p90: histogram.percentile(0.90),
            p99: histogram.percentile(0.99),
            p99_9: histogram.percentile(0.999),
            p99_99: histogram.percentile(0.9999),
            max: histogram.max_ns(),
        }
    }

    /// The short form of the distribution of a row, in which the requests without an answer are
    /// missing: the longest latency is at least their wait, and they count for each percentile. The
    /// mean is that of the answered ones.
    pub fn with_unanswered(histogram: &LatencyHistogram, hang: Option<Hang>) -> Self {
        let answered = Self::from_histogram(histogram);
        let Some(hang) = hang else {
            return answered;
        };
        let mut all = histogram.clone();
        // A record from elsewhere may state any number.
        all.record_many(hang.lasted_ns, hang.requests.min(u64::from(u32::MAX)));
        let shorter = histogram
            .buckets()
            .filter(|bucket| bucket.low_ns.saturating_add(bucket.width_ns) <= hang.lasted_ns)
            .map(|bucket| bucket.count)
            .sum();
        let known = KnownLatencies {
            all,
            shorter,
            longest_ns: answered.max,
        };
        Self {
            p50: known.percentile(0.50),
            p90: known.percentile(0.90),
            p99: known.percentile(0.99),
            p99_9: known.percentile(0.999),
            p99_99: known.percentile(0.9999),
            max: answered.max.max(hang.lasted_ns),
            ..answered
        }
    }
}

/// The latencies of a row together with the waits of its requests without an answer.
struct KnownLatencies {
    all: LatencyHistogram,
    /// The latencies that are shorter than these waits.
    shorter: u64,
    /// The longest latency of a request that was answered.
    longest_ns: u64,
}

impl KnownLatencies {
    /// A percentile; `None` where it is unknown, or may lie among the requests without an answer.
    fn percentile(&self, quantile: f64) -> Option<u64> {
        let rank = (quantile * self.all.count() as f64).ceil() as u64;
        if rank > self.shorter {
            return None;
        }
        Some(self.all.percentile(quantile)?.min(self.longest_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::{CacheUse, EngineUse, MeasuredSpan};
    use crate::workload::{CachePolicy, EngineChoice, EngineKind, Workload};

    fn row(wall_ns: u64) -> Row {
        let engine = EngineUse {
            asked: EngineChoice::Auto,
            used: EngineKind::Sync,
            fallbacks: Vec::new(),
            features: Vec::new(),
            depth: None,
            done_before_wait: None,
        };
        let cache = CacheUse {
            asked: CachePolicy::Direct,
            used: CachePolicy::Direct,
            why: None,
        };
        let span = MeasuredSpan::new(0, 1 << 20);
        Row {
            data: Measurement {
                wall_ns,
                ..Measurement::unmeasured(Workload::named("a"), span, engine, cache)
            },
            run_to_run: None,
            figures: RowFigures {
                settling_ns: 0,
                settled: None,
                phases: Vec::new(),
                together_with: Vec::new(),
                ops: PerOp::new(),
                ping: None,
                limited_by: None,
                reproduce: String::new(),
            },
        }
    }

    /// 990 requests took 1 ms, and up to 100 had no answer for 5 s.
    #[test]
    fn requests_without_an_answer_count_for_the_longest_latency_and_the_percentiles() {
        const MILLISECOND_NS: u64 = 1_000_000;
        let mut histogram = LatencyHistogram::new();
        histogram.record_many(MILLISECOND_NS, 990);
        let with = |requests| {
            let hang = Hang {
                since_ns: 0,
                lasted_ns: 5000 * MILLISECOND_NS,
                requests,
                late: true,
            };
            LatencySummary::with_unanswered(&histogram, Some(hang))
        };
        let plain = LatencySummary::from_histogram(&histogram);
        assert_eq!(
            LatencySummary::with_unanswered(&histogram, None),
            plain.clone()
        );
        let few = with(5);
        assert_eq!(
            (few.max, few.p90, few.mean),
            (5000 * MILLISECOND_NS, plain.p90, plain.mean)
        );
        let many = with(100);
        assert_eq!(
            (many.max, many.p50, many.p99),
            (5000 * MILLISECOND_NS, plain.p50, None)
        );
    }

    #[test]
    fn last_cell_is_shown_from_half_of_its_length_on() {
        let mut series = TimeSeries::new(1_000_000_000);
        series.cells = vec![Cell::default(); 3];
        for (wall_ns, cells) in [
            (2_000_000_000, 2),
            (2_499_999_999, 2),
            (2_500_000_000, 3),
            (3_000_000_000, 3),
        ] {
            let shown = row(wall_ns).cells_of_series(&series);
            assert_eq!(shown.len(), cells, "{wall_ns}");
        }
        let last = row(2_500_000_000).cells_of_series(&series)[2];
        assert_eq!((last.middle_s, last.length_s), (2.25, 0.5));
    }
}
