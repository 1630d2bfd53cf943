//! The lines that a run prints while it goes on: the progress line, long silences, the steps of a
//! survey, and where a scan could resume.

use super::deadline::precedes_measured_time;
use super::lines::{NAME_COLUMNS, progress_text, survey_left_ns, survey_line};
use super::silence_notes::FIRST_NOTE_NS;
use super::{ProgressDisplay, RECENT_CELLS, RecentRates};
use crate::flags::SECOND_NS;
use crate::stdio::{Verbosity, eprint_line, progress_columns};
use diskproof_model::progress::{Control, Phase, Progress};
use diskproof_model::units::{format_duration, format_rate, format_throughput};
use std::time::{Duration, Instant};

/// A line reports where a scan could resume after another fiftieth of its time, so that little is
/// lost and the lines of a whole day fit on a few screens.
const RESUME_DIVISOR: u32 = 50;
/// The shortest and the longest time between two such lines.
const RESUME_EVERY: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(10)..=Duration::from_secs(600);
/// The progress line shows a silence of this length; shorter ones are normal for disks.
const SILENCE_SHOWN_NS: u64 = 2 * SECOND_NS;

/// The time after which another line reports where a scan could resume that takes so long.
fn resume_interval(elapsed: Duration) -> Duration {
    (elapsed / RESUME_DIVISOR).clamp(*RESUME_EVERY.start(), *RESUME_EVERY.end())
}

/// The lines about progress.
impl ProgressDisplay {
    /// The progress line: step, workload, bar, time left, rate.
    fn workload_line(&self, progress: &Progress<'_>) -> String {
        let is_joint = self.current.len() > 1 && !precedes_measured_time(progress.phase);
        let done = if is_joint {
            self.joint_done()
        } else {
            progress.done.unwrap_or(0.0).clamp(0.0, 1.0)
        };
        let mut figures = Vec::new();
        figures.extend(self.silence_text(progress));
        figures.extend(phase_words(progress.phase).map(str::to_owned));
        if let Some(left_ns) = self.left_ns(done) {
            figures.push(format!("{} left", format_duration(left_ns)));
        }
        let steps = self.facts.plan.workloads().len().max(1);
        let number = (self.schedule.over_count() + 1).min(steps);
        let mut step = format!("{number}/{steps} ");
        if is_joint {
            for (workload, progress) in self.schedule.current().iter().zip(&self.current) {
                let name = &workload.name;
                figures.push(format!("{name} {}/s", format_rate(progress.iops)));
            }
        } else {
            let name = match self.schedule.first_current() {
                Some(workload) => &workload.name,
                None => progress.name,
            };
            step.push_str(&format!("{name:<NAME_COLUMNS$} "));
            let rates = RecentRates::in_newest(progress, RECENT_CELLS);
            figures.push(format!("{}/s", format_rate(rates.iops)));
            figures.push(format_throughput(rates.bytes_per_second));
        }
        let group_done = self.schedule.group_done(done);
        progress_text(&step, group_done, &figures.join(", "), progress_columns())
    }

    /// The share that is done of workloads which run together: the first one that is done ends the
    /// others.
    fn joint_done(&self) -> f64 {
        let mut done: f64 = 0.0;
        for workload in &self.current {
            done = done.max(workload.done);
        }
        done.clamp(0.0, 1.0)
    }

    /// Prints now and then how to resume a scan: it takes hours, and may be killed.
    pub(super) fn report_resume_point(&mut self, progress: &Progress<'_>) {
        let interval = resume_interval(Duration::from_nanos(progress.elapsed_ns));
        if self.verbosity == Verbosity::Quiet || self.resume_reported.elapsed() < interval {
            return;
        }
        let Some(offset) = progress.resume_bytes else {
            return;
        };
        self.resume_reported = Instant::now();
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

    /// The time without a completion, where a progress line should show it.
    pub(crate) fn silence_text(&self, progress: &Progress<'_>) -> Option<String> {
        self.silence_of_at_least(progress, SILENCE_SHOWN_NS)
    }

    /// `no answer for 12 s`: the time without a completion, or `None` where that is less than
    /// `least_ns`.
    fn silence_of_at_least(&self, progress: &Progress<'_>, least_ns: u64) -> Option<String> {
        let silence = progress.silence?;
        if silence.length_ns < least_ns {
            return None;
        }
        let length = format_duration(silence.length_ns / SECOND_NS * SECOND_NS);
        Some(match self.path_among_several(silence.target) {
            Some(path) => format!("no answer from {path} for {length}"),
            None => format!("no answer for {length}"),
        })
    }

    /// Reports a long silence where no progress line shows it.
    pub(super) fn report_silence(&mut self, progress: &Progress<'_>) {
        if self.verbosity != Verbosity::Lines {
            return;
        }
        let Some(silence) = progress.silence else {
            return;
        };
        if self.silence_notes.is_due(silence.length_ns)
            && let Some(text) = self.silence_of_at_least(progress, FIRST_NOTE_NS)
        {
            eprint_line(&format!("{}: {text}", progress.name));
        }
    }

    /// The path of a target, where the run has several; `None` where it has one.
    pub(super) fn path_among_several(&self, target: usize) -> Option<&str> {
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

    /// Prints the name of a step of a survey once it begins, where each step has a line.
    pub(super) fn report_survey_step(&mut self, progress: &Progress<'_>) {
        if self.verbosity == Verbosity::Lines
            && progress.phase == Phase::Survey
            && progress.name != self.survey_step
        {
            progress.name.clone_into(&mut self.survey_step);
            eprint_line(&format!("survey: {}", progress.name));
        }
    }

    /// Redraws the progress line, where it is due.
    pub(super) fn redraw_line(&mut self, progress: &Progress<'_>) {
        if !self.line.is_due() {
            return;
        }
        let line = if progress.phase == Phase::Survey {
            survey_line(progress, self.silence_text(progress), progress_columns())
        } else {
            self.workload_line(progress)
        };
        self.line.show(&line);
    }
}

/// The words for a phase in a progress line; `None` of the phases that are the measurement itself.
fn phase_words(phase: Phase) -> Option<&'static str> {
    match phase {
        Phase::Layout => Some("layout"),
        Phase::WakeUp | Phase::FirstRequests => Some("first requests"),
        Phase::SetUp => Some("taking memory"),
        Phase::Warmup => Some("warm-up"),
        Phase::Measure | Phase::Survey => None,
        Phase::Verify => Some("verify"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn point_to_resume_is_reported_each_fiftieth_of_the_time() {
        for (elapsed_s, interval_s) in [
            (0, 10),
            (500, 10),
            (1_000, 20),
            (30_000, 600),
            (90_000, 600),
        ] {
            let interval = resume_interval(Duration::from_secs(elapsed_s));
            assert_eq!(interval, Duration::from_secs(interval_s), "{elapsed_s} s");
        }
    }
}
