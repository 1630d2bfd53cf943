//! A target and its machine, in lines and as lists of facts: its disks and their health, the layers
//! above them, what was tested.

use crate::labels;
use crate::text::{glue, joined, list};
use diskproof_model::block::Block;
use diskproof_model::files::FILES_DIRECTORY;
use diskproof_model::health::DiskHealth;
use diskproof_model::plan::Plan;
use diskproof_model::target::{
    Filesystem, HostFacts, Layer, LayerKind, TargetIdentity, TargetKind, WriteCache,
};
use diskproof_model::units::{counted, format_bytes, format_throughput};

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
    match (target.kind, plan.scratch_bytes()) {
        (TargetKind::Directory, _) if plan.files().is_some() => {
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
    let is_other = disk.kind != LayerKind::Disk;
    facts.extend(is_other.then(|| labels::layer_kind(disk.kind).to_owned()));
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
    let cache = labels::write_cache(disk.write_cache);
    let reported = labels::reported_write_cache(disk);
    facts.push(format!("write cache: {cache}{reported}"));
    facts.extend(disk.read_only.then(|| "read-only".to_owned()));
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

/// The size of the memory; `None` where /proc did not show it, which a record keeps as 0.
fn memory(host: &HostFacts) -> Option<String> {
    match host.memory_bytes {
        0 => None,
        bytes => Some(format_bytes(bytes)),
    }
}

/// The machine.
pub(crate) fn host_text(host: &HostFacts) -> String {
    let mut facts = vec![
        host.name.clone(),
        format!("Linux {}", host.kernel),
        counted(u64::from(host.cpus), "CPU"),
    ];
    facts.extend(memory(host));
    let within = |what: &str, name: &Option<String>| Some(format!("{what} ({})", name.as_ref()?));
    facts.extend(within("virtual", &host.hypervisor));
    facts.extend(within("in a container", &host.container));
    facts.extend(host.load_average.iter().map(|load| format!("load {load}")));
    list(facts)
}

fn section(title: &str, facts: impl IntoIterator<Item = LabeledValue>) -> Vec<Block> {
    let mut blocks = vec![Block::Heading(title.to_owned())];
    blocks.extend(Block::facts(facts));
    blocks
}

/// The target, its filesystem, its layers and their health; each begins with a heading.
pub(crate) fn sections(identity: &TargetIdentity, health: &[&DiskHealth]) -> Vec<Vec<Block>> {
    let mut sections = vec![target_section(identity)];
    sections.extend(identity.filesystem.iter().map(filesystem_section));
    sections.extend(identity.layers.iter().map(layer_section));
    sections.extend(health.iter().map(|disk| {
        let title = format!("health of {}", disk.disk);
        section(&title, health_facts(disk))
    }));
    sections
}

/// The machine.
pub(crate) fn host(host: &HostFacts) -> Vec<Block> {
    let user = match host.uid {
        0 => "root".to_owned(),
        uid => format!("uid {uid}"),
    };
    let facts = [
        ("name", Some(host.name.clone())),
        ("system", host.os.clone()),
        ("kernel", Some(format!("Linux {}", host.kernel))),
        ("processor", host.cpu.clone()),
        ("CPUs usable", Some(host.cpus.to_string())),
        ("CPU governor", host.governor.clone()),
        (
            "memory",
            Some(memory(host).unwrap_or_else(|| "unknown".to_owned())),
        ),
        ("virtual machine", host.hypervisor.clone()),
        ("container", host.container.clone()),
        ("load average", host.load_average.clone()),
        ("running as", Some(user)),
    ];
    section("host", facts)
}

/// The target.
fn target_section(identity: &TargetIdentity) -> Vec<Block> {
    let size = match identity.kind {
        TargetKind::Directory => "filesystem size",
        TargetKind::File | TargetKind::BlockDevice => "size",
    };
    let unknown = identity.unresolved.as_ref();
    let facts = [
        ("kind", Some(labels::target_kind(identity.kind).to_owned())),
        (size, Some(exact_bytes(identity.size_bytes))),
        ("free", identity.free_bytes.map(format_bytes)),
        ("device", Some(identity.device.clone())),
        ("inode", Some(identity.inode.to_string())),
        ("disks", unknown.map(|why| format!("unknown: {why}"))),
    ];
    section(&format!("target {}", identity.path), facts)
}

/// The filesystem below a directory or file.
fn filesystem_section(filesystem: &Filesystem) -> Vec<Block> {
    let facts = [
        ("type", Some(filesystem.kind.clone())),
        ("source", Some(filesystem.source.clone())),
        ("options", Some(filesystem.options.join(", "))),
        ("size", Some(format_bytes(filesystem.size_bytes))),
        ("free", Some(format_bytes(filesystem.free_bytes))),
    ];
    section(&format!("filesystem {}", filesystem.mount_point), facts)
}

/// A block device.
fn layer_section(layer: &Layer) -> Vec<Block> {
    let below = layer.below.join(", ");
    let link = layer.link.as_ref();
    let speed_max = link.and_then(|link| link.speed_max.clone());
    let carries = link.and_then(|link| link.bytes_per_second_max);
    let carries = carries.map(|rate| format!("at most {}", format_throughput(rate as f64)));
    let block = |bytes: Option<u32>| bytes.map(|bytes| format_bytes(u64::from(bytes)));
    // A device that lies on others repeats what they report.
    let is_lowest = layer.below.is_empty() && layer.backing_file.is_none();
    let medium = layer.rotational.filter(|_| is_lowest).map(|_| {
        let unknown = "unknown: the kernel reports every virtio disk as rotating";
        labels::rotation(layer).unwrap_or(unknown).to_owned()
    });
    let requests = layer.queue_requests.map(u64::from);
    let unit = layer.discard_granularity_bytes;
    let discard = layer.discard.map(|supported| match unit {
        Some(bytes) if supported => format!("supported, in units of {}", format_bytes(bytes)),
        None if supported => "supported".to_owned(),
        _ => "not supported".to_owned(),
    });
    let access = |direct| {
        if direct {
            "direct (O_DIRECT)"
        } else {
            "through the page cache"
        }
    };
    let access = layer.backing_direct.map(access).map(str::to_owned);
    let read_only = "no: the device is read-only".to_owned();
    let facts = [
        ("device", Some(layer.device.clone())),
        ("on top of", (!layer.below.is_empty()).then_some(below)),
        ("size", Some(exact_bytes(layer.size_bytes))),
        ("vendor", layer.vendor.clone()),
        ("model", layer.model.clone()),
        ("serial", layer.serial.clone().or_else(|| unknown(layer))),
        ("firmware", layer.firmware.clone()),
        ("bus", link.map(|link| link.bus.clone())),
        ("link speed", link.and_then(|link| link.speed.clone())),
        ("fastest possible", speed_max),
        ("link carries", carries),
        ("logical block", block(layer.logical_block_bytes)),
        ("physical block", block(layer.physical_block_bytes)),
        ("medium", medium),
        ("write cache", write_cache_text(layer)),
        ("scheduler", layer.scheduler.clone()),
        ("queue", requests.map(|n| counted(n, "request"))),
        ("largest request", layer.request_bytes_max.map(format_bytes)),
        ("read-ahead", layer.read_ahead_bytes.map(format_bytes)),
        ("discard", discard),
        ("backed by", layer.backing_file.clone()),
        ("backing file", access),
        ("writable", layer.read_only.then_some(read_only)),
    ];
    let title = format!("{} {}", labels::layer_kind(layer.kind), layer.name);
    section(&title, facts)
}

/// Devices of this kind have a serial number and a write cache: their absence deserves a line.
fn unknown(layer: &Layer) -> Option<String> {
    let is_disk = matches!(layer.kind, LayerKind::Disk | LayerKind::Network);
    is_disk.then(|| "unknown".to_owned())
}

/// The kernel's setting and what it means for a commit.
fn write_cache_text(layer: &Layer) -> Option<String> {
    let text = match layer.write_cache {
        Some(WriteCache::WriteBack) => "write back: data is safe only after a flush".to_owned(),
        Some(WriteCache::WriteThrough) => {
            "write through: no cache, or one that needs no flush".to_owned()
        }
        None => unknown(layer)?,
    };
    Some(text + labels::reported_write_cache(layer))
}

/// With the exact number of bytes, for comparison with a data sheet.
fn exact_bytes(bytes: u64) -> String {
    format!("{} ({bytes} bytes)", format_bytes(bytes))
}

/// Hours of an average year.
const YEAR_HOURS: f64 = 8766.0;

/// Every reported health value of one disk.
pub(crate) fn health_facts(disk: &DiskHealth) -> Vec<LabeledValue> {
    let count = |count: Option<u64>| count.map(|count| count.to_string());
    let wear = disk.wear_percent.map(|percent| format!("{percent} %"));
    let rotation = disk.rotation_rpm.map(|rpm| match rpm {
        0 => "none".to_owned(),
        rpm => format!("{rpm} rpm"),
    });
    vec![
        ("not available", disk.unavailable.clone()),
        ("model", disk.model.clone()),
        ("serial", disk.serial.clone()),
        ("firmware", disk.firmware.clone()),
        ("protocol", disk.protocol.clone()),
        ("verdict", verdict(disk).map(str::to_owned)),
        ("alarms", joined(disk.alarms.clone(), "; ")),
        ("temperature", temperature(disk)),
        ("endurance used", wear),
        ("spare blocks left", spare(disk)),
        ("reallocated sectors", count(disk.reallocated_sectors)),
        ("pending sectors", count(disk.pending_sectors)),
        ("uncorrectable sectors", count(disk.uncorrectable_sectors)),
        ("media errors", count(disk.media_errors)),
        ("link errors", count(disk.link_errors)),
        ("power-on time", disk.power_on_hours.map(power_on)),
        ("unsafe shutdowns", count(disk.unsafe_shutdowns)),
        ("written in total", disk.written_bytes.map(format_bytes)),
        ("last self-test", self_test(disk)),
        ("rotation", rotation),
        ("source", disk.source.clone()),
    ]
}

/// The health of one disk in a line.
pub(crate) fn health_text(disk: &DiskHealth) -> String {
    let name = &disk.disk;
    if let Some(why) = &disk.unavailable {
        return format!("{name} unknown: {why}");
    }
    let counted = |count: Option<u64>, what: &str| {
        let count = count.filter(|count| *count > 0)?;
        Some(format!("{count} {what}"))
    };
    let (wear, written) = (disk.wear_percent, disk.written_bytes.map(format_bytes));
    let facts = [
        Some(verdict(disk).map_or(name.clone(), |verdict| format!("{name} {verdict}"))),
        temperature(disk),
        wear.map(|percent| format!("{percent} % of endurance used")),
        counted(disk.reallocated_sectors, "reallocated sectors"),
        counted(disk.pending_sectors, "pending sectors"),
        counted(disk.uncorrectable_sectors, "uncorrectable sectors"),
        counted(disk.media_errors, "media errors"),
        counted(disk.link_errors, "link errors"),
        disk.power_on_hours.map(power_on),
        written.map(|bytes| format!("{bytes} written")),
    ];
    list(facts.into_iter().flatten())
}

fn verdict(disk: &DiskHealth) -> Option<&'static str> {
    Some(if disk.passed? { "passed" } else { "FAILING" })
}

fn temperature(disk: &DiskHealth) -> Option<String> {
    let (degrees, limit) = (disk.temperature_celsius?, disk.temperature_limit_celsius);
    let limit = limit.map(|limit| format!(" (limit {limit} °C)"));
    Some(format!("{degrees} °C{}", limit.unwrap_or_default()))
}

fn spare(disk: &DiskHealth) -> Option<String> {
    let (left, threshold) = (disk.spare_percent?, disk.spare_threshold_percent);
    let alarm = threshold.map(|threshold| format!(" (alarm at {threshold} %)"));
    Some(format!("{left} %{}", alarm.unwrap_or_default()))
}

fn self_test(disk: &DiskHealth) -> Option<String> {
    let test = disk.self_test.as_ref()?;
    let then = test.hours.map(|hours| format!(", at {hours} h"));
    Some(format!("{}{}", test.status, then.unwrap_or_default()))
}

/// `65592 h (7.5 years)`
fn power_on(hours: u64) -> String {
    match hours as f64 / YEAR_HOURS {
        years if years < 1.0 => format!("{hours} h"),
        years => format!("{hours} h ({years:.1} years)"),
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

    #[test]
    fn line_lists_known_values_without_zeros() {
        let text = |disk: &DiskHealth| health_text(disk).replace('\u{a0}', " ");
        let parts = [
            "nvme0n1 passed",
            "38 °C",
            "70 °C",
            "3 %",
            "65592 h (7.5 years)",
            "3 TiB",
        ];
        assert_shows(&text(&disk()), &parts);
        assert_eq!(text(&disk()).matches(", ").count(), 4);
        let failing = DiskHealth {
            disk: "sda".to_owned(),
            passed: Some(false),
            pending_sectors: Some(8),
            power_on_hours: Some(40),
            ..DiskHealth::default()
        };
        assert_eq!(text(&failing), "sda FAILING, 8 pending sectors, 40 h");
        let unknown = DiskHealth::unknown("vda", "a virtual disk");
        assert_shows(&text(&unknown), &["vda unknown", "a virtual disk"]);
    }

    #[test]
    fn facts_list_reported_zeros() {
        let facts = health_facts(&disk());
        assert!(facts.contains(&("media errors", Some("0".to_owned()))));
        assert!(facts.contains(&("link errors", None)));
    }
}
