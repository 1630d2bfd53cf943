//! Progress on stderr while a run measures: one line redrawn in place on a terminal, a line per
//! workload elsewhere, nothing with --quiet. Also passes Ctrl-C on to the engine, and ends a
//! workload when its rate is known well enough.

use crate::flags::SECOND;
use crate::interrupt;
use crate::load_screen::{LoadMoment, LoadScreen};
use crate::stdio::{ProgressLine, Verbosity, eprint_line, is_reader_gone, progress_columns};
use crate::tool_lines::ToolLines;
use diskproof_analysis::estimate;
use diskproof_analysis::judge::RunFacts;
use diskproof_engine::watchdog::Heartbeat;
use diskproof_model::budget::Budget;
use diskproof_model::group::Group;
use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::plan::Layout;
use diskproof_model::progress::{Control, Found, Phase, Progress, Watch};
use diskproof_model::series::{Cell, TimeSeries};
use diskproof_model::surface::{SeekPattern, SurfaceMeasurement};
use diskproof_model::units::{
    counted, format_bytes, format_duration, format_latency, format_rate, format_throughput,
};
use diskproof_model::window::TimeSlice;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time between two looks at a precision: computing that of a long series takes a millisecond.
const JUDGE_EVERY: Duration = Duration::from_millis(250);

/// Every run may be this late. What is in flight at its end gets four more seconds, so that no run
/// of up to fifty workloads takes ten seconds more than announced.
const LATE_NS: u64 = 4 * SECOND;
/// A few groups of workloads may each be this late.
const FEW_GROUPS_LATE_NS: u64 = SECOND / 10;
/// Many groups may each be this late, or all together a second: each begins and ends with some
/// milliseconds that are not announced. 39 took 0.6 s on a busy machine.
const MANY_GROUPS_LATE_NS: u64 = SECOND / 50;

/// A run of this many groups that is so late is ended.
fn late_ns(groups: u64) -> u64 {
    let many_ns = SECOND.max(groups * MANY_GROUPS_LATE_NS);
    LATE_NS + (groups * FEW_GROUPS_LATE_NS).min(many_ns)
}

/// Columns of the bar in a progress line.
const BAR_COLUMNS: usize = 16;
/// Columns of the name in a progress line, which most names need at most.
const NAME_COLUMNS: usize = 18;
/// The figures of a workload are those of its last second: so many cells of the series.
const RECENT_CELLS: usize = 100;
/// The rate of a survey is that of its last four cells.
const SURVEY_CELLS: usize = 4;
/// The first estimates of a survey's time vary too much: they wait for this share of a step.
const ESTIMATE_FROM: f64 = 0.01;
/// A line reports where a scan could resume after another fiftieth of its time, so that little is
/// lost and the lines of a whole day fit on a few screens.
const RESUME_DIVISOR: u32 = 50;
/// The shortest and the longest time between two such lines.
const RESUME_EVERY: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(10)..=Duration::from_secs(600);
/// The progress line shows a silence of this length; shorter ones are normal for disks.
const SILENCE_SHOWN_NS: u64 = 2 * SECOND;
/// A note about a silence comes after this time; each further one after twice the time.
const FIRST_NOTE_NS: u64 = 10 * SECOND;
/// The step of a survey whose rate is shown in requests, not in bytes.
const ACCESS_STEP: &str = "access times";

/// The end of a run, which several threads read and move; `None` where it has no limit.
pub(crate) type SharedDeadline = Arc<Mutex<Option<Instant>>>;

/// Locks a deadline, also where a thread that held it has panicked.
pub(crate) fn lock_deadline(deadline: &SharedDeadline) -> MutexGuard<'_, Option<Instant>> {
    deadline.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The progress of a run on stderr, its deadline, and the text of a tool meanwhile.
