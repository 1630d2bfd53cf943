//! Blocks on the page for a browser. Charts have a section of their own.

use super::elements::{capitalized, command, finding_anchor, shown, wide_table};
use crate::describe::comparison;
use crate::describe::run::third_digit;
use crate::svg::px;
use crate::text::{joined, trimmed};
use diskproof_model::block::{
    Align, Block, Cell, Column, Fact, Group, Mark, Narrow, Place, Table, TableRow, Tone,
};
use diskproof_model::comparison::Ratio;
use diskproof_model::digits::figure_text;
use diskproof_model::finding::{Evidence, Finding, Severity};
use diskproof_model::record::Record;
use diskproof_model::units::{format_bytes, format_latency};
use maud::{Markup, html};

/// The relative half-width at which an error bar's scale ends; wider intervals are dashed.
const BAR_SCALE: f64 = 0.5;
/// The darkest colour: `heat-5`.
const HEAT_MAX: f64 = 5.0;

/// The blocks in order; facts that follow each other are one list.
pub(super) fn blocks(all: &[Block], record: Option<&Record>) -> Markup {
    let are_facts = |a: &Block, b: &Block| matches!((a, b), (Block::Fact(_), Block::Fact(_)));
    html! { @for group in all.chunk_by(are_facts) { (part(group, record)) } }
}

fn part(group: &[Block], record: Option<&Record>) -> Markup {
    match &group[0] {
        Block::Heading(text) => html! { h3 { (shown(&capitalized(text))) } },
        Block::Text(tone, text) => paragraph(*tone, text),
        Block::Fact(_) => html! {
            dl.facts { @for block in group { @if let Block::Fact(fact) = block { (entry(fact)) } } }
        },
        Block::Table(table) => wide_table(&shown(&table.caption), &rows(table)),
        Block::Command { what, text } => html! {
            p { (shown(what)) ":" } (command(text, what))
        },
        Block::Finding(of) => html! { @if let Some(record) = record { (finding(record, of)) } },
        Block::Chart(_) | Block::Ping(_) | Block::Scan => Markup::default(),
    }
}

fn entry(fact: &Fact) -> Markup {
    html! { div { dt { (shown(&fact.label)) } dd { (shown(&fact.text)) } } }
}

/// The class of a role.
pub(super) fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Error => "failure",
        Tone::Warning => "warning",
        Tone::Good => "good",
        Tone::Note | Tone::Dot => "note",
        Tone::Dim => "undecided",
        Tone::Plain | Tone::Bold => "",
    }
}

fn paragraph(tone: Tone, text: &str) -> Markup {
    let text = unbroken_dash(&shown(text));
    match tone {
        Tone::Error | Tone::Warning => html! {
            p class={"alert " (class(tone))} { (capitalized(&text)) }
        },
        Tone::Dim => html! { p.legend { (text) } },
        Tone::Bold => html! { p { strong { (text) } } },
        Tone::Plain | Tone::Good | Tone::Note | Tone::Dot => html! { p { (text) } },
    }
}

/// Browsers break a line between a dash and a no-break space; a word joiner (U+2060) forbids it.
fn unbroken_dash(text: &str) -> String {
    text.replace("–\u{a0}", "–\u{2060}\u{a0}")
}

/// The columns that have a text or a drawing.
fn used(table: &Table) -> Vec<(usize, &Column)> {
    let is_drawn = |cell: &Cell| matches!(cell.mark, Mark::Interval(_) | Mark::Ratio { .. });
    let is_used = |(index, column): &(usize, &Column)| {
        let mut cells = table.rows.iter().map(|row| &row.cells[*index]);
        *index == 0
            || match column.place {
                Place::Drawn => cells.any(is_drawn),
                _ => cells.any(|cell| !cell.text.trim().is_empty()),
            }
    };
    table.columns.iter().enumerate().filter(is_used).collect()
}

fn rows(table: &Table) -> Markup {
    let columns = used(table);
    let has_groups = table.rows.iter().any(|row| row.group.is_some());
    let style = match table.narrow {
        _ if has_groups => "figures",
        Narrow::Entries => "entries",
        _ => "plain",
    };
    html! {
        table class=(style) {
            @if !table.caption.is_empty() && !has_groups {
                caption { (capitalized(&shown(&table.caption))) }
            }
            thead { tr { @for (index, column) in &columns { (heading(table, *index, column)) } } }
            @for group in table.rows.chunk_by(|_, next| next.group.is_none()) {
                tbody id=[group[0].group.as_ref().and_then(|of| of.anchor.as_deref())] {
                    @if let Some(of) = &group[0].group { (title(of, columns.len())) }
                    @for row in group { (line(row, &columns)) }
                }
            }
        }
    }
}

fn heading(table: &Table, index: usize, column: &Column) -> Markup {
    let is_number = column.align == Align::Right;
    // Percentiles keep their small letter.
    let name = if column.name.contains(|c: char| c.is_ascii_digit()) {
        column.name.clone()
    } else {
        capitalized(&column.name)
    };
    html! {
        @if column.place == Place::Drawn {
            @let is_interval = |row: &TableRow| matches!(row.cells[index].mark, Mark::Interval(_));
            th.interval[table.rows.iter().any(is_interval)] scope="col" {
                span.unseen { (capitalized(&column.name)) " drawn" }
            }
        } @else {
            th.number[is_number] scope="col" { (shown(&name)) }
        }
    }
}

