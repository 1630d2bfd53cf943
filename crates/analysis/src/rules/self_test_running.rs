//! `self-test-running`: the disk ran a self-test during the measurement.

use super::disk_report::*;
use super::rule::*;
use diskproof_model::health::DiskHealth;

pub(super) const RULE: Rule = Rule {
    code: "self-test-running",
    title: "A self-test ran during the measurement",
    summary: "The disk was running a self-test when the measurement began. The self-test slows the \
              measured operations.",
    remedy: Remedy::Always(
        "Measure again when the self-test has ended. smartctl -a shows its progress.",
    ),
    check: Check::Health {
        examine: check,
        consequence: "The self-test slows the measured operations.",
    },
    says: Meaning::OtherLoad {
        used: SharedResource::Disk,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

fn check(disk: &DiskHealth) -> Option<Diagnosis> {
    let remaining = disk.self_test.as_ref()?.remaining_percent?;
    Some(Diagnosis::new(
        Severity::Warning,
        format!("runs a self-test; {remaining} % are left"),
        [seen_at("self_test/remaining_percent", remaining, 0.0, "%")],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::disk_report::tests::{faulty, observed, passed_self_test, self_test};

    pub(super) const EXAMPLES: Examples =
        Examples::new(|| faulty(running_self_test), || faulty(passed_self_test));

    fn running_self_test(disk: &mut DiskHealth) {
        disk.self_test = self_test(None, Some(40));
    }

    #[test]
    fn running_self_test_is_a_warning() {
        let (severity, observed, _) = observed(&faulty(running_self_test), "self-test-running");
        assert_eq!((severity, observed), (Severity::Warning, 40.0));
    }
}
