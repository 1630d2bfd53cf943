//! Surveys a target: transfer rate by position, burst rate, access times, every block. Prepares it
//! here, measures in one separate thread, and watches in the caller's.

mod access;
mod burst;
mod curve;
mod log;
mod queue;
mod resample;
mod sample;
mod scan;
mod scan_log;
mod target;
#[cfg(test)]
mod tests;

use crate::io::Extent;
use crate::io::any_backend::{AnyBackend, QueueConfig};
use crate::io::clock::{ActiveClock, WorkerClock};
use crate::measure::sampler::FileSampler;
use crate::run::assemble::join_interruptions;
use crate::run::error::{RunError, worker_error};
use crate::run::first_request::{EarlyErrors, SlowTarget, find_slow};
use crate::run::hang::relative_to_origin;
use crate::run::layout::{LayoutGoal, LayoutWay};
use crate::run::limits::{extent_of, in_flight_max};
use crate::run::prepare::{check_span, check_writable, prove_direct, set_cache};
use crate::run::select::{EngineUseCase, refuse_mapping, select};
use crate::run::session::Session;
use crate::run::supervise::{Event, Inbox as _, Overdue, StallTimeout, Supervisor, WaitLimits};
use crate::run::watchdog::Deferred;
use crate::run::watched_call::Patience;
use diskproof_device::{OpenTarget, Snapshot};
use diskproof_model::group::Group;
use diskproof_model::measurement::{ByteCount, CacheUse, DeviceUse, Hang, OpKind};
use diskproof_model::plan::{CachePolicy, EngineKind, Workload};
use diskproof_model::progress::{Control, Phase, Progress, Silence, Watch};
use diskproof_model::series::{Cell, TimeSeries};
use diskproof_model::stream::Streams;
use diskproof_model::surface::{CurvePlan, SurfaceMeasurement, Survey};
use diskproof_model::target::TargetKind;
use log::{SurveyLog, SurveyResults};
use queue::RequestQueue;
pub use resample::ChoosePoints;
use rustix::fs::{Advice, fadvise};
use sample::{MeasuredCurve, STREAM_DEPTH, STREAM_REQUEST_MAX};
use scan::SCAN;
use scan_log::ScanLog;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use target::{SECTOR_BYTES, SurveyTarget, UNIT_BYTES};

impl Session {
    /// Surveys one target, number `index` of the plan. Returns what was measured before the watcher
    /// interrupted. `choose` says which points of the curve are read a second time at the end.
    pub fn survey(
        &self,
        survey: &Survey,
        choose: ChoosePoints,
        index: usize,
        target: &mut OpenTarget,
        watch: &mut dyn Watch,
    ) -> Result<SurfaceMeasurement, RunError> {
        let prepared = self.prepare_survey(survey, target, watch)?;
        let snapshot = Snapshot::take(target.identity());
        let clock = ActiveClock::new();
        let start_ns = clock.now();
        let log = Arc::new(SurveyLog::default());
        let fd = target
            .fd()
            .try_clone_to_owned()
            .map_err(|source| worker_error(&Workload::named(SURVEY), target, source))?;
        let worker = SurveyWorker {
            survey: survey.clone(),
            target: prepared.surveyed,
            choose,
            fd,
            log: Arc::clone(&log),
        };
        let working =
            Deferred::start("diskproof-survey", move || worker.work()).map_err(RunError::Thread)?;
        let under_way = SurveyUnderWay {
            survey,
            prepared,
            index,
            start_ns,
            origin_ns: self.origin_ns,
            log,
        };
        let place = SurveyPlace {
            target,
            stall_timeout: self.stall_timeout,
        };
        let end = follow(&working, &under_way, place, watch)?;
        let results = std::mem::take(&mut *under_way.log.results());
        let measured = under_way.measurement(results, clock.now());
        Ok(SurfaceMeasurement {
            device: snapshot.finish(measured.asked),
            interrupted: end.control == Control::Interrupt,
            hang: end
                .hang
                .map(|hang| relative_to_origin(hang, self.origin_ns)),
            ..measured
        })
    }

