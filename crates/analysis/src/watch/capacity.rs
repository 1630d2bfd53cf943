//! Finds the capacity of a watched disk in the record of a run that measured it, and computes the
//! share of it that a load takes.

use diskproof_model::measurement::OpKind;
use diskproof_model::observed::MeasuredCapacity;
use diskproof_model::plan::CachePolicy;
use diskproof_model::proof::FigureSource;
use diskproof_model::record::{Estimate, Record};
use diskproof_model::row::Row;
use diskproof_model::target::{Layer, LayerKind, TargetIdentity};
use diskproof_model::watch::{DeviceStep, DirectionStep};

/// Smaller requests do not show how many bytes per second the disk can move. Chosen, not measured.
const BLOCK_BYTES_MIN: u32 = 64 << 10;
/// A direction that was never measured is ignored where it has at most this share of the load.
/// Chosen, not measured.
const IGNORED_SHARE: f64 = 0.01;
/// A cache answered if the disk's own counters show less than this share of the bytes. Chosen, not
/// measured.
const ACCOUNTED_MIN: f64 = 0.9;

/// True if a run of this target measured the watched device: the same disk alone was below it, or
/// it is the device itself.
pub fn is_capacity_of(target: &TargetIdentity, watched: &TargetIdentity) -> bool {
    let Some(device) = watched.layers.first() else {
        return false;
    };
    if target.kind == watched.kind
        && let Some(own) = target.layers.first()
        && is_same_disk(own, device)
    {
        return true;
    }
    for layer in &target.layers {
        // A loop device may answer from the page cache of its file.
        if matches!(layer.kind, LayerKind::Loop | LayerKind::Zram) {
            return false;
        }
    }
    let below: Vec<&Layer> = target.disks().collect();
    matches!(below[..], [disk] if is_same_disk(disk, device))
}

/// True if two layers are the same disk: by serial number, or by name and backing file where
/// neither has one. Model and size must be equal in both cases.
fn is_same_disk(one: &Layer, other: &Layer) -> bool {
    let is_same_kind = (&one.model, one.size_bytes) == (&other.model, other.size_bytes);
    match (&one.serial, &other.serial) {
        (Some(one), Some(other)) => one == other && is_same_kind,
        (None, None) => {
            is_same_kind && one.name == other.name && one.backing_file == other.backing_file
        }
        _ => false,
    }
}

/// The most that the run measured on the watched device. `None` unless it measured both the
/// requests and the bytes per second of a direction there, by figures that are the disk's.
pub fn disk_capacity(record: &Record, watched: &TargetIdentity) -> Option<MeasuredCapacity> {
    let mut measured = Vec::new();
    for (index, row) in record.measurements.iter().enumerate() {
        if let Some(target) = record.targets.get(row.data.target)
            && is_capacity_of(target, watched)
            && is_answered_by_disk(row)
            && record.objection(FigureSource::Measurement(index)).is_none()
        {
            measured.push(row);
        }
    }
    let capacity = MeasuredCapacity {
        run_id: record.run_id.clone(),
        started: record.started.clone(),
        verb: record.plan.origin.verb.clone(),
        read_iops: highest_iops(&measured, OpKind::Read),
        read_bytes_per_second: highest_throughput(&measured, OpKind::Read),
        write_iops: highest_iops(&measured, OpKind::Write),
        write_bytes_per_second: highest_throughput(&measured, OpKind::Write),
    };
    let has_reads = capacity.read_iops.is_some() && capacity.read_bytes_per_second.is_some();
    let has_writes = capacity.write_iops.is_some() && capacity.write_bytes_per_second.is_some();
    if has_reads || has_writes {
        Some(capacity)
    } else {
        None
    }
}

/// True if the disk answered, not a cache.
fn is_answered_by_disk(row: &Row) -> bool {
    let is_accounted = match row.data.device.accounted {
        Some(share) => share >= ACCOUNTED_MIN,
        None => true,
    };
    row.data.cache.used == CachePolicy::Direct && is_accounted
}

