//! The regular files in which the blocks of a target lie, where the kernel or a program on this
//! machine makes a disk of a file: who replaces such a file has destroyed the target.

use crate::identity::exports::{ExportDriver, Exported, exports};
use crate::kernel::file_id::FileId;
use crate::kernel::naming::node;
use crate::kernel::syscalls::file_behind_loop;
use crate::kernel::sysroot::{SysRoot, list, read_text};
use diskproof_model::target::{Layer, TargetIdentity};
use rustix::fs::{FileType, Stat, stat};
use std::path::PathBuf;

/// A file behind a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileBehind {
    /// The path by which the kernel or the program names it: another file may have it by now.
    pub path: PathBuf,
    /// Device and inode, from the kernel; `None` where only the path is known.
    pub id: Option<FileId>,
}

/// The files behind a target: those of loop devices, of disks that this machine exports to itself
/// (nbd, SCSI target, NVMe target) and of filesystems that a program serves out of an image
/// (fuse2fs).
pub fn files_behind(identity: &TargetIdentity) -> Vec<FileBehind> {
    files_in(&SysRoot::default(), identity)
}

fn files_in(root: &SysRoot, identity: &TargetIdentity) -> Vec<FileBehind> {
    let mut files = Vec::new();
    if let Some(filesystem) = &identity.filesystem {
        add_regular(PathBuf::from(&filesystem.source), &mut files);
    }
    for layer in &identity.layers {
        if let Some(path) = &layer.backing_file {
            files.push(FileBehind {
                path: PathBuf::from(path),
                id: file_behind_loop(&node(&layer.name), &layer.device),
            });
        }
        add_of_nbd(root, layer, &mut files);
        if layer.vendor.as_deref() == Some("LIO-ORG") {
            add_exported(root, ExportDriver::Scsi, &mut files);
        }
        if layer.name.starts_with("nvme") {
            add_exported(root, ExportDriver::Nvme, &mut files);
        }
    }
    files
}

/// The program that serves an nbd disk holds its image open (nbd.c, `pid`).
fn add_of_nbd(root: &SysRoot, layer: &Layer, files: &mut Vec<FileBehind>) {
    if !layer.name.starts_with("nbd") {
        return;
    }
    let Some(device) = root.named_device(&layer.name) else {
        return;
    };
    let Some(pid) = read_text(&device.join("pid")) else {
        return;
    };
    let descriptors = root.proc.join(pid).join("fd");
    for name in list(&descriptors) {
        let descriptor = descriptors.join(name);
        let Ok(file) = stat(&descriptor) else {
            continue;
        };
        if is_regular(&file) {
            files.push(FileBehind {
                path: std::fs::read_link(&descriptor).unwrap_or(descriptor),
                id: Some(FileId::from(&file)),
            });
        }
    }
}

/// Adds the files of which this driver makes disks.
fn add_exported(root: &SysRoot, driver: ExportDriver, files: &mut Vec<FileBehind>) {
    for export in exports(root) {
        if let Exported::Path(path) = export.exported
            && export.driver == driver
        {
            add_regular(path, files);
        }
    }
}

/// Adds what is a regular file, and not a device or a name of another kind.
fn add_regular(path: PathBuf, files: &mut Vec<FileBehind>) {
    if path.is_absolute() && stat(&path).is_ok_and(|file| is_regular(&file)) {
        files.push(FileBehind { path, id: None });
    }
}

fn is_regular(file: &Stat) -> bool {
    FileType::from_raw_mode(file.st_mode) == FileType::RegularFile
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::probe::probe;
    use crate::kernel::fake_sysfs::FakeSysfs;
    use std::os::unix::fs::{MetadataExt as _, symlink};
    use std::path::Path;

    fn image() -> tempfile::NamedTempFile {
        tempfile::NamedTempFile::new().unwrap()
    }

    /// A target with this layer, on a filesystem of a device.
    fn target_on(layer: Layer) -> TargetIdentity {
        let mut identity = probe(Path::new("/")).unwrap();
        identity.layers = vec![layer];
        if let Some(filesystem) = &mut identity.filesystem {
            filesystem.source = "/dev/null".to_owned();
        }
        identity
    }

    fn layer(name: &str, vendor: Option<&str>) -> Layer {
        Layer {
            name: name.to_owned(),
            vendor: vendor.map(str::to_owned),
            ..Layer::default()
        }
    }

    fn paths(sysfs: &FakeSysfs, identity: &TargetIdentity) -> Vec<PathBuf> {
        let files = files_in(&sysfs.root(), identity);
        files.into_iter().map(|file| file.path).collect()
    }

    #[test]
    fn disk_of_this_machines_scsi_or_nvme_target_has_its_image_behind_it() {
        let (scsi, nvme, sysfs) = (image(), image(), FakeSysfs::new());
        let scsi_at = "kernel/config/target/core/fileio_0/one/udev_path";
        sysfs.write_attribute(scsi_at, scsi.path().to_str().unwrap());
        // A disk that is made of a device.
        sysfs.write_attribute(
            "kernel/config/target/core/iblock_0/two/udev_path",
            "/dev/null",
        );
        let nvme_at = "kernel/config/nvmet/subsystems/nqn/namespaces/1/device_path";
        sysfs.write_attribute(nvme_at, nvme.path().to_str().unwrap());
        let exported = target_on(layer("sda", Some("LIO-ORG")));
        assert_eq!(paths(&sysfs, &exported), [scsi.path()]);
        assert_eq!(
            paths(&sysfs, &target_on(layer("nvme0n1", None))),
            [nvme.path()]
        );
        let other = target_on(layer("sda", Some("ATA")));
        assert!(paths(&sysfs, &other).is_empty());
    }

    #[test]
    fn nbd_disk_has_the_files_of_its_program_behind_it() {
        let (image, sysfs) = (image(), FakeSysfs::new());
        sysfs.add_block_device("virtual/nbd0", "43:0", &[("pid", "77")]);
        sysfs.write_attribute("proc/77/fd/unused", "");
        let descriptors = sysfs.root().proc.join("77/fd");
        std::fs::remove_file(descriptors.join("unused")).unwrap();
        symlink("/dev/null", descriptors.join("0")).unwrap();
        symlink(image.path(), descriptors.join("5")).unwrap();
        let stat_of_file = image.as_file().metadata().unwrap();
        let expected = FileBehind {
            path: image.path().to_owned(),
            id: Some(FileId {
                device: stat_of_file.dev(),
                inode: stat_of_file.ino(),
            }),
        };
        let files = files_in(&sysfs.root(), &target_on(layer("nbd0", None)));
        assert_eq!(files, [expected]);
    }

    #[test]
    fn filesystem_that_a_program_serves_has_its_image_behind_it() {
        let (image, sysfs) = (image(), FakeSysfs::new());
        let mut served = target_on(layer("sda", None));
        assert!(paths(&sysfs, &served).is_empty());
        served.filesystem.as_mut().unwrap().source = image.path().display().to_string();
        assert_eq!(paths(&sysfs, &served), [image.path()]);
    }
}
