//! Rare stalls: times in which the target answers nothing, and after which its queue drains. A few
//! of them may break a promise that the target keeps between them, and a search of minutes meets
//! none, one or two. This file finds those that were met, and bounds their late share as that of
//! any rare event: by how many were met in how much time.
//!
//! Of a stall of `length` at a rate that uses the share `use` of the target, the requests of
//! `length / (1 - use)` are late, because the queue drains with what the rate leaves free. The
//! request that came first waited for all of it, which no request in a queue of that use does.
//!
//! A program that gets no processor looks like a target that stalls. Cells in which that was so
//! show no stall, and no time without one.

use super::cell::{Batch, MeasuredRate};
use super::evidence::Growth;
use super::fit::heavy_traffic;
use diskproof_model::rate::RateCellKind;

/// In cells that use more of the target, a stall looks like the end of its capacity: the saturated
/// rate is known to a few percent.
pub(super) const OBSERVED_USE_MAX: f64 = 0.95;
/// A batch belongs to a stall if its late share is this many times that of the cell's usual batch,
/// and of the promised one. `rate_study` was tried with it.
const STALLED_TIMES: f64 = 3.0;
/// A batch of which this share is late belongs to a stall in any case: no multiple of a usual share
/// of a third can be reached.
const STALLED_SHARE_MAX: f64 = 0.9;
/// The batches of a cell are usual as the least late eighth of them is: a stall of a second delays
/// most requests of a cell of ten seconds where the target is much used.
const QUIET_PART: usize = 8;
/// A rate of at least this share of another counts as the same or a higher one: the rates of near
/// cells differ by some percent.
const SAME_RATE_SHARE: f64 = 0.97;
/// No late share is expected to be above this, because the slope of the fit holds near its rate.
const EXTRAPOLATED_SHARE_MAX: f64 = 0.5;
/// A cluster of late requests is a stall from this many times the dispersion of a queue on: on the
/// queues without stalls of `rate_study`, such clusters do not come. Smaller ones are in the
/// dispersion of the fit.
const CLUSTER_TIMES: f64 = 12.0;
/// Of the requests that come in a stall all are late; a cluster with fewer than this share of them
/// is a few slow requests, while the target answered others.
const STALLED_REQUESTS_SHARE: f64 = 0.5;
/// A stall is this program's if it was kept off the processors for this share of its time, or made
/// this share of the late requests late: more than the target did.
const OWN_SHARE: f64 = 0.5;
/// Standard deviations of the upper end of a two-sided 95 % interval.
const NORMAL_95: f64 = 1.96;
/// With 95 %, events of which none came in a time are rarer than so many in it: -ln 0.05.
const NONE_SEEN: f64 = 3.0;

/// The lateness that a fit expects.
pub(super) struct FittedLateness {
    /// The promised late share, which is expected at `rate`.
    pub(super) promised: f64,
    /// Requests that take longer than this are late, in seconds.
    pub(super) limit_s: f64,
    /// The rate of the fit, per second.
    pub(super) rate: f64,
    /// The growth of the late share around it.
    pub(super) growth: Growth,
    /// The most that the target served when more was offered, per second.
    pub(super) served: f64,
}

impl FittedLateness {
    /// The late share that is expected at a rate.
    fn late_share_at(&self, rate: f64) -> f64 {
        (self.promised * self.growth.times(rate / self.rate)).min(EXTRAPOLATED_SHARE_MAX)
    }
}

/// The stalls that a search has met, in all its cells in which one shows.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StallEvidence {
    /// Stalls that were met.
    pub met: u32,
    /// The time in which they would have shown, in seconds.
    pub observed_s: f64,
    /// The sum of their lengths beyond the latency limit, in seconds.
    pub length_s: f64,
    /// Cells that show nothing, because this program stalled.
    pub own_cells: u32,
    /// The last hold is one of them.
    pub is_own_hold: bool,
    /// Late requests of these cells.
    own_late: f64,
    /// Late requests of all cells in which a stall would show.
    late: f64,
    /// The sum of the squares of their lengths.
    squares: f64,
    /// The longest one, in seconds.
    longest_s: f64,
}

