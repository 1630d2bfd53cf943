//! Refuses thresholds about figures that the plan does not measure, before the run begins.

use crate::failure::Failure;
use diskproof_analysis::expect::{Expected, Quantity, names_rate_of_inserts};
use diskproof_analysis::promised::{Promised, promised};
use diskproof_model::figure::{Part, names_of_part};
use diskproof_model::files::{FileStep, FilesPlan};
use diskproof_model::plan::{Decide, Plan};
use diskproof_model::postgres::PostgresLoad;
use diskproof_model::rate::RateCellKind;
use diskproof_model::surface::SeekPattern;

/// Refuses thresholds that the plan cannot answer: a misspelt workload would otherwise be noticed
/// only after the run.
pub(super) fn refuse_unanswerable(plan: &Plan, thresholds: &[Expected]) -> Result<(), Failure> {
    for expected in thresholds {
        if expected.quantity.is_measured() {
            let text = &expected.expression;
            check_answerable(plan, expected)
                .map_err(|why| Failure::Usage(format!("--expect '{text}': {why}")))?;
        }
    }
    for Promised { expected, .. } in promised(plan) {
        if expected.quantity.is_measured() {
            let text = &expected.expression;
            check_answerable(plan, &expected)
                .map_err(|why| Failure::Usage(format!("--spec, which means '{text}': {why}")))?;
        }
    }
    Ok(())
}

/// Checks whether the plan measures what a threshold is about.
fn check_answerable(plan: &Plan, expected: &Expected) -> Result<(), String> {
    if let Part::Curve | Part::Access(_) | Part::Burst = expected.part {
        return check_survey_answerable(plan, expected);
    }
    if let Some(files) = plan.files() {
        return check_files_answerable(files, expected);
    }
    if let Some(task) = plan.workload_task()
        && let Decide::Rate(_) = task.decide
    {
        return check_load_answerable(plan, expected);
    }
    if expected.part == Part::Load {
        return Err("this run searches no rate".to_owned());
    }
    let name = &expected.workload;
    if let Some(skipped) = plan
        .skipped
        .iter()
        .find(|skipped| skipped.workload == *name)
    {
        return Err(format!("this run skips {name}: {}", skipped.why));
    }
    let inserts = names_of_inserts(plan);
    if inserts.contains(name) {
        return check_inserts_answerable(expected);
    }
    let workloads = plan.workloads();
    let Some(workload) = workloads.iter().find(|workload| workload.name == *name) else {
        let mut names: Vec<String> = workloads
            .iter()
            .map(|workload| workload.name.clone())
            .collect();
        names.extend(inserts);
        names.extend(survey_figures(plan));
        return Err(format!(
            "there is no workload '{name}'; there are {}",
            names.join(", ")
        ));
    };
    match expected.op {
        Some(kind) if !workload.makes(kind) => Err(format!("{name} has no such operations")),
        _ => Ok(()),
    }
}

/// The names of the INSERTs that the plan measures.
fn names_of_inserts(plan: &Plan) -> Vec<String> {
    match plan.inserts() {
        Some(inserts) => inserts
            .server
            .loads
            .iter()
            .map(PostgresLoad::subject)
            .collect(),
        None => Vec::new(),
    }
}

/// Checks a threshold about INSERTs, of which a gate judges the rate.
fn check_inserts_answerable(expected: &Expected) -> Result<(), String> {
    match expected.quantity {
        Quantity::Figure(metric) if names_rate_of_inserts(metric, expected.op) => Ok(()),
        _ => Err(format!(
            "INSERTs have a rate only; write {}.iops",
            expected.workload
        )),
    }
}

/// The names of the figures of the parts of a survey that the plan measures.
fn survey_figures(plan: &Plan) -> Vec<String> {
    let mut names = Vec::new();
    if let Some(survey) = plan.survey() {
        if survey.curve.is_some() {
            names.extend(names_of_part(Part::Curve));
        }
        if survey.access.is_some() {
            names.extend(names_of_part(Part::Access(SeekPattern::Random)));
        }
        if survey.burst.is_some() {
            names.extend(names_of_part(Part::Burst));
        }
    }
    names
}

