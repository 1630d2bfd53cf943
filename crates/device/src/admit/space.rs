//! The free space that each target takes while it is written: a scratch file, holes of a file,
//! blocks that a snapshot or another file shares, and the same of the images behind loop devices.
//! Reads metadata only. Whether a filesystem has that much is judged in [`shared`], since it may
//! serve several of them; what nothing shows is named in [`unknown`].

pub(super) mod shared;
pub(super) mod unknown;

use crate::file::extents::{shared_bytes, unallocated_bytes, unwritten_bytes};
use crate::file::held::Held;
use crate::identity::files_behind::{FileBehind, images_of_nbd};
use crate::identity::layers::is_served;
use crate::identity::probe::probe;
use crate::kernel::naming::{device_number, node};
use crate::kernel::syscalls::file_behind_loop;
use crate::kernel::sysroot::SysRoot;
use diskproof_model::target::{Filesystem, Layer, LayerKind, TargetIdentity, TargetKind};
use diskproof_model::units::SECTOR_BYTES;
use rustix::fs::{OFlags, fstat};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// The space that is going to be written in a directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpaceNeed {
    pub(super) size_bytes: u64,
    /// The part of it for which blocks are allocated already.
    pub(super) allocated_bytes: u64,
}

impl SpaceNeed {
    /// Space of which nothing is there yet.
    pub(super) fn new(size_bytes: u64) -> Self {
        Self {
            size_bytes,
            allocated_bytes: 0,
        }
    }

    /// The free space that it takes.
    pub(super) fn missing_bytes(self) -> u64 {
        self.size_bytes.saturating_sub(self.allocated_bytes)
    }
}

/// Free space that a target takes on one filesystem.
#[derive(Debug, Clone)]
pub(crate) struct SpaceUse {
    /// Whatever takes the space: the target itself, or an image behind a loop device below it.
    pub(super) taker: TargetIdentity,
    /// The most that it takes.
    pub(super) bytes: u64,
    /// What is known of an image; `None` of a target. The user did not name the filesystem of an
    /// image.
    pub(super) image: Option<ImageUse>,
}

/// The use that the targets above an image make of it.
#[derive(Debug, Clone)]
pub(super) struct ImageUse {
    /// The kernel name of the device above it.
    device: String,
    /// The most that it takes, however many targets lie above it.
    bytes_max: u64,
}

/// The space that new files in a directory take there, and in the images below it.
pub(super) fn of_directory(directory: &TargetIdentity, need: SpaceNeed) -> Vec<SpaceUse> {
    let mut uses = vec![SpaceUse {
        taker: directory.clone(),
        bytes: need.missing_bytes(),
        image: None,
    }];
    // What the filesystem has allocated for a file may still be a hole of the image.
    uses.extend(of_images(directory, need.size_bytes));
    uses
}

/// The space that a target takes while all of it is overwritten; none of a file that cannot be
/// inspected, which is refused for that.
pub(super) fn of_released(target: &TargetIdentity) -> Vec<SpaceUse> {
    if target.kind == TargetKind::BlockDevice {
        return of_images(target, target.size_bytes);
    }
    match open_to_read(target) {
        Some(fd) => of_file(target, fd.as_fd()),
        None => Vec::new(),
    }
}

fn open_to_read(file: &TargetIdentity) -> Option<OwnedFd> {
    let held = Held::identified(file).ok()?;
    held.reopen(OFlags::RDONLY | OFlags::NONBLOCK).ok()
}

/// The space that a file takes while it is overwritten, there and in the images below it. `fd` is
/// the file.
pub(super) fn of_file(file: &TargetIdentity, fd: BorrowedFd<'_>) -> Vec<SpaceUse> {
    let missing_bytes = missing_bytes(file, fd);
    let mut uses = vec![SpaceUse {
        taker: file.clone(),
        bytes: missing_bytes,
        image: None,
    }];
    let has_image = file
        .layers
        .iter()
        .any(|layer| layer.kind == LayerKind::Loop);
    if has_image {
        // Allocated blocks that were never written may be a hole of the image.
        let unwritten = unwritten_bytes(fd, 0, file.size_bytes).unwrap_or(file.size_bytes);
        uses.extend(of_images(file, missing_bytes.max(unwritten)));
    }
    uses
}

/// The space that the images of the loop and nbd devices below a target take, while so many bytes
/// are written to it at places that were not written before. None of images that cannot be looked
/// at: the gate refuses a loop device above such a one.
pub(super) fn of_images(target: &TargetIdentity, new_bytes: u64) -> Vec<SpaceUse> {
    of_images_in(&SysRoot::default(), target, new_bytes)
}

fn of_images_in(root: &SysRoot, target: &TargetIdentity, new_bytes: u64) -> Vec<SpaceUse> {
    let mut uses = Vec::new();
    for layer in &target.layers {
        if let Some(image) = image_behind_loop(layer, target) {
            uses.extend(of_image(image, layer, target, new_bytes));
        }
        for image in images_of_nbd(root, layer) {
            if let Some(image) = identified(&image) {
                uses.extend(of_image(image, layer, target, new_bytes));
            }
        }
    }
    uses
}

