//! Carries out requests as copies from and to a shared memory mapping; the kernel does the I/O on
//! page faults. One request at a time; depth comes from threads.
//!
//! madvise(MADV_POPULATE_READ/WRITE, Linux 5.14) faults the pages in and turns an I/O error into an
//! errno, where a plain access would raise SIGBUS. A page that vanishes before the copy (another
//! process truncated the file, or the disk failed) is an error, too: SIGBUS would end the process
//! and lose everything measured.
#![allow(unsafe_code)]

use super::buffers::{ALIGNMENT_BYTES, Buffers};
use super::files::{FilePlace, TargetFiles};
use super::sync::sync;
use super::{Backend, Extent, Op, Request, RequestSource, advise_dontneed};
use crate::lock::lock;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap, msync, munmap};
use std::ffi::{c_int, c_void};
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};
use std::sync::{Mutex, OnceLock};

/// Mappings of the files of a target.
#[derive(Debug)]
pub(crate) struct MmapBackend {
    files: TargetFiles,
    /// In the order of the files.
    mappings: Vec<Mapping>,
    buffers: Buffers,
    /// Slot and result of the request that the next reap takes.
    done: Option<(u32, i32)>,
}

/// A mapping of the first `length` bytes of a file or device.
#[derive(Debug)]
struct Mapping {
    base: NonNull<u8>,
    length: usize,
    /// The largest byte at which a request may end: `length`, or 0 after a failed repair.
    reach: usize,
    protection: ProtFlags,
    /// The advice to the kernel on the order of the accesses. Without advice the kernel reads a
    /// whole read-ahead window (8 MiB on some virtual disks) around each missing page, and random
    /// requests would move a thousand times the requested bytes (do_sync_mmap_readahead in
    /// mm/filemap.c). fio's mmap engine gives the same advice.
    advice: Advice,
}

impl MmapBackend {
    /// Maps the first `length` bytes of the target.
    pub(crate) fn new(
        files: impl Into<TargetFiles>,
        buffers: Buffers,
        length: u64,
        protection: ProtFlags,
        advice: Advice,
    ) -> io::Result<Self> {
        catch_faults()?;
        let files = files.into();
        let mut mappings = Vec::new();
        for part in files.parts(Some(Extent::new(0, length))) {
            let part_length = part.extent.map_or(length, |extent| extent.end());
            mappings.push(Mapping::new(part.fd, part_length, protection, advice)?);
        }
        Ok(Self {
            files,
            mappings,
            buffers,
            done: None,
        })
    }

    fn perform(&mut self, request: &Request) -> i32 {
        if let Op::Sync(call) = request.op {
            return self.files.sync_written(|fd| sync(fd.as_raw_fd(), call));
        }
        let Some(mapping) = self.mappings.get_mut(self.files.index(request.offset)) else {
            return 0;
        };
        let place = self.files.place(request.offset);
        let len = self
            .files
            .bytes_in_file(request.offset, request.len as usize);
        let result = mapping.perform(request, &place, len, &self.buffers);
        if request.op == Op::Write {
            self.files.mark_written(request.offset);
        }
        result
    }
}

