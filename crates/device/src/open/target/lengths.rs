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
            // Without its mark the file counts as one of another program, which is safe.
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
    pub fn set_final_lengths(&self, size_bytes: u64) {
        let TargetContent::Scratch { capacity_bytes, .. } = self.content else {
            return;
        };
        let size_max = self.own_bytes_max();
        for share in self.shares(size_bytes.min(capacity_bytes)) {
            if !own_mark::is_valid(share.file) {
                continue;
            }
            self.extend_if_cheap(&share);
            self.set_final_length(share.file, capacity_bytes);
            if !own_mark::is_valid(share.file) {
                let _ = own_mark::set(share.file, size_max);
            }
        }
    }

    /// Makes one of several files of our own as long as it is to be, and cuts a single one inside
    /// of its last page.
    fn set_final_length(&self, file: BorrowedFd<'_>, capacity_bytes: u64) {
        let Ok(stat) = fstat(file) else {
            return;
        };
        let found_bytes = stat.st_size as u64;
        let mut wanted_bytes = self.kept_files.file_bytes;
        let mut is_cut = false;
        if self.part_of_file().is_none() {
            wanted_bytes = wanted_bytes.min(capacity_bytes);
            is_cut = wanted_bytes > 0
                && wanted_bytes < found_bytes
                && found_bytes == wanted_bytes.next_multiple_of(PAGE_BYTES);
        }
        if found_bytes < wanted_bytes || is_cut {
            // A file that keeps its whole pages is usable; only its tool's length is missing.
            let _ = ftruncate(file, wanted_bytes);
        }
    }

    /// The largest size that a file of diskproof's own may have, in bytes.
    fn own_bytes_max(&self) -> u64 {
        if self.part_of_file().is_some() {
            return self.kept_files.largest_bytes;
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
                self.extend_if_cheap(&share);
            }
        }
    }

    /// Makes a file as long as its share of the target ends, where its filesystem does that at
    /// once.
    fn extend_if_cheap(&self, share: &FileShare<'_>) {
        if let Some(filesystem) = &self.identity.filesystem {
            scratch::extend_if_cheap(share.file, &filesystem.kind, share.end);
        }
    }

    /// Gives a new scratch file this length, without content.
    pub fn set_length(&self, size_bytes: u64) -> Result<(), OpenError> {
        let result = if self.is_scratch() {
            self.truncate_files(size_bytes)
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
        self.truncate_files(bytes)
            .map_err(self.failed("cut the scratch file"))
    }

    /// Makes the files as long as the first `size_bytes` of the target need, shorter or longer.
    fn truncate_files(&self, size_bytes: u64) -> Result<(), Errno> {
        self.shares(size_bytes)
            .try_for_each(|share| ftruncate(share.file, share.end))
    }

    /// Reserves blocks for a scratch file of `size_bytes`, where its filesystem can
    /// (fallocate(2)). They have no content: they read as zeros, and the first write of each takes
    /// it into use, as in the preallocated log of a database.
    pub fn reserve(&self, size_bytes: u64) {
        if let TargetContent::Scratch { capacity_bytes, .. } = &self.content {
            for share in self.shares(size_bytes.min(*capacity_bytes)) {
                // Blocks that are not reserved are allocated when they are written.
                let _ = fallocate(share.file, FallocateFlags::empty(), 0, share.end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admit::{Intent, admit};
    use crate::identity::probe::probe;

    const MIB: u64 = 1 << 20;

    #[test]
    fn file_that_is_cut_to_what_was_written_takes_no_more_writes() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let size_bytes = 8 * MIB;
        let identity = probe(place.path()).unwrap();
        let admission = admit(identity, Intent::Scratch { size_bytes }).unwrap();
        let mut target = OpenTarget::open(admission).unwrap();
        target.set_length(size_bytes).unwrap();
        target.mark_written(3 * MIB);
        assert_eq!(target.capacity_bytes(), size_bytes);
        target.trim_to_written().unwrap();
        assert_eq!(target.capacity_bytes(), 3 * MIB);
        assert_eq!(fstat(target.fd()).unwrap().st_size as u64, 3 * MIB);
    }

    #[test]
    fn length_of_a_file_of_the_user_is_never_set() {
        let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        file.as_file().set_len(MIB).unwrap();
        let admission = admit(probe(file.path()).unwrap(), Intent::Read).unwrap();
        let mut target = OpenTarget::open(admission).unwrap();
        assert!(target.set_length(2 * MIB).is_err());
        assert!(target.trim_to_written().is_err());
        target.lengthen(2 * MIB);
        target.reserve(2 * MIB);
        target.set_final_lengths(2 * MIB);
        assert_eq!(file.as_file().metadata().unwrap().len(), MIB);
    }
}
