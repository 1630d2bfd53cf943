//! Finds every device that shares blocks with a block device: its partitions, the disk that it is a
//! part of, partitions that overlap it, other paths to the same disk, and what lies behind a loop
//! device. Whatever uses one of them uses the target. Reads sysfs only.

use super::names::read_wwid;
use crate::identity::disk::size_bytes;
use crate::kernel::file_id::FileId;
use crate::kernel::naming::{device_number, node};
use crate::kernel::syscalls::file_behind_loop;
use crate::kernel::sysroot::{SysRoot, devices_in, list, read_number, read_text};
use crate::signatures::{Slice, SliceName};
use diskproof_model::units::SECTOR_BYTES;
use rustix::fs::{FileType, Stat, stat};
use std::path::{Path, PathBuf};

/// The longest chain of devices over devices that is followed. The kernel allows no circle
/// (loop_validate_file), but devices may change while the chain is read. Chosen, not measured: the
/// gate refuses a longer one.
const CHAIN_MAX: usize = 16;

/// One device that shares blocks with the target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Member {
    /// Kernel name.
    pub(crate) name: String,
    /// `major:minor`.
    pub(crate) device: String,
    /// The directory in sysfs.
    pub(crate) sysfs: PathBuf,
    /// Nodes of another kind through which the same disk is read and written.
    pub(super) character_nodes: Vec<CharacterNode>,
}

/// A character device that passes commands to a disk: `/dev/sg2`, `/dev/bsg/0:0:0:0`, `/dev/ng0n1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CharacterNode {
    /// Kernel name.
    pub(super) name: String,
    /// `major:minor`.
    pub(super) device: String,
}

impl Member {
    /// The usual path of its node, such as `/dev/sda1`.
    pub(crate) fn node(&self) -> String {
        node(&self.name)
    }

    /// True for the disk of an NVMe controller with this number, which sysfs links to its disk, or
    /// lists in the subsystem of several controllers.
    pub(super) fn is_controlled_by(&self, device: &str) -> bool {
        let place = self.sysfs.join("device");
        read_text(&place.join("dev")).as_deref() == Some(device)
            || devices_in(&place).iter().any(|number| number == device)
    }
}

/// A regular file behind a loop device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BackingFile {
    pub(crate) path: PathBuf,
    /// The file's device and inode; `None` where it cannot be looked at from here.
    pub(crate) id: Option<FileId>,
    /// Kernel name of the loop device above it.
    pub(crate) above: String,
    /// The place in it at which the target begins, in bytes.
    pub(crate) start: u64,
}

/// A block device behind a loop device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BackingDevice {
    pub(crate) member: Member,
    pub(crate) size_bytes: u64,
    /// The place in it at which the target begins, in bytes.
    pub(crate) start: u64,
    /// The disk around it, where it is a partition.
    pub(crate) disk: Option<BackingDisk>,
}

/// The disk of a partition that lies behind a loop device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BackingDisk {
    pub(crate) member: Member,
    /// The place in it at which the target begins, in bytes.
    pub(crate) start: u64,
}

impl BackingDisk {
    /// The partitions of the disk that the kernel knows.
    pub(crate) fn slices(&self) -> Vec<Slice> {
        slices(&self.member)
    }
}

/// A target and its relatives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DeviceFamily {
    /// The device that the user named.
    pub(crate) target: Member,
    /// The whole disk: the target itself, unless that is a partition.
    pub(crate) whole: Member,
    /// Devices that share blocks with the target, which comes first.
    pub(crate) members: Vec<Member>,
    /// Partitions of the target that the kernel knows.
    pub(crate) slices: Vec<Slice>,
    /// Partitions whose range overlaps the target's, or that of a partition behind it, though they
    /// are not part of it.
    pub(crate) overlapping: Vec<String>,
    /// Kernel names of other paths to the same disk, or to one behind it.
    pub(crate) other_paths: Vec<String>,
    /// Files behind it, where it is a loop device.
    pub(crate) backing_files: Vec<BackingFile>,
    /// Devices behind it, likewise: the next one first.
    pub(crate) backing_devices: Vec<BackingDevice>,
    /// Files behind loop devices that a device mapper or an array above them uses. What they hold
    /// belongs to that, such as the header of an encryption.
    pub(crate) files_below: Vec<BackingFile>,
    /// Kernel names of the loop devices above these.
    pub(crate) loops_below: Vec<String>,
    /// Kernel names of devices below which others lie that could not be found.
    pub(crate) unfollowed: Vec<String>,
}

