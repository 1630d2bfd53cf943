//! How a run was measured: the program, the conditions of each workload, the proof of its figures
//! by the disks' own counters, and the commands of other tools that reproduce them.

use crate::labels;
use crate::text::{glue, grouped, list};
use diskproof_model::block::{Block, TableRow};
use diskproof_model::measurement::DeviceUse;
use diskproof_model::record::Record;
use diskproof_model::row::{PhaseKind, Row};
use diskproof_model::shell::quoted;
use diskproof_model::units::format_duration;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The method.
pub(crate) fn blocks(record: &Record) -> Vec<Block> {
    let (method, seed, clock) = (record.method, record.plan.seed, &record.clock);
    let program = format!("{} {}", record.tool.name, record.tool.version);
    let comparable = format!("version {method}; only runs of the same version are comparable");
    let repeatable = format!("{seed}; the same seed gives the same offsets and data");
    let (source, step_ns, cost_ns) = (&clock.source, clock.resolution_ns, clock.cost_ns);
    let readings = format!("{source}, steps of {step_ns} ns, {cost_ns:.0} ns per reading");
    let mut blocks: Vec<Block> = Block::facts([
        ("program", program),
        ("method", comparable),
        ("seed", repeatable),
        ("run", record.run_id.clone()),
        ("started", record.started.clone()),
        ("clock", readings),
    ])
    .collect();
    let words = record.plan.origin.argv().iter().map(|word| quoted(word));
    blocks.push(Block::Command {
        what: "The command of this run".to_owned(),
        text: words.collect::<Vec<_>>().join(" "),
    });
    if !record.measurements.is_empty() {
        let title = "how each figure was measured";
        let rows = record.measurements.iter().map(|m| row(record, m)).collect();
        blocks.push(Block::Heading(title.to_owned()));
        blocks.push(Block::words(title, COLUMNS.split(" | "), rows));
    }
    let title = "commands of other tools that reproduce the figures";
    blocks.extend(Block::headed(title, figure_commands(record)));
    blocks
}

/// Columns of the conditions, of which each workload and target has a row.
const COLUMNS: &str = "workload | target | operations | block, depth | span | page cache | at the \
                       same time | engine | measured for | proof";

fn row(record: &Record, m: &Row) -> TableRow {
    let workload = &m.data.workload;
    let target = record.targets.get(m.data.target);
    let target = target.filter(|_| record.targets.len() > 1);
    let operation = labels::operation(&workload.streams, workload.sync);
    let access = labels::access(&workload.access);
    let block = labels::block(workload.block_bytes, &workload.block_mix);
    let depth = labels::depth(workload.depth, workload.workers);
    let held = m.data.achieved_depth;
    let mut engine = m.data.engine.used.as_str().to_owned();
    if !m.data.engine.features.is_empty() {
        engine += &format!(" ({})", m.data.engine.features.join(", "));
    }
    TableRow::from(vec![
        workload.name.clone(),
        target.map_or(String::new(), |target| target.path.clone()),
        format!("{operation}, {access}"),
        format!("{block}, {depth} requested, {held:.1} held on average"),
        labels::span(m.data.span_start_bytes, m.data.span_bytes),
        labels::cache(m.data.cache.used).to_owned(),
        m.figures.together_with.join(", "),
        engine,
        duration_text(record, m),
        counters_text(m),
    ])
}

fn duration_text(record: &Record, m: &Row) -> String {
    let mut text = format_duration(m.data.wall_ns);
    let mut planned = record.plan.workloads().iter();
    if let Some(workload) = planned.find(|workload| workload.name == m.data.workload.name) {
        text += &format!(" after {} of warm-up", format_duration(workload.warmup_ns));
    }
    if m.figures.settling_ns > 0 {
        let settling = format_duration(m.figures.settling_ns);
        let phase = if m
            .figures
            .phases
            .iter()
            .any(|phase| phase.name == PhaseKind::Burst)
        {
            "a burst"
        } else {
            "in which the rate settled"
        };
        text += &format!("; without the first {settling}, {phase}");
    }
    text
}

fn counters_text(m: &Row) -> String {
    let disks = m.data.device.disks.join(", ");
    match (m.data.device.accounted, &m.data.device.unresolved) {
        (Some(share), _) => {
            let percent = share * 100.0;
            format!("the kernel's counters of {disks} confirm {percent:.1} % of the bytes")
        }
        (None, Some(why)) => format!("unknown: {why}"),
        (None, None) => String::new(),
    }
}

/// The commands, each with what it reproduces.
pub(crate) fn commands(record: &Record) -> Vec<Block> {
    let mut blocks = figure_commands(record);
    let findings = record.findings.iter();
    blocks.extend(findings.filter_map(|finding| {
        let what = format!("finding {}", finding.code);
        Some(command(what, finding.reproduce.as_ref()?))
    }));
    blocks
}

