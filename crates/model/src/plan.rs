//! What one run does: workloads in order, each complete enough to be repeated elsewhere. Does not
//! know how a workload is run.

use crate::files::FilesPlan;
use crate::group::Group;
use crate::layers::LayersPlan;
use crate::observed::LikePlan;
use crate::op::OpKind;
use crate::ping::PingPlan;
use crate::postgres::PostgresPlan;
use crate::secrets::without_secrets;
use crate::surface::{DataSheet, Survey};
use crate::sweep::SweepPlan;
use crate::target::{TargetIdentity, TargetKind};
use crate::trend::DiskAccess;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

pub use crate::shape::{BlockShare, WriteFlag};
pub use crate::workload::{
    Access, CachePolicy, Distribution, EngineChoice, EngineKind, Layout, OFF_SUFFIX, Span, Start,
    Stop, SyncCall, SyncPolicy, Verify, Workload, Zone,
};

/// Version of the plan's shape.
pub const PLAN_SCHEMA: &str = "diskproof.plan/1";
/// Version of the measuring method. Two records compare only when it is equal; raise it with any
/// change that can move a figure.
///
/// 2: the measured time ends when it is over instead of with the next completion, its last part of
/// a cell counts, io_uring's completions are seen as they come in an open loop, and points of a
/// curve that stand out are read again.
///
/// 3: starts of an open loop that were never made count with what they had waited, Zipf's popular
/// blocks lie all over the span, nothing that is written can be compressed, work before a hang is
/// no warm-up, and what failed was in flight.
///
/// 4: the workers of a workload take its operations or bytes from one common amount and end
/// together, instead of one after the other with a share each.
///
/// 5: a new file has its length before it is written, so that the whole queue reaches the disk; the
/// syncs of a queue go to the kernel together by Linux AIO too, instead of one by one while
/// everything else waits.
///
/// 6: every figure of a measurement covers the same time. Latencies, counters and CPU time skip
/// what the rates skip, until the rate has settled or a burst is over.
///
/// 7: a request that blocks ends when its system call returns, not when the loop looks at it, and
/// workloads that run together each end by themselves instead of with the first of them.
///
/// 8: figures after a drop of the rate start one queue turnover later, and so do slices on slow
/// disks. Workloads of one run that drop to one rate at one moment start their figures after it.
///
/// 9: intervals cover the variation from run to run, where earlier runs of the same plan or slow
/// changes within the run show it.
///
/// 10: a buffered write of a part of a page does not make the disk read the page first, and slices
/// that a burst credit carried are measured again.
pub const METHOD_VERSION: u32 = 10;

/// Slow memory cards are made for this rate. A slower disk needs a smaller scratch file.
const FILL_BYTES_PER_S: f64 = 10e6;
const FILL_START_NS: u64 = 10_000_000_000;

/// Everything that one run will do, in order.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Always [`PLAN_SCHEMA`].
    pub schema: String,
    /// Always [`METHOD_VERSION`] of the program that made the plan.
    pub method: u32,
    /// Seed of every random choice; the same seed gives the same offsets and the same data.
    pub seed: u64,
    /// Paths as the user gave them.
    pub targets: Vec<String>,
    /// Size of the scratch file in bytes, where a target is a directory.
    pub scratch_bytes: Option<u64>,
    /// The size of the scratch file of each target in bytes, where they differ; 0 of a target
    /// without one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scratch_sizes: Vec<u64>,
    /// The longest that the first write of the scratch file may take before the workloads that need
    /// it, in nanoseconds; absent where there is no such write, or no limit to its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_write_ns: Option<u64>,
    /// The size in bytes up to which the scratch file is filled where a workload has written less
    /// before the first one that needs its content. Absent where the first write has no limit to
    /// its time, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_write_bytes_min: Option<u64>,
    /// The longest that the whole run may take, in nanoseconds. What one step takes longer than
    /// planned, the later workloads get less. Absent where every workload gets its own time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_ns: Option<u64>,
    /// The workloads, in the order in which they run; those that start with the one before it run
    /// at the same time as that one.
    pub workloads: Vec<Workload>,
    /// How the workloads share the time.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub order: Order,
    /// Transfer rate and access time by position, before the workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survey: Option<Survey>,
    /// Single requests: the only workload runs request by request. Absent in every other plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ping: Option<PingPlan>,
    /// The matrix to which the workloads belong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<SweepPlan>,
    /// Operations on many small files, in place of workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<FilesPlan>,
    /// The layers that the targets are, from a file down to its disk. Every workload runs on each
    /// in alternation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<LayersPlan>,
    /// The observed load that the workloads repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub like: Option<LikePlan>,
    /// The profile whose limits say whether the target is fit for a database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit_for: Option<String>,
    /// What the maker promises, in the user's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_sheet: Option<DataSheet>,
    /// Access time across the whole disk, where the history knows it and the run measures a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_access: Option<DiskAccess>,
    /// Major version of the PostgreSQL server whose settings are advised, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postgres_version: Option<u32>,
    /// INSERTs of a temporary PostgreSQL server in the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postgres: Option<PostgresPlan>,
    /// Workloads that this target cannot run, and why.
    pub skipped: Vec<Skipped>,
    /// Who made the plan.
    pub origin: Origin,
}

