//! `diskproof powercut verify`: the judgement after the cut. Opens the target for reading only.

use super::connection::ConnectionFlags;
use crate::failure::{Exit, Failure};
use crate::stderr::{Verbosity, eprint_line};
use crate::stdout::{ignore_closed_pipe, to_stdout, write_in_locale};
use crate::targets::resolve_target;
use diskproof_device::{Intent, OpenTarget, admit, probe};
use diskproof_model::shell::quoted;
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_powercut::{
    CutReport, CutTarget, CutVerdict, NotProvenReason, PAGES_FILE, RunDescription, RunLog,
    VerifyFacts, boot_id, change_before, content_before, judge, read_content, short, write_report,
};
use serde_json::json;
use std::path::{Path, PathBuf};

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
    let identity =
        probe(&resolve_target(&flags.target, Verbosity::Lines)).map_err(Failure::Probe)?;
    let description = choose(flags, &identity)?;
    let log = flags.connection.connect()?.fetch(&description.run)?;
    let found = CutTarget::of(&identity);
    if let Some(why) = log.description.target.difference(&found)
        && !flags.same_target
    {
        return Err(Failure::Usage(format!(
            "{}: this is not the target of run {}: {why}. If it is, add --same-target",
            identity.path,
            short(&description.run)
        ))
        .into());
    }
    let directory = (identity.kind == TargetKind::Directory)
        .then(|| Path::new(&identity.path).join(log.description.directory_name()));
    let parent = PathBuf::from(&identity.path);
    let pages = open_pages(identity, directory.as_deref())?;
    let now = match (&directory, &pages) {
        (Some(_), _) => change_before(&parent),
        (None, Some(pages)) => content_before(&log.description, pages),
        (None, None) => None,
    };
    let is_undone = log.description.is_undone(&found, now.as_deref());
    let content = read_content(&log.description, pages, directory.as_deref())?;
    let before = &log.description.boot_id;
    let facts = VerifyFacts {
        has_restarted: boot_id()
            .filter(|_| !before.is_empty())
            .map(|now| now != *before),
        is_same_target: flags.same_target || is_undone,
    };
    let report = judge(&log, &content, facts);
    print(flags, &log, &report)?;
    if let Some(directory) = directory.filter(|directory| directory.exists()) {
        let path = quoted(&directory.display().to_string());
        eprint_line(&format!(
            "the files of the test remain; remove them with: rm -r {path}"
        ));
    }
    Ok(match report.verdict {
        CutVerdict::Honest => Exit::Done,
        CutVerdict::Lying => Exit::ThresholdMissed,
        CutVerdict::NotProven => Exit::Undecided,
    })
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
    match (meant.next(), &flags.run, meant.next()) {
        (Some(_), Some(id), Some(_)) => Err(Failure::Usage(format!(
            "--run {id}: several runs start with these digits; add more"
        ))
        .into()),
        (Some(run), _, _) => Ok(run.clone()),
        (None, _, _) => Err(Failure::Usage(format!(
            "{}: the log has no such run. {}",
            flags.run.as_deref().unwrap_or(&identity.path),
            listed(&runs)
        ))
        .into()),
    }
}

fn listed(runs: &[RunDescription]) -> String {
    if runs.is_empty() {
        return "It has no runs".to_owned();
    }
    let names: Vec<String> = runs
        .iter()
        .take(LISTED)
        .map(|run| format!("{} ({} on {})", short(&run.run), run.target.path, run.host))
        .collect();
    format!(
        "The newest are {}. Select one with --run ID",
        names.join(", ")
    )
}

/// The command line that decides what nothing on the target shows.
fn assertion(flags: &CutVerifyFlags, run: &RunDescription) -> String {
    let (path, server) = (flags.target.display().to_string(), flags.connection.words());
    format!(
        "diskproof powercut verify {} {server} --run {} --same-target",
        quoted(&path),
        short(&run.run)
    )
}

fn print(flags: &CutVerifyFlags, log: &RunLog, report: &CutReport) -> anyhow::Result<()> {
    let decide = report.reason == Some(NotProvenReason::NoTrace);
    let command = decide.then(|| assertion(flags, &log.description));
    ignore_closed_pipe(to_stdout(|out| {
        if flags.json {
            let document = json!({
                "schema": "diskproof.powercut/1",
                "report": report,
                "description": log.description,
                "end": log.end,
                "command": command,
            });
            return writeln!(out, "{document:#}");
        }
        let command = command.as_deref();
        write_in_locale(out, |page| {
            write_report(report, &log.description, command, page)
        })
    }))
}