fn command(what: String, text: &str) -> Block {
    let text = text.to_owned();
    Block::Command { what, text }
}

/// Those of the figures.
fn figure_commands(record: &Record) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (index, m) in record.measurements.iter().enumerate() {
        let others = &m.figures.together_with;
        // Workloads that ran together have one command, printed with the first of them.
        let mut before = record.measurements[..index].iter();
        let is_printed = before.any(|one| {
            one.data.target == m.data.target && others.contains(&one.data.workload.name)
        });
        if is_printed || m.figures.reproduce.is_empty() {
            continue;
        }
        let names = std::iter::once(&m.data.workload.name).chain(others);
        let name = list(names.cloned());
        let what = match record.targets.get(m.data.target) {
            Some(target) if record.targets.len() > 1 => format!("{name} on {}", target.path),
            _ => name,
        };
        blocks.push(command(what, &m.figures.reproduce));
    }
    let surface = record.surface().into_iter();
    let surface = surface.filter(|surface| !surface.figures.reproduce.is_empty());
    blocks.extend(surface.map(|of| command("curve".to_owned(), &of.figures.reproduce)));
    blocks
}

/// The evidence of the disks' counters for a target; `None` if nothing was measured on it.
pub(crate) fn proof_text(record: &Record, target: usize) -> Option<String> {
    let measured = record
        .measurements
        .iter()
        .filter(|m| m.data.target == target);
    let surveyed = record
        .surface()
        .into_iter()
        .filter(|s| s.data.target == target);
    let surveyed = surveyed.map(|surface| &surface.data.device);
    let devices: Vec<&DeviceUse> = measured.map(|m| &m.data.device).chain(surveyed).collect();
    let unknown = devices.iter().filter(|device| device.accounted.is_none());
    let unknown = unknown.filter_map(|one| one.unresolved.as_deref());
    let why = Vec::from_iter(unknown.collect::<BTreeSet<&str>>()).join("; ");
    let known = record.accounted_range(target).map(|range| {
        let disks = devices.iter().flat_map(|device| &device.disks);
        let mut disks: BTreeSet<&str> = disks.map(String::as_str).collect();
        disks.extend(trimmed_device(record, target));
        let disks = Vec::from_iter(disks).join(", ");
        let bytes = match range.1 {
            MANY.. => format!("show up to {:.0} times the bytes", range.1),
            _ => format!("confirm {} of the bytes", share_text(range)),
        };
        format!(
            "the kernel's counters of {disks} {bytes}{}",
            why_apart(range)
        )
    });
    match (known, why.as_str()) {
        (known, "") => known,
        (Some(known), why) => Some(format!("{known}; in part unknown: {why}")),
        (None, why) => Some(format!(
            "unknown, the disk's counters are not available: {why}"
        )),
    }
}

/// The device whose counters confirm trims.
fn trimmed_device(record: &Record, target: usize) -> Option<&str> {
    let mut measured = record
        .measurements
        .iter()
        .filter(|m| m.data.target == target);
    let is_counted =
        measured.any(|m| m.data.asked.trim_bytes > 0 && m.data.device.trim_bytes.is_some());
    let layer = record.targets.get(target)?.layers.first()?;
    is_counted.then_some(layer.name.as_str())
}

/// From these shares on the difference deserves a clause.
const LESS: f64 = 0.9;
const MORE: f64 = 1.1;
/// From here on a percentage is no help.
const MANY: f64 = 10.0;

/// Why the counters differ from what was measured, as the end of a sentence.
fn why_apart((low, high): (f64, f64)) -> &'static str {
    match (low < LESS, high > MORE) {
        (false, false) => "",
        (true, false) => "; a cache answered the rest",
        (false, true) => "; the rest comes from the filesystem's journal and other programs",
        (true, true) => {
            "; less if a cache answered, more if the filesystem's journal or other programs also \
             wrote"
        }
    }
}

/// `99.6 % to 100.3 %`
fn share_text((low, high): (f64, f64)) -> String {
    let [low, high] = [low, high].map(|share| glue(&format!("{:.1} %", share * 100.0)));
    if low == high {
        low
    } else {
        format!("{low} to {high}")
    }
}

/// The engines of a target: the most used one, then each other one with its workloads.
pub(crate) fn engines_text(record: &Record, target: usize) -> Option<String> {
    let own = record
        .measurements
        .iter()
        .filter(|m| m.data.target == target);
    let mut engines = grouped(own.map(|m| (m.data.engine.used, &m.data.workload.name)));
    engines.sort_by_key(|(_, names)| Reverse(names.len()));
    let (first, others) = engines.split_first()?;
    let mut text = first.0.as_str().to_owned();
    for (engine, names) in others {
        text += &format!("; {} for {}", engine.as_str(), list(names));
    }
    Some(text)
}
