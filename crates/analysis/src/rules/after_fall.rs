//! Decides from the other workloads of a target whether a limiter explains the lasting fall of one
//! of them. A used-up credit limits all requests alike, but a full write cache slows writes alone.

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

/// A rate counts as that of the limiter up to this multiple of it, because a workload may have
/// begun with a little credit. Chosen, not measured.
const SAME_RATE_TIMES: f64 = 1.1;
/// From this share of the limiter's rate on, a workload waits for it. Chosen, not measured.
const SAME_RATE_SHARE: f64 = 0.8;

/// A time in which a workload ran without a break.
struct Stretch {
    /// By the clock of the run, like `end_ns`.
    start_ns: f64,
    end_ns: f64,
    /// In the unit of the fall, per second.
    rate: f64,
}

impl Fall {
    /// True if a rate is clearly above that of the limiter.
    fn is_above(self, rate: f64) -> bool {
        rate > SAME_RATE_TIMES * self.base
    }

    /// The evidence of a row. Slices that began before the fall and ended after it hold both rates
    /// and show nothing. A rate above the limiter's counts as free only if it moved more than the
    /// credit that refilled since the fall.
    pub(super) fn after(self, row: &Row) -> AfterFall {
        let mut was_faster = false;
        let mut is_limited = false;
        for stretch in stretches(row, self.unit) {
            let is_above = self.is_above(stretch.rate);
            if stretch.end_ns <= self.moment_ns {
                was_faster |= is_above;
            }
            if stretch.start_ns < self.moment_ns {
                continue;
            }
            let moved = stretch.rate * (stretch.end_ns - stretch.start_ns);
            let refilled = self.base * (stretch.end_ns - self.moment_ns);
            if is_above && moved > SAME_RATE_TIMES * refilled {
                return AfterFall::Free;
            }
            is_limited |= !is_above && stretch.rate >= SAME_RATE_SHARE * self.base;
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

    /// The number of workloads that it limits, if this is its unit; none if one of them was free.
    pub(super) fn limited_count(self, record: &Record) -> usize {
        let mut count = 0;
        for measured in closed_rows(record, self.target) {
            match self.after(measured.row) {
                AfterFall::Free => return 0,
                AfterFall::Limited => count += 1,
                AfterFall::Unknown => {}
            }
        }
        count
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

/// The slices of a row; the whole row where it has none.
fn stretches(row: &Row, unit: Unit) -> Vec<Stretch> {
    let mut stretches = Vec::new();
    for slice in &row.data.slices {
        stretches.push(Stretch {
            start_ns: slice.start_ns as f64,
            end_ns: (slice.start_ns + slice.wall_ns) as f64,
            rate: slice_rate(slice, unit),
        });
    }
    if stretches.is_empty() {
        stretches.push(Stretch {
            start_ns: row.data.start_ns as f64,
            end_ns: (row.data.start_ns + row.data.wall_ns) as f64,
            rate: rate_of(row, unit),
        });
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::window::{SliceOp, TimeSlice};

    const SECOND_NS: u64 = 1_000_000_000;

    /// A limiter of 1000 requests per second, whose credit ended after ten seconds.
    const FALL: Fall = Fall {
        target: 0,
        moment_ns: 10e9,
        base: 1000.0,
        unit: Unit::Requests,
    };

    /// Reads at so many per second from a second of the run on.
    fn slice(start_s: u64, wall_s: u64, iops: f64) -> TimeSlice {
        let op = SliceOp {
            iops,
            ..SliceOp::default()
        };
        TimeSlice {
            start_ns: start_s * SECOND_NS,
            wall_ns: wall_s * SECOND_NS,
            ops: [(OpKind::Read, op)].into_iter().collect(),
            slot: None,
        }
    }

    fn evidence(slices: &[TimeSlice]) -> AfterFall {
        let mut record = fixture::record();
        let row = fixture::measured(&mut record, "random-read-d32");
        row.data.slices = slices.to_vec();
        FALL.after(row)
    }

    /// Up to 1.1 times the limiter's rate, and from 0.8 times on, a rate is that of the limiter.
    #[test]
    fn workload_is_limited_if_it_was_faster_before_and_at_the_rate_after() {
        for (before, after, expected) in [
            (1101.0, 1100.0, AfterFall::Limited),
            (1101.0, 800.0, AfterFall::Limited),
            (1100.0, 1000.0, AfterFall::Unknown),
            (1101.0, 799.0, AfterFall::Unknown),
        ] {
            let found = evidence(&[slice(9, 1, before), slice(10, 1, after)]);
            assert_eq!(found, expected, "{before} {after}");
        }
    }

    /// A slice ends at the fall, or begins at it; one that the fall divides shows nothing.
    #[test]
    fn slice_around_the_fall_shows_nothing() {
        let before = slice(8, 1, 3000.0);
        let across = slice(9, 2, 1000.0);
        assert_eq!(
            evidence(&[before.clone(), across]),
            AfterFall::Unknown,
            "nothing after it"
        );
        let across = slice(9, 2, 3000.0);
        assert_eq!(
            evidence(&[across, slice(11, 1, 1000.0)]),
            AfterFall::Unknown,
            "nothing before it"
        );
        assert_eq!(
            evidence(&[before, slice(10, 1, 1000.0)]),
            AfterFall::Limited
        );
    }

    /// The limiter refills 1000 for each second since the fall. What is used beyond 1.1 times that
    /// did not come from it.
    #[test]
    fn workload_is_free_only_if_it_moved_more_than_was_refilled() {
        for (start_s, rate, expected) in [
            (10, 1101.0, AfterFall::Free),
            // In the second after a pause of one second 2200 may pass.
            (11, 2200.0, AfterFall::Unknown),
            (11, 2201.0, AfterFall::Free),
        ] {
            let found = evidence(&[slice(start_s, 1, rate)]);
            assert_eq!(found, expected, "{start_s} {rate}");
        }
    }
}
