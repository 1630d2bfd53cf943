//! Computes the figures of an entry of fio's output, which is about a job or about all jobs of a
//! group, from the measurements of its members.

use super::counted_ops::{counted_kinds, is_done_in_warmup, ops_of_kinds};
use super::rates::{IntervalSum, add_to_intervals};
use super::sync_counts::{call_in_order, fsyncs};
use super::values::{Base, NumberForm, bytes};
use crate::jobs::{DescribedJob, DescribedJobs, JobOption};
use diskproof_model::errno;
use diskproof_model::fio_bins::{PERCENTILES, RateSamples, depth_shares};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::latency_search::DepthTrial;
use diskproof_model::measurement::{CpuTime, Measurement, OpKind, SteadyOutcome, StopReason};
use diskproof_model::plan::SyncPolicy;
use diskproof_model::shape::{FioSyncCall, IoPriority, LatencyTarget, SteadyEnd, SteadyFigure};

/// One entry of the output.
#[derive(Debug, Clone, Default)]
pub(super) struct JobEntry {
    /// The name of its first job.
    pub name: String,
    /// The number of its group, from 0.
    pub group: usize,
    /// True of an entry that fio prints, empty, in place of a job without figures (`stats=0`).
    pub is_blank: bool,
    pub options: Vec<JobOption>,
    /// How the output shows sizes and rates.
    pub(super) form: NumberForm,
    /// Copies, over all jobs of the entry.
    pub jobs: u64,
    /// Files that each of them visits in turn.
    pub files: u64,
    /// Requests in flight, as the job asks for them; 0 where it did not run.
    pub depth: u32,
    /// True if it ran without a file, as its `opendir` found none.
    pub finds_no_file: bool,
    /// The error that ended a job of the entry, or that its requests had.
    pub error: Option<JobError>,
    /// True if the reads have all others as well (`unified_rw_reporting=mixed`).
    pub is_mixed: bool,
    /// The sum of all directions, beside each (`unified_rw_reporting=both`).
    pub both: Option<DirectionStats>,
    /// Reads, writes and trims.
    pub directions: [DirectionStats; 3],
    /// The latencies of syncs.
    pub sync: LatencyHistogram,
    /// The number of syncs that fio reports.
    pub syncs: u64,
    /// The sum over all copies, of each the mean over its files.
    pub runtime_ms: u64,
    /// The processor time of the program, in percent of the run time.
    pub user_percent: f64,
    /// The processor time of the kernel, in percent of the run time.
    pub system_percent: f64,
    /// Requests in flight on average, of each copy.
    pub in_flight: f64,
    /// True if the times to completion have percentiles (`clat_percentiles`).
    pub shows_clat: bool,
    /// True if the whole latencies have percentiles (`lat_percentiles`).
    pub shows_lat: bool,
    /// True if the times to completion are left out (`disable_clat`, `gtod_reduce`).
    pub hides_clat: bool,
    /// True if the whole latencies are left out (`disable_lat`, `gtod_reduce`).
    pub hides_lat: bool,
    /// The percentiles to show, in ascending order.
    pub percentiles: Vec<f64>,
    /// The steadiness of the rate, where the job asks for it (`steadystate`).
    pub steady: Option<SteadyEntry>,
    /// The author's description of the job.
    pub description: Option<String>,
    /// The errors after which it went on (`continue_on_error`); `None` where it would end.
    pub continued: Option<ContinuedErrors>,
    /// The latency for which the depth was searched (`latency_target`).
    pub latency_target: Option<LatencyTarget>,
}

/// fio's error of a block that verify finds bad.
const BAD_BLOCK: &str = "EILSEQ";

/// An error of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JobError {
    pub number: i32,
    /// The name, such as `EIO`.
    pub name: String,
}

impl JobError {
    pub(super) fn named(name: &str) -> Self {
        Self {
            number: error_number(name),
            name: name.to_owned(),
        }
    }
}

/// Errors of requests after which a job went on.
#[derive(Debug, Clone, Default)]
pub(super) struct ContinuedErrors {
    pub errors: u64,
    /// The name of the first one; of those of one measurement, in the order of the names, since
    /// their times are not kept.
    pub first: Option<String>,
}

