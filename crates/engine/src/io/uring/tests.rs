//! The ring on real files.

use super::*;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

#[test]
fn uring_polling_delivers_completions() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(4096).unwrap();
    let fd = file.as_fd().try_clone_to_owned().unwrap();
    let Ok(mut backend) = UringBackend::new(
        fd,
        Buffers::new(1, 4096).unwrap(),
        1,
        CachePolicy::Cached,
        SubmitPolicy::Batched,
    ) else {
        eprintln!("SKIPPED: uring_polling_delivers_completions: io_uring is blocked");
        return;
    };
    let mut request = Some(Request {
        slot: 0,
        buffer: 0,
        op: Op::Read,
        offset: 0,
        len: 4096,
        skip: 0,
    });
    let (began, mut done) = (Instant::now(), None);
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
        let backend = UringBackend::new(
            file.as_fd().try_clone_to_owned().unwrap(),
            Buffers::new(2, block).unwrap(),
            2,
            CachePolicy::Direct,
            SubmitPolicy::Batched,
        )
        .ok()?;
        Some(
            backend
                .features()
                .iter()
                .any(|feature| feature == "fixed-buffers"),
        )
    };
    let Some(small) = is_registered(8192) else {
        eprintln!("SKIPPED: uring_registers_only_small_buffers: io_uring is blocked");
        return;
    };
    // Not without the right to lock memory.
    assert_eq!(
        (is_registered(REGISTERED_BYTES_MAX), is_registered(1 << 20)),
        (Some(small), Some(false))
    );
}

#[test]
fn uring_leaks_buffers_while_io_is_in_flight() {
    let (read, _write) = std::io::pipe().unwrap();
    let Ok(mut backend) = UringBackend::new(
        read.into(),
        Buffers::new(1, 4096).unwrap(),
        1,
        CachePolicy::Cached,
        SubmitPolicy::Batched,
    ) else {
        eprintln!(
            "SKIPPED: uring_leaks_buffers_while_io_is_in_flight: \
             io_uring is blocked"
        );
        return;
    };
    let mut request = Some(Request {
        slot: 0,
        buffer: 0,
        op: Op::Read,
        offset: 0,
        len: 4096,
        skip: 0,
    });
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
    let file = tempfile::tempfile().unwrap();
    let buffers = Buffers::new(4, 8192).unwrap();
    let Ok(mut backend) = UringBackend::new(
        file.as_fd().try_clone_to_owned().unwrap(),
        buffers,
        2,
        CachePolicy::Direct,
        SubmitPolicy::Batched,
    ) else {
        eprintln!(
            "SKIPPED: uring_reused_entry_equals_new_one: io_uring is \
             blocked"
        );
        return;
    };
    let plain = Request {
        slot: 1,
        buffer: 1,
        op: Op::Read,
        offset: 0x1234_5678_9000,
        len: 4096,
        skip: 0,
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
        backend
            .writer
            .write(request, &backend.buffers, submissions.entry(1));
        assert_eq!(
            *submissions.entry(1),
            backend.writer.build(request, &backend.buffers)
        );
    }
}
