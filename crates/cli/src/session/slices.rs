//! Decides how a plan is measured in slices: parts of a workload that lie apart in time, so that
//! its interval covers what varies from one moment to the next.
//!
//! `schedule` decides how many slices a workload has, `rest` how much of its planned time the next
//! one gets (what a slice takes longer than planned, the later ones get less), and this file in
//! which order they are measured. Nothing is measured here.

mod rest;
mod schedule;

pub(super) use rest::SHARE_MIN;
pub(super) use schedule::{SliceSchedule, is_much_less};

use diskproof_engine::random::Random;
use diskproof_model::group::Group;
use diskproof_model::plan::{Order, Plan};
use rest::{RestOfRun, join_slices, leave_out_methods};
use schedule::Rotation;
use std::time::Instant;

/// The first of the random streams for the order of slices, one a round. The value is arbitrary,
/// and lies beyond the streams of workloads.
const ORDER_STREAM: u64 = 0x0051_1CE5;

/// The slices of all workloads of a plan, in the order in which they are measured: one rotation
/// after the other, each in rounds in which every member has one slice.
pub(super) struct SliceOrder<'p> {
    rotations: Vec<Rotation<'p>>,
    seed: u64,
    /// The index of the rotation that is measured.
    rotation: usize,
    /// The number of its rounds so far.
    rounds: u64,
    /// The members that this round has not measured yet, the next one last.
    waiting: Vec<usize>,
    /// The workloads that are left out, since the target is too slow for all.
    left_out: Vec<String>,
}

/// The group whose slice is measured next.
pub(super) struct SliceTurn<'p> {
    /// The group.
    pub group: Group<'p>,
    rotation: usize,
    member: usize,
}

impl<'p> SliceOrder<'p> {
    /// All slices of the workloads of a plan.
    pub(super) fn new(plan: &'p Plan) -> Self {
        Self {
            rotations: rotations(plan),
            seed: plan.seed,
            rotation: 0,
            rounds: 0,
            waiting: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// Whose turn it is; `None` when all slices are measured.
    pub(super) fn next_turn(&mut self) -> Option<SliceTurn<'p>> {
        while let Some(members) = self.rotations.get(self.rotation) {
            if let Some(member) = self.waiting.pop() {
                if members[member].left == 0 {
                    continue;
                }
                return Some(SliceTurn {
                    group: members[member].group,
                    rotation: self.rotation,
                    member,
                });
            }
            self.waiting = shuffled_members(members, self.seed, self.rounds);
            self.rounds += 1;
            if self.waiting.is_empty() {
                self.rotation += 1;
                self.rounds = 0;
            }
        }
        None
    }

    /// The share of its planned time that the next slice gets, until the end of the run, if it has
    /// one; `None` when no time is left. Where the time is too short for the planned number of
    /// slices, some methods of committing are left out and some slices joined before.
    pub(super) fn share_until(
        &mut self,
        turn: &SliceTurn<'p>,
        end: Option<Instant>,
    ) -> Option<f64> {
        let Some(end) = end else {
            return Some(1.0);
        };
        let left_ns = end.saturating_duration_since(Instant::now()).as_nanos() as u64;
        let next = (turn.rotation, turn.member);
        let left_out = leave_out_methods(&mut self.rotations, next, left_ns);
        self.left_out.extend(left_out);
        join_slices(&mut self.rotations, left_ns);
        RestOfRun::after(&self.rotations).share_of(left_ns)
    }

    /// The workloads that are left out, since the target is too slow for all.
    pub(super) fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// The groups that were measured in part only.
    pub(super) fn unfinished(&mut self) -> impl Iterator<Item = &mut SliceSchedule<'p>> {
        self.rotations
            .iter_mut()
            .flatten()
            .filter(|schedule| schedule.done > 0 && schedule.left > 0)
    }

    /// What is left of the group whose turn it is.
    pub(super) fn schedule(&mut self, turn: &SliceTurn<'p>) -> &mut SliceSchedule<'p> {
        &mut self.rotations[turn.rotation][turn.member]
    }
}

/// The rotations of a plan. Where it is measured in turns, groups that follow each other and have
/// slices share one.
fn rotations(plan: &Plan) -> Vec<Rotation<'_>> {
    let is_in_turns = matches!(plan.order(), Order::InTurns { .. });
    let mut rotations: Vec<Rotation<'_>> = Vec::new();
    for group in plan.groups() {
        let schedule = SliceSchedule::new(group, plan.order());
        let joins = is_in_turns && !schedule.is_whole();
        match rotations.last_mut() {
            Some(members) if joins && members.iter().all(|other| !other.is_whole()) => {
                members.push(schedule);
            }
            _ => rotations.push(vec![schedule]),
        }
    }
    rotations
}

/// The members of a rotation that have a slice left, in the random order of this round, the first
/// one last.
fn shuffled_members(members: &[SliceSchedule<'_>], seed: u64, round: u64) -> Vec<usize> {
    let mut order = Vec::new();
    for (member, schedule) in members.iter().enumerate() {
        if schedule.left > 0 {
            order.push(member);
        }
    }
    let mut random = Random::new(seed, ORDER_STREAM + round);
    shuffle(&mut order, &mut random);
    if round == 0 {
        put_methods_in_order(members, &mut order);
    }
    order.reverse();
    order
}

/// Measures the methods of committing in the order of the plan, at the places that they have among
/// other workloads. A disk may be too slow for all of them; the first ones are those that a
/// database uses.
fn put_methods_in_order(members: &[SliceSchedule<'_>], order: &mut [usize]) {
    let mut methods: Vec<usize> = order.to_vec();
    methods.retain(|member| members[*member].commits());
    methods.sort_unstable();
    let mut in_order = methods.into_iter();
    for place in order {
        if members[*place].commits()
            && let Some(method) = in_order.next()
        {
            *place = method;
        }
    }
}

/// Shuffles by the method of Fisher and Yates, which makes all orders equally likely.
pub(super) fn shuffle(order: &mut [usize], random: &mut Random) {
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests;
