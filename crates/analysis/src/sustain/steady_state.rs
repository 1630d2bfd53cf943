//! Decides by the rates of rounds whether a load reached the steady state, and how much longer it
//! would take.

use crate::estimate::mean;
use diskproof_model::sustain::SteadyState;

/// This many rounds at the end decide about the steady state (SNIA, Solid State Storage Performance
/// Test Specification 2.0.1, 2.1.24).
const STEADY_ROUNDS: usize = 5;
/// In the steady state, the highest and lowest rate of these rounds differ by at most this share of
/// their mean.
const STEADY_RANGE_MAX: f64 = 0.2;
/// In the steady state, the line through these rounds rises or falls by at most this share of their
/// mean.
const STEADY_SLOPE_MAX: f64 = 0.1;

/// Range and slope of rounds, as shares of their mean.
struct Spread {
    /// The highest rate less the lowest.
    range: f64,
    /// The rise of the fitted line from the first round to the last; negative where it falls.
    slope: f64,
}

impl Spread {
    /// `None` of rounds in which nothing was done: that is no state of a load.
    fn from_rounds(rates: &[f64]) -> Option<Self> {
        debug_assert!(rates.len() >= 2, "one round has no slope");
        let level = mean(rates);
        if level <= 0.0 {
            return None;
        }
        let highest = rates.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let lowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let middle = (rates.len() as f64 - 1.0) / 2.0;
        let mut products = 0.0;
        let mut squares = 0.0;
        for (number, rate) in rates.iter().enumerate() {
            let distance = number as f64 - middle;
            products += distance * (rate - level);
            squares += distance * distance;
        }
        Some(Self {
            range: (highest - lowest) / level,
            slope: products / squares * 2.0 * middle / level,
        })
    }

    fn is_steady(&self) -> bool {
        self.range <= STEADY_RANGE_MAX && self.slope.abs() <= STEADY_SLOPE_MAX
    }
}

/// The number, from 1, of the round that completed the first five steady rounds of the state in
/// which the load ended. `None` if the last five rounds are not steady.
///
/// A load on the credit of a limiter is steady, too, until its rate falls. That state is over, so
/// it does not count.
fn steady_since(rates: &[f64]) -> Option<u64> {
    let mut reached_at = None;
    for (number, window) in rates.windows(STEADY_ROUNDS).enumerate() {
        if !Spread::from_rounds(window).is_some_and(|spread| spread.is_steady()) {
            reached_at = None;
        } else if reached_at.is_none() {
            reached_at = Some((number + STEADY_ROUNDS) as u64);
        }
    }
    reached_at
}

/// The steady state by rounds of this length with these rates: whether and when it was reached, and
/// the time and bytes that it would still take. `bytes_per_second` is that of the last round.
pub(super) fn steady_state(round_ns: u64, rates: &[f64], bytes_per_second: f64) -> SteadyState {
    let last = rates
        .last_chunk::<STEADY_ROUNDS>()
        .and_then(|rounds| Spread::from_rounds(rounds));
    let is_steady = match &last {
        Some(spread) => spread.is_steady(),
        None => false,
    };
    let more_rounds = if is_steady {
        None
    } else if rates.len() < STEADY_ROUNDS {
        Some(STEADY_ROUNDS - rates.len())
    } else {
        // None of these rounds may be among the steady ones.
        Some(STEADY_ROUNDS)
    };
    let more_ns = more_rounds.map(|rounds| rounds as u64 * round_ns);
    SteadyState {
        round_ns,
        rounds: rates.len() as u64,
        reached_at: steady_since(rates),
        range: last.as_ref().map(|spread| spread.range),
        slope: last.as_ref().map(|spread| spread.slope),
        is_steady,
        more_ns,
        more_bytes: more_ns.map(|ns| (bytes_per_second * ns as f64 / 1e9) as u64),
    }
}
