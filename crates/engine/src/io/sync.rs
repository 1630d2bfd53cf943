//! pread/pwrite: one request at a time, done before `enqueue` returns. Depth comes from more
//! threads.
#![allow(unsafe_code)]

use super::backend::{Backend, Op, RequestSource, WaitMode, advise_dontneed, completion_result};
use super::block_call::call_block;
use super::buffers::Buffers;
use super::extent::Extent;
use super::shared_sync::SharedSync;
use diskproof_model::plan::SyncCall;
use rustix::io::{ReadWriteFlags, pwritev2};
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

/// One blocking request at a time.
#[derive(Debug)]
pub struct SyncBackend {
    fd: OwnedFd,
    buffers: Buffers,
    done: Option<(u32, i32)>,
    /// Of each write, in pwritev2(2).
    pub(crate) write_flags: ReadWriteFlags,
    /// How writes become durable.
    pub(crate) sync_route: SyncRoute,
}

/// How a thread makes what it wrote durable.
#[derive(Debug)]
pub(crate) enum SyncRoute {
    /// By its own sync, through the description that it writes to.
    Own,
    /// By its own sync, through another description.
    Other(OwnedFd),
    /// By a sync that serves several threads.
    Shared(Arc<SharedSync>),
}

impl SyncBackend {
    /// On an open file.
    pub fn new(fd: OwnedFd, buffers: Buffers) -> Self {
        Self {
            fd,
            buffers,
            done: None,
            write_flags: ReadWriteFlags::empty(),
            sync_route: SyncRoute::Own,
        }
    }

    fn sync(&self, call: SyncCall) -> i32 {
        match &self.sync_route {
            SyncRoute::Own => sync(self.fd.as_raw_fd(), call),
            SyncRoute::Other(other) => sync(other.as_raw_fd(), call),
            SyncRoute::Shared(shared) => shared.sync(|| sync(self.fd.as_raw_fd(), call)),
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

/// Makes a range reach the device; 0 or a negative errno.
pub(crate) fn write_back(fd: RawFd, offset: u64, len: u32) -> i32 {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
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
        let fd = self.fd.as_raw_fd();
        // SAFETY: the buffer belongs to this backend, is at least skip + len long, and no other
        // code looks at it during the call.
        let bytes = unsafe {
            let at = self
                .buffers
                .slot(request.buffer as usize)
                .add(request.skip as usize);
            std::slice::from_raw_parts_mut(at, request.len as usize)
        };
        // rustix enters the kernel directly; glibc's pread is a cancellation point, which costs two
        // locked instructions in a threaded program.
        let result = match request.op {
            Op::Read => bytes_or_errno(rustix::io::pread(&self.fd, bytes, request.offset)),
            Op::Write if self.write_flags.is_empty() => {
                bytes_or_errno(rustix::io::pwrite(&self.fd, bytes, request.offset))
            }
            Op::Write => bytes_or_errno(pwritev2(
                &self.fd,
                &[IoSlice::new(bytes)],
                request.offset,
                self.write_flags,
            )),
            Op::Sync(call) => self.sync(call),
            Op::WriteBack => write_back(fd, request.offset, request.len),
            Op::Call(call) => call_block(fd, call, request.offset, u64::from(request.len)),
        };
        self.done = Some((request.slot, result));
        Ok(())
    }

    #[inline(always)]
    fn wait(&mut self, _patience: WaitMode) -> io::Result<()> {
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
        advise_dontneed(&self.fd, extent);
    }
}
