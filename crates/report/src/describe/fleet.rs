//! The page of many hosts: who is not like the others, in what, and why; then what was not judged;
//! then the figures of the rest.

use super::fleet_acceptance::tested_disks_table;
use super::fleet_commands::{drain_commands, second_look_command};
use super::fleet_sum::{self, NAMES_MAX, names_text};
use crate::labels;
use crate::text::glue;
use diskproof_model::block::{
    Align, Block, Cell, Column, Mark, Narrow, Place, Table, TableRow, Tone,
};
use diskproof_model::comparison::{Direction, Reason};
use diskproof_model::digits::figure_text;
use diskproof_model::fleet::{
    FleetGroup, FleetMetric, FleetRecord, FleetRow, FleetValue, RowState,
};
use diskproof_model::op::OpKind;
use diskproof_model::units::{format_bytes, format_latency, format_percent};
use std::collections::BTreeMap;

/// Differing rows on the short page.
const ROWS_MAX: usize = 20;
/// Workloads of a differing row on the short page.
const VALUES_MAX: usize = 3;
/// Percentiles of the like rows' latencies.
const PERCENTILES: [f64; 4] = [50.0, 99.0, 99.9, 99.99];

/// How much of a fleet a page shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FleetDetail {
    /// The rows that differ, and five numbers of the rest.
    Differing,
    /// Every row, and the latencies.
    All,
}

/// The page.
pub(crate) fn blocks(fleet: &FleetRecord, detail: FleetDetail) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(sum) = &fleet.sum {
        blocks.extend(fleet_sum::blocks(sum));
    }
    blocks.push(Block::text(Tone::Bold, fleet.summary.clone()));
    blocks.extend(answer_blocks(fleet, detail));
    if detail == FleetDetail::All {
        blocks.extend(speed_tables(fleet));
        blocks.extend(latencies_table(fleet));
    }
    let legend = match detail {
        FleetDetail::Differing => "every row, and latencies: --all",
        FleetDetail::All => "speed: times as fast as the median of the others",
    };
    blocks.push(Block::text(Tone::Dim, legend));
    blocks
}

/// What follows the sentence: what is not judged, who differs, and the figures of the rest.
pub(crate) fn answer_blocks(fleet: &FleetRecord, detail: FleetDetail) -> Vec<Block> {
    let mut blocks = not_judged_facts(fleet);
    blocks.extend(tested_disks_table(&fleet.tested));
    blocks.extend(differing_table(fleet, detail));
    for group in &fleet.groups {
        blocks.extend(five_numbers_table(group));
    }
    blocks.extend(second_look_command(fleet));
    blocks.extend(drain_commands(fleet));
    blocks
}

/// One line for each reason, with the rows that it concerns; then what is missing and refused.
fn not_judged_facts(fleet: &FleetRecord) -> Vec<Block> {
    // Reasons of one kind are one line, although their figures differ from row to row.
    let mut rows: BTreeMap<&str, NamedReason<'_>> = BTreeMap::new();
    for row in &fleet.rows {
        if let (RowState::NotJudged, Some(reason)) = (row.state, &row.not_judged) {
            let entry = rows
                .entry(&reason.code)
                .or_insert_with(|| NamedReason::of(reason));
            entry.names.push(&row.name);
        }
    }
    let mut blocks = Vec::new();
    for NamedReason { why, names } in rows.into_values() {
        let text = format!("{}: {why}", names_text(&names));
        blocks.push(Block::toned_fact(Tone::Warning, "not judged", text));
    }
    blocks.extend(unjudged_figure_facts(fleet));
    let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in &fleet.missing {
        missing.entry(&row.why).or_default().push(&row.name);
    }
    for (why, names) in missing {
        let text = format!("{}: {why}", names_text(&names));
        blocks.push(Block::toned_fact(Tone::Error, "missing", text));
    }
    for refused in fleet.refused.iter().take(NAMES_MAX) {
        let text = format!("{}: {}", refused.name, refused.why);
        blocks.push(Block::toned_fact(Tone::Warning, "refused", text));
    }
    if fleet.refused.len() > NAMES_MAX {
        let text = format!("{} more", fleet.refused.len() - NAMES_MAX);
        blocks.push(Block::toned_fact(Tone::Warning, "refused", text));
    }
    blocks
}

