//! Opens what the user released for writing: exclusively, with the disk locked. Then every check of
//! the gate runs again on the descriptor, because the target may have changed since. Writes
//! nothing.

use crate::admit::inspect::{CLAIM_TRIES, Inspector, open_claiming};
use crate::admit::reasons::{RefusalReasons, Step};
use crate::admit::{Consent, HiddenUsers, Permit, VisibilityGaps, device, file, overwriting_asked};
use crate::failure::{OpenError, changed, open_failed};
use crate::file::direct_io::clear_flags;
use crate::file::held::Held;
use crate::kernel::naming::{device_number, errno_name, node};
use crate::kernel::syscalls::{Openers, other_openers};
use crate::kernel::sysroot::{SysRoot, read_text};
use diskproof_model::target::{TargetIdentity, TargetKind};
use rustix::fs::{
    FlockOperation, OFlags, SeekFrom, Stat, fcntl_getfl, fcntl_setfl, flock, fstat, seek,
};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// udev holds the lock while it probes a disk that has just appeared: a moment, not a use. With the
/// pause, a lock of 2 s counts as a use. Chosen, not measured.
const LOCK_TRIES: u32 = 20;
/// The pause between two tries to lock a disk.
const LOCK_PAUSE: Duration = Duration::from_millis(100);
/// NONBLOCK: whatever took the target's place must not block the opening.
const WRITING: OFlags = OFlags::RDWR.union(OFlags::NONBLOCK);

/// A target that is open for writing.
pub(crate) struct Released {
    pub(crate) fd: Arc<OwnedFd>,
    /// The descriptor that locks the whole disk of a partition; `None` of any other target, which
    /// is locked by `fd`.
    pub(crate) disk_lock: Option<Arc<OwnedFd>>,
}

/// The disks that this process has locked: a second target on the same disk is no other program.
static LOCKED_DISKS: Mutex<Vec<LockedDisk>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct LockedDisk {
    /// Number of the whole disk.
    disk: String,
    /// The target on it.
    path: String,
    /// The descriptor with the lock, which ends when the last target on the disk is closed.
    lock: Weak<OwnedFd>,
}

/// Opens what was admitted for writing. The permit is the proof that the gate said yes. Whatever
/// the steps below open, it is returned only if none of them has added a reason.
pub(crate) fn open(
    identity: &TargetIdentity,
    consent: &Consent,
    permit: &Permit,
) -> Result<Released, OpenError> {
    debug_assert_eq!(permit.size_bytes(), identity.size_bytes);
    let held = Held::identified(identity)?;
    let mut reasons = RefusalReasons::default();
    let released = match identity.kind {
        TargetKind::BlockDevice => open_device(identity, consent, &held, &mut reasons)?,
        TargetKind::File | TargetKind::Directory => {
            open_file(identity, consent, &held, &mut reasons)?
        }
    };
    if reasons.is_empty() {
        Ok(released)
    } else {
        Err(refused(identity, reasons))
    }
}

fn refused(identity: &TargetIdentity, reasons: RefusalReasons) -> OpenError {
    OpenError::Refused(reasons.into_stepwise_refusal(overwriting_asked(identity)))
}

fn open_device(
    identity: &TargetIdentity,
    consent: &Consent,
    held: &Held,
    reasons: &mut RefusalReasons,
) -> Result<Released, OpenError> {
    let root = SysRoot::default();
    let disk = root
        .block_device(&identity.device)
        .filter(|sysfs| sysfs.join("partition").exists())
        .and_then(|sysfs| sysfs.parent().map(ToOwned::to_owned));
    let disk_number = disk
        .as_ref()
        .and_then(|sysfs| read_text(&sysfs.join("dev")))
        .unwrap_or_else(|| identity.device.clone());
    let fd = match open_claiming(held, WRITING, CLAIM_TRIES) {
        Err(Errno::BUSY) => {
            add_busy(identity, &disk_number, reasons);
            return Err(refused(identity, std::mem::take(reasons)));
        }
        result => Arc::new(result.map_err(|errno| open_failed(&identity.path, errno))?),
    };
    let size = seek(&fd, SeekFrom::End(0))
        .map_err(|errno| OpenError::from_errno(&identity.path, "read its size", errno))?;
    check_size(identity, size)?;
    set_direct(identity, &fd)?;
    let disk_lock = match disk {
        None => {
            lock_exclusively(&fd, reasons);
            remember_lock(identity, disk_number, &fd);
            None
        }
        Some(sysfs) => Some(lock_disk(identity, &sysfs, disk_number, reasons)?),
    };
    let inspector = Inspector::through(fd.as_fd());
    device::judge_again(&root, identity, consent, &inspector, reasons);
    held.check_steady(&identity.path)?;
    Ok(Released { fd, disk_lock })
}

/// Sets O_DIRECT, so that the second inspection reads the disk and no cache, and clears O_NONBLOCK.
/// Where the driver has no direct I/O, the descriptor stays without it.
fn set_direct(identity: &TargetIdentity, fd: &OwnedFd) -> Result<(), OpenError> {
    let flags = fcntl_getfl(fd).map(|flags| flags.difference(OFlags::NONBLOCK));
    if flags
        .and_then(|flags| fcntl_setfl(fd, flags | OFlags::DIRECT))
        .is_ok()
    {
        return Ok(());
    }
    flags
        .and_then(|flags| fcntl_setfl(fd, flags))
        .map_err(|errno| OpenError::from_errno(&identity.path, "set its file flags", errno))
}

/// The disks whose lock is still held.
fn locked_disks() -> MutexGuard<'static, Vec<LockedDisk>> {
    let mut disks = LOCKED_DISKS.lock().unwrap_or_else(PoisonError::into_inner);
    disks.retain(|locked| locked.lock.strong_count() > 0);
    disks
}

