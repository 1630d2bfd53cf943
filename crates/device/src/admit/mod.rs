//! Decides whether a target may be opened: the gate. An identity and an intent become an
//! [`Admission`], or a [`Refusal`] with every reason found. Opens a target only to look at what it
//! holds, and never for writing.

mod ancestry;
mod common_reasons;
mod contents;
pub(crate) mod device;
mod family;
pub(crate) mod file;
mod in_use;
pub(crate) mod inspect;
mod kept_free;
mod loop_devices;
mod names;
mod openers;
mod output;
mod permit;
pub(crate) mod reasons;
mod servers;
mod snapshots;
mod space;
mod subject;

use crate::file::held::Held;
use crate::kernel::file_id::FileId;
use crate::kernel::mounts::is_in_memory;
use crate::kernel::naming::errno_name;
use crate::kernel::sysroot::SysRoot;
use ancestry::{Ancestry, OtherAncestries};
use common_reasons::{judge_access, judge_device_size, judge_filesystem_kind};
use diskproof_model::target::{Refusal, TargetIdentity, TargetKind};
use diskproof_model::units::{counted, format_bytes};
use kept_free::{SPACE_STEP_BYTES, bytes_kept_free, kept_free_text};
pub use openers::Writer;
pub use output::{ForeignData, judge_output_directory, judge_replaced_file};
pub use permit::{Admission, Consent, Intent, Overwriting, UnknownContent};
pub(crate) use permit::{Grant, HiddenUsers, Permit, VisibilityGaps};
pub(crate) use reasons::overwriting_asked;
use reasons::{RefusalReasons, Step};
use rustix::fs::{Access as Permission, StatVfsMountFlags, access, statvfs};
use rustix::io::Errno;
pub use servers::{DatabaseContent, DatabaseDirectory};
use space::{SpaceNeed, SpaceUse};
use std::os::fd::BorrowedFd;
use std::path::Path;

/// Suggested sizes of a GiB and more are whole GiB.
const GIB: u64 = 1 << 30;
/// One inode in so many stays free: the same share as of the space on a small filesystem.
const KEPT_INODES_SHARE: u64 = 10;

/// The files that are created in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CreatedFiles {
    /// One scratch file, which needs a disk below.
    Scratch,
    /// A scratch file and those of a server.
    Server {
        /// The room that the server needs besides the scratch file.
        server_bytes: u64,
    },
    /// Many files, which may be in memory.
    Many,
}

/// Admits a target, or names everything that speaks against it. Writes nothing; what would be
/// overwritten is inspected first.
pub fn admit(identity: TargetIdentity, intent: Intent<'_>) -> Result<Admission, Refusal> {
    admit_requests(identity, intent, 1)
}

/// As [`admit`], where the largest request has `request_bytes`: a smaller file has no room for it.
/// A file that is going to grow has 0, and may be empty.
pub fn admit_requests(
    identity: TargetIdentity,
    intent: Intent<'_>,
    request_bytes: u64,
) -> Result<Admission, Refusal> {
    if !is_proc_mounted() {
        return Err(without_proc(&identity, intent));
    }
    let mut reasons = RefusalReasons::default();
    let mut space = Vec::new();
    let (asked, grant) = match intent {
        Intent::Read => {
            judge_read(&identity, request_bytes, &mut reasons);
            (format!("read {}", identity.path), Grant::Read)
        }
        Intent::Scratch { size_bytes } => {
            let need = SpaceNeed::new(size_bytes);
            space = judge_directory(&identity, need, CreatedFiles::Scratch, &mut reasons);
            let permit = Permit::new(size_bytes);
            (scratch_asked(&identity, size_bytes), Grant::Scratch(permit))
        }
        Intent::Server {
            scratch_bytes,
            server_bytes,
        } => {
            let size_bytes = scratch_bytes.saturating_add(server_bytes);
            let files = CreatedFiles::Server { server_bytes };
            space = judge_directory(&identity, SpaceNeed::new(size_bytes), files, &mut reasons);
            let asked = server_asked(&identity, scratch_bytes, server_bytes);
            (asked, Grant::Scratch(Permit::new(size_bytes)))
        }
        Intent::KeptFiles {
            name,
            size_bytes,
            allocated_bytes,
        } => {
            let need = SpaceNeed {
                size_bytes,
                allocated_bytes,
            };
            space = judge_directory(&identity, need, CreatedFiles::Scratch, &mut reasons);
            let permit = Permit::new(size_bytes);
            let asked = file_asked(&identity, name, size_bytes);
            (asked, Grant::Scratch(permit))
        }
        Intent::Files { size_bytes, count } => {
            // Empty files take space in directories, too.
            let need = SpaceNeed::new(size_bytes.max(SPACE_STEP_BYTES));
            space = judge_directory(&identity, need, CreatedFiles::Many, &mut reasons);
            judge_inodes(&identity, count, &mut reasons);
            let asked = files_asked(&identity, size_bytes, count);
            (asked, Grant::Scratch(Permit::new(size_bytes)))
        }
        Intent::Overwrite(consent) => {
            return admit_overwriting(identity, consent, request_bytes);
        }
    };
    if reasons.is_empty() {
        let gaps = VisibilityGaps::default();
        return Ok(Admission {
            identity,
            grant,
            gaps,
            space,
        });
    }
    Err(reasons.into_refusal(asked))
}

