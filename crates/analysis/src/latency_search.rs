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
    let m = record
        .measurements
        .iter()
        .find(|m| m.workload.name == found.workload);
    let rate = m.map(rate_text).unwrap_or_default();
    let limit = match (first_miss, search.is_settled) {
        (Some((depth, late)), true) => format!("; at {depth}, {late} take longer"),
        (None, true) => "; a greater one was not allowed".to_owned(),
        (_, false) => "; a greater one may do, too: the time was over".to_owned(),
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
    match rates.is_empty() {
        true => String::new(),
        false => format!(", at {}", rates.join(" and ")),
    }
}
