//! Chooses the cells of a sustained load, in three phases: a precondition where one is planned, the
//! load itself round after round, and recoveries if its rate fell. A *recovery* is a pause with a
//! short load after it. The load ends when the bytes, the time or the drop that the user allows are
//! used up. docs/sustain.md explains it.

use super::decision::{Campaign, CampaignCell, CampaignFacts, CampaignStep, MeasuredCell};
use super::side_credit::{SideCredit, SideDisks};
use crate::estimate::{LastingFall, rate_fall};
use crate::rounds::{DROP_ROUNDS, drop_share, fall_of_rounds, has_surely_declined};
use crate::slices::rate_of_kinds;
use crate::zones::LoadAlongZones;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{Decide, Workload};
use diskproof_model::series::TimeSeries;
use diskproof_model::sustain::SustainPlan;

/// The last round lasts for at least one of this many parts of a round. A shorter one shows no rate
/// that compares with those of whole rounds.
const LAST_ROUND_PARTS: u64 = 2;

/// The recoveries may end this much later than the planned time, because the gaps between rounds
/// are not part of the plan. Chosen, not measured.
const OVERTIME_NS: u64 = 2_000_000_000;

/// The campaign of a sustained load.
#[derive(Debug, Clone)]
pub struct SustainCampaign {
    plan: SustainPlan,
    precondition: Option<Workload>,
    load: Workload,
    /// The load goes along the zones of a rotating disk; `None` where it does not.
    along_zones: Option<LoadAlongZones>,
    recoveries: Vec<PlannedRecovery>,
    /// The time of the load and its recoveries together, in nanoseconds.
    time_ns: u64,
}

/// A pause, and the load that is measured after it.
#[derive(Debug, Clone)]
struct PlannedRecovery {
    pause_ns: u64,
    workload: Workload,
}

impl PlannedRecovery {
    /// The pause and the load together, in nanoseconds.
    fn whole_ns(&self) -> u64 {
        self.pause_ns + self.workload.stop.time_ns.unwrap_or(0)
    }
}

impl SustainCampaign {
    /// The campaign of a plan on its targets; `None` where it sustains no load.
    pub(crate) fn planned(facts: &CampaignFacts<'_>) -> Option<Self> {
        let workloads = facts.plan.workload_task()?;
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
        let along_zones = match facts.targets.first() {
            Some(target) => LoadAlongZones::planned(&load, target, facts.host, facts.health),
            None => None,
        };
        Some(Self {
            along_zones,
            plan: sustain.clone(),
            precondition: sustain.precondition(list).cloned(),
            time_ns: load.stop.time_ns?,
            load,
            recoveries,
        })
    }

    /// A cell of a workload that lasts for `time_ns`, and moves no more bytes than the budget has
    /// left. `None` where the budget is used up.
    fn cell_within_budget(
        &self,
        workload: &Workload,
        time_ns: u64,
        done: &[MeasuredCell],
    ) -> Option<CampaignCell> {
        let mut workload = workload.clone();
        workload.stop.time_ns = Some(time_ns);
        if let Some(budget_bytes) = self.plan.budget_bytes {
            let asked_bytes = done.iter().map(|cell| cell.asked_bytes).sum();
            let left_bytes = budget_bytes.saturating_sub(asked_bytes);
            let allowed_bytes = match workload.stop.bytes {
                Some(bytes) => bytes.min(left_bytes),
                None => left_bytes,
            };
            if allowed_bytes < u64::from(workload.block_bytes) {
                return None;
            }
            workload.stop.bytes = Some(allowed_bytes);
        }
        Some(CampaignCell::row(0, workload))
    }

    /// The next cell of the precondition; `None` where there is none, or it is complete.
    fn next_of_precondition(&self, done: &[MeasuredCell]) -> Option<CampaignCell> {
        let precondition = self.precondition.as_ref()?;
        let needed_bytes = self.plan.precondition_bytes?;
        let written_bytes = moved_bytes(cells_of(precondition, done));
        let left_bytes = needed_bytes.saturating_sub(written_bytes);
        if left_bytes < u64::from(precondition.block_bytes) {
            return None;
        }
        let mut workload = precondition.clone();
        workload.stop.bytes = Some(left_bytes);
        self.cell_within_budget(&workload, self.plan.round_ns, done)
    }

