//! Adds measurements of one workload: of workers, of hosts, or of slices one after the other. Times
//! within a sum count measured time only: the time between two slices is in no series and no rate.

use crate::data::RunData;
use crate::measurement::{
    DeviceUse, EngineUse, Hang, Measurement, OpMeasurement, OtherProcess, SERIES_CELLS_MAX,
    Starvation, SteadyOutcome, StopReason, VerifyResult, ZeroSample,
};
use crate::op::OpKind;
use crate::request_log::RequestLog;
use crate::window::{
    ByteCount, LateRequests, MovedTotal, SliceLatency, SliceOp, TimeSlice, Window,
};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most other processes that a measurement names, those with the most bytes.
const OTHERS_MAX: usize = 10;
/// The most damaged blocks that a measurement names, the first ones.
const BAD_MAX: usize = 100;

impl TimeSlice {
    /// The figures of a slice that was measured alone.
    pub fn from_measurement(measurement: &Measurement) -> Self {
        let target = measurement.workload.shape.latency_target.as_ref();
        let mut ops = BTreeMap::new();
        for (kind, op) in &measurement.ops {
            let latencies = op.seen_latencies();
            let slice = SliceOp {
                latency: SliceLatency::from_histogram(latencies),
                late: target.map(|target| LateRequests::count(latencies, target)),
                ..SliceOp::from_counts(op.count, op.bytes, measurement.wall_ns)
            };
            ops.insert(*kind, slice);
        }
        Self {
            start_ns: measurement.start_ns,
            wall_ns: measurement.wall_ns,
            ops,
            slot: None,
        }
    }
}

/// The relation of two measurements of one workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeKind {
    /// Two processes of one host at the same time, on one target: its counters count once.
    SameHost,
    /// Two hosts at the same time: all adds up.
    OtherHost,
    /// One after the other.
    Later,
}

/// The reason why two runs have no sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// One of them surveyed, ran a server, or measured files or the load of others.
    #[error("only workloads can be added, and one of the runs measured something else")]
    NoWorkload,
    /// One of them measured workloads that the other did not.
    #[error("the runs measured different workloads")]
    OtherWorkloads,
}

impl RunData {
    /// Adds what another process or host measured of the same plan at the same time, or the same
    /// process later.
    pub fn merge(&mut self, other: Self, kind: MergeKind) -> Result<(), MergeError> {
        if !self.can_be_added() || !other.can_be_added() {
            return Err(MergeError::NoWorkload);
        }
        if !self.has_same_workloads(&other) {
            return Err(MergeError::OtherWorkloads);
        }
        for (mine, theirs) in self.measurements.iter_mut().zip(other.measurements) {
            mine.merge(theirs, kind);
        }
        Ok(())
    }

    /// True if nothing but workloads was measured, and no rate was searched with them.
    fn can_be_added(&self) -> bool {
        !self.has_more_than_workloads() && self.trials.is_empty()
    }

    /// True if the workloads of both are the same, on the same targets and in the same order.
    fn has_same_workloads(&self, other: &Self) -> bool {
        if self.measurements.len() != other.measurements.len() {
            return false;
        }
        for (mine, theirs) in self.measurements.iter().zip(&other.measurements) {
            if mine.target != theirs.target || mine.workload.name != theirs.workload.name {
                return false;
            }
        }
        true
    }
}

impl Measurement {
    /// Adds the next slice of the same workload on the same target.
    pub fn append(&mut self, mut next: Self) {
        if self.slices.is_empty() {
            self.slices.push(TimeSlice::from_measurement(self));
        }
        if next.slices.is_empty() {
            self.slices.push(TimeSlice::from_measurement(&next));
        } else {
            self.slices.append(&mut next.slices);
        }
        self.merge(next, MergeKind::Later);
    }

