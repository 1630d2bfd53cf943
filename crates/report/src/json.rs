//! JSON documents: pretty-printed, with one trailing newline. The shapes are the model's.

use crate::examined::Examined;
use crate::format::{Format, OutputFile, Requires};
use crate::text::is_hidden;
use diskproof_model::comparison::Comparison;
use diskproof_model::plan::Plan;
use diskproof_model::record::Record;
use diskproof_model::saved::SavedRun;
use diskproof_model::target::TargetIdentity;
use std::io::{self, Write};

/// The format.
pub const FORMAT: Format = Format {
    extension: ".json",
    description: "the record: everything that was measured",
    requires: Requires::Nothing,
    record: |record, path| vec![OutputFile::new(path, move |out| write_record(record, out))],
    comparison: Some(write_comparison),
    identity: Some(write_identity),
};

/// Writes the whole record in its published schema.
pub fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    write_document(&serde_json::to_string_pretty(record)?, out)
}

/// Writes an object with `host`, `target`, `health` and `findings`, each as in a record.
pub fn write_identity(examined: &Examined<'_>, out: &mut dyn Write) -> io::Result<()> {
    let Examined {
        host,
        identity,
        health,
        findings,
    } = examined;
    let document = serde_json::json!({
        "host": host,
        "target": identity,
        "health": health,
        "findings": findings,
    });
    write_document(&serde_json::to_string_pretty(&document)?, out)
}

/// Writes a plan before it runs: an object with `plan` and `targets`, each as in a record.
pub fn write_plan(plan: &Plan, targets: &[TargetIdentity], out: &mut dyn Write) -> io::Result<()> {
    let document = serde_json::json!({ "plan": plan, "targets": targets });
    write_document(&serde_json::to_string_pretty(&document)?, out)
}

/// Writes a comparison in its published schema.
pub fn write_comparison(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    write_document(&serde_json::to_string_pretty(comparison)?, out)
}

/// Writes an array of saved runs in short, in the order given.
pub fn write_runs(runs: &[SavedRun], out: &mut dyn Write) -> io::Result<()> {
    write_document(&serde_json::to_string_pretty(runs)?, out)
}

/// JSON requires escapes only below U+0020. A device's name may also hold U+009B, which some
/// terminals interpret as an escape sequence, or marks that reorder text. JSON has none of these
/// outside of strings, so all are escaped.
pub(crate) fn write_document(document: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut safe = String::with_capacity(document.len() + 1);
    for c in document.chars() {
        if c != '\n' && is_hidden(c) {
            let mut units = [0; 2];
            c.encode_utf16(&mut units)
                .iter()
                .for_each(|unit| safe.push_str(&format!("\\u{unit:04x}")));
        } else {
            safe.push(c);
        }
    }
    safe.push('\n');
    out.write_all(safe.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::target::HostFacts;

    #[test]
    fn control_characters_are_escaped_and_kept() {
        let host = HostFacts {
            name: "a\u{1b}[31m\u{9b}2J\u{202e}\u{e0041}\n\"é".to_owned(),
            ..HostFacts::default()
        };
        let text = serde_json::to_string_pretty(&host).unwrap();
        let mut out = Vec::new();
        write_document(&text, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.chars().all(|c| c == '\n' || !is_hidden(c)), "{text:?}");
        assert!(text.contains('é'));
        assert_eq!(serde_json::from_str::<HostFacts>(&text).unwrap(), host);
    }
}
