//! What else is not the same on both sides, by name: the disk, its firmware, the machine, the
//! kernel. It is often what the comparison is made for, so none of it keeps figures from being
//! compared.

use super::sides::Run;
use diskproof_model::comparison::Difference;
use diskproof_model::health::DiskHealth;
use diskproof_model::measurement::OpKind;
use diskproof_model::observed::ObservedDevice;
use diskproof_model::record::Record;
use diskproof_model::target::{Layer, LayerKind, TargetIdentity, WriteCache};
use diskproof_model::units::{counted, format_bytes};
use std::collections::BTreeSet;

/// Values that are reported where the runs of a side differ among themselves.
const VALUES_MAX: usize = 3;

/// A fact of a record, as text; empty where it is not known.
type Fact = (&'static str, fn(&Record) -> Vec<String>);

/// Facts in the order in which they are reported: what the user changed, then nearest to the disk
/// first.
const FACTS: [Fact; 30] = [
    ("setting", |r| {
        Vec::from_iter(r.campaign.as_ref().and_then(|part| part.prepare.clone()))
    }),
    ("reads", |r| {
        loads(r, |load| Some(share_text(load.read_share()?)))
    }),
    ("seeks", |r| {
        loads(r, |load| Some(share_text(load.seek_share()?)))
    }),
    ("mean read", |r| {
        loads(r, |load| mean_size(load, OpKind::Read))
    }),
    ("mean write", |r| {
        loads(r, |load| mean_size(load, OpKind::Write))
    }),
    ("in flight", |r| {
        loads(r, |load| Some(format!("{:.1} requests", load.queue_depth)))
    }),
    ("disk", |r| disks(r, |disk| Some(model_text(disk)))),
    ("serial", |r| {
        disks(r, |disk| {
            disk.serial
                .clone()
                .or_else(|| health(r, disk)?.serial.clone())
        })
    }),
    ("firmware", |r| {
        disks(r, |disk| {
            disk.firmware
                .clone()
                .or_else(|| health(r, disk)?.firmware.clone())
        })
    }),
    ("disk size", |r| {
        disks(r, |disk| Some(format_bytes(disk.size_bytes)))
    }),
    ("link", |r| {
        disks(r, |disk| {
            disk.link.as_ref().map(|link| {
                format!("{} {}", link.bus, link.speed.as_deref().unwrap_or(""))
                    .trim()
                    .to_owned()
            })
        })
    }),
    ("write cache", |r| {
        disks(r, |disk| disk.write_cache.map(cache_text))
    }),
    ("reported write cache", |r| {
        disks(r, |disk| disk.reported_write_cache.map(cache_text))
    }),
    ("switched write cache", |r| {
        let states: BTreeSet<String> = r
            .measurements
            .iter()
            .filter_map(|m| m.workload.write_cache.map(cache_text))
            .collect();
        states.into_iter().collect()
    }),
    ("layers", |r| {
        targets(r, |target| {
            Some(stack_text(target)).filter(|text| !text.is_empty())
        })
    }),
    ("filesystem", |r| {
        targets(r, |target| {
            target.filesystem.as_ref().map(|f| f.kind.clone())
        })
    }),
    ("mount options", |r| {
        targets(r, |target| {
            target.filesystem.as_ref().map(|f| f.options.join(","))
        })
    }),
    ("scheduler", |r| disks(r, |disk| disk.scheduler.clone())),
    ("queue", |r| {
        disks(r, |disk| {
            disk.queue_requests
                .map(|n| counted(u64::from(n), "request"))
        })
    }),
    ("read-ahead", |r| {
        disks(r, |disk| disk.read_ahead_bytes.map(format_bytes))
    }),
    ("largest request", |r| {
        disks(r, |disk| disk.request_bytes_max.map(format_bytes))
    }),
    ("path", |r| targets(r, |target| Some(target.path.clone()))),
    ("machine", |r| vec![r.host.name.clone()]),
    ("processor", |r| Vec::from_iter(r.host.cpu.clone())),
    ("processors", |r| vec![r.host.cpus.to_string()]),
    ("governor", |r| Vec::from_iter(r.host.governor.clone())),
    ("kernel", |r| vec![r.host.kernel.clone()]),
    ("system", |r| Vec::from_iter(r.host.os.clone())),
    ("virtual", |r| vec![environment_text(r)]),
    ("diskproof", |r| vec![r.tool.version.clone()]),
];

/// What differs between two sides. Where the runs of a side differ among themselves, all their
/// values are reported.
pub(super) fn differences(a: &[Run<'_>], b: &[Run<'_>]) -> Vec<Difference> {
    let values = |side: &[Run<'_>], fact: fn(&Record) -> Vec<String>| {
        side.iter()
            .map(|run| fact(run.record).join(" + "))
            .collect::<BTreeSet<String>>()
    };
    let text = |values: BTreeSet<String>| {
        let unnamed = values.len().saturating_sub(VALUES_MAX);
        let named = values.into_iter().take(VALUES_MAX).map(|value| {
            if value.is_empty() {
                "unknown".to_owned()
            } else {
                value
            }
        });
        let more = (unnamed > 0).then(|| format!("{unnamed} more"));
        named.chain(more).collect::<Vec<_>>().join(" / ")
    };
    let differing = |(what, fact): &Fact| {
        let (x, y) = (values(a, *fact), values(b, *fact));
        (x != y).then(|| Difference {
            what: (*what).to_owned(),
            a: text(x),
            b: text(y),
        })
    };
    FACTS.iter().filter_map(differing).collect()
}

/// All facts of a record, in their order.
pub(super) fn facts(record: &Record) -> Vec<String> {
    FACTS
        .iter()
        .map(|(_, fact)| fact(record).join(" + "))
        .collect()
}

/// The disks of a record in short: model and serial as far as they are known, else the kernel's
/// name.
pub(super) fn disk_names(record: &Record) -> Vec<String> {
    let name = |disk: &Layer| match &disk.serial {
        Some(serial) => format!("{} ({serial})", model_text(disk)),
        None => model_text(disk),
    };
    disks(record, |disk| Some(name(disk)))
}

/// The observed loads.
fn loads(record: &Record, say: impl Fn(&ObservedDevice) -> Option<String>) -> Vec<String> {
    let devices = record.observed.iter().flat_map(|load| &load.devices);
    devices.filter_map(say).collect()
}

/// Bytes of a request of one direction.
fn mean_size(load: &ObservedDevice, kind: OpKind) -> Option<String> {
    let ops = load.ops.get(&kind).filter(|ops| ops.count > 0)?;
    Some(format_bytes(ops.bytes / ops.count))
}

fn share_text(share: f64) -> String {
    format!("{:.0} % of the requests", share * 100.0)
}

fn disks(record: &Record, say: impl Fn(&Layer) -> Option<String>) -> Vec<String> {
    record
        .targets
        .iter()
        .flat_map(TargetIdentity::disks)
        .filter_map(say)
        .collect()
}

/// What the disk says of itself.
fn health<'a>(record: &'a Record, disk: &Layer) -> Option<&'a DiskHealth> {
    record.health.iter().find(|health| health.disk == disk.name)
}

