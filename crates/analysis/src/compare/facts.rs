//! Lists the facts of a run besides its workload: its disks, their firmware, the machine, the
//! kernel. Each is a text, so that any two runs can be compared.

use diskproof_model::health::DiskHealth;
use diskproof_model::measurement::OpKind;
use diskproof_model::observed::ObservedDevice;
use diskproof_model::record::Record;
use diskproof_model::target::{HostFacts, Layer, LayerKind, Link, TargetIdentity, WriteCache};
use diskproof_model::units::{counted, format_bytes};
use std::collections::BTreeSet;

/// A record, or the part of it that is about one of its targets.
#[derive(Clone, Copy)]
pub(super) struct RecordPart<'r> {
    record: &'r Record,
    /// The index of the only target; `None`: all of them.
    target: Option<usize>,
}

impl<'r> RecordPart<'r> {
    /// All of a record.
    pub(super) fn whole(record: &'r Record) -> Self {
        Self {
            record,
            target: None,
        }
    }

    /// The part about the target of this index.
    pub(super) fn of_target(record: &'r Record, target: usize) -> Self {
        Self {
            record,
            target: Some(target),
        }
    }

    fn includes(self, target: usize) -> bool {
        match self.target {
            Some(only) => only == target,
            None => true,
        }
    }

    fn targets(self) -> impl Iterator<Item = &'r TargetIdentity> {
        let targets = self.record.targets.iter().enumerate();
        targets
            .filter(move |(index, _)| self.includes(*index))
            .map(|(_, target)| target)
    }

    /// The disks below its targets.
    pub(super) fn disks(self) -> impl Iterator<Item = &'r Layer> {
        self.targets().flat_map(TargetIdentity::disks)
    }

    fn disk_texts(self, text: fn(&Layer) -> Option<String>) -> Vec<String> {
        self.disks().filter_map(text).collect()
    }

    fn target_texts(self, text: fn(&TargetIdentity) -> Option<String>) -> Vec<String> {
        self.targets().filter_map(text).collect()
    }

    fn host_text(self, text: fn(&HostFacts) -> Option<String>) -> Vec<String> {
        Vec::from_iter(text(&self.record.host))
    }

    /// The texts of the loads that a run observed on its devices.
    fn load_texts(self, text: fn(&ObservedDevice) -> Option<String>) -> Vec<String> {
        let mut texts = Vec::new();
        if let Some(observed) = self.record.observed() {
            for device in &observed.devices {
                if self.includes(device.target) {
                    texts.extend(text(device));
                }
            }
        }
        texts
    }

    /// A text for each disk that has one: as the kernel states it, else as its health report does.
    fn texts_of_disk_or_health(
        self,
        of_disk: fn(&Layer) -> &Option<String>,
        of_health: fn(&DiskHealth) -> &Option<String>,
    ) -> Vec<String> {
        let mut texts = Vec::new();
        for disk in self.disks() {
            let mut reports = self.record.health.iter();
            let report = reports.find(|report| report.disk == disk.name);
            if let Some(text) = of_disk(disk) {
                texts.push(text.clone());
            } else if let Some(report) = report {
                texts.extend(of_health(report).clone());
            }
        }
        texts
    }
}

/// A kind of fact.
pub(super) struct Fact {
    /// Its name in reports, and in saved comparisons and fleets: a changed one breaks their
    /// readers.
    pub name: &'static str,
    /// The meaning of an empty text.
    pub absence: Absence,
    pub role: Role,
    /// Reads it from a record: a text for each disk or target that has it.
    texts: fn(RecordPart<'_>) -> Vec<String>,
}

/// The meaning of a fact without a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Absence {
    /// The system did not report it.
    Unknown,
    /// There is no such thing, such as the filesystem of a device.
    None,
}

impl Absence {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::None => "none",
        }
    }
}

/// The use of a fact as an explanation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It may be the reason for other figures.
    Condition,
    /// It names a disk or a machine: it differs among the rows of a fleet, and explains nothing.
    Identity,
}

