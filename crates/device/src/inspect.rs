//! Reads the ends of a device or file for the gate. Bypasses the page cache of a device, because
//! each node of a disk has its own cache. Opens for reading only; judges nothing.

use crate::direct_io::{AlignedBlock, clear_flags, is_direct};
use crate::failure::{OpenError, open_failed};
use crate::held::{Held, changed};
use crate::naming::device_number;
use crate::signatures::{Image, ScanResult, Slice, scan, scan_around, scan_device};
use diskproof_model::target::TargetIdentity;
use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::{Errno, pread};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// A claim can be a moment's: the kernel reading the partition table again because udev asked
/// (BLKRRPART), a descriptor that a process which is just being started still shares until its
/// exec. What lasts longer is a use.
const CLAIM_TRIES: u32 = 20;
const CLAIM_PAUSE: Duration = Duration::from_millis(50);

/// How long a claim of another program is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryPolicy {
    /// A second: it may be over by then.
    OneSecond,
    /// Not at all: the holder is known.
    Never,
}

/// Opens a block device exclusively; EBUSY where another program claims it and keeps the claim.
pub(crate) fn open_claiming(
    held: &Held,
    flags: OFlags,
    retry: RetryPolicy,
) -> Result<OwnedFd, Errno> {
    let tries = match retry {
        RetryPolicy::OneSecond => CLAIM_TRIES,
        RetryPolicy::Never => 1,
    };
    for _ in 1..tries {
        match held.reopen(flags | OFlags::EXCL) {
            Err(Errno::BUSY) => std::thread::sleep(CLAIM_PAUSE),
            result => return result,
        }
    }
    held.reopen(flags | OFlags::EXCL)
}

/// Whether the exclusive claim on a block device could be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// No other program has it.
    Free,
    /// A mount, swap, RAID … has it (EBUSY).
    Another,
}

/// Reads through a descriptor.
#[derive(Debug)]
pub(crate) struct Inspector<F> {
    fd: F,
    claim: Claim,
}

const READING: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);

impl Inspector<OwnedFd> {
    /// Opens a block device for reading, exclusively where no other program claims it.
    pub(crate) fn of_device(
        identity: &TargetIdentity,
        retry: RetryPolicy,
    ) -> Result<Self, OpenError> {
        let held = Held::identified(identity)?;
        let (opened, claim) = match open_claiming(&held, READING, retry) {
            Err(Errno::BUSY) => (held.reopen(READING), Claim::Another),
            result => (result, Claim::Free),
        };
        let fd = opened.map_err(|errno| open_failed(&identity.path, errno))?;
        Ok(Self::past_the_cache(fd, claim))
    }

    /// Opens another block device that shares blocks with the target, such as the disk around a
    /// partition; claims nothing.
    pub(crate) fn of_relative(path: &str, device: &str) -> Result<Self, OpenError> {
        let failed = |errno| open_failed(path, errno);
        let fd = Held::at(Path::new(path))
            .and_then(|held| held.reopen(READING))
            .map_err(failed)?;
        let stat = fstat(&fd).map_err(failed)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::BlockDevice
            || device_number(stat.st_rdev) != device
        {
            return Err(changed(path, "something else replaced it"));
        }
        Ok(Self::past_the_cache(fd, Claim::Free))
    }

    fn past_the_cache(fd: OwnedFd, claim: Claim) -> Self {
        // Refused where the driver has no direct I/O: then the node's own cache is all there is.
        let _ = fcntl_getfl(&fd).and_then(|flags| fcntl_setfl(&fd, flags | OFlags::DIRECT));
        Self { fd, claim }
    }
}

impl<F: AsFd> Inspector<F> {
    /// Reads through a descriptor that is open already.
    pub(crate) fn through(fd: F) -> Self {
        let claim = Claim::Free;
        Self { fd, claim }
    }

    pub(crate) fn claim(&self) -> Claim {
        self.claim
    }

    /// Looks for signatures at the ends and in the partitions.
    pub(crate) fn scan(&self, size_bytes: u64, known: &[Slice]) -> ScanResult {
        let read_at = |offset, length| self.read_at(offset, length);
        scan(&Image::new(&read_at, size_bytes), known)
    }

    /// The same, and for data at the ends that no signature explains.
    pub(crate) fn scan_device(&self, size_bytes: u64, known: &[Slice]) -> ScanResult {
        let read_at = |offset, length| self.read_at(offset, length);
        scan_device(&Image::new(&read_at, size_bytes), known)
    }

    /// Looks for what all of a divided disk is.
    pub(crate) fn scan_around(&self, size_bytes: u64) -> ScanResult {
        let read_at = |offset, length| self.read_at(offset, length);
        scan_around(&Image::new(&read_at, size_bytes))
    }

    fn read_at(&self, offset: u64, length: usize) -> Result<Vec<u8>, Errno> {
        read_block(self.fd.as_fd(), offset, length)
    }
}

/// Up to `length` bytes; fewer only at the end.
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