fn remember_lock(identity: &TargetIdentity, disk: String, lock: &Arc<OwnedFd>) {
    locked_disks().push(LockedDisk {
        disk,
        path: identity.path.clone(),
        lock: Arc::downgrade(lock),
    });
}

/// Adds the reason for EBUSY. The kernel's claim on a disk excludes its partitions and vice versa,
/// so another target of this run may be the one that holds it.
fn add_busy(identity: &TargetIdentity, disk: &str, reasons: &mut RefusalReasons) {
    let own_target = locked_disks()
        .iter()
        .find(|locked| locked.disk == disk)
        .map(|locked| locked.path.clone());
    match own_target {
        Some(path) => reasons.add(
            format!("it shares blocks with {path}, which is another target of this run"),
            Step::clause("name the disk or its partitions, not both"),
        ),
        None => device::add_claimed(identity, reasons),
    }
}

/// Takes an exclusive flock on the whole disk's node, which udev respects (systemd's
/// BLOCK_DEVICE_LOCKING): it neither probes nor reads partitions meanwhile. Targets of one run that
/// lie on the same disk share the lock.
fn lock_disk(
    identity: &TargetIdentity,
    disk: &Path,
    number: String,
    reasons: &mut RefusalReasons,
) -> Result<Arc<OwnedFd>, OpenError> {
    let own_lock = locked_disks()
        .iter()
        .find(|locked| locked.disk == number)
        .and_then(|locked| locked.lock.upgrade());
    if let Some(lock) = own_lock {
        remember_lock(identity, number, &lock);
        return Ok(lock);
    }
    let node = node(&disk.file_name().unwrap_or_default().to_string_lossy());
    let (whole, stat) = open_whole(&node)
        .map_err(|errno| OpenError::from_errno(&node, "open the whole disk to lock it", errno))?;
    if number != device_number(stat.st_rdev) {
        let what = "the node of its whole disk is not that disk";
        return Err(changed(&identity.path, what));
    }
    lock_exclusively(&whole, reasons);
    let whole = Arc::new(whole);
    remember_lock(identity, number, &whole);
    Ok(whole)
}

fn open_whole(node: &str) -> Result<(OwnedFd, Stat), Errno> {
    let whole = Held::open(Path::new(node))?.reopen(OFlags::RDONLY | OFlags::NONBLOCK)?;
    let stat = fstat(&whole)?;
    Ok((whole, stat))
}

/// Locks a disk or file for this process alone, or adds the reason why it cannot.
fn lock_exclusively(fd: &OwnedFd, reasons: &mut RefusalReasons) {
    for attempt in 1.. {
        match flock(fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return,
            Err(Errno::WOULDBLOCK | Errno::INTR) if attempt < LOCK_TRIES => {
                std::thread::sleep(LOCK_PAUSE)
            }
            Err(Errno::WOULDBLOCK) => {
                return reasons.add(
                    "another program holds a lock on it",
                    Step::clause("wait for it to end; lslocks shows which it is"),
                );
            }
            Err(errno) => {
                let errno = errno_name(errno);
                return reasons.add(
                    format!("it cannot be locked ({errno})"),
                    Step::clause("see dmesg"),
                );
            }
        }
    }
}

fn open_file(
    identity: &TargetIdentity,
    consent: &Consent,
    held: &Held,
    reasons: &mut RefusalReasons,
) -> Result<Released, OpenError> {
    let fd = held
        .reopen(WRITING)
        .map_err(|errno| open_failed(&identity.path, errno))?;
    let stat = fstat(&fd)
        .map_err(|errno| OpenError::from_errno(&identity.path, "read its metadata", errno))?;
    check_size(identity, stat.st_size.unsigned_abs())?;
    clear_flags(&fd, OFlags::NONBLOCK)
        .map_err(|errno| OpenError::from_errno(&identity.path, "set its file flags", errno))?;
    lock_exclusively(&fd, reasons);
    let gaps = file::judge_again(
        &SysRoot::default(),
        identity,
        held,
        fd.as_fd(),
        consent.overwriting,
        reasons,
    )?;
    if reasons.is_empty() {
        judge_lease(&fd, &gaps, reasons);
    }
    Ok(Released {
        fd: Arc::new(fd),
        disk_lock: None,
    })
}

/// Refuses a file that has users whom /proc does not show: a process in a container, an io_uring,
/// the kernel itself. Where the kernel cannot say, /proc must have shown every process.
fn judge_lease(fd: &OwnedFd, gaps: &VisibilityGaps, reasons: &mut RefusalReasons) {
    match other_openers(fd.as_fd()) {
        Openers::None => {}
        Openers::Some => reasons.add(
            "something has it open, because the kernel grants no lease on it (EAGAIN): a process \
             in another container, an io_uring, a loop device or the kernel itself",
            Step::clause("find it with: lsof, losetup --all, swapon --show"),
        ),
        Openers::Unknown(errno) => {
            if let Some(HiddenUsers { who, .. }) = gaps.hidden_users() {
                let errno = errno_name(errno);
                reasons.add(
                    format!(
                        "whether {who} has it open is unknown, because the kernel grants no lease \
                         on it ({errno})"
                    ),
                    Step::clause(
                        "run as root on the host; on a filesystem with leases its owner may, too",
                    ),
                );
            }
        }
    }
}

/// Fails where a device or file has another size than when it was looked at: it is another one.
pub(crate) fn check_size(identity: &TargetIdentity, size: u64) -> Result<(), OpenError> {
    if size == identity.size_bytes {
        return Ok(());
    }
    let before = identity.size_bytes;
    let what = format!("its size changed from {before} to {size} bytes");
    Err(changed(&identity.path, &what))
}
