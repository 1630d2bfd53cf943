//! The types by which a caller passes the gate: the user's consent and the caller's intent go in,
//! and an [`Admission`] comes out. It is the only way to open a target for writing.

use super::space::SpaceUse;
use super::space::unknown::unknown_space;
use diskproof_model::target::TargetIdentity;

/// The user's permission to overwrite existing files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overwriting {
    /// Existing files are only read.
    #[default]
    Forbidden,
    /// Only files that diskproof made, and that nothing has changed since, may be overwritten.
    Own,
    /// The user said `--overwrite`.
    Allowed,
}

/// The treatment of data at the ends of a device that no signature explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnknownContent {
    /// The device is refused.
    #[default]
    Refuse,
    /// Zeros replace it before the first workload, by `--wipe-unknown`.
    Wipe,
}

/// The targets that the user releases, in the words of the command line. Whatever exists is only
/// read without it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Consent {
    /// Names of block devices: serial or model in full, or the kernel name of one that has neither.
    pub destroy: Vec<String>,
    /// The permission to overwrite regular files.
    pub overwriting: Overwriting,
    /// The treatment of a device that holds data of an unknown format.
    pub unknown: UnknownContent,
}

/// The caller wants to use a target in one of these ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent<'a> {
    /// Read an existing file or a block device.
    Read,
    /// Write and read our own scratch file in a directory.
    Scratch {
        /// The most it may grow to, in bytes.
        size_bytes: u64,
    },
    /// Write and read our own scratch file in a directory, and the files of a temporary server
    /// there.
    Server {
        /// The most that the scratch file may grow to, in bytes.
        scratch_bytes: u64,
        /// The room that the server needs besides it, in bytes.
        server_bytes: u64,
    },
    /// Write and read files of our own in a directory, which may be there already if they keep
    /// their names.
    KeptFiles {
        /// The name that the file keeps, or the first of several; `None` of a scratch file.
        name: Option<&'a str>,
        /// The most that they may grow to together, in bytes.
        size_bytes: u64,
        /// The part of it for which blocks are allocated already, in bytes
        /// ([`own_allocated_bytes`](crate::own_allocated_bytes)).
        allocated_bytes: u64,
    },
    /// Write and read many files of our own in a directory of our own inside this one.
    Files {
        /// The most space that they take at a time, in bytes, about.
        size_bytes: u64,
        /// The most files at a time.
        count: u64,
    },
    /// Write to an existing file or a block device, whose content is lost.
    Overwrite(&'a Consent),
}

/// Permission to write to one target. Only the gate can make one.
#[derive(Debug)]
pub(crate) struct Permit {
    size_bytes: u64,
}

impl Permit {
    pub(super) fn new(size_bytes: u64) -> Self {
        Self { size_bytes }
    }

    /// The most that may be written to: the size that a scratch file may grow to, or that of the
    /// released target.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }
}

/// The gate grants one of these uses.
#[derive(Debug)]
pub(crate) enum Grant {
    Read,
    Scratch(Permit),
    /// With the user's words, which are compared with the device once more when it is open.
    Overwrite(Permit, Consent),
}

/// Processes that could not be checked. They do not speak against the target by themselves.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct VisibilityGaps {
    /// The number of processes whose open files this user may not look at.
    pub(crate) processes: u32,
    /// Set where there may be processes that are not even listed.
    pub(crate) hidden_by: Option<HiddenBy>,
    /// Processes with files that /proc does not list, such as `7 (qemu)`: files of requests in
    /// flight in an io_uring, descriptors in a message that nobody has received yet.
    pub(crate) unseen: Vec<String>,
}

/// Users of a target that cannot be seen.
pub(crate) struct HiddenUsers {
    /// Such as `one process of another user or the system`.
    pub(crate) who: String,
    /// The way to include them, an imperative clause.
    pub(crate) step: &'static str,
}

