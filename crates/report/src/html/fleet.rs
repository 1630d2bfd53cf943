//! The page of many hosts: the sentence, the rows that differ, a heat map of hosts and workloads,
//! and the latencies of a row that differs over those of the others.

use super::blocks::blocks;
use super::charts;
use super::comparison::two_percentiles_chart;
use super::document::{DataBlock, Document, NavigationEntry};
use super::elements::{section, shown, shown_whole};
use super::saved_page::FLEET_ID;
use crate::chart::Chart;
use crate::describe::comparison::margin_text;
use crate::describe::fleet::{FleetDetail, answer_blocks, latencies_table, speed_tables};
use crate::describe::fleet_sum;
use diskproof_model::block::Block;
use diskproof_model::fleet::{FleetMetric, FleetRecord, FleetRow, FleetValue, RowState};
use diskproof_model::units::counted;
use maud::{Markup, html};
use std::io::{self, Write};

/// A page has at most this many charts of rows that differ: each fills a screen.
const CHARTS_MAX: usize = 12;

/// Writes the page of a fleet.
pub fn write_fleet(fleet: &FleetRecord, out: &mut dyn Write) -> io::Result<()> {
    let charts = charts_of_rows(fleet);
    let mut sections = vec![
        NavigationEntry::new("verdict", "Verdict"),
        NavigationEntry::new("rows", "Hosts"),
    ];
    if !charts.is_empty() {
        sections.push(NavigationEntry::new("charts", "Charts"));
    }
    sections.push(NavigationEntry::new("data", "Data"));
    let mut map = speed_tables(fleet);
    map.extend(latencies_table(fleet));
    let body = html! {
        (overview_section(fleet))
        (section("rows", "Hosts and workloads", &blocks(&map, None)))
        @if !charts.is_empty() { (charts::section(&charts, None)) }
        (data_section())
    };
    let data = [
        DataBlock::new("chart-data", charts::data(&charts).to_string()),
        DataBlock::new(FLEET_ID, serde_json::to_string(fleet)?),
    ];
    let rows = counted(fleet.rows.len() as u64, fleet.rows_are.noun());
    let title = format!("{rows} · fleet");
    let document = Document {
        title: &title,
        sections: &sections,
        file_name: "diskproof-fleet",
        body: &body,
        data: &data,
    };
    out.write_all(document.html().as_bytes())
}

fn overview_section(fleet: &FleetRecord) -> Markup {
    let mut described: Vec<Block> = match &fleet.sum {
        Some(sum) => fleet_sum::blocks(sum),
        None => Vec::new(),
    };
    described.extend(answer_blocks(fleet, FleetDetail::All));
    html! {
        section.overview #verdict aria-labelledby="title" {
            p.kicker {
                "many hosts · differences up to " (margin_text(fleet.margin)) " are ignored"
            }
            h1 #title { (shown_whole(&fleet.summary)) }
            (blocks(&described, None))
        }
    }
}

/// The latencies of the workloads in which a row differs, over those of the rows that are alike.
fn charts_of_rows(fleet: &FleetRecord) -> Vec<Chart> {
    let mut charts = Vec::new();
    for row in &fleet.rows {
        for value in &row.values {
            if matches!(value.state, RowState::Alike | RowState::NotJudged) {
                continue;
            }
            let Some(group) = row.group.and_then(|group| fleet.groups.get(group)) else {
                continue;
            };
            charts.extend(chart_of_value(
                row,
                value,
                &group.metrics[value.metric],
                charts.len(),
            ));
        }
    }
    charts.truncate(CHARTS_MAX);
    charts
}

fn chart_of_value(
    row: &FleetRow,
    value: &FleetValue,
    metric: &FleetMetric,
    number: usize,
) -> Option<Chart> {
    let own = value.latencies.first()?;
    let others = metric.latencies.iter().find(|one| one.op == own.op)?;
    let name = shown(&row.name);
    let overlay = two_percentiles_chart("alike", &others.percentiles, &name, &own.percentiles)?;
    Some(Chart {
        id: format!("percentiles-{number}"),
        title: format!(
            "{} {} latency, {name}",
            shown(&metric.subject),
            own.op.as_str()
        ),
        ..overlay
    })
}

fn data_section() -> Markup {
    let content = html! {
        p {
            "This file contains the whole result: every row with its figures and reasons. "
            code { "diskproof show THIS-FILE.html" } " prints it."
        }
        p.buttons {
            button #save-record.scripted type="button" { "Save the fleet as JSON" }
            " "
            button #save-charts.scripted type="button" { "Save all charts as CSV" }
        }
    };
    section("data", "Data", &content)
}
