//! What the disks moved beyond what was requested, and whether other programs caused it. Every
//! judgement on foreign traffic comes from here.
//!
//! Bytes beyond the request prove other programs only where neither our own requests nor the
//! filesystem explain them: reads past the page cache, and writes to a bare device or beside pure
//! reads. Else a process must be seen that moved them, and the other disks must not account for
//! its bytes.

use super::rule::*;
use diskproof_model::measurement::{ByteCount, DeviceUse, OtherProcess};

/// Filesystems that write whole trees anew, and read them for that and for checksums.
const COPY_ON_WRITE: [&str; 4] = ["btrfs", "zfs", "bcachefs", "nilfs2"];
/// The kernel thread that writes the inode tables of a new ext4 filesystem, and after each mount
/// reads its block bitmaps. No counter has its bytes.
const INITIALISER: &str = "ext4lazyinit";
/// Bytes of a filesystem for each byte of inode tables: mke2fs makes an inode of 256 bytes for
/// every 16 KiB.
const BYTES_PER_TABLE_BYTE: u64 = 64;
/// Of the inode tables that are written beside a workload, so many are not laid on processes, which
/// count what they write to any disk before that disk does. The thread may work for another
/// filesystem, so there is a limit.
const TABLE_BYTES_MAX: u64 = 64 << 20;
/// Bytes of a filesystem for each byte of block bitmaps: a bit for each block of 4 KiB. ext4 reads
/// them when it looks for free blocks, also for the sparse file behind a loop device: 7.9 MiB at
/// once, measured on 256 GiB.
const BYTES_PER_BITMAP_BYTE: u64 = 32 << 10;
/// Fewer bytes than this beside pure reads are metadata of earlier writes.
const METADATA_BYTES: u64 = 4 << 20;
/// A sync makes a journal write at most a descriptor, two blocks and a commit record of 4 KiB.
const JOURNAL_BYTES: u64 = 16 << 10;
/// A sync of btrfs with two copies of its metadata writes 160 KiB (81 KiB per flush on Linux 6.1).
const TREE_BYTES: u64 = 256 << 10;
/// The page cache reads the missing part of a smaller write.
const PAGE_BYTES: u32 = 4096;

/// What was requested from a target's disks and what they did: of a workload or of the survey.
pub(super) struct Traffic<'a> {
    pub(super) index: Option<usize>,
    pub(super) name: String,
    pub(super) target: &'a TargetIdentity,
    /// Smallest request, in bytes.
    block_bytes: u32,
    /// What the disks may have read on top because small requests are rounded up, in bytes.
    rounded_bytes: u64,
    /// Whether all requests consist of whole pages of 4 KiB.
    whole_pages: bool,
    /// Whether writes are synced.
    commits: bool,
    cache: CachePolicy,
    pub(super) asked: ByteCount,
    pub(super) device: &'a DeviceUse,
}

/// Bytes that the disks moved in addition to those requested.
#[derive(Clone, Copy, Default)]
pub(super) struct Excess {
    /// Read.
    pub(super) reads: u64,
    /// Written.
    pub(super) writes: u64,
}

/// The excess by its cause.
pub(super) struct ExcessByCause {
    /// Proven to come from other programs.
    pub(super) foreign: Excess,
    /// The rest.
    pub(super) own: Excess,
}

impl<'a> Traffic<'a> {
    /// Of a workload, with the workloads that ran at the same time.
    pub(super) fn of_workload(record: &'a Record, (index, m): Measured<'a>) -> Option<Self> {
        Some(Self {
            index: Some(index),
            name: workload_name(record, m),
            target: record.targets.get(m.data.target)?,
            block_bytes: together(record, m).map(smallest_block).min()?,
            rounded_bytes: 0,
            whole_pages: together(record, m).all(has_whole_pages),
            commits: together(record, m).any(commits),
            // What one of them reads ahead, the disk reads for all of them.
            cache: together(record, m)
                .map(|m| m.data.cache.used)
                .find(|cache| *cache != CachePolicy::Direct)
                .unwrap_or(m.data.cache.used),
            asked: m.data.asked,
            device: &m.data.device,
        })
    }

