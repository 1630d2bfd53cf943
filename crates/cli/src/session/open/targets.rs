//! Opens the targets of a run, and finds which of them are files of this program. Those are marked
//! as its own while they are empty; the end of the run gives them their length and marks them again
//! (`watchdog`), by descriptions that are opened here.

use crate::failure::Failure;
use crate::flags::MeasuringFlags;
use crate::plan_file::KeptFile;
use crate::session::bench::OwnTarget;
use diskproof_device::{Admission, OpenError, OpenTarget, PartOfFile};
use diskproof_model::plan::Plan;
use diskproof_model::target::TargetKind;

/// The targets of a run.
pub(super) struct OpenedTargets {
    /// Those that are measured by requests, in their order.
    pub(super) targets: Vec<OpenTarget>,
    /// Leave to make a directory for many small files, where the plan has them in place of targets.
    pub(super) file_tree: Option<Admission>,
}

/// Opens the targets that the plan measures by requests.
pub(super) fn open_targets(
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
pub(super) fn reopened(
    targets: &[OpenTarget],
    own_targets: &[OwnTarget],
) -> anyhow::Result<Vec<OpenTarget>> {
    let mut files = Vec::new();
    for own in own_targets {
        files.push(targets[own.target].reopen()?);
    }
    Ok(files)
}

/// The targets that are files of diskproof's own: those that this run makes, and those that an
/// earlier one made for a tool, where only their mark releases them.
pub(super) fn own_targets(
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
