//! Judges measurements: gives estimates with their uncertainty, findings with their evidence,
//! advice with its reason, comparisons, and the verdict. Pure: no I/O, no clock, no environment.
#![forbid(unsafe_code)]

pub mod accept;
pub mod advice;
pub mod again;
pub mod campaign;
pub mod compare;
pub mod drift;
pub mod estimate;
pub mod expect;
pub mod fleet;
pub mod judge;
pub mod mechanics;
pub mod promised;
pub mod reproduce;
pub mod rules;
pub mod slices;
pub mod surface;
pub mod sweep;
pub mod trend;
pub mod trials;
pub mod verdict;
pub mod watch;

mod checked;
mod files;
mod headline;
mod inserts;
mod layers;
mod limited_by;
mod limiter;
mod load;
mod moved;
mod pause;
mod ping;
mod rays;
mod results;
mod rounds;
mod shape;
mod shared_fall;
mod steady;
mod sustain;
mod unreported_links;
mod untested;
mod verification;
mod volume_types;
mod waiting;
mod whole_disk;
mod words;
mod zones;

#[cfg(any(test, feature = "studies"))]
pub mod fixture;
