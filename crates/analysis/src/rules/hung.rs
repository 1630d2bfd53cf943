//! `hung`: a target stopped answering, and the run timed out. A run that ended on time with
//! requests in flight is `late`; a disk that continued after a pause is `stalled`.

use super::rule::*;
use diskproof_model::measurement::{Hang, MeasuredPlace};

pub(super) const RULE: Rule = Rule {
    code: "hung",
    title: "The disk stopped answering",
    summary: "The disk, or the path to it, stopped answering. Earlier figures are valid; rates \
              include the time without an answer.",
    remedy: Remedy::Always(
        "Look for timeouts and resets in the kernel log (dmesg), and check the path to the disk: \
         cable and power, or the network and storage system (iscsiadm -m session, multipath -ll). \
         Measure again when the disk answers; the rates of this run include the time without an \
         answer.",
    ),
    check: Check::Run(check),
    says: Meaning::EndedEarly,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// A clause of the claim, with the figures that prove it.
struct Statement {
    clause: String,
    evidence: Vec<Evidence>,
}

pub(super) fn check(record: &Record) -> Option<Diagnosis> {
    let mut statements: Vec<Statement> = Vec::new();
    statements.extend(hung_survey(record));
    statements.extend(hung_test(record));
    for measured in measured_rows(record) {
        statements.extend(hung_workload(record, measured));
    }
    statements.extend(hung_between_requests(record));
    if statements.is_empty() {
        return None;
    }
    let mut clauses = Vec::new();
    let mut observations = Vec::new();
    for statement in statements {
        clauses.push(statement.clause);
        observations.extend(statement.evidence);
    }
    let claim = format!("{}.", clauses.join("; "));
    Some(Diagnosis::new(Severity::Failure, claim, observations))
}

fn hung_survey(record: &Record) -> Option<Statement> {
    let surface = record.surface()?;
    let hang = timed_out(surface.data.hang)?;
    let path = first_result_path("data/hang/lasted_ns");
    Some(Statement {
        clause: format!(
            "{} stopped answering {} into {SURVEY}, and timed out after {} without an answer",
            target_path(record, surface.data.target),
            format_duration(hang.since_ns.saturating_sub(surface.data.start_ns)),
            format_duration(hang.lasted_ns),
        ),
        evidence: vec![evidence_at(path, hang.lasted_ns as f64, 0.0, "ns")],
    })
}

/// A disk on which an acceptance test timed out.
fn hung_test(record: &Record) -> Option<Statement> {
    let accept = record.accept()?;
    let hang = timed_out(accept.data.hang)?;
    let path = first_result_path("data/hang/lasted_ns");
    Some(Statement {
        clause: format!(
            "{} stopped answering {} into {ACCEPTANCE_TEST}, and timed out after {} without an \
             answer",
            target_path(record, accept.data.target),
            format_duration(hang.since_ns.saturating_sub(accept.data.start_ns)),
            format_duration(hang.lasted_ns),
        ),
        evidence: vec![evidence_at(path, hang.lasted_ns as f64, 0.0, "ns")],
    })
}

fn hung_workload(record: &Record, measured: Measured<'_>) -> Option<Statement> {
    let hang = timed_out(measured.row.data.hang)?;
    let requests = hang.requests as f64;
    let lasted_ns = hang.lasted_ns as f64;
    Some(Statement {
        clause: workload_clause(record, measured.row, hang),
        evidence: vec![
            measured.evidence("data/hang/lasted_ns", lasted_ns, 0.0, "ns"),
            measured.evidence("data/hang/requests", requests, 0.0, "1"),
        ],
    })
}

/// A target that did not answer while no workload had requests in flight.
fn hung_between_requests(record: &Record) -> Option<Statement> {
    let stalled = record.stalled.as_ref().filter(|stalled| !stalled.late)?;
    let lasted_ns = stalled.lasted_ns as f64;
    let silent = match stalled.target {
        Some(target) => target_path(record, target).to_owned(),
        None => record.plan.targets.join(", "),
    };
    Some(Statement {
        clause: format!(
            "{silent} did not answer for {} around {}, between its requests, and timed out",
            format_duration(stalled.lasted_ns),
            stalled.around
        ),
        evidence: vec![evidence_at("/stalled/lasted_ns", lasted_ns, 0.0, "ns")],
    })
}

/// The hang, unless the run ended on time before anyone knew.
fn timed_out(hang: Option<Hang>) -> Option<Hang> {
    match hang {
        Some(hang) if !hang.late => Some(hang),
        _ => None,
    }
}

/// When the target stopped answering, by the workload's own time: it may be in the warm-up or after
/// the measured time.
fn workload_clause(record: &Record, row: &Row, hang: Hang) -> String {
    let path = target_path(record, row.data.target);
    let name = &row.data.workload.name;
    let since = match row.data.place_of(hang.since_ns) {
        MeasuredPlace::WarmUp => format!("during the warm-up of {name}"),
        MeasuredPlace::After { measured_ns } => {
            format!("{} into {name}", format_duration(measured_ns))
        }
        MeasuredPlace::End if row.data.verify.is_some() => {
            format!("while the data of {name} was read back")
        }
        MeasuredPlace::End => format!("at the end of {name}"),
    };
    let requests = counted(hang.requests, "request");
    let lasted = format_duration(hang.lasted_ns);
    format!(
        "{path} stopped answering {since}: {requests} had no answer after {lasted}, when the run \
         stopped waiting"
    )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::fixture::accepted::{self, Fault};
    use crate::fixture::{self, states, surveyed};
    use diskproof_model::measurement::{Measurement, PerOp};
    use diskproof_model::record::Stalled;
    use diskproof_model::window::TimeSlice;

    pub(super) const EXAMPLES: Examples = Examples::new(
        || {
            reads(|measurement| {
                measurement.hang = hang(measurement.start_ns + 2 * SECOND_NS, 47, 32)
            })
        },
        fixture::record,
    );

    const SECOND_NS: u64 = 1_000_000_000;

    pub(in crate::rules) fn reads(change: impl Fn(&mut Measurement)) -> Record {
        fixture::faulty("random-read-d32", change)
    }

    pub(in crate::rules) fn hang(since_ns: u64, seconds: u64, requests: u64) -> Option<Hang> {
        Some(Hang {
            since_ns,
            lasted_ns: seconds * SECOND_NS,
            requests,
            late: false,
        })
    }

    #[test]
    fn a_target_that_hung_is_reported_with_its_time() {
        let finding = RULE.find(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(finding.severity, Severity::Failure);
        states(
            &finding.claim,
            &["2.0 s into random-read-d32: 32 requests", "47 s"],
        );
        states(&finding.remedy, &["dmesg"]);
    }

    #[test]
    fn time_between_slices_is_none_of_the_workload() {
        let record = fixture::faulty("random-write-d32", |measurement| {
            measurement.start_ns = 8 * SECOND_NS;
            measurement.wall_ns = 15 * SECOND_NS;
            measurement.slices = [(8, 5), (20, 5), (36, 5)]
                .map(|(start_s, wall_s)| TimeSlice {
                    start_ns: start_s * SECOND_NS,
                    wall_ns: wall_s * SECOND_NS,
                    ops: PerOp::new(),
                    slot: None,
                })
                .to_vec();
            measurement.hang = hang(38 * SECOND_NS, 49, 1);
        });
        let row = &record
            .measurements
            .iter()
            .find(|row| row.data.hang.is_some());
        let place = |second| row.unwrap().data.place_of(second * SECOND_NS);
        let after = |seconds| MeasuredPlace::After {
            measured_ns: seconds * SECOND_NS,
        };
        assert_eq!(
            [7, 9, 17, 20, 38, 41].map(place),
            [
                MeasuredPlace::WarmUp,
                after(1),
                after(5),
                after(5),
                after(12),
                MeasuredPlace::End
            ]
        );
        states(
            &check(&record).unwrap().claim,
            &["12 s into random-write-d32"],
        );
    }

    #[test]
    fn a_hang_before_or_after_the_measured_time_is_none_of_it() {
        let warm_up = reads(|measurement| {
            measurement.start_ns = SECOND_NS;
            measurement.hang = hang(measurement.start_ns - 1, 47, 1);
        });
        states(
            &check(&warm_up).unwrap().claim,
            &["warm-up of random-read-d32: 1 request "],
        );
        let later = fixture::faulty("random-write-d32", |measurement| {
            measurement.hang = hang(measurement.start_ns + measurement.wall_ns + 5, 45, 1);
        });
        states(
            &check(&later).unwrap().claim,
            &["at the end of random-write-d32: 1 request "],
        );
    }

    #[test]
    fn a_survey_that_hung_is_reported() {
        let record = surveyed::faulty(|s| s.hang = hang(s.start_ns + 3 * SECOND_NS, 225, 1));
        let finding = check(&record).unwrap();
        states(&finding.claim, &["3.0 s into the survey", "3 min 45 s"]);
        assert_eq!(finding.evidence[0].path, "/results/0/data/hang/lasted_ns");
    }

    #[test]
    fn a_disk_that_hung_in_an_acceptance_test_is_reported() {
        let record = accepted::changed(Fault::None, |_, test| {
            test.finished = false;
            test.hang = hang(test.start_ns + 3 * SECOND_NS, 225, 1);
        });
        let finding = check(&record).unwrap();
        states(
            &finding.claim,
            &["3.0 s into the acceptance test", "3 min 45 s"],
        );
        assert_eq!(finding.evidence[0].path, "/results/0/data/hang/lasted_ns");
    }

    #[test]
    fn a_hang_between_the_requests_is_one_too() {
        let record = fixture::changed(|run| {
            run.facts.stalled = Some(Stalled {
                around: "random-read-d32".to_owned(),
                lasted_ns: 45 * SECOND_NS,
                late: false,
                has_answered: false,
                target: None,
            });
        });
        let finding = check(&record).unwrap();
        states(&finding.claim, &["/data", "45 s around random-read-d32"]);
        assert_eq!(finding.evidence[0].path, "/stalled/lasted_ns");
    }
}
