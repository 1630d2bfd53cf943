//! The map of a scan: the span as a grid of cells, coloured by their slowest block; unreadable ones
//! are crossed out.

use super::charts::{self, values_table};
use super::elements::{shown, wide_table};
use crate::chart::{Axis, Chart, Series, SeriesMark, position_unit};
use crate::describe::surface::scan_reach_text;
use diskproof_model::record::Record;
use diskproof_model::surface::{Scan, ScanCell};
use diskproof_model::units::{counted, format_bytes, format_latency};
use maud::{Markup, html};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A scan has at most 1000 cells, so the map has at most 20 rows.
const CELLS_PER_ROW: usize = 50;
/// The distance from one cell to the next in the units of the picture.
const CELL_STEP: usize = 14;
/// The outline of a cell: a square that leaves one unit free to the next one.
const SQUARE: &str = "h13v13h-13z";
/// The cross over a cell with unreadable blocks, from the corner at which the square ends.
const CROSS: &str = "m2 2 9 9m0-9-9 9";
/// The heat of a cell is a class by its slowest block over the median block: up to 2, 4, 8, 16, 32
/// times, and more.
const HEAT_CLASSES: usize = 6;
/// From this class on, over four times the median, Page Up and Page Down stop at a cell.
const NOTABLE_CLASS: usize = 2;

/// The data for the script: the map as a chart, the position of each cell, and which cells are
/// notable. `None` without a map.
pub(super) fn data(record: &Record) -> Option<Value> {
    let scan = mapped_scan(record)?;
    let farthest = scan.map.last()?.offset_bytes;
    let (unit, unit_bytes) = position_unit(farthest as f64);
    let mut positions = Vec::new();
    let mut notable = Vec::new();
    for cell in &scan.map {
        positions.push(charts::rounded(cell.offset_bytes as f64 / unit_bytes));
        notable.push(u8::from(is_notable(cell, heat_median_ns(scan))));
    }
    let chart = Chart {
        id: "scan-map".to_owned(),
        title: "Map of the scan".to_owned(),
        x: Axis::new("position", unit),
        y: Axis::new("latency of a block", "ms"),
        y_right: Some(Axis::new("blocks", "")),
        series: cell_series(&scan.map, unit_bytes).into(),
        ..Chart::default()
    };
    Some(json!({
        "chart": charts::data(&[chart])[0],
        "perRow": CELLS_PER_ROW,
        "side": CELL_STEP,
        "cells": positions,
        "notable": notable,
    }))
}

/// The figures of the cells by position: latencies where a block was read, and counts.
fn cell_series(map: &[ScanCell], unit_bytes: f64) -> [Series; 4] {
    let mut means = Vec::new();
    let mut longest = Vec::new();
    let mut read = Vec::new();
    let mut failed = Vec::new();
    for cell in map {
        let x = cell.offset_bytes as f64 / unit_bytes;
        let blocks_read = cell.blocks.saturating_sub(cell.errors);
        if blocks_read > 0 {
            read.push((x, blocks_read as f64));
            means.push((x, cell.latency_mean_ns as f64 / 1e6));
            longest.push((x, cell.latency_max_ns as f64 / 1e6));
        }
        if cell.errors > 0 {
            failed.push((x, cell.errors as f64));
        }
    }
    [
        Series::new("mean", SeriesMark::Dots, means),
        Series::new("longest", SeriesMark::Dots, longest),
        Series::new("blocks read", SeriesMark::Dots, read).on_the_right(),
        Series::new("blocks failed", SeriesMark::Dots, failed).on_the_right(),
    ]
}

/// True if Page Up and Page Down stop at a cell.
fn is_notable(cell: &ScanCell, median_ns: u64) -> bool {
    cell.errors > 0 || heat_class(cell, median_ns) >= NOTABLE_CLASS
}

/// The scan; `None` if it has no map.
fn mapped_scan(record: &Record) -> Option<&Scan> {
    let scan = record.surface()?.data.scan.as_ref()?;
    if scan.map.is_empty() {
        None
    } else {
        Some(scan)
    }
}

/// The map of a scan with its legend and a table of its slow and unreadable blocks. `None` without
/// a map.
pub(super) fn scan_map(record: &Record) -> Option<Markup> {
    let scan = mapped_scan(record)?;
    let read = scan_reach_text(scan, record.surface()?.data.span_start_bytes);
    let not = if scan.finished { "" } else { "not " };
    Some(html! {
        figure.chart.map #chart-scan-map aria-labelledby="title-scan-map" {
            figcaption {
                h3 #title-scan-map {
                    "Scan (" (not) "finished): " (counted(scan.slow_blocks, "slow block")) ", "
                    (format_bytes(scan.unreadable_bytes)) " unreadable"
                }
                p {
                    "Read: " (read)
                    ". Left to right, top to bottom; a cell shows its slowest block"
                    @match scan.latency_p50_ns {
                        Some(median_ns) => {
                            "; the median block takes " (format_latency(median_ns)) "."
                        }
                        None => "; no block could be read.",
                    }
                }
            }
            div.field #field { (cells_picture(scan)) }
            div.under {
                (color_legend(scan))
                div.buttons.scripted {
                    button.csv aria-label="CSV: save the cells of the map" { "CSV" }
                }
            }
            p.legend.scripted {
                "Point at a cell to read it. Keyboard: arrow keys move between cells, Page Up and \
                 Page Down between slow or unreadable blocks."
            }
            (values_table())
            @if !scan.slow.is_empty() || !scan.unreadable.is_empty() {
                details {
                    summary { "Slow and unreadable blocks" }
                    (wide_table("Slow and unreadable blocks", &places_table(scan)))
                }
            }
        }
    })
}

