//! The table of figures of one target: above each figure the conditions that make it one, below the
//! table what its marks mean.

use super::graph::sparkline;
use super::words;
use crate::page::{Columns, Ink, Lean, Page};
use crate::text::list;
use diskproof_model::measurement::{OpKind, StopReason, VerifyResult};
use diskproof_model::plan::{CachePolicy, SyncPolicy};
use diskproof_model::record::{LatencySummary, MeasurementRecord, OpRecord, WorkloadRecord};
use diskproof_model::units::{counted, format_latency, format_rate, format_throughput};
use std::io;

/// Column at which conditions begin: two more than the longest name that `check` uses.
const CONDITIONS_INDENT: usize = 18;
/// Column at which the figures begin when they do not fit side by side.
const STACKED_INDENT: usize = 13;
/// What stands over the columns.
const HEADING: [&str; COLUMNS] = [
    "", "rate", "± 95 %", "MB/s", "p50", "p99", "p99.9", "max", "CPU",
];
const COLUMNS: usize = 9;
/// Columns between the table and the graphs beside it.
const GRAPH_GAP: usize = 3;
/// A narrower graph shows nothing.
const GRAPH_COLUMNS_MIN: usize = 20;
/// A wider one is longer than the eye compares.
const GRAPH_COLUMNS_MAX: usize = 100;
/// Fewer cells are no course of events.
const CELLS_LEAST: usize = 4;
/// Stands for a percentile that would be a guess.
const UNKNOWN: &str = "–";

/// Writes the table and its notes.
pub(super) fn write_figures(
    page: &mut Page<'_>,
    measurements: &[&MeasurementRecord],
) -> io::Result<()> {
    let notes = Notes::of(measurements);
    let heading: Vec<String> = HEADING.map(str::to_owned).to_vec();
    let rows: Vec<Vec<Vec<String>>> = measurements
        .iter()
        .map(|m| figure_rows(m, &notes))
        .collect();
    let mut leans = [Lean::Right; COLUMNS];
    leans[0] = Lean::Left;
    let columns = Columns::fit(&leans, rows.iter().flatten().chain([&heading]));
    let is_table = page.has_room_for(columns.total());
    let lines = over_time(page, measurements, columns.total());
    let beside = |row: &[String], line: &str| {
        let row = columns.line(row);
        if line.is_empty() {
            row
        } else {
            format!(
                "{row}{:pad$}{line}",
                "",
                pad = columns.total() + GRAPH_GAP - crate::text::columns(&row)
            )
        }
    };
    if is_table {
        let name = if lines.iter().flatten().any(|line| !line.is_empty()) {
            "over time, from zero"
        } else {
            ""
        };
        page.unbroken(Ink::Faint, &beside(&heading, name))?;
    }
    for ((measurement, rows), lines) in measurements.iter().zip(&rows).zip(&lines) {
        page.entry(
            (Ink::Strong, &measurement.workload.name),
            CONDITIONS_INDENT,
            (Ink::Faint, &conditions(&measurement.workload)),
        )?;
        for (row, line) in rows.iter().zip(lines) {
            if is_table {
                page.unbroken(Ink::Plain, beside(row, line).trim_end())?
            } else {
                write_stacked(page, row)?
            }
        }
        if rows.is_empty() {
            page.entry((Ink::Plain, ""), 2, (Ink::Alarm, "nothing was measured"))?;
        }
    }
    notes.write(page)
}

/// For each row of each measurement its rate over the measured time, as far as the page is wider
/// than the table.
fn over_time(
    page: &Page<'_>,
    measurements: &[&MeasurementRecord],
    table: usize,
) -> Vec<Vec<String>> {
    let room = page
        .width()
        .saturating_sub(table + GRAPH_GAP)
        .min(GRAPH_COLUMNS_MAX);
    let line = |m: &MeasurementRecord, op: &OpRecord| {
        let rates: Vec<f64> = m
            .cells_over_time(op)
            .map(|(_, seconds, cell)| cell.ops as f64 / seconds)
            .collect();
        if room < GRAPH_COLUMNS_MIN || rates.len() < CELLS_LEAST {
            String::new()
        } else {
            sparkline(&rates, room)
        }
    };
    measurements
        .iter()
        .map(|m| {
            shown_ops(m)
                .into_iter()
                .map(|(_, op)| line(m, op))
                .collect()
        })
        .collect()
}

