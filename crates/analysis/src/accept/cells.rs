//! Equal parts of a device, for each of which the rates are measured.

use diskproof_model::accept::{AcceptMeasurement, Piece, PositionCell};

/// The part of the device in which a piece lies.
pub(super) fn cell_of(measured: &mut AcceptMeasurement, piece: Piece) -> &mut PositionCell {
    let chunk_count = measured.states.0.len() as u64;
    let chunk = piece.offset_bytes / measured.chunk_bytes;
    let cells = measured.cells.len() as u64;
    &mut measured.cells[(chunk * cells / chunk_count.max(1)) as usize]
}

/// The offset at which the part with this number begins.
pub(super) fn cell_offset(measured: &AcceptMeasurement, number: usize) -> u64 {
    let chunk_count = measured.states.0.len() as u64;
    let cells = measured.cells.len().max(1) as u64;
    // The first chunk that lies in the part.
    let chunk = (number as u64 * chunk_count).div_ceil(cells);
    (chunk * measured.chunk_bytes).min(measured.plan.size_bytes)
}
