//! Finds signatures that need arithmetic or a second look, because the magic is short, moves or is
//! missing: ZFS, NILFS2, HFS, Minix, UDF anchors, external XFS logs, pages of databases and a few
//! more. Further fields are compared only where two bytes would match by chance.
//!
//! It also finds copies of superblocks far from both ends. They survive when the first MiB of a
//! filesystem is zeroed, and a filesystem checker restores the filesystem from them. Their offsets
//! depend on the geometry, so only those of the default geometries are checked here; remains.rs has
//! the others.

use super::image::View;
use super::magics::Clearing::{self, Wipefs, Zeros, ZpoolLabelclear};
use super::magics::Role::{self, Content, PartitionTable};
use super::magics::Signature;
use diskproof_model::units::SECTOR_BYTES as SECTOR;
use std::collections::BTreeSet;

const KIB: u64 = 1 << 10;

pub(super) const EXT_COPY: &str = "backup superblock of an ext2/3/4 filesystem";
pub(super) const XFS_COPY: &str = "second superblock of an XFS filesystem";
const NTFS_COPY: &str = "second boot sector of an NTFS filesystem in its middle";

/// The byte of a view at which a structure stands; `None` where it is not there.
type Find = fn(&View<'_, '_>) -> Option<u64>;

/// A structure that is looked for.
struct Check {
    what: &'static str,
    find: Find,
    clearing: Clearing,
    role: Role,
}

impl Check {
    const fn new(what: &'static str, find: Find, clearing: Clearing, role: Role) -> Self {
        Self {
            what,
            find,
            clearing,
            role,
        }
    }

    fn signature(&self, view: &View<'_, '_>) -> Option<Signature> {
        let offset = (self.find)(view)?;
        Some(Signature::new(self.what, offset, self.clearing, self.role))
    }
}

// rustfmt would give each field of a row a line.
#[rustfmt::skip]
const CHECKS: [Check; 15] = [
    Check::new("NILFS2 filesystem", nilfs, Wipefs, Content),
    Check::new("ZFS pool member", zfs, ZpoolLabelclear, Content),
    Check::new("HFS filesystem", hfs, Wipefs, Content),
    Check::new("Minix filesystem", minix, Wipefs, Content),
    Check::new("FAT filesystem", fat, Wipefs, Content),
    Check::new("anchor of a UDF filesystem", udf_anchor, Zeros, Content),
    Check::new("external log of an XFS filesystem", xfs_log, Wipefs, Content),
    Check::new("Apple Core Storage volume", core_storage, Wipefs, Content),
    Check::new("Sun disk label", sun, Wipefs, PartitionTable),
    Check::new("Atari disk label", atari, Wipefs, PartitionTable),
    Check::new("Amiga disk label", amiga, Zeros, PartitionTable),
    Check::new("PostgreSQL data pages", postgres_page, Zeros, Content),
    Check::new("PostgreSQL write-ahead log", postgres_wal, Zeros, Content),
    Check::new("InnoDB (MySQL, MariaDB) tablespace", innodb, Zeros, Content),
    Check::new("Redis or Valkey append-only file (AOF)", redis_commands, Zeros, Content),
];

/// Every structure that is there, then every copy of a superblock.
pub(super) fn find(view: &View<'_, '_>) -> impl Iterator<Item = Signature> {
    let structures = CHECKS.iter().filter_map(|check| check.signature(view));
    structures
        .chain(ext_copies(view).map(|offset| copy(EXT_COPY, offset)))
        .chain(xfs_copies(view).map(|offset| copy(XFS_COPY, offset)))
        .chain(ntfs_copy(view).map(|offset| copy(NTFS_COPY, offset)))
}

/// A copy of a superblock.
fn copy(what: &'static str, offset: u64) -> Signature {
    Signature::new(what, offset, Zeros, Content)
}

/// Finds structures at the beginning of a partition whose end is unknown; all but those of ZFS.
pub(super) fn structures_at_start(view: &View<'_, '_>) -> impl Iterator<Item = Signature> {
    CHECKS
        .iter()
        .filter(|check| check.clearing != ZpoolLabelclear && check.role == Content)
        .filter_map(|check| check.signature(view))
}

/// The first of some offsets at which a check says yes. `None` of a check means that its fields lie
/// behind the end or could not be read.
fn first_match(
    offsets: impl IntoIterator<Item = u64>,
    is_there: impl Fn(u64) -> Option<bool>,
) -> Option<u64> {
    offsets
        .into_iter()
        .find(|offset| is_there(*offset) == Some(true))
}

