//! Sums of hosts whose cells are known: equal rates in every slot, clocks that are wrong by a known
//! time.

use super::*;
use crate::fixture;
use crate::steady::with_warmup;
use diskproof_model::finding::{Cause, Finding, Meaning, Severity};
use diskproof_model::measurement::Hang;
use diskproof_model::plan::{Order, Task, Workloads};
use diskproof_model::record::TaskResult;
use diskproof_model::series::{Cell, TimeSeries};
use diskproof_model::target::Rank;
use diskproof_model::timetable::SlotPlan;
use diskproof_model::together::TogetherRecord;
use diskproof_model::together::{Fence, SkippedSlot, SliceSlot, SlotOrigin};
use diskproof_model::wall_clock::{WallClock, WallSource};
use diskproof_model::window::TimeSlice;

const SLOTS: u64 = 8;
const CELL_NS: u64 = 10_000_000;
const CELLS: u64 = 25;
const SLOT_NS: u64 = CELLS * CELL_NS;
const PERIOD_NS: u64 = 600_000_000;
/// True time of the first slot, after the start of each run.
const FIRST_NS: u64 = 2_000_000_000;

/// A host of a run together with others.
#[derive(Clone)]
struct Host {
    rank: u32,
    /// Operations in a cell of each slot.
    per_cell: u64,
    /// By how much its clock is ahead.
    ahead_ns: i64,
    /// What it thinks of its clock.
    bound_ns: Option<u64>,
    has_fences: bool,
    /// By how much it began later than the others.
    late_ns: u64,
    /// Slots that it skipped.
    skipped: Vec<u32>,
}

fn host(rank: u32) -> Host {
    Host {
        rank,
        per_cell: 30,
        ahead_ns: 0,
        bound_ns: Some(1_000_000),
        has_fences: false,
        late_ns: 0,
        skipped: Vec::new(),
    }
}

fn started(ahead_ns: i64) -> String {
    let start = 1_800_000_000_000_000_000 + i128::from(ahead_ns);
    let timestamp = jiff::Timestamp::from_nanosecond(start).unwrap();
    format!("{timestamp:.9}")
}

impl Host {
    fn record(&self) -> Record {
        let mut record = fixture::record();
        record
            .measurements
            .retain(|row| row.data.workload.name == "random-read-d1");
        record.findings.clear();
        record.run_id = format!("{:032x}", self.rank);
        record.started = started(self.ahead_ns + self.late_ns as i64);
        record.host.name = format!("db{}", self.rank);
        record.host.rank = Some(Rank {
            rank: self.rank,
            size: Some(3),
        });
        record.clock.wall = Some(WallClock {
            bound_ns: self.bound_ns,
            source: WallSource::Adjtimex,
            paired_within_ns: 0,
            gained_ns: None,
            apart_ns: 0,
            boot_id: Some(self.rank.to_string()),
        });
        record.plan.tasks = vec![Task::Workloads(Workloads {
            order: Order::InSlots(SlotPlan::default()),
            ..Workloads::as_planned(record.plan.workloads().to_vec())
        })];
        self.measure(&mut record);
        let together = self.together();
        record.results.push(TaskResult::Together(together));
        record
    }

    fn together(&self) -> TogetherRecord {
        let mut fences = Vec::new();
        for fence in 0..if self.has_fences { 10 } else { 0 } {
            // Each rank is the last one to enter some of them.
            let last_ns = 1_000_000_000 + fence * 1_000_000;
            let early_ns = (fence + u64::from(self.rank)) % 3 * 100_000;
            fences.push(Fence {
                entered_ns: last_ns - early_ns,
                left_ns: last_ns + 50_000,
            });
        }
        TogetherRecord {
            slots: SLOTS as u32,
            first_slot_ns: FIRST_NS as i64 - self.late_ns as i64,
            origin: SlotOrigin::GivenTime,
            ready_ns: Some(1),
            fences,
            fence_failure: None,
            skipped: self
                .skipped
                .iter()
                .map(|slot| SkippedSlot {
                    slot: *slot,
                    workload: "one".to_owned(),
                    late_ns: 1,
                })
                .collect(),
        }
    }

