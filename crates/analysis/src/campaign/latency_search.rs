//! The search for the greatest depth at which most requests meet a latency limit: doubled from 1
//! until too many are late, then halved between what holds and what does not.
//! docs/latency-target.md explains it.
//!
//! A depth is promised only where its rate lasts: it is measured without a pause for as long as the
//! search before it took. Where a burst credit ends meanwhile, the depths that were measured with
//! it are measured again, and so they are where the rate of the promised depth falls.

use super::decision::{Campaign, CampaignCell, CampaignRow, MeasuredCell, SideCredit, SideDisks};
use crate::slices::rate_of_kinds;
use diskproof_model::latency_search::timed_requests;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{Decide, Plan, Workload};
use diskproof_model::shape::LatencyTarget;
use diskproof_model::window::LateRequests;

/// A promised depth is measured in this many windows. So is one that misses by so little that one
/// disturbance may explain it.
const WINDOWS: usize = 3;
/// Every depth up to this one is tried.
const EVERY_DEPTH_MAX: u32 = 16;
/// Above it, this many depths are tried between a power of two and the next.
const DEPTHS_PER_DOUBLING: u32 = 8;

/// The depths that a search may try, ascending. The last one is `depth_max`.
pub fn search_depths(depth_max: u32) -> Vec<u32> {
    let mut depths: Vec<u32> = (1..=depth_max.min(EVERY_DEPTH_MAX)).collect();
    let mut depth = EVERY_DEPTH_MAX;
    while depth < depth_max {
        // The power of two below it.
        let octave = 1 << depth.ilog2();
        depth = (depth + octave / DEPTHS_PER_DOUBLING).min(depth_max);
        depths.push(depth);
    }
    depths
}

/// The campaign that searches the depth.
#[derive(Debug, Clone)]
pub struct LatencySearchCampaign {
    target: LatencyTarget,
    /// One workload for each depth, ascending.
    workloads: Vec<Workload>,
    /// No window begins that would end later than this, in nanoseconds after the start of the
    /// first.
    time_ns: Option<u64>,
    /// The burst credit that the cells so far show.
    credit: Option<SideCredit>,
    /// For each depth, the number of cells that were done when its windows began to count.
    counted_from: Vec<usize>,
    /// The number of times that the windows of each depth were dropped.
    drops: Vec<usize>,
    /// Rows that were dropped since [`Campaign::take_dropped`] was last called.
    dropped: Vec<CampaignRow>,
}

/// The windows of a depth are dropped at most this often: a search on a disk that keeps becoming
/// slower must still end.
const DROPS_MAX: usize = 3;
/// If the rate of the promised depth falls by this factor, it is measured again.
const FALL_MIN: f64 = 1.1;
/// A fall lasts if this many windows after it are slower.
const FALL_WINDOWS: usize = 2;

/// Standard deviations by which more late requests than allowed may be chance.
const CHANCE_DEVIATIONS: f64 = 3.0;
/// Pauses of the disk in a window that are not held against a depth. Each delays all requests in
/// flight.
const PAUSES: f64 = 2.0;

/// Whether the requests at a depth meet the latency target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DepthState {
    /// No window was measured yet.
    Unmeasured,
    /// Enough requests meet it.
    Holds,
    /// Too many are late, but so few that one disturbance explains them.
    Open,
    /// Too many are late.
    Misses,
}

impl LatencySearchCampaign {
    /// The search of a plan whose workloads differ in their depth alone and ascend; `None` where
    /// the plan does not search a depth.
    pub fn planned(plan: &Plan) -> Option<Self> {
        let workloads = plan.workload_task()?;
        if workloads.decide != Decide::Depth {
            return None;
        }
        let target = workloads.list.first()?.shape.latency_target?;
        Some(Self::new(
            target,
            workloads.list.clone(),
            plan.time_limit_ns.or(plan.time_ns_max()),
        ))
    }

