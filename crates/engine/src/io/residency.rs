//! Finds the pages of a file that the page cache holds. A read of them would not come from the
//! disk.
#![allow(unsafe_code)]

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;
use std::io;
use std::os::fd::BorrowedFd;

/// The part of a file that is looked at with one call. The kernel fills a byte for each page of it
/// in a few milliseconds.
pub(crate) const WINDOW_BYTES: u64 = 256 << 20;

/// The pages of a part of a file, as the page cache held them when they were looked at.
#[derive(Debug)]
pub(crate) struct ResidentPages {
    start: u64,
    page_bytes: u64,
    /// One byte a page; the lowest bit is set where the page is in memory (mincore(2)).
    pages: Vec<u8>,
}

impl ResidentPages {
    /// Looks at the part of a file around the byte `offset`. Reads nothing from the disk, and
    /// begins no read-ahead. Needs a file that this process may write: of others the kernel reports
    /// every page as resident (mincore(2), since Linux 5.2).
    pub(crate) fn around(file: BorrowedFd<'_>, offset: u64) -> io::Result<Self> {
        let start = offset / WINDOW_BYTES * WINDOW_BYTES;
        let page_bytes = page_size() as u64;
        let length = WINDOW_BYTES as usize;
        let mut pages = vec![0; length.div_ceil(page_size())];
        // SAFETY: a new mapping at an address that the kernel chooses, and which nothing reads.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ,
                MapFlags::SHARED,
                file,
                start,
            )?
        };
        // SAFETY: the mapping has `length` bytes, and `pages` has a byte for each of its pages.
        let looked_at = unsafe { libc::mincore(base, length, pages.as_mut_ptr()) };
        let error = io::Error::last_os_error();
        // SAFETY: nothing refers to the mapping.
        unsafe { munmap(base, length)? };
        if looked_at != 0 {
            return Err(error);
        }
        Ok(Self {
            start,
            page_bytes,
            pages,
        })
    }

    /// True if any page of these bytes was in memory. They begin within the part; those behind it
    /// are not looked at.
    pub(crate) fn holds_any(&self, offset: u64, bytes: u64) -> bool {
        debug_assert!(bytes > 0, "no bytes at {offset}");
        debug_assert_eq!(offset / WINDOW_BYTES * WINDOW_BYTES, self.start);
        let first = ((offset - self.start) / self.page_bytes) as usize;
        let last = ((offset + bytes - 1 - self.start) / self.page_bytes) as usize;
        let end = (last + 1).min(self.pages.len());
        self.pages[first..end].iter().any(|page| page & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Advice, fadvise};
    use rustix::io::{pread, pwrite};
    use std::os::fd::AsFd as _;

    #[test]
    fn pages_are_resident_after_a_write_and_not_after_they_are_dropped() {
        let file = tempfile::tempfile_in("/var/tmp").unwrap();
        let page = page_size();
        let content = vec![7; 16 * page];
        pwrite(&file, &content, 0).unwrap();
        let holds = |page_number: u64| {
            let resident = ResidentPages::around(file.as_fd(), 0).unwrap();
            resident.holds_any(page_number * page as u64, page as u64)
        };
        assert!((0..16).all(holds));
        file.sync_all().unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        if (0..16).any(holds) {
            println!("SKIPPED: the filesystem of /var/tmp keeps its pages in memory");
            return;
        }
        // Only the pages that are read come back.
        fadvise(&file, 0, None, Advice::Random).unwrap();
        let mut byte = [0; 1];
        pread(&file, &mut byte, 5 * page as u64).unwrap();
        assert!(holds(5) && !holds(12));
    }
}
