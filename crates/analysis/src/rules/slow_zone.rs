//! `slow-zone`: a stretch of the surface is clearly slower than what lies on both sides of it; the
//! normal decline toward the inner zones, a single delayed request and a short pause of flash do
//! not count.
//!
//! How well it decides (`findings_study`, random disks with 60 to 300 points, 1000 of each kind): 7
//! of 3000 healthy disks have this finding. A disk with one stretch at 30 to 80 % of the rate has
//! it, and no other, in 96 % of cases where the stretch covers 1 % of the surface, in 99 % at 2 %,
//! 99.6 % at 5 % and 99.4 % at 20 %. A disk with three such stretches has it in 98.5 %.

use super::ragged::is_uneven;
use super::rule::*;
use crate::mechanics::{Mechanics, mechanics, reach};
use crate::shape::{Dip, Shape};
use crate::surface::{SecondReading, second_reading};

pub(super) const RULE: Rule = Rule {
    code: "slow-zone",
    title: "One zone of the disk is slow",
    summary: "A stretch of the disk transfers more slowly than the places on both sides of it, \
              also at a second reading.",
    remedy: Remedy::ByCase,
    check: Check::Survey(check),
    says: Meaning::Disk,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Least points of a slow stretch where nothing turns: shorter ones are the disk's own
/// housekeeping, which goes with time and not with place.
const POINTS_MIN_SOLID: usize = 3;

/// Least loss of a stretch of one point, as a share of the rate. No second sample of the same pass
/// confirms it, so it must be deeper than the 13 % that any dip has. Less of it reports points that
/// are slow by chance; more of it misses narrow stretches.
const LOSS_MIN_SINGLE: f64 = 0.16;

/// Where points scatter by more than this, as a share of the rate, no slow one is an exception:
/// such a curve is too ragged to have zones. Less of it hides deep stretches, which scatter the
/// points by themselves.
const SCATTER_MAX: f64 = 0.25;

/// The claim names so many stretches, the slowest: a sentence with more is not read.
const ZONES_NAMED_MAX: usize = 3;

/// A slow stretch that the second reading does not refute.
struct SlowZone<'a> {
    dip: &'a Dip,
    /// The rate of the second reading, in bytes per second; `None` where it was not read again.
    second_rate: Option<f64>,
    from_bytes: u64,
    to_bytes: u64,
}

impl SlowZone<'_> {
    fn is_confirmed(&self) -> bool {
        self.second_rate.is_some()
    }

    fn clause(&self) -> String {
        let second_reading = match self.second_rate {
            Some(rate) => format!(", and {} at a second reading", format_throughput(rate)),
            None => String::new(),
        };
        format!(
            "from {} to {} it reaches {}, {} less than the {} on both sides{second_reading}",
            gigabytes(self.from_bytes),
            gigabytes(self.to_bytes),
            format_throughput(self.dip.rate),
            format_percent(loss(self.dip)),
            format_throughput(self.dip.neighbours_rate)
        )
    }

    /// The first point of the stretch, and its slowest one if that is another.
    fn evidence(&self, record: &Record, shape: &Shape) -> Vec<Evidence> {
        let dip = self.dip;
        let slowest = smallest_by(dip.first..=dip.last, |i| shape.points[*i].ln_rate);
        let mut points = vec![dip.first, slowest.unwrap_or(dip.first)];
        points.dedup();
        points
            .iter()
            .map(|i| point_evidence(shape.points[*i].index, record, dip.neighbours_rate))
            .collect()
    }
}

fn check(record: &Record) -> Option<Diagnosis> {
    let surface = record.surface()?;
    let shape = Shape::from_curve(record.curve(), reach(record, surface))?;
    let mechanics = mechanics(record);
    if !may_have_zones(&shape, mechanics) {
        return None;
    }
    let zones = slow_zones(record, surface, &shape, mechanics);
    let slowest = zones.first()?;
    let mut observations = Vec::new();
    for zone in zones.iter().take(ZONES_NAMED_MAX) {
        observations.extend(zone.evidence(record, &shape));
    }
    let severity = warning_if(slowest.is_confirmed());
    Some(
        Diagnosis::new(severity, claim(&zones, slowest), observations)
            .with_remedy(remedy(record, surface, slowest)),
    )
}

