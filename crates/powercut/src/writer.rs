//! `powercut write`: the threads that write and sync, and the loop that reports to the log what
//! they made durable. Writes only through what the gate opened.
//!
//! A sync empties the whole cache of a disk, so control pages can only vanish in a cut while no
//! sync follows them: short bursts of commits alternate with pauses in which only control pages are
//! written.

use crate::client::LogClient;
use crate::error::CutError;
use crate::page::{AlignedPage, FILE_BYTES, PAGE_BYTES, Splitmix, fill};
use crate::run::{CutMethod, RunDescription, RunProgress, StreamKind};
use diskproof_device::{KeptDirectory, OpenError, OpenTarget, WriteDurability};
use diskproof_model::plan::CachePolicy;
use rustix::fs::{fdatasync, fsync};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two reports, alongside the time that the log takes to confirm one.
const REPORT_EVERY: Duration = Duration::from_millis(2);
/// The log takes a longer silence for the cut.
const SIGN_OF_LIFE_EVERY: Duration = Duration::from_secs(1);
/// The longest that threads may take to end: a disk without power may never answer.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// Waits for threads and for the time of a report look after this time.
const POLL: Duration = Duration::from_millis(1);

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

/// State that all threads of a run share.
#[derive(Debug)]
struct Shared {
    description: RunDescription,
    start: Instant,
    stop: AtomicBool,
    /// Durable writes (control: accepted ones), per stream.
    done: Vec<AtomicU64>,
    /// The log has confirmed this many writes, per stream.
    confirmed: Vec<AtomicU64>,
    failure: Mutex<Option<CutError>>,
}

/// On a filesystem whose writes go in place, or on a device, an accepted direct write is in the
/// disk. Elsewhere it may depend on a tree in memory that a crash of the machine loses, too.
fn is_in_place(target: &OpenTarget) -> bool {
    match &target.identity().filesystem {
        None => true,
        Some(filesystem) => matches!(filesystem.kind.as_str(), "ext2" | "ext3" | "ext4" | "xfs"),
    }
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
                discard(directory);
                Err(error)
            }
        }
    }

    /// Returns what is written and where.
    pub fn description(&self) -> &RunDescription {
        &self.description
    }

    /// Announces the run, then writes and reports until the caller stops it. A run that stops in an
    /// orderly way, or without its log, removes its own files; after a failure of the target they
    /// stay, because it may be the cut.
    pub fn write(
        self,
        log: &mut LogClient,
        step: impl FnMut(&RunProgress) -> NextStep,
    ) -> Result<Written, CutError> {
        if let Err(error) = log.start(&self.description) {
            discard(self.directory);
            return Err(error.into());
        }
        let streams = self.description.streams.len();
        let shared = Arc::new(Shared {
            description: self.description,
            start: Instant::now(),
            stop: AtomicBool::new(false),
            done: (0..streams).map(|_| AtomicU64::new(0)).collect(),
            confirmed: (0..streams).map(|_| AtomicU64::new(0)).collect(),
            failure: Mutex::new(None),
        });
        let directory = self.directory.map(Arc::new);
        let reported = match start_threads(&shared, &self.pages, &self.control, directory.as_ref())
        {
            Ok(threads) => {
                let reported = report(&shared, log, step);
                shared.stop.store(true, Ordering::SeqCst);
                join(threads, [&self.pages, &self.control]);
                reported
            }
            Err(error) => Err(error),
        };
        shared.stop.store(true, Ordering::SeqCst);
        if let Some(error) = shared.take_failure() {
            return Err(error);
        }
        if reported.is_ok() {
            log.stop()?;
        }
        let mut stays = None;
        if let Some(directory) = directory.and_then(Arc::into_inner) {
            match remove(&directory) {
                Err(error @ OpenError::Stays { .. }) => stays = Some(error),
                removed => removed?,
            }
        }
        reported.map(|progress| Written { progress, stays })
    }
}

/// Removes the run's files after a failure, which is what the caller reports.
fn discard(directory: Option<KeptDirectory>) {
    if let Some(directory) = directory {
        let _ = remove(&directory);
    }
}

/// Removes a run's directory, and in it what a run makes.
fn remove(directory: &KeptDirectory) -> Result<(), OpenError> {
    directory.remove(&|entry| {
        entry.depth == 0 && is_run_name(entry.name_bytes()) && directory.may_have_made(entry)
    })
}

/// True if a run's directory holds nothing but files with the names of a run's. False where it
/// cannot be read.
pub fn holds_only_files_of_run(directory: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return false;
    };
    for entry in entries {
        let Ok(entry) = entry else {
            return false;
        };
        let Ok(kind) = entry.file_type() else {
            return false;
        };
        if !kind.is_file() || !is_run_name(entry.file_name().as_bytes()) {
            return false;
        }
    }
    true
}

