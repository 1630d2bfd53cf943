//! Who is who, on real loop devices, partitions, filesystems, overlays and special files.

use diskproof_device::{Intent, OpenError, OpenTarget, ProbeError, admit, probe};
use diskproof_model::target::{LayerKind, TargetIdentity, TargetKind};
use diskproof_simdisk::testbed::{Disk, Loop, Mount, Zram, can_run, place, run};
use std::os::unix::fs::symlink;
use std::path::Path;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

fn names(identity: &TargetIdentity) -> Vec<&str> {
    identity
        .layers
        .iter()
        .map(|layer| layer.name.as_str())
        .collect()
}

/// Kernel names of the layers below /var/tmp, where the files behind the loop devices lie.
fn machine() -> Vec<String> {
    probe(Path::new("/var/tmp"))
        .unwrap()
        .layers
        .into_iter()
        .map(|layer| layer.name)
        .collect()
}

#[test]
fn filesystems_on_a_loop_device_lead_to_the_machines_disk() {
    if !can_run(
        "filesystems_on_a_loop_device_lead_to_the_machines_disk",
        &["losetup", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"],
    ) {
        return;
    }
    for kind in ["ext4", "xfs", "btrfs"] {
        let disk = Disk::new(kind, GIB, "noatime");
        let identity = probe(disk.path()).unwrap();
        let filesystem = identity.filesystem.clone().unwrap();
        assert_eq!(
            (identity.kind, filesystem.kind.as_str()),
            (TargetKind::Directory, kind)
        );
        assert_eq!(
            (filesystem.mount_point.as_str(), filesystem.source.as_str()),
            (
                disk.path().to_str().unwrap(),
                disk.device.node.to_str().unwrap()
            )
        );
        assert!(
            filesystem.options.contains(&"noatime".to_owned())
                && filesystem.free_bytes <= filesystem.size_bytes
        );
        let mut expected = vec![disk.device.name().to_owned()];
        expected.extend(machine());
        assert_eq!(
            (names(&identity), identity.unresolved.clone()),
            (expected.iter().map(String::as_str).collect(), None),
            "{kind}"
        );
        let layer = &identity.layers[0];
        assert_eq!(
            (layer.kind, layer.size_bytes, layer.backing_direct),
            (LayerKind::Loop, GIB, Some(true))
        );
        assert!(layer.backing_file.as_ref().unwrap().ends_with("/image"));
        let below = probe(Path::new("/var/tmp")).unwrap().filesystem;
        assert_eq!(layer.backing_filesystem, below.map(|below| below.kind));

        std::fs::write(disk.path().join("a file"), vec![1; 2 * MIB as usize]).unwrap();
        let file = probe(&disk.path().join("a file")).unwrap();
        assert_eq!(
            (file.kind, file.size_bytes, file.filesystem),
            (
                TargetKind::File,
                2 * MIB,
                probe(disk.path()).unwrap().filesystem
            )
        );
    }
}

#[test]
fn a_btrfs_subvolume_and_a_second_member_are_found() {
    if !can_run(
        "a_btrfs_subvolume_and_a_second_member_are_found",
        &["losetup", "mkfs.btrfs", "btrfs"],
    ) {
        return;
    }
    let place = place();
    let one = Loop::sparse(&place.path().join("one"), GIB, &[]);
    let two = Loop::sparse(&place.path().join("two"), GIB, &[]);
    run(
        "mkfs.btrfs",
        &[
            "-q",
            "-f",
            "-d",
            "raid0",
            "-m",
            "raid1",
            one.node.to_str().unwrap(),
            two.node.to_str().unwrap(),
        ],
    );
    // The kernel learns of the second member only by a scan.
    run(
        "btrfs",
        &[
            "device",
            "scan",
            one.node.to_str().unwrap(),
            two.node.to_str().unwrap(),
        ],
    );
    let mount = Mount::new(
        "btrfs",
        one.node.to_str().unwrap(),
        &place.path().join("mnt"),
        "rw",
    );
    let sub = mount.point.join("sub");
    run("btrfs", &["subvolume", "create", sub.to_str().unwrap()]);
    let identity = probe(&sub).unwrap();
    for name in [one.name(), two.name()] {
        assert!(
            names(&identity).contains(&name),
            "{name} {:?}",
            names(&identity)
        );
    }
    assert_eq!(identity.filesystem.unwrap().kind, "btrfs");
    drop(mount);
    // The kernel holds the devices for a moment after the unmount, longer on a busy machine.
    let forget = "n=0; until btrfs device scan --forget \"$0\"; do \
                  [ $((n += 1)) -lt 50 ] || exit 1; sleep 0.1; done";
    run("sh", &["-c", forget, one.node.to_str().unwrap()]);
}

#[test]
fn partitions_and_loops_over_loops_are_followed() {
    if !can_run(
        "partitions_and_loops_over_loops_are_followed",
        &["losetup", "sfdisk", "partx"],
    ) {
        return;
    }
    let place = place();
    let image = place.path().join("image");
    std::fs::File::create(&image)
        .unwrap()
        .set_len(64 * MIB)
        .unwrap();
    run(
        "sh",
        &[
            "-c",
            &format!(
                "printf 'label: gpt\nsize=16M\nsize=16M\n' | sfdisk -q {}",
                image.display()
            ),
        ],
    );
    let outer = Loop::over(&image, &["--partscan"]);
    // Kernels built without partition parsers (CONFIG_EFI_PARTITION) learn them from partx; for
    // others this changes nothing.
    run("partx", &["--update", outer.node.to_str().unwrap()]);
    let partition = probe(&outer.partition(2)).unwrap();
    let below = |first: &[&str]| {
        first
            .iter()
            .map(|name| (*name).to_owned())
            .chain(machine())
            .collect::<Vec<_>>()
    };
    let second = format!("{}p2", outer.name());
    assert_eq!(names(&partition), below(&[&second, outer.name()]));
    assert_eq!(
        (
            partition.kind,
            partition.size_bytes,
            partition.filesystem.is_none()
        ),
        (TargetKind::BlockDevice, 16 * MIB, true)
    );
    assert_eq!(
        (partition.layers[0].kind, partition.layers[1].kind),
        (LayerKind::Partition, LayerKind::Loop)
    );

    let inner = Loop::over(&outer.partition(1), &[]);
    let identity = probe(&inner.node).unwrap();
    let first = format!("{}p1", outer.name());
    assert_eq!(
        names(&identity),
        below(&[inner.name(), &first, outer.name()])
    );
    assert_eq!(identity.layers[0].backing_direct, Some(false));
    drop(inner);
}

#[test]
fn a_loop_device_on_tmpfs_ends_there() {
    if !can_run("a_loop_device_on_tmpfs_ends_there", &["losetup"]) {
        return;
    }
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let device = Loop::sparse(
        &place.path().join("image"),
        16 * MIB,
        &["--sector-size", "4096"],
    );
    let identity = probe(&device.node).unwrap();
    assert_eq!(names(&identity), [device.name()]);
    assert_eq!(
        identity.unresolved.as_deref(),
        Some("tmpfs: it is in memory")
    );
    assert_eq!(identity.disks().count(), 1, "its own counters still count");
    assert_eq!(
        (
            identity.layers[0].logical_block_bytes,
            identity.layers[0].link.clone()
        ),
        (Some(4096), None)
    );
    let target = OpenTarget::open(admit(identity, Intent::Read).unwrap()).unwrap();
    assert_eq!(target.alignment_bytes(), 4096);
}

#[test]
fn an_overlay_is_resolved_by_its_upper_directory() {
    if !can_run(
        "an_overlay_is_resolved_by_its_upper_directory",
        &["losetup", "mkfs.ext4"],
    ) {
        return;
    }
    let disk = Disk::new("ext4", 64 * MIB, "rw");
    for directory in ["lower", "upper", "work", "merged"] {
        std::fs::create_dir(disk.path().join(directory)).unwrap();
    }
    std::fs::write(disk.path().join("lower/below"), vec![1; MIB as usize]).unwrap();
    let at = |name: &str| disk.path().join(name).to_str().unwrap().to_owned();
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        at("lower"),
        at("upper"),
        at("work")
    );
    let overlay = Mount::new("overlay", "overlay", Path::new(&at("merged")), &options);
    std::fs::write(overlay.point.join("above"), vec![1; MIB as usize]).unwrap();

    for resolved in [
        probe(&overlay.point).unwrap(),
        probe(&overlay.point.join("above")).unwrap(),
    ] {
        assert_eq!(resolved.filesystem.as_ref().unwrap().kind, "overlay");
        assert_eq!(
            (
                resolved.layers[0].name.as_str(),
                resolved.unresolved.as_deref()
            ),
            (disk.device.name(), None)
        );
    }
    let below = probe(&overlay.point.join("below")).unwrap();
    assert!(below.layers.is_empty() && below.unresolved.unwrap().contains("lower directory"));
    drop(overlay);

    let options = format!("lowerdir={}:{}", at("lower"), at("upper"));
    let read_only = Mount::new("overlay", "overlay", Path::new(&at("merged")), &options);
    assert!(
        probe(&read_only.point)
            .unwrap()
            .unresolved
            .unwrap()
            .contains("no upper directory")
    );
    drop(read_only);
}

