//! `interrupted`: diskproof itself did not run for a while during the measurement. The figures
//! exclude that time.

use super::rule::*;
use diskproof_model::measurement::{Interruption, InterruptionKind, MeasuredPlace};

pub(super) const RULE: Rule = Rule {
    code: "interrupted",
    title: "diskproof did not run for a while",
    summary: "diskproof did not run for a while, because it was stopped (Ctrl-Z) or the machine \
              was suspended. The figures exclude that time and the requests in flight.",
    remedy: Remedy::Always(
        "Measure again if the disk must not rest, because caches and burst credits recover during \
         a pause.",
    ),
    check: Check::Run(check),
    says: Meaning::EndedEarly,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// The claim names so many interruptions, the longest: those explain what a reader sees in a chart.
const NAMED_MAX: usize = 3;

/// An interruption of a workload or of the survey.
struct PlacedInterruption {
    /// `2.0 s into random-read-d1`
    place: String,
    interruption: Interruption,
    evidence: Evidence,
}

fn check(record: &Record) -> Option<Diagnosis> {
    let found_interruptions = interruptions(record);
    if found_interruptions.is_empty() {
        return None;
    }
    let mut named: Vec<String> = found_interruptions
        .iter()
        .take(NAMED_MAX)
        .map(|event| format!("{}, {}", describe_event(&event.interruption), event.place))
        .collect();
    let unnamed = found_interruptions.len().saturating_sub(NAMED_MAX);
    if unnamed > 0 {
        named.push(format!("{unnamed} more"));
    }
    let requests: u64 = found_interruptions
        .iter()
        .map(|event| event.interruption.requests)
        .sum();
    Some(Diagnosis::new(
        Severity::Note,
        format!(
            "{}. The figures exclude that time and {} in flight.",
            named.join("; "),
            counted(requests, "request")
        ),
        found_interruptions.into_iter().map(|event| event.evidence),
    ))
}

/// All interruptions, the longest first.
fn interruptions(record: &Record) -> Vec<PlacedInterruption> {
    let mut found_interruptions = Vec::new();
    for measured in measured_rows(record) {
        for (number, interruption) in measured.row.data.interruptions.iter().enumerate() {
            let place = format!("data/interruptions/{number}/length_ns");
            let length_ns = interruption.length_ns as f64;
            found_interruptions.push(PlacedInterruption {
                place: place_in_workload(record, measured.row, interruption),
                interruption: *interruption,
                evidence: measured.evidence(&place, length_ns, 0.0, "ns"),
            });
        }
    }
    if let Some(surface) = record.surface() {
        for (number, interruption) in surface.data.interruptions.iter().enumerate() {
            let path = first_result_path(&format!("data/interruptions/{number}/length_ns"));
            let since_ns = interruption.start_ns.saturating_sub(surface.data.start_ns);
            found_interruptions.push(PlacedInterruption {
                place: format!("{} into {SURVEY}", format_duration(since_ns)),
                interruption: *interruption,
                evidence: evidence_at(path, interruption.length_ns as f64, 0.0, "ns"),
            });
        }
    }
    found_interruptions.sort_by_key(|event| std::cmp::Reverse(event.interruption.length_ns));
    found_interruptions
}

fn place_in_workload(record: &Record, row: &Row, interruption: &Interruption) -> String {
    let name = workload_name(record, row);
    match row.data.place_of(interruption.start_ns) {
        MeasuredPlace::WarmUp => format!("during the warm-up of {name}"),
        MeasuredPlace::After { measured_ns } => {
            format!("{} into {name}", format_duration(measured_ns))
        }
        MeasuredPlace::End => format!("at the end of {name}"),
    }
}

fn describe_event(interruption: &Interruption) -> String {
    let event = match interruption.kind {
        InterruptionKind::Stopped => "A signal stopped diskproof",
        InterruptionKind::Frozen => "A paused container or virtual machine stopped diskproof",
        InterruptionKind::Suspended => "The machine was suspended",
    };
    format!("{event} for {}", format_duration(interruption.length_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states, surveyed};

    const SECOND_NS: u64 = 1_000_000_000;

    pub(super) const EXAMPLES: Examples = Examples::new(
        || {
            fixture::faulty("random-read-d32", |measurement| {
                measurement.interruptions =
                    vec![interruption(3 * SECOND_NS, InterruptionKind::Stopped)]
            })
        },
        fixture::record,
    );

    fn interruption(start_ns: u64, kind: InterruptionKind) -> Interruption {
        Interruption {
            start_ns,
            length_ns: 2 * SECOND_NS,
            kind,
            requests: 32,
        }
    }

    #[test]
    fn interrupted_names_time_and_length() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        states(
            &finding.claim,
            &["2.0 s, 3.0 s into random-read-d32", "32 requests"],
        );
        assert_eq!(finding.evidence[0].observed, 2e9);
    }

    #[test]
    fn interrupted_survey_and_warm_up_are_named() {
        let record = surveyed::faulty(|survey| {
            let start_ns = survey.start_ns + SECOND_NS;
            survey.interruptions = vec![interruption(start_ns, InterruptionKind::Suspended)];
        });
        let claim = check(&record).unwrap().claim;
        states(&claim, &["2.0 s, 1.0 s into the survey"]);
        let record = fixture::faulty("random-read-d32", |measurement| {
            measurement.start_ns = SECOND_NS;
            measurement.interruptions = vec![interruption(1, InterruptionKind::Frozen); 5];
        });
        let claim = check(&record).unwrap().claim;
        states(&claim, &["warm-up of random-read-d32", "2 more"]);
    }

    #[test]
    fn longest_of_many_interruptions_is_named_first() {
        let record = fixture::faulty("random-read-d32", |measurement| {
            measurement.interruptions =
                vec![interruption(3 * SECOND_NS, InterruptionKind::Stopped); 5];
            measurement.interruptions[4].length_ns = 9 * SECOND_NS;
        });
        let claim = check(&record).unwrap().claim;
        assert!(
            claim.starts_with("A signal stopped diskproof for 9.0 s"),
            "{claim}"
        );
    }
}
