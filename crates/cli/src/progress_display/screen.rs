//! Shows the progress of a run on the whole terminal.

use super::deadline::precedes_measured_time;
use super::recent_rates::recent_latency_max_ns;
use super::{ProgressDisplay, RECENT_CELLS, RecentRates};
use crate::flags::SECOND;
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
        let run_left_ns = self.deadline.announced_left_ns();
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

    /// Redraws the whole terminal, where it is due.
    pub(super) fn redraw_screen(&mut self, progress: &Progress<'_>) {
        let Some(screen) = &self.screen else {
            return;
        };
        if !screen.is_due() {
            return;
        }
        let rates = RecentRates::in_newest(progress, RECENT_CELLS);
        // The first cell is not over yet, and a scratch file is filled in larger blocks.
        let has_rate = progress.series.cells.len() > 1 && !precedes_measured_time(progress.phase);
        let iops = if has_rate { Some(rates.iops) } else { None };
        let moment = LoadMoment {
            phase: match progress.phase {
                Phase::Layout => "filling the scratch file".to_owned(),
                Phase::WakeUp | Phase::FirstRequests => {
                    format!("{}, first requests", progress.name)
                }
                Phase::SetUp => format!("{}, taking memory", progress.name),
                Phase::Warmup => format!("{}, warm-up", progress.name),
                Phase::Measure | Phase::Survey | Phase::Verify => progress.name.to_owned(),
            },
            left_ns: self.deadline.announced_left_ns(),
            iops,
            bytes_per_second: rates.bytes_per_second,
            latency_max_ns: recent_latency_max_ns(progress, RECENT_CELLS),
            slice_bytes: progress.series.total().bytes,
            remarks: self.silence_text(progress).into_iter().collect(),
        };
        if let Some(screen) = &mut self.screen {
            screen.show(moment);
        }
    }
}
