//! How a run was measured: the program, the conditions of each workload, the proof of its figures
//! by the disks' own counters, and the commands of other tools that reproduce them.

use crate::labels;
use crate::text::{glue, grouped, list};
use diskproof_model::block::{Block, TableRow};
use diskproof_model::measurement::{DeviceUse, EngineUse};
use diskproof_model::record::{AccountedRange, Record};
use diskproof_model::row::{PhaseKind, Row};
use diskproof_model::shell::quoted;
use diskproof_model::units::format_duration;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Describes how the run was measured, and how its figures can be reproduced.
pub(crate) fn blocks(record: &Record) -> Vec<Block> {
    let clock = &record.clock;
    let program = format!("{} {}", record.tool.name, record.tool.version);
    let comparable = format!(
        "version {}; only runs of the same version are comparable",
        record.method
    );
    let repeatable = format!(
        "{}; the same seed gives the same offsets and data",
        record.plan.seed
    );
    let readings = format!(
        "{}, steps of {} ns, {:.0} ns per reading",
        clock.source, clock.resolution_ns, clock.cost_ns
    );
    let mut blocks = vec![
        Block::fact("program", program),
        Block::fact("method", comparable),
        Block::fact("seed", repeatable),
        Block::fact("run", &record.run_id),
        Block::fact("started", &record.started),
        Block::fact("clock", readings),
        own_command_block(record),
    ];
    if !record.measurements.is_empty() {
        let title = "how each figure was measured";
        let rows = record
            .measurements
            .iter()
            .map(|measurement| measurement_row(record, measurement))
            .collect();
        blocks.push(Block::Heading(title.to_owned()));
        blocks.push(Block::words(title, COLUMNS.split(" | "), rows));
    }
    let title = "commands of other tools that reproduce the figures";
    blocks.extend(Block::headed(title, figure_command_blocks(record)));
    blocks
}

fn own_command_block(record: &Record) -> Block {
    let words: Vec<String> = record
        .plan
        .origin
        .argv()
        .iter()
        .map(|word| quoted(word))
        .collect();
    command_block("The command of this run".to_owned(), &words.join(" "))
}

/// Columns of the table of conditions, which has a row for each workload and target.
const COLUMNS: &str = "workload | target | operations | block, depth | span | page cache | at the \
                       same time | engine | measured for | proof";

fn measurement_row(record: &Record, measurement: &Row) -> TableRow {
    let data = &measurement.data;
    let workload = &data.workload;
    let mut target_path = String::new();
    if let Some(target) = record.targets.get(data.target)
        && record.targets.len() > 1
    {
        target_path = target.path.clone();
    }
    let operation = labels::operation(&workload.streams, workload.sync);
    let access = labels::access(&workload.access);
    let block = labels::block(workload.block_bytes, &workload.block_mix);
    let depth = labels::depth(workload.depth, workload.workers);
    let held = data.achieved_depth;
    TableRow::from(vec![
        workload.name.clone(),
        target_path,
        format!("{operation}, {access}"),
        format!("{block}, {depth} requested, {held:.1} held on average"),
        labels::span(data.span_start_bytes, data.span_bytes),
        labels::cache(data.cache.used).to_owned(),
        measurement.figures.together_with.join(", "),
        engine_text(&data.engine),
        duration_text(record, measurement),
        counters_text(&data.device),
    ])
}

fn engine_text(engine: &EngineUse) -> String {
    let name = engine.used.as_str();
    if engine.features.is_empty() {
        return name.to_owned();
    }
    format!("{name} ({})", engine.features.join(", "))
}

fn duration_text(record: &Record, measurement: &Row) -> String {
    let mut text = format_duration(measurement.data.wall_ns);
    let name = &measurement.data.workload.name;
    let planned = record
        .plan
        .workloads()
        .iter()
        .find(|workload| workload.name == *name);
    if let Some(workload) = planned {
        let warmup = format_duration(workload.warmup_ns);
        text.push_str(&format!(" after {warmup} of warm-up"));
    }
    if measurement.figures.settling_ns > 0 {
        let settling = format_duration(measurement.figures.settling_ns);
        let phase = if has_burst(measurement) {
            "a burst"
        } else {
            "in which the rate settled"
        };
        text.push_str(&format!("; without the first {settling}, {phase}"));
    }
    text
}

