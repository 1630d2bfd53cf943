//! Saved runs in one SQLite file. The only crate that knows SQL.
//!
//! Promises: a saved run survives `kill -9` and a power cut. Several processes may use the file at
//! the same time. A damaged file is renamed, never deleted, and a new one begins. A file that is
//! merely busy, full or unreachable is never treated as damaged. A file that this program did not
//! make is never changed.
#![forbid(unsafe_code)]

mod accept_journal;
mod error;
mod journal;
mod lock;
mod migrations;
mod ours;
mod place;
mod query;
mod save;
mod store;

pub use accept_journal::AcceptJournal;
pub use error::HistoryError;
pub use journal::{Journal, LeftRecord, LeftRun, LeftRuns, runs_left_behind};
pub use migrations::SCHEMA_VERSION;
pub use ours::refuse_foreign;
pub use place::{Folders, HistoryPlace};
pub use query::{Filter, Listing, StoredRun, TargetFilter, UnreadableRun};
pub use save::{MovedHistory, NewRun, RunSource, SaveOutcome, SaveReport, make_writable, save};
pub use store::History;
