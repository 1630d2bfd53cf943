//! The page of a fleet. A row is a host or a disk. The page says which rows differ from the others,
//! in what and why, which were not judged, and the figures of the rows that are alike.

use super::fleet_acceptance::tested_disks_table;
use super::fleet_commands::{drain_commands, second_look_commands};
use super::fleet_metrics::metric_of_value;
use super::fleet_sum::{self, NAMES_MAX, names_text};
use crate::labels;
use crate::percentiles::latency_at;
use crate::text::glue;
use diskproof_model::block::{
    Align, Block, Cell, Column, Mark, Narrow, Place, Table, TableRow, Tone,
};
use diskproof_model::comparison::{Direction, Reason};
use diskproof_model::digits::figure_text;
use diskproof_model::fleet::{
    FleetGroup, FleetMetric, FleetReason, FleetRecord, FleetRow, FleetValue, RowState,
};
use diskproof_model::op::OpKind;
use diskproof_model::units::{format_bytes, format_percent};
use std::collections::BTreeMap;

/// The short page lists at most this many rows that differ; `--all` lists the others. With many
/// more, the figures of the rest scroll off the screen. Chosen, not measured.
const ROWS_MAX: usize = 20;
/// A row that differs has lines for at most this many workloads, the furthest from the others.
const VALUES_MAX: usize = 3;
/// Percentiles of the latencies of the rows that are alike.
const PERCENTILES: [f64; 4] = [50.0, 99.0, 99.9, 99.99];

/// How much of a fleet a page shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FleetDetail {
    /// The rows that differ, and five numbers of the rest.
    Differing,
    /// Every row, and the latencies.
    All,
}

/// Describes a fleet: the sum of hosts that measured together, the answer, and with
/// [`FleetDetail::All`] every row.
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

/// Describes what follows the sentence: what is not judged, which rows differ, the figures of the
/// rest, and commands that follow from them.
pub(crate) fn answer_blocks(fleet: &FleetRecord, detail: FleetDetail) -> Vec<Block> {
    let mut blocks = trouble_facts(fleet);
    blocks.extend(not_judged_facts(fleet));
    blocks.extend(tested_disks_table(&fleet.tested));
    blocks.extend(differing_table(fleet, detail));
    for group in &fleet.groups {
        blocks.extend(five_numbers_table(group));
    }
    blocks.extend(second_look_commands(fleet));
    blocks.extend(drain_commands(fleet));
    blocks
}

/// A line for each failure and warning of disks about themselves, with the rows that have it. The
/// failure that is the answer for a row stands in the table.
fn trouble_facts(fleet: &FleetRecord) -> Vec<Block> {
    let mut troubles: Vec<NamedTrouble<'_>> = Vec::new();
    for row in &fleet.rows {
        for finding in &row.findings {
            if is_answer_for(row, &finding.code) {
                continue;
            }
            let known = troubles
                .iter_mut()
                .find(|trouble| trouble.finding.code == finding.code);
            match known {
                Some(trouble) => trouble.names.push(&row.name),
                None => troubles.push(NamedTrouble {
                    finding,
                    names: vec![&row.name],
                }),
            }
        }
    }
    let mut blocks = Vec::new();
    for NamedTrouble { finding, names } in troubles {
        let text = format!("{}: {}", names_text(&names), finding.text);
        blocks.push(Block::toned_fact(Tone::Warning, "finding", text));
    }
    blocks
}

/// A finding about disks themselves, and the names of their rows.
struct NamedTrouble<'f> {
    finding: &'f FleetReason,
    names: Vec<&'f str>,
}

/// True if the finding of this code is why a row counts as failed.
fn is_answer_for(row: &FleetRow, code: &str) -> bool {
    match (row.state, &row.not_judged) {
        (RowState::Errors, Some(failure)) => failure.code == code,
        _ => false,
    }
}

/// Says what the answer does not cover: rows and single figures that were not judged, rows whose
/// name or presence is in doubt, missed thresholds, and refused records.
fn not_judged_facts(fleet: &FleetRecord) -> Vec<Block> {
    let mut blocks = unjudged_row_facts(fleet);
    blocks.extend(unjudged_figure_facts(fleet));
    blocks.extend(identity_facts(fleet));
    blocks.extend(missing_row_facts(fleet));
    if fleet.surplus > 0 {
        let mut text = format!(
            "{} more than --expect says: a record of an earlier run, or of a machine that came \
             under two names",
            fleet.surplus
        );
        if !fleet.unexpected.is_empty() {
            let names: Vec<&str> = fleet.unexpected.iter().map(String::as_str).collect();
            text = format!("{}: {text}", names_text(&names));
        }
        blocks.push(Block::toned_fact(Tone::Warning, "not expected", text));
    }
    blocks.extend(unmet_threshold_facts(fleet));
    blocks.extend(refused_record_facts(fleet));
    blocks
}

