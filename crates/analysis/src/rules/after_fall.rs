//! The workloads of a target after one of them had become slower for good. They show the cause: a
//! credit limits all requests alike, and a write cache fills by writes alone.

use super::rule::*;
use crate::limiter::{Unit, rate_of, slice_rate, waits_for_disk};

/// A fall to a rate that may be that of a limiter.
#[derive(Clone, Copy)]
pub(super) struct Fall {
    pub(super) target: usize,
    /// By the clock of the run.
    pub(super) moment_ns: f64,
    /// The rate after it, in `unit` per second.
    pub(super) base: f64,
    pub(super) unit: Unit,
}

/// The evidence of a workload about a fall of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterFall {
    /// It was faster before, and ran at the same rate after it.
    Limited,
    /// It moved more than a limiter lets pass.
    Free,
    /// It did not run after it, or was slower all along.
    Unknown,
}

/// A rate counts as that of the limiter up to this multiple, and from the same share on: it may
/// have begun with a little credit.
const SAME_RATE_TIMES: f64 = 1.1;
/// From this share of the limiter's rate on, a workload waits for it.
const SAME_RATE_SHARE: f64 = 0.8;

/// A time in which a workload ran without a break.
struct Part {
    start_ns: f64,
    end_ns: f64,
    rate: f64,
}

impl Fall {
    /// True if a rate is clearly above that of the limiter.
    fn is_above(self, rate: f64) -> bool {
        rate > SAME_RATE_TIMES * self.base
    }

    /// The evidence of a row.
    pub(super) fn after(self, row: &Row) -> AfterFall {
        let mut was_faster = false;
        let mut is_limited = false;
        for part in parts(row, self.unit) {
            if part.end_ns <= self.moment_ns {
                was_faster |= self.is_above(part.rate);
            }
            if part.start_ns < self.moment_ns {
                continue;
            }
            let moved = part.rate * (part.end_ns - part.start_ns);
            let refilled = self.base * (part.end_ns - self.moment_ns);
            if self.is_above(part.rate) && moved > SAME_RATE_TIMES * refilled {
                return AfterFall::Free;
            }
            is_limited |= !self.is_above(part.rate) && part.rate >= SAME_RATE_SHARE * self.base;
        }
        if was_faster && is_limited {
            AfterFall::Limited
        } else {
            AfterFall::Unknown
        }
    }

    /// The rows of the target whose figures are above the rate of the limiter, and that do not show
    /// that nothing limits them.
    pub(super) fn rows_above(self, record: &Record) -> Vec<usize> {
        let mut above = Vec::new();
        for measured in closed_rows(record, self.target) {
            let rate = rate_of(measured.row, self.unit);
            if self.is_above(rate) && self.after(measured.row) != AfterFall::Free {
                above.push(measured.index);
            }
        }
        above
    }

    /// The evidence of the workloads that only read: `Free` if one is free, `Limited` if one is
    /// limited.
    pub(super) fn reads_after(self, record: &Record) -> AfterFall {
        let mut shown = AfterFall::Unknown;
        for measured in closed_rows(record, self.target) {
            if !measured.row.data.workload.streams.is_only(OpKind::Read) {
                continue;
            }
            match self.after(measured.row) {
                AfterFall::Free => return AfterFall::Free,
                AfterFall::Limited => shown = AfterFall::Limited,
                AfterFall::Unknown => {}
            }
        }
        shown
    }
}

/// The rows of a target whose next request waits for nothing but the disk.
fn closed_rows(record: &Record, target: usize) -> impl Iterator<Item = Measured<'_>> {
    real_rows(record).filter(move |measured| {
        let row = measured.row;
        row.data.target == target
            && !row.data.workload.is_paced()
            && row.figures.ping.is_none()
            && waits_for_disk(&row.data)
            && row.figures.together_with.is_empty()
    })
}

/// The slices of a row, or all of it.
fn parts(row: &Row, unit: Unit) -> Vec<Part> {
    let mut parts = Vec::new();
    for slice in &row.data.slices {
        parts.push(Part {
            start_ns: slice.start_ns as f64,
            end_ns: (slice.start_ns + slice.wall_ns) as f64,
            rate: slice_rate(slice, unit),
        });
    }
    if parts.is_empty() {
        parts.push(Part {
            start_ns: row.data.start_ns as f64,
            end_ns: (row.data.start_ns + row.data.wall_ns) as f64,
            rate: rate_of(row, unit),
        });
    }
    parts
}
