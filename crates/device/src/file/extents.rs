//! Counts the bytes of a file that need new blocks, or have none of their own: bytes that have
//! never been written (holes, and extents that are allocated but unwritten), and bytes that other
//! files share. Reading unwritten bytes costs no disk access, so a figure that includes them is
//! wrong.

use crate::kernel::syscalls::{DirtyPages, ExtentPart, FileExtent, extents_in};
use diskproof_model::units::SECTOR_BYTES;
use rustix::fs::{SeekFrom, fstat, seek};
use rustix::io::Errno;
use std::os::fd::BorrowedFd;

/// `FIEMAP_EXTENT_UNWRITTEN` of linux/fiemap.h: allocated, reads as zeros.
const UNWRITTEN: u32 = 0x800;
/// `FIEMAP_EXTENT_SHARED` of linux/fiemap.h: another file or a snapshot has the same blocks.
const SHARED: u32 = 0x2000;

/// Bytes of `start..start + length` that were never written, those beyond the end of the file
/// included; `None` where the filesystem answers neither FIEMAP nor SEEK_HOLE.
pub(crate) fn unwritten_bytes(fd: BorrowedFd<'_>, start: u64, length: u64) -> Option<u64> {
    let end = start.checked_add(length)?;
    let size = u64::try_from(fstat(fd).ok()?.st_size).ok()?;
    let inside = start..end.min(size).max(start);
    let beyond = end - inside.end;
    if inside.is_empty() {
        return Some(beyond);
    }
    let written = written_by_fiemap(fd, inside.start, inside.end)
        .or_else(|| written_by_seek(fd, inside.start, inside.end))?;
    Some(beyond + (inside.end - inside.start).saturating_sub(written))
}

/// Bytes of a file of this size whose blocks another file or a snapshot shares, so that a write to
/// them takes new ones; `None` where the filesystem does not answer FIEMAP.
pub(crate) fn shared_bytes(fd: BorrowedFd<'_>, size_bytes: u64) -> Option<u64> {
    let parts = extents_in(fd, 0, size_bytes, DirtyPages::Kept);
    bytes_of_extents(parts, size_bytes, |extent| extent.flags & SHARED != 0)
}

/// Bytes of a file of this size that have no blocks; what lies beyond its end does not count.
/// `None` where the filesystem does not answer FIEMAP.
pub(crate) fn unallocated_bytes(fd: BorrowedFd<'_>, size_bytes: u64) -> Option<u64> {
    let parts = extents_in(fd, 0, size_bytes, DirtyPages::Kept);
    let allocated = bytes_of_extents(parts, size_bytes, |_| true)?;
    Some(size_bytes.saturating_sub(allocated))
}

fn written_by_fiemap(fd: BorrowedFd<'_>, start: u64, end: u64) -> Option<u64> {
    let parts = extents_in(fd, start, end, DirtyPages::WrittenBack);
    bytes_of_extents(parts, end, |extent| extent.flags & UNWRITTEN == 0)
}

/// Bytes before `end` in extents that count; `None` where the filesystem does not answer FIEMAP.
fn bytes_of_extents(
    parts: impl Iterator<Item = Result<ExtentPart, Errno>>,
    end: u64,
    is_counted: fn(&FileExtent) -> bool,
) -> Option<u64> {
    let mut bytes = 0;
    for part in parts {
        let part = part.ok()?;
        for extent in part.extents.iter().filter(|extent| is_counted(extent)) {
            bytes += bytes_inside(extent, part.start, end);
        }
    }
    Some(bytes)
}

/// Bytes of one extent, clipped to the range.
fn bytes_inside(extent: &FileExtent, start: u64, end: u64) -> u64 {
    extent
        .logical
        .saturating_add(extent.length)
        .min(end)
        .saturating_sub(extent.logical.max(start))
}

