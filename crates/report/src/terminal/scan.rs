//! The result of a scan: the map, and the slow and unreadable places.

use super::facts::{INDENT, fact};
use super::sparkline::worst_line;
use crate::describe::surface::{place, reach};
use crate::page::{Page, StyledText, TextStyle};
use diskproof_model::surface::Scan;
use diskproof_model::units::{counted, format_bytes, format_latency};
use std::io;

/// Slow and unreadable blocks that the page lists; the record holds all.
const PLACES_SHOWN: usize = 10;

/// The map, then the slow and unreadable places.
pub(super) fn write_scan(
    page: &mut Page<'_>,
    scan: &Scan,
    span_start_bytes: u64,
) -> io::Result<()> {
    page.blank()?;
    let text = format!(
        "{} of {} read, {}; median {}, {} slow (from {}), {} unreadable",
        counted(scan.blocks, "block"),
        format_bytes(u64::from(scan.block_bytes)),
        reach(scan, span_start_bytes),
        format_latency(scan.latency_p50_ns),
        scan.slow_blocks,
        format_latency(scan.slow_from_ns),
        format_bytes(scan.unreadable_bytes)
    );
    fact(page, "scan", &text)?;
    write_map(page, scan)?;
    let slow = scan.slow.iter().map(|block| {
        (
            block.lba,
            block.offset_bytes,
            format!("took {}", format_latency(block.latency_ns)),
        )
    });
    write_places(page, TextStyle::Warning.of("slow"), slow, scan.slow_blocks)?;
    let bad = scan.unreadable.iter().map(|r| {
        (
            r.lba,
            r.offset_bytes,
            format!("{} {}", format_bytes(r.length_bytes), r.errno),
        )
    });
    write_places(
        page,
        TextStyle::Error.of("bad"),
        bad,
        scan.unreadable.len() as u64,
    )
}

/// Longest latency by position in one line; below it marks for unreadable blocks.
fn write_map(page: &mut Page<'_>, scan: &Scan) -> io::Result<()> {
    let width = page.width() - INDENT;
    let latencies: Vec<f64> = scan
        .map
        .iter()
        .map(|cell| cell.latency_max_ns as f64)
        .collect();
    if latencies.len() < 2 {
        return Ok(());
    }
    let indent = " ".repeat(INDENT - "map".len());
    page.pieces(&[
        TextStyle::Dim.of(format!("map{indent}")),
        TextStyle::Plain.of(worst_line(&latencies, width)),
    ])?;
    let parts = latencies.len().min(width);
    let failed = |k: usize| {
        scan.map[k * latencies.len() / parts..(k + 1) * latencies.len() / parts]
            .iter()
            .any(|cell| cell.errors > 0)
    };
    let marks: String = (0..parts)
        .map(|k| if failed(k) { '!' } else { ' ' })
        .collect();
    if marks.contains('!') {
        page.pieces(&[
            TextStyle::Plain.of(" ".repeat(INDENT)),
            TextStyle::Error.of(marks.trim_end().to_owned()),
        ])?;
    }
    let marks = if marks.contains('!') {
        ", ! unreadable blocks"
    } else {
        ""
    };
    fact(
        page,
        "",
        &format!("longest latency by position, logarithmic{marks}"),
    )
}

/// Positions by block address, at most as many as the page lists.
fn write_places(
    page: &mut Page<'_>,
    label: StyledText<'_>,
    places: impl Iterator<Item = (u64, u64, String)>,
    total: u64,
) -> io::Result<()> {
    let mut shown = 0;
    for (lba, offset, what) in places.take(PLACES_SHOWN) {
        page.entry(
            if shown == 0 {
                label.clone()
            } else {
                TextStyle::Plain.of("")
            },
            INDENT,
            TextStyle::Plain.of(format!("LBA {lba}, {}: {what}", place(offset))),
        )?;
        shown += 1;
    }
    if total > shown {
        fact(page, "", &format!("and {} more (--json)", total - shown))
    } else {
        Ok(())
    }
}
