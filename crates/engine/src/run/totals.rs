//! Figures that all workloads of a run share: CPU time of the process, counters of the devices.

use diskproof_device::{OpenTarget, Snapshot};
use diskproof_model::measurement::{ByteCount, CpuTime, Measurement, OpKind};
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
pub(crate) fn share_out(
    measurements: &mut [Measurement],
    own_descriptor: &[CpuTime],
    total: ProcessTotal,
) {
    let ops = |m: &Measurement| m.ops.values().map(|op| op.count).sum::<u64>();
    let all: u64 = measurements.iter().map(ops).sum();
    let alone = measurements.len() == 1;
    let rest = |of: fn(&CpuTime) -> u64| {
        of(&total.cpu).saturating_sub(own_descriptor.iter().map(of).sum())
    };
    let (user_ns, system_ns) = (rest(|cpu| cpu.user_ns), rest(|cpu| cpu.system_ns));
    for (measurement, own_descriptor) in measurements.iter_mut().zip(own_descriptor) {
        let part = if alone {
            1.0
        } else {
            ops(measurement) as f64 / all.max(1) as f64
        };
        let within = (measurement.wall_ns as f64 / total.ns as f64).min(1.0);
        let scaled = |own_descriptor: u64, rest: u64| {
            ((own_descriptor as f64 + rest as f64 * part) * within) as u64
        };
        measurement.cpu = CpuTime {
            user_ns: scaled(own_descriptor.user_ns, user_ns),
            system_ns: scaled(own_descriptor.system_ns, system_ns),
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
    let disks: Vec<BTreeSet<&str>> = targets
        .iter()
        .map(|t| {
            t.identity()
                .disks()
                .map(|disk| disk.name.as_str())
                .collect()
        })
        .collect();
    let asked: Vec<(usize, ByteCount)> = measurements.iter().map(|m| (m.target, m.asked)).collect();
    for (target, snapshot) in snapshots.into_iter().enumerate() {
        let sharing = asked
            .iter()
            .filter(|(other, _)| *other == target || !disks[target].is_disjoint(&disks[*other]));
        let all = sharing.fold(ByteCount::default(), |mut sum, (_, more)| {
            sum += *more;
            sum
        });
        let device = snapshot.finish(all);
        ask_windows(measurements, target, |other| {
            other == target || !disks[target].is_disjoint(&disks[other])
        });
        for measurement in measurements
            .iter_mut()
            .filter(|measurement| measurement.target == target)
        {
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
    let own: Vec<usize> = (0..measurements.len())
        .filter(|index| measurements[*index].target == target)
        .collect();
    for index in own {
        let mut windows = std::mem::take(&mut measurements[index].windows);
        for window in &mut windows {
            let bytes = |kind: OpKind| {
                let sharing = measurements.iter().filter(|m| is_sharing(m.target));
                let of_kind = sharing.filter_map(|m| m.ops.get(&kind));
                of_kind
                    .map(|op| {
                        op.series
                            .total_between(window.start_ns, window.end_ns)
                            .bytes
                    })
                    .sum::<u64>()
            };
            let mut asked = ByteCount::default();
            for kind in OpKind::REQUESTS {
                asked.add(kind, bytes(kind));
            }
            window.asked = asked;
        }
        measurements[index].windows = windows;
    }
}
