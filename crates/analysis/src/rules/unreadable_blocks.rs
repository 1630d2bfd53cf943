//! `unreadable-blocks`: a scan or an acceptance test met sectors that could not be read.

use super::rule::*;
use crate::accept::words::unreadable_text;
use diskproof_model::surface::UnreadableRange;

pub(super) const RULE: Rule = Rule {
    code: "unreadable-blocks",
    title: "Sectors could not be read",
    summary: "A scan or an acceptance test found sectors that the disk cannot read. Their content \
              is lost unless a copy exists.",
    remedy: Remedy::Always(
        "Copy the readable data to another disk first (ddrescue), restore the rest from a backup, \
         then replace the disk. If dmesg names the link instead of the medium, check the cable and \
         the controller. smartctl -a counts pending sectors, which a write replaces; if the count \
         grows again, the disk is failing.",
    ),
    check: Check::Survey(check),
    says: Meaning::Disk,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Ranges named in the claim; the record names up to a thousand.
const NAMED_MAX: usize = 4;

fn check(record: &Record) -> Option<Diagnosis> {
    match record.accept() {
        Some(_) => check_accept(record),
        None => check_scan(record),
    }
}

/// The sectors that an acceptance test could not read. `counterfeit-capacity` reports a
/// counterfeit, whose missing part is not damaged.
fn check_accept(record: &Record) -> Option<Diagnosis> {
    let accept = record.accept()?;
    if accept.figures.fraud.is_some() {
        return None;
    }
    let text = unreadable_text(&accept.data)?;
    let bytes = accept.data.bad_bytes.failed as f64;
    let observation = evidence_at(first_result_path("data/bad_bytes/failed"), bytes, 0.0, "B");
    Some(Diagnosis::new(
        Severity::Failure,
        format!("{text}."),
        [observation],
    ))
}

fn check_scan(record: &Record) -> Option<Diagnosis> {
    let scan = record.surface()?.data.scan.as_ref()?;
    if scan.unreadable_bytes == 0 {
        return None;
    }
    let path = first_result_path("data/scan/unreadable_bytes");
    let mut observations = vec![evidence_at(path, scan.unreadable_bytes as f64, 0.0, "B")];
    let mut places = Vec::new();
    for (index, range) in scan.unreadable.iter().enumerate().take(NAMED_MAX) {
        let path = first_result_path(&format!("data/scan/unreadable/{index}/length_bytes"));
        observations.push(evidence_at(path, range.length_bytes as f64, 0.0, "B"));
        places.push(describe_range(range));
    }
    let unnamed_text = match scan.unreadable.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        unnamed => format!("; and {unnamed} more"),
    };
    Some(Diagnosis::new(
        Severity::Failure,
        format!(
            "{} could not be read: {}{unnamed_text}.",
            format_bytes(scan.unreadable_bytes),
            places.join("; ")
        ),
        observations,
    ))
}

fn describe_range(range: &UnreadableRange) -> String {
    format!(
        "LBA {} ({} at {}, {})",
        range.lba,
        format_bytes(range.length_bytes),
        gigabytes(range.offset_bytes),
        range.errno
    )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::fixture::accepted::{Fault, accepted};
    use crate::fixture::states;
    use crate::fixture::surveyed;
    use diskproof_model::surface::Scan;

    pub(super) const EXAMPLES: Examples = Examples::new(
        || {
            scanned(|scan| {
                scan.unreadable = (1..=6).map(unreadable_range).collect();
                scan.unreadable_bytes = 6 * 4096;
            })
        },
        || scanned(|_| ()),
    )
    .and_fires_on(&[|| accepted(Fault::Unreadable)]);

    pub(in crate::rules) fn scanned(change: impl FnOnce(&mut Scan)) -> Record {
        surveyed::faulty(|survey| change(survey.scan.insert(surveyed::scan())))
    }

    fn unreadable_range(number: u64) -> UnreadableRange {
        UnreadableRange {
            offset_bytes: number * 80_000_000 * 512,
            length_bytes: 4096,
            lba: number * 80_000_000,
            errno: "EIO".to_owned(),
        }
    }

    #[test]
    fn unreadable_ranges_are_reported_by_lba() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Failure, 5)
        );
        states(
            &finding.claim,
            &["24 KiB", "LBA 80000000 (4 KiB at 41.0 GB, EIO)", "2 more"],
        );
    }
}
