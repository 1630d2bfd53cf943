//! `diskproof check --layers`: the same reads on a file and on every device below it, down to the
//! disk. Finds the layers and makes the plan; the campaign of live comparisons alternates them.

use crate::failure::{Exit, Failure};
use crate::flags::{MeasuringFlags, SCRATCH_BYTES_USEFUL_MIN, SECOND_NS, SelectionFlags};
use crate::saved::named_or_recorded;
use crate::session::{MeasuringJob, measure};
use crate::standard_workloads::{
    WORKLOAD_PARTS, of_all_sides, share_among_sides, standard_workloads,
};
use diskproof_device::{Intent, OpenTarget, admit, probe};
use diskproof_model::layers::{LayersPlan, PlannedLayer, SkippedLayer};
use diskproof_model::plan::{
    Decide, LivePlan, METHOD_VERSION, Origin, Plan, Scratch, Sides, Task, Workload, Workloads,
};
use diskproof_model::record::Record;
use diskproof_model::target::{Filesystem, Layer, LayerKind, TargetIdentity, TargetKind};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Time for everything.
pub(super) const TIME_NS: u64 = 30 * SECOND_NS;
/// Time for everything with --quick.
pub(super) const QUICK_NS: u64 = 15 * SECOND_NS;
/// Time for everything with --thorough.
pub(super) const THOROUGH_NS: u64 = 120 * SECOND_NS;
/// Filling the scratch file may take a tenth of the time.
const LAYOUT_DIVISOR: u64 = 10;
/// What comes after the last slice may take a twentieth of the time.
const END_DIVISOR: u64 = 20;
/// Drives have caches of up to 1 GiB.
const SCRATCH_BYTES: u64 = 1 << 30;
/// The workloads that are measured on each layer.
const WORKLOADS: [&str; 2] = ["random-read-d1", "random-read-d32"];
/// A workload ends early once every layer is known to differ from the highest by more than this,
/// or by less.
const MARGIN: f64 = 0.01;

/// Measures the layers below a target. `time_ns` is the time for everything. Fails where only one
/// layer can be read.
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
    let OpenedLayers { layers, identities } = open_several_layers(&identity)?;
    let sides = identities.len();
    let scratch_bytes = measuring.scratch_bytes(&identities[0], SCRATCH_BYTES)?;
    let layout_ns = time_ns / LAYOUT_DIVISOR;
    let mut cells_ns = time_ns - time_ns / END_DIVISOR;
    let mut scratch = None;
    if let Some(bytes) = scratch_bytes {
        cells_ns -= layout_ns;
        scratch = Some(Scratch::of_size(bytes).filled_within(SCRATCH_BYTES_USEFUL_MIN, layout_ns));
    }
    let selected = selected_workloads(selection, time_ns, measuring)?;
    let workloads =
        share_among_sides(selected, sides, "layers", time_ns, cells_ns).map_err(Failure::Usage)?;
    let plan = Plan {
        scratch,
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
    let highest = match named.first() {
        Some(highest) if targets.len() < 2 => highest,
        _ => {
            let text = "the record measured the layers of one target; name one target";
            return Err(Failure::Usage(text.to_owned()).into());
        }
    };
    let identity = flags.probe(highest)?;
    let recorded_kind = record.targets.first().map(|target| target.kind);
    if recorded_kind != Some(identity.kind) {
        let text = "name a target of the kind that the record has (directory, file, device)";
        return Err(Failure::Usage(text.to_owned()).into());
    }
    let OpenedLayers { layers, identities } = open_several_layers(&identity)?;
    let mut plan = Plan {
        seed: flags.seed.unwrap_or(record.plan.seed),
        targets: identities.iter().map(|layer| layer.path.clone()).collect(),
        origin: Origin::new("check", crate::provenance::command_line()),
        method: METHOD_VERSION,
        ..record.plan.clone()
    };
    if let Some(planned) = plan.layers_mut() {
        *planned = layers;
    }
    measure(MeasuringJob::new(plan, identities, flags))?.exit()
}

/// Opens the layers of a target. Fails where fewer than two can be read.
fn open_several_layers(identity: &TargetIdentity) -> Result<OpenedLayers, Failure> {
    let opened = open_layers(identity);
    if opened.identities.len() < 2 {
        return Err(too_few_layers_error(&opened.layers, identity));
    }
    Ok(opened)
}

