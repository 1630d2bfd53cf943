//! Whether a block device may be destroyed: its name was typed in full, nobody uses it, and nothing
//! on it says that it holds anything. Reads the device's ends; writes nothing. Every check that
//! cannot be made speaks against it.

use super::contents;
use super::doubts::Doubts;
use super::family::{Family, Member};
use super::in_use::{self, Blind, Subject};
use super::names::{disk_of, names};
use super::{READ_BYTES_MIN, judge_access};
use crate::layers;
use crate::look::{Claim, Look, Patience};
use crate::sysroot::{SysRoot, read_text};
use diskproof_model::shell::quoted;
use diskproof_model::target::{LayerKind, TargetIdentity, TargetKind};
use diskproof_model::units::format_bytes;
use rustix::fs::Access as Permission;

/// Everything that speaks against destroying it, before it is opened for writing.
pub(super) fn judge(
    root: &SysRoot,
    identity: &TargetIdentity,
    words: &[String],
    doubts: &mut Doubts,
) -> Blind {
    judge_name(root, identity, words, doubts);
    judge_medium(root, identity, doubts);
    let Some(family) = family(root, identity, doubts) else {
        return Blind::default();
    };
    let before = doubts.count();
    let blind = in_use::judge(root, Subject::Device(&family), doubts);
    let is_used = doubts.count() > before;
    judge_access(
        identity,
        Permission::READ_OK | Permission::WRITE_OK,
        "read and write",
        doubts,
    );
    match Look::at_device(
        identity,
        if is_used {
            Patience::Leave
        } else {
            Patience::Wait
        },
    ) {
        Ok(look) => {
            // Whoever claims it is told above where /proc or sysfs knows him; a mount in a
            // namespace without processes is not.
            if look.claim() == Claim::Another && !is_used {
                add_claimed(identity, doubts);
            }
            judge_contents(identity, &family, &look, doubts);
        }
        Err(error) => doubts.add(
            format!("it cannot be looked at: {error}"),
            "see to that first; what cannot be looked at is not written to",
        ),
    }
    blind
}

/// The same once more, with the device open for writing and claimed: nothing may have changed, and
/// nobody may have come.
pub(crate) fn judge_again(
    root: &SysRoot,
    identity: &TargetIdentity,
    words: &[String],
    look: &Look<'_>,
    doubts: &mut Doubts,
) {
    let now = TargetIdentity {
        layers: layers::below_device(root, &[], &identity.device).layers,
        ..identity.clone()
    };
    let who = |identity: &TargetIdentity| {
        let layer = identity.layers.first()?;
        let disk = disk_of(identity, layer);
        Some((
            layer.name.clone(),
            layer.size_bytes,
            layer.backing_file.clone(),
            disk.name.clone(),
            disk.serial.clone(),
            disk.model.clone(),
        ))
    };
    if who(&now).is_none() || who(&now) != who(identity) {
        doubts.add(
            "it is another device than a moment ago (name, size, serial or model)",
            "run again once nobody plugs disks in or out",
        );
    }
    judge_name(root, &now, words, doubts);
    judge_medium(root, &now, doubts);
    let Some(family) = family(root, &now, doubts) else {
        return;
    };
    in_use::judge(root, Subject::Device(&family), doubts);
    judge_contents(identity, &family, look, doubts);
}

/// What EBUSY on an exclusive opening means.
pub(crate) fn add_claimed(identity: &TargetIdentity, doubts: &mut Doubts) {
    doubts.add(
        "the kernel says that something claims it for itself (EBUSY on an exclusive open): a \
         mount in a namespace that cannot be seen, swap, RAID, LVM, ZFS or another program",
        format!(
            "find it with: lsblk {0}; fuser --verbose {0}; zpool status",
            quoted(&identity.path)
        ),
    );
}

fn judge_name(root: &SysRoot, identity: &TargetIdentity, words: &[String], doubts: &mut Doubts) {
    let names = names(root, identity);
    if names.match_any(words) {
        return;
    }
    let step = format!(
        "name a directory on it, in which a scratch file is made, or type --destroy and {}",
        names.described
    );
    if words.is_empty() {
        doubts.add("its name was not given", step);
    } else {
        let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        doubts.add(
            format!("--destroy {} does not name it", words.join(", ")),
            step,
        );
    }
}

