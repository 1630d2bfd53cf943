//! Names in charts: ids, and what a series or a title calls a measurement.

use diskproof_model::measurement::OpKind;
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::target::TargetIdentity;

/// A name as a part of ids and file names: lower-case letters, digits and single hyphens.
pub(super) fn slug(name: &str) -> String {
    let mut slug = String::new();
    for letter in name.chars() {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter.to_ascii_lowercase());
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

/// A longer name is cut, in bytes. A file name may have 255 bytes, including the prefix that the
/// user chose and the extension; the limit is well below, because users read these names.
pub(super) const SLUG_MAX: usize = 60;

/// The target of a measurement, for a name that has to distinguish it; `None` where the record has
/// only one target.
pub(crate) fn target_among_several<'a>(
    record: &'a Record,
    row: &Row,
) -> Option<&'a TargetIdentity> {
    if record.targets.len() > 1 {
        record.targets.get(row.data.target)
    } else {
        None
    }
}

/// The workload of a measurement, with its target if the run has several.
pub(super) fn subject_name(record: &Record, row: &Row) -> String {
    let workload = &row.data.workload.name;
    match target_among_several(record, row) {
        Some(target) => format!("{workload} on {}", target.path),
        None => workload.clone(),
    }
}

/// The workload of an operation, with the kind of operation if it has several.
pub(super) fn operation_name(record: &Record, row: &Row, kind: OpKind) -> String {
    let mut name = subject_name(record, row);
    if row.headline_ops().len() > 1 {
        name += &format!(" {}s", kind.as_str());
    }
    name
}
