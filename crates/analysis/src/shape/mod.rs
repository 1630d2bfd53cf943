//! Describes the shape of a curve: how far its points scatter, which levels it keeps, and where it
//! dips below its neighbourhood. Rates are logarithms here, so that a deviation is a share.
//!
//! The healthy curve of a rotating disk is a staircase that only falls: zones of one rate each,
//! from two to dozens of them, with any length. So nothing here may treat a step down as a fault,
//! and nothing may depend on how many points a zone has.

mod dips;
mod parts;

pub(crate) use parts::median;
pub(crate) use parts::{Dip, Level, Reach, ShapePoint, Stray};

use dips::{is_slow_by_one_request, lone_dips, lone_points};
use diskproof_model::surface::CurvePoint;
use parts::stretches;
use parts::{NEIGHBOURS, mean, outside};

/// Fewer points have no shape: most of them would be neighbours of an end. Chosen, not measured.
const POINTS_MIN: usize = 12;
/// More points are judged in groups: what is narrower than a four-thousandth of the span is the
/// scan's business, and the search for levels takes time that grows with the square.
const POINTS_MAX: usize = 4096;
/// No timing of samples is better than this, and a zone's rate is not constant to the last digit.
const SCATTER_MIN: f64 = 0.004;
/// A sample of less time is no more exact than a wake-up that comes 1 ms late.
const BUSY_NS_MIN: u64 = 5_000_000;
/// A point during which the program waited for a processor for this share of the time shows the
/// machine, not the disk. Chosen, not measured.
const LATE_SHARE: f64 = 0.05;

/// A curve made ready to be judged.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    /// By position; those that transferred something without an error, for long enough to be
    /// exact, and were not disturbed by the machine.
    pub points: Vec<ShapePoint>,
    /// Standard deviation of a point from what its neighbours suggest, as a share of the rate.
    pub scatter: f64,
    /// Median standard error of the points, as a share of the rate, by how the parts of each sample
    /// differ; `None` where most points do not have one.
    pub own_error: Option<f64>,
    /// Where the curve lies lower than on both sides, by position.
    pub dips: Vec<Dip>,
    /// Stretches of one rate, by position; without the points of the dips.
    pub levels: Vec<Level>,
}

impl Shape {
    /// The shape of a curve; `None` of too few good points. `reach` is how much of the surface the
    /// curve covers: only at the end of a whole surface a last step down may be a dip.
    pub(crate) fn from_curve(curve: &[CurvePoint], reach: Reach) -> Option<Self> {
        let points = good_points(curve);
        if points.len() < POINTS_MIN {
            return None;
        }
        let values: Vec<f64> = points.iter().map(|point| point.ln_rate).collect();
        let scatter = parts::scatter(&values);
        let noise = scatter.max(SCATTER_MIN);
        let lone = lone_points(&values, noise);
        let mut steady = Vec::new();
        for point in 0..points.len() {
            if !lone.iter().any(|lone| lone.point == point) {
                steady.push(point);
            }
        }
        let mut dips = dips::dips(&values_at(&values, &steady), noise, reach);
        for dip in &mut dips {
            (dip.first, dip.last) = (steady[dip.first], steady[dip.last]);
        }
        dips.extend(lone_dips(&lone, &values, noise, |lone| {
            is_slow_by_one_request(curve, &points, lone)
        }));
        dips.sort_by_key(|dip| dip.first);
        let mut kept = steady;
        kept.retain(|point| !dips.iter().any(|dip| dip.contains(*point)));
        let mut levels = Vec::new();
        for stretch in stretches(&values_at(&values, &kept), noise) {
            let members = kept[stretch].to_vec();
            levels.push(Level {
                ln_rate: mean(members.iter().map(|point| values[*point])),
                members,
            });
        }
        Some(Self {
            own_error: own_error(curve, &points),
            points,
            scatter,
            dips,
            levels,
        })
    }

    /// How often the rate rises from one level to the next by more than `share`, outside of the
    /// dips. It never does on a healthy rotating disk.
    pub(crate) fn rises(&self, share: f64) -> usize {
        self.levels
            .windows(2)
            .filter(|pair| pair[1].rate() > (1.0 + share) * pair[0].rate())
            .count()
    }

    /// The points that lie outside of what their neighbours suggest, the furthest first.
    pub(crate) fn strays(&self) -> Vec<Stray> {
        let values: Vec<f64> = self.points.iter().map(|point| point.ln_rate).collect();
        let mut strays = Vec::new();
        for (point, distance) in outside(&values) {
            if distance > 0.0 {
                let level = median(&values[point - NEIGHBOURS..point]);
                let expected = if values[point] > level {
                    values[point] - distance
                } else {
                    values[point] + distance
                };
                strays.push(Stray {
                    point,
                    rate: values[point].exp(),
                    expected: expected.exp(),
                });
            }
        }
        strays.sort_by(|one, other| other.distance().total_cmp(&one.distance()));
        strays
    }

    /// Where a stretch ends whose last point is `last`: where the next point begins, or the end of
    /// the span.
    pub(crate) fn end_bytes(&self, last: usize, span_end_bytes: u64) -> u64 {
        match self.points.get(last + 1) {
            Some(next) => next.offset_bytes,
            None => span_end_bytes,
        }
    }
}

/// The points that show the medium, in order of position. Very many are joined to equal groups,
/// each with the mean rate of its members and the index of the slowest one: that one is read again,
/// and its longest request shows whether the place is slow.
fn good_points(curve: &[CurvePoint]) -> Vec<ShapePoint> {
    let mut points = Vec::new();
    for (index, point) in curve.iter().enumerate() {
        if is_good(point) {
            points.push(ShapePoint {
                index,
                offset_bytes: point.offset_bytes,
                ln_rate: point.bytes_per_second.ln(),
            });
        }
    }
    points.sort_by_key(|point| point.offset_bytes);
    let group = points.len().div_ceil(POINTS_MAX).max(1);
    if group == 1 {
        return points;
    }
    let mut groups = Vec::new();
    for members in points.chunks(group) {
        let slowest = members
            .iter()
            .min_by(|one, other| one.ln_rate.total_cmp(&other.ln_rate))
            .unwrap_or(&members[0]);
        groups.push(ShapePoint {
            index: slowest.index,
            offset_bytes: members[0].offset_bytes,
            ln_rate: mean(members.iter().map(|member| member.ln_rate)),
        });
    }
    groups
}

fn is_good(point: &CurvePoint) -> bool {
    point.late_ns as f64 <= LATE_SHARE * point.busy_ns as f64
        && point.busy_ns >= BUSY_NS_MIN
        && point.errors == 0
        && point.bytes_per_second > 0.0
        && point.bytes_per_second.is_finite()
}

fn values_at(values: &[f64], points: &[usize]) -> Vec<f64> {
    points.iter().map(|point| values[*point]).collect()
}

/// See [`Shape::own_error`].
fn own_error(curve: &[CurvePoint], points: &[ShapePoint]) -> Option<f64> {
    let mut errors = Vec::new();
    for point in points {
        errors.extend(curve[point.index].standard_error);
    }
    if 2 * errors.len() > points.len() {
        Some(median(&errors))
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
