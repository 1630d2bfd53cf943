//! Checks the size of every number, string and list before anything is built from the text.

use super::error::{DocumentError, quoted, syntax_error};
use crate::histogram::LatencyHistogram;
use crate::limits::{
    DOCUMENT_BYTES_MAX, HISTOGRAM_PAGES_MAX, PACKED_CELLS_MAX, STRING_BYTES_MAX, VALUES_MAX,
    length_max, number_max,
};
use crate::series::cells_of_packed;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use std::fmt::{self, Write as _};

/// Walks through the text without building anything from it.
pub(super) fn check(text: &str) -> Result<(), DocumentError> {
    if text.len() > DOCUMENT_BYTES_MAX {
        return Err(DocumentError::TooLarge);
    }
    let mut walk = Walk {
        path: String::new(),
        values: 0,
        packed_cells: 0,
        histogram_pages: 0,
        fault: None,
    };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let root = Value {
        walk: &mut walk,
        key: "",
    };
    let walked = root
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end());
    match (walk.fault, walked) {
        (Some(fault), _) => Err(fault),
        (None, Err(error)) => Err(syntax_error(text, &error)),
        (None, Ok(())) => Ok(()),
    }
}

/// The state of a walk.
struct Walk {
    /// JSON pointer of the value that is read now (RFC 6901).
    path: String,
    /// Values seen so far.
    values: usize,
    /// Cells of the packed series seen so far.
    packed_cells: u64,
    /// Pages of memory that the distributions seen so far take.
    histogram_pages: usize,
    /// The fault that ended the walk; serde's own errors are texts only.
    fault: Option<DocumentError>,
}

impl Walk {
    /// Keeps the fault for the caller. The error only ends the walk; serde takes no other type.
    fn fail<E: serde::de::Error>(&mut self, fault: DocumentError) -> E {
        self.fault = Some(fault);
        E::custom("out of range")
    }

    /// As [`Self::fail`], for the place that is being read.
    fn too_long<E: serde::de::Error>(&mut self, what: &'static str, most: usize) -> E {
        let path = self.pointer();
        self.fail(DocumentError::TooLong { path, what, most })
    }

    /// JSON pointer of the place that is being read, as errors name it.
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
}

impl Value<'_, '_> {
    /// Refuses a number beyond the limit of its key.
    fn number<E: serde::de::Error>(self, value: f64, shown: impl fmt::Display) -> Result<(), E> {
        let most = number_max(self.key);
        if value.abs() <= most {
            return Ok(());
        }
        let path = self.walk.pointer();
        Err(self.walk.fail(DocumentError::Number {
            path,
            value: shown.to_string(),
            most,
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
        if self.key == "series" {
            self.walk.packed_cells += cells_of_packed(text);
            if self.walk.packed_cells > PACKED_CELLS_MAX {
                self.walk.path.clear();
                let what = "cells in its series";
                return Err(self.walk.too_long(what, PACKED_CELLS_MAX as usize));
            }
        }
        if self.key == "hdr" {
            self.walk.histogram_pages += LatencyHistogram::pages_of_hdr(text);
            if self.walk.histogram_pages > HISTOGRAM_PAGES_MAX {
                self.walk.path.clear();
                let what = "pages of latencies in its distributions";
                return Err(self.walk.too_long(what, HISTOGRAM_PAGES_MAX));
            }
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
        let (members_max, base) = (length_max(self.key), self.walk.path.len());
        let mut member_count = 0;
        while let Some(key) = members.next_key::<String>()? {
            member_count += 1;
            if member_count > members_max {
                return Err(self.walk.too_long("members", members_max));
            }
            self.walk.path.push('/');
            self.walk
                .path
                .push_str(&key.replace('~', "~0").replace('/', "~1"));
            members.next_value_seed(Value {
                walk: &mut *self.walk,
                key: &key,
            })?;
            self.walk.path.truncate(base);
        }
        Ok(())
    }
}
