//! `self-test-running`: the disk was busy with itself while it was measured. Knows nothing of how
//! that test comes out.

use super::health::{Complaint, Disk, evidence, finding};
use super::{Diagnosis, Rule};
use diskproof_model::finding::Severity;
use diskproof_model::health::DiskHealth;

pub(super) const RULE: Rule = Rule {
    code: "self-test-running",
    title: "A self-test ran during the measurement",
    meaning: "The disk ran a self-test when the measuring began, which takes turns with the \
              measured operations and makes them slower.",
    check: |record| find(&record.health),
};

pub(super) fn find(health: &[DiskHealth]) -> Option<Diagnosis> {
    finding(
        "Measure again when the self-test has ended; smartctl -a shows how far it is.",
        health,
        complain,
    )
}

fn complain(disk: Disk<'_>) -> Option<Complaint> {
    let remaining = disk.1.self_test.as_ref()?.remaining_percent?;
    Some(Complaint {
        severity: Severity::Warning,
        says: format!("runs a self-test, of which {remaining} % are left"),
        evidence: vec![evidence(
            disk,
            "self_test/remaining_percent",
            remaining,
            0.0,
            "%",
        )],
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::rules::health::tests::{sound, spoilt as spoilt_disk};
    use diskproof_model::health::SelfTest;
    use diskproof_model::record::Record;

    fn test(remaining_percent: Option<u32>) -> Option<SelfTest> {
        Some(SelfTest {
            status: "in progress".to_owned(),
            passed: None,
            hours: None,
            remaining_percent,
        })
    }

    pub(in crate::rules) fn spoilt() -> Record {
        spoilt_disk(|disk| disk.self_test = test(Some(40)))
    }

    #[test]
    fn a_running_self_test_is_a_warning() {
        let found = find(&spoilt().health).unwrap();
        assert_eq!(
            (found.severity, found.evidence[0].observed),
            (Severity::Warning, 40.0)
        );
        assert!(
            found.claim.contains("of which 40 % are left"),
            "{}",
            found.claim
        );
    }

    #[test]
    fn one_that_has_ended_is_no_finding() {
        let mut health = sound();
        health[0].self_test = test(None);
        assert_eq!(find(&health), None);
    }
}