fn judge_medium(root: &SysRoot, identity: &TargetIdentity, doubts: &mut Doubts) {
    if identity.kind != TargetKind::BlockDevice {
        return doubts.add("it is not a block device", "name one");
    }
    let size = format_bytes(identity.size_bytes);
    match identity.size_bytes {
        0 => doubts.add(
            "the device has a size of 0: no medium, or not set up",
            "insert the medium, or name another device",
        ),
        bytes if bytes < READ_BYTES_MIN => {
            doubts.add(
                format!("the device is too small: {size}, and at least 1 MiB is needed"),
                "name a larger device",
            );
        }
        _ => {}
    }
    let Some(layer) = identity.layers.first() else {
        return;
    };
    let disk = disk_of(identity, layer);
    for read_only in [layer, disk]
        .into_iter()
        .filter(|layer| layer.read_only)
        .take(1)
    {
        doubts.add(
            format!("{} is read-only", read_only.name),
            format!(
                "blockdev --setrw /dev/{}, if the device allows it",
                read_only.name
            ),
        );
    }
    let zoned = read_text(
        &root
            .sys
            .join("class/block")
            .join(&disk.name)
            .join("queue/zoned"),
    );
    if let Some(model) = zoned.filter(|model| model == "host-managed") {
        doubts.add(
            format!(
                "it is a zoned disk ({model}), which takes writes only in order within each zone"
            ),
            "name another device",
        );
    }
}

fn family(root: &SysRoot, identity: &TargetIdentity, doubts: &mut Doubts) -> Option<Family> {
    let Some(family) = Family::of(root, &identity.device) else {
        doubts.add(
            format!(
                "sysfs does not show the device {}, so nobody can say who uses it",
                identity.device
            ),
            "mount /sys, or run outside of the container",
        );
        return None;
    };
    for other in &family.overlapping {
        doubts.add(
            format!("the partition {other} overlaps it"),
            "mend the partition table, or name the whole disk",
        );
    }
    for path in &family.paths {
        doubts.add(
            format!("{path} is another path to the same disk"),
            "name the multipath device (multipath -ll), or take the other paths away",
        );
    }
    for file in &family.backing_files {
        if file.id.is_none() {
            let path = file.path.display();
            doubts.add(
                format!(
                    "the file behind {} ({path}) cannot be looked at from here, so nobody can say \
                     who else uses it",
                    file.above
                ),
                "run where that file can be seen, or make the loop device again over a file that \
                 has a name",
            );
        } else {
            super::postgres::judge_file(&file.path, doubts);
        }
    }
    if identity
        .layers
        .first()
        .is_some_and(|layer| layer.kind == LayerKind::Loop)
        && family.backing_files.is_empty()
        && family.members.len() == 1
    {
        doubts.add(
            "the loop device has no file behind it",
            "losetup --all shows those that have",
        );
    }
    Some(family)
}

fn judge_contents(
    identity: &TargetIdentity,
    family: &Family,
    look: &Look<'_>,
    doubts: &mut Doubts,
) {
    let found = look.scan(identity.size_bytes, &family.slices);
    contents::judge_device(&identity.path, &found, doubts);
    if family.whole != family.target {
        judge_disk_around(&family.whole, doubts);
    }
}

/// A member of a RAID of the firmware, say, shows the partitions of the volume as its own.
fn judge_disk_around(disk: &Member, doubts: &mut Doubts) {
    let node = disk.node();
    let size_bytes = crate::disk::size_bytes(&disk.at).unwrap_or(0);
    match Look::beside(&node, &disk.device) {
        Ok(look) => contents::judge_around(&node, &look.scan_around(size_bytes), doubts),
        Err(error) => doubts.add(
            format!("its whole disk cannot be looked at: {error}"),
            "see to that first; what cannot be looked at is not written to",
        ),
    }
}
