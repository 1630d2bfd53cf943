//! The registry of findings: one constant per rule, in files by subject, and one line here. A rule
//! examines a whole record and reports at most one finding, however many workloads it concerns, so
//! that no page repeats a warning. Rules know the record only, not how a finding is printed.

use diskproof_model::finding::Finding;
use diskproof_model::health::DiskHealth;
use diskproof_model::record::Record;

mod access_time_off;
mod amplified;
mod blocks;
mod burst_exhausted;
mod burst_figure;
mod cache;
mod disturbed;
mod engine;
mod flat_top;
mod flush;
mod health;
mod hung;
mod imprecise;
mod io_errors;
mod layers;
mod program;
mod rate_limited;
pub mod rule;
mod scan;
mod short_span;
mod slow_after_idle;
mod surface;
mod traffic;
mod varies_between_runs;

pub use rule::{Check, Rule};

// Among findings of equal severity this is the order in which they are reported.
static RULES: &[&[Rule]] = &[
    &[hung::HUNG],
    &[hung::LATE],
    &[hung::STALLED],
    &[io_errors::IO_ERRORS],
    flush::RULES,
    blocks::VERIFICATION,
    &[scan::UNREADABLE_BLOCKS],
    health::RULES,
    &[cache::SERVED_FROM_CACHE],
    &[cache::CACHE_ANSWERED],
    &[blocks::UNWRITTEN_BLOCKS],
    &[blocks::INEFFECTIVE_TRIMS],
    &[cache::NOT_DIRECT],
    &[cache::UNPROVEN],
    &[disturbed::DISTURBED],
    &[amplified::AMPLIFIED],
    &[program::STARVED],
    &[program::CPU_STOLEN],
    &[program::INTERRUPTED],
    burst_exhausted::RULES,
    burst_figure::RULES,
    &[rate_limited::RATE_LIMITED],
    &[program::CPU_LIMITED],
    &[program::ENGINE_LIMITED],
    &[program::MISSED_SCHEDULE],
    &[slow_after_idle::SLOW_AFTER_IDLE],
    &[imprecise::IMPRECISE],
    &[varies_between_runs::VARIES_BETWEEN_RUNS],
    &[engine::DEPTH_NOT_HELD],
    &[engine::IO_PUNTED],
    &[engine::ENGINE_FALLBACK],
    &[flat_top::FLAT_TOP],
    &[surface::RAGGED],
    &[surface::SLOW_ZONE],
    &[scan::SLOW_BLOCKS],
    &[access_time_off::ACCESS_TIME_OFF],
    &[layers::LINK_DEGRADED],
    &[surface::NOT_ZONED],
    &[short_span::SHORT_SPAN],
    &[layers::VIRTUAL_DISK],
    &[layers::VOLATILE_WRITE_CACHE],
];

/// Every rule.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    RULES.iter().copied().flatten()
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
    use crate::fixture::{self, surveyed::codes};
    use diskproof_model::finding::Severity;
    use std::collections::BTreeSet;

    /// The compiler warns of a rule that is in no registry, but not of a file that no module names.
    #[test]
    fn registry_knows_every_file_of_the_folder() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/rules");
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let line = format!("mod {};", name.trim_end_matches(".rs"));
            assert!(
                name == "mod.rs" || include_str!("mod.rs").contains(&line),
                "{name}"
            );
        }
    }

    #[test]
    fn rules_have_a_unique_code_a_short_title_and_a_meaning() {
        let mut codes = BTreeSet::new();
        for rule in rules() {
            let (code, title, meaning) = (rule.code, rule.text("title"), rule.text("meaning"));
            assert!(codes.insert(code), "{code} is registered twice");
            assert!(
                code.chars().all(|c| c.is_ascii_lowercase() || c == '-'),
                "{code}"
            );
            assert!(
                title.split(' ').count() <= 8 && !title.ends_with('.'),
                "{code}"
            );
            assert!(meaning.len() > 30 && meaning.ends_with('.'), "{code}");
        }
    }

    /// The only test of what findings say; `INSTA_UPDATE=always` writes it anew.
    #[test]
    fn claims_and_remedies_of_the_examples() {
        let mut text = String::new();
        for rule in rules() {
            let told = std::iter::once(&rule.examples.fires).chain(rule.examples.told);
            for finding in told.map(|record| rule.find(&record()).unwrap()) {
                let (severity, code) = (finding.severity, &finding.code);
                text += &format!(
                    "{code} ({severity:?})\n{}\n{}\n",
                    finding.claim, finding.remedy
                );
                text += &finding
                    .reproduce
                    .map_or(String::new(), |command| command + "\n");
                text.push('\n');
            }
        }
        insta::with_settings!({snapshot_path => "../../tests/snapshots"}, {
            insta::assert_snapshot!("findings", text);
        });
    }

    #[test]
    fn every_text_is_of_a_rule_and_by_a_known_word() {
        let words = ["title", "meaning", "remedy", "consequence"];
        let (texts, codes): (Vec<&str>, Vec<&str>) = include_str!("../findings.txt")
            .lines()
            .partition(|line| line.starts_with("  "));
        assert!(codes.into_iter().eq(rules().map(|rule| rule.code)));
        for text in texts {
            let (word, text) = text.trim_start().split_once(": ").unwrap();
            assert!(words.contains(&word) && !text.is_empty(), "{word}");
        }
        for rule in rules() {
            let is_health = matches!(rule.check, Check::Health(_));
            assert_eq!(
                !rule.text("consequence").is_empty(),
                is_health,
                "{}",
                rule.code
            );
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
                let found = document.pointer(path);
                let found = found.unwrap_or_else(|| panic!("{code}: {path} is not in the record"));
                if let Some(number) = found.as_f64() {
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
            run.1[0].punted = Some(true);
            run.1[1].device.read_bytes = 0;
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
        assert_eq!(count, 9);
    }
}
