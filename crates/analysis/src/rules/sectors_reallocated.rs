//! `sectors-reallocated`: a rotating disk has replaced sectors by spare ones. Knows counts only.

use super::health::{Complaint, Disk, counted, evidence, finding, is_flash};
use super::{Diagnosis, Rule};
use diskproof_model::finding::Severity;
use diskproof_model::health::DiskHealth;

pub(super) const RULE: Rule = Rule {
    code: "sectors-reallocated",
    title: "The disk has reallocated sectors",
    meaning: "A rotating disk has replaced sectors by spare ones elsewhere: its surface wears, \
              and sequential reads seek where they did not.",
    check: |record| find(&record.health),
};

/// One is enough: after the first, disks were 14 times as likely to fail within 60 days (Pinheiro,
/// Weber, Barroso: Failure Trends in a Large Disk Drive Population, FAST '07), and a count above
/// zero is what Backblaze looks into (What SMART Stats Tell Us About Hard Drives, 2016).
const SECTORS: u64 = 0;

pub(super) fn find(health: &[DiskHealth]) -> Option<Diagnosis> {
    let remedy = "Note the count and look again in some days (info): one that grows means to \
                  replace the disk. See that the backup is good.";
    finding(remedy, health, complain)
}

/// Flash retires blocks all its life (30 to 80 % of disks within four years; Schroeder, Lagisetty,
/// Merchant: Flash Reliability in Production, FAST '16): there `worn-out` looks at the spare blocks
/// instead.
fn complain(disk: Disk<'_>) -> Option<Complaint> {
    let count = disk
        .1
        .reallocated_sectors
        .filter(|count| *count > SECTORS && !is_flash(disk.1))?;
    Some(Complaint {
        severity: Severity::Warning,
        says: format!("has replaced {}", counted(count, "sector")),
        evidence: vec![evidence(
            disk,
            "reallocated_sectors",
            count as f64,
            SECTORS as f64,
            "1",
        )],
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::rules::health::tests::{sound, spoilt_rotating};
    use diskproof_model::record::Record;

    pub(in crate::rules) fn spoilt() -> Record {
        spoilt_rotating(|disk| disk.reallocated_sectors = Some(304))
    }

    #[test]
    fn replaced_sectors_are_a_warning() {
        let found = find(&spoilt().health).unwrap();
        assert_eq!(
            (found.severity, found.evidence[0].observed),
            (Severity::Warning, 304.0)
        );
        assert_eq!(found.claim, "sda (WDC WD20EFRX) has replaced 304 sectors.");
    }

    #[test]
    fn none_and_the_retired_blocks_of_flash_are_no_finding() {
        let mut health = sound();
        assert_eq!(find(&health), None);
        health[1].reallocated_sectors = Some(4);
        assert_eq!(find(&health), None);
    }
}