/// `struct nilfs_super_block` of linux/nilfs2_ondisk.h, at 1 KiB and in the last whole 4 KiB.
fn nilfs(view: &View<'_, '_>) -> Option<u64> {
    let size = view.length();
    let second = [
        (size / SECTOR).checked_sub(8).map(|s| s * SECTOR),
        (size / (4 * KIB)).checked_sub(1).map(|b| b * 4 * KIB),
    ];
    first_match([Some(KIB)].into_iter().chain(second).flatten(), |at| {
        Some(view.le16(at + 6)? == 0x3434 && (12..=1024).contains(&view.le16(at + 8)?))
    })
}

/// A label of ZFS: 8 KiB left free, 8 KiB of boot header, 112 KiB of names and values, 128 KiB of
/// uberblocks.
const ZFS_LABEL_BYTES: u64 = 256 * KIB;

/// Two labels at each end (ZFS On-Disk Specification, chapter 1).
fn zfs(view: &View<'_, '_>) -> Option<u64> {
    let size = view.length() / ZFS_LABEL_BYTES * ZFS_LABEL_BYTES;
    let labels = [
        Some(0),
        Some(ZFS_LABEL_BYTES),
        size.checked_sub(2 * ZFS_LABEL_BYTES),
        size.checked_sub(ZFS_LABEL_BYTES),
    ];
    labels
        .into_iter()
        .flatten()
        .find_map(|label| zfs_ring(view, label).or_else(|| zfs_list(view, label)))
}

/// The ring of uberblocks of a label, from 128 KiB on, in the byte order of the machine that wrote
/// them. The smallest slot has 1 KiB.
pub(super) fn zfs_ring(view: &View<'_, '_>, label: u64) -> Option<u64> {
    const UBERBLOCK: u64 = 0x00ba_b10c;
    let slots = (0..128).map(|slot| label + 128 * KIB + slot * KIB);
    first_match(slots, |at| {
        Some([UBERBLOCK, UBERBLOCK.swap_bytes()].contains(&view.le64(at)?))
    })
}

/// The list of names and values at 16 KiB of a label.
pub(super) fn zfs_list(view: &View<'_, '_>, label: u64) -> Option<u64> {
    first_match([label + 16 * KIB], |at| {
        let list = view.bytes(at, 1024)?;
        // XDR encoding, then names in plain text: every label has one of its guid.
        Some(list[0] == 1 && list[1] <= 1 && list.windows(4).any(|text| text == b"guid"))
    })
}

/// `drSigWord` and `drAlBlkSiz` of the Master Directory Block (Inside Macintosh: Files, chapter 2).
fn hfs(view: &View<'_, '_>) -> Option<u64> {
    first_match([KIB], |at| {
        let bytes = view.be32(at + 20)?;
        Some(view.holds(at, b"BD") && bytes != 0 && bytes % 512 == 0)
    })
}

/// Versions 1 to 3 of linux/minix_fs.h, in either byte order.
fn minix(view: &View<'_, '_>) -> Option<u64> {
    first_match([KIB], |at| {
        Some(is_minix(|place| view.le16(at + place))? || is_minix(|place| view.be16(at + place))?)
    })
}

/// Judges a superblock by its 16-bit words; `word` gives the one at a byte of it.
fn is_minix(word: impl Fn(u64) -> Option<u16>) -> Option<bool> {
    const OLD: [u16; 4] = [0x137f, 0x138f, 0x2468, 0x2478];
    let is_old = OLD.contains(&word(16)?) && word(18)? <= 3;
    let is_new = word(24)? == 0x4d5a && [1024, 2048, 4096].contains(&word(28)?);
    Some(is_old || is_new)
}

/// A FAT boot sector without a text: the numbers that every driver needs are those of a filesystem.
/// `mkfs.vfat -A` writes neither the usual jump nor the mark of a boot sector, so without a jump
/// the first entry of the allocation table must repeat the media byte, as it does in every FAT.
fn fat(view: &View<'_, '_>) -> Option<u64> {
    first_match([0], |at| {
        let boot: [u8; 64] = view.array(at)?;
        let sector_bytes = u16::from_le_bytes([boot[11], boot[12]]);
        let reserved = u16::from_le_bytes([boot[14], boot[15]]);
        let media = boot[21];
        let has_jump = matches!(boot[0], 0xeb | 0xe9);
        let table = u64::from(sector_bytes) * u64::from(reserved);
        let is_fat = sector_bytes.is_power_of_two()
            && (512..=4096).contains(&sector_bytes)
            && boot[13].is_power_of_two()
            && reserved != 0
            && (1..=4).contains(&boot[16])
            && (media >= 0xf8 || media == 0xf0);
        Some(is_fat && (has_jump || view.holds(table, &[media, 0xff])))
    })
}

