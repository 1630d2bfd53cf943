//! Follows the threads that ping: passes each request on to the watcher and to the log of its
//! target, and ends all threads when the user or the watcher wants it, or when a target does not
//! answer.

use super::log::PingLog;
use super::pinger::{PingAnswer, PingSignals};
use crate::io::clock::ActiveClock;
use crate::measure::result::EndReason;
use crate::run::error::{RunError, worker_error};
use crate::run::supervise::{ChannelInbox, Event, Overdue, StallTimeout, Supervisor};
use diskproof_device::OpenTarget;
use diskproof_model::measurement::{Interruption, Measurement, OpKind, StopReason};
use diskproof_model::plan::Workload;
use diskproof_model::progress::{Control, Phase, PingWatch, Progress, Silence};
use diskproof_model::series::TimeSeries;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// A report of a pinger.
pub(crate) struct PingReport {
    /// Index of its target.
    pub target: usize,
    pub event: PingEvent,
}

/// An event of a pinger.
pub(crate) enum PingEvent {
    /// A request has ended.
    Answer(PingAnswer),
    /// The pinger sends no more requests.
    Done {
        ending: EndReason,
        /// The times in which the process did not run.
        interruptions: Vec<Interruption>,
    },
    /// The pinger could not go on.
    Failed(io::Error),
}

/// A target whose pinger is followed.
pub(crate) struct FollowedTarget<'a> {
    open: &'a OpenTarget,
    signals: Arc<PingSignals>,
    /// The requests so far.
    log: PingLog,
    /// The request in flight.
    noticed: Option<NoticedRequest>,
    /// True until its pinger ends, or until its target times out.
    is_running: bool,
}

/// A request in flight, as the supervisor sees it.
struct NoticedRequest {
    /// When it was sent, on the pinger's clock.
    sent_ns: u64,
    /// When the supervisor noticed it, on its own clock, which skips the times in which the process
    /// does not run.
    noticed_ns: u64,
}

impl<'a> FollowedTarget<'a> {
    /// The state of a pinger that starts now.
    pub(crate) fn new(open: &'a OpenTarget, signals: Arc<PingSignals>, log: PingLog) -> Self {
        Self {
            open,
            signals,
            log,
            noticed: None,
            is_running: true,
        }
    }

    /// The time in flight so far of the request in flight, in nanoseconds; 0 without one.
    fn waited_ns(&mut self, now: u64) -> u64 {
        let Some(sent_ns) = self.signals.in_flight_since() else {
            self.noticed = None;
            return 0;
        };
        match &self.noticed {
            Some(noticed) if noticed.sent_ns == sent_ns => now.saturating_sub(noticed.noticed_ns),
            _ => {
                self.noticed = Some(NoticedRequest {
                    sent_ns,
                    noticed_ns: now,
                });
                0
            }
        }
    }
}

/// The supervisor of all pingers.
pub(crate) struct Follower<'a> {
    pub workload: &'a Workload,
    pub targets: Vec<FollowedTarget<'a>>,
    /// The longest silence that a target may keep.
    pub stall_timeout: StallTimeout,
}

