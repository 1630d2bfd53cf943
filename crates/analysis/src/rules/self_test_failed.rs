//! `self-test-failed`: the last self-test of the disk found a fault.

use super::disk_report::*;
use super::rule::*;
use diskproof_model::health::{DiskHealth, SelfTest};

pub(super) const RULE: Rule = Rule {
    code: "self-test-failed",
    title: "The disk failed its self-test",
    summary: "The disk's own self-test found an unreadable sector or a defective component.",
    remedy: Remedy::Always(
        "Save the data and replace the disk. If only one sector was unreadable, overwrite it; \
         smartctl -t long must then pass.",
    ),
    check: Check::Health {
        examine: check,
        consequence: "Some of the data may be lost.",
    },
    says: Meaning::Health,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

fn check(disk: &DiskHealth) -> Option<Diagnosis> {
    let test = disk.self_test.as_ref()?;
    if test.passed != Some(false) {
        return None;
    }
    let ago = match hours_since(disk, test) {
        Some(hours) => format!(", {} ago", counted(hours, "power-on hour")),
        None => String::new(),
    };
    Some(Diagnosis::new(
        Severity::Failure,
        format!("failed its last self-test ({}{ago})", test.status),
        [seen_at("self_test/passed", 0.0, 1.0, "1")],
    ))
}

fn hours_since(disk: &DiskHealth, test: &SelfTest) -> Option<u64> {
    disk.power_on_hours?.checked_sub(test.hours?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::states;
    use crate::rules::disk_report::tests::{faulty, one, passed_self_test, self_test};

    pub(super) const EXAMPLES: Examples =
        Examples::new(|| faulty(failed_self_test), || faulty(passed_self_test));

    fn failed_self_test(disk: &mut DiskHealth) {
        disk.self_test = self_test(Some(false), None);
        disk.power_on_hours = Some(152);
    }

    #[test]
    fn failed_self_test_is_a_failure_with_its_age() {
        let finding = one(&faulty(failed_self_test), "self-test-failed");
        assert_eq!(finding.severity, Severity::Failure);
        states(&finding.claim, &["read failure", "52 power-on hours"]);
        let recent = faulty(|disk| {
            failed_self_test(disk);
            disk.power_on_hours = Some(101);
        });
        let finding = one(&recent, "self-test-failed");
        states(&finding.claim, &["1 power-on hour ago"]);
        let aborted = faulty(|disk| disk.self_test = self_test(None, None));
        assert_eq!(aborted.findings, []);
    }
}
