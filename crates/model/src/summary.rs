//! Every number that more than one printer shows, computed once.

use crate::estimate::Estimate;
use crate::files::FileOperation;
use crate::histogram::LatencyHistogram;
use crate::op::OpKind;
use crate::record::{
    FileStepRecord, FilesRecord, LatencySummary, MeasurementRecord, OpRecord, Record,
};
use crate::series::{Cell, TimeSeries};
use std::collections::BTreeMap;

impl LatencySummary {
    /// The short form of a distribution, with the whole of it.
    pub fn of(histogram: &LatencyHistogram) -> Self {
        Self {
            hdr: histogram.to_hdr_base64(),
            ..Self::short(histogram)
        }
    }

    /// The short form alone.
    pub fn short(histogram: &LatencyHistogram) -> Self {
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
            hdr: String::new(),
        }
    }
}

/// From this block size on a disk is limited by bytes, below by operations, and a reader thinks so.
const RATED_IN_BYTES_FROM: u32 = 64 << 10;

impl MeasurementRecord {
    /// When its last operation was measured, in nanoseconds after the start of the run. The slices
    /// of a workload lie apart.
    pub fn end_ns(&self) -> u64 {
        let (start_ns, wall_ns) = match self.slices.last() {
            Some(last) => (last.start_ns, last.wall_ns),
            None => (self.start_ns, self.wall_ns),
        };
        start_ns.saturating_add(wall_ns)
    }

    /// Start of the time that the figures cover, in nanoseconds after the start of the measured
    /// time. Rates of records before method 6 begin at `settling_ns`, all else at zero.
    pub fn steady_from_ns(&self) -> u64 {
        let last = self.phases.last();
        last.map_or(0, |phase| phase.start_ns.saturating_sub(self.start_ns))
    }

    /// Length of the time that the figures cover, in nanoseconds.
    pub fn steady_ns(&self) -> u64 {
        self.wall_ns.saturating_sub(self.steady_from_ns())
    }

    /// Start of the time that the figures cover, in nanoseconds after the start of the run.
    pub fn steady_start_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.steady_from_ns())
    }

    /// CPU time of this program over the time that the figures cover; 1.0 is one CPU fully used.
    pub fn cpu_share(&self) -> f64 {
        if self.steady_ns() == 0 {
            0.0
        } else {
            (self.cpu.user_ns + self.cpu.system_ns) as f64 / self.steady_ns() as f64
        }
    }

    /// Whether its rates are shown in bytes per second, and not in operations per second.
    pub fn is_rated_in_bytes(&self) -> bool {
        let is_large = self.workload.block_bytes >= RATED_IN_BYTES_FROM;
        is_large && !self.ops.contains_key(&OpKind::Commit)
    }

    /// The rate of an operation that a reader looks at.
    pub fn rate<'a>(&self, op: &'a OpRecord) -> &'a Estimate {
        if self.is_rated_in_bytes() {
            &op.throughput
        } else {
            &op.iops
        }
    }

    /// Operations per second of all kinds that a reader looks at.
    pub fn total_iops(&self) -> f64 {
        OpKind::headline(&self.ops)
            .map(|(_, op)| op.iops.value)
            .sum()
    }

    /// Failed operations of all kinds.
    pub fn errors_total(&self) -> u64 {
        self.ops.values().flat_map(|op| op.errors.values()).sum()
    }

    /// Failed operations of all kinds by errno name.
    pub fn errors_by_name(&self) -> BTreeMap<&str, u64> {
        let mut sum = BTreeMap::new();
        for (name, n) in self.ops.values().flat_map(|op| &op.errors) {
            *sum.entry(name.as_str()).or_insert(0) += n;
        }
        sum
    }

    /// The kinds that a reader looks at.
    pub fn headline_ops(&self) -> Vec<(OpKind, &OpRecord)> {
        OpKind::headline(&self.ops).collect()
    }

    /// What happened in each cell of an operation's series, as [`Self::cells_of`] tells it.
    pub fn cells_over_time<'a>(
        &self,
        op: &'a OpRecord,
    ) -> impl Iterator<Item = (f64, f64, &'a Cell)> + use<'a> {
        self.cells_of(&op.series)
    }

    /// What happened in each cell of a series of this measurement: (middle of the cell in seconds
    /// after the start of the measured time, its length in seconds, its events). The last cell
    /// ends with the measured time; it is skipped where less than half a cell remains, which would
    /// be mostly noise.
    pub fn cells_of<'a>(
        &self,
        series: &'a TimeSeries,
    ) -> impl Iterator<Item = (f64, f64, &'a Cell)> + use<'a> {
        let (start, interval) = (series.start_ns as f64, series.interval_ns as f64);
        let wall = self.wall_ns as f64;
        let cells = series.cells.iter().enumerate();
        cells.filter_map(move |(index, cell)| {
            let start = start + index as f64 * interval;
            let length = (wall - start).min(interval);
            let place = ((start + length / 2.0) / 1e9, length / 1e9, cell);
            (length > 0.0 && length >= interval / 2.0).then_some(place)
        })
    }

    /// The widest relative half-width among the headline figures' rates; `None` when one of them
    /// has none.
    pub fn precision(&self) -> Option<f64> {
        let ops = OpKind::headline(&self.ops);
        let widths = ops.map(|(_, op)| op.iops.relative_half_width());
        let widths: Option<Vec<f64>> = widths.collect();
        widths?.into_iter().reduce(f64::max)
    }
}

