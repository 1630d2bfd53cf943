//! Whether a plan can be measured that somebody else may have written: flags and plan files are
//! checked where they are read, a record is a file like any other.

use crate::group::groups;
use crate::plan::{
    Access, Decide, Distribution, Plan, SyncPolicy, Task, Workload, Workloads, Zone,
};

/// The most requests in flight of a worker that any plan has.
const DEPTH_MAX: u32 = 1 << 16;
/// The most workers of a workload.
const WORKERS_MAX: u32 = 1 << 14;
/// The most requests in flight of all workers of a workload.
const IN_FLIGHT_MAX: u64 = 1 << 22;
/// The lowest rate that is offered, in operations per second: at a lower one the time between two
/// of them has no end in any run.
const RATE_MIN: f64 = 0.001;
/// The highest rate that is offered: one operation in a nanosecond.
const RATE_MAX: f64 = 1e9;
/// The processors that `sched_setaffinity` can name (`cpu_set_t` of glibc).
const PROCESSORS_MAX: u16 = 1024;
/// The largest operation.
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
            for workload in task.workloads() {
                workload.check()?;
                if let Some(target) = workload.target
                    && !self.targets.is_empty()
                    && target >= self.targets.len()
                {
                    return Err(workload.fault("target", target.to_string()));
                }
            }
            let workloads = match task {
                Task::Workloads(workloads) => workloads,
                Task::Inserts(inserts) if !inserts.between.list.is_empty() => &inserts.between,
                // A ping without an end is one that the user ends.
                Task::Inserts(_)
                | Task::Ping(_)
                | Task::Survey(_)
                | Task::Files(_)
                | Task::Accept(_) => continue,
            };
            if workloads.list.is_empty() {
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

fn has_limit(workload: &Workload) -> bool {
    let stop = &workload.stop;
    stop.time_ns.is_some() || stop.bytes.is_some() || stop.ops.is_some()
}

impl Workload {
    /// Refuses numbers with which no request can be made.
    fn check(&self) -> Result<(), PlanFault> {
        let numbers = [
            ("depth", self.depth, DEPTH_MAX),
            ("number of workers", self.workers, WORKERS_MAX),
            ("block size", self.block_bytes, BLOCK_BYTES_MAX),
        ];
        for (what, value, most) in numbers {
            if value == 0 || value > most {
                return Err(self.fault(what, value.to_string()));
            }
        }
        let in_flight = u64::from(self.depth) * u64::from(self.workers);
        if in_flight > IN_FLIGHT_MAX {
            return Err(self.fault("number of requests in flight", in_flight.to_string()));
        }
        for bytes in self.block_sizes() {
            if bytes == 0 || bytes > self.block_bytes {
                return Err(self.fault("block size", bytes.to_string()));
            }
        }
        let stop = &self.stop;
        for limit in [stop.time_ns, stop.bytes, stop.ops].into_iter().flatten() {
            if limit == 0 {
                return Err(self.fault("limit", limit.to_string()));
            }
        }
        if let Some(what) = self.order_fault() {
            let workload = self.name.clone();
            return Err(PlanFault::Order { workload, what });
        }
        if let Some(rate) = self.rate
            && !(RATE_MIN..=RATE_MAX).contains(&rate)
        {
            return Err(self.fault("rate", rate.to_string()));
        }
        if let SyncPolicy::Every { writes: 0, .. } = self.sync {
            return Err(self.fault("number of writes between two syncs", "0".to_owned()));
        }
        if let Some(bytes) = self.shape.order.align_bytes
            && bytes == 0
        {
            return Err(self.fault("alignment", bytes.to_string()));
        }
        if let Some(scheduling) = &self.shape.threads.scheduling
            && let Some(cpu) = scheduling.cpus.iter().find(|cpu| **cpu >= PROCESSORS_MAX)
        {
            return Err(self.fault("processor", cpu.to_string()));
        }
        // A step back from the end of the span has the size of every block.
        let has_mix = !self.block_mix.is_empty() || !self.streams.other_sizes().is_empty();
        let needs_one_size = matches!(self.access, Access::Backward | Access::Stride { .. });
        if needs_one_size && has_mix && self.shape.order.fio.is_none() {
            let value = format!(
                "one of several with an order that needs one: {}",
                self.block_bytes
            );
            return Err(self.fault("block size", value));
        }
        match self.access.fault() {
            Some((what, value)) => Err(self.fault(what, value)),
            None => Ok(()),
        }
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

    fn fault(&self, what: &'static str, value: String) -> PlanFault {
        PlanFault::Value {
            workload: self.name.clone(),
            what,
            value,
        }
    }
}

impl Access {
    /// The number in it with which no place could be drawn, and its value.
    fn fault(&self) -> Option<(&'static str, String)> {
        match self {
            Self::Sequential | Self::Backward => None,
            Self::Stride { stride_bytes } => {
                (*stride_bytes == 0).then(|| ("distance of blocks", stride_bytes.to_string()))
            }
            Self::Random { distribution } => distribution.fault(),
            Self::Zoned { zones } => zones_fault(zones),
        }
    }
}

impl Distribution {
    /// The number in it with which no block could be drawn, and its value.
    fn fault(&self) -> Option<(&'static str, String)> {
        let (what, value, is_good) = match *self {
            Self::Uniform => return None,
            Self::Zipf { theta } => ("exponent", theta, theta > 0.0 && theta.is_finite()),
            Self::Pareto { share } => ("share of blocks", share, share > 0.0 && share < 1.0),
            Self::Normal { spread_percent } => (
                "spread in percent",
                spread_percent,
                (0.0..=100.0).contains(&spread_percent),
            ),
            Self::HotCold {
                access_percent,
                size_percent,
            } => {
                if !(0.0..=100.0).contains(&access_percent) {
                    let what = "share of operations on the hot set in percent";
                    return Some((what, access_percent.to_string()));
                }
                let what = "size of the hot set in percent";
                (what, size_percent, (0.0..=100.0).contains(&size_percent))
            }
        };
        (!is_good).then(|| (what, value.to_string()))
    }
}

/// The number in these zones with which no place could be drawn, and its value.
fn zones_fault(zones: &[Zone]) -> Option<(&'static str, String)> {
    if zones.is_empty() {
        return Some(("number of zones", zones.len().to_string()));
    }
    for zone in zones {
        for (what, percent) in [
            ("share of operations in a zone", zone.access_percent),
            ("size of a zone in percent", zone.size_percent),
        ] {
            if !(0.0..=100.0).contains(&percent) {
                return Some((what, percent.to_string()));
            }
        }
    }
    let sizes: f64 = zones.iter().map(|zone| zone.size_percent).sum();
    let accesses: f64 = zones.iter().map(|zone| zone.access_percent).sum();
    for (what, sum) in [
        ("sum of the sizes of its zones in percent", sizes),
        ("sum of the shares of its zones in percent", accesses),
    ] {
        if (sum - 100.0).abs() > 1.0 {
            return Some((what, sum.to_string()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{BlockShare, Start, Stop, SyncCall};
    use crate::shape::ThreadScheduling;

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

    #[test]
    fn numbers_without_a_request_are_refused() {
        let good = Workload {
            stop: LIMITED,
            ..Workload::named("reads")
        };
        assert_eq!(checked(vec![good.clone()]), Ok(()));
        assert_eq!(checked(Vec::new()), Err(PlanFault::NoWorkload));
        type Change = fn(&mut Workload);
        let changes: [(&str, Change); 16] = [
            ("depth", |one| one.depth = 0),
            ("depth", |one| one.depth = u32::MAX),
            ("number of workers", |one| one.workers = 0),
            ("block size", |one| one.block_bytes = 0),
            ("block size", |one| one.block_bytes = u32::MAX),
            ("rate", |one| one.rate = Some(0.0)),
            ("limit", |one| one.stop.time_ns = Some(0)),
            ("limit", |one| one.stop.ops = Some(0)),
            ("rate", |one| one.rate = Some(1e-300)),
            ("block size", |one| {
                one.access = Access::Backward;
                one.block_mix = vec![BlockShare {
                    block_bytes: 4096,
                    weight: 1,
                }];
            }),
            ("number of requests in flight", |one| {
                (one.depth, one.workers) = (1 << 16, 1 << 14);
            }),
            ("number of zones", |one| {
                one.access = Access::Zoned { zones: Vec::new() };
            }),
            ("exponent", |one| {
                let distribution = Distribution::Zipf { theta: f64::NAN };
                one.access = Access::Random { distribution };
            }),
            ("alignment", |one| one.shape.order.align_bytes = Some(0)),
            ("processor", |one| {
                one.shape.threads.scheduling = Some(ThreadScheduling {
                    cpus: vec![u16::MAX],
                    ..ThreadScheduling::default()
                });
            }),
            ("number of writes between two syncs", |one| {
                let call = SyncCall::Fsync;
                one.sync = SyncPolicy::Every { writes: 0, call };
            }),
        ];
        for (what, change) in changes {
            let mut bad = good.clone();
            change(&mut bad);
            match checked(vec![good.clone(), bad]) {
                Err(PlanFault::Value { what: found, .. }) => assert_eq!(found, what),
                other => panic!("{what}: {other:?}"),
            }
        }
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
}
