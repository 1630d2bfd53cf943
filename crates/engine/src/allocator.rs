//! The allocator of the program: the system's, with an error and an exit code where there is no
//! memory left. Rust would abort, with a core dump and without a word about limits.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};

/// Ends the program where it gets no memory.
pub struct EndingAllocator;

/// Larger blocks, such as latency distributions, come straight from the kernel and go back to it.
/// They have memory only where something is counted.
#[cfg(target_env = "gnu")]
const MAPPED_BYTES_MIN: libc::c_int = 128 << 10;

impl EndingAllocator {
    /// Keeps it so with glibc, which otherwise takes them from its own memory, and clears them, if
    /// one was freed (mallopt(3), M_MMAP_THRESHOLD): `commit` took 190 MB instead of 60. musl never
    /// does.
    pub fn map_large_blocks(&self) {
        #[cfg(target_env = "gnu")]
        // SAFETY: it sets a number of the allocator, which takes any.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES_MIN);
        }
    }
}

const MESSAGE: &[u8] = b"diskproof: error: out of memory. Raise the limits (ulimit -v, the \
                         container's), or use fewer --jobs or a smaller --depth\n";
/// The run failed.
const EXIT_CODE: libc::c_int = 4;

// SAFETY: every call goes to the system's allocator as it is, and its result comes back unless it
// is null.
unsafe impl GlobalAlloc for EndingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        given(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        given(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `realloc`.
        given(unsafe { System.realloc(old, layout, bytes) })
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(old, layout) }
    }
}

#[inline]
fn given(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        end();
    }
    memory
}

#[cold]
fn end() -> ! {
    // SAFETY: the message outlives the call, and neither call allocates.
    unsafe {
        libc::write(2, MESSAGE.as_ptr().cast(), MESSAGE.len());
        libc::_exit(EXIT_CODE)
    }
}
