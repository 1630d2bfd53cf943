//! `worn-out`: the flash has used most or all of its rated writes or spare blocks.

use super::disk_report::*;
use super::rule::*;
use diskproof_model::health::DiskHealth;

pub(super) const RULE: Rule = Rule {
    code: "worn-out",
    title: "The flash nears its rated endurance",
    summary: "The flash has used most or all of its rated writes or spare blocks.",
    remedy: Remedy::Always(
        "Plan the replacement, and do it now if the endurance is used up. Find out what writes so \
         much: WAL, temporary files, checkpoints.",
    ),
    check: Check::Health {
        examine: check,
        consequence: "A worn disk slows down, turns read-only or loses data without power.",
    },
    says: Meaning::Health,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Time to order another disk: one that took four years to get here has one left.
const WEAR_PERCENT_WARNING: u32 = 80;

/// The endurance that the vendor warrants is consumed (NVMe 1.4, 5.14.1.2, "Percentage Used"; JEDEC
/// JESD218): the disk need no longer keep data without power for the months that JESD218 demands.
const WORN_OUT_PERCENT: u32 = 100;

fn check(disk: &DiskHealth) -> Option<Diagnosis> {
    let mut parts = Vec::new();
    let mut observations = Vec::new();
    let mut severity = Severity::Warning;
    if let Some(wear) = disk.wear_percent
        && wear >= WEAR_PERCENT_WARNING
    {
        let mut threshold = WEAR_PERCENT_WARNING;
        if wear >= WORN_OUT_PERCENT {
            threshold = WORN_OUT_PERCENT;
            severity = Severity::Failure;
        }
        parts.push(format!("has used {wear} % of its rated endurance"));
        observations.push(seen_at("wear_percent", wear, threshold, "%"));
    }
    if let Some(left) = disk.spare_percent
        && let Some(alarm) = disk.spare_threshold_percent
        // Virtual disks report 0 % left and an alarm at 0 %: they count no spare blocks.
        && alarm > 0
        && left <= alarm
    {
        severity = Severity::Failure;
        parts.push(format!(
            "has {left} % of its spare blocks left (alarm at {alarm} %)"
        ));
        observations.push(seen_at("spare_percent", left, alarm, "%"));
    }
    if parts.is_empty() {
        return None;
    }
    Some(Diagnosis::new(severity, parts.join(" and "), observations))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::disk_report::tests::{faulty, observed};

    pub(super) const EXAMPLES: Examples = Examples::new(
        || faulty(|disk| disk.wear_percent = Some(85)),
        || {
            faulty(|disk| {
                disk.wear_percent = Some(79);
                disk.spare_percent = Some(11);
            })
        },
    );

    #[test]
    fn wear_is_a_warning_and_its_end_a_failure() {
        let diagnosis = observed(&faulty(|disk| disk.wear_percent = Some(85)), "worn-out");
        assert_eq!(diagnosis, (Severity::Warning, 85.0, 80.0));
        let used_up = observed(&faulty(|disk| disk.wear_percent = Some(103)), "worn-out");
        assert_eq!(used_up.0, Severity::Failure);
        let spare = observed(&faulty(|disk| disk.spare_percent = Some(10)), "worn-out");
        assert_eq!(spare, (Severity::Failure, 10.0, 10.0));
    }

    #[test]
    fn disk_that_counts_no_spare_blocks_has_used_none() {
        let virtual_disk = faulty(|disk| {
            disk.spare_percent = Some(0);
            disk.spare_threshold_percent = Some(0);
        });
        assert!(virtual_disk.health.iter().all(|disk| check(disk).is_none()));
    }
}