#[test]
fn zram_differs_from_a_disk() {
    if !can_run("zram_differs_from_a_disk", &[]) {
        return;
    }
    let Some(zram) = Zram::new(8 * MIB) else {
        eprintln!("SKIPPED: zram_differs_from_a_disk: zram");
        return;
    };
    let identity = probe(&zram.node).unwrap();
    assert_eq!(
        (
            identity.layers[0].kind,
            identity.layers.len(),
            identity.size_bytes
        ),
        (LayerKind::Zram, 1, 8 * MIB)
    );
    assert_eq!(identity.unresolved, None);
}

#[test]
fn what_cannot_be_measured_is_named() {
    let place = place();
    let at = |name: &str| place.path().join(name);
    let text = |path: &Path| probe(path).unwrap_err().to_string();
    assert_eq!(
        text(Path::new("/dev/null")),
        "/dev/null: it is a character device; name a directory, a regular file or a block device"
    );
    run("mkfifo", &[at("fifo").to_str().unwrap()]);
    assert!(text(&at("fifo")).contains("it is a FIFO; name a directory"));
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    assert!(text(&at("socket")).contains("it is a socket"));

    let missing = ProbeError::Missing {
        path: at("a/b/c").display().to_string(),
        component: at("a").display().to_string(),
    };
    assert_eq!(probe(&at("a/b/c")).unwrap_err(), missing);
    symlink("nowhere/at/all", at("dangling")).unwrap();
    let ProbeError::Dangling {
        link, points_to, ..
    } = probe(&at("dangling/x")).unwrap_err()
    else {
        panic!()
    };
    assert_eq!(
        (link, points_to.as_str()),
        (at("dangling").display().to_string(), "nowhere/at/all")
    );
    symlink("circle", at("circle")).unwrap();
    assert!(text(&at("circle")).contains("ELOOP"));
    std::fs::write(at("file"), "x").unwrap();
    let ProbeError::NotDirectory { component, .. } = probe(&at("file/x")).unwrap_err() else {
        panic!()
    };
    assert_eq!(component, at("file").display().to_string());
    // An error names the path once.
    symlink("nowhere", at("link")).unwrap();
    let slash = at("file").join("");
    for path in [at("none"), at("link"), slash, "none".into(), "".into()] {
        let text = text(&path);
        let shown = path.display().to_string();
        let name = shown.trim_end_matches('/');
        assert!(name.is_empty() || text.matches(name).count() == 1, "{text}");
        assert!(text.contains(": it ") && !text.starts_with(':'), "{text}");
    }
    let odd = place
        .path()
        .join(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"odd\xff"));
    std::fs::create_dir(&odd).unwrap();
    assert!(matches!(
        probe(&odd).unwrap_err(),
        ProbeError::NotUtf8 { .. }
    ));
    assert!(matches!(
        probe(Path::new("")).unwrap_err(),
        ProbeError::Missing { .. }
    ));
}

