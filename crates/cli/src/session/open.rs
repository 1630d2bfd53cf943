//! Opens the targets of a run, reads their health, measures the clock, and takes over what the run
//! changes besides its targets.

use super::bench::{Bench, OwnTarget};
use super::fences::{join, wall_clock};
use super::gate::Granted;
use super::job::{AgreedChanges, MeasuringJob, ProgressView, SettingCommands, StdoutForm};
use super::journal::RunJournal;
use super::ping::request_lines;
use super::sides::ComparedSides;
use super::sink::Sink;
use crate::failure::Failure;
use crate::flags::MeasuringFlags;
use crate::interrupt;
use crate::launchers;
use crate::pieces::{hello, write_pieces};
use crate::plan_file::KeptFile;
use crate::provenance::{machine, random_seed, run_id, timestamp, tool};
use crate::stdio::{ignore_closed_pipe, to_stdout};
use crate::targets::{read_health, warn_of_failing};
use crate::tool_lines::ToolLines;
use diskproof_analysis::judge::{RunFacts, RunVariation};
use diskproof_device::{
    Admission, GuardedWriteCache, MachineCpuTime, OpenError, OpenTarget, PartOfFile, host_facts,
    raise_descriptor_limit,
};
use diskproof_engine::{RunError, Session, measure_clock};
use diskproof_model::budget::Budget;
use diskproof_model::fleet::Hello;
use diskproof_model::health::DiskHealth;
use diskproof_model::plan::Plan;
use diskproof_model::scatter::mixed;
use diskproof_model::target::{HostFacts, TargetIdentity, TargetKind};
use diskproof_report::terminal::budget_line;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

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

/// Opens the targets that the gate has admitted, reads their health, and measures the clock. A
/// scratch file with a name stays in its directory.
pub(super) fn open(job: MeasuringJob<'_>, granted: Granted) -> anyhow::Result<OpenRun> {
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
    let Granted {
        budget,
        admissions,
        consent,
        stall_timeout,
    } = granted;
    let budget = Arc::new(budget);
    let verbosity = flags.verbosity();
    raise_descriptor_limit();
    for hint in admissions.iter().filter_map(Admission::hint) {
        verbosity.note(&hint);
    }
    let kept_files = shown.kept_files();
    let OpenedTargets { targets, file_tree } = open_targets(&plan, admissions, kept_files)?;
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

/// The facts of a run that begins with this session.
fn session_facts(
    session: &Session,
    plan: Plan,
    identities: Vec<TargetIdentity>,
    note: Option<String>,
    health: Vec<DiskHealth>,
    flags: &MeasuringFlags,
) -> RunFacts {
    let mut facts = RunFacts {
        note,
        health,
        ..run_facts(session.started(), plan, identities)
    };
    if flags.together.together {
        facts.clock.wall = Some(wall_clock(&flags.together, session));
    }
    if let Some(rank) = flags.together.rank {
        facts.host.rank = Some(rank);
    }
    facts
}

/// The seed of offsets and data. Of hosts that measure together the plan is the same, and what they
/// read and write is not.
fn seed_of_host(plan: &Plan, flags: &MeasuringFlags) -> u64 {
    if !flags.together.together {
        return plan.seed;
    }
    match flags.together.rank.or_else(launchers::rank) {
        Some(rank) => mixed(plan.seed, u64::from(rank.rank)),
        None => mixed(plan.seed, random_seed()),
    }
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

/// The targets of a run.
struct OpenedTargets {
    /// Those that are measured by requests, in their order.
    targets: Vec<OpenTarget>,
    /// Leave to make a directory for many small files, where the plan has them in place of targets.
    file_tree: Option<Admission>,
}

/// Opens the targets that the plan measures by requests.
fn open_targets(
    plan: &Plan,
    admissions: Vec<Admission>,
    kept_files: &[Option<KeptFile>],
) -> Result<OpenedTargets, Failure> {
    let mut file_tree = None;
    let mut targets = Vec::new();
    for (index, admission) in admissions.into_iter().enumerate() {
        if plan.files().is_some() {
            file_tree = Some(admission);
            continue;
        }
        targets.push(match kept_files.get(index).and_then(Option::as_ref) {
            Some(kept) => create_kept(admission, kept, plan.scratch_bytes_on(index))?,
            None => OpenTarget::open(admission)?,
        });
    }
    for target in &targets {
        target.wipe_unknown()?;
    }
    Ok(OpenedTargets { targets, file_tree })
}

/// The facts of a run that began at this instant.
pub(crate) fn run_facts(started: SystemTime, plan: Plan, targets: Vec<TargetIdentity>) -> RunFacts {
    RunFacts {
        tool: tool(),
        run_id: run_id(),
        started: timestamp(started),
        partial: false,
        ended_early: None,
        stalled: None,
        note: None,
        host: host_of_run(),
        clock: measure_clock(),
        plan,
        targets,
        health: Vec::new(),
        variation: RunVariation::Earlier(Vec::new()),
    }
}

/// The host, with what its launcher says of this process.
fn host_of_run() -> HostFacts {
    let host = host_facts();
    HostFacts {
        rank: launchers::rank(),
        job: launchers::job(),
        // A container has the file of its image.
        machine: match host.container {
            Some(_) => None,
            None => machine(),
        },
        ..host
    }
}

/// Creates a scratch file of `bytes` bytes that stays in its directory, or several files with an
/// equal part of them each.
fn create_kept(
    admission: Admission,
    kept: &KeptFile,
    bytes: Option<u64>,
) -> Result<OpenTarget, OpenError> {
    let target = match kept.names.as_slice() {
        [name] => OpenTarget::create_named(admission, name, kept.file_bytes)?,
        names => {
            let part = PartOfFile {
                start: kept.part_start,
                bytes: bytes.unwrap_or(0) / names.len().max(1) as u64,
            };
            OpenTarget::create_all_named(admission, names, part, kept.file_bytes)?
        }
    };
    // A new file is marked while it is empty: what another program writes to it then shows.
    if !target.is_marked_own() {
        target.mark_own();
    }
    Ok(target)
}

/// The own files of the run once more, for what is done to them at its end.
fn reopened(targets: &[OpenTarget], own_targets: &[OwnTarget]) -> anyhow::Result<Vec<OpenTarget>> {
    let mut files = Vec::new();
    for own in own_targets {
        files.push(targets[own.target].reopen()?);
    }
    Ok(files)
}

/// The targets that are files of diskproof's own: those that this run makes, and those that an
/// earlier one made for a tool, where only their mark releases them.
fn own_targets(
    targets: &[OpenTarget],
    plan: &Plan,
    flags: &MeasuringFlags,
    kept_files: &[Option<KeptFile>],
) -> Vec<OwnTarget> {
    let destructive = &flags.destructive;
    let rewrites = destructive.own_files && !destructive.overwrite && plan.writes();
    let mut own_targets = Vec::new();
    for (index, target) in targets.iter().enumerate() {
        let is_kept = matches!(kept_files.get(index), Some(Some(_)));
        if is_kept || (rewrites && target.identity().kind == TargetKind::File) {
            own_targets.push(OwnTarget {
                target: index,
                is_marked: target.is_marked_own(),
            });
        }
    }
    own_targets
}
