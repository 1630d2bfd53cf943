//! The page of `info`: everything known about the machine, the target, its filesystem and the
//! devices below, a fact per line.

use super::health::health_facts;
use super::record::write_findings;
use super::words;
use crate::Examined;
use crate::page::{Ink, Page};
use crate::style::Style;
use diskproof_model::target::{
    Filesystem, HostFacts, Layer, LayerKind, TargetIdentity, TargetKind,
};
use diskproof_model::units::{counted, format_bytes, format_throughput};
use std::io::{self, Write};

/// Column at which values begin.
const INDENT: usize = 22;

/// Writes all facts, layer by layer from the target down to the disks, then what the disks say of
/// their health and what that means. What is not known is left out, except where its absence
/// matters.
pub fn write_identity(
    examined: &Examined<'_>,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Examined {
        host,
        identity,
        health,
        findings,
    } = examined;
    let page = &mut Page::new(style, out);
    write_section(page, "host", &host_facts(host))?;
    page.blank()?;
    write_section(
        page,
        &format!("target {}", identity.path),
        &target_facts(identity),
    )?;
    if let Some(filesystem) = &identity.filesystem {
        page.blank()?;
        write_section(
            page,
            &format!("filesystem {}", filesystem.mount_point),
            &filesystem_facts(filesystem),
        )?;
    }
    for layer in &identity.layers {
        page.blank()?;
        write_section(
            page,
            &format!("{} {}", words::layer_kind(layer.kind), layer.name),
            &layer_facts(layer),
        )?;
    }
    for disk in *health {
        page.blank()?;
        write_section(
            page,
            &format!("health of {}", disk.disk),
            &health_facts(disk),
        )?;
    }
    if findings.is_empty() {
        Ok(())
    } else {
        write_findings(page, findings)
    }
}

/// A label and its value, where there is one.
pub(crate) type Fact = (&'static str, Option<String>);

fn write_section(page: &mut Page<'_>, title: &str, facts: &[Fact]) -> io::Result<()> {
    page.text(Ink::Strong, title)?;
    for (label, value) in facts
        .iter()
        .filter_map(|(label, value)| value.as_ref().map(|value| (label, value)))
    {
        page.entry(
            (Ink::Faint, &format!("  {label}")),
            INDENT,
            (Ink::Plain, value),
        )?;
    }
    Ok(())
}

pub(crate) fn host_facts(host: &HostFacts) -> Vec<Fact> {
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

pub(crate) fn target_facts(identity: &TargetIdentity) -> Vec<Fact> {
    let size = match identity.kind {
        TargetKind::Directory => "filesystem size",
        TargetKind::File | TargetKind::BlockDevice => "size",
    };
    vec![
        ("kind", Some(words::target_kind(identity.kind).to_owned())),
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

pub(crate) fn filesystem_facts(filesystem: &Filesystem) -> Vec<Fact> {
    vec![
        ("type", Some(filesystem.kind.clone())),
        ("source", Some(filesystem.source.clone())),
        ("options", Some(filesystem.options.join(", "))),
        ("size", Some(format_bytes(filesystem.size_bytes))),
        ("free", Some(format_bytes(filesystem.free_bytes))),
    ]
}

pub(crate) fn layer_facts(layer: &Layer) -> Vec<Fact> {
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
                words::rotation(layer)
                    .unwrap_or("unknown: the kernel calls every virtio disk rotating")
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
                .then(|| "no: the device refuses writes".to_owned()),
        ),
    ]);
    facts
}

fn link_facts(layer: &Layer) -> Vec<Fact> {
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

/// Whether devices of this kind have a serial number and a cache of their own, so that not knowing
/// them says something.
fn known_of_disks(layer: &Layer) -> bool {
    matches!(layer.kind, LayerKind::Disk | LayerKind::Network)
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// The kernel's view and what it means for a commit.
fn write_cache_text(layer: &Layer) -> Option<String> {
    use diskproof_model::target::WriteCache;
    match layer.write_cache {
        Some(WriteCache::WriteBack) => {
            Some("write back: data is safe only after a flush".to_owned())
        }
        Some(WriteCache::WriteThrough) => {
            Some("write through: none, or one that needs no flush".to_owned())
        }
        None => known_of_disks(layer).then(unknown),
    }
}

/// Sizes are compared with data sheets, so the bytes stand beside.
fn exact_bytes(bytes: u64) -> String {
    format!("{} ({bytes} bytes)", format_bytes(bytes))
}
