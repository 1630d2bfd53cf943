//! What every target needs, for any intent: a size, free space, a disk below it, permissions. Opens
//! nothing.

use super::refusal::RefusalReasons;
use crate::errno;
use crate::filesystems::{KERNEL_FILESYSTEMS, MEMORY_FILESYSTEMS};
use crate::held::Held;
use diskproof_model::target::{Filesystem, TargetIdentity, TargetKind};
use rustix::fs::{Access as Permission, access};
use rustix::io::Errno;

/// The smallest device that is measured: below one MiB a single large request covers all of it.
/// Files may be smaller, because tests of synchronous writes write a few blocks, and others read
/// them back.
pub const READ_BYTES_MIN: u64 = 1 << 20;
/// Free space that a scratch file leaves on the filesystem: room for the database's next WAL
/// segments and its log.
const FREE_BYTES_KEPT: u64 = 2 << 30;
/// Of a small filesystem, one in this many bytes is enough.
const FREE_SHARE_KEPT: u64 = 10;
pub(super) fn bytes_kept_free(filesystem: &Filesystem) -> u64 {
    let default = FREE_BYTES_KEPT.min(filesystem.size_bytes / FREE_SHARE_KEPT);
    filesystem.kept_free_bytes.unwrap_or(default)
}

pub(super) fn judge_access(
    identity: &TargetIdentity,
    wanted: Permission,
    doing: &str,
    reasons: &mut RefusalReasons,
) {
    add_denied(identity, access(&identity.path, wanted), doing, reasons);
}

/// The same for what is held, whatever has its name by now.
pub(super) fn judge_held_access(
    identity: &TargetIdentity,
    held: &Held,
    wanted: Permission,
    doing: &str,
    reasons: &mut RefusalReasons,
) {
    add_denied(identity, access(held.proc_path(), wanted), doing, reasons);
}

fn add_denied(
    identity: &TargetIdentity,
    answer: Result<(), Errno>,
    doing: &str,
    reasons: &mut RefusalReasons,
) {
    let Err(errno) = answer else {
        return;
    };
    let remedy = match identity.kind {
        TargetKind::BlockDevice => "Run as root or as a member of the device's group (often \
                                    `disk`), or name a directory on it."
            .to_owned(),
        _ => {
            format!("Run as a user who may {doing} it, or name a writable directory.")
        }
    };
    reasons.add(
        format!("this user may not {doing} it ({})", errno::name(errno)),
        remedy,
    );
}

/// Where there is no disk.
pub(super) fn judge_filesystem_kind(identity: &TargetIdentity, reasons: &mut RefusalReasons) {
    let Some(filesystem) = &identity.filesystem else {
        return reasons.add(
            "its filesystem is unknown",
            "Make sure that /proc is mounted.",
        );
    };
    let kind = filesystem.kind.as_str();
    if MEMORY_FILESYSTEMS.contains(&kind) {
        reasons.add(
            format!("{kind} is in memory, so there is no disk to measure"),
            "Name a directory on a disk.",
        );
    } else if KERNEL_FILESYSTEMS.contains(&kind) {
        reasons.add(
            format!("{kind} is a kernel interface, so there is no disk to measure"),
            "Name a directory on a disk.",
        );
    }
}

/// What a refusal says was asked for.
pub(crate) fn overwriting_asked(identity: &TargetIdentity) -> String {
    format!("overwrite {}", identity.path)
}