    fn prepare_survey(
        &self,
        survey: &Survey,
        target: &mut OpenTarget,
        watch: &mut dyn Watch,
    ) -> Result<PreparedSurvey, RunError> {
        refuse_mapping(survey.engine, target)?;
        if survey.operation == OpKind::Write {
            let writes = Workload {
                streams: Streams::with_reads(0),
                ..Workload::named(SURVEY)
            };
            check_writable(&writes, target)?;
        }
        if target.is_scratch() {
            let goal = LayoutGoal {
                upto_bytes: target.capacity_bytes(),
                way: LayoutWay::Direct,
                time_ns: None,
                content: None,
            };
            if self.lay_out(target, goal, watch)?.is_interrupted() {
                return Err(RunError::interrupted(SURVEY));
            }
        }
        let streaming = Workload {
            block_bytes: STREAM_REQUEST_MAX,
            depth: STREAM_DEPTH,
            span: survey.span,
            engine: survey.engine,
            ..Workload::named(SURVEY)
        };
        let mut errors = EarlyErrors::take_from(target);
        errors.append(prove_direct(&streaming, target, self.patience(watch))?);
        let cache = set_cache(&streaming, target, self.patience(watch))?;
        let first = find_slow(&streaming, target, self.patience(watch))?;
        errors.append(first.errors);
        let single = Workload {
            depth: 1,
            block_bytes: target.alignment_bytes(),
            ..streaming.clone()
        };
        let mut selection = SurveySelection {
            target,
            cache: cache.used,
            slow: first.slow,
            errors,
        };
        let engines = SurveyEngines {
            stream: selection.engine_for(&streaming, self.patience(watch))?,
            read_one: selection.engine_for(&single, self.patience(watch))?,
        };
        let errors = selection.errors;
        let surveyed = survey_target(survey, target, cache.used, self.seed, engines);
        check_span(&streaming, target, SPAN_BYTES_MIN, surveyed.extent.length)?;
        let unwritten_bytes = match survey.operation {
            OpKind::Read => target.unwritten_bytes(surveyed.extent.start, surveyed.extent.length),
            _ => None,
        };
        Ok(PreparedSurvey {
            surveyed,
            unwritten_bytes,
            cache,
            errors,
            silence_ns: target.take_silence_ns(),
        })
    }
}

/// The selection of the I/O engines for the parts of a survey, on one target.
struct SurveySelection<'a> {
    target: &'a OpenTarget,
    cache: CachePolicy,
    slow: Option<SlowTarget>,
    /// Errors of the disk so far, those on the trials of engines included.
    errors: EarlyErrors,
}

impl SurveySelection<'_> {
    /// The best I/O engine for this part.
    fn engine_for(
        &mut self,
        part: &Workload,
        patience: Patience<'_>,
    ) -> Result<EngineKind, RunError> {
        let use_case = EngineUseCase {
            workload: part,
            target: self.target,
            cache: self.cache,
            in_flight_max: in_flight_max(Group::alone(part), 1),
            slow: self.slow,
        };
        let selected = select(&use_case, patience)?;
        self.errors.append(selected.errors);
        Ok(selected.engine.used)
    }
}

/// A target that is ready to be surveyed.
struct PreparedSurvey {
    surveyed: SurveyTarget,
    /// Bytes that were never written of what is read; `None` where that is unknown.
    unwritten_bytes: Option<u64>,
    cache: CacheUse,
    /// Errors of the disk on the requests before the survey.
    errors: EarlyErrors,
    /// The longest time without an answer to these requests.
    silence_ns: u64,
}

/// A survey that a thread carries out.
struct SurveyUnderWay<'a> {
    survey: &'a Survey,
    prepared: PreparedSurvey,
    /// The index of the target.
    index: usize,
    /// Its start on the clock.
    start_ns: u64,
    /// The start of the run on the clock.
    origin_ns: u64,
    log: Arc<SurveyLog>,
}

