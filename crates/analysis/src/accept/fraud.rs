//! Decides which fraud explains the places that came back wrong, and the real size of the disk.
//! Either the addresses of these places explain them, or the order of their writes does.
//!
//! The thresholds were chosen, and are checked on the simulated disks of each kind in `tests.rs`:
//! every fake is found with its size, and no honest disk is accused.

use super::filler::filler_offsets;
use super::lowest::lowest_bad;
use super::slow_end::{SlowEnd, slow_end};
use super::whole::CACHE_PARTS_MIN;
use diskproof_model::accept::{AcceptMeasurement, BadContent, Fraud, Piece, PieceState, Procedure};

/// Beyond the real end, at least this share of the places is wrong. The rest may be right by a
/// cache that the examination did not recognise.
const BAD_SHARE_MIN: f64 = 0.97;
/// Beyond the real end of a disk that flips bits, at least this share of the places is wrong:
/// flipped bits do not hit every place.
const FLIPPED_SHARE_MIN: f64 = 0.85;
/// The order of the writes explains a result if it misses at most this share of the wrong places or
/// of the right ones, whichever are fewer. A queue reorders writes near the moment when the flash
/// was full.
const ORDER_MISSED_SHARE_MAX: f64 = 0.05;
/// It may miss one place in any case: the one at which the flash was full.
const ORDER_MISSED_MIN: f64 = 1.0;
/// Fewer wrong or right places may come last in that order by chance. Five of a hundred places do
/// in one of 75 million orders.
const ORDER_PLACES_MIN: usize = 5;
/// A lost tail of less than this is a defect, not a fraud: a seller gains nothing by a MiB.
const TAIL_BYTES_MIN: u64 = 1 << 20;
/// If less than one of this many places is wrong, that is a defect, whatever explains it.
const DEFECT_PARTS: u64 = 100;
/// Places before the first wrong one survive a wrap by chance with the probability of e to minus
/// this, about one of 7 × 10^10. If it is smaller, only a part of the disk wraps.
const SURVIVAL_LN_MAX: f64 = 25.0;
/// The common divisor of the distances must be at least this: a smaller one is not the size of a
/// disk.
const DIVISOR_MIN: u64 = 1 << 20;
/// The last writes are taken as one of this many parts more than what came back right, and
/// [`QUEUED_PLACES`]: the disk's own cache may write neighbours in another order.
const QUEUED_PARTS: usize = 4;
/// The places that the cache mixes even where few came back. Chosen, not measured.
const QUEUED_PLACES: usize = 2;

/// A fraud and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoundFraud {
    pub fraud: Fraud,
    /// The bytes that the disk surely keeps; of a slow end the bytes before it.
    pub real_bytes: u64,
    /// The first address that it surely does not keep. A probe reads only some places near the end,
    /// so that this is larger.
    pub first_bad_bytes: u64,
    /// The size of a cache that held the last writes; `None` without one.
    pub cache_bytes: Option<u64>,
}

impl FoundFraud {
    fn new(fraud: Fraud, real_bytes: u64) -> Self {
        Self {
            fraud,
            real_bytes,
            first_bad_bytes: real_bytes,
            cache_bytes: None,
        }
    }
}

/// The results of an acceptance test, with its pieces in the order of their writes.
pub(super) struct Places<'a> {
    pub measured: &'a AcceptMeasurement,
    /// The pieces whose states the measurement has, in the same order.
    pub pieces: Vec<Piece>,
}

/// The fault that most of the wrong bytes have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MainFault {
    /// They hold the content of another address.
    Displaced,
    /// Some of their bits are wrong.
    Flipped,
    /// They could not be written or read.
    Failed,
    /// They hold nothing that the test wrote.
    Lost,
}

/// The places beyond the lowest wrong one.
struct Beyond {
    /// The lowest wrong address.
    from_bytes: u64,
    /// The share of the places that are wrong, without those that a cache held.
    bad_share: f64,
    /// The bytes that came back from a cache.
    cached_bytes: u64,
}

