//! Finds the bytes that the disks moved beyond those requested, and decides whether other programs
//! caused them. Every judgement on foreign traffic comes from here.
//!
//! Bytes beyond the request prove other programs only where neither our own requests nor the
//! filesystem explain them: reads past the page cache, and writes to a bare device or beside pure
//! reads. Else a process must be seen that moved them, and the other disks must not account for
//! its bytes.

use super::rule::*;
use diskproof_model::errno;
use diskproof_model::measurement::{ByteCount, DeviceUse, OtherProcess};
use std::collections::BTreeMap;

/// Filesystems that write whole trees anew, and read them for that and for checksums.
const COPY_ON_WRITE: [&str; 4] = ["btrfs", "zfs", "bcachefs", "nilfs2"];

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

/// Fewer bytes than this beside pure reads are metadata of earlier writes. Chosen, not measured.
const METADATA_BYTES: u64 = 4 << 20;

/// A sync makes a journal write at most a descriptor, two blocks and a commit record of 4 KiB.
const JOURNAL_BYTES: u64 = 16 << 10;

/// A sync of btrfs with two copies of its metadata writes 160 KiB (81 KiB per flush on Linux 6.1).
const TREE_BYTES: u64 = 256 << 10;

/// The largest request of a survey: that of a stream without a queue.
const SURVEY_REQUEST_BYTES: u64 = 8 << 20;

/// The page cache reads the missing part of a smaller write.
const PAGE_BYTES: u32 = 4096;

/// The direction in which a disk moved bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Read,
    Write,
}

impl Direction {
    /// `read` or `wrote`.
    pub(super) fn past_tense(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "wrote",
        }
    }

    /// The name of the disk's counter in records.
    pub(super) fn counter(self) -> &'static str {
        match self {
            Self::Read => "read_bytes",
            Self::Write => "write_bytes",
        }
    }
}

