//! The settings that follow from a run, as a commented part of postgresql.conf. Every line that is
//! not a comment is one that the server of the record's version accepts; a setting that keeps its
//! default, or may not exist in the server, is a comment.

use crate::ascii::transliterate;
use crate::describe::run::start_text;
use crate::text::{clean, wrap};
use diskproof_model::record::{Advice, Record};
use std::io::{self, Write};

/// Columns of a comment.
const COLUMNS: usize = 78;
/// Longest name and value; every setting of PostgreSQL is shorter.
const WORD_MAX: usize = 63;
/// The first and the last version with a setting, of those that not every version has.
const VERSIONS: [(&str, u32, u32); 6] = [
    ("maintenance_io_concurrency", 13, u32::MAX),
    ("io_combine_limit", 17, u32::MAX),
    ("io_max_combine_limit", 18, u32::MAX),
    ("io_method", 18, u32::MAX),
    ("io_workers", 18, 18),
    ("io_max_workers", 19, u32::MAX),
];

/// Settings that no figure of a disk decides: a line with the first and the last version that have
/// them, their names, and why.
const LEAVE_ALONE: &str = include_str!("postgresql_conf.txt");

/// Writes the settings.
pub fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    write_head(record, out)?;
    let version = record.plan.questions.postgres_version;
    let set: Vec<&Advice> = record
        .advice
        .iter()
        .filter(|advice| advice.value.is_some() && advice.server() == "PostgreSQL")
        .collect();
    if set.is_empty() {
        comment(out, "No figure of this run decides a setting.")?;
        writeln!(out)?;
    }
    for advice in set {
        write_setting(advice, version, out)?;
    }
    write_kept(&record.advice, version, out)
}

fn write_head(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let path = match record.targets.first() {
        Some(target) => target.path.as_str(),
        None => "",
    };
    let source = format!(
        "Settings from the figures of {path}: run {} of diskproof {}, {}.",
        record.run_id,
        record.tool.version,
        start_text(&record.started)
    );
    comment(out, &source)?;
    match record.plan.questions.postgres_version {
        Some(version) => comment(out, &format!("For PostgreSQL {version}."))?,
        None => comment(
            out,
            "For any version, because the server's version is unknown (--pg-version). Settings \
             that only some versions have are commented out.",
        )?,
    }
    let usage =
        "To use them, end postgresql.conf with  include 'THIS FILE'  and reload the server.";
    comment(out, usage)?;
    writeln!(out)
}

/// The reason as a comment, then the setting.
fn write_setting(advice: &Advice, version: Option<u32>, out: &mut dyn Write) -> io::Result<()> {
    comment(out, &advice.why)?;
    if let Some(condition) = &advice.condition {
        comment(out, &format!("Right {condition}."))?;
    }
    if !advice.from.is_empty() {
        comment(out, &format!("From {}.", advice.from.join(", ")))?;
    }
    let value = advice.value.as_deref().unwrap_or_default();
    let line = format!("{} = {value}", advice.setting);
    if !is_word(&advice.setting) || !is_word(value) {
        comment(out, &line)?;
        return writeln!(out);
    }
    match why_comment(advice, version) {
        Some(why) => writeln!(out, "#{line}    # {why}\n"),
        None => writeln!(out, "{line}\n"),
    }
}

/// Says why a setting is not active; `None` for one that is.
fn why_comment(advice: &Advice, version: Option<u32>) -> Option<String> {
    if !advice.changes() {
        return Some("the default".to_owned());
    }
    let (_, since, until) = VERSIONS
        .into_iter()
        .find(|(name, ..)| *name == advice.setting)?;
    if let Some(version) = version
        && (since..=until).contains(&version)
    {
        return None;
    }
    if until == u32::MAX {
        Some(format!("PostgreSQL {since} or newer"))
    } else if until == since {
        Some(format!("PostgreSQL {since} only"))
    } else {
        Some(format!("PostgreSQL {since} to {until}"))
    }
}

