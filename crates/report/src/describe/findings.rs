//! Findings and advice as blocks.

use crate::labels;
use crate::text::list;
use diskproof_model::block::{Align, Block, Cell, Column, Narrow, Row, Table, Tone};
use diskproof_model::finding::{Finding, Severity};
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
    let mut blocks = Vec::new();
    if !all.is_empty() {
        blocks.push(Block::Heading("findings".to_owned()));
    }
    blocks.extend(all.iter().cloned().map(Block::Finding));
    blocks
}

/// Findings on what sets the rate in place of the disk.
const LIMITERS: [&str; 2] = ["rate-limited", "burst-exhausted"];

fn is_limiter(finding: &Finding) -> bool {
    LIMITERS.contains(&finding.code.as_str())
}

/// What sets the rate in place of the disk, as a part of the verdict.
pub(crate) fn limits(all: &[Finding]) -> impl Iterator<Item = Block> {
    all.iter()
        .filter(|finding| is_limiter(finding))
        .map(|finding| {
            let (first, _) = finding
                .claim
                .split_once(". ")
                .unwrap_or((&finding.claim, ""));
            let text = format!("{}. ({})", first.trim_end_matches('.'), finding.code);
            Block::toned_fact(Tone::Warning, "limit", text)
        })
}

/// How much of the findings a short page prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgent {
    /// The title of the most severe one.
    First,
    /// The titles and remedies of so many.
    WithRemedy(usize),
}

/// The findings that put figures in doubt or the data at risk, most severe first, and how many
/// others there are. Those of [`limits`] stand in the verdict.
pub(crate) fn findings_in_short(all: &[Finding], urgent: Urgent) -> Vec<Block> {
    let others: Vec<&Finding> = all.iter().filter(|finding| !is_limiter(finding)).collect();
    let of = |severity| {
        others
            .iter()
            .filter(move |finding| finding.severity == severity)
    };
    let first = of(Severity::Failure).chain(of(Severity::Warning));
    let most = match urgent {
        Urgent::First => 1,
        Urgent::WithRemedy(count) => count,
    };
    let shown: Vec<&&Finding> = first.take(most).collect();
    let more = others.len() - shown.len();
    let is_note = |finding: &&&Finding| finding.severity == Severity::Note;
    let what = match others.iter().filter(is_note).count() == more {
        true => "note",
        false => "finding",
    };
    let what = if shown.is_empty() {
        what.to_owned()
    } else {
        format!("more {what}")
    };
    let more = (more > 0).then(|| format!("{}: -v", counted(more as u64, &what)));
    let fact = |finding: &&&Finding| {
        let text = match (urgent, &more) {
            (Urgent::First, Some(more)) => format!("{}; {more}", finding.heading()),
            (Urgent::First, None) => finding.heading().to_owned(),
            _ => format!(
                "{} ({}). {}",
                finding.heading(),
                finding.code,
                finding.remedy
            ),
        };
        Block::toned_fact(
            tone(finding.severity),
            labels::severity(finding.severity),
            text,
        )
    };
    let mut blocks: Vec<Block> = shown.iter().map(fact).collect();
    let is_counted = urgent == Urgent::First && !blocks.is_empty();
    blocks.extend(
        more.filter(|_| !is_counted)
            .map(|text| Block::text(Tone::Dim, text)),
    );
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
            what: "Lines for postgresql.conf".to_owned(),
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