/// Why rows were not judged, in the words of the first of them.
struct NamedReason<'f> {
    why: &'f str,
    names: Vec<&'f str>,
}

impl<'f> NamedReason<'f> {
    fn of(reason: &'f Reason) -> Self {
        Self {
            why: &reason.why,
            names: Vec::new(),
        }
    }
}

/// Single figures that could not be judged of rows that were.
fn unjudged_figure_facts(fleet: &FleetRecord) -> Vec<Block> {
    let mut figures: BTreeMap<(&str, &str), NamedReason<'_>> = BTreeMap::new();
    for row in &fleet.rows {
        if row.state == RowState::NotJudged {
            continue;
        }
        for value in &row.values {
            if let (RowState::NotJudged, Some(reason)) = (value.state, &value.not_judged)
                && let Some(metric) = metric_of_value(fleet, row, value)
            {
                let key = (metric.subject.as_str(), reason.code.as_str());
                let entry = figures
                    .entry(key)
                    .or_insert_with(|| NamedReason::of(reason));
                entry.names.push(&row.name);
            }
        }
    }
    let mut blocks = Vec::new();
    for ((subject, _), NamedReason { why, names }) in figures {
        let text = format!("{subject} of {}: {why}", names_text(&names));
        blocks.push(Block::toned_fact(Tone::Note, "not judged", text));
    }
    blocks
}

fn metric_of_value<'f>(
    fleet: &'f FleetRecord,
    row: &FleetRow,
    value: &FleetValue,
) -> Option<&'f FleetMetric> {
    fleet.groups.get(row.group?)?.metrics.get(value.metric)
}

/// Whether a row is in the table of those that differ.
fn differs(row: &FleetRow) -> bool {
    match row.state {
        RowState::Slower | RowState::Faster | RowState::Suspect | RowState::Errors => true,
        RowState::Alike | RowState::NotJudged => false,
    }
}

fn state_look(state: RowState) -> (Tone, &'static str) {
    match state {
        RowState::Slower | RowState::Errors => (Tone::Error, "▼"),
        RowState::Faster => (Tone::Warning, "▲"),
        RowState::Suspect => (Tone::Note, "?"),
        RowState::Alike => (Tone::Plain, "="),
        RowState::NotJudged => (Tone::Dim, "–"),
    }
}

/// The rows that differ: in what, by how much, and why.
fn differing_table(fleet: &FleetRecord, detail: FleetDetail) -> Option<Block> {
    let all: Vec<&FleetRow> = fleet.rows.iter().filter(|row| differs(row)).collect();
    if all.is_empty() {
        return None;
    }
    let most = match detail {
        FleetDetail::Differing => ROWS_MAX,
        FleetDetail::All => usize::MAX,
    };
    let mut rows = Vec::new();
    for row in all.iter().take(most) {
        rows.extend(differing_rows(fleet, row));
    }
    if all.len() > most {
        let more = format!("{} more: --all", all.len() - most);
        let mut cells = vec![String::new(); 6];
        cells[0] = more;
        rows.push(TableRow::from(cells));
    }
    let columns = vec![
        Column::new(fleet.rows_are.noun(), Align::Left),
        Column::new("verdict", Align::Left),
        Column::new("workload", Align::Left),
        Column::number("figure", Place::Always),
        Column::number("speed", Place::Always),
        Column::new("reason", Align::Left),
    ];
    Some(Block::Table(Table::new("Rows that differ", columns, rows)))
}