impl Mapping {
    fn new(
        fd: BorrowedFd<'_>,
        length: u64,
        protection: ProtFlags,
        advice: Advice,
    ) -> io::Result<Self> {
        let length = usize::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?;
        // SAFETY: a new shared mapping at an address of the kernel's choice; no existing memory is
        // affected.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                length,
                protection,
                MapFlags::SHARED,
                fd,
                0,
            )?
        };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = Self {
            base,
            length,
            reach: length,
            protection,
            advice,
        };
        mapping.advise(0, length)?;
        Ok(mapping)
    }

    fn advise(&self, start: usize, length: usize) -> rustix::io::Result<()> {
        // SAFETY: the range lies in the mapping; the advice changes no content.
        unsafe { madvise(self.base.as_ptr().add(start).cast(), length, self.advice) }
    }

    /// Maps a part of the file again, where pages were missing.
    fn map_again(&mut self, fd: BorrowedFd<'_>, start: usize, length: usize) {
        let (prot, flags) = (self.protection, MapFlags::SHARED | MapFlags::FIXED);
        // SAFETY: the range lies in the mapping, which is this value's alone and contains only the
        // file.
        let mapped = unsafe {
            let address = self.base.as_ptr().add(start).cast();
            mmap(address, length, prot, flags, fd, start as u64)
        };
        if mapped.is_err() || self.advise(start, length).is_err() {
            // No file is mapped there now: every later request finds the end of the file.
            self.reach = 0;
        }
    }

    /// Carries out `len` bytes of a request that begin at a place in the file. Returns the bytes, 0
    /// behind the end of the mapping, or a negative errno.
    fn perform(
        &mut self,
        request: &Request,
        place: &FilePlace<'_>,
        len: usize,
        buffers: &Buffers,
    ) -> i32 {
        if place.offset + len as u64 > self.reach as u64 {
            return 0;
        }
        let offset = place.offset as usize;
        let page = offset / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
        // SAFETY: offset + len was checked against the mapping's length.
        let (mapped, start) =
            unsafe { (self.base.as_ptr().add(offset), self.base.as_ptr().add(page)) };
        let span = (offset + len)
            .next_multiple_of(ALIGNMENT_BYTES)
            .min(self.length.next_multiple_of(ALIGNMENT_BYTES))
            - page;
        // SAFETY: the slot is at least skip + len bytes long.
        let buffer = unsafe {
            buffers
                .slot(request.buffer as usize)
                .add(request.skip as usize)
        };
        let (from, to, populate) = match request.op {
            Op::Read => (mapped, buffer, Advice::LinuxPopulateRead),
            Op::Write => (buffer, mapped, Advice::LinuxPopulateWrite),
            // The engine is not selected for calls; syncs concern files.
            Op::Call(_) | Op::Sync(_) => return -libc::EOPNOTSUPP,
            Op::SyncRange(_) => {
                // SAFETY: the range lies inside the mapping.
                let synced = unsafe { msync(start.cast(), span, MsyncFlags::SYNC) };
                return synced.map_or_else(|errno| -errno.raw_os_error(), |()| 0);
            }
        };
        if self.advice == Advice::Random {
            // Populating reads within a plug of the block layer: the disk gets the request from a
            // kernel thread, which on a busy machine comes late (do_madvise in mm/madvise.c). This
            // asks the disk first, and does not wait. Ordered accesses have readahead instead.
            // SAFETY: as below. Without it the request is only slower.
            let _ = unsafe { madvise(start.cast(), span, Advice::WillNeed) };
        }
        // SAFETY: the range lies inside the mapping; populating changes no content.
        if let Err(errno) = unsafe { madvise(start.cast(), span, populate) } {
            return io_error(errno);
        }
        let pages = start as usize..start as usize + span;
        // SAFETY: both ranges are valid for len bytes and do not overlap; the pages of the mapping
        // are this thread's own. A mapping that is not writable fails when it is populated.
        if unsafe { copy(from, to, len, pages) } {
            return len as i32;
        }
        self.map_again(place.fd, page, span);
        -libc::EIO
    }
}

/// MADV_POPULATE reports EFAULT or EHWPOISON where an access would raise SIGBUS (madvise(2)); that
/// is an I/O error.
fn io_error(errno: Errno) -> i32 {
    match errno {
        Errno::FAULT | Errno::HWPOISON => -libc::EIO,
        errno => -errno.raw_os_error(),
    }
}

