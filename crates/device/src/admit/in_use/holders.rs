//! Finds the devices that lie on a device (device mapper, MD, bcache), with the command by which
//! each lets it go.

use crate::admit::reasons::{RefusalReasons, Step};
use crate::kernel::naming::node;
use crate::kernel::sysroot::{SysRoot, list, read_text};
use diskproof_model::shell::quoted;
use std::path::Path;

/// Devices on top of each other are followed so far: a broken sysfs might have circles. Chosen, not
/// measured; the lowest holders are reasons in any case.
const HOLDERS_DEPTH_MAX: u32 = 16;

/// Adds a reason for each device on top of the device `name`, whose directory in sysfs is `sysfs`.
pub(super) fn judge_holders(
    root: &SysRoot,
    name: &str,
    sysfs: &Path,
    reasons: &mut RefusalReasons,
) {
    judge_holders_at(root, name, sysfs, reasons, 0);
}

/// As [`judge_holders`], of a device that lies on `depth` others.
fn judge_holders_at(
    root: &SysRoot,
    name: &str,
    sysfs: &Path,
    reasons: &mut RefusalReasons,
    depth: u32,
) {
    if depth > HOLDERS_DEPTH_MAX {
        return;
    }
    for holder in list(&sysfs.join("holders")) {
        let above = sysfs
            .join("holders")
            .join(&holder)
            .canonicalize()
            .unwrap_or_else(|_| root.sys.join("class/block").join(&holder));
        // Top down is the order in which they have to go.
        judge_holders_at(root, &holder, &above, reasons, depth + 1);
        let holder = describe_holder(&holder, &above);
        let part = format!("{} is part of {}", node(name), holder.what);
        reasons.add(part, Step::clause(holder.release));
    }
}

/// A device that lies on another one.
struct Holder {
    /// Words for the device, such as `the array /dev/md0 (raid1)`.
    what: String,
    /// The command with which it lets go.
    release: String,
}

/// Describes the holder of this name, whose directory in sysfs is `sysfs`.
fn describe_holder(name: &str, sysfs: &Path) -> Holder {
    let node = node(name);
    if let Some(mapped) = read_text(&sysfs.join("dm/name")) {
        let uuid = read_text(&sysfs.join("dm/uuid")).unwrap_or_default();
        let release = match uuid.split('-').next().unwrap_or_default() {
            "LVM" => format!("vgchange --activate n {}", quoted(&volume_group(&mapped))),
            "CRYPT" => format!("cryptsetup close {}", quoted(&mapped)),
            "mpath" => format!("multipath -f {}", quoted(&mapped)),
            _ => format!("dmsetup remove {}", quoted(&mapped)),
        };
        Holder {
            what: format!("{node} ({mapped})"),
            release,
        }
    } else if sysfs.join("md").is_dir() {
        let level = read_text(&sysfs.join("md/level")).unwrap_or_else(|| "RAID".to_owned());
        Holder {
            what: format!("the array {node} ({level})"),
            release: format!("mdadm --stop {node}"),
        }
    } else if sysfs.join("bcache").is_dir() {
        Holder {
            what: format!("the cache {node}"),
            release: format!("echo 1 > {}/bcache/stop", sysfs.display()),
        }
    } else {
        Holder {
            release: format!("take {node} down"),
            what: node,
        }
    }
}

/// The group's part of the mapped name `group-volume`; dashes within a name are doubled.
fn volume_group(mapped: &str) -> String {
    let hidden = mapped.replace("--", "\0");
    let group = hidden.split('-').next().unwrap_or_default();
    group.replace('\0', "-")
}
