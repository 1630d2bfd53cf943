//! Metrics of the run: its identity, findings, grades and expectations.

use super::family::{Labels, MetricFamily, gauge, gauges_by_unit, target_labels, with};
use crate::describe::run::observed_unit;
use crate::figures::{expectation_value, grade_value};
use diskproof_model::finding::Severity;
use diskproof_model::record::{Expectation, ExpectationOutcome, Record};
use diskproof_model::verdict::{Grade, RunVerdict, TrustLevel};

pub(super) fn of_run(record: &Record) -> Vec<MetricFamily> {
    let start = record
        .started
        .parse::<jiff::Timestamp>()
        .map_or(f64::NAN, |time| time.as_second() as f64);
    let mut families = vec![
        gauge(
            "diskproof_run_timestamp_seconds",
            "Start of the run, in seconds since the epoch.",
            vec![(Vec::new(), start)],
        ),
        gauge(
            "diskproof_run_info",
            "Identity of the run; always 1.",
            vec![(identity(record), 1.0)],
        ),
        gauge(
            "diskproof_run_partial",
            "1 if the run ended early.",
            vec![(Vec::new(), f64::from(u8::from(record.partial)))],
        ),
        gauge(
            "diskproof_findings",
            "Number of findings by severity.",
            findings_by_severity(record),
        ),
        gauge(
            "diskproof_finding",
            "1 for each finding, by its code.",
            findings_by_code(record),
        ),
        gauge(
            "diskproof_grade",
            "Grade of the verdict: 2 good, 1 limited, 0 poor; no series if not graded.",
            grades(record),
        ),
        gauge(
            "diskproof_verdict_info",
            "The verdict in words and the most severe finding; always 1.",
            verdict_info(record),
        ),
        gauge(
            "diskproof_reliable",
            "1 if no finding concerns the figures, 0.5 if a warning does, 0 if a failure does.",
            reliable(record),
        ),
    ];
    families.extend(gauges_by_unit(
        "diskproof_grade_threshold",
        "The smallest figure with this grade; source gives the reason.",
        &thresholds(record),
    ));
    families.extend(of_expectations(record));
    families
}

/// Thresholds and promises, one by one and counted.
fn of_expectations(record: &Record) -> Vec<MetricFamily> {
    let missed = record
        .expectations
        .iter()
        .filter(|expectation| expectation.outcome() == ExpectationOutcome::Missed);
    let undecided = record
        .expectations
        .iter()
        .filter(|expectation| expectation.undecided);
    let mut families = gauges_by_unit(
        "diskproof_expectation_observed",
        "The measured value; no series if it was not measured.",
        &observed(record),
    );
    families.extend(gauges_by_unit(
        "diskproof_promised",
        "The figure from the data sheet.",
        &promised(record),
    ));
    families.extend([
        gauge(
            "diskproof_expectation",
            "Result of each threshold and promise: 1 met, 0.5 undecided, 0 missed.",
            expectations(record),
        ),
        gauge(
            "diskproof_expectations_missed",
            "Missed thresholds.",
            vec![(Vec::new(), missed.count() as f64)],
        ),
        gauge(
            "diskproof_expectations_undecided",
            "Thresholds that the measurement cannot decide.",
            vec![(Vec::new(), undecided.count() as f64)],
        ),
    ]);
    families
}

fn identity(record: &Record) -> Labels {
    let verb = &record.plan.origin.verb;
    vec![
        ("run_id", record.run_id.clone()),
        ("version", record.tool.version.clone()),
        ("verb", verb.clone()),
        ("host", record.host.name.clone()),
    ]
}

fn findings_by_severity(record: &Record) -> Vec<(Labels, f64)> {
    let severities = [
        (Severity::Failure, "failure"),
        (Severity::Warning, "warning"),
        (Severity::Note, "note"),
    ];
    let mut samples = Vec::new();
    for (severity, name) in severities {
        let findings = record.findings.iter();
        let count = findings
            .filter(|finding| finding.severity == severity)
            .count();
        samples.push((vec![("severity", name.to_owned())], count as f64));
    }
    samples
}

