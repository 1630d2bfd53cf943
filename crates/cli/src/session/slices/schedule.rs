//! Plans the slices of one group of workloads: how many there are, how long the next one is, and
//! what is left of the group's time and bytes.

use crate::flags::SECOND_NS;
use diskproof_model::group::Group;
use diskproof_model::measurement::{Measurement, OpKind, SERIES_INTERVAL_NS};
use diskproof_model::plan::Order;
use diskproof_model::slice::{
    EarlierSlices, SliceSpan, TURN_NS_MIN, TURNS_MAX, TURNS_MIN, WARMUP_PARTS, add_slice,
    whole_cells,
};
use diskproof_model::window::SLICES_MIN;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The least length of a slice, and the number of slices of a workload. Fewer and shorter ones are
/// taken where the least number would not fit.
struct Slicing {
    slice_ns: u64,
    slices: RangeInclusive<u64>,
}

/// The slices of workloads that are measured alternately.
const IN_TURNS: Slicing = Slicing {
    slice_ns: TURN_NS_MIN,
    slices: TURNS_MIN..=TURNS_MAX,
};
/// The slices of a workload by itself, which follow each other. Three are the fewest whose
/// differences the interval of a rate covers (docs/compare.md).
const IN_A_ROW: Slicing = Slicing {
    slice_ns: SECOND_NS,
    slices: 3..=5,
};
/// A slow disk gets at least this many slices, or one where they do not fit: fewer do not decide
/// whether the rate has settled (docs/compare.md).
const SLOW_SLICES_MIN: u64 = 5;
/// A single workload of `run` is measured in slices from this time on (docs/compare.md): it then
/// has four of them.
const RUN_NS_MIN: u64 = 4 * SECOND_NS;
/// A slice that is shorter than this many latencies would measure how a queue fills. Chosen, not
/// measured.
const LATENCIES_MIN: f64 = 10.0;
/// A workload that got less than this share of its planned time is reported as shortened. Chosen,
/// not measured.
const SHORTENED_SHARE: f64 = 0.9;

/// Groups of workloads whose slices are measured alternately. A group without slices is alone.
pub(super) type Rotation<'p> = Vec<SliceSchedule<'p>>;

/// A group of workloads, and what is left of it.
pub(crate) struct SliceSchedule<'a> {
    /// The group.
    pub group: Group<'a>,
    /// Slices that are measured.
    pub done: u64,
    /// Slices that are left.
    pub left: u64,
    /// Time that is left, warm-up included, in nanoseconds.
    pub(super) left_ns: u64,
    /// Bytes that are left, where they are limited.
    left_bytes: Option<u64>,
    /// What the slices so far have done on each target.
    pub(crate) earlier: Vec<EarlierSlices>,
    /// Time that its slices so far were planned to get, in nanoseconds.
    pub(super) planned_ns: u64,
    /// Time that they got, in nanoseconds.
    given_ns: u64,
    /// Time that a slice takes beyond its own, in nanoseconds; `None` before the first.
    pub(super) overhead_ns: Option<u64>,
}

impl<'a> SliceSchedule<'a> {
    pub(super) fn new(group: Group<'a>, order: Order) -> Self {
        let first = &group.workloads[0];
        let left_ns = group.whole_ns().unwrap_or(group.warmup_ns());
        Self {
            group,
            done: 0,
            left: slice_count(group, order),
            left_ns,
            left_bytes: first.stop.bytes,
            earlier: Vec::new(),
            planned_ns: 0,
            given_ns: 0,
            overhead_ns: None,
        }
    }

    /// True of a method of making commits durable, alone or alongside other load.
    pub(super) fn commits(&self) -> bool {
        self.group.workloads[0].commits()
    }

    /// True once enough slices are done to let the workload end early: most of them.
    pub(crate) fn may_end(&self) -> bool {
        self.done >= SLICES_MIN as u64 && self.done > self.left
    }

    /// True while the group is to be measured as a whole, in one slice.
    pub(crate) fn is_whole(&self) -> bool {
        self.done == 0 && self.left == 1
    }

    /// The planned time of the next slice, in nanoseconds. The first one has the whole warm-up of
    /// the workload in addition to its share of the time.
    fn next_ns(&self) -> u64 {
        debug_assert!(self.left > 0, "a slice is left");
        if self.left == 1 {
            return self.left_ns;
        }
        let warmup_ns = match self.done {
            0 => self.group.warmup_ns(),
            _ => 0,
        };
        warmup_ns + whole_cells((self.left_ns - warmup_ns) / self.left.max(1))
    }

    /// The next slice of each of its workloads, with this share of its planned time.
    pub(crate) fn next_slices(&self, share: f64) -> Vec<SliceSpan> {
        if !self.is_whole() {
            return vec![self.next_slice(share)];
        }
        let mut slices = Vec::new();
        for workload in self.group.workloads {
            let whole = SliceSpan::whole(workload);
            slices.push(SliceSpan {
                time_ns: whole.time_ns.map(|ns| share_of_time(ns, share)),
                warmup_ns: share_of_time(whole.warmup_ns, share),
                ..whole
            });
        }
        slices
    }

