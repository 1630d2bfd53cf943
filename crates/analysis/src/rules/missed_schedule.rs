//! `missed-schedule`: in an open loop, operations could not start when they should have.

use super::evidence::{evidence, real, scope, workload_name};
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule};
use crate::estimate::largest_by;
use diskproof_model::finding::Severity;
use diskproof_model::record::{MeasurementRecord, Record};
use diskproof_model::units::{format_percent, format_rate};

pub(super) const RULES: &[Rule] = &[Rule {
    code: "missed-schedule",
    title: "The offered load was not reached",
    meaning: "Operations could not start on schedule, so the figures show a smaller load than \
              requested.",
    taints: None,
    check: Check::Workloads(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
}];

/// Share of late starts that a queue may have now and then.
const MISSED_MAX: f64 = 0.01;

fn missed(m: &MeasurementRecord) -> f64 {
    m.missed_starts.unwrap_or(0) as f64
}

/// Starts in the measured time that the schedule wants.
fn wanted(m: &MeasurementRecord) -> f64 {
    m.workload.rate.unwrap_or(0.0) * m.wall_ns as f64 / 1e9
}

/// Whether more than a few of the starts of an open loop were late or not made.
pub(super) fn is_missed(m: &MeasurementRecord) -> bool {
    m.workload.rate.is_some() && missed(m) > MISSED_MAX * wanted(m)
}

fn check(record: &Record) -> Option<Diagnosis> {
    let hits: Vec<_> = real(record).filter(|(_, m)| is_missed(m)).collect();
    // Those of the warm-up that were made late, within the measured time, are not among the wanted
    // ones.
    let share = |m: &MeasurementRecord| (missed(m) / wanted(m).max(1.0)).min(1.0);
    let (_, worst) = largest_by(&hits, |(_, m)| share(m))?;
    Some(Diagnosis::new(
        Severity::Warning,
        format!(
            "The schedule was missed in {}: at {} operations per second, {} of the starts of {} \
             were over 1 ms late or missing, because all slots were busy or diskproof did not get \
             a processor in time.",
            scope(record, hits.iter().map(|h| h.0)),
            format_rate(worst.workload.rate.unwrap_or(0.0)),
            format_percent(share(worst)),
            workload_name(record, worst),
        ),
        hits.iter().map(|(index, m)| {
            let threshold = MISSED_MAX * wanted(m);
            evidence(*index, "missed_starts", missed(m), threshold, "1")
        }),
        "Allow more requests in flight (--depth, --jobs), reduce --rate, or stop other \
         work on the machine. The latency from the intended start is valid.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    pub(super) fn fires() -> Record {
        fixture::faulty("random-read-d32", |m| {
            (m.workload.rate, m.missed_starts) = (Some(12_000.0), Some(10_000))
        })
    }

    pub(super) fn silent() -> Record {
        fixture::faulty("random-read-d32", |m| {
            (m.workload.rate, m.missed_starts) = (Some(1e4), Some(500))
        })
    }

    #[test]
    fn late_starts_are_reported() {
        let claim = check(&fires()).unwrap().claim;
        assert!(
            claim.contains("at 12000 operations per second, 17 % of the starts of random-read-d32"),
            "{claim}"
        );
    }

    #[test]
    fn a_few_late_starts_and_closed_loops_are_fine() {
        assert_eq!(
            check(&fixture::faulty("random-read-d32", |m| (
                m.workload.rate,
                m.missed_starts
            ) =
                (Some(1e4), Some(500)))),
            None
        );
        assert_eq!(
            check(&fixture::faulty("random-read-d32", |m| m.missed_starts = Some(10_000))),
            None
        );
    }
}
