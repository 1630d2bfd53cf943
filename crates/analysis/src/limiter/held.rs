//! Finds the longest time for which a target kept its highest rate without a pause.

use super::plateau::RATE_NS_MIN;
use super::stretch::{Role, Stretch, Unit};

/// A rate counts as kept while every stretch reaches at least this share of it. Chosen: a medium's
/// rate varies by 1 to 10 %.
const HELD_SHARE: f64 = 0.9;
/// Two stretches follow each other without a pause if at most this time passes between them.
const PAUSE_NS_MAX: f64 = 50e6;

/// A rate that was kept without a pause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HeldRate {
    /// In the unit of the caller's question, per second.
    pub(crate) rate: f64,
    /// The time for which it was kept.
    pub(crate) held_ns: f64,
}

/// The highest rate of a stretch, and the longest time without a pause for which about that rate
/// was kept. Only such a time excludes a credit, because slower times refill it.
pub(crate) fn held_rate(stretches: &[Stretch], unit: Unit) -> Option<HeldRate> {
    let rate = stretches
        .iter()
        .filter(|stretch| stretch.role != Role::Unmeasured && stretch.length_ns() >= RATE_NS_MIN)
        .map(|stretch| stretch.rate(unit))
        .fold(0.0, f64::max);
    if rate <= 0.0 {
        return None;
    }
    // A slower stretch between two others makes a pause.
    let mut fast: Vec<&Stretch> = stretches
        .iter()
        .filter(|stretch| stretch.rate(unit) >= HELD_SHARE * rate)
        .collect();
    fast.sort_by(|a, b| a.start_ns.total_cmp(&b.start_ns));
    let (mut longest_ns, mut begin_ns, mut end_ns) = (0.0f64, 0.0, f64::NEG_INFINITY);
    for stretch in fast {
        if stretch.start_ns - end_ns > PAUSE_NS_MAX {
            begin_ns = stretch.start_ns;
        }
        end_ns = end_ns.max(stretch.end_ns());
        longest_ns = longest_ns.max(end_ns - begin_ns);
    }
    Some(HeldRate {
        rate,
        held_ns: longest_ns,
    })
}
