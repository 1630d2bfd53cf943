//! The metrics of many small files: the rate of every step that both sides did.

use super::comparable_files::StepOfRun;
use super::earlier::EarlierRuns;
use super::figures::{Told, of_estimates};
use super::reasons::reasons;
use super::rows::{MetricFigures, Name, Row};
use super::sides::{Run, Sides, only};
use diskproof_model::comparison::{Figure, Unmatched};
use diskproof_model::files::FileStep;
use diskproof_model::record::Estimate;

/// A row for each step; those that only one side did go to `unmatched`.
pub(super) fn rows(
    sides: &Sides<'_>,
    earlier: &EarlierRuns<'_>,
    unmatched: &mut Vec<Unmatched>,
) -> Vec<Row> {
    let mut rows = Vec::new();
    for step in steps(sides) {
        let (a, b) = (side_with(&sides.a, step), side_with(&sides.b, step));
        if let Some(only) = only(&a, &b) {
            unmatched.push(Unmatched {
                subject: step.name(),
                only,
                why: None,
            });
        }
        rows.extend(row(step, &a, &b, earlier));
    }
    rows
}

/// Every step of either side, the baseline's first.
fn steps(sides: &Sides<'_>) -> Vec<FileStep> {
    let runs = sides.a.iter().chain(&sides.b);
    let files = runs.filter_map(|(_, run)| run.record.files.as_ref());
    let mut all = Vec::new();
    for step in files.flat_map(|files| &files.steps).map(|of| of.step) {
        if !all.contains(&step) {
            all.push(step);
        }
    }
    all
}

fn side_with<'s>(side: &'s [(String, &'s Run<'s>)], step: FileStep) -> Vec<StepOfRun<'s>> {
    side.iter()
        .filter_map(|(name, run)| StepOfRun::find(name, run, step))
        .collect()
}

fn row(
    step: FileStep,
    a: &[StepOfRun<'_>],
    b: &[StepOfRun<'_>],
    earlier: &EarlierRuns<'_>,
) -> Option<Row> {
    let all = [a, b].concat();
    let find = |run| StepOfRun::find("an earlier run", run, step);
    let groups = earlier.repeats_of(*all.first()?, find);
    let told = MetricFigures {
        a: rate(a)?,
        b: rate(b)?,
        earlier: groups
            .iter()
            .filter_map(|group| Some(rate(group)?.sample))
            .collect(),
        difference: None,
    };
    let subject = step.name();
    let name = Name {
        metric: format!("{subject}.{}", Figure::Iops.as_str()),
        subject,
        target: 0,
        op: None,
        figure: Figure::Iops,
        headline: true,
    };
    let wall_ns = all.iter().map(|run| run.step().wall_ns).max().unwrap_or(0);
    Some(Row::new(name, told, wall_ns, &reasons(&all)))
}

/// Files per second.
fn rate(runs: &[StepOfRun<'_>]) -> Option<Told> {
    let rates = runs.iter().map(|run| run.step().figures.iops.clone());
    of_estimates(&rates.collect::<Vec<Estimate>>())
}
