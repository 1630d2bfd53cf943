//! Findings: one file per rule, one registry. A rule looks at a whole record and says at most one
//! thing about it, however many workloads it concerns: a page with the same warning eight times is
//! not read. Rules know the record only; how a finding is printed is not theirs.

use diskproof_model::finding::{Evidence, Finding, Severity};
use diskproof_model::health::DiskHealth;
use diskproof_model::plan::EngineKind;
use diskproof_model::record::{MeasurementRecord, Record};

mod access_time_off;
mod amplified;
mod bad_blocks;
mod cache_answered;
mod cpu_limited;
mod depth_not_held;
mod disturbed;
mod engine_fallback;
mod engine_limited;
mod flat_top;
mod health;
mod health_failing;
mod hung;
mod imprecise;
mod io_errors;
mod io_punted;
mod link_degraded;
mod link_errors;
mod media_errors;
mod missed_schedule;
mod not_direct;
mod not_zoned;
mod ragged;
mod sectors_pending;
mod sectors_reallocated;
mod self_test_failed;
mod self_test_running;
mod served_from_cache;
mod slow_blocks;
mod slow_zone;
mod starved;
mod too_hot;
mod unreadable_blocks;
mod unwritten_blocks;
mod virtual_disk;
mod worn_out;

/// A rule that may find something.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Stable code of its finding.
    pub code: &'static str,
    /// What it found, in at most eight words.
    pub title: &'static str,
    /// What the finding means, for the reference: one sentence.
    pub meaning: &'static str,
    /// Examines a record.
    pub check: fn(&Record) -> Option<Diagnosis>,
}

/// What a rule found; the registry adds the code and the title.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// Its weight.
    pub severity: Severity,
    /// One sentence with the figures that decide, one with the consequence for a database.
    pub claim: String,
    /// What was observed; never empty.
    pub evidence: Vec<Evidence>,
    /// What to do, in the imperative.
    pub remedy: String,
    /// A command that shows the same thing, where there is one.
    pub reproduce: Option<String>,
}

impl Rule {
    fn finding(&self, diagnosis: Diagnosis) -> Finding {
        Finding {
            code: self.code.to_owned(),
            title: Some(self.title.to_owned()),
            severity: diagnosis.severity,
            claim: diagnosis.claim,
            evidence: diagnosis.evidence,
            remedy: diagnosis.remedy,
            reproduce: diagnosis.reproduce,
        }
    }
}

/// Every rule; among findings of equal weight this is the order in which they are told.
pub const RULES: &[Rule] = &[
    hung::RULE,
    io_errors::RULE,
    bad_blocks::RULE,
    unreadable_blocks::RULE,
    health_failing::RULE,
    self_test_failed::RULE,
    sectors_pending::RULE,
    worn_out::RULE,
    media_errors::RULE,
    sectors_reallocated::RULE,
    link_errors::RULE,
    too_hot::RULE,
    self_test_running::RULE,
    served_from_cache::RULE,
    cache_answered::RULE,
    unwritten_blocks::RULE,
    not_direct::RULE,
    disturbed::RULE,
    amplified::RULE,
    starved::RULE,
    cpu_limited::RULE,
    engine_limited::RULE,
    missed_schedule::RULE,
    imprecise::RULE,
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
    virtual_disk::RULE,
];

/// All findings on a record, heaviest first.
pub fn findings(record: &Record) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES
        .iter()
        .filter_map(|rule| Some(rule.finding((rule.check)(record)?)))
        .collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// Looks at the health of disks.
type HealthRule = fn(&[DiskHealth]) -> Option<Diagnosis>;

/// The rules that need nothing but health, for `info`, which measures nothing.
const HEALTH_RULES: &[(&Rule, HealthRule)] = &[
    (&health_failing::RULE, health_failing::find),
    (&self_test_failed::RULE, self_test_failed::find),
    (&sectors_pending::RULE, sectors_pending::find),
    (&worn_out::RULE, worn_out::find),
    (&media_errors::RULE, media_errors::find),
    (&sectors_reallocated::RULE, sectors_reallocated::find),
    (&link_errors::RULE, link_errors::find),
    (&too_hot::RULE, too_hot::find),
    (&self_test_running::RULE, self_test_running::find),
];

