//! The one result of every run: the plan, the targets, what was measured, what it means. Printed,
//! saved and compared by others. Its JSON form is the published contract
//! `schema/record.v3.schema.json`.

use crate::campaign::CampaignPart;
use crate::data::RunData;
use crate::files::{CacheDrop, FileRound, FileStep, FileSyncTime};
use crate::finding::{Finding, LimitedBy};
use crate::health::DiskHealth;
use crate::latency_search::LatencySearch;
use crate::layers::LayersRecord;
use crate::limiter::BurstCredit;
use crate::measurement::{
    ByteCount, CacheUse, CpuTime, DeviceUse, EngineUse, Hang, Interruption, MovedTotal, PerOp,
    Starvation, StopReason, VerifyResult, ZeroSample,
};
use crate::observed::ObservedRecord;
use crate::ping::PingRecord;
use crate::plan::Plan;
use crate::postgres::PostgresRecord;
use crate::series::TimeSeries;
use crate::shape::{BlockShare, LoadShape};
use crate::stream::Streams;
use crate::surface::{AccessPoint, CurvePoint, SurfaceRecord};
use crate::sweep::SweepRecord;
use crate::target::{HostFacts, TargetIdentity, WriteCache};
use crate::trend::RunToRun;
use crate::verdict::RunVerdict;
use crate::window::TimeSlice;
use crate::workload::{Access, CachePolicy, EngineKind, SyncPolicy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use crate::estimate::{Estimate, positive_interval};

/// Version of the record's shape.
pub const RECORD_SCHEMA: &str = "diskproof.record/3";

/// Everything about one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Always [`RECORD_SCHEMA`].
    pub schema: String,
    /// The program that made it.
    pub tool: Tool,
    /// Version of the measuring method; only equal ones compare.
    pub method: u32,
    /// Version of the rules by which everything else follows from `data`.
    pub judging: u32,
    /// Unique among all runs on all machines.
    pub run_id: String,
    /// Start in UTC, RFC 3339, with nine digits after the second, read together with the monotonic
    /// clock. Every time in the record is an offset from it. Only series and windows of a sliced
    /// workload count measured time, which `slices` places.
    pub started: String,
    /// Whether the run ended before its plan did.
    pub partial: bool,
    /// Why it ended early, in a sentence with what to do; `None` when it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<String>,
    /// Where the targets stopped answering outside of the measured requests: while something was
    /// prepared, written back or cleaned up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled: Option<Stalled>,
    /// The user's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The machine.
    pub host: HostFacts,
    /// The clock that timed it.
    pub clock: ClockFacts,
    /// What was to be measured.
    pub plan: Plan,
    /// The targets, in the order of the plan.
    pub targets: Vec<TargetIdentity>,
    /// What was measured, in the order of the plan.
    pub measurements: Vec<MeasurementRecord>,
    /// What the run moved in all, warm-up and the first write of scratch files included, survey
    /// excluded. A burst credit that is larger than this would not have shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<MovedTotal>,
    /// What came of the tasks beyond the measurements, in their order; of a survey first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<TaskResult>,
    /// Limiters with a burst credit that ended during the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub burst_credits: Vec<BurstCredit>,
    /// What the disks report about their own health.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health: Vec<DiskHealth>,
    /// What the figures mean, in short; absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<RunVerdict>,
    /// What was found, the most severe first.
    pub findings: Vec<Finding>,
    /// Settings that follow from the figures.
    pub advice: Vec<Advice>,
    /// Thresholds that the user set, and how they came out.
    pub expectations: Vec<Expectation>,
    /// What was measured, thinned: all of the above is derived from it. Absent where it would make
    /// a page too large; such a record cannot be judged again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RunData>>,
}

impl Record {
    /// The same without what was measured, which takes most of its memory. It cannot be judged
    /// again.
    pub fn without_data(self) -> Self {
        Self { data: None, ..self }
    }
}

