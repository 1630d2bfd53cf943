//! Requests of a paced workload, and of a batch of reads.

use super::*;
use crate::testing::loads::{UNIFORM, extent, order_of_two_files, requests};
use diskproof_model::plan::Workload;
use diskproof_model::shape::{Arrivals, ThinkCount, ThinkTime};
use diskproof_model::stream::Streams;

const BLOCK: u32 = 4096;

fn blocks(depth: u32, read_permille: u16) -> Workload {
    Workload {
        streams: Streams::with_reads(read_permille),
        access: UNIFORM,
        block_bytes: BLOCK,
        depth,
        ..Workload::named("blocks")
    }
}

#[test]
fn paced_start_waits_for_busy_block_and_is_not_dropped() {
    let pacer = Pacer::new(0, 1000.0, Arrivals::Even, 1);
    let journal = Arc::new(WriteJournal::new(1, 0, u64::from(BLOCK), BLOCK));
    let one_block = extent(0, u64::from(BLOCK));
    let options = GeneratorOptions {
        pacer: Some(pacer.clone()),
        journal: Some(journal),
        ..GeneratorOptions::default()
    };
    let mut generator = requests(&blocks(4, 0), one_block, Budget::default()).with_options(options);
    let mut buffers = Buffers::new(4, BLOCK as usize).unwrap();
    let first = generator.next(2_500_000, &mut buffers).unwrap();
    // The only block is being written: the start at 1 ms stays reserved, and the one at 2 ms is
    // not taken.
    assert!((0..3).all(|_| generator.next(2_500_000, &mut buffers).is_none()));
    assert_eq!(pacer.next_due_ns(), 2_000_000);
    assert_eq!(generator.wait_mode(2_500_000), WaitMode::Completion);
    generator.record_write(first.slot, first.offset, WriteOutcome::Done);
    generator.slots.free(first.slot);
    let second = generator.next(3_000_000, &mut buffers).unwrap();
    assert_eq!(generator.slots.timing(second.slot).waited_ns, 2_000_000);
    assert_eq!(generator.late(), 2);
}

/// A worker with four slots that was away for 30 ms, in which the disk answered everything.
#[test]
fn delay_is_that_of_starts_that_would_have_found_a_slot() {
    let pacer = Pacer::new(0, 1000.0, Arrivals::Even, 1);
    let options = GeneratorOptions {
        pacer: Some(pacer),
        limit_ns: Some(5_000_000),
        ..GeneratorOptions::default()
    };
    let span = extent(0, 1 << 30);
    let mut generator = requests(&blocks(4, 1000), span, Budget::default()).with_options(options);
    let mut buffers = Buffers::new(4, BLOCK as usize).unwrap();
    // Those of 0, 1 and 2 ms: a slot is left.
    let mut busy = Vec::new();
    for now in [0, 1_000_000, 2_000_000] {
        busy.push(generator.next(now, &mut buffers).unwrap().slot);
    }
    let back_ns = 32_000_000;
    for slot in busy {
        generator.free(slot, back_ns);
    }
    let mut started = Vec::new();
    while let Some(request) = generator.next(back_ns, &mut buffers) {
        started.push(request.slot);
    }
    assert_eq!(started.len(), 4);
    for slot in started {
        let total_ns = generator.slots.timing(slot).waited_ns + 2_000_000;
        assert!(total_ns > 25_000_000);
        generator.note_answer(slot, OpKind::Read, total_ns);
    }
    let dispatch = generator.take_dispatch();
    // One start found a slot. The three others would have waited for the disk.
    assert_eq!((dispatch.late, dispatch.delays.count()), (1, 4));
}

