//! Writes and syncs in threads, and reports to the log what they made durable (`powercut write`).
//! Writes only through what the gate opened, in the bursts and pauses of `commit_schedule`.

use crate::client::LogClient;
use crate::commit_schedule::{CONTROL_INTERVAL, CommitSchedule};
use crate::error::CutError;
use crate::page::{AlignedPage, FILE_BYTES, PAGE_BYTES, fill};
use crate::report_pace::ReportPace;
use crate::run::{CutMethod, RunDescription, RunProgress, StreamKind};
use crate::run_files::{entry_name, file_name, is_run_name};
use diskproof_device::{
    KeptDirectory, OpenError, OpenTarget, WriteDurability, keeps_writes_across_reset,
};
use diskproof_model::plan::CachePolicy;
use rustix::fs::{fdatasync, fsync};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The pause between two looks at the progress, which may be reported. The time that the log takes
/// to confirm a report comes on top. Chosen: less than `CONTROL_INTERVAL`, so that each control
/// page is reported before the next one.
const REPORT_INTERVAL: Duration = Duration::from_millis(2);
/// The longest that threads may take to end: a disk without power may never answer. Chosen, not
/// measured.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause of a wait before it looks again: for threads that end, and for a stream that is ahead
/// of the log. It is well below a commit on most disks, so that a wait costs no commits.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A run that is ready to start.
#[derive(Debug)]
pub struct WriteRun {
    description: RunDescription,
    /// For pages: through the page cache, as a database writes.
    pages: OpenTarget,
    /// For control pages: past it where that works.
    control: OpenTarget,
    directory: Option<KeptDirectory>,
}

/// A run that stopped without a cut.
#[derive(Debug)]
pub struct Written {
    /// The run made this many writes durable.
    pub progress: RunProgress,
    /// The reason why the directory stays, where it does.
    pub stays: Option<OpenError>,
}

/// The decision of the caller of a run at each report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// The run goes on.
    Continue,
    /// Stop in an orderly way.
    Stop,
}

/// The state of a run that its threads share. Each stream has one thread, which alone writes its
/// entry of `done`; the reporting thread alone writes `confirmed`.
#[derive(Debug)]
struct RunState {
    description: RunDescription,
    start: Instant,
    stop: AtomicBool,
    /// Durable writes (control: accepted ones), per stream.
    done: Vec<AtomicU64>,
    /// The log has confirmed this many writes, per stream.
    confirmed: Vec<AtomicU64>,
    /// The first failure of a thread. The failure of a target may be the cut itself.
    failure: Mutex<Option<CutError>>,
}

/// True if an accepted direct write is in the disk: on a device, or on a filesystem that writes in
/// place, and no layer below keeps the write in memory.
fn is_in_disk(target: &OpenTarget) -> bool {
    let identity = target.identity();
    let is_in_place = match &identity.filesystem {
        None => true,
        Some(filesystem) => filesystem.writes_in_place(),
    };
    is_in_place && keeps_writes_across_reset(identity)
}

impl WriteRun {
    /// Fills the places of all pages and makes them durable. The description learns whether control
    /// pages can show a loss of power here. A failure removes the directory.
    pub fn lay_out(
        mut description: RunDescription,
        mut pages: OpenTarget,
        directory: Option<KeptDirectory>,
    ) -> Result<Self, CutError> {
        match fill_places(&mut description, &mut pages, directory.as_ref()) {
            Ok(control) => Ok(Self {
                description,
                pages,
                control,
                directory,
            }),
            Err(error) => {
                discard_directory(directory);
                Err(error)
            }
        }
    }

    /// Returns what is written and where.
    pub fn description(&self) -> &RunDescription {
        &self.description
    }

