//! `disk_util`: the kernel's counters of the disks, as far as the record has them.

use super::form::object;

use diskproof_model::record::{MeasurementRecord, Record};
use serde_json::Value;
use std::collections::BTreeMap;

/// The unit of the kernel's counters on every disk (Documentation/block/stat.rst).
const SECTOR_BYTES: u64 = 512;

/// The operations of a disk: reads, writes, and the bytes of each.
type Counts = [u64; 4];

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
    let (start_ns, device) = (m.steady_start_ns(), &m.device);
    CountedTime {
        start_ns,
        // Slices lie between those of other workloads, and none of them overlap.
        end_ns: if m.slices.is_empty() {
            m.start_ns.saturating_add(m.wall_ns)
        } else {
            start_ns
        },
        counts: [
            device.read_ops,
            device.write_ops,
            device.read_bytes,
            device.write_bytes,
        ],
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
                last.counts = combined(last.counts, window.counts, u64::max);
            }
            None => apart.push(window),
        }
    }
    let counts = apart.iter().map(|window| window.counts);
    counts.fold([0; 4], |sum, counts| {
        combined(sum, counts, u64::saturating_add)
    })
}

fn combined(one: Counts, other: Counts, by: fn(u64, u64) -> u64) -> Counts {
    std::array::from_fn(|index| by(one[index], other[index]))
}

fn disk(name: &str, [read_ops, write_ops, read_bytes, write_bytes]: Counts) -> Value {
    object([
        ("name", name.into()),
        ("read_ios", read_ops.into()),
        ("write_ios", write_ops.into()),
        ("read_sectors", (read_bytes / SECTOR_BYTES).into()),
        ("write_sectors", (write_bytes / SECTOR_BYTES).into()),
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
            counts: [read_ops, 0, 0, 0],
        };
        let windows = vec![
            window(10, 20, 1),
            window(0, 10, 2),
            window(12, 18, 5),
            window(19, 30, 3),
        ];
        assert_eq!(sum(windows), [7, 0, 0, 0]);
    }
}