impl Fact {
    /// A condition that is unknown where a record has no text for it.
    const fn new(name: &'static str, texts: fn(RecordPart<'_>) -> Vec<String>) -> Self {
        Self {
            name,
            absence: Absence::Unknown,
            role: Role::Condition,
            texts,
        }
    }

    /// The name of a disk or a machine.
    const fn identity(name: &'static str, texts: fn(RecordPart<'_>) -> Vec<String>) -> Self {
        Self {
            role: Role::Identity,
            ..Self::new(name, texts)
        }
    }

    /// A condition that does not exist where a record has no text for it.
    const fn optional(name: &'static str, texts: fn(RecordPart<'_>) -> Vec<String>) -> Self {
        Self {
            absence: Absence::None,
            ..Self::new(name, texts)
        }
    }

    /// The fact as one text, over all disks or targets of the part; empty where it is absent.
    pub(super) fn text(&self, part: RecordPart<'_>) -> String {
        (self.texts)(part).join(" + ")
    }
}

/// Facts in the order in which they are reported: what the user changed, then nearest to the disk
/// first.
pub(super) const FACTS: [Fact; 31] = [
    Fact::optional("setting", prepare_commands),
    Fact::new("reads", |part| {
        part.load_texts(|load| Some(share_text(load.read_share()?)))
    }),
    Fact::new("seeks", |part| {
        part.load_texts(|load| Some(share_text(load.seek_share()?)))
    }),
    Fact::new("mean read", |part| {
        part.load_texts(|load| mean_size(load, OpKind::Read))
    }),
    Fact::new("mean write", |part| {
        part.load_texts(|load| mean_size(load, OpKind::Write))
    }),
    Fact::new("in flight", |part| {
        part.load_texts(|load| Some(format!("{:.1} requests", load.queue_depth)))
    }),
    Fact::identity("disk", |part| {
        part.disk_texts(|disk| Some(model_text(disk)))
    }),
    Fact::identity("serial", |part| {
        part.texts_of_disk_or_health(|disk| &disk.serial, |health| &health.serial)
    }),
    Fact::new("firmware", |part| {
        part.texts_of_disk_or_health(|disk| &disk.firmware, |health| &health.firmware)
    }),
    Fact::new("disk size", |part| {
        part.disk_texts(|disk| Some(format_bytes(disk.size_bytes)))
    }),
    Fact::new("link", |part| {
        part.disk_texts(|disk| disk.link.as_ref().map(link_text))
    }),
    Fact::new("write cache", |part| {
        part.disk_texts(|disk| disk.write_cache.map(cache_text))
    }),
    Fact::new("reported write cache", |part| {
        part.disk_texts(|disk| disk.reported_write_cache.map(cache_text))
    }),
    Fact::optional("switched write cache", switched_caches),
    Fact::new("layers", |part| part.target_texts(layers_text)),
    Fact::optional("filesystem", |part| {
        part.target_texts(|target| Some(target.filesystem.as_ref()?.kind.clone()))
    }),
    Fact::optional("mount options", |part| {
        part.target_texts(|target| Some(target.filesystem.as_ref()?.options.join(",")))
    }),
    Fact::new("scheduler", |part| {
        part.disk_texts(|disk| disk.scheduler.clone())
    }),
    Fact::new("queue", |part| {
        part.disk_texts(|disk| Some(counted(u64::from(disk.queue_requests?), "request")))
    }),
    Fact::new("read-ahead", |part| {
        part.disk_texts(|disk| disk.read_ahead_bytes.map(format_bytes))
    }),
    Fact::new("largest request", |part| {
        part.disk_texts(|disk| disk.request_bytes_max.map(format_bytes))
    }),
    Fact::identity("path", |part| {
        part.target_texts(|target| Some(target.path.clone()))
    }),
    Fact::identity("machine", |part| {
        part.host_text(|host| Some(host.name.clone()))
    }),
    Fact::new("processor", |part| part.host_text(|host| host.cpu.clone())),
    Fact::new("processors", |part| {
        part.host_text(|host| Some(host.cpus.to_string()))
    }),
    Fact::new("governor", |part| {
        part.host_text(|host| host.governor.clone())
    }),
    Fact::new("kernel", |part| {
        part.host_text(|host| Some(host.kernel.clone()))
    }),
    Fact::optional("PostgreSQL", |part| {
        let postgres = part.record.postgres();
        Vec::from_iter(postgres.map(|postgres| postgres.version.clone()))
    }),
    Fact::new("system", |part| part.host_text(|host| host.os.clone())),
    Fact::new("virtual", |part| {
        part.host_text(|host| Some(environment_text(host)))
    }),
    Fact::new("diskproof", |part| vec![part.record.tool.version.clone()]),
];

