//! The top of the page: what was measured, what the disk is good for, how far to trust it, what was
//! demanded.

use super::charts;
use super::elements::{finding_anchor, section, shown};
use crate::chart::Chart;
use crate::terminal::record::{asked_text, observed_text, start_text};
use crate::terminal::subject::{disk_text, model};
use crate::terminal::words::percent;
use crate::verdict::{Grade, Trust, Use, Verdict};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::Access;
use diskproof_model::record::{Estimate, MeasurementRecord, Record};
use diskproof_model::surface::{SeekPattern, SurfaceRecord};
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::{format_duration, format_latency, format_rate, format_throughput};
use maud::{Markup, html};

/// The section `verdict`, with the chart that answers the run's question where there is one.
pub(super) fn overview(record: &Record, verdict: &Verdict, hero: Option<&Chart>) -> Markup {
    html! {
        section.overview #verdict aria-labelledby="title" {
            p.kicker { (shown(&asked_text(&record.plan))) " · " (shown(&start_text(&record.started))) " · " (format_duration(record.elapsed_ns())) }
            h1 #title { (subject(record)) }
            @for target in record.targets.iter() { (disk_lines(target)) }
            @if let Some(note) = &record.note { p.note { strong { "Note: " } (shown(note)) } }
            @if record.partial || record.ended_early.is_some() { (partial(record)) }
            p.headline { (shown(&verdict.headline)) }
            (trust(verdict))
            @if !verdict.uses.is_empty() { ul.uses { @for use_ in &verdict.uses { (use_card(record, use_)) } } }
            @if let Some(surface) = &record.surface { (tiles(surface)) }
            @if let Some(chart) = hero { (charts::groups(std::slice::from_ref(chart))) }
        }
        @if !record.expectations.is_empty() { (expectations(record)) }
    }
}

/// The six figures that people know a disk by.
fn tiles(surface: &SurfaceRecord) -> Markup {
    let half = half_text;
    let mut tiles: Vec<(&str, String, Option<String>)> = Vec::new();
    if let Some(rate) = &surface.rate {
        tiles.push(("Slowest place", format_throughput(rate.min), None));
        tiles.push((
            "Average rate",
            format_throughput(rate.average.value),
            half(&rate.average),
        ));
        tiles.push(("Fastest place", format_throughput(rate.max), None));
    }
    if let Some(seek) = surface.seeks.get(&SeekPattern::Random) {
        tiles.push((
            "Access time",
            format_latency(seek.mean.value.max(0.0).round() as u64),
            half(&seek.mean),
        ));
    }
    if let Some(burst) = &surface.burst {
        tiles.push((
            "Burst rate",
            format_throughput(burst.throughput.value),
            half(&burst.throughput),
        ));
    }
    if surface.rate.is_some() {
        tiles.push(("CPU use", percent(surface.curve_cpu_share), None));
    }
    html! {
        @if !tiles.is_empty() { dl.tiles { @for (name, value, half) in tiles { div { dt { (name) } dd { strong { (value) } @if let Some(half) = half { " " span.half { (half) } } } } } } }
    }
}

/// The disk's own name where there is one, else the path.
fn subject(record: &Record) -> String {
    let names: Vec<String> = record.targets.iter().map(target_name).collect();
    match names.as_slice() {
        [] => "Nothing".to_owned(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

fn target_name(target: &TargetIdentity) -> String {
    let model = target.disks().find_map(model);
    model.map_or_else(|| shown(&target.path), |model| shown(model.trim()))
}

fn disk_lines(target: &TargetIdentity) -> Markup {
    html! {
        p.disk {
            span.path { (shown(&target.path)) }
            @for disk in target.disks() { " on " (shown(&disk_text(disk))) }
            @if let Some(why) = &target.unresolved { " (disk unknown: " (shown(why)) ")" }
        }
    }
}

fn partial(record: &Record) -> Markup {
    let why = record
        .ended_early
        .as_deref()
        .unwrap_or("the run ended before its plan did; what was measured until then follows");
    html! { p.alert.failure { strong { "Partial run: " } (shown(why)) } }
}

fn trust(verdict: &Verdict) -> Markup {
    let (class, sign) = match verdict.trust {
        Trust::Sound => ("alert good", "✓"),
        Trust::Doubtful => ("alert warning", "!"),
        Trust::Broken => ("alert failure", "✕"),
    };
    html! { p class=(class) { span.sign aria-hidden="true" { (sign) } " " (verdict.trust_why) @if verdict.trust != Trust::Sound { " " a href="#findings" { "See what, and what to do" } } } }
}

/// The figure that a use stands on, and its interval.
fn figure(m: &MeasurementRecord) -> Option<(String, Option<String>)> {
    let (kind, op) = m.headline_ops().into_iter().next()?;
    let (estimate, text) = match kind {
        OpKind::Commit => (
            &op.iops,
            format!("{} commits/s", format_rate(op.iops.value)),
        ),
        _ if m.workload.access == Access::Sequential => {
            (&op.throughput, format_throughput(op.throughput.value))
        }
        _ => (&op.iops, format!("{} IOPS", format_rate(op.iops.value))),
    };
    Some((text, half_text(estimate)))
}

fn half_text(estimate: &Estimate) -> Option<String> {
    estimate
        .relative_half_width()
        .map(|width| format!("± {}", percent(width)))
}

fn use_card(record: &Record, item: &Use) -> Markup {
    let (class, sign) = match item.grade {
        Grade::Good => ("use good", "●●●"),
        Grade::Limited => ("use limited", "●●○"),
        Grade::Poor => ("use poor", "●○○"),
    };
    let measured = record.measurements.get(item.measurement);
    let name = measured.map_or("", |m| m.workload.name.as_str());
    html! {
        li class=(class) {
            h3 { (capitalized(item.name)) }
            p.grade { span.dots aria-hidden="true" { (sign) } " " (item.grade.as_str()) }
            @if let Some((figure, half)) = measured.and_then(figure) { p.figure { strong { (figure) } @if let Some(half) = half { " " span.half { (half) } } } }
            p { (item.why) }
            p.source {
                "from " a href={"#figure-" (item.measurement)} { (shown(name)) }
                @if !item.doubts.is_empty() { "; in doubt: " @for (index, code) in item.doubts.iter().enumerate() {
                    @if index > 0 { ", " }
                    a href={"#" (finding_anchor(code))} { (shown(code)) }
                } }
            }
        }
    }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        format!("{}{}", first.to_uppercase(), letters.as_str())
    })
}

fn expectations(record: &Record) -> Markup {
    let table = html! {
        table.plain {
            thead { tr { th scope="col" { "Outcome" } th scope="col" { "Demanded" } th scope="col" { "Measured" } } }
            tbody { @for expectation in &record.expectations { tr {
                td { @if expectation.met { span.tag.good { "✓ met" } } @else { span.tag.failure { "✕ missed" } } }
                td { code { (shown(&expectation.expression)) } }
                td { @match expectation.observed { Some(value) => (observed_text(&expectation.expression, value)), None => "not measured" } }
            } } }
        }
    };
    section(
        "expectations",
        "Expectations",
        &super::elements::wide_table("Expectations", &table),
    )
}
