//! A PostgreSQL server on the page: the tables of its INSERTs and of the settings that it tried.

use super::elements::{capitalized, shown, wide_table};
use crate::describe::{inserts, trials};
use diskproof_model::postgres::PostgresRecord;
use maud::{Markup, html};

/// The tables and what they mean.
pub(super) fn server_figures(postgres: &PostgresRecord) -> Markup {
    let loads: Vec<Vec<String>> = postgres.loads.iter().map(inserts::cells).collect();
    let tried = postgres.trials.iter();
    let tried: Vec<Vec<String>> = tried.map(|tried| trials::cells(tried).to_vec()).collect();
    let mut heading = inserts::HEADING;
    heading[0] = "load";
    html! {
        h3 { (shown(&inserts::title(postgres))) }
        @if loads.is_empty() { p.alert.failure { "Nothing was measured." } } @else {
            (table("INSERTs", &heading, &loads, true))
            @for text in inserts::explanations(postgres) { p { (shown(&text)) } }
            p.legend { (inserts::LEGEND) }
        }
        @if !tried.is_empty() {
            h3 { (trials::TITLE) }
            (table("Settings that were tried", &trials::HEADING, &tried, false))
            p.legend { (trials::LEGEND) }
        }
    }
}

fn table(label: &str, heading: &[&str], rows: &[Vec<String>], is_number: bool) -> Markup {
    let table = html! {
        table.plain {
            caption { (label) }
            thead { tr { @for (index, name) in heading.iter().enumerate() {
                th.number[is_number && index > 0] scope="col" { (capitalized(name)) }
            } } }
            tbody { @for row in rows { tr { @for (index, cell) in row.iter().enumerate() {
                @if index == 0 { th scope="row" { (shown(cell)) } }
                @else { td.number[is_number] { (shown(cell)) } }
            } } } }
        }
    };
    wide_table(label, &table)
}
