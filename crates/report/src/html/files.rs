//! Operations on many small files on the page: a table of the steps, and what they mean.

use super::elements::{capitalized, facts, wide_table};
use crate::describe::files;
use diskproof_model::record::{FilesRecord, Record};
use maud::{Markup, html};

/// The table and the facts.
pub(super) fn file_figures(record: &Record, of: &FilesRecord) -> Markup {
    let known: Vec<(&str, Option<String>)> = files::facts(record)
        .into_iter()
        .map(|(label, text)| (label, Some(text)))
        .collect();
    html! {
        (wide_table("Operations on files", &table(of)))
        (facts(&known))
    }
}

fn table(of: &FilesRecord) -> Markup {
    html! {
        table.plain {
            caption { "Operations on many small files" }
            thead { tr {
                th scope="col" { "Step" }
                @for name in files::COLUMNS { th.number scope="col" { (capitalized(name)) } }
            } }
            tbody { @for step in &of.steps { tr {
                th scope="row" { (step.step.name()) }
                @for cell in files::cells(step) { td.number { (cell) } }
            } } }
        }
    }
}
