//! A run that has ended, with what is left of it to be saved or removed.

use super::sink::{EarlyEnd, RunResults};
use crate::failure::Failure;
use crate::saved::{InHistory, LeftInJournal, TestJournal, end_journals, leave_in_journal};
use diskproof_analysis::judge::RunFacts;
use diskproof_device::TargetFailure;
use diskproof_engine::watchdog::Deferred;
use diskproof_history::Journal;
use diskproof_model::record::{FailedCall, Record};
use diskproof_model::target::TargetIdentity;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The longest wait for the end of the journal: writing or removing a few files takes milliseconds.
const JOURNAL_ENDED_TIMEOUT: Duration = Duration::from_secs(1);

/// A run that has ended.
pub(crate) struct EndedRun {
    /// The record's facts.
    pub facts: RunFacts,
    /// The results of the run.
    pub results: RunResults,
    /// Why it ended before its plan did.
    pub ended: Result<(), EarlyEnd>,
    /// The longest silence of a target.
    pub stall_timeout: Duration,
    /// False if the command that restores a setting after the run failed.
    pub is_cleaned_up: bool,
    /// The results that were saved meanwhile, in case the run is killed.
    pub(super) journals: Vec<Arc<Journal>>,
    /// The state of an acceptance test, from which a later run would go on.
    pub(super) test_journal: Option<TestJournal>,
}

impl EndedRun {
    /// A run that could not open its targets, because one of them failed.
    pub(crate) fn not_opened(facts: RunFacts, failure: Failure, stall_timeout: Duration) -> Self {
        let failed = failure
            .of_target()
            .map(|failure| failed_call(failure, &facts.targets, None));
        Self {
            facts: RunFacts {
                partial: true,
                ended_early: Some(failure.to_string()),
                failed,
                ..facts
            },
            results: RunResults::default(),
            ended: Err(EarlyEnd::NotStarted(failure)),
            stall_timeout,
            is_cleaned_up: true,
            journals: Vec::new(),
            test_journal: None,
        }
    }

    /// Removes the journal of an acceptance test whose record is in the history now. One that is
    /// not complete keeps it, and goes on from it.
    pub(crate) fn end_test_journal(&self, record: &Record, saved: InHistory) {
        if let Some(accept) = record.accept()
            && accept.data.finished
            && let Some(journal) = self.test_journal.clone()
        {
            // One that stays is known to be of a run in the history, and is replaced.
            let ending = Deferred::start_or_run("diskproof-journal", move || journal.end(saved));
            let _ = ending.wait(JOURNAL_ENDED_TIMEOUT);
        }
    }

    /// Removes what was saved meanwhile: the run is in the history now.
    pub(crate) fn end_journal(&self) {
        end_journals(self.journals.clone());
    }

    /// Leaves the whole record of a run that could not be saved in its journal, as far as that can
    /// take it; `kept_in` is a file that has it. Says what is left of the run there.
    pub(crate) fn leave_in_journal(
        &self,
        record: &Arc<Record>,
        kept_in: Option<&Path>,
    ) -> LeftInJournal {
        match self.journals.first() {
            Some(journal) => leave_in_journal(Arc::clone(journal), record, kept_in),
            None => LeftInJournal::Nothing,
        }
    }
}

/// The call that a target failed, with the index of the target. `step_target` is that of the last
/// step, where it was about one.
pub(super) fn failed_call(
    failure: TargetFailure,
    targets: &[TargetIdentity],
    step_target: Option<usize>,
) -> FailedCall {
    let only = (targets.len() == 1).then_some(0);
    // The failed path may be one of our own below the target.
    let named = targets
        .iter()
        .position(|target| Path::new(&failure.path).starts_with(&target.path));
    FailedCall {
        doing: failure.doing,
        errno: failure.errno,
        count: 1,
        target: only.or(named).or(step_target),
    }
}
