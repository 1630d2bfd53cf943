//! Carries out requests by pread and pwrite, one at a time, each before `enqueue` returns. Depth
//! comes from more threads, which may share their syncs.
#![allow(unsafe_code)]

use super::buffers::Buffers;
use super::files::TargetFiles;
use super::{Backend, Extent, Op, RequestSource, advise_dontneed, call_block, completion_result};
use crate::io::files::FilePlace;
use crate::lock::lock;
use diskproof_model::plan::{RangeSync, SyncCall};
use rustix::io::{ReadWriteFlags, pwritev2};
use std::io::{self, IoSlice};
use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// One blocking request at a time.
#[derive(Debug)]
pub struct SyncBackend {
    files: TargetFiles,
    buffers: Buffers,
    done: Option<(u32, i32)>,
    /// Flags of each write, in pwritev2(2).
    pub(crate) write_flags: ReadWriteFlags,
    /// The way in which writes become durable.
    pub(crate) sync_route: SyncRoute,
    /// The description that has the claim on a device. The kernel drops the pages of a trimmed
    /// block only through that one; through another, a trim of dirty pages fails (EBUSY).
    pub(crate) claim: Option<OwnedFd>,
}

/// The way in which a thread makes its writes durable.
#[derive(Debug)]
pub(crate) enum SyncRoute {
    /// By its own sync, through the description that it writes to.
    Own,
    /// By its own sync, through another description of each file.
    Other(Vec<OwnedFd>),
    /// By a sync that serves several threads.
    Shared(Arc<SharedSync>),
}

impl SyncBackend {
    /// On open files.
    pub(crate) fn new(files: impl Into<TargetFiles>, buffers: Buffers) -> Self {
        Self {
            files: files.into(),
            buffers,
            done: None,
            write_flags: ReadWriteFlags::empty(),
            sync_route: SyncRoute::Own,
            claim: None,
        }
    }

    fn sync(&mut self, call: SyncCall) -> i32 {
        let files = &mut self.files;
        match &self.sync_route {
            SyncRoute::Own => files.sync_written(|fd| sync(fd.as_raw_fd(), call)),
            SyncRoute::Other(others) => {
                files.sync_written_through(others, |fd| sync(fd.as_raw_fd(), call))
            }
            SyncRoute::Shared(shared) => {
                // It serves the writes of all threads, whose files only they know.
                shared.sync(|| files.sync_each(|fd| sync(fd.as_raw_fd(), call)))
            }
        }
    }
}

#[inline(always)]
fn bytes_or_errno(result: rustix::io::Result<usize>) -> i32 {
    result.map_or_else(|errno| -errno.raw_os_error(), |bytes| bytes as i32)
}

/// Makes writes durable; 0 or a negative errno.
pub(crate) fn sync(fd: RawFd, call: SyncCall) -> i32 {
    // SAFETY: both calls only take a file descriptor.
    completion_result(unsafe {
        match call {
            SyncCall::Fsync => libc::fsync(fd),
            SyncCall::Fdatasync => libc::fdatasync(fd),
        }
    } as isize)
}

/// Syncs all files, also those after one that fails. Returns 0, or the errno of the first failure.
pub(crate) fn sync_all(files: &[OwnedFd]) -> i32 {
    let mut first_errno = 0;
    for file in files {
        let result = sync(file.as_raw_fd(), SyncCall::Fdatasync);
        if first_errno == 0 {
            first_errno = -result;
        }
    }
    first_errno
}

/// The flags of sync_file_range(2).
pub(crate) fn range_flags(steps: RangeSync) -> u32 {
    let RangeSync {
        wait_before,
        write,
        wait_after,
    } = steps;
    let mut flags = 0;
    for (is_set, flag) in [
        (wait_before, libc::SYNC_FILE_RANGE_WAIT_BEFORE),
        (write, libc::SYNC_FILE_RANGE_WRITE),
        (wait_after, libc::SYNC_FILE_RANGE_WAIT_AFTER),
    ] {
        if is_set {
            flags |= flag;
        }
    }
    flags
}

/// Writes a range back; 0 or a negative errno.
pub(crate) fn sync_range(fd: RawFd, offset: u64, len: u32, steps: RangeSync) -> i32 {
    let flags = range_flags(steps);
    // SAFETY: takes a file descriptor and numbers.
    completion_result(
        unsafe { libc::sync_file_range(fd, offset as i64, i64::from(len), flags) } as isize,
    )
}

impl Backend for SyncBackend {
    #[inline(always)]
    fn enqueue(&mut self, source: &mut impl RequestSource) -> io::Result<()> {
        if self.done.is_some() {
            return Ok(());
        }
        let Some(request) = source(&mut self.buffers) else {
            return Ok(());
        };
        // SAFETY: the buffer belongs to this backend, is at least skip + len long, and no other
        // code looks at it during the call.
        let bytes = unsafe {
            let start = self
                .buffers
                .slot(request.buffer as usize)
                .add(request.skip as usize);
            let len = self
                .files
                .bytes_in_file(request.offset, request.len as usize);
            std::slice::from_raw_parts_mut(start, len)
        };
        // rustix enters the kernel directly; glibc's pread is a cancellation point, which costs two
        // locked instructions in a threaded program.
        let FilePlace { fd, offset } = self.files.place(request.offset);
        let result = match request.op {
            Op::Read => bytes_or_errno(rustix::io::pread(fd, bytes, offset)),
            Op::Write => {
                let written = if self.write_flags.is_empty() {
                    rustix::io::pwrite(fd, bytes, offset)
                } else {
                    pwritev2(fd, &[IoSlice::new(bytes)], offset, self.write_flags)
                };
                self.files.mark_written(request.offset);
                bytes_or_errno(written)
            }
            Op::Sync(call) => self.sync(call),
            Op::SyncRange(steps) => sync_range(fd.as_raw_fd(), offset, request.len, steps),
            Op::Call(call) => {
                let fd = match &self.claim {
                    Some(claim) => claim.as_raw_fd(),
                    None => fd.as_raw_fd(),
                };
                call_block(fd, call, offset, u64::from(request.len))
            }
        };
        self.done = Some((request.slot, result));
        Ok(())
    }

