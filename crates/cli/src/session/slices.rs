//! Slices: a workload is measured in several parts that lie apart in time, so that its interval
//! covers what varies from one moment to the next. Decides how many there are, how long and in
//! which order: what a step takes longer than planned, the later slices get less. Measures nothing.

use crate::flags::SECOND;
use diskproof_engine::random::Random;
use diskproof_model::group::Group;
use diskproof_model::measurement::{Measurement, OpKind, SERIES_INTERVAL_NS};
use diskproof_model::plan::{EngineChoice, Order, Plan};
use diskproof_model::slice::{
    SliceSpan, TURN_NS_MIN, TURNS_MAX, TURNS_MIN, WARMUP_PARTS, whole_cells,
};
use diskproof_model::window::SLICES_MIN;
use std::time::{Duration, Instant};

/// The least length of a slice, and the number of slices of a workload. Fewer and shorter ones are
/// taken where the least number would not fit.
struct Slicing {
    slice_ns: u64,
    slices: std::ops::RangeInclusive<u64>,
}

/// The slices of workloads that are measured alternately.
const IN_TURNS: Slicing = Slicing {
    slice_ns: TURN_NS_MIN,
    slices: TURNS_MIN..=TURNS_MAX,
};
/// The slices of a workload by itself, which follow each other.
const IN_A_ROW: Slicing = Slicing {
    slice_ns: SECOND,
    slices: 3..=5,
};
/// A slow disk gets at least this many slices, or one where they do not fit.
const SLOW_SLICES_MIN: u64 = 5;
/// A single workload of `run` is measured in slices from this time on.
const RUN_NS_MIN: u64 = 4 * SECOND;
/// A slice that is shorter than this many latencies would measure how a queue fills.
const LATENCIES_MIN: f64 = 10.0;
/// A workload that got less than this share of its planned time says so.
const SHORTENED: f64 = 0.9;
/// The least share of its planned time that a slice should get. Where less is left, fewer slices
/// are measured.
const SHARE_JOINED: f64 = 0.5;
/// The first of the random streams for the order of slices, one a round.
const ORDER_STREAM: u64 = 0x0051_1CE5;

/// A group of workloads, and what is left of it.
pub(super) struct SliceSchedule<'a> {
    /// The group.
    pub group: Group<'a>,
    /// Slices that are measured.
    pub done: u64,
    /// Slices that are left.
    pub left: u64,
    /// Time that is left, warm-up included, in nanoseconds.
    left_ns: u64,
    /// Bytes that are left, where they are limited.
    left_bytes: Option<u64>,
    /// The engine of the first slice.
    engine: Option<EngineChoice>,
    /// Bytes that the slices so far have moved on a target.
    pub moved_bytes: u64,
    /// Time that its slices so far were planned to get, in nanoseconds.
    planned_ns: u64,
    /// Time that they got, in nanoseconds.
    given_ns: u64,
    /// Time that a slice takes beyond its own, in nanoseconds; `None` before the first.
    overhead_ns: Option<u64>,
}

impl<'a> SliceSchedule<'a> {
    fn new(group: Group<'a>, order: Order) -> Self {
        let first = &group.workloads[0];
        let left_ns = first.stop.time_ns.unwrap_or(0) + first.warmup_ns;
        Self {
            group,
            done: 0,
            left: slice_count(group, order),
            left_ns,
            left_bytes: first.stop.bytes,
            engine: None,
            moved_bytes: 0,
            planned_ns: 0,
            given_ns: 0,
            overhead_ns: None,
        }
    }

    /// Whether enough slices are done to let the workload end early: most of them.
    pub(super) fn may_end(&self) -> bool {
        self.done >= SLICES_MIN as u64 && self.done > self.left
    }

    /// Whether the group is measured as a whole, in one slice.
    pub(super) fn is_whole(&self) -> bool {
        self.done == 0 && self.left == 1
    }

    /// The planned time of the next slice, in nanoseconds.
    fn next_ns(&self) -> u64 {
        if self.left == 1 {
            self.left_ns
        } else {
            whole_cells(self.left_ns / self.left.max(1))
        }
    }

    /// The next slice of each of its workloads, with this share of its planned time.
    pub(super) fn next(&self, share: f64) -> Vec<SliceSpan> {
        if !self.is_whole() {
            return vec![self.next_part(share)];
        }
        let mut slices = Vec::new();
        for workload in self.group.workloads {
            let whole = SliceSpan::whole(workload);
            slices.push(SliceSpan {
                time_ns: whole.time_ns.map(|ns| shared(ns, share)),
                warmup_ns: shared(whole.warmup_ns, share),
                ..whole
            });
        }
        slices
    }

