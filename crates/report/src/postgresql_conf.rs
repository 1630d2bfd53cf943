//! The settings that follow from a run, as a commented part of postgresql.conf. Every line that is
//! not a comment is one that the server of the record's version accepts; a setting that keeps its
//! default, or may not exist in the server, is a comment.

use crate::ascii::transliterate;
use crate::describe::run::start_text;
use crate::server_versions::{needs_restart, other_versions};
use crate::text::{clean, wrap};
use diskproof_model::advice::Advice;
use diskproof_model::record::Record;
use std::io::{self, Write};

/// Columns of a comment, with its `#`, so that the file fits 80 columns.
const COMMENT_COLUMNS: usize = 78;
/// A longer name or value does not become a setting: names have at most 63 bytes (NAMEDATALEN of
/// PostgreSQL, less its NUL), and the values of advice are numbers and words.
const WORD_BYTES_MAX: usize = 63;
/// Settings that no figure of a disk decides: a line with the first and the last version that have
/// them (`*`: no limit), their names, and why.
const LEAVE_ALONE: &str = include_str!("postgresql_conf.txt");

/// The start of every file of this format: an output replaces no other settings. It is short
/// enough to stand on one line, whatever follows.
pub const SETTINGS_START: &str = "# Settings from the figures of";

/// Writes the settings.
pub fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    write_head(record, out)?;
    let version = record.plan.questions.postgres_version;
    let advised: Vec<&Advice> = record
        .advice
        .iter()
        .filter(|advice| advice.value.is_some() && advice.server() == "PostgreSQL")
        .collect();
    if advised.is_empty() {
        write_comment(
            out,
            "No figure of this run decides a setting of PostgreSQL.",
        )?;
        writeln!(out)?;
    }
    for advice in advised {
        write_setting(advice, version, out)?;
    }
    write_settings_of_other_servers(&record.advice, out)?;
    write_kept(&record.advice, version, out)
}

/// Writes the settings of other servers as comments: they stand in files of their own.
fn write_settings_of_other_servers(advice: &[Advice], out: &mut dyn Write) -> io::Result<()> {
    for other in advice {
        if let Some(value) = &other.value
            && other.server() != "PostgreSQL"
        {
            let setting = format!("{} = {value}", other.setting);
            write_comment(out, &format!("Of {}: {setting}", other.server()))?;
            write_comment(out, &other.why)?;
            writeln!(out)?;
        }
    }
    Ok(())
}

fn write_head(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let path = match record.targets.first() {
        Some(target) => &target.path,
        None => "",
    };
    let run = &record.run_id;
    let version = &record.tool.version;
    let start = start_text(&record.started);
    let origin = format!("{path}: run {run} of diskproof {version}, {start}.");
    write_comment(out, &format!("{} {origin}", &SETTINGS_START["# ".len()..]))?;
    match record.plan.questions.postgres_version {
        Some(version) => write_comment(out, &format!("For PostgreSQL {version}."))?,
        None => write_comment(
            out,
            "For any version, because the server's version is unknown (--pg-version). Settings \
             that only some versions have are commented out.",
        )?,
    }
    let version = record.plan.questions.postgres_version;
    let verb = if needs_restart(&record.advice, version) {
        "restart"
    } else {
        "reload"
    };
    let usage = "To use them, end postgresql.conf with  include 'THIS FILE'  and";
    write_comment(out, &format!("{usage} {verb} the server."))?;
    writeln!(out)
}

/// Writes the reason as a comment, then the setting. It is a comment, too, if the server may not
/// accept it or already has this value.
fn write_setting(advice: &Advice, version: Option<u32>, out: &mut dyn Write) -> io::Result<()> {
    write_comment(out, &advice.why)?;
    if let Some(condition) = &advice.condition {
        write_comment(out, &format!("Right {condition}."))?;
    }
    if !advice.from.is_empty() {
        write_comment(out, &format!("From {}.", advice.from.join(", ")))?;
    }
    let value = advice.value.as_deref().unwrap_or_default();
    let line = format!("{} = {value}", advice.setting);
    if !is_word(&advice.setting) || !is_word(value) {
        write_comment(out, &line)?;
        return writeln!(out);
    }
    match inactive_reason(advice, version) {
        Some(why) => writeln!(out, "#{line}    # {why}\n"),
        None => writeln!(out, "{line}\n"),
    }
}

/// Says why a setting is not active; `None` for one that is.
fn inactive_reason(advice: &Advice, version: Option<u32>) -> Option<String> {
    if !advice.changes() {
        return Some("the default".to_owned());
    }
    other_versions(&advice.setting, version)
}

/// Writes the settings to leave alone, each with the reason: first those of the advice without a
/// value, then those that no figure of a disk decides.
fn write_kept(advice: &[Advice], version: Option<u32>, out: &mut dyn Write) -> io::Result<()> {
    write_comment(out, "Leave these settings alone:")?;
    for kept in advice {
        if kept.value.is_none() && kept.server() == "PostgreSQL" {
            write_comment(out, &format!("  {}: {}", kept.setting, kept.why))?;
        }
    }
    for line in LEAVE_ALONE.lines() {
        let mut words = line.splitn(3, ' ');
        let since = words.next().unwrap_or_default().parse().unwrap_or(0);
        let until = words.next().unwrap_or_default().parse().unwrap_or(u32::MAX);
        let text = words.next().unwrap_or_default();
        let exists = match version {
            Some(version) => (since..=until).contains(&version),
            None => true,
        };
        // A setting with advice of its own stands above.
        if exists && !names_advised_setting(text, advice) {
            write_comment(out, &format!("  {text}"))?;
        }
    }
    Ok(())
}