/// What came of a task, beyond the measurements of its workloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TaskResult {
    /// Transfer rate and access time by position. It stands first, at [`FIRST_RESULT`].
    Survey(Box<SurfaceRecord>),
    /// The matrix of a sweep, and what follows from it.
    Sweep(SweepRecord),
    /// The greatest depth at which most requests meet a latency limit.
    Depth(LatencySearch),
    /// What each layer between a file and its disk costs.
    Layers(LayersRecord),
    /// The comparison that the record is one side of.
    Compared(CampaignPart),
    /// Operations on many small files. They stand first, at [`FIRST_RESULT`].
    Files(FilesRecord),
    /// INSERTs of a temporary PostgreSQL server, alongside this run's own commits.
    Inserts(PostgresRecord),
    /// The real load of the targets, which this program watched and did not make.
    Observed(Box<ObservedRecord>),
}

/// JSON pointer of the result of a survey, of many small files and of an observation.
pub const FIRST_RESULT: &str = "/results/0";

impl Record {
    /// The matrix of a sweep; `None` of a run that was none.
    pub fn sweep(&self) -> Option<&SweepRecord> {
        self.results.iter().find_map(|result| match result {
            TaskResult::Sweep(found) => Some(found),
            _ => None,
        })
    }

    /// What a search for the greatest depth found; `None` of a run that was none.
    pub fn latency_search(&self) -> Option<&LatencySearch> {
        self.results.iter().find_map(|result| match result {
            TaskResult::Depth(found) => Some(found),
            _ => None,
        })
    }

    /// What each layer costs; `None` of a run without layers.
    pub fn layers(&self) -> Option<&LayersRecord> {
        self.results.iter().find_map(|result| match result {
            TaskResult::Layers(found) => Some(found),
            _ => None,
        })
    }

    /// The comparison that it is one side of; `None` of a run by itself.
    pub fn campaign(&self) -> Option<&CampaignPart> {
        self.results.iter().find_map(|result| match result {
            TaskResult::Compared(found) => Some(found),
            _ => None,
        })
    }

    /// Operations on many small files; `None` of a run without them.
    pub fn files(&self) -> Option<&FilesRecord> {
        self.results.iter().find_map(|result| match result {
            TaskResult::Files(found) => Some(found),
            _ => None,
        })
    }

    /// The INSERTs of a server; `None` of a run without one.
    pub fn postgres(&self) -> Option<&PostgresRecord> {
        self.results.iter().find_map(|result| match result {
            TaskResult::Inserts(found) => Some(found),
            _ => None,
        })
    }

    /// The load of others; `None` of a run that watched none.
    pub fn observed(&self) -> Option<&ObservedRecord> {
        self.results.iter().find_map(|result| match result {
            TaskResult::Observed(observed) => Some(&**observed),
            _ => None,
        })
    }

    /// The survey; `None` of a run without one.
    pub fn surface(&self) -> Option<&SurfaceRecord> {
        self.results.iter().find_map(|result| match result {
            TaskResult::Survey(surface) => Some(&**surface),
            _ => None,
        })
    }

    /// The same, to change it.
    pub fn surface_mut(&mut self) -> Option<&mut SurfaceRecord> {
        self.results.iter_mut().find_map(|result| match result {
            TaskResult::Survey(surface) => Some(&mut **surface),
            _ => None,
        })
    }

    /// Transfer rate by position; empty where no curve was measured.
    pub fn curve(&self) -> &[CurvePoint] {
        match self.surface() {
            Some(surface) => &surface.curve,
            None => &[],
        }
    }

    /// Access times, in the order of the accesses; empty where none was measured.
    pub fn access(&self) -> &[AccessPoint] {
        match self.surface() {
            Some(surface) => &surface.access,
            None => &[],
        }
    }
}