fn is_run_name(name: &[u8]) -> bool {
    name == PAGES_FILE.as_bytes()
        || is_numbered(name, FILE_PREFIX)
        || is_numbered(name, ENTRY_PREFIX)
}

/// True of this prefix and a number.
fn is_numbered(name: &[u8], prefix: &str) -> bool {
    match name.strip_prefix(prefix.as_bytes()) {
        Some(number) => !number.is_empty() && number.iter().all(u8::is_ascii_digit),
        None => false,
    }
}

/// Writes the layout; returns the description of the target for control pages.
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
        .map_err(|error| failed(pages, "writing the first pages", error))?;
    pages.mark_written(needed);
    fsync(pages.fd()).map_err(|error| failed(pages, "syncing the first pages", error.into()))?;
    let mut control = pages.reopen()?;
    let used = control.set_cache(CachePolicy::Direct)?.used;
    run.is_control_evidence = used == CachePolicy::Direct && is_in_place(&control);
    if let Some(directory) = directory {
        directory.sync()?;
    }
    Ok(control)
}

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

fn failed(target: &OpenTarget, doing: &'static str, error: io::Error) -> CutError {
    CutError::Layout {
        path: target.identity().path.clone(),
        doing,
        error,
    }
}

fn start_threads(
    shared: &Arc<Shared>,
    pages: &OpenTarget,
    control: &OpenTarget,
    directory: Option<&Arc<KeptDirectory>>,
) -> Result<Vec<JoinHandle<()>>, CutError> {
    let durability = match shared.description.method {
        CutMethod::Fdatasync | CutMethod::Fsync => WriteDurability::BySync,
        CutMethod::OpenDatasync => WriteDurability::Data,
        CutMethod::OpenSync => WriteDurability::File,
    };
    let mut threads = Vec::new();
    for (index, stream) in shared.description.streams.iter().enumerate() {
        let mut step: Step = match stream.kind {
            StreamKind::Pages => page_step(shared, index, pages.for_worker(durability)?),
            StreamKind::Control => {
                page_step(shared, index, control.for_worker(WriteDurability::BySync)?)
            }
            StreamKind::Files | StreamKind::Entries => match directory {
                Some(directory) => directory_step(shared, index, Arc::clone(directory)),
                None => continue,
            },
        };
        let shared = Arc::clone(shared);
        let thread = std::thread::Builder::new()
            .spawn(move || shared.run_stream(index, &mut *step))
            .map_err(CutError::Thread)?;
        threads.push(thread);
    }
    Ok(threads)
}

type Step = Box<dyn FnMut(u64) -> Result<(), CutError> + Send>;

/// Writes a page and makes it durable; a control page is left to the disk.
fn page_step(shared: &Arc<Shared>, index: usize, fd: OwnedFd) -> Step {
    let file = File::from(fd);
    let run = shared.description.clone();
    let stream = run.streams[index];
    let is_control = stream.kind == StreamKind::Control;
    let writing = if is_control {
        "a control write"
    } else {
        "a write"
    };
    let mut page = Box::new(AlignedPage([0; PAGE_BYTES]));
    Box::new(move |number| {
        let slot = stream.slot(number);
        fill(&mut page.0, run.label(index, slot, number));
        file.write_all_at(&page.0, run.page_offset(index, slot))
            .map_err(|error| target_failed(&run, writing, error))?;
        if is_control {
            return Ok(());
        }
        match run.method {
            CutMethod::Fdatasync => fdatasync(&file),
            CutMethod::Fsync => fsync(&file),
            CutMethod::OpenDatasync | CutMethod::OpenSync => Ok(()),
        }
        .map_err(|errno| target_failed(&run, "a sync", errno.into()))
    })
}

fn target_failed(run: &RunDescription, doing: &'static str, error: io::Error) -> CutError {
    CutError::Target {
        path: run.target.path.clone(),
        doing,
        error,
    }
}

/// Replaces a small file by a rename, or makes a name and removes an old one; then syncs the
/// directory.
fn directory_step(shared: &Arc<Shared>, index: usize, directory: Arc<KeptDirectory>) -> Step {
    let run = shared.description.clone();
    let stream = run.streams[index];
    let mut content = vec![0; FILE_BYTES];
    Box::new(move |number| {
        if stream.kind == StreamKind::Files {
            let slot = stream.slot(number);
            fill(&mut content, run.label(index, slot, number));
            directory.replace_file(&file_name(slot), &content)?;
        } else {
            directory.create_file(&entry_name(number))?;
            if let Some(old) = stream.replaced(number) {
                directory.remove_file(&entry_name(old))?;
            }
        }
        Ok(directory.sync()?)
    })
}

/// The name of the region's file in the run's directory.
pub const PAGES_FILE: &str = "pages";

