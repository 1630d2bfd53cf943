//! Sums up the kernel's counters of the block devices on which files lie, over the measured parts
//! of a run. It counts the device of each file itself, not the disk below a volume, and the members
//! of volumes and arrays.

use crate::counters::snapshot::{DiskCounters, read_counters};
use crate::kernel::sysroot::SysRoot;
use diskproof_model::measurement::{DiskTimes, DiskTotals};
use diskproof_model::target::{Layer, LayerKind, TargetIdentity};
use std::time::Instant;

/// Counts while it is not paused. It begins paused.
///
/// `as fio` prints these figures as fio's `disk_util`, which counts the same devices.
#[derive(Debug)]
pub struct DiskTally {
    root: SysRoot,
    disks: Vec<TalliedDisk>,
    /// When it was resumed; `None` while it is paused.
    resumed: Option<Instant>,
}

#[derive(Debug)]
struct TalliedDisk {
    /// `major:minor`.
    device: String,
    /// The counters when it was resumed.
    before: Option<DiskCounters>,
    /// The sum of what was counted between each resume and pause.
    total: DiskTotals,
}

impl DiskTally {
    /// The devices of these targets, each once. A filesystem without a device of its own (btrfs,
    /// tmpfs, overlay) has none.
    pub fn new(identities: &[TargetIdentity]) -> Self {
        Self::new_in(SysRoot::default(), identities)
    }

    fn new_in(root: SysRoot, identities: &[TargetIdentity]) -> Self {
        let mut tally = Self {
            root,
            disks: Vec::new(),
            resumed: None,
        };
        for identity in identities {
            let layers = &identity.layers;
            let layer_of_target = layers.iter().find(|layer| layer.device == identity.device);
            if let Some(layer_of_target) = layer_of_target {
                tally.add(layer_of_target, layers);
            }
        }
        tally
    }

    /// Adds a layer and what it is made of. A partition counts as its disk.
    fn add(&mut self, layer: &Layer, layers: &[Layer]) {
        let below = layers
            .iter()
            .filter(|other| layer.below.contains(&other.name));
        if layer.kind == LayerKind::Partition {
            for disk in below {
                self.add(disk, layers);
            }
            return;
        }
        if self
            .disks
            .iter()
            .any(|known| known.total.name == layer.name)
        {
            return;
        }
        let is_composed = matches!(layer.kind, LayerKind::DeviceMapper | LayerKind::Md);
        let members: Vec<&Layer> = below
            .filter(|_| is_composed)
            .filter_map(|member| whole_disk(member, layers))
            .collect();
        self.disks.push(TalliedDisk {
            device: layer.device.clone(),
            before: None,
            total: DiskTotals {
                name: layer.name.clone(),
                members: members.iter().map(|member| member.name.clone()).collect(),
                ..DiskTotals::default()
            },
        });
        for member in members {
            self.add(member, layers);
        }
    }

    /// Counts from now on.
    pub fn resume(&mut self) {
        if self.resumed.is_some() {
            return;
        }
        for disk in &mut self.disks {
            disk.before = read_counters(&self.root, &disk.total.name, &disk.device).ok();
        }
        self.resumed = Some(Instant::now());
    }

    /// Counts no more until the next [`Self::resume`].
    pub fn pause(&mut self) {
        let totals = self.totals();
        for (disk, total) in self.disks.iter_mut().zip(totals) {
            disk.total = total;
        }
        self.resumed = None;
    }

    /// The counters up to now. A device that vanished, or whose counters began anew, keeps the
    /// figures that it had.
    pub fn totals(&self) -> Vec<DiskTotals> {
        self.disks
            .iter()
            .map(|disk| match self.resumed {
                Some(resumed) => self.totals_until(disk, resumed),
                None => disk.total.clone(),
            })
            .collect()
    }

