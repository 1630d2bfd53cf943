//! Reading the ends of a device or file for the gate: past the page cache where it is a device,
//! because each node of a disk has a cache of its own. Opens for reading only; judges nothing.

use crate::failure::{OpenError, open_failed};
use crate::open::{AlignedBlock, device};
use crate::signatures::{Found, Image, Slice, scan, scan_around};
use diskproof_model::target::TargetIdentity;
use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl, fstat, open};
use rustix::io::{Errno, pread};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// A claim can be a moment's: the kernel reading the partition table again because udev asked
/// (BLKRRPART), a descriptor that a process which is just being started still shares until its
/// exec. What lasts longer is a use.
const CLAIM_TRIES: u32 = 20;
const CLAIM_PAUSE: Duration = Duration::from_millis(50);

/// Whether a claim of somebody else may be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// A second: it may be over by then.
    Wait,
    /// Not at all: who has it is known.
    Leave,
}

/// Opens a block device exclusively; EBUSY where somebody else claims it and goes on doing so.
pub(crate) fn open_claiming(
    path: &str,
    flags: OFlags,
    patience: Patience,
) -> Result<OwnedFd, Errno> {
    let tries = if patience == Patience::Wait {
        CLAIM_TRIES
    } else {
        1
    };
    for _ in 1..tries {
        match open(path, flags | OFlags::EXCL, Mode::empty()) {
            Err(Errno::BUSY) => std::thread::sleep(CLAIM_PAUSE),
            result => return result,
        }
    }
    open(path, flags | OFlags::EXCL, Mode::empty())
}

/// Whether the exclusive claim on a block device could be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Nobody else has it.
    Free,
    /// A mount, swap, RAID … has it (EBUSY).
    Another,
}

/// A descriptor to look through.
#[derive(Debug)]
pub(crate) struct Look<'fd> {
    fd: Held<'fd>,
    claim: Claim,
}

#[derive(Debug)]
enum Held<'fd> {
    Owned(OwnedFd),
    Borrowed(BorrowedFd<'fd>),
}

impl Look<'static> {
    /// Opens a block device for reading, exclusively where nobody else claims it.
    pub(crate) fn at_device(
        identity: &TargetIdentity,
        patience: Patience,
    ) -> Result<Self, OpenError> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let (opened, claim) = match open_claiming(&identity.path, flags, patience) {
            Err(Errno::BUSY) => (open(&identity.path, flags, Mode::empty()), Claim::Another),
            result => (result, Claim::Free),
        };
        Self::past_the_cache(opened, claim, &identity.path, &identity.device)
    }

    /// Opens another block device that has something to do with it, such as the disk around a
    /// partition; claims nothing.
    pub(crate) fn beside(path: &str, device: &str) -> Result<Self, OpenError> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        Self::past_the_cache(open(path, flags, Mode::empty()), Claim::Free, path, device)
    }

    fn past_the_cache(
        opened: Result<OwnedFd, Errno>,
        claim: Claim,
        path: &str,
        number: &str,
    ) -> Result<Self, OpenError> {
        let fd = opened.map_err(|errno| open_failed(path, errno))?;
        let stat = fstat(&fd).map_err(|errno| OpenError::from_errno(path, "look at it", errno))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::BlockDevice
            || device(stat.st_rdev) != number
        {
            return Err(OpenError::Changed {
                path: path.to_owned(),
                what: "something else took its place".into(),
            });
        }
        // Refused where the driver has no direct I/O: then the node's own cache is all there is.
        let _ = fcntl_getfl(&fd).and_then(|flags| fcntl_setfl(&fd, flags | OFlags::DIRECT));
        Ok(Self {
            fd: Held::Owned(fd),
            claim,
        })
    }

    /// Opens a regular file for reading.
    pub(crate) fn at_file(identity: &TargetIdentity) -> Result<Self, OpenError> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let fd = open(&identity.path, flags, Mode::empty())
            .map_err(|errno| open_failed(&identity.path, errno))?;
        let stat = fstat(&fd)
            .map_err(|errno| OpenError::from_errno(&identity.path, "look at it", errno))?;
        if device(stat.st_dev) != identity.device || stat.st_ino != identity.inode {
            return Err(OpenError::Changed {
                path: identity.path.clone(),
                what: "something else took its place".into(),
            });
        }
        Ok(Self {
            fd: Held::Owned(fd),
            claim: Claim::Free,
        })
    }
}

impl<'fd> Look<'fd> {
    /// Looks through a descriptor that is open already.
    pub(crate) fn through(fd: BorrowedFd<'fd>) -> Self {
        Self {
            fd: Held::Borrowed(fd),
            claim: Claim::Free,
        }
    }

    pub(crate) fn claim(&self) -> Claim {
        self.claim
    }

    /// Looks for signatures at the ends and in the partitions.
    pub(crate) fn scan(&self, size_bytes: u64, known: &[Slice]) -> Found {
        let read_at = |offset: u64, length: usize| read_block(self.fd(), offset, length);
        scan(&Image::new(&read_at, size_bytes), known)
    }

    /// Looks for what all of a divided disk is.
    pub(crate) fn scan_around(&self, size_bytes: u64) -> Found {
        let read_at = |offset: u64, length: usize| read_block(self.fd(), offset, length);
        scan_around(&Image::new(&read_at, size_bytes))
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match &self.fd {
            Held::Owned(fd) => fd.as_fd(),
            Held::Borrowed(fd) => *fd,
        }
    }
}

/// Up to `length` bytes; fewer only at the end.
fn read_block(fd: BorrowedFd<'_>, offset: u64, length: usize) -> Result<Vec<u8>, Errno> {
    let mut block = AlignedBlock::zeroed(length);
    let mut filled = 0;
    while filled < length {
        match pread(fd, &mut block.bytes()[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            // The last block of a device whose size is no multiple of its sectors.
            Err(Errno::INVAL)
                if fcntl_getfl(fd).is_ok_and(|flags| flags.contains(OFlags::DIRECT)) =>
            {
                fcntl_getfl(fd)
                    .and_then(|flags| fcntl_setfl(fd, flags.difference(OFlags::DIRECT)))?;
            }
            Err(errno) => return Err(errno),
        }
    }
    Ok(block.bytes()[..filled].to_vec())
}
