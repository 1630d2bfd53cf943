//! `io-errors`: operations of a workload or of the survey failed. The crate `model` explains each
//! errno; `unreadable-blocks` reports the errors of a scan.

use super::rule::*;
use crate::words::sentence;
use diskproof_model::errno::{meaning, remedy};
use diskproof_model::record::TaskResult;
use std::collections::BTreeMap;

pub(super) const RULE: Rule = Rule {
    code: "io-errors",
    title: "Operations failed",
    summary: "The disk, something on the path to it, or a quota failed operations during the \
              measurement, its warm-up or the first requests before it.",
    remedy: Remedy::ByCase,
    check: Check::Run(check),
    says: Meaning::NotTheDisk {
        cause: Cause::Failed,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Points of the curve named as evidence.
const POINTS_NAMED_MAX: usize = 10;

/// The errors of a run. The scan of a survey has its own findings.
#[derive(Default)]
struct Failures<'a> {
    /// Failed operations by their errno.
    totals: BTreeMap<&'a str, u64>,
    /// Where they failed, in words.
    places: Vec<String>,
    evidence: Vec<Evidence>,
}

impl<'a> Failures<'a> {
    fn add_workloads(&mut self, record: &'a Record) {
        let mut hits = Vec::new();
        for measured in measured_rows(record) {
            let is_hung = measured.row.data.hang.is_some();
            for (kind, op) in measured.row.ops() {
                for (errno, count) in &op.data.errors {
                    // What a hang left without an answer has its own finding.
                    if *count == 0 || (is_hung && errno == "ETIMEDOUT") {
                        continue;
                    }
                    *self.totals.entry(errno).or_default() += count;
                    let place = format!("data/ops/{}/errors/{errno}", kind.as_str());
                    self.evidence
                        .push(measured.evidence(&place, *count as f64, 0.0, "1"));
                    hits.push(measured.index);
                }
            }
        }
        if !hits.is_empty() {
            self.places.push(workload_names(record, hits));
        }
    }

    fn add_curve(&mut self, record: &'a Record) {
        let curve = record.curve();
        let mut failed = 0;
        let mut first_offset = None;
        for (index, point) in curve.iter().enumerate() {
            if point.errors == 0 {
                continue;
            }
            failed += 1;
            first_offset.get_or_insert(point.offset_bytes);
            if failed <= POINTS_NAMED_MAX {
                let path = first_result_path(&format!("data/curve/{index}/errors"));
                self.evidence
                    .push(evidence_at(path, point.errors as f64, 0.0, "1"));
            }
        }
        let Some(offset_bytes) = first_offset else {
            return;
        };
        for (errno, count) in curve.iter().flat_map(|point| &point.errnos) {
            *self.totals.entry(errno).or_default() += count;
        }
        self.places.push(format!(
            "{failed} of {} of the curve (the first at {})",
            counted(curve.len() as u64, "point"),
            gigabytes(offset_bytes)
        ));
    }

    /// The accesses of the survey, and its requests before the curve.
    fn add_other_requests(&mut self, record: &'a Record) {
        let Some(surface) = record.surface() else {
            return;
        };
        let mut has_failed = false;
        for (errno, count) in &surface.data.access_errors {
            if *count == 0 {
                continue;
            }
            has_failed = true;
            *self.totals.entry(errno).or_default() += count;
            let path = first_result_path(&format!("data/access_errors/{errno}"));
            self.evidence
                .push(evidence_at(path, *count as f64, 0.0, "1"));
        }
        if has_failed {
            self.places.push("other requests of the survey".to_owned());
        }
    }
}

impl<'a> Failures<'a> {
    /// The requests of a temporary server, which has ended because of them.
    fn add_inserts(&mut self, record: &'a Record) {
        for (index, result) in record.results.iter().enumerate() {
            let TaskResult::Inserts(inserts) = result else {
                continue;
            };
            for (errno, count) in &inserts.errors {
                *self.totals.entry(errno).or_default() += count;
                let path = format!("/results/{index}/errors/{errno}");
                self.evidence
                    .push(evidence_at(path, *count as f64, 0.0, "1"));
            }
            if !inserts.errors.is_empty() {
                self.places.push("the PostgreSQL server".to_owned());
            }
        }
    }
}

fn check(record: &Record) -> Option<Diagnosis> {
    let mut failures = Failures::default();
    failures.add_workloads(record);
    failures.add_curve(record);
    failures.add_other_requests(record);
    failures.add_inserts(record);
    if failures.places.is_empty() {
        return None;
    }
    let counts: Vec<String> = failures
        .totals
        .iter()
        .map(|(errno, count)| format!("{count} × {errno} ({})", meaning(errno)))
        .collect();
    let failed = match failures.totals.values().sum::<u64>() {
        1 => "An operation",
        _ => "Operations",
    };
    let claim = format!(
        "{failed} failed in {}: {}.",
        failures.places.join(" and "),
        counts.join(", ")
    );
    let remedy = sentence(&remedy(failures.totals.keys().copied()));
    Some(Diagnosis::new(Severity::Failure, claim, failures.evidence).with_remedy(remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::inserted::inserted_with_errors;
    use crate::fixture::{self, states, surveyed};

    pub(super) const EXAMPLES: Examples = Examples::new(
        || failed(&[("EIO", 3), ("ENOSPC", 1)]),
        || failed(&[("EIO", 0)]),
    );

    /// The server ended with PANIC, because its disk failed a sync of the log.
    #[test]
    fn request_of_a_server_that_failed_is_one_of_the_disk() {
        let record = inserted_with_errors("a", &[100.0, 101.0], &["EIO"]);
        let finding = check(&record).unwrap();
        assert_eq!(finding.severity, Severity::Failure);
        states(&finding.claim, &["PostgreSQL", "1 × EIO"]);
        assert_eq!(finding.evidence[0].path, "/results/0/errors/EIO");
        assert_eq!(check(&inserted_with_errors("a", &[100.0], &[])), None);
    }

    fn failed(errnos: &[(&str, u64)]) -> Record {
        fixture::faulty("random-read-d32", |measurement| {
            for op in measurement.ops.values_mut() {
                let errnos = errnos
                    .iter()
                    .map(|(name, count)| ((*name).to_owned(), *count));
                op.errors.extend(errnos);
            }
        })
    }

    #[test]
    fn failed_operations_are_reported_by_errno() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Failure, 2)
        );
        states(&finding.claim, &["3 × EIO", "1 × ENOSPC"]);
        states(&finding.remedy, &["dmesg", "--size"]);
    }

    #[test]
    fn failures_of_a_survey_are_reported_with_their_place_and_errno() {
        let record = surveyed::faulty(|survey| {
            let errnos = [("EIO".to_owned(), 2), ("ETIMEDOUT".to_owned(), 1)];
            (survey.curve[20].errors, survey.curve[20].errnos) = (3, errnos.into());
            survey.access_errors.insert("EIO".to_owned(), 4);
        });
        let finding = check(&record).unwrap();
        states(
            &finding.claim,
            &["1 of 200 points", "32.0 GB", "6 × EIO", "1 × ETIMEDOUT"],
        );
        assert_eq!(finding.evidence.len(), 2);
    }
}
