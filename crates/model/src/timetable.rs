//! Makes the timetable of a run that measures together with others. It follows from the plan alone,
//! so that equal plans give equal timetables on all hosts.

use crate::group::{Group, groups};
use crate::scatter::mixed;
use crate::slice::{TURN_NS_MIN, TURNS_MAX, TURNS_MIN, WARMUP_PARTS, whole_cells};
use crate::workload::Workload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Slots of a plan whose workloads are measured at the same instants on all hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SlotPlan {
    /// The time from the last fence of the launcher to the first slot, in nanoseconds: the time to
    /// fill scratch files. No part of a run whose first slot has a given time.
    pub lead_ns: u64,
    /// Nanoseconds between the planned end of a slot and the next one: requests in flight end, and
    /// the next workload is prepared.
    pub gap_ns: u64,
}

/// A time in which one workload, or several together, are measured on all hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Number of the slot, from 0.
    pub number: u32,
    /// The place of its workloads among the groups of the plan.
    pub group: usize,
    /// Place among the slots of its workloads, from 0.
    pub part: u64,
    /// The number of slots that its workloads have.
    pub parts: u64,
    /// Start in nanoseconds after that of the first slot.
    pub start_ns: u64,
    /// Length of the warm-up in nanoseconds.
    pub warmup_ns: u64,
    /// The measured time after the warm-up, in nanoseconds.
    pub time_ns: u64,
}

impl Slot {
    /// Planned end in nanoseconds after the start of the first slot.
    pub fn end_ns(&self) -> u64 {
        self.start_ns
            .saturating_add(self.warmup_ns)
            .saturating_add(self.time_ns)
    }
}

/// The timetable of workloads, in the order of time; `None` where one of them has no time limit.
/// The seed of the plan decides in which order workloads take turns.
pub fn timetable(workloads: &[Workload], plan: SlotPlan, seed: u64) -> Option<Vec<Slot>> {
    let mut slots = Vec::new();
    let mut start_ns = 0;
    for turn in turns(workloads, seed) {
        let SlotLength { warmup_ns, time_ns } = slot_length(turn.workloads, turn.part, turn.parts)?;
        let slot = Slot {
            number: slots.len() as u32,
            group: turn.group,
            part: turn.part,
            parts: turn.parts,
            start_ns,
            warmup_ns,
            time_ns,
        };
        start_ns = slot.end_ns().saturating_add(plan.gap_ns);
        slots.push(slot);
    }
    Some(slots)
}

/// A slot without its time.
struct Turn<'a> {
    workloads: Group<'a>,
    group: usize,
    part: u64,
    parts: u64,
}

/// Groups that follow each other and have several slots take turns in random order; another one is
/// measured in one go, at its place in the plan.
fn turns(workloads: &[Workload], seed: u64) -> Vec<Turn<'_>> {
    let groups: Vec<Group<'_>> = groups(workloads).collect();
    let mut turns = Vec::new();
    let mut first = 0;
    while first < groups.len() {
        let mut end = first + 1;
        if slot_count(groups[first]) > 1 {
            while end < groups.len() && slot_count(groups[end]) > 1 {
                end += 1;
            }
        }
        for part in 0..TURNS_MAX {
            let mut round: Vec<usize> = (first..end)
                .filter(|group| part < slot_count(groups[*group]))
                .collect();
            round.sort_by_key(|group| mixed(seed, part << 32 | *group as u64));
            for group in round {
                turns.push(Turn {
                    workloads: groups[group],
                    group,
                    part,
                    parts: slot_count(groups[group]),
                });
            }
        }
        first = end;
    }
    turns
}

/// The number of slots of a group.
fn slot_count(group: Group<'_>) -> u64 {
    let [only] = group.workloads else {
        return 1;
    };
    let time_ns = only.stop.time_ns.unwrap_or(0);
    if !only.is_divisible() || time_ns < TURNS_MIN * TURN_NS_MIN {
        return 1;
    }
    (time_ns / TURN_NS_MIN).clamp(TURNS_MIN, TURNS_MAX)
}

