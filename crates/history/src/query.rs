//! Reads from a history: lists of runs, and single runs.

use crate::error::HistoryError;
use crate::store::History;
use diskproof_model::document::DocumentError;
use diskproof_model::limits::DOCUMENT_BYTES_MAX;
use diskproof_model::record::Record;
use diskproof_model::saved::SavedRun;
use flate2::read::ZlibDecoder;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{OptionalExtension as _, Row, params_from_iter};
use std::io::{self, Read as _};

/// The conditions of the runs to list; a run must meet all that are given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// A target.
    pub target: Option<TargetFilter>,
    /// Serial of a disk below a target, on any machine and path.
    pub serial: Option<String>,
    /// The verb that made the run.
    pub verb: Option<String>,
    /// Name of the machine.
    pub host: Option<String>,
    /// The user's name for the run.
    pub label: Option<String>,
    /// Only runs that started at this time or later, in seconds since 1970.
    pub since: Option<i64>,
    /// At most so many, the newest.
    pub limit: Option<u64>,
}

/// The targets that a filter selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetFilter {
    /// The one with this path, whatever characters it has.
    Path(String),
    /// Those whose paths are this or match it; `*`, `?` and `[…]` as in a shell.
    Pattern(String),
}

/// A saved run as it was saved.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRun {
    /// The record, read from its compressed JSON.
    pub record: Record,
    /// The result as it was printed, ANSI text.
    pub page: Option<String>,
    /// The user's name for it.
    pub label: Option<String>,
}

impl StoredRun {
    /// Unpacks the columns of a row; an error where any byte of them was overwritten.
    pub fn unpack(record: &[u8], page: Option<&[u8]>, label: Option<String>) -> io::Result<Self> {
        Ok(Self {
            record: unpack(record)?,
            page: page.map(inflate).transpose()?,
            label,
        })
    }
}

/// The short forms of runs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Listing {
    /// The runs, newest first.
    pub runs: Vec<SavedRun>,
    /// Runs that cannot be read because their rows were overwritten, newest first.
    pub unreadable: Vec<UnreadableRun>,
}

/// A run whose short form cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableRun {
    /// The id of the run.
    pub run_id: String,
    /// The start of the run, in seconds since 1970.
    pub started_s: i64,
}

/// The end of a query that lists the newest runs first; within one second, the later save first.
const NEWEST_FIRST: &str = "ORDER BY started DESC, seq DESC";

impl History {
    /// The short forms of matching runs, newest first.
    pub fn list(&self, filter: &Filter) -> Result<Listing, HistoryError> {
        self.select_runs(filter)
            .map_err(|error| self.history_error(&error))
    }

    fn select_runs(&self, filter: &Filter) -> rusqlite::Result<Listing> {
        let Conditions { parts, mut values } = filter.conditions();
        let conditions = if parts.is_empty() {
            "true".to_owned()
        } else {
            parts.join(" AND ")
        };
        let query = format!(
            "SELECT run_id, label, summary, started FROM runs WHERE {conditions} {NEWEST_FIRST} \
             LIMIT ?"
        );
        values.push(Value::Integer(match filter.limit {
            Some(limit) => i64::try_from(limit).unwrap_or(i64::MAX),
            None => -1,
        }));
        let mut statement = self.connection.prepare(&query)?;
        let mut listing = Listing::default();
        for row in statement.query_map(params_from_iter(values), listed_run)? {
            match row? {
                ListedRun::Readable(run) => listing.runs.push(*run),
                ListedRun::Unreadable(run) => listing.unreadable.push(run),
            }
        }
        Ok(listing)
    }

    /// Ids of runs that begin with `prefix`, newest first.
    pub fn ids(&self, prefix: &str) -> Result<Vec<String>, HistoryError> {
        // Not LIKE: the prefix may hold wildcards.
        let query = format!(
            "SELECT run_id FROM runs WHERE substr(run_id, 1, length(?1)) = ?1 {NEWEST_FIRST}"
        );
        self.ids_by(&query, [Value::Text(prefix.to_owned())])
    }

