//! The search for the greatest depth that meets a latency limit, in words.

use diskproof_model::block::Block;
use diskproof_model::latency_search::{DepthTrial, LatencySearch};
use diskproof_model::record::Record;
use diskproof_model::units::{format_latency, format_percent};

/// Columns of the table.
const COLUMNS: [&str; 5] = ["depth", "rate", "requests", "late", "latency"];

/// A row for each depth that was measured, under its heading.
pub(crate) fn blocks(record: &Record, search: &LatencySearch) -> Vec<Block> {
    let rows = search.trials.iter().map(|trial| row(record, trial));
    let (percent, depth_max) = (search.target.percent, search.depth_max);
    let limit = format_latency(search.target.latency_ns);
    vec![
        Block::Heading(format!(
            "latency target: {percent} % within {limit}, up to depth {depth_max}"
        )),
        Block::table("Depths that were tried", COLUMNS, rows.collect()),
    ]
}

fn row(record: &Record, trial: &DepthTrial) -> Vec<String> {
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
    vec![
        trial.depth.to_string(),
        rates.join(" + "),
        trial.requests.to_string(),
        late,
        outcome.to_owned(),
    ]
}
