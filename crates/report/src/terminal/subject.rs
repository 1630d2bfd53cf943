//! What was measured, in a few lines: the disk and its health, the layers and the filesystem above
//! it, the test's own file, the machine.

use super::health::health_text;
use super::words;
use crate::page::{Ink, Page};
use crate::text::{glue, list};
use diskproof_model::health::DiskHealth;
use diskproof_model::plan::Plan;
use diskproof_model::target::{HostFacts, Layer, TargetIdentity, TargetKind};
use diskproof_model::units::{counted, format_bytes};
use std::io;

/// Column at which the text beside a label begins.
pub(super) const INDENT: usize = 9;

/// A label and its text.
pub(super) fn fact(page: &mut Page<'_>, label: &str, text: &str) -> io::Result<()> {
    page.entry((Ink::Faint, label), INDENT, (Ink::Plain, text))
}

/// The lines of one target, from the disks up to the file.
pub(super) fn write_target(
    page: &mut Page<'_>,
    target: &TargetIdentity,
    plan: &Plan,
) -> io::Result<()> {
    for disk in target.disks() {
        fact(page, "disk", &disk_text(disk))?;
    }
    if let Some(why) = &target.unresolved {
        fact(page, "disk", &format!("unknown: {why}"))?;
    }
    let above: Vec<String> = target
        .layers
        .iter()
        .filter(|layer| !layer.below.is_empty())
        .map(stacked_text)
        .collect();
    if !above.is_empty() {
        fact(page, "layers", &above.join("; "))?;
    }
    if let Some(fs) = &target.filesystem {
        let options = fs.options.join(",");
        let text = format!(
            "{} on {} mounted at {} ({options}), {}",
            fs.kind,
            fs.source,
            fs.mount_point,
            glue(&free_text(fs.free_bytes))
        );
        fact(page, "on", &text)?;
    }
    fact(page, "test", &tested_text(target, plan.scratch_bytes))
}

/// A line for each disk of the target that was asked of its health.
pub(super) fn write_health(
    page: &mut Page<'_>,
    target: &TargetIdentity,
    health: &[DiskHealth],
) -> io::Result<()> {
    let asked = health
        .iter()
        .filter(|health| target.disks().any(|disk| disk.name == health.disk));
    asked
        .map(health_text)
        .try_for_each(|text| fact(page, "health", &text))
}

fn free_text(bytes: u64) -> String {
    format!("{} free", format_bytes(bytes))
}

/// What the operations go to.
pub(crate) fn tested_text(target: &TargetIdentity, scratch_bytes: Option<u64>) -> String {
    let size = glue(&format_bytes(target.size_bytes));
    match (target.kind, scratch_bytes) {
        (TargetKind::Directory, Some(scratch)) => format!(
            "scratch file of {} in {}",
            glue(&format_bytes(scratch)),
            target.path
        ),
        (TargetKind::Directory, None) => format!("scratch file in {}", target.path),
        (TargetKind::File, _) => format!("the file {} itself, {size}", target.path),
        (TargetKind::BlockDevice, _) => format!("the device {} itself, {size}", target.path),
    }
}

/// A disk: what a vendor would want to know first.
pub(crate) fn disk_text(disk: &Layer) -> String {
    let mut facts = vec![disk.name.clone()];
    if disk.kind != diskproof_model::target::LayerKind::Disk {
        facts.push(words::layer_kind(disk.kind).to_owned());
    }
    if let Some(link) = &disk.link {
        facts.push(
            link.speed
                .as_ref()
                .map_or(link.bus.clone(), |speed| format!("{} {speed}", link.bus)),
        );
    }
    facts.push(format_bytes(disk.size_bytes));
    let named =
        |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name} {value}"));
    facts.extend(named("model", &model(disk)));
    facts.push(named("serial", &disk.serial).unwrap_or_else(|| "serial unknown".to_owned()));
    facts.extend(named("firmware", &disk.firmware));
    facts.extend(named("backed by", &disk.backing_file));
    facts.extend(words::rotation(disk).map(str::to_owned));
    facts.extend(named("scheduler", &disk.scheduler));
    facts.push(format!(
        "write cache: {}",
        words::write_cache(disk.write_cache)
    ));
    if disk.read_only {
        facts.push("read-only".to_owned());
    }
    list(facts)
}

/// Vendor and model, as the device says them.
pub(crate) fn model(disk: &Layer) -> Option<String> {
    match (&disk.vendor, &disk.model) {
        (Some(vendor), Some(model)) if !model.starts_with(vendor.as_str()) => {
            Some(format!("{vendor} {model}"))
        }
        (_, Some(model)) => Some(model.clone()),
        (vendor, None) => vendor.clone(),
    }
}

/// A device that stands on others.
pub(crate) fn stacked_text(layer: &Layer) -> String {
    format!(
        "{} ({}) on {}",
        layer.name,
        words::layer_kind(layer.kind),
        layer.below.join(", ")
    )
}

/// The machine.
pub(crate) fn host_text(host: &HostFacts) -> String {
    let cpus = counted(u64::from(host.cpus), "CPU");
    let mut facts = vec![
        host.name.clone(),
        format!("Linux {}", host.kernel),
        cpus,
        format_bytes(host.memory_bytes),
    ];
    facts.extend(
        host.hypervisor
            .as_ref()
            .map(|name| format!("virtual ({name})")),
    );
    facts.extend(
        host.container
            .as_ref()
            .map(|name| format!("in a container ({name})")),
    );
    facts.extend(
        host.load_average
            .as_ref()
            .map(|load| format!("load {load}")),
    );
    list(facts)
}
