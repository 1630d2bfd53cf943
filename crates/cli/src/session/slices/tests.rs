//! How many slices a workload has, how long they are, and what is left of the time for them.

use super::rest::{RestOfRun, SHARE_MIN, join_slices, leave_out_methods};
use super::schedule::{SliceSchedule, slice_count};
use super::{SliceOrder, shuffled_members};
use crate::flags::SECOND_NS;
use diskproof_model::group::Group;
use diskproof_model::measurement::{
    CacheUse, EngineUse, MeasuredSpan, Measurement, OpKind, SERIES_INTERVAL_NS,
};
use diskproof_model::plan::{
    Access, CachePolicy, EngineChoice, EngineKind, Layout, Order, Plan, Span, Stop, SyncCall,
    SyncPolicy, Task, Verify, Workload, Workloads,
};
use diskproof_model::shape::{FloorUnit, RateFloor, ThinkCount, ThinkTime};
use diskproof_model::slice::whole_cells;
use std::time::{Duration, Instant};

fn workload(seconds: u64) -> Workload {
    Workload {
        stop: Stop {
            time_ns: Some(seconds * SECOND_NS),
            ..Stop::default()
        },
        warmup_ns: SECOND_NS / 4,
        ..Workload::named("random-read-d1")
    }
}

fn in_turns(from_ms: u64) -> Order {
    Order::InTurns {
        slices_from_ns: from_ms * 1_000_000,
    }
}

fn slices(workload: &Workload, order: Order) -> u64 {
    slice_count(Group::alone(workload), order)
}

#[test]
fn slices_follow_from_the_time() {
    for (order, seconds, expected) in [
        (Order::Whole, 60, 1),
        // `run`
        (Order::AsGiven, 1, 1),
        (Order::AsGiven, 3, 1),
        (Order::AsGiven, 4, 4),
        (Order::AsGiven, 5, 5),
        (Order::AsGiven, 60, 5),
        // `check`
        (in_turns(1500), 1, 1),
        (in_turns(1500), 2, 8),
        (in_turns(1500), 3, 8),
        (in_turns(1500), 7, 8),
        // `commit`
        (in_turns(500), 1, 4),
        (in_turns(500), 2, 8),
        (in_turns(500), 3, 8),
        (in_turns(500), 7, 8),
    ] {
        assert_eq!(
            slices(&workload(seconds), order),
            expected,
            "{order:?} {seconds}"
        );
    }
}

fn every(writes: u32) -> SyncPolicy {
    SyncPolicy::Every {
        writes,
        call: SyncCall::Fdatasync,
    }
}

#[test]
fn workloads_that_parts_would_change_have_one_slice() {
    let whole: [fn(&mut Workload); 13] = [
        |w| w.rate = Some(100.0),
        |w| w.verify = Verify::Checksum,
        |w| w.sync = SyncPolicy::AtEnd,
        |w| w.layout = Layout::Provides,
        |w| w.cache = CachePolicy::Buffered,
        |w| w.access = Access::Backward,
        |w| w.stop.ops = Some(1000),
        |w| w.stop.bytes = Some(1 << 30),
        |w| w.stop.time_ns = None,
        |w| w.sync = every(600),
        |w| {
            w.shape.starts.think = Some(ThinkTime {
                pause_ns: SECOND_NS,
                pause_ops: 1200,
                counted: ThinkCount::Completed,
                busy_ns: None,
            });
        },
        |w| w.shape.starts.delay_ns = SECOND_NS,
        |w| {
            w.shape.ends.rate_floors = vec![RateFloor {
                of_writes: false,
                floor: 10.0,
                unit: FloorUnit::Ops,
                over_ns: SECOND_NS,
            }];
        },
    ];
    for (index, change) in whole.iter().enumerate() {
        let mut changed = workload(10);
        change(&mut changed);
        assert_eq!(slices(&changed, Order::AsGiven), 1, "{index}");
    }
    let mut synced_each = workload(10);
    synced_each.sync = every(1);
    assert_eq!(slices(&synced_each, Order::AsGiven), 5);
    let pair = [workload(10), workload(10)];
    let group = Group {
        first: 0,
        workloads: &pair,
    };
    assert_eq!(slice_count(group, Order::AsGiven), 1);
    let limited = Workload {
        stop: Stop {
            bytes: Some(1 << 30),
            ..workload(10).stop
        },
        span: Span::default(),
        ..workload(10)
    };
    assert_eq!(slices(&limited, in_turns(1500)), 8);
}

