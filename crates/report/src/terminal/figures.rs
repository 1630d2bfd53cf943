//! The table of figures of one target, with the meaning of its signs below.

use super::sparkline::sparkline;
use crate::describe::figures::{common_conditions, legend, request, shown_latency, shown_ops};
use crate::describe::remarks::{RemarkKind, remarks};
use crate::labels;
use crate::page::{Page, TextStyle};
use crate::table::{Align, Columns};
use crate::text::{columns, list};
use diskproof_model::measurement::OpKind;
use diskproof_model::record::{MeasurementRecord, OpRecord};
use std::io;

const COLUMNS: usize = 9;
/// Columns between the table and the graphs next to it.
const GRAPH_GAP: usize = 3;
/// As wide as the caption above the graphs.
const GRAPH_COLUMNS_MIN: usize = GRAPH_CAPTION.len();
const GRAPH_CAPTION: &str = "rate over time, from zero";
/// A wider graph is hard to compare at a glance.
const GRAPH_COLUMNS_MAX: usize = 100;
/// Fewer cells show no course over time.
const CELLS_LEAST: usize = 4;
/// All latencies of a table have one unit: µs if the longest median is shorter than this, else ms.
const MICROSECONDS_BELOW_NS: u64 = 100_000;

/// Writes the table and its notes.
pub(super) fn write_figures(
    page: &mut Page<'_>,
    measurements: &[&MeasurementRecord],
) -> io::Result<()> {
    let unit = LatencyUnit::of(measurements);
    let signs_width = measurements.iter().map(|m| signs(m).len()).max();
    let mut rows = Vec::new();
    for m in measurements {
        let signs = format!("{:1$}", signs(m), signs_width.unwrap_or(0));
        rows.extend(figure_rows(m, unit, &signs));
    }
    let heading = [
        "", "request", "per s", "± 95 %", "MB/s", "p50", "p99", "p99.9", "max",
    ]
    .map(str::to_owned)
    .to_vec();
    let mut aligns = [Align::Right; COLUMNS];
    (aligns[0], aligns[1]) = (Align::Left, Align::Left);
    let cells = rows.iter().map(|row| &row.cells).chain([&heading]);
    match Columns::fit(&aligns, cells, page.width()) {
        Some(columns) => write_table(page, &columns, &heading, &rows)?,
        None => write_stacked(page, &rows, unit)?,
    }
    write_notes(page, measurements)?;
    let latencies = format!("Latencies in {}. ", unit.name());
    let common =
        common_conditions(measurements).map_or(String::new(), |common| format!("All {common}. "));
    let legend = format!("{common}{latencies}{}", legend(measurements));
    page.text(TextStyle::Dim.of(legend))
}

/// A row of the table.
struct FigureLine {
    cells: Vec<String>,
    /// Rates over the measured time.
    rates: Vec<f64>,
    /// Whether anything was measured.
    is_empty: bool,
}

/// The unit of all latencies of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LatencyUnit {
    Microseconds,
    Milliseconds,
}

impl LatencyUnit {
    fn of(measurements: &[&MeasurementRecord]) -> Self {
        let ops = measurements.iter().flat_map(|m| shown_ops(m));
        let longest = ops.filter_map(|(_, op)| shown_latency(op).p50).max();
        match longest {
            Some(ns) if ns < MICROSECONDS_BELOW_NS => Self::Microseconds,
            _ => Self::Milliseconds,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Microseconds => "µs",
            Self::Milliseconds => "ms",
        }
    }

    /// Three digits, whole numbers above.
    fn text(self, ns: Option<u64>) -> String {
        let Some(ns) = ns else {
            return labels::UNKNOWN.to_owned();
        };
        let value = match self {
            Self::Microseconds => ns as f64 / 1e3,
            Self::Milliseconds => ns as f64 / 1e6,
        };
        let decimals = match value {
            v if v == 0.0 || v >= 99.95 => 0,
            v if v >= 9.995 => 1,
            v if v >= 0.9995 => 2,
            _ => 3,
        };
        format!("{value:.decimals$}")
    }
}

/// A row for each headline operation; the first one has the name. `signs` are padded to one width,
/// so that digits stay aligned.
fn figure_rows(m: &MeasurementRecord, unit: LatencyUnit, signs: &str) -> Vec<FigureLine> {
    let mut name = m.workload.name.clone();
    let mut rows = Vec::new();
    for (kind, op) in shown_ops(m) {
        let mut cells = vec![std::mem::take(&mut name)];
        cells.extend(figure_cells(kind, op, m, unit));
        cells[2].push_str(signs);
        let rates = m.cells_over_time(op);
        rows.push(FigureLine {
            cells,
            rates: rates
                .map(|(_, seconds, cell)| cell.ops as f64 / seconds)
                .collect(),
            is_empty: false,
        });
    }
    if rows.is_empty() {
        let mut cells = vec![String::new(); COLUMNS];
        cells[0] = name;
        cells[1] = "nothing was measured".to_owned();
        rows.push(FigureLine {
            cells,
            rates: Vec::new(),
            is_empty: true,
        });
    }
    rows
}