pub(crate) struct ProgressDisplay {
    /// The facts of the run, which hold its plan.
    facts: Arc<RunFacts>,
    /// The most that the run may do.
    budget: Arc<Budget>,
    verbosity: Verbosity,
    /// The line on a terminal.
    line: ProgressLine,
    /// The whole terminal, in place of the line.
    screen: Option<LoadScreen>,
    /// The current workloads, as indexes into the plan.
    current: Range<usize>,
    /// For each of them, when its precision was computed last.
    judged: Vec<Instant>,
    /// The state of each of them at its last report.
    readings: Vec<Reading>,
    /// Time of the current slice, warm-up included, in nanoseconds; `None` of a whole group.
    slice_ns: Option<u64>,
    /// For each workload of the plan, the time that its slices so far took, in nanoseconds;
    /// `u64::MAX` where it is over.
    spent_ns: Vec<u64>,
    /// The start of the run.
    started: Instant,
    /// When the announced time is clearly over. The time of a layout without limit is not part of
    /// it, nor is that of the user's commands: both move it.
    deadline: SharedDeadline,
    /// The time for which scratch files were filled, or got their first requests, since the last
    /// measurement.
    filled: Duration,
    /// The last look at the deadline.
    looked: Instant,
    /// Whether the deadline has ended the run.
    is_late: bool,
    /// The silence that the next note reports.
    next_note_ns: u64,
    /// The step of the survey that was printed last.
    step: String,
    /// The number of measurements that ended.
    ended: usize,
    /// The time of the last line about resuming a scan.
    resume_noted: Instant,
    /// Shows the watchdog that the engine reports progress.
    heartbeat: Heartbeat,
    /// The tool whose text is printed after each workload.
    pub tool: Option<ToolLines>,
}

/// The deadline of a run while its announced time stands still.
#[must_use]
pub(crate) struct PausedDeadline {
    end: Option<Instant>,
    since: Instant,
}

/// The state of workloads after one of their slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterSlice {
    /// Further slices follow.
    GoesOn,
    /// The slice was the last one.
    Over,
}

/// The state of a workload.
#[derive(Debug, Clone, Copy, Default)]
struct Reading {
    /// Operations per second in its last second.
    iops: f64,
    /// The share of it that is done, from 0 to 1.
    done: f64,
}

/// The time of a group, warm-up included, in nanoseconds.
struct GroupTime {
    whole_ns: u64,
    left_ns: u64,
}

impl ProgressDisplay {
    /// The display of a run that starts now. Nothing is shown before [`ProgressDisplay::begin`].
    pub(crate) fn new(facts: Arc<RunFacts>, budget: Arc<Budget>, verbosity: Verbosity) -> Self {
        crate::inspection::end();
        let now = Instant::now();
        let grace_ns = late_ns(facts.plan.groups().count() as u64);
        let end = budget
            .deadline_ns
            .map(|ns| now + Duration::from_nanos(ns + grace_ns));
        Self {
            verbosity,
            line: ProgressLine::new(verbosity),
            screen: None,
            current: 0..0,
            judged: Vec::new(),
            readings: Vec::new(),
            slice_ns: None,
            spent_ns: vec![0; facts.plan.workloads().len()],
            facts,
            budget,
            started: now,
            deadline: Arc::new(Mutex::new(end)),
            filled: Duration::ZERO,
            looked: now,
            is_late: false,
            next_note_ns: FIRST_NOTE_NS,
            step: String::new(),
            ended: 0,
            resume_noted: Instant::now(),
            heartbeat: Heartbeat::default(),
            tool: None,
        }
    }

    /// Shows the progress on the whole terminal from now on, where stderr is one.
    pub(crate) fn show_screen(&mut self) {
        if self.verbosity != Verbosity::Terminal || !LoadScreen::is_possible() {
            return;
        }
        let plan = &self.facts.plan;
        let title = format!("{} {}", plan.origin.verb, plan.targets.join(" "));
        // Without the screen the line remains.
        self.screen = LoadScreen::start(title, &self.facts.targets).ok();
    }

    /// A line about a pause of a sustained load, where each step has a line.
    pub(crate) fn begin_pause(&self, pause_ns: u64) {
        if self.verbosity == Verbosity::Lines {
            eprint_line(&format!("pause of {}", format_duration(pause_ns)));
        }
    }

    /// Shows that nothing is sent for this long, where the progress has a whole terminal.
    pub(crate) fn show_pause(&mut self, left: Duration) {
        let run_left_ns = self.run_left_ns();
        if let Some(screen) = &mut self.screen
            && screen.is_due()
        {
            let left = format_duration(left.as_secs() * SECOND);
            screen.show(LoadMoment {
                phase: format!("pause, {left} of it left"),
                left_ns: run_left_ns,
                iops: Some(0.0),
                bytes_per_second: 0.0,
                latency_max_ns: None,
                slice_bytes: 0,
                remarks: Vec::new(),
            });
        }
    }

