//! Adds measurements of one workload: of workers, of hosts, or of slices one after the other. Times
//! within it count measured time only: what lies between two slices is in no series and no rate.

use crate::data::RunData;
use crate::measurement::{
    DeviceUse, Measurement, OpMeasurement, OtherProcess, SERIES_CELLS_MAX, Starvation,
};
use crate::slice::{LateRequests, SliceLatency, SliceOp, TimeSlice};
use crate::window::Window;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Most other processes that a measurement names.
const OTHERS_MAX: usize = 10;

impl TimeSlice {
    /// What a measurement of one slice says of it.
    pub fn of(measurement: &Measurement) -> Self {
        let ops = measurement.ops.iter().map(|(kind, op)| {
            let latencies = op.latency_intended.as_ref().unwrap_or(&op.latency);
            let target = measurement.workload.shape.latency_target.as_ref();
            let slice = SliceOp {
                latency: SliceLatency::of(latencies),
                late: target.map(|target| LateRequests::of(latencies, target)),
                ..SliceOp::of(op.count, op.bytes, measurement.wall_ns)
            };
            (*kind, slice)
        });
        Self {
            start_ns: measurement.start_ns,
            wall_ns: measurement.wall_ns,
            ops: ops.collect(),
        }
    }
}

/// How two measurements of one workload belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Together {
    /// Two processes of one host at the same time, on one target: its counters count once.
    Workers,
    /// Two hosts at the same time: all adds up.
    Hosts,
    /// One after the other.
    After,
}

/// What has no sum.
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
    pub fn merge(&mut self, other: Self, way: Together) -> Result<(), MergeError> {
        let has_more = |data: &Self| {
            data.surface.is_some()
                || data.postgres.is_some()
                || data.files.is_some()
                || data.observed.is_some()
        };
        if has_more(self) || has_more(&other) {
            return Err(MergeError::NoWorkload);
        }
        let of = |data: &Self| -> Vec<(usize, String)> {
            let all = data.measurements.iter();
            all.map(|m| (m.target, m.workload.name.clone())).collect()
        };
        if of(self) != of(&other) {
            return Err(MergeError::OtherWorkloads);
        }
        let pairs = self.measurements.iter_mut().zip(other.measurements);
        pairs.for_each(|(mine, theirs)| mine.merge(theirs, way));
        Ok(())
    }
}

impl Measurement {
    /// Adds the next slice of the same workload on the same target.
    pub fn append(&mut self, next: Self) {
        if self.slices.is_empty() {
            self.slices.push(TimeSlice::of(self));
        }
        self.slices.push(TimeSlice::of(&next));
        self.merge(next, Together::After);
    }

    /// Adds another measurement of the same workload. Neither the time without a request nor the
    /// rate without a disk can be known of two that ran at once.
    pub fn merge(&mut self, next: Self, way: Together) {
        let (so_far, more) = (self.wall_ns as f64, next.wall_ns as f64);
        let whole = (so_far + more).max(1.0);
        let average = |a: f64, b: f64| (a * so_far + b * more) / whole;
        let done = |m: &Self| m.ops.values().map(|op| op.count).sum::<u64>() as f64;
        let (before, after) = (done(self), done(&next));
        let is_after = way == Together::After;
        self.dead_time_ns = match (self.dead_time_ns, next.dead_time_ns) {
            _ if !is_after => None,
            (Some(a), Some(b)) => Some((a * before + b * after) / (before + after).max(1.0)),
            (a, b) => a.or(b),
        };
        let depth = average(self.achieved_depth, next.achieved_depth);
        self.achieved_depth = match is_after {
            true => depth,
            false => depth * whole / so_far.max(more).max(1.0),
        };
        self.device = match way {
            Together::Workers if next.wall_ns > self.wall_ns => next.device,
            Together::Workers => std::mem::take(&mut self.device),
            Together::Hosts | Together::After => devices(&self.device, &next.device, average),
        };
        self.asked += next.asked;
        let known = self.device.accounted;
        self.device.accounted = known.and_then(|_| self.device.share_of(self.asked));
        self.cpu.user_ns += next.cpu.user_ns;
        self.cpu.system_ns += next.cpu.system_ns;
        self.starved = starvation(self.starved, next.starved, average);
        let begin_ns = if is_after { self.wall_ns } else { 0 };
        for (kind, op) in next.ops {
            self.ops.entry(kind).or_default().merge(op, begin_ns);
        }
        self.ceiling_iops = match (self.ceiling_iops, next.ceiling_iops) {
            _ if !is_after => None,
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.zero_blocks.sampled += next.zero_blocks.sampled;
        self.zero_blocks.zero += next.zero_blocks.zero;
        self.missed_starts = self
            .missed_starts
            .zip(next.missed_starts)
            .map(|(a, b)| a + b);
        self.punted = self.punted.or(next.punted);
        self.hang = self.hang.or(next.hang);
        self.first_write = self.first_write.take().or(next.first_write);
        self.laid_out = self.laid_out.or(next.laid_out);
        self.interruptions.extend(next.interruptions);
        if is_after {
            self.windows
                .extend(next.windows.into_iter().map(|window| Window {
                    start_ns: window.start_ns + begin_ns,
                    end_ns: window.end_ns + begin_ns,
                    ..window
                }));
            self.wall_ns += next.wall_ns;
            self.stopped = next.stopped;
        } else {
            self.windows = at_once(std::mem::take(&mut self.windows), &next.windows, way);
            self.slices.clear();
            self.steady = None;
            self.workload.workers += next.workload.workers;
            self.start_ns = self.start_ns.min(next.start_ns);
            self.wall_ns = self.wall_ns.max(next.wall_ns);
        }
    }
}

/// Windows of the same times, added; none where the times differ.
fn at_once(mut mine: Vec<Window>, theirs: &[Window], way: Together) -> Vec<Window> {
    let times = |window: &Window| (window.start_ns, window.end_ns);
    if !mine.iter().map(times).eq(theirs.iter().map(times)) {
        return Vec::new();
    }
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        mine.add_worker(theirs);
        mine.cpu.user_ns += theirs.cpu.user_ns;
        mine.cpu.system_ns += theirs.cpu.system_ns;
        mine.asked += theirs.asked;
        if way == Together::Hosts {
            mine.disks = mine.disks.zip(theirs.disks).map(|(a, b)| a.plus(b));
        }
    }
    mine
}