    /// Adds another measurement of the same workload. Neither the time without a request nor the
    /// rate without a disk can be known of two that ran at once.
    pub fn merge(&mut self, next: Self, kind: MergeKind) {
        let weights = Weights::compare(self, &next, kind);
        // Every field is named, so that a new one cannot be forgotten.
        let Self {
            target: _,
            workload,
            span_start_bytes,
            span_bytes,
            engine,
            cache,
            start_ns,
            wall_ns,
            cpu,
            ops,
            asked,
            device,
            achieved_depth,
            dead_time_ns,
            starved,
            ceiling_iops,
            zero_blocks,
            unwritten_bytes,
            missed_starts,
            dispatch_p99_ns,
            dispatch_late,
            punted,
            verify,
            hang,
            silence_before_ns,
            silence_around_ns,
            first_answer_ns,
            interruptions,
            first_write,
            laid_out,
            windows,
            slices: _,
            began_ns: _,
            overrun_ns,
            shortened_from_ns,
            requests,
            request_log,
            steady,
            stopped,
        } = next;
        self.merge_span(span_start_bytes, span_bytes);
        self.engine.merge(engine, weights);
        self.cache.why = self.cache.why.take().or(cache.why);
        self.cpu += cpu;
        for (kind, op) in ops {
            self.merge_op(kind, op, weights);
        }
        let my_asked = self.asked;
        self.asked += asked;
        self.merge_device(my_asked, device, asked, weights);
        self.achieved_depth = weights.depth(self.achieved_depth, achieved_depth);
        self.dead_time_ns = weights.dead_time(self.dead_time_ns, dead_time_ns);
        self.starved = starvation(self.starved, starved, weights);
        self.ceiling_iops = weights.ceiling(self.ceiling_iops, ceiling_iops);
        self.zero_blocks.merge(zero_blocks);
        self.unwritten_bytes = self.unwritten_bytes.or(unwritten_bytes);
        self.merge_dispatch(missed_starts, dispatch_p99_ns, dispatch_late);
        self.punted = self.punted.or(punted);
        merge_some(&mut self.verify, verify, VerifyResult::merge);
        self.merge_waits(hang, overrun_ns, kind);
        self.merge_silences(silence_before_ns, silence_around_ns, first_answer_ns);
        self.interruptions.extend(interruptions);
        self.merge_first_writes(first_write, laid_out);
        self.merge_windows(windows, weights);
        self.shortened_from_ns = self.shortened_from_ns.or(shortened_from_ns);
        self.requests.extend(requests);
        self.merge_request_log(request_log);
        self.merge_ends(workload.workers, start_ns, wall_ns, steady, stopped, kind);
    }

    fn merge_op(&mut self, kind: OpKind, op: OpMeasurement, weights: Weights) {
        let mine = self.ops.entry(kind).or_default();
        mine.merge(op, weights.begin_ns());
    }

    /// The lateness of requests that start by a clock.
    fn merge_dispatch(&mut self, missed: Option<u64>, p99_ns: Option<u64>, late: u64) {
        self.missed_starts = sum_if_both_known(self.missed_starts, missed);
        // The worse of both: percentiles of two cannot be joined.
        self.dispatch_p99_ns = self.dispatch_p99_ns.max(p99_ns);
        self.dispatch_late = self.dispatch_late.saturating_add(late);
    }

    /// The first hang. Parts after each other each wait for their last request; those at the same
    /// time wait together.
    fn merge_waits(&mut self, hang: Option<Hang>, overrun_ns: u64, kind: MergeKind) {
        self.hang = self.hang.or(hang);
        self.overrun_ns = match kind {
            MergeKind::Later => self.overrun_ns.saturating_add(overrun_ns),
            MergeKind::SameHost | MergeKind::OtherHost => self.overrun_ns.max(overrun_ns),
        };
    }

    /// The longest silence of each kind.
    fn merge_silences(&mut self, before_ns: u64, around_ns: u64, first_answer_ns: u64) {
        self.silence_before_ns = self.silence_before_ns.max(before_ns);
        self.silence_around_ns = self.silence_around_ns.max(around_ns);
        self.first_answer_ns = self.first_answer_ns.max(first_answer_ns);
    }

