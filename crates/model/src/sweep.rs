//! A sweep: block size × depth × operation. Its plan, the matrix that was measured, and the figures
//! that follow from it. A cell here is a square of the matrix: one block size at one depth.

use crate::estimate::{Estimate, positive_interval};
use crate::stream::Streams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The operations, block sizes and depths of a sweep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SweepPlan {
    /// Operations, in the order of the result.
    pub operations: Vec<SweepOperation>,
    /// Block sizes in bytes, ascending.
    pub block_bytes: Vec<u32>,
    /// Requests in flight, ascending.
    pub depths: Vec<u32>,
    /// Lengths of the spans over which single random reads are measured besides, in bytes,
    /// ascending; empty where the span does not vary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub span_bytes: Vec<u64>,
    /// The older tool whose table the result page begins with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<SweepView>,
}

/// An operation of a sweep, under fio's name where fio has one.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum SweepOperation {
    /// Random reads.
    RandRead,
    /// Random writes.
    RandWrite,
    /// Random reads and writes, half of each.
    RandRw,
    /// Sequential reads.
    Read,
    /// Sequential writes.
    Write,
    /// Sequential reads and writes, half of each.
    Rw,
    /// Reads from the end to the start.
    Backward,
    /// Reads of every sixteenth block.
    Stride,
    /// Sequential reads of the same 16 MiB repeatedly.
    Reread,
    /// Sequential writes of the same 16 MiB repeatedly.
    Rewrite,
}

/// The facts about an operation of a sweep.
struct OperationFacts {
    /// The word of the command line.
    name: &'static str,
    /// The operation as words of a sentence.
    words: &'static str,
    /// The share of reads.
    read_permille: u16,
}

/// The facts of an operation; its reads are in thousandths of its requests.
const fn facts(name: &'static str, words: &'static str, read_permille: u16) -> OperationFacts {
    OperationFacts {
        name,
        words,
        read_permille,
    }
}

impl SweepOperation {
    /// Every operation, in the order of tables.
    pub const ALL: [Self; 10] = [
        Self::RandRead,
        Self::RandWrite,
        Self::RandRw,
        Self::Read,
        Self::Write,
        Self::Rw,
        Self::Backward,
        Self::Stride,
        Self::Reread,
        Self::Rewrite,
    ];

    /// The only table of what is true of each operation.
    fn facts(self) -> OperationFacts {
        match self {
            Self::RandRead => facts("randread", "random read", 1000),
            Self::RandWrite => facts("randwrite", "random write", 0),
            Self::RandRw => facts("randrw", "random read and write", 500),
            Self::Read => facts("read", "sequential read", 1000),
            Self::Write => facts("write", "sequential write", 0),
            Self::Rw => facts("rw", "sequential read and write", 500),
            Self::Backward => facts("backward", "backward read", 1000),
            Self::Stride => facts("stride", "stride read", 1000),
            Self::Reread => facts("reread", "repeated read", 1000),
            Self::Rewrite => facts("rewrite", "repeated write", 0),
        }
    }

    /// The word of the command line and of the names of workloads.
    pub fn as_str(self) -> &'static str {
        self.facts().name
    }

    /// The operation as words of a sentence.
    pub fn words(self) -> &'static str {
        self.facts().words
    }

    /// The streams of a workload with this operation.
    pub fn streams(self) -> Streams {
        Streams::with_reads(self.facts().read_permille)
    }

    /// True if it writes.
    pub fn writes(self) -> bool {
        self.streams().changes_blocks()
    }

    /// The name of the workload of a cell: `randread-8k-d32`.
    pub fn cell_name(self, block_bytes: u32, depth: u32) -> String {
        let size = size_word(u64::from(block_bytes));
        format!("{}-{size}-d{depth}", self.as_str())
    }
}

/// The name of a single random read over a span: `randread-8k-d1-span16M`.
pub fn span_name(block_bytes: u32, span_bytes: u64) -> String {
    let cell = SweepOperation::RandRead.cell_name(block_bytes, 1);
    format!("{cell}-span{}", size_word(span_bytes))
}

