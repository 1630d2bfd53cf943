//! Labels and values that identify a machine, a target, a filesystem and a block device.

use super::health::health_facts;
use super::target::LabeledValue;
use crate::labels;
use diskproof_model::block::Block;
use diskproof_model::health::DiskHealth;
use diskproof_model::target::{
    Filesystem, HostFacts, Layer, LayerKind, TargetIdentity, TargetKind, WriteCache,
};
use diskproof_model::units::{counted, format_bytes, format_throughput};

/// The machine.
pub(crate) fn host(host: &HostFacts) -> Vec<Block> {
    section("host", host_facts(host))
}

/// The target, its filesystem, its layers and their health; each begins with a heading.
pub(crate) fn sections(identity: &TargetIdentity, health: &[&DiskHealth]) -> Vec<Vec<Block>> {
    let target = format!("target {}", identity.path);
    let mut sections = vec![section(&target, target_facts(identity))];
    sections.extend(identity.filesystem.iter().map(|of| {
        section(
            &format!("filesystem {}", of.mount_point),
            filesystem_facts(of),
        )
    }));
    sections.extend(identity.layers.iter().map(|layer| {
        let title = format!("{} {}", labels::layer_kind(layer.kind), layer.name);
        section(&title, layer_facts(layer))
    }));
    let health = health.iter();
    sections.extend(
        health.map(|disk| section(&format!("health of {}", disk.disk), health_facts(disk))),
    );
    sections
}

fn section(title: &str, facts: Vec<LabeledValue>) -> Vec<Block> {
    let mut blocks = vec![Block::Heading(title.to_owned())];
    blocks.extend(Block::facts(facts));
    blocks
}

/// The machine.
fn host_facts(host: &HostFacts) -> Vec<LabeledValue> {
    let user = match host.uid {
        0 => "root".to_owned(),
        uid => format!("uid {uid}"),
    };
    vec![
        ("name", Some(host.name.clone())),
        ("system", host.os.clone()),
        ("kernel", Some(format!("Linux {}", host.kernel))),
        ("processor", host.cpu.clone()),
        ("CPUs usable", Some(host.cpus.to_string())),
        ("CPU governor", host.governor.clone()),
        ("memory", Some(format_bytes(host.memory_bytes))),
        ("virtual machine", host.hypervisor.clone()),
        ("container", host.container.clone()),
        ("load average", host.load_average.clone()),
        ("running as", Some(user)),
    ]
}

/// The target.
fn target_facts(identity: &TargetIdentity) -> Vec<LabeledValue> {
    let size = match identity.kind {
        TargetKind::Directory => "filesystem size",
        TargetKind::File | TargetKind::BlockDevice => "size",
    };
    let unknown = identity.unresolved.as_ref();
    vec![
        ("kind", Some(labels::target_kind(identity.kind).to_owned())),
        (size, Some(exact_bytes(identity.size_bytes))),
        ("free", identity.free_bytes.map(format_bytes)),
        ("device", Some(identity.device.clone())),
        ("inode", Some(identity.inode.to_string())),
        ("disks", unknown.map(|why| format!("unknown: {why}"))),
    ]
}

/// The filesystem below a directory or file.
fn filesystem_facts(filesystem: &Filesystem) -> Vec<LabeledValue> {
    vec![
        ("type", Some(filesystem.kind.clone())),
        ("source", Some(filesystem.source.clone())),
        ("options", Some(filesystem.options.join(", "))),
        ("size", Some(format_bytes(filesystem.size_bytes))),
        ("free", Some(format_bytes(filesystem.free_bytes))),
    ]
}

/// A block device.
fn layer_facts(layer: &Layer) -> Vec<LabeledValue> {
    let below = layer.below.join(", ");
    let link = layer.link.as_ref();
    let carries = link.and_then(|link| link.bytes_per_second_max);
    let block = |bytes: Option<u32>| bytes.map(|bytes| format_bytes(u64::from(bytes)));
    // A device that lies on others repeats what they report.
    let is_lowest = layer.below.is_empty() && layer.backing_file.is_none();
    let medium = layer.rotational.filter(|_| is_lowest).map(|_| {
        let known = labels::rotation(layer);
        known
            .unwrap_or("unknown: the kernel reports every virtio disk as rotating")
            .to_owned()
    });
    let requests = layer.queue_requests.map(u64::from);
    let discard = layer
        .discard
        .map(|supported| match layer.discard_granularity_bytes {
            Some(bytes) if supported => format!("supported, in units of {}", format_bytes(bytes)),
            None if supported => "supported".to_owned(),
            _ => "not supported".to_owned(),
        });
    let access = layer.backing_direct.map(|direct| {
        if direct {
            "direct (O_DIRECT)".to_owned()
        } else {
            "through the page cache".to_owned()
        }
    });
    let read_only = "no: the device is read-only".to_owned();
    vec![
        ("device", Some(layer.device.clone())),
        ("on top of", (!layer.below.is_empty()).then_some(below)),
        ("size", Some(exact_bytes(layer.size_bytes))),
        ("vendor", layer.vendor.clone()),
        ("model", layer.model.clone()),
        ("serial", layer.serial.clone().or_else(|| unknown(layer))),
        ("firmware", layer.firmware.clone()),
        ("bus", link.map(|link| link.bus.clone())),
        ("link speed", link.and_then(|link| link.speed.clone())),
        (
            "fastest possible",
            link.and_then(|link| link.speed_max.clone()),
        ),
        (
            "link carries",
            carries.map(|rate| format!("at most {}", format_throughput(rate as f64))),
        ),
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
    ]
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
