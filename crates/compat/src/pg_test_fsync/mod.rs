//! pg_test_fsync of PostgreSQL.

mod args;
mod print;
mod rows;
#[cfg(test)]
mod tests;

use crate::drop_in::{DropIn, ExitCodes};

/// The registry's line.
pub(crate) static DROP_IN: DropIn = DropIn {
    name: args::NAME,
    emulates: args::EMULATES,
    summary: "durable writes by each wal_sync_method",
    native: "commit",
    example: "-s 1 -f /var/tmp/pg_test_fsync.out",
    options: args::OPTIONS,
    differences: args::DIFFERENCES,
    exits: ExitCodes {
        usage: 1,
        target: 1,
        run: 1,
        signal: Some(1),
    },
    start: args::start,
};
