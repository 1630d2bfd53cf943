//! What a search for the greatest depth found, from the measurements of its depths.

use diskproof_model::latency_search::LatencySearch;
use diskproof_model::measurement::Measurement;
use diskproof_model::plan::Plan;
use diskproof_model::record::{MeasurementRecord, Record};
use diskproof_model::units::{format_latency, format_percent};

/// The result of a search; `None` of a run that was none.
pub(crate) fn latency_search(plan: &Plan, measurements: &[Measurement]) -> Option<LatencySearch> {
    let target = plan.workloads.first()?.shape.latency_target?;
    let depths: Vec<u32> = plan.workloads.iter().map(|one| one.depth).collect();
    Some(LatencySearch::of(target, &depths, measurements))
}

/// The answer, as a clause.
pub(crate) fn clause(record: &Record) -> Option<String> {
    let search = record.latency_search.as_ref()?;
    let latency = format_latency(search.target.latency_ns);
    let share = match search.target.percent {
        percent if percent < 100.0 => format!("{percent} % of the requests"),
        _ => "all requests".to_owned(),
    };
    let first_miss = search.first_miss().map(|trial| {
        let late = trial.late as f64 / trial.requests.max(1) as f64;
        (trial.depth, format_percent(late))
    });
    let Some(found) = search.found() else {
        return first_miss.map(|(depth, late)| {
            format!("no depth keeps {share} within {latency}: at depth {depth}, {late} take longer")
        });
    };
    let mut measurements = record.measurements.iter();
    let m = measurements.find(|m| m.workload.name == found.workload);
    let rate = m.map(rate_text).unwrap_or_default();
    let limit = match (first_miss, search.is_settled) {
        (Some((depth, late)), true) => format!("; at {depth}, {late} take longer"),
        (None, true) => "; greater depths were not allowed".to_owned(),
        (Some((depth, late)), false) => {
            format!("; at {depth}, {late} take longer; the depths in between were not measured")
        }
        (None, false) => "; the search ended before greater depths were measured".to_owned(),
    };
    Some(format!(
        "depth {} keeps {share} within {latency}{rate}{limit}",
        found.depth
    ))
}

/// `, at 12,300/s`, of all operations together.
fn rate_text(m: &MeasurementRecord) -> String {
    let ops = m.headline_ops();
    let rates: Vec<String> = ops.iter().map(|(_, op)| op.iops.value_text()).collect();
    if rates.is_empty() {
        String::new()
    } else {
        format!(", at {}", rates.join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::latency_target::LatencyTarget;

    /// The clause on trials at these depths, with so many late ones of 1000.
    fn told(depth_max: u32, trials: &[(u32, u64)]) -> Option<String> {
        let (facts, measurements) = fixture::run();
        let target = LatencyTarget {
            latency_ns: 1_000_000,
            percent: 99.0,
            window_ns: 1,
        };
        let of = |depth: u32, late: u64| {
            let mut measurement = measurements[0].clone();
            measurement.workload.depth = depth;
            measurement.workload.name = format!("a-d{depth}");
            let kind = *measurement.ops.keys().next().unwrap();
            measurement.ops.retain(|one, _| *one == kind);
            let op = measurement.ops.get_mut(&kind).unwrap();
            op.latency.clear();
            op.latency.record_many(500_000, 1000 - late);
            op.latency.record_many(2_000_000, late);
            measurement
        };
        let all: Vec<Measurement> = trials
            .iter()
            .map(|(depth, late)| of(*depth, *late))
            .collect();
        let search = LatencySearch::of(target, &(1..=depth_max).collect::<Vec<u32>>(), &all);
        let mut record = fixture::judge((facts, measurements.clone()));
        record.measurements.clear();
        record.latency_search = Some(search);
        clause(&record)
    }

    #[test]
    fn the_clause_says_what_is_known() {
        let begin = "depth 2 keeps 99 % of the requests within 1.00 ms";
        for (depth_max, trials, end) in [
            (8, &[(1, 0), (2, 5), (3, 50)][..], "; at 3, 5 % take longer"),
            (2, &[(1, 0), (2, 5)], "; greater depths were not allowed"),
            (
                8,
                &[(1, 0), (2, 5)],
                "; the search ended before greater depths were measured",
            ),
            (
                8,
                &[(1, 0), (2, 5), (8, 50)],
                "; at 8, 5 % take longer; the depths in between were not measured",
            ),
        ] {
            assert_eq!(told(depth_max, trials), Some(format!("{begin}{end}")));
        }
        assert_eq!(
            told(8, &[(1, 500)]).unwrap(),
            "no depth keeps 99 % of the requests within 1.00 ms: at depth 1, 50 % take longer"
        );
        assert_eq!(told(8, &[]), None);
    }
}
