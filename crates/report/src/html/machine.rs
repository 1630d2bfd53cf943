//! For the vendor: the disk, its firmware and health, the machine, the method, and the data.

use super::elements::{command, facts, section, shown, wide_table};
use crate::describe::health::health_facts;
use crate::describe::identity::{filesystem_facts, host_facts, layer_facts, target_facts};
use crate::describe::target::{layers_text, tested_text};
use crate::labels;
use diskproof_model::plan::Origin;
use diskproof_model::record::{MeasurementRecord, Record};
use diskproof_model::shell::quoted;
use diskproof_model::units::format_duration;
use maud::{Markup, html};

/// The section `disk`.
pub(super) fn machine(record: &Record) -> Markup {
    let content = html! {
        @for target in &record.targets {
            div.cards {
                @for layer in &target.layers { div.card {
                    h3 { (labels::layer_kind(layer.kind)) " " (shown(&layer.name)) }
                    (facts(&layer_facts(layer)))
                } }
                @for health in record.health.iter().filter(|health| target.disks().any(|disk| disk.name == health.disk)) { div.card { h3 { "Health of " (shown(&health.disk)) } (facts(&health_facts(health))) } }
                div.card { h3 { "Target" } (facts(&[("path", Some(target.path.clone())), ("tested", Some(tested_text(target, record.plan.scratch_bytes)))])) (facts(&target_facts(target)))
                    (facts(&[("layers", layers_text(target))]))
                }
                @if let Some(filesystem) = &target.filesystem { div.card { h3 { "Filesystem" } (facts(&[("mounted at", Some(filesystem.mount_point.clone()))])) (facts(&filesystem_facts(filesystem))) } }
            }
        }
        div.cards { div.card { h3 { "Machine" } (facts(&host_facts(&record.host))) } }
    };
    section("disk", "Disk and machine", &content)
}

/// The section `method`.
pub(super) fn method(record: &Record) -> Markup {
    let Origin::Native { argv, .. } = &record.plan.origin;
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
    let content = html! {
        (facts(&list))
        h3 { "The command of this run" }
        (command(&argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "), "this run"))
        @if !record.measurements.is_empty() {
            h3 { "How each figure was measured, and the command of another tool that reproduces it" }
            div.methods { @for m in &record.measurements { (measured(record, m)) } }
        }
        @if let Some(surface) = record.surface.as_ref().filter(|surface| !surface.reproduce.is_empty()) {
            article.measured { h4 { "Transfer rate by position" } (command(&surface.reproduce, "transfer rate by position")) }
        }
    };
    section("method", "Method", &content)
}

fn measured(record: &Record, m: &MeasurementRecord) -> Markup {
    let planned = record
        .plan
        .workloads
        .iter()
        .find(|workload| workload.name == m.workload.name);
    let warmup = planned.map_or(String::new(), |workload| {
        format!(" after {} of warm-up", format_duration(workload.warmup_ns))
    });
    let settling = if m.settling_ns > 0 {
        format!(
            "; without the first {}, in which the rate settled",
            format_duration(m.settling_ns)
        )
    } else {
        String::new()
    };
    let features = if m.engine.features.is_empty() {
        String::new()
    } else {
        format!(" ({})", m.engine.features.join(", "))
    };
    let depth = labels::depth(m.workload.depth, m.workload.workers);
    let accounted = m.device.accounted.map(|share| {
        format!(
            "the kernel's counters of {} confirm {:.1} % of the bytes",
            m.device.disks.join(", "),
            share * 100.0
        )
    });
    let list = [
        (
            "operations",
            Some(format!(
                "{}, {}",
                labels::operation(m.workload.read_permille, m.workload.sync),
                labels::access(&m.workload.access)
            )),
        ),
        (
            "block, depth",
            Some(format!(
                "{}, {depth} requested, {:.1} held on average",
                labels::block(m.workload.block_bytes, &m.workload.block_mix),
                m.achieved_depth
            )),
        ),
        (
            "span",
            Some(labels::span(
                m.workload.span_start_bytes,
                m.workload.span_bytes,
            )),
        ),
        (
            "page cache",
            Some(labels::cache(m.workload.cache).to_owned()),
        ),
        (
            "at the same time",
            Some(m.workload.together_with.join(", ")).filter(|names| !names.is_empty()),
        ),
        (
            "engine",
            Some(format!("{}{features}", m.workload.engine.as_str())),
        ),
        (
            "measured for",
            Some(format!("{}{warmup}{settling}", format_duration(m.wall_ns))),
        ),
        (
            "proof",
            accounted.or_else(|| {
                m.device
                    .unresolved
                    .as_ref()
                    .map(|why| format!("unknown: {why}"))
            }),
        ),
    ];
    let path = if record.targets.len() > 1 {
        record
            .targets
            .get(m.target)
            .map(|target| format!(" on {}", shown(&target.path)))
    } else {
        None
    };
    html! {
        article.measured {
            h4 { (shown(&m.workload.name)) (path.unwrap_or_default()) }
            (facts(&list))
            @if !m.reproduce.is_empty() { (command(&m.reproduce, &m.workload.name)) }
        }
    }
}

/// The section `data`.
pub(super) fn data(record: &Record) -> Markup {
    let content = html! {
        p { "This file holds the whole record: every setting, series and histogram. " code { "diskproof show THIS-FILE.html" } " prints it; other commands accept it as a saved run." }
        p.buttons {
            button #save-record.scripted type="button" { "Save the record as JSON" }
            " " button #save-charts.scripted type="button" { "Save all charts as CSV" }
        }
        noscript { p { "Scripts are off: charts are pictures, and this file's source holds the record." } }
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
            thead { tr { th scope="col" { "In the record (" (shown(&record.schema)) ")" } th.number scope="col" { "Number" } } }
            tbody { @for (name, n) in rows { tr { th scope="row" { (name) } td.number { (n) } } } }
        }
    }
}
