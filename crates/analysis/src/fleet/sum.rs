//! The sum of hosts that measured at the same instants. Slots are compared after both ends are
//! shortened by the possible error of the clocks. Rates come from the cells within the common
//! time, latencies from whole slots.

mod members;
mod storage;
mod summary;

use super::clock::{ClockOffset, RunClock};
use crate::compare::percentile_points;
use crate::estimate::{mean, student, variance};
use crate::steady::whole;
use diskproof_model::comparison::Reason;
use diskproof_model::fleet::FleetLatencies;
use diskproof_model::fleet_sum::{
    FleetSum, LeftOut, StartSpread, SumMember, SumStorage, WorkloadSum,
};
use diskproof_model::histogram::{LatencyHistogram, StoredLatencies};
use diskproof_model::measurement::Measurement;
use diskproof_model::op::{OpKind, PerOp};
use diskproof_model::record::{Estimate, Record};
use diskproof_model::together::TogetherRecord;
use diskproof_model::units::format_duration;
use members::members;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use storage::{sharing_of_storage, storages_of_run};
use summary::sum_sentence;

/// The runs of a fleet that measured in common slots.
#[derive(Debug, Default)]
pub(super) struct TogetherRuns {
    runs: Vec<RunInSlots>,
}

/// A run, with the offset of its clock from that of the first member.
struct Member<'r> {
    run: &'r RunInSlots,
    place: ClockOffset,
}

impl TogetherRuns {
    /// Keeps what a record measured in common slots. A run without such slots is skipped.
    pub(super) fn add(&mut self, record: &Record) {
        if let Some(together) = record.together()
            && let Ok(started) = record.started.parse::<jiff::Timestamp>()
        {
            self.runs.push(RunInSlots::new(record, together, started));
        }
    }

    /// The sum; `None` where fewer than two runs measured in common slots. `asked` overrides what
    /// the storages of the runs suggest.
    pub(super) fn sum(&self, asked: Option<SumStorage>) -> Option<FleetSum> {
        if self.runs.len() < 2 {
            return None;
        }
        let plan = usual_plan(&self.runs);
        let mut left_out = Vec::new();
        let mut candidates = Vec::new();
        for run in &self.runs {
            match run.objection(plan) {
                Some(reason) => left_out.push(LeftOut {
                    name: run.name.clone(),
                    reason,
                }),
                None => candidates.push(run),
            }
        }
        let members = members(&candidates, &mut left_out);
        let slots = self.runs.iter().map(|run| run.together.slots).max();
        let storage = asked.unwrap_or_else(|| sharing_of_storage(&members));
        let mut sum = FleetSum {
            summary: String::new(),
            members: members.iter().map(member_record).collect(),
            left_out,
            slots: slots.unwrap_or(0),
            storage,
            workloads: Vec::new(),
            starts: None,
        };
        if members.len() > 1 {
            sum.workloads = workload_sums(&members);
            sum.starts = start_spread(&members);
        }
        let ranks = members.iter().filter_map(|member| member.run.ranks).max();
        let known = sum.members.len() + sum.left_out.len();
        sum.summary = sum_sentence(&sum, known.max(ranks.unwrap_or(0) as usize));
        Some(sum)
    }
}

/// A run that measured in common slots. Only cells and latencies of its rows are kept, so that a
/// fleet of many runs fits into memory.
#[derive(Debug)]
struct RunInSlots {
    name: String,
    run_id: String,
    /// A hash that is equal in runs of equal plans; see [`plan_hash`].
    plan: u64,
    clock: RunClock,
    together: TogetherRecord,
    ended_early: Option<String>,
    /// The number of ranks that the launcher started, where it said so.
    ranks: Option<u32>,
    storages: BTreeSet<String>,
    /// Paths of its targets.
    targets: Vec<String>,
    /// One for each workload on each of its targets.
    rows: Vec<SlottedRow>,
    /// The share of the disk's counters that the run accounts for; of several rows, the share that
    /// is farthest from 1.
    accounted: Option<f64>,
}

impl RunInSlots {
    fn new(record: &Record, together: &TogetherRecord, started: jiff::Timestamp) -> Self {
        let mut accounted: Option<f64> = None;
        for row in &record.measurements {
            if let Some(share) = row.data.device.accounted
                && accounted.is_none_or(|other| (share - 1.0).abs() > (other - 1.0).abs())
            {
                accounted = Some(share);
            }
        }
        Self {
            name: match record.host.rank {
                Some(rank) => format!("{} #{}", record.host.name, rank.rank),
                None => record.host.name.clone(),
            },
            run_id: record.run_id.clone(),
            plan: plan_hash(record),
            clock: RunClock {
                started_ns: started.as_nanosecond(),
                fences: together.fences.clone(),
                wall: record.clock.wall.clone(),
            },
            together: together.clone(),
            ended_early: record.ended_early.clone(),
            ranks: record.host.rank.and_then(|rank| rank.size),
            storages: storages_of_run(record),
            targets: record
                .targets
                .iter()
                .map(|target| target.path.clone())
                .collect(),
            rows: slotted_rows(record),
            accounted,
        }
    }

