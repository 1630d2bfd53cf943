//! The records of the sides, and their comparison.

use crate::commands::compare::flags::CompareFlags;
use crate::failure::{Exit, Failure};
use crate::flags::MeasuringFlags;
use crate::provenance::{run_id, tool};
use crate::saved::{self, SaveNote, print_notes};
use crate::session::{CampaignOutcome, EarlyEnd, has_errors, process_may_stay};
use crate::stderr::eprint_line;
use diskproof_analysis::compare::{Question, Run, RunGroup, compare as compare_runs};
use diskproof_analysis::judge::{RunFacts, judge};
use diskproof_engine::watchdog::{Deferred, Waited};
use diskproof_model::campaign::{CampaignDecision, CampaignKind, CampaignPart};
use diskproof_model::comparison::Comparison;
use diskproof_model::data::RunData;
use diskproof_model::measurement::Measurement;
use diskproof_model::plan::Plan;
use diskproof_model::record::Record;
use diskproof_report::terminal::Detail;
use std::sync::Arc;
use std::time::Duration;

/// Saving takes milliseconds, and up to 20 s where another process holds the history.
const SAVE_LIMIT: Duration = Duration::from_secs(30);

/// What the campaign gave.
type LiveOutcome = CampaignOutcome<Vec<CampaignDecision>>;

/// Makes records and a comparison of what was measured.
pub(super) struct Conclusion<'a> {
    /// What the user asked for.
    pub compare: &'a CompareFlags,
    /// Its flags of verbs that measure.
    pub measuring: &'a MeasuringFlags,
    /// The names of the sides.
    pub labels: &'a [String],
    /// The plan of one side.
    pub plan: &'a Plan,
}

impl Conclusion<'_> {
    pub(super) fn conclude(
        &self,
        outcome: &LiveOutcome,
    ) -> anyhow::Result<(Option<Comparison>, Option<Exit>)> {
        let verbosity = self.measuring.verbosity();
        let records = self.records(outcome);
        let hung = &outcome.run.hung;
        outcome.run.interrupt.end_at_once();
        if !hung.is_empty() {
            verbosity.note(&process_may_stay(hung, self.plan));
        }
        let early = ended_early(outcome);
        let is_measured = |record: &Arc<Record>| !record.measurements.is_empty();
        if !records.iter().all(is_measured) {
            eprint_line("nothing to compare: at least one side was not measured");
            return Ok((None, early.or(Some(Exit::Failed))));
        }
        for (record, letter) in records.iter().zip('A'..) {
            print_notes(&format!("{letter}: "), &self.save(record), verbosity);
        }
        let comparison = self.comparison(&records)?;
        let failed = records.iter().any(|record| has_errors(record));
        let exit = match early {
            None if failed || !hung.is_empty() => Some(Exit::Failed),
            early => early,
        };
        Ok((Some(comparison), exit))
    }

    fn comparison(&self, records: &[Arc<Record>]) -> Result<Comparison, Failure> {
        let group = |index: usize| RunGroup {
            label: self.labels[index].clone(),
            runs: vec![Run {
                name: saved::short(&records[index].run_id).to_owned(),
                record: &records[index],
            }],
        };
        let question = Question {
            tool: tool(),
            margin: self.compare.margin,
            baseline: group(0),
            candidates: (1..records.len()).map(group).collect(),
            history: Vec::new(),
            limits: self.compare.limits.clone(),
        };
        compare_runs(&question).map_err(|error| Failure::Usage(error.to_string()))
    }

    /// One record for each side.
    fn records(&self, outcome: &LiveOutcome) -> Vec<Arc<Record>> {
        let id = run_id();
        let mut records = Vec::new();
        for (index, identity) in outcome.identities.iter().enumerate() {
            let is_own = |disk: &str| identity.disks().any(|one| one.name == disk);
            let mut facts = RunFacts {
                run_id: run_id(),
                plan: self.plan.clone(),
                targets: vec![identity.clone()],
                ..outcome.run.facts()
            };
            facts.plan.targets = vec![identity.path.clone()];
            facts.health.retain(|one| is_own(&one.disk));
            let measured = outcome.run.results.data.measurements.iter();
            let of_side = measured.filter(|m| m.target == index).cloned();
            let mut measurements: Vec<Measurement> = of_side.collect();
            measurements.iter_mut().for_each(|m| m.target = 0);
            let mut record = judge(facts, &RunData::of(measurements), &[]);
            record.campaign = Some(CampaignPart {
                kind: CampaignKind::Compare,
                id: id.clone(),
                side: char::from(b'A' + index as u8).to_string(),
                prepare: self.compare.live.prepare.get(index).cloned(),
                decisions: outcome.answer.clone().unwrap_or_default(),
            });
            records.push(Arc::new(record));
        }
        records
    }

    /// Saves a record in the history, in bounded time.
    fn save(&self, record: &Arc<Record>) -> Vec<SaveNote> {
        let (record, options) = (Arc::clone(record), self.measuring.history.clone());
        let save = Deferred::start_or_run("diskproof-save", move || {
            let page = crate::stdout::record_page(&record, Detail::Whole);
            saved::keep(&record, &page, &options)
        });
        match save.wait(SAVE_LIMIT) {
            Waited::Done(notes) => notes,
            Waited::TimedOut(_) | Waited::Lost => vec![SaveNote::Warning(
                "the run was not saved: the history did not answer".to_owned(),
            )],
        }
    }
}

/// How a comparison that did not come to its end exits; `None` of one that did.
fn ended_early(outcome: &LiveOutcome) -> Option<Exit> {
    let why = outcome.run.ended.as_ref().err()?;
    if let (EarlyEnd::Reason(why), Some(signal)) = (why, outcome.run.interrupt.signal()) {
        eprint_line(why);
        return Some(Exit::Signal(signal));
    }
    eprint_line(&format!("error: {why}"));
    Some(Exit::Failed)
}
