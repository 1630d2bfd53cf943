//! Holds the equipment of a run: the engine, the open targets, and the permissions to change other
//! things. Fills scratch files, decides whether the run can go on after a measurement, and closes
//! the targets.

use super::job::SettingCommands;
use super::on_target::OnTarget;
use super::sink::{EarlyEnd, INTERRUPTED, Leftover, Sink, late_text};
use crate::flags::SCRATCH_BYTES_MIN;
use crate::progress_display::ProgressDisplay;
use diskproof_analysis::judge::RunFacts;
use diskproof_compat::JobCommand;
use diskproof_device::{Admission, Consent, GuardedWriteCache, OpenTarget};
use diskproof_engine::{LayoutEnd, LayoutGoal, LayoutWay, Session};
use diskproof_model::budget::Budget;
use diskproof_model::measurement::{Measurement, MovedTotal, OpKind, SILENCE_NS_MIN, StopReason};
use diskproof_model::plan::{Access, CachePolicy, Fill, Span, SyncPolicy, Workload};
use diskproof_model::record::TargetSilence;
use diskproof_model::together::TogetherRecord;
use diskproof_model::units::format_bytes;
use diskproof_postgres::Programs;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// Silences of targets that no result has taken.
#[derive(Default)]
pub(super) struct UnclaimedSilences {
    /// The longest of each target while it was made ready.
    pub silences: Vec<TargetSilence>,
    /// The very first answers.
    pub first_answers: Vec<TargetSilence>,
}

/// The equipment of a run.
pub(super) struct Bench {
    /// The engine, whose clock counts from the start of the run.
    pub session: Session,
    /// The facts of the run, which hold its only plan.
    pub facts: Arc<RunFacts>,
    /// The most that the run may do.
    pub budget: Arc<Budget>,
    /// The targets, in the order of the plan.
    pub targets: Vec<OpenTarget>,
    /// Permission to make a directory for many small files, where the plan has them in place of
    /// targets.
    pub file_tree: Option<Admission>,
    /// The targets that the user released, in case one is opened again.
    pub consent: Consent,
    /// The programs of the server of the plan's INSERTs.
    pub programs: Option<Programs>,
    /// The commands that change a setting of the target.
    pub commands: SettingCommands,
    /// The commands that the jobs of a tool run before and after their requests.
    pub job_commands: Vec<JobCommand>,
    /// The switch of the disks' write cache, where workloads name its state.
    pub write_cache: Option<GuardedWriteCache>,
    /// The measurements of the last layout.
    pub first_writes: Vec<FirstWrite>,
    /// The record of a run together with others; `None` of a run by itself.
    pub together: Option<TogetherRecord>,
    /// When the time limit of the plan is over.
    pub limit_end: Option<Instant>,
    /// The targets that are files of diskproof's own.
    pub own_targets: Vec<OwnTarget>,
}

/// A target that is a file of diskproof's own: made by this run, or by an earlier one for a tool.
pub(super) struct OwnTarget {
    /// The index of the target.
    pub target: usize,
    /// True if it had its mark when this run last looked. Not every filesystem keeps one.
    pub is_marked: bool,
}

/// The first write of a scratch file.
pub(super) struct FirstWrite {
    /// The index of the target.
    pub target: usize,
    pub measurement: Measurement,
}

impl Bench {
    /// Fills scratch files before a workload that reads or overwrites them. With limits, this
    /// writes what the layout workload had no time for, up to the smallest useful size, and then
    /// cuts the file to what was written.
    pub(super) fn lay_out(&mut self, workload: &Workload, sink: &mut Sink) -> Result<(), EarlyEnd> {
        let fill = match &self.facts.plan.scratch {
            Some(scratch) => scratch.fill,
            None => Fill::Whole,
        };
        for index in 0..self.targets.len() {
            let target = &self.targets[index];
            if !target.is_scratch() || !workload.runs_on(index) {
                continue;
            }
            let goal = FillGoal::new(
                fill,
                workload,
                FileSize {
                    capacity_bytes: target.capacity_bytes(),
                    written_bytes: target.usable_bytes(),
                },
                self.budget.fill_ns,
            );
            if target.usable_bytes() < target.capacity_bytes() {
                sink.set_step_target(Some(index));
                let filled = self.fill_own(index, fill, &goal, workload, &mut sink.progress);
                // Whatever hangs after this is not of this target alone.
                sink.set_step_target(None);
                filled?;
            }
            if fill == Fill::Whole {
                self.shrink(index, workload, sink)?;
            }
            let target = &self.targets[index];
            let least_bytes = match fill {
                Fill::Whole => goal.least_bytes.min(target.capacity_bytes()),
                Fill::Within { .. } => goal.least_bytes,
            };
            // A file cut to what its layout had time for may be too small for a later workload.
            if target.usable_bytes() < least_bytes {
                sink.progress.end_late();
                return Err(EarlyEnd::interrupted());
            }
        }
        Ok(())
    }

