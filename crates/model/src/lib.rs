//! The nouns of diskproof: a `Plan` is run on a target (`TargetIdentity`), which gives
//! `Measurement`s, which a `Record` reports. No I/O, no threads, no clock, no command line.
#![forbid(unsafe_code)]

pub use diskproof_samples::{histogram, series};

pub mod accept;
pub mod advice;
pub mod block;
pub mod budget;
pub mod campaign;
pub mod capacity_workloads;
pub mod comparison;
pub mod data;
pub mod digits;
mod divisor;
pub mod document;
pub mod errno;
pub mod expectation;
pub mod figure;
pub mod files;
pub mod files_record;
pub mod finding;
pub mod fio_bins;
pub mod fleet;
pub mod fleet_sum;
pub mod group;
pub mod health;
pub mod knee;
pub mod latency_search;
pub mod layers;
pub mod limiter;
pub mod limits;
#[cfg(test)]
mod lists;
pub mod measurement;
pub mod merge;
pub mod metric;
pub mod observed;
pub mod op;
pub mod own_data;
pub mod ping;
pub mod plan;
pub mod plan_check;
pub mod postgres;
pub mod primes;
pub mod progress;
pub mod proof;
pub mod rate;
pub mod rays;
pub mod record;
pub mod request_log;
pub mod results;
pub mod row;
pub mod rw;
pub mod saved;
pub mod scatter;
pub mod secrets;
pub mod shape;
pub mod shell;
pub mod signed;
pub mod slice;
pub mod stream;
pub mod surface;
pub mod sustain;
pub mod sweep;
pub mod sync;
pub mod target;
pub mod task;
pub mod timetable;
pub mod together;
pub mod transaction;
pub mod trend;
pub mod units;
pub mod verdict;
pub mod wall_clock;
pub mod watch;
pub mod window;

// Leaves that several of the modules above share, each public as part of one of them.
mod estimate;
mod workload;

/// True of a field that says no more than its absence does: serde leaves it out of records.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
