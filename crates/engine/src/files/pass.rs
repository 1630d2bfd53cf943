//! Makes one pass over the files of a set: worker threads each take the next file, do one thing to
//! it and time that, while the caller's thread supervises them. A thread that hangs in the kernel
//! is left behind.

use super::set::FileSet;
use crate::io::clock::ActiveClock;
use crate::io::{END_OF_FILE, errno_name};
use crate::load::pattern::Permutation;
use crate::measure::usage;
use crate::run::error::RunError;
use crate::run::supervise::{CHECK_EVERY, ChannelInbox, ENDED_NS, Event, StallTimeout, Supervisor};
use crate::run::watched_call::FLUSH_NS;
use diskproof_device::{FileName, FileTree, Pulse};
use diskproof_model::files::{FileOperation, FileSync, FileSyncTime};
use diskproof_model::measurement::{CpuTime, OpMeasurement, SERIES_CELLS_MAX, StopReason};
use diskproof_model::progress::{Control, Phase, Progress, Silence, Watch};
use diskproof_model::series::{Cell, TimeSeries};
use diskproof_model::target::TargetIdentity;
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Cells of 0.1 ms: files in memory take microseconds, and a step of some thousand of them must
/// still have enough cells for an interval. Long steps merge them.
const CELL_NS: u64 = 100_000;
/// The pass begins this long after its threads are woken: all of them run by then, and start at the
/// same instant. Chosen, not measured: a thread wakes up within some 50 µs.
const LEAD_NS: u64 = 200_000;
/// Reads and stats of one worker that may fail before the step ends. A create, rename or delete
/// that fails ends it at once: the next ones would fail for the same reason. Chosen, not measured.
const ERRORS_MAX: u64 = 100;
/// The largest single read or write.
pub(crate) const TRANSFER_BYTES: usize = 1 << 20;

/// The work of a pass on each file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// An operation that counts.
    Measure(FileOperation),
    /// Writes its content to the disk.
    WriteBack,
    /// Drops its content from the page cache.
    DropPages,
    /// A file that another program has replaced or removed leaves the set: it is not renamed or
    /// deleted.
    Recheck,
    /// Removes what is left of the set.
    Remove,
}

/// A pass that can be shared by threads.
pub(crate) struct Pass {
    pub(crate) tree: Arc<FileTree>,
    pub(crate) set: Arc<FileSet>,
    pub(crate) task: Task,
    pub(crate) sync: FileSync,
    /// The files that exist; `None`: all of the set, which are to be created.
    pub(crate) files: Option<Vec<u32>>,
    /// Another order than that of the creation.
    pub(crate) shuffled: Option<Permutation>,
    /// Random bytes, at least twice [`TRANSFER_BYTES`].
    pub(crate) content: Arc<Vec<u8>>,
    /// The pass ends after this time, in nanoseconds.
    pub(crate) limit_ns: Option<u64>,
    pub(crate) signals: PassSignals,
}

/// Signals between the threads of a pass.
#[derive(Default)]
pub(crate) struct PassSignals {
    /// The place of the next file.
    next: AtomicU64,
    done: AtomicU64,
    stop: AtomicBool,
    /// When the pass begins, on the clock; set when all threads have started.
    begin_ns: OnceLock<u64>,
}

/// The clock and the buffer of a worker, and what it has done so far.
struct WorkerState {
    clock: ActiveClock,
    /// Receives what is read.
    buffer: Vec<u8>,
    /// Failed operations.
    errors: u64,
    done: PassResult,
}

impl WorkerState {
    /// Times a call, in nanoseconds; an error instead where the call fails.
    fn time(&self, call: impl FnOnce() -> Result<(), Errno>) -> Result<u64, Errno> {
        let start_ns = self.clock.now();
        call()?;
        Ok(self.clock.now().saturating_sub(start_ns))
    }
}

/// The figures of a pass, or the part of one worker.
pub(crate) struct PassResult {
    pub(crate) op: OpMeasurement,
    pub(crate) sync: FileSyncTime,
    pub(crate) begin_ns: u64,
    pub(crate) wall_ns: u64,
    /// The time of the workers alone: what else this program does meanwhile is not the cost of an
    /// operation.
    pub(crate) cpu: CpuTime,
    pub(crate) stopped: StopReason,
    /// The longest time in which the disk answered nothing; `None` below [`FLUSH_NS`].
    pub(crate) stall: Option<PassStall>,
}

