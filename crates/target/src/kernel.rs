//! The two system calls that no safe wrapper offers: FIEMAP and cachestat(2). Raw answers only; extents.rs and open.rs judge them.
#![allow(unsafe_code)]

use rustix::io::Errno;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `FS_IOC_FIEMAP`, from linux/fs.h: `_IOWR('f', 11, struct fiemap)` with the 32 bytes of the header.
const FS_IOC_FIEMAP: u64 = 0xC020_660B;
/// Write dirty pages back before mapping, so that delayed allocation has happened.
const FIEMAP_FLAG_SYNC: u32 = 1;
/// Extents fetched per call: 128 × 56 bytes stay on the stack.
const EXTENTS: usize = 128;
/// `cachestat`, Linux 6.5; the same number on every architecture that Rust's standard library supports.
const SYS_CACHESTAT: libc::c_long = 451;

/// One extent as `struct fiemap_extent` (linux/fiemap.h) has it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Extent {
    pub(crate) logical: u64,
    physical: u64,
    pub(crate) length: u64,
    reserved64: [u64; 2],
    pub(crate) flags: u32,
    reserved: [u32; 3],
}

#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [Extent; EXTENTS],
}

/// The next extents at or after `start`, at most [`EXTENTS`]; empty when there are none in the range.
pub(crate) fn fiemap(fd: BorrowedFd<'_>, start: u64, length: u64) -> Result<Vec<Extent>, Errno> {
    let mut map = Fiemap {
        start,
        length,
        flags: FIEMAP_FLAG_SYNC,
        mapped_extents: 0,
        extent_count: EXTENTS as u32,
        reserved: 0,
        extents: [Extent::default(); EXTENTS],
    };
    // SAFETY: the descriptor is open for the length of the borrow; the structure has the kernel's layout (repr(C), checked by the test
    // below) and room for the `extent_count` extents that it announces; the kernel writes nothing else.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut map) };
    if result != 0 {
        return Err(crate::errno::of(&std::io::Error::last_os_error()));
    }
    Ok(map.extents[..(map.mapped_extents as usize).min(EXTENTS)].to_vec())
}

/// Pages of the range that the page cache holds; `None` where the kernel has no cachestat (before 6.5) or forbids it.
pub(crate) fn cached_pages(fd: BorrowedFd<'_>, start: u64, length: u64) -> Option<u64> {
    let range = [start, length];
    let mut answer = [0u64; 5];
    // SAFETY: both arrays have the layout of struct cachestat_range (two u64) and struct cachestat (five u64, nr_cache first), and live
    // through the call; the kernel only writes the second.
    let result = unsafe { libc::syscall(SYS_CACHESTAT, fd.as_raw_fd(), range.as_ptr(), answer.as_mut_ptr(), 0u32) };
    (result == 0).then_some(answer[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn structures_have_the_kernels_size() {
        assert_eq!(size_of::<Extent>(), 56);
        assert_eq!(std::mem::offset_of!(Fiemap, extents), 32);
    }

    #[test]
    fn written_pages_are_seen_in_the_cache() {
        let file = tempfile::tempfile().unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[7; 8192], 0).unwrap();
        match cached_pages(file.as_fd(), 0, 8192) {
            Some(pages) => assert!(pages > 0),
            None => eprintln!("SKIPPED: written_pages_are_seen_in_the_cache: cachestat(2), Linux 6.5"),
        }
    }
}
