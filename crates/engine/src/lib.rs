//! The measuring engine: runs workloads and surveys on open targets.
//!
//! | module | job |
//! |---|---|
//! | `lock` | locks that a panic elsewhere does not poison |
//! | `random` | the random numbers of a run, by its seed |
//! | `allocator` | large blocks from the kernel, and an error where there is no memory left |
//! | `io/` | one request: clocks, buffers, and the kernel's interfaces that carry it |
//! | `load/` | which requests are made, and when |
//! | `measure/` | what a worker counts: latencies, series, windows, its own processor time |
//! | `run/` | a workload from the open target to its measurement |
//! | `survey/` | transfer rates and access times by place |
//! | `ping/` | single requests one after the other |
//! | `files/` | many small files |
//! | `primes` | the speed of a processor, for sysbench |
//! | `accept/` | a whole device written and read back |
//!
//! Imports point upwards in this table only. `unsafe` lives in `allocator`, `io`, `primes`,
//! `run/{thread,select,spawn}.rs` and `measure/usage.rs`.

mod accept;
pub mod allocator;
mod files;
mod io;
mod load;
mod lock;
mod measure;
mod ping;
mod primes;
pub mod random;
mod run;
mod survey;
#[cfg(any(test, feature = "simulate"))]
mod testing;
#[cfg(test)]
mod tests;

pub use accept::{AcceptDevice, LostDevice, MovedBatch};
pub use files::{FilesEnding, KeepFiles};
pub use io::any_backend::QueueConfig;
pub use io::clock::{self, StartInstant, measure as measure_clock};
pub use io::inherited::inherited_descriptor;
pub use io::wall::kernel_clock;
pub use io::{Extent, Op};
pub use load::pattern;
pub use measure::sampler::{Completion, FileSampler, SampleRequest, Sampler};
pub use primes::measure_primes;
pub use run::disk_watch::DiskWatch;
pub use run::error::RunError;
pub use run::layout::{LayoutEnd, LayoutGoal, LayoutWay};
pub use run::session::Session;
pub use run::supervise::{ENDED_NS, STALL_NS};
pub use run::watchdog;
pub use survey::ChoosePoints;
#[cfg(any(test, feature = "simulate"))]
pub use testing::simulate::{
    FakeClock, FakeDisk, FakeSampler, simulate, simulate_on, simulate_sampler,
};