    fn new(target: LatencyTarget, workloads: Vec<Workload>, time_ns: Option<u64>) -> Self {
        Self {
            target,
            counted_from: vec![0; workloads.len()],
            drops: vec![0; workloads.len()],
            workloads,
            time_ns,
            credit: None,
            dropped: Vec::new(),
        }
    }

    /// The windows of a depth that were not dropped.
    fn counted<'a>(&self, index: usize, done: &'a [MeasuredCell]) -> Vec<&'a MeasuredCell> {
        let depth = self.workloads[index].depth;
        done.iter()
            .skip(self.counted_from[index])
            .filter(|measured| measured.cell.workload.depth == depth)
            .collect()
    }

    /// Drops the windows of a depth so far.
    fn drop_depth(&mut self, index: usize, done: &[MeasuredCell]) {
        if self.counted(index, done).is_empty() || self.drops[index] >= DROPS_MAX {
            return;
        }
        self.counted_from[index] = done.len();
        self.drops[index] += 1;
        self.dropped.push(CampaignRow {
            side: 0,
            workload: self.workloads[index].name.clone(),
        });
    }

    /// Drops the depths that were measured wholly or partly in a burst.
    fn drop_bursts(&mut self, done: &[MeasuredCell]) {
        let names: Vec<String> = self
            .workloads
            .iter()
            .map(|workload| workload.name.clone())
            .collect();
        self.credit = SideCredit::shown(done, 0, &SideDisks::One, &names);
        let Some(credit) = self.credit.clone() else {
            return;
        };
        for index in 0..self.workloads.len() {
            let counted = self.counted(index, done);
            if counted.iter().any(|window| credit.is_burst(window)) {
                self.drop_depth(index, done);
            }
        }
    }

    /// Drops all depths where the rate of the promised one has fallen since its first window: what
    /// was measured so far was faster than what lasts.
    fn drop_after_fall(&mut self, promised: usize, done: &[MeasuredCell]) {
        let rates: Vec<f64> = self.counted(promised, done).into_iter().map(rate).collect();
        let Some((first, later)) = rates.split_first() else {
            return;
        };
        if later.len() < FALL_WINDOWS || self.drops[promised] >= DROPS_MAX {
            return;
        }
        let lasting = &later[later.len() - FALL_WINDOWS..];
        if lasting.iter().all(|rate| *rate * FALL_MIN < *first) {
            for index in 0..self.workloads.len() {
                self.drop_depth(index, done);
            }
        }
    }

    /// Whether the promised depth was measured without a pause for as long as the search before it
    /// took, or runs at the rate that a limiter allows for ever.
    fn is_sustained(&self, promised: usize, done: &[MeasuredCell]) -> bool {
        if self.credit.is_some() {
            return true;
        }
        let depth = self.workloads[promised].depth;
        let last_other = done
            .iter()
            .rposition(|measured| measured.cell.workload.depth != depth);
        let Some(last_other) = last_other else {
            return true;
        };
        let (Some(first), Some(last)) = (done.first(), done.last()) else {
            return true;
        };
        let begin_ns = first
            .slice
            .start_ns
            .saturating_sub(first.cell.workload.warmup_ns);
        let searched_ns = done[last_other].end_ns().saturating_sub(begin_ns);
        let held_ns = last.end_ns().saturating_sub(done[last_other].end_ns());
        held_ns >= searched_ns
    }

    /// The requests in each counted window of a depth.
    fn windows(&self, index: usize, done: &[MeasuredCell]) -> Vec<LateRequests> {
        let counted = self.counted(index, done);
        counted.into_iter().map(late_requests).collect()
    }

    fn state(&self, index: usize, done: &[MeasuredCell]) -> DepthState {
        let windows = self.windows(index, done);
        let mut sum = LateRequests::default();
        for window in &windows {
            sum = sum.plus(*window);
        }
        let LateRequests { requests, late } = sum;
        let allowed = requests as f64 * (100.0 - self.target.percent) / 100.0;
        // A disk that pauses once delays all that is in flight.
        let workload = &self.workloads[index];
        let in_flight = f64::from(workload.depth) * f64::from(workload.workers);
        let by_chance = CHANCE_DEVIATIONS * allowed.sqrt() + PAUSES * in_flight;
        match windows.len() {
            0 => DepthState::Unmeasured,
            _ if self.target.holds(requests, late) => DepthState::Holds,
            WINDOWS.. => DepthState::Misses,
            _ if late as f64 > allowed + by_chance => DepthState::Misses,
            _ => DepthState::Open,
        }
    }

    /// The depth to measure next; `None` where the answer is known.
    fn next_index(&self, done: &[MeasuredCell]) -> Option<usize> {
        let count = self.workloads.len();
        let states: Vec<DepthState> = (0..count).map(|index| self.state(index, done)).collect();
        let miss = states.iter().position(|state| *state == DepthState::Misses);
        let below = &states[..miss.unwrap_or(count)];
        let open = below.iter().position(|state| *state == DepthState::Open);
        if open.is_some() {
            return open;
        }
        let hold = below.iter().rposition(|state| *state == DepthState::Holds);
        match (hold, miss) {
            (None, None) if count > 0 => Some(0),
            (None, None) => None,
            (None, Some(0)) => None,
            (None, Some(miss)) => Some(miss / 2),
            (Some(hold), None) if hold + 1 < count => {
                let doubled = self.workloads[hold].depth.saturating_mul(2);
                let deeper = self
                    .workloads
                    .iter()
                    .rposition(|workload| workload.depth <= doubled);
                deeper.map(|index| index.max(hold + 1))
            }
            (Some(hold), Some(miss)) if hold + 1 < miss => Some(hold.midpoint(miss)),
            (Some(hold), _) => {
                let has_few_windows = self.windows(hold, done).len() < WINDOWS;
                if has_few_windows || !self.is_sustained(hold, done) {
                    Some(hold)
                } else {
                    None
                }
            }
        }
    }

    /// The greatest depth that holds, below the first that misses.
    fn promised(&self, done: &[MeasuredCell]) -> Option<usize> {
        let mut promised = None;
        for index in 0..self.workloads.len() {
            match self.state(index, done) {
                DepthState::Holds => promised = Some(index),
                DepthState::Misses => break,
                DepthState::Unmeasured | DepthState::Open => {}
            }
        }
        promised
    }

    fn fits(&self, workload: &Workload, done: &[MeasuredCell]) -> bool {
        let (Some(time_ns), Some(first), Some(last)) = (self.time_ns, done.first(), done.last())
        else {
            return true;
        };
        let spent_ns = (last.slice.start_ns + last.slice.wall_ns)
            .saturating_sub(first.slice.start_ns)
            + first.cell.workload.warmup_ns;
        spent_ns + workload.warmup_ns + workload.stop.time_ns.unwrap_or(0) <= time_ns
    }
}

/// Requests per second of a window, reads and writes together.
fn rate(window: &MeasuredCell) -> f64 {
    rate_of_kinds(&window.slice, &[OpKind::Read, OpKind::Write])
}

/// The timed requests of a window, and how many of them were late.
fn late_requests(window: &MeasuredCell) -> LateRequests {
    timed_requests(|kind| window.slice.ops.get(&kind)?.late)
}

impl Campaign for LatencySearchCampaign {
    fn next(&mut self, done: &[MeasuredCell]) -> Option<CampaignCell> {
        self.drop_bursts(done);
        if let Some(promised) = self.promised(done) {
            self.drop_after_fall(promised, done);
        }
        let index = self.next_index(done)?;
        let mut workload = self.workloads[index].clone();
        if let Some(credit) = &self.credit {
            workload.warmup_ns = workload.warmup_ns.max(credit.warmup_ns());
        }
        if self.fits(&workload, done) {
            Some(CampaignCell::row(0, workload))
        } else {
            None
        }
    }

    fn take_dropped(&mut self) -> Vec<CampaignRow> {
        std::mem::take(&mut self.dropped)
    }
}

#[cfg(test)]
mod tests;