impl Follower<'_> {
    /// Follows all pingers to their end; returns the measurement of each target.
    pub(crate) fn follow(
        mut self,
        reports: &Receiver<PingReport>,
        clock: &ActiveClock,
        watch: &mut impl PingWatch,
    ) -> Result<Vec<Measurement>, RunError> {
        let begin_ns = clock.now();
        let limits = self.stall_timeout.limits_of_each_operation();
        let mut supervisor = Supervisor::new(begin_ns, self.targets.len(), limits);
        let inbox = ChannelInbox { reports, clock };
        while self.targets.iter().any(|target| target.is_running) {
            match supervisor.next(&inbox) {
                Event::Report(report) => self.on_report(report, &mut supervisor, watch)?,
                Event::Check(now) => {
                    // First, since the watcher sees the silences.
                    self.note_silences(now, &mut supervisor);
                    self.tick(begin_ns, now, &mut supervisor, watch);
                }
                Event::Overdue(overdue) => {
                    self.abandon_hung(overdue);
                    supervisor.end_all(clock.now());
                }
                Event::Lost => return Err(RunError::lost(&self.workload.name)),
            }
        }
        let logs = self.targets.into_iter().map(|target| target.log);
        Ok(logs.map(PingLog::measurement).collect())
    }

    fn on_report(
        &mut self,
        report: PingReport,
        supervisor: &mut Supervisor,
        watch: &mut impl PingWatch,
    ) -> Result<(), RunError> {
        let target = &mut self.targets[report.target];
        if !target.is_running {
            // A report after the timeout is too late.
            return Ok(());
        }
        match report.event {
            PingEvent::Answer(answer) => {
                let request = target.log.add(answer);
                watch.request(report.target, request);
                if let Some(why) = watch.ending() {
                    self.stop_all(why);
                }
            }
            PingEvent::Done {
                ending,
                interruptions,
            } => {
                target.log.end(ending, interruptions);
                target.is_running = false;
                supervisor.leave(report.target);
            }
            PingEvent::Failed(source) => {
                return Err(worker_error(self.workload, target.open, source));
            }
        }
        Ok(())
    }

    /// Tells all pingers that still run to end. The first reason counts.
    fn stop_all(&mut self, why: StopReason) {
        if self.is_stopping() {
            return;
        }
        for target in &mut self.targets {
            if target.is_running {
                target.log.stop(why);
            }
            target.signals.stop();
        }
    }

    fn is_stopping(&self) -> bool {
        self.targets
            .iter()
            .any(|target| target.signals.is_stopped())
    }

    /// Tells the supervisor how long each target is silent: from the time on at which its request
    /// in flight was noticed.
    fn note_silences(&mut self, now: u64, supervisor: &mut Supervisor) {
        for (number, target) in self.targets.iter_mut().enumerate() {
            let waited_ns = target.waited_ns(now);
            supervisor.heard(number, now - waited_ns);
        }
    }

    /// Shows the watcher the progress, and obeys its answer.
    fn tick(
        &mut self,
        begin_ns: u64,
        now: u64,
        supervisor: &mut Supervisor,
        watch: &mut impl PingWatch,
    ) {
        let elapsed_ns = now - begin_ns;
        let silence = (0..self.targets.len())
            .map(|target| Silence {
                target,
                length_ns: supervisor.silence_ns(target),
            })
            .max_by_key(|silence| silence.length_ns);
        let limit_ns = self.workload.stop.time_ns;
        let series = TimeSeries::new(1);
        let control = watch.tick(&Progress {
            done: limit_ns.map(|limit_ns| elapsed_ns as f64 / limit_ns.max(1) as f64),
            silence,
            ..Progress::new(&self.workload.name, Phase::Measure, elapsed_ns, &series)
        });
        if watch.wants_results(elapsed_ns) {
            let so_far: Vec<Measurement> = self
                .targets
                .iter()
                .map(|target| target.log.clone().measurement())
                .collect();
            watch.results_so_far(elapsed_ns, &so_far);
        }
        let ending = match control {
            Control::Interrupt => Some(StopReason::Interrupted),
            Control::Continue | Control::Enough => watch.ending(),
        };
        if let Some(why) = ending {
            self.stop_all(why);
        }
        if control == Control::Interrupt {
            supervisor.cut_short(self.stall_timeout.ended().limits_of_each_operation(), now);
        }
        if self.is_stopping() {
            supervisor.end_all(now);
        }
    }

    /// Abandons a target that has not answered for too long, and ends the others, whose load was
    /// measured together with it.
    fn abandon_hung(&mut self, overdue: Overdue) {
        let kind = if self.workload.reads() {
            OpKind::Read
        } else {
            OpKind::Write
        };
        let target = &mut self.targets[overdue.target];
        // A target is overdue only with a request in flight, which was noticed before.
        debug_assert!(target.noticed.is_some());
        if let Some(noticed) = &target.noticed {
            let hang = self.stall_timeout.hang(noticed.sent_ns, overdue.silence_ns);
            target.log.time_out(kind, hang);
        }
        target.open.leave_open();
        target.is_running = false;
        self.stop_all(StopReason::Companion);
    }
}
