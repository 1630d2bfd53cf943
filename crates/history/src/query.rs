//! Questions to a history: lists, and single runs.

use crate::error::HistoryError;
use crate::store::History;
use diskproof_model::record::Record;
use diskproof_model::saved::SavedRun;
use flate2::read::ZlibDecoder;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{OptionalExtension as _, Row, params_from_iter};
use std::io::{self, Read as _};

/// Which runs are meant; everything that is named must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Path of a target; `*`, `?` and `[…]` as in a shell.
    pub target: Option<String>,
    /// Serial of a disk below a target, on any machine and path.
    pub serial: Option<String>,
    /// What was asked.
    pub verb: Option<String>,
    /// Name of the machine.
    pub host: Option<String>,
    /// The user's name for the run.
    pub label: Option<String>,
    /// Not started before this, in seconds since 1970.
    pub since: Option<i64>,
    /// At most so many, the newest.
    pub limit: Option<u64>,
}

/// A saved run with all of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The record.
    pub record: Record,
    /// What was printed then, ANSI text.
    pub page: Option<String>,
    /// The user's name for it.
    pub label: Option<String>,
}

/// Runs in short.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Listing {
    /// Newest first.
    pub runs: Vec<SavedRun>,
    /// Ids of runs that cannot be read: something wrote over them. All others still can.
    pub unreadable: Vec<String>,
}

/// Newest first. A later save breaks a tie of seconds.
const NEWEST_FIRST: &str = "ORDER BY started DESC, seq DESC";

impl History {
    /// Runs in short, newest first.
    pub fn list(&self, filter: &Filter) -> Result<Listing, HistoryError> {
        let (conditions, mut values) = filter.conditions();
        values.push(Value::Integer(
            filter
                .limit
                .map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX)),
        ));
        let query = format!(
            "SELECT run_id, label, summary FROM runs WHERE {conditions} {NEWEST_FIRST} LIMIT ?"
        );
        let mut statement = self
            .connection
            .prepare(&query)
            .map_err(|error| self.failed(&error))?;
        let rows = statement
            .query_map(params_from_iter(values), short)
            .map_err(|error| self.failed(&error))?;
        let mut listing = Listing::default();
        for row in rows {
            match row.map_err(|error| self.failed(&error))? {
                Ok(run) => listing.runs.push(run),
                Err(run_id) => listing.unreadable.push(run_id),
            }
        }
        Ok(listing)
    }

    /// Ids of runs that begin like this, newest first.
    pub fn ids(&self, prefix: &str) -> Result<Vec<String>, HistoryError> {
        // As text between two bounds, so that no character of it is taken for a wildcard.
        let query = format!(
            "SELECT run_id FROM runs WHERE substr(run_id, 1, length(?1)) = ?1 {NEWEST_FIRST}"
        );
        self.ids_by(&query, [Value::Text(prefix.to_owned())])
    }

    /// Ids of runs with this label, newest first.
    pub fn labelled(&self, label: &str) -> Result<Vec<String>, HistoryError> {
        self.ids_by(
            &format!("SELECT run_id FROM runs WHERE label = ?1 {NEWEST_FIRST}"),
            [Value::Text(label.to_owned())],
        )
    }

    /// The run that is so many older than the newest.
    pub fn nth_newest(&self, back: u64) -> Result<Option<String>, HistoryError> {
        let back = i64::try_from(back).unwrap_or(i64::MAX);
        let ids = self.ids_by(
            &format!("SELECT run_id FROM runs {NEWEST_FIRST} LIMIT 1 OFFSET ?1"),
            [Value::Integer(back)],
        )?;
        Ok(ids.into_iter().next())
    }

    /// Runs that may go: without a label, and older than this, in seconds since 1970, or beyond the
    /// newest `keep` of those.
    pub fn prunable(
        &self,
        before: Option<i64>,
        keep: Option<u64>,
    ) -> Result<Vec<SavedRun>, HistoryError> {
        let Listing { mut runs, .. } = self.list(&Filter::default())?;
        runs.retain(|run| run.label.is_none());
        let runs = runs
            .into_iter()
            .skip(keep.map_or(0, |keep| usize::try_from(keep).unwrap_or(usize::MAX)));
        let is_older = |run: &SavedRun| {
            before.is_none_or(|before| start_s(run).is_some_and(|start| start < before))
        };
        Ok(runs.filter(is_older).collect())
    }

    /// A run by its whole id.
    pub fn get(&self, run_id: &str) -> Result<Option<Stored>, HistoryError> {
        let unusable = |what: String| HistoryError::Record {
            run_id: run_id.to_owned(),
            what,
        };
        let query = "SELECT record, page, label FROM runs WHERE run_id = ?1";
        let row = |row: &Row<'_>| {
            Ok((
                row.get::<_, Vec<u8>>(0)?,
                row.get::<_, Option<Vec<u8>>>(1)?,
                row.get(2)?,
            ))
        };
        let found = self
            .connection
            .query_row(query, [run_id], row)
            .optional()
            .map_err(|error| self.failed(&error))?;
        let Some((record, page, label)) = found else {
            return Ok(None);
        };
        let record = unpack(&record).map_err(|error| unusable(error.to_string()))?;
        let page = page
            .map(|page| inflate(&page))
            .transpose()
            .map_err(|error| unusable(error.to_string()))?;
        Ok(Some(Stored {
            record,
            page,
            label,
        }))
    }

    fn ids_by<const N: usize>(
        &self,
        query: &str,
        values: [Value; N],
    ) -> Result<Vec<String>, HistoryError> {
        let ids = || -> rusqlite::Result<Vec<String>> {
            self.connection
                .prepare(query)?
                .query_map(params_from_iter(values), |row| text(row, 0))?
                .collect()
        };
        ids().map_err(|error| self.failed(&error))
    }
}

