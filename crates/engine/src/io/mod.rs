//! Brings requests to the kernel: the types of a request, the backends that carry it, buffers and
//! clocks. Every backend has the same three operations on batches: enqueue, wait, reap. All other
//! folders use this one.
#![allow(unsafe_code)]

pub(crate) mod aio;
pub(crate) mod any_backend;
mod batching;
pub(crate) mod buffers;
pub mod clock;
pub(crate) mod files;
pub(crate) mod inherited;
pub(crate) mod interruptions;
pub(crate) mod mmap;
pub(crate) mod null;
pub(crate) mod residency;
mod ring;
pub(crate) mod sync;
pub(crate) mod uring;
pub(crate) mod wall;

pub(crate) use batching::SubmitPolicy;
use buffers::Buffers;
use diskproof_model::errno;
use diskproof_model::plan::{Access, RangeSync, SyncCall};
use diskproof_model::request_log::{LoggedCall, LoggedRequest};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, RawFd};

/// A contiguous part of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// Offset of the first byte in the target.
    pub start: u64,
    /// Length in bytes.
    pub length: u64,
}

impl Extent {
    /// `length` bytes from `start` on.
    pub fn new(start: u64, length: u64) -> Self {
        Self { start, length }
    }

    /// The first byte behind it.
    pub fn end(self) -> u64 {
        self.start + self.length
    }

    /// The part of the worker with number `worker` of `workers`, in whole blocks: workers divide an
    /// ordered pattern and do not repeat each other. Random patterns use the whole extent.
    pub fn share(self, access: &Access, worker: u64, workers: u64, block_bytes: u64) -> Self {
        if matches!(access, Access::Random { .. } | Access::Zoned { .. }) || workers <= 1 {
            return self;
        }
        let blocks = self.length / block_bytes;
        let (first, end) = (blocks * worker / workers, blocks * (worker + 1) / workers);
        Self {
            start: self.start + first * block_bytes,
            length: (end - first) * block_bytes,
        }
    }
}

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Reads into the buffer.
    Read,
    /// Writes from the buffer.
    Write,
    /// Makes all earlier writes durable.
    Sync(SyncCall),
    /// Changes a block without data of ours. It completes with 0, not with its bytes.
    Call(BlockCall),
    /// Writes the bytes of the request back to the device, without a flush of its cache:
    /// sync_file_range(2). Without bytes, all from its offset on. Buffered writes end with it.
    SyncRange(RangeSync),
}

impl Op {
    /// True of one that completes with the number of bytes that it moved; others complete with 0.
    pub(crate) const fn moves_data(self) -> bool {
        match self {
            Self::Read | Self::Write => true,
            Self::Sync(_) | Self::Call(_) | Self::SyncRange(_) => false,
        }
    }
}

/// A request to the kernel to change a block. A new call is a variant here; then the compiler names
/// each place that must know whether it can be tried without harm, and what refuses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockCall {
    /// Drops the content of a device's block.
    Discard,
    /// Drops the content of a file's block, and leaves the size of the file as it is.
    PunchHole,
}

/// The system call behind a [`BlockCall`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SystemCall {
    /// ioctl(2) of a block device, which takes a range.
    Ioctl {
        code: libc::Ioctl,
        /// The operation as a command of io_uring.
        uring_command: u64,
    },
    /// fallocate(2) of a file in this mode.
    Fallocate(i32),
}

impl BlockCall {
    /// The system call that makes it.
    pub(crate) const fn system_call(self) -> SystemCall {
        match self {
            Self::Discard => SystemCall::Ioctl {
                // BLKDISCARD of linux/fs.h, `_IO(0x12, 119)`.
                code: 0x1277,
                // BLOCK_URING_CMD_DISCARD of linux/blkdev.h, `_IO(0x12, 0)`: since Linux 6.12.
                uring_command: 0x1200,
            },
            Self::PunchHole => {
                SystemCall::Fallocate(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
            }
        }
    }
}

/// One request. The buffer's index is also the index of its registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The completion carries it back to the worker.
    pub slot: u32,
    /// Index in the backend's [`Buffers`].
    pub buffer: u32,
    /// The operation.
    pub op: Op,
    /// Offset in the target of the first byte to move, behind those of [`Self::skip`].
    pub offset: u64,
    /// Bytes to move, without those of [`Self::skip`].
    pub len: u32,
    /// Bytes at the start of the buffer that an earlier, short transfer has moved.
    pub skip: u32,
}

impl Request {
    /// A request that uses the buffer of its slot from the start.
    #[inline(always)]
    pub(crate) fn new(slot: u32, op: Op, offset: u64, len: u32) -> Self {
        Self {
            slot,
            buffer: slot,
            op,
            offset,
            len,
            skip: 0,
        }
    }
}

