//! `health-failing`: the disk says that it fails. Knows the disk's own verdict and alarms, not what
//! they rest on.

use super::health::{Complaint, Disk, evidence, finding};
use super::{Diagnosis, Rule};
use diskproof_model::finding::Severity;
use diskproof_model::health::DiskHealth;

pub(super) const RULE: Rule = Rule {
    code: "health-failing",
    title: "The disk reports that it is failing",
    meaning: "The disk itself reports that it is failing, or that something that protects its \
              data has failed.",
    check: |record| find(&record.health),
};

pub(super) fn find(health: &[DiskHealth]) -> Option<Diagnosis> {
    let remedy = "Save the data now, before anything else puts load on the disk, and replace it. \
                  Trust no figure of it.";
    finding(remedy, health, complain)
}

fn complain(disk: Disk<'_>) -> Option<Complaint> {
    let health = disk.1;
    let failed = health.passed == Some(false);
    if !failed && health.alarms.is_empty() {
        return None;
    }
    let says = match (failed, health.alarms.join(", ")) {
        (true, alarms) if alarms.is_empty() => "reports that it is failing".to_owned(),
        (true, alarms) => format!("reports that it is failing: {alarms}"),
        (false, alarms) => format!("raises an alarm: {alarms}"),
    };
    let place = if failed { "passed" } else { "alarms" };
    Some(Complaint {
        severity: Severity::Failure,
        says,
        evidence: vec![evidence(disk, place, 0.0, 1.0, "1")],
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::rules::health::tests::{sound, spoilt as spoilt_disk};
    use diskproof_model::record::Record;

    pub(in crate::rules) fn spoilt() -> Record {
        spoilt_disk(|disk| {
            disk.passed = Some(false);
            disk.alarms = vec!["it has become read-only".to_owned()];
        })
    }

    #[test]
    fn a_verdict_and_an_alarm_are_failures() {
        let found = find(&spoilt().health).unwrap();
        assert_eq!(found.severity, Severity::Failure);
        assert_eq!(
            found.claim,
            "nvme0n1 (Micron_7450) reports that it is failing: it has become read-only."
        );
        assert!(found.remedy.contains("Save the data now"));
        let alarm = spoilt_disk(|disk| disk.alarms = vec!["x is at 1".to_owned()]);
        assert_eq!(
            find(&alarm.health).unwrap().evidence[0].path,
            "/health/1/alarms"
        );
    }

    #[test]
    fn a_disk_that_passes_or_says_nothing_is_no_finding() {
        assert_eq!(find(&sound()), None);
        assert_eq!(find(&[]), None);
    }
}
