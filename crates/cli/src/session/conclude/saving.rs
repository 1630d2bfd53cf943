//! Saves the record of a run to its files and to the history. A filesystem that hangs holds up
//! neither the other saves nor, for longer than a limit, the end of the program.

use crate::flags::MeasuringFlags;
use crate::interrupt;
use crate::output_files::{Output, save_record, temporary_path};
use crate::saved::{self, HistoryOptions, InHistory, RunKey, SaveNote, in_history};
use crate::stdio::Verbosity;
use anyhow::Result;
use diskproof_analysis::judge::RunFacts;
use diskproof_engine::watchdog::{Deferred, Waited};
use diskproof_model::plan::METHOD_VERSION;
use diskproof_model::record::Record;
use diskproof_model::units::format_duration;
use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The name of a thread that saves, as `ps -L` shows it.
const SAVE_THREAD: &str = "diskproof-save";
/// The interval at which a save is polled.
const SAVE_POLL: Duration = Duration::from_millis(50);

/// Earlier runs of the same plan; none from a history that does not answer, which saving reports.
pub(super) fn runs_before(
    facts: &RunFacts,
    options: &HistoryOptions,
    wait: &SaveWait,
) -> Vec<Record> {
    let key = RunKey::new(&facts.plan, METHOD_VERSION, &facts.host, &facts.targets);
    let history = options.history.clone();
    let search = Deferred::start_or_run(SAVE_THREAD, move || {
        saved::runs_before(&key, history.as_deref())
    });
    wait.wait(&search).unwrap_or_default()
}

/// The wait for a save: up to the limit, and only a moment after Ctrl-C.
pub(super) struct SaveWait {
    limit: Duration,
    /// The time at which Ctrl-C was noticed.
    interrupted: Cell<Option<Instant>>,
}

impl SaveWait {
    /// A wait that ends for each save at this age of it.
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            limit,
            interrupted: Cell::new(None),
        }
    }

    /// The result; `None` where it does not come in time.
    pub(super) fn wait<T: Send + 'static>(&self, save: &Deferred<T>) -> Option<T> {
        loop {
            let age = match save.poll(SAVE_POLL) {
                Waited::Done(done) => return Some(done),
                Waited::Lost => return None,
                Waited::TimedOut(age) => age,
            };
            if interrupt::signal().is_some() && self.interrupted.get().is_none() {
                self.interrupted.set(Some(Instant::now()));
            }
            if age >= self.limit || self.is_over_after_interrupt() {
                return None;
            }
        }
    }

    fn is_over_after_interrupt(&self) -> bool {
        match self.interrupted.get() {
            Some(since) => since.elapsed() >= interrupt::WAIT_AFTER_SIGNAL,
            None => false,
        }
    }

    /// The signal that ended the wait.
    pub(super) fn interrupted_by(&self) -> Option<u8> {
        self.interrupted.get()?;
        interrupt::signal()
    }

    /// Why a save was not done, as a clause.
    fn reason(&self, who: &str) -> String {
        match self.interrupted.get() {
            Some(_) => format!("{who} did not answer before a signal ended the wait"),
            None => {
                let limit = format_duration(self.limit.as_nanos() as u64);
                format!("{who} did not answer for {limit}")
            }
        }
    }
}

/// The outcome of saving a record.
pub(super) struct SavedRecord {
    /// The first error of its files.
    pub outcome: Result<()>,
    /// The messages of the history.
    pub notes: Vec<SaveNote>,
    /// Files on filesystems that hang.
    pub hung: Vec<String>,
    /// A file that has the whole record.
    pub kept_in: Option<PathBuf>,
    /// `None` where the record is not in the history.
    pub in_history: Option<InHistory>,
    /// True if a save was not done in time.
    pub is_incomplete: bool,
}