/// Settings to leave alone, with the reason.
fn write_kept(advice: &[Advice], version: Option<u32>, out: &mut dyn Write) -> io::Result<()> {
    comment(out, "Leave these settings alone:")?;
    for own in advice {
        if own.value.is_none() {
            comment(out, &format!("  {}: {}", own.setting, own.why))?;
        }
    }
    for line in LEAVE_ALONE.lines() {
        let mut words = line.splitn(3, ' ');
        let since = number_or(words.next(), 0);
        let until = number_or(words.next(), u32::MAX);
        let text = words.next().unwrap_or_default();
        let exists = match version {
            Some(version) => (since..=until).contains(&version),
            None => true,
        };
        // A setting with advice of its own stands above.
        if exists && !has_own_advice(text, advice) {
            comment(out, &format!("  {text}"))?;
        }
    }
    Ok(())
}

fn number_or(word: Option<&str>, otherwise: u32) -> u32 {
    match word {
        Some(word) => word.parse().unwrap_or(otherwise),
        None => otherwise,
    }
}

/// Whether one of the settings that a line names before its colon has advice.
fn has_own_advice(text: &str, advice: &[Advice]) -> bool {
    let names = text.split(':').next().unwrap_or_default();
    for name in names.split(", ") {
        if advice.iter().any(|own| own.setting == name) {
            return true;
        }
    }
    false
}

/// Whether a text is a word that may stand in the file outside of a comment. The record may come
/// from a stranger.
fn is_word(text: &str) -> bool {
    let has_length = (1..=WORD_MAX).contains(&text.len());
    has_length
        && text
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "_.".contains(letter))
}

/// Lines that begin with `#`. The server reads the file in its own encoding, so they are ASCII.
fn comment(out: &mut dyn Write, text: &str) -> io::Result<()> {
    let ascii = transliterate(&clean(text).replace('±', "+-"));
    let indent: String = ascii.chars().take_while(|c| *c == ' ').collect();
    let columns = COLUMNS - 2 - indent.len();
    for (number, line) in wrap(&ascii, columns, columns).iter().enumerate() {
        let hang = match number {
            1.. if !indent.is_empty() => "  ",
            _ => "",
        };
        writeln!(out, "# {indent}{hang}{}", line.trim_start())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(version: Option<u32>, advice: &[(&str, &str, Option<&str>)]) -> Vec<String> {
        let mut record = crate::fixture::record();
        record.plan.questions.postgres_version = version;
        let advice = advice.iter().map(|(setting, value, default)| Advice {
            setting: (*setting).to_owned(),
            value: Some((*value).to_owned()),
            range: None,
            why: "±1 %\nport = 1".to_owned(),
            from: Vec::new(),
            default: default.map(str::to_owned),
            condition: None,
        });
        record.advice = advice.collect();
        let text = crate::fixture::written(|out| write_record(&record, out));
        assert!(
            text.is_ascii() && text.contains("#   fsync, synchronous_commit: "),
            "{text}"
        );
        let is_setting = |line: &&str| !line.is_empty() && !line.starts_with("# ");
        text.lines().filter(is_setting).map(str::to_owned).collect()
    }

    #[test]
    fn only_settings_that_change_and_that_the_version_has_are_active() {
        let advice = [
            ("random_page_cost", "2.6", Some("4.0")),
            ("commit_delay", "0", Some("0")),
            ("maintenance_io_concurrency", "64", None),
            ("io_workers", "8", Some("3")),
        ];
        let of = |version| settings(version, &advice);
        let cost = "random_page_cost = 2.6";
        let delay = "#commit_delay = 0    # the default";
        let (reads, workers) = ("maintenance_io_concurrency = 64", "io_workers = 8");
        assert_eq!(of(Some(18)), [cost, delay, reads, workers]);
        let no_workers = format!("#{workers}    # PostgreSQL 18 only");
        assert_eq!(of(Some(19))[3], no_workers);
        let no_reads = format!("#{reads}    # PostgreSQL 13 or newer");
        assert_eq!(of(None)[2..], [no_reads, no_workers]);
    }

    #[test]
    fn text_of_a_strange_record_stays_in_comments() {
        let hostile = [("port", "1' # x", None), ("include", "/etc/passwd", None)];
        assert_eq!(settings(Some(18), &hostile), [""; 0]);
    }
}
