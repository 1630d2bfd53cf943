//! Follows the threads that ping: passes each request on, and ends all of them when the user or the
//! watcher wants it, or when a target does not answer. Knows no pattern and no pace.

use super::log::PingLog;
use super::pinger::{PingAnswer, PingSignals};
use crate::io::clock::ActiveClock;
use crate::measure::result::EndReason;
use crate::run::error::{RunError, worker_error};
use crate::run::watchdog::{CHECK_EVERY, StallTimeout};
use diskproof_device::OpenTarget;
use diskproof_model::measurement::{Interruption, OpKind, StopReason};
use diskproof_model::plan::Workload;
use diskproof_model::progress::{Control, Phase, PingWatch, Progress, Silence};
use diskproof_model::series::TimeSeries;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

/// What a pinger reports, with the index of its target.
pub(crate) enum PingEvent {
    /// A request has ended.
    Answer(usize, PingAnswer),
    /// It is over.
    Done(usize, EndReason, Vec<Interruption>),
    /// It could not go on.
    Failed(usize, io::Error),
}

/// The wait for the request in flight on a target.
pub(crate) struct PingWait {
    signals: Arc<PingSignals>,
    /// When the request was sent, on the pinger's clock, and when it was noticed on the clock of
    /// the supervisor, which skips the times in which the process does not run.
    noticed: Option<(u64, u64)>,
}

impl PingWait {
    /// Of a pinger that starts now.
    pub(crate) fn new(signals: Arc<PingSignals>) -> Self {
        Self {
            signals,
            noticed: None,
        }
    }

    /// How long the request in flight has taken so far, in nanoseconds; 0 without one.
    fn length_ns(&mut self, now: u64) -> u64 {
        let since_ns = self.signals.in_flight_since();
        if since_ns != self.noticed.map(|(since_ns, _)| since_ns) {
            self.noticed = since_ns.map(|since_ns| (since_ns, now));
        }
        self.noticed
            .map_or(0, |(_, noticed_ns)| now.saturating_sub(noticed_ns))
    }
}

/// The supervisor of all pingers.
pub(crate) struct Follower<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// The targets.
    pub targets: &'a [OpenTarget],
    /// For each target, the wait for its request.
    pub waits: Vec<PingWait>,
    /// How long a target may be silent.
    pub stall_timeout: StallTimeout,
    /// For each target, its requests so far.
    pub logs: Vec<PingLog>,
}

impl Follower<'_> {
    /// Follows all pingers to their end; returns the requests of each target.
    pub(crate) fn follow(
        mut self,
        events: &Receiver<PingEvent>,
        clock: &ActiveClock,
        watch: &mut impl PingWatch,
    ) -> Result<Vec<PingLog>, RunError> {
        let begin_ns = clock.now();
        let (mut running, mut ticked_ns) = (vec![true; self.targets.len()], begin_ns);
        while running.contains(&true) {
            match events.recv_timeout(CHECK_EVERY) {
                Ok(PingEvent::Answer(target, answer)) => {
                    let request = self.logs[target].add(answer);
                    watch.request(target, request);
                    self.obey(watch.ending());
                }
                Ok(PingEvent::Done(target, ending, interruptions)) => {
                    self.logs[target].end(ending, interruptions);
                    running[target] = false;
                }
                Ok(PingEvent::Failed(target, source)) => {
                    let target = &self.targets[target];
                    return Err(worker_error(self.workload, target, source));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(RunError::Lost {
                        workload: self.workload.name.clone(),
                    });
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = clock.now();
            if now - ticked_ns < CHECK_EVERY.as_nanos() as u64 {
                continue;
            }
            ticked_ns = now;
            self.tick((begin_ns, now), watch);
            self.leave_hung(now, &mut running);
        }
        Ok(self.logs)
    }

    /// Tells all pingers to end, for this reason.
    fn obey(&mut self, why: Option<StopReason>) {
        let Some(why) = why.filter(|_| !self.is_stopping()) else {
            return;
        };
        self.logs.iter_mut().for_each(|log| log.stop(why));
        self.waits.iter().for_each(|wait| wait.signals.stop());
    }

    fn is_stopping(&self) -> bool {
        self.waits.iter().any(|wait| wait.signals.is_stopped())
    }

    fn tick(&mut self, (begin_ns, now): (u64, u64), watch: &mut impl PingWatch) {
        let elapsed_ns = now - begin_ns;
        let waits = self.waits.iter_mut().enumerate();
        let silence = waits
            .map(|(target, wait)| Silence {
                target,
                length_ns: wait.length_ns(now),
            })
            .max_by_key(|silence| silence.length_ns);
        let limit_ns = self.workload.stop.time_ns;
        let series = TimeSeries::new(1);
        let control = watch.tick(&Progress {
            name: &self.workload.name,
            phase: Phase::Measure,
            elapsed_ns,
            done: limit_ns.map(|limit_ns| elapsed_ns as f64 / limit_ns.max(1) as f64),
            series: &series,
            silence,
            resume_bytes: None,
        });
        let why = match control {
            Control::Interrupt => Some(StopReason::Interrupted),
            Control::Continue | Control::Enough => watch.ending(),
        };
        if control == Control::Interrupt {
            self.stall_timeout = self.stall_timeout.ended();
        }
        self.obey(why);
    }

    /// Waits no longer for targets that have not answered for too long.
    fn leave_hung(&mut self, now: u64, running: &mut [bool]) {
        let limit_ns = if self.is_stopping() {
            self.stall_timeout.ns()
        } else {
            self.stall_timeout.without_deadline_ns()
        };
        let kind = if self.workload.reads() {
            OpKind::Read
        } else {
            OpKind::Write
        };
        let mut is_hung = false;
        for (target, wait) in self.waits.iter_mut().enumerate() {
            let lasted_ns = wait.length_ns(now);
            if let Some((since_ns, _)) = wait.noticed.filter(|_| running[target])
                && lasted_ns > limit_ns
            {
                let hang = self.stall_timeout.hang(since_ns, lasted_ns);
                self.logs[target].time_out(kind, hang);
                self.targets[target].leave_open();
                running[target] = false;
                is_hung = true;
            }
        }
        if is_hung {
            self.waits.iter().for_each(|wait| wait.signals.stop());
        }
    }
}
