//! Prints lines on stdout while a run goes on, and a progress line on stderr below them. A thread
//! of its own writes both, so that a terminal shows them in order, and a reader that is slow or
//! gone delays no request. Also prints the text of another tool, while a run goes on and at its
//! end.

use crate::interrupt;
use crate::output_files::{Output, OutputError, Trial, open_distinct, save_file};
use crate::plan_file::KeptFile;
use crate::stdio::{ProgressLine, Verbosity, eprint_text, note_closed_stdout};
use anyhow::Context as _;
use diskproof_compat::{JobCommand, ResultsSoFar, ToolPrinter, ToolResult, ToolText};
use diskproof_device::DiskTally;
use diskproof_engine::watchdog::{Deferred, Heartbeat, Waited};
use diskproof_model::errno;
use diskproof_model::files::FilesMeasurement;
use diskproof_model::measurement::Measurement;
use diskproof_model::ping::SingleRequest;
use diskproof_model::surface::SurfaceMeasurement;
use diskproof_model::target::TargetIdentity;
use diskproof_report::format::OutputFile;
use signal_hook::consts::SIGUSR1;
use std::cell::Cell;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Lines that wait for a slow reader; more are omitted, and a note says how many. Chosen, not
/// measured.
const WAITING_MAX: usize = 65_536;
/// The interval at which the wait for the printer beats the heartbeat and looks for Ctrl-C.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A text for the thread that prints.
enum PrinterMessage {
    /// A line for stdout.
    Line(String),
    /// The progress line on stderr, redrawn in place.
    Reading(String),
}

/// Prints in a separate thread.
pub(crate) struct RequestPrinter {
    sender: SyncSender<PrinterMessage>,
    thread: Deferred<()>,
    /// True if the reader of stdout has gone.
    closed: Arc<AtomicBool>,
    /// The number of lines that were omitted.
    omitted: Cell<u64>,
}

impl RequestPrinter {
    /// Starts the thread.
    pub(crate) fn start() -> io::Result<Self> {
        let (sender, messages) = sync_channel(WAITING_MAX);
        let closed = Arc::<AtomicBool>::default();
        let closed_by_thread = Arc::clone(&closed);
        let thread = Deferred::start("diskproof-print", move || {
            print(&messages, &closed_by_thread);
        })?;
        Ok(Self {
            sender,
            thread,
            closed,
            omitted: Cell::new(0),
        })
    }

    /// Prints a line, with its newline, on stdout.
    pub(crate) fn line(&self, text: String) {
        if self.sender.try_send(PrinterMessage::Line(text)).is_err() {
            self.omitted.update(|omitted| omitted + 1);
        }
    }

    /// Shows the progress line. One that finds no room is not missed.
    pub(crate) fn reading(&self, text: String) {
        let _ = self.sender.try_send(PrinterMessage::Reading(text));
    }

    /// True if the reader of stdout has gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Waits until everything is printed. After Ctrl-C, the rest is skipped if its reader stopped
    /// reading.
    pub(crate) fn finish(self, heartbeat: &Heartbeat, verbosity: Verbosity) {
        drop(self.sender);
        let mut interrupted: Option<Instant> = None;
        while let Waited::TimedOut(_) = self.thread.poll(POLL_INTERVAL) {
            heartbeat.beat();
            if interrupt::signal().is_some()
                && interrupted.get_or_insert_with(Instant::now).elapsed()
                    >= interrupt::WAIT_AFTER_SIGNAL
            {
                break;
            }
        }
        let omitted = self.omitted.get();
        if omitted > 0 && !self.closed.load(Ordering::Relaxed) {
            verbosity.note(&format!(
                "{omitted} lines were not printed, because the reader of stdout is slower than the \
                 requests. The figures and the record are complete"
            ));
        }
    }
}

fn print(messages: &Receiver<PrinterMessage>, closed: &AtomicBool) {
    let mut line = ProgressLine::default();
    let mut newest_reading = None;
    for message in messages {
        match message {
            PrinterMessage::Line(text) => {
                line.clear();
                if let Err(error) = print_at_once(&text) {
                    note_closed_stdout(&error);
                    closed.store(true, Ordering::Relaxed);
                    break;
                }
            }
            PrinterMessage::Reading(text) => {
                newest_reading = Some(text);
                if !line.is_due() {
                    continue;
                }
            }
        }
        if let Some(reading) = &newest_reading {
            line.show(reading);
        }
    }
    line.clear();
}

