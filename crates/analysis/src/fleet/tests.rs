//! Fleets of copies of one record, in which single ones are changed.

use super::*;
use crate::fixture;
use crate::fixture::accepted::{Fault, accepted};
use crate::fixture::inserted::inserted;
use crate::fixture::surveyed;
use diskproof_model::campaign::CampaignPart;
use diskproof_model::expectation::Expectation;
use diskproof_model::finding::{Finding, Meaning, Severity};
use diskproof_model::fleet::{FleetBasis, FleetOutcome, FleetRow, RowState};
use diskproof_model::health::DiskHealth;
use diskproof_model::measurement::Hang;
use diskproof_model::record::{Stalled, TaskResult};
use diskproof_model::target::{Layer, Link, Rank};
use std::collections::BTreeSet;

fn question() -> FleetQuestion {
    FleetQuestion {
        tool: fixture::record().tool,
        margin: MARGIN,
        missing: Vec::new(),
        surplus: Surplus::default(),
        refused: Vec::new(),
    }
}

/// The record of host number `number`, whose rates vary by about 2 %.
fn record(number: usize) -> Record {
    let mut record = fixture::record();
    record.run_id = format!("{number:032x}");
    record.host.name = format!("db{number:02}");
    record.findings.clear();
    // Even steps of an irrational number spread like random ones and never repeat.
    let place = (number as f64 * 0.618_034).fract() - 0.5;
    scale(&mut record, 1.0 + 0.04 * place);
    record
}

/// Multiplies every rate, and divides every latency.
fn scale(record: &mut Record, factor: f64) {
    for index in 0..record.measurements.len() {
        scale_workload(record, index, factor);
    }
}

fn scale_workload(record: &mut Record, index: usize, factor: f64) {
    for figures in record.measurements[index].figures.ops.values_mut() {
        figures.iops.value *= factor;
        figures.throughput.value *= factor;
        figures.latency.mean /= factor;
    }
}

fn judged(records: &[Record]) -> FleetRecord {
    let mut fleet = Fleet::new(None);
    for record in records {
        assert_eq!(fleet.add(record), Added::Counted);
    }
    fleet.judge(question())
}

fn records(count: usize) -> Vec<Record> {
    (0..count).map(record).collect()
}

fn row<'f>(fleet: &'f FleetRecord, name: &str) -> &'f FleetRow {
    let found = fleet.rows.iter().find(|row| row.name == name);
    found.unwrap_or_else(|| panic!("{name}: {:?}", fleet.summary))
}

fn names(fleet: &FleetRecord, state: RowState) -> Vec<&str> {
    let rows = fleet.rows.iter().filter(|row| row.state == state);
    rows.map(|row| row.name.as_str()).collect()
}

/// The start of a run in this night, of which each is long over when the next one begins.
fn night(number: usize) -> String {
    format!("2026-12-{:02}T01:00:00.000000000Z", number + 1)
}

fn disk(record: &mut Record) -> &mut Layer {
    record.targets[0].layers.last_mut().unwrap()
}

#[test]
fn healthy_fleet_has_no_names() {
    for count in [3, 5, 12, 60] {
        let fleet = judged(&records(count));
        assert_eq!(fleet.outcome, FleetOutcome::Alike, "{}", fleet.summary);
        assert_eq!(
            names(&fleet, RowState::Alike).len(),
            count,
            "{}",
            fleet.summary
        );
    }
}

#[test]
fn slow_disk_is_named_with_the_reason() {
    let mut all = records(60);
    scale(&mut all[17], 0.5);
    disk(&mut all[17]).link = Some(Link {
        bus: "SATA".to_owned(),
        speed: Some("3.0 Gbps".to_owned()),
        ..Link::default()
    });
    for (index, record) in all.iter_mut().enumerate() {
        if index != 17 {
            disk(record).link = Some(Link {
                bus: "SATA".to_owned(),
                speed: Some("6.0 Gbps".to_owned()),
                ..Link::default()
            });
        }
    }
    // Another firmware with equal figures is no name.
    disk(&mut all[5]).firmware = Some("OLD".to_owned());
    let fleet = judged(&all);
    assert_eq!(fleet.outcome, FleetOutcome::Differs);
    assert_eq!(names(&fleet, RowState::Slower), ["db17"]);
    assert_eq!(fleet.rows[0].name, "db17");
    let reasons = &fleet.rows[0].reasons;
    assert_eq!(reasons[0].code, "link", "{reasons:?}");
    assert!(reasons[0].text.contains("3.0 Gbps") && reasons[0].text.contains("on 59"));
    assert!(row(&fleet, "db05").reasons.is_empty());
}

#[test]
fn firmware_is_a_reason_and_no_name_by_itself() {
    let mut all = records(40);
    for record in &mut all {
        disk(record).firmware = Some("GXA7802Q".to_owned());
    }
    disk(&mut all[11]).firmware = Some("GXA7401Q".to_owned());
    let fleet = judged(&all);
    assert_eq!(fleet.outcome, FleetOutcome::Alike, "{}", fleet.summary);
    assert_eq!(names(&fleet, RowState::Alike).len(), 40);
    assert!(row(&fleet, "db11").reasons.is_empty());
    scale(&mut all[11], 0.6);
    let fleet = judged(&all);
    assert_eq!(names(&fleet, RowState::Slower), ["db11"]);
    let reason = &fleet.rows[0].reasons[0];
    assert_eq!(reason.code, "firmware");
    for part in ["GXA7401Q", "GXA7802Q on 39"] {
        assert!(reason.text.contains(part), "{reason:?}");
    }
}

