//! Everything before the first request: thresholds, the gate, open targets, health and clock.

use super::journal::RunJournal;
use super::run::TargetRun;
use crate::failure::Failure;
use crate::flags::MeasuringFlags;
use crate::inspection::stall_timeout;
use crate::interrupt;
use crate::live::Live;
use crate::plan_file::KeptFile;
use crate::provenance::{run_id, timestamp, tool};
use crate::saved::refuse_foreign_history;
use crate::targets::{read_health, warn_of_failing};
use crate::tool_lines::SharedPrinter;
use diskproof_analysis::expect::{Expected, Quantity};
use diskproof_analysis::judge::{RunFacts, RunVariation};
use diskproof_analysis::promised::{Promised, promised};
use diskproof_device::{
    Admission, Consent, Intent, MachineCpuTime, OpenError, OpenTarget, READ_BYTES_MIN,
    WriteCacheSwitch, admit_requests, host_facts,
};
use diskproof_engine::{Session, measure_clock};
use diskproof_model::figure::Part;
use diskproof_model::files::FileStep;
use diskproof_model::op::OpKind;
use diskproof_model::plan::{Plan, Workload};
use diskproof_model::record::Record;
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_postgres::Programs;
use diskproof_report::terminal::budget_line;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A plan and what it needs to run.
pub(crate) struct MeasuringJob<'a> {
    /// What to do.
    pub plan: Plan,
    /// The targets, probed.
    pub identities: Vec<TargetIdentity>,
    /// The user's remark.
    pub note: Option<String>,
    /// The shared flags.
    pub flags: &'a MeasuringFlags,
    /// The server of the plan's INSERTs.
    pub server: Option<Programs>,
    /// The switch of the write cache, where workloads name its state. It is restored at the end.
    pub write_cache: Option<WriteCacheSwitch>,
    /// The tool whose text is printed instead of our page.
    pub tool: Option<SharedPrinter>,
    /// Whether the caller prints the result, and no page is.
    pub is_silent: bool,
    /// Prints what follows the page of a record.
    pub then: Option<Then>,
}

type Then = Box<dyn Fn(&Record) -> anyhow::Result<()>>;

impl<'a> MeasuringJob<'a> {
    /// With the remark of the flags, scratch files that are filled as the plan says, and nothing
    /// that only some plans need.
    pub(crate) fn new(
        plan: Plan,
        identities: Vec<TargetIdentity>,
        flags: &'a MeasuringFlags,
    ) -> Self {
        Self {
            plan,
            identities,
            note: flags.note.clone(),
            flags,
            server: None,
            write_cache: None,
            tool: None,
            is_silent: false,
            then: None,
        }
    }
}

/// A run that is ready to be carried out.
pub(crate) struct ReadyRun {
    /// The open targets and what to do with them.
    pub work: TargetRun,
    /// What it shows.
    pub live: Live,
    /// The record's facts; how the run ends is added later.
    pub facts: RunFacts,
    /// Files of our own, to be marked as such at the end.
    pub own_files: Vec<OpenTarget>,
    /// The longest silence of a target.
    pub stall_timeout: Duration,
    /// What the user released.
    pub consent: Consent,
    /// The machine's CPU time so far.
    pub start: Option<MachineCpuTime>,
}

