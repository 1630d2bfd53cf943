//! Searches the greatest depth at which enough requests meet a latency limit. The depth doubles
//! from 1 until too many requests are late. Then the search bisects between the greatest depth that
//! holds and the smallest that misses. docs/latency-target.md explains it.
//!
//! A *window* is one cell of the campaign: a depth for a fixed time. The *promised* depth is the
//! present answer. It is measured without a pause for as long as the search before it took, so that
//! a rate that does not last is found. If a burst credit ends, the depths that were measured with
//! it are measured again. If the rate of the promised depth falls, all depths are.

use super::decision::{Campaign, CampaignCell, CampaignRow, CampaignStep, MeasuredCell};
use super::side_credit::{SideCredit, SideDisks};
use crate::estimate::LIMITER_FALL_MIN;
use crate::slices::rate_of_kinds;
use diskproof_model::latency_search::timed_requests;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{Decide, Plan, Workload};
use diskproof_model::shape::LatencyTarget;
use diskproof_model::window::LateRequests;

/// The promised depth is measured in at least this many windows. So is a depth that misses by so
/// little that one disturbance may explain it. With more windows a search takes longer; with fewer
/// a single disturbance decides.
const WINDOWS_MIN: usize = 3;
/// The search may try every depth up to this one.
const EVERY_DEPTH_MAX: u32 = 16;
/// Above [`EVERY_DEPTH_MAX`] it may try this many depths between a power of two and the next: more
/// would distinguish depths that differ by less than an eighth.
const DEPTHS_PER_DOUBLING: u32 = 8;

