//! What happened between two readings of the kernel's counters.

use diskproof_model::watch::{DeviceStep, DirectionCounters, DirectionStep, DiskReading};

const SECTOR_BYTES: u64 = 512;
/// Times are 32 bits wide in the kernel, and so is every counter of a 32-bit kernel.
const WIDTH: u64 = 1 << 32;
/// A step of a counter that is larger than this is no step: the device was replaced.
const STEP_MAX: u64 = 1 << 31;

/// The step of a device; `None` where its counters went backwards, because another device took the
/// name.
pub(super) fn step(
    before: &DiskReading,
    after: &DiskReading,
    length_ns: u64,
) -> Option<DeviceStep> {
    let read = direction(before.read, after.read, length_ns)?;
    let write = direction(before.write, after.write, length_ns)?;
    let flush_ops = match (before.flush_ops, after.flush_ops) {
        (Some(before), Some(after)) => Some(difference(before, after)?),
        _ => None,
    };
    let queued_ms = difference(before.queued_ms, after.queued_ms)?;
    Some(DeviceStep {
        name: after.name.clone(),
        read,
        write,
        flush_ops,
        in_flight: after.in_flight,
        depth: queued_ms as f64 * 1e6 / length_ns.max(1) as f64,
        ..DeviceStep::default()
    })
}

fn direction(
    before: DirectionCounters,
    after: DirectionCounters,
    length_ns: u64,
) -> Option<DirectionStep> {
    let ops = difference(before.ops, after.ops)?;
    let bytes = difference(before.sectors, after.sectors)?.saturating_mul(SECTOR_BYTES);
    let ms = difference(before.ms, after.ms)?;
    let per_second = |amount: u64| amount as f64 * 1e9 / length_ns.max(1) as f64;
    Some(DirectionStep {
        ops,
        merges: difference(before.merges, after.merges)?,
        bytes,
        iops: per_second(ops),
        bytes_per_second: per_second(bytes),
        latency_ns: (ops > 0).then(|| ms as f64 * 1e6 / ops as f64),
    })
}

/// How far a counter went, over the end of its width if need be.
fn difference(before: u64, after: u64) -> Option<u64> {
    match after.checked_sub(before) {
        Some(step) => Some(step),
        None if before < WIDTH => {
            let step = after + (WIDTH - before);
            (step < STEP_MAX).then_some(step)
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
        let step = step(&reading(100, 0, 50), &reading(300, 3200, 1050), 500_000_000).unwrap();
        assert_eq!((step.read.ops, step.read.bytes), (200, 3200 * 512));
        assert!((step.read.iops - 400.0).abs() < 1e-9);
        assert!((step.read.bytes_per_second - 3_276_800.0).abs() < 1e-6);
        assert_eq!(step.read.latency_ns, Some(5e6));
        assert!((step.depth - 2.0).abs() < 1e-9);
        assert_eq!((step.write.ops, step.write.latency_ns), (0, None));
    }

    #[test]
    fn counter_that_wraps_counts_on_and_a_replaced_device_does_not() {
        assert_eq!(difference(WIDTH - 10, 5), Some(15));
        assert_eq!(difference(7, 7), Some(0));
        // A new device of the same name begins at zero.
        assert_eq!(difference(1_000_000, 3), None);
        assert_eq!(difference(WIDTH + 1, 3), None);
        assert!(step(&reading(9, 9, 9), &reading(3, 9, 9), 1).is_none());
    }
}
