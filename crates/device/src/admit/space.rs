//! The free space that targets take while they are written: scratch files, holes of files, blocks
//! that a snapshot or another file shares, and the same of the images behind loop devices. One
//! filesystem may serve several of them. Reads metadata only.

use super::kept_free::{RESERVE_BY_DEFAULT, SPACE_STEP_BYTES, bytes_kept_free, kept_free_text};
use super::reasons::{RefusalReasons, Step};
use super::snapshots;
use crate::file::extents::{shared_bytes, unallocated_bytes, unwritten_bytes};
use crate::file::held::Held;
use crate::identity::files_behind::{FileBehind, images_of_nbd};
use crate::identity::layers::is_served;
use crate::identity::probe::probe;
use crate::kernel::naming::{device_number, node};
use crate::kernel::syscalls::file_behind_loop;
use crate::kernel::sysroot::{SysRoot, read_text};
use diskproof_model::target::{Filesystem, Layer, LayerKind, TargetIdentity, TargetKind};
use diskproof_model::units::{SECTOR_BYTES, format_bytes};
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

/// The remedy where a file or device that the user released takes too much space.
pub(super) const FREE_OR_SMALLER: &str = "Free some space there, or use a smaller size or file.";

/// Adds a reason with this remedy for each filesystem that has less free space than these files and
/// images take of it. Directories are judged with the size of their scratch file.
pub(super) fn judge_files(uses: &[SpaceUse], remedy: &str, reasons: &mut RefusalReasons) {
    let files = uses.iter().filter(|one| one.taker.kind == TargetKind::File);
    for space in SharedSpace::group(files) {
        if space.is_overfull() {
            reasons.add(space.reason(), Step::sentence(remedy));
        }
    }
}

/// The most that may be written to new files of a directory for what its images take; `None` where
/// they limit nothing.
pub(super) fn room_in_images(directory: &TargetIdentity) -> Option<u64> {
    room_in(&of_images(directory, u64::MAX), directory)
}

/// The same for these uses of images, which take whatever their holes are.
fn room_in(images: &[SpaceUse], directory: &TargetIdentity) -> Option<u64> {
    let mut room: Option<u64> = None;
    for space in SharedSpace::group(images.iter()) {
        let spare_bytes = spare_bytes(space.filesystem);
        if space.bytes() <= spare_bytes {
            continue;
        }
        // A filesystem that relocates blocks may take all holes for a small file. Each image may
        // take all that is written: those of a mirror do.
        let own_room = if may_relocate_blocks(directory) {
            0
        } else {
            spare_bytes / space.uses.len() as u64
        };
        room = Some(room.unwrap_or(u64::MAX).min(own_room));
    }
    room
}

/// Ends of the UUIDs of device mapper pools, whose volumes together may be larger than the pool:
/// LVM's thin pools, its pools of VDO, and the pools of Stratis.
const POOL_ENDS: [&str; 3] = ["-tpool", "-vpool", "-thinpool-pool"];

/// Prefixes of the kernel names of disks that a program, a filesystem or another machine serves:
/// nbd, ublk and the volumes of ZFS, which may be sparse.
const SERVED_PREFIXES: [&str; 3] = ["nbd", "ublkb", "zd"];

/// Says which space below a target is not known, a clause each: of pools, whose use only an ioctl
/// of the device mapper reports, of snapshots, and of disks that a server provides.
pub(super) fn unknown_space(target: &TargetIdentity) -> Vec<String> {
    unknown_space_in(&SysRoot::default(), target)
}

fn unknown_space_in(root: &SysRoot, target: &TargetIdentity) -> Vec<String> {
    let mut unknown = snapshots::notes(root, target);
    for layer in &target.layers {
        if let Some(pool) = pool_name(root, layer) {
            unknown.push(format!(
                "the free space of the pool {pool} is not known and may not suffice for what is \
                 written; see 'lvs'"
            ));
        }
        if is_disk_served(layer) && images_of_nbd(root, layer).is_empty() {
            unknown.push(format!(
                "what serves {} is not known, and may have too little space for what is written",
                layer.name
            ));
        }
    }
    unknown
}

/// True for a whole disk that a server provides.
fn is_disk_served(layer: &Layer) -> bool {
    layer.kind != LayerKind::Partition
        && SERVED_PREFIXES
            .iter()
            .any(|prefix| layer.name.starts_with(prefix))
}

