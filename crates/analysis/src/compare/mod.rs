//! Compares runs metric by metric: gives a ratio with its interval and a verdict, or the reason why
//! two figures cannot be compared. docs/compare.md explains the statistics.
//!
//! * `pair`: parts that both sides have; `pending_metric`: a metric until its verdict;
//!   `workload_metrics`, `survey`, `files`, `promised`, `inserts`, `observed`: their metrics;
//!   `uncompared`: results without one; `rates`, `latencies`: figures and errors, as a
//!   `side_estimate`; `distribution`: latencies.
//! * `run_spread`: variation from run to run; `ratio`: intervals and p-values; `verdict`: verdicts.
//! * `comparable`: what must agree, `differing`: its codes, `workload_text`: in words;
//!   `differences` of the `facts`: what may differ; `reasons`: why figures are not comparable.
//! * `depths`: answers of searches for a depth; `side_findings`: what is wrong with the disk of a
//!   side.
//! * `limit`: conditions of the user; `error`: why no comparison is made; `summary`, `notes`:
//!   sentences.
//! * `representative`: the figures that represent one run, for the comparison of many;
//!   `same_conditions`: runs whose figures make a trend.
//! * `blocks`: the slices of a live comparison.
//! * `earlier`: runs of the history that show how figures vary, for both sides or a single run.

mod blocks;
mod comparable;
mod depths;
mod differences;
mod differing;
mod distribution;
mod earlier;
mod error;
mod facts;
mod files;
mod inserts;
mod latencies;
mod limit;
mod notes;
mod observed;
mod pair;
mod pending_metric;
mod promised;
mod rates;
mod ratio;
mod reasons;
mod representative;
mod run_spread;
mod same_conditions;
mod side_estimate;
mod side_findings;
mod sides;
mod summary;
mod survey;
#[cfg(test)]
mod test_figures;
mod uncompared;
mod verdict;
mod workload_metrics;
mod workload_text;

pub(crate) use differences::conditions_of_target;
pub(crate) use distribution::percentile_points;
pub(crate) use earlier::{run_to_run, widen as widen_to_runs};
pub use error::CompareError;
pub(crate) use latencies::OpLatencies;
pub use limit::{Limit, LimitError};
pub(crate) use promised::WITHOUT_UPPER_END;
pub(crate) use representative::{PartOfRun, RepresentativeFigure, representative_figures};
pub(crate) use same_conditions::has_same_conditions;
pub use sides::{Run, RunGroup};

use crate::estimate::adjusted_for_family;
use comparable::MeasuredWorkload;
use diskproof_model::comparison::{
    COMPARISON_SCHEMA, Candidate, Comparison, Holder, MetricComparison, PercentilePair,
    RunReference, Side, Tally, Unmatched, letter,
};
use diskproof_model::record::Tool;
use earlier::EarlierRuns;
use pair::{Pair, PartOnSides};
use pending_metric::PendingMetric;
use reasons::Compared as _;
use sides::{BASELINE, Sides};
use verdict::AdjustedP;

/// Figures that differ by at most this share count as the same, unless the user sets another
/// margin. It is the precision to which `check` measures, and about what the same disk varies by
/// from day to day. Less would call noise a change; more would hide a loss that a database notices.
pub const MARGIN: f64 = 0.02;

/// The runs to compare, and the rules.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// The program that compares, for the document.
    pub tool: Tool,
    /// Figures that differ by at most this share count as the same; above 0 and below 1.
    pub margin: f64,
    /// The side with which the candidates are compared.
    pub baseline: RunGroup<'a>,
    /// The sides that are compared with it.
    pub candidates: Vec<RunGroup<'a>>,
    /// Other runs of the history, one group for each label. Those of the same target and plan show
    /// how figures vary from run to run.
    pub history: Vec<RunGroup<'a>>,
    /// Conditions that fail the comparison.
    pub limits: Vec<Limit>,
}

