//! What follows the last worker: the sync after the last write, and the verification of written
//! blocks, which names every damaged one. A disk may hang here, too: both run in a separate thread,
//! and the watchdog limits them.

use crate::io::buffers::Buffers;
use crate::io::clock::{Clock as _, MonotonicClock, WorkerClock};
use crate::io::errno_name;
use crate::io::files::TargetFiles;
use crate::io::residency::ResidentPages;
use crate::io::sync::sync;
use crate::load::write_journal::WriteJournal;
use crate::lock::lock;
use crate::run::assemble::FinalSync;
use crate::run::error::{RunError, worker_error};
use crate::run::hang::merge_hangs;
use crate::run::session::Session;
use crate::run::watchdog::CallEnd;
use crate::run::watched_call::{CallProgress, SilentCall, WatchedCall};
use crate::run::workers::{Assignment, abandon_target};
use diskproof_device::{PartOfFile, Pulse};
use diskproof_model::measurement::{
    BadBlock, Interruption, Measurement, OpKind, ReadBack, StopReason, VerifyResult,
};
use diskproof_model::plan::{CachePolicy, EngineKind, SyncCall, Verify};
use diskproof_model::progress::{Phase, Watch};
use diskproof_model::series::{Cell, TimeSeries};
use rustix::fs::{Advice, fadvise};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

impl Session {
    /// Makes durable what was written to the target of the assignment at `index`. A target that
    /// does not answer is abandoned, and its sync counts as one that timed out.
    pub(super) fn final_sync(
        &self,
        assignments: &[Assignment<'_>],
        index: usize,
        watch: &mut dyn Watch,
    ) -> Result<FinalSync, RunError> {
        let assignment = &assignments[index];
        let mut pulse = Pulse::start(assignment.open.identity());
        let limit_ns = self.stall_timeout.with_active_disk_ns();
        // The next workload obeys what the watcher answers here: a sync ends by itself.
        let look = |_: &mut TimeSeries, waited_ns| CallProgress {
            has_moved: pulse.beats() && waited_ns < limit_ns,
            done: 1.0,
        };
        let stop = AtomicBool::new(false);
        let call = self.call_on(assignment, Phase::Measure, &stop);
        Ok(match call.run(watch, look, sync_files)? {
            CallEnd::Returned(synced) => synced,
            CallEnd::Silent(SilentCall { lasted_ns, .. }) => {
                abandon_target(assignments, assignment.target);
                let since_ns = MonotonicClock.now().saturating_sub(lasted_ns);
                FinalSync {
                    ns: lasted_ns,
                    errno: libc::ETIMEDOUT,
                    hang: Some(self.stall_timeout.hang(since_ns, lasted_ns)),
                    interruption: None,
                }
            }
        })
    }

    /// Reads back the blocks that the verified workload of the assignment at `index` wrote, and
    /// adds the verdict to its measurement. Does nothing for other workloads. An abandoned target
    /// is not read; one that hangs now is abandoned.
    pub(super) fn verify_written(
        &self,
        measurement: &mut Measurement,
        assignments: &[Assignment<'_>],
        index: usize,
        watch: &mut dyn Watch,
    ) -> Result<(), RunError> {
        let assignment = &assignments[index];
        let Assignment {
            workload,
            prepared,
            open,
            ..
        } = *assignment;
        let does_verify =
            prepared.known.engine.used != EngineKind::Null && workload.verify == Verify::Checksum;
        let Some(journal) = prepared.journal.as_ref().filter(|_| does_verify) else {
            return Ok(());
        };
        let cache = prepared.known.cache.used;
        if open.is_left_open() || has_lost_pages(measurement, cache) {
            let blocks_written = Some(journal.written().count() as u64);
            measurement.verify = Some(VerifyResult {
                blocks_written,
                ..VerifyResult::default()
            });
            return Ok(());
        }
        let checked = Arc::new(VerifyProgress::default());
        let call = self.call_on(assignment, Phase::Verify, &checked.stop);
        let end = verify(&call, cache, journal, &checked, watch)?;
        let result = lock(&checked.result).clone();
        measurement.verify = Some(result);
        match end {
            VerifyEnd::Read => {}
            VerifyEnd::SyncFailed(errno) => {
                let sync = measurement.ops.entry(OpKind::Sync).or_default();
                *sync.errors.entry(errno_name(errno)).or_default() += 1;
            }
            VerifyEnd::Silent(silent_ns) => {
                abandon_target(assignments, assignment.target);
                let now = MonotonicClock.now() - self.origin_ns;
                let since_ns = now.saturating_sub(silent_ns);
                let hang = self.stall_timeout.hang(since_ns, silent_ns);
                measurement.hang = Some(merge_hangs(measurement.hang, hang));
                if !hang.late {
                    measurement.stopped = StopReason::Hung;
                }
            }
        }
        if checked.stop.load(Ordering::Relaxed) {
            measurement.stopped = StopReason::Interrupted;
        }
        Ok(())
    }

    /// Prepares a call on the target of an assignment, whose workers have ended.
    fn call_on<'a>(
        &self,
        assignment: &Assignment<'a>,
        phase: Phase,
        stop: &'a AtomicBool,
    ) -> WatchedCall<'a> {
        WatchedCall {
            workload: assignment.workload,
            open: assignment.open,
            target: Some(assignment.target),
            phase,
            stall_ns: self.stall_timeout.ns(),
            stop,
        }
    }
}

