//! Copies of superblocks far from both ends. They survive when the first MiB of a filesystem is
//! zeroed, and a filesystem checker restores the filesystem from them. Their offsets depend on the
//! geometry, so only those of the usual geometries are checked.

use super::image::View;
use super::table::At::Start;
use super::table::{Clearing, FormatMark, Role, Row, Table};
use diskproof_model::units::SECTOR_BYTES;
use std::collections::BTreeSet;

const KIB: u64 = 1 << 10;
const GIB: u64 = 1 << 30;
const OCFS2: &str = "backup superblock of an OCFS2 filesystem";
const BLUESTORE: &str = "copy of the label of a Ceph BlueStore device";

const NTFS: &str = "second boot sector of an NTFS filesystem in its middle";
const MAGICS: &[Row] = &[
    // `ocfs2_backup_super_blkno` of linux/fs/ocfs2/ocfs2_fs.h: 1 GiB, then four times as far each.
    (OCFS2, Start(GIB), b"OCFSV2"),
    (OCFS2, Start(4 * GIB), b"OCFSV2"),
    (OCFS2, Start(16 * GIB), b"OCFSV2"),
    (OCFS2, Start(64 * GIB), b"OCFSV2"),
    (OCFS2, Start(256 * GIB), b"OCFSV2"),
    (OCFS2, Start(1024 * GIB), b"OCFSV2"),
    // `bdev_label_positions` of Ceph's os/bluestore/BlueStore.cc, from Squid on.
    (BLUESTORE, Start(GIB), b"bluestore block device"),
    (BLUESTORE, Start(10 * GIB), b"bluestore block device"),
    (BLUESTORE, Start(100 * GIB), b"bluestore block device"),
    (BLUESTORE, Start(1000 * GIB), b"bluestore block device"),
];

pub(super) const TABLE: Table = Table::new(MAGICS, Clearing::Zeros, Role::Content);

/// Every copy that is there.
pub(super) fn find(view: &View<'_, '_>) -> Vec<FormatMark> {
    let ext = ext(view).map(|offset| ("backup superblock of an ext2/3/4 filesystem", offset));
    let xfs = xfs(view).map(|offset| ("second superblock of an XFS filesystem", offset));
    let ntfs = ntfs(view).map(|offset| (NTFS, offset));
    ext.chain(xfs)
        .chain(ntfs)
        .map(|(what, at)| FormatMark::new(what, at, Clearing::Zeros, Role::Content))
        .collect()
}

/// The first two copies that every sparse ext filesystem has, in groups of the default size
/// (`ext2fs_initialize` of e2fsprogs: eight blocks for each byte of a block). The copy names the
/// size of its blocks, so that two bytes of random data are not mistaken for one. The number of its
/// group is ignored: revision 0 of the format has none.
fn ext(view: &View<'_, '_>) -> impl Iterator<Item = u64> {
    const GROUPS: [u64; 2] = [1, 3];
    let places = (0..7u32).flat_map(|log| GROUPS.map(|group| (log, group)));
    places.filter_map(|(log, group)| {
        let block = KIB << log;
        let first_block = u64::from(log == 0);
        let at = (group * 8 * block + first_block) * block;
        let is_copy = view.le16(at + 56)? == 0xef53 && view.le32(at + 24)? == log;
        is_copy.then_some(at)
    })
}

/// The starts of the second and third allocation group, by the default counts of groups
/// (`calc_default_ag_geometry` of xfsprogs' libxfs/topology.c): 2 to 32, or of the largest size.
fn xfs(view: &View<'_, '_>) -> impl Iterator<Item = u64> {
    const BLOCK: u64 = 4 * KIB;
    const GROUP_BLOCKS_MAX: u64 = (1 << 40) / BLOCK - 1;
    let blocks = view.length() / BLOCK;
    let by_count = (1..=5u32).map(|shift| blocks.div_ceil(1 << shift));
    let groups = by_count.chain([GROUP_BLOCKS_MAX]);
    let starts: BTreeSet<u64> = groups
        .flat_map(|blocks| [blocks * BLOCK, 2 * blocks * BLOCK])
        .collect();
    starts.into_iter().filter(|at| view.holds(*at, b"XFSB"))
}

/// Windows NT 3.51 kept the copy in the middle of the volume, and ntfsfix still looks there.
fn ntfs(view: &View<'_, '_>) -> Option<u64> {
    let middle = view.length() / SECTOR_BYTES / 2 * SECTOR_BYTES;
    view.holds(middle + 3, b"NTFS    ").then_some(middle)
}
