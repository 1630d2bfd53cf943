//! The steps as lines, on a screen, or not at all.

use super::flags::WatchFlags;
use super::screen::{FullScreen, is_screen};
use crate::failure::is_closed_stdout;
use crate::interrupt::Interrupt;
use crate::stdout::{style, to_stdout, write_in_locale};
use diskproof_model::watch::WatchStep;
use diskproof_report::style::Style;
use diskproof_report::terminal::{
    WatchFacts, write_watch_facts, write_watch_heading, write_watch_step,
};
use std::time::{Duration, Instant};

/// How often a wait looks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Steps between two headings.
const HEADING_EVERY: u64 = 20;

/// Where the steps go.
pub(super) struct LiveView {
    style: Style,
    shown: u64,
    kind: ViewKind,
}

enum ViewKind {
    Lines,
    Screen(FullScreen),
    Silent,
}

impl LiveView {
    pub(super) fn start(watch: &WatchFlags) -> anyhow::Result<Self> {
        let kind = match () {
            () if watch.prints_json() => ViewKind::Silent,
            () if !watch.plain && is_screen() => ViewKind::Screen(FullScreen::start()?),
            () => ViewKind::Lines,
        };
        Ok(Self {
            style: style(watch.color),
            shown: 0,
            kind,
        })
    }

    /// Waits, and meanwhile calls `work` repeatedly; false where the user ends the view.
    pub(super) fn wait_until(
        &mut self,
        due: Instant,
        interrupt: &Interrupt,
        mut work: impl FnMut(),
    ) -> bool {
        while interrupt.signal().is_none() {
            work();
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(LOOK_EVERY));
            if let ViewKind::Screen(screen) = &self.kind
                && screen.has_quit()
            {
                return false;
            }
        }
        false
    }

    /// Shows a step; false where the reader of stdout has gone.
    pub(super) fn show(
        &mut self,
        step: &WatchStep,
        facts: &WatchFacts,
        named: &[String],
    ) -> anyhow::Result<bool> {
        let (shown, style) = (self.shown, self.style);
        self.shown += 1;
        let written = match &mut self.kind {
            ViewKind::Silent => Ok(()),
            ViewKind::Screen(screen) => screen.draw(step, facts, named, self.style),
            ViewKind::Lines => to_stdout(|out| {
                write_in_locale(out, |page| {
                    if shown == 0 {
                        write_watch_facts(facts, &style, page)?;
                    }
                    if shown.is_multiple_of(HEADING_EVERY) {
                        write_watch_heading(&style, page)?;
                    }
                    write_watch_step(step, named, &style, page)
                })
            }),
        };
        match written {
            Err(error) if is_closed_stdout(&error) => Ok(false),
            other => other.map(|()| true),
        }
    }
}
