//! What the blocks held. `bad-blocks`: what was written did not come back, at once or in a later
//! run; knows the outcome of the verification only. `unwritten-blocks`: blocks were read that were
//! never written; they cost no access to the medium. `ineffective-trims`: the device had little to
//! do for some trims.

use super::rule::*;
use diskproof_model::measurement::{RealSize, VerifyResult};

pub(super) const VERIFICATION: &[Rule] = &[BAD, UNVERIFIED];

const BAD: Rule = Rule {
    code: "bad-blocks",
    check: Check::Workloads(check),
    says: Meaning::NotTheDisk {
        cause: Cause::Failed,
    },
    #[cfg(test)]
    examples: tests::BAD_BLOCKS,
};

const UNVERIFIED: Rule = Rule {
    code: "unverified-blocks",
    check: Check::Workloads(check_unverified),
    says: Meaning::Note,
    #[cfg(test)]
    examples: tests::UNVERIFIED_BLOCKS,
};

const WRONG: &str = "Move the data off this disk, because the disk, its cable, the controller or \
                     the memory loses or changes writes. Repeat the run with the same seed, then \
                     run memtest and smartctl -a.";
const NOT_AS_WRITTEN: &str = "If nothing else has written to these blocks, move the data off this \
                              disk, because it loses or changes data. Read the blocks again, then \
                              run memtest and smartctl -a.";

const COUNTERFEIT: &str = "Return this disk: it is a counterfeit, or defective. Copy what it holds \
                           elsewhere first, and trust none of it.";
const NOT_THE_PATTERN: &str = "If the file was filled with this pattern and nothing else has \
                               written to it, move the data off this disk, because it loses or \
                               changes data. Read the blocks again, then run memtest and \
                               smartctl -a.";

/// Bad blocks named in the claim; the record names up to a hundred.
const NAMED: usize = 3;

fn check(record: &Record) -> Option<Diagnosis> {
    let hits = verified(record, |v| v.wrong_blocks() > 0);
    let (_, first) = hits.first()?;
    let sum = |of: fn(&VerifyResult) -> u64| hits.iter().map(|(_, v)| of(v)).sum::<u64>();
    let bad = sum(VerifyResult::wrong_blocks);
    // A check that was cut short says nothing of the rest.
    let rest = match sum(VerifyResult::unchecked) {
        0 => String::new(),
        unchecked => format!("; {unchecked} more were written but not read back"),
    };
    let named: Vec<String> = first
        .bad
        .iter()
        .take(NAMED)
        .map(|b| format!("offset {}: {}", b.offset_bytes, b.why))
        .collect();
    let scope = scope(record, hits.iter().map(|h| h.0));
    let are_earlier = hits.iter().all(|(_, v)| v.runs.is_some());
    let is_compared = |index: usize| {
        let name = &record.measurements[index].data.workload.name;
        let workload = record.plan.workloads().iter().find(|one| one.name == *name);
        workload.is_some_and(|one| one.checks_reads() && one.shape.known_content.is_some())
    };
    let (what, remedy) = if hits.iter().all(|(index, _)| is_compared(*index)) {
        ("not the given pattern", NOT_THE_PATTERN)
    } else if are_earlier {
        ("not what an earlier run wrote", NOT_AS_WRITTEN)
    } else {
        ("wrong when read back", WRONG)
    };
    let blocks = counted(sum(|v| v.blocks), "block");
    let is = if bad == 1 { "is" } else { "are" };
    let named = match named.as_slice() {
        [] => String::new(),
        named => format!(": {}", named.join("; ")),
    };
    let claim = format!("{bad} of {blocks} {is} {what} in {scope}{named}{rest}.");
    let (claim, remedy) = match capacity(record, &hits) {
        Some(Capacity::Counterfeit(text)) => (format!("{text} {claim}"), COUNTERFEIT),
        Some(Capacity::LostFrom(text)) => (format!("{text} {claim}"), remedy),
        None => (claim, remedy),
    };
    Some(Diagnosis::with_remedy(
        Severity::Failure,
        claim,
        hits.iter().map(|(index, v)| {
            let wrong = v.wrong_blocks() as f64;
            evidence(*index, "data/verify/bad_blocks", wrong, 0.0, "1")
        }),
        remedy,
    ))
}

