//! What a curve looks like: how far its points scatter, which levels it keeps, where it dips below
//! what lies on both sides. All of it in logarithms of the rate, so that a deviation is a share.
//! Knows the points of a curve only, neither disks nor findings.
//!
//! The healthy curve of a rotating disk is a staircase that only falls: zones of one rate each,
//! from two to dozens of them, with any length. So nothing here may take a step down for a fault,
//! and nothing may depend on how many points a zone has.

use diskproof_model::surface::CurvePoint;
use std::ops::Range;

/// Fewer points have no shape.
const POINTS_MIN: usize = 12;
/// More points are judged in groups: what is narrower than a four-thousandth of the span is the
/// scan's business, and the search for levels takes time that grows with the square.
const POINTS_MAX: usize = 4096;
/// Neighbours on each side of a point. Three make a median that one outlier does not move.
const NEIGHBOURS: usize = 3;
/// The upper quartile of the distances that `scatter` takes, for normally distributed noise of
/// standard deviation 1; found by simulation (a test holds it).
const NORMAL_QUARTILE: f64 = 0.934;
/// No timing of samples is better than this, and a zone's rate is not constant to the last digit.
const SCATTER_MIN: f64 = 0.004;
/// Penalty of a further level, in units of scatter² × ln(points): 2 is Schwarz's criterion for a
/// new mean; half as much again makes noise that is not normal break levels rarely.
const LEVEL_PENALTY: f64 = 3.0;
/// Least depth of a dip, in logarithms: 13 % slower than what lies beside it.
const DIP_DEPTH_MIN: f64 = 0.14;
/// Least depth of a dip in standard deviations of its mean.
const DIP_DEPTH_SCATTERS: f64 = 5.0;
/// A point is far outside of what its neighbours suggest from so many standard deviations on.
const LONE_SCATTERS: f64 = 4.0;
/// So large a part of the points is no exception.
const LONE_SHARE_MAX: f64 = 0.2;
/// A point is slow because of one request when that one took longer by at least this share of the
/// point's extra time. Where every request of a stream is slow, the longest takes longer by its
/// part of the queue: half of it at the most, because a sample is at least two queues long.
const ONE_REQUEST: f64 = 0.75;
/// A sample of less time is no more exact than a wake-up that comes 1 ms late.
const BUSY_NS_MIN: u64 = 5_000_000;
/// A point during which the program waited for a processor for this share of the time says more of
/// the machine than of the disk.
const LATE_SHARE: f64 = 0.05;
/// Points behind a dip at the very start, where nothing lies before it.
const BEHIND_START_MIN: usize = 3;
/// Longest dip, as a share of the points: what is longer is the disk, and the rest is the
/// exception.
const DIP_SHARE_MAX: f64 = 0.25;
/// Longest dip that reaches to the end of the curve. The innermost of two zones holds more than
/// this wherever its rate is 40 % or more of the outer one's.
const END_SHARE_MAX: f64 = 0.2;
/// A last step counts as a dip when it is so many times the largest other step.
const END_STEPS: f64 = 3.0;

/// A curve made ready to be judged.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    /// By position; those that transferred something without an error, for long enough to be
    /// exact, and were not disturbed by the machine.
    pub points: Vec<ShapePoint>,
    /// Standard deviation of a point from what its neighbours suggest, as a share of the rate.
    pub scatter: f64,
    /// Median standard error of the points, as a share of the rate, by how they differ in
    /// themselves; `None` where most of them do not know theirs.
    pub own_error: Option<f64>,
    /// Where the curve lies lower than on both sides, by position.
    pub dips: Vec<Dip>,
    /// Stretches of one rate, by position; without the points of the dips.
    pub levels: Vec<Level>,
}

/// A point, or a group of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ShapePoint {
    /// Its index in the curve.
    pub index: usize,
    /// Where the sample begins.
    pub offset_bytes: u64,
    /// Natural logarithm of its rate in bytes per second.
    pub ln_rate: f64,
}

/// A stretch that is slower than what lies on both sides of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dip {
    /// First of its points, as an index into `points`.
    pub first: usize,
    /// Last of its points.
    pub last: usize,
    /// Its rate, in bytes per second.
    pub rate: f64,
    /// The rate of its neighbourhood, in bytes per second.
    pub beside: f64,
}

/// A stretch of one rate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Level {
    /// Indices into `points`.
    pub members: Vec<usize>,
    /// Mean logarithm of the rate.
    pub ln_rate: f64,
}

impl Level {
    /// Its rate, in bytes per second.
    pub fn rate(&self) -> f64 {
        self.ln_rate.exp()
    }
}

/// A point and what its neighbours suggest for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stray {
    /// Index into `points`.
    pub point: usize,
    /// Its rate, in bytes per second.
    pub rate: f64,
    /// The nearest rate that would fit between its neighbours.
    pub expected: f64,
}