/// The command that prepared this side of a live comparison.
fn prepare_commands(part: RecordPart<'_>) -> Vec<String> {
    match part.record.campaign() {
        Some(campaign) => Vec::from_iter(campaign.prepare.clone()),
        None => Vec::new(),
    }
}

/// The states to which workloads switched the disks' write caches, each once.
fn switched_caches(part: RecordPart<'_>) -> Vec<String> {
    let mut states = BTreeSet::new();
    for row in &part.record.measurements {
        if part.includes(row.data.target) {
            states.extend(row.data.workload.write_cache.map(cache_text));
        }
    }
    states.into_iter().collect()
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

/// The vendor and the model of a disk. An unknown model is replaced by the kernel's name.
pub(super) fn model_text(disk: &Layer) -> String {
    match (&disk.vendor, &disk.model) {
        (Some(vendor), Some(model)) if !model.starts_with(vendor.as_str()) => {
            format!("{vendor} {model}")
        }
        (_, Some(model)) => model.clone(),
        (_, None) => disk.name.clone(),
    }
}

/// `SATA 6.0 Gbps`.
fn link_text(link: &Link) -> String {
    let text = format!("{} {}", link.bus, link.speed.as_deref().unwrap_or(""));
    text.trim().to_owned()
}

fn cache_text(cache: WriteCache) -> String {
    match cache {
        WriteCache::WriteBack => "write back",
        WriteCache::WriteThrough => "write through",
    }
    .to_owned()
}

/// The layers of a target from the top, such as `partition on disk`.
fn layers_text(target: &TargetIdentity) -> Option<String> {
    if target.layers.is_empty() {
        return None;
    }
    let names: Vec<&str> = target.layers.iter().map(layer_name).collect();
    Some(names.join(" on "))
}

fn layer_name(layer: &Layer) -> &'static str {
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

/// The hypervisor and the container: `kvm, docker`.
fn environment_text(host: &HostFacts) -> String {
    match (&host.hypervisor, &host.container) {
        (Some(hypervisor), Some(container)) => format!("{hypervisor}, {container}"),
        (Some(name), None) | (None, Some(name)) => name.clone(),
        (None, None) => "no".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    /// Saved comparisons and fleets have these names, and their readers know them.
    #[test]
    fn names_of_facts_stay() {
        let names: Vec<&str> = FACTS.iter().map(|fact| fact.name).collect();
        let known = [
            "setting",
            "reads",
            "seeks",
            "mean read",
            "mean write",
            "in flight",
            "disk",
            "serial",
            "firmware",
            "disk size",
            "link",
            "write cache",
            "reported write cache",
            "switched write cache",
            "layers",
            "filesystem",
            "mount options",
            "scheduler",
            "queue",
            "read-ahead",
            "largest request",
            "path",
            "machine",
            "processor",
            "processors",
            "governor",
            "kernel",
            "PostgreSQL",
            "system",
            "virtual",
            "diskproof",
        ];
        assert_eq!(names, known);
        assert_eq!(BTreeSet::from(known).len(), FACTS.len());
    }

    #[test]
    fn model_has_the_vendor_once_and_else_the_name_of_the_disk() {
        let mut disk = fixture::layer("sda", LayerKind::Disk, &[]);
        (disk.vendor, disk.model) = (None, None);
        assert_eq!(model_text(&disk), "sda");
        disk.model = Some("ST4000".to_owned());
        assert_eq!(model_text(&disk), "ST4000");
        disk.vendor = Some("Seagate".to_owned());
        assert_eq!(model_text(&disk), "Seagate ST4000");
        disk.vendor = Some("ST".to_owned());
        assert_eq!(model_text(&disk), "ST4000");
    }

    #[test]
    fn link_without_a_speed_is_its_bus() {
        let mut link = Link {
            bus: "SATA".to_owned(),
            ..Link::default()
        };
        assert_eq!(link_text(&link), "SATA");
        link.speed = Some("6.0 Gbps".to_owned());
        assert_eq!(link_text(&link), "SATA 6.0 Gbps");
    }

    #[test]
    fn environment_names_hypervisor_and_container() {
        let mut host = HostFacts::default();
        assert_eq!(environment_text(&host), "no");
        host.container = Some("docker".to_owned());
        assert_eq!(environment_text(&host), "docker");
        host.hypervisor = Some("kvm".to_owned());
        assert_eq!(environment_text(&host), "kvm, docker");
    }
}