/// A program and its version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// `diskproof`.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The clock, measured before it was trusted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockFacts {
    /// Where time came from: `CLOCK_MONOTONIC`, `TSC` …
    pub source: String,
    /// Smallest step seen, in nanoseconds.
    pub resolution_ns: u64,
    /// Cost of one reading, in nanoseconds.
    pub cost_ns: f64,
}

/// One measurement with its derived figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasurementRecord {
    /// Index into `targets`.
    pub target: usize,
    /// The workload as it really ran.
    pub workload: WorkloadRecord,
    /// Start of the measured time, nanoseconds after the start of the run.
    pub start_ns: u64,
    /// Measured time in nanoseconds, a final sync included: one call for all writers that ran
    /// together on a target, which counts in full for each.
    pub wall_ns: u64,
    /// Prefix of the measured time that the estimates skip because the rate had not settled, in
    /// nanoseconds.
    pub settling_ns: u64,
    /// Whether the rate settled at all within the measured time; `null` when there was too little
    /// to tell.
    pub settled: Option<bool>,
    /// The phases of the workload, in order; empty where it was one. The first write of a new file
    /// is before the measured time. The figures of this measurement are those of the last phase,
    /// except for errors, short transfers and verification, which count over the whole time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseRecord>,
    /// CPU time of this program in the measured time after `settling_ns`.
    pub cpu: CpuTime,
    /// Per kind of operation.
    pub ops: PerOp<OpRecord>,
    /// Bytes that this program requested from the disks below, compared with `device`. Includes the
    /// warm-up (where the measured time was one phase), other targets on the same disks and
    /// workloads that ran together with it.
    pub asked: ByteCount,
    /// What the disks and the other processes did.
    pub device: DeviceUse,
    /// How the page cache was treated.
    pub cache: CacheUse,
    /// What carried the operations.
    pub engine: EngineUse,
    /// Requests in flight, averaged over the measured time after `settling_ns`.
    pub achieved_depth: f64,
    /// Time per operation that no latency covers (depth 1 only), in nanoseconds.
    pub dead_time_ns: Option<f64>,
    /// How the worker threads waited for processors: a completion in that time is seen late, which
    /// counts as latency. Zeros where the system does not report it.
    #[serde(default)]
    pub starved: Starvation,
    /// Operations per second that the same workers reach with no I/O at all; `null` where the
    /// target is so far below that it was not measured.
    #[serde(default)]
    pub ceiling_iops: Option<f64>,
    /// A look at the content of the blocks read.
    pub zero_blocks: ZeroSample,
    /// Unwritten bytes in the span before the workload began.
    pub unwritten_bytes: Option<u64>,
    /// Open loop: operations that started more than 1 ms after they should have, or were that late
    /// and not started at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed_starts: Option<u64>,
    /// Whether io_uring handed this target's I/O to worker threads, or would have, where another
    /// interface was taken for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub punted: Option<bool>,
    /// The outcome of reading back what was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<VerifyResult>,
    /// Where the target hung: the wait for its requests timed out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hang: Option<Hang>,
    /// When this program did not run, from the start of the warm-up on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interruptions: Vec<Interruption>,
    /// The parts, apart in time, in which it was measured; empty where it was measured in one go.
    /// The intervals cover how much they differ. Series and `wall_ns` count measured time only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<TimeSlice>,
    /// What was written to fill the scratch file just before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub laid_out: Option<MovedTotal>,
    /// The measured time that was planned, in nanoseconds, where the time limit of the run left
    /// clearly less; absent elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortened_from_ns: Option<u64>,
    /// How its rate varies from run to run; absent where the history does not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_to_run: Option<RunToRun>,
    /// What a ping says of single requests; absent in every other measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ping: Option<PingRecord>,
    /// Why it ended.
    pub stopped: StopReason,
    /// What limited the rate, where the record shows it; absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<LimitedBy>,
    /// A one-line command of a well-known tool that shows the same figure.
    pub reproduce: String,
}

