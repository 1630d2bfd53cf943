//! Records and comparisons from outside: files, report pages, pipes, the history. Every number is
//! compared with its range, every list with its longest length, before anything is built from the
//! text. Knows JSON text only, not where it comes from.

use crate::comparison::{COMPARISON_SCHEMA, Comparison};
use crate::histogram::{HistogramError, LatencyHistogram};
use crate::limits::{DOCUMENT_BYTES_MAX, NumberRange, STRING_BYTES_MAX, VALUES_MAX, length_max};
use crate::record::{LatencySummary, RECORD_SCHEMA, Record};
use crate::saved::SavedRun;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error as _};
use serde::de::{MapAccess, SeqAccess, Visitor};
use std::fmt::{self, Write as _};

/// Characters that an error quotes of a path or a schema's name.
const QUOTED_CHARS_MAX: usize = 200;

/// What a file or a page holds.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyDocument {
    /// A run.
    Record(Box<Record>),
    /// A comparison of runs.
    Comparison(Box<Comparison>),
}

/// Why a text is no usable record or comparison.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DocumentError {
    /// Longer than any record; nothing of it was parsed.
    #[error("it is larger than 64 MiB, which no record or comparison is")]
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
    #[error("{path} is {value}; allowed is {range}")]
    Number {
        /// JSON pointer of the number.
        path: String,
        /// The number as it was read.
        value: String,
        /// What may stand there.
        range: NumberRange,
    },
    /// A list, an object or a string beyond its longest length, or too many values in all.
    #[error("{path} has more than {most} {what}")]
    TooLong {
        /// JSON pointer of the list, object or string.
        path: String,
        /// What was counted.
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
        /// How many there are.
        count: usize,
        /// Of what.
        what: &'static str,
    },
    /// An encoded latency distribution that cannot be decoded.
    #[error("{path}: {source}")]
    Histogram {
        /// JSON pointer of the encoded histogram.
        path: String,
        /// Why.
        source: HistogramError,
    },
    /// A record or comparison of a version that this program does not know.
    #[error(
        "its format is {found}; this diskproof reads {RECORD_SCHEMA} and {COMPARISON_SCHEMA}. \
         Use a newer diskproof"
    )]
    Newer {
        /// The value of `schema`.
        found: String,
    },
    /// The JSON output of fio, or of `-o FILE.fio.json`.
    #[error(
        "this is fio's JSON, which holds only part of a record. Use the record that -o FILE.json \
         writes"
    )]
    Fio,
    /// JSON of something else.
    #[error("this is not a diskproof record. Make one with -o FILE.json or --json")]
    Foreign,
    /// A record where a comparison is needed, or the other way round.
    #[error("this is a {found}, and a {needed} is needed")]
    OtherKind {
        /// What the text holds.
        found: &'static str,
        /// What the caller can use.
        needed: &'static str,
    },
}

impl AnyDocument {
    /// Reads the JSON text of a record or a comparison.
    pub fn from_json(text: &str) -> Result<Self, DocumentError> {
        #[derive(serde::Deserialize)]
        struct Head {
            schema: Option<String>,
            /// The first key of fio's JSON.
            #[serde(rename = "fio version")]
            fio: Option<String>,
        }
        check(text)?;
        let head: Head =
            serde_json::from_str(text).map_err(|error| DocumentError::Syntax(told(&error)))?;
        match head.schema.as_deref() {
            Some(RECORD_SCHEMA) => {
                let record: Record = parse(text, "record")?;
                check_record(&record)?;
                Ok(Self::Record(Box::new(record)))
            }
            Some(COMPARISON_SCHEMA) => Ok(Self::Comparison(parse(text, "comparison")?)),
            Some(other)
                if other.starts_with("diskproof.record/")
                    || other.starts_with("diskproof.comparison/") =>
            {
                Err(DocumentError::Newer {
                    found: quoted(other),
                })
            }
            None if head.fio.is_some() => Err(DocumentError::Fio),
            _ => Err(DocumentError::Foreign),
        }
    }
}

