//! Finds the longest time for which a target kept its highest rate without a pause.

use super::plateau::RATE_NS_MIN;
use super::stretch::{Unit, rate_of, slice_rate};
use diskproof_model::row::Row;

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

/// A time without a break, and the rate in it.
pub(super) struct KeptRate {
    pub(super) start_ns: f64,
    pub(super) end_ns: f64,
    pub(super) rate: f64,
    /// False if it is too short, or was not measured.
    pub(super) shows_rate: bool,
}

impl KeptRate {
    fn measured(start_ns: u64, wall_ns: u64, rate: f64) -> Self {
        Self {
            start_ns: start_ns as f64,
            end_ns: start_ns.saturating_add(wall_ns) as f64,
            rate,
            shows_rate: wall_ns as f64 >= RATE_NS_MIN,
        }
    }
}

/// The highest rate of a slice of these rows, and the longest time without a pause for which about
/// that rate was kept. Only such a time excludes a credit, because slower times refill it. A row
/// without slices is one.
pub(crate) fn held_rate_of_rows(rows: &[&Row], unit: Unit) -> Option<HeldRate> {
    let mut times = Vec::new();
    for row in rows {
        for slice in &row.data.slices {
            let rate = slice_rate(slice, unit);
            times.push(KeptRate::measured(slice.start_ns, slice.wall_ns, rate));
        }
        if row.data.slices.is_empty() {
            let (start_ns, wall_ns) = (row.data.start_ns, row.data.wall_ns);
            times.push(KeptRate::measured(start_ns, wall_ns, rate_of(row, unit)));
        }
    }
    longest_kept(times)
}

/// The longest of these times, without a pause, in which about the highest of their rates was kept.
pub(super) fn longest_kept(times: Vec<KeptRate>) -> Option<HeldRate> {
    let rate = times
        .iter()
        .filter(|time| time.shows_rate)
        .map(|time| time.rate)
        .fold(0.0, f64::max);
    if rate <= 0.0 {
        return None;
    }
    // A slower stretch between two others makes a pause.
    let mut fast: Vec<&KeptRate> = times
        .iter()
        .filter(|time| time.rate >= HELD_SHARE * rate)
        .collect();
    fast.sort_by(|a, b| a.start_ns.total_cmp(&b.start_ns));
    let (mut longest_ns, mut begin_ns, mut end_ns) = (0.0f64, 0.0, f64::NEG_INFINITY);
    for time in fast {
        if time.start_ns - end_ns > PAUSE_NS_MAX {
            begin_ns = time.start_ns;
        }
        end_ns = end_ns.max(time.end_ns);
        longest_ns = longest_ns.max(end_ns - begin_ns);
    }
    Some(HeldRate {
        rate,
        held_ns: longest_ns,
    })
}
