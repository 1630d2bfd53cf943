//! What all tests of comparisons share: records with known truth, and questions about them.

use super::*;
use crate::fixture::test_rng::TestRng;
use crate::fixture::{self, states, surveyed};
use diskproof_model::comparison::{Basis, ConditionOutcome, Figure, Unmatched, Verdict};
use diskproof_model::finding::{Finding, Meaning, Severity};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::{
    CacheUse, Hang, Measurement, OpKind, OpMeasurement, SERIES_INTERVAL_NS, StopReason, ZeroSample,
};
use diskproof_model::plan::{Access, CachePolicy, EngineKind, SyncPolicy};
use diskproof_model::record::{Record, TaskResult};
use diskproof_model::series::{Cell, TimeSeries};
use diskproof_model::surface::{AccessPoint, CurvePoint, SeekPattern, SurfaceMeasurement};
use proptest::prelude::*;
use std::collections::BTreeMap;

mod alternation;
mod conditions;
mod file_steps;
mod inserts;
mod latencies;
mod limits;
mod loads;
mod promised;
mod repetitions;
mod surveys;
mod verdicts;

/// A disk that answers one request at a time in 1 ms on average: a fixed part, a random part, and a
/// pace that wanders by 2 % and stays where it is for about 100 ms (ρ = 0.9 from one hundredth of a
/// second to the next).
fn wandering(speed: f64, seconds: u64, seed: u64) -> OpMeasurement {
    let mut rng = TestRng(seed.wrapping_mul(0xD134_2543_DE82_EF95));
    let mut series = TimeSeries::new(SERIES_INTERVAL_NS);
    let (mut latency, mut now, mut pace, mut step) =
        (LatencyHistogram::new(), 0.0, rng.normal(), 0);
    loop {
        while step < now as u64 / SERIES_INTERVAL_NS {
            pace = 0.9 * pace + (1.0 - 0.9_f64 * 0.9).sqrt() * rng.normal();
            step += 1;
        }
        let ns = 1_000_000.0 / speed * (0.02 * pace).exp() * (0.8 + 0.2 * rng.exponential());
        now += ns;
        if now >= seconds as f64 * 1e9 {
            break;
        }
        latency.record(ns as u64);
        series.add(
            now as u64,
            &Cell {
                ops: 1,
                bytes: 8192,
                errors: 0,
                latency_max_ns: ns as u64,
                ..Cell::default()
            },
            8192,
        );
    }
    let total = series.total();
    OpMeasurement {
        count: total.ops,
        bytes: total.bytes,
        latency,
        series,
        ..OpMeasurement::default()
    }
}

/// A record with only random reads, one at a time.
fn run_of(op: OpMeasurement, seconds: u64, id: &str) -> Record {
    let mut run = fixture::run();
    run.measurements
        .retain(|measurement| measurement.workload.name == "random-read-d1");
    run.facts
        .plan
        .workloads_mut()
        .retain(|w| w.name == "random-read-d1");
    run.facts.run_id = id.to_owned();
    run.measurements[0].wall_ns = seconds * 1_000_000_000;
    run.measurements[0].ops = BTreeMap::from([(OpKind::Read, op)]);
    fixture::judge(run)
}

fn group<'a>(label: &str, records: &[&'a Record]) -> RunGroup<'a> {
    let runs = records
        .iter()
        .enumerate()
        .map(|(i, record)| Run {
            name: format!("{label}{i}"),
            record,
        })
        .collect();
    RunGroup {
        label: label.to_owned(),
        runs,
    }
}

fn ask<'a>(a: &[&'a Record], b: &[&'a Record], limits: &[&str]) -> Question<'a> {
    let tool = fixture::record().tool;
    let limits = limits.iter().map(|limit| limit.parse().unwrap()).collect();
    Question {
        tool,
        margin: MARGIN,
        baseline: group("a", a),
        candidates: vec![group("b", b)],
        history: Vec::new(),
        limits,
    }
}

fn held(a: &[&Record], b: &[&Record]) -> Candidate {
    compare(&ask(a, b, &[])).unwrap().candidates.remove(0)
}

fn metric<'a>(candidate: &'a Candidate, name: &str) -> &'a MetricComparison {
    candidate
        .metrics
        .iter()
        .find(|metric| metric.metric == name)
        .unwrap_or_else(|| panic!("{name} is not among {:?}", names(candidate)))
}

/// The rate of random reads, which is all that most of these records measure.
fn rate(candidate: &Candidate) -> &MetricComparison {
    metric(candidate, "random-read-d1.iops")
}

fn names(candidate: &Candidate) -> Vec<&str> {
    candidate
        .metrics
        .iter()
        .map(|metric| metric.metric.as_str())
        .collect()
}

