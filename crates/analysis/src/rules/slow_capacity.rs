//! `slow-capacity`: an acceptance test found that a disk holds what it claims, but is many times
//! slower from a place on.

use super::counterfeit_capacity::fraud_diagnosis;
use super::rule::*;
use diskproof_model::accept::Fraud;

pub(super) const RULE: Rule = Rule {
    code: "slow-capacity",
    title: "The disk is much slower beyond a place",
    summary: "An acceptance test found a place on the disk from which on it is many times slower \
              than before it. Everything that was written came back.",
    remedy: Remedy::Always(
        "Return the disk if its seller promised one speed for all of it. To use the fast part, \
         make a partition that ends before the slow one, and test that with diskproof accept.",
    ),
    check: Check::Acceptance(check),
    says: Meaning::Disk,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

fn check(record: &Record) -> Option<Diagnosis> {
    fraud_diagnosis(
        record,
        |fraud| fraud == Fraud::Slow,
        "A database whose files grow beyond this place becomes many times slower.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::accepted::{Fault, accepted};

    pub(super) const EXAMPLES: Examples =
        Examples::new(|| accepted(Fault::SlowEnd), || accepted(Fault::Drops));

    /// It holds all that it claims.
    #[test]
    fn slow_end_is_no_false_capacity() {
        let record = accepted(Fault::SlowEnd);
        let codes: Vec<&str> = record
            .findings
            .iter()
            .map(|finding| finding.code.as_str())
            .collect();
        assert_eq!(codes, ["slow-capacity"]);
    }
}
