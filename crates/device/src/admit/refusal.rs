//! Collects the reasons of a refusal until all are known, and finds those that any intent has: no
//! disk below the target, no permission. Opens nothing.

use crate::mounts::{KERNEL_FILESYSTEMS, MEMORY_FILESYSTEMS};
use crate::naming::errno_name;
use diskproof_model::target::{Filesystem, Refusal, TargetIdentity, TargetKind};
use diskproof_model::units::format_bytes;
use rustix::fs::{Access as Permission, access};

/// What stands before the next step behind a reason.
const STEP: &str = " → ";

/// Reasons, and what can be done about each.
#[derive(Debug, Default)]
pub(crate) struct RefusalReasons {
    all: Vec<(String, String)>,
}

impl RefusalReasons {
    /// A reason, a clause with its facts, and what to do about it.
    pub(crate) fn add(&mut self, reason: impl Into<String>, step: impl Into<String>) {
        let reason_and_step = (reason.into(), step.into());
        if !self.all.contains(&reason_and_step) {
            self.all.push(reason_and_step);
        }
    }

    /// What cannot be inspected is not written to.
    pub(super) fn add_uninspected(&mut self, reason: String) {
        let step = "solve this first; diskproof writes only to targets that it can inspect";
        self.add(reason, step);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// Reasons first, then what to do: for a reading or a scratch file.
    pub(crate) fn into_refusal(self, asked: String) -> Refusal {
        let mut remedies: Vec<String> = Vec::new();
        let mut reasons = Vec::new();
        for (reason, step) in self.all {
            reasons.push(reason);
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
        let all = self.all.into_iter();
        let reasons = all.map(|(reason, step)| format!("{reason}{STEP}{}", clause(&step)));
        Refusal {
            asked,
            reasons: reasons.collect(),
            remedy: "Nothing was written.".to_owned(),
        }
    }
}

/// A sentence as the end of another one; commands stay as they are.
fn clause(step: &str) -> String {
    match step
        .strip_suffix('.')
        .and_then(|sentence| Some((sentence.chars().next()?, sentence)))
    {
        Some((first, sentence)) if first.is_uppercase() => first
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
/// Of a small filesystem, one in this many bytes is enough.
const FREE_SHARE_KEPT: u64 = 10;
pub(super) fn bytes_kept_free(filesystem: &Filesystem) -> u64 {
    let default = FREE_BYTES_KEPT.min(filesystem.size_bytes / FREE_SHARE_KEPT);
    filesystem.kept_free_bytes.unwrap_or(default)
}

/// Whether this user may do that with the target: by its path, or by what is held, whatever has its
/// name by now.
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
        _ => {
            format!("Run as a user who may {doing} it, or name a writable directory.")
        }
    };
    reasons.add(
        format!("this user may not {doing} it ({})", errno_name(errno)),
        remedy,
    );
}

/// Whether a device has a medium, and one that is large enough.
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
