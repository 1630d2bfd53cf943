//! Maps of a made-up sysfs, and of real files.

use super::*;
use crate::admit::{Intent, admit};
use crate::identity::probe::probe;
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
    let one = |lower_start, length| {
        Ok(vec![Segment {
            upper_start: 0,
            lower_start,
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
    assert_eq!((written, segments[0].upper_start), (1 << 20, 2 << 20));
}

const MIB: usize = 1 << 20;

/// Bytes of which no two blocks are alike.
fn distinct_bytes(length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length);
    for number in 0..length as u64 / 8 {
        bytes.extend(number.to_le_bytes());
    }
    bytes
}

/// A loop device whose image begins at its second MiB, and the image. Files stand in for both.
fn located(loop_bytes: &[u8], image_bytes: &[u8]) -> Vec<LayerPlace> {
    let sysfs = FakeSysfs::new();
    let attributes = [("size", "8192"), ("loop/offset", "1048576")];
    sysfs.add_block_device("loop3", "7:3", &attributes);
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut targets = Vec::new();
    for (name, bytes) in [("loop", loop_bytes), ("image", image_bytes)] {
        let path = place.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let admission = admit(probe(&path).unwrap(), Intent::Read).unwrap();
        targets.push(OpenTarget::open(admission).unwrap());
    }
    let mut layers = [
        layer("/dev/loop3", Some(LayerKind::Loop)),
        layer("/data/image", None),
    ];
    for (index, layer) in layers.iter_mut().enumerate() {
        layer.target = Some(index);
    }
    locate(&sysfs.root(), &layers, &targets)
}

#[test]
fn layers_are_read_at_the_same_blocks_if_their_content_is_equal() {
    let image = distinct_bytes(5 * MIB);
    let [top, below] = &located(&image[MIB..], &image)[..] else {
        panic!("two places");
    };
    assert_eq!(top.blocks, BlockMatch::Top);
    assert_eq!(below.blocks, BlockMatch::Same);
    assert_eq!(below.compared, COMPARED_BLOCKS as u32);
    assert_eq!((top.start_bytes, below.start_bytes), (0, 1 << 20));
    assert_eq!((top.length_bytes, below.length_bytes), (4 << 20, 4 << 20));
}

#[test]
fn layer_with_other_content_is_read_within_its_size() {
    let image = distinct_bytes(4 * MIB);
    let [_, below] = &located(&image[..4 * MIB], &image)[..] else {
        panic!("two places");
    };
    assert_eq!((below.blocks, below.compared), (BlockMatch::Unknown, 0));
    assert!(below.why.is_some());
    // The span would begin at the second MiB, where the image has only three.
    assert_eq!((below.start_bytes, below.length_bytes), (0, 4 << 20));
}
