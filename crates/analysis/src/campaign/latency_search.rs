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

/// The depth that was found is measured so often, and so is one that just fails.
const WINDOWS: usize = 3;
/// Depths up to this are all tried.
const EVERY_DEPTH_MAX: u32 = 16;
/// Above it, so many between a power of two and the next.
const DEPTHS_PER_DOUBLING: u32 = 8;

/// The depths that a search may try, ascending, the greatest one among them.
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

/// The search.
#[derive(Debug, Clone)]
pub struct LatencySearchCampaign {
    target: LatencyTarget,
    /// One for each depth, ascending.
    workloads: Vec<Workload>,
    /// No window begins that would end later, in nanoseconds after the start of the first.
    time_ns: Option<u64>,
    /// The credit that ended, as the cells so far show it.
    credit: Option<SideCredit>,
    /// For each depth, the number of cells that were done when its windows began to count.
    counted_from: Vec<usize>,
    /// How often the windows of each depth were dropped.
    drops: Vec<usize>,
    /// The rows that were dropped since the program asked last.
    dropped: Vec<CampaignRow>,
}

/// The windows of a depth are dropped so often at most: a disk that keeps falling has no answer.
const DROPS_MAX: usize = 3;
/// A promised depth whose rate falls by this factor is measured again.
const FALL_MIN: f64 = 1.1;
/// Windows after a fall that show that it lasts.
const FALL_WINDOWS: usize = 2;

/// Whether the latency is kept to at a depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DepthState {
    /// No window yet.
    Unmeasured,
    /// It is.
    Holds,
    /// It is not, but by so little that one disturbance explains it.
    Open,
    /// It is not.
    Misses,
}

impl LatencySearchCampaign {
    /// Of the workloads of a plan, which differ in their depth alone and ascend; `None` where they
    /// are not decided by their latencies.
    pub fn of(plan: &Plan) -> Option<Self> {
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

    /// The windows of a depth that count.
    fn counted<'a>(&self, index: usize, done: &'a [MeasuredCell]) -> Vec<&'a MeasuredCell> {
        let depth = self.workloads[index].depth;
        done.iter()
            .skip(self.counted_from[index])
            .filter(|one| one.cell.workload.depth == depth)
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
        let names: Vec<String> = self.workloads.iter().map(|one| one.name.clone()).collect();
        self.credit = SideCredit::shown(done, 0, &SideDisks::One, &names);
        let Some(credit) = self.credit.clone() else {
            return;
        };
        for index in 0..self.workloads.len() {
            let counted = self.counted(index, done);
            if counted.iter().any(|one| credit.is_burst(one)) {
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

    /// Whether the promised depth was measured without a pause for as long as the search before
    /// took, or runs at the rate that a limiter allows for ever.
    fn is_sustained(&self, promised: usize, done: &[MeasuredCell]) -> bool {
        if self.credit.is_some() {
            return true;
        }
        let depth = self.workloads[promised].depth;
        let other = done
            .iter()
            .rposition(|one| one.cell.workload.depth != depth);
        let Some(other) = other else {
            return true;
        };
        let (Some(first), Some(last)) = (done.first(), done.last()) else {
            return true;
        };
        let begin_ns = first
            .slice
            .start_ns
            .saturating_sub(first.cell.workload.warmup_ns);
        let searched_ns = done[other].end_ns().saturating_sub(begin_ns);
        let held_ns = last.end_ns().saturating_sub(done[other].end_ns());
        held_ns >= searched_ns
    }

    /// The requests in each window of a depth so far.
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
        // A disk that stands still once delays all that is in flight.
        let workload = &self.workloads[index];
        let in_flight = f64::from(workload.depth) * f64::from(workload.workers);
        let by_chance = 3.0 * allowed.sqrt() + 2.0 * in_flight;
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
                let deeper = self.workloads.iter().rposition(|one| one.depth <= doubled);
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

/// Requests per second of a window.
fn rate(one: &MeasuredCell) -> f64 {
    rate_of_kinds(&one.slice, &[OpKind::Read, OpKind::Write])
}

/// The requests of a window, and how many of them were late.
fn late_requests(one: &MeasuredCell) -> LateRequests {
    timed_requests(|kind| one.slice.ops.get(&kind)?.late)
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
