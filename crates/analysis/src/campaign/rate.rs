//! Runs the search for the highest rate on a real target: turns its rates into workloads, and the
//! measurements of these into trials. Equal trials give the same answer, during the measurement and
//! when a record is read again.
//!
//! A *rate cell* is a step of the abstract search ([`RateCell`]); a *cell* is its measurement as a
//! workload.

use super::decision::SERIES_CELL_NS;
use super::decision::{Campaign, CampaignCell, CampaignStep, CellPurpose, MeasuredCell};
use super::random_order::RandomOrder;
use super::rate_search::{
    Batch, MeasuredRate, RateAnswer, RateCell, RatePromise, RateSearch, RateSearchTimes,
    SearchStep, TRIALS_MAX,
};
use diskproof_model::plan::{Workload, Workloads};
use diskproof_model::rate::{RatePlan, RateTrial};
use diskproof_model::shape::{Arrivals, EarlyEnds, LatencyTarget, LoadShape, StartTimes};

/// The share of the time of a search that is kept for gaps between cells. Threads and queues start
/// in them, and requests in flight complete.
const GAPS_SHARE: f64 = 0.04;
/// The rate of a recorded trial may differ from that of the search by this share, because records
/// state rates as rounded text.
const ROUNDING_SHARE: f64 = 1e-9;

/// The campaign of a plan that searches rates: one search after another, one for each workload
/// whose rate is searched. Their order is random, so that a target that changes meanwhile does not
/// bend their common boundary.
#[derive(Debug)]
pub struct RateCampaign {
    workloads: Vec<Workload>,
    plan: RatePlan,
    seed: u64,
    /// Indices of the workloads that are still to be measured, the next one last.
    waiting: Vec<usize>,
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
    /// The rate cell that is measured now; `None` before the first.
    asked: Option<RateCell>,
}

impl RunningSearch {
    /// The next rate cell, from all measured cells of the campaign; `None` when the search is over.
    fn next(&mut self, done: &[MeasuredCell]) -> Option<RateCell> {
        let own = &done[self.first_cell..];
        let mut measured = None;
        if let Some(asked) = self.asked.take()
            && let [first, ..] = own
            && let [.., last] = own
        {
            let origin_ns = begin_ns(first.trial.as_ref()?);
            measured = Some(measured_rate(asked, last.trial.as_ref()?, origin_ns));
        }
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
    /// A campaign before its first cell. Workloads with a time of their own are measured before the
    /// searches: they keep the target busy, which uses up a short credit.
    pub fn new(workloads: &Workloads, plan: RatePlan, seed: u64) -> Self {
        let mut searched: Vec<usize> = workloads.searched().map(|(index, _)| index).collect();
        RandomOrder::new(seed).shuffle(&mut searched);
        let mut waiting = searched.clone();
        // The next one is last: the timed ones follow in reverse order.
        for index in (0..workloads.list.len()).rev() {
            if !searched.contains(&index) {
                waiting.push(index);
            }
        }
        Self {
            workloads: workloads.list.clone(),
            plan,
            seed,
            waiting,
            current: None,
        }
    }

    /// The next cell of the current search; `None` where there is no search, or it is over.
    fn next_of_search(&mut self, done: &[MeasuredCell]) -> Option<CampaignCell> {
        let current = self.current.as_mut()?;
        let rate_cell = current.next(done)?;
        let index = current.index;
        Some(CampaignCell {
            side: 0,
            workload: self.offered_workload(index, &rate_cell),
            purpose: CellPurpose::Trial(index, rate_cell.kind),
            pause_ns: 0,
        })
    }

    /// The workload with this index of the plan, at the rate and for the time of a rate cell.
    fn offered_workload(&self, index: usize, cell: &RateCell) -> Workload {
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

    /// The next cell of the current search, or else the first one of what waits; `None` where
    /// nothing is left.
    fn next_cell(&mut self, done: &[MeasuredCell]) -> Option<CampaignCell> {
        loop {
            if let Some(cell) = self.next_of_search(done) {
                return Some(cell);
            }
            self.current = None;
            let index = self.waiting.pop()?;
            let workload = &self.workloads[index];
            if workload.stop.time_ns.is_some() {
                return Some(CampaignCell::row(0, workload.clone()));
            }
            self.current = Some(RunningSearch {
                index,
                search: new_search(&self.plan, self.seed, index),
                first_cell: done.len(),
                asked: None,
            });
        }
    }
}

impl Campaign for RateCampaign {
    fn next(&mut self, done: &[MeasuredCell]) -> CampaignStep {
        CampaignStep::without_drops(self.next_cell(done))
    }
}

/// The answer of a search by its recorded trials. `index` is that of the workload in the plan. If
/// the search ended early, or a trial is not the one that it asks for, the answer is unfinished and
/// rests on the trials before that.
pub fn answer_of_trials(
    plan: &RatePlan,
    seed: u64,
    index: usize,
    trials: &[RateTrial],
) -> RateAnswer {
    let mut search = new_search(plan, seed, index);
    if trials.len() > TRIALS_MAX {
        return search.unfinished_answer();
    }
    let mut measured = None;
    let mut left = trials.iter();
    let origin_ns = trials.first().map(begin_ns).unwrap_or_default();
    loop {
        let cell = match search.next(measured) {
            SearchStep::Answer(answer) => return answer,
            SearchStep::Cell(cell) => cell,
        };
        match left.next() {
            Some(trial) if is_trial_of(&cell, trial) => {
                measured = Some(measured_rate(cell, trial, origin_ns));
            }
            _ => return search.unfinished_answer(),
        }
    }
}

fn is_trial_of(cell: &RateCell, trial: &RateTrial) -> bool {
    let distance = (cell.rate - trial.rate).abs();
    cell.kind == trial.kind && distance <= ROUNDING_SHARE * cell.rate
}

/// A search before its first cell, for the workload with this index of a plan.
fn new_search(plan: &RatePlan, seed: u64, index: usize) -> RateSearch {
    let promise = RatePromise {
        late_share: plan.late_share(),
        limit_s: plan.limit_ns as f64 / 1e9,
    };
    let (time_s, hold_s) = (plan.time_ns as f64 / 1e9, plan.hold_ns as f64 / 1e9);
    let times = RateSearchTimes::with_hold(time_s, hold_s, GAPS_SHARE);
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
            longest_s: batch.longest_ns as f64 / 1e9,
            waited_s: batch.waited_ns as f64 / 1e9,
        });
    }
    MeasuredRate {
        cell,
        batches,
        late_by_own_delay: trial.dispatch_late as f64,
        served: trial.served,
        gave_up: trial.is_over,
        start_s: begin_ns(trial).saturating_sub(origin_ns) as f64 / 1e9,
        end_s: trial.end_ns().saturating_sub(origin_ns) as f64 / 1e9,
    }
}

