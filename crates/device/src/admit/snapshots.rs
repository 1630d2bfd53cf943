//! Snapshots of LVM that keep what a target overwrites (those outside of thin pools). Each has a
//! store for the old blocks, and the kernel drops the snapshot for good when its store is full
//! (`__invalidate_snapshot` in dm-snap.c): a backup that nobody gave up would be lost. Reads sysfs
//! only, which does not show how full a store is.

use super::reasons::{RefusalReasons, Step};
use crate::kernel::sysroot::{SysRoot, list, read_number, read_text};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::{SECTOR_BYTES, format_bytes};
use std::path::Path;

/// The end of the UUID of what lies below a volume that has snapshots.
const ORIGIN_END: &str = "-real";
/// The end of the UUID of a snapshot's store.
const STORE_END: &str = "-cow";

/// A snapshot that is lost when more than its store holds is overwritten.
#[derive(Debug, PartialEq, Eq)]
struct Snapshot {
    /// As device mapper names it, such as `vg0-backup`.
    name: String,
    /// The kernel name of its store.
    store: String,
    store_bytes: u64,
}

impl Snapshot {
    /// True if its store lies below a target, which is then the snapshot itself.
    fn is_below(&self, target: &TargetIdentity) -> bool {
        target.layers.iter().any(|layer| layer.name == self.store)
    }
}

/// Refuses to write more to a target than a snapshot can keep: it would surely be lost.
pub(super) fn judge(target: &TargetIdentity, written_bytes: u64, reasons: &mut RefusalReasons) {
    judge_in(&SysRoot::default(), target, written_bytes, reasons);
}

fn judge_in(
    root: &SysRoot,
    target: &TargetIdentity,
    written_bytes: u64,
    reasons: &mut RefusalReasons,
) {
    let step = match target.kind {
        TargetKind::Directory => {
            "Use a smaller --size, wait until the snapshot is not needed, or extend it (lvextend)."
        }
        TargetKind::File | TargetKind::BlockDevice => {
            "Wait until the snapshot is not needed, or extend it (lvextend)."
        }
    };
    for snapshot in snapshots(root, target) {
        if written_bytes > snapshot.store_bytes {
            reasons.add(
                format!(
                    "its snapshot {} keeps what is overwritten in {}, and is lost when more than \
                     that is written",
                    snapshot.name,
                    format_bytes(snapshot.store_bytes)
                ),
                Step::sentence(step),
            );
        }
    }
}

/// Says of each snapshot that a target's writes fill it, a clause each.
pub(super) fn notes(root: &SysRoot, target: &TargetIdentity) -> Vec<String> {
    let mut notes = Vec::new();
    for snapshot in snapshots(root, target) {
        notes.push(format!(
            "the snapshot {} keeps what is overwritten, and is lost when its {} are full; see \
             'lvs'",
            snapshot.name,
            format_bytes(snapshot.store_bytes)
        ));
    }
    notes
}

/// The snapshots that are filled by what is written to a target.
fn snapshots(root: &SysRoot, target: &TargetIdentity) -> Vec<Snapshot> {
    let mut found = Vec::new();
    for layer in &target.layers {
        if let Some(device) = root.named_device(&layer.name)
            && has_uuid_end(&device, ORIGIN_END)
        {
            found.extend(snapshots_above(&device));
        }
    }
    // What is written to a snapshot itself lies in its own store alone.
    if found.iter().any(|snapshot| snapshot.is_below(target)) {
        found.retain(|snapshot| snapshot.is_below(target));
    }
    found
}

/// The snapshots above the origin whose directory in sysfs is `origin`.
fn snapshots_above(origin: &Path) -> Vec<Snapshot> {
    let mut found = Vec::new();
    for holder in list(&origin.join("holders")) {
        let holder = origin.join("holders").join(holder);
        for store in list(&holder.join("slaves")) {
            let directory = holder.join("slaves").join(&store);
            if !has_uuid_end(&directory, STORE_END) {
                continue;
            }
            found.push(Snapshot {
                name: read_text(&holder.join("dm/name")).unwrap_or_default(),
                // A store of unknown size counts as full, so that its snapshot is never lost.
                store_bytes: read_number::<u64>(&directory.join("size"))
                    .unwrap_or(0)
                    .saturating_mul(SECTOR_BYTES),
                store,
            });
        }
    }
    found
}