    /// Returns `true` if the rate of the load surely fell by more than the user allows, and not for
    /// the slower zones of its disk.
    fn has_dropped_too_far(&self, rounds: &[&MeasuredCell]) -> bool {
        let Some(allowed) = self.plan.stop_at_drop else {
            return false;
        };
        let rates: Vec<f64> = rounds.iter().map(|round| rate(round)).collect();
        let series = joined_series(rounds);
        let fall = rate_fall(&series, time_ns(&series));
        // The level after a fall is known only a few rounds later.
        let confirming_ns = DROP_ROUNDS as u64 * self.plan.round_ns;
        if let Some(fall) = &fall
            && fall.at_ns + confirming_ns > time_ns(&series)
        {
            return false;
        }
        let Some(drop) = drop_share(&rates, fall.as_ref()) else {
            return false;
        };
        let is_sure = match fall {
            Some(_) => drop.low() > allowed,
            None => has_surely_declined(&rates, allowed),
        };
        let seen = fall.unwrap_or(LastingFall {
            at_ns: time_ns(&series),
            before: 1.0,
            after: 1.0 - drop.share,
        });
        is_sure && !self.is_fall_of_zones(&seen, rounds)
    }

    /// Returns `true` if the rate of the load fell for good, at once or gradually, and not for the
    /// slower zones of its disk.
    fn has_fallen(&self, rounds: &[&MeasuredCell], done: &[MeasuredCell]) -> bool {
        let series = joined_series(rounds);
        let mut falls = Vec::new();
        falls.extend(self.fall_of_credit(rounds, done));
        falls.extend(fall_over(rounds));
        falls.extend(rate_fall(&series, time_ns(&series)));
        falls
            .iter()
            .any(|fall| !self.is_fall_of_zones(fall, rounds))
    }

    /// The fall at the end of a credit that the cells show; `None` where they show none.
    fn fall_of_credit(
        &self,
        rounds: &[&MeasuredCell],
        done: &[MeasuredCell],
    ) -> Option<LastingFall> {
        let names = [self.load.name.clone()];
        let credit = SideCredit::from_cells(done, 0, &SideDisks::One, &names)?;
        let start_ns = rounds.first()?.slice.start_ns;
        Some(LastingFall {
            at_ns: (credit.bucket.spent_ns as u64).saturating_sub(start_ns),
            before: credit.bucket.burst,
            after: credit.bucket.base,
        })
    }

    /// Returns `true` if the load goes along the zones of a rotating disk, and these explain a fall
    /// over its rounds.
    fn is_fall_of_zones(&self, fall: &LastingFall, rounds: &[&MeasuredCell]) -> bool {
        let (Some(along), Some(first)) = (&self.along_zones, rounds.first()) else {
            return false;
        };
        let moved = joined_series(rounds).total_between(0, fall.at_ns);
        along.explain(fall, moved.bytes, first.span_bytes)
    }

    /// The next recovery; `None` where all of them were measured.
    fn next_recovery(&self, done: &[MeasuredCell]) -> Option<&PlannedRecovery> {
        self.recoveries
            .iter()
            .find(|recovery| !was_measured(&recovery.workload, done))
    }

    /// The time of all recoveries together, in nanoseconds.
    fn recovery_ns(&self) -> u64 {
        self.recoveries.iter().map(PlannedRecovery::whole_ns).sum()
    }

    /// The decision after the rounds of the load so far.
    fn after_rounds(&self, rounds: &[&MeasuredCell], done: &[MeasuredCell]) -> AfterRounds {
        if self.has_dropped_too_far(rounds) {
            return AfterRounds::End;
        }
        let left_ns = self
            .time_ns
            .saturating_sub(spent_ns(rounds.first().copied(), rounds.last().copied()));
        let leaves_recovery_time = left_ns >= self.recovery_ns() + self.plan.round_ns;
        if !leaves_recovery_time && self.has_fallen(rounds, done) {
            return AfterRounds::Recover;
        }
        let time_ns = left_ns.min(self.plan.round_ns);
        if time_ns >= self.plan.round_ns / LAST_ROUND_PARTS {
            AfterRounds::Round { time_ns }
        } else {
            AfterRounds::End
        }
    }

    /// The next cell of the recoveries; `None` where all were measured or the time is over.
    fn next_cell_of_recovery(
        &self,
        rounds: &[&MeasuredCell],
        done: &[MeasuredCell],
    ) -> Option<CampaignCell> {
        let recovery = self.next_recovery(done)?;
        let left_ns = self
            .time_ns
            .saturating_sub(spent_ns(rounds.first().copied(), done.last()));
        // A fall that shows late leaves too little time for its recoveries.
        if recovery.whole_ns() > left_ns + OVERTIME_NS {
            return None;
        }
        let workload = &recovery.workload;
        let time_ns = workload.stop.time_ns.unwrap_or(self.plan.round_ns);
        let mut cell = self.cell_within_budget(workload, time_ns, done)?;
        cell.pause_ns = recovery.pause_ns;
        Some(cell)
    }