#[test]
fn symlinks_lead_to_the_real_path() {
    let place = place();
    std::fs::create_dir(place.path().join("real")).unwrap();
    symlink("real", place.path().join("link")).unwrap();
    let identity = probe(&place.path().join("link")).unwrap();
    assert_eq!(identity.path, place.path().join("real").to_str().unwrap());
}

#[test]
fn a_disk_that_may_not_be_opened_is_still_known() {
    if !can_run("a_disk_that_may_not_be_opened_is_still_known", &[]) {
        return;
    }
    let Some(name) = machine().pop() else {
        panic!("the machine's own disk is not resolved")
    };
    let node = Path::new("/dev").join(&name);
    if !node.exists()
        || std::fs::File::open(&node)
            .err()
            .is_none_or(|error| error.raw_os_error() != Some(libc::EPERM))
    {
        eprintln!(
            "SKIPPED: a_disk_that_may_not_be_opened_is_still_known: a disk whose node refuses root"
        );
        return;
    }
    let identity = probe(&node).unwrap();
    assert!(identity.size_bytes > GIB && identity.layers[0].logical_block_bytes.is_some());
    let error = OpenTarget::open(admit(identity, Intent::Read).unwrap()).unwrap_err();
    assert_eq!(
        error,
        OpenError::Forbidden {
            path: node.display().to_string()
        }
    );
    let text = error.to_string();
    assert!(
        text.contains("the kernel or the hypervisor forbids opening it (EPERM)")
            && text.contains("'diskproof info"),
        "{text}"
    );
}
