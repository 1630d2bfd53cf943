//! `bad-blocks`: blocks that were read back do not contain what was written to them, in this run or
//! in an earlier one. The rule reports the outcome of the verification and judges nothing itself.

use super::rule::*;
use diskproof_model::measurement::{RealSize, VerifyResult};

pub(super) const RULE: Rule = Rule {
    code: "bad-blocks",
    title: "Blocks read back wrong",
    summary: "Blocks that the disk had acknowledged contained other data when they were read back, \
              or do not contain the data of an earlier run.",
    remedy: Remedy::ByCase,
    check: Check::Workloads(check),
    says: Meaning::NotTheDisk {
        cause: Cause::Failed,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

const REMEDY_WRONG: &str = "Move the data off this disk, because the disk, its cable, the \
                            controller or the memory loses or changes writes. Repeat the run with \
                            the same seed, then run memtest and smartctl -a.";

const REMEDY_NOT_AS_WRITTEN: &str = "If nothing else has written to these blocks, move the data \
                                     off this disk, because it loses or changes data. Read the \
                                     blocks again, then run memtest and smartctl -a.";

const REMEDY_COUNTERFEIT: &str = "Return this disk: it is a counterfeit, or defective. Copy what \
                                  it holds elsewhere first, and trust none of it.";

const REMEDY_NOT_THE_PATTERN: &str = "If the file was filled with this pattern and nothing else \
                                      has written to it, move the data off this disk, because it \
                                      loses or changes data. Read the blocks again, then run \
                                      memtest and smartctl -a.";

/// The claim names so many damaged blocks, which is enough to look at; the record names up to a
/// hundred.
const NAMED_MAX: usize = 3;

/// A workload whose blocks were read back.
#[derive(Clone, Copy)]
pub(super) struct VerifiedRow<'a> {
    pub(super) measured: Measured<'a>,
    pub(super) result: &'a VerifyResult,
}

/// Every workload whose blocks were read back, also those without a bad block.
pub(super) fn verified_rows(record: &Record) -> Vec<VerifiedRow<'_>> {
    let mut rows = Vec::new();
    for measured in measured_rows(record) {
        if let Some(result) = &measured.row.data.verify {
            rows.push(VerifiedRow { measured, result });
        }
    }
    rows
}

pub(super) fn check(record: &Record) -> Option<Diagnosis> {
    let mut hits = verified_rows(record);
    hits.retain(|hit| hit.result.wrong_blocks() > 0);
    if hits.is_empty() {
        return None;
    }
    let fault = fault_of_blocks(record, &hits);
    let damage = damage_claim(record, &hits, &fault.cause);
    let (claim, remedy) = match capacity(record, &hits) {
        Some(Capacity::Counterfeit(sentence)) => (
            format!("{sentence} {damage}"),
            REMEDY_COUNTERFEIT.to_owned(),
        ),
        Some(Capacity::LostFrom(sentence)) => (format!("{sentence} {damage}"), fault.remedy),
        None => (damage, fault.remedy),
    };
    let observations = hits.iter().map(|hit| {
        let wrong = hit.result.wrong_blocks() as f64;
        hit.measured
            .evidence("data/verify/bad_blocks", wrong, 0.0, "1")
    });
    Some(Diagnosis::new(Severity::Failure, claim, observations).with_remedy(remedy))
}