/// Anchor Volume Descriptor Pointer (ECMA-167 3/10.2): a tag with a checksum and its own place, in
/// block 256 or at the end.
fn udf_anchor(view: &View<'_, '_>) -> Option<u64> {
    for block in [512, 1024, 2048, 4096] {
        let blocks = view.length() / block;
        let places = [
            Some(256),
            Some(512),
            blocks.checked_sub(1),
            blocks.checked_sub(257),
        ];
        for number in places.into_iter().flatten() {
            if is_udf_anchor(view, number, block) == Some(true) {
                return Some(number * block);
            }
        }
    }
    None
}

fn is_udf_anchor(view: &View<'_, '_>, number: u64, block: u64) -> Option<bool> {
    let tag: [u8; 16] = view.array(number * block)?;
    // Without the checksum itself.
    let sum = tag[..4]
        .iter()
        .chain(&tag[5..])
        .fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    let place = u64::from(u32::from_le_bytes([tag[12], tag[13], tag[14], tag[15]]));
    Some(tag[..2] == [2, 0] && matches!(tag[2], 2 | 3) && tag[4] == sum && place == number)
}

/// A log on its own device: a record begins in one of the first sectors
/// (linux/fs/xfs/libxfs/xfs_log_format.h).
fn xfs_log(view: &View<'_, '_>) -> Option<u64> {
    first_match((0..512).map(|sector| sector * SECTOR), |at| {
        Some(view.be32(at)? == 0xfeed_babe && (1..=3).contains(&view.be32(at + 8)?))
    })
}

/// `CS` behind a block type of 0x10 (libvfade, "FileVault Drive Encryption").
fn core_storage(view: &View<'_, '_>) -> Option<u64> {
    first_match([88], |at| {
        Some(&view.array::<2>(at)? == b"CS" && view.le16(10)? == 0x10)
    })
}

/// Sixteen-bit words, big endian, whose exclusive or is zero.
fn sun(view: &View<'_, '_>) -> Option<u64> {
    first_match([508], |at| {
        let label: [u8; 512] = view.array(0)?;
        let sum = label.chunks(2).fold(0u16, |sum, pair| {
            sum ^ u16::from_be_bytes([pair[0], pair[1]])
        });
        Some(view.be16(at)? == 0xdabe && sum == 0)
    })
}

/// Four entries of twelve bytes; the table has no magic, only well-known names of partition types.
/// The size of the disk stands before them, also where there are none.
fn atari(view: &View<'_, '_>) -> Option<u64> {
    const KNOWN: [&[u8]; 5] = [b"GEM", b"BGM", b"LNX", b"SWP", b"RAW"];
    let sectors = view.length() / SECTOR;
    if let Some(size) = view.be32(0x1c2)
        && size != 0
        && u64::from(size) == sectors
    {
        return Some(0x1c2);
    }
    first_match((0..4).map(|entry| 0x1c6 + entry * 12), |at| {
        let (flags, name) = (view.array::<1>(at)?[0], view.array::<3>(at + 1)?);
        let (start, size) = (u64::from(view.be32(at + 4)?), u64::from(view.be32(at + 8)?));
        Some(
            flags & 1 == 1
                && KNOWN.contains(&&name[..])
                && start > 0
                && size > 0
                && start + size <= sectors,
        )
    })
}

/// The rigid disk block in one of the first sixteen blocks (linux/affs_hardblocks.h,
/// RDB_ALLOCATION_LIMIT).
fn amiga(view: &View<'_, '_>) -> Option<u64> {
    first_match((0..16).map(|block| block * SECTOR), |at| {
        Some(&view.array::<4>(at)? == b"RDSK")
    })
}

/// `PageHeaderData` of PostgreSQL's storage/bufpage.h: pointers in order, size and layout version
/// in one number.
fn postgres_page(view: &View<'_, '_>) -> Option<u64> {
    first_match([0], |at| {
        let (flags, lower, upper) = (
            view.le16(at + 10)?,
            view.le16(at + 12)?,
            view.le16(at + 14)?,
        );
        let (special, size_and_version) = (view.le16(at + 16)?, view.le16(at + 18)?);
        let (size, version) = (size_and_version & 0xff00, size_and_version & 0xff);
        let sized =
            size.is_power_of_two() && (1024..=32768).contains(&size) && (1..=4).contains(&version);
        Some(
            sized
                && flags <= 0xf
                && lower >= 20
                && lower <= upper
                && upper <= special
                && special <= size,
        )
    })
}

