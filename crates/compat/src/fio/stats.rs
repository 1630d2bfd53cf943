//! The figures of fio from measurements: one entry for each job, or for all jobs of a group.

use super::values::{Base, bytes, short_time_ns};
use crate::jobs::{DescribedJob, DescribedJobs, JobOption, JobWorkload};
use diskproof_model::errno;
use diskproof_model::fio_bins::{PERCENTILES, RateSamples, bins, depth_shares};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::latency_search::{DepthTrial, LatencySearch};
use diskproof_model::measurement::{
    CpuTime, Measurement, OpKind, OpMeasurement, SteadyOutcome, StopReason,
};
use diskproof_model::plan::SyncPolicy;
use diskproof_model::shape::{FioOrder, FioSyncCall, IoPriority};
use diskproof_model::shape::{LatencyTarget, SteadyEnd, SteadyFigure};
use std::collections::{BTreeMap, BTreeSet};

/// Nanoseconds of a second.
const SECOND_NS: f64 = 1e9;
/// fio samples rates at this interval (its option `bwavgtime`).
const SAMPLE_NS: u64 = 500_000_000;
const KIB: f64 = 1024.0;

/// One entry of the output.
#[derive(Debug, Clone, Default)]
pub(super) struct JobEntry {
    pub name: String,
    pub group: usize,
    /// True of an entry that fio prints, empty, in place of a job without figures (`stats=0`).
    pub is_blank: bool,
    pub options: Vec<JobOption>,
    /// The unit in which the output shows sizes first.
    pub base: Base,
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
    /// The first one by its name.
    pub first: Option<String>,
}

