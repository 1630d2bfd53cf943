//! Shows the progress of a run on stderr: one line redrawn in place on a terminal, a line per
//! workload elsewhere, nothing with --quiet. Also passes Ctrl-C on to the engine, and ends a
//! workload when its rate is known well enough. What is shown at a tick is in `reports` and, on the
//! whole terminal, in `screen`.

mod deadline;
mod lines;
mod recent_rates;
mod reports;
mod schedule;
mod screen;
mod silence_notes;

use crate::interrupt;
use crate::load_screen::LoadScreen;
use crate::stdio::{ProgressLine, Verbosity, eprint_line, is_reader_gone};
use crate::tool_lines::ToolLines;
use deadline::RunDeadline;
pub(crate) use deadline::{PausedDeadline, SharedDeadline, lock_deadline};
use diskproof_analysis::estimate;
use diskproof_analysis::judge::RunFacts;
use diskproof_engine::watchdog::Heartbeat;
use diskproof_model::budget::Budget;
use diskproof_model::group::Group;
use diskproof_model::measurement::Measurement;
use diskproof_model::plan::Layout;
use diskproof_model::progress::{Control, Found, Phase, Progress, Watch};
use diskproof_model::surface::SurfaceMeasurement;
use diskproof_model::units::format_duration;
use diskproof_model::window::TimeSlice;
use lines::{found_line, headline_rates, round_figures, survey_figures};
pub(crate) use recent_rates::RecentRates;
pub(crate) use schedule::AfterSlice;
use schedule::RunSchedule;
use silence_notes::SilenceNotes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time between two looks at a precision: computing that of a long series takes a millisecond.
const JUDGE_INTERVAL: Duration = Duration::from_millis(250);
/// The figures of a workload are those of its last second: so many cells of the series.
const RECENT_CELLS: usize = 100;
/// The time in nanoseconds for which the requests of the workload that is measured have had no
/// answer; 0 outside of workloads.
static UNANSWERED_NS: AtomicU64 = AtomicU64::new(0);

/// The time for which the requests that are measured have had no answer by now.
pub(crate) fn unanswered() -> Duration {
    Duration::from_nanos(UNANSWERED_NS.load(Ordering::Relaxed))
}

/// Keeps how long the requests of a workload have had no answer.
fn note_unanswered(progress: &Progress<'_>) {
    let is_measured = matches!(progress.phase, Phase::Warmup | Phase::Measure);
    let unanswered_ns = match progress.silence {
        Some(silence) if is_measured => silence.length_ns,
        Some(_) | None => 0,
    };
    UNANSWERED_NS.store(unanswered_ns, Ordering::Relaxed);
}

/// The progress of a run on stderr, its deadline, and the text of a tool meanwhile.
pub(crate) struct ProgressDisplay {
    /// The facts of the run, which hold its plan.
    facts: Arc<RunFacts>,
    verbosity: Verbosity,
    /// The line on a terminal.
    line: ProgressLine,
    /// The whole terminal, in place of the line.
    screen: Option<LoadScreen>,
    schedule: RunSchedule,
    deadline: RunDeadline,
    /// The progress of each workload that is measured now, in the order of the plan.
    current: Vec<CurrentWorkload>,
    /// The number of measurements that ended.
    measured_count: usize,
    silence_notes: SilenceNotes,
    /// The step of the survey that was printed last.
    survey_step: String,
    /// The time of the last line about resuming a scan.
    resume_reported: Instant,
    /// Shows the watchdog that the engine reports progress.
    heartbeat: Heartbeat,
    /// The tool whose text is printed after each workload.
    pub tool: Option<ToolLines>,
}

/// The progress of a workload that is measured now.
#[derive(Debug, Clone, Copy)]
struct CurrentWorkload {
    /// Operations per second in the last second before its last report.
    iops: f64,
    /// The share that was done at its last report, from 0 to 1.
    done: f64,
    /// When its precision was computed last.
    judged: Instant,
}