/// The name of single requests of mixed sizes: `randread-mix-d1`.
pub fn mixed_name(operation: SweepOperation) -> String {
    format!("{}-mix-d1", operation.as_str())
}

/// A size in fio's words: `512`, `8k`, `1M`, `4G`.
pub fn size_word(bytes: u64) -> String {
    let units = [(30, "G"), (20, "M"), (10, "k")];
    for (power, unit) in units {
        if bytes > 0 && bytes.is_multiple_of(1 << power) {
            return format!("{}{unit}", bytes >> power);
        }
    }
    bytes.to_string()
}

/// The table of an older tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SweepView {
    /// HD Tune's random access: four sizes, IOPS, average and longest time, average speed.
    RandomAccess,
    /// iops(1): IOPS and rate at doubling sizes.
    Iops,
    /// iozone: kB/s by record size and operation.
    Iozone,
}

/// The result of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepRecord {
    /// One matrix for each operation, in the order of the plan.
    pub matrices: Vec<SweepMatrix>,
    /// Single random reads by span, in ascending order; empty where the span did not vary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<SpanRate>,
}

/// Block size × depth of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepMatrix {
    /// The operation of all its cells.
    pub operation: SweepOperation,
    /// Every cell: by block size, then by depth.
    pub cells: Vec<SweepCell>,
    /// The depth from which on more requests in flight do not pay; absent where the intervals leave
    /// it open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knee: Option<DepthKnee>,
    /// The block size from which on bandwidth is the limit; absent where the intervals leave it
    /// open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_limit: Option<BandwidthLimit>,
    /// The latency as a function of block size and depth; absent where too few cells were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_model: Option<CostModel>,
}

impl SweepMatrix {
    /// The measured cell with certainly the most operations per second.
    pub fn best_iops(&self) -> Option<&SweepCell> {
        self.best(|cell| cell.iops.as_ref())
    }

    /// The measured cell with certainly the most bytes per second.
    pub fn best_throughput(&self) -> Option<&SweepCell> {
        self.best(|cell| cell.throughput.as_ref())
    }

    /// The measured cell whose figure is certainly the greatest; of equal ones the last. Figures
    /// that are zero or unknown do not count.
    fn best(&self, figure: fn(&SweepCell) -> Option<&Estimate>) -> Option<&SweepCell> {
        let mut best: Option<&SweepCell> = None;
        for cell in &self.cells {
            let Some(own) = figure(cell) else {
                continue;
            };
            if cell.state != CellState::Measured || own.value <= 0.0 {
                continue;
            }
            let is_better = match best.and_then(figure) {
                Some(highest) => own.cmp_certain(highest).is_ge(),
                None => true,
            };
            if is_better {
                best = Some(cell);
            }
        }
        best
    }

    /// The cell of this block size and depth.
    pub fn cell(&self, block_bytes: u32, depth: u32) -> Option<&SweepCell> {
        let mut cells = self.cells.iter();
        cells.find(|cell| (cell.block_bytes, cell.depth) == (block_bytes, depth))
    }
}

/// One block size at one depth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepCell {
    /// Bytes per operation.
    pub block_bytes: u32,
    /// Requests in flight.
    pub depth: u32,
    /// The source of its figures.
    pub state: CellState,
    /// The reason why it has no measured figures, or why they do not last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Operations per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<Estimate>,
    /// Bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Estimate>,
    /// Mean latency, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_mean_ns: Option<f64>,
    /// Median latency, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_p50_ns: Option<u64>,
    /// 99 % are not longer, in nanoseconds; absent with fewer than ten samples beyond it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_p99_ns: Option<u64>,
    /// Longest latency, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_max_ns: Option<u64>,
}

/// The source of the figures of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CellState {
    /// They were measured.
    Measured,
    /// They were measured while a burst credit lasted that ended during the run: rates that do not
    /// last.
    InBurst,
    /// The cost model predicts it.
    Predicted,
    /// The target cannot do it; `why` says the reason.
    Impossible,
    /// It was measured, and no request completed: all failed, or had no answer; `why` says which.
    Failed,
    /// There are none: it was not measured, and no model predicts it.
    Unknown,
}