    fn measure(&self, record: &mut Record) {
        let data = &mut record.measurements[0].data;
        data.windows.clear();
        data.slices.clear();
        let mut cells = Vec::new();
        for slot in 0..SLOTS as u32 {
            if self.skipped.contains(&slot) {
                continue;
            }
            let start_ns = FIRST_NS + u64::from(slot) * PERIOD_NS - self.late_ns;
            data.slices.push(TimeSlice {
                start_ns,
                wall_ns: SLOT_NS,
                ops: PerOp::new(),
                slot: Some(SliceSlot {
                    number: slot,
                    began_ns: start_ns + u64::from(self.rank) * 1_000,
                }),
            });
            for _ in 0..CELLS {
                cells.push(Cell {
                    ops: self.per_cell,
                    bytes: self.per_cell * 8192,
                    ..Cell::default()
                });
            }
        }
        for op in data.ops.values_mut() {
            let mut series = TimeSeries::new(CELL_NS);
            series.cells.clone_from(&cells);
            op.series = series;
        }
        data.ops.retain(|kind, _| *kind == OpKind::Read);
    }
}

fn runs(hosts: &[Host]) -> TogetherRuns {
    let mut runs = TogetherRuns::default();
    for host in hosts {
        runs.add(&host.record());
    }
    runs
}

fn sum(hosts: &[Host]) -> FleetSum {
    runs(hosts).sum(None).unwrap()
}

fn codes(sum: &FleetSum) -> Vec<(&str, &str)> {
    let out = sum.left_out.iter();
    out.map(|one| (one.name.as_str(), one.reason.code.as_str()))
        .collect()
}

#[test]
fn three_equal_hosts_give_three_times_the_rate_of_one() {
    let sum = sum(&[host(0), host(1), host(2)]);
    assert_eq!(sum.members.len(), 3);
    let [reads] = sum.workloads.as_slice() else {
        panic!("{:?}", sum.workloads);
    };
    assert_eq!(reads.iops.value, 9_000.0);
    assert_eq!(reads.iops.half_width_95, Some(0.0));
    assert_eq!(reads.throughput.value, 9_000.0 * 8192.0);
    assert_eq!(reads.slots, SLOTS as usize);
    // Two clocks of 1 ms each shorten a slot of 250 ms at both ends.
    assert!((reads.overlap - 246.0 / 250.0).abs() < 1e-3, "{reads:?}");
    let starts = sum.starts.unwrap();
    assert_eq!((starts.median_ns, starts.longest_ns), (2_000, 2_000));
}

/// Never-written devices answer from nowhere: what they give together is no sum of disks.
#[test]
fn figures_that_are_not_the_disks_have_no_sum() {
    let mut together = TogetherRuns::default();
    for rank in 0..3 {
        let mut record = host(rank).record();
        if rank == 1 {
            record.findings.push(Finding {
                says: Meaning::NotTheDisk {
                    cause: Cause::EmptyBlocks,
                },
                ..fixture::finding(
                    "unwritten-blocks",
                    Severity::Warning,
                    "/measurements/0/data",
                )
            });
        }
        together.add(&record);
    }
    let sum = together.sum(None).unwrap();
    assert_eq!((sum.members.len(), sum.workloads.len()), (3, 0));
    let [undecided] = sum.undecided.as_slice() else {
        panic!("{:?}", sum.undecided);
    };
    assert_eq!(undecided.name, "db1 #1");
    assert_eq!(undecided.reason.code, "unwritten-blocks");
}