/// Refuses targets that together would take more of a filesystem's free space than there is, though
/// each of them alone has room.
pub fn check_space_together<'a>(
    admissions: impl Iterator<Item = &'a Admission>,
) -> Result<(), Refusal> {
    let mut reasons = RefusalReasons::default();
    space::shared::judge_together(
        admissions.flat_map(|admission| &admission.space),
        &mut reasons,
    );
    if reasons.is_empty() {
        return Ok(());
    }
    Err(reasons.into_refusal("write to these targets in one run".to_owned()))
}

fn files_asked(identity: &TargetIdentity, size_bytes: u64, count: u64) -> String {
    let (files, size) = (counted(count, "file"), format_bytes(size_bytes));
    format!("create {files} ({size}) in {}", identity.path)
}

fn is_proc_mounted() -> bool {
    std::fs::exists("/proc/self/fd").unwrap_or(false)
}

/// The refusal without /proc, with this reason alone: every other one would only follow from it.
fn without_proc(identity: &TargetIdentity, intent: Intent<'_>) -> Refusal {
    let asked = match intent {
        Intent::Read => format!("read {}", identity.path),
        Intent::Scratch { size_bytes } => scratch_asked(identity, size_bytes),
        Intent::Server {
            scratch_bytes,
            server_bytes,
        } => server_asked(identity, scratch_bytes, server_bytes),
        Intent::KeptFiles {
            name, size_bytes, ..
        } => file_asked(identity, name, size_bytes),
        Intent::Files { size_bytes, count } => files_asked(identity, size_bytes, count),
        Intent::Overwrite(_) => overwriting_asked(identity),
    };
    let mut reasons = RefusalReasons::default();
    reasons.add(
        "/proc is not mounted, so neither the filesystem of the target nor its mounts and users \
         can be checked",
        Step::sentence("Mount it (mount -t proc proc /proc), or start the container with it."),
    );
    match intent {
        Intent::Overwrite(_) => reasons.into_stepwise_refusal(asked),
        Intent::Read
        | Intent::Scratch { .. }
        | Intent::Server { .. }
        | Intent::KeptFiles { .. }
        | Intent::Files { .. } => reasons.into_refusal(asked),
    }
}

