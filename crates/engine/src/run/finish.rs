//! Makes the steps after the last worker: the sync after the last write, and the verification of
//! written blocks, by [`crate::run::read_back`]. A disk may hang here, too: both run in a separate
//! thread, and the watchdog limits them.

use crate::io::clock::{Clock as _, MonotonicClock, WorkerClock};
use crate::io::errno_name;
use crate::io::sync::sync_all;
use crate::lock::lock;
use crate::run::assemble::FinalSync;
use crate::run::error::RunError;
use crate::run::hang::merge_hangs;
use crate::run::read_back::{VerifyEnd, VerifyProgress, verify};
use crate::run::session::Session;
use crate::run::watchdog::CallEnd;
use crate::run::watched_call::{CallProgress, SilentCall, WatchedCall};
use crate::run::workers::{Assignment, abandon_target};
use diskproof_device::Pulse;
use diskproof_model::measurement::{Interruption, Measurement, OpKind, StopReason, VerifyResult};
use diskproof_model::plan::{CachePolicy, EngineKind, Verify};
use diskproof_model::progress::{Phase, Watch};
use diskproof_model::series::TimeSeries;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

impl Session {
    /// Makes durable what was written to the target of the assignment at `index`. A target that
    /// does not answer is abandoned, and its sync counts as one that timed out.
    pub(super) fn final_sync(
        &self,
        assignments: &[Assignment<'_>],
        index: usize,
        watch: &mut dyn Watch,
    ) -> Result<FinalSync, RunError> {
        let assignment = &assignments[index];
        let mut pulse = Pulse::start(assignment.open.identity());
        let limit_ns = self.stall_timeout.with_active_disk_ns();
        // The next workload obeys what the watcher answers here: a sync ends by itself.
        let look = |_: &mut TimeSeries, waited_ns| CallProgress {
            has_moved: pulse.beats() && waited_ns < limit_ns,
            done: 1.0,
        };
        let stop = AtomicBool::new(false);
        let call = self.call_on(assignment, Phase::Measure, &stop);
        Ok(match call.run(watch, look, sync_files)? {
            CallEnd::Returned(synced) => synced.value,
            CallEnd::Silent(SilentCall { lasted_ns, .. }) => {
                abandon_target(assignments, assignment.target);
                let since_ns = MonotonicClock.now().saturating_sub(lasted_ns);
                FinalSync {
                    ns: lasted_ns,
                    errno: libc::ETIMEDOUT,
                    hang: Some(self.stall_timeout.hang(since_ns, lasted_ns)),
                    interruption: None,
                }
            }
        })
    }

    /// Reads back the blocks that the verified workload of the assignment at `index` wrote, and
    /// adds the verdict to its measurement. Does nothing for other workloads. An abandoned target
    /// is not read; one that hangs now is abandoned.
    pub(super) fn verify_written(
        &self,
        measurement: &mut Measurement,
        assignments: &[Assignment<'_>],
        index: usize,
        watch: &mut dyn Watch,
    ) -> Result<(), RunError> {
        let assignment = &assignments[index];
        let Assignment {
            workload,
            prepared,
            open,
            ..
        } = *assignment;
        let is_too_late =
            workload.shape.content.is_checked_in_time && measurement.stopped == StopReason::Time;
        let does_verify = prepared.known.engine.used != EngineKind::Null
            && workload.verify == Verify::Checksum
            && !is_too_late;
        let Some(journal) = prepared.journal.as_ref().filter(|_| does_verify) else {
            return Ok(());
        };
        let cache = prepared.known.cache.used;
        if open.is_left_open() || has_lost_pages(measurement, cache) {
            let blocks_written = Some(journal.written().count() as u64);
            measurement.verify = Some(VerifyResult {
                blocks_written,
                ..VerifyResult::default()
            });
            return Ok(());
        }
        let checked = Arc::new(VerifyProgress::default());
        let call = self.call_on(assignment, Phase::Verify, &checked.stop);
        let end = verify(&call, cache, journal, &checked, watch)?;
        let result = lock(&checked.result).clone();
        measurement.verify = Some(result);
        match end {
            VerifyEnd::Read => {}
            VerifyEnd::SyncFailed(errno) => {
                let sync = measurement.ops.entry(OpKind::Sync).or_default();
                *sync.errors.entry(errno_name(errno)).or_default() += 1;
            }
            VerifyEnd::Silent(silent_ns) => {
                abandon_target(assignments, assignment.target);
                let now = MonotonicClock.now() - self.origin_ns;
                let since_ns = now.saturating_sub(silent_ns);
                let hang = self.stall_timeout.hang(since_ns, silent_ns);
                measurement.hang = Some(merge_hangs(measurement.hang, hang));
                if !hang.late {
                    measurement.stopped = StopReason::Hung;
                }
            }
        }
        if checked.is_stopped() {
            measurement.stopped = StopReason::Interrupted;
        }
        Ok(())
    }

    /// Prepares a call on the target of an assignment, whose workers have ended.
    fn call_on<'a>(
        &self,
        assignment: &Assignment<'a>,
        phase: Phase,
        stop: &'a AtomicBool,
    ) -> WatchedCall<'a> {
        WatchedCall {
            workload: assignment.workload,
            open: assignment.open,
            target: Some(assignment.target),
            phase,
            stall_ns: self.stall_timeout.ns(),
            stop,
        }
    }
}

/// True if writes went to the page cache and a sync failed. The kernel may have dropped pages that
/// it could not write: the disk never acknowledged them, so a lost block does not prove it faulty.
fn has_lost_pages(measurement: &Measurement, cache: CachePolicy) -> bool {
    let sync = measurement.ops.get(&OpKind::Sync);
    cache != CachePolicy::Direct && sync.is_some_and(|op| !op.errors.is_empty())
}

/// Makes the content of the files durable, one after the other, and measures that.
fn sync_files(files: Vec<OwnedFd>) -> FinalSync {
    let mut clock = WorkerClock::new();
    let start_ns = clock.now();
    let errno = sync_all(&files);
    let interruption = clock.interruptions(clock.now(), || start_ns).pop();
    FinalSync {
        ns: clock.now().saturating_sub(start_ns),
        errno,
        hang: None,
        interruption: interruption.map(|interruption| Interruption {
            requests: 1,
            ..interruption
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Extent;
    use crate::testing::simulate::simulated;
    use diskproof_model::plan::Workload;

    #[test]
    fn failed_sync_loses_pages_only_of_the_page_cache() {
        let mut measurement = simulated(&Workload::named("w"), Extent::default());
        assert!(!has_lost_pages(&measurement, CachePolicy::Buffered));
        let sync = measurement.ops.entry(OpKind::Sync).or_default();
        sync.errors.insert("EIO".to_owned(), 1);
        assert!(has_lost_pages(&measurement, CachePolicy::Buffered));
        assert!(!has_lost_pages(&measurement, CachePolicy::Direct));
    }
}
