//! A disk that hangs during writes, layout, clean-up, a survey, or while results are saved on it.
//! The program still prints and saves the partial results, and ends.

use crate::program::hanging_disk::{HangingDisk, Running};
use crate::program::{argv, counts, eventually, has_ended, names, needs, with_enough_time};
use diskproof_model::finding::Severity;
use diskproof_model::measurement::{OpKind, StopReason};
use diskproof_model::record::Record;
use diskproof_simdisk::Hanging;
use diskproof_simdisk::testbed::can_run;
use rustix::process::{Pid, Signal, kill_process};
use std::thread::scope;

const NEEDED: [&str; 2] = ["fusermount3", "losetup"];
const NEEDED_WITH_FILESYSTEM: [&str; 3] = ["fusermount3", "losetup", "mkfs.ext4"];

/// The page and the record of a run that hangs. It exits with this code when the disk answers
/// again.
fn outcome(running: &mut Running, patient: &HangingDisk, code: i32) -> (String, Record) {
    let (page, record) = running.results();
    running.exit_after_answer(patient, code);
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

/// Starts writes to a device that then hangs.
fn writes(patient: &HangingDisk, flags: &[&str], which: Hanging) -> Running {
    let words = format!(
        "run {} --destroy {} --bs 4k --warmup 0s --time 8s",
        patient.path().display(),
        patient.name()
    );
    let words = argv(&words);
    let running = Running::start(patient.place.path(), &[&words[..], flags].concat(), "2s");
    patient.hang_amid_writes_at(which);
    running
}

/// Starts random writes with --verify, and waits until the program reads back what it wrote.
fn start_reading_back(disk: &HangingDisk, writes: u64, stall_timeout: &str) -> Running {
    let (target, ops) = (disk.path().to_str().unwrap(), writes.to_string());
    let flags = argv("--rw randwrite --bs 4k --depth 8 --verify --warmup 0s --ops");
    let command = ["run", target, "--destroy", disk.name()];
    let arguments = [&command[..], &flags, &[&ops]].concat();
    let running = Running::start(disk.place.path(), &arguments, stall_timeout);
    assert!(eventually(|| disk.disk.stats().writes >= writes));
    let before = disk.disk.stats().reads;
    assert!(
        eventually(|| disk.disk.stats().reads > before + 5),
        "{}",
        running.stderr()
    );
    running
}

#[test]
fn hung_writes_time_out() {
    if !can_run("hung_writes_time_out", &NEEDED) {
        return;
    }
    scope(|threads| {
        for (engine, depth) in [("uring", "4"), ("aio", "4"), ("sync", "2")] {
            threads.spawn(move || {
                let patient = HangingDisk::spare_device();
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
                        m.data.stopped,
                        m.data.hang.unwrap().requests,
                        m.data.ops[&OpKind::Write].errors["ETIMEDOUT"]
                    ),
                    (StopReason::Hung, wanted, wanted)
                );
                assert!(m.data.ops[&OpKind::Write].count > 0, "{engine}");
            });
        }
    });
}