fn findings_by_code(record: &Record) -> Vec<(Labels, f64)> {
    let findings = record.findings.iter();
    findings
        .map(|finding| (vec![("code", finding.code.clone())], 1.0))
        .collect()
}

fn grades(record: &Record) -> Vec<(Labels, f64)> {
    let mut samples = Vec::new();
    for grade in record.verdict.iter().flat_map(|verdict| &verdict.grades) {
        let target = record
            .measurements
            .get(grade.measurement)
            .map_or(0, |m| m.target);
        let labels = with(&target_labels(record, target), "use", &grade.name);
        samples.extend(grade.grade.map(|grade| (labels, grade_value(grade))));
    }
    samples
}

fn thresholds(record: &Record) -> Vec<(Labels, f64, &str)> {
    let mut samples = Vec::new();
    for grade in record.verdict.iter().flat_map(|verdict| &verdict.grades) {
        let target = record
            .measurements
            .get(grade.measurement)
            .map_or(0, |m| m.target);
        let labels = with(&target_labels(record, target), "use", &grade.name);
        let labels = with(&labels, "source", &grade.thresholds.source);
        for (name, from) in [
            (Grade::Limited, grade.thresholds.limited_from),
            (Grade::Good, grade.thresholds.good_from),
        ] {
            let labels = with(&labels, "grade", name.as_str());
            samples.push((labels, from, grade.figure.unit.as_str()));
        }
    }
    samples
}

fn expectations(record: &Record) -> Vec<(Labels, f64)> {
    distinct(record)
        .map(|one| (condition(one), expectation_value(one)))
        .collect()
}

fn observed(record: &Record) -> Vec<(Labels, f64, &str)> {
    distinct(record)
        .filter_map(|one| {
            let promised = one.promise.as_ref().map(|promise| promise.unit.as_str());
            let unit = promised.or(observed_unit(&one.expression)).unwrap_or("1");
            Some((condition(one), one.observed?, unit))
        })
        .collect()
}

fn promised(record: &Record) -> Vec<(Labels, f64, &str)> {
    distinct(record)
        .filter_map(|one| {
            let promise = one.promise.as_ref()?;
            let labels = with(&condition(one), "name", &promise.name);
            Some((labels, promise.promised, promise.unit.as_str()))
        })
        .collect()
}

/// Each condition once, as series must differ: the same condition has the same result.
fn distinct(record: &Record) -> impl Iterator<Item = &Expectation> {
    let all = &record.expectations;
    let is_first = |(index, one): &(usize, &Expectation)| {
        all[..*index]
            .iter()
            .all(|other| other.expression != one.expression)
    };
    all.iter().enumerate().filter(is_first).map(|(_, one)| one)
}

fn condition(expectation: &Expectation) -> Labels {
    vec![("condition", expectation.expression.clone())]
}

fn verdict_info(record: &Record) -> Vec<(Labels, f64)> {
    let info = |verdict: &RunVerdict| {
        let mut labels = vec![("headline", verdict.headline.clone())];
        if let Some(worst) = &verdict.worst {
            labels.push(("worst", worst.code.clone()));
            labels.push(("title", worst.title.clone()));
        }
        (labels, 1.0)
    };
    record.verdict.iter().map(info).collect()
}

fn reliable(record: &Record) -> Vec<(Labels, f64)> {
    let level = record.verdict.as_ref().map(|verdict| verdict.trust.level);
    let value = level.map(|level| match level {
        TrustLevel::Reliable => 1.0,
        TrustLevel::Doubtful => 0.5,
        TrustLevel::Unreliable => 0.0,
    });
    value.map(|value| (Vec::new(), value)).into_iter().collect()
}
