//! Findings and advice as blocks, whole and in short.

use crate::labels;
use crate::server_versions::{needs_restart, other_versions};
use crate::text::list;
use diskproof_model::advice::Advice;
use diskproof_model::block::{Block, Cell, Column, Narrow, Table, TableRow, Tone};
use diskproof_model::finding::{Finding, Meaning, RateLimit, Severity};
use diskproof_model::units::counted;

/// The role in which a finding of this severity is printed.
pub(crate) fn severity_tone(severity: Severity) -> Tone {
    match severity {
        Severity::Failure => Tone::Error,
        Severity::Warning => Tone::Warning,
        Severity::Note => Tone::Note,
    }
}

/// Shows every finding with its claim and remedy.
pub(crate) fn finding_blocks(all: &[Finding]) -> Vec<Block> {
    Block::headed("findings", all.iter().cloned().map(Block::Finding))
}

/// True if a finding names a limit that sets the rate in place of the disk.
fn is_limiter(finding: &Finding) -> bool {
    let rate_is_capped = Meaning::Limit {
        limit: RateLimit::Cap,
    };
    finding.says == rate_is_capped
}

/// Names each limit that sets the rate in place of the disk, as a part of the verdict.
pub(crate) fn limit_facts(all: &[Finding]) -> impl Iterator<Item = Block> {
    all.iter()
        .filter(|finding| is_limiter(finding))
        .map(limit_fact)
}

/// The first sentence of what a finding claims, with its code.
fn limit_fact(finding: &Finding) -> Block {
    let first = finding.claim.split(". ").next().unwrap_or_default();
    let text = format!("{}. ({})", first.trim_end_matches('.'), finding.code);
    Block::toned_fact(Tone::Warning, "limit", text)
}

/// The findings on a short page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FindingsShown {
    /// The title of the most severe one.
    TitleOfWorst,
    /// At most so many, each with its remedy.
    WithRemedies(usize),
}

/// Describes failures and warnings, the failures first, and counts the findings that are not shown.
/// The findings of [`limit_facts`] are part of the verdict, so they are neither shown nor counted.
pub(crate) fn short_finding_blocks(all: &[Finding], detail: FindingsShown) -> Vec<Block> {
    let others: Vec<&Finding> = all.iter().filter(|finding| !is_limiter(finding)).collect();
    let mut shown = Vec::new();
    for severity in [Severity::Failure, Severity::Warning] {
        for finding in &others {
            if finding.severity == severity {
                shown.push(*finding);
            }
        }
    }
    shown.truncate(match detail {
        FindingsShown::TitleOfWorst => 1,
        FindingsShown::WithRemedies(count) => count,
    });
    let hidden = hidden_text(&others, shown.len());
    if detail == FindingsShown::TitleOfWorst
        && let Some(finding) = shown.first()
    {
        // The line of the only one counts the others.
        let mut text = finding.heading().to_owned();
        if let Some(hidden) = hidden {
            text.push_str(&format!("; {hidden}"));
        }
        return vec![severity_fact(finding, text)];
    }
    let mut blocks = Vec::new();
    for finding in shown {
        let heading = finding.heading();
        let text = format!("{heading} ({}). {}", finding.code, finding.remedy);
        blocks.push(severity_fact(finding, text));
    }
    if let Some(hidden) = hidden {
        blocks.push(Block::text(Tone::Dim, hidden));
    }
    blocks
}

fn severity_fact(finding: &Finding, text: String) -> Block {
    let severity = finding.severity;
    Block::toned_fact(severity_tone(severity), labels::severity(severity), text)
}

/// Counts the findings that a short page does not show; `None` where it shows all.
fn hidden_text(all: &[&Finding], shown: usize) -> Option<String> {
    let hidden = all.len() - shown;
    if hidden == 0 {
        return None;
    }
    let notes = all
        .iter()
        .filter(|finding| finding.severity == Severity::Note)
        .count();
    let noun = if hidden == notes { "note" } else { "finding" };
    let count = match shown {
        0 => counted(hidden as u64, noun),
        _ => counted(hidden as u64, &format!("more {noun}")),
    };
    Some(format!("{count}: -v"))
}