    /// The first write of the file, which is before the first part that needs it.
    fn merge_first_writes(
        &mut self,
        first_write: Option<Box<Measurement>>,
        laid_out: Option<MovedTotal>,
    ) {
        self.first_write = self.first_write.take().or(first_write);
        self.laid_out = self.laid_out.or(laid_out);
    }

    /// Adds the requests of another part, if they were kept.
    fn merge_request_log(&mut self, next: Option<Arc<RequestLog>>) {
        if let Some(log) = next {
            Arc::make_mut(self.request_log.get_or_insert_default()).merge(&log);
        }
    }

    /// The span of both.
    fn merge_span(&mut self, start_bytes: u64, bytes: u64) {
        let my_end = self.span_start_bytes.saturating_add(self.span_bytes);
        let their_end = start_bytes.saturating_add(bytes);
        self.span_start_bytes = self.span_start_bytes.min(start_bytes);
        self.span_bytes = my_end.max(their_end) - self.span_start_bytes;
    }

    /// Adds the counters of the disks. The sum of the requested bytes stands in `asked` already:
    /// `my_asked` is this measurement's own part of it, and `their_asked` the other's.
    fn merge_device(
        &mut self,
        my_asked: ByteCount,
        theirs: DeviceUse,
        their_asked: ByteCount,
        weights: Weights,
    ) {
        let mine = std::mem::take(&mut self.device);
        let mine_is_counted = mine.is_counted(my_asked);
        let theirs_is_counted = theirs.is_counted(their_asked);
        let is_counted;
        match weights.kind {
            MergeKind::SameHost if weights.theirs_ns > weights.mine_ns => {
                is_counted = theirs_is_counted;
                self.device = theirs;
            }
            MergeKind::SameHost => {
                is_counted = mine_is_counted;
                self.device = mine;
            }
            MergeKind::OtherHost | MergeKind::Later => {
                is_counted = mine_is_counted && theirs_is_counted;
                self.device = sum_of_devices(&mine, &theirs, weights);
            }
        }
        // The bytes of a part without counters are requested and not moved.
        self.device.accounted = if is_counted {
            self.device.share_of(self.asked)
        } else {
            None
        };
    }

    fn merge_windows(&mut self, theirs: Vec<Window>, weights: Weights) {
        if weights.kind != MergeKind::Later {
            self.windows = add_windows(std::mem::take(&mut self.windows), &theirs, weights.kind);
            self.slices.clear();
            return;
        }
        let begin_ns = weights.begin_ns();
        self.windows.extend(theirs.into_iter().map(|window| Window {
            start_ns: window.start_ns + begin_ns,
            end_ns: window.end_ns + begin_ns,
            ..window
        }));
    }

    /// Takes over the time of the other measurement and the reason why it ended.
    fn merge_ends(
        &mut self,
        workers: u32,
        start_ns: u64,
        wall_ns: u64,
        steady: Option<SteadyOutcome>,
        stopped: StopReason,
        kind: MergeKind,
    ) {
        if kind == MergeKind::Later {
            self.wall_ns += wall_ns;
            self.stopped = stopped;
            self.steady = steady.or(self.steady.take());
            return;
        }
        self.workload.workers += workers;
        self.start_ns = self.start_ns.min(start_ns);
        self.wall_ns = self.wall_ns.max(wall_ns);
        self.steady = None;
        if ended_as_planned(self.stopped) {
            self.stopped = stopped;
        }
    }
}

/// True of a reason that cut nothing short. Where one of two measurements was cut short, its reason
/// is that of their sum.
fn ended_as_planned(stopped: StopReason) -> bool {
    use StopReason::{Bytes, Companion, Ops, Precision, Steady, Time};
    matches!(stopped, Bytes | Companion | Ops | Precision | Steady | Time)
}

/// The number of operations of all kinds.
fn operations(measurement: &Measurement) -> f64 {
    measurement.ops.values().map(|op| op.count).sum::<u64>() as f64
}

