//! The errors of texts that are no usable record or comparison.

use crate::comparison::COMPARISON_SCHEMA;
use crate::fleet::FLEET_SCHEMA;
use crate::record::{RECORD_SCHEMA, Record};

/// Characters that an error quotes of a path or a schema's name.
const QUOTED_CHARS_MAX: usize = 200;

/// The reason why a text is no usable record or comparison.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DocumentError {
    /// Longer than any record; nothing of it was parsed.
    #[error("it is larger than 64 MiB, the limit of records and comparisons")]
    TooLarge,
    /// No JSON.
    #[error("this is not a diskproof record: {0}")]
    Syntax(String),
    /// A field is missing or has another type.
    #[error("the {kind} is damaged: {why}")]
    Shape {
        /// Record or comparison.
        kind: &'static str,
        /// The field, and the place in the text.
        why: String,
    },
    /// A number that no measurement can produce.
    #[error("{path} is {value}; the largest number allowed there is {most:e}")]
    Number {
        /// JSON pointer of the number.
        path: String,
        /// The number as it was read.
        value: String,
        /// The largest magnitude allowed.
        most: f64,
    },
    /// A series whose cells have no length.
    #[error("{path} is 0")]
    NoLength {
        /// JSON pointer of the length.
        path: String,
    },
    /// A list, an object or a string beyond its longest length, or too many values in all.
    #[error("{path} has more than {most} {what}")]
    TooLong {
        /// JSON pointer of the list, object or string.
        path: String,
        /// The things that were counted, as a plural.
        what: &'static str,
        /// The most that is allowed.
        most: usize,
    },
    /// The index of a target or a measurement that the document does not have.
    #[error("{path} is {index}, but the record has {count} {what}")]
    Index {
        /// JSON pointer of the index.
        path: String,
        /// The index, from 0.
        index: usize,
        /// The number of things.
        count: usize,
        /// The things that were counted, as a plural.
        what: &'static str,
    },
    /// Measured data that no run can have.
    #[error("{path}: {why}")]
    Data {
        /// JSON pointer of the place.
        path: String,
        /// A clause that says what is wrong there.
        why: &'static str,
    },
    /// A record or comparison of a version that this program does not know.
    #[error(
        "its format is {found}; this diskproof reads {RECORD_SCHEMA}, {COMPARISON_SCHEMA} and \
         {FLEET_SCHEMA}. Use the diskproof that wrote it, or a newer one"
    )]
    OtherVersion {
        /// The value of `schema`.
        found: String,
    },
    /// The JSON output of fio, or of `-o FILE.fio.json`.
    #[error(
        "this is fio's JSON, which has only a part of a record. Use the record written by -o \
         FILE.json"
    )]
    Fio,
    /// JSON of something else.
    #[error("this is not a diskproof record. Create one with -o FILE.json or --json")]
    Foreign,
    /// A record where a comparison is needed, or the other way round.
    #[error("this is a {found}, but a {needed} is needed")]
    OtherKind {
        /// The kind of document that the text holds.
        found: &'static str,
        /// The kind of document that the caller can use.
        needed: &'static str,
    },
}

/// Refuses an index without an element.
pub(crate) fn index_below(
    path: String,
    index: usize,
    count: usize,
    what: &'static str,
) -> Result<(), DocumentError> {
    if index < count {
        return Ok(());
    }
    Err(DocumentError::Index {
        path,
        index,
        count,
        what,
    })
}

/// Refuses the index of a target that the record does not have.
pub(crate) fn target_of(record: &Record, path: String, target: usize) -> Result<(), DocumentError> {
    index_below(path, target, record.targets.len(), "targets")
}

/// serde_json quotes an unexpected string whole.
pub(super) fn explained(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let why = text.strip_suffix(&place).unwrap_or(&text);
    quoted(why) + &place
}

pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
