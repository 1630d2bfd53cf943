//! `worn-out`: flash that nears or has passed the end of its endurance. Knows what the disk tells
//! of its wear and spare blocks.

use super::health::{Complaint, Disk, evidence, finding};
use super::{Diagnosis, Rule};
use diskproof_model::finding::Severity;
use diskproof_model::health::DiskHealth;

pub(super) const RULE: Rule = Rule {
    code: "worn-out",
    title: "The flash nears its rated endurance",
    meaning: "The flash has used up most or all of the writes that it was made for, or its spare \
              blocks.",
    check: |record| find(&record.health),
};

/// Time to order another one: at an even rate a disk that took four years to get here has one left.
const WEAR_PERCENT: u32 = 80;
/// The endurance that the vendor warrants is consumed (NVMe 1.4, 5.14.1.2, "Percentage Used"; JEDEC
/// JESD218): the disk may go on for long, but is no longer bound to keep data without power for the
/// months that JESD218 demands.
const WORN_OUT_PERCENT: u32 = 100;

pub(super) fn find(health: &[DiskHealth]) -> Option<Diagnosis> {
    let remedy = "Plan its replacement, at once where it is at its end, and see what writes so \
                  much: WAL, temporary files, checkpoints.";
    finding(remedy, health, complain)
}

fn complain(disk: Disk<'_>) -> Option<Complaint> {
    let health = disk.1;
    let wear = health.wear_percent.filter(|wear| *wear >= WEAR_PERCENT);
    let spare = health
        .spare_percent
        .zip(health.spare_threshold_percent)
        .filter(|(left, alarm)| left <= alarm);
    let at_end = spare.is_some() || wear.is_some_and(|wear| wear >= WORN_OUT_PERCENT);
    let mut says = Vec::new();
    let mut seen = Vec::new();
    if let Some(wear) = wear {
        says.push(format!("has used {wear} % of its rated endurance"));
        seen.push(evidence(
            disk,
            "wear_percent",
            wear,
            if wear >= WORN_OUT_PERCENT {
                WORN_OUT_PERCENT
            } else {
                WEAR_PERCENT
            },
            "%",
        ));
    }
    if let Some((left, alarm)) = spare {
        says.push(format!(
            "has {left} % of its spare blocks left and raises its alarm at {alarm} %"
        ));
        seen.push(evidence(disk, "spare_percent", left, alarm, "%"));
    }
    let severity = if at_end {
        Severity::Failure
    } else {
        Severity::Warning
    };
    (!seen.is_empty()).then(|| Complaint {
        severity,
        says: says.join(" and "),
        evidence: seen,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::rules::health::tests::{sound, spoilt as spoilt_disk};
    use diskproof_model::record::Record;

    pub(in crate::rules) fn spoilt() -> Record {
        spoilt_disk(|disk| disk.wear_percent = Some(85))
    }

    #[test]
    fn wear_warns_and_its_end_is_a_failure() {
        let found = find(&spoilt().health).unwrap();
        assert_eq!(
            (
                found.severity,
                found.evidence[0].observed,
                found.evidence[0].threshold
            ),
            (Severity::Warning, 85.0, 80.0)
        );
        let worn_out = find(&spoilt_disk(|disk| disk.wear_percent = Some(103)).health).unwrap();
        assert_eq!(worn_out.severity, Severity::Failure);
        let spare = find(&spoilt_disk(|disk| disk.spare_percent = Some(10)).health).unwrap();
        assert_eq!(spare.severity, Severity::Failure);
        assert!(
            spare.claim.contains("10 % of its spare blocks left"),
            "{}",
            spare.claim
        );
    }

    #[test]
    fn a_disk_in_its_best_years_is_no_finding() {
        let mut health = sound();
        health[1].wear_percent = Some(79);
        health[1].spare_percent = Some(11);
        assert_eq!(find(&health), None);
    }
}
