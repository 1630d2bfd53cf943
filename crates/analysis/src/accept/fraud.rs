//! The fraud of a disk that claims more than it has, and its real size. Both follow from the places
//! that came back wrong: either their addresses explain them, or the order of the writes does.

use super::filler::filler_offsets;
use super::lowest::lowest_bad;
use super::slow_end::{SlowEnd, slow_end};
use diskproof_model::accept::{AcceptMeasurement, BadContent, Fraud, Piece, PieceState, Procedure};

/// Beyond the real end, at least this share of the places is wrong.
const BAD_SHARE_MIN: f64 = 0.97;
/// Beyond the real end of a disk that flips bits, at least this share of the places is wrong:
/// flipped bits do not hit every place.
const FLIPPED_SHARE_MIN: f64 = 0.85;
/// The order of the writes explains a result if it misses at most this share of the wrong places or
/// of the right ones, whichever are fewer.
const ORDER_MISSED_SHARE_MAX: f64 = 0.05;
/// It may miss one place in any case: the one at which the flash was full.
const ORDER_MISSED_MIN: f64 = 1.0;
/// Fewer wrong or right places may come last in that order by chance.
const ORDER_PLACES_MIN: usize = 5;
/// A lost tail of less than this is a defect, not a fraud.
const TAIL_BYTES_MIN: u64 = 1 << 20;
/// If less than one of this many places is wrong, that is a defect, whatever explains it.
const DEFECT_PARTS: u64 = 100;
/// Places before the first wrong one survive a wrap by chance with the probability of e to minus
/// this. If it is smaller, only a part of the disk wraps.
const SURVIVAL_LN_MAX: f64 = 25.0;
/// The common divisor of the distances must be at least this: a smaller one is not the size of a
/// disk.
const DIVISOR_MIN: u64 = 1 << 20;

/// A fraud and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoundFraud {
    pub fraud: Fraud,
    pub real_bytes: u64,
    /// The size of a cache that held the last writes; `None` without one.
    pub cache_bytes: Option<u64>,
}

impl FoundFraud {
    fn new(fraud: Fraud, real_bytes: u64) -> Self {
        Self {
            fraud,
            real_bytes,
            cache_bytes: None,
        }
    }
}

