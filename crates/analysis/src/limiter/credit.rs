//! Accounts for the credit of a bucket with a known base rate: how much was spent beyond the
//! refill, and whether the bucket could have paid for all that passed.
//!
//! Thresholds without a source of their own were chosen, and are checked by `bucket/tests.rs`.

use super::plateau::Plateau;
use super::stretch::{LARGE_BLOCK_BYTES, Stretch, Unit};

/// A bucket may be overdrawn by what it refills in this time, because the end of its credit is
/// known to a cell only. If the time is too short, a true limiter is rejected. If it is too long, a
/// disk that recovers for a moment passes for a limiter.
const OVERDRAWN_NS: f64 = 100e6;
/// It may also be overdrawn by this many requests, because some complete together.
const OVERDRAWN_REQUESTS: f64 = 16.0;
/// A refill is known well enough to be compared with what was used if it is this many times the
/// uncertain amount.
pub(super) const REFILL_TIMES_MIN: f64 = 10.0;
/// A bucket has spilled, and so was full, if at least this share of what was used then is missing
/// from its refill: less may be the error of the base rate.
const SPILLED_SHARE_MIN: f64 = 0.1;
/// Amounts that differ by less than this share are the same.
const SAME_AMOUNT_SHARE: f64 = 0.03;

/// A cell of any stretch, in the order of time.
#[derive(Clone, Copy)]
pub(super) struct PlacedCell {
    /// In nanoseconds after the start of the run.
    pub(super) start_ns: f64,
    /// What it moved, in the unit of the question.
    pub(super) moved: f64,
    /// True if it belongs to a plateau, during which the bucket is empty.
    pub(super) is_empty: bool,
}

/// All cells of the stretches in the order of time; those of plateaus are marked as empty.
pub(super) fn cells_in_order(
    stretches: &[Stretch],
    members: &[&Plateau<'_>],
    unit: Unit,
) -> Vec<PlacedCell> {
    let mut cells = Vec::new();
    for stretch in stretches {
        let own_plateau = members
            .iter()
            .find(|plateau| std::ptr::eq(plateau.stretch, stretch));
        for (number, moved) in stretch.moved(unit).iter().enumerate() {
            cells.push(PlacedCell {
                start_ns: stretch.start_ns + number as f64 * stretch.cell_ns,
                moved: *moved,
                is_empty: own_plateau.is_some_and(|plateau| number >= plateau.first_cell),
            });
        }
    }
    cells.sort_by(|a, b| a.start_ns.total_cmp(&b.start_ns));
    cells
}

/// The amount by which the tokens of a bucket are uncertain: what it refills until a cell shows its
/// end, or a few requests that complete together.
pub(super) fn uncertain_amount(members: &[&Plateau<'_>], base: f64, unit: Unit) -> f64 {
    let each = match unit {
        Unit::Requests => 1.0,
        Unit::Bytes => members
            .iter()
            .map(|member| member.stretch.block_bytes)
            .fold(0.0, f64::max)
            .min(f64::from(LARGE_BLOCK_BYTES)),
    };
    (base * OVERDRAWN_NS / 1e9).max(OVERDRAWN_REQUESTS * each)
}

/// Returns `true` if a bucket that was empty at the first plateau could have paid for all that
/// passed afterwards.
pub(super) fn is_paid(
    stretches: &[Stretch],
    members: &[&Plateau<'_>],
    base: f64,
    unit: Unit,
) -> bool {
    let allowed = uncertain_amount(members, base, unit);
    let (mut tokens, mut last_ns) = (0.0, None);
    for cell in cells_in_order(stretches, members, unit) {
        let Some(from_ns) = last_ns else {
            if cell.is_empty {
                last_ns = Some(cell.start_ns);
            }
            continue;
        };
        tokens += (cell.start_ns - from_ns) * base / 1e9;
        last_ns = Some(cell.start_ns);
        if cell.is_empty {
            tokens = 0.0;
            continue;
        }
        // The cell refills while it passes, which the next one adds.
        tokens -= cell.moved;
        if tokens < -(allowed + cell.moved) {
            return false;
        }
    }
    true
}

/// The credit that was used beyond the refill until a moment, in `unit`. The bucket is assumed to
/// be full at first.
pub(crate) fn spent_before(stretches: &[Stretch], until_ns: f64, base: f64, unit: Unit) -> f64 {
    let (mut used, mut last_ns) = (0.0f64, None);
    for cell in cells_in_order(stretches, &[], unit) {
        if cell.start_ns >= until_ns {
            break;
        }
        let passed_ns = cell.start_ns - last_ns.unwrap_or(cell.start_ns);
        used = (used - passed_ns * base / 1e9).max(0.0) + cell.moved;
        last_ns = Some(cell.start_ns);
    }
    let passed_ns = until_ns - last_ns.unwrap_or(until_ns);
    (used - passed_ns * base / 1e9).max(0.0)
}

/// A credit that was used up again after it had refilled.
pub(super) struct SpentAgain {
    /// The amount that was used beyond the refill.
    pub(super) used: f64,
    /// The amount that a bucket without an end would still have had.
    pub(super) spilled: f64,
}

impl SpentAgain {
    /// Returns `true` if it was used up when the refill was, of at least this amount.
    pub(super) fn is_refill(&self, amount_min: f64) -> bool {
        self.used >= amount_min && self.spilled.abs() <= SPILLED_SHARE_MIN * self.used
    }
}

/// The credits that were used up after the first one, in the order of time. `members` are the
/// plateaus, during which the bucket is empty.
pub(super) fn spent_again(
    stretches: &[Stretch],
    members: &[&Plateau<'_>],
    base: f64,
    unit: Unit,
) -> Vec<SpentAgain> {
    let mut spent = Vec::new();
    let mut last_ns = None;
    let (mut tokens, mut used) = (0.0, 0.0f64);
    for cell in cells_in_order(stretches, members, unit) {
        let Some(from_ns) = last_ns else {
            if cell.is_empty {
                last_ns = Some(cell.start_ns);
            }
            continue;
        };
        let refilled = (cell.start_ns - from_ns) * base / 1e9;
        last_ns = Some(cell.start_ns);
        tokens += refilled;
        used = (used - refilled).max(0.0);
        if !cell.is_empty {
            tokens -= cell.moved;
            used += cell.moved;
            continue;
        }
        if used > 0.0 {
            spent.push(SpentAgain {
                used,
                spilled: tokens,
            });
        }
        (tokens, used) = (0.0, 0.0);
    }
    spent
}

/// The size of a bucket, as far as the run shows it.
pub(super) struct CreditSize {
    pub(super) amount: f64,
    /// True if the bucket was full before this amount was used, so that it holds no more.
    pub(super) is_whole: bool,
}

/// The size of a bucket that was used up first at this amount, and then at others. Whether it was
/// full at the start of the run is not known. A bucket that spilled before it was used up again
/// was full, unless that gave less than it had at first: something else used the credit, then.
pub(super) fn size_of_credit(first_amount: f64, later: &[SpentAgain]) -> CreditSize {
    let mut size = CreditSize {
        amount: first_amount,
        is_whole: false,
    };
    for spent in later {
        let was_full = spent.spilled >= SPILLED_SHARE_MIN * spent.used;
        if spent.used > (1.0 + SAME_AMOUNT_SHARE) * size.amount {
            size.amount = spent.used;
            size.is_whole = was_full;
        } else if spent.used >= (1.0 - SAME_AMOUNT_SHARE) * size.amount {
            size.is_whole |= was_full;
        }
    }
    size
}