impl OpMeasurement {
    /// Adds operations that began after `begin_ns` of measured time.
    pub fn merge(&mut self, other: Self, begin_ns: u64) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.short += other.short;
        for (errno, count) in other.errors {
            *self.errors.entry(errno).or_default() += count;
        }
        self.latency.merge(&other.latency);
        match (&mut self.latency_intended, other.latency_intended) {
            (Some(mine), Some(theirs)) => mine.merge(&theirs),
            (mine @ None, theirs) => *mine = theirs,
            (Some(_), None) => {}
        }
        if begin_ns == 0 {
            self.series.merge(&other.series);
            return;
        }
        let series = other.series;
        for (index, cell) in series.cells.iter().enumerate() {
            let at_ns = begin_ns + series.start_ns + index as u64 * series.interval_ns;
            self.series.add(at_ns, cell, SERIES_CELLS_MAX);
        }
    }
}

fn starvation(a: Starvation, b: Starvation, average: impl Fn(f64, f64) -> f64) -> Starvation {
    Starvation {
        share: average(a.share, b.share),
        mean_wait_ns: average(a.mean_wait_ns, b.mean_wait_ns),
    }
}

/// The counters of both; `accounted` is that of the first.
fn devices(a: &DeviceUse, b: &DeviceUse, average: impl Fn(f64, f64) -> f64) -> DeviceUse {
    let mut others: BTreeMap<u32, OtherProcess> = BTreeMap::new();
    for other in a.others.iter().chain(&b.others) {
        match others.get_mut(&other.pid) {
            Some(known) => {
                known.read_bytes += other.read_bytes;
                known.write_bytes += other.write_bytes;
                known.ended |= other.ended;
            }
            None => {
                others.insert(other.pid, other.clone());
            }
        }
    }
    let mut others: Vec<OtherProcess> = others.into_values().collect();
    // Processes without bytes are in the list for their name.
    others.sort_by_key(|other| {
        let bytes = other.read_bytes + other.write_bytes;
        (bytes > 0, Reverse(bytes))
    });
    others.truncate(OTHERS_MAX);
    DeviceUse {
        disks: a.disks.clone(),
        read_bytes: a.read_bytes + b.read_bytes,
        write_bytes: a.write_bytes + b.write_bytes,
        read_ops: a.read_ops + b.read_ops,
        write_ops: a.write_ops + b.write_ops,
        flush_ops: a.flush_ops.zip(b.flush_ops).map(|(a, b)| a + b),
        trim_bytes: a.trim_bytes.zip(b.trim_bytes).map(|(a, b)| a + b),
        queue_depth: a.queue_depth.zip(b.queue_depth).map(|(a, b)| average(a, b)),
        times: a.times.zip(b.times).map(|(a, b)| a.then(b)),
        accounted: a.accounted,
        unresolved: a.unresolved.clone().or_else(|| b.unresolved.clone()),
        elsewhere_bytes: a.elsewhere_bytes.zip(b.elsewhere_bytes).map(|(a, b)| a + b),
        exits_reported: a.exits_reported && b.exits_reported,
        others,
        others_hidden: a.others_hidden.max(b.others_hidden),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
