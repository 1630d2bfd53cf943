//! The kinds of measuring that a plan consists of, and what is true of each. [`Task`] is their only
//! list: a new kind is a variant here, and the compiler names every place that must know it, first
//! its [`PlannedTask`].

use crate::accept::{AcceptPlan, Procedure};
use crate::files::FilesPlan;
use crate::group::groups;
use crate::layers::LayersPlan;
use crate::observed::LikePlan;
use crate::op::OpKind;
use crate::ping::PingPlan;
use crate::postgres::PostgresPlan;
use crate::rate::RatePlan;
use crate::surface::Survey;
use crate::sustain::SustainPlan;
use crate::sweep::SweepPlan;
use crate::target::{TargetIdentity, TargetKind};
use crate::timetable::{SlotPlan, timetable};
use crate::workload::{Layout, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Windows of a search for the greatest depth: 15 until a depth of thousands is found, as many to
/// see that its rate lasts, and some that are measured again after a burst.
const SEARCH_WINDOWS_MAX: u64 = 40;

/// One thing that a run measures. A run carries out the tasks of its plan one after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Task {
    /// Transfer rate and access time by position, on the first target.
    Survey(Survey),
    /// Workloads on all targets.
    Workloads(Workloads),
    /// Single requests, one after the other.
    Ping(Box<Ping>),
    /// Operations on many small files.
    Files(FilesPlan),
    /// INSERTs of a temporary PostgreSQL server around workloads.
    Inserts(Inserts),
    /// Checks that the first target, a block device, holds what its label says. Overwrites all of
    /// it.
    Accept(AcceptPlan),
}

/// Workloads, and what decides which of them is measured next.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Workloads {
    /// The workloads in the order in which they run. Those that start with the one before it run at
    /// the same time as that one.
    pub list: Vec<Workload>,
    /// The way in which they share the time.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub order: Order,
    /// The basis on which the next of them and its time are chosen.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub decide: Decide,
    /// The observed load that they repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub like: Option<LikePlan>,
}

/// The way in which the workloads of a plan share its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// One after the other. A long one has slices that follow each other.
    #[default]
    AsGiven,
    /// One after the other, each in one go, as other tools measure.
    Whole,
    /// The workloads are measured in slices, those of all workloads in random order.
    InTurns {
        /// A workload that takes less time than this has one slice only, in nanoseconds.
        slices_from_ns: u64,
    },
    /// The workloads are measured in slots at the same instants on all hosts.
    InSlots(SlotPlan),
}

impl Order {
    /// True of the usual one, in which they are given.
    pub fn is_as_given(&self) -> bool {
        *self == Self::AsGiven
    }
}

/// The basis on which the next workload is chosen.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum Decide {
    /// The list and its order.
    #[default]
    AsPlanned,
    /// The cells of a matrix so far: the workloads are its cells.
    Sweep(SweepPlan),
    /// The depths so far: the workloads differ in their depth alone, ascend, and have one latency
    /// target.
    Depth,
    /// The figures of the sides of a comparison so far.
    Compare(LivePlan),
    /// The fall of the rate of a load, and its return after pauses.
    Until(SustainPlan),
    /// The rates so far: each workload without a time of its own is offered at those that are
    /// tried. Those with one are measured before.
    Rate(RatePlan),
}

/// A comparison of sides that are measured in alternation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LivePlan {
    /// The sides that are compared.
    pub sides: Sides,
    /// The share by which figures may differ and count as the same.
    pub margin: f64,
    /// The time of all cells together, in nanoseconds.
    pub cells_ns: u64,
}

/// The sides of a comparison; the first is the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Sides {
    /// Several targets of one run.
    Targets {
        /// Paths as the user gave them.
        paths: Vec<String>,
    },
    /// The layers that the targets are, from a file down to its disk.
    Layers(LayersPlan),
    /// Settings of the only target.
    Settings {
        /// The command before each cell of a side, without passwords.
        prepare: Vec<String>,
        /// The command after the last cell, without passwords.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cleanup: Option<String>,
        /// True if the target is closed before each command, and opened again.
        reopen: bool,
    },
}

/// Single requests, one after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ping {
    /// Size, place, cache and sync of a request. Where it reads and writes, reads and writes
    /// alternate.
    pub workload: Workload,
    /// The sequence of the requests.
    pub requests: PingPlan,
}

