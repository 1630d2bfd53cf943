//! `media-errors`: the disk has returned errors for data that it could not correct.

use super::disk_report::*;
use super::rule::*;
use diskproof_model::health::DiskHealth;

pub(super) const RULE: Rule = Rule {
    code: "media-errors",
    title: "The disk has returned uncorrectable errors",
    summary: "The disk has returned errors for data that its error correction could not recover.",
    remedy: Remedy::Always(
        "Verify the backup, then read all data (pg_checksums --check). Replace the disk if the \
         count grows.",
    ),
    check: Check::Health {
        examine: check,
        consequence: "Pages of the database may be damaged.",
    },
    says: Meaning::Health,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// One error is enough: hardly a disk of Backblaze's failed while it had none (Hard Drive SMART
/// Stats, 2014, attribute 187). For NVMe each is lost data (NVMe 1.4, 5.14.1.2, "Media and Data
/// Integrity Errors").
const MEDIA_ERRORS_MAX: u64 = 0;

fn check(disk: &DiskHealth) -> Option<Diagnosis> {
    let count = disk.media_errors?;
    if count == MEDIA_ERRORS_MAX {
        return None;
    }
    let errors = counted(count, "error");
    Some(Diagnosis::new(
        Severity::Warning,
        format!("has reported {errors} that it could not correct"),
        [counted_at("media_errors", count, MEDIA_ERRORS_MAX)],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::disk_report::tests::{faulty, observed, quiet_disks};

    pub(super) const EXAMPLES: Examples =
        Examples::new(|| faulty(|disk| disk.media_errors = Some(7)), quiet_disks);

    #[test]
    fn uncorrectable_errors_are_a_warning() {
        let record = faulty(|disk| disk.media_errors = Some(7));
        let (severity, count, _) = observed(&record, "media-errors");
        assert_eq!((severity, count), (Severity::Warning, 7.0));
    }
}
