//! Earlier runs in the history that show how much figures vary from run to run. Their absence is
//! never an error: a comparison does not need them.

use diskproof_history::{Filter, History, HistoryError};
use diskproof_model::plan::Origin;
use diskproof_model::record::Record;
use diskproof_model::saved::SavedRun;

/// Most earlier runs of one target and plan that are read: more change Student's t by less than
/// 5 %, and an old disk is another disk.
const EARLIER_RUNS_MAX: usize = 20;
/// Runs of the history that are searched for them, the newest.
const SEARCHED_MAX: u64 = 1000;

/// An earlier run.
pub(crate) struct EarlierRun {
    /// The user's name for it.
    pub(crate) label: Option<String>,
    /// What it recorded.
    pub(crate) record: Record,
}

/// Runs of the history that did the same as one of `records` on the same target, newest first.
/// `compare` decides which of them count.
pub(super) fn find_earlier(
    records: &[&Record],
    history: &History,
) -> Result<Vec<EarlierRun>, HistoryError> {
    let listed = history.list(&Filter {
        limit: Some(SEARCHED_MAX),
        ..Filter::default()
    })?;
    let mut found: Vec<&SavedRun> = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let is_new = !records[..index].iter().any(|other| alike(other, record));
        let of_it = listed.runs.iter().filter(|run| {
            is_new
                && is_repetition(run, record)
                && records.iter().all(|other| other.run_id != run.run_id)
        });
        found.extend(of_it.take(EARLIER_RUNS_MAX));
    }
    let mut earlier = Vec::new();
    for run in found {
        // A run that cannot be read, or that another process removed, shows nothing.
        if let Ok(Some(stored)) = history.get(&run.run_id) {
            earlier.push(EarlierRun {
                label: run.label.clone(),
                record: stored.record,
            });
        }
    }
    Ok(earlier)
}

fn paths(record: &Record) -> Vec<&str> {
    record.targets.iter().map(|t| t.path.as_str()).collect()
}

fn verb(record: &Record) -> &str {
    let Origin::Native { verb, .. } = &record.plan.origin;
    verb
}

fn alike(record: &Record, other: &Record) -> bool {
    verb(record) == verb(other)
        && record.method == other.method
        && record.host.name == other.host.name
        && paths(record) == paths(other)
}

/// As far as its short form tells.
fn is_repetition(run: &SavedRun, record: &Record) -> bool {
    run.verb == verb(record)
        && run.method == record.method
        && run.host == record.host.name
        && run.targets == paths(record)
}
