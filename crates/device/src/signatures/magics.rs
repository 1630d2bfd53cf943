//! Signatures that are fixed bytes at a fixed offset: one row each. Those that need arithmetic or a
//! second look are in structures.rs.
//!
//! Offsets and bytes come from the formats' headers in Linux and from libblkid (util-linux).
//! libblkid adds conditions that a damaged copy may miss; this file does not. A false alarm costs a
//! `wipefs`, a missed signature costs the data.

use super::image::View;
use super::table::At::Start;
use super::table::{Clearing, FormatMark, Role, Row, Table, end, end_of};
use diskproof_model::units::SECTOR_BYTES as SECTOR;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

const BTRFS: &str = "btrfs filesystem";
const BTRFS_COPY: &str = "backup superblock of a btrfs filesystem";
const LVM: &str = "LVM physical volume";
const LUKS: &str = "LUKS encrypted volume";
const LUKS_COPY: &str = "second header of a LUKS2 encrypted volume";
const REISER: &str = "reiserfs filesystem";
const OCFS: &str = "OCFS2 filesystem";
const HIBERNATION: &str = "hibernation image in swap space";
const SWAP: &str = "swap space";
const UDF: &str = "UDF or ISO 9660 filesystem";
const UDF_COPY: &str = "volume descriptor of a UDF or ISO 9660 filesystem";
const FAT: &str = "FAT filesystem";
const BITLOCKER: &str = "BitLocker encrypted volume";
const BITLOCKER_TO_GO: &str = "BitLocker To Go or FAT volume";
const BCACHEFS: &str = "bcachefs filesystem";
const AFFS: &str = "Amiga filesystem";
const GEOM: &str = "FreeBSD GEOM member";
const SCOUTFS: &str = "scoutfs filesystem";
const VMFS: &str = "VMware VMFS filesystem";
const VMFS_IN_VOLUME: &str = "VMware VMFS filesystem in its volume";
const INTEL_RAID: &str = "Intel RAID member";
const SILICON_IMAGE_RAID: &str = "Silicon Image RAID member";
const HIGHPOINT_RAID: &str = "HighPoint RAID member";
const SOLARIS: &str = "Solaris disk label";
const F2FS_COPY: &str = "second superblock of an F2FS filesystem";
const NTFS_COPY: &str = "second boot sector of an NTFS filesystem";
const EXFAT_COPY: &str = "second boot sector of an exFAT filesystem";
const JFS_COPY: &str = "second superblock of a JFS filesystem";
const CRAMFS_BEHIND_BOOT: &str = "cramfs filesystem behind a boot sector";
const PARTED_LOOP: &str = "disk that parted made a loop device of";
const HAMMER2: &str = "HAMMER2 filesystem";
const HAMMER: &str = "HAMMER filesystem";
const THIN_POOL: &str = "metadata of an LVM thin pool";
const DM_CACHE: &str = "metadata of a dm-cache";
const DM_ERA: &str = "metadata of a dm-era";
const DM_CLONE: &str = "metadata of a dm-clone";
const PERSISTENT_MEMORY: &str = "namespace of persistent memory";
const INTEL_MAGIC: &[u8] = b"Intel Raid ISM Cfg Sig. ";
const BCACHE: &[u8] = b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81";
const BCACHEFS_MAGIC: &[u8] = b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef";
const UNIXWARE: &str = "UnixWare disk label";
/// `d_magic` 0xca5e600d of the label in sector 29 (`struct unixware_disklabel` of Linux'
/// block/partitions/msdos.c).
const UNIXWARE_MAGIC: u64 = 29 * SECTOR + 4;
/// libblkid (util-linux 2.38 to 2.41) expects other bytes, and at another place.
const UNIXWARE_OF_BLKID: u64 = 29_174;
const STRATIS: &[u8] = b"!Stra0tis\x86\xff\x02^\x41rh";
const DRBD: &str = "DRBD metadata";
const MD: &str = "Linux software RAID (md) member";
const MD_MAGIC: &[u8] = b"\xfc\x4e\x2b\xa9";
const MD_MAGIC_BIG: &[u8] = b"\xa9\x2b\x4e\xfc";