    /// Redraws the whole terminal; false where the progress has none.
    fn show_on_screen(&mut self, progress: &Progress<'_>) -> bool {
        let Some(screen) = &self.screen else {
            return false;
        };
        if !screen.is_due() {
            return true;
        }
        let rates = recent_rates(progress, RECENT_CELLS);
        // The first cell is not over yet, and a scratch file is filled in larger blocks.
        let has_rate = progress.series.cells.len() > 1 && !precedes_measured_time(progress.phase);
        let iops = if has_rate { Some(rates.iops) } else { None };
        let moment = LoadMoment {
            phase: match progress.phase {
                Phase::Layout => "filling the scratch file".to_owned(),
                Phase::FirstRequests => format!("{}, first requests", progress.name),
                Phase::Warmup => format!("{}, warm-up", progress.name),
                Phase::Measure | Phase::Survey | Phase::Verify => progress.name.to_owned(),
            },
            left_ns: self.run_left_ns(),
            iops,
            bytes_per_second: rates.bytes_per_second,
            latency_max_ns: recent_latency_max_ns(progress, RECENT_CELLS),
            slice_bytes: progress.series.total().bytes,
            remarks: self.silence_text(progress).into_iter().collect(),
        };
        if let Some(screen) = &mut self.screen {
            screen.show(moment);
        }
        true
    }

    /// The time until the announced end of the run, in nanoseconds; `None` where it has none.
    fn run_left_ns(&self) -> Option<u64> {
        let left = self
            .announced_end()?
            .saturating_duration_since(Instant::now());
        let grace_ns = late_ns(self.facts.plan.groups().count() as u64);
        Some((left.as_nanos() as u64).saturating_sub(grace_ns))
    }

    /// When the announced time is clearly over, as it is known now; `None` for a run without one.
    pub(crate) fn announced_end(&self) -> Option<Instant> {
        *lock_deadline(&self.deadline)
    }

    /// Stops the announced time, for what is not part of it and may take any time. Until
    /// [`Self::resume_deadline`] nothing ends the run as late.
    pub(crate) fn pause_deadline(&mut self) -> PausedDeadline {
        PausedDeadline {
            end: lock_deadline(&self.deadline).take(),
            since: Instant::now(),
        }
    }

    /// Lets the announced time go on.
    pub(crate) fn resume_deadline(&mut self, paused: PausedDeadline) {
        let passed = paused.since.elapsed();
        *lock_deadline(&self.deadline) = paused.end.map(|end| end + passed);
    }

    /// Moves the deadline by a time that is not part of the announced one.
    pub(crate) fn extend_deadline(&mut self, time: Duration) {
        if let Some(deadline) = &mut *lock_deadline(&self.deadline) {
            *deadline += time;
        }
    }

    /// Ends the run as late, because the target is too slow for a step.
    pub(crate) fn end_late(&mut self) {
        self.is_late = true;
        let now = Instant::now();
        let mut deadline = lock_deadline(&self.deadline);
        *deadline = match *deadline {
            Some(earlier) => Some(earlier.min(now)),
            None => Some(now),
        };
    }

    /// Ends the run as late if the announced time is over, for a step that does not tick.
    pub(crate) fn look_at_end(&mut self) {
        self.is_late |= self.is_announced_time_over();
    }

    fn is_announced_time_over(&self) -> bool {
        match self.announced_end() {
            Some(end) => Instant::now() >= end,
            None => false,
        }
    }

    /// Tells the tool that a scratch file is filled up to `bytes`, for this workload.
    pub(crate) fn laying_out(&self, workload: &str, bytes: u64) {
        if let Some(tool) = &self.tool {
            tool.laying_out(workload, bytes);
        }
    }

    /// Whether the user has ended the run, or its announced time is over.
    pub(crate) fn is_over(&self) -> bool {
        self.is_announced_time_over() || interrupt::signal().is_some()
    }

    /// The end of the run, which moves while it runs.
    pub(crate) fn deadline(&self) -> SharedDeadline {
        Arc::clone(&self.deadline)
    }

    /// Whether the run was ended because its announced time is over.
    pub(crate) fn is_late(&self) -> bool {
        self.is_late && interrupt::signal().is_none()
    }