impl StallEvidence {
    /// The stalls in these cells, in the order of time.
    pub(super) fn seen(cells: &[MeasuredRate], fitted: &FittedLateness) -> Self {
        let mut evidence = Self::default();
        for (index, cell) in cells.iter().enumerate() {
            let is_within = cell.rate() <= OBSERVED_USE_MAX * fitted.served;
            if !is_within || is_meant_to_be_late(cell, &cells[index + 1..], fitted) {
                continue;
            }
            evidence.late += cell.late();
            let stalls = stalls_of_cell(cell, &cells[index + 1..], fitted);
            let is_own = is_own(cell, &stalls);
            if cell.cell.kind == RateCellKind::Hold {
                evidence.is_own_hold = is_own;
            }
            if is_own {
                evidence.own_cells += 1;
                evidence.own_late += cell.late();
                continue;
            }
            evidence.observed_s += cell.batches.len() as f64 * cell.cell.batch_s;
            for stall in stalls {
                evidence.add(stall.length_s);
            }
        }
        evidence
    }

    /// The share of the late requests that were late in stalls of this program; 0 without any.
    pub fn own_late_share(&self) -> f64 {
        self.own_late / self.late.max(1.0)
    }

    fn add(&mut self, length_s: f64) {
        self.met += 1;
        self.length_s += length_s;
        self.squares += length_s * length_s;
        self.longest_s = self.longest_s.max(length_s);
    }

    /// The share of time that the target stalls, with 97.5 % at most: the upper end of the interval
    /// of a weighted sum of Poisson counts (Fay & Feuer 1997). 0 where no stall was met.
    pub(super) fn share_at_most(&self) -> f64 {
        if self.met == 0 {
            return 0.0;
        }
        // One more of the longest may come.
        let variance = self.squares + self.longest_s * self.longest_s;
        let mean = self.length_s + self.longest_s;
        let freedom = 2.0 * mean * mean / variance;
        variance / (2.0 * mean) * chi_square_at_most(freedom) / self.observed_s
    }

    /// The highest rate that keeps the promise even if stalls come as often as they may.
    pub(super) fn lowest_rate(&self, fitted: &FittedLateness) -> f64 {
        fitted.served * (1.0 - self.share_at_most() / fitted.promised).max(0.0)
    }

    /// Stalls of this length, in seconds, break the promise at this rate by themselves, if they
    /// come as rarely as a search can miss them. `None` where stalls were met.
    pub(super) fn unseen_length_s(&self, fitted: &FittedLateness, rate: f64) -> Option<f64> {
        if self.met > 0 {
            return None;
        }
        let idle = (1.0 - rate / fitted.served).max(0.0);
        Some(fitted.promised * self.unseen_every_s() * idle)
    }

    /// With 95 %, stalls of which none was met come less often than once in so many seconds.
    pub fn unseen_every_s(&self) -> f64 {
        self.observed_s / NONE_SEEN
    }
}

/// Returns `true` if the cell shows the end of the capacity as it should, and not a stall. A
/// control that gave up met a stall if the one that was measured in its place did not.
fn is_meant_to_be_late(
    cell: &MeasuredRate,
    later: &[MeasuredRate],
    fitted: &FittedLateness,
) -> bool {
    match cell.cell.kind {
        RateCellKind::Saturation => true,
        RateCellKind::Control => {
            let is_served_again = later
                .iter()
                .any(|after| after.cell.kind == RateCellKind::Control && !after.gave_up);
            let has_stalled = cell.gave_up && is_served_again;
            cell.is_overloaded(fitted.promised) && !has_stalled
        }
        RateCellKind::Doubling
        | RateCellKind::Curve
        | RateCellKind::Near
        | RateCellKind::Repeated
        | RateCellKind::Hold => false,
    }
}

/// Returns `true` if a cell after this one was served at no lower rate: the target did not become
/// slower, it stalled. Cells of other kinds are too short to show that, or meant to be late.
fn is_served_later(cell: &MeasuredRate, later: &[MeasuredRate], fitted: &FittedLateness) -> bool {
    let is_judged = match cell.cell.kind {
        RateCellKind::Near | RateCellKind::Repeated | RateCellKind::Hold => true,
        RateCellKind::Doubling
        | RateCellKind::Saturation
        | RateCellKind::Curve
        | RateCellKind::Control => false,
    };
    is_judged
        && later.iter().any(|after| {
            after.measures_the_limit()
                && !after.gave_up
                && after.rate() >= SAME_RATE_SHARE * cell.rate()
                && !after.is_saturated(fitted.promised)
        })
}