#[test]
fn slices_take_the_time_that_was_asked_for() {
    let asked = workload(10);
    let mut sliced = SliceSchedule::new(Group::alone(&asked), Order::AsGiven);
    let mut time_ns = 0;
    let mut warmup_ns = 0;
    let mut measured = Vec::new();
    while sliced.left > 0 {
        let slice = sliced.next_slice(1.0);
        time_ns += slice.whole_ns();
        warmup_ns += slice.warmup_ns;
        measured.push(slice.time_ns.unwrap());
        sliced.note_measured(&slice, &[]);
    }
    assert_eq!(time_ns, 10 * SECOND_NS + SECOND_NS / 4);
    assert!(
        warmup_ns <= SECOND_NS / 4 + 4 * SECOND_NS / 5,
        "{warmup_ns}"
    );
    assert_eq!(measured.len(), 5);
    assert!(
        measured
            .iter()
            .all(|ns| ns.is_multiple_of(SERIES_INTERVAL_NS))
    );
}

/// With a warm-up of 5 s the first slice is as long as the others, not what the warm-up leaves of
/// it.
#[test]
fn long_warm_up_takes_no_time_from_the_first_slice() {
    let asked = Workload {
        warmup_ns: 5 * SECOND_NS,
        ..workload(10)
    };
    let mut sliced = SliceSchedule::new(Group::alone(&asked), Order::AsGiven);
    let mut measured_ns = Vec::new();
    while sliced.left > 0 {
        let slice = sliced.next_slice(1.0);
        measured_ns.push(slice.time_ns.unwrap());
        sliced.note_measured(&slice, &[]);
    }
    assert_eq!(measured_ns[0], 2 * SECOND_NS);
    assert_eq!(measured_ns[1..], [9 * SECOND_NS / 5; 4]);
}

