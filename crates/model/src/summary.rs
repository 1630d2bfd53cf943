//! Numbers of rows and steps that follow from what they count, for printers and for the analysis:
//! each is computed here, once.

use crate::estimate::Estimate;
use crate::files::{FileOperation, FileSyncTime};
use crate::files_record::{FileStepRow, FilesRecord};
use crate::histogram::LatencyHistogram;
use crate::op::OpKind;
use crate::record::Record;
use crate::row::{LatencySummary, OpRow, Row};
use crate::series::{Cell, TimeSeries};
use std::collections::BTreeMap;

impl LatencySummary {
    /// The short form of a distribution.
    pub fn of(histogram: &LatencyHistogram) -> Self {
        Self {
            unit: "ns".to_owned(),
            mean: histogram.mean_ns(),
            min: histogram.min_ns(),
            p50: histogram.percentile(0.50),
            p90: histogram.percentile(0.90),
            p99: histogram.percentile(0.99),
            p99_9: histogram.percentile(0.999),
            p99_99: histogram.percentile(0.9999),
            max: histogram.max_ns(),
        }
    }
}

/// The block size from which on the rate of a workload is shown in bytes per second. Such a disk is
/// limited by bytes; with smaller blocks operations limit it.
const RATED_IN_BYTES_FROM: u32 = 64 << 10;

impl Row {
    /// The time at which its last operation was measured, in nanoseconds after the start of the
    /// run. The slices of a workload lie apart.
    pub fn end_ns(&self) -> u64 {
        let (start_ns, wall_ns) = match self.data.slices.last() {
            Some(last) => (last.start_ns, last.wall_ns),
            None => (self.data.start_ns, self.data.wall_ns),
        };
        start_ns.saturating_add(wall_ns)
    }

    /// Start of the time that the figures cover, in nanoseconds after the start of the measured
    /// time.
    pub fn steady_from_ns(&self) -> u64 {
        let last = self.figures.phases.last();
        last.map_or(0, |phase| phase.start_ns.saturating_sub(self.data.start_ns))
    }

    /// Length of the time that the figures cover, in nanoseconds.
    pub fn steady_ns(&self) -> u64 {
        self.data.wall_ns.saturating_sub(self.steady_from_ns())
    }

    /// Start of the time that the figures cover, in nanoseconds after the start of the run.
    pub fn steady_start_ns(&self) -> u64 {
        self.data.start_ns.saturating_add(self.steady_from_ns())
    }

    /// CPU time of this program over the time that the figures cover; 1.0 is one CPU fully used.
    pub fn cpu_share(&self) -> f64 {
        if self.steady_ns() == 0 {
            0.0
        } else {
            (self.data.cpu.user_ns + self.data.cpu.system_ns) as f64 / self.steady_ns() as f64
        }
    }

    /// True if its rates are shown in bytes per second, and not in operations per second.
    pub fn is_rated_in_bytes(&self) -> bool {
        let is_large = self.data.workload.block_bytes >= RATED_IN_BYTES_FROM;
        is_large && !self.data.ops.contains_key(&OpKind::Commit)
    }