    /// Announces the run, then writes and reports until the caller stops it. A run whose stop the
    /// log has confirmed removes its own files. They stay after a failure of the target, because it
    /// may be the cut, and after one of the log: to a log without a stop, files that were removed
    /// look like a disk that lost them.
    ///
    /// The order matters. The log knows the run before the first write. The threads have ended
    /// before the log hears that the run stopped, so that no write follows. Where a disk holds one
    /// of them, its power may have been cut: the log hears of no stop, and the files stay. The
    /// files are removed last, when no verification can need them.
    pub fn write(
        self,
        log: &mut LogClient,
        decide: impl FnMut(&RunProgress) -> NextStep,
    ) -> Result<Written, CutError> {
        if let Err(error) = log.start(&self.description) {
            discard_directory(self.directory);
            return Err(error.into());
        }
        let streams = self.description.streams.len();
        let state = Arc::new(RunState {
            description: self.description,
            start: Instant::now(),
            stop: AtomicBool::new(false),
            done: (0..streams).map(|_| AtomicU64::new(0)).collect(),
            confirmed: (0..streams).map(|_| AtomicU64::new(0)).collect(),
            failure: Mutex::new(None),
        });
        let directory = self.directory.map(Arc::new);
        let reported = match start_threads(&state, &self.pages, &self.control, directory.as_ref()) {
            Ok(threads) => {
                let reported = report_until_end(&state, log, decide);
                state.stop.store(true, Ordering::SeqCst);
                if wait_for_threads(&threads, END_TIMEOUT) == ThreadsEnd::Held {
                    // Closing them might block this thread, too.
                    self.pages.leave_open();
                    self.control.leave_open();
                    return Err(error_of_held_threads(&state, reported));
                }
                reported
            }
            Err(error) => Err(error),
        };
        state.stop.store(true, Ordering::SeqCst);
        if let Some(error) = state.take_failure() {
            return Err(error);
        }
        let progress = match reported.and_then(|progress| confirm_stop(log, progress)) {
            Ok(progress) => progress,
            Err(error) => return Err(error_from_kept_files(error, directory.as_deref())),
        };
        let mut stays = None;
        if let Some(directory) = directory.and_then(Arc::into_inner) {
            match remove_directory(&directory) {
                Err(error @ OpenError::Stays { .. }) => stays = Some(error),
                removed => removed?,
            }
        }
        Ok(Written { progress, stays })
    }
}

/// Reports to the log that the run has stopped. Returns the last progress once the log has
/// confirmed that.
fn confirm_stop(log: &mut LogClient, progress: RunProgress) -> Result<RunProgress, CutError> {
    log.stop()?;
    Ok(progress)
}

/// The error of a run that ended without a stop in its log: it also names the files that stay.
fn error_from_kept_files(error: CutError, directory: Option<&KeptDirectory>) -> CutError {
    match directory {
        Some(directory) => CutError::FilesStay {
            error: Box::new(error),
            directory: directory.path().display().to_string(),
        },
        None => error,
    }
}

/// Removes the run's files after a failure, which is what the caller reports.
fn discard_directory(directory: Option<KeptDirectory>) {
    if let Some(directory) = directory {
        let _ = remove_directory(&directory);
    }
}

/// Removes a run's directory, and in it what a run makes.
fn remove_directory(directory: &KeptDirectory) -> Result<(), OpenError> {
    directory.remove(&|entry| {
        entry.depth == 0 && is_run_name(entry.name_bytes()) && directory.may_have_made(entry)
    })
}

/// Writes the first content of every place and makes it durable. Returns the target opened a second
/// time, for control pages.
fn fill_places(
    run: &mut RunDescription,
    pages: &mut OpenTarget,
    directory: Option<&KeptDirectory>,
) -> Result<OpenTarget, CutError> {
    let needed = run.region_bytes();
    if pages.capacity_bytes() < needed {
        return Err(CutError::TooSmall {
            path: pages.identity().path.clone(),
            bytes: pages.capacity_bytes(),
            needed,
            remedy: "Name a larger target, or use fewer --workers.",
        });
    }
    pages.wipe_unknown()?;
    pages.set_cache(CachePolicy::Buffered)?;
    write_first_pages(run, pages)
        .map_err(|error| layout_error(pages, "writing the first pages", error))?;
    pages.mark_written(needed);
    fsync(pages.fd())
        .map_err(|error| layout_error(pages, "syncing the first pages", error.into()))?;
    let mut control = pages.reopen()?;
    let used = control.set_cache(CachePolicy::Direct)?.used;
    run.is_control_evidence = used == CachePolicy::Direct && is_in_disk(&control);
    if let Some(directory) = directory {
        directory.sync()?;
    }
    Ok(control)
}

