//! A survey of a disk's surface in words: its conditions, tables of rates, seeks and short strokes,
//! and which part a scan read.

use crate::chart::position_unit;
use crate::labels;
use crate::text::list;
use diskproof_model::block::{Block, Tone};
use diskproof_model::digits::rounded;
use diskproof_model::measurement::OpKind;
use diskproof_model::record::{Estimate, Record};
use diskproof_model::surface::{
    CurvePoint, Scan, SeekPattern, SeekSummary, ShortStroke, SurfaceRecord,
};
use diskproof_model::units::{
    counted, format_bytes, format_duration, format_latency, format_percent, format_throughput,
};

/// A repeated reading that changed by a smaller share confirms the first one. With a larger value,
/// the page hides how much an outlier changed. Chosen, not measured.
const CONFIRMED_CHANGE: f64 = 0.02;

/// Columns of the table of extremes.
const EXTREME_COLUMNS: &str = " | min | average | ± 95 % | max";
/// Columns of the table of seeks.
const SEEK_COLUMNS: &str =
    "seeks | number | distance | average | ± 95 % | min | median | max | IOPS";
/// Columns of the table of short strokes.
const STROKE_COLUMNS: &str =
    "short stroke | size | IOPS | ± 95 % | gain | average | longest | transfer";

/// Describes a survey without its scan.
pub(crate) fn blocks(record: &Record, surface: &SurfaceRecord) -> Vec<Block> {
    let mut blocks = vec![
        Block::fact("surface", conditions_text(surface)),
        Block::Chart("curve"),
    ];
    blocks.extend(error_facts(record, surface));
    blocks.extend(repeats_fact(record));
    if let Some(burst) = &surface.data.burst {
        let bytes = format_bytes(burst.bytes);
        let rounds = counted(burst.rounds, "time");
        let what = "the speed of the device's cache and its link";
        let text = format!("reads the same {bytes} {rounds}: {what}");
        blocks.push(Block::fact("burst", text));
    }
    let end_rows = extreme_rows(surface);
    blocks.extend(table_unless_empty(
        "Survey of the surface",
        EXTREME_COLUMNS,
        end_rows,
    ));
    let mut seek_rows = Vec::new();
    for (pattern, seek) in &surface.figures.seeks {
        seek_rows.push(seek_row(*pattern, seek));
    }
    blocks.extend(table_unless_empty(
        "Access times by seek pattern",
        SEEK_COLUMNS,
        seek_rows,
    ));
    let stroke_rows = surface
        .figures
        .short_strokes
        .iter()
        .map(stroke_row)
        .collect();
    let caption = "Random reads within the first part of the disk";
    blocks.extend(table_unless_empty(caption, STROKE_COLUMNS, stroke_rows));
    blocks
}

/// A table, unless it has no rows.
fn table_unless_empty(caption: &str, columns: &str, rows: Vec<Vec<String>>) -> Option<Block> {
    if rows.is_empty() {
        return None;
    }
    Some(Block::table(caption, columns.split(" | "), rows))
}

/// Counts the points of the curve and the other requests that failed; empty without any.
fn error_facts(record: &Record, surface: &SurfaceRecord) -> Vec<Block> {
    let mut blocks = Vec::new();
    let curve = record.curve();
    let failed_points: Vec<&CurvePoint> = curve.iter().filter(|point| point.errors > 0).collect();
    if let Some(first) = failed_points.first() {
        let text = format!(
            "{} of {} of the curve failed, the first at {}",
            failed_points.len(),
            counted(curve.len() as u64, "place"),
            place_text(first.offset_bytes)
        );
        blocks.push(Block::toned_fact(Tone::Error, "errors", text));
    }
    let mut other_errors = Vec::new();
    for (errno, count) in &surface.data.access_errors {
        other_errors.push(format!("{count} × {errno}"));
    }
    if !other_errors.is_empty() {
        let text = format!("failed requests: {}", list(other_errors));
        blocks.push(Block::toned_fact(Tone::Error, "errors", text));
    }
    blocks
}

/// Says which points stood out and were read again, and whether that confirmed them. `None` without
/// any.
fn repeats_fact(record: &Record) -> Option<Block> {
    let repeated: Vec<&CurvePoint> = record
        .curve()
        .iter()
        .filter(|point| point.readings.len() > 1)
        .collect();
    let most_changed = repeated
        .iter()
        .max_by(|one, other| reading_change(one).total_cmp(&reading_change(other)))?;
    let outcome = if reading_change(most_changed) < CONFIRMED_CHANGE {
        ": confirmed".to_owned()
    } else {
        format!(
            "; the median counts (largest change: {} to {} at {})",
            format_throughput(most_changed.readings[0]),
            format_throughput(most_changed.bytes_per_second),
            distance_text(most_changed.offset_bytes as f64),
        )
    };
    let text = format!(
        "{} of {} stood out and {} read again{outcome}",
        counted(repeated.len() as u64, "place"),
        record.curve().len(),
        if repeated.len() == 1 { "was" } else { "were" },
    );
    Some(Block::fact("again", text))
}

