//! Blocks as HTML: tables with drawn intervals, lists of facts, findings with their evidence.
//! Charts have a section of their own, and are skipped here.

use super::elements::{capitalized, command, finding_anchor, shown, shown_whole, wide_table};
use crate::describe::ratio::scale_position;
use crate::labels::third_digit_unit;
use crate::svg::px;
use crate::text::{joined, trimmed};
use diskproof_model::block::{
    Align, Block, Cell, Column, Fact, Group, Mark, Narrow, Place, Table, TableRow, Tone,
};
use diskproof_model::comparison::Ratio;
use diskproof_model::digits::figure_text;
use diskproof_model::finding::{Evidence, Finding, Severity};
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::units::{format_bytes, format_latency};
use maud::{Markup, html};

/// The relative half-width at which an error bar's scale ends; wider intervals are dashed. With a
/// larger value, usual intervals of a few percent would be too short to compare.
const BAR_SCALE: f64 = 0.5;
/// The darkest shade of the style sheet: `heat-5`.
const HEAT_CLASS_MAX: f64 = 5.0;
/// The middle of an error bar, in the units of its picture, which is 100 wide.
const BAR_MIDDLE: f64 = 50.0;
/// The length of an error bar from its middle to the end of the scale. Two units remain for the
/// width of the line.
const BAR_ARM: f64 = 48.0;
/// The middle of the picture of a ratio, which is 160 wide: a ratio of one.
const RATIO_MIDDLE: f64 = 80.0;
/// The length from there to the end of the scale. Four units remain for the dot at the value.
const RATIO_ARM: f64 = 76.0;

/// Blocks in order; facts that follow each other are one list. Findings need the record for their
/// evidence, and are skipped without one.
pub(super) fn blocks(list: &[Block], record: Option<&Record>) -> Markup {
    html! { @for group in list.chunk_by(are_facts) { (block_group(group, record)) } }
}

fn are_facts(one: &Block, next: &Block) -> bool {
    matches!((one, next), (Block::Fact(_), Block::Fact(_)))
}

/// A block, or several facts that follow each other.
fn block_group(group: &[Block], record: Option<&Record>) -> Markup {
    match &group[0] {
        Block::Heading(text) => html! { h3 { (shown_whole(&capitalized(text))) } },
        Block::Text(tone, text) => paragraph(*tone, text),
        Block::Fact(_) => html! {
            dl.facts {
                @for block in group {
                    @if let Block::Fact(fact) = block {
                        (fact_entry(fact))
                    }
                }
            }
        },
        Block::Table(table) => wide_table(&shown_whole(&table.caption), &table_markup(table)),
        Block::Command { what, text } => html! {
            p { (shown_whole(what)) ":" } (command(text, what))
        },
        Block::Finding(finding) => match record {
            Some(record) => finding_article(record, finding),
            None => Markup::default(),
        },
        Block::Chart(_) | Block::Ping(_) | Block::Scan => Markup::default(),
    }
}

fn fact_entry(fact: &Fact) -> Markup {
    html! {
        div {
            dt { (shown(&fact.label)) }
            dd { (shown_whole(&fact.text)) }
        }
    }
}

/// The class of a role in the style sheet; empty for ordinary text.
pub(super) fn tone_class(tone: Tone) -> &'static str {
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
    let text = unbroken_dash(&shown_whole(text));
    match tone {
        Tone::Error | Tone::Warning => html! {
            p class={"alert " (tone_class(tone))} { (capitalized(&text)) }
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

/// A column that is shown.
struct UsedColumn<'a> {
    /// Its place in the rows of the table.
    index: usize,
    column: &'a Column,
}

/// The first column, and those that have a text or a drawing.
fn used_columns(table: &Table) -> Vec<UsedColumn<'_>> {
    let mut used = Vec::new();
    for (index, column) in table.columns.iter().enumerate() {
        let mut cells = table.rows.iter().map(|row| &row.cells[index]);
        let has_content = if column.place == Place::Drawn {
            cells.any(is_drawn)
        } else {
            cells.any(|cell| !cell.text.trim().is_empty())
        };
        if index == 0 || has_content {
            used.push(UsedColumn { index, column });
        }
    }
    used
}

