//! `health-failing`: the disk itself reports that it is failing, or raises an alarm.

use super::disk_report::*;
use super::rule::*;
use diskproof_model::health::DiskHealth;

pub(super) const RULE: Rule = Rule {
    code: "health-failing",
    title: "The disk reports that it is failing",
    meaning: "The disk reports that it is failing, or that a component that protects its data has \
              failed.",
    remedy: Remedy::Always(
        "Save the data now, before any other load, and replace the disk. Do not rely on its \
         figures.",
    ),
    check: Check::Health {
        examine: check,
        consequence: "It may lose data at any time.",
    },
    says: Meaning::Health,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

fn check(disk: &DiskHealth) -> Option<Diagnosis> {
    let alarms = disk.alarms.join(", ");
    let (place, predicate) = if disk.passed == Some(false) {
        let mut predicate = "reports that it is failing".to_owned();
        if !alarms.is_empty() {
            predicate.push_str(&format!(": {alarms}"));
        }
        ("passed", predicate)
    } else if disk.alarms.is_empty() {
        return None;
    } else {
        ("alarms", format!("raises an alarm: {alarms}"))
    };
    Some(Diagnosis::new(
        Severity::Failure,
        predicate,
        [seen_at(place, 0.0, 1.0, "1")],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::states;
    use crate::rules::disk_report::tests::{faulty, one, quiet_disks};

    pub(super) const EXAMPLES: Examples = Examples::new(failing_disk, quiet_disks);

    fn failing_disk() -> Record {
        faulty(|disk| {
            disk.passed = Some(false);
            disk.alarms = vec!["it has become read-only".to_owned()];
        })
    }

    #[test]
    fn failed_verdict_and_alarm_are_failures() {
        let found = one(&failing_disk(), "health-failing");
        assert_eq!(found.severity, Severity::Failure);
        states(
            &found.claim,
            &["nvme0n1 (Micron_7450)", "it has become read-only"],
        );
        let alarm = faulty(|disk| disk.alarms = vec!["x is at 1".to_owned()]);
        let found = one(&alarm, "health-failing");
        assert_eq!(found.evidence[0].path, "/health/1/alarms");
    }
}
