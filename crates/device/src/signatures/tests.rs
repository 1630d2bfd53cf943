//! Signatures planted by hand, in memory as large as the largest disk. What real programs write
//! is tested on real devices (tests/real/formats.rs).

use super::*;
use proptest::prelude::*;
use rustix::io::Errno;
use std::collections::BTreeMap;

/// A disk of zeros, but for what was planted.
#[derive(Default)]
struct Disk {
    size: u64,
    bytes: BTreeMap<u64, u8>,
}

impl Disk {
    fn new(size: u64) -> Self {
        Self {
            size,
            bytes: BTreeMap::new(),
        }
    }

    fn plant(mut self, offset: u64, bytes: &[u8]) -> Self {
        self.bytes.extend(
            bytes
                .iter()
                .enumerate()
                .map(|(index, byte)| (offset + index as u64, *byte)),
        );
        self
    }

    fn scan_with(&self, known: &[Slice]) -> ScanResult {
        scan(
            &Image::new(&|offset, length| Ok(self.read(offset, length)), self.size),
            known,
        )
    }

    fn scan_device_with(&self, known: &[Slice]) -> ScanResult {
        scan_device(
            &Image::new(&|offset, length| Ok(self.read(offset, length)), self.size),
            known,
        )
    }

    fn read(&self, offset: u64, length: usize) -> Vec<u8> {
        let mut block = vec![0; length.min(self.size.saturating_sub(offset) as usize)];
        for (at, byte) in self.bytes.range(offset..offset + block.len() as u64) {
            block[(at - offset) as usize] = *byte;
        }
        block
    }

    /// Names and places, those in partitions with their number.
    fn found(&self) -> Vec<(&'static str, u64, Option<u32>)> {
        let number = |slice: Option<Slice>| match slice?.name {
            SliceName::Number(number) => Some(number),
            SliceName::Kernel(_) => Some(0),
        };
        self.scan_with(&[])
            .signatures
            .into_iter()
            .map(|s| (s.what, s.offset, number(s.slice)))
            .collect()
    }
}

const MIB: u64 = 1 << 20;

#[test]
fn an_empty_disk_holds_nothing_and_costs_few_reads() {
    for size in [MIB, 100 * MIB, (100 * MIB) + 512, 1 << 50] {
        let reads = std::cell::Cell::new(0u32);
        let read_at = |_: u64, length: usize| {
            reads.set(reads.get() + 1);
            Ok(vec![0; length])
        };
        assert_eq!(
            scan(&Image::new(&read_at, size), &[]),
            ScanResult::default(),
            "{size}"
        );
        assert!(reads.get() < 64, "{}", reads.get());
    }
}

#[test]
fn every_text_of_the_tables_is_found_where_it_stands() {
    for size in [2 << 50, (2 << 50) + 3 * 512] {
        for (what, offset, text) in MAGICS.iter().flat_map(|magic| magic.planted(size)) {
            let found = Disk::new(size).plant(offset, text).found();
            assert!(
                found.iter().any(|(name, ..)| *name == what),
                "{what} at {offset}: {found:?}"
            );
        }
    }
}

#[test]
fn ext_copy_without_group_number_is_found() {
    // Revision 0 with blocks of 1 KiB: the copy of group 1 stands in block 8193.
    let copy = 8 * MIB + 1024;
    let found = Disk::new(64 * MIB).plant(copy + 56, b"\x53\xef").found();
    assert_eq!(
        found,
        [("backup superblock of an ext2/3/4 filesystem", copy, None)]
    );
}

const NUMBERED_SIZE: u64 = 256 * MIB + 512;

fn disk() -> Disk {
    Disk::new(NUMBERED_SIZE)
}

fn is_found(what: &str, disk: Disk) -> bool {
    disk.found().iter().any(|(name, ..)| name.contains(what))
}

