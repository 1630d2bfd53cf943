//! Earlier runs of the same target and plan: they are compared with nothing, but show how much a
//! figure varies from run to run.

use super::comparable::{self, Measured};
use super::comparable_files::{self, StepOfRun};
use super::comparable_survey::{self, Part, Surveyed};
use super::differences::facts;
use super::sides::{Run, RunGroup, Sides};
use diskproof_model::record::Record;
use std::collections::BTreeMap;

/// Groups of runs that differ in nothing that is known: one label, one state of disk and machine.
pub(super) struct EarlierRuns<'a> {
    groups: Vec<Vec<&'a Run<'a>>>,
}

impl<'a> EarlierRuns<'a> {
    /// Those of `history` (one group for each label) that began before the newest run of the
    /// comparison, and repeat the plan of one of its runs on the same target.
    pub(super) fn of(history: &'a [RunGroup<'a>], sides: &Sides<'_>) -> Self {
        let compared: Vec<&Record> = sides
            .a
            .iter()
            .chain(&sides.b)
            .map(|(_, run)| run.record)
            .collect();
        let newest = compared.iter().map(|record| &record.started).max();
        let is_earlier = |record: &Record| {
            newest.is_some_and(|newest| record.started <= *newest)
                && compared.iter().all(|run| run.run_id != record.run_id)
                && compared.iter().any(|run| repeats(run, record))
        };
        let mut groups = Vec::new();
        for group in history {
            let mut alike: BTreeMap<Vec<String>, Vec<&Run<'_>>> = BTreeMap::new();
            for run in group.runs.iter().filter(|run| is_earlier(run.record)) {
                alike.entry(facts(run.record)).or_default().push(run);
            }
            groups.extend(alike.into_values());
        }
        groups.retain(|runs: &Vec<_>| runs.len() > 1);
        Self { groups }
    }

    /// The measurements of a workload in each group that compare with `first`.
    pub(super) fn measured(&self, first: Measured<'_>) -> Vec<Vec<Measured<'a>>> {
        let of_group = |runs: &Vec<&'a Run<'a>>| {
            runs.iter()
                .filter_map(|run| same_workload(first, run))
                .filter(|other| comparable::repeats(first, *other))
                .collect()
        };
        several(self.groups.iter().map(of_group))
    }

    /// The surveys of each group of which this part compares with `first`.
    pub(super) fn surveyed(&self, first: Surveyed<'_>, part: Part) -> Vec<Vec<Surveyed<'a>>> {
        let of_group = |runs: &Vec<&'a Run<'a>>| {
            let found = runs.iter().filter_map(|run| {
                Some(Surveyed {
                    name: "an earlier run",
                    run,
                    surface: run.record.surface.as_ref()?,
                })
            });
            found
                .filter(|other| comparable_survey::repeats(first, *other, part))
                .collect()
        };
        several(self.groups.iter().map(of_group))
    }

    /// The steps on files in each group that compare with `first`.
    pub(super) fn steps(&self, first: StepOfRun<'_>) -> Vec<Vec<StepOfRun<'a>>> {
        let step = first.step().step;
        let of_group = |runs: &Vec<&'a Run<'a>>| {
            runs.iter()
                .filter_map(|run| StepOfRun::find("an earlier run", run, step))
                .filter(|other| comparable_files::repeats(first, *other))
                .collect()
        };
        several(self.groups.iter().map(of_group))
    }
}

/// The workload of the same name on the same target in an earlier run.
pub(super) fn same_workload<'a>(of: Measured<'_>, run: &'a Run<'a>) -> Option<Measured<'a>> {
    let of = of.measurement();
    let mut measurements = run.record.measurements.iter();
    let index =
        measurements.position(|m| m.target == of.target && m.workload.name == of.workload.name)?;
    Some(Measured {
        name: "an earlier run",
        run,
        index,
    })
}

/// One run shows no variation.
fn several<T>(groups: impl Iterator<Item = Vec<T>>) -> Vec<Vec<T>> {
    groups.filter(|group| group.len() > 1).collect()
}

/// Whether a run did the same on the same target: machine, paths, disks, verb and workloads.
pub(super) fn repeats(run: &Record, other: &Record) -> bool {
    let verb = &run.plan.origin.verb;
    let of_other = &other.plan.origin.verb;
    verb == of_other
        && run.host.name == other.host.name
        && run.plan.targets == other.plan.targets
        && run.plan.workloads == other.plan.workloads
        && run.plan.survey == other.plan.survey
        && run.plan.files == other.plan.files
}
