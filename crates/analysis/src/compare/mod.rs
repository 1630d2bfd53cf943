//! Compares runs metric by metric: a ratio with its interval and a verdict, or the
//! reason why they cannot be compared.
//! docs/compare.md explains the statistics.
//!
//! * `pair`: what both sides have, and its metrics; `rows`: which metrics there are; `figures`,
//!   `survey`, `files`, `observed`: their figures and errors; `distribution`: latencies.
//! * `ratio`: how figures vary from run to run, intervals, p-values, verdicts. `comparable`: what
//!   must agree; `differences`: what need not. `limit`: conditions of the user.
//! * `blocks`: what the slices of a live comparison show.
//! * `earlier`: runs of the history that show how figures vary, of both sides or of a single run.
//!
//! Knows records only, not where they come from or how a comparison is printed.

mod blocks;
mod comparable;
mod differences;
mod distribution;
mod earlier;
mod figures;
mod files;
mod limit;
mod observed;
mod pair;
mod ratio;
mod reasons;
mod rows;
mod sides;
mod summary;
mod survey;

pub(crate) use earlier::{run_to_run, widen as widen_to_runs};
pub use limit::CompareError;
pub use limit::{Limit, LimitError};
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

/// Figures that differ by less count as the same, unless the user sets another margin: 2 %. It is
/// the precision to which `check` measures, and about what the same disk varies by from day to day.
/// Less would call noise a change; more would hide a loss that a database notices.
pub const MARGIN: f64 = 0.02;

/// What is to be compared.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// The program that asks.
    pub tool: Tool,
    /// Share by which figures may differ and count as the same, above 0 and below 1.
    pub margin: f64,
    /// What the others are compared with.
    pub baseline: RunGroup<'a>,
    /// The others.
    pub candidates: Vec<RunGroup<'a>>,
    /// Other runs of the history, one group for each label. Those of the same target and plan
    /// show how much figures vary from run to run.
    pub history: Vec<RunGroup<'a>>,
    /// Conditions on the outcome.
    pub limits: Vec<Limit>,
}

/// Compares every candidate with the baseline.
pub fn compare(question: &Question<'_>) -> Result<Comparison, CompareError> {
    if !(question.margin > 0.0 && question.margin < 1.0) {
        let percent = question.margin * 100.0;
        return Err(CompareError::Margin(format!("{percent} %")));
    }
    let groups = [&question.baseline].into_iter().chain(&question.candidates);
    if let Some(empty) = groups.into_iter().find(|group| group.runs.is_empty()) {
        return Err(CompareError::Empty(empty.label.clone()));
    }
    let groups = question.candidates.iter().enumerate();
    let candidates: Vec<Candidate> = groups
        .map(|(index, group)| candidate(question, group, &letter(index)))
        .collect();
    limit::vet(&question.limits, &candidates)?;
    let limits = question.limits.iter();
    let conditions = limits.flat_map(|limit| candidates.iter().map(|one| limit.evaluate(one)));
    let conditions = conditions.collect();
    Ok(Comparison {
        schema: COMPARISON_SCHEMA.to_owned(),
        tool: question.tool.clone(),
        margin: question.margin,
        baseline: side(&question.baseline),
        candidates,
        conditions,
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
    let sides = Sides::of(&question.baseline, group, letter);
    let earlier = EarlierRuns::of(&question.history, &sides);
    let mut runs = sides.a.iter().chain(&sides.b);
    let several = runs.any(|(_, run)| run.record.targets.len() > 1);
    let (mut rows, mut percentiles, mut unmatched) = (Vec::new(), Vec::new(), Vec::new());
    for key in sides.workloads() {
        let find = |name, run| Measured::find(name, run, key);
        let Some(pair) = Pair::of(&sides, &earlier, (key.1, &mut unmatched), find) else {
            if let Some(missing) = unmatched.last_mut() {
                missing.why = why_skipped(&sides, key.1, missing.only);
            }
            continue;
        };
        let prefix = if several {
            format!("{}:", key.0 + 1)
        } else {
            String::new()
        };
        let found = rows::of_workload(&prefix, &pair);
        let comparable = !found.is_empty() && pair.reasons.is_empty();
        percentiles.extend(rows::percentile_pairs(&pair, comparable));
        rows.extend(found);
    }
    rows.extend(survey::rows(&sides, &earlier, &mut unmatched));
    rows.extend(files::rows(&sides, &earlier, &mut unmatched));
    rows.extend(observed::rows(&sides, &mut unmatched));
    let metrics = verdicts(rows, question.margin);
    let (mut headline, mut all) = (Tally::default(), Tally::default());
    for metric in &metrics {
        all.count(metric.verdict);
        if metric.headline {
            headline.count(metric.verdict);
        }
    }
    Candidate {
        side: side(group),
        headline,
        all,
        summary: summary::sentence(letter, question.margin, headline, &metrics),
        differences: differences::differences(&question.baseline.runs, &group.runs),
        notes: summary::notes(&question.baseline, group, &sides, letter, &metrics),
        metrics,
        unmatched,
        percentiles,
    }
}

/// Why the side that lacks a workload skipped it, where a plan gives a reason.
fn why_skipped(sides: &Sides<'_>, workload: &str, only: Holder) -> Option<String> {
    let other = match only {
        Holder::A => &sides.b,
        Holder::B => &sides.a,
    };
    let mut skipped = other.iter().flat_map(|(_, run)| &run.record.plan.skipped);
    let skipped = skipped.find(|skipped| skipped.workload == workload)?;
    Some(skipped.why.clone())
}

/// A verdict for each row. Headline metrics are one family of comparisons, all others another: the
/// summary speaks for the first, and must not lose its power to details.
fn verdicts(mut rows: Vec<ComparedRow>, margin: f64) -> Vec<MetricComparison> {
    for is_headline in [true, false] {
        let family = rows.iter_mut();
        let family = family.filter(|row| row.metric.headline == is_headline);
        let family: Vec<&mut ComparedRow> = family.collect();
        let p_values: Vec<f64> = family.iter().filter_map(|row| row.metric.p_value).collect();
        let mut adjusted = ratio::holm(&p_values).into_iter();
        for row in family {
            let p_adjusted = row.metric.p_value.and_then(|_| adjusted.next());
            row.decide(p_adjusted, p_values.len(), margin);
        }
    }
    rows.into_iter().map(|row| row.metric).collect()
}

#[cfg(test)]
mod tests;
