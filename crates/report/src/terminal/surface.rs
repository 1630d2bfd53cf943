//! What a survey saw: the curve as a graph, minimum, average and maximum, seeks by pattern, short
//! strokes, and what a scan found.

use super::graph::{worst_line, write_graph};
use super::subject::{INDENT, fact};
use super::words;
use crate::chart::charts;
use crate::page::{Columns, Ink, Lean, Page};
use crate::text::glue;
use diskproof_model::measurement::OpKind;
use diskproof_model::record::{Estimate, Record};
use diskproof_model::surface::{CurvePoint, Scan, SeekPattern, SurfaceRecord};
use diskproof_model::units::{
    counted, format_bytes, format_duration, format_latency, format_rate, format_throughput,
};
use std::io;

/// Bad places that a page lists; the record holds more.
const PLACES_SHOWN: usize = 10;

/// Readings that differ by less are the same, as a share.
const CONFIRMED: f64 = 0.02;

/// Writes everything about the surface.
pub(super) fn write_surface(
    page: &mut Page<'_>,
    record: &Record,
    s: &SurfaceRecord,
) -> io::Result<()> {
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

fn conditions(s: &SurfaceRecord) -> String {
    let verb = if s.operation == OpKind::Write {
        "writes"
    } else {
        "reads"
    };
    let mut text = format!(
        "{verb} {}, {}, {}",
        words::span(s.span_start_bytes, s.span_bytes),
        words::cache(s.cache),
        s.engine.as_str()
    );
    if s.rate.is_some() {
        let done = if s.operation == OpKind::Write {
            "wrote"
        } else {
            "read"
        };
        let (bytes, share) = (format_bytes(s.curve_bytes), words::percent(s.curve_share));
        text.push_str(&format!(
            "; the curve {done} {bytes} of it ({share}) in {}",
            format_duration(s.curve_ns)
        ));
    }
    text
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
            "{} of {} of the curve gave errors, the first at {}",
            bad.len(),
            counted(record.curve.len() as u64, "place"),
            place(*first)
        );
        page.entry((Ink::Alarm, "errors"), INDENT, (Ink::Plain, &text))?;
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
            (Ink::Alarm, "errors"),
            INDENT,
            (
                Ink::Plain,
                &format!("accesses that failed: {}", failed.join(", ")),
            ),
        )
    }
}

/// Points that a disturbance had made stand out, and how far.
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
        format!("{what} of {of} stood out and {verb} read again, with the same result")
    } else {
        let (at, before, after) = (
            distance(most.offset_bytes as f64),
            format_throughput(most.readings[0]),
            format_throughput(most.bytes_per_second),
        );
        format!(
            "{what} of {of} stood out and {verb} read again; the median counts (most changed: \
             {at}, {before} at first, then {after})"
        )
    };
    fact(page, "again", &text)
}

/// Offsets are compared with data sheets and partition tables: decimal, and to the byte.
fn place(offset_bytes: u64) -> String {
    format!("{} (byte {offset_bytes})", distance(offset_bytes as f64))
}

fn distance(bytes: f64) -> String {
    if bytes < 1e9 {
        format!("{:.1} MB", bytes / 1e6)
    } else {
        format!("{:.1} GB", bytes / 1e9)
    }
}

fn precision(estimate: &Estimate) -> String {
    estimate
        .relative_half_width()
        .map_or("± ?".to_owned(), |relative| {
            format!("± {}", words::percent(relative))
        })
}

fn latency(ns: f64) -> String {
    format_latency(ns.round() as u64)
}

/// A table whose first column holds words and all others figures; rows too wide for the page are
/// told as running text.
fn write_table(page: &mut Page<'_>, heading: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    page.blank()?;
    let heading: Vec<String> = heading.iter().map(|&name| name.to_owned()).collect();
    let mut leans = vec![Lean::Right; heading.len()];
    leans[0] = Lean::Left;
    let columns = Columns::fit(&leans, rows.iter().chain([&heading]));
    if page.has_room_for(columns.total()) {
        page.unbroken(Ink::Faint, &columns.line(&heading))?;
        return rows
            .iter()
            .try_for_each(|row| page.unbroken(Ink::Plain, &columns.line(row)));
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
            (Ink::Plain, &row[0]),
            INDENT,
            (Ink::Plain, &text.join(", ")),
        )?;
    }
    Ok(())
}

