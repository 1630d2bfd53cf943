//! `slow-zone`: a stretch of the surface is clearly slower than what lies on both sides of it. The
//! normal decline toward the inner zones, a single delayed request and a short pause of flash do
//! not count.
//!
//! Of random disks (`findings_study`, 1000 of each kind) one of 3000 healthy ones has it. Stretches
//! of 1, 2, 5 and 20 % of the surface at 30 to 80 % of the rate are found, and nothing else, on 97,
//! 99.8, 100 and 99.6 %, with 60 to 300 points.

use super::evidence::{gigabytes, point_evidence};
use super::ragged::is_uneven;
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule};
use crate::mechanics::{Mechanics, mechanics, reach};
use crate::shape::{Dip, Shape};
use diskproof_model::finding::{Evidence, Severity};
use diskproof_model::record::Record;
use diskproof_model::units::{format_percent, format_throughput};

pub(super) const RULES: &[Rule] = &[Rule {
    code: "slow-zone",
    title: "One zone of the disk is slow",
    meaning: "A stretch of the disk transfers more slowly than the places on both sides of it.",
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
/// Least depth of a stretch of one point, as a share of the rate: no second sample confirms it.
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
    let zones: Vec<&Dip> = shape
        .dips
        .iter()
        .filter(|dip| is_zone(dip, solid))
        .collect();
    let worst = zones
        .iter()
        .min_by(|a, b| (a.rate / a.beside).total_cmp(&(b.rate / b.beside)))?;
    let span_end = surface.span_start_bytes + surface.span_bytes;
    let bounds = |dip: &Dip| {
        (
            shape.points[dip.first].offset_bytes,
            shape.end_bytes(dip.last, span_end),
        )
    };
    let (from, to) = bounds(worst);
    let claims: Vec<String> = zones
        .iter()
        .take(NAMED)
        .map(|dip| tell(dip, bounds(dip)))
        .collect();
    let more = zones.len().saturating_sub(NAMED);
    let more = if more > 0 {
        format!("; {more} more")
    } else {
        String::new()
    };
    let path = record
        .targets
        .get(surface.target)
        .map_or("", |t| t.path.as_str());
    Some(Diagnosis {
        severity: Severity::Warning,
        claim: format!(
            "{}: {}{more}. The normal decline toward the inner zones does not explain it.",
            if zones.len() == 1 {
                "A stretch of the disk is slow".to_owned()
            } else {
                format!("{} stretches of the disk are slow", zones.len())
            },
            claims.join("; ")
        ),
        evidence: zones
            .iter()
            .take(NAMED)
            .flat_map(|dip| evidence(record, &shape, dip))
            .collect(),
        remedy: format!(
            "Measure the stretch again, finer: diskproof curve {path} --span {from}-{to}. If it \
             is slow again, the disk retries reads or has moved sectors: check smartctl -a \
             (reallocated, pending) and run curve --scan. If not, something else used the disk."
        ),
        reproduce: None,
    })
}

fn is_zone(dip: &Dip, solid: bool) -> bool {
    let length = dip.last - dip.first + 1;
    match (solid, length) {
        (true, n) => n >= POINTS_MIN_SOLID,
        (false, 1) => 1.0 - dip.rate / dip.beside >= DEPTH_MIN_SINGLE,
        (false, _) => true,
    }
}

fn tell(dip: &Dip, (from, to): (u64, u64)) -> String {
    format!(
        "from {} to {} it reaches {}, {} less than the {} beside it",
        gigabytes(from),
        gigabytes(to),
        format_throughput(dip.rate),
        format_percent(1.0 - dip.rate / dip.beside),
        format_throughput(dip.beside)
    )
}

/// The slowest point of the stretch and its first one, if that is another.
fn evidence(record: &Record, shape: &Shape, dip: &Dip) -> Vec<Evidence> {
    let slowest = (dip.first..=dip.last)
        .min_by(|a, b| {
            shape.points[*a]
                .ln_rate
                .total_cmp(&shape.points[*b].ln_rate)
        })
        .unwrap_or(dip.first);
    let mut points = vec![slowest];
    if dip.first != slowest {
        points.insert(0, dip.first);
    }
    points
        .into_iter()
        .map(|i| point_evidence(shape.points[i].index, record, dip.beside))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::surveyed::{self, SurveyedDisk, codes};

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
