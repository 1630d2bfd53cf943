//! The surface of a disk: transfer rate and access time by position. A `Survey` is the plan, a
//! `SurfaceMeasurement` what was measured, a `SurfaceRecord` its report. Points and seeks are at
//! the top of a record (`curve`, `access`).

use crate::estimate::Estimate;
use crate::measurement::{ByteCount, CacheUse, CpuTime, DeviceUse, Hang, Interruption, ZeroSample};
use crate::op::OpKind;
use crate::units::counted;
use crate::workload::{EngineChoice, EngineKind, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A survey of a smaller target would be a single large request.
pub const SURVEY_BYTES_MIN: u64 = 1 << 20;

/// The steps of a survey on one target, in this order: curve, burst, access times, scan; each only
/// where asked. Short strokes are ordinary workloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Survey {
    /// Read or write; writes need a target that the user released.
    pub operation: OpKind,
    /// The part of the target that is surveyed.
    pub span: Span,
    /// The I/O engine that carries the requests.
    #[serde(default = "any_engine")]
    pub engine: EngineChoice,
    /// Transfer rate by position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<CurvePlan>,
    /// Rate of reading the same bytes repeatedly: the device's cache and its link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<BurstPlan>,
    /// Access time by seek distance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<AccessPlan>,
    /// Every block, for slow and unreadable ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan: Option<ScanPlan>,
}

/// The engine of surveys in records that name none.
fn any_engine() -> EngineChoice {
    EngineChoice::Auto
}

/// The speed that is assumed of a disk that was not measured yet.
struct SpeedGuess {
    bytes_per_second: f64,
    access_ns: f64,
}

/// Taken for a rotating disk, and for one of unknown kind.
const GUESS_ROTATING: SpeedGuess = SpeedGuess {
    bytes_per_second: 120e6,
    access_ns: 15e6,
};
/// Taken for a disk without moving parts.
const GUESS_FLASH: SpeedGuess = SpeedGuess {
    bytes_per_second: 500e6,
    access_ns: 0.2e6,
};
/// Time of a sampled point: about 0.2 s in the fastest part of a disk, more further inside, and the
/// way there.
const POINT_NS: f64 = 0.33e9;
/// The longest that a sampled point may take on average, in nanoseconds, and where a flush ends
/// each sample: a little more than samples of full length take on the slowest part of a disk.
pub const POINT_NS_MAX: (u64, u64) = (500_000_000, 1_500_000_000);

/// The time that a step takes beyond its own: requests in flight at its end are waited for.
const STEP_OVERTIME_NS: u64 = 500_000_000;

impl Survey {
    /// The longest that it may take, in nanoseconds; `None` where a step has no time limit.
    pub fn time_ns_max(&self) -> Option<u64> {
        let curve_ns = match self.curve {
            None => 0,
            // The second reading of a few points follows.
            Some(curve) => curve.time_ns? / 6 * 7 + STEP_OVERTIME_NS,
        };
        let times_ns = [
            self.burst.map(|burst| burst.time_ns),
            self.access.map(|access| access.time_ns),
        ];
        let others_ns = times_ns
            .into_iter()
            .flatten()
            .map(|ns| ns + STEP_OVERTIME_NS);
        let all_ns = curve_ns + others_ns.sum::<u64>();
        self.scan.is_none().then_some(all_ns)
    }

    /// Estimates the time that it takes on a target of `target_bytes` that was not measured yet, in
    /// nanoseconds. A disk of unknown kind counts as a rotating one.
    pub fn time_ns_guess(&self, target_bytes: u64, rotational: Option<bool>) -> u64 {
        let SpeedGuess {
            bytes_per_second: rate,
            access_ns,
        } = match rotational {
            Some(false) => GUESS_FLASH,
            Some(true) | None => GUESS_ROTATING,
        };
        let bytes_to_end = target_bytes.saturating_sub(self.span.start_bytes);
        let span = self
            .span
            .length_bytes
            .unwrap_or(bytes_to_end)
            .min(bytes_to_end) as f64;
        let all_ns = span / rate * 1e9;
        let curve = self.curve.map_or(0.0, |plan| {
            let points = f64::from(plan.points);
            let ns = match plan.coverage {
                Coverage::Full => all_ns,
                Coverage::Sampled { sample_bytes: None } => points * POINT_NS,
                Coverage::Sampled {
                    sample_bytes: Some(bytes),
                }
                | Coverage::Blocks { block_bytes: bytes } => {
                    points * (bytes as f64 / rate * 1e9 + POINT_NS / 4.0)
                }
            };
            ns.min(all_ns)
                .min(plan.time_ns.map_or(f64::INFINITY, |ns| ns as f64))
        });
        let burst = self.burst.map_or(0, |plan| plan.time_ns) as f64;
        let access = self.access.map_or(0.0, |plan| {
            let reads = f64::from(plan.random_reads)
                + f64::from(SeekPattern::OTHERS) * f64::from(plan.pattern_reads);
            (reads * access_ns).min(plan.time_ns as f64)
        });
        let scan = self.scan.map_or(0.0, |plan| {
            all_ns - plan.resume_bytes.saturating_sub(self.span.start_bytes) as f64 / rate * 1e9
        });
        (curve + burst + access + scan.max(0.0)) as u64
    }
}

