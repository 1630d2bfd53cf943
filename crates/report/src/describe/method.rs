//! How a run was measured: the program, the conditions of each workload, and the commands of other
//! tools that reproduce the figures.

use super::commands;
use crate::labels;
use diskproof_model::block::{Block, Row};
use diskproof_model::record::{MeasurementRecord, PhaseKind, Record};
use diskproof_model::shell::quoted;
use diskproof_model::units::format_duration;

/// The method.
pub(crate) fn blocks(record: &Record) -> Vec<Block> {
    let (method, seed, clock) = (record.method, record.plan.seed, &record.clock);
    let program = format!("{} {}", record.tool.name, record.tool.version);
    let comparable = format!("version {method}; only runs of the same version are comparable");
    let repeatable = format!("{seed}; the same seed gives the same offsets and data");
    let readings = format!(
        "{}, steps of {} ns, {:.0} ns per reading",
        clock.source, clock.resolution_ns, clock.cost_ns
    );
    let mut blocks: Vec<Block> = Block::facts([
        ("program", program),
        ("method", comparable),
        ("seed", repeatable),
        ("run", record.run_id.clone()),
        ("started", record.started.clone()),
        ("clock", readings),
    ])
    .collect();
    let words = record.plan.origin.argv.iter().map(|word| quoted(word));
    blocks.push(Block::Command {
        what: "The command of this run".to_owned(),
        text: words.collect::<Vec<_>>().join(" "),
    });
    if !record.measurements.is_empty() {
        let title = "how each figure was measured";
        let rows = record.measurements.iter().map(|m| row(record, m)).collect();
        blocks.push(Block::Heading(title.to_owned()));
        blocks.push(Block::words(title, COLUMNS, rows));
    }
    let title = "commands of other tools that reproduce the figures";
    blocks.extend(Block::headed(title, commands::of_figures(record)));
    blocks
}

/// Columns of the conditions, of which each workload and target has a row.
const COLUMNS: [&str; 10] = [
    "workload",
    "target",
    "operations",
    "block, depth",
    "span",
    "page cache",
    "at the same time",
    "engine",
    "measured for",
    "proof",
];

fn row(record: &Record, m: &MeasurementRecord) -> Row {
    let workload = &m.workload;
    let target = record.targets.get(m.target);
    let target = target.filter(|_| record.targets.len() > 1);
    let operation = labels::operation(&workload.streams, workload.sync);
    let access = labels::access(&workload.access);
    let block = labels::block(workload.block_bytes, &workload.block_mix);
    let depth = labels::depth(workload.depth, workload.workers);
    let held = m.achieved_depth;
    let mut engine = workload.engine.as_str().to_owned();
    if !m.engine.features.is_empty() {
        engine += &format!(" ({})", m.engine.features.join(", "));
    }
    Row::from(vec![
        workload.name.clone(),
        target.map_or(String::new(), |target| target.path.clone()),
        format!("{operation}, {access}"),
        format!("{block}, {depth} requested, {held:.1} held on average"),
        labels::span(workload.span_start_bytes, workload.span_bytes),
        labels::cache(workload.cache).to_owned(),
        workload.together_with.join(", "),
        engine,
        duration_text(record, m),
        proof_text(m),
    ])
}

fn duration_text(record: &Record, m: &MeasurementRecord) -> String {
    let mut text = format_duration(m.wall_ns);
    let mut planned = record.plan.workloads.iter();
    if let Some(workload) = planned.find(|workload| workload.name == m.workload.name) {
        text += &format!(" after {} of warm-up", format_duration(workload.warmup_ns));
    }
    if m.settling_ns > 0 {
        let settling = format_duration(m.settling_ns);
        let phase = if m.phases.iter().any(|phase| phase.name == PhaseKind::Burst) {
            "a burst"
        } else {
            "in which the rate settled"
        };
        text += &format!("; without the first {settling}, {phase}");
    }
    text
}

fn proof_text(m: &MeasurementRecord) -> String {
    let disks = m.device.disks.join(", ");
    match (m.device.accounted, &m.device.unresolved) {
        (Some(share), _) => {
            let percent = share * 100.0;
            format!("the kernel's counters of {disks} confirm {percent:.1} % of the bytes")
        }
        (None, Some(why)) => format!("unknown: {why}"),
        (None, None) => String::new(),
    }
}
