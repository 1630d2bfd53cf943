//! A survey of the surface in words: its conditions, minimum, average and maximum, seeks by
//! pattern, short strokes, and which part a scan read.

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

/// Readings that differ by a smaller share count as the same.
const CONFIRMED: f64 = 0.02;

/// Columns of the tables.
const ENDS: &str = " | min | average | ± 95 % | max";
const SEEKS: &str = "seeks | number | distance | average | ± 95 % | min | median | max | IOPS";
const STROKES: &str = "short stroke | size | IOPS | ± 95 % | gain | average | longest | transfer";

/// Everything but the scan.
pub(crate) fn blocks(record: &Record, s: &SurfaceRecord) -> Vec<Block> {
    let mut blocks = vec![Block::fact("surface", conditions(s)), Block::Chart("curve")];
    blocks.extend(errors(record, s));
    blocks.extend(repeats(record));
    blocks.extend(s.data.burst.as_ref().map(|burst| {
        let (bytes, rounds) = (format_bytes(burst.bytes), counted(burst.rounds, "time"));
        let what = "the speed of the device's cache and its link";
        Block::fact("burst", format!("reads the same {bytes} {rounds}: {what}"))
    }));
    let seeks = s.figures.seeks.iter().map(|(of, seek)| seek_row(*of, seek));
    let strokes = s.figures.short_strokes.iter().map(stroke_row);
    let tables = [
        ("Survey of the surface", ENDS, ends(s)),
        ("Access times by seek pattern", SEEKS, seeks.collect()),
        (
            "Random reads within the first part of the disk",
            STROKES,
            strokes.collect(),
        ),
    ];
    let filled = tables.into_iter().filter(|(.., rows)| !rows.is_empty());
    blocks.extend(
        filled.map(|(caption, columns, rows)| Block::table(caption, columns.split(" | "), rows)),
    );
    blocks
}

fn errors(record: &Record, s: &SurfaceRecord) -> Vec<Block> {
    let mut bad = record.curve().iter().filter(|point| point.errors > 0);
    let first = bad.next().map(|first| {
        let (count, place) = (bad.count() + 1, place(first.offset_bytes));
        let places = counted(record.curve().len() as u64, "place");
        format!("{count} of {places} of the curve failed, the first at {place}")
    });
    let failed = s.data.access_errors.iter();
    let failed = list(failed.map(|(errno, n)| format!("{n} × {errno}")));
    let failed = (!failed.is_empty()).then(|| format!("failed accesses: {failed}"));
    let texts = first.into_iter().chain(failed);
    let facts = texts.map(|text| Block::toned_fact(Tone::Error, "errors", text));
    facts.collect()
}

/// Points that were read again as outliers.
fn repeats(record: &Record) -> Option<Block> {
    let points = record.curve().iter();
    let repeated: Vec<_> = points.filter(|point| point.readings.len() > 1).collect();
    let change = |point: &CurvePoint| (point.readings[0] / point.bytes_per_second).ln().abs();
    let all = repeated.iter();
    let most = all.max_by(|a, b| change(a).total_cmp(&change(b)))?;
    let outcome = if change(most) < CONFIRMED {
        ": confirmed".to_owned()
    } else {
        format!(
            "; the median counts (largest change: {} to {} at {})",
            format_throughput(most.readings[0]),
            format_throughput(most.bytes_per_second),
            distance(most.offset_bytes as f64),
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

/// Minimum, average and maximum of the transfer rate, the access time and the other figures.
fn ends(s: &SurfaceRecord) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut row = |name: &str, min: String, estimate: &Estimate, max: String| {
        let (average, interval) = (estimate.value_text(), labels::interval(estimate));
        rows.push(vec![name.to_owned(), min, average, interval, max]);
    };
    if let Some(rate) = &s.figures.rate {
        let [min, max] = [rate.min, rate.max].map(format_throughput);
        row("transfer rate", min, &rate.average, max);
    }
    if let Some(seek) = s.figures.seeks.get(&SeekPattern::Random) {
        let [min, max] = [seek.min_ns, seek.max_ns].map(format_latency);
        row("access time", min, &seek.mean, max);
    }
    if let Some(burst) = &s.data.burst {
        let [min, max] = [String::new(), String::new()];
        row("burst rate", min, &burst.throughput, max);
    }
    if s.figures.rate.is_some() {
        let cpu = format_percent(s.figures.curve_cpu_share);
        rows.push(["CPU use", "", &cpu, "", ""].map(str::to_owned).to_vec());
    }
    rows
}

fn seek_row(pattern: SeekPattern, seek: &SeekSummary) -> Vec<String> {
    // The IOPS follow from the mean and have the same relative error.
    let half_width = seek.mean.relative_half_width().map(|half| half * seek.iops);
    vec![
        pattern.as_str().to_owned(),
        seek.n.to_string(),
        distance(seek.distance_mean_bytes),
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

/// Span, cache mode, engine, and how much the curve read.
fn conditions(s: &SurfaceRecord) -> String {
    let (verb, done) = match s.data.survey.operation {
        OpKind::Write => ("writes", "wrote"),
        _ => ("reads", "read"),
    };
    let span = labels::span(s.data.span_start_bytes, s.data.span_bytes);
    let (cache, engine) = (labels::cache(s.data.cache.used), s.data.engine.as_str());
    let mut text = format!("{verb} {span}, {cache}, {engine}");
    if s.figures.rate.is_some() {
        let (bytes, share) = (
            format_bytes(s.figures.curve_bytes),
            format_percent(s.figures.curve_share),
        );
        let time = format_duration(s.data.curve_ns);
        text += &format!("; the curve {done} {bytes} of it ({share}) in {time}");
    }
    text
}

/// Offsets are compared with data sheets and partition tables: decimal, and to the byte.
pub(crate) fn place(offset_bytes: u64) -> String {
    format!("{} (byte {offset_bytes})", distance(offset_bytes as f64))
}

/// A distance in decimal units, as disks are sold.
fn distance(bytes: f64) -> String {
    let (unit, scale) = position_unit(bytes);
    format!("{:.1} {unit}", bytes / scale)
}

/// Which part of the span this run read. The part before a resumed scan may have gaps.
pub(crate) fn reach(scan: &Scan, span_start_bytes: u64) -> String {
    let from = (scan.from_bytes > span_start_bytes).then(|| place(scan.from_bytes));
    match (scan.finished, from) {
        (true, None) => "the whole span".to_owned(),
        (true, Some(from)) => format!("from {from} to the end; the part before was not read"),
        (false, from) => {
            let from = from.map_or(String::new(), |from| format!("from {from} "));
            format!(
                "{from}up to {}; continue with --resume",
                place(scan.to_bytes)
            )
        }
    }
}
