//! Sets how the page cache is treated, proves that direct I/O works, and keeps what is known about
//! both. The order within a run: [`OpenTarget::direct_trial`] and [`OpenTarget::note_direct`], by a
//! thread that may wait for the disk; then [`OpenTarget::choose_cache`] before each workload, which
//! tries no request again. Where [`OpenTarget::must_be_empty_for`] says so, a thread that may wait
//! writes the page cache back. [`OpenTarget::set_cache`] does both on the calling thread.

use super::OpenTarget;
use crate::failure::OpenError;
use crate::kernel::naming::errno_name;
use crate::open::direct_trial::{ALIGNMENT_MIN, DirectTrial, FailedRequest, TriedDirect};
use diskproof_model::measurement::CacheUse;
use diskproof_model::plan::CachePolicy;
use diskproof_model::target::{TargetIdentity, TargetKind};
use rustix::fs::{
    Advice, AtFlags, OFlags, StatxFlags, fadvise, fcntl_getfl, fcntl_setfl, fstat, statx,
};
use rustix::io::Errno;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::{MutexGuard, PoisonError};

/// `STATX_DIOALIGN` (Linux 6.1, statx(2)): not yet named by the wrapper.
const STATX_DIOALIGN: u32 = 0x2000;
/// Alignment on a filesystem that does not report one: the page, which every known filesystem
/// takes.
const ALIGNMENT_DEFAULT: u32 = 4096;
/// The requirements of direct I/O on this target.
#[derive(Debug, Clone, Copy)]
pub(super) struct DirectNeeds {
    alignment_bytes: u32,
    support: DirectSupport,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DirectSupport {
    /// The alignment is stated; no request has been tried.
    Possible,
    /// Nothing states the alignment (FUSE, NFS): it is the largest usual sector.
    Assumed,
    /// A request was not refused: it worked, or the disk failed it.
    Proven,
    /// A request was refused with this error.
    Refused(Errno),
    /// The kernel itself says that this file has no direct I/O, although it would take the flag
    /// (ext4 with data=journal, fsverity, …).
    Denied,
}

impl OpenTarget {
    /// Offsets and lengths of direct I/O must be multiples of this many bytes: as the kernel
    /// reports (STATX_DIOALIGN, Linux 6.1), else the device's logical block, else 4096 until a
    /// direct request finds that 512 is accepted; never below 512. Memory must always be aligned to
    /// 4096, which satisfies every device.
    pub fn alignment_bytes(&self) -> u32 {
        self.direct.alignment_bytes
    }

    /// Asks the kernel to drop the target's clean pages from the page cache. Dirty ones stay: sync
    /// first. Advice only.
    pub fn drop_cache(&self) {
        *self.in_memory() = 0..0;
        for file in self.files() {
            let _ = fadvise(file, 0, None, Advice::DontNeed);
        }
    }

    /// Notes that the page cache holds these bytes, until [`OpenTarget::drop_cache`].
    pub fn mark_in_memory(&self, bytes: Range<u64>) {
        *self.in_memory() = bytes;
    }

    /// True if the page cache was given these bytes and was not emptied since.
    pub fn is_in_memory(&self, bytes: &Range<u64>) -> bool {
        let held = self.in_memory();
        held.start <= bytes.start && bytes.end <= held.end
    }

    fn in_memory(&self) -> MutexGuard<'_, Range<u64>> {
        self.in_memory
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets how the page cache is treated from now on; the answer says what was really done.
    ///
    /// * Direct: O_DIRECT, proven by one direct request. Where the filesystem refuses it, or would
    ///   use the page cache all the same, the target is buffered.
    /// * Buffered: dirty pages are written back, and the target's pages are dropped.
    /// * Cached: neither.
    ///
    /// Access times are left alone where the kernel allows that (O_NOATIME, owner or root).
    ///
    /// Must not be called while requests are in flight.
    pub fn set_cache(&mut self, policy: CachePolicy) -> Result<CacheUse, OpenError> {
        let cache = self.choose_cache(policy)?;
        if self.must_be_empty_for(cache.used) {
            self.write_back()?;
            self.drop_cache();
        }
        Ok(cache)
    }

