//! `diskproof powercut write`: the load before the cut.

use super::connection::ConnectionFlags;
use crate::failure::{Exit, Failure};
use crate::flags::{Choice, DestructiveFlags, choices, one_of};
use crate::interrupt;
use crate::stdio::{ProgressLine, Verbosity, eprint_line};
use crate::targets::{probe_target, refuse_foreign_link};
use crate::workload::parse_time;
use diskproof_device::{Admission, Entry, Intent, KeptDirectory, OpenTarget, admit, host_facts};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::format_bytes;
use diskproof_powercut::{
    CutMethod, CutTarget, LogClient, NextStep, PAGES_FILE, RunDescription, RunProgress, StreamKind,
    WORKERS_MAX, WriteRun, boot_id, directory_change_time, region_fingerprint,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The bytes of small files and names in a directory, alongside the pages.
const FILES_BYTES: u64 = 1 << 20;
/// Without a terminal, one line of progress is printed in this time.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Flags of `powercut write`.
#[derive(Debug, clap::Args)]
pub struct CutWriteFlags {
    /// Directory, or a regular file or block device that you release
    pub target: PathBuf,
    /// Where the log is.
    #[command(flatten)]
    pub connection: ConnectionFlags,
    /// How each page is made durable
    #[arg(long, value_name = "NAME", default_value = "fdatasync", value_parser = one_of(METHODS))]
    pub method: CutMethod,
    /// Number of concurrent writers of pages
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=i64::from(WORKERS_MAX)))]
    pub workers: u16,
    /// Stop after this time if no cut comes [default: write until the cut or Ctrl-C]
    #[arg(long, value_name = "DURATION", value_parser = parse_time)]
    pub time: Option<u64>,
    /// Show what would be written; open nothing for writing
    #[arg(long)]
    pub dry_run: bool,
    /// Print only errors
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// What may be destroyed.
    #[command(flatten)]
    pub destructive: DestructiveFlags,
}

/// The methods of PostgreSQL's wal_sync_method.
const METHODS: &[Choice<CutMethod>] = choices! {
    "fdatasync" CutMethod::Fdatasync, "fdatasync after each page";
    "fsync" CutMethod::Fsync, "fsync after each page";
    "open_datasync" CutMethod::OpenDatasync, "O_DSYNC";
    "open_sync" CutMethod::OpenSync, "O_SYNC";
};

/// Writes until the power is cut. Ctrl-C and the end of the time stop the writes and prove nothing:
/// the exit codes 1 and 5 are those of `verify`.
pub(super) fn run(flags: &CutWriteFlags) -> anyhow::Result<Exit> {
    let verbosity = if flags.quiet {
        Verbosity::Quiet
    } else {
        Verbosity::of_stderr()
    };
    refuse_foreign_link(&flags.target)?;
    let target = probe_target(&flags.target, flags.destructive.keep_free, verbosity)?;
    let description = describe(flags, &target);
    let bytes = description.region_bytes() + FILES_BYTES;
    let admission = admit_writes(flags, &target, bytes)?;
    if flags.dry_run {
        verbosity.note(&format!(
            "would write {} to {} repeatedly until the cut",
            format_bytes(bytes),
            target.path
        ));
        return Ok(Exit::Done);
    }
    // Before anything is written: without a log the writes would prove nothing.
    let mut log = flags.connection.connect()?;
    interrupt::listen()?;
    interrupt::end_cleanly();
    crate::inspection::end();
    let run = match target.kind {
        TargetKind::Directory => lay_out_directory(description, admission)?,
        TargetKind::File | TargetKind::BlockDevice => lay_out_region(description, admission)?,
    };
    write_until_cut(flags, run, &mut log, verbosity)?;
    match interrupt::signal() {
        Some(signal) => Ok(Exit::Signal(signal)),
        None => Ok(Exit::Done),
    }
}

/// Permission to write this many bytes to the target, as far as the flags release it.
fn admit_writes(
    flags: &CutWriteFlags,
    target: &TargetIdentity,
    bytes: u64,
) -> Result<Admission, Failure> {
    let consent = flags.destructive.consent(std::slice::from_ref(target))?;
    let intent = match target.kind {
        TargetKind::Directory => Intent::Scratch { size_bytes: bytes },
        TargetKind::File | TargetKind::BlockDevice => Intent::Overwrite(&consent),
    };
    admit(target.clone(), intent).map_err(Failure::Refused)
}