impl DeviceFamily {
    /// Reads the relatives of a device, `major:minor`; `None` where sysfs does not show the device.
    pub(crate) fn read(root: &SysRoot, device: &str) -> Option<Self> {
        let target = member(root, device)?;
        let whole = disk_around(target.clone())?;
        let mut family = Self {
            target: target.clone(),
            whole: whole.clone(),
            members: vec![target.clone()],
            ..Self::default()
        };
        if is_partition(&target) {
            family.add(whole.clone());
            family.add_overlapping(&target, &whole);
        } else {
            family.slices = family.whole_slices();
            family.add_with_partitions(target.clone());
        }
        family.add_paths(root, &whole);
        family.add_backing(root, &whole);
        Some(family)
    }

    /// The member with this `major:minor`, if there is one.
    pub(crate) fn member(&self, device: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.device == device)
    }

    /// First byte of the target on its whole disk.
    pub(crate) fn target_start(&self) -> u64 {
        match slice(&self.target) {
            Some(slice) => slice.start,
            None => 0,
        }
    }

    /// The partitions of the whole disk that the kernel knows.
    pub(crate) fn whole_slices(&self) -> Vec<Slice> {
        slices(&self.whole)
    }

    fn add(&mut self, member: Member) {
        if self.member(&member.device).is_none() {
            self.members.push(member);
        }
    }

    fn add_with_partitions(&mut self, member: Member) {
        let parts = partitions(&member);
        self.add(member);
        for part in parts {
            self.add(part);
        }
    }

    fn add_overlapping(&mut self, target: &Member, whole: &Member) {
        let Some(own) = slice(target) else { return };
        for partition in partitions(whole) {
            if partition.device == target.device {
                continue;
            }
            let overlaps = match slice(&partition) {
                Some(other) => {
                    other.start < own.start + own.length && own.start < other.start + other.length
                }
                // Its place is unknown, so it may lie anywhere.
                None => true,
            };
            if overlaps {
                self.overlapping.push(partition.name.clone());
                self.add(partition);
            }
        }
    }

    /// A disk on a SAN, or with two ports, shows up once per path; what is mounted by one path is
    /// destroyed by the other.
    fn add_paths(&mut self, root: &SysRoot, whole: &Member) {
        let Some(wwid) = read_wwid(root, &whole.name) else {
            return;
        };
        for name in list(&root.sys.join("class/block")) {
            if name == whole.name || read_wwid(root, &name).as_ref() != Some(&wwid) {
                continue;
            }
            if let Some(sysfs) = root.named_device(&name)
                && let Some(path) = member_at(&sysfs)
                && !is_partition(&path)
            {
                self.other_paths.push(name);
                self.add_with_partitions(path);
            }
        }
    }

    /// Adds what lies behind a loop device, and behind the loop devices below that. The chain ends
    /// at a file, or at a device that is no loop device.
    fn add_backing(&mut self, root: &SysRoot, whole: &Member) {
        let mut above = whole.clone();
        let mut start = self.target_start();
        for _ in 0..CHAIN_MAX {
            let Some(path) = backing_path(&above.sysfs) else {
                return self.add_files_below(root, &above, 0);
            };
            start += read_number::<u64>(&above.sysfs.join("loop/offset")).unwrap_or(0);
            let behind = match stat(&path) {
                Ok(stat) if is_behind(&above, &stat) => Some(stat),
                _ => None,
            };
            match behind {
                Some(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice => {
                    let Some(below) = member(root, &device_number(stat.st_rdev)) else {
                        return self.unfollowed.push(above.name);
                    };
                    let disk = self.add_behind(root, &below, start);
                    // A partition has no file of its own: its disk may be a loop device, too.
                    if let Some(disk) = disk {
                        (above, start) = (disk.member, disk.start);
                    } else {
                        above = below;
                    }
                }
                _ => {
                    let id = behind.map(|stat| FileId::from(&stat));
                    return self.backing_files.push(BackingFile {
                        path,
                        id,
                        above: above.name,
                        start,
                    });
                }
            }
        }
        self.unfollowed.push(above.name);
    }

    /// Adds the files behind the loop devices that a device mapper or an array uses.
    fn add_files_below(&mut self, root: &SysRoot, above: &Member, depth: usize) {
        if depth > CHAIN_MAX {
            return self.unfollowed.push(above.name.clone());
        }
        for device in devices_in(&above.sysfs.join("slaves")) {
            let Some(disk) = member(root, &device).and_then(disk_around) else {
                self.unfollowed.push(above.name.clone());
                continue;
            };
            let Some(path) = backing_path(&disk.sysfs) else {
                self.add_files_below(root, &disk, depth + 1);
                continue;
            };
            self.add_loop_below(root, disk, path, depth);
        }
    }

    fn add_loop_below(&mut self, root: &SysRoot, disk: Member, path: PathBuf, depth: usize) {
        if self.loops_below.contains(&disk.name) {
            return;
        }
        self.loops_below.push(disk.name.clone());
        let behind = stat(&path).ok().filter(|stat| is_behind(&disk, stat));
        if let Some(stat) = behind
            && FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice
        {
            let Some(next) = member(root, &device_number(stat.st_rdev)).and_then(disk_around)
            else {
                return self.unfollowed.push(disk.name);
            };
            match backing_path(&next.sysfs) {
                Some(next_path) => self.add_loop_below(root, next, next_path, depth + 1),
                None => self.add_files_below(root, &next, depth + 1),
            }
            return;
        }
        self.files_below.push(BackingFile {
            path,
            id: behind.map(|stat| FileId::from(&stat)),
            above: disk.name,
            start: 0,
        });
    }

    /// The files behind it, whatever lies between.
    pub(super) fn all_files(&self) -> impl Iterator<Item = &BackingFile> {
        self.backing_files.iter().chain(&self.files_below)
    }

    /// Adds a device behind a loop device, in which the target begins at byte `start`, with all
    /// that shares its blocks, as if it were the target. Returns the disk around it, where it is a
    /// partition.
    fn add_behind(&mut self, root: &SysRoot, below: &Member, start: u64) -> Option<BackingDisk> {
        self.add_with_partitions(below.clone());
        let mut disk = None;
        if is_partition(below)
            && let Some(member) = below.sysfs.parent().and_then(member_at)
        {
            self.add(member.clone());
            self.add_overlapping(below, &member);
            self.add_paths(root, &member);
            let own_start = slice(below).map_or(0, |own| own.start);
            disk = Some(BackingDisk {
                member,
                start: start + own_start,
            });
        } else {
            self.add_paths(root, below);
        }
        self.backing_devices.push(BackingDevice {
            member: below.clone(),
            size_bytes: size_bytes(&below.sysfs).unwrap_or(0),
            start,
            disk: disk.clone(),
        });
        disk
    }
}