/// True if writes went to the page cache and a sync failed. The kernel may have dropped pages that
/// it could not write: the disk never acknowledged them, so a lost block does not prove it faulty.
fn has_lost_pages(measurement: &Measurement, cache: CachePolicy) -> bool {
    let sync = measurement.ops.get(&OpKind::Sync);
    cache != CachePolicy::Direct && sync.is_some_and(|op| !op.errors.is_empty())
}

/// Makes the content of the files durable, one after the other, and measures that.
fn sync_files(files: Vec<OwnedFd>) -> FinalSync {
    let mut clock = WorkerClock::new();
    let start_ns = clock.now();
    let errno = sync_all(&files);
    let interruption = clock.interruptions(clock.now(), || start_ns).pop();
    FinalSync {
        ns: clock.now().saturating_sub(start_ns),
        errno,
        hang: None,
        interruption: interruption.map(|interruption| Interruption {
            requests: 1,
            ..interruption
        }),
    }
}

/// Syncs all files, also those after one that fails. Returns 0, or the errno of the first failure.
fn sync_all(files: &[OwnedFd]) -> i32 {
    let mut first_errno = 0;
    for file in files {
        let result = sync(file.as_raw_fd(), SyncCall::Fdatasync);
        if first_errno == 0 {
            first_errno = -result;
        }
    }
    first_errno
}

/// Adjacent blocks are read together, up to this size.
const READ_BYTES: usize = 1 << 20;
/// At most this many bad blocks are named; all are counted.
const NAMED_MAX: usize = 100;
/// The kernel may hold a page for a moment, and does not drop it then.
const DROP_TRIES: u32 = 3;
/// The pause before the next try.
const DROP_PAUSE: Duration = Duration::from_millis(50);
/// Cells of the series that the watcher sees; a longer series merges them.
const CELLS_MAX: usize = 1024;

/// Shared by the reading thread and the supervisor.
#[derive(Debug, Default)]
struct VerifyProgress {
    result: Mutex<VerifyResult>,
    stop: AtomicBool,
}

/// How the verification of a workload ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VerifyEnd {
    /// All blocks were checked, or as many as the watcher allowed.
    Read,
    /// The content could not be made durable, with this errno. Nothing was checked.
    SyncFailed(i32),
    /// The target has not answered for this long, in nanoseconds.
    Silent(u64),
}

