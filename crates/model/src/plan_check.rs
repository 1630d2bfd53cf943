//! Refuses plans that cannot be measured. Flags and plan files are checked where they are read; a
//! record may have been edited by anybody, so its plan is checked here before it is repeated.

use crate::files::{DIRECTORIES_MAX, FILE_COUNT_MAX, FILE_ROUNDS_MAX, FILE_THREADS_MAX, FilesPlan};
use crate::group::groups;
use crate::plan::{Access, Decide, Plan, SyncPolicy, Task, Workload, Workloads, Zone};
use crate::surface::Survey;

/// The most requests in flight of a worker: rings of io_uring end there.
const DEPTH_MAX: u32 = 1 << 16;
/// The most workers of a workload, each of which is a thread.
const WORKERS_MAX: u32 = 1 << 14;
/// The most requests in flight of all workers of a workload, each of which has a buffer: those of
/// the largest flags.
const IN_FLIGHT_MAX: u64 = 1 << 22;
/// The lowest rate that is offered, in operations per second: at a lower one the time between two
/// of them has no end in any run.
const RATE_MIN: f64 = 0.001;
/// The highest rate that is offered: one operation in a nanosecond.
const RATE_MAX: f64 = 1e9;
/// The processors that `sched_setaffinity` can name (`cpu_set_t` of glibc).
const PROCESSORS_MAX: u16 = 1024;
/// The largest operation, below the 2 GiB that the kernel moves in one call.
const BLOCK_BYTES_MAX: u32 = 1 << 30;

/// Why a plan cannot be measured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanFault {
    /// There is nothing to measure.
    #[error("its plan has no workload")]
    NoWorkload,
    /// A number with which no request could be made.
    #[error("its workload '{workload}' has a {what} of {value}")]
    Value {
        /// The name of the workload.
        workload: String,
        /// The number in words.
        what: &'static str,
        /// The number.
        value: String,
    },
    /// A number or a kind of files, of a survey or of single requests with which nothing could be
    /// measured.
    #[error("its plan has a {what} of {value}")]
    Number {
        /// The number in words.
        what: &'static str,
        /// The number.
        value: String,
    },
    /// An order in which no requests can be made.
    #[error("the requests of its workload '{workload}' have {what}")]
    Order {
        /// The name of the workload.
        workload: String,
        /// What is wrong.
        what: &'static str,
    },
    /// Nothing would end the workload.
    #[error("its workload '{workload}' has no limit of time, bytes or operations: it never ends")]
    Endless {
        /// The name of the workload.
        workload: String,
    },
}

impl Plan {
    /// Refuses a plan that measures nothing, that no request can be made for, or that never ends.
    pub fn check(&self) -> Result<(), PlanFault> {
        for task in &self.tasks {
            for workload in task.inner().workloads() {
                workload.check()?;
                if let Some(target) = workload.target
                    && !self.targets.is_empty()
                    && target >= self.targets.len()
                {
                    return Err(workload.value_fault(BadNumber::new("target", target)));
                }
            }
            if let Some(bad) = find_bad_number_of_task(task) {
                return Err(PlanFault::Number {
                    what: bad.noun,
                    value: bad.value,
                });
            }
            // A ping without an end is one that the user ends.
            let Some(workloads) = task.list() else {
                continue;
            };
            if workloads.list.is_empty() {
                // The INSERTs of a server are enough.
                if let Task::Inserts(_) = task {
                    continue;
                }
                return Err(PlanFault::NoWorkload);
            }
            if self.time_limit_ns.is_none()
                && let Some(endless) = workloads.endless()
            {
                let workload = endless.name.clone();
                return Err(PlanFault::Endless { workload });
            }
        }
        Ok(())
    }
}

impl Workloads {
    /// The first workload that nothing ends; `None` where all end.
    fn endless(&self) -> Option<&Workload> {
        match &self.decide {
            Decide::Depth | Decide::Rate(_) | Decide::Until(_) => {
                return match self.time_ns_max() {
                    Some(_) => None,
                    None => self.list.first(),
                };
            }
            Decide::AsPlanned | Decide::Sweep(_) | Decide::Compare(_) => {}
        }
        for group in groups(&self.list) {
            // One that does not end alone ends the others with it.
            let ends_all = group
                .workloads
                .iter()
                .any(|workload| has_limit(workload) && !workload.ends_alone);
            let endless = group.workloads.iter().find(|workload| !has_limit(workload));
            if !ends_all && endless.is_some() {
                return endless;
            }
        }
        None
    }
}