impl Stray {
    /// How far it is off, as a share of what is expected.
    pub fn distance(&self) -> f64 {
        (self.rate / self.expected - 1.0).abs()
    }
}

impl Shape {
    /// The shape of a curve; `None` of too few good points. `reach` says how much of the surface
    /// the curve covers.
    pub fn of(curve: &[CurvePoint], reach: Reach) -> Option<Self> {
        let points = good_points(curve);
        if points.len() < POINTS_MIN {
            return None;
        }
        let values: Vec<f64> = points.iter().map(|p| p.ln_rate).collect();
        let scatter = scatter(&values);
        let noise = scatter.max(SCATTER_MIN);
        let lone = lone_points(&values, noise);
        let steady: Vec<usize> = (0..points.len())
            .filter(|i| lone.iter().all(|l| l.point != *i))
            .collect();
        let calm: Vec<f64> = steady.iter().map(|i| values[*i]).collect();
        let mut dips = dips(&calm, noise, reach);
        dips.iter_mut()
            .for_each(|dip| (dip.first, dip.last) = (steady[dip.first], steady[dip.last]));
        dips.extend(lone_dips(&lone, &values, noise, |l| {
            has_waited(curve, &points, l)
        }));
        dips.sort_by_key(|dip| dip.first);
        let kept: Vec<usize> = steady
            .into_iter()
            .filter(|i| !dips.iter().any(|d| (d.first..=d.last).contains(i)))
            .collect();
        let level = |members: &[usize]| Level {
            members: members.to_vec(),
            ln_rate: mean(members.iter().map(|i| values[*i])),
        };
        let calm: Vec<f64> = kept.iter().map(|i| values[*i]).collect();
        let levels = stretches(&calm, noise)
            .into_iter()
            .map(|s| level(&kept[s]))
            .collect();
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
    pub fn rises(&self, share: f64) -> usize {
        self.levels
            .windows(2)
            .filter(|pair| pair[1].rate() > (1.0 + share) * pair[0].rate())
            .count()
    }

    /// The points that lie outside of what their neighbours suggest, the furthest first.
    pub fn strays(&self) -> Vec<Stray> {
        let values: Vec<f64> = self.points.iter().map(|p| p.ln_rate).collect();
        let stray = |(point, distance): (usize, f64)| {
            let rate = values[point].exp();
            let expected = if values[point] > median(&values[point - NEIGHBOURS..point]) {
                -distance
            } else {
                distance
            };
            Stray {
                point,
                rate,
                expected: (values[point] + expected).exp(),
            }
        };
        let mut strays: Vec<Stray> = outside(&values)
            .filter(|(_, distance)| *distance > 0.0)
            .map(stray)
            .collect();
        strays.sort_by(|a, b| b.distance().total_cmp(&a.distance()));
        strays
    }

    /// Where the stretch of points from `first` to `last` ends: where the next point begins, or the
    /// end of the span.
    pub fn end_bytes(&self, last: usize, span_end_bytes: u64) -> u64 {
        self.points
            .get(last + 1)
            .map_or(span_end_bytes, |next| next.offset_bytes)
    }
}

/// How much of the surface a curve covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// All of it, or nearly.
    Whole,
    /// A part.
    Part,
}

/// The points that say what the medium does, in order of position; of very many the middle ones of
/// equal groups.
fn good_points(curve: &[CurvePoint]) -> Vec<ShapePoint> {
    let in_time = |p: &CurvePoint| p.late_ns as f64 <= LATE_SHARE * p.busy_ns as f64;
    let good = |p: &CurvePoint| {
        in_time(p)
            && p.busy_ns >= BUSY_NS_MIN
            && p.errors == 0
            && p.bytes_per_second > 0.0
            && p.bytes_per_second.is_finite()
    };
    let mut points: Vec<ShapePoint> = curve
        .iter()
        .enumerate()
        .filter(|(_, p)| good(p))
        .map(|(index, p)| ShapePoint {
            index,
            offset_bytes: p.offset_bytes,
            ln_rate: p.bytes_per_second.ln(),
        })
        .collect();
    points.sort_by_key(|p| p.offset_bytes);
    let group = points.len().div_ceil(POINTS_MAX).max(1);
    if group == 1 {
        return points;
    }
    points
        .chunks(group)
        .map(|g| ShapePoint {
            ln_rate: mean(g.iter().map(|p| p.ln_rate)),
            ..g[0]
        })
        .collect()
}

fn own_error(curve: &[CurvePoint], points: &[ShapePoint]) -> Option<f64> {
    let errors: Vec<f64> = points
        .iter()
        .filter_map(|p| curve[p.index].standard_error)
        .collect();
    (2 * errors.len() > points.len()).then(|| median(&errors))
}

