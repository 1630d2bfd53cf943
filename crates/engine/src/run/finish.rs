//! What follows the last worker: the sync after the last write, and the verification of written
//! blocks, which names every damaged one. A disk may hang here, too: both run in a separate thread,
//! and the watchdog limits them.

use crate::io::buffers::Buffers;
use crate::io::clock::{Clock as _, MonotonicClock, WorkerClock};
use crate::io::files::TargetFiles;
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
use diskproof_device::Pulse;
use diskproof_model::measurement::{
    BadBlock, Interruption, Measurement, ReadBack, StopReason, VerifyResult,
};
use diskproof_model::plan::{CachePolicy, EngineKind, SyncCall, Verify};
use diskproof_model::progress::{Phase, Watch};
use diskproof_model::series::{Cell, TimeSeries};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

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
        if open.is_left_open() {
            let blocks_written = Some(journal.written().count() as u64);
            measurement.verify = Some(VerifyResult {
                blocks_written,
                ..VerifyResult::default()
            });
            return Ok(());
        }
        let checked = Arc::new(VerifyProgress::default());
        let call = self.call_on(assignment, Phase::Verify, &checked.stop);
        let silent_ns = verify(&call, prepared.known.cache.used, journal, &checked, watch)?;
        let result = lock(&checked.result).clone();
        measurement.verify = Some(result);
        if let Some(silent_ns) = silent_ns {
            abandon_target(assignments, assignment.target);
            let now = MonotonicClock.now() - self.origin_ns;
            let since_ns = now.saturating_sub(silent_ns);
            let hang = self.stall_timeout.hang(since_ns, silent_ns);
            measurement.hang = Some(merge_hangs(measurement.hang, hang));
            if !hang.late {
                measurement.stopped = StopReason::Hung;
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

/// Makes the content of the files durable, one after the other.
fn sync_files(files: Vec<OwnedFd>) -> FinalSync {
    let mut clock = WorkerClock::new();
    let start_ns = clock.now();
    let mut result = 0;
    for file in &files {
        // An error is a negative errno. The first one counts; the other files are synced all the
        // same.
        let synced = sync(file.as_raw_fd(), SyncCall::Fdatasync);
        if result == 0 {
            result = synced;
        }
    }
    let interruption = clock.interruptions(clock.now(), || start_ns).pop();
    FinalSync {
        ns: clock.now().saturating_sub(start_ns),
        errno: -result,
        hang: None,
        interruption: interruption.map(|interruption| Interruption {
            requests: 1,
            ..interruption
        }),
    }
}

/// Adjacent blocks are read together, up to this size.
const READ_BYTES: usize = 1 << 20;
/// At most this many bad blocks are named; all are counted.
const NAMED_MAX: usize = 100;
/// Cells of the series that the watcher sees; a longer series merges them.
const CELLS_MAX: usize = 1024;

/// Shared by the reading thread and the supervisor.
#[derive(Debug, Default)]
struct VerifyProgress {
    result: Mutex<VerifyResult>,
    stop: AtomicBool,
}

/// Verifies every block in the journal of a workload. Ends early, with what was checked so far,
/// when the watcher interrupts, or when the target has not answered for too long; then it returns
/// the length of that silence, in nanoseconds.
fn verify(
    call: &WatchedCall<'_>,
    cache: CachePolicy,
    journal: &Arc<WriteJournal>,
    checked: &Arc<VerifyProgress>,
    watch: &mut dyn Watch,
) -> Result<Option<u64>, RunError> {
    let block_bytes = call.workload.block_bytes as usize;
    // A tool whose output shows the reads reads block by block.
    let read_bytes = if call.workload.shape.threads.ordinary_pages {
        block_bytes
    } else {
        READ_BYTES
    };
    let times = call.workload.shape.content.verified_times.unwrap_or(1);
    let written = journal.written().count() as u64;
    *lock(&checked.result) = VerifyResult {
        blocks_written: Some(written),
        read_back: Some(ReadBack::default()),
        ..VerifyResult::default()
    };
    let (mine, journal) = (Arc::clone(checked), Arc::clone(journal));
    let part = call.open.part_of_file().unwrap_or_default();
    let work = move |mut files: Vec<OwnedFd>| {
        if cache != CachePolicy::Direct {
            for file in &files {
                sync(file.as_raw_fd(), SyncCall::Fdatasync);
                let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
            }
        }
        if files.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let further = files.split_off(1);
        let files = TargetFiles::several(files.remove(0), further, part);
        let mut check = BlockCheck {
            files: &files,
            journal: &journal,
            buffers: Buffers::new(1, read_bytes.max(block_bytes))?,
            block_bytes,
            checked: &mine,
            damaged: BTreeSet::new(),
            is_repeated: false,
        };
        check.check_repeatedly(read_bytes, times)
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
    match call.run(watch, look, work)? {
        CallEnd::Returned(Ok(())) => Ok(None),
        CallEnd::Returned(Err(source)) => Err(worker_error(call.workload, call.open, source)),
        CallEnd::Silent(SilentCall { silent_ns, .. }) => Ok(Some(silent_ns)),
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
    fn check_repeatedly(&mut self, read_bytes: usize, times: u32) -> io::Result<()> {
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
        Ok(())
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
