//! What the end-to-end tests share: whether they can run, their own directory, aligned memory.
// Each test binary uses a part of it.
#![allow(dead_code, unsafe_code)]

use diskproof_simdisk::{Model, SimDisk};
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Says on stderr why a test cannot run here; false where it can.
pub(crate) fn missing(test: &str) -> bool {
    let reason = if !rustix::process::geteuid().is_root() {
        "root"
    } else if !Path::new("/dev/fuse").exists() {
        "/dev/fuse"
    } else if !Path::new("/dev/loop-control").exists() {
        "/dev/loop-control"
    } else {
        return false;
    };
    eprintln!("SKIPPED: {test}: {reason}");
    true
}

/// A directory for mount points and files. Make it first, so that it is dropped last.
pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Memory at a page boundary, as O_DIRECT wants it.
pub(crate) struct AlignedBuffer {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl AlignedBuffer {
    pub(crate) fn new(length: usize) -> Self {
        let memory = vec![0; length + 4096];
        let start = memory.as_ptr().align_offset(4096);
        Self {
            memory,
            start,
            length,
        }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}

pub(crate) fn open_direct(path: &Path) -> io::Result<File> {
    File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(path)
}

/// A directory, and a disk of this model in it, where the test can run.
pub(crate) fn serve(test: &str, model: Model, size_bytes: u64) -> Option<(Scratch, SimDisk)> {
    if missing(test) {
        return None;
    }
    let scratch = Scratch::new();
    let disk = SimDisk::serve(model, size_bytes, &scratch.path("disk")).expect("FUSE works");
    Some((scratch, disk))
}

/// The number of the error; `None` where there is none.
pub(crate) fn errno<T>(result: io::Result<T>) -> Option<i32> {
    result.err()?.raw_os_error()
}

pub(crate) fn open(path: &Path) -> File {
    File::options()
        .read(true)
        .write(true)
        .open(path)
        .expect("it may be opened")
}