/// Saves the record to its files and to the history. Each save has its own thread, so that one that
/// fails or hangs does not keep the others from being done.
pub(super) fn save(
    record: &Arc<Record>,
    page: &str,
    outputs: &[Arc<Output>],
    flags: &MeasuringFlags,
    wait: &SaveWait,
) -> SavedRecord {
    let mut file_saves = Vec::new();
    for output in outputs {
        file_saves.push((output, start_file_save(record, output, flags.verbosity())));
    }
    let history_save = start_history_save(record, page, &flags.history);
    let mut saved = SavedRecord {
        outcome: Ok(()),
        notes: Vec::new(),
        hung: Vec::new(),
        kept_in: None,
        in_history: None,
        is_incomplete: false,
    };
    for (output, file_save) in file_saves {
        match wait.wait(&file_save) {
            Some(outcome) => saved.add_file(output, outcome),
            None => saved.add_hung_file(output, wait),
        }
    }
    match wait.wait(&history_save) {
        Some(notes) => saved.add_history(notes),
        None => saved.add_hung_history(wait),
    }
    saved
}

fn start_file_save(
    record: &Arc<Record>,
    output: &Arc<Output>,
    verbosity: Verbosity,
) -> Deferred<Result<()>> {
    let record = Arc::clone(record);
    let output = Arc::clone(output);
    Deferred::start_or_run(SAVE_THREAD, move || {
        save_record(&record, &output, verbosity)
    })
}

fn start_history_save(
    record: &Arc<Record>,
    page: &str,
    options: &HistoryOptions,
) -> Deferred<Vec<SaveNote>> {
    let kept_record = Arc::clone(record);
    let kept_page = page.to_owned();
    let own_options = options.clone();
    Deferred::start_or_run(SAVE_THREAD, move || {
        saved::keep(&kept_record, &kept_page, &own_options)
    })
}

impl SavedRecord {
    /// True if the record can be read later, from a file or from the history.
    pub(super) fn can_be_read(&self) -> bool {
        self.in_history.is_some() || self.kept_in.is_some()
    }

    fn add_file(&mut self, output: &Output, outcome: Result<()>) {
        if let Some(format) = output.format()
            && format.extension == ".json"
            && !output.is_pipe()
            && outcome.is_ok()
        {
            self.kept_in = Some(output.path().to_owned());
        }
        self.keep_first_error(outcome);
    }

    fn add_hung_file(&mut self, output: &Output, wait: &SaveWait) {
        self.is_incomplete = true;
        if !output.is_pipe() {
            self.hung.push(output.path().display().to_string());
        }
        self.keep_first_error(Err(save_timed_out(output, wait)));
    }

    fn add_history(&mut self, notes: Vec<SaveNote>) {
        self.in_history = in_history(&notes);
        self.notes = notes;
    }

    fn add_hung_history(&mut self, wait: &SaveWait) {
        self.is_incomplete = true;
        self.hung.push("the history".to_owned());
        let reason = wait.reason("the history");
        self.notes = vec![SaveNote::Unsaved(reason)];
    }

    fn keep_first_error(&mut self, outcome: Result<()>) {
        if self.outcome.is_ok() {
            self.outcome = outcome;
        }
    }
}

fn save_timed_out(output: &Output, wait: &SaveWait) -> anyhow::Error {
    let name = output.path().display();
    if output.is_pipe() {
        let reason = wait.reason("its reader");
        return anyhow::anyhow!("-o {name}: the record was not written to this pipe: {reason}");
    }
    let reason = wait.reason("its filesystem");
    anyhow::anyhow!(
        "-o {name}: the record was not saved: {reason}; {} may be left behind",
        temporary_path(output.path()).display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn save_that_is_done_counts_and_one_that_hangs_ends_with_the_limit() {
        let wait = SaveWait::new(Duration::ZERO);
        let (answer, answered) = channel::<()>();
        let hanging = Deferred::start_or_run(SAVE_THREAD, move || answered.recv().is_ok());
        assert_eq!(wait.wait(&hanging), None);
        let patient = SaveWait::new(Duration::MAX);
        answer.send(()).unwrap();
        assert_eq!(patient.wait(&hanging), Some(true));
        assert_eq!(patient.interrupted_by(), None);
    }
}
