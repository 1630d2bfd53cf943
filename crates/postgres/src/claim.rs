//! Claims a cluster's directory: for its guard, and for a run that finds what another left.

use crate::cluster_files::CLUSTER_NAME;
use diskproof_device::{ClaimedDirectory, OpenError};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::path::Path;
use std::time::{Duration, Instant};

/// The longest wait for another process that holds the cluster: the guard of a run that was killed,
/// or a run that looks if the cluster was left. Chosen: both end in moments unless the disk hangs.
pub(crate) const IN_USE_FOR: Duration = Duration::from_secs(10);
/// The pause before a claim is tried again: a user does not notice it.
const POLL: Duration = Duration::from_millis(20);

/// Tries a claim until no other process holds the directory, but no longer than `in_use_for`.
pub(crate) fn claim_within(
    in_use_for: Duration,
    claim: impl Fn() -> Result<Option<ClaimedDirectory>, OpenError>,
) -> Result<Option<ClaimedDirectory>, OpenError> {
    let begun = Instant::now();
    loop {
        match claim() {
            Err(OpenError::InUse { .. }) if begun.elapsed() < in_use_for => {
                std::thread::sleep(POLL);
            }
            claimed => return claimed,
        }
    }
}

/// Claims the cluster in a directory, for the guard that has the order [`crate::guard::MADE`].
pub(crate) fn claim_made(target: &Path) -> Result<Option<ClaimedDirectory>, OpenError> {
    ClaimedDirectory::claim(target, CLUSTER_NAME)
}

/// Claims the cluster that a run left in a directory. A run that makes one has written its claim
/// before its guard locks that, and holds the directory itself locked until then: this is in use.
pub(crate) fn claim_left(target: &Path) -> Result<Option<ClaimedDirectory>, OpenError> {
    let Some(claimed) = ClaimedDirectory::claim(target, CLUSTER_NAME)? else {
        return Ok(None);
    };
    let directory = claimed.open_directory(".")?;
    match flock(directory, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(OpenError::InUse {
            path: target.join(CLUSTER_NAME).display().to_string(),
        }),
        // Where directories cannot be locked, it is unknown whether a run makes it.
        Ok(()) | Err(_) => Ok(Some(claimed)),
    }
}
