//! Measures INSERTs of a temporary PostgreSQL server in the target, half of them before and half
//! after the workloads of the plan. The disk may drift meanwhile; both halves together see the same
//! disk as the workloads.

use super::bench::Bench;
use super::running::{Running, Stepped};
use super::sink::{EarlyEnd, INTERRUPTED, Leftover, Sink, end_with_leftover, late_text};
use super::trials::{self, ServerBench, Trials};
use super::workloads::WorkloadsRun;
use crate::interrupt;
use crate::stdio::{ProgressLine, eprint_line};
use diskproof_device::{Intent, OpenError, admit};
use diskproof_engine::random::Random;
use diskproof_engine::watchdog::Heartbeat;
use diskproof_engine::{DiskWatch, RunError};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::plan::{Inserts, Plan, Task};
use diskproof_model::postgres::{
    LoadMeasurement, PostgresLoad, PostgresMeasurement, PostgresPlan, PostgresSlice, TrialPlan,
};
use diskproof_model::units::{format_bytes, format_duration};
use diskproof_postgres::{Cluster, CommitLoad, PostgresError, StopCheck, remove_leftover};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// initdb writes about this many bytes. The room of a cluster in `diskproof_model::postgres` counts
/// them, too.
const INITDB_BYTES: u64 = 40 << 20;
/// The longest that the removal of the cluster may take after the end of a run: a server that the
/// disk holds in a sync cannot end. Requests in flight get as long (ARCHITECTURE.md).
const REMOVAL_AFTER_END: Duration = Duration::from_secs(4);
/// The first of the random streams for the order of loads, one a round. The value is arbitrary, and
/// lies beyond the streams of workloads.
const ORDER_STREAM: u64 = 0x5047_0000;
/// Settings are tried for at least a fourth of their planned time, however late the run is. Chosen,
/// not measured.
const TRIAL_TIME_DIVISOR: u64 = 4;

/// The INSERTs of a plan and the workloads between their halves, while they are measured. A step is
/// a round of INSERTs, a slice of the workloads, or all settings.
pub(super) struct InsertsRun<'p> {
    plan: &'p PostgresPlan,
    seed: u64,
    server: Server,
    /// The rounds of INSERTs so far, of both halves.
    rounds: u64,
    between: WorkloadsRun<'p>,
    /// The workloads have been measured.
    has_workloads: bool,
    /// When the removal of the cluster is waited for no longer.
    removal_end: Option<Instant>,
}

/// The temporary server of a run.
enum Server {
    /// It runs.
    Started(Box<ServerBench>),
    /// The disk is too slow for one, as the words say. The workloads are measured without it.
    TooSlow(String),
}

/// The parts of the measurement, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Half of the rounds of INSERTs.
    FirstHalf,
    /// The workloads of the plan.
    Workloads,
    /// The other rounds of INSERTs.
    SecondHalf,
    /// Settings that the server tries, where the plan has some.
    Settings,
}

impl<'p> InsertsRun<'p> {
    /// Starts the server, unless the disk is too slow for one. Where it cannot start, nothing is
    /// measured.
    pub(super) fn start(
        plan: &'p Plan,
        inserts: &'p Inserts,
        bench: &mut Bench,
        sink: &mut Sink,
    ) -> Result<Self, EarlyEnd> {
        let removal_end = sink
            .progress
            .announced_end()
            .map(|end| end + REMOVAL_AFTER_END);
        let server = match why_too_slow(&inserts.server, bench, sink)? {
            Some(why) => {
                sink.verbosity.note(&why);
                Server::TooSlow(why)
            }
            None => {
                let server = start_server(&inserts.server, removal_end, bench, sink)?;
                Server::Started(Box::new(server))
            }
        };
        Ok(Self {
            plan: &inserts.server,
            seed: plan.seed,
            server,
            rounds: 0,
            between: WorkloadsRun::new(plan),
            has_workloads: false,
            removal_end,
        })
    }