/// Transfer rate by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePlan {
    /// Points, evenly spaced over the span.
    pub points: u32,
    /// The share of the span that is transferred at each point.
    pub coverage: Coverage,
    /// The time that it should take, in nanoseconds: samples become smaller, then fewer. `None`:
    /// as long as precision needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<u64>,
}

/// The share of the span that is transferred at each point of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Coverage {
    /// A sample at each point.
    Sampled {
        /// Bytes of a sample; `None`: as many as precision needs and a fiftieth of the span allows.
        sample_bytes: Option<u64>,
    },
    /// A whole block of the target, whose first and last requests are not timed.
    Blocks {
        /// Bytes of one request.
        block_bytes: u64,
    },
    /// Everything between this point and the next.
    Full,
}

/// Rate of reading the same bytes repeatedly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BurstPlan {
    /// Bytes that are read repeatedly; small enough for the cache of any disk.
    pub bytes: u64,
    /// Longest time, in nanoseconds.
    pub time_ns: u64,
}

/// Access time by seek distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccessPlan {
    /// Random accesses over the span.
    pub random_reads: u32,
    /// Accesses of each other pattern.
    pub pattern_reads: u32,
    /// Bytes per access; one sector where the target takes it.
    pub block_bytes: u32,
    /// Longest time for all of them, in nanoseconds.
    pub time_ns: u64,
}

/// Every block, for slow and unreadable ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScanPlan {
    /// Bytes of one read.
    pub block_bytes: u32,
    /// The byte at which to begin: everything before it was scanned by an earlier run.
    pub resume_bytes: u64,
}

/// The movement of the heads between two accesses.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SeekPattern {
    /// Anywhere in the span.
    Random,
    /// Accesses to a neighbouring track: the next one lies a little further on.
    TrackToTrack,
    /// A third of the span, which is the mean distance of random accesses.
    ThirdStroke,
    /// Each access goes from one end of the span to the other.
    FullStroke,
    /// Accesses go from both ends towards the middle alternately.
    Butterfly,
}

impl SeekPattern {
    /// All patterns, in the order in which they are measured.
    pub const ALL: [Self; 5] = [
        Self::Random,
        Self::TrackToTrack,
        Self::ThirdStroke,
        Self::FullStroke,
        Self::Butterfly,
    ];
    /// The number of patterns besides the random one.
    pub const OTHERS: u32 = Self::ALL.len() as u32 - 1;

    /// The words used in tables and charts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::TrackToTrack => "track to track",
            Self::ThirdStroke => "third stroke",
            Self::FullStroke => "full stroke",
            Self::Butterfly => "butterfly",
        }
    }

    /// The name of its step in a record: `access-track-to-track`.
    pub fn subject(self) -> String {
        format!("access-{}", self.as_str().replace(' ', "-"))
    }
}

/// The transfer rate at one place.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// First byte of the sample.
    pub offset_bytes: u64,
    /// Rate of the sample.
    pub bytes_per_second: f64,
    /// Bytes that were timed.
    pub bytes: u64,
    /// Time that they took, in nanoseconds.
    pub busy_ns: u64,
    /// Longest request among them, in nanoseconds.
    pub latency_max_ns: u64,
    /// Requests that failed; they are in neither bytes nor rate.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub errors: u64,
    /// Errors of the sample by errno name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errnos: BTreeMap<String, u64>,
    /// Standard error of the rate, as a share of it, by how the parts of the sample differ; absent
    /// with too few parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<f64>,
    /// Nanoseconds for which this program was ready to look at the disk and got no processor, as
    /// far as the kernel tells.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub late_ns: u64,
    /// Rates of all readings in order, in bytes per second, where the place was read more than
    /// once because it stood out from its neighbours; the point is their median, of two the
    /// slower. Absent where once was enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<f64>,
    /// Rate of a reading at the end of the survey, in bytes per second, where the place lies in a
    /// stretch that was slower than its sides, or alongside one. Absent elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later_bytes_per_second: Option<f64>,
}

impl CurvePoint {
    /// A point that was read once, with nothing known of its error.
    pub fn read_once(offset_bytes: u64, bytes: u64, busy_ns: u64) -> Self {
        Self {
            offset_bytes,
            bytes_per_second: bytes as f64 * 1e9 / busy_ns.max(1) as f64,
            bytes,
            busy_ns,
            ..Self::default()
        }
    }
}

