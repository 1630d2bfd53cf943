//! Joins the slices of a workload to one measurement. Times within it count measured time only:
//! what lies between two slices is in no series and no rate.

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

impl Measurement {
    /// Adds the next slice of the same workload on the same target.
    pub fn append(&mut self, next: Self) {
        if self.slices.is_empty() {
            self.slices.push(TimeSlice::of(self));
        }
        self.slices.push(TimeSlice::of(&next));
        let (so_far, more) = (self.wall_ns as f64, next.wall_ns as f64);
        let whole = (so_far + more).max(1.0);
        let average = |a: f64, b: f64| (a * so_far + b * more) / whole;
        let done = |m: &Self| m.ops.values().map(|op| op.count).sum::<u64>() as f64;
        let (before, after) = (done(self), done(&next));
        self.dead_time_ns = match (self.dead_time_ns, next.dead_time_ns) {
            (Some(a), Some(b)) => Some((a * before + b * after) / (before + after).max(1.0)),
            (a, b) => a.or(b),
        };
        self.achieved_depth = average(self.achieved_depth, next.achieved_depth);
        self.device = devices(&self.device, &next.device, average);
        self.asked += next.asked;
        let known = self.device.accounted.zip(next.device.accounted);
        self.device.accounted = known.and_then(|_| self.device.share_of(self.asked));
        self.cpu.user_ns += next.cpu.user_ns;
        self.cpu.system_ns += next.cpu.system_ns;
        self.starved = starvation(self.starved, next.starved, average);
        for (kind, op) in next.ops {
            let wall_ns = self.wall_ns;
            append_op(self.ops.entry(kind).or_default(), op, wall_ns);
        }
        self.ceiling_iops = match (self.ceiling_iops, next.ceiling_iops) {
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
        let begin_ns = self.wall_ns;
        let windows = next.windows.into_iter().map(|window| Window {
            start_ns: window.start_ns + begin_ns,
            end_ns: window.end_ns + begin_ns,
            ..window
        });
        self.windows.extend(windows);
        self.wall_ns += next.wall_ns;
        self.stopped = next.stopped;
    }
}

/// Adds an operation of a slice that begins after `wall_ns` of measured time.
fn append_op(op: &mut OpMeasurement, next: OpMeasurement, wall_ns: u64) {
    op.count += next.count;
    op.bytes += next.bytes;
    op.short += next.short;
    for (errno, count) in next.errors {
        *op.errors.entry(errno).or_default() += count;
    }
    op.latency.merge(&next.latency);
    if let Some(intended) = next.latency_intended {
        match &mut op.latency_intended {
            Some(all) => all.merge(&intended),
            None => op.latency_intended = Some(intended),
        }
    }
    let series = next.series;
    for (index, cell) in series.cells.iter().enumerate() {
        let at_ns = wall_ns + series.start_ns + index as u64 * series.interval_ns;
        op.series.add(at_ns, cell, SERIES_CELLS_MAX);
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