/// A table of the settings that were looked at, each with its reason. Empty without advice.
pub(crate) fn advice_blocks(all: &[Advice]) -> Vec<Block> {
    if all.is_empty() {
        return Vec::new();
    }
    let title = format!("advice for {}", server_file(all));
    let columns = Column::words(["setting", "value", "why"]);
    let rows = all.iter().map(advice_row).collect();
    let table = Table {
        narrow: Narrow::Entries,
        ..Table::new(&title, columns, rows)
    };
    vec![Block::Heading(title), Block::Table(table)]
}

fn advice_row(advice: &Advice) -> TableRow {
    let why = if advice.from.is_empty() {
        advice.why.clone()
    } else {
        format!("{} (from {})", advice.why, list(&advice.from))
    };
    TableRow::from(vec![
        advice.setting.clone().into(),
        Cell::toned(Tone::Bold, advised_value_text(advice)),
        why.into(),
    ])
}

/// The file that the settings belong to. All advice of a record is for one server.
fn server_file(all: &[Advice]) -> &'static str {
    match all.first() {
        Some(advice) => advice.server_file(),
        None => "postgresql.conf",
    }
}

/// The settings to change, in one fact; `None` without any. A server of a known `version` has all
/// of them.
pub(crate) fn advice_fact(all: &[Advice], version: Option<u32>) -> Option<Block> {
    let changes: Vec<String> = all
        .iter()
        .filter(|advice| advice.changes())
        .filter(|advice| version.is_none() || other_versions(&advice.setting, version).is_none())
        .map(setting_line)
        .collect();
    if changes.is_empty() {
        return None;
    }
    Some(Block::toned_fact(Tone::Bold, "advice", list(changes)))
}

/// The settings to change as lines for the server's file. One that a server of this version does
/// not have, or may not have, is a comment. Empty for a record without advice.
pub(crate) fn conf_blocks(all: &[Advice], version: Option<u32>) -> Vec<Block> {
    if all.is_empty() {
        return Vec::new();
    }
    let lines: Vec<String> = all
        .iter()
        .filter(|advice| advice.changes())
        .map(|advice| conf_line(advice, version))
        .collect();
    if lines.is_empty() {
        let none = "No change is needed: each value above is the default, or the figures do not \
                    support another one.";
        return vec![Block::text(Tone::Plain, none)];
    }
    let restart = if needs_restart(all, version) {
        ", which take effect after a restart of the server"
    } else {
        ""
    };
    vec![Block::Command {
        what: format!("Lines for {}{restart}", server_file(all)),
        text: lines.join("\n"),
    }]
}

/// `random_page_cost = 2.6  # if the cache holds 90 % of the pages`.
fn conf_line(item: &Advice, version: Option<u32>) -> String {
    let line = setting_line(item);
    if let Some(versions) = other_versions(&item.setting, version) {
        return format!("#{line}  # {versions}");
    }
    match &item.condition {
        Some(condition) => format!("{line}  # {condition}"),
        None => line,
    }
}

fn setting_line(item: &Advice) -> String {
    let value = item.value.as_deref().unwrap_or_default();
    format!("{} = {value}", item.setting)
}

/// The value of a setting: `= 32`, `= 1.6 (1.4 to 3.1)`, `1.4 to 3.1`, `leave unchanged`.
pub(crate) fn advised_value_text(advice: &Advice) -> String {
    match (&advice.value, advice.range) {
        (Some(value), None) => format!("= {value}"),
        (Some(value), Some([low, high])) => format!("= {value} ({low} to {high})"),
        (None, Some([low, high])) => format!("{low} to {high}"),
        (None, None) => "leave unchanged".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server does not start with a setting that it does not know.
    #[test]
    fn settings_that_the_server_lacks_are_comments() {
        let advice = |setting: &str| Advice {
            setting: setting.to_owned(),
            value: Some("256kB".to_owned()),
            range: None,
            why: String::new(),
            from: Vec::new(),
            default: None,
            condition: None,
        };
        let all = [advice("io_max_combine_limit"), advice("io_combine_limit")];
        let lines = |version| {
            let Some(Block::Command { text, .. }) = conf_blocks(&all, version).pop() else {
                panic!("no lines");
            };
            text.lines().filter(|line| !line.starts_with('#')).count()
        };
        let in_fact = |version| {
            let fact = format!("{:?}", advice_fact(&all, version));
            fact.matches("256kB").count()
        };
        let counts =
            [Some(16), Some(17), Some(18), None].map(|version| (lines(version), in_fact(version)));
        assert_eq!(counts, [(0, 0), (1, 1), (2, 2), (0, 2)]);
    }
}
