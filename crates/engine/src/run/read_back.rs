//! Reads back what a verified workload wrote, in a thread that the watchdog limits, and names every
//! damaged block.

use crate::io::buffers::Buffers;
use crate::io::clock::{Clock as _, MonotonicClock};
use crate::io::files::TargetFiles;
use crate::io::sync::sync_all;
use crate::load::write_journal::{WriteJournal, WrittenBlock};
use crate::lock::lock;
use crate::run::cached_blocks::BlocksInCache;
use crate::run::error::{RunError, worker_error};
use crate::run::limits::largest_block;
use crate::run::watchdog::CallEnd;
use crate::run::watched_call::{CallProgress, SilentCall, WatchedCall};
use diskproof_device::PartOfFile;
use diskproof_model::measurement::{BadBlock, ReadBack, VerifyResult};
use diskproof_model::plan::CachePolicy;
use diskproof_model::progress::Watch;
use diskproof_model::series::{Cell, TimeSeries};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Adjacent blocks are read together, up to this size: disks reach their full rate with it.
const READ_BYTES: usize = 1 << 20;
/// At most this many bad blocks are named; all are counted. Chosen: more than a reader looks
/// through, and a record stays small.
const NAMED_MAX: usize = 100;
/// Cells of the series that the watcher sees; a longer series merges them. Chosen: more than a
/// display has columns.
const CELLS_MAX: usize = 1024;

/// Shared by the reading thread and the supervisor.
#[derive(Debug, Default)]
pub(super) struct VerifyProgress {
    /// The blocks so far.
    pub result: Mutex<VerifyResult>,
    /// Parts of files whose pages were looked for in the page cache so far.
    pub windows: AtomicU64,
    /// Set when the watcher interrupts.
    pub stop: AtomicBool,
}

impl VerifyProgress {
    /// True once the watcher has interrupted.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn work_done(&self) -> WorkDone {
        WorkDone {
            blocks: lock(&self.result).blocks,
            windows: self.windows.load(Ordering::Relaxed),
        }
    }
}

/// The work of the reading thread so far. It never shrinks, so a thread that moves changes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct WorkDone {
    blocks: u64,
    windows: u64,
}

/// The end of the verification of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VerifyEnd {
    /// All blocks were checked, or as many as the watcher allowed.
    Read,
    /// The content could not be made durable, with this errno. Nothing was checked.
    SyncFailed(i32),
    /// The target has not answered for this long, in nanoseconds.
    Silent(u64),
}

/// Verifies every block in the journal of a workload. Ends early, with what was checked so far,
/// when the watcher interrupts, or when the target has not answered for too long.
pub(super) fn verify(
    call: &WatchedCall<'_>,
    cache: CachePolicy,
    journal: &Arc<WriteJournal>,
    checked: &Arc<VerifyProgress>,
    watch: &mut dyn Watch,
) -> Result<VerifyEnd, RunError> {
    let block_bytes = journal.block_bytes as usize;
    // A tool whose output shows the reads reads block by block.
    let reads = if call.workload.shape.threads.ordinary_pages {
        ReadSizes::AsWritten(largest_block(call.workload) as usize)
    } else {
        ReadSizes::UpTo(READ_BYTES)
    };
    let written = journal.written().count() as u64;
    *lock(&checked.result) = VerifyResult {
        blocks_written: Some(written),
        read_back: Some(ReadBack::default()),
        ..VerifyResult::default()
    };
    let read_back = BlocksToRead {
        cache,
        journal: Arc::clone(journal),
        checked: Arc::clone(checked),
        part: call.open.part_of_file().unwrap_or_default(),
        block_bytes,
        reads,
        passes: ReadPasses {
            times: call.workload.shape.content.verified_times.unwrap_or(1),
            reads: call.workload.shape.content.verified_reads,
        },
    };
    let mut last_look = WorkDone::default();
    let look = |series: &mut TimeSeries, elapsed_ns| {
        let done = checked.work_done();
        let new_blocks = done.blocks - last_look.blocks;
        let cell = Cell {
            ops: new_blocks,
            bytes: new_blocks * block_bytes as u64,
            ..Cell::default()
        };
        series.add(elapsed_ns, &cell, CELLS_MAX);
        let has_moved = done != last_look;
        last_look = done;
        CallProgress {
            has_moved,
            done: done.blocks as f64 / written.max(1) as f64,
        }
    };
    match call.run(watch, look, |files| read_back.run(files))? {
        CallEnd::Returned(returned) => returned
            .value
            .map_err(|source| worker_error(call.workload, call.open, source)),
        CallEnd::Silent(SilentCall { silent_ns, .. }) => Ok(VerifyEnd::Silent(silent_ns)),
    }
}

