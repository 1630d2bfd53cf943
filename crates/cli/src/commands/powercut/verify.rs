//! `diskproof powercut verify`: the judgement after the cut. Opens the target for reading only.

use super::connection::ConnectionFlags;
use crate::failure::{Exit, Failure};
use crate::flags::SECOND_NS;
use crate::inspection;
use crate::stdio::{Presentation, Verbosity, eprint_line, print_document};
use crate::targets::{identify, resolve_target};
use diskproof_device::{Intent, OpenTarget, admit, host_facts, probe};
use diskproof_engine::RunError;
use diskproof_engine::watchdog::{Deferred, Heartbeat, SignsOfLife, Waited};
use diskproof_model::shell::quoted;
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::format_duration;
use diskproof_powercut::{
    CutError, CutReport, CutTarget, CutVerdict, NotProvenReason, PAGES_FILE, RunDescription,
    RunLog, StreamContent, VerifyFacts, boot_id, directory_change_time, holds_only_files_of_run,
    judge, read_content, region_fingerprint, short_id, write_report,
};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The interval at which the wait for the target looks for an answer.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The silence after which the first note about it comes; each further one comes after twice the
/// time of the one before. Chosen, not measured.
const FIRST_NOTE: Duration = Duration::from_secs(10);
/// The most runs that an error lists: it stays a sentence.
const LISTED_RUNS_MAX: usize = 5;

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

/// Judges the run by its log and by what is left of it, and prints the verdict, which is also the
/// exit code.
pub(super) fn run(flags: &CutVerifyFlags) -> anyhow::Result<Exit> {
    let target = resolve_target(&flags.target, Verbosity::Lines);
    let identity = identify(&target, Verbosity::Lines).map_err(Failure::Probe)?;
    // The limit is on the target's answers: the server of the log does not count.
    inspection::end();
    let current_target = CutTarget::from_identity(&identity);
    let host = host_facts().name;
    let chosen_run = choose_run(flags, &current_target, &host)?;
    let log = flags.connection.connect()?.fetch(&chosen_run.run)?;
    let is_of_host = log.description.is_of_host(&host, &current_target);
    if !is_of_host {
        warn_of_other_host(&log.description, &host);
    }
    check_same_target(flags, &log.description, &current_target)?;
    let directory = directory_of_run(&identity, &log.description);
    inspection::begin(&target, Verbosity::Lines);
    let pages = open_pages(identity.clone(), directory.as_deref())?;
    inspection::end();
    let remains = read_remains(&identity, &log.description, pages, directory.clone())?;
    let shows_state_before_run = log
        .description
        .is_undone(&current_target, remains.state.as_deref());
    let facts = VerifyFacts {
        has_restarted: has_restarted(&log.description.boot_id),
        is_same_target: flags.same_target || shows_state_before_run,
    };
    let report = judge(&log, &remains.content, facts);
    let command = if report.reason == Some(NotProvenReason::NoTrace) && is_of_host {
        Some(deciding_command(flags, &log))
    } else {
        None
    };
    print_verdict(flags, &log, &report, command.as_deref())?;
    // A run that may still be writing, or a later one that is not verified yet, needs them.
    let may_be_needed = matches!(
        report.reason,
        Some(NotProvenReason::LogBehind | NotProvenReason::Overwritten)
    );
    if let Some(directory) = directory
        && !may_be_needed
        && directory.exists()
    {
        note_remaining_files(&directory);
    }
    Ok(match report.verdict {
        CutVerdict::Honest => Exit::Done,
        CutVerdict::Lying => Exit::ThresholdMissed,
        CutVerdict::NotProven => Exit::Undecided,
    })
}

fn warn_of_other_host(run: &RunDescription, host: &str) {
    eprint_line(&format!(
        "warning: host {} wrote run {}, and this is host {host}. Verify it here only if its disk \
         was moved to this host. Select another run with --run ID",
        run.host,
        short_id(&run.run)
    ));
}

/// Refuses a target that looks different from that of the run, unless the user asserts that it is
/// the same.
fn check_same_target(
    flags: &CutVerifyFlags,
    run: &RunDescription,
    current_target: &CutTarget,
) -> Result<(), Failure> {
    match run.target.difference(current_target) {
        Some(why) if !flags.same_target => Err(Failure::Usage(format!(
            "{}: this is not the target of run {}: {why}. If it is, add --same-target",
            current_target.path,
            short_id(&run.run)
        ))),
        Some(_) | None => Ok(()),
    }
}

