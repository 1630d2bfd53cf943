//! `slow-zone`: a stretch of the surface is clearly slower than what lies on both sides of it. The
//! normal decline toward the inner zones, a single delayed request and a short pause of flash do
//! not count.
//!
//! Of random disks (`findings_study`, 1000 of each kind) 7 of 3000 healthy ones have it. Stretches
//! of 1, 2, 5 and 20 % of the surface at 30 to 80 % of the rate are found, and nothing else, on 96,
//! 99, 99.6 and 99.4 %, three of them on 98.5 %, with 60 to 300 points.

use super::evidence::{gigabytes, point_evidence, warning_if};
use super::ragged::is_uneven;
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule};
use crate::estimate::smallest_by;
use crate::mechanics::{Mechanics, mechanics, reach};
use crate::shape::{Dip, Shape};
use crate::surface::{SecondReading, second_reading};
use diskproof_model::finding::Evidence;
use diskproof_model::record::Record;
use diskproof_model::units::{format_percent, format_throughput};

pub(super) const RULES: &[Rule] = &[Rule {
    code: "slow-zone",
    title: "One zone of the disk is slow",
    meaning: "A stretch of the disk transfers more slowly than the places on both sides of it, \
              also at a second reading.",
    taints: None,
    check: Check::Survey(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
}];

/// Least points of a slow stretch where nothing turns: shorter ones are the disk's own
/// housekeeping, which goes with time and not with place.
const POINTS_MIN_SOLID: usize = 3;
/// Smallest depth of a stretch of one point, as a share of the rate: no second sample confirms it.
const DEPTH_MIN_SINGLE: f64 = 0.16;
/// Where points scatter by more than this, as a share of the rate, no slow one is an exception.
const SCATTER_MAX: f64 = 0.25;
/// Stretches that the claim names.
const NAMED: usize = 3;

fn check(record: &Record) -> Option<Diagnosis> {
    let surface = record.surface.as_ref()?;
    let shape = Shape::of(&record.curve, reach(record, surface))?;
    let solid = mechanics(record) == Mechanics::Solid;
    if shape.scatter > SCATTER_MAX || (!solid && is_uneven(&shape)) {
        return None;
    }
    let (zones, is_confirmed) = slow_zones(record, &shape, solid);
    let dips = zones.iter().map(|zone| zone.dip);
    let worst = smallest_by(dips, |dip| dip.rate / dip.beside)?;
    let span_end = surface.span_start_bytes + surface.span_bytes;
    let bounds = |dip: &Dip| {
        let from = shape.points[dip.first].offset_bytes;
        (from, shape.end_bytes(dip.last, span_end))
    };
    let (from, to) = bounds(worst);
    let named = || zones.iter().take(NAMED);
    let claims: Vec<String> = named()
        .map(|zone| zone.describe(bounds(zone.dip)))
        .collect();
    let more = match zones.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; {more} more"),
    };
    let target = record.targets.get(surface.target);
    let path = target.map_or("", |target| &target.path);
    let headline = match (zones.len(), is_confirmed) {
        (1, true) => "A stretch of the disk is slow".to_owned(),
        (1, false) => "A stretch of the disk was slow once".to_owned(),
        (n, true) => format!("{n} stretches of the disk are slow"),
        (n, false) => format!("{n} stretches of the disk were slow once"),
    };
    let consequence = if is_confirmed {
        "The normal decline toward the inner zones does not explain it."
    } else {
        "The survey could not read it a second time, so another program may be the cause."
    };
    Some(Diagnosis::new(
        warning_if(is_confirmed),
        format!("{headline}: {}{more}. {consequence}", claims.join("; ")),
        named().flat_map(|zone| evidence(record, &shape, zone.dip)),
        format!(
            "Measure the stretch again, finer: diskproof curve {path} --span {from}-{to}. If it is \
             slow again, the disk retries reads or has reallocated sectors: check smartctl -a \
             (reallocated, pending) and run curve --scan. If not, another program used the disk."
        ),
    ))
}

