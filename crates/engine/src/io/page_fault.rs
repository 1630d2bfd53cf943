//! Copies from and to a mapped file that return an error where pages of the file are gone: another
//! process truncated it, or the disk failed. The kernel raises SIGBUS then, which would end the
//! process and lose everything measured. Knows no requests.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::io;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};

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
    /// Whether a page was missing.
    static FAULTED: AtomicBool = const { AtomicBool::new(false) };
}

/// The earlier action for SIGBUS.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// A page of a mapped file is missing. Parts of the range now hold private zeros: map the file
/// there again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageFault;

/// Installs a handler for SIGBUS, once for the process. Faults outside of [`copy`] go to the
/// earlier action.
pub(crate) fn catch_faults() -> io::Result<()> {
    if BEFORE.get().is_some() {
        return Ok(());
    }
    // SAFETY: sigaction is plain data, for which all zeros is valid: no flags, an empty mask.
    let (mut ours, mut before): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
    ours.sa_sigaction = on_fault as *const () as usize;
    // The alternate stack serves the standard library's handler, which receives stack overflows.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: a null action asks only; `before` is live.
    if unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut before) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if BEFORE.set(before).is_ok() {
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
    if let Some(before) = BEFORE.get() {
        // SAFETY: the action is one that was in force; the instruction that faulted is made again,
        // and finds it.
        unsafe { libc::sigaction(libc::SIGBUS, before, std::ptr::null_mut()) };
    }
}

/// Copies `len` bytes, one side of which, `mapped`, lies in a mapping of a file.
///
/// # Safety
/// Both ranges are valid for `len` bytes (of the mapped one, the pages may be missing) and do not
/// overlap, one of them lies in `mapped`, whose pages belong to this thread alone, and
/// [`catch_faults`] was called.
pub(crate) unsafe fn copy(
    from: *const u8,
    to: *mut u8,
    len: usize,
    mapped: Range<usize>,
) -> Result<(), PageFault> {
    FAULTED.with(|faulted| faulted.store(false, Ordering::Relaxed));
    guard(mapped);
    // SAFETY: as promised by the caller.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
    guard(0..0);
    if FAULTED.with(|faulted| faulted.load(Ordering::Relaxed)) {
        Err(PageFault)
    } else {
        Ok(())
    }
}

/// Tells the handler which range is copied, and keeps the compiler from moving the copy across this
/// point.
fn guard(mapped: Range<usize>) {
    compiler_fence(Ordering::SeqCst);
    GUARDED_FROM.with(|from| from.store(mapped.start, Ordering::Relaxed));
    GUARDED_TO.with(|to| to.store(mapped.end, Ordering::Relaxed));
    compiler_fence(Ordering::SeqCst);
}