/// Minimum, average and maximum of everything that has them.
fn write_ends(page: &mut Page<'_>, s: &SurfaceRecord) -> io::Result<()> {
    let row = |cells: [String; 5]| cells.to_vec();
    let mut rows = Vec::new();
    if let Some(rate) = &s.rate {
        let [min, average, max] = [rate.min, rate.average.value, rate.max].map(format_throughput);
        rows.push(row([
            "transfer rate".to_owned(),
            min,
            average,
            precision(&rate.average),
            max,
        ]));
    }
    if let Some(seek) = s.seeks.get(&SeekPattern::Random) {
        let (min, max) = (format_latency(seek.min_ns), format_latency(seek.max_ns));
        rows.push(row([
            "access time".to_owned(),
            min,
            latency(seek.mean.value),
            precision(&seek.mean),
            max,
        ]));
    }
    if let Some(burst) = &s.burst {
        let rate = format_throughput(burst.throughput.value);
        rows.push(row([
            "burst rate".to_owned(),
            String::new(),
            rate,
            precision(&burst.throughput),
            String::new(),
        ]));
    }
    if s.rate.is_some() {
        rows.push(row([
            "CPU use".to_owned(),
            String::new(),
            words::percent(s.curve_cpu_share),
            String::new(),
            String::new(),
        ]));
    }
    write_table(page, &["", "min", "average", "± 95 %", "max"], &rows)
}

fn write_seeks(page: &mut Page<'_>, s: &SurfaceRecord) -> io::Result<()> {
    let row = |(pattern, seek): (&SeekPattern, &diskproof_model::surface::SeekSummary)| {
        vec![
            pattern.as_str().to_owned(),
            seek.n.to_string(),
            distance(seek.distance_mean_bytes),
            latency(seek.mean.value),
            precision(&seek.mean),
            format_latency(seek.p50_ns),
            format_latency(seek.max_ns),
            format_rate(seek.iops),
        ]
    };
    let rows: Vec<Vec<String>> = s.seeks.iter().map(row).collect();
    write_table(
        page,
        &[
            "seeks", "number", "distance", "average", "± 95 %", "median", "max", "IOPS",
        ],
        &rows,
    )
}

fn write_short_strokes(page: &mut Page<'_>, s: &SurfaceRecord) -> io::Result<()> {
    let row = |stroke: &diskproof_model::surface::ShortStroke| {
        vec![
            format!("first {} %", stroke.percent),
            format_bytes(stroke.span_bytes),
            format_rate(stroke.iops.value),
            precision(&stroke.iops),
            format!("× {:.2}", stroke.gain),
            latency(stroke.latency_mean_ns),
            format_latency(stroke.latency_max_ns),
            stroke.throughput.map(format_throughput).unwrap_or_default(),
        ]
    };
    let rows: Vec<Vec<String>> = s.short_strokes.iter().map(row).collect();
    write_table(
        page,
        &[
            "short stroke",
            "size",
            "IOPS",
            "± 95 %",
            "gain",
            "average",
            "worst",
            "transfer",
        ],
        &rows,
    )
}

/// The map, then the places that somebody has to look at.
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
    write_places(page, (Ink::Caution, "slow"), slow, scan.slow_blocks)?;
    let bad = scan.unreadable.iter().map(|r| {
        (
            r.lba,
            r.offset_bytes,
            format!("{} {}", format_bytes(r.length_bytes), r.errno),
        )
    });
    write_places(page, (Ink::Alarm, "bad"), bad, scan.unreadable.len() as u64)
}

/// Which part of the span this run read. What lies before may be full of holes, and nobody may take
/// it for read.
pub(crate) fn reach(scan: &Scan, span_start_bytes: u64) -> String {
    let from = if scan.from_bytes > span_start_bytes {
        format!("from {} ", place(scan.from_bytes))
    } else {
        String::new()
    };
    match (scan.finished, from.is_empty()) {
        (true, true) => "all of the span".to_owned(),
        (true, false) => format!("{from}to the end, not what lies before"),
        (false, _) => format!(
            "{from}up to {}; --resume goes on there",
            place(scan.to_bytes)
        ),
    }
}

/// Longest latency by position in one line, and below it where blocks failed.
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
        (Ink::Faint, format!("map{indent}")),
        (Ink::Plain, worst_line(&latencies, width)),
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
            (Ink::Plain, " ".repeat(INDENT)),
            (Ink::Alarm, marks.trim_end().to_owned()),
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

/// Places by block address, as many as a page takes.
fn write_places(
    page: &mut Page<'_>,
    label: (Ink, &str),
    places: impl Iterator<Item = (u64, u64, String)>,
    total: u64,
) -> io::Result<()> {
    let mut shown = 0;
    for (lba, offset, what) in places.take(PLACES_SHOWN) {
        page.entry(
            if shown == 0 { label } else { (Ink::Plain, "") },
            INDENT,
            (Ink::Plain, &format!("LBA {lba}, {}: {what}", place(offset))),
        )?;
        shown += 1;
    }
    if total > shown {
        fact(page, "", &format!("and {} more: --json", total - shown))
    } else {
        Ok(())
    }
}
