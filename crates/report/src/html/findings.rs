//! What it means and what to do: findings in order of weight with their evidence, then the settings
//! for PostgreSQL.

use super::elements::{command, finding_anchor, section, shown, wide_table};
use diskproof_model::finding::{Evidence, Finding, Severity};
use diskproof_model::record::{Advice, Record};
use diskproof_model::units::{format_bytes, format_latency, format_rate, format_throughput};
use maud::{Markup, html};

/// The section `findings`.
pub(super) fn findings(record: &Record) -> Markup {
    let content = html! {
        @if record.findings.is_empty() {
            p.alert.good { span.sign aria-hidden="true" { "✓" } " None: nothing was seen that puts " @if record.partial { "what was measured" } @else { "these figures" } " in doubt." }
        }
        @for (index, item) in record.findings.iter().enumerate() { (finding(record, index, item)) }
    };
    section("findings", "Findings", &content)
}

fn finding(record: &Record, index: usize, finding: &Finding) -> Markup {
    let (class, label) = match finding.severity {
        Severity::Failure => ("finding failure", "✕ Failure"),
        Severity::Warning => ("finding warning", "! Warning"),
        Severity::Note => ("finding note", "i Note"),
    };
    // A link by code goes to the first of its kind.
    let is_first = record
        .findings
        .iter()
        .position(|other| other.code == finding.code)
        == Some(index);
    html! {
        article class=(class) id=[is_first.then(|| finding_anchor(&finding.code))] {
            h3 { span.tag { (label) } " " code { (shown(&finding.code)) } }
            p.claim { (shown_whole(&finding.claim)) }
            p { strong { "What to do: " } (shown_whole(&finding.remedy)) }
            @if !finding.evidence.is_empty() { (evidence(record, finding)) }
            @if let Some(text) = &finding.reproduce { (command(text, &finding.code)) }
        }
    }
}

/// Sentences of ours may hold names from outside: harmless, and cut only where something is wrong
/// with them.
fn shown_whole(text: &str) -> String {
    const SENTENCES_CHARS_MAX: usize = 2000;
    if text.chars().count() > SENTENCES_CHARS_MAX {
        shown(text)
    } else {
        crate::text::clean(text)
    }
}

fn evidence(record: &Record, finding: &Finding) -> Markup {
    let table = html! {
        table.plain {
            thead { tr { th scope="col" { "Where in the record" } th.number scope="col" { "Seen" } th.number scope="col" { "Held against" } } }
            tbody { @for item in &finding.evidence { tr {
                td { (place(record, item)) code.path { (shown(&item.path)) } }
                td.number { (quantity(item.observed, &item.unit)) }
                td.number { (quantity(item.threshold, &item.unit)) }
            } } }
        }
    };
    html! {
        details {
            summary { "Evidence (" (finding.evidence.len()) ")" }
            (wide_table(&format!("Evidence of {}", shown(&finding.code)), &table))
        }
    }
}

/// The workload that a pointer leads into, by name.
fn place(record: &Record, evidence: &Evidence) -> Markup {
    let index = evidence
        .path
        .strip_prefix("/measurements/")
        .and_then(|rest| rest.split('/').next()?.parse::<usize>().ok());
    let name = index
        .and_then(|index| record.measurements.get(index))
        .map(|m| shown(&m.workload.name));
    html! { @if let Some(name) = name { (name) " " } }
}

/// A number in the unit that a finding gives it.
fn quantity(value: f64, unit: &str) -> String {
    match unit {
        "1" => plain_number(value),
        "ns" => format_latency(value.max(0.0).round() as u64),
        "B" => format_bytes(value.max(0.0).round() as u64),
        "B/s" => format_throughput(value),
        "1/s" => format!("{}/s", format_rate(value)),
        "CPUs" if value == 1.0 => "1 CPU".to_owned(),
        "CPUs" => format!("{} CPUs", plain_number(value)),
        // Facts that hold or do not carry their name as unit.
        fact if value == 0.0 => format!("not {}", shown(fact)),
        fact if value == 1.0 => shown(fact),
        other => format!("{} {}", plain_number(value), shown(other)),
    }
}

/// At most four digits behind the point, none where they are zero.
fn plain_number(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The section `advice`.
pub(super) fn advice(advice: &[Advice]) -> Markup {
    if advice.is_empty() {
        return html! {};
    }
    let table = html! {
        // Rows stand as blocks on a phone; the roles keep it a table for readers of the screen.
        table.plain.advice role="table" {
            thead role="rowgroup" { tr role="row" { th scope="col" role="columnheader" { "Setting" } th scope="col" role="columnheader" { "Value" } th scope="col" role="columnheader" { "Why" } } }
            tbody role="rowgroup" { @for item in advice { tr role="row" {
                th scope="row" role="rowheader" { code { (shown(&item.setting)) } }
                td role="cell" { (advised(item)) }
                td role="cell" { (shown_whole(&item.why)) @if !item.from.is_empty() { span.source { " From " (shown(&item.from.join(", "))) "." } } }
            } } }
        }
    };
    let lines: Vec<String> = advice
        .iter()
        .filter_map(|item| Some(format!("{} = {}", item.setting, item.value.as_ref()?)))
        .collect();
    let content = html! {
        (wide_table("Settings for postgresql.conf", &table))
        @if !lines.is_empty() { p { "For postgresql.conf:" } (command(&lines.join("\n"), "lines for postgresql.conf")) }
    };
    section("advice", "Settings for PostgreSQL", &content)
}

fn advised(item: &Advice) -> Markup {
    match (&item.value, item.range) {
        (Some(value), None) => html! { strong { (shown(value)) } },
        (Some(value), Some([low, high])) => {
            html! { strong { (shown(value)) } " (from " (low) " to " (high) ")" }
        }
        (None, Some([low, high])) => html! { "from " strong { (low) } " to " strong { (high) } },
        (None, None) => html! { "leave it alone" },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_printed_in_its_unit() {
        assert_eq!(quantity(0.3712349, "1"), "0.3712");
        assert_eq!(quantity(8.0, "1"), "8");
        assert_eq!(quantity(61_320.0, "ns"), "61.3 µs");
        assert_eq!(quantity(12.0, "blocks"), "12 blocks");
        assert_eq!(
            [quantity(0.0, "settled"), quantity(1.0, "virtual")],
            ["not settled", "virtual"]
        );
    }
}