    /// Fills a scratch file, unless another program has changed it, and marks it again.
    fn fill_own(
        &mut self,
        index: usize,
        fill: Fill,
        goal: &FillGoal,
        workload: &Workload,
        progress: &mut ProgressDisplay,
    ) -> Result<(), EarlyEnd> {
        self.check_own_target(index)?;
        let filled = self.fill(index, fill, goal, workload, progress);
        self.mark_written(index);
        filled
    }

    /// Cuts a scratch file whose target was too slow to fill it to what was written, where that is
    /// useful. The files of other tools have the size that the tool gives them.
    fn shrink(
        &mut self,
        index: usize,
        workload: &Workload,
        sink: &mut Sink,
    ) -> Result<(), EarlyEnd> {
        let target = &mut self.targets[index];
        let (written_bytes, capacity_bytes) = (target.usable_bytes(), target.capacity_bytes());
        let plan = &self.facts.plan;
        let may_shrink = !plan.is_of_other_tool()
            && plan
                .workloads()
                .iter()
                .all(|planned| planned.span == Span::default());
        if !may_shrink || !is_enough(workload, written_bytes, capacity_bytes) {
            return Ok(());
        }
        target.trim_to_written()?;
        self.mark_written(index);
        let target = &self.targets[index];
        sink.verbosity.note(&format!(
            "{}: the target was too slow to fill {} in time, so the scratch file has {}",
            target.identity().path,
            format_bytes(capacity_bytes),
            format_bytes(target.capacity_bytes())
        ));
        Ok(())
    }

    /// Fills the scratch file of this target up to its goal.
    fn fill(
        &mut self,
        index: usize,
        fill: Fill,
        goal: &FillGoal,
        workload: &Workload,
        progress: &mut ProgressDisplay,
    ) -> Result<(), EarlyEnd> {
        let target = &mut self.targets[index];
        let written_bytes = target.usable_bytes();
        if goal.upto_bytes > written_bytes {
            progress.laying_out(&workload.name, goal.upto_bytes - written_bytes);
        }
        let layout_goal = LayoutGoal {
            upto_bytes: goal.upto_bytes,
            way: LayoutWay::for_workload(workload, goal.upto_bytes),
            time_ns: goal.time_ns,
            content: workload.shape.content.laid_out.clone(),
        };
        self.write_content(index, layout_goal.clone(), progress)?;
        if matches!(fill, Fill::Within { .. }) {
            // What the workload cannot do without takes the time that it takes, or, if that is
            // more than a block, the time that the plan announces for it.
            let began = Instant::now();
            let needed = LayoutGoal {
                upto_bytes: goal.least_bytes.min(goal.upto_bytes),
                time_ns: goal.beyond_ns,
                ..layout_goal
            };
            if goal.beyond_ns != Some(0) {
                self.write_content(index, needed, progress)?;
            }
            progress.extend_deadline(began.elapsed());
            self.targets[index].trim_to_written()?;
        }
        Ok(())
    }

    /// Writes content to the scratch file of this target, and keeps what was measured of it.
    fn write_content(
        &mut self,
        index: usize,
        goal: LayoutGoal,
        progress: &mut ProgressDisplay,
    ) -> Result<(), EarlyEnd> {
        let target = &mut self.targets[index];
        let mut watch = OnTarget::new(index, progress);
        match self.session.lay_out(target, goal, &mut watch)? {
            LayoutEnd::NothingToWrite => Ok(()),
            LayoutEnd::Written(measurement) => {
                self.first_writes.push(FirstWrite {
                    target: index,
                    measurement: *measurement,
                });
                Ok(())
            }
            LayoutEnd::Interrupted(_) => Err(EarlyEnd::interrupted()),
        }
    }

