//! Knows where the last write of an acceptance test failed. What comes back from there shows no
//! fault: only a write that the disk acknowledged is promised.

use super::data::{AcceptMeasurement, BadBytes, BadContent, BadRange, MovedPiece, UnwrittenRange};
use super::layout::Piece;

/// At most so many ranges are kept: a record stays below a few megabytes. With more, a disk is
/// rejected for the writes that failed anyway.
const UNWRITTEN_MAX: usize = 20_000;

impl AcceptMeasurement {
    /// Notes the outcome of a write: what failed of it is not written, and the rest is.
    pub fn add_write(&mut self, piece: Piece, failed: &[BadRange]) {
        let end_bytes = piece.offset_bytes + piece.length_bytes;
        self.remove_unwritten(piece.offset_bytes, end_bytes);
        for range in failed {
            self.add_unwritten(range.offset_bytes, range.end_bytes());
        }
    }

    /// Bytes of a piece whose last write failed.
    pub fn unwritten_bytes_in(&self, piece: Piece) -> u64 {
        let end_bytes = piece.offset_bytes + piece.length_bytes;
        self.unwritten_between(piece.offset_bytes, end_bytes)
            .map(|part| part.length_bytes)
            .sum()
    }

    /// What a read of a piece found, where the wrong content of a write that failed is
    /// [`BadContent::Unwritten`]. The content of another address stays: nobody wrote it there.
    pub fn without_unwritten(&self, piece: Piece, moved: &MovedPiece) -> MovedPiece {
        let unwritten_bytes = self.unwritten_bytes_in(piece);
        if unwritten_bytes == 0 {
            return moved.clone();
        }
        let mut bytes = moved.bad_bytes;
        let mut bad = Vec::new();
        for range in &moved.bad {
            match range.content {
                BadContent::Blank
                | BadContent::Foreign
                | BadContent::Stale { .. }
                | BadContent::Flipped { .. } => bad.extend(self.divided(range, &mut bytes)),
                BadContent::Displaced { .. }
                | BadContent::Failed { .. }
                | BadContent::Unwritten => bad.push(range.clone()),
            }
        }
        // The list may be too short for all that is wrong with a piece.
        if unwritten_bytes >= piece.length_bytes {
            bytes.unwritten += bytes.lost + bytes.flipped;
            (bytes.lost, bytes.flipped) = (0, 0);
        }
        MovedPiece {
            bad_bytes: bytes,
            ..MovedPiece::new(moved.ns, bad)
        }
    }

    /// A wrong range in parts that were written and parts that were not, by position. `bytes` get
    /// the latter as such.
    fn divided(&self, range: &BadRange, bytes: &mut BadBytes) -> Vec<BadRange> {
        let mut parts = Vec::new();
        let mut from_bytes = range.offset_bytes;
        let written = |from_bytes, to_bytes| BadRange {
            offset_bytes: from_bytes,
            length_bytes: to_bytes - from_bytes,
            content: range.content.clone(),
        };
        for unwritten in self.unwritten_between(range.offset_bytes, range.end_bytes()) {
            if unwritten.offset_bytes > from_bytes {
                parts.push(written(from_bytes, unwritten.offset_bytes));
            }
            let part = BadRange {
                offset_bytes: unwritten.offset_bytes,
                length_bytes: unwritten.length_bytes,
                content: BadContent::Unwritten,
            };
            bytes.change(&range.content, &part);
            from_bytes = part.end_bytes();
            parts.push(part);
        }
        if from_bytes < range.end_bytes() {
            parts.push(written(from_bytes, range.end_bytes()));
        }
        parts
    }

