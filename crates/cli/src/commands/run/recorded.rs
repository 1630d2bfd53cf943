//! What was recorded, again: `run --like`, the workloads that repeat an observed load, and `run
//! RECORD`, the plan of a saved run and what changed since.

use crate::agreement::agree;
use crate::commands::check::layers;
use crate::commands::compare::{self, compared, group};
use crate::commands::ping::stop_rule;
use crate::failure::{Exit, Failure};
use crate::fitness::limits_of;
use crate::flags::MeasuringFlags;
use crate::postgres::ServerFlags;
use crate::saved::{load, load_file, named_or_recorded};
use crate::session::{Agreed, Measured, MeasuringJob, measure};
use crate::stdio::{ignore_closed_pipe, to_stdout};
use crate::workload::{WorkloadAxes, WorkloadFlags};
use crate::write_cache::{WriteCacheFlags, planned_states};
use anyhow::Result;
use diskproof_analysis::compare::MARGIN;
use diskproof_analysis::watch::{LikeTarget, like_plan, like_workloads};
use diskproof_device::WriteCacheSwitch;
use diskproof_model::observed::{LikePlan, ObservedDevice};
use diskproof_model::plan::{Decide, Origin, Plan, Questions, Sides, Workload};
use diskproof_model::record::Record;
use diskproof_model::target::TargetIdentity;
use diskproof_postgres::Programs;
use diskproof_report::terminal::MetricDetail;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// As long as a workload of `run` takes at most.
const TIME_NS: u64 = 30_000_000_000;

/// The load of one device, and how long it is repeated.
#[derive(Debug)]
pub(super) struct LikeSource {
    run_id: String,
    device: ObservedDevice,
    time_ns: u64,
    /// That one device of several was chosen.
    pub note: Option<String>,
}

impl LikeSource {
    /// The load that `--like` names, of this device, else of the busiest. Of the flags of the
    /// workload only the time may be set.
    pub(super) fn of(
        reference: &str,
        wanted: Option<&str>,
        (workload, axes): (&WorkloadFlags, &WorkloadAxes),
        history: Option<&Path>,
    ) -> Result<Self, Failure> {
        let time = workload.time;
        let others = WorkloadFlags {
            time: None,
            ..workload.clone()
        };
        if !others.is_empty() || !axes.is_empty() {
            let why = "--like sets sizes, order, depth and rate; the only workload flag allowed \
                       with it is --time";
            return Err(Failure::Usage(why.to_owned()));
        }
        let record = load(reference, history)?;
        let Some(observed) = record.observed() else {
            return Err(Failure::Usage(format!(
                "--like {reference}: this run contains no observed load; use 'diskproof watch \
                 --record' to save one"
            )));
        };
        let mut devices = observed.devices.clone();
        devices.retain(|device| device.requests() > 0);
        devices.sort_by(|one, other| other.rate().total_cmp(&one.rate()));
        let names: Vec<String> = devices.iter().map(|device| device.name.clone()).collect();
        let is_wanted = |one: &ObservedDevice| wanted.is_none_or(|wanted| wanted == one.name);
        let Some(device) = devices.into_iter().find(is_wanted) else {
            let (wanted, observed) = (wanted.unwrap_or_default(), names.join(", "));
            return Err(Failure::Usage(if names.is_empty() {
                format!("--like {reference}: no device received requests during the recording")
            } else {
                format!("--like-device {wanted}: the run observed {observed}")
            }));
        };
        let is_chosen = names.len() > 1 && wanted.is_none();
        let note = is_chosen.then(|| {
            format!(
                "repeating the load of {}, the busiest of {}; --like-device NAME chooses another",
                device.name,
                names.join(", ")
            )
        });
        Ok(Self {
            run_id: record.run_id,
            device,
            time_ns: time.map_or(TIME_NS, |time| time.0),
            note,
        })
    }

    pub(super) fn plan(&self) -> LikePlan {
        like_plan(&self.run_id, &self.device)
    }

    pub(super) fn workloads(&self, unit_bytes: u32) -> Result<Vec<Workload>, Failure> {
        let target = LikeTarget {
            unit_bytes,
            time_ns: self.time_ns,
        };
        like_workloads(&self.device, target)
            .map_err(|error| Failure::Usage(format!("--like: {error}")))
    }
}

/// Bytes at the start of a file that tell what it is.
const HEAD_BYTES: u64 = 4096;

