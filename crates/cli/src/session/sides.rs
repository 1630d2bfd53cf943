//! Makes a record for each side of a comparison, as of a run of its own, from what one run measured
//! of all sides: at the end, and for the journal.

use diskproof_analysis::campaign::{SideDisks, moved_by_side};
use diskproof_analysis::judge::{RunFacts, judge};
use diskproof_model::campaign::{CampaignDecision, CampaignPart, DroppedSlice, MovedBeside};
use diskproof_model::comparison::letter;
use diskproof_model::data::RunData;
use diskproof_model::measurement::Measurement;
use diskproof_model::plan::Plan;
use diskproof_model::record::{Record, TaskResult};
use diskproof_model::target::TargetIdentity;
use std::collections::BTreeMap;

/// Sides whose records are made of one run.
#[derive(Debug, Clone)]
pub(crate) struct ComparedSides {
    /// The plan of one side.
    pub plan: Plan,
    /// The number of sides.
    pub count: usize,
    /// The command that makes each setting, as records show it; empty where targets are compared.
    pub prepare: Vec<String>,
}

/// What the run of all sides has given so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SideResults<'a> {
    /// The facts of the run.
    pub facts: &'a RunFacts,
    pub data: &'a RunData,
    /// By the number of a side that is a setting of the target, the target after the first command.
    pub identities: &'a BTreeMap<usize, TargetIdentity>,
    /// The decisions of the campaign, once it is over.
    pub decisions: &'a [CampaignDecision],
}

impl ComparedSides {
    /// The ids of the records of the sides of this run. They are the same for the journal and at
    /// the end, so that no side is saved twice.
    pub(crate) fn run_ids(&self, run_id: &str) -> Vec<String> {
        let mut ids = Vec::new();
        for side in 0..self.count {
            ids.push(run_id_of_side(run_id, side));
        }
        ids
    }

    /// One record for each side.
    pub(crate) fn records(&self, results: SideResults<'_>) -> Vec<Record> {
        let mut records = Vec::new();
        for index in 0..self.count {
            // The settings of a comparison have one target.
            let target = if self.prepare.is_empty() { index } else { 0 };
            let identity = match results.identities.get(&index) {
                Some(switched) => switched,
                None => &results.facts.targets[target],
            };
            let facts = RunFacts {
                run_id: run_id_of_side(&results.facts.run_id, index),
                ..side_facts(identity, &self.plan, results.facts)
            };
            let beside = moved_beside(index, self.count, results);
            let data = RunData {
                beside: beside.clone(),
                ..side_data(index, results.data)
            };
            let mut record = judge(facts, &data, &[]);
            record.results.push(TaskResult::Compared(CampaignPart {
                id: results.facts.run_id.clone(),
                side: side_name(index),
                prepare: self.prepare.get(index).cloned(),
                decisions: results.decisions.to_vec(),
                beside,
            }));
            records.push(record);
        }
        records
    }
}

/// The id of a side's record, which differs from the run's in its first digits: pages name a run by
/// them. The history and the journal store it, so a change would save a side twice.
fn run_id_of_side(run_id: &str, side: usize) -> String {
    match u128::from_str_radix(run_id, 16) {
        Ok(number) => format!("{:032x}", number ^ ((side as u128 + 1) << 96)),
        Err(_) => format!("{run_id}-{side}"),
    }
}

/// The letters by which pages name the side of this index: A is the baseline.
pub(crate) fn side_name(index: usize) -> String {
    match index.checked_sub(1) {
        Some(candidate) => letter(candidate),
        None => "A".to_owned(),
    }
}

/// The bytes that other sides moved on the disk of this one, in the order of their time.
fn moved_beside(side: usize, sides: usize, results: SideResults<'_>) -> Vec<MovedBeside> {
    let plan = &results.facts.plan;
    let disks = SideDisks::planned(plan, &results.facts.targets);
    let mut beside = Vec::new();
    for other in (0..sides).filter(|other| *other != side) {
        if disks.are_on_one_disk(side, other) {
            beside.extend(moved_by_side(results.data, other, plan));
        }
    }
    beside.sort_by_key(|moved| moved.start_ns);
    beside
}

/// The facts of one side as of a run of its own, from those of the whole run.
fn side_facts(identity: &TargetIdentity, plan: &Plan, whole: &RunFacts) -> RunFacts {
    let mut facts = RunFacts {
        plan: plan.clone(),
        targets: vec![identity.clone()],
        ..whole.clone()
    };
    facts.plan.targets = vec![identity.path.clone()];
    facts
        .health
        .retain(|health| identity.disks().any(|disk| disk.name == health.disk));
    facts
}

/// The data of one side as of a run with a single target, from those of the whole run.
fn side_data(side: usize, whole: &RunData) -> RunData {
    let mut measurements = Vec::new();
    for measurement in &whole.measurements {
        if measurement.target == side {
            measurements.push(Measurement {
                target: 0,
                ..measurement.clone()
            });
        }
    }
    let mut dropped = Vec::new();
    for slice in &whole.dropped {
        if slice.target == side {
            dropped.push(DroppedSlice {
                target: 0,
                ..slice.clone()
            });
        }
    }
    RunData {
        dropped,
        ..RunData::from_measurements(measurements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_have_ids_that_differ_where_pages_name_them() {
        let run_id = "1f3a9c2e00000000000000000000000a";
        let mut starts = vec![run_id[..8].to_owned()];
        for side in 0..5 {
            let id = run_id_of_side(run_id, side);
            assert_eq!((id.len(), &id[8..]), (32, &run_id[8..]));
            starts.push(id[..8].to_owned());
        }
        starts.sort();
        starts.dedup();
        assert_eq!(starts.len(), 6);
    }
}
