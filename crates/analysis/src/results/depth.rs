//! Answers which depth is the greatest within a latency: from the depths that were measured, and as
//! a clause of the headline.

use crate::limiter::words::credit_text;
use crate::words::uncapitalised;
use diskproof_model::data::RunData;
use diskproof_model::latency_search::LatencySearch;
use diskproof_model::plan::Decide;
use diskproof_model::proof::{FigureSource, Objection};
use diskproof_model::record::{Record, TaskResult};
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

/// Adds to the search what a finding says against its answer. `record` must have its findings.
pub(super) fn add_objection(record: &mut Record) {
    let cause = match record.latency_search() {
        Some(search) => objection_to_search(record, search).map(|objection| objection.cause),
        None => return,
    };
    for result in &mut record.results {
        if let TaskResult::Depth(search) = result {
            search.objection = cause;
        }
    }
}

/// The objection to the rows that decide a search: that of the depth that was found, and that of
/// the first one that missed the latency; all rows, where nothing completed at any depth.
fn objection_to_search<'r>(record: &'r Record, search: &LatencySearch) -> Option<Objection<'r>> {
    let deciding: Vec<&str> = search
        .found()
        .into_iter()
        .chain(search.first_miss())
        .map(|trial| trial.workload.as_str())
        .collect();
    for (index, row) in record.measurements.iter().enumerate() {
        let name = row.data.workload.name.as_str();
        if (search.trials.is_empty() || deciding.contains(&name))
            && let Some(objection) = record.objection(FigureSource::Measurement(index))
        {
            return Some(objection);
        }
    }
    None
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
    for row in &record.measurements {
        if let Some(hang) = &row.data.hang {
            let (depth, why) = (row.data.workload.depth, hang.clause());
            return Some(format!(
                "undecided which depth keeps {promise}: at depth {depth}, {why}"
            ));
        }
    }
    if let Some(objection) = objection_to_search(record, search) {
        let why = uncapitalised(&objection.text());
        return Some(format!("undecided which depth keeps {promise}: {why}"));
    }
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
        (None, true) => "; no greater depth was searched (--depth)".to_owned(),
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
            return format!(" in a burst ({})", credit_text(record, credit));
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
    use diskproof_model::finding::{Cause, Severity};
    use diskproof_model::latency_search::DepthTrial;
    use diskproof_model::measurement::{Hang, Measurement};
    use diskproof_model::plan::{Task, Workloads};
    use diskproof_model::results::{ResultAnswer, ResultOfTask};
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
            (
                2,
                &[(1, 0), (2, 5)],
                ["depth 2 keeps 99 %", "no greater depth was searched"],
            ),
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
            objection: None,
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

    /// The record of a search at depth 1 and 2, of which 1 keeps the latency, with a change.
    fn searched(change: impl Fn(&mut [Measurement])) -> Record {
        let mut run = fixture::run();
        let mut measurements = Vec::new();
        let mut workloads = Vec::new();
        for (depth, late) in [(1, 0), (2, 500)] {
            let mut measurement = run.measurements[0].clone();
            measurement.workload.depth = depth;
            measurement.workload.name = format!("a-d{depth}");
            measurement.workload.shape.latency_target = Some(TARGET);
            for op in measurement.ops.values_mut() {
                op.latency.clear();
                op.latency.record_many(500_000, 1000 - late);
                op.latency.record_many(2_000_000, late);
            }
            workloads.push(measurement.workload.clone());
            measurements.push(measurement);
        }
        change(&mut measurements);
        run.measurements = measurements;
        run.facts.plan.tasks = vec![Task::Workloads(Workloads {
            decide: Decide::Depth,
            ..Workloads::as_planned(workloads)
        })];
        fixture::judge(run)
    }

    /// Requests that fail at the depths that decide, or at every depth, decide nothing; and neither
    /// does a disk that stopped answering.
    #[test]
    fn search_on_a_disk_that_fails_or_hangs_is_undecided() {
        fn fail(measured: &mut Measurement) {
            for op in measured.ops.values_mut() {
                op.errors.insert("EIO".to_owned(), 100);
            }
        }
        fn fail_all(measured: &mut Measurement) {
            fail(measured);
            for op in measured.ops.values_mut() {
                op.latency.clear();
                op.count = 0;
            }
        }
        let answer = |record: &Record| record.latency_search().unwrap().answer();
        let decided = searched(|_| {});
        assert_eq!(answer(&decided), ResultAnswer::Given);
        let found_fails = searched(|measured| fail(&mut measured[0]));
        let miss_fails = searched(|measured| fail(&mut measured[1]));
        let all_fail = searched(|measured| measured.iter_mut().for_each(fail_all));
        for record in [&found_fails, &miss_fails, &all_fail] {
            let search = record.latency_search().unwrap();
            assert_eq!(answer(record), ResultAnswer::Undecided);
            assert_eq!(search.objection, Some(Cause::Failed));
            states(&depth_clause(record, search).unwrap(), &["(io-errors)"]);
        }
        assert_eq!(all_fail.latency_search().unwrap().depth, None);
        let hung = searched(|measured| {
            measured[1].ops.clear();
            measured[1].hang = Some(Hang {
                since_ns: 1,
                lasted_ns: 1,
                requests: 2,
                late: true,
            });
        });
        let search = hung.latency_search().unwrap();
        assert_eq!(answer(&hung), ResultAnswer::Undecided);
        let text = depth_clause(&hung, search).unwrap();
        states(&text, &["undecided", "at depth 2"]);
    }

    /// The search ended before it measured the next greater depth, or a smaller one.
    #[test]
    fn search_that_ended_early_is_undecided() {
        for kept in [0, 1] {
            let mut record = searched(|_| {});
            let measured = vec![record.measurements[kept].data.clone()];
            let depths = [1, 2];
            let search = LatencySearch::judge(TARGET, &depths, &measured);
            record.results = vec![TaskResult::Depth(search)];
            let search = record.latency_search().unwrap();
            assert_eq!(search.answer(), ResultAnswer::Undecided, "{kept}");
        }
    }
}
