//! The survey on the result page: the curve as a graph, minimum, average and maximum, seeks by
//! pattern, short strokes, and the result of a scan.

use super::facts::{INDENT, fact};
use super::graph::write_graph;
use super::sparkline::worst_line;
use crate::chart::charts;
use crate::describe::surface::{conditions, distance, place, reach};
use crate::labels;
use crate::page::{Page, StyledText, TextStyle};
use crate::table::{Align, Columns};
use crate::text::glue;
use diskproof_model::digits::rounded;
use diskproof_model::record::{Estimate, Record};
use diskproof_model::surface::{CurvePoint, Scan, SeekPattern, SeekSummary, SurfaceRecord};
use diskproof_model::units::{
    counted, format_bytes, format_latency, format_percent, format_throughput,
};
use std::io;

/// Slow and unreadable blocks that the page lists; the record holds all.
const PLACES_SHOWN: usize = 10;

/// Readings that differ by a smaller share count as the same.
const CONFIRMED: f64 = 0.02;

/// Writes everything about the surface.
pub(super) fn write_surface(
    page: &mut Page<'_>,
    record: &Record,
    s: &SurfaceRecord,
) -> io::Result<()> {
    page.blank()?;
    fact(page, "surface", &conditions(s))?;
    if let Some(chart) = charts(record).iter().find(|chart| chart.id == "curve") {
        page.blank()?;
        write_graph(page, chart)?;
    }
    write_errors(page, record, s)?;
    write_repeats(page, record)?;
    write_ends(page, s)?;
    write_seeks(page, s)?;
    write_short_strokes(page, s)?;
    s.scan
        .as_ref()
        .map_or(Ok(()), |scan| write_scan(page, scan, s.span_start_bytes))
}

fn write_errors(page: &mut Page<'_>, record: &Record, s: &SurfaceRecord) -> io::Result<()> {
    let bad: Vec<u64> = record
        .curve
        .iter()
        .filter(|point| point.errors > 0)
        .map(|point| point.offset_bytes)
        .collect();
    if let Some(first) = bad.first() {
        let text = format!(
            "{} of {} of the curve failed, the first at {}",
            bad.len(),
            counted(record.curve.len() as u64, "place"),
            place(*first)
        );
        page.entry(
            TextStyle::Error.of("errors"),
            INDENT,
            TextStyle::Plain.of(&text),
        )?;
    }
    let failed: Vec<String> = s
        .access_errors
        .iter()
        .map(|(errno, n)| glue(&format!("{n} × {errno}")))
        .collect();
    if failed.is_empty() {
        Ok(())
    } else {
        page.entry(
            TextStyle::Error.of("errors"),
            INDENT,
            TextStyle::Plain.of(format!("failed accesses: {}", failed.join(", "))),
        )
    }
}

/// Points that were read again as outliers.
fn write_repeats(page: &mut Page<'_>, record: &Record) -> io::Result<()> {
    let repeated: Vec<_> = record
        .curve
        .iter()
        .filter(|point| point.readings.len() > 1)
        .collect();
    let change = |point: &CurvePoint| (point.readings[0] / point.bytes_per_second).ln().abs();
    let Some(most) = repeated
        .iter()
        .max_by(|a, b| change(a).total_cmp(&change(b)))
    else {
        return Ok(());
    };
    let what = counted(repeated.len() as u64, "place");
    let (verb, of) = (
        if repeated.len() == 1 { "was" } else { "were" },
        record.curve.len(),
    );
    let text = if change(most) < CONFIRMED {
        format!("{what} of {of} stood out and {verb} read again: confirmed")
    } else {
        let (at, before, after) = (
            distance(most.offset_bytes as f64),
            format_throughput(most.readings[0]),
            format_throughput(most.bytes_per_second),
        );
        format!(
            "{what} of {of} stood out and {verb} read again; the median counts (largest change: \
             {before} to {after} at {at})"
        )
    };
    fact(page, "again", &text)
}

