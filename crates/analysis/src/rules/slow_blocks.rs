//! `slow-blocks`: a scan met blocks that were slow twice.

use super::evidence::{evidence_at, gigabytes};
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule};
use diskproof_model::finding::Severity;
use diskproof_model::record::Record;
use diskproof_model::units::{counted, format_latency};

pub(super) const RULES: &[Rule] = &[Rule {
    code: "slow-blocks",
    title: "Some blocks read slowly every time",
    meaning: "The scan found blocks that took far longer than others, also on a second read. The \
              disk retries them.",
    taints: None,
    check: Check::Survey(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
}];

/// Blocks named in the claim, the slowest; the record names up to a thousand.
const NAMED: usize = 4;

fn check(record: &Record) -> Option<Diagnosis> {
    let scan = record
        .surface
        .as_ref()?
        .scan
        .as_ref()
        .filter(|s| s.slow_blocks > 0)?;
    let mut slowest: Vec<_> = scan.slow.iter().enumerate().collect();
    slowest.sort_by_key(|(_, block)| std::cmp::Reverse(block.latency_ns));
    slowest.truncate(NAMED);
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
        "Check smartctl -a (pending, reallocated), scan again in a few days, and replace \
         the disk if there are more. The disk reads such blocks several times before it \
         succeeds; rewriting a block, as a restore does, often repairs it.",
    ))
}

#[cfg(test)]
mod tests {
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
        let finding = check(&fires()).unwrap();
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
        assert_eq!(check(&surveyed::judge(run.clone())), None);
        run.1.scan = Some(surveyed::scan());
        assert_eq!(check(&surveyed::judge(run)), None);
    }
}