/// Verifies every block in the journal of a workload. Ends early, with what was checked so far,
/// when the watcher interrupts, or when the target has not answered for too long.
fn verify(
    call: &WatchedCall<'_>,
    cache: CachePolicy,
    journal: &Arc<WriteJournal>,
    checked: &Arc<VerifyProgress>,
    watch: &mut dyn Watch,
) -> Result<VerifyEnd, RunError> {
    let block_bytes = call.workload.block_bytes as usize;
    // A tool whose output shows the reads reads block by block.
    let read_bytes = if call.workload.shape.threads.ordinary_pages {
        block_bytes
    } else {
        READ_BYTES
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
        read_bytes,
        times: call.workload.shape.content.verified_times.unwrap_or(1),
    };
    let mut blocks_before = 0;
    let look = |series: &mut TimeSeries, elapsed_ns| {
        let blocks = lock(&checked.result).blocks;
        let cell = Cell {
            ops: blocks - blocks_before,
            bytes: (blocks - blocks_before) * block_bytes as u64,
            ..Cell::default()
        };
        series.add(elapsed_ns, &cell, CELLS_MAX);
        let has_moved = blocks > blocks_before;
        blocks_before = blocks;
        CallProgress {
            has_moved,
            done: blocks as f64 / written.max(1) as f64,
        }
    };
    match call.run(watch, look, |files| read_back.run(files))? {
        CallEnd::Returned(Ok(end)) => Ok(end),
        CallEnd::Returned(Err(source)) => Err(worker_error(call.workload, call.open, source)),
        CallEnd::Silent(SilentCall { silent_ns, .. }) => Ok(VerifyEnd::Silent(silent_ns)),
    }
}

/// The blocks that a workload wrote, and how to read them.
struct BlocksToRead {
    cache: CachePolicy,
    journal: Arc<WriteJournal>,
    checked: Arc<VerifyProgress>,
    /// The part of each file that is the target.
    part: PartOfFile,
    block_bytes: usize,
    read_bytes: usize,
    /// The number of times that every block is checked.
    times: u32,
}

impl BlocksToRead {
    /// Reads and checks the blocks of the target with these files, past the page cache.
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
            // A cache that cannot be looked at may hold all of them.
            let cached_blocks = match self.drop_cached(&files) {
                Ok(cached_blocks) => cached_blocks,
                Err(_) => self.journal.written().count() as u64,
            };
            lock(&self.checked.result).cached_blocks = Some(cached_blocks);
        }
        let mut check = BlockCheck {
            files: &files,
            journal: &self.journal,
            buffers: Buffers::new(1, self.read_bytes.max(self.block_bytes))?,
            block_bytes: self.block_bytes,
            checked: &self.checked,
            damaged: BTreeSet::new(),
            is_repeated: false,
        };
        check.check_repeatedly(self.read_bytes, self.times);
        Ok(VerifyEnd::Read)
    }

    /// Drops the files from the page cache, and counts the blocks that it holds all the same.
    fn drop_cached(&self, files: &TargetFiles) -> io::Result<u64> {
        let mut cached = 0;
        for _ in 0..DROP_TRIES {
            for part in files.parts(None) {
                let _ = fadvise(part.fd, 0, None, Advice::DontNeed);
            }
            cached = self.count_cached(files)?;
            if cached == 0 {
                break;
            }
            std::thread::sleep(DROP_PAUSE);
        }
        Ok(cached)
    }

    /// Counts the blocks that the page cache holds although it was told to drop them: its pages may
    /// be locked or mapped, or the filesystem has no other place for them. Comes before the first
    /// read, since each read brings others into the cache.
    fn count_cached(&self, files: &TargetFiles) -> io::Result<u64> {
        let mut cached = 0;
        let mut seen: Option<(usize, ResidentPages)> = None;
        for (offset, _) in self.journal.written() {
            let place = files.place(offset);
            let index = files.index(offset);
            let resident = match seen.take() {
                Some((file, resident)) if file == index && resident.covers(place.offset) => {
                    resident
                }
                _ => ResidentPages::around(place.fd, place.offset)?,
            };
            if resident.holds_any(place.offset, self.block_bytes as u64) {
                cached += 1;
            }
            seen = Some((index, resident));
        }
        Ok(cached)
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
}