/// All findings on the health of disks, heaviest first. Their evidence points into a document with
/// these as its `health`.
pub fn health_findings(health: &[DiskHealth]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = HEALTH_RULES
        .iter()
        .filter_map(|(rule, find)| Some(rule.finding(find(health)?)))
        .collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// What the survey of a surface is called beside the names of workloads.
const SURVEY: &str = "the survey";

/// A measurement and its place in the record.
type Measured<'a> = (usize, &'a MeasurementRecord);

/// Every measurement that did real I/O.
fn real(record: &Record) -> impl Iterator<Item = Measured<'_>> {
    record
        .measurements
        .iter()
        .enumerate()
        .filter(|(_, m)| m.workload.engine != EngineKind::Null)
}

/// The measurement and those of the workloads that ran at the same time on the same target, which
/// share its device counters.
fn together<'a>(
    record: &'a Record,
    m: &'a MeasurementRecord,
) -> impl Iterator<Item = &'a MeasurementRecord> {
    let is_beside = |other: &MeasurementRecord| {
        other.target == m.target && m.workload.together_with.contains(&other.workload.name)
    };
    std::iter::once(m).chain(
        record
            .measurements
            .iter()
            .filter(move |other| is_beside(other)),
    )
}

/// An observation at `/measurements/INDEX/PLACE`.
fn evidence(index: usize, place: &str, observed: f64, threshold: f64, unit: &str) -> Evidence {
    Evidence {
        path: format!("/measurements/{index}/{place}"),
        observed,
        threshold,
        unit: unit.to_owned(),
    }
}

/// The workloads that a finding concerns: `all 8 workloads`, `2 of 8 workloads (random-read-d1,
/// random-read-d32)`.
fn scope(record: &Record, indices: impl IntoIterator<Item = usize>) -> String {
    let mut indices: Vec<usize> = indices.into_iter().collect();
    indices.dedup();
    let names: Vec<&str> = indices
        .iter()
        .map(|i| record.measurements[*i].workload.name.as_str())
        .collect();
    match (names.len(), record.measurements.len()) {
        (1, 1) => names[0].to_owned(),
        (hit, all) if hit == all => format!("all {all} workloads"),
        (hit, all) => format!("{hit} of {all} workloads ({})", names.join(", ")),
    }
}

/// The same with the survey among them, which has no index.
fn places(record: &Record, indices: impl IntoIterator<Item = Option<usize>>) -> String {
    let indices: Vec<Option<usize>> = indices.into_iter().collect();
    let workloads: Vec<usize> = indices.iter().copied().flatten().collect();
    let parts = [
        (!workloads.is_empty()).then(|| scope(record, workloads)),
        indices.contains(&None).then(|| SURVEY.to_owned()),
    ];
    parts
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" and ")
}

/// A share in percent: `0.4 %`, `12 %`; never `100 %` for less than all.
fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p >= 99.0 && share < 1.0 => "99 %".to_owned(),
        p if p < 9.95 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// A place or a size on a surface, in the units of disk makers: `41.2 GB`.
fn gigabytes(bytes: u64) -> String {
    match bytes as f64 / 1e9 {
        gb if gb >= 9_995.0 => format!("{:.1} TB", gb / 1e3),
        gb if gb >= 99.95 => format!("{gb:.0} GB"),
        gb if gb >= 0.9995 => format!("{gb:.1} GB"),
        gb => format!("{:.0} MB", gb * 1e3),
    }
}

/// The rate of a point of the curve, held against what it should be.
fn point_evidence(index: usize, record: &Record, expected: f64) -> Evidence {
    Evidence {
        path: format!("/curve/{index}/bytes_per_second"),
        observed: record.curve[index].bytes_per_second,
        threshold: expected,
        unit: "B/s".to_owned(),
    }
}

fn heaviest(severities: impl IntoIterator<Item = Severity>) -> Severity {
    severities.into_iter().max().unwrap_or(Severity::Note)
}

/// Requests that this workload wants in flight.
fn wanted_depth(m: &MeasurementRecord) -> f64 {
    f64::from(m.workload.depth) * f64::from(m.workload.workers)
}

