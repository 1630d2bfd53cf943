//! Stacks of devices in a made-up sysfs.

use super::*;
use crate::fake_sysfs::FakeSysfs;
use crate::mounts::parse;
use diskproof_model::target::{Link, WriteCache};

const SATA_1: &str = "pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda";
const SATA_2: &str = "pci0000:00/0000:00:17.0/ata12/host11/target11:0:0/11:0:0:0/block/sdb";

fn names(stack: &Stack) -> Vec<&str> {
    stack
        .layers
        .iter()
        .map(|layer| layer.name.as_str())
        .collect()
}

fn sata(sysfs: &FakeSysfs, path: &str, device: &str) {
    let attributes = [
        ("size", "1953525168"),
        ("ro", "0"),
        ("queue/rotational", "1"),
        ("queue/scheduler", "none [mq-deadline] kyber"),
        ("queue/nr_requests", "64"),
        ("queue/max_sectors_kb", "1280"),
        ("queue/read_ahead_kb", "128"),
        ("queue/write_cache", "write back"),
        ("queue/logical_block_size", "512"),
        ("queue/physical_block_size", "4096"),
        ("queue/discard_max_bytes", "0"),
        ("device/model", "ST1000NM0033-9ZM "),
        ("device/vendor", "ATA     "),
        ("device/rev", "SN04"),
    ];
    sysfs.block(path, device, &attributes);
    let page = sysfs
        .root()
        .sys
        .join("devices")
        .join(path)
        .join("device/vpd_pg80");
    std::fs::write(page, b"\x00\x80\x00\x0c    Z1W2ABCD").unwrap();
}

/// An NVMe disk on PCIe with a partition.
fn nvme_with_partition() -> FakeSysfs {
    let sysfs = FakeSysfs::new();
    let function = "pci0000:00/0000:00:1d.0/0000:03:00.0";
    let disk = format!("{function}/nvme/nvme0/nvme0n1");
    let attributes = [
        ("size", "3907029168"),
        ("queue/rotational", "0"),
        ("queue/scheduler", "[none] mq-deadline"),
        ("queue/logical_block_size", "512"),
        ("queue/write_cache", "write through"),
        ("queue/discard_max_bytes", "2199023255040"),
        ("wwid", "eui.0025385b21404d2f"),
    ];
    sysfs.block(&disk, "259:0", &attributes);
    sysfs.link(
        &format!("devices/{disk}/device"),
        &format!("devices/{function}/nvme/nvme0"),
    );
    let controller = [
        ("model", "SAMSUNG MZVL22T0HBLB"),
        ("serial", "S69ANX0R"),
        ("firmware_rev", "GXA7801Q"),
    ];
    controller.iter().for_each(|(name, text)| {
        sysfs.file(&format!("devices/{function}/nvme/nvme0/{name}"), text)
    });
    let pci = [
        ("current_link_speed", "8.0 GT/s PCIe"),
        ("current_link_width", "4"),
        ("max_link_speed", "16.0 GT/s PCIe"),
    ];
    pci.iter()
        .chain([&("max_link_width", "4")])
        .for_each(|(name, text)| sysfs.file(&format!("devices/{function}/{name}"), text));
    sysfs.partition(&format!("{disk}/nvme0n1p2"), "259:2", 2048);
    sysfs
}

#[test]
fn nvme_partition_with_its_pcie_link() {
    let sysfs = nvme_with_partition();
    let stack = below_device(&sysfs.root(), &[], "259:2");
    assert_eq!(
        (names(&stack), stack.unresolved.as_deref()),
        (vec!["nvme0n1p2", "nvme0n1"], None)
    );
    let (partition, disk) = (&stack.layers[0], &stack.layers[1]);
    assert_eq!(
        (
            partition.kind,
            partition.size_bytes,
            partition.logical_block_bytes
        ),
        (LayerKind::Partition, 1 << 20, Some(512))
    );
    assert_eq!(
        (partition.below.as_slice(), partition.model.as_deref()),
        (["nvme0n1".to_owned()].as_slice(), None)
    );
    assert_eq!(
        (disk.kind, disk.size_bytes, disk.rotational),
        (LayerKind::Disk, 3_907_029_168 * 512, Some(false))
    );
    assert_eq!(
        (disk.model.as_deref(), disk.serial.as_deref()),
        (Some("SAMSUNG MZVL22T0HBLB"), Some("S69ANX0R"))
    );
    assert_eq!(
        (disk.firmware.as_deref(), disk.vendor.as_deref()),
        (Some("GXA7801Q"), None)
    );
    assert_eq!(
        (disk.write_cache, disk.discard),
        (Some(WriteCache::WriteThrough), Some(true))
    );
    let link = Link {
        bus: "PCIe".into(),
        speed: Some("8.0 GT/s PCIe x4".into()),
        speed_max: Some("16.0 GT/s PCIe x4".into()),
        bytes_per_second_max: Some(3_938_461_538),
        device_bytes_per_second_max: Some(7_876_923_077),
    };
    assert_eq!(disk.link, Some(link));
}