/// How far points lie outside of what their neighbours on the left and on the right suggest. On a
/// staircase that only falls this is 0, however steep it is; outliers and dips up to a quarter of
/// the points do not move it.
fn scatter(values: &[f64]) -> f64 {
    let mut distances: Vec<f64> = outside(values).map(|(_, distance)| distance).collect();
    distances.sort_by(f64::total_cmp);
    distances
        .get(distances.len() * 3 / 4)
        .map_or(0.0, |quartile| quartile / NORMAL_QUARTILE)
}

/// Each inner point and its distance from the interval between the medians of its neighbours on
/// both sides.
fn outside(values: &[f64]) -> impl Iterator<Item = (usize, f64)> {
    let inner = NEIGHBOURS..values.len().saturating_sub(NEIGHBOURS);
    inner.map(|i| {
        let (left, right) = (
            median(&values[i - NEIGHBOURS..i]),
            median(&values[i + 1..=i + NEIGHBOURS]),
        );
        (
            i,
            (values[i] - left.max(right))
                .max(left.min(right) - values[i])
                .max(0.0),
        )
    })
}

/// A point that lies far outside of what its neighbours suggest, while they agree.
#[derive(Debug, Clone, Copy, PartialEq)]
struct LonePoint {
    point: usize,
    /// Mean of the medians on both sides.
    beside: f64,
}

