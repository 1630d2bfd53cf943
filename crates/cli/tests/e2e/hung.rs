//! A disk that hangs during a run: the program prints and saves the partial results before it waits
//! for the disk.

use crate::program::hanging_disk::{HangingDisk, Running};
use crate::program::{argv, eventually, needs};
use diskproof_model::finding::Severity;
use diskproof_model::measurement::{OpKind, StopReason};
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_simdisk::Hanging;
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::time::Duration;

/// Checks the measurement of a disk that hung with `requests` in flight.
fn assert_hung(record: &Record, m: &Row, requests: u64) {
    let hang = m
        .data
        .hang
        .unwrap_or_else(|| panic!("{}: {m:?}", m.data.workload.name));
    let read = &m.data.ops[&OpKind::Read];
    assert_eq!(
        (m.data.stopped, hang.requests),
        (StopReason::Hung, requests),
        "{}",
        m.data.workload.name
    );
    assert_eq!(
        m.errors_by_name().into_iter().collect::<Vec<_>>(),
        [("ETIMEDOUT", requests)],
        "{}",
        m.data.workload.name
    );
    assert!(
        read.count > 0 && read.count == read.series.total().ops,
        "{} {:?}",
        read.count,
        read.series.total()
    );
    assert!(read.bytes == read.count * u64::from(m.data.workload.block_bytes));
    // The hang includes the wait after the end.
    assert!(
        hang.since_ns >= m.data.start_ns && hang.lasted_ns > 2_000_000_000,
        "{hang:?}"
    );
    assert!(hang.since_ns < m.data.start_ns + m.data.wall_ns, "{hang:?}");
    let finding = record
        .findings
        .iter()
        .find(|finding| finding.code == "hung")
        .unwrap();
    let path = &record.targets[m.data.target].path;
    assert!(
        finding.severity == Severity::Failure && finding.claim.contains(path.as_str()),
        "{finding:?}"
    );
    assert!(
        record.partial
            && record
                .ended_early
                .as_ref()
                .is_some_and(|why| why.contains("stopped answering") && why.contains(path.as_str()))
    );
}

fn alone(patient: &HangingDisk, engine: &str, flags: &[&str], requests: u64) {
    let target = patient.path().to_str().unwrap().to_owned();
    let words =
        format!("run {target} --rw randread --bs 4k --engine {engine} --warmup 0s --time 8s");
    let words = argv(&words);
    let mut running = Running::start(patient.place.path(), &[&words, flags].concat(), "2s");
    patient.hang_amid();
    let (page, record) = running.results();
    assert!(
        page.contains("PARTIAL") && page.contains("stopped answering"),
        "{page}"
    );
    assert_eq!(record.measurements.len(), 1);
    assert_hung(&record, &record.measurements[0], requests);
    assert!(
        eventually(|| running.stderr().contains("cannot exit")),
        "{}",
        running.stderr()
    );
    running.exit_after_answer(patient, 4);
}

/// The request that proves direct I/O is the first of all.
#[test]
fn disk_that_hangs_at_its_first_request_ends_the_run() {
    needs!("fusermount3");
    for flags in ["--depth 1", "--depth 4 --engine uring"] {
        let patient = HangingDisk::file();
        patient.disk.hang_at(Hanging::Everything);
        let path = patient.path().display();
        let words = format!("run {path} --rw randread --bs 4k --time 1h {flags}");
        let mut running = Running::start(patient.place.path(), &argv(&words), "2s");
        let tells = || running.stderr().contains("no answer for");
        assert!(eventually(tells), "{flags}: {}", running.stderr());
        running.exit_after_answer(&patient, 4);
    }
}

/// The announced time ends the run before the silence is a hang.
#[test]
fn disk_that_hangs_from_the_start_is_late_in_a_short_ping() {
    needs!("fusermount3");
    let patient = HangingDisk::file();
    patient.disk.hang_at(Hanging::Everything);
    let path = patient.path().display();
    let words = format!("ping {path} -c 5 -i 100ms");
    let mut running = Running::start(patient.place.path(), &argv(&words), "60s");
    let (page, record) = running.results();
    assert!(page.contains("PARTIAL"), "{page}");
    let stalled = record.stalled.clone().expect("a silence");
    assert!(stalled.late && stalled.target == Some(0), "{stalled:?}");
    assert!(stalled.lasted_ns >= 4_000_000_000, "{stalled:?}");
    let codes: Vec<&str> = record
        .findings
        .iter()
        .map(|finding| finding.code.as_str())
        .collect();
    assert!(codes.contains(&"late"), "{codes:?}");
    running.exit_after_answer(&patient, 4);
}

#[test]
fn partial_results_of_queues_appear_while_the_disk_hangs() {
    needs!("fusermount3", "losetup");
    std::thread::scope(|threads| {
        for engine in ["uring", "aio"] {
            threads.spawn(|| alone(&HangingDisk::device(), engine, &["--depth", "4"], 4));
            threads.spawn(|| {
                alone(
                    &HangingDisk::file(),
                    engine,
                    &["--depth", "4", "--jobs", "4"],
                    16,
                )
            });
        }
    });
}

