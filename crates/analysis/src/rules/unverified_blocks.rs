//! `unverified-blocks`: blocks that were read back have no signature, so nothing shows whether they
//! changed.

use super::bad_blocks::{VerifiedRow, verified_rows};
use super::rule::*;
use diskproof_model::measurement::VerifyResult;

pub(super) const RULE: Rule = Rule {
    code: "unverified-blocks",
    title: "Blocks without a signature to verify",
    summary: "Blocks that --verify read were never written with --verify, or in blocks of another \
              size. Whether they changed is unknown.",
    remedy: Remedy::Always(
        "Verify with the block size and the span of the run that wrote the blocks, or write them \
         first: diskproof run TARGET --rw write --verify.",
    ),
    check: Check::Workloads(check),
    says: Meaning::Note,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// A warning where no block could be judged, else a note.
fn check(record: &Record) -> Option<Diagnosis> {
    let mut hits = verified_rows(record);
    hits.retain(|hit| hit.result.bad_blocks > hit.result.wrong_blocks());
    if hits.is_empty() {
        return None;
    }
    let judged = sum(&hits, |result| result.good_blocks() + result.wrong_blocks());
    let claim = format!(
        "{}{}.",
        unsigned_clause(record, &hits, judged),
        other_size_clause(&hits)
    );
    let observations = hits.iter().map(|hit| {
        let bad = hit.result.bad_blocks as f64;
        hit.measured
            .evidence("data/verify/bad_blocks", bad, 0.0, "1")
    });
    Some(Diagnosis::new(warning_if(judged == 0), claim, observations))
}

fn unsigned_clause(record: &Record, hits: &[VerifiedRow<'_>], judged: u64) -> String {
    let blocks = counted(sum(hits, |result| result.blocks), "block");
    let scope = workload_names(record, hits.iter().map(|hit| hit.measured.index));
    if judged == 0 {
        return format!("None of {blocks} in {scope} has a signature to verify");
    }
    match sum(hits, |result| result.bad_blocks - result.wrong_blocks()) {
        1 => format!("1 of {blocks} in {scope} has no signature to verify"),
        n => format!("{n} of {blocks} in {scope} have no signature to verify"),
    }
}

/// A clause on blocks that were written in another size; empty where there is none.
fn other_size_clause(hits: &[VerifiedRow<'_>]) -> String {
    let starts = sum(hits, |result| result.other_size_blocks.unwrap_or(0));
    let Some(size_bytes) = hits.iter().find_map(|hit| hit.result.other_size_bytes) else {
        return String::new();
    };
    let size = format_bytes(u64::from(size_bytes));
    match starts {
        0 => String::new(),
        1 => format!("; 1 of them is the start of a block written in another size ({size})"),
        n => format!("; {n} of them are starts of blocks written in another size ({size})"),
    }
}

fn sum(hits: &[VerifiedRow<'_>], count: fn(&VerifyResult) -> u64) -> u64 {
    hits.iter().map(|hit| count(hit.result)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::states;
    use crate::rules::bad_blocks;
    use crate::rules::bad_blocks::tests::{earlier, verified};

    pub(super) const EXAMPLES: Examples =
        Examples::new(|| earlier(900, 900, 0, 1), || verified(|_| ()));

    #[test]
    fn blocks_that_were_never_written_are_no_failure() {
        // Some written, none written, all in another size.
        for (record, severity, part) in [
            (earlier(900, 900, 0, 1), Severity::Note, "900 of 1000"),
            (earlier(1000, 1000, 0, 0), Severity::Warning, "None of 1000"),
            (earlier(1000, 900, 100, 0), Severity::Warning, "64 KiB"),
        ] {
            assert_eq!(bad_blocks::check(&record), None);
            let diagnosis = check(&record).unwrap();
            assert_eq!(diagnosis.severity, severity);
            states(&diagnosis.claim, &[part]);
        }
        let one = check(&earlier(1, 1, 0, 1)).unwrap().claim;
        states(&one, &["1 of 1000 blocks", "has no signature"]);
        let one = check(&earlier(11, 10, 1, 1)).unwrap().claim;
        states(&one, &["1 of them is the start of a block"]);
        let diagnosis = bad_blocks::check(&earlier(907, 900, 0, 1)).unwrap();
        assert_eq!(diagnosis.severity, Severity::Failure);
        states(&diagnosis.claim, &["7 of 1000"]);
    }
}
