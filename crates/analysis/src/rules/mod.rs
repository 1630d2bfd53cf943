//! The registry of findings: one file for each, named after its code, and one line here. A rule
//! examines a whole record and reports at most one finding, however many workloads it concerns, so
//! that no page repeats a warning. Rules know the record only, not how a finding is printed.
//!
//! A rule that takes more than a few lines is laid out alike everywhere, in the order of use:
//! `RULE` with its constants; the struct of what was found, a workload or a place, with its clause
//! and its evidence; `check`, which only puts the diagnosis together; whether the rule may speak at
//! all; the search for what it reports; then claim, consequence and remedy, each a function of what
//! was found. Where a claim names only some of what was found, the worst is among them.

use diskproof_model::finding::Finding;
use diskproof_model::health::DiskHealth;
use diskproof_model::record::Record;
use diskproof_model::sustain::DropCause;

mod access_time_off;
mod after_fall;
mod amplified;
mod bad_blocks;
mod burst_exhausted;
mod burst_figure;
mod burst_untested;
mod bursts;
mod cache_answered;
mod cache_cliff;
mod commits;
mod counterfeit_capacity;
mod cpu_limited;
mod cpu_stolen;
mod depth_not_held;
mod disk_report;
mod disturbed;
mod engine_fallback;
mod engine_limited;
mod flat_top;
mod flush_not_sent;
mod health_failing;
mod hung;
mod implausible_flush;
mod imprecise;
mod ineffective_trims;
mod interrupted;
mod io_errors;
mod io_punted;
mod late;
mod link_degraded;
mod link_errors;
mod media_errors;
mod missed_schedule;
mod not_direct;
mod not_zoned;
mod ragged;
mod rate_limited;
mod reads_fell;
pub mod rule;
mod sectors_pending;
mod sectors_reallocated;
mod self_test_failed;
mod self_test_running;
mod served_from_cache;
mod short_span;
mod slow_after_idle;
mod slow_blocks;
mod slow_capacity;
mod slow_flush;
mod slow_zone;
mod stalled;
mod starved;
mod sync_method_differs;
mod too_hot;
mod traffic;
mod unproven;
mod unreadable_blocks;
mod unverified_blocks;
mod unwritable_blocks;
mod unwritten_blocks;
mod used_as_new;
mod varies_between_runs;
mod virtual_disk;
mod volatile_write_cache;
mod worn_out;
mod wrong_content;

pub(crate) use amplified::own_excess_write_bytes;
pub(crate) use burst_exhausted::ended_units;
pub(crate) use burst_untested::perhaps_burst;
#[cfg(test)]
pub(crate) use bursts::tests::credit as test_credit;
pub(crate) use bursts::{
    CLIFF_BYTES_MIN, has_many_failures, is_credit_of_disk, is_fall_of_zones, lasting_fall_of,
    may_accuse_disk, mean_request_bytes,
};
#[cfg(test)]
pub(crate) use rate_limited::tests::capped as test_capped;
pub(crate) use rate_limited::{RateOfKind, possible_link_of, reached_group_limit};
pub use rule::{Check, Rule};

// Among findings of equal severity this is the order in which they are reported.
static RULES: &[Rule] = &[
    hung::RULE,
    late::RULE,
    stalled::RULE,
    io_errors::RULE,
    flush_not_sent::RULE,
    implausible_flush::RULE,
    sync_method_differs::RULE,
    slow_flush::RULE,
    counterfeit_capacity::RULE,
    slow_capacity::RULE,
    wrong_content::RULE,
    bad_blocks::RULE,
    unverified_blocks::RULE,
    unreadable_blocks::RULE,
    unwritable_blocks::RULE,
    health_failing::RULE,
    self_test_failed::RULE,
    sectors_pending::RULE,
    worn_out::RULE,
    used_as_new::RULE,
    media_errors::RULE,
    sectors_reallocated::RULE,
    link_errors::RULE,
    too_hot::RULE,
    self_test_running::RULE,
    served_from_cache::RULE,
    cache_answered::RULE,
    unwritten_blocks::RULE,
    ineffective_trims::RULE,
    not_direct::RULE,
    unproven::RULE,
    disturbed::RULE,
    amplified::RULE,
    starved::RULE,
    cpu_stolen::RULE,
    interrupted::RULE,
    burst_exhausted::RULE,
    cache_cliff::RULE,
    reads_fell::RULE,
    burst_figure::RULE,
    burst_untested::RULE,
    rate_limited::RULE,
    cpu_limited::RULE,
    engine_limited::RULE,
    missed_schedule::RULE,
    slow_after_idle::RULE,
    imprecise::RULE,
    varies_between_runs::RULE,
    depth_not_held::RULE,
    io_punted::RULE,
    engine_fallback::RULE,
    flat_top::RULE,
    ragged::RULE,
    slow_zone::RULE,
    slow_blocks::RULE,
    access_time_off::RULE,
    link_degraded::RULE,
    not_zoned::RULE,
    short_span::RULE,
    virtual_disk::RULE,
    volatile_write_cache::RULE,
];

/// Every rule.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    RULES.iter()
}

/// The rule with this code.
pub fn rule(code: &str) -> Option<&'static Rule> {
    rules().find(|rule| rule.code == code)
}

/// All findings on a record, the most severe first.
pub fn findings(record: &Record) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in rules() {
        findings.extend(rule.find(record));
    }
    most_severe_first(findings)
}

/// All findings on the health of disks, the most severe first. Their evidence points into a
/// document with these as its `health`.
pub fn health_findings(health: &[DiskHealth]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in rules() {
        findings.extend(rule.find_in_health(health));
    }
    most_severe_first(findings)
}