#[test]
fn host_whose_disk_did_not_answer_any_more_is_not_in_the_sum() {
    let mut together = TogetherRuns::default();
    for rank in 0..3 {
        let mut record = host(rank).record();
        if rank == 2 {
            record.measurements[0].data.hang = Some(Hang {
                since_ns: 1,
                lasted_ns: 9_800_000_000,
                requests: 4,
                late: true,
            });
        }
        together.add(&record);
    }
    assert_eq!(codes(&together.sum(None).unwrap()), [("db2 #2", "silent")]);
}

/// The folder has the records of two nights, whose orders of slots differ.
#[test]
fn sum_is_that_of_the_newest_launch() {
    let night = |number: u32, ranks: std::ops::Range<u32>, together: &mut TogetherRuns| {
        for rank in ranks {
            let late = Host {
                ahead_ns: i64::from(number) * 86_400_000_000_000,
                ..host(rank)
            };
            let mut record = late.record();
            record.run_id = format!("{:032x}", 100 * number + rank);
            record.plan.seed = u64::from(number);
            together.add(&record);
        }
    };
    let mut together = TogetherRuns::default();
    night(1, 0..3, &mut together);
    night(0, 0..3, &mut together);
    let sum = together.sum(None).unwrap();
    assert_eq!((sum.members.len(), codes(&sum).len()), (3, 0));
    assert!(
        sum.members
            .iter()
            .all(|member| member.run_id.ends_with(&format!("{:x}", 100))
                || member.run_id.ends_with(&format!("{:x}", 101))
                || member.run_id.ends_with(&format!("{:x}", 102)))
    );
    let [earlier] = sum.earlier_launches.as_slice() else {
        panic!("{:?}", sum.earlier_launches);
    };
    assert_eq!(earlier.runs, 3);
    // One rank was repeated: that is no launch.
    let mut repeated = TogetherRuns::default();
    night(0, 0..3, &mut repeated);
    night(1, 1..2, &mut repeated);
    let sum = repeated.sum(None).unwrap();
    assert_eq!((sum.members.len(), sum.earlier_launches.len()), (3, 0));
}

#[test]
fn interval_is_that_of_student_over_slots() {
    let mut hosts = [host(0), host(1)];
    hosts[1].skipped = vec![3];
    let mut runs = runs(&hosts);
    // Slots of the first host that differ: the totals of the common ones are 31, 32 … times 100.
    for (index, cell) in runs.runs[0].rows[0]
        .ops
        .get_mut(&OpKind::Read)
        .unwrap()
        .cells
        .iter_mut()
        .enumerate()
    {
        cell.ops = 1 + index as u64 / CELLS;
    }
    let sum = runs.sum(None).unwrap();
    assert_eq!(
        sum.members
            .iter()
            .map(|one| one.skipped.len())
            .sum::<usize>(),
        1
    );
    let reads = &sum.workloads[0];
    assert_eq!(reads.slots, 7);
    // 1, 2, 3, 5, 6, 7, 8 and 30 operations in 10 ms: s = 2.637, t = 2.447 (6 degrees of freedom).
    assert!((reads.iops.value - (30.0 + 32.0 / 7.0) * 100.0).abs() < 1e-6);
    let half_width = reads.iops.half_width_95.unwrap();
    assert!((half_width - 243.9).abs() < 0.5, "{half_width}");
}

#[test]
fn clock_that_is_three_seconds_wrong_is_out_without_fences_and_in_with_them() {
    let mut hosts = [host(0), host(1), host(2)];
    hosts[2].ahead_ns = 3_000_000_000;
    assert_eq!(codes(&sum(&hosts)), [("db2 #2", "other-time")]);
    // It knows that it may be wrong.
    hosts[2].ahead_ns = 0;
    hosts[2].bound_ns = Some(3_000_000_000);
    let out = sum(&hosts);
    assert_eq!(codes(&out), [("db2 #2", "clock-bound")]);
    assert_eq!(out.workloads[0].iops.value, 6_000.0);
    hosts[2].bound_ns = None;
    assert_eq!(codes(&sum(&hosts)), [("db2 #2", "clock-unknown")]);
    hosts[2].ahead_ns = 3_000_000_000;
    for host in &mut hosts {
        host.has_fences = true;
    }
    let whole = sum(&hosts);
    assert!(whole.left_out.is_empty(), "{:?}", whole.left_out);
    assert_eq!(whole.workloads[0].iops.value, 9_000.0);
    assert!(whole.members.iter().all(|member| member.bound_ns <= 60_000));
}

