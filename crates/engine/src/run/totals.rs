//! Figures that all workloads of a run share: CPU time of the process and counters of the devices,
//! read before, after, and at the ends of the workers' windows, as far as the supervisor wakes up
//! in time; what a window used is scaled to its length.

use crate::measure::usage;
use diskproof_device::{OpenTarget, Snapshot};
use diskproof_model::measurement::{ByteCount, CpuTime, Measurement};
use diskproof_model::window::{DiskCounts, WINDOW_NS, WINDOWS_MAX};
use std::collections::BTreeSet;

/// The readings of all counters at one moment.
#[derive(Debug, Clone)]
struct CounterReading {
    at_ns: u64,
    cpu: CpuTime,
    /// Per target.
    disks: Vec<Option<DiskCounts>>,
}

impl CounterReading {
    fn disk_counts(&self, target: usize) -> Option<DiskCounts> {
        *self.disks.get(target)?
    }
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

    /// The time until the next reading is due, in nanoseconds.
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

    /// The use of the process from the first reading to `now`; `None` before any reading.
    pub(crate) fn process_so_far(&self, now: u64) -> Option<ProcessTotal> {
        let first = self.readings.first()?;
        Some(ProcessTotal::since(first.cpu, first.at_ns, now))
    }

    /// Gives every window of the measurements its part of the counters. `measure_ns` is the start
    /// of the measured time; the CPU time of each measurement is known already.
    pub(crate) fn fill(&self, measurements: &mut [Measurement], measure_ns: u64) {
        for measurement in measurements {
            let target = measurement.target;
            let first_ns = measure_ns + measurement.workload.shape.starts.delay_ns;
            for window in &mut measurement.windows {
                let start_ns = first_ns + window.start_ns;
                let end_ns = first_ns + window.end_ns;
                let (Some(from), Some(to)) = (self.nearest(start_ns), self.nearest(end_ns)) else {
                    continue;
                };
                if from.at_ns >= to.at_ns {
                    continue;
                }
                let scale = (end_ns - start_ns) as f64 / (to.at_ns - from.at_ns) as f64;
                let used = usage::since(to.cpu, from.cpu);
                window.cpu = CpuTime {
                    user_ns: (used.user_ns as f64 * scale) as u64,
                    system_ns: (used.system_ns as f64 * scale) as u64,
                };
                window.disks = match (to.disk_counts(target), from.disk_counts(target)) {
                    (Some(after), Some(before)) => Some(after.since(before).times(scale)),
                    _ => None,
                };
            }
            scale_window_cpu(measurement);
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
fn scale_window_cpu(measurement: &mut Measurement) {
    let mut total = CpuTime::default();
    for window in &measurement.windows {
        total += window.cpu;
    }
    let user_share = measurement.cpu.user_ns as f64 / (total.user_ns as f64).max(1.0);
    let system_share = measurement.cpu.system_ns as f64 / (total.system_ns as f64).max(1.0);
    for window in &mut measurement.windows {
        window.cpu = CpuTime {
            user_ns: (window.cpu.user_ns as f64 * user_share) as u64,
            system_ns: (window.cpu.system_ns as f64 * system_share) as u64,
        };
    }
}

/// The use of the whole process, from the start of the workers to the end of the last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessTotal {
    /// CPU time of all threads.
    pub cpu: CpuTime,
    /// Wall-clock time, at least 1 ns.
    pub ns: u64,
}

impl ProcessTotal {
    /// The use from `start_ns`, when the CPU time was `cpu_before`, to `now`.
    pub(crate) fn since(cpu_before: CpuTime, start_ns: u64, now: u64) -> Self {
        Self {
            cpu: usage::process_since(cpu_before),
            ns: now.saturating_sub(start_ns).max(1),
        }
    }
}

/// Divides the CPU time of the run: each measurement gets that of its own threads (`own`), and a
/// share of the rest by its operations. The rest is the kernel's io_uring worker threads, which
/// count only for the process (io_uring/io-wq.c), and this program's display. Scaled to the
/// measured time.
pub(crate) fn divide_cpu_time(
    measurements: &mut [Measurement],
    own: &[CpuTime],
    total: ProcessTotal,
) {
    let all_operations: u64 = measurements.iter().map(operations).sum();
    let is_alone = measurements.len() == 1;
    let mut threads_cpu = CpuTime::default();
    for cpu in own {
        threads_cpu += *cpu;
    }
    let unattributed = usage::since(total.cpu, threads_cpu);
    for (measurement, own) in measurements.iter_mut().zip(own) {
        let part = if is_alone {
            1.0
        } else {
            operations(measurement) as f64 / all_operations.max(1) as f64
        };
        let measured_share = (measurement.wall_ns as f64 / total.ns as f64).min(1.0);
        let user_ns = own.user_ns as f64 + unattributed.user_ns as f64 * part;
        let system_ns = own.system_ns as f64 + unattributed.system_ns as f64 * part;
        measurement.cpu = CpuTime {
            user_ns: (user_ns * measured_share) as u64,
            system_ns: (system_ns * measured_share) as u64,
        };
    }
}

/// Operations of all kinds.
fn operations(measurement: &Measurement) -> u64 {
    measurement.ops.values().map(|op| op.count).sum()
}

/// Compares the devices' counters with the bytes requested by all workloads on all targets on the
/// same disks. Call it after [`CounterLog::fill`], which sets the counters of the windows.
pub(crate) fn count_devices(
    measurements: &mut [Measurement],
    targets: &[&OpenTarget],
    snapshots: Vec<Snapshot>,
) {
    let disks: Vec<BTreeSet<String>> = targets.iter().map(|target| disk_names(target)).collect();
    // The bytes of each workload, before the measurements get the sums.
    let asked: Vec<ByteCount> = measurements
        .iter()
        .map(|measurement| measurement.asked)
        .collect();
    for (target, snapshot) in snapshots.into_iter().enumerate() {
        let sharing = DiskSharing::of_target(&disks, target);
        let mut asked_of_disks = ByteCount::default();
        for (measurement, asked) in measurements.iter().zip(&asked) {
            if sharing.targets.contains(&measurement.target) {
                asked_of_disks += *asked;
            }
        }
        let mut device = snapshot.finish(asked_of_disks);
        if !sharing.has_all_their_disks {
            device.accounted = None;
        }
        add_asked_to_windows(measurements, target, &sharing);
        for measurement in measurements.iter_mut() {
            if measurement.target == target {
                measurement.asked = asked_of_disks;
                measurement.device = device.clone();
            }
        }
    }
}

fn disk_names(target: &OpenTarget) -> BTreeSet<String> {
    target
        .identity()
        .disks()
        .map(|disk| disk.name.clone())
        .collect()
}

/// The targets whose requests go to the disks of one target.
struct DiskSharing {
    /// The target itself, and those that have a disk in common with it.
    targets: Vec<usize>,
    /// False where one of them has another disk, too: an unknown part of its bytes went there, so
    /// that nothing can be compared with the counters.
    has_all_their_disks: bool,
}

impl DiskSharing {
    fn of_target(disks: &[BTreeSet<String>], target: usize) -> Self {
        let own = &disks[target];
        let mut targets = Vec::new();
        let mut has_all_their_disks = true;
        for (other, others_disks) in disks.iter().enumerate() {
            if other == target || !own.is_disjoint(others_disks) {
                targets.push(other);
                has_all_their_disks &= others_disks.is_subset(own);
            }
        }
        Self {
            targets,
            has_all_their_disks,
        }
    }
}

/// Gives every window on `target` the bytes that all workloads on the targets that share its disks
/// requested in its time. Takes the counters of the disks from windows for which these bytes are
/// not known.
fn add_asked_to_windows(measurements: &mut [Measurement], target: usize, sharing: &DiskSharing) {
    // All workloads of a run warm up equally long.
    let warmup_ns = measurements
        .iter()
        .map(|measurement| measurement.workload.warmup_ns)
        .max()
        .unwrap_or(0);
    for index in 0..measurements.len() {
        if measurements[index].target != target {
            continue;
        }
        let delay_ns = measurements[index].workload.shape.starts.delay_ns;
        let mut windows = std::mem::take(&mut measurements[index].windows);
        for window in &mut windows {
            window.asked = ByteCount::default();
            let mut is_known = sharing.has_all_their_disks;
            for measurement in measurements.iter() {
                if !sharing.targets.contains(&measurement.target) {
                    continue;
                }
                // A series counts from the start of its own measured time.
                let other_delay_ns = measurement.workload.shape.starts.delay_ns;
                let (from_ns, until_ns) = (delay_ns + window.start_ns, delay_ns + window.end_ns);
                let start_ns = from_ns.saturating_sub(other_delay_ns);
                let end_ns = until_ns.saturating_sub(other_delay_ns);
                for (kind, op) in &measurement.ops {
                    if kind.is_request() {
                        let moved = op.series.total_between(start_ns, end_ns);
                        window.asked.add(*kind, moved.bytes);
                    }
                }
                // Nothing counts the bytes of a warm-up over time.
                let warmup_start_ns = other_delay_ns.saturating_sub(warmup_ns);
                if from_ns < other_delay_ns && until_ns > warmup_start_ns {
                    is_known &= warmup_ns == 0;
                }
            }
            if !is_known {
                window.disks = None;
            }
        }
        measurements[index].windows = windows;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Extent;
    use crate::testing::simulate::simulated;
    use diskproof_model::measurement::{OpKind, SERIES_CELLS_MAX};
    use diskproof_model::plan::Workload;
    use diskproof_model::series::Cell;
    use diskproof_model::window::Window;

    const SECOND: u64 = 1_000_000_000;

    /// Reads of `bytes` in the first cell of a measured time that starts after `delay_ns`.
    fn measured(delay_ns: u64, warmup_ns: u64, bytes: u64) -> Measurement {
        let mut workload = Workload {
            warmup_ns,
            ..Workload::named("reads")
        };
        workload.shape.starts.delay_ns = delay_ns;
        let mut measurement = simulated(&workload, Extent::default());
        let reads = measurement.ops.entry(OpKind::Read).or_default();
        reads
            .series
            .add(0, &Cell::single(bytes, 1), SERIES_CELLS_MAX);
        for start_ns in [0, 9 * SECOND, 10 * SECOND] {
            measurement.windows.push(Window {
                start_ns,
                end_ns: start_ns + SECOND,
                disks: Some(DiskCounts::default()),
                ..Window::default()
            });
        }
        measurement
    }

    fn shared_disk() -> DiskSharing {
        DiskSharing::of_target(&[BTreeSet::from(["sda".to_owned()])], 0)
    }

    #[test]
    fn windows_have_the_bytes_of_a_delayed_workload_from_its_start_on() {
        let mut both = [measured(0, 0, 4096), measured(10 * SECOND, 0, 512)];
        add_asked_to_windows(&mut both, 0, &shared_disk());
        let asked = |index: usize| -> Vec<u64> {
            let windows = both[index].windows.iter();
            windows.map(|window| window.asked.read_bytes).collect()
        };
        assert_eq!(asked(0), [4096, 0, 512]);
        assert_eq!(asked(1), [512, 0, 0]);
        assert!(both[0].windows.iter().all(|window| window.disks.is_some()));
    }

    #[test]
    fn windows_beside_a_warm_up_have_no_counters_of_the_disks() {
        let mut both = [
            measured(0, SECOND, 4096),
            measured(10 * SECOND, SECOND, 512),
        ];
        add_asked_to_windows(&mut both, 0, &shared_disk());
        let known: Vec<bool> = both[0]
            .windows
            .iter()
            .map(|window| window.disks.is_some())
            .collect();
        assert_eq!(known, [true, false, true]);
    }

    #[test]
    fn bytes_of_a_target_with_another_disk_are_not_compared() {
        let disks = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let sets = [disks(&["sda", "sdb"]), disks(&["sdb"]), disks(&["sdc"])];
        let both = DiskSharing::of_target(&sets, 0);
        assert_eq!((both.targets, both.has_all_their_disks), (vec![0, 1], true));
        let part = DiskSharing::of_target(&sets, 1);
        assert_eq!(
            (part.targets, part.has_all_their_disks),
            (vec![0, 1], false)
        );
        let alone = DiskSharing::of_target(&sets, 2);
        assert_eq!((alone.targets, alone.has_all_their_disks), (vec![2], true));
    }
}
