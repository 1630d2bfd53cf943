//! Stacks of devices in a made-up sysfs.

use super::*;
use crate::kernel::fake_sysfs::FakeSysfs;
use crate::kernel::mounts::parse_mountinfo;
use diskproof_model::target::WriteCache;

const SATA_1: &str = "pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda";
const SATA_2: &str = "pci0000:00/0000:00:17.0/ata12/host11/target11:0:0/11:0:0:0/block/sdb";

fn names(stack: &Stack) -> Vec<&str> {
    stack
        .layers
        .iter()
        .map(|layer| layer.name.as_str())
        .collect()
}

/// The names of the layers, which are all known.
fn known(stack: &Stack) -> Vec<&str> {
    assert_eq!(stack.unresolved, None);
    names(stack)
}

/// Below the first path lie the others.
fn lies_on(sysfs: &FakeSysfs, upper: &str, lower: &[&str]) {
    for path in lower {
        let name = path.rsplit('/').next().unwrap();
        sysfs.add_link(&format!("devices/{upper}/slaves/{name}"), path);
    }
}

fn files(sysfs: &FakeSysfs, place: &str, attributes: &[(&str, &str)]) {
    for (name, text) in attributes {
        sysfs.write_attribute(&format!("{place}/{name}"), text);
    }
}

/// Bus and speeds, in text and in bytes.
type Speeds<'a> = (&'a str, [Option<&'a str>; 2], [Option<u64>; 2]);

fn speeds(layer: &Layer) -> Option<Speeds<'_>> {
    let link = layer.link.as_ref()?;
    let text = [link.speed.as_deref(), link.speed_max.as_deref()];
    let bytes = [link.bytes_per_second_max, link.device_bytes_per_second_max];
    Some((&link.bus, text, bytes))
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
    sysfs.add_block_device(path, device, &attributes);
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
        ("queue/fua", "1"),
        ("queue/discard_max_bytes", "2199023255040"),
        ("wwid", "eui.0025385b21404d2f"),
    ];
    sysfs.add_block_device(&disk, "259:0", &attributes);
    let controller = format!("devices/{function}/nvme/nvme0");
    sysfs.add_link(&format!("devices/{disk}/device"), &controller);
    let names = [
        ("model", "SAMSUNG MZVL22T0HBLB"),
        ("serial", "S69ANX0R"),
        ("firmware_rev", "GXA7801Q"),
    ];
    files(&sysfs, &controller, &names);
    let pci = [
        ("current_link_speed", "8.0 GT/s PCIe"),
        ("current_link_width", "4"),
        ("max_link_speed", "16.0 GT/s PCIe"),
        ("max_link_width", "4"),
    ];
    files(&sysfs, &format!("devices/{function}"), &pci);
    sysfs.add_partition(&format!("{disk}/nvme0n1p2"), "259:2", 2048);
    sysfs
}

#[test]
fn nvme_partition_with_its_pcie_link() {
    let sysfs = nvme_with_partition();
    let stack = layers_below_device(&sysfs.root(), &[], "259:2");
    assert_eq!(known(&stack), ["nvme0n1p2", "nvme0n1"]);
    let (partition, disk) = (&stack.layers[0], &stack.layers[1]);
    assert_eq!(partition.kind, LayerKind::Partition);
    assert_eq!(partition.size_bytes, 1 << 20);
    assert_eq!(partition.logical_block_bytes, Some(512));
    assert_eq!(
        (partition.below.as_slice(), partition.model.as_deref()),
        (["nvme0n1".to_owned()].as_slice(), None)
    );
    assert_eq!(disk.kind, LayerKind::Disk);
    assert_eq!(disk.size_bytes, 3_907_029_168 * 512);
    assert_eq!(disk.rotational, Some(false));
    assert_eq!(disk.model.as_deref(), Some("SAMSUNG MZVL22T0HBLB"));
    assert_eq!(disk.serial.as_deref(), Some("S69ANX0R"));
    assert_eq!(disk.firmware.as_deref(), Some("GXA7801Q"));
    assert_eq!(disk.vendor.as_deref(), None);
    assert_eq!(disk.write_cache, Some(WriteCache::WriteThrough));
    assert_eq!(disk.forced_unit_access, Some(true));
    assert_eq!(disk.discard, Some(true));
    let text = [Some("8.0 GT/s PCIe x4"), Some("16.0 GT/s PCIe x4")];
    let bytes = [Some(3_938_461_538), Some(7_876_923_077)];
    assert_eq!(speeds(disk), Some(("PCIe", text, bytes)));
}

