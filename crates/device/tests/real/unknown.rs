//! Data that no signature explains: refused with a dump, wiped on request, and never diskproof's
//! own.

use crate::support::{Disk, MIB, admitted, run};
use diskproof_device::{Consent, OpenTarget, UnknownContent};
use diskproof_model::own_data::mark_sectors;
use diskproof_simdisk::testbed::can_run;
use std::os::unix::fs::FileExt as _;

fn write(disk: &Disk, offset: u64, bytes: &[u8]) {
    let file = std::fs::File::options().write(true).open(disk.node());
    let file = file.unwrap();
    file.write_all_at(bytes, offset).unwrap();
    file.sync_all().unwrap();
}

/// What the engine writes: random bytes with the mark.
fn own_data(length: usize) -> Vec<u8> {
    let mut bytes = random(length);
    mark_sectors(&mut bytes);
    bytes
}

fn random(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    std::io::Read::read_exact(
        &mut std::fs::File::open("/dev/urandom").unwrap(),
        &mut bytes,
    )
    .unwrap();
    // Neither a boot sector nor ext4 by chance.
    for sector in bytes.chunks_mut(512) {
        sector[510] = 1;
        sector[56] = 1;
    }
    bytes
}

#[test]
fn gate_refuses_unknown_data_at_both_ends_with_a_dump() {
    if !can_run(
        "gate_refuses_unknown_data_at_both_ends_with_a_dump",
        &["losetup"],
    ) {
        return;
    }
    let size = 16 * MIB;
    for offset in [0, 4096 + 37, MIB - 1, size - MIB, size - 1] {
        let disk = Disk::new(size);
        write(&disk, offset, b"k");
        let at = format!("{:08x}  ", offset / 16 * 16);
        disk.assert_refused(
            "unknown",
            &["data of an unknown format: 1 sector", &at, "k"],
        );
        disk.assert_refused("unknown", &["add --wipe-unknown", "hexdump -C -s"]);
    }
    let disk = Disk::new(size);
    write(&disk, MIB, b"k");
    assert!(disk.admit().is_ok(), "only both ends count");
}

#[test]
fn gate_wipes_unknown_data_on_request_only_after_the_opening() {
    let name = "gate_wipes_unknown_data_on_request_only_after_the_opening";
    if !can_run(name, &["losetup"]) {
        return;
    }
    let disk = Disk::new(16 * MIB);
    write(&disk, 512, b"the database of tomorrow");
    write(&disk, 8 * MIB, b"in the middle");
    let before = disk.checksum();
    let consent = Consent {
        unknown: UnknownContent::Wipe,
        ..disk.consent()
    };
    let target = OpenTarget::open(admitted(&disk.device.node, &consent).unwrap()).unwrap();
    assert_eq!(disk.checksum(), before, "opening writes nothing");
    target.wipe_unknown().unwrap();
    drop(target);
    assert!(disk.admit().is_ok(), "no flag is needed any more");
    let mut middle = [0; 13];
    let device = std::fs::File::open(disk.node()).unwrap();
    device.read_exact_at(&mut middle, 8 * MIB).unwrap();
    assert_eq!(&middle, b"in the middle");
}

#[test]
fn gate_never_wipes_a_known_format() {
    if !can_run("gate_never_wipes_a_known_format", &["losetup", "mkfs.ext4"]) {
        return;
    }
    let disk = Disk::new(16 * MIB);
    run("mkfs.ext4", &["-q", disk.node()]);
    let consent = Consent {
        unknown: UnknownContent::Wipe,
        ..disk.consent()
    };
    let before = disk.checksum();
    let reasons = admitted(&disk.device.node, &consent).unwrap_err();
    assert!(reasons[0].contains("ext2/3/4"), "{reasons:?}");
    assert_eq!(disk.checksum(), before);
}

#[test]
fn gate_accepts_own_data_and_refuses_a_foreign_rest() {
    if !can_run(
        "gate_accepts_own_data_and_refuses_a_foreign_rest",
        &["losetup"],
    ) {
        return;
    }
    let size = 16 * MIB;
    let disk = Disk::new(size);
    write(&disk, 0, &own_data(MIB as usize));
    write(&disk, size - MIB, &own_data(MIB as usize));
    disk.assert_writable();

    // A device that was foreign before a short run: what the run did not reach stays foreign.
    let disk = Disk::new(size);
    write(&disk, 0, &random(MIB as usize));
    for block in [0, 8192, 512 * 1024] {
        write(&disk, block, &own_data(8192));
    }
    disk.assert_refused("partly foreign", &["unknown format: 2000 sectors"]);
}

#[test]
fn gate_refuses_what_zeroing_the_first_mib_leaves_of_a_filesystem() {
    let name = "gate_refuses_what_zeroing_the_first_mib_leaves_of_a_filesystem";
    if !can_run(name, &["losetup", "mkfs.ext4", "mkfs.xfs"]) {
        return;
    }
    for (size, program, flags, part) in [
        (
            64,
            "mkfs.ext4",
            "-q -b 1024",
            "backup superblock of an ext2/3/4",
        ),
        (
            200,
            "mkfs.ext4",
            "-q -b 4096",
            "backup superblock of an ext2/3/4",
        ),
        (320, "mkfs.xfs", "-q", "second superblock of an XFS"),
        (
            800,
            "mkfs.xfs",
            "-q -d agcount=8",
            "second superblock of an XFS",
        ),
    ] {
        let disk = Disk::new(size * MIB);
        let flags: Vec<&str> = flags.split(' ').chain([disk.node()]).collect();
        run(program, &flags);
        write(&disk, 0, &vec![0; MIB as usize]);
        disk.assert_refused(program, &[part]);
    }
}

#[test]
fn gate_refuses_fat_without_a_boot_sector() {
    if !can_run(
        "gate_refuses_fat_without_a_boot_sector",
        &["losetup", "mkfs.vfat"],
    ) {
        return;
    }
    // With -A, mkfs.vfat makes at most 65531 sectors: too few for FAT32.
    let disk = Disk::new(16 * MIB);
    run("mkfs.vfat", &["-A", "-I", "-F16", disk.node()]);
    disk.assert_refused("mkfs.vfat -A", &["it holds a signature: FAT filesystem"]);
}

#[test]
fn gate_refuses_partition_whose_table_is_zeroed_until_it_is_zeroed_too() {
    let name = "gate_refuses_partition_whose_table_is_zeroed_until_it_is_zeroed_too";
    if !can_run(name, &["losetup", "mkfs.ext4", "sfdisk"]) {
        return;
    }
    let disk = Disk::new(300 * MIB);
    let table = "printf 'label: gpt\\n2048,,L\\n' | sfdisk -q --no-reread --no-tell-kernel";
    crate::support::shell(&format!("{table} {} >/dev/null 2>&1", disk.node()));
    run(
        "mkfs.ext4",
        &[
            "-q",
            "-b",
            "4096",
            "-E",
            "offset=1048576",
            disk.node(),
            "290M",
        ],
    );
    let end = 300 * MIB - 33 * 512;
    write(&disk, 0, &vec![0; MIB as usize]);
    write(&disk, end, &[0; 33 * 512]);
    disk.assert_refused(
        "first partition",
        &[
            "ext2/3/4 filesystem or its journal (byte 1049656)",
            "backup superblock of an ext2/3/4 filesystem (byte 135266304)",
        ],
    );
    crate::support::follow(&disk, "first partition");
    disk.assert_writable();
}