impl Filter {
    /// As SQL, with the values of its question marks.
    fn conditions(&self) -> (String, Vec<Value>) {
        let text = |value: &Option<String>| value.clone().map(Value::Text);
        let parts = [
            (
                "seq IN (SELECT run FROM run_targets, (SELECT ? AS wanted) WHERE path = wanted OR \
                 path GLOB wanted)",
                text(&self.target),
            ),
            (
                "seq IN (SELECT run FROM run_disks WHERE serial = ?)",
                text(&self.serial),
            ),
            ("verb = ?", text(&self.verb)),
            ("host = ?", text(&self.host)),
            ("label = ?", text(&self.label)),
            ("started >= ?", self.since.map(Value::Integer)),
        ];
        let (conditions, values): (Vec<&str>, Vec<Value>) = parts
            .into_iter()
            .filter_map(|(part, value)| value.map(|value| (part, value)))
            .unzip();
        (
            if conditions.is_empty() {
                "true".to_owned()
            } else {
                conditions.join(" AND ")
            },
            values,
        )
    }
}

/// A row of a list, or the id of a run that cannot be read. The label may have changed since the
/// run was saved.
fn short(row: &Row<'_>) -> rusqlite::Result<Result<SavedRun, String>> {
    let (run_id, summary) = (text(row, 0)?, text(row, 2)?);
    let label = if row.get_ref(1)? == ValueRef::Null {
        None
    } else {
        Some(text(row, 1)?)
    };
    Ok(serde_json::from_str::<SavedRun>(&summary)
        .map(|run| SavedRun { label, ..run })
        .map_err(|_| run_id))
}

/// A record as it is kept; an error where any of it was written over.
pub(crate) fn unpack(record: &[u8]) -> io::Result<Record> {
    Ok(serde_json::from_str(&inflate(record)?)?)
}

pub(crate) fn inflate(bytes: &[u8]) -> io::Result<String> {
    let mut text = String::new();
    ZlibDecoder::new(bytes).read_to_string(&mut text)?;
    Ok(text)
}

/// Text of a column. What something wrote over may be no UTF-8 any more, and must not keep the
/// other rows from being read.
fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(String::from_utf8_lossy(
        row.get_ref(column)?
            .as_bytes()
            .map_err(|_| rusqlite::Error::InvalidQuery)?,
    )
    .into_owned())
}

fn start_s(run: &SavedRun) -> Option<i64> {
    run.started
        .parse::<jiff::Timestamp>()
        .ok()
        .map(jiff::Timestamp::as_second)
}