fn is_drawn(cell: &Cell) -> bool {
    matches!(cell.mark, Mark::Interval(_) | Mark::Ratio { .. })
}

fn table_markup(table: &Table) -> Markup {
    let columns = used_columns(table);
    let has_groups = table.rows.iter().any(|row| row.group.is_some());
    let style = if has_groups {
        "figures"
    } else {
        match table.narrow {
            Narrow::Entries => "entries",
            Narrow::Stack | Narrow::Split | Narrow::Titled(_) => "plain",
        }
    };
    html! {
        table class=(style) {
            @if !table.caption.is_empty() && !has_groups {
                caption { (capitalized(&shown_whole(&table.caption))) }
            }
            thead {
                tr {
                    @for used in &columns {
                        (column_heading(table, used))
                    }
                }
            }
            @for group in table.rows.chunk_by(|_, next| next.group.is_none()) {
                (row_group(group, &columns))
            }
        }
    }
}

/// The rows of a group below its title.
fn row_group(rows: &[TableRow], columns: &[UsedColumn<'_>]) -> Markup {
    let group = rows[0].group.as_ref();
    let anchor = group.and_then(|group| group.anchor.as_deref());
    html! {
        tbody id=[anchor] {
            @if let Some(group) = group { (group_title(group, columns.len())) }
            @for row in rows { (table_row(row, columns)) }
        }
    }
}

fn column_heading(table: &Table, used: &UsedColumn<'_>) -> Markup {
    let UsedColumn { index, column } = *used;
    let is_number = column.align == Align::Right;
    let has_interval = table
        .rows
        .iter()
        .any(|row| matches!(row.cells[index].mark, Mark::Interval(_)));
    // Percentiles keep their small letter.
    let name = if column.name.contains(|c: char| c.is_ascii_digit()) {
        column.name.clone()
    } else {
        capitalized(&column.name)
    };
    html! {
        @if column.place == Place::Drawn {
            th.interval[has_interval] scope="col" {
                span.unseen { (capitalized(&column.name)) " drawn" }
            }
        } @else {
            th.number[is_number] scope="col" { (shown_whole(&name)) }
        }
    }
}

fn group_title(group: &Group, columns: usize) -> Markup {
    html! {
        tr.head { th colspan=(columns) scope="rowgroup" { div.pinned {
            strong { (shown(&group.title)) }
            " " span.conditions { (shown_whole(&group.note)) }
            @if !group.warning.is_empty() {
                " " span.reasons.warning { (shown_whole(&group.warning)) }
            }
            @for code in &group.codes {
                " " a.tag.warning href={"#" (finding_anchor(code))} { "! " (shown(code)) }
            }
        } } }
    }
}

fn table_row(row: &TableRow, columns: &[UsedColumn<'_>]) -> Markup {
    let row_class = match tone_class(row.tone) {
        "" => None,
        class => Some(class),
    };
    html! {
        tr class=[row_class] {
            @for (position, used) in columns.iter().enumerate() {
                @let cell = &row.cells[used.index];
                @if position == 0 {
                    th.operation scope="row" { (shown_whole(cell.text.trim())) }
                } @else {
                    (table_cell(cell, used.column))
                }
            }
        }
    }
}

fn table_cell(cell: &Cell, column: &Column) -> Markup {
    match &cell.mark {
        Mark::Interval(half_width) => html! {
            td.drawn.interval { @if half_width.is_finite() { (error_bar(*half_width)) } }
        },
        Mark::Ratio {
            ratio,
            reach,
            margin,
        } => html! {
            td.drawn { (ratio_interval(*ratio, *reach, *margin)) }
        },
        Mark::None | Mark::Heat(_) | Mark::Course(_) => text_cell(cell, column),
    }
}

fn text_cell(cell: &Cell, column: &Column) -> Markup {
    let note = match shown_whole(&cell.note) {
        note if note.is_empty() => None,
        note => Some(note),
    };
    let text = shown_whole(cell.text.trim());
    html! {
        td class=[cell_classes(cell, column)] title=[note] {
            @match cell.tone {
                Tone::Good | Tone::Warning | Tone::Error => {
                    span class={"tag " (tone_class(cell.tone))} { (text) }
                },
                Tone::Bold => strong { (text) },
                Tone::Plain | Tone::Dim | Tone::Note | Tone::Dot => (text),
            }
        }
    }
}

/// The classes of a cell: whether it is a number, its shade, whether it was predicted. `None` for
/// none.
fn cell_classes(cell: &Cell, column: &Column) -> Option<String> {
    let mut classes = Vec::new();
    if column.align == Align::Right {
        classes.push("number".to_owned());
    }
    if let Mark::Heat(Some(share)) = cell.mark {
        let step = (share * HEAT_CLASS_MAX).clamp(0.0, HEAT_CLASS_MAX);
        classes.push(format!("heat-{step:.0}"));
    } else if cell.tone == Tone::Dim {
        classes.push("predicted".to_owned());
    }
    joined(classes, " ")
}

/// Draws an interval as a picture. The cell next to it holds the text, so screen readers skip it.
fn error_bar(half_width: f64) -> Markup {
    let arm = half_width.min(BAR_SCALE) / BAR_SCALE * BAR_ARM;
    let left = px(BAR_MIDDLE - arm);
    let right = px(BAR_MIDDLE + arm);
    let dashes = if half_width > BAR_SCALE {
        Some("3 3")
    } else {
        None
    };
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

/// Draws a ratio with its interval over the band of ratios within the margin.
fn ratio_interval(ratio: Ratio, reach: f64, margin: f64) -> Markup {
    let low = x_of_ratio(ratio.low_95, reach);
    let high = x_of_ratio(ratio.high_95.unwrap_or(f64::INFINITY), reach);
    let band_low = x_of_ratio(1.0 - margin, reach);
    let band_high = x_of_ratio(1.0 / (1.0 - margin), reach);
    html! {
        svg.forest viewBox="0 0 160 16" width="160" height="16" aria-hidden="true" {
            rect.band x=(px(band_low)) width=(px(band_high - band_low)) y="0" height="16" {}
            line.one x1="80" x2="80" y1="0" y2="16" {}
            line.reach x1=(px(low)) x2=(px(high)) y1="8" y2="8" {}
            circle.value cx=(px(x_of_ratio(ratio.value, reach))) cy="8" r="3.5" {}
        }
    }
}

fn x_of_ratio(ratio: f64, reach: f64) -> f64 {
    let place = scale_position(ratio, reach);
    RATIO_MIDDLE + place * RATIO_ARM
}

/// A finding with its evidence.
fn finding_article(record: &Record, finding: &Finding) -> Markup {
    let (class, label) = match finding.severity {
        Severity::Failure => ("finding failure", "✕ Failure"),
        Severity::Warning => ("finding warning", "! Warning"),
        Severity::Note => ("finding note", "i Note"),
    };
    // A link by code leads to the first finding of its kind.
    let first = record
        .findings
        .iter()
        .find(|other| other.code == finding.code);
    let anchor = if first == Some(finding) {
        Some(finding_anchor(&finding.code))
    } else {
        None
    };
    html! {
        article class=(class) id=[anchor] {
            h3 {
                span.tag { (label) } " " (shown_whole(finding.heading()))
                @if finding.title.is_some() { " " code { (shown(&finding.code)) } }
            }
            p.claim { (shown_whole(&finding.claim)) }
            p { strong { "Remedy: " } (shown_whole(&finding.remedy)) }
            @if !finding.evidence.is_empty() { (evidence_table(record, finding)) }
            @if let Some(text) = &finding.reproduce { (command(text, &finding.code)) }
        }
    }
}

fn evidence_table(record: &Record, finding: &Finding) -> Markup {
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
                td { (evidence_workload(record, item)) code.path { (shown(&item.path)) } }
                td.number { (quantity_text(item.observed, &item.unit)) }
                td.number { (quantity_text(item.threshold, &item.unit)) }
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

/// The name of the workload that the evidence is about; nothing where it is about the run.
fn evidence_workload(record: &Record, evidence: &Evidence) -> Markup {
    html! {
        @if let Some(row) = evidence_measurement(record, &evidence.path) {
            (shown(&row.data.workload.name)) " "
        }
    }
}

/// The measurement that a JSON pointer leads into.
fn evidence_measurement<'a>(record: &'a Record, path: &str) -> Option<&'a Row> {
    let rest = path.strip_prefix("/measurements/")?;
    let index: usize = rest.split('/').next()?.parse().ok()?;
    record.measurements.get(index)
}

/// A number of evidence in its unit.
fn quantity_text(value: f64, unit: &str) -> String {
    match unit {
        "1" => plain_number(value),
        "ns" => format_latency(value.max(0.0).round() as u64),
        "B" => format_bytes(value.max(0.0).round() as u64),
        "B/s" | "1/s" => figure_text(value, Some(third_digit_unit(value)), unit),
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
        // A ratio beyond the scale is drawn at its edge.
        for (value, place) in [
            (0.5, "cx=\"42\""),
            (2.0, "cx=\"118\""),
            (100.0, "cx=\"156\""),
        ] {
            assert_shows(&drawn_ratio(value, value, Some(value)), &[place]);
        }
        // An interval without an end reaches it.
        assert_shows(&drawn_ratio(1.0, 0.0, None), &["x1=\"4\" x2=\"156\""]);
    }

    fn drawn_ratio(value: f64, low_95: f64, high_95: Option<f64>) -> String {
        let ratio = Ratio {
            value,
            low_95,
            high_95,
        };
        ratio_interval(ratio, 4.0_f64.ln(), 0.02).into_string()
    }

    #[test]
    fn band_ends_at_the_ratios_of_the_verdict() {
        // ln(1/0.98) / ln(4) of an arm of 76, on both sides of the middle.
        assert_shows(
            &drawn_ratio(1.0, 1.0, Some(1.0)),
            &["rect class=\"band\" x=\"78.9\" width=\"2.2\""],
        );
    }

    #[test]
    fn error_bar_is_as_long_as_its_interval_up_to_the_scale() {
        let half = error_bar(0.25).into_string();
        assert_shows(&half, &["M26 8H74", "M26 3v10M74 3v10"]);
        assert!(!half.contains("stroke-dasharray"), "{half}");
        let whole = error_bar(0.5).into_string();
        assert_shows(&whole, &["M2 8H98"]);
        assert!(!whole.contains("stroke-dasharray"), "{whole}");
        assert_shows(
            &error_bar(0.8).into_string(),
            &["M2 8H98", "stroke-dasharray"],
        );
    }

    #[test]
    fn shade_of_a_cell_follows_its_share() {
        let column = Column::number("rate", Place::Always);
        for (share, class) in [
            (0.0, "number heat-0"),
            (0.5, "number heat-2"),
            (1.0, "number heat-5"),
            (2.0, "number heat-5"),
        ] {
            let cell = Cell::drawn(Mark::Heat(Some(share)));
            assert_eq!(cell_classes(&cell, &column).as_deref(), Some(class));
        }
        let predicted = Cell::toned(Tone::Dim, "~");
        assert_eq!(
            cell_classes(&predicted, &column).as_deref(),
            Some("number predicted")
        );
        let word = Column::new("name", Align::Left);
        assert_eq!(cell_classes(&Cell::default(), &word), None);
    }

    #[test]
    fn column_without_content_is_not_shown() {
        let row = TableRow::from(vec![String::new(), "1".to_owned(), " ".to_owned()]);
        let table = Table::new("", Column::numbers(["", "one", "empty"]), vec![row]);
        let markup = table_markup(&table).into_string();
        assert_eq!(markup.matches("scope=\"col\"").count(), 2, "{markup}");
    }

    /// The end of a sentence may qualify its beginning.
    #[test]
    fn own_text_is_never_cut() {
        let long = "one of many words ".repeat(40) + "END";
        let count = |all: &[Block]| blocks(all, None).into_string().matches("END").count();
        for block in [
            Block::Heading(long.clone()),
            Block::Text(Tone::Warning, long.clone()),
            Block::fact("label", long.clone()),
        ] {
            assert_eq!(count(std::slice::from_ref(&block)), 1, "{block:?}");
        }
        let row = TableRow::from(vec![long.clone(), long.clone()]);
        let table = Table::new(&long, Column::numbers(["one", "two"]), vec![row]);
        // The caption is also the label of the frame.
        assert_eq!(count(&[Block::Table(table)]), 4);
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
            assert_eq!(quantity_text(value, unit), text);
        }
    }
}
