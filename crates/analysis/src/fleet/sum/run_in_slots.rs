//! Keeps what a run measured in common slots, and converts the time of each slot to the clock of
//! the first member.

use crate::fleet::clock::{ClockOffset, RunClock};
use crate::fleet::unmeasured::host_name;
use crate::steady::with_warmup;
use crate::words::uncapitalised;
use diskproof_model::comparison::Reason;
use diskproof_model::histogram::StoredLatencies;
use diskproof_model::measurement::Measurement;
use diskproof_model::op::OpKind;
use diskproof_model::record::Record;
use diskproof_model::together::TogetherRecord;
use diskproof_model::units::format_duration;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// A run that measured in common slots. Only cells and latencies of its rows are kept, so that a
/// fleet of many runs fits into memory.
#[derive(Debug)]
pub(super) struct RunInSlots {
    pub(super) name: String,
    /// Name of its machine, without a rank.
    pub(super) host: String,
    pub(super) run_id: String,
    /// A hash that is equal in runs of equal plans; see [`plan_hash`].
    pub(super) plan: u64,
    pub(super) clock: RunClock,
    pub(super) together: TogetherRecord,
    pub(super) ended_early: Option<String>,
    /// The longest silence of its targets that it did not see the end of, in nanoseconds.
    pub(super) silence_ns: Option<u64>,
    /// The number of ranks that the launcher started, where it said so.
    pub(super) ranks: Option<u32>,
    pub(super) storages: BTreeSet<String>,
    /// Paths of its targets.
    pub(super) targets: Vec<String>,
    /// One for each workload on each of its targets.
    pub(super) rows: Vec<SlottedRow>,
    /// The share of the disk's counters that the run accounts for; of several rows, the share that
    /// is farthest from 1.
    pub(super) accounted: Option<f64>,
}

