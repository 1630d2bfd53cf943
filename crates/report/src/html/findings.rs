//! A finding with its evidence and remedy.

use super::elements::{command, finding_anchor, shown, wide_table};
use crate::describe::run::third_digit;
use diskproof_model::digits::figure_text;
use diskproof_model::finding::{Evidence, Finding, Severity};
use diskproof_model::record::Record;
use diskproof_model::units::{format_bytes, format_latency};
use maud::{Markup, html};

/// A finding with its evidence.
pub(super) fn finding(record: &Record, finding: &Finding) -> Markup {
    let (class, label) = match finding.severity {
        Severity::Failure => ("finding failure", "✕ Failure"),
        Severity::Warning => ("finding warning", "! Warning"),
        Severity::Note => ("finding note", "i Note"),
    };
    // A link by code leads to the first finding of its kind.
    let mut findings = record.findings.iter();
    let is_first = findings.find(|other| other.code == finding.code) == Some(finding);
    html! {
        article class=(class) id=[is_first.then(|| finding_anchor(&finding.code))] {
            h3 {
                span.tag { (label) } " " (shown(finding.heading()))
                @if finding.title.is_some() { " " code { (shown(&finding.code)) } }
            }
            p.claim { (shown_whole(&finding.claim)) }
            p { strong { "Remedy: " } (shown_whole(&finding.remedy)) }
            @if !finding.evidence.is_empty() { (evidence(record, finding)) }
            @if let Some(text) = &finding.reproduce { (command(text, &finding.code)) }
        }
    }
}

/// Our own sentences may hold foreign names: cleaned, and cut only at an absurd length.
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
            thead {
                tr {
                    th scope="col" { "Path in the record" }
                    th.number scope="col" { "Observed" }
                    th.number scope="col" { "Threshold" }
                }
            }
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

/// The name of the workload that a JSON pointer leads into.
fn place(record: &Record, evidence: &Evidence) -> Markup {
    let rest = evidence.path.strip_prefix("/measurements/");
    let index = rest.and_then(|rest| rest.split('/').next()?.parse::<usize>().ok());
    let measured = index.and_then(|index| record.measurements.get(index));
    html! { @if let Some(m) = measured { (shown(&m.workload.name)) " " } }
}

/// A number in its unit.
fn quantity(value: f64, unit: &str) -> String {
    match unit {
        "1" => plain_number(value),
        "ns" => format_latency(value.max(0.0).round() as u64),
        "B" => format_bytes(value.max(0.0).round() as u64),
        "B/s" | "1/s" => figure_text(value, Some(third_digit(value)), unit),
        "CPUs" if value == 1.0 => "1 CPU".to_owned(),
        "CPUs" => format!("{} CPUs", plain_number(value)),
        // A fact that holds or not has its name as unit.
        fact if value == 0.0 => format!("not {}", shown(fact)),
        fact if value == 1.0 => shown(fact),
        other => format!("{} {}", plain_number(value), shown(other)),
    }
}

/// At most four decimals, without trailing zeros.
fn plain_number(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
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
