//! The top of the page: what was measured, the verdict, the expectations.

use super::blocks::blocks;
use super::charts;
use super::elements::{capitalized, finding_anchor, section, shown};
use crate::chart::Chart;
use crate::describe::findings::{advised_text, limits};
use crate::describe::run::{expectations, partial_text, request_text, start_text};
use crate::describe::target::{disk_text, model};
use crate::describe::verdict::worse;
use crate::labels;

use diskproof_model::digits::figure_text;
use diskproof_model::record::{Estimate, Record};
use diskproof_model::row::OpRow;
use diskproof_model::surface::{SeekPattern, SurfaceRecord};
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::{format_duration, format_latency, format_percent, format_throughput};
use diskproof_model::verdict::{Grade, RunVerdict, TrustLevel, UseGrade};
use maud::{Markup, html};

/// The section `verdict`, with the chart that answers the run's question where there is one.
pub(super) fn overview(record: &Record, hero: Option<&Chart>) -> Markup {
    html! {
        section.overview #verdict aria-labelledby="title" {
            p.kicker {
                (shown(&request_text(&record.plan))) " · " (shown(&start_text(&record.started)))
                " · " (format_duration(record.elapsed_ns()))
            }
            h1 #title { (answer(record)) }
            @for target in record.targets.iter() { (disk_lines(target)) }
            @if record.plan.questions.fit_for.is_none() { (note(record)) }
            @if let Some(why) = partial_text(record) {
                p.alert.failure { strong { "Partial run: " } (shown(&why)) }
            }
            @if let Some(verdict) = &record.verdict { (verdict_part(record, verdict)) }
            (tiles(record))
            @if let Some(chart) = hero { (charts::groups(std::slice::from_ref(chart))) }
        }
        @if !record.expectations.is_empty() {
            @let content = blocks(&expectations(&record.expectations), Some(record));
            // With --for the note states the source of each limit.
            @let sources = record.plan.questions.fit_for.as_ref().map(|_| note(record));
            @let content = html! { (content) @if let Some(sources) = sources { (sources) } };
            (section("expectations", "Promised and measured", &content))
        }
        (on_paper(record))
    }
}

fn note(record: &Record) -> Markup {
    html! {
        @if let Some(note) = &record.note { p.note { strong { "Note: " } (shown(note)) } }
    }
}

/// What the first printed page holds besides: findings and settings in short, so that this page
/// alone is a summary.
fn on_paper(record: &Record) -> Markup {
    const LINES_MAX: usize = 12;
    let findings = record.findings.iter().take(LINES_MAX);
    let more = record.findings.len().saturating_sub(LINES_MAX);
    let settings = record.advice.iter().take(LINES_MAX);
    let settings = settings.map(|advice| format!("{} {}", advice.setting, advised_text(advice)));
    html! {
        div.on-paper {
            h3 { "Findings" }
            @if record.findings.is_empty() { p { "None." } }
            ul {
                @for finding in findings {
                    li {
                        strong { (labels::severity(finding.severity)) ": " }
                        (shown(finding.heading()))
                    }
                }
                @if more > 0 { li { (more) " more" } }
            }
            @if let Some(first) = record.advice.first() {
                h3 { "Settings for " (first.server()) }
                ul { @for setting in settings { li { (shown(&setting)) } } }
            }
            p {
                "Findings, figures and charts follow. Evidence and commands are on the page itself."
            }
        }
    }
}

/// Whether the figures can be relied on, and a card for each use.
fn verdict_part(record: &Record, verdict: &RunVerdict) -> Markup {
    html! {
        (blocks(&limits(&record.findings).collect::<Vec<_>>(), Some(record)))
        (trust(verdict))
        @if !verdict.grades.is_empty() {
            ul.uses { @for grade in &verdict.grades { (use_card(record, grade)) } }
        }
    }
}

/// What the run found; without a verdict what was measured.
fn answer(record: &Record) -> String {
    match &record.verdict {
        Some(verdict) if !verdict.headline.is_empty() => shown(&verdict.headline),
        _ => subject(record),
    }
}