/// The bytes that were requested from a target's disks, and those that the disks counted, of a
/// workload or of the survey.
pub(super) struct Traffic<'a> {
    pub(super) index: Option<usize>,
    pub(super) name: String,
    pub(super) target: &'a TargetIdentity,
    /// Smallest request, in bytes.
    block_bytes: u32,
    /// The most that the disks read on top because small requests are rounded up, in bytes.
    rounded_bytes: u64,
    /// The most that our failed requests moved: the kernel counts their bytes, we do not.
    failed: Excess,
    /// True if all requests consist of whole pages of 4 KiB.
    has_whole_pages: bool,
    /// True if writes are synced.
    has_commits: bool,
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
    /// The traffic of a workload, with the workloads that ran at the same time.
    pub(super) fn from_workload(record: &'a Record, measured: Measured<'a>) -> Option<Self> {
        let row = measured.row;
        let rows = concurrent_rows(record, row);
        // What one of them reads ahead, the disk reads for all of them.
        let mut cache = row.data.cache.used;
        for companion in &rows {
            if cache == CachePolicy::Direct {
                cache = companion.data.cache.used;
            }
        }
        Some(Self {
            index: Some(measured.index),
            name: workload_name(record, row),
            target: record.targets.get(row.data.target)?,
            block_bytes: rows.iter().map(|row| smallest_block(row)).min()?,
            rounded_bytes: 0,
            failed: failed_by_workloads(&rows),
            has_whole_pages: rows.iter().all(|row| has_whole_pages(row)),
            has_commits: rows.iter().any(|row| syncs_as_it_writes(row)),
            cache,
            asked: row.data.asked,
            device: &row.data.device,
        })
    }

    /// The traffic of the survey. Its accesses are too few and too small for their rounding to hide
    /// the rest.
    pub(super) fn from_survey(record: &'a Record) -> Option<Self> {
        let surface = record.surface()?;
        let target = record.targets.get(surface.data.target)?;
        let mut sector_bytes = 0;
        for layer in &target.layers {
            sector_bytes = sector_bytes.max(layer.physical_block_bytes.unwrap_or(0));
        }
        Some(Self {
            index: None,
            name: SURVEY.to_owned(),
            target,
            block_bytes: u32::MAX,
            rounded_bytes: record.access().len() as u64 * u64::from(sector_bytes),
            failed: failed_by_survey(surface),
            has_whole_pages: true,
            has_commits: false,
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
        let reads = device
            .read_bytes
            .saturating_sub(asked.read_bytes + self.rounded_bytes)
            .saturating_sub(self.failed.reads);
        let writes = device
            .write_bytes
            .saturating_sub(asked.write_bytes)
            .saturating_sub(self.failed.writes);
        let others = self.others_on_these_disks();
        let foreign_writes = self.foreign_writes(writes, others.writes);
        // Beside the writes of others, what filesystems write at most for ours is no evidence.
        let own_writes = if foreign_writes == 0 {
            writes
        } else {
            (writes - foreign_writes).saturating_sub(self.metadata_bytes())
        };
        let unexplained_reads = reads.saturating_sub(self.bitmap_bytes());
        let (foreign_reads, own_reads) = if self.reads_only_what_is_requested() {
            (unexplained_reads, 0)
        } else {
            let shown_reads = shown_by_disk(unexplained_reads, others.reads);
            (shown_reads, reads - shown_reads)
        };
        Some(ExcessByCause {
            foreign: Excess {
                reads: foreign_reads,
                writes: foreign_writes,
            },
            own: Excess {
                reads: own_reads,
                writes: own_writes,
            },
        })
    }

    /// Bytes of this excess of writes that other programs wrote: those that a process is seen to
    /// write, or all that nothing else explains where we write nothing.
    fn foreign_writes(&self, writes: u64, by_processes: u64) -> u64 {
        let unexplained = writes.saturating_sub(self.metadata_bytes());
        let tables = self.lazy_init_bytes();
        let beside_tables = unexplained.saturating_sub(tables.min(TABLE_BYTES_MAX));
        let shown_writes = shown_by_disk(beside_tables, by_processes);
        if self.writes_only_what_is_requested() {
            shown_writes.max(unexplained.saturating_sub(tables))
        } else {
            shown_writes
        }
    }

    /// The traffic of other processes, as far as the other disks do not account for it. Nothing
    /// where these account for half of it: a process counts what it writes earlier than a disk.
    pub(super) fn others_on_these_disks(&self) -> Excess {
        let others = &self.device.others;
        let reads: u64 = others.iter().map(|process| process.read_bytes).sum();
        let writes: u64 = others.iter().map(|process| process.write_bytes).sum();
        let elsewhere = self.device.elsewhere_bytes.unwrap_or_default();
        let here = (reads + writes).saturating_sub(elsewhere);
        if here < (reads + writes).div_ceil(2) {
            return Excess::default();
        }
        Excess {
            reads: reads.min(here),
            writes: writes.min(here),
        }
    }

    /// The most that filesystems write for our own requests.
    fn metadata_bytes(&self) -> u64 {
        let syncs = if self.has_commits {
            self.asked.write_bytes / u64::from(self.block_bytes.max(1))
        } else {
            0
        };
        let mut sum = 0;
        for filesystem in metadata_owners(self.target) {
            let bytes_per_sync = if filesystem.copies_on_write() {
                TREE_BYTES
            } else {
                JOURNAL_BYTES
            };
            sum += METADATA_BYTES + syncs * bytes_per_sync;
        }
        sum
    }

    fn has_lazy_init(&self) -> bool {
        self.device.others.iter().any(OtherProcess::is_lazy_init)
    }

    /// The most that the kernel writes for a new filesystem, where it does so: for that of the
    /// target. Those below loop devices are older, and a part of their size would hide everything.
    fn lazy_init_bytes(&self) -> u64 {
        match &self.target.filesystem {
            Some(own) if self.has_lazy_init() => own.size_bytes.div_ceil(BYTES_PER_TABLE_BYTE),
            _ => 0,
        }
    }

    /// The most that filesystems read to find free blocks, for our writes or after a mount.
    fn bitmap_bytes(&self) -> u64 {
        if self.asked.write_bytes == 0 && !self.has_lazy_init() {
            return 0;
        }
        metadata_owners(self.target)
            .iter()
            .map(|filesystem| filesystem.size_bytes.div_ceil(BYTES_PER_BITMAP_BYTE))
            .sum()
    }

    /// True if every read at the disks is ours or another program's: no read-ahead, no small block
    /// rounded up to a large one, no old data read because new data changes its parity or its tree.
    fn reads_only_what_is_requested(&self) -> bool {
        let target = self.target;
        let is_rounded = target.layers.iter().any(|layer| {
            let logical_bytes = layer.logical_block_bytes.unwrap_or(0);
            let physical_bytes = layer.physical_block_bytes.unwrap_or(0);
            self.block_bytes < logical_bytes.max(physical_bytes)
        });
        let is_buffered = self.cache != CachePolicy::Direct || target.has_buffered_loop();
        let reads_ahead = is_buffered && (self.asked.read_bytes > 0 || !self.has_whole_pages);
        let reads_parity = self.asked.write_bytes > 0 && is_raid(target);
        let rewrites =
            copies_on_write(target) || reads_parity || may_move_more_than_requested(target);
        !is_rounded && !reads_ahead && !rewrites
    }

    /// True if every write beyond the metadata is another program's: none was requested, and no
    /// earlier one is still on its way.
    fn writes_only_what_is_requested(&self) -> bool {
        self.asked.write_bytes == 0
            && !copies_on_write(self.target)
            && !is_raid(self.target)
            && !may_move_more_than_requested(self.target)
            && !self.target.has_buffered_loop()
    }
}

/// The errors of requests that reached the disk: a full filesystem moves nothing.
fn errors_of_disk(errors: &BTreeMap<String, u64>) -> u64 {
    let mut sum: u64 = 0;
    for (errno, count) in errors {
        if errno::is_of_disk(errno) {
            sum = sum.saturating_add(*count);
        }
    }
    sum
}

/// Bytes that the disk may have moved for requests of these workloads that failed.
fn failed_by_workloads(rows: &[&Row]) -> Excess {
    let mut failed = Excess::default();
    for row in rows {
        for (kind, op) in &row.data.ops {
            let request_bytes = match op.bytes.checked_div(op.count) {
                Some(mean_bytes) => mean_bytes,
                None => u64::from(row.data.workload.block_bytes),
            };
            let bytes = errors_of_disk(&op.errors).saturating_mul(request_bytes);
            let direction = match kind {
                OpKind::Read => &mut failed.reads,
                OpKind::Write | OpKind::Commit => &mut failed.writes,
                OpKind::Trim | OpKind::Sync | OpKind::Transaction => continue,
            };
            *direction = direction.saturating_add(bytes);
        }
    }
    failed
}

/// As [`failed_by_workloads`], for the requests of a survey.
fn failed_by_survey(surface: &SurfaceRecord) -> Excess {
    let data = &surface.data;
    let mut requests = errors_of_disk(&data.access_errors);
    for point in &data.curve {
        requests = requests.saturating_add(point.errors);
    }
    let mut bytes = requests.saturating_mul(SURVEY_REQUEST_BYTES);
    if let Some(scan) = &data.scan {
        // A block that fails is read again sector by sector.
        let twice_bytes = 2 * u64::from(scan.block_bytes);
        bytes = bytes.saturating_add(scan.failed_blocks().saturating_mul(twice_bytes));
    }
    match data.survey.operation {
        OpKind::Write => Excess {
            reads: 0,
            writes: bytes,
        },
        _ => Excess {
            reads: bytes,
            writes: 0,
        },
    }
}

/// The part of an excess that processes explain, in bytes: at most what they moved. It is 0 where
/// the disk shows less than half of that, because then the processes worked mostly on another disk.
fn shown_by_disk(excess: u64, by_processes: u64) -> u64 {
    if excess >= by_processes / 2 {
        excess.min(by_processes)
    } else {
        0
    }
}

/// A filesystem that writes and reads metadata for our own requests.
struct MetadataOwner<'a> {
    kind: &'a str,
    /// At most as large as what it lies on.
    size_bytes: u64,
}