/// The results of an acceptance test, with its pieces in the order of their writes.
pub(super) struct Places<'a> {
    pub measured: &'a AcceptMeasurement,
    pub pieces: Vec<Piece>,
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
        let bad = self.measured.bad_bytes;
        if bad.sum() == 0 {
            return match self.measured.plan.procedure {
                Procedure::Whole => match slow_end(self.measured) {
                    SlowEnd::From(bytes) => Some(FoundFraud::new(Fraud::Slow, bytes)),
                    SlowEnd::Absent | SlowEnd::Hidden => None,
                },
                Procedure::Probe { .. } => None,
            };
        }
        let beyond = self.examine_beyond()?;
        let failed = bad.failed.max(self.measured.failed_writes_bytes);
        let half = bad.sum() / 2;
        if bad.displaced > half || (bad.displaced > 0 && self.is_probe()) {
            if let Some(wrap) = self.wrap_fraud(&beyond) {
                return Some(wrap);
            }
            return self.thin_fraud();
        }
        if beyond.from_bytes + TAIL_BYTES_MIN > self.measured.plan.size_bytes {
            return None;
        }
        let is_flipped = bad.flipped > half;
        let share = if is_flipped {
            FLIPPED_SHARE_MIN
        } else {
            BAD_SHARE_MIN
        };
        if beyond.bad_share < share || !(is_flipped || self.reaches_end_of_piece()) {
            return self.thin_fraud();
        }
        let real_bytes = match self.measured.edge {
            Some(edge) => edge.bad_from_bytes,
            None => beyond.from_bytes,
        };
        let fraud = if is_flipped {
            Fraud::Flips
        } else if failed > half {
            Fraud::Fails
        } else {
            let of_filler = self.filler_cache_bytes(real_bytes).unwrap_or(0);
            let cache_bytes = if of_filler > 0 {
                of_filler
            } else {
                beyond.cached_bytes
            };
            if cache_bytes > 0 {
                return Some(FoundFraud {
                    fraud: Fraud::Cached,
                    real_bytes,
                    cache_bytes: Some(cache_bytes),
                });
            }
            Fraud::Drops
        };
        Some(FoundFraud::new(fraud, real_bytes))
    }

    fn is_probe(&self) -> bool {
        matches!(self.measured.plan.procedure, Procedure::Probe { .. })
    }

    /// Examines the places beyond the lowest wrong one. If a few of them came back right, and were
    /// written last, they were in a cache.
    fn examine_beyond(&self) -> Option<Beyond> {
        let from_bytes = lowest_bad(&self.measured.bad)?.start_bytes;
        let mut right = Vec::new();
        let mut bad = Vec::new();
        for (piece, state) in self.pieces.iter().zip(&self.measured.states.0) {
            if piece.offset_bytes < from_bytes && !state.is_bad() {
                continue;
            }
            match state {
                PieceState::Pending => {}
                PieceState::Right => right.push(*piece),
                _ => bad.push(*piece),
            }
        }
        let count = right.len() + bad.len();
        // The last writes, as many as came back and a few more, because a queue mixes neighbours.
        let mut orders: Vec<u64> = right.iter().chain(&bad).map(|piece| piece.order).collect();
        orders.sort_unstable();
        let latest = orders
            .len()
            .saturating_sub(right.len() + right.len() / 4 + 2);
        let latest_order = orders.get(latest).copied().unwrap_or(u64::MAX);
        let cached: Vec<&Piece> = right
            .iter()
            .filter(|piece| piece.order >= latest_order)
            .collect();
        let is_few = 4 * right.len() < count;
        let cached_count = if is_few { cached.len() } else { 0 };
        let cached_bytes = if is_few {
            cached.iter().map(|piece| piece.length_bytes).sum()
        } else {
            0
        };
        Some(Beyond {
            from_bytes,
            bad_share: bad.len() as f64 / (count - cached_count).max(1) as f64,
            cached_bytes,
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
        let survived = before.len() as f64 * copies.max(1.0).ln();
        // Only a part of the disk is written again and again.
        let is_part =
            beyond.from_bytes >= divisor && (self.is_probe() || survived > SURVIVAL_LN_MAX);
        if !is_part {
            return Some(FoundFraud::new(Fraud::Wraps, divisor));
        }
        let real_bytes = match self.measured.edge {
            Some(edge) => edge.bad_from_bytes,
            None if self.is_probe() => beyond.from_bytes,
            None => beyond.from_bytes + divisor,
        };
        Some(FoundFraud::new(Fraud::Wraps, real_bytes))
    }

    /// A disk that stores any address until its flash is full, or keeps only the last writes:
    /// whether a place came back depends on the time of its write, not on its address.
    fn thin_fraud(&self) -> Option<FoundFraud> {
        let size_bytes = self.measured.plan.size_bytes;
        let mut read = self.measured.states.0.clone();
        read.retain(|state| *state != PieceState::Pending);
        let count = read.len();
        let right = read
            .iter()
            .filter(|state| **state == PieceState::Right)
            .count();
        let fewer = right.min(count - right);
        if fewer < ORDER_PLACES_MIN || (count - right) as u64 * DEFECT_PARTS < count as u64 {
            return None;
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
        if missed > (ORDER_MISSED_SHARE_MAX * fewer as f64).max(ORDER_MISSED_MIN) {
            return None;
        }
        let bad_bytes = self.measured.bad_bytes.sum();
        let real_bytes = if self.is_probe() {
            self.measured.writes.bytes.saturating_sub(bad_bytes)
        } else {
            size_bytes.saturating_sub(bad_bytes)
        };
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

/// A place that held the content of another address.
pub(super) struct DisplacedExample {
    pub at_bytes: u64,
    pub from_bytes: u64,
}

/// The lowest place that held the content of another address.
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
