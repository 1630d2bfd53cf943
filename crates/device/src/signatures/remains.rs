//! Finds filesystems and partition tables whose beginning is gone: what is left when the first MiB
//! of a disk was zeroed, its partition table with it, or when the disk has grown. Their places
//! follow from what partitioners and mkfs choose, so that some hundred reads search a disk, and at
//! most 2048 more look for the ends of a smaller one.

use super::image::View;
use super::magics::{Clearing, MAGICS, Magic, Place, Role, Signature, read_table};
use super::partition_tables;
use super::structures::{EXT_COPY, XFS_COPY, structures_at_start, zfs_list, zfs_ring};
use super::unknown::END_BYTES;
use diskproof_model::own_data::is_marked;
use diskproof_model::units::SECTOR_BYTES;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The rows of remains.txt.
static REMAINS: LazyLock<Vec<Magic>> = LazyLock::new(|| {
    read_table(include_str!("remains.txt")).expect("tests read every row of the table")
});

/// First partitions begin here: at the second track of old partitioners, and at the alignments of
/// later ones (a MiB; 4 MiB for SD cards).
const PARTITION_STARTS: [u64; 3] = [63 * SECTOR_BYTES, MIB, 4 * MIB];

/// Two bytes match by chance in one of 65,536 looks; texts of this length do not.
const SURE_TEXT_BYTES: usize = 4;

/// Texts of this length or more are compared with every sector of both ends, not only with the
/// sector that their row names. Chosen so that none of them matches random data: six bytes match by
/// chance once in 2⁴⁸ sectors.
const SECTOR_TEXT_BYTES: usize = 6;

/// Finds what is left on a disk; `whole` is all of it.
pub(super) fn find(whole: &View<'_, '_>) -> Vec<Signature> {
    let mut signatures: Vec<Signature> = REMAINS
        .iter()
        .filter_map(|magic| magic.find(whole))
        .collect();
    signatures.extend(scan_sectors_at_both_ends(whole));
    for start in PARTITION_STARTS {
        if let Some(view) = whole.part(start, whole.length()) {
            signatures.extend(scan_forgotten_partition(&view));
        }
    }
    signatures.extend(zfs_end_labels(whole));
    signatures.extend(ext_copies(whole));
    signatures.extend(xfs_copies(whole));
    signatures.extend(trailers_of_smaller_disk(whole));
    signatures
}

/// The content of a partition that no table names any more; where it ends is unknown.
fn scan_forgotten_partition(view: &View<'_, '_>) -> Vec<Signature> {
    let mut signatures = Vec::new();
    for magic in MAGICS.iter().chain(REMAINS.iter()) {
        let is_sure = magic.text.len() >= SURE_TEXT_BYTES && magic.role == Role::Content;
        if is_sure && matches!(magic.place, Place::Start(_)) {
            signatures.extend(magic.find(view));
        }
    }
    signatures.extend(structures_at_start(view));
    if is_ext_superblock(view, KIB) {
        let what = "ext2/3/4 filesystem or its journal";
        signatures.push(content(what, KIB + 56));
    }
    for label in [0, ZFS_LABEL_BYTES] {
        if zfs_list(view, label)
            .or_else(|| zfs_ring(view, label))
            .is_some()
        {
            signatures.push(zfs_label(label));
        }
    }
    for signature in &mut signatures {
        signature.offset += view.start();
        // wipefs looks at the starts of devices, and this is none.
        if signature.clearing == Clearing::Wipefs {
            signature.clearing = Clearing::Zeros;
        }
    }
    signatures
}

/// The signature of content that only zeros remove.
fn content(what: &'static str, offset: u64) -> Signature {
    Signature::new(what, offset, Clearing::Zeros, Role::Content)
}

/// A label of ZFS (ZFS On-Disk Specification, chapter 1); two stand at each end of a partition.
const ZFS_LABEL_BYTES: u64 = 256 * KIB;
/// `zpool create` on a whole disk leaves 8 MiB behind its partition (`EFI_MIN_RESV_SIZE`).
const ZFS_RESERVED_BYTES: u64 = 8 * MIB;

fn zfs_label(offset: u64) -> Signature {
    Signature::new(
        "label of a ZFS pool member",
        offset,
        Clearing::ZeroedLabel,
        Role::Content,
    )
}

/// The last two labels of a partition, which ends somewhere in the last two MiB, or before the
/// reserved partition of ZFS. Labels are aligned like the start of the partition.
fn zfs_end_labels(whole: &View<'_, '_>) -> Vec<Signature> {
    let end = whole.length() / ZFS_LABEL_BYTES * ZFS_LABEL_BYTES;
    let mut signatures = Vec::new();
    for back in [2 * MIB, ZFS_RESERVED_BYTES + 2 * MIB] {
        for number in 0..2 * MIB / ZFS_LABEL_BYTES {
            let Some(label) = end.checked_sub(back) else {
                continue;
            };
            let label = label + number * ZFS_LABEL_BYTES;
            if zfs_list(whole, label).is_some() {
                signatures.push(zfs_label(label));
            }
        }
    }
    signatures
}

