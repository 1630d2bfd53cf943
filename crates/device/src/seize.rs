//! Opening for writing what was given up: exclusively, the disk locked, and then every check of the
//! gate once more on the descriptor itself, because the world may have changed since. Writes
//! nothing; knows nothing of workloads.

use crate::admit::doubts::Doubts;
use crate::admit::{Consent, Permit, device, file, overwriting_asked};
use crate::failure::{OpenError, open_failed};
use crate::lease::{Writers, writers_beside};
use crate::look::{Look, Patience, open_claiming};
use crate::open::device as number;
use crate::sysroot::{SysRoot, read_text};
use diskproof_model::target::{TargetIdentity, TargetKind};
use rustix::fs::{
    FileType, FlockOperation, Mode, OFlags, SeekFrom, Stat, fcntl_getfl, fcntl_setfl, flock, fstat,
    open as open_path, seek,
};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// udev holds the lock while it looks at a disk that has just appeared: a moment, not a use.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(100);

/// The descriptor, and the lock on the whole disk where that is another node. The permit is the
/// proof that the gate said yes.
pub(crate) fn open(
    identity: &TargetIdentity,
    consent: &Consent,
    permit: &Permit,
) -> Result<(OwnedFd, Option<OwnedFd>), OpenError> {
    debug_assert_eq!(permit.size_bytes(), identity.size_bytes);
    let (root, mut doubts) = (SysRoot::default(), Doubts::default());
    let opened = match identity.kind {
        TargetKind::BlockDevice => {
            let fd = open_device(identity, &mut doubts)?;
            let lock = lock_disk(&root, identity, &fd, &mut doubts)?;
            device::judge_again(
                &root,
                identity,
                &consent.destroy,
                &Look::through(fd.as_fd()),
                &mut doubts,
            );
            (fd, lock)
        }
        TargetKind::File | TargetKind::Directory => {
            let fd = open_file(identity)?;
            judge_file(&root, identity, &fd, &mut doubts);
            (fd, None)
        }
    };
    if doubts.is_empty() {
        Ok(opened)
    } else {
        Err(OpenError::Refused(
            doubts.into_stepwise_refusal(overwriting_asked(identity)),
        ))
    }
}

fn open_device(identity: &TargetIdentity, doubts: &mut Doubts) -> Result<OwnedFd, OpenError> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let fd = match open_claiming(&identity.path, flags, Patience::Wait) {
        Err(Errno::BUSY) => {
            device::add_claimed(identity, doubts);
            return Err(OpenError::Refused(
                std::mem::take(doubts).into_stepwise_refusal(overwriting_asked(identity)),
            ));
        }
        result => result.map_err(|errno| open_failed(&identity.path, errno))?,
    };
    let stat = stat_of(identity, &fd)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::BlockDevice
        || number(stat.st_rdev) != identity.device
    {
        return Err(changed(identity, "something else took its place"));
    }
    let size = seek(&fd, SeekFrom::End(0))
        .map_err(|errno| OpenError::from_errno(&identity.path, "learn its size", errno))?;
    check_size(identity, size)?;
    let flags = fcntl_getfl(&fd).map(|flags| flags.difference(OFlags::NONBLOCK));
    // Direct, so that the second look reads the disk and no cache; refused where the driver has no
    // direct I/O.
    if flags
        .and_then(|flags| fcntl_setfl(&fd, flags | OFlags::DIRECT))
        .is_err()
    {
        let blocking = flags.and_then(|flags| fcntl_setfl(&fd, flags));
        blocking
            .map_err(|errno| OpenError::from_errno(&identity.path, "set its file flags", errno))?;
    }
    Ok(fd)
}

/// An exclusive flock on the whole disk's node, which udev respects (systemd's
/// BLOCK_DEVICE_LOCKING): it neither probes nor reads partitions meanwhile.
fn lock_disk(
    root: &SysRoot,
    identity: &TargetIdentity,
    fd: &OwnedFd,
    doubts: &mut Doubts,
) -> Result<Option<OwnedFd>, OpenError> {
    let disk = root
        .block_device(&identity.device)
        .filter(|at| at.join("partition").exists())
        .and_then(|at| at.parent().map(ToOwned::to_owned));
    let Some(disk) = disk else {
        lock(fd, doubts);
        return Ok(None);
    };
    let node = format!(
        "/dev/{}",
        disk.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .replace('!', "/")
    );
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let whole = open_path(&node, flags, Mode::empty())
        .map_err(|errno| OpenError::from_errno(&node, "open the whole disk to lock it", errno))?;
    let stat = stat_of(identity, &whole)?;
    if read_text(&disk.join("dev")) != Some(number(stat.st_rdev)) {
        return Err(changed(
            identity,
            "the node of its whole disk is not that disk",
        ));
    }
    lock(&whole, doubts);
    Ok(Some(whole))
}

fn lock(fd: &OwnedFd, doubts: &mut Doubts) {
    for attempt in 1.. {
        match flock(fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return,
            Err(Errno::WOULDBLOCK | Errno::INTR) if attempt < LOCK_TRIES => {
                std::thread::sleep(LOCK_PAUSE)
            }
            Err(Errno::WOULDBLOCK) => {
                return doubts.add(
                    "another program holds a lock on it",
                    "wait for it to end: lslocks shows who it is",
                );
            }
            Err(errno) => {
                let errno = crate::errno::name(errno);
                return doubts.add(format!("it cannot be locked ({errno})"), "see dmesg");
            }
        }
    }
}

fn open_file(identity: &TargetIdentity) -> Result<OwnedFd, OpenError> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let fd = open_path(&identity.path, flags, Mode::empty())
        .map_err(|errno| open_failed(&identity.path, errno))?;
    let stat = stat_of(identity, &fd)?;
    let is_same = number(stat.st_dev) == identity.device && stat.st_ino == identity.inode;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || !is_same {
        return Err(changed(identity, "something else took its place"));
    }
    check_size(identity, stat.st_size.unsigned_abs())?;
    let blocking =
        fcntl_getfl(&fd).and_then(|flags| fcntl_setfl(&fd, flags.difference(OFlags::NONBLOCK)));
    blocking.map_err(|errno| OpenError::from_errno(&identity.path, "set its file flags", errno))?;
    Ok(fd)
}

fn judge_file(root: &SysRoot, identity: &TargetIdentity, fd: &OwnedFd, doubts: &mut Doubts) {
    lock(fd, doubts);
    file::judge_again(root, identity, &Look::through(fd.as_fd()), doubts);
    // Who cannot be seen in /proc (a container, the kernel itself) is counted by the kernel.
    if doubts.is_empty() && writers_beside(fd.as_fd()) == Writers::Some {
        doubts.add(
            "somebody else has it open for writing: a process that cannot be seen, a loop device \
             or the kernel itself",
            "find out with: lsof, losetup --all, swapon --show",
        );
    }
}

fn stat_of(identity: &TargetIdentity, fd: &OwnedFd) -> Result<Stat, OpenError> {
    fstat(fd).map_err(|errno| OpenError::from_errno(&identity.path, "look at it", errno))
}

fn check_size(identity: &TargetIdentity, size: u64) -> Result<(), OpenError> {
    if size == identity.size_bytes {
        Ok(())
    } else {
        Err(changed(
            identity,
            &format!("its size went from {} to {size} bytes", identity.size_bytes),
        ))
    }
}

fn changed(identity: &TargetIdentity, what: &str) -> OpenError {
    OpenError::Changed {
        path: identity.path.clone(),
        what: what.to_owned(),
    }
}
