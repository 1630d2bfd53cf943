//! A volume with a burst credit in virtual time, for the tests of campaigns: what it does in each
//! cell follows from its bucket.

use super::decision::SERIES_CELL_NS;
use super::{Campaign, CampaignCell, CampaignRow, MeasuredCell};
use diskproof_model::measurement::OpKind;
use diskproof_model::series::{Cell, TimeSeries};
use diskproof_model::window::{LateRequests, SliceLatency, SliceOp, TimeSlice};
use std::collections::BTreeMap;

/// A campaign with more cells than this never ends, and its test fails.
const CELLS_MAX: usize = 5000;

/// A volume with a limiter. Rates are requests per second, and a request takes `service_ns` while
/// the limiter lets it pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct Volume {
    pub(super) service_ns: f64,
    pub(super) base: f64,
    pub(super) burst: f64,
    pub(super) credit: f64,
}

/// Volumes at work, one for each side or one for all, on one clock.
pub(super) struct Volumes {
    volumes: Vec<Volume>,
    tokens: Vec<f64>,
    now_ns: u64,
    /// A request that takes longer than this is late, in nanoseconds.
    late_ns: f64,
    /// The cells of rows that were not dropped since.
    pub(super) kept: Vec<MeasuredCell>,
}

impl Volumes {
    pub(super) fn new(volumes: &[Volume], late_ns: f64) -> Self {
        Self {
            tokens: volumes.iter().map(|volume| volume.credit).collect(),
            volumes: volumes.to_vec(),
            now_ns: 0,
            late_ns,
            kept: Vec::new(),
        }
    }

    /// Measures the cells of a campaign to its end, and returns the time that it took.
    pub(super) fn carry_out(&mut self, campaign: &mut dyn Campaign) -> u64 {
        let mut done = Vec::new();
        loop {
            let step = campaign.next(&done);
            for row in &step.dropped {
                self.drop_row(row);
            }
            let Some(cell) = step.cell else {
                return self.now_ns;
            };
            let measured = self.measure(&cell);
            self.kept.push(measured.clone());
            done.push(measured);
            assert!(done.len() < CELLS_MAX, "the campaign never ends");
        }
    }

    fn drop_row(&mut self, row: &CampaignRow) {
        self.kept.retain(|measured| !measured.is_of(row));
    }

    /// Lets one series cell of time pass. Returns the requests that a side completed in it.
    fn pass(&mut self, side: usize, depth: f64) -> f64 {
        for (tokens, volume) in self.tokens.iter_mut().zip(&self.volumes) {
            *tokens = (*tokens + volume.base * SERIES_CELL_NS as f64 / 1e9).min(volume.credit);
        }
        self.now_ns += SERIES_CELL_NS;
        let own = side.min(self.volumes.len() - 1);
        let volume = self.volumes[own];
        let wanted = (depth / volume.service_ns * 1e9).min(volume.burst);
        let passed = (wanted * SERIES_CELL_NS as f64 / 1e9).min(self.tokens[own]);
        self.tokens[own] -= passed;
        passed
    }

    fn measure(&mut self, cell: &CampaignCell) -> MeasuredCell {
        let workload = &cell.workload;
        let depth = f64::from(workload.depth);
        for _ in 0..workload.warmup_ns / SERIES_CELL_NS {
            self.pass(cell.side, depth);
        }
        let start_ns = self.now_ns;
        let wall_ns = workload.stop.time_ns.unwrap_or(SERIES_CELL_NS);
        let mut moved = TimeSeries::new(SERIES_CELL_NS);
        let (mut sum, mut whole, mut late) = (0.0, 0, 0);
        for _ in 0..wall_ns / SERIES_CELL_NS {
            let passed = self.pass(cell.side, depth);
            sum += passed;
            let ops = f64::floor(sum + 1e-6) as u64 - whole;
            whole += ops;
            // Little: all in flight wait for the rate of this moment.
            if depth * SERIES_CELL_NS as f64 > self.late_ns * passed {
                late += ops;
            }
            moved.cells.push(Cell {
                ops,
                bytes: ops * u64::from(workload.block_bytes),
                ..Cell::default()
            });
        }
        let op = SliceOp {
            late: Some(LateRequests {
                requests: whole,
                late,
            }),
            latency: Some(SliceLatency {
                mean_ns: depth * wall_ns as f64 / whole.max(1) as f64,
                p50_ns: None,
                p99_ns: None,
                p99_9_ns: None,
            }),
            ..SliceOp::from_counts(whole, whole * u64::from(workload.block_bytes), wall_ns)
        };
        MeasuredCell {
            cell: cell.clone(),
            slice: TimeSlice {
                start_ns,
                wall_ns,
                ops: BTreeMap::from([(OpKind::Read, op)]),
                slot: None,
            },
            trial: None,
            pause: None,
            moved,
            asked_bytes: whole * u64::from(cell.workload.block_bytes),
            span_bytes: 0,
        }
    }
}

/// The rate of a kept cell.
#[derive(Debug)]
pub(super) struct KeptRate {
    pub(super) side: usize,
    pub(super) depth: u32,
    pub(super) iops: f64,
}

/// The rates of the kept cells, in the order in which they were measured.
pub(super) fn rates(kept: &[MeasuredCell]) -> Vec<KeptRate> {
    kept.iter()
        .map(|measured| KeptRate {
            side: measured.cell.side,
            depth: measured.cell.workload.depth,
            iops: measured.slice.ops[&OpKind::Read].iops,
        })
        .collect()
}