/// A line for each reason why rows were not judged. Reasons of one code share a line, although
/// their figures differ from row to row.
fn unjudged_row_facts(fleet: &FleetRecord) -> Vec<Block> {
    let mut rows: BTreeMap<&str, NamedReason<'_>> = BTreeMap::new();
    for row in &fleet.rows {
        if let (RowState::NotJudged, Some(reason)) = (row.state, &row.not_judged) {
            let entry = rows
                .entry(&reason.code)
                .or_insert_with(|| NamedReason::new(reason));
            entry.names.push(&row.name);
        }
    }
    let mut blocks = Vec::new();
    for NamedReason { why, names } in rows.into_values() {
        let text = format!("{}: {why}", names_text(&names));
        blocks.push(Block::toned_fact(Tone::Warning, "not judged", text));
    }
    blocks
}

/// A line for each reason why rows are missing, or may be.
fn missing_row_facts(fleet: &FleetRecord) -> Vec<Block> {
    let mut missing: BTreeMap<(bool, &str), Vec<&str>> = BTreeMap::new();
    for row in &fleet.missing {
        let key = (row.undecided, row.why.as_str());
        missing.entry(key).or_default().push(&row.name);
    }
    let mut blocks = Vec::new();
    for ((is_undecided, why), names) in missing {
        let (tone, label) = if is_undecided {
            (Tone::Warning, "perhaps missing")
        } else {
            (Tone::Error, "missing")
        };
        let text = format!("{}: {why}", names_text(&names));
        blocks.push(Block::toned_fact(tone, label, text));
    }
    blocks
}

/// A line for each threshold that runs missed, or that their figures leave undecided.
fn unmet_threshold_facts(fleet: &FleetRecord) -> Vec<Block> {
    let mut unmet: BTreeMap<(bool, &str), Vec<&str>> = BTreeMap::new();
    for threshold in &fleet.unmet {
        let key = (threshold.undecided, threshold.expression.as_str());
        unmet.entry(key).or_default().push(&threshold.name);
    }
    let mut blocks = Vec::new();
    for ((is_undecided, expression), names) in unmet {
        let (tone, label) = if is_undecided {
            (Tone::Warning, "undecided")
        } else {
            (Tone::Error, "missed")
        };
        let text = format!("{}: {expression}", names_text(&names));
        blocks.push(Block::toned_fact(tone, label, text));
    }
    blocks
}

/// The first [`NAMES_MAX`] records that were refused, each with its reason, and the number of the
/// others.
fn refused_record_facts(fleet: &FleetRecord) -> Vec<Block> {
    let mut blocks = Vec::new();
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

/// A reason why rows were not judged.
struct NamedReason<'f> {
    /// The reason of the first of the rows, with its figures.
    why: &'f str,
    /// The names of the rows.
    names: Vec<&'f str>,
}

impl<'f> NamedReason<'f> {
    fn new(reason: &'f Reason) -> Self {
        Self {
            why: &reason.why,
            names: Vec::new(),
        }
    }
}

/// Says which single figures could not be judged, of rows that were judged.
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
                    .or_insert_with(|| NamedReason::new(reason));
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

/// Says how rows with the same host name were distinguished, and which rows may mix the runs of
/// several machines.
fn identity_facts(fleet: &FleetRecord) -> Vec<Block> {
    let mut rows: BTreeMap<&str, NamedReason<'_>> = BTreeMap::new();
    for row in &fleet.rows {
        if let Some(reason) = &row.identity {
            let entry = rows
                .entry(&reason.code)
                .or_insert_with(|| NamedReason::new(reason));
            entry.names.push(&row.name);
        }
    }
    let mut blocks = Vec::new();
    for NamedReason { why, names } in rows.into_values() {
        let text = format!("{}: {why}", names_text(&names));
        blocks.push(Block::toned_fact(Tone::Note, "same name", text));
    }
    blocks
}