/// Of a record a fleet keeps figures, facts and latencies, and one record as the example: twice as
/// many hosts take twice the memory, and each takes a part of its record.
#[test]
fn fleet_grows_by_the_same_with_each_record() {
    let mut fleet = Fleet::new(None);
    let mut kept = Vec::new();
    for number in 0..16 {
        if number % 4 == 0 {
            kept.push(format!("{fleet:?}").len() as f64);
        }
        assert_eq!(fleet.add(&record(number)), Added::Counted);
    }
    kept.push(format!("{fleet:?}").len() as f64);
    assert_eq!(fleet.groups.examples.len(), 1);
    let (half, other_half) = (kept[2] - kept[1], kept[4] - kept[3]);
    assert!((half / other_half - 1.0).abs() < 0.05, "{kept:?}");
    let record_bytes = format!("{:?}", record(0)).len() as f64;
    assert!(half / 4.0 < record_bytes / 4.0, "{kept:?} {record_bytes}");
}

#[test]
fn one_slow_workload_is_enough() {
    let mut all = records(60);
    scale_workload(&mut all[4], 1, 0.5);
    let fleet = judged(&all);
    assert_eq!(names(&fleet, RowState::Slower), ["db04"]);
    let slow = fleet.rows[0].values.iter();
    assert_eq!(
        slow.filter(|value| value.state == RowState::Slower).count(),
        1
    );
}

#[test]
fn disk_that_is_far_faster_is_told_apart() {
    let mut all = records(30);
    scale(&mut all[3], 9.0);
    let fleet = judged(&all);
    assert_eq!(names(&fleet, RowState::Faster), ["db03"]);
    assert_eq!(fleet.outcome, FleetOutcome::Alike);
}

#[test]
fn span_that_was_cut_by_the_same_plan_is_a_symptom() {
    let mut all = records(12);
    scale(&mut all[2], 0.1);
    for row in &mut all[2].measurements {
        row.data.span_bytes /= 4;
    }
    let fleet = judged(&all);
    assert_eq!(
        names(&fleet, RowState::Slower),
        ["db02"],
        "{}",
        fleet.summary
    );
    let codes: Vec<&str> = fleet.rows[0]
        .reasons
        .iter()
        .map(|one| one.code.as_str())
        .collect();
    assert!(codes.contains(&"span-differs"), "{codes:?}");
}

#[test]
fn disk_with_another_plan_is_not_judged() {
    let mut all = records(12);
    scale(&mut all[2], 0.1);
    let scratch = all[2].plan.scratch.get_or_insert_default();
    scratch.size_bytes = 1 << 20;
    for row in &mut all[2].measurements {
        row.data.span_bytes /= 4;
    }
    let fleet = judged(&all);
    assert_eq!(
        names(&fleet, RowState::NotJudged),
        ["db02"],
        "{}",
        fleet.summary
    );
    assert_eq!(
        row(&fleet, "db02").not_judged.as_ref().unwrap().code,
        "span-differs"
    );
    // Also where it comes first.
    all.swap(0, 2);
    let fleet = judged(&all);
    assert_eq!(
        names(&fleet, RowState::NotJudged),
        ["db02"],
        "{}",
        fleet.summary
    );
    assert_eq!(
        row(&fleet, "db02").not_judged.as_ref().unwrap().code,
        "span-differs"
    );
}

#[test]
fn equal_host_names_and_two_disks_a_host_are_rows() {
    let mut all = records(6);
    for (index, record) in all.iter_mut().enumerate() {
        record.host.name = "pod".to_owned();
        record.host.rank = Some(Rank {
            rank: index as u32 / 2,
            size: Some(3),
        });
        record.targets[0].path = format!("/data{}", index % 2);
    }
    let fleet = judged(&all);
    assert_eq!(fleet.rows.len(), 6);
    let unique: BTreeSet<&str> = fleet.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(unique.len(), 6, "{unique:?}");
}

#[test]
fn several_runs_are_one_row_and_the_same_run_counts_once() {
    let mut all = records(9);
    for (index, record) in all.iter_mut().enumerate() {
        record.host.name = format!("db{}", index % 3);
        record.started = night(index / 3);
    }
    let fleet = judged(&all);
    assert_eq!(fleet.rows.len(), 3);
    assert!(fleet.rows.iter().all(|row| row.runs.len() == 3));
    let mut again = Fleet::new(None);
    assert_eq!(again.add(&all[0]), Added::Counted);
    assert_eq!(again.add(&all[0]), Added::Again);
    let mut clone = all[0].clone();
    clone.host.name = "clone".to_owned();
    assert_eq!(again.add(&clone), Added::Again);
    clone.started = "2027-01-01T00:00:00.000000000Z".to_owned();
    assert_eq!(again.add(&clone), Added::SameId);
}

/// Runs of so many machines with three names, in two nights, without ranks; the disks have no
/// serial numbers.
fn records_of_pods(machines: usize) -> Vec<Record> {
    let mut all = records(2 * machines);
    for (index, record) in all.iter_mut().enumerate() {
        record.host.name = format!("pod{}", index % 3);
        record.started = night(index / machines);
        disk(record).serial = None;
    }
    all
}

fn identities(fleet: &FleetRecord) -> Vec<&str> {
    let mut codes = Vec::new();
    for row in &fleet.rows {
        codes.extend(row.identity.as_ref().map(|reason| reason.code.as_str()));
    }
    codes
}

#[test]
fn runs_of_one_name_at_one_time_are_of_several_machines() {
    let mut all = records_of_pods(6);
    scale(&mut all[4], 0.5);
    let fleet = judged(&all);
    assert_eq!(fleet.rows.len(), 12);
    assert_eq!(identities(&fleet), ["at-once"; 12]);
    assert_eq!(names(&fleet, RowState::Slower).len(), 1);
    let unique: BTreeSet<&str> = fleet.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(unique.len(), 12, "{unique:?}");
    // Clones of one snapshot have one machine id, and one boot.
    for record in &mut all {
        record.host.machine = Some("clone".to_owned());
    }
    assert_eq!(judged(&all).rows.len(), 12);
    // One storage makes no row of several machines.
    assert_eq!(judged_as(&all, SumStorage::Shared).rows.len(), 12);
}