impl ContinuedErrors {
    fn add(&mut self, measurement: &Measurement) {
        for (name, count) in measurement.ops.values().flat_map(|op| &op.errors) {
            self.errors += count;
            self.first.get_or_insert_with(|| name.clone());
        }
        if let Some(verify) = &measurement.verify
            && verify.bad_blocks > 0
        {
            self.errors += verify.bad_blocks;
            self.first.get_or_insert_with(|| BAD_BLOCK.to_owned());
        }
    }

    /// The number of the first error; 0 without errors.
    pub(super) fn first_number(&self) -> i32 {
        match &self.first {
            Some(name) => error_number(name),
            None => 0,
        }
    }

    /// The name of the first error; `Success` without errors.
    pub(super) fn first_name(&self) -> &str {
        self.first.as_deref().unwrap_or("Success")
    }
}

/// True if a job goes on after an error of a request. As in fio, errors that are ignored count,
/// too, unless the other option comes later.
fn continues_after_errors(described: &DescribedJobs, job: &DescribedJob) -> bool {
    let continues = match described.value(job, "continue_on_error").as_deref() {
        None | Some("none" | "0") => false,
        Some(_) => true,
    };
    let ignored_errors = described.value(job, "ignore_error").unwrap_or_default();
    let ignores_any = ignored_errors
        .split(',')
        .any(|errors| !errors.trim().is_empty() && !errors.trim().starts_with(':'));
    let ignores = ignores_any && described.is_set_later(job, "ignore_error", "continue_on_error");
    continues || ignores
}

impl JobEntry {
    /// An entry of no job.
    pub(super) fn blank() -> Self {
        Self {
            is_blank: true,
            ..Self::default()
        }
    }

    /// Takes the options that fio shows of the last job of an entry, and forgets those of the job
    /// before it. The caller adds measurements afterwards.
    pub(super) fn take_options(&mut self, described: &DescribedJobs, job: &DescribedJob) {
        self.options.clone_from(&job.options);
        self.shows_clat = described.is_not_switched_off(job, "clat_percentiles");
        self.shows_lat = described.is_switched_on(job, "lat_percentiles");
        self.depth = depth(described, job);
        self.hides_clat = described.is_time_disabled(job, "disable_clat");
        self.hides_lat = described.is_time_disabled(job, "disable_lat");
        self.percentiles = percentile_list(described, job);
        self.continued = if continues_after_errors(described, job) {
            Some(ContinuedErrors::default())
        } else {
            None
        };
    }

    /// As in fio, the sync at the end has no figures, and calls of fdatasync and
    /// sync_file_range have times but no number.
    fn add_syncs(&mut self, measurement: &Measurement) {
        let call = match measurement.workload.sync {
            SyncPolicy::AtEnd => return,
            SyncPolicy::Every { call, .. } => call.into(),
            SyncPolicy::None
            | SyncPolicy::WithWrite { .. }
            | SyncPolicy::Shared { .. }
            | SyncPolicy::OtherDescriptor { .. } => {
                call_in_order(measurement.workload.shape.order.fio.as_deref())
            }
        };
        let Some(sync) = measurement.ops.get(&OpKind::Sync) else {
            return;
        };
        if !self.hides_clat && !is_done_in_warmup(measurement) {
            self.sync.merge(&sync.latency);
        }
        if call == FioSyncCall::Fsync {
            let order = measurement.workload.shape.order.fio.as_deref();
            let written = measurement.ops.get(&OpKind::Write);
            let writes = written.map_or(0, |op| op.latency.count());
            self.syncs += fsyncs(order, sync.latency.count(), writes);
        }
    }

    /// The times from submission to completion of a direction, as the output shows them.
    pub(super) fn clat(&self, stats: &DirectionStats) -> LatencyHistogram {
        if self.hides_clat {
            LatencyHistogram::new()
        } else {
            stats.latency.clone()
        }
    }

    /// The whole latencies of a direction, as the output shows them.
    pub(super) fn lat(&self, stats: &DirectionStats) -> LatencyHistogram {
        if self.hides_lat {
            LatencyHistogram::new()
        } else {
            stats.latency.clone()
        }
    }

