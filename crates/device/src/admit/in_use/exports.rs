//! Finds the parts of a subject that the kernel exports to other machines and guests. Its servers
//! are no processes and claim nothing.

use crate::admit::reasons::{RefusalReasons, Step};
use crate::admit::subject::{Node, NodeKind, Subject};
use crate::identity::exports::{Export, Exported, exports};
use crate::identity::layers::is_served;
use crate::kernel::mounts;
use crate::kernel::naming::device_number;
use crate::kernel::sysroot::SysRoot;
use rustix::fs::stat;
use std::path::Path;

/// Adds a reason for each part of the subject that is exported.
pub(super) fn judge_exports(root: &SysRoot, subject: Subject<'_>, reasons: &mut RefusalReasons) {
    for export in exports(root) {
        if let Some(what) = exported_part(root, subject, &export) {
            let driver = export.driver.name();
            reasons.add(
                format!("{what} is exported by {driver}: another machine or a guest may use it"),
                Step::clause(format!(
                    "end the export, which {} configures",
                    export.place.display()
                )),
            );
        }
    }
}

/// The part of the subject that is exported.
fn exported_part(root: &SysRoot, subject: Subject<'_>, export: &Export) -> Option<String> {
    if !export.is_open {
        return None;
    }
    let path = match &export.exported {
        Exported::Device(number) => return subject.find_device(number),
        Exported::Path(path) if path.is_absolute() => path,
        // A name that the driver was not given yet.
        Exported::Path(_) => return None,
    };
    // The server of a file may not answer: such a file is no node of a disk here.
    if is_on_server(root, path) {
        return None;
    }
    let Ok(stat) = stat(path) else {
        return subject.find_by_node_path(path);
    };
    let node = Node::from(&stat);
    if let Some(what) = subject.find_node(&node) {
        return Some(what);
    }
    // The NVMe target passes on whole controllers, too.
    if node.kind != NodeKind::Character {
        return None;
    }
    subject.find_controlled_disk(&device_number(node.device))
}

/// True if another machine or a program answers for the filesystem of a path.
fn is_on_server(root: &SysRoot, path: &Path) -> bool {
    let mounts = mounts::read_mounts(root, "self");
    let mount = mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.len());
    mount.is_some_and(|mount| is_served(&mount.kind))
}