#[test]
fn filesystem_magic_is_found_and_its_likeness_is_not() {
    assert!(is_found("ext2/3/4", disk().plant(1080, &[0x53, 0xef])));
    assert!(is_found(
        "NILFS2",
        disk().plant(1030, &[0x34, 0x34, 0xf0, 0x00])
    ));
    assert!(is_found(
        "NILFS2",
        disk().plant(
            (NUMBERED_SIZE / 512 - 8) * 512 + 6,
            &[0x34, 0x34, 0xf0, 0x00]
        )
    ));
    assert!(!is_found(
        "NILFS2",
        disk().plant(1030, &[0x34, 0x34, 0xff, 0xff])
    ));
    assert!(
        is_found("HFS", disk().plant(1024, b"H+\0\x04"))
            && !is_found("HFS", disk().plant(1024, b"H+\x01\x04"))
    );
    assert!(
        is_found("Minix", disk().plant(1040, &[0x7f, 0x13, 1, 0]))
            && is_found("Minix", disk().plant(1040, &[0x24, 0x78, 0, 1]))
    );
    assert!(!is_found(
        "Minix",
        disk().plant(1040, &[0x7f, 0x13, 0xff, 0xff])
    ));
    assert!(is_found(
        "UFS",
        disk().plant((64 << 10) + 1372, &0x1954_0119u32.to_be_bytes())
    ));
    assert!(is_found(
        "System V",
        disk().plant(9 * 1024 + 1016, &0xfd18_7e20u32.to_le_bytes())
    ));
}

#[test]
fn volume_and_table_magic_is_found_and_its_likeness_is_not() {
    assert!(is_found(
        "external log",
        disk().plant(40 * 512, &[0xfe, 0xed, 0xba, 0xbe, 0, 0, 0, 1, 0, 0, 0, 2])
    ));
    assert!(is_found("Oracle ASM", disk().plant(0, &[1, 0x82, 1, 1])));
    assert!(
        is_found("Amiga", disk().plant(15 * 512, b"RDSK"))
            && !is_found("Amiga", disk().plant(16 * 512, b"RDSK"))
    );
    let sectors = ((NUMBERED_SIZE / 512) as u32).to_be_bytes();
    assert!(
        is_found("Atari", disk().plant(0x1c2, &sectors))
            && !is_found("Atari", disk().plant(0x1c2, &[0, 0, 1, 0]))
    );
    assert!(is_found(
        "Atari",
        disk().plant(0x1c6, b"\x01GEM\0\0\0\x02\0\0\x10\0")
    ));
}

#[test]
fn zfs_label_is_found_at_all_four_places() {
    let aligned = NUMBERED_SIZE / (256 << 10) * (256 << 10);
    for label in [0, 256 << 10, aligned - (512 << 10), aligned - (256 << 10)] {
        for magic in [0x00ba_b10cu64.to_le_bytes(), 0x00ba_b10cu64.to_be_bytes()] {
            assert!(
                is_found("ZFS", disk().plant(label + (128 << 10) + 77 * 1024, &magic)),
                "{label}"
            );
        }
        assert!(
            is_found(
                "ZFS",
                disk()
                    .plant(label + (16 << 10), b"\x01\x01")
                    .plant(label + (16 << 10) + 60, b"pool_guid")
            ),
            "{label}"
        );
    }
}

#[test]
fn copies_are_one_signature_where_one_command_removes_them() {
    let aligned = NUMBERED_SIZE / (256 << 10) * (256 << 10);
    let mut pool = disk();
    for label in [0, 256 << 10, aligned - (512 << 10), aligned - (256 << 10)] {
        pool = pool.plant(label + (128 << 10), &0x00ba_b10cu64.to_le_bytes());
    }
    let labels = pool.found();
    assert_eq!(labels.len(), 1, "{labels:?}");

    // Each copy that no tool knows has to be overwritten by its own command.
    let headers = disk()
        .plant(0x4000, b"SKUL\xba\xbe")
        .plant(0x8000, b"SKUL\xba\xbe");
    let offsets: Vec<u64> = headers
        .scan_with(&[])
        .signatures
        .iter()
        .map(|signature| signature.offset)
        .collect();
    assert_eq!(offsets, [0x4000, 0x8000]);
}

