//! The matrix of a sweep on the page: the answers, then a heat map for each operation.

use super::elements::{capitalized, shown, wide_table};
use crate::describe::sweep::{
    best_text, intervals_text, knee_text, limit_text, missing_texts, model_text, no_figure, sign,
    spans_text,
};
use crate::labels;
use diskproof_model::digits::rounded;
use diskproof_model::record::Record;
use diskproof_model::sweep::{CellState, SpanRate, SweepCell, SweepMatrix, SweepRecord};
use diskproof_model::units::{format_bytes, format_latency};
use maud::{Markup, html};

/// The darkest colour: `heat-5`.
const HEAT_MAX: f64 = 5.0;

/// The answers and the heat maps.
pub(super) fn sweep_figures(record: &Record, sweep: &SweepRecord) -> Markup {
    html! {
        @for matrix in &sweep.matrices { (matrix_part(matrix)) }
        @if !sweep.spans.is_empty() {
            p { strong { "Spans: " } (shown(&spans_text(record, sweep))) }
            (wide_table("Rate by span", &spans(&sweep.spans)))
        }
        @if let Some(intervals) = intervals_text(record) {
            p { "95 % intervals of the rates: " (shown(&intervals)) "." }
        }
        @let missing = missing_texts(record);
        @if !missing.is_empty() { ul { @for text in missing { li { (shown(&text)) } } } }
        p.legend {
            "Colours run from the lowest to the highest measured rate. ?: known only to ±10 % or \
             worse. ~, without a colour: predicted by the cost model. ×: impossible. –: not \
             measured. The figures of each cell follow."
        }
    }
}

fn matrix_part(matrix: &SweepMatrix) -> Markup {
    let words = matrix.operation.words();
    html! {
        h3 { (capitalized(words)) }
        p { strong { "Best: " } (best_text(matrix)) }
        @if let Some(knee) = &matrix.knee { p { strong { "Knee: " } (knee_text(knee)) } }
        @if let Some(limit) = &matrix.bandwidth_limit {
            p { strong { "Bandwidth: " } (limit_text(limit)) }
        }
        @if let Some(model) = &matrix.cost_model {
            p { strong { "Cost model: " } (model_text(model)) }
        }
        (wide_table(&format!("Operations per second: {words}"), &heat_map(matrix)))
    }
}

fn heat_map(matrix: &SweepMatrix) -> Markup {
    let mut depths: Vec<u32> = matrix.cells.iter().map(|cell| cell.depth).collect();
    depths.sort_unstable();
    depths.dedup();
    let measured = |cell: &&SweepCell| cell.state == CellState::Measured;
    let rates = matrix
        .cells
        .iter()
        .filter(measured)
        .filter_map(|cell| cell.iops.as_ref());
    let logs: Vec<f64> = rates
        .filter(|rate| rate.value > 0.0)
        .map(|rate| rate.value.ln())
        .collect();
    let low = logs.iter().copied().fold(f64::INFINITY, f64::min);
    let high = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let heat = |value: f64| {
        let share = (value.ln() - low) / (high - low).max(f64::MIN_POSITIVE);
        format!("number heat-{:.0}", (share * HEAT_MAX).clamp(0.0, HEAT_MAX))
    };
    html! {
        table.plain {
            caption { "Operations per second by block size and depth" }
            thead { tr {
                th scope="col" { "Block size" }
                @for depth in &depths { th.number scope="col" { "depth " (depth) } }
            } }
            tbody { @for row in matrix.cells.chunk_by(|a, b| a.block_bytes == b.block_bytes) { tr {
                th scope="row" { (format_bytes(u64::from(row[0].block_bytes))) }
                @for cell in row { (heat_cell(cell, &heat)) }
            } } }
        }
    }
}

fn heat_cell(cell: &SweepCell, heat: &dyn Fn(f64) -> String) -> Markup {
    let Some(rate) = cell.iops.as_ref().filter(|rate| rate.value > 0.0) else {
        let why = cell.why.as_deref().unwrap_or("not measured");
        return html! { td.number title=(shown(why)) { (no_figure(cell)) } };
    };
    let p99 = cell
        .latency_p99_ns
        .map(|ns| format!(", p99 {}", format_latency(ns)));
    let (class, title) = match cell.state {
        CellState::Predicted => (
            "number predicted".to_owned(),
            format!("predicted, {}", labels::interval(rate)),
        ),
        _ => (
            heat(rate.value),
            format!("{}{}", labels::interval(rate), p99.unwrap_or_default()),
        ),
    };
    html! {
        td class=(class) title=(title) {
            (rounded(rate.value, rate.half_width_95)) (sign(cell).to_string().trim_end())
        }
    }
}

fn spans(spans: &[SpanRate]) -> Markup {
    html! {
        table.plain {
            caption { "Single random reads within the first part of the target" }
            thead { tr {
                th scope="col" { "Span" }
                @for name in ["Reads/s", "± 95 %", "Mean", "Gain"] {
                    th.number scope="col" { (name) }
                }
            } }
            tbody { @for span in spans { tr {
                th scope="row" { (format_bytes(span.span_bytes)) }
                @let iops = span.iops.as_ref();
                @let rate = iops.map(|iops| rounded(iops.value, iops.half_width_95));
                @let mean = span.latency_mean_ns.map(|ns| format_latency(ns.max(0.0) as u64));
                td.number { (rate.unwrap_or_else(|| labels::UNKNOWN.to_owned())) }
                td.number { (iops.map(labels::interval).unwrap_or_default()) }
                td.number { (mean.unwrap_or_default()) }
                td.number { (span.gain.map(|gain| format!("{gain:.2} ×")).unwrap_or_default()) }
            } } }
        }
    }
}