/// Admits and opens the targets, reads their health, and measures the clock. A scratch file with a
/// name stays in its directory.
pub(crate) fn prepare(job: &MeasuringJob<'_>) -> anyhow::Result<ReadyRun> {
    let consent = job.flags.destructive.consent(&job.identities)?;
    interrupt::listen()?;
    let stall_timeout = stall_timeout()?;
    let kept_files = match &job.tool {
        Some(tool) => tool.kept_files.as_slice(),
        None => &[],
    };
    let (flags, verbosity) = (job.flags, job.flags.verbosity());
    // A load that follows another one has been identified before it.
    crate::inspection::begin(Path::new(&job.plan.targets.join(", ")), verbosity);
    raise_descriptor_limit();
    refuse_foreign_history(&flags.history)?;
    let mut file_tree = None;
    let admissions = admit_all(&job.plan, &job.identities, &flags.expected, &consent)?;
    for hint in admissions.iter().filter_map(Admission::hint) {
        verbosity.note(&hint);
    }
    let mut targets = Vec::new();
    for (index, admission) in admissions.into_iter().enumerate() {
        if job.plan.files().is_some() {
            file_tree = Some(admission);
            continue;
        }
        targets.push(match kept_files.get(index).and_then(Option::as_ref) {
            Some(kept) => create_kept(admission, kept, job.plan.scratch_bytes_on(index))?,
            None => OpenTarget::open(admission)?,
        });
    }
    for target in &targets {
        target.wipe_unknown()?;
    }
    let own_files = own_files(&targets, job, kept_files)?;
    // Before the run: smartctl would disturb it.
    let health = read_health(&job.identities, flags.health.no_health);
    warn_of_failing(&health, verbosity);
    verbosity.note(&budget_line(&job.plan, &job.identities));
    let stall_ns = u64::try_from(stall_timeout.as_nanos()).unwrap_or(u64::MAX);
    let session = Session::new(job.plan.seed).with_stall_timeout(stall_ns);
    let facts = RunFacts {
        note: job.note.clone(),
        health,
        ..run_facts(session.started(), job.plan.clone(), job.identities.clone())
    };
    let journal = RunJournal::start(&flags.history, &facts, &flags.expected);
    let work = TargetRun {
        write_cache: None,
        session,
        journal,
        plan: Arc::new(job.plan.clone()),
        targets,
        file_tree,
        has_files: Arc::default(),
        results: Arc::default(),
        first_writes: Vec::new(),
        verbosity,
    };
    interrupt::end_cleanly();
    Ok(ReadyRun {
        work,
        live: Live::new((&facts.plan, &facts.targets), verbosity),
        facts,
        own_files,
        stall_timeout,
        consent,
        start: MachineCpuTime::now(),
    })
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
        host: host_facts(),
        clock: measure_clock(),
        plan,
        targets,
        health: Vec::new(),
        variation: RunVariation::Earlier(Vec::new()),
    }
}

/// A scratch file of so many bytes that stays in its directory, or several files with an equal part
/// of them each.
fn create_kept(
    admission: Admission,
    kept: &KeptFile,
    bytes: Option<u64>,
) -> Result<OpenTarget, OpenError> {
    match kept.names.as_slice() {
        [name] => OpenTarget::create_named(admission, name),
        names => {
            let part_bytes = bytes.unwrap_or(0) / names.len().max(1) as u64;
            OpenTarget::create_all_named(admission, names, part_bytes, kept.file_bytes)
        }
    }
}

/// Files that are diskproof's own: made by this run, or by an earlier one for the same tool.
fn own_files(
    targets: &[OpenTarget],
    job: &MeasuringJob<'_>,
    kept_files: &[Option<KeptFile>],
) -> Result<Vec<OpenTarget>, Failure> {
    let destructive = &job.flags.destructive;
    let rewrites = destructive.own_files && !destructive.overwrite && job.plan.writes();
    let mut own = Vec::new();
    for (index, (target, identity)) in targets.iter().zip(&job.identities).enumerate() {
        let is_kept = kept_files.get(index).is_some_and(Option::is_some);
        if is_kept || (rewrites && identity.kind == TargetKind::File) {
            own.push(target.reopen()?);
        }
    }
    Ok(own)
}

/// Raises the soft limit on descriptors to the hard limit: every job needs one, and the usual soft
/// limit of 1024 exists only for programs that use select(2).
fn raise_descriptor_limit() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let current = maximum;
    // On an error the limit stays as it is, and opening a target reports the shortage.
    let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
}

