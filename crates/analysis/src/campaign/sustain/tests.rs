//! Sustained loads in virtual time, on disks whose truth is known: limiters with a credit, caches
//! that fill and empty, heat, and flash that runs out of free blocks.

use super::*;
use crate::fixture;
use crate::judge::RunFacts;
use diskproof_model::plan::{Access, Plan, Stop, Task, Workloads};
use diskproof_model::series::Cell;
use diskproof_model::stream::Streams;
use diskproof_model::target::LayerKind;
use diskproof_model::window::{SliceOp, TimeSlice};
use std::collections::BTreeMap;

const SECOND: u64 = 1_000_000_000;
const CELL_NS: u64 = 10_000_000;
const BLOCK_BYTES: u64 = 8192;
/// The part of the disk that the loads move in.
const SPAN_BYTES: u64 = 2_000_000_000_000;

/// A disk in virtual time: requests per second in the next cell.
trait VirtualDisk {
    fn busy(&mut self, cell_seconds: f64) -> f64;
    fn idle(&mut self, seconds: f64);
}

/// A limiter with a credit in requests.
struct Limiter {
    base: f64,
    burst: f64,
    credit: f64,
    tokens: f64,
}

impl Limiter {
    fn full(base: f64, burst: f64, credit: f64) -> Self {
        Self {
            base,
            burst,
            credit,
            tokens: credit,
        }
    }
}

impl VirtualDisk for Limiter {
    fn busy(&mut self, seconds: f64) -> f64 {
        self.tokens = (self.tokens + self.base * seconds).min(self.credit);
        let passed = (self.burst * seconds).min(self.tokens);
        self.tokens -= passed;
        passed / seconds
    }

    fn idle(&mut self, seconds: f64) {
        self.tokens = (self.tokens + self.base * seconds).min(self.credit);
    }
}

/// A cache of so many bytes that empties in idle time alone.
struct Cache {
    fast: f64,
    slow: f64,
    size_bytes: f64,
    used_bytes: f64,
    emptied_per_s: f64,
    number: u64,
}

impl VirtualDisk for Cache {
    fn busy(&mut self, seconds: f64) -> f64 {
        self.number += 1;
        // A medium is never as even as a limiter.
        let jitter = 1.0 + 0.05 * ((self.number * 7919 % 101) as f64 / 50.0 - 1.0);
        let rate = if self.used_bytes < self.size_bytes {
            self.fast
        } else {
            self.slow
        };
        self.used_bytes += rate * jitter * seconds * BLOCK_BYTES as f64;
        rate * jitter
    }

    fn idle(&mut self, seconds: f64) {
        self.used_bytes =
            (self.used_bytes.min(self.size_bytes) - self.emptied_per_s * seconds).max(0.0);
    }
}

/// A disk that throttles itself after a time under load, whatever it moved.
struct Hot {
    rate: f64,
    heat: f64,
    number: u64,
}

impl VirtualDisk for Hot {
    fn busy(&mut self, seconds: f64) -> f64 {
        self.number += 1;
        let jitter = 1.0 + 0.05 * ((self.number * 7919 % 101) as f64 / 50.0 - 1.0);
        self.heat += seconds;
        let share = (1.0 - (self.heat - 60.0).max(0.0) / 60.0).max(0.5);
        self.rate * share * jitter
    }

    fn idle(&mut self, seconds: f64) {
        self.heat = (self.heat - 4.0 * seconds).max(0.0);
    }
}

/// Flash that approaches its steady state slowly.
struct Flash {
    first: f64,
    last: f64,
    written: f64,
    capacity: f64,
    number: u64,
}

impl VirtualDisk for Flash {
    fn busy(&mut self, seconds: f64) -> f64 {
        self.number += 1;
        let jitter = 1.0 + 0.03 * ((self.number * 7919 % 101) as f64 / 50.0 - 1.0);
        let rate = self.last + (self.first - self.last) * (-self.written / self.capacity).exp();
        self.written += rate * seconds;
        rate * jitter
    }

    fn idle(&mut self, _: f64) {}
}

/// A rotating disk of 2 TB along which a stream passes, from the fast outer zones to the inner
/// ones, and then from the start again.
struct Platters {
    passed_bytes: f64,
    number: u64,
}

