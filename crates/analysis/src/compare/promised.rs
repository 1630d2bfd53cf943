//! Compares the highest rates that keep a promise, as searches answer them: one of a run, or one
//! for each share of reads. Promise and load must agree; the rates that a search offered on its way
//! differ with its answer, and say nothing.
//!
//! The answer has an interval of its own. "At least" has only a lower end, so that it decides no
//! more than that end does. An undecided search has no rate.

use super::comparable::{
    MeasuredWorkload, Requesting, add_course_differences, add_request_differences,
};
use super::differing::Differing;
use super::earlier::EarlierRuns;
use super::pair::{Pair, PartOnSides};
use super::pending_metric::{ComparedFigure, PendingMetric};
use super::ratio::{Arms, RatioEstimate, SideFigure, Within};
use super::reasons::{Compared, Reasons, kind_text};
use super::side_estimate::SideEstimate;
use super::sides::{Run, Sides, WorkloadKey, unmatched_entry};
use crate::estimate::mean;
use diskproof_model::comparison::{Figure, Holder, MetricComparison, Ratio, Reason, Unmatched};
use diskproof_model::digits::{rounded, to_a_percent};
use diskproof_model::plan::{Decide, Workload};
use diskproof_model::rate::{LoadFigures, RateCellKind, RatePlan};
use diskproof_model::record::Record;
use diskproof_model::units::{format_duration, format_latency};

/// The subject of the only search of a run, as conditions name it.
const LOAD: &str = "load";
/// The code of an answer that has no upper end.
pub(crate) const WITHOUT_UPPER_END: &str = "at-least";
/// A search has one target.
pub(super) const TARGET: usize = 0;
const UNIT: &str = "1/s";

/// The promised rates of two sides.
#[derive(Default)]
pub(super) struct PromisedRates {
    /// A metric for each search.
    pub metrics: Vec<PendingMetric>,
    /// The answers of the only search in a sentence; `None` where they are not comparable.
    pub sentence: Option<String>,
}

/// The rates that both sides promise. Searches that only one side has, or that are undecided, are
/// added to `unmatched`.
pub(super) fn promised_rates(
    sides: &Sides<'_>,
    earlier: &EarlierRuns<'_>,
    unmatched: &mut Vec<Unmatched>,
) -> PromisedRates {
    let mut rates = PromisedRates::default();
    for subject in subjects(sides) {
        let searched = Pair::find(sides, earlier, |name, run| {
            SearchedRate::find(name, run, &subject)
        });
        match searched {
            PartOnSides::Both(pair) => match undecided_entry(&subject, &pair) {
                Some(undecided) => unmatched.push(undecided),
                None => match rate_metric(&subject, &pair) {
                    Some(rate) => rates.add(rate),
                    None => unmatched.push(impossible_entry(&subject)),
                },
            },
            PartOnSides::OneSide(holder) => unmatched.push(unmatched_entry(&subject, holder)),
            PartOnSides::Neither => {}
        }
    }
    rates
}

impl PromisedRates {
    fn add(&mut self, rate: PromisedRate) {
        let metric = &rate.metric.metric;
        if metric.subject == LOAD && metric.reasons.is_empty() {
            self.sentence = Some(rate.sentence);
        }
        self.metrics.push(rate.metric);
    }
}

/// The metric of one search, and its answers in a sentence.
struct PromisedRate {
    metric: PendingMetric,
    sentence: String,
}

/// `None` where a damaged record states an impossible interval.
fn rate_metric(subject: &str, pair: &Pair<SearchedRate<'_>>) -> Option<PromisedRate> {
    let first = pair.a.first()?;
    let estimates = pair.side_estimates(side_estimate)?;
    let ratio = estimates.ratio().filter(RatioEstimate::is_bounded);
    let times_ns = pair.parts().map(|searched| searched.plan.time_ns);
    let measured_ns = times_ns.max();
    let figure = Figure::PromisedRate;
    let name = format!("{subject}.{}", figure.as_str());
    let compared = ComparedFigure {
        subject,
        figure,
        estimates,
        ratio,
        measured_ns,
        reasons: &pair.reasons,
    };
    let mut metric = PendingMetric::new(name, compared);
    metric.metric.target = TARGET;
    metric.metric.headline = true;
    let sentence = answers_sentence(first.plan, pair, &metric.metric);
    Some(PromisedRate { metric, sentence })
}

/// `The rate kept at p99 ≤ 5.00 ms: 601/s against 300/s, 2.0 times (95 %: 1.9 to 2.1).`
fn answers_sentence(
    plan: &RatePlan,
    pair: &Pair<SearchedRate<'_>>,
    metric: &MetricComparison,
) -> String {
    let b = answer_text(metric.b.value, &pair.b);
    let a = answer_text(metric.a.value, &pair.a);
    let promise = promise_text(Promise::planned(plan));
    match metric.ratio {
        Some(ratio) => format!(
            "The rate kept at {promise}: {b} against {a}, {}.",
            ratio_text(ratio)
        ),
        None => format!("The rate kept at {promise}: {b} against {a}."),
    }
}

