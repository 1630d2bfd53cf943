//! What all entries of a run share: when it was, the rates of its groups, and the disks below its
//! targets as the kernel counts their requests.

use super::stats::{DirectionStats, JobEntry};
use crate::jobs::JobOption;
use diskproof_model::measurement::{DiskTimes, Measurement};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The version of fio whose output this is.
pub(super) const EMULATES: &str = "fio-3.33";

/// What all entries of a run share.
pub(super) struct RunFrame<'a> {
    pub unix_ns: u64,
    pub time: String,
    pub elapsed_s: u64,
    pub global: &'a [JobOption],
    pub disks: Vec<UsedDisk>,
    pub entries: &'a [JobEntry],
}

impl RunFrame<'_> {
    /// The directions of an entry, each with the bytes per second of its group.
    pub(super) fn directions<'b>(
        &self,
        entry: &'b JobEntry,
    ) -> impl Iterator<Item = (&'b DirectionStats, u64)> {
        entry.directions.iter().enumerate().map(|(index, stats)| {
            let members = self.entries.iter().filter(|one| one.group == entry.group);
            let total = GroupTotal::of(members.map(|one| &one.directions[index]));
            (stats, total.map_or(0, |total| total.rate()))
        })
    }
}

/// The sums of a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupTotal {
    pub bytes: u64,
    pub ms_min: u64,
    pub ms_max: u64,
    pub rate_min: u64,
    pub rate_max: u64,
}

impl GroupTotal {
    /// The sums of one direction over all entries of a group; `None` without operations.
    pub(super) fn of<'a>(all: impl Iterator<Item = &'a DirectionStats>) -> Option<Self> {
        let each = all.filter(|stats| stats.count > 0).map(|stats| {
            let (rate_min, rate_max) = stats.rates.unwrap_or_default();
            Self {
                bytes: stats.bytes,
                ms_min: stats.runtime_ms,
                ms_max: stats.runtime_ms,
                rate_min,
                rate_max,
            }
        });
        each.reduce(|sum, one| Self {
            bytes: sum.bytes + one.bytes,
            ms_min: sum.ms_min.min(one.ms_min),
            ms_max: sum.ms_max.max(one.ms_max),
            rate_min: sum.rate_min.min(one.rate_min),
            rate_max: sum.rate_max.max(one.rate_max),
        })
    }

    /// Bytes per second.
    pub(super) fn rate(&self) -> u64 {
        (u128::from(self.bytes) * 1000 / u128::from(self.ms_max.max(1))) as u64
    }
}

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
    /// Requests, merges and milliseconds, each of reads and of writes, the milliseconds of all
    /// requests, and the percentage of the time in which it had one.
    pub(super) fn figures(&self) -> Option<([u64; 7], f64)> {
        let times = self.times?;
        let counts = [
            self.read_ops,
            self.write_ops,
            times.read_merges,
            times.write_merges,
            times.read_ms,
            times.write_ms,
            times.queued_ms,
        ];
        let busy = times.busy_ms as f64 * 100.0 / times.elapsed_ms.max(1) as f64;
        Some((counts, busy.min(100.0)))
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
        let start_ns = measurement.start_ns;
        let end_ns = start_ns + measurement.wall_ns;
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
        let Some((counts, busy)) = disk.figures() else {
            continue;
        };
        let pair = |at: usize| format!("{}/{}", counts[at], counts[at + 1]);
        let (ios, merges, ticks, queued) = (pair(0), pair(2), pair(4), counts[6]);
        if text.is_empty() {
            text.push_str("\nDisk stats (read/write):\n");
        }
        let _ = writeln!(
            text,
            "  {}: ios={ios}, merge={merges}, ticks={ticks}, in_queue={queued}, util={busy:3.2}%",
            disk.name
        );
    }
    text
}
