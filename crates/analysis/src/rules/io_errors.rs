//! `io-errors`: operations failed. What each errno means stands in the model.

use super::rule::*;
use crate::headline::sentence;
use diskproof_model::errno::{meaning, remedy};
use std::collections::BTreeMap;

pub(super) const IO_ERRORS: Rule = Rule {
    code: "io-errors",
    check: Check::Run(check_io_errors),
    says: Meaning::NotTheDisk {
        cause: Cause::Failed,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Points of the curve named as evidence.
const POINTS_NAMED: usize = 10;

fn check_io_errors(record: &Record) -> Option<Diagnosis> {
    let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
    let mut seen = Vec::new();
    let mut hits = Vec::new();
    for (index, m) in record.measurements.iter().enumerate() {
        for (kind, op) in m.ops() {
            // What a hang left without an answer has its own finding.
            let left_alone = |errno: &str| m.data.hang.is_some() && errno == "ETIMEDOUT";
            for (errno, count) in op
                .data
                .errors
                .iter()
                .filter(|e| *e.1 > 0 && !left_alone(e.0))
            {
                *totals.entry(errno).or_default() += count;
                let place = format!("data/ops/{}/errors/{errno}", kind.as_str());
                seen.push(evidence(index, &place, *count as f64, 0.0, "1"));
                hits.push(index);
            }
        }
    }
    let places = places(record, hits, &mut totals, &mut seen);
    places.first()?;
    let counts: Vec<String> = totals
        .iter()
        .map(|(errno, count)| format!("{count} × {errno} ({})", meaning(errno)))
        .collect();
    let remedy = sentence(&remedy(totals.keys().copied()));
    let failed = match totals.values().sum::<u64>() {
        1 => "An operation",
        _ => "Operations",
    };
    Some(Diagnosis::with_remedy(
        Severity::Failure,
        format!(
            "{failed} failed in {}: {}.",
            places.join(" and "),
            counts.join(", ")
        ),
        seen,
        remedy,
    ))
}

/// Where operations failed; adds what the survey saw. The scan has its own findings.
fn places<'a>(
    record: &'a Record,
    hits: Vec<usize>,
    totals: &mut BTreeMap<&'a str, u64>,
    seen: &mut Vec<Evidence>,
) -> Vec<String> {
    let mut places = Vec::new();
    if !hits.is_empty() {
        places.push(scope(record, hits));
    }
    let errors = |path: String, count: u64| evidence_at(path, count as f64, 0.0, "1");
    let points = record.curve().iter().enumerate();
    let failed: Vec<_> = points.filter(|(_, point)| point.errors > 0).collect();
    if let Some((_, first)) = failed.first() {
        for (errno, count) in record.curve().iter().flat_map(|point| &point.errnos) {
            *totals.entry(errno).or_default() += count;
        }
        let named = failed.iter().take(POINTS_NAMED);
        seen.extend(
            named.map(|(i, point)| {
                errors(format!("/results/0/data/curve/{i}/errors"), point.errors)
            }),
        );
        places.push(format!(
            "{} of {} of the curve (the first at {})",
            failed.len(),
            counted(record.curve().len() as u64, "point"),
            gigabytes(first.offset_bytes)
        ));
    }
    let surveys = record.surface().into_iter();
    let access = surveys.flat_map(|s| &s.data.access_errors);
    let access = access.filter(|(_, count)| **count > 0);
    let before = seen.len();
    for (errno, count) in access {
        *totals.entry(errno).or_default() += count;
        seen.push(errors(
            format!("/results/0/data/access_errors/{errno}"),
            *count,
        ));
    }
    if seen.len() > before {
        places.push("the access times".to_owned());
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states, surveyed};

    pub(super) const EXAMPLES: Examples = Examples::of(
        || failed(&[("EIO", 3), ("ENOSPC", 1)]),
        || failed(&[("EIO", 0)]),
    );

    fn failed(errnos: &[(&str, u64)]) -> Record {
        fixture::faulty("random-read-d32", |m| {
            for op in m.ops.values_mut() {
                let errnos = errnos
                    .iter()
                    .map(|(name, count)| ((*name).to_owned(), *count));
                op.errors.extend(errnos);
            }
        })
    }

    #[test]
    fn failed_operations_are_reported_by_errno() {
        let finding = check_io_errors(&(EXAMPLES.fires)()).unwrap();
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
        let finding = check_io_errors(&record).unwrap();
        states(
            &finding.claim,
            &["1 of 200 points", "32.0 GB", "6 × EIO", "1 × ETIMEDOUT"],
        );
        assert_eq!(finding.evidence.len(), 2);
    }
}