    /// The next slice of its only workload.
    fn next_part(&self, share: f64) -> SliceSpan {
        let workload = &self.group.workloads[0];
        let whole_ns = shared(self.next_ns(), share);
        let warmup_ns = if self.done > 0 {
            whole_cells(whole_ns / WARMUP_PARTS).min(workload.warmup_ns)
        } else {
            shared(workload.warmup_ns, share)
        };
        let block = u64::from(workload.block_bytes);
        SliceSpan {
            time_ns: Some(whole_ns.saturating_sub(warmup_ns).max(SERIES_INTERVAL_NS)),
            warmup_ns,
            bytes: self
                .left_bytes
                .map(|bytes| (bytes / self.left / block).max(1) * block),
            engine: self.engine.unwrap_or(workload.engine),
            span: workload.span,
        }
    }

    /// Notes how long a slice, or the group as a whole, took with this share of its planned time.
    pub(super) fn note_time(&mut self, share: f64, took: Duration) {
        let planned_ns = self.next_ns();
        let given_ns = shared(planned_ns, share);
        self.planned_ns += planned_ns;
        self.given_ns += given_ns;
        self.overhead_ns = Some((took.as_nanos() as u64).saturating_sub(given_ns));
    }

    /// Drops all further slices, because the time of the run is over.
    pub(super) fn cut(&mut self) {
        self.planned_ns += self.left_ns;
        (self.left, self.left_ns) = (0, 0);
    }

    /// Whether the workload got clearly less time than planned.
    pub(super) fn is_shortened(&self) -> bool {
        (self.given_ns as f64) < SHORTENED * self.planned_ns as f64
    }

    /// The number of further slices that the latencies of the first one allow.
    fn fitting(&self, first: &[Measurement]) -> u64 {
        let shortest_ns = first.iter().map(longest_mean_ns).fold(0.0, f64::max) * LATENCIES_MIN;
        if first.iter().all(|one| shortest_ns <= one.wall_ns as f64) {
            return self.left;
        }
        let measured_ns = (self.left_ns - self.left_ns / WARMUP_PARTS) as f64;
        let fitting = (measured_ns / shortest_ns) as u64;
        if self.done + fitting >= SLOW_SLICES_MIN {
            fitting
        } else {
            1
        }
    }

    /// Takes over what this slice has measured, or the group as a whole.
    pub(super) fn measured(&mut self, slice: &SliceSpan, measured: &[Measurement]) {
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
        let moved: u64 = first.ops.values().map(|op| op.bytes).sum();
        let warmup = slice.warmup_ns as f64 / first.wall_ns.max(1) as f64;
        self.moved_bytes += (moved as f64 * (1.0 + warmup)) as u64;
        self.left_bytes = self.left_bytes.map(|bytes| bytes.saturating_sub(moved));
        self.engine = Some(EngineChoice::Fixed(first.engine.used));
        if self.done == 1 && self.left > 1 {
            self.left = self.left.min(self.fitting(measured));
        }
        if let Some(bytes) = self.left_bytes
            && bytes < u64::from(self.group.workloads[0].block_bytes)
        {
            self.left = 0;
        }
    }

    /// The time that the remaining slices take beyond their own, in nanoseconds. Where it is not
    /// known, each takes `mean_ns`.
    fn left_overhead_ns(&self, mean_ns: u64) -> u64 {
        self.left * self.overhead_ns.unwrap_or(mean_ns)
    }

    /// Whether two of the remaining slices can become one.
    fn is_joinable(&self) -> bool {
        self.done > 0 && self.left > 1 && self.done + self.left > SLICES_MIN as u64
    }
}

/// A share of a time, in whole cells.
fn shared(ns: u64, share: f64) -> u64 {
    if share < 1.0 {
        whole_cells((ns as f64 * share) as u64)
    } else {
        ns
    }
}

/// The smallest share of its planned time that a slice gets.
pub(super) const SHARE_MIN: f64 = 0.1;

/// The rest of a run, as planned.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct RestOfRun {
    /// Time of all slices that are left, in nanoseconds.
    planned_ns: u64,
    /// Time that they are expected to take beyond it: to fill the queue, and to complete what is
    /// in flight at the end.
    overhead_ns: u64,
}

/// The share of its planned time that the next slice gets, until the end of the run, if it has one;
/// `None` when no time is left.
fn share(end: Option<Instant>, rest: RestOfRun) -> Option<f64> {
    let Some(end) = end else {
        return Some(1.0);
    };
    let left = end.saturating_duration_since(Instant::now());
    share_of(left.as_nanos() as u64, rest)
}

/// The share of its planned time that the next slice gets while this much time is left.
fn share_of(left_ns: u64, rest: RestOfRun) -> Option<f64> {
    if left_ns == 0 {
        return None;
    }
    let free_ns = left_ns.saturating_sub(rest.overhead_ns) as f64;
    let share = free_ns / rest.planned_ns.max(1) as f64;
    Some(share.clamp(SHARE_MIN, 1.0))
}