    /// The latencies by priority with fio's name of them, as the output shows them; none where all
    /// requests have one priority.
    pub(super) fn by_priority<'s>(
        &self,
        stats: &'s DirectionStats,
    ) -> (&'static str, &'s [PriorityLatency]) {
        let (name, is_hidden) = if self.shows_lat {
            ("lat", self.hides_lat)
        } else {
            ("clat", self.hides_clat)
        };
        match stats.priorities.len() {
            2.. if !is_hidden => (name, &stats.priorities),
            _ => (name, &[]),
        }
    }

    /// The shares of the depths in percent, all 0 of a job that did not run.
    pub(super) fn depth_shares(&self) -> Vec<(&'static str, f64)> {
        let mut shares = depth_shares(self.in_flight);
        if self.depth == 0 {
            for (_, share) in &mut shares {
                *share = 0.0;
            }
        }
        shares
    }

    /// The number of the entry's error; 0 without one.
    pub(super) fn error_number(&self) -> i32 {
        match &self.error {
            Some(error) => error.number,
            None => 0,
        }
    }

    /// Takes the error that ended a job, or that its requests had. The limits of a job and its
    /// verification come last, since they say more than the error of a request.
    pub(super) fn take_error(&mut self, measurement: &Measurement) {
        if self.error.is_none() {
            let mut names = measurement.ops.values().flat_map(|op| op.errors.keys());
            self.error = names.next().map(|name| JobError::named(name));
        }
        match measurement.stopped {
            StopReason::TooSlow => self.error = Some(JobError::named("ETIMEDOUT")),
            StopReason::BelowFloor => self.error = Some(JobError::named("EIO")),
            StopReason::Precision
            | StopReason::Time
            | StopReason::Bytes
            | StopReason::Ops
            | StopReason::Companion
            | StopReason::Overloaded
            | StopReason::Steady
            | StopReason::Unread
            | StopReason::Interrupted
            | StopReason::Errors
            | StopReason::Hung => {}
        }
        // As in fio, no single request may take longer where none is in flight beside it.
        if let Some(target) = measurement.workload.shape.latency_target
            && target.percent >= 100.0
            && measurement.workload.depth == 1
            && !DepthTrial::judge(&target, measurement).holds
        {
            self.error = Some(JobError::named("ETIMEDOUT"));
        }
        // Also a block that has no checksum.
        if let Some(verify) = &measurement.verify
            && verify.bad_blocks > 0
        {
            self.error = Some(JobError::named(BAD_BLOCK));
        }
    }

    /// The latency that the job searches a depth for, or what fio prints without one.
    pub(super) fn searched_latency(&self) -> SearchedLatency {
        match self.latency_target {
            Some(target) => SearchedLatency {
                latency_ns: target.latency_ns,
                window_us: target.window_ns / 1000,
                percent: target.percent,
            },
            None => SearchedLatency {
                latency_ns: 0,
                window_us: 0,
                percent: 100.0,
            },
        }
    }
}

/// `latency_target`, `latency_window` and `latency_percentile` of a job.
pub(super) struct SearchedLatency {
    pub latency_ns: u64,
    pub window_us: u64,
    pub percent: f64,
}

/// The depth that a job asks for.
fn depth(described: &DescribedJobs, job: &DescribedJob) -> u32 {
    match described.value(job, "iodepth") {
        Some(text) => bytes(&text, Base::Binary).unwrap_or(1) as u32,
        None => 1,
    }
}

/// The percentiles that a job asks for, or those of fio.
fn percentile_list(described: &DescribedJobs, job: &DescribedJob) -> Vec<f64> {
    let list = described.value(job, "percentile_list").unwrap_or_default();
    let mut percentiles = Vec::new();
    for word in list.split(':') {
        if let Ok(percentile) = word.parse::<f64>() {
            percentiles.push(percentile);
        }
    }
    if percentiles.is_empty() {
        return PERCENTILES.to_vec();
    }
    percentiles.sort_by(f64::total_cmp);
    percentiles
}