impl VirtualDisk for Platters {
    fn busy(&mut self, seconds: f64) -> f64 {
        self.number += 1;
        let jitter = 1.0 + 0.02 * ((self.number * 7919 % 101) as f64 / 50.0 - 1.0);
        let place = self.passed_bytes / SPAN_BYTES as f64 % 1.0;
        let zone = (place * 30.0).floor() / 30.0;
        let bytes_per_second = 250e6 * (1.0 - 0.55 * zone) * jitter;
        self.passed_bytes += bytes_per_second * seconds;
        bytes_per_second / BLOCK_BYTES as f64
    }

    fn idle(&mut self, _: f64) {}
}

fn writes(name: &str, seconds: u64) -> Workload {
    Workload {
        streams: Streams::with_reads(0),
        depth: 32,
        stop: Stop {
            time_ns: Some(seconds * SECOND),
            ..Stop::default()
        },
        ..Workload::named(name)
    }
}

fn plan(seconds: u64, change: impl Fn(&mut SustainPlan)) -> Plan {
    let mut sustain = SustainPlan {
        round_ns: 5 * SECOND,
        pauses_ns: vec![10 * SECOND, 50 * SECOND],
        precondition_bytes: None,
        stop_at_drop: None,
        budget_bytes: None,
    };
    change(&mut sustain);
    let mut list = Vec::new();
    if sustain.precondition_bytes.is_some() {
        list.push(writes("precondition", 3600));
    }
    list.push(writes("sustained", seconds));
    list.push(writes("after-10s", 10));
    list.push(writes("after-50s", 10));
    Plan {
        tasks: vec![Task::Workloads(Workloads {
            decide: Decide::Until(sustain),
            ..Workloads::as_planned(list)
        })],
        ..Plan::new("sustain", Vec::new())
    }
}

struct Carried {
    done: Vec<MeasuredCell>,
    end_ns: u64,
}

impl Carried {
    fn rounds(&self, name: &str) -> usize {
        let own = self
            .done
            .iter()
            .filter(|one| one.cell.workload.name == name);
        own.count()
    }
}

fn carried_out(plan: &Plan, disk: &mut dyn VirtualDisk) -> Carried {
    let mut facts = fixture::run().facts;
    facts.plan = plan.clone();
    carried_out_on(&facts, disk)
}

/// The campaign on these targets of this machine.
fn carried_out_on(facts: &RunFacts, disk: &mut dyn VirtualDisk) -> Carried {
    let mut campaign = SustainCampaign::planned(&CampaignFacts {
        plan: &facts.plan,
        targets: &facts.targets,
        host: &facts.host,
        health: &facts.health,
    })
    .unwrap();
    let mut done: Vec<MeasuredCell> = Vec::new();
    let mut now_ns = 0;
    while let Some(cell) = campaign.next(&done).cell {
        let pause_ns = cell.pause_ns;
        disk.idle(pause_ns as f64 / 1e9);
        now_ns += pause_ns;
        let measured = measured(cell, now_ns, disk);
        now_ns += measured.slice.wall_ns;
        done.push(measured);
        assert!(done.len() < 2000, "it never ends");
    }
    Carried {
        done,
        end_ns: now_ns,
    }
}

fn measured(cell: CampaignCell, start_ns: u64, disk: &mut dyn VirtualDisk) -> MeasuredCell {
    let mut moved = TimeSeries::new(CELL_NS);
    let bytes_max = cell.workload.stop.bytes.unwrap_or(u64::MAX);
    let (mut due, mut ops) = (0.0, 0);
    let mut wall_ns = 0;
    while wall_ns < cell.workload.stop.time_ns.unwrap() && ops * BLOCK_BYTES < bytes_max {
        due += disk.busy(CELL_NS as f64 / 1e9) * CELL_NS as f64 / 1e9;
        let more = (due as u64 - ops).min(bytes_max / BLOCK_BYTES - ops);
        ops += more;
        moved.cells.push(Cell {
            ops: more,
            bytes: more * BLOCK_BYTES,
            ..Cell::default()
        });
        wall_ns += CELL_NS;
    }
    MeasuredCell {
        slice: TimeSlice {
            start_ns,
            wall_ns,
            ops: BTreeMap::from([(
                OpKind::Write,
                SliceOp::from_counts(ops, ops * BLOCK_BYTES, wall_ns),
            )]),
            slot: None,
        },
        cell,
        asked_bytes: ops * BLOCK_BYTES,
        moved: moved.thinned(1, 500),
        span_bytes: SPAN_BYTES,
        trial: None,
        pause: None,
    }
}

