//! The plan of one run: its tasks in order, each complete enough to be repeated elsewhere.

use crate::accept::AcceptPlan;
use crate::files::FilesPlan;
use crate::group::{Group, groups};
use crate::layers::LayersPlan;
use crate::observed::LikePlan;
use crate::secrets::command_without_secrets;
use crate::surface::{DataSheet, Survey};
use crate::sustain::SustainPlan;
use crate::sweep::SweepPlan;
use crate::timetable::{Slot, timetable};
use crate::trend::DiskAccess;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

pub use crate::stream::BlockShare;
pub use crate::sync::{RangeSync, SyncCall, SyncPolicy, WriteFlag};
use crate::task::ContentUse;
pub use crate::task::{ByteLimit, Decide, Inserts, LivePlan, Order, Ping, Sides, Task, Workloads};
pub use crate::workload::{
    Access, CachePolicy, Distribution, EngineChoice, EngineKind, HELD_BYTES_MAX, Layout,
    OFF_SUFFIX, Span, Start, Stop, Verify, Workload, Zone, group_name, sessions_of_group,
};

/// Version of the plan's shape.
pub const PLAN_SCHEMA: &str = "diskproof.plan/2";
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
///
/// 11: buffered requests of Linux AIO, and random ones by mappings, do not wait for a thread of the
/// kernel before the disk has them.
///
/// 12: a curve's first and last sample are as long as the others, and small ones are read with
/// requests of full size. Slices go on on each target by themselves, and workloads that count or
/// wait from their start have none.
///
/// 13: searches for a rate go on through stalls, whose late requests count, and a long proof takes
/// no time from the cells before it. Rounds and cells of one load go on counting to the next sync
/// and pause.
///
/// 14: the threads of a worker share its rate and its pauses, a search holds no more than 95 % of
/// what is served, and the workloads that `check` selects share the whole time.
///
/// 15: a search for a rate measures a trial again in which a stall may have hidden the rate.
///
/// 16: campaigns end a credit in the unit that blocks of several sizes agree on, and a mix with
/// even rates has the sizes and the order of fio where it carries out a command line of fio.
///
/// 17: a scratch file that a slow disk cannot fill in time is cut, the sets of `files` shrink where
/// writing them back takes longer than the run, their CPU is that of the operations alone, and the
/// doubling of `load` ends at a rate of which nothing was served.
///
/// 18: trims find a filled scratch file, what counts as a silence follows from the disk's own rate,
/// the write-back of a set of `files` is bounded and its CPU that of the thread's own clock, and
/// `commit` leaves out the methods for which a slow disk has no time.
pub const METHOD_VERSION: u32 = 18;
/// The most workloads of a plan: more take longer than a day at a minute each.
pub const WORKLOADS_MAX: usize = 1440;

/// The beginning of the verb of a plan that carries out another tool's command line.
const TOOL_VERB: &str = "as ";

/// Everything that one run will do, in order. A record holds it, so that the run can be repeated.
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
    /// The scratch file in each target that is a directory; absent where no target needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratch: Option<Scratch>,
    /// The longest that the whole run may take, in nanoseconds. What one step takes longer than
    /// planned, the later workloads get less. Absent where every workload gets its own time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_ns: Option<u64>,
    /// The measurements, one after the other. Empty of an observation, which makes no load. One of
    /// the tasks has workloads at most.
    pub tasks: Vec<Task>,
    /// Workloads that this target cannot run, and why.
    pub skipped: Vec<Skipped>,
    /// Questions that the figures are to answer.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub questions: Questions,
    /// The author of the plan.
    pub origin: Origin,
}

/// The scratch file in a directory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Scratch {
    /// Size in bytes on every target.
    pub size_bytes: u64,
    /// Size on each target in bytes, where they differ; 0 of a target without one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes_bytes: Vec<u64>,
    /// The way in which it gets its content, so that reads find data and writes do not extend it.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub fill: Fill,
}