    /// The reason why the run cannot be in the sum, whatever its clock is.
    fn objection(&self, plan: u64) -> Option<Reason> {
        if self.plan != plan {
            return Some(reason(
                "other-plan",
                "it measured another plan than most of the others",
            ));
        }
        let slots = self.together.slots as usize;
        let measured = self.whole_slots().len();
        if measured * 2 > slots {
            return None;
        }
        let lacking = self.targets_lacking();
        if self.begun_slots().len() * 2 > slots && !lacking.is_empty() {
            return Some(reason(
                "few-slots",
                &format!(
                    "only {measured} of {slots} slots were measured on all of its targets: {} \
                     lacks others",
                    lacking.join(", ")
                ),
            ));
        }
        Some(self.why_late(measured))
    }

    /// The reason why the run measured only `measured` slots: it ended early, came late, or filled
    /// its scratch file late.
    fn why_late(&self, measured: usize) -> Reason {
        let slots = self.together.slots;
        if let Some(why) = &self.ended_early {
            return reason(
                "ended-early",
                &format!("its run ended early ({why}): it measured {measured} of {slots} slots"),
            );
        }
        let late_ns = self.together.first_slot_ns.saturating_neg();
        if late_ns > 0 {
            let late = format_duration(late_ns.unsigned_abs());
            return reason(
                "late",
                &format!(
                    "late by {late}: it measured {measured} of {slots} slots. Does the launcher \
                     start fewer at once (fan-out)? pdsh, clush and ansible: -f with the number \
                     of hosts"
                ),
            );
        }
        let first_slot_ns = self.together.first_slot_ns.unsigned_abs();
        if let Some(ready_ns) = self.together.ready_ns
            && ready_ns > first_slot_ns
        {
            let late = format_duration(ready_ns - first_slot_ns);
            return reason(
                "filled-late",
                &format!(
                    "its scratch file was full {late} after the first slot: it measured \
                     {measured} of {slots} slots. Start later (--start-at), or use a smaller \
                     --size"
                ),
            );
        }
        reason(
            "few-slots",
            &format!("it measured {measured} of {slots} slots"),
        )
    }

    /// The numbers of the slots that it measured whole: all workloads of the slot on all of their
    /// targets. A sum without one of its targets would be too low.
    fn whole_slots(&self) -> BTreeSet<u32> {
        let mut numbers = BTreeSet::new();
        for (number, group) in self.begun_slots() {
            if self.rows_lacking(number, group).next().is_none() {
                numbers.insert(number);
            }
        }
        numbers
    }

    /// The numbers of the slots that it measured on any of its targets, with their groups.
    fn begun_slots(&self) -> BTreeMap<u32, usize> {
        let mut begun = BTreeMap::new();
        for row in &self.rows {
            for slot in &row.slots {
                begun.insert(slot.number, row.group);
            }
        }
        begun
    }

    /// The rows of a group that did not measure a slot of it.
    fn rows_lacking(&self, number: u32, group: usize) -> impl Iterator<Item = &SlottedRow> {
        self.rows.iter().filter(move |row| {
            row.group == group && row.slots.iter().all(|slot| slot.number != number)
        })
    }

    /// Paths of the targets that did not measure a slot which another one did.
    fn targets_lacking(&self) -> Vec<String> {
        let mut targets = BTreeSet::new();
        for (number, group) in self.begun_slots() {
            targets.extend(self.rows_lacking(number, group).map(|row| row.target));
        }
        targets
            .iter()
            .filter_map(|target| self.targets.get(*target).cloned())
            .collect()
    }

    fn slot(&self, number: u32) -> Option<&MeasuredSlot> {
        let mut slots = self.rows.iter().flat_map(|row| &row.slots);
        slots.find(|slot| slot.number == number)
    }

    /// Converts a time after the start of the run to the clock of the first member.
    fn shared_time_ns(&self, place: &ClockOffset, ns: u64) -> i128 {
        self.clock.unix_ns(ns) + place.offset_ns
    }