impl MetadataOwner<'_> {
    fn copies_on_write(&self) -> bool {
        COPY_ON_WRITE.contains(&self.kind)
    }
}

/// The filesystem of the target, and those that hold the files behind loop devices.
fn metadata_owners(target: &TargetIdentity) -> Vec<MetadataOwner<'_>> {
    let mut owners = Vec::new();
    if target.kind != TargetKind::BlockDevice {
        owners.push(match &target.filesystem {
            Some(known) => MetadataOwner {
                kind: &known.kind,
                size_bytes: known.size_bytes,
            },
            None => MetadataOwner {
                kind: "",
                size_bytes: 0,
            },
        });
    }
    for layer in &target.layers {
        if layer.kind != LayerKind::Loop || layer.below.is_empty() {
            continue;
        }
        let mut size_bytes = 0;
        for below in &target.layers {
            if layer.below.contains(&below.name) {
                size_bytes += below.size_bytes;
            }
        }
        owners.push(MetadataOwner {
            kind: layer.backing_filesystem.as_deref().unwrap_or_default(),
            size_bytes,
        });
    }
    owners
}

/// True if anything between the target and its disks writes to new places instead of in place.
fn copies_on_write(target: &TargetIdentity) -> bool {
    metadata_owners(target)
        .iter()
        .any(MetadataOwner::copies_on_write)
}