    /// The accesses are too few and too small for their rounding to hide the rest.
    pub(super) fn of_survey(record: &'a Record) -> Option<Self> {
        let surface = record.surface()?;
        let target = record.targets.get(surface.data.target)?;
        let sector_bytes = target
            .layers
            .iter()
            .filter_map(|layer| layer.physical_block_bytes)
            .max()
            .unwrap_or(0);
        Some(Self {
            index: None,
            name: SURVEY.to_owned(),
            target,
            block_bytes: u32::MAX,
            rounded_bytes: record.access().len() as u64 * u64::from(sector_bytes),
            whole_pages: true,
            commits: false,
            cache: surface.data.cache.used,
            asked: surface.data.asked,
            device: &surface.data.device,
        })
    }

    pub(super) fn path(&self) -> String {
        data_path(self.index) + "/device"
    }

    /// The excess of the disks; `None` where nothing was counted.
    pub(super) fn excess(&self) -> Option<ExcessByCause> {
        let (asked, device) = (self.asked, self.device);
        if device.unresolved.is_some() || device.accounted.is_none() {
            return None;
        }
        let others = self.others_here();
        let reads = device
            .read_bytes
            .saturating_sub(asked.read_bytes + self.rounded_bytes);
        let writes = device.write_bytes.saturating_sub(asked.write_bytes);
        let is_asked = self.reads_only_what_is_asked();
        let unexplained = writes.saturating_sub(self.metadata_bytes());
        let tables = self.initialiser_bytes();
        let beside_tables = unexplained.saturating_sub(tables.min(TABLE_BYTES_MAX));
        let unexplained_reads = reads.saturating_sub(self.bitmap_bytes());
        let shown_reads = shown(unexplained_reads, others.reads);
        let shown_writes = shown(beside_tables, others.writes);
        let of_others = unexplained.saturating_sub(tables);
        let is_foreign = self.writes_only_what_is_asked();
        let foreign = Excess {
            reads: if is_asked {
                unexplained_reads
            } else {
                shown_reads
            },
            writes: if is_foreign { of_others } else { 0 }.max(shown_writes),
        };
        let own = Excess {
            reads: if is_asked { 0 } else { reads - foreign.reads },
            writes: writes - foreign.writes,
        };
        Some(ExcessByCause { foreign, own })
    }

    /// What other processes moved, as far as the other disks do not account for it. Nothing where
    /// these account for half of it: a process counts what it writes earlier than a disk.
    fn others_here(&self) -> Excess {
        let sum = |bytes: fn(&OtherProcess) -> u64| self.device.others.iter().map(bytes).sum();
        let (reads, writes): (u64, u64) = (sum(|p| p.read_bytes), sum(|p| p.write_bytes));
        let elsewhere = self.device.elsewhere_bytes.unwrap_or_default();
        let here = (reads + writes).saturating_sub(elsewhere);
        let here = if here >= (reads + writes).div_ceil(2) {
            here
        } else {
            0
        };
        Excess {
            reads: reads.min(here),
            writes: writes.min(here),
        }
    }

