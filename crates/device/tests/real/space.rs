//! The free space that must stay on filesystems of others, however targets take it.

use crate::support::{MIB, admitted, checksum, consent, overwriting, run};
use diskproof_device::{Admission, Intent, admit, check_space_together, probe, scratch_bytes_max};
use diskproof_simdisk::testbed::{Disk, Loop, Mount, can_run, place};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

fn sparse(path: &Path, size_bytes: u64) {
    std::fs::File::create(path)
        .unwrap()
        .set_len(size_bytes)
        .unwrap();
}

/// A file of this size whose blocks are all written, with data that no format has.
fn written(path: &Path, size_bytes: u64) {
    let file = std::fs::File::create(path).unwrap();
    for offset in (0..size_bytes).step_by(MIB as usize) {
        file.write_all_at(&[0xa7; MIB as usize], offset).unwrap();
    }
    file.sync_all().unwrap();
}

/// Refused for its space alone, and its content stays what it is.
fn assert_lacks_space(path: &Path) {
    let before = checksum(path);
    let reasons = overwriting(path).unwrap_err();
    assert!(
        reasons.len() == 1 && reasons[0].contains(" must stay free"),
        "{reasons:?}"
    );
    assert_eq!(checksum(path), before);
}

fn scratch_in(directory: &Path, mib: u64) -> Option<Admission> {
    let size_bytes = mib * MIB;
    admit(probe(directory).unwrap(), Intent::Scratch { size_bytes }).ok()
}

/// Whether scratch files of this size have room in each of the directories alone, and in all.
fn have_room(directories: [&Path; 2], mib: u64) -> (bool, bool) {
    let admissions: Vec<Admission> = directories
        .iter()
        .filter_map(|directory| scratch_in(directory, mib))
        .collect();
    let is_together = check_space_together(admissions.iter()).is_ok();
    (admissions.len() == directories.len(), is_together)
}

#[test]
fn gate_refuses_a_loop_device_whose_image_would_fill_its_filesystem() {
    let name = "gate_refuses_a_loop_device_whose_image_would_fill_its_filesystem";
    if !can_run(name, &["losetup", "mkfs.ext4"]) {
        return;
    }
    let host = Disk::new("ext4", 400 * MIB, "rw");
    let image = host.path().join("image");
    sparse(&image, 500 * MIB);
    let device = Loop::over(&image, &[]);
    let before = checksum(&image);
    let reasons = admitted(&device.node, &consent(device.name())).unwrap_err();
    assert!(
        reasons.len() == 1 && reasons[0].contains(&format!("image behind {}", device.name())),
        "{reasons:?}"
    );
    assert_eq!(checksum(&image), before);
    let small = Loop::sparse(&host.path().join("small"), 200 * MIB, &[]);
    admitted(&small.node, &consent(small.name())).unwrap();
}

#[test]
fn gate_refuses_a_scratch_file_that_would_fill_the_host_of_its_image() {
    let name = "gate_refuses_a_scratch_file_that_would_fill_the_host_of_its_image";
    if !can_run(name, &["losetup", "mkfs.ext4"]) {
        return;
    }
    let host = Disk::new("ext4", 400 * MIB, "rw");
    let image = host.path().join("image");
    let device = Loop::sparse(&image, 1024 * MIB, &[]);
    let node = device.node.to_str().unwrap();
    run("mkfs.ext4", &["-q", node]);
    let inner = Mount::new("ext4", node, &host.path().join("inner"), "rw");
    assert!(scratch_in(&inner.point, 200).is_some());
    assert!(scratch_in(&inner.point, 400).is_none());
    // The image takes from the filesystem in which the other file lies.
    assert_eq!(have_room([&inner.point, host.path()], 100), (true, true));
    assert_eq!(have_room([&inner.point, host.path()], 200), (true, false));
    // The default size knows the room in the image's filesystem, and what fits is admitted.
    let room_mib = scratch_bytes_max(&probe(&inner.point).unwrap()) / MIB;
    assert!((200..400).contains(&room_mib), "{room_mib}");
    assert!(scratch_in(&inner.point, room_mib).is_some());
}

