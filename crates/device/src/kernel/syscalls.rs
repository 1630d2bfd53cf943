//! The system calls of this crate that no safe wrapper offers: FIEMAP, leases, loop devices, masks
//! and dispositions of signals, write-back of pages, hints about files, tables of descriptors. Raw
//! answers only.
#![allow(unsafe_code)]

use crate::kernel::file_id::FileId;
use crate::kernel::naming::{errno_of, is_device};
use diskproof_model::shape::WriteLife;
use rustix::fs::{Mode, OFlags, fstat, open};
use rustix::io::Errno;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `FS_IOC_FIEMAP`, from linux/fs.h: `_IOWR('f', 11, struct fiemap)` with the 32 bytes of the
/// header.
const FS_IOC_FIEMAP: u64 = 0xC020_660B;
/// Write dirty pages back before mapping, so that delayed allocation has happened.
const FIEMAP_FLAG_SYNC: u32 = 1;

/// What happens to pages that were not written back yet, before extents are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DirtyPages {
    /// They are written, which takes as long as the disk needs, so that all extents have a place.
    WrittenBack,
    /// They stay.
    Kept,
}
/// Extents fetched per call: 128 × 56 bytes stay on the stack.
const EXTENTS: usize = 128;

/// One extent as `struct fiemap_extent` (linux/fiemap.h) has it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct FileExtent {
    pub(crate) logical: u64,
    pub(crate) physical: u64,
    pub(crate) length: u64,
    reserved64: [u64; 2],
    pub(crate) flags: u32,
    reserved: [u32; 3],
}

#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [FileExtent; EXTENTS],
}

/// `FIEMAP_EXTENT_LAST`: the file ends with this one.
const LAST: u32 = 0x1;

/// The extents that one call of FIEMAP returned.
pub(crate) struct ExtentPart {
    /// The byte from which on the call asked; the first extent may begin before it.
    pub(crate) start: u64,
    pub(crate) extents: Vec<FileExtent>,
}

/// The extents from `start` to `end` in parts. Ends with the file, and after an error.
pub(crate) fn extents_in(
    fd: BorrowedFd<'_>,
    start: u64,
    end: u64,
    dirty: DirtyPages,
) -> impl Iterator<Item = Result<ExtentPart, Errno>> {
    let mut next = Some(start);
    std::iter::from_fn(move || {
        let part_start = next.take().filter(|position| *position < end)?;
        let extents = match fiemap(fd, part_start, end - part_start, dirty) {
            Ok(extents) => extents,
            Err(errno) => return Some(Err(errno)),
        };
        let last = *extents.last()?;
        let behind = last.logical.saturating_add(last.length);
        if last.flags & LAST == 0 && behind > part_start {
            next = Some(behind);
        }
        Some(Ok(ExtentPart {
            start: part_start,
            extents,
        }))
    })
}

/// The next extents at or after `start`, at most [`EXTENTS`]; empty when there are none in the
/// range.
pub(crate) fn fiemap(
    fd: BorrowedFd<'_>,
    start: u64,
    length: u64,
    dirty: DirtyPages,
) -> Result<Vec<FileExtent>, Errno> {
    let flags = match dirty {
        DirtyPages::WrittenBack => FIEMAP_FLAG_SYNC,
        DirtyPages::Kept => 0,
    };
    let mut map = Fiemap {
        start,
        length,
        flags,
        mapped_extents: 0,
        extent_count: EXTENTS as u32,
        reserved: 0,
        extents: [FileExtent::default(); EXTENTS],
    };
    // SAFETY: the descriptor is open for the length of the borrow; the structure has the kernel's
    // layout (repr(C), checked by the test below) and room for the `extent_count` extents that
    // it announces; the kernel writes nothing else.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut map) };
    if result != 0 {
        return Err(errno_of(&std::io::Error::last_os_error()));
    }
    Ok(map.extents[..(map.mapped_extents as usize).min(EXTENTS)].to_vec())
}

/// Says whether anything else has a file open. The kernel grants a write lease only where nothing
/// has, neither for reading nor for writing (`check_conflicting_open` in linux/fs/locks.c). That
/// counts descriptors that no table of a process has, such as those in an io_uring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Openers {
    /// The kernel granted the lease: ours is the only descriptor.
    None,
    /// The kernel refused the lease because of another descriptor.
    Some,
    /// The filesystem has no leases (NFS, FUSE), or this user may not have one on a file of another
    /// owner.
    Unknown(Errno),
}

