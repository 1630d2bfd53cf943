//! Judges whether a block device may be destroyed: the user typed its name in full, nothing uses
//! it, and it holds no signature and no unknown data. A loop device is a part of the file or device
//! behind it, so all of that must be free, as if it were the target. Reads ends of devices and
//! files; writes nothing. A check that fails to run is a reason to refuse.

use super::ancestry::Ancestry;
use super::common_reasons::{judge_access, judge_device_size};
use super::contents::{self, JudgedPart};
use super::family::{BackingDevice, BackingFile, DeviceFamily, Member};
use super::file::{judge_names, judge_other_ancestries};
use super::in_use;
use super::names::{disk_below, names};
use super::permit::{Consent, VisibilityGaps};
use super::reasons::{RefusalReasons, Step};
use super::servers;
use super::snapshots;
use super::space;
use super::subject::Subject;
use crate::admit::inspect::{CLAIM_TRIES, Inspector};
use crate::failure::{OpenError, changed, open_failed};
use crate::file::held::Held;
use crate::identity::layers;
use crate::kernel::steps::{self, GateStep};
use crate::kernel::sysroot::{SysRoot, read_text};
use crate::signatures::{ScanResult, Slice};
use diskproof_model::shell::quoted;
use diskproof_model::target::{Layer, LayerKind, TargetIdentity, TargetKind};
use rustix::fs::{Access as Permission, OFlags, fstat};
use std::os::fd::AsFd;

/// Everything that speaks against destroying it, before it is opened for writing.
pub(super) fn judge(
    root: &SysRoot,
    identity: &TargetIdentity,
    consent: &Consent,
    reasons: &mut RefusalReasons,
) -> VisibilityGaps {
    judge_name(root, identity, &consent.destroy, reasons);
    judge_medium(root, identity, reasons);
    let Some(family) = read_family(root, identity, reasons) else {
        return VisibilityGaps::default();
    };
    let count_before = reasons.count();
    let gaps = in_use::judge(root, Subject::Device(&family), reasons);
    let is_used = reasons.count() > count_before;
    let wanted = Permission::READ_OK | Permission::WRITE_OK;
    judge_access(identity, &identity.path, wanted, reasons);
    // A claim may be over in a second, unless its holder is known.
    let tries = if is_used { 1 } else { CLAIM_TRIES };
    match Inspector::open_target(identity, tries) {
        Ok(inspector) => {
            // A claim that /proc or sysfs explains is reported above; that of a mount in a
            // namespace without processes is not.
            if inspector.is_claimed() && !is_used {
                add_claimed(identity, reasons);
            }
            judge_contents(root, identity, &family, consent, &inspector, reasons);
        }
        Err(error) => reasons.add_uninspected(format!("it cannot be inspected: {error}")),
    }
    gaps
}

/// Judges once more, with the device open for writing and claimed: nothing may have changed, and no
/// other user may have come.
pub(crate) fn judge_again(
    root: &SysRoot,
    identity: &TargetIdentity,
    consent: &Consent,
    inspector: &Inspector<impl AsFd>,
    reasons: &mut RefusalReasons,
) {
    let now = TargetIdentity {
        layers: layers::layers_below_device(root, &[], &identity.device).layers,
        ..identity.clone()
    };
    let facts = DeviceFacts::new(&now);
    if facts.is_none() || facts != DeviceFacts::new(identity) {
        reasons.add(
            "the device has changed since the first check (name, size, serial or model)",
            Step::clause("run again when no disk is being plugged in or removed"),
        );
    }
    judge_name(root, &now, &consent.destroy, reasons);
    judge_medium(root, &now, reasons);
    let Some(family) = read_family(root, &now, reasons) else {
        return;
    };
    in_use::judge(root, Subject::Device(&family), reasons);
    let uses = space::released_uses(&now);
    space::shared::judge_files(&uses, space::shared::FREE_OR_SMALLER, reasons);
    snapshots::judge(&now, now.size_bytes, reasons);
    judge_contents(root, identity, &family, consent, inspector, reasons);
}

/// The facts by which a device is recognised: its own, and those of the disk that it is a part of.
#[derive(PartialEq, Eq)]
struct DeviceFacts<'a> {
    name: &'a str,
    size_bytes: u64,
    backing_file: Option<&'a str>,
    disk_name: &'a str,
    disk_serial: Option<&'a str>,
    disk_model: Option<&'a str>,
}

