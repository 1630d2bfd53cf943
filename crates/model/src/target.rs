//! What is measured: a path, the filesystem it lies on, and the layers of block devices below, down
//! to the disks, with the limits that control groups set. Filled by the crate `device` from sysfs,
//! mountinfo and statx; every field that could not be learnt is `None`.

use crate::op::OpKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of thing that a path names, as far as measuring goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TargetKind {
    /// A directory: a scratch file of our own inside it is measured.
    Directory,
    /// An existing regular file.
    File,
    /// A block device node.
    BlockDevice,
}

/// The identity of a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetIdentity {
    /// Absolute path, symlinks resolved.
    pub path: String,
    /// The kind of thing that the path names.
    pub kind: TargetKind,
    /// Bytes: of the file, of the device, or of the directory's filesystem.
    pub size_bytes: u64,
    /// Bytes that an unprivileged user may still write on the filesystem; `None` on a device.
    pub free_bytes: Option<u64>,
    /// `major:minor` of the block device itself, or of the device that the filesystem reports
    /// (st_dev).
    pub device: String,
    /// Inode number of the path.
    pub inode: u64,
    /// The filesystem that holds the directory or file; for a device, `None`.
    pub filesystem: Option<Filesystem>,
    /// Block devices from the one directly below the file down to the disks; parents before
    /// children.
    pub layers: Vec<Layer>,
    /// The reason why the layers could not be followed down to disks (overlayfs, NFS, ZFS, FUSE,
    /// tmpfs …); `None` when they could.
    pub unresolved: Option<String>,
}

impl TargetIdentity {
    /// True if a block device accepts discards; `None` for files and directories, and where the
    /// kernel does not tell.
    pub fn accepts_discards(&self) -> Option<bool> {
        match self.kind {
            TargetKind::BlockDevice => self.layers.first()?.discard,
            TargetKind::Directory | TargetKind::File => None,
        }
    }