/// The condition under which a rate is steady, and the rates at the end.
#[derive(Debug, Clone)]
pub(super) struct SteadyEntry {
    pub end: SteadyEnd,
    pub outcome: SteadyOutcome,
}

impl SteadyEntry {
    /// fio prints as many rates as the duration has; those that were not taken are 0.
    pub(super) fn padded(&self, samples: &[u64]) -> Vec<u64> {
        let mut padded = samples.to_vec();
        padded.resize(self.end.samples().max(samples.len()), 0);
        padded
    }

    /// The mean of such rates over the whole duration, in which those that were not taken count as
    /// 0.
    pub(super) fn mean(&self, samples: &[u64]) -> u64 {
        samples.iter().sum::<u64>() / self.end.samples().max(1) as u64
    }

    /// fio's word for the rate.
    pub(super) fn figure(&self) -> &'static str {
        match self.end.figure {
            SteadyFigure::Ops => "iops",
            SteadyFigure::Bytes => "bw",
            SteadyFigure::Latency => "lat",
        }
    }

    /// The unit of the limit.
    pub(super) fn unit(&self) -> &'static str {
        if self.end.is_percent { "%" } else { "" }
    }
}

/// The figures of reads, of writes, or of trims.
#[derive(Debug, Clone, Default)]
pub(super) struct DirectionStats {
    /// Operations, also of a job that is done in its warm-up, which has no latencies.
    pub count: u64,
    pub bytes: u64,
    /// Operations that moved fewer bytes than requested.
    pub short: u64,
    /// The time of the slowest member, and of the reads that verify.
    pub runtime_ms: u64,
    pub latency: LatencyHistogram,
    /// The latencies by the priority of the requests.
    pub priorities: Vec<PriorityLatency>,
    pub kib_per_second: RateSamples,
    pub iops: RateSamples,
    /// The rates of the members; `None` without operations.
    pub rates: Option<RateSpan>,
}

/// The latencies of requests of one priority.
#[derive(Debug, Clone)]
pub(super) struct PriorityLatency {
    pub priority: IoPriority,
    pub latency: LatencyHistogram,
}

/// The bytes per second of the slowest and of the fastest member.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RateSpan {
    pub least: u64,
    pub most: u64,
}

impl RateSpan {
    /// The span of a single rate.
    fn single(rate: u64) -> Self {
        Self {
            least: rate,
            most: rate,
        }
    }

    /// The span from the slowest to the fastest with another rate.
    fn including(self, rate: u64) -> Self {
        Self {
            least: self.least.min(rate),
            most: self.most.max(rate),
        }
    }
}

impl DirectionStats {
    /// Bytes per second of all transfers.
    pub(super) fn rate(&self) -> u64 {
        match self.runtime_ms {
            0 => 0,
            ms => (u128::from(self.bytes) * 1000 / u128::from(ms)) as u64,
        }
    }

    /// Operations per second of all transfers.
    pub(super) fn iops(&self) -> f64 {
        match self.runtime_ms {
            0 => 0.0,
            ms => self.count as f64 * 1000.0 / ms as f64,
        }
    }

    /// Adds the operations of these kinds; their longest run time counts.
    fn add(&mut self, measurement: &Measurement, kinds: &[OpKind]) {
        let mut bytes = 0;
        let mut has_ops = false;
        for op in ops_of_kinds(measurement, kinds) {
            if op.count == 0 {
                continue;
            }
            has_ops = true;
            self.count += op.count;
            self.bytes += op.bytes;
            self.short += op.short;
            if !is_done_in_warmup(measurement) {
                self.add_latency(measurement, &op.latency);
            }
            bytes += op.bytes;
        }
        if !has_ops {
            return;
        }
        let runtime_ms = milliseconds(measurement.wall_ns);
        self.runtime_ms = self.runtime_ms.max(runtime_ms);
        let rate = (u128::from(bytes) * 1000 / u128::from(runtime_ms)) as u64;
        self.rates = Some(match self.rates {
            Some(rates) => rates.including(rate),
            None => RateSpan::single(rate),
        });
    }