    /// The measured time of a slot on the clock of the first member, shortened at both ends by the
    /// possible error of the clocks.
    fn sure_time(&self, place: &ClockOffset, slot: &MeasuredSlot) -> Time {
        let end_ns = slot.start_ns.saturating_add(slot.wall_ns);
        let bound_ns = i128::from(place.bound_at(end_ns));
        Time {
            from_ns: self.shared_time_ns(place, slot.start_ns) + bound_ns,
            until_ns: self.shared_time_ns(place, end_ns) - bound_ns,
        }
    }
}

/// A row for each workload on each of its targets, of the groups that were measured at all.
fn slotted_rows(record: &Record) -> Vec<SlottedRow> {
    let mut rows = Vec::new();
    for (group, planned) in record.plan.groups().enumerate() {
        for workload in planned.workloads {
            for target in 0..record.targets.len() {
                if !workload.runs_on(target) {
                    continue;
                }
                let mut row = SlottedRow {
                    workload: workload.name.clone(),
                    target,
                    group,
                    slots: Vec::new(),
                    ops: BTreeMap::new(),
                };
                let measured = record.measurements.iter().find(|measured| {
                    measured.data.target == target && measured.data.workload.name == workload.name
                });
                if let Some(measured) = measured {
                    row.take(&whole(&measured.data));
                }
                rows.push(row);
            }
        }
    }
    let measured: BTreeSet<usize> = rows
        .iter()
        .filter(|row| !row.slots.is_empty())
        .map(|row| row.group)
        .collect();
    rows.retain(|row| measured.contains(&row.group));
    rows
}

/// What one workload measured on one target; empty where that is nothing.
#[derive(Debug)]
struct SlottedRow {
    workload: String,
    /// The place of its target among those of the run.
    target: usize,
    /// The place of its workload among the groups of the plan: a group has its slots in common.
    group: usize,
    slots: Vec<MeasuredSlot>,
    ops: BTreeMap<OpKind, SlottedOp>,
}

/// A slot as a run measured it. Times are nanoseconds after the start of the run.
#[derive(Debug, Clone, Copy)]
struct MeasuredSlot {
    number: u32,
    began_ns: u64,
    start_ns: u64,
    wall_ns: u64,
    /// The measured time of earlier slots: cells hold measured time only, so the slot's cells begin
    /// here.
    cells_from_ns: u64,
}

impl SlottedRow {
    /// Takes what was measured.
    fn take(&mut self, measured: &Measurement) {
        let mut slots = Vec::new();
        let mut cells_from_ns = 0;
        for slice in &measured.slices {
            if let Some(slot) = slice.slot {
                slots.push(MeasuredSlot {
                    number: slot.number,
                    began_ns: slot.began_ns,
                    start_ns: slice.start_ns,
                    wall_ns: slice.wall_ns,
                    cells_from_ns,
                });
            }
            cells_from_ns += slice.wall_ns;
        }
        let mut ops = BTreeMap::new();
        for (kind, op) in &measured.ops {
            let seen = op.latency_intended.as_ref().unwrap_or(&op.latency);
            let cells = op.series.cells.iter();
            let op = SlottedOp {
                interval_ns: op.series.interval_ns.max(1),
                cells: cells
                    .map(|cell| CellCount {
                        ops: cell.ops,
                        bytes: cell.bytes,
                    })
                    .collect(),
                latencies: StoredLatencies::new(&seen.to_part()),
            };
            ops.insert(*kind, op);
        }
        self.slots = slots;
        self.ops = ops;
    }
}

#[derive(Debug)]
struct SlottedOp {
    interval_ns: u64,
    /// One for each interval of measured time.
    cells: Vec<CellCount>,
    latencies: StoredLatencies,
}

#[derive(Debug, Clone, Copy, Default)]
struct CellCount {
    ops: u64,
    bytes: u64,
}

/// Rates of one kind of operation in a part of a slot.
#[derive(Debug, Clone, Copy, Default)]
struct Rates {
    iops: f64,
    bytes_per_second: f64,
}

impl SlottedOp {
    /// The rates in whole cells within a part of the measured time; `None` where no cell fits.
    fn rates(&self, from_ns: u64, until_ns: u64) -> Option<Rates> {
        let first = from_ns.div_ceil(self.interval_ns);
        let end = until_ns / self.interval_ns;
        if end <= first {
            return None;
        }
        let mut sum = CellCount::default();
        for cell in self.cells.iter().take(end as usize).skip(first as usize) {
            sum.ops = sum.ops.saturating_add(cell.ops);
            sum.bytes = sum.bytes.saturating_add(cell.bytes);
        }
        let seconds = ((end - first) * self.interval_ns) as f64 / 1e9;
        Some(Rates {
            iops: sum.ops as f64 / seconds,
            bytes_per_second: sum.bytes as f64 / seconds,
        })
    }
}

