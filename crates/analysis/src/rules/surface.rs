//! How the rate changes over the surface. `ragged`: points scatter around what their neighbours
//! suggest; zone boundaries, isolated slow spots and noise of a few percent do not count.
//! `slow-zone`: a stretch of the surface is clearly slower than what lies on both sides of it; the
//! normal decline toward the inner zones, a single delayed request and a short pause of flash do
//! not count. `not-zoned`: the disk is the same everywhere, so nothing is gained by using only its
//! first part.
//!
//! Of random disks (`findings_study`, 1000 of each kind) one of 3000 healthy ones with noise up to
//! 3 % is ragged, no SSD with up to 5 %; where cells lose up to 10, 15, 20, 30 and 50 % of their
//! rate it alone is found on 90, 97, 98, 99 and 99 %; where they are wider than the points lie
//! apart, on 67 %. A loss of up to 10 % scatters by 3 %: it counts because the samples are more
//! even than that in themselves. Records that do not tell need 4 %.
//!
//! 7 of 3000 healthy ones have a slow zone. Stretches of 1, 2, 5 and 20 % of the surface at 30 to
//! 80 % of the rate are found, and nothing else, on 96, 99, 99.6 and 99.4 %, three of them on 98.5
//! %, with 60 to 300 points. `not-zoned` is found on every SSD with noise up to 5 %, on none of
//! 3000 healthy rotating ones.

use super::rule::*;
use crate::mechanics::{Mechanics, mechanics, reach};
use crate::shape::{Dip, Reach, Shape, median};
use crate::surface::{SecondReading, second_reading};

pub(super) const RAGGED: Rule = Rule {
    code: "ragged",
    check: Check::Survey(check_ragged),
    says: Meaning::Disk,
    #[cfg(test)]
    examples: tests::RAGGED,
};

/// Standard deviation that no healthy rotating disk on a quiet machine reaches, as a share of the
/// rate.
const SCATTER_ROTATING: f64 = 0.04;
/// The same where nothing turns: there a point's rate is a matter of the moment, not of the place.
const SCATTER_SOLID: f64 = 0.075;
/// Noise that counts as healthy; few points may show more by chance.
const HEALTHY: (f64, f64) = (0.03, 0.05);
/// What counts as healthy on a rotating disk whose samples are so even in themselves that neither
/// machine nor moment explains a scatter between them: the least standard deviation, and the noise
/// that few points may exceed by chance. Two percent are more than timing and the steps of zones
/// make, and less than what cells make that lose up to a tenth.
const SCATTER_EVEN: f64 = 0.02;
const HEALTHY_EVEN: f64 = 0.012;
/// A scatter of this many times the samples' own error is explained by it: the parts of a sample
/// that a pause hits are not independent.
const OWN_ERRORS: f64 = 2.0;
/// By how many of its own standard deviations the scatter must exceed the healthy one.
const SURENESS: f64 = 3.0;
/// The standard deviation of a scatter from `n` points is about 1/√(n/2) of it: an upper quartile
/// of what lies outside is less efficient than a variance.
const EFFICIENCY: f64 = 0.5;
/// Points further off than this, in percent of the rate, are counted.
const STRAY: f64 = 0.1;
/// So many slow places are no places but the way of the whole surface.
const DIPS_MAX: usize = 7;
/// Least rise from one stretch to the next that counts, as a share.
const RISE: f64 = 0.04;
/// So many rises alongside the slow places, and so many of both together, are no places either.
const RISES_MIN: usize = 2;
const UPS_MIN: usize = 5;
/// Points named as evidence.
const NAMED: usize = 3;

/// Whether neighbouring places of the curve differ that much.
pub(super) fn is_curve_ragged(record: &Record) -> bool {
    check_ragged(record).is_some()
}

