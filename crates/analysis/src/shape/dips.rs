//! Finds where a curve dips below its neighbourhood, and which lone points are no dips.
//!
//! `findings_study` shows how well the thresholds here decide together: `rules/slow_zone.rs` has
//! its figures for slow stretches and for healthy disks.

use super::parts::{Dip, NEIGHBOURS, Reach, ShapePoint, mean, median, stretches};
use crate::estimate::largest_by;
use diskproof_model::surface::CurvePoint;
use std::ops::Range;

/// Smallest depth of a dip of one or two points, or at the end of the curve, in logarithms: 13 %
/// slower than what lies next to it.
const DIP_DEPTH_MIN: f64 = 0.14;
/// Smallest depth of a longer dip with both sides: 5 %. A second reading confirms it.
const LONG_DIP_DEPTH_MIN: f64 = 0.05;
/// Points of a longer dip.
const LONG_DIP_POINTS: usize = 3;
/// Smallest depth of a dip in standard deviations of its mean.
const DIP_DEPTH_SCATTERS: f64 = 5.0;
/// A point is far outside of what its neighbours suggest from so many standard deviations on.
const LONE_SCATTERS: f64 = 4.0;
/// With a larger share of the points than this, lone ones are no exceptions.
const LONE_SHARE_MAX: f64 = 0.2;
/// A point is slow because of one request when that one took longer by at least this share of the
/// point's extra time. Where every request of a stream is slow, the longest takes longer by its
/// part of the queue: half of it at most, because a sample is at least two queues long.
const ONE_REQUEST: f64 = 0.75;
/// Points behind a dip at the very start, where nothing lies before it.
const BEHIND_START_MIN: usize = 3;
/// Longest dip, as a share of the points: what is longer is the disk, and the rest is the
/// exception.
const DIP_SHARE_MAX: f64 = 0.25;
/// Longest dip that reaches to the end of the curve. The innermost of two zones holds more than
/// this wherever its rate is 40 % or more of the outer one's.
const END_SHARE_MAX: f64 = 0.2;
/// A last step counts as a dip when it is this many times the largest other step.
const END_STEPS: f64 = 3.0;

/// A point that lies far outside of what its neighbours suggest, while they agree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LonePoint {
    pub point: usize,
    /// Mean of the medians on both sides, a logarithm of bytes per second.
    pub neighbours_ln_rate: f64,
}

/// Points that stand alone or in pairs. A pause of the host slows one sample down, and the next is
/// too fast because the disk read ahead meanwhile; neither may break a level. Empty where they are
/// more than [`LONE_SHARE_MAX`] of the curve.
pub(super) fn lone_points(values: &[f64], scatter: f64) -> Vec<LonePoint> {
    let mut lone = Vec::new();
    for point in 1..values.len().saturating_sub(1) {
        let left = median(&values[point.saturating_sub(NEIGHBOURS)..point]);
        let right = median(&values[point + 1..(point + 1 + NEIGHBOURS).min(values.len())]);
        let outside = (values[point] - left.max(right)).max(left.min(right) - values[point]);
        if outside > LONE_SCATTERS * scatter {
            lone.push(LonePoint {
                point,
                neighbours_ln_rate: (left + right) / 2.0,
            });
        }
    }
    if lone.len() as f64 > LONE_SHARE_MAX * values.len() as f64 {
        Vec::new()
    } else {
        lone
    }
}

/// The lone points that are dips: slow ones in which not just one request waited, neighbours taken
/// together.
pub(super) fn lone_dips(
    lone: &[LonePoint],
    values: &[f64],
    scatter: f64,
    is_one_request: impl Fn(&LonePoint) -> bool,
) -> Vec<Dip> {
    let mut dips: Vec<Dip> = Vec::new();
    for one in lone {
        let is_slow = values[one.point] <= one.neighbours_ln_rate - depth_min(1, scatter);
        if !is_slow || is_one_request(one) {
            continue;
        }
        match dips.last_mut() {
            Some(before) if before.last + 1 == one.point => {
                *before = dip(values, before.first, one.point, before.neighbours_rate.ln())
            }
            _ => dips.push(dip(values, one.point, one.point, one.neighbours_ln_rate)),
        }
    }
    dips
}

/// True if one request alone took the time: then a sector, or the machine, made it wait, and the
/// place is not slow. Where all requests are slow, the longest takes longer by its part of the
/// queue only.
pub(super) fn is_slow_by_one_request(
    curve: &[CurvePoint],
    points: &[ShapePoint],
    lone: &LonePoint,
) -> bool {
    let from = lone.point.saturating_sub(NEIGHBOURS);
    let to = (lone.point + NEIGHBOURS + 1).min(points.len());
    let mut others_ns = Vec::new();
    for point in from..to {
        if point != lone.point {
            others_ns.push(curve[points[point].index].latency_max_ns as f64);
        }
    }
    let slow = &curve[points[lone.point].index];
    let share_of_neighbours = slow.bytes_per_second / lone.neighbours_ln_rate.exp();
    let extra_ns = slow.busy_ns as f64 * (1.0 - share_of_neighbours);
    slow.latency_max_ns as f64 - median(&others_ns) >= ONE_REQUEST * extra_ns
}