/// What damaged blocks show of how much a block device holds.
enum Capacity {
    /// `/dev/sdb claims 96 MiB, but holds 24 MiB: blocks beyond replace those 24 MiB lower.`
    Counterfeit(String),
    /// `Every checked block from 24 MiB on is lost.` The rest of the device was not checked.
    LostFrom(String),
}

fn capacity(record: &Record, hits: &[(usize, &VerifyResult)]) -> Option<Capacity> {
    let mut lost_from = None;
    for (index, verified) in hits {
        let target = record
            .targets
            .get(record.measurements[*index].data.target)?;
        if target.kind != TargetKind::BlockDevice {
            continue;
        }
        let Some(size) = verified.real_size(target.size_bytes) else {
            lost_from = lost_from.or(verified.lost_from());
            continue;
        };
        let (path, claimed) = (&target.path, format_bytes(target.size_bytes));
        let held = format_bytes(size.bytes());
        let how = match size {
            RealSize::Wraps(_) => format!("blocks beyond replace those {held} lower"),
            RealSize::Ends(_) => "every checked block from there on is lost".to_owned(),
        };
        let text = format!("{path} claims {claimed}, but holds {held}: {how}.");
        return Some(Capacity::Counterfeit(text));
    }
    let from = format_bytes(lost_from?);
    let text = format!("Every checked block from {from} on is lost.");
    Some(Capacity::LostFrom(text))
}

/// Blocks that cannot be judged are a warning where none could be.
/// The workloads whose blocks were read back, of which this is true.
fn verified(record: &Record, is_hit: fn(&VerifyResult) -> bool) -> Vec<(usize, &VerifyResult)> {
    let measured = record.measurements.iter().enumerate();
    measured
        .filter_map(|(index, m)| Some((index, m.data.verify.as_ref()?)))
        .filter(|(_, v)| is_hit(v))
        .collect()
}

fn check_unverified(record: &Record) -> Option<Diagnosis> {
    let hits = verified(record, |v| v.bad_blocks > v.wrong_blocks());
    let (_, first) = hits.first()?;
    let sum = |of: fn(&VerifyResult) -> u64| hits.iter().map(|(_, v)| of(v)).sum::<u64>();
    let blocks = counted(sum(|v| v.blocks), "block");
    let scope = scope(record, hits.iter().map(|hit| hit.0));
    let is_none = sum(|v| v.good_blocks() + v.wrong_blocks()) == 0;
    let claim = if is_none {
        format!("None of {blocks} in {scope} has a signature to verify")
    } else {
        format!(
            "{} of {blocks} in {scope} have no signature to verify",
            sum(|v| v.bad_blocks - v.wrong_blocks())
        )
    };
    let other = sum(|v| v.other_size_blocks.unwrap_or(0));
    let sizes = match first.other_size_bytes {
        Some(bytes) if other > 0 => format!(
            "; {other} of them are starts of blocks written in another size ({})",
            format_bytes(u64::from(bytes))
        ),
        _ => String::new(),
    };
    Some(Diagnosis::new(
        warning_if(is_none),
        format!("{claim}{sizes}."),
        hits.iter().map(|(index, v)| {
            evidence(
                *index,
                "data/verify/bad_blocks",
                v.bad_blocks as f64,
                0.0,
                "1",
            )
        }),
    ))
}

pub(super) const UNWRITTEN_BLOCKS: Rule = Rule {
    code: "unwritten-blocks",
    check: Check::Workloads(check_unwritten_blocks),
    says: Meaning::NotTheDisk {
        cause: Cause::EmptyBlocks,
    },
    #[cfg(test)]
    examples: tests::UNWRITTEN_BLOCKS,
};

/// Share of the span that may be holes: the metadata of a sparse image, not more.
const UNWRITTEN_MAX: f64 = 0.01;
/// From this share on most of the figure is not the medium's.
const UNWRITTEN_FAILURE: f64 = 0.5;
/// Fewer blocks than this are too few to judge their content, unless all agree.
const SAMPLED_MIN: u64 = 20;
/// The fewest blocks that say something when every one of them is empty.
const SAMPLED_ALIKE_MIN: u64 = 5;
/// Share of the blocks that may contain only zeros: databases keep some empty pages.
const ZERO_MAX: f64 = 0.1;

