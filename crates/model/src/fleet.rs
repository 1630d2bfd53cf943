//! Many hosts compared: which disk is not like the others, and why. Its JSON form is the published
//! contract `schema/fleet.v1.schema.json`.

use crate::accept::AcceptVerdict;
use crate::fleet_sum::FleetSum;
use crate::metric::{Direction, Figure, Reason};
use crate::record::{Record, Tool};
use crate::target::TargetKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::fleet_sum::FleetLatencies;

/// Version of the shape of a fleet.
pub const FLEET_SCHEMA: &str = "diskproof.fleet/1";

/// The records of many hosts, row by row, and what they come to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetRecord {
    /// Always [`FLEET_SCHEMA`].
    pub schema: String,
    /// The program that made it.
    pub tool: Tool,
    /// Rows that differ by less than this share are alike, however sure the difference is: 0.1 is
    /// 10 %.
    pub margin: f64,
    /// The scale that the rows were judged by.
    pub basis: FleetBasis,
    /// The answer, which gives the exit status.
    pub outcome: FleetOutcome,
    /// The answer in a sentence.
    pub summary: String,
    /// The meaning of a row.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub rows_are: RowUnit,
    /// Disks of one kind, in the order of their first records.
    pub groups: Vec<FleetGroup>,
    /// The disks: those that differ first, by their distance; then the others by name.
    pub rows: Vec<FleetRow>,
    /// Acceptance tests of disks: those that are not accepted first, then by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tested: Vec<TestedDisk>,
    /// Hosts and ranks that were expected, or that began, and of which no record came, or one
    /// without a figure; also hosts of which that is undecided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingRow>,
    /// The number of hosts or ranks that came beyond those expected, the ranks of all launches; 0
    /// where no number or list was given.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub surplus: u64,
    /// The names of those that came beyond a list of hosts or a number of ranks; of hosts that were
    /// expected by their number alone nobody knows which are too many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unexpected: Vec<String>,
    /// Thresholds of the runs themselves that were missed, or left undecided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmet: Vec<UnmetThreshold>,
    /// Inputs that are no usable record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedInput>,
    /// Figures that hosts gave together which measured at the same instants; absent where fewer
    /// than two did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<FleetSum>,
    /// Records whose workloads define the conditions of the metrics, with their figures alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Record>,
}

/// The scale that the rows of a fleet are judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FleetBasis {
    /// The median and spread of the rows themselves.
    EachOther,
    /// The rows of a saved fleet.
    Reference,
    /// The suspects of a saved fleet were measured again, and judged by others of it that were
    /// measured together with them.
    SecondLook,
}

/// The meaning of a row of a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RowUnit {
    /// One row for each disk.
    #[default]
    Disks,
    /// A host with all its targets: the hosts share one storage.
    Hosts,
    /// A side of a comparison.
    Sides,
}

impl RowUnit {
    /// The word for one row in a text.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Disks => "disk",
            Self::Hosts => "host",
            Self::Sides => "side",
        }
    }
}

/// The answer for a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FleetOutcome {
    /// No row is slower than the others, none has errors, none is missing.
    Alike,
    /// At least one row is slower than the others, has errors, or is missing, or a run missed a
    /// threshold of its own.
    Differs,
    /// Fewer than three rows of a kind: nothing could be judged.
    TooFew,
    /// A run ended before it had measured what others of its kind did, or left a threshold of its
    /// own open, or an acceptance test of a disk decided nothing, or nothing tells whether a run
    /// that ended without a record was repeated.
    Undecided,
}

/// The acceptance test of a disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestedDisk {
    /// The name of the disk on pages: the host and the path.
    pub name: String,
    /// Name of the machine.
    pub host: String,
    /// The rank that a launcher gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// The target's path.
    pub target: String,
    /// Model of the disk; empty where it reports none.
    pub model: String,
    /// The serial number; several of an array.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub serials: Vec<String>,
    /// Id of the run.
    pub run_id: String,
    /// The start in UTC, RFC 3339.
    pub started: String,
    /// The size that the disk claims, in bytes.
    pub claimed_bytes: u64,
    /// The answer of the test.
    pub verdict: AcceptVerdict,
    /// The same in a sentence.
    pub answer: String,
    /// The reason of the verdict, without the verdict; absent of an accepted disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The size that the disk really has, in bytes; absent where nothing contradicts the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real_bytes: Option<u64>,
    /// Average rate of the writes, in bytes per second; absent of a probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_rate: Option<f64>,
    /// Average rate of the reads, in bytes per second; absent of a probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_rate: Option<f64>,
    /// The share of the usual rate of its model that it reaches, where that is clearly less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slower: Option<f64>,
    /// Ids of earlier runs that tested it and decided nothing. This later test answers for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecided_before: Vec<String>,
}