/// Signatures that `wipefs -a` removes.
const MAGICS: &[Row] = &[
    // filesystems
    ("XFS filesystem", Start(0), b"XFSB"),
    ("EXFS filesystem", Start(0), b"EXFS"),
    (BTRFS, Start(64 * KIB + 64), b"_BHRfS_M"),
    (BTRFS, Start(64), b"_BHRfS_M"),
    ("F2FS filesystem", Start(KIB), b"\x10\x20\xf5\xf2"),
    ("NTFS filesystem", Start(3), b"NTFS    "),
    ("exFAT filesystem", Start(3), b"EXFAT   "),
    ("ReFS filesystem", Start(0), b"\0\0\0ReFS\0"),
    (FAT, Start(0x52), b"MSWIN"),
    (FAT, Start(0x52), b"FAT32   "),
    (FAT, Start(0x36), b"MSDOS"),
    (FAT, Start(0x36), b"FAT16   "),
    (FAT, Start(0x36), b"FAT12   "),
    (FAT, Start(0x36), b"FAT     "),
    (UDF, Start(32 * KIB + 1), b"BEA01"),
    (UDF, Start(32 * KIB + 1), b"BOOT2"),
    (UDF, Start(32 * KIB + 1), b"CD001"),
    (UDF, Start(32 * KIB + 9), b"CDROM"),
    (UDF, Start(32 * KIB + 1), b"CDW02"),
    (UDF, Start(32 * KIB + 1), b"NSR02"),
    (UDF, Start(32 * KIB + 1), b"NSR03"),
    (UDF, Start(32 * KIB + 1), b"TEA01"),
    ("JFS filesystem", Start(32 * KIB), b"JFS1"),
    (REISER, Start(8 * KIB + 0x34), b"ReIsErFs"),
    (REISER, Start(8 * KIB + 20), b"ReIsErFs"),
    (REISER, Start(64 * KIB + 0x34), b"ReIsErFs"),
    (REISER, Start(64 * KIB + 0x34), b"ReIsEr2Fs"),
    (REISER, Start(64 * KIB + 0x34), b"ReIsEr3Fs"),
    (REISER, Start(64 * KIB), b"ReIsEr4"),
    ("APFS filesystem", Start(32), b"NXSB"),
    ("BeFS filesystem", Start(0x20), b"BFS1"),
    ("BeFS filesystem", Start(0x20), b"1SFB"),
    ("BeFS filesystem", Start(0x220), b"BFS1"),
    ("BeFS filesystem", Start(0x220), b"1SFB"),
    ("BFS filesystem", Start(0), b"\xce\xfa\xad\x1b"),
    ("cramfs filesystem", Start(0), b"\x45\x3d\xcd\x28"),
    ("cramfs filesystem", Start(0), b"\x28\xcd\x3d\x45"),
    ("squashfs filesystem", Start(0), b"hsqs"),
    ("squashfs filesystem", Start(0), b"sqsh"),
    ("EROFS filesystem", Start(KIB), b"\xe2\xe1\xf5\xe0"),
    ("romfs filesystem", Start(0), b"-rom1fs-"),
    ("zonefs filesystem", Start(0), b"SFOZ"),
    ("GFS2 filesystem", Start(64 * KIB), b"\x01\x16\x19\x70"),
    (OCFS, Start(8 * KIB), b"OracleCFS"),
    (OCFS, Start(KIB), b"OCFSV2"),
    (OCFS, Start(2 * KIB), b"OCFSV2"),
    (OCFS, Start(4 * KIB), b"OCFSV2"),
    (OCFS, Start(8 * KIB), b"OCFSV2"),
    ("HPFS filesystem", Start(8 * KIB), b"\x49\xe8\x95\xf9"),
    ("VxFS filesystem", Start(KIB), b"\xf5\xfc\x01\xa5"),
    ("VxFS filesystem", Start(8 * KIB), b"\xa5\x01\xfc\xf5"),
    (SCOUTFS, Start(64 * KIB + 4), b"\x8b\x42\x3c\x10"),
    ("UBIFS filesystem", Start(0), b"\x31\x18\x10\x06"),
    ("UBI volume", Start(0), b"UBI#"),
    ("Xenix filesystem", Start(2 * KIB), b"\x2b\x55\x44"),
    ("Xenix filesystem", Start(2 * KIB), b"\x44\x55\x2b"),
    ("NetWare filesystem", Start(4 * KIB), b"SPB5"),
    (BCACHEFS, Start(4 * KIB + 24), BCACHEFS_MAGIC),
    (BCACHEFS, Start(2 * MIB + 24), BCACHEFS_MAGIC),
    (BCACHEFS, end(MIB, 24), BCACHEFS_MAGIC),
    ("mpool volume", Start(0), b"mpoolDev"),
    // swap
    (HIBERNATION, Start(0), b"\xed\xc3\x02\xe9\x98\x56\xe5\x0c"),
    // volume managers, encryption, caches, clusters
    (LVM, Start(0x18), b"LVM2 001"),
    (LVM, Start(0x218), b"LVM2 001"),
    (LVM, Start(0x418), b"LVM2 001"),
    (LVM, Start(0x618), b"LVM2 001"),
    (LVM, Start(0), b"LABELONE"),
    (LVM, Start(0x200), b"LABELONE"),
    (LVM, Start(0x400), b"LABELONE"),
    (LVM, Start(0x600), b"LABELONE"),
    (LVM, Start(0), b"HM\x01\0"),
    (LVM, Start(0), b"HM\x02\0"),
    ("LVM snapshot store", Start(0), b"SnAp"),
    ("dm-verity data", Start(0), b"verity\0\0"),
    ("dm-integrity data", Start(0), b"integrt\0"),
    ("VDO volume", Start(0), b"dmvdo001"),
    ("Stratis pool member", Start(SECTOR + 4), STRATIS),
    ("Stratis pool member", Start(9 * SECTOR + 4), STRATIS),
    (LUKS, Start(0), b"LUKS\xba\xbe"),
    (BITLOCKER, Start(3), b"-FVE-FS-"),
    (BITLOCKER_TO_GO, Start(0), b"\xeb\x58\x90MSWIN4.1"),
    ("bcache device", Start(4 * KIB + 24), BCACHE),
    (DRBD, end_of(4 * KIB, 4 * KIB, 60), b"\x83\x74\x02\x6b"),
    (DRBD, end_of(4 * KIB, 4 * KIB, 60), b"\x83\x74\x02\x6c"),
    (DRBD, end_of(4 * KIB, 4 * KIB, 60), b"\x83\x74\x02\x6d"),
    (DRBD, Start(0), b"$DRBDmgr=q"),
    (DRBD, Start(0), b"DRBDdlh*"),
    ("VMware VMFS volume", Start(MIB), b"\x0d\xd0\x01\xc0"),
    (VMFS, Start(2 * MIB), b"\x5e\xf1\xab\x2f"),
    // Its place behind the header of the volume: `vmfs_vol_read` of vmfs-tools adds 17 MiB.
    (VMFS_IN_VOLUME, Start(19 * MIB), b"\x5e\xf1\xab\x2f"),
    ("Ceph BlueStore device", Start(0), b"bluestore block device"),
    ("Oracle ASM disk", Start(32), b"ORCLDISK"),
    // software and firmware RAID
    (MD, Start(0), MD_MAGIC),
    (MD, Start(0), MD_MAGIC_BIG),
    (MD, Start(4 * KIB), MD_MAGIC),
    (MD, Start(4 * KIB), MD_MAGIC_BIG),
    (MD, end_of(4 * KIB, 8 * KIB, 0), MD_MAGIC),
    (MD, end_of(4 * KIB, 8 * KIB, 0), MD_MAGIC_BIG),
    (MD, end_of(64 * KIB, 64 * KIB, 0), MD_MAGIC),
    (MD, end_of(64 * KIB, 64 * KIB, 0), MD_MAGIC_BIG),
    ("DDF RAID member", end(SECTOR, 0), b"\xde\x11\xde\x11"),
    ("DDF RAID member", end(257 * SECTOR, 0), b"\xde\x11\xde\x11"),
    ("DDF RAID member", end(SECTOR, 0), b"\x11\xde\x11\xde"),
    ("DDF RAID member", end(257 * SECTOR, 0), b"\x11\xde\x11\xde"),
    (INTEL_RAID, end(2 * SECTOR, 0), INTEL_MAGIC),
    (INTEL_RAID, end_of(4 * KIB, 8 * KIB, 0), INTEL_MAGIC),
    ("LSI RAID member", end(SECTOR, 0), b"$XIDE$"),
    ("NVIDIA RAID member", end(2 * SECTOR, 0), b"NVIDIA  "),
    (SILICON_IMAGE_RAID, end(SECTOR, 0x60), b"\0\0\0\x2f"),
    (HIGHPOINT_RAID, Start(9 * SECTOR + 32), b"\xf0\x16\x78\x5a"),
    (HIGHPOINT_RAID, Start(9 * SECTOR + 32), b"\xfd\x16\x78\x5a"),
    (HIGHPOINT_RAID, end(11 * SECTOR, 0), b"\xf3\x16\x78\x5a"),
    (HIGHPOINT_RAID, end(11 * SECTOR, 0), b"\xfd\x16\x78\x5a"),
    ("Adaptec RAID member", end(SECTOR, 0), b"\x37\xfc\x4d\x1e"),
];