/// Checks what can be checked before a run: thresholds that the plan cannot answer, targets that
/// the gate refuses. Opens nothing for writing.
pub(crate) fn admit_all(
    plan: &Plan,
    identities: &[TargetIdentity],
    expected: &[Expected],
    consent: &Consent,
) -> Result<Vec<Admission>, Failure> {
    let of_plan = |one: &&Expected| one.quantity != Quantity::Findings;
    for expected in expected.iter().filter(of_plan) {
        check_answerable(plan, expected)
            .map_err(|why| Failure::Usage(format!("--expect '{}': {why}", expected.expression)))?;
    }
    for Promised { expected, .. } in promised(plan) {
        if expected.quantity != Quantity::Rpm {
            let text = &expected.expression;
            check_answerable(plan, &expected)
                .map_err(|why| Failure::Usage(format!("--spec, which means '{text}': {why}")))?;
        }
    }
    check_discards(plan.workloads(), identities)?;
    let mut admissions = Vec::new();
    for (index, identity) in identities.iter().enumerate() {
        check_room_for_all(plan, identities, index)?;
        let intent = match (plan.files(), plan.scratch_bytes_on(index)) {
            (Some(files), _) => Intent::Files {
                size_bytes: files.set_bytes(),
                count: files.count,
            },
            (None, Some(size_bytes)) if identity.kind == TargetKind::Directory => {
                Intent::Scratch { size_bytes }
            }
            _ if plan.writes() => Intent::Overwrite(consent),
            _ => Intent::Read,
        };
        let admission = admit_requests(identity.clone(), intent, request_bytes(plan))?;
        admissions.push(admission);
    }
    Ok(admissions)
}

/// Refuses the scratch file of a target for which those of the targets before it leave no room on
/// the same filesystem, where each has its own size.
fn check_room_for_all(
    plan: &Plan,
    identities: &[TargetIdentity],
    index: usize,
) -> Result<(), Failure> {
    let identity = &identities[index];
    let sizes = match &plan.scratch {
        Some(scratch) if identity.kind == TargetKind::Directory => &scratch.sizes_bytes[..],
        _ => &[],
    };
    if sizes.is_empty() {
        return Ok(());
    }
    let mut size_bytes = 0;
    for (other, bytes) in identities.iter().zip(sizes).take(index + 1) {
        if other.device == identity.device {
            size_bytes += bytes;
        }
    }
    admit_requests(
        identity.clone(),
        Intent::Scratch { size_bytes },
        request_bytes(plan),
    )?;
    Ok(())
}

/// The largest single request, without which a workload could not begin. Other tools' requests end
/// where their file does.
fn request_bytes(plan: &Plan) -> u64 {
    if plan.is_of_other_tool() {
        return 1;
    }
    let blocks = plan.workloads().iter().flat_map(Workload::block_sizes);
    let of_survey = plan.survey().into_iter().map(|_| READ_BYTES_MIN);
    blocks.map(u64::from).chain(of_survey).max().unwrap_or(1)
}

/// A device that accepts no discards would be noticed only when the workload begins.
fn check_discards(workloads: &[Workload], identities: &[TargetIdentity]) -> Result<(), Failure> {
    let trims = workloads.iter().find(|one| one.makes(OpKind::Trim));
    let mut targets = identities.iter();
    let refusing = targets.find(|target| target.accepts_discards() == Some(false));
    match trims.zip(refusing) {
        None => Ok(()),
        Some((workload, target)) => Err(Failure::Usage(format!(
            "{}: workload '{}' trims, and the device accepts no discards \
             (queue/discard_max_bytes is 0). Measure another device, or remove this workload",
            target.path, workload.name
        ))),
    }
}