    /// Ends the run at Ctrl-C, and after its announced time. The time of a layout does not count.
    fn end_if_over(&mut self, phase: Phase) -> Control {
        let passed = self.looked.elapsed();
        self.looked += passed;
        if precedes_measured_time(phase)
            && !self.is_late
            && let Some(target_ns) = self.budget.fill_ns
        {
            self.extend_deadline(passed);
            self.filled += passed;
            // The targets are filled in turn. A survey fills without a limit of its own; a target
            // that is opened again is filled again.
            let targets_ns = target_ns.saturating_mul(self.facts.plan.targets.len() as u64);
            if self.filled > Duration::from_nanos(targets_ns).saturating_add(JUDGE_EVERY) {
                self.end_late();
            }
        }
        if !precedes_measured_time(phase) {
            self.filled = Duration::ZERO;
        }
        if let Some(end) = *lock_deadline(&self.deadline) {
            self.is_late |= self.looked >= end;
        }
        if self.tool.is_some() && is_reader_gone() {
            interrupt::end_without_reader();
        }
        if self.is_late || interrupt::signal().is_some() {
            Control::Interrupt
        } else {
            Control::Continue
        }
    }

    /// Whether the tool needs no further workload.
    pub(crate) fn is_complete(&self) -> bool {
        match &self.tool {
            Some(tool) => tool.is_complete(),
            None => false,
        }
    }

    /// The heartbeat, which beats with every report of progress.
    pub(crate) fn heartbeat(&self) -> Heartbeat {
        self.heartbeat.clone()
    }

    /// Begins these workloads, or a slice of them that takes `slice_ns`.
    pub(crate) fn begin(&mut self, group: Group<'_>, slice_ns: Option<u64>) {
        if let Some(tool) = &mut self.tool {
            tool.begin();
        }
        if let Some(screen) = &mut self.screen {
            screen.begin_slice();
        }
        self.slice_ns = slice_ns;
        self.current = group.first..group.first + group.workloads.len();
        self.judged = vec![Instant::now(); group.workloads.len()];
        self.readings = vec![Reading::default(); group.workloads.len()];
    }

    /// Ends the current slice, after which the workloads go on or are over.
    pub(crate) fn end_slice(&mut self, next: AfterSlice) {
        if let Some(spent_ns) = self.spent_ns.get_mut(self.current.start) {
            *spent_ns = match next {
                AfterSlice::Over => u64::MAX,
                AfterSlice::GoesOn => spent_ns.saturating_add(self.slice_ns.unwrap_or(0)),
            };
        }
        self.slice_ns = Some(0);
    }

    /// A line about a round of a sustained load, where each step has a line.
    pub(crate) fn end_round(&self, round: &TimeSlice, workload: &str) {
        if self.verbosity != Verbosity::Lines {
            return;
        }
        let mut parts = Vec::new();
        for (kind, op) in &round.ops {
            let mut text = format!(
                "{} {}/s, {}",
                kind.as_str(),
                format_rate(op.iops),
                format_throughput(op.bytes_per_second)
            );
            if let Some(latency) = &op.latency {
                text.push_str(&format!(
                    ", {} on average",
                    format_latency(latency.mean_ns as u64)
                ));
            }
            parts.push(text);
        }
        if let Some(left_ns) = self.run_left_ns() {
            parts.push(format!("{} left", format_duration(left_ns)));
        }
        eprint_line(&format!("{workload}: {}", parts.join("; ")));
    }

    /// The time of a group, when this share of the current slice is done.
    fn group_time(&self, group: Group<'_>, done: f64) -> Option<GroupTime> {
        let whole_ns = group.time_ns()? + group.warmup_ns();
        let spent_ns = self.spent_ns.get(group.first).copied().unwrap_or(0);
        let mut left_ns = whole_ns.saturating_sub(spent_ns);
        if group.first == self.current.start {
            let slice_ns = self.slice_ns.unwrap_or(whole_ns) as f64;
            let done_ns = (slice_ns * done.clamp(0.0, 1.0)) as u64;
            left_ns = left_ns.saturating_sub(done_ns);
        }
        Some(GroupTime { whole_ns, left_ns })
    }