/// A time in which the disk answered nothing, and no file was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PassStall {
    /// On the clock.
    pub(crate) since_ns: u64,
    pub(crate) lasted_ns: u64,
}

impl PassResult {
    /// Nothing is done yet.
    fn new(begin_ns: u64, stopped: StopReason) -> Self {
        Self {
            op: OpMeasurement {
                series: TimeSeries::new(CELL_NS),
                ..OpMeasurement::default()
            },
            sync: FileSyncTime::default(),
            begin_ns,
            wall_ns: 0,
            cpu: CpuTime::default(),
            stopped,
            stall: None,
        }
    }
}

impl Pass {
    fn total(&self) -> u64 {
        match &self.files {
            Some(existing) => existing.len() as u64,
            None => self.set.count(),
        }
    }

    /// The file at a place of the order.
    fn file(&self, place: u64) -> usize {
        let position = match &self.shuffled {
            Some(order) => order.place(place),
            None => place,
        };
        match &self.files {
            Some(files) => files[position as usize] as usize,
            None => position as usize,
        }
    }

    /// Does the task to a file. Returns the bytes moved, or the errno.
    fn perform(&self, index: usize, worker: &mut WorkerState) -> Result<u64, i32> {
        let (tree, name) = (&self.tree, self.set.name(index));
        let done = match self.task {
            Task::Measure(FileOperation::Create) => return self.create(index, name, worker),
            Task::Measure(FileOperation::Read) => return self.read(index, name, worker),
            Task::Measure(FileOperation::Stat) => {
                let size = tree.stat(name).map_err(Errno::raw_os_error)?;
                return if size >= self.set.size_bytes(index) {
                    Ok(0)
                } else {
                    Err(END_OF_FILE)
                };
            }
            Task::Measure(FileOperation::Rename) => tree.rename(name).and_then(|()| {
                self.set.mark_renamed(index);
                self.sync_folder(name, worker)
            }),
            Task::Measure(FileOperation::Delete) => tree.delete(name).and_then(|()| {
                self.set.mark_absent(index);
                self.sync_folder(name, worker)
            }),
            Task::WriteBack => tree.write_back(name),
            Task::DropPages => tree.drop_pages(name),
            Task::Recheck => self.recheck(index, name),
            Task::Remove => tree.delete_own(name).map(|()| self.set.mark_absent(index)),
        };
        done.map(|()| 0).map_err(Errno::raw_os_error)
    }

    /// Takes a file out of the set that another program has replaced or removed.
    fn recheck(&self, index: usize, name: FileName) -> Result<(), Errno> {
        match self.tree.is_untouched(name) {
            Ok(true) => Ok(()),
            Ok(false) | Err(Errno::NOENT) => {
                self.set.mark_absent(index);
                Ok(())
            }
            Err(errno) => Err(errno),
        }
    }

    fn create(&self, index: usize, name: FileName, worker: &mut WorkerState) -> Result<u64, i32> {
        self.write_file(index, name, worker)
            .map_err(Errno::raw_os_error)?;
        Ok(self.set.size_bytes(index))
    }

    fn write_file(
        &self,
        index: usize,
        name: FileName,
        worker: &mut WorkerState,
    ) -> Result<(), Errno> {
        let size_bytes = self.set.size_bytes(index);
        let file = self.tree.create(name)?;
        self.set.mark_created(index);
        let mut written = 0;
        while written < size_bytes {
            // Files begin at different bytes, so that no two of them are alike.
            let start = (name.number.wrapping_add(written) % TRANSFER_BYTES as u64) as usize;
            let length = (size_bytes - written).min(TRANSFER_BYTES as u64) as usize;
            let part = &self.content[start..start + length];
            written += rustix::io::write(&file, part)? as u64;
        }
        if self.sync.syncs_files() {
            worker.done.sync.file_sync_ns += worker.time(|| rustix::fs::fsync(&file))?;
        }
        drop(file);
        self.sync_folder(name, worker)
    }

    fn read(&self, index: usize, name: FileName, worker: &mut WorkerState) -> Result<u64, i32> {
        let size_bytes = self.set.size_bytes(index);
        let file = self.tree.open(name).map_err(Errno::raw_os_error)?;
        let mut read = 0;
        while read < size_bytes {
            let buffer = &mut *worker.buffer;
            match rustix::io::read(file.as_fd(), buffer).map_err(Errno::raw_os_error)? {
                0 => return Err(END_OF_FILE),
                bytes => read += bytes as u64,
            }
        }
        Ok(read)
    }

