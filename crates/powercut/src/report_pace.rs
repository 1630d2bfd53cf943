//! Decides when a run reports. A young run reports all news at once. An old one reports less, so
//! that its log has room for days, but still reports in each pause that control pages are at risk
//! in it. Pure.

use crate::run::{RunProgress, StreamKind, WriteStream};
use std::time::Duration;

/// The longest time between two reports, even if nothing was written. The log takes a silence of a
/// minute for the cut.
pub(crate) const SIGN_OF_LIFE_INTERVAL: Duration = Duration::from_secs(1);
/// The age up to which a run reports all news. Chosen: most cuts come within it.
const ALL_NEWS_UNTIL: Duration = Duration::from_secs(600);
/// The time between two reports of an older run, but for that of the first control page. With it
/// the log of a run with the most workers has room for five days (`log_store::LOG_BYTES_MAX`).
const NEWS_INTERVAL: Duration = Duration::from_millis(300);
/// A pause has begun when no commit was seen for this time: longer than a commit takes on a
/// rotating disk, which has several in a burst.
const PAUSE_AFTER: Duration = Duration::from_millis(10);

/// Decides when the progress of a run is reported.
#[derive(Debug)]
pub(crate) struct ReportPace {
    streams: Vec<WriteStream>,
    /// The progress that the log has confirmed last.
    reported: RunProgress,
    /// The first progress with the newest commit.
    last_commit: RunProgress,
}

impl ReportPace {
    /// `start` is the progress before the first report.
    pub(crate) fn new(streams: &[WriteStream], start: &RunProgress) -> Self {
        Self {
            streams: streams.to_vec(),
            reported: start.clone(),
            last_commit: start.clone(),
        }
    }

    /// Returns the progress that was reported last.
    pub(crate) fn reported(&self) -> &RunProgress {
        &self.reported
    }

    /// Sets the progress that the log has confirmed.
    pub(crate) fn set_reported(&mut self, reported: RunProgress) {
        self.reported = reported;
    }

    /// True if this progress has to be reported now. The writer must call this every few
    /// milliseconds, as the time of the newest commit is that of the first call that sees it.
    pub(crate) fn is_due(&mut self, now: &RunProgress) -> bool {
        if self.commits(now) > self.commits(&self.last_commit) {
            self.last_commit = now.clone();
        }
        let age = time_between(&self.reported, now);
        if age >= SIGN_OF_LIFE_INTERVAL {
            return true;
        }
        if now.counts == self.reported.counts {
            return false;
        }
        Duration::from_nanos(now.elapsed_ns) < ALL_NEWS_UNTIL
            || age >= NEWS_INTERVAL
            || self.is_first_at_risk(now)
    }

    /// True in a pause that has control pages of which none was reported.
    fn is_first_at_risk(&self, now: &RunProgress) -> bool {
        let before_pause = self.control_pages(&self.last_commit);
        time_between(&self.last_commit, now) >= PAUSE_AFTER
            && self.control_pages(now) > before_pause
            && self.control_pages(&self.reported) <= before_pause
    }

    /// The writes of all streams but the control.
    fn commits(&self, progress: &RunProgress) -> u64 {
        progress.counts.iter().sum::<u64>() - self.control_pages(progress)
    }

    fn control_pages(&self, progress: &RunProgress) -> u64 {
        let mut pages = 0;
        for (stream, count) in self.streams.iter().zip(&progress.counts) {
            if stream.kind == StreamKind::Control {
                pages += count;
            }
        }
        pages
    }
}

fn time_between(earlier: &RunProgress, later: &RunProgress) -> Duration {
    Duration::from_nanos(later.elapsed_ns.saturating_sub(earlier.elapsed_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit_schedule::{CONTROL_INTERVAL, CommitSchedule};
    use crate::log_store::{LOG_BYTES_MAX, reports_within};
    use crate::run::{RunDescription, WORKERS_MAX};

    const STEP: Duration = Duration::from_millis(1);
    /// The simulated time.
    const SECONDS: u64 = 60;

    /// What a run of a minute has told its log.
    #[derive(Debug, Default)]
    struct SimulatedRun {
        reports: u64,
        /// Steps in which a cut would be seen: the log knows a control page that no sync followed.
        steps_at_risk: u64,
    }

    /// Runs the commits of a disk that takes `commit` for one of them, from this age of the run.
    fn simulate(age: Duration, commit: Duration) -> SimulatedRun {
        let streams = RunDescription::streams(WORKERS_MAX, true);
        let mut now = RunProgress {
            elapsed_ns: age.as_nanos() as u64,
            counts: vec![0; streams.len()],
        };
        let mut pace = ReportPace::new(&streams, &now);
        let mut schedule = CommitSchedule::new(3);
        let mut run = SimulatedRun::default();
        let control = usize::from(WORKERS_MAX);
        let mut commit_end: Option<u64> = None;
        let mut at_commit = 0;
        let commit_steps = commit.as_millis() as u64;
        for step in 0..SECONDS * 1000 {
            let is_burst = schedule.time_until_commit(STEP * step as u32).is_zero();
            if commit_end == Some(step) {
                (0..streams.len())
                    .filter(|index| *index != control)
                    .for_each(|index| {
                        now.counts[index] += 1;
                    });
                commit_end = None;
                at_commit = now.counts[control];
            }
            if is_burst && commit_end.is_none() {
                commit_end = Some(step + commit_steps);
            }
            if step.is_multiple_of(CONTROL_INTERVAL.as_millis() as u64) {
                now.counts[control] += 1;
            }
            now.elapsed_ns += STEP.as_nanos() as u64;
            if pace.is_due(&now) {
                pace.set_reported(now.clone());
                run.reports += 1;
            }
            run.steps_at_risk += u64::from(pace.reported().counts[control] > at_commit);
        }
        run
    }

    #[test]
    fn log_of_an_old_run_has_room_for_five_days_and_nearly_as_much_evidence() {
        let streams = RunDescription::streams(WORKERS_MAX, true).len();
        for commit_ms in [1, 8, 15] {
            let commit = Duration::from_millis(commit_ms);
            let young = simulate(Duration::ZERO, commit);
            let old = simulate(ALL_NEWS_UNTIL, commit);
            let five_days = old.reports * 5 * 86_400 / SECONDS;
            assert!(
                five_days < reports_within(LOG_BYTES_MAX, streams),
                "{old:?}"
            );
            assert!(young.reports > 10 * old.reports, "{young:?} {old:?}");
            assert!(young.steps_at_risk > SECONDS * 600, "{young:?}");
            let four_fifths = young.steps_at_risk * 4 / 5;
            assert!(old.steps_at_risk > four_fifths, "{young:?} {old:?}");
        }
    }

    #[test]
    fn run_without_news_gives_a_sign_of_life() {
        let streams = RunDescription::streams(1, false);
        let at = |ms: u64| RunProgress {
            elapsed_ns: ms * 1_000_000,
            counts: vec![0; streams.len()],
        };
        let mut pace = ReportPace::new(&streams, &at(0));
        assert!(!pace.is_due(&at(999)));
        assert!(pace.is_due(&at(1000)));
    }
}