/// Points that stand alone or in pairs. A pause of the host slows one sample down, and the next is
/// too fast because the disk read ahead meanwhile; neither may break a level. None of them where
/// they are many: then they are the curve.
fn lone_points(values: &[f64], scatter: f64) -> Vec<LonePoint> {
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
fn lone_dips(
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
fn has_waited(curve: &[CurvePoint], points: &[ShapePoint], lone: &LonePoint) -> bool {
    let at = |i: usize| &curve[points[i].index];
    let near =
        lone.point.saturating_sub(NEIGHBOURS)..(lone.point + NEIGHBOURS + 1).min(points.len());
    let others: Vec<f64> = near
        .filter(|i| *i != lone.point)
        .map(|i| at(i).latency_max_ns as f64)
        .collect();
    let slow = at(lone.point);
    let extra_ns = slow.busy_ns as f64 * (1.0 - (points[lone.point].ln_rate - lone.beside).exp());
    slow.latency_max_ns as f64 - median(&others) >= ONE_REQUEST * extra_ns
}

/// The partition into stretches of one level that costs least: squared deviations plus a penalty
/// for each stretch (optimal partitioning; Jackson et al.,
/// "An algorithm for optimal partitioning of data on an interval", 2005), with the starts that can
/// no longer win dropped (Killick et al., "Optimal detection of changepoints with a linear
/// computational cost", 2012).
fn stretches(values: &[f64], scatter: f64) -> Vec<Range<usize>> {
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

/// Runs of stretches that lie lower than both neighbours; at the start of the curve lower than the
/// one neighbour, because no healthy curve rises.
fn dips(values: &[f64], scatter: f64, reach: Reach) -> Vec<Dip> {
    let stretches = stretches(values, scatter);
    let levels: Vec<f64> = stretches
        .iter()
        .map(|s| mean(values[s.clone()].iter().copied()))
        .collect();
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
        let beside: Vec<f64> = [from.checked_sub(1), Some(to + 1)]
            .into_iter()
            .flatten()
            .map(|i| levels[i])
            .collect();
        dips.push(dip(
            values,
            stretches[from].start,
            stretches[to].end - 1,
            mean(beside.into_iter()),
        ));
        from = to + 1;
    }
    let last =
        last_dip(&stretches, &levels, values.len(), scatter).filter(|_| reach == Reach::Whole);
    if let Some(start) = last
        .map(|i| stretches[i].start)
        .filter(|start| dips.iter().all(|d| d.last < *start))
    {
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

/// Down at its left edge, up at its right one, and below the line between what lies beside it all
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
    let left = from
        .checked_sub(1)
        .map_or(f64::INFINITY, |left| levels[left]);
    let depth = depth_min(length, scatter);
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
    DIP_DEPTH_MIN.max(DIP_DEPTH_SCATTERS * scatter / (length as f64).sqrt())
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
    let (before, fall) = falls
        .iter()
        .copied()
        .enumerate()
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    let others = falls
        .iter()
        .enumerate()
        .filter(|(i, _)| *i != before)
        .map(|(_, fall)| *fall)
        .fold(0.0, f64::max);
    let length = points - stretches[before + 1].start;
    let short = length as f64 <= END_SHARE_MAX * points as f64;
    (short && fall >= depth_min(length, scatter) && fall >= END_STEPS * others)
        .then_some(before + 1)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (n, sum) = values.fold((0, 0.0), |(n, sum), value| (n + 1, sum + value));
    if n == 0 { 0.0 } else { sum / f64::from(n) }
}

/// The middle value; the mean of both where there are two.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::surveyed::SurveyedDisk;
    use crate::fixture::test_rng::TestRng;

    fn shape(disk: &SurveyedDisk) -> Shape {
        Shape::of(&disk.survey(1).curve, Reach::Whole).unwrap()
    }

    #[test]
    fn scatter_of_noise_is_its_standard_deviation_and_that_of_zones_nothing() {
        let mut rng = TestRng(1);
        let noise: Vec<f64> = (0..100_000).map(|_| rng.normal()).collect();
        assert!((scatter(&noise) - 1.0).abs() < 0.01, "{}", scatter(&noise));
        for (zones, points) in [(2, 20), (10, 20), (24, 50), (40, 500)] {
            assert_eq!(
                shape(&SurveyedDisk {
                    zones,
                    points,
                    noise: 0.0,
                    accesses: 0,
                    ..SurveyedDisk::rotating()
                })
                .scatter,
                0.0,
                "{zones}"
            );
        }
    }

    #[test]
    fn levels_are_the_zones() {
        let shape = shape(&SurveyedDisk {
            accesses: 0,
            ..SurveyedDisk::rotating()
        });
        assert_eq!((shape.levels.len(), shape.dips.len()), (24, 0));
        assert!(
            (shape.levels[0].rate() / 92e6 - 1.0).abs() < 0.002
                && (shape.levels[23].rate() / 49e6 - 1.0).abs() < 0.002
        );
    }

    #[test]
    fn a_dip_has_its_bounds_and_the_levels_go_on_behind_it() {
        let disk = SurveyedDisk {
            slow: vec![(0.5..0.6, 0.5)],
            accesses: 0,
            ..SurveyedDisk::rotating()
        };
        let shape = shape(&disk);
        assert_eq!(
            (shape.dips.len(), shape.dips[0].first, shape.dips[0].last),
            (1, 100, 119)
        );
        assert!(
            (shape.dips[0].rate / shape.dips[0].beside - 0.5).abs() < 0.02,
            "{:?}",
            shape.dips
        );
        assert_eq!(
            (
                shape.rises(0.0),
                shape.end_bytes(119, 0),
                shape.end_bytes(199, 7)
            ),
            (0, 192_000_000_000, 7)
        );
    }

    #[test]
    fn failed_points_and_nonsense_are_left_out_and_few_points_have_no_shape() {
        let mut curve = SurveyedDisk {
            accesses: 0,
            points: 20,
            ..SurveyedDisk::rotating()
        }
        .survey(1)
        .curve;
        curve[3].errors = 1;
        curve[4].bytes_per_second = 0.0;
        curve[5].bytes_per_second = f64::NAN;
        curve[6].bytes_per_second = f64::INFINITY;
        curve.reverse();
        let shape = Shape::of(&curve, Reach::Whole).unwrap();
        assert!(shape.points.len() == 16 && shape.points.is_sorted_by_key(|p| p.offset_bytes));
        assert_eq!(curve[shape.points[0].index].offset_bytes, 0);
        curve.truncate(11);
        assert_eq!(
            (Shape::of(&curve, Reach::Whole), Shape::of(&[], Reach::Part)),
            (None, None)
        );
    }

    #[test]
    fn pauses_of_the_machine_break_no_level_and_are_no_dips() {
        let disk = SurveyedDisk {
            cap: Some(78e6),
            points: 60,
            accesses: 0,
            ..SurveyedDisk::rotating()
        };
        let mut survey = disk.survey(1);
        for (index, factor) in [
            (2, 0.95),
            (11, 0.67),
            (14, 1.8),
            (30, 0.9),
            (50, 1.05),
            (51, 0.6),
        ] {
            let point = &mut survey.curve[index];
            let busy_ns = (point.busy_ns as f64 / factor) as u64;
            point.latency_max_ns += busy_ns.saturating_sub(point.busy_ns);
            (point.bytes_per_second, point.busy_ns) = (point.bytes_per_second * factor, busy_ns);
        }
        let shape = Shape::of(&survey.curve, Reach::Whole).unwrap();
        assert_eq!(
            (shape.dips.len(), shape.rises(0.01)),
            (0, 0),
            "{:?}",
            shape.dips
        );
        assert!(shape.levels[0].members.len() >= 20, "{:?}", shape.levels[0]);
    }

    #[test]
    fn very_many_points_are_judged_in_groups() {
        let shape = shape(&SurveyedDisk {
            accesses: 0,
            points: 10_000,
            slow: vec![(0.5..0.6, 0.5)],
            ..SurveyedDisk::rotating()
        });
        assert_eq!((shape.points.len(), shape.dips.len()), (3334, 1));
    }
}
