//! The matrix of a sweep on the result page: the answers first, then a heat map of the rate and a
//! table of latencies for each operation. Readable in 80 columns and without colour.

use super::facts::fact;
use super::sweep_view::write_view;
use crate::describe::sweep::{
    best_text, intervals_text, knee_text, limit_text, missing_texts, model_text, no_figure, sign,
    spans_text,
};
use crate::page::{Page, StyledText, TextStyle};
use crate::text::columns;
use diskproof_model::digits::rounded;
use diskproof_model::record::Record;
use diskproof_model::sweep::{CellState, SweepCell, SweepMatrix, SweepRecord, size_word};
use diskproof_model::units::{format_bytes, format_latency};
use std::io;

/// Column at which the figures of a row begin, behind `1023k`.
const LABEL: usize = 6;
/// Shade, figure of six columns, sign.
const CELL: usize = 8;
const FIGURE: usize = 6;
/// From the lowest to the highest rate of a matrix, in steps of equal ratio.
const SHADES: [&str; 5] = [" ", "░", "▒", "▓", "█"];
/// Latencies of a table are in microseconds if the median is below this, else in milliseconds.
const MICROSECONDS_BELOW_NS: f64 = 1e6;

/// Writes everything about a sweep.
pub(super) fn write_sweep(
    page: &mut Page<'_>,
    record: &Record,
    sweep: &SweepRecord,
) -> io::Result<()> {
    let view = record.plan.sweep.as_ref().and_then(|plan| plan.view);
    if let Some(view) = view {
        write_view(page, record, sweep, view)?;
    }
    for matrix in &sweep.matrices {
        page.blank()?;
        write_answers(page, matrix)?;
    }
    // A view has the figures of a single depth already.
    let is_shown = |matrix: &&SweepMatrix| view.is_none() || axes(matrix).1.len() > 1;
    for matrix in sweep.matrices.iter().filter(is_shown) {
        write_map(page, matrix)?;
        write_latencies(page, matrix)?;
    }
    write_spans(page, record, sweep)?;
    page.blank()?;
    if let Some(intervals) = intervals_text(record) {
        fact(page, "± 95 %", &intervals)?;
    }
    for text in missing_texts(record) {
        fact(page, "", &text)?;
    }
    if !sweep.matrices.iter().any(|matrix| is_shown(&matrix)) {
        return Ok(());
    }
    let legend = "Shades from the lowest (blank) to the highest measured rate (█). ?: known only \
                  to ±10 % or worse. ~, without a shade: predicted by the cost model. ×: \
                  impossible. –: not measured, or fewer than ten samples beyond it. Every cell \
                  with its interval: -o FILE.csv";
    page.text(TextStyle::Dim.of(legend))
}

/// What a reader decides by.
fn write_answers(page: &mut Page<'_>, matrix: &SweepMatrix) -> io::Result<()> {
    page.text(TextStyle::Bold.of(matrix.operation.words()))?;
    fact(page, "best", &best_text(matrix))?;
    let unknown = || "not found with these sizes, depths and intervals".to_owned();
    let (sizes, depths) = axes(matrix);
    if depths.len() > 1 {
        let knee = matrix.knee.as_ref().map_or_else(unknown, knee_text);
        fact(page, "knee", &knee)?;
    }
    if sizes.len() > 1 {
        let limit = matrix.bandwidth_limit.as_ref();
        fact(page, "rate", &limit.map_or_else(unknown, limit_text))?;
    }
    match &matrix.cost_model {
        Some(model) => fact(page, "cost", &model_text(model)),
        None => Ok(()),
    }
}

/// The sizes and depths of a matrix, in order.
fn axes(matrix: &SweepMatrix) -> (Vec<u32>, Vec<u32>) {
    let (mut sizes, mut depths) = (Vec::new(), Vec::new());
    for cell in &matrix.cells {
        if !sizes.contains(&cell.block_bytes) {
            sizes.push(cell.block_bytes);
        }
        if !depths.contains(&cell.depth) {
            depths.push(cell.depth);
        }
    }
    (sizes, depths)
}