#[test]
fn image_below_two_targets_takes_its_holes_once() {
    let name = "image_below_two_targets_takes_its_holes_once";
    if !can_run(name, &["losetup", "mkfs.ext4", "mkfs.btrfs"]) {
        return;
    }
    let host = Disk::new("ext4", 600 * MIB, "rw");
    // A btrfs may move each block, and so take all holes of the image for a small file.
    for kind in ["ext4", "btrfs"] {
        let device = Loop::sparse(&host.path().join(kind), 400 * MIB, &[]);
        let node = device.node.to_str().unwrap();
        run(&format!("mkfs.{kind}"), &["-q", node]);
        let inner = Mount::new(kind, node, &host.path().join(format!("in-{kind}")), "rw");
        let two = ["one", "two"].map(|name| inner.point.join(name));
        for path in &two {
            std::fs::create_dir(path).unwrap();
        }
        assert_eq!(have_room([&two[0], &two[1]], 120), (true, true), "{kind}");
    }
}

#[test]
fn sparse_files_fit_into_their_filesystem_together() {
    let name = "sparse_files_fit_into_their_filesystem_together";
    if !can_run(name, &["losetup", "mkfs.ext4"]) {
        return;
    }
    let host = Disk::new("ext4", 400 * MIB, "rw");
    let paths = ["a", "b"].map(|file| host.path().join(file));
    for (mib, has_room) in [(100, true), (250, false)] {
        for path in &paths {
            sparse(path, mib * MIB);
        }
        let mut admissions: Vec<Admission> = paths
            .iter()
            .map(|path| overwriting(path).unwrap())
            .collect();
        let answer = check_space_together(admissions.iter());
        assert_eq!(answer.is_ok(), has_room, "{mib} MiB: {answer:?}");
        admissions.pop();
        check_space_together(admissions.iter()).unwrap();
        admissions.extend(scratch_in(host.path(), 150));
        assert_eq!(check_space_together(admissions.iter()).is_ok(), has_room);
    }
}

#[test]
fn subvolumes_and_overlays_share_the_space_of_their_filesystem() {
    let name = "subvolumes_and_overlays_share_the_space_of_their_filesystem";
    if !can_run(name, &["losetup", "mkfs.btrfs", "btrfs", "mkfs.ext4"]) {
        return;
    }
    let btrfs = Disk::new("btrfs", 400 * MIB, "rw");
    let subvolumes = ["one", "two"].map(|name| btrfs.path().join(name));
    for path in &subvolumes {
        run("btrfs", &["subvolume", "create", path.to_str().unwrap()]);
    }
    let [one, two] = &subvolumes;
    assert_eq!(have_room([one, two], 100), (true, true));
    assert_eq!(have_room([one, two], 200), (true, false));
    let ext4 = Disk::new("ext4", 400 * MIB, "rw");
    let at = |name: &str| ext4.path().join(name).display().to_string();
    for name in ["lower", "upper", "work"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        at("lower"),
        at("upper"),
        at("work")
    );
    let place = place();
    let overlay = Mount::new("overlay", "overlay", &place.path().join("over"), &options);
    assert_eq!(have_room([&overlay.point, ext4.path()], 100), (true, true));
    assert_eq!(have_room([&overlay.point, ext4.path()], 200), (true, false));
    // Another filesystem has space of its own.
    assert_eq!(have_room([one, ext4.path()], 200), (true, true));
}

#[test]
fn gate_counts_blocks_that_a_snapshot_or_a_clone_shares_as_missing() {
    let name = "gate_counts_blocks_that_a_snapshot_or_a_clone_shares_as_missing";
    let programs = ["losetup", "mkfs.btrfs", "btrfs", "mkfs.xfs", "cp"];
    if !can_run(name, &programs) {
        return;
    }
    let btrfs = Disk::new("btrfs", 400 * MIB, "rw");
    let subvolume = btrfs.path().join("s");
    let snapshot = btrfs.path().join("snapshot");
    run(
        "btrfs",
        &["subvolume", "create", subvolume.to_str().unwrap()],
    );
    let file = subvolume.join("file");
    written(&file, 200 * MIB);
    let paths = [subvolume.to_str().unwrap(), snapshot.to_str().unwrap()];
    run(
        "btrfs",
        &["subvolume", "snapshot", "-r", paths[0], paths[1]],
    );
    assert_lacks_space(&file);
    let xfs = Disk::new("xfs", 512 * MIB, "rw");
    let file = xfs.path().join("file");
    written(&file, 300 * MIB);
    overwriting(&file).unwrap();
    let clone = xfs.path().join("clone");
    let paths = [file.to_str().unwrap(), clone.to_str().unwrap()];
    run("cp", &["--reflink=always", paths[0], paths[1]]);
    assert_lacks_space(&file);
    std::fs::remove_file(&clone).unwrap();
    overwriting(&file).unwrap();
}