/// The depth at which operations per second over latency is largest (Kleinrock's power). A disk
/// that serves `n` requests in parallel has it at depth `n`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DepthKnee {
    /// The block size for which it holds.
    pub block_bytes: u32,
    /// The depth from which on more requests in flight do not pay.
    pub depth: u32,
    /// The smallest depth that the intervals allow.
    pub depth_low: u32,
    /// The largest depth that the intervals allow; absent where it may be beyond the largest that
    /// was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth_high: Option<u32>,
    /// Operations per second at the knee.
    pub iops: Estimate,
    /// Operations per second with one request in flight; absent where that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops_single: Option<Estimate>,
}

/// The block size from which on the transfer of a block takes at least as long as everything else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BandwidthLimit {
    /// The block size from which on bandwidth is the limit.
    pub block_bytes: u32,
    /// The smallest block size that the intervals allow.
    pub block_bytes_low: u32,
    /// The largest block size that the intervals allow; absent where it may be beyond the largest
    /// that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_bytes_high: Option<u32>,
    /// The highest rate of all sizes.
    pub throughput: Estimate,
}

/// The time of a request: max(base + size/rate, depth × (request + size/rate)).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostModel {
    /// Latency of a request of no bytes on an idle disk, in nanoseconds.
    pub base_ns: f64,
    /// Time that a request of no bytes occupies the disk, in nanoseconds: one over the most
    /// operations per second.
    pub request_ns: f64,
    /// Bytes per second of the transfer.
    pub bytes_per_second: f64,
    /// Typical relative error of the fitted cells: the root mean square of the logarithms.
    pub model_error: f64,
    /// Cells that it was fitted to.
    pub cells_fitted: u64,
}

impl CostModel {
    /// Time that a request of this size occupies the disk, in nanoseconds.
    pub fn occupancy_ns(&self, block_bytes: u32) -> f64 {
        self.request_ns + self.transfer_ns(block_bytes)
    }

    /// Mean latency, in nanoseconds.
    pub fn latency_ns(&self, block_bytes: u32, depth: u32) -> f64 {
        let alone_ns = self.base_ns + self.transfer_ns(block_bytes);
        alone_ns.max(f64::from(depth) * self.occupancy_ns(block_bytes))
    }

    /// Time in which a block is transferred, without the access to it.
    fn transfer_ns(&self, block_bytes: u32) -> f64 {
        f64::from(block_bytes) * 1e9 / self.bytes_per_second
    }
}

/// Single random reads over a part of the target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpanRate {
    /// Length of the span, from the start of the target.
    pub span_bytes: u64,
    /// Operations per second; absent where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<Estimate>,
    /// Mean latency, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_mean_ns: Option<f64>,
    /// Rate over that of the longest span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
}

/// The least ratio of the latencies on both sides of a step between two spans. Rates vary by
/// several percent, and a span on a rotating disk takes some percent longer than the next shorter
/// one.
const SPAN_STEP_MIN: f64 = 2.0;

/// A step of the latency between two spans.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpanStep {
    /// The longest span whose reads are fast.
    pub fast_bytes: u64,
    /// The next longer one.
    pub slow_bytes: u64,
    /// Mean latency of the fast one, in nanoseconds.
    pub fast_ns: f64,
    /// Mean latency of the slow one, in nanoseconds.
    pub slow_ns: f64,
}

impl SpanStep {
    /// The time of a read on the longer span over that on the shorter one.
    pub fn times(&self) -> f64 {
        self.slow_ns / self.fast_ns
    }
}

/// The largest share of a target that a short stroke uses.
const SHORT_STROKE_MAX: f64 = 0.1;
/// The least ratio of the rates of a short stroke and of the whole target. A smaller gain is not
/// reported.
const SHORT_STROKE_GAIN_MIN: f64 = 1.25;

/// The gain of reads on a part of a disk whose arm then moves less.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpanGain {
    /// The part, from the start.
    pub span_bytes: u64,
    /// Bytes of the whole target.
    pub whole_bytes: u64,
    /// The ratio of their rates.
    pub gain: f64,
}

