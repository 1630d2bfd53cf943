//! The search for the greatest depth that meets a latency limit, in words.

use diskproof_model::latency_search::{DepthTrial, LatencySearch};
use diskproof_model::record::Record;
use diskproof_model::units::{format_latency, format_percent};

/// The columns behind the depth.
pub(crate) const COLUMNS: [&str; 4] = ["rate", "requests", "late", "latency"];

/// The heading: `latency target: 99 % within 5 ms, up to depth 64`.
pub(crate) fn heading(search: &LatencySearch) -> String {
    format!(
        "latency target: {} % within {}, up to depth {}",
        search.target.percent,
        format_latency(search.target.latency_ns),
        search.depth_max
    )
}

/// The depth and the figures of each trial.
pub(crate) fn rows(
    record: &Record,
    search: &LatencySearch,
) -> Vec<(String, [String; COLUMNS.len()])> {
    let trials = search.trials.iter();
    trials
        .map(|trial| (trial.depth.to_string(), cells(record, trial)))
        .collect()
}

fn cells(record: &Record, trial: &DepthTrial) -> [String; COLUMNS.len()] {
    let mut measurements = record.measurements.iter();
    let own = measurements.find(|m| m.workload.name == trial.workload);
    let rates = own.map(|m| m.headline_ops()).unwrap_or_default();
    let rates: Vec<String> = rates.iter().map(|(_, op)| op.iops.value_text()).collect();
    let share = trial.late as f64 / trial.requests.max(1) as f64;
    let late = match trial.late {
        0 => "0".to_owned(),
        late => format!("{late} ({})", format_percent(share)),
    };
    let outcome = if trial.holds { "kept" } else { "missed" };
    [
        rates.join(" + "),
        trial.requests.to_string(),
        late,
        outcome.to_owned(),
    ]
}
