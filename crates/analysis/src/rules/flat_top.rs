//! `flat-top`: from the outermost zone to some place the curve is flat, and only from there on does
//! it fall as zones do: up to there something other than the disk is the limit.
//!
//! Of random disks (`findings_study`, 1000 of each kind): none of 3000 healthy ones has it; where a
//! limit takes 50, 30, 20, 10 and 5 % off the top rate and noise is up to 1 %, it alone is found on
//! 96, 96, 97, 95 and 76 %; the others have a flat part no longer than a zone, or a fall behind it
//! that noise hides.

use super::rule::*;
use super::surface;
use crate::mechanics;
use crate::mechanics::{
    Mechanics, is_surface, link_bytes_per_second, links, measured_mechanics, reach,
};
use crate::shape::{Level, Reach, Shape};

pub(super) const FLAT_TOP: Rule = Rule {
    code: "flat-top",
    check: Check::Survey(check_flat_top),
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
/// Smallest share of the points in the flat part.
const SHARE_MIN: f64 = 0.08;
/// Smallest number of points in it.
const POINTS_MIN: usize = 4;
/// Points at the start that may differ: the disk wakes up.
const START_SHARE: f64 = 0.02;
/// Least fall behind the flat part, in logarithms.
const FALL_MIN: f64 = 0.03;
/// A flat part and a falling line must explain the curve so much better than one falling line:
/// their squared deviations over those of the line.
const UNEXPLAINED_MAX: f64 = 0.6;
/// The least by which the disk would be faster without the limit, in logarithms, for the limit to
/// matter.
const GAIN_MIN: f64 = 0.025;
/// Least calm of a flat part on a ragged disk: its deviation over the curve's scatter.
const CALM: f64 = 0.5;
/// A link carries about this share of its coded rate at most and at least: frames and answers take
/// the rest (SATA 90 to 97 %, PCIe 80 to 95 %, USB 3 70 to 90 %, USB 2 with its polling 55 to 75
/// %).
const LINK_SHARE: std::ops::RangeInclusive<f64> = 0.7..=1.03;
const LINK_SHARE_USB2: std::ops::RangeInclusive<f64> = 0.45..=1.03;
/// What a USB 2 link carries, in bytes per second.
const USB2: f64 = 60e6;
/// From this share of one CPU on the program may itself be the limit.
const CPU_SHARE: f64 = 0.85;

/// The flat part.
struct Plateau {
    /// Its last point, as an index into the shape's points; `None`: the whole curve.
    last: Option<usize>,
    /// Its rate in bytes per second.
    rate: f64,
    /// The rate that the falling part suggests for the start, where there is one.
    expected: Option<f64>,
}

fn check_flat_top(record: &Record) -> Option<Diagnosis> {
    let surface = record.surface()?;
    if !is_surface(mechanics::surveyed_target(record)?) {
        return None;
    }
    let reach = reach(record, surface);
    let shape = Shape::of(record.curve(), reach)?;
    let plateau = plateau(&shape, reach, measured_mechanics(record, surface))
        .filter(|_| mechanics::mechanics(record) != Mechanics::Solid)?;
    let rate = format_throughput(plateau.rate);
    let extent = match plateau.last {
        None => format!(
            "The curve is flat at {rate} over the whole surface, although its access times are \
             those of a rotating disk"
        ),
        Some(last) => {
            let end = shape.end_bytes(
                last,
                surface.data.span_start_bytes + surface.data.span_bytes,
            );
            let share = (end - surface.data.span_start_bytes) as f64
                / surface.data.span_bytes.max(1) as f64;
            let whole = match reach {
                Reach::Whole => "the surface",
                Reach::Part => "the span",
            };
            format!(
                "The curve is flat at {rate} up to {} ({} of {whole}) and falls only beyond it",
                gigabytes(end),
                format_percent(share)
            )
        }
    };
    let would = plateau.expected.map_or(String::new(), |rate| {
        format!(
            " Without that limit the curve would start at about {}.",
            format_throughput(rate)
        )
    });
    let (cause, remedy) = limit(record, surface, plateau.rate);
    Some(Diagnosis::with_remedy(
        Severity::Warning,
        format!(
            "{extent}. Up to there, something other than the disk is the limit.{would} {cause}"
        ),
        evidence(record, &shape, &plateau, surface),
        remedy,
    ))
}

fn plateau(shape: &Shape, reach: Reach, measured: Mechanics) -> Option<Plateau> {
    let points: usize = shape.levels.iter().map(|l| l.members.len()).sum();
    let skipped = (START_SHARE * points as f64).ceil() as usize;
    let first = usize::from(shape.levels.len() > 2 && shape.levels[0].members.len() <= skipped);
    let (top, later) = shape.levels.get(first..)?.split_first()?;
    // On a ragged disk chance makes long levels; but where the disk is not the limit, it is not
    // ragged either.
    if surface::is_ragged(shape, false) && deviation_within(shape, top) > CALM * shape.scatter {
        return None;
    }
    let everywhere = reach == Reach::Whole && measured == Mechanics::Rotating;
    let plateau = |last, expected| Plateau {
        last,
        rate: top.rate(),
        expected,
    };
    if later.is_empty() {
        return everywhere.then(|| plateau(None, None));
    }
    let length = top.members.len() as f64;
    let longest = later.iter().map(|l| l.members.len()).max()? as f64;
    let long_enough = match later.len() {
        1 => everywhere && length >= TIMES_AS_LONG_ALONE * longest,
        _ => length >= TIMES_AS_LONG * longest,
    };
    let falls = top.ln_rate - later[later.len() - 1].ln_rate >= FALL_MIN
        && later.iter().all(|l| l.ln_rate < top.ln_rate);
    if !long_enough
        || !falls
        || top.members.len() < POINTS_MIN
        || length < SHARE_MIN * points as f64
    {
        return None;
    }
    let last = *top.members.last()?;
    if later.len() == 1 {
        return Some(plateau(Some(last), None));
    }
    let expected = expected_start(shape, top, later)?;
    (expected.ln() - top.ln_rate >= GAIN_MIN).then(|| plateau(Some(last), Some(expected)))
}

/// Standard deviation of the points of a level from its mean, as a share.
fn deviation_within(shape: &Shape, level: &Level) -> f64 {
    let deviation = |i: &usize| shape.points[*i].ln_rate - level.ln_rate;
    let squares: f64 = level.members.iter().map(|i| deviation(i).powi(2)).sum();
    (squares / level.members.len().max(1) as f64).sqrt()
}

/// The rate at the start that the falling part suggests, if a flat part and a falling line explain
/// the curve clearly better than a falling line alone. Where bits lie equally dense, a track's
/// length falls evenly with the radius and the bytes outside of it with its square, so the square
/// of the rate falls evenly with the position.
fn expected_start(shape: &Shape, top: &Level, later: &[Level]) -> Option<f64> {
    let place = |i: &usize| {
        let point = &shape.points[*i];
        (
            point.offset_bytes as f64,
            (2.0 * (point.ln_rate - top.ln_rate)).exp(),
        )
    };
    let falling: Vec<(f64, f64)> = later.iter().flat_map(|l| &l.members).map(place).collect();
    let flat: Vec<(f64, f64)> = top.members.iter().map(place).collect();
    let all: Vec<(f64, f64)> = flat.iter().chain(&falling).copied().collect();
    let deviation = |points: &[(f64, f64)], line: (f64, f64)| -> f64 {
        points
            .iter()
            .map(|(x, y)| ((line.0 + line.1 * x).max(1e-3).ln() / 2.0 - y.ln() / 2.0).powi(2))
            .sum()
    };
    let (whole_line, falling_line) = (line(&all)?, line(&falling)?);
    let alone = deviation(&all, whole_line);
    let both = deviation(&flat, (1.0, 0.0)) + deviation(&falling, falling_line);
    let start = falling_line.0 + falling_line.1 * flat.first()?.0;
    (both <= UNEXPLAINED_MAX * alone && start > 0.0).then(|| start.sqrt() * top.rate())
}

/// The straight line through points that leaves the least squares: value at 0 and slope.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let n = points.len() as f64;
    let x_mean = points.iter().map(|p| p.0).sum::<f64>() / n;
    let y_mean = points.iter().map(|p| p.1).sum::<f64>() / n;
    let spread: f64 = points.iter().map(|p| (p.0 - x_mean).powi(2)).sum();
    let products = points.iter().map(|p| (p.0 - x_mean) * (p.1 - y_mean));
    let slope = products.sum::<f64>() / spread;
    (points.len() >= 2 && slope.is_finite()).then_some((y_mean - slope * x_mean, slope))
}