/// A hash of the parts of a plan that equal plans share. Targets and paths may differ.
fn plan_hash(record: &Record) -> u64 {
    let mut hasher = DefaultHasher::new();
    let plan = &record.plan;
    let parts = (&plan.seed, plan.scratch_bytes(), plan.workload_task());
    let text = serde_json::to_string(&parts).unwrap_or_default();
    (plan.method, text).hash(&mut hasher);
    hasher.finish()
}

/// The plan of most runs; of equally frequent ones that of the first run.
fn usual_plan(runs: &[RunInSlots]) -> u64 {
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

fn member_record(member: &Member<'_>) -> SumMember {
    let numbers = member.run.whole_slots();
    SumMember {
        name: member.run.name.clone(),
        run_id: member.run.run_id.clone(),
        bound_ns: member.place.bound_ns,
        clock: member.place.basis,
        skipped: (0..member.run.together.slots)
            .filter(|number| !numbers.contains(number))
            .collect(),
        skipped_targets: member.run.targets_lacking(),
        accounted: member.run.accounted,
    }
}

/// A stretch of time on the clock of the first member.
#[derive(Debug, Clone, Copy)]
struct Time {
    from_ns: i128,
    until_ns: i128,
}

impl Time {
    fn length_ns(self) -> i128 {
        (self.until_ns - self.from_ns).max(0)
    }

    fn within(self, other: Self) -> Self {
        Self {
            from_ns: self.from_ns.max(other.from_ns),
            until_ns: self.until_ns.min(other.until_ns),
        }
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
        let own = member.run.whole_slots();
        numbers.retain(|number| own.contains(number));
    }
    for number in numbers {
        let mut time: Option<Time> = None;
        for member in members {
            for row in &member.run.rows {
                for slot in row.slots.iter().filter(|slot| slot.number == number) {
                    let own = member.run.sure_time(&member.place, slot);
                    time = Some(time.map_or(own, |other: Time| other.within(own)));
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

fn workload_sum(
    members: &[Member<'_>],
    common: &BTreeMap<u32, Time>,
    name: &str,
    kind: OpKind,
) -> Option<WorkloadSum> {
    let (mut iops, mut throughput, mut overlaps) = (Vec::new(), Vec::new(), Vec::new());
    for (number, time) in common {
        let mut total = Rates::default();
        let (mut longest_ns, mut is_measured) = (0, true);
        for member in members {
            for row in member.run.rows.iter().filter(|row| row.workload == name) {
                let Some(slot) = row.slots.iter().find(|slot| slot.number == *number) else {
                    continue;
                };
                longest_ns = longest_ns.max(slot.wall_ns);
                // A run without such an operation has made none.
                let Some(op) = row.ops.get(&kind) else {
                    continue;
                };
                match rates_of(member, slot, op, *time) {
                    Some(rates) => {
                        total.iops += rates.iops;
                        total.bytes_per_second += rates.bytes_per_second;
                    }
                    None => is_measured = false,
                }
            }
        }
        if longest_ns > 0 && is_measured {
            iops.push(total.iops);
            throughput.push(total.bytes_per_second);
            overlaps.push(time.length_ns() as f64 / longest_ns as f64);
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
        iops: over_slots(&iops, "1/s"),
        throughput: over_slots(&throughput, "B/s"),
        latencies: merged_latencies(members, name, kind),
    })
}

/// The rates of a member in `time`, which is on the clock of the first member.
fn rates_of(member: &Member<'_>, slot: &MeasuredSlot, op: &SlottedOp, time: Time) -> Option<Rates> {
    let start_ns = member.run.shared_time_ns(&member.place, slot.start_ns);
    let from_ns = u64::try_from((time.from_ns - start_ns).max(0)).ok()?;
    let until_ns = u64::try_from((time.until_ns - start_ns).max(0)).ok()?;
    op.rates(
        slot.cells_from_ns.saturating_add(from_ns),
        slot.cells_from_ns
            .saturating_add(until_ns.min(slot.wall_ns)),
    )
}

/// The mean over the slots. Its interval takes the slots as independent (Student's t).
fn over_slots(values: &[f64], unit: &str) -> Estimate {
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

/// The time between the first and the last member's start of a common slot.
fn start_spread(members: &[Member<'_>]) -> Option<StartSpread> {
    let mut spreads = Vec::new();
    for number in common_slots(members).into_keys() {
        let mut starts = Vec::new();
        for member in members {
            if let Some(slot) = member.run.slot(number) {
                starts.push(member.run.shared_time_ns(&member.place, slot.began_ns));
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

fn reason(code: &str, why: &str) -> Reason {
    Reason {
        code: code.to_owned(),
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests;
