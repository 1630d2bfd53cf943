//! Finds the reasons why a row may differ: findings that fewer than half of the like rows have,
//! facts in which it deviates from most of them, and symptoms in its own run, such as a span that
//! was cut.

use super::row::{FindingOfRow, Row};
use crate::words::uncapitalised;
use diskproof_model::finding::Severity;
use diskproof_model::fleet::{FleetReason, UsualFact, UsualFinding};
use std::collections::BTreeMap;

/// The facts and findings of most rows of a group.
#[derive(Debug, Default, Clone)]
pub(super) struct Usual {
    pub rows: usize,
    pub facts: Vec<UsualFact>,
    pub findings: Vec<UsualFinding>,
}

impl Usual {
    /// Counts the facts and findings of these rows, each row by its newest run. A fact is usual if
    /// more than half of them have it.
    pub(super) fn from_rows(rows: &[&Row]) -> Self {
        let mut findings: BTreeMap<&str, usize> = BTreeMap::new();
        for row in rows.iter().filter(|row| !row.runs.is_empty()) {
            for code in findings_of(row).into_keys() {
                *findings.entry(code).or_default() += 1;
            }
        }
        let mut usual = Self {
            rows: rows.len(),
            facts: usual_facts(rows),
            findings: Vec::new(),
        };
        for (code, count) in findings {
            usual.findings.push(UsualFinding {
                code: code.to_owned(),
                rows: count,
            });
        }
        usual
    }

    /// The differences of a row from the usual, the likeliest reason first.
    pub(super) fn reasons(&self, row: &Row) -> Vec<FleetReason> {
        let mut reasons = Vec::new();
        let mut notes = Vec::new();
        let mut findings: Vec<(&str, &FindingOfRow)> = findings_of(row).into_iter().collect();
        findings.sort_by_key(|(_, finding)| std::cmp::Reverse(finding.severity));
        for (code, finding) in findings {
            if 2 * self.rows_with(code) >= self.rows {
                continue;
            }
            let reason = FleetReason {
                code: code.to_owned(),
                text: uncapitalised(&finding.title),
            };
            if finding.severity >= Severity::Warning {
                reasons.push(reason);
            } else {
                notes.push(reason);
            }
        }
        if let Some(newest) = row.runs.last() {
            for (what, value) in &newest.facts {
                reasons.extend(self.deviating_fact(what, value));
            }
        }
        for value in row.runs.iter().flat_map(|run| &run.values) {
            for symptom in &value.symptoms {
                let reason = FleetReason {
                    code: symptom.code.clone(),
                    text: symptom.why.clone(),
                };
                if !reasons.contains(&reason) {
                    reasons.push(reason);
                }
            }
        }
        reasons.extend(notes);
        reasons
    }

    /// The deviation of a row in a fact, such as `link SATA 3.0 Gbps, SATA 6.0 Gbps on 197`; `None`
    /// where there is none.
    fn deviating_fact(&self, what: &str, value: &str) -> Option<FleetReason> {
        let usual = self.facts.iter().find(|fact| fact.what == what)?;
        // A fact that is unknown on either side is no difference.
        if usual.value == value || value.is_empty() || usual.value.is_empty() {
            return None;
        }
        Some(FleetReason {
            code: what.to_owned(),
            text: format!("{what} {value}, {} on {}", usual.value, usual.rows),
        })
    }

    /// The number of usual rows that have this finding.
    fn rows_with(&self, code: &str) -> usize {
        match self.findings.iter().find(|finding| finding.code == code) {
            Some(finding) => finding.rows,
            None => 0,
        }
    }
}

/// The facts of the newest runs of these rows that more than half of the rows have, in the order of
/// their first appearance.
fn usual_facts(rows: &[&Row]) -> Vec<UsualFact> {
    let mut counts: BTreeMap<&'static str, BTreeMap<&str, usize>> = BTreeMap::new();
    let mut order = Vec::new();
    for newest in rows.iter().filter_map(|row| row.runs.last()) {
        for (what, value) in &newest.facts {
            if !order.contains(what) {
                order.push(*what);
            }
            *counts.entry(what).or_default().entry(value).or_default() += 1;
        }
    }
    let mut usual = Vec::new();
    for what in order {
        let most_frequent = counts[what].iter().max_by_key(|(_, count)| **count);
        if let Some((value, count)) = most_frequent
            && 2 * *count > rows.len()
        {
            usual.push(UsualFact {
                what: what.to_owned(),
                value: (*value).to_owned(),
                rows: *count,
            });
        }
    }
    usual
}

/// The findings of all runs of a row, each once.
fn findings_of(row: &Row) -> BTreeMap<&str, &FindingOfRow> {
    let mut findings = BTreeMap::new();
    for finding in row.runs.iter().flat_map(|run| &run.findings) {
        findings.insert(finding.code.as_str(), finding);
    }
    findings
}
