//! `SimDirectory` end to end: files as anywhere, and O_DIRECT refused.

mod root;

use diskproof_simdisk::{DirectAccess, SimDirectory};
use root::{AlignedBuffer, Scratch, errno, open, open_direct};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

#[test]
fn directory_creates_writes_lists_and_unlinks_files() {
    if root::missing("directory_creates_writes_lists_and_unlinks_files") {
        return;
    }
    let scratch = Scratch::new();
    let directory = SimDirectory::serve(DirectAccess::Accepted, &scratch.path("mnt")).unwrap();
    let path = directory.path().join("file");
    let mut file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .unwrap();
    file.write_all(&vec![7; 3 << 20]).unwrap();
    file.sync_all().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), vec![7; 3 << 20]);
    file.set_len(10).unwrap();
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 5000).unwrap();
    assert_eq!(path.metadata().unwrap().len(), 5000);
    for n in 0..500 {
        File::create(directory.path().join(format!("{n}"))).unwrap();
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 501);
    std::fs::remove_file(&path).unwrap();
    let mut start = [0; 10];
    file.read_exact_at(&mut start, 0).unwrap();
    assert_eq!(start, [7; 10], "an unlinked file lives while it is open");
    assert_eq!(errno(File::open(&path)), Some(libc::ENOENT));
    assert_eq!(directory.refusals(), 0);
    let mut direct = open_direct(&directory.path().join("0")).unwrap();
    let accepted = direct.read(AlignedBuffer::new(4096).bytes_mut());
    assert_eq!(accepted.unwrap(), 0);
    drop((file, direct));
    let mount_point = directory.path().to_owned();
    drop(directory);
    assert_eq!(std::fs::read_dir(mount_point).unwrap().count(), 0);
}

#[test]
fn directory_refuses_direct_io_at_open() {
    if root::missing("directory_refuses_direct_io_at_open") {
        return;
    }
    let scratch = Scratch::new();
    let directory = SimDirectory::serve(DirectAccess::RefusedAtOpen, &scratch.path("mnt")).unwrap();
    let path = directory.path().join("file");
    let mut creating = File::options();
    creating
        .write(true)
        .create_new(true)
        .custom_flags(libc::O_DIRECT);
    assert_eq!(errno(creating.open(&path)), Some(libc::EINVAL));
    // Made before it was refused, as on other file systems.
    assert!(path.exists());
    assert_eq!(errno(open_direct(&path)), Some(libc::EINVAL));
    assert_eq!(directory.refusals(), 2);
    std::fs::write(&path, b"buffered").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"buffered");
}

#[test]
fn directory_refuses_direct_io_at_transfer() {
    if root::missing("directory_refuses_direct_io_at_transfer") {
        return;
    }
    let scratch = Scratch::new();
    for direct in [DirectAccess::RefusedAtTransfer, DirectAccess::RefusedAtOpen] {
        let directory = SimDirectory::serve(direct, &scratch.path("mnt")).unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, [1; 8192]).unwrap();
        let file = match direct {
            DirectAccess::RefusedAtTransfer => open_direct(&path).unwrap(),
            _ => {
                let file = open(&path);
                // The kernel (6.18) allows this for any FUSE file: its address space has a
                // direct_IO operation.
                rustix::fs::fcntl_setfl(&file, rustix::fs::OFlags::DIRECT).unwrap();
                file
            }
        };
        let mut buffer = AlignedBuffer::new(4096);
        let read = file.read_at(buffer.bytes_mut(), 0);
        assert_eq!(errno(read), Some(libc::EINVAL));
        let written = file.write_at(buffer.bytes_mut(), 0);
        assert_eq!(errno(written), Some(libc::EINVAL));
        assert_eq!(directory.refusals(), 2);
    }
}
