//! A target in words: its disks, the layers above them, what was tested, the machine.

use crate::labels;
use crate::text::{glue, joined, list};
use diskproof_model::files::FILES_DIRECTORY;
use diskproof_model::plan::Plan;
use diskproof_model::target::{HostFacts, Layer, LayerKind, TargetIdentity, TargetKind};
use diskproof_model::units::{counted, format_bytes};

/// A label and a value; `None` if the value is unknown.
pub(crate) type LabeledValue = (&'static str, Option<String>);

/// A target in a few lines, from the disks up to the file.
pub(crate) fn summary(target: &TargetIdentity, plan: &Plan) -> Vec<LabeledValue> {
    let disks = target.disks().map(|disk| ("disk", Some(disk_text(disk))));
    let mut lines: Vec<LabeledValue> = disks.collect();
    let unknown = target.unresolved.iter();
    lines.extend(unknown.map(|why| ("disk", Some(format!("unknown: {why}")))));
    lines.push(("layers", layers_text(target)));
    lines.extend(target.filesystem.iter().map(|fs| {
        let (options, free) = (fs.options.join(","), format_bytes(fs.free_bytes));
        let free = glue(&format!("{free} free"));
        let (kind, source, mount_point) = (&fs.kind, &fs.source, &fs.mount_point);
        let text = format!("{kind} on {source} mounted at {mount_point} ({options}), {free}");
        ("on", Some(text))
    }));
    lines.push(("test", Some(tested_text(target, plan))));
    lines
}

/// The devices on top of others.
pub(crate) fn layers_text(target: &TargetIdentity) -> Option<String> {
    let above = target.layers.iter().filter(|layer| !layer.below.is_empty());
    let texts = above.map(|layer| {
        let kind = labels::layer_kind(layer.kind);
        format!("{} ({kind}) on {}", layer.name, layer.below.join(", "))
    });
    joined(texts, "; ")
}

/// The scratch file, file or device that the operations use.
pub(crate) fn tested_text(target: &TargetIdentity, plan: &Plan) -> String {
    let (path, size) = (&target.path, glue(&format_bytes(target.size_bytes)));
    match (target.kind, plan.scratch_bytes) {
        (TargetKind::Directory, _) if plan.files.is_some() => {
            format!("files in {path}/{FILES_DIRECTORY}")
        }
        (TargetKind::Directory, Some(scratch)) => {
            format!("scratch file of {} in {path}", glue(&format_bytes(scratch)))
        }
        (TargetKind::Directory, None) => format!("scratch file in {path}"),
        (TargetKind::File, _) => format!("the file {path} itself, {size}"),
        (TargetKind::BlockDevice, _) => format!("the device {path} itself, {size}"),
    }
}

/// A disk in short: name, model or bus, size.
pub(crate) fn disk_name(disk: &Layer) -> String {
    let mut facts = vec![disk.name.clone()];
    facts.extend(model(disk).or_else(|| disk.link.as_ref().map(|link| link.bus.clone())));
    facts.push(format_bytes(disk.size_bytes));
    list(facts)
}

/// A disk with the facts that its vendor asks for.
pub(crate) fn disk_text(disk: &Layer) -> String {
    let mut facts = vec![disk.name.clone()];
    if disk.kind != LayerKind::Disk {
        facts.push(labels::layer_kind(disk.kind).to_owned());
    }
    facts.extend(disk.link.iter().map(|link| match &link.speed {
        Some(speed) => format!("{} {speed}", link.bus),
        None => link.bus.clone(),
    }));
    facts.push(format_bytes(disk.size_bytes));
    let named =
        |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name} {value}"));
    facts.extend(named("model", &model(disk)));
    facts.push(named("serial", &disk.serial).unwrap_or_else(|| "serial unknown".to_owned()));
    facts.extend(named("firmware", &disk.firmware));
    facts.extend(named("backed by", &disk.backing_file));
    facts.extend(labels::rotation(disk).map(str::to_owned));
    facts.extend(named("scheduler", &disk.scheduler));
    facts.push(format!(
        "write cache: {}{}",
        labels::write_cache(disk.write_cache),
        labels::reported_write_cache(disk)
    ));
    if disk.read_only {
        facts.push("read-only".to_owned());
    }
    list(facts)
}

/// Vendor and model, as the device reports them.
pub(crate) fn model(disk: &Layer) -> Option<String> {
    match (&disk.vendor, &disk.model) {
        (Some(vendor), Some(model)) if !model.starts_with(vendor.as_str()) => {
            Some(format!("{vendor} {model}"))
        }
        (_, Some(model)) => Some(model.clone()),
        (vendor, None) => vendor.clone(),
    }
}

/// The machine.
pub(crate) fn host_text(host: &HostFacts) -> String {
    let mut facts = vec![
        host.name.clone(),
        format!("Linux {}", host.kernel),
        counted(u64::from(host.cpus), "CPU"),
        format_bytes(host.memory_bytes),
    ];
    facts.extend(
        host.hypervisor
            .iter()
            .map(|name| format!("virtual ({name})")),
    );
    facts.extend(
        host.container
            .iter()
            .map(|name| format!("in a container ({name})")),
    );
    facts.extend(host.load_average.iter().map(|load| format!("load {load}")));
    list(facts)
}