#[test]
fn machine_ids_tell_machines_of_one_name_apart() {
    let mut all = records_of_pods(6);
    for (index, record) in all.iter_mut().enumerate() {
        record.host.machine = Some(format!("{:08x}", index % 6));
    }
    let fleet = judged(&all);
    assert_eq!(fleet.rows.len(), 6);
    assert!(fleet.rows.iter().all(|row| row.runs.len() == 2));
    assert_eq!(identities(&fleet), ["other-machine"; 6]);
    assert_eq!(row(&fleet, "pod0 (machine 00000003)").runs.len(), 2);
    // A machine is found again by its id in a saved fleet, where a name alone is not enough.
    let mut saved = fleet;
    for row in &mut saved.rows {
        if row.machine.as_deref() == Some("00000003") {
            row.state = RowState::Suspect;
        }
    }
    let mut again = all[..6].to_vec();
    scale(&mut again[3], 0.5);
    let fleet = judged_again(saved, again);
    assert_eq!(fleet.basis, FleetBasis::SecondLook);
    assert_eq!(names(&fleet, RowState::Slower), ["pod0 (machine 00000003)"]);
}

#[test]
fn runs_that_nothing_proves_to_be_of_one_machine_say_so() {
    let mut all = records_of_pods(3);
    let fleet = judged(&all);
    assert_eq!(fleet.rows.len(), 3);
    assert_eq!(identities(&fleet), ["unproven"; 3]);
    for record in &mut all {
        record.host.machine = Some("one".to_owned());
    }
    assert_eq!(identities(&judged(&all)), [""; 0]);
    // A disk with a serial number of its own is one disk in any machine, unless a hypervisor made
    // the number up.
    for (index, record) in all.iter_mut().enumerate() {
        disk(record).serial = Some(record.host.name.clone());
        record.host.machine = Some(index.to_string());
    }
    let fleet = judged(&all);
    assert_eq!((fleet.rows.len(), identities(&fleet).len()), (3, 0));
    for record in &mut all {
        record.host.hypervisor = Some("kvm".to_owned());
    }
    assert_eq!(identities(&judged(&all)), ["other-machine"; 6]);
}

#[test]
fn pod_that_measured_nothing_is_missing_beside_another_of_its_name() {
    let mut all = records_of_pods(6);
    all.truncate(6);
    all[3].measurements.clear();
    all[3].partial = true;
    let fleet = judged(&all);
    assert_eq!(fleet.missing.len(), 1);
    assert_eq!(fleet.missing[0].name, "pod0");
}

#[test]
fn disk_alone_of_its_kind_is_not_judged() {
    let mut all = records(4);
    disk(&mut all[3]).model = Some("ANOTHER".to_owned());
    let fleet = judged(&all);
    assert_eq!(names(&fleet, RowState::NotJudged), ["db03"]);
    assert_eq!(
        row(&fleet, "db03").not_judged.as_ref().unwrap().code,
        "alone"
    );
    assert_eq!(judged(&all[..2]).outcome, FleetOutcome::TooFew);
}

#[test]
fn disk_of_one_percent_more_is_of_the_same_kind() {
    let mut all = records(4);
    let size = disk(&mut all[3]).size_bytes;
    disk(&mut all[3]).size_bytes = size + size / 200;
    assert_eq!(judged(&all).groups.len(), 1);
    disk(&mut all[3]).size_bytes = size + size / 50;
    assert_eq!(judged(&all).groups.len(), 2);
}

#[test]
fn new_record_is_judged_by_a_saved_fleet() {
    let saved = judged(&records(60));
    let text = serde_json::to_string(&saved).unwrap();
    let kept: FleetRecord = serde_json::from_str(&text).unwrap();
    assert_eq!(kept, saved);
    let mut slow = record(61);
    scale(&mut slow, 0.7);
    for (record, state) in [(record(61), RowState::Alike), (slow, RowState::Slower)] {
        let mut fleet = Fleet::with_reference(kept.clone(), None);
        assert_eq!(fleet.add(&record), Added::Counted);
        let judged = fleet.judge(question());
        assert_eq!(judged.basis, FleetBasis::Reference);
        assert_eq!(judged.rows[0].state, state, "{}", judged.summary);
    }
    let mut foreign = record(62);
    disk(&mut foreign).model = Some("ANOTHER".to_owned());
    let mut fleet = Fleet::with_reference(kept, None);
    fleet.add(&foreign);
    let judged = fleet.judge(question());
    assert_eq!(judged.outcome, FleetOutcome::TooFew, "{}", judged.summary);
}

#[test]
fn suspects_of_a_saved_fleet_are_decided_by_runs_of_their_own() {
    let mut saved = judged(&records(60));
    let suspect = saved
        .rows
        .iter_mut()
        .find(|row| row.name == "db07")
        .unwrap();
    suspect.state = RowState::Suspect;
    let mut fleet = Fleet::with_reference(saved, None);
    for number in [7, 11, 12, 13, 14, 15] {
        let mut again = record(number);
        again.run_id = format!("{:032x}", 1000 + number);
        if number == 7 {
            scale(&mut again, 0.7);
        }
        fleet.add(&again);
    }
    let judged = fleet.judge(question());
    assert_eq!(judged.basis, FleetBasis::SecondLook);
    assert_eq!(
        names(&judged, RowState::Slower),
        ["db07"],
        "{}",
        judged.summary
    );
    assert_eq!(names(&judged, RowState::Alike).len(), 5);
}