/// `XLogPageHeaderData` of access/xlog_internal.h: the magic number grows with the versions, 0xD05x
/// of 8.0 to 0xD1xx of 18.
fn postgres_wal(view: &View<'_, '_>) -> Option<u64> {
    first_match([0], |at| {
        let (magic, info) = (view.le16(at)?, view.le16(at + 2)?);
        let (timeline, address) = (view.le32(at + 4)?, view.le64(at + 8)?);
        Some(
            (0xd050..=0xd1ff).contains(&magic)
                && info <= 0xf
                && timeline > 0
                && timeline < 1 << 24
                && address % 1024 == 0,
        )
    })
}

/// The first page of a tablespace (storage/innobase/include/fil0types.h, fsp0types.h): page 0, of
/// the type "file space header", with the number of the space in the page's header and in that of
/// the space.
fn innodb(view: &View<'_, '_>) -> Option<u64> {
    const FSP_HEADER: u16 = 8;
    first_match([0], |at| {
        Some(
            view.be32(at + 4)? == 0
                && view.be16(at + 24)? == FSP_HEADER
                && view.be32(at + 34)? == view.be32(at + 38)?,
        )
    })
}

/// Commands as Redis' protocol has them, `*2` and `$6` and `SELECT` in lines; or an annotation with
/// a time before them (`aof-timestamp-enabled`).
fn redis_commands(view: &View<'_, '_>) -> Option<u64> {
    first_match([0], |at| {
        let head: [u8; 32] = view.array(at)?;
        Some(head.starts_with(b"#TS:") || strip_command_head(&head).is_some())
    })
}

/// The text behind the head of a command: a count of words, then the length of the first one.
/// `None` where no such head begins it.
fn strip_command_head(head: &[u8]) -> Option<&[u8]> {
    let rest = strip_number(head.strip_prefix(b"*")?)?;
    strip_number(rest.strip_prefix(b"$")?)
}

/// The text behind a number and the end of its line; `None` where no such line begins it.
fn strip_number(text: &[u8]) -> Option<&[u8]> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return None;
    }
    text.get(digits..)?.strip_prefix(b"\r\n")
}

/// The first two copies that every sparse ext filesystem has, in groups of the default size
/// (`ext2fs_initialize` of e2fsprogs: eight blocks for each byte of a block). The copy names the
/// size of its blocks, so that two bytes of random data are not mistaken for one. The number of its
/// group is ignored: revision 0 of the format has none.
fn ext_copies(view: &View<'_, '_>) -> impl Iterator<Item = u64> {
    const GROUPS: [u64; 2] = [1, 3];
    let places = (0..7u32).flat_map(|log| GROUPS.map(|group| (log, group)));
    places.filter_map(|(log, group)| {
        let block = KIB << log;
        let first_block = u64::from(log == 0);
        let at = (group * 8 * block + first_block) * block;
        let is_copy = view.le16(at + 56)? == 0xef53 && view.le32(at + 24)? == log;
        if is_copy { Some(at) } else { None }
    })
}

/// The starts of the second and third allocation group, by the default counts of groups
/// (`calc_default_ag_geometry` of xfsprogs' libxfs/topology.c): 2 to 32, or of the largest size.
fn xfs_copies(view: &View<'_, '_>) -> impl Iterator<Item = u64> {
    const BLOCK: u64 = 4 * KIB;
    const GROUP_BLOCKS_MAX: u64 = (1 << 40) / BLOCK - 1;
    let blocks = view.length() / BLOCK;
    let mut group_blocks = vec![GROUP_BLOCKS_MAX];
    for shift in 1..=5u32 {
        group_blocks.push(blocks.div_ceil(1 << shift));
    }
    let mut starts = BTreeSet::new();
    for blocks in group_blocks {
        starts.insert(blocks * BLOCK);
        starts.insert(2 * blocks * BLOCK);
    }
    starts.into_iter().filter(|at| view.holds(*at, b"XFSB"))
}

/// Windows NT 3.51 kept the copy in the middle of the volume, and ntfsfix still looks there.
fn ntfs_copy(view: &View<'_, '_>) -> Option<u64> {
    let middle = view.length() / SECTOR / 2 * SECTOR;
    if view.holds(middle + 3, b"NTFS    ") {
        Some(middle)
    } else {
        None
    }
}