/// A part of the measured time with its own rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseRecord {
    /// What kind of part it is.
    pub name: PhaseKind,
    /// Its start, in nanoseconds after the start of the run.
    pub start_ns: u64,
    /// Its end, in nanoseconds after the start of the run.
    pub end_ns: u64,
    /// Per kind of operation; only kinds that occurred in it.
    pub ops: PerOp<PhaseOp>,
}

/// What kind of phase it is.
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
    /// Its name in records and in text.
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
    /// Operations that succeeded.
    pub count: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Operations per second.
    pub rate: Estimate,
    /// Bytes per second.
    pub throughput: Estimate,
    /// Latency from before the submission to the reaping.
    pub latency: LatencySummary,
}

/// Targets that stopped answering outside of the measured requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stalled {
    /// What was under way.
    pub around: String,
    /// How long they had not answered when the wait timed out, in nanoseconds.
    pub lasted_ns: u64,
}

/// The headline facts of a workload as it really ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadRecord {
    /// Its name.
    pub name: String,
    /// Names of the workloads that ran at the same time on the same target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub together_with: Vec<String>,
    /// What was done to blocks, in which shares.
    #[serde(flatten)]
    pub streams: Streams,
    /// Where the operations went.
    pub access: Access,
    /// Bytes per operation.
    pub block_bytes: u32,
    /// Other block sizes, by weight.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub block_mix: Vec<BlockShare>,
    /// Requests in flight per worker, as asked.
    pub depth: u32,
    /// Workers.
    pub workers: u32,
    /// The engine that ran.
    pub engine: EngineKind,
    /// The cache mode that held.
    pub cache: CachePolicy,
    /// How writes were made durable.
    pub sync: SyncPolicy,
    /// Offered load in operations per second; `null` in a closed loop.
    pub rate: Option<f64>,
    /// First byte of the span.
    pub span_start_bytes: u64,
    /// Length of the span.
    pub span_bytes: u64,
    /// What shaped its load beyond that.
    #[serde(default, skip_serializing_if = "LoadShape::is_plain")]
    pub shape: LoadShape,
    /// The state that the disk's write cache was switched to for it; absent where it was left as it
    /// was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<WriteCache>,
}

/// One kind of operation of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpRecord {
    /// Operations that succeeded after `settling_ns`.
    pub count: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Failed operations by errno name.
    pub errors: BTreeMap<String, u64>,
    /// Transfers that moved less than asked and were continued.
    pub short: u64,
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
    /// Events over time, in cells of at least 100 ms.
    pub series: TimeSeries,
}

/// A latency distribution in short, with the whole of it alongside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencySummary {
    /// Always `ns`.
    pub unit: String,
    /// Mean.
    pub mean: f64,
    /// Shortest.
    pub min: u64,
    /// Median; like every percentile `null` when fewer than ten samples lie beyond it.
    pub p50: Option<u64>,
    /// 90 %.
    pub p90: Option<u64>,
    /// 99 %.
    pub p99: Option<u64>,
    /// 99.9 %.
    #[serde(rename = "p99.9")]
    pub p99_9: Option<u64>,
    /// 99.99 %.
    #[serde(rename = "p99.99")]
    pub p99_99: Option<u64>,
    /// Longest.
    pub max: u64,
    /// The whole distribution: HdrHistogram V2, deflated, base64; absent in phases.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hdr: String,
}

/// A setting that follows from the figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    /// Its name in the server's configuration: postgresql.conf, or my.cnf for `innodb_…`.
    pub setting: String,
    /// The value to set; `null` where only a range is honest, or where it should be left alone.
    pub value: Option<String>,
    /// The range that the figures allow.
    pub range: Option<[f64; 2]>,
    /// Why, with the figures.
    pub why: String,
    /// The workloads that it comes from.
    pub from: Vec<String>,
    /// The server's default; `null` where it depends on an unknown version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// When the value is the right one, as a clause; absent where it always is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
}