/// The disk of a partition; any other device itself.
fn disk_around(device: Member) -> Option<Member> {
    if is_partition(&device) {
        member_at(device.sysfs.parent()?)
    } else {
        Some(device)
    }
}

/// The partitions of a disk that the kernel knows.
fn slices(disk: &Member) -> Vec<Slice> {
    partitions(disk).iter().filter_map(slice).collect()
}

/// True if the file that now has the path is the one that the loop device was set up with, or if
/// its driver does not say.
fn is_behind(above: &Member, stat: &Stat) -> bool {
    match file_behind_loop(&above.node(), &above.device) {
        Some(id) => id == FileId::from(stat),
        None => true,
    }
}

/// The file or device behind a loop device.
pub(crate) fn backing_path(sysfs: &Path) -> Option<PathBuf> {
    read_text(&sysfs.join("loop/backing_file")).map(PathBuf::from)
}

fn member(root: &SysRoot, device: &str) -> Option<Member> {
    member_at(&root.block_device(device)?)
}

fn member_at(sysfs: &Path) -> Option<Member> {
    let name = sysfs.file_name()?.to_str()?.to_owned();
    Some(Member {
        device: read_text(&sysfs.join("dev"))?,
        sysfs: sysfs.to_owned(),
        character_nodes: character_nodes(sysfs, &name),
        name,
    })
}