impl BlockCheck<'_> {
    /// Checks every block `times` times, by reads of up to `read_bytes`.
    fn check_repeatedly(&mut self, read_bytes: usize, times: u32) {
        let started_ns = MonotonicClock.now();
        for _ in 0..times.max(1) {
            self.check_once(read_bytes);
            if self.checked.stop.load(Ordering::Relaxed) {
                break;
            }
            self.is_repeated = true;
        }
        if let Some(read) = &mut lock(&self.checked.result).read_back {
            read.wall_ns = MonotonicClock.now() - started_ns;
        }
    }

    fn check_once(&mut self, read_bytes: usize) {
        let blocks_max = (read_bytes / self.block_bytes).max(1);
        let mut written = self.journal.written().peekable();
        while let Some((offset, generation)) = written.next() {
            let mut generations = vec![generation];
            while generations.len() < blocks_max {
                let end = offset + (generations.len() * self.block_bytes) as u64;
                let Some((_, next)) = written.next_if(|(start, _)| *start == end) else {
                    break;
                };
                generations.push(next);
            }
            self.check_adjacent(offset, &generations);
            if self.checked.stop.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    /// Checks the blocks of these generations, which follow each other from `offset` on.
    fn check_adjacent(&mut self, offset: u64, generations: &[u32]) {
        let block_bytes = self.block_bytes;
        let bytes = generations.len() * block_bytes;
        let started_ns = MonotonicClock.now();
        let outcome = read_all(self.files, self.buffers.bytes_mut(0, bytes), offset);
        if let (Ok(()), Some(read)) = (&outcome, &mut lock(&self.checked.result).read_back) {
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

    /// Counts a block that was read. The lock is not held during a read.
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
    use crate::io::Extent;
    use crate::testing::simulate::simulated;
    use diskproof_model::plan::Workload;
    use rustix::fs::{Mode, OFlags};

    const BLOCK: u64 = 4096;

    /// The kernel refuses to sync it: EINVAL.
    fn null() -> OwnedFd {
        std::fs::File::open("/dev/null").unwrap().into()
    }

    /// The kernel refuses to sync a description of a path alone: EBADF.
    fn path() -> OwnedFd {
        rustix::fs::open("/", OFlags::PATH, Mode::empty()).unwrap()
    }

    #[test]
    fn first_sync_that_fails_gives_the_errno() {
        assert_eq!(sync_all(&[]), 0);
        assert_eq!(sync_all(&[null(), path()]), libc::EINVAL);
        assert_eq!(sync_all(&[path(), null()]), libc::EBADF);
    }

    #[test]
    fn blocks_that_cannot_be_made_durable_are_not_checked() {
        let journal = Arc::new(WriteJournal::new(1, 0, BLOCK, BLOCK as u32));
        let generation = journal.claim(0).unwrap();
        journal.confirm(0, generation);
        let checked = Arc::new(VerifyProgress::default());
        let blocks = BlocksToRead {
            cache: CachePolicy::Buffered,
            journal,
            checked: Arc::clone(&checked),
            part: PartOfFile::default(),
            block_bytes: BLOCK as usize,
            read_bytes: BLOCK as usize,
            times: 1,
        };
        let end = blocks.run(vec![null()]).unwrap();
        assert_eq!(end, VerifyEnd::SyncFailed(libc::EINVAL));
        assert_eq!(*lock(&checked.result), VerifyResult::default());
    }

    #[test]
    fn failed_sync_loses_pages_only_of_the_page_cache() {
        let mut measurement = simulated(&Workload::named("w"), Extent::default());
        assert!(!has_lost_pages(&measurement, CachePolicy::Buffered));
        let sync = measurement.ops.entry(OpKind::Sync).or_default();
        sync.errors.insert("EIO".to_owned(), 1);
        assert!(has_lost_pages(&measurement, CachePolicy::Buffered));
        assert!(!has_lost_pages(&measurement, CachePolicy::Direct));
    }
}