fn check_unwritten_blocks(record: &Record) -> Option<Diagnosis> {
    let hits: Vec<(usize, Diagnosis)> = real(record)
        .filter(|(_, m)| m.data.workload.streams.makes(OpKind::Read))
        .filter_map(|(index, m)| Some((index, empty_reads(index, m)?)))
        .collect();
    let worst = hits.iter();
    let (index, worst) = worst.reduce(|a, b| if b.1.severity > a.1.severity { b } else { a })?;
    let target = record.measurements[*index].data.target;
    let target = record.targets.get(target);
    let remedy = if target.is_some_and(|target| target.kind == TargetKind::BlockDevice) {
        "Measure a device whose span has been written completely, or a part that contains \
         data."
    } else {
        "Measure a directory, in which diskproof fills its own file, or a file with content \
         instead of holes."
    };
    Some(Diagnosis::with_remedy(
        worst.severity,
        format!(
            "Empty blocks were read in {}: {} Such reads need not reach the medium.",
            scope(record, hits.iter().map(|hit| hit.0)),
            worst.claim
        ),
        hits.iter().flat_map(|(_, hit)| hit.evidence.clone()),
        remedy,
    ))
}

/// What the reads of a workload say of its blocks.
fn empty_reads(index: usize, m: &Row) -> Option<Diagnosis> {
    let unwritten = m.data.unwritten_bytes.unwrap_or(0);
    let (span, zero) = (m.data.span_bytes, m.data.zero_blocks);
    let (unwritten_max, zero_max) = (UNWRITTEN_MAX * span as f64, ZERO_MAX * zero.sampled as f64);
    if unwritten as f64 > unwritten_max {
        let share = unwritten as f64 / span.max(1) as f64;
        let words = format!(
            "{} of {} ({}) were never written.",
            format_bytes(unwritten),
            format_bytes(span),
            format_percent(share)
        );
        let unwritten = unwritten as f64;
        let evidence = evidence(index, "data/unwritten_bytes", unwritten, unwritten_max, "B");
        let severity = failure_if(share >= UNWRITTEN_FAILURE);
        return Some(Diagnosis::new(severity, words, [evidence]));
    }
    let enough = if zero.zero == zero.sampled {
        SAMPLED_ALIKE_MIN
    } else {
        SAMPLED_MIN
    };
    let words = format!(
        "{} of {} sampled blocks contain only zeros: never written, discarded, or actually zero.",
        zero.zero, zero.sampled
    );
    let found = zero.zero as f64;
    let evidence = evidence(index, "data/zero_blocks/zero", found, zero_max, "1");
    (zero.sampled >= enough && found >= zero_max)
        .then(|| Diagnosis::new(Severity::Warning, words, [evidence]))
}

pub(super) const INEFFECTIVE_TRIMS: Rule = Rule {
    code: "ineffective-trims",
    check: Check::Workloads(check_ineffective_trims),
    says: Meaning::NotTheDisk {
        cause: Cause::EmptyBlocks,
    },
    #[cfg(test)]
    examples: tests::INEFFECTIVE_TRIMS,
};

/// A device that discards less than this share of the requested bytes ignores trims. The counters
/// of a short part of the measured time are scaled, so that little is no evidence.
const DISCARDED_MIN: f64 = 0.5;
/// More trims than this share of the span meet blocks that were trimmed before. The warm-up and the
/// last pass of several workers may exceed the span by little.
const PASSES_MAX: f64 = 1.1;

fn check_ineffective_trims(record: &Record) -> Option<Diagnosis> {
    let hits = real(record).filter_map(|(index, m)| {
        let op = m.op(OpKind::Trim).filter(|op| op.data.count > 0)?;
        ineffective_trims(record, index, m, op.data.bytes)
    });
    let hits: Vec<(usize, String, Evidence)> = hits.collect();
    let (_, words, _) = hits.first()?;
    Some(Diagnosis::new(
        Severity::Warning,
        format!(
            "Some trims freed nothing in {}: {words} Their rate is not the rate at which the \
             device frees blocks.",
            scope(record, hits.iter().map(|hit| hit.0)),
        ),
        hits.iter().map(|(.., evidence)| evidence.clone()),
    ))
}

