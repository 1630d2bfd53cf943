//! What every target needs, for any intent: a size, free space, a disk below it, permissions. Opens
//! nothing.

use super::refusal::RefusalReasons;
use crate::errno;
use crate::filesystems::{KERNEL_FILESYSTEMS, MEMORY_FILESYSTEMS};
use crate::held::Held;
use diskproof_model::target::{TargetIdentity, TargetKind};
use rustix::fs::{Access as Permission, access};
use rustix::io::Errno;
use std::sync::OnceLock;

/// The smallest device that is measured: below one MiB a single large request covers all of it.
/// Files may be smaller, because tests of synchronous writes write a few blocks, and others read
/// them back.
pub const READ_BYTES_MIN: u64 = 1 << 20;
/// Free space that a scratch file leaves on the filesystem: room for the database's next WAL
/// segments and its log.
const FREE_BYTES_KEPT: u64 = 2 << 30;
/// Of a small filesystem, one in this many bytes is enough.
const FREE_SHARE_KEPT: u64 = 10;
/// What the user wants to stay free instead.
static KEPT_FREE: OnceLock<u64> = OnceLock::new();

/// Sets how much space every filesystem keeps free, for all of the process, in place of 2 GiB or 10
/// %. Only the first call counts.
pub fn keep_free(bytes: u64) {
    let _ = KEPT_FREE.set(bytes);
}

pub(super) fn bytes_kept_free(filesystem_bytes: u64) -> u64 {
    let default = FREE_BYTES_KEPT.min(filesystem_bytes / FREE_SHARE_KEPT);
    KEPT_FREE.get().copied().unwrap_or(default)
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
