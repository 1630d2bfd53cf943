//! The search for the highest rate on a real target: turns the cells of the search into workloads,
//! and what they gave into what the search learns. The same trials lead to the same answer, while
//! it is measured as when a record is read again.

use super::decision::{Campaign, CampaignCell, CellPurpose, MeasuredCell, RandomOrder};
use super::rate_search::{
    Batch, MeasuredRate, RateAnswer, RateCell, RatePromise, RateSearch, RateSearchTimes, SearchStep,
};
use diskproof_model::plan::{Workload, Workloads};
use diskproof_model::rate::{RatePlan, RateTrial};
use diskproof_model::shape::{Arrivals, EarlyEnds, LatencyTarget, LoadShape, StartTimes};

/// A search of an hour has some 350 trials. Each is weighed with all before it, so that a record
/// with many more would take minutes to read.
const TRIALS_MAX: usize = 1000;
/// Share of the time for what lies between the cells: threads, queues, what is in flight at an end.
const BETWEEN_SHARE: f64 = 0.04;
/// Times are whole cells of the series.
const CELL_NS: f64 = 1e7;
/// Rates that a record states in text differ from those of the search by no more than this share.
const RATE_ROUNDING: f64 = 1e-9;

/// The searches of a plan: one for each workload whose rate is searched, in random order, so that a
/// target that changes meanwhile does not bend what they say together.
#[derive(Debug)]
pub struct RateCampaign {
    workloads: Vec<Workload>,
    plan: RatePlan,
    seed: u64,
    /// Places of the workloads that are still to be measured, the next one last.
    left: Vec<usize>,
    /// The search that is measured now.
    current: Option<RunningSearch>,
}

/// The search of one workload while it is measured.
#[derive(Debug)]
struct RunningSearch {
    /// The place of the workload in the plan.
    place: usize,
    search: RateSearch,
    /// The number of its first cell among all of the campaign.
    first_cell: usize,
    /// The cell that is measured now.
    asked: Option<RateCell>,
}

impl RunningSearch {
    /// What comes after these cells of the campaign; `None` when it is over.
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
    /// Offers the workloads of a task at the rates that the searches ask for. Those with a time of
    /// their own come first: the target is busy meanwhile, which uses up a short credit.
    pub fn new(workloads: &Workloads, plan: RatePlan, seed: u64) -> Self {
        let mut searched: Vec<usize> = workloads.searched().map(|(place, _)| place).collect();
        RandomOrder::new(seed).shuffle(&mut searched);
        let timed = (0..workloads.list.len()).rev();
        let mut left = searched.clone();
        left.extend(timed.filter(|place| !searched.contains(place)));
        Self {
            workloads: workloads.list.clone(),
            plan,
            seed,
            left,
            current: None,
        }
    }

    /// The next cell of the search that is measured now; `None` where there is none, or it is over.
    fn next_of_search(&mut self, done: &[MeasuredCell]) -> Option<CampaignCell> {
        let current = self.current.as_mut()?;
        let cell = current.next(done)?;
        let place = current.place;
        Some(CampaignCell {
            side: 0,
            workload: self.offered(place, &cell),
            purpose: CellPurpose::Trial(place, cell.kind),
        })
    }

    /// What is offered in a cell of the search of a workload.
    fn offered(&self, place: usize, cell: &RateCell) -> Workload {
        let template = &self.workloads[place];
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
            let place = self.left.pop()?;
            let workload = &self.workloads[place];
            if workload.stop.time_ns.is_some() {
                return Some(CampaignCell::row(0, workload.clone()));
            }
            self.current = Some(RunningSearch {
                place,
                search: search(&self.plan, self.seed, place),
                first_cell: done.len(),
                asked: None,
            });
        }
    }
}

/// What these trials of a search say; of one that ended early, or whose trials are not those that
/// it asks for, what the trials before that do.
/// `place` is that of the workload in the plan.
pub fn searched(plan: &RatePlan, seed: u64, place: usize, trials: &[RateTrial]) -> RateAnswer {
    let mut search = search(plan, seed, place);
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

/// The search of the workload at this place of a plan.
fn search(plan: &RatePlan, seed: u64, place: usize) -> RateSearch {
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
    RateSearch::new(promise, times, seed.wrapping_add(place as u64))
}

/// When a trial began, its warm-up included, in nanoseconds after the start of the run.
fn begin_ns(trial: &RateTrial) -> u64 {
    trial.start_ns.saturating_sub(trial.warmup_ns)
}

/// What the search learns from a trial; its time counts from `origin_ns` on.
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

/// So many seconds in whole cells of the series, at least one, in nanoseconds.
fn whole_cells(seconds: f64) -> u64 {
    ((seconds * 1e9 / CELL_NS).round().max(1.0) * CELL_NS) as u64
}