/// The character devices of a disk: those of the SCSI disk (sg.c, bsg), and of the namespace of an
/// NVMe, whose directory stands beside that of its disk (nvme_cdev_add).
fn character_nodes(sysfs: &Path, name: &str) -> Vec<CharacterNode> {
    let mut places = Vec::new();
    for class in ["scsi_generic", "bsg"] {
        let directory = sysfs.join("device").join(class);
        places.extend(list(&directory).iter().map(|entry| directory.join(entry)));
    }
    if let (Some(number), Some(parent)) = (name.strip_prefix("nvme"), sysfs.parent()) {
        places.push(parent.join(format!("ng{number}")));
    }
    let mut nodes = Vec::new();
    for place in places {
        if let (Some(node_name), Some(device)) = (place.file_name(), read_text(&place.join("dev")))
        {
            let name = node_name.to_string_lossy().into_owned();
            nodes.push(CharacterNode { name, device });
        }
    }
    nodes
}

fn is_partition(member: &Member) -> bool {
    member.sysfs.join("partition").exists()
}

fn partitions(whole: &Member) -> Vec<Member> {
    let mut partitions = Vec::new();
    for name in list(&whole.sysfs) {
        let sysfs = whole.sysfs.join(name);
        if sysfs.join("partition").exists() {
            partitions.extend(member_at(&sysfs));
        }
    }
    partitions
}

