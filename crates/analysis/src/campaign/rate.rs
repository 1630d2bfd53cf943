//! The search for the highest rate on a real target. It turns the cells of the search into
//! workloads, and their results into trials. Equal trials lead to the same answer, during the
//! measurement and when a record is read again.

use super::decision::{Campaign, CampaignCell, CellPurpose, MeasuredCell, RandomOrder};
use super::rate_search::{
    Batch, MeasuredRate, RateAnswer, RateCell, RatePromise, RateSearch, RateSearchTimes, SearchStep,
};
use diskproof_model::plan::{Workload, Workloads};
use diskproof_model::rate::{RatePlan, RateTrial};
use diskproof_model::shape::{Arrivals, EarlyEnds, LatencyTarget, LoadShape, StartTimes};

/// A record with more trials than this has no answer. Each trial is weighed with all before it, so
/// that many more would take minutes to read. A search of an hour has some 350.
const TRIALS_MAX: usize = 1000;
/// The share of the time that is kept for gaps between cells: threads, queues, and what is in
/// flight at the end of one.
const BETWEEN_SHARE: f64 = 0.04;
/// Times are whole cells of the series.
const CELL_NS: f64 = 1e7;
/// The rate of a recorded trial may differ from that of the search by this share: records state
/// rates as rounded text.
const RATE_ROUNDING: f64 = 1e-9;

/// The searches of a plan: one for each workload whose rate is searched. They run in random order,
/// so that a target that changes meanwhile does not bend their common boundary.
#[derive(Debug)]
pub struct RateCampaign {
    workloads: Vec<Workload>,
    plan: RatePlan,
    seed: u64,
    /// Indices of the workloads that are still to be measured, the next one last.
    left: Vec<usize>,
    /// The search whose cells are measured now.
    current: Option<RunningSearch>,
}

/// The search of one workload while it is measured.
#[derive(Debug)]
struct RunningSearch {
    /// The index of the workload in the plan.
    index: usize,
    search: RateSearch,
    /// The index of its first cell among all cells of the campaign.
    first_cell: usize,
    /// The cell whose measurement comes next.
    asked: Option<RateCell>,
}

impl RunningSearch {
    /// The next cell, from all measured cells of the campaign; `None` when the search is over.
    fn next(&mut self, done: &[MeasuredCell]) -> Option<RateCell> {
        let own = &done[self.first_cell..];
        let measured = match (self.asked.take(), own.first(), own.last()) {
            (Some(cell), Some(first), Some(last)) => {
                let origin_ns = begin_ns(first.trial.as_ref()?);
                Some(measured_rate(cell, last.trial.as_ref()?, origin_ns))
            }
            _ => None,
        };
        match self.search.next(measured) {
            SearchStep::Cell(cell) => {
                self.asked = Some(cell);
                Some(cell)
            }
            SearchStep::Answer(_) => None,
        }
    }
}

impl RateCampaign {
    /// A campaign that offers the workloads of a task at the rates that the searches ask for.
    /// Workloads with a time of their own come first: they keep the target busy, which uses up a
    /// short credit.
    pub fn new(workloads: &Workloads, plan: RatePlan, seed: u64) -> Self {
        let mut searched: Vec<usize> = workloads.searched().map(|(index, _)| index).collect();
        RandomOrder::new(seed).shuffle(&mut searched);
        let timed = (0..workloads.list.len()).rev();
        let mut left = searched.clone();
        left.extend(timed.filter(|index| !searched.contains(index)));
        Self {
            workloads: workloads.list.clone(),
            plan,
            seed,
            left,
            current: None,
        }
    }

    /// The next cell of the current search; `None` where there is no search, or it is over.
    fn next_of_search(&mut self, done: &[MeasuredCell]) -> Option<CampaignCell> {
        let current = self.current.as_mut()?;
        let cell = current.next(done)?;
        let index = current.index;
        Some(CampaignCell {
            side: 0,
            workload: self.offered(index, &cell),
            purpose: CellPurpose::Trial(index, cell.kind),
        })
    }