fn admit_overwriting(
    identity: TargetIdentity,
    consent: &Consent,
    request_bytes: u64,
) -> Result<Admission, Refusal> {
    let (root, mut reasons) = (SysRoot::default(), RefusalReasons::default());
    let gaps = match identity.kind {
        TargetKind::BlockDevice => device::judge(&root, &identity, consent, &mut reasons),
        TargetKind::File => {
            // A file of our own grows; an empty one is what a run leaves that ends before its first
            // write.
            if consent.overwriting != Overwriting::Own
                && let Some(reason) = no_room(&identity, request_bytes)
            {
                reasons.add(reason, Step::clause("name a larger file, or a directory"));
            }
            file::judge(&root, &identity, consent.overwriting, &mut reasons)
        }
        TargetKind::Directory => {
            reasons.add(
                "it is a directory",
                Step::clause("name a regular file or a block device"),
            );
            VisibilityGaps::default()
        }
    };
    let space = space::released_uses(&identity);
    space::shared::judge_files(&space, space::shared::FREE_OR_SMALLER, &mut reasons);
    snapshots::judge(&identity, identity.size_bytes, &mut reasons);
    if !reasons.is_empty() {
        return Err(reasons.into_stepwise_refusal(overwriting_asked(&identity)));
    }
    let grant = Grant::Overwrite(Permit::new(identity.size_bytes), consent.clone());
    Ok(Admission {
        identity,
        grant,
        gaps,
        space,
    })
}

/// Judges the directory of a scratch file once more, now that it is open: another one may have
/// taken its place after the first look. `size_bytes` is what the refusal says of the file.
pub(crate) fn judge_open_directory(
    identity: &TargetIdentity,
    directory: BorrowedFd<'_>,
    size_bytes: u64,
) -> Result<(), Refusal> {
    let mut reasons = RefusalReasons::default();
    judge_place(identity, directory, &mut reasons);
    if reasons.is_empty() {
        return Ok(());
    }
    // The file may be one of a name that stays, or a scratch file.
    let size = format_bytes(size_bytes);
    let asked = format!("write a file of {size} in {}", identity.path);
    Err(reasons.into_refusal(asked))
}

/// Refuses a directory of a database server, or below one. A file that is created there is not the
/// server's own, so directories that no mount shows do not matter.
fn judge_place(identity: &TargetIdentity, directory: BorrowedFd<'_>, reasons: &mut RefusalReasons) {
    match Ancestry::above_directory(directory, Path::new(&identity.path)) {
        Ok(above) => servers::judge_directory(&above, reasons),
        Err(errno) => {
            return reasons.add(
                format!(
                    "its parent directories cannot be read ({}), so they may belong to a database \
                     server",
                    errno_name(errno)
                ),
                Step::sentence(inspection_remedy(errno)),
            );
        }
    }
    let stat = match rustix::fs::fstat(directory) {
        Ok(stat) => stat,
        Err(errno) => {
            let reason = format!("its metadata cannot be read ({})", errno_name(errno));
            return reasons.add(reason, Step::sentence(inspection_remedy(errno)));
        }
    };
    let id = FileId::from(&stat);
    let (root, path) = (SysRoot::default(), Path::new(&identity.path));
    let others = OtherAncestries::find(&root, path, identity.kind, id);
    for above in &others.shown {
        servers::judge_directory(above, reasons);
    }
    if !others.are_all {
        let step = Step::sentence(servers::OTHER_DIRECTORY);
        reasons.add(file::MOUNTED_TOO_OFTEN, step);
    }
}

/// The remedy where a directory or one above it cannot be inspected.
fn inspection_remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::MFILE | Errno::NFILE => "Raise the limit on open files (ulimit -n).",
        _ => "Run as a user with access to them.",
    }
}

fn scratch_asked(identity: &TargetIdentity, size_bytes: u64) -> String {
    let (size, path) = (format_bytes(size_bytes), &identity.path);
    format!("write a scratch file of {size} in {path}")
}

fn server_asked(identity: &TargetIdentity, scratch_bytes: u64, server_bytes: u64) -> String {
    format!(
        "write a scratch file of {} and a PostgreSQL server's files of {} in {}",
        format_bytes(scratch_bytes),
        format_bytes(server_bytes),
        identity.path
    )
}

/// Names the file that keeps its name, or a scratch file.
fn file_asked(identity: &TargetIdentity, name: Option<&str>, size_bytes: u64) -> String {
    let Some(name) = name else {
        return scratch_asked(identity, size_bytes);
    };
    let path = Path::new(&identity.path).join(name);
    format!(
        "write the file {} of {}",
        path.display(),
        format_bytes(size_bytes)
    )
}