    /// Adds latencies to those of all, and to those of their priority: without one of its own a job
    /// has that of fio's default, 0/0.
    fn add_latency(&mut self, measurement: &Measurement, latency: &LatencyHistogram) {
        self.latency.merge(latency);
        if latency.count() == 0 {
            return;
        }
        let scheduling = measurement.workload.shape.threads.scheduling.as_ref();
        let priority = scheduling
            .and_then(|scheduling| scheduling.io_priority)
            .unwrap_or(IoPriority { class: 0, level: 0 });
        match self
            .priorities
            .iter_mut()
            .find(|known| known.priority == priority)
        {
            Some(known) => known.latency.merge(latency),
            None => self.priorities.push(PriorityLatency {
                priority,
                latency: latency.clone(),
            }),
        }
    }

    /// Adds the reads that verified the writes. As in fio, they follow the reads of the job itself.
    fn add_read_back(&mut self, measurement: &Measurement) {
        let Some(verified) = &measurement.verify else {
            return;
        };
        let Some(read) = &verified.read_back else {
            return;
        };
        self.count += read.latency.count();
        self.bytes += read.bytes;
        let is_in_warmup = is_done_in_warmup(measurement)
            && measurement.wall_ns.saturating_add(read.wall_ns) < measurement.workload.warmup_ns;
        if !is_in_warmup {
            self.add_latency(measurement, &read.latency);
        }
        self.runtime_ms += milliseconds(read.wall_ns);
        self.rates = Some(RateSpan::single(self.rate()));
    }

    /// Takes the rates over time of all members together. As in fio, each copy of a job counts the
    /// samples again.
    fn set_samples(&mut self, sums: &[IntervalSum], copies: u64) {
        let kib = sums.iter().map(|sum| sum.kib_per_second());
        let ops = sums.iter().map(|sum| sum.ops_per_second());
        self.kib_per_second = RateSamples::from_rates(kib);
        self.iops = RateSamples::from_rates(ops);
        self.kib_per_second.count *= copies;
        self.iops.count *= copies;
    }
}

/// Whole milliseconds, and at least one.
fn milliseconds(ns: u64) -> u64 {
    (ns / 1_000_000).max(1)
}

/// Returns the entry with the figures of its measurements: first their sums, then the means, which
/// need the sums, and the rates over time.
pub(super) fn with_figures(mut entry: JobEntry, members: &[&Measurement]) -> JobEntry {
    if members.is_empty() && !entry.finds_no_file {
        entry.depth = 0;
    }
    let mut cpu = CpuTime::default();
    for measurement in members {
        entry.add_measurement(measurement);
        cpu.user_ns += measurement.cpu.user_ns;
        cpu.system_ns += measurement.cpu.system_ns;
    }
    entry.runtime_ms /= entry.files.max(1);
    for stats in &mut entry.directions {
        let rate = stats.rate();
        if entry.files > 1 {
            // The rates of single files are not those of a member.
            stats.rates = None;
        }
        if stats.rates.is_none() && rate > 0 {
            stats.rates = Some(RateSpan::single(rate));
        }
    }
    entry.in_flight /= entry.jobs.max(1) as f64;
    let all_ns = entry.runtime_ms.max(1) as f64 * 1e6;
    entry.user_percent = cpu.user_ns as f64 * 100.0 / all_ns;
    entry.system_percent = cpu.system_ns as f64 * 100.0 / all_ns;
    entry.set_samples(members);
    entry
}

impl JobEntry {
    /// Adds a measurement to the sums.
    fn add_measurement(&mut self, measurement: &Measurement) {
        let kinds = counted_kinds(measurement);
        let kinds_of_directions = self.kinds_of_directions(&kinds);
        for (stats, kinds) in self.directions.iter_mut().zip(kinds_of_directions) {
            stats.add(measurement, kinds);
        }
        if let Some(both) = &mut self.both {
            both.add(measurement, &kinds);
            both.add_read_back(measurement);
        }
        self.directions[0].add_read_back(measurement);
        self.add_syncs(measurement);
        if let Some(target) = measurement.workload.shape.latency_target {
            self.latency_target = Some(target);
            self.depth = measurement.workload.depth;
        }
        self.runtime_ms +=
            milliseconds(measurement.wall_ns) * u64::from(measurement.workload.workers);
        self.in_flight += measurement.achieved_depth;
        let steady_end = measurement.workload.shape.ends.steady;
        if let (Some(end), Some(outcome)) = (steady_end, &measurement.steady) {
            let outcome = outcome.clone();
            self.steady.get_or_insert(SteadyEntry { end, outcome });
        }
        if let Some(continued) = &mut self.continued {
            continued.add(measurement);
        }
        self.take_error(measurement);
    }

