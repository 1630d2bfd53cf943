//! The workloads of a plan file on real targets: resolved group by group, with errors that name
//! file, line and workload.

use crate::failure::Failure;
use crate::plan_file::PlannedWorkload;
use crate::workload::{Content, ResolveContext, ResolvedGroup, WorkloadFlags, resolve_group};
use diskproof_model::plan::{Skipped, Workload};
use diskproof_model::target::TargetIdentity;

/// No device has smaller sectors.
const SECTOR_BYTES: u32 = 512;

/// Resolves the workloads; `shown` is the name of the file. What the targets' sectors exclude is
/// skipped.
pub(crate) fn resolve_planned(
    shown: &str,
    planned: &[PlannedWorkload],
    mut context: ResolveContext,
    unit_bytes: u32,
) -> Result<(Vec<Workload>, Vec<Skipped>), Failure> {
    let (mut workloads, mut skipped) = (Vec::new(), Vec::new());
    for members in groups(planned) {
        let flags: Vec<&WorkloadFlags> = members.iter().map(|member| &member.flags).collect();
        let wrong = |(index, error): (usize, String)| {
            let PlannedWorkload { line, name, .. } = &members[index];
            let at = match line {
                0 => String::new(),
                line => format!("line {line}: "),
            };
            Failure::Usage(format!("{shown}: {at}workload '{name}': {error}"))
        };
        match resolve_group(&flags, &context, unit_bytes).map_err(wrong)? {
            ResolvedGroup::Skipped(group) => skipped.extend(group),
            ResolvedGroup::Runs(together) => {
                context.content = Content::Data;
                workloads.extend(together);
            }
        }
    }
    match skipped.first() {
        Some(Skipped { why, .. }) if workloads.is_empty() => Err(Failure::Usage(format!(
            "{shown}: {why}; use a multiple of {unit_bytes} for bs and span, or buffered = true"
        ))),
        _ => Ok((workloads, skipped)),
    }
}

/// The groups of workloads that run together, in order.
pub(crate) fn groups(planned: &[PlannedWorkload]) -> impl Iterator<Item = &[PlannedWorkload]> {
    planned.chunk_by(|_, next| next.flags.together == Some(true))
}

/// The largest sector of the devices directly below the targets.
pub(crate) fn sector_bytes(identities: &[TargetIdentity]) -> u32 {
    let identities = identities.iter();
    let sectors = identities.filter_map(|one| one.layers.first()?.logical_block_bytes);
    sectors.fold(SECTOR_BYTES, u32::max)
}
