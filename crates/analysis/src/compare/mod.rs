//! Compares runs metric by metric: a ratio with its interval and a verdict, or the
//! reason why they cannot be compared.
//! docs/compare.md explains the statistics.
//!
//! * `rows`: which metrics there are; `figures`, `survey`, `files`, `observed`: their figures and
//!   errors; `distribution`: latencies.
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
    Basis, COMPARISON_SCHEMA, Candidate, Comparison, Holder, MetricComparison, RunReference, Side,
    Tally, Unmatched, Verdict, letter,
};
use diskproof_model::record::Tool;
use earlier::EarlierRuns;
use ratio::Joined;
use rows::Row;
use sides::{Sides, only};

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

fn measured<'s>(
    runs: &'s [(String, &'s Run<'s>)],
    (target, workload): (usize, &str),
) -> Vec<Measured<'s>> {
    let find = |(name, run): &'s (String, &'s Run<'s>)| {
        let mut measurements = run.record.measurements.iter();
        let index = measurements.position(|m| m.target == target && m.workload.name == workload)?;
        Some(Measured { name, run, index })
    };
    runs.iter().filter_map(find).collect()
}

fn candidate(question: &Question<'_>, group: &RunGroup<'_>, letter: &str) -> Candidate {
    let sides = Sides::of(&question.baseline, group, letter);
    let earlier = EarlierRuns::of(&question.history, &sides);
    let mut runs = sides.a.iter().chain(&sides.b);
    let several = runs.any(|(_, run)| run.record.targets.len() > 1);
    let (mut rows, mut percentiles, mut unmatched) = (Vec::new(), Vec::new(), Vec::new());
    for key in sides.workloads() {
        let (a, b) = (measured(&sides.a, key), measured(&sides.b, key));
        if let Some(only) = only(&a, &b) {
            let other = if only == Holder::A {
                &sides.b
            } else {
                &sides.a
            };
            // Why the other side skipped the workload, where a plan gives a reason.
            let mut skipped = other.iter().flat_map(|(_, run)| &run.record.plan.skipped);
            let skipped = skipped.find(|skipped| skipped.workload == key.1);
            unmatched.push(Unmatched {
                subject: key.1.to_owned(),
                only,
                why: skipped.map(|skipped| skipped.why.clone()),
            });
            continue;
        }
        let prefix = if several {
            format!("{}:", key.0 + 1)
        } else {
            String::new()
        };
        let found = rows::of_workload(&prefix, &a, &b, &earlier);
        let comparable = found.first().is_some_and(|row| row.reasons.is_empty());
        percentiles.extend(rows::percentile_pairs(&a, &b, comparable));
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

/// A verdict for each row. Headline metrics are one family of comparisons, all others another: the
/// summary speaks for the first, and must not lose its power to details.
fn verdicts(rows: Vec<Row>, margin: f64) -> Vec<MetricComparison> {
    let p_value = |row: &Row| row.joined.as_ref().map(Joined::p_value);
    let p_values: Vec<Option<f64>> = rows.iter().map(p_value).collect();
    let mut adjusted = vec![None; rows.len()];
    let mut sizes = [0; 2];
    for (family, size) in [true, false].into_iter().zip(&mut sizes) {
        let members: Vec<usize> = (0..rows.len())
            .filter(|i| rows[*i].name.headline == family && p_values[*i].is_some())
            .collect();
        let values: Vec<f64> = members.iter().filter_map(|i| p_values[*i]).collect();
        *size = members.len();
        for (index, p) in members.into_iter().zip(ratio::holm(&values)) {
            adjusted[index] = Some(p);
        }
    }
    let judged = rows.into_iter().zip(p_values.into_iter().zip(adjusted));
    judged
        .map(|(row, (p, adjusted))| metric(row, p, adjusted, margin, sizes))
        .collect()
}

fn metric(
    row: Row,
    p_value: Option<f64>,
    p_adjusted: Option<f64>,
    margin: f64,
    sizes: [usize; 2],
) -> MetricComparison {
    let family = sizes[usize::from(!row.name.headline)];
    let joined = row.joined.as_ref();
    let judged = joined
        .zip(p_adjusted)
        .map(|(joined, p)| ratio::judge(joined, p, margin, row.better, family));
    let (verdict, times) = match (judged, row.reasons.is_empty()) {
        (_, false) => (Verdict::NotComparable, None),
        _ if row.is_load => (Verdict::Observed, None),
        (Some(judged), true) => judged,
        (None, true) => (Verdict::Undecided, None),
    };
    let variation = joined.and_then(Joined::variation);
    let of_joined = joined.map_or(Basis::WithinRuns, Joined::basis);
    let basis = row.basis.filter(|_| variation.is_none());
    let basis = basis.unwrap_or(of_joined);
    let needed = match verdict {
        Verdict::FasterOnce | Verdict::SlowerOnce => Some(ratio::RUNS_NEEDED),
        _ => times.map(|times| row.needed(times, basis)),
    };
    MetricComparison {
        metric: row.name.metric,
        subject: row.name.subject,
        target: row.name.target,
        op: row.name.op,
        figure: row.name.figure,
        headline: row.name.headline,
        better: row.better,
        a: row.a.estimate,
        b: row.b.estimate,
        ratio: joined.map(Joined::ratio),
        p_value,
        p_adjusted,
        basis,
        variation,
        verdict,
        needed,
        reasons: row.reasons,
    }
}

#[cfg(test)]
mod tests;
