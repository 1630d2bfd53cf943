//! Maps of a made-up sysfs, and of real files.

use super::*;
use crate::kernel::fake_sysfs::FakeSysfs;

fn layer(path: &str, device_kind: Option<LayerKind>) -> PlannedLayer {
    PlannedLayer {
        name: path.to_owned(),
        path: path.to_owned(),
        device_kind,
        target: None,
        skipped: None,
        one_of: 1,
    }
}

fn segments(map: Result<BlockMap, String>) -> Result<Vec<Segment>, String> {
    map.map(|map| map.segments)
}

#[test]
fn blocks_of_partitions_loops_and_mirrors_lie_where_sysfs_says() {
    let sysfs = FakeSysfs::new();
    sysfs.add_block_device("disk/sda", "8:0", &[("size", "1953525168")]);
    let partition = [("partition", "1"), ("start", "2048"), ("size", "8192")];
    sysfs.add_block_device("disk/sda/sda1", "8:1", &partition);
    let image = [("size", "4096"), ("loop/offset", "1048576")];
    sysfs.add_block_device("loop3", "7:3", &image);
    let mirror = [
        ("size", "8000"),
        ("md/level", "raid1"),
        ("md/dev-sda1/offset", "64"),
        ("md/dev-sda1/state", "in_sync,write_mostly"),
        ("md/dev-sdb1/offset", "64"),
        ("md/dev-sdb1/state", "faulty"),
    ];
    sysfs.add_block_device("md0", "9:0", &mirror);
    sysfs.add_block_device("md1", "9:1", &[("size", "8000"), ("md/level", "raid0")]);
    let root = sysfs.root();
    let map = |upper: &str, kind, lower: &str| {
        let (upper, lower) = (layer(upper, Some(kind)), layer(lower, None));
        segments(map_below(&root, &upper, &lower, None))
    };
    let one = |to, length| {
        Ok(vec![Segment {
            from: 0,
            to,
            length,
        }])
    };
    for (upper, kind, lower, expected) in [
        (
            "/dev/sda1",
            LayerKind::Partition,
            "/dev/sda",
            one(1 << 20, 4 << 20),
        ),
        (
            "/dev/loop3",
            LayerKind::Loop,
            "/images/disk.img",
            one(1 << 20, 2 << 20),
        ),
        (
            "/dev/md0",
            LayerKind::Md,
            "/dev/sda1",
            one(64 * 512, 8000 * 512),
        ),
    ] {
        assert_eq!(map(upper, kind, lower), expected, "{upper}");
    }
    let why = map("/dev/md0", LayerKind::Md, "/dev/sdb1").unwrap_err();
    assert!(why.contains("(faulty)"), "{why}");
    assert!(map("/dev/md1", LayerKind::Md, "/dev/sda1").is_err());
    assert!(map("/dev/sda", LayerKind::Disk, "/dev/x").is_err());
}

#[test]
fn file_without_a_descriptor_has_no_map() {
    let sysfs = FakeSysfs::new();
    let (upper, lower) = (layer("/data/img", None), layer("/dev/sda", None));
    let map = map_below(&sysfs.root(), &upper, &lower, None);
    assert!(segments(map).unwrap_err().contains("/data/img"));
}

#[test]
fn extents_skip_what_was_never_written() {
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::FileExt as _;
    let file = tempfile::tempfile_in("/var/tmp").unwrap();
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 8 << 20).unwrap();
    file.write_all_at(&vec![1; 1 << 20], 2 << 20).unwrap();
    let Some(segments) = extents(file.as_fd(), 8 << 20) else {
        eprintln!("SKIPPED: extents_skip_what_was_never_written: FIEMAP on /var/tmp");
        return;
    };
    let written: u64 = segments.iter().map(|segment| segment.length).sum();
    assert_eq!((written, segments[0].from), (1 << 20, 2 << 20));
}
