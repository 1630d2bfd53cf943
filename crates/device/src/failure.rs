//! Explains to the user why a target could not be opened or prepared, and what to do about it.

use crate::kernel::naming::errno_name;
use crate::kernel::stopped_filesystem::is_stopped;
use crate::kernel::sysroot::SysRoot;
use diskproof_model::errno::is_of_disk;
use diskproof_model::target::Refusal;
use rustix::io::Errno;
use std::path::Path;

/// The reason why a target could not be opened or prepared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// EPERM on opening: no matter of file permissions.
    #[error(
        "{path}: the kernel or the hypervisor forbids opening it (EPERM), even for root. \
         'diskproof info {path}' still shows its identity, and a directory or file on it can be \
         measured"
    )]
    Forbidden {
        /// This path could not be opened.
        path: String,
    },
    /// The user lacks the permission (EACCES).
    #[error(
        "{path}: no permission to {doing} (EACCES); run as a user who may, or name another target"
    )]
    NotPermitted {
        /// This path could not be opened.
        path: String,
        /// This step failed; it completes "cannot …".
        doing: &'static str,
    },
    /// It is not what it was when it was looked at.
    #[error(
        "{path}: {what} since it was checked; nothing was written to it. Run again when no other \
         process changes it"
    )]
    Changed {
        /// This path was opened.
        path: String,
        /// This clause names the change.
        what: String,
    },
    /// The filesystem is full (ENOSPC).
    #[error(
        "{path}: the filesystem is full (ENOSPC) while trying to {doing}; free some space or \
         inodes, or use a smaller --size"
    )]
    NoSpace {
        /// The step concerned this path.
        path: String,
        /// This step failed; it completes "cannot …".
        doing: &'static str,
    },
    /// The quota is exhausted (EDQUOT).
    #[error(
        "{path}: this user's disk quota is exhausted (EDQUOT) while trying to {doing}; raise it, \
         or use a smaller --size"
    )]
    QuotaUsedUp {
        /// The step concerned this path.
        path: String,
        /// This step failed; it completes "cannot …".
        doing: &'static str,
    },
    /// The filesystem is read-only (EROFS).
    #[error(
        "{path}: cannot {doing}, because the filesystem is read-only (EROFS). If it should be \
         writable, the kernel may have stopped writes after an error; see dmesg"
    )]
    ReadOnly {
        /// The step concerned this path.
        path: String,
        /// This step failed; it completes "cannot …".
        doing: &'static str,
    },
    /// The gate had admitted the target for overwriting, and does no more: a reason appeared
    /// between the look and the opening.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Only a scratch file can be cut.
    #[error("{path}: only a scratch file can be truncated; name a directory")]
    NotScratch {
        /// The caller wanted to truncate this path.
        path: String,
    },
    /// Another process measures there.
    #[error("{path}: another diskproof is using it; wait until it has ended")]
    InUse {
        /// The directory.
        path: String,
    },
    /// A directory with a name of ours has content that is not ours.
    #[error(
        "{path}: {what}, so nothing in it was removed. An earlier diskproof left it, or it belongs \
         to another user or program. Inspect it, then rename or remove it"
    )]
    NotOurs {
        /// The directory.
        path: String,
        /// This clause says why the directory is not ours.
        what: String,
    },
    /// Our own directory holds what another program put there.
    #[error(
        "{path}: {what}, so it stays. What diskproof created in it is removed. Inspect it, then \
         rename or remove it"
    )]
    Stays {
        /// The directory.
        path: String,
        /// This clause names the foreign content.
        what: String,
    },
    /// No file descriptor is left (EMFILE or ENFILE).
    #[error(
        "{path}: no file descriptor is left ({errno}) to {doing}; use fewer --jobs, or raise the \
         limit (ulimit -n)"
    )]
    Descriptors {
        /// This path could not be opened.
        path: String,
        /// This step failed; it completes "cannot …".
        doing: &'static str,
        /// Name of the error number.
        errno: String,
    },
    /// Any other answer of the kernel.
    #[error("{path}: cannot {doing}: {errno}; see dmesg")]
    System {
        /// The step concerned this path.
        path: String,
        /// This step failed; it completes "cannot …".
        doing: &'static str,
        /// Name of the error number, such as `EIO`.
        errno: String,
    },
}

