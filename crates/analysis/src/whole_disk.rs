//! Scales random figures of a file on a rotating disk to the whole disk. The arm moves less in a
//! file than across the disk, so the figures scale by the access times. Those of the file are
//! measured, those of the disk come from an earlier survey. docs/verdict.md states the rule.

use diskproof_model::measurement::OpKind;
use diskproof_model::record::{Estimate, Record};
use diskproof_model::trend::DiskAccess;

/// The finding that a workload covers a part of a rotating disk.
const SHORT_SPAN: &str = "short-span";

/// The relation of a workload's random reads to the whole disk.
pub(crate) struct WholeDisk<'a> {
    /// Bytes that the workload covers.
    pub(crate) span_bytes: u64,
    /// Bytes of the disk.
    pub(crate) disk_bytes: u64,
    /// The access times across the disk; `None` where no survey measured them.
    pub(crate) known: Option<KnownAccess<'a>>,
}

/// The access times of a whole disk, compared with those within a file on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownAccess<'a> {
    pub(crate) disk: &'a DiskAccess,
    /// The mean access time across the disk over that within the file; at least 1.
    pub(crate) slowdown: f64,
}

/// The relation of the workload with this index to the whole disk; `None` unless it covers a small
/// part of a rotating disk, as a finding says.
pub(crate) fn whole_disk(record: &Record, index: usize) -> Option<WholeDisk<'_>> {
    let has_short_span = record
        .findings
        .iter()
        .any(|finding| finding.code == SHORT_SPAN && finding.concerns(index));
    if !has_short_span {
        return None;
    }
    let row = &record.measurements[index];
    let disk = record.targets.get(row.data.target)?.disks().next()?;
    let known = match &record.plan.questions.disk_access {
        Some(known) if known.disk == disk.name => {
            slowdown(record, row.data.target, known).map(|slowdown| KnownAccess {
                disk: known,
                slowdown,
            })
        }
        _ => None,
    };
    Some(WholeDisk {
        span_bytes: row.data.span_bytes,
        disk_bytes: disk.size_bytes,
        known,
    })
}

/// Mean access across the disk over the mean access within the file, one request at a time.
fn slowdown(record: &Record, target: usize, known: &DiskAccess) -> Option<f64> {
    let single_reads = record
        .measurements
        .iter()
        .find(|row| row.data.target == target && row.data.workload.name == "random-read-d1")?;
    let within_ns = single_reads.op(OpKind::Read)?.figures.latency.mean;
    if within_ns > 0.0 && known.mean.value > 0.0 {
        Some((known.mean.value / within_ns).max(1.0))
    } else {
        None
    }
}

/// A rate within the file, scaled to the whole disk.
pub(crate) fn scaled_rate(rate: &Estimate, known: KnownAccess<'_>) -> Estimate {
    let own = rate.relative_half_width();
    let width = own.map(|own| own.hypot(known.disk.mean.relative_half_width().unwrap_or(0.0)));
    let value = rate.value / known.slowdown;
    Estimate {
        value,
        half_width_95: width.map(|width| width * value),
        ..rate.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn rates_scale_by_the_access_times() {
        // 0.5 ms within the file, 2 ms across the disk.
        let (record, index) = (fixture::on_rotating_disk(true), 2);
        let whole = whole_disk(&record, index).unwrap();
        let known = whole.known.unwrap();
        assert!((known.slowdown - 4.0).abs() < 0.01, "{known:?}");
        let rate = &record.measurements[index].figures.ops[&OpKind::Read].iops;
        assert_eq!(rate.value, 2000.0);
        let scaled = scaled_rate(rate, known);
        assert!((scaled.value - 500.0).abs() < 1.0, "{scaled:?}");
        assert!(scaled.relative_half_width().unwrap() >= 0.02);
        assert!(
            whole_disk(&record, 1).is_none(),
            "sequential reads do not seek"
        );
        let unknown = fixture::on_rotating_disk(false);
        assert!(whole_disk(&unknown, index).unwrap().known.is_none());
        assert!(whole_disk(&fixture::record(), index).is_none());
    }
}
