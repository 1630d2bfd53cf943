//! The page of many hosts: who is not like the others, in what, and why; then what was not judged;
//! then the figures of the rest.

use super::fleet_sum::{self, NAMES_MAX, names_text};
use crate::labels;
use crate::text::glue;
use diskproof_model::accept::AcceptVerdict;
use diskproof_model::block::{
    Align, Block, Cell, Column, Mark, Narrow, Place, Table, TableRow, Tone,
};
use diskproof_model::comparison::{Direction, Reason};
use diskproof_model::digits::figure_text;
use diskproof_model::fleet::{
    FleetBasis, FleetGroup, FleetMetric, FleetRecord, FleetRow, FleetValue, RowState, TestedDisk,
};
use diskproof_model::op::OpKind;
use diskproof_model::shell::quoted;
use diskproof_model::units::{format_bytes, format_latency, format_percent, format_throughput};
use std::collections::BTreeMap;

/// Differing rows on the short page.
const ROWS_MAX: usize = 20;
/// Workloads of a differing row on the short page.
const VALUES_MAX: usize = 3;
/// Others that are measured again together with the suspects.
const CONTROLS: usize = 10;
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
        blocks.extend(all_rows(fleet));
        blocks.extend(latencies(fleet));
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
    let mut blocks = not_judged(fleet);
    blocks.extend(tested_disks(&fleet.tested));
    blocks.extend(differing(fleet, detail));
    for group in &fleet.groups {
        blocks.extend(five_numbers(group));
    }
    blocks.extend(second_look(fleet));
    blocks.extend(drained(fleet));
    blocks
}

/// Every disk that was tested, with its verdict. All are shown: a site looks for the one that it
/// holds in its hand.
fn tested_disks(disks: &[TestedDisk]) -> Option<Block> {
    if disks.is_empty() {
        return None;
    }
    let mut rows = Vec::new();
    for disk in disks {
        let (tone, verdict) = verdict_look(disk.verdict);
        let size = match disk.real_bytes {
            Some(real_bytes) => format!(
                "{} of {}",
                glue(&format_bytes(real_bytes)),
                glue(&format_bytes(disk.claimed_bytes))
            ),
            None => glue(&format_bytes(disk.claimed_bytes)),
        };
        rows.push(TableRow {
            tone,
            ..TableRow::from(vec![
                disk.name.clone(),
                disk.serials.join(" + "),
                glue(verdict),
                size,
                rate_text(disk.write_rate),
                rate_text(disk.read_rate),
                remark_text(disk),
            ])
        });
    }
    let columns = vec![
        Column::new("disk", Align::Left),
        Column {
            place: Place::Roomy(1),
            ..Column::new("serial number", Align::Left)
        },
        Column::new("verdict", Align::Left),
        Column::number("size", Place::Always),
        Column::number("writes", Place::Always),
        Column::number("reads", Place::Always),
        Column::new("remark", Align::Left),
    ];
    Some(Block::Table(Table::new("Acceptance tests", columns, rows)))
}

fn verdict_look(verdict: AcceptVerdict) -> (Tone, &'static str) {
    match verdict {
        AcceptVerdict::Accept => (Tone::Plain, "✓ accepted"),
        AcceptVerdict::NoFraudFound => (Tone::Plain, "= no fraud found"),
        AcceptVerdict::Undecided => (Tone::Warning, "? undecided"),
        AcceptVerdict::Reject => (Tone::Error, "✗ rejected"),
    }
}

fn rate_text(rate: Option<f64>) -> String {
    labels::or_unknown(rate.map(format_throughput))
}

/// Why a disk is not simply accepted, and how much slower it is than its model.
fn remark_text(disk: &TestedDisk) -> String {
    let mut parts = Vec::new();
    if let Some(speed) = disk.slower {
        let share = format_percent(1.0 - speed);
        parts.push(format!("{share} slower than the others of its model"));
    }
    match disk.verdict {
        AcceptVerdict::Accept | AcceptVerdict::NoFraudFound => {}
        AcceptVerdict::Undecided | AcceptVerdict::Reject => {
            let (_, why) = disk.answer.split_once(": ").unwrap_or(("", &disk.answer));
            parts.push(why.trim_end_matches('.').to_owned());
        }
    }
    parts.join("; ")
}