    /// The reason why operations of this kind fail on it, as a clause that follows the name of
    /// their workload; `None` where nothing is known against them.
    pub fn obstacle_to(&self, kind: OpKind) -> Option<&'static str> {
        match kind {
            OpKind::Trim if self.accepts_discards() == Some(false) => Some(
                "trims, and the device accepts no discards (queue/discard_max_bytes is 0). Measure \
                 another device, or remove this workload",
            ),
            OpKind::Read
            | OpKind::Write
            | OpKind::Trim
            | OpKind::Sync
            | OpKind::Commit
            | OpKind::Transaction => None,
        }
    }

    /// True if a disk at the bottom rotates: the slowest sets the pace. `None` where no disk or not
    /// every one is known.
    pub fn rotational(&self) -> Option<bool> {
        let kinds: Option<Vec<bool>> = self.disks().map(Layer::rotates).collect();
        let kinds = kinds.filter(|kinds| !kinds.is_empty())?;
        Some(kinds.contains(&true))
    }

    /// The layers at the bottom, whose counters say what the hardware did.
    pub fn disks(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter().filter(|l| l.below.is_empty())
    }

    /// True if a loop device over a file without direct I/O lies below: the page cache of that file
    /// answers reads and takes writes.
    pub fn has_buffered_loop(&self) -> bool {
        let mut layers = self.layers.iter();
        layers.any(|layer| layer.backing_direct == Some(false))
    }

    /// True if both lie on one disk at least. Where the layers of one are not known, on one
    /// filesystem or device.
    pub fn shares_disk(&self, other: &Self) -> bool {
        if self.layers.is_empty() || other.layers.is_empty() {
            return self.device == other.device;
        }
        self.disks()
            .any(|own| other.disks().any(|its| its.device == own.device))
    }

    /// True if both are on filesystems with one free space: subvolumes of a btrfs, datasets of a
    /// pool, an overlay and the filesystem of its upper directory have a device number each. Where
    /// the device below one of them is not known, filesystems of the same size count as one.
    pub fn shares_space(&self, other: &Self) -> bool {
        if self.device == other.device {
            return true;
        }
        let (Some(own), Some(its)) = (&self.filesystem, &other.filesystem) else {
            return false;
        };
        if let (Some(own_pool), Some(its_pool)) = (own.pool(), its.pool()) {
            return own_pool == its_pool;
        }
        match (self.layers.first(), other.layers.first()) {
            (Some(own_layer), Some(its_layer)) => own_layer.device == its_layer.device,
            (None, _) | (_, None) => own.size_bytes == its.size_bytes,
        }
    }

    /// True if both are the same file, directory or device at one time, by whatever path. Every
    /// node of a device has its own inode, so devices are compared by their number.
    pub fn is_same(&self, other: &Self) -> bool {
        let is_device = self.kind == TargetKind::BlockDevice;
        self.kind == other.kind
            && self.device == other.device
            && (is_device || self.inode == other.inode)
    }

    /// True if both are the same file, directory or device, and the disk, file or volume below did
    /// not change in between. [`Self::is_same`] is not enough then: the kernel gives the number of
    /// a device that went to another one, and a copy of a filesystem has the inodes of its
    /// original.
    pub fn has_same_storage(&self, other: &Self) -> bool {
        self.is_same(other) && self.lies_on_same_storage(other)
    }

    /// True if both lie on the same disk, file or volume, also after a restart of the machine,
    /// which gives devices other numbers and names.
    pub fn lies_on_same_storage(&self, other: &Self) -> bool {
        let is_same_device = match (self.layers.first(), other.layers.first()) {
            (Some(layer), Some(other)) => layer.has_same_storage(other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        // A cache that a command attaches or detaches brings or takes a disk.
        let (mut few, mut many) = (self, other);
        if few.disks().count() > many.disks().count() {
            (few, many) = (many, few);
        }
        let are_same_disks = few
            .disks()
            .all(|disk| many.disks().any(|other| disk.has_same_storage(other)));
        is_same_device
            && are_same_disks
            && few.layers.is_empty() == many.layers.is_empty()
            && self.server() == other.server()
    }

    /// The server of a network filesystem, as the mount names it; `None` of local storage.
    fn server(&self) -> Option<&str> {
        let filesystem = self.filesystem.as_ref()?;
        if is_network_filesystem(&filesystem.kind) {
            Some(&filesystem.source)
        } else {
            None
        }
    }
}

/// Filesystems whose storage is on other machines, as /proc/mounts spells them, but for the prefix
/// of those that a program of this machine serves (`fuse.glusterfs`).
// rustfmt would give each name a line.
#[rustfmt::skip]
const NETWORK_FILESYSTEMS: [&str; 12] = [
    "nfs", "nfs4", "cifs", "smb3", "lustre", "ceph", "ceph-fuse", "glusterfs", "beegfs", "afs",
    "gpfs", "sshfs",
];

/// True for filesystems whose storage is on another machine, which their source names.
pub fn is_network_filesystem(kind: &str) -> bool {
    NETWORK_FILESYSTEMS.contains(&kind.strip_prefix("fuse.").unwrap_or(kind))
}

/// Filesystems that other machines may have mounted besides: on a shared disk, or of the host of
/// virtual machines.
const CLUSTER_FILESYSTEMS: [&str; 4] = ["gfs2", "ocfs2", "9p", "virtiofs"];

/// A mounted filesystem, as /proc/self/mountinfo tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Filesystem {
    /// Type, such as `ext4`.
    pub kind: String,
    /// The directory on which it is mounted.
    pub mount_point: String,
    /// The thing that is mounted, such as `/dev/sda1`.
    pub source: String,
    /// Mount and superblock options, in the kernel's words.
    pub options: Vec<String>,
    /// Size of the filesystem in bytes.
    pub size_bytes: u64,
    /// Free bytes, as an unprivileged user sees them.
    pub free_bytes: u64,
    /// Bytes that the user wants to stay free on it, in place of the default; no fact of the
    /// filesystem, so not in records.
    #[serde(skip)]
    pub kept_free_bytes: Option<u64>,
}

impl Filesystem {
    /// True where an accepted direct write is at its place in the disk. Elsewhere it may depend on
    /// a tree in memory that a crash of the machine loses, too.
    pub fn writes_in_place(&self) -> bool {
        matches!(self.kind.as_str(), "ext2" | "ext3" | "ext4" | "xfs")
    }

