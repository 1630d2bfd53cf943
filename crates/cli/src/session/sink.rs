//! Holds the results of a run while it lasts. The thread that waits for the run takes them from
//! here, also when the run hangs.

use super::journal::{KeptResults, RunJournal};
use super::sides::SideTarget;
use super::task_words::task_words;
use crate::failure::Failure;
use crate::progress_display::ProgressDisplay;
use crate::stdio::{Verbosity, eprint_line};
use diskproof_analysis::judge::RunFacts;
use diskproof_device::{OpenError, TargetFailure, WriteCacheError};
use diskproof_engine::RunError;
use diskproof_model::budget::Budget;
use diskproof_model::campaign::CampaignDecision;
use diskproof_model::data::RunData;
use diskproof_model::files::FilesMeasurement;
use diskproof_model::measurement::Measurement;
use diskproof_model::plan::{Task, Workload};
use diskproof_model::record::TargetSilence;
use diskproof_model::surface::SurfaceMeasurement;
use diskproof_postgres::PostgresError;
use diskproof_report::terminal::RequestLines;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest that a run may go on after its announced end, such as while it tries engines, if its
/// target is silent. A little more than the engine waits, which knows more.
pub(super) const AFTER_END: Duration = Duration::from_millis(4300);

/// Why a run of these tasks ended early whose announced time was over, with the flags that would
/// give it more time or less to do.
pub(super) fn late_text(tasks: &[Task]) -> String {
    let or_less = match tasks.last() {
        Some(task) => task_words(task).or_less,
        None => "",
    };
    format!(
        "the target, or this machine, is too slow for the announced time: what is missing is \
         undecided. Measure longer (--time){or_less}"
    )
}

/// The text of an early end by request, alone or within a longer reason. The cause is known at the
/// end of the run, a signal or the announced time: [`EarlyEnd::name_cause`] puts it in place of
/// this text, so whoever builds a reason has to leave the text as it is.
pub(super) const INTERRUPTED: &str = "interrupted before its end";

/// The results of a run so far.
#[derive(Default)]
pub(crate) struct RunResults {
    /// The measured data.
    pub data: RunData,
    /// The decisions of a campaign, once it is over.
    pub decisions: Vec<CampaignDecision>,
    /// By the number of a side that is a setting of the target, the target after the first command.
    pub sides: BTreeMap<usize, SideTarget>,
    /// The current step, or the last one.
    pub step: Option<String>,
    /// The only target that the step is about, where it is about one.
    pub step_target: Option<usize>,
    /// The end of the run; `None` while it lasts.
    pub ended: Option<Result<(), EarlyEnd>>,
    /// Paths of the targets that hang after the end.
    pub hung: Vec<String>,
    /// The times in which targets answered nothing before workloads that never began.
    pub silences: Vec<TargetSilence>,
    /// The very first answers of targets that no workload has.
    pub first_answers: Vec<TargetSilence>,
    /// Files that the run has made and not removed yet.
    pub leftover: Option<Leftover>,
    /// The failure of a target that wrote its last data back before it was closed.
    pub write_back_failure: Option<TargetFailure>,
    /// The error of a write cache that could not be restored.
    pub cache_error: Option<WriteCacheError>,
}

impl RunResults {
    /// What the journal needs of them.
    fn to_keep(&self) -> KeptResults {
        KeptResults {
            data: self.data.clone(),
            sides: self.sides.clone(),
        }
    }
}

/// Files of a run that do not vanish with the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leftover {
    /// The directory of many small files.
    Files,
    /// The same, whose removal takes longer than the run may last: nothing hangs.
    SlowFiles,
    /// The cluster of a PostgreSQL server, or a part of one.
    Server,
}

/// Why a run ended before its plan did.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EarlyEnd {
    /// The reason, in a sentence.
    #[error("{0}")]
    Reason(String),
    /// An end by request while a target had not answered the first requests of a workload.
    #[error("{why}")]
    Unanswered {
        /// The reason, in a sentence.
        why: String,
        /// Path of the target.
        path: String,
        /// Name of the workload.
        workload: String,
        /// The length of the silence.
        seconds: u64,
    },
    /// The error of the engine.
    #[error(transparent)]
    Error(RunError),
    /// A target or server could not be made ready. The run has a record only where it measured
    /// something before.
    #[error(transparent)]
    NotStarted(Failure),
}

