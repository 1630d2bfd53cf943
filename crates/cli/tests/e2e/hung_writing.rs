//! A disk that stops answering while it is written to, while scratch files are made and cleaned up,
//! while it is surveyed, and while results are saved on it: what was measured is out all the same,
//! and the program ends.

use crate::program::patient::{Patient, Running};
use crate::program::{eventually, names};
use diskproof_model::finding::Severity;
use diskproof_model::measurement::{OpKind, StopReason};
use diskproof_model::record::Record;
use diskproof_simdisk::Hanging;
use diskproof_simdisk::testbed::can_run;
use rustix::process::{Pid, Signal, kill_process};
use std::thread::scope;

const NEEDED: [&str; 2] = ["fusermount3", "losetup"];
const NEEDED_WITH_FILESYSTEM: [&str; 3] = ["fusermount3", "losetup", "mkfs.ext4"];

/// The page and the record of a run that is stuck; it ends with this code once the disk answers
/// again.
fn outcome(running: &mut Running, patient: &Patient, code: i32) -> (String, Record) {
    let (page, record) = running.results();
    patient.disk.answer_again();
    assert_eq!(
        running.child.wait().unwrap().code(),
        Some(code),
        "{page}\n{}",
        running.told()
    );
    (page, record)
}

fn assert_hang_is_found(record: &Record, page: &str) {
    assert!(
        record.partial && page.contains("PARTIAL") && page.contains("stopped answering"),
        "{page}"
    );
    let finding = record
        .findings
        .iter()
        .find(|finding| finding.code == "hung")
        .unwrap_or_else(|| panic!("{page}"));
    assert_eq!(finding.severity, Severity::Failure);
}

/// Writes to a device that hangs meanwhile.
fn writes(patient: &Patient, flags: &[&str], which: Hanging) -> Running {
    let words = [
        "run",
        patient.path().to_str().unwrap(),
        "--destroy",
        patient.name(),
        "--bs",
        "4k",
        "--warmup",
        "0s",
        "--time",
        "8s",
    ];
    let running = Running::start(patient.place.path(), &[&words[..], flags].concat(), "2s");
    patient.hang_amid_at(which);
    running
}

#[test]
fn writes_that_are_never_answered_are_given_up() {
    if !can_run("writes_that_are_never_answered_are_given_up", &NEEDED) {
        return;
    }
    scope(|threads| {
        for (engine, depth) in [("uring", "4"), ("aio", "4"), ("sync", "2")] {
            threads.spawn(move || {
                let patient = Patient::spare_device();
                let mut running = writes(
                    &patient,
                    &["--rw", "randwrite", "--engine", engine, "--depth", depth],
                    Hanging::Everything,
                );
                let (page, record) = outcome(&mut running, &patient, 4);
                assert_hang_is_found(&record, &page);
                let (m, wanted) = (&record.measurements[0], depth.parse().unwrap());
                assert_eq!(
                    (
                        m.stopped,
                        m.hang.unwrap().requests,
                        m.ops[&OpKind::Write].errors["ETIMEDOUT"]
                    ),
                    (StopReason::Hung, wanted, wanted)
                );
                assert!(m.ops[&OpKind::Write].count > 0, "{engine}");
            });
        }
    });
}

#[test]
fn commits_that_never_return_are_given_up() {
    if !can_run("commits_that_never_return_are_given_up", &NEEDED) {
        return;
    }
    scope(|threads| {
        for engine in ["uring", "aio", "sync"] {
            threads.spawn(move || {
                let patient = Patient::spare_device();
                let mut running = writes(
                    &patient,
                    &["--rw", "randwrite", "--fdatasync", "1", "--engine", engine],
                    Hanging::Flushes,
                );
                let (page, record) = outcome(&mut running, &patient, 4);
                assert_hang_is_found(&record, &page);
                let m = &record.measurements[0];
                assert_eq!(
                    (m.stopped, m.hang.unwrap().requests),
                    (StopReason::Hung, 1),
                    "{engine}: {page}"
                );
                let of = |kind| {
                    m.ops
                        .get(&kind)
                        .map(|op| (op.count > 0, op.errors.get("ETIMEDOUT").copied()))
                };
                assert_eq!(
                    (of(OpKind::Sync), of(OpKind::Commit)),
                    (Some((true, Some(1))), Some((true, None))),
                    "{engine}: {:?}",
                    of(OpKind::Write)
                );
            });
        }
    });
}

