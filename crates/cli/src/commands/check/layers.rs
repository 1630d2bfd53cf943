//! `diskproof check --layers`: the same reads on a file and on every device below it, down to the
//! disk. Finds the layers and makes the plan; the campaign of live comparisons alternates them.

use crate::failure::{Exit, Failure};
use crate::flags::{MeasuringFlags, SCRATCH_BYTES_LEAST, SECOND, SelectionFlags};
use crate::saved::named_or_recorded;
use crate::session::{MeasuringJob, measure};
use crate::standard_workloads::{of_all_sides, share_among_sides, standard_workloads};
use diskproof_device::{Intent, OpenTarget, admit, probe};
use diskproof_model::layers::{LayersPlan, PlannedLayer, SkippedLayer};
use diskproof_model::plan::{
    Decide, LivePlan, METHOD_VERSION, Origin, Plan, Scratch, Sides, Task, Workload, Workloads,
};
use diskproof_model::record::Record;
use diskproof_model::target::{Layer, LayerKind, TargetIdentity, TargetKind};
use std::path::{Path, PathBuf};

/// Time for everything, with --quick and with --thorough.
pub(super) const TIME_NS: u64 = 30 * SECOND;
pub(super) const QUICK_NS: u64 = 15 * SECOND;
pub(super) const THOROUGH_NS: u64 = 120 * SECOND;
/// Share of the time for filling the scratch file, and for what comes after the last slice.
const LAYOUT_PARTS: u64 = 10;
const END_PARTS: u64 = 20;
/// Drives have caches of up to 1 GiB.
const SCRATCH_BYTES: u64 = 1 << 30;
/// What is measured on each layer.
const WORKLOADS: [&str; 2] = ["random-read-d1", "random-read-d32"];
/// A workload ends early once every layer is known to differ from the highest by more than this,
/// or by less.
const MARGIN: f64 = 0.01;

/// Measures the layers, in so much time for everything.
pub(super) fn run(
    selection: &SelectionFlags,
    time_ns: u64,
    measuring: &MeasuringFlags,
    identity: TargetIdentity,
) -> anyhow::Result<Exit> {
    if measuring.destructive.overwrite || !measuring.destructive.destroy.is_empty() {
        let text = "--layers only reads; omit --destroy and --overwrite";
        return Err(Failure::Usage(text.to_owned()).into());
    }
    let (layers, identities) = open_layers(&identity);
    if identities.len() < 2 {
        return Err(too_few(&layers, &identity).into());
    }
    let sides = identities.len();
    let scratch_bytes = measuring.scratch_bytes(&identities[0], SCRATCH_BYTES)?;
    let layout_ns = scratch_bytes.map_or(0, |_| time_ns / LAYOUT_PARTS);
    let cells_ns = time_ns - time_ns / END_PARTS - layout_ns;
    let workloads = workloads(selection, time_ns, measuring)?;
    let workloads = share_among_sides(workloads, sides, "layers", time_ns, cells_ns);
    let workloads = workloads.map_err(Failure::Usage)?;
    let plan = Plan {
        scratch: scratch_bytes
            .map(|bytes| Scratch::of_size(bytes).filled_within(SCRATCH_BYTES_LEAST, layout_ns)),
        tasks: vec![Task::Workloads(Workloads {
            decide: Decide::Compare(LivePlan {
                sides: Sides::Layers(layers),
                margin: MARGIN,
                cells_ns,
            }),
            ..Workloads::as_planned(of_all_sides(&workloads, sides))
        })],
        ..measuring.plan("check", &identities)
    };
    measure(MeasuringJob::new(plan, identities, measuring))?.exit()
}

/// Measures the layers of a record again: those that its target, or another one, has now.
pub(crate) fn repeat(
    record: &Record,
    targets: &[PathBuf],
    flags: &MeasuringFlags,
) -> anyhow::Result<Exit> {
    let named = named_or_recorded(targets, record);
    let highest = match (targets, named.first()) {
        ([] | [_], Some(highest)) => highest,
        _ => {
            let why = "the record measured the layers of one target; name one target";
            return Err(Failure::Usage(why.to_owned()).into());
        }
    };
    let identity = flags.probe(highest)?;
    if Some(identity.kind) != record.targets.first().map(|target| target.kind) {
        let why = "name a target of the kind that the record has (directory, file, device)";
        return Err(Failure::Usage(why.to_owned()).into());
    }
    let (layers, identities) = open_layers(&identity);
    if identities.len() < 2 {
        return Err(too_few(&layers, &identity).into());
    }
    let mut plan = Plan {
        seed: flags.seed.unwrap_or(record.plan.seed),
        targets: identities.iter().map(|one| one.path.clone()).collect(),
        origin: Origin::new("check", crate::provenance::command_line()),
        method: METHOD_VERSION,
        ..record.plan.clone()
    };
    if let Some(planned) = plan.layers_mut() {
        *planned = layers;
    }
    measure(MeasuringJob::new(plan, identities, flags))?.exit()
}

/// Why there is nothing to compare, and what can be done.
fn too_few(layers: &LayersPlan, identity: &TargetIdentity) -> Failure {
    let mut text = format!("{}: only one layer can be read", identity.path);
    let mut command = None;
    for layer in &layers.layers {
        if let Some(skipped) = &layer.skipped {
            text.push_str(&format!("\n  {}: {}", layer.name, skipped.why));
            command = command.or(skipped.command.as_ref());
        }
    }
    if let Some(why) = &layers.unresolved {
        text.push_str(&format!("\n  below: {why}"));
    }
    if let Some(command) = command {
        text.push_str(&format!("\nRun as root: {command}"));
    } else if layers.layers.len() < 2 && layers.unresolved.is_none() {
        text.push_str("; it is a disk, and has no layer below. Name a directory or file on it");
    }
    Failure::Usage(text)
}