    /// The parts of the unwritten ranges that lie between two addresses.
    fn unwritten_between(
        &self,
        from_bytes: u64,
        to_bytes: u64,
    ) -> impl Iterator<Item = UnwrittenRange> + '_ {
        let first = self
            .unwritten
            .partition_point(|range| range.end_bytes() <= from_bytes);
        self.unwritten[first..]
            .iter()
            .take_while(move |range| range.offset_bytes < to_bytes)
            .map(move |range| {
                let offset_bytes = range.offset_bytes.max(from_bytes);
                UnwrittenRange {
                    offset_bytes,
                    length_bytes: range.end_bytes().min(to_bytes) - offset_bytes,
                }
            })
    }

    /// Takes what lies between two addresses out of the unwritten ranges.
    fn remove_unwritten(&mut self, from_bytes: u64, to_bytes: u64) {
        let first = self
            .unwritten
            .partition_point(|range| range.end_bytes() <= from_bytes);
        let behind = self
            .unwritten
            .partition_point(|range| range.offset_bytes < to_bytes);
        if first >= behind {
            return;
        }
        let (low, high) = (self.unwritten[first], self.unwritten[behind - 1]);
        let mut rest = Vec::new();
        if low.offset_bytes < from_bytes {
            rest.push(UnwrittenRange {
                length_bytes: from_bytes - low.offset_bytes,
                ..low
            });
        }
        if high.end_bytes() > to_bytes {
            rest.push(UnwrittenRange {
                offset_bytes: to_bytes,
                length_bytes: high.end_bytes() - to_bytes,
            });
        }
        self.unwritten.splice(first..behind, rest);
    }

    /// Adds a range that none of the others overlaps, and joins it with its neighbours.
    fn add_unwritten(&mut self, from_bytes: u64, to_bytes: u64) {
        let index = self
            .unwritten
            .partition_point(|range| range.offset_bytes < from_bytes);
        let is_full = self.unwritten.len() >= UNWRITTEN_MAX;
        if index > 0 {
            let before = &mut self.unwritten[index - 1];
            if before.end_bytes() == from_bytes || is_full {
                before.length_bytes = to_bytes - before.offset_bytes;
                self.join_behind(index - 1);
                return;
            }
        }
        self.unwritten.insert(
            index,
            UnwrittenRange {
                offset_bytes: from_bytes,
                length_bytes: to_bytes - from_bytes,
            },
        );
        self.join_behind(index);
    }

    /// Joins the range with this index with the next one, where that begins where it ends.
    fn join_behind(&mut self, index: usize) {
        let Some(next) = self.unwritten.get(index + 1).copied() else {
            return;
        };
        if self.unwritten[index].end_bytes() == next.offset_bytes {
            self.unwritten[index].length_bytes += next.length_bytes;
            self.unwritten.remove(index + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accept::{AcceptPlan, Procedure};

    const BLOCK: u64 = 4096;

    fn measured() -> AcceptMeasurement {
        AcceptMeasurement::new(AcceptPlan {
            procedure: Procedure::Whole,
            size_bytes: 64 << 20,
            salt: 1,
        })
    }

    /// So many blocks from a block on.
    fn piece(block: u64, blocks: u64) -> Piece {
        Piece {
            offset_bytes: block * BLOCK,
            length_bytes: blocks * BLOCK,
            order: 0,
        }
    }

    fn range(block: u64, blocks: u64, content: BadContent) -> BadRange {
        BadRange {
            offset_bytes: block * BLOCK,
            length_bytes: blocks * BLOCK,
            content,
        }
    }

    fn failed(block: u64, blocks: u64) -> BadRange {
        let errno = "EIO".to_owned();
        range(block, blocks, BadContent::Failed { errno })
    }

    fn blocks(measured: &AcceptMeasurement) -> Vec<[u64; 2]> {
        measured
            .unwritten
            .iter()
            .map(|range| [range.offset_bytes / BLOCK, range.length_bytes / BLOCK])
            .collect()
    }

    #[test]
    fn ranges_are_joined_and_a_later_write_clears_them() {
        let mut measured = measured();
        for block in [8, 0, 4] {
            measured.add_write(piece(block, 4), &[failed(block, 4)]);
        }
        assert_eq!(blocks(&measured), [[0, 12]]);
        measured.add_write(piece(4, 4), &[failed(5, 1)]);
        assert_eq!(blocks(&measured), [[0, 4], [5, 1], [8, 4]]);
        assert_eq!(measured.unwritten_bytes_in(piece(3, 3)), 2 * BLOCK);
        measured.add_write(piece(0, 12), &[]);
        assert_eq!(blocks(&measured), [[0; 2]; 0]);
    }

    /// Blocks 2 and 3 of 8 were not written: they, and no other wrong block, are excused.
    #[test]
    fn wrong_content_of_a_failed_write_is_not_lost() {
        let mut measured = measured();
        measured.add_write(piece(0, 8), &[failed(2, 2)]);
        let bad = vec![
            range(1, 4, BadContent::Blank),
            range(6, 1, BadContent::Flipped { bits: 1 }),
        ];
        let told = measured.without_unwritten(piece(0, 8), &MovedPiece::new(1, bad));
        let parts = [
            range(1, 1, BadContent::Blank),
            range(2, 2, BadContent::Unwritten),
            range(4, 1, BadContent::Blank),
            range(6, 1, BadContent::Flipped { bits: 1 }),
        ];
        assert_eq!(told.bad, parts);
        let bytes = BadBytes {
            lost: 2 * BLOCK,
            flipped: BLOCK,
            unwritten: 2 * BLOCK,
            ..BadBytes::default()
        };
        assert_eq!(told.bad_bytes, bytes);
        assert_eq!(bytes.wrong(), 3 * BLOCK);
        // A sector of another address proves a wrap whatever became of the write.
        let from_bytes = 0;
        let displaced = range(
            2,
            1,
            BadContent::Displaced {
                from_bytes,
                order: 1,
            },
        );
        let found = MovedPiece::new(1, vec![displaced]);
        assert_eq!(measured.without_unwritten(piece(0, 8), &found), found);
    }
}
