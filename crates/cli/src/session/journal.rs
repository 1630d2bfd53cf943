//! Saves what a run has measured so far, between its slices: a run that is killed loses one slice
//! at most, and a ping, which has none, a tenth of its time.

use crate::saved::{HistoryOptions, TestJournal, start_journal, test_journal};
use diskproof_analysis::expect::Expected;
use diskproof_analysis::judge::{RunFacts, judge};
use diskproof_engine::watchdog::{Deferred, Waited};
use diskproof_history::Journal;
use diskproof_model::accept::Procedure;
use diskproof_model::data::RunData;
use diskproof_model::plan::{Decide, Plan, Sides};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The record of a run that was killed gives this reason.
const KILLED: &str = "diskproof was killed during the run; what had ended before is complete";
/// The shortest time between two entries: what a second has measured is measured again in the time
/// that it takes to look for it.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The journal takes at most a fiftieth of the time of the run.
const COST_DIVISOR: u32 = 50;
/// A measurement without slices is kept after each further tenth of its time.
const WITHIN_DIVISOR: u64 = 10;
/// Such a measurement is not kept more often than this.
const WITHIN_MIN: Duration = Duration::from_secs(10);
/// Nor is it kept more rarely than this.
const WITHIN_MAX: Duration = Duration::from_secs(60);
/// Writing takes milliseconds. A filesystem that takes longer gets no further journal: the history
/// never costs a measurement.
const WRITTEN_WITHIN: Duration = Duration::from_millis(500);

/// The journal of a run.
pub(super) struct RunJournal {
    /// `None` where there is no history, or where it does not answer.
    journal: Option<Arc<Journal>>,
    /// The journal from which an acceptance test goes on.
    test: Option<TestJournal>,
    facts: Arc<RunFacts>,
    expected: Vec<Expected>,
    /// When results were kept last.
    kept_at: Instant,
    /// The time that this took.
    cost: Duration,
}

impl RunJournal {
    /// Begins the journal of a run with these facts and thresholds.
    pub(super) fn start(
        options: &HistoryOptions,
        facts: &Arc<RunFacts>,
        expected: &[Expected],
    ) -> Self {
        let journal = if compares_settings(&facts.plan) {
            None
        } else {
            start_journal(options, &facts.run_id).map(Arc::new)
        };
        let test = match (facts.plan.accept(), facts.targets.first()) {
            // Trouble with it was reported before the run. A probe takes minutes, and has none.
            (Some(plan), Some(target)) if plan.procedure == Procedure::Whole => {
                test_journal(options, target).ok().flatten()
            }
            _ => None,
        };
        Self {
            journal,
            test,
            facts: Arc::clone(facts),
            expected: expected.to_vec(),
            kept_at: Instant::now(),
            cost: Duration::ZERO,
        }
    }

    /// The journal itself, for the one who ends it once the run is in the history.
    pub(super) fn handle(&self) -> Option<Arc<Journal>> {
        self.journal.clone()
    }

    /// The journal from which an acceptance test goes on; `None` of a probe, and where no history
    /// is kept.
    pub(super) fn test(&self) -> Option<&TestJournal> {
        self.test.as_ref()
    }

    /// True if it is time to keep what was measured so far.
    pub(super) fn is_due(&self) -> bool {
        let pause = PAUSE_MIN.max(self.cost.saturating_mul(COST_DIVISOR));
        self.journal.is_some() && self.kept_at.elapsed() >= pause
    }

    /// True if it is time to keep what a measurement without slices has given after this long, in
    /// nanoseconds. Keeping disturbs it, so a kill may cost a tenth of it.
    pub(super) fn is_due_within(&self, elapsed_ns: u64) -> bool {
        let pause = Duration::from_nanos(elapsed_ns / WITHIN_DIVISOR).clamp(WITHIN_MIN, WITHIN_MAX);
        self.is_due() && self.kept_at.elapsed() >= pause
    }

    /// Keeps what was measured so far.
    pub(super) fn keep(&mut self, data: &RunData) {
        let Some(journal) = self.journal.clone() else {
            return;
        };
        let begin = Instant::now();
        let facts = RunFacts {
            partial: true,
            ended_early: Some(KILLED.to_owned()),
            ..RunFacts::clone(&self.facts)
        };
        let record = judge(facts, data, &self.expected);
        let writing = Deferred::start_or_run("diskproof-journal", move || journal.keep(&record));
        match writing.wait(WRITTEN_WITHIN) {
            Waited::Done(Ok(())) => {}
            Waited::Done(Err(_)) | Waited::TimedOut(_) | Waited::Lost => self.journal = None,
        }
        self.kept_at = Instant::now();
        self.cost = begin.elapsed();
    }
}

/// True if the sides of a run are settings of one target. Until its end they have no records of
/// their own, and one record holds one setting.
fn compares_settings(plan: &Plan) -> bool {
    let Some(workloads) = plan.workload_task() else {
        return false;
    };
    match &workloads.decide {
        Decide::Compare(live) => matches!(live.sides, Sides::Settings { .. }),
        Decide::AsPlanned
        | Decide::Sweep(_)
        | Decide::Depth
        | Decide::Until(_)
        | Decide::Rate(_) => false,
    }
}