impl<'a> DeviceFacts<'a> {
    /// `None` where sysfs does not show the device.
    fn new(identity: &'a TargetIdentity) -> Option<Self> {
        let layer = identity.layers.first()?;
        let disk = disk_below(identity, layer);
        Some(Self {
            name: &layer.name,
            size_bytes: layer.size_bytes,
            backing_file: layer.backing_file.as_deref(),
            disk_name: &disk.name,
            disk_serial: disk.serial.as_deref(),
            disk_model: disk.model.as_deref(),
        })
    }
}

/// Adds the reason for EBUSY on an exclusive opening.
pub(crate) fn add_claimed(identity: &TargetIdentity, reasons: &mut RefusalReasons) {
    reasons.add(
        "the kernel refuses exclusive access (EBUSY): a mount in another namespace, swap, RAID, \
         LVM, ZFS or another program uses it",
        Step::clause(format!(
            "find it with: lsblk {0}; fuser --verbose {0}; zpool status",
            quoted(&identity.path)
        )),
    );
}

fn judge_name(
    root: &SysRoot,
    identity: &TargetIdentity,
    words: &[String],
    reasons: &mut RefusalReasons,
) {
    let names = names(root, identity);
    if names.match_any(words) {
        return;
    }
    let step = Step::clause(format!(
        "name a directory or a file on it, or add --destroy with {}",
        names.described
    ));
    if words.is_empty() {
        reasons.add("a block device is only read unless you release it", step);
    } else {
        let quoted_words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        reasons.add(
            format!("--destroy {} does not name it", quoted_words.join(", ")),
            step,
        );
    }
}

fn judge_medium(root: &SysRoot, identity: &TargetIdentity, reasons: &mut RefusalReasons) {
    if identity.kind != TargetKind::BlockDevice {
        return reasons.add("it is not a block device", Step::clause("name one"));
    }
    judge_device_size(identity.size_bytes, reasons);
    let Some(layer) = identity.layers.first() else {
        return;
    };
    let disk = disk_below(identity, layer);
    if let Some(Layer { name, .. }) = [layer, disk].into_iter().find(|layer| layer.read_only) {
        reasons.add(
            format!("{name} is read-only"),
            Step::clause(format!(
                "blockdev --setrw /dev/{name}, if the device allows it"
            )),
        );
    }
    let queue = root.sys.join("class/block").join(&disk.name).join("queue");
    if let Some(model) = read_text(&queue.join("zoned"))
        && model == "host-managed"
    {
        reasons.add(
            format!(
                "it is a zoned disk ({model}), which accepts writes only in order within each zone"
            ),
            Step::clause("name another device"),
        );
    }
}

/// Reads the relatives of the device, and adds the reasons that follow from them alone; `None`
/// where sysfs does not show the device, which is a reason too.
fn read_family(
    root: &SysRoot,
    identity: &TargetIdentity,
    reasons: &mut RefusalReasons,
) -> Option<DeviceFamily> {
    let Some(family) = DeviceFamily::read(root, &identity.device) else {
        reasons.add(
            format!(
                "sysfs does not show the device {}, so its users are unknown",
                identity.device
            ),
            Step::clause("mount /sys, or run outside the container"),
        );
        return None;
    };
    for other in &family.overlapping {
        reasons.add(
            format!("the partition {other} overlaps it"),
            Step::clause("repair the partition table, or name the whole disk"),
        );
    }
    for path in &family.other_paths {
        reasons.add(
            format!("{path} is another path to the same disk"),
            Step::clause("name the multipath device (multipath -ll), or remove the other paths"),
        );
    }
    for device in &family.unfollowed {
        reasons.add(
            format!("it is made of {device}, and not all that lies below that can be found"),
            Step::clause("name another device"),
        );
    }
    if let Some(layer) = identity.layers.first()
        && layer.kind == LayerKind::Loop
        && family.backing_files.is_empty()
        && family.members.len() == 1
    {
        reasons.add(
            "the loop device has no file behind it",
            Step::clause("losetup --all lists those that have one"),
        );
    }
    Some(family)
}

