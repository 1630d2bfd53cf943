//! `link-errors`: transfers that arrived damaged over the cable. Knows counts only.

use super::health::{Complaint, Disk, evidence, finding};
use super::{Diagnosis, Rule};
use diskproof_model::finding::Severity;
use diskproof_model::health::DiskHealth;

pub(super) const RULE: Rule = Rule {
    code: "link-errors",
    title: "Transfers over the link arrive damaged",
    meaning: "Many transfers between disk and host arrived damaged and were repeated, which costs \
              time; mostly the cable or the backplane.",
    check: |record| find(&record.health),
};

/// The count never goes down, and every time a cable is touched may add to it: of a hundred and
/// fifty server disks whose reports are public, a dozen had between 1 and 24. Those with something
/// wrong had hundreds to millions.
const ERRORS: u64 = 100;

pub(super) fn find(health: &[DiskHealth]) -> Option<Diagnosis> {
    let remedy = "Look at the count again after some load (info): if it grows, reseat or replace \
                  the cable, or change the slot. No data is lost by it.";
    finding(remedy, health, complain)
}

fn complain(disk: Disk<'_>) -> Option<Complaint> {
    let count = disk.1.link_errors.filter(|count| *count >= ERRORS)?;
    Some(Complaint {
        severity: Severity::Warning,
        says: format!("has counted {count} damaged transfers on its link"),
        evidence: vec![evidence(
            disk,
            "link_errors",
            count as f64,
            ERRORS as f64,
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
        spoilt_rotating(|disk| disk.link_errors = Some(3_118_119))
    }

    #[test]
    fn a_bad_cable_is_a_warning() {
        let found = find(&spoilt().health).unwrap();
        assert_eq!(
            (found.severity, found.evidence[0].observed),
            (Severity::Warning, 3_118_119.0)
        );
        assert!(found.remedy.contains("cable"));
    }

    #[test]
    fn a_few_in_a_whole_life_are_no_finding() {
        let mut health = sound();
        health[0].link_errors = Some(24);
        assert_eq!(find(&health), None);
    }
}
