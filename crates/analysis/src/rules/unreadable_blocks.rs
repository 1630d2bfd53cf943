//! `unreadable-blocks`: a scan met sectors that could not be read.

use super::evidence::{evidence_at, gigabytes};
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule};
use diskproof_model::finding::Severity;
use diskproof_model::record::Record;
use diskproof_model::surface::UnreadableRange;
use diskproof_model::units::format_bytes;

pub(super) const RULES: &[Rule] = &[Rule {
    code: "unreadable-blocks",
    title: "The scan found unreadable sectors",
    meaning: "The scan found sectors that the disk cannot read. Their content is lost unless a \
              copy exists.",
    taints: None,
    check: Check::Survey(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
}];

/// Ranges named in the claim; the record names up to a thousand.
const NAMED: usize = 4;

fn check(record: &Record) -> Option<Diagnosis> {
    let scan = record
        .surface
        .as_ref()?
        .scan
        .as_ref()
        .filter(|s| s.unreadable_bytes > 0)?;
    let ranges = scan.unreadable.iter().enumerate().take(NAMED);
    let ranges = ranges.map(|(i, range)| {
        let path = format!("/surface/scan/unreadable/{i}/length_bytes");
        (path, range.length_bytes)
    });
    let all = "/surface/scan/unreadable_bytes".to_owned();
    let evidence = std::iter::once((all, scan.unreadable_bytes))
        .chain(ranges)
        .map(|(path, bytes)| evidence_at(path, bytes as f64, 0.0, "B"));
    let places: Vec<String> = scan.unreadable.iter().take(NAMED).map(tell).collect();
    let more = match scan.unreadable.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    Some(Diagnosis::new(
        Severity::Failure,
        format!(
            "{} could not be read: {}{more}.",
            format_bytes(scan.unreadable_bytes),
            places.join("; ")
        ),
        evidence,
        "Copy the readable data to another disk first (ddrescue), restore the rest from a \
         backup, then replace the disk. If dmesg names the link instead of the medium, \
         check the cable and the controller. smartctl -a counts pending sectors, which a \
         write replaces; if the count grows again, the disk is failing.",
    ))
}

fn tell(range: &UnreadableRange) -> String {
    format!(
        "LBA {} ({} at {}, {})",
        range.lba,
        format_bytes(range.length_bytes),
        gigabytes(range.offset_bytes),
        range.errno
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::surveyed::{self, SurveyedDisk};

    pub(super) fn fires() -> Record {
        let mut run = SurveyedDisk::rotating().run(1);
        let mut scan = surveyed::scan();
        let range = |lba: u64| UnreadableRange {
            offset_bytes: lba * 512,
            length_bytes: 4096,
            lba,
            errno: "EIO".to_owned(),
        };
        (scan.unreadable, scan.unreadable_bytes) =
            ((1..=6).map(|i| range(i * 80_000_000)).collect(), 6 * 4096);
        run.1.scan = Some(scan);
        surveyed::judge(run)
    }

    pub(super) fn silent() -> Record {
        let mut run = SurveyedDisk::rotating().run(1);
        run.1.scan = Some(surveyed::scan());
        surveyed::judge(run)
    }

    #[test]
    fn unreadable_ranges_are_reported_by_lba() {
        let finding = check(&fires()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Failure, 5)
        );
        assert!(
            finding
                .claim
                .starts_with("24 KiB could not be read: LBA 80000000 (4 KiB at 41.0 GB, EIO); "),
            "{}",
            finding.claim
        );
        assert!(
            finding.claim.ends_with("; and 2 more."),
            "{}",
            finding.claim
        );
    }

    #[test]
    fn a_clean_scan_and_none_are_no_finding() {
        let mut run = SurveyedDisk::rotating().run(1);
        assert_eq!(check(&surveyed::judge(run.clone())), None);
        run.1.scan = Some(surveyed::scan());
        assert_eq!(check(&surveyed::judge(run)), None);
    }
}