/// True if the curve is even enough for a slow stretch to be an exception. `ragged` reports the
/// others.
fn may_have_zones(shape: &Shape, mechanics: Mechanics) -> bool {
    shape.scatter <= SCATTER_MAX && (mechanics == Mechanics::Solid || !is_uneven(shape))
}

/// The slow stretches, those that lose most first. Where the second reading confirms some, only
/// these count.
fn slow_zones<'a>(
    record: &Record,
    surface: &SurfaceRecord,
    shape: &'a Shape,
    mechanics: Mechanics,
) -> Vec<SlowZone<'a>> {
    let mut zones: Vec<SlowZone<'_>> = Vec::new();
    for dip in &shape.dips {
        if is_wide_or_deep_enough(dip, mechanics) {
            zones.extend(unless_refuted(record, surface, shape, dip));
        }
    }
    let has_confirmed = zones.iter().any(SlowZone::is_confirmed);
    zones.retain(|zone| zone.is_confirmed() == has_confirmed);
    zones.sort_by(|one, other| loss(other.dip).total_cmp(&loss(one.dip)));
    zones
}

fn is_wide_or_deep_enough(dip: &Dip, mechanics: Mechanics) -> bool {
    let points = dip.last - dip.first + 1;
    if mechanics == Mechanics::Solid {
        points >= POINTS_MIN_SOLID
    } else {
        points > 1 || loss(dip) >= LOSS_MIN_SINGLE
    }
}

/// The share of the rate on both sides that a dip lacks.
fn loss(dip: &Dip) -> f64 {
    1.0 - dip.rate / dip.neighbours_rate
}

/// The dip as a slow stretch; `None` where the second reading shows that it is as fast as its
/// sides.
fn unless_refuted<'a>(
    record: &Record,
    surface: &SurfaceRecord,
    shape: &Shape,
    dip: &'a Dip,
) -> Option<SlowZone<'a>> {
    let second_rate = match second_reading(record.curve(), shape, dip) {
        SecondReading::Refuted => return None,
        SecondReading::Missing => None,
        SecondReading::Confirmed(rate) => Some(rate),
    };
    let span_end_bytes = surface.data.span_start_bytes + surface.data.span_bytes;
    Some(SlowZone {
        dip,
        second_rate,
        from_bytes: shape.points[dip.first].offset_bytes,
        to_bytes: shape.end_bytes(dip.last, span_end_bytes),
    })
}

fn claim(zones: &[SlowZone<'_>], slowest: &SlowZone<'_>) -> String {
    let clauses: Vec<String> = zones
        .iter()
        .take(ZONES_NAMED_MAX)
        .map(SlowZone::clause)
        .collect();
    let unnamed_text = match zones.len().saturating_sub(ZONES_NAMED_MAX) {
        0 => String::new(),
        unnamed => format!("; {unnamed} more"),
    };
    format!(
        "{}: {}{unnamed_text}. {}",
        headline(zones.len(), slowest.is_confirmed()),
        clauses.join("; "),
        consequence(slowest.is_confirmed())
    )
}

fn headline(zones: usize, is_confirmed: bool) -> String {
    match (zones, is_confirmed) {
        (1, true) => "A stretch of the disk is slow".to_owned(),
        (1, false) => "A stretch of the disk was slow once".to_owned(),
        (n, true) => format!("{n} stretches of the disk are slow"),
        (n, false) => format!("{n} stretches of the disk were slow once"),
    }
}

fn consequence(is_confirmed: bool) -> &'static str {
    if is_confirmed {
        "The normal decline toward the inner zones does not explain it."
    } else {
        "The survey could not read it a second time, so another program may be the cause."
    }
}