impl Places<'_> {
    /// The fraud that explains the results; `None` where nothing is wrong, or only some places are.
    pub(super) fn fraud(&self) -> Option<FoundFraud> {
        if self.measured.bad_bytes.sum() == 0 {
            return self.slow_fraud();
        }
        let beyond = self.examine_beyond()?;
        let fault = self.main_fault();
        let is_short = beyond.from_bytes + TAIL_BYTES_MIN > self.measured.plan.size_bytes;
        if is_short && fault != MainFault::Displaced {
            return None;
        }
        let by_addresses = match fault {
            MainFault::Displaced => self.wrap_fraud(&beyond),
            MainFault::Flipped => self.flip_fraud(&beyond),
            MainFault::Failed => self.fail_fraud(&beyond),
            MainFault::Lost => self.drop_fraud(&beyond),
        };
        by_addresses.or_else(|| self.thin_fraud())
    }

    /// The fault of most wrong bytes. A probe reads so few places that one with the content of
    /// another address proves a wrap.
    fn main_fault(&self) -> MainFault {
        let bad = self.measured.bad_bytes;
        let half = bad.sum() / 2;
        if bad.displaced > half || (bad.displaced > 0 && self.is_probe()) {
            MainFault::Displaced
        } else if bad.flipped > half {
            MainFault::Flipped
        } else if (bad.failed + bad.unwritten).max(self.measured.failed_writes_bytes) > half {
            MainFault::Failed
        } else {
            MainFault::Lost
        }
    }

    /// A disk on which everything comes back, but many times more slowly from an address on. Only
    /// the full pass sees it: a probe reads too few places for a rate.
    fn slow_fraud(&self) -> Option<FoundFraud> {
        if self.is_probe() {
            return None;
        }
        match slow_end(self.measured) {
            SlowEnd::From(bytes) => Some(FoundFraud::new(Fraud::Slow, bytes)),
            SlowEnd::Absent | SlowEnd::Hidden => None,
        }
    }

    /// A disk that flips bits from its real end on.
    fn flip_fraud(&self, beyond: &Beyond) -> Option<FoundFraud> {
        if beyond.bad_share < FLIPPED_SHARE_MIN {
            return None;
        }
        Some(self.ending(Fraud::Flips, beyond))
    }

    /// A disk that fails requests from its real end on. One that stopped accepting writes at some
    /// time, wherever they went, has no end.
    fn fail_fraud(&self, beyond: &Beyond) -> Option<FoundFraud> {
        if !self.is_all_bad(beyond) || self.stopped_accepting() {
            return None;
        }
        Some(self.ending(Fraud::Fails, beyond))
    }

    /// A disk that loses what is written from its real end on, but perhaps for the last writes,
    /// which a cache holds.
    fn drop_fraud(&self, beyond: &Beyond) -> Option<FoundFraud> {
        if !self.is_all_bad(beyond) {
            return None;
        }
        let dropping = self.ending(Fraud::Drops, beyond);
        let cache_bytes = match self.filler_cache_bytes(dropping.first_bad_bytes) {
            Some(filler_bytes) if filler_bytes > 0 => filler_bytes,
            _ => beyond.cached_bytes,
        };
        if cache_bytes == 0 {
            return Some(dropping);
        }
        Some(FoundFraud {
            fraud: Fraud::Cached,
            cache_bytes: Some(cache_bytes),
            ..dropping
        })
    }

    /// Returns `true` if all but chance is bad from the lowest wrong address on, as beyond the end
    /// of a disk.
    fn is_all_bad(&self, beyond: &Beyond) -> bool {
        beyond.bad_share >= BAD_SHARE_MIN && self.reaches_end_of_piece()
    }

    /// A disk that ends between the last right and the first wrong place: those of the edge, where
    /// it was searched. The full pass reads every block, so that both are one address.
    fn ending(&self, fraud: Fraud, beyond: &Beyond) -> FoundFraud {
        let (real_bytes, first_bad_bytes) = match self.measured.edge {
            Some(edge) => (edge.right_to_bytes, edge.bad_from_bytes),
            None if self.is_probe() => (self.right_to_bytes(beyond.from_bytes), beyond.from_bytes),
            None => (beyond.from_bytes, beyond.from_bytes),
        };
        FoundFraud {
            first_bad_bytes,
            ..FoundFraud::new(fraud, real_bytes)
        }
    }

    /// The end of the last place before an address that came back right; 0 where none did.
    pub(super) fn right_to_bytes(&self, address: u64) -> u64 {
        let mut right_to_bytes = 0;
        for (piece, state) in self.piece_states() {
            let end_bytes = piece.offset_bytes + piece.length_bytes;
            if state == PieceState::Right && end_bytes <= address {
                right_to_bytes = right_to_bytes.max(end_bytes);
            }
        }
        right_to_bytes
    }

    /// Each piece with its state. A record from elsewhere may have fewer states than pieces: the
    /// others count as not read.
    fn piece_states(&self) -> impl Iterator<Item = (&Piece, PieceState)> {
        let states = self.measured.states.0.iter().copied();
        self.pieces.iter().zip(states)
    }

    fn is_probe(&self) -> bool {
        matches!(self.measured.plan.procedure, Procedure::Probe { .. })
    }

    /// Examines the places beyond the lowest wrong one. If a few of them came back right, and were
    /// written last, they were in a cache. `None` where the record has no wrong place.
    fn examine_beyond(&self) -> Option<Beyond> {
        let from_bytes = lowest_bad(&self.measured.bad)?.start_bytes;
        let mut right = Vec::new();
        let mut bad = Vec::new();
        for (piece, state) in self.piece_states() {
            match state {
                PieceState::Pending => {}
                PieceState::Right if piece.offset_bytes < from_bytes => {}
                PieceState::Right => right.push(*piece),
                // The lowest wrong address lies in a piece that begins before it.
                _ => bad.push(*piece),
            }
        }
        let count = right.len() + bad.len();
        let cached = cached_by_last_writes(&right, &bad);
        Some(Beyond {
            from_bytes,
            bad_share: bad.len() as f64 / (count - cached.len()).max(1) as f64,
            cached_bytes: cached.iter().map(|piece| piece.length_bytes).sum(),
        })
    }

    /// Returns `true` if the lowest bad stretch reaches the end of its piece: a defect ends before
    /// it.
    fn reaches_end_of_piece(&self) -> bool {
        let Some(lowest) = lowest_bad(&self.measured.bad) else {
            return false;
        };
        for piece in &self.pieces {
            let piece_end = piece.offset_bytes + piece.length_bytes;
            if (piece.offset_bytes..piece_end).contains(&lowest.start_bytes) {
                return lowest.end_bytes >= piece_end;
            }
        }
        // A place of the filler of a probe.
        self.is_probe()
    }

    /// A disk whose addresses wrap around: other addresses came back, with a common divisor of
    /// their distances.
    fn wrap_fraud(&self, beyond: &Beyond) -> Option<FoundFraud> {
        let displacement = self.measured.displacement?;
        let divisor = displacement.divisor_bytes;
        if divisor < DIVISOR_MIN {
            return None;
        }
        let copies = self.measured.plan.size_bytes as f64 / divisor as f64;
        let before: Vec<&Piece> = self
            .pieces
            .iter()
            .filter(|piece| piece.offset_bytes + piece.length_bytes <= beyond.from_bytes)
            .collect();
        // A place survives if its own write came last among those of all its copies.
        let survived = before.len() as f64 * copies.max(1.0).ln();
        // Only a part of the disk is written again and again.
        let is_part =
            beyond.from_bytes >= divisor && (self.is_probe() || survived > SURVIVAL_LN_MAX);
        if !is_part {
            return Some(FoundFraud::new(Fraud::Wraps, divisor));
        }
        if self.is_probe() {
            return Some(self.ending(Fraud::Wraps, beyond));
        }
        let real_bytes = beyond.from_bytes + divisor;
        Some(FoundFraud::new(Fraud::Wraps, real_bytes))
    }

    /// A disk that stores any address until its flash is full, or keeps only the last writes:
    /// whether a place came back depends on the time of its write, not on its address.
    fn thin_fraud(&self) -> Option<FoundFraud> {
        if !is_explained_by_order(&self.measured.states.0) {
            return None;
        }
        let written_bytes = if self.is_probe() {
            self.measured.writes.bytes
        } else {
            self.measured.plan.size_bytes
        };
        let bad_bytes = self.measured.bad_bytes.sum();
        let real_bytes = written_bytes.saturating_sub(bad_bytes);
        Some(FoundFraud::new(Fraud::Thin, real_bytes))
    }

    /// The bytes of a probe's filler from the oldest place that came back on, if older ones did
    /// not; `None` where all or none came back.
    fn filler_cache_bytes(&self, real_bytes: u64) -> Option<u64> {
        let mut places = Vec::new();
        let offsets = filler_offsets(self.measured);
        for (offset_bytes, is_right) in offsets.iter().zip(&self.measured.filler) {
            // The disk itself keeps what lies below its end.
            if *offset_bytes >= real_bytes {
                places.push(*is_right);
            }
        }
        let kept = places.iter().filter(|is_right| **is_right).count();
        let oldest = places.iter().position(|is_right| *is_right)?;
        if kept == places.len() {
            return None;
        }
        let newer = (places.len() - oldest) as u64;
        let bytes = u128::from(self.measured.filler_bytes) * u128::from(newer);
        Some((bytes / self.measured.filler.len().max(1) as u128) as u64)
    }
}

