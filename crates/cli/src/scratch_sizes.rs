//! Decides the sizes of scratch files in several directories, which may share the free space of one
//! filesystem.

use crate::failure::Failure;
use diskproof_device::{scratch_bytes_free, scratch_bytes_max};
use diskproof_model::target::{Refusal, TargetIdentity, TargetKind};
use diskproof_model::units::format_bytes;

/// The targets that get a scratch file.
pub(crate) fn directories(identities: &[TargetIdentity]) -> Vec<&TargetIdentity> {
    identities
        .iter()
        .filter(|identity| identity.kind == TargetKind::Directory)
        .collect()
}

/// The bytes that a scratch file in each of the directories may have, if all have the same size.
pub(crate) fn room_for_each(directories: &[&TargetIdentity]) -> u64 {
    directories
        .iter()
        .map(|directory| room_in(directory, directories))
        .min()
        .unwrap_or(0)
}

/// The bytes of a scratch file in this directory: its share of the room on its filesystem.
fn room_in(directory: &TargetIdentity, directories: &[&TargetIdentity]) -> u64 {
    scratch_bytes_max(directory) / files_on_filesystem(directory, directories)
}

/// The number of scratch files on the filesystem of a directory, its own included.
fn files_on_filesystem(directory: &TargetIdentity, directories: &[&TargetIdentity]) -> u64 {
    directories
        .iter()
        .filter(|other| other.shares_space(directory))
        .count() as u64
}

/// Refuses scratch files of this size where several are on one filesystem without room for all of
/// them. A directory alone on its filesystem is left to the gate, which says how much is free.
pub(crate) fn refuse_overfull_filesystem(
    size_bytes: u64,
    directories: &[&TargetIdentity],
) -> Result<(), Failure> {
    for directory in directories {
        let files = files_on_filesystem(directory, directories);
        if files == 1 || size_bytes <= scratch_bytes_free(directory) / files {
            continue;
        }
        return Err(Failure::Refused(Refusal {
            asked: format!(
                "write scratch files of {} each in {} directories",
                format_bytes(size_bytes),
                directories.len()
            ),
            reasons: vec![format!(
                "{files} of them are on the filesystem of {}, which they would fill",
                directory.path
            )],
            remedy: format!(
                "Use a size of at most {} each, or free some space.",
                format_bytes(room_for_each(directories))
            ),
        }));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_device::probe;
    use diskproof_model::target::Layer;
    use std::path::Path;

    const GIB: u64 = 1 << 30;

    /// A directory on the filesystem `device`, which keeps 2 GiB free.
    fn directory(path: &str, device: &str, room_bytes: u64) -> TargetIdentity {
        let mut identity = probe(Path::new("/")).unwrap();
        identity.path = path.to_owned();
        identity.device = device.to_owned();
        identity.layers = vec![Layer {
            device: device.to_owned(),
            ..Layer::default()
        }];
        let filesystem = identity.filesystem.as_mut().unwrap();
        filesystem.size_bytes = 100 * GIB;
        filesystem.free_bytes = room_bytes + 2 * GIB;
        identity
    }

    #[test]
    fn files_on_one_filesystem_share_its_room() {
        let identities = [
            directory("/a", "8:1", 6 * GIB),
            directory("/a/b", "8:1", 6 * GIB),
            directory("/c", "8:2", 5 * GIB),
        ];
        let all = directories(&identities);
        assert_eq!(room_for_each(&all[..1]), 6 * GIB);
        assert_eq!(room_for_each(&all[1..]), 5 * GIB);
        assert_eq!(room_for_each(&all), 3 * GIB);
        assert!(refuse_overfull_filesystem(3 * GIB, &all).is_ok());
        // A directory alone on its filesystem is the gate's to refuse.
        assert!(refuse_overfull_filesystem(7 * GIB, &all[1..]).is_ok());
        let refusal = refuse_overfull_filesystem(4 * GIB, &all)
            .unwrap_err()
            .to_string();
        for part in [
            "3 directories",
            "2 of them",
            "filesystem of /a,",
            "at most 3 GiB",
        ] {
            assert!(refusal.contains(part), "{part}: {refusal}");
        }
    }
}