#[test]
fn nvme_with_native_multipath_finds_its_controller() {
    let sysfs = FakeSysfs::new();
    let disk = "virtual/nvme-subsystem/nvme-subsys0/nvme0n1";
    sysfs.add_block_device(disk, "259:0", &[("size", "8")]);
    let subsystem = "devices/virtual/nvme-subsystem/nvme-subsys0";
    let function = "devices/pci0000:00/0000:05:00.0";
    sysfs.add_link(&format!("devices/{disk}/device"), subsystem);
    sysfs.write_attribute(&format!("{subsystem}/serial"), "PHLN123");
    let pci = [
        ("nvme/nvme1/state", "live"),
        ("current_link_speed", "2.5 GT/s PCIe"),
        ("current_link_width", "1"),
    ];
    files(&sysfs, function, &pci);
    sysfs.add_link(
        &format!("{subsystem}/nvme1"),
        &format!("{function}/nvme/nvme1"),
    );
    let stack = layers_below_device(&sysfs.root(), &[], "259:0");
    assert_eq!(stack.layers[0].serial.as_deref(), Some("PHLN123"));
    let link = stack.layers[0].link.clone().unwrap();
    assert_eq!(link.speed.as_deref(), Some("2.5 GT/s PCIe x1"));
    assert_eq!(link.bytes_per_second_max, Some(250_000_000));
}

/// A mirror of one partition each of two SATA disks; the link of the second has no known speed.
fn raid_of_two_sata_disks() -> FakeSysfs {
    let sysfs = FakeSysfs::new();
    sata(&sysfs, SATA_1, "8:0");
    sata(&sysfs, SATA_2, "8:16");
    sysfs.add_partition(&format!("{SATA_1}/sda1"), "8:1", 1 << 20);
    sysfs.add_partition(&format!("{SATA_2}/sdb1"), "8:17", 1 << 20);
    sysfs.write_attribute("class/ata_link/link3/sata_spd", "3.0 Gbps");
    let identify = [vec!["0000"; 76], vec!["8d0e"], vec!["0000"; 179]].concat();
    sysfs.write_attribute("class/ata_device/dev3.0/id", &identify.join(" "));
    sysfs.write_attribute("class/ata_link/link12/sata_spd", "<unknown>");
    let attributes = [
        ("size", "2097152"),
        ("md/level", "raid1"),
        ("queue/logical_block_size", "512"),
    ];
    sysfs.add_block_device("virtual/block/md0", "9:0", &attributes);
    let parts = [
        format!("devices/{SATA_1}/sda1"),
        format!("devices/{SATA_2}/sdb1"),
    ];
    lies_on(
        &sysfs,
        "virtual/block/md0",
        &parts.each_ref().map(String::as_str),
    );
    sysfs
}

#[test]
fn raid_on_partitions_of_two_sata_disks() {
    let sysfs = raid_of_two_sata_disks();
    let stack = layers_below_path(&sysfs.root(), &[], "9:0", Path::new("/data"));
    assert_eq!(known(&stack), ["md0", "sda1", "sda", "sdb1", "sdb"]);
    assert_eq!(stack.layers[0].kind, LayerKind::Md);
    assert_eq!(stack.layers[0].model.as_deref(), Some("MD raid1"));
    assert_eq!(stack.layers[0].below, ["sda1", "sdb1"]);
    let disk = &stack.layers[2];
    assert_eq!(disk.serial.as_deref(), Some("Z1W2ABCD"));
    assert_eq!(disk.firmware.as_deref(), Some("SN04"));
    assert_eq!(disk.vendor.as_deref(), Some("ATA"));
    assert_eq!(disk.model.as_deref(), Some("ST1000NM0033-9ZM"));
    assert_eq!(disk.scheduler.as_deref(), Some("mq-deadline"));
    assert_eq!(disk.queue_requests, Some(64));
    assert_eq!(disk.request_bytes_max, Some(1280 << 10));
    assert_eq!(disk.read_ahead_bytes, Some(128 << 10));
    assert_eq!(disk.physical_block_bytes, Some(4096));
    assert_eq!(disk.rotational, Some(true));
    assert_eq!(disk.discard, Some(false));
    assert_eq!(disk.write_cache, Some(WriteCache::WriteBack));
    let (bus, text, bytes) = speeds(disk).unwrap();
    assert_eq!((bus, text), ("SATA", [Some("3.0 Gbps"), Some("6.0 Gbps")]));
    assert_eq!(bytes[0], Some(300_000_000));
    // An unknown speed is no speed.
    assert_eq!(speeds(&stack.layers[4]).unwrap().1[0], None);
}

