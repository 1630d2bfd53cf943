//! Follows the threads that ping: passes each request on, adds up the requests of each target, and
//! ends all of them when the user or the watcher wants it, or when a target does not answer.

use super::pinger::{CommitParts, PingAnswer, PingSignals};
use crate::io::clock::ActiveClock;
use crate::io::errno_name;
use crate::measure::result::EndReason;
use crate::run::assemble::join_interruptions;
use crate::run::error::{RunError, worker_error};
use crate::run::hang::relative_to_origin;
use crate::run::supervise::{ChannelInbox, Event, Overdue, StallTimeout, Supervisor};
use diskproof_device::OpenTarget;
use diskproof_model::measurement::{
    Hang, Interruption, Measurement, OpKind, OpMeasurement, PerOp, SERIES_CELLS_MAX, StopReason,
};
use diskproof_model::ping::SingleRequest;
use diskproof_model::plan::Workload;
use diskproof_model::progress::{Control, Phase, PingWatch, Progress, Silence};
use diskproof_model::series::{Cell, TimeSeries};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// A report of a pinger, with the index of its target.
pub(crate) enum PingEvent {
    /// A request has ended.
    Answer(usize, PingAnswer),
    /// It is over.
    Done(usize, EndReason, Vec<Interruption>),
    /// It could not go on.
    Failed(usize, io::Error),
}

impl PingEvent {
    /// The index of the target.
    fn target(&self) -> usize {
        match self {
            Self::Answer(target, _) | Self::Done(target, ..) | Self::Failed(target, _) => *target,
        }
    }
}

/// A target whose pinger is followed.
pub(crate) struct FollowedTarget<'a> {
    open: &'a OpenTarget,
    signals: Arc<PingSignals>,
    /// The requests so far.
    log: PingLog,
    /// The request in flight.
    noticed: Option<NoticedRequest>,
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
    /// The workload.
    pub workload: &'a Workload,
    /// The targets.
    pub targets: Vec<FollowedTarget<'a>>,
    /// The longest silence that a target may keep.
    pub stall_timeout: StallTimeout,
}