#[test]
fn the_sync_after_the_last_write_may_hang_as_well() {
    if !can_run("the_sync_after_the_last_write_may_hang_as_well", &NEEDED) {
        return;
    }
    let patient = Patient::spare_device();
    let mut running = writes(
        &patient,
        &["--rw", "write", "--end-fsync", "--depth", "2"],
        Hanging::Flushes,
    );
    let (page, record) = outcome(&mut running, &patient, 4);
    assert_hang_is_found(&record, &page);
    let m = &record.measurements[0];
    assert_eq!(
        (
            m.stopped,
            m.hang.unwrap().requests,
            m.ops[&OpKind::Sync].errors["ETIMEDOUT"]
        ),
        (StopReason::Hung, 1, 1),
        "{page}"
    );
    // All writes were answered, and the time that was waited for the sync is part of their rate.
    assert!(
        m.ops[&OpKind::Write].count > 0
            && m.ops[&OpKind::Write].errors.is_empty()
            && m.wall_ns > 10_000_000_000,
        "{page}"
    );
}

#[test]
fn a_check_of_what_was_written_that_hangs_says_how_far_it_came() {
    if !can_run(
        "a_check_of_what_was_written_that_hangs_says_how_far_it_came",
        &NEEDED,
    ) {
        return;
    }
    let patient = Patient::spare_device();
    let target = patient.path().to_str().unwrap();
    let words = [
        "run",
        target,
        "--destroy",
        patient.name(),
        "--rw",
        "randwrite",
        "--bs",
        "4k",
        "--depth",
        "8",
        "--verify",
        "--ops",
        "3000",
    ];
    let mut running = Running::start(
        patient.place.path(),
        &[&words[..], &["--warmup", "0s"]].concat(),
        "2s",
    );
    // All that is read after the writes is read back.
    assert!(eventually(|| patient.disk.stats().writes >= 3000));
    let before = patient.disk.stats().reads;
    assert!(
        eventually(|| patient.disk.stats().reads > before + 5),
        "{}",
        running.told()
    );
    patient.disk.hang();
    let (page, record) = outcome(&mut running, &patient, 4);
    assert_hang_is_found(&record, &page);
    let m = &record.measurements[0];
    let verify = m.verify.as_ref().unwrap();
    assert!(
        verify.blocks < verify.blocks_written.unwrap() && verify.bad_blocks == 0,
        "{verify:?}"
    );
    assert_eq!(
        (m.stopped, m.ops[&OpKind::Write].count, m.errors_total()),
        (StopReason::Hung, 3000, 0)
    );
    assert!(page.contains("read back before"), "{page}");
}

/// `check` on a directory, hung when this many of its lines were told, or this many requests after.
fn check_directory(lines: usize, requests: u64, signal: Option<Signal>) {
    let patient = Patient::filesystem();
    let words = [
        "check",
        patient.directory().to_str().unwrap(),
        "--time",
        "16s",
        "--size",
        "64M",
    ];
    let mut running = Running::start(patient.place.path(), &words, "2s");
    let steps = |running: &Running| {
        running
            .told()
            .lines()
            .filter(|line| line.contains("/8 "))
            .count()
    };
    assert!(
        eventually(|| steps(&running) >= lines),
        "{}",
        running.told()
    );
    patient.after(requests);
    patient.disk.hang();
    if let Some(signal) = signal {
        kill_process(Pid::from_child(&running.child), signal).unwrap();
    }
    let (page, record) = running.results();
    assert_hang_is_found(&record, &page);
    assert!(record.measurements.len() >= lines, "{lines}: {page}");
    let code = if signal.is_some() { 130 } else { 4 };
    patient.disk.answer_again();
    assert_eq!(
        running.child.wait().unwrap().code(),
        Some(code),
        "{page}\n{}",
        running.told()
    );
    assert!(
        running
            .told()
            .contains("Its scratch file has no name and vanishes with the process"),
        "{}",
        running.told()
    );
    assert_eq!(
        names(patient.directory()),
        ["lost+found"],
        "nothing is left behind"
    );
}