/// The right pieces that were among the last writes to the places beyond the real end; empty where
/// so many came back right that no cache explains them.
fn cached_by_last_writes<'p>(right: &'p [Piece], bad: &[Piece]) -> Vec<&'p Piece> {
    if CACHE_PARTS_MIN as usize * right.len() >= right.len() + bad.len() {
        return Vec::new();
    }
    let mut orders: Vec<u64> = right.iter().chain(bad).map(|piece| piece.order).collect();
    orders.sort_unstable();
    let last_writes = right.len() + right.len() / QUEUED_PARTS + QUEUED_PLACES;
    let Some(first_order) = orders.get(orders.len().saturating_sub(last_writes)) else {
        return Vec::new();
    };
    right
        .iter()
        .filter(|piece| piece.order >= *first_order)
        .collect()
}

/// Returns `true` if the order of the writes explains which places are right: the first ones, as
/// where the flash was full later, or the last ones. `states` are in the order of the writes. A
/// place that the disk failed is none that it lost.
fn is_explained_by_order(states: &[PieceState]) -> bool {
    let mut read = states.to_vec();
    read.retain(|state| !matches!(state, PieceState::Pending | PieceState::Failed));
    let count = read.len();
    let right = read
        .iter()
        .filter(|state| **state == PieceState::Right)
        .count();
    let fewer = right.min(count - right);
    if fewer < ORDER_PLACES_MIN || (count - right) as u64 * DEFECT_PARTS < count as u64 {
        return false;
    }
    // The agreement if the first `n` are right and all others wrong, or the other way round.
    let mut agreeing = count - right;
    let mut best = 0;
    for state in read {
        if state == PieceState::Right {
            agreeing += 1;
        } else {
            agreeing -= 1;
        }
        best = best.max(agreeing).max(count - agreeing);
    }
    let missed = (count - best) as f64;
    missed <= (ORDER_MISSED_SHARE_MAX * fewer as f64).max(ORDER_MISSED_MIN)
}