#[test]
fn host_that_became_slow_since_the_first_look_is_named_and_no_control() {
    let mut saved = judged(&records(60));
    for row in &mut saved.rows {
        if row.name == "db07" {
            row.state = RowState::Suspect;
        }
    }
    for controls in [&[11, 12, 13, 14][..], &[11, 12, 13, 14, 15, 16, 17, 18, 19]] {
        let mut fleet = Fleet::with_reference(saved.clone(), None);
        for number in [7].iter().chain(controls) {
            let mut again = record(*number);
            again.run_id = format!("{:032x}", 1000 + number);
            if *number == 12 {
                scale(&mut again, 0.1);
            }
            fleet.add(&again);
        }
        let judged = fleet.judge(question());
        assert_eq!(judged.basis, FleetBasis::SecondLook);
        assert_eq!(names(&judged, RowState::Slower), ["db12"]);
        assert_eq!(names(&judged, RowState::Alike).len(), controls.len());
        assert_eq!(judged.outcome, FleetOutcome::Differs);
    }
}

#[test]
fn host_that_became_slow_is_named_where_too_few_controls_remain() {
    let mut saved = judged(&records(60));
    for row in &mut saved.rows {
        if row.name == "db07" {
            row.state = RowState::Suspect;
        }
    }
    let mut fleet = Fleet::with_reference(saved, None);
    for number in [7, 11, 12, 13] {
        let mut again = record(number);
        again.run_id = format!("{:032x}", 1000 + number);
        if number == 12 {
            scale(&mut again, 0.1);
        }
        fleet.add(&again);
    }
    let judged = fleet.judge(question());
    assert_eq!(judged.basis, FleetBasis::SecondLook);
    assert_eq!(names(&judged, RowState::Slower), ["db12"]);
    // Two controls are too few for a verdict on the suspect.
    assert_eq!(names(&judged, RowState::NotJudged), ["db07"]);
    assert_eq!(names(&judged, RowState::Alike).len(), 2);
}

/// A fleet of 12 in which a row is a suspect by its first metric alone.
fn saved_with_suspect(name: &str, all: &[Record]) -> FleetRecord {
    let mut saved = judged(all);
    for row in &mut saved.rows {
        if row.name == name {
            row.state = RowState::Suspect;
            row.values[0].state = RowState::Suspect;
        }
    }
    saved
}

/// These records once more, judged by a saved fleet.
fn judged_again(saved: FleetRecord, again: Vec<Record>) -> FleetRecord {
    let mut fleet = Fleet::with_reference(saved, None);
    for (index, mut record) in again.into_iter().enumerate() {
        record.run_id = format!("{:032x}", 1000 + index);
        assert_eq!(fleet.add(&record), Added::Counted);
    }
    fleet.judge(question())
}

#[test]
fn second_look_knows_the_error_of_a_run() {
    let saved = saved_with_suspect("db07", &records(12));
    let mut again: Vec<Record> = [7, 2, 3, 4, 5].into_iter().map(record).collect();
    scale_workload(&mut again[0], 0, 0.75);
    for figures in again[0].measurements[0].figures.ops.values_mut() {
        figures.iops.half_width_95 = Some(0.9 * figures.iops.value);
        figures.throughput.half_width_95 = Some(0.9 * figures.throughput.value);
    }
    let fleet = judged_again(saved, again);
    assert_eq!(names(&fleet, RowState::Slower), [""; 0]);
    assert_ne!(fleet.outcome, FleetOutcome::Differs, "{}", fleet.summary);
}

#[test]
fn second_look_at_a_fleet_of_one_rate_ends() {
    let mut all = Vec::new();
    for number in 0..12 {
        let mut record = record(0);
        record.run_id = format!("{number:032x}");
        record.host.name = format!("db{number:02}");
        all.push(record);
    }
    let saved = saved_with_suspect("db07", &all);
    let mut again = vec![all[7].clone()];
    again.extend_from_slice(&all[2..6]);
    let fleet = judged_again(saved.clone(), again.clone());
    assert_eq!(fleet.outcome, FleetOutcome::Alike, "{}", fleet.summary);
    // 11 % within the 5 % that fleets vary by at least is no finding.
    scale(&mut again[0], 0.89);
    let fleet = judged_again(saved, again);
    assert_eq!(names(&fleet, RowState::Slower), [""; 0]);
}

#[test]
fn suspect_stays_one_until_what_made_it_one_is_measured_again() {
    let mut all = records(12);
    for record in &mut all {
        record.measurements.truncate(2);
        record.plan.tasks = fixture::record().plan.tasks;
    }
    let saved = saved_with_suspect("db07", &all);
    let first = saved.rows[0].values[0].metric;
    let mut again: Vec<Record> = [7, 2, 3, 4, 5]
        .into_iter()
        .map(|number| all[number].clone())
        .collect();
    let fleet = judged_again(saved.clone(), again.clone());
    assert_eq!(fleet.outcome, FleetOutcome::Alike, "{}", fleet.summary);
    for record in &mut again[1..] {
        record.measurements.remove(first);
    }
    let fleet = judged_again(saved, again);
    assert_eq!(names(&fleet, RowState::NotJudged), ["db07"]);
    assert_eq!(fleet.outcome, FleetOutcome::Undecided, "{}", fleet.summary);
}

#[test]
fn suspect_that_was_disturbed_again_leaves_the_fleet_undecided() {
    let saved = saved_with_suspect("db07", &records(12));
    // Once with enough controls, once with too few.
    for controls in [&[2, 3, 4, 5][..], &[2]] {
        let numbers = [7].iter().chain(controls);
        let mut again: Vec<Record> = numbers.map(|number| record(*number)).collect();
        let fleet = judged_again(saved.clone(), again.clone());
        assert_eq!(fleet.outcome, FleetOutcome::Alike, "{}", fleet.summary);
        for index in 0..again[0].measurements.len() {
            let place = format!("/measurements/{index}/data/device/read_bytes");
            let disturbed = fixture::finding("disturbed", Severity::Warning, &place);
            again[0].findings.push(disturbed);
        }
        let fleet = judged_again(saved.clone(), again);
        assert_eq!(names(&fleet, RowState::NotJudged), ["db07"]);
        let reason = row(&fleet, "db07").not_judged.as_ref().unwrap();
        assert_eq!(reason.code, "still-suspect", "{reason:?}");
        assert_eq!(fleet.outcome, FleetOutcome::Undecided, "{}", fleet.summary);
    }
}

