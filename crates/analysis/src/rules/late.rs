//! `late`: a run ended on time while requests were still in flight. Whether the target hangs is
//! unknown then.

use super::evidence::{SURVEY, evidence_at, part_path};
use super::rate_limited::allowed_by_group;
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule};
use diskproof_model::finding::{Evidence, Severity};
use diskproof_model::record::Record;
use diskproof_model::surface::SeekPattern;
use diskproof_model::units::{counted, format_duration};

pub(super) const RULES: &[Rule] = &[Rule {
    code: "late",
    title: "Requests took longer than the run",
    meaning: "The disk is too slow for the time of the run, or it hangs. The run ended on \
                  time, with requests in flight. The figures cover the requests that completed, \
                  so the longest latencies are missing.",
    taints: None,
    check: Check::Run(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::is_late,
        silent: tests::on_time,
    },
}];

/// Requests that were still in flight when a run ended on time.
fn check(record: &Record) -> Option<Diagnosis> {
    let survey = record.surface.iter();
    let survey = survey.filter_map(|s| Some((None, s.target, SURVEY, s.hang?)));
    let workloads = record.measurements.iter().enumerate();
    let workloads = workloads.filter_map(|(index, m)| {
        let name = m.workload.name.as_str();
        Some((Some(index), m.target, name, m.hang?))
    });
    let late: Vec<_> = survey
        .chain(workloads)
        .filter(|(.., hang)| hang.late)
        .collect();
    let lasted = late.iter().map(|(index, .., hang)| {
        let path = part_path(*index) + "/hang/lasted_ns";
        evidence_at(path, hang.lasted_ns as f64, 0.0, "ns")
    });
    let mut seen: Vec<Evidence> = lasted.collect();
    let claims = late.iter().map(|(_, _, name, hang)| {
        format!(
            "{} of {name} had no answer after {}",
            counted(hang.requests, "request"),
            format_duration(hang.lasted_ns)
        )
    });
    let mut claim = claims.collect::<Vec<_>>().join("; ");
    if !claim.is_empty() {
        claim.push_str(
            ", when the run ended. The figures exclude these requests, which take at least as \
             long. A database waits for each of them.",
        );
    }
    let mut targets = late.iter().map(|(_, target, ..)| *target);
    if let Some((limit, evidence)) = targets.find_map(|target| allowed_by_group(record, target)) {
        claim.push_str(&limit);
        seen.push(evidence);
    }
    if let Some((access, evidence)) = no_time_for_curve(record) {
        let access = format!(
            "A random access takes {access}, so the time was too short for a curve: the transfer \
             rate is undecided."
        );
        claim = [claim, access].join(" ").trim().to_owned();
        seen.push(evidence);
    }
    (!seen.is_empty()).then(|| {
        Diagnosis::new(
            Severity::Warning,
            claim,
            seen,
            "Measure longer (--time), with smaller blocks (--bs) or at a lower depth (--depth). \
             If no request ever completes, look for timeouts in the kernel log (dmesg).",
        )
    })
}

/// The access time of a disk that was too slow for the curve of the plan.
fn no_time_for_curve(record: &Record) -> Option<(String, Evidence)> {
    let surface = record.surface.as_ref()?;
    let access = &surface.seeks.get(&SeekPattern::Random)?.mean;
    let planned = record.plan.survey.as_ref()?.curve;
    let is_missing = planned.is_some() && record.curve.is_empty();
    let path = "/surface/seeks/random/mean/value";
    let evidence = evidence_at(path, access.value, 0.0, "ns");
    is_missing.then(|| (format_duration(access.value as u64), evidence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::fixture::surveyed::{self, SurveyedDisk};
    use diskproof_model::io_limit::IoLimit;
    use diskproof_model::measurement::Hang;

    pub(super) fn on_time() -> Record {
        fixture::record()
    }

    pub(super) fn is_late() -> Record {
        fixture::faulty("random-read-d32", |m| {
            m.hang = Some(Hang {
                since_ns: m.start_ns + 2_000_000_000,
                lasted_ns: 7_000_000_000,
                requests: 8,
                late: true,
            });
        })
    }

    #[test]
    fn requests_in_flight_at_the_end_of_a_run_are_late_and_no_hang() {
        let record = is_late();
        let finding = check(&record).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert!(
            finding
                .claim
                .starts_with("8 requests of random-read-d32 had no answer after 7.0 s"),
            "{}",
            finding.claim
        );
    }

    #[test]
    fn disk_too_slow_for_a_curve_is_named() {
        let mut run = SurveyedDisk::rotating().run(1);
        run.0.plan.survey = Some(run.1.survey.clone());
        run.1.curve.clear();
        let finding = check(&surveyed::judge(run)).unwrap();
        assert_eq!(finding.evidence[0].path, "/surface/seeks/random/mean/value");
        let whole = SurveyedDisk::rotating().run(1);
        assert_eq!(check(&surveyed::judge(whole)), None);
    }

    #[test]
    fn limit_of_a_group_is_named_as_the_cause() {
        let mut record = is_late();
        record.host.io_limits = vec![IoLimit {
            group: "/db".to_owned(),
            device: "8:0".to_owned(),
            read_bytes_per_second: Some(300_000),
            ..IoLimit::default()
        }];
        let finding = check(&record).unwrap();
        assert!(finding.claim.contains("/db allows"), "{}", finding.claim);
        let path = &finding.evidence.last().unwrap().path;
        assert_eq!(path, "/host/io_limits/0/read_bytes_per_second");
    }
}