/// The disk's own name where there is one, else the path.
fn subject(record: &Record) -> String {
    let names = record.targets.iter().map(|target| {
        let model = target.disks().find_map(model);
        model.map_or_else(|| shown(&target.path), |model| shown(model.trim()))
    });
    let names: Vec<String> = names.collect();
    match names.as_slice() {
        [] => "Nothing".to_owned(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
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

fn trust(verdict: &RunVerdict) -> Markup {
    let (class, sign) = match verdict.trust.level {
        TrustLevel::Reliable => ("alert good", "✓"),
        TrustLevel::Doubtful => ("alert warning", "!"),
        TrustLevel::Unreliable => ("alert failure", "✕"),
    };
    html! {
        p class=(class) {
            span.sign aria-hidden="true" { (sign) } " " (shown(&verdict.trust.why))
            @if let Some(code) = &verdict.trust.finding {
                " " a href={"#" (finding_anchor(code))} { (shown(code)) }
            }
        }
        @if let Some(finding) = &verdict.weakness {
            p.alert.warning {
                span.sign aria-hidden="true" { "!" } " " (shown(&finding.title)) " "
                a href={"#" (finding_anchor(&finding.code))} { (shown(&finding.code)) }
            }
        }
        @for caveat in &verdict.caveats { p.caveat { (shown(caveat)) } }
    }
}

fn use_card(record: &Record, item: &UseGrade) -> Markup {
    let (class, sign) = match worse(item) {
        Some(Grade::Good) => ("use good", "●●●"),
        Some(Grade::Limited) => ("use limited", "●●○"),
        Some(Grade::Poor) => ("use poor", "●○○"),
        None => ("use limited", "○○○"),
    };
    let measured = record.measurements.get(item.measurement);
    let name = measured.map_or("", |m| m.data.workload.name.as_str());
    let target = measured.and_then(|m| record.targets.get(m.data.target));
    let target = target.filter(|_| record.targets.len() > 1);
    html! {
        li class=(class) {
            h3 {
                (capitalized(&item.name))
                @if let Some(target) = target { " on " (shown(&target.path)) }
            }
            p.grade { span.dots aria-hidden="true" { (sign) } " " (shown(&item.words())) }
            p.figure {
                strong { (item.figure.value_text()) } " "
                span.half { (labels::interval(&item.figure)) }
            }
            p.thresholds { (thresholds_text(item)) }
            p.source {
                "from " a href={"#figure-" (item.measurement)} { (shown(name)) }
                @if !item.doubts.is_empty() {
                    "; see "
                    @for (index, code) in item.doubts.iter().enumerate() {
                        @if index > 0 { ", " }
                        a href={"#" (finding_anchor(code))} { (shown(code)) }
                    }
                }
            }
        }
    }
}

/// Where the grades begin, and why there.
fn thresholds_text(item: &UseGrade) -> String {
    let thresholds = &item.thresholds;
    let text = |value: f64| figure_text(value, Some(value * 1e-3), &item.figure.unit);
    format!(
        "Poor below {}, good from {}. {}.",
        text(thresholds.limited_from),
        text(thresholds.good_from),
        shown(&capitalized(&thresholds.source))
    )
}

/// The figures that readers look for first, as tiles: the whole result in one screenshot.
fn tiles(record: &Record) -> Markup {
    /// More workloads have no room.
    const WORKLOADS_MAX: usize = 12;
    let all = &record.measurements;
    let surveyed: Vec<SurveyTile> = record
        .surface()
        .into_iter()
        .flat_map(survey_tiles)
        .collect();
    html! {
        @if (2..=WORKLOADS_MAX).contains(&all.len()) {
            dl.tiles.workloads { @for (index, m) in all.iter().enumerate() { div {
                @let ops = m.headline_ops();
                dt { a href={"#figure-" (index)} { (shown(&m.data.workload.name)) } }
                @if ops.is_empty() { (tile("", "", "not measured")) }
                @for (kind, op) in &ops {
                    (op_tile(m.rate(*op), if ops.len() > 1 { kind.as_str() } else { "" }, *op))
                }
            } } }
        }
        @if !surveyed.is_empty() {
            dl.tiles { @for (name, value, interval) in surveyed { div {
                dt { (name) } (tile(&value, "", &interval.unwrap_or_default()))
            } } }
        }
    }
}

fn op_tile(rate: &Estimate, name: &str, op: OpRow<'_>) -> Markup {
    let p99 = op.figures.latency.p99;
    let p99 = p99.map_or(String::new(), |ns| format!(" · p99 {}", format_latency(ns)));
    let interval = labels::interval(rate) + &p99;
    tile(&rate.value_text(), name, &interval)
}

fn tile(figure: &str, name: &str, interval: &str) -> Markup {
    html! {
        dd {
            @if !figure.is_empty() { strong { (figure) } }
            @if !name.is_empty() { " " span { (name) } }
            @if !interval.is_empty() { " " span.half { (interval) } }
        }
    }
}

/// A name, a figure, and how well it is known.
type SurveyTile = (&'static str, String, Option<String>);

fn survey_tiles(surface: &SurfaceRecord) -> Vec<SurveyTile> {
    let known = |name, figure: &Estimate| (name, figure.value_text(), figure.width_text());
    let mut tiles = Vec::new();
    if let Some(rate) = &surface.figures.rate {
        tiles.extend([
            ("Slowest position", format_throughput(rate.min), None),
            known("Average rate", &rate.average),
            ("Fastest position", format_throughput(rate.max), None),
        ]);
    }
    let seek = surface.figures.seeks.get(&SeekPattern::Random);
    tiles.extend(seek.map(|seek| known("Access time", &seek.mean)));
    let burst = surface.data.burst.as_ref();
    tiles.extend(burst.map(|burst| known("Burst rate", &burst.throughput)));
    let cpu = surface
        .figures
        .rate
        .as_ref()
        .map(|_| surface.figures.curve_cpu_share);
    tiles.extend(cpu.map(|share| ("CPU use", format_percent(share), None)));
    tiles
}