fn remedy(record: &Record, surface: &SurfaceRecord, slowest: &SlowZone<'_>) -> String {
    format!(
        "Measure the stretch again, finer: diskproof curve {} --span {}-{}. If it is slow again, \
         the disk retries reads or has reallocated sectors: check smartctl -a (reallocated, \
         pending) and run curve --scan. If not, another program used the disk.",
        target_argument(record, surface.data.target),
        slowest.from_bytes,
        slowest.to_bytes
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::states;
    use crate::fixture::surveyed::{self, SurveyedDisk, codes, rotating, solid};
    use crate::rules::ragged::tests::slow;
    use crate::surface::points_to_confirm;

    pub(super) const EXAMPLES: Examples =
        Examples::new(|| slow(0.4..0.45, 0.5).record(1), surveyed::record);

    #[test]
    fn the_stretch_is_reported_with_its_bounds_and_rate() {
        let record = (EXAMPLES.fires)();
        let finding = check(&record).unwrap();
        states(&finding.claim, &["from 128 GB to 144 GB", "50 %"]);
        states(
            &finding.remedy,
            &["diskproof curve /dev/sda --span 128000000000-144000000000"],
        );
        assert_eq!(codes(&record), ["slow-zone"]);
    }

    /// Only stretches that were read once are more than the claim names: the second reading is of
    /// the three deepest.
    #[test]
    fn slowest_of_many_stretches_is_named_first_and_fills_the_remedy() {
        let disk = rotating(|disk| {
            for (start, share) in [(0.1, 0.8), (0.3, 0.7), (0.5, 0.75), (0.7, 0.4)] {
                disk.slow.push((start..start + 0.05, share));
            }
        });
        let mut run = disk.run(1);
        for point in &mut run.surface.curve {
            point.later_bytes_per_second = None;
        }
        let record = surveyed::judge(run);
        let surface = record.surface().unwrap();
        let shape = Shape::from_curve(record.curve(), reach(&record, surface)).unwrap();
        let zones = slow_zones(&record, surface, &shape, mechanics(&record));
        assert!(zones.len() > ZONES_NAMED_MAX);
        assert!(zones.is_sorted_by(|one, other| loss(one.dip) >= loss(other.dip)));
        let diagnosis = check(&record).unwrap();
        let first = format!("slow once: from {} to", gigabytes(zones[0].from_bytes));
        states(&diagnosis.claim, &[&first, "60 % less", " more. "]);
        let span = format!("--span {}-", zones[0].from_bytes);
        states(&diagnosis.remedy, &[&span]);
    }

    #[test]
    fn command_for_an_unknown_target_has_a_placeholder() {
        let mut record = (EXAMPLES.fires)();
        record.targets.clear();
        let remedy = check(&record).unwrap().remedy;
        states(&remedy, &["diskproof curve TARGET --span 128000000000-"]);
    }

    #[test]
    fn stretch_that_was_slow_for_a_while_only_is_silent() {
        let truth = SurveyedDisk::rotating();
        let mut run = truth.run(1);
        // Another program used the disk during these points. Their second reading is fast.
        for point in &mut run.surface.curve[80..90] {
            point.bytes_per_second /= 2.0;
            point.busy_ns *= 2;
            point.latency_max_ns *= 2;
        }
        let second_reading = points_to_confirm(&run.surface.curve);
        assert!(
            second_reading
                .iter()
                .filter(|i| (80..90).contains(*i))
                .count()
                == 3
                && second_reading.len() == 7
        );
        run.surface
            .curve
            .iter_mut()
            .for_each(|p| p.later_bytes_per_second = None);
        let once = check(&surveyed::judge(run.clone())).unwrap();
        assert_eq!(once.severity, Severity::Note);
        for index in second_reading {
            let point = &mut run.surface.curve[index];
            let place = point.offset_bytes as f64 / truth.size_bytes as f64;
            point.later_bytes_per_second = Some(truth.rate_at(place));
        }
        assert_eq!(check(&surveyed::judge(run.clone())), None);
        // The load lasts: it slows the sides, too.
        for point in &mut run.surface.curve {
            point.later_bytes_per_second = point.later_bytes_per_second.map(|rate| rate / 2.0);
        }
        assert_eq!(check(&surveyed::judge(run)), None);
    }

    #[test]
    fn long_stretch_that_is_a_little_slow_is_found() {
        // 30 of 1000 GB, 12 % slow, with point errors of 0.2 %.
        for (mut disk, start) in [
            (SurveyedDisk::rotating(), 0.41),
            (SurveyedDisk::rotating(), 0.633),
            (solid(|disk| disk.noise = 0.002), 0.2),
        ] {
            disk.size_bytes = 1_000_000_000_000;
            disk.slow = vec![(start..start + 0.03, 0.88)];
            for seed in 0..5 {
                let diagnosis = check(&disk.record(seed));
                let severity = diagnosis.map(|finding| finding.severity);
                assert_eq!(severity, Some(Severity::Warning), "{seed} {disk:?}");
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
                let disk = rotating(|disk| (disk.zones, disk.span) = (zones, span));
                assert_eq!(check(&disk.record(1)), None, "{disk:?}");
            }
        }
    }

    #[test]
    fn one_request_that_waited_is_no_zone_and_many_slow_ones_are() {
        for waited in [true, false] {
            let record = surveyed::faulty(|survey| {
                let point = &mut survey.curve[80];
                point.bytes_per_second /= 2.0;
                point.busy_ns *= 2;
                if waited {
                    point.latency_max_ns += point.busy_ns / 2;
                } else {
                    point.latency_max_ns *= 2;
                }
            });
            assert_eq!(check(&record).is_none(), waited);
        }
    }

    #[test]
    fn short_pause_of_an_ssd_is_silent_and_a_long_stretch_is_not() {
        for seed in 0..10 {
            let record = solid(|disk| disk.hiccups = 0.02).record(seed);
            assert_eq!(check(&record), None, "{seed}");
        }
        let stale = solid(|disk| disk.slow = vec![(0.2..0.3, 0.5)]);
        assert!(check(&stale.record(1)).is_some());
    }

    /// A dip of so many points that lost this share of the rate.
    fn dip(points: usize, loss: f64) -> Dip {
        Dip {
            first: 10,
            last: 9 + points,
            rate: 1e8 * (1.0 - loss),
            neighbours_rate: 1e8,
        }
    }

    #[test]
    fn single_point_must_be_deep_and_a_disk_without_arm_needs_three() {
        for (mechanics, points, loss, is_zone) in [
            (Mechanics::Rotating, 1, 0.15, false),
            (Mechanics::Rotating, 1, 0.17, true),
            (Mechanics::Unknown, 1, 0.15, false),
            (Mechanics::Rotating, 2, 0.14, true),
            (Mechanics::Solid, 2, 0.5, false),
            (Mechanics::Solid, 3, 0.14, true),
        ] {
            let found = is_wide_or_deep_enough(&dip(points, loss), mechanics);
            assert_eq!(found, is_zone, "{mechanics:?} {points} {loss}");
        }
    }

    #[test]
    fn curve_that_scatters_has_no_zones() {
        for (scatter, has_zones) in [(0.25, true), (0.26, false)] {
            let shape = Shape {
                points: Vec::new(),
                scatter,
                own_error: None,
                dips: Vec::new(),
                levels: Vec::new(),
            };
            assert_eq!(may_have_zones(&shape, Mechanics::Solid), has_zones);
        }
    }

    /// The first of two equally slow stretches was not read again.
    #[test]
    fn stretch_that_was_read_once_does_not_count_beside_a_confirmed_one() {
        let disk = rotating(|disk| {
            for start in [0.2, 0.6] {
                disk.slow.push((start..start + 0.05, 0.5));
            }
        });
        let mut run = disk.run(1);
        let found = check(&surveyed::judge(run.clone())).unwrap();
        states(&found.claim, &["2 stretches"]);
        for point in &mut run.surface.curve[..80] {
            point.later_bytes_per_second = None;
        }
        let diagnosis = check(&surveyed::judge(run)).unwrap();
        assert_eq!(diagnosis.severity, Severity::Warning);
        states(&diagnosis.claim, &["A stretch", "from 192 GB to 208 GB"]);
    }
}
