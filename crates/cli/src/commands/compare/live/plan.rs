//! What a live comparison measures, and for how long.

use crate::commands::compare::flags::LiveFlags;
use crate::failure::Failure;
use crate::flags::{MeasuringFlags, SCRATCH_BYTES_LEAST, SCRATCH_BYTES_MIN, SCRATCH_BYTES_UNIT};
use crate::standard_workloads::{share_among_sides, standard_workloads};
use diskproof_device::scratch_bytes_max;
use diskproof_model::plan::{Plan, Skipped, Workload};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::format_bytes;

const SECOND: u64 = 1_000_000_000;
/// Time for everything, and with --quick.
const TIME_NS: u64 = 60 * SECOND;
const QUICK_NS: u64 = 20 * SECOND;
/// Share of the time for filling one scratch file, and for what comes after the last cell.
const LAYOUT_PARTS: u64 = 12;
const END_PARTS: u64 = 20;
/// What is compared unless --only names workloads.
const DEFAULT: [&str; 4] = [
    "sequential-read",
    "random-read-d1",
    "random-read-d32",
    "commit-fdatasync",
];
/// Drives have caches of up to 1 GiB.
const SCRATCH_BYTES: u64 = 1 << 30;
/// A scratch file that is filled before each cell.
const SCRATCH_BYTES_REOPENED: u64 = 128 << 20;

/// The plan of one side, the time of its layout, and that of all cells.
pub(super) fn live_plan(
    flags: &LiveFlags,
    measuring: &MeasuringFlags,
    identities: &[TargetIdentity],
    sides: usize,
) -> Result<(Plan, u64, u64), Failure> {
    let scratch_bytes = scratch_size(flags, identities)?;
    let default_ns = if flags.quick { QUICK_NS } else { TIME_NS };
    let time_ns = flags.time.unwrap_or(default_ns);
    let files = scratch_bytes.map_or(0, |_| identities.len() as u64);
    let smallest = identities.iter().map(|one| one.size_bytes).min();
    let write_bytes = scratch_bytes.unwrap_or(smallest.unwrap_or(0).min(SCRATCH_BYTES));
    let all = standard_workloads(measuring, time_ns, write_bytes, 1);
    let (workloads, skipped) = select(flags, all, identities)?;
    let layout_ns = time_ns / LAYOUT_PARTS;
    let cells_ns = (time_ns - time_ns / END_PARTS).saturating_sub(layout_ns * files);
    let workloads = share_among_sides(workloads, sides, "sides", time_ns, cells_ns);
    let workloads =
        workloads.map_err(|why| Failure::Usage(format!("{why}, or fewer workloads (--only)")))?;
    let plan = Plan {
        scratch_bytes,
        workloads,
        skipped,
        ..measuring.plan("compare", &[])
    };
    Ok((plan, layout_ns, cells_ns))
}

/// The size of each scratch file; `None` where the targets are files or devices.
fn scratch_size(flags: &LiveFlags, identities: &[TargetIdentity]) -> Result<Option<u64>, Failure> {
    let is_directory = |one: &TargetIdentity| one.kind == TargetKind::Directory;
    if !identities.iter().any(is_directory) {
        return match flags.size {
            None => Ok(None),
            Some(_) => Err(Failure::Usage(
                "--size is the size of the scratch files in directories; omit it".to_owned(),
            )),
        };
    }
    let size = match flags.size {
        Some(size) if size < SCRATCH_BYTES_MIN => {
            let (size, least) = (format_bytes(size), format_bytes(SCRATCH_BYTES_MIN));
            return Err(Failure::Usage(format!(
                "--size {size}: too small to measure anything; use at least {least}"
            )));
        }
        Some(size) => size,
        None => {
            // Several directories may share one filesystem.
            let room = identities.iter().map(scratch_bytes_max).min().unwrap_or(0);
            let most = if flags.reopen {
                SCRATCH_BYTES_REOPENED
            } else {
                SCRATCH_BYTES
            };
            most.min(room / identities.len() as u64)
                .max(SCRATCH_BYTES_LEAST)
        }
    };
    Ok(Some(size / SCRATCH_BYTES_UNIT * SCRATCH_BYTES_UNIT))
}

/// The workloads to compare, and why others are skipped.
fn select(
    flags: &LiveFlags,
    all: Vec<Workload>,
    identities: &[TargetIdentity],
) -> Result<(Vec<Workload>, Vec<Skipped>), Failure> {
    let known: Vec<&str> = all.iter().map(|workload| workload.name.as_str()).collect();
    flags.selection.check_names(&known)?;
    let is_chosen = |name: &str| {
        let is_asked = !flags.selection.only.is_empty() || DEFAULT.contains(&name);
        is_asked && flags.selection.excludes(name).is_none()
    };
    let (mut chosen, mut skipped) = (Vec::new(), Vec::new());
    for workload in all {
        if !is_chosen(&workload.name) {
            continue;
        }
        match why_not_written(flags, identities).filter(|_| workload.writes()) {
            None => chosen.push(workload),
            Some(why) => skipped.push(Skipped {
                workload: workload.name,
                why: why.to_owned(),
            }),
        }
    }
    if chosen.is_empty() {
        let why = skipped.first().map_or(String::new(), |one| {
            format!(" {}: {}", one.workload, one.why)
        });
        return Err(Failure::Usage(format!(
            "nothing is left to compare; select at least one workload.{why}"
        )));
    }
    Ok((chosen, skipped))
}

/// Why writing workloads are skipped.
fn why_not_written(flags: &LiveFlags, identities: &[TargetIdentity]) -> Option<&'static str> {
    let why_only_read = || flags.destructive.why_only_read(identities.first()?.kind);
    flags
        .read_only
        .then_some("--read-only")
        .or_else(why_only_read)
}
