//! Runs a worker: takes requests from `load`, sends them through a backend of `io`, and counts the
//! completions.

mod completion;
pub(crate) mod counters;
pub(crate) mod load_limits;
pub(crate) mod read_check;
pub(crate) mod result;
pub(crate) mod sampler;
pub(crate) mod turnover;
pub(crate) mod usage;
pub(crate) mod windows;
pub(crate) mod worker;
