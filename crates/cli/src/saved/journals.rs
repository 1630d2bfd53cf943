//! Keeps what a run has measured so far beside the history, in bounded time: a run that is killed
//! is found there by the next reader of the history.

use diskproof_engine::watchdog::{Deferred, Waited};
use diskproof_history::Journal;
use diskproof_model::record::Record;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The record of a run that was killed gives this reason.
pub(crate) const KILLED: &str =
    "diskproof was killed during the run; what had ended before is complete";
/// The shortest time between two entries: what a second has measured is measured again in the time
/// that it takes to look for it.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The journal takes at most a fiftieth of the time of the run. Chosen, not measured.
const COST_DIVISOR: u32 = 50;
/// Writing takes milliseconds. A filesystem that takes longer gets no further journal: the history
/// never costs a measurement.
const WRITTEN_TIMEOUT: Duration = Duration::from_millis(500);
/// The longest wait for the end of the journal: writing or removing a few files takes milliseconds.
const ENDED_TIMEOUT: Duration = Duration::from_secs(1);
/// The name of the threads that write journals, as ps(1) shows it.
const THREAD_NAME: &str = "diskproof-journal";

/// The journals of the records that a run is going to have, and when they were written last.
pub(crate) struct Journals {
    /// In the order of the records; empty where there is no history, or where it does not answer.
    journals: Vec<Arc<Journal>>,
    /// When they were written last; at first, when they were begun.
    kept_at: Instant,
    /// The time that the last writing took.
    cost: Duration,
}

impl Journals {
    /// Journals that were begun, one for each record.
    pub(crate) fn new(journals: Vec<Arc<Journal>>) -> Self {
        Self {
            journals,
            kept_at: Instant::now(),
            cost: Duration::ZERO,
        }
    }

    /// The journals themselves, so that they can be ended once the records are in the history.
    pub(crate) fn handles(&self) -> Vec<Arc<Journal>> {
        self.journals.clone()
    }

    /// True if nothing is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.journals.is_empty()
    }

    /// The time since results were kept last.
    pub(crate) fn age(&self) -> Duration {
        self.kept_at.elapsed()
    }

    /// True if it is time to keep what was measured so far.
    pub(crate) fn is_due(&self) -> bool {
        !self.is_empty() && self.age() >= pause_after(self.cost)
    }

    /// Keeps these records, in the order of the journals; `None` of one without results. They were
    /// made from this instant on.
    pub(crate) fn keep(&mut self, begun: Instant, records: Vec<Option<Record>>) {
        let journals = self.journals.clone();
        let writing = Deferred::start_or_run(THREAD_NAME, move || {
            for (journal, record) in journals.iter().zip(records) {
                if let Some(record) = record {
                    journal.keep(&record)?;
                }
            }
            Ok::<(), diskproof_history::HistoryError>(())
        });
        match writing.wait(WRITTEN_TIMEOUT) {
            Waited::Done(Ok(())) => {}
            Waited::Done(Err(_)) | Waited::TimedOut(_) | Waited::Lost => self.journals.clear(),
        }
        self.kept_at = Instant::now();
        self.cost = begun.elapsed();
    }
}

/// The pause after an entry whose writing took this long.
fn pause_after(cost: Duration) -> Duration {
    PAUSE_MIN.max(cost.saturating_mul(COST_DIVISOR))
}

/// Removes journals: the run is in the history now.
pub(crate) fn end_journals(journals: Vec<Arc<Journal>>) {
    // What stays is found by the next reader of the history, which knows the run.
    let ending = Deferred::start_or_run(THREAD_NAME, move || {
        for journal in &journals {
            let _ = journal.end();
        }
    });
    let _ = ending.wait(ENDED_TIMEOUT);
}

/// Leaves the whole record of a run that could not be saved in its journal: the next reader of the
/// history saves it. An earlier state of a record that is whole in the file `kept_in` is removed:
/// saved from the journal, it would be that of a killed run. Says what is left of the run there.
pub(crate) fn leave_in_journal(
    journal: Arc<Journal>,
    record: &Arc<Record>,
    kept_in: Option<&Path>,
) -> LeftInJournal {
    let record = Arc::clone(record);
    let kept_in = kept_in.map(Path::to_owned);
    let keeping = Deferred::start_or_run(THREAD_NAME, move || {
        leave(&journal, &record, kept_in.as_deref())
    });
    match keeping.wait(ENDED_TIMEOUT) {
        Waited::Done(left) => left,
        Waited::TimedOut(_) | Waited::Lost => LeftInJournal::Unknown,
    }
}