/// `601/s`, or `at least 601/s` where an answer of the side has no upper end.
fn answer_text(rate: f64, side: &[SearchedRate<'_>]) -> String {
    let rate = to_a_percent(rate);
    if side.iter().all(|searched| searched.has_both_ends()) {
        format!("{rate}/s")
    } else {
        format!("at least {rate}/s")
    }
}

/// The ratio with its interval, or the only end of it.
fn ratio_text(ratio: Ratio) -> String {
    match ratio.high_95 {
        Some(high) if ratio.low_95 > 0.0 => {
            let longer_arm = (high - ratio.value).max(ratio.value - ratio.low_95);
            let [value, low, high] =
                [ratio.value, ratio.low_95, high].map(|end| rounded(end, Some(longer_arm)));
            format!("{value} times (95 %: {low} to {high})")
        }
        Some(high) => format!("{} times or less", to_a_percent(high)),
        None => format!("{} times or more", to_a_percent(ratio.low_95)),
    }
}

/// The entry for a search that is undecided on a side; `None` where both sides promise a rate.
fn undecided_entry(subject: &str, pair: &Pair<SearchedRate<'_>>) -> Option<Unmatched> {
    let undecided_a = undecided_search(&pair.a);
    let undecided_b = undecided_search(&pair.b);
    let only = match (undecided_a, undecided_b) {
        (Some(_), Some(_)) => Holder::Both,
        (Some(_), None) => Holder::B,
        (None, Some(_)) => Holder::A,
        (None, None) => return None,
    };
    let mut texts = Vec::new();
    for searched in [undecided_a, undecided_b].into_iter().flatten() {
        texts.push(format!(
            "the search of {} is undecided ({})",
            searched.name,
            searched.answer.outcome.as_str()
        ));
    }
    Some(Unmatched {
        subject: subject.to_owned(),
        only,
        why: Some(texts.join(", ")),
    })
}

/// The entry for a search whose damaged record states an interval that cannot be.
fn impossible_entry(subject: &str) -> Unmatched {
    Unmatched {
        subject: subject.to_owned(),
        only: Holder::Both,
        why: Some("an interval of the record is impossible".to_owned()),
    }
}

/// The first search of a side that promises no rate.
fn undecided_search<'p, 'a>(side: &'p [SearchedRate<'a>]) -> Option<&'p SearchedRate<'a>> {
    side.iter()
        .find(|searched| !searched.answer.outcome.is_promise())
}

/// The subjects of the searches of both sides, each once, the baseline's first.
fn subjects(sides: &Sides<'_>) -> Vec<String> {
    let mut subjects = Vec::new();
    for named in sides.runs() {
        for search in searches(named.run.record) {
            if !subjects.contains(&search.subject) {
                subjects.push(search.subject);
            }
        }
    }
    subjects
}

/// The subjects of the searches of a run.
pub(super) fn searched_subjects(record: &Record) -> Vec<String> {
    searches(record)
        .into_iter()
        .map(|search| search.subject)
        .collect()
}

/// The load of a search as a run planned it.
pub(super) fn searched_workload<'r>(record: &'r Record, subject: &str) -> Option<&'r Workload> {
    searches(record)
        .into_iter()
        .find(|search| search.subject == subject)
        .map(|search| search.workload)
}

/// A search of a record.
struct Search<'a> {
    subject: String,
    workload: &'a Workload,
    answer: &'a LoadFigures,
}

/// The searches of a record, in the order of its plan.
fn searches(record: &Record) -> Vec<Search<'_>> {
    let Some(workloads) = record.plan.workload_task() else {
        return Vec::new();
    };
    let mut answers = Vec::new();
    if let Some(load) = record.load() {
        answers.push((LOAD.to_owned(), &load.figures));
    }
    for ray in record.rays().iter().flat_map(|rays| &rays.figures.rays) {
        answers.push((ray.subject(), &ray.load));
    }
    let mut searches = Vec::new();
    for ((_, workload), (subject, answer)) in workloads.searched().zip(answers) {
        searches.push(Search {
            subject,
            workload,
            answer,
        });
    }
    searches
}

/// A search for the highest rate in one run.
#[derive(Clone, Copy)]
pub(super) struct SearchedRate<'a> {
    /// The side, or one of its runs: `A`, `B` or `A2`.
    pub name: &'a str,
    pub run: &'a Run<'a>,
    plan: &'a RatePlan,
    workload: &'a Workload,
    answer: &'a LoadFigures,
}

impl<'a> SearchedRate<'a> {
    /// The search of this subject; `None` where the run did not make it.
    pub(super) fn find(name: &'a str, run: &'a Run<'a>, subject: &str) -> Option<Self> {
        let Decide::Rate(plan) = &run.record.plan.workload_task()?.decide else {
            return None;
        };
        let search = searches(run.record)
            .into_iter()
            .find(|search| search.subject == subject)?;
        Some(Self {
            name,
            run,
            plan,
            workload: search.workload,
            answer: search.answer,
        })
    }

    /// Returns `true` if the interval of its answer has an upper end.
    fn has_both_ends(self) -> bool {
        self.answer.outcome.has_both_ends()
    }

