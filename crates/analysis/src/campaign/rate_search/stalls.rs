//! Rare stalls: times in which the target answers nothing, and after which its queue drains. A few
//! of them may break a promise that the target keeps between them, and a search of minutes meets
//! none, one or two. Their late share is bounded as that of any rare event: by how many were met in
//! how much time.
//!
//! Of a stall of `length` at a rate that uses the share `use` of the target, the requests of
//! `length / (1 - use)` are late, because the queue drains with what the rate leaves free.

use super::cell::{Batch, MeasuredRate};
use super::fit::heavy_traffic;
use diskproof_model::rate::RateCellKind;

/// In cells that use more of the target, a stall looks like the end of its capacity.
const OBSERVED_USE_MAX: f64 = 0.95;
/// A batch belongs to a stall if its late share is this many times that of the cell's usual batch,
/// and of the promised one.
const STALLED_TIMES: f64 = 3.0;
/// A batch of which this share is late belongs to a stall in any case.
const STALLED_SHARE_MAX: f64 = 0.9;
/// The batches of a cell are usual as the least late eighth of them is: a stall of a second delays
/// most requests of a cell of ten seconds where the target is much used.
const QUIET_PART: usize = 8;
/// A rate of at least this share of another counts as the same or a higher one.
const SAME_RATE_SHARE: f64 = 0.97;
/// No late share is expected to be above this.
const EXPECTED_SHARE_MAX: f64 = 0.5;
/// A cluster of late requests is a stall from this many times the dispersion of a queue on: on
/// simulated queues without stalls, such clusters do not come. Smaller ones are in the dispersion
/// of the fit.
const CLUSTER_TIMES: f64 = 12.0;
/// Standard deviations of the upper end of a two-sided 95 % interval.
const NORMAL_95: f64 = 1.96;
/// With 95 %, events of which none came in a time are rarer than so many in it: -ln 0.05.
const NONE_SEEN: f64 = 3.0;

/// The lateness that a fit expects.
pub(super) struct FittedLateness {
    /// The promised late share, which is expected at `rate`.
    pub(super) promised: f64,
    /// The rate of the fit, per second.
    pub(super) rate: f64,
    /// The elasticity of the late share there.
    pub(super) slope: f64,
    /// The most that the target served when more was offered, per second.
    pub(super) served: f64,
}

impl FittedLateness {
    /// The late share that is expected at a rate.
    fn late_share_at(&self, rate: f64) -> f64 {
        let growth = (self.slope * (rate / self.rate - 1.0)).exp();
        (self.promised * growth).min(EXPECTED_SHARE_MAX)
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
            if is_within && !is_meant_to_be_late(cell, fitted) {
                evidence.observed_s += cell.batches.len() as f64 * cell.cell.batch_s;
                evidence.add_cell(cell, &cells[index + 1..], fitted);
            }
        }
        evidence
    }

    /// Adds the stalls of a cell. Those after it show whether its rate can be served.
    fn add_cell(&mut self, cell: &MeasuredRate, later: &[MeasuredRate], fitted: &FittedLateness) {
        let idle = 1.0 - cell.rate() / fitted.served;
        let cluster_min = CLUSTER_TIMES * heavy_traffic(1.0 - idle);
        let mut longest_s: f64 = 0.0;
        let mut whole_s = 0.0;
        for cluster in late_clusters(cell, fitted) {
            if cluster.late < cluster_min {
                continue;
            }
            let drained = if cluster.is_cut { 1.0 } else { idle };
            let length_s = cluster.late / cell.rate() * drained;
            if cluster.is_cut && cell.gave_up {
                whole_s = length_s;
            } else {
                longest_s = longest_s.max(length_s);
                self.add(length_s);
            }
        }
        if cell.gave_up {
            // A request waited for that long: it came as the stall began that ended the cell.
            self.add(cell.cell.give_up_s.max(whole_s));
            return;
        }
        if cell.is_saturated(fitted.promised) && is_served_later(cell, later, fitted) {
            whole_s = cell.late() / cell.rate() * idle;
        }
        if longest_s < whole_s {
            self.add(whole_s);
        }
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

/// Returns `true` if the cell shows the end of the capacity as it should, and not a stall.
fn is_meant_to_be_late(cell: &MeasuredRate, fitted: &FittedLateness) -> bool {
    match cell.cell.kind {
        RateCellKind::Saturation => true,
        RateCellKind::Control => cell.is_overloaded(fitted.promised),
        RateCellKind::Doubling
        | RateCellKind::Curve
        | RateCellKind::Near
        | RateCellKind::Repeated
        | RateCellKind::Hold => false,
    }
}

/// Returns `true` if a cell after this one kept the promise at no lower rate: the target did not
/// become slower, it stalled. Cells of other kinds are too short to tell, or meant to be late.
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
                && after.late() <= STALLED_TIMES * fitted.promised * after.requests()
        })
}

/// The late requests of adjacent batches that are clearly later than the others of their cell.
struct LateCluster {
    /// Late requests beyond what is usual.
    late: f64,
    /// The cell ended before the cluster did: the target may have stalled all the time.
    is_cut: bool,
}

/// The clusters of a cell.
fn late_clusters(cell: &MeasuredRate, fitted: &FittedLateness) -> Vec<LateCluster> {
    let mut shares: Vec<f64> = cell.batches.iter().map(Batch::late_share).collect();
    shares.sort_by(f64::total_cmp);
    let Some(quiet) = shares.get(shares.len().saturating_sub(1) / QUIET_PART) else {
        return Vec::new();
    };
    let usual = quiet.max(fitted.late_share_at(cell.rate()));
    let least = (STALLED_TIMES * usual.max(fitted.promised)).min(STALLED_SHARE_MAX);
    let mut clusters: Vec<LateCluster> = Vec::new();
    for batch in &cell.batches {
        let is_late = batch.late_share() > least;
        let late = batch.late - usual * batch.requests;
        match clusters.last_mut() {
            Some(cluster) if cluster.is_cut && is_late => cluster.late += late,
            Some(cluster) if !is_late => cluster.is_cut = false,
            _ if is_late => clusters.push(LateCluster { late, is_cut: true }),
            _ => {}
        }
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