/// Writes the first content of every page, which is not durable yet.
fn write_first_pages(run: &RunDescription, pages: &OpenTarget) -> io::Result<()> {
    let file = File::from(pages.fd().try_clone_to_owned()?);
    let mut page = Box::new(AlignedPage([0; PAGE_BYTES]));
    for (index, stream) in run.streams.iter().enumerate() {
        if !stream.is_paged() {
            continue;
        }
        for slot in 0..stream.slots {
            fill(&mut page.0, run.label(index, slot, 0));
            file.write_all_at(&page.0, run.page_offset(index, slot))?;
        }
    }
    Ok(())
}

fn layout_error(target: &OpenTarget, doing: &'static str, error: io::Error) -> CutError {
    CutError::Layout {
        path: target.identity().path.clone(),
        doing,
        error,
    }
}

/// Starts a thread for each stream. After an error some threads may run: the caller must set
/// `stop`.
fn start_threads(
    state: &Arc<RunState>,
    pages: &OpenTarget,
    control: &OpenTarget,
    directory: Option<&Arc<KeptDirectory>>,
) -> Result<Vec<JoinHandle<()>>, CutError> {
    let durability = match state.description.method {
        CutMethod::Fdatasync | CutMethod::Fsync => WriteDurability::BySync,
        CutMethod::OpenDatasync => WriteDurability::Data,
        CutMethod::OpenSync => WriteDurability::File,
    };
    let mut threads = Vec::new();
    for (index, stream) in state.description.streams.iter().enumerate() {
        let mut write: StreamWrite = match stream.kind {
            StreamKind::Pages => page_write(state, index, pages.for_worker(durability)?),
            StreamKind::Control => {
                page_write(state, index, control.for_worker(WriteDurability::BySync)?)
            }
            StreamKind::Files | StreamKind::Entries => match directory {
                Some(directory) => directory_write(state, index, Arc::clone(directory)),
                None => continue,
            },
        };
        let state = Arc::clone(state);
        let thread = std::thread::Builder::new()
            .spawn(move || state.run_stream(index, &mut *write))
            .map_err(CutError::Thread)?;
        threads.push(thread);
    }
    Ok(threads)
}

/// Does one write of a stream, by its number from 1, and makes it durable as the stream promises.
type StreamWrite = Box<dyn FnMut(u64) -> Result<(), CutError> + Send>;

/// Writes a page and makes it durable; a control page is left to the disk.
fn page_write(state: &Arc<RunState>, index: usize, fd: OwnedFd) -> StreamWrite {
    let file = File::from(fd);
    let run = state.description.clone();
    let stream = run.streams[index];
    let is_control = stream.kind == StreamKind::Control;
    let writing = if is_control {
        "a control write"
    } else {
        "a write"
    };
    let mut page = Box::new(AlignedPage([0; PAGE_BYTES]));
    Box::new(move |number| {
        let slot = stream.slot_of(number);
        fill(&mut page.0, run.label(index, slot, number));
        file.write_all_at(&page.0, run.page_offset(index, slot))
            .map_err(|error| target_error(&run, writing, error))?;
        if is_control {
            return Ok(());
        }
        match run.method {
            CutMethod::Fdatasync => fdatasync(&file),
            CutMethod::Fsync => fsync(&file),
            CutMethod::OpenDatasync | CutMethod::OpenSync => Ok(()),
        }
        .map_err(|errno| target_error(&run, "a sync", errno.into()))
    })
}

fn target_error(run: &RunDescription, doing: &'static str, error: io::Error) -> CutError {
    CutError::Target {
        path: run.target.path.clone(),
        doing,
        error,
    }
}

/// Replaces a small file by a rename, or makes a name and removes an old one; then syncs the
/// directory.
fn directory_write(
    state: &Arc<RunState>,
    index: usize,
    directory: Arc<KeptDirectory>,
) -> StreamWrite {
    let run = state.description.clone();
    let stream = run.streams[index];
    let mut content = vec![0; FILE_BYTES];
    Box::new(move |number| {
        if stream.kind == StreamKind::Files {
            let slot = stream.slot_of(number);
            fill(&mut content, run.label(index, slot, number));
            directory.replace_file(&file_name(slot), &content)?;
        } else {
            directory.create_file(&entry_name(number))?;
            if let Some(old) = stream.replaced_write(number) {
                directory.remove_file(&entry_name(old))?;
            }
        }
        Ok(directory.sync()?)
    })
}

