//! Compares runs metric by metric: a ratio with its interval and a verdict, or the
//! reason why they cannot be compared.
//! docs/compare.md explains the statistics.
//!
//! * `rows`: which metrics there are; `figures`, `survey`, `files`, `observed`: their figures and
//!   errors; `distribution`: latencies.
//! * `ratio`: intervals, p-values, verdicts. `comparable`: what must agree; `differences`: what
//!   need not. `limit`: conditions of the user.
//! * `blocks`: what the slices of a live comparison show.
//! * `spread`: how figures vary from run to run; `earlier`: runs of the history that show it;
//!   `run_to_run`: the same for a single run.
//!
//! Knows records only, not where they come from or how a comparison is printed.

mod blocks;
mod comparable;
mod comparable_files;
mod comparable_survey;
mod differences;
mod distribution;
mod earlier;
mod error;
mod figures;
mod files;
mod limit;
mod observed;
mod ratio;
mod reasons;
mod rows;
mod run_to_run;
mod sides;
mod spread;
mod summary;
mod survey;

pub use error::CompareError;
pub use limit::{Limit, LimitError};
pub(crate) use run_to_run::{run_to_run, widen as widen_to_runs};
pub use sides::{Run, RunGroup};

use comparable::Measured;
use comparable_survey::Surveyed;
use diskproof_model::comparison::{
    Basis, COMPARISON_SCHEMA, Candidate, Comparison, Holder, MetricComparison, PercentilePair,
    RunReference, Side, Tally, Unmatched, Verdict, letter,
};
use diskproof_model::record::Tool;
use earlier::EarlierRuns;
use rows::Row;
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
        return Err(CompareError::Margin(format!(
            "{} %",
            question.margin * 100.0
        )));
    }
    let groups = [&question.baseline].into_iter().chain(&question.candidates);
    if let Some(empty) = groups.into_iter().find(|group| group.runs.is_empty()) {
        return Err(CompareError::Empty(empty.label.clone()));
    }
    let candidates: Vec<Candidate> = question
        .candidates
        .iter()
        .enumerate()
        .map(|(index, group)| candidate(question, group, &letter(index)))
        .collect();
    limit::vet(&question.limits, &candidates)?;
    let conditions = question
        .limits
        .iter()
        .flat_map(|limit| candidates.iter().map(|candidate| limit.evaluate(candidate)))
        .collect();
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
    let verb = &record.plan.origin.verb;
    RunReference {
        name: run.name.clone(),
        run_id: record.run_id.clone(),
        started: record.started.clone(),
        verb: verb.clone(),
        host: record.host.name.clone(),
        targets: record
            .targets
            .iter()
            .map(|target| target.path.clone())
            .collect(),
        disks: differences::disk_names(record),
        note: record.note.clone(),
        partial: record.partial,
    }
}

fn measured<'s>(
    runs: &'s [(String, &'s Run<'s>)],
    (target, workload): (usize, &str),
) -> Vec<Measured<'s>> {
    let find = |run: &Run<'_>| {
        run.record
            .measurements
            .iter()
            .position(|m| m.target == target && m.workload.name == workload)
    };
    runs.iter()
        .filter_map(|(name, run)| {
            Some(Measured {
                name,
                run,
                index: find(run)?,
            })
        })
        .collect()
}

fn surveyed<'s>(runs: &'s [(String, &'s Run<'s>)]) -> Vec<Surveyed<'s>> {
    runs.iter()
        .filter_map(|(name, run)| {
            Some(Surveyed {
                name,
                run,
                surface: run.record.surface.as_ref()?,
            })
        })
        .collect()
}