/// How the workloads of a plan share its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// One after the other. A long one has slices that follow each other.
    #[default]
    AsGiven,
    /// One after the other, each in one go, as other tools measure.
    Whole,
    /// In slices, those of all workloads in random order.
    InTurns {
        /// A workload that takes less time than this has one slice only, in nanoseconds.
        slices_from_ns: u64,
    },
}

impl Order {
    /// Whether it is the usual one.
    pub fn is_as_given(&self) -> bool {
        *self == Self::AsGiven
    }
}

/// Windows of a search for the greatest depth: 15 until a depth of thousands is found, as many to
/// see that its rate lasts, and some that are measured again after a burst.
const SEARCH_WINDOWS_MAX: u64 = 40;

impl Plan {
    /// A plan of this verb that does nothing yet.
    pub fn of(verb: impl Into<String>, argv: Vec<String>) -> Self {
        Self {
            schema: PLAN_SCHEMA.to_owned(),
            method: METHOD_VERSION,
            origin: Origin::new(verb, argv),
            ..Self::default()
        }
    }

    /// The size of the scratch file of the target with this place, where that is a directory.
    pub fn scratch_bytes_on(&self, target: usize) -> Option<u64> {
        let own = self.scratch_sizes.get(target).copied();
        own.or(self.scratch_bytes)
    }

    /// The longest that the workloads may take together, warm-up included, in nanoseconds; `None`
    /// when one has no time limit.
    pub fn time_ns_max(&self) -> Option<u64> {
        if let (Some(ping), Some(workload)) = (&self.ping, self.workloads.first()) {
            return ping.time_ns_max(&workload.stop);
        }
        if let Some(files) = &self.files {
            return Some(files.time_ns);
        }
        if let Some(search_ns) = self.search_ns_max() {
            return Some(search_ns);
        }
        self.groups()
            .map(|group| Some(group.time_ns()? + group.warmup_ns()))
            .sum()
    }

    /// The longest that a search for the greatest depth may take; `None` of any other plan.
    fn search_ns_max(&self) -> Option<u64> {
        let first = self.workloads.first()?;
        let target = first.shape.latency_target?;
        let windows = (self.workloads.len() as u64).max(SEARCH_WINDOWS_MAX);
        Some(windows * (target.window_ns + first.warmup_ns))
    }

    /// About how long the whole run takes on these targets, in nanoseconds: the time that is
    /// announced, shown and kept. `None` when something has no time limit. The layout of a scratch
    /// file counts as far as the plan limits it.
    pub fn expected_ns(&self, targets: &[TargetIdentity]) -> Option<u64> {
        let target = targets.first();
        let bytes = target.map_or(0, |target| match self.scratch_bytes {
            Some(bytes) if target.kind == TargetKind::Directory => bytes,
            _ => target.size_bytes,
        });
        let rotational = target.and_then(TargetIdentity::rotational);
        let survey = self.survey.as_ref();
        let survey_ns = survey.map_or(0, |survey| survey.time_ns_guess(bytes, rotational));
        let server_ns = self.postgres.as_ref().map_or(0, PostgresPlan::time_ns);
        let own_ns = self.time_ns_max()? + self.first_write_ns.unwrap_or(0);
        let limit_ns = self.time_limit_ns.unwrap_or(u64::MAX);
        Some((own_ns + survey_ns + server_ns).min(limit_ns))
    }