#[test]
fn healthy_disk_gets_the_whole_time_and_no_pause() {
    let mut disk = Cache {
        fast: 20_000.0,
        slow: 1.0,
        size_bytes: 1e18,
        used_bytes: 0.0,
        emptied_per_s: 0.0,
        number: 0,
    };
    let carried = carried_out(&plan(240, |_| {}), &mut disk);
    assert_eq!(carried.rounds("sustained"), 48);
    assert_eq!(carried.done.len(), 48);
    assert_eq!(carried.end_ns, 240 * SECOND);
}

#[test]
fn credit_that_ends_is_followed_by_pauses_within_the_time() {
    for (base, burst, credit) in [
        (3000.0, 16_000.0, 500_000.0),
        (300.0, 3000.0, 54_000.0),
        (1000.0, 1500.0, 40_000.0),
    ] {
        let mut disk = Limiter::full(base, burst, credit);
        let carried = carried_out(&plan(240, |_| {}), &mut disk);
        assert_eq!(carried.rounds("after-10s"), 1, "{base}");
        assert_eq!(carried.rounds("after-50s"), 1, "{base}");
        assert!(carried.end_ns <= 240 * SECOND, "{}", carried.end_ns);
        assert!(carried.rounds("sustained") >= 30, "{base}");
    }
}

#[test]
fn credit_that_ends_late_has_only_the_pauses_that_fit() {
    let mut disk = Limiter::full(3000.0, 16_000.0, 13_000.0 * 205.0);
    let carried = carried_out(&plan(240, |_| {}), &mut disk);
    assert_eq!(carried.rounds("after-10s"), 1);
    assert_eq!(carried.rounds("after-50s"), 0);
    let latest_ns = 240 * SECOND + OVERTIME_NS;
    assert!(carried.end_ns <= latest_ns, "{}", carried.end_ns);
}

#[test]
fn fall_of_a_cache_is_found_where_its_size_says() {
    for megabytes in [2000.0, 5000.0, 12_000.0] {
        let mut disk = Cache {
            fast: 20_000.0,
            slow: 5000.0,
            size_bytes: megabytes * 1e6,
            used_bytes: 0.0,
            emptied_per_s: 100e6,
            number: 0,
        };
        let carried = carried_out(&plan(240, |_| {}), &mut disk);
        let load: Vec<&MeasuredCell> = carried
            .done
            .iter()
            .filter(|one| one.cell.workload.name == "sustained")
            .collect();
        let series = joined_series(&load);
        let fall = rate_fall(&series, time_ns(&series)).unwrap();
        let bytes = series.total_between(0, fall.at_ns).bytes as f64;
        assert!((bytes / megabytes / 1e6 - 1.0).abs() < 0.05, "{bytes}");
        assert!(
            (fall.before / fall.after / 4.0 - 1.0).abs() < 0.05,
            "{fall:?}"
        );
        assert_eq!(carried.rounds("after-50s"), 1);
    }
}

#[test]
fn heat_and_used_up_flash_are_falls_too() {
    let mut hot = Hot {
        rate: 20_000.0,
        heat: 0.0,
        number: 0,
    };
    let carried = carried_out(&plan(600, |_| {}), &mut hot);
    assert_eq!(carried.rounds("after-50s"), 1);
    let mut flash = Flash {
        first: 40_000.0,
        last: 8000.0,
        written: 0.0,
        capacity: 1e6,
        number: 0,
    };
    let carried = carried_out(&plan(600, |_| {}), &mut flash);
    assert_eq!(carried.rounds("after-50s"), 1);
}

#[test]
fn allowed_fall_ends_the_load_soon_after_it_is_exceeded() {
    let limited = plan(3600, |sustain| sustain.stop_at_drop = Some(0.2));
    let mut disk = Limiter::full(300.0, 3000.0, 54_000.0);
    let carried = carried_out(&limited, &mut disk);
    assert_eq!(carried.rounds("after-10s"), 0);
    // The credit lasts for 20 s.
    assert!(carried.end_ns >= 20 * SECOND && carried.end_ns <= 60 * SECOND);
    let wide = plan(240, |sustain| sustain.stop_at_drop = Some(0.95));
    let carried = carried_out(&wide, &mut Limiter::full(300.0, 3000.0, 54_000.0));
    assert_eq!(carried.rounds("after-50s"), 1);
}