impl Advice {
    /// The server that has the setting.
    pub fn server(&self) -> &'static str {
        if self.setting.starts_with("innodb_") {
            "MySQL"
        } else {
            "PostgreSQL"
        }
    }

    /// The configuration file of that server.
    pub fn server_file(&self) -> &'static str {
        if self.server() == "MySQL" {
            "my.cnf"
        } else {
            "postgresql.conf"
        }
    }

    /// Whether the value differs from the server's default.
    pub fn changes(&self) -> bool {
        self.value.is_some() && self.value != self.default
    }
}

/// A threshold that the user set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Expectation {
    /// As given: `random-read-d32.iops>=5000`.
    pub expression: String,
    /// The threshold in the unit of the figure, set where a record is judged.
    #[serde(skip)]
    pub threshold: Option<f64>,
    /// What was measured; `null` when that figure was not measured.
    pub observed: Option<f64>,
    /// The 95 % interval of what was measured, from its lower to its upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Of a percentile with fewer than ten operations beyond it: the lower end of its 95 %
    /// interval. The upper end is unknown, and `observed` is `null`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at_least: Option<f64>,
    /// Whether it was met. An undecided one was not.
    pub met: bool,
    /// Whether the interval leaves open if it was met.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
    /// Where the interval leaves it open: the measured time of the workload, in nanoseconds, that
    /// decides it in four of five cases. Absent where a day would not, or nothing tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by_ns: Option<u64>,
    /// Why the figure may not decide: it is not the disk's. `observed` is what was measured all the
    /// same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objection: Option<String>,
    /// The figure of the data sheet that it judges (`--spec`); absent for a condition of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promise: Option<Promise>,
}

/// A figure of the data sheet, and what passes for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Promise {
    /// Its name, such as `transfer rate`.
    pub name: String,
    /// What the data sheet promises.
    pub promised: f64,
    /// The limit from which on, or up to which, a measured figure passes. Data sheets round, and
    /// omit the electronics.
    pub passes: f64,
    /// The unit of both and of what was measured: `1/s`, `B/s`, `ns` or `rpm`.
    pub unit: String,
}

impl Expectation {
    /// What the measurement says about it.
    pub fn outcome(&self) -> ExpectationOutcome {
        match (self.met, self.undecided) {
            (true, _) => ExpectationOutcome::Met,
            (false, false) => ExpectationOutcome::Missed,
            (false, true) => ExpectationOutcome::Undecided,
        }
    }
}

impl ExpectationOutcome {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Undecided => "undecided",
            Self::Missed => "missed",
        }
    }
}

/// What a measurement says about a threshold; a later one is worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExpectationOutcome {
    /// The whole interval meets it.
    Met,
    /// A part of the interval meets it, or the figure was not measured.
    Undecided,
    /// No part of the interval meets it.
    Missed,
}

/// Many small files: the figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FilesRecord {
    /// The steps that began, in order.
    pub steps: Vec<FileStepRecord>,
    /// What came of dropping caches.
    pub caches: CacheDrop,
    /// Files of an earlier run that was killed; they were removed before the first step. Absent
    /// where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leftover_files: Option<u64>,
}

/// The figures of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileStepRecord {
    /// What was done.
    pub step: FileStep,
    /// Measured time in nanoseconds, all rounds together.
    pub wall_ns: u64,
    /// CPU time of this program meanwhile.
    pub cpu: CpuTime,
    /// Files per second as `iops`, latencies of single files, and errors.
    pub figures: OpRecord,
    /// The part of the latencies that is fsync; absent where nothing is synced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync: Option<FileSyncTime>,
    /// The rounds. The interval of the rate covers how much they differ.
    pub rounds: Vec<FileRound>,
    /// Bytes that the disks below moved meanwhile; absent where they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<ByteCount>,
    /// Why its last round ended.
    pub stopped: StopReason,
}