    /// The workload that is offered in a cell of a search.
    fn offered(&self, index: usize, cell: &RateCell) -> Workload {
        let template = &self.workloads[index];
        let mut workload = Workload {
            name: cell.kind.row_name(&template.name),
            rate: Some(cell.rate),
            warmup_ns: whole_cells(cell.warmup_s),
            shape: LoadShape {
                starts: StartTimes {
                    arrivals: Arrivals::Poisson,
                    ..template.shape.starts.clone()
                },
                ends: EarlyEnds {
                    overload_ns: Some(whole_cells(cell.give_up_s)),
                    ..template.shape.ends.clone()
                },
                latency_target: Some(LatencyTarget {
                    latency_ns: self.plan.limit_ns,
                    percent: self.plan.percent,
                    window_ns: whole_cells(cell.batch_s),
                }),
                ..template.shape.clone()
            },
            ..template.clone()
        };
        workload.stop.time_ns = Some(whole_cells(cell.time_s));
        workload
    }
}

impl Campaign for RateCampaign {
    fn next(&mut self, done: &[MeasuredCell]) -> Option<CampaignCell> {
        loop {
            if let Some(cell) = self.next_of_search(done) {
                return Some(cell);
            }
            self.current = None;
            let index = self.left.pop()?;
            let workload = &self.workloads[index];
            if workload.stop.time_ns.is_some() {
                return Some(CampaignCell::row(0, workload.clone()));
            }
            self.current = Some(RunningSearch {
                index,
                search: search(&self.plan, self.seed, index),
                first_cell: done.len(),
                asked: None,
            });
        }
    }
}

/// The answer of a search by its trials. `index` is that of the workload in the plan. If the search
/// ended early, or a trial is not the one that it asks for, the answer is unfinished and rests on
/// the trials before that.
pub fn searched(plan: &RatePlan, seed: u64, index: usize, trials: &[RateTrial]) -> RateAnswer {
    let mut search = search(plan, seed, index);
    let mut measured = None;
    let mut left = trials.iter();
    let origin_ns = trials.first().map(begin_ns).unwrap_or_default();
    if trials.len() > TRIALS_MAX {
        return search.unfinished();
    }
    loop {
        let cell = match search.next(measured) {
            SearchStep::Answer(answer) => return answer,
            SearchStep::Cell(cell) => cell,
        };
        match left.next() {
            Some(trial) if is_trial_of(&cell, trial) => {
                measured = Some(measured_rate(cell, trial, origin_ns));
            }
            _ => return search.unfinished(),
        }
    }
}

fn is_trial_of(cell: &RateCell, trial: &RateTrial) -> bool {
    let distance = (cell.rate - trial.rate).abs();
    cell.kind == trial.kind && distance <= RATE_ROUNDING * cell.rate
}

/// The search of the workload at this index of a plan.
fn search(plan: &RatePlan, seed: u64, index: usize) -> RateSearch {
    let promise = RatePromise {
        late_share: plan.late_share(),
        limit_s: plan.limit_ns as f64 / 1e9,
    };
    let usual = RateSearchTimes::within(plan.time_ns as f64 / 1e9);
    let times = RateSearchTimes {
        total_s: usual.total_s * (1.0 - BETWEEN_SHARE),
        hold_s: plan.hold_ns as f64 / 1e9,
        ..usual
    };
    RateSearch::new(promise, times, seed.wrapping_add(index as u64))
}

/// The start of a trial, its warm-up included, in nanoseconds after the start of the run.
fn begin_ns(trial: &RateTrial) -> u64 {
    trial.start_ns.saturating_sub(trial.warmup_ns)
}

/// Converts a trial for the search. Its times count from `origin_ns` on.
fn measured_rate(cell: RateCell, trial: &RateTrial, origin_ns: u64) -> MeasuredRate {
    let mut batches = Vec::new();
    for batch in &trial.batches {
        batches.push(Batch {
            requests: batch.requests as f64,
            late: batch.late as f64,
        });
    }
    MeasuredRate {
        cell,
        batches,
        served: trial.served,
        is_over: trial.is_over,
        start_s: begin_ns(trial).saturating_sub(origin_ns) as f64 / 1e9,
        end_s: trial
            .start_ns
            .saturating_add(trial.wall_ns)
            .saturating_sub(origin_ns) as f64
            / 1e9,
    }
}

/// Rounds seconds to whole cells of the series, at least one, in nanoseconds.
fn whole_cells(seconds: f64) -> u64 {
    ((seconds * 1e9 / CELL_NS).round().max(1.0) * CELL_NS) as u64
}