impl SurveyUnderWay<'_> {
    /// The measurement with these results at this time, without the device's counters.
    fn measurement(&self, results: SurveyResults, now_ns: u64) -> SurfaceMeasurement {
        let PreparedSurvey {
            surveyed,
            unwritten_bytes,
            cache,
            errors,
            silence_ns,
        } = &self.prepared;
        let mut asked = ByteCount::default();
        asked.add(self.survey.operation, self.log.bytes());
        let mut access_errors = results.errors_elsewhere();
        errors.count_by_name(&mut access_errors);
        SurfaceMeasurement {
            target: self.index,
            survey: self.survey.clone(),
            span_start_bytes: surveyed.extent.start,
            span_bytes: surveyed.extent.length,
            start_ns: self.start_ns.saturating_sub(self.origin_ns),
            wall_ns: now_ns.saturating_sub(self.start_ns),
            curve_ns: results.curve_ns,
            curve_cpu: results.curve_cpu,
            engine: surveyed.stream,
            cache: cache.clone(),
            curve: results.curve,
            burst: results.burst,
            access: results.access,
            access_errors,
            scan: results.scan.map(ScanLog::scan),
            zero_blocks: results.zero_blocks,
            unwritten_bytes: *unwritten_bytes,
            starved_ns: results.starved_ns,
            asked,
            device: DeviceUse::default(),
            interrupted: false,
            silence_before_ns: *silence_ns,
            stalls: results
                .stalls
                .into_iter()
                .map(|stall| relative_to_origin(stall, self.origin_ns))
                .collect(),
            hang: None,
            interruptions: join_interruptions(results.interruptions.into_iter(), self.origin_ns),
        }
    }

    /// Hands the results so far to the watcher where it wants them. Only between the parts, and
    /// during a scan: keeping them would disturb a part that measures rates.
    fn show_results(&self, progress: &mut SurveyProgress, now_ns: u64, watch: &mut dyn Watch) {
        let is_between_parts = std::mem::take(&mut progress.has_begun_step);
        let is_scan = progress.step == SCAN;
        if (is_between_parts || is_scan)
            && watch.wants_results(now_ns.saturating_sub(self.start_ns))
        {
            let results = self.log.results().clone();
            watch.survey_so_far(&self.measurement(results, now_ns));
        }
    }
}

/// Errors and the progress display show this name: a survey has no workload of its own.
const SURVEY: &str = "curve";
/// A span needs room for a few requests. Chosen, not measured.
const SPAN_BYTES_MIN: u64 = 1 << 20;

/// The I/O engines of a survey.
struct SurveyEngines {
    /// The engine of a queue of requests.
    stream: EngineKind,
    /// The engine of one request at a time.
    read_one: EngineKind,
}

fn survey_target(
    survey: &Survey,
    target: &OpenTarget,
    cache: CachePolicy,
    seed: u64,
    engines: SurveyEngines,
) -> SurveyTarget {
    let whole = extent_of(survey.span, target.usable_bytes());
    let alignment_bytes = u64::from(target.alignment_bytes());
    let unit = UNIT_BYTES.max(alignment_bytes);
    let start = whole.start.next_multiple_of(unit);
    let end = whole.end() / unit * unit;
    let (mut lba_bytes, mut physical_bytes) = (SECTOR_BYTES, SECTOR_BYTES);
    if target.identity().kind == TargetKind::BlockDevice
        && let Some(device) = target.identity().layers.first()
    {
        lba_bytes = device.logical_block_bytes.unwrap_or(SECTOR_BYTES);
        physical_bytes = device.physical_block_bytes.unwrap_or(SECTOR_BYTES);
    }
    // A disk with 4 KiB sectors loses all eight logical sectors at once; reading each would only
    // take longer.
    let sector_bytes = alignment_bytes
        .max(u64::from(lba_bytes))
        .max(u64::from(physical_bytes).min(UNIT_BYTES));
    SurveyTarget {
        extent: Extent::new(start, end.saturating_sub(start)),
        // The kernel splits one large pread into requests that are in flight together: as good as a
        // queue.
        depth: if engines.stream == EngineKind::Sync {
            1
        } else {
            STREAM_DEPTH
        },
        stream: engines.stream,
        read_one: engines.read_one,
        alignment_bytes,
        sector_bytes,
        lba_bytes: u64::from(lba_bytes),
        cache,
        operation: survey.operation,
        seed,
    }
}

/// The target of a survey, as the thread that waits sees it.
struct SurveyPlace<'a> {
    target: &'a OpenTarget,
    stall_timeout: StallTimeout,
}

/// The end of a survey.
struct SurveyEnd {
    /// The watcher's last answer.
    control: Control,
    /// The hang that ended it, on the clock.
    hang: Option<Hang>,
}

