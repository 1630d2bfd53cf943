//! Puts runs into an open history, each in one piece: the row, its targets and its disks.

use crate::error::HistoryError;
use crate::store::History;
use diskproof_model::document::DocumentError;
use diskproof_model::limits::DOCUMENT_BYTES_MAX;
use diskproof_model::record::Record;
use diskproof_model::saved::SavedRun;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use rusqlite::{Connection, params};
use std::io::{self, Write as _};

/// A run to be saved.
#[derive(Debug, Clone, Copy)]
pub struct NewRun<'a> {
    /// The record.
    pub record: &'a Record,
    /// The printed result, ANSI text; `None` for an imported record.
    pub page: Option<&'a str>,
    /// The user's name for the run.
    pub label: Option<&'a str>,
}

/// Whether a run is new in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaveOutcome {
    /// The run was added.
    Added,
    /// A run with this id was already there and is unchanged.
    Known,
}

impl History {
    /// Adds one run.
    pub(crate) fn add(&mut self, run: &NewRun<'_>) -> Result<SaveOutcome, HistoryError> {
        let packed = PackedRun::of(run)?;
        self.change(|transaction| packed.insert(transaction))
    }
}

/// A run as it is stored. Packing takes milliseconds and happens before the lock is taken.
struct PackedRun<'a> {
    run: SavedRun,
    label: Option<&'a str>,
    started: i64,
    summary: String,
    record: Vec<u8>,
    page: Option<Vec<u8>>,
}

impl<'a> PackedRun<'a> {
    fn of(new: &NewRun<'a>) -> Result<Self, HistoryError> {
        let unusable = |what: String| HistoryError::Record {
            run_id: new.record.run_id.clone(),
            what,
        };
        let run = SavedRun::of(new.record, new.label);
        let started: jiff::Timestamp = run.started.parse().map_err(|error| {
            let start = &run.started;
            unusable(format!("its start '{start}' is not a time: {error}"))
        })?;
        let json = serde_json::to_vec(new.record).map_err(|error| unusable(error.to_string()))?;
        if json.len() > DOCUMENT_BYTES_MAX {
            return Err(unusable(DocumentError::TooLarge.to_string()));
        }
        let packed = |bytes: &[u8]| deflate(bytes).map_err(|error| unusable(error.to_string()));
        Ok(Self {
            label: new.label,
            started: started.as_second(),
            summary: serde_json::to_string(&run).map_err(|error| unusable(error.to_string()))?,
            record: packed(&json)?,
            page: new.page.map(|page| packed(page.as_bytes())).transpose()?,
            run,
        })
    }

    fn insert(&self, transaction: &Connection) -> rusqlite::Result<SaveOutcome> {
        let run = &self.run;
        let added = transaction.execute(
            "INSERT INTO runs (run_id, started, verb, host, label, note, partial, method, \
             summary, record, page)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT (run_id) DO NOTHING",
            params![
                run.run_id,
                self.started,
                run.verb,
                run.host,
                self.label,
                run.note,
                run.partial,
                run.method,
                self.summary,
                self.record,
                self.page
            ],
        )?;
        if added == 0 {
            return Ok(SaveOutcome::Known);
        }
        let seq = transaction.last_insert_rowid();
        for path in &run.targets {
            let insert = "INSERT INTO run_targets (run, path) VALUES (?1, ?2)";
            transaction.execute(insert, params![seq, path])?;
        }
        for disk in &run.disks {
            let row = params![seq, disk.name, disk.model, disk.serial];
            let insert = "INSERT INTO run_disks (run, name, model, serial) VALUES (?1, ?2, ?3, ?4)";
            transaction.execute(insert, row)?;
        }
        Ok(SaveOutcome::Added)
    }
}

fn deflate(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}
