//! Saves what a run has measured so far, between its slices. A run that is killed loses one slice
//! at most; a ping, which has none, loses a tenth of its time.

use super::sides::{ComparedSides, SideResults, SideTarget};
use crate::saved::{HistoryOptions, Journals, KILLED, TestJournal, start_journals, test_journal};
use diskproof_analysis::expect::Expected;
use diskproof_analysis::judge::{RunFacts, judge};
use diskproof_history::Journal;
use diskproof_model::accept::Procedure;
use diskproof_model::data::RunData;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A measurement without slices is saved after each further tenth of its time. Saving disturbs it,
/// so a kill may cost that much. Chosen, not measured.
const SAVED_FRACTION: u64 = 10;
/// The shortest pause between two saves of such a measurement.
const SAVE_PAUSE_MIN: Duration = Duration::from_secs(10);
/// The longest one: no kill costs more than a minute.
const SAVE_PAUSE_MAX: Duration = Duration::from_secs(60);

/// The journal of a run.
pub(super) struct RunJournal {
    /// One, or one for each side that gets a record of its own.
    journals: Journals,
    sides: Option<ComparedSides>,
    /// The journal from which an acceptance test goes on.
    test: Option<TestJournal>,
    facts: Arc<RunFacts>,
    expected: Vec<Expected>,
}

/// What the journal needs of the results of a run.
pub(super) struct KeptResults {
    pub data: RunData,
    /// By the number of a side that is a setting of the target, the target after the first command.
    pub sides: BTreeMap<usize, SideTarget>,
}

impl RunJournal {
    /// Begins the journal of a run with these facts and thresholds.
    pub(super) fn start(
        options: &HistoryOptions,
        facts: &Arc<RunFacts>,
        expected: &[Expected],
        sides: Option<ComparedSides>,
    ) -> Self {
        let run_ids = match &sides {
            Some(sides) => sides.run_ids(&facts.run_id),
            None => vec![facts.run_id.clone()],
        };
        let test = match (facts.plan.accept(), facts.targets.first()) {
            // Trouble with it was reported before the run. A probe takes minutes, and has none.
            (Some(plan), Some(target)) if plan.procedure == Procedure::Whole => {
                test_journal(options, target).ok().flatten()
            }
            _ => None,
        };
        Self {
            journals: start_journals(options, &run_ids),
            sides,
            test,
            facts: Arc::clone(facts),
            expected: expected.to_vec(),
        }
    }

    /// The journals themselves, so that they can be ended once the run is in the history.
    pub(super) fn handles(&self) -> Vec<Arc<Journal>> {
        self.journals.handles()
    }

    /// The journal from which an acceptance test goes on; `None` of a probe, and where no history
    /// is kept.
    pub(super) fn test(&self) -> Option<&TestJournal> {
        self.test.as_ref()
    }

    /// True if it is time to keep what was measured so far.
    pub(super) fn is_due(&self) -> bool {
        self.journals.is_due()
    }

    /// True if it is time to keep what a measurement without slices has given after this long, in
    /// nanoseconds.
    pub(super) fn is_due_within(&self, elapsed_ns: u64) -> bool {
        self.is_due() && self.journals.age() >= save_pause(elapsed_ns)
    }

    /// Keeps what was measured so far.
    pub(super) fn keep(&mut self, results: &KeptResults) {
        if self.journals.is_empty() {
            return;
        }
        let begun = Instant::now();
        let facts = RunFacts {
            partial: true,
            ended_early: Some(KILLED.to_owned()),
            ..RunFacts::clone(&self.facts)
        };
        let mut records = Vec::new();
        match &self.sides {
            None => records.push(Some(judge(facts, &results.data, &self.expected))),
            Some(sides) => {
                let results = SideResults {
                    facts: &facts,
                    data: &results.data,
                    switched: &results.sides,
                    decisions: &[],
                };
                for record in sides.records(results) {
                    records.push(Some(record).filter(|record| !record.measurements.is_empty()));
                }
            }
        }
        self.journals.keep(begun, records);
    }
}

/// The pause before a measurement without slices is saved again that has lasted this long.
fn save_pause(elapsed_ns: u64) -> Duration {
    Duration::from_nanos(elapsed_ns / SAVED_FRACTION).clamp(SAVE_PAUSE_MIN, SAVE_PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::SECOND_NS;

    #[test]
    fn pause_between_saves_is_a_tenth_of_the_time_within_its_limits() {
        assert_eq!(save_pause(20 * SECOND_NS), Duration::from_secs(10));
        assert_eq!(save_pause(300 * SECOND_NS), Duration::from_secs(30));
        assert_eq!(save_pause(86_400 * SECOND_NS), Duration::from_secs(60));
    }
}
