//! A target and its machine in words. A page of a run has them in a few lines; `info` and the page
//! for a browser list every fact in sections.

use crate::labels;
use crate::text::{glue, joined, list};
use diskproof_model::block::Block;
use diskproof_model::files::FILES_DIRECTORY;
use diskproof_model::health::DiskHealth;
use diskproof_model::plan::Plan;
use diskproof_model::target::{
    Filesystem, HostFacts, Layer, LayerKind, Link, TargetIdentity, TargetKind, WriteCache,
};
use diskproof_model::units::{counted, format_bytes, format_throughput};

/// A label and a value; `None` if the value is unknown.
pub(crate) type LabeledValue = (&'static str, Option<String>);

/// Facts on the target with this index in a few lines, from the disks up to the file.
pub(crate) fn summary_facts(
    index: usize,
    target: &TargetIdentity,
    plan: &Plan,
) -> Vec<LabeledValue> {
    let mut lines: Vec<LabeledValue> = Vec::new();
    for disk in target.disks() {
        lines.push(("disk", Some(disk_text(disk))));
    }
    lines.push(("disk", unresolved_text(target)));
    lines.push(("layers", layers_text(target)));
    lines.push(("on", target.filesystem.as_ref().map(mount_text)));
    lines.push(("test", Some(tested_text(index, target, plan))));
    lines
}

/// Says why the disks of a target are not known; `None` where they are.
fn unresolved_text(target: &TargetIdentity) -> Option<String> {
    let why = target.unresolved.as_ref()?;
    Some(format!("unknown: {why}"))
}

fn mount_text(filesystem: &Filesystem) -> String {
    let free = format_bytes(filesystem.free_bytes);
    format!(
        "{} on {} mounted at {} ({}), {}",
        filesystem.kind,
        filesystem.source,
        filesystem.mount_point,
        filesystem.options.join(","),
        glue(&format!("{free} free"))
    )
}

/// Names the devices that lie on others: `md0 (software RAID) on sda, sdb`. `None` without any.
pub(crate) fn layers_text(target: &TargetIdentity) -> Option<String> {
    let mut texts = Vec::new();
    for layer in &target.layers {
        if !layer.below.is_empty() {
            let kind = labels::layer_kind(layer.kind);
            let below = layer.below.join(", ");
            texts.push(format!("{} ({kind}) on {below}", layer.name));
        }
    }
    joined(texts, "; ")
}

/// Names the scratch file, file or device that the operations on the target with this index use.
pub(crate) fn tested_text(index: usize, target: &TargetIdentity, plan: &Plan) -> String {
    let path = &target.path;
    let size = glue(&format_bytes(target.size_bytes));
    match (target.kind, plan.scratch_bytes()) {
        (TargetKind::Directory, _) if plan.files().is_some() => {
            format!("files in {path}/{FILES_DIRECTORY}")
        }
        (TargetKind::Directory, Some(bytes)) => {
            let size = glue(&format_bytes(bytes));
            match plan.kept_file(index, path) {
                Some(file) => format!("the new file {file}, {size}"),
                None => format!("scratch file of {size} in {path}"),
            }
        }
        (TargetKind::Directory, None) => format!("scratch file in {path}"),
        (TargetKind::File, _) => format!("the file {path} itself, {size}"),
        (TargetKind::BlockDevice, _) => format!("the device {path} itself, {size}"),
    }
}

/// A disk in short: name, model or bus, size.
pub(crate) fn disk_name(disk: &Layer) -> String {
    let mut facts = vec![disk.name.clone()];
    if let Some(model) = model_text(disk) {
        facts.push(model);
    } else if let Some(link) = &disk.link {
        facts.push(link.bus.clone());
    }
    facts.push(format_bytes(disk.size_bytes));
    list(facts)
}

/// A disk with the facts that its vendor asks for.
pub(crate) fn disk_text(disk: &Layer) -> String {
    let mut facts = vec![disk.name.clone()];
    if disk.kind != LayerKind::Disk {
        facts.push(labels::layer_kind(disk.kind).to_owned());
    }
    if let Some(link) = &disk.link {
        facts.push(match &link.speed {
            Some(speed) => format!("{} {speed}", link.bus),
            None => link.bus.clone(),
        });
    }
    facts.push(format_bytes(disk.size_bytes));
    facts.extend(named_text("model", model_text(disk).as_deref()));
    match &disk.serial {
        Some(serial) => facts.push(format!("serial {serial}")),
        None => facts.push("serial unknown".to_owned()),
    }
    facts.extend(named_text("firmware", disk.firmware.as_deref()));
    facts.extend(named_text("backed by", disk.backing_file.as_deref()));
    facts.extend(labels::rotation(disk).map(str::to_owned));
    facts.extend(named_text("scheduler", disk.scheduler.as_deref()));
    let cache = labels::write_cache(disk.write_cache);
    let reported = labels::reported_write_cache(disk);
    facts.push(format!("write cache: {cache}{reported}"));
    if disk.read_only {
        facts.push("read-only".to_owned());
    }
    list(facts)
}

/// `scheduler none`: a value behind its name; `None` for an unknown one.
fn named_text(name: &str, value: Option<&str>) -> Option<String> {
    Some(format!("{name} {}", value?))
}

/// Vendor and model, as the device reports them.
pub(crate) fn model_text(disk: &Layer) -> Option<String> {
    match (&disk.vendor, &disk.model) {
        (Some(vendor), Some(model)) if !model.starts_with(vendor.as_str()) => {
            Some(format!("{vendor} {model}"))
        }
        (_, Some(model)) => Some(model.clone()),
        (vendor, None) => vendor.clone(),
    }
}

/// The size of the memory; `None` where /proc did not show it, which a record keeps as 0.
fn memory_text(host: &HostFacts) -> Option<String> {
    match host.memory_bytes {
        0 => None,
        bytes => Some(format_bytes(bytes)),
    }
}

/// Describes the machine in one line.
pub(crate) fn host_text(host: &HostFacts) -> String {
    let mut facts = vec![
        host.name.clone(),
        format!("Linux {}", host.kernel),
        counted(u64::from(host.cpus), "CPU"),
    ];
    facts.extend(memory_text(host));
    if let Some(hypervisor) = &host.hypervisor {
        facts.push(format!("virtual ({hypervisor})"));
    }
    if let Some(container) = &host.container {
        facts.push(format!("in a container ({container})"));
    }
    if let Some(load) = &host.load_average {
        facts.push(format!("load {load}"));
    }
    list(facts)
}

fn fact_section(title: &str, facts: impl IntoIterator<Item = LabeledValue>) -> Vec<Block> {
    let mut blocks = vec![Block::Heading(title.to_owned())];
    blocks.extend(Block::facts(facts));
    blocks
}

/// Lists every fact on the target, its filesystem, its layers and their health: a section with a
/// heading for each of them, the target first.
pub(crate) fn identity_sections(
    identity: &TargetIdentity,
    health: &[&DiskHealth],
) -> Vec<Vec<Block>> {
    let mut sections = vec![target_section(identity)];
    sections.extend(identity.filesystem.iter().map(filesystem_section));
    sections.extend(identity.layers.iter().map(layer_section));
    for disk in health {
        let title = format!("health of {}", disk.disk);
        sections.push(fact_section(&title, health_facts(disk)));
    }
    sections
}

/// Lists every fact on the machine.
pub(crate) fn host_section(host: &HostFacts) -> Vec<Block> {
    let user = match host.uid {
        0 => "root".to_owned(),
        uid => format!("uid {uid}"),
    };
    let memory_text = memory_text(host).unwrap_or_else(|| "unknown".to_owned());
    let facts = [
        ("name", Some(host.name.clone())),
        ("system", host.os.clone()),
        ("kernel", Some(format!("Linux {}", host.kernel))),
        ("processor", host.cpu.clone()),
        ("CPUs usable", Some(host.cpus.to_string())),
        ("CPU governor", host.governor.clone()),
        ("memory", Some(memory_text)),
        ("virtual machine", host.hypervisor.clone()),
        ("container", host.container.clone()),
        ("load average", host.load_average.clone()),
        ("running as", Some(user)),
    ];
    fact_section("host", facts)
}

fn target_section(identity: &TargetIdentity) -> Vec<Block> {
    let size = match identity.kind {
        TargetKind::Directory => "filesystem size",
        TargetKind::File | TargetKind::BlockDevice => "size",
    };
    let facts = [
        ("kind", Some(labels::target_kind(identity.kind).to_owned())),
        (size, Some(exact_bytes_text(identity.size_bytes))),
        ("free", identity.free_bytes.map(format_bytes)),
        ("device", Some(identity.device.clone())),
        ("inode", Some(identity.inode.to_string())),
        ("disks", unresolved_text(identity)),
    ];
    fact_section(&format!("target {}", identity.path), facts)
}

fn filesystem_section(filesystem: &Filesystem) -> Vec<Block> {
    let facts = [
        ("type", Some(filesystem.kind.clone())),
        ("source", Some(filesystem.source.clone())),
        ("options", Some(filesystem.options.join(", "))),
        ("size", Some(format_bytes(filesystem.size_bytes))),
        ("free", Some(format_bytes(filesystem.free_bytes))),
    ];
    fact_section(&format!("filesystem {}", filesystem.mount_point), facts)
}

fn layer_section(layer: &Layer) -> Vec<Block> {
    let mut below = None;
    if !layer.below.is_empty() {
        below = Some(layer.below.join(", "));
    }
    let mut read_only = None;
    if layer.read_only {
        read_only = Some("no: the device is read-only".to_owned());
    }
    let serial = match &layer.serial {
        Some(serial) => Some(serial.clone()),
        None => unknown_of_disk(layer),
    };
    let requests = layer.queue_requests.map(u64::from);
    let identity = [
        ("device", Some(layer.device.clone())),
        ("on top of", below),
        ("size", Some(exact_bytes_text(layer.size_bytes))),
        ("vendor", layer.vendor.clone()),
        ("model", layer.model.clone()),
        ("serial", serial),
        ("firmware", layer.firmware.clone()),
    ];
    let properties = [
        ("logical block", block_text(layer.logical_block_bytes)),
        ("physical block", block_text(layer.physical_block_bytes)),
        ("medium", medium_text(layer)),
        ("write cache", write_cache_text(layer)),
        ("scheduler", layer.scheduler.clone()),
        ("queue", requests.map(|n| counted(n, "request"))),
        ("largest request", layer.request_bytes_max.map(format_bytes)),
        ("read-ahead", layer.read_ahead_bytes.map(format_bytes)),
        ("discard", discard_text(layer)),
        ("backed by", layer.backing_file.clone()),
        ("backing file", layer.backing_direct.map(backing_text)),
        ("writable", read_only),
    ];
    let title = format!("{} {}", labels::layer_kind(layer.kind), layer.name);
    let mut facts = Vec::from(identity);
    if let Some(link) = &layer.link {
        facts.extend(link_facts(link));
    }
    facts.extend(properties);
    fact_section(&title, facts)
}

fn link_facts(link: &Link) -> [LabeledValue; 4] {
    let carries = link
        .bytes_per_second_max
        .map(|rate| format!("at most {}", format_throughput(rate as f64)));
    [
        ("bus", Some(link.bus.clone())),
        ("link speed", link.speed.clone()),
        ("fastest possible", link.speed_max.clone()),
        ("link carries", carries),
    ]
}

fn block_text(bytes: Option<u32>) -> Option<String> {
    Some(format_bytes(u64::from(bytes?)))
}

/// Says whether the disk rotates. `None` for a device that lies on others, which only repeats what
/// they report.
fn medium_text(layer: &Layer) -> Option<String> {
    let is_lowest = layer.below.is_empty() && layer.backing_file.is_none();
    if layer.rotational.is_none() || !is_lowest {
        return None;
    }
    let unknown = "unknown: the kernel reports every virtio disk as rotating";
    let text = labels::rotation(layer).unwrap_or(unknown);
    Some(text.to_owned())
}

fn discard_text(layer: &Layer) -> Option<String> {
    if !layer.discard? {
        return Some("not supported".to_owned());
    }
    match layer.discard_granularity_bytes {
        Some(bytes) => Some(format!("supported, in units of {}", format_bytes(bytes))),
        None => Some("supported".to_owned()),
    }
}

/// Says how a loop device reads and writes its backing file.
fn backing_text(is_direct: bool) -> String {
    if is_direct {
        "direct (O_DIRECT)".to_owned()
    } else {
        "through the page cache".to_owned()
    }
}

/// `unknown` for a device of a kind that has a serial number and a write cache: their absence
/// deserves a line. `None` for other kinds.
fn unknown_of_disk(layer: &Layer) -> Option<String> {
    match layer.kind {
        LayerKind::Disk | LayerKind::Network => Some("unknown".to_owned()),
        LayerKind::Partition
        | LayerKind::DeviceMapper
        | LayerKind::Md
        | LayerKind::Loop
        | LayerKind::Zram
        | LayerKind::RamDisk => None,
    }
}

/// Says how the kernel treats the write cache, and what that means for a commit.
fn write_cache_text(layer: &Layer) -> Option<String> {
    let text = match layer.write_cache {
        Some(WriteCache::WriteBack) => "write back: data is safe only after a flush".to_owned(),
        Some(WriteCache::WriteThrough) => {
            "write through: no cache, or one that needs no flush".to_owned()
        }
        None => unknown_of_disk(layer)?,
    };
    Some(text + labels::reported_write_cache(layer))
}

/// `1.8 TiB (2000398934016 bytes)`: exact, for comparison with a data sheet.
fn exact_bytes_text(bytes: u64) -> String {
    format!("{} ({bytes} bytes)", format_bytes(bytes))
}

/// Hours of an average year.
const YEAR_HOURS: f64 = 8766.0;

/// Every reported health value of one disk.
pub(crate) fn health_facts(disk: &DiskHealth) -> Vec<LabeledValue> {
    let wear = disk.wear_percent.map(|percent| format!("{percent} %"));
    vec![
        ("not available", disk.unavailable.clone()),
        ("model", disk.model.clone()),
        ("serial", disk.serial.clone()),
        ("firmware", disk.firmware.clone()),
        ("protocol", disk.protocol.clone()),
        ("verdict", health_verdict(disk).map(str::to_owned)),
        ("alarms", joined(disk.alarms.clone(), "; ")),
        ("temperature", temperature_text(disk)),
        ("endurance used", wear),
        ("spare blocks left", spare_text(disk)),
        ("reallocated sectors", count_text(disk.reallocated_sectors)),
        ("pending sectors", count_text(disk.pending_sectors)),
        (
            "uncorrectable sectors",
            count_text(disk.uncorrectable_sectors),
        ),
        ("media errors", count_text(disk.media_errors)),
        ("link errors", count_text(disk.link_errors)),
        ("power-on time", disk.power_on_hours.map(power_on_text)),
        (
            "power-on time in FARM",
            disk.farm_power_on_hours.map(power_on_text),
        ),
        ("unsafe shutdowns", count_text(disk.unsafe_shutdowns)),
        ("written in total", disk.written_bytes.map(format_bytes)),
        ("last self-test", self_test_text(disk)),
        ("rotation", disk.rotation_rpm.map(rotation_text)),
        ("source", disk.source.clone()),
    ]
}

fn count_text(count: Option<u64>) -> Option<String> {
    Some(count?.to_string())
}

fn rotation_text(rpm: u32) -> String {
    match rpm {
        0 => "none".to_owned(),
        rpm => format!("{rpm} rpm"),
    }
}

/// Describes the health of one disk in a line, without counters that are zero.
pub(crate) fn health_text(disk: &DiskHealth) -> String {
    let name = &disk.disk;
    if let Some(why) = &disk.unavailable {
        return format!("{name} unknown: {why}");
    }
    let mut facts = vec![match health_verdict(disk) {
        Some(verdict) => format!("{name} {verdict}"),
        None => name.clone(),
    }];
    facts.extend(temperature_text(disk));
    if let Some(percent) = disk.wear_percent {
        facts.push(format!("{percent} % of endurance used"));
    }
    for (count, noun) in [
        (disk.reallocated_sectors, "reallocated sectors"),
        (disk.pending_sectors, "pending sectors"),
        (disk.uncorrectable_sectors, "uncorrectable sectors"),
        (disk.media_errors, "media errors"),
        (disk.link_errors, "link errors"),
    ] {
        if let Some(count @ 1..) = count {
            facts.push(format!("{count} {noun}"));
        }
    }
    facts.extend(disk.power_on_hours.map(power_on_text));
    if let Some(bytes) = disk.written_bytes {
        facts.push(format!("{} written", format_bytes(bytes)));
    }
    list(facts)
}

fn health_verdict(disk: &DiskHealth) -> Option<&'static str> {
    if disk.passed? {
        Some("passed")
    } else {
        Some("FAILING")
    }
}