/// Takes a write lease on a descriptor that is open for writing, and gives it back at once
/// (fcntl(2), F_SETLEASE).
pub(crate) fn other_openers(fd: BorrowedFd<'_>) -> Openers {
    if set_lease(fd, libc::F_WRLCK) == 0 {
        set_lease(fd, libc::F_UNLCK);
        return Openers::None;
    }
    match errno_of(&std::io::Error::last_os_error()) {
        Errno::AGAIN => Openers::Some,
        errno => Openers::Unknown(errno),
    }
}

fn set_lease(fd: BorrowedFd<'_>, kind: i32) -> libc::c_int {
    // SAFETY: F_SETLEASE takes a number; the descriptor is open for the length of the borrow.
    unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETLEASE, kind) }
}

/// The commands of fcntl(2) that get and set the expected life of written data (linux/fcntl.h).
const F_GET_RW_HINT: libc::c_int = 1035;
const F_SET_RW_HINT: libc::c_int = 1036;

/// The time for which written data is expected to stay, as a `RWH_WRITE_LIFE_…` of linux/fcntl.h:
/// of the file, not of its descriptor. 0 where no program has set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WriteHint(u64);

impl From<WriteLife> for WriteHint {
    fn from(life: WriteLife) -> Self {
        Self(match life {
            WriteLife::Short => 2,
            WriteLife::Medium => 3,
            WriteLife::Long => 4,
            WriteLife::Extreme => 5,
        })
    }
}

/// Returns how long the kernel expects data to stay that is written to this file.
pub(crate) fn write_hint(fd: BorrowedFd<'_>) -> Result<WriteHint, Errno> {
    let mut hint: u64 = 0;
    // SAFETY: the command writes a number of 64 bits through the pointer; the descriptor is open
    // for the length of the borrow.
    let result = unsafe { libc::fcntl(fd.as_raw_fd(), F_GET_RW_HINT, &raw mut hint) };
    if result == 0 {
        Ok(WriteHint(hint))
    } else {
        Err(errno_of(&std::io::Error::last_os_error()))
    }
}

/// Tells the kernel how long data is expected to stay that is written to this file.
pub(crate) fn set_write_hint(fd: BorrowedFd<'_>, hint: WriteHint) -> Result<(), Errno> {
    // SAFETY: the command reads a number of 64 bits through the pointer; the descriptor is open for
    // the length of the borrow.
    let result = unsafe { libc::fcntl(fd.as_raw_fd(), F_SET_RW_HINT, &raw const hint.0) };
    if result == 0 {
        Ok(())
    } else {
        Err(errno_of(&std::io::Error::last_os_error()))
    }
}

/// Moves the calling thread into a mount namespace (setns(2)). Its directory and root become those
/// of the namespace, for this thread alone, which should end soon.
pub(crate) fn enter_mounts(namespace: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: unshare takes a number; this thread shares its root and directory with no other one
    // from here on.
    let left = unsafe { libc::unshare(libc::CLONE_FS) };
    if left != 0 {
        return Err(errno_of(&std::io::Error::last_os_error()));
    }
    // SAFETY: setns takes numbers; the descriptor is open for the length of the borrow.
    let entered = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNS) };
    if entered != 0 {
        return Err(errno_of(&std::io::Error::last_os_error()));
    }
    Ok(())
}

// The file behind a loop device, as its driver reports it: the path in sysfs may belong to another
// mount namespace, or name another file by now.

/// `LOOP_GET_STATUS64` of linux/loop.h.
const LOOP_GET_STATUS64: u64 = 0x4C05;
/// `sizeof(struct loop_info64)`; of its numbers the first two are read.
const LOOP_INFO_WORDS: usize = 29;