fn slice(partition: &Member) -> Option<Slice> {
    let start_sectors: u64 = read_number(&partition.sysfs.join("start"))?;
    let sectors: u64 = read_number(&partition.sysfs.join("size"))?;
    Some(Slice {
        name: SliceName::Kernel(partition.name.clone()),
        start: start_sectors.checked_mul(SECTOR_BYTES)?,
        length: sectors.checked_mul(SECTOR_BYTES)?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::subject::Subject;
    use super::*;
    use crate::kernel::fake_sysfs::FakeSysfs;

    fn names(family: &DeviceFamily) -> Vec<&str> {
        family
            .members
            .iter()
            .map(|member| member.name.as_str())
            .collect()
    }

    fn partition(sysfs: &FakeSysfs, path: &str, device: &str, start: &str, size: &str) {
        sysfs.add_block_device(
            path,
            device,
            &[("partition", "1"), ("start", start), ("size", size)],
        );
    }

    #[test]
    fn a_disk_has_its_partitions_and_a_partition_its_disk() {
        let sysfs = FakeSysfs::new();
        sysfs.add_block_device("x/sda", "8:0", &[("size", "4096")]);
        partition(&sysfs, "x/sda/sda1", "8:1", "0", "1024");
        partition(&sysfs, "x/sda/sda2", "8:2", "1024", "1024");
        partition(&sysfs, "x/sda/sda3", "8:3", "1023", "2");
        let disk = DeviceFamily::read(&sysfs.root(), "8:0").unwrap();
        assert_eq!(
            (names(&disk), disk.slices.len()),
            (vec!["sda", "sda1", "sda2", "sda3"], 3)
        );
        let part = DeviceFamily::read(&sysfs.root(), "8:2").unwrap();
        assert_eq!(
            (
                names(&part),
                part.whole.name.as_str(),
                &part.overlapping[..]
            ),
            (vec!["sda2", "sda", "sda3"], "sda", &["sda3".to_owned()][..])
        );
        assert_eq!(DeviceFamily::read(&sysfs.root(), "8:99"), None);
    }

    #[test]
    fn namespace_of_an_nvme_has_a_character_device_beside_its_disk() {
        let sysfs = FakeSysfs::new();
        sysfs.add_block_device("x/nvme0/nvme0n1", "259:0", &[]);
        sysfs.write_attribute("devices/x/nvme0/ng0n1/dev", "234:0");
        sysfs.write_attribute("devices/x/nvme0/ng0n2/dev", "234:1");
        let family = DeviceFamily::read(&sysfs.root(), "259:0").unwrap();
        let expected = CharacterNode {
            name: "ng0n1".to_owned(),
            device: "234:0".to_owned(),
        };
        assert_eq!(family.target.character_nodes, [expected]);
    }

    #[test]
    fn other_paths_to_the_same_disk_belong_to_it() {
        let sysfs = FakeSysfs::new();
        for (name, device) in [("sda", "8:0"), ("sdb", "8:16")] {
            sysfs.add_block_device(
                &format!("x/{name}"),
                device,
                &[("size", "4096"), ("device/wwid", "naa.5000c500a1b2c3d4")],
            );
        }
        sysfs.add_block_device(
            "x/sdc",
            "8:32",
            &[("size", "4096"), ("device/wwid", "naa.5000c500ffffffff")],
        );
        partition(&sysfs, "x/sdb/sdb1", "8:17", "0", "8");
        let family = DeviceFamily::read(&sysfs.root(), "8:0").unwrap();
        assert_eq!(
            (names(&family), &family.other_paths[..]),
            (vec!["sda", "sdb", "sdb1"], &["sdb".to_owned()][..])
        );
    }

    /// Whatever releases the mapping does not release the file of a server.
    #[test]
    fn files_below_a_device_mapper_and_an_array_are_found() {
        let place = tempfile::tempdir().unwrap();
        let images = ["one", "two"].map(|name| place.path().join(name));
        let sysfs = FakeSysfs::new();
        for (number, image) in images.iter().enumerate() {
            std::fs::write(image, "an image").unwrap();
            let file = image.display().to_string();
            let attributes = [("loop/backing_file", file.as_str())];
            let name = format!("x/zzloop{number}");
            sysfs.add_block_device(&name, &format!("240:{number}"), &attributes);
        }
        partition(&sysfs, "x/zzloop1/zzloop1p1", "240:9", "0", "8");
        sysfs.add_block_device("x/zzmd0", "9:0", &[]);
        sysfs.add_block_device("x/zzdm0", "253:0", &[]);
        for (above, below) in [
            ("zzmd0", "zzloop0"),
            ("zzmd0", "zzloop1p1"),
            ("zzdm0", "zzmd0"),
        ] {
            let link = format!("devices/x/{above}/slaves/{below}");
            sysfs.add_link(&link, &format!("class/block/{below}"));
        }
        let family = DeviceFamily::read(&sysfs.root(), "253:0").unwrap();
        assert_eq!(names(&family), ["zzdm0"], "the others are held by it");
        assert!(family.backing_files.is_empty());
        assert_eq!(family.loops_below, ["zzloop0", "zzloop1"]);
        let subject = Subject::Device(&family);
        assert!(subject.lies_on_loop("zzloop1") && !subject.lies_on_loop("zzloop2"));
        let found: Vec<&Path> = subject.files().iter().map(|file| file.path).collect();
        assert_eq!(found, [images[0].as_path(), images[1].as_path()]);
        let id = Some(FileId::from(&stat(&images[1]).unwrap()));
        assert!(subject.find_file(|_, other| other == id).is_some());
    }

    /// A partition has no file of its own, so the search goes on with its disk. What lies behind a
    /// chain that ends early would not be looked at before it is overwritten.
    #[test]
    fn chain_of_loops_goes_on_through_a_partition() {
        let place = tempfile::tempdir().unwrap();
        let image = place.path().join("image");
        std::fs::write(&image, "a disk").unwrap();
        // The path of a device must lead to one: the number of any that is there is made to stand
        // for that of the partition.
        let Some(node) = any_block_device() else {
            println!("SKIPPED: chain_of_loops_goes_on_through_a_partition: no block device");
            return;
        };
        let part = device_number(stat(&node).unwrap().st_rdev);
        let sysfs = FakeSysfs::new();
        let file = image.display().to_string();
        let loop_0 = [
            ("size", "8192"),
            ("loop/backing_file", &file),
            ("loop/offset", "512"),
        ];
        sysfs.add_block_device("x/zzloop0", "240:0", &loop_0);
        partition(&sysfs, "x/zzloop0/zzloop0p1", &part, "2048", "4096");
        partition(&sysfs, "x/zzloop0/zzloop0p2", "240:2", "3072", "8");
        let loop_2 = [
            ("loop/backing_file", node.to_str().unwrap()),
            ("loop/offset", "4096"),
        ];
        sysfs.add_block_device("x/zzloop2", "240:8", &loop_2);
        let family = DeviceFamily::read(&sysfs.root(), "240:8").unwrap();
        let members = ["zzloop2", "zzloop0p1", "zzloop0", "zzloop0p2"];
        assert_eq!(names(&family), members);
        assert_eq!(family.overlapping, ["zzloop0p2"]);
        let [device] = &family.backing_devices[..] else {
            panic!("{family:?}");
        };
        let disk = device.disk.as_ref().unwrap();
        assert_eq!((device.start, disk.start), (4096, 4096 + (1 << 20)));
        let expected = BackingFile {
            id: Some(FileId::from(&stat(&image).unwrap())),
            path: image,
            above: "zzloop0".to_owned(),
            start: 4096 + (1 << 20) + 512,
        };
        assert_eq!(family.backing_files, [expected]);
    }

    /// What is mounted by one path is destroyed by the other, also through a loop device.
    #[test]
    fn other_paths_to_a_disk_behind_a_loop_device_belong_to_it() {
        let Some(node) = any_block_device() else {
            println!("SKIPPED: other_paths_to_a_disk_behind_a_loop_device: no block device");
            return;
        };
        let below = device_number(stat(&node).unwrap().st_rdev);
        let is_behind = [("loop/backing_file", node.to_str().unwrap())];
        let wwid = [("device/wwid", "naa.5000c500a1b2c3d4")];
        for is_part in [false, true] {
            let sysfs = FakeSysfs::new();
            sysfs.add_block_device("x/zzloop2", "240:8", &is_behind);
            sysfs.add_block_device("x/zzb", "240:32", &wwid);
            partition(&sysfs, "x/zzb/zzb1", "240:33", "0", "8");
            if is_part {
                sysfs.add_block_device("x/zza", "240:16", &wwid);
                partition(&sysfs, "x/zza/zza1", &below, "0", "8");
            } else {
                sysfs.add_block_device("x/zza", &below, &wwid);
            }
            let family = DeviceFamily::read(&sysfs.root(), "240:8").unwrap();
            assert_eq!(family.other_paths, ["zzb"], "{family:?}");
            assert!(names(&family).ends_with(&["zzb", "zzb1"]), "{family:?}");
        }
    }

    fn any_block_device() -> Option<PathBuf> {
        let entries = std::fs::read_dir("/dev").ok()?;
        entries.flatten().map(|entry| entry.path()).find(|path| {
            stat(path)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice)
        })
    }
    /// A chain of so many mappings, one over the other.
    fn mappings_unfollowed(count: usize) -> Vec<String> {
        let sysfs = FakeSysfs::new();
        for number in 0..count {
            let numbers = format!("253:{number}");
            sysfs.add_block_device(&format!("x/dm-{number}"), &numbers, &[]);
        }
        for number in 1..count {
            let below = format!("devices/x/dm-{}/slaves/dm-{number}", number - 1);
            sysfs.add_link(&below, &format!("devices/x/dm-{number}"));
        }
        DeviceFamily::read(&sysfs.root(), "253:0")
            .unwrap()
            .unfollowed
    }

    #[test]
    fn devices_below_the_longest_chain_are_not_taken_for_none() {
        assert_eq!(mappings_unfollowed(CHAIN_MAX + 1), [""; 0]);
        assert_eq!(mappings_unfollowed(CHAIN_MAX + 3), ["dm-17"]);
    }

    #[test]
    fn device_below_that_sysfs_does_not_show_is_not_taken_for_none() {
        let sysfs = FakeSysfs::new();
        sysfs.add_block_device("x/dm-0", "253:0", &[]);
        sysfs.write_attribute("devices/x/dm-0/slaves/loop7/dev", "7:7");
        let family = DeviceFamily::read(&sysfs.root(), "253:0").unwrap();
        assert_eq!(family.unfollowed, ["dm-0"]);
    }
}