impl Scratch {
    /// True if each target has a file of its own name and size, as the jobs of other tools do. Two
    /// of them may lie in one directory.
    pub fn has_own_files(&self) -> bool {
        !self.sizes_bytes.is_empty()
    }
}

/// The way in which a scratch file gets its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Fill {
    /// The whole span of a workload is written before it starts.
    #[default]
    Whole,
    /// Written for a time, and at least so far: a smaller file would fit into small caches. It is
    /// then cut to what was written.
    Within {
        /// The size in bytes up to which it is filled in any case, where a workload has written
        /// less before the first one that needs its content.
        bytes_min: u64,
        /// The longest that the first write may take, in nanoseconds: a part of the run's time.
        time_ns: u64,
    },
}

/// Questions about the figures of a run, which change nothing on its disk.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Questions {
    /// The profile whose limits say whether the target is fit for a database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit_for: Option<String>,
    /// The limits of that profile, as it writes them. Other thresholds are the user's own and say
    /// nothing about the fitness.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fit_limits: Vec<String>,
    /// Promises of the maker, in the user's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_sheet: Option<DataSheet>,
    /// Access time across the whole disk, where the history knows it and the run measures a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_access: Option<DiskAccess>,
    /// Major version of the PostgreSQL server whose settings are advised, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postgres_version: Option<u32>,
}

impl Scratch {
    /// A scratch file of this size on each target.
    pub fn of_size(size_bytes: u64) -> Self {
        Self {
            size_bytes,
            ..Self::default()
        }
    }

    /// The same scratch file, but filled for this time, and at least so far.
    pub fn filled_within(self, bytes_min: u64, time_ns: u64) -> Self {
        Self {
            fill: Fill::Within { bytes_min, time_ns },
            ..self
        }
    }

    /// The part of its first write that is part of the run's time, in nanoseconds.
    fn fill_time_ns(&self) -> Option<u64> {
        match self.fill {
            Fill::Whole => None,
            Fill::Within { time_ns, .. } => Some(time_ns),
        }
    }
}

impl Plan {
    /// A plan of this verb that does nothing yet.
    pub fn new(verb: impl Into<String>, argv: Vec<String>) -> Self {
        Self {
            schema: PLAN_SCHEMA.to_owned(),
            method: METHOD_VERSION,
            origin: Origin::new(verb, argv),
            ..Self::default()
        }
    }

    /// The workloads, in the order in which they run.
    pub fn workloads(&self) -> &[Workload] {
        for task in &self.tasks {
            let workloads = task.inner().workloads();
            if !workloads.is_empty() {
                return workloads;
            }
        }
        &[]
    }

    /// The number of measurements that its workloads have, one on each of their targets.
    pub fn measurement_count(&self) -> usize {
        let mut count = 0;
        for workload in self.workloads() {
            count += match workload.target {
                Some(_) => 1,
                None => self.targets.len().max(1),
            };
        }
        count
    }

    /// The task that is made of workloads, alone or between the INSERTs of a server.
    pub fn workload_task(&self) -> Option<&Workloads> {
        self.tasks.iter().find_map(Task::list)
    }

    /// The task that has workloads, to change it.
    pub fn workload_task_mut(&mut self) -> Option<&mut Workloads> {
        self.tasks.iter_mut().find_map(Task::list_mut)
    }

    /// The list of workloads, to change it. A plan without one gets an empty one.
    pub fn workloads_mut(&mut self) -> &mut Vec<Workload> {
        if self.workload_task().is_none() {
            self.tasks.push(Task::Workloads(Workloads::default()));
        }
        let task = self.workload_task_mut();
        &mut task.expect("the plan has a list of workloads").list
    }

    /// The survey; `None` where the plan has none.
    pub fn survey(&self) -> Option<&Survey> {
        self.tasks.iter().find_map(|task| match task {
            Task::Survey(survey) => Some(survey),
            _ => None,
        })
    }