/// Waits until the thread that surveys ends, or until the target has not answered for too long. The
/// survey stops after its own time.
fn follow(
    working: &Deferred<io::Result<()>>,
    under_way: &SurveyUnderWay<'_>,
    place: SurveyPlace<'_>,
    watch: &mut dyn Watch,
) -> Result<SurveyEnd, RunError> {
    let SurveyPlace {
        target,
        stall_timeout,
    } = place;
    let log = &under_way.log;
    let mut control = Control::Continue;
    let mut progress = SurveyProgress::new(under_way.index, working.now());
    let limits = WaitLimits {
        silence_ns: Some(stall_timeout.without_deadline_ns()),
        silence_at_end_ns: Some(stall_timeout.without_deadline_ns()),
        end_ns: None,
    };
    let mut supervisor = Supervisor::new(progress.answered_ns, 1, limits);
    if let Some(limit_ns) = under_way.survey.time_ns_max() {
        supervisor.end_at(progress.answered_ns.saturating_add(limit_ns));
    }
    loop {
        match supervisor.next(working) {
            Event::Report(Ok(())) => {
                return Ok(SurveyEnd {
                    control,
                    hang: None,
                });
            }
            Event::Report(Err(source)) => {
                return Err(worker_error(&Workload::named(SURVEY), target, source));
            }
            Event::Lost => return Err(RunError::lost(SURVEY)),
            Event::Check(now) => {
                // Also after the stop: the user should see what the end waits for.
                let wanted = progress.tick(now, log, watch);
                under_way.show_results(&mut progress, now, watch);
                supervisor.heard(0, progress.answered_ns);
                if control == Control::Continue && wanted != Control::Continue {
                    control = wanted;
                    let after_order = WaitLimits {
                        end_ns: Some(stall_timeout.ended().ns()),
                        ..limits
                    };
                    supervisor.cut_short(after_order, now);
                }
                if supervisor.is_ending(0) {
                    log.stop();
                }
            }
            Event::Overdue(Overdue { silence_ns, .. }) => {
                // The log holds what was measured before.
                log.stop();
                target.leave_open();
                let hang = stall_timeout.hang(progress.answered_ns, silence_ns);
                return Ok(SurveyEnd {
                    control,
                    hang: Some(hang),
                });
            }
        }
    }
}

/// Shows the watcher the progress.
struct SurveyProgress {
    step: &'static str,
    step_ns: u64,
    /// True from the start of a step until the results before it were offered to the watcher.
    has_begun_step: bool,
    start_ns: u64,
    bytes: u64,
    ops: u64,
    /// Index of the target.
    target: usize,
    /// When the last request completed.
    answered_ns: u64,
    /// The progress since `start_ns`, in cells of [`PROGRESS_CELL_NS`].
    series: TimeSeries,
}

/// Length of a cell of the series that the watcher sees. Chosen: a display shows four of them a
/// second.
const PROGRESS_CELL_NS: u64 = 250_000_000;
/// The series begins anew after so many cells: a minute.
const PROGRESS_CELLS_MAX: usize = 240;

impl SurveyProgress {
    fn new(target: usize, now: u64) -> Self {
        Self {
            step: "",
            step_ns: now,
            has_begun_step: false,
            start_ns: now,
            bytes: 0,
            ops: 0,
            target,
            answered_ns: now,
            series: TimeSeries::new(PROGRESS_CELL_NS),
        }
    }

    fn tick(&mut self, now: u64, log: &SurveyLog, watch: &mut dyn Watch) -> Control {
        let step = log.results().step;
        if step != self.step {
            (self.step, self.step_ns) = (step, now);
            self.has_begun_step = true;
        }
        let (bytes, ops) = (log.bytes(), log.ops());
        if ops != self.ops {
            self.answered_ns = now;
        }
        let cell = Cell {
            ops: ops - self.ops,
            bytes: bytes - self.bytes,
            ..Cell::default()
        };
        (self.bytes, self.ops) = (bytes, ops);
        if self.series.cells.len() >= PROGRESS_CELLS_MAX {
            (self.series, self.start_ns) = (TimeSeries::new(PROGRESS_CELL_NS), now);
        }
        self.series
            .add(now - self.start_ns, &cell, PROGRESS_CELLS_MAX + 1);
        let mut new_places = Vec::new();
        let mut judged_to = None;
        if let Some(scan) = &mut log.results().scan {
            new_places = scan.take_found();
            judged_to = Some(scan.found.to_bytes);
        }
        for place in &new_places {
            watch.found(place);
        }
        watch.tick(&Progress {
            done: Some(log.step_share()),
            silence: Some(Silence {
                target: self.target,
                length_ns: now.saturating_sub(self.answered_ns),
            }),
            resume_bytes: judged_to,
            ..Progress::new(step, Phase::Survey, now - self.step_ns, &self.series)
        })
    }
}

