//! Rate and longest latency over the measured time of each measurement.

use super::names::{latency_unit, slug, subject};
use super::types::{Axis, Chart, Guide, GuideAxis, Series, SeriesMark};
use diskproof_model::measurement::OpKind;
use diskproof_model::record::{Estimate, MeasurementRecord, OpRecord, Record};
use diskproof_model::series::Cell;

/// Rates are in MB/s from this block size on, in IOPS below.
const BLOCK_FOR_THROUGHPUT: u32 = 64 * 1024;

/// The unit that a rate counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RateUnit {
    /// Operations.
    Operations,
    /// Bytes.
    Bytes,
}

impl RateUnit {
    /// From a rate in this unit to the unit of the axis.
    fn scale(self) -> f64 {
        match self {
            Self::Operations => 1.0,
            Self::Bytes => 1e-6,
        }
    }
}

/// One chart for each measurement with more than one cell.
pub(super) fn charts(record: &Record) -> Vec<Chart> {
    record
        .measurements
        .iter()
        .filter_map(|m| chart(record, m))
        .collect()
}

fn chart(record: &Record, m: &MeasurementRecord) -> Option<Chart> {
    let ops: Vec<(OpKind, &OpRecord)> = m.headline_ops();
    if ops.iter().all(|(_, op)| rates(m, op).len() < 2) {
        return None;
    }
    let count = counted(m);
    let longest = ops.iter().map(|(_, op)| op.series.total().latency_max_ns);
    let (latency_unit, ns) = latency_unit(longest.max()? as f64);
    let (label, unit) = if count == RateUnit::Bytes {
        ("throughput", "MB/s")
    } else {
        ("rate", "IOPS")
    };
    let mut series = Vec::new();
    let mut guides = Vec::new();
    let mut figures = Vec::new();
    for (kind, op) in &ops {
        let estimate = estimate(count, op);
        let rate = rate_text(estimate);
        let (prefix, figure) = if ops.len() > 1 {
            (
                format!("{}s: ", kind.as_str()),
                format!("{}s {rate}", kind.as_str()),
            )
        } else {
            (String::new(), rate.clone())
        };
        series.extend(op_series(m, op, &prefix, label, ns));
        guides.push(Guide {
            label: format!("{prefix}{rate}"),
            axis: GuideAxis::Left,
            at: estimate.value * count.scale(),
        });
        figures.push(figure);
    }
    if m.steady_from_ns() > 0 {
        guides.push(Guide {
            label: "the figures begin".to_owned(),
            axis: GuideAxis::X,
            at: m.steady_from_ns() as f64 / 1e9,
        });
    }
    Some(Chart {
        id: format!("time-{}", slug(&m.workload.name)),
        title: format!("{} over time: {}", subject(record, m), figures.join(", ")),
        caption: CAPTION.to_owned(),
        x: Axis {
            max: Some(m.wall_ns as f64 / 1e9),
            ..Axis::new("time", "s").starting_at_zero()
        },
        y: Axis::new(label, unit).starting_at_zero(),
        y_right: Some(Axis::new("longest latency", latency_unit).starting_at_zero()),
        series,
        guides,
    })
}

const CAPTION: &str = "The line is the rate in each cell of the measured time, the dots are the \
                       longest latency in it (right axis). A level line is a steady disk; steps \
                       are caches that fill, notches are pauses.";

/// The rate and the longest latency of one kind of operation.
fn op_series(
    m: &MeasurementRecord,
    op: &OpRecord,
    prefix: &str,
    label: &str,
    ns: f64,
) -> [Series; 2] {
    let scale = counted(m).scale();
    let rates = rates(m, op).into_iter();
    let rates = rates.map(|(at, rate)| (at, rate * scale));
    let latencies = m
        .cells_over_time(op)
        .map(|(at, _, cell)| (at, cell.latency_max_ns as f64 / ns))
        .filter(|(_, latency)| *latency > 0.0);
    let longest = format!("{prefix}longest latency");
    [
        Series::new(
            format!("{prefix}{label}"),
            SeriesMark::Line,
            rates.collect(),
        ),
        Series::new(longest, SeriesMark::Dots, latencies.collect()).on_the_right(),
    ]
}

fn estimate(count: RateUnit, op: &OpRecord) -> &Estimate {
    if count == RateUnit::Bytes {
        &op.throughput
    } else {
        &op.iops
    }
}

fn rate_text(estimate: &Estimate) -> String {
    estimate
        .text()
        .replacen("/s ", " IOPS ", usize::from(estimate.unit == "1/s"))
}

/// The unit of this workload's rate.
pub(crate) fn counted(m: &MeasurementRecord) -> RateUnit {
    let is_large =
        m.workload.block_bytes >= BLOCK_FOR_THROUGHPUT && !m.ops.contains_key(&OpKind::Commit);
    if is_large {
        RateUnit::Bytes
    } else {
        RateUnit::Operations
    }
}

/// The rate in each cell, in operations or bytes per second: (middle of the cell in seconds, rate).
pub(crate) fn rates(m: &MeasurementRecord, op: &OpRecord) -> Vec<(f64, f64)> {
    let count = counted(m);
    let events = |cell: &Cell| {
        if count == RateUnit::Bytes {
            cell.bytes
        } else {
            cell.ops
        }
    };
    m.cells_over_time(op)
        .map(|(at, seconds, cell)| (at, events(cell) as f64 / seconds))
        .collect()
}