impl ContinuedErrors {
    fn add(&mut self, measurement: &Measurement) {
        for (name, count) in measurement.ops.values().flat_map(|op| &op.errors) {
            self.errors += count;
            self.first.get_or_insert_with(|| name.clone());
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
    fn blank() -> Self {
        Self {
            is_blank: true,
            ..Self::default()
        }
    }

    /// Takes what fio shows of the last job of an entry.
    fn take_options(&mut self, described: &DescribedJobs, job: &DescribedJob) {
        self.options.clone_from(&job.options);
        self.shows_clat = described.is_not_switched_off(job, "clat_percentiles");
        self.shows_lat = described.is_switched_on(job, "lat_percentiles");
        self.depth = depth(described, job);
        self.hides_clat = is_time_disabled(described, job, "disable_clat");
        self.hides_lat = is_time_disabled(described, job, "disable_lat");
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
    fn take_error(&mut self, measurement: &Measurement) {
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
            self.error = Some(JobError::named("EILSEQ"));
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

/// The call between the writes of a job in the order of fio; fsync where it has that, too.
fn call_in_order(order: Option<&FioOrder>) -> FioSyncCall {
    let Some(order) = order else {
        return FioSyncCall::Fsync;
    };
    let mut call = FioSyncCall::Fsync;
    for sync in &order.syncs {
        if sync.call == FioSyncCall::Fsync {
            return sync.call;
        }
        call = sync.call;
    }
    call
}

/// The calls of fsync among all syncs between so many writes. Where a job has other calls as well,
/// their share is that of the writes at which one is due and fsync is not.
fn fsyncs(order: Option<&FioOrder>, syncs: u64, writes: u64) -> u64 {
    let Some(order) = order else {
        return syncs;
    };
    let mut fsync_periods = Vec::new();
    let mut all_periods = Vec::new();
    for sync in &order.syncs {
        let period = u128::from(sync.writes).max(1);
        all_periods.push(period);
        if sync.call == FioSyncCall::Fsync {
            fsync_periods.push(period);
        }
    }
    if all_periods.len() < 2 {
        return syncs;
    }
    // None is due behind the last write.
    let before_last = u128::from(writes.saturating_sub(1));
    let fsyncs_due = writes_with_any(&fsync_periods, before_last);
    let all_due = writes_with_any(&all_periods, before_last);
    (u128::from(syncs) * fsyncs_due).div_ceil(all_due.max(1)) as u64
}

/// How many of the first so many writes are a multiple of any of these periods, which are above 0:
/// those of the first period and those of the others, less those of both.
fn writes_with_any(periods: &[u128], writes: u128) -> u128 {
    let Some((first, others)) = periods.split_first() else {
        return 0;
    };
    let mut common_periods = Vec::new();
    for period in others {
        common_periods.push(least_common_multiple(*first, *period));
    }
    let writes_with_both = writes_with_any(&common_periods, writes);
    writes / first + writes_with_any(others, writes) - writes_with_both
}

/// The least common multiple of two numbers above 0.
fn least_common_multiple(one: u128, other: u128) -> u128 {
    assert!(one > 0 && other > 0, "{one} and {other}");
    let (mut divisor, mut remainder) = (one, other);
    while remainder > 0 {
        (divisor, remainder) = (remainder, divisor % remainder);
    }
    one / divisor * other
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

    /// The mean of such rates.
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
    pub count: u64,
    pub bytes: u64,
    /// Operations that moved fewer bytes than requested.
    pub short: u64,
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
    fn at(rate: u64) -> Self {
        Self {
            least: rate,
            most: rate,
        }
    }

    /// The span with another rate in it.
    fn with(self, rate: u64) -> Self {
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
            Some(rates) => rates.with(rate),
            None => RateSpan::at(rate),
        });
    }

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
        self.rates = Some(RateSpan::at(self.rate()));
    }

    /// Takes the rates over time of all members together. As in fio, each copy of a job counts the
    /// samples again.
    fn set_samples(&mut self, samples: &[SampleSum], copies: u64) {
        let per_second = SECOND_NS / SAMPLE_NS as f64;
        let kib = samples.iter().map(|sample| sample.bytes / KIB * per_second);
        let ops = samples.iter().map(|sample| sample.ops * per_second);
        self.kib_per_second = RateSamples::from_rates(kib);
        self.iops = RateSamples::from_rates(ops);
        self.kib_per_second.count *= copies;
        self.iops.count *= copies;
    }
}

/// What all members of an entry moved in one of fio's intervals.
#[derive(Debug, Clone, Copy, Default)]
struct SampleSum {
    bytes: f64,
    ops: f64,
}

/// Adds the operations of these kinds to the samples, one for each whole interval of fio. A cell of
/// the series counts in each interval by the share of its time there: from 41 s on the cells no
/// longer divide the intervals, and from 5.5 minutes on they are longer.
fn add_samples(samples: &mut Vec<SampleSum>, measurement: &Measurement, kinds: &[OpKind]) {
    if is_done_in_warmup(measurement) {
        return;
    }
    let count = (measurement.wall_ns / SAMPLE_NS) as usize;
    for op in ops_of_kinds(measurement, kinds) {
        if samples.len() < count {
            samples.resize(count, SampleSum::default());
        }
        let mut start_ns = op.series.start_ns;
        for cell in &op.series.cells {
            let next_ns = start_ns.saturating_add(op.series.interval_ns);
            // The last cell ends with the measurement.
            let end_ns = next_ns.min(measurement.wall_ns).max(start_ns + 1);
            let mut part_ns = start_ns;
            while part_ns < end_ns {
                let slot = part_ns / SAMPLE_NS;
                let part_end_ns = end_ns.min((slot + 1) * SAMPLE_NS);
                let share = (part_end_ns - part_ns) as f64 / (end_ns - start_ns) as f64;
                if let Some(sample) = samples[..count].get_mut(slot as usize) {
                    sample.bytes += cell.bytes as f64 * share;
                    sample.ops += cell.ops as f64 * share;
                }
                part_ns = part_end_ns;
            }
            start_ns = next_ns;
        }
    }
}

/// True of a job that was done before its warm-up ended. As in fio, its operations count, and have
/// no latencies and no rates over time.
fn is_done_in_warmup(measurement: &Measurement) -> bool {
    let warmup_ns = measurement.workload.warmup_ns;
    let Some(began_ns) = measurement.began_ns else {
        return false;
    };
    // Its measured time begins with its first worker, give or take the start of a thread.
    warmup_ns > 0 && measurement.start_ns < began_ns + warmup_ns / 2
}

/// The measured operations of these kinds.
fn ops_of_kinds<'m>(measurement: &'m Measurement, kinds: &[OpKind]) -> Vec<&'m OpMeasurement> {
    let mut ops = Vec::new();
    for kind in kinds {
        ops.extend(measurement.ops.get(kind));
    }
    ops
}