/// A slice of a target, which moved so many bytes with this engine.
fn measured_on(target: usize, moved_bytes: u64, used: EngineKind) -> Measurement {
    let engine = EngineUse {
        asked: EngineChoice::Auto,
        used,
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
        Measurement::unmeasured(workload(10), MeasuredSpan::new(0, 1 << 30), engine, cache);
    measured.target = target;
    measured.wall_ns = 2 * SECOND_NS;
    measured.ops.entry(OpKind::Read).or_default().bytes = moved_bytes;
    measured
}

/// Each target goes on where it was, with the engine that suited it.
#[test]
fn slices_go_on_on_each_target_for_itself() {
    let asked = workload(10);
    let mut sliced = SliceSchedule::new(Group::alone(&asked), Order::AsGiven);
    let mut slice = sliced.next_slice(1.0);
    slice.warmup_ns = 0;
    let measured = [
        measured_on(0, 8 << 20, EngineKind::Aio),
        measured_on(1, 64 << 20, EngineKind::Sync),
    ];
    sliced.note_measured(&slice, &measured);
    let mut seen = Vec::new();
    for earlier in &sliced.earlier {
        seen.push((earlier.moved_bytes, earlier.engine));
    }
    let expected = [
        (8 << 20, Some(EngineKind::Aio)),
        (64 << 20, Some(EngineKind::Sync)),
    ];
    assert_eq!(seen, expected);
}

/// A job that starts late needs the time until then, too: slices before it must not take it.
#[test]
fn group_keeps_the_time_until_its_last_start() {
    let mut late = workload(3);
    late.shape.starts.delay_ns = 6 * SECOND_NS;
    let sliced = SliceSchedule::new(Group::alone(&late), Order::AsGiven);
    assert!(sliced.is_whole());
    assert_eq!(sliced.left_ns, 9 * SECOND_NS + late.warmup_ns);
}

/// A first slice of 2.25 s that gets half of it, then nothing.
#[test]
fn slices_that_get_less_time_are_shortened() {
    let asked = workload(10);
    let mut sliced = SliceSchedule::new(Group::alone(&asked), Order::AsGiven);
    assert!(!sliced.is_shortened());
    let half = sliced.next_slice(0.5);
    assert_eq!(half.warmup_ns, whole_cells(SECOND_NS / 4 / 2));
    assert_eq!(half.whole_ns(), 1_120_000_000);
    sliced.note_time(0.5, Duration::from_millis(1320));
    sliced.note_measured(&half, &[]);
    assert!(sliced.is_shortened());
    assert_eq!((sliced.left, sliced.left_ns), (4, 8_000_000_000));
    let rotations = [vec![sliced]];
    let expected = RestOfRun {
        planned_ns: 8_000_000_000,
        overhead_ns: 4 * 200_000_000,
    };
    assert_eq!(RestOfRun::after(&rotations), expected);
    let [members] = rotations;
    let mut sliced = members.into_iter().next().unwrap();
    sliced.drop_rest();
    assert_eq!((sliced.left, sliced.planned_ns), (0, 10_250_000_000));
    assert_eq!(RestOfRun::after(&[vec![sliced]]), RestOfRun::default());
}

/// The slices that are left when the run ends in so many seconds: of eight slices of 1 s three are
/// done, and each takes 1.5 s more.
fn slices_after_joining(left_seconds: u64) -> u64 {
    let asked = workload(8);
    let mut sliced = SliceSchedule::new(Group::alone(&asked), Order::AsGiven);
    sliced.done = 3;
    sliced.left = 5;
    sliced.left_ns = 5 * SECOND_NS;
    sliced.overhead_ns = Some(3 * SECOND_NS / 2);
    let mut rotations = [vec![sliced]];
    join_slices(&mut rotations, left_seconds * SECOND_NS);
    rotations[0][0].left
}

#[test]
fn slices_that_would_get_little_time_are_joined() {
    for (left_seconds, expected) in [(13, 5), (10, 5), (9, 4), (6, 2), (1, 1)] {
        assert_eq!(
            slices_after_joining(left_seconds),
            expected,
            "{left_seconds}"
        );
    }
}

#[test]
fn overhead_of_groups_to_come_is_that_of_the_others() {
    let asked = [workload(10), workload(10)];
    let groups = asked.each_ref().map(Group::alone);
    let mut pair = groups.map(|group| SliceSchedule::new(group, Order::AsGiven));
    pair[0].note_time(1.0, Duration::from_millis(2350));
    let first = pair[0].next_slice(1.0);
    pair[0].note_measured(&first, &[]);
    assert!(!pair[0].is_shortened());
    let rest = RestOfRun::after(&[pair.into()]);
    assert_eq!(rest.overhead_ns, (4 + 5) * 100_000_000);
}

#[test]
fn turns_take_every_member_once_in_changing_order() {
    let workloads: Vec<Workload> = (0..8).map(|_| workload(7)).collect();
    let members: Vec<SliceSchedule<'_>> = workloads
        .iter()
        .map(|w| SliceSchedule::new(Group::alone(w), in_turns(1500)))
        .collect();
    let orders: Vec<Vec<usize>> = (0..3)
        .map(|round| shuffled_members(&members, 1, round))
        .collect();
    for order in &orders {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..8).collect::<Vec<_>>());
    }
    assert_ne!(orders[0], orders[1]);
    assert_eq!(
        shuffled_members(&members, 1, 0),
        orders[0],
        "repeatable by its seed"
    );
}