impl Record {
    /// Time from the start of the run to the end of its last measurement, survey or load of a
    /// server, in nanoseconds.
    pub fn elapsed_ns(&self) -> u64 {
        let survey = self.surface().into_iter();
        let survey = survey.map(|surface| surface.start_ns.saturating_add(surface.wall_ns));
        let steps = self.files().into_iter().flat_map(|files| &files.steps);
        let observed = self
            .observed()
            .into_iter()
            .flat_map(|observed| &observed.devices);
        let watched = observed.map(|device| device.wall_ns);
        let rounds = steps.flat_map(|step| &step.rounds);
        self.measurements
            .iter()
            .map(MeasurementRecord::end_ns)
            .chain(survey)
            .chain(watched)
            .chain(
                self.postgres()
                    .into_iter()
                    .filter_map(|postgres| postgres.end_ns),
            )
            .chain(rounds.map(|round| round.start_ns.saturating_add(round.wall_ns)))
            .max()
            .unwrap_or(0)
    }

    /// The smallest and the largest share of the bytes requested from a target that its disks' own
    /// counters saw; `None` when neither a measurement nor the survey knows.
    pub fn accounted_range(&self, target: usize) -> Option<(f64, f64)> {
        let measured = self.measurements.iter().map(|m| (m.target, &m.device));
        let surveyed = self.surface().into_iter().map(|s| (s.target, &s.device));
        let devices = measured.chain(surveyed).filter(|(of, _)| *of == target);
        let shares = devices.filter_map(|(_, device)| device.accounted);
        shares
            .map(|share| (share, share))
            .reduce(|(low, high), (share, _)| (low.min(share), high.max(share)))
    }
}

impl FileStepRecord {
    /// CPU time of this program over the measured time; 1.0 is one CPU fully used.
    pub fn cpu_share(&self) -> f64 {
        (self.cpu.user_ns + self.cpu.system_ns) as f64 / self.wall_ns.max(1) as f64
    }
}

impl FilesRecord {
    /// The part of an operation's time that is fsync, over both orders; `None` where nothing was
    /// synced.
    pub fn sync_share(&self, operation: FileOperation) -> Option<FileSyncShare> {
        let all = self.steps.iter();
        let steps = || all.clone().filter(|of| of.step.operation == operation);
        let sync = steps().filter_map(|of| of.sync).reduce(|mut sum, next| {
            sum += next;
            sum
        })?;
        let busy_ns: f64 = steps()
            .map(|of| of.figures.latency.mean * of.figures.count as f64)
            .sum();
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
    /// Of files.
    pub file: f64,
    /// Of directories.
    pub directory: f64,
}