/// A line for each workload in which a row differs, the furthest first; its reasons beside them.
fn differing_rows(fleet: &FleetRecord, row: &FleetRow) -> Vec<TableRow> {
    let (tone, sign) = state_look(row.state);
    let mut values: Vec<&FleetValue> = row
        .values
        .iter()
        .filter(|value| value.state == row.state)
        .collect();
    values.sort_by(|one, other| speed_or_one(one).total_cmp(&speed_or_one(other)));
    if row.state == RowState::Faster {
        values.reverse();
    }
    values.truncate(VALUES_MAX);
    let mut lines = Vec::new();
    for value in values {
        let Some(metric) = metric_of_value(fleet, row, value) else {
            continue;
        };
        let speed = labels::or_unknown(value.distance.map(|one| speed_text(one.speed)));
        lines.push([metric.subject.clone(), value_text(value, metric), speed]);
    }
    if lines.is_empty() {
        let speed = labels::or_unknown(row.overall.map(|one| speed_text(one.speed)));
        lines.push(match row.state {
            RowState::Errors => [String::new(), String::new(), String::new()],
            _ => ["all together".to_owned(), String::new(), speed],
        });
    }
    let mut reasons: Vec<String> = row.reasons.iter().map(|one| one.text.clone()).collect();
    if let Some(failure) = &row.not_judged {
        reasons.insert(0, failure.why.clone());
    }
    let shown = lines.len();
    let mut rows = Vec::new();
    for (number, [subject, figure, speed]) in lines.into_iter().enumerate() {
        let (name, verdict) = match number {
            0 => (
                row.name.clone(),
                glue(&format!("{sign} {}", row.state.as_str())),
            ),
            _ => (String::new(), String::new()),
        };
        // The likeliest reason beside the first line.
        let reason = match reasons.get(number) {
            Some(reason) => reason.clone(),
            None if number == 0 => "no reason found".to_owned(),
            None => String::new(),
        };
        let is_last = number + 1 == shown;
        let more = reasons.len().saturating_sub(shown);
        let reason = if is_last && more > 0 && number > 0 {
            format!("{reason}; {more} more")
        } else {
            reason
        };
        rows.push(TableRow {
            tone,
            ..TableRow::from(vec![name, verdict, subject, figure, speed, reason])
        });
    }
    rows
}

fn speed_or_one(value: &FleetValue) -> f64 {
    value.distance.map_or(1.0, |distance| distance.speed)
}

/// `× 0.11`.
fn speed_text(speed: f64) -> String {
    glue(&format!("× {speed:.2}"))
}

fn value_text(value: &FleetValue, metric: &FleetMetric) -> String {
    let half_width = if value.error > 0.0 {
        Some(1.96 * value.error * value.value)
    } else {
        None
    };
    figure_text(value.value, half_width, &metric.unit)
}

/// Least, quartiles and greatest of the rows that are alike, a line a workload.
fn five_numbers_table(group: &FleetGroup) -> Option<Block> {
    let mut rows = Vec::new();
    for metric in &group.metrics {
        if metric.scale.is_none() || metric.five_numbers.len() != 5 {
            continue;
        }
        let mut cells = vec![metric.subject.clone()];
        for number in &metric.five_numbers {
            cells.push(figure_text(*number, Some(number * 0.005), &metric.unit));
        }
        let spread = metric.scale.map(|scale| format_percent(scale.spread));
        cells.push(labels::or_unknown(spread));
        rows.push(TableRow::from(cells));
    }
    if rows.is_empty() {
        return None;
    }
    let columns = vec![
        Column::new("alike", Align::Left),
        Column::number("least", Place::Always),
        Column::number("quarter", Place::Roomy(1)),
        Column::number("median", Place::Always),
        Column::number("3 quarters", Place::Roomy(1)),
        Column::number("greatest", Place::Always),
        Column::number("spread", Place::Always),
    ];
    Some(Block::Table(Table::new(&group_text(group), columns, rows)))
}

/// `60 × SAMSUNG MZ7L3, 960 GB`.
fn group_text(group: &FleetGroup) -> String {
    let mut text = format!("{} × {}", group.rows, labels::target_kind(group.kind));
    if !group.model.is_empty() {
        text.push_str(&format!(", {}", group.model));
    }
    if group.disk_bytes > 0 {
        text.push_str(&format!(", {}", format_bytes(group.disk_bytes)));
    }
    text
}

/// Every row: its speed in each workload against the median of the others.
pub(crate) fn speed_tables(fleet: &FleetRecord) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (index, group) in fleet.groups.iter().enumerate() {
        let of_group: Vec<&FleetRow> = fleet
            .rows
            .iter()
            .filter(|row| row.group == Some(index))
            .collect();
        let shown: Vec<usize> = (0..group.metrics.len())
            .filter(|metric| group.metrics[*metric].scale.is_some())
            .collect();
        if of_group.is_empty() {
            continue;
        }
        let mut columns = vec![
            Column::new(fleet.rows_are.noun(), Align::Left),
            Column::new("verdict", Align::Left),
        ];
        for metric in &shown {
            columns.push(Column::number(
                &group.metrics[*metric].subject,
                Place::Always,
            ));
        }
        let mut rows = Vec::new();
        for row in of_group {
            rows.push(speed_row(group, row, &shown));
        }
        blocks.push(Block::Table(Table {
            narrow: Narrow::Split,
            ..Table::new(&group_text(group), columns, rows)
        }));
    }
    blocks
}

