//! Finds the regular files in which the blocks of a target lie, where the kernel or a program on
//! this machine makes a disk of a file. Whoever replaces such a file destroys the target.

use crate::identity::exports::{ExportDriver, Exported, exports};
use crate::identity::layers::is_served;
use crate::kernel::file_id::FileId;
use crate::kernel::mounts::{find_mount, read_mounts};
use crate::kernel::naming::node;
use crate::kernel::syscalls::file_behind_loop;
use crate::kernel::sysroot::{SysRoot, list, read_text, value_of};
use diskproof_model::target::{Layer, TargetIdentity};
use rustix::fs::{FileType, Stat, stat};
use std::fs::read_link;
use std::path::{Path, PathBuf};

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
        add_files_of_nbd(root, layer, &mut files);
        if layer.vendor.as_deref() == Some("LIO-ORG") {
            add_exported(root, ExportDriver::Scsi, &mut files);
        }
        if layer.name.starts_with("nvme") {
            add_exported(root, ExportDriver::Nvme, &mut files);
        }
    }
    files
}

/// Adds the regular files that the program which serves an nbd disk holds open.
fn add_files_of_nbd(root: &SysRoot, layer: &Layer, files: &mut Vec<FileBehind>) {
    for descriptor in descriptors_of_nbd(root, layer) {
        files.extend(regular_file(&descriptor));
    }
}

/// No image is smaller: an empty one of qcow2 has 192 KiB, a raw one the size of its disk. Lock
/// files and files with the number of a process are smaller.
const IMAGE_BYTES_MIN: i64 = 64 << 10;

/// The images that the program which serves an nbd disk writes: the regular files that it has open
/// for reading and writing. It only reads the images below (qemu-nbd), and only writes its log. An
/// image on a filesystem that another machine or a program serves is skipped: a request to it might
/// hang.
pub(crate) fn images_of_nbd(root: &SysRoot, layer: &Layer) -> Vec<FileBehind> {
    let descriptors = descriptors_of_nbd(root, layer);
    if descriptors.is_empty() {
        return Vec::new();
    }
    let mounts = read_mounts(root, "self");
    let mut images = Vec::new();
    for descriptor in descriptors {
        let Ok(path) = read_link(&descriptor) else {
            continue;
        };
        let is_on_server =
            find_mount(&mounts, "", &path).is_some_and(|mount| is_served(&mount.kind));
        let holds_blocks = stat(&descriptor).is_ok_and(|file| file.st_size >= IMAGE_BYTES_MIN);
        if !is_on_server && holds_blocks && is_read_and_written(&descriptor) {
            images.extend(regular_file(&descriptor));
        }
    }
    images
}

/// The descriptors of the program that serves an nbd disk (nbd.c, `pid`): it holds its image open.
fn descriptors_of_nbd(root: &SysRoot, layer: &Layer) -> Vec<PathBuf> {
    if !layer.name.starts_with("nbd") {
        return Vec::new();
    }
    let Some(pid) = root
        .named_device(&layer.name)
        .and_then(|device| read_text(&device.join("pid")))
    else {
        return Vec::new();
    };
    let table = root.proc.join(pid).join("fd");
    let mut descriptors = Vec::new();
    for name in list(&table) {
        descriptors.push(table.join(name));
    }
    descriptors
}

/// The regular file behind a descriptor in /proc; `None` of anything else.
fn regular_file(descriptor: &Path) -> Option<FileBehind> {
    let file = stat(descriptor).ok()?;
    if !is_regular(&file) {
        return None;
    }
    Some(FileBehind {
        path: read_link(descriptor).unwrap_or_else(|_| descriptor.to_owned()),
        id: Some(FileId::from(&file)),
    })
}

/// Returns `true` if a descriptor is open for reading and writing, or does not say for what
/// (proc_pid_fdinfo(5)).
fn is_read_and_written(descriptor: &Path) -> bool {
    let (Some(table), Some(number)) = (descriptor.parent(), descriptor.file_name()) else {
        return true;
    };
    let info = read_text(&table.with_file_name("fdinfo").join(number)).unwrap_or_default();
    let flags =
        value_of(&info, "flags", ':').and_then(|digits| i32::from_str_radix(digits.trim(), 8).ok());
    match flags {
        Some(flags) => flags & libc::O_ACCMODE == libc::O_RDWR,
        None => true,
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
        assert_eq!(files, std::slice::from_ref(&expected));
        let images = || images_of_nbd(&sysfs.root(), &layer("nbd0", None));
        assert_eq!(images(), [], "as small as the number of a process");
        image.as_file().set_len(1 << 20).unwrap();
        assert_eq!(images(), std::slice::from_ref(&expected));
        // It only reads the image below, and only writes its log.
        for (flags, is_image) in [("0100000", false), ("0102001", false), ("02100002", true)] {
            sysfs.write_attribute("proc/77/fdinfo/5", &format!("pos:\t0\nflags:\t{flags}\n"));
            assert_eq!(images().len(), usize::from(is_image), "{flags}");
        }
        // An image on a server is not asked.
        let place = image.path().parent().unwrap().display();
        let mount = format!("40 1 0:50 / {place} rw - nfs4 server:/export rw\n");
        sysfs.write_attribute("proc/self/mountinfo", &mount);
        assert_eq!(images(), []);
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
