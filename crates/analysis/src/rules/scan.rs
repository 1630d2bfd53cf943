//! What a scan met: `unreadable-blocks`, sectors that could not be read, and `slow-blocks`, blocks
//! that were slow twice.

use super::program;
use super::rule::*;
use diskproof_model::surface::UnreadableRange;

pub(super) const UNREADABLE_BLOCKS: Rule = Rule {
    code: "unreadable-blocks",
    check: Check::Survey(check_unreadable_blocks),
    says: Meaning::Disk,
    #[cfg(test)]
    examples: tests::UNREADABLE_BLOCKS,
};

/// Ranges named in the claim; the record names up to a thousand.
const NAMED: usize = 4;

fn check_unreadable_blocks(record: &Record) -> Option<Diagnosis> {
    let scan = record
        .surface()?
        .data
        .scan
        .as_ref()
        .filter(|s| s.unreadable_bytes > 0)?;
    let ranges = scan.unreadable.iter().enumerate().take(NAMED);
    let ranges = ranges.map(|(i, range)| {
        let path = format!("/results/0/data/scan/unreadable/{i}/length_bytes");
        (path, range.length_bytes)
    });
    let all = "/results/0/data/scan/unreadable_bytes".to_owned();
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
    says: Meaning::Disk,
    #[cfg(test)]
    examples: tests::SLOW_BLOCKS,
};

/// Blocks named in the claim, the slowest; the record names up to a thousand.
const BLOCKS_NAMED: usize = 4;

fn check_slow_blocks(record: &Record) -> Option<Diagnosis> {
    let scan = record
        .surface()?
        .data
        .scan
        .as_ref()
        .filter(|s| s.slow_blocks > 0)?;
    let mut slowest: Vec<_> = scan.slow.iter().enumerate().collect();
    slowest.sort_by_key(|(_, block)| std::cmp::Reverse(block.latency_ns));
    slowest.truncate(BLOCKS_NAMED);
    let count = scan.slow_blocks as f64;
    let mut evidence = vec![evidence_at(
        "/results/0/data/scan/slow_blocks",
        count,
        0.0,
        "1",
    )];
    evidence.extend(slowest.iter().map(|(i, block)| {
        let path = format!("/results/0/data/scan/slow/{i}/latency_ns");
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
    let is_starved = record.surface().is_some_and(program::is_starved);
    let (severity, doubt) = if is_starved {
        let doubt = " Whether these blocks are slow is not decided: diskproof waited for a \
                     processor during the scan. Scan again when the machine is quieter.";
        (Severity::Note, doubt)
    } else {
        (Severity::Warning, "")
    };
    Some(Diagnosis::new(
        severity,
        format!(
            "{} of {} took more than {} both times they were read; half of all blocks take {} or \
             less.{places}{doubt}",
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
    use crate::fixture::{states, surveyed};
    use diskproof_model::surface::{Scan, SlowBlock};

    pub(super) const UNREADABLE_BLOCKS: Examples = Examples::of(
        || {
            scanned(|scan| {
                let range = |i: u64| UnreadableRange {
                    offset_bytes: i * 80_000_000 * 512,
                    length_bytes: 4096,
                    lba: i * 80_000_000,
                    errno: "EIO".to_owned(),
                };
                scan.unreadable = (1..=6).map(range).collect();
                scan.unreadable_bytes = 6 * 4096;
            })
        },
        || scanned(|_| ()),
    );
    pub(super) const SLOW_BLOCKS: Examples = Examples::of(
        || {
            scanned(|scan| {
                let block = |i: u64| SlowBlock {
                    offset_bytes: i << 30,
                    lba: i << 21,
                    latency_ns: i * 300_000_000,
                };
                (scan.slow, scan.slow_blocks) = ((1..=5).map(block).collect(), 5);
            })
        },
        || scanned(|_| ()),
    );

    fn scanned(change: impl FnOnce(&mut Scan)) -> Record {
        surveyed::faulty(|survey| change(survey.scan.insert(surveyed::scan())))
    }

    #[test]
    fn unreadable_ranges_are_reported_by_lba() {
        let finding = check_unreadable_blocks(&(UNREADABLE_BLOCKS.fires)()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Failure, 5)
        );
        states(
            &finding.claim,
            &["24 KiB", "LBA 80000000 (4 KiB at 41.0 GB, EIO)", "2 more"],
        );
    }

    #[test]
    fn slow_blocks_of_a_starved_scan_are_not_decided() {
        let mut record = (SLOW_BLOCKS.fires)();
        record.surface_mut().unwrap().figures.starved_share = 0.3;
        let finding = check_slow_blocks(&record).unwrap();
        assert_eq!(finding.severity, Severity::Note);
        states(&finding.claim, &["not decided"]);
    }

    #[test]
    fn the_slowest_blocks_are_named_first() {
        let finding = check_slow_blocks(&(SLOW_BLOCKS.fires)()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Warning, 5)
        );
        assert_eq!(
            finding.evidence[1].path,
            "/results/0/data/scan/slow/4/latency_ns"
        );
        states(
            &finding.claim,
            &["LBA 10485760 at 5.4 GB took 1.50 s; LBA 8388608"],
        );
    }
}
