//! Measures again what was recorded: `run --like` with the workloads that repeat an observed load,
//! and `run RECORD` with the plan of a saved run, followed by what changed since.

use super::resized::fit_to_target;
use crate::agreement::{Agreement, agree};
use crate::commands::accept::repeated_test;
use crate::commands::check::layers;
use crate::commands::compare::{self, compare_groups, run_group};
use crate::commands::ping::abort_thresholds;
use crate::failure::{Exit, Failure};
use crate::flags::MeasuringFlags;
use crate::observed_load::ObservedLoad;
use crate::postgres::{ServerFlags, trial_plan};
use crate::saved::{load_file, named_or_recorded};
use crate::session::{AgreedChanges, Measured, MeasuringJob, measure};
use crate::stdio::{ColorWhen, Presentation, ignore_closed_pipe, to_stdout};
use crate::workload::{WorkloadAxes, WorkloadFlags};
use crate::write_cache::{WriteCacheFlags, planned_states};
use anyhow::Result;
use diskproof_analysis::compare::MARGIN;
use diskproof_analysis::watch::{LikeTarget, like_plan, like_workloads};
use diskproof_device::WriteCacheSwitch;
use diskproof_model::observed::LikePlan;
use diskproof_model::plan::{Decide, Origin, Plan, Questions, Sides, Task, Workload};
use diskproof_model::postgres::major_version;
use diskproof_model::record::Record;
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_postgres::Programs;
use diskproof_report::terminal::MetricDetail;
use std::path::{Path, PathBuf};

/// The longest that a workload of `run` takes without limits of its own.
const TIME_NS: u64 = 30_000_000_000;

/// The load of one device that is repeated.
#[derive(Debug)]
pub(super) struct LikeSource {
    load: ObservedLoad,
    /// The longest that each workload takes.
    time_ns: u64,
}

impl LikeSource {
    /// Loads what `--like` names, of this device, else of the busiest. Of the flags of the workload
    /// only the time may be set.
    pub(super) fn load(
        reference: &str,
        device: Option<&str>,
        workload: &WorkloadFlags,
        axes: &WorkloadAxes,
        history: Option<&Path>,
    ) -> Result<Self, Failure> {
        let other_flags = WorkloadFlags {
            time: None,
            ..workload.clone()
        };
        if !other_flags.is_empty() || !axes.is_empty() {
            let text = "--like sets sizes, order, depth and rate; the only workload flag allowed \
                        with it is --time";
            return Err(Failure::Usage(text.to_owned()));
        }
        Ok(Self {
            load: ObservedLoad::find(reference, device, history)?,
            time_ns: match workload.time {
                Some(time) => time.0,
                None => TIME_NS,
            },
        })
    }

    /// Says which device was chosen, where there are several.
    pub(super) fn note(&self) -> Option<String> {
        self.load.note.clone()
    }

    pub(super) fn plan(&self) -> LikePlan {
        like_plan(&self.load.run_id, &self.load.device)
    }

    pub(super) fn workloads(&self, unit_bytes: u32) -> Result<Vec<Workload>, Failure> {
        let target = LikeTarget {
            unit_bytes,
            time_ns: self.time_ns,
        };
        like_workloads(&self.load.device, target)
            .map_err(|error| Failure::Usage(format!("--like: {error}")))
    }
}