#[test]
fn crypt_on_lvm_on_two_partitions_of_one_usb_disk() {
    let sysfs = FakeSysfs::new();
    let usb = "pci0000:00/0000:00:14.0/usb2/2-1";
    let disk = format!("{usb}/2-1:1.0/host6/target6:0:0/6:0:0:0/block/sdc");
    sysfs.add_block_device(&disk, "8:32", &[("size", "2097152"), ("ro", "1")]);
    sysfs.write_attribute(&format!("devices/{usb}/busnum"), "2");
    sysfs.write_attribute(&format!("devices/{usb}/speed"), "5000");
    sysfs.add_partition(&format!("{disk}/sdc1"), "8:33", 2048);
    sysfs.add_partition(&format!("{disk}/sdc2"), "8:34", 2048);
    let dm = |number: u32, name: &str, uuid: &str, below: &[&str]| {
        let path = format!("virtual/block/dm-{number}");
        let attributes = [("size", "4096"), ("dm/name", name), ("dm/uuid", uuid)];
        sysfs.add_block_device(&path, &format!("253:{number}"), &attributes);
        lies_on(&sysfs, &path, below);
    };
    dm(
        0,
        "vg0-data",
        "LVM-abc",
        &["class/block/sdc1", "class/block/sdc2"],
    );
    dm(1, "secret", "CRYPT-LUKS2-abc-secret", &["class/block/dm-0"]);

    let stack = layers_below_device(&sysfs.root(), &[], "253:1");
    // The shared disk comes last, and once.
    assert_eq!(names(&stack), ["dm-1", "dm-0", "sdc1", "sdc2", "sdc"]);
    assert_eq!(stack.layers[0].model.as_deref(), Some("crypt secret"));
    assert_eq!(stack.layers[1].kind, LayerKind::DeviceMapper);
    assert_eq!(stack.layers[1].model.as_deref(), Some("LVM vg0-data"));
    let disk = &stack.layers[4];
    let (bus, text, bytes) = speeds(disk).unwrap();
    assert_eq!((bus, text[0]), ("USB", Some("5000 Mb/s")));
    assert_eq!(bytes[0], Some(500_000_000));
    assert!(disk.read_only && disk.below.is_empty());
}

#[test]
fn virtio_has_no_speed_and_other_buses_no_link() {
    let sysfs = FakeSysfs::new();
    let attributes = [("serial", "vol-123"), ("device/vendor", "0x1af4")];
    sysfs.add_block_device(
        "pci0000:00/0000:00:02.0/virtio1/block/vda",
        "254:0",
        &attributes,
    );
    sysfs.add_block_device("virtual/block/zram0", "252:0", &[]);
    let stack = layers_below_device(&sysfs.root(), &[], "254:0");
    let disk = &stack.layers[0];
    assert_eq!(disk.serial.as_deref(), Some("vol-123"));
    assert_eq!(disk.vendor.as_deref(), None);
    assert_eq!(speeds(disk), Some(("virtio", [None; 2], [None; 2])));
    let zram = layers_below_device(&sysfs.root(), &[], "252:0");
    assert_eq!(zram.layers[0].link, None);
}