/// The sizes of the reads that check blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadSizes {
    /// Each write is read by itself; the largest has so many bytes. What is left of a write that a
    /// later one has partly overwritten is checked without being counted as a read, as fio does not
    /// read it.
    AsWritten(usize),
    /// Adjacent blocks together, up to so many bytes.
    UpTo(usize),
}

impl ReadSizes {
    fn largest(self) -> usize {
        match self {
            Self::AsWritten(bytes) | Self::UpTo(bytes) => bytes,
        }
    }

    /// True if a block is read together with the one before it.
    fn joins(self, last: &WrittenBlock, next: &WrittenBlock) -> bool {
        match self {
            Self::AsWritten(_) => !last.is_last && !next.is_first,
            Self::UpTo(_) => true,
        }
    }
}

/// Blocks that are read together.
struct BlockRun {
    /// The offset of the first one.
    offset: u64,
    /// The generations that must be there, of one block after another.
    generations: Vec<u32>,
    /// True if the read counts.
    is_counted: bool,
}

/// The blocks that a workload wrote, and how to read them.
struct BlocksToRead {
    cache: CachePolicy,
    journal: Arc<WriteJournal>,
    checked: Arc<VerifyProgress>,
    /// The part of each file that is the target.
    part: PartOfFile,
    block_bytes: usize,
    reads: ReadSizes,
    passes: ReadPasses,
}

/// How often the blocks are checked. The first pass checks every block.
#[derive(Debug, Clone, Copy)]
struct ReadPasses {
    /// The number of passes, where no number of reads is set.
    times: u32,
    /// The reads of all passes.
    reads: Option<u64>,
}

impl ReadPasses {
    /// True if another pass follows on so many passes and reads.
    fn goes_on(self, passes: u32, reads: u64) -> bool {
        match self.reads {
            // A pass without a read would be repeated for ever.
            Some(reads_max) => reads > 0 && reads < reads_max,
            None => passes < self.times,
        }
    }
}

impl BlocksToRead {
    /// Makes the blocks durable, drops them from the page cache, then reads and checks them with
    /// these files of the target. The page cache is looked at before the first read, since each
    /// read brings others into it.
    fn run(self, mut files: Vec<OwnedFd>) -> io::Result<VerifyEnd> {
        if self.cache != CachePolicy::Direct {
            let errno = sync_all(&files);
            if errno != 0 {
                return Ok(VerifyEnd::SyncFailed(errno));
            }
        }
        if files.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let further = files.split_off(1);
        let files = TargetFiles::several(files.remove(0), further, self.part);
        if self.cache != CachePolicy::Direct {
            let blocks = BlocksInCache {
                files: &files,
                journal: &self.journal,
                block_bytes: self.block_bytes as u64,
                windows: &self.checked.windows,
                stop: &self.checked.stop,
            };
            // A cache that cannot be looked at may hold all of them.
            let cached_blocks = match blocks.drop_from_cache() {
                Ok(cached_blocks) => cached_blocks,
                Err(_) => self.journal.written().count() as u64,
            };
            lock(&self.checked.result).cached_blocks = Some(cached_blocks);
            // Blocks that were not looked for could come from the cache.
            if self.checked.is_stopped() {
                return Ok(VerifyEnd::Read);
            }
        }
        let mut check = BlockCheck {
            files: &files,
            journal: &self.journal,
            buffers: Buffers::new(1, self.reads.largest().max(self.block_bytes))?,
            block_bytes: self.block_bytes,
            checked: &self.checked,
            damaged: BTreeSet::new(),
            is_repeated: false,
            reads_done: 0,
        };
        check.check_repeatedly(self.reads, self.passes);
        Ok(VerifyEnd::Read)
    }
}

