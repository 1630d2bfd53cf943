//! A workload whose rate is more even than a medium's.

use super::super::rule::*;
use crate::limiter::Unit;

/// Reads and writes of one limiter differ by at most this share. Chosen, not measured.
pub(super) const DIFFERENCE_SHARE_MAX: f64 = 0.005;

/// A workload whose rate is more even than a medium's.
#[derive(Clone)]
pub(super) struct EvenWorkload<'a> {
    pub(super) measured: Measured<'a>,
    /// Per second, of the quantity that volumes limit at its block size.
    pub(super) rate: f64,
    pub(super) unit: Unit,
    pub(super) scatter: f64,
}

impl EvenWorkload<'_> {
    pub(super) fn target(&self) -> usize {
        self.measured.row.data.target
    }

    pub(super) fn has_same_rate(&self, other: &Self) -> bool {
        self.target() == other.target()
            && self.unit == other.unit
            && are_near(self.rate, other.rate)
    }

    /// True if it has the rate of another one in the unit of that one, which is not its own: blocks
    /// of other sizes, which one limiter of that unit explains.
    pub(super) fn agrees_in_unit_of(&self, other: &Self) -> bool {
        let block_bytes = f64::from(self.measured.row.data.workload.block_bytes);
        let rate = match (self.unit, other.unit) {
            (Unit::Bytes, Unit::Requests) => self.rate / block_bytes,
            (Unit::Requests, Unit::Bytes) => self.rate * block_bytes,
            (Unit::Requests, Unit::Requests) | (Unit::Bytes, Unit::Bytes) => return false,
        };
        self.target() == other.target() && are_near(rate, other.rate)
    }

    /// The rate of a workload beside that of this one.
    pub(super) fn evidence_of(&self, measured: Measured<'_>) -> Evidence {
        let (kind, op) = measured.row.headline_ops()[0];
        let rate = RateFigure::new(op, self.unit);
        let place = format!("figures/ops/{}/{}/value", kind.as_str(), rate.name);
        measured.evidence(&place, rate.value, self.rate, self.unit.per_second())
    }
}

/// True of two rates that one limiter may set.
pub(crate) fn are_near(one: f64, other: f64) -> bool {
    (one / other - 1.0).abs() <= DIFFERENCE_SHARE_MAX
}

/// The unit in which volumes usually limit a row, by the size of its blocks.
pub(super) fn usual_unit(row: &Row) -> Unit {
    Unit::usual(f64::from(row.data.workload.block_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_one_limiter_differ_by_half_a_percent_at_most() {
        for (rate, is_near) in [
            (995.1, true),
            (994.0, false),
            (1004.9, true),
            (1006.0, false),
        ] {
            assert_eq!(are_near(rate, 1000.0), is_near, "{rate}");
        }
    }
}