#[cfg(test)]
mod odds;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::healthy;

    /// For every rule a record on which it fires.
    const FIRES: &[fn() -> Record] = &[
        hung::tests::spoilt,
        io_errors::tests::spoilt,
        bad_blocks::tests::spoilt,
        unreadable_blocks::tests::spoilt,
        health_failing::tests::spoilt,
        self_test_failed::tests::spoilt,
        sectors_pending::tests::spoilt,
        worn_out::tests::spoilt,
        media_errors::tests::spoilt,
        sectors_reallocated::tests::spoilt,
        link_errors::tests::spoilt,
        too_hot::tests::spoilt,
        self_test_running::tests::spoilt,
        served_from_cache::tests::spoilt,
        cache_answered::tests::spoilt,
        unwritten_blocks::tests::spoilt,
        not_direct::tests::spoilt,
        disturbed::tests::spoilt,
        amplified::tests::spoilt,
        starved::tests::spoilt,
        cpu_limited::tests::spoilt,
        engine_limited::tests::spoilt,
        missed_schedule::tests::spoilt,
        imprecise::tests::spoilt,
        depth_not_held::tests::spoilt,
        io_punted::tests::spoilt,
        engine_fallback::tests::spoilt,
        flat_top::tests::spoilt,
        ragged::tests::spoilt,
        slow_zone::tests::spoilt,
        slow_blocks::tests::spoilt,
        access_time_off::tests::spoilt,
        link_degraded::tests::spoilt,
        not_zoned::tests::spoilt,
        virtual_disk::tests::spoilt,
    ];

    #[test]
    fn codes_are_unique_and_documented() {
        for (i, rule) in RULES.iter().enumerate() {
            assert!(
                RULES[..i].iter().all(|other| other.code != rule.code),
                "{}",
                rule.code
            );
            assert!(
                rule.code
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c == '-'),
                "{}",
                rule.code
            );
            assert!(
                rule.meaning.len() > 30 && rule.meaning.ends_with('.'),
                "{}: {}",
                rule.code,
                rule.meaning
            );
        }
        assert_eq!(RULES.len(), FIRES.len());
    }

    #[test]
    fn every_finding_is_backed_by_the_record() {
        for (rule, spoilt) in RULES.iter().zip(FIRES) {
            let record = spoilt();
            let finding = (rule.check)(&record)
                .unwrap_or_else(|| panic!("{} does not fire on its own case", rule.code));
            assert!(
                !finding.evidence.is_empty()
                    && !finding.claim.is_empty()
                    && !finding.remedy.is_empty(),
                "{finding:?}"
            );
            let document = serde_json::to_value(&record).unwrap();
            for evidence in &finding.evidence {
                let seen = document.pointer(&evidence.path).unwrap_or_else(|| {
                    panic!("{}: {} is not in the record", rule.code, evidence.path)
                });
                if let Some(number) = seen.as_f64() {
                    assert_eq!(
                        number, evidence.observed,
                        "{}: {}",
                        rule.code, evidence.path
                    );
                }
                assert!(
                    evidence.observed.is_finite() && evidence.threshold.is_finite(),
                    "{}: JSON has no infinity",
                    rule.code
                );
            }
        }
    }

    #[test]
    fn the_heaviest_comes_first() {
        let mut run = healthy::run();
        run.1[0].punted = Some(true);
        run.1[1].device.read_bytes = 0;
        let codes: Vec<_> = healthy::judge(run)
            .findings
            .into_iter()
            .map(|f| f.code)
            .collect();
        assert_eq!(codes, ["served-from-cache", "io-punted"]);
    }

    #[test]
    fn health_is_judged_alike_with_and_without_a_measurement() {
        let rules = RULES
            .iter()
            .zip(FIRES)
            .filter(|(_, spoilt)| !spoilt().health.is_empty());
        let mut count = 0;
        for (rule, spoilt) in rules {
            let found = health_findings(&spoilt().health);
            assert_eq!(
                (found.len(), Some(&found[0])),
                (1, (rule.check)(&spoilt()).map(|d| rule.finding(d)).as_ref()),
                "{}",
                rule.code
            );
            count += 1;
        }
        assert_eq!(count, HEALTH_RULES.len());
    }

    #[test]
    fn scopes_name_the_workloads() {
        let record = healthy::record();
        assert_eq!(scope(&record, 0..8), "all 8 workloads");
        assert_eq!(
            scope(&record, [2, 2, 3]),
            "2 of 8 workloads (random-read-d1, random-read-d32)"
        );
    }

    #[test]
    fn less_than_all_is_not_called_all() {
        assert_eq!(
            (percent(0.9999), percent(1.0), percent(0.004)),
            ("99 %".to_owned(), "100 %".to_owned(), "0.4 %".to_owned())
        );
    }
}