    /// Fails if another program has changed a file of diskproof's own to which these workloads
    /// write: the mark that released it is no longer valid.
    pub(super) fn check_own_targets(&self, workloads: &[Workload]) -> Result<(), EarlyEnd> {
        for index in 0..self.targets.len() {
            if is_written(workloads, index) {
                self.check_own_target(index)?;
            }
        }
        Ok(())
    }

    /// As [`Self::check_own_targets`], of one target.
    pub(super) fn check_own_target(&self, index: usize) -> Result<(), EarlyEnd> {
        let target = &self.targets[index];
        for own in &self.own_targets {
            if own.target == index && own.is_marked && !target.is_marked_own() {
                return Err(EarlyEnd::Reason(format!(
                    "another program changed the test file during the run, so diskproof does not \
                     overwrite it: {}",
                    target.identity().path
                )));
            }
        }
        Ok(())
    }

    /// Marks the files of diskproof's own to which these workloads have just written, so that a
    /// later change by another program shows.
    pub(super) fn mark_written_by(&mut self, workloads: &[Workload]) {
        for index in 0..self.targets.len() {
            if is_written(workloads, index) {
                self.mark_written(index);
            }
        }
    }

    /// As [`Self::mark_written_by`], of one target. One that hangs stays unmarked.
    pub(super) fn mark_written(&mut self, index: usize) {
        let Some(target) = self.targets.get(index) else {
            return;
        };
        for own in &mut self.own_targets {
            if own.target == index && !target.is_left_open() {
                target.mark_own();
                own.is_marked = target.is_marked_own();
            }
        }
    }

    /// What filled the scratch file of each target since this was asked last.
    pub(super) fn take_filled(&mut self) -> BTreeMap<usize, MovedTotal> {
        let mut filled: BTreeMap<usize, MovedTotal> = BTreeMap::new();
        for first in std::mem::take(&mut self.first_writes) {
            if let Some(op) = first.measurement.ops.get(&OpKind::Write) {
                let sum = filled.entry(first.target).or_default();
                sum.requests += op.count;
                sum.bytes += op.bytes;
            }
        }
        filled
    }

    /// Gives the first write of a file to the sequential write that overwrites it. Of other
    /// workloads it only says what moved before them.
    pub(super) fn attach_first_writes(&mut self, measured: &mut [Measurement]) {
        let first_writes = std::mem::take(&mut self.first_writes);
        for FirstWrite {
            target,
            measurement: first,
        } in first_writes
        {
            if let Some(next) = measured.iter_mut().find(|row| row.target == target) {
                let earlier = next.laid_out.unwrap_or_default();
                next.laid_out = first.ops.get(&OpKind::Write).map(|op| MovedTotal {
                    requests: earlier.requests + op.count,
                    bytes: earlier.bytes + op.bytes,
                });
            }
            // One through the page cache is not comparable.
            if first.cache.asked != CachePolicy::Direct {
                continue;
            }
            if let Some(rewrite) = measured
                .iter_mut()
                .find(|row| row.target == target && is_sequential_write(&row.workload))
                && rewrite.workload.sync == SyncPolicy::AtEnd
            {
                rewrite.first_write = Some(Box::new(first));
            }
        }
    }

    /// The silences and first answers that were noted for workloads which never began, or of which
    /// the run has none.
    pub(super) fn silences(&self) -> UnclaimedSilences {
        let mut unclaimed = UnclaimedSilences::default();
        for (target, open) in self.targets.iter().enumerate() {
            let length_ns = open.take_silence_ns();
            if length_ns > 0 {
                unclaimed.silences.push(TargetSilence { target, length_ns });
            }
            let length_ns = open.take_first_answer_ns();
            if length_ns >= SILENCE_NS_MIN && length_ns >= open.usual_silence_ns() {
                let first = TargetSilence { target, length_ns };
                unclaimed.first_answers.push(first);
            }
        }
        unclaimed
    }

    /// Closes the targets, and returns the paths of those that hang. Files and devices of the user
    /// are flushed first: no write of ours may be in flight when another program opens them. A
    /// target that hangs would hang the flush, too; a disk that fails it is one of the results.
    pub(super) fn close(self, sink: &Sink) -> Vec<String> {
        let mut hung = Vec::new();
        if sink.results().leftover == Some(Leftover::Files) {
            hung.extend(self.facts.plan.targets.iter().cloned());
        }
        for target in &self.targets {
            if target.is_left_open() {
                hung.push(target.identity().path.clone());
            } else if !target.is_scratch()
                && let Err(error) = target.write_back()
            {
                sink.verbosity.note(&error.to_string());
                let mut results = sink.results();
                if results.write_back_failure.is_none() {
                    results.write_back_failure = error.of_target();
                }
            }
        }
        hung
    }

