//! The nouns of diskproof: what is asked (`Plan`), what it is asked of (`TargetIdentity`), what was
//! seen (`Measurement`), and what is told about it (`Record`). No I/O, no threads, no clock, no
//! command line.
#![forbid(unsafe_code)]

pub mod comparison;
pub mod digits;
pub mod document;
pub mod errno;
pub mod finding;
pub mod group;
pub mod health;
pub mod histogram;
pub mod limits;
pub mod measurement;
pub mod own_data;
pub mod plan;
pub mod progress;
pub mod record;
pub mod saved;
pub mod series;
pub mod shell;
pub mod summary;
pub mod surface;
pub mod target;
pub mod units;
pub mod verdict;