fn title(group: &Group, columns: usize) -> Markup {
    html! {
        tr.head { th colspan=(columns) scope="rowgroup" { div.pinned {
            strong { (shown(&group.title)) }
            " " span.conditions { (shown(&group.note)) }
            @if !group.warning.is_empty() {
                " " span.reasons.warning { (shown(&group.warning)) }
            }
            @for code in &group.codes {
                " " a.tag.warning href={"#" (finding_anchor(code))} { "! " (shown(code)) }
            }
        } } }
    }
}

fn line(row: &TableRow, columns: &[(usize, &Column)]) -> Markup {
    let of_row = Some(class(row.tone)).filter(|class| !class.is_empty());
    html! {
        tr class=[of_row] { @for (position, (index, column)) in columns.iter().enumerate() {
            @let one = &row.cells[*index];
            @if position == 0 { th.operation scope="row" { (shown(one.text.trim())) } }
            @else { (cell(one, column)) }
        } }
    }
}

fn cell(cell: &Cell, column: &Column) -> Markup {
    let number = (column.align == Align::Right).then(|| "number".to_owned());
    let heat = match cell.mark {
        Mark::Heat(Some(share)) => {
            let step = (share * HEAT_MAX).clamp(0.0, HEAT_MAX);
            Some(format!("heat-{step:.0}"))
        }
        _ if cell.tone == Tone::Dim => Some("predicted".to_owned()),
        _ => None,
    };
    let classes = joined(number.into_iter().chain(heat), " ");
    let note = Some(shown(&cell.note)).filter(|note| !note.is_empty());
    let text = shown(cell.text.trim());
    html! {
        @match &cell.mark {
            Mark::Interval(width) => td.drawn.interval {
                @if width.is_finite() { (error_bar(*width)) }
            },
            Mark::Ratio { ratio, reach, margin } => {
                td.drawn { (forest(*ratio, *reach, *margin)) }
            },
            _ => td class=[classes] title=[note] {
                @match cell.tone {
                    Tone::Good | Tone::Warning | Tone::Error => {
                        span class={"tag " (class(cell.tone))} { (text) }
                    },
                    Tone::Bold => strong { (text) },
                    _ => (text),
                }
            },
        }
    }
}

/// An interval as a picture. The cell next to it holds the text, so screen readers skip the
/// picture.
fn error_bar(width: f64) -> Markup {
    let reach = width.min(BAR_SCALE) / BAR_SCALE * 48.0;
    let (left, right) = (px(50.0 - reach), px(50.0 + reach));
    let dashes = (width > BAR_SCALE).then_some("3 3");
    html! {
        svg.errorbar aria-hidden="true" {
            title { "The scale ends at ±50 %" }
            path.scale d="M2 8h96" {}
            path.reach d={"M" (left) " 8H" (right)} stroke-dasharray=[dashes] {}
            path.reach d={"M" (left) " 3v10M" (right) " 3v10"} {}
            circle.value cx="50" cy="8" r="3" {}
        }
    }
}

/// A ratio with its interval.
fn forest(ratio: Ratio, reach: f64, margin: f64) -> Markup {
    let place = |ratio: f64| (80.0 + comparison::place(ratio, reach) * 76.0).clamp(3.0, 157.0);
    let high = ratio.high_95.unwrap_or(f64::INFINITY);
    let (low, high) = (place(ratio.low_95), place(high));
    let (band_low, band_high) = (place(1.0 - margin), place(1.0 / (1.0 - margin)));
    html! {
        svg.forest viewBox="0 0 160 16" width="160" height="16" aria-hidden="true" {
            rect.band x=(px(band_low)) width=(px(band_high - band_low)) y="0" height="16" {}
            line.one x1="80" x2="80" y1="0" y2="16" {}
            line.reach x1=(px(low)) x2=(px(high)) y1="8" y2="8" {}
            circle.value cx=(px(place(ratio.value))) cy="8" r="3.5" {}
        }
    }
}

/// A finding with its evidence.
fn finding(record: &Record, finding: &Finding) -> Markup {
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
    html! { @if let Some(m) = measured { (shown(&m.data.workload.name)) " " } }
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
    trimmed(&format!("{value:.4}")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::assert_shows;

    #[test]
    fn forest_places_half_and_double_equally_far_from_one() {
        let drawn = |value, low_95, high_95| {
            let ratio = Ratio {
                value,
                low_95,
                high_95,
            };
            forest(ratio, 4.0_f64.ln(), 0.02).into_string()
        };
        // A ratio beyond the scale is drawn at its edge.
        for (value, place) in [
            (0.5, "cx=\"42\""),
            (2.0, "cx=\"118\""),
            (100.0, "cx=\"156\""),
        ] {
            assert_shows(&drawn(value, value, Some(value)), &[place]);
        }
        // An interval without an end reaches it.
        assert_shows(&drawn(1.0, 0.0, None), &["x1=\"4\" x2=\"156\""]);
    }

    #[test]
    fn evidence_is_printed_in_its_unit() {
        for (value, unit, text) in [
            (0.3712349, "1", "0.3712"),
            (8.0, "1", "8"),
            (61_320.0, "ns", "61.3 µs"),
            (12.0, "blocks", "12 blocks"),
            (0.0, "settled", "not settled"),
            (1.0, "virtual", "virtual"),
        ] {
            assert_eq!(quantity(value, unit), text);
        }
    }
}