/// A stall in a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stall {
    /// Its length beyond the latency limit, in seconds.
    length_s: f64,
    /// Seconds of it for which this program waited for a processor, beyond what is usual in its
    /// cell.
    waited_s: f64,
}

/// Returns `true` if the stalls of a cell are those of this program, which did not get the
/// processor.
fn is_own(cell: &MeasuredRate, stalls: &[Stall]) -> bool {
    let length_s: f64 = stalls.iter().map(|stall| stall.length_s).sum();
    let waited_s: f64 = stalls.iter().map(|stall| stall.waited_s).sum();
    let is_kept_off = waited_s >= OWN_SHARE * length_s;
    let is_made_late = cell.late() > 0.0 && cell.late_by_own_delay >= OWN_SHARE * cell.late();
    !stalls.is_empty() && (is_kept_off || is_made_late)
}

/// The stalls of a cell. Those after it show whether its rate can be served.
fn stalls_of_cell(
    cell: &MeasuredRate,
    later: &[MeasuredRate],
    fitted: &FittedLateness,
) -> Vec<Stall> {
    let idle = 1.0 - cell.rate() / fitted.served;
    let batches = with_unusual_waits(cell);
    let whole = whole_cell(&batches);
    let mut stalls = Vec::new();
    let mut in_progress_s: f64 = 0.0;
    for cluster in late_clusters(cell, &batches, fitted) {
        if !cluster.is_stall(cell, fitted) {
            continue;
        }
        let stall = Stall {
            length_s: cluster.length_s(cell, fitted),
            waited_s: cluster.waited_s,
        };
        if cluster.is_cut && cell.gave_up {
            in_progress_s = stall.length_s;
        } else {
            stalls.push(stall);
        }
    }
    if cell.gave_up {
        // A request waited for that long: it came as the stall began that ended the cell.
        stalls.push(Stall {
            length_s: cell.cell.give_up_s.max(in_progress_s),
            waited_s: batches[batches.len() - batches_at_the_end(cell)..]
                .iter()
                .map(|batch| batch.waited_s)
                .sum(),
        });
    } else if stalls.is_empty()
        && cell.is_saturated(fitted.promised)
        && whole.is_stall(cell, fitted)
        && is_served_later(cell, later, fitted)
    {
        // No batch of it is quiet: the stall took most of it.
        stalls.push(Stall {
            length_s: if whole.longest_s > 0.0 {
                whole.longest_s - fitted.limit_s
            } else {
                whole.late / cell.rate() * idle
            },
            waited_s: whole.waited_s,
        });
    }
    stalls
}

/// The batches of a cell, in which this program waited only for as long as is not usual: every
/// thread that wakes up waits a little for its processor, and many wakes add up to a part of each
/// second.
fn with_unusual_waits(cell: &MeasuredRate) -> Vec<Batch> {
    let mut batches = cell.batches.clone();
    let usual_s = match batches.len() - batches_at_the_end(cell) {
        0 => usual_wait_s(&batches),
        before => usual_wait_s(&batches[..before]),
    };
    for batch in &mut batches {
        batch.waited_s = (batch.waited_s - usual_s).max(0.0);
    }
    batches
}

/// The batches in which a cell that gave up waited for its longest request, and the one before
/// them; none of other cells.
fn batches_at_the_end(cell: &MeasuredRate) -> usize {
    if !cell.gave_up {
        return 0;
    }
    let waited_for = (cell.cell.give_up_s / cell.cell.batch_s).ceil() as usize;
    cell.batches.len().min(waited_for + 1)
}

/// The wait for a processor of a quiet batch, in seconds; 0 without any.
fn usual_wait_s(batches: &[Batch]) -> f64 {
    let mut waits_s: Vec<f64> = batches.iter().map(|batch| batch.waited_s).collect();
    waits_s.sort_by(f64::total_cmp);
    match waits_s.get(waits_s.len().saturating_sub(1) / QUIET_PART) {
        Some(quiet_s) => *quiet_s,
        None => 0.0,
    }
}

/// The late requests of adjacent batches that are clearly later than the others of their cell.
struct LateCluster {
    /// Late requests beyond what is usual.
    late: f64,
    /// The cell ended before the cluster did: the target may have stalled all the time.
    is_cut: bool,
    /// The longest request, in seconds; 0 where it is unknown.
    longest_s: f64,
    /// Seconds for which this program waited for a processor, in these batches and before them:
    /// requests are counted as they are answered, after the stall.
    waited_s: f64,
}