    /// The first half of [`OpenTarget::set_cache`]: how the page cache is treated from now on. What
    /// it holds stays.
    pub fn choose_cache(&mut self, policy: CachePolicy) -> Result<CacheUse, OpenError> {
        let why = match policy {
            CachePolicy::Direct => self.try_direct()?,
            CachePolicy::Buffered | CachePolicy::Cached => self.set_direct(OFlags::empty())?,
        };
        let used = match why {
            Some(_) => CachePolicy::Buffered,
            None => policy,
        };
        Ok(CacheUse {
            asked: policy,
            used,
            why,
        })
    }

    /// True if the page cache must hold nothing of the target where it is used in this way: dirty
    /// pages are written back, and all are dropped.
    pub fn must_be_empty_for(&self, used: CachePolicy) -> bool {
        // Pages left dirty by a buffered workload would be written back in the middle of a direct
        // one. An existing file's pages belong to others: those are dropped only where
        // buffered figures would be false otherwise.
        used == CachePolicy::Buffered || (used == CachePolicy::Direct && self.is_writable())
    }

    /// True if the filesystem takes O_DIRECT and would use the page cache all the same.
    pub fn ignores_direct(&self) -> bool {
        self.direct.support == DirectSupport::Denied
    }

    /// True if O_DIRECT could be set, and a request with it was refused.
    pub fn refuses_direct_requests(&self) -> bool {
        matches!(self.direct.support, DirectSupport::Refused(_))
    }

    /// Whether the target takes requests that must not block (RWF_NOWAIT); `None` where no trial
    /// has found out.
    pub fn takes_nowait(&self) -> Option<bool> {
        self.takes_nowait
    }

    /// Notes whether the target takes requests that must not block. The open file has this property
    /// or lacks it, whatever its flags are (FMODE_NOWAIT; Linux, include/linux/fs.h), so that no
    /// workload needs to try it again.
    pub fn note_nowait(&mut self, takes_nowait: bool) {
        self.takes_nowait = Some(takes_nowait);
    }

    /// Sets O_DIRECT and proves it. Returns why direct I/O does not work, where it does not;
    /// O_DIRECT is off again then.
    fn try_direct(&mut self) -> Result<Option<String>, OpenError> {
        let refuser = match &self.identity.filesystem {
            Some(filesystem) => format!("the filesystem ({})", filesystem.kind),
            None => "the device".to_owned(),
        };
        let mut flag_refused = None;
        if let DirectSupport::Possible | DirectSupport::Assumed | DirectSupport::Proven =
            self.direct.support
        {
            flag_refused = self.set_direct(OFlags::DIRECT)?;
            if flag_refused.is_none() {
                self.prove_direct()?;
            }
        }
        let why = match (flag_refused, self.direct.support) {
            (Some(errno), _) => format!("{refuser} refuses O_DIRECT: {errno}"),
            (None, DirectSupport::Denied) => format!(
                "{refuser} has no direct I/O for this file and would use the page cache despite \
                 O_DIRECT (STATX_DIOALIGN is 0)"
            ),
            (None, DirectSupport::Refused(errno)) => format!(
                "{refuser} accepts O_DIRECT, but refuses a request of {} bytes: {}",
                self.direct.alignment_bytes,
                errno_name(errno)
            ),
            (None, _) => return Ok(None),
        };
        self.set_direct(OFlags::empty())?;
        Ok(Some(why))
    }

    /// Sets O_DIRECT or clears it, and O_NOATIME where allowed. Returns the errno's name where
    /// O_DIRECT is refused.
    fn set_direct(&self, wanted: OFlags) -> Result<Option<String>, OpenError> {
        for file in self.files() {
            let refused = self.set_direct_on(file, wanted)?;
            if refused.is_some() {
                return Ok(refused);
            }
        }
        Ok(None)
    }