impl Request {
    /// The request as a log keeps it, sent at this time. Calls without a place have offset and
    /// length 0.
    pub(crate) fn logged(&self, sent_ns: u64) -> LoggedRequest {
        let call = match self.op {
            Op::Read => LoggedCall::Read,
            Op::Write => LoggedCall::Write,
            Op::Call(BlockCall::Discard | BlockCall::PunchHole) => LoggedCall::Trim,
            Op::Sync(SyncCall::Fsync) => LoggedCall::Fsync,
            Op::Sync(SyncCall::Fdatasync) => LoggedCall::Fdatasync,
            Op::SyncRange(_) => LoggedCall::SyncRange,
        };
        let (offset, len) = match call {
            LoggedCall::Read | LoggedCall::Write | LoggedCall::Trim => (self.offset, self.len),
            LoggedCall::Fsync | LoggedCall::Fdatasync | LoggedCall::SyncRange => (0, 0),
        };
        LoggedRequest {
            sent_ns,
            offset,
            len,
            call,
        }
    }
}

/// The time for which a completion is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitMode {
    /// Until there is one, at most [`WAIT_MAX_NS`].
    Completion,
    /// Until there is one, at most this many nanoseconds.
    AtMost(u64),
    /// Not at all.
    Poll,
}

/// The longest wait. A worker then checks its stop flag, so that a stalled device does not delay
/// the end of a run.
pub(crate) const WAIT_MAX_NS: u64 = 200_000_000;

/// Gives a backend its requests; `None` ends a batch. Writes put their data into the buffers.
pub trait RequestSource: FnMut(&mut Buffers) -> Option<Request> {}

impl<S: FnMut(&mut Buffers) -> Option<Request>> RequestSource for S {}

/// An I/O engine on a target.
pub trait Backend {
    /// Takes requests from `source` until that returns `None`, and submits them now or at the next
    /// [`Backend::wait`].
    fn enqueue(&mut self, source: &mut impl RequestSource) -> io::Result<()>;

    /// Submits what was taken and waits for completions: nothing where every request has ended
    /// before.
    #[inline(always)]
    fn wait(&mut self, _patience: WaitMode) -> io::Result<()> {
        Ok(())
    }

    /// Passes to `sink` the completions that were there at the end of the last wait: slot, and
    /// bytes or a negative errno. Later ones belong to the next wait, because the worker reads the
    /// clock in between.
    fn reap(&mut self, sink: &mut impl FnMut(u32, i32));

    /// The memory that requests go through.
    fn buffers(&self) -> &Buffers;

    /// Names of the active features, for the record.
    fn features(&self) -> Vec<String> {
        Vec::new()
    }

    /// Share of the waits that found a completion at once. Nearly all do where the kernel carries
    /// out requests one by one during submission. `None` where it is unknown.
    fn done_before_wait(&self) -> Option<f64> {
        None
    }

    /// True where a request has ended when [`Backend::enqueue`] returns. Its end is then taken at
    /// once, not after the code between that and the next wait.
    fn ends_in_enqueue(&self) -> bool {
        false
    }

    /// Drops a part of the target, or all of it, from the page cache, for buffered runs. A mapping
    /// unmaps it first.
    fn drop_cache(&mut self, _extent: Option<Extent>) {}
}

/// A page of the page cache. The kernel keeps those that lie only partly inside the range.
const PAGE_BYTES: u64 = 4096;

/// Asks the kernel to drop the clean pages of a part of a file, or of all of it. A failure does not
/// matter.
pub(super) fn advise_dontneed(fd: impl AsFd, extent: Option<Extent>) {
    let start = extent.map_or(0, |extent| extent.start / PAGE_BYTES * PAGE_BYTES);
    let length = extent.and_then(|extent| NonZeroU64::new(extent.end() - start));
    let _ = rustix::fs::fadvise(fd, start, length, rustix::fs::Advice::DontNeed);
}

/// The errno of the last system call.
fn last_errno() -> i32 {
    io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EIO)
}

/// The result of a system call as a completion carries it.
fn completion_result(returned: isize) -> i32 {
    if returned < 0 {
        -last_errno()
    } else {
        returned.min(i32::MAX as isize) as i32
    }
}

/// Changes a range; 0 or a negative errno.
pub(crate) fn call_block(fd: RawFd, call: BlockCall, offset: u64, len: u64) -> i32 {
    let returned = match call.system_call() {
        SystemCall::Ioctl { code, .. } => {
            let range = [offset, len];
            // SAFETY: the kernel reads two numbers, which live until the call returns.
            unsafe { libc::ioctl(fd, code, range.as_ptr()) }
        }
        // SAFETY: takes a file descriptor and numbers.
        SystemCall::Fallocate(mode) => unsafe {
            libc::fallocate(fd, mode, offset as i64, len as i64)
        },
    };
    completion_result(returned as isize)
}

/// Takes the place of an errno where a read found the end of the file inside the span. No errno is
/// negative.
pub(crate) const END_OF_FILE: i32 = -1;

/// The name of an errno (`EIO` for 5), or that of [`END_OF_FILE`].
pub(crate) fn errno_name(errno: i32) -> String {
    match errno {
        END_OF_FILE => errno::END_OF_FILE.to_owned(),
        errno => errno::name(errno),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errno_names_read_back_as_their_numbers() {
        // 133, EHWPOISON, is the last one of Linux.
        for errno in 1..=133 {
            let name = errno_name(errno);
            assert_eq!(errno::number(&name), Some(errno as u32), "{name}");
        }
        let end = errno::number(&errno_name(END_OF_FILE));
        assert_eq!(end, Some(libc::EIO as u32));
    }
}
