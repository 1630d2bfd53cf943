//! Judges whether an existing file may be overwritten: only where the user released it, nothing
//! uses it, it belongs to no server, and it holds no known format. Reads its ends; writes nothing.

use super::ancestry::{Ancestry, OtherAncestries};
use super::common_reasons::{judge_access, judge_filesystem_kind};
use super::contents;
use super::in_use;
use super::permit::{Overwriting, VisibilityGaps};
use super::reasons::{RefusalReasons, Step};
use super::servers;
use super::space;
use super::subject::Subject;
use crate::admit::inspect::Inspector;
use crate::failure::{OpenError, changed, open_failed};
use crate::file::held::Held;
use crate::file::own_mark;
use crate::kernel::file_id::FileId;
use crate::kernel::steps::{self, GateStep};
use crate::kernel::sysroot::SysRoot;
use diskproof_model::shell::quoted;
use diskproof_model::target::{TargetIdentity, TargetKind};
use rustix::fs::{
    Access as Permission, AtFlags, OFlags, StatxAttributes, StatxFlags, fstat, statx,
};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// Everything that speaks against overwriting it, before it is opened for writing.
pub(super) fn judge(
    root: &SysRoot,
    identity: &TargetIdentity,
    overwriting: Overwriting,
    reasons: &mut RefusalReasons,
) -> VisibilityGaps {
    if identity.kind != TargetKind::File {
        reasons.add("it is not a regular file", Step::clause("name one"));
        return VisibilityGaps::default();
    }
    if overwriting == Overwriting::Forbidden {
        add_unreleased(overwriting, reasons);
    }
    judge_filesystem_kind(identity, reasons);
    let held = match Held::identified(identity) {
        Ok(held) => held,
        Err(error) => {
            add_uninspected(&error, reasons);
            return VisibilityGaps::default();
        }
    };
    judge_file_access(identity, &held, reasons);
    let gaps = judge_owners(root, identity, held.fd(), reasons);
    match held.reopen(OFlags::RDONLY | OFlags::NONBLOCK) {
        Ok(fd) => {
            judge_own(overwriting, fd.as_fd(), reasons);
            let scanned = Inspector::through(fd.as_fd()).scan(identity.size_bytes, &[]);
            contents::judge_file(&scanned, reasons);
        }
        Err(errno) => add_uninspected(&open_failed(&identity.path, errno), reasons),
    }
    gaps
}

fn add_unreleased(overwriting: Overwriting, reasons: &mut RefusalReasons) {
    let alternative = match overwriting {
        // Another tool's command line, which creates the file that it names.
        Overwriting::Own => "name a file that does not exist yet",
        Overwriting::Forbidden | Overwriting::Allowed => "name a directory for a scratch file",
    };
    reasons.add(
        "an existing file is only read unless you release it",
        Step::clause(format!(
            "{alternative}, or add --overwrite: the content is lost, the size stays"
        )),
    );
}

/// Judges a file where only files of our own are released, and this is another one.
fn judge_own(overwriting: Overwriting, fd: BorrowedFd<'_>, reasons: &mut RefusalReasons) {
    if overwriting == Overwriting::Own && !own_mark::is_valid(fd) {
        add_unreleased(overwriting, reasons);
    }
}

fn add_uninspected(error: &OpenError, reasons: &mut RefusalReasons) {
    reasons.add_uninspected(format!("its content cannot be inspected: {error}"));
}

/// Judges protection by chattr(1), which holds for root too; the refusal names the flag.
fn judge_file_access(identity: &TargetIdentity, held: &Held, reasons: &mut RefusalReasons) {
    let attributes = match statx(held.fd(), "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS) {
        Ok(stat) => stat.stx_attributes,
        Err(_) => StatxAttributes::empty(),
    };
    let path = quoted(&identity.path);
    if attributes.contains(StatxAttributes::IMMUTABLE) {
        reasons.add(
            "it is immutable",
            Step::clause(format!("chattr -i {path}, if you made it so")),
        );
    } else if attributes.contains(StatxAttributes::APPEND) {
        reasons.add(
            "it is append-only",
            Step::clause(format!("chattr -a {path}, if you made it so")),
        );
    } else {
        let wanted = Permission::READ_OK | Permission::WRITE_OK;
        judge_access(identity, &held.proc_path(), wanted, reasons);
    }
}

