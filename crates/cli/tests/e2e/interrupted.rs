//! A program that is stopped in the middle of a run, and continued: the pause is in no figure.

use crate::program::hanging_disk::Running;
use crate::program::{PipedRun, argv, needs, sim_disk};
use diskproof_model::measurement::{Interruption, InterruptionKind, OpKind, StopReason};
use diskproof_model::record::Record;
use diskproof_simdisk::testbed::place;
use diskproof_simdisk::{SimDisk, spec};
use rustix::process::{Pid, Signal, kill_process};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SECOND_NS: u64 = 1_000_000_000;
const STOP: Duration = Duration::from_secs(2);

/// Stops a run once the disk has served `requests`, and continues it after [`STOP`]. The record,
/// and how long the stop really lasted.
fn stop_amid(words: &[&str], model: &str, requests: u64) -> (Record, Duration) {
    let place = place();
    let model = spec::parse(model).unwrap();
    let disk = SimDisk::serve(model, 256 << 20, &place.path().join("disk")).unwrap();
    let path = disk.path().to_str().unwrap().to_owned();
    let words: Vec<&str> = words
        .iter()
        .map(|word| if *word == "DISK" { &path } else { *word })
        .collect();
    let mut running = Running::start(place.path(), &words, "45s");
    let served = || disk.stats().reads;
    assert!(crate::program::eventually(|| served() > requests));
    let child = Pid::from_child(&running.child);
    let start = Instant::now();
    kill_process(child, Signal::STOP).unwrap();
    std::thread::sleep(STOP);
    let stopped = start.elapsed();
    kill_process(child, Signal::CONT).unwrap();
    let (page, record) = running.results();
    assert!(running.child.wait().unwrap().success(), "{page}");
    (record, stopped)
}

/// The one interruption, with about the length of the stop.
fn only_one(interruptions: &[Interruption], stopped: Duration) -> Interruption {
    let [one] = interruptions else {
        panic!("{interruptions:?}");
    };
    assert_eq!(one.kind, InterruptionKind::Stopped);
    let missing_ns = stopped.as_nanos() as u64 - SECOND_NS / 10;
    // Where the machine is busy it comes back late.
    assert!(
        (missing_ns..10 * SECOND_NS).contains(&one.length_ns),
        "{one:?}"
    );
    *one
}

/// Workloads take turns, so each has a part of its time when a run ends early.
#[test]
fn each_workload_of_a_run_that_ended_early_is_cut_short() {
    needs!();
    let place = place();
    let disk = sim_disk(&place, "latency=1ms,channels=4", 256 << 20);
    let path = disk.path().to_str().unwrap().to_owned();
    // On a busy machine the first workload takes longer.
    for reads in [8_000, 20_000, 40_000] {
        let words = ["check", &path, "--time", "120s", "--json", "--no-history"];
        let running = PipedRun::start(words);
        let before = disk.stats().reads;
        assert!(crate::program::eventually(
            || disk.stats().reads - before > reads
        ));
        let record = running.interrupt().exits(130).record();
        let mut unfinished = record.measurements;
        unfinished.retain(|row| {
            let planned_ns = row.data.workload.stop.time_ns.unwrap();
            row.data.stopped == StopReason::Time && row.data.wall_ns < planned_ns / 2
        });
        for row in &unfinished {
            let data = &row.data;
            assert_eq!(
                data.shortened_from_ns, data.workload.stop.time_ns,
                "{data:?}"
            );
        }
        if !unfinished.is_empty() {
            return;
        }
    }
    panic!("no workload took a turn");
}

#[test]
fn stopped_run_leaves_the_pause_out_of_every_figure() {
    needs!();
    for extra in [&[][..], &["--rate", "500"]] {
        let words = [
            &argv("run DISK --depth 4 --time 4s --no-history")[..],
            extra,
        ];
        let (record, stopped) = stop_amid(&words.concat(), "latency=1ms,channels=4", 1500);
        let [m] = &record.measurements[..] else {
            panic!("{:?}", record.measurements);
        };
        let one = only_one(&m.data.interruptions, stopped);
        assert!(one.requests <= 4, "{one:?}");
        let read = &m.data.ops[&OpKind::Read];
        let stop_ns = stopped.as_nanos() as u64;
        assert!(read.latency.max_ns() < stop_ns, "{read:?}");
        // The pause is no part of the measured time either, which is as long as asked, less the
        // warm-ups of the slices, which a stalled machine makes longer.
        assert!(
            (2 * SECOND_NS..5 * SECOND_NS).contains(&m.data.wall_ns),
            "{}: {:?}",
            m.data.wall_ns,
            m.figures.phases
        );
        if let Some(intended) = &read.latency_intended {
            assert!(intended.max_ns() < stop_ns, "{intended:?}");
        }
        let finding = record
            .findings
            .iter()
            .find(|finding| finding.code == "interrupted")
            .unwrap();
        assert!(finding.claim.contains("stopped diskproof"), "{finding:?}");
        assert_eq!(finding.evidence[0].observed, one.length_ns as f64);
    }
}

#[test]
fn stopped_survey_finds_no_slow_block() {
    needs!();
    let words = ["curve", "DISK", "--no-history"];
    let (record, stopped) = stop_amid(&words, "read-bandwidth=100MB", 100);
    let surface = record.surface().unwrap();
    only_one(&surface.data.interruptions, stopped);
    let slowest = record
        .curve()
        .iter()
        .map(|point| point.latency_max_ns)
        .max()
        .unwrap();
    assert!(slowest < stopped.as_nanos() as u64, "{slowest}");
    // The pause is not blamed on the disk. A busy machine can make the curve ragged by itself, but
    // no read of the disk takes as long as the pause.
    for code in ["slow-blocks", "hung"] {
        assert!(
            record.findings.iter().all(|found| found.code != code),
            "{code}"
        );
    }
}

#[test]
fn starved_run_is_not_interrupted() {
    needs!();
    let stop = AtomicBool::new(false);
    let record = std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop()
                }
            });
        }
        let place = place();
        let model = spec::parse("latency=1ms,channels=4").unwrap();
        let disk = SimDisk::serve(model, 256 << 20, &place.path().join("disk")).unwrap();
        let path = disk.path().to_str().unwrap();
        let words = ["run", path, "--depth", "4", "--time", "3s", "--no-history"];
        let (_, record) = Running::start(place.path(), &words, "45s").results();
        stop.store(true, Ordering::Relaxed);
        record
    });
    assert!(record.measurements[0].data.interruptions.is_empty());
    assert!(
        record
            .findings
            .iter()
            .all(|finding| finding.code != "interrupted")
    );
}