#[test]
fn disk_that_another_launch_measured_is_not_missing() {
    let mut all = records(4);
    for (rank, record) in all.iter_mut().enumerate() {
        record.host.rank = Some(Rank {
            rank: rank as u32,
            size: Some(4),
        });
    }
    all[3].measurements.clear();
    all[3].partial = true;
    assert_eq!(judged(&all).missing.len(), 1);
    let mut again = record(3);
    again.run_id = "again".to_owned();
    again.started = "2027-01-01T00:00:00.000000000Z".to_owned();
    again.host.rank = Some(Rank {
        rank: 0,
        size: Some(1),
    });
    all.push(again);
    assert_eq!(judged(&all).missing.len(), 0);
}

#[test]
fn next_launch_gives_a_host_another_rank_and_no_other_row() {
    let mut all = records(6);
    for (number, record) in all.iter_mut().enumerate() {
        record.host.name = format!("db{}", number % 3);
        let is_second_launch = number >= 3;
        record.host.rank = Some(Rank {
            rank: if is_second_launch { 5 - number } else { number } as u32,
            size: Some(3),
        });
        if is_second_launch {
            record.started = "2027-01-01T00:00:00.000000000Z".to_owned();
        }
    }
    let fleet = judged(&all);
    assert_eq!(fleet.rows.len(), 3);
    assert!(fleet.rows.iter().all(|row| row.runs.len() == 2));
    // The second host kept its rank.
    assert_eq!(row(&fleet, "db1").rank, Some(1));
    assert_eq!(row(&fleet, "db0").rank, None);
}

#[test]
fn second_look_says_nothing_of_a_suspect_without_enough_like_disks() {
    let of_another_model = |number: usize| {
        let mut other = record(number);
        disk(&mut other).model = Some("ANOTHER".to_owned());
        other
    };
    let mut all = records(30);
    for number in 30..60 {
        all.push(of_another_model(number));
    }
    let mut saved = judged(&all);
    for row in &mut saved.rows {
        if row.name == "db07" || row.name == "db37" {
            row.state = RowState::Suspect;
        }
    }
    let mut fleet = Fleet::with_reference(saved, None);
    for number in [7, 11, 12, 13, 37, 41, 42, 61] {
        let mut again = if (30..60).contains(&number) {
            of_another_model(number)
        } else {
            record(number)
        };
        again.run_id = format!("{:032x}", 1000 + number);
        if number == 61 {
            // A host that the saved fleet does not have.
            scale(&mut again, 0.5);
        }
        fleet.add(&again);
    }
    let judged = fleet.judge(question());
    assert_eq!(judged.basis, FleetBasis::SecondLook);
    assert_eq!(names(&judged, RowState::NotJudged), ["db37"]);
    assert_eq!(names(&judged, RowState::Slower), ["db61"]);
    assert_eq!(row(&judged, "db07").state, RowState::Alike);
}

#[test]
fn imprecise_figure_is_not_called_alike() {
    let mut all = records(5);
    scale_workload(&mut all[3], 0, 0.33);
    for figures in all[3].measurements[0].figures.ops.values_mut() {
        figures.iops.half_width_95 = Some(3.0 * figures.iops.value);
        figures.throughput.half_width_95 = Some(3.0 * figures.throughput.value);
    }
    let fleet = judged(&all);
    let value = &row(&fleet, "db03").values[0];
    assert_eq!(value.state, RowState::NotJudged, "{value:?}");
    assert_eq!(value.not_judged.as_ref().unwrap().code, "imprecise");
    let least = fleet.groups[0].metrics[0].five_numbers[0];
    assert!(least > 2.0 * value.value, "{least}");
    // A disk that stalls now and then has such a figure; the others have none.
    let reason = row(&fleet, "db03").not_judged.as_ref().unwrap();
    assert_eq!(reason.code, "incomplete");
    assert_eq!(fleet.outcome, FleetOutcome::Undecided, "{}", fleet.summary);
    // Where most rows are as imprecise, the workload is.
    scale_workload(&mut all[3], 0, 1.0 / 0.33);
    for record in &mut all {
        for figures in record.measurements[0].figures.ops.values_mut() {
            figures.iops.half_width_95 = Some(3.0 * figures.iops.value);
            figures.throughput.half_width_95 = Some(3.0 * figures.throughput.value);
        }
    }
    let fleet = judged(&all);
    assert_eq!(row(&fleet, "db03").state, RowState::Alike);
    assert_eq!(fleet.outcome, FleetOutcome::Alike, "{}", fleet.summary);
}

/// Disks that look different each, as parts of one storage do.
fn records_of_parts(count: usize) -> Vec<Record> {
    let mut all = records(count);
    for (number, record) in all.iter_mut().enumerate() {
        disk(record).model = Some(format!("LUN {number}"));
        disk(record).serial = Some(format!("S{number}"));
    }
    all
}

fn judged_as(records: &[Record], storage: SumStorage) -> FleetRecord {
    let mut fleet = Fleet::new(Some(storage));
    for record in records {
        fleet.add(record);
    }
    fleet.judge(question())
}

#[test]
fn hosts_of_one_storage_are_judged_whatever_their_parts_of_it_look_like() {
    let mut all = records_of_parts(12);
    scale(&mut all[7], 0.5);
    let separate = judged_as(&all, SumStorage::Separate);
    assert_eq!(separate.outcome, FleetOutcome::TooFew);
    assert_eq!(separate.rows_are, RowUnit::Disks);
    assert_eq!(separate.groups.len(), 12);
    let shared = judged_as(&all, SumStorage::Shared);
    assert_eq!(shared.outcome, FleetOutcome::Differs);
    assert_eq!(shared.rows_are, RowUnit::Hosts);
    assert_eq!(shared.groups.len(), 1);
    assert_eq!(names(&shared, RowState::Slower), ["db07"]);
}

