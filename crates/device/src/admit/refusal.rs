//! Collects the reasons of a refusal until all are known, and finds those that any intent has: no
//! disk below the target, no permission. Opens nothing.

use crate::mounts::{KERNEL_FILESYSTEMS, MEMORY_FILESYSTEMS};
use crate::naming::errno_name;
use diskproof_model::target::{Filesystem, Refusal, TargetIdentity, TargetKind};
use diskproof_model::units::format_bytes;
use rustix::fs::{Access as Permission, access};

/// Separates a reason from its step.
const STEP: &str = " → ";

/// A reason of a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RefusalReason {
    /// A clause with its facts.
    pub(super) text: String,
    /// The command or action that ends the reason.
    pub(super) step: String,
}

/// The reasons of a refusal so far, each once.
#[derive(Debug, Default)]
pub(crate) struct RefusalReasons {
    reasons: Vec<RefusalReason>,
}

impl RefusalReasons {
    /// Adds a reason, a clause with its facts, and the step that ends it.
    pub(crate) fn add(&mut self, reason: impl Into<String>, step: impl Into<String>) {
        let reason = RefusalReason {
            text: reason.into(),
            step: step.into(),
        };
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// Adds that a target, or a part of it, cannot be inspected: then it is not written to.
    pub(super) fn add_uninspected(&mut self, reason: String) {
        let step = "solve this first; diskproof writes only to targets that it can inspect";
        self.add(reason, step);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.reasons.is_empty()
    }

    pub(crate) fn count(&self) -> usize {
        self.reasons.len()
    }

    /// Reasons first, then what to do: for a reading or a scratch file.
    pub(crate) fn into_refusal(self, asked: String) -> Refusal {
        let mut remedies: Vec<String> = Vec::new();
        let mut reasons = Vec::new();
        for RefusalReason { text, step } in self.reasons {
            reasons.push(text);
            if !remedies.contains(&step) {
                remedies.push(step);
            }
        }
        Refusal {
            asked,
            reasons,
            remedy: remedies.join(" "),
        }
    }

    /// Each reason with the command or action that ends it: for what would be destroyed.
    pub(crate) fn into_stepwise_refusal(self, asked: String) -> Refusal {
        let mut reasons = Vec::new();
        for RefusalReason { text, step } in self.reasons {
            reasons.push(format!("{text}{STEP}{}", clause(&step)));
        }
        Refusal {
            asked,
            reasons,
            remedy: "Nothing was written.".to_owned(),
        }
    }
}

/// A sentence as the end of another one; commands stay as they are.
fn clause(step: &str) -> String {
    let Some(sentence) = step.strip_suffix('.') else {
        return step.to_owned();
    };
    match sentence.chars().next() {
        Some(first) if first.is_uppercase() => first
            .to_lowercase()
            .chain(sentence.chars().skip(1))
            .collect(),
        _ => step.to_owned(),
    }
}

/// The smallest device that is measured: below one MiB a single large request covers all of it.
/// Files may be smaller, because tests of synchronous writes write a few blocks, and others read
/// them back.
pub const READ_BYTES_MIN: u64 = 1 << 20;
/// Free space that a scratch file leaves on the filesystem: room for the database's next WAL
/// segments and its log.
const FREE_BYTES_KEPT: u64 = 2 << 30;
/// On a small filesystem, one byte in so many is enough.
const FREE_SHARE_KEPT: u64 = 10;

/// The reserve in words, where the user names no other one.
pub(super) const RESERVE_BY_DEFAULT: &str = "10 % of the filesystem, at most 2 GiB";

/// The free space that must stay, in bytes.
pub(super) fn bytes_kept_free(filesystem: &Filesystem) -> u64 {
    let default = FREE_BYTES_KEPT.min(filesystem.size_bytes / FREE_SHARE_KEPT);
    filesystem.kept_free_bytes.unwrap_or(default)
}

/// Says what must stay free and why, as the end of a sentence; empty where the user wants nothing
/// to stay free.
pub(super) fn kept_free_text(filesystem: &Filesystem) -> String {
    let kept = format_bytes(bytes_kept_free(filesystem));
    match filesystem.kept_free_bytes {
        None => {
            format!(", and {kept} must stay free ({RESERVE_BY_DEFAULT}; --keep-free changes it)")
        }
        Some(0) => String::new(),
        Some(_) => format!(", and {kept} must stay free (--keep-free)"),
    }
}

/// Refuses what this user may not do with the target. `path` is that of the target, or that of a
/// held descriptor, whatever has the target's name by now.
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
        // In a container, or before a security module.
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
        remedy,
    );
}

/// Refuses a device without a medium, or one that is too small.
pub(super) fn judge_device_size(size_bytes: u64, reasons: &mut RefusalReasons) {
    match size_bytes {
        0 => reasons.add(
            "the device has a size of 0: it has no medium or is not set up",
            "Insert the medium, or name another device.",
        ),
        bytes if bytes < READ_BYTES_MIN => reasons.add(
            format!(
                "the device is too small: {}, but at least 1 MiB is needed",
                format_bytes(bytes)
            ),
            "Name a larger device.",
        ),
        _ => {}
    }
}

/// Refuses a filesystem that is not on a disk.
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

/// The request that a refusal names.
pub(crate) fn overwriting_asked(identity: &TargetIdentity) -> String {
    format!("overwrite {}", identity.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_become_clauses_and_commands_stay() {
        assert_eq!(
            clause("Run as root, or name another."),
            "run as root, or name another"
        );
        for same in ["umount /mnt/x.", "name one", "", "."] {
            assert_eq!(clause(same), same);
        }
    }
}