/// The number of damaged blocks of all workloads, their fault, and places of the first workload.
fn damage_claim(record: &Record, hits: &[VerifiedRow<'_>], fault: &str) -> String {
    let bad: u64 = hits.iter().map(|hit| hit.result.wrong_blocks()).sum();
    let blocks: u64 = hits.iter().map(|hit| hit.result.blocks).sum();
    format!(
        "{bad} of {} {} {fault} in {}{}{}.",
        counted(blocks, "block"),
        if bad == 1 { "is" } else { "are" },
        workload_names(record, hits.iter().map(|hit| hit.measured.index)),
        first_bad_blocks(hits[0].result),
        unchecked_clause(hits)
    )
}

/// A check that was cut short says nothing of the rest: a clause on that.
fn unchecked_clause(hits: &[VerifiedRow<'_>]) -> String {
    match hits.iter().map(|hit| hit.result.unchecked()).sum::<u64>() {
        0 => String::new(),
        1 => "; 1 more was written but not read back".to_owned(),
        n => format!("; {n} more were written but not read back"),
    }
}

/// `: offset 8192: wrong checksum; offset 16384: …`
fn first_bad_blocks(result: &VerifyResult) -> String {
    if result.bad.is_empty() {
        return String::new();
    }
    let named: Vec<String> = result
        .bad
        .iter()
        .take(NAMED_MAX)
        .map(|block| format!("offset {}: {}", block.offset_bytes, block.why))
        .collect();
    format!(": {}", named.join("; "))
}

/// The fault of the blocks as a clause: what is in them, which is not what should be.
fn fault_of_blocks(record: &Record, hits: &[VerifiedRow<'_>]) -> Explanation {
    if hits.iter().all(|hit| has_known_content(record, hit)) {
        Explanation::new("not the given pattern", REMEDY_NOT_THE_PATTERN)
    } else if hits.iter().all(|hit| hit.result.runs.is_some()) {
        Explanation::new("not what an earlier run wrote", REMEDY_NOT_AS_WRITTEN)
    } else {
        Explanation::new("wrong when read back", REMEDY_WRONG)
    }
}

/// True if the reads of a workload were compared with a pattern that the plan gives.
fn has_known_content(record: &Record, hit: &VerifiedRow<'_>) -> bool {
    let name = &hit.measured.row.data.workload.name;
    let workloads = record.plan.workloads();
    match workloads.iter().find(|workload| workload.name == *name) {
        Some(workload) => workload.checks_reads() && workload.shape.content.known.is_some(),
        None => false,
    }
}

/// The capacity of a block device, as far as damaged blocks show it.
enum Capacity {
    /// `/dev/sdb claims 96 MiB, but holds 24 MiB: blocks beyond replace those 24 MiB lower.`
    Counterfeit(String),
    /// `Every checked block from 24 MiB on is lost.` The rest of the device was not checked.
    LostFrom(String),
}

/// The first counterfeit among the devices, or else the place from which on all blocks are lost.
/// `None` where a record lacks a target, and where single blocks are damaged.
fn capacity(record: &Record, hits: &[VerifiedRow<'_>]) -> Option<Capacity> {
    let mut lost_from = None;
    for hit in hits {
        let target = record.targets.get(hit.measured.row.data.target)?;
        if target.kind != TargetKind::BlockDevice {
            continue;
        }
        let Some(size) = hit.result.real_size(target.size_bytes) else {
            lost_from = lost_from.or(hit.result.lost_from());
            continue;
        };
        let claimed = format_bytes(target.size_bytes);
        let held = format_bytes(size.bytes());
        let how = match size {
            RealSize::Wraps(_) => format!("blocks beyond replace those {held} lower"),
            RealSize::Ends(_) => "every checked block from there on is lost".to_owned(),
        };
        let path = &target.path;
        let text = format!("{path} claims {claimed}, but holds {held}: {how}.");
        return Some(Capacity::Counterfeit(text));
    }
    let from = format_bytes(lost_from?);
    let text = format!("Every checked block from {from} on is lost.");
    Some(Capacity::LostFrom(text))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::fixture::{self, states};
    use diskproof_model::measurement::BadBlock;

    pub(super) const EXAMPLES: Examples = Examples::new(
        || {
            verified(|result| {
                result.bad_blocks = 1;
                result.bad = vec![BadBlock {
                    offset_bytes: 8192,
                    why: "wrong checksum: torn or corrupted".to_owned(),
                    written_to_bytes: None,
                }];
            })
        },
        || verified(|_| ()),
    );

    /// 1000 blocks read back.
    pub(in crate::rules) fn verified(change: impl Fn(&mut VerifyResult)) -> Record {
        fixture::faulty("random-write-d32", |measurement| {
            let mut result = VerifyResult {
                blocks: 1000,
                ..VerifyResult::default()
            };
            change(&mut result);
            measurement.verify = Some(result);
        })
    }

    /// Blocks of earlier runs.
    pub(in crate::rules) fn earlier(
        bad_blocks: u64,
        unsigned: u64,
        other_size: u64,
        runs: u64,
    ) -> Record {
        verified(|result| {
            result.bad_blocks = bad_blocks;
            result.unsigned_blocks = Some(unsigned);
            result.other_size_blocks = Some(other_size);
            result.other_size_bytes = (other_size > 0).then_some(65_536);
            result.runs = Some(runs);
        })
    }

    #[test]
    fn a_bad_block_is_a_failure_with_its_offset() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(finding.severity, Severity::Failure);
        states(&finding.claim, &["1 of 1000", "8192", "wrong checksum"]);
        assert_eq!(check(&fixture::record()), None);
    }

    #[test]
    fn check_that_was_cut_reports_how_much_it_skipped() {
        let cut = verified(|result| (result.blocks_written, result.bad_blocks) = (Some(5000), 2));
        states(
            &check(&cut).unwrap().claim,
            &["2 of 1000", "4000 more were"],
        );
        let cut = verified(|result| (result.blocks_written, result.bad_blocks) = (Some(1001), 2));
        states(&check(&cut).unwrap().claim, &["1 more was written"]);
    }

    /// Blocks of 1 MiB of a device of 96 MiB, as the places of each say.
    fn device(
        checked: &[(std::ops::Range<u64>, Option<u64>)],
        lost: std::ops::Range<u64>,
    ) -> Record {
        let mut record = verified(|result| {
            result.blocks = 0;
            for (blocks, written_to) in checked {
                for block in blocks.clone() {
                    let bad = BadBlock {
                        offset_bytes: block << 20,
                        why: "test".to_owned(),
                        written_to_bytes: written_to.map(|distance| (block + distance) << 20),
                    };
                    result.blocks += 1;
                    if written_to.is_some() || lost.contains(&block) {
                        result.bad_blocks += 1;
                        result.places.add_damaged(&bad, 1 << 20);
                    } else {
                        result.places.add_intact(block << 20, 1 << 20);
                    }
                }
            }
        });
        record.targets[0].kind = TargetKind::BlockDevice;
        record.targets[0].size_bytes = 96 << 20;
        record
    }

    fn is_counterfeit(record: &Record) -> bool {
        let headline = crate::verification::verification_headline(record).unwrap();
        let is_named = headline.contains("are real");
        let diagnosis = check(record).unwrap();
        assert_eq!(
            diagnosis.remedy == REMEDY_COUNTERFEIT,
            is_named,
            "{headline}"
        );
        assert_eq!(diagnosis.claim.contains("holds"), is_named, "{headline}");
        is_named
    }

    #[test]
    fn counterfeit_needs_a_check_up_to_the_end() {
        let whole = device(&[(0..96, None)], 24..96);
        assert!(is_counterfeit(&whole));
        // The last 64 MiB were not read.
        let part = device(&[(0..32, None)], 24..32);
        assert!(!is_counterfeit(&part));
        states(&check(&part).unwrap().claim, &["from 24 MiB on"]);
        let hole = device(&[(0..96, None)], 24..32);
        assert!(!is_counterfeit(&hole));
    }

    fn copied_device(end: u64) -> Record {
        device(&[(0..40, None), (40..48, Some(40)), (48..end, None)], 0..0)
    }

    #[test]
    fn device_with_more_intact_blocks_than_it_may_hold_does_not_wrap() {
        let wrapped = device(
            &[(0..24, Some(72)), (24..48, Some(48)), (72..96, None)],
            0..0,
        );
        assert!(is_counterfeit(&wrapped));
        // Eight blocks were copied 40 MiB higher, and all or some were read.
        assert!(!is_counterfeit(&copied_device(96)));
        let near = device(&[(40..48, Some(40)), (48..72, None)], 0..0);
        assert!(!is_counterfeit(&near));
        // All blocks of a first part, of which only a multiple of the size is known.
        assert!(!is_counterfeit(&device(&[(0..8, Some(72))], 0..0)));
    }
}
