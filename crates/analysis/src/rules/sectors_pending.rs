//! `sectors-pending`: sectors that the disk cannot read now. Knows counts only.

use super::health::{Complaint, Disk, counted, evidence, finding, is_flash};
use super::{Diagnosis, Rule};
use diskproof_model::finding::Severity;
use diskproof_model::health::DiskHealth;

pub(super) const RULE: Rule = Rule {
    code: "sectors-pending",
    title: "The disk holds unreadable sectors",
    meaning: "The disk holds sectors that it could not read: what stood there is lost unless a \
              later try succeeds, and each try stalls for seconds.",
    check: |record| find(&record.health),
};

/// One is enough: after the first, rotating disks were 16 times as likely to fail within 60 days,
/// and 21 times after the first that a scan in the background found (Pinheiro, Weber, Barroso:
/// Failure Trends in a Large Disk Drive Population, FAST '07).
const SECTORS: u64 = 0;

pub(super) fn find(health: &[DiskHealth]) -> Option<Diagnosis> {
    let remedy = "Save the data, then let the disk test itself (smartctl -t long); replace it if \
                  the count grows or stays. Figures with long maxima may come from these sectors.";
    finding(remedy, health, complain)
}

fn complain(disk: Disk<'_>) -> Option<Complaint> {
    let health = disk.1;
    let pending = health.pending_sectors.filter(|count| *count > SECTORS);
    let uncorrectable = health
        .uncorrectable_sectors
        .filter(|count| *count > SECTORS);
    let mut says = Vec::new();
    let mut seen = Vec::new();
    if let Some(count) = pending {
        says.push(format!(
            "{} that wait to be read or replaced",
            counted(count, "sector")
        ));
        seen.push(evidence(
            disk,
            "pending_sectors",
            count as f64,
            SECTORS as f64,
            "1",
        ));
    }
    if let Some(count) = uncorrectable {
        says.push(format!(
            "{} that its own scan could not correct",
            counted(count, "sector")
        ));
        seen.push(evidence(
            disk,
            "uncorrectable_sectors",
            count as f64,
            SECTORS as f64,
            "1",
        ));
    }
    // Flash rewrites a page it read with trouble; some firmware counts that here for a moment.
    let severity = if is_flash(health) {
        Severity::Warning
    } else {
        Severity::Failure
    };
    (!seen.is_empty()).then(|| Complaint {
        severity,
        says: format!("has {}", says.join(" and ")),
        evidence: seen,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::rules::health::tests::{sound, spoilt as spoilt_disk, spoilt_rotating};
    use diskproof_model::record::Record;

    pub(in crate::rules) fn spoilt() -> Record {
        spoilt_rotating(|disk| {
            disk.pending_sectors = Some(8);
            disk.uncorrectable_sectors = Some(1);
        })
    }

    #[test]
    fn what_cannot_be_read_is_a_failure_of_a_rotating_disk() {
        let found = find(&spoilt().health).unwrap();
        assert_eq!(
            (found.severity, found.evidence.len()),
            (Severity::Failure, 2)
        );
        assert!(
            found.claim.contains("has 8 sectors that wait")
                && found.claim.contains("and 1 sector that its own scan"),
            "{}",
            found.claim
        );
        assert_eq!(
            find(&spoilt_disk(|disk| disk.pending_sectors = Some(1)).health)
                .unwrap()
                .severity,
            Severity::Warning
        );
    }

    #[test]
    fn none_is_no_finding() {
        assert_eq!(find(&sound()), None);
    }
}
