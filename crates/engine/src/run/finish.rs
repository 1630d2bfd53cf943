//! What follows the last worker: the sync after the last write, and the verification of written
//! blocks. A disk may hang here, too, and the watchdog limits both.

use crate::io::clock::{Clock as _, MonotonicClock, WorkerClock};
use crate::io::sync::sync;
use crate::run::error::{RunError, worker_error};
use crate::run::hang::join;
use crate::run::verify::{READ_BYTES, Readback, verify};
use crate::run::watchdog::{Sign, StallTimeout, call_with_timeout};
use crate::run::workers::Assignment;
use diskproof_device::Pulse;
use diskproof_model::measurement::{
    Hang, Interruption, Measurement, SERIES_INTERVAL_NS, StopReason, VerifyResult,
};
use diskproof_model::plan::{EngineKind, SyncCall, Verify};
use diskproof_model::progress::{Control, Phase, Progress, Silence, Watch};
use diskproof_model::series::TimeSeries;
use std::os::fd::AsRawFd as _;

/// The sync after the last write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FinalSync {
    /// How long it took, in nanoseconds.
    pub ns: u64,
    /// 0, or the errno.
    pub errno: i32,
    /// The hang, where it never returned; on the clock.
    pub hang: Option<Hang>,
    /// The process did not run during it; its start on the clock. `ns` leaves it out.
    pub interruption: Option<Interruption>,
}

/// Finishes what workers of these assignments did.
pub(crate) struct Finisher<'a> {
    /// All workloads on all targets.
    pub assignments: &'a [Assignment<'a>],
    /// How long a target may be silent.
    pub stall_timeout: StallTimeout,
}

impl Finisher<'_> {
    /// Makes durable what was written.
    pub(crate) fn sync(
        &self,
        assignment: &Assignment<'_>,
        watch: &mut dyn Watch,
    ) -> Result<FinalSync, RunError> {
        let mut pulse = Pulse::of(assignment.open.identity());
        let (mut waited_ns, mut before_ns) = (0, 0);
        let limit_ns = self.stall_timeout.with_active_disk_ns();
        let look = |silent_ns: u64| {
            waited_ns += silent_ns.saturating_sub(before_ns);
            let beats = pulse.beats() && waited_ns < limit_ns;
            before_ns = if beats { 0 } else { silent_ns };
            // The next workload obeys what the watcher answers here: a sync ends by itself.
            let control = watch.tick(&Progress {
                name: &assignment.workload.name,
                phase: Phase::Measure,
                elapsed_ns: waited_ns,
                done: Some(1.0),
                series: &TimeSeries::new(SERIES_INTERVAL_NS),
                silence: Some(Silence {
                    target: assignment.target,
                    length_ns: silent_ns,
                }),
                resume_bytes: None,
            });
            match control {
                Control::Interrupt => Sign::Unwanted,
                _ if beats => Sign::Progress,
                _ => Sign::Silence,
            }
        };
        let work = |fd: std::os::fd::OwnedFd| {
            let mut clock = WorkerClock::new();
            let start_ns = clock.now();
            let result = sync(fd.as_raw_fd(), SyncCall::Fdatasync);
            let interruption = clock.interruptions(clock.now(), || start_ns).pop();
            let ns = clock.now().saturating_sub(start_ns);
            (
                ns,
                -result,
                interruption.map(|one| Interruption { requests: 1, ..one }),
            )
        };
        let failed = |source| worker_error(assignment.workload, assignment.open, source);
        let waited = call_with_timeout(assignment.open.fd(), self.stall_timeout.ns(), look, work)
            .map_err(failed)?;
        Ok(match waited {
            Ok((ns, errno, interruption)) => FinalSync {
                ns,
                errno,
                hang: None,
                interruption,
            },
            Err(lasted) => {
                self.leave_open(assignment.target);
                let (ns, now) = (lasted.as_nanos() as u64, MonotonicClock.now());
                FinalSync {
                    ns,
                    errno: libc::ETIMEDOUT,
                    hang: Some(self.stall_timeout.hang(now.saturating_sub(ns), ns)),
                    interruption: None,
                }
            }
        })
    }

    /// No further request goes to this target, through any of its descriptors.
    fn leave_open(&self, target: usize) {
        for assignment in self.assignments {
            if assignment.target == target {
                assignment.open.leave_open();
            }
        }
    }

    /// Reads back what a verified workload wrote.
    pub(crate) fn verify(
        &self,
        measurement: &mut Measurement,
        assignment: &Assignment<'_>,
        origin_ns: u64,
        watch: &mut dyn Watch,
    ) -> Result<(), RunError> {
        let Assignment {
            workload,
            prepared,
            open,
            ..
        } = *assignment;
        let does_verify =
            prepared.selection.kind != EngineKind::Null && workload.verify == Verify::Checksum;
        let Some(journal) = prepared.journal.as_ref().filter(|_| does_verify) else {
            return Ok(());
        };
        if open.is_left_open() {
            let blocks_written = Some(journal.written().count() as u64);
            measurement.verify = Some(VerifyResult {
                blocks_written,
                ..VerifyResult::default()
            });
            return Ok(());
        }
        let failed = |source| worker_error(workload, open, source);
        let readback = Readback {
            name: &workload.name,
            target: assignment.target,
            block_bytes: workload.block_bytes,
            cache: prepared.cache.used,
            read_bytes: if workload.shape.ordinary_pages {
                workload.block_bytes as usize
            } else {
                READ_BYTES
            },
        };
        let (result, control, silent_ns) =
            verify(readback, open, journal, self.stall_timeout.ns(), watch).map_err(failed)?;
        measurement.verify = Some(result);
        if let Some(silent_ns) = silent_ns {
            self.leave_open(assignment.target);
            let now = MonotonicClock.now() - origin_ns;
            let since_ns = now.saturating_sub(silent_ns);
            let hang = self.stall_timeout.hang(since_ns, silent_ns);
            measurement.hang = Some(join(measurement.hang, hang));
            if !hang.late {
                measurement.stopped = StopReason::Hung;
            }
        }
        if control == Control::Interrupt {
            measurement.stopped = StopReason::Interrupted;
        }
        Ok(())
    }
}
