//! Adds the rates of hosts that measured at the same instants. Slots are compared after both ends
//! are shortened by the possible error of the clocks. Rates come from the cells within the common
//! time, latencies from whole slots.

mod launches;
mod members;
mod run_in_slots;
mod storage;
mod summary;

use crate::compare::percentile_points;
use crate::estimate::{mean, student, variance};
use crate::fleet::launches::launches;
use crate::fleet::unmeasured::host_name;
use diskproof_model::comparison::Reason;
use diskproof_model::fleet::FleetLatencies;
use diskproof_model::fleet_sum::{
    FleetSum, LeftOut, StartSpread, SumMember, SumStorage, UndecidedSum, WorkloadSum,
};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::op::{OpKind, PerOp};
use diskproof_model::record::{Estimate, Record};
use launches::earlier_launch;
use members::members;
use run_in_slots::{MeasuredSlot, Member, Rates, RunInSlots, SlottedOp, Time};
use std::collections::{BTreeMap, BTreeSet};
use storage::{sharing_of_storage, storages_of_run};
use summary::sum_sentence;

/// The runs of a fleet that measured in common slots.
#[derive(Debug, Default)]
pub(super) struct TogetherRuns {
    runs: Vec<RunInSlots>,
    /// The runs that measured, but not in common slots: the name of each with its host.
    without_slots: BTreeSet<(String, String)>,
}

impl TogetherRuns {
    /// Keeps what a record measured in common slots; of a run without such slots only its names.
    pub(super) fn add(&mut self, record: &Record) {
        if let Some(together) = record.together()
            && let Ok(started) = record.started.parse::<jiff::Timestamp>()
        {
            let storages = storages_of_run(record);
            self.runs
                .push(RunInSlots::new(record, together, started, storages));
        } else if !record.measurements.is_empty() {
            self.without_slots
                .insert((host_name(record), record.host.name.clone()));
        }
    }

    /// The sum; `None` where fewer than two runs measured in common slots. `asked` overrides what
    /// the storages of the runs suggest.
    pub(super) fn sum(&self, asked: Option<SumStorage>) -> Option<FleetSum> {
        if self.runs.len() < 2 {
            return None;
        }
        let mut launches = launches(&self.runs);
        let runs = launches.pop()?;
        let plan = usual_plan(&runs);
        let mut left_out = Vec::new();
        let mut candidates = Vec::new();
        for run in runs.iter().copied() {
            match run.objection(plan) {
                Some(reason) => left_out.push(LeftOut {
                    name: run.name.clone(),
                    reason,
                }),
                None => candidates.push(run),
            }
        }
        left_out.extend(self.hosts_without_slots());
        let members = members(&candidates, &mut left_out);
        let slots = runs.iter().map(|run| run.together.slots).max();
        let storage = asked.unwrap_or_else(|| sharing_of_storage(&members));
        let mut sum = FleetSum {
            summary: String::new(),
            members: members.iter().map(member_record).collect(),
            left_out,
            slots: slots.unwrap_or(0),
            storage,
            workloads: Vec::new(),
            undecided: Vec::new(),
            earlier_launches: launches.iter().map(|runs| earlier_launch(runs)).collect(),
            starts: None,
        };
        if members.len() > 1 {
            sum.undecided = undecided_sums(&members);
            sum.workloads = workload_sums(&members);
            sum.workloads.retain(|workload| {
                let is_named = |undecided: &UndecidedSum| undecided.workload == workload.workload;
                !sum.undecided.iter().any(is_named)
            });
            sum.starts = start_spread(&members);
        }
        let ranks = members.iter().filter_map(|member| member.run.ranks).max();
        let known = sum.members.len() + sum.left_out.len();
        sum.summary = sum_sentence(&sum, known.max(ranks.unwrap_or(0) as usize));
        Some(sum)
    }

    /// The hosts that measured only outside of common slots. A host of which another run is in the
    /// sum is not left out.
    fn hosts_without_slots(&self) -> Vec<LeftOut> {
        let mut left_out = Vec::new();
        for (name, host) in &self.without_slots {
            if !self.runs.iter().any(|run| run.host == *host) {
                left_out.push(LeftOut {
                    name: name.clone(),
                    reason: Reason {
                        code: "no-slots".to_owned(),
                        why: "it measured without --together".to_owned(),
                    },
                });
            }
        }
        left_out
    }
}

