//! Where a curve dips below what lies on both sides, and which lone points are no dips.

use super::parts::stretches;
use super::parts::{Dip, Reach, ShapePoint};
use super::parts::{NEIGHBOURS, mean, median};
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
/// So large a part of the points is no exception.
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
    /// Mean of the medians on both sides.
    pub beside: f64,
}

/// Points that stand alone or in pairs. A pause of the host slows one sample down, and the next is
/// too fast because the disk read ahead meanwhile; neither may break a level. None of them where
/// they are many: then they are the curve.
pub(super) fn lone_points(values: &[f64], scatter: f64) -> Vec<LonePoint> {
    let inner = 1..values.len().saturating_sub(1);
    let lone = inner.filter_map(|i| {
        let left = median(&values[i.saturating_sub(NEIGHBOURS)..i]);
        let right = median(&values[i + 1..(i + 1 + NEIGHBOURS).min(values.len())]);
        let outside = (values[i] - left.max(right)).max(left.min(right) - values[i]);
        (outside > LONE_SCATTERS * scatter).then_some(LonePoint {
            point: i,
            beside: (left + right) / 2.0,
        })
    });
    let lone: Vec<LonePoint> = lone.collect();
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
    waited: impl Fn(&LonePoint) -> bool,
) -> Vec<Dip> {
    let slow = lone
        .iter()
        .filter(|l| values[l.point] <= l.beside - depth_min(1, scatter) && !waited(l));
    let mut dips: Vec<Dip> = Vec::new();
    for l in slow {
        match dips.last_mut() {
            Some(before) if before.last + 1 == l.point => {
                *before = dip(values, before.first, l.point, before.beside.ln())
            }
            _ => dips.push(dip(values, l.point, l.point, l.beside)),
        }
    }
    dips
}

/// Whether one request alone took the time: then a sector, or the machine, made it wait, and the
/// place is not slow. Where all requests are slow, the longest takes longer by its part of the
/// queue only.
pub(super) fn has_waited(curve: &[CurvePoint], points: &[ShapePoint], lone: &LonePoint) -> bool {
    let at = |i: usize| &curve[points[i].index];
    let near =
        lone.point.saturating_sub(NEIGHBOURS)..(lone.point + NEIGHBOURS + 1).min(points.len());
    let others = near.filter(|i| *i != lone.point);
    let others: Vec<f64> = others.map(|i| at(i).latency_max_ns as f64).collect();
    let slow = at(lone.point);
    let extra_ns = slow.busy_ns as f64 * (1.0 - (points[lone.point].ln_rate - lone.beside).exp());
    slow.latency_max_ns as f64 - median(&others) >= ONE_REQUEST * extra_ns
}

/// Runs of stretches that lie lower than both neighbours; at the start of the curve lower than the
/// one neighbour, because no healthy curve rises.
pub(super) fn dips(values: &[f64], scatter: f64, reach: Reach) -> Vec<Dip> {
    let stretches = stretches(values, scatter);
    let level = |s: &Range<usize>| mean(values[s.clone()].iter().copied());
    let levels: Vec<f64> = stretches.iter().map(level).collect();
    let mut dips = Vec::new();
    let mut from = 0;
    while from < stretches.len() {
        // The longest run that is a dip, so that a dip with steps in it is one.
        let found = (from..stretches.len().saturating_sub(1))
            .rev()
            .find(|to| is_dip(&stretches, &levels, from, *to, values.len(), scatter));
        let Some(to) = found else {
            from += 1;
            continue;
        };
        let beside = [from.checked_sub(1), Some(to + 1)].into_iter().flatten();
        let beside = mean(beside.map(|i| levels[i]));
        let (first, last) = (stretches[from].start, stretches[to].end - 1);
        dips.push(dip(values, first, last, beside));
        from = to + 1;
    }
    let last =
        last_dip(&stretches, &levels, values.len(), scatter).filter(|_| reach == Reach::Whole);
    let start = last.map(|i| stretches[i].start);
    if let Some(start) = start.filter(|start| dips.iter().all(|d| d.last < *start)) {
        let before = levels[stretches.partition_point(|s| s.start < start) - 1];
        dips.push(dip(values, start, values.len() - 1, before));
    }
    dips
}

fn dip(values: &[f64], first: usize, last: usize, beside: f64) -> Dip {
    Dip {
        first,
        last,
        rate: mean(values[first..=last].iter().copied()).exp(),
        beside: beside.exp(),
    }
}

/// Down at its left edge, up at its right one, and below the line between what lies next to it all
/// the way. The steps count, not the levels: over a fifth of the surface a healthy disk may fall by
/// as much as the dip is deep.
fn is_dip(
    stretches: &[Range<usize>],
    levels: &[f64],
    from: usize,
    to: usize,
    points: usize,
    scatter: f64,
) -> bool {
    let length = stretches[to].end - stretches[from].start;
    let lonely = from == 0 && stretches[to + 1].len() < BEHIND_START_MIN;
    if lonely || length as f64 > DIP_SHARE_MAX * points as f64 {
        return false;
    }
    let right = levels[to + 1];
    let left = from.checked_sub(1);
    let left = left.map_or(f64::INFINITY, |left| levels[left]);
    let depth = if length >= LONG_DIP_POINTS {
        LONG_DIP_DEPTH_MIN.max(depth_over_scatter(length, scatter))
    } else {
        depth_min(length, scatter)
    };
    let steps = levels[from] <= left - depth && levels[to] <= right - depth;
    let start = if left.is_finite() { left } else { right };
    let line = |i: usize| {
        let middle =
            (stretches[i].start + stretches[i].end) as f64 / 2.0 - stretches[from].start as f64;
        start + (right - start) * middle / length as f64
    };
    steps && (from..=to).all(|i| levels[i] <= line(i) - depth / 2.0)
}

fn depth_min(length: usize, scatter: f64) -> f64 {
    DIP_DEPTH_MIN.max(depth_over_scatter(length, scatter))
}

fn depth_over_scatter(length: usize, scatter: f64) -> f64 {
    DIP_DEPTH_SCATTERS * scatter / (length as f64).sqrt()
}

/// Where a last stretch begins whose step down is out of all proportion to the others: an inner
/// zone is slower than the one before, but by no more than its neighbours are. An index into the
/// stretches.
fn last_dip(
    stretches: &[Range<usize>],
    levels: &[f64],
    points: usize,
    scatter: f64,
) -> Option<usize> {
    let falls: Vec<f64> = levels.windows(2).map(|pair| pair[0] - pair[1]).collect();
    let falls = || falls.iter().copied().enumerate();
    let (before, fall) = largest_by(falls(), |(_, fall)| *fall)?;
    let others = falls().filter(|(i, _)| *i != before);
    let others = others.map(|(_, fall)| fall).fold(0.0, f64::max);
    let length = points - stretches[before + 1].start;
    let short = length as f64 <= END_SHARE_MAX * points as f64;
    (short && fall >= depth_min(length, scatter) && fall >= END_STEPS * others)
        .then_some(before + 1)
}