fn speed_row(group: &FleetGroup, row: &FleetRow, shown: &[usize]) -> TableRow {
    let (tone, sign) = state_look(row.state);
    let mut cells = vec![
        Cell::from(row.name.clone()),
        Cell::from(glue(&format!("{sign} {}", row.state.as_str()))),
    ];
    for metric in shown {
        let value = row.values.iter().find(|value| value.metric == *metric);
        cells.push(match value {
            Some(value) => speed_cell(value, &group.metrics[*metric]),
            None => Cell::from(labels::UNKNOWN.to_owned()),
        });
    }
    TableRow {
        group: None,
        cells,
        tone,
    }
}

/// The speed, with its shade: half as fast is the darkest, twice as fast the lightest.
fn speed_cell(value: &FleetValue, metric: &FleetMetric) -> Cell {
    let Some(distance) = value.distance else {
        return Cell {
            note: value
                .not_judged
                .as_ref()
                .map_or(String::new(), |one| one.why.clone()),
            mark: Mark::Heat(None),
            ..Cell::from(value_text(value, metric))
        };
    };
    let shade = 0.5 + distance.speed.log2().clamp(-1.0, 1.0) / 2.0;
    Cell {
        tone: match value.state {
            RowState::Alike | RowState::NotJudged => Tone::Plain,
            state => state_look(state).0,
        },
        mark: Mark::Heat(Some(shade)),
        note: value_text(value, metric),
        ..Cell::from(format!("{:.2}", distance.speed))
    }
}

/// Percentiles of the like rows' latencies, merged; syncs first.
pub(crate) fn latencies_table(fleet: &FleetRecord) -> Option<Block> {
    let mut rows = Vec::new();
    for group in &fleet.groups {
        for metric in &group.metrics {
            for latencies in &metric.latencies {
                let mut cells = vec![
                    metric.subject.clone(),
                    latencies.op.as_str().to_owned(),
                    latencies.count.to_string(),
                ];
                for percent in PERCENTILES {
                    let point = latencies
                        .percentiles
                        .iter()
                        .find(|point| point.percent >= percent - 1e-9);
                    cells.push(labels::or_unknown(
                        point.map(|point| format_latency(point.latency_ns)),
                    ));
                }
                rows.push((latencies.op, cells));
            }
        }
    }
    if rows.is_empty() {
        return None;
    }
    rows.sort_by_key(|(op, _)| *op != OpKind::Sync);
    let mut columns = vec![
        Column::new("alike, latency", Align::Left),
        Column::new("", Align::Left),
        Column::number("requests", Place::Roomy(1)),
    ];
    for percent in PERCENTILES {
        columns.push(Column::number(&format!("p{percent}"), Place::Always));
    }
    let table_rows = rows.into_iter().map(|(_, cells)| TableRow::from(cells));
    let table = Table::new(
        "Latencies of the rows that are alike",
        columns,
        table_rows.collect(),
    );
    Some(Block::Table(table))
}

/// The rows in the order of a table with one line for each figure.
pub(crate) fn figures(fleet: &FleetRecord) -> Vec<(&FleetRow, &FleetValue, &FleetMetric)> {
    let mut figures = Vec::new();
    for row in &fleet.rows {
        for value in &row.values {
            if let Some(metric) = metric_of_value(fleet, row, value) {
                figures.push((row, value, metric));
            }
        }
    }
    figures
}

/// The median in the unit of a metric; `None` where it has no scale.
pub(crate) fn median_of(metric: &FleetMetric) -> Option<f64> {
    let scale = metric.scale?;
    Some(match metric.better {
        Direction::Higher => scale.median.exp(),
        Direction::Lower => (-scale.median).exp(),
    })
}
