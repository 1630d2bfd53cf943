//! `counterfeit-capacity`: an acceptance test found that a disk holds less than it claims.

use super::rule::*;
use crate::accept::words::fraud_text;
use crate::words::sentence;
use diskproof_model::accept::Fraud;

pub(super) const RULE: Rule = Rule {
    code: "counterfeit-capacity",
    title: "The disk holds less than it claims",
    summary: "An acceptance test wrote to addresses within the claimed capacity, and what came \
              back shows where the real one ends.",
    remedy: Remedy::Always(
        "Return the disk, and put no data on it: it is a counterfeit, or defective. To use what it \
         really has meanwhile, make a partition that ends before the real capacity, and test that \
         with diskproof accept.",
    ),
    check: Check::Acceptance(check),
    says: Meaning::Disk,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

fn check(record: &Record) -> Option<Diagnosis> {
    fraud_diagnosis(
        record,
        is_too_small,
        "A database on it loses data without an error.",
    )
}

fn is_too_small(fraud: Fraud) -> bool {
    match fraud {
        Fraud::Wraps | Fraud::Drops | Fraud::Cached | Fraud::Fails | Fraud::Flips | Fraud::Thin => {
            true
        }
        // It holds what it claims.
        Fraud::Slow => false,
    }
}

/// What an acceptance test found, in a sentence, and what it means for a database; `None` where
/// that is no such fraud. The evidence is the capacity that can be relied on.
pub(super) fn fraud_diagnosis(
    record: &Record,
    is_such: fn(Fraud) -> bool,
    consequence: &str,
) -> Option<Diagnosis> {
    let accept = record.accept()?;
    let fraud = accept.figures.fraud?;
    if !is_such(fraud) {
        return None;
    }
    let text = fraud_text(accept)?;
    let real_bytes = accept.figures.real_bytes? as f64;
    let claimed = accept.data.plan.size_bytes as f64;
    let path = first_result_path("figures/real_bytes");
    let claim = format!("{} {consequence}", sentence(&text));
    Some(Diagnosis::new(
        Severity::Failure,
        claim,
        [evidence_at(path, real_bytes, claimed, "B")],
    ))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::fixture::accepted::{Fault, accepted};
    use crate::fixture::states;

    pub(super) const EXAMPLES: Examples =
        Examples::new(|| accepted(Fault::Wraps), || accepted(Fault::Unreadable))
            .and_fires_on(&[|| accepted(Fault::Drops)]);

    #[test]
    fn counterfeit_names_its_real_capacity_and_a_block_that_shows_it() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(finding.severity, Severity::Failure);
        states(&finding.claim, &["104.86 MB of 268.44 MB", "content of"]);
    }
}