#[test]
fn partition_that_begins_with_the_disk_adds_nothing() {
    let slice = Slice {
        name: SliceName::Kernel("sda1".into()),
        start: 0,
        length: 8 * MIB,
    };
    let slices = std::slice::from_ref(&slice);
    let signed = Disk::new(64 * MIB).plant(0, b"XFSB");
    assert_eq!(signed.scan_with(slices).signatures.len(), 1);

    let foreign = Disk::new(64 * MIB).plant(4096, b"k");
    let found = foreign.scan_device_with(slices);
    let offsets: Vec<u64> = found.unknown.iter().map(|end| end.offset).collect();
    assert_eq!(offsets, [4096]);
}

#[test]
fn data_beside_a_signature_remains_after_it() {
    let signed = Disk::new(64 * MIB).plant(0, b"XFSB");
    assert!(!signed.scan_device_with(&[]).has_remains);
    for offset in [512, MIB - 1, 64 * MIB - 1] {
        let disk = Disk::new(64 * MIB).plant(0, b"XFSB").plant(offset, b"k");
        let found = disk.scan_device_with(&[]);
        assert!(found.has_remains, "{offset}");
        assert_eq!(found.unknown, [], "the signature names the disk");
    }
    let beyond = Disk::new(64 * MIB).plant(0, b"XFSB").plant(MIB, b"k");
    assert!(!beyond.scan_device_with(&[]).has_remains);
}

#[test]
fn pages_of_postgresql_are_known() {
    let page = |size_and_version: u16, lower: u16, upper: u16, special: u16| {
        let mut page = vec![0; 24];
        page[12..20].copy_from_slice(
            &[lower, upper, special, size_and_version]
                .map(u16::to_le_bytes)
                .concat(),
        );
        Disk::new(64 * MIB).plant(0, &page).found()
    };
    assert_eq!(
        page(8192 | 4, 28, 8000, 8192),
        [("PostgreSQL data pages", 0, None)]
    );
    assert_eq!(page(32768 | 4, 28, 8000, 32768).len(), 1);
    assert!(
        page(8192 | 9, 28, 8000, 8192).is_empty() && page(8192 | 4, 8001, 8000, 8192).is_empty()
    );
    let wal = |magic: u16, info: u16, timeline: u32, address: u64| {
        let header = [
            &magic.to_le_bytes()[..],
            &info.to_le_bytes(),
            &timeline.to_le_bytes(),
            &address.to_le_bytes(),
        ]
        .concat();
        Disk::new(64 * MIB).plant(0, &header).found()
    };
    for magic in [0xd05e, 0xd097, 0xd116, 0xd118] {
        assert_eq!(
            wal(magic, 2, 1, 0x100_0000),
            [("PostgreSQL write-ahead log", 0, None)]
        );
    }
    assert!(
        wal(0xd116, 2, 1, 0x100_0001).is_empty()
            && wal(0xd116, 0xff, 1, 0).is_empty()
            && wal(0xd116, 2, 0, 0).is_empty()
    );
}

fn mbr_entry(kind: u8, first: u32, sectors: u32) -> Vec<u8> {
    [
        &[0, 0, 0, 0, kind, 0, 0, 0][..],
        &first.to_le_bytes(),
        &sectors.to_le_bytes(),
    ]
    .concat()
}

