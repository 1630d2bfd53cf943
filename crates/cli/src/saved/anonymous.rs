//! A record without what identifies its machine. Every text of a record has a place in the schema,
//! and the place decides: it stays, it is replaced, or it follows from the others and is derived
//! again. A text is never searched for names. Model, firmware, size and kernel stay.

use crate::failure::Failure;
use crate::profiles::is_built_in;
use diskproof_analysis::again::{Rejudged, judged_again};
use diskproof_model::plan::Origin;
use diskproof_model::record::{Kept, Record};
use diskproof_model::target::{Layer, LayerKind, MAPPER_USERS, OTHER_MAPPER_USER};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The treatment of the text at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Treatment {
    /// It stays: it names nothing of the machine.
    Public,
    /// The judge derives it again from the other parts.
    Derived,
    /// It identifies: a numbered placeholder takes its place.
    Name(Identity),
    /// It identifies where it is the path of a file, and no profile of this program.
    Profile,
    /// A sentence that may quote a path, a server or another program.
    Sentence,
    /// The name of a block device by the kernel, which names nothing except in a RAID of a name.
    Device,
    /// An option of a mount, whose value may name something.
    MountOption,
}

/// The kind of thing that a text identifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    /// The noun, such as `host name`.
    noun: &'static str,
    /// The noun for several.
    plural: &'static str,
    /// A number follows it in a record.
    placeholder: &'static str,
    /// The records in which the number means the same.
    known_in: KnownIn,
}

/// The records in which equal placeholders of a kind stand for the same thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KnownIn {
    /// What a record calls so says nothing of other machines: the first path, a process.
    AnyRecord,
    /// It tells machines apart: the placeholder has the mark of its record. Without the mark all
    /// hosts of a fleet would be one.
    OneRecord,
}

impl Identity {
    const fn new(noun: &'static str, plural: &'static str, placeholder: &'static str) -> Self {
        Self {
            noun,
            plural,
            placeholder,
            known_in: KnownIn::AnyRecord,
        }
    }

    /// The same, of a kind that tells machines apart.
    const fn of_machine(self) -> Self {
        Self {
            known_in: KnownIn::OneRecord,
            ..self
        }
    }
}

const HOST: Identity = Identity::new("host name", "host names", "host").of_machine();
const GROUP: Identity = Identity::new("control group", "control groups", "/group");
const PATH: Identity = Identity::new("path", "paths", "/path");
const SOURCE: Identity = Identity::new("mount source", "mount sources", "source");
const SERIAL: Identity = Identity::new("serial number", "serial numbers", "serial").of_machine();
const PROCESS: Identity = Identity::new("process name", "process names", "process");
const SERVER: Identity = Identity::new("server address", "server addresses", "server");
const COMMAND: Identity = Identity::new("command", "commands", "command");
const NOTE: Identity = Identity::new("note", "notes", "note");
const VOLUME: Identity = Identity::new("volume name", "volume names", "volume");
const RAID: Identity = Identity::new("RAID name", "RAID names", "md_");
const BOOT: Identity = Identity::new("boot id", "boot ids", "boot").of_machine();
const REASON: Identity = Identity::new("reason", "reasons", "the reason is left out");

