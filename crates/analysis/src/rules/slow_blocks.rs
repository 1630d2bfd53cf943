//! `slow-blocks`: a scan met blocks that were slow twice.

use super::rule::*;
use super::starved::is_survey_starved;
use diskproof_model::surface::SlowBlock;

pub(super) const RULE: Rule = Rule {
    code: "slow-blocks",
    title: "Some blocks read slowly every time",
    meaning: "The scan found blocks that took far longer than others, also on a second read. The \
              disk retries them.",
    remedy: Remedy::Always(
        "Check smartctl -a (pending, reallocated), scan again in a few days, and replace the disk \
         if there are more. The disk reads such blocks several times before it succeeds; rewriting \
         a block, as a restore does, often repairs it.",
    ),
    check: Check::Survey(check),
    says: Meaning::Disk,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Blocks named in the claim, the slowest; the record names up to a thousand.
const NAMED: usize = 4;

fn check(record: &Record) -> Option<Diagnosis> {
    let surface = record.surface()?;
    let scan = surface.data.scan.as_ref()?;
    if scan.slow_blocks == 0 {
        return None;
    }
    let mut slowest: Vec<(usize, &SlowBlock)> = scan.slow.iter().enumerate().collect();
    slowest.sort_by_key(|(_, block)| std::cmp::Reverse(block.latency_ns));
    slowest.truncate(NAMED);
    let path = first_result_path("data/scan/slow_blocks");
    let mut observations = vec![evidence_at(path, scan.slow_blocks as f64, 0.0, "1")];
    let mut places = Vec::new();
    for (index, block) in slowest {
        let path = first_result_path(&format!("data/scan/slow/{index}/latency_ns"));
        let slow_from_ns = scan.slow_from_ns as f64;
        observations.push(evidence_at(
            path,
            block.latency_ns as f64,
            slow_from_ns,
            "ns",
        ));
        places.push(format!(
            "LBA {} at {} took {}",
            block.lba,
            gigabytes(block.offset_bytes),
            format_latency(block.latency_ns)
        ));
    }
    let the_slowest = if places.is_empty() {
        String::new()
    } else {
        format!(" The slowest: {}.", places.join("; "))
    };
    let (severity, doubt) = if is_survey_starved(surface) {
        (
            Severity::Note,
            " Whether these blocks are slow is not decided: diskproof waited for a processor \
             during the scan. Scan again when the machine is quieter.",
        )
    } else {
        (Severity::Warning, "")
    };
    Some(Diagnosis::new(
        severity,
        format!(
            "{} of {} took more than {} both times they were read; half of all blocks take {} or \
             less.{the_slowest}{doubt}",
            scan.slow_blocks,
            counted(scan.blocks, "block"),
            format_latency(scan.slow_from_ns),
            format_latency(scan.latency_p50_ns)
        ),
        observations,
    ))
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