/// A call that failed because of the target: its disk answered with an error, or the kernel has
/// stopped its filesystem after one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetFailure {
    /// The call concerned this path.
    pub path: String,
    /// The call completes "cannot …".
    pub doing: String,
    /// Name of the error number.
    pub errno: String,
}

impl OpenError {
    /// The failure of the target that this error shows; `None` of any other reason. A filesystem
    /// that its administrator has mounted read-only has not failed.
    pub fn of_target(&self) -> Option<TargetFailure> {
        let failure = |path: &str, doing: &str, errno: &str| {
            Some(TargetFailure {
                path: path.to_owned(),
                doing: doing.to_owned(),
                errno: errno.to_owned(),
            })
        };
        match self {
            Self::System { path, doing, errno } if is_of_disk(errno) => failure(path, doing, errno),
            Self::ReadOnly { path, doing } if is_stopped(&SysRoot::default(), Path::new(path)) => {
                failure(path, doing, "EROFS")
            }
            Self::System { .. }
            | Self::ReadOnly { .. }
            | Self::Forbidden { .. }
            | Self::NotPermitted { .. }
            | Self::Changed { .. }
            | Self::NoSpace { .. }
            | Self::QuotaUsedUp { .. }
            | Self::Refused(_)
            | Self::NotScratch { .. }
            | Self::InUse { .. }
            | Self::NotOurs { .. }
            | Self::Stays { .. }
            | Self::Descriptors { .. } => None,
        }
    }

    /// The error for an answer of the kernel to the step `doing`, which completes "cannot …".
    pub(crate) fn from_errno(path: &str, doing: &'static str, errno: Errno) -> Self {
        let path = path.to_owned();
        match errno {
            Errno::ACCESS => Self::NotPermitted { path, doing },
            Errno::NOSPC => Self::NoSpace { path, doing },
            Errno::DQUOT => Self::QuotaUsedUp { path, doing },
            Errno::ROFS => Self::ReadOnly { path, doing },
            Errno::MFILE | Errno::NFILE => Self::Descriptors {
                path,
                doing,
                errno: errno_name(errno),
            },
            other => Self::System {
                path,
                doing,
                errno: errno_name(other),
            },
        }
    }
}

/// The error for a target that is not what it was.
pub(crate) fn changed(path: &str, what: &str) -> OpenError {
    OpenError::Changed {
        path: path.to_owned(),
        what: what.to_owned(),
    }
}

/// The error for a target that was looked at before and cannot be opened now.
pub(crate) fn open_failed(path: &str, errno: Errno) -> OpenError {
    match errno {
        Errno::PERM => OpenError::Forbidden {
            path: path.to_owned(),
        },
        Errno::NOENT | Errno::NOTDIR => changed(path, "it vanished"),
        Errno::LOOP => changed(path, "a symlink took its place"),
        other => OpenError::from_errno(path, "open it", other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_errno_gets_its_own_remedy() {
        let cases = [
            (Errno::NOSPC, "--size"),
            (Errno::DQUOT, "quota"),
            (Errno::ROFS, "dmesg"),
            (Errno::ACCESS, "user"),
            (Errno::MFILE, "--jobs"),
            (Errno::IO, "EIO"),
        ];
        for (errno, part) in cases {
            let error = OpenError::from_errno("/data", "create a scratch file in it", errno);
            let text = error.to_string();
            assert!(text.starts_with("/data: ") && text.contains(part), "{text}");
            assert!(text.contains(&errno_name(errno)), "{text}");
        }
    }

    #[test]
    fn error_of_the_disk_is_told_from_one_of_the_system() {
        let of_target = |errno| {
            OpenError::from_errno("/none", "write it back (fdatasync)", errno)
                .of_target()
                .map(|failure| failure.errno)
        };
        assert_eq!(of_target(Errno::IO).as_deref(), Some("EIO"));
        assert_eq!(of_target(Errno::NODEV).as_deref(), Some("ENODEV"));
        for errno in [Errno::NOSPC, Errno::ROFS, Errno::NOMEM, Errno::MFILE] {
            assert_eq!(of_target(errno), None, "{errno}");
        }
    }
}