/// Compares every candidate with the baseline. Fails where the margin or the limits make no sense,
/// or a side has no run.
pub fn compare(question: &Question<'_>) -> Result<Comparison, CompareError> {
    if !(question.margin > 0.0 && question.margin < 1.0) {
        let percent = question.margin * 100.0;
        return Err(CompareError::Margin(format!("{percent} %")));
    }
    for group in [&question.baseline].into_iter().chain(&question.candidates) {
        if group.runs.is_empty() {
            return Err(CompareError::Empty(group.label.clone()));
        }
    }
    let mut candidates = Vec::new();
    for (index, group) in question.candidates.iter().enumerate() {
        candidates.push(compare_candidate(question, group, &letter(index)));
    }
    limit::check_metric_names(&question.limits, &candidates)?;
    let baseline = side_of_group(&question.baseline, BASELINE);
    let mut conditions = Vec::new();
    for limit in &question.limits {
        for candidate in &candidates {
            conditions.push(limit.evaluate(&baseline, candidate));
        }
    }
    Ok(Comparison {
        schema: COMPARISON_SCHEMA.to_owned(),
        tool: question.tool.clone(),
        margin: question.margin,
        baseline,
        candidates,
        conditions,
        fleet: None,
    })
}

/// A side as the document has it. `letter` names it in sentences.
fn side_of_group(group: &RunGroup<'_>, letter: &str) -> Side {
    Side {
        label: group.label.clone(),
        runs: group.runs.iter().map(run_reference).collect(),
        findings: side_findings::side_findings(group, letter),
    }
}

fn run_reference(run: &Run<'_>) -> RunReference {
    let record = run.record;
    RunReference {
        name: run.name.clone(),
        run_id: record.run_id.clone(),
        started: record.started.clone(),
        verb: record.plan.origin.verb.clone(),
        host: record.host.name.clone(),
        targets: record.targets.iter().map(|t| t.path.clone()).collect(),
        disks: differences::disk_names(record),
        note: record.note.clone(),
        partial: record.partial,
    }
}

/// Compares one candidate with the baseline. `letter` names the candidate in sentences.
fn compare_candidate(question: &Question<'_>, group: &RunGroup<'_>, letter: &str) -> Candidate {
    let sides = Sides::from_groups(&question.baseline, group, letter);
    let earlier = EarlierRuns::from_history(&question.history, &sides);
    let mut unmatched = Vec::new();
    let promised = promised::promised_rates(&sides, &earlier, &mut unmatched);
    let mut pending = promised.metrics;
    let workloads = compare_workloads(&sides, &earlier);
    pending.extend(workloads.pending);
    unmatched.extend(workloads.unmatched);
    pending.extend(survey::survey_metrics(&sides, &earlier, &mut unmatched));
    pending.extend(files::step_metrics(&sides, &earlier, &mut unmatched));
    pending.extend(inserts::insert_metrics(&sides, &earlier, &mut unmatched));
    pending.extend(observed::load_metrics(&sides, &mut unmatched));
    unmatched.extend(uncompared::uncompared_results(&sides));
    let metrics = decide_all(pending, question.margin);
    let mut headline_tally = Tally::default();
    let mut tally_of_all = Tally::default();
    for metric in &metrics {
        tally_of_all.count(metric.verdict);
        if metric.headline {
            headline_tally.count(metric.verdict);
        }
    }
    let answers = promised
        .sentence
        .or_else(|| depths::depths_sentence(&sides));
    Candidate {
        side: side_of_group(group, letter),
        headline: headline_tally,
        all: tally_of_all,
        summary: summary::summary_sentences(&summary::Summarised {
            letter,
            margin: question.margin,
            headline: headline_tally,
            metrics: &metrics,
            unmatched: &unmatched,
            answers: answers.as_deref(),
        }),
        answers,
        differences: differences::differences(&question.baseline.runs, &group.runs),
        notes: notes::notes(&question.baseline, group, &sides, letter, &metrics),
        metrics,
        unmatched,
        percentiles: workloads.percentiles,
    }
}

