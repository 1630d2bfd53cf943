//! Allocates the program's memory: large blocks by the kernel, others by the system's allocator,
//! with an error and an exit code where there is no memory left. Rust would abort, with a core dump
//! and without a word about limits.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};

/// Ends the program where it gets no memory. So `Vec::try_reserve` never reports a lack of memory.
pub struct EndingAllocator;

/// Larger blocks, such as latency distributions, come straight from the kernel and go back to it:
/// they have memory only where something is counted. The C libraries clear most of them instead,
/// and `commit` took 260 MB instead of 54.
const MAPPED_BYTES_MIN: usize = 128 << 10;
/// Every address that mmap(2) returns is a multiple of this.
const MAPPED_ALIGN_MAX: usize = 4096;

const MESSAGE: &[u8] = b"diskproof: error: out of memory. Raise the limits (ulimit -v, the \
                         container's), or use fewer --jobs or a smaller --depth\n";
/// The program's exit code for a run that failed: the same as `FAILED` of the crate `cli`, which
/// this one must not import.
const EXIT_CODE: libc::c_int = 4;

fn is_mapped(layout: Layout) -> bool {
    layout.size() >= MAPPED_BYTES_MIN && layout.align() <= MAPPED_ALIGN_MAX
}

// SAFETY: the size and the alignment of a block, which its caller names each time, decide whether
// it is a mapping of its own, of zeros, or goes to the system's allocator as it is; so what
// allocated a block also frees it. A block comes back unless it is null.
unsafe impl GlobalAlloc for EndingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        non_null_or_exit(if is_mapped(layout) {
            map(layout.size())
        } else {
            // SAFETY: the caller keeps the contract of `alloc`.
            unsafe { System.alloc(layout) }
        })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        non_null_or_exit(if is_mapped(layout) {
            map(layout.size())
        } else {
            // SAFETY: the caller keeps the contract of `alloc_zeroed`.
            unsafe { System.alloc_zeroed(layout) }
        })
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `realloc`: the size is no overflow.
        let new_layout = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        if is_mapped(layout) && is_mapped(new_layout) {
            // SAFETY: `old` is a mapping of that size, which is not used afterwards.
            return non_null_or_exit(unsafe { remap(old, layout.size(), bytes) });
        }
        if !is_mapped(layout) && !is_mapped(new_layout) {
            // SAFETY: the caller keeps the contract of `realloc`.
            return non_null_or_exit(unsafe { System.realloc(old, layout, bytes) });
        }
        // SAFETY: both blocks have as many bytes as are copied, and do not overlap.
        unsafe {
            let new = self.alloc(new_layout);
            new.copy_from_nonoverlapping(old, layout.size().min(bytes));
            self.dealloc(old, layout);
            new
        }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`; a mapping has this size.
        unsafe {
            if is_mapped(layout) {
                // Fails only where the kernel has no room for a mapping cut in two: it stays, then.
                let _ = libc::munmap(old.cast(), layout.size());
            } else {
                System.dealloc(old, layout);
            }
        }
    }
}

/// A mapping of zeros; null where there is no memory.
fn map(bytes: usize) -> *mut u8 {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, at an address that the kernel chooses, overlaps none.
    null_if_failed(unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) })
}

/// The mapping with another size, perhaps elsewhere; null where there is no memory.
///
/// # Safety
/// `old` is a mapping of `old_bytes`, which is not used afterwards unless the result is null.
unsafe fn remap(old: *mut u8, old_bytes: usize, bytes: usize) -> *mut u8 {
    // SAFETY: the caller owns the old mapping and does not use it again, unless this fails.
    null_if_failed(unsafe { libc::mremap(old.cast(), old_bytes, bytes, libc::MREMAP_MAYMOVE) })
}

fn null_if_failed(address: *mut libc::c_void) -> *mut u8 {
    if address == libc::MAP_FAILED {
        std::ptr::null_mut()
    } else {
        address.cast()
    }
}

#[inline]
fn non_null_or_exit(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        exit_without_memory();
    }
    memory
}

#[cold]
fn exit_without_memory() -> ! {
    // SAFETY: the message outlives the call, and neither call allocates.
    unsafe {
        libc::write(2, MESSAGE.as_ptr().cast(), MESSAGE.len());
        libc::_exit(EXIT_CODE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes on both sides of the limit, growing and shrinking.
    #[test]
    fn blocks_keep_what_is_in_them_and_new_ones_are_zero() {
        let limit = MAPPED_BYTES_MIN;
        let sizes = [1, 4096, limit - 1, limit, limit + 1, 1 << 22];
        for align in [1, 16, 4096, 8192] {
            for from in sizes {
                for to in sizes {
                    let layout = Layout::from_size_align(from, align).unwrap();
                    let kept = from.min(to);
                    // SAFETY: the block has `from` bytes, and `to` after the call of `realloc`.
                    // It is freed once, with the layout that it has then.
                    let (block, last) = unsafe {
                        let block = EndingAllocator.alloc_zeroed(layout);
                        assert_eq!(block as usize % align, 0);
                        assert!((0..from).all(|at| *block.add(at) == 0));
                        (0..from).for_each(|at| *block.add(at) = (at % 251) as u8);
                        let block = EndingAllocator.realloc(block, layout, to);
                        (block, Layout::from_size_align(to, align).unwrap())
                    };
                    // SAFETY: as above.
                    unsafe {
                        assert!((0..kept).all(|at| *block.add(at) == (at % 251) as u8));
                        *block.add(to - 1) = 1;
                        EndingAllocator.dealloc(block, last);
                    }
                }
            }
        }
    }
}