/// Under one kernel no time service is needed. The clock that is not the kernel's is out, also
/// where its slots began in the middle.
#[test]
fn clock_that_is_not_that_of_the_kernel_is_no_reference() {
    let mut runs = TogetherRuns::default();
    for (rank, ahead_ns, apart_ns) in [(0, -1_000, 0), (1, 0, 3_000_000_000), (2, 1_000, 0)] {
        let mut record = Host {
            ahead_ns,
            ..host(rank)
        }
        .record();
        let wall = record.clock.wall.as_mut().unwrap();
        wall.bound_ns = None;
        wall.boot_id = Some("one".to_owned());
        wall.apart_ns = apart_ns;
        runs.add(&record);
    }
    // One that states nothing is none either, wherever it stands in the order.
    let mut silent = Host {
        ahead_ns: 500,
        ..host(3)
    }
    .record();
    silent.clock.wall = None;
    runs.add(&silent);
    let sum = runs.sum(None).unwrap();
    let left_out = [("db1 #1", "clock-bound"), ("db3 #3", "clock-unknown")];
    assert_eq!(codes(&sum), left_out);
}

#[test]
fn late_host_is_named_and_not_in_the_sum() {
    let mut hosts = [host(0), host(1), host(2)];
    hosts[1].late_ns = 3_000_000_000;
    hosts[1].skipped = (0..6).collect();
    // Its first slot would lie before the start of its run.
    hosts[1].late_ns = FIRST_NS + 100;
    let out = sum(&hosts);
    assert_eq!(codes(&out), [("db1 #1", "late")]);
    assert!(out.summary.starts_with("2 of 3 hosts together"), "{out:?}");
    assert_eq!(out.workloads[0].iops.value, 6_000.0);
    // One slot late: the others count.
    hosts[1].skipped = vec![0];
    let some = sum(&hosts);
    assert!(some.left_out.is_empty());
    assert_eq!(some.workloads[0].slots, 7);
    assert_eq!(some.workloads[0].iops.value, 9_000.0);
}

/// The record of a host with a second target `/b`, which did not measure `lacking`.
fn record_of_two_targets(rank: u32, lacking: &[u32]) -> Record {
    let mut record = host(rank).record();
    let mut target = record.targets[0].clone();
    target.path = "/b".to_owned();
    record.targets.push(target);
    let mut second = Host {
        skipped: lacking.to_vec(),
        ..host(rank)
    }
    .record()
    .measurements
    .remove(0);
    second.data.target = 1;
    record.measurements.push(second);
    record
}

#[test]
fn slot_that_a_target_did_not_measure_is_in_no_sum() {
    let sum_of = |lacking: &[u32]| {
        let mut runs = TogetherRuns::default();
        runs.add(&host(0).record());
        runs.add(&record_of_two_targets(1, lacking));
        runs.add(&record_of_two_targets(2, &[]));
        runs.sum(None).unwrap()
    };
    let whole = sum_of(&[]);
    assert_eq!(whole.workloads[0].iops.value, 15_000.0);
    assert!(
        whole
            .members
            .iter()
            .all(|member| member.skipped_targets.is_empty())
    );
    let some = sum_of(&[3]);
    let reads = &some.workloads[0];
    assert_eq!((reads.slots, reads.iops.value), (7, 15_000.0));
    assert_eq!(reads.iops.half_width_95, Some(0.0));
    let member = some
        .members
        .iter()
        .find(|member| member.name == "db1 #1")
        .unwrap();
    assert_eq!(
        (member.skipped.as_slice(), member.skipped_targets.as_slice()),
        ([3].as_slice(), ["/b".to_owned()].as_slice())
    );
    // Nothing is left of it where a target lacks most slots, or all.
    for lacking in [Vec::from_iter(0..6), Vec::from_iter(0..8)] {
        let out = sum_of(&lacking);
        assert_eq!(codes(&out), [("db1 #1", "few-slots")]);
        assert!(out.left_out[0].reason.why.contains("/b"), "{out:?}");
        assert_eq!(out.workloads[0].iops.value, 9_000.0);
    }
    // Nor where it has no row at all.
    let mut lost = record_of_two_targets(1, &[]);
    lost.measurements.truncate(1);
    let mut runs = runs(&[host(0), host(2)]);
    runs.add(&lost);
    assert_eq!(codes(&runs.sum(None).unwrap()), [("db1 #1", "few-slots")]);
}

