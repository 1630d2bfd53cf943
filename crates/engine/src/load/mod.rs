//! Decides the load: where each request goes, when it starts, and how many may start. Remembers
//! what was written where. Uses `io`; measures nothing.

pub(crate) mod block_calls;
pub(crate) mod budget;
pub(crate) mod content;
pub(crate) mod dispatch;
pub(crate) mod generator;
pub(crate) mod group_sync;
pub(crate) mod holds;
pub(crate) mod lead;
pub(crate) mod pacer;
pub mod pattern;
pub(crate) mod slots;
pub(crate) mod transaction;
pub(crate) mod write_journal;
