//! The public primitive: submit a request, receive its completion with its times. On a real file,
//! and in virtual time.
#![allow(missing_docs)]

use diskproof_engine::{
    Completion, FakeDisk, FakeSampler, FileSampler, Op, QueueConfig, SampleRequest,
    simulate_sampler,
};
use diskproof_model::plan::{CachePolicy, EngineKind, SyncCall};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt as _;

const BLOCK: u32 = 4096;

fn read(tag: u32) -> SampleRequest {
    SampleRequest {
        op: Op::Read,
        offset: u64::from(tag * BLOCK),
        len: BLOCK,
        tag,
    }
}

fn fake(depth: u32, channels: usize) -> FakeSampler {
    let disk = FakeDisk {
        service_ns: 100_000,
        jitter_ns: 0,
        channels,
        size_bytes: 1 << 30,
    };
    simulate_sampler(disk, depth, BLOCK, 1).expect("memory for a few blocks")
}

#[test]
fn virtual_completions_have_exact_times() {
    let mut sampler = fake(3, 1);
    for tag in 0..3 {
        sampler.submit(read(tag)).unwrap();
    }
    assert_eq!((sampler.in_flight(), sampler.has_room()), (3, false));
    let full = sampler.submit(read(3)).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    // One channel serves them one after the other.
    for tag in 0..3 {
        let expected = Completion {
            request: read(tag),
            submitted_ns: 0,
            completed_ns: u64::from(tag + 1) * 100_000,
            result: Ok(BLOCK),
            interrupted: false,
        };
        assert_eq!(sampler.next_completion().unwrap(), Some(expected));
    }
    assert_eq!(sampler.next_completion().unwrap(), None);
    sampler.submit(read(4)).unwrap();
    let later = sampler.next_completion().unwrap().unwrap();
    assert_eq!((later.submitted_ns, later.latency_ns()), (300_000, 100_000));
}

#[test]
fn virtual_requests_that_complete_together_arrive_as_one_batch() {
    let (mut sampler, mut batch) = (fake(2, 2), Vec::new());
    sampler.submit(read(0)).unwrap();
    sampler.submit(read(1)).unwrap();
    sampler.wait(&mut batch).unwrap();
    let times: Vec<u64> = batch.iter().map(|one| one.completed_ns).collect();
    assert_eq!(times, [100_000, 100_000]);
    sampler.wait(&mut batch).unwrap();
    assert!(batch.is_empty(), "nothing is in flight: {batch:?}");
}

#[test]
fn request_longer_than_the_buffers_is_refused() {
    let long = SampleRequest {
        len: 1 << 20,
        ..read(0)
    };
    let refused = fake(1, 1).submit(long).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
}

#[test]
fn real_file_is_written_synced_and_read() {
    for engine in [EngineKind::Sync, EngineKind::Uring] {
        let file = tempfile::tempfile().unwrap();
        file.set_len(u64::from(2 * BLOCK)).unwrap();
        let config = QueueConfig {
            depth: 1,
            request_bytes: BLOCK,
            cache: CachePolicy::Buffered,
            seed: 7,
            write_shift: 0,
        };
        let fd = file.try_clone().unwrap().into();
        let Ok(mut sampler) = FileSampler::open(fd, engine, config) else {
            eprintln!("SKIPPED: real_file_is_written_synced_and_read: no {engine:?} here");
            continue;
        };
        let write = SampleRequest {
            op: Op::Write,
            ..read(1)
        };
        let sync = SampleRequest {
            op: Op::Sync(SyncCall::Fdatasync),
            offset: 0,
            len: 0,
            tag: 2,
        };
        let mut before_ns = sampler.now();
        for request in [write, sync, read(1)] {
            sampler.submit(request).unwrap();
            let done = sampler.next_completion().unwrap().unwrap();
            assert_eq!((done.request, done.result), (request, Ok(request.len)));
            assert!(done.submitted_ns >= before_ns && done.completed_ns >= done.submitted_ns);
            before_ns = done.completed_ns;
        }
        let mut content = [0; 2 * BLOCK as usize];
        file.read_exact_at(&mut content, 0).unwrap();
        let (first, second) = content.split_at(BLOCK as usize);
        assert!(first.iter().all(|byte| *byte == 0) && second.iter().any(|byte| *byte != 0));
        // Behind the end of the file there is nothing to read.
        sampler.submit(read(2)).unwrap();
        let behind = sampler.next_completion().unwrap().unwrap();
        assert_eq!(behind.result, Err(-1));
    }
}

/// A blocking read has ended when it is submitted: what the caller does before it asks for the
/// completion is no part of its time, and neither is a second request that waits for its turn.
#[test]
fn time_before_the_wait_is_no_part_of_a_blocking_read() {
    let file = tempfile::tempfile_in("/var/tmp").unwrap();
    file.write_all_at(&vec![1; 8 * BLOCK as usize], 0).unwrap();
    let config = QueueConfig {
        depth: 2,
        request_bytes: BLOCK,
        cache: CachePolicy::Cached,
        seed: 1,
        write_shift: 0,
    };
    let mut sampler = FileSampler::open(file.into(), EngineKind::Sync, config).unwrap();
    sampler.submit(read(0)).unwrap();
    let submitted_by_ns = sampler.now();
    sampler.submit(read(1)).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    let first = sampler.next_completion().unwrap().unwrap();
    assert!(first.completed_ns <= submitted_by_ns, "{first:?}");
    let second = sampler.next_completion().unwrap().unwrap();
    assert!(second.submitted_ns > submitted_by_ns, "{second:?}");
}

#[test]
fn content_of_reads_is_looked_at() {
    for (byte, expected) in [(0, 5), (7, 0)] {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&vec![byte; 5 * BLOCK as usize], 0)
            .unwrap();
        let config = QueueConfig {
            depth: 1,
            request_bytes: BLOCK,
            cache: CachePolicy::Cached,
            seed: 1,
            write_shift: 0,
        };
        let mut sampler = FileSampler::open(file.into(), EngineKind::Sync, config).unwrap();
        for tag in 0..5 {
            // A look so long after the last one that it is due.
            std::thread::sleep(std::time::Duration::from_millis(1));
            sampler.submit(read(tag)).unwrap();
            sampler.next_completion().unwrap();
        }
        let found = sampler.take_zero_blocks();
        assert_eq!((found.sampled, found.zero), (5, expected), "{byte}");
    }
}
