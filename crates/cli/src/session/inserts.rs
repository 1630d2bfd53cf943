//! INSERTs of a temporary PostgreSQL server in the target, before and after the workloads of the
//! plan: the disk may drift meanwhile, and both halves together see the same disk as the workloads.

use super::measure::{ReadyRun, measure_as};
use super::prepare::MeasuringJob;
use super::run::{EndedEarly, INTERRUPTED, LATE, Steps, TargetRun};
use super::trials::{self, Trials};
use super::watchdog::{WatchdogResult, run};
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::live::Live;
use crate::stderr::{ProgressLine, Verbosity};
use diskproof_device::{Intent, admit};
use diskproof_engine::RunError;
use diskproof_engine::random::Random;
use diskproof_engine::watchdog::Heartbeat;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::postgres::{
    LoadMeasurement, PostgresLoad, PostgresMeasurement, PostgresPlan, PostgresSlice,
};
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::{format_bytes, format_duration};
use diskproof_postgres::{
    CLUSTER_BYTES, Cluster, CommitLoad, PostgresError, Programs, StopCheck, TRIAL_BYTES,
    remove_leftover,
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

/// Measures the plan's workloads and its INSERTs, or only shows the plan.
pub(crate) fn measure_with_server(
    job: MeasuringJob<'_>,
    programs: Programs,
) -> anyhow::Result<Exit> {
    let verbosity = job.flags.verbosity();
    if let Some(identity) = job.identities.first() {
        let server_bytes = server_bytes(job.plan.postgres.as_ref());
        let size_bytes = job.plan.scratch_bytes.unwrap_or(0) + server_bytes;
        admit(identity.clone(), Intent::Scratch { size_bytes }).map_err(Failure::Refused)?;
    }
    measure_as(job, |ready| carry_out(ready, programs, verbosity))
}

/// Room that the server needs.
fn server_bytes(plan: Option<&PostgresPlan>) -> u64 {
    match plan.and_then(|plan| plan.trial.as_ref()) {
        Some(_) => CLUSTER_BYTES + TRIAL_BYTES,
        None => CLUSTER_BYTES,
    }
}

fn carry_out(
    ready: ReadyRun<'_>,
    programs: Programs,
    verbosity: Verbosity,
) -> Result<WatchdogResult, Failure> {
    let ReadyRun {
        mut work,
        mut live,
        identities,
        deadline,
        interrupt,
    } = ready;
    let stop = stop_check(interrupt, live.announced_end());
    let Some(identity) = identities.first() else {
        return run((work, Box::new(TargetRun::run)), live, identities, deadline);
    };
    if let Some(why) = too_slow(&mut work, &mut live)? {
        verbosity.note(&why);
        let steps: Steps = Box::new(|run, live| Ok(run.run(live)?.or(Some(why))));
        return run((work, steps), live, identities, deadline);
    }
    verbosity.note("starting a temporary PostgreSQL server");
    let size_bytes = server_bytes(work.plan.postgres.as_ref());
    let end = live.announced_end().map(|end| end + REMOVAL_AFTER_END);
    let cluster = match start((identity, size_bytes), programs, (&stop, end), verbosity) {
        Err(PostgresError::Stopped) => return Ok(WatchdogResult::stopped(interrupt)),
        started => started?,
    };
    let target = identity.clone();
    let interrupt = interrupt.clone();
    let steps: Steps = Box::new(move |run, live| {
        let mut inserts = Inserts::new(run, live, &cluster, (stop, interrupt), verbosity);
        let ended = match inserts.surround(run, live) {
            Ok(None) => Ok(inserts.try_settings(run, live, &target)),
            other => other,
        };
        // A cluster that stays is worse than what ended the run: the user has to know.
        match cluster.end(end) {
            Ok(()) => ended,
            Err(error) => Ok(Some(error.to_string())),
        }
    });
    run((work, steps), live, identities, deadline)
}

/// Why a server would not be ready in its time, on a disk that answers slowly. Its processes would
/// wait for the disk long after the end of the run, and its files could not be removed before.
fn too_slow(work: &mut TargetRun, live: &mut Live) -> Result<Option<String>, Failure> {
    let (Some(plan), Some(target)) = (&work.plan.postgres, work.targets.first_mut()) else {
        return Ok(None);
    };
    let slow_ns = match work.session.slow_write_ns(INITDB_BYTES, target, live) {
        // The run itself reports it.
        Err(RunError::Stalled { .. } | RunError::Interrupted { .. }) => Some(u64::MAX),
        slow_ns => slow_ns?,
    };
    Ok(slow_ns.filter(|ns| *ns > plan.time_ns()).map(|ns| {
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

fn start(
    (identity, size_bytes): (&TargetIdentity, u64),
    programs: Programs,
    (stop, end): (&StopCheck, Option<Instant>),
    verbosity: Verbosity,
) -> Result<Cluster, PostgresError> {
    if let Some(path) = remove_leftover(Path::new(&identity.path))? {
        verbosity.note(&format!(
            "{}: removed the temporary PostgreSQL cluster of an earlier run",
            path.display()
        ));
    }
    let admission = admit(identity.clone(), Intent::Scratch { size_bytes });
    let admission = admission.map_err(diskproof_device::OpenError::Refused)?;
    let cluster = Cluster::start(admission, programs, (stop, end))?;
    match cluster.lay_out(stop) {
        Ok(()) => Ok(cluster),
        Err(error) => {
            let error = cluster.explain(error);
            cluster.end(end)?;
            Err(error)
        }
    }
}

/// Stops at Ctrl-C, and once the announced time is clearly over.
fn stop_check(interrupt: &Interrupt, end: Option<Instant>) -> StopCheck {
    let interrupt = interrupt.clone();
    let is_over = move || end.is_some_and(|end| Instant::now() >= end);
    Arc::new(move || interrupt.signal().is_some() || is_over())
}

/// The INSERTs of a plan while they are measured.
struct Inserts<'a> {
    plan: PostgresPlan,
    seed: u64,
    cluster: &'a Cluster,
    stop: StopCheck,
    /// Tells the user's signal from the end of the announced time.
    interrupt: Interrupt,
    heartbeat: Heartbeat,
    line: Option<ProgressLine>,
    /// Rounds so far.
    rounds: u64,
}

impl<'a> Inserts<'a> {
    fn new(
        run: &TargetRun,
        live: &Live,
        cluster: &'a Cluster,
        (stop, interrupt): (StopCheck, Interrupt),
        verbosity: Verbosity,
    ) -> Self {
        let empty = PostgresPlan {
            programs: String::new(),
            version: String::new(),
            loads: Vec::new(),
            rounds: 0,
            slice_ns: 0,
            trial: None,
        };
        let plan = run.plan.postgres.clone().unwrap_or(empty);
        let measurement = |load: &PostgresLoad| LoadMeasurement {
            load: load.clone(),
            slices: Vec::new(),
            latency: LatencyHistogram::new(),
        };
        run.results().data.postgres = Some(PostgresMeasurement {
            version: plan.version.clone(),
            loads: plan.loads.iter().map(measurement).collect(),
            trials: Vec::new(),
        });
        Self {
            plan,
            seed: run.plan.seed,
            cluster,
            stop,
            interrupt,
            heartbeat: live.heartbeat(),
            line: (verbosity == Verbosity::Terminal).then(ProgressLine::default),
            rounds: 0,
        }
    }

    /// Half of the rounds, the workloads of the plan, the other half.
    fn surround(&mut self, run: &mut TargetRun, live: &mut Live) -> Result<EndedEarly, RunError> {
        if let Some(ended) = self.half(run) {
            return Ok(Some(ended));
        }
        let ended = run.run(live)?;
        if ended.is_some() {
            return Ok(ended);
        }
        live.finish();
        Ok(self.half(run))
    }

    /// The settings of the plan, after its workloads.
    fn try_settings(
        &mut self,
        run: &TargetRun,
        live: &Live,
        identity: &TargetIdentity,
    ) -> EndedEarly {
        let mut plan = self.plan.trial.clone()?;
        if let Some(end) = live.announced_end() {
            // What came before may have taken longer than planned.
            let left = end.saturating_duration_since(Instant::now());
            plan.time_ns = plan
                .time_ns
                .min((left.as_nanos() as u64).max(plan.time_ns / 4));
        }
        let mut trials = Trials {
            plan,
            order: Random::new(self.seed, trials::ORDER_STREAM),
            cluster: self.cluster,
            identity,
            stop: StopCheck::clone(&self.stop),
            heartbeat: self.heartbeat.clone(),
            line: self.line.take(),
        };
        let tried = trials.run(run);
        self.ended(tried)
    }

    /// Why the server's part ended early.
    fn ended(&self, result: Result<(), PostgresError>) -> EndedEarly {
        match result {
            Ok(()) => None,
            Err(PostgresError::Stopped) if self.interrupt.signal().is_none() => {
                Some(LATE.to_owned())
            }
            Err(PostgresError::Stopped) => Some(INTERRUPTED.to_owned()),
            Err(error) => Some(self.cluster.explain(error).to_string()),
        }
    }

    fn half(&mut self, run: &TargetRun) -> EndedEarly {
        run.results().step = Some("the INSERTs of PostgreSQL".to_owned());
        for _ in 0..self.plan.rounds {
            let result = self.round(run);
            if let Some(line) = &mut self.line {
                line.clear();
            }
            let ended = self.ended(result);
            if ended.is_some() {
                return ended;
            }
        }
        None
    }

    fn round(&mut self, run: &TargetRun) -> Result<(), PostgresError> {
        let mut random = Random::new(self.seed, ORDER_STREAM + self.rounds);
        self.rounds += 1;
        let mut order: Vec<usize> = (0..self.plan.loads.len()).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(last as u64 + 1) as usize);
        }
        self.cluster.recycle(&self.stop)?;
        for index in order {
            self.slice(index, run)?;
            if (self.stop)() {
                return Err(PostgresError::Stopped);
            }
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
        let (heartbeat, line, name) = (&self.heartbeat, &mut self.line, &asked.name);
        let mut last = 0;
        let mut progress = |count: u64| {
            if count != last {
                heartbeat.beat();
            }
            last = count;
            if let Some(line) = line.as_mut().filter(|line| line.is_due()) {
                line.show(&format!("PostgreSQL {name}"));
            }
        };
        let time = Duration::from_nanos(self.plan.slice_ns);
        let result = self
            .cluster
            .run_load(&load, time, &self.stop, &mut progress)?;
        self.heartbeat.beat();
        if (self.stop)() {
            return Err(PostgresError::Stopped);
        }
        let mut results = run.results();
        let Some(measured) = results.data.postgres.as_mut() else {
            return Ok(());
        };
        if let Some(measured) = measured.loads.get_mut(index) {
            measured.latency.merge(&result.latency);
            measured.slices.push(PostgresSlice {
                commits: result.commits,
                rate: result.rate,
                wal_bytes: result.wal_bytes,
                wal_syncs: result.wal_syncs,
            });
        }
        Ok(())
    }
}