/// Partition tables that need no second look, and that `wipefs -a` removes.
const TABLES: &[Row] = &[
    ("BSD disk label", Start(SECTOR), b"\x57\x45\x56\x82"),
    ("BSD disk label", Start(64), b"\x57\x45\x56\x82"),
    ("BSD disk label", Start(128), b"\x57\x45\x56\x82"),
    ("SGI disk label", Start(0), b"\x0b\xe5\xa9\x41"),
    ("AIX disk label", Start(0), b"\xc9\xc2\xd4\xc1"),
    ("AIX disk label", Start(0), b"_LVM"),
    (SOLARIS, Start(SECTOR + 12), b"\xee\xde\x0d\x60"),
    (UNIXWARE, Start(UNIXWARE_MAGIC), b"\x0d\x60\x5e\xca"),
    (UNIXWARE, Start(UNIXWARE_MAGIC), b"\xca\x5e\x60\x0d"),
    (UNIXWARE, Start(UNIXWARE_MAGIC), b"\x0d\x60\xe5\xca"),
    (UNIXWARE, Start(UNIXWARE_OF_BLKID), b"\x0d\x60\xe5\xca"),
    ("Ultrix disk label", Start(16384 - 72), b"\x57\x29\x03\0"),
];

/// Partition tables that `wipefs -a` leaves.
const TABLES_LEFT_BY_WIPEFS: &[Row] = &[
    ("DASD volume label", Start(4 * KIB), b"\xd3\xd5\xe7\xf1"),
    ("DASD volume label", Start(4 * KIB), b"\xc3\xd4\xe2\xf1"),
    ("DASD volume label", Start(8 * KIB), b"\xd3\xd5\xe7\xf1"),
    ("DASD volume label", Start(8 * KIB), b"\xc3\xd4\xe2\xf1"),
    ("DASD volume label", Start(8 * KIB + 4), b"\xe5\xd6\xd3\xf1"),
    ("Windows dynamic disk", Start(6 * SECTOR), b"PRIVHEAD"),
    ("Windows dynamic disk", end(SECTOR, 0), b"PRIVHEAD"),
    ("System V/68 disk label", Start(248), b"MOTOROLA"),
];

