//! Makes a call on one target outside of its workers, such as a sync or a read-back. The watcher
//! sees its progress, and can end the wait for it.

use crate::run::error::{RunError, worker_error};
use crate::run::supervise::{CHECK_EVERY, ENDED_NS, StallTimeout};
use crate::run::watchdog::{CallEnd, Sign, call_with_timeout};
use diskproof_device::{AnsweredCall, OpenTarget, Pulse};
use diskproof_model::measurement::{SILENCE_NS_MIN, WAKE_UP_NS};
use diskproof_model::plan::Workload;
use diskproof_model::progress::{Control, Phase, Progress, Silence, Watch};
use diskproof_model::series::TimeSeries;
use diskproof_model::target::TargetIdentity;
use rustix::fs::fdatasync;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The progress of a call since the last look.
pub(crate) struct CallProgress {
    /// True if anything was done since then.
    pub has_moved: bool,
    /// The share of the work that is done.
    pub done: f64,
}

/// A call that returned.
pub(crate) struct ReturnedCall<T> {
    pub value: T,
    /// The longest time without progress, in nanoseconds, to 50 ms.
    pub longest_silence_ns: u64,
    /// The time of the call, in nanoseconds, to 50 ms.
    pub lasted_ns: u64,
    /// The looks that found progress.
    pub moves: u64,
}

/// A call that was abandoned because its target did not answer.
pub(crate) struct SilentCall {
    /// The time since the start of the call, in nanoseconds.
    pub lasted_ns: u64,
    /// The time since its last progress, in nanoseconds.
    pub silent_ns: u64,
}

/// A call on a target, whose progress the watcher sees as that of a workload.
pub(crate) struct WatchedCall<'a> {
    /// The workload under whose name the progress is shown.
    pub workload: &'a Workload,
    /// The target whose files the call gets.
    pub open: &'a OpenTarget,
    /// Index of the target, where its silence is shown.
    pub target: Option<usize>,
    /// The part of the run that the watcher sees.
    pub phase: Phase,
    /// The longest silence, in nanoseconds.
    pub stall_ns: u64,
    /// Set when the watcher interrupts.
    pub stop: &'a AtomicBool,
}

impl WatchedCall<'_> {
    /// Makes the call as [`call_with_timeout`]. `look` gets the time so far, in nanoseconds, and
    /// may add to the series that the watcher sees. `work` gets all files of the target.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        watch: &mut dyn Watch,
        mut look: impl FnMut(&mut TimeSeries, u64) -> CallProgress,
        work: impl FnOnce(Vec<OwnedFd>) -> T + Send + 'static,
    ) -> Result<CallEnd<ReturnedCall<T>, SilentCall>, RunError> {
        let mut series = TimeSeries::new(CHECK_EVERY.as_nanos() as u64);
        // The silence begins again after each progress: the time since the start is the sum of its
        // growth from look to look.
        let mut elapsed_ns = 0;
        let mut last_silent_ns = 0;
        // After the order to end, the supervisor no longer asks for progress.
        let mut moved_ns = 0;
        let mut longest_silence_ns = 0;
        let mut moves = 0;
        let tick = |silent_ns: u64| {
            elapsed_ns += silent_ns.saturating_sub(last_silent_ns);
            let CallProgress { has_moved, done } = look(&mut series, elapsed_ns);
            // Where it has moved, this thread may have waited for a processor, not the call.
            if has_moved {
                moved_ns = elapsed_ns;
                moves += 1;
            }
            let silence_ns = elapsed_ns - moved_ns;
            longest_silence_ns = longest_silence_ns.max(silence_ns);
            let control = watch.tick(&Progress {
                done: Some(done),
                silence: self.target.map(|target| Silence {
                    target,
                    length_ns: silence_ns,
                }),
                ..Progress::new(&self.workload.name, self.phase, elapsed_ns, &series)
            });
            if control == Control::Interrupt {
                self.stop.store(true, Ordering::Relaxed);
            }
            let sign = if self.stop.load(Ordering::Relaxed) {
                Sign::EndRequested
            } else if has_moved {
                Sign::Progress
            } else {
                Sign::Silence
            };
            last_silent_ns = match sign {
                Sign::Progress => 0,
                Sign::Silence | Sign::EndRequested => silent_ns,
            };
            sign
        };
        let end = call_with_timeout(self.open.files(), self.stall_ns, tick, work)
            .map_err(|source| worker_error(self.workload, self.open, source))?;
        Ok(match end {
            CallEnd::Returned(value) => CallEnd::Returned(ReturnedCall {
                value,
                longest_silence_ns,
                lasted_ns: elapsed_ns,
                moves,
            }),
            CallEnd::Silent(lasted) => CallEnd::Silent(SilentCall {
                lasted_ns: lasted.as_nanos() as u64,
                silent_ns: elapsed_ns - moved_ns,
            }),
        })
    }
}

/// A disk completes nothing while it empties its own cache. Chosen, not measured: a solid-state
/// disk needs less for that.
pub(crate) const FLUSH_NS: u64 = 2_000_000_000;

/// The longest silence of a target, and the watcher meanwhile.
pub(crate) struct Patience<'a> {
    pub stall_timeout: StallTimeout,
    pub watch: &'a mut dyn Watch,
}