/// The directory that the run made; `None` where it wrote to a file or a device.
fn directory_of_run(target: &TargetIdentity, run: &RunDescription) -> Option<PathBuf> {
    match target.kind {
        TargetKind::Directory => Some(Path::new(&target.path).join(run.directory_name())),
        TargetKind::File | TargetKind::BlockDevice => None,
    }
}

/// True if the machine has started again since the run; `None` where either boot is unknown.
fn has_restarted(boot_before: &str) -> Option<bool> {
    if boot_before.is_empty() {
        return None;
    }
    let boot_now = boot_id()?;
    Some(boot_now != boot_before)
}

/// Tells the user which files of the test are left, and the command that removes them.
fn note_remaining_files(directory: &Path) {
    let path = quoted(&directory.display().to_string());
    let removal = if holds_only_files_of_run(directory) {
        format!("remove them with: rm -r {path}")
    } else {
        format!(
            "{path} also holds others, so remove only pages, file-N, entry-N and unfinished in it"
        )
    };
    eprint_line(&format!("the files of the test remain; {removal}"));
}

/// What a run has left on its target.
struct Remains {
    /// The state of the target: equals the one before the run's first write where that has come
    /// back. `None` where it cannot be read.
    state: Option<String>,
    content: Vec<StreamContent>,
}

/// Reads what is left of a run, on a thread that a disk may hold: a disk that stops answering ends
/// the wait.
fn read_remains(
    target: &TargetIdentity,
    run: &RunDescription,
    pages: Option<OpenTarget>,
    directory: Option<PathBuf>,
) -> anyhow::Result<Remains> {
    let heartbeat = Heartbeat::default();
    let mut signs = SignsOfLife::new(heartbeat.clone(), std::slice::from_ref(target));
    let run = run.clone();
    let path = target.path.clone();
    let reading = Deferred::start("diskproof-verify", move || {
        read_state_and_content(&path, &run, pages, directory.as_deref(), &heartbeat)
    })
    .map_err(|error| Failure::Run(RunError::Thread(error)))?;
    let limit = inspection::limit();
    let mut next_note = FIRST_NOTE;
    let waited = reading.supervise(POLL_INTERVAL, limit, |silence| {
        if silence >= next_note {
            next_note *= 2;
            let seconds = format_duration(silence.as_secs() * SECOND_NS);
            eprint_line(&format!("{}: no answer for {seconds}", target.path));
        }
        signs.look()
    });
    match waited {
        Waited::Done(remains) => Ok(remains?),
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

fn read_state_and_content(
    target_path: &str,
    run: &RunDescription,
    pages: Option<OpenTarget>,
    directory: Option<&Path>,
    heartbeat: &Heartbeat,
) -> Result<Remains, CutError> {
    let state = match (directory, &pages) {
        (Some(_), _) => directory_change_time(Path::new(target_path)),
        (None, Some(pages)) => region_fingerprint(run, pages, &|| heartbeat.beat()),
        (None, None) => None,
    };
    let content = read_content(run, pages, directory, &|| heartbeat.beat())?;
    Ok(Remains { state, content })
}

/// Opens the region of the pages; `None` where its file is gone.
fn open_pages(
    identity: TargetIdentity,
    directory: Option<&Path>,
) -> anyhow::Result<Option<OpenTarget>> {
    let pages = match directory {
        None => identity,
        Some(directory) => {
            let file = directory.join(PAGES_FILE);
            match file.try_exists() {
                Ok(true) => probe(&file).map_err(Failure::Probe)?,
                Ok(false) => return Ok(None),
                // A disk that is gone has lost no file.
                Err(error) => {
                    let path = file.display().to_string();
                    return Err(CutError::NotReadable(path, error).into());
                }
            }
        }
    };
    let admission = admit(pages, Intent::Read).map_err(Failure::from)?;
    let opened = OpenTarget::open(admission).map_err(Failure::from)?;
    Ok(Some(opened))
}

/// Finds the run that `--run` names, or the newest on this target. Fails where the log has none.
fn choose_run(
    flags: &CutVerifyFlags,
    target: &CutTarget,
    host: &str,
) -> anyhow::Result<RunDescription> {
    let runs = flags.connection.connect()?.list()?;
    let chosen = match &flags.run {
        Some(digits) => run_named(digits, &runs)?,
        None => newest_run(&runs, target, host),
    };
    if let Some(run) = chosen {
        return Ok(run.clone());
    }
    let wanted = match &flags.run {
        Some(digits) => digits,
        None => &target.path,
    };
    let text = format!(
        "{wanted}: the log has no such run. {}",
        newest_runs_sentence(&runs)
    );
    Err(Failure::Usage(text).into())
}

/// The newest run with the path of this target, and if this host wrote some of them, the newest of
/// those. `runs` are sorted, newest first.
fn newest_run<'a>(
    runs: &'a [RunDescription],
    target: &CutTarget,
    host: &str,
) -> Option<&'a RunDescription> {
    let mut of_another_host = None;
    for run in runs {
        if run.target.path != target.path {
            continue;
        }
        if run.is_of_host(host, target) {
            return Some(run);
        }
        of_another_host.get_or_insert(run);
    }
    of_another_host
}