impl EarlyEnd {
    /// The end by a signal, or with the announced time.
    pub(super) fn interrupted() -> Self {
        Self::Reason(INTERRUPTED.to_owned())
    }

    /// Puts the cause of an interruption in place of [`INTERRUPTED`]. Other reasons, and errors,
    /// stay as they are.
    pub(super) fn name_cause(&mut self, cause: &str) {
        match self {
            Self::Reason(why) | Self::Unanswered { why, .. } => {
                *why = why.replace(INTERRUPTED, cause);
            }
            Self::Error(_) | Self::NotStarted(_) => {}
        }
    }
}

impl From<String> for EarlyEnd {
    fn from(why: String) -> Self {
        Self::Reason(why)
    }
}

impl From<RunError> for EarlyEnd {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Interrupted { .. } => Self::interrupted(),
            RunError::Unanswered {
                path,
                workload,
                seconds,
            } => Self::Unanswered {
                why: format!("{path} had not answered for {seconds} s: {INTERRUPTED}"),
                path,
                workload,
                seconds,
            },
            // The tool could not even open its target.
            error @ RunError::DirectRefused { .. } => Self::NotStarted(Failure::Run(error)),
            error => Self::Error(error),
        }
    }
}

impl From<OpenError> for EarlyEnd {
    fn from(error: OpenError) -> Self {
        Self::Error(error.into())
    }
}

impl From<Failure> for EarlyEnd {
    fn from(failure: Failure) -> Self {
        Self::NotStarted(failure)
    }
}

/// How a run ended, together with why its cluster stays, which is no less important.
pub(super) fn end_with_leftover(
    ended: Result<(), EarlyEnd>,
    left: &PostgresError,
) -> Result<(), EarlyEnd> {
    Err(match ended {
        Ok(()) => left.to_string().into(),
        Err(EarlyEnd::Reason(why)) => format!("{why}. {left}").into(),
        Err(EarlyEnd::Unanswered {
            why,
            path,
            workload,
            seconds,
        }) => EarlyEnd::Unanswered {
            why: format!("{why}. {left}"),
            path,
            workload,
            seconds,
        },
        Err(error @ (EarlyEnd::Error(_) | EarlyEnd::NotStarted(_))) => {
            eprint_line(&format!("warning: {left}"));
            error
        }
    })
}

/// Adds measurements: slices to those of the same workload and target, others in the order of the
/// plan's workloads. Those of one workload on several targets stay in the order in which they were
/// added. Returns all that is known of the workloads of `measured`.
fn add_in_plan_order(
    kept: &mut Vec<Measurement>,
    measured: Vec<Measurement>,
    workloads: &[Workload],
) -> Vec<Measurement> {
    let mut so_far = Vec::new();
    for next in measured {
        let earlier = kept.iter_mut().find(|earlier| {
            earlier.target == next.target && earlier.workload.name == next.workload.name
        });
        if let Some(earlier) = earlier {
            earlier.append(next);
            so_far.push(earlier.clone());
        } else {
            so_far.push(next.clone());
            let place = place_in_plan(&next, workloads);
            let index = kept.partition_point(|other| place_in_plan(other, workloads) <= place);
            kept.insert(index, next);
        }
    }
    so_far
}

/// The place of a measurement's workload in the plan.
fn place_in_plan(measurement: &Measurement, workloads: &[Workload]) -> usize {
    workloads
        .iter()
        .take_while(|workload| workload.name != measurement.workload.name)
        .count()
}

/// Results that several threads share.
#[derive(Clone, Default)]
pub(super) struct SharedResults(Arc<Mutex<RunResults>>);

impl SharedResults {
    /// Locks the results.
    pub(super) fn lock(&self) -> MutexGuard<'_, RunResults> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps what one call has measured so far in the journal of the run.
pub(super) struct ResultsKeeper<'a> {
    results: SharedResults,
    journal: &'a mut RunJournal,
}