/// The sum of two counts; `None` where one of them is unknown.
fn sum_if_both_known(mine: Option<u64>, theirs: Option<u64>) -> Option<u64> {
    Some(mine? + theirs?)
}

/// The sum of two counts, one of which may be unknown.
fn sum_of_known(mine: Option<u64>, theirs: Option<u64>) -> Option<u64> {
    match (mine, theirs) {
        (Some(mine), Some(theirs)) => Some(mine + theirs),
        (only, None) | (None, only) => only,
    }
}

/// The lower of two numbers, of which each may be unknown.
fn lower_known(mine: Option<f64>, theirs: Option<f64>) -> Option<f64> {
    match (mine, theirs) {
        (Some(mine), Some(theirs)) => Some(mine.min(theirs)),
        (only, None) | (None, only) => only,
    }
}

/// Merges two parts, of which each may be missing.
fn merge_some<T>(mine: &mut Option<T>, theirs: Option<T>, merge: fn(&mut T, T)) {
    match (mine.as_mut(), theirs) {
        (Some(mine), Some(theirs)) => merge(mine, theirs),
        (None, theirs) => *mine = theirs,
        (Some(_), None) => {}
    }
}

/// The weights of two measurements in averages.
#[derive(Debug, Clone, Copy)]
struct Weights {
    kind: MergeKind,
    mine_ns: u64,
    theirs_ns: u64,
    /// The operations of the first measurement, and of the second.
    my_operations: f64,
    their_operations: f64,
}

impl Weights {
    /// The weights of two measurements that are added.
    fn compare(mine: &Measurement, theirs: &Measurement, kind: MergeKind) -> Self {
        Self {
            kind,
            mine_ns: mine.wall_ns,
            theirs_ns: theirs.wall_ns,
            my_operations: operations(mine),
            their_operations: operations(theirs),
        }
    }

    /// The begin of the second measurement, in nanoseconds of measured time.
    fn begin_ns(self) -> u64 {
        match self.kind {
            MergeKind::Later => self.mine_ns,
            MergeKind::SameHost | MergeKind::OtherHost => 0,
        }
    }

    /// The measured time of both, which averages divide by.
    fn whole_ns(self) -> f64 {
        (self.mine_ns as f64 + self.theirs_ns as f64).max(1.0)
    }

    /// The average, weighted by measured time.
    fn average(self, mine: f64, theirs: f64) -> f64 {
        (mine * self.mine_ns as f64 + theirs * self.theirs_ns as f64) / self.whole_ns()
    }

    /// The requests in flight: the average of two that followed each other, the sum of two that ran
    /// at once.
    fn depth(self, mine: f64, theirs: f64) -> f64 {
        let average = self.average(mine, theirs);
        match self.kind {
            MergeKind::Later => average,
            MergeKind::SameHost | MergeKind::OtherHost => {
                average * self.whole_ns() / self.mine_ns.max(self.theirs_ns).max(1) as f64
            }
        }
    }

    /// The average, weighted by operations; unknown of two that ran at once.
    fn dead_time(self, mine: Option<f64>, theirs: Option<f64>) -> Option<f64> {
        if self.kind != MergeKind::Later {
            return None;
        }
        match (mine, theirs) {
            (Some(mine), Some(theirs)) => {
                let sum = mine * self.my_operations + theirs * self.their_operations;
                Some(sum / (self.my_operations + self.their_operations).max(1.0))
            }
            (only, None) | (None, only) => only,
        }
    }

    /// The lower rate without a disk; unknown of two that ran at once.
    fn ceiling(self, mine: Option<f64>, theirs: Option<f64>) -> Option<f64> {
        if self.kind != MergeKind::Later {
            return None;
        }
        lower_known(mine, theirs)
    }
}