/// The state of the thread that surveys.
struct SurveyWorker {
    survey: Survey,
    target: SurveyTarget,
    choose: ChoosePoints,
    fd: OwnedFd,
    log: Arc<SurveyLog>,
}

/// The requests to the target.
type SurveyQueue<'a> = RequestQueue<'a, AnyBackend, WorkerClock>;

impl SurveyWorker {
    /// Carries out all parts of the survey, in order.
    fn work(&self) -> io::Result<()> {
        let Survey {
            curve,
            burst,
            access,
            scan,
            ..
        } = &self.survey;
        self.advise(Advice::Sequential);
        let mut measured = None;
        if curve.is_some() || burst.is_some() {
            let mut queue = self.stream_queue()?;
            if let Some(plan) = curve {
                measured = queue.measure_curve(plan)?;
                queue.conclude_step();
            }
            // The page cache would serve the reads, so the rate would not be the disk's.
            if let Some(plan) = burst
                && self.target.cache == CachePolicy::Direct
                && !self.log.is_stopped()
            {
                queue.measure_burst(plan)?;
                // One block that is read over and over says nothing of the others.
                let _ = queue.sampler.take_zero_blocks();
                queue.conclude_step();
            }
        }
        if let Some(plan) = access
            && !self.log.is_stopped()
        {
            self.advise(Advice::Random);
            let mut queue = self.single_queue(plan.block_bytes)?;
            queue.drop_if_buffered();
            queue.measure_access(plan)?;
            queue.conclude_step();
        }
        if let Some(plan) = curve
            && let Some(measured) = &mut measured
            && !self.log.is_stopped()
        {
            self.confirm(plan, measured)?;
        }
        if let Some(plan) = scan
            && !self.log.is_stopped()
        {
            self.advise(Advice::Sequential);
            let mut queue = self.single_queue(plan.block_bytes)?;
            queue.drop_if_buffered();
            queue.measure_scan(plan)?;
            queue.conclude_step();
        }
        Ok(())
    }

    /// Reads the points a second time that the caller chooses.
    fn confirm(&self, plan: &CurvePlan, measured: &mut MeasuredCurve) -> io::Result<()> {
        let points = (self.choose)(&self.log.results().curve);
        if points.is_empty() {
            return Ok(());
        }
        self.advise(Advice::Sequential);
        let mut queue = self.stream_queue()?;
        queue.drop_if_buffered();
        queue.confirm(measured, points, plan.time_ns)?;
        queue.conclude_step();
        Ok(())
    }

    /// Gives the kernel advice on how buffered reads go on; they work without that.
    fn advise(&self, advice: Advice) {
        let _ = fadvise(&self.fd, 0, None, advice);
    }

    fn stream_queue(&self) -> io::Result<SurveyQueue<'_>> {
        let depth = self.target.depth;
        let request_bytes = STREAM_REQUEST_MAX * (STREAM_DEPTH / depth);
        self.queue(self.target.stream, depth, request_bytes)
    }

    fn single_queue(&self, block_bytes: u32) -> io::Result<SurveyQueue<'_>> {
        let request_bytes = self.target.rounded_request_bytes(u64::from(block_bytes)) as u32;
        self.queue(self.target.read_one, 1, request_bytes)
    }

    fn queue(
        &self,
        engine: EngineKind,
        depth: u32,
        request_bytes: u32,
    ) -> io::Result<SurveyQueue<'_>> {
        let config = QueueConfig {
            depth,
            request_bytes,
            cache: self.target.cache,
            seed: self.target.seed,
            write_shift: 0,
        };
        let sampler = FileSampler::open(self.fd.try_clone()?, engine, config)?;
        Ok(RequestQueue::new(sampler, self.target, &self.log))
    }
}
