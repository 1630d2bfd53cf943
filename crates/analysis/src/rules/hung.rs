//! `hung`: a target did not answer any more and was timed out. Requests that a run did not wait for
//! are `late`.

use super::evidence::{SURVEY, evidence};
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule};
use diskproof_model::finding::{Evidence, Severity};
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
    let hung = || {
        record
            .measurements
            .iter()
            .enumerate()
            .filter_map(|(index, m)| Some((index, m, m.hang.filter(|hang| !hang.late)?)))
    };
    let surveyed = record
        .surface
        .as_ref()
        .and_then(|surface| Some((surface, surface.hang.filter(|hang| !hang.late)?)));
    let claims = hung().map(|(_, m, hang)| tell(record, m, hang));
    let claims: Vec<String> = surveyed
        .iter()
        .map(|(surface, hang)| tell_survey(record, surface, *hang))
        .chain(claims)
        .collect();
    let between = record.stalled.as_ref().map(|stalled| {
        let (paths, lasted) = (
            record.plan.targets.join(", "),
            format_duration(stalled.lasted_ns),
        );
        format!(
            "{paths} did not answer for {lasted} around {}, between its requests, and timed out",
            stalled.around
        )
    });
    let claims: Vec<String> = claims.into_iter().chain(between).collect();
    if claims.is_empty() {
        return None;
    }
    let of_stall = record.stalled.iter().map(|stalled| Evidence {
        path: "/stalled/lasted_ns".to_owned(),
        observed: stalled.lasted_ns as f64,
        threshold: 0.0,
        unit: "ns".to_owned(),
    });
    let of_survey = surveyed.iter().map(|(_, hang)| Evidence {
        path: "/surface/hang/lasted_ns".to_owned(),
        observed: hang.lasted_ns as f64,
        threshold: 0.0,
        unit: "ns".to_owned(),
    });
    let seen = hung().flat_map(|(index, _, hang)| {
        let lasted = evidence(index, "hang/lasted_ns", hang.lasted_ns as f64, 0.0, "ns");
        [
            lasted,
            evidence(index, "hang/requests", hang.requests as f64, 0.0, "1"),
        ]
    });
    Some(Diagnosis {
        severity: Severity::Failure,
        claim: format!("{}.", claims.join("; ")),
        evidence: of_survey.chain(seen).chain(of_stall).collect(),
        remedy:
            "Look for timeouts and resets in the kernel log (dmesg), and check the path to the \
                 disk: cable and power, or the network and storage system (iscsiadm -m session, \
                 multipath -ll). Measure again when the disk answers; the rates of this run \
                 include the time without an answer."
                .to_owned(),
        reproduce: None,
    })
}

fn tell_survey(record: &Record, surface: &SurfaceRecord, hang: Hang) -> String {
    let path = record
        .targets
        .get(surface.target)
        .map_or("the target", |target| target.path.as_str());
    let (since, lasted) = (
        format_duration(hang.since_ns.saturating_sub(surface.start_ns)),
        format_duration(hang.lasted_ns),
    );
    format!(
        "{path} stopped answering {since} into {SURVEY}, and timed out after {lasted} without an \
         answer"
    )
}

fn tell(record: &Record, m: &MeasurementRecord, hang: Hang) -> String {
    let path = record
        .targets
        .get(m.target)
        .map_or("the target", |target| target.path.as_str());
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