impl RunState {
    /// Writes one stream until the run stops. A stream of commits waits for its burst, and while it
    /// is as far ahead of the log as its window allows. Control pages come at their own pace.
    fn run_stream(&self, index: usize, write: &mut dyn FnMut(u64) -> Result<(), CutError>) {
        let stream = self.description.streams[index];
        // All streams have the same bursts.
        let seed = self.description.run_number().unwrap_or_default() as u64;
        let mut schedule = CommitSchedule::new(seed);
        let mut number = 0;
        while !self.stop.load(Ordering::SeqCst) {
            let wait = match stream.kind {
                StreamKind::Control => CONTROL_INTERVAL,
                _ => schedule.time_until_commit(self.start.elapsed()),
            };
            let is_ahead =
                number - self.confirmed[index].load(Ordering::SeqCst) >= stream.ahead_max();
            if stream.kind == StreamKind::Control {
                std::thread::sleep(wait);
            } else if is_ahead || !wait.is_zero() {
                std::thread::sleep(wait.clamp(POLL_INTERVAL, 10 * POLL_INTERVAL));
                continue;
            }
            number += 1;
            match write(number) {
                Ok(()) => self.done[index].store(number, Ordering::SeqCst),
                Err(error) => {
                    self.failure().get_or_insert(error);
                    self.stop.store(true, Ordering::SeqCst);
                }
            }
        }
    }

    fn failure(&self) -> MutexGuard<'_, Option<CutError>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_failure(&self) -> Option<CutError> {
        self.failure().take()
    }

    fn progress(&self) -> RunProgress {
        RunProgress {
            elapsed_ns: self.start.elapsed().as_nanos() as u64,
            counts: self
                .done
                .iter()
                .map(|done| done.load(Ordering::SeqCst))
                .collect(),
        }
    }
}

/// Reports what is durable until the caller stops the run, a thread fails or the log is gone. The
/// progress is reported once more after that, so that the log has the last writes. Returns that
/// last progress.
fn report_until_end(
    state: &RunState,
    log: &mut LogClient,
    mut decide: impl FnMut(&RunProgress) -> NextStep,
) -> Result<RunProgress, CutError> {
    let mut pace = ReportPace::new(&state.description.streams, &state.progress());
    let mut is_last = false;
    loop {
        let progress = state.progress();
        if pace.is_due(&progress) || is_last {
            log.report(&progress)?;
            for (confirmed, count) in state.confirmed.iter().zip(&progress.counts) {
                confirmed.store(*count, Ordering::SeqCst);
            }
            pace.set_reported(progress);
        }
        let last = pace.reported();
        if is_last {
            return Ok(last.clone());
        }
        is_last = decide(last) == NextStep::Stop || state.stop.load(Ordering::SeqCst);
        std::thread::sleep(REPORT_INTERVAL);
    }
}

/// The state of the threads at the end of a wait for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThreadsEnd {
    /// All have ended.
    All,
    /// At least one waits for a disk that does not answer. It may still write.
    Held,
}

/// Waits until the threads have ended, but no longer than `timeout`.
fn wait_for_threads(threads: &[JoinHandle<()>], timeout: Duration) -> ThreadsEnd {
    let end = Instant::now() + timeout;
    while threads.iter().any(|thread| !thread.is_finished()) {
        if Instant::now() >= end {
            return ThreadsEnd::Held;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    ThreadsEnd::All
}

/// The error of a run whose threads a target holds: the first failure of a thread, else that of the
/// reports, else that the target does not answer.
fn error_of_held_threads(state: &RunState, reported: Result<RunProgress, CutError>) -> CutError {
    if let Some(failure) = state.take_failure() {
        return failure;
    }
    match reported {
        Err(error) => error,
        Ok(_) => target_error(
            &state.description,
            "a write",
            io::ErrorKind::TimedOut.into(),
        ),
    }
}

#[cfg(test)]
mod tests;
