//! The ring on real files.

use super::*;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// A ring on this file, where the kernel has rings.
fn ring(test: &str, fd: OwnedFd, blocks: [usize; 2], depth: u32) -> Option<UringBackend> {
    let buffers = Buffers::new(blocks[0], blocks[1]).unwrap();
    let backend = UringBackend::new(
        fd,
        buffers,
        depth,
        CachePolicy::Direct,
        SubmitPolicy::Batched,
    );
    if backend.is_err() {
        eprintln!("SKIPPED: {test}: io_uring is blocked");
    }
    backend.ok()
}

const READ: Request = Request {
    slot: 0,
    buffer: 0,
    op: Op::Read,
    offset: 0,
    len: 4096,
    skip: 0,
};

#[test]
fn uring_polling_delivers_completions() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(4096).unwrap();
    let test = "uring_polling_delivers_completions";
    let Some(mut backend) = ring(test, file.into(), [1, 4096], 1) else {
        return;
    };
    let (mut request, began, mut done) = (Some(READ), Instant::now(), None);
    backend.enqueue(&mut |_| request.take()).unwrap();
    // With DEFER_TASKRUN a call without GETEVENTS never delivers completions: an open loop that
    // polled saw them a millisecond late.
    while done.is_none() && began.elapsed() < Duration::from_secs(10) {
        backend.wait(WaitMode::Poll).unwrap();
        backend.reap(&mut |slot, result| done = Some((slot, result)));
    }
    assert_eq!(done, Some((0, 4096)));
}

#[test]
fn uring_registers_only_small_buffers() {
    let file = tempfile::tempfile().unwrap();
    let is_registered = |block: usize| {
        let fd = file.as_fd().try_clone_to_owned().unwrap();
        let backend = ring("uring_registers_only_small_buffers", fd, [2, block], 2)?;
        let features = backend.features();
        Some(features.iter().any(|feature| feature == "fixed-buffers"))
    };
    let Some(small) = is_registered(8192) else {
        return;
    };
    // Not without the right to lock memory.
    assert_eq!(is_registered(REGISTERED_BYTES_MAX), Some(small));
    assert_eq!(is_registered(1 << 20), Some(false));
}

#[test]
fn uring_leaks_buffers_while_io_is_in_flight() {
    let (read, _write) = std::io::pipe().unwrap();
    let test = "uring_leaks_buffers_while_io_is_in_flight";
    let Some(mut backend) = ring(test, read.into(), [1, 4096], 1) else {
        return;
    };
    let mut request = Some(READ);
    backend.enqueue(&mut |_| request.take()).unwrap();
    backend.wait(WaitMode::AtMost(1000)).unwrap();
    backend.reap(&mut |_, result| panic!("an empty pipe gave {result}"));
    let buffer = backend.buffers().slot(0);
    drop(backend);
    // SAFETY: msync looks only whether the page is mapped (ENOMEM), and writes nothing of
    // anonymous memory.
    let result = unsafe { libc::msync(buffer.cast(), 4096, libc::MS_ASYNC) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn uring_reused_entry_equals_new_one() {
    assert_eq!(size_of::<SubmissionEntry>(), 64);
    let fd = tempfile::tempfile().unwrap().into();
    let Some(mut backend) = ring("uring_reused_entry_equals_new_one", fd, [4, 8192], 2) else {
        return;
    };
    let plain = Request {
        slot: 1,
        buffer: 1,
        offset: 0x1234_5678_9000,
        ..READ
    };
    let write = Request {
        op: Op::Write,
        buffer: 3,
        ..plain
    };
    let rest = Request {
        offset: plain.offset + 512,
        len: 3584,
        skip: 512,
        ..plain
    };
    let sync = Request {
        op: Op::Sync(SyncCall::Fdatasync),
        offset: 0,
        len: 0,
        ..plain
    };
    let elsewhere = Request {
        offset: 0x4000,
        len: 8192,
        ..plain
    };
    // Every change from one kind to another, and each kind twice in a row.
    for request in [
        plain, elsewhere, rest, rest, plain, write, write, sync, sync, write, plain, sync, plain,
        elsewhere,
    ] {
        let mut submissions = backend.ring.submissions();
        let (writer, buffers) = (&mut backend.writer, &backend.buffers);
        writer.write(request, buffers, submissions.entry(1));
        assert_eq!(*submissions.entry(1), writer.build(request, buffers));
    }
}