    /// Ids of runs with this label, newest first.
    pub fn labelled(&self, label: &str) -> Result<Vec<String>, HistoryError> {
        let query = format!("SELECT run_id FROM runs WHERE label = ?1 {NEWEST_FIRST}");
        self.ids_by(&query, [Value::Text(label.to_owned())])
    }

    /// The id of the run `back` places before the newest.
    pub fn nth_newest(&self, back: u64) -> Result<Option<String>, HistoryError> {
        let offset = i64::try_from(back).unwrap_or(i64::MAX);
        let query = format!("SELECT run_id FROM runs {NEWEST_FIRST} LIMIT 1 OFFSET ?1");
        let ids = self.ids_by(&query, [Value::Integer(offset)])?;
        Ok(ids.into_iter().next())
    }

    /// Returns the runs that may be deleted: without a label, started before `before` (seconds
    /// since 1970), and not among the newest `keep` runs without a label.
    pub fn prunable(
        &self,
        before: Option<i64>,
        keep: Option<u64>,
    ) -> Result<Vec<SavedRun>, HistoryError> {
        let mut kept = match keep {
            Some(keep) => usize::try_from(keep).unwrap_or(usize::MAX),
            None => 0,
        };
        let mut prunable = Vec::new();
        for run in self.list(&Filter::default())?.runs {
            if run.label.is_some() {
                continue;
            }
            if kept > 0 {
                kept -= 1;
                continue;
            }
            let is_older = match (before, start_s(&run)) {
                (None, _) => true,
                (Some(before), Some(start)) => start < before,
                (Some(_), None) => false,
            };
            if is_older {
                prunable.push(run);
            }
        }
        Ok(prunable)
    }

    /// The run with this complete id.
    pub fn get(&self, run_id: &str) -> Result<Option<StoredRun>, HistoryError> {
        let query = "SELECT record, page, label FROM runs WHERE run_id = ?1";
        type Packed = (Vec<u8>, Option<Vec<u8>>, Option<String>);
        let row = self
            .connection
            .query_row(query, [run_id], |row| <Packed>::try_from(row))
            .optional()
            .map_err(|error| self.history_error(&error))?;
        let Some((record, page, label)) = row else {
            return Ok(None);
        };
        match StoredRun::unpack(&record, page.as_deref(), label) {
            Ok(run) => Ok(Some(run)),
            Err(error) => Err(HistoryError::Record {
                run_id: run_id.to_owned(),
                what: error.to_string(),
            }),
        }
    }

    fn ids_by<const N: usize>(
        &self,
        query: &str,
        values: [Value; N],
    ) -> Result<Vec<String>, HistoryError> {
        self.select_ids(query, values)
            .map_err(|error| self.history_error(&error))
    }

    fn select_ids<const N: usize>(
        &self,
        query: &str,
        values: [Value; N],
    ) -> rusqlite::Result<Vec<String>> {
        self.connection
            .prepare(query)?
            .query_map(params_from_iter(values), |row| column_text(row, 0))?
            .collect()
    }
}

/// Conditions in SQL, and the values of their question marks.
#[derive(Default)]
struct Conditions {
    parts: Vec<&'static str>,
    values: Vec<Value>,
}

impl Conditions {
    /// Adds a condition on a text, where one is given.
    fn add_text(&mut self, part: &'static str, text: Option<&String>) {
        if let Some(text) = text {
            self.parts.push(part);
            self.values.push(Value::Text(text.clone()));
        }
    }
}

/// A condition on a text of a run, for the rows of a history and for a run that is not in it.
struct TextCondition {
    /// The text that a filter asks for.
    wanted: fn(&Filter) -> Option<&String>,
    sql: &'static str,
    is_met: fn(&SavedRun, &String) -> bool,
}

