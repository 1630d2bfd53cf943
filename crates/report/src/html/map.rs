//! The map of a scan: the whole span as a field of cells, each as bright as its slowest block was slow; unreadable ones are crossed out.

use super::elements::{shown, wide_table};
use diskproof_model::record::Record;
use diskproof_model::surface::{Scan, ScanCell};
use diskproof_model::units::{format_bytes, format_latency};
use maud::{Markup, PreEscaped, html};
use std::fmt::Write as _;

/// Cells in a row; at most 1000 cells then make at most 20 rows.
const CELLS_PER_ROW: usize = 50;
/// Side of a cell in the units of the picture.
const CELL: usize = 14;
/// A cell's class is how many times the median its slowest block took: up to 2, 4, 8, 16, 32 and more.
const CLASSES: usize = 6;

/// The map, where a scan was made.
pub(super) fn scan_map(record: &Record) -> Option<Markup> {
    let scan = record.surface.as_ref()?.scan.as_ref().filter(|scan| !scan.map.is_empty())?;
    let state = if scan.finished { "finished" } else { "not finished" };
    Some(html! {
        figure.chart.map #chart-scan-map aria-labelledby="title-scan-map" {
            figcaption {
                h3 #title-scan-map { "Scan (" (state) "): " (scan.slow_blocks) " slow blocks, " (format_bytes(scan.unreadable_bytes)) " unreadable" }
                p { "From the start of the disk, left to right, top to bottom. A cell shows its slowest block; the median block takes " (format_latency(scan.latency_p50_ns)) ". Point at a cell to read it." }
            }
            (field(scan))
            (scale(scan))
            @if !scan.slow.is_empty() || !scan.unreadable.is_empty() { details { summary { "Slow and unreadable places" } (wide_table("Slow and unreadable places", &places(scan))) } }
        }
    })
}

fn field(scan: &Scan) -> Markup {
    let rows = scan.map.len().div_ceil(CELLS_PER_ROW);
    let mut cells = String::new();
    for (index, cell) in scan.map.iter().enumerate() {
        let (x, y) = (index % CELLS_PER_ROW * CELL, index / CELLS_PER_ROW * CELL);
        let class = class(cell, scan.latency_p50_ns);
        // Numbers of our own only, so nothing to escape. A path of a square and, for errors, a cross.
        let cross = if cell.errors > 0 { "m2 2 9 9m0-9-9 9" } else { "" };
        let _ = write!(cells, r#"<path class="{class}" d="M{x} {y}h13v13h-13z{cross}"><title>{}</title></path>"#, cell_text(cell));
    }
    let (width, height) = (CELLS_PER_ROW * CELL, rows * CELL);
    let label = format!(
        "Map of {} cells; {} slow blocks, {} bytes unreadable. The table below lists the places.",
        scan.map.len(),
        scan.slow_blocks,
        scan.unreadable_bytes
    );
    html! { svg.cells viewBox={"0 0 " (width) " " (height)} role="img" aria-label=(label) { (PreEscaped(cells)) } }
}

fn cell_text(cell: &ScanCell) -> String {
    let errors = if cell.errors > 0 { format!(", {} blocks failed", cell.errors) } else { String::new() };
    let (mean, max) = (format_latency(cell.latency_mean_ns), format_latency(cell.latency_max_ns));
    format!("at {}: mean {mean}, longest {max}{errors}", format_bytes(cell.offset_bytes))
}

fn class(cell: &ScanCell, median_ns: u64) -> String {
    if cell.errors > 0 {
        return "bad".to_owned();
    }
    if cell.blocks == 0 {
        return "none".to_owned();
    }
    let times = cell.latency_max_ns as f64 / median_ns.max(1) as f64;
    format!("heat-{}", (times.max(1.0).log2().ceil().max(1.0) as usize).min(CLASSES) - 1)
}

fn scale(scan: &Scan) -> Markup {
    let limit = |index: usize| format_latency(scan.latency_p50_ns << (index + 1));
    html! {
        ul.heat-scale aria-label="Colours of the map" {
            @for index in 0..CLASSES {
                li { svg width="13" height="13" aria-hidden="true" focusable="false" { rect class={"heat-" (index)} width="13" height="13" {} }
                    @if index + 1 < CLASSES { " up to " (limit(index)) } @else { " longer" } }
            }
            li { svg width="13" height="13" aria-hidden="true" focusable="false" { path.bad d="M0 0h13v13h-13zm2 2 9 9m0-9-9 9" {} } " unreadable" }
        }
    }
}

fn places(scan: &Scan) -> Markup {
    html! {
        table.plain {
            thead { tr { th.number scope="col" { "Offset" } th.number scope="col" { "LBA" } th scope="col" { "What" } } }
            tbody {
                @for range in &scan.unreadable { tr { td.number { (range.offset_bytes) } td.number { (range.lba) } td { (format_bytes(range.length_bytes)) " unreadable: " (shown(&range.errno)) } } }
                @for block in &scan.slow { tr { td.number { (block.offset_bytes) } td.number { (block.lba) } td { "slow: " (format_latency(block.latency_ns)) } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_classed_by_its_slowest_block() {
        let cell = |latency_max_ns, errors| ScanCell { offset_bytes: 0, blocks: 9, latency_mean_ns: 1, latency_max_ns, errors };
        assert_eq!(class(&cell(900, 0), 1000), "heat-0");
        assert_eq!(class(&cell(2000, 0), 1000), "heat-0");
        assert_eq!(class(&cell(2001, 0), 1000), "heat-1");
        assert_eq!(class(&cell(1 << 40, 0), 1000), "heat-5");
        assert_eq!(class(&cell(1, 3), 1000), "bad");
    }
}