/// A figure of a cell, and its shade.
struct HeatCell<'a> {
    shade: &'static str,
    figure: String,
    cell: &'a SweepCell,
}

impl HeatCell<'_> {
    fn pieces(&self) -> [StyledText<'_>; 2] {
        let pad = " ".repeat(FIGURE.saturating_sub(columns(&self.figure)));
        let has_figure = self.figure.starts_with(|c: char| c.is_ascii_digit());
        let sign = if has_figure { sign(self.cell) } else { ' ' };
        let text = format!("{pad}{}{sign}", self.figure);
        let style = match self.cell.state {
            CellState::Measured => TextStyle::Plain,
            _ => TextStyle::Dim,
        };
        [TextStyle::Note.of(self.shade), style.of(text)]
    }
}

/// A table of sizes and depths, in as many parts as the width requires.
fn write_table(
    page: &mut Page<'_>,
    matrix: &SweepMatrix,
    title: &str,
    of: &dyn Fn(&SweepCell) -> (&'static str, String),
) -> io::Result<()> {
    let (sizes, depths) = axes(matrix);
    let per_row = (page.width().saturating_sub(LABEL) / CELL).max(1);
    page.blank()?;
    page.text(TextStyle::Bold.of(title))?;
    for part in depths.chunks(per_row) {
        let heading: String = part
            .iter()
            .map(|depth| format!("{:>7} ", format!("d{depth}")))
            .collect();
        page.unbroken(TextStyle::Dim.of(format!("{:LABEL$}{}", "", heading.trim_end())))?;
        for size in &sizes {
            let row: Vec<HeatCell<'_>> = part
                .iter()
                .filter_map(|depth| {
                    let cell = matrix.cell(*size, *depth)?;
                    let (shade, figure) = of(cell);
                    Some(HeatCell {
                        shade,
                        figure,
                        cell,
                    })
                })
                .collect();
            let label = format!("{:<LABEL$}", size_word(u64::from(*size)));
            let mut pieces = vec![TextStyle::Dim.of(label)];
            pieces.extend(row.iter().flat_map(HeatCell::pieces));
            page.pieces(&pieces)?;
        }
    }
    Ok(())
}

/// The heat map of the rate.
fn write_map(page: &mut Page<'_>, matrix: &SweepMatrix) -> io::Result<()> {
    let is_measured = |cell: &SweepCell| cell.state == CellState::Measured;
    let measured = matrix.cells.iter().filter(|cell| is_measured(cell));
    let known = measured.filter_map(|cell| cell.iops.as_ref());
    let logs: Vec<f64> = known
        .filter(|rate| rate.value > 0.0)
        .map(|rate| rate.value.ln())
        .collect();
    let low = logs.iter().copied().fold(f64::INFINITY, f64::min);
    let high = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let title = format!(
        "{}: operations per second by block size and depth",
        matrix.operation.words()
    );
    write_table(page, matrix, &title, &|cell| {
        let Some(rate) = cell.iops.as_ref().filter(|rate| rate.value > 0.0) else {
            return (" ", no_figure(cell).to_owned());
        };
        let share = (rate.value.ln() - low) / (high - low).max(f64::MIN_POSITIVE);
        let shade = match is_measured(cell) {
            true => SHADES[((share * SHADES.len() as f64) as usize).min(SHADES.len() - 1)],
            false => " ",
        };
        (shade, short_rate(rate.value, rate.half_width_95))
    })
}

/// A rate in at most six columns: `83`, `8.31k`, `66.4k`, `1.23M`.
fn short_rate(value: f64, half_width: Option<f64>) -> String {
    let (scale, unit) = match value {
        v if v >= 999_500.0 => (1e6, "M"),
        v if v >= 999.5 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let text = rounded(value / scale, half_width.map(|half| half / scale));
    format!("{text}{unit}")
}

/// The 99th percentiles of the latency.
fn write_latencies(page: &mut Page<'_>, matrix: &SweepMatrix) -> io::Result<()> {
    let mut means: Vec<f64> = matrix
        .cells
        .iter()
        .filter_map(|cell| cell.latency_mean_ns)
        .collect();
    means.sort_by(f64::total_cmp);
    let Some(median) = means.get(means.len() / 2) else {
        return Ok(());
    };
    let (scale, unit) = match *median < MICROSECONDS_BELOW_NS {
        true => (1e3, "µs"),
        false => (1e6, "ms"),
    };
    if matrix
        .cells
        .iter()
        .all(|cell| cell.latency_p99_ns.is_none())
    {
        page.blank()?;
        let why = format!(
            "{}: no cell has enough requests for a 99th percentile",
            matrix.operation.words()
        );
        return page.text(TextStyle::Dim.of(why));
    }
    let title = format!(
        "{}: 99th percentile of the latency in {unit}",
        matrix.operation.words()
    );
    write_table(page, matrix, &title, &|cell| {
        let text = cell.latency_p99_ns.map(|ns| short_time(ns as f64 / scale));
        (" ", text.unwrap_or_else(|| no_figure(cell).to_owned()))
    })
}

/// Three digits, whole numbers above.
fn short_time(value: f64) -> String {
    let decimals = match value {
        v if v >= 99.95 || v == 0.0 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// Single random reads by span: which part a cache answers, and the gain of a short stroke.
fn write_spans(page: &mut Page<'_>, record: &Record, sweep: &SweepRecord) -> io::Result<()> {
    if sweep.spans.is_empty() {
        return Ok(());
    }
    page.blank()?;
    page.text(TextStyle::Bold.of("single random reads by span, from the start of the target"))?;
    page.text(TextStyle::Plain.of(spans_text(record, sweep)))?;
    for span in &sweep.spans {
        let name = format_bytes(span.span_bytes);
        let (Some(iops), Some(mean_ns)) = (&span.iops, span.latency_mean_ns) else {
            page.pieces(&[TextStyle::Dim.of(format!("{name:>10}  not measured"))])?;
            continue;
        };
        let gain = span
            .gain
            .map_or(String::new(), |gain| format!("  × {gain:.2}"));
        let mean = format_latency(mean_ns.max(0.0).round() as u64);
        let row = format!("{name:>10}  {:>16}  {mean:>8}{gain}", iops.text());
        page.unbroken(TextStyle::Plain.of(row))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::{Color, Style};
    use diskproof_model::sweep::SweepOperation;

    #[test]
    fn latencies_without_any_percentile_are_one_line() {
        let page = |latency_p99_ns| {
            let matrix = SweepMatrix {
                operation: SweepOperation::RandRead,
                cells: vec![SweepCell {
                    block_bytes: 4096,
                    depth: 1,
                    state: CellState::Measured,
                    why: None,
                    iops: None,
                    throughput: None,
                    latency_mean_ns: Some(1e7),
                    latency_p50_ns: None,
                    latency_p99_ns,
                    latency_max_ns: None,
                }],
                knee: None,
                bandwidth_limit: None,
                cost_model: None,
            };
            let style = Style {
                width: 80,
                color: Color::Plain,
            };
            let mut out = Vec::new();
            write_latencies(&mut Page::new(&style, &mut out), &matrix).unwrap();
            String::from_utf8(out).unwrap()
        };
        let none = page(None);
        assert!(
            none.contains("no cell has enough requests") && !none.contains("d1"),
            "{none}"
        );
        let some = page(Some(10_000_000));
        assert!(
            some.contains("99th percentile of the latency") && some.contains("10.0"),
            "{some}"
        );
    }

    #[test]
    fn figures_fit_their_columns() {
        let cases = [
            (82.7, Some(1.0), "83"),
            (8312.0, Some(20.0), "8.31k"),
            (66_412.0, Some(200.0), "66.4k"),
            (999_400.0, Some(1000.0), "999k"),
            (1_234_567.0, Some(2000.0), "1.23M"),
            (0.5, None, "0.50"),
        ];
        for (value, half_width, text) in cases {
            let short = short_rate(value, half_width);
            assert_eq!(short, text);
            assert!(columns(&short) <= FIGURE);
        }
        assert_eq!(
            [0.0512, 8.214, 5120.4].map(short_time),
            ["0.051", "8.21", "5120"]
        );
    }
}