impl RunInSlots {
    pub(super) fn new(
        record: &Record,
        together: &TogetherRecord,
        started: jiff::Timestamp,
        storages: BTreeSet<String>,
    ) -> Self {
        let mut accounted: Option<f64> = None;
        for row in &record.measurements {
            if let Some(share) = row.data.device.accounted
                && accounted.is_none_or(|other| (share - 1.0).abs() > (other - 1.0).abs())
            {
                accounted = Some(share);
            }
        }
        Self {
            name: host_name(record),
            host: record.host.name.clone(),
            run_id: record.run_id.clone(),
            plan: plan_hash(record),
            clock: RunClock {
                started_ns: started.as_nanosecond(),
                fences: together.fences.clone(),
                wall: record.clock.wall.clone(),
            },
            together: together.clone(),
            ended_early: record.ended_early.clone(),
            silence_ns: record
                .measurements
                .iter()
                .filter_map(|row| row.data.hang.map(|hang| hang.lasted_ns))
                .max(),
            ranks: record.host.rank.and_then(|rank| rank.size),
            storages,
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
    pub(super) fn objection(&self, plan: u64) -> Option<Reason> {
        if self.plan != plan {
            return Some(reason(
                "other-plan",
                "it measured another plan than most of the others",
            ));
        }
        // Its figures are those before it, or it would be in fewer slots than the others.
        if let Some(silence_ns) = self.silence_ns {
            let silence = format_duration(silence_ns);
            return Some(reason(
                "silent",
                &format!("a disk of it had not answered for {silence} when its run ended"),
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
    pub(super) fn why_late(&self, measured: usize) -> Reason {
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
    pub(super) fn whole_slots(&self) -> BTreeSet<u32> {
        let mut numbers = BTreeSet::new();
        for (number, group) in self.begun_slots() {
            if self.rows_lacking(number, group).next().is_none() {
                numbers.insert(number);
            }
        }
        numbers
    }

    /// The numbers of the slots that it measured on any of its targets, with their groups.
    pub(super) fn begun_slots(&self) -> BTreeMap<u32, usize> {
        let mut begun = BTreeMap::new();
        for row in &self.rows {
            for slot in &row.slots {
                begun.insert(slot.number, row.group);
            }
        }
        begun
    }

    /// The rows of a group that did not measure a slot of it.
    pub(super) fn rows_lacking(
        &self,
        number: u32,
        group: usize,
    ) -> impl Iterator<Item = &SlottedRow> {
        self.rows.iter().filter(move |row| {
            row.group == group && row.slots.iter().all(|slot| slot.number != number)
        })
    }

    /// Paths of the targets that did not measure a slot which another one did.
    pub(super) fn targets_lacking(&self) -> Vec<String> {
        let mut targets = BTreeSet::new();
        for (number, group) in self.begun_slots() {
            targets.extend(self.rows_lacking(number, group).map(|row| row.target));
        }
        targets
            .iter()
            .filter_map(|target| self.targets.get(*target).cloned())
            .collect()
    }

    /// The slot with this number, of any of its rows; `None` where it did not measure it.
    pub(super) fn slot(&self, number: u32) -> Option<&MeasuredSlot> {
        let mut slots = self.rows.iter().flat_map(|row| &row.slots);
        slots.find(|slot| slot.number == number)
    }

    /// Converts a time after the start of the run to the clock of the first member.
    pub(super) fn shared_time_ns(&self, offset: &ClockOffset, ns: u64) -> i128 {
        self.clock.unix_ns(ns) + offset.offset_ns
    }

    /// The measured time of a slot on the clock of the first member, shortened at both ends by the
    /// possible error of the clocks.
    pub(super) fn sure_time(&self, offset: &ClockOffset, slot: &MeasuredSlot) -> Time {
        let end_ns = slot.start_ns.saturating_add(slot.wall_ns);
        let bound_ns = i128::from(offset.bound_at(end_ns));
        Time {
            from_ns: self.shared_time_ns(offset, slot.start_ns) + bound_ns,
            until_ns: self.shared_time_ns(offset, end_ns) - bound_ns,
        }
    }
}

/// A row for each workload on each of its targets, of the groups that were measured at all.
pub(super) fn slotted_rows(record: &Record) -> Vec<SlottedRow> {
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
                    objection: None,
                    slots: Vec::new(),
                    ops: BTreeMap::new(),
                };
                let index = record.measurements.iter().position(|measured| {
                    measured.data.target == target && measured.data.workload.name == workload.name
                });
                if let Some(index) = index {
                    row.fill(&with_warmup(&record.measurements[index].data));
                    row.objection = objection_to_row(record, index);
                }
                rows.push(row);
            }
        }
    }
    let measured_groups: BTreeSet<usize> = rows
        .iter()
        .filter(|row| !row.slots.is_empty())
        .map(|row| row.group)
        .collect();
    rows.retain(|row| measured_groups.contains(&row.group));
    rows
}

/// The reason why a row says nothing of its disk; `None` where it does.
fn objection_to_row(record: &Record, index: usize) -> Option<Reason> {
    let finding = record.foreign_figures(index)?;
    Some(reason(&finding.code, &uncapitalised(finding.heading())))
}

/// What one workload measured on one target; empty where that is nothing.
#[derive(Debug)]
pub(super) struct SlottedRow {
    pub(super) workload: String,
    /// The index of its target among those of the run.
    pub(super) target: usize,
    /// The index of its group in the plan: the workloads of a group have their slots in common.
    pub(super) group: usize,
    /// Why its figures are not those of the disk; `None` where they are.
    pub(super) objection: Option<Reason>,
    pub(super) slots: Vec<MeasuredSlot>,
    pub(super) ops: BTreeMap<OpKind, SlottedOp>,
}

/// A slot as a run measured it. Times are nanoseconds after the start of the run.
#[derive(Debug, Clone, Copy)]
pub(super) struct MeasuredSlot {
    pub(super) number: u32,
    /// When the run began the slot, its preparation included.
    pub(super) began_ns: u64,
    /// When it began to measure.
    pub(super) start_ns: u64,
    /// The time that it measured.
    pub(super) wall_ns: u64,
    /// The measured time of earlier slots: cells hold measured time only, so the slot's cells begin
    /// here.
    pub(super) cells_from_ns: u64,
}

impl SlottedRow {
    /// Fills the row with what was measured.
    pub(super) fn fill(&mut self, measured: &Measurement) {
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
            let latencies = op.seen_latencies();
            let cells = op.series.cells.iter();
            let op = SlottedOp {
                interval_ns: op.series.interval_ns.max(1),
                cells: cells
                    .map(|cell| CellCount {
                        ops: cell.ops,
                        bytes: cell.bytes,
                    })
                    .collect(),
                latencies: StoredLatencies::new(&latencies.to_part()),
            };
            ops.insert(*kind, op);
        }
        self.slots = slots;
        self.ops = ops;
    }
}

/// What one kind of operation did over the measured time.
#[derive(Debug)]
pub(super) struct SlottedOp {
    /// The length of a cell, at least 1.
    pub(super) interval_ns: u64,
    /// One for each interval of measured time.
    pub(super) cells: Vec<CellCount>,
    pub(super) latencies: StoredLatencies,
}

/// The operations that ended in a cell, and their bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CellCount {
    pub(super) ops: u64,
    pub(super) bytes: u64,
}

/// Rates of one kind of operation in a part of a slot.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rates {
    pub(super) iops: f64,
    pub(super) bytes_per_second: f64,
}

