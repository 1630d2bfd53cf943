//! `interrupted`: this program did not run for a while. The figures exclude that time.

use super::evidence::{SURVEY, evidence, evidence_at, workload_name};
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule};
use diskproof_model::finding::{Evidence, Severity};
use diskproof_model::measurement::{Interruption, InterruptionKind};
use diskproof_model::record::{MeasurementRecord, Record};
use diskproof_model::units::{counted, format_duration};

pub(super) const RULES: &[Rule] = &[Rule {
    code: "interrupted",
    title: "diskproof did not run for a while",
    meaning: "diskproof did not run for a while, because it was stopped (Ctrl-Z) or the machine \
              was suspended. The figures exclude that time and the requests in flight.",
    taints: None,
    check: Check::Run(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
}];

/// Interruptions that are named one by one.
const NAMED_MAX: usize = 3;

fn check(record: &Record) -> Option<Diagnosis> {
    let mut seen: Vec<(String, Interruption, Evidence)> = Vec::new();
    for (index, m) in record.measurements.iter().enumerate() {
        for (number, one) in m.interruptions.iter().enumerate() {
            let path = format!("interruptions/{number}/length_ns");
            let evidence = evidence(index, &path, one.length_ns as f64, 0.0, "ns");
            seen.push((place(record, m, one), *one, evidence));
        }
    }
    if let Some(surface) = &record.surface {
        for (number, one) in surface.interruptions.iter().enumerate() {
            let since_ns = one.start_ns.saturating_sub(surface.start_ns);
            let path = format!("/surface/interruptions/{number}/length_ns");
            let evidence = evidence_at(path, one.length_ns as f64, 0.0, "ns");
            let place = format!("{} into {SURVEY}", format_duration(since_ns));
            seen.push((place, *one, evidence));
        }
    }
    seen.first()?;
    let mut named: Vec<String> = seen
        .iter()
        .take(NAMED_MAX)
        .map(|(place, one, _)| format!("{}, {place}", event(one)))
        .collect();
    if let more @ 1.. = seen.len().saturating_sub(NAMED_MAX) {
        named.push(format!("{more} more"));
    }
    let requests: u64 = seen.iter().map(|(_, one, _)| one.requests).sum();
    Some(Diagnosis::new(
        Severity::Note,
        format!(
            "{}. The figures exclude that time and {} in flight.",
            named.join("; "),
            counted(requests, "request")
        ),
        seen.into_iter().map(|(_, _, evidence)| evidence),
        "Measure again if the disk must not rest, because caches and burst credits recover \
         during a pause.",
    ))
}

fn place(record: &Record, m: &MeasurementRecord, one: &Interruption) -> String {
    let name = workload_name(record, m);
    match one.start_ns.checked_sub(m.start_ns) {
        Some(since_ns) => format!("{} into {name}", format_duration(since_ns)),
        None => format!("during the warm-up of {name}"),
    }
}

fn event(one: &Interruption) -> String {
    let stopped = match one.kind {
        InterruptionKind::Stopped => "A signal stopped diskproof",
        InterruptionKind::Frozen => "A paused container or virtual machine stopped diskproof",
        InterruptionKind::Suspended => "The machine was suspended",
    };
    format!("{stopped} for {}", format_duration(one.length_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::fixture::surveyed::{self, SurveyedDisk};

    const SECOND: u64 = 1_000_000_000;

    fn interruption(start_ns: u64, kind: InterruptionKind) -> Interruption {
        Interruption {
            start_ns,
            length_ns: 2 * SECOND,
            kind,
            requests: 32,
        }
    }

    pub(super) fn fires() -> Record {
        fixture::faulty("random-read-d32", |m| {
            m.interruptions = vec![interruption(
                m.start_ns + 3 * SECOND,
                InterruptionKind::Stopped,
            )];
        })
    }

    #[test]
    fn interrupted_names_time_and_length() {
        let finding = check(&fires()).unwrap();
        assert_eq!(
            finding.claim,
            "A signal stopped diskproof for 2.0 s, 3.0 s into random-read-d32. The figures exclude \
             that time and 32 requests in flight."
        );
        assert_eq!(finding.evidence[0].observed, 2e9);
    }

    #[test]
    fn interrupted_survey_and_warm_up_are_named() {
        let mut run = SurveyedDisk::rotating().run(1);
        let start_ns = run.1.start_ns;
        run.1.interruptions = vec![interruption(start_ns + SECOND, InterruptionKind::Suspended)];
        let claim = check(&surveyed::judge(run)).unwrap().claim;
        assert!(
            claim.starts_with("The machine was suspended for 2.0 s, 1.0 s into the survey."),
            "{claim}"
        );
        let record = fixture::faulty("random-read-d32", |m| {
            m.start_ns = SECOND;
            m.interruptions = vec![interruption(1, InterruptionKind::Frozen); 5];
        });
        let claim = check(&record).unwrap().claim;
        assert!(
            claim.contains("during the warm-up of random-read-d32; 2 more. The figures"),
            "{claim}"
        );
    }

    pub(super) fn silent() -> Record {
        fixture::record()
    }
}
