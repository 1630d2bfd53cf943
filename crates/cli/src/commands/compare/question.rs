//! Groups runs into the sides of a comparison, and compares them. Saved runs, a live comparison and
//! a repeated run use it in the same way.

use crate::failure::Failure;
use crate::provenance::tool;
use diskproof_analysis::compare::{Limit, Question, Run, RunGroup, compare};
use diskproof_analysis::fleet::fleet_of_sides;
use diskproof_model::comparison::Comparison;
use diskproof_model::record::Record;

/// With five sides or more, the page says which of them is not like the others.
const SIDES_JUDGED_MIN: usize = 5;

/// A side of a comparison: runs under one label, each with its name.
pub(crate) fn run_group<'a>(
    label: &str,
    runs: impl IntoIterator<Item = (&'a str, &'a Record)>,
) -> RunGroup<'a> {
    RunGroup {
        label: label.to_owned(),
        runs: runs
            .into_iter()
            .map(|(name, record)| Run {
                name: name.to_owned(),
                record,
            })
            .collect(),
    }
}

/// Compares a baseline with candidates. `history` has earlier runs, which show how much runs vary.
/// Fails for a side without runs, and for a limit on a metric that no run has.
pub(crate) fn compare_groups<'a>(
    margin: f64,
    baseline: RunGroup<'a>,
    candidates: Vec<RunGroup<'a>>,
    history: Vec<RunGroup<'a>>,
    limits: &[Limit],
) -> Result<Comparison, Failure> {
    let question = Question {
        tool: tool(),
        margin,
        baseline,
        candidates,
        history,
        limits: limits.to_vec(),
    };
    let mut comparison = compare(&question).map_err(|error| Failure::Usage(error.to_string()))?;
    let mut sides = vec![question.baseline.clone()];
    sides.extend(question.candidates.iter().cloned());
    if sides.len() >= SIDES_JUDGED_MIN {
        comparison.fleet = Some(Box::new(fleet_of_sides(tool(), &sides)));
    }
    Ok(comparison)
}