/// A filesystem that writes each block to a new place frees the old one seconds later, with its
/// next transaction. Of the room there a scratch file of our choice takes this part. Tried on btrfs
/// with 973 MiB free, with random writes: a file of 280 MiB left 318 MiB free at the least, one of
/// 430 MiB 123, and one of 600 MiB filled the filesystem.
const COPIES_MAX: u64 = 3;

/// The largest scratch file that leaves 2 GiB free, or 10 % of a small filesystem, in whole MiB:
/// in its filesystem, and in those of the images below it. 0 when there is no room, or no
/// directory.
pub fn scratch_bytes_max(identity: &TargetIdentity) -> u64 {
    let free = scratch_bytes_free(identity);
    match &identity.filesystem {
        Some(filesystem) if filesystem.copies_on_write() => {
            let room = free / COPIES_MAX;
            room - room % SPACE_STEP_BYTES
        }
        Some(_) | None => free,
    }
}

/// The same for a file that is written once, wherever its blocks go when it is rewritten.
pub fn scratch_bytes_free(identity: &TargetIdentity) -> u64 {
    let room = room_in_filesystem(identity);
    match space::shared::room_in_images(identity) {
        Some(in_images) => room.min(in_images - in_images % SPACE_STEP_BYTES),
        None => room,
    }
}

/// The largest scratch file for which the filesystem of a directory has room; 0 of anything else.
fn room_in_filesystem(identity: &TargetIdentity) -> u64 {
    let (TargetKind::Directory, Some(filesystem)) = (identity.kind, &identity.filesystem) else {
        return 0;
    };
    let room = filesystem
        .free_bytes
        .saturating_sub(bytes_kept_free(filesystem));
    room - room % SPACE_STEP_BYTES
}

/// Says why a file has no room for a request of this size; `None` where it has.
fn no_room(file: &TargetIdentity, request_bytes: u64) -> Option<String> {
    let size_bytes = file.size_bytes;
    if size_bytes >= request_bytes {
        return None;
    }
    if size_bytes == 0 {
        return Some("the file is empty".to_owned());
    }
    Some(format!(
        "the file is too small: {}, but at least {} are needed",
        format_bytes(size_bytes),
        format_bytes(request_bytes)
    ))
}

fn judge_read(identity: &TargetIdentity, request_bytes: u64, reasons: &mut RefusalReasons) {
    let size = identity.size_bytes;
    match identity.kind {
        TargetKind::Directory => reasons.add(
            "it is a directory",
            Step::sentence("Name a regular file or a block device to be read."),
        ),
        TargetKind::File => {
            if let Some(reason) = no_room(identity, request_bytes) {
                reasons.add(
                    reason,
                    Step::sentence("Name a larger file, or a directory."),
                );
            }
        }
        TargetKind::BlockDevice if size == 0 && identity.layers.is_empty() => reasons.add(
            "sysfs does not show the device, so its size is unknown",
            Step::sentence("Mount /sys, or run outside the container."),
        ),
        TargetKind::BlockDevice => judge_device_size(size, reasons),
    }
    judge_access(identity, &identity.path, Permission::READ_OK, reasons);
}

/// Judges the directory in which a scratch file, or many files, are to be created. Returns the
/// space that they take.
fn judge_directory(
    identity: &TargetIdentity,
    need: SpaceNeed,
    files: CreatedFiles,
    reasons: &mut RefusalReasons,
) -> Vec<SpaceUse> {
    if identity.kind != TargetKind::Directory {
        reasons.add(
            "it is not a directory, and diskproof never writes to existing files",
            Step::sentence("Name a directory, in which diskproof creates a scratch file."),
        );
        return Vec::new();
    }
    if need.size_bytes == 0 {
        reasons.add(
            "a scratch file of 0 bytes is too small to measure anything",
            Step::sentence("Use a larger size."),
        );
    }
    judge_filesystem(identity, need, files, reasons);
    if let Err(errno) = access(&identity.path, Permission::WRITE_OK | Permission::EXEC_OK)
        && errno != rustix::io::Errno::ROFS
    {
        let reason = format!(
            "this user may not create files in it ({})",
            errno_name(errno)
        );
        reasons.add(
            reason,
            Step::sentence("Name a writable directory, or run as its owner."),
        );
    }
    match Held::open(Path::new(&identity.path)) {
        Ok(held) => judge_place(identity, held.fd(), reasons),
        // Most errors here are reasons above already. This one alone remains where, say, this
        // process has no descriptor left.
        Err(errno) if reasons.is_empty() => {
            let reason = format!("it cannot be inspected ({})", errno_name(errno));
            reasons.add(reason, Step::sentence(inspection_remedy(errno)));
        }
        Err(_) => {}
    }
    let space = space::directory_uses(identity, need);
    let remedy = space_remedy(scratch_bytes_max(identity), files);
    space::shared::judge_files(&space, &remedy, reasons);
    snapshots::judge(identity, need.size_bytes, reasons);
    space
}

