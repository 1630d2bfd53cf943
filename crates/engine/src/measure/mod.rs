//! The worker: takes requests from `load`, sends them through a backend of `io`, and counts the
//! completions. Knows no thread, no target file and no other worker.

mod completion;
pub mod counters;
pub mod result;
pub mod sampler;
pub mod snapshot;
pub mod usage;
pub mod worker;