impl Backend for MmapBackend {
    fn enqueue(&mut self, source: &mut impl RequestSource) -> io::Result<()> {
        if self.done.is_none()
            && let Some(request) = source(&mut self.buffers)
        {
            self.done = Some((request.slot, self.perform(&request)));
        }
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

    fn drop_cache(&mut self, extent: Option<Extent>) {
        for mapping in &self.mappings {
            let base = mapping.base.as_ptr().cast();
            // SAFETY: the whole mapping; dropping clean pages of a shared file mapping loses
            // nothing, dirty ones stay in the page cache.
            let _ = unsafe { madvise(base, mapping.length, Advice::LinuxDontNeed) };
        }
        for part in self.files.parts(extent) {
            advise_dontneed(part.fd, part.extent);
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new` with this length; no other code holds pointers into
        // it.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
    }
}

/// The unit of repair inside a mapping. Smaller than any page of the page cache except those of
/// hugetlbfs, where the kernel refuses the repair.
const PAGE_BYTES: usize = 4096;

thread_local! {
    // Constant and without a destructor, so that a signal handler may use them (no allocation, no
    // registration). Atomic, because the handler interrupts the thread's own accesses.
    /// Start of the mapped side of this thread's copy.
    static GUARDED_FROM: AtomicUsize = const { AtomicUsize::new(0) };
    /// End of the mapped side.
    static GUARDED_TO: AtomicUsize = const { AtomicUsize::new(0) };
    /// Set by the handler when a page was missing.
    static FAULTED: AtomicBool = const { AtomicBool::new(false) };
}

/// The earlier action for SIGBUS.
static EARLIER_ACTION: OnceLock<libc::sigaction> = OnceLock::new();

/// Installs a handler for SIGBUS, once for the process. Faults outside of [`copy`] go to the
/// earlier action.
fn catch_faults() -> io::Result<()> {
    /// Other threads wait until the handler is installed, before they copy.
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _installing = lock(&INSTALLING);
    if EARLIER_ACTION.get().is_some() {
        return Ok(());
    }
    // SAFETY: sigaction is plain data, for which all zeros is valid: no flags, an empty mask.
    let (mut ours, mut earlier): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
    ours.sa_sigaction = on_fault as *const () as usize;
    // The alternate stack serves the standard library's handler, which receives stack overflows.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: a null action asks only; `earlier` is live.
    if unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut earlier) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if EARLIER_ACTION.set(earlier).is_ok() {
        // SAFETY: the handler lives as long as the program, and does only what a signal handler may
        // (signal-safety(7)).
        if unsafe { libc::sigaction(libc::SIGBUS, &raw const ours, std::ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Maps a private page of zeros where a page is missing during one of our copies, so that the copy
/// continues.
extern "C" fn on_fault(_signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: the kernel hands over a whole siginfo, which for SIGBUS holds an address.
    let address = unsafe { (*info).si_addr() } as usize;
    let [start, end] =
        [&GUARDED_FROM, &GUARDED_TO].map(|edge| edge.with(|edge| edge.load(Ordering::Relaxed)));
    if (start..end).contains(&address) {
        let page = (address / PAGE_BYTES * PAGE_BYTES) as *mut c_void;
        let (prot, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
        );
        // SAFETY: the page lies in the mapping that this very thread copies from or to, and which
        // is its own.
        if unsafe { libc::mmap(page, PAGE_BYTES, prot, flags, -1, 0) } != libc::MAP_FAILED {
            return FAULTED.with(|faulted| faulted.store(true, Ordering::Relaxed));
        }
    }
    if let Some(earlier) = EARLIER_ACTION.get() {
        // SAFETY: the action is one that was in force; the instruction that faulted is made again,
        // and finds it.
        unsafe { libc::sigaction(libc::SIGBUS, earlier, std::ptr::null_mut()) };
    }
}

/// Copies `len` bytes, one side of which, `mapped`, lies in a mapping of a file. Returns false if a
/// page of it was missing: parts of the range then hold private zeros, and the file must be mapped
/// there again.
///
/// # Safety
/// Both ranges are valid for `len` bytes (of the mapped one, the pages may be missing) and do not
/// overlap, one of them lies in `mapped`, whose pages belong to this thread alone, and
/// [`catch_faults`] was called.
unsafe fn copy(from: *const u8, to: *mut u8, len: usize, mapped: Range<usize>) -> bool {
    FAULTED.with(|faulted| faulted.store(false, Ordering::Relaxed));
    guard(mapped);
    // SAFETY: as promised by the caller.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
    guard(0..0);
    !FAULTED.with(|faulted| faulted.load(Ordering::Relaxed))
}

/// Tells the handler which range is copied, and keeps the compiler from moving the copy across this
/// point.
fn guard(mapped: Range<usize>) {
    compiler_fence(Ordering::SeqCst);
    GUARDED_FROM.with(|from| from.store(mapped.start, Ordering::Relaxed));
    GUARDED_TO.with(|to| to.store(mapped.end, Ordering::Relaxed));
    compiler_fence(Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    const PAGE: u64 = 4096;

    #[test]
    fn mmap_page_that_vanishes_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[7; 3 * PAGE as usize], 0).unwrap();
        let fd = file.as_fd().try_clone_to_owned().unwrap();
        let buffers = Buffers::new(1, 2 * PAGE as usize).unwrap();
        let both = ProtFlags::READ | ProtFlags::WRITE;
        let mut backend = MmapBackend::new(fd, buffers, 3 * PAGE, both, Advice::Random).unwrap();
        let request = |op, page: u64, pages: u64| Request {
            slot: 0,
            buffer: 0,
            op,
            offset: page * PAGE,
            len: (pages * PAGE) as u32,
            skip: 0,
        };
        for op in [Op::Read, Op::Write] {
            assert_eq!(backend.perform(&request(op, 0, 2)), 2 * PAGE as i32);
            // As if another process truncated the file right after the pages were populated.
            file.set_len(PAGE).unwrap();
            let (base, buffer) = (backend.mappings[0].base.as_ptr(), backend.buffers.slot(0));
            let (from, to) = if op == Op::Read {
                (base, buffer)
            } else {
                (buffer, base)
            };
            let mapped = base as usize..base as usize + 2 * PAGE as usize;
            // SAFETY: both are two pages long, the mapping is this test's alone, and a backend was
            // made.
            let copied = unsafe { copy(from, to, 2 * PAGE as usize, mapped) };
            assert!(!copied, "{op:?}");
            backend.mappings[0].map_again(file.as_fd(), 0, 2 * PAGE as usize);
            assert_eq!(backend.perform(&request(op, 0, 1)), PAGE as i32);
            assert_eq!(backend.perform(&request(op, 1, 1)), -libc::EIO, "{op:?}");
            // The file is mapped there again, not the zeros that helped the copy.
            file.write_all_at(&[9; 3 * PAGE as usize], 0).unwrap();
            assert_eq!(backend.perform(&request(Op::Read, 1, 2)), 2 * PAGE as i32);
            let mut bytes = backend.buffers.bytes(0, 2 * PAGE as usize).iter();
            assert!(bytes.all(|byte| *byte == 9), "{op:?}");
        }
    }
}