    fn sync_folder(&self, name: FileName, worker: &mut WorkerState) -> Result<(), Errno> {
        if self.sync.syncs_directories() {
            worker.done.sync.directory_sync_ns += worker.time(|| self.tree.sync_folder(name))?;
        }
        Ok(())
    }

    /// Decides whether the pass ends after this many failures of one worker.
    fn ends_after(&self, errors: u64) -> bool {
        match self.task {
            Task::Measure(FileOperation::Stat | FileOperation::Read) => errors > ERRORS_MAX,
            Task::Measure(_) => true,
            Task::WriteBack | Task::DropPages | Task::Recheck | Task::Remove => false,
        }
    }

    /// The loop of a worker.
    fn work(&self) -> PassResult {
        let mut worker = WorkerState {
            clock: ActiveClock::new(),
            buffer: vec![0; TRANSFER_BYTES],
            errors: 0,
            done: PassResult::new(0, StopReason::Ops),
        };
        let begin_ns = *self.signals.begin_ns.wait();
        while worker.clock.now() < begin_ns {
            std::hint::spin_loop();
        }
        // The wait for the common begin is no work.
        let cpu_before = usage::thread();
        let deadline_ns = self.limit_ns.map_or(u64::MAX, |limit| begin_ns + limit);
        let total = self.total();
        while !self.signals.stop.load(Ordering::Relaxed) {
            let place = self.signals.next.fetch_add(1, Ordering::Relaxed);
            if place >= total {
                break;
            }
            let index = self.file(place);
            let start_ns = worker.clock.now();
            let result = self.perform(index, &mut worker);
            let end_ns = worker.clock.now();
            worker.done.wall_ns = end_ns.saturating_sub(begin_ns);
            self.count(result, end_ns.saturating_sub(start_ns), &mut worker);
            if end_ns >= deadline_ns {
                self.stop(StopReason::Time, &mut worker);
            }
        }
        worker.done.cpu = usage::thread_since(cpu_before);
        worker.done
    }

    /// Counts an operation: the bytes that it moved, or its errno.
    fn count(&self, result: Result<u64, i32>, latency_ns: u64, worker: &mut WorkerState) {
        let tally = &mut worker.done;
        let mut cell = Cell::default();
        match result {
            Ok(bytes) => {
                tally.op.count += 1;
                tally.op.bytes += bytes;
                tally.op.latency.record(latency_ns);
                (cell.ops, cell.bytes, cell.latency_max_ns) = (1, bytes, latency_ns);
            }
            Err(errno) => {
                worker.errors += 1;
                *tally.op.errors.entry(errno_name(errno)).or_default() += 1;
                cell.errors = 1;
            }
        }
        let series = &mut tally.op.series;
        series.add(tally.wall_ns, &cell, SERIES_CELLS_MAX);
        self.signals.done.fetch_add(1, Ordering::Relaxed);
        if result.is_err() && self.ends_after(worker.errors) {
            self.stop(StopReason::Errors, worker);
        }
    }

    /// Ends the pass for all workers, for this reason of one of them.
    fn stop(&self, reason: StopReason, worker: &mut WorkerState) {
        worker.done.stopped = reason;
        self.signals.stop.store(true, Ordering::Relaxed);
    }

    /// Carries the pass out with so many threads. An interruption by the watcher ends it; one that
    /// removes files, after some seconds.
    pub(crate) fn run(
        self,
        threads: u32,
        name: &str,
        stall: StallTimeout,
        watch: &mut dyn Watch,
    ) -> Result<PassResult, RunError> {
        let pass = Arc::new(self);
        let worker_count = u64::from(threads).min(pass.total()).max(1);
        let (sender, tallies) = channel();
        let mut workers = Vec::new();
        for _ in 0..worker_count {
            let (pass_of_worker, sender) = (Arc::clone(&pass), sender.clone());
            let started = std::thread::Builder::new()
                .name("diskproof-files".to_owned())
                .spawn(move || {
                    let tally = pass_of_worker.work();
                    // Before the report: afterwards the directory is removed, which needs that no
                    // worker holds it.
                    drop(pass_of_worker);
                    // The receiver is gone where the target hangs.
                    drop(sender.send(tally));
                });
            match started {
                Ok(worker) => workers.push(worker),
                Err(error) => {
                    pass.signals.stop.store(true, Ordering::Relaxed);
                    let _ = pass.signals.begin_ns.set(0);
                    // They have begun no operation, and hold the directory until they end.
                    workers.into_iter().for_each(|worker| drop(worker.join()));
                    return Err(RunError::Thread(error));
                }
            }
        }
        drop(sender);
        let clock = ActiveClock::new();
        let begin_ns = clock.now() + LEAD_NS;
        // The workers wake up.
        let _ = pass.signals.begin_ns.set(begin_ns);
        let mut supervisor = PassSupervisor {
            pass: &pass,
            begin_ns,
            name,
            stall,
            tallies: Vec::new(),
            series: TimeSeries::new(CHECK_EVERY.as_nanos() as u64),
            counted: 0,
            is_interrupted: false,
            silence: DiskSilence::start(pass.tree.identity(), begin_ns),
        };
        let inbox = ChannelInbox {
            reports: &tallies,
            clock: &clock,
        };
        supervisor.wait(worker_count, &inbox, watch)?;
        let PassSupervisor {
            tallies,
            is_interrupted,
            silence,
            ..
        } = supervisor;
        Ok(PassResult {
            stall: silence.stall(),
            ..pass.result(tallies, begin_ns, is_interrupted)
        })
    }

