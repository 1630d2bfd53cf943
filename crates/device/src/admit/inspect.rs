//! Reads the ends of a device or file for the gate, to see what they hold. Bypasses the page cache
//! of a device, because each node of a disk has its own cache. Opens for reading only.

use crate::failure::{OpenError, changed, open_failed};
use crate::file::direct_io::{AlignedBlock, clear_flags, is_direct};
use crate::file::held::Held;
use crate::kernel::naming::is_device;
use crate::signatures::{Image, ScanResult, Slice, scan, scan_around, scan_device};
use diskproof_model::target::TargetIdentity;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::{Errno, pread};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// Tries to open a claimed device. A claim can last for a moment only: while the kernel reads the
/// partition table again for udev (BLKRRPART), or while a process that is just being started shares
/// a descriptor until its exec.
pub(crate) const CLAIM_TRIES: u32 = 20;
/// The pause between two tries: a claim that lasts for a second is a use.
const CLAIM_PAUSE: Duration = Duration::from_millis(50);

/// Opens a block device exclusively; EBUSY where another program claims it and keeps the claim.
pub(crate) fn open_claiming(held: &Held, flags: OFlags, tries: u32) -> Result<OwnedFd, Errno> {
    for _ in 1..tries {
        match held.reopen(flags | OFlags::EXCL) {
            Err(Errno::BUSY) => std::thread::sleep(CLAIM_PAUSE),
            result => return result,
        }
    }
    held.reopen(flags | OFlags::EXCL)
}

/// Reads through a descriptor.
#[derive(Debug)]
pub(crate) struct Inspector<F> {
    fd: F,
    /// True while a mount, swap, RAID … has the exclusive claim on the device (EBUSY).
    is_claimed: bool,
}

/// Nothing waits for a medium, or for the other end of a pipe.
const READING: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);

impl Inspector<OwnedFd> {
    /// Opens a block device for reading, exclusively where no other program claims it.
    pub(crate) fn open_target(identity: &TargetIdentity, tries: u32) -> Result<Self, OpenError> {
        let held = Held::identified(identity)?;
        let (opened, is_claimed) = match open_claiming(&held, READING, tries) {
            Err(Errno::BUSY) => (held.reopen(READING), true),
            result => (result, false),
        };
        let fd = opened.map_err(|errno| open_failed(&identity.path, errno))?;
        Ok(Self::bypass_cache(fd, is_claimed))
    }

    /// Opens another block device that shares blocks with the target, such as the disk around a
    /// partition; claims nothing.
    pub(crate) fn open_relative(path: &str, device: &str) -> Result<Self, OpenError> {
        let fd = Held::open(Path::new(path))
            .and_then(|held| held.reopen(READING))
            .map_err(|errno| open_failed(path, errno))?;
        let stat = fstat(&fd).map_err(|errno| open_failed(path, errno))?;
        if !is_device(&stat, device) {
            return Err(changed(path, "something else replaced it"));
        }
        Ok(Self::bypass_cache(fd, false))
    }

    fn bypass_cache(fd: OwnedFd, is_claimed: bool) -> Self {
        // Refused where the driver has no direct I/O: then the node's own cache is all there is.
        let _ = fcntl_getfl(&fd).and_then(|flags| fcntl_setfl(&fd, flags | OFlags::DIRECT));
        Self { fd, is_claimed }
    }
}

impl<F: AsFd> Inspector<F> {
    /// Reads through a descriptor that is open already.
    pub(crate) fn through(fd: F) -> Self {
        Self {
            fd,
            is_claimed: false,
        }
    }

    pub(crate) fn is_claimed(&self) -> bool {
        self.is_claimed
    }

    /// Looks for signatures at the ends and in the partitions.
    pub(crate) fn scan(&self, size_bytes: u64, known: &[Slice]) -> ScanResult {
        self.look_at(size_bytes, |image| scan(image, known))
    }

    /// As [`Self::scan`], and looks also for data at the ends that no signature explains.
    pub(crate) fn scan_device(&self, size_bytes: u64, known: &[Slice]) -> ScanResult {
        self.look_at(size_bytes, |image| scan_device(image, known))
    }

    /// Looks for signatures of a partitioned disk as a whole; a partition table that names
    /// partitions does not count.
    pub(crate) fn scan_around(&self, size_bytes: u64) -> ScanResult {
        self.look_at(size_bytes, scan_around)
    }

    fn look_at(&self, size_bytes: u64, scan: impl FnOnce(&Image<'_>) -> ScanResult) -> ScanResult {
        scan(&Image::new(
            &|offset, length| read_block(self.fd.as_fd(), offset, length),
            size_bytes,
        ))
    }
}

/// Reads up to `length` bytes; fewer only at the end of the device or file.
pub(crate) fn read_block(fd: BorrowedFd<'_>, offset: u64, length: usize) -> Result<Vec<u8>, Errno> {
    let mut block = AlignedBlock::zeroed(length);
    let mut filled = 0;
    while filled < length {
        match pread(fd, &mut block.bytes()[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            // The last block of a device whose size is no multiple of its sectors.
            Err(Errno::INVAL) if is_direct(fd) => clear_flags(fd, OFlags::DIRECT)?,
            Err(errno) => return Err(errno),
        }
    }
    Ok(block.bytes()[..filled].to_vec())
}