/// The image behind a loop device, unless another file has its name by now.
fn image_behind_loop(layer: &Layer, target: &TargetIdentity) -> Option<TargetIdentity> {
    if layer.kind != LayerKind::Loop {
        return None;
    }
    let path = layer.backing_file.as_deref()?;
    // Its server may not answer. A device is not written to without a look at its image.
    let is_asked = target.kind == TargetKind::BlockDevice
        || !layer.backing_filesystem.as_deref().is_some_and(is_served);
    if !is_asked {
        return None;
    }
    identified(&FileBehind {
        path: PathBuf::from(path),
        id: file_behind_loop(&node(&layer.name), &layer.device),
    })
}

/// The identity of an image, unless another file has its name by now.
fn identified(file: &FileBehind) -> Option<TargetIdentity> {
    let image = probe(&file.path).ok()?;
    let is_behind = match file.id {
        Some(id) => device_number(id.device) == image.device && id.inode == image.inode,
        None => true,
    };
    if image.kind == TargetKind::File && is_behind {
        Some(image)
    } else {
        None
    }
}

/// True if the filesystem of a target may write a block to another place than before.
fn may_relocate_blocks(target: &TargetIdentity) -> bool {
    target
        .filesystem
        .as_ref()
        .is_some_and(Filesystem::copies_on_write)
}

/// The space that an image behind `layer` takes while so many bytes are written to a target above
/// it; `None` where the image cannot be opened.
fn of_image(
    mut image: TargetIdentity,
    layer: &Layer,
    target: &TargetIdentity,
    new_bytes: u64,
) -> Option<SpaceUse> {
    let written_bytes = if may_relocate_blocks(target) {
        layer.size_bytes
    } else {
        new_bytes.min(layer.size_bytes)
    };
    // What the user wants to stay free on the target's filesystem stays free below it, too.
    if let (Some(below), Some(above)) = (&mut image.filesystem, &target.filesystem) {
        below.kept_free_bytes = above.kept_free_bytes;
    }
    let fd = open_to_read(&image)?;
    let missing_bytes = missing_bytes_of_image(&image, layer, fd.as_fd());
    Some(SpaceUse {
        bytes: missing_bytes.min(written_bytes),
        taker: image,
        image: Some(ImageUse {
            device: layer.name.clone(),
            bytes_max: missing_bytes,
        }),
    })
}

/// The bytes of an image that need new blocks when all of its device is overwritten. An image that
/// is smaller than its device (qcow2) grows.
fn missing_bytes_of_image(image: &TargetIdentity, layer: &Layer, fd: BorrowedFd<'_>) -> u64 {
    let growth_bytes = layer.size_bytes.saturating_sub(image.size_bytes);
    missing_bytes(image, fd).saturating_add(growth_bytes)
}

/// The bytes of a file that need new blocks when they are overwritten.
fn missing_bytes(file: &TargetIdentity, fd: BorrowedFd<'_>) -> u64 {
    let (Some(filesystem), Ok(stat)) = (&file.filesystem, fstat(fd)) else {
        return file.size_bytes;
    };
    if filesystem.copies_on_write() {
        return file.size_bytes;
    }
    // The count of blocks includes those beyond the end of the file.
    let allocated_bytes = u64::try_from(stat.st_blocks)
        .unwrap_or(0)
        .saturating_mul(SECTOR_BYTES);
    let holes = unallocated_bytes(fd, file.size_bytes)
        .unwrap_or(file.size_bytes.saturating_sub(allocated_bytes));
    if filesystem.overwrites_without_space() {
        return holes;
    }
    holes.saturating_add(shared_bytes(fd, file.size_bytes).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::fake_sysfs::FakeSysfs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    pub(super) const MIB: u64 = 1 << 20;

    /// A target on nbd0, a disk of this size whose program has this image open.
    pub(super) fn above(sysfs: &FakeSysfs, image: &Path, size_bytes: u64) -> TargetIdentity {
        sysfs.add_block_device("virtual/nbd0", "43:0", &[("pid", "77")]);
        sysfs.write_attribute("proc/77/fdinfo/5", "flags:\t02100002");
        let descriptors = sysfs.root().proc.join("77/fd");
        std::fs::create_dir_all(&descriptors).unwrap();
        symlink(image, descriptors.join("5")).unwrap();
        let mut target = probe(image.parent().unwrap()).unwrap();
        target.layers = vec![Layer {
            name: "nbd0".to_owned(),
            kind: LayerKind::Network,
            size_bytes,
            ..Layer::default()
        }];
        target
    }

    pub(super) fn image_of(size_bytes: u64) -> tempfile::NamedTempFile {
        let image = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        image.as_file().set_len(size_bytes).unwrap();
        image
    }

    #[test]
    fn image_behind_nbd_takes_its_holes_and_what_it_grows_by() {
        // A raw image, and one that grows with what is written.
        for image_mib in [64, 16] {
            let (sysfs, image) = (FakeSysfs::new(), image_of(image_mib * MIB));
            let target = above(&sysfs, image.path(), 64 * MIB);
            for (new_mib, taken_mib) in [(8, 8), (100, 64)] {
                let uses = of_images_in(&sysfs.root(), &target, new_mib * MIB);
                let taken: Vec<u64> = uses.iter().map(|one| one.bytes).collect();
                assert_eq!(taken, [taken_mib * MIB]);
                assert!(
                    uses[0]
                        .taker
                        .path
                        .ends_with(&*image.path().to_string_lossy())
                );
            }
        }
    }
}