fn ineffective_trims(
    record: &Record,
    index: usize,
    m: &Row,
    trimmed_bytes: u64,
) -> Option<(usize, String, Evidence)> {
    let target = record.targets.get(m.data.target)?;
    let seen = |words: String, place: &str, observed: u64, threshold: f64| {
        let evidence = evidence(index, place, observed as f64, threshold, "B");
        Some((index, words, evidence))
    };
    let top = target.layers.first();
    let granularity = top
        .filter(|_| target.accepts_discards() == Some(true))
        .and_then(|layer| layer.discard_granularity_bytes);
    let block_bytes = u64::from(m.data.workload.block_bytes);
    if let Some(unit_bytes) = granularity.filter(|unit_bytes| block_bytes < *unit_bytes) {
        let words = format!(
            "the blocks have {}, and the device may ignore discards of less than {}.",
            format_bytes(block_bytes),
            format_bytes(unit_bytes)
        );
        return seen(
            words,
            "data/workload/block_bytes",
            block_bytes,
            unit_bytes as f64,
        );
    }
    let asked = m.data.asked.trim_bytes as f64;
    if let Some(bytes) = m.data.device.trim_bytes
        && (bytes as f64) < DISCARDED_MIN * asked
    {
        let share = format_percent(bytes as f64 / asked);
        let words = format!("the device discarded {share} of the requested bytes.");
        return seen(
            words,
            "data/device/trim_bytes",
            bytes,
            DISCARDED_MIN * asked,
        );
    }
    let writes_again = m.data.workload.streams.after(OpKind::Trim) == Some(OpKind::Write);
    let most = PASSES_MAX * m.data.span_bytes as f64;
    if trimmed_bytes as f64 <= most || writes_again {
        return None;
    }
    let words = format!(
        "{} were trimmed within {}, so blocks were trimmed again.",
        format_bytes(trimmed_bytes),
        format_bytes(m.data.span_bytes)
    );
    seen(words, "data/ops/trim/bytes", trimmed_bytes, most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, SPAN_BYTES, states};
    use diskproof_model::measurement::{BadBlock, Measurement, ZeroSample};
    use diskproof_model::stream::Streams;

    pub(super) const BAD_BLOCKS: Examples = Examples::of(
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
    pub(super) const UNVERIFIED_BLOCKS: Examples =
        Examples::of(|| earlier(900, 900, 0, 1), || verified(|_| ()));
    pub(super) const UNWRITTEN_BLOCKS: Examples = Examples::of(
        || {
            fixture::changed(|run| {
                run.1[3].unwritten_bytes = Some(SPAN_BYTES / 20);
                run.1[2].zero_blocks = zeros(100, 90);
            })
        },
        || fixture::all_faulty(|m| m.zero_blocks = zeros(1000, 99)),
    );
    pub(super) const INEFFECTIVE_TRIMS: Examples = Examples::of(
        || trimmed(|m| m.span_bytes = m.ops[&OpKind::Trim].bytes / 2),
        || trimmed(|_| {}),
    );

    /// 1000 blocks read back.
    fn verified(change: impl Fn(&mut VerifyResult)) -> Record {
        fixture::faulty("random-write-d32", |m| {
            let mut result = VerifyResult {
                blocks: 1000,
                ..VerifyResult::default()
            };
            change(&mut result);
            m.verify = Some(result);
        })
    }

    /// Blocks of earlier runs.
    fn earlier(bad_blocks: u64, unsigned: u64, other_size: u64, runs: u64) -> Record {
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
        let finding = check(&(BAD_BLOCKS.fires)()).unwrap();
        assert_eq!(finding.severity, Severity::Failure);
        states(&finding.claim, &["1 of 1000", "8192", "wrong checksum"]);
        assert_eq!(check(&fixture::record()), None);
    }

    #[test]
    fn check_that_was_cut_reports_how_much_it_skipped() {
        let cut = verified(|result| (result.blocks_written, result.bad_blocks) = (Some(5000), 2));
        states(&check(&cut).unwrap().claim, &["2 of 1000", "4000"]);
    }

    #[test]
    fn blocks_that_were_never_written_are_no_failure() {
        // Some written, none written, all in another size.
        for (record, severity, part) in [
            (earlier(900, 900, 0, 1), Severity::Note, "900 of 1000"),
            (earlier(1000, 1000, 0, 0), Severity::Warning, "None of 1000"),
            (earlier(1000, 900, 100, 0), Severity::Warning, "64 KiB"),
        ] {
            assert_eq!(check(&record), None);
            let found = check_unverified(&record).unwrap();
            assert_eq!(found.severity, severity);
            states(&found.claim, &[part]);
        }
        let found = check(&earlier(907, 900, 0, 1)).unwrap();
        assert_eq!(found.severity, Severity::Failure);
        states(&found.claim, &["7 of 1000"]);
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
        let headline = crate::headline::verification_headline(record).unwrap();
        let is_named = headline.contains("are real");
        let found = check(record).unwrap();
        assert_eq!(found.remedy == COUNTERFEIT, is_named, "{headline}");
        assert_eq!(found.claim.contains("holds"), is_named, "{headline}");
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

    #[test]
    fn device_with_more_intact_blocks_than_it_may_hold_does_not_wrap() {
        let wrapped = device(
            &[(0..24, Some(72)), (24..48, Some(48)), (72..96, None)],
            0..0,
        );
        assert!(is_counterfeit(&wrapped));
        // Eight blocks were copied 40 MiB higher, and all or some were read.
        let copied = |end| device(&[(0..40, None), (40..48, Some(40)), (48..end, None)], 0..0);
        assert!(!is_counterfeit(&copied(96)));
        let near = device(&[(40..48, Some(40)), (48..72, None)], 0..0);
        assert!(!is_counterfeit(&near));
        // All blocks of a first part, of which only a multiple of the size is known.
        assert!(!is_counterfeit(&device(&[(0..8, Some(72))], 0..0)));
    }

    fn zeros(sampled: u64, zero: u64) -> ZeroSample {
        ZeroSample { sampled, zero }
    }

    #[test]
    fn holes_and_zeros_are_reported() {
        let finding = check_unwritten_blocks(&(UNWRITTEN_BLOCKS.fires)()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Warning, 2)
        );
        states(&finding.claim, &["90 of 100"]);
        let holes = fixture::faulty("random-read-d1", |m| m.unwritten_bytes = Some(SPAN_BYTES));
        let finding = check_unwritten_blocks(&holes).unwrap();
        assert_eq!(finding.severity, Severity::Failure);
        states(&finding.claim, &["4 GiB of 4 GiB (100 %)"]);
    }

    #[test]
    fn silent_on_writers_few_samples_and_a_few_zeros() {
        let write = fixture::faulty("sequential-write", |m| m.unwritten_bytes = Some(SPAN_BYTES));
        assert_eq!(check_unwritten_blocks(&write), None);
        for sample in [zeros(19, 18), zeros(4, 4)] {
            let record = fixture::all_faulty(|m| m.zero_blocks = sample);
            assert_eq!(check_unwritten_blocks(&record), None, "{sample:?}");
        }
    }

    /// Trims in place of all writes, once over their span, which the device discarded.
    fn trimmed(change: impl Fn(&mut Measurement)) -> Record {
        fixture::all_faulty(|m| {
            if let Some(op) = m.ops.remove(&OpKind::Write) {
                let op_bytes = op.bytes;
                m.ops.remove(&OpKind::Sync);
                m.ops.remove(&OpKind::Commit);
                m.ops.insert(OpKind::Trim, op);
                m.workload.streams = Streams::doing(&[OpKind::Trim]);
                m.span_bytes = op_bytes;
                m.asked.trim_bytes = op_bytes;
                m.device.trim_bytes = Some(op_bytes);
                change(m);
            }
        })
    }

    #[test]
    fn trims_that_do_not_reach_the_device_are_reported() {
        let record = trimmed(|m| m.device.trim_bytes = m.device.trim_bytes.map(|bytes| bytes / 4));
        states(&check_ineffective_trims(&record).unwrap().claim, &["25 %"]);
    }

    #[test]
    fn trims_below_the_granularity_are_reported() {
        let mut record = trimmed(|_| {});
        let target = &mut record.targets[0];
        target.kind = TargetKind::BlockDevice;
        target.layers[0].discard = Some(true);
        target.layers[0].discard_granularity_bytes = Some(64 << 20);
        states(
            &check_ineffective_trims(&record).unwrap().claim,
            &["64 MiB"],
        );
    }

    #[test]
    fn blocks_that_are_written_again_may_be_trimmed_again() {
        let record = trimmed(|m| {
            m.span_bytes /= 2;
            m.workload.streams = Streams::doing(&[OpKind::Trim, OpKind::Write]);
        });
        assert_eq!(check_ineffective_trims(&record), None);
    }
}