fn is_zone(dip: &Dip, solid: bool) -> bool {
    let length = dip.last - dip.first + 1;
    match (solid, length) {
        (true, n) => n >= POINTS_MIN_SOLID,
        (false, 1) => 1.0 - dip.rate / dip.beside >= DEPTH_MIN_SINGLE,
        (false, _) => true,
    }
}

/// The slow stretches, without those that the second reading refutes, and whether it confirms them.
fn slow_zones<'a>(record: &Record, shape: &'a Shape, solid: bool) -> (Vec<SlowZone<'a>>, bool) {
    let mut zones: Vec<SlowZone> = shape
        .dips
        .iter()
        .filter(|dip| is_zone(dip, solid))
        .map(|dip| SlowZone {
            dip,
            again: second_reading(&record.curve, shape, dip),
        })
        .filter(|zone| zone.again != SecondReading::Refuted)
        .collect();
    // What was read once only counts where nothing is known better.
    let is_confirmed = zones.iter().any(SlowZone::is_confirmed);
    zones.retain(|zone| zone.is_confirmed() == is_confirmed);
    (zones, is_confirmed)
}

/// A stretch, and what the second reading said of it.
struct SlowZone<'a> {
    dip: &'a Dip,
    again: SecondReading,
}

impl SlowZone<'_> {
    fn is_confirmed(&self) -> bool {
        matches!(self.again, SecondReading::Confirmed(_))
    }

    fn describe(&self, (from, to): (u64, u64)) -> String {
        let dip = self.dip;
        let again = match self.again {
            SecondReading::Confirmed(rate) => {
                format!(", and {} at a second reading", format_throughput(rate))
            }
            _ => String::new(),
        };
        format!(
            "from {} to {} it reaches {}, {} less than the {} on both sides{again}",
            gigabytes(from),
            gigabytes(to),
            format_throughput(dip.rate),
            format_percent(1.0 - dip.rate / dip.beside),
            format_throughput(dip.beside)
        )
    }
}

