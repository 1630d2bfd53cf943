//! JSON documents: pretty-printed, one trailing newline, nothing else on the stream. The shapes are
//! the model's.

use crate::examined::Examined;
use crate::text::is_hidden;
use diskproof_model::comparison::Comparison;
use diskproof_model::plan::Plan;
use diskproof_model::record::Record;
use diskproof_model::saved::SavedRun;
use diskproof_model::target::TargetIdentity;
use std::io::{self, Write};

/// Writes the whole record: the published contract.
pub fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    write_document(&serde_json::to_string_pretty(record)?, out)
}

/// Writes what is known of a machine and a target: an object with `host`, `target`, `health` and
/// `findings`, each as inside a record.
pub fn write_identity(examined: &Examined<'_>, out: &mut dyn Write) -> io::Result<()> {
    let Examined {
        host,
        identity,
        health,
        findings,
    } = examined;
    let document = serde_json::json!({ "host": host, "target": identity, "health": health, "findings": findings });
    write_document(&serde_json::to_string_pretty(&document)?, out)
}

/// Writes a plan that has not been carried out: an object with `plan` and `targets`, each as inside
/// a record.
pub fn write_plan(plan: &Plan, targets: &[TargetIdentity], out: &mut dyn Write) -> io::Result<()> {
    let document = serde_json::json!({ "plan": plan, "targets": targets });
    write_document(&serde_json::to_string_pretty(&document)?, out)
}

/// Writes a comparison: a published contract too.
pub fn write_comparison(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    write_document(&serde_json::to_string_pretty(comparison)?, out)
}

/// Writes saved runs in short: an array, in the order given.
pub fn write_runs(runs: &[SavedRun], out: &mut dyn Write) -> io::Result<()> {
    write_document(&serde_json::to_string_pretty(runs)?, out)
}

/// JSON demands escapes only below U+0020. A device's name may also hold U+009B, which some
/// terminals take for an escape sequence, or marks that reorder what is shown; outside of strings
/// JSON has none of these, so they can be escaped wherever they stand.
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
    fn no_control_character_leaves_as_itself_and_none_is_lost() {
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
