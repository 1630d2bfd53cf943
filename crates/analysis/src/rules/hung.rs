//! `hung`: a target did not answer any more and was timed out. Requests that a run did not wait for
//! are `late`.

use super::evidence::{SURVEY, evidence, evidence_at, target_path};
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule};
use diskproof_model::finding::Severity;
use diskproof_model::measurement::Hang;
use diskproof_model::record::{MeasurementRecord, Record};
use diskproof_model::surface::SurfaceRecord;
use diskproof_model::units::{counted, format_duration};

pub(super) const RULES: &[Rule] = &[Rule {
    code: "hung",
    title: "The disk stopped answering",
    meaning: "The disk, or the path to it, stopped answering. Earlier figures are valid; rates \
              include the time without an answer.",
    taints: None,
    check: Check::Run(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
}];

fn check(record: &Record) -> Option<Diagnosis> {
    let (mut claims, mut seen) = (Vec::new(), Vec::new());
    let hang_of = |hang: Option<Hang>| hang.filter(|hang| !hang.late);
    if let Some(surface) = &record.surface
        && let Some(hang) = hang_of(surface.hang)
    {
        claims.push(tell_survey(record, surface, hang));
        let lasted_ns = hang.lasted_ns as f64;
        seen.push(evidence_at("/surface/hang/lasted_ns", lasted_ns, 0.0, "ns"));
    }
    for (index, m) in record.measurements.iter().enumerate() {
        if let Some(hang) = hang_of(m.hang) {
            claims.push(tell(record, m, hang));
            let (lasted_ns, requests) = (hang.lasted_ns as f64, hang.requests as f64);
            seen.push(evidence(index, "hang/lasted_ns", lasted_ns, 0.0, "ns"));
            seen.push(evidence(index, "hang/requests", requests, 0.0, "1"));
        }
    }
    if let Some(stalled) = &record.stalled {
        claims.push(format!(
            "{} did not answer for {} around {}, between its requests, and timed out",
            record.plan.targets.join(", "),
            format_duration(stalled.lasted_ns),
            stalled.around
        ));
        let lasted_ns = stalled.lasted_ns as f64;
        seen.push(evidence_at("/stalled/lasted_ns", lasted_ns, 0.0, "ns"));
    }
    claims.first()?;
    Some(Diagnosis::new(
        Severity::Failure,
        format!("{}.", claims.join("; ")),
        seen,
        "Look for timeouts and resets in the kernel log (dmesg), and check the path to the \
         disk: cable and power, or the network and storage system (iscsiadm -m session, \
         multipath -ll). Measure again when the disk answers; the rates of this run \
         include the time without an answer.",
    ))
}

fn tell_survey(record: &Record, surface: &SurfaceRecord, hang: Hang) -> String {
    format!(
        "{} stopped answering {} into {SURVEY}, and timed out after {} without an answer",
        target_path(record, surface.target),
        format_duration(hang.since_ns.saturating_sub(surface.start_ns)),
        format_duration(hang.lasted_ns),
    )
}

fn tell(record: &Record, m: &MeasurementRecord, hang: Hang) -> String {
    let path = target_path(record, m.target);
    let (name, lasted) = (&m.workload.name, format_duration(hang.lasted_ns));
    let since = match hang.since_ns.checked_sub(m.start_ns) {
        Some(into_ns) if into_ns >= m.wall_ns => format!("while the data of {name} was read back"),
        Some(into_ns) => format!("{} into {name}", format_duration(into_ns)),
        None => format!("during the warm-up of {name}"),
    };
    let requests = counted(hang.requests, "request");
    format!(
        "{path} stopped answering {since}: {requests} had no answer after {lasted}, when the run \
         stopped waiting"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::fixture::surveyed::{self, SurveyedDisk};
    use diskproof_model::record::Stalled;

    pub(super) fn fires() -> Record {
        fixture::faulty("random-read-d32", |m| {
            m.hang = Some(Hang {
                since_ns: m.start_ns + 2_000_000_000,
                lasted_ns: 47_000_000_000,
                requests: 32,
                late: false,
            });
        })
    }

    pub(super) fn silent() -> Record {
        fixture::record()
    }

    #[test]
    fn a_target_that_hung_is_reported_with_its_time() {
        let finding = check(&fires()).unwrap();
        assert_eq!(finding.severity, Severity::Failure);
        assert!(
            finding
                .claim
                .contains("2.0 s into random-read-d32: 32 requests had no answer after 47 s"),
            "{}",
            finding.claim
        );
        assert!(finding.remedy.contains("dmesg"));
    }

    #[test]
    fn a_hang_of_the_warm_up_is_none_of_the_measured_time() {
        let record = fixture::faulty("random-read-d32", |m| {
            m.start_ns = 1_000_000_000;
            m.hang = Some(Hang {
                since_ns: m.start_ns - 1,
                lasted_ns: 47_000_000_000,
                requests: 1,
                late: false,
            });
        });
        let claim = check(&record).unwrap().claim;
        assert!(
            claim
                .contains("stopped answering during the warm-up of random-read-d32: 1 request had"),
            "{claim}"
        );
    }

    #[test]
    fn a_survey_that_hung_is_reported_and_so_is_what_hung_after_the_measured_time() {
        let mut run = SurveyedDisk::rotating().run(1);
        run.1.hang = Some(Hang {
            since_ns: run.1.start_ns + 3_000_000_000,
            lasted_ns: 225_000_000_000,
            requests: 1,
            late: false,
        });
        let finding = check(&surveyed::judge(run)).unwrap();
        assert!(
            finding
                .claim
                .contains("stopped answering 3.0 s into the survey")
                && finding.claim.contains("3 min 45 s"),
            "{}",
            finding.claim
        );
        assert_eq!(finding.evidence[0].path, "/surface/hang/lasted_ns");
        let later = fixture::faulty("random-write-d32", |m| {
            m.hang = Some(Hang {
                since_ns: m.start_ns + m.wall_ns + 5,
                lasted_ns: 45_000_000_000,
                requests: 1,
                late: false,
            });
        });
        let claim = check(&later).unwrap().claim;
        assert!(
            claim.contains(
                "stopped answering while the data of random-write-d32 was read back: 1 request"
            ),
            "{claim}"
        );
    }

    #[test]
    fn a_hang_between_the_requests_is_one_too() {
        let mut run = fixture::run();
        run.0.stalled = Some(Stalled {
            around: "random-read-d32".to_owned(),
            lasted_ns: 45_000_000_000,
        });
        let finding = check(&fixture::judge(run)).unwrap();
        assert!(
            finding.claim.contains(
                "/data did not answer for 45 s around random-read-d32, between its requests"
            ),
            "{}",
            finding.claim
        );
        assert_eq!(finding.evidence[0].path, "/stalled/lasted_ns");
    }

    #[test]
    fn what_answered_late_did_not_hang() {
        assert_eq!(check(&fixture::record()), None);
    }
}
