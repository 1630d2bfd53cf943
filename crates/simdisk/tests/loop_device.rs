//! `LoopDevice` on files and on simulated disks, with a real file system on top.

// As in any test, also in the functions that tests share.
#![allow(clippy::unwrap_used)]

mod root;

use diskproof_simdisk::{Direct, LoopDevice, LoopError, Model};
use root::{AlignedBuffer, Scratch, open, open_direct, serve};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const SIZE: u64 = 64 << 20;

fn image(scratch: &Scratch) -> std::path::PathBuf {
    let path = scratch.path("image");
    File::create(&path).unwrap().set_len(SIZE).unwrap();
    path
}

fn sysfs(device: &Path, attribute: &str) -> Option<String> {
    let node = device.file_name()?;
    let attribute = Path::new("/sys/block").join(node).join(attribute);
    Some(std::fs::read_to_string(attribute).ok()?.trim().to_owned())
}

#[test]
fn loop_device_attaches_with_sector_size_and_detaches_on_drop() {
    if root::missing("loop_device_attaches_with_sector_size_and_detaches_on_drop") {
        return;
    }
    let scratch = Scratch::new();
    let image = image(&scratch);
    for sector_bytes in [512, 4096] {
        let device = LoopDevice::attach(&image, Direct::Off, sector_bytes).unwrap();
        let path = device.path().to_owned();
        let backing = Some(image.display().to_string());
        for (attribute, expected) in [
            ("queue/logical_block_size", Some(sector_bytes.to_string())),
            ("size", Some((SIZE / 512).to_string())),
            ("loop/backing_file", backing.clone()),
        ] {
            assert_eq!(sysfs(&path, attribute), expected);
        }
        drop(device);
        // Another test may have got the same number since. The kernel detaches only when the last
        // program, such as one that reads signatures, has closed the device.
        let is_attached = || sysfs(&path, "loop/backing_file") == backing;
        let deadline = Instant::now() + Duration::from_secs(30);
        while is_attached() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!is_attached());
    }
}

#[test]
fn loop_device_leaves_no_visible_descriptor() {
    if root::missing("loop_device_leaves_no_visible_descriptor") {
        return;
    }
    let scratch = Scratch::new();
    let device = LoopDevice::attach(&image(&scratch), Direct::Off, 512).unwrap();
    let open = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .flatten()
        .filter_map(|fd| std::fs::read_link(fd.path()).ok());
    assert!(!open.into_iter().any(|target| target == device.path()));
}

#[test]
fn loop_device_passes_transfers_and_flushes() {
    let Some((_scratch, disk)) = serve(
        "loop_device_passes_transfers_and_flushes",
        Model::default(),
        SIZE,
    ) else {
        return;
    };
    let device = LoopDevice::attach(disk.path(), Direct::On, 512).unwrap();
    let before = disk.stats();
    let file = open_direct(device.path()).unwrap();
    let mut buffer = AlignedBuffer::new(4096);
    buffer.bytes_mut().fill(3);
    file.write_all_at(buffer.bytes_mut(), 8192).unwrap();
    file.sync_data().unwrap();
    file.read_exact_at(buffer.bytes_mut(), 8192).unwrap();
    let after = disk.stats();
    assert_eq!(after.writes - before.writes, 1);
    assert_eq!(after.flushes - before.flushes, 1);
    assert_eq!(after.reads - before.reads, 1);
    assert!(buffer.bytes_mut().iter().all(|b| *b == 3));
}

#[test]
fn loop_device_carries_ext4() {
    let Some((scratch, disk)) = serve("loop_device_carries_ext4", Model::default(), SIZE) else {
        return;
    };
    let device = LoopDevice::attach(disk.path(), Direct::On, 512).unwrap();
    let mkfs = Command::new("mkfs.ext4")
        .arg("-q")
        .arg(device.path())
        .status();
    let Ok(mkfs) = mkfs else {
        eprintln!("SKIPPED: loop_device_carries_ext4: mkfs.ext4");
        return;
    };
    assert!(mkfs.success());
    let mount_point = scratch.path("mnt");
    std::fs::create_dir(&mount_point).unwrap();
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount(device.path(), &mount_point, "ext4", flags, None).unwrap();
    let written = std::fs::write(mount_point.join("file"), vec![5; 1 << 20]);
    let read = std::fs::read(mount_point.join("file"));
    rustix::mount::unmount(&mount_point, rustix::mount::UnmountFlags::empty()).unwrap();
    written.unwrap();
    assert_eq!(read.unwrap(), vec![5; 1 << 20]);
}

#[test]
fn dropped_disk_under_loop_device_does_not_hang() {
    let Some((_scratch, disk)) = serve(
        "dropped_disk_under_loop_device_does_not_hang",
        Model::default(),
        SIZE,
    ) else {
        return;
    };
    let device = LoopDevice::attach(disk.path(), Direct::On, 512).unwrap();
    let file = open(device.path());
    file.write_all_at(&[1; 100_000], 0).unwrap();
    drop(disk);
    // What was still in the cache is lost, and says so.
    assert!(file.sync_all().is_err());
    drop(file);
    drop(device);
}

#[test]
fn loop_device_errors_name_file_device_and_errno() {
    if root::missing("loop_device_errors_name_file_device_and_errno") {
        return;
    }
    let error = LoopDevice::attach(Path::new("/nonexistent/image"), Direct::On, 512).unwrap_err();
    assert!(matches!(error, LoopError::File { .. }), "{error}");
    for part in ["/nonexistent/image", "(ENOENT)"] {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
    let scratch = Scratch::new();
    let image = image(&scratch);
    let error = LoopDevice::attach(&image, Direct::Off, 777).unwrap_err();
    let LoopError::Configure { sector_bytes, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(sector_bytes, 777);
    for part in [image.to_str().unwrap(), "/dev/loop", "(EINVAL)"] {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
    let busy = LoopError::Busy { path: image };
    assert!(busy.to_string().contains("(EBUSY)"), "{busy}");
}
