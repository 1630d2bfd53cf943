//! `sectors-reallocated`: a rotating disk has replaced sectors with spare ones.

use super::disk_report::*;
use super::rule::*;
use diskproof_model::health::DiskHealth;

pub(super) const RULE: Rule = Rule {
    code: "sectors-reallocated",
    title: "The disk has reallocated sectors",
    summary: "A rotating disk has replaced sectors with spare ones elsewhere. Its surface is \
              wearing out, and sequential reads need seeks.",
    remedy: Remedy::Always(
        "Verify the backup. Note the count and compare it in a few days (diskproof info); replace \
         the disk if it grows.",
    ),
    check: Check::Health {
        examine: check,
        consequence: "More sectors may follow, and sequential reads need seeks there.",
    },
    says: Meaning::Health,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Flash retires blocks all its life (30 to 80 % of disks within four years; Schroeder, Lagisetty,
/// Merchant: Flash Reliability in Production, FAST '16). `worn-out` examines its spare blocks.
fn check(disk: &DiskHealth) -> Option<Diagnosis> {
    let count = disk.reallocated_sectors?;
    if count == SECTORS_MAX || is_flash(disk) {
        return None;
    }
    Some(Diagnosis::new(
        Severity::Warning,
        format!("has replaced {}", counted(count, "sector")),
        [counted_at("reallocated_sectors", count, SECTORS_MAX)],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::disk_report::tests::{faulty, faulty_rotating, observed};

    pub(super) const EXAMPLES: Examples = Examples::new(
        || faulty_rotating(|disk| disk.reallocated_sectors = Some(304)),
        || faulty(|disk| disk.reallocated_sectors = Some(4)),
    );

    #[test]
    fn replaced_sectors_are_a_warning() {
        let record = faulty_rotating(|disk| disk.reallocated_sectors = Some(304));
        let (severity, count, _) = observed(&record, "sectors-reallocated");
        assert_eq!((severity, count), (Severity::Warning, 304.0));
    }
}
