//! The matrix of a sweep as older tools print it: HD Tune's random access, iops(1), iozone.

use crate::labels;
use diskproof_model::block::{Block, Column, Narrow, Table, TableRow};
use diskproof_model::digits::rounded;
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::sweep::{
    SweepCell, SweepMatrix, SweepOperation, SweepRecord, SweepView, mixed_name, size_word,
};
use diskproof_model::units::{format_bytes, format_throughput};

/// Columns of HD Tune's random access.
const RANDOM_ACCESS: &str = "transfer size | operations/s | average | longest | average speed";

/// The table of one of them.
pub(super) fn blocks(record: &Record, sweep: &SweepRecord, view: SweepView) -> [Block; 2] {
    let (title, names, rows) = match view {
        SweepView::RandomAccess => (
            "random access, one request at a time",
            RANDOM_ACCESS.split(" | ").collect(),
            random_access(record, sweep),
        ),
        SweepView::Iops => (
            "random reads by block size",
            vec!["blocks", "IO/s", "KiB/s", "kbit/s"],
            iops(sweep),
        ),
        SweepView::Iozone => {
            let operations = sweep.matrices.iter();
            let operations = operations.map(|matrix| matrix.operation.as_str());
            (
                "kB/s (1024 B) by record size, one request at a time",
                ["reclen"].into_iter().chain(operations).collect(),
                iozone(sweep),
            )
        }
    };
    let rows = rows.into_iter().map(TableRow::from).collect();
    let table = Table {
        narrow: Narrow::Split,
        ..Table::new(title, Column::numbers(names), rows)
    };
    [Block::Heading(title.to_owned()), Block::Table(table)]
}

/// Milliseconds with three decimals, as HD Tune prints them.
fn milliseconds(ns: Option<f64>) -> String {
    labels::or_unknown(ns.map(|ns| format!("{:.3} ms", ns / 1e6)))
}

fn random_access(record: &Record, sweep: &SweepRecord) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let random = [SweepOperation::RandRead, SweepOperation::RandWrite];
    let matrices = sweep.matrices.iter();
    for matrix in matrices.filter(|matrix| random.contains(&matrix.operation)) {
        let words = matrix.operation.words();
        let cells = matrix.cells.iter().filter(|cell| cell.depth == 1);
        rows.extend(cells.map(|cell| access_row(words, cell)));
        let name = mixed_name(matrix.operation);
        let mixed = record
            .measurements
            .iter()
            .find(|m| m.data.workload.name == name);
        rows.extend(mixed.and_then(|m| mixed_row(words, m)));
    }
    rows
}

fn access_row(words: &str, cell: &SweepCell) -> Vec<String> {
    let size = format_bytes(u64::from(cell.block_bytes));
    let iops = cell.iops.as_ref();
    let speed = cell.throughput.as_ref();
    vec![
        format!("{words} {size}"),
        labels::or_unknown(iops.map(|iops| rounded(iops.value, iops.half_width_95))),
        milliseconds(cell.latency_mean_ns),
        milliseconds(cell.latency_max_ns.map(|ns| ns as f64)),
        labels::or_unknown(speed.map(|rate| format_throughput(rate.value))),
    ]
}

fn mixed_row(words: &str, m: &Row) -> Option<Vec<String>> {
    let first = m.headline_ops().into_iter().next();
    let (_, op) = first.filter(|(_, op)| op.data.count > 0)?;
    Some(vec![
        format!("{words} random sizes"),
        rounded(op.figures.iops.value, op.figures.iops.half_width_95),
        milliseconds(Some(op.figures.latency.mean)),
        milliseconds(Some(op.figures.latency.max as f64)),
        format_throughput(op.figures.throughput.value),
    ])
}

fn iops(sweep: &SweepRecord) -> Vec<Vec<String>> {
    let is_read = |matrix: &&SweepMatrix| matrix.operation == SweepOperation::RandRead;
    let matrix = sweep.matrices.iter().find(is_read).into_iter();
    let cells = matrix.flat_map(|matrix| &matrix.cells);
    let row = |cell: &SweepCell| {
        let size = format_bytes(u64::from(cell.block_bytes));
        let figures = cell.iops.as_ref().zip(cell.throughput.as_ref());
        let Some((iops, rate)) = figures else {
            let why = cell.why.as_deref().unwrap_or(labels::UNKNOWN);
            return vec![size, why.to_owned(), String::new(), String::new()];
        };
        let scaled = |by: f64| rounded(rate.value / by, rate.half_width_95.map(|half| half / by));
        let iops = rounded(iops.value, iops.half_width_95);
        vec![size, iops, scaled(1024.0), scaled(125.0)]
    };
    cells.map(row).collect()
}

fn iozone(sweep: &SweepRecord) -> Vec<Vec<String>> {
    let first = sweep.matrices.first().into_iter();
    let row = |cell: &SweepCell| {
        let size = size_word(u64::from(cell.block_bytes));
        let rates = sweep.matrices.iter().map(|matrix| kilobytes(matrix, cell));
        [size].into_iter().chain(rates).collect()
    };
    first.flat_map(|matrix| &matrix.cells).map(row).collect()
}

/// iozone's kB have 1024 bytes.
fn kilobytes(matrix: &SweepMatrix, like: &SweepCell) -> String {
    let cell = matrix.cell(like.block_bytes, like.depth);
    let rate = cell.and_then(|cell| cell.throughput.as_ref());
    labels::or_unknown(rate.map(|rate| format!("{:.0}", rate.value / 1024.0)))
}
