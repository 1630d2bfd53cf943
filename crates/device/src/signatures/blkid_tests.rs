//! Every type that the installed libblkid recognises must be one of ours. libblkid is the witness:
//! it names each image of `TYPES` before our own scan does.

use super::image::Image;
use super::scan;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;

const SIZE: u64 = 64 << 20;
const KIB: u64 = 1 << 10;
const SECTOR: u64 = 512;

/// libblkid's type, our name for it, and the pieces of an image: offset and bytes.
type Row = (&'static str, &'static str, &'static [(u64, &'static [u8])]);

/// libblkid names the image so.
const TYPES: &[Row] = &[
    (
        "adaptec_raid_member",
        "Adaptec RAID member",
        &[(SIZE - SECTOR, b"7\xfcM\x1e"), (SIZE - 256, b"DPTM")],
    ),
    (
        "apfs",
        "APFS filesystem",
        &[
            (
                0,
                b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0NXSB\0\x10\0\0",
            ),
            (8, b"\x01\0\0\0\0\0\0\0"),
            (24, b"\x01\0\0\x80"),
        ],
    ),
    ("bfs", "BFS filesystem", &[(0, b"\xce\xfa\xad\x1b")]),
    (
        "BitLocker",
        "BitLocker encrypted volume",
        &[
            (0, b"\xebX\x90-FVE-FS-"),
            (176, b"\0\0\x10\0\0\0\0\0"),
            (1024 * KIB, b"-FVE-FS-\0\x01\x02\0"),
        ],
    ),
    ("btrfs", "btrfs filesystem", &[(64 * KIB + 64, b"_BHRfS_M")]),
    (
        "ceph_bluestore",
        "Ceph BlueStore device",
        &[(0, b"bluestore block device")],
    ),
    ("cramfs", "cramfs filesystem", &[(0, b"E=\xcd(")]),
    (
        "crypto_LUKS",
        "LUKS encrypted volume",
        &[(0, b"LUKS\xba\xbe\0\x01")],
    ),
    (
        "ddf_raid_member",
        "DDF RAID member",
        &[(SIZE - SECTOR, b"\xde\x11\xde\x11")],
    ),
    (
        "DM_integrity",
        "dm-integrity data",
        &[(0, b"integrt\0\x01")],
    ),
    (
        "DM_snapshot_cow",
        "LVM snapshot store",
        &[(0, b"SnAp\x01\0\0\0\x01\0\0\0")],
    ),
    (
        "DM_verity_hash",
        "dm-verity data",
        &[(0, b"verity\0\0\x01\0\0\0\x01\0\0\0")],
    ),
    ("drbd", "DRBD metadata", &[(SIZE - 4036, b"\x83t\x02m")]),
    ("drbdproxy_datalog", "DRBD metadata", &[(0, b"DRBDdlh*")]),
    ("erofs", "EROFS filesystem", &[(KIB, b"\xe2\xe1\xf5\xe0")]),
    ("exfat", "exFAT filesystem", &[(3, b"EXFAT   ")]),
    (
        "exfs",
        "EXFS filesystem",
        &[
            (0, b"EXFS"),
            (4, b"\0\0\x10\0\0\0\0\0\0\0@\0"),
            (80, b"\0\0\0\x01\0\0\x10\0\0\0\0\x04"),
            (102, b"\x02\0\x01\0\0\x10"),
            (120, b"\x0c\x09\x08\x04\x0c\0\0\x19"),
        ],
    ),
    (
        "ext2",
        "ext2/3/4 filesystem or its journal",
        &[(1080, b"S\xef")],
    ),
    (
        "ext3",
        "ext2/3/4 filesystem or its journal",
        &[(1080, b"S\xef"), (1116, b"\x04\0\0\0")],
    ),
    (
        "ext4",
        "ext2/3/4 filesystem or its journal",
        &[(1080, b"S\xef"), (1116, b"\x04\0\0\0"), (1120, b"@\0\0\0")],
    ),
    (
        "ext4dev",
        "ext2/3/4 filesystem or its journal",
        &[
            (1080, b"S\xef"),
            (1116, b"\x04\0\0\0"),
            (1120, b"@\0\0\0"),
            (1376, b"\x04\0\0\0"),
        ],
    ),
    ("f2fs", "F2FS filesystem", &[(KIB, b"\x10 \xf5\xf2")]),
    (
        "gfs",
        "GFS2 filesystem",
        &[
            (64 * KIB, b"\x01\x16\x19p"),
            (64 * KIB + 24, b"\0\0\x05\x1d\0\0\x05y"),
        ],
    ),
    (
        "gfs2",
        "GFS2 filesystem",
        &[
            (64 * KIB, b"\x01\x16\x19p"),
            (64 * KIB + 24, b"\0\0\x07\x09\0\0\x07l"),
        ],
    ),
    (
        "hfs",
        "HFS filesystem",
        &[(KIB, b"BD"), (1044, b"\0\0\x10\0")],
    ),
    (
        "hfsplus",
        "HFS filesystem",
        &[(KIB, b"H+\0\x04"), (1064, b"\0\0\x10\0")],
    ),
    (
        "hpfs",
        "HPFS filesystem",
        &[
            (8 * KIB, b"I\xe8\x95\xf9"),
            (8 * KIB + 512, b"I\x18\x91\xf9"),
        ],
    ),
    (
        "hpt37x_raid_member",
        "HighPoint RAID member",
        &[(4 * KIB + 544, b"\xf0\x16xZ")],
    ),
    (
        "hpt45x_raid_member",
        "HighPoint RAID member",
        &[(SIZE - 11 * SECTOR, b"\xf3\x16xZ")],
    ),
    (
        "iso9660",
        "UDF or ISO 9660 filesystem",
        &[(32 * KIB, b"\x01CD001\x01"), (34 * KIB, b"\xffCD001\x01")],
    ),
    (
        "isw_raid_member",
        "Intel RAID member",
        &[(SIZE - 2 * SECTOR, b"Intel Raid ISM Cfg Sig. 1.0.00")],
    ),
    (
        "jbd",
        "ext2/3/4 filesystem or its journal",
        &[(1080, b"S\xef"), (1120, b"\x08\0\0\0")],
    ),
    (
        "jfs",
        "JFS filesystem",
        &[
            (32 * KIB, b"JFS1\x01\0\0\0"),
            (32 * KIB + 16, b"\0\x10\0\0\x0c\0\x03\0\0\x02\0\0\x09\0"),
        ],
    ),
    (
        "jmicron_raid_member",
        "JMicron RAID member",
        &[(SIZE - SECTOR, b"JM")],
    ),
    (
        "linux_raid_member",
        "Linux software RAID (md) member",
        &[
            (4 * KIB, b"\xfcN+\xa9\x01\0\0\0"),
            (4 * KIB + 144, b"\x08\0\0\0\0\0\0\0"),
        ],
    ),
    (
        "lsi_mega_raid_member",
        "LSI RAID member",
        &[(SIZE - SECTOR, b"$XIDE$")],
    ),
    ("LVM1_member", "LVM physical volume", &[(0, b"HM\x01\0")]),
    (
        "minix",
        "Minix filesystem",
        &[(
            KIB,
            b"@\0\0\x04\x01\0\x01\0\x05\0\0\0\0\x1c\x08\x10\x7f\x13\x01\0",
        )],
    ),
    ("nss", "NetWare filesystem", &[(4 * KIB, b"SPB5")]),
    (
        "ntfs",
        "NTFS filesystem",
        &[
            (0, b"\xebR\x90NTFS    \0\x02\x08"),
            (21, b"\xf8"),
            (
                40,
                b"\xff\xff\x01\0\0\0\0\0\x04\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0",
            ),
            (64, b"\xf6"),
            (68, b"\x01"),
            (16 * KIB, b"FILE"),
            (510, b"U\xaa"),
            (19 * KIB, b"FILE"),
            (32 * KIB, b"FILE"),
        ],
    ),
    (
        "nvidia_raid_member",
        "NVIDIA RAID member",
        &[(SIZE - 2 * SECTOR, b"NVIDIA  ")],
    ),
    ("ocfs", "OCFS2 filesystem", &[(8 * KIB, b"OracleCFS")]),
    ("ocfs2", "OCFS2 filesystem", &[(8 * KIB, b"OCFSV2")]),
    ("oracleasm", "Oracle ASM disk", &[(32, b"ORCLDISK")]),
    (
        "promise_fasttrack_raid_member",
        "Promise RAID member",
        &[(SIZE - 63 * SECTOR, b"Promise Technology, Inc.")],
    ),
    ("ReFS", "ReFS filesystem", &[(0, b"\0\0\0ReFS\0")]),
    (
        "reiser4",
        "reiserfs filesystem",
        &[(64 * KIB, b"ReIsEr4"), (64 * KIB + 18, b"\0\x10")],
    ),
    (
        "reiserfs",
        "reiserfs filesystem",
        &[
            (64 * KIB + 12, b"d\0\0\0"),
            (64 * KIB + 44, b"\0\x10"),
            (64 * KIB + 52, b"ReIsErFs"),
        ],
    ),
    ("romfs", "romfs filesystem", &[(0, b"-rom1fs-")]),
    (
        "silicon_medley_raid_member",
        "Silicon Image RAID member",
        &[(SIZE - 416, b"\0\0\0/"), (SIZE - 194, b"\0\xd1")],
    ),
    (
        "squashfs",
        "squashfs filesystem",
        &[(0, b"hsqs"), (28, b"\x04\0")],
    ),
    (
        "squashfs3",
        "squashfs filesystem",
        &[(0, b"sqsh"), (28, b"\0\x03")],
    ),
    ("stratis", "Stratis pool member", &[(SECTOR, STRATIS)]),
    (
        "swap",
        "swap space",
        &[(3 * KIB + 1014, b"SWAPSPACE2"), (KIB, b"\x01\0\0\0d\0\0\0")],
    ),
    (
        "swsuspend",
        "hibernation image in swap space",
        &[(3 * KIB + 1014, b"S1SUSPEND\0")],
    ),
    ("sysv", "System V filesystem", &[(1016, b" ~\x18\xfd")]),
    ("ubi", "UBI volume", &[(0, b"UBI#\x01")]),
    ("ubifs", "UBIFS filesystem", &[(0, b"1\x18\x10\x06")]),
    ("ufs", "UFS filesystem", &[(9 * KIB + 348, b"T\x19\x01\0")]),
    ("vdo", "VDO volume", &[(0, b"dmvdo001")]),
    (
        "vfat",
        "FAT filesystem",
        &[
            (
                0,
                b"\xeb<\x90mkfs.fat\0\x02\x04\x01\0\x02\0\x02\0\0\xf8\x80\0",
            ),
            (32, b"\0\0\x02\0"),
            (54, b"FAT16   "),
            (510, b"U\xaa"),
        ],
    ),
    (
        "via_raid_member",
        "VIA RAID member",
        &[(SIZE - SECTOR, b"U\xaa\x01")],
    ),
    (
        "VMFS",
        "VMware VMFS filesystem",
        &[(2048 * KIB, b"^\xf1\xab/")],
    ),
    (
        "VMFS_volume_member",
        "VMware VMFS volume",
        &[(1024 * KIB, b"\x0d\xd0\x01\xc0")],
    ),
    ("vxfs", "VxFS filesystem", &[(KIB, b"\xf5\xfc\x01\xa5")]),
    ("xenix", "Xenix filesystem", &[(2 * KIB, b"+UD")]),
    (
        "xfs",
        "XFS filesystem",
        &[
            (0, b"XFSB"),
            (4, b"\0\0\x10\0\0\0\0\0\0\0@\0"),
            (80, b"\0\0\0\x01\0\0\x10\0\0\0\0\x04"),
            (102, b"\x02\0\x01\0\0\x10"),
            (120, b"\x0c\x09\x08\x04\x0c\0\0\x19"),
        ],
    ),
    (
        "xfs_external_log",
        "external log of an XFS filesystem",
        &[
            (0, b"\xfe\xed\xba\xbe\0\0\0\x01\0\0\0\x02\0\0\x02\0"),
            (300, b"\0\0\0\x01"),
        ],
    ),
    ("zfs_member", "ZFS pool member", &ZFS),
    ("zonefs", "zonefs filesystem", &[(0, b"SFOZ")]),
];