/// Checks everything that would end the run before its first request, and opens nothing for
/// writing.
pub(crate) fn rehearse(job: &MeasuringJob<'_>) -> Result<(), Failure> {
    let consent = job.flags.destructive.consent(&job.identities)?;
    stall_timeout()?;
    refuse_foreign_history(&job.flags.history)?;
    let admissions = admit_all(&job.plan, &job.identities, &job.flags.expected, &consent)?;
    for (admission, identity) in admissions.into_iter().zip(&job.identities) {
        let is_scratch = identity.kind == TargetKind::Directory;
        if !is_scratch && !job.plan.writes() {
            OpenTarget::open(admission)?;
            continue;
        }
        let (needed, doing) = if is_scratch {
            (Access::EXEC_OK, "create a scratch file in it")
        } else {
            (Access::READ_OK, "open it for writing")
        };
        let needed = Access::WRITE_OK | needed;
        accessat(CWD, &identity.path, needed, AtFlags::EACCESS).map_err(|errno| {
            let path = identity.path.clone();
            Failure::Open(match errno {
                Errno::ROFS => OpenError::ReadOnly { path, doing },
                _ => OpenError::NotPermitted { path, doing },
            })
        })?;
    }
    Ok(())
}

/// A misspelt workload would otherwise be noticed only after the run.
fn check_answerable(plan: &Plan, expected: &Expected) -> Result<(), String> {
    let survey = plan.survey();
    let name = &expected.workload;
    let survey_step = match expected.part {
        Part::Curve => Some(survey.is_some_and(|survey| survey.curve.is_some())),
        Part::Access(_) => Some(survey.is_some_and(|survey| survey.access.is_some())),
        Part::Burst => Some(survey.is_some_and(|survey| survey.burst.is_some())),
        _ => None,
    };
    if let Some(is_planned) = survey_step {
        let why = format!("this run measures no {name}");
        return is_planned.then_some(()).ok_or(why);
    }
    if let Some(files) = plan.files() {
        let names: Vec<String> = files.steps().map(FileStep::name).collect();
        return match (files.step(name), expected.op) {
            (Some(_), None) => Ok(()),
            (Some(_), Some(_)) => Err(format!("write {name}.METRIC without an operation")),
            (None, _) => Err(format!(
                "there is no step '{name}'; there are {}",
                names.join(", ")
            )),
        };
    }
    if let Some(skipped) = plan.skipped.iter().find(|one| one.workload == *name) {
        return Err(format!("this run skips {name}: {}", skipped.why));
    }
    let Some(workload) = plan.workloads().iter().find(|one| one.name == *name) else {
        let names: Vec<&str> = plan.workloads().iter().map(|w| w.name.as_str()).collect();
        return Err(format!(
            "there is no workload '{name}'; there are {}",
            names.join(", ")
        ));
    };
    if expected.op.is_none_or(|kind| workload.makes(kind)) {
        Ok(())
    } else {
        Err(format!("{name} has no such operations"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::op::OpKind;
    use diskproof_model::stream::Streams;

    /// A block device that accepts discards or not.
    fn device(discard: bool) -> TargetIdentity {
        let mut identity = diskproof_device::probe(std::path::Path::new("/")).unwrap();
        (identity.path, identity.kind) = ("/dev/sdb".to_owned(), TargetKind::BlockDevice);
        let layer = serde_json::json!({
            "name": "sdb", "kind": "disk", "device": "8:16", "below": [], "size_bytes": 1u64 << 30,
            "read_only": false, "discard": discard,
        });
        identity.layers = vec![serde_json::from_value(layer).unwrap()];
        identity
    }

    #[test]
    fn device_without_discards_is_refused_where_a_workload_trims() {
        let mut workload = Workload::named("trim");
        workload.streams = Streams::with_reads(0);
        let check = |workload: &Workload, discard| {
            let workloads = std::slice::from_ref(workload);
            check_discards(workloads, &[device(discard)]).map_err(|failure| failure.to_string())
        };
        assert!(check(&workload, false).is_ok());
        workload.streams = Streams::doing(&[OpKind::Trim, OpKind::Write]);
        assert!(check(&workload, true).is_ok());
        let why = check(&workload, false).unwrap_err();
        assert!(why.starts_with("/dev/sdb: workload 'trim' trims"), "{why}");
    }
}
