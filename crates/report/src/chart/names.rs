//! Ids, names and units of charts.

use diskproof_model::measurement::OpKind;
use diskproof_model::record::{MeasurementRecord, Record};

/// A unit and its size in the unit of the record.
pub(crate) type Unit = (&'static str, f64);

/// A name as a part of ids and file names: lower-case letters, digits and single hyphens.
pub(super) fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.chars().map(|c| c.to_ascii_lowercase()) {
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
        if slug.len() >= SLUG_MAX {
            break;
        }
    }
    match slug.trim_end_matches('-') {
        "" => "unnamed".to_owned(),
        slug => slug.to_owned(),
    }
}

/// A file name may have 255 bytes, including the prefix that the user chose and the extension.
pub(super) const SLUG_MAX: usize = 60;

/// The workload of a measurement, with its target if the run has several.
pub(super) fn subject(record: &Record, m: &MeasurementRecord) -> String {
    match record.targets.get(m.target) {
        Some(target) if record.targets.len() > 1 => {
            format!("{} on {}", m.workload.name, target.path)
        }
        _ => m.workload.name.clone(),
    }
}

/// The workload of an operation, with the kind of operation if it has several.
pub(super) fn operation(record: &Record, m: &MeasurementRecord, kind: OpKind) -> String {
    let subject = subject(record, m);
    match m.headline_ops().len() {
        2.. => format!("{subject} {}s", kind.as_str()),
        _ => subject,
    }
}

/// Decimal units, as in data sheets of disks.
pub(crate) fn position_unit(bytes_max: f64) -> Unit {
    match bytes_max {
        1e9.. => ("GB", 1e9),
        _ => ("MB", 1e6),
    }
}

/// Milliseconds, or microseconds if all values are below two milliseconds.
pub(super) fn latency_unit(ns_largest: f64) -> Unit {
    match ns_largest {
        2e6.. => ("ms", 1e6),
        _ => ("µs", 1e3),
    }
}
