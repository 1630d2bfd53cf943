//! The one result of every run: the plan, the targets, what was measured, what it means. Printed,
//! saved and compared by others. Its JSON form is the published contract
//! `schema/record.v3.schema.json`.

use crate::accept::AcceptRecord;
use crate::advice::Advice;
use crate::campaign::{CampaignPart, DroppedSlice};
use crate::expectation::Expectation;
use crate::files_record::FilesRecord;
use crate::finding::{Finding, Meaning, Severity};
use crate::health::DiskHealth;
use crate::latency_search::LatencySearch;
use crate::layers::LayersRecord;
use crate::limiter::BurstCredit;
use crate::measurement::MovedTotal;
use crate::observed::ObservedRecord;
use crate::plan::{Decide, Plan};
use crate::postgres::PostgresRecord;
use crate::rate::{LoadRecord, RateCellKind};
use crate::rays::RaysRecord;
use crate::row::Row;
use crate::surface::{AccessPoint, CurvePoint, SurfaceRecord};
use crate::sustain::SustainRecord;
use crate::sweep::SweepRecord;
use crate::target::{HostFacts, TargetIdentity};
use crate::together::TogetherRecord;
use crate::verdict::RunVerdict;
use crate::wall_clock::WallClock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// Version of the rules by which figures, findings and verdict follow from what was measured.
    pub judging: u32,
    /// Unique among all runs on all machines.
    pub run_id: String,
    /// Start in UTC, RFC 3339, with nine digits after the second, read together with the monotonic
    /// clock. Every time in the record is an offset from it. Only series and windows of a sliced
    /// workload count measured time, which `slices` places.
    pub started: String,
    /// True if the run ended before its plan did.
    pub partial: bool,
    /// The reason why it ended early, in a sentence with what to do; `None` when it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<String>,
    /// The targets that stopped answering outside of the measured requests: while something was
    /// prepared, written back or cleaned up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled: Option<Stalled>,
    /// What a target failed outside of the measured requests: while a scratch file was made or
    /// filled, or what was written was made durable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedCall>,
    /// The user's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The machine.
    pub host: HostFacts,
    /// The longest time in which each target answered nothing before a workload, where the run
    /// ended before that workload began. A workload that began has its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silences: Vec<TargetSilence>,
    /// The time that targets took for their very first answer of the run, where it was 0.5 s or
    /// longer and no workload has it: a survey, an acceptance test, INSERTs, or a run that ended
    /// before its first workload. A disk may have slept before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_answers: Vec<TargetSilence>,
    /// The clock that timed it.
    pub clock: ClockFacts,
    /// The plan of the run.
    pub plan: Plan,
    /// The targets, in the order of the plan.
    pub targets: Vec<TargetIdentity>,
    /// The measurements, in the order of the plan.
    pub measurements: Vec<Row>,
    /// The bytes that the run moved in all, warm-up and the first write of scratch files included,
    /// survey excluded. A burst credit that is larger than this would not have shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<MovedTotal>,
    /// The results of the tasks beyond the measurements, in their order; that of a survey first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<TaskResult>,
    /// Limiters with a burst credit that ended during the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub burst_credits: Vec<BurstCredit>,
    /// The health that the disks report about themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health: Vec<DiskHealth>,
    /// The meaning of the figures, in short; absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<RunVerdict>,
    /// The findings, the most severe first.
    pub findings: Vec<Finding>,
    /// Settings that follow from the figures.
    pub advice: Vec<Advice>,
    /// Thresholds that the user set, and how they came out.
    pub expectations: Vec<Expectation>,
    /// The part of what was measured that the record keeps.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub kept: Kept,
    /// Slices of a campaign that no row covers, because they were measured again: a burst credit
    /// ended after them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<DroppedSlice>,
}

/// The part of what was measured that a record keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// All that its figures follow from: they are derived again wherever it is read.
    #[default]
    Whole,
    /// Only what pages show. Its figures are believed as they stand.
    FiguresOnly,
}

/// The result of a task, beyond the measurements of its workloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TaskResult {
    /// Transfer rate and access time by position. It stands first, at `/results/0`.
    Survey(Box<SurfaceRecord>),
    /// The matrix of a sweep, and what follows from it.
    Sweep(SweepRecord),
    /// The greatest depth at which most requests meet a latency limit.
    Depth(LatencySearch),
    /// The rate that a load keeps, and what it was before.
    Sustain(Box<SustainRecord>),
    /// The highest rate that keeps a promise.
    Load(Box<LoadRecord>),
    /// The highest rates at several shares of reads, and their boundary.
    Rays(Box<RaysRecord>),
    /// The cost of each layer between a file and its disk.
    Layers(LayersRecord),
    /// The comparison that the record is one side of.
    Compared(CampaignPart),
    /// Operations on many small files. They stand first, at `/results/0`.
    Files(FilesRecord),
    /// INSERTs of a temporary PostgreSQL server, alongside this run's own commits.
    Inserts(PostgresRecord),
    /// The acceptance test: if the disk is what its label says. It stands first, at `/results/0`.
    Accept(Box<AcceptRecord>),
    /// The part of the run that it shares with those of other hosts.
    Together(TogetherRecord),
    /// The real load of the targets, which this program watched and did not make.
    Observed(Box<ObservedRecord>),
}

impl Record {
    /// The matrix of a sweep; `None` of a run that was none.
    pub fn sweep(&self) -> Option<&SweepRecord> {
        self.results.iter().find_map(|result| match result {
            TaskResult::Sweep(found) => Some(found),
            _ => None,
        })
    }

