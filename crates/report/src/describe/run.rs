//! A run in words: what was requested, when, how far it came, and which workloads did not run.

use crate::text::{grouped, list};
use diskproof_model::block::Block;
use diskproof_model::measurement::StopReason;
use diskproof_model::plan::Plan;
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::units::format_duration;

/// `check /data1, /data2`: the verb and its targets. A run on layers names its highest one.
pub(crate) fn request_text(plan: &Plan) -> String {
    let verb = &plan.origin.verb;
    if plan.layers().is_none() {
        return format!("{verb} {}", plan.targets.join(", "));
    }
    match plan.targets.first() {
        Some(highest) => format!("{verb} --layers {highest}"),
        None => format!("{verb} --layers "),
    }
}

/// `2026-11-20T10:00:00Z` as `2026-11-20 10:00 UTC`; other texts stay as they are.
pub(crate) fn start_text(started: &str) -> String {
    let parts = (started.get(..10), started.get(10..11), started.get(11..16));
    match parts {
        (Some(day), Some("T"), Some(minute)) if started.ends_with('Z') => {
            format!("{day} {minute} UTC")
        }
        _ => started.to_owned(),
    }
}

/// Says why the run is partial; `None` for a complete one.
pub(crate) fn partial_text(record: &Record) -> Option<String> {
    let why = match &record.ended_early {
        Some(why) => why.as_str(),
        None if record.partial => "the run ended before its plan was complete",
        None => return None,
    };
    let progress = progress_text(record).unwrap_or_default();
    Some(format!("{why}{progress}"))
}

/// Says how far an interrupted run came: `. After 8.2 s: 3 of 8 workloads finished, 2 cut short, 3
/// not run.` `None` where decisions during the run would have added workloads.
fn progress_text(record: &Record) -> Option<String> {
    let adds_workloads = record.sweep().is_some()
        || record.latency_search().is_some()
        || record.load().is_some()
        || record.rays().is_some()
        || record.sustain().is_some();
    if adds_workloads {
        return None;
    }
    let planned = record.plan.measurement_count();
    if planned <= 1 {
        return None;
    }
    let measured = record.measurements.len();
    let missing = planned.checked_sub(measured)?;
    let cut_short = record
        .measurements
        .iter()
        .filter(|row| is_cut_short(row))
        .count();
    let finished = measured - cut_short;
    let mut parts = vec![format!("{finished} of {planned} workloads finished")];
    if cut_short > 0 {
        parts.push(format!("{cut_short} cut short"));
    }
    if missing > 0 {
        parts.push(format!("{missing} not run"));
    }
    let elapsed = format_duration(record.elapsed_ns());
    Some(format!(". After {elapsed}: {}.", list(parts)))
}

/// True of a row that was not measured as planned, because the run ended or requests were never
/// answered.
fn is_cut_short(row: &Row) -> bool {
    let stopped = row.data.stopped;
    row.data.shortened_from_ns.is_some()
        || row.data.hang.is_some()
        || matches!(stopped, StopReason::Interrupted | StopReason::Hung)
}

/// Names the planned workloads of a target that did not run on it. Empty where the run itself
/// decided which workloads it needed.
pub(crate) fn unmeasured_workloads(record: &Record, target: usize) -> Vec<&str> {
    // A search measures as few depths as it needs, and rates of its own; a load that does not fall
    // needs no pauses.
    if record.latency_search().is_some() || record.load().is_some() || record.sustain().is_some() {
        return Vec::new();
    }
    let has_rays = record.rays().is_some();
    let mut names = Vec::new();
    for workload in record.plan.workloads() {
        // Rays are searched from workloads without a time; their rows have names of their own.
        if has_rays && workload.stop.time_ns.is_none() {
            continue;
        }
        if workload.runs_on(target) && !is_measured(record, target, &workload.name) {
            names.push(workload.name.as_str());
        }
    }
    names
}

fn is_measured(record: &Record, target: usize, workload: &str) -> bool {
    record
        .measurements
        .iter()
        .any(|row| row.data.target == target && row.data.workload.name == workload)
}

/// The workloads that the plan skips, a fact per reason.
pub(crate) fn skipped_facts(plan: &Plan) -> impl Iterator<Item = Block> {
    let skipped = plan.skipped.iter();
    grouped(skipped.map(|skipped| (&skipped.why, &skipped.workload)))
        .into_iter()
        .map(|(why, names)| Block::fact("skipped", format!("{}: {why}", list(names))))
}

/// As many digits of an id are printed; `show` and other commands accept them.
const ID_DIGITS: usize = 8;

/// Shortens the id of a run to as many digits as other commands need.
pub(crate) fn short_run_id(id: &str) -> String {
    id.chars().take(ID_DIGITS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_of_a_run_is_printed_as_a_date() {
        assert_eq!(start_text("2026-11-20T10:00:00Z"), "2026-11-20 10:00 UTC");
        let other = "2026-11-20T10:00:00+02:00";
        assert_eq!(start_text(other), other);
        assert_eq!(start_text("früher"), "früher");
    }

    #[test]
    fn workload_of_one_target_is_not_missed_on_another() {
        let mut record = crate::fixture::record();
        record.plan.targets.push("/data2".to_owned());
        for workload in record.plan.workloads_mut() {
            workload.target = Some(0);
        }
        assert_eq!(unmeasured_workloads(&record, 1), Vec::<&str>::new());
        assert_eq!(
            record.plan.measurement_count(),
            record.plan.workloads().len()
        );
        record.measurements.clear();
        assert_eq!(
            unmeasured_workloads(&record, 0).len(),
            record.plan.workloads().len()
        );
    }
}