/// The name of a pool of the device mapper; `None` of any other device.
fn pool_name(root: &SysRoot, layer: &Layer) -> Option<String> {
    let device = root.named_device(&layer.name)?;
    let uuid = read_text(&device.join("dm/uuid"))?;
    if POOL_ENDS.iter().any(|end| uuid.ends_with(end)) {
        read_text(&device.join("dm/name"))
    } else {
        None
    }
}

/// Adds a reason for each filesystem that has less free space than several targets take of it
/// together, each of which alone has room.
pub(super) fn judge_together<'a>(
    uses: impl Iterator<Item = &'a SpaceUse>,
    reasons: &mut RefusalReasons,
) {
    for space in SharedSpace::group(uses) {
        if space.is_overfull() {
            let step = "Use smaller sizes or fewer targets, or free some space.";
            reasons.add(space.reason(), Step::sentence(step));
        }
    }
}

/// Everything that takes the free space of one filesystem.
struct SharedSpace<'a> {
    uses: Vec<&'a SpaceUse>,
    /// The filesystem, where it showed the least free space.
    filesystem: &'a Filesystem,
}

/// The space that all targets above an image take in it.
struct ImageSum<'a> {
    image: &'a TargetIdentity,
    bytes: u64,
    bytes_max: u64,
}

impl<'a> SharedSpace<'a> {
    fn group(uses: impl Iterator<Item = &'a SpaceUse>) -> Vec<Self> {
        let mut spaces: Vec<Self> = Vec::new();
        for one in uses {
            let Some(filesystem) = &one.taker.filesystem else {
                continue;
            };
            // A FUSE server may report neither blocks nor space.
            if filesystem.size_bytes == 0 {
                continue;
            }
            match spaces.iter_mut().find(|space| space.serves(one)) {
                Some(space) => space.add(one, filesystem),
                None => spaces.push(Self {
                    uses: vec![one],
                    filesystem,
                }),
            }
        }
        spaces
    }

    fn serves(&self, one: &SpaceUse) -> bool {
        self.uses
            .iter()
            .any(|other| other.taker.shares_space(&one.taker))
    }

    fn add(&mut self, one: &'a SpaceUse, filesystem: &'a Filesystem) {
        self.uses.push(one);
        if spare_bytes(filesystem) < spare_bytes(self.filesystem) {
            self.filesystem = filesystem;
        }
    }

    /// The sum of what is taken. An image takes its own missing blocks once.
    fn bytes(&self) -> u64 {
        let mut sum: u64 = 0;
        let mut images: Vec<ImageSum<'_>> = Vec::new();
        for one in &self.uses {
            let Some(image) = &one.image else {
                sum = sum.saturating_add(one.bytes);
                continue;
            };
            match images
                .iter_mut()
                .find(|known| known.image.is_same(&one.taker))
            {
                Some(known) => known.bytes = known.bytes.saturating_add(one.bytes),
                None => images.push(ImageSum {
                    image: &one.taker,
                    bytes: one.bytes,
                    bytes_max: image.bytes_max,
                }),
            }
        }
        for image in images {
            sum = sum.saturating_add(image.bytes.min(image.bytes_max));
        }
        sum
    }

    fn is_overfull(&self) -> bool {
        let bytes = self.bytes();
        bytes >= SPACE_STEP_BYTES && bytes > spare_bytes(self.filesystem)
    }

    fn reason(&self) -> String {
        let (needed, free) = (
            format_bytes(self.bytes()),
            format_bytes(self.filesystem.free_bytes),
        );
        let kept = self.kept_text();
        match self.uses[..] {
            [
                SpaceUse {
                    taker,
                    image: Some(image),
                    ..
                },
            ] => format!(
                "the file {} behind {} takes up to {needed} more space while it is written; {free} \
                 are free{kept}",
                taker.path, image.device
            ),
            [one] if one.taker.kind == TargetKind::File => {
                let what = if self.filesystem.overwrites_without_space() {
                    "holes"
                } else {
                    "holes, or blocks that a snapshot or another file may share,"
                };
                format!(
                    "{needed} of it are {what} that need space when they are written; {free} are \
                     free{kept}"
                )
            }
            _ => {
                let mut paths: Vec<&str> = self
                    .uses
                    .iter()
                    .map(|one| one.taker.path.as_str())
                    .collect();
                // Several files in one directory.
                paths.dedup();
                format!(
                    "not enough free space: {free} are free at {}, but {needed} are needed for {} \
                     together{kept}",
                    self.filesystem.mount_point,
                    paths.join(" and ")
                )
            }
        }
    }

