//! `link-errors`: the link between disk and host damaged many transfers.

use super::disk_report::*;
use super::rule::*;
use diskproof_model::health::DiskHealth;

pub(super) const RULE: Rule = Rule {
    code: "link-errors",
    title: "The link damages transfers",
    summary: "Many transfers between disk and host were damaged and repeated, which costs time. \
              The usual cause is the cable or the backplane.",
    remedy: Remedy::Always(
        "Compare the count after some load (diskproof info). If it grows, reseat or replace the \
         cable, or change the slot.",
    ),
    check: Check::Health {
        examine: check,
        consequence: "Each one is repeated, so no data is lost but requests take longer.",
    },
    says: Meaning::Health,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// The count never goes down, and every touch of a cable may add to it. Of 150 server disks whose
/// reports are public, a dozen had 1 to 24; those with a fault had hundreds to millions.
const LINK_ERRORS_MIN: u64 = 100;

fn check(disk: &DiskHealth) -> Option<Diagnosis> {
    let count = disk.link_errors?;
    if count < LINK_ERRORS_MIN {
        return None;
    }
    Some(Diagnosis::new(
        Severity::Warning,
        format!("has counted {count} damaged transfers on its link"),
        [counted_at("link_errors", count, LINK_ERRORS_MIN)],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::disk_report::tests::{faulty_rotating, observed};

    pub(super) const EXAMPLES: Examples = Examples::new(
        || faulty_rotating(|disk| disk.link_errors = Some(3_118_119)),
        || faulty_rotating(|disk| disk.link_errors = Some(24)),
    );

    #[test]
    fn damaged_transfers_are_a_warning_from_the_threshold_on() {
        let record = faulty_rotating(|disk| disk.link_errors = Some(100));
        let (severity, count, _) = observed(&record, "link-errors");
        assert_eq!((severity, count), (Severity::Warning, 100.0));
    }
}
