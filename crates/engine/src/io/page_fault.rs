//! Copies out of and into a mapped file that end with an error where the file's pages are gone: cut
//! off by somebody else, or lost to the disk. The kernel tells that by SIGBUS, which would end the
//! process and with it everything that was measured. Knows nothing of requests.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::io;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};

/// What faults within a mapping are handled in; smaller than any page of the page cache but
/// hugetlbfs' own, where the kernel refuses the patch.
const PAGE_BYTES: usize = 4096;

thread_local! {
    // Constant and without a destructor: a signal handler may look at them (no allocation, no registration). Atomic, because it runs in the midst of the
    // thread's own accesses.
    /// The mapped side of the copy that this thread makes: from here.
    static GUARDED_FROM: AtomicUsize = const { AtomicUsize::new(0) };
    /// Up to here.
    static GUARDED_TO: AtomicUsize = const { AtomicUsize::new(0) };
    /// Whether a page of it was missing.
    static FAULTED: AtomicBool = const { AtomicBool::new(false) };
}

/// What SIGBUS meant before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// A page of a mapped file is not there. Parts of the range hold private zeros now: the file has to
/// be mapped there anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageFault;

/// Takes SIGBUS over, once for the process. Of other faults than those of [`copy`] it makes what
/// was made of them before.
pub fn catch_faults() -> io::Result<()> {
    if BEFORE.get().is_some() {
        return Ok(());
    }
    // SAFETY: sigaction is plain data, for which all zeros is valid: no flags, an empty mask.
    let (mut ours, mut before): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
    ours.sa_sigaction = on_fault as *const () as usize;
    // The stack of its own is where the standard library's handler runs, to which a stack overflow
    // goes on.
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

/// Puts a private page of zeros where one is missing under a copy of ours, so that the copy goes
/// on.
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
pub unsafe fn copy(
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

/// Tells the handler what is copied from here on, and keeps the compiler from moving the copy to
/// where it does not know.
fn guard(mapped: Range<usize>) {
    compiler_fence(Ordering::SeqCst);
    GUARDED_FROM.with(|from| from.store(mapped.start, Ordering::Relaxed));
    GUARDED_TO.with(|to| to.store(mapped.end, Ordering::Relaxed));
    compiler_fence(Ordering::SeqCst);
}
