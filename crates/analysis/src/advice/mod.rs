//! Settings that follow from the figures of a run.

mod fitness;
pub mod postgres;
mod wal_sync_method;