fn temperature_text(disk: &DiskHealth) -> Option<String> {
    let degrees = disk.temperature_celsius?;
    match disk.temperature_limit_celsius {
        Some(limit) => Some(format!("{degrees} °C (limit {limit} °C)")),
        None => Some(format!("{degrees} °C")),
    }
}

fn spare_text(disk: &DiskHealth) -> Option<String> {
    let left = disk.spare_percent?;
    match disk.spare_threshold_percent {
        Some(threshold) => Some(format!("{left} % (alarm at {threshold} %)")),
        None => Some(format!("{left} %")),
    }
}

fn self_test_text(disk: &DiskHealth) -> Option<String> {
    let test = disk.self_test.as_ref()?;
    match test.hours {
        Some(hours) => Some(format!("{}, at {hours} h", test.status)),
        None => Some(test.status.clone()),
    }
}

/// `65592 h (7.5 years)`
fn power_on_text(hours: u64) -> String {
    let years = hours as f64 / YEAR_HOURS;
    if years < 1.0 {
        format!("{hours} h")
    } else {
        format!("{hours} h ({years:.1} years)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::assert_shows;

    fn disk() -> DiskHealth {
        DiskHealth {
            disk: "nvme0n1".to_owned(),
            passed: Some(true),
            temperature_celsius: Some(38),
            temperature_limit_celsius: Some(70),
            wear_percent: Some(3),
            power_on_hours: Some(65_592),
            written_bytes: Some(3 << 40),
            media_errors: Some(0),
            ..DiskHealth::default()
        }
    }

    fn plain_text(disk: &DiskHealth) -> String {
        health_text(disk).replace('\u{a0}', " ")
    }

    #[test]
    fn line_lists_known_values_without_zeros() {
        let parts = [
            "nvme0n1 passed",
            "38 °C",
            "70 °C",
            "3 %",
            "65592 h (7.5 years)",
            "3 TiB",
        ];
        assert_shows(&plain_text(&disk()), &parts);
        assert_eq!(plain_text(&disk()).matches(", ").count(), 4);
        let failing = DiskHealth {
            disk: "sda".to_owned(),
            passed: Some(false),
            pending_sectors: Some(8),
            power_on_hours: Some(40),
            ..DiskHealth::default()
        };
        assert_eq!(plain_text(&failing), "sda FAILING, 8 pending sectors, 40 h");
        let unknown = DiskHealth::unknown("vda", "a virtual disk");
        assert_shows(&plain_text(&unknown), &["vda unknown", "a virtual disk"]);
    }

    #[test]
    fn facts_list_reported_zeros() {
        let facts = health_facts(&disk());
        assert!(facts.contains(&("media errors", Some("0".to_owned()))));
        assert!(facts.contains(&("link errors", None)));
    }
}