    /// As [`Self::set_direct`], for one of the files.
    fn set_direct_on(
        &self,
        file: BorrowedFd<'_>,
        wanted: OFlags,
    ) -> Result<Option<String>, OpenError> {
        let failed = self.failed("set its file flags");
        let others = fcntl_getfl(file)
            .map_err(&failed)?
            .difference(OFlags::DIRECT | OFlags::NOATIME);
        // EPERM: only the owner and root may leave access times alone (open(2)).
        let result = match fcntl_setfl(file, others | wanted | OFlags::NOATIME) {
            Err(Errno::PERM) => fcntl_setfl(file, others | wanted),
            result => result,
        };
        match result {
            Ok(()) => Ok(None),
            Err(errno @ (Errno::INVAL | Errno::OPNOTSUPP)) if wanted.contains(OFlags::DIRECT) => {
                Ok(Some(errno_name(errno)))
            }
            Err(errno) => Err(failed(errno)),
        }
    }

    /// The trial that proves direct I/O, with O_DIRECT set for it. `None` where no request is
    /// needed: it is proved, or known to be refused. The caller must pass the outcome of the trial
    /// to [`Self::note_direct`].
    pub fn direct_trial(&self) -> Result<Option<DirectTrial>, OpenError> {
        match self.direct.support {
            DirectSupport::Proven | DirectSupport::Denied | DirectSupport::Refused(_) => {
                return Ok(None);
            }
            DirectSupport::Possible | DirectSupport::Assumed => {}
        }
        if self.set_direct(OFlags::DIRECT)?.is_some() {
            return Ok(None);
        }
        Ok(Some(DirectTrial {
            path: self.identity.path.clone(),
            alignment_bytes: self.direct.alignment_bytes,
            is_assumed: self.direct.support == DirectSupport::Assumed,
            // A file of an earlier run may hold data, although the target as a whole does not.
            is_empty: self.usable_bytes() == 0
                && fstat(&self.fd).is_ok_and(|stat| stat.st_size == 0),
        }))
    }

    /// Notes the outcome of a trial.
    pub fn note_direct(&mut self, tried: &TriedDirect) {
        self.direct = DirectNeeds {
            alignment_bytes: tried.alignment_bytes,
            support: match tried.refused() {
                Some(errno) => DirectSupport::Refused(errno),
                None => DirectSupport::Proven,
            },
        };
    }

    /// Keeps requests that the disk failed and that belong to no workload, for the next one to
    /// count. They may not recur: direct I/O, for one, is proved once.
    pub fn keep_failed_requests(&mut self, failed: Vec<FailedRequest>) {
        self.uncounted_failures.extend(failed);
    }

    /// The requests that were kept, each of which is handed out once.
    pub fn take_failed_requests(&mut self) -> Vec<FailedRequest> {
        std::mem::take(&mut self.uncounted_failures)
    }

