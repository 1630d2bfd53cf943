//! Sends requests by io_uring: a batch goes to the kernel in one call. Each slot has its own entry
//! in the ring's memory; only offset and length change while the slot repeats the same operation.
#![allow(unsafe_code)]

use super::batching::{BatchSize, SubmitPolicy};
use super::buffers::Buffers;
use super::files::TargetFiles;
use super::ring::{Ring, SubmissionEntry};
use super::sync::{range_flags, sync};
use super::{
    Backend, BlockCall, Extent, Op, Request, RequestSource, SystemCall, WAIT_MAX_NS, WaitMode,
    advise_dontneed,
};
use diskproof_model::measurement::HUGE_PAGES;
use diskproof_model::plan::{CachePolicy, SyncCall};
use rustix::io::Errno;
use rustix::io_uring::{IoringEnterFlags, IoringOp, IoringSetupFlags};
use rustix::thread::Timespec;
use std::io;
use std::os::fd::AsRawFd as _;

/// user_data of the timer that ends a long wait.
const WAKE_UP: u64 = u64::MAX;
/// IORING_FSYNC_DATASYNC of linux/io_uring.h.
const DATASYNC: u32 = 1;
/// IOSQE_FIXED_FILE of linux/io_uring.h: the file is named by its index among the registered ones.
const FIXED_FILE: u64 = 1;

/// An io_uring on the files of a target.
#[derive(Debug)]
pub struct UringBackend {
    // Order matters: the ring ends before the buffers are unmapped, which must not be while it has
    // anything in flight (see `drop`).
    ring: Ring,
    buffers: Buffers,
    writer: EntryWriter,
    /// Syncs of several files, which are blocking calls.
    completed_early: Vec<(u32, i32)>,
    /// The longest wait, which the kernel reads.
    timer: Box<Timespec>,
    /// True while the timer's entry is in flight.
    is_timer_armed: bool,
    batch: BatchSize,
    features: Vec<&'static str>,
}

/// The entry of a slot, except for offset and length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    Read,
    Write,
    /// An entry that is rebuilt for each request.
    Other,
}

/// Marks a branch as unlikely. Takes no argument: arguments would have to lie in memory on every
/// path to the call.
#[cold]
#[inline(never)]
fn cold_path() {}

/// Writes the entries of requests.
#[derive(Debug)]
struct EntryWriter {
    files: TargetFiles,
    /// True where the only file is registered.
    is_file_fixed: bool,
    /// True where the buffers are registered.
    are_buffers_fixed: bool,
    /// The entry of each slot, which only its next request changes.
    kinds: Box<[EntryKind]>,
}

impl EntryWriter {
    /// Puts a request into its slot's entry.
    #[inline(always)]
    fn write(&mut self, request: Request, buffers: &Buffers, entry: &mut SubmissionEntry) {
        let kind = match request.op {
            Op::Read if request.skip == 0 => EntryKind::Read,
            Op::Write if request.skip == 0 => EntryKind::Write,
            _ => EntryKind::Other,
        };
        if self.kinds[request.slot as usize] == kind && kind != EntryKind::Other {
            // Only entries of a single file are kept, so the target's offset is the file's. The
            // reads of a slot have one buffer, and so have its writes (crate::load::generator).
            debug_assert!(!self.files.are_several());
            (entry.off, entry.len) = (request.offset, request.len);
        } else {
            cold_path();
            // The file of an entry changes with its offset.
            self.kinds[request.slot as usize] = if self.files.are_several() {
                EntryKind::Other
            } else {
                kind
            };
            *entry = self.build(request, buffers);
        }
    }