/// Scans an open device and its partitions; `None` where sysfs does not show it any more.
pub(crate) fn scan_again(
    identity: &TargetIdentity,
    inspector: &Inspector<impl AsFd>,
) -> Option<ScanResult> {
    let family = DeviceFamily::read(&SysRoot::default(), &identity.device)?;
    Some(inspector.scan_device(identity.size_bytes, &family.slices))
}

fn judge_contents(
    root: &SysRoot,
    identity: &TargetIdentity,
    family: &DeviceFamily,
    consent: &Consent,
    inspector: &Inspector<impl AsFd>,
    reasons: &mut RefusalReasons,
) {
    steps::before(GateStep::Judge);
    let scanned = inspector.scan_device(identity.size_bytes, &family.slices);
    contents::judge_device(&identity.path, &scanned, consent.unknown, reasons);
    let whole = if family.whole != family.target {
        judge_disk_of_partition(&family.whole, &family.whole_slices(), reasons)
    } else {
        None
    };
    judge_backing(root, family, &scanned, whole, reasons);
}

/// Judges the disk around a partition: a member of a RAID of the firmware, say, shows the
/// partitions of the volume as its own. Returns the scan of the disk and its partitions.
fn judge_disk_of_partition(
    disk: &Member,
    slices: &[Slice],
    reasons: &mut RefusalReasons,
) -> Option<ScanResult> {
    let node = disk.node();
    let Some(size_bytes) = crate::identity::disk::size_bytes(&disk.sysfs) else {
        reasons.add_uninspected("the size of its whole disk is unknown".to_owned());
        return None;
    };
    match Inspector::open_relative(&node, &disk.device) {
        Ok(inspector) => {
            contents::judge_whole_disk(&node, &inspector.scan_around(size_bytes), reasons);
            Some(inspector.scan(size_bytes, slices))
        }
        Err(error) => {
            reasons.add_uninspected(format!("its whole disk cannot be inspected: {error}"));
            None
        }
    }
}

/// The scan of a disk of which the target is a part.
struct DiskScan {
    found: ScanResult,
    /// The place in it at which the target begins, in bytes.
    target_start: u64,
}

/// Judges every file and device behind the target. A signature that the target shows too, or a
/// whole disk around it, is judged only there: a partition may be overwritten while its neighbours
/// hold data.
fn judge_backing(
    root: &SysRoot,
    family: &DeviceFamily,
    target: &ScanResult,
    whole: Option<ScanResult>,
    reasons: &mut RefusalReasons,
) {
    let mut disks = Vec::new();
    disks.extend(whole.map(|found| DiskScan {
        found,
        target_start: family.target_start(),
    }));
    for device in &family.backing_devices {
        judge_backing_device(device, &judged_parts(device.start, target, &disks), reasons);
        if let Some(disk) = &device.disk
            && let Some(found) = judge_disk_of_partition(&disk.member, &disk.slices(), reasons)
        {
            disks.push(DiskScan {
                found,
                target_start: disk.start,
            });
        }
    }
    for file in &family.backing_files {
        let judged = judged_parts(file.start, target, &disks);
        if let Err(error) = judge_backing_file(root, file, &judged, reasons) {
            add_uninspected(file, &error.to_string(), reasons);
        }
    }
    for file in &family.files_below {
        if let Err(error) = judge_owner(root, file, reasons) {
            add_uninspected(file, &error.to_string(), reasons);
        }
    }
}

fn judge_backing_device(
    device: &BackingDevice,
    judged: &[JudgedPart<'_>],
    reasons: &mut RefusalReasons,
) {
    let node = device.member.node();
    match Inspector::open_relative(&node, &device.member.device) {
        Ok(inspector) => {
            let behind = inspector.scan(device.size_bytes, &[]);
            contents::judge_backing_store(&node, &behind, judged, reasons);
        }
        Err(error) => reasons.add_uninspected(format!(
            "{node}, which lies behind it, cannot be inspected: {error}"
        )),
    }
}

/// Places what was found in the target and in the disks around it in a backing store in which the
/// target begins at byte `start`. A disk begins where the target does, less the place of the target
/// on that disk.
fn judged_parts<'a>(
    start: u64,
    target: &'a ScanResult,
    disks: &'a [DiskScan],
) -> Vec<JudgedPart<'a>> {
    let mut judged = vec![JudgedPart {
        found: target,
        start,
    }];
    for disk in disks {
        judged.push(JudgedPart {
            found: &disk.found,
            start: start.saturating_sub(disk.target_start),
        });
    }
    judged
}