    fn totals_until(&self, disk: &TalliedDisk, resumed: Instant) -> DiskTotals {
        let mut total = disk.total.clone();
        total.times = total.times.followed_by(DiskTimes {
            elapsed_ms: resumed.elapsed().as_millis() as u64,
            ..DiskTimes::default()
        });
        let now = read_counters(&self.root, &total.name, &disk.device).ok();
        let (Some(now), Some(before)) = (now, &disk.before) else {
            return total;
        };
        if let Some(change) = now.since(before) {
            change.add_to(&mut total);
        }
        total
    }
}

/// The disk of a partition, or the device itself.
fn whole_disk<'a>(layer: &'a Layer, layers: &'a [Layer]) -> Option<&'a Layer> {
    if layer.kind == LayerKind::Partition {
        layers
            .iter()
            .find(|other| layer.below.contains(&other.name))
    } else {
        Some(layer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::disk::bare_layer;
    use crate::kernel::fake_sysfs::FakeSysfs;
    use diskproof_model::target::TargetKind;

    fn layer(name: &str, kind: LayerKind, device: &str, below: &[&str]) -> Layer {
        Layer {
            kind,
            below: below.iter().map(|&name| name.to_owned()).collect(),
            ..bare_layer(name, device)
        }
    }

    fn identity(device: &str, layers: Vec<Layer>) -> TargetIdentity {
        TargetIdentity {
            path: "/data".to_owned(),
            kind: TargetKind::Directory,
            size_bytes: 0,
            free_bytes: None,
            device: device.to_owned(),
            inode: 2,
            filesystem: None,
            layers,
            unresolved: None,
        }
    }

    fn names(tally: &DiskTally) -> Vec<String> {
        let totals = tally.totals().into_iter();
        totals.map(|total| total.name).collect()
    }

    #[test]
    fn tally_has_the_device_of_the_file_and_the_members_of_volumes() {
        let partition = layer("sda1", LayerKind::Partition, "8:1", &["sda"]);
        let disk = layer("sda", LayerKind::Disk, "8:0", &[]);
        let on_partition = identity("8:1", vec![partition.clone(), disk.clone()]);
        assert_eq!(names(&DiskTally::new(&[on_partition])), ["sda"]);

        let volume = layer("dm-0", LayerKind::DeviceMapper, "253:0", &["sda1", "sdb"]);
        let other = layer("sdb", LayerKind::Disk, "8:16", &[]);
        let layers = vec![volume, partition, disk.clone(), other];
        let on_volume = identity("253:0", layers);
        let tally = DiskTally::new(&[on_volume.clone(), on_volume]);
        assert_eq!(names(&tally), ["dm-0", "sda", "sdb"]);
        assert_eq!(tally.totals()[0].members, ["sda", "sdb"]);

        let looped = layer("loop1", LayerKind::Loop, "7:1", &["sda"]);
        let on_loop = identity("7:1", vec![looped, disk.clone()]);
        assert_eq!(names(&DiskTally::new(&[on_loop])), ["loop1"]);

        // As of btrfs: the number of the filesystem is that of no device.
        assert!(names(&DiskTally::new(&[identity("0:42", vec![disk])])).is_empty());
    }

    #[test]
    fn tally_counts_only_what_comes_between_resume_and_pause() {
        let sysfs = FakeSysfs::new();
        let stat = "dev/block/8:0/stat";
        let set = |reads: u64| sysfs.write_attribute(stat, &format!("{reads} 1 8 5 0 0 0 0 0 7 9"));
        set(100);
        let disk = layer("sda", LayerKind::Disk, "8:0", &[]);
        let mut tally = DiskTally::new_in(sysfs.root(), &[identity("8:0", vec![disk])]);
        set(200);
        tally.resume();
        set(230);
        assert_eq!(tally.totals()[0].read_ops, 30);
        tally.pause();
        set(1000);
        assert_eq!(tally.totals()[0].read_ops, 30);
        tally.resume();
        set(1005);
        assert_eq!(tally.totals()[0].read_ops, 35);
    }
}
