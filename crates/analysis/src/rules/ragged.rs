//! `ragged`: points scatter, each against what its neighbours suggest. A zone's step is none, nor are a few slow places, and noise of a few percent is no
//! finding.
//!
//! Of random disks (`odds`, 1000 of each kind): one of 3000 healthy ones with noise up to 3 % has it, no SSD with up to 5 %; where cells lose up to 15, 20, 30 and 50 %
//! of their rate it alone is found on 81, 94, 99 and 96 %; where they are wider than the points lie apart, on 83 %. Losses up to 10 % are no more than noise
//! of 3 % and mostly not found.

use super::{Rule, gigabytes, percent, point_evidence};
use crate::mechanics::{Mechanics, mechanics, reach};
use crate::shape::Shape;
use diskproof_model::finding::{Finding, Severity};
use diskproof_model::record::Record;
use diskproof_model::units::format_throughput;

pub(super) const RULE: Rule = Rule {
    code: "ragged",
    meaning: "Neighbouring places of the disk differ in rate by far more than a healthy surface, or a quiet machine, lets them.",
    check,
};

/// Standard deviation that no healthy rotating disk on a quiet machine reaches, as a share of the rate.
const SCATTER_ROTATING: f64 = 0.04;
/// The same where nothing turns: there a point's rate is a matter of the moment, not of the place.
const SCATTER_SOLID: f64 = 0.075;
/// Noise that counts as healthy; few points may show more by chance.
const HEALTHY: (f64, f64) = (0.03, 0.05);
/// By how many of its own standard deviations the scatter must exceed the healthy one.
const SURENESS: f64 = 3.0;
/// The standard deviation of a scatter from `n` points is about 1/√(n/2) of it: an upper quartile of what lies outside is less efficient than a variance.
const EFFICIENCY: f64 = 0.5;
/// Points further off than this, in percent of the rate, are counted.
const STRAY: f64 = 0.1;
/// So many slow places are no places but the way of the whole surface.
const DIPS_MAX: usize = 7;
/// Least rise from one stretch to the next that counts, as a share.
const RISE: f64 = 0.04;
/// So many rises beside the slow places, and so many of both together, are no places either.
const RISES_MIN: usize = 2;
const UPS_MIN: usize = 5;
/// Points named as evidence.
const NAMED: usize = 3;

fn check(record: &Record) -> Option<Finding> {
    let surface = record.surface.as_ref()?;
    let shape = Shape::of(&record.curve, reach(record, surface))?;
    let solid = mechanics(record) == Mechanics::Solid;
    if !is_ragged(&shape, solid) {
        return None;
    }
    let strays = shape.strays();
    let far = strays.iter().filter(|s| s.distance() >= STRAY).count();
    let worst = strays.first()?;
    let at = |index: usize| &record.curve[shape.points[index].index];
    Some(Finding {
        code: RULE.code.to_owned(),
        severity: Severity::Warning,
        claim: format!(
            "The curve is ragged: from one point to the next the rate jumps by {} (standard deviation) where a healthy surface is smooth; {far} of {} points \
             lie more than {} beside what their neighbours suggest. The furthest, at {}, has {} among neighbours of {}.",
            percent(shape.scatter),
            shape.points.len(),
            percent(STRAY),
            gigabytes(at(worst.point).offset_bytes),
            format_throughput(at(worst.point).bytes_per_second),
            format_throughput(worst.expected),
        ),
        evidence: strays.iter().take(NAMED).map(|s| point_evidence(shape.points[s.point].index, record, s.expected)).collect(),
        remedy: if solid { REMEDY_SOLID } else { REMEDY }.to_owned(),
        reproduce: None,
    })
}

const REMEDY: &str = "Measure again on a quiet machine. The same places slow again: worn or reallocated sectors, look at smartctl -a and run curve --scan. Others \
                      each time: vibration, other load, cable, port or controller.";
const REMEDY_SOLID: &str = "Measure again on a quiet machine, and longer: nothing turns here, so it is a matter of the moment (other load, a shared link or host, \
                            heat, the disk's own housekeeping), not of the place.";

/// Whether the points scatter by more than a healthy curve of as many points does by chance.
pub(super) fn is_ragged(shape: &Shape, solid: bool) -> bool {
    let (least, healthy) = if solid { (SCATTER_SOLID, HEALTHY.1) } else { (SCATTER_ROTATING, HEALTHY.0) };
    let by_chance = healthy * (1.0 + SURENESS / (EFFICIENCY * shape.points.len() as f64).sqrt());
    shape.scatter >= by_chance.max(least) || (!solid && is_uneven(shape))
}

/// Whether the unevenness goes in stretches of many points each, up and down over the whole surface: then no few of them are the exception.
pub(super) fn is_uneven(shape: &Shape) -> bool {
    let rises = shape.rises(RISE);
    shape.dips.len() > DIPS_MAX || (rises >= RISES_MIN && rises + shape.dips.len() >= UPS_MIN)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::surveyed::{Disk, codes};

    pub(in crate::rules) fn spoilt() -> Record {
        Disk { ragged: Some((64 << 20, 0.3)), ..Disk::rotating() }.record(1)
    }

    #[test]
    fn scatter_is_told_with_its_size_and_its_worst_place() {
        let record = spoilt();
        let finding = check(&record).unwrap();
        assert!(finding.claim.starts_with("The curve is ragged: from one point to the next the rate jumps by 1"), "{}", finding.claim);
        assert_eq!((finding.evidence.len(), codes(&record)), (3, vec!["ragged"]));
    }

    #[test]
    fn cells_of_many_points_are_ragged_too() {
        for seed in 0..10 {
            let record = Disk { ragged: Some((5_000_000_000, 0.5)), ..Disk::rotating() }.record(seed);
            assert!(check(&record).is_some(), "{seed}");
        }
    }

    #[test]
    fn zones_noise_and_a_few_slow_places_are_not() {
        let slow = (0..5).map(|i| (0.1 + 0.15 * f64::from(i)..0.11 + 0.15 * f64::from(i), 0.5)).collect();
        for disk in [
            Disk::rotating(),
            Disk { zones: 2, ..Disk::rotating() },
            Disk { noise: 0.03, ..Disk::rotating() },
            Disk { slow, ..Disk::rotating() },
            Disk { noise: 0.05, ..Disk::solid() },
            Disk { points: 5, noise: 0.3, ..Disk::rotating() },
        ] {
            assert_eq!(check(&disk.record(1)), None, "{disk:?}");
        }
    }
}
