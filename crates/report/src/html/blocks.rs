//! Blocks on the page for a browser. Charts have a section of their own.

use super::elements::{capitalized, shown, wide_table};
use diskproof_model::block::{Align, Block, Fact, Table, Tone};
use maud::{Markup, html};

/// The blocks in order; facts that follow each other are one list.
pub(super) fn blocks(all: &[Block]) -> Markup {
    let are_facts = |a: &Block, b: &Block| matches!((a, b), (Block::Fact(_), Block::Fact(_)));
    html! { @for group in all.chunk_by(are_facts) { (part(group)) } }
}

fn part(group: &[Block]) -> Markup {
    match &group[0] {
        Block::Heading(text) => html! { h3 { (shown(&capitalized(text))) } },
        Block::Text(tone, text) => paragraph(*tone, text),
        Block::Fact(_) => html! {
            dl.facts { @for block in group { @if let Block::Fact(fact) = block { (entry(fact)) } } }
        },
        Block::Table(table) => wide_table(&shown(&table.caption), &rows(table)),
        Block::Chart(_) => Markup::default(),
    }
}

fn entry(fact: &Fact) -> Markup {
    html! { div { dt { (shown(&fact.label)) } dd { (shown(&fact.text)) } } }
}

fn paragraph(tone: Tone, text: &str) -> Markup {
    let text = shown(text);
    match tone {
        Tone::Error => html! { p.alert.failure { (capitalized(&text)) } },
        Tone::Warning => html! { p.alert.warning { (capitalized(&text)) } },
        Tone::Dim => html! { p.legend { (text) } },
        Tone::Bold => html! { p { strong { (text) } } },
        Tone::Plain | Tone::Good | Tone::Note | Tone::Dot => html! { p { (text) } },
    }
}

fn rows(table: &Table) -> Markup {
    let is_number = |column: usize| column > 0 && table.align == Align::Right;
    html! {
        table.plain {
            @if !table.caption.is_empty() { caption { (shown(&table.caption)) } }
            thead { tr { @for (column, name) in table.columns.iter().enumerate() {
                th.number[is_number(column)] scope="col" { (capitalized(name)) }
            } } }
            tbody { @for row in &table.rows { tr { @for (column, cell) in row.iter().enumerate() {
                @if column == 0 { th scope="row" { (shown(cell)) } }
                @else { td.number[is_number(column)] { (shown(cell)) } }
            } } } }
        }
    }
}
