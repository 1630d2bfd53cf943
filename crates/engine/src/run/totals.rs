//! Figures that all workloads of a run share: CPU time of the process and counters of the devices,
//! read before, after, and at the ends of the workers' windows, as far as the supervisor wakes up
//! in time; what a window used is scaled to its length. Judges nothing.

use crate::measure::usage;
use diskproof_device::{OpenTarget, Snapshot};
use diskproof_model::measurement::{ByteCount, CpuTime, Measurement};
use diskproof_model::window::{DiskCounts, WINDOW_NS, WINDOWS_MAX};
use std::collections::BTreeSet;

/// All counters at one moment.
#[derive(Debug, Clone)]
struct CounterReading {
    at_ns: u64,
    cpu: CpuTime,
    /// Per target.
    disks: Vec<Option<DiskCounts>>,
}

/// The counters over time.
pub(crate) struct CounterLog<'a> {
    snapshots: &'a [Snapshot],
    readings: Vec<CounterReading>,
    interval_ns: u64,
    next_ns: Option<u64>,
}

impl<'a> CounterLog<'a> {
    /// For these targets.
    pub(crate) fn new(snapshots: &'a [Snapshot]) -> Self {
        Self {
            snapshots,
            readings: Vec::new(),
            interval_ns: WINDOW_NS,
            next_ns: None,
        }
    }

    /// How long the supervisor may sleep until the next reading is due, in nanoseconds.
    pub(crate) fn due_in_ns(&self, measure_ns: u64, now: u64) -> u64 {
        self.next_ns.unwrap_or(measure_ns).saturating_sub(now)
    }

    /// Reads the counters where that is due at `now`.
    pub(crate) fn read_if_due(&mut self, measure_ns: u64, now: u64) {
        if self.due_in_ns(measure_ns, now) > 0 {
            return;
        }
        self.read(now);
        if self.readings.len() > WINDOWS_MAX {
            let mut index = 0;
            self.readings.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.interval_ns *= 2;
        }
        let windows = (now - measure_ns) / self.interval_ns + 1;
        self.next_ns = Some(measure_ns + windows * self.interval_ns);
    }

    /// Reads the counters.
    pub(crate) fn read(&mut self, now: u64) {
        self.readings.push(CounterReading {
            at_ns: now,
            cpu: usage::process(),
            disks: self.snapshots.iter().map(Snapshot::counts).collect(),
        });
    }

    /// What the process used from the first reading to `now`; `None` before any reading.
    pub(crate) fn process_so_far(&self, now: u64) -> Option<ProcessTotal> {
        let first = self.readings.first()?;
        Some(ProcessTotal::since(first.cpu, first.at_ns, now))
    }

    /// Gives every window of the measurements its part of the counters. `measure_ns` is the start
    /// of the measured time; the CPU time of each measurement is known already.
    pub(crate) fn fill(&self, measurements: &mut [Measurement], measure_ns: u64) {
        for measurement in measurements {
            let target = measurement.target;
            let measure_ns = measure_ns + measurement.workload.shape.start_delay_ns;
            for window in &mut measurement.windows {
                let (start_ns, end_ns) = (measure_ns + window.start_ns, measure_ns + window.end_ns);
                let (Some(from), Some(to)) = (self.nearest(start_ns), self.nearest(end_ns)) else {
                    continue;
                };
                if from.at_ns >= to.at_ns {
                    continue;
                }
                let scale = (end_ns - start_ns) as f64 / (to.at_ns - from.at_ns) as f64;
                let used = usage::since(to.cpu, from.cpu);
                window.cpu = usage::each(|of| (of(&used) as f64 * scale) as u64);
                let of = |reading: &CounterReading| reading.disks.get(target).copied().flatten();
                window.disks = of(to)
                    .zip(of(from))
                    .map(|(after, before)| after.since(before).times(scale));
            }
            share_cpu(measurement);
        }
    }

    fn nearest(&self, at_ns: u64) -> Option<&CounterReading> {
        self.readings
            .iter()
            .min_by_key(|reading| reading.at_ns.abs_diff(at_ns))
    }
}

