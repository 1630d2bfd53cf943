//! Everything known of a machine, a target, a filesystem and a block device: labels and values.

use super::target::LabeledValue;
use crate::labels;
use diskproof_model::target::{
    Filesystem, HostFacts, Layer, LayerKind, TargetIdentity, TargetKind, WriteCache,
};
use diskproof_model::units::{counted, format_bytes, format_throughput};

/// The machine.
pub(crate) fn host_facts(host: &HostFacts) -> Vec<LabeledValue> {
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
        (
            "running as",
            Some(if host.uid == 0 {
                "root".to_owned()
            } else {
                format!("uid {}", host.uid)
            }),
        ),
    ]
}

/// The target.
pub(crate) fn target_facts(identity: &TargetIdentity) -> Vec<LabeledValue> {
    let size = match identity.kind {
        TargetKind::Directory => "filesystem size",
        TargetKind::File | TargetKind::BlockDevice => "size",
    };
    vec![
        ("kind", Some(labels::target_kind(identity.kind).to_owned())),
        (size, Some(exact_bytes(identity.size_bytes))),
        ("free", identity.free_bytes.map(format_bytes)),
        ("device", Some(identity.device.clone())),
        ("inode", Some(identity.inode.to_string())),
        (
            "disks",
            identity
                .unresolved
                .as_ref()
                .map(|why| format!("unknown: {why}")),
        ),
    ]
}

/// The filesystem below a directory or file.
pub(crate) fn filesystem_facts(filesystem: &Filesystem) -> Vec<LabeledValue> {
    vec![
        ("type", Some(filesystem.kind.clone())),
        ("source", Some(filesystem.source.clone())),
        ("options", Some(filesystem.options.join(", "))),
        ("size", Some(format_bytes(filesystem.size_bytes))),
        ("free", Some(format_bytes(filesystem.free_bytes))),
    ]
}

/// A block device.
pub(crate) fn layer_facts(layer: &Layer) -> Vec<LabeledValue> {
    let mut facts = vec![
        ("device", Some(layer.device.clone())),
        (
            "on top of",
            (!layer.below.is_empty()).then(|| layer.below.join(", ")),
        ),
        ("size", Some(exact_bytes(layer.size_bytes))),
        ("vendor", layer.vendor.clone()),
        ("model", layer.model.clone()),
        (
            "serial",
            layer
                .serial
                .clone()
                .or_else(|| known_of_disks(layer).then(unknown)),
        ),
        ("firmware", layer.firmware.clone()),
    ];
    facts.extend(link_facts(layer));
    facts.extend([
        (
            "logical block",
            layer
                .logical_block_bytes
                .map(|b| format_bytes(u64::from(b))),
        ),
        (
            "physical block",
            layer
                .physical_block_bytes
                .map(|b| format_bytes(u64::from(b))),
        ),
        (
            "medium",
            layer.rotational.map(|_| {
                labels::rotation(layer)
                    .unwrap_or("unknown: the kernel reports every virtio disk as rotating")
                    .to_owned()
            }),
        ),
        ("write cache", write_cache_text(layer)),
        ("scheduler", layer.scheduler.clone()),
        (
            "queue",
            layer
                .queue_requests
                .map(|n| counted(u64::from(n), "request")),
        ),
        ("largest request", layer.request_bytes_max.map(format_bytes)),
        ("read-ahead", layer.read_ahead_bytes.map(format_bytes)),
        (
            "discard",
            layer
                .discard
                .map(|can| if can { "supported" } else { "not supported" }.to_owned()),
        ),
        ("backed by", layer.backing_file.clone()),
        (
            "backing file",
            layer.backing_direct.map(|direct| {
                if direct {
                    "direct (O_DIRECT)"
                } else {
                    "through the page cache"
                }
                .to_owned()
            }),
        ),
        (
            "writable",
            layer
                .read_only
                .then(|| "no: the device is read-only".to_owned()),
        ),
    ]);
    facts
}

fn link_facts(layer: &Layer) -> Vec<LabeledValue> {
    let Some(link) = &layer.link else {
        return Vec::new();
    };
    vec![
        ("bus", Some(link.bus.clone())),
        ("link speed", link.speed.clone()),
        ("fastest possible", link.speed_max.clone()),
        (
            "link carries",
            link.bytes_per_second_max
                .map(|rate| format!("at most {}", format_throughput(rate as f64))),
        ),
    ]
}

/// Whether devices of this kind have a serial number and a write cache, so that their absence is
/// worth a line.
fn known_of_disks(layer: &Layer) -> bool {
    matches!(layer.kind, LayerKind::Disk | LayerKind::Network)
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// The kernel's setting and what it means for a commit.
fn write_cache_text(layer: &Layer) -> Option<String> {
    match layer.write_cache {
        Some(WriteCache::WriteBack) => {
            Some("write back: data is safe after a flush only".to_owned())
        }
        Some(WriteCache::WriteThrough) => {
            Some("write through: no cache, or one that needs no flush".to_owned())
        }
        None => known_of_disks(layer).then(unknown),
    }
}

/// The exact bytes too: sizes are compared with data sheets.
fn exact_bytes(bytes: u64) -> String {
    format!("{} ({bytes} bytes)", format_bytes(bytes))
}
