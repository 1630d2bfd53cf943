//! A record without what identifies its machine: the facts that name it are replaced, and the
//! record is judged again, so that every text follows from what is left. Model, firmware, size and
//! kernel stay.

use diskproof_model::record::Record;
use serde_json::Value;
use std::cmp::Reverse;

/// Facts that identify: the end of the place in the record, where lists have no indexes, what it
/// is, and what stands there instead.
const PLACES: [(&str, &str, &str); 17] = [
    ("host.name", "host name", "host"),
    ("io_limits.group", "control group", "/group"),
    ("plan.targets", "path", "/path"),
    ("targets.path", "path", "/path"),
    ("layers.path", "path", "/path"),
    ("filesystem.mount_point", "path", "/path"),
    ("filesystem.source", "source of a filesystem", "source"),
    ("layers.backing_file", "path", "/path"),
    ("postgres.programs", "path", "/path"),
    ("plan.fit_for", "path", "/path"),
    ("layers.serial", "serial number", "serial"),
    ("health.serial", "serial number", "serial"),
    ("others.name", "process name", "process"),
    ("processes.name", "process name", "process"),
    ("server.address", "server address", "server"),
    ("campaign.prepare", "command", "command"),
    ("record.note", "note", "note"),
];

/// Packed columns and distributions, which hold no text.
const PACKED: [&str; 4] = ["hdr", "latency", "latency_intended", "series"];

/// Options of filesystems whose values name nothing of the machine.
const OPTIONS: [&str; 12] = [
    "data", "errors", "compress", "discard", "barrier", "commit", "logbufs", "logbsize", "sunit",
    "swidth", "stripe", "vers",
];

/// What was replaced.
#[derive(Debug, Default)]
struct Replaced(Vec<(&'static str, String, String)>);

impl Replaced {
    /// The same text has the same name everywhere.
    fn instead_of(&mut self, what: &'static str, instead: &str, text: &str) -> String {
        if let Some((_, _, instead)) = self.0.iter().find(|(_, known, _)| known == text) {
            return instead.clone();
        }
        let alike = self.0.iter().filter(|(known, ..)| *known == what).count();
        let instead = format!("{instead}{}", alike + 1);
        self.0.push((what, text.to_owned(), instead.clone()));
        instead
    }

    /// `1 host name, 2 paths`.
    fn text(&self) -> String {
        let mut counts: Vec<(&str, u64)> = Vec::new();
        for (what, ..) in &self.0 {
            match counts.iter_mut().find(|(known, _)| known == what) {
                Some((_, count)) => *count += 1,
                None => counts.push((what, 1)),
            }
        }
        let words = counts.into_iter().map(|(what, count)| match (count, what) {
            (1, what) => format!("1 {what}"),
            (n, "source of a filesystem") => format!("{n} sources of filesystems"),
            (n, "server address") => format!("{n} server addresses"),
            (n, what) => format!("{n} {what}s"),
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

/// The record without them, and what was left out.
pub(crate) fn anonymous(record: &Record) -> serde_json::Result<(Record, String)> {
    let mut json = record.to_tree()?;
    let mut replaced = Replaced::default();
    json["plan"]["origin"]["argv"] = serde_json::json!(["diskproof", record.plan.origin.verb]);
    walk(&mut json, "record", &mut |place, text| {
        if place.ends_with("filesystem.options") {
            *text = option(text);
            return;
        }
        let of = PLACES.iter().find(|(end, ..)| place.ends_with(end));
        // "/" and an empty name identify nothing; a profile of `--for` is a path only with a slash.
        let is_name = text.len() > 1
            && (of.is_none_or(|(end, ..)| *end != "plan.fit_for") || text.contains('/'));
        if let Some((_, what, instead)) = of.filter(|_| is_name) {
            *text = replaced.instead_of(what, instead, text);
        }
    });
    json["host"]["uid"] = if record.host.uid == 0 { 0 } else { 65534 }.into();
    let (record, _) = diskproof_analysis::again::judged_again(Record::from_tree(&json)?);
    let mut json = record.to_tree()?;
    let known = &mut replaced.0;
    known.sort_by_key(|(_, text, _)| Reverse(text.len()));
    walk(&mut json, "record", &mut |place, text| {
        // A process may be called as a word of any other text.
        let is_finding = place.contains(".findings") || place.contains(".verdict");
        for (what, known, instead) in &replaced.0 {
            if *what != "process name" || is_finding {
                *text = without(text, known, instead);
            }
        }
    });
    let mut record: Record = Record::from_tree(&json)?;
    let left_out = replaced.text();
    record.note = Some(format!("anonymous, without {left_out}"));
    Ok((record, left_out))
}

/// Calls `change` with the place of every text that is no packed one.
fn walk(value: &mut Value, place: &str, change: &mut impl FnMut(&str, &mut String)) {
    match value {
        Value::String(text) => change(place, text),
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, place, change)),
        Value::Object(fields) => {
            for (key, value) in fields {
                let is_packed = PACKED.contains(&key.as_str()) && value.is_string();
                if !is_packed {
                    walk(value, &format!("{place}.{key}"), change);
                }
            }
        }
        _ => {}
    }
}

/// A mount option, without a value that may name a path, a server or a user.
fn option(text: &str) -> String {
    match text.split_once('=') {
        Some((key, _)) if !OPTIONS.contains(&key) => key.to_owned(),
        _ => text.to_owned(),
    }
}

/// The text with whole words `known` replaced.
fn without(text: &str, known: &str, instead: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(known) {
        let end = start + known.len();
        out.push_str(&rest[..start]);
        let is_whole = !out.ends_with(is_word) && !rest[end..].starts_with(is_word);
        out.push_str(if is_whole { instead } else { known });
        rest = &rest[end..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_words_are_replaced() {
        let text = "db1: /srv/data, /srv/data/x, /srv/data2, adb1, db1_x (db1)";
        let text = without(text, "/srv/data", "/path1");
        assert_eq!(
            without(&text, "db1", "host1"),
            "host1: /path1, /path1/x, /srv/data2, adb1, db1_x (host1)"
        );
    }

    #[test]
    fn mount_option_keeps_values_that_name_nothing() {
        assert_eq!(option("subvol=/@secret"), "subvol");
        assert_eq!(option("addr=10.1.2.3"), "addr");
        assert_eq!(option("errors=remount-ro"), "errors=remount-ro");
        assert_eq!(option("noatime"), "noatime");
    }
}
