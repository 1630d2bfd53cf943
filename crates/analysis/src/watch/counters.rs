//! Computes the load of a device between two readings of the kernel's counters.

use super::profile::SECTOR_BYTES;
use diskproof_model::watch::{DeviceStep, DirectionCounters, DirectionStep, DiskReading};

/// Times are 32 bits wide, and so is every counter of a 32-bit kernel (Documentation/admin-guide/
/// iostats.rst).
const WIDTH: u64 = 1 << 32;
/// A counter that went backwards has wrapped if that makes its step smaller than this. Otherwise
/// another device took the name.
const WRAPPED_STEP_MAX: u64 = 1 << 31;

/// The load of a device between two readings that lie `length_ns` apart; `None` where its counters
/// went backwards, because another device took the name.
pub(super) fn step_between(
    before: &DiskReading,
    after: &DiskReading,
    length_ns: u64,
) -> Option<DeviceStep> {
    let read = direction_between(before.read, after.read, length_ns)?;
    let write = direction_between(before.write, after.write, length_ns)?;
    let flush_ops = match (before.flush_ops, after.flush_ops) {
        (Some(before), Some(after)) => Some(counted_between(before, after)?),
        _ => None,
    };
    let queued_ms = counted_between(before.queued_ms, after.queued_ms)?;
    Some(DeviceStep {
        name: after.name.clone(),
        read,
        write,
        flush_ops,
        in_flight: after.in_flight,
        depth: queued_ms as f64 * 1e6 / length_ns.max(1) as f64,
        // The observer adds what these counters do not have: seeks, threads and load.
        ..DeviceStep::default()
    })
}

/// The load of one direction between two readings; `None` where a counter went backwards.
fn direction_between(
    before: DirectionCounters,
    after: DirectionCounters,
    length_ns: u64,
) -> Option<DirectionStep> {
    let ops = counted_between(before.ops, after.ops)?;
    let bytes = counted_between(before.sectors, after.sectors)?.saturating_mul(SECTOR_BYTES);
    let ms = counted_between(before.ms, after.ms)?;
    let latency_ns = if ops > 0 {
        Some(ms as f64 * 1e6 / ops as f64)
    } else {
        None
    };
    Some(DirectionStep {
        ops,
        merges: counted_between(before.merges, after.merges)?,
        bytes,
        iops: per_second(ops, length_ns),
        bytes_per_second: per_second(bytes, length_ns),
        latency_ns,
    })
}

fn per_second(amount: u64, length_ns: u64) -> f64 {
    amount as f64 * 1e9 / length_ns.max(1) as f64
}

/// The increase of a counter between two readings, which may pass the end of its width; `None`
/// where it went backwards.
fn counted_between(before: u64, after: u64) -> Option<u64> {
    match after.checked_sub(before) {
        Some(step) => Some(step),
        None if before < WIDTH => {
            let step = after + (WIDTH - before);
            if step < WRAPPED_STEP_MAX {
                Some(step)
            } else {
                None
            }
        }
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(ops: u64, sectors: u64, ms: u64) -> DiskReading {
        DiskReading {
            name: "sda".to_owned(),
            read: DirectionCounters {
                ops,
                merges: 0,
                sectors,
                ms,
            },
            queued_ms: ms,
            ..DiskReading::default()
        }
    }

    #[test]
    fn rates_latency_and_depth_follow_from_two_readings() {
        let step =
            step_between(&reading(100, 0, 50), &reading(300, 3200, 1050), 500_000_000).unwrap();
        assert_eq!((step.read.ops, step.read.bytes), (200, 3200 * 512));
        assert!((step.read.iops - 400.0).abs() < 1e-9);
        assert!((step.read.bytes_per_second - 3_276_800.0).abs() < 1e-6);
        assert_eq!(step.read.latency_ns, Some(5e6));
        assert!((step.depth - 2.0).abs() < 1e-9);
        assert_eq!((step.write.ops, step.write.latency_ns), (0, None));
    }

    #[test]
    fn counter_that_wraps_counts_on_and_a_replaced_device_does_not() {
        assert_eq!(counted_between(WIDTH - 10, 5), Some(15));
        assert_eq!(counted_between(7, 7), Some(0));
        // A new device of the same name begins at zero.
        assert_eq!(counted_between(1_000_000, 3), None);
        assert_eq!(counted_between(WIDTH + 1, 3), None);
        assert!(step_between(&reading(9, 9, 9), &reading(3, 9, 9), 1).is_none());
    }
}
