//! The counters that the supervisor reads while workers run: CPU time of the process, and what the
//! disks did. Read at the ends of the workers' windows, as far as the supervisor wakes up in time;
//! what a window used is scaled to its length. Judges nothing.

use crate::measure::usage;
use crate::run::totals::ProcessTotal;
use diskproof_device::Snapshot;
use diskproof_model::measurement::{CpuTime, Measurement};
use diskproof_model::window::{DiskCounts, WINDOW_NS, WINDOWS_MAX};

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
        Some(ProcessTotal {
            cpu: usage::process_since(first.cpu),
            ns: now.saturating_sub(first.at_ns).max(1),
        })
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
                let part =
                    |after: u64, before: u64| (after.saturating_sub(before) as f64 * scale) as u64;
                window.cpu = CpuTime {
                    user_ns: part(to.cpu.user_ns, from.cpu.user_ns),
                    system_ns: part(to.cpu.system_ns, from.cpu.system_ns),
                };
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
    let sum = |of: fn(&CpuTime) -> u64| -> f64 {
        let windows = measurement.windows.iter();
        windows.map(|window| of(&window.cpu)).sum::<u64>() as f64
    };
    let share = |own: u64, all: f64| if all > 0.0 { own as f64 / all } else { 0.0 };
    let user = share(measurement.cpu.user_ns, sum(|cpu| cpu.user_ns));
    let system = share(measurement.cpu.system_ns, sum(|cpu| cpu.system_ns));
    for window in &mut measurement.windows {
        window.cpu.user_ns = (window.cpu.user_ns as f64 * user) as u64;
        window.cpu.system_ns = (window.cpu.system_ns as f64 * system) as u64;
    }
}