/// Whether this rule finds something.
pub(super) fn finds(record: &Record) -> bool {
    check_flat_top(record).is_some()
}

/// What is the limit, as far as the record tells, and what to do about it.
fn limit(record: &Record, surface: &SurfaceRecord, rate: f64) -> (String, String) {
    const OTHERS: &str =
        "cable, port, controller, bridge or expander, a limit set by the host, or the CPU";
    if surface.figures.curve_cpu_share >= CPU_SHARE {
        return (
            format!(
                "This program used {} of a CPU during the survey, so the CPU is the likely limit.",
                format_percent(surface.figures.curve_cpu_share)
            ),
            "Measure on a machine with a faster or less busy CPU.".to_owned(),
        );
    }
    let names = links(record, surface.data.target).into_iter().map(|at| {
        let (layer, bus, speed) = (&at.layer.name, &at.link.bus, at.link.speed.as_ref());
        let speed = speed.map_or(String::new(), |s| format!(" {s}"));
        format!("{layer} ({bus}{speed})")
    });
    let names = names.collect::<Vec<_>>().join(", ");
    let Some(link) = link_bytes_per_second(record, surface.data.target) else {
        let remedy = format!(
            "Check how the disk is connected, and replace or bypass these one by one until the top \
             of the curve rises: {OTHERS}."
        );
        let cause = "The system does not report the speed of the link.";
        return (cause.to_owned(), remedy);
    };
    let carried = format_throughput(link);
    if carries(link).contains(&(rate / link)) {
        let remedy =
            "Connect the disk to a faster link: another port, cable, enclosure or controller.";
        let cause = format!(
            "The link explains it: {names} carries {carried} after encoding, minus protocol \
             overhead."
        );
        (cause, remedy.to_owned())
    } else if rate > link {
        let cause = format!(
            "The link does not explain it: {names} carries only {carried}, so a cache in the path \
             answered."
        );
        (cause, format!("Look for a cache, then for {OTHERS}."))
    } else {
        (
            format!("The link does not explain it: {names} carries {carried}."),
            format!(
                "Replace or bypass these one by one until the top of the curve rises: {OTHERS}."
            ),
        )
    }
}