fn figure_cells(
    kind: OpKind,
    op: &OpRecord,
    m: &MeasurementRecord,
    unit: LatencyUnit,
) -> Vec<String> {
    let latency = shown_latency(op);
    let rate = op.iops.value_text();
    let mut cells = vec![
        request(kind, &m.workload),
        rate.trim_end_matches("/s").replace(" M", "M"),
        labels::interval(&op.iops),
        labels::megabytes(&op.throughput),
    ];
    let longest = (op.count > 0).then_some(latency.max);
    for ns in [latency.p50, latency.p99, latency.p99_9, longest] {
        cells.push(unit.text(ns));
    }
    cells
}

/// The signs of the remarks on a measurement.
fn signs(m: &MeasurementRecord) -> String {
    let remarks = remarks(m);
    RemarkKind::ALL
        .into_iter()
        .filter(|kind| remarks.iter().any(|remark| remark.kind == *kind))
        .map(RemarkKind::sign)
        .collect()
}

/// The rows as a table; if there is room, with the rate over time alongside it.
fn write_table(
    page: &mut Page<'_>,
    columns: &Columns,
    heading: &[String],
    rows: &[FigureLine],
) -> io::Result<()> {
    let room = page
        .width()
        .saturating_sub(columns.total() + GRAPH_GAP)
        .min(GRAPH_COLUMNS_MAX);
    let graph = |row: &FigureLine| {
        if room < GRAPH_COLUMNS_MIN || row.rates.len() < CELLS_LEAST {
            String::new()
        } else {
            sparkline(&row.rates, room)
        }
    };
    let graphs: Vec<String> = rows.iter().map(graph).collect();
    let caption = if graphs.iter().any(|graph| !graph.is_empty()) {
        GRAPH_CAPTION
    } else {
        ""
    };
    page.unbroken(TextStyle::Dim.of(beside(columns, heading, caption)))?;
    for (row, graph) in rows.iter().zip(&graphs) {
        let style = if row.is_empty {
            TextStyle::Error
        } else {
            TextStyle::Plain
        };
        page.unbroken(style.of(beside(columns, &row.cells, graph)))?;
    }
    Ok(())
}

fn beside(table: &Columns, row: &[String], graph: &str) -> String {
    let row = table.line(row);
    if graph.is_empty() {
        return row;
    }
    let pad = table.total() + GRAPH_GAP - columns(&row);
    format!("{row}{:pad$}{graph}", "")
}

/// The rows as running text, for a page too narrow for the table.
fn write_stacked(page: &mut Page<'_>, rows: &[FigureLine], unit: LatencyUnit) -> io::Result<()> {
    for row in rows {
        let [name, request, rate, interval, megabytes, latencies @ ..] = row.cells.as_slice()
        else {
            continue;
        };
        let style = if row.is_empty {
            TextStyle::Error
        } else {
            TextStyle::Dim
        };
        if !name.is_empty() {
            page.entry(TextStyle::Bold.of(name), 2, style.of(request))?;
        } else {
            page.entry(TextStyle::Plain.of(""), 2, style.of(request))?;
        }
        if row.is_empty {
            continue;
        }
        let rates = [
            format!("{}/s {interval}", rate.trim_end()),
            format!("{megabytes} MB/s"),
        ];
        let names = ["p50", "p99", "p99.9", "max"];
        let latencies = names.iter().zip(latencies).map(|(name, value)| {
            if value == labels::UNKNOWN {
                format!("{name} {value}")
            } else {
                format!("{name} {value} {}", unit.name())
            }
        });
        let text = list(rates.into_iter().chain(latencies));
        page.entry(TextStyle::Plain.of(""), 2, TextStyle::Plain.of(text))?;
    }
    Ok(())
}

/// The remarks on all measurements, grouped by text.
fn write_notes(page: &mut Page<'_>, measurements: &[&MeasurementRecord]) -> io::Result<()> {
    let mut notes: Vec<(RemarkKind, String, Vec<&str>)> = Vec::new();
    for m in measurements {
        for remark in remarks(m) {
            let same = |note: &&mut (RemarkKind, String, Vec<&str>)| {
                note.0 == remark.kind && note.1 == remark.text
            };
            match notes.iter_mut().find(same) {
                Some(note) => note.2.push(&m.workload.name),
                None => notes.push((remark.kind, remark.text, vec![&m.workload.name])),
            }
        }
    }
    notes.sort_by_key(|note| note.0);
    for (kind, text, names) in notes {
        let names = if names.len() == measurements.len() {
            String::new()
        } else {
            format!("{}: ", list(names))
        };
        let style = match kind {
            RemarkKind::Failed => TextStyle::Error,
            RemarkKind::Verified | RemarkKind::Phases | RemarkKind::Shortened => TextStyle::Note,
            RemarkKind::Cached | RemarkKind::Drifting => TextStyle::Warning,
        };
        let sign = kind.sign().to_string();
        page.entry(
            style.of(sign),
            2,
            TextStyle::Plain.of(format!("{names}{text}")),
        )?;
    }
    Ok(())
}
