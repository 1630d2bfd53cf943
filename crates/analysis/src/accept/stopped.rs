//! Separates the faults of a disk from what other programs may have written to it while its test
//! was stopped, so that no honest disk is called a counterfeit.
//!
//! Only content that is neither ours nor a damaged form of ours can be theirs, and only where it
//! was written before the stop and read after it. Everything else is the disk's: sectors of another
//! address, wrong bits, errors, and what is lost of that which was written and read without a stop
//! between. A counterfeit shows such faults as well, because the orders of the writes and of the
//! reads are random: a part of what lies beyond its end is written after any stop, or was read
//! before it. Where it shows none, the answer is undecided, never that the disk is good.

use super::fraud::{FoundFraud, Places};
use diskproof_model::accept::{
    AcceptMeasurement, BadContent, BadRange, Fraud, Pass, Piece, PieceState, Procedure, shuffled,
};

/// Returns `true` if others may have written all that came back wrong while the test was stopped.
pub(super) fn is_only_changed_while_stopped(data: &AcceptMeasurement) -> bool {
    let bad = data.bad_bytes;
    data.lost_over_stop_bytes > 0
        && data.lost_over_stop_bytes == bad.sum()
        && data.failed_writes_bytes == 0
}

/// The fraud that shows itself also without the places that others may have overwritten. Those
/// places make its size more exact where they agree.
pub(super) fn fraud_without_changes(places: &Places<'_>) -> Option<FoundFraud> {
    let measured = without_changes(places);
    let own = Places {
        measured: &measured,
        pieces: places.pieces.clone(),
    };
    let found = own.fraud()?;
    match places.fraud() {
        Some(all) if is_same_fraud(all.fraud, found.fraud) => Some(all),
        _ => Some(found),
    }
}

/// Returns `true` if both are one fraud. Few places do not show the small cache of a disk that
/// drops writes, so that these two count as one.
fn is_same_fraud(one: Fraud, other: Fraud) -> bool {
    let drops = [Fraud::Drops, Fraud::Cached];
    one == other || (drops.contains(&one) && drops.contains(&other))
}

/// The measurement as if the places that others may have overwritten had not been read.
fn without_changes(places: &Places<'_>) -> AcceptMeasurement {
    let mut measured = places.measured.clone();
    let mut changed: Vec<Piece> = Vec::new();
    for piece in pieces_read_after_a_stop(places) {
        let state = &mut measured.states.0[piece.order as usize];
        if matches!(state, PieceState::Lost | PieceState::PartlyLost) {
            *state = PieceState::Pending;
            changed.push(piece);
        }
    }
    changed.sort_by_key(|piece| piece.offset_bytes);
    measured.bad.retain(|range| !is_lost_in(range, &changed));
    measured.bad_bytes.lost = measured
        .bad_bytes
        .lost
        .saturating_sub(measured.lost_over_stop_bytes);
    measured
}

/// The pieces with a stop between their write and their read. A probe is never stopped.
fn pieces_read_after_a_stop(places: &Places<'_>) -> Vec<Piece> {
    let measured = places.measured;
    let plan = measured.plan;
    let count = places.pieces.len();
    if plan.procedure != Procedure::Whole || measured.states.0.len() != count {
        return Vec::new();
    }
    let mut found = Vec::new();
    let read_order = shuffled(count as u64, plan.salt, Pass::Read);
    for (read, order) in (0..measured.read).zip(read_order) {
        if measured.has_stop_between(order, read) {
            found.push(places.pieces[order as usize]);
        }
    }
    found
}

/// Returns `true` if a range holds lost sectors in one of these pieces, which must be sorted by
/// offset.
fn is_lost_in(range: &BadRange, pieces: &[Piece]) -> bool {
    let after = pieces.partition_point(|piece| piece.offset_bytes <= range.offset_bytes);
    let Some(piece) = pieces[..after].last() else {
        return false;
    };
    let is_lost = match range.content {
        BadContent::Blank | BadContent::Foreign | BadContent::Stale { .. } => true,
        BadContent::Displaced { .. }
        | BadContent::Flipped { .. }
        | BadContent::Failed { .. }
        | BadContent::Unwritten => false,
    };
    is_lost && range.offset_bytes < piece.offset_bytes + piece.length_bytes
}
