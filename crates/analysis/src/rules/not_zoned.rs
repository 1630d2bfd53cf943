//! `not-zoned`: the disk is the same everywhere, so nothing is gained by using only its first part.
//!
//! Of random disks (`findings_study`, 1000 of each kind) it is found on every SSD with noise up to
//! 5 %, on none of 3000 healthy rotating ones.

use super::rule::*;
use crate::mechanics::{Mechanics, mechanics, reach};
use crate::shape::{Reach, Shape, median};

pub(super) const RULE: Rule = Rule {
    code: "not-zoned",
    title: "Speed does not depend on position",
    summary: "Neither the transfer rate nor the access time depends on the position, as on an SSD, \
              an array or a virtual disk. A short stroke gains nothing.",
    remedy: Remedy::Always(
        "Use the whole disk: partitions at the start are not faster than others.",
    ),
    check: Check::Survey(check),
    says: Meaning::Note,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// A rotating disk's outer half is faster than its inner half by more than this; the noise of an
/// SSD makes less (`findings_study`, above). The inner half is faster where it was never written,
/// or on a busy machine.
const HALVES_RATIO_MAX: f64 = 1.1;

/// The rates of a disk that is equally fast everywhere, in bytes per second.
struct EqualHalves {
    first_half: f64,
    second_half: f64,
}

/// The median times of accesses over the whole surface and to a neighbouring place.
#[derive(Clone, Copy)]
struct AccessTimes {
    random_ns: u64,
    near_ns: u64,
}

fn check(record: &Record) -> Option<Diagnosis> {
    let surface = record.surface()?;
    if !may_judge(record, surface) {
        return None;
    }
    let halves = equal_halves(record)?;
    let accesses = access_times(surface);
    let rate = surface.figures.rate.as_ref()?;
    let path = first_result_path("figures/rate/average/value");
    let mut observations = vec![evidence_at(path, rate.average.value, rate.max, "B/s")];
    if let Some(AccessTimes { random_ns, near_ns }) = accesses {
        let path = first_result_path("figures/seeks/random/p50_ns");
        observations.push(evidence_at(path, random_ns as f64, near_ns as f64, "ns"));
    }
    let claim = format!(
        "The disk is equally fast everywhere: {} in the first half, {} in the second. {} It is an \
         SSD, an array or a virtual disk, so a short stroke gains nothing.",
        format_throughput(halves.first_half),
        format_throughput(halves.second_half),
        access_sentence(accesses)
    );
    Some(Diagnosis::new(Severity::Note, claim, observations))
}

/// True if nothing turns, and either the curve covers the whole surface or accesses prove the rest.
fn may_judge(record: &Record, surface: &SurfaceRecord) -> bool {
    let has_accesses = !surface.figures.seeks.is_empty();
    mechanics(record) == Mechanics::Solid
        && (has_accesses || reach(record, surface) == Reach::Whole)
}

/// The rates of both halves of the curve; `None` where they differ, or are too few points.
fn equal_halves(record: &Record) -> Option<EqualHalves> {
    let shape = Shape::from_curve(record.curve(), Reach::Part)?;
    let mut rates: Vec<f64> = Vec::new();
    for point in &shape.points {
        rates.push(point.ln_rate.exp());
    }
    let (first_half, second_half) = rates.split_at(rates.len() / 2);
    let halves = EqualHalves {
        first_half: median(first_half),
        second_half: median(second_half),
    };
    let is_faster_first = halves.first_half > HALVES_RATIO_MAX * halves.second_half;
    let is_faster_second = halves.second_half > HALVES_RATIO_MAX * halves.first_half;
    if is_faster_first || is_faster_second {
        return None;
    }
    Some(halves)
}

/// The access times of the survey; `None` without accesses.
fn access_times(surface: &SurfaceRecord) -> Option<AccessTimes> {
    Some(AccessTimes {
        random_ns: median_access_ns(surface, SeekPattern::Random)?,
        near_ns: median_access_ns(surface, SeekPattern::TrackToTrack)?,
    })
}

fn median_access_ns(surface: &SurfaceRecord, pattern: SeekPattern) -> Option<u64> {
    Some(surface.figures.seeks.get(&pattern)?.p50_ns)
}

fn access_sentence(accesses: Option<AccessTimes>) -> String {
    match accesses {
        Some(AccessTimes { random_ns, near_ns }) => format!(
            "A random access takes {}, and one to a neighbouring place {}.",
            format_latency(random_ns),
            format_latency(near_ns)
        ),
        None => "The system reports no rotation.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::surveyed::{self, SurveyedDisk, rotating, solid};

    pub(super) const EXAMPLES: Examples =
        Examples::new(|| SurveyedDisk::solid().record(1), surveyed::record);

    #[test]
    fn an_ssd_is_reported_with_both_halves_and_both_access_times() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Note, 2)
        );
    }

    #[test]
    fn without_access_times_the_system_may_tell() {
        let mut run = solid(|disk| disk.accesses = 0).run(1);
        let finding = check(&surveyed::judge(run.clone())).unwrap();
        assert_eq!(finding.evidence.len(), 1);
        run.facts.host.hypervisor = Some("kvm".to_owned());
        assert_eq!(check(&surveyed::judge(run)), None);
    }

    #[test]
    fn disk_with_a_faster_second_half_is_not_the_same_everywhere() {
        let mut record = (EXAMPLES.fires)();
        let half = record.curve().len() / 2;
        record.surface_mut().unwrap().data.curve[half..]
            .iter_mut()
            .for_each(|point| point.bytes_per_second *= 1.3);
        assert_eq!(check(&record), None);
    }

    #[test]
    fn rotating_disks_are_not_however_flat_they_look() {
        for disk in [
            rotating(|disk| disk.cap = Some(40e6)),
            rotating(|disk| disk.span = 0.0..0.01),
            solid(|disk| (disk.inner, disk.zones) = (400e6, 24)),
        ] {
            assert_eq!(check(&disk.record(1)), None, "{disk:?}");
        }
    }
}
