//! Findings and advice as blocks.

use crate::labels;
use crate::text::list;
use diskproof_model::block::{Block, Cell, Column, Narrow, Table, TableRow, Tone};
use diskproof_model::finding::{Finding, Meaning, RateLimit, Severity};
use diskproof_model::record::Advice;
use diskproof_model::units::counted;

/// The role of a severity.
pub(crate) fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Failure => Tone::Error,
        Severity::Warning => Tone::Warning,
        Severity::Note => Tone::Note,
    }
}

/// All findings.
pub(crate) fn findings(all: &[Finding]) -> Vec<Block> {
    Block::headed("findings", all.iter().cloned().map(Block::Finding))
}

/// Whether a finding names what sets the rate in place of the disk.
fn is_limiter(finding: &Finding) -> bool {
    let cap = Meaning::Limit {
        limit: RateLimit::Cap,
    };
    finding.says == cap
}

/// What sets the rate in place of the disk, as a part of the verdict.
pub(crate) fn limits(all: &[Finding]) -> impl Iterator<Item = Block> {
    let limits = all.iter().filter(|finding| is_limiter(finding));
    limits.map(|finding| {
        let first = finding.claim.split(". ").next().unwrap_or_default();
        let text = format!("{}. ({})", first.trim_end_matches('.'), finding.code);
        Block::toned_fact(Tone::Warning, "limit", text)
    })
}

/// The findings that put figures in doubt or the data at risk, most severe first, and how many
/// others there are. Without a number of remedies, only the title of the most severe one. Those of
/// [`limits`] stand in the verdict.
pub(crate) fn findings_in_short(all: &[Finding], remedies: Option<usize>) -> Vec<Block> {
    let others: Vec<&Finding> = all.iter().filter(|finding| !is_limiter(finding)).collect();
    let all = || others.iter();
    let of = |severity| all().filter(move |finding| finding.severity == severity);
    let first = of(Severity::Failure).chain(of(Severity::Warning));
    let shown: Vec<&&Finding> = first.take(remedies.unwrap_or(1)).collect();
    let more = others.len() - shown.len();
    let what = match (of(Severity::Note).count() == more, shown.is_empty()) {
        (true, true) => "note",
        (false, true) => "finding",
        (true, false) => "more note",
        (false, false) => "more finding",
    };
    let mut more = (more > 0).then(|| format!("{}: -v", counted(more as u64, what)));
    let fact = |finding: &&Finding| {
        let mut text = finding.heading().to_owned();
        match remedies {
            // The line of the only one counts the others.
            None => text.extend(more.take().map(|more| format!("; {more}"))),
            _ => text += &format!(" ({}). {}", finding.code, finding.remedy),
        }
        let severity = finding.severity;
        Block::toned_fact(tone(severity), labels::severity(severity), text)
    };
    let mut blocks: Vec<Block> = shown.into_iter().map(fact).collect();
    blocks.extend(more.map(|text| Block::text(Tone::Dim, text)));
    blocks
}

/// The settings that were looked at, with reasons.
pub(crate) fn advice(all: &[Advice]) -> Vec<Block> {
    let row = |item: &Advice| {
        let from = match item.from.as_slice() {
            [] => String::new(),
            from => format!(" (from {})", list(from)),
        };
        TableRow::from(vec![
            item.setting.clone().into(),
            Cell::toned(Tone::Bold, advised_text(item)),
            format!("{}{from}", item.why).into(),
        ])
    };
    let title = format!("advice for {}", server_file(all));
    let columns = Column::words(["setting", "value", "why"]);
    let table = Table {
        narrow: Narrow::Entries,
        ..Table::new(&title, columns, all.iter().map(row).collect())
    };
    let table = (!all.is_empty()).then_some(Block::Table(table));
    Block::headed(&title, table)
}

/// The file that the settings belong to; all are of one server.
fn server_file(all: &[Advice]) -> &'static str {
    all.first().map_or("postgresql.conf", Advice::server_file)
}

/// The settings to change, in one paragraph.
pub(crate) fn advice_in_short(all: &[Advice]) -> Option<Block> {
    let changes = list(all.iter().filter(|item| item.changes()).map(setting_line));
    (!changes.is_empty()).then(|| Block::toned_fact(Tone::Bold, "advice", changes))
}

/// The lines for postgresql.conf.
pub(crate) fn conf_lines(all: &[Advice]) -> Vec<Block> {
    let changes = all.iter().filter(|item| item.changes());
    let lines: Vec<String> = changes.map(conf_line).collect();
    if all.is_empty() {
        return Vec::new();
    }
    if lines.is_empty() {
        let none = "No change is needed: each value above is the default, or the figures do not \
                    support another one.";
        return vec![Block::text(Tone::Plain, none)];
    }
    let (what, text) = (format!("Lines for {}", server_file(all)), lines.join("\n"));
    vec![Block::Command { what, text }]
}

/// `random_page_cost = 2.6  # if the cache holds 90 % of the pages`.
fn conf_line(item: &Advice) -> String {
    let line = setting_line(item);
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
pub(crate) fn advised_text(advice: &Advice) -> String {
    match (&advice.value, advice.range) {
        (Some(value), None) => format!("= {value}"),
        (Some(value), Some([low, high])) => format!("= {value} ({low} to {high})"),
        (None, Some([low, high])) => format!("{low} to {high}"),
        (None, None) => "leave unchanged".to_owned(),
    }
}