/// True if a job turns a time off by this option of its own, or by the one for all times.
pub(super) fn is_time_disabled(
    described: &DescribedJobs,
    job: &DescribedJob,
    option: &str,
) -> bool {
    described.is_switched_on(job, option) || described.is_switched_on(job, "gtod_reduce")
}

/// Whole milliseconds, and at least one.
fn milliseconds(ns: u64) -> u64 {
    (ns / 1_000_000).max(1)
}

/// Figures of a distribution of latencies, in nanoseconds unless they are scaled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TimeFigures {
    pub min: u64,
    pub max: u64,
    pub mean: f64,
    pub deviation: f64,
}

impl TimeFigures {
    /// The figures in the unit that fio chooses: the largest in which they keep enough digits.
    pub(super) fn scaled(mut self) -> ScaledFigures {
        let mut unit = "nsec";
        for larger in ["usec", "msec"] {
            if self.min <= 2000 || self.max <= 99_999 || self.deviation <= 1000.0 {
                break;
            }
            self.min /= 1000;
            self.max /= 1000;
            self.mean /= 1000.0;
            self.deviation /= 1000.0;
            unit = larger;
        }
        ScaledFigures {
            figures: self,
            unit,
        }
    }
}

/// Figures of a distribution in the unit of this name.
pub(super) struct ScaledFigures {
    pub figures: TimeFigures,
    pub unit: &'static str,
}

/// The figures of a distribution, in nanoseconds.
pub(super) fn figures(histogram: &LatencyHistogram) -> TimeFigures {
    let mean = histogram.mean_ns();
    let (min, deviation) = match histogram.count() {
        0 => (0, 0.0),
        _ => (histogram.min_ns(), histogram.deviation_ns(mean)),
    };
    TimeFigures {
        min,
        max: histogram.max_ns(),
        mean,
        deviation,
    }
}

/// A latency that so many percent of all requests do not exceed.
pub(super) struct Percentile {
    pub percent: f64,
    pub ns: u64,
}

/// The percentiles of a list, as fio reads them from its bins.
pub(super) fn percentiles(histogram: &LatencyHistogram, list: &[f64]) -> Vec<Percentile> {
    let total = histogram.count();
    if total == 0 {
        return Vec::new();
    }
    let bins = bins(histogram);
    let mut percentiles = Vec::new();
    for percent in list {
        percentiles.push(Percentile {
            percent: *percent,
            ns: percentile_ns(&bins, total, *percent),
        });
    }
    percentiles
}

/// The bin in which so many percent of the total are reached.
fn percentile_ns(bins: &BTreeMap<u64, u64>, total: u64, percent: f64) -> u64 {
    let rank = (percent / 100.0 * total as f64).ceil().max(1.0) as u64;
    let mut latencies_up_to = 0;
    let mut last_ns = 0;
    for (ns, count) in bins {
        latencies_up_to += count;
        last_ns = *ns;
        if latencies_up_to >= rank {
            break;
        }
    }
    last_ns
}

/// An entry whose measurements are still being collected.
struct OpenEntry<'a> {
    entry: JobEntry,
    members: Vec<&'a Measurement>,
}

/// The entries, in the order of the jobs.
///
/// As in fio, a job with `stats=0` is in none of them, and a blank entry at the end stands for it.
pub(super) fn entries(described: &DescribedJobs, measurements: &[Measurement]) -> Vec<JobEntry> {
    let mut open = Vec::new();
    let mut all = Vec::new();
    for job in &described.jobs {
        add_job(&mut all, described, job, measurements);
        if described.is_not_switched_off(job, "stats") {
            add_job(&mut open, described, job, measurements);
        }
    }
    let mut entries = Vec::new();
    for OpenEntry { entry, members } in open {
        entries.push(with_figures(entry, &members));
    }
    entries.resize_with(all.len(), JobEntry::blank);
    entries
}

