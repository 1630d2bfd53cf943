//! Removes from a record what identifies its machine. Every text of a record has a place in the
//! schema, and the place decides: it stays, it is replaced, or it follows from the others and is
//! derived again. A text is never searched for names. Model, firmware, size and kernel stay.

mod placeholders;
mod places;

use crate::failure::Failure;
use crate::profiles::is_built_in;
use diskproof_analysis::again::{Rejudged, judged_again};
use diskproof_model::measurement::KERNEL_THREADS_THAT_DECIDE;
use diskproof_model::plan::Origin;
use diskproof_model::record::{Kept, Record};
use diskproof_model::target::{Layer, LayerKind, MAPPER_USERS, OTHER_MAPPER_USER};
use placeholders::{PATH, PROCESS, Placeholders, RAID, VOLUME};
use places::{Treatment, treatment_of};
use serde_json::Value;

/// Options of filesystems whose values name nothing of the machine.
const PUBLIC_OPTIONS: [&str; 12] = [
    "data", "errors", "compress", "discard", "barrier", "commit", "logbufs", "logbsize", "sunit",
    "swidth", "stripe", "vers",
];

/// The kernel's name of a RAID begins so where its administrator named it (md(4)).
const RAID_PREFIX: &str = "md_";

/// The most names of workloads that a note lists. Chosen to keep it on a line.
const NAMES_MAX: usize = 6;

/// The user id that Linux gives to nobody.
const NOBODY: u32 = 65_534;

/// A record without the names of its machine.
pub(crate) struct AnonymousRecord {
    /// The record, derived again from what is left.
    pub(crate) record: Record,
    /// The names that were replaced or removed: `1 host name, 2 paths`.
    pub(crate) left_out: String,
    /// The facts about the machine and its user that the record still shows.
    pub(crate) kept: String,
}

/// The record without the names of its machine. Fails on a record that keeps no data: its sentences
/// cannot be derived again.
pub(crate) fn anonymize(record: &Record) -> anyhow::Result<AnonymousRecord> {
    match record.kept {
        Kept::FiguresOnly => return Err(no_data_error().into()),
        Kept::Whole => {}
    }
    let mut placeholders = Placeholders::of_run(&record.run_id);
    let mut reduced = record.clone();
    let verb = &record.plan.origin.verb;
    reduced.plan.origin = Origin::new(verb.clone(), vec!["diskproof".to_owned(), verb.clone()]);
    reduced.host.uid = if record.host.uid == 0 { 0 } else { NOBODY };
    replace_volume_names(&mut reduced, &mut placeholders);
    let mut tree = reduced.to_tree()?;
    replace_names(&mut tree, "record", &mut placeholders);
    let left_out = placeholders.counts_text();
    let mut nameless = Record::from_tree(&tree)?;
    let kept = kept_text(&nameless);
    nameless.note = Some(format!("anonymous, without {left_out}; kept: {kept}"));
    let (judged, difference) = judged_again(nameless);
    if difference == Rejudged::NoData {
        return Err(no_data_error().into());
    }
    Ok(AnonymousRecord {
        record: judged,
        left_out,
        kept,
    })
}

/// The error of a record whose sentences cannot be derived again.
fn no_data_error() -> Failure {
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

/// Replaces the names in a tree of JSON, whose root is at this place.
fn replace_names(value: &mut Value, place: &str, placeholders: &mut Placeholders) {
    match value {
        Value::String(text) => replace_name(text, place, placeholders),
        Value::Array(items) => {
            for item in items {
                replace_names(item, place, placeholders);
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                replace_names(field, &format!("{place}.{key}"), placeholders);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces the text at a place where it identifies something.
fn replace_name(text: &mut String, place: &str, placeholders: &mut Placeholders) {
    let Some(treatment) = treatment_of(place) else {
        return;
    };
    let identity = match treatment {
        Treatment::Public | Treatment::Derived => return,
        Treatment::MountOption => {
            *text = public_mount_option(text);
            return;
        }
        Treatment::Process if KERNEL_THREADS_THAT_DECIDE.contains(&text.as_str()) => return,
        Treatment::Process => PROCESS,
        Treatment::Name(identity) => identity,
        Treatment::Profile if is_built_in(text) => return,
        Treatment::Profile => PATH,
        Treatment::Device if text.starts_with(RAID_PREFIX) => RAID,
        Treatment::Device => return,
    };
    // The root and an empty name identify nothing.
    if !text.is_empty() && text != "/" {
        *text = placeholders.placeholder(identity, text);
    }
}

/// Replaces the names that an administrator gave volumes and files, where they stand in for a model
/// or within the name of a layer.
fn replace_volume_names(record: &mut Record, placeholders: &mut Placeholders) {
    let mut renamed_disks = Vec::new();
    for layer in record
        .targets
        .iter_mut()
        .flat_map(|target| &mut target.layers)
    {
        if layer.hardware_model().is_none()
            && let Some(model) = &layer.model
        {
            let text = without_volume_name(layer, model, placeholders);
            layer.model = Some(text);
            renamed_disks.push(layer.name.clone());
        }
    }
    for health in &mut record.health {
        if renamed_disks.contains(&health.disk) {
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
fn without_volume_name(layer: &Layer, model: &str, placeholders: &mut Placeholders) -> String {
    let placeholder = placeholders.placeholder(VOLUME, model);
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
fn public_mount_option(text: &str) -> String {
    match text.split_once('=') {
        Some((key, _)) if !PUBLIC_OPTIONS.contains(&key) => key.to_owned(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