impl SweepRecord {
    /// The gain on the longest span of a tenth of the target that no cache answers; `None` where
    /// the intervals of the rates overlap or the gain is small.
    pub fn short_stroke(&self) -> Option<SpanGain> {
        let whole = self.spans.last()?;
        let cached_bytes = self.span_step().map_or(0, |step| step.fast_bytes);
        let longest = SHORT_STROKE_MAX * whole.span_bytes as f64;
        let part = self
            .spans
            .iter()
            .filter(|span| span.span_bytes > cached_bytes && span.span_bytes as f64 <= longest)
            .max_by_key(|span| span.span_bytes)?;
        let (high, low) = (part.iops.as_ref()?, whole.iops.as_ref()?);
        let gain = high.value / low.value;
        if !is_certainly_above(high, low) || gain < SHORT_STROKE_GAIN_MIN {
            return None;
        }
        Some(SpanGain {
            span_bytes: part.span_bytes,
            whole_bytes: whole.span_bytes,
            gain,
        })
    }

    /// The largest step from a span to the next longer one whose intervals are apart; `None` where
    /// a read nowhere takes twice as long.
    pub fn span_step(&self) -> Option<SpanStep> {
        let spans: Vec<&SpanRate> = self
            .spans
            .iter()
            .filter(|span| span.iops.is_some() && span.latency_mean_ns.is_some())
            .collect();
        let steps = spans
            .windows(2)
            .filter_map(|pair| certain_step(pair[0], pair[1]));
        steps
            .filter(|step| step.times() >= SPAN_STEP_MIN)
            .max_by(|a, b| a.times().total_cmp(&b.times()))
    }
}

/// True if the interval of a rate lies above that of another. False where one of them is unknown.
fn is_certainly_above(high: &Estimate, low: &Estimate) -> bool {
    let (Some(high_width), Some(low_width)) = (high.half_width_95, low.half_width_95) else {
        return false;
    };
    let [least, _] = positive_interval(high.value, high_width);
    least > low.value + low_width
}

