//! Divides what all workloads of a run share, CPU time of the process and counters of the devices,
//! among their measurements and windows. It is read before, after, and at the ends of the windows,
//! as far as the supervisor wakes up in time; what a window used is scaled to its length.

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

    /// Gives every window of the measurements its part of the counters. `origin_ns` is the start
    /// of the run, on the clock; the CPU time of each measurement is known already.
    pub(crate) fn fill(&self, measurements: &mut [Measurement], origin_ns: u64) {
        for measurement in measurements {
            let target = measurement.target;
            let first_ns = origin_ns + measurement.start_ns;
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
    let rest = usage::since(total.cpu, threads_cpu);
    for (measurement, own) in measurements.iter_mut().zip(own) {
        let part = if is_alone {
            1.0
        } else {
            operations(measurement) as f64 / all_operations.max(1) as f64
        };
        let measured_share = (measurement.wall_ns as f64 / total.ns as f64).min(1.0);
        let user_ns = (own.user_ns as f64 + rest.user_ns as f64 * part) * measured_share;
        let system_ns = (own.system_ns as f64 + rest.system_ns as f64 * part) * measured_share;
        measurement.cpu = CpuTime {
            user_ns: user_ns as u64,
            system_ns: system_ns as u64,
        };
    }
}

/// Operations of all kinds.
fn operations(measurement: &Measurement) -> u64 {
    measurement.ops.values().map(|op| op.count).sum()
}

/// Compares the devices' counters with the bytes requested by all workloads on all targets on the
/// same disks. All of them had a warm-up of `warmup_ns`.
pub(crate) fn count_devices(
    measurements: &mut [Measurement],
    targets: &[&OpenTarget],
    snapshots: Vec<Snapshot>,
    warmup_ns: u64,
) {
    let disks: Vec<BTreeSet<String>> = targets.iter().map(|target| disk_names(target)).collect();
    // The bytes of each workload, before the measurements get the sums.
    let asked: Vec<ByteCount> = measurements
        .iter()
        .map(|measurement| measurement.asked)
        .collect();
    for (target, snapshot) in snapshots.into_iter().enumerate() {
        let sharing = sharing_targets(&disks, target);
        let mut disk_request_bytes = ByteCount::default();
        let mut is_confirmable = true;
        for (measurement, asked) in measurements.iter().zip(&asked) {
            if sharing.contains(&measurement.target) {
                disk_request_bytes += *asked;
                is_confirmable &= asked.moved_or_trimmed() == 0
                    || has_all_disks(&disks, target, measurement.target);
            }
        }
        let mut device = snapshot.finish(disk_request_bytes);
        if !is_confirmable {
            device.accounted = None;
            device
                .unresolved
                .get_or_insert_with(|| SHARES_SOME_DISKS.to_owned());
        }
        count_window_requests(measurements, target, &sharing, warmup_ns);
        for measurement in measurements.iter_mut() {
            if measurement.target == target {
                measurement.asked = disk_request_bytes;
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

/// The reason why the counters of a target confirm nothing: the kernel does not count how many
/// bytes of the other target went to the disks that both have.
const SHARES_SOME_DISKS: &str = "another target of the run lies on these disks and on others, too";

/// True if all bytes requested from the target `other` went to disks that `target` has, too.
fn has_all_disks(disks: &[BTreeSet<String>], target: usize, other: usize) -> bool {
    disks[other].is_subset(&disks[target])
}

/// The targets that have a disk in common with this one, and itself.
fn sharing_targets(disks: &[BTreeSet<String>], target: usize) -> Vec<usize> {
    (0..disks.len())
        .filter(|other| *other == target || !disks[target].is_disjoint(&disks[*other]))
        .collect()
}

/// Gives every window on `target` the bytes that all workloads on the targets that share its disks
/// requested in its time. No series has those of a warm-up: a window during the warm-up of another
/// workload loses its counters of the disks, which could not be compared with anything.
fn count_window_requests(
    measurements: &mut [Measurement],
    target: usize,
    sharing: &[usize],
    warmup_ns: u64,
) {
    for index in 0..measurements.len() {
        if measurements[index].target != target {
            continue;
        }
        let mut windows = std::mem::take(&mut measurements[index].windows);
        for window in &mut windows {
            let start_ns = measurements[index].start_ns + window.start_ns;
            let end_ns = measurements[index].start_ns + window.end_ns;
            window.asked = ByteCount::default();
            for measurement in measurements.iter() {
                if !sharing.contains(&measurement.target) {
                    continue;
                }
                // Each series counts from the measured start of its own workload on.
                let other_ns = measurement.start_ns;
                let (from_ns, to_ns) = (
                    start_ns.saturating_sub(other_ns),
                    end_ns.saturating_sub(other_ns),
                );
                for (kind, op) in &measurement.ops {
                    if kind.is_request() {
                        let moved = op.series.total_between(from_ns, to_ns);
                        window.asked.add(*kind, moved.bytes);
                    }
                }
                let warmup_start_ns = other_ns.saturating_sub(warmup_ns);
                if start_ns.max(warmup_start_ns) < end_ns.min(other_ns) {
                    window.disks = None;
                }
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
    use diskproof_model::measurement::{OpKind, OpMeasurement, SERIES_CELLS_MAX};
    use diskproof_model::plan::Workload;
    use diskproof_model::series::Cell;
    use diskproof_model::window::Window;

    const SECOND: u64 = 1_000_000_000;

    /// A workload that measured from `start_ns` on, with these bytes in each second and a window
    /// for each.
    fn measured(start_ns: u64, bytes: &[u64]) -> Measurement {
        let mut op = OpMeasurement::default();
        let mut windows = Vec::new();
        for (second, bytes) in bytes.iter().enumerate() {
            let start_ns = second as u64 * SECOND;
            let cell = Cell {
                ops: 1,
                bytes: *bytes,
                ..Cell::default()
            };
            op.series.add(start_ns, &cell, SERIES_CELLS_MAX);
            windows.push(Window {
                start_ns,
                end_ns: start_ns + SECOND,
                disks: Some(DiskCounts::default()),
                ..Window::default()
            });
        }
        Measurement {
            start_ns,
            ops: [(OpKind::Read, op)].into(),
            windows,
            ..simulated(&Workload::named("w"), Extent::default())
        }
    }

    fn asked(measurement: &Measurement) -> Vec<u64> {
        let windows = measurement.windows.iter();
        windows.map(|window| window.asked.read_bytes).collect()
    }

    #[test]
    fn only_disks_with_all_bytes_of_a_target_confirm_them() {
        let disks = [vec!["sda", "sdb"], vec!["sdb"], vec!["sdc"]];
        let disks: [BTreeSet<String>; 3] =
            disks.map(|names| names.into_iter().map(str::to_owned).collect());
        let stripe_and_disk = vec![0, 1];
        assert_eq!(sharing_targets(&disks, 0), stripe_and_disk);
        assert_eq!(sharing_targets(&disks, 1), stripe_and_disk);
        assert_eq!(sharing_targets(&disks, 2), [2]);
        assert!(has_all_disks(&disks, 0, 1) && has_all_disks(&disks, 1, 1));
        assert!(!has_all_disks(&disks, 1, 0));
    }

    #[test]
    fn windows_have_the_bytes_of_delayed_workloads_from_their_start_on() {
        let mut both = [
            measured(SECOND, &[1, 2, 4, 8]),
            measured(3 * SECOND, &[100, 200, 400]),
        ];
        count_window_requests(&mut both, 0, &[0], 0);
        assert_eq!(asked(&both[0]), [1, 2, 104, 208]);
        assert_eq!(asked(&both[1]), [104, 208, 400]);
        assert!(both[0].windows.iter().all(|window| window.disks.is_some()));
    }

    #[test]
    fn windows_during_the_warm_up_of_another_workload_have_no_disk_counters() {
        let mut both = [
            measured(SECOND, &[1, 2, 4, 8]),
            measured(4 * SECOND, &[100, 200]),
        ];
        count_window_requests(&mut both, 0, &[0], SECOND);
        let has_disks = |measurement: &Measurement| -> Vec<bool> {
            let windows = measurement.windows.iter();
            windows.map(|window| window.disks.is_some()).collect()
        };
        assert_eq!(has_disks(&both[0]), [true, true, false, true]);
        assert_eq!(has_disks(&both[1]), [true, true]);
    }
}