/// True if a workload ends by itself.
fn has_limit(workload: &Workload) -> bool {
    let stop = &workload.stop;
    stop.time_ns.is_some() || stop.bytes.is_some() || stop.ops.is_some()
}

impl Workload {
    /// Refuses numbers with which no request can be made.
    fn check(&self) -> Result<(), PlanFault> {
        if let Some(bad) = self.find_bad_amount() {
            return Err(self.value_fault(bad));
        }
        if let Some(what) = self.order_fault() {
            let workload = self.name.clone();
            return Err(PlanFault::Order { workload, what });
        }
        if let Some(bad) = self.find_bad_number_of_starts() {
            return Err(self.value_fault(bad));
        }
        match self.access.find_bad_number() {
            Some(bad) => Err(self.value_fault(bad)),
            None => Ok(()),
        }
    }

    /// The first bad number of requests, bytes or limits.
    fn find_bad_amount(&self) -> Option<BadNumber> {
        for (noun, value, most) in [
            ("depth", self.depth, DEPTH_MAX),
            ("number of workers", self.workers, WORKERS_MAX),
            ("block size", self.block_bytes, BLOCK_BYTES_MAX),
        ] {
            if value == 0 || value > most {
                return Some(BadNumber::new(noun, value));
            }
        }
        let in_flight = self.total_depth();
        if in_flight > IN_FLIGHT_MAX {
            return Some(BadNumber::new("number of requests in flight", in_flight));
        }
        for bytes in self.block_sizes() {
            if bytes == 0 || bytes > self.block_bytes {
                return Some(BadNumber::new("block size", bytes));
            }
        }
        let stop = &self.stop;
        for limit in [stop.time_ns, stop.bytes, stop.ops].into_iter().flatten() {
            if limit == 0 {
                return Some(BadNumber::new("limit", limit));
            }
        }
        None
    }

    /// The first bad number of when, where and by which processor a request starts.
    fn find_bad_number_of_starts(&self) -> Option<BadNumber> {
        let of_kind = self.shape.starts.kind_rate;
        let rates = [self.rate, of_kind.map(|rate| rate.per_second)];
        for rate in rates.into_iter().flatten() {
            if !(RATE_MIN..=RATE_MAX).contains(&rate) {
                return Some(BadNumber::new("rate", rate));
            }
        }
        if let SyncPolicy::Every { writes: 0, .. } = self.sync {
            return Some(BadNumber::new("number of writes between two syncs", 0));
        }
        if self.shape.order.align_bytes == Some(0) {
            return Some(BadNumber::new("alignment", 0));
        }
        if let Some(scheduling) = &self.shape.threads.scheduling
            && let Some(cpu) = scheduling.cpus.iter().find(|cpu| **cpu >= PROCESSORS_MAX)
        {
            return Some(BadNumber::new("processor", cpu));
        }
        // The first step back from the end of the span has the size of every block.
        let has_mix = !self.block_mix.is_empty() || !self.streams.other_sizes().is_empty();
        let needs_one_size = matches!(self.access, Access::Backward | Access::Stride { .. });
        if needs_one_size && has_mix && self.shape.order.fio.is_none() {
            return Some(BadNumber::new(
                "block size beside others, in an order that needs a single one,",
                self.block_bytes,
            ));
        }
        None
    }

    /// Why its requests cannot be made in the order of fio; `None` where they can, or have none.
    pub fn order_fault(&self) -> Option<&'static str> {
        let order = self.shape.order.fio.as_ref()?;
        for kind in &order.kinds {
            if !self.makes(kind.does) {
                return Some("an operation that it does not make");
            }
            if !kind.does.drops_blocks() && kind.sizes.most_bytes > self.block_bytes {
                return Some("a size above the largest block");
            }
        }
        order.fault()
    }

    /// The fault of a plan that has this bad number in this workload.
    fn value_fault(&self, bad: BadNumber) -> PlanFault {
        PlanFault::Value {
            workload: self.name.clone(),
            what: bad.noun,
            value: bad.value,
        }
    }
}

/// A number with which no request could be made.
struct BadNumber {
    /// What it is the number of.
    noun: &'static str,
    value: String,
}

impl BadNumber {
    fn new(noun: &'static str, value: impl ToString) -> Self {
        Self {
            noun,
            value: value.to_string(),
        }
    }
}

