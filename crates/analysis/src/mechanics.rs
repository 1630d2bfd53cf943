//! Decides whether a disk rotates, how much of its surface a survey covered, and what its links can
//! carry. The access times show whether an arm moves over a turning platter. Where they do not, the
//! disk's own report decides, and then the kernel's.

use crate::shape::Reach;
use diskproof_model::health::DiskHealth;
use diskproof_model::record::Record;
use diskproof_model::surface::{SeekPattern, SurfaceRecord};
use diskproof_model::target::{HostFacts, Layer, LayerKind, Link, TargetIdentity, TargetKind};
use std::ops::RangeInclusive;

/// Whether the disk has moving parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mechanics {
    /// An arm moves over platters.
    Rotating,
    /// Nothing moves: access time does not depend on distance.
    Solid,
    /// Neither the access times nor a trustworthy report shows it.
    Unknown,
}

/// A pattern with fewer accesses is ignored: its median is too uncertain. A larger number leaves
/// the mechanics of short surveys unknown. With a smaller one, a few slow accesses can make a solid
/// disk look like a rotating one.
const ACCESSES_MIN: u64 = 20;
/// Random accesses of a rotating disk take at least this many times as long as those to a
/// neighbouring track: (2 ms + 3.5 ms) against (2 ms + 0.3 ms) on the fastest arms and platters,
/// more on all others. Those without an arm take the same.
const FAR_TO_NEAR_MIN: f64 = 1.5;
/// No arm and no platter answers half of all random accesses in less: half a turn of 15,000 rpm
/// alone takes 2 ms.
const RANDOM_NS_MIN: f64 = 1e6;
/// The outermost zone of a disk is at most this many times as fast as the innermost one: a platter
/// of 95 mm has tracks from about 20 to 46 mm.
pub(crate) const ZONES_FACTOR_MAX: f64 = 2.5;
/// A span that begins within this share of the surface contains the outermost zone. Chosen, not
/// measured.
const OUTER_SHARE: f64 = 0.05;
/// A span of at least this share of the surface counts as the whole surface. Chosen, not measured.
const WHOLE_MIN: f64 = 0.9;

/// The mechanics by the access times. Where these do not show it, the disk's own report and the
/// kernel decide.
pub(crate) fn mechanics(record: &Record) -> Mechanics {
    let Some(surface) = record.surface() else {
        return Mechanics::Unknown;
    };
    match measured_mechanics(record, surface) {
        Mechanics::Unknown => reported_mechanics(record),
        known => known,
    }
}

/// The mechanics by the access times alone.
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