/// The number of jobs that failed, in which each copy counts. All copies of a workload count, and a
/// copy that visits several files counts once.
pub(super) fn failed_jobs(described: &DescribedJobs, measurements: &[Measurement]) -> u64 {
    let mut failed = 0;
    for job in &described.jobs {
        if job.fails_to_begin {
            failed += job.copies;
        }
        let mut failed_parts = BTreeSet::new();
        for workload in &job.workloads {
            let copies = failed_copies(&own_measurements(workload, measurements));
            if copies == 0 || (job.files > 1 && !failed_parts.insert(&workload.name)) {
                continue;
            }
            failed += copies;
        }
    }
    failed
}

fn failed_copies(members: &[&Measurement]) -> u64 {
    for measurement in members {
        let mut entry = JobEntry::default();
        entry.take_error(measurement);
        if entry.error.is_some() {
            return u64::from(measurement.workload.workers);
        }
    }
    0
}

/// Adds the measurements of a job to the entries. Each of its workloads has an entry of its own,
/// with two exceptions: the same part of the job on another of its files, and a job that is
/// reported with its group.
fn add_job<'a>(
    open: &mut Vec<OpenEntry<'a>>,
    described: &DescribedJobs,
    job: &DescribedJob,
    measurements: &'a [Measurement],
) {
    let is_grouped = described.is_switched_on(job, "group_reporting");
    if job.workloads.is_empty() {
        add_creating_job(open, described, job, is_grouped);
    }
    // The index of the entry of each part of the job, by the name of its workload.
    let mut entry_of_part: BTreeMap<&str, usize> = BTreeMap::new();
    for workload in &job.workloads {
        let measured = own_measurements(workload, measurements);
        if job.files > 1
            && let Some(index) = entry_of_part.get(workload.name.as_str())
        {
            open[*index].entry.files += 1;
            open[*index].members.extend(measured);
            continue;
        }
        let copies = job.copies_of_workload();
        match open.last_mut() {
            Some(last) if is_grouped && last.entry.group == job.group => {
                last.entry.take_options(described, job);
                last.entry.jobs += copies;
                last.members.extend(measured);
            }
            _ => open.push(OpenEntry {
                entry: entry_of(described, job, copies),
                members: measured,
            }),
        }
        // The first entry of a part stays its entry.
        entry_of_part
            .entry(&workload.name)
            .or_insert(open.len() - 1);
    }
}

/// Adds a job that only made its files, or whose `opendir` found none: an entry for each copy, or
/// one for its group.
fn add_creating_job(
    open: &mut Vec<OpenEntry<'_>>,
    described: &DescribedJobs,
    job: &DescribedJob,
    is_grouped: bool,
) {
    if is_grouped
        && let Some(last) = open.last_mut()
        && last.entry.group == job.group
    {
        last.entry.take_options(described, job);
        last.entry.jobs += job.copies;
        return;
    }
    let (entries, copies) = if is_grouped {
        (1, job.copies)
    } else {
        (job.copies, 1)
    };
    for _ in 0..entries {
        let mut entry = entry_of(described, job, copies);
        entry.finds_no_file = described.value(job, "opendir").is_some();
        open.push(OpenEntry {
            entry,
            members: Vec::new(),
        });
    }
}

/// The measurements of a workload; of a search for a depth, those at the depth that it found, or at
/// least.
fn own_measurements<'a>(
    workload: &JobWorkload,
    measurements: &'a [Measurement],
) -> Vec<&'a Measurement> {
    let first = measurements.first();
    let Some(target) = first.and_then(|first| first.workload.shape.latency_target) else {
        return measurements
            .iter()
            .filter(|measurement| workload.is_measured_by(measurement))
            .collect();
    };
    let depths = measurements.iter();
    let smallest_depth = depths.map(|measurement| measurement.workload.depth).min();
    let found_depth = LatencySearch::judge(target, &[], measurements).depth;
    let depth = found_depth.or(smallest_depth);
    measurements
        .iter()
        .filter(|measurement| Some(measurement.workload.depth) == depth)
        .collect()
}