/// The map as a picture, in which one path draws all cells of a class.
fn cells_picture(scan: &Scan) -> Markup {
    let rows = scan.map.len().div_ceil(CELLS_PER_ROW);
    let mut paths: BTreeMap<String, String> = BTreeMap::new();
    for (index, cell) in scan.map.iter().enumerate() {
        let x = index % CELLS_PER_ROW * CELL_STEP;
        let y = index / CELLS_PER_ROW * CELL_STEP;
        let cross = if cell.errors > 0 { CROSS } else { "" };
        let path = paths
            .entry(cell_class(cell, heat_median_ns(scan)))
            .or_default();
        *path += &format!("M{x} {y}{SQUARE}{cross}");
    }
    let width = CELLS_PER_ROW * CELL_STEP;
    let height = rows * CELL_STEP;
    let label = format!(
        "Map of {}; {}, {} unreadable. The table below lists the blocks.",
        counted(scan.map.len() as u64, "cell"),
        counted(scan.slow_blocks, "slow block"),
        counted(scan.unreadable_bytes, "byte")
    );
    html! {
        svg.cells viewBox={"0 0 " (width) " " (height)} role="img" aria-label=(label) {
            @for (class, path) in &paths { path class=(class) d=(path) {} }
        }
    }
}

/// The class of a cell in the style sheet.
fn cell_class(cell: &ScanCell, median_ns: u64) -> String {
    match (cell.errors, cell.blocks) {
        (1.., _) => "bad".to_owned(),
        (0, 0) => "none".to_owned(),
        (0, _) => format!("heat-{}", heat_class(cell, median_ns)),
    }
}

/// The latency that the colours of the cells are multiples of. Without a block that was read no
/// cell has a colour.
fn heat_median_ns(scan: &Scan) -> u64 {
    scan.latency_p50_ns.unwrap_or(0)
}

fn heat_classes_shown(scan: &Scan) -> usize {
    if scan.latency_p50_ns.is_some() {
        HEAT_CLASSES
    } else {
        0
    }
}

/// The class of a cell by its slowest block, from 0 on.
fn heat_class(cell: &ScanCell, median_ns: u64) -> usize {
    let times_median = cell.latency_max_ns as f64 / median_ns.max(1) as f64;
    let doublings = times_median.max(1.0).log2().ceil() as usize;
    doublings.clamp(1, HEAT_CLASSES) - 1
}

/// The colours with the longest latency of each.
fn color_legend(scan: &Scan) -> Markup {
    html! {
        ul.heat-scale aria-label="Colours of the map" {
            @for index in 0..heat_classes_shown(scan) {
                li {
                    svg width="13" height="13" aria-hidden="true" focusable="false" {
                        rect class={"heat-" (index)} width="13" height="13" {}
                    }
                    @if index + 1 < HEAT_CLASSES {
                        @let limit_ns = heat_median_ns(scan).saturating_mul(1 << (index + 1));
                        " up to " (format_latency(limit_ns))
                    } @else {
                        " longer"
                    }
                }
            }
            li {
                svg width="13" height="13" aria-hidden="true" focusable="false" {
                    path.bad d={"M0 0" (SQUARE) (CROSS)} {}
                }
                " unreadable"
            }
        }
    }
}

fn places_table(scan: &Scan) -> Markup {
    let mut rows = Vec::new();
    for range in &scan.unreadable {
        let bytes = format_bytes(range.length_bytes);
        let what = format!("{bytes} unreadable: {}", shown(&range.errno));
        rows.push(place_row(range.offset_bytes, range.lba, &what));
    }
    for block in &scan.slow {
        let what = format!("slow: {}", format_latency(block.latency_ns));
        rows.push(place_row(block.offset_bytes, block.lba, &what));
    }
    html! {
        table.plain {
            thead {
                tr {
                    th.number scope="col" { "Offset" }
                    th.number scope="col" { "LBA" }
                    th scope="col" { "What" }
                }
            }
            tbody { @for row in rows { (row) } }
        }
    }
}

fn place_row(offset_bytes: u64, lba: u64, what: &str) -> Markup {
    html! { tr { td.number { (offset_bytes) } td.number { (lba) } td { (what) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_class_follows_its_slowest_block() {
        assert_eq!(cell_class(&scan_cell(900, 0), 1000), "heat-0");
        assert_eq!(cell_class(&scan_cell(2000, 0), 1000), "heat-0");
        assert_eq!(cell_class(&scan_cell(2001, 0), 1000), "heat-1");
        assert_eq!(cell_class(&scan_cell(1 << 40, 0), 1000), "heat-5");
        assert_eq!(cell_class(&scan_cell(1, 3), 1000), "bad");
    }

    #[test]
    fn block_that_could_not_be_read_is_not_counted_as_read() {
        let map = [scan_cell(900, 0), scan_cell(900, 2), scan_cell(1, 9)];
        let counts = cell_series(&map, 1.0).map(|series| {
            let values: Vec<f64> = series.points.iter().map(|point| point.y).collect();
            values
        });
        let [means, _, read, failed] = counts;
        assert_eq!((means.len(), read), (2, vec![9.0, 7.0]));
        assert_eq!(failed, [2.0, 9.0]);
    }

    fn scan_cell(latency_max_ns: u64, errors: u64) -> ScanCell {
        ScanCell {
            offset_bytes: 0,
            blocks: 9,
            latency_mean_ns: 1,
            latency_max_ns,
            errors,
        }
    }
}
