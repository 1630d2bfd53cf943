//! `ragged`: points of the curve scatter around what their neighbours suggest; zone boundaries,
//! isolated slow spots and noise of a few percent do not count.
//!
//! Of random disks (`findings_study`, 1000 of each kind) one of 3000 healthy ones with noise up to
//! 3 % is ragged, no SSD with up to 5 %; where cells lose up to 10, 15, 20, 30 and 50 % of their
//! rate it alone is found on 90, 97, 98, 99 and 99 %; where they are wider than the points lie
//! apart, on 67 %. A loss of up to 10 % scatters by 3 %: it counts because the samples are more
//! even than that in themselves. Records without the samples' own error need 4 %.

use super::rule::*;
use crate::mechanics::{Mechanics, mechanics, reach};
use crate::shape::{Shape, Stray};

pub(super) const RULE: Rule = Rule {
    code: "ragged",
    title: "Throughput varies between neighbouring places",
    summary: "Neighbouring places of the disk differ in rate by far more than a healthy surface \
              and a quiet machine allow.",
    remedy: Remedy::ByCase,
    check: Check::Survey(check),
    says: Meaning::Disk,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Standard deviation that no healthy rotating disk on a quiet machine reaches, as a share of the
/// rate.
const SCATTER_ROTATING: f64 = 0.04;

/// The same where nothing turns: there a point's rate is a matter of the moment, not of the place.
const SCATTER_SOLID: f64 = 0.075;

/// Noise that counts as healthy on a rotating disk; few points may show more by chance.
const HEALTHY_ROTATING: f64 = 0.03;
/// The same where nothing turns.
const HEALTHY_SOLID: f64 = 0.05;

/// The least standard deviation that counts on a rotating disk whose samples are so even in
/// themselves that neither machine nor moment explains a scatter between them. Two percent are more
/// than timing and the steps of zones make, and less than what cells make that lose up to a tenth.
const SCATTER_EVEN: f64 = 0.02;
/// The noise that counts as healthy on such a disk; few points may show more by chance.
const HEALTHY_EVEN: f64 = 0.012;

/// A scatter of this many times the samples' own error is explained by it: the parts of a sample
/// that a pause hits are not independent.
const SAMPLE_ERRORS_MAX: f64 = 2.0;

/// By how many of its own standard deviations the scatter must exceed the healthy one.
const SURE_DEVIATIONS: f64 = 3.0;

/// The standard deviation of a scatter from `n` points is about 1/√(n/2) of it: an upper quartile
/// of what lies outside is less efficient than a variance.
const EFFICIENCY: f64 = 0.5;

/// The claim counts the points that are further off than this, as a share of the rate: a reader
/// finds such points in the curve.
const FAR_SHARE: f64 = 0.1;

/// With more slow places than this, the whole surface is uneven: none of them is an exception.
const DIPS_MAX: usize = 7;

/// Least rise from one stretch to the next that counts, as a share.
const RISE_SHARE_MIN: f64 = 0.04;

/// From so many rises on, the surface goes up and down instead of having slow places, if there are
/// also [`RISING_STEPS_MIN`] of both together. A healthy curve has none.
const RISES_MIN: usize = 2;
/// The least number of rises and slow places together that shows an uneven surface. One slow place
/// ends with a rise, so few of both are still places.
const RISING_STEPS_MIN: usize = 5;

/// Points named as evidence, the most distant ones.
const NAMED_MAX: usize = 3;

/// Returns `true` if this rule finds something.
pub(super) fn is_curve_ragged(record: &Record) -> bool {
    check(record).is_some()
}

fn check(record: &Record) -> Option<Diagnosis> {
    let surface = record.surface()?;
    let shape = Shape::from_curve(record.curve(), reach(record, surface))?;
    let mechanics = mechanics(record);
    if !is_ragged(&shape, mechanics) {
        return None;
    }
    let strays = shape.strays();
    let claim = claim(record, &shape, &strays)?;
    let observations = strays
        .iter()
        .take(NAMED_MAX)
        .map(|stray| point_evidence(shape.points[stray.point].index, record, stray.expected));
    let is_serious = shape.scatter >= SCATTER_ROTATING || is_uneven(&shape);
    let remedy = match mechanics {
        Mechanics::Solid => REMEDY_SOLID,
        Mechanics::Rotating | Mechanics::Unknown if is_serious => REMEDY,
        Mechanics::Rotating | Mechanics::Unknown => REMEDY_SLIGHT,
    };
    Some(Diagnosis::new(warning_if(is_serious), claim, observations).with_remedy(remedy))
}

/// The scatter, and the most distant point, which `strays` begin with; `None` without one.
fn claim(record: &Record, shape: &Shape, strays: &[Stray]) -> Option<String> {
    let worst = strays.first()?;
    let worst_point = &record.curve()[shape.points[worst.point].index];
    let far = strays
        .iter()
        .filter(|stray| stray.distance() >= FAR_SHARE)
        .count();
    Some(format!(
        "The curve is ragged: the rate changes from one point to the next by {} (standard \
         deviation), while a healthy surface is smooth; {far} of {} {} more than {} away from the \
         level of their neighbours. The most distant, at {}, has {} among neighbours of {}.",
        format_percent(shape.scatter),
        counted(shape.points.len() as u64, "point"),
        if far == 1 { "lies" } else { "lie" },
        format_percent(FAR_SHARE),
        gigabytes(worst_point.offset_bytes),
        format_throughput(worst_point.bytes_per_second),
        format_throughput(worst.expected),
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

/// True if the points scatter by more than a healthy curve of as many points does by chance.
pub(super) fn is_ragged(shape: &Shape, mechanics: Mechanics) -> bool {
    let (scatter_min, healthy) = match (mechanics, shape.own_error) {
        (Mechanics::Solid, _) => (SCATTER_SOLID, HEALTHY_SOLID),
        (_, None) => (SCATTER_ROTATING, HEALTHY_ROTATING),
        (_, Some(error)) => (
            (SAMPLE_ERRORS_MAX * error).clamp(SCATTER_EVEN, SCATTER_ROTATING),
            (SAMPLE_ERRORS_MAX * error).clamp(HEALTHY_EVEN, HEALTHY_ROTATING),
        ),
    };
    let by_chance =
        healthy * (1.0 + SURE_DEVIATIONS / (EFFICIENCY * shape.points.len() as f64).sqrt());
    shape.scatter >= by_chance.max(scatter_min)
        || (mechanics != Mechanics::Solid && is_uneven(shape))
}

/// True if the unevenness goes in stretches of many points each, up and down over the whole
/// surface: then no few of them are the exception.
pub(super) fn is_uneven(shape: &Shape) -> bool {
    let rises = shape.rises(RISE_SHARE_MIN);
    shape.dips.len() > DIPS_MAX
        || (rises >= RISES_MIN && rises + shape.dips.len() >= RISING_STEPS_MIN)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::fixture::surveyed::{self, SurveyedDisk, codes, rotating, solid};

    pub(super) const EXAMPLES: Examples =
        Examples::new(|| cells(64 << 20, 0.3).record(1), surveyed::record);

    /// Cells of so many bytes lose up to this share of the rate.
    pub(in crate::rules) fn cells(bytes: u64, loss: f64) -> SurveyedDisk {
        rotating(|disk| disk.ragged = Some((bytes, loss)))
    }

    pub(in crate::rules) fn slow(range: std::ops::Range<f64>, left: f64) -> SurveyedDisk {
        rotating(|disk| disk.slow = vec![(range, left)])
    }

    #[test]
    fn scatter_is_reported_with_its_size_and_its_worst_place() {
        let record = (EXAMPLES.fires)();
        assert_eq!(check(&record).unwrap().evidence.len(), 3);
        assert_eq!(codes(&record), ["ragged"]);
    }

    #[test]
    fn cells_of_many_points_are_ragged_too() {
        for seed in 0..10 {
            let record = cells(5_000_000_000, 0.5).record(seed);
            assert!(check(&record).is_some(), "{seed}");
        }
    }

    #[test]
    fn samples_of_no_time_are_not_judged() {
        let mut run = cells(64 << 20, 0.5).run(1);
        run.surface.curve.iter_mut().for_each(|p| p.busy_ns /= 1000);
        assert_eq!(check(&surveyed::judge(run)), None);
    }

    fn slightly_uneven() -> SurveyedDisk {
        cells(64 << 20, 0.1)
    }

    #[test]
    fn small_unevenness_counts_where_the_samples_are_even_in_themselves() {
        for (disk, error, severity) in [
            (slightly_uneven(), Some(0.003), Some(Severity::Note)),
            (slightly_uneven(), Some(0.03), None),
            (slightly_uneven(), None, None),
            (rotating(|disk| disk.noise = 0.01), Some(0.001), None),
        ] {
            let mut run = disk.run(1);
            run.surface
                .curve
                .iter_mut()
                .for_each(|p| p.standard_error = error);
            let diagnosis = check(&surveyed::judge(run));
            assert_eq!(
                diagnosis.map(|finding| finding.severity),
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
            assert_eq!(check(&disk.record(1)), None, "{disk:?}");
        }
    }
}