impl VisibilityGaps {
    /// The processes that cannot be looked at; `None` where all can.
    pub(crate) fn hidden_users(&self) -> Option<HiddenUsers> {
        let (who, step) = match (self.hidden_by, self.processes) {
            (Some(HiddenBy::Namespace), _) => (
                "a process outside of this container (PID namespace)".to_owned(),
                "run on the host",
            ),
            (Some(HiddenBy::MountOption), _) => (
                "a process of another user, which hidepid hides,".to_owned(),
                "run as root",
            ),
            (None, 0) => return None,
            (None, 1) => (
                "one process of another user or the system".to_owned(),
                as_root_on_the_host(),
            ),
            (None, processes) => (
                format!("one of {processes} processes of other users or the system"),
                as_root_on_the_host(),
            ),
        };
        Some(HiddenUsers { who, step })
    }
}

/// Root in a container lacks capabilities, and is root already.
fn as_root_on_the_host() -> &'static str {
    if rustix::process::geteuid().is_root() {
        "run on the host, or with CAP_SYS_PTRACE,"
    } else {
        "run as root, on the host,"
    }
}

/// One of these keeps processes out of /proc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HiddenBy {
    /// A PID namespace of our own: a container.
    Namespace,
    /// The mount option `hidepid`, for all but root.
    MountOption,
}

/// Leave to open one target once, for one intent.
#[derive(Debug)]
pub struct Admission {
    pub(super) identity: TargetIdentity,
    pub(super) grant: Grant,
    pub(super) gaps: VisibilityGaps,
    pub(super) space: Vec<SpaceUse>,
}

impl Admission {
    /// Returns the identity of the admitted target.
    pub fn identity(&self) -> &TargetIdentity {
        &self.identity
    }

    /// One sentence about what the gate could not check, where that matters: it then relies on the
    /// kernel's exclusive claim.
    pub fn hint(&self) -> Option<String> {
        let path = &self.identity.path;
        let mut parts = Vec::new();
        if let Some(HiddenUsers { who, step }) = self.gaps.hidden_users() {
            parts.push(format!(
                "cannot check whether {who} has it open; {step} to include them"
            ));
        }
        if let Some(first) = self.gaps.unseen.first() {
            let others = match self.gaps.unseen.len() {
                1 => String::new(),
                processes => format!(" and {} others", processes - 1),
            };
            parts.push(format!(
                "process {first}{others} may have it open without a descriptor, in an io_uring or \
                 in a message of a socket, which /proc does not show"
            ));
        }
        if !matches!(self.grant, Grant::Read) {
            parts.extend(unknown_space(&self.identity));
        }
        if let Some(kind) = self.kind_between_machines() {
            parts.push(format!(
                "{kind} is mounted by other machines, too, whose programs may have it open and \
                 cannot be seen from here"
            ));
        }
        if parts.is_empty() {
            return None;
        }
        Some(format!("{path}: {}", parts.join("; ")))
    }

    /// The type of a filesystem that other machines may have mounted, and that holds the file to be
    /// overwritten or the image behind the device.
    fn kind_between_machines(&self) -> Option<&str> {
        let Grant::Overwrite(..) = self.grant else {
            return None;
        };
        for space_use in &self.space {
            if let Some(filesystem) = &space_use.taker.filesystem
                && filesystem.is_shared_between_machines()
            {
                return Some(&filesystem.kind);
            }
        }
        None
    }

    pub(crate) fn into_parts(self) -> (TargetIdentity, Grant) {
        (self.identity, self.grant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe;

    #[test]
    fn hint_names_other_machines_where_a_shared_file_is_overwritten() {
        let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        let hint = |kind: &str, is_overwritten: bool| {
            let mut identity = probe(file.path()).unwrap();
            kind.clone_into(&mut identity.filesystem.as_mut().unwrap().kind);
            let space = vec![SpaceUse {
                taker: identity.clone(),
                bytes: 0,
                image: None,
            }];
            let grant = if is_overwritten {
                Grant::Overwrite(Permit::new(0), Consent::default())
            } else {
                Grant::Read
            };
            let gaps = VisibilityGaps::default();
            let admission = Admission {
                identity,
                grant,
                gaps,
                space,
            };
            admission.hint()
        };
        let shown = hint("nfs4", true).unwrap();
        assert!(
            shown.contains("nfs4 is mounted by other machines"),
            "{shown}"
        );
        assert!(hint("ocfs2", true).is_some());
        assert_eq!(hint("nfs4", false), None);
        assert_eq!(hint("ext4", true), None);
    }
}
