//! The registry of findings: one file per rule, one line here. A rule examines a whole record and
//! reports at most one finding, however many workloads it concerns, so that no page repeats a
//! warning. Rules know the record only, not how a finding is printed.

use diskproof_model::finding::Finding;
use diskproof_model::health::DiskHealth;
use diskproof_model::record::Record;

pub mod rule;

pub(crate) mod evidence;
mod traffic;

pub use rule::{Check, Rule, Taint};

/// Declares the files of rules and registers the rules in them.
macro_rules! rules {
    ($($file:ident),* $(,)?) => {
        $(mod $file;)*
        static FILES: &[(&str, &[Rule])] = &[$((stringify!($file), $file::RULES)),*];
    };
}

// Among findings of equal severity this is the order in which they are reported.
rules! {
    hung,
    late,
    stalled,
    io_errors,
    flush,
    bad_blocks,
    unreadable_blocks,
    health,
    served_from_cache,
    cache_answered,
    unwritten_blocks,
    ineffective_trims,
    not_direct,
    unproven,
    disturbed,
    amplified,
    starved,
    cpu_stolen,
    interrupted,
    burst_exhausted,
    rate_limited,
    cpu_limited,
    engine_limited,
    missed_schedule,
    slow_after_idle,
    imprecise,
    varies_between_runs,
    depth_not_held,
    io_punted,
    engine_fallback,
    flat_top,
    ragged,
    slow_zone,
    slow_blocks,
    access_time_off,
    link_degraded,
    not_zoned,
    short_span,
    virtual_disk,
    volatile_cache,
}

/// Every rule.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    FILES.iter().flat_map(|(_, rules)| rules.iter())
}

/// The rule with this code.
pub fn rule(code: &str) -> Option<&'static Rule> {
    rules().find(|rule| rule.code == code)
}

/// All findings on a record, the most severe first.
pub fn findings(record: &Record) -> Vec<Finding> {
    most_severe_first(rules().filter_map(|rule| rule.find(record)).collect())
}

/// All findings on the health of disks, the most severe first. Their evidence points into a
/// document with these as its `health`.
pub fn health_findings(health: &[DiskHealth]) -> Vec<Finding> {
    most_severe_first(
        rules()
            .filter_map(|rule| rule.find_in_health(health))
            .collect(),
    )
}

fn most_severe_first(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::finding::Severity;
    use std::collections::BTreeSet;

    #[test]
    fn registry_holds_every_file_of_the_folder() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/rules");
        let mut files = BTreeSet::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            files.insert(name.trim_end_matches(".rs").to_owned());
        }
        for leaf in ["mod", "rule", "evidence", "traffic"] {
            assert!(files.remove(leaf), "{leaf}.rs");
        }
        let registered = FILES.iter().map(|(file, _)| (*file).to_owned()).collect();
        assert_eq!(files, registered);
    }

    #[test]
    fn rules_have_a_unique_code_a_short_title_and_a_meaning() {
        let mut codes = BTreeSet::new();
        for rule in rules() {
            let code = rule.code;
            assert!(codes.insert(code), "{code} is registered twice");
            assert!(
                code.chars().all(|c| c.is_ascii_lowercase() || c == '-'),
                "{code}"
            );
            assert!(
                rule.title.split(' ').count() <= 8 && !rule.title.ends_with('.'),
                "{code}"
            );
            assert!(
                rule.meaning.len() > 30 && rule.meaning.ends_with('.'),
                "{code}"
            );
        }
    }

    #[test]
    fn rules_fire_on_their_first_example_and_are_silent_on_their_second() {
        for rule in rules() {
            let fires = rule.find(&(rule.examples.fires)());
            assert!(
                fires.is_some(),
                "{} does not fire on its example",
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
            assert!(
                !finding.evidence.is_empty()
                    && !finding.claim.is_empty()
                    && !finding.remedy.is_empty(),
                "{finding:?}"
            );
            let document = serde_json::to_value(&record).unwrap();
            for evidence in &finding.evidence {
                let path = &evidence.path;
                let observed = document
                    .pointer(path)
                    .unwrap_or_else(|| panic!("{code}: {path} is not in the record"));
                if let Some(number) = observed.as_f64() {
                    assert_eq!(number, evidence.observed, "{code}: {path}");
                }
                assert!(
                    evidence.observed.is_finite() && evidence.threshold.is_finite(),
                    "{code}: JSON has no infinity"
                );
            }
        }
    }

    #[test]
    fn findings_begin_with_the_most_severe() {
        let mut run = fixture::run();
        run.1[0].punted = Some(true);
        run.1[1].device.read_bytes = 0;
        let findings = fixture::judge(run).findings;
        let codes: Vec<_> = findings
            .iter()
            .map(|finding| finding.code.as_str())
            .collect();
        assert_eq!(codes, ["served-from-cache", "io-punted"]);
        assert!(findings[0].severity > Severity::Note);
    }

    #[test]
    fn health_is_judged_alike_with_and_without_a_measurement() {
        let mut count = 0;
        for rule in rules().filter(|rule| matches!(rule.check, Check::Health(_))) {
            let record = (rule.examples.fires)();
            let found = health_findings(&record.health);
            assert_eq!(
                (found.len(), Some(&found[0])),
                (1, rule.find(&record).as_ref())
            );
            count += 1;
        }
        assert_eq!(count, 9);
    }
}
