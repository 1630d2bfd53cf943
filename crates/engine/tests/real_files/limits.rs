//! Ends, schedules, refusals, and several targets at once.

use crate::support::{
    CALLING, MIB, Patient, after_ns, after_ops, refused, run, scratch, span, watched, workload,
};
use diskproof_device::{FailedRequest, Intent, OpenTarget, admit, probe};
use diskproof_engine::{LayoutGoal, LayoutWay, RunError, Session};
use diskproof_model::measurement::{Measurement, OpKind, StopReason};
use diskproof_model::plan::{Access, EngineKind, Stop, Workload};
use diskproof_model::progress::{Control, Progress, Watch};
use diskproof_model::shape::{KindRate, StartTimes, ThinkCount, ThinkTime};
use diskproof_model::stream::Streams;

/// Ends everything at the n-th look.
struct Impatient(u32, Control);

impl Watch for Impatient {
    fn tick(&mut self, _: &Progress<'_>) -> Control {
        self.0 = self.0.saturating_sub(1);
        if self.0 == 0 {
            self.1
        } else {
            Control::Continue
        }
    }
}

#[test]
fn watcher_ends_a_workload_with_enough_or_interrupt() {
    let (_dir, mut target) = scratch(4 * MIB);
    let endless = Workload {
        stop: Stop::default(),
        ..workload(EngineKind::Uring)
    };
    for (control, reason) in [
        (Control::Enough, StopReason::Precision),
        (Control::Interrupt, StopReason::Interrupted),
    ] {
        let seen = watched(&endless, &mut target, &mut Impatient(8, control)).unwrap();
        assert_eq!(seen.stopped, reason);
        assert!(seen.ops[&OpKind::Read].count > 0);
    }
}

#[test]
fn open_loop_keeps_rate_and_counts_from_intended_start() {
    let (_dir, mut target) = scratch(4 * MIB);
    for engine in CALLING {
        let paced = Workload {
            rate: Some(500.0),
            stop: after_ns(400_000_000),
            ..workload(engine)
        };
        let seen = run(&paced, &mut target);
        let read = &seen.ops[&OpKind::Read];
        // Never more than the schedule allows; fewer only when the target stalls.
        assert!(read.count <= 201, "{engine:?}: {}", read.count);
        let intended = read.latency_intended.as_ref().unwrap();
        // Where the machine held the worker up to the end, starts that were due and not made count
        // from their time all the same.
        let never_made = intended.count() - read.latency.count();
        let missed = seen.missed_starts.unwrap();
        assert!(never_made <= missed, "{engine:?}: {never_made} of {missed}");
        assert!(intended.sum_ns() >= read.latency.sum_ns(), "{engine:?}");
    }
}

/// A file of 4 MiB, for reading.
fn only_read() -> (tempfile::NamedTempFile, OpenTarget) {
    let file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(file.path(), vec![1u8; 4 * MIB as usize]).unwrap();
    let admission = admit(probe(file.path()).unwrap(), Intent::Read).unwrap();
    (file, OpenTarget::open(admission).unwrap())
}

#[test]
fn early_end_of_file_is_counted() {
    // A file that shrinks under our hands: the span was taken before.
    let (file, mut target) = only_read();
    file.as_file().set_len(MIB).unwrap();
    let seen = run(&workload(EngineKind::Sync), &mut target);
    let read = &seen.ops[&OpKind::Read];
    assert_eq!(read.count + read.errors["EOF"], 500);
    let mapped = run(&workload(EngineKind::Mmap), &mut target);
    // Beyond the end a mapping gives SIGBUS; it must be an error instead.
    assert!(mapped.ops[&OpKind::Read].errors["EIO"] > 0);
}

#[test]
fn read_only_target_is_never_written() {
    let (_file, mut target) = only_read();
    let writing = Workload {
        streams: Streams::with_reads(500),
        ..workload(EngineKind::Sync)
    };
    let error = refused(&writing, &mut target);
    assert!(why_unsuitable(&error).contains("--overwrite"), "{error}");
}

fn why_unsuitable(error: &RunError) -> &str {
    match error {
        RunError::Unsuitable { why, .. } => why,
        other => panic!("{other}"),
    }
}

#[test]
fn unaligned_direct_block_is_refused_with_the_unit() {
    let (_dir, mut target) = scratch(4 * MIB);
    let odd = Workload {
        block_bytes: 1000,
        ..workload(EngineKind::Sync)
    };
    let RunError::Alignment { bytes, unit, .. } = refused(&odd, &mut target) else {
        panic!("it is not refused for its alignment")
    };
    assert_eq!((bytes, unit % 512), (1000, 0));
}