    /// The result of a search for the greatest depth; `None` of a run that was none.
    pub fn latency_search(&self) -> Option<&LatencySearch> {
        self.results.iter().find_map(|result| match result {
            TaskResult::Depth(found) => Some(found),
            _ => None,
        })
    }

    /// The size in bytes of all requests on a target; `None` where their sizes differ, or nothing
    /// was measured. A limiter that requests of one size met may count requests or bytes: both
    /// explain their rate.
    pub fn only_request_bytes(&self, target: usize) -> Option<u32> {
        let mut only = None;
        for row in &self.measurements {
            if row.data.target != target {
                continue;
            }
            let workload = &row.data.workload;
            let is_other = only.is_some_and(|bytes| bytes != workload.block_bytes);
            if is_other || !workload.block_mix.is_empty() || workload.transaction.is_some() {
                return None;
            }
            only = Some(workload.block_bytes);
        }
        only
    }

    /// The result of a sustained load; `None` of a run that sustained none.
    pub fn sustain(&self) -> Option<&SustainRecord> {
        self.results.iter().find_map(|result| match result {
            TaskResult::Sustain(found) => Some(&**found),
            _ => None,
        })
    }

    /// The highest rate that keeps a promise; `None` of a run that searched none.
    pub fn load(&self) -> Option<&LoadRecord> {
        self.results.iter().find_map(|result| match result {
            TaskResult::Load(found) => Some(&**found),
            _ => None,
        })
    }

    /// Returns `true` if a search chose the rate of a row: that says what was offered, and not what
    /// the target can do.
    pub fn is_offered_by_search(&self, row: &Row) -> bool {
        let Some(workloads) = self.plan.workload_task() else {
            return false;
        };
        if !matches!(workloads.decide, Decide::Rate(_)) {
            return false;
        }
        let row_name = &row.data.workload.name;
        workloads
            .searched()
            .any(|(_, searched)| RateCellKind::has_named_row(row_name, &searched.name))
    }

    /// The boundary of reads and writes; `None` of a run that searched none.
    pub fn rays(&self) -> Option<&RaysRecord> {
        self.results.iter().find_map(|result| match result {
            TaskResult::Rays(found) => Some(&**found),
            _ => None,
        })
    }

    /// The cost of each layer; `None` of a run without layers.
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

    /// True if the run ended because its target did not answer any more.
    pub fn has_stopped_answering(&self) -> bool {
        self.findings.iter().any(|finding| {
            finding.says == Meaning::EndedEarly && finding.severity == Severity::Failure
        })
    }

    /// The acceptance test; `None` of a run without one.
    pub fn accept(&self) -> Option<&AcceptRecord> {
        self.results.iter().find_map(|result| match result {
            TaskResult::Accept(accept) => Some(&**accept),
            _ => None,
        })
    }

    /// The part of the run that it shares with others; `None` of a run by itself.
    pub fn together(&self) -> Option<&TogetherRecord> {
        self.results.iter().find_map(|result| match result {
            TaskResult::Together(together) => Some(together),
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
            Some(surface) => &surface.data.curve,
            None => &[],
        }
    }

    /// Access times, in the order of the accesses; empty where none was measured.
    pub fn access(&self) -> &[AccessPoint] {
        match self.surface() {
            Some(surface) => &surface.data.access,
            None => &[],
        }
    }
}

/// The share of the bytes requested from a target that its disks' own counters saw, over all that
/// was measured on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AccountedRange {
    /// The smallest share.
    pub low: f64,
    /// The largest share; above 1 where the disks moved more than was requested.
    pub high: f64,
}

impl Record {
    /// The shares that the counters of a target's disks saw; `None` where neither a measurement nor
    /// the survey has one.
    pub fn accounted_range(&self, target: usize) -> Option<AccountedRange> {
        let mut shares: Vec<f64> = Vec::new();
        for row in &self.measurements {
            if row.data.target == target {
                shares.extend(row.data.device.accounted);
            }
        }
        if let Some(surface) = self.surface()
            && surface.data.target == target
        {
            shares.extend(surface.data.device.accounted);
        }
        Some(AccountedRange {
            low: shares.iter().copied().reduce(f64::min)?,
            high: shares.iter().copied().reduce(f64::max)?,
        })
    }
}

/// A program and its version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// `diskproof`.
    pub name: String,
    /// The version of the program.
    pub version: String,
}

/// The clock, measured before it was trusted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockFacts {
    /// The source of the time: `CLOCK_MONOTONIC`, `TSC` …
    pub source: String,
    /// Smallest step seen, in nanoseconds.
    pub resolution_ns: u64,
    /// Cost of one reading, in nanoseconds.
    pub cost_ns: f64,
    /// The error of the wall clock, of a run that measured together with others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall: Option<WallClock>,
}

/// A call of the run itself that a target answered with an error, which ended the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedCall {
    /// What was tried, as in "cannot write it back (fdatasync)".
    pub doing: String,
    /// Name of the error, such as `EIO`.
    pub errno: String,
    /// The calls that failed so.
    pub count: u64,
    /// Index of the target; absent where it may be any of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<usize>,
}

/// A time in which a target answered nothing, while it was made ready for what is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetSilence {
    /// Index of the target.
    pub target: usize,
    /// Its length, in nanoseconds.
    pub length_ns: u64,
}

/// Targets that stopped answering outside of the measured requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stalled {
    /// The work that was under way.
    pub around: String,
    /// The time for which they had not answered when the wait ended, in nanoseconds.
    pub lasted_ns: u64,
    /// True if the user or the announced time ended the wait before it timed out: whether they are
    /// slow or hang is unknown.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub late: bool,
    /// True if its disks had completed requests in this run before: they did not sleep then.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub has_answered: bool,
    /// Index of the only target that did not answer; absent where it may be any of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<usize>,
}
