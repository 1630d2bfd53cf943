//! Compares runs metric by metric: a ratio with its interval and a verdict, or the reason why they
//! cannot be compared. docs/compare.md explains the statistics.
//!
//! * `pair`: parts that both sides have; `rows`: their metrics; `figures`, `survey`, `files`,
//!   `observed`: figures and errors; `distribution`: latencies.
//! * `ratio`: variation from run to run, intervals, p-values, verdicts. `comparable`: what must
//!   agree; `differences`: what may differ. `limit`: conditions of the user.
//! * `own`: the figures that represent one run, for the comparison of many.
//! * `blocks`: the slices of a live comparison.
//! * `earlier`: runs of the history that show how figures vary, for both sides or a single run.

mod blocks;
mod comparable;
mod differences;
mod distribution;
mod earlier;
mod figures;
mod files;
mod limit;
mod observed;
mod own;
mod pair;
mod ratio;
mod reasons;
mod rows;
mod sides;
mod summary;
mod survey;

pub(crate) use differences::facts_of_target;
pub(crate) use distribution::percentile_points;
pub(crate) use earlier::{run_to_run, widen as widen_to_runs};
pub use limit::CompareError;
pub use limit::{Limit, LimitError};
pub(crate) use own::{OwnFigure, PartOfRun, own_figures};
pub(crate) use ratio::holm;
pub use sides::{Run, RunGroup};

use comparable::Measured;
use diskproof_model::comparison::{
    COMPARISON_SCHEMA, Candidate, Comparison, Holder, MetricComparison, RunReference, Side, Tally,
    letter,
};
use diskproof_model::record::Tool;
use earlier::EarlierRuns;
use pair::{ComparedRow, Pair};
use sides::Sides;

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

/// Compares every candidate with the baseline.
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
        candidates.push(candidate(question, group, &letter(index)));
    }
    limit::vet(&question.limits, &candidates)?;
    let mut conditions = Vec::new();
    for limit in &question.limits {
        for candidate in &candidates {
            conditions.push(limit.evaluate(candidate));
        }
    }
    Ok(Comparison {
        schema: COMPARISON_SCHEMA.to_owned(),
        tool: question.tool.clone(),
        margin: question.margin,
        baseline: side(&question.baseline),
        candidates,
        conditions,
        fleet: None,
    })
}

fn side(group: &RunGroup<'_>) -> Side {
    Side {
        label: group.label.clone(),
        runs: group.runs.iter().map(reference).collect(),
    }
}

fn reference(run: &Run<'_>) -> RunReference {
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

fn candidate(question: &Question<'_>, group: &RunGroup<'_>, letter: &str) -> Candidate {
    let sides = Sides::from_groups(&question.baseline, group, letter);
    let earlier = EarlierRuns::from_history(&question.history, &sides);
    let has_several_targets = sides.runs().any(|named| named.run.record.targets.len() > 1);
    let (mut rows, mut percentiles, mut unmatched) = (Vec::new(), Vec::new(), Vec::new());
    for key in sides.workloads() {
        let pair = Pair::find(&sides, &earlier, key.name, &mut unmatched, |name, run| {
            Measured::find(name, run, key)
        });
        let Some(pair) = pair else {
            if let Some(missing) = unmatched.last_mut() {
                missing.why = why_skipped(&sides, key.name, missing.only);
            }
            continue;
        };
        let prefix = if has_several_targets {
            format!("{}:", key.target + 1)
        } else {
            String::new()
        };
        let own_rows = rows::workload_rows(&prefix, &pair);
        let comparable = !own_rows.is_empty() && pair.reasons.is_empty();
        percentiles.extend(rows::percentile_pairs(&pair, comparable));
        rows.extend(own_rows);
    }
    rows.extend(survey::rows(&sides, &earlier, &mut unmatched));
    rows.extend(files::rows(&sides, &earlier, &mut unmatched));
    rows.extend(observed::rows(&sides, &mut unmatched));
    let metrics = verdicts(rows, question.margin);
    let (mut headline, mut tally_of_all) = (Tally::default(), Tally::default());
    for metric in &metrics {
        tally_of_all.count(metric.verdict);
        if metric.headline {
            headline.count(metric.verdict);
        }
    }
    Candidate {
        side: side(group),
        headline,
        all: tally_of_all,
        summary: summary::sentence(letter, question.margin, headline, &metrics),
        differences: differences::differences(&question.baseline.runs, &group.runs),
        notes: summary::notes(&question.baseline, group, &sides, letter, &metrics),
        metrics,
        unmatched,
        percentiles,
    }
}

/// The reason why the side that lacks a workload skipped it; `None` where its plan gives none.
fn why_skipped(sides: &Sides<'_>, workload: &str, only: Holder) -> Option<String> {
    let other = match only {
        Holder::A => &sides.b,
        Holder::B => &sides.a,
    };
    for named in other {
        for skipped in &named.run.record.plan.skipped {
            if skipped.workload == workload {
                return Some(skipped.why.clone());
            }
        }
    }
    None
}

/// Gives each row its verdict. Headline metrics and all others are two families of comparisons: the
/// summary is about the first, and must not lose power because of details.
fn verdicts(mut rows: Vec<ComparedRow>, margin: f64) -> Vec<MetricComparison> {
    for is_headline in [true, false] {
        let p_values: Vec<f64> = rows
            .iter()
            .filter(|row| row.metric.headline == is_headline)
            .flat_map(|row| row.metric.p_value)
            .collect();
        let mut adjusted = ratio::holm(&p_values).into_iter();
        for row in &mut rows {
            if row.metric.headline != is_headline {
                continue;
            }
            let p_adjusted = match row.metric.p_value {
                Some(_) => adjusted.next(),
                None => None,
            };
            row.decide(p_adjusted, p_values.len(), margin);
        }
    }
    rows.into_iter().map(|row| row.metric).collect()
}

#[cfg(test)]
mod tests;
