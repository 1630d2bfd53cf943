//! Makes the record of a watched load, at its end and while it is watched: a watch that is killed
//! is in the history up to one of its last steps.

use super::kernel::{ObservedLoad, WatchedKernel};
use crate::saved::{
    HistoryOptions, InHistory, Journals, KILLED, LeftInJournal, end_journals, leave_in_journal,
    start_journals,
};
use diskproof_analysis::judge::{RunFacts, judge};
use diskproof_model::data::RunData;
use diskproof_model::plan::Plan;
use diskproof_model::record::Record;
use std::sync::Arc;
use std::time::Instant;

/// The facts of a watch that do not change, and its journal.
pub(super) struct WatchJournal {
    /// Without the targets, which are the devices that had requests so far.
    facts: RunFacts,
    journals: Option<Journals>,
}

impl WatchJournal {
    /// The journal of a watch with this note. Nothing is kept without options of the history.
    pub(super) fn start(
        kernel: &WatchedKernel,
        note: Option<&str>,
        options: Option<&HistoryOptions>,
    ) -> Self {
        // The plan has no work: the load is that of others.
        let plan = Plan::new("watch", crate::provenance::command_line());
        let mut facts = crate::session::run_facts(kernel.start_wall(), plan, Vec::new());
        facts.note = note.map(str::to_owned);
        let run_ids = [facts.run_id.clone()];
        let journals = options.map(|options| start_journals(options, &run_ids));
        Self { facts, journals }
    }

    /// Keeps the load so far, where that is due.
    pub(super) fn keep_if_due(&mut self, kernel: &WatchedKernel) {
        if let Some(journals) = &mut self.journals
            && journals.is_due()
        {
            let begun = Instant::now();
            let facts = RunFacts {
                partial: true,
                ended_early: Some(KILLED.to_owned()),
                ..self.facts.clone()
            };
            journals.keep(begun, vec![Some(record_of(facts, kernel.observed_load()))]);
        }
    }

    /// The record of the load; `ended_early` says why it ended before it was to end.
    pub(super) fn record(&self, load: ObservedLoad, ended_early: Option<&str>) -> Record {
        let facts = RunFacts {
            partial: ended_early.is_some(),
            ended_early: ended_early.map(str::to_owned),
            ..self.facts.clone()
        };
        record_of(facts, load)
    }

    /// Ends the journal of a load that is in the history, or leaves its record there for the next
    /// reader of the history. Says where it is then.
    pub(super) fn end(self, record: &Arc<Record>, saved: Option<InHistory>) -> Option<String> {
        let journals = self.journals?.handles();
        if saved.is_some() {
            end_journals(journals);
            return None;
        }
        match leave_in_journal(journals.into_iter().next()?, record, None) {
            LeftInJournal::Nothing => None,
            left => left.text(None),
        }
    }
}

fn record_of(mut facts: RunFacts, load: ObservedLoad) -> Record {
    let ObservedLoad { record, targets } = load;
    for target in &targets {
        facts.plan.targets.push(target.path.clone());
    }
    facts.targets = targets;
    let data = RunData {
        observed: Some(record),
        ..RunData::default()
    };
    judge(facts, &data, &[])
}