/// The cause of a fall that a finding with this code states; `None` of other findings.
pub(crate) fn cause_stated_by(code: &str) -> Option<DropCause> {
    if code == burst_exhausted::RULE.code {
        Some(DropCause::BurstCredit)
    } else if code == cache_cliff::RULE.code {
        Some(DropCause::WriteCache)
    } else {
        None
    }
}

fn most_severe_first(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

#[cfg(test)]
mod tests {
    use super::rule::Remedy;
    use super::*;
    use crate::fixture::{self, surveyed::codes};
    use diskproof_model::finding::Severity;
    use std::collections::BTreeSet;

    /// What several rules share; every other file is a finding.
    const SHARED_FILES: [&str; 6] = [
        "after_fall",
        "bursts",
        "commits",
        "disk_report",
        "rule",
        "traffic",
    ];

    #[test]
    fn every_finding_is_a_file_named_after_its_code_and_every_other_file_is_shared() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/rules");
        let mut files = BTreeSet::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            files.insert(name.trim_end_matches(".rs").to_owned());
        }
        let mut expected = BTreeSet::from(["mod".to_owned()]);
        for name in SHARED_FILES {
            expected.insert(name.to_owned());
        }
        for rule in rules() {
            let file = rule.code.replace('-', "_");
            let source = std::fs::read_to_string(format!("{folder}/{file}.rs")).unwrap();
            assert!(
                source.contains(&format!("code: \"{}\",", rule.code)),
                "{file}"
            );
            expected.insert(file);
        }
        assert_eq!(files, expected);
    }

    #[test]
    fn rules_have_a_unique_code_a_short_title_and_a_summary() {
        let mut codes = BTreeSet::new();
        for rule in rules() {
            let Rule {
                code,
                title,
                summary,
                ..
            } = rule;
            assert!(codes.insert(code), "{code} is registered twice");
            assert!(
                code.chars().all(|c| c.is_ascii_lowercase() || c == '-'),
                "{code}"
            );
            assert!(
                title.split(' ').count() <= 8 && !title.ends_with('.'),
                "{code}"
            );
            assert!(summary.len() > 30 && summary.ends_with('.'), "{code}");
        }
    }

    /// The only test of what findings say; `INSTA_UPDATE=always` writes it anew.
    #[test]
    fn claims_and_remedies_of_the_examples() {
        let mut text = String::new();
        for rule in rules() {
            let mut records = vec![rule.examples.fires];
            records.extend(rule.examples.also_fires);
            for record in records {
                let finding = rule.find(&record()).unwrap();
                text += &format!(
                    "{} ({:?})\n{}\n{}\n",
                    finding.code, finding.severity, finding.claim, finding.remedy
                );
                if let Some(command) = finding.reproduce {
                    text += &command;
                    text.push('\n');
                }
                text.push('\n');
            }
        }
        insta::with_settings!({snapshot_path => "../../tests/snapshots"}, {
            insta::assert_snapshot!("findings", text);
        });
    }

    #[test]
    fn remedies_are_given_by_the_rule_or_by_its_check() {
        for rule in rules() {
            let record = (rule.examples.fires)();
            let diagnosis = match rule.check {
                Check::Workloads(check)
                | Check::Survey(check)
                | Check::Run(check)
                | Check::Acceptance(check) => check(&record),
                Check::Health { examine, .. } => record.health.iter().find_map(examine),
            };
            let is_by_case = matches!(rule.remedy, Remedy::ByCase);
            let remedy = diagnosis.unwrap().remedy;
            assert_eq!(!remedy.is_empty(), is_by_case, "{}", rule.code);
        }
    }

    #[test]
    fn rules_fire_on_their_first_example_and_are_silent_on_their_second() {
        for rule in rules() {
            assert!(
                rule.find(&(rule.examples.fires)()).is_some(),
                "{} does not fire",
                rule.code
            );
            assert_eq!(rule.find(&(rule.examples.silent)()), None, "{}", rule.code);
        }
    }

    #[test]
    fn evidence_points_into_the_record() {
        for rule in rules() {
            let (code, record) = (rule.code, (rule.examples.fires)());
            let finding = rule.find(&record).unwrap();
            assert!(!finding.evidence.is_empty(), "{code}");
            assert!(
                !finding.claim.is_empty() && !finding.remedy.is_empty(),
                "{code}"
            );
            let document = serde_json::to_value(&record).unwrap();
            for evidence in &finding.evidence {
                let path = &evidence.path;
                let value = document.pointer(path);
                let value = value.unwrap_or_else(|| panic!("{code}: {path} is not in the record"));
                if let Some(number) = value.as_f64() {
                    assert_eq!(number, evidence.observed, "{code}: {path}");
                }
                // JSON has no infinity.
                let is_finite = evidence.observed.is_finite() && evidence.threshold.is_finite();
                assert!(is_finite, "{code}: {path}");
            }
        }
    }

    #[test]
    fn findings_begin_with_the_most_severe() {
        let record = fixture::changed(|run| {
            run.measurements[0].punted = Some(true);
            run.measurements[1].device.read_bytes = 0;
        });
        assert_eq!(codes(&record), ["served-from-cache", "io-punted"]);
        assert!(record.findings[0].severity > Severity::Note);
    }

    #[test]
    fn health_is_judged_alike_with_and_without_a_measurement() {
        let mut count = 0;
        for rule in rules().filter(|rule| matches!(rule.check, Check::Health { .. })) {
            let record = (rule.examples.fires)();
            assert_eq!(
                health_findings(&record.health),
                Vec::from_iter(rule.find(&record))
            );
            count += 1;
        }
        assert_eq!(count, 10);
    }
}
