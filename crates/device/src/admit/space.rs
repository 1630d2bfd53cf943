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
pub(super) fn directory_uses(directory: &TargetIdentity, need: SpaceNeed) -> Vec<SpaceUse> {
    let mut uses = vec![SpaceUse {
        taker: directory.clone(),
        bytes: need.missing_bytes(),
        image: None,
    }];
    // What the filesystem has allocated for a file may still be a hole of the image.
    uses.extend(image_uses(directory, need.size_bytes));
    uses
}

/// The space that a target takes while all of it is overwritten; none of a file that cannot be
/// inspected, which is refused for that.
pub(super) fn released_uses(target: &TargetIdentity) -> Vec<SpaceUse> {
    if target.kind == TargetKind::BlockDevice {
        return image_uses(target, target.size_bytes);
    }
    match open_to_read(target) {
        Some(fd) => file_uses(target, fd.as_fd()),
        None => Vec::new(),
    }
}

fn open_to_read(file: &TargetIdentity) -> Option<OwnedFd> {
    let held = Held::identified(file).ok()?;
    held.reopen(OFlags::RDONLY | OFlags::NONBLOCK).ok()
}

/// The space that a file takes while it is overwritten, there and in the images below it. `fd` is
/// the file.
pub(super) fn file_uses(file: &TargetIdentity, fd: BorrowedFd<'_>) -> Vec<SpaceUse> {
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
        uses.extend(image_uses(file, missing_bytes.max(unwritten)));
    }
    uses
}

/// The space that the images of the loop and nbd devices below a target take, while so many bytes
/// are written to it at places that were not written before. None of images that cannot be looked
/// at: the gate refuses a loop device above such a one.
pub(super) fn image_uses(target: &TargetIdentity, new_bytes: u64) -> Vec<SpaceUse> {
    image_uses_in(&SysRoot::default(), target, new_bytes)
}

fn image_uses_in(root: &SysRoot, target: &TargetIdentity, new_bytes: u64) -> Vec<SpaceUse> {
    let mut uses = Vec::new();
    for layer in &target.layers {
        if let Some(image) = image_behind_loop(layer, target) {
            uses.extend(image_use(image, layer, target, new_bytes));
        }
        for image in images_of_nbd(root, layer) {
            if let Some(image) = identified_image(&image) {
                uses.extend(image_use(image, layer, target, new_bytes));
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
    let may_inspect = target.kind == TargetKind::BlockDevice
        || !layer.backing_filesystem.as_deref().is_some_and(is_served);
    if !may_inspect {
        return None;
    }
    identified_image(&FileBehind {
        path: PathBuf::from(path),
        id: file_behind_loop(&node(&layer.name), &layer.device),
    })
}

/// The identity of an image, unless another file has its name by now.
fn identified_image(file: &FileBehind) -> Option<TargetIdentity> {
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
fn image_use(
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
    use crate::kernel::file_id::FileId;
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
                let uses = image_uses_in(&sysfs.root(), &target, new_mib * MIB);
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

    /// What a target above an image of 64 MiB without blocks takes for 8 new MiB.
    fn use_for_new_blocks(change: impl FnOnce(&mut Filesystem)) -> SpaceUse {
        let (sysfs, image) = (FakeSysfs::new(), image_of(64 * MIB));
        let mut target = above(&sysfs, image.path(), 64 * MIB);
        change(target.filesystem.as_mut().unwrap());
        image_uses_in(&sysfs.root(), &target, 8 * MIB).remove(0)
    }

    #[test]
    fn filesystem_that_relocates_blocks_may_fill_all_of_the_image_below() {
        let in_place = use_for_new_blocks(|filesystem| filesystem.kind = "ext4".to_owned());
        assert_eq!(in_place.bytes, 8 * MIB);
        let relocating = use_for_new_blocks(|filesystem| filesystem.kind = "btrfs".to_owned());
        assert_eq!(relocating.bytes, 64 * MIB);
    }

    #[test]
    fn space_that_the_user_keeps_free_stays_free_below_too() {
        let taken = use_for_new_blocks(|filesystem| filesystem.kept_free_bytes = Some(7 * MIB));
        let below = taken.taker.filesystem.unwrap();
        assert_eq!(below.kept_free_bytes, Some(7 * MIB));
    }

    #[test]
    fn overwriting_takes_holes_or_all_blocks_where_they_are_copied() {
        let written = image_of(0);
        std::fs::write(written.path(), vec![1; MIB as usize]).unwrap();
        written.as_file().sync_all().unwrap();
        let sparse = image_of(MIB);
        for (kind, written_bytes, sparse_bytes) in [("ext4", 0, MIB), ("btrfs", MIB, MIB)] {
            for (file, expected_bytes) in [(&written, written_bytes), (&sparse, sparse_bytes)] {
                let mut identity = probe(file.path()).unwrap();
                identity.filesystem.as_mut().unwrap().kind = kind.to_owned();
                let missing = missing_bytes(&identity, file.as_file().as_fd());
                assert_eq!(missing, expected_bytes, "{kind}");
            }
        }
    }

    #[test]
    fn file_with_the_name_of_an_image_is_another_one_if_its_inode_differs() {
        let image = image_of(MIB);
        let path = image.path().to_path_buf();
        let stat = fstat(image.as_file()).unwrap();
        let mut id = FileId {
            device: stat.st_dev,
            inode: stat.st_ino,
        };
        let behind = |id: FileId| FileBehind {
            path: path.clone(),
            id: Some(id),
        };
        assert!(identified_image(&behind(id)).is_some());
        id.inode += 1;
        assert!(identified_image(&behind(id)).is_none());
    }
}
