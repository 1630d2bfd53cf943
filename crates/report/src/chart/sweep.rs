//! The matrix of a sweep: operations over the depth, a line for each block size, and bytes over the
//! block size, a line for each depth. Measured cells only.

use super::names::slug;
use super::types::{Axis, Chart, Guide, GuideAxis, Scale, Series, SeriesMark};
use diskproof_model::record::Estimate;
use diskproof_model::sweep::{CellState, SweepCell, SweepMatrix, SweepRecord};
use diskproof_model::units::format_bytes;

/// Bytes in the unit of the axis.
const KIB: f64 = 1024.0;

/// Two charts for each operation.
pub(super) fn charts(sweep: &SweepRecord) -> Vec<Chart> {
    let charts = |matrix| [over_depth(matrix), over_size(matrix)];
    sweep.matrices.iter().flat_map(charts).collect()
}

fn measured(matrix: &SweepMatrix) -> impl Iterator<Item = &SweepCell> {
    let cells = matrix.cells.iter();
    cells.filter(|cell| cell.state == CellState::Measured)
}

/// The values of an axis, without repetition, in order.
fn values(matrix: &SweepMatrix, of: fn(&SweepCell) -> u32) -> Vec<u32> {
    let mut values: Vec<u32> = measured(matrix).map(of).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// What is drawn over what.
#[derive(Debug, Clone, Copy)]
enum Curve {
    /// Operations over the depth.
    OverDepth,
    /// Bytes over the block size.
    OverSize,
}

impl Curve {
    fn place(self, cell: &SweepCell) -> f64 {
        match self {
            Self::OverDepth => f64::from(cell.depth),
            Self::OverSize => f64::from(cell.block_bytes) / KIB,
        }
    }

    fn figure(self, cell: &SweepCell) -> Option<&Estimate> {
        match self {
            Self::OverDepth => cell.iops.as_ref(),
            Self::OverSize => cell.throughput.as_ref(),
        }
    }

    /// From the figure to the unit of the axis.
    fn scale(self) -> f64 {
        match self {
            Self::OverDepth => 1.0,
            Self::OverSize => 1e6,
        }
    }
}

/// A line of cells.
fn line<'a>(name: String, cells: impl Iterator<Item = &'a SweepCell>, curve: Curve) -> Series {
    let (mut points, mut widths) = (Vec::new(), Vec::new());
    let scale = curve.scale();
    for cell in cells {
        if let Some(estimate) = curve.figure(cell) {
            points.push((curve.place(cell), estimate.value / scale));
            widths.push(estimate.half_width_95.unwrap_or(0.0) / scale);
        }
    }
    Series {
        half_widths_95: widths,
        ..Series::new(name, SeriesMark::Line, points)
    }
}

fn over_depth(matrix: &SweepMatrix) -> Chart {
    let words = matrix.operation.words();
    let line_of = |size: &u32| {
        let name = format_bytes(u64::from(*size));
        let cells = measured(matrix).filter(|cell| cell.block_bytes == *size);
        line(name, cells, Curve::OverDepth)
    };
    let sizes = values(matrix, |cell| cell.block_bytes);
    let knee = matrix.knee.as_ref().map(|knee| Guide {
        label: format!("knee at {}", knee.depth),
        axis: GuideAxis::X,
        at: f64::from(knee.depth),
    });
    Chart {
        id: format!("depth-{}", slug(words)),
        title: format!("IOPS over depth: {words}, by block size"),
        caption: "More requests in flight give more IOPS up to the knee; beyond it they wait \
                  longer. The knee is where IOPS over latency is largest."
            .to_owned(),
        x: Axis {
            ticks: values(matrix, |cell| cell.depth)
                .into_iter()
                .map(f64::from)
                .collect(),
            ..Axis::new("requests in flight", "").scaled(Scale::Log)
        },
        y: Axis::new("rate", "IOPS").scaled(Scale::Log),
        y_right: None,
        series: sizes.iter().map(line_of).collect(),
        guides: knee.into_iter().collect(),
    }
}

fn over_size(matrix: &SweepMatrix) -> Chart {
    let words = matrix.operation.words();
    let line_of = |depth: &u32| {
        let cells = measured(matrix).filter(|cell| cell.depth == *depth);
        line(format!("depth {depth}"), cells, Curve::OverSize)
    };
    let depths = values(matrix, |cell| cell.depth);
    let limit = matrix.bandwidth_limit.as_ref().map(|limit| Guide {
        label: format!(
            "bandwidth limits from {}",
            format_bytes(u64::from(limit.block_bytes))
        ),
        axis: GuideAxis::X,
        at: f64::from(limit.block_bytes) / KIB,
    });
    Chart {
        id: format!("size-{}", slug(words)),
        title: format!("Throughput over block size: {words}, by depth"),
        caption: "Larger blocks move more bytes until bandwidth is the limit; beyond it, a block \
                  takes longer in proportion to its size."
            .to_owned(),
        x: Axis {
            ticks: values(matrix, |cell| cell.block_bytes)
                .into_iter()
                .map(|bytes| f64::from(bytes) / KIB)
                .collect(),
            ..Axis::new("block size", "KiB").scaled(Scale::Log)
        },
        y: Axis::new("throughput", "MB/s").starting_at_zero(),
        y_right: None,
        series: depths.iter().map(line_of).collect(),
        guides: limit.into_iter().collect(),
    }
}