    /// A target that is a device has no `--keep-free`, which is about the filesystem of a target.
    fn kept_text(&self) -> String {
        let are_images = self.uses.iter().all(|one| one.image.is_some());
        if !are_images || self.filesystem.kept_free_bytes.is_some() {
            return kept_free_text(self.filesystem);
        }
        let kept = format_bytes(bytes_kept_free(self.filesystem));
        format!(", and {kept} must stay free ({RESERVE_BY_DEFAULT})")
    }
}

/// The free space beyond what must stay free.
fn spare_bytes(filesystem: &Filesystem) -> u64 {
    filesystem
        .free_bytes
        .saturating_sub(bytes_kept_free(filesystem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::fake_sysfs::FakeSysfs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    const MIB: u64 = 1 << 20;

    /// A target on nbd0, a disk of this size whose program has this image open.
    fn above(sysfs: &FakeSysfs, image: &Path, size_bytes: u64) -> TargetIdentity {
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

    fn image_of(size_bytes: u64) -> tempfile::NamedTempFile {
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

    /// Each image fits into the free space, both do not.
    #[test]
    fn images_of_one_filesystem_share_its_room() {
        let (sysfs, image, other) = (FakeSysfs::new(), image_of(64 * MIB), image_of(64 * MIB));
        let directory = above(&sysfs, image.path(), 64 * MIB);
        let mut uses = of_images_in(&sysfs.root(), &directory, u64::MAX);
        let other = probe(other.path()).unwrap();
        uses.push(SpaceUse {
            taker: other,
            ..uses[0].clone()
        });
        for one in &mut uses {
            let filesystem = one.taker.filesystem.as_mut().unwrap();
            filesystem.kept_free_bytes = Some(0);
            filesystem.free_bytes = 100 * MIB;
        }
        assert_eq!(room_in(&uses[..1], &directory), None);
        assert_eq!(room_in(&uses, &directory), Some(50 * MIB));
    }

    #[test]
    fn space_of_pools_and_of_served_disks_is_said_to_be_unknown() {
        let sysfs = FakeSysfs::new();
        let volume = [("dm/name", "vg0-data"), ("dm/uuid", "LVM-abc")];
        sysfs.add_block_device("virtual/dm-0", "253:0", &volume);
        let pool = [("dm/name", "vg0-pool-tpool"), ("dm/uuid", "LVM-abd-tpool")];
        sysfs.add_block_device("virtual/dm-1", "253:1", &pool);
        // The program that attached it is no server: it has a socket.
        sysfs.add_block_device("virtual/nbd1", "43:32", &[("pid", "78")]);
        let mut target = above(&sysfs, image_of(64 * MIB).path(), 64 * MIB);
        let served = unknown_space_in(&sysfs.root(), &target);
        assert_eq!(served.len(), 1, "its image is gone: {served:?}");
        target.layers.clear();
        let pool = [
            ("dm/uuid", "stratis-1-private-abc-thinpool-pool"),
            ("dm/name", "st"),
        ];
        sysfs.add_block_device("virtual/dm-2", "253:2", &pool);
        for name in ["dm-0", "dm-1", "nbd1", "dm-2", "zd0", "ublkb7", "nbd1p1"] {
            target.layers.push(Layer {
                name: name.to_owned(),
                kind: match name {
                    "nbd1p1" => LayerKind::Partition,
                    _ => LayerKind::Disk,
                },
                ..Layer::default()
            });
        }
        let unknown = unknown_space_in(&sysfs.root(), &target);
        assert_eq!(unknown.len(), 5, "{unknown:?}");
        assert!(unknown[0].contains("vg0-pool-tpool"), "{unknown:?}");
        assert!(unknown[1].contains("nbd1"), "{unknown:?}");
    }

    #[test]
    fn image_below_several_targets_takes_its_holes_once() {
        let (sysfs, image) = (FakeSysfs::new(), image_of(64 * MIB));
        let target = above(&sysfs, image.path(), 64 * MIB);
        let one = of_images_in(&sysfs.root(), &target, 40 * MIB);
        let both = [one.clone(), one].concat();
        let spaces = SharedSpace::group(both.iter());
        assert_eq!(spaces.len(), 1);
        assert_eq!(spaces[0].bytes(), 64 * MIB);
    }
}