const TEXT_CONDITIONS: [TextCondition; 4] = [
    TextCondition {
        wanted: |filter| filter.serial.as_ref(),
        sql: "seq IN (SELECT run FROM run_disks WHERE serial = ?)",
        is_met: |run, serial| {
            run.disks
                .iter()
                .any(|disk| disk.serial.as_ref() == Some(serial))
        },
    },
    TextCondition {
        wanted: |filter| filter.verb.as_ref(),
        sql: "verb = ?",
        is_met: |run, verb| run.verb == *verb,
    },
    TextCondition {
        wanted: |filter| filter.host.as_ref(),
        sql: "host = ?",
        is_met: |run, host| run.host == *host,
    },
    TextCondition {
        wanted: |filter| filter.label.as_ref(),
        sql: "label = ?",
        is_met: |run, label| run.label.as_ref() == Some(label),
    },
];

impl Filter {
    fn conditions(&self) -> Conditions {
        let mut conditions = Conditions::default();
        match &self.target {
            Some(TargetFilter::Path(path)) => conditions.add_text(
                "seq IN (SELECT run FROM run_targets WHERE path = ?)",
                Some(path),
            ),
            Some(TargetFilter::Pattern(pattern)) => conditions.add_text(
                "seq IN (SELECT run FROM run_targets, (SELECT ? AS wanted) WHERE path = wanted OR \
                 path GLOB wanted)",
                Some(pattern),
            ),
            None => {}
        }
        for condition in &TEXT_CONDITIONS {
            conditions.add_text(condition.sql, (condition.wanted)(self));
        }
        if let Some(since) = self.since {
            conditions.parts.push("started >= ?");
            conditions.values.push(Value::Integer(since));
        }
        conditions
    }

    /// Returns `true` of a run that is not in the history and that the list would have, but for its
    /// target and the number of runs. A run whose start is unknown may have begun at any time.
    pub fn admits(&self, run: &SavedRun) -> bool {
        for condition in &TEXT_CONDITIONS {
            if let Some(wanted) = (condition.wanted)(self)
                && !(condition.is_met)(run, wanted)
            {
                return false;
            }
        }
        match (self.since, start_s(run)) {
            (Some(since), Some(start)) => start >= since,
            (None, _) | (_, None) => true,
        }
    }
}

/// Reads a row of a list. The label comes from its own column: it may have changed since the run
/// was saved.
fn listed_run(row: &Row<'_>) -> rusqlite::Result<ListedRun> {
    let run_id = column_text(row, 0)?;
    let summary = column_text(row, 2)?;
    let label = match row.get_ref(1)? {
        ValueRef::Null => None,
        _ => Some(column_text(row, 1)?),
    };
    Ok(match SavedRun::from_json(&summary) {
        Ok(run) => ListedRun::Readable(Box::new(SavedRun { label, ..run })),
        Err(_) => ListedRun::Unreadable(UnreadableRun {
            run_id,
            // A run whose start cannot be read may be the newest.
            started_s: row.get(3).unwrap_or(i64::MAX),
        }),
    })
}

/// A row of a list.
enum ListedRun {
    Readable(Box<SavedRun>),
    /// The short form was overwritten.
    Unreadable(UnreadableRun),
}

/// Unpacks a record; an error where any byte of it was overwritten.
fn unpack(record: &[u8]) -> io::Result<Record> {
    Record::from_json(&inflate(record)?).map_err(io::Error::other)
}

/// Returns the text that zlib packed; an error for one that is longer than a document may be, since
/// some kB of zlib can become many GB.
fn inflate(bytes: &[u8]) -> io::Result<String> {
    let mut text = String::new();
    ZlibDecoder::new(bytes)
        .take(DOCUMENT_BYTES_MAX as u64 + 1)
        .read_to_string(&mut text)?;
    if text.len() > DOCUMENT_BYTES_MAX {
        return Err(io::Error::other(DocumentError::TooLarge));
    }
    Ok(text)
}

/// Returns the text of a column. Overwritten text may be invalid UTF-8, which must not hide the
/// other rows.
fn column_text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    match row.get_ref(column)?.as_bytes() {
        Ok(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        Err(_) => Err(rusqlite::Error::InvalidQuery),
    }
}

/// The start of a run, in seconds since 1970; `None` where its text is no time.
fn start_s(run: &SavedRun) -> Option<i64> {
    let started: jiff::Timestamp = run.started.parse().ok()?;
    Some(started.as_second())
}