/// One line for each reason, with the rows that it concerns; then what is missing and refused.
fn not_judged(fleet: &FleetRecord) -> Vec<Block> {
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
    blocks.extend(figures_not_judged(fleet));
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
fn figures_not_judged(fleet: &FleetRecord) -> Vec<Block> {
    let mut figures: BTreeMap<(&str, &str), NamedReason<'_>> = BTreeMap::new();
    for row in &fleet.rows {
        if row.state == RowState::NotJudged {
            continue;
        }
        for value in &row.values {
            if let (RowState::NotJudged, Some(reason)) = (value.state, &value.not_judged)
                && let Some(metric) = metric_of(fleet, row, value)
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

fn metric_of<'f>(
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

fn look(state: RowState) -> (Tone, &'static str) {
    match state {
        RowState::Slower | RowState::Errors => (Tone::Error, "▼"),
        RowState::Faster => (Tone::Warning, "▲"),
        RowState::Suspect => (Tone::Note, "?"),
        RowState::Alike => (Tone::Plain, "="),
        RowState::NotJudged => (Tone::Dim, "–"),
    }
}

/// The rows that differ: in what, by how much, and why.
fn differing(fleet: &FleetRecord, detail: FleetDetail) -> Option<Block> {
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
    let (tone, sign) = look(row.state);
    let mut values: Vec<&FleetValue> = row
        .values
        .iter()
        .filter(|value| value.state == row.state)
        .collect();
    values.sort_by(|one, other| speed_of(one).total_cmp(&speed_of(other)));
    if row.state == RowState::Faster {
        values.reverse();
    }
    values.truncate(VALUES_MAX);
    let mut lines = Vec::new();
    for value in values {
        let Some(metric) = metric_of(fleet, row, value) else {
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

fn speed_of(value: &FleetValue) -> f64 {
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
fn five_numbers(group: &FleetGroup) -> Option<Block> {
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
pub(crate) fn all_rows(fleet: &FleetRecord) -> Vec<Block> {
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
            rows.push(whole_row(group, row, &shown));
        }
        blocks.push(Block::Table(Table {
            narrow: Narrow::Split,
            ..Table::new(&group_text(group), columns, rows)
        }));
    }
    blocks
}

fn whole_row(group: &FleetGroup, row: &FleetRow, shown: &[usize]) -> TableRow {
    let (tone, sign) = look(row.state);
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
            state => look(state).0,
        },
        mark: Mark::Heat(Some(shade)),
        note: value_text(value, metric),
        ..Cell::from(format!("{:.2}", distance.speed))
    }
}

/// Percentiles of the like rows' latencies, merged; syncs first.
pub(crate) fn latencies(fleet: &FleetRecord) -> Option<Block> {
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

/// The command that measures the suspects again, together with others that are alike.
fn second_look(fleet: &FleetRecord) -> Option<Block> {
    let suspects: Vec<&FleetRow> = fleet
        .rows
        .iter()
        .filter(|row| row.state == RowState::Suspect)
        .collect();
    let group = suspects.first()?.group?;
    let mut others: Vec<&FleetRow> = fleet
        .rows
        .iter()
        .filter(|row| row.state == RowState::Alike && row.group == Some(group))
        .collect();
    // Ids of runs are random, so that their order is.
    others.sort_by_key(|row| row.runs.first().map(|run| run.run_id.as_str()));
    let mut hosts: Vec<&str> = Vec::new();
    for row in suspects.iter().chain(others.iter().take(CONTROLS)) {
        if !hosts.contains(&row.host.as_str()) {
            hosts.push(&row.host);
        }
    }
    let command = measuring_command(fleet, group)?;
    Some(Block::Command {
        what: "measure the suspects again, with others for comparison (FLEET.json: saved with \
               -o)"
        .to_owned(),
        text: format!(
            "for i in 1 2 3; do pdsh -f {} -w {} {}; done | diskproof merge --reference \
             FLEET.json -",
            hosts.len(),
            quoted(&hosts.join(",")),
            quoted(&command)
        ),
    })
}

/// What measured a row of this group, with its record in pieces.
fn measuring_command(fleet: &FleetRecord, group: usize) -> Option<String> {
    let metrics = fleet.groups.get(group)?.metrics.iter();
    let example = metrics.flat_map(|metric| metric.example).next()?;
    let argv = fleet.examples.get(example)?.plan.origin.argv();
    let mut words = vec!["diskproof".to_owned()];
    let mut skips_next = false;
    for word in argv.iter().skip(1) {
        if std::mem::take(&mut skips_next) {
            continue;
        }
        match word.as_str() {
            "-o" | "--output" | "--html" => skips_next = true,
            "--json" | "--pieces" => {}
            word => words.push(quoted(word)),
        }
    }
    words.push("--pieces".to_owned());
    Some(words.join(" "))
}

/// The line that takes a slow node out of Slurm; it is printed, not run.
fn drained(fleet: &FleetRecord) -> Vec<Block> {
    if fleet.basis == FleetBasis::EachOther {
        return Vec::new();
    }
    let mut blocks = Vec::new();
    for row in &fleet.rows {
        if !matches!(row.state, RowState::Slower | RowState::Errors) {
            continue;
        }
        let why = match (row.reasons.first(), &row.not_judged) {
            (_, Some(reason)) => reason.why.clone(),
            (Some(reason), None) => reason.text.clone(),
            (None, None) => row.state.as_str().to_owned(),
        };
        let reason = format!("Reason=diskproof: disk {}: {why}", row.state.as_str());
        blocks.push(Block::Command {
            what: format!("take {} out of Slurm", row.host),
            text: format!(
                "scontrol update {} State=DRAIN {}",
                quoted(&format!("NodeName={}", row.host)),
                quoted(&reason)
            ),
        });
    }
    blocks
}

/// The rows in the order of a table with one line for each figure.
pub(crate) fn figures(fleet: &FleetRecord) -> Vec<(&FleetRow, &FleetValue, &FleetMetric)> {
    let mut figures = Vec::new();
    for row in &fleet.rows {
        for value in &row.values {
            if let Some(metric) = metric_of(fleet, row, value) {
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
