//! Settings that follow from the figures of a run.

mod fitness;
mod io_concurrency;
mod mysql;
pub mod postgres;
mod tried;
mod wal_sync_method;
