//! The matrix of a sweep as older tools print it: HD Tune's random access, iops(1), iozone.

use crate::labels;
use diskproof_model::block::{Block, Column, Narrow, Row, Table};
use diskproof_model::digits::rounded;
use diskproof_model::record::{MeasurementRecord, Record};
use diskproof_model::sweep::{
    SweepCell, SweepMatrix, SweepOperation, SweepRecord, SweepView, mixed_name, size_word,
};
use diskproof_model::units::{format_bytes, format_throughput};

/// The table of one of them.
pub(super) fn blocks(record: &Record, sweep: &SweepRecord, view: SweepView) -> [Block; 2] {
    let (title, mut rows) = match view {
        SweepView::RandomAccess => (
            "random access, one request at a time",
            random_access(record, sweep),
        ),
        SweepView::Iops => ("random reads by block size", iops(sweep)),
        SweepView::Iozone => (
            "kB/s (1024 B) by record size, one request at a time",
            iozone(sweep),
        ),
    };
    let names = rows.remove(0);
    let table = Table {
        caption: title.to_owned(),
        columns: Column::numbers(names.iter().map(String::as_str)),
        rows: rows.into_iter().map(Row::from).collect(),
        narrow: Narrow::Split,
        ..Table::default()
    };
    [Block::Heading(title.to_owned()), Block::Table(table)]
}

fn heading(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Milliseconds with three decimals, as HD Tune prints them.
fn milliseconds(ns: Option<f64>) -> String {
    ns.map_or_else(
        || labels::UNKNOWN.to_owned(),
        |ns| format!("{:.3} ms", ns / 1e6),
    )
}

fn random_access(record: &Record, sweep: &SweepRecord) -> Vec<Vec<String>> {
    let mut rows = vec![heading(&[
        "transfer size",
        "operations/s",
        "average",
        "longest",
        "average speed",
    ])];
    let random = [SweepOperation::RandRead, SweepOperation::RandWrite];
    for matrix in sweep
        .matrices
        .iter()
        .filter(|matrix| random.contains(&matrix.operation))
    {
        let words = matrix.operation.words();
        for cell in matrix.cells.iter().filter(|cell| cell.depth == 1) {
            rows.push(access_row(words, cell));
        }
        let name = mixed_name(matrix.operation);
        let mixed = record.measurements.iter().find(|m| m.workload.name == name);
        rows.extend(mixed.and_then(|m| mixed_row(words, m)));
    }
    rows
}

fn access_row(words: &str, cell: &SweepCell) -> Vec<String> {
    let size = format_bytes(u64::from(cell.block_bytes));
    let rate = cell
        .iops
        .as_ref()
        .map(|iops| rounded(iops.value, iops.half_width_95));
    let speed = cell
        .throughput
        .as_ref()
        .map(|rate| format_throughput(rate.value));
    let unknown = || labels::UNKNOWN.to_owned();
    vec![
        format!("{words} {size}"),
        rate.unwrap_or_else(unknown),
        milliseconds(cell.latency_mean_ns),
        milliseconds(cell.latency_max_ns.map(|ns| ns as f64)),
        speed.unwrap_or_else(unknown),
    ]
}

fn mixed_row(words: &str, m: &MeasurementRecord) -> Option<Vec<String>> {
    let (_, op) = m
        .headline_ops()
        .into_iter()
        .next()
        .filter(|(_, op)| op.count > 0)?;
    Some(vec![
        format!("{words} random sizes"),
        rounded(op.iops.value, op.iops.half_width_95),
        milliseconds(Some(op.latency.mean)),
        milliseconds(Some(op.latency.max as f64)),
        format_throughput(op.throughput.value),
    ])
}

fn iops(sweep: &SweepRecord) -> Vec<Vec<String>> {
    let mut rows = vec![heading(&["blocks", "IO/s", "KiB/s", "kbit/s"])];
    let matrix = sweep
        .matrices
        .iter()
        .find(|matrix| matrix.operation == SweepOperation::RandRead);
    for cell in matrix.iter().flat_map(|matrix| &matrix.cells) {
        let size = format_bytes(u64::from(cell.block_bytes));
        let figures = cell.iops.as_ref().zip(cell.throughput.as_ref());
        let Some((iops, rate)) = figures else {
            let why = cell.why.as_deref().unwrap_or(labels::UNKNOWN);
            rows.push(vec![size, why.to_owned(), String::new(), String::new()]);
            continue;
        };
        let scaled = |by: f64| rounded(rate.value / by, rate.half_width_95.map(|half| half / by));
        rows.push(vec![
            size,
            rounded(iops.value, iops.half_width_95),
            scaled(1024.0),
            scaled(125.0),
        ]);
    }
    rows
}

fn iozone(sweep: &SweepRecord) -> Vec<Vec<String>> {
    let mut names = vec!["reclen"];
    names.extend(
        sweep
            .matrices
            .iter()
            .map(|matrix| matrix.operation.as_str()),
    );
    let mut rows = vec![heading(&names)];
    let Some(first) = sweep.matrices.first() else {
        return rows;
    };
    for cell in &first.cells {
        let mut row = vec![size_word(u64::from(cell.block_bytes))];
        for matrix in &sweep.matrices {
            row.push(kilobytes(matrix, cell));
        }
        rows.push(row);
    }
    rows
}

/// iozone's kB have 1024 bytes.
fn kilobytes(matrix: &SweepMatrix, like: &SweepCell) -> String {
    let cell = matrix.cell(like.block_bytes, like.depth);
    let rate = cell.and_then(|cell| cell.throughput.as_ref());
    rate.map_or_else(
        || labels::UNKNOWN.to_owned(),
        |rate| format!("{:.0}", rate.value / 1024.0),
    )
}
