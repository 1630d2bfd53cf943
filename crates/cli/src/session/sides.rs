//! Makes a record for each side of a comparison, as of a run of its own, from what one run measured
//! of all sides: at the end, and for the journal.

use diskproof_analysis::campaign::{SideDisks, moved_by_side};
use diskproof_analysis::judge::{RunFacts, judge};
use diskproof_model::campaign::{CampaignDecision, CampaignPart, DroppedSlice, MovedBeside};
use diskproof_model::comparison::letter;
use diskproof_model::data::RunData;
use diskproof_model::health::DiskHealth;
use diskproof_model::measurement::Measurement;
use diskproof_model::plan::Plan;
use diskproof_model::record::{FailedCall, Record, Stalled, TargetSilence, TaskResult};
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

/// The target of a side that a command sets up.
#[derive(Debug, Clone)]
pub(crate) struct SideTarget {
    pub identity: TargetIdentity,
    /// The health of its disks, where these are others than those of the target at the start.
    pub health: Vec<DiskHealth>,
}

impl SideTarget {
    /// Fails where a later command led the path to other storage: the figures of the side would be
    /// those of two disks.
    pub(super) fn check_same(&self, identity: &TargetIdentity) -> Result<(), String> {
        if self.identity.lies_on_same_storage(identity) {
            return Ok(());
        }
        Err(format!(
            "led {} to other storage than before; a side has to be the same disk each time",
            identity.path
        ))
    }
}

/// What the run of all sides has given so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SideResults<'a> {
    /// The facts of the run.
    pub facts: &'a RunFacts,
    pub data: &'a RunData,
    /// By the number of a side that is a setting of the target, the target after the first command.
    pub switched: &'a BTreeMap<usize, SideTarget>,
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
            let switched = results.switched.get(&index);
            let identity = match switched {
                Some(side) => &side.identity,
                None => &results.facts.targets[target],
            };
            let mut facts = side_facts(target, identity, &self.plan, results.facts);
            if let Some(side) = switched {
                facts.health = health_of_side(side, results.facts);
            }
            facts.run_id = run_id_of_side(&results.facts.run_id, index);
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
    let mut beside = Vec::new();
    for other in (0..sides).filter(|other| *other != side) {
        if are_on_one_disk(side, other, results) {
            beside.extend(moved_by_side(results.data, other, plan));
        }
    }
    beside.sort_by_key(|moved| moved.start_ns);
    beside
}

/// True if two sides are on one disk. A command may have led the path to another one.
fn are_on_one_disk(side: usize, other: usize, results: SideResults<'_>) -> bool {
    match (results.switched.get(&side), results.switched.get(&other)) {
        (Some(side), Some(other)) => side.identity.shares_disk(&other.identity),
        (_, None) | (None, _) => {
            let facts = results.facts;
            SideDisks::planned(&facts.plan, &facts.targets).are_on_one_disk(side, other)
        }
    }
}

/// The facts of one side as of a run of its own, from those of the whole run. `target` is the index
/// of its target there.
fn side_facts(target: usize, identity: &TargetIdentity, plan: &Plan, whole: &RunFacts) -> RunFacts {
    let mut facts = RunFacts {
        plan: plan.clone(),
        targets: vec![identity.clone()],
        ..whole.clone()
    };
    facts.plan.targets = vec![identity.path.clone()];
    facts.health = health_of(identity, &whole.health);
    facts.stalled = stalled_on(target, whole);
    facts.failed = failed_on(target, whole);
    facts.silences = silences_of(target, &whole.silences);
    facts.first_answers = silences_of(target, &whole.first_answers);
    facts
}

/// The health of the disks below a target, of that of several.
fn health_of(identity: &TargetIdentity, all: &[DiskHealth]) -> Vec<DiskHealth> {
    let mut health = all.to_vec();
    health.retain(|health| identity.disks().any(|disk| disk.name == health.disk));
    health
}

/// The health of the disks of a side that a command sets up. A disk that it brings may have the
/// name of the one before it.
fn health_of_side(side: &SideTarget, whole: &RunFacts) -> Vec<DiskHealth> {
    let is_of_start = match whole.targets.first() {
        Some(start) => start.lies_on_same_storage(&side.identity),
        None => false,
    };
    let mut health = if is_of_start {
        health_of(&side.identity, &whole.health)
    } else {
        Vec::new()
    };
    // A disk that a command attached to them may have the name of another.
    health.retain(|known| side.health.iter().all(|brought| brought.disk != known.disk));
    health.extend(side.health.clone());
    health
}

/// The silence between requests, where it may be that of this target of the whole run. That of
/// another one says nothing of it.
fn stalled_on(target: usize, whole: &RunFacts) -> Option<Stalled> {
    let stalled = whole.stalled.as_ref()?;
    match stalled.target {
        Some(silent) if silent != target => None,
        Some(_) => Some(Stalled {
            target: Some(0),
            ..stalled.clone()
        }),
        None => Some(stalled.clone()),
    }
}

/// The call that failed, where it may be one on this target of the whole run.
fn failed_on(target: usize, whole: &RunFacts) -> Option<FailedCall> {
    let failed = whole.failed.as_ref()?;
    match failed.target {
        Some(other) if other != target => None,
        Some(_) => Some(FailedCall {
            target: Some(0),
            ..failed.clone()
        }),
        None => Some(failed.clone()),
    }
}