#[test]
fn ordered_workload_needs_a_block_for_each_part() {
    let (_dir, mut target) = scratch(4 * MIB);
    run(&workload(EngineKind::Sync), &mut target);
    // Eight blocks.
    let stride = Access::Stride {
        stride_bytes: 16384,
    };
    for (engine, access, too_much, parts, fits) in [
        (EngineKind::Sync, Access::Backward, (16, 1), 16, (8, 1)),
        (EngineKind::Mmap, stride, (5, 2), 10, (4, 2)),
        (EngineKind::Uring, Access::Backward, (16, 9), 9, (16, 8)),
        (EngineKind::Uring, Access::Sequential, (1, 9), 9, (1, 8)),
    ] {
        let asked = |(depth, workers)| Workload {
            span: span(0, 8 * 8192),
            access: access.clone(),
            depth,
            workers,
            ..workload(engine)
        };
        let error = refused(&asked(too_much), &mut target);
        let parts = format!(" {parts} parts ");
        assert!(why_unsuitable(&error).contains(&parts), "{error}");
        let seen = run(&asked(fits), &mut target);
        assert_eq!(seen.ops[&OpKind::Read].count, 500);
        assert_eq!(seen.ops[&OpKind::Read].errors.len(), 0, "{engine:?}");
    }
}

#[test]
fn targets_on_one_disk_are_compared_with_its_counters_together() {
    let ((_a, one), (_b, two)) = (scratch(4 * MIB), scratch(4 * MIB));
    let mut targets = [one, two];
    let workload = Workload {
        stop: after_ops(3000),
        ..workload(EngineKind::Uring)
    };
    let seen = Session::new(1)
        .run(&workload, &mut targets, &mut Patient)
        .unwrap();
    for measurement in &seen {
        assert_eq!(measurement.ops[&OpKind::Read].count, 3000);
        assert_eq!(measurement.asked.read_bytes, 2 * 3000 * 8192);
        if let Some(accounted) = measurement.device.accounted {
            assert!(accounted >= 0.99, "{accounted}");
        }
    }
}

#[test]
fn every_target_gets_the_whole_rate() {
    let ((_a, one), (_b, two)) = (scratch(4 * MIB), scratch(4 * MIB));
    let paced = Workload {
        rate: Some(400.0),
        stop: after_ns(500_000_000),
        ..workload(EngineKind::Uring)
    };
    let seen = Session::new(1)
        .run(&paced, &mut [one, two], &mut Patient)
        .unwrap();
    // 200 starts fall into half a second; of a shared schedule each would get about 100. What a
    // slow moment holds up is started later.
    for measurement in &seen {
        let count = measurement.ops[&OpKind::Read].count;
        assert!((130..=201).contains(&count), "{count}");
    }
}

/// Neither the threads that a depth has with an I/O engine of one request at a time, nor a ring.
#[test]
fn settings_of_a_worker_hold_for_all_its_requests_in_flight() {
    let (_dir, mut target) = scratch(4 * MIB);
    let kind_rate = StartTimes {
        kind_rate: Some(KindRate {
            kind: OpKind::Write,
            per_second: 100.0,
        }),
        ..StartTimes::default()
    };
    let pauses = StartTimes {
        think: Some(ThinkTime {
            pause_ns: 20_000_000,
            pause_ops: 1,
            counted: ThinkCount::Started,
            busy_ns: None,
        }),
        ..StartTimes::default()
    };
    for engine in CALLING {
        for starts in [&kind_rate, &pauses] {
            let mut mixed = Workload {
                depth: 8,
                streams: Streams::with_reads(500),
                stop: after_ns(500_000_000),
                ..workload(engine)
            };
            mixed.shape.starts = starts.clone();
            let seen = run(&mixed, &mut target);
            // 50 writes by their rate, 26 operations by the pauses; each request in flight may be
            // one more.
            let count = seen.ops[&OpKind::Write].count;
            assert!((1..=60).contains(&count), "{engine:?}: {count}");
        }
    }
}

/// Such a request proves direct I/O or estimates the speed before any workload, once.
#[test]
fn next_workload_counts_requests_that_failed_before_it() {
    let (_dir, mut target) = scratch(4 * MIB);
    let reads = workload(EngineKind::Sync);
    run(&reads, &mut target);
    let failed = FailedRequest {
        op: OpKind::Read,
        errno: libc::EIO,
    };
    target.keep_failed_requests(vec![failed, failed]);
    let errors = |seen: &Measurement| seen.ops[&OpKind::Read].errors.get("EIO").copied();
    assert_eq!(errors(&run(&reads, &mut target)), Some(2));
    assert_eq!(errors(&run(&reads, &mut target)), None);
}

/// The layout of a scratch file is no workload, and is not refused for errors before it.
#[test]
fn layout_leaves_earlier_errors_to_the_workload() {
    let (_dir, mut target) = scratch(4 * MIB);
    let failed = FailedRequest {
        op: OpKind::Write,
        errno: libc::EIO,
    };
    target.keep_failed_requests(vec![failed]);
    let goal = LayoutGoal {
        upto_bytes: 4 * MIB,
        way: LayoutWay::Direct,
        time_ns: None,
        content: None,
    };
    let session = Session::new(7);
    session.lay_out(&mut target, goal, &mut Patient).unwrap();
    let seen = run(&workload(EngineKind::Sync), &mut target);
    assert_eq!(seen.ops[&OpKind::Write].errors["EIO"], 1);
    assert!(seen.ops[&OpKind::Read].count > 0);
}