#[test]
fn targets_of_a_host_on_one_storage_are_one_row() {
    let mut all = records(6);
    for (number, record) in all.iter_mut().enumerate() {
        record.host.name = format!("db{:02}", number / 2);
        record.targets[0].path = format!("/mnt/{}", number % 2);
    }
    assert_eq!(judged_as(&all, SumStorage::Separate).rows.len(), 6);
    let shared = judged_as(&all, SumStorage::Shared);
    assert_eq!(shared.rows.len(), 3);
    assert!(shared.rows.iter().all(|row| row.runs.len() == 2));
    assert_eq!(names(&shared, RowState::Alike).len(), 3);
}

#[test]
fn saved_fleet_of_hosts_judges_a_further_host() {
    let saved = judged_as(&records_of_parts(30), SumStorage::Shared);
    let mut slow = record(31);
    disk(&mut slow).model = Some("LUN 31".to_owned());
    scale(&mut slow, 0.6);
    let mut fleet = Fleet::with_reference(saved, None);
    fleet.add(&slow);
    let judged = fleet.judge(question());
    assert_eq!(judged.rows_are, RowUnit::Hosts);
    assert_eq!(names(&judged, RowState::Slower), ["db31"]);
}

#[test]
fn sides_of_a_comparison_are_rows_without_records() {
    let mut all = records(5);
    scale(&mut all[2], 0.5);
    let mut sides = Vec::new();
    for record in &all {
        sides.push(RunGroup {
            label: format!("side {}", record.host.name),
            runs: vec![crate::compare::Run {
                name: record.run_id.clone(),
                record,
            }],
        });
    }
    let fleet = fleet_of_sides(question().tool, &sides);
    assert_eq!(fleet.rows_are, RowUnit::Sides);
    assert_eq!(names(&fleet, RowState::Slower), ["side db02"]);
    assert!(fleet.examples.is_empty());
    let mut metrics = fleet.groups.iter().flat_map(|group| &group.metrics);
    assert!(metrics.all(|metric| metric.example.is_none()));
}

#[test]
fn target_of_which_a_run_measured_nothing_is_missing() {
    let mut all = records(6);
    for record in &mut all[4..] {
        record.partial = true;
        record.ended_early = Some("no answer for 30 s".to_owned());
    }
    all[4].measurements.clear();
    for row in &mut all[5].measurements {
        row.data.ops.clear();
        row.figures.ops.clear();
    }
    let fleet = judged(&all);
    assert_eq!(fleet.outcome, FleetOutcome::Differs, "{}", fleet.summary);
    let missing: Vec<&str> = fleet.missing.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(missing, ["db04", "db05"]);
    // Another run of the host has figures.
    for number in [4, 5] {
        let mut again = record(number);
        again.run_id = format!("again{number}");
        again.started = night(1);
        all.push(again);
    }
    let fleet = judged(&all);
    assert_eq!(fleet.outcome, FleetOutcome::Alike, "{}", fleet.summary);
    assert!(fleet.missing.is_empty());
    // What was only observed has nothing to compare.
    let mut observed = record(9);
    observed.plan.tasks.clear();
    observed.measurements.clear();
    assert_eq!(Fleet::new(None).add(&observed), Added::NoFigures);
}

#[test]
fn figure_without_an_interval_accuses_no_disk() {
    let mut all = records(12);
    scale_workload(&mut all[3], 0, 0.6);
    for figures in all[3].measurements[0].figures.ops.values_mut() {
        figures.iops.half_width_95 = None;
        figures.throughput.half_width_95 = None;
    }
    let fleet = judged(&all);
    assert_eq!(names(&fleet, RowState::Slower), [""; 0]);
    let value = &row(&fleet, "db03").values[0];
    assert_eq!(value.not_judged.as_ref().unwrap().code, "imprecise");
}

#[test]
fn suspect_that_measured_only_in_part_leaves_the_fleet_undecided() {
    let mut all = records(12);
    all[3].measurements.truncate(1);
    all[3].partial = true;
    let mut suspects = 0;
    for percent in 75..90 {
        let mut slow = all.clone();
        scale(&mut slow[3], f64::from(percent) / 100.0);
        let fleet = judged(&slow);
        if row(&fleet, "db03").state == RowState::Suspect {
            suspects += 1;
            assert_eq!(fleet.outcome, FleetOutcome::Undecided, "{}", fleet.summary);
        }
    }
    assert!(suspects > 0);
}

#[test]
fn run_that_ended_early_without_the_figures_of_others_is_not_alike() {
    let mut all = records(5);
    all[3].partial = true;
    assert_eq!(judged(&all).outcome, FleetOutcome::Alike);
    all[3].measurements.truncate(1);
    let fleet = judged(&all);
    assert_eq!(fleet.outcome, FleetOutcome::Undecided, "{}", fleet.summary);
    assert_eq!(names(&fleet, RowState::NotJudged), ["db03"]);
    let reason = row(&fleet, "db03").not_judged.as_ref().unwrap();
    assert_eq!(reason.code, "incomplete");
    assert!(fleet.summary.contains("db03"), "{}", fleet.summary);
    // What it measured can still prove that the disk is slow.
    scale(&mut all[3], 0.3);
    assert_eq!(judged(&all).outcome, FleetOutcome::Differs);
    // A complete run of the disk has them.
    scale(&mut all[3], 1.0 / 0.3);
    let mut again = record(3);
    again.run_id = "again".to_owned();
    again.started = night(1);
    all.push(again);
    assert_eq!(judged(&all).outcome, FleetOutcome::Alike);
}