/// The error that there is nothing to compare, with what can be done.
fn too_few_layers_error(layers: &LayersPlan, identity: &TargetIdentity) -> Failure {
    let mut text = format!("{}: only one layer can be read", identity.path);
    let mut command = None;
    for layer in &layers.layers {
        if let Some(skipped) = &layer.skipped {
            text.push_str(&format!("\n  {}: {}", layer.name, skipped.why));
            if command.is_none() {
                command = skipped.command.as_ref();
            }
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

fn selected_workloads(
    selection: &SelectionFlags,
    time_ns: u64,
    measuring: &MeasuringFlags,
) -> Result<Vec<Workload>, Failure> {
    selection.check_names(&WORKLOADS)?;
    // Their times are replaced by those of the layers, and none of them writes.
    let mut workloads = standard_workloads(measuring, time_ns, 0, WORKLOAD_PARTS);
    workloads.retain(|workload| {
        let name = workload.name.as_str();
        WORKLOADS.contains(&name) && selection.excludes(name).is_none()
    });
    if workloads.is_empty() {
        return Err(Failure::Usage(format!(
            "nothing is left to measure; --layers measures {}",
            WORKLOADS.join(" and ")
        )));
    }
    Ok(workloads)
}

/// A layer before it is opened.
struct FoundLayer {
    /// The layer without its target.
    planned: PlannedLayer,
    /// `major:minor` of a device; `None` for a file.
    device: Option<String>,
}

/// The layers of a target.
struct OpenedLayers {
    /// All layers, the highest first.
    layers: LayersPlan,
    /// The identities of the layers that can be read, which the layers name by their index.
    identities: Vec<TargetIdentity>,
}

/// Finds the layers of a target, and opens each to see whether it can be read.
fn open_layers(identity: &TargetIdentity) -> OpenedLayers {
    let mut identities = Vec::new();
    let mut layers = Vec::new();
    for (index, found) in layer_stack(identity).into_iter().enumerate() {
        let mut layer = found.planned;
        let opened = match index {
            0 => Ok(identity.clone()),
            _ => open_layer(&layer.path, found.device.as_deref()),
        };
        match opened {
            Ok(opened) => {
                layer.target = Some(identities.len());
                identities.push(opened);
            }
            Err(why) => {
                let command = command_as_root(&identity.path);
                layer.skipped = Some(SkippedLayer { why, command });
            }
        }
        layers.push(layer);
    }
    OpenedLayers {
        layers: LayersPlan {
            layers,
            unresolved: identity.unresolved.clone(),
        },
        identities,
    }
}

/// The command that may read more layers; `None` for root, who can read no more.
fn command_as_root(path: &str) -> Option<String> {
    if rustix::process::geteuid().is_root() {
        return None;
    }
    let path = diskproof_model::shell::quoted(path);
    Some(format!("sudo diskproof check --layers {path}"))
}

/// Opens a layer for reading and returns its identity, or why it cannot be opened.
fn open_layer(path: &str, device: Option<&str>) -> Result<TargetIdentity, String> {
    let identity = probe(Path::new(path)).map_err(|error| error.to_string())?;
    if let Some(device) = device
        && device != identity.device
    {
        return Err(format!("{path} is the node of another device"));
    }
    let admission =
        admit(identity.clone(), Intent::Read).map_err(|refusal| refusal.reasons.join("; "))?;
    // Only to see whether it opens. It is closed again at once.
    OpenTarget::open(admission).map_err(|error| error.to_string())?;
    Ok(identity)
}

/// The layers of a target, the highest first. Where a layer spreads its blocks over several
/// devices, the first of the largest stands for all: smaller ones hold the metadata of a thin pool,
/// the changes of a snapshot, or a cache.
fn layer_stack(identity: &TargetIdentity) -> Vec<FoundLayer> {
    let mut stack = Vec::new();
    if identity.kind != TargetKind::BlockDevice {
        let filesystem = identity.filesystem.as_ref();
        stack.push(file_layer("file", &identity.path, filesystem));
    }
    let layers = &identity.layers;
    let mut candidates = highest_layers(layers);
    while let Some(layer) = first_of_largest(&candidates) {
        // A circle would be a fault of sysfs. Without one there are the target's file, each layer,
        // and a backing file below each.
        if stack.len() > layers.len() * 2 + 1 {
            break;
        }
        stack.push(device_layer(identity, layer, candidates.len()));
        if let Some(path) = &layer.backing_file
            && !path.starts_with("/dev/")
        {
            stack.push(backing_file_layer(path));
        }
        candidates = layers
            .iter()
            .filter(|lower| layer.below.contains(&lower.name))
            .collect();
    }
    stack
}

/// The layers that are below no other.
pub(crate) fn highest_layers(layers: &[Layer]) -> Vec<&Layer> {
    let mut lower_names = BTreeSet::new();
    for layer in layers {
        lower_names.extend(&layer.below);
    }
    layers
        .iter()
        .filter(|layer| !lower_names.contains(&layer.name))
        .collect()
}

fn first_of_largest<'a>(layers: &[&'a Layer]) -> Option<&'a Layer> {
    // Of several, `max_by_key` takes the last.
    layers
        .iter()
        .rev()
        .copied()
        .max_by_key(|layer| layer.size_bytes)
}

/// The file in which a loop device keeps its blocks.
fn backing_file_layer(path: &str) -> FoundLayer {
    let filesystem = match probe(Path::new(path)) {
        Ok(identity) => identity.filesystem,
        Err(_) => None,
    };
    let name = path.rsplit('/').next().unwrap_or(path);
    file_layer(name, path, filesystem.as_ref())
}

fn file_layer(name: &str, path: &str, filesystem: Option<&Filesystem>) -> FoundLayer {
    let filesystem_kind = match filesystem {
        Some(filesystem) => &filesystem.kind,
        None => "a filesystem",
    };
    FoundLayer {
        planned: PlannedLayer {
            name: format!("{name} on {filesystem_kind}"),
            path: path.to_owned(),
            device_kind: None,
            target: None,
            skipped: None,
            one_of: 1,
        },
        device: None,
    }
}

/// The layer of a device, one of `one_of` devices over which the layer above spreads its blocks.
fn device_layer(identity: &TargetIdentity, layer: &Layer, one_of: usize) -> FoundLayer {
    let is_target = identity.kind == TargetKind::BlockDevice && identity.device == layer.device;
    let path = if is_target {
        identity.path.clone()
    } else {
        format!("/dev/{}", layer.name.replace('!', "/"))
    };
    let name = match &layer.model {
        Some(model) if layer.kind == LayerKind::DeviceMapper => {
            format!("{} ({model})", layer.name)
        }
        _ => layer.name.clone(),
    };
    FoundLayer {
        planned: PlannedLayer {
            name,
            path,
            device_kind: Some(layer.kind),
            target: None,
            skipped: None,
            one_of: u32::try_from(one_of).unwrap_or(u32::MAX),
        },
        device: Some(layer.device.clone()),
    }
}

#[cfg(test)]
mod tests;
