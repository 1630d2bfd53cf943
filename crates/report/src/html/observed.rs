//! An observed load on the page, and how closely a run matched one.

use super::elements::{capitalized, facts, shown, wide_table};
use crate::describe::{observed, server};
use diskproof_model::observed::ObservedRecord;
use diskproof_model::record::Record;
use diskproof_model::server_load::ObservedServer;
use maud::{Markup, html};

/// The table and the facts.
pub(super) fn observed_figures(of: &ObservedRecord) -> Markup {
    let known: Vec<(&str, Option<String>)> = observed::facts(of)
        .into_iter()
        .map(|(label, text)| (label, Some(text)))
        .collect();
    html! {
        (wide_table("Observed load", &table(of)))
        (facts(&known))
        @if let Some(server) = &of.server { (server_figures(server)) }
    }
}

/// What the server did while its disks were watched.
fn server_figures(of: &ObservedServer) -> Markup {
    let known: Vec<(&str, Option<String>)> = server::facts(of)
        .into_iter()
        .map(|(label, text)| (label, Some(text)))
        .collect();
    let table = html! {
        table.plain {
            caption { "PostgreSQL server" }
            thead { tr {
                th scope="col" { "Process" }
                @for name in server::COLUMNS { th.number scope="col" { (capitalized(name)) } }
            } }
            tbody { @for (name, cells) in server::rows(of) { tr {
                th scope="row" { (shown(&name)) }
                @for cell in cells { td.number { (shown(&cell)) } }
            } } }
        }
    };
    html! {
        (wide_table("PostgreSQL server", &table))
        (facts(&known))
    }
}

fn table(of: &ObservedRecord) -> Markup {
    html! {
        table.plain {
            caption { "Observed load" }
            thead { tr {
                th scope="col" { "Device" }
                @for name in observed::COLUMNS { th.number scope="col" { (capitalized(name)) } }
            } }
            tbody { @for (name, cells) in observed::rows(of) { tr {
                th scope="row" { (name) }
                @for cell in cells { td.number { (cell) } }
            } } }
        }
    }
}

/// How closely the run matched the load that it repeats; nothing for other runs.
pub(super) fn likeness(record: &Record) -> Markup {
    let Some((source, rows)) = observed::likeness(record) else {
        return Markup::default();
    };
    let table = html! {
        table.plain {
            caption { "Compared with " (source) }
            thead { tr {
                th scope="col" { "Figure" }
                th.number scope="col" { "Observed" }
                th.number scope="col" { "This run" }
            } }
            tbody { @for [name, wanted, measured] in rows { tr {
                th scope="row" { (capitalized(&name)) }
                td.number { (wanted) }
                td.number { (measured) }
            } } }
        }
    };
    wide_table("Likeness", &table)
}
