//! Opens the targets of a run (`open/targets`), reads their health, measures the clock, and takes
//! over what the run changes besides its targets. The order in [`open`] matters: smartctl comes
//! before the run, which it would disturb; the fence of several hosts comes after what takes time,
//! so that all begin together; and what the run has to put back, as a write cache, is taken last.

mod facts;
mod targets;

use super::bench::Bench;
use super::ended_run::EndedRun;
use super::fences::join;
use super::gate::Granted;
use super::job::{AgreedChanges, MeasuringJob, ProgressView, SettingCommands, StdoutForm};
use super::journal::RunJournal;
use super::ping::request_lines;
use super::sides::ComparedSides;
use super::sink::Sink;
use crate::failure::Failure;
use crate::flags::MeasuringFlags;
use crate::interrupt;
use crate::pieces::{hello, write_pieces};
use crate::stdio::{ignore_closed_pipe, to_stdout};
use crate::targets::{read_health, warn_of_failing};
use crate::tool_lines::ToolLines;
use diskproof_analysis::judge::RunFacts;
use diskproof_device::{
    Admission, Consent, GuardedWriteCache, MachineCpuTime, OpenTarget, raise_descriptor_limit,
};
use diskproof_engine::{RunError, Session};
use diskproof_model::budget::Budget;
use diskproof_model::fleet::Hello;
use diskproof_model::health::DiskHealth;
use diskproof_model::target::TargetIdentity;
use diskproof_report::terminal::budget_line;
pub(crate) use facts::run_facts;
use facts::{seed_of_host, session_facts};
use std::sync::Arc;
use std::time::{Duration, Instant};
use targets::{OpenedTargets, open_targets, own_targets, reopened};

/// The outcome of opening the targets of a run.
pub(super) enum Opened {
    /// They are open.
    Run(Box<OpenRun>),
    /// The disk of one of them failed, which is all that the run found.
    Failed(Box<EndedRun>),
}

/// A run whose targets are open.
pub(super) struct OpenRun {
    /// The engine, the targets, and whatever else it needs.
    pub bench: Bench,
    /// The place of its results.
    pub sink: Sink,
    /// Files of this program, which get their whole length at the end.
    pub own_files: Vec<OpenTarget>,
    /// The longest silence of a target.
    pub stall_timeout: Duration,
    /// The machine's CPU time so far.
    pub cpu_time: Option<MachineCpuTime>,
}

/// Opens the targets that the gate has admitted. A disk that fails there is a fact of the run,
/// which has nothing else.
pub(super) fn open(job: MeasuringJob<'_>, granted: Granted) -> anyhow::Result<Opened> {
    let Granted {
        budget,
        admissions,
        consent,
        stall_timeout,
    } = granted;
    raise_descriptor_limit();
    for hint in admissions.iter().filter_map(Admission::hint) {
        job.flags.verbosity().note(&hint);
    }
    let opened = match open_targets(&job.plan, admissions, job.shown.kept_files()) {
        Ok(opened) => opened,
        Err(failure) if failure.of_target().is_some() => {
            let ended = failed_run(job, failure, stall_timeout)?;
            return Ok(Opened::Failed(Box::new(ended)));
        }
        Err(failure) => return Err(failure.into()),
    };
    let run = open_run(job, opened, Arc::new(budget), consent, stall_timeout)?;
    Ok(Opened::Run(Box::new(run)))
}

/// A run that ends before it begins, because a target failed.
fn failed_run(
    job: MeasuringJob<'_>,
    failure: Failure,
    stall_timeout: Duration,
) -> anyhow::Result<EndedRun> {
    let flags = job.flags;
    let session = new_session(seed_of_host(&job.plan, flags), stall_timeout, &job.shown);
    let health = health_before(&job.identities, flags);
    let facts = session_facts(&session, job.plan, job.identities, job.note, health, flags);
    if flags.prints_pieces() {
        announce(&facts)?;
    }
    Ok(EndedRun::not_opened(facts, failure, stall_timeout))
}