/// The name of a small file.
pub(crate) fn file_name(slot: u32) -> String {
    format!("{FILE_PREFIX}{slot}")
}

/// The beginning of the name of a small file.
const FILE_PREFIX: &str = "file-";

/// The beginning of the name of an entry.
pub(crate) const ENTRY_PREFIX: &str = "entry-";

fn entry_name(number: u64) -> String {
    format!("{ENTRY_PREFIX}{number}")
}

impl Shared {
    fn run_stream(&self, index: usize, step: &mut dyn FnMut(u64) -> Result<(), CutError>) {
        let stream = self.description.streams[index];
        let seed = self.description.run_number().unwrap_or_default() as u64;
        let mut schedule = CommitSchedule::new(seed);
        let mut number = 0;
        while !self.stop.load(Ordering::SeqCst) {
            let wait = match stream.kind {
                StreamKind::Control => CONTROL_EVERY,
                _ => schedule.wait(self.start.elapsed()),
            };
            let is_ahead = number - self.confirmed[index].load(Ordering::SeqCst) >= stream.window();
            if stream.kind == StreamKind::Control {
                std::thread::sleep(wait);
            } else if is_ahead || !wait.is_zero() {
                std::thread::sleep(wait.clamp(POLL, 10 * POLL));
                continue;
            }
            number += 1;
            match step(number) {
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

/// Reports what is durable until the caller stops, the target fails or the log is gone.
fn report(
    shared: &Shared,
    log: &mut LogClient,
    mut step: impl FnMut(&RunProgress) -> NextStep,
) -> Result<RunProgress, CutError> {
    let mut last = shared.progress();
    let mut is_last = false;
    loop {
        let progress = shared.progress();
        let age = progress.elapsed_ns.saturating_sub(last.elapsed_ns);
        let is_due = Duration::from_nanos(age) >= SIGN_OF_LIFE_EVERY;
        if progress.counts != last.counts || is_due || is_last {
            log.report(&progress)?;
            for (confirmed, count) in shared.confirmed.iter().zip(&progress.counts) {
                confirmed.store(*count, Ordering::SeqCst);
            }
            last = progress;
        }
        if is_last {
            return Ok(last);
        }
        is_last = step(&last) == NextStep::Stop || shared.stop.load(Ordering::SeqCst);
        std::thread::sleep(REPORT_EVERY);
    }
}

/// Waits for the threads for a while. Where one does not return, its target does not answer, and is
/// never closed: that might block this thread, too.
fn join(threads: Vec<JoinHandle<()>>, targets: [&OpenTarget; 2]) {
    let end = Instant::now() + END_TIMEOUT;
    while threads.iter().any(|thread| !thread.is_finished()) {
        if Instant::now() >= end {
            targets.iter().for_each(|target| target.leave_open());
            return;
        }
        std::thread::sleep(POLL);
    }
}

/// Commits of a burst: several on any disk with a cache; one at least on others.
const BURST: Duration = Duration::from_millis(20);
/// A pause lasts this long to twice as long, so that no habit of a disk can keep step with it. The
/// log hears of a control page within some milliseconds, so nine of ten cuts fall where control
/// pages are at risk.
const PAUSE: Duration = Duration::from_millis(100);
/// Time between two control pages: fewer than a rotating disk can write to its platter in a pause
/// would leave nothing at risk; many more would make the sync after it slow.
pub(crate) const CONTROL_EVERY: Duration = Duration::from_millis(5);

/// Bursts and pauses, the same for all streams of a run.
#[derive(Debug, Clone)]
pub(crate) struct CommitSchedule {
    random: Splitmix,
    burst_start: Duration,
    burst_end: Duration,
}

impl CommitSchedule {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: Splitmix(seed),
            burst_start: Duration::ZERO,
            burst_end: BURST,
        }
    }

    /// The time until the next commit; zero inside of a burst. `now` never goes back.
    pub(crate) fn wait(&mut self, now: Duration) -> Duration {
        while now >= self.burst_end {
            let extra = self.random.below(PAUSE.as_micros() as u64);
            self.burst_start = self.burst_end + PAUSE + Duration::from_micros(extra);
            self.burst_end = self.burst_start + BURST;
        }
        self.burst_start.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_are_the_same_for_every_stream_and_take_a_tenth_of_the_time() {
        let (mut one, mut other) = (CommitSchedule::new(5), CommitSchedule::new(5));
        let mut busy = 0;
        for ms in 0..100_000 {
            let now = Duration::from_millis(ms);
            let wait = one.wait(now);
            assert_eq!(wait, other.wait(now));
            assert!(wait <= 2 * PAUSE);
            busy += u64::from(wait.is_zero());
        }
        assert!((8_000..16_000).contains(&busy), "{busy}");
    }
}
