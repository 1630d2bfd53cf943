//! What a disk can do, by a run that measured it, and the share of that a load takes.

use diskproof_model::measurement::OpKind;
use diskproof_model::observed::MeasuredCapacity;
use diskproof_model::plan::CachePolicy;
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::target::{Layer, LayerKind, TargetIdentity};
use diskproof_model::watch::{DeviceStep, DirectionStep};

/// Smaller requests do not show how many bytes a second the disk can move.
const BLOCK_BYTES_MIN: u32 = 64 << 10;
/// A direction that was never measured is ignored where it has at most this share of the load.
const IGNORED_SHARE: f64 = 0.01;
/// Below this share of the bytes seen by the disk's own counters, a cache answered.
const ACCOUNTED_MIN: f64 = 0.9;

/// Whether a run of this target measured the watched device: the same disk alone was below it, or
/// it is the device itself.
pub fn is_capacity_of(target: &TargetIdentity, watched: &TargetIdentity) -> bool {
    let Some(device) = watched.layers.first() else {
        return false;
    };
    let own = target.layers.first();
    if target.kind == watched.kind && own.is_some_and(|own| is_same_disk(own, device)) {
        return true;
    }
    let is_in_memory = |layer: &Layer| matches!(layer.kind, LayerKind::Loop | LayerKind::Zram);
    // A loop device may answer from the page cache of its file.
    if target.layers.iter().any(is_in_memory) {
        return false;
    }
    let below: Vec<&Layer> = target.disks().collect();
    matches!(below[..], [disk] if is_same_disk(disk, device))
}

/// By serial; by name, model and size where a disk has none.
fn is_same_disk(one: &Layer, other: &Layer) -> bool {
    let is_alike = (&one.model, one.size_bytes) == (&other.model, other.size_bytes);
    match (&one.serial, &other.serial) {
        (Some(one), Some(other)) => one == other && is_alike,
        (None, None) => {
            is_alike && one.name == other.name && one.backing_file == other.backing_file
        }
        _ => false,
    }
}

/// The most that the run measured on the watched device; `None` where it measured neither the
/// requests nor the bytes per second of a direction there, as one of single workloads or of layers.
pub fn disk_capacity(record: &Record, watched: &TargetIdentity) -> Option<MeasuredCapacity> {
    let is_of_device = |m: &&Row| {
        let target = record.targets.get(m.data.target);
        let accounted = m.data.device.accounted;
        target.is_some_and(|target| is_capacity_of(target, watched))
            && m.data.cache.used == CachePolicy::Direct
            && accounted.is_none_or(|share| share >= ACCOUNTED_MIN)
    };
    let measured: Vec<&Row> = record.measurements.iter().filter(is_of_device).collect();
    let most = |kind: OpKind, throughput: bool| {
        let is_large = |m: &&&Row| m.data.workload.block_bytes >= BLOCK_BYTES_MIN;
        let shown = measured.iter().filter(|m| !throughput || is_large(m));
        let ops = shown.filter_map(|m| m.op(kind));
        let rates = ops.map(|op| {
            if throughput {
                &op.figures.throughput
            } else {
                &op.figures.iops
            }
        });
        let known = rates.filter(|rate| rate.value > 0.0);
        Some(known.max_by(|a, b| a.cmp_certain(b))?.value)
    };
    let capacity = MeasuredCapacity {
        run_id: record.run_id.clone(),
        started: record.started.clone(),
        verb: record.plan.origin.verb.clone(),
        read_iops: most(OpKind::Read, false),
        read_bytes_per_second: most(OpKind::Read, true),
        write_iops: most(OpKind::Write, false),
        write_bytes_per_second: most(OpKind::Write, true),
    };
    let reads = capacity.read_iops.and(capacity.read_bytes_per_second);
    let writes = capacity.write_iops.and(capacity.write_bytes_per_second);
    reads.or(writes).is_some().then_some(capacity)
}

/// The load over the capacity: of each direction the larger of requests and bytes, reads and writes
/// added up. `None` where a direction with load was never measured. A device that was only read
/// has no limit of writes, and a filesystem writes a little even when it is only read.
pub(super) fn load_share(step: &DeviceStep, capacity: &MeasuredCapacity) -> Option<f64> {
    let all_iops = step.read.iops + step.write.iops;
    let all_bytes = step.read.bytes_per_second + step.write.bytes_per_second;
    let share = |load: &DirectionStep, iops: Option<f64>, bytes: Option<f64>| {
        let is_little = load.iops <= all_iops * IGNORED_SHARE
            && load.bytes_per_second <= all_bytes * IGNORED_SHARE;
        match iops.zip(bytes) {
            Some((iops, bytes)) => Some((load.iops / iops).max(load.bytes_per_second / bytes)),
            None => (load.ops == 0 || is_little).then_some(0.0),
        }
    };
    let c = capacity;
    let read = share(&step.read, c.read_iops, c.read_bytes_per_second)?;
    let write = share(&step.write, c.write_iops, c.write_bytes_per_second)?;
    Some(read + write)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn capacity_is_the_most_of_the_same_disk() {
        let record = fixture::record();
        let watched = record.targets[0].clone();
        let own = TargetIdentity {
            layers: watched.disks().cloned().collect(),
            ..watched
        };
        let capacity = disk_capacity(&record, &own).unwrap();
        let reads = record
            .measurements
            .iter()
            .filter_map(|m| m.op(OpKind::Read));
        let most = reads.map(|op| op.figures.iops.value).fold(0.0, f64::max);
        assert_eq!(capacity.read_iops, Some(most));
        let mut other = own.clone();
        other.layers[0].serial = Some("another".to_owned());
        assert_eq!(disk_capacity(&record, &other), None);
    }

    #[test]
    fn small_requests_alone_show_no_capacity() {
        let mut record = fixture::record();
        let watched = record.targets[0].clone();
        let layers = watched.disks().cloned().collect();
        let own = TargetIdentity { layers, ..watched };
        let block = |m: &Row| m.data.workload.block_bytes;
        let bytes = |record: &Record| disk_capacity(record, &own)?.read_bytes_per_second;
        assert!(bytes(&record).is_some());
        // As `check --layers` and `check --only random-read-d1` measure it.
        record.measurements.retain(|m| block(m) < BLOCK_BYTES_MIN);
        assert!(!record.measurements.is_empty());
        assert_eq!(disk_capacity(&record, &own), None);
    }

    #[test]
    fn load_is_the_larger_of_requests_and_bytes() {
        let capacity = MeasuredCapacity {
            run_id: String::new(),
            started: String::new(),
            verb: "check".to_owned(),
            read_iops: Some(1000.0),
            read_bytes_per_second: Some(1e8),
            write_iops: None,
            write_bytes_per_second: None,
        };
        let mut step = DeviceStep::default();
        assert_eq!(load_share(&step, &capacity), Some(0.0));
        step.read = DirectionStep {
            ops: 1,
            iops: 500.0,
            bytes_per_second: 8e7,
            ..DirectionStep::default()
        };
        assert_eq!(load_share(&step, &capacity), Some(0.8));
        // The journal of a filesystem that is only read.
        (step.write.ops, step.write.iops) = (1, 5.0);
        assert_eq!(load_share(&step, &capacity), Some(0.8));
        step.write.iops = 6.0;
        assert_eq!(load_share(&step, &capacity), None);
    }
}