/// As [`leave_in_journal`], in a time that nothing bounds.
fn leave(journal: &Journal, record: &Record, kept_in: Option<&Path>) -> LeftInJournal {
    let kept = journal.leave(record);
    if kept.is_err() && kept_in.is_some() {
        // What stays is told below.
        let _ = journal.end();
    }
    match (kept, journal.kept_file()) {
        (Ok(()), Some(path)) => LeftInJournal::Record(path),
        (Err(_), Some(path)) => LeftInJournal::EarlierState(path),
        (_, None) => LeftInJournal::Nothing,
    }
}

/// What the journal holds of a run that the history could not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeftInJournal {
    /// All of it, in this file.
    Record(PathBuf),
    /// What was saved before its end, in this file.
    EarlierState(PathBuf),
    /// Nothing.
    Nothing,
    /// Its filesystem does not answer.
    Unknown,
}

impl LeftInJournal {
    /// Says where the record of a run is that the history could not take, and how it gets there;
    /// `None` where that is not known.
    pub(crate) fn text(&self, kept_in: Option<&Path>) -> Option<String> {
        match (kept_in, self) {
            (_, LeftInJournal::Record(path)) => Some(format!(
                "its record stays in {}; 'diskproof history' saves it from there as soon as it can",
                path.display()
            )),
            (Some(file), _) => Some(format!(
                "its record is in {}; 'diskproof history import FILE' adds it later",
                file.display()
            )),
            (None, LeftInJournal::EarlierState(path)) => Some(format!(
                "only what it had measured before its end stays, in {}; 'diskproof history' saves \
                 that. The rest is lost, but for what was printed",
                path.display()
            )),
            (None, LeftInJournal::Nothing) => Some(
                "its record is lost, but for what was printed. Use -o FILE.json, on another disk, \
                 to keep the next one"
                    .to_owned(),
            ),
            (None, LeftInJournal::Unknown) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_history::{Folders, HistoryPlace};
    use diskproof_model::limits::DOCUMENT_BYTES_MAX;

    fn text(kept_in: Option<&str>, left: LeftInJournal) -> Option<String> {
        left.text(kept_in.map(Path::new))
    }

    /// The record is too large for a journal, as for one on a full disk.
    #[test]
    fn earlier_state_of_a_record_that_a_file_has_is_not_left() {
        let folder = tempfile::tempdir().unwrap();
        let place = HistoryPlace {
            path: folder.path().join("history.db"),
            folders: Folders::Expected,
        };
        let record = diskproof_analysis::fixture::record();
        let mut large = record.clone();
        large.ended_early = Some("x".repeat(DOCUMENT_BYTES_MAX));
        let left = |run_id: &str, kept_in: Option<&Path>| {
            let journal = Journal::start(&place, run_id, None).unwrap();
            journal.keep(&record).unwrap();
            leave(&journal, &large, kept_in)
        };
        assert_eq!(left("a", Some(Path::new("a.json"))), LeftInJournal::Nothing);
        assert!(matches!(left("b", None), LeftInJournal::EarlierState(_)));
    }

    /// The whole record in the journal needs nothing else; else the file of the user is the best
    /// there is.
    #[test]
    fn user_hears_of_the_most_complete_copy() {
        let journal = PathBuf::from("/state/journal");
        let whole = text(Some("a.json"), LeftInJournal::Record(journal.clone())).unwrap();
        assert!(whole.contains("/state/journal"), "{whole}");
        let in_file = text(Some("a.json"), LeftInJournal::EarlierState(journal.clone())).unwrap();
        assert!(in_file.contains("a.json"), "{in_file}");
        let earlier = text(None, LeftInJournal::EarlierState(journal)).unwrap();
        assert!(earlier.contains("/state/journal"), "{earlier}");
        assert!(text(None, LeftInJournal::Nothing).is_some());
        assert_eq!(text(None, LeftInJournal::Unknown), None);
    }

    #[test]
    fn without_a_journal_nothing_is_due() {
        let journals = Journals::new(Vec::new());
        assert!(journals.is_empty());
        assert!(!journals.is_due());
    }

    #[test]
    fn slow_journal_takes_a_fiftieth_of_the_time() {
        let ms = Duration::from_millis;
        assert_eq!(pause_after(ms(2)), ms(1000));
        assert_eq!(pause_after(ms(400)), ms(20_000));
    }
}
