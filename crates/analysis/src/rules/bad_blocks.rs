//! `bad-blocks`: what was written did not come back, at once or in a later run. Knows the outcome
//! of the verification only.

use super::evidence::{evidence, scope};
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule, Taint};
use diskproof_model::finding::Severity;
use diskproof_model::record::Record;
use diskproof_model::units::counted;

pub(super) const RULES: &[Rule] = &[Rule {
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
}];

const WRONG: &str = "Move the data off this disk, because the disk, its cable, the controller or \
                     the memory loses or changes writes. Repeat the run with the same seed, then \
                     run memtest and smartctl -a.";
const NOT_AS_WRITTEN: &str = "If nothing else has written to these blocks, move the data off this \
                              disk, because it loses or changes data. Read the blocks again, then \
                              run memtest and smartctl -a.";
const NONE_IS_SIGNED: &str = "Write the blocks first: diskproof run TARGET --rw write --verify, \
                              with the same block size and span.";

/// Bad blocks named in the claim; the record names up to a hundred.
const NAMED: usize = 3;

fn check(record: &Record) -> Option<Diagnosis> {
    let verified = record
        .measurements
        .iter()
        .enumerate()
        .filter_map(|(index, m)| Some((index, m.verify.as_ref()?)));
    let hits: Vec<_> = verified.filter(|(_, v)| v.bad_blocks > 0).collect();
    let (_, first) = hits.first()?;
    let (bad, all) = hits.iter().fold((0, 0), |(bad, all), (_, v)| {
        (bad + v.bad_blocks, all + v.blocks)
    });
    // A check that was cut short says nothing of the rest.
    let unchecked: u64 = hits.iter().map(|(_, v)| v.unchecked()).sum();
    let rest = if unchecked > 0 {
        format!("; {unchecked} more were written but not read back")
    } else {
        String::new()
    };
    let named: Vec<String> = first
        .bad
        .iter()
        .take(NAMED)
        .map(|b| format!("offset {}: {}", b.offset_bytes, b.why))
        .collect();
    let scope = scope(record, hits.iter().map(|h| h.0));
    let are_earlier = hits.iter().all(|(_, v)| v.runs.is_some());
    let none_is_signed = hits
        .iter()
        .all(|(_, v)| v.runs == Some(0) && v.unsigned_blocks == Some(v.bad_blocks));
    let (claim, remedy) = if none_is_signed {
        (
            format!(
                "None of {} in {scope} has a signature of diskproof, so nothing was verified.",
                counted(all, "block")
            ),
            NONE_IS_SIGNED,
        )
    } else {
        let (what, remedy) = match are_earlier {
            true => ("not what an earlier run wrote", NOT_AS_WRITTEN),
            false => ("wrong when read back", WRONG),
        };
        let blocks = counted(all, "block");
        let is = if bad == 1 { "is" } else { "are" };
        (
            format!(
                "{bad} of {blocks} {is} {what} in {scope}: {}{rest}.",
                named.join("; ")
            ),
            remedy,
        )
    };
    Some(Diagnosis {
        severity: Severity::Failure,
        claim,
        evidence: hits
            .iter()
            .map(|(index, v)| evidence(*index, "verify/bad_blocks", v.bad_blocks as f64, 0.0, "1"))
            .collect(),
        remedy: remedy.to_owned(),
        reproduce: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::measurement::{BadBlock, VerifyResult};

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

    #[test]
    fn data_of_earlier_runs_is_told_from_data_that_was_never_written() {
        let claim = |bad_blocks, unsigned, runs| {
            let bad = fixture::faulty("random-write-d32", |m| {
                m.verify = Some(VerifyResult {
                    blocks: 1000,
                    bad_blocks,
                    unsigned_blocks: Some(unsigned),
                    runs: Some(runs),
                    ..VerifyResult::default()
                });
            });
            let found = check(&bad).unwrap();
            (found.claim, found.remedy)
        };
        let (never, remedy) = claim(1000, 1000, 0);
        assert!(
            never.starts_with("None of 1000 blocks in ")
                && never.contains("has a signature of diskproof")
                && remedy.contains("--rw write --verify"),
            "{never}"
        );
        let (one, remedy) = claim(1, 1, 1);
        assert!(
            one.contains("1 of 1000 blocks is not what an earlier run wrote")
                && remedy.contains("nothing else has written"),
            "{one}"
        );
        assert!(claim(7, 0, 0).0.contains("7 of 1000 blocks are not"));
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
