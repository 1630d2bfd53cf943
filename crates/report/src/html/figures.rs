//! Every figure with its error bar, its conditions and the remarks on it.

use super::blocks::blocks;
use super::elements::{finding_anchor, section, shown, wide_table};
use super::sweep::sweep_figures;
use crate::describe::figures::{conditions, legend, limited_by_text, shown_latency, shown_ops};
use crate::describe::remarks::remarks;
use crate::describe::run::skipped;
use crate::describe::{self, inserts};
use crate::labels;
use diskproof_model::finding::{Finding, Severity};
use diskproof_model::measurement::OpKind;
use diskproof_model::record::{Estimate, MeasurementRecord, OpRecord, Record};
use diskproof_model::units::format_percent;
use maud::{Markup, html};

/// The relative half-width at which an error bar's scale ends; wider intervals are dashed.
const BAR_SCALE: f64 = 0.5;

/// The section `figures`.
pub(super) fn figures(record: &Record) -> Markup {
    let targets = record
        .measurements
        .iter()
        .map(|m| m.target + 1)
        .max()
        .unwrap_or(0);
    let content = html! {
        @let is_of_files = record.files.as_ref().is_some_and(|files| !files.steps.is_empty());
        @let is_unmeasured = record.measurements.is_empty() && record.surface.is_none();
        @if is_unmeasured && !is_of_files && record.observed.is_none() {
            p.alert.failure { "Nothing was measured." }
        }
        (blocks(&describe::parts(record)))
        @if let Some(sweep) = &record.sweep { (sweep_figures(record, sweep)) }
        @for target in 0..targets { (target_figures(record, target, targets)) }
        @if record.sweep.is_none() { (gaps(record)) }
        @if let Some(postgres) = &record.postgres { (blocks(&inserts::blocks(postgres))) }
    };
    section("figures", "Figures", &content)
}

fn target_figures(record: &Record, target: usize, targets: usize) -> Markup {
    let own: Vec<(usize, &MeasurementRecord)> = record
        .measurements
        .iter()
        .enumerate()
        .filter(|(_, m)| m.target == target)
        .collect();
    let path = record
        .targets
        .get(target)
        .map_or(String::new(), |t| shown(&t.path));
    let label = if targets > 1 {
        format!("Figures of {path}")
    } else {
        "Figures".to_owned()
    };
    let measurements: Vec<&MeasurementRecord> = own.iter().map(|(_, m)| *m).collect();
    html! {
        @if targets > 1 { h3 { (path) } } @else if record.surface.is_some() { h3 { "Workloads" } }
        (wide_table(&label, &table(record, &own)))
        p.legend {
            (unbroken_dash(&legend(&measurements)))
            " The bar shows the 95 % interval; its scale ends at ±" (format_percent(BAR_SCALE)) "."
        }
    }
}

/// Browsers break a line between a dash and a no-break space; a word joiner (U+2060) forbids it.
fn unbroken_dash(text: &str) -> String {
    text.replace("–\u{a0}", "–\u{2060}\u{a0}")
}

const FIGURE_COLUMNS: [&str; 10] = [
    "MB/s",
    "Mean",
    "p50",
    "p90",
    "p99",
    "p99.9",
    "p99.99",
    "Max",
    "In flight",
    "CPU",
];

fn table(record: &Record, own: &[(usize, &MeasurementRecord)]) -> Markup {
    html! {
        table.figures {
            thead { tr {
                th scope="col" { "Workload" }
                @for name in ["Rate", "± 95 %"] { th.number scope="col" { (name) } }
                th.interval scope="col" { span.unseen { "95 % interval drawn" } }
                @for name in FIGURE_COLUMNS { th.number scope="col" { (name) } }
            } }
            @for (index, m) in own { (measurement(record, *index, m)) }
        }
    }
}

