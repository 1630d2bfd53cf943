//! What kind of disk was surveyed, and how much of it: whether an arm moves over a turning surface,
//! as its access times tell, and what the system says where they do not.

use crate::shape::Reach;
use diskproof_model::record::Record;
use diskproof_model::surface::{SeekPattern, SurfaceRecord};
use diskproof_model::target::{Layer, LayerKind, Link, TargetIdentity, TargetKind};

/// Whether something turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mechanics {
    /// An arm moves over platters.
    Rotating,
    /// Nothing moves: access time does not depend on distance.
    Solid,
    /// Nothing tells.
    Unknown,
}

/// Fewer accesses of a pattern tell nothing.
const ACCESSES_MIN: u64 = 20;
/// Random accesses of a rotating disk take at least this many times as long as those to a
/// neighbouring track: (2 ms + 3.5 ms) against (2 ms + 0.3 ms) on the fastest arms and platters,
/// more on all others. Those without an arm take the same.
const FAR_TO_NEAR_MIN: f64 = 1.5;
/// No arm and no platter answers half of all random accesses in less: half a turn of 15,000 rpm
/// alone takes 2 ms.
const RANDOM_NS_MIN: f64 = 1e6;
/// From this share on a span counts as the whole surface.
const WHOLE_MIN: f64 = 0.9;

/// What the access times say; where they are silent, what the disk's own report and the kernel say.
pub(crate) fn mechanics(record: &Record) -> Mechanics {
    let Some(surface) = record.surface() else {
        return Mechanics::Unknown;
    };
    match measured_mechanics(record, surface) {
        Mechanics::Unknown => reported_mechanics(record),
        known => known,
    }
}

/// What the access times say.
pub(crate) fn measured_mechanics(record: &Record, surface: &SurfaceRecord) -> Mechanics {
    let random = median_ns(surface, SeekPattern::Random);
    let near = median_ns(surface, SeekPattern::TrackToTrack);
    let (Some(random), Some(near)) = (random, near) else {
        return Mechanics::Unknown;
    };
    if random < RANDOM_NS_MIN {
        return Mechanics::Solid;
    }
    if random >= FAR_TO_NEAR_MIN * near {
        return Mechanics::Rotating;
    }
    // In a small part of the surface the arm has nowhere to go.
    if reach(record, surface) == Reach::Whole && near < FAR_TO_NEAR_MIN * random {
        Mechanics::Solid
    } else {
        Mechanics::Unknown
    }
}

/// The median access time of a pattern, where there were enough accesses.
fn median_ns(surface: &SurfaceRecord, seek: SeekPattern) -> Option<f64> {
    let summary = surface.figures.seeks.get(&seek)?;
    if summary.n >= ACCESSES_MIN {
        Some(summary.p50_ns as f64)
    } else {
        None
    }
}

fn reported_mechanics(record: &Record) -> Mechanics {
    let Some(target) = surveyed_target(record) else {
        return Mechanics::Unknown;
    };
    let (mut rotating, mut solid) = (0, 0);
    for disk in target.disks() {
        match reports_rotation(record, disk) {
            Some(true) => rotating += 1,
            Some(false) => solid += 1,
            None => return Mechanics::Unknown,
        }
    }
    match (rotating, solid) {
        (1.., 0) => Mechanics::Rotating,
        (0, 1..) => Mechanics::Solid,
        _ => Mechanics::Unknown,
    }
}

/// Whether a disk rotates by its own report, else by the kernel's word: virtual disks, loop devices
/// and the like say anything.
fn reports_rotation(record: &Record, disk: &Layer) -> Option<bool> {
    if let Some(rpm) = health_rpm(record, disk) {
        return Some(rpm > 0);
    }
    let is_real = disk.kind == LayerKind::Disk && record.host.hypervisor.is_none();
    if is_real && has_real_bus(disk) {
        disk.rotational
    } else {
        None
    }
}

/// Whether the kernel says that a disk rotates, and can know it: a virtual disk says anything, and
/// a loop device repeats what its file lies on.
pub(crate) fn is_said_to_rotate(record: &Record, disk: &Layer) -> bool {
    let is_trusted = match disk.kind {
        LayerKind::Loop => true,
        LayerKind::Disk => record.host.hypervisor.is_none(),
        _ => false,
    };
    is_trusted && disk.rotational == Some(true)
}

