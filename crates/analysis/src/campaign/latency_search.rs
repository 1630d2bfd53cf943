//! The search for the greatest depth at which most requests meet a latency limit: doubled from 1
//! until too many are late, then halved between what holds and what does not.
//! docs/latency-target.md explains it.

use super::decision::{Campaign, CampaignCell, MeasuredCell};
use diskproof_model::latency_search::timed_requests;
use diskproof_model::plan::{Plan, Workload};
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
}

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
    /// have no latency target.
    pub fn of(plan: &Plan) -> Option<Self> {
        Some(Self {
            target: plan.workloads.first()?.shape.latency_target?,
            workloads: plan.workloads.clone(),
            time_ns: plan.time_limit_ns,
        })
    }

    /// The requests in each window of a depth so far.
    fn windows(&self, index: usize, done: &[MeasuredCell]) -> Vec<LateRequests> {
        let depth = self.workloads[index].depth;
        let own = done.iter().filter(|one| one.cell.workload.depth == depth);
        let late = |one: &MeasuredCell| {
            timed_requests(|kind| one.slice.ops.get(&kind).and_then(|op| op.late))
        };
        own.map(late).collect()
    }

    fn state(&self, index: usize, done: &[MeasuredCell]) -> DepthState {
        let windows = self.windows(index, done);
        let sum = |sum: LateRequests, one: &LateRequests| sum.plus(*one);
        let LateRequests { requests, late } = windows.iter().fold(LateRequests::default(), sum);
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
        let of = |wanted| states.iter().position(move |state| *state == wanted);
        let miss = of(DepthState::Misses);
        let below = &states[..miss.unwrap_or(count)];
        if let Some(open) = of(DepthState::Open).filter(|open| *open < below.len()) {
            return Some(open);
        }
        let hold = below.iter().rposition(|state| *state == DepthState::Holds);
        match (hold, miss) {
            (None, None) => Some(0).filter(|_| count > 0),
            (None, Some(0)) => None,
            (None, Some(miss)) => Some(miss / 2),
            (Some(hold), None) if hold + 1 < count => {
                let doubled = self.workloads[hold].depth.saturating_mul(2);
                let deeper = self.workloads.iter().rposition(|one| one.depth <= doubled);
                deeper.map(|index| index.max(hold + 1))
            }
            (Some(hold), Some(miss)) if hold + 1 < miss => Some(hold.midpoint(miss)),
            (Some(hold), _) => Some(hold).filter(|hold| self.windows(*hold, done).len() < WINDOWS),
        }
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

impl Campaign for LatencySearchCampaign {
    fn next(&mut self, done: &[MeasuredCell]) -> Option<CampaignCell> {
        let workload = self.next_index(done).map(|index| &self.workloads[index]);
        let workload = workload
            .filter(|workload| self.fits(workload, done))?
            .clone();
        Some(CampaignCell { side: 0, workload })
    }
}

#[cfg(test)]
mod tests;