/// Repeats the plan of the record on the targets, or on those of the record, and compares.
pub(super) fn repeat(
    source: &Path,
    targets: &[PathBuf],
    flags: &MeasuringFlags,
    agreement: Agreement,
) -> Result<Exit> {
    let name = source.display().to_string();
    let record = load_file(&name)?;
    record
        .plan
        .check()
        .map_err(|fault| Failure::Usage(format!("{name}: {fault}")))?;
    if targets.is_empty() && flags.destructive.overwrite {
        crate::targets::refuse_planned_overwrite(source, &named_or_recorded(targets, &record))?;
    }
    if let Some(workloads) = record.plan.workload_task()
        && let Decide::Compare(live) = &workloads.decide
    {
        return match &live.sides {
            Sides::Layers(_) => layers::repeat(&record, targets, flags),
            Sides::Targets { .. } | Sides::Settings { .. } => {
                compare::repeat(&record, live, targets, flags, agreement)
            }
        };
    }
    let identities = flags.probe_all(&named_or_recorded(targets, &record))?;
    match &record.plan.scratch {
        Some(scratch) if scratch.has_own_files() => {}
        _ => crate::targets::refuse_duplicates(&identities)?,
    }
    let mut plan = repeated_plan(&record, &identities, flags.seed)
        .map_err(|why| Failure::Usage(format!("{name}: {why}")))?;
    if let Some(note) = fit_to_target(&mut plan, &record.targets, &identities) {
        flags.verbosity().note(&format!("{name}: {note}"));
    }
    repeat_test_anew(&mut plan, &identities, flags)?;
    let programs = find_programs(&mut plan, &identities, flags, agreement)?;
    let flags_with_limits = with_recorded_limits(flags, &plan, &name)?;
    let switch = write_cache_switch(&plan, &identities, flags, agreement)?;
    let mut job = MeasuringJob::new(plan, identities, &flags_with_limits);
    job.agreed = AgreedChanges::server_or_cache(programs, switch);
    if job.note.is_none() {
        job.note.clone_from(&record.note);
    }
    let Measured::Run(mut again) = measure(job)? else {
        return Ok(Exit::Done);
    };
    if again.printed.is_ok() && !flags.prints_record() {
        again.printed = show_changes(&name, &record, &again.record, flags.color);
    }
    again.exit()
}

/// The flags with the thresholds of a recorded plan: the limits of its profile, and that of its
/// ping. `name` is that of the record in errors.
fn with_recorded_limits(
    flags: &MeasuringFlags,
    plan: &Plan,
    name: &str,
) -> Result<MeasuringFlags, Failure> {
    let mut with_limits = flags.clone();
    for limit in &plan.questions.fit_limits {
        let parsed = limit
            .parse()
            .map_err(|why| Failure::Usage(format!("{name}: the limit '{limit}': {why}")))?;
        with_limits.expected.push(parsed);
    }
    if let Some(ping) = plan.ping() {
        with_limits.expected.extend(abort_thresholds(ping)?);
    }
    Ok(with_limits)
}

/// Gives an acceptance test new content, and the size of the device that is tested now.
fn repeat_test_anew(
    plan: &mut Plan,
    identities: &[TargetIdentity],
    flags: &MeasuringFlags,
) -> Result<(), Failure> {
    for task in &mut plan.tasks {
        if let Task::Accept(test) = task
            && let [identity] = identities
        {
            *test = repeated_test(test, identity, flags)?;
            plan.seed = test.salt;
        }
    }
    Ok(())
}

/// Finds the programs of the server of a plan on this machine; `None` of a plan without one. Those
/// that the record names may be anything, and the user has to agree to those that are found.
fn find_programs(
    plan: &mut Plan,
    identities: &[TargetIdentity],
    flags: &MeasuringFlags,
    agreement: Agreement,
) -> Result<Option<Programs>, Failure> {
    let Some(inserts) = plan.inserts_mut() else {
        return Ok(None);
    };
    let Some(identity) = identities.first() else {
        return Ok(None);
    };
    let server_flags = ServerFlags {
        postgres: true,
        ..ServerFlags::default()
    };
    let Some(programs) = server_flags.programs(identity)? else {
        return Ok(None);
    };
    let needs_pgbench = inserts.server.loads.iter().any(|load| load.pgbench);
    if needs_pgbench && !programs.has_pgbench() {
        return Err(Failure::Usage(format!(
            "the record measures loads of pgbench, which {} does not have; install it",
            programs.folder.display()
        )));
    }
    let recorded_version = major_version(&inserts.server.version);
    inserts.server.programs = programs.folder.display().to_string();
    inserts.server.version.clone_from(&programs.version_text);
    if recorded_version != Some(programs.version) {
        // Another version has other settings and other defaults.
        if let Some(recorded) = &inserts.server.trial {
            inserts.server.trial = Some(trial_plan(programs.version, recorded.time_ns));
        }
        if plan.questions.postgres_version == recorded_version {
            plan.questions.postgres_version = Some(programs.version);
        }
    }
    let notice = format!(
        "This run starts a temporary PostgreSQL server in {}, with the programs in {}.",
        identity.path,
        programs.folder.display()
    );
    if flags.dry_run {
        flags.verbosity().note(&notice);
    } else {
        agree(&notice, "Start it?", agreement, flags.verbosity())?;
    }
    Ok(Some(programs))
}

