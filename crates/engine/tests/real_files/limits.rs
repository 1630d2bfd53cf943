//! Ends, schedules, refusals, and several targets at once.

use crate::support::{MIB, Patient, run, scratch, workload};
use diskproof_device::{Intent, OpenTarget, admit, probe};
use diskproof_engine::Session;
use diskproof_model::measurement::{OpKind, StopReason};
use diskproof_model::plan::{Access, EngineKind, Span, Stop, Workload};
use diskproof_model::progress::{Control, Progress, Watch};
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
        let seen = Session::new(1)
            .run(
                &endless,
                std::slice::from_mut(&mut target),
                &mut Impatient(8, control),
            )
            .unwrap()
            .remove(0);
        assert_eq!(seen.stopped, reason);
        assert!(seen.ops[&OpKind::Read].count > 0);
    }
}

#[test]
fn open_loop_keeps_rate_and_counts_from_intended_start() {
    let (_dir, mut target) = scratch(4 * MIB);
    for engine in [EngineKind::Uring, EngineKind::Sync, EngineKind::Aio] {
        let stop = Stop {
            time_ns: Some(400_000_000),
            ..Stop::default()
        };
        let paced = Workload {
            rate: Some(500.0),
            stop,
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
        assert!(
            never_made <= seen.missed_starts.unwrap(),
            "{engine:?}: {never_made} of {:?}",
            seen.missed_starts
        );
        assert!(intended.sum_ns() >= read.latency.sum_ns(), "{engine:?}");
    }
}

#[test]
fn early_end_of_file_is_counted() {
    // A file that shrinks under our hands: the span was taken before.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("data");
    std::fs::write(&path, vec![1u8; 4 * MIB as usize]).unwrap();
    let mut target = OpenTarget::open(admit(probe(&path).unwrap(), Intent::Read).unwrap()).unwrap();
    std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(MIB)
        .unwrap();
    let seen = run(&workload(EngineKind::Sync), &mut target);
    let read = &seen.ops[&OpKind::Read];
    assert_eq!(read.count + read.errors["EOF"], 500);
    let mapped = run(&workload(EngineKind::Mmap), &mut target);
    assert!(
        mapped.ops[&OpKind::Read].errors["EIO"] > 0,
        "beyond the end a mapping gives SIGBUS; it must be an error instead"
    );
}

#[test]
fn read_only_target_is_never_written() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("data");
    std::fs::write(&path, vec![1u8; 4 * MIB as usize]).unwrap();
    let mut target = OpenTarget::open(admit(probe(&path).unwrap(), Intent::Read).unwrap()).unwrap();
    let writing = Workload {
        streams: Streams::with_reads(500),
        ..workload(EngineKind::Sync)
    };
    let error = Session::new(1)
        .run(&writing, std::slice::from_mut(&mut target), &mut Patient)
        .unwrap_err();
    assert!(
        error.to_string().contains("open only for reading"),
        "{error}"
    );
}

#[test]
fn unaligned_direct_block_is_refused_with_the_unit() {
    let (_dir, mut target) = scratch(4 * MIB);
    let odd = Workload {
        block_bytes: 1000,
        ..workload(EngineKind::Sync)
    };
    let error = Session::new(1)
        .run(&odd, std::slice::from_mut(&mut target), &mut Patient)
        .unwrap_err();
    assert!(error.to_string().contains("not a multiple of"), "{error}");
}

#[test]
fn ordered_workload_needs_a_block_for_each_part() {
    let (_dir, mut target) = scratch(4 * MIB);
    run(&workload(EngineKind::Sync), &mut target);
    // Eight blocks.
    let span = Span {
        start_bytes: 0,
        length_bytes: Some(8 * 8192),
    };
    let stride = Access::Stride {
        stride_bytes: 16384,
    };
    for (engine, access, too_much, fits) in [
        (EngineKind::Sync, Access::Backward, (16, 1), (8, 1)),
        (EngineKind::Mmap, stride, (5, 2), (4, 2)),
        (EngineKind::Uring, Access::Backward, (16, 9), (16, 8)),
        (EngineKind::Uring, Access::Sequential, (1, 9), (1, 8)),
    ] {
        let asked = |(depth, workers)| Workload {
            span,
            access: access.clone(),
            depth,
            workers,
            ..workload(engine)
        };
        let error = Session::new(1)
            .run(
                &asked(too_much),
                std::slice::from_mut(&mut target),
                &mut Patient,
            )
            .unwrap_err();
        assert!(
            error.to_string().contains("divides the span into"),
            "{engine:?}: {error}"
        );
        let seen = run(&asked(fits), &mut target);
        assert_eq!(
            (
                seen.ops[&OpKind::Read].count,
                seen.ops[&OpKind::Read].errors.len()
            ),
            (500, 0),
            "{engine:?}"
        );
    }
}

#[test]
fn targets_on_one_disk_are_compared_with_its_counters_together() {
    let ((_a, one), (_b, two)) = (scratch(4 * MIB), scratch(4 * MIB));
    let mut targets = [one, two];
    let workload = Workload {
        stop: Stop {
            ops: Some(3000),
            ..Stop::default()
        },
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
    let stop = Stop {
        time_ns: Some(500_000_000),
        ..Stop::default()
    };
    let paced = Workload {
        rate: Some(400.0),
        stop,
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
