//! Runs to be saved, and what the tests of the history share.
// Each test binary uses a part of it.
#![allow(dead_code, clippy::unwrap_used)]

use diskproof_history::{Folders, History, HistoryError, HistoryPlace, NewRun, SaveReport, save};
use diskproof_model::record::Record;
use std::path::{Path, PathBuf};

/// A record of a real run, with another machine's names.
pub(crate) fn record(run_id: &str, started: &str) -> Record {
    let record: Record = serde_json::from_str(include_str!("../fixtures/record.json")).unwrap();
    Record {
        run_id: run_id.to_owned(),
        started: started.to_owned(),
        ..record
    }
}

/// The file in a folder that must be there.
pub(crate) fn place(folder: &Path) -> HistoryPlace {
    HistoryPlace {
        path: folder.join("history.db"),
        folders: Folders::Expected,
    }
}

/// Saves a run of this id.
pub(crate) fn save_run(place: &HistoryPlace, run_id: &str) -> Result<SaveReport, HistoryError> {
    save(
        place,
        &NewRun {
            record: &record(run_id, "2026-11-20T10:00:00Z"),
            page: Some("page"),
            label: None,
        },
    )
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
    let connection = rusqlite::Connection::open(&place.path).unwrap();
    connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap()
}

/// Damaged histories that were moved, without their logs.
pub(crate) fn moved_histories(folder: &Path) -> Vec<PathBuf> {
    let names = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let is_moved = |path: &PathBuf| {
        path.to_string_lossy().contains(".corrupt-")
            && !path.to_string_lossy().ends_with("-wal")
            && !path.to_string_lossy().ends_with("-shm")
    };
    names.filter(is_moved).collect()
}