    /// The current workloads.
    fn group(&self) -> Group<'_> {
        Group::new(
            self.current.start,
            &self.facts.plan.workloads()[self.current.clone()],
        )
    }

    /// Index of a workload among the current ones.
    fn index_of(&self, name: &str) -> Option<usize> {
        self.group()
            .workloads
            .iter()
            .position(|workload| workload.name == name)
    }

    /// The path of a target, where the run has several.
    fn path_among_several(&self, target: usize) -> Option<&str> {
        let paths = &self.facts.plan.targets;
        if paths.len() > 1 {
            paths.get(target).map(String::as_str)
        } else {
            None
        }
    }

    /// Does what [`Watch::tick`] does, for a caller with its own progress line.
    pub(crate) fn tick_silently(&mut self, progress: &Progress<'_>) -> Control {
        self.heartbeat.beat();
        self.report_silence(progress);
        self.end_if_over(progress.phase)
    }

    /// The time without a completion, where a progress line should show it.
    pub(crate) fn silence_text(&self, progress: &Progress<'_>) -> Option<String> {
        self.long_silence(progress, SILENCE_SHOWN_NS)
    }

    /// The current workloads are over.
    pub(crate) fn end(&mut self, measured: &[Measurement]) {
        if let Some(tool) = &mut self.tool {
            tool.measured(measured);
        }
        if self.verbosity != Verbosity::Lines {
            return;
        }
        for measurement in measured {
            eprint_line(&self.ended_line(measurement));
            self.ended += 1;
        }
    }

    /// `2/9 random-read-d1 on /data: 12,300 reads/s, 100.8 MB/s; at most 30 s left`.
    fn ended_line(&self, measurement: &Measurement) -> String {
        let plan = &self.facts.plan;
        // Slices of several workloads alternate, so the place in the plan says nothing.
        let step = self.ended / plan.targets.len().max(1) + 1;
        let steps = plan.workloads().len();
        let mut line = format!("{step}/{steps} {}", measurement.workload.name);
        if let Some(path) = self.path_among_several(measurement.target) {
            line.push_str(&format!(" on {path}"));
        }
        line.push_str(&format!(": {}", headline_rates(measurement)));
        if let Some(left_ns) = self.left_ns(1.0)
            && left_ns > 0
        {
            line.push_str(&format!("; at most {} left", format_duration(left_ns)));
        }
        line
    }

    /// Ends the display: erases the progress line, and gives the terminal back.
    pub(crate) fn finish(&mut self) {
        self.screen = None;
        self.line.clear();
    }

    /// The most time left in nanoseconds, when this share of the current workloads is done; `None`
    /// where nothing limits it.
    fn left_ns(&self, done: f64) -> Option<u64> {
        let plan = &self.facts.plan;
        let mut planned_ns = 0;
        for group in plan.groups() {
            planned_ns += self.group_time(group, done)?.left_ns;
        }
        let Some(limit_ns) = plan.time_limit_ns else {
            return Some(planned_ns);
        };
        let elapsed_ns = self.started.elapsed().as_nanos() as u64;
        Some(planned_ns.min(limit_ns.saturating_sub(elapsed_ns)))
    }

    /// The share of the current group that is done, by that of its current slice.
    fn group_done(&self, done: f64) -> f64 {
        match self.group_time(self.group(), done) {
            Some(time) if self.slice_ns.is_some() && time.whole_ns > 0 => {
                1.0 - time.left_ns as f64 / time.whole_ns as f64
            }
            _ => done,
        }
    }

    /// Prints the headline figures of a survey that is over, where each step has a line.
    pub(crate) fn surveyed(&self, measurement: &SurfaceMeasurement) {
        if self.verbosity != Verbosity::Lines {
            return;
        }
        let record = diskproof_analysis::surface::surface_record(measurement, &[]);
        let mut figures = Vec::new();
        if let Some(rate) = &record.figures.rate {
            figures.push(format!(
                "curve of {}: {} to {}, {} on average",
                counted(measurement.curve.len() as u64, "point"),
                format_throughput(rate.max),
                format_throughput(rate.min),
                format_throughput(rate.average.value)
            ));
        }
        if let Some(seek) = record.figures.seeks.get(&SeekPattern::Random) {
            let mean_ns = seek.mean.value.round() as u64;
            figures.push(format!("access {}", format_latency(mean_ns)));
        }
        if let Some(scan) = &record.data.scan {
            figures.push(format!(
                "scan: {}, {} unreadable",
                counted(scan.slow_blocks, "slow block"),
                format_bytes(scan.unreadable_bytes)
            ));
        }
        if !figures.is_empty() {
            eprint_line(&figures.join("; "));
        }
    }

    /// Prints how to resume a scan, which takes hours, now and then: it may be killed.
    fn report_resume_point(&mut self, progress: &Progress<'_>) {
        let interval = (Duration::from_nanos(progress.elapsed_ns) / RESUME_DIVISOR)
            .clamp(*RESUME_EVERY.start(), *RESUME_EVERY.end());
        if self.verbosity == Verbosity::Quiet || self.resume_noted.elapsed() < interval {
            return;
        }
        let Some(offset) = progress.resume_bytes else {
            return;
        };
        self.resume_noted = Instant::now();
        self.line.clear();
        let plan = &self.facts.plan;
        // A scratch file is a different one each time.
        if let Some(survey) = plan.survey()
            && let Some(path) = plan.targets.first()
            && plan.scratch_bytes().is_none()
        {
            let left = match survey_left_ns(progress) {
                Some(left_ns) => format!("{} left; ", format_duration(left_ns)),
                None => String::new(),
            };
            let command = crate::resume::scan_command(path, survey.span, offset);
            eprint_line(&format!(
                "{left}to resume the scan if it is killed: {command}"
            ));
        }
    }

    /// A text about the time without a completion; `None` where that is less than `least_ns`.
    fn long_silence(&self, progress: &Progress<'_>, least_ns: u64) -> Option<String> {
        let silence = progress.silence?;
        if silence.length_ns < least_ns {
            return None;
        }
        let length = format_duration(silence.length_ns / SECOND * SECOND);
        Some(match self.path_among_several(silence.target) {
            Some(path) => format!("no answer from {path} for {length}"),
            None => format!("no answer for {length}"),
        })
    }

    /// Reports a long silence where no progress line shows it.
    fn report_silence(&mut self, progress: &Progress<'_>) {
        if self.verbosity != Verbosity::Lines {
            return;
        }
        if let Some(text) = self.long_silence(progress, self.next_note_ns) {
            self.next_note_ns *= 2;
            eprint_line(&format!("{}: {text}", progress.name));
        } else if let Some(silence) = progress.silence
            && silence.length_ns < FIRST_NOTE_NS
        {
            self.next_note_ns = FIRST_NOTE_NS;
        }
    }

    /// The progress line of a survey: step, bar, time left, rate.
    fn survey_line(&self, progress: &Progress<'_>) -> String {
        let done = progress.done.unwrap_or(0.0).clamp(0.0, 1.0);
        let mut figures = vec![format!("{:3.0} %", done * 100.0)];
        figures.extend(self.silence_text(progress));
        if let Some(left_ns) = survey_left_ns(progress) {
            figures.push(format!("{} left", format_duration(left_ns)));
        }
        let rates = recent_rates(progress, SURVEY_CELLS);
        figures.push(match progress.name {
            ACCESS_STEP => format!("{}/s", format_rate(rates.iops)),
            _ => format_throughput(rates.bytes_per_second),
        });
        let step = format!("{:<NAME_COLUMNS$} ", progress.name);
        progress_text(&step, done, &figures.join(", "), progress_columns())
    }

    /// The progress line: step, workload, bar, time left, rate.
    fn workload_line(&self, progress: &Progress<'_>) -> String {
        let workloads = self.facts.plan.workloads();
        let is_joint = self.current.len() > 1 && !precedes_measured_time(progress.phase);
        let done = if is_joint {
            self.joint_done()
        } else {
            progress.done.unwrap_or(0.0).clamp(0.0, 1.0)
        };
        let mut figures = Vec::new();
        figures.extend(self.silence_text(progress));
        match progress.phase {
            Phase::Layout => figures.push("layout".to_owned()),
            Phase::FirstRequests => figures.push("first requests".to_owned()),
            Phase::Warmup => figures.push("warm-up".to_owned()),
            Phase::Measure | Phase::Survey => {}
            Phase::Verify => figures.push("verify".to_owned()),
        }
        if let Some(left_ns) = self.left_ns(done) {
            figures.push(format!("{} left", format_duration(left_ns)));
        }
        let steps = workloads.len().max(1);
        let over = self.spent_ns.iter().filter(|ns| **ns == u64::MAX).count();
        let mut step = format!("{}/{steps} ", (over + 1).min(steps));
        if is_joint {
            for (index, reading) in self.readings.iter().enumerate() {
                let name = &workloads[self.current.start + index].name;
                figures.push(format!("{name} {}/s", format_rate(reading.iops)));
            }
        } else {
            let name = match workloads.get(self.current.start) {
                Some(workload) => &workload.name,
                None => progress.name,
            };
            step.push_str(&format!("{name:<NAME_COLUMNS$} "));
            let rates = recent_rates(progress, RECENT_CELLS);
            figures.push(format!("{}/s", format_rate(rates.iops)));
            figures.push(format_throughput(rates.bytes_per_second));
        }
        let group_done = self.group_done(done);
        progress_text(&step, group_done, &figures.join(", "), progress_columns())
    }

    /// The share that is done of workloads which run together: the first one that is done ends the
    /// others.
    fn joint_done(&self) -> f64 {
        let mut done: f64 = 0.0;
        for reading in &self.readings {
            done = done.max(reading.done);
        }
        done.clamp(0.0, 1.0)
    }

    /// Whether the rate of the workload is known as precisely as the plan asks for.
    fn is_known_well_enough(&mut self, progress: &Progress<'_>) -> bool {
        let Some(index) = self.index_of(progress.name) else {
            return false;
        };
        let plan = &self.facts.plan;
        let workload = &plan.workloads()[self.current.start + index];
        let Some(goal) = workload.stop.precision else {
            return false;
        };
        if self.slice_ns.is_some()
            || progress.phase != Phase::Measure
            || self.judged[index].elapsed() < JUDGE_EVERY
        {
            return false;
        }
        self.judged[index] = Instant::now();
        // A layout workload ends only when the file is full: the rest would be filled unmeasured.
        // The series is the sum over all targets, which are all scratch files.
        let file_bytes = plan.scratch_bytes().unwrap_or(0);
        let content_bytes = file_bytes.saturating_mul(plan.targets.len() as u64);
        let written_bytes = progress.series.total().bytes;
        let is_laid_out = workload.layout == Layout::Needed || written_bytes >= content_bytes;
        is_laid_out
            && estimate::may_end(
                progress.series,
                progress.elapsed_ns,
                workload.stop.time_ns,
                goal,
            )
    }
}

