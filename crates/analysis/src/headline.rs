//! Writes the headline of a verdict: the answer of a run in a sentence, or its first figures.
//! docs/verdict.md explains it.

use crate::results::{ResultWords, result_words};
use crate::words::{enumerated, sentence, uncapitalised};
use diskproof_model::expectation::{Expectation, ExpectationOutcome};
use diskproof_model::finding::{Cause, Meaning};
use diskproof_model::measurement::OpKind;
use diskproof_model::ping::PingFigures;
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::units::{format_duration, format_latency};
use diskproof_model::verdict::UseGrade;
use std::cmp::Reverse;

/// A headline of figures has at most this many clauses: the table follows.
const CLAUSES_MAX: usize = 3;

/// The headline of a run with `--fit-for`: fit, not fit or undecided; undecided where the
/// run ended early and missed nothing. `None` of other runs.
pub(crate) fn fitness_headline(record: &Record) -> Option<String> {
    let questions = &record.plan.questions;
    let profile = questions.fit_for.as_ref()?;
    // A record that does not name the limits has no other thresholds.
    let limits: Vec<&Expectation> = record
        .expectations
        .iter()
        .filter(|threshold| {
            questions.fit_limits.is_empty() || questions.fit_limits.contains(&threshold.expression)
        })
        .collect();
    let missed = expressions_with(&limits, ExpectationOutcome::Missed);
    if !missed.is_empty() {
        let missed = enumerated(&missed);
        return Some(format!("Not fit for {profile}: missed {missed}."));
    }
    if record.has_stopped_answering() {
        return Some(format!(
            "Undecided for {profile}: the target stopped answering."
        ));
    }
    if let Some(reasons) = undecided_reasons(&limits) {
        return Some(format!("Undecided for {profile}: {reasons}."));
    }
    let limits = match limits.len() {
        0 => return Some(format!("Undecided for {profile}: nothing was measured.")),
        1 => "its limit is".to_owned(),
        2 => "both limits are".to_owned(),
        count => format!("all {count} limits are"),
    };
    if record.partial {
        return Some(format!(
            "Undecided for {profile}: {limits} met so far, but the run ended early."
        ));
    }
    Some(format!("Fit for {profile}: {limits} met."))
}

/// The thresholds with this outcome, as the user or the profile wrote them.
fn expressions_with<'a>(
    thresholds: &[&'a Expectation],
    outcome: ExpectationOutcome,
) -> Vec<&'a str> {
    thresholds
        .iter()
        .filter(|threshold| threshold.outcome() == outcome)
        .map(|threshold| threshold.expression.as_str())
        .collect()
}

/// The undecided limits whose figures have one objection.
struct OpenLimits<'a> {
    objection: &'a str,
    expressions: Vec<&'a str>,
}

impl OpenLimits<'_> {
    /// `unwritten blocks were read (unwritten-blocks), so read.iops>=500 is open`
    fn text(&self) -> String {
        let verb = if self.expressions.len() == 1 {
            "is"
        } else {
            "are"
        };
        format!(
            "{}, so {} {verb} open",
            uncapitalised(self.objection.trim_end_matches('.')),
            enumerated(&self.expressions)
        )
    }
}

/// The reasons why limits are undecided: what objects to their figures, and the intervals of the
/// others. `None` where all are decided.
fn undecided_reasons(limits: &[&Expectation]) -> Option<String> {
    let mut open: Vec<OpenLimits<'_>> = Vec::new();
    let mut by_interval: Vec<&str> = Vec::new();
    for limit in limits {
        if limit.outcome() != ExpectationOutcome::Undecided {
            continue;
        }
        let Some(objection) = limit.objection.as_deref() else {
            by_interval.push(&limit.expression);
            continue;
        };
        match open.iter_mut().find(|known| known.objection == objection) {
            Some(known) => known.expressions.push(&limit.expression),
            None => open.push(OpenLimits {
                objection,
                expressions: vec![&limit.expression],
            }),
        }
    }
    let mut clauses: Vec<String> = open.iter().map(OpenLimits::text).collect();
    if !by_interval.is_empty() {
        let expressions = enumerated(&by_interval);
        clauses.push(format!("the intervals do not decide {expressions}"));
    }
    if clauses.is_empty() {
        None
    } else {
        Some(clauses.join("; "))
    }
}