fn has_real_bus(disk: &Layer) -> bool {
    match &disk.link {
        Some(link) => ["SATA", "SAS", "USB", "PCIe"].contains(&link.bus.as_str()),
        None => false,
    }
}

/// Revolutions per minute by the disk's own health report; 0 of flash.
fn health_rpm(record: &Record, disk: &Layer) -> Option<u32> {
    let mut reports = record.health.iter();
    reports.find(|h| h.disk == disk.name)?.rotation_rpm
}

/// The target that was surveyed.
pub(crate) fn surveyed_target(record: &Record) -> Option<&TargetIdentity> {
    record.targets.get(record.surface()?.data.target)
}

/// How much of the surface was surveyed.
pub(crate) fn reach(record: &Record, surface: &SurfaceRecord) -> Reach {
    let surface_bytes = match surveyed_target(record) {
        Some(target) => surface_bytes(target),
        None => 0,
    };
    if surface_bytes > 0 && surface.data.span_bytes as f64 >= WHOLE_MIN * surface_bytes as f64 {
        Reach::Whole
    } else {
        Reach::Part
    }
}

/// The size of the surface that the target lies on: of the disk below a partition or a file, of the
/// array where there are several disks.
fn surface_bytes(target: &TargetIdentity) -> u64 {
    let disks: Vec<&Layer> = target.disks().collect();
    match disks[..] {
        [disk] => disk.size_bytes.max(target.size_bytes),
        _ => target.size_bytes,
    }
}

/// The size of what a seller sold: of the device itself, but of the disk below a partition, a file
/// or a directory. `None` where several disks lie below one of these, or none is known.
pub(crate) fn sold_bytes(target: &TargetIdentity) -> Option<u64> {
    if let Some(layer) = target.layers.first()
        && target.kind == TargetKind::BlockDevice
        && layer.kind != LayerKind::Partition
    {
        return Some(layer.size_bytes);
    }
    let disks: Vec<&Layer> = target.disks().collect();
    match disks[..] {
        [disk] => Some(disk.size_bytes),
        _ => None,
    }
}

/// Whether a position in the target is a position on a surface: on a device it is, in a file only
/// where nothing is known to lie below it.
pub(crate) fn is_surface(target: &TargetIdentity) -> bool {
    target.kind == TargetKind::BlockDevice
        || (target.kind == TargetKind::File && target.layers.is_empty())
}

/// A disk's link and its place in the record.
pub(crate) struct LinkAt<'a> {
    /// `/targets/0/layers/1/link`.
    pub path: String,
    /// The disk.
    pub layer: &'a Layer,
    /// How it is attached.
    pub link: &'a Link,
}

/// The links of the disks at the bottom of a target.
pub(crate) fn links(record: &Record, target: usize) -> Vec<LinkAt<'_>> {
    let Some(identity) = record.targets.get(target) else {
        return Vec::new();
    };
    let mut links = Vec::new();
    for (index, layer) in identity.layers.iter().enumerate() {
        if let Some(link) = &layer.link
            && layer.below.is_empty()
        {
            let path = format!("/targets/{target}/layers/{index}/link");
            links.push(LinkAt { path, layer, link });
        }
    }
    links
}

/// What the links of all disks below the target carry together; `None` where one of them does not
/// tell.
pub(crate) fn link_bytes_per_second(record: &Record, target: usize) -> Option<f64> {
    let disks = record.targets.get(target)?.disks().count();
    let attached = links(record, target);
    if attached.is_empty() || attached.len() != disks {
        return None;
    }
    let mut sum = 0.0;
    for at in &attached {
        sum += at.link.bytes_per_second_max? as f64;
    }
    Some(sum)
}

/// Revolutions per minute as the disks below the target report them; of several the fastest. `None`
/// where one does not, or does not turn.
pub(crate) fn reported_rpm(record: &Record) -> Option<u32> {
    let mut fastest = None;
    for disk in surveyed_target(record)?.disks() {
        let rpm = health_rpm(record, disk)?;
        if rpm == 0 {
            return None;
        }
        fastest = fastest.max(Some(rpm));
    }
    fastest
}