    fn result(&self, tallies: Vec<PassResult>, begin_ns: u64, is_interrupted: bool) -> PassResult {
        let has_failed = tallies
            .iter()
            .any(|tally| tally.stopped == StopReason::Errors);
        let stopped = if has_failed {
            StopReason::Errors
        } else if self.signals.done.load(Ordering::Relaxed) >= self.total() {
            StopReason::Ops
        } else if is_interrupted {
            StopReason::Interrupted
        } else {
            StopReason::Time
        };
        let mut sum = PassResult::new(begin_ns, stopped);
        for tally in tallies {
            sum.cpu += tally.cpu;
            sum.op.merge(tally.op, 0);
            sum.sync += tally.sync;
            sum.wall_ns = sum.wall_ns.max(tally.wall_ns);
        }
        sum
    }
}

/// Waits for the threads of a pass.
struct PassSupervisor<'a> {
    pass: &'a Pass,
    begin_ns: u64,
    name: &'a str,
    stall: StallTimeout,
    /// Results of the threads that have ended.
    tallies: Vec<PassResult>,
    /// The series that the watcher sees.
    series: TimeSeries,
    /// Files that were done at the last check.
    counted: u64,
    is_interrupted: bool,
    silence: DiskSilence,
}

/// The time since a disk last answered during a pass. Without counters, as of a network filesystem,
/// slow is not told from silent: nothing is noted then.
struct DiskSilence {
    pulse: Option<Pulse>,
    answered_ns: u64,
    /// The longest silence from [`FLUSH_NS`] on.
    longest: Option<PassStall>,
}

/// A disk that its pass left behind.
struct LeftSilence {
    lasting_ns: u64,
    /// The silence that is usual for it.
    usual_ns: u64,
}

impl DiskSilence {
    fn start(identity: &TargetIdentity, now: u64) -> Self {
        let is_counted = identity.disks().next().is_some();
        Self {
            pulse: is_counted.then(|| Pulse::start(identity)),
            answered_ns: now,
            longest: None,
        }
    }

    /// Looks whether the disk has answered, or a file was done, since the last look. A look that
    /// comes late, on a busy machine, finds that it has.
    fn look(&mut self, now: u64, is_done: bool) {
        let Some(pulse) = &mut self.pulse else {
            return;
        };
        if pulse.beats() || is_done {
            self.answered_ns = now;
            return;
        }
        let silence = PassStall {
            since_ns: self.answered_ns,
            lasted_ns: now.saturating_sub(self.answered_ns),
        };
        let longest_ns = self.longest.map_or(FLUSH_NS, |longest| longest.lasted_ns);
        if silence.lasted_ns >= longest_ns {
            self.longest = Some(silence);
        }
    }

    /// The longest silence of the pass, unless the disk needs as long for a single request: a
    /// memory card of 300 kB/s takes four seconds for one of the kernel's.
    fn stall(&self) -> Option<PassStall> {
        let usual_ns = self.pulse.as_ref()?.usual_silence_ns();
        self.longest.filter(|longest| longest.lasted_ns >= usual_ns)
    }

    /// The silence that lasts now; `None` of a disk without counters.
    fn lasting(&self, now: u64) -> Option<LeftSilence> {
        Some(LeftSilence {
            lasting_ns: now.saturating_sub(self.answered_ns),
            usual_ns: self.pulse.as_ref()?.usual_silence_ns(),
        })
    }
}