/// Texts that stand at the same place of any sector in the first MiB and the last two: the second
/// boot sectors of FAT32 and NTFS, metadata of LVM and RAID in a partition that ends before the
/// disk does.
fn scan_sectors_at_both_ends(whole: &View<'_, '_>) -> Vec<Signature> {
    let length = whole.length();
    let first = 0..length.min(END_BYTES);
    let last = length.saturating_sub(2 * END_BYTES).max(first.end) / SECTOR_BYTES * SECTOR_BYTES;
    let texts: Vec<SectorText<'_>> = MAGICS
        .iter()
        .chain(REMAINS.iter())
        .filter_map(sector_text)
        .collect();
    let mut signatures = Vec::new();
    for end in [first, last..length] {
        for piece_start in end.clone().step_by(PIECE_BYTES as usize) {
            let piece = PIECE_BYTES.min(end.end - piece_start);
            // What cannot be read is a separate reason.
            let bytes = whole.bytes(piece_start, piece as usize).unwrap_or_default();
            for (index, sector) in bytes.chunks(SECTOR_BYTES as usize).enumerate() {
                if sector.iter().all(|byte| *byte == 0) || is_marked(sector) {
                    continue;
                }
                let start = piece_start + index as u64 * SECTOR_BYTES;
                signatures.extend(first_text_in_sector(&texts, sector, start));
            }
        }
    }
    signatures
}

/// Bytes of one read: what an image keeps as one chunk.
const PIECE_BYTES: u64 = 64 * KIB;

/// A text and its place within a sector.
struct SectorText<'m> {
    magic: &'m Magic,
    place: usize,
}

/// `None` of a text that no single sector can hold at a known place.
fn sector_text(magic: &Magic) -> Option<SectorText<'_>> {
    let place = match magic.place {
        Place::Sector(place) => place,
        Place::Start(place) if magic.text.len() >= SECTOR_TEXT_BYTES => place,
        Place::Start(_) | Place::End { .. } => return None,
    };
    let place = usize::try_from(place).ok()?;
    if place + magic.text.len() <= SECTOR_BYTES as usize {
        Some(SectorText { magic, place })
    } else {
        None
    }
}