/// The selected ones of the two workloads.
fn workloads(
    selection: &SelectionFlags,
    time_ns: u64,
    measuring: &MeasuringFlags,
) -> Result<Vec<Workload>, Failure> {
    selection.check_names(&WORKLOADS)?;
    let all = standard_workloads(measuring, time_ns, 0, 1);
    let is_chosen = |one: &Workload| {
        WORKLOADS.contains(&one.name.as_str()) && selection.excludes(&one.name).is_none()
    };
    let chosen: Vec<Workload> = all.into_iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        Err(Failure::Usage(format!(
            "nothing is left to measure; --layers measures {}",
            WORKLOADS.join(" and ")
        )))
    } else {
        Ok(chosen)
    }
}

/// A layer before it is opened, with `major:minor` of a device.
type FoundLayer = (PlannedLayer, Option<String>);

/// The layers of a target, and the identities of those that can be read.
fn open_layers(identity: &TargetIdentity) -> (LayersPlan, Vec<TargetIdentity>) {
    let mut identities = Vec::new();
    let mut layers = Vec::new();
    for (index, (mut layer, device)) in stack(identity).into_iter().enumerate() {
        let opened = match index {
            0 => Ok(identity.clone()),
            _ => readable(&layer.path, device.as_deref()),
        };
        match opened {
            Ok(opened) => {
                layer.target = Some(identities.len());
                identities.push(opened);
            }
            Err(why) => {
                let path = diskproof_model::shell::quoted(&identity.path);
                let command = format!("sudo diskproof check --layers {path}");
                let command = (!rustix::process::geteuid().is_root()).then_some(command);
                layer.skipped = Some(SkippedLayer { why, command });
            }
        }
        layers.push(layer);
    }
    let unresolved = identity.unresolved.clone();
    (LayersPlan { layers, unresolved }, identities)
}

/// The identity of a layer that can be opened for reading, or why it cannot.
fn readable(path: &str, device: Option<&str>) -> Result<TargetIdentity, String> {
    let identity = probe(Path::new(path)).map_err(|error| error.to_string())?;
    if device.is_some_and(|device| device != identity.device) {
        return Err(format!("{path} is the node of another device"));
    }
    let admission = admit(identity.clone(), Intent::Read);
    let admission = admission.map_err(|refusal| refusal.reasons.join("; "))?;
    OpenTarget::open(admission).map_err(|error| error.to_string())?;
    Ok(identity)
}

/// The layers of a target, the highest first. Where a layer spreads its blocks over several
/// devices, the first of the largest stands for all: smaller ones hold the metadata of a thin pool,
/// the changes of a snapshot, or a cache.
fn stack(identity: &TargetIdentity) -> Vec<FoundLayer> {
    let file = |name: &str, path: &str, kind: &str| {
        let layer = PlannedLayer {
            name: format!("{name} on {kind}"),
            path: path.to_owned(),
            device_kind: None,
            target: None,
            skipped: None,
            one_of: 1,
        };
        (layer, None)
    };
    let mut found = Vec::new();
    if identity.kind != TargetKind::BlockDevice {
        let filesystem = identity.filesystem.as_ref();
        let kind = filesystem.map_or("a filesystem", |filesystem| &filesystem.kind);
        found.push(file("file", &identity.path, kind));
    }
    let layers = &identity.layers;
    let is_below = |name: &str| layers.iter().any(|one| one.below.iter().any(|b| b == name));
    let mut next: Vec<&Layer> = layers.iter().filter(|one| !is_below(&one.name)).collect();
    while let Some(first) = first_of_largest(&next) {
        // A circle would be a fault of sysfs.
        if found.len() > layers.len() * 2 + 1 {
            break;
        }
        found.push(device_layer(identity, first, next.len()));
        let backing = first.backing_file.as_deref();
        if let Some(path) = backing.filter(|path| !path.starts_with("/dev/")) {
            let kind = probe(Path::new(path)).ok().and_then(|one| one.filesystem);
            let kind = kind.map_or("a filesystem".to_owned(), |filesystem| filesystem.kind);
            found.push(file(path.rsplit('/').next().unwrap_or(path), path, &kind));
        }
        let is_next = |one: &&Layer| first.below.contains(&one.name);
        next = layers.iter().filter(is_next).collect();
    }
    found
}

fn first_of_largest<'a>(layers: &[&'a Layer]) -> Option<&'a Layer> {
    // Of several, `max_by_key` takes the last.
    let layers = layers.iter().rev().copied();
    layers.max_by_key(|layer| layer.size_bytes)
}

fn device_layer(identity: &TargetIdentity, layer: &Layer, one_of: usize) -> FoundLayer {
    let is_target = identity.kind == TargetKind::BlockDevice && identity.device == layer.device;
    let path = if is_target {
        identity.path.clone()
    } else {
        format!("/dev/{}", layer.name.replace('!', "/"))
    };
    let is_mapped = layer.kind == LayerKind::DeviceMapper;
    let model = layer.model.as_ref().filter(|_| is_mapped);
    let found = PlannedLayer {
        name: match model {
            Some(model) => format!("{} ({model})", layer.name),
            None => layer.name.clone(),
        },
        path,
        device_kind: Some(layer.kind),
        target: None,
        skipped: None,
        one_of: u32::try_from(one_of).unwrap_or(u32::MAX),
    };
    (found, Some(layer.device.clone()))
}

#[cfg(test)]
mod tests;