/// A disk may be too slow for all methods: those that are missed are the last ones of the plan.
#[test]
fn first_round_measures_methods_in_the_order_of_the_plan() {
    let mut asked: Vec<Workload> = (0..39).map(|_| workload(7)).collect();
    for method in &mut asked[..30] {
        method.sync = every(1);
    }
    let members: Vec<SliceSchedule<'_>> = asked
        .iter()
        .map(|w| SliceSchedule::new(Group::alone(w), in_turns(1500)))
        .collect();
    let order = |round| {
        let mut first_to_last = shuffled_members(&members, 1, round);
        first_to_last.reverse();
        first_to_last
    };
    let mut methods = order(0);
    methods.retain(|member| *member < 30);
    assert_eq!(methods, (0..30).collect::<Vec<_>>());
    let mut later = order(1);
    assert!(!later.iter().filter(|member| **member < 30).is_sorted());
    later.sort_unstable();
    assert_eq!(later, (0..39).collect::<Vec<_>>());
}

fn shared_out(left: u64, planned: u64, overhead: u64) -> Option<f64> {
    let rest = RestOfRun {
        planned_ns: planned * SECOND_NS,
        overhead_ns: overhead * SECOND_NS,
    };
    rest.share_of(left * SECOND_NS)
}

#[test]
fn slices_share_the_time_that_is_left() {
    assert_eq!(shared_out(8, 8, 0), Some(1.0));
    assert_eq!(shared_out(100, 8, 0), Some(1.0), "no slice gets more");
    assert_eq!(shared_out(6, 8, 0), Some(0.75));
    assert_eq!(shared_out(6, 8, 2), Some(0.5));
    assert_eq!(shared_out(1, 8, 2), Some(SHARE_MIN));
    assert_eq!(shared_out(0, 8, 0), None);
    assert_eq!(shared_out(5, 0, 0), Some(1.0));
}

/// How many of 39 methods are left out, of which each gets 660 ms in three slices, after four
/// slices that took so much longer than planned.
fn left_out_of_39(overhead_ms: [u64; 4], left_seconds: u64, sync: SyncPolicy) -> usize {
    let mut asked = Vec::new();
    for number in 0..39 {
        let mut method = workload(1);
        method.name = format!("method-{number}");
        method.sync = sync;
        method.warmup_ns = 0;
        method.stop.time_ns = Some(660_000_000);
        asked.push(method);
    }
    let mut members = Vec::new();
    for method in &asked {
        let mut member = SliceSchedule::new(Group::alone(method), in_turns(500));
        assert_eq!(member.left, 3);
        if members.len() % 10 == 0 {
            (member.done, member.left) = (1, 2);
            member.overhead_ns = Some(overhead_ms[members.len() / 10] * 1_000_000);
        }
        members.push(member);
    }
    let mut rotations = [members];
    let names = leave_out_methods(&mut rotations, (0, 38), left_seconds * SECOND_NS);
    assert!(!names.contains(&"method-38".to_owned()), "{names:?}");
    assert!(names.is_empty() || names[0] == "method-37", "{names:?}");
    names.len()
}

/// Of a healthy disk: the mean of these has no time for all, and the other methods have it.
#[test]
fn one_stalled_slice_leaves_no_method_out() {
    assert_eq!(left_out_of_39([5, 5, 5, 4000], 25, every(1)), 0);
}

#[test]
fn methods_that_have_no_time_for_a_slice_are_left_out() {
    let every_write = every(1);
    // A memory card loses 800 ms with each slice: ten methods have time for three.
    let left_out = left_out_of_39([800; 4], 27, every_write);
    assert!((26..=31).contains(&left_out), "{left_out}");
    // A rotating disk loses 150 ms, and its slices are joined.
    assert_eq!(left_out_of_39([150; 4], 27, every_write), 0);
    // Other workloads are no methods of one thing.
    assert_eq!(left_out_of_39([800; 4], 27, SyncPolicy::None), 0);
}

#[test]
fn a_run_without_a_limit_never_shortens() {
    let plan = Plan {
        tasks: vec![Task::Workloads(Workloads::as_planned(vec![workload(10)]))],
        ..Plan::default()
    };
    let mut order = SliceOrder::new(&plan);
    let turn = order.next_turn().unwrap();
    assert_eq!(order.share_until(&turn, None), Some(1.0));
    assert_eq!(order.share_until(&turn, Some(Instant::now())), None);
}