/// The slowest point of the stretch and its first one, if that is another.
fn evidence(record: &Record, shape: &Shape, dip: &Dip) -> Vec<Evidence> {
    let slowest = smallest_by(dip.first..=dip.last, |i| shape.points[*i].ln_rate);
    let slowest = slowest.unwrap_or(dip.first);
    let mut points = vec![dip.first, slowest];
    points.dedup();
    let points = points.into_iter().map(|i| shape.points[i].index);
    points
        .map(|index| point_evidence(index, record, dip.beside))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::surveyed::{self, SurveyedDisk, codes};
    use crate::surface::points_to_confirm;
    use diskproof_model::finding::Severity;

    fn slow(range: std::ops::Range<f64>, left: f64) -> SurveyedDisk {
        SurveyedDisk {
            slow: vec![(range, left)],
            ..SurveyedDisk::rotating()
        }
    }

    pub(super) fn fires() -> Record {
        slow(0.4..0.45, 0.5).record(1)
    }

    pub(super) fn silent() -> Record {
        SurveyedDisk::rotating().record(1)
    }

    #[test]
    fn the_stretch_is_reported_with_its_bounds_and_rate() {
        let record = fires();
        let finding = check(&record).unwrap();
        assert!(
            finding
                .claim
                .starts_with("A stretch of the disk is slow: from 128 GB to 144 GB it reaches 3"),
            "{}",
            finding.claim
        );
        assert!(
            finding.claim.contains("50 % less than the 7"),
            "{}",
            finding.claim
        );
        assert!(
            finding
                .remedy
                .contains("diskproof curve /dev/sda --span 128000000000-144000000000"),
            "{}",
            finding.remedy
        );
        assert_eq!(codes(&record), ["slow-zone"]);
    }

    #[test]
    fn stretch_that_was_slow_for_a_while_only_is_silent() {
        let mut run = SurveyedDisk::rotating().run(1);
        // Another program used the disk during these points. Their second reading is fast.
        for point in &mut run.1.curve[80..90] {
            (point.bytes_per_second, point.busy_ns, point.latency_max_ns) = (
                point.bytes_per_second / 2.0,
                point.busy_ns * 2,
                point.latency_max_ns * 2,
            );
        }
        let truth = SurveyedDisk::rotating();
        let again = points_to_confirm(&run.1.curve);
        assert!(again.iter().filter(|i| (80..90).contains(*i)).count() == 3 && again.len() == 7);
        let mut once = run.clone();
        once.1
            .curve
            .iter_mut()
            .for_each(|p| p.later_bytes_per_second = None);
        let finding = check(&surveyed::judge(once)).unwrap();
        assert!(
            finding.severity == Severity::Note
                && finding
                    .claim
                    .starts_with("A stretch of the disk was slow once: "),
            "{finding:?}"
        );
        for index in again {
            let point = &mut run.1.curve[index];
            let place = point.offset_bytes as f64 / truth.size_bytes as f64;
            point.later_bytes_per_second = Some(truth.rate_at(place));
        }
        assert_eq!(check(&surveyed::judge(run.clone())), None);
        // The load lasts: it slows the sides, too.
        for point in &mut run.1.curve {
            point.later_bytes_per_second = point.later_bytes_per_second.map(|rate| rate / 2.0);
        }
        assert_eq!(check(&surveyed::judge(run)), None);
    }

    #[test]
    fn long_stretch_that_is_a_little_slow_is_found() {
        // 30 of 1000 GB, 12 % slow, with point errors of 0.2 %.
        for (disk, start) in [
            (SurveyedDisk::rotating(), 0.41),
            (SurveyedDisk::rotating(), 0.633),
            (
                SurveyedDisk {
                    noise: 0.002,
                    ..SurveyedDisk::solid()
                },
                0.2,
            ),
        ] {
            for seed in 0..5 {
                let record = SurveyedDisk {
                    size_bytes: 1_000_000_000_000,
                    slow: vec![(start..start + 0.03, 0.88)],
                    ..disk.clone()
                }
                .record(seed);
                let finding = check(&record).unwrap_or_else(|| panic!("{disk:?}"));
                assert_eq!(finding.severity, Severity::Warning, "{}", finding.claim);
            }
        }
    }

    #[test]
    fn wide_ones_at_the_start_and_at_the_end_are_found_too() {
        for range in [0.0..0.05, 0.3..0.5, 0.9..1.0] {
            let record = slow(range.clone(), 0.6).record(1);
            assert_eq!(codes(&record), ["slow-zone"], "{range:?}");
        }
    }

    #[test]
    fn normal_decline_is_silent() {
        for zones in [2, 3, 5, 24] {
            for span in [0.0..1.0, 0.0..0.8, 0.3..0.9] {
                let disk = SurveyedDisk {
                    zones,
                    span,
                    ..SurveyedDisk::rotating()
                };
                assert_eq!(check(&disk.record(1)), None, "{disk:?}");
            }
        }
    }

    #[test]
    fn one_request_that_waited_is_no_zone_and_many_slow_ones_are() {
        let record = |waited: bool| {
            let mut run = SurveyedDisk::rotating().run(1);
            let point = &mut run.1.curve[80];
            (point.bytes_per_second, point.busy_ns) =
                (point.bytes_per_second / 2.0, point.busy_ns * 2);
            point.latency_max_ns = if waited {
                point.latency_max_ns + point.busy_ns / 2
            } else {
                point.latency_max_ns * 2
            };
            check(&surveyed::judge(run))
        };
        assert_eq!(record(true), None);
        assert!(record(false).is_some());
    }

    #[test]
    fn short_pause_of_an_ssd_is_silent_and_a_long_stretch_is_not() {
        for seed in 0..10 {
            assert_eq!(
                check(
                    &SurveyedDisk {
                        hiccups: 0.02,
                        ..SurveyedDisk::solid()
                    }
                    .record(seed)
                ),
                None,
                "{seed}"
            );
        }
        let stale = SurveyedDisk {
            slow: vec![(0.2..0.3, 0.5)],
            ..SurveyedDisk::solid()
        };
        assert!(check(&stale.record(1)).is_some());
    }
}
