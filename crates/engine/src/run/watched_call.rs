//! A call on one target outside of its workers, such as a sync or a read-back: what the watcher
//! sees meanwhile, and how its answer ends the wait.

use crate::run::error::{RunError, worker_error};
use crate::run::supervise::CHECK_EVERY;
use crate::run::watchdog::{Sign, call_with_timeout};
use diskproof_device::OpenTarget;
use diskproof_model::plan::Workload;
use diskproof_model::progress::{Control, Phase, Progress, Silence, Watch};
use diskproof_model::series::TimeSeries;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A call on a target, whose progress the watcher sees as that of a workload.
pub(crate) struct WatchedCall<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// The target.
    pub open: &'a OpenTarget,
    /// Index of the target, where its silence is shown.
    pub target: Option<usize>,
    /// Which part of the work it is.
    pub phase: Phase,
    /// The longest silence, in nanoseconds.
    pub stall_ns: u64,
    /// Set when the watcher interrupts.
    pub stop: &'a AtomicBool,
}

impl WatchedCall<'_> {
    /// As [`call_with_timeout`], whose inner error comes with the last silence, in nanoseconds.
    /// `look` gets the time so far and the silence, may add to the series that the watcher sees,
    /// and returns whether there was progress, and the share that is done. `work` gets all files of
    /// the target.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        watch: &mut dyn Watch,
        mut look: impl FnMut(&mut TimeSeries, u64, u64) -> (bool, f64),
        work: impl FnOnce(Vec<OwnedFd>) -> T + Send + 'static,
    ) -> Result<Result<T, (Duration, u64)>, RunError> {
        let mut series = TimeSeries::new(CHECK_EVERY.as_nanos() as u64);
        let (mut elapsed_ns, mut before_ns) = (0, 0);
        let tick = |silent_ns: u64| {
            elapsed_ns += silent_ns.saturating_sub(before_ns);
            let (has_moved, done) = look(&mut series, elapsed_ns, silent_ns);
            let control = watch.tick(&Progress {
                done: Some(done),
                silence: self.target.map(|target| Silence {
                    target,
                    length_ns: silent_ns,
                }),
                ..Progress::new(&self.workload.name, self.phase, elapsed_ns, &series)
            });
            if control == Control::Interrupt {
                self.stop.store(true, Ordering::Relaxed);
            }
            let sign = if self.stop.load(Ordering::Relaxed) {
                Sign::Unwanted
            } else if has_moved {
                Sign::Progress
            } else {
                Sign::Silence
            };
            before_ns = if sign == Sign::Progress { 0 } else { silent_ns };
            sign
        };
        let waited = call_with_timeout(self.open.files(), self.stall_ns, tick, work)
            .map_err(|source| worker_error(self.workload, self.open, source))?;
        Ok(waited.map_err(|lasted| (lasted, before_ns)))
    }
}