impl SlottedOp {
    /// The rates in whole cells within a part of the measured time; `None` where no cell fits.
    pub(super) fn rates(&self, from_ns: u64, until_ns: u64) -> Option<Rates> {
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

/// A hash of the parts of a plan that equal plans share. Targets and paths may differ. It is
/// compared within one process only: `DefaultHasher` may change with the compiler.
pub(super) fn plan_hash(record: &Record) -> u64 {
    let mut hasher = DefaultHasher::new();
    let plan = &record.plan;
    let parts = (&plan.seed, plan.scratch_bytes(), plan.workload_task());
    let text = serde_json::to_string(&parts).unwrap_or_default();
    (plan.method, text).hash(&mut hasher);
    hasher.finish()
}

/// A run, with the offset of its clock from that of the first member.
pub(super) struct Member<'r> {
    pub(super) run: &'r RunInSlots,
    pub(super) clock_offset: ClockOffset,
}

/// A stretch of time on the clock of the first member.
#[derive(Debug, Clone, Copy)]
pub(super) struct Time {
    pub(super) from_ns: i128,
    pub(super) until_ns: i128,
}

impl Time {
    /// Its length; 0 where it ends before it begins.
    pub(super) fn length_ns(self) -> i128 {
        (self.until_ns - self.from_ns).max(0)
    }

    /// The part of it within another one.
    pub(super) fn within(self, other: Self) -> Self {
        Self {
            from_ns: self.from_ns.max(other.from_ns),
            until_ns: self.until_ns.min(other.until_ns),
        }
    }
}

/// A reason why a run is not in the sum. Its code stands in saved fleets.
pub(super) fn reason(code: &str, why: &str) -> Reason {
    Reason {
        code: code.to_owned(),
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::histogram::LatencyHistogram;

    /// Cells of a tenth of a second with 1, 2, 3 and 4 operations of 10 bytes.
    fn op() -> SlottedOp {
        SlottedOp {
            interval_ns: 100_000_000,
            cells: (1..=4)
                .map(|ops| CellCount {
                    ops,
                    bytes: 10 * ops,
                })
                .collect(),
            latencies: StoredLatencies::new(&LatencyHistogram::new().to_part()),
        }
    }

    /// From 0.05 s to 0.35 s the second and the third cell are whole: 5 operations in 0.2 s.
    #[test]
    fn rates_come_from_whole_cells() {
        let rates = op().rates(50_000_000, 350_000_000).unwrap();
        assert_eq!(rates.iops, 25.0);
        assert_eq!(rates.bytes_per_second, 250.0);
        assert!(op().rates(50_000_000, 150_000_000).is_none());
    }

    #[test]
    fn times_without_a_common_instant_have_no_length() {
        let early = Time {
            from_ns: 0,
            until_ns: 10,
        };
        let late = Time {
            from_ns: 4,
            until_ns: 20,
        };
        assert_eq!(early.within(late).length_ns(), 6);
        let later = Time {
            from_ns: 15,
            ..late
        };
        assert_eq!(early.within(later).length_ns(), 0);
    }
}
