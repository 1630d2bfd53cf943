//! The disks below the targets, as the kernel counts their requests.

use diskproof_model::measurement::{DiskTimes, Measurement};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The requests of a disk.
#[derive(Debug, Clone, Default)]
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
    let mut disks: BTreeMap<&str, UsedDisk> = BTreeMap::new();
    let mut until_ns = 0;
    for measurement in measurements {
        let device = &measurement.device;
        // Concurrent measurements count the same requests.
        let is_new = measurement.start_ns >= until_ns;
        until_ns = until_ns.max(measurement.start_ns + measurement.wall_ns);
        if let ([name], None, true) = (&device.disks[..], &device.unresolved, is_new) {
            let is_first = !disks.contains_key(name.as_str());
            let disk = disks.entry(name).or_default();
            disk.name.clone_from(name);
            disk.times = match is_first {
                true => device.times,
                false => disk.times.zip(device.times).map(|(a, b)| a.then(b)),
            };
            disk.read_ops += device.read_ops;
            disk.write_ops += device.write_ops;
        }
    }
    disks.into_values().collect()
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