fn check_ragged(record: &Record) -> Option<Diagnosis> {
    let surface = record.surface()?;
    let shape = Shape::of(record.curve(), reach(record, surface))?;
    let solid = mechanics(record) == Mechanics::Solid;
    if !is_ragged(&shape, solid) {
        return None;
    }
    let strays = shape.strays();
    let far = strays.iter().filter(|s| s.distance() >= STRAY).count();
    let worst = strays.first()?;
    let at = |index: usize| &record.curve()[shape.points[index].index];
    Some(Diagnosis::with_remedy(
        warning_if(shape.scatter >= SCATTER_ROTATING || is_uneven(&shape)),
        format!(
            "The curve is ragged: the rate changes from one point to the next by {} (standard \
             deviation), while a healthy surface is smooth; {far} of {} {} more than {} away from \
             the level of their neighbours. The most distant, at {}, has {} among neighbours of \
             {}.",
            format_percent(shape.scatter),
            counted(shape.points.len() as u64, "point"),
            if far == 1 { "lies" } else { "lie" },
            format_percent(STRAY),
            gigabytes(at(worst.point).offset_bytes),
            format_throughput(at(worst.point).bytes_per_second),
            format_throughput(worst.expected),
        ),
        strays
            .iter()
            .take(NAMED)
            .map(|s| point_evidence(shape.points[s.point].index, record, s.expected)),
        match () {
            () if solid => REMEDY_SOLID,
            () if shape.scatter < SCATTER_ROTATING && !is_uneven(&shape) => REMEDY_SLIGHT,
            () => REMEDY,
        },
    ))
}

const REMEDY: &str = "Measure again on a quiet machine. If the same places are slow, the cause is \
                      worn or reallocated sectors: check smartctl -a and run curve --scan. If the \
                      places change, the cause is vibration, other load, or the cable, port or \
                      controller.";
/// Of a scatter that is small, and more than the samples' own error.
const REMEDY_SLIGHT: &str = "Compare with earlier curves of this disk; disks with heads of \
                             different density are ragged by design. If earlier curves were \
                             smoother, check smartctl -a, run curve --scan, and rule out \
                             vibration, cable, port and controller.";
const REMEDY_SOLID: &str = "Measure again for longer on a quiet machine. Nothing rotates here, so \
                            the cause is temporary (other load, a shared link or host, heat, the \
                            disk's own housekeeping) and does not depend on the position.";

/// Whether the points scatter by more than a healthy curve of as many points does by chance.
pub(super) fn is_ragged(shape: &Shape, solid: bool) -> bool {
    let (least, healthy) = match shape.own_error {
        _ if solid => (SCATTER_SOLID, HEALTHY.1),
        None => (SCATTER_ROTATING, HEALTHY.0),
        Some(error) => (
            (OWN_ERRORS * error).clamp(SCATTER_EVEN, SCATTER_ROTATING),
            (OWN_ERRORS * error).clamp(HEALTHY_EVEN, HEALTHY.0),
        ),
    };
    let by_chance = healthy * (1.0 + SURENESS / (EFFICIENCY * shape.points.len() as f64).sqrt());
    shape.scatter >= by_chance.max(least) || (!solid && is_uneven(shape))
}

/// Whether the unevenness goes in stretches of many points each, up and down over the whole
/// surface: then no few of them are the exception.
pub(super) fn is_uneven(shape: &Shape) -> bool {
    let rises = shape.rises(RISE);
    shape.dips.len() > DIPS_MAX || (rises >= RISES_MIN && rises + shape.dips.len() >= UPS_MIN)
}

pub(super) const SLOW_ZONE: Rule = Rule {
    code: "slow-zone",
    check: Check::Survey(check_slow_zone),
    says: Meaning::Disk,
    #[cfg(test)]
    examples: tests::SLOW_ZONE,
};

/// Least points of a slow stretch where nothing turns: shorter ones are the disk's own
/// housekeeping, which goes with time and not with place.
const POINTS_MIN_SOLID: usize = 3;
/// Smallest depth of a stretch of one point, as a share of the rate: no second sample confirms it.
const DEPTH_MIN_SINGLE: f64 = 0.16;
/// Where points scatter by more than this, as a share of the rate, no slow one is an exception.
const SCATTER_MAX: f64 = 0.25;
/// Stretches that the claim names.
const ZONES_NAMED: usize = 3;

