//! `media-errors`: data that the disk had to report as lost. Knows counts only.

use super::health::{Complaint, Disk, counted, evidence, finding};
use super::{Diagnosis, Rule};
use diskproof_model::finding::Severity;
use diskproof_model::health::DiskHealth;

pub(super) const RULE: Rule = Rule {
    code: "media-errors",
    title: "The disk has returned uncorrectable errors",
    meaning: "In its life the disk has returned errors for data that its own correction could not \
              recover.",
    check: |record| find(&record.health),
};

/// One is enough: hardly a disk of Backblaze's failed as long as it had none, and they replace soon
/// after (Hard Drive SMART Stats, 2014, attribute 187). For NVMe each is data that was lost (NVMe
/// 1.4, 5.14.1.2, "Media and Data Integrity Errors").
const ERRORS: u64 = 0;

pub(super) fn find(health: &[DiskHealth]) -> Option<Diagnosis> {
    let remedy = "See that the backup is good and run pg_checksums or a read of everything; \
                  replace the disk if the count grows.";
    finding(remedy, health, complain)
}

fn complain(disk: Disk<'_>) -> Option<Complaint> {
    let count = disk.1.media_errors.filter(|count| *count > ERRORS)?;
    Some(Complaint {
        severity: Severity::Warning,
        says: format!(
            "has reported {} that it could not correct",
            counted(count, "error")
        ),
        evidence: vec![evidence(
            disk,
            "media_errors",
            count as f64,
            ERRORS as f64,
            "1",
        )],
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::rules::health::tests::{sound, spoilt as spoilt_disk};
    use diskproof_model::record::Record;

    pub(in crate::rules) fn spoilt() -> Record {
        spoilt_disk(|disk| disk.media_errors = Some(7))
    }

    #[test]
    fn lost_data_is_a_warning() {
        let found = find(&spoilt().health).unwrap();
        assert_eq!(
            (found.severity, found.evidence[0].observed),
            (Severity::Warning, 7.0)
        );
        assert!(
            found.claim.contains("7 errors that it could not correct"),
            "{}",
            found.claim
        );
    }

    #[test]
    fn none_is_no_finding() {
        assert_eq!(find(&sound()), None);
    }
}
