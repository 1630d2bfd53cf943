//! The kernel's counters of disks and processes, read before and after a measurement to compare the
//! figures with.

pub(crate) mod disk_tally;
mod exits;
pub(crate) mod processes;
pub(crate) mod pulse;
pub(crate) mod snapshot;