/// INSERTs of a temporary PostgreSQL server in the first target: one half of their rounds, the
/// workloads, the other half, then the settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Inserts {
    /// The server and its loads.
    pub server: PostgresPlan,
    /// The workloads that are measured between the halves.
    pub between: Workloads,
}

/// Bytes that may be written or dropped at most on a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteLimit {
    /// At most so many bytes.
    AtMost(u64),
    /// As many bytes as fit into the time.
    Unlimited,
}

impl Workloads {
    /// These workloads, in the order of the list.
    pub fn as_planned(list: Vec<Workload>) -> Self {
        Self {
            list,
            ..Self::default()
        }
    }

    /// The longest that they may take together, warm-up included, in nanoseconds; `None` when one
    /// has no time limit.
    pub(crate) fn time_ns_max(&self) -> Option<u64> {
        match &self.decide {
            Decide::Depth => return self.search_ns_max(),
            Decide::Rate(search) => return self.searches_ns_max(search),
            Decide::Until(sustain) => return self.sustained_ns_max(sustain),
            Decide::AsPlanned | Decide::Sweep(_) | Decide::Compare(_) => {}
        }
        if let Order::InSlots(slots) = self.order {
            let last_slot = timetable(&self.list, slots, 0)?.pop()?;
            return Some(slots.lead_ns.saturating_add(last_slot.end_ns()));
        }
        let mut sum_ns: u64 = 0;
        for group in groups(&self.list) {
            sum_ns = sum_ns.saturating_add(group.whole_ns()?);
        }
        Some(sum_ns)
    }

    /// The workloads whose rate is searched, each with its place in the list.
    pub fn searched(&self) -> impl Iterator<Item = (usize, &Workload)> {
        self.list
            .iter()
            .enumerate()
            .filter(|(_, workload)| workload.stop.time_ns.is_none())
    }

    /// The longest that the searches of all rates may take, and what is measured before them.
    fn searches_ns_max(&self, search: &RatePlan) -> Option<u64> {
        let mut sum_ns: u64 = 0;
        for workload in &self.list {
            let own_ns = match workload.stop.time_ns {
                Some(time_ns) => time_ns.checked_add(workload.warmup_ns)?,
                None => search.time_ns,
            };
            sum_ns = sum_ns.checked_add(own_ns)?;
        }
        Some(sum_ns)
    }

    /// The longest that a search for the greatest depth may take.
    fn search_ns_max(&self) -> Option<u64> {
        let first = self.list.first()?;
        let target = first.shape.latency_target?;
        let windows = (self.list.len() as u64).max(SEARCH_WINDOWS_MAX);
        let window_ns = target.window_ns.saturating_add(first.warmup_ns);
        Some(windows.saturating_mul(window_ns))
    }

    /// The longest that a sustained load may take. Pauses and what follows them are part of the
    /// time of the load.
    fn sustained_ns_max(&self, sustain: &SustainPlan) -> Option<u64> {
        let mut sum_ns = sustain.load(&self.list)?.stop.time_ns?;
        if let Some(precondition) = sustain.precondition(&self.list) {
            sum_ns = sum_ns.saturating_add(precondition.stop.time_ns?);
        }
        Some(sum_ns)
    }

    /// The most bytes that they move together, where the plan limits that.
    fn budget_bytes(&self) -> Option<u64> {
        match &self.decide {
            Decide::Until(sustain) => sustain.budget_bytes,
            Decide::AsPlanned
            | Decide::Sweep(_)
            | Decide::Depth
            | Decide::Compare(_)
            | Decide::Rate(_) => None,
        }
    }

    /// The layers that the targets are, where layers are compared.
    pub fn layers(&self) -> Option<&LayersPlan> {
        match &self.decide {
            Decide::Compare(LivePlan {
                sides: Sides::Layers(layers),
                ..
            }) => Some(layers),
            Decide::Compare(_)
            | Decide::AsPlanned
            | Decide::Sweep(_)
            | Decide::Depth
            | Decide::Until(_)
            | Decide::Rate(_) => None,
        }
    }
}

/// What the rest of the program asks of a planned task without caring which one it is. What it
/// writes and how long it takes has no default: a kind that forgot it would be announced as
/// harmless.
pub trait PlannedTask {
    /// The workloads that it measures; empty of a task that measures something else.
    fn workloads(&self) -> &[Workload];

