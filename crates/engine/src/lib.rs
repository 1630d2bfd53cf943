//! The I/O engine: runs a workload on open targets and measures it. What diskproof is really for.
//!
//! Knows the plan's nouns (crate `model`) and open targets (crate `device`); judges nothing, prints
//! nothing, reads no argument. `unsafe` lives in the buffers, in the backends that speak to the
//! kernel, and in small files around them (clock, spawn, select, usage).

mod aftermath;
mod allowance;
mod aside;
mod assemble;
mod backend;
mod buffers;
pub mod clock;
mod crew;
mod failure;
mod feed;
mod hang;
mod interim;
mod ledger;
mod limits;
mod pacer;
pub mod pattern;
pub mod random;
mod run;
mod select;
mod simulate;
mod slots;
mod spawn;
mod survey;
mod tally;
mod trial;
mod usage;
mod verify;
mod worker;

pub use clock::measure as measure_clock;
pub use failure::RunError;
pub use hang::STALL_NS;
pub use run::Session;
pub use simulate::{FakeDisk, simulate};