    /// The whole entry of a request.
    #[inline(always)]
    fn build(&self, request: Request, buffers: &Buffers) -> SubmissionEntry {
        let place = self.files.place(request.offset);
        // A registered file is named by its index, 0, and a flag.
        let (fd, flags) = if self.is_file_fixed {
            (0, FIXED_FILE)
        } else {
            (place.fd.as_raw_fd() as u32, 0)
        };
        // SAFETY: inside the slot: skip is what an earlier transfer of at most len bytes has done.
        let addr = unsafe {
            buffers
                .slot(request.buffer as usize)
                .add(request.skip as usize)
        } as u64;
        let bytes = self
            .files
            .bytes_in_file(request.offset, request.len as usize);
        let (off, len, buf_index) = (place.offset, bytes as u32, u64::from(request.buffer));
        let empty = SubmissionEntry::default();
        let transfer = SubmissionEntry {
            off,
            addr,
            len,
            ..empty
        };
        let fixed = SubmissionEntry {
            buf_index,
            ..transfer
        };
        let (op, entry) = match request.op {
            Op::Read if self.are_buffers_fixed => (IoringOp::ReadFixed, fixed),
            Op::Read => (IoringOp::Read, transfer),
            Op::Write if self.are_buffers_fixed => (IoringOp::WriteFixed, fixed),
            Op::Write => (IoringOp::Write, transfer),
            Op::Sync(call) => {
                let op_flags = match call {
                    SyncCall::Fsync => 0,
                    SyncCall::Fdatasync => DATASYNC,
                };
                (IoringOp::Fsync, SubmissionEntry { op_flags, ..empty })
            }
            Op::Call(call) => call_entry(call, off, len),
            Op::SyncRange(steps) => {
                let op_flags = range_flags(steps);
                let entry = SubmissionEntry {
                    off,
                    len,
                    op_flags,
                    ..empty
                };
                (IoringOp::SyncFileRange, entry)
            }
        };
        let head = u64::from(op as u8) | flags << 8 | u64::from(fd) << 32;
        SubmissionEntry {
            head,
            user_data: u64::from(request.slot),
            ..entry
        }
    }
}

/// The entry of a call that changes a block, except for the head.
fn call_entry(call: BlockCall, off: u64, len: u32) -> (IoringOp, SubmissionEntry) {
    match call.system_call() {
        // blkdev_uring_cmd() of Linux's block/ioctl.c reads the range from both addresses.
        SystemCall::Ioctl { uring_command, .. } => (
            IoringOp::UringCmd,
            SubmissionEntry {
                off: uring_command,
                addr: off,
                addr3: u64::from(len),
                ..SubmissionEntry::default()
            },
        ),
        // The length of fallocate lies in the address, its mode in the length.
        SystemCall::Fallocate(mode) => (
            IoringOp::Fallocate,
            SubmissionEntry {
                off,
                addr: u64::from(len),
                len: mode as u32,
                ..SubmissionEntry::default()
            },
        ),
    }
}

/// The largest blocks whose buffers are registered. For registered memory the kernel passes single
/// pages to the device, for other memory contiguous runs. Where a device takes fewer segments per
/// request than a block has pages (254 on virtio, 127 on NVMe, against 256 for 1 MiB), every block
/// is split: a virtio disk read 1.9 instead of 2.4 GB/s, and fio with fixedbufs did the same. For
/// larger blocks the page lookup costs little.
const REGISTERED_BYTES_MAX: usize = 64 << 10;

