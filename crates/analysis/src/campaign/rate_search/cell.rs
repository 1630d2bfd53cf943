//! The cells of a rate search: a rate that is offered for some seconds, and the requests that were
//! late meanwhile.

use diskproof_model::rate::RateCellKind;

/// A rate to offer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateCell {
    /// The step of the search that asked for it.
    pub kind: RateCellKind,
    /// Requests per second, at random times.
    pub rate: f64,
    /// The time before requests count, in seconds.
    pub warmup_s: f64,
    /// The time during which requests count, in seconds.
    pub time_s: f64,
    /// Length of the batches in which late requests are counted, in seconds.
    pub batch_s: f64,
    /// The cell ends when a request has waited for this long, in seconds.
    pub give_up_s: f64,
}

/// The requests of one batch. A cell is divided into batches to see clusters of late requests.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Batch {
    /// Requests that were to start in the batch.
    pub requests: f64,
    /// Those that were late.
    pub late: f64,
    /// The longest of them, from its intended start, in seconds; 0 where it is unknown.
    pub longest_s: f64,
    /// Seconds for which a thread of this program waited for a processor.
    pub waited_s: f64,
}

impl Batch {
    /// The share of its requests that were late; 0 without any.
    pub(super) fn late_share(&self) -> f64 {
        self.late / self.requests.max(1.0)
    }
}

/// A cell with its measured batches.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredRate {
    /// The rate that was offered.
    pub cell: RateCell,
    /// The batches of the counted time.
    pub batches: Vec<Batch>,
    /// Requests that only a delay of this program made late.
    pub late_by_own_delay: f64,
    /// Requests per second that were served.
    pub served: f64,
    /// The cell ended early, because a request waited for longer than `give_up_s`.
    pub gave_up: bool,
    /// When it began, in seconds after the start of the search.
    pub start_s: f64,
    /// When it ended.
    pub end_s: f64,
}

/// From this share of late requests on a cell is saturated, unless its queue recovered. The curve
/// of the fit describes no such share.
const SATURATED_SHARE: f64 = 0.1;
/// A queue did not recover where at least this share of the batches is late. After a stall the late
/// requests of a cell count like others: dropping them would promise what the target keeps between
/// its stalls.
const UNRECOVERED_BATCHES_MIN: f64 = 0.8;
/// An overloaded cell is served at most at this share of its rate. `rate_study` was tried with it.
const OVERLOADED_SHARE: f64 = 0.93;
/// Fewer batches do not show whether a queue recovered: one before, one in and one after a stall.
const BATCHES_MIN: usize = 3;
/// A saturated cell has more than this many times the promised share of late requests: near cells
/// are within e of it.
const SATURATED_TIMES: f64 = 10.0;
/// Late requests are not a single cluster if at least this share of the batches is late: four
/// seconds of a near cell. It was fixed by simulation.
const LATE_BATCHES_MIN: f64 = 0.4;
/// With fewer late requests their spread over the batches is not judged: some ten in each.
const SPREAD_LATE_MIN: f64 = 100.0;
/// A batch is late if its share of late requests is more than this many times the promised one.
const LATE_BATCH_TIMES: f64 = 3.0;

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

    /// Returns `true` if its rate was chosen to find the limit, and not to exceed it.
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

    /// Returns `true` if more was offered than the target serves, and not only during a stall: the
    /// queue did not recover, and much was left in it.
    pub(super) fn is_overloaded(&self, late_share: f64) -> bool {
        let is_served = self.served >= OVERLOADED_SHARE * self.rate();
        self.gave_up || (self.is_saturated(late_share) && !is_served)
    }

    /// Returns `true` if it is so far above the limit that it only bounds the answer: many requests
    /// were late, and not all in one cluster.
    pub(super) fn is_saturated(&self, late_share: f64) -> bool {
        let (late, requests) = (self.late(), self.requests());
        let many = SATURATED_TIMES * late_share;
        let late_batches = self
            .batches
            .iter()
            .filter(|batch| batch.late > LATE_BATCH_TIMES * late_share * batch.requests)
            .count() as f64;
        // A batch without a request shows no recovery: nothing was served in it.
        let batches = self
            .batches
            .iter()
            .filter(|batch| batch.requests > 0.0)
            .count() as f64;
        if late > SATURATED_SHARE.max(many) * requests {
            return self.batches.len() < BATCHES_MIN
                || late_batches >= UNRECOVERED_BATCHES_MIN * batches;
        }
        late > many * requests
            && late >= SPREAD_LATE_MIN
            && late_batches >= LATE_BATCHES_MIN * batches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATE_SHARE: f64 = 0.01;

    /// A cell of 20 requests a second with these requests and late ones in its batches.
    fn cell(batches: &[(f64, f64)]) -> MeasuredRate {
        let mut measured = Vec::new();
        for &(requests, late) in batches {
            measured.push(Batch {
                requests,
                late,
                ..Batch::default()
            });
        }
        MeasuredRate {
            cell: RateCell {
                kind: RateCellKind::Doubling,
                rate: 20.0,
                warmup_s: 0.0,
                time_s: 2.0,
                batch_s: 0.2,
                give_up_s: 1.0,
            },
            batches: measured,
            late_by_own_delay: 0.0,
            served: 0.0,
            gave_up: false,
            start_s: 0.0,
            end_s: 2.0,
        }
    }

    /// Transactions of 600 ms: none was served in time, and all stand in the last batch.
    #[test]
    fn cell_that_served_nothing_is_overloaded() {
        let mut unserved = [(0.0, 0.0); 10];
        unserved[9] = (43.0, 43.0);
        assert!(cell(&unserved).is_overloaded(LATE_SHARE));
        // After a stall, the others are on time.
        let mut stalled = [(4.0, 0.0); 10];
        stalled[2] = (0.0, 0.0);
        stalled[3] = (8.0, 8.0);
        assert!(!cell(&stalled).is_overloaded(LATE_SHARE));
    }
}