/// The treatment of places, each by its end, without the indexes of lists.
const PLACES: &[(Treatment, &[&str])] = &[
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
    (Treatment::Name(SERIAL), &["layers.serial", "health.serial"]),
    (Treatment::Name(PROCESS), &["others.name", "processes.name"]),
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
    (Treatment::Profile, &["plan.questions.fit_for"]),
    (
        Treatment::Sentence,
        &[
            "record.ended_early",
            "stalled.around",
            "sides.unresolved",
            "targets.unresolved",
            "device.unresolved",
            "layers.skipped.why",
            "places.why",
            "caches.failed",
            "results.hidden",
            "health.unavailable",
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
    "health.protocol",
    "health.model",
    "health.firmware",
    "health.alarms",
    "self_test.status",
    "cache.why",
    "fallbacks.why",
    "engine.features",
    "bad.why",
    "requests.error",
    "cells.why",
    "unreadable.errno",
    "content.errno",
    "data.states",
    "own.workload",
    "costs.workload",
    "results.workload",
    "recoveries.workload",
    "expectations.expression",
    "expectations.objection",
    "dropped.workload",
    "capacity.verb",
];

/// Options of filesystems whose values name nothing of the machine.
const OPTIONS: [&str; 12] = [
    "data", "errors", "compress", "discard", "barrier", "commit", "logbufs", "logbsize", "sunit",
    "swidth", "stripe", "vers",
];

/// The most names of workloads that a note lists.
const NAMES_MAX: usize = 6;

/// A record without the names of its machine.
pub(crate) struct Anonymous {
    /// The record, derived again from what is left.
    pub(crate) record: Record,
    /// The names that were replaced or removed: `1 host name, 2 paths`.
    pub(crate) left_out: String,
    /// The facts about the machine and its user that the record still shows.
    pub(crate) kept: String,
}

/// The record without the names of its machine. Fails on a record that keeps no data: its sentences
/// cannot be derived again.
pub(crate) fn anonymous(record: &Record) -> anyhow::Result<Anonymous> {
    match record.kept {
        Kept::FiguresOnly => return Err(no_data().into()),
        Kept::Whole => {}
    }
    let mut names = Replaced::new(&record.run_id);
    let mut reduced = record.clone();
    let verb = &record.plan.origin.verb;
    reduced.plan.origin = Origin::new(verb.clone(), vec!["diskproof".to_owned(), verb.clone()]);
    reduced.host.uid = if record.host.uid == 0 { 0 } else { NOBODY };
    replace_volume_names(&mut reduced, &mut names);
    let mut tree = reduced.to_tree()?;
    replace_names(&mut tree, "record", &mut names);
    let left_out = names.text();
    let mut nameless = Record::from_tree(&tree)?;
    let kept = kept_text(&nameless);
    nameless.note = Some(format!("anonymous, without {left_out}; kept: {kept}"));
    let (judged, difference) = judged_again(nameless);
    if difference == Rejudged::NoData {
        return Err(no_data().into());
    }
    Ok(Anonymous {
        record: judged,
        left_out,
        kept,
    })
}

/// The user id that Linux gives to nobody.
const NOBODY: u32 = 65_534;

fn no_data() -> Failure {
    Failure::Usage(
        "--anonymous: the record keeps no data, so its sentences, which may name the machine, \
         cannot be derived without the names. Export the run from the history where it was \
         measured, or measure with fewer requests"
            .to_owned(),
    )
}

/// The facts that stay in a record: `models, firmware, sizes, kernel, system, times`.
fn kept_text(record: &Record) -> String {
    let mut names: Vec<&str> = Vec::new();
    for workload in record.plan.workloads() {
        if !names.contains(&workload.name.as_str()) {
            names.push(&workload.name);
        }
    }
    let mut text = "models, firmware, sizes, kernel, system, times".to_owned();
    if names.is_empty() {
        return text;
    }
    text.push_str(", names of workloads (");
    text.push_str(&names[..names.len().min(NAMES_MAX)].join(", "));
    if names.len() > NAMES_MAX {
        text.push_str(", …");
    }
    text.push(')');
    text
}

/// The names that were replaced so far.
#[derive(Debug, Default)]
struct Replaced {
    names: Vec<ReplacedName>,
    /// The mark of the record in placeholders of its machine.
    mark: String,
}

/// Bytes of a record's mark: two of a thousand records have the same once in ten thousand times.
const MARK_BYTES: usize = 4;

#[derive(Debug)]
struct ReplacedName {
    identity: Identity,
    text: String,
    placeholder: String,
}

impl Replaced {
    /// No name yet, of the record with this id. The mark is a hash, because the id begins with the
    /// time.
    fn new(run_id: &str) -> Self {
        let hash = Sha256::digest(run_id);
        let mut mark = String::new();
        for byte in &hash[..MARK_BYTES] {
            mark.push_str(&format!("{byte:02x}"));
        }
        Self {
            names: Vec::new(),
            mark,
        }
    }

    /// The placeholder of a name; the same name of one kind has the same everywhere.
    fn placeholder(&mut self, identity: Identity, text: &str) -> String {
        let mut number = 1;
        for name in &self.names {
            if name.identity == identity {
                if name.text == text {
                    return name.placeholder.clone();
                }
                number += 1;
            }
        }
        let word = identity.placeholder;
        let placeholder = match identity.known_in {
            _ if identity == REASON => word.to_owned(),
            KnownIn::AnyRecord => format!("{word}{number}"),
            KnownIn::OneRecord => format!("{word}{number}-{}", self.mark),
        };
        self.names.push(ReplacedName {
            identity,
            text: text.to_owned(),
            placeholder: placeholder.clone(),
        });
        placeholder
    }

    /// `1 host name, 2 paths`.
    fn text(&self) -> String {
        let mut counts: Vec<(Identity, usize)> = Vec::new();
        for name in &self.names {
            match counts.iter_mut().find(|(known, _)| *known == name.identity) {
                Some((_, count)) => *count += 1,
                None => counts.push((name.identity, 1)),
            }
        }
        let mut words = Vec::new();
        for (identity, count) in counts {
            let noun = if count == 1 {
                identity.noun
            } else {
                identity.plural
            };
            words.push(format!("{count} {noun}"));
        }
        words.join(", ")
    }
}

/// The treatment of the texts at a place; `None` where the schema lists the possible words.
fn treatment(place: &str) -> Option<Treatment> {
    for (treatment, ends) in PLACES {
        if ends.iter().any(|end| is_at(place, end, *treatment)) {
            return Some(*treatment);
        }
    }
    None
}

/// Whether a place ends with `end`. A derived place includes all places within.
fn is_at(place: &str, end: &str, treatment: Treatment) -> bool {
    if treatment == Treatment::Derived {
        return format!("{place}.").contains(&format!("{end}."));
    }
    match place.strip_suffix(end) {
        Some(before) => before.is_empty() || before.ends_with('.'),
        None => false,
    }
}

/// Replaces the names in a tree of JSON, whose root is at this place.
fn replace_names(value: &mut Value, place: &str, names: &mut Replaced) {
    match value {
        Value::String(text) => replace_name(text, place, names),
        Value::Array(items) => {
            for item in items {
                replace_names(item, place, names);
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                replace_names(field, &format!("{place}.{key}"), names);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn replace_name(text: &mut String, place: &str, names: &mut Replaced) {
    let identity = match treatment(place) {
        None | Some(Treatment::Public | Treatment::Derived) => return,
        Some(Treatment::MountOption) => {
            *text = mount_option(text);
            return;
        }
        Some(Treatment::Name(identity)) => identity,
        Some(Treatment::Sentence) => REASON,
        Some(Treatment::Profile) if is_built_in(text) => return,
        Some(Treatment::Profile) => PATH,
        Some(Treatment::Device) if text.starts_with(RAID.placeholder) => RAID,
        Some(Treatment::Device) => return,
    };
    // The root and an empty name identify nothing.
    if !text.is_empty() && text != "/" {
        *text = names.placeholder(identity, text);
    }
}

/// Replaces the names that an administrator gave volumes and files, where they stand in for a model
/// or within the name of a layer.
fn replace_volume_names(record: &mut Record, names: &mut Replaced) {
    let mut named_disks = Vec::new();
    for layer in record
        .targets
        .iter_mut()
        .flat_map(|target| &mut target.layers)
    {
        if layer.hardware_model().is_none()
            && let Some(model) = &layer.model
        {
            let text = without_volume_name(layer, model, names);
            layer.model = Some(text);
            named_disks.push(layer.name.clone());
        }
    }
    for health in &mut record.health {
        if named_disks.contains(&health.disk) {
            health.model = None;
        }
    }
    let layers = match record.plan.layers_mut() {
        Some(plan) => &mut plan.layers[..],
        None => &mut [],
    };
    for layer in layers {
        layer.name = if layer.device_kind.is_none() {
            file_layer_name(&layer.name)
        } else if let Some((device, _)) = layer.name.split_once(" (") {
            device.to_owned()
        } else {
            continue;
        };
    }
}

/// The text that takes the place of a volume's name: the kind of its layer stays.
fn without_volume_name(layer: &Layer, model: &str, names: &mut Replaced) -> String {
    let placeholder = names.placeholder(VOLUME, model);
    if layer.kind != LayerKind::DeviceMapper {
        return placeholder;
    }
    for (_, user) in MAPPER_USERS {
        if model.starts_with(user) {
            return format!("{user} {placeholder}");
        }
    }
    format!("{OTHER_MAPPER_USER} {placeholder}")
}

/// `file on ext4`, for a layer named `disk-of-acme.img on ext4`.
fn file_layer_name(name: &str) -> String {
    match name.rsplit_once(" on ") {
        Some((_, filesystem)) => format!("file on {filesystem}"),
        None => "file".to_owned(),
    }
}

/// A mount option, without a value that may name a path, a server or a user.
fn mount_option(text: &str) -> String {
    match text.split_once('=') {
        Some((key, _)) if !OPTIONS.contains(&key) => key.to_owned(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
