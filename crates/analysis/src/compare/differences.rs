//! Differences between the sides apart from the workload: the disk, its firmware, the machine, the
//! kernel. They are often the reason for the comparison, so they keep no figures from being
//! compared.

use super::sides::Run;
use diskproof_model::comparison::Difference;
use diskproof_model::health::DiskHealth;
use diskproof_model::measurement::OpKind;
use diskproof_model::observed::ObservedDevice;
use diskproof_model::record::Record;
use diskproof_model::target::{HostFacts, Layer, LayerKind, Link, TargetIdentity, WriteCache};
use diskproof_model::units::{counted, format_bytes};
use std::collections::BTreeSet;

/// At most this many values are shown where the runs of a side differ among themselves.
const VALUES_MAX: usize = 3;

/// A fact of a record, as text; empty where it is not known. There is one for each disk, target or
/// load, or one for the whole record.
#[derive(Clone, Copy)]
enum Fact {
    Disk(fn(&Layer) -> Option<String>),
    Target(fn(&TargetIdentity) -> Option<String>),
    Load(fn(&ObservedDevice) -> Option<String>),
    Host(fn(&HostFacts) -> Option<String>),
    /// From the layers, else from the disks' own health reports.
    Health(fn(&Record, &[TargetIdentity]) -> Vec<String>),
    Record(fn(&Record) -> Vec<String>),
}

impl Fact {
    /// The fact as one text, for these targets of a record.
    fn text(self, record: &Record, targets: &[TargetIdentity]) -> String {
        let texts: Vec<String> = match self {
            Self::Disk(say) => disks(targets).flat_map(say).collect(),
            Self::Target(say) => targets.iter().flat_map(say).collect(),
            Self::Load(say) => match record.observed() {
                Some(observed) => observed.devices.iter().flat_map(say).collect(),
                None => Vec::new(),
            },
            Self::Host(say) => Vec::from_iter(say(&record.host)),
            Self::Health(say) => say(record, targets),
            Self::Record(say) => say(record),
        };
        texts.join(" + ")
    }
}

const fn disk(what: &str, say: fn(&Layer) -> Option<String>) -> (&str, Fact) {
    (what, Fact::Disk(say))
}

const fn target(what: &str, say: fn(&TargetIdentity) -> Option<String>) -> (&str, Fact) {
    (what, Fact::Target(say))
}

const fn load(what: &str, say: fn(&ObservedDevice) -> Option<String>) -> (&str, Fact) {
    (what, Fact::Load(say))
}

const fn host(what: &str, say: fn(&HostFacts) -> Option<String>) -> (&str, Fact) {
    (what, Fact::Host(say))
}

const fn health(what: &str, say: fn(&Record, &[TargetIdentity]) -> Vec<String>) -> (&str, Fact) {
    (what, Fact::Health(say))
}

const fn record(what: &str, say: fn(&Record) -> Vec<String>) -> (&str, Fact) {
    (what, Fact::Record(say))
}

/// Facts in the order in which they are reported: what the user changed, then nearest to the disk
/// first.
const FACTS: [(&str, Fact); 30] = [
    record("setting", prepare_commands),
    load("reads", |l| Some(share_text(l.read_share()?))),
    load("seeks", |l| Some(share_text(l.seek_share()?))),
    load("mean read", |l| mean_size(l, OpKind::Read)),
    load("mean write", |l| mean_size(l, OpKind::Write)),
    load("in flight", |l| {
        Some(format!("{:.1} requests", l.queue_depth))
    }),
    disk("disk", |d| Some(model_text(d))),
    health("serial", |r, targets| {
        disk_texts(r, targets, |d| &d.serial, |h| &h.serial)
    }),
    health("firmware", |r, targets| {
        disk_texts(r, targets, |d| &d.firmware, |h| &h.firmware)
    }),
    disk("disk size", |d| Some(format_bytes(d.size_bytes))),
    disk("link", |d| d.link.as_ref().map(link_text)),
    disk("write cache", |d| d.write_cache.map(cache_text)),
    disk("reported write cache", |d| {
        d.reported_write_cache.map(cache_text)
    }),
    record("switched write cache", switched_caches),
    target("layers", stack_text),
    target("filesystem", |t| Some(t.filesystem.as_ref()?.kind.clone())),
    target("mount options", |t| {
        Some(t.filesystem.as_ref()?.options.join(","))
    }),
    disk("scheduler", |d| d.scheduler.clone()),
    disk("queue", |d| {
        Some(counted(u64::from(d.queue_requests?), "request"))
    }),
    disk("read-ahead", |d| d.read_ahead_bytes.map(format_bytes)),
    disk("largest request", |d| d.request_bytes_max.map(format_bytes)),
    target("path", |t| Some(t.path.clone())),
    host("machine", |h| Some(h.name.clone())),
    host("processor", |h| h.cpu.clone()),
    host("processors", |h| Some(h.cpus.to_string())),
    host("governor", |h| h.governor.clone()),
    host("kernel", |h| Some(h.kernel.clone())),
    host("system", |h| h.os.clone()),
    host("virtual", |h| Some(environment_text(h))),
    record("diskproof", |r| vec![r.tool.version.clone()]),
];