/// Before its measured time, a run fills scratch files and sends first requests. That has no rate
/// to show, and its time is not the announced one.
fn precedes_measured_time(phase: Phase) -> bool {
    match phase {
        Phase::Layout | Phase::FirstRequests => true,
        Phase::Warmup | Phase::Measure | Phase::Verify | Phase::Survey => false,
    }
}

/// `12,300 reads/s, 100.8 MB/s`, for each kind of operation.
fn headline_rates(measurement: &Measurement) -> String {
    let mut rates = Vec::new();
    for (kind, op) in OpKind::headline(&measurement.ops) {
        let rate = estimate::rate(&op.series, measurement.wall_ns);
        rates.push(if rate.ops.is_unknown() {
            format!("no {} completed", kind.as_str())
        } else {
            format!(
                "{} {}/s, {}",
                format_rate(rate.ops.value),
                kind.plural(),
                format_throughput(rate.bytes.value)
            )
        });
    }
    rates.join("; ")
}

/// The time that a step of a survey still takes at its rate so far, in nanoseconds; `None` too
/// early to say.
fn survey_left_ns(progress: &Progress<'_>) -> Option<u64> {
    let done = progress.done?.clamp(0.0, 1.0);
    let is_late_enough = progress.elapsed_ns > FIRST_NOTE_NS && done > 0.0;
    if done > ESTIMATE_FROM || is_late_enough {
        Some((progress.elapsed_ns as f64 * (1.0 - done) / done) as u64)
    } else {
        None
    }
}

