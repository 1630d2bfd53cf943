//! `io-errors`: operations failed. What each errno means stands in the model.

use super::{Rule, evidence, scope};
use diskproof_model::errno::{meaning, remedy};
use diskproof_model::finding::{Finding, Severity};
use diskproof_model::record::Record;
use std::collections::BTreeMap;

pub(super) const RULE: Rule =
    Rule { code: "io-errors", meaning: "The disk, or something on the way to it, failed operations while it was measured.", check };

fn check(record: &Record) -> Option<Finding> {
    let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
    let mut seen = Vec::new();
    let mut hits = Vec::new();
    for (index, m) in record.measurements.iter().enumerate() {
        for (kind, op) in &m.ops {
            for (errno, count) in op.errors.iter().filter(|e| *e.1 > 0) {
                *totals.entry(errno).or_default() += count;
                seen.push(evidence(index, &format!("ops/{}/errors/{errno}", kind.as_str()), *count as f64, 0.0, "1"));
                hits.push(index);
            }
        }
    }
    if hits.is_empty() {
        return None;
    }
    let counts: Vec<String> = totals.iter().map(|(errno, count)| format!("{count} × {errno} ({})", meaning(errno))).collect();
    let remedy = sentence(&remedy(totals.keys().copied()));
    let failed = if totals.values().sum::<u64>() == 1 { "An operation" } else { "Operations" };
    Some(Finding {
        code: RULE.code.to_owned(),
        severity: Severity::Failure,
        claim: format!("{failed} failed in {}: {}.", scope(record, hits), counts.join(", ")),
        evidence: seen,
        remedy,
        reproduce: None,
    })
}

/// A clause as a sentence.
fn sentence(clause: &str) -> String {
    let mut letters = clause.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::healthy;

    pub(in crate::rules) fn spoilt() -> Record {
        healthy::spoilt("random-read-d32", |m| {
            m.ops.values_mut().for_each(|op| op.errors.extend([("EIO".to_owned(), 3), ("ENOSPC".to_owned(), 1)]));
        })
    }

    #[test]
    fn failed_operations_are_told_by_errno() {
        let finding = check(&spoilt()).unwrap();
        assert_eq!(finding.severity, Severity::Failure);
        assert!(finding.claim.contains("3 × EIO (the medium") && finding.claim.contains("1 × ENOSPC (no space"), "{}", finding.claim);
        assert!(finding.remedy.contains("dmesg") && finding.remedy.contains("--size"), "{}", finding.remedy);
        assert_eq!(finding.evidence.len(), 2);
    }

    #[test]
    fn a_count_of_zero_is_no_failure() {
        assert_eq!(
            check(&healthy::spoilt("random-read-d32", |m| m.ops.values_mut().for_each(|op| _ = op.errors.insert("EIO".to_owned(), 0)))),
            None
        );
    }
}
