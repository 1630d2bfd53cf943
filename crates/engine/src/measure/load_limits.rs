//! Limits on latency and rate that end a worker as failed. Checked at the end of a cell.

use crate::measure::result::EndReason;
use crate::measure::steady::{SteadyWatch, WorkDone};
use diskproof_model::measurement::{OpKind, SteadyOutcome};
use diskproof_model::series::Cell;
use diskproof_model::shape::{FloorUnit, LoadShape, RateFloor};

/// The rate may settle for this long, as in fio.
const SETTLE_NS: u64 = 2_000_000_000;

/// The limits of a worker, and what it did so far.
#[derive(Debug)]
pub(crate) struct LoadLimits {
    latency_ns: Option<u64>,
    floors: Vec<RateFloor>,
    start_ns: u64,
    /// Reads, and writes.
    done: [WorkDone; 2],
    /// The same when each floor was last checked, and when that was.
    checked: Vec<(u64, WorkDone)>,
    steady: Option<SteadyWatch>,
}

impl LoadLimits {
    /// The limits of a workload that starts at `start_ns`; `None` without any.
    pub(crate) fn of(shape: &LoadShape, start_ns: u64) -> Option<Box<Self>> {
        let has_any = shape.latency_limit_ns.is_some()
            || !shape.rate_floors.is_empty()
            || shape.steady.is_some();
        has_any.then(|| {
            Box::new(Self {
                latency_ns: shape.latency_limit_ns,
                floors: shape.rate_floors.clone(),
                start_ns,
                done: [WorkDone::default(); 2],
                checked: vec![(start_ns, WorkDone::default()); shape.rate_floors.len()],
                steady: shape.steady.map(|end| SteadyWatch::new(end, start_ns)),
            })
        })
    }

    /// Why the worker ends at `now`, after a cell with these events of each kind.
    pub(crate) fn check(&mut self, cell: impl Fn(OpKind) -> Cell, now: u64) -> Option<EndReason> {
        let mut longest_ns = 0;
        // A write that is a commit by itself counts as that only, and a trim before a write not at
        // all.
        let is_other = |kind: &OpKind| !matches!(kind, OpKind::Read | OpKind::Write);
        let others = OpKind::REQUESTS.into_iter().filter(is_other);
        let mut changes = [OpKind::Write, OpKind::Commit].into_iter().chain(others);
        let before = self.done.map(|done| done.ops);
        let mut count = |done: &mut WorkDone, kinds: &mut dyn Iterator<Item = OpKind>| {
            let counted = kinds
                .map(&cell)
                .inspect(|cell| longest_ns = longest_ns.max(cell.latency_max_ns))
                .reduce(|one, next| if one.ops > 0 { one } else { next });
            done.add(&counted.unwrap_or_default());
        };
        let [reads, writes] = &mut self.done;
        count(reads, &mut [OpKind::Read].into_iter());
        count(writes, &mut changes);
        if self.latency_ns.is_some_and(|most_ns| longest_ns > most_ns) {
            return Some(EndReason::TooSlow);
        }
        let [reads, writes] = self.done;
        let all = reads.with(writes);
        if self
            .steady
            .as_mut()
            .is_some_and(|steady| steady.check(all, now))
        {
            return Some(EndReason::Steady);
        }
        if now < self.start_ns.saturating_add(SETTLE_NS) {
            return None;
        }
        for (floor, checked) in self.floors.iter().zip(&mut self.checked) {
            let direction = usize::from(floor.of_writes);
            let done = self.done[direction];
            // As in fio, which checks when a request ends: a slow rate may be less than one each
            // time.
            if done.ops == before[direction] {
                continue;
            }
            let (at_ns, before) = *checked;
            // The first check after settling only sets the base.
            let is_base = at_ns == self.start_ns;
            if !is_base && now < at_ns.saturating_add(floor.over_ns) {
                continue;
            }
            *checked = (now, done);
            let moved = match floor.unit {
                FloorUnit::Ops => done.ops - before.ops,
                FloorUnit::Bytes => done.bytes - before.bytes,
            };
            if !is_base && (moved as f64 * 1e9 / (now - at_ns) as f64) < floor.floor {
                return Some(EndReason::BelowFloor);
            }
        }
        None
    }

    /// Whether the rate was steady, where that ends the worker.
    pub(crate) fn steady(&self) -> Option<SteadyOutcome> {
        self.steady.as_ref().map(SteadyWatch::outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn cell(ops: u64, latency_max_ns: u64) -> impl Fn(OpKind) -> Cell {
        move |kind| match kind {
            OpKind::Write => Cell {
                ops,
                bytes: ops * 4096,
                latency_max_ns,
                ..Cell::default()
            },
            _ => Cell::default(),
        }
    }

    #[test]
    fn one_latency_beyond_the_limit_ends_the_worker() {
        let shape = LoadShape {
            latency_limit_ns: Some(5000),
            ..LoadShape::default()
        };
        let mut limits = LoadLimits::of(&shape, SECOND).unwrap();
        assert_eq!(limits.check(cell(1, 5000), 2 * SECOND), None);
        assert_eq!(
            limits.check(cell(1, 5001), 2 * SECOND),
            Some(EndReason::TooSlow)
        );
        assert!(LoadLimits::of(&LoadShape::default(), 0).is_none());
    }

    /// `rate=1250` and `ratemin=1024` of requests of 4 KiB, as in an example of fio.
    #[test]
    fn a_rate_of_less_than_a_request_each_time_is_not_too_low() {
        for (pause, ending) in [(3, None), (5, Some(EndReason::BelowFloor))] {
            let shape = LoadShape {
                rate_floors: vec![RateFloor {
                    of_writes: true,
                    floor: 1024.0,
                    unit: FloorUnit::Bytes,
                    over_ns: SECOND,
                }],
                ..LoadShape::default()
            };
            let mut limits = LoadLimits::of(&shape, 0).unwrap();
            let mut seen = None;
            for second in 1..20 {
                let ops = u64::from(second % pause == 0);
                seen = seen.or(limits.check(cell(ops, 0), second * SECOND));
            }
            assert_eq!(seen, ending, "{pause}");
        }
    }

    #[test]
    fn rate_is_checked_over_its_time_after_it_has_settled() {
        let floor = |unit, floor| RateFloor {
            of_writes: true,
            floor,
            unit,
            over_ns: SECOND,
        };
        for (unit, least, over) in [
            (FloorUnit::Ops, 100.0, 101.0),
            (FloorUnit::Bytes, 409_600.0, 409_601.0),
        ] {
            for (least, ending) in [(least, None), (over, Some(EndReason::BelowFloor))] {
                let shape = LoadShape {
                    rate_floors: vec![floor(unit, least)],
                    ..LoadShape::default()
                };
                let mut limits = LoadLimits::of(&shape, 10 * SECOND).unwrap();
                // Nothing at all in the first two seconds; then one write each 10 ms.
                assert_eq!(limits.check(cell(0, 0), 12 * SECOND - 1), None);
                assert_eq!(limits.check(cell(1, 0), 12 * SECOND), None);
                let mut seen = None;
                for tick in 1..=100 {
                    seen = limits.check(cell(1, 0), 12 * SECOND + tick * SECOND / 100);
                    assert!(tick == 100 || seen.is_none());
                }
                assert_eq!(seen, ending, "{unit:?} {least}");
            }
        }
    }
}