    /// The acceptance test; `None` where the plan has none.
    pub fn accept(&self) -> Option<&AcceptPlan> {
        self.tasks.iter().find_map(|task| match task {
            Task::Accept(accept) => Some(accept),
            _ => None,
        })
    }

    /// The ping; `None` where the plan has none.
    pub fn ping(&self) -> Option<&Ping> {
        self.tasks.iter().find_map(|task| match task {
            Task::Ping(ping) => Some(&**ping),
            _ => None,
        })
    }

    /// The operations on many small files; `None` where the plan has none.
    pub fn files(&self) -> Option<&FilesPlan> {
        self.tasks.iter().find_map(|task| match task {
            Task::Files(files) => Some(files),
            _ => None,
        })
    }

    /// The INSERTs of a server; `None` where the plan has none.
    pub fn inserts(&self) -> Option<&Inserts> {
        self.tasks.iter().find_map(|task| match task {
            Task::Inserts(inserts) => Some(inserts),
            _ => None,
        })
    }

    /// The task that inserts, to change the programs of the server.
    pub fn inserts_mut(&mut self) -> Option<&mut Inserts> {
        self.tasks.iter_mut().find_map(|task| match task {
            Task::Inserts(inserts) => Some(inserts),
            _ => None,
        })
    }

    /// The matrix to which the workloads belong; `None` where they are no cells of one.
    pub fn sweep(&self) -> Option<&SweepPlan> {
        match &self.workload_task()?.decide {
            Decide::Sweep(sweep) => Some(sweep),
            Decide::AsPlanned
            | Decide::Depth
            | Decide::Compare(_)
            | Decide::Until(_)
            | Decide::Rate(_) => None,
        }
    }

    /// True if no result decides which workload comes next: the plan lists them in order.
    pub fn is_measured_as_listed(&self) -> bool {
        match self.workload_task() {
            Some(workloads) => workloads.decide == Decide::AsPlanned,
            None => true,
        }
    }

    /// The load that is sustained; `None` where none is.
    pub fn sustain(&self) -> Option<&SustainPlan> {
        match &self.workload_task()?.decide {
            Decide::Until(sustain) => Some(sustain),
            Decide::AsPlanned
            | Decide::Depth
            | Decide::Compare(_)
            | Decide::Sweep(_)
            | Decide::Rate(_) => None,
        }
    }

    /// The layers that the targets are; `None` where the plan compares none.
    pub fn layers(&self) -> Option<&LayersPlan> {
        self.workload_task()?.layers()
    }

    /// The task that measures layers, to change how they are called.
    pub fn layers_mut(&mut self) -> Option<&mut LayersPlan> {
        let Decide::Compare(live) = &mut self.workload_task_mut()?.decide else {
            return None;
        };
        match &mut live.sides {
            Sides::Layers(layers) => Some(layers),
            Sides::Targets { .. } | Sides::Settings { .. } => None,
        }
    }

    /// The observed load that the workloads repeat.
    pub fn like(&self) -> Option<&LikePlan> {
        self.workload_task()?.like.as_ref()
    }

    /// The way in which the workloads share the time.
    pub fn order(&self) -> Order {
        match self.workload_task() {
            Some(workloads) => workloads.order,
            None => Order::default(),
        }
    }

    /// The slots of a plan that is measured together with other hosts, in the order of time; `None`
    /// of every other plan.
    pub fn timetable(&self) -> Option<Vec<Slot>> {
        let workloads = self.workload_task()?;
        match workloads.order {
            Order::InSlots(slots) => timetable(&workloads.list, slots, self.seed),
            Order::AsGiven | Order::Whole | Order::InTurns { .. } => None,
        }
    }

    /// The names of the workloads that are measured in a slot of the timetable.
    pub fn workloads_in(&self, slot: &Slot) -> Vec<&str> {
        let mut names = Vec::new();
        if let Some(group) = self.groups().nth(slot.group) {
            for workload in group.workloads {
                names.push(workload.name.as_str());
            }
        }
        names
    }

