//! Short names for the parts of workloads that most tests of this crate need.

use crate::io::Extent;
use crate::load::budget::Budget;
use crate::load::generator::{AfterWrite, RequestGenerator};
use crate::load::pattern::Pattern;
use crate::measure::worker::WorkerSchedule;
use diskproof_model::plan::{Access, Distribution, Stop, Workload};

pub(crate) const UNIFORM: Access = Access::Random {
    distribution: Distribution::Uniform,
};

pub(crate) fn extent(start: u64, length: u64) -> Extent {
    Extent { start, length }
}

pub(crate) fn after_ops(count: u64) -> Stop {
    Stop {
        ops: Some(count),
        ..Stop::default()
    }
}

pub(crate) fn after_ns(ns: u64) -> Stop {
    Stop {
        time_ns: Some(ns),
        ..Stop::default()
    }
}

/// Starts at once.
pub(crate) fn schedule(measure_ns: u64, end_ns: u64) -> WorkerSchedule {
    WorkerSchedule {
        start_ns: 0,
        measure_ns,
        end_ns,
    }
}

/// The first worker's requests of a workload, whose writes need nothing after them.
pub(crate) fn requests(workload: &Workload, extent: Extent, budget: Budget) -> RequestGenerator {
    let pattern = Pattern::new(workload, extent, 1, 0);
    RequestGenerator::new(pattern, workload.depth, AfterWrite::Nothing, budget)
}