#[test]
fn nvme_with_native_multipath_finds_its_controller() {
    let sysfs = FakeSysfs::new();
    let disk = "virtual/nvme-subsystem/nvme-subsys0/nvme0n1";
    sysfs.block(disk, "259:0", &[("size", "8")]);
    sysfs.link(
        &format!("devices/{disk}/device"),
        "devices/virtual/nvme-subsystem/nvme-subsys0",
    );
    sysfs.file(
        "devices/virtual/nvme-subsystem/nvme-subsys0/serial",
        "PHLN123",
    );
    sysfs.file("devices/pci0000:00/0000:05:00.0/nvme/nvme1/state", "live");
    sysfs.file(
        "devices/pci0000:00/0000:05:00.0/current_link_speed",
        "2.5 GT/s PCIe",
    );
    sysfs.file("devices/pci0000:00/0000:05:00.0/current_link_width", "1");
    sysfs.link(
        "devices/virtual/nvme-subsystem/nvme-subsys0/nvme1",
        "devices/pci0000:00/0000:05:00.0/nvme/nvme1",
    );
    let stack = below_device(&sysfs.root(), &[], "259:0");
    assert_eq!(stack.layers[0].serial.as_deref(), Some("PHLN123"));
    let link = stack.layers[0].link.clone().unwrap();
    assert_eq!(
        (link.speed.as_deref(), link.bytes_per_second_max),
        (Some("2.5 GT/s PCIe x1"), Some(250_000_000))
    );
}

/// A mirror of one partition each of two SATA disks; the link of the second has no known speed.
fn raid_of_two_sata_disks() -> FakeSysfs {
    let sysfs = FakeSysfs::new();
    sata(&sysfs, SATA_1, "8:0");
    sata(&sysfs, SATA_2, "8:16");
    sysfs.partition(&format!("{SATA_1}/sda1"), "8:1", 1 << 20);
    sysfs.partition(&format!("{SATA_2}/sdb1"), "8:17", 1 << 20);
    sysfs.file("class/ata_link/link3/sata_spd", "3.0 Gbps");
    let identify: Vec<&str> = (0..256)
        .map(|word| if word == 76 { "8d0e" } else { "0000" })
        .collect();
    sysfs.file("class/ata_device/dev3.0/id", &identify.join(" "));
    sysfs.file("class/ata_link/link12/sata_spd", "<unknown>");
    sysfs.block(
        "virtual/block/md0",
        "9:0",
        &[
            ("size", "2097152"),
            ("md/level", "raid1"),
            ("queue/logical_block_size", "512"),
        ],
    );
    sysfs.link(
        "devices/virtual/block/md0/slaves/sda1",
        &format!("devices/{SATA_1}/sda1"),
    );
    sysfs.link(
        "devices/virtual/block/md0/slaves/sdb1",
        &format!("devices/{SATA_2}/sdb1"),
    );
    sysfs
}

