//! The top of the page of a run: what was measured, the verdict, the expectations, and the figures
//! that readers look for first.

use super::blocks::blocks;
use super::charts;
use super::elements::{capitalized, finding_anchor, section, shown, shown_whole};
use crate::chart::{Chart, target_among_several};
use crate::describe::expectations::expectation_blocks;
use crate::describe::findings::{advised_value_text, limit_facts};
use crate::describe::run::{partial_text, request_text, start_text};
use crate::describe::target::{disk_text, model_text};
use crate::describe::verdict::worse_grade;
use crate::labels;
use diskproof_model::digits::figure_text;
use diskproof_model::finding::Severity;
use diskproof_model::record::{Estimate, Record};
use diskproof_model::row::{OpRow, Row};
use diskproof_model::surface::{SeekPattern, SurfaceRecord};
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::{format_duration, format_latency, format_percent, format_throughput};
use diskproof_model::verdict::{Grade, LeadingFinding, RunVerdict, TrustLevel, UseGrade};
use maud::{Markup, html};

/// The sections `verdict` and `expectations`, the former with the chart that answers the run's
/// question where there is one; then the summary for paper.
pub(super) fn overview_section(record: &Record, answer_chart: Option<&Chart>) -> Markup {
    html! {
        section.overview #verdict aria-labelledby="title" {
            p.kicker {
                (shown(&request_text(&record.plan))) " · " (shown(&start_text(&record.started)))
                " · " (format_duration(record.elapsed_ns()))
            }
            h1 #title { (answer_text(record)) }
            @for target in record.targets.iter() { (disk_lines(target)) }
            @if record.plan.questions.fit_for.is_none() { (note_paragraph(record)) }
            @if let Some(why) = partial_text(record) {
                p.alert.failure { strong { "Partial run: " } (shown_whole(&why)) }
            }
            @if let Some(verdict) = &record.verdict { (verdict_markup(record, verdict)) }
            (tiles_markup(record))
            @if let Some(chart) = answer_chart { (charts::groups(std::slice::from_ref(chart))) }
        }
        @if !record.expectations.is_empty() {
            @let content = blocks(&expectation_blocks(&record.expectations), Some(record));
            @let content_and_sources = html! {
                (content)
                // With --for the note states the source of each limit.
                @if record.plan.questions.fit_for.is_some() { (note_paragraph(record)) }
            };
            (section("expectations", "Promised and measured", &content_and_sources))
        }
        (paper_summary(record))
    }
}

fn note_paragraph(record: &Record) -> Markup {
    html! {
        @if let Some(note) = &record.note { p.note { strong { "Note: " } (shown_whole(note)) } }
    }
}

/// Findings and settings in short, shown only on paper, so that the first printed page alone is a
/// summary.
fn paper_summary(record: &Record) -> Markup {
    /// Findings, and settings, of the summary. With more it would not fit the first page.
    const LINES_MAX: usize = 12;
    let findings = record.findings.iter().take(LINES_MAX);
    let more = record.findings.len().saturating_sub(LINES_MAX);
    let advice = record.advice.iter().take(LINES_MAX);
    html! {
        div.on-paper {
            h3 { "Findings" }
            @if record.findings.is_empty() { p { "None." } }
            ul {
                @for finding in findings {
                    li {
                        strong { (labels::severity(finding.severity)) ": " }
                        (shown_whole(finding.heading()))
                    }
                }
                @if more > 0 { li { (more) " more" } }
            }
            @if let Some(first) = record.advice.first() {
                h3 { "Settings for " (first.server()) }
                ul { @for advice in advice {
                    @let value = advised_value_text(advice);
                    li { (shown_whole(&format!("{} {value}", advice.setting))) }
                } }
            }
            p {
                "Findings, figures and charts follow. Evidence and commands are on the page itself."
            }
        }
    }
}

/// Whether the figures can be relied on, and a card for each use.
fn verdict_markup(record: &Record, verdict: &RunVerdict) -> Markup {
    html! {
        (blocks(&Vec::from_iter(limit_facts(&record.findings)), Some(record)))
        (trust_markup(verdict))
        @if !verdict.grades.is_empty() {
            ul.uses { @for grade in &verdict.grades { (use_card(record, grade)) } }
        }
    }
}