/// True if a row is in the table of those that differ.
fn differs(row: &FleetRow) -> bool {
    match row.state {
        RowState::Slower | RowState::Faster | RowState::Suspect | RowState::Errors => true,
        RowState::Alike | RowState::NotJudged => false,
    }
}

/// The colour of a row's state, and a sign for readers who do not see the colour.
fn state_look(state: RowState) -> (Tone, &'static str) {
    match state {
        RowState::Slower | RowState::Errors => (Tone::Error, "▼"),
        RowState::Faster => (Tone::Warning, "▲"),
        RowState::Suspect => (Tone::Note, "?"),
        RowState::Alike => (Tone::Plain, "="),
        RowState::NotJudged => (Tone::Dim, "–"),
    }
}

/// The number of columns in the table of the rows that differ.
const DIFFERING_COLUMNS: usize = 6;

/// A table of the rows that differ: in what, by how much, and why. `None` where none does.
fn differing_table(fleet: &FleetRecord, detail: FleetDetail) -> Option<Block> {
    let all: Vec<&FleetRow> = fleet.rows.iter().filter(|row| differs(row)).collect();
    if all.is_empty() {
        return None;
    }
    let rows_max = match detail {
        FleetDetail::Differing => ROWS_MAX,
        FleetDetail::All => usize::MAX,
    };
    let mut rows = Vec::new();
    for row in all.iter().take(rows_max) {
        rows.extend(differing_rows(fleet, row));
    }
    if all.len() > rows_max {
        let more = format!("{} more: --all", all.len() - rows_max);
        let mut cells = vec![String::new(); DIFFERING_COLUMNS];
        cells[0] = more;
        rows.push(TableRow::from(cells));
    }
    let columns: [Column; DIFFERING_COLUMNS] = [
        Column::new(fleet.rows_are.noun(), Align::Left),
        Column::new("verdict", Align::Left),
        Column::new("workload", Align::Left),
        Column::number("figure", Place::Always),
        Column::number("speed", Place::Always),
        Column::new("reason", Align::Left),
    ];
    let table = Table::new("Rows that differ", columns.into(), rows);
    Some(Block::Table(table))
}

/// A workload in which a row differs, and how far.
struct Difference {
    subject: String,
    figure: String,
    speed: String,
}

/// The differences of a row, the furthest from the others first. Never empty: without a single
/// workload that differs there is one for all of them together.
fn differences(fleet: &FleetRecord, row: &FleetRow) -> Vec<Difference> {
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
    let mut differences = Vec::new();
    for value in values {
        let Some(metric) = metric_of_value(fleet, row, value) else {
            continue;
        };
        differences.push(Difference {
            subject: metric.subject.clone(),
            figure: value_text(value, metric),
            speed: labels::or_unknown(value.distance.map(|distance| speed_text(distance.speed))),
        });
    }
    if differences.is_empty() {
        differences.push(whole_difference(row));
    }
    differences
}

/// The difference of a row over all workloads together. Empty texts for a row with errors, which
/// has no figures.
fn whole_difference(row: &FleetRow) -> Difference {
    let (subject, speed) = if row.state == RowState::Errors {
        (String::new(), String::new())
    } else {
        let speed = row.overall.map(|distance| speed_text(distance.speed));
        ("all together".to_owned(), labels::or_unknown(speed))
    };
    Difference {
        subject,
        figure: String::new(),
        speed,
    }
}

/// The lines of a row that differs: one for each difference, and next to them the reasons, the
/// likeliest first.
fn differing_rows(fleet: &FleetRecord, row: &FleetRow) -> Vec<TableRow> {
    let (tone, sign) = state_look(row.state);
    let differences = differences(fleet, row);
    let reasons = reason_cells(row, differences.len());
    let mut rows = Vec::new();
    for (difference, reason) in differences.into_iter().zip(reasons) {
        // The name and the verdict stand in the first line only.
        let (name, verdict) = if rows.is_empty() {
            let verdict = glue(&format!("{sign} {}", row.state.as_str()));
            (row.name.clone(), verdict)
        } else {
            (String::new(), String::new())
        };
        rows.push(TableRow {
            tone,
            ..TableRow::from(vec![
                name,
                verdict,
                difference.subject,
                difference.figure,
                difference.speed,
                reason,
            ])
        });
    }
    rows
}