/// A row as running text, for a page too narrow for the table.
fn write_stacked(page: &mut Page<'_>, row: &[String]) -> io::Result<()> {
    let named = row
        .iter()
        .zip(HEADING)
        .skip(3)
        .filter(|(cell, _)| !cell.is_empty());
    let rest = named.map(|(cell, name)| {
        if name == "MB/s" {
            format!("{cell} {name}")
        } else {
            format!("{name} {cell}")
        }
    });
    let rate = format!("{} {}", row[1].trim(), row[2]);
    page.entry(
        (Ink::Plain, &row[0]),
        STACKED_INDENT,
        (Ink::Plain, &list([rate].into_iter().chain(rest))),
    )
}

/// Block size, depth, span and cache mode: a figure without them is not a figure.
pub(crate) fn conditions(workload: &WorkloadRecord) -> String {
    let span = format!(
        "{} {}",
        words::access(&workload.access),
        words::span(workload.span_start_bytes, workload.span_bytes)
    );
    let mut facts = vec![words::block(workload.block_bytes, &workload.block_mix)];
    facts.extend(words::mix(workload.read_permille));
    facts.extend(words::sync(workload.sync));
    facts.push(format!(
        "depth {}",
        words::depth(workload.depth, workload.workers)
    ));
    facts.push(span);
    facts.extend(words::offered(workload.rate));
    facts.push(words::cache(workload.cache).to_owned());
    facts.extend(words::together(&workload.together_with));
    list(facts)
}

/// The cells of every headline operation; CPU time belongs to the workload and stands in its first
/// row.
fn figure_rows(measurement: &MeasurementRecord, notes: &Notes) -> Vec<Vec<String>> {
    let marks = notes.marks(measurement);
    let mut cpu = words::percent(measurement.cpu_share());
    shown_ops(measurement)
        .into_iter()
        .map(|(kind, op)| figure_row(kind, op, &marks, std::mem::take(&mut cpu)))
        .collect()
}

/// The headline operations, and the syncs where they come every few writes: neither the writes nor
/// a commit contain their time.
pub(crate) fn shown_ops(measurement: &MeasurementRecord) -> Vec<(OpKind, &OpRecord)> {
    let mut ops = measurement.headline_ops();
    if let (SyncPolicy::Every { writes: 2.., .. }, Some(sync)) = (
        measurement.workload.sync,
        measurement.ops.get(&OpKind::Sync),
    ) {
        ops.push((OpKind::Sync, sync));
    }
    ops
}

fn figure_row(kind: OpKind, op: &OpRecord, marks: &str, cpu: String) -> Vec<String> {
    let name = match kind {
        OpKind::Read => "  reads/s",
        OpKind::Write => "  writes/s",
        OpKind::Sync => "  syncs/s",
        OpKind::Commit => "  commits/s",
    };
    let precision = op
        .iops
        .relative_half_width()
        .map_or("?".to_owned(), words::percent);
    let throughput = format_throughput(op.throughput.value).replace(" MB/s", "");
    let latency = shown_latency(op);
    let percentile = |ns: Option<u64>| ns.map_or(UNKNOWN.to_owned(), format_latency);
    let mut row = vec![
        name.to_owned(),
        format!("{}{marks}", format_rate(op.iops.value)),
        format!("± {precision}"),
        throughput,
    ];
    row.extend([latency.p50, latency.p99, latency.p99_9].map(percentile));
    row.extend([percentile((op.count > 0).then_some(latency.max)), cpu]);
    row
}

