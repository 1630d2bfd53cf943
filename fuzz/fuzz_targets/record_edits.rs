//! A real record with other values in a few places: deeper than edits of its text come.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use std::sync::LazyLock;

static RECORDS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let texts = [
        include_str!("../../tests/fixtures/check-directory.json"),
        include_str!("../../tests/fixtures/curve-scan.json"),
        include_str!("../../tests/fixtures/comparison.json"),
    ];
    texts
        .map(|text| serde_json::from_str(text).expect("fixtures are JSON"))
        .into()
});

/// The value behind a number of steps, each of which chooses a member.
fn leaf<'a>(mut value: &'a mut Value, steps: &mut impl Iterator<Item = u8>) -> &'a mut Value {
    loop {
        let step = usize::from(steps.next().unwrap_or(0));
        let count = match &*value {
            Value::Array(list) => list.len(),
            Value::Object(members) => members.len(),
            _ => 0,
        };
        // Some edits replace a whole list or object.
        if step == 255 || count == 0 {
            return value;
        }
        let member = match value {
            Value::Array(list) => list.get_mut(step % count),
            Value::Object(members) => members.values_mut().nth(step % count),
            _ => None,
        };
        value = member.expect("the place is below the count");
    }
}

fn replacement(kind: u8, old: &Value) -> Value {
    match kind % 20 {
        0 => json!(0),
        1 => json!(1),
        2 => json!(-1),
        3 => json!(u64::MAX),
        4 => json!(1u64 << 63),
        5 => json!(1u64 << 60),
        6 => json!(1u64 << 50),
        7 => json!(u32::MAX),
        8 => json!(1e18),
        9 => json!(1e-300),
        10 => json!(0.5),
        11 => Value::Null,
        12 => json!("\u{1b}[2J<script>\n\u{202e}"),
        13 => json!("x".repeat(3000)),
        14 => json!([]),
        15 => json!({}),
        16 => json!([old, old]),
        17 => json!(true),
        18 => json!(1e12),
        _ => json!(99.999),
    }
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = data.iter().copied();
    let which = usize::from(bytes.next().unwrap_or(0)) % RECORDS.len();
    let mut document = RECORDS[which].clone();
    while let Some(kind) = bytes.next() {
        let place = leaf(&mut document, &mut bytes);
        *place = replacement(kind, place);
    }
    diskproof_fuzz::use_text(&document.to_string());
});
