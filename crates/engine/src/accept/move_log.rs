//! Connects the two threads of an acceptance test: the mover counts what it moves here and says how
//! it ended, and the thread that waits for it reads that and may stop it.

use crate::lock::lock;
use diskproof_model::accept::MovedPiece;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes of a request: as for the curve of a survey.
pub(crate) const REQUEST_BYTES: u32 = 1 << 20;

/// The reason why an acceptance test cannot go on with a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LostDevice {
    /// It answers nothing any more, not even where it has answered before.
    Gone {
        /// Name of the errno, such as `ENXIO`.
        errno: String,
    },
    /// The writes cannot be made durable.
    NotDurable {
        /// Name of the errno, such as `ENXIO`.
        errno: String,
    },
}

/// Shared by the thread that moves and the one that watches.
#[derive(Debug, Default)]
pub(crate) struct MoveLog {
    /// The first pieces, as far as they are done.
    moved: Mutex<Vec<MovedPiece>>,
    bytes: AtomicU64,
    requests: AtomicU64,
    stop: AtomicBool,
}

impl MoveLog {
    /// Adds the next piece of the batch; pieces come in its order.
    pub(crate) fn add_piece(&self, piece: MovedPiece) {
        lock(&self.moved).push(piece);
    }

    /// Counts a request that was answered, with its bytes; 0 of a failed one.
    pub(crate) fn count_request(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// The pieces so far, each handed out once.
    pub(crate) fn take_moved(&self) -> Vec<MovedPiece> {
        std::mem::take(&mut *lock(&self.moved))
    }

    /// The number of pieces so far, before they are handed out.
    pub(crate) fn moved_count(&self) -> usize {
        lock(&self.moved).len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Has the mover begin no further request.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The last report of the thread that moves pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MoveEnd {
    /// Set where the test cannot go on with this device.
    pub lost: Option<LostDevice>,
    /// Offset in bytes of the last request that succeeded.
    pub answered_offset: u64,
}