    /// Its row: the load at the lower end of the answer; `None` where nothing was held.
    fn held(self) -> Option<MeasuredWorkload<'a>> {
        let name = RateCellKind::Hold.row_name(&self.workload.name);
        let key = WorkloadKey {
            target: TARGET,
            name: &name,
        };
        MeasuredWorkload::find(self.name, self.run, key)
    }

    /// The rate that it promises; `None` where it promises nothing.
    fn promised(self) -> Option<StatedRate> {
        let promised = self.answer.promised()?;
        let is_ordered = promised.low <= promised.rate && promised.rate <= promised.high;
        if !(promised.low > 0.0 && is_ordered && promised.high.is_finite()) {
            return None;
        }
        if self.has_both_ends() {
            return Some(StatedRate {
                log: promised.rate.ln(),
                arms: Arms {
                    below: (promised.rate / promised.low).ln(),
                    above: (promised.high / promised.rate).ln(),
                },
            });
        }
        Some(StatedRate {
            log: promised.low.ln(),
            arms: Arms {
                below: 0.0,
                above: f64::INFINITY,
            },
        })
    }
}

/// A promised rate as its record states it, in logarithms.
struct StatedRate {
    log: f64,
    arms: Arms,
}

/// The promised rate of a side; `None` without runs, and where one of them promises none.
fn side_estimate(runs: &[SearchedRate<'_>]) -> Option<SideEstimate> {
    let mut logs = Vec::new();
    let mut squares = Arms {
        below: 0.0,
        above: 0.0,
    };
    for searched in runs {
        let stated = searched.promised()?;
        logs.push(stated.log);
        squares.below += stated.arms.below.powi(2);
        squares.above += stated.arms.above.powi(2);
    }
    if logs.is_empty() {
        return None;
    }
    let count = logs.len() as f64;
    let within = Within::Stated(Arms {
        below: squares.below.sqrt() / count,
        above: squares.above.sqrt() / count,
    });
    let runs = logs.len() as u64;
    let figure = SideFigure::from_runs(mean(&logs).exp(), logs, within);
    Some(SideEstimate::new(figure, runs, UNIT))
}

/// The promised rate that represents a search in one run.
pub(super) struct LeadingRate {
    pub metric: String,
    pub side: SideEstimate,
}

/// The promised rate of the search of this subject; `None` where it promises none.
pub(super) fn leading_rate(run: &Run<'_>, subject: &str) -> Option<LeadingRate> {
    let searched = SearchedRate::find("", run, subject)?;
    Some(LeadingRate {
        metric: format!("{subject}.{}", Figure::PromisedRate.as_str()),
        side: side_estimate(&[searched])?,
    })
}

/// The reason why an answer says too little to be judged among many.
pub(super) fn reason_without_upper_end(searched: SearchedRate<'_>) -> Option<Reason> {
    if searched.has_both_ends() {
        return None;
    }
    Some(Reason {
        code: WITHOUT_UPPER_END.to_owned(),
        why: format!("the search of {} answers \"at least\"", searched.name),
    })
}

/// A promise about latency.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Promise {
    percent: f64,
    limit_ns: u64,
}

impl Promise {
    fn planned(plan: &RatePlan) -> Self {
        Self {
            percent: plan.percent,
            limit_ns: plan.limit_ns,
        }
    }
}

/// `p99 ≤ 5.00 ms`.
fn promise_text(promise: Promise) -> String {
    format!(
        "p{} ≤ {}",
        promise.percent,
        format_latency(promise.limit_ns)
    )
}

impl<'a> Requesting<'a> for SearchedRate<'a> {
    fn requested(self) -> &'a Workload {
        self.workload
    }
}

impl Compared for SearchedRate<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn record(&self) -> &Record {
        self.run.record
    }

    /// The time of the search may differ: a longer one has a narrower interval of the same rate.
    fn add_differences(self, other: Self, reasons: &mut Reasons) {
        let mut differences = Reasons::default();
        let mut pair = differences.between(self, other);
        pair.add_if_different(
            Differing::Promise,
            |searched| Promise::planned(searched.plan),
            promise_text,
        );
        pair.add_if_different(
            Differing::Hold,
            |searched| searched.plan.hold_ns,
            |hold_ns| format!("held for {}", format_duration(hold_ns)),
        );
        pair.add_if_both_differ(
            Differing::TargetKind,
            |searched| Some(searched.run.record.targets.first()?.kind),
            kind_text,
        );
        add_request_differences(&mut pair);
        if let (Some(held), Some(other_held)) = (self.held(), other.held()) {
            add_course_differences(&mut differences, held, other_held);
        }
        if differences.0.is_empty() {
            let mut pair = differences.between(self, other);
            pair.add_if_different(
                Differing::Load,
                |searched| searched.workload,
                |workload| format!("the load {}", workload.name),
            );
        }
        for difference in differences.0 {
            reasons.add(&difference.code, difference.why);
        }
    }

    fn add_faults(self, harmless: &[&str], reasons: &mut Reasons) {
        if let Some(held) = self.held() {
            held.add_faults(harmless, reasons);
        }
    }
}
