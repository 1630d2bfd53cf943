//! A figure and its 95 % interval, with what follows from both. Public in `record`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// A value with its uncertainty. There is no bare mean anywhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Independent batches behind it.
    pub n: u64,
    /// The estimate itself, in `unit`.
    pub value: f64,
    /// Half-width of the 95 % interval, same unit; `null` when there was too little to tell.
    pub half_width_95: Option<f64>,
    /// `1/s` or `B/s`.
    pub unit: String,
}

impl Estimate {
    /// An estimate of `n` values; without a half-width nothing is known of the interval.
    pub fn new(n: u64, value: f64, half_width_95: Option<f64>, unit: &str) -> Self {
        Self {
            n,
            value,
            half_width_95,
            unit: unit.to_owned(),
        }
    }

    /// Half-width over value; `None` when unknown or the value is zero.
    pub fn relative_half_width(&self) -> Option<f64> {
        match self.half_width_95 {
            Some(half_width) if self.value > 0.0 => Some(half_width / self.value),
            _ => None,
        }
    }

    /// Widens the interval to this half-width, which comes from `n` observations, where it is
    /// narrower.
    pub fn widen(&mut self, half_width: f64, n: u64) {
        let is_wider = match self.half_width_95 {
            Some(own) => half_width > own,
            None => true,
        };
        if is_wider {
            self.half_width_95 = Some(half_width);
            self.n = n;
        }
    }

    /// Orders rates by what is certain: the lower end of the interval, then the value. The largest
    /// value among many is often the one that is known worst.
    pub fn cmp_certain(&self, other: &Self) -> Ordering {
        self.certain()
            .total_cmp(&other.certain())
            .then(self.value.total_cmp(&other.value))
    }

    /// The lower end of the interval; 0 where that is unknown.
    fn certain(&self) -> f64 {
        let Some(half_width) = self.half_width_95 else {
            return 0.0;
        };
        let [low, _] = positive_interval(self.value, half_width);
        low
    }
}

/// The relative half-width from which on the lower end of a symmetric interval is too low: at 1 it
/// would be zero. Chosen, not measured.
const WIDE: f64 = 0.5;

/// The ends of the interval of a positive figure: the lower end of a wide one approaches zero and
/// never reaches it.
pub fn positive_interval(value: f64, half_width: f64) -> [f64; 2] {
    let low = match value {
        value if half_width > WIDE * value => value / (1.0 + half_width / (WIDE * value)),
        value => value - half_width,
    };
    [low.max(0.0), value + half_width]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cmp_certain_prefers_the_well_known_rate() {
        let rate = |value, half_width_95| Estimate {
            n: 20,
            value,
            half_width_95,
            unit: "1/s".to_owned(),
        };
        let (known, rough) = (rate(100.0, Some(1.0)), rate(120.0, Some(50.0)));
        let unknown = rate(500.0, None);
        assert_eq!(known.cmp_certain(&rough), Ordering::Greater);
        assert_eq!(rough.cmp_certain(&unknown), Ordering::Greater);
        assert_eq!(unknown.cmp_certain(&rate(400.0, None)), Ordering::Greater);
        assert_eq!(known.cmp_certain(&rate(104.0, Some(1.0))), Ordering::Less);
    }
}