fn has_burst(measurement: &Row) -> bool {
    measurement
        .figures
        .phases
        .iter()
        .any(|phase| phase.name == PhaseKind::Burst)
}

fn counters_text(device: &DeviceUse) -> String {
    if let Some(share) = device.accounted {
        let disks = device.disks.join(", ");
        let bytes = if share >= MULTIPLE_SHARE_MIN {
            format!("show {share:.0} times the bytes")
        } else {
            format!("confirm {} of the bytes", share_text(share))
        };
        return format!("the kernel's counters of {disks} {bytes}");
    }
    match &device.unresolved {
        Some(why) => format!("unknown: {why}"),
        None => String::new(),
    }
}

/// The commands that reproduce figures and findings, each with what it reproduces.
pub(crate) fn command_blocks(record: &Record) -> Vec<Block> {
    let mut blocks = figure_command_blocks(record);
    for finding in &record.findings {
        if let Some(text) = &finding.reproduce {
            blocks.push(command_block(format!("finding {}", finding.code), text));
        }
    }
    blocks
}

fn command_block(what: String, text: &str) -> Block {
    Block::Command {
        what,
        text: text.to_owned(),
    }
}

/// The commands that reproduce figures. Workloads that ran together share one.
fn figure_command_blocks(record: &Record) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (index, measurement) in record.measurements.iter().enumerate() {
        let earlier = &record.measurements[..index];
        let text = &measurement.figures.reproduce;
        if text.is_empty() || is_printed_with_companion(earlier, measurement) {
            continue;
        }
        let mut names = vec![&measurement.data.workload.name];
        names.extend(&measurement.figures.together_with);
        let workloads = list(names);
        let label = match record.targets.get(measurement.data.target) {
            Some(target) if record.targets.len() > 1 => {
                format!("{workloads} on {}", target.path)
            }
            Some(_) | None => workloads,
        };
        blocks.push(command_block(label, text));
    }
    if let Some(surface) = record.surface()
        && !surface.figures.reproduce.is_empty()
    {
        let text = &surface.figures.reproduce;
        blocks.push(command_block("curve".to_owned(), text));
    }
    blocks
}

/// True if the command of a measurement was printed with an earlier one: workloads that ran
/// together have one command.
fn is_printed_with_companion(earlier: &[Row], measurement: &Row) -> bool {
    earlier.iter().any(|other| {
        other.data.target == measurement.data.target
            && measurement
                .figures
                .together_with
                .contains(&other.data.workload.name)
    })
}

/// How the disks were used by each measurement of a target, and by its survey.
fn device_uses(record: &Record, target: usize) -> Vec<&DeviceUse> {
    let mut uses = Vec::new();
    for measurement in &record.measurements {
        if measurement.data.target == target {
            uses.push(&measurement.data.device);
        }
    }
    if let Some(surface) = record.surface()
        && surface.data.target == target
    {
        uses.push(&surface.data.device);
    }
    uses
}

/// The evidence of the disks' counters for a target; `None` if nothing was measured on it.
pub(crate) fn proof_text(record: &Record, target: usize) -> Option<String> {
    let mut reasons = BTreeSet::new();
    for device in device_uses(record, target) {
        if let (None, Some(why)) = (device.accounted, &device.unresolved) {
            reasons.insert(why.as_str());
        }
    }
    let unknown = Vec::from_iter(reasons).join("; ");
    match confirmed_text(record, target) {
        Some(known) if unknown.is_empty() => Some(known),
        Some(known) => Some(format!("{known}; in part unknown: {unknown}")),
        None if unknown.is_empty() => None,
        None => Some(format!(
            "unknown, the disk's counters are not available: {unknown}"
        )),
    }
}

/// The share of the bytes that the counters confirm; `None` where they could not be read.
fn confirmed_text(record: &Record, target: usize) -> Option<String> {
    let AccountedRange { low, high } = record.accounted_range(target)?;
    let mut disks = BTreeSet::new();
    for device in device_uses(record, target) {
        disks.extend(device.disks.iter().map(String::as_str));
    }
    disks.extend(trim_counting_device(record, target));
    let names = Vec::from_iter(disks).join(", ");
    let bytes = if high >= MULTIPLE_SHARE_MIN {
        format!("show up to {high:.0} times the bytes")
    } else {
        format!("confirm {} of the bytes", range_text(low, high))
    };
    let why = if high > HIGH_SHARE && do_failures_explain(record, target, high) {
        "; requests that failed are in the counters, and not in the bytes"
    } else {
        difference_text(low, high)
    };
    Some(format!("the kernel's counters of {names} {bytes}{why}"))
}

