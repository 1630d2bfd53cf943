//! Finds the stack of block devices below a filesystem or a device, down to the disks, by sysfs.
//! Opens no device.

use crate::identity::disk::{describe, layer_kind};
use crate::kernel::mounts::{MEMORY_FILESYSTEMS, MountEntry, find_mount};
use crate::kernel::naming::device_number;
use crate::kernel::sysroot::{SysRoot, devices_in, list, read_text};
use diskproof_model::target::{Layer, LayerKind, is_network_filesystem};
use rustix::fs::{FileType, stat};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The block devices below a filesystem or a device.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Stack {
    /// Parents come before children.
    pub(crate) layers: Vec<Layer>,
    /// The reason why the layers end before the disks, where they do.
    pub(crate) unresolved: Option<String>,
}

/// Layers below a block device (`major:minor`).
pub(crate) fn layers_below_device(root: &SysRoot, mounts: &[MountEntry], device: &str) -> Stack {
    walk(root, mounts, |walk| drop(walk.visit(device)))
}

/// Layers below the filesystem that holds `path`, whose `st_dev` is `device`.
pub(crate) fn layers_below_path(
    root: &SysRoot,
    mounts: &[MountEntry],
    device: &str,
    path: &Path,
) -> Stack {
    walk(root, mounts, |walk| {
        // The last first: `walk` reverses the list at its end.
        for device in walk.devices_of_path(device, path).iter().rev() {
            walk.visit(device);
        }
    })
}

fn walk(root: &SysRoot, mounts: &[MountEntry], visit: impl FnOnce(&mut LayerWalk<'_>)) -> Stack {
    let mut walk = LayerWalk {
        root,
        mounts,
        devices: HashSet::new(),
        paths: HashSet::new(),
        layers: Vec::new(),
        unresolved: Vec::new(),
    };
    visit(&mut walk);
    walk.layers.reverse();
    walk.unresolved.dedup();
    let mut unresolved = None;
    if !walk.unresolved.is_empty() {
        unresolved = Some(walk.unresolved.join("; "));
    }
    Stack {
        layers: walk.layers,
        unresolved,
    }
}

struct LayerWalk<'a> {
    root: &'a SysRoot,
    mounts: &'a [MountEntry],
    /// Devices that were visited, each of which is followed once.
    devices: HashSet<String>,
    /// Paths of files behind loop devices and overlays that were followed: none is followed twice.
    paths: HashSet<PathBuf>,
    /// Children before parents.
    layers: Vec<Layer>,
    unresolved: Vec<String>,
}

