//! Counts the part of a write that the disk accepted.

use diskproof_model::accept::{MovedBytes, MovedPiece, Piece};

/// The part of a write that the disk accepted, with its time. A write that failed has no rate.
pub(super) fn accepted_bytes(piece: Piece, written: &MovedPiece) -> MovedBytes {
    let bytes = piece.length_bytes.saturating_sub(written.bad_bytes.sum());
    let ns = match bytes {
        0 => 0,
        _ => written.ns,
    };
    MovedBytes { bytes, ns }
}
