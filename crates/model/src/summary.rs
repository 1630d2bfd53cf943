//! Every number that more than one printer shows, computed once.

use crate::estimate::Estimate;
use crate::files::FileOperation;
use crate::histogram::LatencyHistogram;
use crate::op::OpKind;
use crate::plan::Plan;
use crate::record::{
    FileStepRecord, FilesRecord, LatencySummary, MeasurementRecord, OpRecord, Record,
};
use crate::series::{Cell, TimeSeries};
use crate::workload::{Layout, Workload};
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

impl Plan {
    /// The most bytes that the plan writes to a target that is a directory: what its workloads may
    /// write, and the part of the scratch file that none of them fills, which is filled before
    /// the first read, again after a workload has trimmed it, or once more for a workload that is
    /// to find its blocks in the page cache. `None` when a writing workload has no byte limit.
    pub fn scratch_write_bytes_max(&self) -> Option<u64> {
        let all = self.workloads().iter();
        let laying_out = all.filter(|w| w.layout == Layout::Provides);
        let laid_out: u64 = laying_out.filter_map(Workload::write_bytes_max).sum();
        let scratch = self.scratch_bytes().unwrap_or(0);
        let last = self.workloads().len().saturating_sub(1);
        let before = self.workloads()[..last].iter();
        let trimmed = before.filter(|w| w.leaves_no_content()).count() as u64;
        let first = scratch.saturating_sub(laid_out);
        let again = scratch.saturating_mul(trimmed);
        // The first one finds what was written for it.
        let needing = self.workloads().iter();
        let needing = needing.filter(|w| w.layout == Layout::Needed).skip(1);
        let held: u64 = needing
            .map(|w| w.held_bytes(w.span.length_bytes.unwrap_or(scratch)))
            .sum();
        let own = self.write_bytes_max()?;
        let filled = first.saturating_add(again).saturating_add(held);
        Some(own.saturating_add(filled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Scratch;
    use crate::stream::Streams;
    use crate::task::{Task, Workloads};
    use crate::workload::{CachePolicy, HELD_BYTES_MAX, Stop};

    /// 1 MiB of buffered writes.
    fn writes(name: &str, block_bytes: u32) -> Workload {
        Workload {
            block_bytes,
            cache: CachePolicy::Buffered,
            streams: Streams::with_reads(0),
            layout: Layout::Needed,
            stop: Stop {
                bytes: Some(1 << 20),
                ..Stop::default()
            },
            ..Workload::named(name)
        }
    }

    fn most_bytes(scratch_bytes: u64, list: Vec<Workload>) -> Option<u64> {
        let workloads = Workloads {
            list,
            ..Workloads::default()
        };
        let plan = Plan {
            scratch: Some(Scratch::of_size(scratch_bytes)),
            tasks: vec![Task::Workloads(workloads)],
            ..Plan::default()
        };
        plan.scratch_write_bytes_max()
    }

    #[test]
    fn scratch_file_is_written_once_more_for_a_later_workload_that_writes_blocks_in_part() {
        let (part, whole) = (writes("part", 1024), writes("whole", 4096));
        let size = HELD_BYTES_MAX;
        for (size, list, filled) in [
            (size, vec![&part], size),
            (size, vec![&part, &whole], size),
            (size, vec![&whole, &part], 2 * size),
            // More is not written once more.
            (size + 4096, vec![&whole, &part], size + 4096),
        ] {
            let own = (list.len() as u64) << 20;
            let workloads = list.into_iter().cloned().collect();
            assert_eq!(most_bytes(size, workloads), Some(filled + own));
        }
    }
}
