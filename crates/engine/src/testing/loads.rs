//! Makes the parts of workloads that most tests of this crate need, under short names.

use crate::io::Extent;
use crate::load::budget::Budget;
use crate::load::generator::{AfterWrite, RequestGenerator};
use crate::load::pattern::Pattern;
use crate::measure::worker::WorkerSchedule;
use diskproof_model::op::OpKind;
use diskproof_model::plan::{Access, Distribution, Stop, Workload};
use diskproof_model::shape::{
    FileService, FioDraws, FioFiles, FioGenerator, FioKind, FioOrder, FioPlaces, FioSeed, FioSizes,
    FioSync, FioSyncCall,
};

/// Random blocks, each equally likely.
pub(crate) const UNIFORM: Access = Access::Random {
    distribution: Distribution::Uniform,
};

/// A part of a target, in bytes.
pub(crate) fn extent(start: u64, length: u64) -> Extent {
    Extent { start, length }
}

/// Ends a workload after so many operations.
pub(crate) fn after_ops(count: u64) -> Stop {
    Stop {
        ops: Some(count),
        ..Stop::default()
    }
}

/// Ends a workload after so much measured time.
pub(crate) fn after_ns(ns: u64) -> Stop {
    Stop {
        time_ns: Some(ns),
        ..Stop::default()
    }
}

/// A schedule that starts at time 0, and measures from `measure_ns` to `end_ns`.
pub(crate) fn schedule(measure_ns: u64, end_ns: u64) -> WorkerSchedule {
    WorkerSchedule {
        start_ns: 0,
        measure_ns,
        end_ns,
    }
}

/// The generator of the first worker of a workload, whose writes need nothing after them.
pub(crate) fn requests(workload: &Workload, extent: Extent, budget: Budget) -> RequestGenerator {
    let pattern = Pattern::new(workload, extent, 1, 0);
    RequestGenerator::new(pattern, workload.depth, AfterWrite::Nothing, budget)
}

/// The order of the fio job `rw=rw bs=4k size=64k nrfiles=2 fsync=3`.
pub(crate) fn order_of_two_files() -> FioOrder {
    let kind = |does| FioKind {
        does,
        sizes: FioSizes {
            least_bytes: 4096,
            most_bytes: 4096,
            split: Vec::new(),
            is_unaligned: false,
        },
        align_bytes: 4096,
        random_percent: 100,
        zones: Vec::new(),
        bytes_per_second: 0,
    };
    FioOrder {
        draws: FioDraws {
            job: 1,
            seed: FioSeed::Repeated,
            repeats_all: false,
            verifies: false,
            seeds_places: false,
            generator: FioGenerator::Tausworthe,
        },
        kinds: vec![kind(OpKind::Read), kind(OpKind::Write)],
        read_percent: 50,
        unit_bytes: 4096,
        places: FioPlaces {
            is_random: false,
            is_mapped: false,
            law: None,
            run: None,
            gap_bytes: 0,
            zones: None,
        },
        files: FioFiles {
            count: 2,
            part_start: 0,
            part_bytes: 32768,
            first_start: 0,
            start: 0,
            lap_bytes: 32768,
            file_bytes: 32768,
            service: FileService::RoundRobin,
            turn_ops: 1,
            open_max: 2,
        },
        syncs: vec![FioSync {
            call: FioSyncCall::Fsync,
            writes: 3,
        }],
        lap_bytes: None,
        is_time_based: false,
    }
}