    /// The part to which the next step belongs.
    fn part(&self) -> Part {
        let half = u64::from(self.plan.rounds);
        if self.rounds < half {
            Part::FirstHalf
        } else if !self.has_workloads {
            Part::Workloads
        } else if self.rounds < 2 * half {
            Part::SecondHalf
        } else {
            Part::Settings
        }
    }
}

/// Starts the server, and notes that nothing is measured yet.
fn start_server(
    plan: &PostgresPlan,
    removal_end: Option<Instant>,
    bench: &Bench,
    sink: &mut Sink,
) -> Result<ServerBench, EarlyEnd> {
    let silence_before_ns = match bench.targets.first() {
        Some(target) => target.take_silence_ns(),
        None => 0,
    };
    sink.verbosity
        .note("starting a temporary PostgreSQL server");
    sink.begin_step("the start of PostgreSQL");
    sink.results().leftover = Some(Leftover::Server);
    let stop = stop_check(sink.progress.announced_end());
    let watch = DiskWatch::start(&bench.facts.targets[0]);
    let started = start_cluster(plan, &stop, removal_end, bench, sink);
    let silence_ns = watch.end();
    let cluster = match started {
        Ok(cluster) => cluster,
        Err(error) => {
            // The run keeps what no result has.
            let longest_ns = silence_before_ns.max(silence_ns);
            if let Some(target) = bench.targets.first()
                && longest_ns > 0
            {
                target.note_silence(longest_ns);
            }
            return Err(end_without_server(error, sink));
        }
    };
    sink.results().data.postgres = Some(PostgresMeasurement {
        silence_before_ns: silence_before_ns.max(silence_ns),
        ..empty_measurement(plan)
    });
    Ok(ServerBench {
        cluster,
        stop,
        heartbeat: sink.progress.heartbeat(),
        line: ProgressLine::new(sink.verbosity),
    })
}

/// Starts the server and creates its table. initdb may take longer than a silence that means a
/// hang, so the heartbeat beats meanwhile: it has a limit of its own.
fn start_cluster(
    plan: &PostgresPlan,
    stop: &StopCheck,
    removal_end: Option<Instant>,
    bench: &Bench,
    sink: &Sink,
) -> Result<Cluster, PostgresError> {
    let target = &bench.facts.targets[0];
    let programs = bench.programs.clone();
    let programs = programs.expect("the gate refuses a plan whose programs were not found");
    let stop = with_heartbeat(stop, sink.progress.heartbeat());
    if let Some(path) = remove_leftover(Path::new(&target.path))? {
        sink.verbosity.note(&format!(
            "{}: removed the temporary PostgreSQL cluster of an earlier run",
            path.display()
        ));
    }
    let admission = admit(
        target.clone(),
        Intent::Scratch {
            size_bytes: plan.room_bytes(),
        },
    )
    .map_err(OpenError::Refused)?;
    let cluster = Cluster::start(admission, programs, &stop, removal_end)?;
    match cluster.lay_out(&stop) {
        Ok(()) => Ok(cluster),
        Err(error) => {
            let error = cluster.explain(error);
            Err(cluster.end_after(error, removal_end))
        }
    }
}