/// The facts in which two sides differ. Where the runs of a side differ among themselves, all their
/// values are shown.
pub(super) fn differences(a: &[Run<'_>], b: &[Run<'_>]) -> Vec<Difference> {
    let mut differences = Vec::new();
    for (what, fact) in FACTS {
        let (values_a, values_b) = (values(a, fact), values(b, fact));
        if values_a != values_b {
            differences.push(Difference {
                what: what.to_owned(),
                a: values_text(&values_a),
                b: values_text(&values_b),
            });
        }
    }
    differences
}

/// The values that a fact has in the runs of a side.
fn values(side: &[Run<'_>], fact: Fact) -> BTreeSet<String> {
    side.iter()
        .map(|run| fact.text(run.record, &run.record.targets))
        .collect()
}

fn values_text(values: &BTreeSet<String>) -> String {
    let mut texts = Vec::new();
    for value in values.iter().take(VALUES_MAX) {
        texts.push(match value.as_str() {
            "" => "unknown".to_owned(),
            value => value.to_owned(),
        });
    }
    if values.len() > VALUES_MAX {
        texts.push(format!("{} more", values.len() - VALUES_MAX));
    }
    texts.join(" / ")
}

/// All facts of a record, in their order.
pub(super) fn facts(record: &Record) -> Vec<String> {
    let texts = FACTS.iter();
    texts
        .map(|(_, fact)| fact.text(record, &record.targets))
        .collect()
}

/// Facts that identify a row of a fleet: they always differ, and explain no difference.
const IDENTITY: [&str; 4] = ["serial", "path", "machine", "disk"];

/// The facts of one target that may be a reason for its figures, each with its name.
pub(crate) fn facts_of_target(
    record: &Record,
    target: &TargetIdentity,
) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    for (what, fact) in FACTS {
        if !IDENTITY.contains(&what) {
            facts.push((what, fact.text(record, std::slice::from_ref(target))));
        }
    }
    facts
}

/// The disks of a record by model and serial number. An unknown model is replaced by the kernel's
/// name of the disk.
pub(super) fn disk_names(record: &Record) -> Vec<String> {
    disks(&record.targets).map(disk_name).collect()
}

fn disk_name(disk: &Layer) -> String {
    match &disk.serial {
        Some(serial) => format!("{} ({serial})", model_text(disk)),
        None => model_text(disk),
    }
}

fn prepare_commands(record: &Record) -> Vec<String> {
    match record.campaign() {
        Some(part) => Vec::from_iter(part.prepare.clone()),
        None => Vec::new(),
    }
}

/// The mean size of a request of one direction; `None` without requests.
fn mean_size(load: &ObservedDevice, kind: OpKind) -> Option<String> {
    match load.ops.get(&kind) {
        Some(ops) if ops.count > 0 => Some(format_bytes(ops.bytes / ops.count)),
        _ => None,
    }
}

fn share_text(share: f64) -> String {
    format!("{:.0} % of the requests", share * 100.0)
}

fn disks(targets: &[TargetIdentity]) -> impl Iterator<Item = &Layer> {
    targets.iter().flat_map(TargetIdentity::disks)
}

/// A text for each disk that has one: as the kernel states it, else as its health report does.
fn disk_texts(
    record: &Record,
    targets: &[TargetIdentity],
    own: fn(&Layer) -> &Option<String>,
    health: fn(&DiskHealth) -> &Option<String>,
) -> Vec<String> {
    let mut texts = Vec::new();
    for disk in disks(targets) {
        let report = record.health.iter().find(|report| report.disk == disk.name);
        if let Some(text) = own(disk) {
            texts.push(text.clone());
        } else if let Some(report) = report {
            texts.extend(health(report).clone());
        }
    }
    texts
}

fn link_text(link: &Link) -> String {
    let text = format!("{} {}", link.bus, link.speed.as_deref().unwrap_or(""));
    text.trim().to_owned()
}

fn switched_caches(record: &Record) -> Vec<String> {
    let states: BTreeSet<String> = record
        .measurements
        .iter()
        .flat_map(|measurement| measurement.data.workload.write_cache)
        .map(cache_text)
        .collect();
    states.into_iter().collect()
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

/// The layers of a target from the top, such as `partition on disk`.
fn stack_text(target: &TargetIdentity) -> Option<String> {
    if target.layers.is_empty() {
        return None;
    }
    let names: Vec<&str> = target.layers.iter().map(kind_text).collect();
    Some(names.join(" on "))
}

fn kind_text(layer: &Layer) -> &'static str {
    match layer.kind {
        LayerKind::Disk => "disk",
        LayerKind::Partition => "partition",
        LayerKind::DeviceMapper => "device mapper",
        LayerKind::Md => "RAID",
        LayerKind::Loop => "loop device",
        LayerKind::Zram => "zram",
        LayerKind::RamDisk => "RAM disk",
        LayerKind::Network => "network device",
    }
}

fn environment_text(host: &HostFacts) -> String {
    match (&host.hypervisor, &host.container) {
        (Some(hypervisor), Some(container)) => format!("{hypervisor}, {container}"),
        (Some(name), None) | (None, Some(name)) => name.clone(),
        (None, None) => "no".to_owned(),
    }
}