    /// The rate of an operation that a reader looks at.
    pub fn rate<'a>(&self, op: OpRow<'a>) -> &'a Estimate {
        if self.is_rated_in_bytes() {
            &op.figures.throughput
        } else {
            &op.figures.iops
        }
    }

    /// Operations per second of all kinds that a reader looks at.
    pub fn total_iops(&self) -> f64 {
        OpKind::headline(&self.figures.ops)
            .map(|(_, op)| op.iops.value)
            .sum()
    }

    /// Failed operations of all kinds.
    pub fn errors_total(&self) -> u64 {
        self.data
            .ops
            .values()
            .flat_map(|op| op.errors.values())
            .sum()
    }

    /// Failed operations of all kinds by errno name.
    pub fn errors_by_name(&self) -> BTreeMap<&str, u64> {
        let mut sum = BTreeMap::new();
        for (name, n) in self.data.ops.values().flat_map(|op| &op.errors) {
            *sum.entry(name.as_str()).or_insert(0) += n;
        }
        sum
    }

    /// The kinds that a reader looks at.
    pub fn headline_ops(&self) -> Vec<(OpKind, OpRow<'_>)> {
        OpKind::headline(&self.data.ops)
            .filter_map(|(kind, _)| Some((kind, self.op(kind)?)))
            .collect()
    }

    /// The cells that are shown of an operation, as [`Self::cells_of`] returns them.
    pub fn cells_over_time(&self, op: OpRow<'_>) -> Vec<CellOverTime> {
        self.cells_of(&op.data.shown_series())
    }

    /// The cells of a series of this measurement, each with its time. The last cell ends with the
    /// measured time; it is skipped where less than half a cell remains, which would be mostly
    /// noise.
    pub fn cells_of(&self, series: &TimeSeries) -> Vec<CellOverTime> {
        let interval_ns = series.interval_ns as f64;
        let wall_ns = self.data.wall_ns as f64;
        let mut cells = Vec::new();
        for (index, cell) in series.cells.iter().enumerate() {
            let start_ns = series.start_ns as f64 + index as f64 * interval_ns;
            let length_ns = (wall_ns - start_ns).min(interval_ns);
            if length_ns > 0.0 && length_ns >= interval_ns / 2.0 {
                cells.push(CellOverTime {
                    middle_s: (start_ns + length_ns / 2.0) / 1e9,
                    length_s: length_ns / 1e9,
                    cell: *cell,
                });
            }
        }
        cells
    }

    /// The widest relative half-width among the headline figures' rates; `None` when one of them
    /// has none.
    pub fn precision(&self) -> Option<f64> {
        OpKind::headline(&self.figures.ops)
            .map(|(_, op)| op.iops.relative_half_width())
            .collect::<Option<Vec<f64>>>()?
            .into_iter()
            .reduce(f64::max)
    }
}

/// A cell of a series with its time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellOverTime {
    /// The middle of the cell, in seconds after the start of the measured time.
    pub middle_s: f64,
    /// The length in seconds.
    pub length_s: f64,
    /// The events in the cell.
    pub cell: Cell,
}

impl Record {
    /// The smallest and the largest share of the bytes requested from a target that its disks' own
    /// counters saw; `None` when neither a measurement nor the survey knows.
    pub fn accounted_range(&self, target: usize) -> Option<(f64, f64)> {
        let measured = self
            .measurements
            .iter()
            .map(|m| (m.data.target, &m.data.device));
        let surveyed = self
            .surface()
            .into_iter()
            .map(|s| (s.data.target, &s.data.device));
        let mut range: Option<(f64, f64)> = None;
        for (device_target, device) in measured.chain(surveyed) {
            if let Some(share) = device.accounted
                && device_target == target
            {
                range = Some(match range {
                    Some((low, high)) => (low.min(share), high.max(share)),
                    None => (share, share),
                });
            }
        }
        range
    }
}

impl FileStepRow {
    /// The part of its latencies that is fsync; `None` where nothing was synced.
    pub fn sync(&self) -> Option<FileSyncTime> {
        if self.data.sync.total_ns() > 0 {
            Some(self.data.sync)
        } else {
            None
        }
    }

    /// CPU time of this program over the measured time; 1.0 is one CPU fully used.
    pub fn cpu_share(&self) -> f64 {
        (self.data.cpu.user_ns + self.data.cpu.system_ns) as f64 / self.data.wall_ns.max(1) as f64
    }
}

impl FilesRecord {
    /// The part of an operation's time that is fsync, over both orders; `None` where nothing was
    /// synced.
    pub fn sync_share(&self, operation: FileOperation) -> Option<FileSyncShare> {
        let mut sync = None;
        let mut busy_ns = 0.0;
        for step in &self.steps {
            if step.data.step.operation == operation {
                busy_ns += step.figures.latency.mean * step.data.op.count as f64;
                if let Some(own) = step.sync() {
                    let mut sum = sync.unwrap_or_default();
                    sum += own;
                    sync = Some(sum);
                }
            }
        }
        let sync: FileSyncTime = sync?;
        // Calls whose operation failed later are in no latency.
        let busy_ns = busy_ns.max(sync.total_ns() as f64).max(1.0);
        Some(FileSyncShare {
            file: sync.file_sync_ns as f64 / busy_ns,
            directory: sync.directory_sync_ns as f64 / busy_ns,
        })
    }
}

/// Parts of the time of an operation that are fsync; 1.0 is all of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FileSyncShare {
    /// The part of syncs of files.
    pub file: f64,
    /// The part of syncs of directories.
    pub directory: f64,
}