impl Running for InsertsRun<'_> {
    fn step(&mut self, bench: &mut Bench, sink: &mut Sink) -> Result<Stepped, EarlyEnd> {
        let part = self.part();
        let server = match &mut self.server {
            Server::Started(server) => server,
            Server::TooSlow(why) => {
                return match self.between.step(bench, sink)? {
                    Stepped::More => Ok(Stepped::More),
                    Stepped::Over => Err(why.clone().into()),
                };
            }
        };
        match part {
            Part::FirstHalf | Part::SecondHalf => {
                let watch = DiskWatch::start(&bench.facts.targets[0]);
                let mut random = Random::new(self.seed, ORDER_STREAM + self.rounds);
                let measured = measure_round(server, self.plan, &mut random, bench, sink);
                keep_silence(watch.end(), sink);
                measured?;
                self.rounds += 1;
                if self.part() != part {
                    note_end_of_part(bench, sink);
                }
                Ok(Stepped::More)
            }
            Part::Workloads => {
                if self.between.step(bench, sink)? == Stepped::Over {
                    self.has_workloads = true;
                    sink.progress.finish();
                }
                Ok(Stepped::More)
            }
            Part::Settings => {
                if let Some(trial) = &self.plan.trial {
                    let watch = DiskWatch::start(&bench.facts.targets[0]);
                    let tried = try_settings(trial, server, self.seed, bench, sink);
                    keep_silence(watch.end(), sink);
                    tried?;
                }
                Ok(Stepped::Over)
            }
        }
    }

    /// Ends the workloads, and removes the cluster.
    fn end(
        self: Box<Self>,
        ended: Result<(), EarlyEnd>,
        bench: &mut Bench,
        sink: &mut Sink,
    ) -> Result<(), EarlyEnd> {
        let Self {
            server,
            between,
            removal_end,
            ..
        } = *self;
        let ended = Box::new(between).end(ended, bench, sink);
        let Server::Started(server) = server else {
            return ended;
        };
        sink.progress.finish();
        sink.progress.look_at_end();
        let removed = server.cluster.end(removal_end);
        sink.results().leftover = None;
        match removed {
            Ok(Some(failure)) if failure.disk_errno().is_some() && !has_disk_error(sink) => {
                note_disk_error(&failure, sink);
                end_with_leftover(ended, &failure)
            }
            // A server that ended otherwise is gone; what it lacks was told.
            Ok(_) => ended,
            Err(PostgresError::Open(error @ OpenError::Stays { .. })) => {
                warn_of_foreign_files(&error);
                ended
            }
            Err(error) => end_with_leftover(ended, &error),
        }
    }
}

/// Returns `true` if an error of the server's disk is known: its log tells the same one again.
fn has_disk_error(sink: &Sink) -> bool {
    match &sink.results().data.postgres {
        Some(postgres) => !postgres.errors.is_empty(),
        None => false,
    }
}

/// Warns that the cluster is removed, and what another program put into its directory stays.
fn warn_of_foreign_files(error: &OpenError) {
    eprint_line(&format!("warning: {error}"));
}

/// The measurement of a plan's loads before their first slice.
fn empty_measurement(plan: &PostgresPlan) -> PostgresMeasurement {
    let mut loads = Vec::new();
    for load in &plan.loads {
        loads.push(LoadMeasurement {
            load: PostgresLoad::clone(load),
            slices: Vec::new(),
            latency: LatencyHistogram::new(),
        });
    }
    PostgresMeasurement {
        version: plan.version.clone(),
        loads,
        trials: Vec::new(),
        end_ns: None,
        errors: BTreeMap::new(),
        silence_before_ns: 0,
    }
}

/// Keeps the longest silence of the disk while the server used it.
fn keep_silence(silence_ns: u64, sink: &Sink) {
    if let Some(postgres) = &mut sink.results().data.postgres {
        postgres.silence_before_ns = postgres.silence_before_ns.max(silence_ns);
    }
}

/// Notes when a part of the server's loads has ended.
fn note_end_of_part(bench: &Bench, sink: &Sink) {
    if let Some(postgres) = &mut sink.results().data.postgres {
        postgres.end_ns = Some(bench.session.elapsed_ns());
    }
}

/// How a run ends whose server did not start, so that nothing was measured.
fn end_without_server(error: PostgresError, sink: &mut Sink) -> EarlyEnd {
    sink.results().leftover = None;
    sink.progress.look_at_end();
    end_of_start(error)
}