#[test]
fn other_plan_is_named() {
    let mut records = vec![host(0).record(), host(1).record(), host(2).record()];
    records[2].plan.seed += 1;
    let mut runs = TogetherRuns::default();
    for record in &records {
        runs.add(record);
    }
    let out = runs.sum(None).unwrap();
    assert_eq!(codes(&out), [("db2 #2", "other-plan")]);
    // Nor is a rank of which no record came.
    let two = sum(&[host(0), host(1)]);
    assert!(two.summary.starts_with("2 of 3 hosts together"), "{two:?}");
    // A run without common slots is named if its host is not there.
    let mut alone = fixture::record();
    alone.host.name = "db9".to_owned();
    runs.add(&alone);
    let mut of_member = fixture::record();
    of_member.host = records[0].host.clone();
    of_member.host.rank = None;
    runs.add(&of_member);
    let out = runs.sum(None).unwrap();
    assert_eq!(codes(&out), [("db2 #2", "other-plan"), ("db9", "no-slots")]);
}

#[test]
fn latencies_of_all_members_are_added_bucket_by_bucket() {
    let runs = runs(&[host(0), host(1), host(2)]);
    let candidates: Vec<&RunInSlots> = runs.runs.iter().collect();
    let members = members(&candidates, &mut Vec::new());
    let name = runs.runs[0].rows[0].workload.clone();
    let merged = merged_histogram(&members, &name, OpKind::Read);
    let one = with_warmup(&host(0).record().measurements[0].data);
    let single: Vec<_> = one.ops[&OpKind::Read].latency.buckets().collect();
    let summed: Vec<_> = merged.buckets().collect();
    assert_eq!(single.len(), summed.len());
    for (own, all) in single.iter().zip(&summed) {
        assert_eq!((own.low_ns, own.width_ns), (all.low_ns, all.width_ns));
        assert_eq!(3 * own.count, all.count);
    }
}

#[test]
fn hosts_on_one_storage_are_told() {
    let mut records = vec![host(0).record(), host(1).record()];
    for record in &mut records {
        record.host.hypervisor = None;
        let disk = record.targets[0].layers.last_mut().unwrap();
        disk.model = Some("SSD 870".to_owned());
        disk.serial = Some("S1".to_owned());
    }
    let of = |records: &[Record], asked| {
        let mut runs = TogetherRuns::default();
        for record in records {
            runs.add(record);
        }
        runs.sum(asked).unwrap().storage
    };
    assert_eq!(of(&records, None), SumStorage::Shared);
    assert_eq!(
        of(&records, Some(SumStorage::Separate)),
        SumStorage::Separate
    );
    // Clones of a virtual machine share serial numbers.
    records[0].host.hypervisor = Some("kvm".to_owned());
    assert_eq!(of(&records, None), SumStorage::Separate);
    for record in &mut records {
        let filesystem = record.targets[0].filesystem.as_mut().unwrap();
        "fuse.glusterfs".clone_into(&mut filesystem.kind);
        "10.0.0.1:gv0".clone_into(&mut filesystem.source);
        record.targets[0].layers.clear();
    }
    assert_eq!(of(&records, None), SumStorage::Shared);
}