/// The ring with the best flags that this kernel takes, and their names. The thread that makes it
/// must be the one that uses it.
fn build_ring(depth: u32) -> io::Result<(Ring, Vec<&'static str>)> {
    // One more entry for the timer. DEFER_TASKRUN needs 6.1, SINGLE_ISSUER 6.0, COOP_TASKRUN 5.19;
    // older kernels return EINVAL.
    let choices = [
        (
            Some("defer-taskrun"),
            IoringSetupFlags::SINGLE_ISSUER | IoringSetupFlags::DEFER_TASKRUN,
        ),
        (Some("coop-taskrun"), IoringSetupFlags::COOP_TASKRUN),
        (None, IoringSetupFlags::empty()),
    ];
    let mut last = io::Error::from_raw_os_error(libc::ENOSYS);
    for (feature, flags) in choices {
        match Ring::new(depth + 1, flags) {
            Ok(ring) => return Ok((ring, feature.into_iter().collect())),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

impl UringBackend {
    /// For up to `depth` requests in flight on these files. Registered buffers slow down buffered
    /// I/O (the kernel copies through a bio_vec iterator), so `cache` decides on them.
    pub(crate) fn new(
        files: impl Into<TargetFiles>,
        buffers: Buffers,
        depth: u32,
        cache: CachePolicy,
        submission: SubmitPolicy,
    ) -> io::Result<Self> {
        let (ring, mut features) = build_ring(depth)?;
        let files = files.into();
        let is_file_fixed =
            !files.are_several() && ring.register_file(files.first().as_raw_fd()).is_ok();
        if is_file_fixed {
            features.push("fixed-files");
        }
        let gains_by_registration =
            cache == CachePolicy::Direct && buffers.slot_bytes() <= REGISTERED_BYTES_MAX;
        // Registered memory counts against RLIMIT_MEMLOCK on some kernels: without the right, plain
        // buffers do. SAFETY: the buffers live as long as the ring (field order, and
        // `drop`) and are never remapped.
        let are_buffers_fixed =
            gains_by_registration && unsafe { ring.register_buffers(&buffers.iovecs()) }.is_ok();
        if are_buffers_fixed {
            features.push("fixed-buffers");
        }
        Ok(Self {
            ring,
            buffers,
            writer: EntryWriter {
                files,
                is_file_fixed,
                are_buffers_fixed,
                kinds: vec![EntryKind::Other; depth as usize].into_boxed_slice(),
            },
            completed_early: Vec::new(),
            timer: Box::new(Timespec {
                tv_sec: 0,
                tv_nsec: WAIT_MAX_NS as i64,
            }),
            is_timer_armed: false,
            batch: BatchSize::for_depth(depth, submission),
            features,
        })
    }

    /// True where this kernel's io_uring has commands (IORING_OP_URING_CMD, Linux 5.19).
    pub(crate) fn has_commands(&self) -> bool {
        self.ring.supports(IoringOp::UringCmd)
    }

    /// Submits what is queued, without waiting for completions.
    #[inline(always)]
    fn send(&mut self) -> io::Result<()> {
        let sent = self.ring.unsent();
        ignore_transient(self.ring.enter(0, IoringEnterFlags::empty()))?;
        self.batch.learn(sent, self.ring.ready());
        Ok(())
    }

    /// As [`Backend::enqueue`], on several files. A request of the ring syncs one of them.
    #[cold]
    fn enqueue_among_several(&mut self, source: &mut impl RequestSource) -> io::Result<()> {
        loop {
            while self.ring.unsent() < self.batch.size {
                let Some(request) = source(&mut self.buffers) else {
                    return Ok(());
                };
                if let Op::Sync(call) = request.op {
                    let files = &mut self.writer.files;
                    let result = files.sync_written(|fd| sync(fd.as_raw_fd(), call));
                    self.completed_early.push((request.slot, result));
                    continue;
                }
                if request.op == Op::Write {
                    self.writer.files.note_write(request.slot, request.offset);
                }
                let mut submissions = self.ring.submissions();
                let entry = submissions.entry(request.slot);
                self.writer.write(request, &self.buffers, entry);
                submissions.push(request.slot);
                submissions.end();
            }
            self.send()?;
            if self.ring.unsent() >= self.batch.size {
                // The kernel takes no more before completions are reaped.
                return Ok(());
            }
        }
    }

    /// Queues the timer that ends a wait after [`WAIT_MAX_NS`].
    fn arm_timer(&mut self) {
        let addr = (&raw const *self.timer) as u64;
        let head = u64::from(IoringOp::Timeout as u8);
        let index = self.writer.kinds.len() as u32;
        let mut submissions = self.ring.submissions();
        // The time lives on the heap as long as the ring; the kernel copies it at submission.
        *submissions.entry(index) = SubmissionEntry {
            head,
            addr,
            len: 1,
            user_data: WAKE_UP,
            ..SubmissionEntry::default()
        };
        submissions.push(index);
        submissions.end();
        self.is_timer_armed = true;
    }
}

/// Turns into a success what only means that the caller has to reap and return: the call was
/// interrupted or timed out, or the completion queue is full.
#[inline(always)]
fn ignore_transient(result: rustix::io::Result<()>) -> io::Result<()> {
    match result {
        Ok(()) | Err(Errno::INTR | Errno::TIME | Errno::BUSY | Errno::AGAIN) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

impl Drop for UringBackend {
    fn drop(&mut self) {
        if self.ring.in_flight() > u32::from(self.is_timer_armed) {
            // An error or a panic ended the worker. Closing a ring does not wait for requests in
            // flight (io_ring_exit_work() in Linux's io_uring/io_uring.c), nor for the threads that
            // copy into the buffers. They would overwrite whatever is mapped there next.
            return self.buffers.leak();
        }
        // The kernel releases the files and buffers of a closed ring tens of milliseconds later, in
        // a worker thread. Until then the filesystem is busy and a scratch file keeps its space.
        self.ring.unregister();
    }
}

impl Backend for UringBackend {
    #[inline(always)]
    fn enqueue(&mut self, source: &mut impl RequestSource) -> io::Result<()> {
        if !self.is_timer_armed {
            self.arm_timer();
        }
        if self.writer.files.are_several() {
            return self.enqueue_among_several(source);
        }
        loop {
            let room = self.batch.size.saturating_sub(self.ring.unsent());
            let mut submissions = self.ring.submissions();
            // No call inside the loop, and only locals, so that its state stays in registers.
            for _ in 0..room {
                let Some(request) = source(&mut self.buffers) else {
                    submissions.end();
                    return Ok(());
                };
                self.writer
                    .write(request, &self.buffers, submissions.entry(request.slot));
                // The ring has more entries than there are slots, and each slot is in flight at
                // most once.
                submissions.push(request.slot);
            }
            submissions.end();
            self.send()?;
            if self.ring.unsent() >= self.batch.size {
                // The kernel takes no more before completions are reaped.
                return Ok(());
            }
        }
    }

    #[inline(always)]
    fn wait(&mut self, patience: WaitMode) -> io::Result<()> {
        ignore_transient(match patience {
            _ if !self.completed_early.is_empty() => {
                self.ring.enter(0, IoringEnterFlags::GETEVENTS)
            }
            // Completions that are there need no call.
            WaitMode::Completion | WaitMode::AtMost(_)
                if self.ring.unsent() == 0 && self.ring.ready() > 0 =>
            {
                Ok(())
            }
            WaitMode::Completion => self.ring.enter(1, IoringEnterFlags::GETEVENTS),
            WaitMode::Poll => self.ring.enter(0, IoringEnterFlags::GETEVENTS),
            WaitMode::AtMost(ns) => self.ring.enter_within(1, ns),
        })?;
        self.ring.look();
        Ok(())
    }

    #[inline(always)]
    fn reap(&mut self, sink: &mut impl FnMut(u32, i32)) {
        let is_armed = &mut self.is_timer_armed;
        let files = &mut self.writer.files;
        self.ring.reap(|user_data, result| {
            if user_data == WAKE_UP {
                *is_armed = false
            } else {
                files.note_end(user_data as u32);
                sink(user_data as u32, result)
            }
        });
        for (slot, result) in self.completed_early.drain(..) {
            sink(slot, result);
        }
    }

    fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    fn features(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .features
            .iter()
            .map(|name| (*name).to_owned())
            .collect();
        if self.buffers.gains_by_huge_pages() {
            names.push(HUGE_PAGES.to_owned());
        }
        names
    }

    fn drop_cache(&mut self, extent: Option<Extent>) {
        for part in self.writer.files.parts(extent) {
            advise_dontneed(part.fd, part.extent);
        }
    }
}

#[cfg(test)]
mod tests;
