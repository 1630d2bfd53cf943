//! Figures that all workloads of a run share: CPU time of the process, counters of the devices.

use diskproof_device::{OpenTarget, Snapshot};
use diskproof_model::measurement::{ByteCount, CpuTime, Measurement};
use std::collections::BTreeSet;

/// What the whole process used, from the start of the workers to the end of the last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessTotal {
    /// CPU time.
    pub cpu: CpuTime,
    /// Wall-clock time.
    pub ns: u64,
}

/// Divides the CPU time of the run: each measurement gets that of its own threads (`own`), and a
/// share of the rest by its operations. The rest is the kernel's io_uring worker threads, which
/// count only for the process (io_uring/io-wq.c), and this program's display. Scaled to the
/// measured time.
pub(crate) fn share_out(measurements: &mut [Measurement], own: &[CpuTime], total: ProcessTotal) {
    let ops = |m: &Measurement| m.ops.values().map(|op| op.count).sum::<u64>();
    let all: u64 = measurements.iter().map(ops).sum();
    let alone = measurements.len() == 1;
    let rest = |of: fn(&CpuTime) -> u64| of(&total.cpu).saturating_sub(own.iter().map(of).sum());
    let (user_ns, system_ns) = (rest(|cpu| cpu.user_ns), rest(|cpu| cpu.system_ns));
    for (measurement, own) in measurements.iter_mut().zip(own) {
        let part = if alone {
            1.0
        } else {
            ops(measurement) as f64 / all.max(1) as f64
        };
        let within = (measurement.wall_ns as f64 / total.ns as f64).min(1.0);
        let scaled = |own: u64, rest: u64| ((own as f64 + rest as f64 * part) * within) as u64;
        measurement.cpu = CpuTime {
            user_ns: scaled(own.user_ns, user_ns),
            system_ns: scaled(own.system_ns, system_ns),
        };
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
