//! The I/O engine: runs a workload on open targets and measures it. What diskproof is really for.
//!
//! Knows the plan's nouns (crate `model`) and open targets (crate `device`); judges nothing, prints
//! nothing, reads no argument. `unsafe` lives in the buffers, in the backends that speak to the
//! kernel, and in small files around them (clock, spawn, select, usage).

mod io;
mod load;
mod measure;
pub mod random;
mod run;
mod simulate;
mod survey;

pub use io::any_backend::QueueConfig;
pub use io::clock::measure as measure_clock;
pub use io::{Extent, Op, clock};
pub use load::pattern;
pub use measure::sampler::{Completion, FileSampler, SampleRequest, Sampler};
pub use run::error::RunError;
pub use run::session::Session;
pub use run::watchdog::{self, STALL_NS};
pub use simulate::{FakeDisk, FakeSampler, simulate, simulate_sampler};