/// The run whose name begins with these digits; fails for several.
fn run_named<'a>(
    digits: &str,
    runs: &'a [RunDescription],
) -> Result<Option<&'a RunDescription>, Failure> {
    let named: Vec<&RunDescription> = runs
        .iter()
        .filter(|run| run.run.starts_with(digits))
        .collect();
    if named.len() > 1 {
        return Err(Failure::Usage(format!(
            "--run {digits}: several runs start with these digits; add more"
        )));
    }
    Ok(named.first().copied())
}

/// A sentence that names the newest runs.
fn newest_runs_sentence(runs: &[RunDescription]) -> String {
    if runs.is_empty() {
        return "It has no runs".to_owned();
    }
    let mut names = Vec::new();
    for run in runs.iter().take(LISTED_RUNS_MAX) {
        let id = short_id(&run.run);
        names.push(format!("{id} ({} on {})", run.target.path, run.host));
    }
    format!(
        "The newest are {}. Select one with --run ID",
        names.join(", ")
    )
}

/// The command line that decides where nothing of the run is on the target: with it the user says
/// that it is the target of the run.
fn deciding_command(flags: &CutVerifyFlags, log: &RunLog) -> String {
    let path = quoted(&flags.target.display().to_string());
    let server = flags.connection.shell_flags();
    let run = short_id(&log.description.run);
    format!("diskproof powercut verify {path} {server} --run {run} --same-target")
}

/// Prints the report as a page or as JSON. `command` is the one that decides what is not proven.
fn print_verdict(
    flags: &CutVerifyFlags,
    log: &RunLog,
    report: &CutReport,
    command: Option<&str>,
) -> anyhow::Result<()> {
    let document = json!({
        "schema": "diskproof.powercut/1",
        "report": report,
        "description": log.description,
        "end": log.end,
        "command": command,
    });
    print_document(
        Presentation::from_json_flag(flags.json),
        |out| writeln!(out, "{document:#}"),
        |page| write_report(report, &log.description, command, page),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_powercut::CutMethod;

    fn run_of(host: &str, number: u8) -> RunDescription {
        RunDescription {
            run: format!("{number:032x}"),
            started_ms: 0,
            host: host.to_owned(),
            boot_id: String::new(),
            target: directory("/data"),
            method: CutMethod::Fdatasync,
            is_control_evidence: true,
            streams: RunDescription::streams(1, true),
            before: None,
        }
    }

    fn directory(path: &str) -> CutTarget {
        CutTarget {
            path: path.to_owned(),
            kind: TargetKind::Directory,
            size_bytes: 0,
            serial: None,
            model: None,
            inode: 2,
            filesystem: None,
        }
    }

    /// Both hosts test /data, and write to the same log.
    #[test]
    fn newest_run_of_this_host_is_chosen_before_newer_ones_of_others() {
        let runs = [run_of("b", 3), run_of("a", 2), run_of("a", 1)];
        let chosen = |host| newest_run(&runs, &directory("/data"), host).map(|run| &run.run);
        assert_eq!(chosen("a"), Some(&runs[1].run));
        assert_eq!(chosen("b"), Some(&runs[0].run));
        // Its disk may have come from there.
        assert_eq!(chosen("c"), Some(&runs[0].run));
        assert_eq!(newest_run(&runs, &directory("/other"), "a"), None);
    }
}
