//! `health-failing`: the disk itself reports that it is failing, or raises an alarm.

use super::disk_report::*;
use super::rule::*;
use diskproof_model::health::DiskHealth;

pub(super) const RULE: Rule = Rule {
    code: "health-failing",
    title: "The disk reports that it is failing",
    summary: "The disk reports that it is failing, or that a component that protects its data has \
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

/// A failed verdict is the observation, where there is one; else the list of alarms is.
fn check(disk: &DiskHealth) -> Option<Diagnosis> {
    let has_failed = disk.passed == Some(false);
    let alarms = disk.alarms.join(", ");
    let predicate = match (has_failed, disk.alarms.len()) {
        (true, 0) => "reports that it is failing".to_owned(),
        (true, _) => format!("reports that it is failing: {alarms}"),
        (false, 0) => return None,
        (false, 1) => format!("raises an alarm: {alarms}"),
        (false, _) => format!("raises alarms: {alarms}"),
    };
    let place = if has_failed { "passed" } else { "alarms" };
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
        let finding = one(&failing_disk(), "health-failing");
        assert_eq!(finding.severity, Severity::Failure);
        states(
            &finding.claim,
            &["nvme0n1 (Micron_7450)", "it has become read-only"],
        );
        let alarm = faulty(|disk| disk.alarms = vec!["x is at 1".to_owned()]);
        let finding = one(&alarm, "health-failing");
        assert_eq!(finding.evidence[0].path, "/health/1/alarms");
        states(&finding.claim, &["raises an alarm: x is at 1"]);
        let two = faulty(|disk| disk.alarms = vec!["x".to_owned(), "y".to_owned()]);
        states(&one(&two, "health-failing").claim, &["raises alarms: x, y"]);
    }
}