/// Data by SEEK_DATA/SEEK_HOLE. A filesystem without support calls everything data (lseek(2)), so
/// "no hole" is believed only when the file has as many blocks as its size needs.
fn written_by_seek(fd: BorrowedFd<'_>, start: u64, end: u64) -> Option<u64> {
    let mut position = start;
    let mut written = 0;
    while position < end {
        let data = match seek(fd, SeekFrom::Data(position)) {
            Ok(data) => data.min(end),
            Err(Errno::NXIO) => break,
            Err(_) => return None,
        };
        let hole = seek(fd, SeekFrom::Hole(data)).ok()?.min(end);
        if hole <= data {
            break;
        }
        written += hole - data;
        position = hole;
    }
    let stat = fstat(fd).ok()?;
    let allocated_bytes = u64::try_from(stat.st_blocks)
        .ok()?
        .saturating_mul(SECTOR_BYTES);
    let has_all_blocks = allocated_bytes >= u64::try_from(stat.st_size).ok()?;
    if written < end - start || has_all_blocks {
        Some(written)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    const MIB: u64 = 1 << 20;

    /// Sixteen MiB: data at 1 MiB and at 5 MiB, one MiB each; all else a hole.
    fn sparse(directory: &str) -> std::fs::File {
        let file = tempfile::tempfile_in(directory).unwrap();
        file.set_len(16 * MIB).unwrap();
        file.write_all_at(&vec![1; MIB as usize], MIB).unwrap();
        file.write_all_at(&vec![1; MIB as usize], 5 * MIB).unwrap();
        file
    }

    #[test]
    fn holes_are_counted_by_both_ways() {
        let file = sparse("/var/tmp");
        assert_eq!(written_by_fiemap(file.as_fd(), 0, 16 * MIB), Some(2 * MIB));
        assert_eq!(written_by_seek(file.as_fd(), 0, 16 * MIB), Some(2 * MIB));
        // Beyond the end nothing is written.
        for (start, length, unwritten) in [
            (MIB / 2, MIB, MIB / 2),
            (MIB, MIB, 0),
            (6 * MIB, MIB, MIB),
            (15 * MIB, 3 * MIB, 3 * MIB),
        ] {
            let found = unwritten_bytes(file.as_fd(), start, length);
            assert_eq!(found, Some(unwritten), "from {start}");
        }
    }

    #[test]
    fn tmpfs_is_answered_by_seek() {
        let file = sparse("/dev/shm");
        assert_eq!(written_by_fiemap(file.as_fd(), 0, MIB), None);
        assert_eq!(unwritten_bytes(file.as_fd(), 0, 16 * MIB), Some(14 * MIB));
    }

    #[test]
    fn preallocated_extents_are_unwritten() {
        let file = tempfile::tempfile_in("/var/tmp").unwrap();
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 8 * MIB).unwrap();
        file.write_all_at(&vec![1; MIB as usize], 2 * MIB).unwrap();
        assert_eq!(unwritten_bytes(file.as_fd(), 0, 8 * MIB), Some(7 * MIB));
    }

    #[test]
    fn blocks_beyond_the_end_fill_no_hole() {
        let file = sparse("/var/tmp");
        let flags = rustix::fs::FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&file, flags, 16 * MIB, 16 * MIB).unwrap();
        rustix::fs::fallocate(&file, flags, 0, MIB).unwrap();
        assert_eq!(unallocated_bytes(file.as_fd(), 16 * MIB), Some(13 * MIB));
        let in_memory = sparse("/dev/shm");
        assert_eq!(unallocated_bytes(in_memory.as_fd(), 16 * MIB), None);
    }

    #[test]
    fn more_extents_than_one_call_returns() {
        let file = tempfile::tempfile_in("/var/tmp").unwrap();
        for index in 0..400 {
            file.write_all_at(&[1; 4096], index * 8192).unwrap();
        }
        let unwritten = unwritten_bytes(file.as_fd(), 0, 400 * 8192);
        assert_eq!(unwritten, Some(400 * 4096));
    }
}
