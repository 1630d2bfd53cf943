//! The search for the greatest depth that meets a latency limit, on the page.

use super::elements::{capitalized, wide_table};
use crate::describe::latency_search::{COLUMNS, heading, rows};
use diskproof_model::latency_search::LatencySearch;
use diskproof_model::record::Record;
use maud::{Markup, html};

/// A row for each depth that was measured.
pub(super) fn latency_search_figures(record: &Record, search: &LatencySearch) -> Markup {
    let label = capitalized(&heading(search));
    let table = html! {
        table.plain {
            caption { (label) }
            thead { tr {
                th scope="col" { "Depth" }
                @for name in COLUMNS { th.number scope="col" { (capitalized(name)) } }
            } }
            tbody { @for (depth, cells) in rows(record, search) { tr {
                th scope="row" { (depth) }
                @for cell in cells { td.number { (cell) } }
            } } }
        }
    };
    wide_table(&label, &table)
}
