//! Finds a fall to an even rate that came too shortly before the end to prove a limiter.

use super::credit::is_paid;
use super::plateau::{
    Plateau, SHALLOWER_FALL_MIN, TOTAL_PLATEAU_NS_MIN, has_fallen, highest_rate, plateau,
};
use super::stretch::{Role, Stretch, Unit};
use crate::estimate::is_of_limiter;

/// A fall to an even rate, too shortly before the end to prove a limiter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LateFall {
    /// The unit in which the rate is even.
    pub(crate) unit: Unit,
    /// The rate after it, in `unit` per second.
    pub(crate) after: f64,
    /// The even rate before it, in `unit` per second, where that shows the limiter; `None` where
    /// the rate after the fall is even.
    pub(crate) limit: Option<f64>,
    /// The time from it to the end, in nanoseconds.
    pub(crate) lasted_ns: f64,
    /// The rows that fell to that rate, ascending.
    pub(crate) rows: Vec<usize>,
}

/// The fall within the last second of the stretches to a rate that is as even as a limiter's, and
/// to which all that ran after it keeps; `None` where there is none, or where it has too few
/// requests to distinguish evenness from chance.
pub(crate) fn late_fall(stretches: &[Stretch]) -> Option<LateFall> {
    let last = stretches
        .iter()
        .filter(|stretch| stretch.role == Role::Closed)
        .max_by(|a, b| a.end_ns().total_cmp(&b.end_ns()))?;
    // Blocks of one size are equally even in both units.
    let usual = Unit::usual(last.block_bytes);
    late_fall_in(stretches, last.end_ns(), usual)
        .or_else(|| late_fall_in(stretches, last.end_ns(), usual.other()))
}

/// The late fall in counts of this unit.
fn late_fall_in(stretches: &[Stretch], end_ns: f64, unit: Unit) -> Option<LateFall> {
    let late: Vec<Plateau<'_>> = stretches
        .iter()
        .filter_map(|stretch| plateau(stretch, unit))
        .filter(|plateau| plateau.start_ns() >= end_ns - TOTAL_PLATEAU_NS_MIN)
        .filter(|plateau| is_of_limiter(&plateau.counts))
        .collect();
    for first in &late {
        let level = first.level;
        let members: Vec<&Plateau<'_>> =
            late.iter().filter(|plateau| plateau.is_at(level)).collect();
        if is_late_fall(stretches, &members, level, unit) {
            let mut rows: Vec<usize> = members.iter().map(|member| member.stretch.row).collect();
            rows.sort_unstable();
            rows.dedup();
            return Some(LateFall {
                unit,
                after: level,
                limit: None,
                lasted_ns: end_ns - first.start_ns(),
                rows,
            });
        }
    }
    None
}

/// Returns `true` if these plateaus of one level follow on a clearly higher rate of the same load,
/// and all else keeps to the level since then.
fn is_late_fall(stretches: &[Stretch], members: &[&Plateau<'_>], level: f64, unit: Unit) -> bool {
    let has_fallen = members
        .iter()
        .any(|member| has_fallen(stretches, member, level, unit));
    if !has_fallen {
        return false;
    }
    let mut same_load = stretches.to_vec();
    same_load.retain(|stretch| {
        members
            .iter()
            .any(|member| member.stretch.family == stretch.family)
    });
    // Single requests of a queue that empties are a little slower, too.
    match highest_rate(&same_load, level, unit) {
        Some(highest) => {
            highest >= SHALLOWER_FALL_MIN * level && is_paid(stretches, members, level, unit)
        }
        None => false,
    }
}