/// Rounds seconds to whole series cells, at least one. The result is in nanoseconds.
fn whole_cells(seconds: f64) -> u64 {
    let cell_ns = SERIES_CELL_NS as f64;
    ((seconds * 1e9 / cell_ns).round().max(1.0) * cell_ns) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::measurement::OpKind;
    use diskproof_model::rate::RateCellKind;
    use diskproof_model::window::{Window, WindowLatency};

    const MS: u64 = 1_000_000;

    /// A window of 250 ms with this many requests, the first of which is late.
    fn window(number: u64, requests: u64) -> Window {
        let mut answered = WindowLatency::default();
        answered.intended.record_many(20 * MS, 1);
        answered.intended.record_many(MS, requests - 1);
        Window {
            start_ns: number * 250 * MS,
            end_ns: (number + 1) * 250 * MS,
            threads: 1,
            ops: [(OpKind::Read, answered)].into_iter().collect(),
            ..Window::default()
        }
    }

    /// The requests of each batch of half a second, of a trial with these windows.
    fn batches(window_requests: &[u64]) -> Vec<u64> {
        let mut measurement = fixture::run().measurements.remove(2);
        measurement.workload.rate = Some(1000.0);
        measurement.workload.shape.latency_target = Some(LatencyTarget {
            latency_ns: 10 * MS,
            percent: 99.0,
            window_ns: 500 * MS,
        });
        measurement.windows.clear();
        for (number, requests) in (0..).zip(window_requests) {
            measurement.windows.push(window(number, *requests));
        }
        let trial = RateTrial::measured(0, RateCellKind::Near, &measurement).unwrap();
        assert_eq!(trial.total().late, window_requests.len() as u64);
        trial.batches.iter().map(|batch| batch.requests).collect()
    }

    /// A batch ends with the window that completes its length. The rest of a trial is too short to
    /// show how lateness varies, and belongs to the batch before it.
    #[test]
    fn batches_of_a_trial_are_whole_and_its_rest_belongs_to_the_last() {
        assert_eq!(batches(&[10, 20, 30, 40]), [30, 70]);
        assert_eq!(batches(&[10, 20, 30, 40, 50]), [30, 120]);
        assert_eq!(batches(&[10]), [10], "a trial has a batch in any case");
        assert_eq!(batches(&[]), [0]);
    }

    /// Records state rates as text: the last of 17 digits may differ.
    #[test]
    fn recorded_trial_is_that_of_a_cell_but_for_rounding() {
        let cell = RateCell {
            kind: RateCellKind::Near,
            rate: 1000.0,
            warmup_s: 0.0,
            time_s: 1.0,
            batch_s: 1.0,
            give_up_s: 1.0,
        };
        let measured = fixture::run().measurements.remove(2);
        let mut workload = measured.workload.clone();
        workload.rate = Some(1000.0);
        workload.shape.latency_target = Some(LatencyTarget {
            latency_ns: MS,
            percent: 99.0,
            window_ns: MS,
        });
        let measured = diskproof_model::measurement::Measurement {
            workload,
            ..measured
        };
        let trial = RateTrial::measured(0, RateCellKind::Near, &measured).unwrap();
        for (rate, kind, expected) in [
            (1000.0, RateCellKind::Near, true),
            (1_000.000_000_9, RateCellKind::Near, true),
            (1_000.000_002, RateCellKind::Near, false),
            (1000.0, RateCellKind::Repeated, false),
        ] {
            let trial = RateTrial {
                rate,
                kind,
                ..trial.clone()
            };
            assert_eq!(is_trial_of(&cell, &trial), expected, "{rate} {kind:?}");
        }
    }

    #[test]
    fn times_of_trials_are_whole_cells_of_a_series() {
        assert_eq!(whole_cells(0.0), SERIES_CELL_NS);
        assert_eq!(whole_cells(0.014), SERIES_CELL_NS);
        assert_eq!(whole_cells(0.016), 2 * SERIES_CELL_NS);
        assert_eq!(whole_cells(1.0), 1_000_000_000);
    }
}