    /// When the run ends at the latest, whatever the disk does; more than [`Plan::expected_ns`] of
    /// a survey that has only a usual speed to go by. `None` where it reads a given amount.
    pub fn deadline_ns(&self, targets: &[TargetIdentity]) -> Option<u64> {
        let expected_ns = self.expected_ns(targets)?;
        let Some(survey) = &self.survey else {
            return Some(expected_ns);
        };
        let own_ns = self.time_ns_max()?;
        match (self.time_limit_ns, survey.time_ns_max()) {
            (Some(limit_ns), None) => Some(limit_ns),
            (None, None) => None,
            (Some(_), Some(_)) => Some(expected_ns),
            (None, Some(survey_ns)) => Some(expected_ns.max(own_ns + survey_ns)),
        }
    }

    /// The longest that filling the scratch file may take beyond [`Plan::expected_ns`], in
    /// nanoseconds; `None` where that is part of it, or nothing needs it. Other tools fill theirs
    /// however long it takes.
    pub fn fill_ns_max(&self) -> Option<u64> {
        let needs_content = |workload: &Workload| workload.layout == Layout::Needed;
        let is_filled = self.survey.is_some() || self.workloads.iter().any(needs_content);
        let bytes = self.scratch_bytes.filter(|_| is_filled)?;
        let ns = match self.order {
            Order::Whole => u64::MAX,
            _ => (bytes as f64 / FILL_BYTES_PER_S * 1e9) as u64 + FILL_START_NS,
        };
        self.first_write_ns.is_none().then_some(ns)
    }

    /// The workloads by what runs at the same time, in order.
    pub fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        let mut first = 0;
        self.workloads
            .chunk_by(|_, next| next.start == Start::WithPrevious)
            .map(move |workloads| {
                let group = Group { first, workloads };
                first += workloads.len();
                group
            })
    }

    /// The workloads that run at the same time as the one of this name, itself among them; `None`
    /// when the plan has none of this name.
    pub fn group_of(&self, name: &str) -> Option<Group<'_>> {
        self.groups()
            .find(|group| group.workloads.iter().any(|workload| workload.name == name))
    }

    /// Whether anything in it writes.
    pub fn writes(&self) -> bool {
        self.files.is_some() || self.workloads.iter().any(Workload::writes) || self.survey_writes()
    }

    fn survey_writes(&self) -> bool {
        let survey = self.survey.as_ref();
        survey.is_some_and(|survey| survey.operation != OpKind::Read)
    }

    /// The most bytes that the plan may write to each target: the scratch file and every writing
    /// workload's own limit. `None` when a writing workload has no byte limit, or the survey
    /// writes.
    pub fn write_bytes_max(&self) -> Option<u64> {
        if self.survey_writes() {
            return None;
        }
        let writing = self.workloads.iter().filter(|w| w.makes(OpKind::Write));
        writing.map(Workload::write_bytes_max).sum()
    }

    /// Each kind of operation that drops blocks, and the most bytes that it may drop on each
    /// target: `None` when a workload that does has no byte limit.
    pub fn drops(&self) -> impl Iterator<Item = (OpKind, Option<u64>)> {
        let kinds = OpKind::ALL.into_iter().filter(|kind| kind.drops_blocks());
        kinds.filter_map(|kind| {
            let mut makes = self.workloads.iter().filter(|w| w.makes(kind)).peekable();
            makes.peek()?;
            Some((kind, makes.map(Workload::write_bytes_max).sum()))
        })
    }
}

/// A workload that was skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// Its name, such as `random-write-d32`.
    pub workload: String,
    /// The reason, one clause: `read-only target`.
    pub why: String,
}

impl Skipped {
    /// The workload of this name, for this reason.
    pub fn new(workload: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            workload: workload.into(),
            why: why.into(),
        }
    }
}

/// Who made the plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    /// The verb, such as `check`.
    pub verb: String,
    /// The whole command line as given, without passwords.
    #[serde(deserialize_with = "read_argv")]
    argv: Vec<String>,
}

/// Versions up to 0.2.0 saved passwords.
fn read_argv<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Vec::deserialize(deserializer).map(without_secrets)
}

impl Origin {
    /// Hides the passwords in the command line.
    pub fn new(verb: impl Into<String>, argv: Vec<String>) -> Self {
        Self {
            verb: verb.into(),
            argv: without_secrets(argv),
        }
    }

    /// The whole command line as given, without passwords.
    pub fn argv(&self) -> &[String] {
        &self.argv
    }
}