/// Rates of the newest cells of a series.
pub(crate) struct RecentRates {
    /// Operations per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
}

impl RecentRates {
    /// The rates of the newest cells, which cover `length`; of one cell at least.
    pub(crate) fn over(series: &TimeSeries, length: Duration) -> Self {
        let interval_ns = series.interval_ns.max(1);
        let cells = (length.as_nanos() as u64 / interval_ns).max(1) as usize;
        let newest = series.cells.len().saturating_sub(cells);
        Self::in_cells(&series.cells[newest..], interval_ns)
    }

    fn in_cells(cells: &[Cell], interval_ns: u64) -> Self {
        let seconds = (cells.len().max(1) as u64 * interval_ns) as f64 / SECOND as f64;
        let mut ops: u64 = 0;
        let mut bytes: u64 = 0;
        for cell in cells {
            ops += cell.ops;
            bytes += cell.bytes;
        }
        Self {
            iops: ops as f64 / seconds,
            bytes_per_second: bytes as f64 / seconds,
        }
    }
}

/// The rates in this many of the newest complete cells.
fn recent_rates(progress: &Progress<'_>, cells: usize) -> RecentRates {
    let complete = match progress.series.cells.split_last() {
        Some((_, complete)) => complete,
        None => &[],
    };
    let recent = &complete[complete.len().saturating_sub(cells)..];
    RecentRates::in_cells(recent, progress.series.interval_ns)
}

