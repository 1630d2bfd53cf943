//! Whether an existing file may be overwritten: the user said so, nobody uses it, it belongs to no
//! server, and it is no image of anything. Reads its ends; writes nothing.

use super::doubts::Doubts;
use super::in_use::{self, Blind, Subject};
use super::{
    READ_BYTES_MIN, bytes_kept_free, contents, judge_access, judge_filesystem_kind, postgres,
    servers,
};
use crate::look::Look;
use crate::sysroot::SysRoot;
use diskproof_model::shell::quoted;
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::format_bytes;
use rustix::fs::{Access as Permission, AtFlags, CWD, StatxAttributes, StatxFlags, stat, statx};
use std::path::Path;

/// Whether the user said that existing files may be overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overwriting {
    /// No: they are only read.
    #[default]
    Forbidden,
    /// Yes, by `--overwrite`.
    Allowed,
}

/// Everything that speaks against overwriting it, before it is opened for writing.
pub(super) fn judge(
    root: &SysRoot,
    identity: &TargetIdentity,
    overwriting: Overwriting,
    doubts: &mut Doubts,
) -> Blind {
    if identity.kind != TargetKind::File {
        doubts.add("it is not a regular file", "name one");
        return Blind::default();
    }
    if overwriting == Overwriting::Forbidden {
        doubts.add(
            "an existing file is only read unless the user gives it up",
            "name a directory, in which a scratch file is made, or add --overwrite: the content \
             is lost, the size stays",
        );
    }
    if identity.size_bytes < READ_BYTES_MIN {
        let size = format_bytes(identity.size_bytes);
        doubts.add(
            format!("the file is too small: {size}, and at least 1 MiB is needed"),
            "name a larger file, or a directory",
        );
    }
    judge_filesystem_kind(identity, doubts);
    judge_access_to_file(identity, doubts);
    let blind = judge_owners(root, identity, doubts);
    match Look::at_file(identity) {
        Ok(look) => contents::judge_file(&look.scan(identity.size_bytes, &[]), doubts),
        Err(error) => doubts.add(
            format!("it cannot be looked at: {error}"),
            "see to that first; what cannot be looked at is not written to",
        ),
    }
    blind
}

/// What chattr(1) protects is protected from root too, who is told by which flag.
fn judge_access_to_file(identity: &TargetIdentity, doubts: &mut Doubts) {
    let told = statx(
        CWD,
        &identity.path,
        AtFlags::empty(),
        StatxFlags::BASIC_STATS,
    )
    .ok();
    let has = |flag: StatxAttributes| told.is_some_and(|told| told.stx_attributes.contains(flag));
    let path = quoted(&identity.path);
    match () {
        () if has(StatxAttributes::IMMUTABLE) => doubts.add(
            "somebody made it immutable",
            format!("chattr -i {path}, if that was you"),
        ),
        () if has(StatxAttributes::APPEND) => doubts.add(
            "somebody made it append-only",
            format!("chattr -a {path}, if that was you"),
        ),
        () => judge_access(
            identity,
            Permission::READ_OK | Permission::WRITE_OK,
            "read and write",
            doubts,
        ),
    }
}

/// The same once more, with the file open for writing.
pub(crate) fn judge_again(
    root: &SysRoot,
    identity: &TargetIdentity,
    look: &Look<'_>,
    doubts: &mut Doubts,
) {
    judge_owners(root, identity, doubts);
    contents::judge_file(&look.scan(identity.size_bytes, &[]), doubts);
}

/// Servers, other names, other users, and the room that its holes will need.
fn judge_owners(root: &SysRoot, identity: &TargetIdentity, doubts: &mut Doubts) -> Blind {
    postgres::judge_file(Path::new(&identity.path), doubts);
    servers::judge_file(Path::new(&identity.path), doubts);
    let stat = match stat(&identity.path) {
        Ok(stat) => stat,
        Err(errno) => {
            doubts.add(
                format!("it cannot be looked at ({})", crate::errno::name(errno)),
                "check that it is still there",
            );
            return Blind::default();
        }
    };
    if stat.st_nlink > 1 {
        doubts.add(
            format!(
                "it has {} names (hard links), and somebody may need it under another one",
                stat.st_nlink
            ),
            "copy it, and name the copy",
        );
    }
    judge_room(
        identity,
        u64::try_from(stat.st_blocks)
            .unwrap_or(0)
            .saturating_mul(512),
        doubts,
    );
    in_use::judge(
        root,
        Subject::File {
            path: &identity.path,
            id: (stat.st_dev, stat.st_ino),
        },
        doubts,
    )
}

/// Holes take space as they are written, which could fill the filesystem.
fn judge_room(identity: &TargetIdentity, allocated_bytes: u64, doubts: &mut Doubts) {
    let Some(filesystem) = &identity.filesystem else {
        return;
    };
    let needed = identity.size_bytes.saturating_sub(allocated_bytes);
    let kept = bytes_kept_free(filesystem.size_bytes);
    if needed >= READ_BYTES_MIN && filesystem.free_bytes < needed.saturating_add(kept) {
        doubts.add(
            format!(
                "{} of it are holes that take space when they are written; {} are free, and {} \
                 (10 % of the filesystem, at least 2 GiB) must stay free",
                format_bytes(needed),
                format_bytes(filesystem.free_bytes),
                format_bytes(kept)
            ),
            "free some space, or name a smaller file",
        );
    }
}
