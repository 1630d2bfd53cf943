//! For the vendor: the disk, its firmware and health, the machine, the method, and the data.

use super::blocks::blocks;
use super::elements::{command, facts, section, shown, wide_table};
use crate::describe::identity::{host, sections};
use crate::describe::target::{layers_text, tested_text};
use crate::labels;
use diskproof_model::block::Block;
use diskproof_model::health::DiskHealth;
use diskproof_model::record::{MeasurementRecord, PhaseKind, Record};
use diskproof_model::shell::quoted;
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::format_duration;
use maud::{Markup, html};

/// The section `disk`.
pub(super) fn machine(record: &Record) -> Markup {
    let content = html! {
        @for target in &record.targets { (cards(&about(record, target))) }
        (cards(&[host(&record.host)]))
    };
    section("disk", "Disk and machine", &content)
}

fn cards(sections: &[Vec<Block>]) -> Markup {
    html! {
        div.cards { @for section in sections { div.card { (blocks(section, None)) } } }
    }
}

fn about(record: &Record, target: &TargetIdentity) -> Vec<Vec<Block>> {
    let is_own = |health: &&DiskHealth| target.disks().any(|disk| disk.name == health.disk);
    let health: Vec<&DiskHealth> = record.health.iter().filter(is_own).collect();
    let mut sections = sections(target, &health);
    sections[0].push(Block::fact("tested", tested_text(target, &record.plan)));
    sections[0].extend(layers_text(target).map(|text| Block::fact("layers", text)));
    sections
}

/// The section `method`.
pub(super) fn method(record: &Record) -> Markup {
    let argv = &record.plan.origin.argv;
    let list = [
        (
            "program",
            Some(format!("{} {}", record.tool.name, record.tool.version)),
        ),
        (
            "method",
            Some(format!(
                "version {}; only runs of the same version are comparable",
                record.method
            )),
        ),
        (
            "seed",
            Some(format!(
                "{}; the same seed gives the same offsets and data",
                record.plan.seed
            )),
        ),
        ("run", Some(record.run_id.clone())),
        ("started", Some(record.started.clone())),
        (
            "clock",
            Some(format!(
                "{}, steps of {} ns, {:.0} ns per reading",
                record.clock.source, record.clock.resolution_ns, record.clock.cost_ns
            )),
        ),
    ];
    let command_line = argv
        .iter()
        .map(|word| quoted(word))
        .collect::<Vec<_>>()
        .join(" ");
    let surface_command = record
        .surface
        .as_ref()
        .map_or("", |surface| &surface.reproduce);
    let content = html! {
        (facts(&list))
        h3 { "The command of this run" }
        (command(&command_line, "this run"))
        @if !record.measurements.is_empty() {
            h3 { "How each figure was measured, with a command of another tool that reproduces it" }
            div.methods { @for m in &record.measurements { (measured(record, m)) } }
        }
        @if !surface_command.is_empty() {
            article.measured {
                h4 { "Transfer rate by position" }
                (command(surface_command, "transfer rate by position"))
            }
        }
    };
    section("method", "Method", &content)
}

fn measured(record: &Record, m: &MeasurementRecord) -> Markup {
    let target = record
        .targets
        .get(m.target)
        .filter(|_| record.targets.len() > 1);
    html! {
        article.measured {
            h4 {
                (shown(&m.workload.name))
                @if let Some(target) = target { " on " (shown(&target.path)) }
            }
            (facts(&measured_facts(record, m)))
            @if !m.reproduce.is_empty() { (command(&m.reproduce, &m.workload.name)) }
        }
    }
}

fn measured_facts(record: &Record, m: &MeasurementRecord) -> [(&'static str, Option<String>); 8] {
    let workload = &m.workload;
    let operations = format!(
        "{}, {}",
        labels::operation(&workload.streams, workload.sync),
        labels::access(&workload.access)
    );
    let block_and_depth = format!(
        "{}, {} requested, {:.1} held on average",
        labels::block(workload.block_bytes, &workload.block_mix),
        labels::depth(workload.depth, workload.workers),
        m.achieved_depth
    );
    let span = labels::span(workload.span_start_bytes, workload.span_bytes);
    let together = workload.together_with.join(", ");
    [
        ("operations", Some(operations)),
        ("block, depth", Some(block_and_depth)),
        ("span", Some(span)),
        ("page cache", Some(labels::cache(workload.cache).to_owned())),
        (
            "at the same time",
            Some(together).filter(|names| !names.is_empty()),
        ),
        ("engine", Some(engine_text(m))),
        ("measured for", Some(duration_text(record, m))),
        ("proof", proof_text(m)),
    ]
}

fn engine_text(m: &MeasurementRecord) -> String {
    let engine = m.workload.engine.as_str();
    if m.engine.features.is_empty() {
        engine.to_owned()
    } else {
        format!("{engine} ({})", m.engine.features.join(", "))
    }
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

fn proof_text(m: &MeasurementRecord) -> Option<String> {
    if let Some(share) = m.device.accounted {
        let disks = m.device.disks.join(", ");
        let percent = share * 100.0;
        return Some(format!(
            "the kernel's counters of {disks} confirm {percent:.1} % of the bytes"
        ));
    }
    let why = m.device.unresolved.as_ref()?;
    Some(format!("unknown: {why}"))
}

/// The section `data`.
pub(super) fn data(record: &Record) -> Markup {
    let content = html! {
        p {
            "This file contains the whole record: every setting, series and histogram. "
            code { "diskproof show THIS-FILE.html" }
            " prints it; other commands accept it as a saved run."
            @if record.data.is_none() {
                " It does not keep what was measured, so it cannot be judged again: for that, save \
                 the run as JSON (" code { "-o FILE.json" } ")."
            }
        }
        p.buttons {
            button #save-record.scripted type="button" { "Save the record as JSON" }
            " " button #save-charts.scripted type="button" { "Save all charts as CSV" }
        }
        noscript {
            p {
                "Scripts are disabled: charts are pictures, and the source of this file contains \
                 the record."
            }
        }
        (wide_table("Contents of the record", &contents(record)))
    };
    section("data", "Data", &content)
}

fn contents(record: &Record) -> Markup {
    let rows = [
        ("measurements", record.measurements.len()),
        ("points of the transfer curve", record.curve.len()),
        ("accesses", record.access.len()),
        ("findings", record.findings.len()),
        ("settings", record.advice.len()),
        ("expectations", record.expectations.len()),
    ];
    html! {
        table.plain {
            thead {
                tr {
                    th scope="col" { "In the record (" (shown(&record.schema)) ")" }
                    th.number scope="col" { "Number" }
                }
            }
            tbody { @for (name, n) in rows { tr { th scope="row" { (name) } td.number { (n) } } } }
        }
    }
}