#[test]
fn btrfs_counts_all_its_members() {
    let sysfs = FakeSysfs::new();
    for (number, filesystem) in [(1, "1234"), (2, "1234"), (3, "5678")] {
        sysfs.add_block_device(
            &format!("virtual/block/zz{number}"),
            &format!("240:{number}"),
            &[],
        );
        let member = format!("fs/btrfs/{filesystem}/devices/zz{number}");
        sysfs.add_link(&member, &format!("class/block/zz{number}"));
    }
    sysfs.write_attribute("fs/btrfs/features/raid56", "0");
    let mounts = parse_mountinfo(
        "1 0 0:40 /sub /data rw - btrfs /dev/zz2 rw\n2 0 0:41 / /gone rw - btrfs /dev/zz9 rw\n",
    );
    let stack = layers_below_path(&sysfs.root(), &mounts, "0:77", Path::new("/data/pg"));
    assert_eq!(known(&stack), ["zz1", "zz2"]);
    let stack = layers_below_path(&sysfs.root(), &mounts, "0:41", Path::new("/gone"));
    assert!(stack.layers.is_empty() && stack.unresolved.unwrap().contains("/dev/zz9"));
}

#[test]
fn what_hides_its_disks_says_so_in_plain_words() {
    let sysfs = FakeSysfs::new();
    let reason = |kind: &str, source: &str| {
        let mounts = parse_mountinfo(&format!("1 0 0:40 / /data rw - {kind} {source} rw\n"));
        layers_below_path(&sysfs.root(), &mounts, "0:40", Path::new("/data"))
            .unresolved
            .unwrap()
    };
    for (kind, source, part) in [
        ("tmpfs", "tmpfs", "memory"),
        ("nfs4", "server:/export", "server:/export"),
        ("cifs", "//server/share", "//server/share"),
        ("zfs", "tank/pg", "ARC"),
        ("fuse.sshfs", "me@host:", "me@host:"),
        ("overlay", "overlay", "upper"),
        ("oddfs", "thing", "thing"),
    ] {
        let why = reason(kind, source);
        assert!(why.contains(part), "{kind}: {why}");
    }
    let missing = layers_below_device(&sysfs.root(), &[], "8:0")
        .unresolved
        .unwrap();
    assert!(missing.contains("8:0"), "{missing}");
    let unmounted = layers_below_path(&sysfs.root(), &[], "0:40", Path::new("/data"));
    assert!(unmounted.unresolved.is_some());
}

#[test]
fn circles_end() {
    let sysfs = FakeSysfs::new();
    for (name, device, below) in [("dm-0", "253:0", "dm-1"), ("dm-1", "253:1", "dm-0")] {
        let path = format!("virtual/block/{name}");
        sysfs.add_block_device(&path, device, &[]);
        lies_on(&sysfs, &path, &[&format!("class/block/{below}")]);
    }
    let stack = layers_below_device(&sysfs.root(), &[], "253:0");
    assert_eq!(names(&stack), ["dm-0", "dm-1"]);
}

#[test]
fn a_loop_device_whose_file_is_out_of_reach_stays_the_lowest() {
    let sysfs = FakeSysfs::new();
    let file = "/nonexistent/x (deleted)";
    let attributes = [("loop/backing_file", file), ("loop/dio", "1")];
    sysfs.add_block_device("virtual/block/loop5", "7:5", &attributes);
    let stack = layers_below_device(&sysfs.root(), &[], "7:5");
    assert!(stack.unresolved.unwrap().contains(file));
    assert_eq!(stack.layers[0].backing_direct, Some(true));
    assert_eq!(stack.layers[0].below.len(), 0);
}

/// A server that does not answer would hold a call on the file.
#[test]
fn file_of_a_server_behind_a_loop_device_is_not_called() {
    let sysfs = FakeSysfs::new();
    let file = ("loop/backing_file", "/nonexistent/served/x");
    sysfs.add_block_device("virtual/block/loop5", "7:5", &[file]);
    for kind in ["fuse.sshfs", "nfs4"] {
        let mount = format!("40 27 0:70 / /nonexistent/served rw - {kind} host:/export rw\n");
        let stack = layers_below_device(&sysfs.root(), &parse_mountinfo(&mount), "7:5");
        let why = stack.unresolved.unwrap();
        assert!(why.starts_with(&format!("{kind}: ")), "{why}");
    }
}
