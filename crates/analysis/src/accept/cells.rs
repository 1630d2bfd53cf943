//! Finds the cell of a piece. Cells are equal parts of a device, for each of which the record keeps
//! rates.

use diskproof_model::accept::{AcceptMeasurement, Piece, PositionCell};

/// The cell in which a piece begins. The caller must have made the cells, as a full pass does
/// before its first piece.
pub(super) fn cell_of(measured: &mut AcceptMeasurement, piece: Piece) -> &mut PositionCell {
    let chunk_count = measured.states.0.len() as u64;
    let chunk = piece.offset_bytes / measured.chunk_bytes;
    let cells = measured.cells.len() as u64;
    &mut measured.cells[(chunk * cells / chunk_count.max(1)) as usize]
}

/// The offset at which the cell with this index begins, in bytes; that of the end of the device for
/// the index after the last.
pub(super) fn cell_offset(measured: &AcceptMeasurement, index: usize) -> u64 {
    let chunk_count = measured.states.0.len() as u64;
    let cells = measured.cells.len().max(1) as u64;
    let first_chunk = (index as u64 * chunk_count).div_ceil(cells);
    (first_chunk * measured.chunk_bytes).min(measured.plan.size_bytes)
}