/// Signatures that `wipefs` leaves, because libblkid knows only the first copy, or none.
const LEFT_BY_WIPEFS: &[Row] = &[
    (BTRFS_COPY, Start(64 * MIB + 64), b"_BHRfS_M"),
    (BTRFS_COPY, Start(256 * GIB + 64), b"_BHRfS_M"),
    (BTRFS_COPY, Start(1024 * TIB + 64), b"_BHRfS_M"),
    (F2FS_COPY, Start(5 * KIB), b"\x10\x20\xf5\xf2"),
    (NTFS_COPY, end(SECTOR, 3), b"NTFS    "),
    (EXFAT_COPY, Start(12 * SECTOR + 3), b"EXFAT   "),
    (EXFAT_COPY, Start(12 * 4 * KIB + 3), b"EXFAT   "),
    (UDF_COPY, Start(34 * KIB + 1), b"CD001"),
    (UDF_COPY, Start(34 * KIB + 1), b"NSR02"),
    (UDF_COPY, Start(34 * KIB + 1), b"NSR03"),
    (UDF_COPY, Start(36 * KIB + 1), b"NSR02"),
    (UDF_COPY, Start(36 * KIB + 1), b"NSR03"),
    (JFS_COPY, Start(60 * KIB), b"JFS1"),
    (CRAMFS_BEHIND_BOOT, Start(512), b"\x45\x3d\xcd\x28"),
    (LUKS_COPY, Start(0x4000), b"SKUL\xba\xbe"),
    (LUKS_COPY, Start(0x8000), b"SKUL\xba\xbe"),
    (LUKS_COPY, Start(0x10000), b"SKUL\xba\xbe"),
    (LUKS_COPY, Start(0x20000), b"SKUL\xba\xbe"),
    (LUKS_COPY, Start(0x40000), b"SKUL\xba\xbe"),
    (LUKS_COPY, Start(0x80000), b"SKUL\xba\xbe"),
    (LUKS_COPY, Start(0x100000), b"SKUL\xba\xbe"),
    (LUKS_COPY, Start(0x200000), b"SKUL\xba\xbe"),
    (LUKS_COPY, Start(0x400000), b"SKUL\xba\xbe"),
    (PARTED_LOOP, Start(0), b"GNU Parted Loopback 0"),
    ("realtime device of an XFS filesystem", Start(0), b"Frog"),
    (HAMMER2, Start(0), b"\x11\x20\x17\x05\x32\x4d\x41\x48"),
    (HAMMER, Start(0), b"\x31\x30\x52\xc5\x4d\x4d\x41\xc8"),
    ("JFFS2 filesystem", Start(0), b"\x85\x19\x01\xe0"),
    ("JFFS2 filesystem", Start(0), b"\x85\x19\x02\xe0"),
    ("JFFS2 filesystem", Start(0), b"\x85\x19\x03\x20"),
    ("JFFS2 filesystem", Start(0), b"\x19\x85\xe0\x01"),
    ("JFFS2 filesystem", Start(0), b"\x19\x85\xe0\x02"),
    ("JFFS2 filesystem", Start(0), b"\x19\x85\x20\x03"),
    ("EFS filesystem", Start(SECTOR + 28), b"\0\x07\x29\x59"),
    ("EFS filesystem", Start(SECTOR + 28), b"\0\x07\x29\x5a"),
    ("QNX6 filesystem", Start(8 * KIB), b"\x22\x11\x19\x68"),
    ("QNX6 filesystem", Start(8 * KIB), b"\x68\x19\x11\x22"),
    (AFFS, Start(0), b"DOS\0"),
    (AFFS, Start(0), b"DOS\x01"),
    (AFFS, Start(0), b"DOS\x02"),
    (AFFS, Start(0), b"DOS\x03"),
    (AFFS, Start(0), b"DOS\x04"),
    (AFFS, Start(0), b"DOS\x05"),
    (AFFS, Start(0), b"DOS\x06"),
    (AFFS, Start(0), b"DOS\x07"),
    ("HP-UX LVM physical volume", Start(8 * KIB), b"LVMREC01"),
    ("OpenBSD softraid member", Start(8 * KIB), b"MArcCRAM"),
    (GEOM, end(SECTOR, 0), b"GEOM::"),
    (GEOM, end_of(4 * KIB, 4 * KIB, 0), b"GEOM::"),
    // Device mapper's own superblocks (drivers/md of Linux): csum, flags, block number and uuid
    // stand before the first four.
    (THIN_POOL, Start(32), b"\xba\x52\x9c\x01\0\0\0\0"),
    (DM_CACHE, Start(32), b"\x03\xc4\x18\0\0\0\0\0"),
    (DM_ERA, Start(32), b"\x7b\x07\xc1\x7e\0\0\0\0"),
    (DM_CLONE, Start(32), b"\x64\x7f\xf2\x8a\0\0\0\0"),
    ("dm-writecache", Start(0), b"\x21\x93\x48\x23"),
    ("metadata of a dm-raid", Start(0), b"DmRd"),
    ("log of a dm-mirror", Start(0), b"rRiM"),
    ("dm-zoned disk", Start(0), b"DBZD"),
    (PERSISTENT_MEMORY, Start(4 * KIB), b"NVDIMM_PFN_INFO"),
    (PERSISTENT_MEMORY, Start(4 * KIB), b"NVDIMM_DAX_INFO"),
    (PERSISTENT_MEMORY, Start(0), b"BTT_ARENA_INFO\0"),
    (PERSISTENT_MEMORY, Start(4 * KIB), b"BTT_ARENA_INFO\0"),
];