impl EngineUse {
    /// Adds the engine that carried the same workload elsewhere, or later. The first one stays the
    /// one that was used.
    fn merge(&mut self, other: Self, weights: Weights) {
        let Self {
            asked: _,
            used: _,
            fallbacks,
            features,
            depth,
            done_before_wait,
        } = other;
        let before = self.fallbacks.len();
        for fallback in fallbacks {
            if !self.fallbacks[..before].contains(&fallback) {
                self.fallbacks.push(fallback);
            }
        }
        // A feature counts where it was on all the time.
        self.features.retain(|feature| features.contains(feature));
        self.depth = self.depth.into_iter().chain(depth).min();
        self.done_before_wait = match (self.done_before_wait, done_before_wait) {
            (Some(a), Some(b)) if weights.kind == MergeKind::Later => Some(weights.average(a, b)),
            (a, b) => lower_known(a, b),
        };
    }
}

impl ZeroSample {
    /// Adds blocks that were looked at elsewhere, or later.
    pub fn merge(&mut self, other: Self) {
        let Self { sampled, zero } = other;
        self.sampled += sampled;
        self.zero += zero;
    }
}

impl VerifyResult {
    /// Adds blocks that were checked elsewhere, or later.
    pub fn merge(&mut self, other: Self) {
        let Self {
            blocks,
            blocks_written,
            bad_blocks,
            unsigned_blocks,
            other_size_blocks,
            other_size_bytes,
            cached_blocks,
            runs,
            read_back,
            bad,
            places,
        } = other;
        self.places.merge(&places);
        merge_some(&mut self.read_back, read_back, |mine, theirs| {
            mine.bytes += theirs.bytes;
            mine.wall_ns += theirs.wall_ns;
            mine.latency.merge(&theirs.latency);
        });
        self.blocks_written = sum_if_both_known(self.blocks_written, blocks_written);
        self.blocks += blocks;
        self.bad_blocks += bad_blocks;
        self.unsigned_blocks = sum_of_known(self.unsigned_blocks, unsigned_blocks);
        self.other_size_blocks = sum_of_known(self.other_size_blocks, other_size_blocks);
        self.other_size_bytes = self.other_size_bytes.or(other_size_bytes);
        self.cached_blocks = sum_of_known(self.cached_blocks, cached_blocks);
        // Both may have found the same runs.
        self.runs = self.runs.max(runs);
        self.bad.extend(bad);
        self.bad.truncate(BAD_MAX);
    }
}

/// Returns the sum of windows of the same times; none where the times differ.
fn add_windows(mut mine: Vec<Window>, theirs: &[Window], kind: MergeKind) -> Vec<Window> {
    if mine.len() != theirs.len() {
        return Vec::new();
    }
    for (own, other) in mine.iter_mut().zip(theirs) {
        if (own.start_ns, own.end_ns) != (other.start_ns, other.end_ns) {
            return Vec::new();
        }
        own.add_worker(other);
        own.cpu += other.cpu;
        own.asked += other.asked;
        if kind == MergeKind::OtherHost {
            own.disks = match (own.disks, other.disks) {
                (Some(disks), Some(other_disks)) => Some(disks.plus(other_disks)),
                (None, _) | (_, None) => None,
            };
        }
    }
    mine
}

impl OpMeasurement {
    /// Adds operations that began after `begin_ns` of measured time.
    pub fn merge(&mut self, other: Self, begin_ns: u64) {
        let Self {
            count,
            bytes,
            errors,
            short,
            latency,
            latency_intended,
            series,
        } = other;
        self.count += count;
        self.bytes += bytes;
        self.short += short;
        for (errno, count) in errors {
            *self.errors.entry(errno).or_default() += count;
        }
        self.latency.merge(&latency);
        merge_some(
            &mut self.latency_intended,
            latency_intended,
            |mine, theirs| {
                mine.merge(&theirs);
            },
        );
        if begin_ns == 0 {
            self.series.merge(&series);
            return;
        }
        for (index, cell) in series.cells.iter().enumerate() {
            let at_ns = begin_ns + series.start_ns + index as u64 * series.interval_ns;
            self.series.add(at_ns, cell, SERIES_CELLS_MAX);
        }
    }
}