#[test]
fn a_directory_may_hang_in_every_phase_of_a_check() {
    if !can_run(
        "a_directory_may_hang_in_every_phase_of_a_check",
        &NEEDED_WITH_FILESYSTEM,
    ) {
        return;
    }
    scope(|threads| {
        // In the middle of a workload, and right after one, while the next is made ready.
        for (lines, requests) in [(0, 20), (1, 0), (2, 20), (4, 0)] {
            threads.spawn(move || check_directory(lines, requests, None));
        }
        threads.spawn(|| check_directory(1, 20, Some(Signal::INT)));
    });
}

#[test]
fn laying_out_on_a_filesystem_that_hangs_ends() {
    if !can_run(
        "laying_out_on_a_filesystem_that_hangs_ends",
        &NEEDED_WITH_FILESYSTEM,
    ) {
        return;
    }
    let patient = Patient::filesystem();
    let words = [
        "run",
        patient.directory().to_str().unwrap(),
        "--rw",
        "randread",
        "--size",
        "256M",
        "--time",
        "8s",
    ];
    let mut running = Running::start(patient.place.path(), &words, "2s");
    patient.after(20);
    patient.disk.hang();
    let (page, record) = outcome(&mut running, &patient, 4);
    assert!(
        record.partial && record.measurements.is_empty() && page.contains("PARTIAL"),
        "{page}"
    );
    assert!(
        record.findings.iter().any(|finding| finding.code == "hung"),
        "{page}"
    );
    assert_eq!(names(patient.directory()), ["lost+found"]);
}

#[test]
fn a_record_that_cannot_be_saved_is_printed_and_saved_elsewhere() {
    if !can_run(
        "a_record_that_cannot_be_saved_is_printed_and_saved_elsewhere",
        &NEEDED_WITH_FILESYSTEM,
    ) {
        return;
    }
    let (patient, healthy) = (Patient::filesystem(), Patient::file());
    let lost = patient.directory().join("lost.json");
    let history = patient.directory().join("history.db");
    let words = [
        "run",
        healthy.path().to_str().unwrap(),
        "--time",
        "10s",
        "-o",
        lost.to_str().unwrap(),
    ];
    let mut running = Running::start_with(healthy.place.path(), &words, "2s", |command| {
        command.env("DISKPROOF_HISTORY", &history)
    });
    healthy.after(100);
    patient.disk.hang();
    let (page, record) = running.results();
    assert!(!record.partial && page.contains("randread"), "{page}");
    let heard = || {
        [
            "the record is not saved there: its filesystem did not answer for 2.0 s",
            ".unfinished may be left behind",
            "the history did not answer for 2.0 s",
        ]
    };
    assert!(
        eventually(|| heard().iter().all(|part| running.told().contains(part))),
        "{}",
        running.told()
    );
    patient.disk.answer_again();
    assert_eq!(
        running.child.wait().unwrap().code(),
        Some(4),
        "{}",
        running.told()
    );
}

