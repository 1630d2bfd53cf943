//! A shared memory mapping: requests are memory copies, the kernel does I/O on page faults. One request at a time; depth comes from threads.
//! Pages are faulted in by madvise(MADV_POPULATE_READ/WRITE, Linux 5.14), which turns an I/O error into an errno where a plain access would
//! kill the process with SIGBUS.
#![allow(unsafe_code)]

use super::{Backend, Op, Patience, Request, advise_dontneed, outcome, sync::sync};
use crate::buffers::{ALIGNMENT_BYTES, Buffers};
use crate::pattern::Extent;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;

/// A mapping of the first `length` bytes of a file or device.
#[derive(Debug)]
pub struct MmapBackend {
    fd: OwnedFd,
    base: NonNull<u8>,
    length: usize,
    buffers: Buffers,
    done: Option<(u32, i32)>,
}

// SAFETY: the mapping belongs to this value alone; it is moved to the worker thread that uses it.
unsafe impl Send for MmapBackend {}

/// Whether the mapping may be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// Reads only.
    Read,
    /// Reads and writes.
    ReadWrite,
}

/// In which order the mapping will be touched. Without a word the kernel reads a whole read-ahead window (8 MiB on some virtual disks) around each page
/// that is missing, and random requests would move a thousand times what was asked for (do_sync_mmap_readahead in mm/filemap.c). fio's mmap engine says the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Forwards.
    Forwards,
    /// Anywhere.
    Anywhere,
}

impl MmapBackend {
    /// Maps the first `length` bytes.
    pub fn new(fd: OwnedFd, buffers: Buffers, length: u64, protection: Protection, order: Order) -> io::Result<Self> {
        let prot = match protection {
            Protection::Read => libc::PROT_READ,
            Protection::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
        };
        let length = usize::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?;
        // SAFETY: a new shared mapping at an address of the kernel's choice; no existing memory is affected.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), length, prot, libc::MAP_SHARED, fd.as_raw_fd(), 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = Self { fd, base, length, buffers, done: None };
        let advice = match order {
            Order::Forwards => libc::MADV_SEQUENTIAL,
            Order::Anywhere => libc::MADV_RANDOM,
        };
        // SAFETY: the range is the mapping just made; the advice changes no content.
        match unsafe { libc::madvise(mapping.base.as_ptr().cast(), length, advice) } {
            0 => Ok(mapping),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn perform(&mut self, request: &Request) -> i32 {
        if request.offset + u64::from(request.len) > self.length as u64 {
            return 0;
        }
        let (offset, len) = (request.offset as usize, request.len as usize);
        let page = offset / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
        // SAFETY: offset + len was checked against the mapping's length.
        let (mapped, start) = unsafe { (self.base.as_ptr().add(offset), self.base.as_ptr().add(page)) };
        let span = (offset + len).next_multiple_of(ALIGNMENT_BYTES).min(self.length.next_multiple_of(ALIGNMENT_BYTES)) - page;
        // SAFETY: the slot is at least skip + len bytes long.
        let buffer = unsafe { self.buffers.slot(request.buffer as usize).add(request.skip as usize) };
        let populate = |advice| {
            // SAFETY: the range lies inside the mapping; populating changes no content.
            outcome(unsafe { libc::madvise(start.cast(), span, advice) } as isize)
        };
        match request.op {
            Op::Read => match populate(libc::MADV_POPULATE_READ) {
                0 => {
                    // SAFETY: both ranges are valid for len bytes, were just faulted in, and do not overlap.
                    unsafe { std::ptr::copy_nonoverlapping(mapped, buffer, len) };
                    len as i32
                }
                error => io_error(error),
            },
            Op::Write => match populate(libc::MADV_POPULATE_WRITE) {
                0 => {
                    // SAFETY: as above; the mapping is writable, else populating for writing had failed.
                    unsafe { std::ptr::copy_nonoverlapping(buffer, mapped, len) };
                    len as i32
                }
                error => io_error(error),
            },
            Op::Sync(call) => sync(self.fd.as_raw_fd(), call),
            // SAFETY: the range lies inside the mapping.
            Op::WriteBack => outcome(unsafe { libc::msync(start.cast(), span, libc::MS_SYNC) } as isize),
        }
    }
}

/// MADV_POPULATE reports EFAULT or EHWPOISON where an access would raise SIGBUS (madvise(2)); that is an I/O error.
fn io_error(result: i32) -> i32 {
    if result == -libc::EFAULT || result == -libc::EHWPOISON { -libc::EIO } else { result }
}

impl Backend for MmapBackend {
    fn enqueue(&mut self, source: &mut impl FnMut(&mut Buffers) -> Option<Request>) -> io::Result<()> {
        if self.done.is_none()
            && let Some(request) = source(&mut self.buffers)
        {
            self.done = Some((request.slot, self.perform(&request)));
        }
        Ok(())
    }

    fn wait(&mut self, _patience: Patience) -> io::Result<()> {
        Ok(())
    }

    fn reap(&mut self, sink: &mut impl FnMut(u32, i32)) {
        if let Some((slot, result)) = self.done.take() {
            sink(slot, result);
        }
    }

    fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    fn drop_cache(&mut self, piece: Option<Extent>) {
        // SAFETY: the whole mapping; dropping clean pages of a shared file mapping loses nothing, dirty ones stay in the page cache.
        unsafe { libc::madvise(self.base.as_ptr().cast(), self.length, libc::MADV_DONTNEED) };
        advise_dontneed(&self.fd, piece);
    }
}

impl Drop for MmapBackend {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new` with this length; nobody else holds pointers into it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.length) };
    }
}