/// Returns the step between two spans, if the rate of the longer one is certainly lower.
fn certain_step(fast: &SpanRate, slow: &SpanRate) -> Option<SpanStep> {
    let fast_ns = fast.latency_mean_ns?;
    if !is_certainly_above(fast.iops.as_ref()?, slow.iops.as_ref()?) || fast_ns <= 0.0 {
        return None;
    }
    Some(SpanStep {
        fast_bytes: fast.span_bytes,
        slow_bytes: slow.span_bytes,
        fast_ns,
        slow_ns: slow.latency_mean_ns?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(value: f64, half_width_95: Option<f64>) -> Estimate {
        Estimate {
            n: 20,
            value,
            half_width_95,
            unit: "1/s".to_owned(),
        }
    }

    #[test]
    fn best_cell_is_the_one_with_certainly_the_highest_rate() {
        let cell = |depth, value, half_width: f64| SweepCell {
            block_bytes: 4096,
            depth,
            state: CellState::Measured,
            why: None,
            iops: Some(rate(value, Some(half_width))),
            throughput: None,
            latency_mean_ns: None,
            latency_p50_ns: None,
            latency_p99_ns: None,
            latency_max_ns: None,
        };
        let matrix = SweepMatrix {
            operation: SweepOperation::RandRead,
            cells: vec![
                cell(1, 99.0, 1.0),
                cell(2, 112.0, 55.0),
                cell(4, 100.0, 1.0),
            ],
            knee: None,
            bandwidth_limit: None,
            cost_model: None,
        };
        assert_eq!(matrix.best_iops().unwrap().depth, 4);
        assert_eq!(matrix.best_throughput(), None);
    }

    /// Spans of 1, 4, 16 … MiB with these latencies in microseconds, each known to so much.
    fn over_spans(latencies_us: &[f64], relative: Option<f64>) -> SweepRecord {
        let spans = latencies_us.iter().enumerate().map(|(index, us)| SpanRate {
            span_bytes: 1 << (20 + 2 * index),
            iops: Some(rate(1e6 / us, relative.map(|relative| relative * 1e6 / us))),
            latency_mean_ns: Some(us * 1e3),
            gain: None,
        });
        SweepRecord {
            matrices: Vec::new(),
            spans: spans.collect(),
        }
    }

    #[test]
    fn largest_certain_step_between_spans_is_found() {
        let record = over_spans(&[10.0, 10.5, 11.0, 90.0, 200.0], Some(0.05));
        let step = record.span_step().unwrap();
        assert_eq!((step.fast_bytes, step.slow_bytes), (16 << 20, 64 << 20));
        assert!((step.times() - 90.0 / 11.0).abs() < 1e-9);
    }

    #[test]
    fn unsure_small_and_missing_steps_between_spans_are_none() {
        let latencies = [10.0, 30.0, 31.0];
        assert!(over_spans(&latencies, Some(0.05)).span_step().is_some());
        for (latencies, relative) in [
            (&latencies[..], Some(0.6)),
            (&latencies, None),
            (&[10.0, 19.0, 36.0], Some(0.01)),
            (&[30.0, 10.0], Some(0.01)),
            (&[], None),
        ] {
            let step = over_spans(latencies, relative).span_step();
            assert_eq!(step, None, "{latencies:?}");
        }
        let mut gap = over_spans(&latencies, Some(0.05));
        gap.spans[1].iops = None;
        let step = gap.span_step().unwrap();
        assert_eq!((step.fast_bytes, step.slow_bytes), (1 << 20, 16 << 20));
    }

    /// Its rate rises while the cache fills, so it is known only roughly.
    #[test]
    fn a_cached_span_of_a_rough_rate_is_still_a_step() {
        let mut record = over_spans(&[30.0, 33.0, 5400.0, 5500.0], Some(0.04));
        let warming = record.spans[1].iops.as_mut().unwrap();
        warming.half_width_95 = Some(1.5 * warming.value);
        let step = record.span_step().unwrap();
        assert_eq!((step.fast_bytes, step.slow_bytes), (4 << 20, 16 << 20));
    }

    #[test]
    fn short_stroke_is_the_gain_of_a_tenth_beyond_the_cache() {
        // 1, 4, 16 and 64 MiB of 256 MiB, the first of which is cached.
        let latencies = [20.0, 5000.0, 6000.0, 9000.0, 12_000.0];
        let stroke = over_spans(&latencies, Some(0.05)).short_stroke().unwrap();
        assert_eq!(stroke.span_bytes, 16 << 20);
        assert_eq!(stroke.whole_bytes, 256 << 20);
        assert!((stroke.gain - 2.0).abs() < 1e-9);
        assert_eq!(over_spans(&latencies, Some(0.5)).short_stroke(), None);
        let even = [20.0, 90.0, 91.0, 90.0, 90.0];
        assert_eq!(over_spans(&even, Some(0.01)).short_stroke(), None);
        // The cache answers a tenth of the target and more.
        let cached = [20.0, 20.0, 20.0, 90.0, 91.0];
        assert_eq!(over_spans(&cached, Some(0.01)).short_stroke(), None);
    }

    #[test]
    fn cells_have_names_that_fio_users_read() {
        let name = SweepOperation::RandRead.cell_name(8192, 32);
        assert_eq!(name, "randread-8k-d32");
        assert_eq!(SweepOperation::Write.cell_name(512, 1), "write-512-d1");
        assert_eq!(span_name(8192, 16 << 20), "randread-8k-d1-span16M");
        assert_eq!(size_word(1536), "1536");
    }

    #[test]
    fn names_equal_those_of_the_record() {
        for operation in SweepOperation::ALL {
            let json = serde_json::to_string(&operation).unwrap();
            assert_eq!(json, format!("\"{}\"", operation.as_str()));
        }
    }

    /// 100 µs alone, 10 µs each, 1 GB/s: 1000 B take 1 µs.
    #[test]
    fn cost_model_is_the_larger_of_alone_and_in_turn() {
        let model = CostModel {
            base_ns: 100_000.0,
            request_ns: 10_000.0,
            bytes_per_second: 1e9,
            model_error: 0.0,
            cells_fitted: 9,
        };
        assert!((model.latency_ns(1000, 1) - 101_000.0).abs() < 1e-6);
        assert!((model.latency_ns(1000, 20) - 220_000.0).abs() < 1e-6);
        assert!((model.occupancy_ns(1000) - 11_000.0).abs() < 1e-6);
    }
}
