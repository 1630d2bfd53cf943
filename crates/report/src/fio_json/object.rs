//! Objects as fio writes them: keys in order, none without a value.

use serde_json::Value;

/// A JSON object, whose keys keep their order.
pub(super) type Object = serde_json::Map<String, Value>;

/// An object of the keys that have a value. JSON has no infinity and no NaN, and readers expect
/// numbers and not null: such keys are skipped.
pub(super) fn object<'a>(pairs: impl IntoIterator<Item = (&'a str, Value)>) -> Object {
    let mut object = Object::new();
    for (key, value) in pairs {
        if !value.is_null() {
            object.insert(key.to_owned(), value);
        }
    }
    object
}

/// Whole milliseconds.
pub(super) fn whole_ms(ns: u64) -> u64 {
    ns / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{JsonLayout, laid_out};

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
            laid_out(&pairs, JsonLayout::Fio).unwrap(),
            "{\n  \"a\" : 12.000000,\n  \"b\" : 12,\n  \"e\" : \"x\\\"y\"\n}"
        );
    }
}
