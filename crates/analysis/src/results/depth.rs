//! Answers which depth is the greatest within a latency: from the depths that were measured, and as
//! a clause of the headline.

use crate::limiter::words::credit_text;
use crate::words::uncapitalised;
use diskproof_model::data::RunData;
use diskproof_model::latency_search::LatencySearch;
use diskproof_model::plan::Decide;
use diskproof_model::proof::FigureSource;
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::units::{format_latency, format_percent};

/// The result of the search; `None` of a run that searched no depth.
pub(super) fn depth_result(record: &Record, data: &RunData) -> Option<LatencySearch> {
    let plan = &record.plan;
    if plan.workload_task()?.decide != Decide::Depth {
        return None;
    }
    let target = plan.workloads().first()?.shape.latency_target?;
    let depths: Vec<u32> = plan
        .workloads()
        .iter()
        .map(|workload| workload.depth)
        .collect();
    Some(LatencySearch::judge(target, &depths, &data.measurements))
}

/// The first depth that missed the promise, and the share of its requests that took longer, as
/// text.
struct FirstMiss {
    depth: u32,
    late: String,
}

impl FirstMiss {
    fn of_search(search: &LatencySearch) -> Option<Self> {
        let trial = search.first_miss()?;
        let late_share = trial.late as f64 / trial.requests.max(1) as f64;
        Some(Self {
            depth: trial.depth,
            late: format_percent(late_share),
        })
    }
}

/// The promise of the search: `99 % of the requests within 2 ms`.
fn promise_text(search: &LatencySearch) -> String {
    let share = match search.target.percent {
        percent if percent < 100.0 => format!("{percent} % of the requests"),
        _ => "all requests".to_owned(),
    };
    format!(
        "{share} within {}",
        format_latency(search.target.latency_ns)
    )
}

/// The answer, as a clause; `None` of a search without any trial.
pub(super) fn depth_clause(record: &Record, search: &LatencySearch) -> Option<String> {
    let promise = promise_text(search);
    let first_miss = FirstMiss::of_search(search);
    let Some(found) = search.found() else {
        let FirstMiss { depth, late } = first_miss?;
        return Some(if search.is_settled {
            format!("no depth keeps {promise}: at depth {depth}, {late} take longer")
        } else {
            format!(
                "undecided which depth keeps {promise}: at depth {depth}, {late} take longer; \
                 smaller depths were not measured"
            )
        });
    };
    let measured = record
        .measurements
        .iter()
        .position(|row| row.data.workload.name == found.workload);
    let objection = measured.and_then(|index| record.objection(FigureSource::Measurement(index)));
    if let Some(objection) = objection {
        let why = uncapitalised(&objection.text());
        return Some(format!("undecided which depth keeps {promise}: {why}"));
    }
    let rate = match measured {
        Some(index) => rate_text(&record.measurements[index]),
        None => String::new(),
    };
    let lasting = lasting_text(record, &found.workload);
    let limit = limit_text(first_miss, search.is_settled);
    Some(format!(
        "depth {} keeps {promise}{rate}{lasting}{limit}",
        found.depth
    ))
}

/// The reason why no greater depth is the answer, after a semicolon.
fn limit_text(first_miss: Option<FirstMiss>, is_settled: bool) -> String {
    match (first_miss, is_settled) {
        (Some(miss), true) => format!("; at {}, {} take longer", miss.depth, miss.late),
        (None, true) => "; greater depths were not allowed".to_owned(),
        (Some(miss), false) => format!(
            "; at {}, {} take longer; the depths in between were not measured",
            miss.depth, miss.late
        ),
        (None, false) => "; the search ended before greater depths were measured".to_owned(),
    }
}

/// ` in a burst (1500/s for ever; …)`, of a workload that was measured in one.
fn lasting_text(record: &Record, workload: &str) -> String {
    for credit in &record.burst_credits {
        let mut rows = credit.in_burst.iter();
        if rows.any(|index| record.measurements[*index].data.workload.name == workload) {
            return format!(" in a burst ({})", credit_text(credit));
        }
    }
    String::new()
}

/// `, at 12,300/s`, of all operations together.
fn rate_text(row: &Row) -> String {
    let ops = row.headline_ops();
    let rates: Vec<String> = ops
        .iter()
        .map(|(_, op)| op.figures.iops.value_text())
        .collect();
    if rates.is_empty() {
        String::new()
    } else {
        format!(", at {}", rates.join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};
    use diskproof_model::finding::Severity;
    use diskproof_model::latency_search::DepthTrial;
    use diskproof_model::shape::LatencyTarget;

    const TARGET: LatencyTarget = LatencyTarget {
        latency_ns: 1_000_000,
        percent: 99.0,
        window_ns: 1,
    };

    /// The clause on trials at these depths, with so many late ones of 1000.
    fn clause(depth_max: u32, trials: &[(u32, u64)]) -> Option<String> {
        let run = fixture::run();
        let mut trial_measurements = Vec::new();
        for (depth, late) in trials {
            let mut measurement = run.measurements[0].clone();
            measurement.workload.depth = *depth;
            measurement.workload.name = format!("a-d{depth}");
            let kind = *measurement.ops.keys().next().unwrap();
            measurement.ops.retain(|other, _| *other == kind);
            let op = measurement.ops.get_mut(&kind).unwrap();
            op.latency.clear();
            op.latency.record_many(500_000, 1000 - late);
            op.latency.record_many(2_000_000, *late);
            trial_measurements.push(measurement);
        }
        let search = LatencySearch::judge(
            TARGET,
            &(1..=depth_max).collect::<Vec<u32>>(),
            &trial_measurements,
        );
        let mut record = fixture::judge(run);
        record.measurements.clear();
        depth_clause(&record, &search)
    }

    #[test]
    fn the_clause_says_what_is_known() {
        for (depth_max, trials, parts) in [
            (
                8,
                &[(1, 0), (2, 5), (3, 50)][..],
                ["depth 2 keeps 99 %", "at 3, 5 %"],
            ),
            (2, &[(1, 0), (2, 5)], ["depth 2 keeps 99 %", "not allowed"]),
            (8, &[(1, 0), (2, 5)], ["depth 2 keeps 99 %", "ended before"]),
            (8, &[(1, 0), (2, 5), (8, 50)], ["at 8, 5 %", "in between"]),
            (8, &[(1, 500)], ["no depth keeps 99 %", "at depth 1, 50 %"]),
            // The smaller ones were measured in a burst and dropped.
            (8, &[(4, 500)], ["undecided", "at depth 4, 50 %"]),
        ] {
            let text = clause(depth_max, trials).unwrap();
            states(&text, &["1.00 ms"]);
            states(&text, &parts);
        }
        assert_eq!(clause(8, &[]), None);
    }

    #[test]
    fn depth_of_figures_that_are_not_the_disks_is_undecided() {
        let mut record = fixture::record();
        let search = LatencySearch {
            target: TARGET,
            depth: Some(1),
            is_settled: true,
            depth_max: 1,
            trials: vec![DepthTrial {
                workload: record.measurements[0].data.workload.name.clone(),
                depth: 1,
                requests: 1000,
                late: 0,
                holds: true,
            }],
        };
        record.findings = vec![fixture::finding(
            "served-from-cache",
            Severity::Failure,
            "/measurements/0/data/device/read_bytes",
        )];
        let text = depth_clause(&record, &search).unwrap();
        states(
            &text,
            &["undecided which depth keeps 99 %", "(served-from-cache)"],
        );
    }
}
