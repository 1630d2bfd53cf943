//! Advises on settings of a database server by the figures of a run: the values that follow from
//! them, and the settings to leave alone.

mod commit_delay;
mod io_concurrency;
mod mysql;
mod postgres;
mod random_page_cost;
mod reasons_against;
mod tried;
mod wal_sync_method;

use diskproof_model::advice::Advice;
use diskproof_model::record::Record;

/// The settings that a record supports: MySQL's where the run used a profile for MySQL, else
/// PostgreSQL's. A run with several targets has none, because a server has one value of a setting,
/// and it is unknown which of the disks the server uses.
pub fn advised_settings(record: &Record) -> Vec<Advice> {
    if record.targets.len() != 1 {
        return Vec::new();
    }
    match mysql::advise_io_capacity(record) {
        Some(io_capacity) => vec![io_capacity],
        None => postgres::advise(record),
    }
}