/// libblkid also compares a checksum or reads a directory, or knows the type from a later version
/// on (util-linux 2.39 to 2.41). tests/real/formats.rs makes these with their own programs where
/// they are installed.
const TYPES_BY_MAGIC: &[Row] = &[
    (
        "bcache",
        "bcache device",
        &[(
            4 * KIB + 24,
            b"\xc6\x85s\xf6N\x1aE\xca\x82e\xf5\x7fH\xbam\x81",
        )],
    ),
    ("befs", "BeFS filesystem", &[(32, b"1SFB")]),
    (
        "drbdmanage_control_volume",
        "DRBD metadata",
        &[(0, b"$DRBDmgr=q")],
    ),
    (
        "LVM2_member",
        "LVM physical volume",
        &[(512, b"LABELONE\x01\0\0\0\0\0\0\0"), (536, b"LVM2 001")],
    ),
    ("mpool", "mpool volume", &[(0, b"mpoolDev")]),
    ("nilfs2", "NILFS2 filesystem", &[(1030, b"44\xf0\0")]),
    (
        "udf",
        "UDF or ISO 9660 filesystem",
        &[
            (32 * KIB, b"\0BEA01\x01"),
            (34 * KIB, b"\0NSR02\x01"),
            (36 * KIB, b"\0TEA01\x01"),
        ],
    ),
    (
        "bcachefs",
        "bcachefs filesystem",
        &[(
            4 * KIB + 24,
            b"\xc6\x85s\xf6f\xce\x90\xa9\xd9j`\xcf\x80=\xf7\xef",
        )],
    ),
    (
        "scoutfs",
        "scoutfs filesystem",
        &[(64 * KIB + 4, b"\x8bB<\x10")],
    ),
    // Version 2.41 splits the type.
    (
        "scoutfs_meta",
        "scoutfs filesystem",
        &[(64 * KIB + 4, b"\x8bB<\x10")],
    ),
    (
        "scoutfs_data",
        "scoutfs filesystem",
        &[(64 * KIB + 4, b"\x8bB<\x10")],
    ),
    (
        "cs_fvault2",
        "Apple Core Storage volume",
        &[(10, b"\x10\0"), (88, b"CS")],
    ),
];