impl Follower<'_> {
    /// Follows all pingers to their end; returns the measurement of each target.
    pub(crate) fn follow(
        mut self,
        events: &Receiver<PingEvent>,
        clock: &ActiveClock,
        watch: &mut impl PingWatch,
    ) -> Result<Vec<Measurement>, RunError> {
        let begin_ns = clock.now();
        let limits = self.stall_timeout.limits_of_each_operation();
        let mut supervisor = Supervisor::new(begin_ns, self.targets.len(), limits);
        let inbox = ChannelInbox {
            reports: events,
            clock,
        };
        while self.targets.iter().any(|target| target.is_running) {
            match supervisor.next(&inbox) {
                Event::Report(event) => self.on_report(event, &mut supervisor, watch)?,
                Event::Check(now) => {
                    self.note_silences(now, &mut supervisor);
                    self.tick(begin_ns, now, &mut supervisor, watch);
                }
                Event::Overdue(overdue) => {
                    self.leave_hung(overdue);
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
        event: PingEvent,
        supervisor: &mut Supervisor,
        watch: &mut impl PingWatch,
    ) -> Result<(), RunError> {
        if !self.targets[event.target()].is_running {
            // A report after the timeout is too late.
            return Ok(());
        }
        match event {
            PingEvent::Answer(target, answer) => {
                let request = self.targets[target].log.add(answer);
                watch.request(target, request);
                if let Some(why) = watch.ending() {
                    self.stop_all(why);
                }
            }
            PingEvent::Done(target, ending, interruptions) => {
                self.targets[target].log.end(ending, interruptions);
                self.targets[target].is_running = false;
                supervisor.leave(target);
            }
            PingEvent::Failed(target, source) => {
                let open = self.targets[target].open;
                return Err(worker_error(self.workload, open, source));
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

    /// A target is silent from the time on at which its request in flight was noticed.
    fn note_silences(&mut self, now: u64, supervisor: &mut Supervisor) {
        for (number, target) in self.targets.iter_mut().enumerate() {
            let waited_ns = target.waited_ns(now);
            supervisor.heard(number, now - waited_ns);
        }
    }

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

    /// Waits no longer for a target that has not answered for too long, and ends the others: they
    /// were measured beside it.
    fn leave_hung(&mut self, overdue: Overdue) {
        let kind = if self.workload.reads() {
            OpKind::Read
        } else {
            OpKind::Write
        };
        let target = &mut self.targets[overdue.target];
        if let Some(noticed) = &target.noticed {
            let hang = self.stall_timeout.hang(noticed.sent_ns, overdue.silence_ns);
            target.log.time_out(kind, hang);
        }
        target.open.leave_open();
        target.is_running = false;
        self.stop_all(StopReason::Companion);
    }
}

/// Counts one operation, which completed `at_ns` after the start of the measured time.
fn count_op(ops: &mut PerOp<OpMeasurement>, kind: OpKind, at_ns: u64, done: Cell) {
    let op = ops.entry(kind).or_default();
    op.count += 1;
    op.bytes += done.bytes;
    op.latency.record(done.latency_max_ns);
    op.series.add(at_ns, &done, SERIES_CELLS_MAX);
}

/// The newest requests, kept for the intervals that the user sees.
const KEPT_MAX: usize = 100_000;

/// The requests of one target so far.
#[derive(Clone)]
pub(crate) struct PingLog {
    /// The measurement without its times: the facts known before, and the sums of the requests.
    measured: Measurement,
    origin_ns: u64,
    interval_ns: u64,
    /// The newest [`KEPT_MAX`] requests.
    requests: VecDeque<SingleRequest>,
    /// When the first request that counts began, on the clock.
    measure_ns: Option<u64>,
    /// End of the measured time, on the clock.
    end_ns: u64,
    /// Latencies of the requests that count, summed.
    busy_ns: u128,
}

impl PingLog {
    /// An empty log of a run that began at `origin_ns`; `known` holds the facts known before.
    pub(crate) fn new(known: Measurement, origin_ns: u64, interval_ns: u64) -> Self {
        Self {
            measured: known,
            origin_ns,
            interval_ns,
            requests: VecDeque::new(),
            measure_ns: None,
            end_ns: origin_ns,
            busy_ns: 0,
        }
    }

    /// Adds a request; returns it with its time after the start of the run.
    pub(crate) fn add(&mut self, answer: PingAnswer) -> &SingleRequest {
        let mut request = answer.request.clone();
        let began_ns = request.at_ns;
        request.at_ns = began_ns.saturating_sub(self.origin_ns);
        let asked = &mut self.measured.asked;
        match request.op {
            OpKind::Read => asked.read_bytes += u64::from(answer.bytes),
            _ => asked.write_bytes += u64::from(answer.bytes),
        }
        if request.ignored.is_none() {
            let measure_ns = *self.measure_ns.get_or_insert(began_ns);
            let slot_end_ns = began_ns.saturating_add(self.interval_ns);
            self.end_ns = slot_end_ns.max(answer.completed_ns);
            self.busy_ns += u128::from(request.latency_ns);
            self.count(&answer, answer.completed_ns.saturating_sub(measure_ns));
        }
        if self.requests.len() >= KEPT_MAX {
            self.requests.pop_front();
        }
        self.requests.push_back(request);
        &self.requests[self.requests.len() - 1]
    }

    /// Counts a request that completed so long after the start of the measured time.
    fn count(&mut self, answer: &PingAnswer, at_ns: u64) {
        let (request, ops) = (&answer.request, &mut self.measured.ops);
        if let Some((kind, errno)) = answer.failed {
            let op = ops.entry(kind).or_default();
            *op.errors.entry(errno_name(errno)).or_default() += 1;
            let cell = Cell {
                errors: 1,
                ..Cell::default()
            };
            op.series.add(at_ns, &cell, SERIES_CELLS_MAX);
            return;
        }
        let done = Cell::single(u64::from(answer.bytes), request.latency_ns);
        count_op(ops, request.op, at_ns, done);
        match answer.parts {
            Some(CommitParts { write_ns, sync_ns }) => {
                let write = Cell::single(u64::from(answer.bytes), write_ns);
                count_op(ops, OpKind::Write, at_ns, write);
                count_op(ops, OpKind::Sync, at_ns, Cell::single(0, sync_ns));
            }
            // The write itself returned when its data was durable.
            None if request.op == OpKind::Commit => count_op(ops, OpKind::Write, at_ns, done),
            None => {}
        }
    }

    /// The pinger has ended by itself.
    pub(crate) fn end(&mut self, ending: EndReason, interruptions: Vec<Interruption>) {
        self.measured.interruptions = join_interruptions(interruptions.into_iter(), self.origin_ns);
        match ending {
            EndReason::Budget => self.stop(StopReason::Ops),
            EndReason::Time => self.stop(StopReason::Time),
            EndReason::Errors(_) => self.stop(StopReason::Errors),
            EndReason::Stopped
            | EndReason::TooSlow
            | EndReason::BelowFloor
            | EndReason::Overloaded
            | EndReason::Steady => {}
        }
    }

    /// Notes why the pinger must end.
    pub(crate) fn stop(&mut self, why: StopReason) {
        self.measured.stopped = why;
    }

    /// Ends a pinger whose request was not answered within the time limit. A hang that may only be
    /// a slow request (`hang.late`) adds no error.
    pub(crate) fn time_out(&mut self, kind: OpKind, hang: Hang) {
        self.measured.hang = Some(relative_to_origin(hang, self.origin_ns));
        self.measure_ns.get_or_insert(hang.since_ns);
        self.end_ns = hang.since_ns.saturating_add(hang.lasted_ns);
        let op = self.measured.ops.entry(kind).or_default();
        if !hang.late {
            *op.errors.entry(errno_name(libc::ETIMEDOUT)).or_default() += 1;
            self.measured.stopped = StopReason::Hung;
        }
    }

    /// The measurement. The caller fills in the CPU time and the counters of the devices.
    pub(crate) fn measurement(mut self) -> Measurement {
        let measure_ns = self.measure_ns.unwrap_or(self.end_ns);
        let wall_ns = self.end_ns.saturating_sub(measure_ns);
        for op in self.measured.ops.values_mut() {
            let last_ns = wall_ns.saturating_sub(1);
            op.series.add(last_ns, &Cell::default(), SERIES_CELLS_MAX);
        }
        Measurement {
            start_ns: measure_ns.saturating_sub(self.origin_ns),
            wall_ns,
            achieved_depth: self.busy_ns as f64 / wall_ns.max(1) as f64,
            requests: self.requests.into(),
            ..self.measured
        }
    }
}