/// The start and the end of a display, and of what it shows.
impl ProgressDisplay {
    /// The display of a run that starts now. Nothing is shown before [`ProgressDisplay::begin`].
    pub(crate) fn new(facts: Arc<RunFacts>, budget: &Budget, verbosity: Verbosity) -> Self {
        crate::inspection::end();
        let now = Instant::now();
        Self {
            verbosity,
            line: ProgressLine::new(verbosity),
            screen: None,
            schedule: RunSchedule::new(Arc::clone(&facts), now),
            deadline: RunDeadline::new(&facts.plan, budget, now),
            facts,
            current: Vec::new(),
            measured_count: 0,
            silence_notes: SilenceNotes::default(),
            survey_step: String::new(),
            resume_reported: Instant::now(),
            heartbeat: Heartbeat::default(),
            tool: None,
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
        self.schedule.begin(group, slice_ns);
        let begun = CurrentWorkload {
            iops: 0.0,
            done: 0.0,
            judged: Instant::now(),
        };
        self.current = vec![begun; group.workloads.len()];
    }

    /// Ends the current slice, after which the workloads go on or are over.
    pub(crate) fn end_slice(&mut self, next: AfterSlice) {
        self.schedule.end_slice(next);
    }

    /// Shows the results of the current workloads, which are over.
    pub(crate) fn end(&mut self, measured: &[Measurement]) {
        if let Some(tool) = &mut self.tool {
            tool.measured(measured);
        }
        if self.verbosity != Verbosity::Lines {
            return;
        }
        for measurement in measured {
            eprint_line(&self.ended_line(measurement));
            self.measured_count += 1;
        }
    }

    /// `2/9 random-read-d1 on /data: 12,300 reads/s, 100.8 MB/s; at most 30 s left`.
    fn ended_line(&self, measurement: &Measurement) -> String {
        let mut line = format!("{} {}", self.step_text(), measurement.workload.name);
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

    /// `2/9`: the number of the measurement that ends, and that of all. Slices of several workloads
    /// alternate, so the place in the plan says nothing.
    fn step_text(&self) -> String {
        let steps = self.facts.plan.measurement_count();
        format!("{}/{steps}", self.measured_count + 1)
    }

    /// The most time left in nanoseconds, when `slice_done` of the current slice is done; `None`
    /// where nothing limits it.
    fn left_ns(&self, slice_done: f64) -> Option<u64> {
        // INSERTs follow the workloads, which the schedule does not know.
        match self.facts.plan.inserts() {
            Some(_) => self.deadline.announced_left_ns(),
            None => self.schedule.left_ns(slice_done),
        }
    }

    /// A line about a round of a sustained load, where each step has a line.
    pub(crate) fn end_round(&self, round: &TimeSlice, workload: &str) {
        if self.verbosity != Verbosity::Lines {
            return;
        }
        let mut figures = round_figures(round);
        if let Some(left_ns) = self.deadline.announced_left_ns() {
            figures.push(format!("{} left", format_duration(left_ns)));
        }
        eprint_line(&format!("{workload}: {}", figures.join("; ")));
    }

    /// Prints the headline figures of a survey that is over, where each step has a line.
    pub(crate) fn show_survey_figures(&self, measurement: &SurfaceMeasurement) {
        if self.verbosity == Verbosity::Lines
            && let Some(figures) = survey_figures(measurement)
        {
            eprint_line(&figures);
        }
    }

    /// Ends the display: erases the progress line, and gives the terminal back.
    pub(crate) fn finish(&mut self) {
        self.screen = None;
        self.line.clear();
    }

    /// Tells the tool that a scratch file is filled up to `bytes`, for this workload.
    pub(crate) fn laying_out(&self, workload: &str, bytes: u64) {
        if let Some(tool) = &self.tool {
            tool.laying_out(workload, bytes);
        }
    }

    /// True if the tool ends before the next workload.
    pub(crate) fn is_tool_over(&self) -> bool {
        match &self.tool {
            Some(tool) => tool.is_over(),
            None => false,
        }
    }
}

/// The deadline of the run, for its steps.
impl ProgressDisplay {
    /// When the announced time is clearly over, as it is known now; `None` for a run without one.
    pub(crate) fn announced_end(&self) -> Option<Instant> {
        self.deadline.end()
    }

    /// The announced time that is left, in nanoseconds; `None` of a run without one.
    pub(crate) fn announced_left_ns(&self) -> Option<u64> {
        self.deadline.announced_left_ns()
    }

    /// The deadline for other threads. It moves while the run goes on.
    pub(crate) fn deadline(&self) -> SharedDeadline {
        self.deadline.shared()
    }

    /// Stops the announced time, for what is not part of it and may take any time. Until
    /// [`Self::resume_deadline`] nothing ends the run as late.
    pub(crate) fn pause_deadline(&mut self) -> PausedDeadline {
        self.deadline.pause()
    }

    /// Lets the announced time go on.
    pub(crate) fn resume_deadline(&mut self, paused: PausedDeadline) {
        self.deadline.resume(paused);
    }

    /// Counts the time in which a sleeping disk wakes up as announced time.
    pub(crate) fn count_wake_up(&mut self) {
        self.deadline.count_wake_up();
    }

    /// Moves the deadline by a time that is not part of the announced one.
    pub(crate) fn extend_deadline(&mut self, time: Duration) {
        self.deadline.extend(time);
    }

    /// Ends the run as late, because the target is too slow for a step.
    pub(crate) fn end_late(&mut self) {
        self.deadline.end_late();
    }

    /// Ends the run as late if the announced time is over, for a step that does not tick.
    pub(crate) fn look_at_end(&mut self) {
        self.deadline.look_at_clock();
    }

    /// True once the user has ended the run, or its announced time is over.
    pub(crate) fn is_over(&self) -> bool {
        self.deadline.has_passed() || interrupt::signal().is_some()
    }

    /// True if the run was ended because its announced time is over, and not by the user.
    pub(crate) fn is_late(&self) -> bool {
        self.deadline.is_late() && interrupt::signal().is_none()
    }

    /// Ends the run at Ctrl-C, after its announced time, and where a tool's reader is gone.
    fn end_if_over(&mut self, phase: Phase) -> Control {
        self.deadline.update(phase);
        if self.tool.is_some() && is_reader_gone() {
            interrupt::end_without_reader();
        }
        if self.deadline.is_late() || interrupt::signal().is_some() {
            Control::Interrupt
        } else {
            Control::Continue
        }
    }

    /// True if the rate of the workload is known as precisely as the plan asks for. A look costs
    /// time, so most calls answer false without one.
    fn is_rate_known(&mut self, progress: &Progress<'_>) -> bool {
        let Some(index) = self.schedule.index_in_current(progress.name) else {
            return false;
        };
        let plan = &self.facts.plan;
        let workload = &self.schedule.current()[index];
        let Some(goal) = workload.stop.precision else {
            return false;
        };
        if self.schedule.is_in_slices()
            || progress.phase != Phase::Measure
            || self.current[index].judged.elapsed() < JUDGE_INTERVAL
        {
            return false;
        }
        self.current[index].judged = Instant::now();
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

impl Watch for ProgressDisplay {
    fn tick(&mut self, progress: &Progress<'_>) -> Control {
        self.heartbeat.beat();
        note_unanswered(progress);
        self.report_silence(progress);
        self.report_survey_step(progress);
        self.report_resume_point(progress);
        if let Some(index) = self.schedule.index_in_current(progress.name) {
            let workload = &mut self.current[index];
            workload.iops = RecentRates::in_newest(progress, RECENT_CELLS).iops;
            workload.done = progress.done.unwrap_or(0.0);
        }
        if self.screen.is_some() {
            self.redraw_screen(progress);
        } else {
            self.redraw_line(progress);
        }
        match self.end_if_over(progress.phase) {
            Control::Continue if self.is_rate_known(progress) => Control::Enough,
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
        eprint_line(&found_line(place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::SECOND_NS;
    use crate::session::run_facts;
    use diskproof_model::plan::{Inserts, Plan, Stop, Task, Workload, Workloads};
    use diskproof_model::postgres::PostgresPlan;
    use std::time::SystemTime;

    fn timed(name: &str, target: Option<usize>) -> Workload {
        Workload {
            target,
            stop: Stop {
                time_ns: Some(SECOND_NS),
                ..Stop::default()
            },
            ..Workload::named(name)
        }
    }

    /// The display of a run of this task on two targets, which may take a minute.
    pub(super) fn display(task: Task) -> ProgressDisplay {
        let plan = Plan {
            targets: vec!["/a".to_owned(), "/b".to_owned()],
            tasks: vec![task],
            ..Plan::default()
        };
        let budget = Budget {
            targets: Vec::new(),
            request_bytes: 0,
            drops: Vec::new(),
            beyond: Vec::new(),
            expected_ns: Some(60 * SECOND_NS),
            deadline_ns: Some(60 * SECOND_NS),
            fill_ns: None,
        };
        let facts = run_facts(SystemTime::now(), plan, Vec::new());
        ProgressDisplay::new(Arc::new(facts), &budget, Verbosity::Quiet)
    }

    #[test]
    fn steps_are_the_measurements_of_all_targets() {
        let mut one_each = display(Task::Workloads(Workloads {
            list: vec![
                timed("one", Some(0)),
                timed("two", Some(0)),
                timed("three", Some(1)),
            ],
            ..Workloads::default()
        }));
        one_each.measured_count = 1;
        assert_eq!(one_each.step_text(), "2/3");
        let on_both = display(Task::Workloads(Workloads {
            list: vec![timed("one", None)],
            ..Workloads::default()
        }));
        assert_eq!(on_both.step_text(), "1/2");
    }

    #[test]
    fn time_left_has_what_a_server_does_after_the_workloads() {
        let workloads = Workloads {
            list: vec![timed("one", Some(0))],
            ..Workloads::default()
        };
        let server = PostgresPlan {
            programs: String::new(),
            version: String::new(),
            loads: Vec::new(),
            rounds: 2,
            slice_ns: SECOND_NS,
            trial: None,
        };
        let mut inserts = display(Task::Inserts(Inserts {
            server,
            between: workloads.clone(),
        }));
        let mut alone = display(Task::Workloads(workloads));
        for shown in [&mut inserts, &mut alone] {
            let facts = Arc::clone(&shown.facts);
            for group in facts.plan.groups() {
                shown.begin(group, None);
                shown.end_slice(AfterSlice::Over);
            }
        }
        assert_eq!(alone.left_ns(1.0), Some(0));
        assert!(inserts.left_ns(1.0) > Some(0));
    }
}