fn targets(record: &Record, say: impl Fn(&TargetIdentity) -> Option<String>) -> Vec<String> {
    record.targets.iter().filter_map(say).collect()
}

fn model_text(disk: &Layer) -> String {
    match (&disk.vendor, &disk.model) {
        (Some(vendor), Some(model)) if !model.starts_with(vendor.as_str()) => {
            format!("{vendor} {model}")
        }
        (_, Some(model)) => model.clone(),
        (_, None) => disk.name.clone(),
    }
}

fn cache_text(cache: WriteCache) -> String {
    match cache {
        WriteCache::WriteBack => "write back",
        WriteCache::WriteThrough => "write through",
    }
    .to_owned()
}

/// Kinds of what lies above the disks, from the top.
fn stack_text(target: &TargetIdentity) -> String {
    let name = |layer: &Layer| match layer.kind {
        LayerKind::Disk => "disk",
        LayerKind::Partition => "partition",
        LayerKind::DeviceMapper => "device mapper",
        LayerKind::Md => "RAID",
        LayerKind::Loop => "loop device",
        LayerKind::Zram => "zram",
        LayerKind::RamDisk => "RAM disk",
        LayerKind::Network => "network device",
    };
    target
        .layers
        .iter()
        .map(name)
        .collect::<Vec<_>>()
        .join(" on ")
}

fn environment_text(record: &Record) -> String {
    let parts = [&record.host.hypervisor, &record.host.container];
    let text = parts
        .into_iter()
        .flatten()
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if text.is_empty() {
        "no".to_owned()
    } else {
        text
    }
}