#[test]
fn a_survey_of_a_disk_that_hangs_ends_by_itself() {
    if !can_run("a_survey_of_a_disk_that_hangs_ends_by_itself", &NEEDED) {
        return;
    }
    scope(|threads| {
        for flags in [
            &[][..],
            &["--scan", "--points", "0", "--no-access"],
            &["--write"],
        ] {
            threads.spawn(move || {
                let patient = Patient::large_device();
                let words = [
                    "curve",
                    patient.path().to_str().unwrap(),
                    "--destroy",
                    patient.name(),
                ];
                let mut running =
                    Running::start(patient.place.path(), &[&words[..], flags].concat(), "2s");
                assert!(
                    eventually(|| running.told().contains("survey: ")),
                    "{}",
                    running.told()
                );
                patient.after(5);
                patient.disk.hang();
                let (page, record) = outcome(&mut running, &patient, 4);
                assert_hang_is_found(&record, &page);
                let hang = record.surface.as_ref().unwrap().hang.unwrap();
                assert!(
                    hang.lasted_ns > 10_000_000_000,
                    "five times the patience: {hang:?}"
                );
            });
        }
    });
}

#[test]
fn the_second_ctrl_c_ends_at_once_what_hangs() {
    if !can_run(
        "the_second_ctrl_c_ends_at_once_what_hangs",
        &["fusermount3"],
    ) {
        return;
    }
    let patient = Patient::file();
    let words = [
        "run",
        patient.path().to_str().unwrap(),
        "--engine",
        "sync",
        "--time",
        "1h",
    ];
    let mut running = Running::start(patient.place.path(), &words, "1h");
    patient.hang_amid();
    let process = Pid::from_child(&running.child);
    let interrupt = || kill_process(process, Signal::INT).unwrap();
    // Signals of a kind that wait are one, and which thread takes one when is the kernel's choice:
    // so it is sent until it has been heard twice. What waits for the disk stays, and with it
    // the process; nothing else does.
    assert!(eventually(|| {
        interrupt();
        has_ended(running.child.id())
    }));
    assert_eq!(
        std::io::read_to_string(running.child.stdout.take().unwrap()).unwrap(),
        "",
        "nobody keeps whoever reads the result"
    );
    patient.disk.answer_again();
    assert_eq!(
        running.child.wait().unwrap().code(),
        Some(130),
        "{}",
        running.told()
    );
    assert_eq!(
        names(patient.place.path()),
        ["disk", "err"],
        "no record, and nothing unfinished"
    );
}

/// Whether the main thread of a process is over.
fn has_ended(process: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/status"))
        .is_ok_and(|status| status.lines().any(|line| line.starts_with("State:\tZ")))
}

#[test]
fn a_check_of_what_was_written_that_is_interrupted_says_how_far_it_came() {
    if !can_run(
        "a_check_of_what_was_written_that_is_interrupted_says_how_far_it_came",
        &NEEDED,
    ) {
        return;
    }
    let patient = Patient::spare_device();
    let target = patient.path().to_str().unwrap();
    let words = [
        "run",
        target,
        "--destroy",
        patient.name(),
        "--rw",
        "randwrite",
        "--bs",
        "4k",
        "--depth",
        "8",
        "--verify",
        "--ops",
        "8000",
    ];
    let mut running = Running::start(
        patient.place.path(),
        &[&words[..], &["--warmup", "0s"]].concat(),
        "10m",
    );
    assert!(eventually(|| patient.disk.stats().writes >= 8000));
    let before = patient.disk.stats().reads;
    assert!(
        eventually(|| patient.disk.stats().reads > before),
        "{}",
        running.told()
    );
    // It stands still until the signal is heard, on a machine however slow.
    patient.disk.hang();
    kill_process(Pid::from_child(&running.child), Signal::INT).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    let (page, record) = outcome_of(&mut running, &patient);
    let m = &record.measurements[0];
    let verify = m.verify.as_ref().unwrap();
    assert!(
        verify.blocks < verify.blocks_written.unwrap() && m.hang.is_none(),
        "{verify:?}"
    );
    assert!(
        m.stopped == StopReason::Interrupted && page.contains("read back before"),
        "{page}"
    );
}

/// The page and the record of a run that was interrupted and goes on to its end as soon as the disk
/// answers again.
fn outcome_of(running: &mut Running, patient: &Patient) -> (String, Record) {
    patient.disk.answer_again();
    let results = running.results();
    assert_eq!(
        running.child.wait().unwrap().code(),
        Some(130),
        "{}",
        running.told()
    );
    results
}