    /// The path of a measurement's target.
    fn path(&self, measurement: &Measurement) -> &str {
        match self.targets.get(measurement.target) {
            Some(target) => target.identity().path.as_str(),
            None => "",
        }
    }

    /// Checks that the run can go on after these measurements. A hang explains the most, so it is
    /// the error where there are several.
    pub(super) fn check_can_continue(&self, measured: &[Measurement]) -> Result<(), EarlyEnd> {
        for measurement in measured {
            if let Some(hang) = measurement.hang
                && !hang.late
            {
                return Err(EarlyEnd::Reason(format!(
                    "{} stopped answering during '{}'; diskproof stopped waiting after {}. See \
                     the kernel log (dmesg)",
                    self.path(measurement),
                    measurement.workload.name,
                    diskproof_model::units::format_duration(hang.lasted_ns)
                )));
            }
        }
        for measurement in measured {
            if let Some(why) = self.failure_text(measurement) {
                return Err(EarlyEnd::Reason(why));
            }
        }
        // No further request goes to a target that still has some.
        if measured.iter().any(|row| row.hang.is_some()) {
            Err(EarlyEnd::Reason(late_text(&self.facts.plan.tasks)))
        } else {
            Ok(())
        }
    }

    /// Why a workload that did not hang ends the run; `None` where it ended as planned.
    fn failure_text(&self, measurement: &Measurement) -> Option<String> {
        match measurement.stopped {
            StopReason::Interrupted => Some(INTERRUPTED.to_owned()),
            StopReason::Errors => Some(self.too_many_errors(measurement)),
            StopReason::BelowFloor => Some(failed(measurement, "the rate was lower")),
            // A ping ends at its slow request as planned.
            StopReason::TooSlow if self.facts.plan.ping().is_none() => {
                Some(failed(measurement, "a request took longer"))
            }
            StopReason::TooSlow
            | StopReason::Precision
            | StopReason::Time
            | StopReason::Bytes
            | StopReason::Ops
            | StopReason::Companion
            | StopReason::Hung
            | StopReason::Overloaded
            | StopReason::Steady
            | StopReason::Unread => None,
        }
    }

    fn too_many_errors(&self, measurement: &Measurement) -> String {
        let mut counts = Vec::new();
        let mut names = Vec::new();
        for op in measurement.ops.values() {
            for (errno, count) in &op.errors {
                counts.push(format!("{count} × {errno}"));
                names.push(errno.as_str());
            }
        }
        format!(
            "{} returned too many errors during '{}' ({}); {}",
            self.path(measurement),
            measurement.workload.name,
            counts.join(", "),
            diskproof_model::errno::remedy(names)
        )
    }
}

/// The size to which a scratch file is filled before a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FillGoal {
    /// The bytes that the workload needs: with fewer, the run ends.
    least_bytes: u64,
    /// The bytes to which the file is filled.
    upto_bytes: u64,
    /// The time that filling may take; `None` without a limit.
    time_ns: Option<u64>,
    /// The time that `least_bytes` may take after that; `None` without a limit.
    beyond_ns: Option<u64>,
}

/// The size of a scratch file, and how much of it has content.
#[derive(Debug, Clone, Copy)]
struct FileSize {
    capacity_bytes: u64,
    written_bytes: u64,
}

impl FillGoal {
    /// The goal before this workload. `fill_ns` is the limit of the plan's budget for filling whole
    /// files, and for the log of transactions beyond the time of a first write.
    fn new(fill: Fill, workload: &Workload, size: FileSize, fill_ns: Option<u64>) -> Self {
        let span = &workload.span;
        let capacity_bytes = size.capacity_bytes;
        match fill {
            Fill::Whole => {
                let end = match span.length_bytes {
                    Some(length) => capacity_bytes.min(span.start_bytes + length),
                    None => capacity_bytes,
                };
                Self {
                    least_bytes: end,
                    upto_bytes: end,
                    time_ns: fill_ns,
                    beyond_ns: None,
                }
            }
            Fill::Within { bytes_min, time_ns } => {
                let log_bytes = workload.log_bytes();
                let least_bytes = span
                    .start_bytes
                    .saturating_add(log_bytes)
                    .saturating_add(u64::from(workload.block_bytes));
                Self {
                    least_bytes,
                    upto_bytes: if size.written_bytes == 0 {
                        capacity_bytes
                    } else {
                        bytes_min.max(least_bytes).min(capacity_bytes)
                    },
                    time_ns: Some(time_ns),
                    beyond_ns: if log_bytes > 0 {
                        Some(fill_ns.unwrap_or(0))
                    } else {
                        None
                    },
                }
            }
        }
    }
}

