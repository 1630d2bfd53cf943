//! Opens what the user released for writing: exclusively, with the disk locked. Then every check of
//! the gate runs again on the descriptor, because the target may have changed since. Writes
//! nothing.

use crate::admit::inspect::{CLAIM_TRIES, Inspector, open_claiming};
use crate::admit::reasons::{RefusalReasons, Step};
use crate::admit::{Consent, HiddenUsers, Permit, VisibilityGaps, device, file, overwriting_asked};
use crate::failure::{OpenError, open_failed};
use crate::file::direct_io::clear_flags;
use crate::file::held::{Held, changed};
use crate::kernel::naming::{device_number, errno_name, node};
use crate::kernel::syscalls::{Openers, openers_beside};
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

/// udev holds the lock while it probes a disk that has just appeared: a moment, not a use.
const LOCK_TRIES: u32 = 20;
/// The pause between two tries to lock a disk.
const LOCK_PAUSE: Duration = Duration::from_millis(100);
/// NONBLOCK: whatever took the target's place must not block the opening.
const WRITING: OFlags = OFlags::RDWR.union(OFlags::NONBLOCK);

/// A target that is open for writing, and the lock on its disk where that is another node.
pub(crate) type Released = (Arc<OwnedFd>, Option<Arc<OwnedFd>>);

/// Devices that this process holds for writing: a second target on the same disk is no other
/// program.
static HELD_DISKS: Mutex<Vec<HeldDisk>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct HeldDisk {
    /// Number of the whole disk.
    disk: String,
    /// The target on it.
    path: String,
    /// The descriptor whose lock it is.
    lock: Weak<OwnedFd>,
}

/// Opens what was admitted for writing. The permit is the proof that the gate said yes.
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
    let lock = match disk {
        None => {
            lock(&fd, reasons);
            remember(identity, disk_number, &fd);
            None
        }
        Some(sysfs) => Some(lock_disk(identity, &sysfs, disk_number, reasons)?),
    };
    let inspector = Inspector::through(fd.as_fd());
    device::judge_again(&root, identity, consent, &inspector, reasons);
    held.check_steady(&identity.path)?;
    Ok((fd, lock))
}

/// Direct, so that the second inspection reads the disk and no cache; refused where the driver has
/// no direct I/O.
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

fn held_disks() -> MutexGuard<'static, Vec<HeldDisk>> {
    let mut disks = HELD_DISKS.lock().unwrap_or_else(PoisonError::into_inner);
    disks.retain(|held| held.lock.strong_count() > 0);
    disks
}

fn remember(identity: &TargetIdentity, disk: String, lock: &Arc<OwnedFd>) {
    held_disks().push(HeldDisk {
        disk,
        path: identity.path.clone(),
        lock: Arc::downgrade(lock),
    });
}

/// The claim on a disk excludes its partitions, and the other way round.
fn add_busy(identity: &TargetIdentity, disk: &str, reasons: &mut RefusalReasons) {
    let own = held_disks()
        .iter()
        .find(|held| held.disk == disk)
        .map(|held| held.path.clone());
    match own {
        Some(path) => reasons.add(
            format!("it shares blocks with {path}, which is another target of this run"),
            Step::clause("name the disk or its partitions, not both"),
        ),
        None => device::add_claimed(identity, reasons),
    }
}

/// An exclusive flock on the whole disk's node, which udev respects (systemd's
/// BLOCK_DEVICE_LOCKING): it neither probes nor reads partitions meanwhile. Targets of one run that
/// lie on the same disk share the lock.
fn lock_disk(
    identity: &TargetIdentity,
    disk: &Path,
    number: String,
    reasons: &mut RefusalReasons,
) -> Result<Arc<OwnedFd>, OpenError> {
    let own = held_disks()
        .iter()
        .find(|held| held.disk == number)
        .and_then(|held| held.lock.upgrade());
    if let Some(lock) = own {
        remember(identity, number, &lock);
        return Ok(lock);
    }
    let node = node(&disk.file_name().unwrap_or_default().to_string_lossy());
    let (whole, stat) = open_whole(&node)
        .map_err(|errno| OpenError::from_errno(&node, "open the whole disk to lock it", errno))?;
    if number != device_number(stat.st_rdev) {
        let what = "the node of its whole disk is not that disk";
        return Err(changed(&identity.path, what));
    }
    lock(&whole, reasons);
    let whole = Arc::new(whole);
    remember(identity, number, &whole);
    Ok(whole)
}

fn open_whole(node: &str) -> Result<(OwnedFd, Stat), Errno> {
    let whole = Held::open(Path::new(node))?.reopen(OFlags::RDONLY | OFlags::NONBLOCK)?;
    let stat = fstat(&whole)?;
    Ok((whole, stat))
}

fn lock(fd: &OwnedFd, reasons: &mut RefusalReasons) {
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
    lock(&fd, reasons);
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
    Ok((Arc::new(fd), None))
}

/// Asks the kernel for users that /proc does not show: a process in a container, an io_uring, the
/// kernel itself. /proc or the kernel must have looked at every user.
fn judge_lease(fd: &OwnedFd, gaps: &VisibilityGaps, reasons: &mut RefusalReasons) {
    match openers_beside(fd.as_fd()) {
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

/// A device or file that is of another size than when it was looked at is another one.
pub(crate) fn check_size(identity: &TargetIdentity, size: u64) -> Result<(), OpenError> {
    if size == identity.size_bytes {
        return Ok(());
    }
    let before = identity.size_bytes;
    let what = format!("its size changed from {before} to {size} bytes");
    Err(changed(&identity.path, &what))
}
