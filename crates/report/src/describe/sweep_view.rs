//! The matrices of a sweep as older tools print them: HD Tune's random access, iops(1), iozone.

use crate::labels;
use diskproof_model::block::{Block, Column, Narrow, Table, TableRow};
use diskproof_model::digits::rounded;
use diskproof_model::record::{Estimate, Record};
use diskproof_model::row::Row;
use diskproof_model::sweep::{
    SweepCell, SweepMatrix, SweepOperation, SweepRecord, SweepView, mixed_name, size_word,
};
use diskproof_model::units::{format_bytes, format_throughput};

/// Bytes of a KiB, and of the kB of iozone.
const KIB: f64 = 1024.0;
/// Bytes of a kbit of 1000 bits.
const KBIT_BYTES: f64 = 125.0;
/// Columns of HD Tune's random access.
const RANDOM_ACCESS: &str = "transfer size | operations/s | average | longest | average speed";

/// Lays the matrices out like the older tool that the view names.
pub(super) fn blocks(record: &Record, sweep: &SweepRecord, view: SweepView) -> [Block; 2] {
    match view {
        SweepView::RandomAccess => titled_table(
            "random access, one request at a time",
            Column::numbers(RANDOM_ACCESS.split(" | ")),
            random_access_rows(record, sweep),
        ),
        SweepView::Iops => titled_table(
            "random reads by block size",
            Column::numbers(["blocks", "IO/s", "KiB/s", "kbit/s"]),
            iops_rows(sweep),
        ),
        SweepView::Iozone => {
            let mut names = vec!["reclen"];
            for matrix in &sweep.matrices {
                names.push(matrix.operation.as_str());
            }
            titled_table(
                "kB/s (1024 B) by record size, one request at a time",
                Column::numbers(names),
                iozone_rows(sweep),
            )
        }
    }
}

fn titled_table(title: &str, columns: Vec<Column>, rows: Vec<TableRow>) -> [Block; 2] {
    let table = Table {
        narrow: Narrow::Split,
        ..Table::new(title, columns, rows)
    };
    [Block::Heading(title.to_owned()), Block::Table(table)]
}

/// Milliseconds with three decimals, as HD Tune prints them.
fn milliseconds_text(ns: f64) -> String {
    format!("{:.3} ms", ns / 1e6)
}

/// A row for each block size at a depth of one, and one for the random sizes, of each random
/// matrix.
fn random_access_rows(record: &Record, sweep: &SweepRecord) -> Vec<TableRow> {
    let mut rows = Vec::new();
    for matrix in &sweep.matrices {
        if !matches!(
            matrix.operation,
            SweepOperation::RandRead | SweepOperation::RandWrite
        ) {
            continue;
        }
        let words = matrix.operation.words();
        for cell in &matrix.cells {
            if cell.depth == 1 {
                rows.push(access_row(words, cell));
            }
        }
        let name = mixed_name(matrix.operation);
        let mixed = record
            .measurements
            .iter()
            .find(|row| row.data.workload.name == name);
        if let Some(mixed) = mixed {
            rows.extend(mixed_row(words, mixed));
        }
    }
    rows
}

fn access_row(words: &str, cell: &SweepCell) -> TableRow {
    let size = format_bytes(u64::from(cell.block_bytes));
    let mean = cell.latency_mean_ns.map(milliseconds_text);
    let longest = cell.latency_max_ns.map(|ns| milliseconds_text(ns as f64));
    let throughput = cell.throughput.as_ref();
    TableRow::from(vec![
        format!("{words} {size}"),
        labels::or_unknown(cell.iops.as_ref().map(rate_text)),
        labels::or_unknown(mean),
        labels::or_unknown(longest),
        labels::or_unknown(throughput.map(|rate| format_throughput(rate.value))),
    ])
}

fn rate_text(rate: &Estimate) -> String {
    rounded(rate.value, rate.half_width_95)
}

/// The row of random sizes; `None` where no operation succeeded.
fn mixed_row(words: &str, measurement: &Row) -> Option<TableRow> {
    let (_, op) = measurement.headline_ops().into_iter().next()?;
    if op.data.count == 0 {
        return None;
    }
    let figures = op.figures;
    Some(TableRow::from(vec![
        format!("{words} random sizes"),
        rate_text(&figures.iops),
        milliseconds_text(figures.latency.mean),
        milliseconds_text(figures.latency.max as f64),
        format_throughput(figures.throughput.value),
    ]))
}

/// A row for each cell of the random reads; empty where they were not swept.
fn iops_rows(sweep: &SweepRecord) -> Vec<TableRow> {
    for matrix in &sweep.matrices {
        if matrix.operation == SweepOperation::RandRead {
            return matrix.cells.iter().map(iops_row).collect();
        }
    }
    Vec::new()
}

fn iops_row(cell: &SweepCell) -> TableRow {
    let size = format_bytes(u64::from(cell.block_bytes));
    if let Some(iops) = &cell.iops
        && let Some(throughput) = &cell.throughput
    {
        return TableRow::from(vec![
            size,
            rate_text(iops),
            rate_in_units(throughput, KIB),
            rate_in_units(throughput, KBIT_BYTES),
        ]);
    }
    let why = cell.why.as_deref().unwrap_or(labels::UNKNOWN);
    TableRow::from(vec![size, why.to_owned(), String::new(), String::new()])
}

/// A rate in units of `unit_bytes` per second, without the unit.
fn rate_in_units(rate: &Estimate, unit_bytes: f64) -> String {
    let half_width = rate.half_width_95.map(|half| half / unit_bytes);
    rounded(rate.value / unit_bytes, half_width)
}

/// A row for each cell of the first matrix, with a rate of every matrix.
fn iozone_rows(sweep: &SweepRecord) -> Vec<TableRow> {
    let Some(first) = sweep.matrices.first() else {
        return Vec::new();
    };
    let mut rows = Vec::new();
    for cell in &first.cells {
        let mut cells = vec![size_word(u64::from(cell.block_bytes))];
        for matrix in &sweep.matrices {
            cells.push(iozone_rate_text(matrix, cell));
        }
        rows.push(TableRow::from(cells));
    }
    rows
}

/// The rate of a matrix in iozone's kB per second, at the block size and depth of a cell of another
/// matrix.
fn iozone_rate_text(matrix: &SweepMatrix, other: &SweepCell) -> String {
    if let Some(cell) = matrix.cell(other.block_bytes, other.depth)
        && let Some(rate) = &cell.throughput
    {
        return format!("{:.0}", rate.value / KIB);
    }
    labels::UNKNOWN.to_owned()
}