/// The first number of a task without a list of workloads with which nothing could be measured.
fn find_bad_number_of_task(task: &Task) -> Option<BadNumber> {
    match task {
        Task::Files(plan) => find_bad_number_of_files(plan),
        Task::Survey(survey) => find_bad_number_of_survey(survey),
        // Its requests are made one after the other.
        Task::Ping(ping) if ping.workload.depth != 1 => Some(BadNumber::new(
            "depth of single requests",
            ping.workload.depth,
        )),
        Task::Ping(ping) if ping.workload.workers != 1 => Some(BadNumber::new(
            "number of workers of single requests",
            ping.workload.workers,
        )),
        Task::Ping(ping) => {
            let mut kinds = ping.workload.streams.iter().flat_map(|stream| &stream.does);
            // It sends a write in place of anything that it cannot send.
            let other = kinds.find(|kind| !kind.moves_data())?;
            Some(BadNumber::new("ping", other.plural()))
        }
        Task::Workloads(_) | Task::Inserts(_) | Task::Accept(_) => None,
    }
}

/// The first bad number of a test of many small files.
fn find_bad_number_of_files(plan: &FilesPlan) -> Option<BadNumber> {
    for (noun, value, most) in [
        ("number of files", plan.count, FILE_COUNT_MAX),
        (
            "number of directories",
            plan.directories.into(),
            DIRECTORIES_MAX.into(),
        ),
        (
            "number of threads",
            plan.threads.into(),
            FILE_THREADS_MAX.into(),
        ),
        (
            "number of rounds",
            plan.rounds.into(),
            FILE_ROUNDS_MAX.into(),
        ),
        ("number of orders", plan.orders.len() as u64, u64::MAX),
        ("time in nanoseconds", plan.time_ns, u64::MAX),
    ] {
        if value == 0 || value > most {
            return Some(BadNumber::new(noun, value));
        }
    }
    if plan.file_bytes_min > plan.file_bytes_max {
        return Some(BadNumber::new("size of a file", plan.file_bytes_max));
    }
    None
}

/// The first bad number of a survey.
fn find_bad_number_of_survey(survey: &Survey) -> Option<BadNumber> {
    if !survey.operation.moves_data() {
        return Some(BadNumber::new("survey", survey.operation.plural()));
    }
    if let Some(curve) = &survey.curve
        && curve.points == 0
    {
        return Some(BadNumber::new("number of points", curve.points));
    }
    let burst_bytes = survey.burst.map(|burst| burst.bytes);
    let access_bytes = survey.access.map(|access| access.block_bytes.into());
    let scan_bytes = survey.scan.map(|scan| scan.block_bytes.into());
    for bytes in [burst_bytes, access_bytes, scan_bytes]
        .into_iter()
        .flatten()
    {
        if bytes == 0 || bytes > BLOCK_BYTES_MAX.into() {
            return Some(BadNumber::new("size of a read", bytes));
        }
    }
    None
}

impl Access {
    /// The first number of it with which no place could be drawn.
    fn find_bad_number(&self) -> Option<BadNumber> {
        match self {
            Self::Sequential | Self::Backward => None,
            Self::Stride { stride_bytes: 0 } => Some(BadNumber::new("distance of blocks", 0)),
            Self::Stride { .. } => None,
            Self::Random { distribution } if distribution.can_be_drawn() => None,
            Self::Random { distribution } => {
                Some(BadNumber::new("distribution", format!("{distribution:?}")))
            }
            Self::Zoned { zones } => find_bad_number_of_zones(zones),
        }
    }
}

