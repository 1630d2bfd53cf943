//! Earlier runs of the same target and plan: they are compared with nothing, but show how much a
//! figure varies from run to run.

use super::comparable::Measured;
use super::differences::facts;
use super::reasons::{self, Compared};
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
        let runs = sides.a.iter().chain(&sides.b);
        let compared: Vec<&Record> = runs.map(|(_, run)| run.record).collect();
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

    /// In each group, what `find` finds in its runs and repeats `first`. One run shows no
    /// variation.
    pub(super) fn repeats_of<'s, T: Compared>(
        &'s self,
        first: T,
        find: impl Fn(&'s Run<'s>) -> Option<T>,
    ) -> Vec<Vec<T>> {
        let of_group = |runs: &'s Vec<&'a Run<'a>>| {
            let found = runs.iter().filter_map(|run| find(run));
            found.filter(|other| reasons::repeats(first, *other))
        };
        let groups = self.groups.iter().map(|runs| of_group(runs).collect());
        groups.filter(|group: &Vec<T>| group.len() > 1).collect()
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

/// Whether a run did the same on the same target: machine, paths, disks, verb and workloads.
pub(super) fn repeats(run: &Record, other: &Record) -> bool {
    run.plan.origin.verb == other.plan.origin.verb
        && run.host.name == other.host.name
        && run.plan.targets == other.plan.targets
        && run.plan.workloads == other.plan.workloads
        && run.plan.survey == other.plan.survey
        && run.plan.files == other.plan.files
}
