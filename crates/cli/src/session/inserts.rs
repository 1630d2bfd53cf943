//! INSERTs of a temporary PostgreSQL server in the target, before and after the workloads of the
//! plan: the disk may drift meanwhile, and both halves together see the same disk as the workloads.

use super::prepare::{MeasuringJob, ReadyRun};
use super::run::{EarlyEnd, LATE, TargetRun};
use super::trials::{self, ServerBench, Trials};
use super::watchdog::EndedRun;
use crate::failure::Failure;
use crate::interrupt;
use crate::live::Live;
use crate::stdio::{ProgressLine, eprint_line};
use diskproof_device::{Intent, OpenError, admit};
use diskproof_engine::RunError;
use diskproof_engine::random::Random;
use diskproof_engine::watchdog::Heartbeat;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::plan::Plan;
use diskproof_model::postgres::{
    LoadMeasurement, PostgresLoad, PostgresMeasurement, PostgresPlan, PostgresSlice,
};
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::{format_bytes, format_duration};
use diskproof_postgres::{
    Cluster, CommitLoad, PostgresError, Programs, StopCheck, remove_leftover,
};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What initdb writes.
const INITDB_BYTES: u64 = 40 << 20;
/// The longest that the removal of the cluster may take after the end of a run: a server that the
/// disk holds in a sync cannot end.
const REMOVAL_AFTER_END: Duration = Duration::from_secs(4);
/// Streams of the order of loads, apart from those of the workloads.
const ORDER_STREAM: u64 = 0x5047_0000;

/// Asks the gate for the room that the server needs beside the workloads.
pub(super) fn admit_server(job: &MeasuringJob<'_>) -> Result<(), Failure> {
    if let Some(identity) = job.identities.first() {
        let size_bytes = job.plan.scratch_bytes().unwrap_or(0) + server_bytes(&job.plan);
        admit(identity.clone(), Intent::Scratch { size_bytes }).map_err(Failure::Refused)?;
    }
    Ok(())
}

/// Room that the server of a plan needs.
fn server_bytes(plan: &Plan) -> u64 {
    let inserts = plan.inserts();
    crate::postgres::server_bytes(inserts.is_some_and(|inserts| inserts.server.trial.is_some()))
}

/// Measures the workloads of the plan and its INSERTs.
pub(super) fn carry_out(ready: ReadyRun, programs: Option<Programs>) -> Result<EndedRun, Failure> {
    let (Some(programs), Some(inserts), Some(target)) = (
        programs,
        ready.work.plan.inserts(),
        ready.facts.targets.first(),
    ) else {
        return Err(Failure::Usage(
            "the plan has INSERTs, and no PostgreSQL server was found for them".to_owned(),
        ));
    };
    let (plan, target) = (inserts.server.clone(), target.clone());
    let end = ready.live.announced_end;
    let job = ServerJob {
        stop: stop_check(end),
        end: end.map(|end| end + REMOVAL_AFTER_END),
        target,
        plan,
        programs,
    };
    let path = job.target.path.clone();
    let mut end = ready.run(move |run, live| job.carry_out(run, live))?;
    if let Some(error) = end.results.no_server.take() {
        return Err(error.into());
    }
    if end.results.has_server {
        let left = PostgresError::removed_later(Path::new(&path));
        end.ended = and_left(end.ended, &left);
    }
    Ok(end)
}

/// A cluster that stays is no less important than what ended the run.
fn and_left(ended: Result<(), EarlyEnd>, left: &PostgresError) -> Result<(), EarlyEnd> {
    Err(match ended {
        Ok(()) => left.to_string().into(),
        Err(EarlyEnd::Reason(why)) => format!("{why}. {left}").into(),
        Err(error) => error,
    })
}

/// The cluster is removed, and what another program put into its directory stays.
fn warn(stays: &OpenError) {
    eprint_line(&format!("warning: {stays}"));
}

/// What is done on the thread of the run.
struct ServerJob {
    target: TargetIdentity,
    plan: PostgresPlan,
    programs: Programs,
    stop: StopCheck,
    /// When the removal of the cluster is waited for no longer.
    end: Option<Instant>,
}

