//! Disks whose reports fire each rule, and disks on which all stay silent.

use super::*;
use crate::fixture::{self, states, surveyed::codes};
use diskproof_model::finding::Finding;
use diskproof_model::health::SelfTest;
use diskproof_model::record::Record;

/// A rotating disk, one of flash, and one that reports nothing; none has an issue.
fn disks() -> Vec<DiskHealth> {
    let disk = DiskHealth {
        disk: "sda".to_owned(),
        source: Some("smartctl 7.3".to_owned()),
        model: Some("WDC WD20EFRX".to_owned()),
        rotation_rpm: Some(5400),
        passed: Some(true),
        temperature_celsius: Some(34),
        temperature_alarm: Some(false),
        reallocated_sectors: Some(0),
        pending_sectors: Some(0),
        uncorrectable_sectors: Some(0),
        media_errors: Some(0),
        link_errors: Some(0),
        ..DiskHealth::default()
    };
    let flash = DiskHealth {
        disk: "nvme0n1".to_owned(),
        model: Some("Micron_7450".to_owned()),
        rotation_rpm: Some(0),
        wear_percent: Some(12),
        spare_percent: Some(100),
        spare_threshold_percent: Some(10),
        temperature_limit_celsius: Some(70),
        ..disk.clone()
    };
    vec![disk, flash, DiskHealth::unknown("vda", "a virtual disk")]
}

fn changed(index: usize, change: impl Fn(&mut DiskHealth)) -> Record {
    let mut run = fixture::run();
    // The disk of the fixture commits faster than this one turns.
    run.0
        .plan
        .workloads_mut()
        .retain(|w| w.name != "commit-fdatasync");
    run.1.retain(|m| m.workload.name != "commit-fdatasync");
    run.0.health = disks();
    change(&mut run.0.health[index]);
    fixture::judge(run)
}

/// A run whose flash disk has an issue.
pub(super) fn faulty(change: impl Fn(&mut DiskHealth)) -> Record {
    changed(1, change)
}

/// A run whose rotating disk has an issue.
pub(super) fn faulty_rotating(change: impl Fn(&mut DiskHealth)) -> Record {
    changed(0, change)
}

pub(super) fn quiet_disks() -> Record {
    faulty(|_| ())
}

pub(super) fn failing_disk() -> Record {
    faulty(|disk| {
        disk.passed = Some(false);
        disk.alarms = vec!["it has become read-only".to_owned()];
    })
}

pub(super) fn disk_with_pending_sectors() -> Record {
    faulty_rotating(|disk| {
        disk.pending_sectors = Some(8);
        disk.uncorrectable_sectors = Some(1);
    })
}

fn self_test(passed: Option<bool>, remaining_percent: Option<u32>) -> Option<SelfTest> {
    Some(SelfTest {
        status: "Extended offline: Completed: read failure".to_owned(),
        passed,
        hours: Some(100),
        remaining_percent,
    })
}

pub(super) fn failed_self_test(disk: &mut DiskHealth) {
    disk.self_test = self_test(Some(false), None);
    disk.power_on_hours = Some(152);
}

pub(super) fn passed_self_test(disk: &mut DiskHealth) {
    disk.self_test = self_test(Some(true), None);
}

pub(super) fn running_self_test(disk: &mut DiskHealth) {
    disk.self_test = self_test(None, Some(40));
}

fn one(record: &Record, code: &str) -> Finding {
    assert_eq!(codes(record), [code]);
    record.findings[0].clone()
}

/// Severity, first figure and its threshold of the only finding.
fn observed(record: &Record, code: &str) -> (Severity, f64, f64) {
    let found = one(record, code);
    (
        found.severity,
        found.evidence[0].observed,
        found.evidence[0].threshold,
    )
}

#[test]
fn quiet_and_unknown_disks_have_no_finding() {
    assert_eq!(quiet_disks().findings, []);
}

#[test]
fn disk_is_named_by_its_label() {
    let disk = DiskHealth {
        serial: Some("S1".to_owned()),
        ..disks().swap_remove(0)
    };
    assert_eq!(disk_label(&disk), "sda (WDC WD20EFRX, S1)");
    assert_eq!(disk_label(&DiskHealth::unknown("vda", "")), "vda");
}

