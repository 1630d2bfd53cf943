//! Tests that each list of the variants of an enum, such as `OpKind::ALL`, has all of them, which
//! the compiler does not check. The schema is derived from the variants themselves.

use crate::files::FileOperation;
use crate::fleet::RowState;
use crate::metric::Figure;
use crate::op::OpKind;
use crate::surface::SeekPattern;
use crate::sweep::SweepOperation;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::Value;

/// The words of all variants, as records have them.
fn variants<T: JsonSchema>() -> Vec<Value> {
    let schema = SchemaGenerator::default().into_root_schema_for::<T>();
    let schema = schema.as_value();
    let mut words = Vec::new();
    for one in schema["oneOf"].as_array().into_iter().flatten() {
        words.extend(one.get("const").cloned());
        words.extend(one["enum"].as_array().cloned().unwrap_or_default());
    }
    words.extend(schema["enum"].as_array().cloned().unwrap_or_default());
    words
}

fn assert_lists_all<T: JsonSchema + Serialize>(listed: &[T]) {
    let mut words: Vec<Value> = listed
        .iter()
        .map(|one| serde_json::to_value(one).unwrap())
        .collect();
    words.sort_by_key(ToString::to_string);
    let mut expected = variants::<T>();
    expected.sort_by_key(ToString::to_string);
    assert!(expected.len() > 1, "{expected:?}");
    assert_eq!(words, expected);
}

#[test]
fn lists_have_every_variant() {
    assert_lists_all(&OpKind::ALL);
    assert_lists_all(&SweepOperation::ALL);
    assert_lists_all(&FileOperation::ALL);
    assert_lists_all(&SeekPattern::ALL);
    assert_lists_all(&RowState::ALL);
    assert_lists_all(&Figure::ALL);
}