fn judge_backing_file(
    root: &SysRoot,
    file: &BackingFile,
    judged: &[JudgedPart<'_>],
    reasons: &mut RefusalReasons,
) -> Result<(), OpenError> {
    let Some(held) = judge_owner(root, file, reasons)? else {
        return Ok(());
    };
    let path = file.path.display().to_string();
    let fd = held
        .reopen(OFlags::RDONLY | OFlags::NONBLOCK)
        .map_err(|errno| open_failed(&path, errno))?;
    let stat = fstat(&fd).map_err(|errno| open_failed(&path, errno))?;
    let behind = Inspector::through(fd.as_fd()).scan(stat.st_size.unsigned_abs(), &[]);
    contents::judge_backing_store(&path, &behind, judged, reasons);
    Ok(())
}

/// Judges the names of a file behind a device, and the directories that hold it. Returns the file;
/// `None` where it has no name here.
fn judge_owner(
    root: &SysRoot,
    file: &BackingFile,
    reasons: &mut RefusalReasons,
) -> Result<Option<Held>, OpenError> {
    let path = file.path.display().to_string();
    let Some(id) = file.id else {
        add_uninspected(file, "it has no name here", reasons);
        return Ok(None);
    };
    let held = Held::open(&file.path).map_err(|errno| open_failed(&path, errno))?;
    if held.id() != id {
        return Err(changed(&path, "something else replaced it"));
    }
    let above = Ancestry::above_file(&path, id)?;
    servers::judge_file(&above, reasons);
    judge_other_ancestries(root, &file.path, id, reasons);
    let stat = fstat(held.fd()).map_err(|errno| open_failed(&path, errno))?;
    judge_names(stat.st_nlink, reasons);
    Ok(Some(held))
}

fn add_uninspected(file: &BackingFile, why: &str, reasons: &mut RefusalReasons) {
    reasons.add(
        format!(
            "the file behind {} ({}) cannot be inspected: {why}",
            file.above,
            file.path.display()
        ),
        Step::clause(
            "run where that file can be read, or recreate the loop device on a file that has a \
             name",
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::fake_sysfs::FakeSysfs;

    /// As the file of an encrypted disk: what it holds belongs to the encryption.
    #[test]
    fn file_below_a_device_mapper_belongs_to_no_server_and_may_hold_a_header() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let image = place.path().join("image");
        std::fs::write(&image, "LUKS\u{ba}\u{be}").unwrap();
        let sysfs = FakeSysfs::new();
        let file = image.display().to_string();
        sysfs.add_block_device("x/zzloop0", "240:0", &[("loop/backing_file", &file)]);
        sysfs.add_block_device("x/zzdm0", "253:0", &[]);
        sysfs.add_link("devices/x/zzdm0/slaves/zzloop0", "class/block/zzloop0");
        let root = SysRoot {
            proc: "/proc".into(),
            ..sysfs.root()
        };
        let reasons_now = || {
            let family = DeviceFamily::read(&root, "253:0").unwrap();
            let mut reasons = RefusalReasons::default();
            judge_backing(&root, &family, &ScanResult::default(), None, &mut reasons);
            reasons.into_refusal(String::new()).reasons
        };
        assert_eq!(reasons_now(), [""; 0]);
        std::fs::write(place.path().join("ibdata1"), "").unwrap();
        std::fs::hard_link(&image, place.path().join("second")).unwrap();
        assert_eq!(reasons_now().len(), 2);
        std::fs::remove_file(&image).unwrap();
        assert_eq!(reasons_now().len(), 1, "it has no name here");
    }

    /// A scan of no bytes finds nothing, which is no reason to write.
    #[test]
    fn partition_of_a_disk_of_unknown_size_is_refused() {
        let sysfs = FakeSysfs::new();
        sysfs.add_block_device("x/sda", "8:0", &[]);
        let attributes = [("partition", "1"), ("start", "0"), ("size", "1024")];
        sysfs.add_block_device("x/sda/sda1", "8:1", &attributes);
        let family = DeviceFamily::read(&sysfs.root(), "8:1").unwrap();
        let mut reasons = RefusalReasons::default();
        let found = judge_disk_of_partition(&family.whole, &family.whole_slices(), &mut reasons);
        assert!(found.is_none());
        assert_eq!(reasons.count(), 1);
    }
}