/// The headline of the verdict; without one, what was measured.
fn answer_text(record: &Record) -> String {
    match &record.verdict {
        Some(verdict) if !verdict.headline.is_empty() => shown_whole(&verdict.headline),
        _ => subject_text(record),
    }
}

/// Names the first target, and counts the others.
fn subject_text(record: &Record) -> String {
    match record.targets.as_slice() {
        [] => "Nothing".to_owned(),
        [one] => target_name(one),
        [first, rest @ ..] => format!("{} and {} more", target_name(first), rest.len()),
    }
}

/// The model of the disk; without one the path.
fn target_name(target: &TargetIdentity) -> String {
    match target.disks().find_map(model_text) {
        Some(model) => shown(model.trim()),
        None => shown(&target.path),
    }
}

fn disk_lines(target: &TargetIdentity) -> Markup {
    html! {
        p.disk {
            span.path { (shown(&target.path)) }
            @for disk in target.disks() { " on " (shown(&disk_text(disk))) }
            @if let Some(why) = &target.unresolved { " (disk unknown: " (shown_whole(why)) ")" }
        }
    }
}

/// What is wrong with the disk, and whether the figures can be relied on: a failure of the disk
/// comes first, and no green box stands beside it.
fn trust_markup(verdict: &RunVerdict) -> Markup {
    let failed = verdict
        .weakness
        .as_ref()
        .filter(|finding| finding.severity == Severity::Failure);
    let (class, sign) = match verdict.trust.level {
        TrustLevel::Reliable if failed.is_some() => ("alert note", "✓"),
        TrustLevel::Reliable => ("alert good", "✓"),
        TrustLevel::Doubtful => ("alert warning", "!"),
        TrustLevel::Unreliable => ("alert failure", "✕"),
    };
    html! {
        @if let Some(finding) = failed { (weakness_markup("alert failure", "✕", finding)) }
        p class=(class) {
            span.sign aria-hidden="true" { (sign) } " " (shown_whole(&verdict.trust.why))
            @if let Some(code) = &verdict.trust.finding {
                " " a href={"#" (finding_anchor(code))} { (shown(code)) }
            }
        }
        @if let Some(finding) = &verdict.weakness && failed.is_none() {
            (weakness_markup("alert warning", "!", finding))
        }
        @for caveat in &verdict.caveats { p.caveat { (shown_whole(caveat)) } }
    }
}

fn weakness_markup(class: &str, sign: &str, finding: &LeadingFinding) -> Markup {
    html! {
        p class=(class) {
            span.sign aria-hidden="true" { (sign) } " " (shown_whole(&finding.title)) " "
            a href={"#" (finding_anchor(&finding.code))} { (shown(&finding.code)) }
        }
    }
}

fn use_card(record: &Record, item: &UseGrade) -> Markup {
    let (class, sign) = match worse_grade(item) {
        Some(Grade::Good) => ("use good", "●●●"),
        Some(Grade::Limited) => ("use limited", "●●○"),
        Some(Grade::Poor) => ("use poor", "●○○"),
        None => ("use limited", "○○○"),
    };
    let mut name = "";
    let mut target = None;
    if let Some(row) = record.measurements.get(item.measurement) {
        name = &row.data.workload.name;
        target = target_among_several(record, row);
    }
    html! {
        li class=(class) {
            h3 {
                (capitalized(&item.name))
                @if let Some(target) = target { " on " (shown(&target.path)) }
            }
            p.grade { span.dots aria-hidden="true" { (sign) } " " (shown_whole(&item.words())) }
            p.figure {
                strong { (item.figure.value_text()) } " "
                span.half { (labels::interval(&item.figure)) }
            }
            p.thresholds { (thresholds_text(item)) }
            p.source {
                "from " a href={"#figure-" (item.measurement)} { (shown(name)) }
                @if !item.doubts.is_empty() {
                    "; see " (finding_links(&item.doubts))
                }
            }
        }
    }
}

/// The codes of findings, each with a link to it.
fn finding_links(codes: &[String]) -> Markup {
    html! {
        @for (index, code) in codes.iter().enumerate() {
            @if index > 0 { ", " }
            a href={"#" (finding_anchor(code))} { (shown(code)) }
        }
    }
}