/// True if a scratch file that is not full is large enough for a workload.
fn is_enough(workload: &Workload, written_bytes: u64, capacity_bytes: u64) -> bool {
    let least_bytes = workload.log_bytes().saturating_add(SCRATCH_BYTES_MIN);
    written_bytes < capacity_bytes && written_bytes >= least_bytes
}

fn is_written(workloads: &[Workload], target: usize) -> bool {
    workloads
        .iter()
        .any(|workload| workload.writes() && workload.runs_on(target))
}

fn is_sequential_write(workload: &Workload) -> bool {
    !workload.reads() && workload.access == Access::Sequential
}

/// Says that a limit of the workload itself ended it.
fn failed(measurement: &Measurement, why: &str) -> String {
    let name = &measurement.workload.name;
    format!("'{name}' failed: {why} than its limit allows")
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::transaction::Transaction;

    const MIB: u64 = 1 << 20;

    fn goal(fill: Fill, written_bytes: u64) -> FillGoal {
        let mut workload = Workload::named("read");
        workload.block_bytes = 4096;
        let size = FileSize {
            capacity_bytes: 64 * MIB,
            written_bytes,
        };
        FillGoal::new(fill, &workload, size, Some(7))
    }

    #[test]
    fn whole_file_is_needed_where_no_size_is_enough() {
        let whole = FillGoal {
            least_bytes: 64 * MIB,
            upto_bytes: 64 * MIB,
            time_ns: Some(7),
            beyond_ns: None,
        };
        assert_eq!(goal(Fill::Whole, 0), whole);
    }

    /// A stick that wrote 200 of 383 MiB in its time is measured on these; a few blocks are not
    /// enough.
    #[test]
    fn part_of_a_file_is_enough_from_a_useful_size_on() {
        let reads = Workload::named("read");
        assert!(is_enough(&reads, 200 * MIB, 383 * MIB));
        assert!(!is_enough(&reads, 383 * MIB, 383 * MIB));
        assert!(!is_enough(&reads, SCRATCH_BYTES_MIN - 1, 383 * MIB));
        assert!(is_enough(&reads, SCRATCH_BYTES_MIN, 383 * MIB));
    }

    /// An empty file is filled as far as the time allows. One that has content gets the least size
    /// that is useful, and a workload can do with one block.
    #[test]
    fn file_with_content_is_filled_to_the_least_useful_size() {
        let fill = Fill::Within {
            bytes_min: 16 * MIB,
            time_ns: 5,
        };
        let empty = goal(fill, 0);
        assert_eq!((empty.least_bytes, empty.upto_bytes), (4096, 64 * MIB));
        let begun = goal(fill, MIB);
        assert_eq!((begun.least_bytes, begun.upto_bytes), (4096, 16 * MIB));
        assert_eq!((begun.time_ns, begun.beyond_ns), (Some(5), None));
    }

    /// The log of transactions has to be there. A slow disk writes it for as long as the plan says.
    #[test]
    fn log_of_transactions_is_laid_out_in_the_announced_time() {
        let mut workload = Workload::named("commit");
        workload.transaction = Some(Transaction {
            reads: 4,
            log_bytes: 8192,
            log_span_bytes: 64 * MIB,
            writes: 1,
        });
        let size = FileSize {
            capacity_bytes: 1 << 30,
            written_bytes: 0,
        };
        let fill = Fill::Within {
            bytes_min: 16 * MIB,
            time_ns: 5,
        };
        let beyond_ns = |fill_ns| FillGoal::new(fill, &workload, size, fill_ns).beyond_ns;
        assert_eq!(beyond_ns(Some(7)), Some(7));
        assert_eq!(beyond_ns(None), Some(0));
    }
}