/// The planned rest of all blocks.
fn rest(blocks: &[Vec<SliceSchedule<'_>>]) -> RestOfRun {
    let mean_ns = mean_overhead_ns(blocks);
    let mut rest = RestOfRun::default();
    for sliced in blocks.iter().flatten() {
        if sliced.left > 0 {
            rest.planned_ns += sliced.left_ns;
            rest.overhead_ns += sliced.left_overhead_ns(mean_ns);
        }
    }
    rest
}

/// The mean of the known overheads of a slice, in nanoseconds. A group without slices ends with its
/// own sync, and does not count.
fn mean_overhead_ns(blocks: &[Vec<SliceSchedule<'_>>]) -> u64 {
    let mut sum_ns: u64 = 0;
    let mut known: u64 = 0;
    for sliced in blocks.iter().flatten() {
        if let Some(overhead_ns) = sliced.overhead_ns
            && sliced.done > 0
        {
            sum_ns += overhead_ns;
            known += 1;
        }
    }
    sum_ns / known.max(1)
}

/// Joins the remaining slices until their overhead leaves each at least half of its planned time.
/// On a disk that has become slow, short slices only measure how a queue fills. `share` computes
/// the share of the planned time that is left.
fn join(blocks: &mut [Vec<SliceSchedule<'_>>], share: impl Fn(RestOfRun) -> Option<f64>) {
    while let Some(share_left) = share(rest(blocks))
        && share_left < SHARE_JOINED
    {
        let Some(most_delayed) = blocks
            .iter_mut()
            .flatten()
            .filter(|sliced| sliced.is_joinable())
            .max_by_key(|sliced| sliced.left_overhead_ns(0))
        else {
            return;
        };
        most_delayed.left -= 1;
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

/// The slices of a group. One where parts would not mean the same, and of workloads that run
/// together.
fn slice_count(group: Group<'_>, order: Order) -> u64 {
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

/// The slices of all workloads of a plan, in the order in which they are measured.
pub(super) struct SliceOrder<'p> {
    /// The groups of the plan, in blocks; those of a block are measured alternately.
    blocks: Vec<Vec<SliceSchedule<'p>>>,
    seed: u64,
    /// The block that is measured.
    block: usize,
    /// The number of rounds of this block so far.
    round: u64,
    /// The members that this round has not measured yet, the next one last.
    turn: Vec<usize>,
    /// The member that is measured.
    member: usize,
}

impl<'p> SliceOrder<'p> {
    /// All slices of the workloads of a plan.
    pub(super) fn new(plan: &'p Plan) -> Self {
        Self {
            blocks: blocks(plan),
            seed: plan.seed,
            block: 0,
            round: 0,
            turn: Vec::new(),
            member: 0,
        }
    }

    /// The group to which the next slice belongs; `None` when all are measured.
    pub(super) fn next(&mut self) -> Option<Group<'p>> {
        while let Some(block) = self.blocks.get(self.block) {
            if let Some(member) = self.turn.pop() {
                self.member = member;
                return Some(block[member].group);
            }
            self.turn = turn(block, self.seed, self.round);
            self.turn.reverse();
            self.round += 1;
            if self.turn.is_empty() {
                self.block += 1;
                self.round = 0;
            }
        }
        None
    }

    /// The group that [`Self::next`] has returned, and the share of its planned time that its slice
    /// gets, until the end of the run, if it has one; `None` when no time is left.
    pub(super) fn next_until(
        &mut self,
        end: Option<Instant>,
    ) -> (&mut SliceSchedule<'p>, Option<f64>) {
        join(&mut self.blocks, |rest| share(end, rest));
        let share_of_next = share(end, rest(&self.blocks));
        (&mut self.blocks[self.block][self.member], share_of_next)
    }
}

/// The groups of a plan, in blocks. Where a plan is measured in turns, groups that follow each
/// other and have slices share a block; every other group has one to itself.
fn blocks(plan: &Plan) -> Vec<Vec<SliceSchedule<'_>>> {
    let is_in_turns = matches!(plan.order(), Order::InTurns { .. });
    let mut blocks: Vec<Vec<SliceSchedule<'_>>> = Vec::new();
    for group in plan.groups() {
        let sliced = SliceSchedule::new(group, plan.order());
        let joins = is_in_turns && !sliced.is_whole();
        match blocks.last_mut() {
            Some(block) if joins && block.iter().all(|other| !other.is_whole()) => {
                block.push(sliced);
            }
            _ => blocks.push(vec![sliced]),
        }
    }
    blocks
}

/// The members of a block that have a slice left, in random order.
fn turn(block: &[SliceSchedule<'_>], seed: u64, round: u64) -> Vec<usize> {
    let mut order = Vec::new();
    for (member, sliced) in block.iter().enumerate() {
        if sliced.left > 0 {
            order.push(member);
        }
    }
    let mut random = Random::new(seed, ORDER_STREAM + round);
    shuffle(&mut order, &mut random);
    order
}

/// Shuffles by the method of Fisher and Yates, which makes all orders equally likely.
pub(super) fn shuffle(order: &mut [usize], random: &mut Random) {
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests;