/// Disks of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetGroup {
    /// The kind of the targets: a scratch file in a directory, a file, a device.
    pub kind: TargetKind,
    /// True of rotating disks; `null` where that is not known.
    pub rotational: Option<bool>,
    /// Vendor and model of the disks; empty where none reports one.
    pub model: String,
    /// Size of the disks of its first row, in bytes. The others differ by 1 % at most.
    pub disk_bytes: u64,
    /// The number of rows that belong to it.
    pub rows: usize,
    /// Relative spread of its rows: one standard deviation of the middle metric; `null` where too
    /// few were judged.
    pub spread: Option<f64>,
    /// The metrics that its rows have.
    pub metrics: Vec<FleetMetric>,
    /// The mean distance over several metrics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overall: Vec<FleetOverall>,
    /// Facts that most of its rows have in common beyond their kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<UsualFact>,
    /// The findings of its rows, and how many have them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<UsualFinding>,
}

/// The figure that speaks for a workload, over the rows that measured it under the same conditions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetMetric {
    /// The metric's name, as in a comparison: `fsync-commit.iops`.
    pub metric: String,
    /// Name of the workload.
    pub subject: String,
    /// The kind of figure.
    pub figure: Figure,
    /// The direction in which the figure is better.
    pub better: Direction,
    /// Unit of its values.
    pub unit: String,
    /// The number of rows that have it.
    pub rows: usize,
    /// Index in `examples` of the record that defines its conditions; `null` where too few rows
    /// have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<usize>,
    /// Index of the target in that record.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub target: usize,
    /// Least, lower quartile, median, upper quartile and greatest value of the rows that are alike;
    /// empty where there is none.
    pub five_numbers: Vec<f64>,
    /// The scale for another row; `null` where too few rows have the metric.
    pub scale: Option<FleetScale>,
    /// The latencies of the rows that are alike, merged, for each kind of operation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latencies: Vec<FleetLatencies>,
}

/// The mean distance over several metrics, of the rows that have all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetOverall {
    /// Indices of the metrics.
    pub metrics: Vec<usize>,
    /// The scale for another row, in standard errors.
    pub scale: FleetScale,
}

/// Median and spread of logarithms: of a rate, or of one over a time, so that more is faster.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetScale {
    /// The number of rows that it follows from.
    pub rows: usize,
    /// Median of these rows.
    pub median: f64,
    /// Spread of these rows: 1.4826 times the median absolute deviation, unbiased.
    pub spread: f64,
    /// The spread that was assumed before any row was looked at.
    pub floor: f64,
    /// Median of the squares of the errors that the rows' own records state.
    pub error_squared: f64,
    /// Degrees of freedom of the Student t that has their tails.
    pub tail_freedom: f64,
}

/// A fact that most rows of a group share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsualFact {
    /// The word for the fact, such as `firmware`.
    pub what: String,
    /// The value of most rows.
    pub value: String,
    /// The number of rows that have this value.
    pub rows: usize,
}

/// A finding, and how many rows of a group have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsualFinding {
    /// Code of the finding.
    pub code: String,
    /// The number of rows that have it.
    pub rows: usize,
}

/// The answer for a row or one of its figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RowState {
    /// Like the others, as far as these runs tell.
    Alike,
    /// Surely slower than the others, and by more than the margin.
    Slower,
    /// Surely faster than the others, and by more than the margin.
    Faster,
    /// Slower, but of so many rows one is by chance.
    Suspect,
    /// The disk failed: some of its requests did, it stopped answering, sectors are unreadable, or
    /// it reports that it is failing.
    Errors,
    /// No judgement is possible; a reason stands beside it.
    NotJudged,
}

impl FleetRecord {
    /// The number of hosts and ranks that are missing for certain.
    pub fn missing_count(&self) -> u64 {
        hosts_of(self.missing.iter().filter(|row| !row.undecided))
    }

    /// The number of hosts and ranks of which it is undecided whether they are missing.
    pub fn maybe_missing_count(&self) -> u64 {
        hosts_of(self.missing.iter().filter(|row| row.undecided))
    }
}

/// The number of hosts and ranks that these rows are.
fn hosts_of<'a>(rows: impl Iterator<Item = &'a MissingRow>) -> u64 {
    let mut sum: u64 = 0;
    for row in rows {
        sum = sum.saturating_add(row.count.unwrap_or(1));
    }
    sum
}

impl RowState {
    /// Every state.
    pub const ALL: [Self; 6] = [
        Self::Alike,
        Self::Slower,
        Self::Faster,
        Self::Suspect,
        Self::Errors,
        Self::NotJudged,
    ];