#[test]
fn raid_on_partitions_of_two_sata_disks() {
    let sysfs = raid_of_two_sata_disks();
    let stack = below_path(&sysfs.root(), &[], "9:0", Path::new("/data"));
    assert_eq!(
        (names(&stack), stack.unresolved.as_deref()),
        (vec!["md0", "sda1", "sda", "sdb1", "sdb"], None)
    );
    assert_eq!(
        (stack.layers[0].kind, stack.layers[0].model.as_deref()),
        (LayerKind::Md, Some("MD raid1"))
    );
    assert_eq!(stack.layers[0].below, ["sda1", "sdb1"]);
    let disk = &stack.layers[2];
    assert_eq!(
        (
            disk.serial.as_deref(),
            disk.firmware.as_deref(),
            disk.vendor.as_deref()
        ),
        (Some("Z1W2ABCD"), Some("SN04"), Some("ATA"))
    );
    assert_eq!(
        (disk.model.as_deref(), disk.scheduler.as_deref()),
        (Some("ST1000NM0033-9ZM"), Some("mq-deadline"))
    );
    assert_eq!(
        (
            disk.queue_requests,
            disk.request_bytes_max,
            disk.read_ahead_bytes
        ),
        (Some(64), Some(1280 << 10), Some(128 << 10))
    );
    assert_eq!(
        (disk.physical_block_bytes, disk.rotational, disk.discard),
        (Some(4096), Some(true), Some(false))
    );
    assert_eq!(disk.write_cache, Some(WriteCache::WriteBack));
    let link = disk.link.clone().unwrap();
    assert_eq!(
        (
            link.bus.as_str(),
            link.speed.as_deref(),
            link.speed_max.as_deref()
        ),
        ("SATA", Some("3.0 Gbps"), Some("6.0 Gbps"))
    );
    assert_eq!(link.bytes_per_second_max, Some(300_000_000));
    assert_eq!(
        stack.layers[4].link.clone().unwrap().speed,
        None,
        "an unknown speed is no speed"
    );
}

#[test]
fn crypt_on_lvm_on_two_partitions_of_one_usb_disk() {
    let sysfs = FakeSysfs::new();
    let usb = "pci0000:00/0000:00:14.0/usb2/2-1";
    let disk = format!("{usb}/2-1:1.0/host6/target6:0:0/6:0:0:0/block/sdc");
    sysfs.block(&disk, "8:32", &[("size", "2097152"), ("ro", "1")]);
    sysfs.file(&format!("devices/{usb}/busnum"), "2");
    sysfs.file(&format!("devices/{usb}/speed"), "5000");
    sysfs.partition(&format!("{disk}/sdc1"), "8:33", 2048);
    sysfs.partition(&format!("{disk}/sdc2"), "8:34", 2048);
    let dm = |number: u32, name: &str, uuid: &str, below: &[&str]| {
        let path = format!("virtual/block/dm-{number}");
        sysfs.block(
            &path,
            &format!("253:{number}"),
            &[("size", "4096"), ("dm/name", name), ("dm/uuid", uuid)],
        );
        for slave in below {
            sysfs.link(
                &format!("devices/{path}/slaves/{slave}"),
                &format!("class/block/{slave}"),
            );
        }
    };
    dm(0, "vg0-data", "LVM-abc", &["sdc1", "sdc2"]);
    dm(1, "secret", "CRYPT-LUKS2-abc-secret", &["dm-0"]);

    let stack = below_device(&sysfs.root(), &[], "253:1");
    assert_eq!(
        names(&stack),
        ["dm-1", "dm-0", "sdc1", "sdc2", "sdc"],
        "the shared disk comes last, and once"
    );
    assert_eq!(stack.layers[0].model.as_deref(), Some("crypt secret"));
    assert_eq!(
        (stack.layers[1].kind, stack.layers[1].model.as_deref()),
        (LayerKind::DeviceMapper, Some("LVM vg0-data"))
    );
    let disk = &stack.layers[4];
    let link = disk.link.clone().unwrap();
    assert_eq!(
        (
            link.bus.as_str(),
            link.speed.as_deref(),
            link.bytes_per_second_max
        ),
        ("USB", Some("5000 Mb/s"), Some(500_000_000))
    );
    assert!(disk.read_only && disk.below.is_empty());
}

#[test]
fn virtio_has_no_speed_and_other_buses_no_link() {
    let sysfs = FakeSysfs::new();
    sysfs.block(
        "pci0000:00/0000:00:02.0/virtio1/block/vda",
        "254:0",
        &[("serial", "vol-123"), ("device/vendor", "0x1af4")],
    );
    sysfs.block("virtual/block/zram0", "252:0", &[]);
    let stack = below_device(&sysfs.root(), &[], "254:0");
    let disk = &stack.layers[0];
    assert_eq!(
        (disk.serial.as_deref(), disk.vendor.as_deref()),
        (Some("vol-123"), None)
    );
    assert_eq!(
        disk.link,
        Some(Link {
            bus: "virtio".into(),
            speed: None,
            speed_max: None,
            bytes_per_second_max: None,
            device_bytes_per_second_max: None
        })
    );
    assert_eq!(
        below_device(&sysfs.root(), &[], "252:0").layers[0].link,
        None
    );
}