    /// The next cell; `None` at the end of the campaign.
    fn next_cell(&self, done: &[MeasuredCell]) -> Option<CampaignCell> {
        let rounds: Vec<&MeasuredCell> = cells_of(&self.load, done).collect();
        if rounds.is_empty()
            && let Some(cell) = self.next_of_precondition(done)
        {
            return Some(cell);
        }
        let is_recovering = self
            .recoveries
            .iter()
            .any(|recovery| was_measured(&recovery.workload, done));
        if is_recovering {
            return self.next_cell_of_recovery(&rounds, done);
        }
        match self.after_rounds(&rounds, done) {
            AfterRounds::Round { time_ns } => self.cell_within_budget(&self.load, time_ns, done),
            AfterRounds::Recover => self.next_cell_of_recovery(&rounds, done),
            AfterRounds::End => None,
        }
    }
}

/// The decision after some rounds of the load.
enum AfterRounds {
    /// Another round of this time follows, in nanoseconds.
    Round { time_ns: u64 },
    /// The rate fell, and the time that is left is that of the recoveries.
    Recover,
    /// The campaign ends without a recovery: the rate did not fall, or fell too far.
    End,
}

impl Campaign for SustainCampaign {
    fn next(&mut self, done: &[MeasuredCell]) -> CampaignStep {
        CampaignStep::without_drops(self.next_cell(done))
    }
}

/// The time from the start of one cell to the end of another, gaps between them included, in
/// nanoseconds; 0 where nothing was measured.
fn spent_ns(first: Option<&MeasuredCell>, last: Option<&MeasuredCell>) -> u64 {
    match (first, last) {
        (Some(first), Some(last)) => last.end_ns().saturating_sub(first.slice.start_ns),
        _ => 0,
    }
}

/// Returns `true` if a cell of this workload was measured.
fn was_measured(workload: &Workload, done: &[MeasuredCell]) -> bool {
    cells_of(workload, done).next().is_some()
}

/// The measured cells of a workload.
fn cells_of<'a>(
    workload: &'a Workload,
    done: &'a [MeasuredCell],
) -> impl Iterator<Item = &'a MeasuredCell> {
    done.iter()
        .filter(|measured| measured.cell.workload.name == workload.name)
}

/// The bytes that these cells read and wrote. Commits are made of writes that count already.
fn moved_bytes<'a>(cells: impl IntoIterator<Item = &'a MeasuredCell>) -> u64 {
    let mut bytes = 0;
    for cell in cells {
        for (kind, op) in &cell.slice.ops {
            if kind.is_request() {
                bytes += op.bytes;
            }
        }
    }
    bytes
}

/// Requests per second of a round, reads and writes together.
fn rate(round: &MeasuredCell) -> f64 {
    rate_of_kinds(&round.slice, &OpKind::TRANSFERS)
}

/// The fall of the rates of these rounds, at their measured time; `None` where there is none.
fn fall_over(rounds: &[&MeasuredCell]) -> Option<LastingFall> {
    let rates: Vec<f64> = rounds.iter().map(|round| rate(round)).collect();
    let fall = fall_of_rounds(&rates)?;
    let mut at_ns = 0;
    for round in &rounds[..fall.first_after] {
        at_ns += round.slice.wall_ns;
    }
    Some(LastingFall {
        at_ns,
        before: fall.before,
        after: fall.after,
    })
}

/// The series of all rounds in one, without the gaps between them. Its interval is the longest of
/// all rounds.
fn joined_series(rounds: &[&MeasuredCell]) -> TimeSeries {
    let interval_ns = rounds
        .iter()
        .map(|round| round.moved.interval_ns)
        .max()
        .unwrap_or(1);
    let mut joined = TimeSeries::new(interval_ns);
    for round in rounds {
        // Series become coarser by doubling, so that one interval divides the other.
        let factor = interval_ns / round.moved.interval_ns.max(1);
        let coarser = round.moved.coarser(factor as usize);
        joined.cells.extend(coarser.cells.iter());
    }
    joined
}

/// The time that a series covers, in nanoseconds.
fn time_ns(series: &TimeSeries) -> u64 {
    series.interval_ns * series.cells.len() as u64
}

#[cfg(test)]
mod tests;
