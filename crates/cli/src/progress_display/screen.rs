//! Shows the progress of a run on the whole terminal.

use super::deadline::precedes_measured_time;
use super::recent_rates::recent_latency_max_ns;
use super::{ProgressDisplay, RECENT_CELLS, RecentRates};
use crate::flags::SECOND_NS;
use crate::load_screen::{LoadMoment, LoadScreen};
use crate::stdio::{Verbosity, eprint_line};
use diskproof_model::progress::{Phase, Progress};
use diskproof_model::units::format_duration;
use std::time::Duration;

/// The progress on the whole terminal.
impl ProgressDisplay {
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
        let moment = pause_moment(left, self.deadline.announced_left_ns());
        if let Some(screen) = &mut self.screen
            && screen.is_due()
        {
            screen.show(moment);
        }
    }

    /// Redraws the whole terminal, where it is due.
    pub(super) fn redraw_screen(&mut self, progress: &Progress<'_>) {
        let is_due = match &self.screen {
            Some(screen) => screen.is_due(),
            None => false,
        };
        if !is_due {
            return;
        }
        let moment = self.load_moment(progress);
        if let Some(screen) = &mut self.screen {
            screen.show(moment);
        }
    }

    /// The figures of the load, as its progress has them now.
    fn load_moment(&self, progress: &Progress<'_>) -> LoadMoment {
        let rates = RecentRates::in_newest(progress, RECENT_CELLS);
        // The first cell is not over yet, and a scratch file is filled in larger blocks.
        let has_rate = progress.series.cells.len() > 1 && !precedes_measured_time(progress.phase);
        let iops = if has_rate { Some(rates.iops) } else { None };
        LoadMoment {
            phase: load_phase_text(progress.phase, progress.name),
            left_ns: self.deadline.announced_left_ns(),
            iops,
            bytes_per_second: rates.bytes_per_second,
            latency_max_ns: recent_latency_max_ns(progress, RECENT_CELLS),
            slice_bytes: progress.series.total().bytes,
            remarks: self.silence_text(progress).into_iter().collect(),
        }
    }
}

/// A moment of a pause, in which nothing is sent.
fn pause_moment(left: Duration, run_left_ns: Option<u64>) -> LoadMoment {
    let left = format_duration(left.as_secs() * SECOND_NS);
    LoadMoment {
        phase: format!("pause, {left} of it left"),
        left_ns: run_left_ns,
        iops: Some(0.0),
        bytes_per_second: 0.0,
        latency_max_ns: None,
        slice_bytes: 0,
        remarks: Vec::new(),
    }
}

/// The phase of a load of this name in words.
fn load_phase_text(phase: Phase, name: &str) -> String {
    match phase {
        Phase::Layout => "filling the scratch file".to_owned(),
        Phase::WakeUp | Phase::FirstRequests => format!("{name}, first requests"),
        Phase::SetUp => format!("{name}, taking memory"),
        Phase::Warmup => format!("{name}, warm-up"),
        Phase::Measure | Phase::Survey | Phase::Verify => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::display;
    use super::*;
    use diskproof_model::plan::{Task, Workloads};
    use diskproof_model::progress::Silence;
    use diskproof_model::series::{Cell, TimeSeries};

    /// A series of so many cells of a tenth of a second, with one more request in each.
    fn series(cells: u64) -> TimeSeries {
        let mut series = TimeSeries::new(SECOND_NS / 10);
        for ops in 1..=cells {
            series.cells.push(Cell {
                ops,
                bytes: ops * 4096,
                latency_max_ns: ops * 1000,
                ..Cell::default()
            });
        }
        series
    }

    fn moment(phase: Phase, series: &TimeSeries) -> LoadMoment {
        let shown = display(Task::Workloads(Workloads::default()));
        shown.load_moment(&Progress::new("load", phase, SECOND_NS, series))
    }

    #[test]
    fn phase_is_named_beside_the_load_until_it_is_measured() {
        for (phase, text) in [
            (Phase::Layout, "filling the scratch file"),
            (Phase::WakeUp, "load, first requests"),
            (Phase::FirstRequests, "load, first requests"),
            (Phase::SetUp, "load, taking memory"),
            (Phase::Warmup, "load, warm-up"),
            (Phase::Measure, "load"),
        ] {
            assert_eq!(load_phase_text(phase, "load"), text, "{phase:?}");
        }
    }

    /// The last cell is not over, and what precedes the measured time is no load.
    #[test]
    fn screen_has_a_rate_once_a_cell_of_the_load_is_over() {
        let measured = moment(Phase::Measure, &series(3));
        assert_eq!(measured.iops, Some(15.0));
        assert_eq!(measured.latency_max_ns, Some(2000));
        assert_eq!(measured.slice_bytes, 6 * 4096);
        assert!(moment(Phase::Warmup, &series(2)).iops.is_some());
        assert_eq!(moment(Phase::Measure, &series(1)).iops, None);
        assert_eq!(moment(Phase::Layout, &series(3)).iops, None);
    }

    #[test]
    fn silence_is_a_remark() {
        let series = series(3);
        let shown = display(Task::Workloads(Workloads::default()));
        let silence = Silence {
            target: 1,
            length_ns: 100 * SECOND_NS,
        };
        let progress = Progress {
            silence: Some(silence),
            ..Progress::new("load", Phase::Measure, SECOND_NS, &series)
        };
        let remarks = shown.load_moment(&progress).remarks;
        assert_eq!(remarks.len(), 1);
        assert!(remarks[0].contains("/b"), "{remarks:?}");
    }

    #[test]
    fn pause_has_the_time_that_is_left_of_it_and_no_rate() {
        let moment = pause_moment(Duration::from_millis(40_900), Some(SECOND_NS));
        assert!(moment.phase.contains("40 s"), "{}", moment.phase);
        assert_eq!((moment.iops, moment.left_ns), (Some(0.0), Some(SECOND_NS)));
    }
}
