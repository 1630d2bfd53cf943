//! Finds the file and the offset in it for each byte of a target, which is mostly one file. Where
//! there are several, each holds an equal part of the target; a request that crosses the end of one
//! is short there.

use super::Extent;
use diskproof_device::PartOfFile;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The open files of a target.
#[derive(Debug)]
pub(crate) struct TargetFiles {
    first: OwnedFd,
    further: Vec<OwnedFd>,
    /// The part of each of several files that belongs to the target.
    part: PartOfFile,
    /// With several files, true for each that was written since its last sync.
    unsynced: Vec<bool>,
    /// With several files, the first byte of the write of each slot of a queue, until it has ended.
    writes_in_flight: Vec<Option<u64>>,
}

impl From<OwnedFd> for TargetFiles {
    fn from(first: OwnedFd) -> Self {
        Self::several(first, Vec::new(), PartOfFile::default())
    }
}

/// The place of a byte of the target: a file and an offset in it.
pub(crate) struct FilePlace<'a> {
    pub fd: BorrowedFd<'a>,
    /// The place of the byte in this file.
    pub offset: u64,
}

/// The part of an extent of the target that lies in one file.
pub(crate) struct FilePart<'a> {
    pub fd: BorrowedFd<'a>,
    /// The part of the extent, as the file counts; `None` for all of the file.
    pub extent: Option<Extent>,
}

impl TargetFiles {
    /// Several files with an equal part of the target each.
    pub(crate) fn several(first: OwnedFd, further: Vec<OwnedFd>, part: PartOfFile) -> Self {
        let unsynced = vec![false; further.len() + 1];
        Self {
            first,
            further,
            part: PartOfFile {
                bytes: part.bytes.max(1),
                ..part
            },
            unsynced,
            writes_in_flight: Vec::new(),
        }
    }