/// The starvation of both, averaged over the measured time.
fn starvation(mine: Starvation, theirs: Starvation, weights: Weights) -> Starvation {
    Starvation {
        share: weights.average(mine.share, theirs.share),
        mean_wait_ns: weights.average(mine.mean_wait_ns, theirs.mean_wait_ns),
    }
}

/// Returns the sum of the counters of both. `accounted` is unknown: the caller derives it.
fn sum_of_devices(a: &DeviceUse, b: &DeviceUse, weights: Weights) -> DeviceUse {
    let queue_depth = match (a.queue_depth, b.queue_depth) {
        (Some(mine), Some(theirs)) => Some(weights.average(mine, theirs)),
        (None, _) | (_, None) => None,
    };
    let times = match (a.times, b.times) {
        (Some(mine), Some(theirs)) => Some(mine.followed_by(theirs)),
        (None, _) | (_, None) => None,
    };
    DeviceUse {
        disks: a.disks.clone(),
        read_bytes: a.read_bytes + b.read_bytes,
        write_bytes: a.write_bytes + b.write_bytes,
        read_ops: a.read_ops + b.read_ops,
        write_ops: a.write_ops + b.write_ops,
        flush_ops: sum_if_both_known(a.flush_ops, b.flush_ops),
        trim_bytes: sum_if_both_known(a.trim_bytes, b.trim_bytes),
        queue_depth,
        times,
        accounted: None,
        unresolved: a.unresolved.clone().or_else(|| b.unresolved.clone()),
        elsewhere_bytes: sum_if_both_known(a.elsewhere_bytes, b.elsewhere_bytes),
        exits_reported: a.exits_reported && b.exits_reported,
        others: merged_processes(&a.others, &b.others),
        others_hidden: a.others_hidden.max(b.others_hidden),
    }
}