fn measurement(record: &Record, index: usize, m: &MeasurementRecord) -> Markup {
    let doubts = doubts(record, index);
    html! {
        tbody id={"figure-" (index)} {
            tr.head { th colspan="14" scope="rowgroup" { div.pinned {
                strong { (shown(&m.workload.name)) } " "
                span.conditions { (shown(&conditions(&m.workload))) }
                @for finding in &doubts {
                    " "
                    a.tag.warning href={"#" (finding_anchor(&finding.code))} {
                        "! " (shown(&finding.code))
                    }
                }
            } } }
            @for (row, (kind, op)) in shown_ops(m).into_iter().enumerate() {
                (figure(m, kind, op, row == 0))
            }
            @if shown_ops(m).is_empty() { tr { td colspan="14" { "Nothing was measured." } } }
            @if let Some(limited) = &m.limited_by {
                tr.remark { td colspan="14" { div.pinned { (shown(&limited_by_text(limited))) } } }
            }
            @for remark in remarks(m) {
                tr.remark { td colspan="14" { div.pinned { (shown(&remark.text)) } } }
            }
        }
    }
}

fn figure(m: &MeasurementRecord, kind: OpKind, op: &OpRecord, is_first: bool) -> Markup {
    let latency = shown_latency(op);
    let percentile = labels::latency;
    let times = [
        percentile((op.count > 0).then_some(latency.mean.round() as u64)),
        percentile(latency.p50),
        percentile(latency.p90),
        percentile(latency.p99),
        percentile(latency.p99_9),
        percentile(latency.p99_99),
        percentile((op.count > 0).then_some(latency.max)),
    ];
    html! {
        tr {
            th.operation scope="row" { (kind.plural()) "/s" }
            td.number { strong { (op.iops.value_text().trim_end_matches("/s")) } }
            td.number { (labels::interval(&op.iops)) }
            td.drawn.interval { (error_bar(&op.iops)) }
            td.number { (labels::megabytes(&op.throughput)) }
            @for time in times { td.number { (time) } }
            td.number { @if is_first { (format!("{:.1}", m.achieved_depth)) } }
            td.number { @if is_first { (format_percent(m.cpu_share())) } }
        }
    }
}

/// The interval as a picture. The cell next to it holds the text, so screen readers skip the
/// picture.
fn error_bar(estimate: &Estimate) -> Markup {
    let Some(width) = estimate.relative_half_width() else {
        return html! {};
    };
    let reach = width.min(BAR_SCALE) / BAR_SCALE * 48.0;
    let (left, right) = (
        format!("{:.1}", 50.0 - reach),
        format!("{:.1}", 50.0 + reach),
    );
    let cap = if width > BAR_SCALE { "3 3" } else { "none" };
    html! {
        svg.errorbar viewBox="0 0 100 16" width="100" height="16" aria-hidden="true"
            focusable="false"
        {
            line.scale x1="2" x2="98" y1="8" y2="8" {}
            line.reach x1=(left) x2=(right) y1="8" y2="8" stroke-dasharray=(cap) {}
            line.reach x1=(left) x2=(left) y1="3" y2="13" {}
            line.reach x1=(right) x2=(right) y1="3" y2="13" {}
            circle.value cx="50" cy="8" r="3" {}
        }
    }
}

/// The warnings and failures that concern a measurement.
fn doubts(record: &Record, index: usize) -> Vec<&Finding> {
    let findings = record.findings.iter();
    findings
        .filter(|finding| finding.severity >= Severity::Warning && finding.concerns(index))
        .collect()
}

/// Planned workloads that did not run, and skipped ones.
fn gaps(record: &Record) -> Markup {
    let is_measured = |name: &str| record.measurements.iter().any(|m| m.workload.name == name);
    let planned = record.plan.workloads.iter();
    let missing: Vec<String> = planned
        .filter(|w| !is_measured(&w.name))
        .map(|w| shown(&w.name))
        .collect();
    html! {
        @if !missing.is_empty() { p.alert.warning { strong { "Not run: " } (missing.join(", ")) } }
        @if !record.plan.skipped.is_empty() {
            p { "Skipped:" }
            ul {
                @for (why, names) in skipped(&record.plan) {
                    li { (shown(&names.join(", "))) ": " (shown(why)) }
                }
            }
        }
    }
}