impl ServerJob {
    fn carry_out(self, run: &mut TargetRun, live: &mut Live) -> Result<(), EarlyEnd> {
        if let Some(why) = too_slow(run, live)? {
            run.verbosity.note(&why);
            run.run(live)?;
            return Err(why.into());
        }
        run.verbosity.note("starting a temporary PostgreSQL server");
        run.results().step = Some("the start of PostgreSQL".to_owned());
        run.results().has_server = true;
        let cluster = match self.start(run, &live.heartbeat()) {
            Ok(cluster) => cluster,
            Err(error) => return not_started(error, run, live),
        };
        let mut inserts = Inserts::new(run, live, &cluster, &self);
        let ended = inserts.half(run).and_then(|()| run.run(live));
        live.finish();
        let ended = ended.and_then(|()| inserts.half(run));
        let ended = ended.and_then(|()| inserts.try_settings(run, live, &self.target));
        live.look_at_end();
        let removed = cluster.end(self.end);
        run.results().has_server = false;
        match removed {
            Ok(()) => ended,
            Err(PostgresError::Open(error @ OpenError::Stays { .. })) => {
                warn(&error);
                ended
            }
            Err(error) => and_left(ended, &error),
        }
    }

    /// initdb may take longer than a silence that means a hang, and has a limit of its own.
    fn start(&self, run: &TargetRun, heartbeat: &Heartbeat) -> Result<Cluster, PostgresError> {
        let size_bytes = server_bytes(&run.plan);
        let (stop, heartbeat) = (Arc::clone(&self.stop), heartbeat.clone());
        let stop: StopCheck = Arc::new(move || {
            heartbeat.beat();
            stop()
        });
        if let Some(path) = remove_leftover(Path::new(&self.target.path))? {
            run.verbosity.note(&format!(
                "{}: removed the temporary PostgreSQL cluster of an earlier run",
                path.display()
            ));
        }
        let admission = admit(self.target.clone(), Intent::Scratch { size_bytes });
        let admission = admission.map_err(OpenError::Refused)?;
        let cluster = Cluster::start(admission, self.programs.clone(), (&stop, self.end))?;
        match cluster.lay_out(&stop) {
            Ok(()) => Ok(cluster),
            Err(error) => {
                let error = cluster.explain(error);
                Err(cluster.end_after(error, self.end))
            }
        }
    }
}

/// Notes when a part of the server's loads has ended.
fn note_end(run: &TargetRun) {
    if let Some(postgres) = &mut run.results().data.postgres {
        postgres.end_ns = Some(run.session.elapsed_ns());
    }
}

/// Nothing was measured yet.
fn not_started(error: PostgresError, run: &TargetRun, live: &mut Live) -> Result<(), EarlyEnd> {
    run.results().has_server = false;
    let error = match error {
        PostgresError::Stays { first, stays } => {
            warn(&stays);
            *first
        }
        error => error,
    };
    match error {
        PostgresError::Stopped => {
            live.look_at_end();
            return Err(EarlyEnd::interrupted());
        }
        PostgresError::NotRemoved { .. } => return Err(error.to_string().into()),
        error => run.results().no_server = Some(error),
    }
    Ok(())
}

/// Why a server would not be ready in its time, on a disk that answers slowly. Its processes would
/// wait for the disk long after the end of the run, and its files could not be removed before.
fn too_slow(work: &mut TargetRun, live: &mut Live) -> Result<Option<String>, RunError> {
    let (Some(inserts), Some(target)) = (work.plan.inserts(), work.targets.first_mut()) else {
        return Ok(None);
    };
    let slow_ns = match work.session.slow_write_ns(INITDB_BYTES, target, live) {
        // The run itself reports it.
        Err(RunError::Stalled { .. } | RunError::Interrupted { .. }) => Some(u64::MAX),
        slow_ns => slow_ns?,
    };
    Ok(slow_ns
        .filter(|ns| *ns > inserts.server.time_ns())
        .map(|ns| {
            let (bytes, path) = (format_bytes(INITDB_BYTES), &target.identity().path);
            let time = match ns {
                u64::MAX => "longer than the run".to_owned(),
                ns => format!("about {}", format_duration(ns)),
            };
            format!(
                "{path} is too slow for a PostgreSQL server: it writes {bytes} before its first \
             INSERT, which takes {time}. The INSERTs are undecided. Measure longer (--time)"
            )
        }))
}