    /// Tries a direct request, unless its outcome is known, and notes the outcome.
    fn prove_direct(&mut self) -> Result<(), OpenError> {
        if let Some(trial) = self.direct_trial()? {
            let tried = trial.run(&self.fd)?;
            self.note_direct(&tried);
        }
        Ok(())
    }
}

/// Asks the kernel what direct I/O on an open file or device needs.
pub(super) fn direct_needs(fd: BorrowedFd<'_>, identity: &TargetIdentity) -> DirectNeeds {
    let wanted = StatxFlags::from_bits_retain(STATX_DIOALIGN);
    let reported = match statx(fd, "", AtFlags::EMPTY_PATH, wanted) {
        Ok(answer) if answer.stx_mask & STATX_DIOALIGN != 0 => Some(answer.stx_dio_offset_align),
        _ => None,
    };
    let stated = match (reported, identity.layers.first()) {
        (Some(bytes @ 1..), _) => Some(bytes),
        (_, Some(layer)) if identity.kind == TargetKind::BlockDevice => layer.logical_block_bytes,
        _ => None,
    };
    DirectNeeds {
        alignment_bytes: stated.unwrap_or(ALIGNMENT_DEFAULT).max(ALIGNMENT_MIN),
        support: match reported {
            Some(0) => DirectSupport::Denied,
            _ if stated.is_none() => DirectSupport::Assumed,
            _ => DirectSupport::Possible,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::TargetContent;
    use super::*;
    use crate::identity::probe::probe;
    use std::os::fd::{AsFd as _, OwnedFd};
    use std::path::Path;
    use std::sync::Arc;

    /// The read of a directory fails (EISDIR), and not because of the alignment, as that of a disk
    /// may (EIO).
    #[test]
    fn failed_request_proves_no_alignment() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let file = place.path().join("file");
        std::fs::write(&file, [1; 8192]).unwrap();
        let assumed = DirectNeeds {
            alignment_bytes: ALIGNMENT_DEFAULT,
            support: DirectSupport::Assumed,
        };
        let mut failing = existing(place.path(), &file, assumed);
        failing.prove_direct().unwrap();
        assert!(!matches!(failing.direct.support, DirectSupport::Refused(_)));
        assert_eq!(failing.direct.alignment_bytes, ALIGNMENT_DEFAULT);
        let mut working = existing(&file, &file, assumed);
        working.prove_direct().unwrap();
        assert_eq!(working.direct.support, DirectSupport::Proven);
        assert_eq!(working.direct.alignment_bytes, ALIGNMENT_MIN);
    }

    /// What is open at one path, with the identity of another one.
    fn existing(opened: &Path, identified: &Path, direct: DirectNeeds) -> OpenTarget {
        let fd = OwnedFd::from(std::fs::File::open(opened).unwrap());
        let identity = probe(identified).unwrap();
        OpenTarget::new(Arc::new(fd), identity, TargetContent::Existing, direct)
    }

    /// Bytes count as being in memory only where all of them were given to the page cache.
    #[test]
    fn bytes_are_in_memory_until_the_cache_is_dropped() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let file = place.path().join("file");
        std::fs::write(&file, [1; 8192]).unwrap();
        let needs = direct_needs(
            std::fs::File::open(&file).unwrap().as_fd(),
            &probe(&file).unwrap(),
        );
        let target = existing(&file, &file, needs);
        let other = target.reopen().unwrap();
        target.mark_in_memory(10..20);
        for (bytes, is_held) in [
            (10..20, true),
            (9..20, false),
            (10..21, false),
            (12..13, true),
        ] {
            assert_eq!(other.is_in_memory(&bytes), is_held, "{bytes:?}");
        }
        other.drop_cache();
        assert!(!target.is_in_memory(&(12..13)));
    }

    /// The thread that sets the cache waits for the disk without a watch.
    #[test]
    fn refused_trial_is_not_tried_again_when_the_cache_is_set() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let file = place.path().join("file");
        std::fs::write(&file, [1; 8192]).unwrap();
        // No disk reads so few bytes.
        let too_few = DirectNeeds {
            alignment_bytes: 100,
            support: DirectSupport::Possible,
        };
        let mut target = existing(&file, &file, too_few);
        let trial = target.direct_trial().unwrap().unwrap();
        let tried = trial.run(&target.fd).unwrap();
        assert_eq!(tried.refused(), Some(Errno::INVAL));
        target.note_direct(&tried);
        assert!(target.direct_trial().unwrap().is_none());
        let cache = target.set_cache(CachePolicy::Direct).unwrap();
        assert_eq!(cache.used, CachePolicy::Buffered);
        let why = cache.why.unwrap();
        assert!(
            why.ends_with("refuses a request of 100 bytes: EINVAL"),
            "{why}"
        );
        let flags = fcntl_getfl(target.fd()).unwrap();
        assert!(!flags.contains(OFlags::DIRECT));
    }
}