#[test]
fn partial_results_of_threads_appear_while_the_disk_hangs() {
    needs!("fusermount3", "losetup");
    std::thread::scope(|threads| {
        threads.spawn(|| alone(&HangingDisk::device(), "sync", &["--depth", "1"], 1));
        threads.spawn(|| {
            alone(
                &HangingDisk::file(),
                "sync",
                &["--depth", "2", "--jobs", "4"],
                8,
            )
        });
    });
}

const FIRST: &str = "[[workload]]\nname = \"first\"\nrw = \"randread\"\nbs = \"4k\"\nengine = \
                     \"sync\"\nwarmup = \"0s\"\ntime = \"8s\"\n";
const SECOND: &str = "[[workload]]\nname = \"second\"\nrw = \"randread\"\nbs = \"4k\"\nwarmup = \
                      \"0s\"\ntime = \"8s\"\n";

fn plan(place: &Path, together: &str) -> String {
    let path = place.join("plan.toml");
    std::fs::write(&path, format!("{FIRST}{SECOND}{together}")).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn hang_of_one_target_ends_the_run_after_the_current_workload() {
    needs!("fusermount3", "losetup");
    let (healthy, patient) = (HangingDisk::file(), HangingDisk::device());
    let plan = plan(patient.place.path(), "");
    let words = format!(
        "run {plan} {} {}",
        healthy.path().display(),
        patient.path().display()
    );
    let words = argv(&words);
    let mut running = Running::start(patient.place.path(), &words, "2s");
    patient.hang_amid();
    let (_, record) = running.results();
    // The second workload does not begin.
    assert_eq!(record.measurements.len(), 2);
    let (well, hung) = (&record.measurements[0], &record.measurements[1]);
    assert_hung(&record, hung, 1);
    assert!(
        well.data.stopped == StopReason::Time
            && well.data.hang.is_none()
            && well.errors_total() == 0,
        "{well:?}"
    );
    assert!(well.data.ops[&OpKind::Read].count > 0);
    running.exit_after_answer(&patient, 4);
}

#[test]
fn concurrent_workloads_hang_together() {
    needs!("fusermount3", "losetup");
    let patient = HangingDisk::device();
    let plan = plan(patient.place.path(), "together = true\ndepth = 4\n");
    let mut running = Running::start(
        patient.place.path(),
        &["run", &plan, patient.path().to_str().unwrap()],
        "2s",
    );
    patient.hang_amid();
    let (_, record) = running.results();
    assert_eq!(record.measurements.len(), 2);
    assert_hung(&record, &record.measurements[0], 1);
    assert_hung(&record, &record.measurements[1], 4);
    running.exit_after_answer(&patient, 4);
}

#[test]
fn hang_is_reported_while_it_lasts_and_ctrl_c_ends_it() {
    needs!("fusermount3", "losetup");
    let patient = HangingDisk::device();
    let words = format!(
        "run {} --rw randread --warmup 0s --engine sync --time 1h",
        patient.path().display()
    );
    let words = argv(&words);
    let mut running = Running::start(patient.place.path(), &words, "1s");
    patient.hang_amid();
    assert!(
        eventually(|| running.stderr().contains("no answer for 10 s")),
        "{}",
        running.stderr()
    );
    kill_process(Pid::from_child(&running.child), Signal::INT).unwrap();
    let (page, record) = running.results();
    let m = &record.measurements[0];
    assert!(
        m.data.stopped == StopReason::Interrupted
            && m.data
                .hang
                .is_some_and(|hang| hang.lasted_ns > 10_000_000_000),
        "{page}"
    );
    assert!(record.partial && record.findings.iter().any(|finding| finding.code == "hung"));
    // Only up to Ctrl-C, and not an hour.
    assert!(m.data.wall_ns < 3_000_000_000_000, "{}", m.data.wall_ns);
    running.exit_after_answer(&patient, 130);
}

#[test]
fn disk_that_answers_before_the_timeout_was_only_slow() {
    needs!("fusermount3");
    let patient = HangingDisk::file();
    for engine in ["sync", "aio", "uring"] {
        let words = format!(
            "run {} --rw randread --warmup 0s --engine {engine} --time 2s",
            patient.path().display()
        );
        let words = argv(&words);
        let mut running = Running::start(patient.place.path(), &words, "10m");
        patient.hang_amid();
        std::thread::sleep(Duration::from_secs(4));
        patient.disk.answer_again();
        let (_, record) = running.results();
        let m = &record.measurements[0];
        assert_eq!(
            (
                m.data.stopped,
                m.data.hang,
                m.errors_total(),
                record.partial
            ),
            (StopReason::Time, None, 0, false),
            "{engine}"
        );
        assert!(
            m.figures.ops[&OpKind::Read].latency.max >= 3_900_000_000,
            "{engine}: {}",
            m.figures.ops[&OpKind::Read].latency.max
        );
        assert_eq!(
            running.child.wait().unwrap().code(),
            Some(0),
            "{engine}: {}",
            running.stderr()
        );
    }
}
