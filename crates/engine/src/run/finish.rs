//! What follows the last worker: the sync after the last write, and the verification of written
//! blocks, which names every damaged one. A disk may hang here, too: both run in a separate thread,
//! and the watchdog limits them.

use crate::io::buffers::Buffers;
use crate::io::clock::{Clock as _, MonotonicClock, WorkerClock};
use crate::io::sync::sync;
use crate::load::write_journal::WriteJournal;
use crate::lock::lock;
use crate::run::assemble::FinalSync;
use crate::run::error::{RunError, worker_error};
use crate::run::hang::join;
use crate::run::session::Session;
use crate::run::watchdog::{Sign, call_with_timeout};
use crate::run::workers::{Assignment, leave_open};
use diskproof_device::Pulse;
use diskproof_model::measurement::{
    BadBlock, Interruption, Measurement, ReadBack, SERIES_INTERVAL_NS, StopReason, VerifyResult,
};
use diskproof_model::plan::{CachePolicy, EngineKind, SyncCall, Verify};
use diskproof_model::progress::{Control, Phase, Progress, Silence, Watch};
use diskproof_model::series::{Cell, TimeSeries};
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
        let mut pulse = Pulse::of(assignment.open.identity());
        let (mut waited_ns, mut before_ns) = (0, 0);
        let limit_ns = self.stall_timeout.with_active_disk_ns();
        let look = |silent_ns: u64| {
            waited_ns += silent_ns.saturating_sub(before_ns);
            let beats = pulse.beats() && waited_ns < limit_ns;
            before_ns = if beats { 0 } else { silent_ns };
            // The next workload obeys what the watcher answers here: a sync ends by itself.
            let control = watch.tick(&Progress {
                name: &assignment.workload.name,
                phase: Phase::Measure,
                elapsed_ns: waited_ns,
                done: Some(1.0),
                series: &TimeSeries::new(SERIES_INTERVAL_NS),
                silence: Some(Silence {
                    target: assignment.target,
                    length_ns: silent_ns,
                }),
                resume_bytes: None,
            });
            match control {
                Control::Interrupt => Sign::Unwanted,
                _ if beats => Sign::Progress,
                _ => Sign::Silence,
            }
        };
        let work = |fd: std::os::fd::OwnedFd| {
            let mut clock = WorkerClock::new();
            let start_ns = clock.now();
            let result = sync(fd.as_raw_fd(), SyncCall::Fdatasync);
            let interruption = clock.interruptions(clock.now(), || start_ns).pop();
            let ns = clock.now().saturating_sub(start_ns);
            (
                ns,
                -result,
                interruption.map(|one| Interruption { requests: 1, ..one }),
            )
        };
        let failed = |source| worker_error(assignment.workload, assignment.open, source);
        let waited = call_with_timeout(assignment.open.fd(), self.stall_timeout.ns(), look, work)
            .map_err(failed)?;
        Ok(match waited {
            Ok((ns, errno, interruption)) => FinalSync {
                ns,
                errno,
                hang: None,
                interruption,
            },
            Err(lasted) => {
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
        let (result, control, silent_ns) =
            verify(assignment, journal, self.stall_timeout.ns(), watch)
                .map_err(|source| worker_error(workload, open, source))?;
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
        if control == Control::Interrupt {
            measurement.stopped = StopReason::Interrupted;
        }
        Ok(())
    }
}

/// Adjacent blocks are read together, up to this size.
const READ_BYTES: usize = 1 << 20;
/// At most this many bad blocks are named; all are counted.
const NAMED_MAX: usize = 100;
/// Cells of the series for the watcher.
const CELL_NS: u64 = 50_000_000;
const CELLS_MAX: usize = 1024;

/// Shared by the reading thread and the supervisor.
#[derive(Debug, Default)]
struct VerifyProgress {
    result: Mutex<VerifyResult>,
    stop: AtomicBool,
}

/// Verifies every block in the journal of a workload. Ends early, with what was checked so far,
/// when the watcher interrupts, or when the target has not answered for `stall_ns`; then it returns
/// the length of that silence, in nanoseconds.
fn verify(
    assignment: &Assignment<'_>,
    journal: &Arc<WriteJournal>,
    stall_ns: u64,
    watch: &mut dyn Watch,
) -> io::Result<(VerifyResult, Control, Option<u64>)> {
    let (workload, cache) = (assignment.workload, assignment.prepared.known.cache.used);
    let block_bytes = workload.block_bytes as usize;
    // A tool whose output shows the reads reads block by block.
    let read_bytes = if workload.shape.ordinary_pages {
        block_bytes
    } else {
        READ_BYTES
    };
    let written = journal.written().count() as u64;
    let checked = Arc::new(VerifyProgress::default());
    *lock(&checked.result) = VerifyResult {
        blocks_written: Some(written),
        read_back: Some(ReadBack::default()),
        ..VerifyResult::default()
    };
    let (mine, journal) = (Arc::clone(&checked), Arc::clone(journal));
    let work = move |fd: OwnedFd| {
        if cache != CachePolicy::Direct {
            sync(fd.as_raw_fd(), SyncCall::Fdatasync);
            let _ = rustix::fs::fadvise(&fd, 0, None, rustix::fs::Advice::DontNeed);
        }
        check_all(&fd, &journal, (block_bytes, read_bytes), &mine)
    };
    let (mut control, mut series) = (Control::Continue, TimeSeries::new(CELL_NS));
    // The blocks and the length of the silence at the last look.
    let (mut elapsed_ns, mut before) = (0, (0, 0));
    let look = |silence_ns: u64| {
        let blocks = lock(&checked.result).blocks;
        elapsed_ns += silence_ns.saturating_sub(before.1);
        let cell = Cell {
            ops: blocks - before.0,
            bytes: (blocks - before.0) * block_bytes as u64,
            ..Cell::default()
        };
        series.add(elapsed_ns, &cell, CELLS_MAX);
        let silence = Some(Silence {
            target: assignment.target,
            length_ns: silence_ns,
        });
        let done = Some(blocks as f64 / written.max(1) as f64);
        let progress = Progress {
            name: &workload.name,
            phase: Phase::Verify,
            elapsed_ns,
            done,
            series: &series,
            silence,
            resume_bytes: None,
        };
        if watch.tick(&progress) == Control::Interrupt {
            control = Control::Interrupt;
            checked.stop.store(true, Ordering::Relaxed);
        }
        let sign = match control {
            Control::Interrupt => Sign::Unwanted,
            _ if blocks > before.0 => Sign::Progress,
            _ => Sign::Silence,
        };
        let silent_ns = if sign == Sign::Progress {
            0
        } else {
            silence_ns
        };
        before = (blocks, silent_ns);
        sign
    };
    let hung = match call_with_timeout(assignment.open.fd(), stall_ns, look, work)? {
        Ok(done) => done.map(|()| None)?,
        Err(_) => Some(before.1),
    };
    let result = lock(&checked.result).clone();
    Ok((result, control, hung))
}

fn check_all(
    fd: &OwnedFd,
    journal: &WriteJournal,
    (block, read_bytes): (usize, usize),
    checked: &VerifyProgress,
) -> io::Result<()> {
    let mut buffers = Buffers::new(1, read_bytes.max(block))?;
    let started_ns = MonotonicClock.now();
    let mut written = journal.written().peekable();
    while let Some((offset, generation)) = written.next() {
        let mut run = vec![generation];
        while run.len() < (read_bytes / block).max(1)
            && let Some((_, next)) =
                written.next_if(|(at, _)| *at == offset + (run.len() * block) as u64)
        {
            run.push(next);
        }
        check_run(fd, journal, &mut buffers, (offset, &run), block, checked);
        if checked.stop.load(Ordering::Relaxed) {
            break;
        }
    }
    if let Some(read) = &mut lock(&checked.result).read_back {
        read.wall_ns = MonotonicClock.now() - started_ns;
    }
    Ok(())
}

fn check_run(
    fd: &OwnedFd,
    journal: &WriteJournal,
    buffers: &mut Buffers,
    (offset, run): (u64, &[u32]),
    block: usize,
    checked: &VerifyProgress,
) {
    let started_ns = MonotonicClock.now();
    let outcome = read_all(fd, buffers.bytes_mut(0, run.len() * block), offset);
    if let (Ok(()), Some(read)) = (&outcome, &mut lock(&checked.result).read_back) {
        read.latency.record(MonotonicClock.now() - started_ns);
        read.bytes += (run.len() * block) as u64;
    }
    for (index, generation) in run.iter().enumerate() {
        let at = offset + (index * block) as u64;
        let bad = match &outcome {
            Ok(()) => journal.find_damage(
                &buffers.bytes(0, run.len() * block)[index * block..][..block],
                at,
                *generation,
            ),
            // One bad sector fails the whole read; reading block by block finds it.
            Err(_) => match read_all(fd, buffers.bytes_mut(0, block), at) {
                Ok(()) => journal.find_damage(buffers.bytes(0, block), at, *generation),
                Err(error) => Some(BadBlock {
                    offset_bytes: at,
                    why: format!("cannot be read: {error}"),
                }),
            },
        };
        // The lock is not held during a read.
        let mut result = lock(&checked.result);
        result.blocks += 1;
        if let Some(bad) = bad {
            result.bad_blocks += 1;
            if result.bad.len() < NAMED_MAX {
                result.bad.push(bad);
            }
        }
    }
}

fn read_all(fd: &OwnedFd, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::pread(fd, &mut bytes[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(moved) => done += moved,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}
