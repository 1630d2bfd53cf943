//! Collects the requests of a ping to one target, and makes its measurement of them.

use super::pinger::{CommitParts, FailedCall, PingAnswer};
use crate::io::errno_name;
use crate::measure::result::EndReason;
use crate::run::assemble::join_interruptions;
use crate::run::hang::relative_to_origin;
use diskproof_model::measurement::{
    Hang, Interruption, Measurement, OpKind, OpMeasurement, PerOp, SERIES_CELLS_MAX, StopReason,
};
use diskproof_model::ping::SingleRequest;
use diskproof_model::series::Cell;
use std::collections::VecDeque;

/// The measurement keeps so many of the newest requests one by one. Its sums contain all of them.
/// With more, the record of a long ping is larger. Chosen: more than a day at one request per
/// second.
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
    measure_start_ns: Option<u64>,
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
            measure_start_ns: None,
            end_ns: origin_ns,
            busy_ns: 0,
        }
    }

    /// Adds a request; returns it with its time after the start of the run.
    pub(crate) fn add(&mut self, answer: PingAnswer) -> &SingleRequest {
        let mut request = answer.request.clone();
        let began_ns = request.at_ns;
        request.at_ns = began_ns.saturating_sub(self.origin_ns);
        self.measured.zero_blocks.merge(answer.zero_blocks);
        let asked = &mut self.measured.asked;
        match request.op {
            OpKind::Read => asked.read_bytes += u64::from(answer.bytes),
            OpKind::Write | OpKind::Commit => asked.write_bytes += u64::from(answer.bytes),
            // A ping sends none of these.
            OpKind::Trim | OpKind::Sync | OpKind::Transaction => {}
        }
        if request.ignored.is_none() {
            let measure_start_ns = *self.measure_start_ns.get_or_insert(began_ns);
            let slot_end_ns = began_ns.saturating_add(self.interval_ns);
            // The pause after a request belongs to the measured time, so that a ping every second
            // has a rate of one a second.
            self.end_ns = slot_end_ns.max(answer.completed_ns);
            self.busy_ns += u128::from(request.latency_ns);
            self.count(
                &answer,
                answer.completed_ns.saturating_sub(measure_start_ns),
            );
        } else if let Some(failed) = answer.failed {
            // The error of a disk counts whenever it comes; only the time of its request does not.
            self.count_error(failed);
        }
        if self.requests.len() >= KEPT_MAX {
            self.requests.pop_front();
        }
        self.requests.push_back(request);
        &self.requests[self.requests.len() - 1]
    }

    /// Counts a request that completed so long after the start of the measured time.
    fn count(&mut self, answer: &PingAnswer, at_ns: u64) {
        if let Some(failed) = answer.failed {
            let op = self.count_error(failed);
            let cell = Cell {
                errors: 1,
                ..Cell::default()
            };
            op.series.add(at_ns, &cell, SERIES_CELLS_MAX);
            return;
        }
        let (request, ops) = (&answer.request, &mut self.measured.ops);
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

    /// Counts an error in the operations of its kind, and returns these.
    fn count_error(&mut self, failed: FailedCall) -> &mut OpMeasurement {
        let op = self.measured.ops.entry(failed.kind).or_default();
        *op.errors.entry(errno_name(failed.errno)).or_default() += 1;
        op
    }

    /// Notes the end of the pinger. One that was stopped keeps the reason that [`Self::stop`]
    /// noted.
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

    /// Notes the hang of a pinger whose request was not answered within the time limit. A hang that
    /// may only be a slow request (`hang.late`) adds no error.
    pub(crate) fn time_out(&mut self, kind: OpKind, hang: Hang) {
        self.measured.hang = Some(relative_to_origin(hang, self.origin_ns));
        self.measure_start_ns.get_or_insert(hang.since_ns);
        self.end_ns = hang.since_ns.saturating_add(hang.lasted_ns);
        let op = self.measured.ops.entry(kind).or_default();
        if !hang.late {
            *op.errors.entry(errno_name(libc::ETIMEDOUT)).or_default() += 1;
            self.measured.stopped = StopReason::Hung;
        }
    }

    /// The measurement of the requests so far. The caller fills in the CPU time and the counters of
    /// the devices.
    pub(crate) fn measurement(mut self) -> Measurement {
        let measure_start_ns = self.measure_start_ns.unwrap_or(self.end_ns);
        let wall_ns = self.end_ns.saturating_sub(measure_start_ns);
        for op in self.measured.ops.values_mut() {
            let last_ns = wall_ns.saturating_sub(1);
            op.series.add(last_ns, &Cell::default(), SERIES_CELLS_MAX);
        }
        Measurement {
            start_ns: measure_start_ns.saturating_sub(self.origin_ns),
            wall_ns,
            achieved_depth: self.busy_ns as f64 / wall_ns.max(1) as f64,
            requests: self.requests.into(),
            ..self.measured
        }
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