#[test]
fn failed_verdict_and_alarm_are_failures() {
    let found = one(&failing_disk(), "health-failing");
    assert_eq!(found.severity, Severity::Failure);
    states(
        &found.claim,
        &["nvme0n1 (Micron_7450)", "it has become read-only"],
    );
    let alarm = faulty(|disk| disk.alarms = vec!["x is at 1".to_owned()]);
    let found = one(&alarm, "health-failing");
    assert_eq!(found.evidence[0].path, "/health/1/alarms");
}

#[test]
fn failed_self_test_is_a_failure_with_its_age() {
    let found = one(&faulty(failed_self_test), "self-test-failed");
    assert_eq!(found.severity, Severity::Failure);
    states(&found.claim, &["read failure", "52 power-on hours"]);
    let aborted = faulty(|disk| disk.self_test = self_test(None, None));
    assert_eq!(aborted.findings, []);
}

#[test]
fn pending_sectors_are_a_failure_of_a_rotating_disk_and_a_warning_of_flash() {
    let found = one(&disk_with_pending_sectors(), "sectors-pending");
    assert_eq!(
        (found.severity, found.evidence.len()),
        (Severity::Failure, 2)
    );
    assert_eq!(
        (found.evidence[0].observed, found.evidence[1].observed),
        (8.0, 1.0)
    );
    let flash = faulty(|disk| disk.pending_sectors = Some(1));
    assert_eq!(one(&flash, "sectors-pending").severity, Severity::Warning);
}

#[test]
fn wear_is_a_warning_and_its_end_a_failure() {
    let found = observed(&faulty(|disk| disk.wear_percent = Some(85)), "worn-out");
    assert_eq!(found, (Severity::Warning, 85.0, 80.0));
    let used_up = observed(&faulty(|disk| disk.wear_percent = Some(103)), "worn-out");
    assert_eq!(used_up.0, Severity::Failure);
    let spare = observed(&faulty(|disk| disk.spare_percent = Some(10)), "worn-out");
    assert_eq!(spare, (Severity::Failure, 10.0, 10.0));
}

#[test]
fn counts_are_warnings_from_their_threshold_on() {
    let errors = faulty(|disk| disk.media_errors = Some(7));
    let sectors = faulty_rotating(|disk| disk.reallocated_sectors = Some(304));
    let link = faulty_rotating(|disk| disk.link_errors = Some(100));
    for (record, code, count) in [
        (errors, "media-errors", 7.0),
        (sectors, "sectors-reallocated", 304.0),
        (link, "link-errors", 100.0),
    ] {
        let (severity, observed, _) = observed(&record, code);
        assert_eq!((severity, observed), (Severity::Warning, count), "{code}");
    }
}

#[test]
fn heat_over_the_limit_is_a_warning_and_near_it_a_note() {
    let flash = |celsius| faulty(|disk| disk.temperature_celsius = Some(celsius));
    let rotating = |celsius| faulty_rotating(|disk| disk.temperature_celsius = Some(celsius));
    let hot = observed(&flash(71), "too-hot");
    assert_eq!(hot, (Severity::Warning, 71.0, 65.0));
    assert_eq!(observed(&flash(66), "too-hot").0, Severity::Note);
    one(&rotating(60), "too-hot");
    let alarm = faulty(|disk| disk.temperature_alarm = Some(true));
    states(&one(&alarm, "too-hot").claim, &["34 °C"]);
    assert_eq!(rotating(54).findings, []);
    let no_limit = faulty(|disk| {
        disk.protocol = Some("NVMe".to_owned());
        (disk.temperature_limit_celsius, disk.temperature_celsius) = (None, Some(75));
    });
    assert_eq!(no_limit.findings, [], "no limit of its own, and no alarm");
}

#[test]
fn running_self_test_is_a_warning() {
    let (severity, observed, _) = observed(&faulty(running_self_test), "self-test-running");
    assert_eq!((severity, observed), (Severity::Warning, 40.0));
}
