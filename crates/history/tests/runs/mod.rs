//! Runs to be saved, and what the tests of the history share.
// Each test binary uses a part of it.
#![allow(dead_code, clippy::unwrap_used)]

use diskproof_history::{
    Folders, History, HistoryError, HistoryPlace, NewRun, RunSource, SaveOutcome, SaveReport, save,
};
use diskproof_model::record::Record;
use std::path::{Path, PathBuf};

/// The page of each run.
pub(crate) const PAGE: &str = "\u{1b}[1mdiskproof\u{1b}[0m · 3 µs\n";

/// A record of a real run, with another machine's names.
pub(crate) fn record(run_id: &str, started: &str) -> Record {
    let record: Record = serde_json::from_str(include_str!("../fixtures/record.json")).unwrap();
    Record {
        run_id: run_id.to_owned(),
        started: started.to_owned(),
        ..record
    }
}

/// A file that lies in a folder that must be there.
pub(crate) fn place_of_file(path: impl Into<PathBuf>) -> HistoryPlace {
    HistoryPlace {
        path: path.into(),
        folders: Folders::Expected,
    }
}

/// The history of a folder.
pub(crate) fn place(folder: &Path) -> HistoryPlace {
    place_of_file(folder.join("history.db"))
}

/// Saves this record with a page.
pub(crate) fn save_record(
    place: &HistoryPlace,
    record: &Record,
    label: Option<&str>,
) -> Result<SaveReport, HistoryError> {
    let page = Some(PAGE);
    save(
        place,
        &NewRun {
            record,
            page,
            label,
            source: RunSource::Measured { command: None },
        },
    )
}

/// Saves a run of this id.
pub(crate) fn save_run(place: &HistoryPlace, run_id: &str) -> Result<SaveReport, HistoryError> {
    save_record(place, &record(run_id, "2026-11-20T10:00:00Z"), None)
}

/// So many threads save so many runs each.
pub(crate) fn save_at_once(place: &HistoryPlace, threads: u32, runs: u32) {
    std::thread::scope(|scope| {
        for name in 0..threads {
            scope.spawn(move || {
                for n in 0..runs {
                    let saved = save_run(place, &format!("{name}-{n}")).unwrap();
                    assert_eq!(saved.outcome, SaveOutcome::Added);
                }
            });
        }
    });
}

/// What is saved.
pub(crate) fn open(place: &HistoryPlace) -> History {
    History::open(place).unwrap().unwrap()
}

/// All ids, sorted.
pub(crate) fn ids(place: &HistoryPlace) -> Vec<String> {
    let mut ids = open(place).ids("").unwrap();
    ids.sort();
    ids
}

/// The result of SQLite's own check of the whole file.
pub(crate) fn integrity(place: &HistoryPlace) -> String {
    pragma(place, "integrity_check")
}

/// What SQLite says of the file.
pub(crate) fn pragma(place: &HistoryPlace, name: &str) -> String {
    let connection = rusqlite::Connection::open(&place.path).unwrap();
    let value = connection.pragma_query_value(None, name, |row| row.get(0));
    value.unwrap()
}

/// Damaged histories that were moved, without their logs.
pub(crate) fn moved_histories(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let is_moved = |path: &PathBuf| {
        let name = path.to_string_lossy();
        name.contains(".corrupt-") && !name.ends_with("-wal") && !name.ends_with("-shm")
    };
    entries
        .map(|entry| entry.unwrap().path())
        .filter(is_moved)
        .collect()
}
