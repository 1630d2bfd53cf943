//! A rate that is offered for a while, and what the target makes of it.

use diskproof_model::rate::RateCellKind;

/// A rate to offer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateCell {
    /// What it is for.
    pub kind: RateCellKind,
    /// Requests per second, at random times.
    pub rate: f64,
    /// Time before it counts, in seconds.
    pub warmup_s: f64,
    /// Time that counts, in seconds.
    pub time_s: f64,
    /// Length of the batches in which late requests are counted, in seconds.
    pub batch_s: f64,
    /// The cell ends when a request has waited for this long, in seconds.
    pub give_up_s: f64,
}

/// Requests of one batch.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Batch {
    /// All that were to start in it.
    pub requests: f64,
    /// Those that were late.
    pub late: f64,
}

/// A cell, and what it gave.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredRate {
    /// What was offered.
    pub cell: RateCell,
    /// The batches of its time that counts.
    pub batches: Vec<Batch>,
    /// Requests per second that were served.
    pub served: f64,
    /// Whether a request had waited for too long.
    pub is_over: bool,
    /// When it began, in seconds after the start of the search.
    pub start_s: f64,
    /// When it ended.
    pub end_s: f64,
}

/// A share of late requests that no slope explains: at least this, or ten times the promise.
const SATURATED_SHARE: f64 = 0.1;
const SATURATED_TIMES: f64 = 10.0;
/// Late requests spread over this share of the batches are no single cluster.
const SPREAD: f64 = 0.4;
const SPREAD_LATE_MIN: f64 = 100.0;

impl MeasuredRate {
    pub(super) fn rate(&self) -> f64 {
        self.cell.rate
    }

    pub(super) fn requests(&self) -> f64 {
        self.batches.iter().map(|batch| batch.requests).sum()
    }

    pub(super) fn late(&self) -> f64 {
        self.batches.iter().map(|batch| batch.late).sum()
    }

    /// Whether it was paced to find the limit, and not to exceed it.
    pub(super) fn measures_the_limit(&self) -> bool {
        match self.cell.kind {
            RateCellKind::Curve
            | RateCellKind::Near
            | RateCellKind::Repeated
            | RateCellKind::Hold
            | RateCellKind::Control => true,
            RateCellKind::Doubling | RateCellKind::Saturation => false,
        }
    }

    /// Whether it is so far above the promise that it only says where the limit is not: many
    /// requests were late, and not all in one cluster.
    pub(super) fn is_saturated(&self, late_share: f64) -> bool {
        let (late, requests) = (self.late(), self.requests());
        let many = SATURATED_TIMES * late_share;
        if late > SATURATED_SHARE.max(many) * requests {
            return true;
        }
        let late_batches = self
            .batches
            .iter()
            .filter(|batch| batch.late > 3.0 * late_share * batch.requests)
            .count();
        late > many * requests
            && late >= SPREAD_LATE_MIN
            && late_batches as f64 >= SPREAD * self.batches.len() as f64
    }
}