/// The comparison of all workloads of two sides.
#[derive(Default)]
struct ComparedWorkloads {
    pending: Vec<PendingMetric>,
    percentiles: Vec<PercentilePair>,
    /// The workloads that only one side has.
    unmatched: Vec<Unmatched>,
}

/// Compares each workload that both sides have.
fn compare_workloads(sides: &Sides<'_>, earlier: &EarlierRuns<'_>) -> ComparedWorkloads {
    let has_several_targets = sides.runs().any(|named| named.run.record.targets.len() > 1);
    let mut compared = ComparedWorkloads::default();
    for key in sides.workloads() {
        let sides_with_workload = Pair::find(sides, earlier, |name, run| {
            MeasuredWorkload::find(name, run, key)
        });
        let pair = match sides_with_workload {
            PartOnSides::Both(pair) => pair,
            PartOnSides::OneSide(holder) => {
                compared.unmatched.push(Unmatched {
                    subject: key.name.to_owned(),
                    only: holder,
                    why: why_skipped(sides, key.name, holder),
                });
                continue;
            }
            PartOnSides::Neither => continue,
        };
        let prefix = if has_several_targets {
            format!("{}:", key.target + 1)
        } else {
            String::new()
        };
        let mut metrics = workload_metrics::workload_metrics(&prefix, &pair);
        let is_offered_by_search = pair
            .parts()
            .any(|part| part.record().is_offered_by_search(part.row()));
        if is_offered_by_search {
            // The answer of the search speaks for it.
            for pending in &mut metrics {
                pending.metric.headline = false;
            }
        }
        let is_comparable = !metrics.is_empty() && pair.reasons.is_empty();
        for mut percentiles in workload_metrics::percentile_pairs(&pair) {
            percentiles.comparable = is_comparable;
            compared.percentiles.push(percentiles);
        }
        compared.pending.extend(metrics);
    }
    compared
}

/// The reason why a workload that only `holder` has was skipped on the other side; `None` where the
/// plan of that side gives none.
fn why_skipped(sides: &Sides<'_>, workload: &str, holder: Holder) -> Option<String> {
    let lacking_side = match holder {
        Holder::A => &sides.b,
        Holder::B => &sides.a,
        // Neither side lacks it.
        Holder::Both => return None,
    };
    for named in lacking_side {
        for skipped in &named.run.record.plan.skipped {
            if skipped.workload == workload {
                return Some(skipped.why.clone());
            }
        }
    }
    None
}

/// The metrics with their verdicts, in the same order.
fn decide_all(pending_metrics: Vec<PendingMetric>, margin: f64) -> Vec<MetricComparison> {
    let adjusted = adjusted_p_values(&pending_metrics);
    let mut metrics = Vec::new();
    for (pending, p_value) in std::iter::zip(pending_metrics, adjusted) {
        metrics.push(pending.decided(p_value, margin));
    }
    metrics
}

/// The adjusted p-value of each metric; `None` where it has none. Headline metrics and all others
/// are two families of comparisons: the summary is about the first, and must not lose power because
/// of details.
fn adjusted_p_values(pending_metrics: &[PendingMetric]) -> Vec<Option<AdjustedP>> {
    let mut adjusted = vec![None; pending_metrics.len()];
    for is_headline in [true, false] {
        let mut indices = Vec::new();
        let mut p_values = Vec::new();
        for (index, pending) in pending_metrics.iter().enumerate() {
            if pending.metric.headline == is_headline
                && let Some(p_value) = pending.metric.p_value
            {
                indices.push(index);
                p_values.push(p_value);
            }
        }
        for (index, value) in std::iter::zip(&indices, adjusted_for_family(&p_values)) {
            adjusted[*index] = Some(AdjustedP {
                value,
                family_size: p_values.len(),
            });
        }
    }
    adjusted
}

#[cfg(test)]
mod tests;
