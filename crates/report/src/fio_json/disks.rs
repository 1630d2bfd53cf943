//! `disk_util`: the kernel's counters of the disks, as far as the record has them.

use super::form::object;

use diskproof_model::record::{MeasurementRecord, Record};
use serde_json::Value;
use std::collections::BTreeMap;

/// The unit of the kernel's counters on every disk (Documentation/block/stat.rst).
const SECTOR_BYTES: u64 = 512;

/// The operations of a disk.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    read_ops: u64,
    write_ops: u64,
    read_bytes: u64,
    write_bytes: u64,
}

/// The operations of a disk between two times, in nanoseconds after the start of the run.
#[derive(Debug, Clone, Copy)]
struct CountedTime {
    start_ns: u64,
    end_ns: u64,
    counts: Counts,
}

/// Each disk that was the only one below its targets, over all measurements. For a target on
/// several disks the record has only their sum.
pub(super) fn of(record: &Record) -> Vec<Value> {
    let mut disks: BTreeMap<&str, Vec<CountedTime>> = BTreeMap::new();
    for m in &record.measurements {
        if let ([disk], None) = (&m.device.disks[..], &m.device.unresolved) {
            disks.entry(disk).or_default().push(window(m));
        }
    }
    let disks = disks.into_iter();
    disks
        .map(|(name, windows)| disk(name, sum(windows)))
        .collect()
}

fn window(m: &MeasurementRecord) -> CountedTime {
    let start_ns = m.steady_start_ns();
    CountedTime {
        start_ns,
        // Slices lie between those of other workloads, and none of them overlap.
        end_ns: match m.slices.is_empty() {
            true => m.start_ns.saturating_add(m.wall_ns),
            false => start_ns,
        },
        counts: Counts {
            read_ops: m.device.read_ops,
            write_ops: m.device.write_ops,
            read_bytes: m.device.read_bytes,
            write_bytes: m.device.write_bytes,
        },
    }
}

/// Concurrent measurements contain the same operations of the disk, which count once.
fn sum(mut windows: Vec<CountedTime>) -> Counts {
    windows.sort_by_key(|window| window.start_ns);
    let mut apart: Vec<CountedTime> = Vec::new();
    for window in windows {
        match apart
            .last_mut()
            .filter(|last| window.start_ns < last.end_ns)
        {
            Some(last) => {
                last.end_ns = last.end_ns.max(window.end_ns);
                last.counts = last.counts.combine(window.counts, u64::max);
            }
            None => apart.push(window),
        }
    }
    apart.iter().fold(Counts::default(), |sum, window| {
        sum.combine(window.counts, u64::saturating_add)
    })
}

impl Counts {
    fn combine(self, other: Self, by: fn(u64, u64) -> u64) -> Self {
        Self {
            read_ops: by(self.read_ops, other.read_ops),
            write_ops: by(self.write_ops, other.write_ops),
            read_bytes: by(self.read_bytes, other.read_bytes),
            write_bytes: by(self.write_bytes, other.write_bytes),
        }
    }
}

fn disk(name: &str, counts: Counts) -> Value {
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
        let window = |start_ns, end_ns, read_ops| CountedTime {
            start_ns,
            end_ns,
            counts: Counts {
                read_ops,
                ..Counts::default()
            },
        };
        assert_eq!(
            sum(vec![
                window(10, 20, 1),
                window(0, 10, 2),
                window(12, 18, 5),
                window(19, 30, 3)
            ])
            .read_ops,
            7
        );
    }
}