/// One read of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccessPoint {
    /// The pattern that it belongs to.
    pub seek: SeekPattern,
    /// The byte that was read.
    pub offset_bytes: u64,
    /// Bytes between this place and that of the access before.
    pub distance_bytes: u64,
    /// Nanoseconds from before the submission to the completion.
    pub latency_ns: u64,
}

/// Rate of reading the same bytes repeatedly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Burst {
    /// Bytes that were read repeatedly.
    pub bytes: u64,
    /// Times that the same bytes were read.
    pub rounds: u64,
    /// Rate of the first reading, which may still come from the medium.
    pub first_bytes_per_second: f64,
    /// Rate of all later ones.
    pub throughput: Estimate,
}

/// The results of a scan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scan {
    /// Bytes of one read.
    pub block_bytes: u32,
    /// The byte at which this run began.
    pub from_bytes: u64,
    /// The byte at which it ended: the end of the span, or where `--resume` goes on.
    pub to_bytes: u64,
    /// True if the whole span is done.
    pub finished: bool,
    /// Blocks that this run tried to read.
    pub blocks: u64,
    /// Median latency of the blocks that were read, in nanoseconds; `None` where none was.
    pub latency_p50_ns: Option<u64>,
    /// Latency from which on a block counts as slow, in nanoseconds.
    pub slow_from_ns: u64,
    /// The number of slow blocks.
    pub slow_blocks: u64,
    /// The slowest of them, by position; at most 1000.
    pub slow: Vec<SlowBlock>,
    /// The number of bytes that could not be read.
    pub unreadable_bytes: u64,
    /// Ranges that could not be read, narrowed to sectors, by position; at most 1000.
    pub unreadable: Vec<UnreadableRange>,
    /// The unreadable range at which it ended before the span was done, which the list may be too
    /// full for; absent where it ended otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<UnreadableRange>,
    /// Latency by position, at most 1000 cells.
    pub map: Vec<ScanCell>,
}

impl Scan {
    /// Blocks of which a part or the whole could not be read.
    pub fn failed_blocks(&self) -> u64 {
        self.map.iter().map(|cell| cell.errors).sum()
    }

    /// How many blocks were read, in words: "3 of 1024 blocks", or "1024 blocks" if all were.
    pub fn read_blocks_text(&self) -> String {
        let blocks = counted(self.blocks, "block");
        match self.failed_blocks() {
            0 => blocks,
            failed => format!("{} of {blocks}", self.blocks.saturating_sub(failed)),
        }
    }
}

/// A block that took long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlowBlock {
    /// First byte of the block.
    pub offset_bytes: u64,
    /// First logical block address of it.
    pub lba: u64,
    /// Latency in nanoseconds: the block was read twice, and the shorter reading counts.
    pub latency_ns: u64,
}

/// Neighbouring sectors that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnreadableRange {
    /// First byte of the range.
    pub offset_bytes: u64,
    /// Length in bytes.
    pub length_bytes: u64,
    /// First logical block address of it.
    pub lba: u64,
    /// Name of the errno.
    pub errno: String,
}

/// A part of the span in the map of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScanCell {
    /// First byte of the cell.
    pub offset_bytes: u64,
    /// Blocks read in it.
    pub blocks: u64,
    /// Mean latency of its blocks, in nanoseconds.
    pub latency_mean_ns: u64,
    /// Longest latency of its blocks, in nanoseconds.
    pub latency_max_ns: u64,
    /// Blocks that could not be read.
    pub errors: u64,
}

