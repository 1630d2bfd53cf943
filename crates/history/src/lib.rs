//! Saved records: one SQLite file that every run is added to. The only crate that knows SQL. Must
//! not know arguments, environment or terminal: where the file lies is told by the caller.
//!
//! What is promised: a run that was reported as saved is in the file after `kill -9` and after a
//! power cut; several programs may use the file at the same time; a file that is damaged is moved
//! aside, whole, and never one that is merely busy, full or out of reach; what can still be read of
//! it is taken over.
#![forbid(unsafe_code)]

mod damage;
mod error;
mod filesystem;
mod lock;
mod migrations;
mod place;
mod query;
mod rescue;
mod save;
mod store;

pub use damage::SetAside;
pub use error::HistoryError;
pub use migrations::SCHEMA_VERSION;
pub use place::{Folders, Place};
pub use query::{Filter, Listing, Stored};
pub use save::{NewRun, Outcome, Saved, save};
pub use store::History;