/// The facts of a plan whose load goes along the surface of a rotating disk of 2 TB.
fn along_platters(mut plan: Plan) -> RunFacts {
    for workload in &mut plan.workload_task_mut().unwrap().list {
        workload.access = Access::Sequential;
    }
    let mut facts = fixture::run().facts;
    facts.plan = plan;
    let mut disk = fixture::layer("sda", LayerKind::Disk, &[]);
    disk.rotational = Some(true);
    disk.size_bytes = SPAN_BYTES;
    facts.targets[0].layers = vec![disk];
    facts
}

/// A lap over the 2 TB lasts for 3 h 20.
#[test]
fn slower_zones_of_a_rotating_disk_end_no_load() {
    for hours in [2, 5] {
        let mut limited = plan(hours * 3600, |sustain| {
            sustain.stop_at_drop = Some(0.2);
            sustain.round_ns = 300 * SECOND;
        });
        limited.workload_task_mut().unwrap().list[0].block_bytes = BLOCK_BYTES as u32;
        let disk = || Platters {
            passed_bytes: 0.0,
            number: 0,
        };
        let facts = along_platters(limited);
        let carried = carried_out_on(&facts, &mut disk());
        assert_eq!(carried.rounds("sustained") as u64, hours * 12);
        assert_eq!(carried.done.len() as u64, hours * 12, "{hours} h");
        // The same curve is a fall where nothing shows that the disk rotates.
        let mut solid = facts;
        solid.targets[0].layers[0].rotational = Some(false);
        let carried = carried_out_on(&solid, &mut disk());
        assert!(
            (carried.rounds("sustained") as u64) < hours * 12,
            "{hours} h"
        );
    }
}

#[test]
fn fall_that_zones_do_not_explain_ends_a_load_along_them() {
    let facts = along_platters(plan(3600, |sustain| sustain.stop_at_drop = Some(0.2)));
    let mut disk = Limiter::full(3000.0, 30_000.0, 540_000.0);
    let carried = carried_out_on(&facts, &mut disk);
    assert!(carried.end_ns >= 20 * SECOND && carried.end_ns <= 60 * SECOND);
}

#[test]
fn budget_limits_the_bytes_of_all_parts() {
    for budget_bytes in [BLOCK_BYTES - 1, 10_000_000, 800_000_000] {
        let limited = plan(240, |sustain| {
            sustain.budget_bytes = Some(budget_bytes);
            sustain.precondition_bytes = Some(400_000_000);
        });
        let carried = carried_out(&limited, &mut Limiter::full(300.0, 3000.0, 54_000.0));
        let moved = moved_bytes(&carried.done);
        assert!(moved <= budget_bytes, "{moved} of {budget_bytes}");
        assert!(
            moved + BLOCK_BYTES > budget_bytes,
            "{moved} of {budget_bytes}"
        );
    }
}

#[test]
fn writes_count_once_where_each_is_also_a_commit() {
    let mut disk = Limiter::full(300.0, 3000.0, 54_000.0);
    let mut carried = carried_out(&plan(20, |_| {}), &mut disk);
    let written = moved_bytes(&carried.done);
    for one in &mut carried.done {
        let writes = one.slice.ops[&OpKind::Write];
        one.slice.ops.insert(OpKind::Commit, writes);
        one.slice.ops.insert(OpKind::Sync, writes);
    }
    assert_eq!(moved_bytes(&carried.done), written);
}

#[test]
fn precondition_writes_its_bytes_before_the_load() {
    let planned = plan(60, |sustain| {
        sustain.precondition_bytes = Some(1_000_000_000)
    });
    let mut disk = Flash {
        first: 40_000.0,
        last: 20_000.0,
        written: 0.0,
        capacity: 1e5,
        number: 0,
    };
    let carried = carried_out(&planned, &mut disk);
    let before: Vec<&MeasuredCell> = carried
        .done
        .iter()
        .take_while(|one| one.cell.workload.name == "precondition")
        .collect();
    let written = moved_bytes(before.iter().copied());
    assert!(
        written + BLOCK_BYTES > 1_000_000_000 && written <= 1_000_000_000,
        "{written}"
    );
    assert_eq!(before.len(), carried.rounds("precondition"));
    assert_eq!(carried.rounds("sustained"), 12);
}
