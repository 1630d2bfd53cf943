//! What random figures of a file on a rotating disk mean for the whole disk. The arm moves less in
//! a file than across the disk, so the figures scale by the access times: those of the file are
//! measured, those of the disk come from an earlier survey. docs/verdict.md states the rule.

use diskproof_model::measurement::OpKind;
use diskproof_model::record::{Estimate, Record};
use diskproof_model::row::Row;
use diskproof_model::trend::DiskAccess;

/// The finding that a workload covers a small part of a rotating disk.
const SHORT_SPAN: &str = "short-span";

/// How the random reads of a workload relate to the whole disk.
pub(crate) struct WholeDisk<'a> {
    /// Bytes that the workload covers.
    pub(crate) span_bytes: u64,
    /// Bytes of the disk.
    pub(crate) disk_bytes: u64,
    /// What is known of the disk, and its mean access time over that within the file.
    pub(crate) known: Option<(&'a DiskAccess, f64)>,
}

/// Of the workload with this index, where the finding concerns it.
pub(crate) fn whole_disk(record: &Record, index: usize) -> Option<WholeDisk<'_>> {
    let has_short_span = record
        .findings
        .iter()
        .any(|finding| finding.code == SHORT_SPAN && finding.concerns(index));
    if !has_short_span {
        return None;
    }
    let m = &record.measurements[index];
    let disk = record.targets.get(m.data.target)?.disks().next()?;
    let known = match &record.plan.questions.disk_access {
        Some(known) if known.disk == disk.name => {
            slowdown(record, m, known).map(|slowdown| (known, slowdown))
        }
        _ => None,
    };
    Some(WholeDisk {
        span_bytes: m.data.span_bytes,
        disk_bytes: disk.size_bytes,
        known,
    })
}

/// Mean access across the disk over the mean access within the file, one request at a time.
fn slowdown(record: &Record, m: &Row, known: &DiskAccess) -> Option<f64> {
    let one = record.measurements.iter().find(|one| {
        let w = &one.data.workload;
        one.data.target == m.data.target && w.name == "random-read-d1"
    })?;
    let within_ns = one.op(OpKind::Read)?.figures.latency.mean;
    if within_ns > 0.0 && known.mean.value > 0.0 {
        Some((known.mean.value / within_ns).max(1.0))
    } else {
        None
    }
}

/// A rate within the file, as it is across the disk.
pub(crate) fn scaled(rate: &Estimate, known: &DiskAccess, slowdown: f64) -> Estimate {
    let own = rate.relative_half_width();
    let width = own.map(|own| own.hypot(known.mean.relative_half_width().unwrap_or(0.0)));
    let value = rate.value / slowdown;
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
        let (known, slowdown) = whole.known.unwrap();
        assert!((slowdown - 4.0).abs() < 0.01, "{slowdown}");
        let rate = &record.measurements[index].figures.ops[&OpKind::Read].iops;
        assert_eq!(rate.value, 2000.0);
        let scaled = scaled(rate, known, slowdown);
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
