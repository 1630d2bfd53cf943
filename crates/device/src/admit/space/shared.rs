//! Judges if a filesystem has the free space that targets and images take of it together, beyond
//! what must stay free.

use super::{SpaceUse, image_uses, may_relocate_blocks};
use crate::admit::kept_free::{
    RESERVE_BY_DEFAULT, SPACE_STEP_BYTES, bytes_kept_free, kept_free_text,
};
use crate::admit::reasons::{RefusalReasons, Step};
use diskproof_model::target::{Filesystem, TargetIdentity, TargetKind};
use diskproof_model::units::format_bytes;

/// The remedy where a file or device that the user released takes too much space.
pub(crate) const FREE_OR_SMALLER: &str = "Free some space there, or use a smaller size or file.";

/// Adds a reason with this remedy for each filesystem that has less free space than these files and
/// images take of it. Directories are judged with the size of their scratch file.
pub(crate) fn judge_files(uses: &[SpaceUse], remedy: &str, reasons: &mut RefusalReasons) {
    let files = uses.iter().filter(|one| one.taker.kind == TargetKind::File);
    for space in SharedSpace::group(files) {
        if space.is_overfull() {
            reasons.add(space.reason(), Step::sentence(remedy));
        }
    }
}

/// The most that may be written to new files of a directory for what its images take; `None` where
/// they limit nothing.
pub(crate) fn room_in_images(directory: &TargetIdentity) -> Option<u64> {
    room_in(&image_uses(directory, u64::MAX), directory)
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

/// Adds a reason for each filesystem that has less free space than several targets take of it
/// together, each of which alone has room.
pub(crate) fn judge_together<'a>(
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
    use super::super::image_uses_in;
    use super::super::tests::{MIB, above, image_of};
    use super::*;
    use crate::identity::probe::probe;
    use crate::kernel::fake_sysfs::FakeSysfs;

    /// What must stay free is no room, a full filesystem is not overfull, and less than a mebibyte
    /// is never judged.
    #[test]
    fn filesystem_is_overfull_beyond_the_space_that_must_stay_free() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let mut directory = probe(place.path()).unwrap();
        let filesystem = directory.filesystem.as_mut().unwrap();
        filesystem.kept_free_bytes = Some(10 * MIB);
        for (free_bytes, taken_bytes, is_overfull) in [
            (110 * MIB, 100 * MIB, false),
            (110 * MIB, 100 * MIB + 1, true),
            (0, MIB - 1, false),
            (0, MIB, true),
        ] {
            directory.filesystem.as_mut().unwrap().free_bytes = free_bytes;
            let one = SpaceUse {
                taker: directory.clone(),
                bytes: taken_bytes,
                image: None,
            };
            let spaces = SharedSpace::group(std::iter::once(&one));
            assert_eq!(
                spaces[0].is_overfull(),
                is_overfull,
                "{taken_bytes} of {free_bytes}"
            );
        }
    }

    /// Each image fits into the free space, both do not.
    #[test]
    fn images_of_one_filesystem_share_its_room() {
        let (sysfs, image, other) = (FakeSysfs::new(), image_of(64 * MIB), image_of(64 * MIB));
        let directory = above(&sysfs, image.path(), 64 * MIB);
        let mut uses = image_uses_in(&sysfs.root(), &directory, u64::MAX);
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
    fn image_below_several_targets_takes_its_holes_once() {
        let (sysfs, image) = (FakeSysfs::new(), image_of(64 * MIB));
        let target = above(&sysfs, image.path(), 64 * MIB);
        let one = image_uses_in(&sysfs.root(), &target, 40 * MIB);
        let both = [one.clone(), one].concat();
        let spaces = SharedSpace::group(both.iter());
        assert_eq!(spaces.len(), 1);
        assert_eq!(spaces[0].bytes(), 64 * MIB);
    }
}
