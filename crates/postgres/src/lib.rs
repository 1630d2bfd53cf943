//! Speaks to PostgreSQL, as the only crate that does. It has two parts. One makes a temporary
//! cluster in the directory under test: it finds the programs, starts a server on a Unix socket
//! only, loads it with INSERTs, stops and removes it. The other reads the counters of a server that
//! the user runs, and changes nothing there.
#![forbid(unsafe_code)]

mod claim;
mod client;
mod cluster;
mod cluster_files;
mod commit_load;
mod connection_string;
mod conninfo;
mod counters;
mod disk_errors;
mod error;
mod guard;
mod load;
mod password_file;
mod pgbench;
mod prepared;
mod program_log;
mod programs;
mod scan;
mod server_processes;
mod service_file;
mod settings;
mod stream;
mod tls;
mod user;

pub use client::PostgresClient;
pub use cluster::{Cluster, remove_leftover};
pub use commit_load::CommitLoad;
pub use conninfo::ConnectInfo;
pub use counters::{StatSession, WatchedServer};
pub use error::PostgresError;
pub use guard::{GUARD_VERB, guard};
pub use load::LoadResult;
pub use programs::{Programs, find_programs};
pub use scan::{PAGE_BYTES, TableScans, TrialTable};
pub use settings::{ServerSetting, SettingScope};
pub use stream::StopCheck;