    #[inline(always)]
    fn reap(&mut self, sink: &mut impl FnMut(u32, i32)) {
        if let Some((slot, result)) = self.done.take() {
            sink(slot, result);
        }
    }

    fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    fn ends_in_enqueue(&self) -> bool {
        true
    }

    fn drop_cache(&mut self, extent: Option<Extent>) {
        for part in self.files.parts(extent) {
            advise_dontneed(part.fd, part.extent);
        }
    }
}

/// Group commit: one sync serves every thread whose write ended before the sync started. The first
/// thread that finds none under way makes it, the others wait; as the server processes of a
/// database do with its log.
#[derive(Debug, Default)]
pub(crate) struct SharedSync {
    state: Mutex<State>,
    ended: Condvar,
}

/// Writes count from 1, in the order in which their threads report them.
#[derive(Debug, Default)]
struct State {
    /// Writes that ended, which is also the number of the last one.
    written: u64,
    /// The last write that a sync has served.
    served: u64,
    is_syncing: bool,
    /// Failed syncs: the writes that each served, and its result.
    failures: Vec<(RangeInclusive<u64>, i32)>,
}

impl State {
    /// The result of the sync that served this write.
    fn sync_result(&self, write: u64) -> i32 {
        for (served, result) in &self.failures {
            if served.contains(&write) {
                return *result;
            }
        }
        0
    }
}

impl SharedSync {
    /// Returns once the caller's write, which has ended, is durable: by `sync`, which returns 0 or
    /// a negative errno, or by that of another thread.
    pub(crate) fn sync(&self, sync: impl FnOnce() -> i32) -> i32 {
        let mut state = lock(&self.state);
        state.written += 1;
        let write = state.written;
        while state.is_syncing && state.served < write {
            let waited = self.ended.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        if state.served >= write {
            return state.sync_result(write);
        }
        let serves = state.written;
        state.is_syncing = true;
        drop(state);
        let result = sync();
        let mut state = lock(&self.state);
        if result != 0 {
            let served = state.served + 1..=serves;
            state.failures.push((served, result));
        }
        (state.is_syncing, state.served) = (false, serves);
        self.ended.notify_all();
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;
    use std::time::Duration;

    /// The kernel refuses to sync it: EINVAL.
    fn null() -> OwnedFd {
        std::fs::File::open("/dev/null").unwrap().into()
    }

    /// The kernel refuses to sync a description of a path alone: EBADF.
    fn path() -> OwnedFd {
        rustix::fs::open("/", OFlags::PATH, Mode::empty()).unwrap()
    }

    #[test]
    fn first_sync_that_fails_gives_the_errno() {
        assert_eq!(sync_all(&[]), 0);
        assert_eq!(sync_all(&[null(), path()]), libc::EINVAL);
        assert_eq!(sync_all(&[path(), null()]), libc::EBADF);
    }

    /// Waits until `threads` writes have ended.
    fn await_written(shared: &SharedSync, threads: u64) {
        while shared.state.lock().unwrap().written < threads {
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn one_sync_serves_all_writes_that_ended_before_it() {
        let (shared, syncs) = (Arc::new(SharedSync::default()), Arc::new(AtomicU32::new(0)));
        let first = shared.sync(|| {
            // Seven more writes end while the first sync is under way: the next serves them all.
            let waiting: Vec<_> = (0..7)
                .map(|_| {
                    let (shared, syncs) = (Arc::clone(&shared), Arc::clone(&syncs));
                    thread::spawn(move || {
                        shared.sync(|| {
                            syncs.fetch_add(1, Ordering::Relaxed);
                            0
                        })
                    })
                })
                .collect();
            await_written(&shared, 8);
            assert_eq!(syncs.load(Ordering::Relaxed), 0, "one sync at a time");
            thread::spawn(move || waiting.into_iter().map(|t| t.join().unwrap()).max());
            0
        });
        assert_eq!(first, 0);
        while shared.state.lock().unwrap().served < 8 {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(syncs.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn failed_sync_fails_every_write_it_served_and_no_other() {
        let shared = SharedSync::default();
        assert_eq!(shared.sync(|| 0), 0);
        assert_eq!(shared.sync(|| -libc::EIO), -libc::EIO);
        assert_eq!(shared.sync(|| 0), 0);
        let state = shared.state.lock().unwrap();
        let results: Vec<i32> = (1..=3).map(|write| state.sync_result(write)).collect();
        assert_eq!(results, [0, -libc::EIO, 0]);
    }
}