/// Judges once more, with the file open for writing: everything but its name is read from the
/// descriptor, and its name and its directories must stay what they are while that lasts.
pub(crate) fn judge_again(
    root: &SysRoot,
    identity: &TargetIdentity,
    held: &Held,
    fd: BorrowedFd<'_>,
    overwriting: Overwriting,
    reasons: &mut RefusalReasons,
) -> Result<VisibilityGaps, OpenError> {
    judge_own(overwriting, fd, reasons);
    let before = Ancestry::above_file(&identity.path, held.id())?;
    let gaps = judge_owners(root, identity, fd, reasons);
    let uses = space::file_uses(identity, fd);
    space::shared::judge_files(&uses, space::shared::FREE_OR_SMALLER, reasons);
    let scanned = Inspector::through(fd).scan(identity.size_bytes, &[]);
    contents::judge_file(&scanned, reasons);
    held.check_steady(&identity.path)?;
    if Ancestry::above_file(&identity.path, held.id())?.is_same(&before) {
        return Ok(gaps);
    }
    Err(changed(
        &identity.path,
        "another process renamed a directory above it",
    ))
}

/// Refuses a file that belongs to a server, has other names, or is in use. Returns what of its
/// users could not be seen.
fn judge_owners(
    root: &SysRoot,
    identity: &TargetIdentity,
    fd: BorrowedFd<'_>,
    reasons: &mut RefusalReasons,
) -> VisibilityGaps {
    steps::before(GateStep::Judge);
    let stat = match fstat(fd) {
        Ok(stat) => stat,
        Err(errno) => {
            add_uninspected(&open_failed(&identity.path, errno), reasons);
            return VisibilityGaps::default();
        }
    };
    let id = FileId::from(&stat);
    match Ancestry::above_file(&identity.path, id) {
        Ok(above) => servers::judge_file(&above, reasons),
        Err(error) => add_uninspected(&error, reasons),
    }
    judge_other_ancestries(root, Path::new(&identity.path), id, reasons);
    judge_names(stat.st_nlink, reasons);
    let path = identity.path.as_str();
    in_use::judge(root, Subject::File { path, id }, reasons)
}

/// Refuses a file of a server whose directories another mount shows, and one whose directories no
/// mount shows.
pub(super) fn judge_other_ancestries(
    root: &SysRoot,
    path: &Path,
    id: FileId,
    reasons: &mut RefusalReasons,
) {
    let others = OtherAncestries::find(root, path, TargetKind::File, id);
    for above in &others.shown {
        servers::judge_file(above, reasons);
    }
    if let Some(part) = others.part_without_top {
        reasons.add(
            format!(
                "only {} of its filesystem is mounted here, so the directories above may belong to \
                 a database server",
                part.display()
            ),
            Step::clause("name it where the whole filesystem is mounted, or name another file"),
        );
    }
    if !others.are_all {
        reasons.add(MOUNTED_TOO_OFTEN, Step::clause("name another file"));
    }
}

/// The reason to refuse a target of whose places some were not looked at.
pub(super) const MOUNTED_TOO_OFTEN: &str =
    "it is mounted in more places than were checked, so a database server may use it there";

/// Refuses a file with another number of names than one. A file that has lost its name belongs to
/// whoever still has it open. `links` is `st_nlink`, whose width depends on the architecture.
pub(super) fn judge_names(links: impl Into<u64>, reasons: &mut RefusalReasons) {
    let count = links.into();
    match count {
        1 => {}
        0 => reasons.add(
            "it no longer has a name: another process removed it",
            Step::clause("name a file that exists"),
        ),
        _ => reasons.add(
            format!(
                "it has {count} names (hard links), and another program may be using one of them"
            ),
            Step::clause("copy it, and name the copy"),
        ),
    }
}