#[test]
fn btrfs_counts_all_its_members() {
    let sysfs = FakeSysfs::new();
    sysfs.block("virtual/block/zz1", "240:1", &[]);
    sysfs.block("virtual/block/zz2", "240:2", &[]);
    sysfs.block("virtual/block/zz3", "240:3", &[]);
    sysfs.link("fs/btrfs/1234/devices/zz1", "class/block/zz1");
    sysfs.link("fs/btrfs/1234/devices/zz2", "class/block/zz2");
    sysfs.link("fs/btrfs/5678/devices/zz3", "class/block/zz3");
    sysfs.file("fs/btrfs/features/raid56", "0");
    let mounts = parse(
        "1 0 0:40 /sub /data rw - btrfs /dev/zz2 rw\n2 0 0:41 / /gone rw - btrfs /dev/zz9 rw\n",
    );
    let stack = below_path(&sysfs.root(), &mounts, "0:77", Path::new("/data/pg"));
    assert_eq!(
        (names(&stack), stack.unresolved.as_deref()),
        (vec!["zz1", "zz2"], None)
    );
    let stack = below_path(&sysfs.root(), &mounts, "0:41", Path::new("/gone"));
    assert!(stack.layers.is_empty() && stack.unresolved.unwrap().contains("/dev/zz9"));
}

#[test]
fn what_hides_its_disks_says_so_in_plain_words() {
    let sysfs = FakeSysfs::new();
    let reason = |kind: &str, source: &str| {
        let mounts = parse(&format!("1 0 0:40 / /data rw - {kind} {source} rw\n"));
        below_path(&sysfs.root(), &mounts, "0:40", Path::new("/data"))
            .unresolved
            .unwrap()
    };
    assert_eq!(reason("tmpfs", "tmpfs"), "tmpfs: it is in memory");
    assert!(reason("nfs4", "server:/export").contains("on the server (server:/export)"));
    assert!(reason("cifs", "//server/share").contains("//server/share"));
    assert!(reason("zfs", "tank/pg").contains("ARC"));
    assert!(reason("fuse.sshfs", "me@host:").contains("a program (me@host:) serves"));
    assert!(reason("overlay", "overlay").contains("no upper directory"));
    assert!(reason("oddfs", "thing").contains("not a block device"));
    assert_eq!(
        below_device(&sysfs.root(), &[], "8:0").unresolved.unwrap(),
        "sysfs does not show the block device 8:0"
    );
    assert!(
        below_path(&sysfs.root(), &[], "0:40", Path::new("/data"))
            .unresolved
            .unwrap()
            .contains("no known mount contains")
    );
}

#[test]
fn circles_end() {
    let sysfs = FakeSysfs::new();
    for (name, device, below) in [("dm-0", "253:0", "dm-1"), ("dm-1", "253:1", "dm-0")] {
        sysfs.block(&format!("virtual/block/{name}"), device, &[]);
        sysfs.link(
            &format!("devices/virtual/block/{name}/slaves/{below}"),
            &format!("class/block/{below}"),
        );
    }
    assert_eq!(
        names(&below_device(&sysfs.root(), &[], "253:0")),
        ["dm-0", "dm-1"]
    );
}

#[test]
fn a_loop_device_whose_file_is_out_of_reach_stays_the_lowest() {
    let sysfs = FakeSysfs::new();
    sysfs.block(
        "virtual/block/loop5",
        "7:5",
        &[
            ("loop/backing_file", "/nonexistent/x (deleted)"),
            ("loop/dio", "1"),
        ],
    );
    let stack = below_device(&sysfs.root(), &[], "7:5");
    assert!(
        stack
            .unresolved
            .unwrap()
            .contains("/nonexistent/x (deleted)")
    );
    assert_eq!(
        (stack.layers[0].backing_direct, stack.layers[0].below.len()),
        (Some(true), 0)
    );
}

/// A server that does not answer would hold a call on the file.
#[test]
fn file_of_a_server_behind_a_loop_device_is_not_called() {
    let sysfs = FakeSysfs::new();
    let file = ("loop/backing_file", "/nonexistent/served/x");
    sysfs.block("virtual/block/loop5", "7:5", &[file]);
    for (kind, why) in [
        ("fuse.sshfs", "fuse.sshfs: a program"),
        ("nfs4", "nfs4: the disks"),
    ] {
        let mount = format!("40 27 0:70 / /nonexistent/served rw - {kind} host:/export rw\n");
        let stack = below_device(&sysfs.root(), &parse(&mount), "7:5");
        let unresolved = stack.unresolved.unwrap();
        assert!(unresolved.starts_with(why), "{unresolved}");
    }
}
