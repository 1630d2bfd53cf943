//! The reports of the engine while it works, and the answers of its caller.

use crate::measurement::{Measurement, StopReason};
use crate::ping::SingleRequest;
use crate::series::TimeSeries;
use crate::surface::{SlowBlock, SurfaceMeasurement, UnreadableRange};

/// The state of the workload that is running.
#[derive(Debug, Clone)]
pub struct Progress<'a> {
    /// Name of the workload, or of the step before it (`layout`).
    pub name: &'a str,
    /// The part of the work that is under way.
    pub phase: Phase,
    /// Time since the start of this phase, in nanoseconds.
    pub elapsed_ns: u64,
    /// Share of the phase done, 0 to 1, by whichever limit is nearest; `None` when it has none.
    pub done: Option<f64>,
    /// Measured operations of all kinds so far (syncs apart), all workers, finest cells.
    pub series: &'a TimeSeries,
    /// The target without an answer for the longest time; `None` where that is not tracked.
    pub silence: Option<Silence>,
    /// The byte before which everything is judged: a scan that is killed now could go on there.
    pub resume_bytes: Option<u64>,
}

impl<'a> Progress<'a> {
    /// Progress without a limit, a silence or a border.
    pub fn new(name: &'a str, phase: Phase, elapsed_ns: u64, series: &'a TimeSeries) -> Self {
        Self {
            name,
            phase,
            elapsed_ns,
            done: None,
            series,
            silence: None,
            resume_bytes: None,
        }
    }
}

/// A target on which nothing was completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// Index into the plan's targets.
    pub target: usize,
    /// Nanoseconds without a completion by all workloads that run on it.
    pub length_ns: u64,
}

/// Parts of the work on one workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The scratch file gets its content; not measured.
    Layout,
    /// The target gets its very first request, for which its disk may have to wake up; not
    /// measured.
    WakeUp,
    /// Single requests show whether, how fast and by which I/O engine the target answers; not
    /// measured.
    FirstRequests,
    /// The workers take their memory and make their engines; the target has no request yet.
    SetUp,
    /// The queue fills and caches settle; not measured.
    Warmup,
    /// Counts in the figures.
    Measure,
    /// Reads back and checks what was written.
    Verify,
    /// A step of the survey: its name says which.
    Survey,
}

/// The wish of the watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Nothing changes.
    Continue,
    /// This workload is known well enough: end it as done.
    Enough,
    /// End everything now; what was measured counts as partial.
    Interrupt,
}

/// A place that a scan found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A block that took long, twice.
    Slow(SlowBlock),
    /// A range that could not be read.
    Unreadable(UnreadableRange),
}

/// Watches a run: shows progress, judges precision, reacts to Ctrl-C. Called a few times a second,
/// never from the hot loop.
pub trait Watch {
    /// Receives the progress and decides how to go on.
    fn tick(&mut self, progress: &Progress<'_>) -> Control;

    /// Receives a place as soon as a scan is sure of it: the scan may be killed before it returns
    /// its result.
    fn found(&mut self, _place: &Found) {}

    /// True if it wants the results so far, when the workloads that run have been measured for this
    /// long, in nanoseconds.
    fn wants_results(&self, _elapsed_ns: u64) -> bool {
        false
    }

    /// Receives the results so far of the workloads that run: for each of them one per target.
    /// Counts and times reach as far as each worker has come, at most a request behind; latencies
    /// are up to a quarter of a second older. Without windows and without the device's counters.
    /// Of a ping with its requests.
    fn results_so_far(&mut self, _elapsed_ns: u64, _measurements: &[Measurement]) {}

    /// Receives the results so far of a survey: the parts that have ended and what the present one
    /// has found, without the device's counters.
    fn survey_so_far(&mut self, _surface: &SurfaceMeasurement) {}
}

/// A watcher that also sees single requests.
pub trait PingWatch: Watch {
    /// Receives a request when it has ended, with the index of its target.
    fn request(&mut self, target: usize, request: &SingleRequest);

    /// The reason why all requests must end now; `None` to go on.
    fn ending(&self) -> Option<StopReason>;
}