    /// The longest that it may take, in nanoseconds; `None` without a limit. What depends on the
    /// target alone is not among it: [`Self::guessed_ns`].
    fn longest_ns(&self) -> Option<u64>;

    /// Estimates the time that the size and the speed of a target decide, in nanoseconds; 0 where
    /// the plan decides it.
    fn guessed_ns(&self, target: Option<&TargetIdentity>, scratch_bytes: Option<u64>) -> u64;

    /// What it does to the content of the target with this place in the plan; without one, to that
    /// of any target.
    fn content_use(&self, target: Option<usize>) -> ContentUse;

    /// The most bytes that it writes to each target, apart from scratch files. Many small files and
    /// a server have their own limits.
    fn write_limit(&self) -> ByteLimit;

    /// True if it reads a scratch file that must have content before.
    fn needs_content(&self) -> bool;
}

/// What a task does to the content of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContentUse {
    /// It leaves the content as it is.
    Keeps,
    /// Its operations drop blocks, and write no data.
    Drops,
    /// It writes data.
    Writes,
}

impl ContentUse {
    /// The use by operations of this kind.
    fn by_kind(kind: OpKind) -> Self {
        if kind.fills_blocks() {
            Self::Writes
        } else if kind.changes_blocks() {
            Self::Drops
        } else {
            Self::Keeps
        }
    }

    /// The use by workloads of the target with this place, or of any.
    fn by_workloads(workloads: &[Workload], target: Option<usize>) -> Self {
        let mut most = Self::Keeps;
        for workload in workloads {
            if !target.is_none_or(|target| workload.runs_on(target)) {
                continue;
            }
            for kind in workload.streams.iter().flat_map(|stream| &stream.does) {
                most = most.max(Self::by_kind(*kind));
            }
        }
        most
    }
}

/// The most bytes that workloads write to each target.
fn limit_of_writes(workloads: &[Workload]) -> ByteLimit {
    let mut sum: u64 = 0;
    for workload in workloads.iter().filter(|one| one.fills_blocks()) {
        match workload.write_bytes_max() {
            Some(bytes) => sum = sum.saturating_add(bytes),
            None => return ByteLimit::Unlimited,
        }
    }
    ByteLimit::AtMost(sum)
}

/// True if a workload reads what must have been written before.
fn need_content(workloads: &[Workload]) -> bool {
    workloads.iter().any(|one| one.layout == Layout::Needed)
}

impl PlannedTask for Workloads {
    fn workloads(&self) -> &[Workload] {
        &self.list
    }

    fn longest_ns(&self) -> Option<u64> {
        self.time_ns_max()
    }

    fn guessed_ns(&self, _target: Option<&TargetIdentity>, _scratch_bytes: Option<u64>) -> u64 {
        0
    }

    fn content_use(&self, target: Option<usize>) -> ContentUse {
        ContentUse::by_workloads(&self.list, target)
    }

    fn write_limit(&self) -> ByteLimit {
        match self.budget_bytes() {
            Some(bytes) if self.list.iter().any(Workload::writes) => ByteLimit::AtMost(bytes),
            Some(_) | None => limit_of_writes(&self.list),
        }
    }

    fn needs_content(&self) -> bool {
        need_content(&self.list)
    }
}

impl PlannedTask for Ping {
    fn workloads(&self) -> &[Workload] {
        std::slice::from_ref(&self.workload)
    }

    fn longest_ns(&self) -> Option<u64> {
        self.requests.time_ns_max(&self.workload.stop)
    }

    fn guessed_ns(&self, _target: Option<&TargetIdentity>, _scratch_bytes: Option<u64>) -> u64 {
        0
    }

    fn content_use(&self, target: Option<usize>) -> ContentUse {
        ContentUse::by_workloads(self.workloads(), target)
    }

    fn write_limit(&self) -> ByteLimit {
        limit_of_writes(self.workloads())
    }

    fn needs_content(&self) -> bool {
        need_content(self.workloads())
    }
}

impl PlannedTask for Inserts {
    fn workloads(&self) -> &[Workload] {
        &self.between.list
    }

    fn longest_ns(&self) -> Option<u64> {
        let between_ns = self.between.time_ns_max()?;
        Some(between_ns.saturating_add(self.server.time_ns()))
    }

