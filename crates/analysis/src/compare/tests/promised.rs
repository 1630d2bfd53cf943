//! Searches for the highest rate that keeps a promise: their answers are compared, and not the
//! rates that they offered.

use super::super::test_figures::assert_close;
use super::*;
use crate::fixture::searched::answer;
use diskproof_model::plan::{Decide, Layout, Task, Workload};
use diskproof_model::rate::{LoadData, LoadOutcome, LoadRecord, RatePlan};
use diskproof_model::rays::{RayFigures, RaysData, RaysFigures, RaysRecord};
use diskproof_model::task::Workloads;

const PLAN: RatePlan = RatePlan {
    percent: 99.0,
    limit_ns: 5_000_000,
    time_ns: 420_000_000_000,
    hold_ns: 60_000_000_000,
};

/// A record without results that searched this load, with the rows of its hold and its control.
fn planned(plan: RatePlan, mut load: Workload, rate: f64) -> Record {
    load.stop.time_ns = None;
    let mut record = fixture::record();
    record.run_id = format!("{rate}");
    record.plan.origin.verb = "load".to_owned();
    let names = ["held", "control"].map(|part| format!("{}-{part}", load.name));
    record.measurements.truncate(2);
    for (row, name) in record.measurements.iter_mut().zip(names) {
        row.data.workload.name = name;
        row.data.workload.rate = Some(rate);
        row.figures.together_with.clear();
    }
    let mut workloads = Workloads::as_planned(vec![load]);
    workloads.decide = Decide::Rate(plan);
    record.plan.tasks = vec![Task::Workloads(workloads)];
    record.results.clear();
    record
}

/// A search of this plan that answers this rate, known to 5 %.
fn searched_by(plan: RatePlan, load: Workload, outcome: LoadOutcome, rate: f64) -> Record {
    let mut record = planned(plan, load, rate);
    record.results = vec![TaskResult::Load(Box::new(LoadRecord {
        data: LoadData::default(),
        figures: answer(outcome, rate, 0.05),
    }))];
    record
}

fn searched(outcome: LoadOutcome, rate: f64) -> Record {
    searched_by(PLAN, Workload::named("reads"), outcome, rate)
}

fn sustained(rate: f64) -> Record {
    searched(LoadOutcome::Sustained, rate)
}

/// By hand: the arms of each side are ln(1/0.95) = 0.051293 and ln 1.05 = 0.048790, so that those
/// of the ratio are their root of squares, 0.070792: 601/300 · exp(∓0.070792).
#[test]
fn promised_rates_lead_and_offered_rates_are_no_headline() {
    let candidate = held(&[&sustained(300.0)], &[&sustained(601.0)]);
    assert_eq!(candidate.metrics[0].metric, "load.rate");
    let rate = &candidate.metrics[0];
    let ratio = rate.ratio.unwrap();
    assert!((ratio.value - 2.003333).abs() < 1e-5, "{ratio:?}");
    assert!((ratio.low_95 - 1.866416).abs() < 1e-4, "{ratio:?}");
    assert!(
        (ratio.high_95.unwrap() - 2.150289).abs() < 1e-4,
        "{ratio:?}"
    );
    assert_close(rate.a.half_width_95.unwrap(), 15.0);
    assert_eq!(rate.verdict, Verdict::FasterOnce);
    assert_eq!(
        (candidate.headline.total(), candidate.headline.faster_once),
        (1, 1)
    );
    assert_eq!(
        reasons(metric(&candidate, "reads-held.p99")),
        ["load-differs"]
    );
    states(
        &candidate.summary,
        &[
            "p99 ≤ 5.00 ms: 601/s against 300/s, 2.0 times (95 %: 1.9 to 2.2)",
            "faster-once in load.rate",
        ],
    );
}

#[test]
fn three_searches_a_side_decide_a_condition() {
    let fast = [598.0, 600.0, 603.0].map(sustained);
    let slow = [299.0, 300.0, 301.5].map(sustained);
    let (fast, slow): (Vec<&Record>, Vec<&Record>) = (fast.iter().collect(), slow.iter().collect());
    let compared = compare(&ask(&fast, &slow, &["load.rate<-10%", "load.rate<-60%"])).unwrap();
    assert_eq!(
        metric(&compared.candidates[0], "load.rate").verdict,
        Verdict::Worse
    );
    let outcomes: Vec<ConditionOutcome> =
        compared.conditions.iter().map(|one| one.outcome).collect();
    assert_eq!(
        outcomes,
        [ConditionOutcome::Holds, ConditionOutcome::DoesNotHold]
    );
    // One pair of searches does not show how searches vary.
    let pair = compare(&ask(&fast[..1], &slow[..1], &["load.rate<-10%"])).unwrap();
    assert_eq!(pair.conditions[0].outcome, ConditionOutcome::Undecided);
}