fn print_at_once(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// The printer of a tool: the run's thread and the main one use it, one after the other.
#[derive(Clone)]
pub(crate) struct SharedPrinter {
    /// The name of the tool.
    pub name: &'static str,
    /// The file that the tool creates, as the command line names it.
    pub output: Option<PathBuf>,
    /// The files under which the scratch file of each target stays in its directory, where it does.
    pub kept_files: Vec<Option<KeptFile>>,
    printer: Arc<Mutex<Box<dyn ToolPrinter>>>,
    /// True if SIGUSR1 came, for a tool that reports its progress then.
    status_due: Arc<AtomicBool>,
    /// True if the text before the first request was printed.
    has_begun: Arc<AtomicBool>,
    /// The counters of the targets' devices.
    disks: Arc<Mutex<DiskTally>>,
    /// The file that the text at the end goes to, in place of stdout.
    pub saved_to: Option<PathBuf>,
    /// The files that the tool writes, open.
    files: Arc<Vec<Output>>,
}

/// The end of a tool's run.
pub(crate) struct ToolEnd {
    /// What it prints.
    pub text: ToolText,
    /// The first error of saving its files.
    pub saved: anyhow::Result<()>,
}

impl SharedPrinter {
    /// Nothing is printed yet.
    pub(crate) fn new(name: &'static str, printer: Box<dyn ToolPrinter>) -> Self {
        let status_due = Arc::default();
        if printer.survives_usr1() {
            // Where it cannot be caught, the signal ends the program as it does others.
            let _ = signal_hook::flag::register(SIGUSR1, Arc::clone(&status_due));
        }
        Self {
            name,
            output: None,
            kept_files: Vec::new(),
            printer: Arc::new(Mutex::new(printer)),
            status_due,
            has_begun: Arc::default(),
            disks: Arc::new(Mutex::new(DiskTally::new(&[]))),
            saved_to: None,
            files: Arc::default(),
        }
    }

    /// True if the tool fails where direct I/O that it asks for is refused.
    pub(crate) fn fails_without_direct(&self) -> bool {
        self.lock().fails_without_direct()
    }

    /// Opens the files that the tool writes, before the run: none is another one, or one of `ours`,
    /// the files of the record. The error is what the tool prints where it cannot open one.
    pub(crate) fn open_files(&mut self, ours: &[PathBuf], trial: Trial) -> Result<(), String> {
        let mut paths: Vec<PathBuf> = self.saved_to.iter().cloned().collect();
        paths.extend(self.lock().file_paths());
        let files = match open_distinct(&paths, trial) {
            Ok(files) => files,
            Err(unopened) => return Err(self.cannot_open(&unopened.path, &unopened.error)),
        };
        for path in ours {
            // Why one of ours cannot be opened, the run says.
            let Ok(output) = Output::open(path, Trial::Permission) else {
                continue;
            };
            if let Some(same) = output.same_file_among(&files) {
                return Err(self.cannot_open(same.path(), &OutputError::same_file(path)));
            }
        }
        self.files = Arc::new(files);
        Ok(())
    }

    /// The exit code of a failed run; `None` where it is that of the tool.
    pub(crate) fn failed_code(&self) -> Option<u8> {
        self.lock().failed_code()
    }

    /// The words of the tool, and those of this program where a rule of its own refuses the file.
    fn cannot_open(&self, path: &Path, error: &OutputError) -> String {
        match error.errno {
            Some(errno) => {
                let name = errno::name(errno.raw_os_error());
                self.lock().cannot_open(path, &errno::text(&name))
            }
            None => format!("{}: {}: {}\n", self.name, path.display(), error.why),
        }
    }

    fn save(&self, path: &Path, content: &str) -> anyhow::Result<()> {
        self.save_bytes(path, content.as_bytes())
    }

    /// Writes one of the files that the tool writes.
    pub(crate) fn save_bytes(&self, path: &Path, content: &[u8]) -> anyhow::Result<()> {
        let file = OutputFile::new(path, |out| out.write_all(content));
        let saved = match self.files.iter().find(|output| output.path() == path) {
            Some(output) => output.save(&file),
            None => save_file(&file),
        };
        saved.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Box<dyn ToolPrinter>> {
        self.printer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what the devices of these targets do.
    pub(crate) fn count_disks(&self, identities: &[TargetIdentity]) {
        *self.disks() = DiskTally::new(identities);
    }

    fn disks(&self) -> MutexGuard<'_, DiskTally> {
        self.disks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the text before the first request was printed.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// The text before the first request.
    pub(crate) fn begin(&self) -> String {
        self.has_begun.store(true, Ordering::Relaxed);
        self.lock().begin()
    }

    /// The text about a request.
    pub(crate) fn request(&self, request: &SingleRequest) -> String {
        self.lock().request(request, unix_ns())
    }

    /// Takes the figures of operations on many small files.
    pub(crate) fn files_measured(&self, files: &FilesMeasurement) {
        self.lock().files_measured(files);
    }

    /// The text at the end of a command line that moves no data.
    pub(crate) fn end_without_data(&self) -> ToolEnd {
        self.end(&[], None, false, None)
    }

    /// The text about the loads so far, as after Ctrl-C, where the next one failed.
    pub(crate) fn end_early(&self) -> ToolEnd {
        self.end(&[], None, true, None)
    }

    /// The text at the end of the run.
    pub(crate) fn end(
        &self,
        measurements: &[Measurement],
        surface: Option<&SurfaceMeasurement>,
        is_interrupted: bool,
        error: Option<&str>,
    ) -> ToolEnd {
        let without_failed: Vec<Measurement>;
        let printed = if self.lock().prints_failed() {
            measurements
        } else {
            without_failed = measurements
                .iter()
                .filter(|measurement| !measurement.has_errors())
                .cloned()
                .collect();
            &without_failed
        };
        let host = diskproof_device::host_facts();
        self.disks().pause();
        let disks = self.disks().totals();
        let result = ToolResult {
            disks: &disks,
            measurements: printed,
            surface,
            interrupted: is_interrupted,
            error,
            unix_ns: unix_ns(),
            host_name: &host.name,
        };
        let mut text = self.lock().end(&result);
        let mut saved = Ok(());
        let files = self.lock().files(&result);
        for file in files {
            let file_saved = self.save(&file.path, &file.text);
            saved = saved.and(file_saved);
        }
        if let Some(path) = &self.saved_to {
            let text_saved = self.save(path, &text.stdout);
            // In place of a file that cannot be written, stdout keeps the text.
            if text_saved.is_ok() {
                text.stdout.clear();
            }
            saved = saved.and(text_saved);
        }
        ToolEnd { text, saved }
    }
}

fn unix_ns() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or(0)
}

/// Prints a tool's text while workloads are measured.
pub(crate) struct ToolLines {
    /// The tool.
    pub printer: SharedPrinter,
    /// Prints its text.
    pub lines: RequestPrinter,
    /// How often the tool reports the results so far.
    interval_ns: Option<u64>,
    /// Intervals of the current workloads that were reported.
    reported: u64,
    /// True if requests failed, and the tool ends at its first error.
    has_failed: bool,
}

impl ToolLines {
    /// Starts the thread that prints, with the text before the first request.
    pub(crate) fn start(printer: SharedPrinter) -> io::Result<Self> {
        let lines = RequestPrinter::start()?;
        let begin = printer.begin();
        let interval_ns = printer.lock().interval_ns().filter(|ns| *ns > 0);
        let started = Self {
            printer,
            lines,
            interval_ns,
            reported: 0,
            has_failed: false,
        };
        started.print(begin);
        Ok(started)
    }

    fn print(&self, text: String) {
        if !text.is_empty() {
            self.lines.line(text);
        }
    }

    /// A new file is filled for a workload, which may take long.
    pub(crate) fn laying_out(&self, workload: &str, bytes: u64) {
        self.printer.disks().pause();
        let text = self.printer.lock().laying_out(workload, bytes);
        self.print(text);
    }

    /// A command of a job begins.
    pub(crate) fn runs_command(&self, command: &JobCommand) {
        let text = self.printer.lock().runs_command(command);
        self.print(text);
    }

    /// Other workloads are next.
    pub(crate) fn begin(&mut self) {
        self.printer.disks().resume();
        self.reported = 0;
    }

    /// True if the tool reports the results so far, when the current workloads have been measured
    /// for this long.
    pub(crate) fn is_due(&self, elapsed_ns: u64) -> bool {
        self.printer.status_due.load(Ordering::Relaxed) || self.is_interval_over(elapsed_ns)
    }

    fn is_interval_over(&self, elapsed_ns: u64) -> bool {
        self.intervals_over(elapsed_ns) > self.reported
    }

    /// The number of intervals that are over; 0 without intervals.
    fn intervals_over(&self, elapsed_ns: u64) -> u64 {
        match self.interval_ns {
            Some(interval_ns) => elapsed_ns / interval_ns,
            None => 0,
        }
    }

    /// Prints the tool's report of the results so far.
    pub(crate) fn so_far(&mut self, elapsed_ns: u64, measurements: &[Measurement]) {
        let disks = self.printer.disks().totals();
        let results = ResultsSoFar {
            disks: &disks,
            measurements,
            elapsed_ns,
            unix_ns: unix_ns(),
        };
        if self.printer.status_due.swap(false, Ordering::Relaxed) {
            let status = self.printer.lock().status(&results);
            self.print(status.stdout);
            eprint_text(&status.stderr);
        }
        if self.is_interval_over(elapsed_ns) {
            self.reported = self.intervals_over(elapsed_ns);
            let text = self.printer.lock().so_far(&results);
            self.print(text);
        }
    }

    /// Workloads have been measured.
    pub(crate) fn measured(&mut self, measurements: &[Measurement]) {
        for measurement in measurements {
            if measurement.has_errors() && !self.printer.lock().prints_failed() {
                self.has_failed = true;
                continue;
            }
            let text = self.printer.lock().measured(measurement);
            self.print(text);
        }
    }

    /// True if no further workload is to be measured: the results suffice, or a request failed.
    pub(crate) fn is_over(&self) -> bool {
        self.has_failed || self.printer.lock().is_complete()
    }

    /// Waits until everything is printed. Says on stderr if lines were lost, which the tool itself
    /// would have printed late.
    pub(crate) fn finish(self, heartbeat: &Heartbeat) {
        self.lines.finish(heartbeat, Verbosity::Lines);
    }
}