/// The end by an error of the start, together with what remains of the cluster.
fn end_of_start(error: PostgresError) -> EarlyEnd {
    match error {
        PostgresError::Stays { first, stays } => {
            warn_of_foreign_files(&stays);
            end_of_start(*first)
        }
        PostgresError::Remains { first, not_removed } => match *first {
            PostgresError::Stopped => format!("{INTERRUPTED}. {not_removed}").into(),
            first => format!("{first}. {not_removed}").into(),
        },
        PostgresError::Stopped => EarlyEnd::interrupted(),
        PostgresError::NotRemoved { .. } => error.to_string().into(),
        error => EarlyEnd::NotStarted(error.into()),
    }
}

/// Why a server would not be ready in its time, on a disk that answers slowly. Its processes would
/// wait for the disk long after the end of the run, and its files could not be removed before.
fn why_too_slow(
    plan: &PostgresPlan,
    bench: &mut Bench,
    sink: &mut Sink,
) -> Result<Option<String>, RunError> {
    let Some(target) = bench.targets.first_mut() else {
        return Ok(None);
    };
    let slow_ns = bench
        .session
        .estimate_slow_write_ns(INITDB_BYTES, target, &mut sink.progress);
    let time = match slow_ns {
        // The run itself reports these errors.
        Err(
            RunError::Stalled { .. } | RunError::Interrupted { .. } | RunError::Unanswered { .. },
        ) => "longer than the run".to_owned(),
        Ok(Some(ns)) if ns > plan.time_ns() => format!("about {}", format_duration(ns)),
        Ok(_) => return Ok(None),
        Err(error) => return Err(error),
    };
    let path = &target.identity().path;
    let bytes = format_bytes(INITDB_BYTES);
    Ok(Some(format!(
        "{path} is too slow for a PostgreSQL server: it writes {bytes} before its first INSERT, \
         which takes {time}. The INSERTs are undecided. Measure longer (--time)"
    )))
}

/// A stop check that stops at Ctrl-C, and once the announced time is clearly over.
fn stop_check(end: Option<Instant>) -> StopCheck {
    Arc::new(move || {
        let is_over = match end {
            Some(end) => Instant::now() >= end,
            None => false,
        };
        is_over || interrupt::signal().is_some()
    })
}

/// A stop check that also shows, at each call, that the run goes on.
fn with_heartbeat(stop: &StopCheck, heartbeat: Heartbeat) -> StopCheck {
    let stop = Arc::clone(stop);
    Arc::new(move || {
        heartbeat.beat();
        stop()
    })
}

/// Tries the settings of the plan, after its workloads.
fn try_settings(
    planned: &TrialPlan,
    server: &mut ServerBench,
    seed: u64,
    bench: &Bench,
    sink: &Sink,
) -> Result<(), EarlyEnd> {
    let mut plan = planned.clone();
    if let Some(end) = sink.progress.announced_end() {
        // What came before may have taken longer than planned.
        let time_left = end.saturating_duration_since(Instant::now());
        let left_ns = (time_left.as_nanos() as u64).max(plan.time_ns / TRIAL_TIME_DIVISOR);
        plan.time_ns = plan.time_ns.min(left_ns);
    }
    let mut trials = Trials {
        plan,
        order: Random::new(seed, trials::ORDER_STREAM),
        bench: server,
        identity: &bench.facts.targets[0],
    };
    let tried = trials.run(sink);
    note_end_of_part(bench, sink);
    tried.map_err(|error| {
        let tasks = &bench.facts.plan.tasks;
        end_after_error(server, tasks, error, "settings to try", sink)
    })
}

/// Why the server's part ended early; `missing` names what was not measured. Notes an error of the
/// disk.
fn end_after_error(
    server: &ServerBench,
    tasks: &[Task],
    error: PostgresError,
    missing: &str,
    sink: &Sink,
) -> EarlyEnd {
    match error {
        PostgresError::Stopped if interrupt::signal().is_none() => {
            EarlyEnd::Reason(format!("{}. Missing: {missing}", late_text(tasks)))
        }
        PostgresError::Stopped => EarlyEnd::interrupted(),
        error => {
            let cause = server.cluster.explain(error);
            note_disk_error(&cause, sink);
            cause.to_string().into()
        }
    }
}