impl Record {
    /// Reads the JSON text of a record.
    pub fn from_json(text: &str) -> Result<Self, DocumentError> {
        match AnyDocument::from_json(text)? {
            AnyDocument::Record(record) => Ok(*record),
            AnyDocument::Comparison(_) => Err(DocumentError::OtherKind {
                found: "comparison",
                needed: "record",
            }),
        }
    }
}

impl SavedRun {
    /// Reads the short form that the history keeps beside each record.
    pub fn from_json(text: &str) -> Result<Self, DocumentError> {
        check(text)?;
        parse(text, "short form")
    }
}

fn parse<T: DeserializeOwned>(text: &str, kind: &'static str) -> Result<T, DocumentError> {
    serde_json::from_str(text).map_err(|error| DocumentError::Shape {
        kind,
        why: told(&error),
    })
}

/// serde_json quotes an unexpected string whole.
fn told(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let why = text.strip_suffix(&place).unwrap_or(&text);
    quoted(why) + &place
}

fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Walks through the text without building anything from it.
fn check(text: &str) -> Result<(), DocumentError> {
    if text.len() > DOCUMENT_BYTES_MAX {
        return Err(DocumentError::TooLarge);
    }
    let mut walk = Walk {
        path: String::new(),
        values: 0,
        fault: None,
    };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let root = Value {
        walk: &mut walk,
        key: "",
        range: NumberRange::unknown(),
        are_names: false,
    };
    let walked = root
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end());
    match (walk.fault, walked) {
        (Some(fault), _) => Err(fault),
        (None, Err(error)) => Err(DocumentError::Syntax(told(&error))),
        (None, Ok(())) => Ok(()),
    }
}

/// The state of a walk.
struct Walk {
    /// JSON pointer of the value that is read now (RFC 6901).
    path: String,
    /// Values seen so far.
    values: usize,
    /// What ended the walk; serde's own errors are texts only.
    fault: Option<DocumentError>,
}

impl Walk {
    fn fail<E: serde::de::Error>(&mut self, fault: DocumentError) -> E {
        self.fault = Some(fault);
        E::custom("out of range")
    }

    fn too_long<E: serde::de::Error>(&mut self, what: &'static str, most: usize) -> E {
        let path = self.pointer();
        self.fail(DocumentError::TooLong { path, what, most })
    }

    fn pointer(&self) -> String {
        if self.path.is_empty() {
            "the document".to_owned()
        } else {
            quoted(&self.path)
        }
    }
}

/// The value that comes next.
struct Value<'w, 'k> {
    walk: &'w mut Walk,
    /// Key of the value, or of the list that it stands in.
    key: &'k str,
    /// What a number may be here.
    range: NumberRange,
    /// Whether the keys beneath are names of errors, which have no ranges of their own.
    are_names: bool,
}

impl Value<'_, '_> {
    fn number<E: serde::de::Error>(self, value: f64, shown: impl fmt::Display) -> Result<(), E> {
        if self.range.holds(value) {
            return Ok(());
        }
        let path = self.walk.pointer();
        Err(self.walk.fail(DocumentError::Number {
            path,
            value: shown.to_string(),
            range: self.range,
        }))
    }
}

impl<'de> DeserializeSeed<'de> for Value<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.walk.values += 1;
        if self.walk.values > VALUES_MAX {
            self.walk.path.clear();
            return Err(self.walk.too_long("values", VALUES_MAX));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of a record")
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.number(value as f64, value)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.number(value as f64, value)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.number(value, format_args!("{value:?}"))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        if text.len() > STRING_BYTES_MAX {
            return Err(self.walk.too_long("bytes", STRING_BYTES_MAX));
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let (most, base) = (length_max(self.key), self.walk.path.len());
        for index in 0.. {
            if index > most {
                return Err(self.walk.too_long("elements", most));
            }
            write!(self.walk.path, "/{index}").map_err(A::Error::custom)?;
            let element = Value {
                walk: &mut *self.walk,
                key: self.key,
                range: self.range,
                are_names: self.are_names,
            };
            if elements.next_element_seed(element)?.is_none() {
                break;
            }
            self.walk.path.truncate(base);
        }
        self.walk.path.truncate(base);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let (most, base) = (length_max(self.key), self.walk.path.len());
        let mut seen = 0;
        let are_names = self.are_names || matches!(self.key, "errors" | "access_errors");
        while let Some(key) = members.next_key::<String>()? {
            seen += 1;
            if seen > most {
                return Err(self.walk.too_long("members", most));
            }
            self.walk.path.push('/');
            self.walk
                .path
                .push_str(&key.replace('~', "~0").replace('/', "~1"));
            let range = if are_names {
                self.range
            } else {
                NumberRange::of(&key, self.range)
            };
            members.next_value_seed(Value {
                walk: &mut *self.walk,
                key: &key,
                range,
                are_names,
            })?;
            self.walk.path.truncate(base);
        }
        Ok(())
    }
}

