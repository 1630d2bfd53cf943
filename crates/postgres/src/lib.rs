//! Sessions of PostgreSQL. A throw-away cluster in the directory under test: its programs are
//! found, a server is started on a Unix socket only, loaded with INSERTs, stopped and removed. And
//! a look at the counters of a server that the user runs, which changes nothing there. The only
//! crate that speaks to PostgreSQL.
#![forbid(unsafe_code)]

mod client;
mod cluster;
mod cluster_files;
mod conninfo;
mod conninfo_text;
mod counters;
mod error;
mod guard;
mod load;
mod prepared;
mod programs;
mod scan;
mod stream;
mod tls;
mod user;

pub use client::PostgresClient;
pub use cluster::{Cluster, ServerSetting, SettingScope, remove_leftover};
pub use conninfo::ConnectInfo;
pub use counters::{StatSession, WatchedServer};
pub use error::PostgresError;
pub use guard::{GUARD_VERB, guard};
pub use load::{CommitLoad, LoadResult};
pub use programs::{Programs, find_programs};
pub use scan::{PAGE_BYTES, TableScans, TrialTable};
pub use stream::StopCheck;