/// The headline of a graded run: `Good for scans and commits; limited for look-ups; poor or limited
/// for bulk load.`
pub(crate) fn graded_headline(grades: &[UseGrade]) -> String {
    let mut clauses = Vec::new();
    let (mut graded, ungraded): (Vec<&UseGrade>, Vec<&UseGrade>) = grades
        .iter()
        .partition(|use_grade| use_grade.grade.is_some());
    graded.sort_by_key(|use_grade| Reverse(use_grade.range()));
    for same_grade in graded.chunk_by(|one, other| one.range() == other.range()) {
        let words = same_grade[0].words();
        clauses.push(format!(
            "{words} for {}",
            enumerated(&use_names(same_grade))
        ));
    }
    if !ungraded.is_empty() {
        clauses.push(format!("not graded: {}", enumerated(&use_names(&ungraded))));
    }
    sentence(&clauses.join("; "))
}

/// The names of the uses, such as `look-ups`.
fn use_names<'a>(grades: &[&'a UseGrade]) -> Vec<&'a str> {
    grades
        .iter()
        .map(|use_grade| use_grade.name.as_str())
        .collect()
}

/// The headline of a run without grades: its result, else its first figures.
pub(crate) fn plain_headline(record: &Record) -> String {
    let mut clauses = Vec::new();
    for result in &record.results {
        match result_words(record, result) {
            ResultWords::Sentence(sentence) => return sentence,
            ResultWords::Clauses(own) => clauses.extend(own),
        }
    }
    if clauses.is_empty() {
        for row in durable_measurements(record) {
            clauses.extend(measurement_clauses(record, row));
        }
        clauses.truncate(CLAUSES_MAX);
    }
    if clauses.is_empty() {
        "Nothing was measured.".to_owned()
    } else {
        sentence(&clauses.join("; "))
    }
}

/// The measurements whose commits are durable; all where there are no such.
fn durable_measurements(record: &Record) -> Vec<&Row> {
    let mut durable = Vec::new();
    for (index, row) in record.measurements.iter().enumerate() {
        if !commits_may_be_lost(record, index) {
            durable.push(row);
        }
    }
    if durable.is_empty() {
        durable.extend(&record.measurements);
    }
    durable
}

/// Returns `true` if commits of a measurement may return before their data is durable.
fn commits_may_be_lost(record: &Record, index: usize) -> bool {
    let lost = Meaning::NotTheDisk {
        cause: Cause::NotDurable,
    };
    record
        .findings
        .iter()
        .any(|finding| finding.says == lost && finding.concerns(index))
}

/// A clause for each kind of operation of a row: `random-read-d1: reads at 2000/s (16 MB/s)`. The
/// target is named where there are several.
fn measurement_clauses(record: &Record, row: &Row) -> Vec<String> {
    let place = match record.targets.get(row.data.target) {
        Some(target) if record.targets.len() > 1 => format!(" on {}", target.path),
        Some(_) | None => String::new(),
    };
    if let Some(ping) = &row.figures.ping {
        let clauses = ping_clauses(ping);
        return clauses
            .into_iter()
            .map(|clause| format!("{clause}{place}"))
            .collect();
    }
    let name = format!("{}{place}", row.data.workload.name);
    let mut clauses = Vec::new();
    for (kind, op) in row.headline_ops() {
        clauses.push(if op.figures.iops.is_unknown() {
            let (kind, time) = (kind.as_str(), format_duration(row.data.wall_ns));
            format!("{name}: undecided, no {kind} completed within {time}")
        } else {
            format!(
                "{name}: {} at {} ({})",
                kind.plural(),
                op.figures.iops.value_text(),
                op.figures.throughput.value_text()
            )
        });
    }
    clauses
}