#[test]
fn threshold_that_a_run_missed_is_no_less_missed_in_a_fleet() {
    for (met, undecided, outcome) in [
        (true, false, FleetOutcome::Alike),
        (false, true, FleetOutcome::Undecided),
        (false, false, FleetOutcome::Differs),
    ] {
        let mut all = records(4);
        all[2].expectations = vec![Expectation {
            expression: "random-read-d32.iops>=5000".to_owned(),
            threshold: None,
            observed: None,
            interval: None,
            observed_at_least: None,
            met,
            undecided,
            decided_by_ns: None,
            objection: None,
            promise: None,
        }];
        let fleet = judged(&all);
        assert_eq!(fleet.outcome, outcome, "{}", fleet.summary);
        assert_eq!(fleet.unmet.len(), usize::from(!met));
        if undecided {
            // Also where too few hosts are left to judge them.
            assert_eq!(judged(&all[1..3]).outcome, FleetOutcome::Undecided);
        }
        assert_eq!(names(&fleet, RowState::Alike).len(), 4);
    }
}

/// The sides of a comparison of settings take turns on one machine: they overlap in time, and are
/// one row.
#[test]
fn sides_of_a_comparison_are_of_one_machine() {
    let rows_of = |is_comparison: bool| {
        let mut sides = records_of_pods(1);
        sides.truncate(1);
        let mut other = sides[0].clone();
        other.run_id.push('b');
        sides.push(other);
        if is_comparison {
            for (record, side) in sides.iter_mut().zip(["A", "B"]) {
                record.results.push(TaskResult::Compared(CampaignPart {
                    id: "c".to_owned(),
                    side: side.to_owned(),
                    prepare: None,
                    decisions: Vec::new(),
                    beside: Vec::new(),
                }));
            }
        }
        judged(&sides).rows.len()
    };
    assert_eq!(rows_of(false), 2);
    assert_eq!(rows_of(true), 1);
}

/// The record of a scan alone, judged again after a change of what it found.
fn scan_record(number: usize, unreadable_bytes: u64) -> Record {
    let mut record = surveyed::faulty(|survey| {
        survey.curve.clear();
        survey.burst = None;
        survey.access.clear();
        let scan = survey.scan.insert(surveyed::scan());
        scan.unreadable_bytes = unreadable_bytes;
    });
    record.run_id = format!("{number:032x}");
    record.host.name = format!("db{number:02}");
    record
}

#[test]
fn disk_with_unreadable_sectors_passes_no_fleet() {
    let mut all = records(3);
    all.push(scan_record(3, 4096));
    let fleet = judged(&all);
    assert_eq!(fleet.outcome, FleetOutcome::Differs, "{}", fleet.summary);
    let sick = row(&fleet, "db03 sda");
    assert_eq!(sick.state, RowState::Errors);
    assert_eq!(sick.not_judged.as_ref().unwrap().code, "unreadable-blocks");
}

#[test]
fn scans_alone_are_rows() {
    let healthy: Vec<Record> = (0..3).map(|number| scan_record(number, 0)).collect();
    let fleet = judged(&healthy);
    assert_eq!(fleet.outcome, FleetOutcome::TooFew, "{}", fleet.summary);
    let codes: Vec<&str> = fleet
        .rows
        .iter()
        .filter_map(|row| row.not_judged.as_ref())
        .map(|reason| reason.code.as_str())
        .collect();
    assert_eq!(codes, ["only-scanned"; 3]);
    let mut all = healthy;
    all.push(scan_record(3, 4096));
    let fleet = judged(&all);
    assert_eq!(fleet.outcome, FleetOutcome::Differs, "{}", fleet.summary);
    assert_eq!(names(&fleet, RowState::Errors), ["db03 sda"]);
}

/// A scan that was stopped has read something: its host is not missing.
#[test]
fn scan_that_ended_early_is_incomplete() {
    let mut all = records(3);
    let mut stopped = scan_record(3, 0);
    stopped.partial = true;
    all.push(stopped);
    let fleet = judged(&all);
    assert_eq!(fleet.outcome, FleetOutcome::Undecided, "{}", fleet.summary);
    assert!(fleet.missing.is_empty());
    let reason = row(&fleet, "db03 sda").not_judged.as_ref().unwrap();
    assert_eq!(reason.code, "incomplete");
}

/// The disk reports that it is failing, with the figures of the others.
#[test]
fn disk_that_reports_its_failure_is_not_alike() {
    let mut all = records(5);
    let failing = fixture::finding("health-failing", Severity::Failure, "/health/0/passed");
    all[4].findings.push(Finding {
        says: Meaning::Health,
        ..failing.clone()
    });
    let fleet = judged(&all);
    assert_eq!(fleet.outcome, FleetOutcome::Differs, "{}", fleet.summary);
    assert_eq!(names(&fleet, RowState::Errors), ["db04"]);
    assert_eq!(names(&fleet, RowState::Alike).len(), 4);
    // A warning about the disk changes no answer, and is told.
    all[4].findings[0].severity = Severity::Warning;
    let fleet = judged(&all);
    assert_eq!(fleet.outcome, FleetOutcome::Alike, "{}", fleet.summary);
    assert_eq!(row(&fleet, "db04").findings[0].code, "health-failing");
    assert!(row(&fleet, "db03").findings.is_empty());
    // So do doubts about figures, which are not the disk's.
    all[4].findings[0].says = Meaning::Doubtful;
    assert!(row(&judged(&all), "db04").findings.is_empty());
}

