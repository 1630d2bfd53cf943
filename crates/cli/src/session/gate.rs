//! The gate of a run: everything that may refuse it, before anything is opened for writing. Each
//! question is asked once, and what was granted is handed on.

use super::inserts::server_bytes;
use super::job::{Agreed, MeasuringJob};
use crate::failure::Failure;
use crate::inspection::stall_timeout;
use crate::saved::refuse_foreign_history;
use crate::write_cache::planned_states;
use diskproof_analysis::campaign::planned_campaign;
use diskproof_analysis::expect::{Expected, Quantity};
use diskproof_analysis::promised::{Promised, promised};
use diskproof_device::{
    Admission, Consent, Intent, OpenError, OpenTarget, READ_BYTES_MIN, admit, admit_requests,
};
use diskproof_model::figure::Part;
use diskproof_model::files::FileStep;
use diskproof_model::op::OpKind;
use diskproof_model::plan::{Plan, Workload};
use diskproof_model::target::{TargetIdentity, TargetKind};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;
use std::path::Path;
use std::time::Duration;

/// What the gate has granted.
pub(super) struct Granted {
    /// Leave to open the targets, in their order.
    pub admissions: Vec<Admission>,
    /// What the user released.
    pub consent: Consent,
    /// The longest silence of a target.
    pub stall_timeout: Duration,
}

/// Lets a job pass, or refuses it for the first reason.
pub(super) fn pass_gate(job: &MeasuringJob<'_>) -> Result<Granted, Failure> {
    let (plan, identities, flags) = (&job.plan, &job.identities, job.flags);
    // A load that follows another one has been identified before it.
    crate::inspection::begin(Path::new(&plan.targets.join(", ")), flags.verbosity());
    refuse_other_changes(job)?;
    let consent = flags.destructive.consent(identities)?;
    let stall_timeout = stall_timeout()?;
    refuse_foreign_history(&flags.history)?;
    let admissions = admit_all(plan, identities, &flags.expected, &consent)?;
    Ok(Granted {
        admissions,
        consent,
        stall_timeout,
    })
}

/// Refuses a plan that needs what the user has not agreed to, or for which there is no room.
fn refuse_other_changes(job: &MeasuringJob<'_>) -> Result<(), Failure> {
    let switches = matches!(job.agreed, Agreed::WriteCache(_));
    // Its rows would state what was never set.
    let is_switched = switches && planned_campaign(&job.plan).is_none();
    if planned_states(&job.plan).is_some() && !is_switched {
        return Err(Failure::Usage(
            "the plan switches the disk's write cache, which this command cannot do; use \
             'diskproof commit --write-cache'"
                .to_owned(),
        ));
    }
    if job.plan.inserts().is_none() {
        return Ok(());
    }
    let (Agreed::Server(_), Some(identity)) = (&job.agreed, job.identities.first()) else {
        return Err(Failure::Usage(
            "the plan has INSERTs, and no PostgreSQL server was found for them".to_owned(),
        ));
    };
    // The room that the server needs beside the workloads.
    let size_bytes = job.plan.scratch_bytes().unwrap_or(0) + server_bytes(&job.plan);
    admit(identity.clone(), Intent::Scratch { size_bytes })?;
    Ok(())
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

/// Checks in addition whether the targets could be opened for writing, without doing it.
pub(super) fn rehearse(job: &MeasuringJob<'_>, granted: Granted) -> Result<(), Failure> {
    for (admission, identity) in granted.admissions.into_iter().zip(&job.identities) {
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