/// The two parts of a slot.
struct SlotLength {
    warmup_ns: u64,
    /// The measured time.
    time_ns: u64,
}

/// The length of a slot; `None` of a group without a time. The first slot of a workload has its
/// whole warm-up.
fn slot_length(group: Group<'_>, part: u64, parts: u64) -> Option<SlotLength> {
    let time_ns = group.shortest_ns()?;
    let asked_ns = group.warmup_ns();
    if parts == 1 {
        let delays = group
            .workloads
            .iter()
            .map(|workload| workload.shape.starts.delay_ns);
        return Some(SlotLength {
            warmup_ns: asked_ns,
            time_ns: time_ns.saturating_add(delays.max().unwrap_or(0)),
        });
    }
    let whole_ns = (time_ns + asked_ns) / parts;
    let warmup_ns = match part {
        0 => asked_ns.min(whole_ns / 2),
        _ => asked_ns.min(whole_ns / WARMUP_PARTS),
    };
    let warmup_cells_ns = whole_cells(warmup_ns);
    Some(SlotLength {
        warmup_ns: warmup_cells_ns,
        time_ns: whole_cells(whole_ns - warmup_cells_ns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::SERIES_INTERVAL_NS;
    use crate::sync::SyncPolicy;
    use crate::workload::Layout;

    const GAP_NS: u64 = 300_000_000;
    const SLOTS: SlotPlan = SlotPlan {
        lead_ns: 1,
        gap_ns: GAP_NS,
    };

    fn workload(name: &str, time_ns: u64) -> Workload {
        let mut workload = Workload {
            layout: Layout::Needed,
            warmup_ns: 100_000_000,
            ..Workload::named(name)
        };
        workload.stop.time_ns = Some(time_ns);
        workload
    }

    #[test]
    fn slots_follow_each_other_with_gaps_and_share_the_time() {
        let long = workload("long", 2_000_000_000);
        let mut whole = workload("whole", 2_000_000_000);
        whole.sync = SyncPolicy::AtEnd;
        let short = workload("short", 500_000_000);
        let workloads = vec![long, workload("other", 900_000_000), whole, short];
        let slots = timetable(&workloads, SLOTS, 7).unwrap();
        let parts = |group: usize| slots.iter().filter(|slot| slot.group == group).count();
        assert_eq!([parts(0), parts(1), parts(2), parts(3)], [8, 3, 1, 1]);
        for (number, slot) in slots.iter().enumerate() {
            assert_eq!(slot.number as usize, number);
            assert_eq!(slot.time_ns % SERIES_INTERVAL_NS, 0);
            if let Some(next) = slots.get(number + 1) {
                assert_eq!(next.start_ns, slot.end_ns() + GAP_NS);
            }
        }
        let of_long = slots.iter().filter(|slot| slot.group == 0);
        let sum_ns: u64 = of_long.map(|slot| slot.warmup_ns + slot.time_ns).sum();
        let asked_ns = 2_100_000_000;
        assert!((asked_ns - 8 * 2 * SERIES_INTERVAL_NS..=asked_ns).contains(&sum_ns));
        // What cannot be divided keeps its place: after all slots of the two before it.
        assert_eq!(slots[11].group, 2);
    }

    #[test]
    fn seed_alone_decides_the_order() {
        let list = (0..6).map(|number| workload(&number.to_string(), 1_000_000_000));
        let workloads: Vec<Workload> = list.collect();
        let order = |seed: u64| -> Vec<usize> {
            let slots = timetable(&workloads, SLOTS, seed).unwrap();
            slots.iter().map(|slot| slot.group).collect()
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        // A round measures each once.
        let mut round = order(1)[..6].to_vec();
        round.sort_unstable();
        assert_eq!(round, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn workload_without_time_has_no_timetable() {
        let mut endless = workload("a", 1);
        endless.stop.time_ns = None;
        assert!(timetable(&[endless], SLOTS, 1).is_none());
    }
}