#[test]
fn read_batch_equals_single_requests() {
    let feed_of = |read_permille| {
        let pattern = Pattern::new(&blocks(4, read_permille), extent(4096, 1 << 30), 7, 3);
        RequestGenerator::new(pattern, 4, AfterWrite::Nothing, Budget::with_steps(10))
    };
    let (mut one, mut other) = (feed_of(1000), feed_of(1000));
    let mut buffers = Buffers::new(4, BLOCK as usize).unwrap();
    for (now, expected) in [(5, 4), (9, 4), (11, 2), (12, 0)] {
        let mut read_batch = one.read_batch(now).unwrap();
        let together: Vec<Request> = std::iter::from_fn(|| read_batch.next()).collect();
        read_batch.end();
        let apart: Vec<Request> = std::iter::from_fn(|| other.next(now, &mut buffers)).collect();
        assert_eq!(together, apart);
        assert_eq!(together.len(), expected);
        for request in together {
            assert_eq!(one.slots.get(request.slot).start_ns, now);
            assert_eq!(one.slots.get(request.slot).bytes_left, BLOCK);
            one.slots.free(request.slot);
            other.slots.free(request.slot);
        }
        assert_eq!(one.left, other.left);
        assert_eq!(one.is_exhausted(), other.is_exhausted());
    }
    // Follow-ups come first, and a mix has no batches.
    one.follow_ups.push(Request {
        slot: 0,
        buffer: 0,
        op: Op::Read,
        offset: 0,
        len: 1,
        skip: 0,
    });
    assert!(one.read_batch(13).is_none() && feed_of(999).read_batch(0).is_none());
}

#[test]
fn generator_pauses_after_each_operation() {
    let think = ThinkTime {
        pause_ns: 2_000_000,
        pause_ops: 1,
        counted: ThinkCount::Completed,
        busy_ns: None,
    };
    let options = GeneratorOptions {
        pauses: Some(Pauses::new(think, 0)),
        ..GeneratorOptions::default()
    };
    let mut generator =
        requests(&blocks(1, 1000), extent(0, 1 << 20), Budget::default()).with_options(options);
    let mut buffers = Buffers::new(1, BLOCK as usize).unwrap();
    assert!(generator.read_batch(0).is_none());
    let first = generator.next(10, &mut buffers).unwrap();
    assert!(generator.next(20, &mut buffers).is_none());
    generator.slots.free(first.slot);
    assert!(generator.next(30, &mut buffers).is_none());
    assert_eq!(generator.reserve(), Some(2_000_030));
    assert!(generator.next(2_000_029, &mut buffers).is_none());
    assert!(generator.next(2_000_030, &mut buffers).is_some());
}

/// The second lap finds the blocks of the first one busy. Its steps and syncs were counted.
#[test]
fn verified_steps_as_fio_wait_for_busy_blocks_and_none_is_left_out() {
    let mut order = order_of_two_files();
    order.kinds.remove(0);
    let mut workload = blocks(64, 0);
    workload.shape.order.fio = Some(Box::new(order));
    let span = extent(0, 65_536);
    let mut pattern = Pattern::new(&workload, span, 1, 0);
    let options = GeneratorOptions {
        journal: Some(Arc::new(WriteJournal::new(1, 0, 65_536, BLOCK))),
        ..GeneratorOptions::default()
    };
    let mut generator = requests(&workload, span, Budget::default()).with_options(options);
    let mut buffers = Buffers::new(64, BLOCK as usize).unwrap();
    let mut busy: Vec<Request> = Vec::new();
    let mut waits = 0;
    let mut made = 0;
    while made < 60 {
        let Some(request) = generator.next(0, &mut buffers) else {
            waits += 1;
            assert!(!busy.is_empty());
            for done in busy.drain(..) {
                generator.record_write(done.slot, done.offset, WriteOutcome::Done);
                generator.slots.free(done.slot);
            }
            continue;
        };
        match pattern.next_action() {
            PatternAction::Step(step) => {
                assert_eq!((request.op, request.offset), (Op::Write, step.offset));
            }
            PatternAction::Sync(call) => {
                assert_eq!(call, FioSyncCall::Fsync);
                assert_eq!(request.op, Op::Sync(SyncCall::Fsync));
            }
            PatternAction::End => panic!("{made}"),
        }
        busy.push(request);
        made += 1;
    }
    assert!(waits > 0);
}