/// The results of a survey, without judgement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SurfaceMeasurement {
    /// Index into the plan's targets.
    pub target: usize,
    /// The survey of the plan.
    pub survey: Survey,
    /// First byte of the span that was really used.
    pub span_start_bytes: u64,
    /// Length of the span in bytes.
    pub span_bytes: u64,
    /// Start, nanoseconds after the start of the run.
    pub start_ns: u64,
    /// Duration of everything, in nanoseconds.
    pub wall_ns: u64,
    /// Duration of the curve alone, in nanoseconds.
    pub curve_ns: u64,
    /// CPU time of this program during the curve.
    pub curve_cpu: CpuTime,
    /// The I/O engine that carried the requests of the curve.
    pub engine: EngineKind,
    /// The cache policy that was asked for, and the one that was used.
    pub cache: CacheUse,
    /// Points in the order of their position.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<CurvePoint>,
    /// Repeated reads of the same bytes, which the disk's cache answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Burst>,
    /// The accesses in the order in which they were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub access: Vec<AccessPoint>,
    /// Requests that failed and are in no point of the curve and no range of the scan, by errno
    /// name: accesses, the burst, the trial of the rate, untimed requests, readings that do not
    /// count, and the first requests before the survey.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub access_errors: BTreeMap<String, u64>,
    /// The scan of every block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan: Option<Scan>,
    /// A look at the content of blocks that were read; empty in records of versions before 0.2.0.
    #[serde(default)]
    pub zero_blocks: ZeroSample,
    /// Bytes of the span that were never written, where the filesystem tells; `None` of writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritten_bytes: Option<u64>,
    /// Nanoseconds for which the program was ready to go on and got no processor, as far as the
    /// kernel tells.
    pub starved_ns: u64,
    /// Bytes that this program requested from the disks below.
    pub asked: ByteCount,
    /// Load of the disks and of other processes meanwhile.
    pub device: DeviceUse,
    /// True if the user ended it before it was done.
    pub interrupted: bool,
    /// The hang of the target for which the wait timed out; one of its requests is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hang: Option<Hang>,
    /// The longest time without an answer before its requests, while the target was made ready, in
    /// nanoseconds: the first requests, the trials of engines. 0 below 0.5 s.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub silence_before_ns: u64,
    /// Pauses of the curve and the burst in which no request completed for 0.5 s or longer, and
    /// after which the target went on; the first 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<Hang>,
    /// Times in which this program did not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interruptions: Vec<Interruption>,
}

/// A survey: what was measured, and its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SurfaceRecord {
    /// The results, from which the figures follow.
    pub data: SurfaceMeasurement,
    /// The figures, which follow from the results.
    pub figures: SurfaceFigures,
}

/// The figures of a survey.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SurfaceFigures {
    /// Bytes transferred for the curve.
    pub curve_bytes: u64,
    /// Share of the span that the curve transferred, 0 to 1.
    pub curve_share: f64,
    /// CPU time of this program over the duration of the curve; 1 is one CPU fully used.
    pub curve_cpu_share: f64,
    /// Minimum, maximum and average rate; `null` without a curve.
    pub rate: Option<RateSummary>,
    /// Access times by pattern.
    pub seeks: BTreeMap<SeekPattern, SeekSummary>,
    /// Gains of spans that are shorter than the disk.
    pub short_strokes: Vec<ShortStroke>,
    /// Share of the duration in which this program was ready to go on and got no processor, as far
    /// as the kernel tells.
    pub starved_share: f64,
    /// A one-line command of a well-known tool that shows the same curve.
    pub reproduce: String,
}

/// Minimum, maximum and average of a curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateSummary {
    /// The slowest point, in bytes per second; of points that took less than 20 ms, the slowest
    /// stretch of neighbours that took as long.
    pub min: f64,
    /// The same for the fastest.
    pub max: f64,
    /// Average over position: the whole span over the time that it would take.
    pub average: Estimate,
}

/// Access times of one pattern.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeekSummary {
    /// The number of accesses.
    pub n: u64,
    /// The shortest latency, in nanoseconds.
    pub min_ns: u64,
    /// Mean latency in nanoseconds, with its interval.
    pub mean: Estimate,
    /// Median latency in nanoseconds.
    pub p50_ns: u64,
    /// The longest latency, in nanoseconds.
    pub max_ns: u64,
    /// Mean distance in bytes.
    pub distance_mean_bytes: f64,
    /// Accesses per second one after the other: the inverse of the mean.
    pub iops: f64,
}

/// The gain of using the first part of a disk alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShortStroke {
    /// Part of the whole span that is used, in percent.
    pub percent: f64,
    /// Bytes of the part.
    pub span_bytes: u64,
    /// Index into `measurements` of the random reads within it.
    pub measurement: usize,
    /// Random reads per second.
    pub iops: Estimate,
    /// The IOPS of the part over those of the longest span.
    pub gain: f64,
    /// Mean access time, in nanoseconds.
    pub latency_mean_ns: f64,
    /// Worst access time, in nanoseconds.
    pub latency_max_ns: u64,
    /// Average transfer rate within it, in bytes per second, from the curve; `null` without one.
    pub throughput: Option<f64>,
}

/// Promises of the data sheet, for comparison with the figures.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DataSheet {
    /// Revolutions per minute.
    pub rpm: Option<u32>,
    /// Average seek time, in nanoseconds.
    pub seek_ns: Option<u64>,
    /// Highest sustained transfer rate, in bytes per second.
    pub bytes_per_second: Option<f64>,
    /// Highest sustained rate of writes, in bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_bytes_per_second: Option<f64>,
    /// Random reads per second with a full queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_iops: Option<f64>,
    /// Random writes per second with a full queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_iops: Option<f64>,
    /// Bytes that the disk holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
}