fn check_slow_zone(record: &Record) -> Option<Diagnosis> {
    let surface = record.surface()?;
    let shape = Shape::of(record.curve(), reach(record, surface))?;
    let solid = mechanics(record) == Mechanics::Solid;
    if shape.scatter > SCATTER_MAX || (!solid && is_uneven(&shape)) {
        return None;
    }
    let (zones, is_confirmed) = slow_zones(record, &shape, solid);
    let dips = zones.iter().map(|zone| zone.dip);
    let worst = smallest_by(dips, |dip| dip.rate / dip.beside)?;
    let span_end = surface.data.span_start_bytes + surface.data.span_bytes;
    let bounds = |dip: &Dip| {
        let from = shape.points[dip.first].offset_bytes;
        (from, shape.end_bytes(dip.last, span_end))
    };
    let (from, to) = bounds(worst);
    let named = || zones.iter().take(ZONES_NAMED);
    let claims: Vec<String> = named()
        .map(|zone| zone.describe(bounds(zone.dip)))
        .collect();
    let more = match zones.len().saturating_sub(ZONES_NAMED) {
        0 => String::new(),
        more => format!("; {more} more"),
    };
    let target = record.targets.get(surface.data.target);
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
    Some(Diagnosis::with_remedy(
        warning_if(is_confirmed),
        format!("{headline}: {}{more}. {consequence}", claims.join("; ")),
        named().flat_map(|zone| zone_evidence(record, &shape, zone.dip)),
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
            again: second_reading(record.curve(), shape, dip),
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
fn zone_evidence(record: &Record, shape: &Shape, dip: &Dip) -> Vec<Evidence> {
    let slowest = smallest_by(dip.first..=dip.last, |i| shape.points[*i].ln_rate);
    let slowest = slowest.unwrap_or(dip.first);
    let mut points = vec![dip.first, slowest];
    points.dedup();
    let points = points.into_iter().map(|i| shape.points[i].index);
    points
        .map(|index| point_evidence(index, record, dip.beside))
        .collect()
}

pub(super) const NOT_ZONED: Rule = Rule {
    code: "not-zoned",
    check: Check::Survey(check_not_zoned),
    says: Meaning::Note,
    #[cfg(test)]
    examples: tests::NOT_ZONED,
};

/// A rotating disk's outer half is faster than its inner half by more than this; noise of an SSD
/// makes less. The inner half is faster where it was never written, or on a busy machine.
const RATIO_MAX: f64 = 1.1;

fn check_not_zoned(record: &Record) -> Option<Diagnosis> {
    let surface = record.surface()?;
    if mechanics(record) != Mechanics::Solid
        || (surface.figures.seeks.is_empty() && reach(record, surface) == Reach::Part)
    {
        return None;
    }
    let shape = Shape::of(record.curve(), Reach::Part)?;
    let rates: Vec<f64> = shape.points.iter().map(|p| p.ln_rate.exp()).collect();
    let (outer, inner) = rates.split_at(rates.len() / 2);
    let (outer, inner) = (median(outer), median(inner));
    if outer > RATIO_MAX * inner || inner > RATIO_MAX * outer {
        return None;
    }
    let rate = surface.figures.rate.as_ref()?;
    let average = "/results/0/figures/rate/average/value";
    let average = evidence_at(average, rate.average.value, rate.max, "B/s");
    let mut evidence = vec![average];
    let mut access = "The system reports no rotation.".to_owned();
    if let Some((random, near)) = medians(surface) {
        access = format!(
            "A random access takes {}, and one to a neighbouring place {}.",
            format_latency(random),
            format_latency(near)
        );
        let path = "/results/0/figures/seeks/random/p50_ns";
        evidence.push(evidence_at(path, random as f64, near as f64, "ns"));
    }
    Some(Diagnosis::new(
        Severity::Note,
        format!(
            "The disk is equally fast everywhere: {} in the first half, {} in the second. {access} \
             It is an SSD, an array or a virtual disk, so a short stroke gains nothing.",
            format_throughput(outer),
            format_throughput(inner)
        ),
        evidence,
    ))
}

fn medians(surface: &SurfaceRecord) -> Option<(u64, u64)> {
    let median = |seek| Some(surface.figures.seeks.get(&seek)?.p50_ns);
    median(SeekPattern::Random).zip(median(SeekPattern::TrackToTrack))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::states;
    use crate::fixture::surveyed::{self, SurveyedDisk, codes, rotating, solid};
    use crate::surface::points_to_confirm;

    pub(super) const RAGGED: Examples =
        Examples::of(|| cells(64 << 20, 0.3).record(1), surveyed::record);
    pub(super) const SLOW_ZONE: Examples =
        Examples::of(|| slow(0.4..0.45, 0.5).record(1), surveyed::record);
    pub(super) const NOT_ZONED: Examples =
        Examples::of(|| SurveyedDisk::solid().record(1), surveyed::record);

    /// Cells of so many bytes lose up to this share of the rate.
    fn cells(bytes: u64, loss: f64) -> SurveyedDisk {
        rotating(|disk| disk.ragged = Some((bytes, loss)))
    }

    fn slow(range: std::ops::Range<f64>, left: f64) -> SurveyedDisk {
        rotating(|disk| disk.slow = vec![(range, left)])
    }

    #[test]
    fn scatter_is_reported_with_its_size_and_its_worst_place() {
        let record = (RAGGED.fires)();
        assert_eq!(check_ragged(&record).unwrap().evidence.len(), 3);
        assert_eq!(codes(&record), ["ragged"]);
    }

    #[test]
    fn cells_of_many_points_are_ragged_too() {
        for seed in 0..10 {
            let record = cells(5_000_000_000, 0.5).record(seed);
            assert!(check_ragged(&record).is_some(), "{seed}");
        }
    }

    #[test]
    fn samples_of_no_time_are_not_judged() {
        let mut run = cells(64 << 20, 0.5).run(1);
        run.1.curve.iter_mut().for_each(|p| p.busy_ns /= 1000);
        assert_eq!(check_ragged(&surveyed::judge(run)), None);
    }

    #[test]
    fn small_unevenness_counts_where_the_samples_are_even_in_themselves() {
        let uneven = || cells(64 << 20, 0.1);
        for (disk, error, severity) in [
            (uneven(), Some(0.003), Some(Severity::Note)),
            (uneven(), Some(0.03), None),
            (uneven(), None, None),
            (rotating(|disk| disk.noise = 0.01), Some(0.001), None),
        ] {
            let mut run = disk.run(1);
            run.1
                .curve
                .iter_mut()
                .for_each(|p| p.standard_error = error);
            let found = check_ragged(&surveyed::judge(run));
            assert_eq!(
                found.map(|finding| finding.severity),
                severity,
                "{error:?} {disk:?}"
            );
        }
    }

    #[test]
    fn zones_noise_and_a_few_slow_places_are_not() {
        let few = (0..5).map(|i| (0.1 + 0.15 * f64::from(i)..0.11 + 0.15 * f64::from(i), 0.5));
        for disk in [
            rotating(|disk| disk.zones = 2),
            rotating(|disk| disk.noise = 0.03),
            rotating(|disk| disk.slow = few.collect()),
            solid(|disk| disk.noise = 0.05),
            rotating(|disk| (disk.points, disk.noise) = (5, 0.3)),
        ] {
            assert_eq!(check_ragged(&disk.record(1)), None, "{disk:?}");
        }
    }

    #[test]
    fn the_stretch_is_reported_with_its_bounds_and_rate() {
        let record = (SLOW_ZONE.fires)();
        let finding = check_slow_zone(&record).unwrap();
        states(&finding.claim, &["from 128 GB to 144 GB", "50 %"]);
        states(
            &finding.remedy,
            &["diskproof curve /dev/sda --span 128000000000-144000000000"],
        );
        assert_eq!(codes(&record), ["slow-zone"]);
    }

    #[test]
    fn stretch_that_was_slow_for_a_while_only_is_silent() {
        let truth = SurveyedDisk::rotating();
        let mut run = truth.run(1);
        // Another program used the disk during these points. Their second reading is fast.
        for point in &mut run.1.curve[80..90] {
            point.bytes_per_second /= 2.0;
            point.busy_ns *= 2;
            point.latency_max_ns *= 2;
        }
        let again = points_to_confirm(&run.1.curve);
        assert!(again.iter().filter(|i| (80..90).contains(*i)).count() == 3 && again.len() == 7);
        run.1
            .curve
            .iter_mut()
            .for_each(|p| p.later_bytes_per_second = None);
        let once = check_slow_zone(&surveyed::judge(run.clone())).unwrap();
        assert_eq!(once.severity, Severity::Note);
        for index in again {
            let point = &mut run.1.curve[index];
            let place = point.offset_bytes as f64 / truth.size_bytes as f64;
            point.later_bytes_per_second = Some(truth.rate_at(place));
        }
        assert_eq!(check_slow_zone(&surveyed::judge(run.clone())), None);
        // The load lasts: it slows the sides, too.
        for point in &mut run.1.curve {
            point.later_bytes_per_second = point.later_bytes_per_second.map(|rate| rate / 2.0);
        }
        assert_eq!(check_slow_zone(&surveyed::judge(run)), None);
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
                let found = check_slow_zone(&disk.record(seed));
                let severity = found.map(|finding| finding.severity);
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
                assert_eq!(check_slow_zone(&disk.record(1)), None, "{disk:?}");
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
            assert_eq!(check_slow_zone(&record).is_none(), waited);
        }
    }

    #[test]
    fn short_pause_of_an_ssd_is_silent_and_a_long_stretch_is_not() {
        for seed in 0..10 {
            let record = solid(|disk| disk.hiccups = 0.02).record(seed);
            assert_eq!(check_slow_zone(&record), None, "{seed}");
        }
        let stale = solid(|disk| disk.slow = vec![(0.2..0.3, 0.5)]);
        assert!(check_slow_zone(&stale.record(1)).is_some());
    }

    #[test]
    fn an_ssd_is_reported_with_both_halves_and_both_access_times() {
        let finding = check_not_zoned(&(NOT_ZONED.fires)()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Note, 2)
        );
    }

    #[test]
    fn without_access_times_the_system_may_tell() {
        let mut run = solid(|disk| disk.accesses = 0).run(1);
        let finding = check_not_zoned(&surveyed::judge(run.clone())).unwrap();
        assert_eq!(finding.evidence.len(), 1);
        run.0.host.hypervisor = Some("kvm".to_owned());
        assert_eq!(check_not_zoned(&surveyed::judge(run)), None);
    }

    #[test]
    fn disk_with_a_faster_second_half_is_not_the_same_everywhere() {
        let mut record = (NOT_ZONED.fires)();
        let half = record.curve().len() / 2;
        record.surface_mut().unwrap().data.curve[half..]
            .iter_mut()
            .for_each(|point| point.bytes_per_second *= 1.3);
        assert_eq!(check_not_zoned(&record), None);
    }

    #[test]
    fn rotating_disks_are_not_however_flat_they_look() {
        for disk in [
            rotating(|disk| disk.cap = Some(40e6)),
            rotating(|disk| disk.span = 0.0..0.01),
            solid(|disk| (disk.inner, disk.zones) = (400e6, 24)),
        ] {
            assert_eq!(check_not_zoned(&disk.record(1)), None, "{disk:?}");
        }
    }
}