/// What the disks of the surveyed target say of themselves; unknown where one says nothing, or they
/// are of both kinds.
fn reported_mechanics(record: &Record) -> Mechanics {
    let Some(target) = surveyed_target(record) else {
        return Mechanics::Unknown;
    };
    let (mut rotating, mut solid) = (0, 0);
    for disk in target.disks() {
        match reported_rotation(record, disk) {
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

/// True for a disk that reports that it rotates, else false. Its own health report decides before
/// the kernel. `None` without a report where the kernel's answer is not reliable, as for virtual
/// disks and loop devices.
fn reported_rotation(record: &Record, disk: &Layer) -> Option<bool> {
    if let Some(rpm) = rpm_of(&record.health, disk) {
        return Some(rpm > 0);
    }
    if is_attached_here(record, disk) {
        disk.rotational
    } else {
        None
    }
}

/// True if the kernel reports that a disk rotates, and can know it: the answer of a virtual disk is
/// arbitrary, and a loop device repeats that of the disk below its file.
pub(crate) fn kernel_reports_rotation(host: &HostFacts, disk: &Layer) -> bool {
    let is_trusted = match disk.kind {
        LayerKind::Loop => true,
        LayerKind::Disk => host.hypervisor.is_none(),
        _ => false,
    };
    is_trusted && disk.rotates() == Some(true)
}

/// True if all disks of a target are attached to this very machine, so that no provider limits
/// them.
pub(crate) fn is_real_disk(record: &Record, target: &TargetIdentity) -> bool {
    let mut disks = target.disks().peekable();
    disks.peek().is_some() && disks.all(|disk| is_attached_here(record, disk))
}

/// True if all disks of a target surely turn.
pub(crate) fn has_platters(record: &Record, target: &TargetIdentity) -> bool {
    let mut disks = target.disks().peekable();
    disks.peek().is_some() && disks.all(|disk| surely_rotates(record, disk))
}

/// True if a disk of the target may stop its motor when it is idle, so that its first answer takes
/// as long as the motor needs, and writing back a full cache takes as long as an arm needs. What
/// lies behind a network filesystem or FUSE may. A disk of a hypervisor does only if it reports its
/// own speed.
pub fn may_sleep(target: &TargetIdentity, host: &HostFacts, health: &[DiskHealth]) -> bool {
    let mut disks = target.disks().peekable();
    disks.peek().is_none()
        || disks.any(|disk| match rpm_of(health, disk) {
            Some(rpm) => rpm > 0,
            None => host.hypervisor.is_none() && disk.rotates() != Some(false),
        })
}

/// Like [`may_sleep`], of a target of a record, whose survey may show that its disks rotate.
pub(crate) fn may_have_slept(record: &Record, target: &TargetIdentity) -> bool {
    may_sleep(target, &record.host, &record.health) || has_platters(record, target)
}

/// True if a disk rotates by the access times of its survey, by its own health report, or by the
/// kernel. The kernel does not count behind USB, where it assumes a rotating disk.
pub(crate) fn surely_rotates(record: &Record, disk: &Layer) -> bool {
    match surveyed_mechanics_of(record, disk) {
        Mechanics::Rotating => true,
        Mechanics::Solid => false,
        Mechanics::Unknown => is_reported_to_rotate(disk, &record.host, &record.health),
    }
}

/// True if the disks of a target rotate by their own health reports, or by the kernel where that
/// reads it from the disk itself.
pub(crate) fn are_reported_to_rotate(
    target: &TargetIdentity,
    host: &HostFacts,
    health: &[DiskHealth],
) -> bool {
    let mut disks = target.disks().peekable();
    disks.peek().is_some() && disks.all(|disk| is_reported_to_rotate(disk, host, health))
}

/// True if the disk, or the kernel for it, says that it rotates. USB bridges say so of any disk.
fn is_reported_to_rotate(disk: &Layer, host: &HostFacts, health: &[DiskHealth]) -> bool {
    if let Some(rpm) = rpm_of(health, disk) {
        return rpm > 0;
    }
    let is_behind_usb = disk.link.as_ref().is_some_and(|link| link.bus == "USB");
    !is_behind_usb && disk.kind == LayerKind::Disk && kernel_reports_rotation(host, disk)
}

/// The mechanics by the access times of a survey on this disk.
fn surveyed_mechanics_of(record: &Record, disk: &Layer) -> Mechanics {
    let is_surveyed = surveyed_target(record).is_some_and(|target| {
        target
            .disks()
            .any(|surveyed| surveyed.device == disk.device)
    });
    match record.surface() {
        Some(surface) if is_surveyed => measured_mechanics(record, surface),
        _ => Mechanics::Unknown,
    }
}

/// True if a disk is attached to this very machine by a bus, not provided by a hypervisor.
fn is_attached_here(record: &Record, disk: &Layer) -> bool {
    disk.kind == LayerKind::Disk && record.host.hypervisor.is_none() && has_real_bus(disk)
}

/// True if the surveyed span contains the outermost zone of a disk, which is its fastest. False of
/// a partition, a mapping or a file, because the place on the disk is unknown.
pub(crate) fn begins_outside(record: &Record, surface: &SurfaceRecord) -> bool {
    let Some(target) = record.targets.get(surface.data.target) else {
        return false;
    };
    is_outermost(target, surface.data.span_start_bytes)
}

/// True if this byte of a target lies in the outermost zone of its disk.
pub(crate) fn is_outermost(target: &TargetIdentity, start_bytes: u64) -> bool {
    let is_whole_disk = match target.layers.first() {
        Some(layer) => target.kind == TargetKind::BlockDevice && layer.below.is_empty(),
        None => false,
    };
    is_whole_disk && start_bytes as f64 <= OUTER_SHARE * target.size_bytes as f64
}

fn has_real_bus(disk: &Layer) -> bool {
    match &disk.link {
        Some(link) => ["SATA", "SAS", "USB", "PCIe"].contains(&link.bus.as_str()),
        None => false,
    }
}

/// Revolutions per minute by the disk's own health report; 0 of flash, `None` without a report.
fn rpm_of(health: &[DiskHealth], disk: &Layer) -> Option<u32> {
    let report = health.iter().find(|report| report.disk == disk.name)?;
    report.rotation_rpm
}

/// The identity of the surveyed target; `None` where the run has no survey.
pub(crate) fn surveyed_target(record: &Record) -> Option<&TargetIdentity> {
    record.targets.get(record.surface()?.data.target)
}

/// Whether the survey covered the whole surface or a part of it.
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

/// True if offsets in the target are positions on a surface. They are on a device. In a file they
/// are only where the layers below it are unknown.
pub(crate) fn is_surface(target: &TargetIdentity) -> bool {
    target.kind == TargetKind::BlockDevice
        || (target.kind == TargetKind::File && target.layers.is_empty())
}

/// A disk, its link, and where the record has that link.
pub(crate) struct DiskLink<'a> {
    /// A JSON pointer such as `/targets/0/layers/1/link`.
    pub path: String,
    /// The disk that is attached by the link.
    pub layer: &'a Layer,
    /// Bus, speed and width, as the kernel reports them.
    pub link: &'a Link,
}

/// The links of the disks at the bottom of a target.
pub(crate) fn links(record: &Record, target: usize) -> Vec<DiskLink<'_>> {
    let Some(identity) = record.targets.get(target) else {
        return Vec::new();
    };
    let mut links = Vec::new();
    for (index, layer) in identity.layers.iter().enumerate() {
        if let Some(link) = &layer.link
            && layer.below.is_empty()
        {
            let path = format!("/targets/{target}/layers/{index}/link");
            links.push(DiskLink { path, layer, link });
        }
    }
    links
}

/// A full link carries this share of its coded rate: frames and answers take the rest (SATA 90 to
/// 97 %, PCIe 80 to 95 %, USB 3 70 to 90 %).
const CARRIED_SHARE: RangeInclusive<f64> = 0.7..=1.03;
/// The same of USB 2, whose polling takes more (it carries 55 to 75 %).
const CARRIED_SHARE_USB2: RangeInclusive<f64> = 0.45..=1.03;
/// The coded rate of a USB 2 link, in bytes per second.
const USB2_BYTES_PER_SECOND: f64 = 60e6;

/// A PCIe, SATA or SAS link is surely full from this share of its coded rate on.
const FULL_SHARE: f64 = 0.85;

/// The rate, in bytes per second, from which on a link may be full; `None` where its speed is
/// unknown. USB links carry less than others.
pub(crate) fn full_from(link: &Link) -> Option<f64> {
    let coded_rate = link.bytes_per_second_max? as f64;
    let share = match link.bus.as_str() {
        "USB" => *carried_share(coded_rate).start(),
        _ => FULL_SHARE,
    };
    Some(share * coded_rate)
}

/// The share of its coded rate, in bytes per second, that a link carries when it is full.
pub(crate) fn carried_share(link_rate: f64) -> RangeInclusive<f64> {
    if link_rate <= USB2_BYTES_PER_SECOND {
        CARRIED_SHARE_USB2
    } else {
        CARRIED_SHARE
    }
}

/// The sum of what the links of all disks below the target can carry; `None` where the speed of one
/// is unknown.
pub(crate) fn link_bytes_per_second(record: &Record, target: usize) -> Option<f64> {
    sum_of_links(record, target, |link| {
        Some(link.bytes_per_second_max? as f64)
    })
}

/// The sum of the rates from which on these links may be full.
pub(crate) fn links_full_from(record: &Record, target: usize) -> Option<f64> {
    sum_of_links(record, target, full_from)
}

fn sum_of_links(record: &Record, target: usize, rate: fn(&Link) -> Option<f64>) -> Option<f64> {
    let disks = record.targets.get(target)?.disks().count();
    let attached = links(record, target);
    if attached.is_empty() || attached.len() != disks {
        return None;
    }
    let mut sum = 0.0;
    for attached_disk in &attached {
        sum += rate(attached_disk.link)?;
    }
    Some(sum)
}

/// Revolutions per minute by the health reports of the disks below the target; the fastest of
/// several. `None` where one has no report, or does not rotate.
pub(crate) fn reported_rpm(record: &Record) -> Option<u32> {
    let mut fastest = None;
    for disk in surveyed_target(record)?.disks() {
        let rpm = rpm_of(&record.health, disk)?;
        if rpm == 0 {
            return None;
        }
        fastest = fastest.max(Some(rpm));
    }
    fastest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn disks_of_platters_and_unknown_disks_may_sleep() {
        let of = |rotational: Option<bool>, bus: &str, hypervisor: Option<&str>| {
            let mut record = fixture::record();
            record.host.hypervisor = hypervisor.map(str::to_owned);
            for layer in &mut record.targets[0].layers {
                layer.rotational = rotational;
                layer.link = Some(Link {
                    bus: bus.to_owned(),
                    ..Link::default()
                });
            }
            may_sleep(&record.targets[0], &record.host, &[])
        };
        assert!(of(Some(true), "SATA", None) && of(None, "USB", None));
        assert!(!of(Some(false), "SATA", None) && !of(Some(false), "virtio", Some("kvm")));
        assert!(!of(Some(true), "virtio", Some("kvm")) && !of(Some(true), "SATA", Some("kvm")));
    }

    /// A report decides before the kernel, and a file server has disks that nobody knows.
    #[test]
    fn disk_that_reports_its_speed_may_sleep_also_in_a_virtual_machine() {
        let mut record = fixture::record();
        record.host.hypervisor = Some("kvm".to_owned());
        let disk = record.targets[0].disks().next().unwrap().name.clone();
        for (rpm, expected) in [(7200, true), (0, false)] {
            let health = [DiskHealth {
                disk: disk.clone(),
                rotation_rpm: Some(rpm),
                ..DiskHealth::default()
            }];
            assert_eq!(
                may_sleep(&record.targets[0], &record.host, &health),
                expected
            );
        }
        record.targets[0].layers.clear();
        assert!(may_sleep(&record.targets[0], &record.host, &[]));
    }
}
