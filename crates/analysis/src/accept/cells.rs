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

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::accept::{AcceptPlan, PieceStates, Procedure};

    /// Ten chunks of 1 MiB, the last one half, in four cells: chunks 0 to 2, 3 and 4, 5 to 7, 8 and
    /// 9.
    #[test]
    fn cells_begin_at_whole_chunks_and_hold_their_pieces() {
        const MIB: u64 = 1 << 20;
        let plan = AcceptPlan {
            procedure: Procedure::Whole,
            size_bytes: 19 * MIB / 2,
            salt: 1,
        };
        let mut measured = AcceptMeasurement::new(plan);
        measured.chunk_bytes = MIB;
        measured.states = PieceStates::pending(10);
        measured.cells = vec![PositionCell::default(); 4];
        let offsets: Vec<u64> = (0..=4).map(|index| measured.cell_offset(index)).collect();
        assert_eq!(offsets, [0, 3 * MIB, 5 * MIB, 8 * MIB, 19 * MIB / 2]);
        for chunk in 0..10 {
            let piece = Piece {
                offset_bytes: chunk * MIB,
                length_bytes: MIB,
                order: 0,
            };
            cell_of(&mut measured, piece).write.add(1, 1);
        }
        let written: Vec<u64> = measured.cells.iter().map(|cell| cell.write.bytes).collect();
        assert_eq!(written, [3, 2, 3, 2]);
    }
}
