//! Sets the lengths of our own files, and the mark by which a later run knows that nothing has
//! changed them. While a run uses such a file it has whole pages; the length that its tool gives it
//! is set at the end of the run, and only where the mark is valid.

use super::{FileShare, OpenTarget, PAGE_BYTES, TargetContent};
use crate::failure::OpenError;
use crate::file::own_mark;
use crate::open::scratch;
use rustix::fs::{FallocateFlags, fallocate, fstat, ftruncate};
use rustix::io::Errno;
use std::os::fd::BorrowedFd;

impl OpenTarget {
    /// Marks what this run has just written as diskproof's own: until anything changes the file,
    /// `Overwriting::Own` releases it. Where the filesystem keeps no such mark, or the file has
    /// grown beyond what this program may write, it stays an ordinary file.
    pub fn mark_own(&self) {
        let size_max = self.own_bytes_max();
        for file in self.files() {
            let _ = own_mark::set(file, size_max);
        }
    }

    /// True if each of its files has the mark of diskproof's own: nothing has changed them since.
    pub fn is_marked_own(&self) -> bool {
        self.files().all(own_mark::is_valid)
    }

    /// Gives files of diskproof's own their length at the end of a run, with the mark of that: each
    /// of several files its whole one, a single one the end inside of its last page that was set
    /// for it, and all else at least that of the first `size_bytes` of the target. A file without a
    /// valid mark may hold data of another program, and stays as it is.
    pub fn lengthen_own(&self, size_bytes: u64) {
        let TargetContent::Scratch { capacity_bytes, .. } = self.content else {
            return;
        };
        let size_max = self.own_bytes_max();
        for share in self.shares(size_bytes.min(capacity_bytes)) {
            if !own_mark::is_valid(share.file) {
                continue;
            }
            self.lengthen_share(&share);
            self.set_own_length(share.file, capacity_bytes);
            if !own_mark::is_valid(share.file) {
                let _ = own_mark::set(share.file, size_max);
            }
        }
    }

    /// Makes one of several files of our own as long as it is to be, and cuts a single one inside
    /// of its last page.
    fn set_own_length(&self, file: BorrowedFd<'_>, capacity_bytes: u64) {
        let Ok(stat) = fstat(file) else {
            return;
        };
        let found_bytes = stat.st_size as u64;
        let mut wanted_bytes = self.further.file_bytes;
        let mut is_cut = false;
        if self.part_of_file().is_none() {
            wanted_bytes = wanted_bytes.min(capacity_bytes);
            is_cut = wanted_bytes > 0
                && wanted_bytes < found_bytes
                && found_bytes == wanted_bytes.next_multiple_of(PAGE_BYTES);
        }
        if found_bytes < wanted_bytes || is_cut {
            let _ = ftruncate(file, wanted_bytes);
        }
    }

    /// The largest size that a file of diskproof's own may have, in bytes.
    fn own_bytes_max(&self) -> u64 {
        if self.part_of_file().is_some() {
            return self.further.largest_bytes;
        }
        match self.content {
            TargetContent::Scratch { capacity_bytes, .. } => capacity_bytes,
            TargetContent::Existing | TargetContent::Released { .. } => self.identity.size_bytes,
        }
    }

    /// Tells the filesystem how long a scratch file is going to be, where that lets direct writes
    /// to its end go side by side. What is not written yet reads as zeros then;
    /// [`OpenTarget::usable_bytes`] stays.
    pub fn lengthen(&self, size_bytes: u64) {
        if let TargetContent::Scratch { capacity_bytes, .. } = self.content {
            for share in self.shares(size_bytes.min(capacity_bytes)) {
                self.lengthen_share(&share);
            }
        }
    }

    fn lengthen_share(&self, share: &FileShare<'_>) {
        if let Some(filesystem) = &self.identity.filesystem {
            scratch::lengthen(share.file, &filesystem.kind, share.end);
        }
    }

    /// Gives a new scratch file this length, without content.
    pub fn set_length(&self, size_bytes: u64) -> Result<(), OpenError> {
        let result = if self.is_scratch() {
            self.set_file_lengths(size_bytes)
        } else {
            Err(Errno::INVAL)
        };
        result.map_err(self.failed("set its length"))
    }

    /// Cuts a scratch file to what was written and makes that its capacity: for when the time for
    /// laying it out was over.
    pub fn trim_to_written(&mut self) -> Result<(), OpenError> {
        let TargetContent::Scratch {
            written_bytes,
            capacity_bytes,
            ..
        } = &mut self.content
        else {
            return Err(OpenError::NotScratch {
                path: self.identity.path.clone(),
            });
        };
        *capacity_bytes = *written_bytes;
        let bytes = *written_bytes;
        self.set_file_lengths(bytes)
            .map_err(self.failed("cut the scratch file"))
    }

    /// Makes the files as long as the first `size_bytes` of the target need, shorter or longer.
    fn set_file_lengths(&self, size_bytes: u64) -> Result<(), Errno> {
        self.shares(size_bytes)
            .try_for_each(|share| ftruncate(share.file, share.end))
    }

    /// Reserves blocks for a scratch file of `size_bytes`, where its filesystem can
    /// (fallocate(2)). They have no content: they read as zeros, and the first write of each takes
    /// it into use, as in the preallocated log of a database.
    pub fn reserve(&self, size_bytes: u64) {
        if let TargetContent::Scratch { capacity_bytes, .. } = &self.content {
            for share in self.shares(size_bytes.min(*capacity_bytes)) {
                let _ = fallocate(share.file, FallocateFlags::empty(), 0, share.end);
            }
        }
    }
}
