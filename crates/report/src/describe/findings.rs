//! Findings, advice and grades as blocks.

use crate::labels;
use crate::text::list;
use diskproof_model::block::{Align, Block, Cell, Column, Narrow, Row, Table, Tone};
use diskproof_model::finding::{Finding, Severity};
use diskproof_model::record::Advice;
use diskproof_model::units::counted;
use diskproof_model::verdict::Grade;

/// Findings that a short page prints; more are counted.
const FINDINGS_MAX: usize = 3;

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
    let mut blocks = Vec::new();
    if !all.is_empty() {
        blocks.push(Block::Heading("findings".to_owned()));
    }
    blocks.extend(all.iter().cloned().map(Block::Finding));
    blocks
}

/// The findings that put figures in doubt or the data at risk, and how many others there are.
pub(crate) fn findings_in_short(all: &[Finding]) -> Vec<Block> {
    let mut urgent: Vec<&Finding> = Vec::new();
    for severity in [Severity::Failure, Severity::Warning] {
        urgent.extend(all.iter().filter(|finding| finding.severity == severity));
    }
    urgent.truncate(FINDINGS_MAX);
    let mut blocks: Vec<Block> = urgent
        .iter()
        .map(|finding| {
            let label = labels::severity(finding.severity);
            let text = format!(
                "{} ({}). {}",
                finding.heading(),
                finding.code,
                finding.remedy
            );
            Block::toned_fact(tone(finding.severity), label, text)
        })
        .collect();
    let more = (all.len() - urgent.len()) as u64;
    let what = match all.iter().filter(|f| f.severity > Severity::Note).count() {
        count if count > urgent.len() => "more finding",
        _ if urgent.is_empty() => "note",
        _ => "more note",
    };
    if more > 0 {
        blocks.push(Block::text(
            Tone::Dim,
            format!("{}: -v", counted(more, what)),
        ));
    }
    blocks
}

/// The settings that were looked at, with reasons.
pub(crate) fn advice(all: &[Advice]) -> Vec<Block> {
    let row = |item: &Advice| {
        let from = match item.from.as_slice() {
            [] => String::new(),
            from => format!(" (from {})", list(from)),
        };
        Row {
            cells: vec![
                item.setting.clone().into(),
                Cell::toned(Tone::Bold, advised_text(item)),
                format!("{}{from}", item.why).into(),
            ],
            ..Row::default()
        }
    };
    let title = "advice for postgresql.conf";
    let names = ["setting", "value", "why"];
    let table = Table {
        caption: title.to_owned(),
        columns: names.map(|name| Column::new(name, Align::Left)).to_vec(),
        rows: all.iter().map(row).collect(),
        narrow: Narrow::Entries,
        ..Table::default()
    };
    match all {
        [] => Vec::new(),
        _ => vec![Block::Heading(title.to_owned()), Block::Table(table)],
    }
}

/// The settings to change, in one paragraph.
pub(crate) fn advice_in_short(all: &[Advice]) -> Vec<Block> {
    let changes = all.iter().filter(|item| item.changes());
    let changes = changes.map(|item| {
        let value = item.value.as_deref().unwrap_or_default();
        format!("{} = {value}", item.setting)
    });
    match list(changes) {
        none if none.is_empty() => Vec::new(),
        changes => vec![Block::toned_fact(Tone::Bold, "advice", changes)],
    }
}

/// The lines for postgresql.conf.
pub(crate) fn conf_lines(all: &[Advice]) -> Vec<Block> {
    let changes = all.iter().filter(|item| item.changes());
    let lines: Vec<String> = changes.map(conf_line).collect();
    match (all, lines.as_slice()) {
        ([], _) => Vec::new(),
        (_, []) => {
            let none = "No change is needed: each value above is the default, or the figures do \
                        not support another one.";
            vec![Block::text(Tone::Plain, none)]
        }
        (_, lines) => vec![Block::Command {
            what: "lines for postgresql.conf".to_owned(),
            text: lines.join("\n"),
        }],
    }
}

/// `random_page_cost = 2.6  # if the cache holds 90 % of the pages`.
fn conf_line(item: &Advice) -> String {
    let value = item.value.as_deref().unwrap_or_default();
    match &item.condition {
        Some(condition) => format!("{} = {value}  # {condition}", item.setting),
        None => format!("{} = {value}", item.setting),
    }
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

/// The word for a grade in a table.
pub(crate) fn grade_text(grade: Option<Grade>) -> &'static str {
    grade.map_or("not graded", Grade::as_str)
}