impl ResultsKeeper<'_> {
    /// True if it is time to keep the results of this call, which has lasted for this time.
    pub(super) fn is_due(&self, elapsed_ns: u64) -> bool {
        self.journal.is_due_within(elapsed_ns)
    }

    /// Keeps the results of this call beside those of earlier ones.
    pub(super) fn keep(&mut self, measured: &[Measurement]) {
        let mut results = self.results.lock().to_keep();
        results.data.measurements.extend_from_slice(measured);
        self.journal.keep(&results);
    }

    /// Keeps the steps on files so far.
    pub(super) fn keep_files(&mut self, files: &FilesMeasurement) {
        let mut results = self.results.lock().to_keep();
        results.data.files = Some(files.clone());
        self.journal.keep(&results);
    }

    /// True if the journal takes results by now, however long this call has lasted.
    pub(super) fn may_keep(&self) -> bool {
        self.journal.is_due()
    }

    /// Keeps the results of a survey so far.
    pub(super) fn keep_survey(&mut self, surface: &SurfaceMeasurement) {
        let mut results = self.results.lock().to_keep();
        results.data.surface = Some(surface.clone());
        self.journal.keep(&results);
    }
}

/// Takes the results of a run and its progress, and keeps results in the journal.
pub(super) struct Sink {
    /// The facts of the run, whose plan orders the results.
    facts: Arc<RunFacts>,
    results: SharedResults,
    journal: RunJournal,
    /// The progress that is shown.
    pub progress: ProgressDisplay,
    /// The lines of single requests, where they are shown.
    pub request_lines: Option<RequestLines>,
    /// The amount of text on stderr.
    pub verbosity: Verbosity,
}

impl Sink {
    /// A sink without results.
    pub(super) fn new(
        facts: &Arc<RunFacts>,
        budget: &Arc<Budget>,
        journal: RunJournal,
        verbosity: Verbosity,
    ) -> Self {
        Self {
            facts: Arc::clone(facts),
            results: SharedResults::default(),
            journal,
            progress: ProgressDisplay::new(Arc::clone(facts), budget, verbosity),
            request_lines: None,
            verbosity,
        }
    }