/// Where the grades begin, and why there.
fn thresholds_text(item: &UseGrade) -> String {
    let thresholds = &item.thresholds;
    let unit = &item.figure.unit;
    format!(
        "Poor below {}, good from {}. {}.",
        threshold_text(thresholds.limited_from, unit),
        threshold_text(thresholds.good_from, unit),
        shown_whole(&capitalized(&thresholds.source))
    )
}

/// A threshold, which is exact. This relative half-width prints three to four digits of it.
fn threshold_text(value: f64, unit: &str) -> String {
    const THRESHOLD_WIDTH: f64 = 1e-3;
    figure_text(value, Some(value * THRESHOLD_WIDTH), unit)
}

/// The figures that readers look for first, as tiles: the whole result in one screenshot.
fn tiles_markup(record: &Record) -> Markup {
    /// With more workloads there are no tiles: they would fill the first screen.
    const WORKLOADS_MAX: usize = 12;
    let rows = &record.measurements;
    let mut surveyed = Vec::new();
    if let Some(surface) = record.surface() {
        surveyed = survey_tiles(surface);
    }
    html! {
        @if (2..=WORKLOADS_MAX).contains(&rows.len()) {
            dl.tiles.workloads { @for (index, row) in rows.iter().enumerate() {
                div {
                    dt { a href={"#figure-" (index)} { (shown(&row.data.workload.name)) } }
                    (op_tiles(row))
                }
            } }
        }
        @if !surveyed.is_empty() {
            dl.tiles { @for survey in surveyed {
                div { dt { (survey.name) } (tile(&survey.figure, "", &survey.interval)) }
            } }
        }
    }
}

/// A tile for each operation that a reader looks at.
fn op_tiles(row: &Row) -> Markup {
    let ops = row.headline_ops();
    html! {
        @if ops.is_empty() { (tile("", "", "not measured")) }
        @for (kind, op) in &ops {
            @let name = if ops.len() > 1 { kind.as_str() } else { "" };
            (op_tile(row.rate(*op), name, *op))
        }
    }
}

fn op_tile(rate: &Estimate, name: &str, op: OpRow<'_>) -> Markup {
    let mut interval = labels::interval(rate);
    if let Some(p99_ns) = op.figures.seen_latency().p99 {
        interval += &format!(" · p99 {}", format_latency(p99_ns));
    }
    tile(&rate.value_text(), name, &interval)
}

/// A figure, its name and its interval; empty parts are skipped.
fn tile(figure: &str, name: &str, interval: &str) -> Markup {
    html! {
        dd {
            @if !figure.is_empty() { strong { (figure) } }
            @if !name.is_empty() { " " span { (name) } }
            @if !interval.is_empty() { " " span.half { (interval) } }
        }
    }
}

/// A figure of a survey.
struct SurveyTile {
    name: &'static str,
    figure: String,
    /// Empty for a figure without an interval.
    interval: String,
}

impl SurveyTile {
    fn new(name: &'static str, figure: String) -> Self {
        Self {
            name,
            figure,
            interval: String::new(),
        }
    }

    fn from_estimate(name: &'static str, estimate: &Estimate) -> Self {
        Self {
            name,
            figure: estimate.value_text(),
            interval: estimate.width_text().unwrap_or_default(),
        }
    }
}

fn survey_tiles(surface: &SurfaceRecord) -> Vec<SurveyTile> {
    let figures = &surface.figures;
    let mut tiles = Vec::new();
    if let Some(rate) = &figures.rate {
        let slowest = format_throughput(rate.min);
        let fastest = format_throughput(rate.max);
        tiles.push(SurveyTile::new("Slowest position", slowest));
        tiles.push(SurveyTile::from_estimate("Average rate", &rate.average));
        tiles.push(SurveyTile::new("Fastest position", fastest));
    }
    if let Some(seek) = figures.seeks.get(&SeekPattern::Random) {
        tiles.push(SurveyTile::from_estimate("Access time", &seek.mean));
    }
    if let Some(burst) = &surface.data.burst {
        tiles.push(SurveyTile::from_estimate("Burst rate", &burst.throughput));
    }
    if figures.rate.is_some() {
        let cpu_use = format_percent(figures.curve_cpu_share);
        tiles.push(SurveyTile::new("CPU use", cpu_use));
    }
    tiles
}