/// The first number of these zones with which no place could be drawn. Shares are rounded, so that
/// their sum may miss 100 % by a little.
fn find_bad_number_of_zones(zones: &[Zone]) -> Option<BadNumber> {
    if zones.is_empty() {
        return Some(BadNumber::new("number of zones", 0));
    }
    let (mut sizes, mut accesses) = (0.0, 0.0);
    for zone in zones {
        for (noun, percent) in [
            ("share of operations in a zone", zone.access_percent),
            ("size of a zone in percent", zone.size_percent),
        ] {
            if !(0.0..=100.0).contains(&percent) {
                return Some(BadNumber::new(noun, percent));
            }
        }
        sizes += zone.size_percent;
        accesses += zone.access_percent;
    }
    for (noun, sum) in [
        ("sum of the sizes of its zones in percent", sizes),
        ("sum of the shares of its zones in percent", accesses),
    ] {
        if (sum - 100.0_f64).abs() > 1.0 {
            return Some(BadNumber::new(noun, sum));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{FileCaches, FileOrder, FileSync};
    use crate::op::OpKind;
    use crate::ping::PingPlan;
    use crate::plan::{BlockShare, Distribution, EngineChoice, Ping, Span, Start, Stop, SyncCall};
    use crate::shape::{KindRate, ThreadScheduling};
    use crate::stream::Streams;
    use crate::surface::BurstPlan;

    const LIMITED: Stop = Stop {
        precision: None,
        time_ns: Some(1_000_000_000),
        bytes: None,
        ops: None,
    };

    fn checked(list: Vec<Workload>) -> Result<(), PlanFault> {
        Plan {
            tasks: vec![Task::Workloads(Workloads::as_planned(list))],
            ..Plan::new("run", Vec::new())
        }
        .check()
    }

    /// The noun of the number for which a workload that was changed so is refused.
    fn refused_noun(change: impl FnOnce(&mut Workload)) -> &'static str {
        let good = Workload {
            stop: LIMITED,
            ..Workload::named("reads")
        };
        let mut bad = good.clone();
        change(&mut bad);
        match checked(vec![good, bad]) {
            Err(PlanFault::Value { what, .. }) => what,
            other => panic!("{other:?}"),
        }
    }

    fn refused_access(access: Access) -> &'static str {
        refused_noun(|one| one.access = access)
    }

    #[test]
    fn amounts_without_a_request_are_refused() {
        let good = Workload {
            stop: LIMITED,
            ..Workload::named("reads")
        };
        assert_eq!(checked(vec![good]), Ok(()));
        assert_eq!(checked(Vec::new()), Err(PlanFault::NoWorkload));
        assert_eq!(refused_noun(|one| one.depth = 0), "depth");
        assert_eq!(refused_noun(|one| one.depth = u32::MAX), "depth");
        assert_eq!(refused_noun(|one| one.workers = 0), "number of workers");
        assert_eq!(refused_noun(|one| one.block_bytes = 0), "block size");
        assert_eq!(refused_noun(|one| one.block_bytes = u32::MAX), "block size");
        assert_eq!(refused_noun(|one| one.stop.time_ns = Some(0)), "limit");
        assert_eq!(refused_noun(|one| one.stop.ops = Some(0)), "limit");
        let in_flight = refused_noun(|one| (one.depth, one.workers) = (1 << 16, 1 << 14));
        assert_eq!(in_flight, "number of requests in flight");
    }

    #[test]
    fn starts_without_a_request_are_refused() {
        assert_eq!(refused_noun(|one| one.rate = Some(0.0)), "rate");
        assert_eq!(refused_noun(|one| one.rate = Some(1e-300)), "rate");
        let no_reads = KindRate {
            kind: OpKind::Read,
            per_second: 0.0,
        };
        let refused = refused_noun(|one| one.shape.starts.kind_rate = Some(no_reads));
        assert_eq!(refused, "rate");
        let call = SyncCall::Fsync;
        let sync = refused_noun(|one| one.sync = SyncPolicy::Every { writes: 0, call });
        assert_eq!(sync, "number of writes between two syncs");
        let alignment = refused_noun(|one| one.shape.order.align_bytes = Some(0));
        assert_eq!(alignment, "alignment");
        let scheduling = ThreadScheduling {
            cpus: vec![u16::MAX],
            ..ThreadScheduling::default()
        };
        let cpu = refused_noun(|one| one.shape.threads.scheduling = Some(scheduling));
        assert_eq!(cpu, "processor");
        let mix = refused_noun(|one| {
            one.access = Access::Backward;
            one.block_mix = vec![BlockShare {
                block_bytes: 4096,
                weight: 1,
            }];
        });
        assert!(mix.starts_with("block size beside others"), "{mix}");
    }

    #[test]
    fn accesses_without_a_place_are_refused() {
        let stride = refused_access(Access::Stride { stride_bytes: 0 });
        assert_eq!(stride, "distance of blocks");
        for distribution in [
            Distribution::Zipf { theta: f64::NAN },
            Distribution::Zipf { theta: 1.0 },
            Distribution::Pareto { share: 1.0 },
            Distribution::Normal {
                spread_percent: 100.0,
            },
            Distribution::HotCold {
                access_percent: 120.0,
                size_percent: 20.0,
            },
        ] {
            let noun = refused_access(Access::Random { distribution });
            assert_eq!(noun, "distribution", "{distribution:?}");
        }
        let none = refused_access(Access::Zoned { zones: Vec::new() });
        assert_eq!(none, "number of zones");
        let half = Zone {
            access_percent: 100.0,
            size_percent: 50.0,
        };
        let sizes = refused_access(Access::Zoned { zones: vec![half] });
        assert_eq!(sizes, "sum of the sizes of its zones in percent");
    }

    #[test]
    fn plan_that_never_ends_is_refused() {
        let endless = Workload::named("endless");
        let limited = Workload {
            stop: LIMITED,
            ..Workload::named("limited")
        };
        let beside = Workload {
            start: Start::WithPrevious,
            ..limited.clone()
        };
        let ends_alone = Workload {
            ends_alone: true,
            ..beside.clone()
        };
        for (list, ends) in [
            (vec![endless.clone()], false),
            (vec![limited, endless.clone()], false),
            (vec![endless.clone(), beside], true),
            (vec![endless, ends_alone], false),
        ] {
            assert_eq!(checked(list.clone()).is_ok(), ends, "{list:?}");
        }
    }

    fn files_plan() -> FilesPlan {
        FilesPlan {
            count: 100,
            file_bytes_min: 0,
            file_bytes_max: 4096,
            directories: 1,
            threads: 1,
            sync: FileSync::None,
            caches: FileCaches::DropOwnPages,
            orders: vec![FileOrder::Sequential],
            rounds: 1,
            time_ns: 1_000_000_000,
        }
    }

    fn check_task(task: Task) -> Result<(), PlanFault> {
        Plan {
            tasks: vec![task],
            ..Plan::new("files", Vec::new())
        }
        .check()
    }

    #[test]
    fn files_that_cannot_be_made_are_refused() {
        assert_eq!(check_task(Task::Files(files_plan())), Ok(()));
        assert_eq!(refused_of_files(|plan| plan.count = 0), "number of files");
        let noun = refused_of_files(|plan| plan.directories = 0);
        assert_eq!(noun, "number of directories");
        let noun = refused_of_files(|plan| plan.threads = 65);
        assert_eq!(noun, "number of threads");
        assert_eq!(refused_of_files(|plan| plan.rounds = 0), "number of rounds");
        let noun = refused_of_files(|plan| plan.orders.clear());
        assert_eq!(noun, "number of orders");
        let noun = refused_of_files(|plan| plan.file_bytes_min = 5000);
        assert_eq!(noun, "size of a file");
    }

    /// The noun of the number for which a plan of files that was changed so is refused.
    fn refused_of_files(change: fn(&mut FilesPlan)) -> &'static str {
        let mut plan = files_plan();
        change(&mut plan);
        match check_task(Task::Files(plan)) {
            Err(PlanFault::Number { what, .. }) => what,
            other => panic!("{other:?}"),
        }
    }

    fn survey_of(operation: OpKind, burst_bytes: u64) -> Task {
        Task::Survey(Survey {
            operation,
            span: Span::default(),
            engine: EngineChoice::Auto,
            curve: None,
            burst: Some(BurstPlan {
                bytes: burst_bytes,
                time_ns: 1,
            }),
            access: None,
            scan: None,
        })
    }

    #[test]
    fn reads_of_a_survey_have_a_size_that_one_call_can_move() {
        for (bytes, expected) in [(0, false), (1 << 20, true), (1 << 33, false)] {
            let survey = survey_of(OpKind::Read, bytes);
            assert_eq!(check_task(survey).is_ok(), expected, "{bytes}");
        }
    }

    /// Both read and write: another kind would be announced, and a read or a write sent.
    #[test]
    fn survey_or_ping_without_data_is_refused() {
        for kind in OpKind::REQUESTS {
            let ping = Task::Ping(Box::new(Ping {
                workload: Workload {
                    streams: Streams::doing(&[kind]),
                    ..Workload::named("ping")
                },
                requests: PingPlan {
                    interval_ns: 0,
                    warmup_requests: 0,
                    abort_above_ns: None,
                    idle_ns: Vec::new(),
                },
            }));
            for task in [survey_of(kind, 1 << 20), ping] {
                assert_eq!(check_task(task).is_ok(), kind.moves_data(), "{kind:?}");
            }
        }
    }
}
