//! Chooses the points of dips that a survey reads a second time at its end, and decides by them
//! whether a dip is confirmed. Another program that uses the disk for a while also makes a stretch
//! slow. Later the dip is gone, or the sides are slow, too.

use crate::estimate::mean;
use crate::shape::{Dip, Reach, Shape};
use diskproof_model::surface::CurvePoint;

/// At most this many dips are read again: the deepest ones. Each takes up to seven samples at the
/// end of a survey, whose time they lengthen.
const DIPS_MAX: usize = 3;
/// This many points of a dip are read again: its ends and its middle.
const INSIDE_POINTS: usize = 3;
/// This many points on each side of a dip are read again: one alone may be slow by chance.
const BESIDE_POINTS: usize = 2;
/// A dip is confirmed if the second reading shows at least this share of its depth. The samples of
/// the second reading are few, so their level is less exact than that of the curve. Chosen, not
/// measured.
const DEPTH_SHARE: f64 = 0.5;

/// The result of a second reading of a dip.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum SecondReading {
    /// The dip was not read again.
    Missing,
    /// The stretch was as fast as its sides.
    Refuted,
    /// The stretch was slow again, at this rate in bytes per second.
    Confirmed(f64),
}

/// Indices of the points of a curve that are worth a second reading.
pub fn points_to_confirm(curve: &[CurvePoint]) -> Vec<usize> {
    // The reach does not matter: a point too many costs only a moment.
    let Some(shape) = Shape::from_curve(curve, Reach::Whole) else {
        return Vec::new();
    };
    let mut points: Vec<usize> = Vec::new();
    for dip in deepest_dips(&shape) {
        points.extend(points_inside(dip));
        let sides = DipSides::new(&shape, dip);
        points.extend(sides.left.into_iter().take(BESIDE_POINTS));
        points.extend(sides.right.into_iter().take(BESIDE_POINTS));
    }
    let mut indices: Vec<usize> = points
        .iter()
        .map(|point| shape.points[*point].index)
        .collect();
    indices.sort_unstable();
    indices.dedup();
    indices
}

/// The dips that are read again, the deepest first.
fn deepest_dips(shape: &Shape) -> Vec<&Dip> {
    let mut dips: Vec<&Dip> = shape.dips.iter().collect();
    dips.sort_by(|one, other| {
        let share = one.rate / one.neighbours_rate;
        share.total_cmp(&(other.rate / other.neighbours_rate))
    });
    dips.truncate(DIPS_MAX);
    dips
}

/// The ends of a dip and points between them, evenly spaced; all of a short one.
fn points_inside(dip: &Dip) -> Vec<usize> {
    let length = dip.last - dip.first;
    let last_step = length.min(INSIDE_POINTS - 1);
    let mut points = Vec::new();
    for step in 0..=last_step {
        points.push(dip.first + length * step / last_step.max(1));
    }
    points
}

/// The points on both sides of a dip that belong to no dip, the nearest first.
struct DipSides {
    left: Vec<usize>,
    right: Vec<usize>,
}

impl DipSides {
    /// The points beside a dip that lie in no dip, the nearest first.
    fn new(shape: &Shape, dip: &Dip) -> Self {
        let mut left: Vec<usize> = (0..dip.first).rev().collect();
        let mut right: Vec<usize> = (dip.last + 1..shape.points.len()).collect();
        left.retain(|point| !is_in_dip(shape, *point));
        right.retain(|point| !is_in_dip(shape, *point));
        Self { left, right }
    }
}

/// True of a point of the curve in any of its dips.
fn is_in_dip(shape: &Shape, point: usize) -> bool {
    shape.dips.iter().any(|dip| dip.contains(point))
}

/// The result of the second reading of `curve` for a dip of its shape.
pub(crate) fn second_reading(curve: &[CurvePoint], shape: &Shape, dip: &Dip) -> SecondReading {
    let sides = DipSides::new(shape, dip);
    let mut beside = Vec::new();
    for side in [sides.left, sides.right] {
        beside.extend(later_level(
            curve,
            shape,
            side.into_iter().take(BESIDE_POINTS),
        ));
    }
    let Some(inside) = later_level(curve, shape, dip.first..=dip.last) else {
        return SecondReading::Missing;
    };
    if beside.is_empty() {
        return SecondReading::Missing;
    }
    let depth = mean(&beside) - inside;
    if depth >= DEPTH_SHARE * (dip.neighbours_rate / dip.rate).ln() {
        SecondReading::Confirmed(inside.exp())
    } else {
        SecondReading::Refuted
    }
}

/// The mean logarithm of the rates of the second reading, over the first of these points; `None`
/// where none was read again.
fn later_level(
    curve: &[CurvePoint],
    shape: &Shape,
    points: impl Iterator<Item = usize>,
) -> Option<f64> {
    let mut logs = Vec::new();
    for point in points {
        match curve[shape.points[point].index].later_bytes_per_second {
            Some(rate) if rate > 0.0 => logs.push(rate.ln()),
            _ => {}
        }
    }
    if logs.is_empty() {
        return None;
    }
    logs.truncate(INSIDE_POINTS.max(BESIDE_POINTS));
    Some(mean(&logs))
}
