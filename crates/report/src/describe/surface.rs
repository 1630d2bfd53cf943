//! A survey of the surface in words: its conditions, positions, which part a scan read.

use crate::labels;
use diskproof_model::measurement::OpKind;
use diskproof_model::surface::{Scan, SurfaceRecord};
use diskproof_model::units::{format_bytes, format_duration, format_percent};

/// Span, cache mode, engine, and how much the curve read.
pub(crate) fn conditions(s: &SurfaceRecord) -> String {
    let verb = if s.operation == OpKind::Write {
        "writes"
    } else {
        "reads"
    };
    let mut text = format!(
        "{verb} {}, {}, {}",
        labels::span(s.span_start_bytes, s.span_bytes),
        labels::cache(s.cache),
        s.engine.as_str()
    );
    if s.rate.is_some() {
        let done = if s.operation == OpKind::Write {
            "wrote"
        } else {
            "read"
        };
        let (bytes, share) = (format_bytes(s.curve_bytes), format_percent(s.curve_share));
        text.push_str(&format!(
            "; the curve {done} {bytes} of it ({share}) in {}",
            format_duration(s.curve_ns)
        ));
    }
    text
}

/// Offsets are compared with data sheets and partition tables: decimal, and to the byte.
pub(crate) fn place(offset_bytes: u64) -> String {
    format!("{} (byte {offset_bytes})", distance(offset_bytes as f64))
}

/// A distance in decimal units, as disks are sold.
pub(crate) fn distance(bytes: f64) -> String {
    if bytes < 1e9 {
        format!("{:.1} MB", bytes / 1e6)
    } else {
        format!("{:.1} GB", bytes / 1e9)
    }
}

/// Which part of the span this run read. The part before a resumed scan may have gaps.
pub(crate) fn reach(scan: &Scan, span_start_bytes: u64) -> String {
    let from = if scan.from_bytes > span_start_bytes {
        format!("from {} ", place(scan.from_bytes))
    } else {
        String::new()
    };
    match (scan.finished, from.is_empty()) {
        (true, true) => "the whole span".to_owned(),
        (true, false) => format!("{from}to the end; the part before was not read"),
        (false, _) => format!(
            "{from}up to {}; continue with --resume",
            place(scan.to_bytes)
        ),
    }
}
