//! `bad-blocks`: what was written did not come back, at once or in a later run. Knows the outcome
//! of the verification only.

use super::evidence::{evidence, scope, warning_if};
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule, Taint};
use diskproof_model::finding::Severity;
use diskproof_model::measurement::VerifyResult;
use diskproof_model::record::Record;
use diskproof_model::units::{counted, format_bytes};

pub(super) const RULES: &[Rule] = &[BAD, UNVERIFIED];

const BAD: Rule = Rule {
    code: "bad-blocks",
    title: "Blocks read back wrong",
    meaning: "Blocks that the disk had acknowledged contained other data when they were read back, \
              or do not contain the data of an earlier run.",
    taints: Some(Taint {
        from: Severity::Note,
        why: "blocks read back wrong in",
    }),
    check: Check::Workloads(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
};

const UNVERIFIED: Rule = Rule {
    code: "unverified-blocks",
    title: "Blocks without a signature to verify",
    meaning: "Blocks that --verify read were never written with --verify, or in blocks of another \
              size. Whether they changed is unknown.",
    taints: None,
    check: Check::Workloads(check_unverified),
    #[cfg(test)]
    examples: Examples {
        fires: tests::unsigned,
        silent: tests::silent,
    },
};

const WRONG: &str = "Move the data off this disk, because the disk, its cable, the controller or \
                     the memory loses or changes writes. Repeat the run with the same seed, then \
                     run memtest and smartctl -a.";
const NOT_AS_WRITTEN: &str = "If nothing else has written to these blocks, move the data off this \
                              disk, because it loses or changes data. Read the blocks again, then \
                              run memtest and smartctl -a.";
const NOT_SIGNED: &str = "Verify with the block size and the span of the run that wrote the \
                          blocks, or write them first: diskproof run TARGET --rw write --verify.";

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
    let (what, remedy) = if are_earlier {
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
    Some(Diagnosis::new(
        Severity::Failure,
        claim,
        hits.iter().map(|(index, v)| {
            let wrong = v.wrong_blocks() as f64;
            evidence(*index, "verify/bad_blocks", wrong, 0.0, "1")
        }),
        remedy,
    ))
}

/// Blocks that cannot be judged are a warning where none could be.
/// The workloads whose blocks were read back, of which this is true.
fn verified(record: &Record, is_hit: fn(&VerifyResult) -> bool) -> Vec<(usize, &VerifyResult)> {
    let measured = record.measurements.iter().enumerate();
    measured
        .filter_map(|(index, m)| Some((index, m.verify.as_ref()?)))
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
        hits.iter()
            .map(|(index, v)| evidence(*index, "verify/bad_blocks", v.bad_blocks as f64, 0.0, "1")),
        NOT_SIGNED,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::measurement::BadBlock;

    pub(super) fn fires() -> Record {
        let bad = vec![BadBlock {
            offset_bytes: 8192,
            why: "wrong checksum: torn or corrupted".to_owned(),
        }];
        fixture::faulty("random-write-d32", |m| {
            m.verify = Some(VerifyResult {
                blocks: 1000,
                bad_blocks: 1,
                bad: bad.clone(),
                ..VerifyResult::default()
            })
        })
    }

    pub(super) fn silent() -> Record {
        fixture::all_faulty(|m| {
            m.verify = Some(VerifyResult {
                blocks: 1000,
                ..VerifyResult::default()
            })
        })
    }

    #[test]
    fn a_bad_block_is_a_failure_with_its_offset() {
        let finding = check(&fires()).unwrap();
        assert_eq!(finding.severity, Severity::Failure);
        assert!(
            finding.claim.contains("1 of 1000 blocks")
                && finding.claim.contains("offset 8192: wrong checksum"),
            "{}",
            finding.claim
        );
    }

    #[test]
    fn check_that_was_cut_reports_how_much_it_skipped() {
        let cut = fixture::faulty("random-write-d32", |m| {
            m.verify = Some(VerifyResult {
                blocks: 1000,
                blocks_written: Some(5000),
                bad_blocks: 2,
                ..VerifyResult::default()
            });
        });
        let claim = check(&cut).unwrap().claim;
        assert!(
            claim.contains("2 of 1000 blocks")
                && claim.contains("4000 more were written but not read back"),
            "{claim}"
        );
    }

    /// Of 1000 blocks.
    fn earlier(bad_blocks: u64, unsigned: u64, other_size: u64, runs: u64) -> Record {
        fixture::faulty("random-write-d32", |m| {
            m.verify = Some(VerifyResult {
                blocks: 1000,
                bad_blocks,
                unsigned_blocks: Some(unsigned),
                other_size_blocks: Some(other_size),
                other_size_bytes: (other_size > 0).then_some(65_536),
                runs: Some(runs),
                ..VerifyResult::default()
            });
        })
    }

    pub(super) fn unsigned() -> Record {
        earlier(900, 900, 0, 1)
    }

    #[test]
    fn blocks_that_were_never_written_are_no_failure() {
        // Some written, none written, all in another size.
        for (record, severity, part) in [
            (unsigned(), Severity::Note, "900 of 1000 blocks"),
            (
                earlier(1000, 1000, 0, 0),
                Severity::Warning,
                "None of 1000 blocks",
            ),
            (earlier(1000, 900, 100, 0), Severity::Warning, "64 KiB"),
        ] {
            assert_eq!(check(&record), None);
            let found = check_unverified(&record).unwrap();
            assert_eq!(found.severity, severity);
            assert!(found.claim.contains(part), "{}", found.claim);
        }
        let found = check(&earlier(907, 900, 0, 1)).unwrap();
        assert_eq!(found.severity, Severity::Failure);
        assert!(
            found.claim.contains("7 of 1000 blocks are not"),
            "{}",
            found.claim
        );
        assert!(found.remedy.contains("nothing else has written"));
    }

    #[test]
    fn what_came_back_whole_is_no_finding() {
        let whole = fixture::all_faulty(|m| {
            m.verify = Some(VerifyResult {
                blocks: 1000,
                ..VerifyResult::default()
            })
        });
        assert_eq!(check(&whole), None);
        assert_eq!(check(&fixture::record()), None);
    }
}
