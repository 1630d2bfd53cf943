//! Claims a cluster's directory: for its guard, and for a run that finds what another left.
//!
//! Two locks (flock) and a pipe show who uses the directory, so that no run removes the cluster of
//! another one, and each is removed once. In the order of a run:
//!
//! 1. The run starts its guard, with a pipe to it. There is no directory yet.
//! 2. The run makes the directory and **locks the directory** (`KeptDirectory::create`), writes the
//!    file `claim` into it, which proves it to be ours, and orders [`crate::guard::MADE`].
//! 3. The guard **locks the claim** ([`claim_made`]) and starts the server.
//! 4. Once the server accepts sessions, the run unlocks the directory: the claim is locked.
//! 5. The run closes the pipe, or ends. The guard removes the cluster and its claim.
//!
//! The cluster was left by a crash where both can be locked, the claim first ([`claim_left`]). The
//! guard of a run that ended before step 2 was done asks in the same way, as what is there then may
//! be of another run. It waits for the directory's lock, which a killed run may hold a moment
//! longer than the pipe: [`claim_within`].

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
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Tries a claim until no other process holds the directory, but no longer than `in_use_for`.
pub(crate) fn claim_within(
    in_use_for: Duration,
    claim: impl Fn() -> Result<Option<ClaimedDirectory>, OpenError>,
) -> Result<Option<ClaimedDirectory>, OpenError> {
    let begun = Instant::now();
    loop {
        match claim() {
            Err(OpenError::InUse { .. }) if begun.elapsed() < in_use_for => {
                std::thread::sleep(POLL_INTERVAL);
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