/// The first text that a sector holds; it begins at byte `start` of the disk.
fn first_text_in_sector(texts: &[SectorText<'_>], sector: &[u8], start: u64) -> Option<Signature> {
    for text in texts {
        let magic = text.magic;
        if sector
            .get(text.place..)
            .is_some_and(|rest| rest.starts_with(&magic.text))
        {
            let offset = start + text.place as u64;
            return Some(Signature::new(
                magic.what,
                offset,
                Clearing::Zeros,
                magic.role,
            ));
        }
    }
    None
}

/// Groups of an ext filesystem begin at multiples of a power of two from its start: eight blocks
/// for each byte of a block, or eight clusters with bigalloc (`ext2fs_initialize` of e2fsprogs).
const EXT_GROUP_SHIFTS: Range<u32> = 23..50;
/// Every sparse ext filesystem has its first copies in these groups; with sparse_super2 the first.
const EXT_GROUPS: [u64; 2] = [1, 3];
/// From the start of a group to its superblock: with blocks of 1 KiB the first one is left free. A
/// partition at the second track reads the same piece of the disk.
const EXT_PLACES: [u64; 4] = [0, KIB, 63 * SECTOR_BYTES, 63 * SECTOR_BYTES + KIB];

/// Finds copies of the superblock of an ext filesystem, at the places of every group size.
fn ext_copies(whole: &View<'_, '_>) -> Vec<Signature> {
    let mut starts = BTreeSet::new();
    for shift in EXT_GROUP_SHIFTS {
        for group in EXT_GROUPS {
            starts.extend([0, MIB, 4 * MIB].map(|start| start + (group << shift)));
        }
    }
    let mut signatures = Vec::new();
    for start in starts.range(..whole.length()) {
        for place in EXT_PLACES {
            if is_ext_superblock(whole, start + place) {
                signatures.push(content(EXT_COPY, start + place));
            }
        }
    }
    signatures
}

/// `struct ext4_super_block` of linux/fs/ext4/ext4.h: the magic number, sizes of blocks and
/// clusters that exist, and groups that are not empty.
fn is_ext_superblock(view: &View<'_, '_>, offset: u64) -> bool {
    has_ext_fields(view, offset) == Some(true)
}

/// `None` where the fields could not be read.
fn has_ext_fields(view: &View<'_, '_>, superblock: u64) -> Option<bool> {
    let is_ext = view.le16(superblock + 56)? == 0xef53;
    // Both are exponents of 2, from 1 KiB: a block has 64 KiB at most.
    let block = view.le32(superblock + 24)?;
    let cluster = view.le32(superblock + 28)?;
    let is_sized = block <= 6 && (block..=30).contains(&cluster);
    let group_blocks = view.le32(superblock + 32)?;
    let group_inodes = view.le32(superblock + 40)?;
    Some(is_ext && is_sized && group_blocks > 0 && group_inodes > 0)
}

/// Counts of allocation groups that mkfs.xfs chooses on RAID and on single disks, and the smallest
/// primes: the groups of a filesystem with an even count meet in its middle.
const XFS_COUNTS: [u64; 6] = [2, 3, 4, 8, 16, 32];
/// On an SSD it makes one group for each processor, fewer where they would be smaller than 4 GiB.
const XFS_COUNT_MAX: u64 = 256;
/// The largest group (`XFS_AG_MAX_BLOCKS`) has a block less.
const XFS_GROUP_BYTES_MAX: u64 = 1 << 40;
/// A group may begin this much before its even share of the disk: mkfs.xfs rounds groups to the
/// stripe unit, and makes them one unit shorter where they are a multiple of the stripe; and a
/// partition may end some MiB before the disk does.
const XFS_BEFORE: u64 = 2 * MIB;
/// A group may begin this much behind its even share: a partition may begin 4 MiB behind the start
/// of the disk, and rounding to the stripe unit adds to that.
const XFS_BEHIND: u64 = 6 * MIB;
/// The most that rounding to blocks moves a group of a filesystem without stripes.
const XFS_ROUNDING: u64 = 128 * KIB;

/// Finds superblocks of later allocation groups of an XFS filesystem.
fn xfs_copies(whole: &View<'_, '_>) -> Vec<Signature> {
    let mut signatures = Vec::new();
    for range in without_overlap(xfs_ranges(whole.length())) {
        for piece_start in range.clone().step_by(MIB as usize) {
            let length = MIB.min(range.end - piece_start);
            let bytes = whole
                .piece(piece_start, length as usize)
                .unwrap_or_default();
            for (index, sector) in bytes.chunks(SECTOR_BYTES as usize).enumerate() {
                if is_xfs_superblock(sector) {
                    let offset = piece_start + index as u64 * SECTOR_BYTES;
                    signatures.push(content(XFS_COPY, offset));
                }
            }
        }
    }
    signatures
}

/// `struct xfs_dsb` of linux/fs/xfs/libxfs/xfs_format.h: the magic number and the size of a block.
fn is_xfs_superblock(sector: &[u8]) -> bool {
    let Some(head) = sector.first_chunk::<8>() else {
        return false;
    };
    let block = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
    head.starts_with(b"XFSB") && block.is_power_of_two() && (512..=65536).contains(&block)
}

/// Bytes within which second allocation groups of a filesystem on a disk of `length` bytes begin.
fn xfs_ranges(length: u64) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    for count in XFS_COUNTS {
        let start = length / count;
        ranges.push(start.saturating_sub(XFS_BEFORE)..start + XFS_BEHIND);
    }
    let largest = XFS_GROUP_BYTES_MAX;
    ranges.push(largest - XFS_BEFORE..largest + XFS_BEHIND);
    for count in (5..XFS_COUNT_MAX).filter(|count| is_prime(*count)) {
        for partition in [0, MIB] {
            let start = length / count + partition;
            ranges.push(start.saturating_sub(XFS_ROUNDING)..start + XFS_ROUNDING);
        }
    }
    for range in &mut ranges {
        // Aligned for direct I/O.
        range.start = range.start / PIECE_BYTES * PIECE_BYTES;
        range.end = range.end.next_multiple_of(PIECE_BYTES).min(length);
    }
    ranges
}

fn is_prime(number: u64) -> bool {
    (2..number)
        .take_while(|divisor| divisor * divisor <= number)
        .all(|divisor| !number.is_multiple_of(divisor))
}

/// Joins ranges that overlap, in order.
fn without_overlap(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged.retain(|range| range.start < range.end);
    merged
}

/// At most so many ends of a smaller disk are looked at: about 16 seconds on a disk that seeks (8
/// ms each). Where the disk is too slow for all of them within the time of a scan (image.rs),
/// reading fails, and the content is unknown.
const SMALLER_DISKS_MAX: u64 = 2048;

/// A virtual disk or a volume that has grown holds what was at its end: a backup GPT, the
/// superblock of a RAID. Sizes are mostly round.
fn trailers_of_smaller_disk(whole: &View<'_, '_>) -> Vec<Signature> {
    let step = (whole.length() / SMALLER_DISKS_MAX)
        .next_power_of_two()
        .max(MIB);
    let mut signatures = Vec::new();
    // Upwards, so that no seek is long.
    for number in 1..whole.length().div_ceil(step) {
        if let Some(smaller) = whole.part(0, number * step) {
            signatures.extend(trailers(&smaller));
        }
    }
    signatures
}

/// Signatures of the last 64 KiB, in one read.
fn trailers(smaller: &View<'_, '_>) -> Vec<Signature> {
    let mut signatures = partition_tables::backup_gpt(smaller);
    for magic in MAGICS.iter() {
        let Place::End { back, .. } = magic.place else {
            continue;
        };
        if back <= PIECE_BYTES && magic.text.len() >= SURE_TEXT_BYTES {
            signatures.extend(magic.find(smaller));
        }
    }
    for signature in &mut signatures {
        signature.clearing = Clearing::Zeros;
    }
    signatures
}

#[cfg(test)]
mod tests;