    fn guessed_ns(&self, _target: Option<&TargetIdentity>, _scratch_bytes: Option<u64>) -> u64 {
        0
    }

    fn content_use(&self, target: Option<usize>) -> ContentUse {
        ContentUse::by_workloads(&self.between.list, target)
    }

    fn write_limit(&self) -> ByteLimit {
        limit_of_writes(&self.between.list)
    }

    fn needs_content(&self) -> bool {
        need_content(&self.between.list)
    }
}

impl PlannedTask for Survey {
    fn workloads(&self) -> &[Workload] {
        &[]
    }

    fn longest_ns(&self) -> Option<u64> {
        Some(0)
    }

    fn guessed_ns(&self, target: Option<&TargetIdentity>, scratch_bytes: Option<u64>) -> u64 {
        let Some(target) = target else {
            return self.time_ns_guess(0, None);
        };
        let bytes = match scratch_bytes {
            Some(bytes) if target.kind == TargetKind::Directory => bytes,
            _ => target.size_bytes,
        };
        self.time_ns_guess(bytes, target.rotational())
    }

    /// It is of the first target alone.
    fn content_use(&self, target: Option<usize>) -> ContentUse {
        match target {
            Some(0) | None => ContentUse::by_kind(self.operation),
            Some(_) => ContentUse::Keeps,
        }
    }

    fn write_limit(&self) -> ByteLimit {
        match ContentUse::by_kind(self.operation) {
            ContentUse::Writes | ContentUse::Drops => ByteLimit::Unlimited,
            ContentUse::Keeps => ByteLimit::AtMost(0),
        }
    }

    fn needs_content(&self) -> bool {
        true
    }
}

impl PlannedTask for FilesPlan {
    fn workloads(&self) -> &[Workload] {
        &[]
    }

    fn longest_ns(&self) -> Option<u64> {
        Some(self.time_ns)
    }

    fn guessed_ns(&self, _target: Option<&TargetIdentity>, _scratch_bytes: Option<u64>) -> u64 {
        0
    }

    fn content_use(&self, _target: Option<usize>) -> ContentUse {
        ContentUse::Writes
    }

    fn write_limit(&self) -> ByteLimit {
        ByteLimit::AtMost(0)
    }

    fn needs_content(&self) -> bool {
        false
    }
}

impl PlannedTask for AcceptPlan {
    fn workloads(&self) -> &[Workload] {
        &[]
    }

    fn longest_ns(&self) -> Option<u64> {
        Some(0)
    }

    fn guessed_ns(&self, target: Option<&TargetIdentity>, _scratch_bytes: Option<u64>) -> u64 {
        self.time_ns_guess(target.and_then(TargetIdentity::rotational))
    }

    fn content_use(&self, _target: Option<usize>) -> ContentUse {
        ContentUse::Writes
    }

    fn write_limit(&self) -> ByteLimit {
        match self.procedure {
            // Chunks are written a second time to empty a cache.
            Procedure::Whole => ByteLimit::AtMost(self.size_bytes.saturating_mul(2)),
            Procedure::Probe { .. } => ByteLimit::Unlimited,
        }
    }

    fn needs_content(&self) -> bool {
        false
    }
}

impl Task {
    /// The task itself, of whichever kind.
    pub fn inner(&self) -> &dyn PlannedTask {
        match self {
            Self::Survey(survey) => survey,
            Self::Workloads(workloads) => workloads,
            Self::Ping(ping) => &**ping,
            Self::Files(files) => files,
            Self::Inserts(inserts) => inserts,
            Self::Accept(accept) => accept,
        }
    }

    /// The list of workloads, alone or between the INSERTs of a server; `None` of every other task.
    pub fn list(&self) -> Option<&Workloads> {
        match self {
            Self::Workloads(workloads) => Some(workloads),
            Self::Inserts(inserts) => Some(&inserts.between),
            Self::Survey(_) | Self::Ping(_) | Self::Files(_) | Self::Accept(_) => None,
        }
    }

    /// As [`Self::list`], to change it.
    pub fn list_mut(&mut self) -> Option<&mut Workloads> {
        match self {
            Self::Workloads(workloads) => Some(workloads),
            Self::Inserts(inserts) => Some(&mut inserts.between),
            Self::Survey(_) | Self::Ping(_) | Self::Files(_) | Self::Accept(_) => None,
        }
    }
}
