//! `bad-blocks`: what was written did not come back. Knows the outcome of the verification only.

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
    meaning: "Blocks that the disk had acknowledged held other data when they were read back.",
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
        format!("; {unchecked} more were written and not looked at")
    } else {
        String::new()
    };
    let named: Vec<String> = first
        .bad
        .iter()
        .take(NAMED)
        .map(|b| format!("offset {}: {}", b.offset_bytes, b.why))
        .collect();
    Some(Diagnosis {
        severity: Severity::Failure,
        claim: format!(
            "{bad} of {} read back wrong in {}: {}{rest}.",
            counted(all, "block"),
            scope(record, hits.iter().map(|h| h.0)),
            named.join("; ")
        ),
        evidence: hits
            .iter()
            .map(|(index, v)| evidence(*index, "verify/bad_blocks", v.bad_blocks as f64, 0.0, "1"))
            .collect(),
        remedy: "Move the data off this disk: the disk, its cable, the controller or the memory \
                 loses or changes writes. Run the same seed again, then memtest and smartctl -a."
            .to_owned(),
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
                bad: Vec::new(),
            });
        });
        let claim = check(&cut).unwrap().claim;
        assert!(
            claim.contains("2 of 1000 blocks")
                && claim.contains("4000 more were written and not looked at"),
            "{claim}"
        );
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