/// Runs of stretches that lie lower than both neighbours; at the start of the curve lower than the
/// one neighbour, because no healthy curve rises.
pub(super) fn dips(values: &[f64], scatter: f64, reach: Reach) -> Vec<Dip> {
    let steps = Steps::of_curve(values, scatter);
    let mut dips: Vec<Dip> = Vec::new();
    let mut from = 0;
    while from < steps.stretches.len() {
        // The longest run that is a dip, so that a dip with steps in it is one.
        let found = (from..steps.stretches.len().saturating_sub(1))
            .rev()
            .find(|to| steps.is_dip(from, *to));
        let Some(to) = found else {
            from += 1;
            continue;
        };
        let right = steps.levels[to + 1];
        let neighbours_ln_rate = if from == 0 {
            right
        } else {
            (steps.levels[from - 1] + right) / 2.0
        };
        let first = steps.stretches[from].start;
        let last = steps.stretches[to].end - 1;
        dips.push(dip(values, first, last, neighbours_ln_rate));
        from = to + 1;
    }
    if reach == Reach::Whole
        && let Some(last) = steps.last_dip()
    {
        let start = steps.stretches[last].start;
        if dips.iter().all(|dip| dip.last < start) {
            dips.push(dip(values, start, values.len() - 1, steps.levels[last - 1]));
        }
    }
    dips
}

/// The dip of the points `first` to `last`; the rates are given as logarithms.
fn dip(values: &[f64], first: usize, last: usize, neighbours_ln_rate: f64) -> Dip {
    Dip {
        first,
        last,
        rate: mean(values[first..=last].iter().copied()).exp(),
        neighbours_rate: neighbours_ln_rate.exp(),
    }
}

/// A curve as stretches of one level each.
struct Steps {
    stretches: Vec<Range<usize>>,
    levels: Vec<f64>,
    /// Points of the curve.
    points: usize,
    scatter: f64,
}

impl Steps {
    /// Divides a curve, given as the logarithms of its rates.
    fn of_curve(values: &[f64], scatter: f64) -> Self {
        let stretches = stretches(values, scatter);
        let levels = stretches
            .iter()
            .map(|stretch| mean(values[stretch.clone()].iter().copied()))
            .collect();
        Self {
            stretches,
            levels,
            points: values.len(),
            scatter,
        }
    }

    /// True if the stretches `from` to `to` are a dip: down at its left edge, up at its right one,
    /// and below the line between both neighbours all the way. The steps count, not the levels:
    /// over a fifth of the surface a healthy disk may fall by as much as the dip is deep. A stretch
    /// must follow `to`.
    fn is_dip(&self, from: usize, to: usize) -> bool {
        debug_assert!(from <= to && to + 1 < self.stretches.len());
        let begin = self.stretches[from].start;
        let length = self.stretches[to].end - begin;
        let has_too_few_points_behind =
            from == 0 && self.stretches[to + 1].len() < BEHIND_START_MIN;
        if has_too_few_points_behind || length as f64 > DIP_SHARE_MAX * self.points as f64 {
            return false;
        }
        let right = self.levels[to + 1];
        let left = if from == 0 {
            f64::INFINITY
        } else {
            self.levels[from - 1]
        };
        let depth = if length >= LONG_DIP_POINTS {
            LONG_DIP_DEPTH_MIN.max(depth_over_scatter(length, self.scatter))
        } else {
            depth_min(length, self.scatter)
        };
        let has_edges = self.levels[from] <= left - depth && self.levels[to] <= right - depth;
        let start = if left.is_finite() { left } else { right };
        let mut is_below_line = true;
        for i in from..=to {
            let middle = (self.stretches[i].start + self.stretches[i].end) as f64 / 2.0;
            let line = start + (right - start) * (middle - begin as f64) / length as f64;
            is_below_line &= self.levels[i] <= line - depth / 2.0;
        }
        has_edges && is_below_line
    }

    /// The stretch from which on the curve is one dip to its end, because the step down to it is
    /// far larger than all others: an inner zone is slower than the one before, but by no more than
    /// its neighbours are.
    fn last_dip(&self) -> Option<usize> {
        let mut falls: Vec<f64> = self
            .levels
            .windows(2)
            .map(|pair| pair[0] - pair[1])
            .collect();
        let (before, _) = largest_by(falls.iter().enumerate(), |(_, fall)| **fall)?;
        let fall = falls.remove(before);
        let others = falls.into_iter().fold(0.0, f64::max);
        let length = self.points - self.stretches[before + 1].start;
        let is_short = length as f64 <= END_SHARE_MAX * self.points as f64;
        if is_short && fall >= depth_min(length, self.scatter) && fall >= END_STEPS * others {
            Some(before + 1)
        } else {
            None
        }
    }
}

/// The least depth of a dip of this many points, in logarithms.
fn depth_min(length: usize, scatter: f64) -> f64 {
    DIP_DEPTH_MIN.max(depth_over_scatter(length, scatter))
}

/// The least depth that is no chance, for the mean of this many points.
fn depth_over_scatter(length: usize, scatter: f64) -> f64 {
    DIP_DEPTH_SCATTERS * scatter / (length as f64).sqrt()
}