/// Uberblocks of the first two labels: libblkid wants four of them.
const ZFS: [(u64, &[u8]); 8] = [
    (128 * KIB, b"\x0c\xb1\xba\0\0\0\0\0"),
    (129 * KIB, b"\x0c\xb1\xba\0\0\0\0\0"),
    (130 * KIB, b"\x0c\xb1\xba\0\0\0\0\0"),
    (131 * KIB, b"\x0c\xb1\xba\0\0\0\0\0"),
    (132 * KIB, b"\x0c\xb1\xba\0\0\0\0\0"),
    (133 * KIB, b"\x0c\xb1\xba\0\0\0\0\0"),
    (134 * KIB, b"\x0c\xb1\xba\0\0\0\0\0"),
    (135 * KIB, b"\x0c\xb1\xba\0\0\0\0\0"),
];

/// A static header: checksum, magic, size, identifiers of the pool and of the device.
const STRATIS: &[u8] =
    b"Q<\xa3,!Stra0tis\x86\xff\x02^Arh\0\0\x02\0\0\0\0\0\0\0\0\x000123456789abcdef01234567\
    89abcdeffedcba9876543210fedcba9876543210\0\x08";

/// The names that `blkid -k` prints; `None` where there is no blkid, or one without -k.
fn types_of_libblkid() -> Option<Vec<String>> {
    let output = Command::new("blkid").arg("-k").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let types: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
    (output.status.success() && !types.is_empty()).then_some(types)
}

