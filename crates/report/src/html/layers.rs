//! The cost of each layer on the page: a table per workload, and what it means.

use super::elements::{capitalized, facts, shown, wide_table};
use crate::describe::layers;
use diskproof_model::layers::LayersRecord;
use diskproof_model::record::Record;
use maud::{Markup, html};

/// The tables and the facts.
pub(super) fn layer_figures(record: &Record, of: &LayersRecord) -> Markup {
    let known: Vec<(&str, Option<String>)> = layers::facts(record)
        .into_iter()
        .map(|(label, text)| (label, Some(text)))
        .collect();
    html! {
        @for workload in &record.plan.workloads {
            @let label = format!("Cost of each layer: {}", shown(&workload.name));
            (wide_table(&label, &table(record, of, &workload.name, &label)))
        }
        (facts(&known))
    }
}

fn table(record: &Record, of: &LayersRecord, workload: &str, label: &str) -> Markup {
    html! {
        table.plain {
            caption { (label) }
            thead { tr {
                th scope="col" { "Layer" }
                @for name in layers::COLUMNS { th.number scope="col" { (capitalized(name)) } }
            } }
            tbody { @for (name, cells) in layers::rows(record, of, workload) { tr {
                th scope="row" { (shown(&name)) }
                @for cell in cells { td.number { (cell) } }
            } } }
        }
    }
}
