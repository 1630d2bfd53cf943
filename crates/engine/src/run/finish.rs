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
use crate::run::hang::join;
use crate::run::session::Session;
use crate::run::watched_call::WatchedCall;
use crate::run::workers::{Assignment, leave_open};
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
    /// Makes durable what was written by the assignment at `index`.
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
        let look = |_: &mut TimeSeries, waited_ns, _| (pulse.beats() && waited_ns < limit_ns, 1.0);
        let work = |files: Vec<OwnedFd>| {
            let mut clock = WorkerClock::new();
            let start_ns = clock.now();
            let results = files
                .iter()
                .map(|file| sync(file.as_raw_fd(), SyncCall::Fdatasync));
            let result = results.min().unwrap_or(0);
            let interruption = clock.interruptions(clock.now(), || start_ns).pop();
            let ns = clock.now().saturating_sub(start_ns);
            (
                ns,
                -result,
                interruption.map(|one| Interruption { requests: 1, ..one }),
            )
        };
        let stop = AtomicBool::new(false);
        let call = self.call_on(assignment, Phase::Measure, &stop);
        Ok(match call.run(watch, look, work)? {
            Ok((ns, errno, interruption)) => FinalSync {
                ns,
                errno,
                hang: None,
                interruption,
            },
            Err((lasted, _)) => {
                leave_open(assignments, assignment.target);
                let (ns, now) = (lasted.as_nanos() as u64, MonotonicClock.now());
                FinalSync {
                    ns,
                    errno: libc::ETIMEDOUT,
                    hang: Some(self.stall_timeout.hang(now.saturating_sub(ns), ns)),
                    interruption: None,
                }
            }
        })
    }

    /// Reads back what a verified workload wrote, that of the assignment at `index`.
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
            leave_open(assignments, assignment.target);
            let now = MonotonicClock.now() - self.origin_ns;
            let since_ns = now.saturating_sub(silent_ns);
            let hang = self.stall_timeout.hang(since_ns, silent_ns);
            measurement.hang = Some(join(measurement.hang, hang));
            if !hang.late {
                measurement.stopped = StopReason::Hung;
            }
        }
        if checked.stop.load(Ordering::Relaxed) {
            measurement.stopped = StopReason::Interrupted;
        }
        Ok(())
    }

    /// A call on the target of an assignment, once its workers have ended.
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

/// Adjacent blocks are read together, up to this size.
const READ_BYTES: usize = 1 << 20;
/// At most this many bad blocks are named; all are counted.
const NAMED_MAX: usize = 100;
/// Cells of the series for the watcher.
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
            block: block_bytes,
            checked: &mine,
            damaged: BTreeSet::new(),
            is_repeated: false,
        };
        check.all(read_bytes, times)
    };
    let mut before = 0;
    let look = |series: &mut TimeSeries, elapsed_ns, _| {
        let blocks = lock(&checked.result).blocks;
        let cell = Cell {
            ops: blocks - before,
            bytes: (blocks - before) * block_bytes as u64,
            ..Cell::default()
        };
        series.add(elapsed_ns, &cell, CELLS_MAX);
        let has_moved = blocks > std::mem::replace(&mut before, blocks);
        (has_moved, blocks as f64 / written.max(1) as f64)
    };
    match call.run(watch, look, work)? {
        Ok(Ok(())) => Ok(None),
        Ok(Err(source)) => Err(worker_error(call.workload, call.open, source)),
        Err((_, silent_ns)) => Ok(Some(silent_ns)),
    }
}

/// Reads back what a workload wrote.
struct BlockCheck<'a> {
    files: &'a TargetFiles,
    journal: &'a WriteJournal,
    buffers: Buffers,
    block: usize,
    checked: &'a VerifyProgress,
    /// The blocks that were found damaged. None counts twice.
    damaged: BTreeSet<u64>,
    /// Whether every block has been checked before.
    is_repeated: bool,
}

impl BlockCheck<'_> {
    /// Checks every block so often, by reads of up to `read_bytes`.
    fn all(&mut self, read_bytes: usize, times: u32) -> io::Result<()> {
        let started_ns = MonotonicClock.now();
        for _ in 0..times.max(1) {
            self.each(read_bytes);
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

    fn each(&mut self, read_bytes: usize) {
        let mut written = self.journal.written().peekable();
        while let Some((offset, generation)) = written.next() {
            let mut run = vec![generation];
            while run.len() < (read_bytes / self.block).max(1)
                && let Some((_, next)) =
                    written.next_if(|(at, _)| *at == offset + (run.len() * self.block) as u64)
            {
                run.push(next);
            }
            self.run(offset, &run);
            if self.checked.stop.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    /// Checks blocks that follow each other from `offset` on.
    fn run(&mut self, offset: u64, run: &[u32]) {
        let block = self.block;
        let started_ns = MonotonicClock.now();
        let outcome = read_all(
            self.files,
            self.buffers.bytes_mut(0, run.len() * block),
            offset,
        );
        if let (Ok(()), Some(read)) = (&outcome, &mut lock(&self.checked.result).read_back) {
            read.latency.record(MonotonicClock.now() - started_ns);
            read.bytes += (run.len() * block) as u64;
        }
        for (index, generation) in run.iter().enumerate() {
            let at = offset + (index * block) as u64;
            let bad = match &outcome {
                Ok(()) => self.journal.find_damage(
                    &self.buffers.bytes(0, run.len() * block)[index * block..][..block],
                    at,
                    *generation,
                ),
                // One bad sector fails the whole read; reading block by block finds it.
                Err(_) => match read_all(self.files, self.buffers.bytes_mut(0, block), at) {
                    Ok(()) => {
                        let found = self.buffers.bytes(0, block);
                        self.journal.find_damage(found, at, *generation)
                    }
                    Err(error) => Some(BadBlock {
                        offset_bytes: at,
                        why: format!("cannot be read: {error}"),
                        written_to_bytes: None,
                    }),
                },
            };
            self.count(at, bad);
        }
    }

    /// Counts a block that was read. The lock is not held during a read.
    fn count(&mut self, at: u64, bad: Option<BadBlock>) {
        let mut result = lock(&self.checked.result);
        if !self.is_repeated {
            result.blocks += 1;
        }
        let Some(bad) = bad else {
            if !self.is_repeated {
                result.places.add_intact(at, self.block as u64);
            }
            return;
        };
        if !self.damaged.insert(at) {
            return;
        }
        result.bad_blocks += 1;
        result.places.add_damaged(&bad, self.block as u64);
        if result.bad.len() < NAMED_MAX {
            result.bad.push(bad);
        }
    }
}

fn read_all(files: &TargetFiles, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let at = offset + done as u64;
        let place = files.place(at);
        let room = files.bytes_in_file(at, bytes.len() - done);
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