/// Under an offered load a request's wait begins when it should have started, not when a free slot
/// let it (coordinated omission).
pub(crate) fn shown_latency(op: &OpRecord) -> &LatencySummary {
    op.latency_intended.as_ref().unwrap_or(&op.latency)
}

/// A remark on figures: its mark, what it says, and on which workloads.
struct Note {
    mark: char,
    text: String,
    workloads: Vec<String>,
}

/// Everything that must be said below the table.
struct Notes {
    notes: Vec<Note>,
    /// What the table's own signs mean, where they occur.
    legend: String,
    /// Workloads in the table.
    workloads: usize,
    /// Columns that the marks of one figure take at the most.
    marks_max: usize,
}

impl Notes {
    fn of(measurements: &[&MeasurementRecord]) -> Self {
        let mut all = Self {
            notes: Vec::new(),
            legend: legend(measurements),
            workloads: measurements.len(),
            marks_max: 0,
        };
        for measurement in measurements {
            for (mark, text) in remarks(measurement) {
                let name = measurement.workload.name.clone();
                match all
                    .notes
                    .iter_mut()
                    .find(|note| note.mark == mark && note.text == text)
                {
                    Some(note) => note.workloads.push(name),
                    None => all.notes.push(Note {
                        mark,
                        text,
                        workloads: vec![name],
                    }),
                }
            }
        }
        all.notes.sort_by_key(|note| MARKS.find(note.mark));
        all.marks_max = measurements
            .iter()
            .map(|m| marks_of(m).chars().count())
            .max()
            .unwrap_or(0);
        all
    }

    /// The marks of one measurement's figures, padded so that the digits stay aligned.
    fn marks(&self, measurement: &MeasurementRecord) -> String {
        format!("{:1$}", marks_of(measurement), self.marks_max)
    }

    fn write(&self, page: &mut Page<'_>) -> io::Result<()> {
        for note in &self.notes {
            let names = if note.workloads.len() == self.workloads {
                String::new()
            } else {
                format!("{}: ", list(&note.workloads))
            };
            let ink = match note.mark {
                FAILED => Ink::Alarm,
                VERIFIED => Ink::Hint,
                _ => Ink::Caution,
            };
            page.entry(
                (ink, &note.mark.to_string()),
                3,
                (Ink::Plain, &format!("{names}{}", note.text)),
            )?;
        }
        page.text(Ink::Faint, &self.legend)
    }
}

/// The figure came through the page cache.
const CACHED: char = '*';
/// Something went wrong while the figure was measured.
const FAILED: char = '!';
/// The figure had not settled.
const DRIFTING: char = '~';
/// What was written was read back and is right.
const VERIFIED: char = '=';
/// In the order in which they are printed.
const MARKS: &str = "!*~=";

fn marks_of(measurement: &MeasurementRecord) -> String {
    let marks: Vec<char> = remarks(measurement)
        .into_iter()
        .map(|(mark, _)| mark)
        .collect();
    MARKS.chars().filter(|mark| marks.contains(mark)).collect()
}

