//! Runs a worker on a backend for a moment, outside of any measurement, to find which I/O engine is
//! faster here, and the limit of the program itself.

use crate::io::buffers::Buffers;
use crate::io::clock::{Clock, MonotonicClock, WorkerClock};
use crate::io::null::NullBackend;
use crate::io::{Backend, Extent};
use crate::load::budget::Budget;
use crate::load::generator::{AfterWrite, RequestGenerator};
use crate::load::pattern::Pattern;
use crate::measure::worker::{AdvanceOutcome, Worker, WorkerSchedule};
use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::plan::{Access, Distribution, EngineKind, Stop, SyncPolicy, Workload};
use diskproof_model::series::TimeSeries;
use diskproof_model::stream::Streams;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// The measured time of a trial. Chosen, not measured: some hundred reads even of a slow SSD, and
/// no delay that a user notices.
const TRIAL_NS: u64 = 10_000_000;
/// A worker that does fewer operations per second than this is far from its own limit, which is
/// tens of millions.
const MAX_IOPS_WORTH_KNOWING: f64 = 500_000.0;

/// Random reads with a workload's block size and depth.
pub(crate) fn random_reads(workload: &Workload) -> Workload {
    Workload {
        streams: Streams::with_reads(1000),
        access: Access::Random {
            distribution: Distribution::Uniform,
        },
        block_mix: Vec::new(),
        sync: SyncPolicy::None,
        stop: Stop::default(),
        rate: None,
        ..workload.clone()
    }
}

/// The outcome of a short run of reads.
pub(crate) struct ShortRun {
    /// Reads per second that succeeded.
    pub rate: f64,
    /// Reads that failed, by errno name.
    pub errors: BTreeMap<String, u64>,
}

/// Runs `workload`, which only reads, on `backend` for a moment; `None` where the backend fails or
/// no read ends.
pub(crate) fn run_shortly(
    backend: impl Backend,
    workload: &Workload,
    extent: Extent,
) -> Option<ShortRun> {
    let generator = RequestGenerator::new(
        Pattern::new(workload, extent, 0, 0),
        workload.depth,
        AfterWrite::Nothing,
        Budget::default(),
    );
    let start_ns = MonotonicClock.now();
    let schedule = WorkerSchedule {
        start_ns,
        measure_ns: start_ns,
        end_ns: start_ns + TRIAL_NS,
    };
    let published = Arc::new(Mutex::new(TimeSeries::new(TRIAL_NS)));
    let mut worker = Worker::new(
        backend,
        WorkerClock::new(),
        generator,
        schedule,
        Arc::new(AtomicBool::new(false)),
        published,
    );
    while worker.advance().ok()? == AdvanceOutcome::Running {}
    let mut done = worker.finish();
    let reads = done.ops.remove(&OpKind::Read)?;
    Some(ShortRun {
        rate: reads.latency.count() as f64 * 1e9 / (done.last_ns - start_ns).max(1) as f64,
        errors: reads.errors,
    })
}

/// Number of tries; the best counts. Other load on the machine only slows a try down, and a worker
/// that lost its processor would seem to be at its limit.
const MAX_IOPS_ROUNDS: u32 = 5;

/// The IOPS that the workers of a measurement would reach on a target that takes no time, on as
/// many CPUs as they can use. `None` where the measurement is so far below that it does not matter.
pub(crate) fn max_iops(measurement: &Measurement) -> Option<f64> {
    let workload = &measurement.workload;
    let done: u64 = measurement.ops.values().map(|op| op.count).sum();
    let workers = f64::from(workload.workers);
    let iops_per_worker = done as f64 * 1e9 / measurement.wall_ns.max(1) as f64 / workers;
    if iops_per_worker < MAX_IOPS_WORTH_KNOWING || measurement.engine.used == EngineKind::Null {
        return None;
    }
    let extent = Extent::new(measurement.span_start_bytes, measurement.span_bytes);
    let cpus = std::thread::available_parallelism().map_or(1.0, |cpus| cpus.get() as f64);
    let mut best: Option<f64> = None;
    for _ in 0..MAX_IOPS_ROUNDS {
        if let Some(iops) = null_iops(workload, extent) {
            best = Some(iops.max(best.unwrap_or(iops)));
        }
    }
    Some(best? * workers.min(cpus))
}

/// The IOPS of one worker on a target that takes no time.
fn null_iops(workload: &Workload, extent: Extent) -> Option<f64> {
    let buffers = Buffers::new(workload.depth as usize, workload.block_bytes as usize).ok()?;
    let backend = NullBackend::new(buffers, workload.depth as usize);
    let run = run_shortly(backend, &random_reads(workload), extent)?;
    Some(run.rate)
}