impl LayerWalk<'_> {
    /// Notes why the walk ends here, before a disk. Returns no devices, for the caller to return.
    fn give_up(&mut self, reason: String) -> Vec<String> {
        self.unresolved.push(reason);
        Vec::new()
    }

    /// Adds a device and all below it. Returns its kernel name, if sysfs knows the device.
    fn visit(&mut self, device: &str) -> Option<String> {
        let Some(sysfs) = self.root.block_device(device) else {
            self.give_up(format!("sysfs does not show the block device {device}"));
            return None;
        };
        let name = sysfs.file_name()?.to_str()?.to_owned();
        if !self.devices.insert(device.to_owned()) {
            return Some(name);
        }
        let devices = self.devices_below(&sysfs, &name);
        // The last first: `walk` reverses the list at its end.
        let mut below: Vec<String> = devices
            .iter()
            .rev()
            .filter_map(|device| self.visit(device))
            .collect();
        below.reverse();
        let mut layer = describe(self.root, &sysfs, &name, device, below);
        layer.backing_filesystem = layer.backing_file.as_deref().and_then(|file| {
            let mount = find_mount(self.mounts, "", Path::new(file));
            Some(mount.filter(|mount| mount.kind != "devtmpfs")?.kind.clone())
        });
        self.layers.push(layer);
        Some(name)
    }

    /// `major:minor` of the devices right below the one whose directory in sysfs is `sysfs`.
    fn devices_below(&mut self, sysfs: &Path, name: &str) -> Vec<String> {
        match layer_kind(sysfs, name) {
            LayerKind::Partition => {
                let mut disks = Vec::new();
                if let Some(disk) = sysfs.parent() {
                    disks.extend(read_text(&disk.join("dev")));
                }
                disks
            }
            LayerKind::Loop => match read_text(&sysfs.join("loop/backing_file")) {
                Some(file) => self.devices_behind_loop(name, Path::new(&file)),
                None => Vec::new(),
            },
            // Device mapper and MD list theirs in `slaves`; so do bcache and multipath disks. Real
            // disks have none.
            _ => devices_in(&sysfs.join("slaves")),
        }
    }

    fn devices_behind_loop(&mut self, name: &str, file: &Path) -> Vec<String> {
        if let Some(mount) = find_mount(self.mounts, "", file)
            && is_served(&mount.kind)
        {
            // stat(2) would wait for the server, which may not answer. The file is no device.
            return self.devices_of_path(&mount.device, file);
        }
        let Ok(stat) = stat(file) else {
            return self.give_up(format!(
                "the file behind {name} ({}) is not accessible here",
                file.display()
            ));
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::BlockDevice => vec![device_number(stat.st_rdev)],
            _ => self.devices_of_path(&device_number(stat.st_dev), file),
        }
    }

    /// Block devices that carry the filesystem which holds `path`.
    fn devices_of_path(&mut self, device: &str, path: &Path) -> Vec<String> {
        // Major 0 is for filesystems without one block device of their own
        // (Documentation/admin-guide/devices.txt).
        if !device.starts_with("0:") {
            return vec![device.to_owned()];
        }
        if !self.paths.insert(path.to_owned()) {
            return self.give_up(format!("{} leads back to itself", path.display()));
        }
        let mounts = self.mounts;
        let Some(mount) = find_mount(mounts, device, path) else {
            return self.give_up(format!("no known mount contains {}", path.display()));
        };
        match mount.kind.as_str() {
            "btrfs" => self.devices_of_btrfs(mount),
            "overlay" => self.devices_of_overlay(mount, path),
            kind => match self.device_of_source(&mount.source) {
                Some(device) => vec![device],
                None => self.give_up(why_unresolved(kind, &mount.source)),
            },
        }
    }

    /// The member devices, as /sys/fs/btrfs/UUID/devices lists them; the mount's source is only one
    /// of them.
    fn devices_of_btrfs(&mut self, mount: &MountEntry) -> Vec<String> {
        let Some(source) = self.device_of_source(&mount.source) else {
            return self.give_up(format!(
                "btrfs: its device {} is not accessible here",
                mount.source
            ));
        };
        let filesystems = self.root.sys.join("fs/btrfs");
        for uuid in list(&filesystems) {
            let devices = devices_in(&filesystems.join(uuid).join("devices"));
            if devices.contains(&source) {
                return devices;
            }
        }
        vec![source]
    }

    /// The upper directory takes all writes, so a directory is measured on its disk. A file may
    /// still lie in a lower one.
    fn devices_of_overlay(&mut self, mount: &MountEntry, path: &Path) -> Vec<String> {
        const HIDDEN: &str = "overlayfs: the disk of the upper directory is unknown";
        let Some(upper) = mount.option("upperdir").map(Path::new) else {
            return self.give_up(
                "overlayfs: there is no upper directory, and it is unknown which lower directory \
                 has the data"
                    .into(),
            );
        };
        let Ok(stat_upper) = stat(upper) else {
            return self.give_up(HIDDEN.into());
        };
        let is_file = stat(path)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        if is_file
            && !mount
                .inside(path)
                .is_some_and(|inside| upper.join(inside).exists())
        {
            return self.give_up(
                "overlayfs: the file is in a lower directory, whose disk is unknown".into(),
            );
        }
        // Within a container the path may exist by chance: the overlay itself would then be its own
        // upper directory.
        if device_number(stat_upper.st_dev) == mount.device {
            return self.give_up(HIDDEN.into());
        }
        self.devices_of_path(&device_number(stat_upper.st_dev), upper)
    }

    /// `major:minor` of a mount's source, when it is a block device: by its node, else by its name
    /// in sysfs (containers lack the nodes).
    fn device_of_source(&self, source: &str) -> Option<String> {
        if let Ok(stat) = stat(source) {
            if FileType::from_raw_mode(stat.st_mode) != FileType::BlockDevice {
                return None;
            }
            return Some(device_number(stat.st_rdev));
        }
        let name = source.strip_prefix("/dev/")?;
        read_text(&self.root.named_device(&name.replace('/', "!"))?.join("dev"))
    }
}

/// True for filesystems of another machine, or of the host.
fn is_elsewhere(kind: &str) -> bool {
    is_network_filesystem(kind) || matches!(kind, "9p" | "virtiofs")
}

/// True where another machine or a program answers for a filesystem.
pub(crate) fn is_served(kind: &str) -> bool {
    kind.starts_with("fuse") || is_elsewhere(kind)
}

/// Explains why no disk is found below a filesystem of this kind: it has none, or hides it.
fn why_unresolved(kind: &str, source: &str) -> String {
    match kind {
        memory if MEMORY_FILESYSTEMS.contains(&memory) => format!("{memory}: it is in memory"),
        kind if is_elsewhere(kind) => {
            format!("{kind}: the disks and their counters are on the server ({source})")
        }
        "zfs" => "zfs: the disks of the pool are unknown, and its cache (ARC) may answer, before \
                  OpenZFS 2.3 even with O_DIRECT"
            .into(),
        fuse if fuse.starts_with("fuse") => {
            format!(
                "{fuse}: a program ({source}) serves this filesystem, and the location of its data \
                 is unknown"
            )
        }
        other => format!("{other}: its source ({source}) is not a block device"),
    }
}

#[cfg(test)]
mod tests;
