//! `missed-schedule`: in an open loop, operations could not start when they should have.

use super::rule::*;
use diskproof_model::rate::RateCellKind;
use diskproof_model::task::Decide;

pub(super) const RULE: Rule = Rule {
    code: "missed-schedule",
    title: "The offered load was not reached",
    summary: "Operations could not start on schedule, so the figures show a smaller load than \
              requested.",
    remedy: Remedy::Always(
        "Allow more requests in flight (--depth, --jobs), reduce --rate, or stop other work on the \
         machine. The latency from the intended start is valid.",
    ),
    check: Check::Workloads(check),
    says: Meaning::Doubtful,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Share of late starts that do not count: a queue is full now and then. Chosen, not measured.
const MISSED_SHARE_MAX: f64 = 0.01;

fn missed_starts(row: &Row) -> f64 {
    row.data.missed_starts.unwrap_or(0) as f64
}

/// Starts in the measured time that the schedule wants.
fn wanted_starts(row: &Row) -> f64 {
    row.data.workload.rate.unwrap_or(0.0) * row.data.wall_ns as f64 / 1e9
}

/// Share of the wanted starts that were missed. Those of the warm-up that were made late, within
/// the measured time, are not among the wanted ones.
fn missed_share(row: &Row) -> f64 {
    (missed_starts(row) / wanted_starts(row).max(1.0)).min(1.0)
}

/// True if more than a few of the starts of an open loop were late or not made.
pub(super) fn is_missed(row: &Row) -> bool {
    row.data.workload.rate.is_some() && missed_starts(row) > MISSED_SHARE_MAX * wanted_starts(row)
}

/// True of the control of a search for a rate. It offers more than the target can take on purpose,
/// to show that the promise then breaks.
fn is_control(record: &Record, row: &Row) -> bool {
    let Some(workloads) = record.plan.workload_task() else {
        return false;
    };
    matches!(workloads.decide, Decide::Rate(_))
        && workloads.searched().any(|(_, searched)| {
            row.data.workload.name == RateCellKind::Control.row_name(&searched.name)
        })
}

fn check(record: &Record) -> Option<Diagnosis> {
    let hits: Vec<Measured<'_>> = real_rows(record)
        .filter(|measured| is_missed(measured.row) && !is_control(record, measured.row))
        .collect();
    let worst = largest_by(&hits, |hit| missed_share(hit.row))?.row;
    Some(Diagnosis::new(
        Severity::Warning,
        format!(
            "The schedule was missed in {}: at {} operations per second, {} of the starts of {} \
             were over 1 ms late or missing, because all slots were busy or diskproof did not get \
             a processor in time.",
            workload_names(record, indices(&hits)),
            format_rate(worst.data.workload.rate.unwrap_or(0.0)),
            format_percent(missed_share(worst)),
            workload_name(record, worst),
        ),
        hits.iter().map(|hit| {
            let threshold = MISSED_SHARE_MAX * wanted_starts(hit.row);
            hit.evidence("data/missed_starts", missed_starts(hit.row), threshold, "1")
        }),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};
    use diskproof_model::rate::RatePlan;

    pub(super) const EXAMPLES: Examples = Examples::new(
        || {
            fixture::faulty("random-read-d32", |measurement| {
                (measurement.workload.rate, measurement.missed_starts) =
                    (Some(12_000.0), Some(10_000))
            })
        },
        || {
            fixture::faulty("random-read-d32", |measurement| {
                (measurement.workload.rate, measurement.missed_starts) = (Some(1e4), Some(500))
            })
        },
    );

    #[test]
    fn control_of_a_search_may_miss_its_schedule() {
        let mut record = (EXAMPLES.fires)();
        let searched = record.measurements[3].data.workload.name.clone();
        assert_eq!(searched, "random-read-d32");
        for (kind, is_found) in [(RateCellKind::Hold, true), (RateCellKind::Control, false)] {
            record.measurements[3].data.workload.name = kind.row_name(&searched);
            let workloads = record.plan.workload_task_mut().unwrap();
            for workload in &mut workloads.list {
                workload.stop.time_ns = None;
            }
            workloads.decide = Decide::Rate(RatePlan {
                percent: 99.0,
                limit_ns: 5_000_000,
                time_ns: 60_000_000_000,
                hold_ns: 10_000_000_000,
            });
            assert_eq!(check(&record).is_some(), is_found, "{kind:?}");
        }
    }

    #[test]
    fn late_starts_are_reported_and_a_closed_loop_has_none() {
        let claim = check(&(EXAMPLES.fires)()).unwrap().claim;
        states(&claim, &["12000", "17 %", "random-read-d32"]);
        let closed = fixture::faulty("random-read-d32", |measurement| {
            measurement.missed_starts = Some(10_000)
        });
        assert_eq!(check(&closed), None);
    }
}