    /// True where blocks that are overwritten never take new ones. Files of xfs may share blocks,
    /// which the first write to them divides.
    pub fn overwrites_without_space(&self) -> bool {
        matches!(self.kind.as_str(), "ext2" | "ext3" | "ext4" | "tmpfs")
    }

    /// True where blocks that are overwritten always take new ones first. A snapshot keeps the old
    /// ones.
    pub fn copies_on_write(&self) -> bool {
        matches!(self.kind.as_str(), "btrfs" | "zfs" | "bcachefs" | "nilfs2")
    }

    /// True where programs on other machines may have the same files open.
    pub fn is_shared_between_machines(&self) -> bool {
        is_network_filesystem(&self.kind) || CLUSTER_FILESYSTEMS.contains(&self.kind.as_str())
    }

    /// The ZFS pool, whose datasets share its free space: the first part of the source.
    fn pool(&self) -> Option<&str> {
        if self.kind != "zfs" {
            return None;
        }
        self.source.split('/').next()
    }
}

/// One block device of the stack.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Layer {
    /// Kernel name, such as `nvme0n1p2`.
    pub name: String,
    /// The kind of device.
    pub kind: LayerKind,
    /// `major:minor`.
    pub device: String,
    /// Kernel names of the devices right below; empty at the bottom.
    pub below: Vec<String>,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Smallest addressable unit in bytes.
    pub logical_block_bytes: Option<u32>,
    /// Unit that the medium writes without read-modify-write, in bytes.
    pub physical_block_bytes: Option<u32>,
    /// Model as the device reports it.
    pub model: Option<String>,
    /// Vendor as the device reports it.
    pub vendor: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// The kernel's opinion: true of a rotating disk. Virtio says yes for everything.
    pub rotational: Option<bool>,
    /// Active I/O scheduler.
    pub scheduler: Option<String>,
    /// Requests that the queue holds.
    pub queue_requests: Option<u32>,
    /// Largest request that the kernel sends, in bytes.
    pub request_bytes_max: Option<u64>,
    /// Read-ahead in bytes.
    pub read_ahead_bytes: Option<u64>,
    /// The kernel's view of the write cache: `write back` needs flushes, `write through` does not.
    pub write_cache: Option<WriteCache>,
    /// The state of the write cache by the disk's own report (hdparm, nvme, sdparm); absent where
    /// none was requested or none came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_write_cache: Option<WriteCache>,
    /// True if the device takes writes that are durable when they end (FUA); without it the kernel
    /// sends a flush after them. `None` in records of versions before 0.2.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced_unit_access: Option<bool>,
    /// The bus and speed with which it is attached.
    pub link: Option<Link>,
    /// The file behind a loop device.
    pub backing_file: Option<String>,
    /// The type of the filesystem that holds the file behind a loop device, such as `btrfs`; `None`
    /// where it is not known, or where another device is behind the loop device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backing_filesystem: Option<String>,
    /// True if a loop device bypasses the host's page cache.
    pub backing_direct: Option<bool>,
    /// True if the kernel accepts discards for it.
    pub discard: Option<bool>,
    /// The device may ignore discards that are smaller or not aligned to this; `None` where the
    /// kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discard_granularity_bytes: Option<u64>,
    /// True if the device refuses writes.
    pub read_only: bool,
}

/// Users of the device mapper: the word that begins the UUID of their volumes, and the word before
/// the volume's name in [`Layer::model`].
pub const MAPPER_USERS: [(&str, &str); 3] =
    [("LVM", "LVM"), ("CRYPT", "crypt"), ("mpath", "multipath")];

/// The word for every other user of the device mapper.
pub const OTHER_MAPPER_USER: &str = "device mapper";

/// Vendors of iSCSI and Fibre Channel targets in software. By default the model of their disks is
/// the name that an administrator gave to the volume (targetcli sets `emulate_model_alias`; SCST
/// takes the name of the virtual device). `IET` are tgt and the iSCSI Enterprise Target.
const SOFTWARE_VENDORS: [&str; 4] = ["LIO-ORG", "SCST_FIO", "SCST_BIO", "IET"];

