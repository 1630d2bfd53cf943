//! Defines the interface of campaigns, which take results and give the next measurement, and at the
//! end their decisions.
//!
//! A *cell* is the smallest measurement of a campaign: one workload on one side for a short time.
//! The cells of a time series are called *series cells* here.

use crate::limiter::requests_of;
use crate::pause::pause_of_slice;
use diskproof_model::campaign::{CampaignDecision, DroppedSlice, SlicePause};
use diskproof_model::health::DiskHealth;
use diskproof_model::measurement::Measurement;
use diskproof_model::plan::{Plan, Workload};
use diskproof_model::rate::{RateCellKind, RateTrial};
use diskproof_model::series::TimeSeries;
use diskproof_model::target::{HostFacts, TargetIdentity};
use diskproof_model::window::TimeSlice;

/// The length of a series cell, in nanoseconds: the finest that the engine records.
pub(super) const SERIES_CELL_NS: u64 = 10_000_000;

/// Shortens a time to whole series cells: estimates ignore a series cell that the measured time
/// does not cover.
pub(super) fn whole_series_cells_ns(time_ns: u64) -> u64 {
    time_ns / SERIES_CELL_NS * SERIES_CELL_NS
}

/// The facts that a campaign begins with.
#[derive(Debug, Clone, Copy)]
pub struct CampaignFacts<'a> {
    /// The plan of the run.
    pub plan: &'a Plan,
    /// Its targets.
    pub targets: &'a [TargetIdentity],
    /// The machine.
    pub host: &'a HostFacts,
    /// The health reports of the disks.
    pub health: &'a [DiskHealth],
}

/// A series of measurements in which the results so far decide what is measured next.
pub trait Campaign: Send {
    /// Takes all cells that were measured so far, in order, and returns the next step. The caller
    /// measures the cell of each step before it asks for the next one.
    fn next(&mut self, done: &[MeasuredCell]) -> CampaignStep;

    /// Takes the time that is left of the announced one, in nanoseconds, before the first cell: to
    /// fill the targets may have taken longer than planned. Most campaigns do not divide their time
    /// among their cells, and ignore it.
    fn limit_time(&mut self, _left_ns: u64) {}

    /// The decisions that the record keeps. Complete only after [`Self::next`] returned no cell.
    fn decisions(&self) -> Vec<CampaignDecision> {
        Vec::new()
    }
}

/// The next step of a campaign.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CampaignStep {
    /// The caller removes these rows from the results before it measures `cell`: their cells so
    /// far were measured in a burst, and no longer count.
    pub dropped: Vec<CampaignRow>,
    /// The cell to measure next; `None` when the campaign is over.
    pub cell: Option<CampaignCell>,
}

impl CampaignStep {
    /// A step that drops no row.
    pub(super) fn without_drops(cell: Option<CampaignCell>) -> Self {
        Self {
            dropped: Vec::new(),
            cell,
        }
    }
}

/// The smallest measurement of a campaign.
#[derive(Debug, Clone, PartialEq)]
pub struct CampaignCell {
    /// The index of the side: a target, or a setting of one.
    pub side: usize,
    /// The workload to run, with its time.
    pub workload: Workload,
    /// The use that is made of its measurement.
    pub purpose: CellPurpose,
    /// The time without requests before it, in nanoseconds.
    pub pause_ns: u64,
}

impl CampaignCell {
    /// A cell of the row of this workload on this side, without a pause before it.
    pub fn row(side: usize, workload: Workload) -> Self {
        Self {
            side,
            workload,
            purpose: CellPurpose::Row,
            pause_ns: 0,
        }
    }
}

/// The use that is made of the measurement of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellPurpose {
    /// It is added to the row of its workload.
    Row,
    /// It is a trial of a rate. The first field is the index of the workload in the plan. A trial
    /// that is a hold or a control also becomes a row, which replaces an earlier one.
    Trial(usize, RateCellKind),
}

/// The identity of a row: all cells of one workload on one side.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CampaignRow {
    /// The index of the side.
    pub side: usize,
    /// The name of the workload.
    pub workload: String,
}

/// A cell and its measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredCell {
    /// The cell that was asked for.
    pub cell: CampaignCell,
    /// Its figures.
    pub slice: TimeSlice,
    /// Reads and writes over its measured time.
    pub moved: TimeSeries,
    /// Bytes that were requested for it, those of its warm-up included: what a budget allows.
    pub asked_bytes: u64,
    /// The part of the target in which it moved them, in bytes.
    pub span_bytes: u64,
    /// The trial of the offered rate; `None` unless the purpose of the cell is a trial.
    pub trial: Option<RateTrial>,
    /// The longest pause of the disk in it: a disk that paused did so also where no row has the
    /// cell in the end.
    pub pause: Option<SlicePause>,
}

/// Bytes of reads and writes of a cell, from its start on. Of a measurement that says nothing of
/// its warm-up, those of its measured time.
fn asked_bytes(measurement: &Measurement) -> u64 {
    let asked = measurement.asked;
    let asked_bytes = asked.read_bytes.saturating_add(asked.write_bytes);
    asked_bytes.max(measurement.moved_bytes())
}

/// The most series cells that are kept of a measured cell. After each cell the search for a burst
/// credit reads those of all cells: more make it slower, fewer blur the moment at which a credit
/// ends. Chosen, not measured: five seconds in the finest cells.
const MOVED_CELLS_MAX: usize = 500;

impl MeasuredCell {
    /// Keeps of a measurement what campaigns decide by.
    pub fn new(cell: CampaignCell, measurement: &Measurement) -> Self {
        let trial = match cell.purpose {
            CellPurpose::Row => None,
            CellPurpose::Trial(index, kind) => RateTrial::measured(index, kind, measurement),
        };
        Self {
            cell,
            trial,
            slice: TimeSlice::from_measurement(measurement),
            moved: requests_of(measurement).thinned(1, MOVED_CELLS_MAX),
            asked_bytes: asked_bytes(measurement),
            span_bytes: measurement.span_bytes,
            pause: pause_of_slice(measurement),
        }
    }

    /// Returns `true` if it belongs to this row.
    pub fn is_of(&self, row: &CampaignRow) -> bool {
        self.cell.side == row.side && self.cell.workload.name == row.workload
    }

    /// The part of it that the record keeps after its row was dropped.
    pub fn dropped(&self) -> DroppedSlice {
        DroppedSlice {
            target: self.cell.side,
            workload: self.cell.workload.name.clone(),
            start_ns: self.slice.start_ns,
            warmup_ns: self.cell.workload.warmup_ns,
            moved: self.moved.clone(),
            pause: self.pause,
        }
    }

    /// The start of its warm-up, in nanoseconds after the start of the run.
    pub(super) fn begin_ns(&self) -> u64 {
        let warmup_ns = self.cell.workload.warmup_ns;
        self.slice.start_ns.saturating_sub(warmup_ns)
    }

    /// The end of its measured time, in nanoseconds after the start of the run.
    pub(super) fn end_ns(&self) -> u64 {
        self.slice.start_ns + self.slice.wall_ns
    }
}