    /// The next slice of its only workload.
    pub(super) fn next_slice(&self, share: f64) -> SliceSpan {
        let workload = &self.group.workloads[0];
        let whole_ns = share_of_time(self.next_ns(), share);
        let warmup_ns = if self.done > 0 {
            whole_cells(whole_ns / WARMUP_PARTS).min(workload.warmup_ns)
        } else {
            share_of_time(workload.warmup_ns, share)
        };
        let block = u64::from(workload.block_bytes);
        SliceSpan {
            time_ns: Some(whole_ns.saturating_sub(warmup_ns).max(SERIES_INTERVAL_NS)),
            warmup_ns,
            bytes: self
                .left_bytes
                .map(|bytes| (bytes / self.left / block).max(1) * block),
            span: workload.span,
        }
    }

    /// Notes how long a slice, or the group as a whole, took with this share of its planned time.
    pub(crate) fn note_time(&mut self, share: f64, took: Duration) {
        let planned_ns = self.next_ns();
        let given_ns = share_of_time(planned_ns, share);
        self.planned_ns += planned_ns;
        self.given_ns += given_ns;
        self.overhead_ns = Some((took.as_nanos() as u64).saturating_sub(given_ns));
    }

    /// Drops all further slices, because the time of the run is over.
    pub(crate) fn drop_rest(&mut self) {
        self.planned_ns += self.left_ns;
        (self.left, self.left_ns) = (0, 0);
    }

    /// True if the workload got clearly less time than planned.
    pub(crate) fn is_shortened(&self) -> bool {
        is_much_less(self.given_ns, self.planned_ns)
    }

    /// The number of further slices that the latencies of the first one allow.
    fn slices_that_fit(&self, first: &[Measurement]) -> u64 {
        let shortest_ns = first.iter().map(longest_mean_ns).fold(0.0, f64::max) * LATENCIES_MIN;
        if first.iter().all(|one| shortest_ns <= one.wall_ns as f64) {
            return self.left;
        }
        let measured_ns = (self.left_ns - self.left_ns / WARMUP_PARTS) as f64;
        let further = (measured_ns / shortest_ns) as u64;
        if self.done + further >= SLOW_SLICES_MIN {
            further
        } else {
            1
        }
    }

    /// Takes over what this slice has measured, or the group as a whole. The caller must have taken
    /// the slice from [`Self::next_slices`], so that one was left.
    pub(crate) fn note_measured(&mut self, slice: &SliceSpan, measured: &[Measurement]) {
        if self.is_whole() {
            self.left = 0;
            return;
        }
        self.left_ns = self.left_ns.saturating_sub(self.next_ns());
        self.done += 1;
        self.left -= 1;
        let Some(first) = measured.first() else {
            return;
        };
        let moved_bytes = first.moved_bytes();
        self.left_bytes = self
            .left_bytes
            .map(|bytes| bytes.saturating_sub(moved_bytes));
        add_slice(&mut self.earlier, slice.warmup_ns, measured);
        if self.done == 1 && self.left > 1 {
            self.left = self.left.min(self.slices_that_fit(measured));
        }
        if let Some(bytes) = self.left_bytes
            && bytes < u64::from(self.group.workloads[0].block_bytes)
        {
            self.left = 0;
        }
    }

    /// The time that the remaining slices take beyond their own, in nanoseconds. Where it is not
    /// known, each takes `mean_ns`.
    pub(super) fn left_overhead_ns(&self, mean_ns: u64) -> u64 {
        self.left * self.slice_overhead_ns(mean_ns)
    }

    /// The time that one slice takes beyond its own; `mean_ns` where it is not known.
    pub(super) fn slice_overhead_ns(&self, mean_ns: u64) -> u64 {
        self.overhead_ns.unwrap_or(mean_ns)
    }

    /// True if two of the remaining slices can become one.
    pub(super) fn is_joinable(&self) -> bool {
        self.done > 0 && self.left > 1 && self.done + self.left > SLICES_MIN as u64
    }
}

/// True if a workload that got so much of its planned time is reported as shortened.
pub(crate) fn is_much_less(given_ns: u64, planned_ns: u64) -> bool {
    (given_ns as f64) < SHORTENED_SHARE * planned_ns as f64
}

/// A share of a time, in whole cells.
fn share_of_time(ns: u64, share: f64) -> u64 {
    if share < 1.0 {
        whole_cells((ns as f64 * share) as u64)
    } else {
        ns
    }
}

/// The slices of a group. One where parts would not mean the same, and of workloads that run
/// together.
pub(super) fn slice_count(group: Group<'_>, order: Order) -> u64 {
    let [only] = group.workloads else {
        return 1;
    };
    let Some(time_ns) = only.stop.time_ns else {
        return 1;
    };
    let Slicing { slice_ns, slices } = match order {
        Order::AsGiven if time_ns >= RUN_NS_MIN && only.stop.bytes.is_none() => IN_A_ROW,
        Order::InTurns { slices_from_ns } if time_ns >= slices_from_ns => IN_TURNS,
        Order::AsGiven | Order::InTurns { .. } | Order::Whole | Order::InSlots(_) => return 1,
    };
    if only.is_divisible() {
        (time_ns / slice_ns).clamp(*slices.start(), *slices.end())
    } else {
        1
    }
}

/// The longest mean latency of a kind of operation.
fn longest_mean_ns(measurement: &Measurement) -> f64 {
    let mut longest_ns: f64 = 0.0;
    for (kind, op) in &measurement.ops {
        if *kind != OpKind::Sync {
            longest_ns = longest_ns.max(op.latency.mean_ns());
        }
    }
    longest_ns
}