    /// Takes the rates over time from all measurements of the entry, of the operations that its
    /// sums count.
    fn set_samples(&mut self, members: &[&Measurement]) {
        let mut samples_of_directions: [Vec<IntervalSum>; 3] = Default::default();
        let mut samples_of_both = Vec::new();
        for measurement in members {
            let kinds = counted_kinds(measurement);
            let kinds_of_directions = self.kinds_of_directions(&kinds);
            for (samples, kinds) in samples_of_directions.iter_mut().zip(kinds_of_directions) {
                add_to_intervals(samples, measurement, kinds);
            }
            add_to_intervals(&mut samples_of_both, measurement, &kinds);
        }
        for (stats, samples) in self.directions.iter_mut().zip(&samples_of_directions) {
            stats.set_samples(samples, self.jobs);
        }
        if let Some(both) = &mut self.both {
            both.set_samples(&samples_of_both, self.jobs);
        }
    }

    /// The kinds of operations of each direction: one, or all in the first direction of an entry
    /// with mixed reads.
    fn kinds_of_directions<'k>(&self, kinds: &'k [OpKind]) -> Vec<&'k [OpKind]> {
        if self.is_mixed {
            vec![kinds]
        } else {
            kinds.chunks(1).collect()
        }
    }
}

/// The number of an error; that of EIO for an unknown name.
fn error_number(name: &str) -> i32 {
    const EIO: i32 = 5;
    match errno::number(name) {
        Some(number) => number as i32,
        None => EIO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::measurement;
    use diskproof_model::measurement::{OpMeasurement, ReadBack, VerifyResult};
    use diskproof_model::plan::Workload;
    use diskproof_model::series::{Cell, TimeSeries};
    use diskproof_model::shape::ThreadScheduling;

    /// A measurement of so many seconds with 100 reads of 4 KiB in each, in cells of this length.
    fn steady_reads(seconds: u64, interval_ns: u64) -> Measurement {
        let wall_ns = seconds * 1_000_000_000;
        let mut reads = measurement(&Workload::named("a"), OpKind::Read, 100 * seconds, wall_ns);
        let cells = wall_ns.div_ceil(interval_ns);
        let mut series = TimeSeries::new(interval_ns);
        for index in 0..cells {
            let start_ns = index * interval_ns;
            let end_ns = (start_ns + interval_ns).min(reads.wall_ns);
            let ops = (end_ns - start_ns) / 10_000_000;
            let cell = Cell {
                ops,
                bytes: ops * 4096,
                ..Cell::default()
            };
            series.add(start_ns, &cell, usize::MAX);
        }
        let op = OpMeasurement {
            series,
            ..OpMeasurement::default()
        };
        reads.ops = [(OpKind::Read, op)].into_iter().collect();
        reads
    }

    #[test]
    fn samples_of_a_constant_rate_are_constant_whatever_the_cells() {
        for interval_ns in [
            10_000_000,
            40_000_000,
            160_000_000,
            640_000_000,
            5_120_000_000,
        ] {
            let reads = steady_reads(64, interval_ns);
            let mut samples = Vec::new();
            add_to_intervals(&mut samples, &reads, &[OpKind::Read]);
            assert_eq!(samples.len(), 128, "{interval_ns}");
            for sample in samples {
                assert!((sample.ops - 50.0).abs() < 1e-6, "{interval_ns} {sample:?}");
            }
        }
    }

    #[test]
    fn job_that_is_done_in_its_warm_up_has_amounts_without_latencies() {
        let mut reads = steady_reads(2, 10_000_000);
        let op = reads.ops.get_mut(&OpKind::Read).unwrap();
        op.count = 200;
        op.latency.record_many(1000, 200);
        reads.began_ns = Some(2_000);
        const WARMUP_NS: u64 = 5_000_000_000;
        for (warmup_ns, start_ns, latencies, samples) in [
            (WARMUP_NS, 1_000, 0, 0),
            (WARMUP_NS, WARMUP_NS + 1_000, 200, 4),
            (0, 1_000, 200, 4),
        ] {
            reads.workload.warmup_ns = warmup_ns;
            reads.start_ns = start_ns;
            let entry = with_figures(JobEntry::default(), &[&reads]);
            let stats = &entry.directions[0];
            assert_eq!((stats.count, stats.latency.count()), (200, latencies));
            let mut taken = Vec::new();
            add_to_intervals(&mut taken, &reads, &[OpKind::Read]);
            assert_eq!(taken.len(), samples);
        }
    }

    /// As in fio, which shows them in JSON and in its normal output where they are several.
    #[test]
    fn latencies_of_a_group_are_apart_by_priority() {
        let mut urgent = steady_reads(1, 10_000_000);
        let op = urgent.ops.get_mut(&OpKind::Read).unwrap();
        op.count = 100;
        op.latency.record_many(1000, 100);
        let usual = urgent.clone();
        urgent.workload.shape.threads.scheduling = Some(ThreadScheduling {
            io_priority: Some(IoPriority { class: 2, level: 4 }),
            ..ThreadScheduling::default()
        });
        let entry = JobEntry {
            shows_clat: true,
            percentiles: vec![50.0],
            ..JobEntry::default()
        };
        let alone = with_figures(entry.clone(), &[&urgent, &urgent]);
        assert!(alone.by_priority(&alone.directions[0]).1.is_empty());
        let group = with_figures(entry, &[&urgent, &usual, &urgent]);
        let (name, priorities) = group.by_priority(&group.directions[0]);
        let counts: Vec<(u8, u8, u64)> = priorities
            .iter()
            .map(|latencies| {
                (
                    latencies.priority.class,
                    latencies.priority.level,
                    latencies.latency.count(),
                )
            })
            .collect();
        assert_eq!((name, counts), ("clat", vec![(2, 4, 200), (0, 0, 100)]));
    }

    /// As in fio, where the whole job with its read-back is over before the warm-up is.
    #[test]
    fn reads_back_in_the_warm_up_have_no_latencies() {
        let mut writes = steady_reads(1, 10_000_000);
        let mut read = ReadBack {
            bytes: 8192,
            wall_ns: 1_000_000_000,
            ..ReadBack::default()
        };
        read.latency.record_many(1000, 2);
        writes.verify = Some(VerifyResult {
            read_back: Some(read),
            ..VerifyResult::default()
        });
        writes.ops.clear();
        writes.began_ns = Some(0);
        for (warmup_ns, latencies) in [(5_000_000_000, 0), (1_500_000_000, 2), (0, 2)] {
            writes.workload.warmup_ns = warmup_ns;
            writes.start_ns = 0;
            let entry = with_figures(JobEntry::default(), &[&writes]);
            let reads = &entry.directions[0];
            assert_eq!((reads.count, reads.latency.count()), (2, latencies));
        }
    }

    #[test]
    fn write_with_its_sync_is_sampled_once() {
        let mut writes = steady_reads(2, 10_000_000);
        let op = writes.ops.remove(&OpKind::Read).unwrap();
        writes.ops.insert(OpKind::Write, op.clone());
        writes.ops.insert(OpKind::Commit, op.clone());
        let mut entry = JobEntry {
            is_mixed: true,
            jobs: 1,
            ..JobEntry::default()
        };
        entry.set_samples(&[&writes]);
        assert_eq!(entry.directions[0].iops.mean, 100.0);
        // A measurement of commits alone has writes.
        writes.ops.remove(&OpKind::Write);
        entry.is_mixed = false;
        entry.set_samples(&[&writes]);
        assert_eq!(entry.directions[1].iops.mean, 100.0);
    }
}