/// The highest measured rate of one kind of operation, in requests.
fn highest_iops(measured: &[&Row], kind: OpKind) -> Option<f64> {
    let mut rates = Vec::new();
    for row in measured {
        if let Some(op) = row.op(kind) {
            rates.push(&op.figures.iops);
        }
    }
    highest(&rates)
}

/// As [`highest_iops`], in bytes, and of large blocks only.
fn highest_throughput(measured: &[&Row], kind: OpKind) -> Option<f64> {
    let mut rates = Vec::new();
    for row in measured {
        if row.data.workload.block_bytes < BLOCK_BYTES_MIN {
            continue;
        }
        if let Some(op) = row.op(kind) {
            rates.push(&op.figures.throughput);
        }
    }
    highest(&rates)
}

/// The value of the rate that is certainly the highest.
fn highest(rates: &[&Estimate]) -> Option<f64> {
    let highest = rates
        .iter()
        .filter(|rate| rate.value > 0.0)
        .max_by(|one, other| one.cmp_certain(other))?;
    Some(highest.value)
}

/// The load over the capacity: of each direction the larger of requests and bytes, reads and writes
/// added up. `None` where a direction with load was never measured. A device that was only read
/// has no limit of writes, and a filesystem writes a little even when it is only read.
pub(super) fn load_share(step: &DeviceStep, capacity: &MeasuredCapacity) -> Option<f64> {
    let directions = directions(step, capacity);
    for direction in &directions {
        if direction.share().is_none() && !is_negligible(direction.load, step) {
            return None;
        }
    }
    Some(known_load(step, capacity))
}

/// The load over the capacity, of those directions that a run measured. The others count as 0.
pub(super) fn known_load(step: &DeviceStep, capacity: &MeasuredCapacity) -> f64 {
    let mut known = 0.0;
    for direction in directions(step, capacity) {
        known += direction.share().unwrap_or(0.0);
    }
    known
}

/// The load of one direction, and the most that the disk can do in it.
struct DirectionLoad<'a> {
    load: &'a DirectionStep,
    /// Per second, like `bytes_max`; `None` where no run measured it.
    iops_max: Option<f64>,
    bytes_max: Option<f64>,
}

/// The reads and the writes of a step, each with what was measured of it.
fn directions<'a>(step: &'a DeviceStep, capacity: &MeasuredCapacity) -> [DirectionLoad<'a>; 2] {
    [
        DirectionLoad {
            load: &step.read,
            iops_max: capacity.read_iops,
            bytes_max: capacity.read_bytes_per_second,
        },
        DirectionLoad {
            load: &step.write,
            iops_max: capacity.write_iops,
            bytes_max: capacity.write_bytes_per_second,
        },
    ]
}

impl DirectionLoad<'_> {
    /// The larger of the shares of requests and of bytes; `None` where a limit is unknown.
    fn share(&self) -> Option<f64> {
        let requests_share = self.load.iops / self.iops_max?;
        let bytes_share = self.load.bytes_per_second / self.bytes_max?;
        Some(requests_share.max(bytes_share))
    }
}

/// True if a direction does next to nothing of the load of its step.
fn is_negligible(load: &DirectionStep, step: &DeviceStep) -> bool {
    let all_iops = step.read.iops + step.write.iops;
    let all_bytes = step.read.bytes_per_second + step.write.bytes_per_second;
    let is_little =
        load.iops <= all_iops * IGNORED_SHARE && load.bytes_per_second <= all_bytes * IGNORED_SHARE;
    load.ops == 0 || is_little
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::measurement::Measurement;

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
    fn figures_that_are_not_the_disks_are_no_capacity() {
        let run = fixture::run();
        let watched = TargetIdentity {
            layers: run.facts.targets[0].disks().cloned().collect(),
            ..run.facts.targets[0].clone()
        };
        let is_known = |change: fn(&mut Measurement)| {
            let record = fixture::all_faulty(change);
            disk_capacity(&record, &watched).is_some_and(|found| found.read_iops.is_some())
        };
        assert!(is_known(|_| {}));
        assert!(!is_known(|m| m.unwritten_bytes = Some(m.span_bytes)));
        assert!(!is_known(|m| {
            for op in m.ops.values_mut() {
                op.errors.insert("EIO".to_owned(), op.count);
            }
        }));
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
