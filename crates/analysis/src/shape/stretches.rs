//! The partition of a curve into stretches of one level.

use super::neighbours::mean;
use std::ops::Range;

/// Penalty of a further level, in units of scatter² × ln(points): 2 is Schwarz's criterion for a
/// new mean; half as much again makes noise that is not normal break levels rarely.
const LEVEL_PENALTY: f64 = 3.0;

/// The partition into stretches of one level that costs least: squared deviations plus a penalty
/// for each stretch (optimal partitioning; Jackson et al.,
/// "An algorithm for optimal partitioning of data on an interval", 2005), with the starts that can
/// no longer win dropped (Killick et al., "Optimal detection of changepoints with a linear
/// computational cost", 2012).
pub(super) fn stretches(values: &[f64], scatter: f64) -> Vec<Range<usize>> {
    let n = values.len();
    let penalty = LEVEL_PENALTY * scatter * scatter * (n.max(2) as f64).ln();
    let centre = mean(values.iter().copied());
    let mut sums = vec![(0.0, 0.0)];
    for value in values {
        let (sum, squares) = sums[sums.len() - 1];
        sums.push((sum + (value - centre), squares + (value - centre).powi(2)));
    }
    let cost = |from: usize, to: usize| {
        let (sum, squares) = (sums[to].0 - sums[from].0, sums[to].1 - sums[from].1);
        (squares - sum * sum / (to - from) as f64).max(0.0)
    };
    let (mut least, mut starts, mut candidates) = (vec![-penalty], vec![0], vec![0usize]);
    for end in 1..=n {
        let through = |start: usize| least[start] + cost(start, end);
        let (start, price) = candidates
            .iter()
            .map(|s| (*s, through(*s)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .unwrap_or((0, f64::INFINITY));
        candidates.retain(|s| through(*s) <= price + penalty);
        candidates.push(end);
        least.push(price + penalty);
        starts.push(start);
    }
    let mut ends = vec![];
    let mut end = n;
    while end > 0 {
        ends.push(starts[end]..end);
        end = starts[end];
    }
    ends.reverse();
    ends
}