/// The codes of what keeps a metric from being compared.
fn reasons(metric: &MetricComparison) -> Vec<&str> {
    metric
        .reasons
        .iter()
        .map(|reason| reason.code.as_str())
        .collect()
}

/// Every metric has this verdict.
#[track_caller]
fn assert_all(candidate: &Candidate, verdict: Verdict) {
    for metric in &candidate.metrics {
        assert_eq!(metric.verdict, verdict, "{metric:#?}");
    }
}

fn reverse(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Better => Verdict::Worse,
        Verdict::Worse => Verdict::Better,
        Verdict::FasterOnce => Verdict::SlowerOnce,
        Verdict::SlowerOnce => Verdict::FasterOnce,
        other => other,
    }
}

/// The healthy run, changed before the judgement.
fn changed(change: impl Fn(&mut fixture::FixtureRun)) -> Record {
    fixture::changed(|run| {
        run.facts.run_id = "changed".to_owned();
        change(run);
    })
}

/// B reports its failure at the figures of A.
#[test]
fn condition_has_no_answer_while_a_disk_reports_its_failure() {
    let a = run_of(wandering(1.0, 5, 1), 5, "a");
    let mut b = run_of(wandering(1.0, 5, 1), 5, "b");
    let passing = ["random-read-d1.iops<-99%"];
    let outcome = |a: &Record, b: &Record, limits: &[&str]| {
        compare(&ask(&[a], &[b], limits)).unwrap().conditions[0].outcome
    };
    assert_eq!(outcome(&a, &b, &passing), ConditionOutcome::DoesNotHold);
    b.findings.push(Finding {
        says: Meaning::Health,
        ..fixture::finding("health-failing", Severity::Failure, "/health/0/passed")
    });
    assert_eq!(outcome(&a, &b, &passing), ConditionOutcome::Unanswered);
    assert_eq!(outcome(&b, &a, &passing), ConditionOutcome::Unanswered);
    let comparison = compare(&ask(&[&a], &[&b], &[])).unwrap();
    assert!(comparison.baseline.findings.is_empty());
    let findings = &comparison.candidates[0].side.findings;
    assert_eq!(findings.len(), 1);
    assert_eq!(
        (findings[0].run.as_str(), findings[0].code.as_str()),
        ("B", "health-failing")
    );
    // A warning is shown, and decides nothing.
    b.findings[0].severity = Severity::Warning;
    assert_eq!(outcome(&a, &b, &passing), ConditionOutcome::DoesNotHold);
}

/// B ended on time with requests in flight, whose latencies its figures lack.
#[test]
fn figures_without_all_answers_pass_no_condition() {
    let a = run_of(wandering(1.0, 5, 1), 5, "a");
    let mut b = run_of(wandering(1.0, 5, 1), 5, "b");
    let outcome = |b: &Record, limit: &str| {
        compare(&ask(&[&a], &[b], &[limit])).unwrap().conditions[0].outcome
    };
    for limit in ["random-read-d1.iops<-99%", "random-read-d1.mean>900%"] {
        assert_eq!(outcome(&b, limit), ConditionOutcome::DoesNotHold);
    }
    for (late, code) in [(true, "late"), (false, "hung")] {
        b.measurements[0].data.hang = Some(Hang {
            since_ns: 0,
            lasted_ns: 10_000_000_000,
            requests: 8,
            late,
        });
        for limit in ["random-read-d1.iops<-99%", "random-read-d1.mean>900%"] {
            assert_eq!(outcome(&b, limit), ConditionOutcome::Unanswered, "{limit}");
        }
        let candidate = held(&[&a], &[&b]);
        assert_eq!(reasons(rate(&candidate)), [code]);
    }
}

/// Two scans have no common metric; the one that found unreadable sectors says so.
#[test]
fn scans_are_named_as_not_compared() {
    let scanned = |id: &str, unreadable_bytes: u64| {
        let mut record = surveyed::faulty(|survey| {
            survey.curve.clear();
            survey.burst = None;
            survey.access.clear();
            survey.scan.insert(surveyed::scan()).unreadable_bytes = unreadable_bytes;
        });
        record.run_id = id.to_owned();
        record
    };
    let (a, b) = (scanned("a", 0), scanned("b", 4096));
    let candidate = held(&[&a], &[&b]);
    assert!(candidate.metrics.is_empty());
    assert_eq!(candidate.unmatched.len(), 1);
    assert_eq!(candidate.unmatched[0].only, Holder::Both);
    assert_eq!(candidate.side.findings[0].code, "unreadable-blocks");
}
