//! FIEMAP, the one kernel interface of this crate that no safe wrapper offers. Raw answers only;
//! extents.rs judges them.
#![allow(unsafe_code)]

use rustix::io::Errno;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `FS_IOC_FIEMAP`, from linux/fs.h: `_IOWR('f', 11, struct fiemap)` with the 32 bytes of the
/// header.
const FS_IOC_FIEMAP: u64 = 0xC020_660B;
/// Write dirty pages back before mapping, so that delayed allocation has happened.
const FIEMAP_FLAG_SYNC: u32 = 1;
/// Extents fetched per call: 128 × 56 bytes stay on the stack.
const EXTENTS: usize = 128;

/// One extent as `struct fiemap_extent` (linux/fiemap.h) has it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct FileExtent {
    pub(crate) logical: u64,
    pub(crate) physical: u64,
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
    extents: [FileExtent; EXTENTS],
}

/// `FIEMAP_EXTENT_LAST`: the file ends with this one.
const LAST: u32 = 0x1;

/// The extents from `start` to `end` in parts, each with where it was asked for.
pub(crate) fn extents_in(
    fd: BorrowedFd<'_>,
    start: u64,
    end: u64,
) -> impl Iterator<Item = Result<(u64, Vec<FileExtent>), Errno>> {
    let mut next = Some(start);
    std::iter::from_fn(move || {
        let at = next.take().filter(|at| *at < end)?;
        let found = match fiemap(fd, at, end - at) {
            Ok(found) => found,
            Err(errno) => return Some(Err(errno)),
        };
        let last = *found.last()?;
        let behind = last.logical.saturating_add(last.length);
        next = Some(behind).filter(|next| last.flags & LAST == 0 && *next > at);
        Some(Ok((at, found)))
    })
}

/// The next extents at or after `start`, at most [`EXTENTS`]; empty when there are none in the
/// range.
pub(crate) fn fiemap(
    fd: BorrowedFd<'_>,
    start: u64,
    length: u64,
) -> Result<Vec<FileExtent>, Errno> {
    let mut map = Fiemap {
        start,
        length,
        flags: FIEMAP_FLAG_SYNC,
        mapped_extents: 0,
        extent_count: EXTENTS as u32,
        reserved: 0,
        extents: [FileExtent::default(); EXTENTS],
    };
    // SAFETY: the descriptor is open for the length of the borrow; the structure has the kernel's
    // layout (repr(C), checked by the test below) and room for the `extent_count` extents that
    // it announces; the kernel writes nothing else.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut map) };
    if result != 0 {
        return Err(crate::errno::of(&std::io::Error::last_os_error()));
    }
    Ok(map.extents[..(map.mapped_extents as usize).min(EXTENTS)].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_kernels_size() {
        assert_eq!(size_of::<FileExtent>(), 56);
        assert_eq!(std::mem::offset_of!(Fiemap, extents), 32);
    }
}