/// A table with words in the first column and figures in the others; running text if it does not
/// fit.
fn write_table(page: &mut Page<'_>, heading: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    page.blank()?;
    let heading: Vec<String> = heading.iter().map(|&name| name.to_owned()).collect();
    let mut aligns = vec![Align::Right; heading.len()];
    aligns[0] = Align::Left;
    let fitted = Columns::fit(&aligns, rows.iter().chain([&heading]), page.width());
    if let Some(columns) = fitted {
        page.unbroken(TextStyle::Dim.of(columns.line(&heading)))?;
        for row in rows {
            page.unbroken(TextStyle::Plain.of(columns.line(row)))?;
        }
        return Ok(());
    }
    for row in rows {
        let cells = row
            .iter()
            .zip(&heading)
            .skip(1)
            .filter(|(cell, _)| !cell.is_empty());
        let text: Vec<String> = cells
            .map(|(cell, name)| glue(&format!("{name} {cell}")))
            .collect();
        page.entry(
            TextStyle::Plain.of(&row[0]),
            INDENT,
            TextStyle::Plain.of(text.join(", ")),
        )?;
    }
    Ok(())
}

/// Minimum, average and maximum of the transfer rate, the access time and the other figures.
fn write_ends(page: &mut Page<'_>, s: &SurfaceRecord) -> io::Result<()> {
    let mut rows = Vec::new();
    let mut row = |name: &str, min: String, estimate: &Estimate, max: String| {
        let average = estimate.value_text();
        rows.push(vec![
            name.to_owned(),
            min,
            average,
            labels::interval(estimate),
            max,
        ]);
    };
    if let Some(rate) = &s.rate {
        let [min, max] = [rate.min, rate.max].map(format_throughput);
        row("transfer rate", min, &rate.average, max);
    }
    if let Some(seek) = s.seeks.get(&SeekPattern::Random) {
        let [min, max] = [seek.min_ns, seek.max_ns].map(format_latency);
        row("access time", min, &seek.mean, max);
    }
    if let Some(burst) = &s.burst {
        row(
            "burst rate",
            String::new(),
            &burst.throughput,
            String::new(),
        );
    }
    if s.rate.is_some() {
        let cpu = format_percent(s.curve_cpu_share);
        let cells = ["CPU use", "", &cpu, "", ""];
        rows.push(cells.map(str::to_owned).to_vec());
    }
    write_table(page, &["", "min", "average", "± 95 %", "max"], &rows)
}

fn write_seeks(page: &mut Page<'_>, s: &SurfaceRecord) -> io::Result<()> {
    let mut rows = Vec::new();
    for (pattern, seek) in &s.seeks {
        rows.push(vec![
            pattern.as_str().to_owned(),
            seek.n.to_string(),
            distance(seek.distance_mean_bytes),
            seek.mean.value_text(),
            labels::interval(&seek.mean),
            format_latency(seek.p50_ns),
            format_latency(seek.max_ns),
            rounded(seek.iops, iops_half_width(seek)),
        ]);
    }
    let heading = [
        "seeks", "number", "distance", "average", "± 95 %", "median", "max", "IOPS",
    ];
    write_table(page, &heading, &rows)
}

/// The IOPS of a seek pattern follow from its mean and have the same relative error.
fn iops_half_width(seek: &SeekSummary) -> Option<f64> {
    let relative = seek.mean.relative_half_width()?;
    Some(seek.iops * relative)
}

fn write_short_strokes(page: &mut Page<'_>, s: &SurfaceRecord) -> io::Result<()> {
    let mut rows = Vec::new();
    for stroke in &s.short_strokes {
        rows.push(vec![
            format!("first {} %", stroke.percent),
            format_bytes(stroke.span_bytes),
            rounded(stroke.iops.value, stroke.iops.half_width_95),
            labels::interval(&stroke.iops),
            format!("× {:.2}", stroke.gain),
            format_latency(stroke.latency_mean_ns.round() as u64),
            format_latency(stroke.latency_max_ns),
            stroke.throughput.map(format_throughput).unwrap_or_default(),
        ]);
    }
    let heading = [
        "short stroke",
        "size",
        "IOPS",
        "± 95 %",
        "gain",
        "average",
        "longest",
        "transfer",
    ];
    write_table(page, &heading, &rows)
}

/// The map, then the slow and unreadable places.
fn write_scan(page: &mut Page<'_>, scan: &Scan, span_start_bytes: u64) -> io::Result<()> {
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
