//! `flat-top`: the curve of a rotating disk is flat from its outermost zone to some place, and
//! falls only beyond it. Up to there, something other than the disk limits the rate.
//!
//! Of random disks (`findings_study`, 1000 of each kind): none of 3000 healthy ones has it; where a
//! limit takes 50, 30, 20, 10 and 5 % off the top rate and noise is up to 1 %, it alone is found on
//! 96, 96, 97, 95 and 76 %; the others have a flat part no longer than a zone, or a fall behind it
//! that noise hides.

use super::ragged::is_ragged;
use super::rule::*;
use crate::mechanics;
use crate::mechanics::{
    Mechanics, is_surface, link_bytes_per_second, links, measured_mechanics, reach,
};
use crate::shape::{Level, Reach, Shape};

pub(super) const RULE: Rule = Rule {
    code: "flat-top",
    title: "Something other than the disk limits throughput",
    summary: "The outer zones of a rotating disk all have the same rate. Something other than the \
              disk limits them: link, cable, port, controller or CPU.",
    remedy: Remedy::ByCase,
    check: Check::Survey(check),
    says: Meaning::Disk,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// The flat part is at least this many times as long as any later stretch of one rate. In a
/// staircase of equal zones the first one holds at most 1.5 times as much as the second (rate 2.5
/// to 1 in three zones).
const TIMES_AS_LONG: f64 = 2.2;

/// The same where only one level follows, on the whole surface: of two zones of 2.5 to 1 the outer
/// holds 2.5 times as much as the inner.
const TIMES_AS_LONG_ALONE: f64 = 4.5;

/// Smallest share of the points in the flat part. A shorter one may be a single zone. The study
/// that the head of this file cites shows what this limit and those below find together.
const SHARE_MIN: f64 = 0.08;

/// Smallest number of points in it. Fewer may be equal by chance.
const POINTS_MIN: usize = 4;

/// Share of the points, at the start, that may differ: the disk wakes up.
const START_SHARE: f64 = 0.02;

/// Least fall behind the flat part, in logarithms: less is noise of the points.
const FALL_MIN: f64 = 0.03;

/// A flat part and a falling line must explain the curve so much better than one falling line:
/// their squared deviations over those of the line. A larger share takes a disk of a few long zones
/// for a limited one; a smaller one misses limits that noise hides in part.
const UNEXPLAINED_MAX: f64 = 0.6;

/// The least by which the disk would be faster without the limit, in logarithms, for the limit to
/// matter.
const GAIN_MIN: f64 = 0.025;

/// Largest deviation of a flat part on a ragged disk, over the curve's scatter. Where the disk is
/// not the limit, its raggedness does not show.
const CALM_SCATTER_SHARE: f64 = 0.5;

/// From this share of one CPU on the program may itself be the limit. Chosen, not measured.
const CPU_SHARE: f64 = 0.85;

/// The flat part.
struct Plateau {
    /// The last point, as an index into the shape's points; `None` where the whole curve is flat.
    last: Option<usize>,
    /// In bytes per second.
    rate: f64,
    /// The rate that the falling part suggests for the start, where there is one.
    expected: Option<f64>,
}

/// Returns `true` if this rule finds something.
pub(super) fn is_flat(record: &Record) -> bool {
    check(record).is_some()
}

fn check(record: &Record) -> Option<Diagnosis> {
    let surface = record.surface()?;
    if !is_surface(mechanics::surveyed_target(record)?) {
        return None;
    }
    let reach = reach(record, surface);
    let shape = Shape::from_curve(record.curve(), reach)?;
    let plateau = plateau(&shape, reach, measured_mechanics(record, surface))?;
    if mechanics::mechanics(record) == Mechanics::Solid {
        return None;
    }
    let gain = match plateau.expected {
        Some(rate) => format!(
            " Without that limit the curve would start at about {}.",
            format_throughput(rate)
        ),
        None => String::new(),
    };
    let Explanation { cause, remedy } = explanation(record, surface, plateau.rate);
    let claim = format!(
        "{}. Up to there, something other than the disk is the limit.{gain} {cause}",
        describe_extent(&plateau, &shape, surface, reach)
    );
    let observations = plateau_evidence(record, &shape, &plateau, surface);
    Some(Diagnosis::new(Severity::Warning, claim, observations).with_remedy(remedy))
}

/// A clause on the end of the flat part and its rate.
fn describe_extent(
    plateau: &Plateau,
    shape: &Shape,
    surface: &SurfaceRecord,
    reach: Reach,
) -> String {
    let rate = format_throughput(plateau.rate);
    let Some(last) = plateau.last else {
        return format!(
            "The curve is flat at {rate} over the whole surface, although its access times are \
             those of a rotating disk"
        );
    };
    let start_bytes = surface.data.span_start_bytes;
    let end_bytes = shape.end_bytes(last, start_bytes + surface.data.span_bytes);
    let share = (end_bytes - start_bytes) as f64 / surface.data.span_bytes.max(1) as f64;
    let whole = match reach {
        Reach::Whole => "the surface",
        Reach::Part => "the span",
    };
    format!(
        "The curve is flat at {rate} up to {} ({} of {whole}) and falls only beyond it",
        gigabytes(end_bytes),
        format_percent(share)
    )
}

/// The flat part at the start of a curve; `None` where the curve begins to fall at once, and where
/// chance, zones or noise explain a flat part as well.
fn plateau(shape: &Shape, reach: Reach, measured: Mechanics) -> Option<Plateau> {
    let points: usize = shape.levels.iter().map(|level| level.members.len()).sum();
    let (top, later) = top_and_later(shape, points)?;
    // On a ragged disk chance makes long levels; but where the disk is not the limit, it is not
    // ragged either.
    if is_ragged(shape, Mechanics::Rotating)
        && deviation_within(shape, top) > CALM_SCATTER_SHARE * shape.scatter
    {
        return None;
    }
    let is_whole_platter = reach == Reach::Whole && measured == Mechanics::Rotating;
    if later.len() < 2 && !is_whole_platter {
        return None;
    }
    if later.is_empty() {
        return Some(Plateau {
            last: None,
            rate: top.rate(),
            expected: None,
        });
    }
    if !is_long_enough(top, later, points) || !falls_after(top, later) {
        return None;
    }
    let mut expected = None;
    if later.len() > 1 {
        let start = expected_start(shape, top, later)?;
        if start.ln() - top.ln_rate < GAIN_MIN {
            return None;
        }
        expected = Some(start);
    }
    Some(Plateau {
        last: Some(*top.members.last()?),
        rate: top.rate(),
        expected,
    })
}

/// The first level and those behind it, without a short one at the start.
fn top_and_later(shape: &Shape, points: usize) -> Option<(&Level, &[Level])> {
    let start_points = (START_SHARE * points as f64).ceil() as usize;
    let first = shape.levels.first()?;
    if shape.levels.len() > 2 && first.members.len() <= start_points {
        shape.levels[1..].split_first()
    } else {
        shape.levels.split_first()
    }
}

fn is_long_enough(top: &Level, later: &[Level], points: usize) -> bool {
    let mut longest = 0;
    for level in later {
        longest = longest.max(level.members.len());
    }
    let times_as_long = match later.len() {
        1 => TIMES_AS_LONG_ALONE,
        _ => TIMES_AS_LONG,
    };
    let length = top.members.len() as f64;
    length >= times_as_long * longest as f64
        && top.members.len() >= POINTS_MIN
        && length >= SHARE_MIN * points as f64
}

fn falls_after(top: &Level, later: &[Level]) -> bool {
    let is_highest = later.iter().all(|level| level.ln_rate < top.ln_rate);
    match later.last() {
        Some(last) => is_highest && top.ln_rate - last.ln_rate >= FALL_MIN,
        None => false,
    }
}

/// Standard deviation of the points of a level from its mean, as a share.
fn deviation_within(shape: &Shape, level: &Level) -> f64 {
    let squares: f64 = level
        .members
        .iter()
        .map(|i| (shape.points[*i].ln_rate - level.ln_rate).powi(2))
        .sum();
    (squares / level.members.len().max(1) as f64).sqrt()
}

/// A point of the curve.
#[derive(Clone, Copy)]
struct Place {
    /// Its position, in bytes.
    x: f64,
    /// The square of its rate over that of the flat part.
    y: f64,
}

/// A straight line: its value at 0, and its slope.
#[derive(Clone, Copy)]
struct Line {
    start: f64,
    slope: f64,
}

impl Line {
    const FLAT: Self = Self {
        start: 1.0,
        slope: 0.0,
    };

    /// The line through these places that leaves the least squares.
    fn through(places: &[Place]) -> Option<Self> {
        let n = places.len() as f64;
        let x_mean = places.iter().map(|place| place.x).sum::<f64>() / n;
        let y_mean = places.iter().map(|place| place.y).sum::<f64>() / n;
        let mut spread = 0.0;
        let mut products = 0.0;
        for place in places {
            spread += (place.x - x_mean).powi(2);
            products += (place.x - x_mean) * (place.y - y_mean);
        }
        let slope = products / spread;
        if places.len() < 2 || !slope.is_finite() {
            return None;
        }
        Some(Self {
            start: y_mean - slope * x_mean,
            slope,
        })
    }

    fn value_at(self, x: f64) -> f64 {
        self.start + self.slope * x
    }

    /// Squared deviations of the places, in logarithms of the rate.
    fn squared_deviations(self, places: &[Place]) -> f64 {
        let mut sum = 0.0;
        for place in places {
            let suggested = self.value_at(place.x).max(1e-3).ln() / 2.0;
            sum += (suggested - place.y.ln() / 2.0).powi(2);
        }
        sum
    }
}

/// The rate at the start that the falling part suggests, if a flat part and a falling line explain
/// the curve clearly better than a falling line alone. Where bits lie equally dense, a track's
/// length falls evenly with the radius and the bytes outside of it with its square, so the square
/// of the rate falls evenly with the position.
fn expected_start(shape: &Shape, top: &Level, later: &[Level]) -> Option<f64> {
    let flat = places(shape, top, top);
    let mut falling: Vec<Place> = Vec::new();
    for level in later {
        falling.extend(places(shape, level, top));
    }
    let all_places = [flat.as_slice(), falling.as_slice()].concat();
    let falling_line = Line::through(&falling)?;
    let line_deviations = Line::through(&all_places)?.squared_deviations(&all_places);
    let plateau_deviations =
        Line::FLAT.squared_deviations(&flat) + falling_line.squared_deviations(&falling);
    let start = falling_line.value_at(flat.first()?.x);
    if plateau_deviations > UNEXPLAINED_MAX * line_deviations || start <= 0.0 {
        return None;
    }
    Some(start.sqrt() * top.rate())
}

/// The points of a level, with rates relative to that of the level `top`.
fn places(shape: &Shape, level: &Level, top: &Level) -> Vec<Place> {
    let mut places = Vec::new();
    for i in &level.members {
        let point = &shape.points[*i];
        places.push(Place {
            x: point.offset_bytes as f64,
            y: (2.0 * (point.ln_rate - top.ln_rate)).exp(),
        });
    }
    places
}

/// The parts that may limit the rate besides the link.
const OTHER_LIMITS: &str =
    "cable, port, controller, bridge or expander, a limit set by the host, or the CPU";

/// The limit of the flat part, as far as the record shows it.
fn explanation(record: &Record, surface: &SurfaceRecord, rate: f64) -> Explanation {
    if surface.figures.curve_cpu_share >= CPU_SHARE {
        let share = format_percent(surface.figures.curve_cpu_share);
        return Explanation::new(
            format!(
                "This program used {share} of a CPU during the survey, so the CPU is the likely \
                 limit."
            ),
            "Measure on a machine with a faster or less busy CPU.",
        );
    }
    let Some(link_rate) = link_bytes_per_second(record, surface.data.target) else {
        return Explanation::new(
            "The system does not report the speed of the link.",
            format!(
                "Check how the disk is connected, and replace or bypass these one by one until the \
                 top of the curve rises: {OTHER_LIMITS}."
            ),
        );
    };
    let names = link_names(record, surface.data.target);
    let carried = format_throughput(link_rate);
    if mechanics::carried_share(link_rate).contains(&(rate / link_rate)) {
        Explanation::new(
            format!(
                "The link explains it: {names} carries {carried} after encoding, minus protocol \
                 overhead."
            ),
            "Connect the disk to a faster link: another port, cable, enclosure or controller.",
        )
    } else if rate > link_rate {
        Explanation::new(
            format!(
                "The link does not explain it: {names} carries only {carried}, so a cache in the \
                 path answered."
            ),
            format!("Look for a cache, then for {OTHER_LIMITS}."),
        )
    } else {
        Explanation::new(
            format!("The link does not explain it: {names} carries {carried}."),
            format!(
                "Replace or bypass these one by one until the top of the curve rises: \
                 {OTHER_LIMITS}."
            ),
        )
    }
}

/// `sda (SATA 3.0 Gbps)`, of every link on the way.
fn link_names(record: &Record, target: usize) -> String {
    let mut names = Vec::new();
    for placed in links(record, target) {
        let disk = &placed.layer.name;
        let bus = &placed.link.bus;
        names.push(match &placed.link.speed {
            Some(speed) => format!("{disk} ({bus} {speed})"),
            None => format!("{disk} ({bus})"),
        });
    }
    names.join(", ")
}

/// The first and the last point of the flat part, the first one behind it, and the links.
fn plateau_evidence(
    record: &Record,
    shape: &Shape,
    plateau: &Plateau,
    surface: &SurfaceRecord,
) -> Vec<Evidence> {
    let last = plateau.last.unwrap_or(shape.points.len() - 1);
    let expected = plateau.expected.unwrap_or(plateau.rate);
    let mut observations = vec![
        point_evidence(shape.points[0].index, record, expected),
        point_evidence(shape.points[last].index, record, plateau.rate),
    ];
    if let Some(next) = shape.points.get(last + 1) {
        observations.push(point_evidence(next.index, record, plateau.rate));
    }
    for placed in links(record, surface.data.target) {
        if let Some(rate) = placed.link.bytes_per_second_max {
            let path = format!("{}/bytes_per_second_max", placed.path);
            observations.push(evidence_at(path, rate as f64, plateau.rate, "B/s"));
        }
    }
    observations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::states;
    use crate::fixture::surveyed::{self, SurveyedDisk, rotating};

    pub(super) const EXAMPLES: Examples = Examples::new(
        || capped(78e6, "3.0 Gbps", Some(300_000_000)),
        surveyed::record,
    );

    fn capped(cap: f64, speed: &str, link: Option<u64>) -> Record {
        let mut run = rotating(|disk| disk.cap = Some(cap)).run(3);
        let at = run.facts.targets[0].layers[0].link.as_mut().unwrap();
        (at.speed, at.bytes_per_second_max) = (Some(speed.to_owned()), link);
        surveyed::judge(run)
    }

    #[test]
    fn the_end_and_the_rate_of_the_flat_part_are_reported() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        // Eight of 24 zones are faster than 78 MB/s; they hold 40.4 % of the surface.
        states(
            &finding.claim,
            &[
                "78.0 MB/s up to 130 GB (40 %",
                "sda (SATA 3.0 Gbps)",
                "300 MB/s",
            ],
        );
        assert_eq!(finding.evidence.len(), 4);
    }

    fn capped_diagnosis(cap: f64, speed: &str, link: Option<u64>) -> Diagnosis {
        check(&capped(cap, speed, link)).unwrap()
    }

    #[test]
    fn a_link_that_carries_no_more_is_the_cause() {
        states(
            &capped_diagnosis(78e6, "480 Mb/s", Some(60_000_000)).claim,
            &["cache"],
        );
        let slow = capped_diagnosis(70e6, "1.5 Gbps", Some(75_000_000));
        states(&slow.claim, &["SATA 1.5 Gbps"]);
        states(&slow.remedy, &["faster link"]);
        let unknown = capped_diagnosis(78e6, "", None);
        assert!(
            !unknown.remedy.contains("faster link"),
            "{}",
            unknown.remedy
        );
    }

    fn capped_everywhere(change: fn(&mut SurveyedDisk)) -> Option<Diagnosis> {
        let mut disk = rotating(|disk| disk.cap = Some(40e6));
        change(&mut disk);
        check(&disk.record(1))
    }

    #[test]
    fn flat_all_over_is_a_limit_where_an_arm_moves() {
        states(
            &capped_everywhere(|_| ()).unwrap().claim,
            &["40.0 MB/s", "whole surface"],
        );
        assert_eq!(capped_everywhere(|disk| disk.accesses = 0), None);
        assert_eq!(capped_everywhere(|disk| disk.span = 0.0..0.3), None);
        assert_eq!(
            capped_everywhere(|disk| *disk = SurveyedDisk::solid()),
            None
        );
    }

    #[test]
    fn curve_too_ragged_for_zones_is_not_flat() {
        let disk = rotating(|disk| (disk.ragged, disk.points) = (Some((40 << 20, 0.85)), 100));
        for seed in 0..5 {
            assert_eq!(surveyed::codes(&disk.record(seed)), ["ragged"], "{seed}");
        }
    }

    #[test]
    fn a_busy_cpu_is_named() {
        let mut run = rotating(|disk| disk.cap = Some(78e6)).run(3);
        run.surface.curve_cpu.system_ns = 38_000_000_000;
        states(
            &check(&surveyed::judge(run)).unwrap().claim,
            &["95 %", "CPU"],
        );
    }

    #[test]
    fn zones_are_no_flat_top_and_a_file_has_none() {
        for zones in [2, 3, 5, 16, 24, 40] {
            for points in [20, 50, 200] {
                let disk = rotating(|disk| (disk.zones, disk.points) = (zones, points));
                assert_eq!(check(&disk.record(1)), None, "{zones}, {points}");
            }
        }
        let mut run = rotating(|disk| disk.cap = Some(78e6)).run(3);
        run.facts.targets[0].kind = TargetKind::File;
        assert_eq!(
            check(&surveyed::judge(run)),
            None,
            "a file may lie anywhere"
        );
    }
}