/// Reads the health of the disks, and measures the clock. A scratch file with a name stays in its
/// directory.
fn open_run(
    job: MeasuringJob<'_>,
    opened: OpenedTargets,
    budget: Arc<Budget>,
    consent: Consent,
    stall_timeout: Duration,
) -> anyhow::Result<OpenRun> {
    let MeasuringJob {
        plan,
        identities,
        flags,
        note,
        agreed,
        sides,
        shown,
        view,
        goes_on,
    } = job;
    let OpenedTargets { targets, file_tree } = opened;
    let verbosity = flags.verbosity();
    let kept_files = shown.kept_files();
    let own_targets = own_targets(&targets, &plan, flags, kept_files);
    let own_files = reopened(&targets, &own_targets)?;
    // Before the run: smartctl would disturb it.
    let health = health_before(&identities, flags);
    if !goes_on {
        verbosity.note(&budget_line(&plan, &identities));
    }
    let session = new_session(seed_of_host(&plan, flags), stall_timeout, &shown);
    let facts = Arc::new(session_facts(
        &session, plan, identities, note, health, flags,
    ));
    let mut sink = open_sink(&facts, &budget, sides, &shown, view, flags).map_err(Failure::Run)?;
    let cpu_time = MachineCpuTime::now();
    if flags.prints_pieces() {
        announce(&facts)?;
    }
    let joining = Instant::now();
    let together = join(&facts.plan, &flags.together, &session);
    // A rank that does not come to a fence costs no part of the announced time.
    sink.progress.extend_deadline(joining.elapsed());
    let mut bench = Bench {
        session,
        together,
        facts,
        budget,
        targets,
        file_tree,
        consent,
        programs: None,
        commands: SettingCommands::default(),
        job_commands: Vec::new(),
        write_cache: None,
        first_writes: Vec::new(),
        limit_end: None,
        own_targets,
    };
    take_agreed(&mut bench, agreed)?;
    Ok(OpenRun {
        bench,
        sink,
        own_files,
        stall_timeout,
        cpu_time,
    })
}

/// The health of the disks, unless the user forbids to ask; says which of them is failing.
fn health_before(identities: &[TargetIdentity], flags: &MeasuringFlags) -> Vec<DiskHealth> {
    if flags.health.no_health {
        return Vec::new();
    }
    let health = read_health(identities);
    warn_of_failing(&health, flags.verbosity());
    health
}

/// The session of the engine. A tool that fails where direct I/O is refused makes it fail there.
fn new_session(seed: u64, stall_timeout: Duration, shown: &StdoutForm) -> Session {
    let stall_ns = u64::try_from(stall_timeout.as_nanos()).unwrap_or(u64::MAX);
    let session = Session::new(seed).with_stall_timeout(stall_ns);
    match shown.tool() {
        Some(tool) if tool.fails_without_direct() => session.failing_without_direct(),
        _ => session,
    }
}

/// The place of the results of a run, with its journal, its lines and its screen. From now on
/// Ctrl-C ends the run and keeps what is known.
fn open_sink(
    facts: &Arc<RunFacts>,
    budget: &Arc<Budget>,
    sides: Option<ComparedSides>,
    shown: &StdoutForm,
    view: ProgressView,
    flags: &MeasuringFlags,
) -> Result<Sink, RunError> {
    let journal = RunJournal::start(&flags.history, facts, &flags.expected, sides);
    interrupt::end_cleanly();
    let mut sink = Sink::new(facts, budget, journal, flags.verbosity());
    if flags.counts_wake_up {
        sink.progress.count_wake_up();
    }
    start_lines(&mut sink, facts, shown, flags)?;
    if view == ProgressView::Screen {
        sink.progress.show_screen();
    }
    Ok(sink)
}

/// Announces the run on stdout, so that one which dies is known.
fn announce(facts: &RunFacts) -> anyhow::Result<()> {
    let hello = Hello {
        slots: facts.plan.timetable().map(|slots| slots.len() as u32),
        started: Some(facts.started.clone()),
        ..hello(&facts.run_id, &facts.host, &facts.targets)
    };
    ignore_closed_pipe(to_stdout(|out| write_pieces(&hello, out)))
}

/// Starts what prints lines while the run goes on: those of a tool, or of single requests.
fn start_lines(
    sink: &mut Sink,
    facts: &RunFacts,
    shown: &StdoutForm,
    flags: &MeasuringFlags,
) -> Result<(), RunError> {
    if let Some(tool) = shown.tool()
        && !flags.prints_record()
    {
        let started = ToolLines::start(tool.clone()).map_err(RunError::Thread)?;
        sink.progress.tool = Some(started);
    } else if let Some(ping) = facts.plan.ping() {
        sink.request_lines = request_lines(ping, &facts.targets, flags);
    }
    Ok(())
}

/// Takes what the run changes besides its targets. A guard restores the write cache from here on.
fn take_agreed(bench: &mut Bench, agreed: AgreedChanges) -> Result<(), Failure> {
    match agreed {
        AgreedChanges::NothingElse => {}
        AgreedChanges::Server(programs) => bench.programs = Some(programs),
        AgreedChanges::Commands(commands) => bench.commands = commands,
        AgreedChanges::JobCommands(commands) => bench.job_commands = commands,
        AgreedChanges::WriteCache(switch) => {
            bench.write_cache = Some(GuardedWriteCache::start(switch)?);
        }
    }
    Ok(())
}