/// True if requests that failed make up at least half of what the counters show beyond the bytes,
/// of which they show this multiple.
fn do_failures_explain(record: &Record, target: usize, shown: f64) -> bool {
    let (mut asked_bytes, mut failed_bytes) = (0.0, 0.0);
    for row in &record.measurements {
        if row.data.target == target {
            asked_bytes += row.data.asked.total() as f64;
            failed_bytes += row.errors_total() as f64 * f64::from(row.data.workload.block_bytes);
        }
    }
    failed_bytes >= 0.5 * (shown - 1.0) * asked_bytes
}

/// The device whose counters confirm the trims of a target; `None` where none was confirmed.
fn trim_counting_device(record: &Record, target: usize) -> Option<&str> {
    let is_counted = record.measurements.iter().any(|measurement| {
        measurement.data.target == target
            && measurement.data.asked.trim_bytes > 0
            && measurement.data.device.trim_bytes.is_some()
    });
    if !is_counted {
        return None;
    }
    let layer = record.targets.get(target)?.layers.first()?;
    Some(&layer.name)
}

/// If the counters confirm a smaller share of the bytes, the text says why. With a
/// value nearer to 1, it would explain the usual few percent of every run. Chosen, not measured.
const LOW_SHARE: f64 = 0.9;
/// If the counters show a larger share of the bytes, the text says why. As far from 1 as
/// [`LOW_SHARE`].
const HIGH_SHARE: f64 = 1.1;
/// From this share on, the text states a multiple: `1000 %` is hard to read.
const MULTIPLE_SHARE_MIN: f64 = 10.0;

/// Explains why the counters differ from what was measured, as the end of a sentence. Empty where
/// they agree.
fn difference_text(low: f64, high: f64) -> &'static str {
    let (is_less, is_more) = (low < LOW_SHARE, high > HIGH_SHARE);
    if is_less && is_more {
        "; less if a cache answered, more if the filesystem's journal or other programs also wrote"
    } else if is_less {
        "; a cache answered the rest"
    } else if is_more {
        "; the rest comes from the filesystem's journal and other programs"
    } else {
        ""
    }
}

/// `99.6 % to 100.3 %`
fn range_text(low: f64, high: f64) -> String {
    let low_text = share_text(low);
    let high_text = share_text(high);
    if low_text == high_text {
        low_text
    } else {
        format!("{low_text} to {high_text}")
    }
}

/// `99.9 %`: less than all is not rounded to all.
fn share_text(share: f64) -> String {
    let tenths = share * 1000.0;
    let tenths = if share < 1.0 {
        tenths.floor()
    } else {
        tenths.round()
    };
    glue(&format!("{:.1} %", tenths / 10.0))
}

/// Names the engines of a target: the most used one, then each other one with its workloads. `None`
/// where no workload was measured on it.
pub(crate) fn engines_text(record: &Record, target: usize) -> Option<String> {
    let mut uses = Vec::new();
    for measurement in &record.measurements {
        if measurement.data.target == target {
            let engine = measurement.data.engine.used;
            uses.push((engine, &measurement.data.workload.name));
        }
    }
    let mut engines = grouped(uses);
    engines.sort_by_key(|(_, names)| Reverse(names.len()));
    let ((most_used, _), others) = engines.split_first()?;
    let mut text = most_used.as_str().to_owned();
    for (engine, names) in others {
        text.push_str(&format!("; {} for {}", engine.as_str(), list(names)));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_of_the_counters_are_explained_beyond_a_tenth() {
        assert_eq!(difference_text(0.9, 1.1), "");
        assert_eq!(difference_text(0.89, 1.1), "; a cache answered the rest");
        assert!(difference_text(0.9, 1.11).starts_with("; the rest comes from"));
        assert!(difference_text(0.89, 1.11).starts_with("; less if"));
    }

    #[test]
    fn share_below_all_is_not_printed_as_all() {
        assert_eq!(share_text(0.9999), "99.9\u{a0}%");
        assert_eq!(share_text(1.0), "100.0\u{a0}%");
        assert_eq!(range_text(0.5, 0.5), "50.0\u{a0}%");
        assert_eq!(range_text(0.5, 1.25), "50.0\u{a0}% to 125.0\u{a0}%");
    }
}
