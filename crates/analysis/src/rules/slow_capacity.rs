//! `slow-capacity`: an acceptance test found that a disk holds what it claims, but is many times
//! slower from a place on.

use super::rule::*;
use crate::accept::words::fraud_text;
use crate::words::sentence;
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
    let accept = record.accept()?;
    if accept.figures.fraud != Some(Fraud::Slow) {
        return None;
    }
    let text = fraud_text(accept)?;
    let fast_bytes = accept.figures.real_bytes? as f64;
    let claimed = accept.data.plan.size_bytes as f64;
    let path = first_result_path("figures/real_bytes");
    let claim = format!(
        "{} A database that grows beyond it becomes as much slower.",
        sentence(&text)
    );
    Some(Diagnosis::new(
        Severity::Failure,
        claim,
        [evidence_at(path, fast_bytes, claimed, "B")],
    ))
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