/// The hash of the plan of most runs; of equally frequent ones that of the first run. There must be
/// a run.
fn usual_plan(runs: &[&RunInSlots]) -> u64 {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for run in runs {
        *counts.entry(run.plan).or_default() += 1;
    }
    let mut usual = runs[0].plan;
    for run in runs {
        if counts[&run.plan] > counts[&usual] {
            usual = run.plan;
        }
    }
    usual
}

/// The workloads of which a member measured something else than its disk: each once, with the first
/// such member.
fn undecided_sums(members: &[Member<'_>]) -> Vec<UndecidedSum> {
    let mut undecided: Vec<UndecidedSum> = Vec::new();
    for member in members {
        for row in &member.run.rows {
            let is_known = undecided.iter().any(|other| other.workload == row.workload);
            if let Some(reason) = &row.objection
                && !is_known
            {
                undecided.push(UndecidedSum {
                    workload: row.workload.clone(),
                    name: member.run.name.clone(),
                    reason: reason.clone(),
                });
            }
        }
    }
    undecided
}

/// A member as the document has it.
fn member_record(member: &Member<'_>) -> SumMember {
    let numbers = member.run.whole_slots();
    SumMember {
        name: member.run.name.clone(),
        run_id: member.run.run_id.clone(),
        bound_ns: member.clock_offset.bound_ns,
        clock: member.clock_offset.basis,
        skipped: (0..member.run.together.slots)
            .filter(|number| !numbers.contains(number))
            .collect(),
        skipped_targets: member.run.targets_lacking(),
        accounted: member.run.accounted,
    }
}

/// The slots that all members measured on all of their targets, each with the time in which all of
/// them surely did.
fn common_slots(members: &[Member<'_>]) -> BTreeMap<u32, Time> {
    let mut common = BTreeMap::new();
    let Some(first) = members.first() else {
        return common;
    };
    let mut numbers = first.run.whole_slots();
    for member in members {
        let slots_of_member = member.run.whole_slots();
        numbers.retain(|number| slots_of_member.contains(number));
    }
    for number in numbers {
        let mut time: Option<Time> = None;
        for member in members {
            for row in &member.run.rows {
                for slot in row.slots.iter().filter(|slot| slot.number == number) {
                    let time_of_row = member.run.sure_time(&member.clock_offset, slot);
                    time = Some(match time {
                        Some(common_time) => common_time.within(time_of_row),
                        None => time_of_row,
                    });
                }
            }
        }
        if let Some(time) = time
            && time.length_ns() > 0
        {
            common.insert(number, time);
        }
    }
    common
}

/// The sums of all workloads, in the order in which the first member ran them.
fn workload_sums(members: &[Member<'_>]) -> Vec<WorkloadSum> {
    let common = common_slots(members);
    let mut names: Vec<&str> = Vec::new();
    for row in &members[0].run.rows {
        if !names.contains(&row.workload.as_str()) {
            names.push(&row.workload);
        }
    }
    let mut sums = Vec::new();
    for name in names {
        let mut kinds: PerOp<()> = PerOp::new();
        for member in members {
            for row in member.run.rows.iter().filter(|row| row.workload == name) {
                kinds.extend(row.ops.keys().map(|kind| (*kind, ())));
            }
        }
        for (kind, ()) in OpKind::headline(&kinds) {
            sums.extend(workload_sum(members, &common, name, kind));
        }
    }
    sums
}

/// The sum of one kind of operation of a workload over all members; `None` where no common slot has
/// a whole cell of it.
fn workload_sum(
    members: &[Member<'_>],
    common: &BTreeMap<u32, Time>,
    name: &str,
    kind: OpKind,
) -> Option<WorkloadSum> {
    let (mut iops, mut throughput, mut overlaps) = (Vec::new(), Vec::new(), Vec::new());
    for (number, time) in common {
        if let Some(sum) = slot_sum(members, *number, *time, name, kind) {
            iops.push(sum.rates.iops);
            throughput.push(sum.rates.bytes_per_second);
            overlaps.push(time.length_ns() as f64 / sum.longest_ns as f64);
        }
    }
    if iops.is_empty() {
        return None;
    }
    Some(WorkloadSum {
        workload: name.to_owned(),
        op: kind,
        slots: iops.len(),
        overlap: mean(&overlaps).min(1.0),
        iops: mean_of_slots(&iops, "1/s"),
        throughput: mean_of_slots(&throughput, "B/s"),
        latencies: merged_latencies(members, name, kind),
    })
}

/// The sum of one slot.
struct SlotSum {
    rates: Rates,
    /// The longest time that a member measured the slot; above 0.
    longest_ns: u64,
}

/// The sum of the rates of all members in one slot; `None` where no member measured the workload in
/// it, and where one measured no whole cell.
fn slot_sum(
    members: &[Member<'_>],
    number: u32,
    time: Time,
    name: &str,
    kind: OpKind,
) -> Option<SlotSum> {
    let mut sum = SlotSum {
        rates: Rates::default(),
        longest_ns: 0,
    };
    for member in members {
        for row in member.run.rows.iter().filter(|row| row.workload == name) {
            let Some(slot) = row.slots.iter().find(|slot| slot.number == number) else {
                continue;
            };
            sum.longest_ns = sum.longest_ns.max(slot.wall_ns);
            // A run without such an operation has made none.
            if let Some(op) = row.ops.get(&kind) {
                let rates = rates_of(member, slot, op, time)?;
                sum.rates.iops += rates.iops;
                sum.rates.bytes_per_second += rates.bytes_per_second;
            }
        }
    }
    if sum.longest_ns > 0 { Some(sum) } else { None }
}

/// The rates of a member in `time`, which is on the clock of the first member; `None` where no
/// whole cell lies in it.
fn rates_of(member: &Member<'_>, slot: &MeasuredSlot, op: &SlottedOp, time: Time) -> Option<Rates> {
    let start_ns = member
        .run
        .shared_time_ns(&member.clock_offset, slot.start_ns);
    let from_ns = u64::try_from((time.from_ns - start_ns).max(0)).ok()?;
    let until_ns = u64::try_from((time.until_ns - start_ns).max(0)).ok()?;
    op.rates(
        slot.cells_from_ns.saturating_add(from_ns),
        slot.cells_from_ns
            .saturating_add(until_ns.min(slot.wall_ns)),
    )
}

/// The mean over the slots. Its interval takes the slots as independent (Student's t).
fn mean_of_slots(values: &[f64], unit: &str) -> Estimate {
    let count = values.len();
    let half_width = if count < 2 {
        None
    } else {
        let error = (variance(values) / count as f64).sqrt();
        Some(student::multiple_95((count - 1) as f64) * error)
    };
    Estimate::new(count as u64, mean(values), half_width, unit)
}

fn merged_latencies(members: &[Member<'_>], name: &str, kind: OpKind) -> Option<FleetLatencies> {
    let merged = merged_histogram(members, name, kind);
    if merged.count() == 0 {
        return None;
    }
    Some(FleetLatencies {
        op: kind,
        count: merged.count(),
        percentiles: percentile_points(&merged),
    })
}

fn merged_histogram(members: &[Member<'_>], name: &str, kind: OpKind) -> LatencyHistogram {
    let mut merged = LatencyHistogram::new();
    for member in members {
        for row in member.run.rows.iter().filter(|row| row.workload == name) {
            if let Some(op) = row.ops.get(&kind) {
                merged.add_part(&op.latencies.part());
            }
        }
    }
    merged
}

/// The time between the first and the last member's start of a common slot; `None` without common
/// slots.
fn start_spread(members: &[Member<'_>]) -> Option<StartSpread> {
    let mut spreads = Vec::new();
    for number in common_slots(members).into_keys() {
        let mut starts = Vec::new();
        for member in members {
            if let Some(slot) = member.run.slot(number) {
                starts.push(
                    member
                        .run
                        .shared_time_ns(&member.clock_offset, slot.began_ns),
                );
            }
        }
        if let (Some(first), Some(last)) = (starts.iter().min(), starts.iter().max()) {
            spreads.push(u64::try_from(last - first).unwrap_or(u64::MAX));
        }
    }
    spreads.sort_unstable();
    Some(StartSpread {
        median_ns: *spreads.get(spreads.len() / 2)?,
        longest_ns: *spreads.last()?,
    })
}

#[cfg(test)]
mod tests;
