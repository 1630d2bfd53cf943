//! What partitioners and mkfs leave on a disk whose first MiB is zeroed, in sparse files; and
//! structures planted by hand where no program makes them here.

use super::super::image::Image;
use super::super::scan_device;
use super::*;
use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;

const GIB: u64 = 1 << 30;

/// What a scan of a disk in a file finds: names and places.
fn found_in(path: &Path) -> Vec<(&'static str, u64)> {
    let file = File::open(path).unwrap();
    let size = file.metadata().unwrap().len();
    let read_at = |offset: u64, length: usize| {
        let mut block = vec![0; length.min(size.saturating_sub(offset) as usize)];
        file.read_exact_at(&mut block, offset).unwrap();
        Ok(block)
    };
    names(&Image::new(&read_at, size))
}

fn names(image: &Image<'_>) -> Vec<(&'static str, u64)> {
    let found = scan_device(image, &[]).signatures;
    found
        .iter()
        .map(|signature| (signature.what, signature.offset))
        .collect()
}

/// A disk of zeros, but for pieces of bytes.
fn found_on(size: u64, pieces: &[(u64, &[u8])]) -> Vec<(&'static str, u64)> {
    let read_at = |offset: u64, length: usize| {
        let mut block = vec![0; length.min(size.saturating_sub(offset) as usize)];
        for (at, bytes) in pieces {
            for (index, byte) in bytes.iter().enumerate() {
                let place = (at + index as u64).checked_sub(offset);
                if let Some(slot) = place.and_then(|place| block.get_mut(place as usize)) {
                    *slot = *byte;
                }
            }
        }
        Ok(block)
    };
    names(&Image::new(&read_at, size))
}