fn types_of_libblkid_or_skip(test: &str) -> Option<Vec<String>> {
    let types = types_of_libblkid();
    if types.is_none() {
        eprintln!("{test}: skipped, needs blkid -k");
    }
    types
}

#[test]
fn every_type_of_the_installed_libblkid_has_a_row() {
    let test = "every_type_of_the_installed_libblkid_has_a_row";
    let Some(types) = types_of_libblkid_or_skip(test) else {
        return;
    };
    for name in types {
        assert!(
            TYPES
                .iter()
                .chain(TYPES_BY_MAGIC)
                .any(|(known, ..)| *known == name),
            "libblkid recognises '{name}', and the gate perhaps does not: add its magic to the \
             signatures, then a row here"
        );
    }
}

/// Writes the pieces into a file of zeros, and returns our names for it.
fn names_of_image(path: &Path, pieces: &[(u64, &[u8])]) -> Vec<&'static str> {
    let image = File::options()
        .create(true)
        .truncate(true)
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    image.set_len(SIZE).unwrap();
    for (offset, bytes) in pieces {
        image.write_all_at(bytes, *offset).unwrap();
    }
    let read_at = |offset: u64, length: usize| {
        let mut block = vec![0; length.min(SIZE.saturating_sub(offset) as usize)];
        image.read_exact_at(&mut block, offset).unwrap();
        Ok(block)
    };
    let found = scan(&Image::new(&read_at, SIZE), &[]).signatures;
    found.iter().map(|signature| signature.what).collect()
}

#[test]
fn image_that_libblkid_names_is_recognised() {
    let Some(types) = types_of_libblkid_or_skip("image_that_libblkid_names_is_recognised") else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("image");
    for (of_blkid, ours, pieces) in TYPES {
        let names = names_of_image(&path, pieces);
        assert!(names.contains(ours), "{of_blkid}: {names:?}");
        // An older libblkid knows fewer types.
        if types.iter().any(|name| name == of_blkid) {
            let probed = Command::new("blkid")
                .args(["--probe", "--output", "value", "--match-tag", "TYPE"])
                .arg(&path)
                .output()
                .unwrap();
            let named = String::from_utf8(probed.stdout).unwrap();
            assert_eq!(named.trim(), *of_blkid, "what libblkid says of the image");
        }
    }
}

#[test]
fn type_of_libblkid_is_recognised_by_its_magic_alone() {
    let place = tempfile::tempdir().unwrap();
    for (of_blkid, ours, pieces) in TYPES_BY_MAGIC {
        let names = names_of_image(&place.path().join("image"), pieces);
        assert!(names.contains(ours), "{of_blkid}: {names:?}");
    }
}