/// The longest latency in nanoseconds in this many of the newest complete cells; `None` where
/// nothing ended.
fn recent_latency_max_ns(progress: &Progress<'_>, cells: usize) -> Option<u64> {
    let newest = progress.series.cells.iter().rev().skip(1).take(cells);
    newest
        .filter(|cell| cell.ops > 0)
        .map(|cell| cell.latency_max_ns)
        .max()
}

/// The step, a bar and the figures. A narrow line has no bar.
fn progress_text(step: &str, done: f64, figures: &str, columns: usize) -> String {
    let filled = (done * BAR_COLUMNS as f64) as usize;
    let bar = format!("{:-<BAR_COLUMNS$} ", "#".repeat(filled));
    let with_bar = format!("{step}{bar}{figures}");
    if with_bar.chars().count() > columns {
        format!("{step}{figures}")
    } else {
        with_bar
    }
}

impl Watch for ProgressDisplay {
    fn tick(&mut self, progress: &Progress<'_>) -> Control {
        self.heartbeat.beat();
        self.report_silence(progress);
        if self.verbosity == Verbosity::Lines
            && progress.phase == Phase::Survey
            && progress.name != self.step
        {
            progress.name.clone_into(&mut self.step);
            eprint_line(&format!("survey: {}", progress.name));
        }
        self.report_resume_point(progress);
        if let Some(index) = self.index_of(progress.name) {
            self.readings[index] = Reading {
                iops: recent_rates(progress, RECENT_CELLS).iops,
                done: progress.done.unwrap_or(0.0),
            };
        }
        if !self.show_on_screen(progress) && self.line.is_due() {
            let line = if progress.phase == Phase::Survey {
                self.survey_line(progress)
            } else {
                self.workload_line(progress)
            };
            self.line.show(&line);
        }
        match self.end_if_over(progress.phase) {
            Control::Continue if self.is_known_well_enough(progress) => Control::Enough,
            control => control,
        }
    }

    fn wants_results(&self, elapsed_ns: u64) -> bool {
        match &self.tool {
            Some(tool) => tool.is_due(elapsed_ns),
            None => false,
        }
    }

    fn results_so_far(&mut self, elapsed_ns: u64, measurements: &[Measurement]) {
        if let Some(tool) = &mut self.tool {
            tool.so_far(elapsed_ns, measurements);
        }
    }

    /// Printed at once: a scan that is killed returns nothing.
    fn found(&mut self, place: &Found) {
        if self.verbosity == Verbosity::Quiet {
            return;
        }
        self.line.clear();
        eprint_line(&match place {
            Found::Slow(block) => format!(
                "slow: the block at byte {} (LBA {}) took {}",
                block.offset_bytes,
                block.lba,
                format_latency(block.latency_ns)
            ),
            Found::Unreadable(range) => format!(
                "unreadable: {} at byte {} (LBA {}), {}",
                format_bytes(range.length_bytes),
                range.offset_bytes,
                range.lba,
                range.errno
            ),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_makes_room_for_figures() {
        let step = "1/9 random-read-d32 ";
        let figures = "47 s left, 12,300/s, 95.2 MB/s";
        assert_eq!(
            progress_text(step, 0.5, figures, 67),
            format!("{step}########-------- {figures}")
        );
        assert_eq!(
            progress_text(step, 0.5, figures, 66),
            format!("{step}{figures}")
        );
    }

    #[test]
    fn run_of_fifty_workloads_ends_within_ten_seconds_of_its_announced_time() {
        for groups in 1..=50 {
            assert!(late_ns(groups) + 4_900_000_000 < 10_000_000_000);
        }
        assert_eq!(late_ns(1000), 24_000_000_000);
    }
}