    /// True if the plan does what another tool does, with that tool's limits.
    pub fn is_of_other_tool(&self) -> bool {
        self.order() == Order::Whole || self.origin.verb.starts_with(TOOL_VERB)
    }

    /// The size of the scratch file in bytes, where a target is a directory.
    pub fn scratch_bytes(&self) -> Option<u64> {
        self.scratch.as_ref().map(|scratch| scratch.size_bytes)
    }

    /// The size of the scratch file of the target with this place, where that is a directory.
    pub fn scratch_bytes_on(&self, target: usize) -> Option<u64> {
        let scratch = self.scratch.as_ref()?;
        let size_of_target = scratch.sizes_bytes.get(target).copied();
        Some(size_of_target.unwrap_or(scratch.size_bytes))
    }

    /// The path of the file that the run of another tool makes in this directory, the target with
    /// this place, and leaves there; `None` of a scratch file.
    pub fn kept_file(&self, target: usize, directory: &str) -> Option<&str> {
        let path = self.targets.get(target)?;
        let name = path
            .strip_prefix(directory.trim_end_matches('/'))?
            .strip_prefix('/')?;
        if name.is_empty() { None } else { Some(path) }
    }

    /// The longest that the first write of the scratch file may take before the workloads that need
    /// it, in nanoseconds; `None` where there is no such write, or no limit to its time. Other
    /// tools do not count it.
    pub fn first_write_ns(&self) -> Option<u64> {
        if self.is_of_other_tool() {
            return None;
        }
        self.scratch.as_ref()?.fill_time_ns()
    }

    /// The longest that the tasks may take together, warm-up included, in nanoseconds, a survey
    /// and the first write of scratch files apart; `None` when one has no time limit.
    pub fn time_ns_max(&self) -> Option<u64> {
        let mut sum_ns: u64 = 0;
        for task in &self.tasks {
            sum_ns = sum_ns.saturating_add(task.inner().longest_ns()?);
        }
        Some(sum_ns)
    }

    /// The workloads by what runs at the same time, in order.
    pub fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        groups(self.workloads())
    }

    /// The workloads that run at the same time as the one of this name, itself among them; `None`
    /// when the plan has none of this name.
    pub fn group_of(&self, name: &str) -> Option<Group<'_>> {
        self.groups()
            .find(|group| group.workloads.iter().any(|workload| workload.name == name))
    }

    /// True if anything in it writes to a target.
    pub fn writes(&self) -> bool {
        self.tasks
            .iter()
            .any(|task| task.inner().content_use(None) != ContentUse::Keeps)
    }
}

/// A workload that was skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// Name of the workload, such as `random-write-d32`.
    pub workload: String,
    /// The reason, one clause: `read-only target`.
    pub why: String,
    /// The one who decided it.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub cause: SkipCause,
}

/// The one that decides that a workload is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SkipCause {
    /// The properties of this machine: another one may measure it.
    #[default]
    Target,
    /// The user, by a flag: the same command skips it everywhere.
    User,
}

impl Skipped {
    /// The workload of this name, for this reason that lies in the target.
    pub fn new(workload: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            workload: workload.into(),
            why: why.into(),
            cause: SkipCause::Target,
        }
    }

    /// The workload of this name, because of this flag.
    pub fn by_flag(workload: impl Into<String>, flag: impl Into<String>) -> Self {
        Self {
            cause: SkipCause::User,
            ..Self::new(workload, flag)
        }
    }
}

/// The author of the plan.
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
    Vec::deserialize(deserializer).map(command_without_secrets)
}

impl Origin {
    /// Hides the passwords in the command line.
    pub fn new(verb: impl Into<String>, argv: Vec<String>) -> Self {
        Self {
            verb: verb.into(),
            argv: command_without_secrets(argv),
        }
    }

    /// The whole command line as given, without passwords.
    pub fn argv(&self) -> &[String] {
        &self.argv
    }
}
