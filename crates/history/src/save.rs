//! Saving a run. It is in the file for good when [`save`] returns.

use crate::damage::{SetAside, set_aside};
use crate::error::HistoryError;
use crate::place::Place;
use crate::rescue::rescue;
use crate::store::History;
use diskproof_model::record::Record;
use diskproof_model::saved::SavedRun;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use rusqlite::{Connection, params};
use std::io::{self, Write as _};

/// A run to be saved.
#[derive(Debug, Clone, Copy)]
pub struct NewRun<'a> {
    /// Its record.
    pub record: &'a Record,
    /// What was printed, ANSI text; `None` when nothing was, as for a record from another machine.
    pub page: Option<&'a str>,
    /// The user's name for it.
    pub label: Option<&'a str>,
}

/// How saving went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// Whether it is new.
    pub outcome: Outcome,
    /// The damaged history that had to make room.
    pub set_aside: Option<SetAside>,
    /// Runs of it that could still be read, and are in the new one.
    pub rescued: usize,
}

/// Whether a run is new in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is now.
    Added,
    /// A run of this id was there already, and stays as it was.
    Known,
}

/// Saves a run; makes the file if there is none, and a new one if it is damaged.
///
/// The whole file is looked at first: what is added to a damaged one can be written, and then
/// neither listed nor found, as the way to it leads through the damage. That reads the file once
/// (some 10 ms for a hundred runs), after a measurement of seconds.
pub fn save(place: &Place, run: &NewRun<'_>) -> Result<Saved, HistoryError> {
    let path = place.resolved()?;
    let attempt = || {
        let mut history = History::open_or_make(&path)?;
        history.vet()?;
        history.add(run)
    };
    match attempt() {
        Err(HistoryError::Damaged { .. }) => {
            let set_aside = set_aside(&path)?;
            let outcome = attempt()?;
            // The new run is safe first; whatever goes wrong now leaves the damaged file as it is.
            let rescued = set_aside
                .as_ref()
                .map_or(0, |aside| rescue(&aside.path, &path));
            Ok(Saved {
                outcome,
                set_aside,
                rescued,
            })
        }
        other => Ok(Saved {
            outcome: other?,
            set_aside: None,
            rescued: 0,
        }),
    }
}

impl History {
    fn add(&mut self, run: &NewRun<'_>) -> Result<Outcome, HistoryError> {
        let row = Row::of(run)?;
        self.change(|transaction| row.insert(transaction))
    }

    /// Several in one transaction; how many are new. Those that cannot be kept are left out.
    pub(crate) fn add_all(&mut self, runs: &[NewRun<'_>]) -> Result<usize, HistoryError> {
        let rows: Vec<Row<'_>> = runs.iter().filter_map(|run| Row::of(run).ok()).collect();
        self.change(|transaction| {
            rows.iter()
                .map(|row| Ok(usize::from(row.insert(transaction)? == Outcome::Added)))
                .sum()
        })
    }
}

/// Everything that can be made ready before the lock is taken.
struct Row<'a> {
    run: SavedRun,
    label: Option<&'a str>,
    started: i64,
    summary: String,
    record: Vec<u8>,
    page: Option<Vec<u8>>,
}

impl<'a> Row<'a> {
    fn of(new: &NewRun<'a>) -> Result<Self, HistoryError> {
        let unusable = |what: String| HistoryError::Record {
            run_id: new.record.run_id.clone(),
            what,
        };
        let run = SavedRun::of(new.record, new.label);
        let started: jiff::Timestamp = run.started.parse().map_err(|error| {
            unusable(format!("its start '{}' is no time: {error}", run.started))
        })?;
        let json = serde_json::to_vec(new.record).map_err(|error| unusable(error.to_string()))?;
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

    fn insert(&self, transaction: &Connection) -> rusqlite::Result<Outcome> {
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
            return Ok(Outcome::Known);
        }
        let seq = transaction.last_insert_rowid();
        for path in &run.targets {
            transaction.execute(
                "INSERT INTO run_targets (run, path) VALUES (?1, ?2)",
                params![seq, path],
            )?;
        }
        for disk in &run.disks {
            let row = params![seq, disk.name, disk.model, disk.serial];
            transaction.execute(
                "INSERT INTO run_disks (run, name, model, serial) VALUES (?1, ?2, ?3, ?4)",
                row,
            )?;
        }
        Ok(Outcome::Added)
    }
}

fn deflate(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}