#[test]
fn partitions_that_the_kernel_has_not_read_are_looked_into() {
    let ext = |start: u64| (start + 1080, [0x53, 0xef]);
    let mut disk = Disk::new(64 * MIB)
        .plant(510, &[0x55, 0xaa])
        .plant(446, &mbr_entry(0x83, 2048, 4096));
    // The extended partition at 8 MiB, with two logical ones.
    disk = disk.plant(462, &mbr_entry(0x05, 16384, 65536));
    disk = disk
        .plant((8 << 20) + 510, &[0x55, 0xaa])
        .plant((8 << 20) + 446, &mbr_entry(0x83, 2048, 4096));
    disk = disk.plant((8 << 20) + 462, &mbr_entry(0x05, 8192, 8192));
    disk = disk
        .plant((12 << 20) + 510, &[0x55, 0xaa])
        .plant((12 << 20) + 446, &mbr_entry(0x83, 2048, 4096));
    for start in [1 << 20, 9 << 20, 13 << 20] {
        let (at, text) = ext(start);
        disk = disk.plant(at, &text);
    }
    let name = "ext2/3/4 filesystem or its journal";
    let expected = [
        ("MBR partition table or boot sector", 510, None),
        (name, (1 << 20) + 1080, Some(1)),
        (name, (9 << 20) + 1080, Some(5)),
        (name, (13 << 20) + 1080, Some(6)),
    ];
    // Sectors of 4 KiB would put the first one at 8 MiB, where a table stands: that is looked at
    // too.
    assert_eq!(disk.found()[..4], expected);
}

#[test]
fn a_backup_gpt_alone_tells_its_partitions() {
    for sector in [512u64, 4096] {
        let size = 64 * MIB;
        let (header, list) = (size - sector, size - 40 * sector);
        let mut head = vec![0; 92];
        head[..8].copy_from_slice(b"EFI PART");
        head[72..80].copy_from_slice(&(list / sector).to_le_bytes());
        head[80..88].copy_from_slice(&[128u32, 128].map(u32::to_le_bytes).concat());
        let mut entry = vec![7; 16];
        entry.extend([0; 16]);
        entry.extend(
            [MIB / sector, 8 * MIB / sector - 1]
                .map(u64::to_le_bytes)
                .concat(),
        );
        let disk = Disk::new(size)
            .plant(header, &head)
            .plant(list, &entry)
            .plant(MIB, b"XFSB");
        assert_eq!(
            disk.found(),
            [
                ("backup GPT partition table", header, None),
                ("XFS filesystem", MIB, Some(1))
            ],
            "{sector}"
        );
    }
}

#[test]
fn partitions_of_the_kernel_are_looked_into_at_both_ends() {
    let slice = Slice {
        name: SliceName::Kernel("sda1".into()),
        start: 4 * MIB,
        length: 8 * MIB,
    };
    let disk = Disk::new(64 * MIB).plant(12 * MIB - (64 << 10), b"\xfc\x4e\x2b\xa9");
    let found = disk.scan_with(std::slice::from_ref(&slice));
    assert_eq!(found.signatures.len(), 1);
    assert_eq!(
        (
            found.signatures[0].offset,
            found.signatures[0].slice.as_ref()
        ),
        (12 * MIB - (64 << 10), Some(&slice))
    );
}

#[test]
fn unreadable_region_is_reported() {
    for bad in [0, 16 * MIB - (64 << 10)] {
        let read_at = |offset: u64, length: usize| {
            if offset == bad {
                Err(Errno::IO)
            } else {
                Ok(vec![0; length])
            }
        };
        let found = scan(&Image::new(&read_at, 16 * MIB), &[]);
        assert_eq!(
            found.unreadable,
            [Unreadable {
                offset: bad,
                errno: Some(Errno::IO)
            }]
        );
    }
    let short = |_: u64, length: usize| Ok(vec![0; length / 2]);
    assert!(
        !scan(&Image::new(&short, 16 * MIB), &[])
            .unreadable
            .is_empty()
    );
}

