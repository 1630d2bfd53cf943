//! The disks below the targets, with their requests, as fio writes them (`disk_util`).

use super::object::object;
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::units::SECTOR_BYTES;
use serde_json::Value;
use std::collections::BTreeMap;

/// Requests and bytes of a disk.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct DiskCounts {
    read_ops: u64,
    write_ops: u64,
    read_bytes: u64,
    write_bytes: u64,
}

impl DiskCounts {
    /// Combines each count with that of another disk or time.
    fn combined(self, other: Self, combine: fn(u64, u64) -> u64) -> Self {
        Self {
            read_ops: combine(self.read_ops, other.read_ops),
            write_ops: combine(self.write_ops, other.write_ops),
            read_bytes: combine(self.read_bytes, other.read_bytes),
            write_bytes: combine(self.write_bytes, other.write_bytes),
        }
    }
}

/// The counts of a disk between two times, in nanoseconds after the start of the run.
#[derive(Debug, Clone, Copy)]
struct CountedTime {
    start_ns: u64,
    end_ns: u64,
    counts: DiskCounts,
}

/// An entry of `disk_util` for each disk that was the only one below a target, summed over its
/// measurements. A target on several disks has none: the record has only the sum of them.
pub(super) fn disk_objects(record: &Record) -> Vec<Value> {
    let mut times: BTreeMap<&str, Vec<CountedTime>> = BTreeMap::new();
    for row in &record.measurements {
        let device = &row.data.device;
        if let ([disk], None) = (&device.disks[..], &device.unresolved) {
            times.entry(disk).or_default().push(counted_time(row));
        }
    }
    let mut disks = Vec::new();
    for (name, times) in times {
        disks.push(disk_object(name, summed_counts(times)));
    }
    disks
}

/// The counts of a row, and a time that only rows measured at the same instants share.
fn counted_time(row: &Row) -> CountedTime {
    let device = &row.data.device;
    let (start_ns, wall_ns) = match row.data.slices.first() {
        // The slices of other workloads lie between these. Those of other targets may be at the
        // same instants, and their counts have the same requests.
        Some(first) => (first.start_ns, first.wall_ns),
        None => {
            let start_ns = row.steady_start_ns();
            let end_ns = row.data.start_ns.saturating_add(row.data.wall_ns);
            (start_ns, end_ns.saturating_sub(start_ns))
        }
    };
    CountedTime {
        start_ns,
        end_ns: start_ns.saturating_add(wall_ns),
        counts: DiskCounts {
            read_ops: device.read_ops,
            write_ops: device.write_ops,
            read_bytes: device.read_bytes,
            write_bytes: device.write_bytes,
        },
    }
}

/// The sum of the counts. Of measurements at the same time the larger counts are taken: both
/// contain the same requests.
fn summed_counts(mut times: Vec<CountedTime>) -> DiskCounts {
    times.sort_by_key(|time| time.start_ns);
    let mut apart: Vec<CountedTime> = Vec::new();
    for time in times {
        match apart.last_mut() {
            Some(last) if time.start_ns < last.end_ns => {
                last.end_ns = last.end_ns.max(time.end_ns);
                last.counts = last.counts.combined(time.counts, u64::max);
            }
            _ => apart.push(time),
        }
    }
    let mut sum = DiskCounts::default();
    for time in apart {
        sum = sum.combined(time.counts, u64::saturating_add);
    }
    sum
}

fn disk_object(name: &str, counts: DiskCounts) -> Value {
    object([
        ("name", name.into()),
        ("read_ios", counts.read_ops.into()),
        ("write_ios", counts.write_ops.into()),
        ("read_sectors", (counts.read_bytes / SECTOR_BYTES).into()),
        ("write_sectors", (counts.write_bytes / SECTOR_BYTES).into()),
    ])
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_windows_count_once() {
        let mut times = Vec::new();
        for (start_ns, end_ns, read_ops) in [(10, 20, 1), (0, 10, 2), (12, 18, 5), (19, 30, 3)] {
            let counts = DiskCounts {
                read_ops,
                ..DiskCounts::default()
            };
            times.push(CountedTime {
                start_ns,
                end_ns,
                counts,
            });
        }
        let expected = DiskCounts {
            read_ops: 7,
            ..DiskCounts::default()
        };
        assert_eq!(summed_counts(times), expected);
    }
}