/// The lower end of 601/s is 570.95/s, and that of 300/s 285/s, with the upper end 315/s.
#[test]
fn answer_at_least_decides_as_far_as_its_lower_end() {
    let at_least = |rate| searched(LoadOutcome::AtLeast, rate);
    let faster = held(&[&sustained(300.0)], &[&at_least(601.0)]);
    let rate = metric(&faster, "load.rate");
    assert_close(rate.b.value, 570.95);
    assert_eq!(rate.b.half_width_95, None);
    let ratio = rate.ratio.unwrap();
    assert!((ratio.low_95 - 570.95 / 315.0).abs() < 1e-5, "{ratio:?}");
    assert_eq!((ratio.high_95, rate.verdict), (None, Verdict::FasterOnce));
    states(
        &faster.summary,
        &["at least 571/s against 300/s, 1.81 times or more"],
    );

    let slower = held(&[&at_least(601.0)], &[&sustained(300.0)]);
    let rate = metric(&slower, "load.rate");
    let ratio = rate.ratio.unwrap();
    assert!(
        (ratio.high_95.unwrap() - 315.0 / 570.95).abs() < 1e-5,
        "{ratio:?}"
    );
    assert_eq!((ratio.low_95, rate.verdict), (0.0, Verdict::SlowerOnce));

    let open = held(&[&at_least(300.0)], &[&sustained(601.0)]);
    assert_eq!(metric(&open, "load.rate").verdict, Verdict::Undecided);
    assert_eq!(metric(&open, "load.rate").needed, None);
    let both = held(&[&at_least(300.0)], &[&at_least(601.0)]);
    let rate = metric(&both, "load.rate");
    assert_eq!((rate.ratio, rate.verdict), (None, Verdict::Undecided));
}

#[test]
fn undecided_search_has_no_rate_and_no_verdict() {
    let undecided = searched(LoadOutcome::NotHeld, 601.0);
    let compared = compare(&ask(
        &[&sustained(300.0)],
        &[&undecided],
        &["load.rate<-10%"],
    ))
    .unwrap();
    let candidate = &compared.candidates[0];
    assert!(!names(candidate).contains(&"load.rate"));
    assert_eq!(candidate.headline.total(), 0);
    assert_eq!(candidate.unmatched.len(), 1);
    assert_eq!(candidate.unmatched[0].subject, "load");
    assert_eq!(candidate.unmatched[0].only, Holder::A);
    states(
        &candidate.summary,
        &["the search of B is undecided (the lower end did not last)"],
    );
    assert_eq!(compared.conditions[0].outcome, ConditionOutcome::Unanswered);
    states(
        &compared.conditions[0].why,
        &["the search of B is undecided"],
    );
    let both = held(&[&undecided], &[&searched(LoadOutcome::FewEpisodes, 300.0)]);
    assert_eq!(both.unmatched[0].only, Holder::Both);
}

#[test]
fn searches_of_other_promises_or_loads_are_not_comparable() {
    let load = || Workload::named("reads");
    let limit = RatePlan {
        limit_ns: 10_000_000,
        ..PLAN
    };
    let hold = RatePlan {
        hold_ns: 600_000_000_000,
        ..PLAN
    };
    let longer = RatePlan {
        time_ns: 1_800_000_000_000,
        ..PLAN
    };
    let mut large = load();
    large.block_bytes *= 8;
    let mut unwritten = load();
    unwritten.layout = Layout::Provides;
    for (plan, load, codes) in [
        (limit, load(), vec!["promise-differs"]),
        (hold, load(), vec!["hold-differs"]),
        (PLAN, large, vec!["block-size-differs"]),
        (PLAN, unwritten, vec!["load-differs"]),
        (longer, load(), Vec::new()),
    ] {
        let other = searched_by(plan, load, LoadOutcome::Sustained, 601.0);
        let candidate = held(&[&sustained(300.0)], &[&other]);
        assert_eq!(reasons(metric(&candidate, "load.rate")), codes);
    }
    let other = searched_by(limit, load(), LoadOutcome::Sustained, 601.0);
    let candidate = held(&[&sustained(300.0)], &[&other]);
    assert_eq!(candidate.headline.not_comparable, 1);
    states(&candidate.summary, &["A: p99 ≤ 5.00 ms, B: p99 ≤ 10.0 ms"]);
}

/// Each share of reads has its metric; the boundary is named.
#[test]
fn searches_at_several_shares_of_reads_are_compared_one_by_one() {
    let rays = |rate: f64| {
        let mut record = planned(PLAN, Workload::named("reads-50"), rate);
        let ray = RayFigures {
            read_share: 0.5,
            load: answer(LoadOutcome::Sustained, rate, 0.05),
        };
        record.results = vec![TaskResult::Rays(Box::new(RaysRecord {
            data: RaysData { rays: Vec::new() },
            figures: RaysFigures {
                rays: vec![ray],
                boundary: None,
            },
        }))];
        record
    };
    let candidate = held(&[&rays(300.0)], &[&rays(601.0)]);
    let subject = rays(300.0).rays().unwrap().figures.rays[0].subject();
    let rate = metric(&candidate, &format!("{subject}.rate"));
    assert_eq!(rate.verdict, Verdict::FasterOnce);
    assert_eq!(candidate.headline.total(), 1);
    assert_eq!(candidate.unmatched.len(), 1);
    assert_eq!(candidate.unmatched[0].only, Holder::Both);
}

/// A fleet is judged by the answer: the latency at the rate that a search offered says nothing.
#[test]
fn answer_represents_a_search_among_many() {
    let figures = representative_figures(&sustained(300.0));
    let names: Vec<&str> = figures.iter().map(|one| one.metric.as_str()).collect();
    assert_eq!(names, ["load.rate"]);
    assert_close(figures[0].value, 300.0);
    let part = &figures[0].part;
    assert_eq!(part.faults(&sustained(300.0), 0), []);
    assert_eq!(
        part.differences(&sustained(300.0), 0, &sustained(601.0), 0),
        []
    );
    let faults = part.faults(&searched(LoadOutcome::AtLeast, 300.0), 0);
    assert_eq!(faults[0].code, "at-least");
    assert!(representative_figures(&searched(LoadOutcome::NotHeld, 300.0)).is_empty());
}
