//! Shows the steps of `watch` as lines, on a whole terminal, or not at all. The screen shows the
//! lines of the plain view in place.

use crate::full_screen::{FullScreen, ScreenStream};
use crate::interrupt;
use crate::stdio::{
    ColorWhen, StdoutError, is_closed_stdout, page_in_locale, style, to_stdout, write_in_locale,
};
use diskproof_model::watch::WatchStep;
use diskproof_report::style::Style;
use diskproof_report::terminal::{
    WatchFacts, write_watch_facts, write_watch_heading, write_watch_step,
};
use std::time::{Duration, Instant};

/// Time between two looks for a signal or a key: shorter than a delay that a user notices.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Steps between two headings, so that one of them is on every screen.
const HEADING_STEPS: u64 = 20;

/// The last line of the screen, which says how to leave it.
const QUIT_HINT: &str = "q ends the view";

/// The view that the user asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestedView {
    /// No steps are shown.
    Silent,
    /// Lines, even on a terminal.
    Lines,
    /// The whole terminal where stdout is one, else lines.
    Screen,
}

/// The end of a wait for the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ViewWait {
    /// The step is due.
    Due,
    /// The user ended the view, by a key or a signal.
    EndedByUser,
}

/// The state of stdout after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ViewOutlet {
    /// It took the step, or the view is silent.
    Open,
    /// Its reader has closed it.
    Closed,
}

/// The view of the steps, which lasts as long as this value: a screen is given back when dropped.
pub(super) struct StepView {
    style: Style,
    steps_shown: u64,
    output: ViewOutput,
}

/// The way in which the steps are shown, once it is known whether stdout is a terminal.
enum ViewOutput {
    Lines,
    Screen(FullScreen),
    Silent,
}

impl StepView {
    /// Begins the view, and takes the terminal for a screen.
    pub(super) fn start(requested: RequestedView, color: ColorWhen) -> anyhow::Result<Self> {
        let output = match requested {
            RequestedView::Silent => ViewOutput::Silent,
            RequestedView::Screen if FullScreen::is_possible(ScreenStream::Stdout) => {
                ViewOutput::Screen(FullScreen::start(ScreenStream::Stdout)?)
            }
            RequestedView::Screen | RequestedView::Lines => ViewOutput::Lines,
        };
        Ok(Self {
            style: style(color),
            steps_shown: 0,
            output,
        })
    }

    /// Waits for the instant, and calls `meanwhile` again and again, every [`POLL_INTERVAL`].
    pub(super) fn wait_until(&mut self, due: Instant, mut meanwhile: impl FnMut()) -> ViewWait {
        while interrupt::signal().is_none() {
            meanwhile();
            let time_left = due.saturating_duration_since(Instant::now());
            if time_left.is_zero() {
                return ViewWait::Due;
            }
            std::thread::sleep(time_left.min(POLL_INTERVAL));
            if let ViewOutput::Screen(screen) = &self.output
                && screen.has_quit()
            {
                return ViewWait::EndedByUser;
            }
        }
        ViewWait::EndedByUser
    }

    /// Shows a step. `named` are the kernel names of the devices that the user named.
    pub(super) fn show_step(
        &mut self,
        step: &WatchStep,
        facts: &WatchFacts,
        named: &[String],
    ) -> anyhow::Result<ViewOutlet> {
        let style = self.style;
        let steps_shown = self.steps_shown;
        let written = match &mut self.output {
            ViewOutput::Silent => Ok(()),
            ViewOutput::Screen(screen) => draw_step(screen, step, facts, named, style),
            ViewOutput::Lines => to_stdout(|out| {
                write_in_locale(out, |page| {
                    if steps_shown == 0 {
                        write_watch_facts(facts, &style, page)?;
                    }
                    if steps_shown.is_multiple_of(HEADING_STEPS) {
                        write_watch_heading(&style, page)?;
                    }
                    write_watch_step(step, named, &style, page)
                })
            }),
        };
        self.steps_shown += 1;
        match written {
            Ok(()) => Ok(ViewOutlet::Open),
            Err(error) if is_closed_stdout(&error) => Ok(ViewOutlet::Closed),
            Err(error) => Err(error),
        }
    }
}

/// Draws a step on the screen. The devices come first: where the screen is too small, the facts
/// are cut off.
fn draw_step(
    screen: &FullScreen,
    step: &WatchStep,
    facts: &WatchFacts,
    named: &[String],
    style: Style,
) -> anyhow::Result<()> {
    let fitted_style = Style {
        width: screen.size().columns,
        ..style
    };
    let page = page_in_locale(|page| {
        write_watch_heading(&fitted_style, page)?;
        write_watch_step(step, named, &fitted_style, page)?;
        writeln!(page)?;
        write_watch_facts(facts, &fitted_style, page)
    });
    match screen.draw(&page, QUIT_HINT) {
        Ok(()) => Ok(()),
        Err(error) => Err(StdoutError(error).into()),
    }
}