/// An ordered end lets a removal go on for so long: on most disks all files are removed by then.
/// Chosen, not measured.
const REMOVAL_NS: u64 = 3_000_000_000;

impl PassSupervisor<'_> {
    /// Returns when all threads of the pass have reported.
    fn wait(
        &mut self,
        worker_count: u64,
        inbox: &ChannelInbox<'_, PassResult>,
        watch: &mut dyn Watch,
    ) -> Result<(), RunError> {
        let mut limits = self.stall.limits_of_each_operation();
        // The end of its time is no reason to wait less for the file that is being written.
        if self.pass.task == Task::WriteBack {
            limits.silence_at_end_ns = limits.silence_ns;
        }
        let mut supervisor = Supervisor::new(self.begin_ns, 1, limits);
        if let Some(limit_ns) = self.pass.limit_ns {
            supervisor.end_at(self.begin_ns.saturating_add(limit_ns));
        }
        while (self.tallies.len() as u64) < worker_count {
            match supervisor.next(inbox) {
                Event::Report(tally) => self.tallies.push(tally),
                Event::Check(now) => self.check(now, &mut supervisor, watch),
                Event::Overdue(overdue) => {
                    return Err(self.leave(overdue.silence_ns, inbox.clock.now()));
                }
                Event::Lost => return Err(RunError::lost(self.name)),
            }
        }
        // The time up to here was spent in this phase, also where the pass was too short for a
        // check: passes that are not measured take additional time.
        self.check(inbox.clock.now(), &mut supervisor, watch);
        Ok(())
    }

    fn check(&mut self, now: u64, supervisor: &mut Supervisor, watch: &mut dyn Watch) {
        let signals = &self.pass.signals;
        let elapsed_ns = now.saturating_sub(self.begin_ns);
        let done = signals.done.load(Ordering::Relaxed);
        let cell = Cell {
            ops: done - self.counted,
            ..Cell::default()
        };
        self.series.add(elapsed_ns, &cell, SERIES_CELLS_MAX);
        self.silence.look(now, done > self.counted);
        if done > self.counted {
            self.counted = done;
            supervisor.heard(0, now);
        }
        let progress = Progress {
            done: Some(self.share_done(elapsed_ns)),
            silence: Some(Silence {
                target: 0,
                length_ns: supervisor.silence_ns(0),
            }),
            ..Progress::new(self.name, self.phase(), elapsed_ns, &self.series)
        };
        let may_end = self.pass.task != Task::Remove || elapsed_ns >= REMOVAL_NS;
        if watch.tick(&progress) == Control::Interrupt && may_end {
            self.is_interrupted = true;
            signals.stop.store(true, Ordering::Relaxed);
            supervisor.cut_short(self.stall.ended().limits_of_each_operation(), now);
        }
        // A thread whose operation has failed stops the pass, too.
        if signals.stop.load(Ordering::Relaxed) {
            supervisor.end_all(now);
        }
    }

    fn phase(&self) -> Phase {
        match self.pass.task {
            Task::Measure(_) => Phase::Measure,
            Task::WriteBack | Task::DropPages | Task::Recheck | Task::Remove => Phase::Layout,
        }
    }

    /// The share of the pass that is done, from 0 to 1: by time or by files, whichever is more.
    fn share_done(&self, elapsed_ns: u64) -> f64 {
        let by_count = self.counted as f64 / self.pass.total().max(1) as f64;
        let by_time = match self.pass.limit_ns {
            Some(limit_ns) => elapsed_ns as f64 / limit_ns.max(1) as f64,
            None => 0.0,
        };
        by_count.max(by_time).min(1.0)
    }

    /// Leaves the threads behind that hang.
    fn leave(&self, silence_ns: u64, now: u64) -> RunError {
        self.pass.signals.stop.store(true, Ordering::Relaxed);
        // That of the directory around the files, as the record has it.
        let path = &self.pass.tree.identity().path;
        if self.stall.is_late(silence_ns) {
            return match self.silence.lasting(now) {
                Some(silence) if silence.lasting_ns >= ENDED_NS.max(silence.usual_ns) => {
                    let silence = Duration::from_nanos(silence.lasting_ns);
                    RunError::unanswered(path, self.name, silence)
                }
                Some(_) | None => RunError::interrupted(self.name),
            };
        }
        RunError::stalled(path, self.name, Duration::from_nanos(silence_ns))
    }
}