/// True if the names before the colon are those of settings with advice.
fn names_advised_setting(text: &str, advice: &[Advice]) -> bool {
    let (names, _) = text.split_once(':').unwrap_or((text, ""));
    let advised: Vec<&str> = advice
        .iter()
        .flat_map(|named| named.setting.split(", "))
        .collect();
    names.split(", ").any(|name| advised.contains(&name))
}

/// True if a text is a word that may stand in the file outside of a comment. The record may come
/// from a stranger.
fn is_word(text: &str) -> bool {
    (1..=WORD_BYTES_MAX).contains(&text.len())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_.".contains(c))
}

/// Writes a comment, in as many lines as it needs. It is ASCII, because the server reads the file
/// in an encoding of its own.
fn write_comment(out: &mut dyn Write, text: &str) -> io::Result<()> {
    let ascii = transliterate(&clean(text).replace('±', "+-"));
    let indent = " ".repeat(ascii.len() - ascii.trim_start_matches(' ').len());
    let columns = COMMENT_COLUMNS - 2 - indent.len();
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

    type Settings<'a> = [(&'a str, &'a str, Option<&'a str>)];

    fn settings(version: Option<u32>, advice: &Settings<'_>) -> Vec<String> {
        file_of(version, advice)
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with("# "))
            .map(str::to_owned)
            .collect()
    }

    fn file_of(version: Option<u32>, advice: &Settings<'_>) -> String {
        let mut record = crate::fixture::record();
        record.plan.questions.postgres_version = version;
        record.advice.clear();
        for (setting, value, default) in advice {
            record.advice.push(Advice {
                setting: (*setting).to_owned(),
                value: Some((*value).to_owned()),
                range: None,
                why: "±1 %\nport = 1".to_owned(),
                from: Vec::new(),
                default: default.map(str::to_owned),
                condition: None,
            });
        }
        let text = crate::fixture::written(|out| write_record(&record, out));
        assert!(text.starts_with(SETTINGS_START));
        assert!(
            text.is_ascii() && text.contains("#   fsync, synchronous_commit: "),
            "{text}"
        );
        text
    }

    #[test]
    fn settings_with_advice_of_their_own_are_named_once() {
        let mut record = crate::fixture::record();
        record.advice = vec![Advice {
            setting: "fsync, synchronous_commit".to_owned(),
            value: None,
            range: None,
            why: "Not tried.".to_owned(),
            from: Vec::new(),
            default: None,
            condition: None,
        }];
        let text = crate::fixture::written(|out| write_record(&record, out));
        assert_eq!(text.matches("synchronous_commit").count(), 1, "{text}");
    }

    #[test]
    fn settings_of_another_server_are_comments() {
        let text = file_of(None, &[("innodb_io_capacity", "6200", None)]);
        assert!(
            text.contains("# Of MySQL: innodb_io_capacity = 6200"),
            "{text}"
        );
        assert!(text.contains("decides a setting of PostgreSQL."), "{text}");
        assert_eq!(
            settings(None, &[("innodb_io_capacity", "6200", None)]),
            [""; 0]
        );
    }

    #[test]
    fn only_settings_that_change_and_that_the_version_has_are_active() {
        let advice = [
            ("random_page_cost", "2.6", Some("4.0")),
            ("commit_delay", "0", Some("0")),
            ("maintenance_io_concurrency", "64", None),
            ("io_workers", "8", Some("3")),
        ];
        let cost = "random_page_cost = 2.6";
        let delay = "#commit_delay = 0    # the default";
        let reads = "maintenance_io_concurrency = 64";
        let workers = "io_workers = 8";
        assert_eq!(settings(Some(18), &advice), [cost, delay, reads, workers]);
        let no_workers = format!("#{workers}    # PostgreSQL 18 only");
        assert_eq!(settings(Some(19), &advice)[3], no_workers);
        let no_reads = format!("#{reads}    # PostgreSQL 13 or newer");
        assert_eq!(settings(None, &advice)[2..], [no_reads, no_workers]);
    }

    #[test]
    fn lines_of_settings_to_leave_alone_begin_with_two_versions() {
        for line in LEAVE_ALONE.lines() {
            let words: Vec<&str> = line.splitn(3, ' ').collect();
            assert_eq!(words.len(), 3, "{line}");
            for version in &words[..2] {
                assert!(*version == "*" || version.parse::<u32>().is_ok(), "{line}");
            }
            assert!(words[2].contains(": "), "{line}");
        }
    }

    #[test]
    fn text_of_a_strange_record_stays_in_comments() {
        let hostile = [("port", "1' # x", None), ("include", "/etc/passwd", None)];
        assert_eq!(settings(Some(18), &hostile), [""; 0]);
    }
}