/// Makes requests that belong to no measured time, before a workload. `work` gets all files of the
/// target, and sets `answered` after each answer. A target that does not answer in time is
/// abandoned, and the run ends with [`RunError::Stalled`]; with [`RunError::Unanswered`] where the
/// watcher ends the wait before. A long silence is noted for the next workload.
pub(crate) fn call_before_run<T: Send + 'static>(
    workload: &Workload,
    target: &OpenTarget,
    patience: Patience<'_>,
    answered: &Arc<AtomicBool>,
    work: impl FnOnce(Vec<OwnedFd>) -> T + Send + 'static,
) -> Result<T, RunError> {
    let limit_ns = patience.stall_timeout.ns();
    let was_awake = target.has_answered();
    let returned = watch_before_run(workload, target, patience, limit_ns, work, |_| {
        answered.swap(false, Ordering::Relaxed)
    })?;
    note_silence(target, returned.longest_silence_ns, SILENCE_NS_MIN);
    target.note_answer(0);
    // The last answers may have come after the last look. A first one may have woken the disk up.
    let unseen = u64::from(answered.swap(false, Ordering::Relaxed));
    let answers = returned.moves + unseen;
    if was_awake && answers > 0 {
        target.note_answers(AnsweredCall {
            answers,
            lasted_ns: returned.lasted_ns,
            longest_silence_ns: returned.longest_silence_ns,
        });
    }
    Ok(returned.value)
}

/// Notes a silence of a target from `usual_ns` on. What a rotating disk may need is known when the
/// run is judged: the kernel says of most virtual disks that they rotate.
fn note_silence(target: &OpenTarget, silence_ns: u64, usual_ns: u64) {
    if silence_ns >= usual_ns {
        target.note_silence(silence_ns);
    }
}

/// The silence that is usual while the disks of a target empty their caches, in nanoseconds. A
/// rotating disk empties its cache in silence, and so may whatever is behind a virtual one.
pub(crate) fn usual_flush_ns(identity: &TargetIdentity) -> u64 {
    if identity.rotational() == Some(false) {
        FLUSH_NS
    } else {
        WAKE_UP_NS
    }
}

/// Writes back what the page cache holds of a target, before a workload. Each request that its
/// disks complete is progress, since nothing else shows how far the kernel is; but those of other
/// programs do not prolong the wait for ever. Without counters, as of a network filesystem, slow is
/// not told from silent: the wait is as long as that, and no silence is noted.
pub(crate) fn write_back_before_run(
    workload: &Workload,
    target: &OpenTarget,
    patience: Patience<'_>,
) -> Result<(), RunError> {
    if !target.is_writable() {
        return Ok(());
    }
    let mut pulse = Pulse::start(target.identity());
    let is_counted = target.identity().disks().next().is_some();
    let whole_ns = patience.stall_timeout.with_active_disk_ns();
    let stall_ns = if is_counted {
        patience.stall_timeout.ns()
    } else {
        whole_ns
    };
    let written = watch_before_run(
        workload,
        target,
        patience,
        stall_ns,
        |files| files.iter().try_for_each(fdatasync),
        |waited_ns| pulse.beats() && waited_ns < whole_ns,
    );
    let returned = match written {
        // Whether the target was silent is unknown.
        Err(RunError::Unanswered { .. }) if !is_counted => {
            return Err(RunError::interrupted(&workload.name));
        }
        written => written?,
    };
    if is_counted {
        let usual_ns = usual_flush_ns(target.identity()).max(pulse.usual_silence_ns());
        note_silence(target, returned.longest_silence_ns, usual_ns);
    }
    returned
        .value
        .map_err(|errno| target.write_back_error(errno).into())
}

/// `has_moved` gets the time so far, in nanoseconds, and says whether anything was done since the
/// last look.
fn watch_before_run<T: Send + 'static>(
    workload: &Workload,
    target: &OpenTarget,
    patience: Patience<'_>,
    stall_ns: u64,
    work: impl FnOnce(Vec<OwnedFd>) -> T + Send + 'static,
    mut has_moved: impl FnMut(u64) -> bool,
) -> Result<ReturnedCall<T>, RunError> {
    let stop = AtomicBool::new(false);
    let mut disks = Pulse::start(target.identity());
    let call = WatchedCall {
        workload,
        open: target,
        target: None,
        phase: if target.has_answered() {
            Phase::FirstRequests
        } else {
            Phase::WakeUp
        },
        stall_ns,
        stop: &stop,
    };
    let look = |_: &mut TimeSeries, waited_ns| CallProgress {
        has_moved: has_moved(waited_ns),
        done: 0.0,
    };
    match call.run(patience.watch, look, work)? {
        CallEnd::Returned(returned) => Ok(returned),
        CallEnd::Silent(SilentCall { silent_ns, .. }) => {
            target.leave_open();
            let path = &target.identity().path;
            let silence = Duration::from_nanos(silent_ns);
            disks.beats();
            let usual_ns = target.usual_silence_ns().max(disks.usual_silence_ns());
            Err(if !stop.load(Ordering::Relaxed) {
                RunError::stalled(path, &workload.name, silence)
            } else if silent_ns >= ENDED_NS.max(usual_ns) {
                RunError::unanswered(path, &workload.name, silence)
            } else {
                RunError::interrupted(&workload.name)
            })
        }
    }
}