fn carries(link: f64) -> std::ops::RangeInclusive<f64> {
    if link <= USB2 {
        LINK_SHARE_USB2
    } else {
        LINK_SHARE
    }
}

/// The first and the last point of the flat part, the first one behind it, and the links.
fn evidence(
    record: &Record,
    shape: &Shape,
    plateau: &Plateau,
    surface: &SurfaceRecord,
) -> Vec<Evidence> {
    let last = plateau.last.unwrap_or(shape.points.len() - 1);
    let expected = plateau.expected.unwrap_or(plateau.rate);
    let mut evidence = vec![
        point_evidence(shape.points[0].index, record, expected),
        point_evidence(shape.points[last].index, record, plateau.rate),
    ];
    let next = shape.points.get(last + 1);
    evidence.extend(next.map(|p| point_evidence(p.index, record, plateau.rate)));
    for at in links(record, surface.data.target) {
        if let Some(rate) = at.link.bytes_per_second_max {
            let path = format!("{}/bytes_per_second_max", at.path);
            evidence.push(evidence_at(path, rate as f64, plateau.rate, "B/s"));
        }
    }
    evidence
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::states;
    use crate::fixture::surveyed::{self, SurveyedDisk, rotating};

    pub(super) const EXAMPLES: Examples = Examples::of(
        || capped(78e6, "3.0 Gbps", Some(300_000_000)),
        surveyed::record,
    );

    fn capped(cap: f64, speed: &str, link: Option<u64>) -> Record {
        let mut run = rotating(|disk| disk.cap = Some(cap)).run(3);
        let at = run.0.targets[0].layers[0].link.as_mut().unwrap();
        (at.speed, at.bytes_per_second_max) = (Some(speed.to_owned()), link);
        surveyed::judge(run)
    }

    #[test]
    fn the_end_and_the_rate_of_the_flat_part_are_reported() {
        let finding = check_flat_top(&(EXAMPLES.fires)()).unwrap();
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

    #[test]
    fn a_link_that_carries_no_more_is_the_cause() {
        let cause = |cap, speed, link| check_flat_top(&capped(cap, speed, link)).unwrap();
        states(&cause(78e6, "480 Mb/s", Some(60_000_000)).claim, &["cache"]);
        let slow = cause(70e6, "1.5 Gbps", Some(75_000_000));
        states(&slow.claim, &["SATA 1.5 Gbps"]);
        states(&slow.remedy, &["faster link"]);
        let unknown = cause(78e6, "", None);
        assert!(
            !unknown.remedy.contains("faster link"),
            "{}",
            unknown.remedy
        );
    }

    #[test]
    fn flat_all_over_is_a_limit_where_an_arm_moves() {
        let capped = |change: fn(&mut SurveyedDisk)| {
            let mut disk = rotating(|disk| disk.cap = Some(40e6));
            change(&mut disk);
            check_flat_top(&disk.record(1))
        };
        states(
            &capped(|_| ()).unwrap().claim,
            &["40.0 MB/s", "whole surface"],
        );
        assert_eq!(capped(|disk| disk.accesses = 0), None);
        assert_eq!(capped(|disk| disk.span = 0.0..0.3), None);
        assert_eq!(capped(|disk| *disk = SurveyedDisk::solid()), None);
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
        run.1.curve_cpu.system_ns = 38_000_000_000;
        states(
            &check_flat_top(&surveyed::judge(run)).unwrap().claim,
            &["95 %", "CPU"],
        );
    }

    #[test]
    fn zones_are_no_flat_top_and_a_file_has_none() {
        for zones in [2, 3, 5, 16, 24, 40] {
            for points in [20, 50, 200] {
                let disk = rotating(|disk| (disk.zones, disk.points) = (zones, points));
                assert_eq!(check_flat_top(&disk.record(1)), None, "{zones}, {points}");
            }
        }
        let mut run = rotating(|disk| disk.cap = Some(78e6)).run(3);
        run.0.targets[0].kind = TargetKind::File;
        assert_eq!(
            check_flat_top(&surveyed::judge(run)),
            None,
            "a file may lie anywhere"
        );
    }
}
