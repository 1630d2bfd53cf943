//! The output of a drop-in: text that follows the run, text at its end, and errors.

use crate::job_command::JobCommand;
use diskproof_model::files::FilesMeasurement;
use diskproof_model::measurement::{DiskTotals, Measurement};
use diskproof_model::ping::SingleRequest;
use diskproof_model::primes::{PrimeInterval, PrimeResult};
use diskproof_model::surface::SurfaceMeasurement;
use std::path::{Path, PathBuf};

/// Text for the two outputs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolText {
    /// Text for stdout.
    pub stdout: String,
    /// Text for stderr.
    pub stderr: String,
}

impl ToolText {
    /// Text for stderr only.
    pub(crate) fn err(stderr: impl Into<String>) -> Self {
        Self {
            stdout: String::new(),
            stderr: stderr.into(),
        }
    }

    /// Text for stdout only.
    pub(crate) fn out(stdout: impl Into<String>) -> Self {
        Self {
            stdout: stdout.into(),
            stderr: String::new(),
        }
    }
}

/// The reason why a command line cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DropInError {
    /// The command line makes no sense; the text for stderr, with the tool's name.
    Usage(String),
    /// The command line makes no sense, and the tool prints a text to stdout, too.
    Printed(ToolText),
    /// The target does not fit; the text for stderr, with the tool's name.
    Target(String),
    /// The tool has an exit code of its own for this, and perhaps began its output.
    Code(u8, ToolText),
}

impl DropInError {
    /// The text for stdout and stderr together.
    pub fn text(&self) -> String {
        let ToolText { stdout, stderr } = self.printed();
        stdout + &stderr
    }

    /// The text of each stream.
    pub fn printed(&self) -> ToolText {
        match self {
            Self::Printed(text) | Self::Code(_, text) => text.clone(),
            Self::Usage(text) | Self::Target(text) => ToolText::err(text),
        }
    }
}

/// A file that a tool writes alongside its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFile {
    /// The path that the command line names.
    pub path: PathBuf,
    /// The whole content.
    pub text: String,
}

/// The results of a run.
#[derive(Debug, Clone, Copy)]
pub struct ToolResult<'a> {
    /// The measurements in the order of the plan.
    pub measurements: &'a [Measurement],
    /// The survey, where the plan has one.
    pub surface: Option<&'a SurfaceMeasurement>,
    /// True if a signal ended the run.
    pub interrupted: bool,
    /// The error that ended the run, by its name such as `EDQUOT`, where one did.
    pub error: Option<&'a str>,
    /// Wall-clock time in nanoseconds since 1970.
    pub unix_ns: u64,
    /// The name of the machine.
    pub host_name: &'a str,
    /// The block devices of the targets and their members, since the first request.
    pub disks: &'a [DiskTotals],
}

/// The results so far of a run that goes on.
#[derive(Debug, Clone, Copy)]
pub struct ResultsSoFar<'a> {
    /// Measurements of the workloads that run: counts up to now, latencies up to a quarter of a
    /// second older.
    pub measurements: &'a [Measurement],
    /// The time for which they have been measured, in nanoseconds.
    pub elapsed_ns: u64,
    /// Wall-clock time in nanoseconds since 1970.
    pub unix_ns: u64,
    /// The block devices of the targets and their members, since the first request.
    pub disks: &'a [DiskTotals],
}

/// Turns a load of processors into a tool's text. Each step returns text for stdout.
pub trait PrimePrinter {
    /// The text before the first event.
    fn begin(&self) -> String;

    /// An interval is over.
    fn interval(&self, interval: &PrimeInterval) -> String;

    /// The run is over.
    fn end(&self, result: &PrimeResult) -> String;
}

/// Turns a run into a tool's text, step by step. Each step returns text for stdout.
///
/// The caller calls [`Self::begin`] first, then a function for each thing that happens, in the
/// order in which it happens, and [`Self::end`] last. A printer of several loads
/// ([`crate::NextPrinter::SamePrinter`]) has an end for each of them, and one beginning.
pub trait ToolPrinter: Send {
    /// The text before the first request.
    fn begin(&mut self) -> String {
        String::new()
    }

    /// A new file of so many bytes is filled, before the workload of this name uses it.
    fn laying_out(&mut self, _workload: &str, _bytes: u64) -> String {
        String::new()
    }

    /// A command of a job begins.
    fn runs_command(&mut self, _command: &JobCommand) -> String {
        String::new()
    }

    /// A single request has ended, at this time in nanoseconds since 1970.
    fn request(&mut self, _request: &SingleRequest, _unix_ns: u64) -> String {
        String::new()
    }

    /// A workload has been measured.
    fn measured(&mut self, _measurement: &Measurement) -> String {
        String::new()
    }

    /// Nanoseconds after which it wants the results so far, again and again; `None`: never.
    fn interval_ns(&self) -> Option<u64> {
        None
    }

    /// An interval is over while workloads are measured.
    fn so_far(&mut self, _results: &ResultsSoFar<'_>) -> String {
        String::new()
    }

    /// True if the tool goes on after SIGUSR1, with its [`Self::status`].
    fn survives_usr1(&self) -> bool {
        false
    }

    /// The text that the tool prints at SIGUSR1 while workloads are measured.
    fn status(&mut self, _results: &ResultsSoFar<'_>) -> ToolText {
        ToolText::default()
    }

    /// The operations on many small files are over; the end follows.
    fn files_measured(&mut self, _files: &FilesMeasurement) {}

    /// True if it also prints the figures of workloads that requests failed in. Other tools end at
    /// their first error.
    fn prints_failed(&self) -> bool {
        false
    }

    /// True if the tool fails where direct I/O that its command line asks for is refused.
    fn fails_without_direct(&self) -> bool {
        true
    }

    /// True if the results suffice: the other workloads are skipped then.
    fn is_complete(&self) -> bool {
        false
    }

    /// The paths of the files that the tool writes at the end. They are opened before the run.
    fn file_paths(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The tool's text on stderr where it cannot open a file of its own; `error` is the text of the
    /// kernel's error, as strerror(3) has it.
    fn cannot_open(&self, path: &Path, error: &str) -> String {
        format!("{}: {error}\n", path.display())
    }

    /// The files that the tool writes at the end.
    fn files(&mut self, _result: &ToolResult<'_>) -> Vec<ToolFile> {
        Vec::new()
    }

    /// The run is over.
    fn end(&mut self, result: &ToolResult<'_>) -> ToolText;

    /// The exit code of a failed run, after its end; `None` where the tool has one for all of them.
    fn failed_code(&self) -> Option<u8> {
        None
    }
}
