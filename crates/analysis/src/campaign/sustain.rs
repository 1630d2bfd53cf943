//! A sustained load, round after round: a precondition before it where one is planned, pauses and
//! short loads after it where its rate fell, and the end where the bytes, the time or the fall that
//! the user allows are used up. docs/sustain.md explains it.

use super::decision::{Campaign, CampaignCell, MeasuredCell, SideCredit, SideDisks};
use crate::estimate::rate_fall;
use crate::rounds::{DROP_ROUNDS, drop_share, fall_to_even_rounds, is_gradual_fall};
use crate::slices::rate_of_kinds;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{Decide, Plan, Workload};
use diskproof_model::series::TimeSeries;
use diskproof_model::sustain::SustainPlan;

/// A load shorter than this part of a round is not measured: it shows no rate.
const LEAST_PARTS: u64 = 2;

/// The pauses and loads after a fall may end this much later than the planned time, because the
/// gaps between rounds are not part of the plan.
const OVERTIME_NS: u64 = 2_000_000_000;

/// The decisions of a sustained load.
#[derive(Debug, Clone)]
pub struct SustainCampaign {
    plan: SustainPlan,
    precondition: Option<Workload>,
    load: Workload,
    recoveries: Vec<PlannedRecovery>,
    /// The time of the load, pauses and what follows them included, in nanoseconds.
    time_ns: u64,
    /// The pause before the cell that was chosen last, in nanoseconds.
    pause_ns: u64,
}

/// A pause, and what is measured after it.
#[derive(Debug, Clone)]
struct PlannedRecovery {
    pause_ns: u64,
    workload: Workload,
}

impl PlannedRecovery {
    fn whole_ns(&self) -> u64 {
        self.pause_ns + self.workload.stop.time_ns.unwrap_or(0)
    }
}

impl SustainCampaign {
    /// The campaign of a plan; `None` where it sustains no load.
    pub fn planned(plan: &Plan) -> Option<Self> {
        let workloads = plan.workload_task()?;
        let Decide::Until(sustain) = &workloads.decide else {
            return None;
        };
        let list = &workloads.list;
        let load = sustain.load(list)?.clone();
        let mut recoveries = Vec::new();
        for after in sustain.after_pauses(list) {
            recoveries.push(PlannedRecovery {
                pause_ns: after.pause_ns,
                workload: after.workload.clone(),
            });
        }
        Some(Self {
            plan: sustain.clone(),
            precondition: sustain.precondition(list).cloned(),
            time_ns: load.stop.time_ns?,
            load,
            recoveries,
            pause_ns: 0,
        })
    }

    /// The next part of a workload: at most a round, and no more bytes than the budget has left.
    /// `None` where the budget is used up.
    fn cell(
        &self,
        workload: &Workload,
        time_ns: u64,
        done: &[MeasuredCell],
    ) -> Option<CampaignCell> {
        let mut part = workload.clone();
        part.stop.time_ns = Some(time_ns);
        if let Some(budget_bytes) = self.plan.budget_bytes {
            let left_bytes = budget_bytes.saturating_sub(moved_bytes(done));
            let allowed_bytes = part.stop.bytes.unwrap_or(u64::MAX).min(left_bytes);
            if allowed_bytes < u64::from(part.block_bytes) {
                return None;
            }
            part.stop.bytes = Some(allowed_bytes);
        }
        Some(CampaignCell::row(0, part))
    }

    /// The next part of the precondition; `None` where it is complete.
    fn next_of_precondition(&self, done: &[MeasuredCell]) -> Option<CampaignCell> {
        let precondition = self.precondition.as_ref()?;
        let needed_bytes = self.plan.precondition_bytes?;
        let written_bytes = moved_bytes(cells_of(precondition, done));
        let left_bytes = needed_bytes.saturating_sub(written_bytes);
        if left_bytes < u64::from(precondition.block_bytes) {
            return None;
        }
        let mut part = precondition.clone();
        part.stop.bytes = Some(left_bytes);
        self.cell(&part, self.plan.round_ns, done)
    }

    /// Whether the rate of the load surely fell by more than the user allows.
    fn has_dropped_too_far(&self, load: &[&MeasuredCell]) -> bool {
        let Some(allowed) = self.plan.stop_at_drop else {
            return false;
        };
        let rates: Vec<f64> = load.iter().map(|cell| rate(cell)).collect();
        let series = joined_series(load);
        let fall = rate_fall(&series, time_ns(&series));
        // A few more rounds show what the fall is.
        let confirming_ns = DROP_ROUNDS as u64 * self.plan.round_ns;
        if let Some(fall) = &fall
            && fall.at_ns + confirming_ns > time_ns(&series)
        {
            return false;
        }
        match drop_share(&rates, fall.as_ref()) {
            Some(drop) => drop.low() > allowed,
            None => false,
        }
    }