/// How far the first reading of a point is from the one that counts, as the size of the logarithm
/// of their ratio: for small changes the relative change.
fn reading_change(point: &CurvePoint) -> f64 {
    (point.readings[0] / point.bytes_per_second).ln().abs()
}

/// Rows with minimum, average and maximum of the transfer rate, the access time and the burst rate,
/// and one with the CPU use.
fn extreme_rows(surface: &SurfaceRecord) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    if let Some(rate) = &surface.figures.rate {
        let min = format_throughput(rate.min);
        let max = format_throughput(rate.max);
        rows.push(extreme_row("transfer rate", min, &rate.average, max));
    }
    if let Some(seek) = surface.figures.seeks.get(&SeekPattern::Random) {
        let min = format_latency(seek.min_ns);
        let max = format_latency(seek.max_ns);
        rows.push(extreme_row("access time", min, &seek.mean, max));
    }
    if let Some(burst) = &surface.data.burst {
        let (min, max) = (String::new(), String::new());
        rows.push(extreme_row("burst rate", min, &burst.throughput, max));
    }
    if surface.figures.rate.is_some() {
        let cpu = format_percent(surface.figures.curve_cpu_share);
        rows.push(["CPU use", "", &cpu, "", ""].map(str::to_owned).to_vec());
    }
    rows
}

fn extreme_row(name: &str, min: String, average: &Estimate, max: String) -> Vec<String> {
    let interval = labels::interval(average);
    vec![name.to_owned(), min, average.value_text(), interval, max]
}

fn seek_row(pattern: SeekPattern, seek: &SeekSummary) -> Vec<String> {
    // The IOPS follow from the mean and have the same relative error.
    let half_width = seek.mean.relative_half_width().map(|half| half * seek.iops);
    vec![
        pattern.as_str().to_owned(),
        seek.n.to_string(),
        distance_text(seek.distance_mean_bytes),
        seek.mean.value_text(),
        labels::interval(&seek.mean),
        format_latency(seek.min_ns),
        format_latency(seek.p50_ns),
        format_latency(seek.max_ns),
        rounded(seek.iops, half_width),
    ]
}

fn stroke_row(stroke: &ShortStroke) -> Vec<String> {
    vec![
        format!("first {} %", stroke.percent),
        format_bytes(stroke.span_bytes),
        rounded(stroke.iops.value, stroke.iops.half_width_95),
        labels::interval(&stroke.iops),
        format!("× {:.2}", stroke.gain),
        format_latency(stroke.latency_mean_ns.round() as u64),
        format_latency(stroke.latency_max_ns),
        stroke.throughput.map(format_throughput).unwrap_or_default(),
    ]
}

/// Names span, cache mode and engine, and says how much the curve read or wrote.
fn conditions_text(surface: &SurfaceRecord) -> String {
    let data = &surface.data;
    let operation = data.survey.operation;
    let mut text = format!(
        "{}s {}, {}, {}",
        operation.as_str(),
        labels::span(data.span_start_bytes, data.span_bytes),
        labels::cache(data.cache.used),
        data.engine.as_str()
    );
    if surface.figures.rate.is_some() {
        let bytes = format_bytes(surface.figures.curve_bytes);
        let share = format_percent(surface.figures.curve_share);
        let time = format_duration(data.curve_ns);
        let past_tense = if operation == OpKind::Write {
            "wrote"
        } else {
            "read"
        };
        text.push_str(&format!(
            "; the curve {past_tense} {bytes} of it ({share}) in {time}"
        ));
    }
    text
}

/// `12.5 GB (byte 12500000000)`: decimal for comparison with data sheets, and to the byte for
/// comparison with partition tables.
pub(crate) fn place_text(offset_bytes: u64) -> String {
    format!(
        "{} (byte {offset_bytes})",
        distance_text(offset_bytes as f64)
    )
}

/// A distance in decimal units, as disks are sold.
fn distance_text(bytes: f64) -> String {
    let (unit, scale) = position_unit(bytes);
    format!("{:.1} {unit}", bytes / scale)
}

/// Says which part of the span this run read. The part before a resumed scan may have gaps, so it
/// is not claimed.
pub(crate) fn scan_reach_text(scan: &Scan, span_start_bytes: u64) -> String {
    let mut from = String::new();
    if scan.from_bytes > span_start_bytes {
        from = format!("from {} ", place_text(scan.from_bytes));
    }
    if !scan.finished {
        let end = place_text(scan.to_bytes);
        // Blocks beyond it were read, too, and wait for their second reading or for neighbours.
        return format!("{from}all up to {end} judged; continue with --resume");
    }
    if from.is_empty() {
        return "the whole span".to_owned();
    }
    format!("{from}to the end; the part before was not read")
}