/// What no range of a single number can tell: indices, cells without length, histograms.
fn check_record(record: &Record) -> Result<(), DocumentError> {
    let targets = record.targets.len().max(record.plan.targets.len());
    let target = |path: String, index: usize| index_below(path, index, targets, "targets");
    for (place, measurement) in record.measurements.iter().enumerate() {
        let path = format!("/measurements/{place}");
        target(format!("{path}/target"), measurement.target)?;
        for (kind, op) in &measurement.ops {
            let path = format!("{path}/ops/{}", kind.as_str());
            check_histogram(&format!("{path}/latency"), &op.latency)?;
            if let Some(latency) = &op.latency_intended {
                check_histogram(&format!("{path}/latency_intended"), latency)?;
            }
            if op.series.interval_ns == 0 {
                return Err(DocumentError::Number {
                    path: format!("{path}/series/interval_ns"),
                    value: "0".to_owned(),
                    range: NumberRange::of("interval_ns", NumberRange::unknown()).without_zero(),
                });
            }
        }
    }
    let Some(surface) = &record.surface else {
        return Ok(());
    };
    target("/surface/target".to_owned(), surface.target)?;
    for (place, stroke) in surface.short_strokes.iter().enumerate() {
        index_below(
            format!("/surface/short_strokes/{place}/measurement"),
            stroke.measurement,
            record.measurements.len(),
            "measurements",
        )?;
    }
    Ok(())
}