    /// Whether the rate of the load fell for good, at once or gradually.
    fn has_fallen(&self, load: &[&MeasuredCell], done: &[MeasuredCell]) -> bool {
        let names = [self.load.name.clone()];
        if SideCredit::shown(done, 0, &SideDisks::One, &names).is_some() {
            return true;
        }
        let rates: Vec<f64> = load.iter().map(|cell| rate(cell)).collect();
        if is_gradual_fall(&rates) || fall_to_even_rounds(&rates).is_some() {
            return true;
        }
        let series = joined_series(load);
        rate_fall(&series, time_ns(&series)).is_some()
    }

    /// The time of the load so far, gaps between its rounds included.
    fn spent_ns(load: &[&MeasuredCell]) -> u64 {
        match (load.first(), load.last()) {
            (Some(first), Some(last)) => last.end_ns().saturating_sub(first.slice.start_ns),
            _ => 0,
        }
    }

    /// The next pause with its workload; `None` where all of them were measured.
    fn next_recovery(&self, done: &[MeasuredCell]) -> Option<&PlannedRecovery> {
        self.recoveries
            .iter()
            .find(|recovery| cells_of(&recovery.workload, done).next().is_none())
    }

    fn recovery_ns(&self) -> u64 {
        self.recoveries.iter().map(PlannedRecovery::whole_ns).sum()
    }
}

impl Campaign for SustainCampaign {
    fn next(&mut self, done: &[MeasuredCell]) -> Option<CampaignCell> {
        self.pause_ns = 0;
        if let Some(precondition) = &self.precondition
            && cells_of(&self.load, done).next().is_none()
            && moved_bytes(cells_of(precondition, done))
                < self.plan.precondition_bytes.unwrap_or_default()
            && let Some(cell) = self.next_of_precondition(done)
        {
            return Some(cell);
        }
        let load: Vec<&MeasuredCell> = cells_of(&self.load, done).collect();
        let is_recovering = self
            .recoveries
            .iter()
            .any(|recovery| cells_of(&recovery.workload, done).next().is_some());
        if !is_recovering {
            if self.has_dropped_too_far(&load) {
                return None;
            }
            let left_ns = self.time_ns.saturating_sub(Self::spent_ns(&load));
            let may_go_on =
                left_ns >= self.recovery_ns() + self.plan.round_ns || !self.has_fallen(&load, done);
            let time_ns = left_ns.min(self.plan.round_ns);
            if may_go_on && time_ns >= self.plan.round_ns / LEAST_PARTS {
                return self.cell(&self.load, time_ns, done);
            }
            if may_go_on {
                return None;
            }
        }
        let next = self.next_recovery(done)?.clone();
        let spent_ns = match (load.first(), done.last()) {
            (Some(first), Some(last)) => last.end_ns().saturating_sub(first.slice.start_ns),
            _ => 0,
        };
        // A fall that shows late leaves too little time for what comes after it.
        if next.whole_ns() > self.time_ns.saturating_sub(spent_ns) + OVERTIME_NS {
            return None;
        }
        self.pause_ns = next.pause_ns;
        self.cell(
            &next.workload,
            next.workload.stop.time_ns.unwrap_or(self.plan.round_ns),
            done,
        )
    }

    fn pause_ns(&self) -> u64 {
        self.pause_ns
    }
}

/// The measured cells of a workload.
fn cells_of<'a>(
    workload: &'a Workload,
    done: &'a [MeasuredCell],
) -> impl Iterator<Item = &'a MeasuredCell> {
    done.iter()
        .filter(|measured| measured.cell.workload.name == workload.name)
}

/// The bytes that these cells read and wrote.
fn moved_bytes<'a>(cells: impl IntoIterator<Item = &'a MeasuredCell>) -> u64 {
    let mut bytes = 0;
    for cell in cells {
        for op in cell.slice.ops.values() {
            bytes += op.bytes;
        }
    }
    bytes
}

/// Requests per second of a round, reads and writes together.
fn rate(round: &MeasuredCell) -> f64 {
    rate_of_kinds(&round.slice, &[OpKind::Read, OpKind::Write])
}

/// The series of all rounds in one, in the longest interval that one of them has.
fn joined_series(cells: &[&MeasuredCell]) -> TimeSeries {
    let interval_ns = cells
        .iter()
        .map(|cell| cell.moved.interval_ns)
        .max()
        .unwrap_or(1);
    let mut joined = TimeSeries::new(interval_ns);
    for cell in cells {
        let factor = interval_ns / cell.moved.interval_ns.max(1);
        joined
            .cells
            .extend(cell.moved.coarser(factor as usize).cells.iter());
    }
    joined
}

fn time_ns(series: &TimeSeries) -> u64 {
    series.interval_ns * series.cells.len() as u64
}

#[cfg(test)]
mod tests;