impl LateCluster {
    /// The length of the stall beyond the latency limit, in seconds. The late requests of an older
    /// record have no longest one.
    fn length_s(&self, cell: &MeasuredRate, fitted: &FittedLateness) -> f64 {
        let idle = 1.0 - cell.rate() / fitted.served;
        let by_longest_s = (self.longest_s - fitted.limit_s).max(0.0);
        match (self.is_cut, self.longest_s > 0.0) {
            (true, true) => by_longest_s,
            (true, false) => self.late / cell.rate(),
            // Several stalls may be in it.
            (false, _) => (self.late / cell.rate() * idle).max(by_longest_s),
        }
    }

    /// Returns `true` if no queue of this use has such a cluster.
    fn is_stall(&self, cell: &MeasuredRate, fitted: &FittedLateness) -> bool {
        let usage = cell.rate() / fitted.served;
        let late_min = CLUSTER_TIMES * heavy_traffic(usage);
        if self.longest_s <= 0.0 {
            return self.late >= late_min;
        }
        // A stall that drains leaves so many late requests. One that is cut had no time to.
        let length_min_s = late_min * (1.0 - usage) / cell.rate();
        let beyond_limit_s = self.longest_s - fitted.limit_s;
        let came_in_it = beyond_limit_s * cell.rate();
        let are_all_late = self.is_cut || self.late >= STALLED_REQUESTS_SHARE * came_in_it;
        beyond_limit_s >= length_min_s
            && self.late >= CLUSTER_TIMES * heavy_traffic(0.0)
            && are_all_late
    }

    fn add(&mut self, batch: &Batch, usual: f64) {
        self.late += batch.late - usual * batch.requests;
        self.longest_s = self.longest_s.max(batch.longest_s);
        self.waited_s += batch.waited_s;
    }
}

/// All batches of a cell as one cluster.
fn whole_cell(batches: &[Batch]) -> LateCluster {
    let mut whole = LateCluster {
        late: 0.0,
        is_cut: true,
        longest_s: 0.0,
        waited_s: 0.0,
    };
    for batch in batches {
        whole.add(batch, 0.0);
    }
    whole
}

/// The clusters of a cell.
fn late_clusters(
    cell: &MeasuredRate,
    batches: &[Batch],
    fitted: &FittedLateness,
) -> Vec<LateCluster> {
    let mut shares: Vec<f64> = batches.iter().map(Batch::late_share).collect();
    shares.sort_by(f64::total_cmp);
    let Some(quiet) = shares.get(shares.len().saturating_sub(1) / QUIET_PART) else {
        return Vec::new();
    };
    let usual = quiet.max(fitted.late_share_at(cell.rate()));
    let least = (STALLED_TIMES * usual.max(fitted.promised)).min(STALLED_SHARE_MAX);
    let mut clusters: Vec<LateCluster> = Vec::new();
    let mut before_waited_s = 0.0;
    for batch in batches {
        let is_late = batch.late_share() > least;
        match clusters.last_mut() {
            Some(cluster) if cluster.is_cut && is_late => cluster.add(batch, usual),
            Some(cluster) if !is_late => cluster.is_cut = false,
            _ if is_late => {
                let mut cluster = LateCluster {
                    late: 0.0,
                    is_cut: true,
                    longest_s: 0.0,
                    waited_s: before_waited_s,
                };
                cluster.add(batch, usual);
                clusters.push(cluster);
            }
            _ => {}
        }
        // Nothing is answered in a stall, so that its batches may be empty.
        before_waited_s = if batch.requests > 0.0 {
            batch.waited_s
        } else {
            before_waited_s + batch.waited_s
        };
    }
    clusters
}

/// The upper end of the 95 % interval of a Poisson mean of which so many events were counted.
pub(super) fn count_at_most(events: f64) -> f64 {
    chi_square_at_most(2.0 * (events + 1.0)) / 2.0
}

/// The 97.5 % quantile of chi-square with so many degrees of freedom (Wilson & Hilferty 1931):
/// 11.13 of 11.14 with four.
fn chi_square_at_most(freedom: f64) -> f64 {
    let spread = 2.0 / (9.0 * freedom);
    freedom * (1.0 - spread + NORMAL_95 * spread.sqrt()).powi(3)
}