impl Layer {
    /// True if the facts that no setting changes are the same. The size of an array does not count,
    /// because a command may build the array anew of the same disks.
    fn has_same_storage(&self, other: &Self) -> bool {
        let is_same_size = self.size_bytes == other.size_bytes || self.kind == LayerKind::Md;
        self.kind == other.kind
            && is_same_size
            && self.model == other.model
            && self.serial == other.serial
            && self.backing_file == other.backing_file
    }

    /// True of a disk that rotates, as the kernel reports; `None` where that is unknown. The kernel
    /// reports every virtio disk as rotating, so its answer says nothing of one.
    pub fn rotates(&self) -> Option<bool> {
        let is_virtio = match &self.link {
            Some(link) => link.bus.eq_ignore_ascii_case("virtio"),
            None => false,
        };
        if is_virtio && self.rotational == Some(true) {
            return None;
        }
        self.rotational
    }

    /// True of a disk that is known to be made by software, which may keep what it accepted in the
    /// memory of this machine: a target of LIO, SCST or tgt, scsi_debug, or one of the NVMe target,
    /// whose model is `Linux` by default.
    pub fn is_of_software(&self) -> bool {
        let vendor = self.vendor.as_deref().unwrap_or_default();
        let model = self.model.as_deref().unwrap_or_default();
        SOFTWARE_VENDORS.contains(&vendor) || model == "scsi_debug" || model == "Linux"
    }

    /// The model as its maker or the hypervisor calls it; `None` where an administrator chose the
    /// text, as the name of a volume.
    pub fn hardware_model(&self) -> Option<&str> {
        let vendor = self.vendor.as_deref().unwrap_or_default();
        if self.kind == LayerKind::DeviceMapper || SOFTWARE_VENDORS.contains(&vendor) {
            return None;
        }
        self.model.as_deref()
    }
}

/// Kind of a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LayerKind {
    /// A whole disk, real or virtual.
    #[default]
    Disk,
    /// A partition.
    Partition,
    /// Device mapper: LVM, LUKS, multipath, cache …
    DeviceMapper,
    /// Linux software RAID.
    Md,
    /// A loop device.
    Loop,
    /// Compressed RAM.
    Zram,
    /// A disk in RAM (brd).
    RamDisk,
    /// A network block device (nbd, rbd, drbd).
    Network,
}

/// The state of a write cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WriteCache {
    /// Volatile: data is safe only after a flush.
    WriteBack,
    /// None, or a protected one.
    WriteThrough,
}

/// The bus and speed with which a disk is attached.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// `PCIe`, `SATA`, `SAS`, `USB`, `virtio` …
    pub bus: String,
    /// Negotiated speed in the bus's words, such as `16.0 GT/s PCIe x4` or `6.0 Gbps`.
    pub speed: Option<String>,
    /// The fastest that the device itself could, in the same words.
    pub speed_max: Option<String>,
    /// The most that the negotiated link can carry, in bytes per second, after line coding.
    pub bytes_per_second_max: Option<u64>,
    /// The most that the device could carry at its own fastest, in bytes per second, after line
    /// coding; `null` where the device does not tell.
    #[serde(default)]
    pub device_bytes_per_second_max: Option<u64>,
}

/// Facts about the machine that the run took place on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HostFacts {
    /// Host name.
    pub name: String,
    /// Kernel release, such as `6.18.0`.
    pub kernel: String,
    /// Distribution, such as `Debian GNU/Linux 12 (bookworm)`.
    pub os: Option<String>,
    /// CPU model.
    pub cpu: Option<String>,
    /// CPUs that this process may use.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// The hypervisor (`kvm`, `vmware`, `xen`, `microsoft` … or `unknown`) when the machine is
    /// virtual.
    pub hypervisor: Option<String>,
    /// The container runtime, when this process runs in one.
    pub container: Option<String>,
    /// Load average over one minute, as the kernel prints it.
    pub load_average: Option<String>,
    /// CPU frequency governor.
    pub governor: Option<String>,
    /// Effective user id of the process.
    pub uid: u32,
    /// The place of this process among those that a launcher started (Slurm, MPI, an indexed Job);
    /// absent where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<Rank>,
    /// The job and step of a launcher that started this process, such as `17.0`; absent where the
    /// launcher gives no job a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Identifies the installation of the machine: a digest of its machine-id(5), which clones may
    /// share; absent in containers, and where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Limits that control groups set on the I/O of this process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub io_limits: Vec<IoLimit>,
    /// The share of the machine's CPU time that its hypervisor gave to other machines while it
    /// measured, from 0 to 1; absent where nothing reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_share: Option<f64>,
}

