//! Decides whether the writes that a disk failed show where it ends, or that it stopped accepting
//! writes: by their addresses or by the time of their writes. The order of the writes is random, so
//! that both explain one result by chance only.

use super::fraud::Places;
use super::probe::tried_blocks;
use diskproof_model::accept::{AcceptMeasurement, Piece, Procedure, chunks};

/// A write of a piece, in the order of the writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PieceWrite {
    offset_bytes: u64,
    has_failed: bool,
}

impl Places<'_> {
    /// Returns `true` if the disk failed its writes from one time on, and not from one address on.
    pub(super) fn stopped_accepting(&self) -> bool {
        is_by_time(&self.writes())
    }

    /// The writes of the pieces, in their order. A probe writes its first pieces in the order of
    /// their addresses, but before these some blocks at random ones.
    fn writes(&self) -> Vec<PieceWrite> {
        let mut pieces = match self.measured.plan.procedure {
            Procedure::Whole => Vec::new(),
            Procedure::Probe { .. } => tried_blocks(self.measured),
        };
        pieces.extend_from_slice(&self.pieces);
        let mut writes = Vec::new();
        for piece in &pieces {
            writes.push(PieceWrite {
                offset_bytes: piece.offset_bytes,
                has_failed: self.measured.unwritten_bytes_in(*piece) > 0,
            });
        }
        writes
    }
}

/// Returns `true` if a time explains more of the failures than an address does, or if nothing was
/// accepted, which shows no end.
fn is_by_time(writes: &[PieceWrite]) -> bool {
    if !writes.iter().any(|write| write.has_failed) {
        return false;
    }
    if writes.iter().all(|write| write.has_failed) {
        return true;
    }
    let mut by_address = writes.to_vec();
    by_address.sort_by_key(|write| write.offset_bytes);
    missed_count(writes) < missed_count(&by_address)
}

/// The writes that the best border does not explain, before which all were accepted and behind
/// which all failed.
fn missed_count(writes: &[PieceWrite]) -> usize {
    let mut missed = writes.iter().filter(|write| !write.has_failed).count();
    let mut fewest = missed;
    for write in writes {
        if write.has_failed {
            missed += 1;
        } else {
            missed -= 1;
        }
        fewest = fewest.min(missed);
    }
    fewest
}

/// The bytes that a disk accepted before it stopped accepting writes; `None` of one that did not
/// stop. Only of a full pass, which writes in one order.
pub(super) fn accepted_before_stop_bytes(data: &AcceptMeasurement) -> Option<u64> {
    if data.unwritten.is_empty() || data.plan.procedure != Procedure::Whole {
        return None;
    }
    let pieces: Vec<Piece> = chunks(data.plan.size_bytes, data.chunk_bytes, data.plan.salt);
    let written = (data.written as usize).min(pieces.len());
    let places = Places {
        measured: data,
        pieces: pieces[..written].to_vec(),
    };
    places.stopped_accepting().then_some(data.writes.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes at these addresses, in this order, where `fails` answers by order and address.
    fn writes(addresses: &[u64], fails: impl Fn(usize, u64) -> bool) -> Vec<PieceWrite> {
        let mut writes = Vec::new();
        for (order, offset_bytes) in addresses.iter().enumerate() {
            writes.push(PieceWrite {
                offset_bytes: *offset_bytes,
                has_failed: fails(order, *offset_bytes),
            });
        }
        writes
    }

    #[test]
    fn writes_fail_by_time_or_by_address() {
        let addresses = [5, 0, 7, 2, 6, 1, 3, 4];
        let cases = [
            (writes(&addresses, |order, _| order >= 3), true),
            (writes(&addresses, |order, _| order >= 1), true),
            (writes(&addresses, |_, _| true), true),
            (writes(&addresses, |_, address| address >= 3), false),
            (writes(&addresses, |_, address| address >= 1), false),
            // One weak place says nothing of the others.
            (writes(&addresses, |_, address| address == 6), false),
            (writes(&addresses, |_, _| false), false),
        ];
        for (writes, by_time) in cases {
            assert_eq!(is_by_time(&writes), by_time, "{writes:?}");
        }
    }
}
