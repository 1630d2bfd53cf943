//! What a scan met: `unreadable-blocks`, sectors that could not be read, and `slow-blocks`, blocks
//! that were slow twice.

use super::rule::*;
use diskproof_model::surface::UnreadableRange;

pub(super) const UNREADABLE_BLOCKS: Rule = Rule {
    code: "unreadable-blocks",
    check: Check::Survey(check_unreadable_blocks),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
};

/// Ranges named in the claim; the record names up to a thousand.
const NAMED: usize = 4;

fn check_unreadable_blocks(record: &Record) -> Option<Diagnosis> {
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

pub(super) const SLOW_BLOCKS: Rule = Rule {
    code: "slow-blocks",
    check: Check::Survey(check_slow_blocks),
    #[cfg(test)]
    examples: Examples {
        fires: slow_blocks_tests::fires,
        silent: slow_blocks_tests::silent,
    },
};

/// Blocks named in the claim, the slowest; the record names up to a thousand.
const BLOCKS_NAMED: usize = 4;

fn check_slow_blocks(record: &Record) -> Option<Diagnosis> {
    let scan = record
        .surface
        .as_ref()?
        .scan
        .as_ref()
        .filter(|s| s.slow_blocks > 0)?;
    let mut slowest: Vec<_> = scan.slow.iter().enumerate().collect();
    slowest.sort_by_key(|(_, block)| std::cmp::Reverse(block.latency_ns));
    slowest.truncate(BLOCKS_NAMED);
    let count = scan.slow_blocks as f64;
    let mut evidence = vec![evidence_at("/surface/scan/slow_blocks", count, 0.0, "1")];
    evidence.extend(slowest.iter().map(|(i, block)| {
        let path = format!("/surface/scan/slow/{i}/latency_ns");
        let slow_from_ns = scan.slow_from_ns as f64;
        evidence_at(path, block.latency_ns as f64, slow_from_ns, "ns")
    }));
    let places = slowest.iter().map(|(_, block)| {
        format!(
            "LBA {} at {} took {}",
            block.lba,
            gigabytes(block.offset_bytes),
            format_latency(block.latency_ns)
        )
    });
    let places = match places.collect::<Vec<_>>() {
        places if places.is_empty() => String::new(),
        places => format!(" The slowest: {}.", places.join("; ")),
    };
    Some(Diagnosis::new(
        Severity::Warning,
        format!(
            "{} of {} took more than {} both times they were read; half of all blocks take {} or \
             less.{places}",
            scan.slow_blocks,
            counted(scan.blocks, "block"),
            format_latency(scan.slow_from_ns),
            format_latency(scan.latency_p50_ns)
        ),
        evidence,
    ))
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
        let finding = check_unreadable_blocks(&fires()).unwrap();
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
        assert_eq!(check_unreadable_blocks(&surveyed::judge(run.clone())), None);
        run.1.scan = Some(surveyed::scan());
        assert_eq!(check_unreadable_blocks(&surveyed::judge(run)), None);
    }
}

#[cfg(test)]
mod slow_blocks_tests {
    use super::*;
    use crate::fixture::surveyed::{self, SurveyedDisk};
    use diskproof_model::surface::SlowBlock;

    pub(super) fn fires() -> Record {
        let mut run = SurveyedDisk::rotating().run(1);
        let mut scan = surveyed::scan();
        let block = |i: u64| SlowBlock {
            offset_bytes: i << 30,
            lba: i << 21,
            latency_ns: i * 300_000_000,
        };
        (scan.slow, scan.slow_blocks) = ((1..=5).map(block).collect(), 5);
        run.1.scan = Some(scan);
        surveyed::judge(run)
    }

    pub(super) fn silent() -> Record {
        let mut run = SurveyedDisk::rotating().run(1);
        run.1.scan = Some(surveyed::scan());
        surveyed::judge(run)
    }

    #[test]
    fn the_slowest_blocks_are_named_first() {
        let finding = check_slow_blocks(&fires()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Warning, 5)
        );
        assert_eq!(finding.evidence[1].path, "/surface/scan/slow/4/latency_ns");
        assert!(
            finding
                .claim
                .contains("The slowest: LBA 10485760 at 5.4 GB took 1.50 s; LBA 8388608"),
            "{}",
            finding.claim
        );
    }

    #[test]
    fn a_clean_scan_and_none_are_no_finding() {
        let mut run = SurveyedDisk::rotating().run(1);
        assert_eq!(check_slow_blocks(&surveyed::judge(run.clone())), None);
        run.1.scan = Some(surveyed::scan());
        assert_eq!(check_slow_blocks(&surveyed::judge(run)), None);
    }
}