impl HostFacts {
    /// The load average of the last minute before the run; `None` where it is unknown.
    pub fn load_of_minute(&self) -> Option<f64> {
        let load = self.load_average.as_ref()?;
        load.split_whitespace().next()?.parse().ok()
    }
}

/// The place of a process among those that a launcher started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rank {
    /// The number of the host, from 0.
    pub rank: u32,
    /// The number of ranks, where the launcher tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
}

/// The refusal of a target: every reason at once, and what the user can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The wish that was refused, such as `write a scratch file in /mnt/data`.
    pub asked: String,
    /// Every reason found, each a clause with its facts.
    pub reasons: Vec<String>,
    /// Sentences for the user: what to do about it.
    pub remedy: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.reasons.as_slice() {
            [one] => write!(
                f,
                "refused to {}: {}. {}",
                one_line(&self.asked),
                one_line(one),
                one_line(&self.remedy)
            ),
            // Each on its own line: a disk in use has many reasons, each with its own remedy.
            all => {
                write!(f, "refused to {}:", one_line(&self.asked))?;
                all.iter()
                    .try_for_each(|reason| write!(f, "\n  - {}", one_line(reason)))?;
                write!(f, "\n{}", one_line(&self.remedy))
            }
        }
    }
}

/// The text without line breaks: a name with a line break in it must not look like a reason, or
/// like the end of the reasons.
fn one_line(text: &str) -> String {
    text.replace('\n', "\\n").replace('\r', "\\r")
}

impl std::error::Error for Refusal {}