/// Every table of this file.
pub(super) const TABLES_OF_MAGICS: [Table; 4] = [
    Table::new(MAGICS, Clearing::Wipefs, Role::Content),
    Table::new(LEFT_BY_WIPEFS, Clearing::Zeros, Role::Content),
    Table::new(TABLES, Clearing::Wipefs, Role::PartitionTable),
    Table::new(TABLES_LEFT_BY_WIPEFS, Clearing::Zeros, Role::PartitionTable),
];

/// Offsets, from the end, at which Promise controllers keep their metadata, in sectors.
const PROMISE_SECTORS: [u64; 13] = [
    63, 255, 256, 16, 399, 591, 675, 735, 911, 974, 991, 951, 3087,
];
const PROMISE: &str = "Promise RAID member";
const PROMISE_MAGIC: &[u8] = b"Promise Technology, Inc.";
/// Page sizes that Linux has had.
const PAGE_BYTES: [u64; 5] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];
/// Texts in the last ten bytes of the first page.
const SWAP_TEXTS: [(&str, &[u8]); 6] = [
    (SWAP, b"SWAPSPACE2"),
    (SWAP, b"SWAP-SPACE"),
    (HIBERNATION, b"S1SUSPEND"),
    (HIBERNATION, b"S2SUSPEND"),
    (HIBERNATION, b"ULSUSPEND"),
    (HIBERNATION, b"LINHIB0001"),
];

/// Signatures at several possible offsets: swap at the end of the first page, whatever its size,
/// and the metadata of Promise controllers.
pub(super) fn find(view: &View<'_, '_>) -> Vec<FormatMark> {
    let promise = PROMISE_SECTORS.iter().filter_map(|sectors| {
        let sector = (view.length() / SECTOR).checked_sub(*sectors)?;
        Some((PROMISE, sector * SECTOR, PROMISE_MAGIC))
    });
    swap_marks()
        .chain(promise)
        .filter(|(_, offset, text)| view.holds(*offset, text))
        .map(|(what, at, _)| FormatMark::new(what, at, Clearing::Wipefs, Role::Content))
        .collect()
}

/// Every text of swap space with its place.
pub(super) fn swap_marks() -> impl Iterator<Item = (&'static str, u64, &'static [u8])> {
    let on_page = |page: u64| SWAP_TEXTS.map(|(what, text)| (what, page - 10, text));
    PAGE_BYTES.into_iter().flat_map(on_page)
}