/// The depths that a search may try, ascending. The last one is `depth_max`.
pub fn search_depths(depth_max: u32) -> Vec<u32> {
    let mut depths: Vec<u32> = (1..=depth_max.min(EVERY_DEPTH_MAX)).collect();
    let mut depth = EVERY_DEPTH_MAX;
    while depth < depth_max {
        let power_of_two_below = 1 << depth.ilog2();
        depth = (depth + power_of_two_below / DEPTHS_PER_DOUBLING).min(depth_max);
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
    /// No window may end later than this, in nanoseconds after the start of the first; `None`
    /// without a limit.
    time_ns: Option<u64>,
    /// The burst credit that the cells so far show.
    credit: Option<SideCredit>,
    /// For each depth, the number of cells that were done when its windows began to count.
    counted_from: Vec<usize>,
    /// The number of times that the windows of each depth were dropped.
    drops: Vec<usize>,
    /// Rows that were dropped since the last step.
    dropped: Vec<CampaignRow>,
}

/// The windows of a depth are dropped at most this often: a search on a disk that keeps becoming
/// slower must still end.
const DROPS_MAX: usize = 3;
/// A fall of the promised depth's rate by [`LIMITER_FALL_MIN`] lasts if this many windows after it
/// are slower; then all depths are measured again.
const FALL_WINDOWS: usize = 2;

/// Chance may explain more late requests than allowed by up to this many standard deviations.
const CHANCE_DEVIATIONS: f64 = 3.0;
/// This many pauses of the disk are excused before a depth misses. Each pause makes all requests
/// in flight late. Chosen, not measured.
const PAUSES_EXCUSED: f64 = 2.0;

/// The judgement on a depth by its counted windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DepthState {
    /// No window was measured yet.
    Unmeasured,
    /// Enough requests meet it.
    Holds,
    /// Too many are late, but so few that a disturbance may explain them: more windows decide.
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

    /// The windows of the depth with this index that were not dropped.
    fn counted_windows<'a>(&self, index: usize, done: &'a [MeasuredCell]) -> Vec<&'a MeasuredCell> {
        let depth = self.workloads[index].depth;
        done.iter()
            .skip(self.counted_from[index])
            .filter(|measured| measured.cell.workload.depth == depth)
            .collect()
    }

    /// Drops the windows of a depth so far, unless that happened [`DROPS_MAX`] times already.
    fn drop_depth(&mut self, index: usize, done: &[MeasuredCell]) {
        if self.counted_windows(index, done).is_empty() || self.drops[index] >= DROPS_MAX {
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
        self.credit = SideCredit::from_cells(done, 0, &SideDisks::One, &names);
        let Some(credit) = self.credit.clone() else {
            return;
        };
        for index in 0..self.workloads.len() {
            let windows = self.counted_windows(index, done);
            if windows.iter().any(|window| credit.is_burst(window)) {
                self.drop_depth(index, done);
            }
        }
    }

    /// Drops all depths if the rate of the promised one has fallen since its first window: the
    /// earlier windows were faster than the rate that lasts.
    fn drop_after_fall(&mut self, promised: usize, done: &[MeasuredCell]) {
        let windows = self.counted_windows(promised, done);
        let rates: Vec<f64> = windows.into_iter().map(rate).collect();
        let Some((first, later)) = rates.split_first() else {
            return;
        };
        if later.len() < FALL_WINDOWS || self.drops[promised] >= DROPS_MAX {
            return;
        }
        let lasting = &later[later.len() - FALL_WINDOWS..];
        if lasting.iter().all(|rate| *rate * LIMITER_FALL_MIN < *first) {
            for index in 0..self.workloads.len() {
                self.drop_depth(index, done);
            }
        }
    }

    /// Returns `true` if the rate of the promised depth lasts: the depth was measured without a
    /// pause for as long as the search before it took, or it ran at the base rate of a limiter.
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
        let searched_ns = done[last_other].end_ns().saturating_sub(first.begin_ns());
        let held_ns = last.end_ns().saturating_sub(done[last_other].end_ns());
        held_ns >= searched_ns
    }

    /// The judgement on the depth with this index.
    fn state(&self, index: usize, done: &[MeasuredCell]) -> DepthState {
        let windows = self.counted_windows(index, done);
        if windows.is_empty() {
            return DepthState::Unmeasured;
        }
        let mut sum = LateRequests::default();
        for window in &windows {
            sum = sum.plus(late_requests(window));
        }
        let LateRequests { requests, late } = sum;
        if self.target.holds(requests, late) {
            return DepthState::Holds;
        }
        let allowed = requests as f64 * (100.0 - self.target.percent) / 100.0;
        let workload = &self.workloads[index];
        let in_flight = workload.total_depth() as f64;
        let excused = CHANCE_DEVIATIONS * allowed.sqrt() + PAUSES_EXCUSED * in_flight;
        if windows.len() >= WINDOWS_MIN || late as f64 > allowed + excused {
            DepthState::Misses
        } else {
            DepthState::Open
        }
    }

    /// The index of the depth to measure next; `None` where the answer is known.
    fn next_index(&self, done: &[MeasuredCell]) -> Option<usize> {
        let count = self.workloads.len();
        let states: Vec<DepthState> = (0..count).map(|index| self.state(index, done)).collect();
        let first_miss = states.iter().position(|state| *state == DepthState::Misses);
        let below = &states[..first_miss.unwrap_or(count)];
        let open = below.iter().position(|state| *state == DepthState::Open);
        if open.is_some() {
            return open;
        }
        let Some(last_hold) = below.iter().rposition(|state| *state == DepthState::Holds) else {
            return match first_miss {
                // Depth 1 misses: there is no smaller one.
                Some(0) => None,
                Some(first_miss) => Some(first_miss / 2),
                None if count > 0 => Some(0),
                None => None,
            };
        };
        let is_bracketed = last_hold + 1 == first_miss.unwrap_or(count);
        match first_miss {
            Some(first_miss) if !is_bracketed => Some(last_hold.midpoint(first_miss)),
            None if !is_bracketed => Some(self.doubled_depth(last_hold)),
            _ => {
                let windows = self.counted_windows(last_hold, done).len();
                let is_proven = windows >= WINDOWS_MIN && self.is_sustained(last_hold, done);
                if is_proven { None } else { Some(last_hold) }
            }
        }
    }

    /// The index of the greatest depth up to twice this one, or of the next depth where that is
    /// already more.
    fn doubled_depth(&self, index: usize) -> usize {
        let doubled = self.workloads[index].depth.saturating_mul(2);
        let mut deeper = index + 1;
        while deeper + 1 < self.workloads.len() && self.workloads[deeper + 1].depth <= doubled {
            deeper += 1;
        }
        deeper
    }

    /// The index of the greatest depth that holds, below the first that misses.
    fn promised_index(&self, done: &[MeasuredCell]) -> Option<usize> {
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

    /// Returns `true` if a window of this workload ends within the time of the search.
    fn has_time_for(&self, workload: &Workload, done: &[MeasuredCell]) -> bool {
        let (Some(time_ns), Some(first), Some(last)) = (self.time_ns, done.first(), done.last())
        else {
            return true;
        };
        let spent_ns =
            last.end_ns().saturating_sub(first.slice.start_ns) + first.cell.workload.warmup_ns;
        spent_ns + workload.warmup_ns + workload.stop.time_ns.unwrap_or(0) <= time_ns
    }

    /// The next window; `None` where the answer is known or the time is over.
    fn next_window(&self, done: &[MeasuredCell]) -> Option<CampaignCell> {
        let index = self.next_index(done)?;
        let mut workload = self.workloads[index].clone();
        if let Some(credit) = &self.credit {
            workload.warmup_ns = workload.warmup_ns.max(credit.warmup_ns());
        }
        if self.has_time_for(&workload, done) {
            Some(CampaignCell::row(0, workload))
        } else {
            None
        }
    }
}

/// Requests per second of a window, of all kinds together.
fn rate(window: &MeasuredCell) -> f64 {
    rate_of_kinds(&window.slice, &OpKind::REQUESTS)
}

/// The timed requests of a window, and how many of them were late.
fn late_requests(window: &MeasuredCell) -> LateRequests {
    timed_requests(|kind| window.slice.ops.get(&kind)?.late)
}

impl Campaign for LatencySearchCampaign {
    fn next(&mut self, done: &[MeasuredCell]) -> CampaignStep {
        // Bursts are dropped first, so that the promised depth is judged without them. The next
        // depth is then chosen by the windows that are left.
        self.drop_bursts(done);
        if let Some(promised) = self.promised_index(done) {
            self.drop_after_fall(promised, done);
        }
        let cell = self.next_window(done);
        CampaignStep {
            dropped: std::mem::take(&mut self.dropped),
            cell,
        }
    }
}

#[cfg(test)]
mod tests;