/// A place that held the content of another address.
pub(super) struct DisplacedExample {
    /// The address that was read.
    pub at_bytes: u64,
    /// The address that its content was written to.
    pub from_bytes: u64,
}

/// The lowest place that held the content of another address; `None` where no place did.
pub(super) fn displaced_example(measured: &AcceptMeasurement) -> Option<DisplacedExample> {
    for range in &measured.bad {
        if let BadContent::Displaced { from_bytes, .. } = range.content {
            return Some(DisplacedExample {
                at_bytes: range.offset_bytes,
                from_bytes,
            });
        }
    }
    let displacement = measured.displacement?;
    Some(DisplacedExample {
        at_bytes: displacement.at_bytes,
        from_bytes: displacement.from_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::PieceState::{Failed, Lost, Pending, Right};
    use super::{PieceState, cached_by_last_writes, is_explained_by_order};
    use diskproof_model::accept::Piece;

    fn states(runs: &[(PieceState, usize)]) -> Vec<PieceState> {
        let mut states = Vec::new();
        for (state, count) in runs {
            states.extend(vec![*state; *count]);
        }
        states
    }

    #[test]
    fn order_explains_with_one_place_missed_and_five_of_a_kind() {
        assert!(is_explained_by_order(&states(&[(Right, 5), (Lost, 5)])));
        assert!(is_explained_by_order(&states(&[(Lost, 5), (Right, 5)])));
        assert!(!is_explained_by_order(&states(&[(Right, 5), (Lost, 4)])));
        let one_missed = [(Right, 20), (Lost, 1), (Right, 1), (Lost, 20)];
        assert!(is_explained_by_order(&states(&one_missed)));
        let two_missed = [(Right, 20), (Lost, 2), (Right, 2), (Lost, 20)];
        assert!(!is_explained_by_order(&states(&two_missed)));
        // Five of five hundred are one of a hundred; five of 501 are a defect.
        assert!(is_explained_by_order(&states(&[(Right, 495), (Lost, 5)])));
        assert!(!is_explained_by_order(&states(&[(Right, 496), (Lost, 5)])));
        let not_read = [(Right, 495), (Pending, 9), (Lost, 5)];
        assert!(is_explained_by_order(&states(&not_read)));
        // Writes that failed were not acknowledged.
        assert!(!is_explained_by_order(&states(&[
            (Right, 120),
            (Failed, 180)
        ])));
    }

    fn pieces(orders: std::ops::Range<u64>) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for order in orders {
            pieces.push(Piece {
                offset_bytes: order * 4096,
                length_bytes: 4096,
                order,
            });
        }
        pieces
    }

    #[test]
    fn cache_holds_the_last_writes_and_less_than_a_quarter() {
        // Of eight right pieces, twelve last writes count: eight, a quarter more, and two.
        let right = pieces(92..100);
        assert_eq!(cached_by_last_writes(&right, &pieces(0..92)).len(), 8);
        let early = pieces(87..95);
        let bad = [pieces(0..87), pieces(95..100)].concat();
        assert_eq!(cached_by_last_writes(&early, &bad).len(), 7);
        assert!(cached_by_last_writes(&right, &pieces(0..24)).is_empty());
        assert_eq!(cached_by_last_writes(&right, &pieces(0..25)).len(), 8);
    }
}