/// The reasons of a row, one for each of its `lines`. The last of several lines counts the reasons
/// that have no line.
fn reason_cells(row: &FleetRow, lines: usize) -> Vec<String> {
    let mut reasons = Vec::new();
    reasons.extend(row.not_judged.as_ref().map(|failure| failure.why.clone()));
    reasons.extend(row.reasons.iter().map(|reason| reason.text.clone()));
    if reasons.is_empty() {
        reasons.push("no reason found".to_owned());
    }
    let hidden = reasons.len().saturating_sub(lines);
    reasons.resize(lines, String::new());
    if hidden > 0
        && lines > 1
        && let Some(last) = reasons.last_mut()
    {
        last.push_str(&format!("; {hidden} more"));
    }
    reasons
}

/// The speed by which the workloads of a row are sorted: 1 where it is unknown, as if alike.
fn speed_or_one(value: &FleetValue) -> f64 {
    value.distance.map_or(1.0, |distance| distance.speed)
}

/// `× 0.11`: times as fast as the median of the others.
fn speed_text(speed: f64) -> String {
    glue(&format!("× {speed:.2}"))
}

/// A 95 % interval reaches this many standard errors to each side (quantile of the normal
/// distribution at 97.5 %).
const STANDARD_ERRORS_95: f64 = 1.96;

fn value_text(value: &FleetValue, metric: &FleetMetric) -> String {
    let half_width = if value.error > 0.0 {
        Some(STANDARD_ERRORS_95 * value.error * value.value)
    } else {
        None
    };
    figure_text(value.value, half_width, &metric.unit)
}

/// The five numbers have no interval of their own. This relative half-width makes three digits
/// print.
const FIVE_NUMBERS_WIDTH: f64 = 0.005;

/// A table of least, quartiles and greatest of the rows that are alike, with a line for each
/// workload. `None` where none has them.
fn five_numbers_table(group: &FleetGroup) -> Option<Block> {
    let mut rows = Vec::new();
    for metric in &group.metrics {
        if metric.scale.is_none() || metric.five_numbers.len() != 5 {
            continue;
        }
        let mut cells = vec![metric.subject.clone()];
        for number in &metric.five_numbers {
            cells.push(figure_text(
                *number,
                Some(number * FIVE_NUMBERS_WIDTH),
                &metric.unit,
            ));
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

/// A table for each group with the speed of every row in each workload, against the median of the
/// others.
pub(crate) fn speed_tables(fleet: &FleetRecord) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (index, group) in fleet.groups.iter().enumerate() {
        let group_rows: Vec<&FleetRow> = fleet
            .rows
            .iter()
            .filter(|row| row.group == Some(index))
            .collect();
        // Without a scale a metric has no speeds: too few rows have measured it.
        let shown: Vec<usize> = (0..group.metrics.len())
            .filter(|metric| group.metrics[*metric].scale.is_some())
            .collect();
        if group_rows.is_empty() {
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
        for row in group_rows {
            rows.push(speed_row(group, row, &shown));
        }
        blocks.push(Block::Table(Table {
            narrow: Narrow::Split,
            ..Table::new(&group_text(group), columns, rows)
        }));
    }
    blocks
}

/// The speeds of one row; `shown` holds the indices of the metrics that have a column.
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

/// A table of percentiles of the merged latencies of the rows that are alike; syncs first. `None`
/// without any.
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
                    let latency_ns = latency_at(&latencies.percentiles, percent);
                    cells.push(labels::latency(latency_ns));
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

/// A figure of a row, with its metric.
pub(crate) struct FleetFigure<'f> {
    pub(crate) row: &'f FleetRow,
    pub(crate) value: &'f FleetValue,
    pub(crate) metric: &'f FleetMetric,
}

/// All figures of a fleet, in the order of its rows.
pub(crate) fn figures(fleet: &FleetRecord) -> Vec<FleetFigure<'_>> {
    let mut figures = Vec::new();
    for row in &fleet.rows {
        for value in &row.values {
            if let Some(metric) = metric_of_value(fleet, row, value) {
                figures.push(FleetFigure { row, value, metric });
            }
        }
    }
    figures
}

/// The median of the rows that are alike, in the unit of the metric; `None` where there were too
/// few to compare. The scale holds logarithms, negative where lower values are better.
pub(crate) fn median_of(metric: &FleetMetric) -> Option<f64> {
    let scale = metric.scale?;
    Some(match metric.better {
        Direction::Higher => scale.median.exp(),
        Direction::Lower => (-scale.median).exp(),
    })
}