/// Reads back what a workload wrote.
struct BlockCheck<'a> {
    files: &'a TargetFiles,
    journal: &'a WriteJournal,
    buffers: Buffers,
    block_bytes: usize,
    checked: &'a VerifyProgress,
    /// Offsets of the damaged blocks so far, each of which counts once.
    damaged: BTreeSet<u64>,
    /// True once every block has been checked.
    is_repeated: bool,
    /// Reads so far.
    reads_done: u64,
}

impl BlockCheck<'_> {
    /// Checks every block, and further passes again.
    fn check_repeatedly(&mut self, reads: ReadSizes, passes: ReadPasses) {
        let started_ns = MonotonicClock.now();
        let mut passes_done = 0;
        loop {
            self.check_once(reads, passes);
            passes_done += 1;
            if self.checked.is_stopped() || !passes.goes_on(passes_done, self.reads_done) {
                break;
            }
            self.is_repeated = true;
        }
        if let Some(read) = &mut lock(&self.checked.result).read_back {
            read.wall_ns = MonotonicClock.now() - started_ns;
        }
    }

    fn check_once(&mut self, reads: ReadSizes, passes: ReadPasses) {
        let journal = self.journal;
        let blocks_max = (reads.largest() / self.block_bytes).max(1);
        let mut written = journal.written().peekable();
        while let Some(first) = written.next() {
            let mut generations = vec![first.generation];
            let mut last = first;
            while generations.len() < blocks_max {
                let end = first.offset + (generations.len() * self.block_bytes) as u64;
                let Some(next) =
                    written.next_if(|next| next.offset == end && reads.joins(&last, next))
                else {
                    break;
                };
                generations.push(next.generation);
                last = next;
            }
            let is_counted = match reads {
                ReadSizes::AsWritten(_) => first.is_first && last.is_last,
                ReadSizes::UpTo(_) => true,
            };
            self.check_adjacent(&BlockRun {
                offset: first.offset,
                generations,
                is_counted,
            });
            self.reads_done += u64::from(is_counted);
            let has_all_reads = passes.reads.is_some_and(|reads| self.reads_done >= reads);
            if self.checked.is_stopped() || (self.is_repeated && has_all_reads) {
                return;
            }
        }
    }

    /// Reads blocks that follow each other, and checks them.
    fn check_adjacent(&mut self, run: &BlockRun) {
        let BlockRun {
            offset,
            ref generations,
            is_counted,
        } = *run;
        let block_bytes = self.block_bytes;
        let bytes = generations.len() * block_bytes;
        let started_ns = MonotonicClock.now();
        let outcome = read_all(self.files, self.buffers.bytes_mut(0, bytes), offset);
        if is_counted
            && let (Ok(()), Some(read)) = (&outcome, &mut lock(&self.checked.result).read_back)
        {
            read.latency.record(MonotonicClock.now() - started_ns);
            read.bytes += bytes as u64;
        }
        for (index, generation) in generations.iter().enumerate() {
            let block_offset = offset + (index * block_bytes) as u64;
            let bad = if outcome.is_ok() {
                let block = &self.buffers.bytes(0, bytes)[index * block_bytes..][..block_bytes];
                self.journal.find_damage(block, block_offset, *generation)
            } else {
                self.reread(block_offset, *generation)
            };
            self.count(block_offset, bad);
        }
    }

    /// Reads and checks a single block of a read that failed: one bad sector fails all of it.
    fn reread(&mut self, offset: u64, generation: u32) -> Option<BadBlock> {
        let block = self.buffers.bytes_mut(0, self.block_bytes);
        match read_all(self.files, block, offset) {
            Ok(()) => self.journal.find_damage(block, offset, generation),
            Err(error) => Some(BadBlock {
                offset_bytes: offset,
                why: format!("cannot be read: {error}"),
                written_to_bytes: None,
            }),
        }
    }

    /// Counts a block that was read: as a block in the first pass only, as damaged once. The lock
    /// is not held during a read.
    fn count(&mut self, offset: u64, bad: Option<BadBlock>) {
        let mut result = lock(&self.checked.result);
        if !self.is_repeated {
            result.blocks += 1;
        }
        let Some(bad) = bad else {
            if !self.is_repeated {
                result.places.add_intact(offset, self.block_bytes as u64);
            }
            return;
        };
        if !self.damaged.insert(offset) {
            return;
        }
        result.bad_blocks += 1;
        result.places.add_damaged(&bad, self.block_bytes as u64);
        if result.bad.len() < NAMED_MAX {
            result.bad.push(bad);
        }
    }
}

