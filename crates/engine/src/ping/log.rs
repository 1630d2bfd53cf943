//! What the requests of one target add up to, and the measurement that they become. Pure: the same
//! in real and in virtual time.

use super::pinger::PingAnswer;
use crate::io::errno::errno_name;
use crate::measure::result::EndReason;
use crate::run::assemble::join_interruptions;
use crate::run::hang::since;
use diskproof_model::measurement::{
    ByteCount, Hang, Interruption, Measurement, OpKind, OpMeasurement, PerOp, SERIES_CELLS_MAX,
    StopReason,
};
use diskproof_model::ping::SingleRequest;
use diskproof_model::series::Cell;
use std::collections::{BTreeMap, VecDeque};

/// Requests that are kept for the intervals: the newest.
const KEPT_MAX: usize = 100_000;

/// The requests of one target so far.
pub(crate) struct PingLog {
    origin_ns: u64,
    interval_ns: u64,
    ops: PerOp<OpMeasurement>,
    requests: VecDeque<SingleRequest>,
    asked: ByteCount,
    /// When the first request that counts began, on the clock.
    measure_ns: Option<u64>,
    /// End of the measured time, on the clock.
    end_ns: u64,
    /// Latencies of the requests that count, summed.
    busy_ns: u128,
    interruptions: Vec<Interruption>,
    hang: Option<Hang>,
    stopped: StopReason,
}

impl PingLog {
    /// Of a run that began at `origin_ns`.
    pub(crate) fn new(origin_ns: u64, interval_ns: u64) -> Self {
        Self {
            origin_ns,
            interval_ns,
            ops: BTreeMap::new(),
            requests: VecDeque::new(),
            asked: ByteCount::default(),
            measure_ns: None,
            end_ns: origin_ns,
            busy_ns: 0,
            interruptions: Vec::new(),
            hang: None,
            stopped: StopReason::Ops,
        }
    }

    /// Adds a request; returns it with its time after the start of the run.
    pub(crate) fn add(&mut self, answer: PingAnswer) -> &SingleRequest {
        let mut request = answer.request.clone();
        let began_ns = request.at_ns;
        request.at_ns = began_ns.saturating_sub(self.origin_ns);
        match request.op {
            OpKind::Read => self.asked.read_bytes += u64::from(answer.bytes),
            _ => self.asked.write_bytes += u64::from(answer.bytes),
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
        let request = &answer.request;
        if let Some(failed) = answer.failed {
            let op = self.ops.entry(failed.kind).or_default();
            *op.errors.entry(errno_name(failed.errno)).or_default() += 1;
            let cell = Cell {
                errors: 1,
                ..Cell::default()
            };
            op.series.add(at_ns, &cell, SERIES_CELLS_MAX);
            return;
        }
        let mut add = |kind: OpKind, bytes: u32, latency_ns: u64| {
            let op = self.ops.entry(kind).or_default();
            op.count += 1;
            op.bytes += u64::from(bytes);
            op.latency.record(latency_ns);
            let cell = Cell {
                ops: 1,
                bytes: u64::from(bytes),
                errors: 0,
                latency_max_ns: latency_ns,
                latency_sum_ns: latency_ns,
            };
            op.series.add(at_ns, &cell, SERIES_CELLS_MAX);
        };
        add(request.op, answer.bytes, request.latency_ns);
        match answer.parts {
            Some(parts) => {
                add(OpKind::Write, answer.bytes, parts.write_ns);
                add(OpKind::Sync, 0, parts.sync_ns);
            }
            // The write itself returned when its data was durable.
            None if request.op == OpKind::Commit => {
                add(OpKind::Write, answer.bytes, request.latency_ns);
            }
            None => {}
        }
    }

    /// The pinger has ended by itself.
    pub(crate) fn end(&mut self, ending: EndReason, interruptions: Vec<Interruption>) {
        self.interruptions = interruptions;
        self.stopped = match ending {
            EndReason::Budget => StopReason::Ops,
            EndReason::Time => StopReason::Time,
            EndReason::Errors(_) => StopReason::Errors,
            EndReason::Stopped | EndReason::TooSlow | EndReason::BelowFloor | EndReason::Steady => {
                self.stopped
            }
        };
    }

    /// Why it must end.
    pub(crate) fn stop(&mut self, why: StopReason) {
        self.stopped = why;
    }

    /// Its request in flight since `since_ns` was not answered for so long.
    pub(crate) fn time_out(&mut self, kind: OpKind, hang: Hang) {
        self.hang = Some(since(hang, self.origin_ns));
        self.measure_ns.get_or_insert(hang.since_ns);
        self.end_ns = hang.since_ns.saturating_add(hang.lasted_ns);
        let op = self.ops.entry(kind).or_default();
        if !hang.late {
            *op.errors.entry(errno_name(libc::ETIMEDOUT)).or_default() += 1;
            self.stopped = StopReason::Hung;
        }
    }

    /// Figures, bytes and length of the measured time so far.
    #[cfg(test)]
    pub(crate) fn totals(&self) -> (&PerOp<OpMeasurement>, ByteCount, u64) {
        let measure_ns = self.measure_ns.unwrap_or(self.end_ns);
        (&self.ops, self.asked, self.end_ns - measure_ns)
    }

    /// The measurement, given what was `known` before. The caller fills in the CPU time and the
    /// counters of the devices.
    pub(crate) fn measurement(mut self, known: Measurement) -> Measurement {
        let measure_ns = self.measure_ns.unwrap_or(self.end_ns);
        let wall_ns = self.end_ns.saturating_sub(measure_ns);
        for op in self.ops.values_mut() {
            let last_ns = wall_ns.saturating_sub(1);
            op.series.add(last_ns, &Cell::default(), SERIES_CELLS_MAX);
        }
        Measurement {
            start_ns: measure_ns.saturating_sub(self.origin_ns),
            wall_ns,
            ops: self.ops,
            asked: self.asked,
            achieved_depth: self.busy_ns as f64 / wall_ns.max(1) as f64,
            hang: self.hang,
            interruptions: join_interruptions(self.interruptions.into_iter(), self.origin_ns),
            requests: self.requests.into(),
            stopped: self.stopped,
            ..known
        }
    }
}