#[test]
fn hung_commits_time_out() {
    if !can_run("hung_commits_time_out", &NEEDED) {
        return;
    }
    scope(|threads| {
        for engine in ["uring", "aio", "sync"] {
            threads.spawn(move || {
                let patient = HangingDisk::spare_device();
                let mut running = writes(
                    &patient,
                    &["--rw", "randwrite", "--fdatasync", "1", "--engine", engine],
                    Hanging::Flushes,
                );
                let (page, record) = outcome(&mut running, &patient, 4);
                assert_hang_is_found(&record, &page);
                let m = &record.measurements[0];
                assert_eq!(
                    (m.data.stopped, m.data.hang.unwrap().requests),
                    (StopReason::Hung, 1),
                    "{engine}: {page}"
                );
                let of = |kind| {
                    m.op(kind)
                        .map(|op| (op.data.count > 0, op.data.errors.get("ETIMEDOUT").copied()))
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
fn hung_final_sync_times_out() {
    if !can_run("hung_final_sync_times_out", &NEEDED) {
        return;
    }
    let patient = HangingDisk::spare_device();
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
            m.data.stopped,
            m.data.hang.unwrap().requests,
            m.data.ops[&OpKind::Sync].errors["ETIMEDOUT"]
        ),
        (StopReason::Hung, 1, 1),
        "{page}"
    );
    // All writes were answered, and their rate includes the wait for the sync.
    assert!(
        m.data.ops[&OpKind::Write].count > 0
            && m.data.ops[&OpKind::Write].errors.is_empty()
            && m.data.wall_ns > 10_000_000_000,
        "{page}"
    );
}

#[test]
fn hung_verify_reports_how_far_it_got() {
    if !can_run("hung_verify_reports_how_far_it_got", &NEEDED) {
        return;
    }
    let patient = HangingDisk::spare_device();
    let mut running = start_reading_back(&patient, 3000, "2s");
    patient.disk.hang();
    let (page, record) = outcome(&mut running, &patient, 4);
    assert_hang_is_found(&record, &page);
    let m = &record.measurements[0];
    let verify = m.data.verify.as_ref().unwrap();
    assert!(
        verify.blocks < verify.blocks_written.unwrap() && verify.bad_blocks == 0,
        "{verify:?}"
    );
    assert_eq!(
        (m.data.stopped, counts(m, OpKind::Write).0, m.errors_total()),
        (StopReason::Hung, 3000, 0)
    );
    assert!(page.contains("read back before"), "{page}");
}

/// `check` on a directory, hung when this many of its lines were told, or this many requests after.
fn check_directory(lines: usize, requests: u64, signal: Option<Signal>) {
    with_enough_time(&["16s", "32s", "64s", "128s"], |time| {
        let patient = HangingDisk::filesystem();
        let directory = patient.directory().to_str().unwrap();
        let words = ["check", directory, "--time", time, "--size", "64M"];
        let mut running = Running::start(patient.place.path(), &words, "2s");
        let steps = |running: &Running| {
            let text = running.stderr();
            text.lines().filter(|line| line.contains("/8 ")).count()
        };
        assert!(
            eventually(|| steps(&running) >= lines || has_ended(running.child.id())),
            "{}",
            running.stderr()
        );
        patient.after_or(requests, || has_ended(running.child.id()));
        patient.disk.hang();
        if let Some(signal) = signal {
            kill_process(Pid::from_child(&running.child), signal).unwrap();
        }
        let (page, record) = running.results();
        if !record.partial {
            // The last lines of a run come together.
            patient.disk.answer_again();
            running.child.wait().unwrap();
            return Err(format!("{time}: it was over before the disk hung: {page}"));
        }
        assert_hang_is_found(&record, &page);
        assert!(record.measurements.len() >= lines, "{lines}: {page}");
        let code = if signal.is_some() { 130 } else { 4 };
        running.exit_after_answer(&patient, code);
        assert!(
            running.stderr().contains("vanishes with the process"),
            "{}",
            running.stderr()
        );
        // Nothing is left behind.
        assert_eq!(names(patient.directory()), ["lost+found"]);
        Ok(())
    });
}

#[test]
fn check_of_a_directory_survives_a_hang_in_every_phase() {
    if !can_run(
        "check_of_a_directory_survives_a_hang_in_every_phase",
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
fn hung_layout_times_out() {
    if !can_run("hung_layout_times_out", &NEEDED_WITH_FILESYSTEM) {
        return;
    }
    let patient = HangingDisk::filesystem();
    let words = format!(
        "run {} --rw randread --size 256M --time 8s",
        patient.directory().display()
    );
    let words = argv(&words);
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

/// The disk holds the process that makes the directory of the cluster, or initdb.
#[test]
fn hung_start_of_postgres_has_a_record_and_leaves_no_cluster() {
    let name = "hung_start_of_postgres_has_a_record_and_leaves_no_cluster";
    if crate::postgres::server(name).is_none() || !can_run(name, &NEEDED_WITH_FILESYSTEM) {
        return;
    }
    let patient = HangingDisk::filesystem();
    let directory = patient.directory().to_str().unwrap();
    let words = "--postgres --only fdatasync --time 2s --size 16M";
    let words: Vec<&str> = ["commit", directory]
        .into_iter()
        .chain(words.split(' '))
        .collect();
    let mut running = Running::start(patient.place.path(), &words, "2s");
    let is_starting = || running.stderr().contains("temporary PostgreSQL");
    assert!(eventually(is_starting), "{}", running.stderr());
    patient.disk.hang();
    let (page, record) = outcome(&mut running, &patient, 4);
    assert!(record.partial && page.contains("PARTIAL"), "{page}");
    let ended = record.ended_early.unwrap();
    let cluster = patient.directory().join("diskproof-postgres");
    assert!(ended.contains(cluster.to_str().unwrap()), "{ended}");
    assert!(eventually(|| names(patient.directory()) == ["lost+found"]));
}

#[test]
fn record_is_printed_and_saved_elsewhere_when_one_file_hangs() {
    if !can_run(
        "record_is_printed_and_saved_elsewhere_when_one_file_hangs",
        &NEEDED_WITH_FILESYSTEM,
    ) {
        return;
    }
    let (patient, healthy) = (HangingDisk::filesystem(), HangingDisk::file());
    let lost = patient.directory().join("lost.json");
    let history = patient.directory().join("history.db");
    let words = format!(
        "run {} --time 10s -o {}",
        healthy.path().display(),
        lost.display()
    );
    let words = argv(&words);
    let mut running = Running::start_with(healthy.place.path(), &words, "2s", |command| {
        command.env("DISKPROOF_HISTORY", &history)
    });
    healthy.after(100);
    patient.disk.hang();
    let (page, record) = running.results();
    assert!(!record.partial && page.contains("randread"), "{page}");
    let heard = || {
        [
            "its filesystem did not answer for 2.0 s",
            ".unfinished",
            "the history did not answer for 2.0 s",
        ]
    };
    assert!(
        eventually(|| heard().iter().all(|part| running.stderr().contains(part))),
        "{}",
        running.stderr()
    );
    running.exit_after_answer(&patient, 4);
}

#[test]
fn hung_survey_times_out() {
    if !can_run("hung_survey_times_out", &NEEDED) {
        return;
    }
    scope(|threads| {
        for flags in [
            &[][..],
            &["--scan", "--points", "0", "--no-access"],
            &["--write"],
        ] {
            threads.spawn(move || {
                let patient = HangingDisk::large_device();
                let words = format!(
                    "curve {} --destroy {}",
                    patient.path().display(),
                    patient.name()
                );
                let words = argv(&words);
                let mut running =
                    Running::start(patient.place.path(), &[&words[..], flags].concat(), "2s");
                assert!(
                    eventually(|| running.stderr().contains("survey: ")),
                    "{}",
                    running.stderr()
                );
                patient.after(5);
                patient.disk.hang();
                let (page, record) = outcome(&mut running, &patient, 4);
                assert_hang_is_found(&record, &page);
                let hang = record.surface().unwrap().data.hang.unwrap();
                assert!(
                    hang.lasted_ns > 10_000_000_000,
                    "five times the patience: {hang:?}"
                );
            });
        }
    });
}

#[test]
fn second_ctrl_c_ends_a_hung_run_at_once() {
    needs!("fusermount3");
    let patient = HangingDisk::file();
    let words = format!("run {} --engine sync --time 1h", patient.path().display());
    let words = argv(&words);
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
    // No process holds the pipe of the result open.
    assert_eq!(
        std::io::read_to_string(running.child.stdout.take().unwrap()).unwrap(),
        ""
    );
    running.exit_after_answer(&patient, 130);
    // No record, and nothing unfinished.
    assert_eq!(names(patient.place.path()), ["disk", "err"]);
}

#[test]
fn interrupted_verify_reports_how_far_it_got() {
    if !can_run("interrupted_verify_reports_how_far_it_got", &NEEDED) {
        return;
    }
    let patient = HangingDisk::spare_device();
    let mut running = start_reading_back(&patient, 8000, "10m");
    // The disk hangs until the program has received the signal, even on a slow machine.
    patient.disk.hang();
    kill_process(Pid::from_child(&running.child), Signal::INT).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    // Then the run goes on to its end.
    patient.disk.answer_again();
    let (page, record) = running.results();
    running.exit_after_answer(&patient, 130);
    let m = &record.measurements[0];
    let verify = m.data.verify.as_ref().unwrap();
    assert!(
        verify.blocks < verify.blocks_written.unwrap() && m.data.hang.is_none(),
        "{verify:?}"
    );
    assert!(
        m.data.stopped == StopReason::Interrupted && page.contains("read back before"),
        "{page}"
    );
}
