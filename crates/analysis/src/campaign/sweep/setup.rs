//! Derives the cells and limits of a sweep from its plan, and the pass in which each cell is first
//! measured.

use diskproof_model::plan::{Plan, Workload};
use diskproof_model::sweep::SweepPlan;

/// The cells and limits of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepSetup {
    /// The cells. A limit in bytes applies to all slices of a cell together.
    pub cells: Vec<SweepCellSetup>,
    /// When the last slice ends, in nanoseconds after the start of the run.
    pub time_ns: u64,
    /// A cell is complete when the relative half-width of its 95 % interval reaches this.
    pub precision: f64,
    /// Seed of the random order.
    pub seed: u64,
}

/// One of this many parts of the time of a sweep is left at its end: requests in flight complete in
/// it, and the results are saved. Chosen, not measured.
const END_PARTS: u64 = 40;
/// An axis with fewer values belongs to the coarse matrix as a whole.
const AXIS_MIN: usize = 4;
/// The coarse matrix has every second block size, from the second one on.
const FIRST_COARSE_SIZE: usize = 1;
/// The coarse matrix has every second depth, from the first one on.
const FIRST_COARSE_DEPTH: usize = 0;

/// The time at which the last slice of a sweep ends, in nanoseconds after its start.
fn sweep_end_ns(time_ns: u64) -> u64 {
    time_ns - time_ns / END_PARTS
}

impl SweepSetup {
    /// The sweep of a plan. Each workload of `list` is a cell.
    pub fn planned(plan: &Plan, list: &[Workload], spec: &SweepPlan) -> Self {
        let mut cells = Vec::new();
        let mut precision = 0.0;
        for workload in list {
            cells.push(SweepCellSetup {
                pass: SweepPass::first_of_cell(workload, spec),
                workload: workload.clone(),
            });
            precision = workload.stop.precision.unwrap_or(precision);
        }
        Self {
            cells,
            time_ns: sweep_end_ns(plan.time_limit_ns.unwrap_or(u64::MAX)),
            precision,
            seed: plan.seed,
        }
    }
}

impl SweepPass {
    /// The first pass of a cell. The coarse matrix has every second block size and depth. All other
    /// cells are fine, spans and mixed sizes included.
    fn first_of_cell(cell: &Workload, spec: &SweepPlan) -> Self {
        let size_index = spec
            .block_bytes
            .iter()
            .position(|bytes| *bytes == cell.block_bytes);
        let depth_index = spec.depths.iter().position(|depth| *depth == cell.depth);
        let is_of_matrix = spec
            .operations
            .iter()
            .any(|operation| cell.name == operation.cell_name(cell.block_bytes, cell.depth));
        if let Some(size_index) = size_index
            && let Some(depth_index) = depth_index
            && is_of_matrix
            && is_coarse(size_index, spec.block_bytes.len(), FIRST_COARSE_SIZE)
            && is_coarse(depth_index, spec.depths.len(), FIRST_COARSE_DEPTH)
        {
            Self::Coarse
        } else {
            Self::Fine
        }
    }
}

/// Returns `true` if an index of an axis belongs to the coarse matrix. `first` is the first index
/// that does, 0 or 1.
fn is_coarse(index: usize, axis_length: usize, first: usize) -> bool {
    axis_length < AXIS_MIN || index % 2 == first
}

/// A cell of a sweep, before it is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepCellSetup {
    /// The workload with this cell's block size, depth and operation.
    pub workload: Workload,
    /// The pass in which its first slice is measured.
    pub pass: SweepPass,
}

/// The pass in which a cell is first measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SweepPass {
    /// The first pass: a coarse matrix.
    Coarse,
    /// The second pass: all other cells.
    Fine,
}
