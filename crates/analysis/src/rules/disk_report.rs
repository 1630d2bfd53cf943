//! Builds the observations of the rules on disk health. Such a rule examines one `DiskHealth`,
//! without a measurement, and cites the source of its threshold. Its places begin at the disk.

use super::rule::*;
use diskproof_model::health::DiskHealth;

/// One sector is enough. After the first pending one, rotating disks were 16 times as likely to
/// fail within 60 days, and 21 times after the first that a background scan found; after the first
/// reallocated one 14 times (Pinheiro, Weber, Barroso: Failure Trends in a Large Disk Drive
/// Population, FAST '07). Backblaze investigates any count above zero (What SMART Stats Tell Us
/// About Hard Drives, 2016).
pub(super) const SECTORS_MAX: u64 = 0;

/// An observation at this place of the disk.
pub(super) fn seen_at(
    place: &str,
    observed: impl Into<f64>,
    threshold: impl Into<f64>,
    unit: &str,
) -> Evidence {
    evidence_at(place, observed.into(), threshold.into(), unit)
}

/// A count at this place of the disk.
pub(super) fn counted_at(place: &str, observed: u64, threshold: u64) -> Evidence {
    evidence_at(place, observed as f64, threshold as f64, "1")
}

/// True if the disk reports that nothing turns; false where it does not report it.
pub(super) fn is_flash(disk: &DiskHealth) -> bool {
    disk.rotation_rpm == Some(0)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::fixture::{self, surveyed::codes};
    use diskproof_model::finding::Finding;
    use diskproof_model::health::SelfTest;

    /// A rotating disk, one of flash, and one that reports nothing; none has an issue.
    fn disks() -> Vec<DiskHealth> {
        let disk = DiskHealth {
            disk: "sda".to_owned(),
            source: Some("smartctl 7.3".to_owned()),
            model: Some("WDC WD20EFRX".to_owned()),
            rotation_rpm: Some(5400),
            passed: Some(true),
            temperature_celsius: Some(34),
            temperature_alarm: Some(false),
            reallocated_sectors: Some(0),
            pending_sectors: Some(0),
            uncorrectable_sectors: Some(0),
            media_errors: Some(0),
            link_errors: Some(0),
            ..DiskHealth::default()
        };
        let flash = DiskHealth {
            disk: "nvme0n1".to_owned(),
            model: Some("Micron_7450".to_owned()),
            rotation_rpm: Some(0),
            wear_percent: Some(12),
            spare_percent: Some(100),
            spare_threshold_percent: Some(10),
            temperature_limit_celsius: Some(70),
            ..disk.clone()
        };
        vec![disk, flash, DiskHealth::unknown("vda", "a virtual disk")]
    }

    fn changed(index: usize, change: impl Fn(&mut DiskHealth)) -> Record {
        let mut run = fixture::run();
        // The disk of the fixture commits faster than this one turns.
        run.facts
            .plan
            .workloads_mut()
            .retain(|w| w.name != "commit-fdatasync");
        run.measurements
            .retain(|measurement| measurement.workload.name != "commit-fdatasync");
        run.facts.health = disks();
        change(&mut run.facts.health[index]);
        fixture::judge(run)
    }

    /// A run whose flash disk has an issue.
    pub(in crate::rules) fn faulty(change: impl Fn(&mut DiskHealth)) -> Record {
        changed(1, change)
    }

    /// A run whose rotating disk has an issue.
    pub(in crate::rules) fn faulty_rotating(change: impl Fn(&mut DiskHealth)) -> Record {
        changed(0, change)
    }

    pub(in crate::rules) fn quiet_disks() -> Record {
        faulty(|_| ())
    }

    pub(in crate::rules) fn self_test(
        passed: Option<bool>,
        remaining_percent: Option<u32>,
    ) -> Option<SelfTest> {
        Some(SelfTest {
            status: "Extended offline: Completed: read failure".to_owned(),
            passed,
            hours: Some(100),
            remaining_percent,
        })
    }

    pub(in crate::rules) fn passed_self_test(disk: &mut DiskHealth) {
        disk.self_test = self_test(Some(true), None);
    }

    pub(in crate::rules) fn one(record: &Record, code: &str) -> Finding {
        assert_eq!(codes(record), [code]);
        record.findings[0].clone()
    }

    /// Severity, first figure and its threshold of the only finding.
    pub(in crate::rules) fn observed(record: &Record, code: &str) -> (Severity, f64, f64) {
        let finding = one(record, code);
        (
            finding.severity,
            finding.evidence[0].observed,
            finding.evidence[0].threshold,
        )
    }

    #[test]
    fn quiet_and_unknown_disks_have_no_finding() {
        assert_eq!(quiet_disks().findings, []);
    }

    #[test]
    fn disk_is_named_by_its_label() {
        let disk = DiskHealth {
            disk: "sda".to_owned(),
            model: Some("WDC WD20EFRX".to_owned()),
            serial: Some("S1".to_owned()),
            ..DiskHealth::default()
        };
        assert_eq!(disk_label(&disk), "sda (WDC WD20EFRX, S1)");
        assert_eq!(disk_label(&DiskHealth::unknown("vda", "")), "vda");
    }
}