/// True if new data makes an array read old data, for its parity.
fn is_raid(target: &TargetIdentity) -> bool {
    target
        .layers
        .iter()
        .any(|layer| layer.kind == LayerKind::Md)
}

/// True if a layer may read or write more than was requested, whatever the request: volumes of
/// the device mapper that are an array, a cache or a snapshot, and bcache. The record states the
/// user of a mapping, not its type.
fn may_move_more_than_requested(target: &TargetIdentity) -> bool {
    target.layers.iter().any(|layer| match layer.kind {
        LayerKind::DeviceMapper => match mapped_by(layer) {
            "multipath" => false,
            // Without dm-integrity below it, dm-crypt passes on each request as it is.
            "crypt" => lies_on_mapping_of("crypt", layer, target),
            user => layer.below.len() > 1 || lies_on_mapping_of(user, layer, target),
        },
        LayerKind::Disk => layer.name.starts_with("bcache"),
        LayerKind::Partition
        | LayerKind::Md
        | LayerKind::Loop
        | LayerKind::Zram
        | LayerKind::RamDisk
        | LayerKind::Network => false,
    })
}

/// The user of a mapping: `LVM`, `crypt` or `multipath`; empty where it is unknown.
fn mapped_by(layer: &Layer) -> &str {
    let model = layer.model.as_deref().unwrap_or_default();
    model.split(' ').next().unwrap_or_default()
}

/// True if the device below is a mapping of the same user: a volume that is more than a part of a
/// disk lies on volumes that its user hides.
fn lies_on_mapping_of(user: &str, layer: &Layer, target: &TargetIdentity) -> bool {
    target.layers.iter().any(|below| {
        below.kind == LayerKind::DeviceMapper
            && layer.below.contains(&below.name)
            && mapped_by(below) == user
    })
}

/// True if a workload makes its writes durable as it goes, not only at its end.
pub(super) fn syncs_as_it_writes(row: &Row) -> bool {
    row.data.workload.sync.is_ongoing()
}

/// True if the page cache moves exactly the bytes that a workload requests.
pub(super) fn has_whole_pages(row: &Row) -> bool {
    block_sizes(row)
        .iter()
        .all(|block_bytes| block_bytes.is_multiple_of(PAGE_BYTES))
}

fn smallest_block(row: &Row) -> u32 {
    let mut smallest = u32::MAX;
    for block_bytes in block_sizes(row) {
        smallest = smallest.min(block_bytes);
    }
    smallest
}

