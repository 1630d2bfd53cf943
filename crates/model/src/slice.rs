//! A slice: a part of a workload that is measured by itself.

use crate::measurement::{Measurement, OpKind, SERIES_INTERVAL_NS};
use crate::shape::{EarlyEnds, StartTimes};
use crate::sync::SyncPolicy;
use crate::workload::{
    Access, CachePolicy, EngineChoice, EngineKind, Layout, Span, Verify, Workload,
};

/// The least time of a part of a workload that takes turns with others: parts lie well apart in
/// time, and the moment counts more than the length.
pub const TURN_NS_MIN: u64 = 250_000_000;
/// The fewest parts of a workload that takes turns. With three, Student's t makes an interval 2.2
/// times as wide as many would, with five 1.4 times, with eight 1.2 times; at equal time and
/// spread, three make it 2.97 times as wide as eight.
pub const TURNS_MIN: u64 = 3;
/// The most of them.
pub const TURNS_MAX: u64 = 8;
/// One of so many parts of a slice is its warm-up.
pub const WARMUP_PARTS: u64 = 10;

/// Whole cells of the series within this time, in nanoseconds.
pub fn whole_cells(ns: u64) -> u64 {
    ns / SERIES_INTERVAL_NS * SERIES_INTERVAL_NS
}

/// What the slices of a workload so far have done on one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EarlierSlices {
    /// About the bytes that they have moved, with those of their warm-ups. A sequential workload
    /// goes on behind them, and one whose workers share a map of the blocks visits what is left.
    pub moved_bytes: u64,
    /// About the requests that moved them. Pauses after so many of them go on counting.
    pub requests: u64,
    /// About the writes among these. A sync after several writes goes on counting.
    pub writes: u64,
    /// Nanoseconds that they took, with their warm-ups; 0 before the first.
    pub ran_ns: u64,
    /// The engine that carried the first of them, and carries all others; `None` before the first.
    pub engine: Option<EngineKind>,
}

impl EarlierSlices {
    /// Adds a slice with a warm-up of this length.
    pub fn add(&mut self, warmup_ns: u64, measured: &Measurement) {
        // The warm-up moved bytes at the same rate, which the measurement does not count.
        let warmup = warmup_ns as f64 / measured.wall_ns.max(1) as f64;
        for (kind, op) in &measured.ops {
            if kind.is_request() {
                self.requests += grown(op.count, warmup);
            }
            if *kind == OpKind::Write {
                self.writes += grown(op.count, warmup);
            }
        }
        self.moved_bytes += grown(measured.moved_bytes(), warmup);
        self.ran_ns += warmup_ns + measured.wall_ns;
        self.engine.get_or_insert(measured.engine.used);
    }

    /// The workload as it goes on behind them: it starts without the delay of its first slice.
    pub fn apply_to(&self, workload: &Workload) -> Workload {
        let mut next = workload.clone();
        if let Some(engine) = self.engine {
            next.engine = EngineChoice::Fixed(engine);
        }
        if self.ran_ns > 0 {
            next.shape.starts.delay_ns = 0;
        }
        next
    }
}

/// A count with this share of it in addition.
fn grown(count: u64, share: f64) -> u64 {
    (count as f64 * (1.0 + share)) as u64
}

/// Adds a slice to what those before it have done on each target.
pub fn add_slice(earlier: &mut Vec<EarlierSlices>, warmup_ns: u64, measured: &[Measurement]) {
    for measurement in measured {
        if earlier.len() <= measurement.target {
            earlier.resize(measurement.target + 1, EarlierSlices::default());
        }
        earlier[measurement.target].add(warmup_ns, measurement);
    }
}

/// Time and span of one slice of a workload, in place of what the workload asks for as a
/// whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SliceSpan {
    /// Measured time, in nanoseconds; `None` without a limit.
    pub time_ns: Option<u64>,
    /// Time before it in which nothing is measured, in nanoseconds.
    pub warmup_ns: u64,
    /// Bytes moved by all workers together, warm-up included; `None` without a limit.
    pub bytes: Option<u64>,
    /// The part of the target.
    pub span: Span,
}

impl SliceSpan {
    /// The span of all of a workload, in one go.
    pub fn whole(workload: &Workload) -> Self {
        Self {
            time_ns: workload.stop.time_ns,
            warmup_ns: workload.warmup_ns,
            bytes: workload.stop.bytes,
            span: workload.span,
        }
    }

