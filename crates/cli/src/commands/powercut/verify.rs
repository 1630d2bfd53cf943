//! `diskproof powercut verify`: the judgement after the cut. Opens the target for reading only.

use super::log::ConnectionFlags;
use crate::failure::{Exit, Failure};
use crate::inspection;
use crate::stdio::{Verbosity, eprint_line};
use crate::targets::{identify, resolve_target};
use diskproof_device::{Intent, OpenTarget, admit, probe};
use diskproof_engine::RunError;
use diskproof_engine::watchdog::{Deferred, Heartbeat, SignsOfLife, Waited};
use diskproof_model::shell::quoted;
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::format_duration;
use diskproof_powercut::{
    CutError, CutReport, CutTarget, CutVerdict, NotProvenReason, PAGES_FILE, RunDescription,
    RunLog, StreamContent, VerifyFacts, boot_id, change_before, content_before,
    holds_only_files_of_run, judge, read_content, short, write_report,
};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often the wait for the target looks whether it answers.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The first note about a silence; each further one comes after twice the time.
const FIRST_NOTE: Duration = Duration::from_secs(10);
/// Runs that an error lists.
const LISTED: usize = 5;

/// Flags of `powercut verify`.
#[derive(Debug, clap::Args)]
pub struct CutVerifyFlags {
    /// The target of the run
    pub target: PathBuf,
    /// Where the log is.
    #[command(flatten)]
    pub connection: ConnectionFlags,
    /// The run, by the first digits of its name [default: the newest on this target]
    #[arg(long, value_name = "ID")]
    pub run: Option<String>,
    /// Assert that this is the target of the run, although it looks different or has no data of it
    #[arg(long)]
    pub same_target: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// Reads, judges and prints.
pub(super) fn run(flags: &CutVerifyFlags) -> anyhow::Result<Exit> {
    let target = resolve_target(&flags.target, Verbosity::Lines);
    let identity = identify(&target, Verbosity::Lines).map_err(Failure::Probe)?;
    inspection::end();
    let description = choose(flags, &identity)?;
    let log = flags.connection.connect()?.fetch(&description.run)?;
    let found = CutTarget::from_identity(&identity);
    if let Some(why) = log.description.target.difference(&found)
        && !flags.same_target
    {
        let (path, run) = (&identity.path, short(&description.run));
        let text = format!(
            "{path}: this is not the target of run {run}: {why}. If it is, add --same-target"
        );
        return Err(Failure::Usage(text).into());
    }
    let directory = (identity.kind == TargetKind::Directory)
        .then(|| Path::new(&identity.path).join(log.description.directory_name()));
    inspection::begin(&target, Verbosity::Lines);
    let pages = open_pages(identity.clone(), directory.as_deref())?;
    inspection::end();
    let (now, content) = read(&identity, &log.description, pages, directory.clone())?;
    let is_undone = log.description.is_undone(&found, now.as_deref());
    let before = &log.description.boot_id;
    let now = boot_id().filter(|_| !before.is_empty());
    let facts = VerifyFacts {
        has_restarted: now.map(|now| now != *before),
        is_same_target: flags.same_target || is_undone,
    };
    let report = judge(&log, &content, facts);
    print(flags, &log, &report)?;
    if let Some(directory) = directory.filter(|directory| directory.exists()) {
        let path = quoted(&directory.display().to_string());
        let how = if holds_only_files_of_run(&directory) {
            format!("remove them with: rm -r {path}")
        } else {
            format!("{path} also holds others, so remove only pages, file-N and entry-N in it")
        };
        eprint_line(&format!("the files of the test remain; {how}"));
    }
    Ok(match report.verdict {
        CutVerdict::Honest => Exit::Done,
        CutVerdict::Lying => Exit::ThresholdMissed,
        CutVerdict::NotProven => Exit::Undecided,
    })
}

/// Reads what shows whether the target is as before the run, and its content, on a thread that a
/// disk may hold: a disk that stops answering ends the wait.
fn read(
    target: &TargetIdentity,
    run: &RunDescription,
    pages: Option<OpenTarget>,
    directory: Option<PathBuf>,
) -> anyhow::Result<(Option<String>, Vec<StreamContent>)> {
    let heartbeat = Heartbeat::default();
    let mut signs = SignsOfLife::new(heartbeat.clone(), std::slice::from_ref(target));
    let (run, path) = (run.clone(), target.path.clone());
    let reading = Deferred::start("diskproof-verify", move || {
        let beat = || heartbeat.beat();
        let now = match (&directory, &pages) {
            (Some(_), _) => change_before(Path::new(&path)),
            (None, Some(pages)) => content_before(&run, pages, &beat),
            (None, None) => None,
        };
        let content = read_content(&run, pages, directory.as_deref(), &beat)?;
        Ok::<_, CutError>((now, content))
    });
    let reading = reading.map_err(|error| Failure::Run(RunError::Thread(error)))?;
    let (limit, mut next_note) = (inspection::limit(), FIRST_NOTE);
    let look = |silence: Duration| {
        if silence >= next_note {
            next_note *= 2;
            let silence = format_duration(silence.as_secs() * 1_000_000_000);
            eprint_line(&format!("{}: no answer for {silence}", target.path));
        }
        signs.look()
    };
    match reading.supervise(LOOK_EVERY, limit, look) {
        Waited::Done(read) => Ok(read?),
        Waited::TimedOut(_) => Err(Failure::Run(RunError::Stalled {
            path: target.path.clone(),
            workload: "verify".to_owned(),
            seconds: limit.as_secs(),
        })
        .into()),
        Waited::Lost => {
            let lost = std::io::Error::other("the thread that reads ended unexpectedly");
            Err(Failure::Run(RunError::Thread(lost)).into())
        }
    }
}

/// The region of the pages; `None` where its file is gone, or too short to be read.
fn open_pages(
    identity: TargetIdentity,
    directory: Option<&Path>,
) -> Result<Option<OpenTarget>, Failure> {
    let identity = match directory {
        None => identity,
        Some(directory) => match directory.join(PAGES_FILE) {
            file if !file.exists() => return Ok(None),
            file => probe(&file)?,
        },
    };
    let admission = admit(identity, Intent::Read)?;
    Ok(Some(OpenTarget::open(admission)?))
}

/// The run that `--run` names, or the newest on this target.
fn choose(flags: &CutVerifyFlags, identity: &TargetIdentity) -> anyhow::Result<RunDescription> {
    let runs = flags.connection.connect()?.list()?;
    let is_meant = |run: &&RunDescription| match &flags.run {
        Some(id) => run.run.starts_with(id.as_str()),
        None => run.target.path == identity.path,
    };
    let mut meant = runs.iter().filter(is_meant);
    let wrong = match (meant.next(), &flags.run, meant.next()) {
        (Some(_), Some(id), Some(_)) => {
            format!("--run {id}: several runs start with these digits; add more")
        }
        (Some(run), _, _) => return Ok(run.clone()),
        (None, _, _) => {
            let asked = flags.run.as_deref().unwrap_or(&identity.path);
            format!("{asked}: the log has no such run. {}", listed(&runs))
        }
    };
    Err(Failure::Usage(wrong).into())
}

fn listed(runs: &[RunDescription]) -> String {
    if runs.is_empty() {
        return "It has no runs".to_owned();
    }
    let name = |run: &RunDescription| {
        let (id, path, host) = (short(&run.run), &run.target.path, &run.host);
        format!("{id} ({path} on {host})")
    };
    let names: Vec<String> = runs.iter().take(LISTED).map(name).collect();
    let names = names.join(", ");
    format!("The newest are {names}. Select one with --run ID")
}

fn print(flags: &CutVerifyFlags, log: &RunLog, report: &CutReport) -> anyhow::Result<()> {
    // The command line that decides what nothing on the target shows.
    let command = (report.reason == Some(NotProvenReason::NoTrace)).then(|| {
        let path = quoted(&flags.target.display().to_string());
        let (server, run) = (flags.connection.words(), short(&log.description.run));
        format!("diskproof powercut verify {path} {server} --run {run} --same-target")
    });
    let document = json!({
        "schema": "diskproof.powercut/1",
        "report": report,
        "description": log.description,
        "end": log.end,
        "command": command,
    });
    crate::stdio::print_document(
        flags.json,
        |out| writeln!(out, "{document:#}"),
        |page| write_report(report, &log.description, command.as_deref(), page),
    )
}