/// Another program that finds no inode fails as on a full disk: a tenth of them stays free.
fn judge_inodes(identity: &TargetIdentity, count: u64, reasons: &mut RefusalReasons) {
    let stat = match statvfs(&identity.path) {
        Ok(stat) => stat,
        Err(errno) => {
            let reason = format!("its free inodes are unknown ({})", errno_name(errno));
            return reasons.add(reason, Step::sentence(inspection_remedy(errno)));
        }
    };
    // Filesystems that make inodes as they need them report none (btrfs).
    let room = stat
        .f_favail
        .saturating_sub(stat.f_files / KEPT_INODES_SHARE);
    if stat.f_files > 0 && count > room {
        reasons.add(
            format!(
                "not enough free inodes: {} left, but {} (10 % of the filesystem's) must stay free",
                stat.f_favail,
                stat.f_files / KEPT_INODES_SHARE
            ),
            Step::sentence(format!(
                "Use a --count of at most {room}, or another filesystem."
            )),
        );
    }
}

/// Refuses a filesystem that is not on a disk, is mounted read-only, or has too little space. A
/// filesystem of the wrong kind is refused for that alone.
fn judge_filesystem(
    identity: &TargetIdentity,
    need: SpaceNeed,
    files: CreatedFiles,
    reasons: &mut RefusalReasons,
) {
    let count_before = reasons.count();
    let in_memory = match &identity.filesystem {
        Some(filesystem) => is_in_memory(&filesystem.kind),
        None => false,
    };
    if files != CreatedFiles::Many || !in_memory {
        judge_filesystem_kind(identity, reasons);
    }
    let Some(filesystem) = &identity.filesystem else {
        return;
    };
    if reasons.count() > count_before {
        return;
    }
    let is_flagged =
        statvfs(&identity.path).is_ok_and(|stat| stat.f_flag.contains(StatVfsMountFlags::RDONLY));
    if is_flagged || filesystem.options.iter().any(|option| option == "ro") {
        let reason = format!(
            "the filesystem at {} is mounted read-only",
            filesystem.mount_point
        );
        reasons.add(
            reason,
            Step::sentence(
                "Name a directory on a writable filesystem, or an existing file or the device to \
                 be read.",
            ),
        );
    }
    let room_bytes = room_in_filesystem(identity);
    if need.missing_bytes() > room_bytes {
        let reason = format!(
            "not enough free space: {} are free, but {} are needed{}",
            format_bytes(filesystem.free_bytes),
            format_bytes(need.missing_bytes()),
            kept_free_text(filesystem)
        );
        let size_bytes_max = room_bytes.saturating_add(need.allocated_bytes);
        reasons.add(reason, Step::sentence(space_remedy(size_bytes_max, files)));
    }
}