    /// The results of the run so far.
    pub(super) fn results(&self) -> MutexGuard<'_, RunResults> {
        self.results.lock()
    }

    /// The results, for another thread.
    pub(super) fn shared_results(&self) -> SharedResults {
        self.results.clone()
    }

    /// The id of the run.
    pub(super) fn run_id(&self) -> &str {
        &self.facts.run_id
    }

    /// The journal of the run.
    pub(super) fn journal(&self) -> &RunJournal {
        &self.journal
    }

    /// Notes the step that begins.
    pub(super) fn begin_step(&self, name: &str) {
        let mut results = self.results();
        results.step = Some(name.to_owned());
        results.step_target = None;
    }

    /// Notes the only target that the step is about from now on; `None` for all of them.
    pub(super) fn set_step_target(&self, target: Option<usize>) {
        self.results().step_target = target;
    }

    /// Adds measurements. Returns all that is known of the same workloads.
    pub(super) fn add(&self, measured: Vec<Measurement>) -> Vec<Measurement> {
        let mut results = self.results();
        let workloads = self.facts.plan.workloads();
        add_in_plan_order(&mut results.data.measurements, measured, workloads)
    }

    /// Saves what was measured so far, where that is due. The results stay unlocked meanwhile.
    pub(super) fn keep_results(&mut self) {
        if self.journal.is_due() {
            let results = self.results().to_keep();
            self.journal.keep(&results);
        }
    }

    /// The display, and what keeps the results of a call that returns them only at its end.
    pub(super) fn display_and_keeper(&mut self) -> (&mut ProgressDisplay, ResultsKeeper<'_>) {
        let keeper = ResultsKeeper {
            results: self.results.clone(),
            journal: &mut self.journal,
        };
        (&mut self.progress, keeper)
    }

    /// Prints what is left of the lines of a tool.
    pub(super) fn finish_tool(&mut self) {
        if let Some(tool) = self.progress.tool.take() {
            tool.finish(&self.progress.heartbeat());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::measurement::{CacheUse, EngineUse, MeasuredSpan};
    use diskproof_model::plan::{CachePolicy, EngineChoice, EngineKind};

    #[test]
    fn cause_of_an_interruption_is_named_also_within_a_longer_reason() {
        let named = |why: String| {
            let mut end = EarlyEnd::from(why);
            end.name_cause("SIGINT");
            end.to_string()
        };
        assert_eq!(named(EarlyEnd::interrupted().to_string()), "SIGINT");
        let longer = format!("{INTERRUPTED}. The cluster stays");
        assert_eq!(named(longer), "SIGINT. The cluster stays");
        assert_eq!(named("the disk is full".to_owned()), "the disk is full");
        let mut silent = EarlyEnd::from(RunError::Unanswered {
            path: "/dev/sdb".to_owned(),
            workload: "ping".to_owned(),
            seconds: 8,
        });
        silent.name_cause("SIGINT");
        let text = "/dev/sdb had not answered for 8 s: SIGINT";
        assert_eq!(silent.to_string(), text);
    }

    /// The first reason is not lost over what could not be removed.
    #[test]
    fn leftover_stands_beside_the_reason_of_an_early_end() {
        let left = PostgresError::removed_later(std::path::Path::new("/mnt"));
        let of_whole_run = end_with_leftover(Ok(()), &left).unwrap_err().to_string();
        assert_eq!(of_whole_run, left.to_string());
        let both = end_with_leftover(Err(EarlyEnd::interrupted()), &left);
        assert_eq!(
            both.unwrap_err().to_string(),
            format!("{INTERRUPTED}. {left}")
        );
        let failed = Err(EarlyEnd::Error(RunError::Thread(
            std::io::ErrorKind::NotFound.into(),
        )));
        let kept = end_with_leftover(failed, &left).unwrap_err();
        assert!(matches!(kept, EarlyEnd::Error(RunError::Thread(_))));
    }

    fn measured(name: &str, target: usize, wall_ns: u64) -> Measurement {
        let engine = EngineUse {
            asked: EngineChoice::Auto,
            used: EngineKind::Sync,
            fallbacks: Vec::new(),
            features: Vec::new(),
            depth: None,
            done_before_wait: None,
        };
        let cache = CacheUse {
            asked: CachePolicy::Direct,
            used: CachePolicy::Direct,
            why: None,
        };
        let span = MeasuredSpan::new(0, 1 << 30);
        Measurement {
            target,
            wall_ns,
            ..Measurement::unmeasured(Workload::named(name), span, engine, cache)
        }
    }

    /// Names, targets and measured times.
    fn added(kept: &mut Vec<Measurement>, new: Vec<Measurement>) -> Vec<(String, usize, u64)> {
        let workloads = ["first", "second"].map(Workload::named);
        let mut known = Vec::new();
        for row in add_in_plan_order(kept, new, &workloads) {
            known.push((row.workload.name, row.target, row.wall_ns));
        }
        known
    }

    #[test]
    fn rows_are_in_the_order_of_the_plan_and_those_of_a_workload_in_that_of_targets() {
        let mut kept = Vec::new();
        for (name, target) in [("second", 0), ("first", 0), ("second", 1), ("first", 1)] {
            let known = added(&mut kept, vec![measured(name, target, 5)]);
            assert_eq!(known, [(name.to_owned(), target, 5)]);
        }
        let mut order = Vec::new();
        for row in &kept {
            order.push((row.workload.name.as_str(), row.target));
        }
        let expected = [("first", 0), ("first", 1), ("second", 0), ("second", 1)];
        assert_eq!(order, expected);
    }

    #[test]
    fn slice_is_added_to_the_row_of_its_workload_on_its_target() {
        let mut kept = Vec::new();
        added(
            &mut kept,
            vec![measured("first", 0, 5), measured("first", 1, 7)],
        );
        let known = added(&mut kept, vec![measured("first", 1, 20)]);
        assert_eq!(known, [("first".to_owned(), 1, 27)]);
        let times: Vec<u64> = kept.iter().map(|row| row.wall_ns).collect();
        assert_eq!(times, [5, 27]);
    }
}