/// Stops at Ctrl-C, and once the announced time is clearly over.
fn stop_check(end: Option<Instant>) -> StopCheck {
    let is_over = move || end.is_some_and(|end| Instant::now() >= end);
    Arc::new(move || interrupt::signal().is_some() || is_over())
}

/// The INSERTs of a plan while they are measured.
struct Inserts<'a> {
    plan: PostgresPlan,
    seed: u64,
    bench: ServerBench<'a>,
    /// Rounds so far.
    rounds: u64,
}

impl<'a> Inserts<'a> {
    fn new(run: &TargetRun, live: &Live, cluster: &'a Cluster, job: &ServerJob) -> Self {
        let plan = job.plan.clone();
        let measurement = |load: &PostgresLoad| LoadMeasurement {
            load: load.clone(),
            slices: Vec::new(),
            latency: LatencyHistogram::new(),
        };
        run.results().data.postgres = Some(PostgresMeasurement {
            version: plan.version.clone(),
            loads: plan.loads.iter().map(measurement).collect(),
            trials: Vec::new(),
            end_ns: None,
        });
        Self {
            plan,
            seed: run.plan.seed,
            bench: ServerBench {
                cluster,
                stop: Arc::clone(&job.stop),
                heartbeat: live.heartbeat(),
                line: ProgressLine::of(run.verbosity),
            },
            rounds: 0,
        }
    }

    /// The settings of the plan, after its workloads.
    fn try_settings(
        &mut self,
        run: &TargetRun,
        live: &Live,
        identity: &TargetIdentity,
    ) -> Result<(), EarlyEnd> {
        let Some(mut plan) = self.plan.trial.clone() else {
            return Ok(());
        };
        if let Some(end) = live.announced_end {
            // What came before may have taken longer than planned.
            let left = end.saturating_duration_since(Instant::now());
            let left_ns = (left.as_nanos() as u64).max(plan.time_ns / 4);
            plan.time_ns = plan.time_ns.min(left_ns);
        }
        let mut trials = Trials {
            plan,
            order: Random::new(self.seed, trials::ORDER_STREAM),
            bench: &mut self.bench,
            identity,
        };
        let tried = trials.run(run);
        note_end(run);
        tried.map_err(|error| self.why(error, "settings to try"))
    }

    /// Why the server's part ended early; `missing` names what was not measured.
    fn why(&self, error: PostgresError, missing: &str) -> EarlyEnd {
        match error {
            PostgresError::Stopped if interrupt::signal().is_none() => {
                EarlyEnd::Reason(format!("{LATE}. Missing: {missing}"))
            }
            PostgresError::Stopped => EarlyEnd::interrupted(),
            error => self.bench.cluster.explain(error).to_string().into(),
        }
    }

    fn half(&mut self, run: &TargetRun) -> Result<(), EarlyEnd> {
        run.results().step = Some("the INSERTs of PostgreSQL".to_owned());
        for _ in 0..self.plan.rounds {
            let result = self.round(run);
            self.bench.line.clear();
            result.map_err(|error| self.why(error, "INSERTs of PostgreSQL"))?;
        }
        note_end(run);
        Ok(())
    }

    fn round(&mut self, run: &TargetRun) -> Result<(), PostgresError> {
        let mut random = Random::new(self.seed, ORDER_STREAM + self.rounds);
        self.rounds += 1;
        let mut order: Vec<usize> = (0..self.plan.loads.len()).collect();
        super::slices::shuffle(&mut order, &mut random);
        self.bench.cluster.recycle(&self.bench.stop)?;
        for index in order {
            self.slice(index, run)?;
        }
        Ok(())
    }

    fn slice(&mut self, index: usize, run: &TargetRun) -> Result<(), PostgresError> {
        let asked = &self.plan.loads[index];
        let load = CommitLoad {
            clients: asked.clients,
            synchronous: asked.synchronous_commit,
            method: asked.wal_sync_method.clone(),
            by_pgbench: asked.pgbench,
            commit_delay_us: None,
        };
        let (time, what) = (
            Duration::from_nanos(self.plan.slice_ns),
            format!("PostgreSQL {}", asked.name),
        );
        let result = self.bench.run_load(&load, time, &what)?;
        let mut results = run.results();
        let all = results.data.postgres.as_mut();
        if let Some(measured) = all.and_then(|all| all.loads.get_mut(index)) {
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
}
