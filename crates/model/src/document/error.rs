//! The errors of texts that are no usable record or comparison.

use crate::comparison::COMPARISON_SCHEMA;
use crate::fleet::FLEET_SCHEMA;
use crate::record::{RECORD_SCHEMA, Record};

/// The way to get a record.
const CREATE: &str = "Create one with -o FILE.json or --json";
/// The way out of damage.
const RESTORE: &str = ". The file was changed or damaged: restore it from a copy, or write it \
                       again from the history with 'diskproof export'";
/// Characters that an error quotes of a path or a schema's name.
const QUOTED_CHARS_MAX: usize = 200;

/// The reason why a text is no usable record or comparison.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DocumentError {
    /// Longer than any record; nothing of it was parsed.
    #[error("it is larger than 64 MiB, the limit of records and comparisons")]
    TooLarge,
    /// Nothing but blanks.
    #[error("it is empty, so it is not a diskproof record. {CREATE}")]
    Empty,
    /// No JSON.
    #[error("this is not a diskproof record, nor any JSON: {why}. {CREATE}")]
    NotJson {
        /// The cause, and the place in the text.
        why: String,
    },
    /// JSON that does not end.
    #[error("the JSON is truncated: it ends within line {line}. Copy the whole file again")]
    Truncated {
        /// The last line, from 1.
        line: usize,
    },
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
    #[error("this is JSON of another program, and not a diskproof record. {CREATE}")]
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

impl DocumentError {
    /// What to do about a document with this error, as the end of a sentence; empty where the error
    /// itself says it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Shape { .. }
            | Self::Number { .. }
            | Self::NoLength { .. }
            | Self::TooLong { .. }
            | Self::Index { .. }
            | Self::Data { .. } => RESTORE,
            Self::TooLarge
            | Self::Empty
            | Self::NotJson { .. }
            | Self::Truncated { .. }
            | Self::OtherVersion { .. }
            | Self::Fio
            | Self::Foreign
            | Self::OtherKind { .. } => "",
        }
    }
}

/// The error of a text that is no JSON.
pub(super) fn syntax_error(text: &str, error: &serde_json::Error) -> DocumentError {
    if text.trim().is_empty() {
        return DocumentError::Empty;
    }
    // A text that never was JSON ends early, too.
    if error.is_eof() && text.trim_start().starts_with(['{', '[']) {
        return DocumentError::Truncated { line: error.line() };
    }
    DocumentError::NotJson {
        why: explained(error),
    }
}

/// An error of serde in words of ours: `the field 'seed' is missing (line 1, column 30)`.
pub(super) fn explained(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let why = text.strip_suffix(&place).unwrap_or(&text);
    format!(
        "{} (line {}, column {})",
        // serde_json quotes an unexpected string whole.
        quoted(&in_words(why)),
        error.line(),
        error.column()
    )
}

/// An error of serde, without its place, in words of ours; those that we do not know as they are.
fn in_words(why: &str) -> String {
    if let Some(field) = why.strip_prefix("missing field ") {
        return format!("the field {} is missing", field.replace('`', "'"));
    }
    if let Some(field) = why.strip_prefix("duplicate field ") {
        return format!("the field {} is there twice", field.replace('`', "'"));
    }
    if let Some(rest) = why.strip_prefix("unknown variant ")
        && let Some((value, _)) = rest.split_once(", expected ")
    {
        return format!("{} is no known value", value.replace('`', "'"));
    }
    for prefix in ["invalid type: ", "invalid value: ", "invalid length "] {
        if let Some(rest) = why.strip_prefix(prefix)
            && let Some((actual, expected)) = rest.split_once(", expected ")
        {
            let actual = if prefix == "invalid length " {
                format!("a list of {actual}")
            } else {
                type_in_words(actual).to_owned()
            };
            return format!("{actual} is in the place of {}", type_in_words(expected));
        }
    }
    why.to_owned()
}

/// A type of Rust or of serde as one of JSON. Other words stay as they are.
fn type_in_words(name: &str) -> &str {
    match name {
        "map" | "a map" => "an object",
        "sequence" | "a sequence" => "a list",
        "unit" | "null" => "null",
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => "a whole number",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        _ if name.starts_with("struct ") || name.contains("tagged enum ") => "an object",
        _ if name.starts_with("a tuple ") || name.starts_with("an array ") => "a list",
        _ if name.starts_with("tuple ") => "a list",
        _ if name.starts_with("enum ") => "a known value",
        other => other,
    }
}

/// A text from outside, cut where it is too long to be quoted.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Kind {
        ReadOnly,
    }

    #[derive(Debug, Deserialize)]
    struct Inner {
        #[expect(dead_code)]
        kind: Kind,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code)]
    struct Outer {
        seed: u64,
        pair: (u8, u8),
        inner: Option<Inner>,
    }

    #[test]
    fn errors_of_serde_are_words_for_the_user() {
        for (text, words) in [
            (r#"{"seed": 1}"#, "the field 'pair' is missing (line 1"),
            (
                r#"{"seed": "x", "pair": [1, 2]}"#,
                "string \"x\" is in the place of a whole number",
            ),
            (
                r#"{"seed": {}, "pair": [1, 2]}"#,
                "an object is in the place of a whole number",
            ),
            (
                r#"{"seed": 1, "pair": [1]}"#,
                "a list of 1 is in the place of a list",
            ),
            (
                r#"{"seed": 1, "seed": 2, "pair": [1, 2]}"#,
                "the field 'seed' is there twice",
            ),
            (
                r#"{"seed": 1, "pair": [1, 2], "inner": []}"#,
                "a list of 0 is in the place of an object",
            ),
            (
                r#"{"seed": 1, "pair": [1, 2], "inner": {"kind": "x"}}"#,
                "'x' is no known value",
            ),
        ] {
            let error = serde_json::from_str::<Outer>(text).unwrap_err();
            let explained = explained(&error);
            assert!(explained.starts_with(words), "{explained}");
        }
    }

    #[test]
    fn text_that_is_no_json_is_empty_truncated_or_foreign() {
        for (text, expected) in [
            (" \n", "Empty"),
            ("{\"a\": [1,", "Truncated { line: 1 }"),
            ("{\n\"a\": \"x", "Truncated { line: 2 }"),
            ("nul", "NotJson {"),
            ("{a}", "NotJson {"),
        ] {
            let error = serde_json::from_str::<serde_json::Value>(text).unwrap_err();
            let found = format!("{:?}", syntax_error(text, &error));
            assert!(found.starts_with(expected), "{found}");
        }
    }
}
