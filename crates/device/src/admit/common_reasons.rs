//! Reasons of a refusal that any intent can have: no permission, a device that is too small, and no
//! disk below the target. Opens nothing.

use super::reasons::{RefusalReasons, Step};
use crate::kernel::mounts::{KERNEL_FILESYSTEMS, MEMORY_FILESYSTEMS};
use crate::kernel::naming::errno_name;
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::format_bytes;
use rustix::fs::{Access as Permission, access};

/// The smallest device that is measured: below one MiB a single large request covers all of it.
/// Files may be smaller, because tests of synchronous writes write a few blocks, and others read
/// them back.
const DEVICE_BYTES_MIN: u64 = 1 << 20;

/// Refuses what this user may not do with the target. `path` is that of the target, or that of a
/// held descriptor, so that what has the target's name by now does not matter.
pub(super) fn judge_access(
    identity: &TargetIdentity,
    path: &str,
    wanted: Permission,
    reasons: &mut RefusalReasons,
) {
    let Err(errno) = access(path, wanted) else {
        return;
    };
    let doing = if wanted.contains(Permission::WRITE_OK) {
        "read and write"
    } else {
        "read"
    };
    let is_root = rustix::process::geteuid().is_root();
    let remedy = match identity.kind {
        // Root is refused only in a container or by a security module.
        TargetKind::BlockDevice if is_root => "Give the container the device (--device) and \
                                               CAP_DAC_OVERRIDE, or name a directory on it."
            .to_owned(),
        TargetKind::BlockDevice => "Run as root or as a member of the device's group (often \
                                    `disk`), or name a directory on it."
            .to_owned(),
        TargetKind::File | TargetKind::Directory => {
            format!("Run as a user who may {doing} it, or name a writable directory.")
        }
    };
    reasons.add(
        format!("this user may not {doing} it ({})", errno_name(errno)),
        Step::sentence(remedy),
    );
}

/// Refuses a device without a medium, or one that is too small.
pub(super) fn judge_device_size(size_bytes: u64, reasons: &mut RefusalReasons) {
    match size_bytes {
        0 => reasons.add(
            "the device has a size of 0: it has no medium or is not set up",
            Step::sentence("Insert the medium, or name another device."),
        ),
        bytes if bytes < DEVICE_BYTES_MIN => reasons.add(
            format!(
                "the device is too small: {}, but at least {} is needed",
                format_bytes(bytes),
                format_bytes(DEVICE_BYTES_MIN)
            ),
            Step::sentence("Name a larger device."),
        ),
        _ => {}
    }
}

/// Refuses a filesystem that is not on a disk.
pub(super) fn judge_filesystem_kind(identity: &TargetIdentity, reasons: &mut RefusalReasons) {
    let Some(filesystem) = &identity.filesystem else {
        return reasons.add(
            "its filesystem is unknown",
            Step::sentence("Make sure that /proc is mounted."),
        );
    };
    let kind = filesystem.kind.as_str();
    if MEMORY_FILESYSTEMS.contains(&kind) {
        reasons.add(
            format!("{kind} is in memory, so there is no disk to measure"),
            Step::sentence("Name a directory on a disk."),
        );
    } else if KERNEL_FILESYSTEMS.contains(&kind) {
        reasons.add(
            format!("{kind} is a kernel interface, so there is no disk to measure"),
            Step::sentence("Name a directory on a disk."),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_below_the_minimum_is_refused() {
        for (size_bytes, refusals) in [(0, 1), (DEVICE_BYTES_MIN - 1, 1), (DEVICE_BYTES_MIN, 0)] {
            let mut reasons = RefusalReasons::default();
            judge_device_size(size_bytes, &mut reasons);
            assert_eq!(reasons.count(), refusals, "{size_bytes}");
        }
    }
}