/// Returns the processes of both, each once, sorted as a measurement has them.
fn merged_processes(mine: &[OtherProcess], theirs: &[OtherProcess]) -> Vec<OtherProcess> {
    let mut by_pid: BTreeMap<u32, OtherProcess> = BTreeMap::new();
    for other in mine.iter().chain(theirs) {
        match by_pid.get_mut(&other.pid) {
            Some(known) => {
                known.read_bytes += other.read_bytes;
                known.write_bytes += other.write_bytes;
                known.ended |= other.ended;
            }
            None => {
                by_pid.insert(other.pid, other.clone());
            }
        }
    }
    let mut others: Vec<OtherProcess> = by_pid.into_values().collect();
    // Processes without bytes are in the list for their name.
    others.sort_by_key(|other| {
        let bytes = other.read_bytes + other.write_bytes;
        (bytes > 0, Reverse(bytes))
    });
    others.truncate(OTHERS_MAX);
    others
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::{BadBlock, CacheUse, MeasuredSpan, OpKind};
    use crate::op::PerOp;
    use crate::plan::{CachePolicy, EngineChoice, EngineKind, Workload};
    use crate::series::Cell;
    use proptest::prelude::*;

    /// Operations of a measured second, by the cell in which they ended.
    fn op() -> impl Strategy<Value = OpMeasurement> {
        let done = (0..100u64, 1..5_000_000u64);
        proptest::collection::vec(done, 0..40).prop_map(|done| {
            let mut op = OpMeasurement::default();
            for (at, ns) in done {
                let cell = Cell {
                    ops: 1,
                    bytes: 4096,
                    errors: 0,
                    latency_max_ns: ns,
                    latency_sum_ns: ns,
                };
                op.series.add(at * 10_000_000, &cell, SERIES_CELLS_MAX);
                op.latency.record(ns);
                op.count += 1;
                op.bytes += 4096;
            }
            op
        })
    }

    /// A measured second, one in three of which was verified, and a queue that may be limited.
    fn measurement() -> impl Strategy<Value = Measurement> {
        let verified = proptest::option::weighted(0.3, verified());
        let engine = (
            proptest::option::of(0.0..1.0),
            proptest::option::of(1..9u32),
        );
        (op(), verified, engine).prop_map(|(op, verify, (done_before_wait, depth))| {
            let engine = EngineUse {
                asked: EngineChoice::Auto,
                used: EngineKind::Aio,
                fallbacks: Vec::new(),
                features: Vec::new(),
                depth,
                done_before_wait,
            };
            let cache = CacheUse {
                asked: CachePolicy::Direct,
                used: CachePolicy::Direct,
                why: None,
            };
            let span = MeasuredSpan::new(op.count, 4096);
            Measurement {
                wall_ns: 1_000_000_000,
                achieved_depth: 1.0,
                verify,
                stopped: StopReason::Time,
                ops: PerOp::from_iter([(OpKind::Read, op)]),
                ..Measurement::unmeasured(Workload::named("w"), span, engine, cache)
            }
        })
    }

    fn verified() -> impl Strategy<Value = VerifyResult> {
        (0..1000u64, 0..200u64).prop_map(|(good, bad)| VerifyResult {
            blocks: good + bad,
            blocks_written: Some(good + bad),
            bad_blocks: bad,
            unsigned_blocks: Some(bad / 2),
            runs: Some(good % 3),
            bad: (0..(bad - bad / 2).min(BAD_MAX as u64))
                .map(|number| BadBlock {
                    offset_bytes: number * 4096,
                    why: "changed".to_owned(),
                    written_to_bytes: (number > 0).then_some(number * 8192),
                })
                .collect(),
            ..VerifyResult::default()
        })
    }

    /// A slice that requested these bytes, and a disk that moved as many of them.
    fn counted(asked: u64, moved: u64) -> Measurement {
        let mut slice = uncounted(asked, None);
        slice.device.read_bytes = moved;
        slice.device.accounted = slice.device.share_of(slice.asked);
        slice
    }

    /// A slice whose disk was not counted, for this reason.
    fn uncounted(asked: u64, why: Option<&str>) -> Measurement {
        let engine = EngineUse {
            asked: EngineChoice::Auto,
            used: EngineKind::Aio,
            fallbacks: Vec::new(),
            features: Vec::new(),
            depth: None,
            done_before_wait: None,
        };
        let cache = CacheUse {
            asked: CachePolicy::Direct,
            used: CachePolicy::Direct,
            why: None,
        };
        let mut slice = Measurement::unmeasured(
            Workload::named("w"),
            MeasuredSpan::new(0, 1 << 20),
            engine,
            cache,
        );
        slice.wall_ns = 1_000_000_000;
        slice.asked.read_bytes = asked;
        slice.device.unresolved = why.map(str::to_owned);
        slice
    }

    #[test]
    fn slice_without_counters_leaves_the_share_of_the_disk_unknown() {
        let reset = "the counters of sda went backwards";
        for (first, second, share) in [
            (counted(100, 100), counted(300, 300), Some(1.0)),
            (counted(100, 100), counted(300, 100), Some(0.5)),
            (counted(100, 100), uncounted(100, Some(reset)), None),
            (counted(100, 100), uncounted(100, None), None),
            // A slice that requested nothing has no share, and takes none from the others.
            (counted(100, 100), counted(0, 0), Some(1.0)),
            (counted(0, 0), counted(0, 0), None),
        ] {
            for (mut sum, other) in [
                (first.clone(), second.clone()),
                (second.clone(), first.clone()),
            ] {
                for kind in [MergeKind::Later, MergeKind::OtherHost] {
                    let mut one = sum.clone();
                    one.merge(other.clone(), kind);
                    assert_eq!(one.device.accounted, share, "{kind:?} {first:?} {second:?}");
                    let reasons = [&first, &second].map(|slice| slice.device.unresolved.clone());
                    let reason = reasons.into_iter().flatten().next();
                    assert_eq!(one.device.unresolved, reason);
                }
                let was_asked = first.asked.read_bytes + second.asked.read_bytes > 0;
                sum.append(other);
                sum.append(counted(50, 50));
                let is_known = share.is_some() || !was_asked;
                assert_eq!(
                    sum.device.accounted.is_some(),
                    is_known,
                    "{first:?} {second:?}"
                );
            }
        }
    }

    fn sum(mut a: OpMeasurement, b: &OpMeasurement) -> OpMeasurement {
        a.merge(b.clone(), 0);
        a
    }

    proptest! {
        #[test]
        fn operations_at_once_add_in_any_order_and_none_is_lost(
            a in op(),
            b in op(),
            c in op(),
        ) {
            let all = sum(sum(a.clone(), &b), &c);
            prop_assert_eq!(&all, &sum(a.clone(), &sum(b.clone(), &c)));
            prop_assert_eq!(&all, &sum(sum(c.clone(), &b), &a));
            prop_assert_eq!(all.count, a.count + b.count + c.count);
            prop_assert_eq!(all.series.total().ops, all.count);
            prop_assert_eq!(all.latency.count(), all.count);
        }

        /// Whatever the first slice is, a finding of any of them is in the sum.
        #[test]
        fn later_slices_count_like_the_first(
            all in proptest::collection::vec(measurement(), 1..5),
        ) {
            let mut sum = all[0].clone();
            all[1..].iter().for_each(|next| sum.append(next.clone()));
            let checked = || all.iter().filter_map(|m| m.verify.as_ref());
            let of = |what: fn(&VerifyResult) -> u64| checked().map(what).sum::<u64>();
            let verify = sum.verify.clone().unwrap_or_default();
            prop_assert_eq!(sum.verify.is_some(), checked().next().is_some());
            prop_assert_eq!(verify.blocks, of(|one| one.blocks));
            prop_assert_eq!(verify.bad_blocks, of(|one| one.bad_blocks));
            prop_assert_eq!(verify.wrong_blocks(), of(VerifyResult::wrong_blocks));
            prop_assert_eq!(verify.runs, checked().filter_map(|one| one.runs).max());
            let named = of(|one| one.bad.len() as u64).min(BAD_MAX as u64);
            prop_assert_eq!(verify.bad.len() as u64, named);
            prop_assert_eq!(sum.engine.depth, all.iter().filter_map(|m| m.engine.depth).min());
            let shares = all.iter().map(|m| m.engine.done_before_wait);
            if let Some(shares) = shares.collect::<Option<Vec<f64>>>() {
                let mean = shares.iter().sum::<f64>() / shares.len() as f64;
                prop_assert!((sum.engine.done_before_wait.unwrap() - mean).abs() < 1e-9);
            }
        }

        #[test]
        fn measurements_at_once_add_in_any_order(a in measurement(), b in measurement()) {
            for kind in [MergeKind::SameHost, MergeKind::OtherHost] {
                let (mut one, mut other) = (a.clone(), b.clone());
                one.merge(b.clone(), kind);
                other.merge(a.clone(), kind);
                // Only the first hundred damaged blocks are named, in order.
                for sum in [&mut one, &mut other] {
                    sum.verify.iter_mut().for_each(|verify| verify.bad.clear());
                }
                prop_assert_eq!(&one, &other);
                prop_assert_eq!(one.workload.workers, 2);
            }
        }

        #[test]
        fn operations_one_after_the_other_keep_their_order(a in op(), b in op(), c in op()) {
            let second = 1_000_000_000;
            let mut left = a.clone();
            left.merge(b.clone(), second);
            left.merge(c.clone(), 2 * second);
            let mut later = b.clone();
            later.merge(c.clone(), second);
            let mut right = a.clone();
            right.merge(later, second);
            prop_assert_eq!(&left, &right);
            prop_assert_eq!(left.series.total().ops, a.count + b.count + c.count);
        }
    }
}