/// The switch of the disk's write cache, where the plan measures in states of it. The user has to
/// agree, since the record may be another one's.
fn write_cache_switch(
    plan: &Plan,
    identities: &[TargetIdentity],
    flags: &MeasuringFlags,
    agreement: Agreement,
) -> Result<Option<WriteCacheSwitch>, Failure> {
    let cache = WriteCacheFlags {
        write_cache: planned_states(plan),
        yes: agreement == Agreement::Given,
    };
    if cache.write_cache.is_none() {
        return Ok(None);
    }
    let [identity] = identities else {
        return Err(Failure::Usage(
            "this run switched the write cache of the disk below one target; name one target"
                .to_owned(),
        ));
    };
    let switch = cache.switch(identity)?;
    if let Some(switch) = &switch {
        if flags.dry_run {
            flags.verbosity().note(&cache.notice(switch));
        } else {
            cache.ask(switch, flags.verbosity())?;
        }
    }
    Ok(switch)
}

/// The plan on these targets, or why it cannot be repeated there.
fn repeated_plan(
    record: &Record,
    targets: &[TargetIdentity],
    seed: Option<u64>,
) -> Result<Plan, &'static str> {
    let plan = &record.plan;
    if plan.tasks.is_empty() {
        return Err("an observed load has no plan to repeat; use 'run --like'");
    }
    if kinds(targets) != kinds(&record.targets) {
        return Err(
            "name as many targets as the record has, of the same kind (directory, file, \
                    device)",
        );
    }
    for (index, recorded) in record.targets.iter().enumerate() {
        let is_smaller = targets[index].size_bytes < recorded.size_bytes;
        if is_smaller && plan.scratch.is_none() {
            return Err("the target is smaller than that of the record");
        }
    }
    let verb = if plan.is_of_other_tool() {
        "run".to_owned()
    } else {
        plan.origin.verb.clone()
    };
    Ok(Plan {
        seed: seed.unwrap_or(plan.seed),
        targets: targets.iter().map(|target| target.path.clone()).collect(),
        questions: Questions {
            disk_access: None,
            ..plan.questions.clone()
        },
        origin: Origin::new(verb, crate::provenance::command_line()),
        method: Plan::new("", Vec::new()).method,
        ..plan.clone()
    })
}

fn kinds(targets: &[TargetIdentity]) -> Vec<TargetKind> {
    targets.iter().map(|target| target.kind).collect()
}

/// Prints a comparison of the record with what was measured again.
fn show_changes(name: &str, before: &Record, again: &Record, color: ColorWhen) -> Result<()> {
    let label = if again.plan.targets == before.plan.targets {
        "now".to_owned()
    } else {
        again.plan.targets.join(", ")
    };
    let comparison = compare_groups(
        MARGIN,
        run_group(name, [(name, before)]),
        vec![run_group(&label, [(label.as_str(), again)])],
        Vec::new(),
        &[],
    )?;
    ignore_closed_pipe(to_stdout(|out| writeln!(out)))?;
    compare::print_comparison(
        &comparison,
        Presentation::Page,
        MetricDetail::Independent,
        color,
    )
}
