//! `starved`: the machine was so busy that this program had to wait for a processor when the disk
//! answered. Its own waiting is in the figures then: in latencies, most of all in the high
//! percentiles, and on a survey as slow and, where the disk read ahead meanwhile, as fast places.

use super::cpu_limited;
use super::evidence::{Measured, evidence, evidence_at, real, scope};
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule};
use crate::estimate::largest_by;
use diskproof_model::finding::Severity;
use diskproof_model::record::{MeasurementRecord, Record};
use diskproof_model::surface::SurfaceRecord;
use diskproof_model::units::{counted, format_percent};

pub(super) const RULES: &[Rule] = &[Rule {
    code: "starved",
    title: "diskproof waited for a processor",
    meaning: "The machine had no free processor for diskproof when the disk answered. Latencies \
              and surveys include that waiting time.",
    taints: None,
    check: Check::Run(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
}];

/// Share of the survey's time from which on it shows: the queue of eight requests hides less,
/// single accesses become longer by it.
const SHARE_MIN: f64 = 0.05;
/// Shorter surveys are over within a few turns of the scheduler.
const WALL_NS_MIN: u64 = 1_000_000_000;

/// Whether the survey waited for processors so long that it shows.
pub(super) fn is_starved(surface: &SurfaceRecord) -> bool {
    surface.starved_share >= SHARE_MIN && surface.wall_ns >= WALL_NS_MIN
}

/// Share of a workload's time from which on it may show. By threads of pread the mean latency is
/// longer by just this share, by a queue in one thread by less; the high percentiles by much more
/// (3.5 % made a p99.9 of 14.0 ms into 14.5 ms, more work on the machine 8.9 ms into 24.4 ms).
const WORKLOAD_SHARE_MIN: f64 = 0.02;
/// Mean wait that is more than waking up: an idle processor, or one that this program has
/// precedence on, was had within 1 to 20 µs, one shared with compilers after 30 to 75 µs. A fast
/// disk's many short waits add up to a large share too.
const WAIT_NS_MIN: f64 = 25_000.0;

/// Least mean wait, as a share of the mean latency, that can change a figure: behind a queue of
/// 5 ms the disk has the next requests already, so that waits of 20 µs change neither the rate nor,
/// by more than their own length, a latency.
const LATENCY_SHARE_MIN: f64 = 0.01;

/// Whether the workers were kept waiting for processors, by others or by each other.
pub(super) fn is_kept_waiting(m: &MeasurementRecord) -> bool {
    let latencies = m.headline_ops().into_iter().map(|(_, op)| op.latency.mean);
    let latency_ns = latencies.filter(|ns| *ns > 0.0).fold(f64::MAX, f64::min);
    m.starved.share >= WORKLOAD_SHARE_MIN
        && m.starved.mean_wait_ns >= WAIT_NS_MIN
        && (latency_ns == f64::MAX || m.starved.mean_wait_ns >= LATENCY_SHARE_MIN * latency_ns)
}

/// Whether the workers waited for processors so long that it shows. Where the program itself used
/// all of them up, its threads wait for each other: `cpu-limited` says that.
pub(super) fn is_late(record: &Record, m: &MeasurementRecord) -> bool {
    is_kept_waiting(m) && m.wall_ns >= WALL_NS_MIN && !cpu_limited::is_cpu_limited(record, m)
}

fn check(record: &Record) -> Option<Diagnosis> {
    let surface = record.surface.as_ref().filter(|s| is_starved(s));
    let late: Vec<Measured> = real(record).filter(|(_, m)| is_late(record, m)).collect();
    let cpus = record.host.cpus;
    // A lower load explains nothing.
    let load = record
        .host
        .load_average
        .as_ref()
        .filter(|load| load.parse().is_ok_and(|load: f64| load >= f64::from(cpus)));
    let load = load.map_or(String::new(), |load| {
        format!(" (load {load} on {})", counted(u64::from(cpus), "CPU"))
    });
    let (mut claims, mut proofs) = (Vec::new(), Vec::new());
    if let Some((_, worst)) = largest_by(&late, |(_, m)| m.starved.share) {
        claims.push(format!(
            "In {} a thread of diskproof waited for a processor for up to {} of the time. This \
             makes latencies longer, high percentiles in particular.",
            scope(record, late.iter().map(|(index, _)| *index)),
            format_percent(worst.starved.share)
        ));
        proofs.extend(late.iter().map(|(index, m)| {
            let share = m.starved.share;
            evidence(
                *index,
                "starved/share",
                share,
                WORKLOAD_SHARE_MIN,
                "of the time",
            )
        }));
    }
    if let Some(surface) = surface {
        claims.push(format!(
            "For {} of the survey diskproof waited for a processor. Points measured at those times \
             are ignored, and access times are longer.",
            format_percent(surface.starved_share)
        ));
        let share = surface.starved_share;
        proofs.push(evidence_at(
            "/surface/starved_share",
            share,
            SHARE_MIN,
            "of the time",
        ));
    }
    (!proofs.is_empty()).then(|| {
        Diagnosis::new(
            Severity::Warning,
            format!(
                "The machine was too busy for accurate timing{load}. {}",
                claims.join(" ")
            ),
            proofs,
            "Measure when the machine is quieter, or raise the program's priority: chrt -f 10 \
             diskproof … (as root).",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::fixture::surveyed::{self, SurveyedDisk, codes};
    use diskproof_model::measurement::Starvation;

    pub(super) fn fires() -> Record {
        let mut run = SurveyedDisk::rotating().run(1);
        run.1.starved_ns = run.1.wall_ns / 8;
        surveyed::judge(run)
    }

    pub(super) fn silent() -> Record {
        SurveyedDisk::rotating().record(1)
    }

    #[test]
    fn waiting_for_a_processor_is_reported_with_its_share() {
        let finding = check(&fires()).unwrap();
        assert!(
            finding.claim.contains("For 12 % of the survey")
                || finding.claim.contains("For 13 % of the survey"),
            "{}",
            finding.claim
        );
        assert_eq!(codes(&fires()), ["starved"]);
        assert_eq!(check(&SurveyedDisk::rotating().record(1)), None);
    }

    #[test]
    fn a_workload_that_waited_for_processors_has_its_latencies_doubted() {
        let late = |share: f64, mean_wait_ns: f64, system_share: u64| {
            fixture::faulty("random-read-d32", |m| {
                m.starved = Starvation {
                    share,
                    mean_wait_ns,
                };
                m.cpu.system_ns = fixture::WALL_NS * system_share / 100;
            })
        };
        let finding = check(&late(0.07, 60_000.0, 10)).unwrap();
        assert!(
            finding
                .claim
                .contains("waited for a processor for up to 7 % of the time"),
            "{}",
            finding.claim
        );
        assert!(
            finding.evidence[0].path.ends_with("/starved/share"),
            "{finding:?}"
        );
        assert_eq!(check(&late(0.01, 60_000.0, 10)), None);
        // The requests take 3.2 ms: the queue hides such waits, however many they are.
        assert_eq!(check(&late(0.2, 28_000.0, 10)), None);
        // Waking up, often.
        assert_eq!(check(&late(0.2, 8_000.0, 10)), None);
        // Its own doing.
        assert_eq!(check(&late(0.07, 60_000.0, 95)), None);
    }

    #[test]
    fn effects_of_waiting_on_points_and_accesses_are_not_reported_as_the_disks() {
        let mut run = SurveyedDisk {
            accesses: 300,
            ..SurveyedDisk::rotating()
        }
        .run(1);
        run.0.plan.data_sheet = Some(diskproof_model::surface::DataSheet {
            rpm: Some(7200),
            seek_ns: Some(10_600_000),
            ..diskproof_model::surface::DataSheet::default()
        });
        for point in run.1.curve.iter_mut().step_by(7) {
            let late_ns = point.busy_ns / 2;
            (point.busy_ns, point.late_ns, point.bytes_per_second) = (
                point.busy_ns + late_ns,
                late_ns,
                point.bytes_per_second / 1.5,
            );
        }
        run.1
            .access
            .iter_mut()
            .for_each(|access| access.latency_ns += 6_000_000);
        run.1.starved_ns = run.1.wall_ns / 5;
        assert_eq!(codes(&surveyed::judge(run.clone())), ["starved"]);
        run.1.starved_ns = 0;
        run.1.curve.iter_mut().for_each(|point| point.late_ns = 0);
        assert!(codes(&surveyed::judge(run)).contains(&"access-time-off"));
    }
}
