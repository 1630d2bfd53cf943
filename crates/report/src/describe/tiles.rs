//! The figures that readers look for first, for tiles at the top of a page: the whole result in one
//! screenshot.

use crate::labels;
use diskproof_model::block::{Column, Group, Row, Table};
use diskproof_model::measurement::OpKind;
use diskproof_model::record::{Estimate, MeasurementRecord, OpRecord, Record};
use diskproof_model::surface::{SeekPattern, SurfaceRecord};
use diskproof_model::units::{format_latency, format_percent, format_throughput};

/// More workloads have no room.
const WORKLOADS_MAX: usize = 12;

/// Columns of the tables.
const COLUMNS: [&str; 3] = ["operation", "figure", "interval"];

/// A table of workloads and one of the survey: each group of rows is a tile, and a row has the
/// operation, its figure, and how well it is known.
pub(crate) fn blocks(record: &Record) -> Vec<Table> {
    let all = &record.measurements;
    let rows = all.iter().enumerate();
    let workloads: Vec<Row> = match all.len() {
        2..=WORKLOADS_MAX => rows.flat_map(|(index, m)| workload(index, m)).collect(),
        _ => Vec::new(),
    };
    let surveyed: Vec<Row> = record.surface.iter().flat_map(survey).collect();
    let tables = [workloads, surveyed].into_iter();
    let filled = tables.filter(|rows| !rows.is_empty());
    filled
        .map(|rows| Table::new("", Column::words(COLUMNS), rows))
        .collect()
}

fn workload(index: usize, m: &MeasurementRecord) -> Vec<Row> {
    let ops = m.headline_ops();
    let row = |(kind, op): &(OpKind, &OpRecord)| {
        let name = if ops.len() > 1 { kind.as_str() } else { "" };
        let rate = m.rate(op);
        let p99 = op
            .latency
            .p99
            .map(|ns| format!(" · p99 {}", format_latency(ns)));
        let interval = labels::interval(rate) + &p99.unwrap_or_default();
        Row::from(vec![name.to_owned(), rate.value_text(), interval])
    };
    let mut rows: Vec<Row> = ops.iter().map(row).collect();
    if rows.is_empty() {
        let missing = ["", "", "not measured"].map(str::to_owned);
        rows.push(Row::from(missing.to_vec()));
    }
    rows[0].group = Some(Group {
        title: m.workload.name.clone(),
        anchor: Some(format!("figure-{index}")),
        ..Group::default()
    });
    rows
}

fn survey(surface: &SurfaceRecord) -> Vec<Row> {
    let tile = |name: &str, value: String, interval: Option<String>| Row {
        group: Some(Group {
            title: name.to_owned(),
            ..Group::default()
        }),
        ..Row::from(vec![String::new(), value, interval.unwrap_or_default()])
    };
    let known =
        |name: &str, figure: &Estimate| tile(name, figure.value_text(), figure.width_text());
    let mut tiles = Vec::new();
    if let Some(rate) = &surface.rate {
        tiles.extend([
            tile("Slowest position", format_throughput(rate.min), None),
            known("Average rate", &rate.average),
            tile("Fastest position", format_throughput(rate.max), None),
        ]);
    }
    let seek = surface.seeks.get(&SeekPattern::Random);
    tiles.extend(seek.map(|seek| known("Access time", &seek.mean)));
    let burst = surface.burst.as_ref();
    tiles.extend(burst.map(|burst| known("Burst rate", &burst.throughput)));
    if surface.rate.is_some() {
        let cpu = format_percent(surface.curve_cpu_share);
        tiles.push(tile("CPU use", cpu, None));
    }
    tiles
}
