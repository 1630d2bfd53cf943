//! The result of a scan on a terminal: a map of one line, and the slow and unreadable places.

use super::sparkline::{even_parts, worst_sparkline};
use crate::describe::surface::{place_text, scan_reach_text};
use crate::page::{INDENT, Page};
use diskproof_model::block::{Span, Tone};
use diskproof_model::surface::Scan;
use diskproof_model::units::{format_bytes, format_latency};

/// The page lists at most this many slow blocks, and as many unreadable ones; the record holds all.
const PLACES_SHOWN: usize = 10;

/// Writes what was read, the map, then the slow and unreadable places.
pub(super) fn write_scan(page: &mut Page<'_>, scan: &Scan, span_start_bytes: u64) {
    page.blank();
    let block = format_bytes(u64::from(scan.block_bytes));
    let reach = scan_reach_text(scan, span_start_bytes);
    let unreadable = format_bytes(scan.unreadable_bytes);
    let blocks = scan.read_blocks_text();
    let text = match scan.latency_p50_ns {
        Some(median_ns) => format!(
            "{blocks} of {block} read, {reach}; median {}, {} slow (from {}), {unreadable} \
             unreadable",
            format_latency(median_ns),
            scan.slow_blocks,
            format_latency(scan.slow_from_ns),
        ),
        None => format!("{blocks} of {block} read, {reach}; {unreadable} unreadable"),
    };
    page.fact("scan", &text);
    write_map(page, scan);
    let slow = scan.slow.iter().map(|block| Place {
        lba: block.lba,
        offset_bytes: block.offset_bytes,
        what: format!("took {}", format_latency(block.latency_ns)),
    });
    write_places(page, Tone::Warning.span("slow"), slow, scan.slow_blocks);
    let unreadable = scan.unreadable.iter().map(|range| Place {
        lba: range.lba,
        offset_bytes: range.offset_bytes,
        what: format!("{} {}", format_bytes(range.length_bytes), range.errno),
    });
    let count = scan.unreadable.len() as u64;
    write_places(page, Tone::Error.span("bad"), unreadable, count);
}

/// A place that is slow or unreadable.
struct Place {
    lba: u64,
    offset_bytes: u64,
    /// How slow, or how large and why.
    what: String,
}

/// Writes the longest latency by position in one line, and below it marks for unreadable blocks.
/// Writes nothing for a map of fewer than two cells.
fn write_map(page: &mut Page<'_>, scan: &Scan) {
    let width = page.width() - INDENT;
    let latencies: Vec<f64> = scan
        .map
        .iter()
        .map(|cell| cell.latency_max_ns as f64)
        .collect();
    if latencies.len() < 2 {
        return;
    }
    let indent = " ".repeat(INDENT - "map".len());
    page.spans(&[
        Tone::Dim.span(format!("map{indent}")),
        Tone::Plain.span(worst_sparkline(&latencies, width)),
    ]);
    let mut marks = String::new();
    for cells in even_parts(&scan.map, width) {
        let has_errors = cells.iter().any(|cell| cell.errors > 0);
        marks.push(if has_errors { '!' } else { ' ' });
    }
    let mut legend = "longest latency by position, logarithmic".to_owned();
    if marks.contains('!') {
        page.spans(&[
            Tone::Plain.span(" ".repeat(INDENT)),
            Tone::Error.span(marks),
        ]);
        legend.push_str(", ! unreadable blocks");
    }
    page.fact("", &legend);
}

/// Writes the first places under one label, and counts the others of `total`.
fn write_places(
    page: &mut Page<'_>,
    mut label: Span<'_>,
    places: impl Iterator<Item = Place>,
    total: u64,
) {
    let mut shown = 0;
    for listed in places.take(PLACES_SHOWN) {
        let position = place_text(listed.offset_bytes);
        let text = format!("LBA {}, {position}: {}", listed.lba, listed.what);
        page.entry(label, INDENT, Tone::Plain.span(text));
        label = Tone::Plain.span("");
        shown += 1;
    }
    let more = total.saturating_sub(shown);
    if more > 0 {
        page.fact("", &format!("and {more} more (--json)"));
    }
}