    /// Nanoseconds of the slice with the warm-up; 0 without a limit.
    pub fn whole_ns(&self) -> u64 {
        match self.time_ns {
            Some(time_ns) => time_ns + self.warmup_ns,
            None => self.warmup_ns,
        }
    }

    /// The workload as it runs in this slice.
    pub fn apply_to(&self, workload: &Workload) -> Workload {
        let mut sliced = workload.clone();
        sliced.stop.time_ns = self.time_ns;
        sliced.stop.bytes = self.bytes;
        sliced.warmup_ns = self.warmup_ns;
        sliced.span = self.span;
        sliced
    }
}

impl Workload {
    /// True if parts of it mean the same as the whole. They do not of an offered load, a
    /// verification, trims of blocks that a part before has trimmed, the first pass over a new
    /// file, reads through the page cache, a limit in operations, and of all that counts or waits
    /// from its start, because each part begins anew: orders, pauses, a delay, a warm-up of its
    /// own, floors of the rate, a sync at the end or after several writes.
    pub fn is_divisible(&self) -> bool {
        let counts_to_sync = match self.sync {
            SyncPolicy::AtEnd => true,
            SyncPolicy::Every { writes, .. } => writes > 1,
            SyncPolicy::None
            | SyncPolicy::WithWrite { .. }
            | SyncPolicy::Shared { .. }
            | SyncPolicy::OtherDescriptor { .. } => false,
        };
        // Complete, so that whoever adds a field decides about it.
        let StartTimes {
            arrivals: _,
            think,
            delay_ns,
            flow: _,
            kind_rate,
            own_warmup,
        } = &self.shape.starts;
        let EarlyEnds {
            latency_limit_ns: _,
            overload_ns: _,
            rate_floors,
            steady,
            ops_after_warmup: _,
            ends_group: _,
            failure_ends_group: _,
            at_bad_block: _,
        } = &self.shape.ends;
        self.rate.is_none()
            && !counts_to_sync
            && !self.shape.final_sync
            && think.is_none()
            && kind_rate.is_none()
            && !own_warmup
            && *delay_ns == 0
            && steady.is_none()
            && rate_floors.is_empty()
            && self.shape.order.zone_stride.is_none()
            && self.verify == Verify::Off
            && !self.streams.drops_blocks()
            && self.layout == Layout::Needed
            && (self.cache == CachePolicy::Direct || self.sync != SyncPolicy::None)
            && matches!(self.access, Access::Sequential | Access::Random { .. })
            && self.stop.ops.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::{CacheUse, EngineUse, MeasuredSpan};

    /// A write with a sync is counted as a write and as a commit: the same bytes.
    #[test]
    fn slices_move_the_bytes_of_requests_once() {
        let engine = EngineUse {
            asked: EngineChoice::Auto,
            used: EngineKind::Sync,
            fallbacks: Vec::new(),
            features: Vec::new(),
            depth: None,
            done_before_wait: None,
        };
        let cache = CacheUse {
            asked: CachePolicy::Direct,
            used: CachePolicy::Direct,
            why: None,
        };
        let mut measured =
            Measurement::unmeasured(Workload::named("a"), MeasuredSpan::new(0, 1), engine, cache);
        measured.wall_ns = 900;
        for kind in [OpKind::Write, OpKind::Commit, OpKind::Sync] {
            measured.ops.entry(kind).or_default().bytes = 4096;
        }
        let mut earlier = EarlierSlices::default();
        earlier.add(0, &measured);
        measured.engine.used = EngineKind::Aio;
        earlier.add(900, &measured);
        let expected = EarlierSlices {
            moved_bytes: 3 * 4096,
            requests: 0,
            writes: 0,
            ran_ns: 3 * 900,
            engine: Some(EngineKind::Sync),
        };
        assert_eq!(earlier, expected);
    }

    #[test]
    fn start_delay_belongs_to_the_first_slice() {
        let mut workload = Workload::named("a");
        workload.shape.starts.delay_ns = 7;
        let mut earlier = EarlierSlices::default();
        assert_eq!(earlier.apply_to(&workload).shape.starts.delay_ns, 7);
        earlier.ran_ns = 1;
        assert_eq!(earlier.apply_to(&workload).shape.starts.delay_ns, 0);
    }

    #[test]
    fn whole_slice_is_the_workload_itself() {
        let mut workload = Workload::named("a");
        workload.warmup_ns = 5;
        workload.stop.time_ns = Some(7);
        workload.stop.ops = Some(3);
        let whole = SliceSpan::whole(&workload);
        assert_eq!(whole.apply_to(&workload), workload);
        assert_eq!(whole.whole_ns(), 12);
    }
}