/// The silences of this target of the whole run.
fn silences_of(target: usize, whole: &[TargetSilence]) -> Vec<TargetSilence> {
    let mut own = Vec::new();
    for silence in whole {
        if silence.target == target {
            own.push(TargetSilence {
                target: 0,
                ..*silence
            });
        }
    }
    own
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
    use crate::session::run_facts;
    use diskproof_model::plan::{Decide, LivePlan, Sides, Task, Workload, Workloads};
    use diskproof_model::series::TimeSeries;
    use diskproof_model::target::TargetKind;
    use std::path::Path;
    use std::time::SystemTime;

    /// A block device of this name and number, with this image behind it.
    fn device(name: &str, number: &str, image: &str) -> TargetIdentity {
        let mut identity = diskproof_device::probe(Path::new("/")).unwrap();
        identity.path = format!("/dev/{name}");
        identity.kind = TargetKind::BlockDevice;
        number.clone_into(&mut identity.device);
        let layer = serde_json::json!({
            "name": name, "kind": "disk", "device": number, "below": [],
            "size_bytes": 1u64 << 30, "read_only": false, "backing_file": image,
        });
        identity.layers = vec![serde_json::from_value(layer).unwrap()];
        identity
    }

    fn health(disk: &str) -> DiskHealth {
        serde_json::from_value(serde_json::json!({
            "disk": disk, "source": null, "passed": null,
        }))
        .unwrap()
    }

    /// The facts of a comparison of settings on the first of these targets, or of the targets.
    fn facts(sides: Sides, targets: Vec<TargetIdentity>) -> RunFacts {
        let live = LivePlan {
            sides,
            margin: 0.02,
            cells_ns: 1,
        };
        let plan = Plan {
            targets: targets.iter().map(|target| target.path.clone()).collect(),
            tasks: vec![Task::Workloads(Workloads {
                decide: Decide::Compare(live),
                ..Workloads::as_planned(vec![Workload::named("d1")])
            })],
            ..Plan::default()
        };
        run_facts(SystemTime::UNIX_EPOCH, plan, targets)
    }

    fn settings() -> Sides {
        Sides::Settings {
            prepare: vec!["a".to_owned(), "b".to_owned()],
            cleanup: None,
            reopen: true,
        }
    }

    fn records(
        facts: &RunFacts,
        data: &RunData,
        switched: &BTreeMap<usize, SideTarget>,
    ) -> Vec<Record> {
        let compared = ComparedSides {
            plan: facts.plan.clone(),
            count: 2,
            prepare: match &facts.plan.workload_task().unwrap().decide {
                Decide::Compare(LivePlan {
                    sides: Sides::Settings { prepare, .. },
                    ..
                }) => prepare.clone(),
                _ => Vec::new(),
            },
        };
        compared.records(SideResults {
            facts,
            data,
            switched,
            decisions: &[],
        })
    }

    #[test]
    fn hang_of_one_target_is_not_copied_to_the_others() {
        let targets = vec![device("sda", "8:0", "a"), device("sdb", "8:16", "b")];
        let paths = targets.iter().map(|target| target.path.clone()).collect();
        let mut facts = facts(Sides::Targets { paths }, targets);
        let stalled = |target| Stalled {
            around: "layout".to_owned(),
            lasted_ns: 1,
            late: false,
            has_answered: false,
            target,
        };
        let hung = |facts: &RunFacts| {
            let mut hung = Vec::new();
            for record in records(facts, &RunData::default(), &BTreeMap::new()) {
                hung.push(record.stalled.map(|stalled| stalled.target));
            }
            hung
        };
        facts.stalled = Some(stalled(Some(1)));
        assert_eq!(hung(&facts), [None, Some(Some(0))]);
        // One that may be of any target is of each.
        facts.stalled = Some(stalled(None));
        assert_eq!(hung(&facts), [Some(None), Some(None)]);
    }

    /// A command may lead the path to another disk: that one has its own health, and the load of
    /// the first one was not beside it.
    #[test]
    fn side_on_another_disk_has_its_own_health_and_no_load_beside_it() {
        let start = device("sda", "8:0", "a");
        let mut facts = facts(settings(), vec![start.clone()]);
        facts.health = vec![health("sda")];
        let data = RunData {
            dropped: vec![DroppedSlice {
                target: 0,
                workload: "d1".to_owned(),
                start_ns: 0,
                warmup_ns: 0,
                moved: TimeSeries::new(1),
                pause: None,
            }],
            ..RunData::default()
        };
        let side = |identity: &TargetIdentity, disk: &str| SideTarget {
            identity: identity.clone(),
            health: vec![health(disk)],
        };
        let other = device("sdb", "8:16", "b");
        let same_name = device("sda", "8:0", "b");
        for (second, disks) in [
            (&start, ["sda", "sda"]),
            (&other, ["sda", "sdb"]),
            (&same_name, ["sda", "other report"]),
        ] {
            let report = if disks[1] == "sda" { "sda" } else { disks[1] };
            let switched = BTreeMap::from([(0, side(&start, "sda")), (1, side(second, report))]);
            let records = records(&facts, &data, &switched);
            let read: Vec<&str> = records
                .iter()
                .map(|record| record.health[0].disk.as_str())
                .collect();
            assert_eq!(read, disks);
        }
        let switched = BTreeMap::from([(0, side(&start, "sda")), (1, side(&other, "sdb"))]);
        let results = SideResults {
            facts: &facts,
            data: &data,
            switched: &switched,
            decisions: &[],
        };
        assert!(!are_on_one_disk(0, 1, results));
        let switched = BTreeMap::from([(0, side(&start, "sda")), (1, side(&start, "sda"))]);
        let results = SideResults {
            switched: &switched,
            ..results
        };
        assert!(are_on_one_disk(0, 1, results));
    }

    #[test]
    fn side_that_is_led_to_other_storage_is_noticed() {
        let first = device("sda", "8:0", "a");
        let known = SideTarget {
            identity: first.clone(),
            health: Vec::new(),
        };
        assert!(known.check_same(&first).is_ok());
        assert!(known.check_same(&device("sda", "8:0", "b")).is_err());
    }

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