/// Whether an operand is a record, or the page of one, and not a target with such a name.
pub(super) fn is_record(path: &Path) -> bool {
    let extension = path.extension().map(OsStr::to_ascii_lowercase);
    let word = match extension.as_deref().and_then(OsStr::to_str) {
        Some("json") => "diskproof.record/",
        // The policy that stands first in our pages.
        Some("html") => "default-src 'none'; script-src 'sha256-",
        _ => return false,
    };
    let mut head = Vec::new();
    let file = path.is_file().then(|| File::open(path).ok()).flatten();
    let read = file.map(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    matches!(read, Some(Ok(_))) && String::from_utf8_lossy(&head).contains(word)
}

/// Repeats the plan of the record on the targets, or on those of the record, and compares.
pub(super) fn repeat(
    source: &Path,
    targets: &[PathBuf],
    flags: &MeasuringFlags,
    has_agreed: bool,
) -> Result<Exit> {
    let shown = source.display().to_string();
    let record = load_file(&shown)?;
    let refused = |why: String| Failure::Usage(format!("{shown}: {why}"));
    if let Some(workloads) = record.plan.workload_task()
        && let Decide::Compare(live) = &workloads.decide
    {
        return match &live.sides {
            Sides::Layers(_) => layers::repeat(&record, targets, flags),
            Sides::Targets { .. } | Sides::Settings { .. } => {
                compare::repeat(&record, live, targets, flags, has_agreed)
            }
        };
    }
    let identities = flags.probe_all(&named_or_recorded(targets, &record))?;
    crate::targets::refuse_duplicates(&identities)?;
    let mut plan = plan(&record, &identities, flags.seed).map_err(|why| refused(why.to_owned()))?;
    let programs = found_programs(&mut plan, &identities, flags, has_agreed)?;
    let mut flags = flags.clone();
    if let Some(profile) = &plan.questions.fit_for {
        flags.expected.extend(limits_of(profile)?);
    }
    if let Some(ping) = plan.ping() {
        flags.expected.extend(stop_rule(ping)?);
    }
    let switch = write_cache_switch(&plan, &identities, &flags, has_agreed)?;
    let flags = &flags;
    let mut job = MeasuringJob::new(plan, identities, flags);
    job.agreed = Agreed::server_or_cache(programs, switch);
    job.note = job.note.or_else(|| record.note.clone());
    let Measured::Run(mut again) = measure(job)? else {
        return Ok(Exit::Done);
    };
    if again.printed.is_ok() && !flags.prints_json() {
        again.printed = show_changes((&shown, &record), &again.record, flags.color);
    }
    again.exit()
}

/// The programs of the server of a plan, on this machine. Those that the record names may be
/// anything, and the user has to agree to those that are found.
fn found_programs(
    plan: &mut Plan,
    identities: &[TargetIdentity],
    flags: &MeasuringFlags,
    has_agreed: bool,
) -> Result<Option<Programs>, Failure> {
    let (Some(identity), Some(inserts)) = (identities.first(), plan.inserts_mut()) else {
        return Ok(None);
    };
    let wanted = ServerFlags {
        postgres: true,
        ..ServerFlags::default()
    };
    let Some(found) = wanted.programs(identity)? else {
        return Ok(None);
    };
    if inserts.server.loads.iter().any(|load| load.pgbench) && !found.has_pgbench() {
        return Err(Failure::Usage(format!(
            "the record measures loads of pgbench, which {} does not have; install it",
            found.folder.display()
        )));
    }
    inserts.server.programs = found.folder.display().to_string();
    inserts.server.version.clone_from(&found.version_text);
    let notice = format!(
        "This run starts a temporary PostgreSQL server in {}, with the programs in {}.",
        identity.path,
        found.folder.display()
    );
    if flags.dry_run {
        flags.verbosity().note(&notice);
    } else {
        agree(&notice, "Start it?", has_agreed, flags.verbosity())?;
    }
    Ok(Some(found))
}

/// The switch of the disk's write cache, where the plan measures in states of it. The user has to
/// agree, since the record may be another one's.
fn write_cache_switch(
    plan: &Plan,
    identities: &[TargetIdentity],
    flags: &MeasuringFlags,
    has_agreed: bool,
) -> Result<Option<WriteCacheSwitch>, Failure> {
    let cache = WriteCacheFlags {
        write_cache: planned_states(plan),
        yes: has_agreed,
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

/// The plan on these targets; why it cannot be repeated there.
fn plan(record: &Record, on: &[TargetIdentity], seed: Option<u64>) -> Result<Plan, &'static str> {
    let plan = &record.plan;
    if plan.tasks.is_empty() {
        return Err("an observed load has no plan to repeat; use 'run --like'");
    }
    let kinds = |targets: &[TargetIdentity]| targets.iter().map(|of| of.kind).collect::<Vec<_>>();
    if kinds(on) != kinds(&record.targets) {
        return Err(
            "name as many targets as the record has, of the same kind (directory, file, \
                    device)",
        );
    }
    let is_smaller = |(now, then): (&TargetIdentity, &TargetIdentity)| {
        plan.scratch.is_none() && now.size_bytes < then.size_bytes
    };
    if on.iter().zip(&record.targets).any(is_smaller) {
        return Err("the target is smaller than that of the record");
    }
    let verb = if plan.is_of_other_tool() {
        "run".to_owned()
    } else {
        plan.origin.verb.clone()
    };
    Ok(Plan {
        seed: seed.unwrap_or(plan.seed),
        targets: on.iter().map(|identity| identity.path.clone()).collect(),
        questions: Questions {
            disk_access: None,
            ..plan.questions.clone()
        },
        origin: Origin::new(verb, crate::provenance::command_line()),
        method: Plan::of("", Vec::new()).method,
        ..plan.clone()
    })
}

fn show_changes(
    (name, before): (&str, &Record),
    again: &Record,
    color: crate::stdio::ColorWhen,
) -> Result<()> {
    let label = again.plan.targets.join(", ");
    let label = if label == before.plan.targets.join(", ") {
        "now".to_owned()
    } else {
        label
    };
    let (before, again) = (
        group(name, [(name, before)]),
        group(&label, [(&*label, again)]),
    );
    let comparison = compared(MARGIN, before, vec![again], Vec::new(), &[])?;
    ignore_closed_pipe(to_stdout(|out| writeln!(out)))?;
    compare::print(&comparison, false, MetricDetail::Independent, color)
}