fn candidate(question: &Question<'_>, group: &RunGroup<'_>, letter: &str) -> Candidate {
    let sides = Sides::of(&question.baseline, group, letter);
    let earlier = EarlierRuns::of(&question.history, &sides);
    let several = sides
        .a
        .iter()
        .chain(&sides.b)
        .any(|(_, run)| run.record.targets.len() > 1);
    let (mut rows, mut percentiles, mut unmatched, mut notes) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for key in sides.workloads() {
        let (a, b) = (measured(&sides.a, key), measured(&sides.b, key));
        if a.is_empty() || b.is_empty() {
            let (only, other) = if b.is_empty() {
                (Holder::A, &sides.b)
            } else {
                (Holder::B, &sides.a)
            };
            unmatched.push(Unmatched {
                subject: key.1.to_owned(),
                only,
                why: skipped(other, key.1),
            });
            continue;
        }
        let prefix = if several {
            format!("{}:", key.0 + 1)
        } else {
            String::new()
        };
        let found = rows::of_workload(&prefix, &a, &b, &earlier);
        percentiles.extend(rows::percentile_pairs(
            &a,
            &b,
            found.first().is_some_and(|row| row.reasons.is_empty()),
        ));
        rows.extend(found);
    }
    let surveys = (surveyed(&sides.a), surveyed(&sides.b));
    let found = survey::rows(&surveys.0, &surveys.1, &earlier, &mut unmatched);
    rows.extend(found);
    rows.extend(files::rows(&sides, &earlier, &mut unmatched));
    rows.extend(observed::rows(&sides, &mut unmatched));
    let metrics = verdicts(rows, question.margin);
    notes.extend(summary::notes(
        &question.baseline,
        group,
        &sides,
        letter,
        &metrics,
    ));
    conclude(
        group,
        letter,
        question,
        Parts {
            metrics,
            percentiles,
            unmatched,
            notes,
        },
    )
}

struct Parts {
    metrics: Vec<MetricComparison>,
    percentiles: Vec<PercentilePair>,
    unmatched: Vec<Unmatched>,
    notes: Vec<String>,
}

fn conclude(
    group: &RunGroup<'_>,
    letter: &str,
    question: &Question<'_>,
    parts: Parts,
) -> Candidate {
    let (mut headline, mut all) = (Tally::default(), Tally::default());
    for metric in &parts.metrics {
        all.count(metric.verdict);
        if metric.headline {
            headline.count(metric.verdict);
        }
    }
    Candidate {
        side: side(group),
        headline,
        all,
        summary: summary::sentence(letter, question.margin, headline, &parts.metrics),
        differences: differences::differences(&question.baseline.runs, &group.runs),
        notes: parts.notes,
        metrics: parts.metrics,
        unmatched: parts.unmatched,
        percentiles: parts.percentiles,
    }
}

/// Why the runs of a side skipped a workload, where a plan gives a reason.
fn skipped(runs: &[(String, &Run<'_>)], workload: &str) -> Option<String> {
    runs.iter()
        .flat_map(|(_, run)| &run.record.plan.skipped)
        .find(|skipped| skipped.workload == workload)
        .map(|skipped| skipped.why.clone())
}

/// A verdict for each row. Headline metrics are one family of comparisons, all others another: the
/// summary speaks for the first, and must not lose its power to details.
fn verdicts(rows: Vec<Row>, margin: f64) -> Vec<MetricComparison> {
    let p_values: Vec<Option<f64>> = rows
        .iter()
        .map(|row| row.joined().map(ratio::Joined::p_value))
        .collect();
    let mut adjusted = vec![None; rows.len()];
    let mut sizes = [0; 2];
    for (family, size) in [true, false].into_iter().zip(&mut sizes) {
        let members: Vec<usize> = (0..rows.len())
            .filter(|i| rows[*i].name.headline == family && p_values[*i].is_some())
            .collect();
        let values: Vec<f64> = members.iter().filter_map(|i| p_values[*i]).collect();
        *size = members.len();
        members
            .into_iter()
            .zip(ratio::holm(&values))
            .for_each(|(index, p)| adjusted[index] = Some(p));
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
    let judged = row
        .joined()
        .zip(p_adjusted)
        .map(|(joined, p)| ratio::judge(joined, p, margin, row.better, family));
    let (verdict, times) = match (&judged, row.reasons.is_empty()) {
        (_, false) => (Verdict::NotComparable, None),
        _ if row.is_load => (Verdict::Observed, None),
        (Some(judged), true) => (judged.verdict, judged.times),
        (None, true) => (Verdict::Undecided, None),
    };
    let ratio = row.joined().map(ratio::Joined::ratio);
    let variation = row.joined().and_then(ratio::Joined::variation);
    let of_joined = row.joined().map_or(Basis::WithinRuns, ratio::Joined::basis);
    let basis = row
        .basis
        .filter(|_| variation.is_none())
        .unwrap_or(of_joined);
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
        ratio,
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