    /// The word used in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Alike => "alike",
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::Suspect => "suspect",
            Self::Errors => "errors",
            Self::NotJudged => "not judged",
        }
    }
}

/// A disk: a target of a host. Several runs of it are averaged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetRow {
    /// The name on pages: the host, and of the rest what tells it from others.
    pub name: String,
    /// Name of the machine.
    pub host: String,
    /// The rank that a launcher gave it; absent where its launches gave it different ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Path of the target.
    pub target: String,
    /// Kernel names of the disks at the bottom.
    pub disks: Vec<String>,
    /// Serial numbers of its disks, as far as they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub serials: Vec<String>,
    /// The machine of all its runs, as their records identify it; absent where they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// What parts it from other rows of its host's name (`other-machine`, `at-once`), or that
    /// nothing tells whether its runs are of one machine (`unproven`); absent where neither is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Reason>,
    /// The runs whose figures it takes together.
    pub runs: Vec<FleetRun>,
    /// Index of its group; `null` where it was not compared with others.
    pub group: Option<usize>,
    /// The answer for the row.
    pub state: RowState,
    /// One for each metric that it has.
    pub values: Vec<FleetValue>,
    /// Mean distance over its metrics, and how sure it is; `null` where it was not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overall: Option<FleetDistance>,
    /// Likely reasons, the likeliest first: facts that most of the others do not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<FleetReason>,
    /// Failures and warnings of its runs about the disk itself, such as its health or stalls,
    /// whatever the answer for the row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<FleetReason>,
    /// The reason why it was not judged; absent where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_judged: Option<Reason>,
}

/// A run of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FleetRun {
    /// The id in its record.
    pub run_id: String,
    /// The start in UTC, RFC 3339.
    pub started: String,
    /// True if it ended before its plan did.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub partial: bool,
}

/// A figure of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetValue {
    /// Index of the metric in its group.
    pub metric: usize,
    /// The figure; the geometric mean of several runs.
    pub value: f64,
    /// Standard error as a share of the value, as the row's own records state; 0 where they state
    /// none.
    pub error: f64,
    /// The answer for this figure.
    pub state: RowState,
    /// Distance from the others; `null` where it was not judged.
    pub distance: Option<FleetDistance>,
    /// The reason why it was not judged; absent where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_judged: Option<Reason>,
    /// Latencies of the workload, where the row differs from the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latencies: Vec<FleetLatencies>,
}

/// The distance of a row from the others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetDistance {
    /// Times as fast as the median of the others: 0.5 is half as fast.
    pub speed: f64,
    /// The distance in standard errors.
    pub t: f64,
    /// Probability of this distance by chance alone, for one row and metric.
    pub p_value: f64,
    /// `p` after allowing for the number of rows and metrics (Holm).
    pub p_adjusted: f64,
}

/// Something that tells a row from the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FleetReason {
    /// Stable name: the code of a finding, a fact such as `link`, or a symptom such as
    /// `span-differs`.
    pub code: String,
    /// A clause with the value of this side and that of the others.
    pub text: String,
}

/// A host or rank of which no record came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissingRow {
    /// The host, or the rank where only that is known.
    pub name: String,
    /// A clause with what is known of it.
    pub why: String,
    /// The number of hosts or ranks that this is, where only that is known; absent of one with a
    /// name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// True if a later run may have repeated the one whose record did not come, and nothing tells
    /// whether it did; also of a search for a rate that came to its end and is undecided.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub undecided: bool,
}

/// A threshold that a run of a host did not meet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnmetThreshold {
    /// The host, and its rank where it has one.
    pub name: String,
    /// The expression as its user gave it.
    pub expression: String,
    /// True if the measurement leaves open whether it was met.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub undecided: bool,
}

/// An input that is no usable record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedInput {
    /// The file, or the place in a stream.
    pub name: String,
    /// A clause with what is wrong with it.
    pub why: String,
    /// True if a record was lost with it, as it is truncated, damaged or empty; false where it
    /// holds something else.
    pub is_lost: bool,
}

/// The announcement of a process before its first request, so that a rank which dies has a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Always [`HELLO_SCHEMA`].
    pub schema: String,
    /// Id of the run.
    pub run_id: String,
    /// Name of the machine.
    pub host: String,
    /// The rank that a launcher gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// The number of ranks that the launcher started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    /// The start of the run in UTC, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// The launcher's job and step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Identifies the machine, as in its record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Paths of the targets.
    pub targets: Vec<String>,
    /// The number of slots that it measures together with others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
}

/// Version of the shape of a [`Hello`].
pub const HELLO_SCHEMA: &str = "diskproof.hello/1";