/// The sizes of the requests of a workload, with its main one.
fn block_sizes(row: &Row) -> Vec<u32> {
    let workload = &row.data.workload;
    let mut sizes: Vec<u32> = workload
        .block_mix
        .iter()
        .map(|share| share.block_bytes)
        .collect();
    sizes.push(workload.block_bytes);
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    /// A layer: its name, its kind, its model and what is below it.
    struct Stacked(
        &'static str,
        LayerKind,
        &'static str,
        &'static [&'static str],
    );

    fn moves_more(stack: &[Stacked]) -> bool {
        let mut target = fixture::target();
        target.layers.clear();
        for Stacked(name, kind, model, below) in stack {
            target.layers.push(Layer {
                model: Some((*model).to_owned()),
                ..fixture::layer(name, *kind, below)
            });
        }
        may_move_more_than_requested(&target)
    }

    /// Arrays, caches and snapshots are volumes over volumes of the same user, which hides the
    /// lower ones.
    #[test]
    fn volume_on_hidden_volumes_of_its_user_may_move_more() {
        use LayerKind::{DeviceMapper, Disk, Loop, Partition};
        for (upper, lower, expected) in [
            ("LVM data", "LVM data_corig", true),
            ("LVM data", "crypt disk", false),
            ("crypt data", "LVM volume", false),
            ("crypt data", "crypt integrity", true),
            ("multipath san", "multipath path", false),
        ] {
            let stack = [
                Stacked("dm-0", DeviceMapper, upper, &["dm-1"]),
                Stacked("dm-1", DeviceMapper, lower, &["sda"]),
                Stacked("sda", Disk, "", &[]),
            ];
            assert_eq!(moves_more(&stack), expected, "{upper} on {lower}");
        }
        assert!(moves_more(&[Stacked("bcache0", Disk, "", &["sda"])]));
        assert!(!moves_more(&[
            Stacked("loop0", Loop, "", &["sda1"]),
            Stacked("sda1", Partition, "", &["sda"]),
            Stacked("sda", Disk, "", &[]),
        ]));
    }

    /// What fails on the disk has moved; a full filesystem moves nothing, and a sync has no bytes.
    #[test]
    fn failed_requests_of_the_disk_have_moved_their_bytes() {
        let mut record = fixture::record();
        let commits = &mut record.measurements[7].data.ops;
        for (kind, errno, count) in [
            (OpKind::Write, "EIO", 3),
            (OpKind::Write, "ENOSPC", 5),
            (OpKind::Sync, "EIO", 7),
        ] {
            let errors = &mut commits.get_mut(&kind).unwrap().errors;
            errors.insert(errno.to_owned(), count);
        }
        let reads = record.measurements[2].data.ops.get_mut(&OpKind::Read);
        reads.unwrap().errors.insert("EIO".to_owned(), 2);
        let failed = failed_by_workloads(&[&record.measurements[7], &record.measurements[2]]);
        assert_eq!((failed.reads, failed.writes), (2 * 8192, 3 * 8192));
    }

    #[test]
    fn process_explains_what_it_moved_if_half_of_that_came_to_the_disk() {
        for (excess, by_processes, shown) in
            [(100, 200, 100), (99, 200, 0), (300, 200, 200), (50, 0, 0)]
        {
            assert_eq!(shown_by_disk(excess, by_processes), shown, "{excess}");
        }
    }

    #[test]
    fn disk_that_was_not_counted_has_no_excess() {
        let mut record = fixture::record();
        let excess = |record: &Record| {
            let traffic = Traffic::from_workload(record, measured_at(record, 2));
            traffic.unwrap().excess().is_some()
        };
        assert!(excess(&record));
        record.measurements[2].data.device.accounted = None;
        assert!(!excess(&record));
    }

    /// The model decides it for the filesystem of a target, by a list of its own.
    #[test]
    fn filesystems_that_copy_on_write_are_those_of_the_model() {
        let mut filesystem = fixture::target().filesystem.unwrap();
        for kind in COPY_ON_WRITE.into_iter().chain(["ext4", "xfs", "f2fs", ""]) {
            filesystem.kind = kind.to_owned();
            let owner = MetadataOwner {
                kind,
                size_bytes: 0,
            };
            assert_eq!(
                owner.copies_on_write(),
                filesystem.copies_on_write(),
                "{kind}"
            );
        }
    }
}