/// An entry without figures, for so many copies of a job.
fn entry_of(described: &DescribedJobs, job: &DescribedJob, jobs: u64) -> JobEntry {
    let unified = described
        .value(job, "unified_rw_reporting")
        .unwrap_or_default();
    let mut entry = JobEntry {
        name: job.name.clone(),
        group: job.group,
        description: described.value(job, "description"),
        base: job.base,
        jobs,
        files: 1,
        is_mixed: matches!(unified.as_str(), "1" | "mixed"),
        both: matches!(unified.as_str(), "2" | "both").then(DirectionStats::default),
        latency_target: given_latency_target(described, job),
        ..JobEntry::default()
    };
    entry.take_options(described, job);
    entry
}

/// The latency that a job sets as its target; `None` without one.
fn given_latency_target(described: &DescribedJobs, job: &DescribedJob) -> Option<LatencyTarget> {
    let latency_ns = short_time_ns(&described.value(job, "latency_target")?).ok()?;
    let window = described.value(job, "latency_window").unwrap_or_default();
    let percent = described.value(job, "latency_percentile");
    Some(LatencyTarget {
        latency_ns,
        percent: percent.and_then(|text| text.parse().ok()).unwrap_or(100.0),
        window_ns: short_time_ns(&window).unwrap_or(0),
    })
}

/// The operations that fio counts as writes.
pub(super) fn write_kind(measurement: &Measurement) -> OpKind {
    if measurement.ops.contains_key(&OpKind::Write) {
        OpKind::Write
    } else {
        OpKind::Commit
    }
}

/// The operations that an entry counts. A write with a sync of its own is both a write and a
/// commit, and counts once.
fn counted_kinds(measurement: &Measurement) -> [OpKind; 3] {
    [OpKind::Read, write_kind(measurement), OpKind::Trim]
}

/// Returns the entry with the figures of its measurements: first their sums, then the means, which
/// need the sums, and the rates over time.
fn with_figures(mut entry: JobEntry, members: &[&Measurement]) -> JobEntry {
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
            stats.rates = Some(RateSpan::at(rate));
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
        let mut samples_of_directions: [Vec<SampleSum>; 3] = Default::default();
        let mut samples_of_both = Vec::new();
        for measurement in members {
            let kinds = counted_kinds(measurement);
            let kinds_of_directions = self.kinds_of_directions(&kinds);
            for (samples, kinds) in samples_of_directions.iter_mut().zip(kinds_of_directions) {
                add_samples(samples, measurement, kinds);
            }
            add_samples(&mut samples_of_both, measurement, &kinds);
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
    use diskproof_model::measurement::{ReadBack, VerifyResult};
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
            add_samples(&mut samples, &reads, &[OpKind::Read]);
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
            add_samples(&mut taken, &reads, &[OpKind::Read]);
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

    /// By hand: of the writes 1 to 12, 2, 4, 6, 8, 10, 12, 3 and 9 are multiples of 2 or 3, and 5
    /// is one of 5.
    #[test]
    fn writes_with_any_period_count_once() {
        assert_eq!(writes_with_any(&[], 12), 0);
        assert_eq!(writes_with_any(&[4], 12), 3);
        assert_eq!(writes_with_any(&[2, 3], 12), 8);
        assert_eq!(writes_with_any(&[2, 3, 5], 12), 9);
        assert_eq!(writes_with_any(&[2, 4], 12), 6);
        assert_eq!(least_common_multiple(4, 6), 12);
    }

    #[test]
    fn percentile_is_the_bin_in_which_its_share_is_reached() {
        let bins = BTreeMap::from([(100, 50), (200, 49), (300, 1)]);
        for (percent, ns) in [
            (0.0, 100),
            (50.0, 100),
            (51.0, 200),
            (99.0, 200),
            (99.5, 300),
        ] {
            assert_eq!(percentile_ns(&bins, 100, percent), ns, "{percent} %");
        }
    }
}