#[test]
fn worker_ends_where_the_order_of_fio_has_no_request() {
    let mut order = order_of_two_files();
    order.files.file_bytes = 0;
    let mut workload = blocks(4, 0);
    workload.shape.order.fio = Some(Box::new(order));
    let mut generator = requests(&workload, extent(0, 65_536), Budget::default());
    let mut buffers = Buffers::new(4, BLOCK as usize).unwrap();
    assert!(generator.next(0, &mut buffers).is_none());
    assert!(generator.is_exhausted());
}

#[test]
fn kind_of_a_mix_starts_only_when_it_is_due() {
    let options = GeneratorOptions {
        kind_pacer: Some((OpKind::Read, Pacer::new(0, 1000.0, Arrivals::Even, 1))),
        ..GeneratorOptions::default()
    };
    let span = extent(0, 1 << 20);
    let mut generator = requests(&blocks(1, 500), span, Budget::default()).with_options(options);
    let mut buffers = Buffers::new(1, BLOCK as usize).unwrap();
    let mut reads = 0;
    let mut writes = 0;
    // A request takes 100 us: without a rate there would be 500 of each.
    for step in 0..1000 {
        let request = generator.next(step * 100_000, &mut buffers).unwrap();
        match request.op {
            Op::Read => reads += 1,
            _ => writes += 1,
        }
        generator.slots.free(request.slot);
    }
    assert!((98..=101).contains(&reads), "{reads}");
    assert_eq!(reads + writes, 1000);
}

#[test]
fn sync_of_a_range_covers_what_was_written_since_the_last_one() {
    let mut order = order_of_two_files();
    order.kinds.remove(0);
    order.files.count = 1;
    order.files.part_bytes = 65_536;
    order.files.lap_bytes = 65_536;
    order.files.file_bytes = 65_536;
    order.syncs[0].call = FioSyncCall::FileRange(RangeSync::COMPLETE);
    let mut workload = blocks(4, 0);
    workload.shape.order.fio = Some(Box::new(order));
    let mut generator = requests(&workload, extent(0, 65_536), Budget::default());
    let mut buffers = Buffers::new(4, BLOCK as usize).unwrap();
    let mut ranges = Vec::new();
    while ranges.len() < 5 {
        let request = generator.next(0, &mut buffers).unwrap();
        if let Op::SyncRange(steps) = request.op {
            ranges.push((steps, request.offset, request.len));
            generator.slots.free(request.slot);
        } else {
            generator.finish(request.slot, 0);
        }
    }
    let range = |first: u64| (RangeSync::COMPLETE, first * 4096, 3 * BLOCK);
    assert_eq!(ranges, [0, 3, 6, 9, 12].map(range));
    // Nothing has ended since.
    let nothing = sync_of_range(0, RangeSync::COMPLETE, None);
    assert_eq!(
        (nothing.op, nothing.len),
        (Op::SyncRange(RangeSync::NOTHING), 0)
    );
    // A range too long for a request goes on to the end of the file.
    let long = sync_of_range(0, RangeSync::COMPLETE, Some(4096..1 << 40));
    assert_eq!((long.offset, long.len), (4096, 0));
}

/// A worker whose slot stayed taken would wait for a completion that never comes.
#[test]
fn step_of_a_kind_without_a_call_frees_its_slot_and_ends_the_worker() {
    let mut workload = blocks(4, 0);
    workload.streams = Streams::doing(&[OpKind::Trim]);
    let pattern = Pattern::new(&workload, extent(0, 1 << 20), 7, 3);
    let mut generator =
        RequestGenerator::new(pattern, 4, AfterWrite::Nothing, Budget::with_steps(10));
    let mut buffers = Buffers::new(4, BLOCK as usize).unwrap();
    assert_eq!(generator.next(0, &mut buffers), None);
    assert!(generator.is_exhausted());
    assert_eq!(generator.slots.in_flight(), 0);
}