/// The health of a disk is that of the targets that lie on it.
#[test]
fn health_of_one_disk_accuses_no_other_target() {
    let mut all = records(4);
    let mut second = all[2].targets[0].clone();
    second.path = "/second".to_owned();
    second.layers.last_mut().unwrap().name = "other".to_owned();
    all[2].targets.push(second);
    all[2].health = vec![DiskHealth {
        disk: "other".to_owned(),
        ..DiskHealth::default()
    }];
    all[2].findings.push(Finding {
        says: Meaning::Health,
        ..fixture::finding("health-failing", Severity::Failure, "/health/0/passed")
    });
    let fleet = judged(&all);
    let failed = fleet
        .rows
        .iter()
        .filter(|row| row.state == RowState::Errors);
    let targets: Vec<&str> = failed.map(|row| row.target.as_str()).collect();
    assert_eq!(targets, ["/second"]);
    assert_eq!(names(&fleet, RowState::Alike).len(), 4);
}

/// A hang between requests is that of the target that was silent.
#[test]
fn hang_of_one_target_accuses_no_other() {
    let mut all = records(4);
    let mut second = all[2].targets[0].clone();
    second.path = "/second".to_owned();
    all[2].targets.push(second);
    all[2].stalled = Some(Stalled {
        around: "random-read".to_owned(),
        lasted_ns: 45_000_000_000,
        late: false,
        has_answered: false,
        target: Some(1),
    });
    all[2].findings.push(Finding {
        says: Meaning::EndedEarly,
        ..fixture::finding("hung", Severity::Failure, "/stalled/lasted_ns")
    });
    let fleet = judged(&all);
    let failed = fleet
        .rows
        .iter()
        .filter(|row| row.state == RowState::Errors);
    let targets: Vec<&str> = failed.map(|row| row.target.as_str()).collect();
    assert_eq!(targets, ["/second"]);
}

/// Its figures are those of the time before, and like those of the others.
#[test]
fn disk_that_did_not_answer_any_more_is_not_alike() {
    for late in [true, false] {
        let mut all = records(4);
        all[2].partial = true;
        all[2].measurements[0].data.hang = Some(Hang {
            since_ns: 1,
            lasted_ns: 9_800_000_000,
            requests: 4,
            late,
        });
        let fleet = judged(&all);
        assert_eq!(fleet.outcome, FleetOutcome::Differs, "{}", fleet.summary);
        assert_eq!(names(&fleet, RowState::Errors), ["db02"]);
        let reason = row(&fleet, "db02").not_judged.as_ref().unwrap();
        assert_eq!(reason.code, if late { "late" } else { "hung" });
    }
}

/// The record of a ping, which has no figure.
fn ping_without_answer(number: usize) -> Record {
    let mut ping = fixture::judge(fixture::ping::ping_run(&[(1, 1_000_000); 20]));
    ping.run_id = format!("{number:032x}");
    ping.host.name = format!("db{number:02}");
    ping.measurements.clear();
    ping.findings.clear();
    ping.partial = true;
    ping.ended_early = Some("no answer for 45 s".to_owned());
    ping
}

#[test]
fn ping_without_an_answer_passes_no_fleet() {
    let mut all = records(3);
    all.push(ping_without_answer(3));
    let fleet = judged(&all);
    assert_eq!(fleet.outcome, FleetOutcome::Differs, "{}", fleet.summary);
    assert_eq!(fleet.missing[0].name, "db03");
    all[3].findings.push(Finding {
        says: Meaning::EndedEarly,
        ..fixture::finding("hung", Severity::Failure, "/partial")
    });
    let fleet = judged(&all);
    assert_eq!(fleet.outcome, FleetOutcome::Differs, "{}", fleet.summary);
    assert_eq!(names(&fleet, RowState::Errors), ["db03"]);
}

#[test]
fn acceptance_test_without_a_result_passes_no_fleet() {
    let tested = |number: usize| {
        let mut record = accepted(Fault::None);
        record.run_id = format!("{number:032x}");
        record.host.name = format!("db{number:02}");
        record
    };
    let mut all: Vec<Record> = (0..3).map(tested).collect();
    assert_eq!(judged(&all).outcome, FleetOutcome::Alike);
    // An accepted disk that reports its failure.
    let failing = Finding {
        says: Meaning::Health,
        ..fixture::finding("health-failing", Severity::Failure, "/health/0/passed")
    };
    all[1].findings.push(failing);
    let fleet = judged(&all);
    assert_eq!(fleet.outcome, FleetOutcome::Differs, "{}", fleet.summary);
    assert_eq!(names(&fleet, RowState::Errors), ["db01"]);
    let mut all: Vec<Record> = (0..3).map(tested).collect();
    all[2].results.clear();
    let fleet = judged(&all);
    assert_eq!(fleet.outcome, FleetOutcome::Differs, "{}", fleet.summary);
    assert_eq!(fleet.missing[0].name, "db02");
}

/// The record of INSERTs alone, at a rate that is known to a few percent.
fn insert_record(number: usize, rate: f64) -> Record {
    let place = (number as f64 * 0.618_034).fract() - 0.5;
    let rate = rate * (1.0 + 0.04 * place);
    let id = format!("{number:032x}");
    let mut record = inserted(&id, &[rate * 0.99, rate, rate * 1.01]);
    record.host.name = format!("db{number:02}");
    record
}

#[test]
fn inserts_are_judged_by_each_other_and_by_a_saved_fleet() {
    let mut all: Vec<Record> = (0..5).map(|number| insert_record(number, 400.0)).collect();
    let fleet = judged(&all);
    assert_eq!(names(&fleet, RowState::Alike).len(), 5, "{}", fleet.summary);
    let slow = insert_record(5, 200.0);
    let mut later = Fleet::with_reference(fleet, None);
    assert_eq!(later.add(&slow), Added::Counted);
    let judged_later = later.judge(question());
    assert_eq!(names(&judged_later, RowState::Slower), ["db05"]);
    all.push(slow);
    // A server that gave no rate at all.
    let mut without = insert_record(6, 400.0);
    without.results.clear();
    all.push(without);
    let fleet = judged(&all);
    assert_eq!(
        names(&fleet, RowState::Slower),
        ["db05"],
        "{}",
        fleet.summary
    );
    assert_eq!(fleet.missing[0].name, "db06");
}
