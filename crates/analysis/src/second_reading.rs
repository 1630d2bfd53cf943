//! Second readings of dips, at the end of a survey: which points to read again, and whether a dip
//! is there again. A program that used the disk for a while makes a stretch slow as well; at
//! another time it is gone, or slows the sides too.

use crate::estimate::mean;
use crate::shape::{Dip, Reach, Shape};
use diskproof_model::surface::CurvePoint;

/// Dips that are read again, the deepest.
const DIPS_MAX: usize = 3;
/// Points of a dip that are read again: its ends and its middle.
const INSIDE: usize = 3;
/// Points on each side of a dip that are read again.
const BESIDE: usize = 2;
/// A dip is there again with at least this share of its depth.
const DEPTH_SHARE: f64 = 0.5;

/// What a second reading says of a dip.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum SecondReading {
    /// There was none.
    Missing,
    /// The stretch was as fast as its sides.
    Refuted,
    /// The stretch was slow again; its rate, in bytes per second.
    Confirmed(f64),
}

/// Indices of the points of a curve that are worth a second reading.
pub fn points_to_confirm(curve: &[CurvePoint]) -> Vec<usize> {
    // As if it were the whole surface: a place too many costs a moment only.
    let Some(shape) = Shape::of(curve, Reach::Whole) else {
        return Vec::new();
    };
    let mut dips: Vec<&Dip> = shape.dips.iter().collect();
    dips.sort_by(|a, b| (a.rate / a.beside).total_cmp(&(b.rate / b.beside)));
    let mut points: Vec<usize> = Vec::new();
    for dip in dips.into_iter().take(DIPS_MAX) {
        let last_step = (dip.last - dip.first).min(INSIDE - 1);
        points.extend((0..=last_step).map(|i| {
            let steps = (dip.last - dip.first) * i;
            dip.first + steps / last_step.max(1)
        }));
        let (left, right) = sides(&shape, dip);
        points.extend(left.into_iter().take(BESIDE));
        points.extend(right.into_iter().take(BESIDE));
    }
    let mut indices: Vec<usize> = points.iter().map(|i| shape.points[*i].index).collect();
    indices.sort_unstable();
    indices.dedup();
    indices
}

/// The points on both sides of a dip that belong to no dip, the nearest first.
fn sides(shape: &Shape, dip: &Dip) -> (Vec<usize>, Vec<usize>) {
    let is_free = |i: &usize| !shape.dips.iter().any(|d| (d.first..=d.last).contains(i));
    (
        (0..dip.first).rev().filter(is_free).collect(),
        (dip.last + 1..shape.points.len()).filter(is_free).collect(),
    )
}

/// Whether a dip of the shape of `curve` was there again.
pub(crate) fn second_reading(curve: &[CurvePoint], shape: &Shape, dip: &Dip) -> SecondReading {
    let later = |points: &mut dyn Iterator<Item = usize>| -> Option<f64> {
        let rates: Vec<f64> = points
            .filter_map(|i| curve[shape.points[i].index].later_bytes_per_second)
            .filter(|rate| *rate > 0.0)
            .take(INSIDE.max(BESIDE))
            .map(f64::ln)
            .collect();
        (!rates.is_empty()).then(|| mean(&rates))
    };
    let (left, right) = sides(shape, dip);
    let beside: Vec<f64> = [left, right]
        .into_iter()
        .filter_map(|side| later(&mut side.into_iter().take(BESIDE)))
        .collect();
    let Some(inside) = later(&mut (dip.first..=dip.last)).filter(|_| !beside.is_empty()) else {
        return SecondReading::Missing;
    };
    let depth = mean(&beside) - inside;
    if depth >= DEPTH_SHARE * (dip.beside / dip.rate).ln() {
        SecondReading::Confirmed(inside.exp())
    } else {
        SecondReading::Refuted
    }
}
