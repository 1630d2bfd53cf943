//! Finds where a device or a file is mounted, in every namespace, and where it is swap space.

use crate::admit::ancestry::find_places;
use crate::admit::reasons::{RAISE_DESCRIPTOR_LIMIT, RefusalReasons, Step};
use crate::admit::subject::{Node, Subject};
use crate::kernel::mounts::{self, MountEntry};
use crate::kernel::namespaces::{MountTables, Namespace};
use crate::kernel::naming::errno_name;
use crate::kernel::sysroot::{SysRoot, devices_in, list};
use diskproof_model::shell::quoted;
use diskproof_model::target::TargetKind;
use rustix::fs::stat;
use rustix::io::Errno;
use std::path::{Path, PathBuf};

pub(super) fn judge_mounts(root: &SysRoot, subject: Subject<'_>, reasons: &mut RefusalReasons) {
    let namespaces = MountTables::read(root);
    let own_mounts: &[MountEntry] = match namespaces.tables.first() {
        Some(table) => &table.mounts,
        None => &[],
    };
    if own_mounts.is_empty() {
        reasons.add(
            "/proc/self/mountinfo cannot be read, so the mounts are unknown",
            Step::clause("mount /proc"),
        );
    }
    let mut files = Vec::new();
    for file in subject.files() {
        // More places than these are a reason to refuse, which the check of the ancestry adds.
        let places = find_places(own_mounts, file.path, TargetKind::File, file.id);
        files.extend(places.list);
    }
    for table in &namespaces.tables {
        for mount in &table.mounts {
            if let Some(what) = mounted_device(subject, mount) {
                add_mounted_device(&what, mount, &table.namespace, reasons);
            }
            if files.iter().any(|file| file.is_mounted_by(mount)) {
                add_mounted_file(mount, &table.namespace, reasons);
            }
        }
    }
    for table in &namespaces.unreadable {
        // A user without rights sees no other namespace either, which is said elsewhere.
        if !matches!(table.errno, Errno::PERM | Errno::ACCESS) {
            let (path, errno) = (table.path.display(), errno_name(table.errno));
            let step = match table.errno {
                Errno::MFILE | Errno::NFILE => RAISE_DESCRIPTOR_LIMIT.to_owned(),
                _ if table.path.starts_with(&root.proc) => {
                    "try again, or end that process".to_owned()
                }
                _ => format!("umount {}", quoted(&path.to_string())),
            };
            reasons.add(
                format!("the mounts of the namespace at {path} cannot be read ({errno})"),
                Step::clause(step),
            );
        }
    }
}

/// The part of the subject that is mounted there as a device.
fn mounted_device(subject: Subject<'_>, mount: &MountEntry) -> Option<String> {
    if let Some(what) = subject.find_device(&mount.device) {
        return Some(what);
    }
    let mut sources = vec![mount.source.as_str()];
    // bcachefs names all its devices, with colons between. What follows the colon of NFS is a path
    // on another machine: here it may lead to anything, such as a mount whose server hangs.
    if mount.kind == "bcachefs" {
        sources.extend(mount.source.split(':'));
    }
    for source in sources {
        let path = Path::new(source);
        if !path.is_absolute() {
            continue;
        }
        let owned = match stat(path) {
            Ok(stat) => subject.find_node(&Node::from(&stat)),
            Err(_) => subject.find_by_node_path(path),
        };
        if owned.is_some() {
            return owned;
        }
    }
    None
}

fn add_mounted_device(
    what: &str,
    mount: &MountEntry,
    namespace: &Namespace,
    reasons: &mut RefusalReasons,
) {
    let MountEntry { kind, point, .. } = mount;
    let is_mounted = format!("{what} is mounted at {point} ({kind})");
    if point == "/" && *namespace == Namespace::Own {
        let step = "this is the disk of the running system: name another one";
        return reasons.add(is_mounted, Step::clause(step));
    }
    let step = Step::clause(unmounting(point, namespace));
    reasons.add(format!("{is_mounted}{}", namespace_phrase(namespace)), step);
}

/// A file that is mounted has that name, too, and a container or a server uses it there.
fn add_mounted_file(mount: &MountEntry, namespace: &Namespace, reasons: &mut RefusalReasons) {
    let point = &mount.point;
    let place = namespace_phrase(namespace);
    let umount = unmounting(point, namespace);
    reasons.add(
        format!("it is mounted at {point}{place} (bind mount of a file)"),
        Step::clause(format!("{umount}, or copy the file and name the copy")),
    );
}

/// ` in the mount namespace of process 77 (postgres)`; nothing for our own.
fn namespace_phrase(namespace: &Namespace) -> String {
    match namespace {
        Namespace::Own => String::new(),
        Namespace::Process { pid, name } => {
            format!(" in the mount namespace of process {pid} ({name})")
        }
        Namespace::Kept { path } => {
            format!(" in the mount namespace that {} keeps", path.display())
        }
    }
}

/// The command that ends a mount in a namespace.
fn unmounting(point: &str, namespace: &Namespace) -> String {
    let umount = format!("umount {}", quoted(point));
    match namespace {
        Namespace::Own => umount,
        Namespace::Process { pid, .. } => format!("nsenter --target {pid} --mount {umount}"),
        Namespace::Kept { path } => {
            let path = quoted(&path.display().to_string());
            format!("nsenter --mount={path} {umount}")
        }
    }
}

/// mountinfo names one device of a btrfs, and an anonymous number; sysfs lists all members of those
/// that are mounted.
pub(super) fn judge_btrfs(root: &SysRoot, subject: Subject<'_>, reasons: &mut RefusalReasons) {
    let filesystems = root.sys.join("fs/btrfs");
    for uuid in list(&filesystems) {
        for device in devices_in(&filesystems.join(&uuid).join("devices")) {
            if let Some(what) = subject.find_device(&device) {
                reasons.add(
                    format!("{what} belongs to the mounted btrfs filesystem {uuid}"),
                    Step::clause(format!(
                        "umount it (findmnt --types btrfs shows where), or btrfs device remove \
                         {what}"
                    )),
                );
            }
        }
    }
}

/// Adds a reason for each swap device of the subject.
pub(super) fn judge_swaps(root: &SysRoot, subject: Subject<'_>, reasons: &mut RefusalReasons) {
    let text = match std::fs::read_to_string(root.proc.join("swaps")) {
        Ok(text) => text,
        // A kernel without swap has no such file.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        Err(error) => {
            return reasons.add(
                format!("/proc/swaps cannot be read ({error}), so the swap devices are unknown"),
                Step::clause("run as root, outside a container"),
            );
        }
    };
    for line in text.lines().skip(1) {
        let Some(field) = line.split_whitespace().next() else {
            continue;
        };
        let path = PathBuf::from(mounts::unescape(field));
        let followed = match stat(&path) {
            Ok(stat) => subject.find_node(&Node::from(&stat)),
            Err(_) => None,
        };
        if let Some(what) = followed.or_else(|| subject.find_by_node_path(&path)) {
            reasons.add(
                format!("{what} is in use as swap space"),
                Step::clause(format!("swapoff {}", quoted(&path.display().to_string()))),
            );
        }
    }
}