fn has(found: &[(&'static str, u64)], part: &str) -> bool {
    found.iter().any(|(what, _)| what.contains(part))
}

/// A sparse file of this size on which a shell command was run, its first MiB zeroed afterwards;
/// `None` where the program is not installed.
fn beheaded(place: &Path, size: u64, program: &str, arguments: &str) -> Option<std::path::PathBuf> {
    let path = place.join("disk");
    File::create(&path).unwrap().set_len(size).unwrap();
    let command = format!(
        "{program} {}",
        arguments.replace("DISK", path.to_str().unwrap())
    );
    let output = Command::new("sh").args(["-c", &command]).output().unwrap();
    if output.status.code() == Some(127) {
        eprintln!("SKIPPED: {program} is not installed");
        return None;
    }
    assert!(output.status.success(), "{command}: {output:?}");
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(&vec![0; MIB as usize], 0).unwrap();
    Some(path)
}

#[test]
fn filesystem_without_its_first_mib_is_found_by_its_copies() {
    const EXT: &str = "backup superblock of an ext2/3/4";
    const XFS: &str = "second superblock of an XFS";
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    for (size, program, arguments, part) in [
        (4 * GIB, "mkfs.ext4", "-q -F -O bigalloc -C 16384 DISK", EXT),
        (
            20 * GIB,
            "mkfs.ext4",
            "-q -F -O bigalloc -C 65536 DISK",
            EXT,
        ),
        (GIB, "mkfs.ext4", "-q -F -O sparse_super2 DISK", EXT),
        (
            300 * MIB,
            "mkfs.ext4",
            "-q -F -b 2048 -O ^flex_bg DISK",
            EXT,
        ),
        (300 * MIB, "mkfs.ext3", "-q -F -b 1024 DISK", EXT),
        // A partition at 63 sectors, without the groups' descriptors in reach.
        (
            600 * MIB,
            "mkfs.ext4",
            "-q -F -E offset=32256 DISK 500M",
            EXT,
        ),
        (2 * GIB, "mkfs.xfs", "-q -f -d su=64k,sw=4 DISK", XFS),
        (40 * GIB, "mkfs.xfs", "-q -f -d su=256k,sw=10 DISK", XFS),
        (
            3 * GIB + 4096 * 77,
            "mkfs.xfs",
            "-q -f -d agcount=3 DISK",
            XFS,
        ),
        (
            200 * GIB + 12345 * 512,
            "mkfs.xfs",
            "-q -f -d agcount=48 DISK",
            XFS,
        ),
        (300 * GIB, "mkfs.xfs", "-q -f -d agcount=71 DISK", XFS),
        (GIB, "mkfs.xfs", "-q -f -b size=1024 DISK", XFS),
        (5 << 40, "mkfs.xfs", "-q -f -l size=64m DISK", XFS),
        (
            600 * MIB,
            "mkfs.btrfs",
            "-q -f DISK",
            "backup superblock of a btrfs",
        ),
    ] {
        let Some(path) = beheaded(place.path(), size, program, arguments) else {
            continue;
        };
        let found = found_in(&path);
        assert!(has(&found, part), "{program} {arguments}: {found:?}");
    }
}

#[test]
fn filesystem_in_a_partition_is_found_without_its_table() {
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    for (start, program, arguments, part) in [
        (MIB, "mkfs.ext4", "-q -F", "ext2/3/4 filesystem"),
        (4 * MIB, "mkfs.ext4", "-q -F", "ext2/3/4 filesystem"),
        (MIB, "mkfs.xfs", "-q -f", "XFS filesystem"),
        (MIB, "mkfs.vfat", "-F32", "FAT filesystem"),
        (MIB, "mkfs.btrfs", "-q -f", "btrfs filesystem"),
        (4 * MIB, "mkfs.ntfs", "-Q -q -F", "NTFS filesystem"),
        (MIB, "mkswap", "-q", "swap space"),
    ] {
        let make = format!(
            "truncate -s 400M DISK.part && {program} {arguments} DISK.part >/dev/null 2>&1; \
             code=$?; dd if=DISK.part of=DISK bs=1M seek={} conv=notrunc,sparse 2>/dev/null; exit \
             $code",
            start / MIB
        );
        let Some(path) = beheaded(place.path(), 420 * MIB, "", &make) else {
            continue;
        };
        let found = found_in(&path);
        let near = found.iter().find(|(what, _)| what.contains(part));
        let offset = near.unwrap_or_else(|| panic!("{program}: {found:?}")).1;
        assert!(
            (start..start + 128 * KIB).contains(&offset),
            "{program}: {found:?}"
        );
    }
    // At the second track the first MiB holds the beginning: what other tools leave of it.
    let superblock = ext_superblock();
    let found = found_on(GIB, &[(63 * SECTOR_BYTES + KIB, &superblock)]);
    assert!(has(&found, "ext2/3/4 filesystem"), "{found:?}");
}

/// The fields of an ext superblock that are compared, with blocks of 4 KiB.
fn ext_superblock() -> Vec<u8> {
    let mut block = vec![0; 64];
    block[24] = 2;
    block[28] = 2;
    block[32..36].copy_from_slice(&32768u32.to_le_bytes());
    block[40..44].copy_from_slice(&8192u32.to_le_bytes());
    block[56..58].copy_from_slice(b"\x53\xef");
    block
}

#[test]
fn backup_gpt_of_a_grown_disk_is_found_with_and_without_its_header() {
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    for (small, large) in [
        (64 * MIB, 128 * MIB),
        (64 * MIB, 65 * MIB),
        (7 * GIB, 2048 * GIB),
    ] {
        let make = "-q DISK < DISK.table >/dev/null 2>&1";
        std::fs::write(
            place.path().join("disk.table"),
            "label: gpt\n2048,32768,L\n",
        )
        .unwrap();
        let Some(path) = beheaded(place.path(), small, "sfdisk", make) else {
            return;
        };
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(large)
            .unwrap();
        let found = found_in(&path);
        assert_eq!(found, [("backup GPT partition table", small - 512)]);
    }
    // The header names the place of its copy, wherever that is.
    let mut header = vec![0; 92];
    header[..8].copy_from_slice(b"EFI PART");
    let copy = 123_457 * SECTOR_BYTES;
    header[32..40].copy_from_slice(&(copy / SECTOR_BYTES).to_le_bytes());
    let found = found_on(GIB, &[(SECTOR_BYTES, &header), (copy, b"EFI PART")]);
    assert_eq!(
        found,
        [
            ("GPT partition table", SECTOR_BYTES),
            ("backup GPT partition table", copy)
        ]
    );
}

#[test]
fn labels_of_zfs_in_a_partition_are_found() {
    let size = 10 * GIB;
    // `zpool create`: the partition begins at 1 MiB and ends 8 MiB before the disk.
    let end = size - 8 * MIB - MIB;
    let list = b"\x01\x01\0\0\0\0\0\0pool_guid";
    for (place, bytes) in [
        (MIB + 16 * KIB, &list[..]),
        (
            MIB + 256 * KIB + 128 * KIB + 5 * KIB,
            b"\x0c\xb1\xba\0\0\0\0\0",
        ),
        (end - 256 * KIB + 16 * KIB, list),
        (size - 768 * KIB + 16 * KIB, list),
    ] {
        let found = found_on(size, &[(place, bytes)]);
        assert!(
            has(&found, "label of a ZFS pool member"),
            "{place}: {found:?}"
        );
    }
}

#[test]
fn metadata_in_any_sector_of_the_ends_is_found() {
    let size = 3 * GIB + 512;
    for (place, bytes, part) in [
        (60, &b"\x83\x74\x02\x6d"[..], "DRBD"),
        (128 * MIB + 60, b"\x83\x74\x02\x6b", "DRBD"),
        (size - MIB - 4096 + 60 - 512, b"\x83\x74\x02\x6c", "DRBD"),
        (size - 700 * SECTOR_BYTES + 4, b" LVM2 x[5A%r0N*>", "LVM"),
        (6 * SECTOR_BYTES + 0x52, b"FAT32   ", "FAT32"),
        (12 * SECTOR_BYTES + 0x52, b"FAT32   ", "FAT"),
        (size - 2048 * SECTOR_BYTES - 512 + 3, b"NTFS    ", "NTFS"),
        (size - 40 * SECTOR_BYTES, b"EFI PART", "GPT"),
        (size - MIB - 128 * KIB, b"\xfc\x4e\x2b\xa9", "(md)"),
        (0, b"SPACEDB ", "Storage Spaces"),
        (MIB, b"SPACEDB ", "Storage Spaces"),
        (
            0,
            b"\x37\x7f\x06\x82\x00\x2d\xe2\x18",
            "write-ahead log of a SQLite",
        ),
        (
            0,
            b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7",
            "rollback journal of a SQLite",
        ),
    ] {
        let found = found_on(size, &[(place, bytes)]);
        assert!(has(&found, part), "{part} at {place}: {found:?}");
    }
}

#[test]
fn second_metadata_of_lvm_is_found_where_pvcreate_puts_it() {
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    for (size, flags) in [
        (300 * MIB, ""),
        (300 * MIB + 700 * KIB, ""),
        (300 * MIB, "--metadatasize 8m"),
        (300 * MIB, "--dataalignment 4m"),
    ] {
        let make = format!(
            "node=$(losetup --find --show DISK) && pvcreate -qq -ff -y --devices $node \
             --metadatacopies 2 {flags} $node; code=$?; losetup --detach $node; exit $code"
        );
        let loops = rustix::process::geteuid().is_root() && Path::new("/dev/loop-control").exists();
        let has_lvm = Path::new("/usr/sbin/pvcreate").exists();
        if !loops || !has_lvm {
            eprintln!("SKIPPED: second_metadata_of_lvm_is_found_where_pvcreate_puts_it: pvcreate");
            return;
        }
        let path = beheaded(place.path(), size, "", &make).unwrap();
        let found = found_in(&path);
        assert!(
            has(&found, "metadata of an LVM"),
            "{size} {flags}: {found:?}"
        );
    }
}

/// The whole gate looks twice. On a disk of 1 TiB a look takes some 400 reads, and 2048 for the
/// ends of a smaller disk: 20 s at 8 ms each.
#[test]
fn empty_device_costs_a_bounded_number_of_reads_and_bytes() {
    for (size, reads_max, mib_max) in [
        (64 * MIB, 260, 80),
        (100 * GIB, 2900, 300),
        (1 << 40, 2900, 300),
        (1 << 50, 2900, 300),
    ] {
        let (reads, bytes) = (Cell::new(0u64), Cell::new(0u64));
        let read_at = |_: u64, length: usize| {
            reads.set(reads.get() + 1);
            bytes.set(bytes.get() + length as u64);
            Ok(vec![0; length])
        };
        assert_eq!(names(&Image::new(&read_at, size)), []);
        println!("{size}: {} reads, {} MiB", reads.get(), bytes.get() / MIB);
        assert!(
            reads.get() < reads_max && bytes.get() / MIB < mib_max,
            "{size}"
        );
    }
}

#[test]
fn slow_device_is_searched_to_the_end() {
    let place = 7 * GIB - SECTOR_BYTES;
    let reads = Cell::new(0u64);
    let read_at = |offset: u64, length: usize| {
        reads.set(reads.get() + 1);
        // No clock ends it.
        if reads.get() == 1000 {
            std::thread::sleep(std::time::Duration::from_millis(1100));
        }
        let mut bytes = vec![0; length];
        if let Some(at) = place.checked_sub(offset)
            && at + SECTOR_BYTES <= length as u64
        {
            bytes[at as usize..][..8].copy_from_slice(b"EFI PART");
        }
        Ok(bytes)
    };
    let found = names(&Image::new(&read_at, 1 << 41));
    let offsets: Vec<u64> = found.iter().map(|(_, offset)| *offset).collect();
    assert_eq!(offsets, [place]);
}

/// Random bytes are what a run of another program leaves; they must not look like remains.
#[test]
fn random_content_is_no_remains() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut block: Vec<u8> = Vec::new();
    for _ in 0..(16 << 20) / 8 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        block.extend(state.to_le_bytes());
    }
    for disk in 0..4 {
        let read_at = |offset: u64, length: usize| {
            let from = (offset as usize + disk * 20_011) % (8 << 20);
            Ok(block[from..][..length].to_vec())
        };
        let image = Image::new(&read_at, 3 * GIB);
        assert_eq!(remains(&image), [], "{disk}");
    }
}

fn remains(image: &Image<'_>) -> Vec<Signature> {
    find(&image.whole())
}

#[test]
fn every_row_of_remains_is_read() {
    assert!(REMAINS.len() > 20);
    assert!(
        REMAINS
            .iter()
            .all(|magic| magic.text.len() >= SURE_TEXT_BYTES)
    );
}