/// What our own writing workloads leave must not keep the next run away, nor what other tools leave
/// that wipe a disk.
#[test]
fn random_and_uniform_content_is_no_mark() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut block: Vec<u8> = Vec::new();
    for _ in 0..(8 << 20) / 8 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        block.extend(state.to_le_bytes());
    }
    for disk in 0..200 {
        // Another part of the random bytes for each disk, the same ones at every look.
        let read_at = |offset: u64, length: usize| {
            Ok(block[((offset as usize + disk * 20_011) % (4 << 20))..][..length].to_vec())
        };
        assert_eq!(
            scan(&Image::new(&read_at, 100 * MIB + 512), &[]),
            ScanResult::default(),
            "{disk}"
        );
    }
    for byte in [0, 0xff, 0x55, 0xaa, b' '] {
        let read_at = |_: u64, length: usize| Ok(vec![byte; length]);
        assert_eq!(
            scan(&Image::new(&read_at, 100 * MIB), &[]),
            ScanResult::default(),
            "{byte}"
        );
    }
}

#[test]
fn databases_on_a_device_are_known() {
    let names = |disk: Disk| {
        disk.found()
            .iter()
            .map(|(name, ..)| *name)
            .collect::<Vec<_>>()
    };
    let page = |space: u32, kind: u16, header: u32| {
        let (space, kind, header) = (
            space.to_be_bytes(),
            kind.to_be_bytes(),
            header.to_be_bytes(),
        );
        Disk::new(64 * MIB)
            .plant(0, b"\x12\x34\x56\x78")
            .plant(24, &kind)
            .plant(34, &space)
            .plant(38, &header)
    };
    assert_eq!(
        names(page(23, 8, 23)),
        ["InnoDB (MySQL, MariaDB) tablespace"]
    );
    assert!(names(page(23, 8, 24)).is_empty() && names(page(23, 3, 23)).is_empty());
}

#[test]
fn around_a_partition_only_what_all_of_the_disk_is_counts() {
    let disk = Disk::new(64 * MIB)
        .plant(510, &[0x55, 0xaa])
        .plant(446, &mbr_entry(0x83, 2048, 4096))
        .plant(MIB, b"XFSB");
    let disk = disk
        .plant(512, b"EFI PART")
        .plant(64 * MIB - 512, b"EFI PART")
        .plant(64, b"\x57\x45\x56\x82");
    let around = |disk: &Disk| {
        let read_at = |offset: u64, length: usize| {
            let mut block = vec![0; length.min(disk.size.saturating_sub(offset) as usize)];
            disk.bytes
                .range(offset..offset + block.len() as u64)
                .for_each(|(at, byte)| block[(at - offset) as usize] = *byte);
            Ok(block)
        };
        scan_around(&Image::new(&read_at, disk.size))
            .signatures
            .into_iter()
            .map(|s| (s.what, s.offset))
            .collect::<Vec<_>>()
    };
    assert_eq!(around(&disk), []);
    let member = disk.plant(64 * MIB - 1024, b"Intel Raid ISM Cfg Sig. ");
    assert_eq!(around(&member), [("Intel RAID member", 64 * MIB - 1024)]);
}

proptest! {
    #[test]
    fn scanning_never_panics(
        size in 0u64..(4 << 20),
        seed in any::<[u8; 32]>(),
        tables in any::<bool>(),
    ) {
        let read_at = |offset: u64, length: usize| {
            let byte = |index: usize| seed[(offset as usize + index * 7) % 32];
            let mut block: Vec<u8> = (0..length).map(byte).collect();
            if tables {
                for at in [512usize, 4096] {
                    if let Some(place) = block.get_mut(at..at + 8) {
                        place.copy_from_slice(b"EFI PART");
                    }
                }
                if let Some(place) = block.get_mut(510..512) {
                    place.copy_from_slice(&[0x55, 0xaa]);
                }
            }
            Ok(block)
        };
        let _ = scan(&Image::new(&read_at, size), &[]);
    }
}
