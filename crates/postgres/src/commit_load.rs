//! Describes a load of INSERTs, which sessions of this process or pgbench make.

/// Inserts one row, as a separate transaction. pgbench runs the same.
pub(crate) const INSERT: &str = "INSERT INTO commits VALUES (1, now(), 'diskproof')";

/// A load of INSERTs.
#[derive(Debug, Clone)]
pub struct CommitLoad {
    /// Sessions at the same time.
    pub clients: u32,
    /// True if a commit waits until its WAL is durable.
    pub synchronous: bool,
    /// The server's wal_sync_method while it runs.
    pub method: String,
    /// True if pgbench makes the load.
    pub by_pgbench: bool,
    /// The delay of a commit that waits for others (commit_delay), in microseconds.
    pub commit_delay_us: Option<u32>,
}