fn index_below(
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

fn check_histogram(path: &str, latency: &LatencySummary) -> Result<(), DocumentError> {
    match LatencyHistogram::from_hdr_base64(&latency.hdr) {
        Ok(_) => Ok(()),
        Err(source) => Err(DocumentError::Histogram {
            path: format!("{path}/hdr"),
            source,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const CHECK: &str = include_str!("../../../tests/fixtures/check-directory.json");
    const SCAN: &str = include_str!("../../../tests/fixtures/curve-scan.json");
    const COMPARED: &str = include_str!("../../../tests/fixtures/comparison.json");

    /// The text of a fixture with another value at a pointer.
    fn with(text: &str, pointer: &str, value: serde_json::Value) -> String {
        let mut document: serde_json::Value = serde_json::from_str(text).unwrap();
        *document.pointer_mut(pointer).expect(pointer) = value;
        document.to_string()
    }

    fn error(text: &str) -> String {
        AnyDocument::from_json(text).unwrap_err().to_string()
    }

    #[test]
    fn own_documents_are_read_unchanged() {
        for text in [CHECK, SCAN] {
            let record = Record::from_json(text).unwrap();
            assert_eq!(record, serde_json::from_str(text).unwrap());
        }
        let comparison = AnyDocument::from_json(COMPARED).unwrap();
        assert!(matches!(comparison, AnyDocument::Comparison(_)));
        assert_eq!(
            Record::from_json(COMPARED).unwrap_err().to_string(),
            "this is a comparison, and a record is needed"
        );
    }

    #[test]
    fn numbers_out_of_range_are_named_with_path_value_and_range() {
        let iops = "/measurements/2/ops/read/iops";
        let cases = [
            (CHECK, format!("{iops}/n"), json!(1u64 << 60)),
            (CHECK, format!("{iops}/n"), json!(1.5)),
            (CHECK, format!("{iops}/half_width_95"), json!(-1.0)),
            (CHECK, format!("{iops}/value"), json!(1e300)),
            (CHECK, "/measurements/0/wall_ns".to_owned(), json!(u64::MAX)),
            (
                CHECK,
                "/measurements/0/workload/read_permille".to_owned(),
                json!(1001),
            ),
            (
                CHECK,
                "/measurements/2/ops/read/errors".to_owned(),
                json!({"EIO": -1}),
            ),
            (
                CHECK,
                "/measurements/2/ops/read/errors".to_owned(),
                json!({"seed": 1u64 << 60}),
            ),
            (
                CHECK,
                "/measurements/2/ops/read/series/interval_ns".to_owned(),
                json!(0),
            ),
            (SCAN, "/curve/3/offset_bytes".to_owned(), json!(1e19)),
            (SCAN, "/curve/3/bytes_per_second".to_owned(), json!(-5)),
        ];
        for (text, path, value) in cases {
            let told = error(&with(text, &path, value.clone()));
            assert!(told.starts_with(&path), "{path} {value}: {told}");
            assert!(told.contains("allowed is a"), "{told}");
        }
        assert_eq!(
            error(&with(
                CHECK,
                "/measurements/0/workload/read_permille",
                json!(-7)
            )),
            "/measurements/0/workload/read_permille is -7; allowed is a whole number from 0 to 1000"
        );
    }

    #[test]
    fn indices_without_an_element_are_refused() {
        assert_eq!(
            error(&with(CHECK, "/measurements/1/target", json!(7))),
            "/measurements/1/target is 7, but the record has 1 targets"
        );
        assert_eq!(
            error(&with(
                SCAN,
                "/surface/short_strokes/0/measurement",
                json!(99)
            )),
            format!(
                "/surface/short_strokes/0/measurement is 99, but the record has {} measurements",
                Record::from_json(SCAN).unwrap().measurements.len()
            )
        );
    }

    #[test]
    fn damaged_histograms_are_named() {
        let path = "/measurements/2/ops/read/latency/hdr";
        let told = error(&with(CHECK, path, json!("AAAA")));
        assert!(
            told.starts_with(&format!("{path}: this histogram cannot")),
            "{told}"
        );
    }

    #[test]
    fn what_is_too_long_too_deep_or_no_number_is_refused() {
        let cells = |count: usize| json!(vec![json!({}); count]);
        let path = "/measurements/2/ops/read/series/cells";
        let cases = [
            (
                with(CHECK, path, cells(20_001)),
                "cells has more than 20000 elements",
            ),
            (
                with(CHECK, "/run_id", json!("x".repeat(2 << 20))),
                "/run_id has more than 1048576 bytes",
            ),
            (
                with(CHECK, "/findings", json!(vec![0; 20_000])),
                "/findings has more than 10000 el",
            ),
            (" ".repeat(DOCUMENT_BYTES_MAX + 1), "larger than 64 MiB"),
            ("[".repeat(1 << 20), "recursion limit"),
            ("{\"a\":".repeat(1 << 20), "recursion limit"),
            ("{\"schema\": 1e999}".to_owned(), "number out of range"),
            ("{\"schema\": NaN}".to_owned(), "expected value"),
            (
                "{\"curve\": -9e99}".to_owned(),
                "/curve is -9e99; allowed is a number from -1e24",
            ),
            (
                format!("{{\"x\": [{}0]}}", "[[0],[0]],".repeat(10_001)),
                "/x has more than 10000",
            ),
            ("{} {}".to_owned(), "trailing characters"),
            ("{}".to_owned(), "not a diskproof record"),
            ("{\"fio version\": \"3.36\"}".to_owned(), "fio's JSON"),
            (
                "{\"schema\": \"diskproof.record/9\"}".to_owned(),
                "diskproof.record/9",
            ),
        ];
        for (text, part) in cases {
            let told = error(&text);
            assert!(told.contains(part) && told.len() < 500, "{part}: {told}");
        }
    }
}
