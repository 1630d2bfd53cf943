//! Decides for each text of a record, by its place in the schema, whether it stays, is replaced, or
//! is derived again. A test fails while a text of the schema is missing here.

use super::placeholders::{
    BOOT, COMMAND, GROUP, HOST, Identity, JOB, MACHINE, NOTE, PATH, REASON, SERIAL, SERVER, SOURCE,
};

/// The treatment of the text at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Treatment {
    /// It stays: it names nothing of the machine.
    Public,
    /// The judge derives it again from the other parts.
    Derived,
    /// It identifies: a placeholder of this kind takes its place.
    Name(Identity),
    /// The name of a program, but for threads of the kernel by which findings decide: without their
    /// names the record would be judged otherwise.
    Process,
    /// It identifies where it is the path of a file, and no profile of this program.
    Profile,
    /// The kernel's name of a block device. It names nothing, except where a RAID has a name.
    Device,
    /// An option of a mount, whose value may name something.
    MountOption,
}

/// The treatment of the texts at a place; `None` where the schema lists the possible words.
pub(super) fn treatment_of(place: &str) -> Option<Treatment> {
    for (treatment, ends) in PLACES {
        if ends.iter().any(|end| is_at(place, end, *treatment)) {
            return Some(*treatment);
        }
    }
    None
}

/// True where a place ends with `end`, at a whole name. A derived place includes all places within.
pub(super) fn is_at(place: &str, end: &str, treatment: Treatment) -> bool {
    if treatment == Treatment::Derived {
        return format!("{place}.").contains(&format!("{end}."));
    }
    match place.strip_suffix(end) {
        Some(before) => before.is_empty() || before.ends_with('.'),
        None => false,
    }
}

/// The treatment of places, each by its end, without the indexes of lists.
pub(super) const PLACES: &[(Treatment, &[&str])] = &[
    (Treatment::Name(HOST), &["host.name"]),
    (Treatment::Name(GROUP), &["io_limits.group"]),
    (
        Treatment::Name(PATH),
        &[
            "plan.targets",
            "targets.path",
            "layers.path",
            "filesystem.mount_point",
            "layers.backing_file",
            "server.programs",
            "sides.paths",
        ],
    ),
    (Treatment::Name(SOURCE), &["filesystem.source"]),
    (
        Treatment::Name(SERIAL),
        &["layers.serial", "health.serial", "health_before.serial"],
    ),
    (Treatment::Process, &["others.name", "processes.name"]),
    (Treatment::Name(SERVER), &["server.address"]),
    (
        Treatment::Name(COMMAND),
        &[
            "results.prepare",
            "skipped.command",
            "sides.prepare",
            "sides.cleanup",
        ],
    ),
    (Treatment::Name(NOTE), &["record.note"]),
    (Treatment::Name(BOOT), &["wall.boot_id"]),
    (Treatment::Name(MACHINE), &["host.machine"]),
    (Treatment::Name(JOB), &["host.job"]),
    (Treatment::Profile, &["plan.questions.fit_for"]),
    (
        Treatment::Name(REASON),
        &[
            "record.ended_early",
            "sides.unresolved",
            "targets.unresolved",
            "device.unresolved",
            "layers.skipped.why",
            "places.why",
            "caches.failed",
            "results.hidden",
            "health.unavailable",
            "health_before.unavailable",
            "data.untested",
        ],
    ),
    (
        Treatment::Device,
        &[
            "layers.name",
            "layers.below",
            "device.disks",
            "devices.name",
            "explained.devices",
            "like.device",
            "disk_access.disk",
            "health.disk",
            "health_before.disk",
            "health_changes.disk",
            "counted.disk",
        ],
    ),
    (Treatment::MountOption, &["filesystem.options"]),
    (
        Treatment::Derived,
        &[
            "record.findings",
            "record.verdict",
            "record.advice",
            "figures.limited_by",
            "figures.cause",
            "rays.load.cause",
            "figures.reproduce",
            "promise.name",
            "promise.unit",
        ],
    ),
    (Treatment::Public, PUBLIC),
];

/// Places whose texts name nothing of the machine: words of this program, of the kernel and of the
/// makers of hardware, units, versions, times, packed columns; and names of workloads, which stay
/// although a job file may choose them.
const PUBLIC: &[&str] = &[
    "tool.name",
    "tool.version",
    "run_id",
    "started",
    "host.kernel",
    "host.os",
    "host.cpu",
    "host.hypervisor",
    "host.container",
    "host.load_average",
    "host.governor",
    "io_limits.device",
    "clock.source",
    "plan.schema",
    "origin.verb",
    "origin.argv",
    "workload.name",
    "list.name",
    "skipped.workload",
    "plan.skipped.why",
    "loads.name",
    "load.name",
    "wal_sync_method",
    "results.version",
    "server.version",
    "server.missing",
    "trials.setting",
    "trials.default",
    "trials.candidate",
    "trial.setting",
    "trial.default",
    "trial.candidate",
    "data.plans",
    "trials.workload",
    "results.id",
    "results.side",
    "decisions.workload",
    "targets.device",
    "filesystem.kind",
    "layers.device",
    "layers.model",
    "layers.vendor",
    "layers.firmware",
    "layers.scheduler",
    "layers.backing_filesystem",
    "link.bus",
    "link.speed",
    "link.speed_max",
    "together_with",
    "unit",
    "hdr",
    "ops.latency",
    "ops.series",
    "ops.intended",
    "op.series",
    "io.backend",
    "io.object",
    "io.context",
    "health.source",
    "health_before.source",
    "health.protocol",
    "health_before.protocol",
    "health.model",
    "health_before.model",
    "health.firmware",
    "health_before.firmware",
    "health.alarms",
    "health_before.alarms",
    "self_test.status",
    "cache.why",
    "fallbacks.why",
    "engine.features",
    "bad.why",
    "requests.error",
    "cells.why",
    "unreadable.errno",
    "ended_at.errno",
    "failed.doing",
    "failed.errno",
    "stalls.around",
    "content.errno",
    "data.states",
    "own.workload",
    "costs.workload",
    "results.workload",
    "recoveries.workload",
    "expectations.expression",
    "questions.fit_limits",
    "expectations.objection",
    "dropped.workload",
    "stalled.around",
    "capacity.verb",
];