/// The windows hold the CPU time of the process; the measurement has its share of it. What the
/// windows have together becomes that share.
fn share_cpu(measurement: &mut Measurement) {
    let windows = &measurement.windows;
    let all = usage::each(|of| windows.iter().map(|window| of(&window.cpu)).sum());
    for window in &mut measurement.windows {
        window.cpu = usage::each(|of| {
            let share = of(&measurement.cpu) as f64 / (of(&all) as f64).max(1.0);
            (of(&window.cpu) as f64 * share) as u64
        });
    }
}

/// What the whole process used, from the start of the workers to the end of the last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessTotal {
    /// CPU time.
    pub cpu: CpuTime,
    /// Wall-clock time.
    pub ns: u64,
}

impl ProcessTotal {
    /// From `start_ns`, with the CPU time until then, to `now`.
    pub(crate) fn since(cpu: CpuTime, start_ns: u64, now: u64) -> Self {
        Self {
            cpu: usage::process_since(cpu),
            ns: now.saturating_sub(start_ns).max(1),
        }
    }
}

/// Divides the CPU time of the run: each measurement gets that of its own threads (`own`), and a
/// share of the rest by its operations. The rest is the kernel's io_uring worker threads, which
/// count only for the process (io_uring/io-wq.c), and this program's display. Scaled to the
/// measured time.
pub(crate) fn share_out(measurements: &mut [Measurement], own: &[CpuTime], total: ProcessTotal) {
    let ops = |m: &Measurement| m.ops.values().map(|op| op.count).sum::<u64>();
    let all: u64 = measurements.iter().map(ops).sum();
    let alone = measurements.len() == 1;
    let rest = usage::each(|of| of(&total.cpu).saturating_sub(own.iter().map(of).sum()));
    for (measurement, own) in measurements.iter_mut().zip(own) {
        let part = if alone {
            1.0
        } else {
            ops(measurement) as f64 / all.max(1) as f64
        };
        let within = (measurement.wall_ns as f64 / total.ns as f64).min(1.0);
        measurement.cpu =
            usage::each(|of| ((of(own) as f64 + of(&rest) as f64 * part) * within) as u64);
    }
}

/// Compares the devices' counters with the bytes requested by all workloads on all targets on the
/// same disks.
pub(crate) fn count_devices(
    measurements: &mut [Measurement],
    targets: &[&OpenTarget],
    snapshots: Vec<Snapshot>,
) {
    let names = |target: &&OpenTarget| -> BTreeSet<String> {
        let disks = target.identity().disks();
        disks.map(|disk| disk.name.clone()).collect()
    };
    let disks: Vec<_> = targets.iter().map(names).collect();
    let asked: Vec<(usize, ByteCount)> = measurements.iter().map(|m| (m.target, m.asked)).collect();
    for (target, snapshot) in snapshots.into_iter().enumerate() {
        let is_sharing =
            |other: usize| other == target || !disks[target].is_disjoint(&disks[other]);
        let mut all = ByteCount::default();
        for (_, more) in asked.iter().filter(|(other, _)| is_sharing(*other)) {
            all += *more;
        }
        let device = snapshot.finish(all);
        ask_windows(measurements, target, is_sharing);
        for measurement in measurements.iter_mut().filter(|m| m.target == target) {
            (measurement.asked, measurement.device) = (all, device.clone());
        }
    }
}

/// Gives every window on `target` the bytes that all workloads on targets for which `is_sharing`
/// requested in its time.
fn ask_windows(
    measurements: &mut [Measurement],
    target: usize,
    is_sharing: impl Fn(usize) -> bool,
) {
    for index in 0..measurements.len() {
        if measurements[index].target != target {
            continue;
        }
        let mut windows = std::mem::take(&mut measurements[index].windows);
        for window in &mut windows {
            window.asked = ByteCount::default();
            let sharing = measurements.iter().filter(|m| is_sharing(m.target));
            for (kind, op) in sharing.flat_map(|m| &m.ops) {
                if kind.is_request() {
                    let moved = op.series.total_between(window.start_ns, window.end_ns);
                    window.asked.add(*kind, moved.bytes);
                }
            }
        }
        measurements[index].windows = windows;
    }
}
