//! The matrix of a sweep: operations over the depth, a line for each block size, and bytes over the
//! block size, a line for each depth. Measured cells only.

use super::names::slug;
use super::types::{Axis, Chart, Guide, GuideAxis, Scale, Series, SeriesMark};

use diskproof_model::sweep::{CellState, SweepCell, SweepMatrix, SweepRecord};
use diskproof_model::units::format_bytes;
use std::collections::BTreeSet;

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
fn values(matrix: &SweepMatrix, of: fn(&SweepCell) -> u32) -> BTreeSet<u32> {
    measured(matrix).map(of).collect()
}

fn over_depth(matrix: &SweepMatrix) -> Chart {
    let words = matrix.operation.words();
    let line = |size: u32| {
        let cells = measured(matrix).filter(|cell| cell.block_bytes == size);
        let rates = cells.filter_map(|cell| Some((f64::from(cell.depth), cell.iops.as_ref()?)));
        Series::estimates(format_bytes(u64::from(size)), SeriesMark::Line, rates, 1.0)
    };
    let sizes = values(matrix, |cell| cell.block_bytes).into_iter();
    let depths = values(matrix, |cell| cell.depth).into_iter();
    let knee = matrix.knee.as_ref().map(|knee| {
        let label = format!("knee at {}", knee.depth);
        Guide::new(GuideAxis::X, label, f64::from(knee.depth))
    });
    Chart {
        id: format!("depth-{}", slug(words)),
        title: format!("IOPS over depth: {words}, by block size"),
        caption: "More requests in flight give more IOPS up to the knee; beyond it they wait \
                  longer. The knee is where IOPS over latency is largest."
            .to_owned(),
        x: Axis {
            ticks: depths.map(f64::from).collect(),
            ..Axis::new("requests in flight", "").scaled(Scale::Log)
        },
        y: Axis::new("rate", "IOPS").scaled(Scale::Log),
        series: sizes.map(line).collect(),
        guides: knee.into_iter().collect(),
        ..Chart::default()
    }
}

fn over_size(matrix: &SweepMatrix) -> Chart {
    let words = matrix.operation.words();
    let place = |bytes: u32| f64::from(bytes) / KIB;
    let line = |depth: u32| {
        let cells = measured(matrix).filter(|cell| cell.depth == depth);
        let rates =
            cells.filter_map(|cell| Some((place(cell.block_bytes), cell.throughput.as_ref()?)));
        Series::estimates(format!("depth {depth}"), SeriesMark::Line, rates, 1e6)
    };
    let sizes = values(matrix, |cell| cell.block_bytes).into_iter();
    let depths = values(matrix, |cell| cell.depth).into_iter();
    let limit = matrix.bandwidth_limit.as_ref().map(|limit| {
        let bytes = limit.block_bytes;
        let label = format!("bandwidth limits from {}", format_bytes(u64::from(bytes)));
        Guide::new(GuideAxis::X, label, place(bytes))
    });
    Chart {
        id: format!("size-{}", slug(words)),
        title: format!("Throughput over block size: {words}, by depth"),
        caption: "Larger blocks move more bytes until bandwidth is the limit; beyond it, a block \
                  takes longer in proportion to its size."
            .to_owned(),
        x: Axis {
            ticks: sizes.map(place).collect(),
            ..Axis::new("block size", "KiB").scaled(Scale::Log)
        },
        y: Axis::new("throughput", "MB/s").starting_at_zero(),
        series: depths.map(line).collect(),
        guides: limit.into_iter().collect(),
        ..Chart::default()
    }
}