/// The remedy where at most `room_bytes` may be written.
fn space_remedy(room_bytes: u64, files: CreatedFiles) -> String {
    let room = size_to_name(room_bytes);
    match files {
        CreatedFiles::Many if room_bytes == 0 => {
            "Free some space, or name a directory on another filesystem.".to_owned()
        }
        CreatedFiles::Many => format!(
            "Use a smaller --count or --file-size, so that the files take at most {room}, or free \
             some space."
        ),
        CreatedFiles::Scratch if room_bytes == 0 => {
            "Free some space, or name another directory, an existing file or a device.".to_owned()
        }
        CreatedFiles::Scratch => format!("Use a size of at most {room}, or free some space."),
        CreatedFiles::Server { server_bytes } if room_bytes <= server_bytes => format!(
            "Free some space, or name a directory on another filesystem: the server needs {}, \
             whatever the size of the scratch file.",
            format_bytes(server_bytes)
        ),
        CreatedFiles::Server { server_bytes } => format!(
            "Use a size of at most {}, or free some space: the server needs {} besides.",
            size_to_name(room_bytes - server_bytes),
            format_bytes(server_bytes)
        ),
    }
}

/// A size for a remedy, rounded down, so that asking for just that is granted.
fn size_to_name(bytes: u64) -> String {
    format_bytes(if bytes >= GIB {
        bytes - bytes % GIB
    } else {
        bytes
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::disk::bare_layer;
    use diskproof_model::target::Filesystem;

    const GIB: u64 = 1 << 30;

    fn directory(path: &Path, kind: &str, size_bytes: u64, free_bytes: u64) -> TargetIdentity {
        TargetIdentity {
            path: path.to_str().unwrap().to_owned(),
            kind: TargetKind::Directory,
            size_bytes,
            free_bytes: Some(free_bytes),
            device: "0:1".into(),
            inode: 1,
            filesystem: Some(Filesystem {
                kind: kind.into(),
                mount_point: "/".into(),
                source: "none".into(),
                options: vec!["rw".into()],
                size_bytes,
                free_bytes,
                kept_free_bytes: None,
            }),
            layers: Vec::new(),
            unresolved: None,
        }
    }

    fn reasons(identity: TargetIdentity, intent: Intent<'_>) -> Vec<String> {
        admit(identity, intent)
            .err()
            .map(|refusal| refusal.reasons)
            .unwrap_or_default()
    }

    #[test]
    fn a_tenth_or_two_gib_stay_free() {
        let at = Path::new("/var/tmp");
        assert_eq!(
            scratch_bytes_max(&directory(at, "ext4", 100 * GIB, 50 * GIB)),
            48 * GIB
        );
        assert_eq!(
            scratch_bytes_max(&directory(at, "ext4", 10 * GIB, 5 * GIB)),
            4 * GIB
        );
        assert_eq!(scratch_bytes_max(&directory(at, "ext4", 10 * GIB, GIB)), 0);
        assert_eq!(
            scratch_bytes_max(&directory(at, "btrfs", 100 * GIB, 50 * GIB)),
            16 * GIB
        );
        let mib = 1 << 20;
        assert_eq!(
            scratch_bytes_max(&directory(at, "ext4", 1000 * mib, 300 * mib)),
            200 * mib
        );
        assert_eq!(
            scratch_bytes_max(&directory(at, "ext4", 10 * GIB, 2 * GIB + 7)),
            GIB
        );
        assert!(
            reasons(
                directory(at, "ext4", 10 * GIB, 5 * GIB),
                Intent::Scratch {
                    size_bytes: 4 * GIB
                }
            )
            .is_empty()
        );
        let over = reasons(
            directory(at, "ext4", 10 * GIB, 5 * GIB),
            Intent::Scratch {
                size_bytes: 4 * GIB + 1,
            },
        );
        assert!(over[0].contains("not enough free space"), "{over:?}");
    }

    #[test]
    fn blocks_of_files_that_are_there_need_no_free_space() {
        let identity = || directory(Path::new("/var/tmp"), "ext4", 10 * GIB, 2 * GIB);
        let kept = |size_bytes, allocated_bytes| Intent::KeptFiles {
            name: Some("big"),
            size_bytes,
            allocated_bytes,
        };
        assert!(reasons(identity(), kept(6 * GIB, 5 * GIB)).is_empty());
        let over = reasons(identity(), kept(7 * GIB, 5 * GIB));
        assert!(
            over[0].contains("2 GiB are free, but 2 GiB are needed"),
            "{over:?}"
        );
        let refusal = admit(identity(), kept(7 * GIB, 5 * GIB)).err().unwrap();
        assert!(refusal.remedy.contains("at most 6 GiB"), "{refusal}");
        assert_eq!(refusal.asked, "write the file /var/tmp/big of 7 GiB");
        // Even where nothing more may be written.
        let full = directory(Path::new("/var/tmp"), "ext4", 10 * GIB, GIB / 2);
        assert!(reasons(full, kept(5 * GIB, 5 * GIB)).is_empty());
    }

    #[test]
    fn lack_of_space_names_the_reserve_that_holds() {
        for (kept_free_bytes, part) in [
            (None, "1 GiB must stay free (10 %"),
            (Some(0), "are needed"),
            (Some(3 << 30), "3 GiB must stay free (--keep-free)"),
        ] {
            let mut identity = directory(Path::new("/var/tmp"), "ext4", 10 * GIB, 5 * GIB);
            identity.filesystem.as_mut().unwrap().kept_free_bytes = kept_free_bytes;
            let size_bytes = 6 * GIB;
            let found = reasons(identity, Intent::Scratch { size_bytes });
            assert!(found[0].contains(part), "{found:?}");
            let is_stated = found[0].contains("must stay free");
            assert_eq!(is_stated, kept_free_bytes != Some(0), "{found:?}");
        }
    }

    #[test]
    fn remedy_for_lack_of_space_fits_what_is_made() {
        let here = Path::new("/var/tmp");
        let refused = |free_bytes: u64| {
            let files = Intent::Files {
                size_bytes: 4 * GIB,
                count: 10,
            };
            let identity = directory(here, "ext4", 10 * GIB, free_bytes);
            admit(identity, files).err().unwrap().to_string()
        };
        let some = refused(4 * GIB);
        assert!(
            some.contains("--file-size, so that the files take at most 3 GiB"),
            "{some}"
        );
        assert!(refused(GIB).contains("a directory on another filesystem"));
    }

    #[test]
    fn room_of_a_server_is_no_size_of_a_scratch_file() {
        const MIB: u64 = 1 << 20;
        let refused = |free_bytes: u64| {
            let files = Intent::Server {
                scratch_bytes: 256 * MIB,
                server_bytes: 512 * MIB,
            };
            let identity = directory(Path::new("/var/tmp"), "ext4", 10 * GIB, free_bytes);
            admit(identity, files).err().unwrap().remedy
        };
        let none = refused(GIB + 400 * MIB);
        assert!(
            none.contains("512 MiB") && !none.contains("at most"),
            "{none}"
        );
        let some = refused(GIB + 600 * MIB);
        assert!(some.contains("at most 88 MiB"), "{some}");
    }

    #[test]
    fn all_reasons_come_at_once() {
        let mut identity = directory(Path::new("/nonexistent"), "ext4", 10 * GIB, GIB);
        identity.filesystem.as_mut().unwrap().options = vec!["rw".into(), "ro".into()];
        let found = reasons(identity, Intent::Scratch { size_bytes: 0 });
        for part in [
            "too small",
            "mounted read-only",
            "may not create files in it (ENOENT)",
        ] {
            assert!(
                found.iter().any(|reason| reason.contains(part)),
                "{part}: {found:?}"
            );
        }
    }

    /// A symlink in the path, which is not followed, stands for a lack of descriptors.
    #[test]
    fn directory_that_cannot_be_inspected_is_refused() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let link = place.path().join("link");
        std::os::unix::fs::symlink(place.path(), &link).unwrap();
        std::fs::create_dir(place.path().join("inner")).unwrap();
        let size_bytes = 1 << 20;
        let found = reasons(
            directory(&link.join("inner"), "ext4", 10 * GIB, 5 * GIB),
            Intent::Scratch { size_bytes },
        );
        assert_eq!(found, ["it cannot be inspected (ELOOP)"]);
        let mut unknown = RefusalReasons::default();
        let missing = directory(&place.path().join("missing"), "ext4", 10 * GIB, 5 * GIB);
        judge_inodes(&missing, 1, &mut unknown);
        let refusal = unknown.into_refusal(String::new());
        assert_eq!(refusal.reasons, ["its free inodes are unknown (ENOENT)"]);
    }

    #[test]
    fn memory_and_kernel_filesystems_are_refused() {
        for kind in ["tmpfs", "ramfs", "proc", "cgroup2"] {
            let found = reasons(
                directory(Path::new("/var/tmp"), kind, 100 * GIB, 90 * GIB),
                Intent::Scratch { size_bytes: GIB },
            );
            assert!(
                found.len() == 1 && found[0].contains("no disk to measure"),
                "{found:?}"
            );
        }
        for kind in ["overlay", "nfs4", "fuse.sshfs"] {
            assert!(
                reasons(
                    directory(Path::new("/var/tmp"), kind, 100 * GIB, 90 * GIB),
                    Intent::Scratch { size_bytes: GIB }
                )
                .is_empty()
            );
        }
    }

    #[test]
    fn what_exists_is_never_written_to() {
        for kind in [TargetKind::File, TargetKind::BlockDevice] {
            let identity = TargetIdentity {
                kind,
                ..directory(Path::new("/var/tmp"), "ext4", 100 * GIB, 90 * GIB)
            };
            assert!(
                reasons(identity, Intent::Scratch { size_bytes: GIB })[0]
                    .contains("not a directory")
            );
        }
    }

    #[test]
    fn postgres_directories_are_refused() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let base = place.path().join("data/base/16384");
        for made in [
            "data/base/16384",
            "data/global",
            "moved_wal",
            "space/PG_16_202307071/5",
            "beside",
        ] {
            std::fs::create_dir_all(place.path().join(made)).unwrap();
        }
        let try_at = |at: &Path| {
            reasons(
                directory(at, "ext4", 100 * GIB, 90 * GIB),
                Intent::Scratch { size_bytes: GIB },
            )
        };
        std::fs::write(place.path().join("data/PG_VERSION"), "16\n").unwrap();
        assert!(
            try_at(&base).is_empty(),
            "PG_VERSION alone stands in each database's own directory too"
        );
        std::fs::write(place.path().join("data/global/pg_control"), "").unwrap();
        assert!(try_at(&base)[0].contains("data is a PostgreSQL data directory"));
        std::fs::write(place.path().join("moved_wal/0000000100000000000000A1"), "").unwrap();
        assert!(try_at(&place.path().join("moved_wal"))[0].contains("WAL segments"));
        assert!(try_at(&place.path().join("space/PG_16_202307071/5"))[0].contains("tablespace"));
        assert!(try_at(&place.path().join("beside")).is_empty());
    }

    #[test]
    fn scratch_file_may_have_a_few_blocks() {
        let place = tempfile::tempdir().unwrap();
        let found = |size_bytes| {
            let identity = directory(place.path(), "ext4", 100 * GIB, 50 * GIB);
            reasons(identity, Intent::Scratch { size_bytes })
        };
        assert!(found(512).is_empty(), "{:?}", found(512));
        assert!(found(0)[0].contains("too small"));
    }

    #[test]
    fn small_and_empty_targets_are_not_read() {
        let place = tempfile::tempdir().unwrap();
        let sized = |kind, size_bytes| TargetIdentity {
            kind,
            size_bytes,
            ..directory(place.path(), "ext4", GIB, GIB)
        };
        assert!(reasons(sized(TargetKind::File, 0), Intent::Read)[0].contains("empty"));
        let empty = TargetIdentity {
            layers: vec![bare_layer("sdx", "8:0")],
            ..sized(TargetKind::BlockDevice, 0)
        };
        assert!(reasons(empty, Intent::Read)[0].contains("size of 0"));
        assert!(
            reasons(sized(TargetKind::BlockDevice, 0), Intent::Read)[0]
                .contains("sysfs does not show the device")
        );
        assert!(reasons(sized(TargetKind::Directory, GIB), Intent::Read)[0].contains("directory"));
        assert!(reasons(sized(TargetKind::File, 1), Intent::Read).is_empty());
    }
}