    /// The most that filesystems write for our own requests.
    fn metadata_bytes(&self) -> u64 {
        let syncs = if self.commits {
            self.asked.write_bytes / u64::from(self.block_bytes.max(1))
        } else {
            0
        };
        let of_one = |filesystem: MetadataOf<'_>| {
            let per_sync = if filesystem.copies_on_write() {
                TREE_BYTES
            } else {
                JOURNAL_BYTES
            };
            METADATA_BYTES + syncs * per_sync
        };
        filesystems(self.target).map(of_one).sum()
    }

    fn initialises(&self) -> bool {
        self.device.others.iter().any(|p| p.name == INITIALISER)
    }

    /// The most that the kernel writes for a new filesystem, where it does so: for that of the
    /// target. Those below loop devices are older, and a part of their size would hide everything.
    fn initialiser_bytes(&self) -> u64 {
        let own = self.target.filesystem.as_ref();
        let own = own.filter(|_| self.initialises());
        own.map_or(0, |own| own.size_bytes.div_ceil(BYTES_PER_TABLE_BYTE))
    }

    /// The most that filesystems read to find free blocks, for our writes or after a mount.
    fn bitmap_bytes(&self) -> u64 {
        let bitmaps =
            filesystems(self.target).map(|f| f.size_bytes.div_ceil(BYTES_PER_BITMAP_BYTE));
        let reads_them = self.asked.write_bytes > 0 || self.initialises();
        if reads_them { bitmaps.sum() } else { 0 }
    }

    /// Whether every read at the disks is ours or another program's: no read-ahead, no small block
    /// rounded up to a large one, no old data read because new data changes its parity or its tree.
    fn reads_only_what_is_asked(&self) -> bool {
        let target = self.target;
        let rounds_up = |block: Option<u32>| block.is_some_and(|b| self.block_bytes < b);
        let rounded = target
            .layers
            .iter()
            .any(|l| rounds_up(l.logical_block_bytes) || rounds_up(l.physical_block_bytes));
        let buffered = self.cache != CachePolicy::Direct || target.has_buffered_loop();
        let reads_ahead = buffered && (self.asked.read_bytes > 0 || !self.whole_pages);
        let rewrites = copies_on_write(target) || (self.asked.write_bytes > 0 && is_raid(target));
        !rounded && !reads_ahead && !rewrites
    }

    /// Whether every write beyond the metadata is another program's: none was requested, and no
    /// earlier one is still on its way.
    fn writes_only_what_is_asked(&self) -> bool {
        self.asked.write_bytes == 0
            && !copies_on_write(self.target)
            && !is_raid(self.target)
            && !self.target.has_buffered_loop()
    }
}

/// The bytes of processes count as far as the disk shows an excess. Where the disk shows less than
/// half of them, the processes worked mostly on another disk.
fn shown(excess: u64, by_processes: u64) -> u64 {
    if excess >= by_processes / 2 {
        excess.min(by_processes)
    } else {
        0
    }
}

/// A filesystem that writes and reads metadata for our own requests.
struct MetadataOf<'a> {
    kind: &'a str,
    /// At most as large as what it lies on.
    size_bytes: u64,
}

impl MetadataOf<'_> {
    fn copies_on_write(&self) -> bool {
        COPY_ON_WRITE.contains(&self.kind)
    }
}

/// That of the target, and those that hold the files behind loop devices.
fn filesystems(target: &TargetIdentity) -> impl Iterator<Item = MetadataOf<'_>> {
    let own = (target.kind != TargetKind::BlockDevice).then(|| {
        let known = target.filesystem.as_ref();
        MetadataOf {
            kind: known.map_or("", |known| &known.kind),
            size_bytes: known.map_or(0, |known| known.size_bytes),
        }
    });
    let behind_loop = |layer: &&Layer| layer.kind == LayerKind::Loop && !layer.below.is_empty();
    let loops = target.layers.iter().filter(behind_loop).map(|layer| {
        let below = target.layers.iter();
        let below = below.filter(|one| layer.below.contains(&one.name));
        MetadataOf {
            kind: layer.backing_filesystem.as_deref().unwrap_or_default(),
            size_bytes: below.map(|layer| layer.size_bytes).sum(),
        }
    });
    own.into_iter().chain(loops)
}

fn copies_on_write(target: &TargetIdentity) -> bool {
    filesystems(target).any(|filesystem| filesystem.copies_on_write())
}

fn is_raid(target: &TargetIdentity) -> bool {
    target.layers.iter().any(|l| l.kind == LayerKind::Md)
}

/// Whether its writes are made durable as they go.
pub(super) fn commits(m: &Row) -> bool {
    !matches!(m.data.workload.sync, SyncPolicy::None | SyncPolicy::AtEnd)
}

/// Whether the page cache neither reads nor writes more than its requests.
pub(super) fn has_whole_pages(m: &Row) -> bool {
    block_sizes(m).all(|block| block.is_multiple_of(PAGE_BYTES))
}

fn smallest_block(m: &Row) -> u32 {
    block_sizes(m).fold(u32::MAX, u32::min)
}

/// Of all its requests.
fn block_sizes(m: &Row) -> impl Iterator<Item = u32> {
    let mixed = m
        .data
        .workload
        .block_mix
        .iter()
        .map(|share| share.block_bytes);
    mixed.chain([m.data.workload.block_bytes])
}
