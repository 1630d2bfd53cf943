//! `diskproof powercut write`: the load before the cut.

use super::log::ConnectionFlags;
use crate::failure::{Exit, Failure};
use crate::flags::{Choice, DestructiveFlags, choices, one_of};
use crate::interrupt;
use crate::stdio::{ProgressLine, Verbosity, eprint_line};
use crate::targets::{probe_target, refuse_foreign_link};
use diskproof_device::{Admission, Intent, KeptDirectory, OpenTarget, admit, host_facts};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::{format_bytes, parse_duration};
use diskproof_powercut::{
    CutMethod, CutTarget, NextStep, PAGES_FILE, RunDescription, RunProgress, StreamKind,
    WORKERS_MAX, WriteRun, boot_id, directory_change_time, region_fingerprint,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Small files and names in a directory, alongside the pages.
const FILES_BYTES: u64 = 1 << 20;
/// Without a terminal, one line of progress in this time.
const LINE_EVERY: Duration = Duration::from_secs(10);

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
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
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

/// Writes until the power is cut, or until Ctrl-C or the end of the time, which prove nothing.
pub(super) fn run(flags: &CutWriteFlags) -> anyhow::Result<Exit> {
    let verbosity = if flags.quiet {
        Verbosity::Quiet
    } else {
        Verbosity::of_stderr()
    };
    refuse_foreign_link(&flags.target)?;
    let identity = probe_target(&flags.target, flags.destructive.keep_free, verbosity)?;
    let description = describe(flags, &identity);
    let bytes = description.region_bytes() + FILES_BYTES;
    let consent = flags.destructive.consent(std::slice::from_ref(&identity))?;
    let intent = match identity.kind {
        TargetKind::Directory => Intent::Scratch { size_bytes: bytes },
        TargetKind::File | TargetKind::BlockDevice => Intent::Overwrite(&consent),
    };
    let admission = admit(identity.clone(), intent).map_err(Failure::Refused)?;
    if flags.dry_run {
        verbosity.note(&format!(
            "would write {} to {} repeatedly until the cut",
            format_bytes(bytes),
            identity.path
        ));
        return Ok(Exit::Done);
    }
    // Before anything is written: without a log the writes would prove nothing.
    let mut log = flags.connection.connect()?;
    interrupt::listen()?;
    interrupt::end_cleanly();
    crate::inspection::end();
    let run = match identity.kind {
        TargetKind::Directory => lay_out_directory(description, admission)?,
        TargetKind::File | TargetKind::BlockDevice => lay_out_region(description, admission)?,
    };
    let laid_out = run.description().clone();
    let mut screen = Screen::new(flags, &laid_out, verbosity);
    let mut is_instructed = false;
    let written = run.write(&mut log, |progress| {
        // Not before the log knows the run: a cut would prove nothing.
        if !is_instructed {
            instruct(flags, &laid_out, verbosity);
            is_instructed = true;
        }
        screen.show(progress);
        if interrupt::signal().is_some() || screen.is_over() {
            NextStep::Stop
        } else {
            NextStep::Continue
        }
    });
    screen.line.clear();
    let written = written?;
    if let Some(why) = &written.stays {
        eprint_line(&format!("warning: {why}"));
    }
    verbosity.note(&format!(
        "stopped without a power cut after {} acknowledged writes; nothing is proven",
        screen.acknowledged(&written.progress)
    ));
    match interrupt::signal() {
        Some(signal) => Ok(Exit::Signal(signal)),
        None => Ok(Exit::Done),
    }
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
            // The error that matters is the first one.
            let _ = directory.remove(&|_| false);
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
    description.before = region_fingerprint(&description, &pages, &|| ());
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

/// Says what to do now, to someone who stands before the machine.
fn instruct(flags: &CutWriteFlags, run: &RunDescription, verbosity: Verbosity) {
    if !run.is_control_evidence {
        eprint_line(
            "warning: a power loss cannot be observed on this target, so the test can detect a \
             lying disk but cannot prove that a disk is honest. To prove it, use a block device, \
             or a directory on ext4 or xfs.",
        );
    }
    verbosity.note(&format!(
        "run {}: pages by {}; the log at {} confirms them",
        diskproof_powercut::short(&run.run),
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
        flags.connection.words()
    ));
}

/// The progress on stderr, and the end of the time.
struct Screen {
    line: ProgressLine,
    verbosity: Verbosity,
    start: Instant,
    /// When the time of `--time` is over.
    end: Option<Instant>,
    /// When the last line was printed, where stderr is no terminal.
    printed: Instant,
    /// For each stream of the run, whether its writes are acknowledged as durable.
    is_acknowledged: Vec<bool>,
}

impl Screen {
    fn new(flags: &CutWriteFlags, run: &RunDescription, verbosity: Verbosity) -> Self {
        let start = Instant::now();
        Self {
            line: ProgressLine::new(verbosity),
            verbosity,
            start,
            end: flags.time.map(|ns| start + Duration::from_nanos(ns)),
            printed: start,
            is_acknowledged: run
                .streams
                .iter()
                .map(|stream| stream.kind != StreamKind::Control)
                .collect(),
        }
    }

    /// The number of writes that were acknowledged.
    fn acknowledged(&self, progress: &RunProgress) -> u64 {
        let mut writes = 0;
        for (count, is_acknowledged) in progress.counts.iter().zip(&self.is_acknowledged) {
            if *is_acknowledged {
                writes += count;
            }
        }
        writes
    }

    fn is_over(&self) -> bool {
        match self.end {
            Some(end) => Instant::now() >= end,
            None => false,
        }
    }

    fn show(&mut self, progress: &RunProgress) {
        if self.line.is_due() {
            let text = self.progress_text(progress);
            self.line.show(&text);
        } else if self.verbosity == Verbosity::Lines && self.printed.elapsed() >= LINE_EVERY {
            eprint_line(&self.progress_text(progress));
            self.printed = Instant::now();
        }
    }

    fn progress_text(&self, progress: &RunProgress) -> String {
        let seconds = self.start.elapsed().as_secs();
        let writes = self.acknowledged(progress);
        format!("{seconds} s, {writes} acknowledged writes; cut the power")
    }
}
