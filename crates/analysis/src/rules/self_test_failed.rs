//! `self-test-failed`: the disk found a fault when it tested itself. Knows the outcome only.

use super::health::{Complaint, Disk, evidence, finding};
use super::{Diagnosis, Rule};
use diskproof_model::finding::Severity;
use diskproof_model::health::DiskHealth;

pub(super) const RULE: Rule = Rule {
    code: "self-test-failed",
    title: "The disk failed its self-test",
    meaning: "The disk's own self-test failed: it met a sector that it cannot read, or a part \
              that does not work.",
    check: |record| find(&record.health),
};

pub(super) fn find(health: &[DiskHealth]) -> Option<Diagnosis> {
    let remedy = "Save the data and replace the disk. If it was one unreadable sector, \
                  overwriting it may mend that: then smartctl -t long must pass.";
    finding(remedy, health, complain)
}

fn complain(disk: Disk<'_>) -> Option<Complaint> {
    let test = disk
        .1
        .self_test
        .as_ref()
        .filter(|test| test.passed == Some(false))?;
    let age = disk
        .1
        .power_on_hours
        .zip(test.hours)
        .and_then(|(now, then)| now.checked_sub(then));
    let ago = age.map_or_else(String::new, |hours| format!(", {hours} power-on hours ago"));
    Some(Complaint {
        severity: Severity::Failure,
        says: format!("failed its last self-test ({}{ago})", test.status),
        evidence: vec![evidence(disk, "self_test/passed", 0.0, 1.0, "1")],
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::rules::health::tests::{sound, spoilt as spoilt_disk};
    use diskproof_model::health::SelfTest;
    use diskproof_model::record::Record;

    fn test(passed: Option<bool>) -> Option<SelfTest> {
        Some(SelfTest {
            status: "Extended offline: Completed: read failure".to_owned(),
            passed,
            hours: Some(100),
            remaining_percent: None,
        })
    }

    pub(in crate::rules) fn spoilt() -> Record {
        spoilt_disk(|disk| {
            disk.self_test = test(Some(false));
            disk.power_on_hours = Some(152);
        })
    }

    #[test]
    fn a_failed_self_test_is_a_failure_with_its_age() {
        let found = find(&spoilt().health).unwrap();
        assert_eq!(found.severity, Severity::Failure);
        assert!(
            found.claim.contains("read failure, 52 power-on hours ago"),
            "{}",
            found.claim
        );
    }

    #[test]
    fn one_that_passed_or_was_aborted_is_no_finding() {
        for passed in [Some(true), None] {
            let mut health = sound();
            health[0].self_test = test(passed);
            assert_eq!(find(&health), None);
        }
    }
}