/// The file, or the node of the device, behind a loop device; `None` where
/// this user may not ask, or nothing is behind it. Opens the loop device for reading only.
pub(crate) fn file_behind_loop(node: &str, number: &str) -> Option<FileId> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let fd = open(node, flags, Mode::empty()).ok()?;
    let stat = fstat(&fd).ok()?;
    if !is_device(&stat, number) {
        return None;
    }
    let mut info = MaybeUninit::<[u64; LOOP_INFO_WORDS]>::zeroed();
    // SAFETY: the descriptor is open, and of a block device; the kernel writes one loop_info64 of
    // 232 bytes, which are these 29 words, and nothing else.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), LOOP_GET_STATUS64 as _, info.as_mut_ptr()) };
    if result != 0 {
        return None;
    }
    // SAFETY: zeroed before, and any bits are numbers.
    let info = unsafe { info.assume_init() };
    let [device, inode, ..] = info;
    Some(FileId { device, inode })
}

/// While it lives, no signal (but SIGKILL and SIGSTOP, which cannot be blocked) is delivered to
/// this thread.
pub(crate) struct SignalsHeld {
    before: libc::sigset_t,
    // The mask belongs to the thread that set it: not Send.
    _thread: PhantomData<*const ()>,
}

impl SignalsHeld {
    /// Holds back all signals to this thread until the value is dropped.
    pub(crate) fn begin() -> Self {
        let mut all = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: sigfillset initialises the set it is given; pthread_sigmask reads that set and
        // fills `before`. With a valid `how` neither can fail (pthread_sigmask(3)).
        let before = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
            before.assume_init()
        };
        Self {
            before,
            _thread: PhantomData,
        }
    }
}

impl Drop for SignalsHeld {
    fn drop(&mut self) {
        // SAFETY: `before` was filled by pthread_sigmask in this same thread; a null old set is
        // allowed.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

/// True if this process ignores a signal (sigaction(2)). nohup(1) and shells without job control
/// start programs so, to protect them; a handler would take that protection away.
pub fn is_signal_ignored(number: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null new action only asks; the kernel fills `action`, which lives through the call.
    let result = unsafe { libc::sigaction(number, std::ptr::null(), action.as_mut_ptr()) };
    if result != 0 {
        return false;
    }
    // SAFETY: zeroed before, for which all bits are valid, and filled by the successful call.
    let action = unsafe { action.assume_init() };
    action.sa_sigaction == libc::SIG_IGN
}

const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Writes the pages of a file to the disk and waits for them. Unlike fdatasync(2) it writes neither
/// the inode nor the journal, which for thousands of small files would take minutes on a rotating
/// disk. The data is not durable afterwards (sync_file_range(2)), but the pages are clean.
pub(crate) fn write_pages(file: BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: the descriptor is open as long as it is borrowed; the call takes no memory of ours.
    let result = unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, flags) };
    match result {
        0 => Ok(()),
        _ => Err(errno_of(&std::io::Error::last_os_error())),
    }
}

/// Drops clean pages, names and inodes of the whole machine (proc_sys_vm(5)). Only root may.
pub(crate) fn drop_all_caches() -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(DROP_CACHES, flags, rustix::fs::Mode::empty())?;
    rustix::io::write(&file, b"3").map(drop)
}

/// `KCMP_FILES` of linux/kcmp.h.
const KCMP_FILES: libc::c_long = 2;

/// True if two threads share one table of descriptors (kcmp(2)), and where the kernel does not say.
pub(crate) fn have_one_file_table(one: u32, other: u32) -> bool {
    // SAFETY: kcmp takes five numbers and touches no memory of ours; the last two are not used for
    // KCMP_FILES.
    let order = unsafe {
        libc::syscall(
            libc::SYS_kcmp,
            libc::c_long::from(one),
            libc::c_long::from(other),
            KCMP_FILES,
            0,
            0,
        )
    };
    order <= 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn structures_have_the_kernels_size() {
        assert_eq!(size_of::<FileExtent>(), 56);
        assert_eq!(std::mem::offset_of!(Fiemap, extents), 32);
    }

    #[test]
    fn another_opener_is_known_and_none_is_known_too() {
        let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        assert_eq!(other_openers(file.as_file().as_fd()), Openers::None);
        let other = std::fs::File::options().write(true).open(file.path());
        assert_eq!(other_openers(file.as_file().as_fd()), Openers::Some);
        drop(other);
        assert_eq!(other_openers(file.as_file().as_fd()), Openers::None);
        let _reader = std::fs::File::open(file.path());
        assert_eq!(other_openers(file.as_file().as_fd()), Openers::Some);
    }
}
