//! The disks below the targets, as the kernel counts their requests.

use diskproof_model::measurement::{DiskTimes, Measurement};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The requests of a disk.
#[derive(Debug, Clone)]
pub(super) struct UsedDisk {
    pub name: String,
    pub read_ops: u64,
    pub write_ops: u64,
    /// Merges and times, where the kernel counts them in all measurements.
    pub times: Option<DiskTimes>,
}

impl UsedDisk {
    /// The share of the time in which the disk had a request, in percent.
    pub(super) fn busy_percent(times: DiskTimes) -> f64 {
        (times.busy_ms as f64 * 100.0 / times.elapsed_ms.max(1) as f64).min(100.0)
    }
}

/// Each disk that was the only one below its target.
pub(super) fn used_disks(measurements: &[Measurement]) -> Vec<UsedDisk> {
    // Each with the end of what it counts.
    let mut disks: BTreeMap<&str, (UsedDisk, u64)> = BTreeMap::new();
    for measurement in measurements {
        let device = &measurement.device;
        let ([name], None) = (&device.disks[..], &device.unresolved) else {
            continue;
        };
        let own = UsedDisk {
            name: name.clone(),
            read_ops: device.read_ops,
            write_ops: device.write_ops,
            times: device.times,
        };
        let (start_ns, end_ns) = (
            measurement.start_ns,
            measurement.start_ns + measurement.wall_ns,
        );
        match disks.get_mut(name.as_str()) {
            None => {
                disks.insert(name, (own, end_ns));
            }
            Some((disk, until_ns)) => {
                // Concurrent measurements of a disk count the same requests.
                if start_ns >= *until_ns {
                    disk.read_ops += own.read_ops;
                    disk.write_ops += own.write_ops;
                    disk.times = disk.times.zip(own.times).map(|(a, b)| a.then(b));
                }
                *until_ns = end_ns.max(*until_ns);
            }
        }
    }
    disks.into_values().map(|(disk, _)| disk).collect()
}

/// The lines of the disks whose requests the kernel times.
pub(super) fn lines(disks: &[UsedDisk]) -> String {
    let mut text = String::new();
    for disk in disks {
        let Some(times) = disk.times else { continue };
        if text.is_empty() {
            text.push_str("\nDisk stats (read/write):\n");
        }
        let (name, read, write) = (&disk.name, disk.read_ops, disk.write_ops);
        let (read_merges, write_merges) = (times.read_merges, times.write_merges);
        let (read_ms, write_ms, queued_ms) = (times.read_ms, times.write_ms, times.queued_ms);
        let busy = UsedDisk::busy_percent(times);
        let _ = writeln!(
            text,
            "  {name}: ios={read}/{write}, merge={read_merges}/{write_merges}, \
             ticks={read_ms}/{write_ms}, in_queue={queued_ms}, util={busy:3.2}%"
        );
    }
    text
}