fn check_survey_answerable(plan: &Plan, expected: &Expected) -> Result<(), String> {
    let is_planned = plan.survey().is_some_and(|survey| match expected.part {
        Part::Curve => survey.curve.is_some(),
        Part::Access(_) => survey.access.is_some(),
        Part::Burst => survey.burst.is_some(),
        Part::Workload | Part::FileStep | Part::Load | Part::Observed | Part::Other => false,
    });
    if is_planned {
        Ok(())
    } else {
        Err(format!("this run measures no {}", expected.workload))
    }
}

/// Checks a threshold about a search for a rate, which has its answer, and the rows of the rates
/// that it held and exceeded.
fn check_load_answerable(plan: &Plan, expected: &Expected) -> Result<(), String> {
    let workloads = plan.workloads();
    if expected.part == Part::Load {
        if workloads.len() == 1 {
            return Ok(());
        }
        return Err("load.rate is that of one search, and this run has several".to_owned());
    }
    let mut names = Vec::new();
    if workloads.len() == 1 {
        names.push("load.rate".to_owned());
    }
    for workload in workloads {
        if workload.stop.time_ns.is_some() {
            names.push(workload.name.clone());
            continue;
        }
        names.push(RateCellKind::Hold.row_name(&workload.name));
        names.push(RateCellKind::Control.row_name(&workload.name));
    }
    if names.contains(&expected.workload) {
        return Ok(());
    }
    Err(format!(
        "there is no workload '{}'; there are {}",
        expected.workload,
        names.join(", ")
    ))
}

fn check_files_answerable(files: &FilesPlan, expected: &Expected) -> Result<(), String> {
    let name = &expected.workload;
    if files.step(name).is_none() {
        let names: Vec<String> = files.steps().map(FileStep::name).collect();
        return Err(format!(
            "there is no step '{name}'; there are {}",
            names.join(", ")
        ));
    }
    match expected.op {
        None => Ok(()),
        Some(_) => Err(format!("write {name}.METRIC without an operation")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::plan::{Inserts, Task, Workload, Workloads};
    use diskproof_model::postgres::PostgresPlan;

    /// Why a plan with one workload named `read` cannot answer a threshold; `None` where it can.
    fn refusal(expression: &str) -> Option<String> {
        let workloads = Workloads::as_planned(vec![Workload::named("read")]);
        refusal_of(Task::Workloads(workloads), expression)
    }

    /// The same of a plan with this task.
    fn refusal_of(task: Task, expression: &str) -> Option<String> {
        let plan = Plan {
            tasks: vec![task],
            ..Plan::default()
        };
        let expected: Expected = expression.parse().unwrap();
        let refused = refuse_unanswerable(&plan, &[expected]);
        refused.err().map(|failure| failure.to_string())
    }

    #[test]
    fn threshold_is_refused_unless_the_plan_measures_its_figure() {
        assert_eq!(refusal("read.iops>1000"), None);
        for expression in ["raed.iops>1000", "read.write.iops>1000", "load.rate>1000"] {
            assert!(refusal(expression).is_some(), "{expression}");
        }
    }

    /// `commit --postgres --only insert-fdatasync-c1` has no workload of its own.
    #[test]
    fn threshold_on_inserts_is_refused_unless_it_is_their_rate() {
        let inserts = || Inserts {
            server: PostgresPlan {
                programs: String::new(),
                version: "15.8".to_owned(),
                loads: vec![PostgresLoad {
                    name: "fdatasync-c1".to_owned(),
                    clients: 1,
                    synchronous_commit: true,
                    wal_sync_method: "fdatasync".to_owned(),
                    pgbench: false,
                }],
                rounds: 1,
                slice_ns: 1_000_000_000,
                trial: None,
            },
            between: Workloads::as_planned(Vec::new()),
        };
        let refusal = |expression: &str| refusal_of(Task::Inserts(inserts()), expression);
        assert_eq!(refusal("postgres-fdatasync-c1.iops>=1"), None);
        for expression in [
            "postgres-fdatasync-c1.p99<1ms",
            "postgres-fdatasync-c1.write.iops>1",
            "fdatasync-c1.iops>1",
        ] {
            assert!(refusal(expression).is_some(), "{expression}");
        }
        let why = refusal("postgres-fsync-c1.iops>1").unwrap();
        assert!(why.contains("postgres-fdatasync-c1"), "{why}");
    }
}
