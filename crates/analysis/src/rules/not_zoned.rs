//! `not-zoned`: the disk is the same everywhere, so nothing is gained by using only its first part.
//!
//! Of random disks (`findings_study`, 1000 of each kind): found on every SSD with noise up to 5 %,
//! on none of 3000 healthy rotating ones.

use super::evidence::evidence_at;
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule};
use crate::mechanics::{Mechanics, mechanics, reach};
use crate::shape::{Reach, Shape, median};
use diskproof_model::finding::Severity;
use diskproof_model::record::Record;
use diskproof_model::surface::{SeekPattern, SurfaceRecord};
use diskproof_model::units::{format_latency, format_throughput};

pub(super) const RULES: &[Rule] = &[Rule {
    code: "not-zoned",
    title: "Speed does not depend on position",
    meaning: "Neither the transfer rate nor the access time depends on the position, as on an SSD, \
              an array or a virtual disk. A short stroke gains nothing.",
    taints: None,
    check: Check::Survey(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
}];

/// A rotating disk's outer half is faster than its inner half by more than this; noise of an SSD
/// makes less. The inner half is faster where it was never written, or on a busy machine.
const RATIO_MAX: f64 = 1.1;

fn check(record: &Record) -> Option<Diagnosis> {
    let surface = record.surface.as_ref()?;
    if mechanics(record) != Mechanics::Solid
        || (surface.seeks.is_empty() && reach(record, surface) == Reach::Part)
    {
        return None;
    }
    let shape = Shape::of(&record.curve, Reach::Part)?;
    let rates: Vec<f64> = shape.points.iter().map(|p| p.ln_rate.exp()).collect();
    let (outer, inner) = rates.split_at(rates.len() / 2);
    let (outer, inner) = (median(outer), median(inner));
    if outer > RATIO_MAX * inner || inner > RATIO_MAX * outer {
        return None;
    }
    let rate = surface.rate.as_ref()?;
    let average = "/surface/rate/average/value";
    let average = evidence_at(average, rate.average.value, rate.max, "B/s");
    let mut evidence = vec![average];
    let mut access = "The system reports no rotation.".to_owned();
    if let Some((random, near)) = medians(surface) {
        access = format!(
            "A random access takes {}, and one to a neighbouring place {}.",
            format_latency(random),
            format_latency(near)
        );
        let path = "/surface/seeks/random/p50_ns";
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
        "Use the whole disk: partitions at the start are not faster than others.",
    ))
}

fn medians(surface: &SurfaceRecord) -> Option<(u64, u64)> {
    let median = |seek| Some(surface.seeks.get(&seek)?.p50_ns);
    median(SeekPattern::Random).zip(median(SeekPattern::TrackToTrack))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::surveyed::{self, SurveyedDisk};

    pub(super) fn fires() -> Record {
        SurveyedDisk::solid().record(1)
    }

    pub(super) fn silent() -> Record {
        SurveyedDisk::rotating().record(1)
    }

    #[test]
    fn an_ssd_is_reported_with_both_halves_and_both_access_times() {
        let finding = check(&fires()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Note, 2)
        );
        assert!(
            finding.claim.contains("MB/s in the first half, 5")
                && finding.claim.contains("A random access takes 9"),
            "{}",
            finding.claim
        );
    }

    #[test]
    fn without_access_times_the_system_may_tell() {
        let finding = check(
            &SurveyedDisk {
                accesses: 0,
                ..SurveyedDisk::solid()
            }
            .record(1),
        )
        .unwrap();
        assert!(
            finding.claim.contains("reports no rotation") && finding.evidence.len() == 1,
            "{finding:?}"
        );
        let mut virtual_disk = SurveyedDisk {
            accesses: 0,
            ..SurveyedDisk::solid()
        }
        .run(1);
        virtual_disk.0.host.hypervisor = Some("kvm".to_owned());
        assert_eq!(check(&surveyed::judge(virtual_disk)), None);
    }

    #[test]
    fn disk_with_a_faster_second_half_is_not_the_same_everywhere() {
        let mut record = fires();
        let half = record.curve.len() / 2;
        for point in &mut record.curve[half..] {
            point.bytes_per_second *= 1.3;
        }
        assert_eq!(check(&record), None);
    }

    #[test]
    fn rotating_disks_are_not_however_flat_they_look() {
        for disk in [
            SurveyedDisk::rotating(),
            SurveyedDisk {
                cap: Some(40e6),
                ..SurveyedDisk::rotating()
            },
            SurveyedDisk {
                span: 0.0..0.01,
                ..SurveyedDisk::rotating()
            },
            SurveyedDisk {
                outer: 550e6,
                inner: 400e6,
                zones: 24,
                ..SurveyedDisk::solid()
            },
        ] {
            assert_eq!(check(&disk.record(1)), None, "{disk:?}");
        }
    }
}