/// `a read takes 131 µs ± 4 µs on average`, with idle times `… right after another`.
fn ping_clauses(ping: &PingFigures) -> Vec<String> {
    let has_commits = ping.latency.contains_key(&OpKind::Commit);
    let mut clauses = Vec::new();
    for (kind, latency) in &ping.latency {
        let request = match kind {
            OpKind::Read => "a read",
            // The write alone is a part of the durable one.
            OpKind::Write if has_commits => continue,
            OpKind::Write => "a write",
            OpKind::Commit => "a durable write",
            // No ping sends them, and a sync or a transaction has no latency of its own here.
            OpKind::Trim | OpKind::Sync | OpKind::Transaction => continue,
        };
        let (mean, when) = match ping.awake() {
            Some(point) => (&point.mean, "right after another"),
            None => (&latency.mean, "on average"),
        };
        clauses.push(match mean.n {
            1 => format!("{request} took {}", format_latency(mean.value as u64)),
            _ => format!("{request} takes {} {when}", mean.text()),
        });
    }
    clauses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};
    use diskproof_model::record::Estimate;
    use diskproof_model::verdict::{Grade, GradeThresholds};

    #[test]
    fn undecided_limits_name_what_leaves_them_open() {
        let limit = |expression: &str, objection: Option<&str>| Expectation {
            expression: expression.to_owned(),
            threshold: Some(500.0),
            observed: Some(510.0),
            interval: None,
            observed_at_least: None,
            met: false,
            undecided: true,
            decided_by_ns: None,
            objection: objection.map(str::to_owned),
            promise: None,
        };
        let empty = Some("Unwritten blocks were read (unwritten-blocks)");
        let limits = [
            limit("a.iops>=500", empty),
            limit("b.iops>=500", None),
            limit("c.iops>=500", empty),
        ];
        let all: Vec<&Expectation> = limits.iter().collect();
        states(
            &undecided_reasons(&all).unwrap(),
            &[
                "unwritten blocks were read (unwritten-blocks), so a.iops>=500 and c.iops>=500 are",
                "intervals do not decide b.iops>=500",
            ],
        );
        assert_eq!(undecided_reasons(&[]), None);
    }

    #[test]
    fn grade_that_the_interval_leaves_open_is_said_as_both() {
        let use_grade = |name: &str, grade, or| UseGrade {
            name: name.to_owned(),
            measurement: 0,
            grade,
            or,
            not_graded: None,
            figure: Estimate {
                n: 10,
                value: 110e6,
                half_width_95: Some(20e6),
                unit: "B/s".to_owned(),
            },
            thresholds: GradeThresholds {
                limited_from: 100e6,
                good_from: 200e6,
                source: "a test".to_owned(),
            },
            doubts: Vec::new(),
        };
        let grades = [
            use_grade("bulk load", Some(Grade::Poor), Some(Grade::Limited)),
            use_grade("scans", None, None),
            use_grade("look-ups", Some(Grade::Limited), Some(Grade::Good)),
            use_grade("commits", Some(Grade::Good), None),
        ];
        assert_eq!(
            graded_headline(&grades),
            "Good for commits; limited or good for look-ups; poor or limited for bulk load; not \
             graded: scans."
        );
    }

    #[test]
    fn ping_with_idle_times_leads_with_the_disk_that_is_awake() {
        const MILLISECOND_NS: u64 = 1_000_000;
        let samples: Vec<(u64, u64)> = (0..20)
            .flat_map(|_| {
                [
                    (2_000 * MILLISECOND_NS, 301 * MILLISECOND_NS),
                    (0, MILLISECOND_NS),
                ]
            })
            .collect();
        let record = fixture::judge(fixture::ping::ping_run(&samples));
        let ping = record.measurements[0].figures.ping.as_ref().unwrap();
        let [clause] = &ping_clauses(ping)[..] else {
            panic!("one kind")
        };
        states(clause, &["1.00 ms", "right after another"]);
        let paced = PingFigures {
            after_idle: Vec::new(),
            ..ping.clone()
        };
        assert!(ping_clauses(&paced)[0].ends_with("on average"));
    }

    fn first_rows(count: usize) -> Record {
        fixture::changed(|run| run.measurements.truncate(count))
    }

    fn not_durable(record: &mut Record, row: usize) {
        let mut finding = fixture::finding(
            "volatile-write-cache",
            diskproof_model::finding::Severity::Failure,
            &format!("/measurements/{row}/figures/ops/write/iops/value"),
        );
        finding.says = Meaning::NotTheDisk {
            cause: Cause::NotDurable,
        };
        record.findings.push(finding);
    }

    /// Commits that may be lost do not lead the headline, unless there is nothing else.
    #[test]
    fn headline_names_what_is_durable_first() {
        let mut record = first_rows(2);
        let [first, second] = [0, 1].map(|row| record.measurements[row].data.workload.name.clone());
        not_durable(&mut record, 0);
        let headline = plain_headline(&record).to_lowercase();
        assert!(!headline.contains(&first) && headline.contains(&second));
        not_durable(&mut record, 1);
        let headline = plain_headline(&record).to_lowercase();
        assert!(headline.contains(&first) && headline.contains(&second));
    }

    #[test]
    fn headline_has_at_most_three_clauses() {
        let clauses = plain_headline(&first_rows(8)).matches("; ").count() + 1;
        assert_eq!(clauses, CLAUSES_MAX);
    }

    #[test]
    fn clause_names_its_target_of_several() {
        let mut record = first_rows(1);
        let mut second = record.targets[0].clone();
        second.path = "/second".to_owned();
        record.targets.push(second);
        record.measurements[0].data.target = 1;
        states(&plain_headline(&record), &[" on /second: "]);
    }

    #[test]
    fn row_in_which_nothing_completed_is_undecided() {
        let mut record = first_rows(1);
        for op in record.measurements[0].figures.ops.values_mut() {
            op.iops = Estimate::new(0, 0.0, None, "1/s");
        }
        let [clause] = &measurement_clauses(&record, &record.measurements[0])[..] else {
            panic!("one kind")
        };
        states(clause, &["undecided", "5.0 s"]);
    }
}