    /// The file that holds this byte of the target, and the place of the byte in it.
    #[inline(always)]
    pub(crate) fn place(&self, offset: u64) -> FilePlace<'_> {
        if self.further.is_empty() {
            FilePlace {
                fd: self.first.as_fd(),
                offset,
            }
        } else {
            self.place_among_several(offset)
        }
    }

    #[cold]
    fn place_among_several(&self, offset: u64) -> FilePlace<'_> {
        let index = self.index(offset);
        let before = index as u64 * self.part.bytes;
        FilePlace {
            fd: self.file(index).as_fd(),
            offset: offset - before + self.part.start,
        }
    }

    /// The part of a request, in bytes, that belongs to the file in which it begins.
    #[inline(always)]
    pub(crate) fn bytes_in_file(&self, offset: u64, bytes: usize) -> usize {
        let index = self.index(offset);
        if index == self.further.len() {
            return bytes;
        }
        let end = (index as u64 + 1) * self.part.bytes;
        usize::try_from(end - offset).map_or(bytes, |room| bytes.min(room))
    }

    /// The number of the file that holds this byte of the target, from 0.
    pub(crate) fn index(&self, offset: u64) -> usize {
        if self.further.is_empty() {
            return 0;
        }
        // The last file also has what lies behind the target: reads find its end there.
        let index = usize::try_from(offset / self.part.bytes).unwrap_or(usize::MAX);
        index.min(self.further.len())
    }

    fn file(&self, index: usize) -> &OwnedFd {
        match index.checked_sub(1) {
            Some(index) => &self.further[index],
            None => &self.first,
        }
    }

    /// Notes that the file with this byte was written.
    #[inline(always)]
    pub(crate) fn mark_written(&mut self, offset: u64) {
        if !self.further.is_empty() {
            let index = self.index(offset);
            self.unsynced[index] = true;
        }
    }

    /// Notes that the write of a slot is in flight, until [`Self::note_end`].
    pub(crate) fn note_write(&mut self, slot: u32, offset: u64) {
        if self.further.is_empty() {
            return;
        }
        let slot = slot as usize;
        if slot >= self.writes_in_flight.len() {
            self.writes_in_flight.resize(slot + 1, None);
        }
        self.writes_in_flight[slot] = Some(offset);
    }

    /// Notes that the request of a slot has ended. A sync covers what ended before it.
    #[inline(always)]
    pub(crate) fn note_end(&mut self, slot: u32) {
        if !self.further.is_empty()
            && let Some(write) = self.writes_in_flight.get_mut(slot as usize)
            && let Some(offset) = write.take()
        {
            self.mark_written(offset);
        }
    }

    /// Syncs the only file, or those that were written since their last sync. Returns 0, or the
    /// first error as a negative errno.
    pub(crate) fn sync_written(&mut self, sync: impl Fn(BorrowedFd<'_>) -> i32) -> i32 {
        self.sync_written_by_number(|_, file| sync(file))
    }

    /// The same through other descriptions of the files, one for each of them.
    pub(crate) fn sync_written_through(
        &mut self,
        others: &[OwnedFd],
        sync: impl Fn(BorrowedFd<'_>) -> i32,
    ) -> i32 {
        self.sync_written_by_number(|index, _| sync(others[index].as_fd()))
    }

    /// Syncs every file, for writes of other threads, too.
    pub(crate) fn sync_each(&mut self, sync: impl Fn(BorrowedFd<'_>) -> i32) -> i32 {
        self.unsynced.fill(true);
        self.sync_written(sync)
    }

    /// Syncs by the number of the file, or through its own description. A file whose sync failed
    /// is synced again the next time.
    fn sync_written_by_number(&mut self, sync: impl Fn(usize, BorrowedFd<'_>) -> i32) -> i32 {
        if self.further.is_empty() {
            return sync(0, self.first.as_fd());
        }
        let mut first_error = 0;
        for index in 0..self.unsynced.len() {
            if !self.unsynced[index] {
                continue;
            }
            let synced = sync(index, self.file(index).as_fd());
            if synced == 0 {
                self.unsynced[index] = false;
            } else if first_error == 0 {
                first_error = synced;
            }
        }
        first_error
    }

    /// True where the target has more than one file.
    pub(crate) fn are_several(&self) -> bool {
        !self.further.is_empty()
    }

    /// The only file, or the first one.
    pub(crate) fn first(&self) -> BorrowedFd<'_> {
        self.first.as_fd()
    }

    /// The files with their parts of an extent of the target, or of all of it; those without one
    /// are not among them.
    pub(crate) fn parts(&self, extent: Option<Extent>) -> Vec<FilePart<'_>> {
        if self.further.is_empty() {
            return vec![FilePart {
                fd: self.first.as_fd(),
                extent,
            }];
        }
        let mut parts = Vec::new();
        for index in 0..=self.further.len() {
            let fd = self.file(index).as_fd();
            let Some(extent) = extent else {
                parts.push(FilePart { fd, extent: None });
                continue;
            };
            let before = index as u64 * self.part.bytes;
            let start = extent.start.max(before);
            let end = extent.end().min(before + self.part.bytes);
            if start < end {
                let part = Extent::new(start - before + self.part.start, end - start);
                parts.push(FilePart {
                    fd,
                    extent: Some(part),
                });
            }
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::aio::AioBackend;
    use crate::io::buffers::Buffers;
    use crate::io::mmap::MmapBackend;
    use crate::io::sync::{SyncBackend, sync};
    use crate::io::uring::UringBackend;
    use crate::io::{Backend, Op, Request, SubmitPolicy, WaitMode};
    use crate::random::Random;
    use diskproof_model::plan::{CachePolicy, SyncCall};
    use rustix::mm::{Advice, ProtFlags};
    use std::cell::RefCell;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::FileExt as _;

    const PART: PartOfFile = PartOfFile {
        start: 0,
        bytes: 8192,
    };

    /// Three files of two blocks.
    fn three_files() -> (TargetFiles, Vec<std::fs::File>) {
        let all: Vec<std::fs::File> = (0..3).map(|_| tempfile::tempfile().unwrap()).collect();
        let mut own: Vec<OwnedFd> = Vec::new();
        for file in &all {
            own.push(file.try_clone().unwrap().into());
        }
        let first = own.remove(0);
        (TargetFiles::several(first, own, PART), all)
    }

    fn sizes(files: &[std::fs::File]) -> Vec<u64> {
        files
            .iter()
            .map(|file| file.metadata().unwrap().len())
            .collect()
    }

    #[test]
    fn each_file_gets_the_blocks_of_its_part() {
        let (files, all) = three_files();
        let mut backend = SyncBackend::new(files, Buffers::new(1, 4096).unwrap());
        for block in [0, 1, 2, 5] {
            let mut request = Some(Request::new(0, Op::Write, block * 4096, 4096));
            backend.enqueue(&mut |_| request.take()).unwrap();
            backend.reap(&mut |_, result| assert_eq!(result, 4096));
        }
        assert_eq!(sizes(&all), [8192, 4096, 8192]);
        // A read of what no file has ends where the last one ends.
        let mut request = Some(Request::new(0, Op::Read, 6 * 4096, 4096));
        backend.enqueue(&mut |_| request.take()).unwrap();
        backend.reap(&mut |_, result| assert_eq!(result, 0));
    }

    #[test]
    fn request_across_two_files_is_short_in_the_first() {
        let (files, all) = three_files();
        let mut backend = SyncBackend::new(files, Buffers::new(1, 8192).unwrap());
        let mut request = Some(Request::new(0, Op::Write, 4096, 8192));
        backend.enqueue(&mut |_| request.take()).unwrap();
        backend.reap(&mut |_, result| assert_eq!(result, 4096));
        let mut rest = Request::new(0, Op::Write, 8192, 4096);
        rest.skip = 4096;
        let mut request = Some(rest);
        backend.enqueue(&mut |_| request.take()).unwrap();
        backend.reap(&mut |_, result| assert_eq!(result, 4096));
        assert_eq!(sizes(&all), [8192, 4096, 0]);
    }

    #[test]
    fn sync_concerns_the_files_that_were_written() {
        let (mut files, _) = three_files();
        files.mark_written(0);
        files.mark_written(20_000);
        let numbers = [0, 8192, 16_384].map(|offset| files.place(offset).fd.as_raw_fd());
        let synced = RefCell::new(Vec::new());
        let count = |fd: BorrowedFd<'_>| {
            synced.borrow_mut().push(fd.as_raw_fd());
            sync(fd.as_raw_fd(), SyncCall::Fdatasync)
        };
        assert_eq!(files.sync_written(|_| -5), -5);
        // What failed is synced again.
        assert_eq!(files.sync_written(count), 0);
        assert_eq!(*synced.borrow(), [numbers[0], numbers[2]]);
        assert_eq!(files.sync_written(|_| -5), 0, "all are synced");
    }

    #[test]
    fn sync_through_other_descriptions_concerns_the_same_files() {
        let (mut files, all) = three_files();
        let mut others: Vec<OwnedFd> = Vec::new();
        for file in &all {
            others.push(file.try_clone().unwrap().into());
        }
        files.mark_written(8192);
        files.mark_written(20_000);
        let synced = RefCell::new(Vec::new());
        let count = |fd: BorrowedFd<'_>| {
            synced.borrow_mut().push(fd.as_raw_fd());
            0
        };
        assert_eq!(files.sync_written_through(&others, count), 0);
        let wanted = [others[1].as_raw_fd(), others[2].as_raw_fd()];
        assert_eq!(*synced.borrow(), wanted);
        // The only file is synced whatever was written.
        let mut only = TargetFiles::from(others.remove(0));
        assert_eq!(only.sync_written_through(&others, |_| -5), -5);
    }

    #[test]
    fn sync_for_all_threads_reaches_every_file() {
        let (mut files, _) = three_files();
        files.mark_written(0);
        let synced = RefCell::new(0);
        let count = |_: BorrowedFd<'_>| {
            *synced.borrow_mut() += 1;
            0
        };
        assert_eq!(files.sync_each(count), 0);
        assert_eq!(*synced.borrow(), 3);
    }

    /// Writes these blocks of the target, syncs, and reads the last one. Returns the results.
    fn write_and_sync(backend: &mut impl Backend, blocks: &[u64]) -> Vec<i32> {
        let mut ops: Vec<(Op, u64)> = blocks.iter().map(|block| (Op::Write, *block)).collect();
        ops.push((Op::Sync(SyncCall::Fdatasync), 0));
        ops.push((Op::Read, blocks[blocks.len() - 1]));
        let mut results = Vec::new();
        for (op, block) in ops {
            let mut request = Some(Request::new(0, op, block * 4096, 4096));
            let before = results.len();
            while results.len() == before {
                backend.enqueue(&mut |_| request.take()).unwrap();
                backend.wait(WaitMode::Completion).unwrap();
                backend.reap(&mut |slot, result| {
                    assert_eq!(slot, 0);
                    results.push(result);
                });
            }
        }
        results
    }

    /// Three files of which two blocks behind the first one belong to the target.
    fn files_with_a_start() -> (TargetFiles, Vec<std::fs::File>) {
        let (mut files, all) = three_files();
        files.part.start = 4096;
        (files, all)
    }

    fn filled_buffers() -> Buffers {
        let mut buffers = Buffers::new(4, 4096).unwrap();
        buffers.fill_random(&mut Random::new(1, 1));
        buffers
    }

    /// The blocks of each file that have content.
    fn written_blocks(files: &[std::fs::File]) -> Vec<Vec<u64>> {
        let mut all = Vec::new();
        for file in files {
            let mut written = Vec::new();
            for block in 0..3 {
                let mut content = [0; 4096];
                let got = file.read_at(&mut content, block * 4096).unwrap();
                if content[..got].iter().any(|byte| *byte != 0) {
                    written.push(block);
                }
            }
            all.push(written);
        }
        all
    }

    #[test]
    fn queues_and_mappings_reach_the_part_of_each_file() {
        const BLOCKS: [u64; 3] = [0, 3, 4];
        const RESULTS: [i32; 5] = [4096, 4096, 4096, 0, 4096];
        const WRITTEN: [[u64; 1]; 3] = [[1], [2], [1]];
        let batched = SubmitPolicy::Batched;
        let (files, all) = files_with_a_start();
        let mut aio = AioBackend::new(files, filled_buffers(), 4, batched).unwrap();
        assert_eq!(write_and_sync(&mut aio, &BLOCKS), RESULTS);
        assert_eq!(written_blocks(&all), WRITTEN);
        let (files, all) = files_with_a_start();
        let cache = CachePolicy::Buffered;
        match UringBackend::new(files, filled_buffers(), 4, cache, batched) {
            Ok(mut ring) => {
                assert_eq!(write_and_sync(&mut ring, &BLOCKS), RESULTS);
                assert_eq!(written_blocks(&all), WRITTEN);
            }
            Err(_) => eprintln!("SKIPPED: io_uring on several files: it is blocked"),
        }
        let (files, all) = files_with_a_start();
        for file in &all {
            file.set_len(12_288).unwrap();
        }
        let both = ProtFlags::READ | ProtFlags::WRITE;
        let target = 3 * PART.bytes;
        let mut mapped =
            MmapBackend::new(files, filled_buffers(), target, both, Advice::Random).unwrap();
        assert_eq!(write_and_sync(&mut mapped, &BLOCKS), RESULTS);
        assert_eq!(written_blocks(&all), WRITTEN);
    }

    #[test]
    fn write_counts_for_a_sync_once_it_has_ended() {
        let (mut files, _) = three_files();
        files.note_write(0, 0);
        files.note_write(1, 8192);
        files.note_end(1);
        let synced = RefCell::new(0);
        let count = |_: BorrowedFd<'_>| {
            *synced.borrow_mut() += 1;
            0
        };
        assert_eq!(files.sync_written(count), 0);
        assert_eq!(*synced.borrow(), 1);
        files.note_end(0);
        files.sync_written(count);
        assert_eq!(*synced.borrow(), 2);
    }

    #[test]
    fn extent_has_a_part_in_each_file() {
        let (files, _) = three_files();
        let parts = files.parts(Some(Extent::new(4096, 8192)));
        let extents: Vec<Extent> = parts.iter().filter_map(|part| part.extent).collect();
        assert_eq!(extents, [Extent::new(4096, 4096), Extent::new(0, 4096)]);
        assert_eq!(files.parts(None).len(), 3);
    }
}