fn has_uuid_end(device: &Path, end: &str) -> bool {
    read_text(&device.join("dm/uuid")).is_some_and(|uuid| uuid.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::probe::probe;
    use crate::kernel::fake_sysfs::FakeSysfs;
    use diskproof_model::target::Layer;

    const MIB: u64 = 1 << 20;

    /// The volume dm-0 above the origin dm-1, with the snapshots dm-2 and dm-4, whose stores dm-3
    /// and dm-5 have 64 and 16 MiB.
    fn volume_with_snapshots() -> FakeSysfs {
        let sysfs = FakeSysfs::new();
        for (number, name, uuid, mib) in [
            (0, "vg0-data", "LVM-abc", 512),
            (1, "vg0-data-real", "LVM-abc-real", 512),
            (2, "vg0-backup", "LVM-abd", 512),
            (3, "vg0-backup-cow", "LVM-abd-cow", 64),
            (4, "vg0-old", "LVM-abe", 512),
            (5, "vg0-old-cow", "LVM-abe-cow", 16),
        ] {
            let sectors = (mib * MIB / SECTOR_BYTES).to_string();
            sysfs.add_block_device(
                &format!("virtual/dm-{number}"),
                &format!("253:{number}"),
                &[("dm/name", name), ("dm/uuid", uuid), ("size", &sectors)],
            );
        }
        for (below, above) in [(1, 0), (1, 2), (3, 2), (1, 4), (5, 4)] {
            for (of, kind, to) in [(below, "holders", above), (above, "slaves", below)] {
                sysfs.add_link(
                    &format!("devices/virtual/dm-{of}/{kind}/dm-{to}"),
                    &format!("class/block/dm-{to}"),
                );
            }
        }
        sysfs
    }

    fn target_above(names: &[&str]) -> TargetIdentity {
        let mut target = probe(&std::env::temp_dir()).unwrap();
        target.layers.clear();
        for name in names {
            target.layers.push(Layer {
                name: (*name).to_owned(),
                ..Layer::default()
            });
        }
        target
    }

    fn refusals(sysfs: &FakeSysfs, target: &TargetIdentity, written_bytes: u64) -> usize {
        let mut reasons = RefusalReasons::default();
        judge_in(&sysfs.root(), target, written_bytes, &mut reasons);
        reasons.count()
    }

    #[test]
    fn more_than_a_snapshot_can_keep_is_not_written() {
        let sysfs = volume_with_snapshots();
        let volume = target_above(&["dm-0", "dm-1", "vda"]);
        for (mib, refused) in [(1, 0), (16, 0), (17, 1), (64, 1), (512, 2)] {
            assert_eq!(refusals(&sysfs, &volume, mib * MIB), refused, "{mib} MiB");
        }
        let notes = notes(&sysfs.root(), &volume);
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].contains("vg0-backup"), "{notes:?}");
    }

    #[test]
    fn writes_to_a_snapshot_fill_its_own_store_alone() {
        let sysfs = volume_with_snapshots();
        let snapshot = target_above(&["dm-2", "dm-1", "dm-3", "vda"]);
        assert_eq!(refusals(&sysfs, &snapshot, 60 * MIB), 0);
        assert_eq!(refusals(&sysfs, &snapshot, 65 * MIB), 1);
    }

    #[test]
    fn volume_without_snapshots_has_no_note() {
        let sysfs = FakeSysfs::new();
        sysfs.add_block_device("virtual/dm-0", "253:0", &[("dm/uuid", "LVM-abc")]);
        let volume = target_above(&["dm-0", "vda"]);
        assert_eq!(notes(&sysfs.root(), &volume), [""; 0]);
        assert_eq!(refusals(&sysfs, &volume, u64::MAX), 0);
    }
}