/// Fills `bytes` from this offset of the target, across the ends of its files.
fn read_all(files: &TargetFiles, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let next = offset + done as u64;
        let place = files.place(next);
        let room = files.bytes_in_file(next, bytes.len() - done);
        let rest = &mut bytes[done..done + room];
        match rustix::io::pread(place.fd, rest, place.offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(moved) => done += moved,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 4096;

    /// The search takes longer than a silence that means a hang where terabytes were written.
    #[test]
    fn search_in_the_page_cache_is_work() {
        let progress = VerifyProgress::default();
        let before = progress.work_done();
        progress.windows.fetch_add(1, Ordering::Relaxed);
        assert_ne!(progress.work_done(), before);
    }

    /// fio reads only the writes that no later one has overwritten, also in part.
    #[test]
    fn rest_of_an_overwritten_write_is_checked_and_no_read() {
        let mut path = std::env::temp_dir();
        path.push(format!("diskproof-read-back-{}", std::process::id()));
        let journal = WriteJournal::new(1, 0, 12 * BLOCK, BLOCK as u32);
        let mut data = vec![0u8; 12 * BLOCK as usize];
        // The rest of the last-but-one write lies behind a whole write.
        for (first, blocks) in [(0, 4), (2, 3), (5, 1), (6, 2), (9, 3), (8, 2)] {
            let (offset, len) = (first * BLOCK, blocks * BLOCK as u32);
            let generation = journal.claim(offset, len).unwrap();
            let written = &mut data[offset as usize..][..len as usize];
            journal.sign(written, offset, generation);
            journal.confirm(offset, len, generation);
        }
        // A damaged block of what is left of the first write.
        data[BLOCK as usize + 100] ^= 1;
        std::fs::write(&path, &data).unwrap();
        let checked = Arc::new(VerifyProgress::default());
        lock(&checked.result).read_back = Some(ReadBack::default());
        let blocks = BlocksToRead {
            cache: CachePolicy::Direct,
            journal: Arc::new(journal),
            checked: Arc::clone(&checked),
            part: PartOfFile::default(),
            block_bytes: BLOCK as usize,
            reads: ReadSizes::AsWritten(4 * BLOCK as usize),
            passes: ReadPasses {
                times: 1,
                reads: None,
            },
        };
        let file = std::fs::File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(blocks.run(vec![file.into()]).unwrap(), VerifyEnd::Read);
        let result = lock(&checked.result);
        let read = result.read_back.as_ref().unwrap();
        assert_eq!((read.latency.count(), read.bytes), (4, 8 * BLOCK));
        assert_eq!((result.blocks, result.bad_blocks), (12, 1));
    }

    /// The kernel refuses to sync /dev/null: EINVAL.
    #[test]
    fn blocks_that_cannot_be_made_durable_are_not_checked() {
        let journal = Arc::new(WriteJournal::new(1, 0, BLOCK, BLOCK as u32));
        let generation = journal.claim(0, BLOCK as u32).unwrap();
        journal.confirm(0, BLOCK as u32, generation);
        let checked = Arc::new(VerifyProgress::default());
        let blocks = BlocksToRead {
            cache: CachePolicy::Buffered,
            journal,
            checked: Arc::clone(&checked),
            part: PartOfFile::default(),
            block_bytes: BLOCK as usize,
            reads: ReadSizes::UpTo(BLOCK as usize),
            passes: ReadPasses {
                times: 1,
                reads: None,
            },
        };
        let end = blocks
            .run(vec![std::fs::File::open("/dev/null").unwrap().into()])
            .unwrap();
        assert_eq!(end, VerifyEnd::SyncFailed(libc::EINVAL));
        assert_eq!(*lock(&checked.result), VerifyResult::default());
    }
}
