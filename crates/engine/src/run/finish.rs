//! What follows when the last worker is home: the sync after the last write, and the reading back
//! of what was verified. A disk that answered all of them may hang here just as well, and then is
//! given up here, too.

use crate::io::clock::{Clock as _, MonotonicClock};
use crate::io::sync::sync;
use crate::run::call_with_timeout::{Outcome, Sign, aside};
use crate::run::error::RunError;
use crate::run::hang::join;
use crate::run::session::{PreparedTarget, Session};
use crate::run::verify::{Readback, verify};
use crate::run::workers::{Assignment, worker_error};
use diskproof_device::Pulse;
use diskproof_model::measurement::{Hang, Measurement, StopReason, VerifyResult};
use diskproof_model::plan::{CachePolicy, EngineKind, SyncCall};
use diskproof_model::progress::{Control, Phase, Progress, Silence, Watch};
use diskproof_model::series::TimeSeries;
use std::os::fd::AsRawFd as _;

/// A sync may take many minutes where much is to be written back, others' data among it. As long as
/// the disk completes anything it is not given up before so many times the usual patience: that may
/// be others' work, too, beside a sync that was lost.
const PATIENCE_WITH_PULSE: u64 = 20;

/// The sync after the last write.
#[derive(Debug, Clone, Copy)]
pub struct FinalSync {
    /// How long it took, in nanoseconds.
    pub ns: u64,
    /// 0, or the errno.
    pub errno: i32,
    /// It never returned; on the clock.
    pub hang: Option<Hang>,
}

/// Nothing more may be asked of the target of `assignment`, by any description.
fn give_up(assignments: &[Assignment<'_>], assignment: &Assignment<'_>) {
    assignments
        .iter()
        .filter(|other| other.target == assignment.target)
        .for_each(|other| other.open.leave_open());
}

fn hang_of(lasted_ns: u64, now: u64) -> Hang {
    Hang {
        since_ns: now.saturating_sub(lasted_ns),
        lasted_ns,
        requests: 1,
    }
}

impl Session {
    /// Makes durable what was written.
    pub(crate) fn final_sync(
        &self,
        assignments: &[Assignment<'_>],
        assignment: &Assignment<'_>,
        watch: &mut dyn Watch,
    ) -> Result<FinalSync, RunError> {
        let (mut pulse, mut waited_ns, mut before_ns) =
            (Pulse::of(assignment.open.identity()), 0, 0);
        let (name, most_ns) = (
            &assignment.workload.name,
            self.stall_ns.saturating_mul(PATIENCE_WITH_PULSE),
        );
        let look = |silent_ns: u64| {
            waited_ns += silent_ns.saturating_sub(before_ns);
            let beats = pulse.beats() && waited_ns < most_ns;
            before_ns = if beats { 0 } else { silent_ns };
            // What the watcher says is heard when the next workload begins: this ends by itself.
            report_silence(
                watch,
                (name, Phase::Measure),
                waited_ns,
                Silence {
                    target: assignment.target,
                    length_ns: silent_ns,
                },
            );
            if beats { Sign::Progress } else { Sign::Silence }
        };
        let work = |fd: std::os::fd::OwnedFd| {
            let start = std::time::Instant::now();
            let result = sync(fd.as_raw_fd(), SyncCall::Fdatasync);
            (start.elapsed().as_nanos() as u64, -result)
        };
        let outcome = aside(assignment.open.fd(), self.stall_ns, look, work)
            .map_err(|source| worker_error(assignment.workload, assignment.open, source))?;
        Ok(match outcome {
            Outcome::Returned((ns, errno)) => FinalSync {
                ns,
                errno,
                hang: None,
            },
            Outcome::Abandoned(ns) => {
                give_up(assignments, assignment);
                FinalSync {
                    ns,
                    errno: libc::ETIMEDOUT,
                    hang: Some(hang_of(ns, MonotonicClock.now())),
                }
            }
        })
    }

    /// Reads back what a verified workload wrote.
    pub(crate) fn check(
        &self,
        measurement: &mut Measurement,
        assignments: &[Assignment<'_>],
        assignment: &Assignment<'_>,
        watch: &mut dyn Watch,
    ) -> Result<(), RunError> {
        let Assignment {
            prepared:
                PreparedTarget {
                    journal,
                    cache,
                    selection,
                    ..
                },
            open,
            ..
        } = *assignment;
        let Some(journal) = journal
            .as_ref()
            .filter(|_| selection.kind != EngineKind::Null)
        else {
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
        // What the page cache still holds must come from the disk.
        let cache = if cache.used == CachePolicy::Direct {
            CachePolicy::Direct
        } else {
            CachePolicy::Buffered
        };
        let failed = |source| worker_error(assignment.workload, open, source);
        let readback = Readback {
            name: &assignment.workload.name,
            target: assignment.target,
            block_bytes: assignment.workload.block_bytes,
            cache,
        };
        let (result, control, silent_ns) =
            verify(readback, open, journal, self.stall_ns, watch).map_err(failed)?;
        measurement.verify = Some(result);
        if let Some(silent_ns) = silent_ns {
            give_up(assignments, assignment);
            let hang = hang_of(silent_ns, MonotonicClock.now() - self.origin_ns);
            measurement.hang = Some(join(measurement.hang, hang));
            measurement.stopped = StopReason::Hung;
        }
        if control == Control::Interrupt {
            measurement.stopped = StopReason::Interrupted;
        }
        Ok(())
    }
}

/// Shows the watcher that something is waited for.
pub fn report_silence(
    watch: &mut dyn Watch,
    (name, phase): (&str, Phase),
    elapsed_ns: u64,
    silence: Silence,
) -> Control {
    let series = TimeSeries::new(diskproof_model::measurement::SERIES_INTERVAL_NS);
    watch.tick(&Progress {
        name,
        phase,
        elapsed_ns,
        done: Some(1.0),
        series: &series,
        silence: Some(silence),
        resume_bytes: None,
    })
}