/// Writes, shows the progress, and reports what was written once Ctrl-C or the time stops it.
fn write_until_cut(
    flags: &CutWriteFlags,
    run: WriteRun,
    log: &mut LogClient,
    verbosity: Verbosity,
) -> anyhow::Result<()> {
    let laid_out = run.description().clone();
    let end = flags
        .time
        .map(|ns| Instant::now() + Duration::from_nanos(ns));
    let mut display = CutProgress::new(verbosity);
    let mut is_instructed = false;
    let written = run.write(log, |progress| {
        // The first progress comes once the log knows the run. A cut before that proves nothing.
        if !is_instructed {
            instruct(flags, &laid_out, verbosity);
            is_instructed = true;
        }
        display.show(acknowledged_writes(&laid_out, progress));
        if interrupt::signal().is_some() || is_past(end) {
            NextStep::Stop
        } else {
            NextStep::Continue
        }
    });
    display.line.clear();
    let written = written?;
    if let Some(why) = &written.stays {
        eprint_line(&format!("warning: {why}"));
    }
    verbosity.note(&format!(
        "stopped without a power cut after {} acknowledged writes; nothing is proven",
        acknowledged_writes(&laid_out, &written.progress)
    ));
    Ok(())
}

fn is_past(end: Option<Instant>) -> bool {
    match end {
        Some(end) => Instant::now() >= end,
        None => false,
    }
}

/// The writes that were acknowledged as durable: those of all streams but the control.
fn acknowledged_writes(run: &RunDescription, progress: &RunProgress) -> u64 {
    let mut writes = 0;
    for (stream, count) in run.streams.iter().zip(&progress.counts) {
        if stream.kind != StreamKind::Control {
            writes += count;
        }
    }
    writes
}

/// Creates the files of the run in a directory of its own.
fn lay_out_directory(
    description: RunDescription,
    admission: Admission,
) -> anyhow::Result<WriteRun> {
    let name = description.directory_name();
    let directory = KeptDirectory::create(admission, &name).map_err(Failure::Open)?;
    match directory.create_target(PAGES_FILE) {
        Ok(pages) => Ok(WriteRun::lay_out(description, pages, Some(directory))?),
        Err(error) => {
            // The directory is empty, so no entry has to be recognised. The error that matters is
            // the first one.
            let recognise_nothing = |_: &Entry<'_>| false;
            let _ = directory.remove(&recognise_nothing);
            Err(Failure::Open(error).into())
        }
    }
}

/// Opens a file or a device whose first blocks are overwritten.
fn lay_out_region(
    mut description: RunDescription,
    admission: Admission,
) -> anyhow::Result<WriteRun> {
    let pages = OpenTarget::open(admission).map_err(Failure::Open)?;
    let no_progress = || ();
    description.before = region_fingerprint(&description, &pages, &no_progress);
    Ok(WriteRun::lay_out(description, pages, None)?)
}

fn describe(flags: &CutWriteFlags, identity: &TargetIdentity) -> RunDescription {
    let is_directory = identity.kind == TargetKind::Directory;
    RunDescription {
        run: crate::provenance::run_id(),
        started_ms: u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0),
        host: host_facts().name,
        boot_id: boot_id().unwrap_or_default(),
        target: CutTarget::from_identity(identity),
        method: flags.method,
        is_control_evidence: false,
        streams: RunDescription::streams(flags.workers, is_directory),
        before: if is_directory {
            directory_change_time(Path::new(&identity.path))
        } else {
            None
        },
    }
}

/// Tells the person at the machine what to do now.
fn instruct(flags: &CutWriteFlags, run: &RunDescription, verbosity: Verbosity) {
    if !run.is_control_evidence {
        eprint_line(
            "warning: a power loss cannot be observed on this target, so the test can detect a \
             lying disk but cannot prove that a disk is honest. To prove it, use a disk or \
             partition, or a directory on ext4 or xfs on one.",
        );
    }
    verbosity.note(&format!(
        "run {}: pages by {}; the log at {} confirms them",
        diskproof_powercut::short_id(&run.run),
        run.method.name(),
        flags.connection.server
    ));
    verbosity.note(
        "CUT THE POWER at any time after ten seconds: pull the plug of the machine or the disk. A \
         shutdown, reboot or reset is not enough.",
    );
    verbosity.note(&format!(
        "Then start the machine, mount the filesystem as before, and run: diskproof powercut \
         verify {} {}",
        diskproof_model::shell::quoted(&run.target.path),
        flags.connection.shell_flags()
    ));
}

/// The progress on stderr.
struct CutProgress {
    line: ProgressLine,
    verbosity: Verbosity,
    start: Instant,
    /// When the last line was printed, where stderr is no terminal.
    printed: Instant,
}

impl CutProgress {
    fn new(verbosity: Verbosity) -> Self {
        let start = Instant::now();
        Self {
            line: ProgressLine::new(verbosity),
            verbosity,
            start,
            printed: start,
        }
    }

    fn show(&mut self, acknowledged_writes: u64) {
        if self.line.is_due() {
            let text = self.progress_text(acknowledged_writes);
            self.line.show(&text);
        } else if self.verbosity == Verbosity::Lines && self.printed.elapsed() >= LINE_INTERVAL {
            eprint_line(&self.progress_text(acknowledged_writes));
            self.printed = Instant::now();
        }
    }

    fn progress_text(&self, acknowledged_writes: u64) -> String {
        let seconds = self.start.elapsed().as_secs();
        format!("{seconds} s, {acknowledged_writes} acknowledged writes; cut the power")
    }
}