/// What must be known beside a measurement's figures.
pub(crate) fn remarks(measurement: &MeasurementRecord) -> Vec<(char, String)> {
    let mut remarks = Vec::new();
    let failed = measurement.errors_total();
    if failed > 0 {
        let kinds = list(
            measurement
                .errors_by_name()
                .into_iter()
                .map(|(name, n)| format!("{n} × {name}")),
        );
        remarks.push((
            FAILED,
            format!(
                "{} failed ({kinds}); the figure counts those that succeeded",
                counted(failed, "operation")
            ),
        ));
    }
    match measurement.stopped {
        StopReason::Interrupted => remarks.push((FAILED, "cut short by an interrupt".to_owned())),
        StopReason::Errors => {
            remarks.push((FAILED, "given up: too many operations failed".to_owned()))
        }
        StopReason::Hung => remarks.push((
            FAILED,
            "given up: the target did not answer any more".to_owned(),
        )),
        StopReason::Precision
        | StopReason::Time
        | StopReason::Bytes
        | StopReason::Ops
        | StopReason::Companion => {}
    }
    remarks.extend(measurement.verify.as_ref().and_then(verified));
    if let Some(missed) = measurement.missed_starts.filter(|missed| *missed > 0) {
        remarks.push((
            FAILED,
            format!(
                "{} started over 1 ms late or not at all; the latencies count from when they \
                 should have",
                counted(missed, "request")
            ),
        ));
    }
    let cache = &measurement.cache;
    match (cache.used, &cache.why) {
        (CachePolicy::Direct, _) => {}
        (used, Some(why)) => remarks.push((CACHED, format!("{}: {why}", used.as_str()))),
        (CachePolicy::Buffered, None) => remarks.push((
            CACHED,
            "buffered: through the page cache, which was emptied as it went".to_owned(),
        )),
        // Where every write is synced, the page cache is on the way and cannot answer.
        (CachePolicy::Cached, None)
            if measurement.ops.contains_key(&OpKind::Commit)
                && measurement.workload.read_permille == 0 => {}
        (CachePolicy::Cached, None) => remarks.push((
            CACHED,
            "cached: the page cache was free to answer instead of the disk".to_owned(),
        )),
    }
    if measurement.settled == Some(false) {
        remarks.push((
            DRIFTING,
            "the rate had not settled when the time was over".to_owned(),
        ));
    }
    remarks
}

/// How much of what was written was read back, and whether it was right.
fn verified(verify: &VerifyResult) -> Option<(char, String)> {
    let (unchecked, all) = (
        verify.unchecked(),
        counted(verify.blocks_written.unwrap_or(verify.blocks), "block"),
    );
    let (checked, cut) = match unchecked {
        0 => (counted(verify.blocks, "block"), String::new()),
        _ => (
            format!("{} of {all} written", verify.blocks),
            format!("; {unchecked} were not looked at, as the check was cut short"),
        ),
    };
    match (verify.blocks, verify.bad_blocks) {
        (0, _) if unchecked > 0 => Some((
            FAILED,
            format!("none of the {all} written was read back: the check was cut short"),
        )),
        (0, _) => None,
        (_, 0) if unchecked == 0 => Some((
            VERIFIED,
            format!("{checked} read back, and each held what had been written"),
        )),
        (_, 0) => Some((
            FAILED,
            format!("{checked} were read back, and each held what had been written{cut}"),
        )),
        (_, bad) if unchecked == 0 => Some((
            FAILED,
            format!("{bad} of {checked} read back with the wrong content"),
        )),
        (_, bad) => Some((
            FAILED,
            format!("{bad} blocks with the wrong content among those read back, {checked}{cut}"),
        )),
    }
}

/// What the table's signs mean; only those that occur, the first always.
pub(crate) fn legend(measurements: &[&MeasurementRecord]) -> String {
    let ops: Vec<&OpRecord> = measurements
        .iter()
        .flat_map(|m| shown_ops(m))
        .map(|(_, op)| op)
        .collect();
    let mut legend = "± is half the width of the 95 % confidence interval of the rate. CPU 100 % \
                      is one processor."
        .to_owned();
    if ops.iter().any(|op| op.iops.relative_half_width().is_none()) {
        legend.push_str(" ±\u{a0}? means measured for too short a time to tell.");
    }
    if ops
        .iter()
        .map(|op| shown_latency(op))
        .any(|l| [l.p50, l.p99, l.p99_9].contains(&None))
    {
        legend.push_str(
            " –\u{a0}means fewer than ten samples lie beyond: the percentile would be a guess.",
        );
    }
    if ops.iter().any(|op| op.latency_intended.is_some()) {
        legend.push_str(" Latencies under an offered load count from the intended start.");
    }
    legend
}