/// Counts the error of its disk by which the server failed, where it was one.
fn note_disk_error(error: &PostgresError, sink: &Sink) {
    if let Some(errno) = error.disk_errno()
        && let Some(postgres) = &mut sink.results().data.postgres
    {
        *postgres.errors.entry(errno.to_owned()).or_default() += 1;
    }
}

/// Measures one slice of each load, in random order.
fn measure_round(
    server: &mut ServerBench,
    plan: &PostgresPlan,
    random: &mut Random,
    bench: &Bench,
    sink: &mut Sink,
) -> Result<(), EarlyEnd> {
    sink.begin_step("the INSERTs of PostgreSQL");
    let measured = measure_loads(server, plan, random, sink);
    server.line.clear();
    measured.map_err(|error| {
        let has_round = match &sink.results().data.postgres {
            Some(postgres) => postgres.loads.iter().all(|load| !load.slices.is_empty()),
            None => false,
        };
        let missing = if has_round {
            "the later rounds of the INSERTs of PostgreSQL"
        } else {
            "INSERTs of PostgreSQL"
        };
        end_after_error(server, &bench.facts.plan.tasks, error, missing, sink)
    })
}

/// Empties the table and recycles the log's segments, then measures one slice of each load.
fn measure_loads(
    server: &mut ServerBench,
    plan: &PostgresPlan,
    random: &mut Random,
    sink: &Sink,
) -> Result<(), PostgresError> {
    let mut order: Vec<usize> = (0..plan.loads.len()).collect();
    super::slices::shuffle(&mut order, random);
    server.cluster.recycle(&server.stop)?;
    for index in order {
        measure_slice(server, plan, index, sink)?;
    }
    Ok(())
}

/// Measures one slice of a load.
fn measure_slice(
    server: &mut ServerBench,
    plan: &PostgresPlan,
    index: usize,
    sink: &Sink,
) -> Result<(), PostgresError> {
    let planned = &plan.loads[index];
    let load = CommitLoad {
        clients: planned.clients,
        synchronous: planned.synchronous_commit,
        method: planned.wal_sync_method.clone(),
        by_pgbench: planned.pgbench,
        commit_delay_us: None,
    };
    let time = Duration::from_nanos(plan.slice_ns);
    let shown = format!("PostgreSQL {}", planned.name);
    let result = server.run_load(&load, time, &shown)?;
    if let Some(postgres) = &mut sink.results().data.postgres
        && let Some(measured) = postgres.loads.get_mut(index)
    {
        measured.latency.merge(&result.latency);
        measured.slices.push(PostgresSlice {
            commits: result.commits,
            rate: result.rate,
            wal_bytes: result.wal_bytes,
            wal_syncs: result.wal_syncs,
            client_cpu_ns: result.client_cpu_ns,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Why the start ended is replaced by its cause, as that of any run; the directory is named.
    #[test]
    fn start_that_was_ended_says_so_beside_the_cluster_that_remains() {
        let end_text = |first: PostgresError| {
            let not_removed = Box::new(PostgresError::removed_later(Path::new("/mnt")));
            let first = Box::new(first);
            match end_of_start(PostgresError::Remains { first, not_removed }) {
                EarlyEnd::Reason(why) => why,
                other => panic!("{other:?}"),
            }
        };
        let ended = end_text(PostgresError::Stopped);
        assert!(
            ended.contains(INTERRUPTED) && ended.contains("/mnt/"),
            "{ended}"
        );
        let failed = end_text(PostgresError::Server("initdb failed".to_owned()));
        assert!(
            failed.contains("initdb failed") && failed.contains("/mnt/"),
            "{failed}"
        );
    }
}
