//! `sectors-pending`: the disk has sectors that it cannot read.

use super::disk_report::*;
use super::rule::*;
use diskproof_model::health::DiskHealth;

pub(super) const RULE: Rule = Rule {
    code: "sectors-pending",
    title: "The disk has unreadable sectors",
    summary: "The disk has sectors that it could not read. Their content is lost unless a later \
              attempt succeeds, and each attempt stalls for seconds.",
    remedy: Remedy::Always(
        "Save the data, then run the disk's self-test (smartctl -t long). Replace the disk unless \
         the count falls.",
    ),
    check: Check::Health {
        examine: check,
        consequence: "A query that reads them stalls for seconds or fails.",
    },
    says: Meaning::Health,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

fn check(disk: &DiskHealth) -> Option<Diagnosis> {
    let mut parts = Vec::new();
    let mut observations = Vec::new();
    let pending = disk.pending_sectors.unwrap_or(0);
    if pending > SECTORS_MAX {
        let sectors = counted(pending, "sector");
        parts.push(format!("{sectors} that it currently cannot read"));
        observations.push(counted_at("pending_sectors", pending, SECTORS_MAX));
    }
    let uncorrectable = disk.uncorrectable_sectors.unwrap_or(0);
    if uncorrectable > SECTORS_MAX {
        let sectors = counted(uncorrectable, "sector");
        parts.push(format!("{sectors} that its own scan could not correct"));
        observations.push(counted_at(
            "uncorrectable_sectors",
            uncorrectable,
            SECTORS_MAX,
        ));
    }
    if parts.is_empty() {
        return None;
    }
    // Flash rewrites a page that was hard to read; some firmware counts it here for a moment.
    Some(Diagnosis::new(
        failure_if(!is_flash(disk)),
        format!("has {}", parts.join(" and ")),
        observations,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::disk_report::tests::{faulty, faulty_rotating, one, quiet_disks};

    pub(super) const EXAMPLES: Examples = Examples::new(disk_with_pending_sectors, quiet_disks);

    fn disk_with_pending_sectors() -> Record {
        faulty_rotating(|disk| {
            disk.pending_sectors = Some(8);
            disk.uncorrectable_sectors = Some(1);
        })
    }

    #[test]
    fn pending_sectors_are_a_failure_of_a_rotating_disk_and_a_warning_of_flash() {
        let finding = one(&disk_with_pending_sectors(), "sectors-pending");
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Failure, 2)
        );
        assert_eq!(
            (finding.evidence[0].observed, finding.evidence[1].observed),
            (8.0, 1.0)
        );
        let flash = faulty(|disk| disk.pending_sectors = Some(1));
        assert_eq!(one(&flash, "sectors-pending").severity, Severity::Warning);
    }

    #[test]
    fn each_count_is_enough_and_only_flash_is_spared_a_failure() {
        for (pending, uncorrectable, count) in [(1, 0, "pending"), (0, 1, "uncorrectable")] {
            let record = faulty_rotating(|disk| {
                disk.pending_sectors = Some(pending);
                disk.uncorrectable_sectors = Some(uncorrectable);
                // It does not say whether anything turns.
                disk.rotation_rpm = None;
            });
            let finding = one(&record, "sectors-pending");
            assert_eq!(finding.severity, Severity::Failure);
            let paths: Vec<&str> = finding
                .evidence
                .iter()
                .map(|evidence| evidence.path.as_str())
                .collect();
            assert_eq!(paths, [format!("/health/0/{count}_sectors")]);
        }
    }
}
