//! `slow-blocks`: a scan found blocks that were far slower than others, also at a second reading.

use super::rule::*;
use super::starved::is_survey_starved;
use diskproof_model::surface::{Scan, SlowBlock};

pub(super) const RULE: Rule = Rule {
    code: "slow-blocks",
    title: "Some blocks read slowly every time",
    summary: "The scan found blocks that took far longer than others, also on a second read. A \
              disk is as slow as that where it retries.",
    remedy: Remedy::Always(
        "Check smartctl -a (pending, reallocated), scan again in a few days, and replace the disk \
         if there are more. A worn disk reads such blocks several times before it succeeds, and \
         rewriting a block, as a restore does, often repairs it. A region of such blocks may as \
         well be a slower part of a volume or an array.",
    ),
    check: Check::Survey(check),
    says: Meaning::Disk,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// The claim names so many blocks, the slowest, to try by hand; the record names up to a thousand.
const NAMED_MAX: usize = 4;

/// A block that was slow at both readings, and its place in the list of the record.
struct PlacedBlock<'a> {
    index: usize,
    block: &'a SlowBlock,
}

impl PlacedBlock<'_> {
    fn clause(&self) -> String {
        format!(
            "LBA {} at {} took {}",
            self.block.lba,
            gigabytes(self.block.offset_bytes),
            format_latency(self.block.latency_ns)
        )
    }

    fn evidence(&self, slow_from_ns: u64) -> Evidence {
        let path = first_result_path(&format!("data/scan/slow/{}/latency_ns", self.index));
        let latency_ns = self.block.latency_ns as f64;
        evidence_at(path, latency_ns, slow_from_ns as f64, "ns")
    }
}

fn check(record: &Record) -> Option<Diagnosis> {
    let surface = record.surface()?;
    let scan = surface.data.scan.as_ref()?;
    if scan.slow_blocks == 0 {
        return None;
    }
    let slowest = slowest_blocks(scan);
    let path = first_result_path("data/scan/slow_blocks");
    let mut observations = vec![evidence_at(path, scan.slow_blocks as f64, 0.0, "1")];
    for placed in &slowest {
        observations.push(placed.evidence(scan.slow_from_ns));
    }
    let is_starved = is_survey_starved(surface);
    let doubt = if is_starved { DOUBT } else { "" };
    Some(Diagnosis::new(
        warning_if(!is_starved),
        format!(
            "{}{}{doubt}",
            count_sentence(scan),
            slowest_sentence(&slowest)
        ),
        observations,
    ))
}

/// Follows the claim where what was slow may have been this program.
const DOUBT: &str = " Whether these blocks are slow is not decided: diskproof waited for a \
                     processor during the scan. Scan again when the machine is quieter.";

/// The blocks that the claim names, the slowest first.
fn slowest_blocks(scan: &Scan) -> Vec<PlacedBlock<'_>> {
    let mut slowest: Vec<PlacedBlock<'_>> = Vec::new();
    for (index, block) in scan.slow.iter().enumerate() {
        slowest.push(PlacedBlock { index, block });
    }
    slowest.sort_by_key(|placed| std::cmp::Reverse(placed.block.latency_ns));
    slowest.truncate(NAMED_MAX);
    slowest
}

fn count_sentence(scan: &Scan) -> String {
    format!(
        "{} of {} took more than {} both times {} read{}.",
        scan.slow_blocks,
        counted(scan.blocks, "block"),
        format_latency(scan.slow_from_ns),
        if scan.slow_blocks == 1 {
            "it was"
        } else {
            "they were"
        },
        match scan.latency_p50_ns {
            Some(median_ns) => format!(
                "; half of all blocks take {} or less",
                format_latency(median_ns)
            ),
            None => String::new(),
        }
    )
}

fn slowest_sentence(slowest: &[PlacedBlock<'_>]) -> String {
    if slowest.is_empty() {
        return String::new();
    }
    let clauses: Vec<String> = slowest.iter().map(PlacedBlock::clause).collect();
    format!(" The slowest: {}.", clauses.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::states;
    use crate::rules::unreadable_blocks::tests::scanned;

    pub(super) const EXAMPLES: Examples = Examples::new(
        || {
            scanned(|scan| {
                scan.slow = (1..=5).map(slow_block).collect();
                scan.slow_blocks = 5;
            })
        },
        || scanned(|_| ()),
    );

    fn slow_block(number: u64) -> SlowBlock {
        SlowBlock {
            offset_bytes: number << 30,
            lba: number << 21,
            latency_ns: number * 300_000_000,
        }
    }

    #[test]
    fn slow_blocks_of_a_starved_scan_are_not_decided() {
        let mut record = (EXAMPLES.fires)();
        record.surface_mut().unwrap().figures.starved_share = 0.3;
        let finding = check(&record).unwrap();
        assert_eq!(finding.severity, Severity::Note);
        states(&finding.claim, &["not decided"]);
    }

    #[test]
    fn the_slowest_blocks_are_named_first() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
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
