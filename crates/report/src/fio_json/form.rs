//! How fio writes JSON: keys in its order, integers and floats distinct, floats with six digits.

use serde::Serialize as _;
use serde_json::Value;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};
use std::io::{self, Write};

/// Keys keep their order.
pub(super) type Object = serde_json::Map<String, Value>;

/// An object of the keys that have a value. JSON has no infinity and no NaN, and readers expect
/// numbers and not null: such keys are skipped.
pub(super) fn object<'a>(pairs: impl IntoIterator<Item = (&'a str, Value)>) -> Object {
    pairs
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

/// Whole milliseconds.
pub(super) fn ms(ns: u64) -> u64 {
    ns / 1_000_000
}

/// The document, laid out as fio does it.
pub(super) fn text(document: &Value) -> io::Result<String> {
    let mut bytes = Vec::new();
    document.serialize(&mut Serializer::with_formatter(
        &mut bytes,
        AsFio(PrettyFormatter::with_indent(b"  ")),
    ))?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

struct AsFio<'a>(PrettyFormatter<'a>);

impl Formatter for AsFio<'_> {
    /// `%f` of printf(3), as in fio: readers distinguish floats and integers by the fraction.
    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        write!(out, "{value:.6}")
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b" : ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_six_digits_and_integers_none() {
        let nothing: Option<u64> = None;
        let pairs = object([
            ("a", 12.0.into()),
            ("b", 12.into()),
            ("c", f64::NAN.into()),
            ("d", nothing.into()),
            ("e", "x\"y".into()),
        ]);
        assert_eq!(
            text(&pairs.into()).unwrap(),
            "{\n  \"a\" : 12.000000,\n  \"b\" : 12,\n  \"e\" : \"x\\\"y\"\n}"
        );
    }
}
