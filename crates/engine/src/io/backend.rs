//! How requests reach the kernel. Every backend has the same three verbs, made for batches: take
//! requests until there are no more, wait, hand back what is done. A backend knows no time, no
//! statistics and no pattern.

use super::buffers::Buffers;
use super::extent::Extent;
use diskproof_model::plan::SyncCall;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Reads into the buffer.
    Read,
    /// Writes from the buffer.
    Write,
    /// Makes all earlier writes durable.
    Sync(SyncCall),
    /// Makes the bytes of the request reach the device, without a flush of its cache:
    /// sync_file_range(2). Buffered writes end with it.
    WriteBack,
}

/// One request. The buffer's index is also the index of its registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Comes back with the completion.
    pub slot: u32,
    /// Which buffer.
    pub buffer: u32,
    /// What to do.
    pub op: Op,
    /// First byte in the target.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
    /// Bytes of the buffer that an earlier, short transfer has done already.
    pub skip: u32,
}

/// How long to wait for a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitMode {
    /// Until one is there; looks up at least every [`WAIT_MAX_NS`].
    Completion,
    /// Until one is there or this many nanoseconds have passed.
    AtMost(u64),
    /// Not at all.
    Poll,
}

/// A blocked worker looks up this often, so that a stalled device cannot hold up the end of a run.
pub const WAIT_MAX_NS: u64 = 200_000_000;

/// A way to the kernel.
pub trait Backend {
    /// Takes requests from `source` until it gives none, and starts them now or at the next
    /// [`Backend::wait`].
    fn enqueue(
        &mut self,
        source: &mut impl FnMut(&mut Buffers) -> Option<Request>,
    ) -> io::Result<()>;

    /// Starts what was taken and waits for completions.
    fn wait(&mut self, patience: WaitMode) -> io::Result<()>;

    /// Hands `sink` the completions that were there at the end of the last wait: slot, and bytes or
    /// a negative errno. Later ones belong to the next wait, because the worker reads the clock
    /// between the two.
    fn reap(&mut self, sink: &mut impl FnMut(u32, i32));

    /// The memory that requests go through.
    fn buffers(&self) -> &Buffers;

    /// Share of the waits that found something done already. Nearly all of them do where the kernel
    /// carries out requests one by one while they are submitted. `None` where that cannot be
    /// told.
    fn done_before_wait(&self) -> Option<f64> {
        None
    }

    /// Takes a piece of the target, or all of it, out of the page cache, for buffered runs: what is
    /// mapped is unmapped first.
    fn drop_cache(&mut self, _piece: Option<Extent>) {}
}

/// The kernel leaves pages at the edges alone that are not wholly inside.
const PAGE_BYTES: u64 = 4096;

/// Asks the kernel to drop the clean pages of a piece of a file, or of all of it. Advice cannot
/// fail in a way that matters.
pub(super) fn advise_dontneed(fd: &OwnedFd, piece: Option<Extent>) {
    let start = piece.map_or(0, |piece| piece.start / PAGE_BYTES * PAGE_BYTES);
    let length = piece.and_then(|piece| NonZeroU64::new(piece.start + piece.length - start));
    let _ = rustix::fs::fadvise(fd, start, length, rustix::fs::Advice::DontNeed);
}

/// The outcome of a system call as a completion carries it.
pub(super) fn completion_result(returned: isize) -> i32 {
    if returned < 0 {
        -io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EIO)
    } else {
        returned.min(i32::MAX as isize) as i32
    }
}