/// The limits of one control group on one device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct IoLimit {
    /// The group, from the root of the hierarchy on: `/system.slice/postgresql.service`.
    pub group: String,
    /// `major:minor` of the device.
    pub device: String,
    /// Reads per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_iops: Option<u64>,
    /// Writes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_iops: Option<u64>,
    /// Bytes read per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes_per_second: Option<u64>,
    /// Bytes written per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_bytes_per_second: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory on a filesystem of 1 GiB with this device number, above this block device.
    fn directory(kind: &str, source: &str, number: &str, below: Option<&str>) -> TargetIdentity {
        let mut identity = device(Vec::new());
        identity.kind = TargetKind::Directory;
        number.clone_into(&mut identity.device);
        identity.filesystem = Some(Filesystem {
            kind: kind.to_owned(),
            mount_point: "/".to_owned(),
            source: source.to_owned(),
            options: Vec::new(),
            size_bytes: 1 << 30,
            free_bytes: 1 << 29,
            kept_free_bytes: None,
        });
        if let Some(device) = below {
            identity.layers.push(Layer {
                device: device.to_owned(),
                ..Layer::default()
            });
        }
        identity
    }

    /// The slowest disk decides; one of unknown kind leaves all unknown.
    #[test]
    fn kernel_knows_the_kind_of_every_disk_but_those_of_virtio() {
        let disk = |bus: &str, rotational| Layer {
            rotational,
            link: Some(Link {
                bus: bus.to_owned(),
                ..Link::default()
            }),
            ..Layer::default()
        };
        for (disks, expected) in [
            (vec![disk("SATA", Some(true))], Some(true)),
            (vec![disk("virtio", Some(false))], Some(false)),
            (vec![disk("virtio", Some(true))], None),
            (
                vec![disk("SATA", Some(true)), disk("SATA", Some(false))],
                Some(true),
            ),
            (vec![disk("SATA", None), disk("SATA", Some(true))], None),
            (Vec::new(), None),
        ] {
            assert_eq!(device(disks.clone()).rotational(), expected, "{disks:?}");
        }
    }

    #[test]
    fn free_space_is_shared_by_subvolumes_overlays_and_pools() {
        let root = directory("btrfs", "/dev/sda2", "0:30", Some("8:2"));
        let home = directory("btrfs", "/dev/sda2", "0:31", Some("8:2"));
        let ext4 = directory("ext4", "/dev/sda1", "8:1", Some("8:1"));
        let overlay = directory("overlay", "overlay", "0:40", Some("8:1"));
        let hidden = directory("overlay", "overlay", "0:41", None);
        assert!(root.shares_space(&home) && root.shares_space(&root));
        assert!(ext4.shares_space(&overlay) && !ext4.shares_space(&root));
        // In a container the disk below is not known: a filesystem of another size is another.
        assert!(ext4.shares_space(&hidden));
        let mut larger = ext4.clone();
        larger.filesystem.as_mut().unwrap().size_bytes += 4096;
        assert!(!larger.shares_space(&hidden));
        // Datasets have the size that they can reach.
        let one = directory("zfs", "tank/pg", "0:50", None);
        let mut other = directory("zfs", "tank/home", "0:51", None);
        other.filesystem.as_mut().unwrap().size_bytes += 4096;
        assert!(one.shares_space(&other));
        let backup = directory("zfs", "backup/pg", "0:52", None);
        assert!(!one.shares_space(&backup) && !one.shares_space(&larger));
        assert!(!ext4.shares_space(&device(Vec::new())), "a device has none");
        let mut unknown = ext4.clone();
        unknown.filesystem = None;
        assert!(unknown.shares_space(&ext4), "/proc is not mounted");
    }

    fn device(layers: Vec<Layer>) -> TargetIdentity {
        TargetIdentity {
            path: "/dev/x".to_owned(),
            kind: TargetKind::BlockDevice,
            size_bytes: 1 << 30,
            free_bytes: None,
            device: "7:2".to_owned(),
            inode: 1,
            filesystem: None,
            layers,
            unresolved: None,
        }
    }

    fn layer(kind: LayerKind, serial: Option<&str>, backing_file: Option<&str>) -> Layer {
        Layer {
            kind,
            serial: serial.map(str::to_owned),
            backing_file: backing_file.map(str::to_owned),
            size_bytes: 1 << 30,
            ..Layer::default()
        }
    }

    #[test]
    fn network_filesystems_are_known_by_either_name() {
        let filesystem = |kind: &str| directory(kind, "x", "0:1", None).filesystem.unwrap();
        for (kind, is_on_network, is_shared) in [
            ("nfs4", true, true),
            ("fuse.glusterfs", true, true),
            ("fuse.ceph-fuse", true, true),
            ("ocfs2", false, true),
            ("virtiofs", false, true),
            ("ext4", false, false),
            ("fuse.gocryptfs", false, false),
        ] {
            assert_eq!(is_network_filesystem(kind), is_on_network, "{kind}");
            let found = filesystem(kind).is_shared_between_machines();
            assert_eq!(found, is_shared, "{kind}");
        }
    }

    #[test]
    fn device_is_what_is_behind_its_number() {
        let image = device(vec![layer(LayerKind::Loop, None, Some("/a.img"))]);
        let other_image = device(vec![layer(LayerKind::Loop, None, Some("/b.img"))]);
        assert!(image.is_same(&other_image) && !image.has_same_storage(&other_image));
        let disk = device(vec![layer(LayerKind::Disk, Some("S1"), None)]);
        let other_disk = device(vec![layer(LayerKind::Disk, Some("S2"), None)]);
        assert!(!disk.has_same_storage(&other_disk));
        let mut grown = disk.clone();
        grown.layers[0].size_bytes += 4096;
        assert!(!disk.has_same_storage(&grown));
        let mut switched = disk.clone();
        switched.layers[0].scheduler = Some("none".to_owned());
        switched.layers[0].write_cache = Some(WriteCache::WriteThrough);
        assert!(disk.has_same_storage(&switched));
        // A volume whose cache was attached has a disk more.
        let mut volume = layer(LayerKind::DeviceMapper, None, None);
        volume.below.push("sda".to_owned());
        let slow = layer(LayerKind::Disk, Some("S1"), None);
        let fast = layer(LayerKind::Disk, Some("S2"), None);
        let plain = device(vec![volume.clone(), slow.clone()]);
        let cached = device(vec![volume.clone(), slow, fast.clone()]);
        assert!(plain.has_same_storage(&cached) && cached.has_same_storage(&plain));
        assert!(!plain.has_same_storage(&device(vec![volume, fast])));
    }
}
