//! Runs one workload or several together, from open targets to measurements.
//!
//! [`session`] has the order of the steps:
//! * before the workers: [`prepare`] makes a target ready, by [`layout`] (content), [`in_memory`]
//!   (page cache), [`first_request`] (is the target slow?), [`block_calls`] (trims) and [`select`]
//!   (the I/O engine, with [`calibrate`]);
//! * the workers: [`division`] divides the work among threads, with [`limits`] for each, and
//!   [`workers`] starts them together; [`spawn`] is one thread, and `thread` what it has of its
//!   own;
//! * after the workers: [`finish`] syncs and verifies (`read_back`, past the page cache by
//!   `cached_blocks`), [`assemble`] combines the results, [`totals`] adds CPU time and the counters
//!   of devices.
//!
//! Every wait for a target that may hang is in [`supervise`]. [`watchdog`] puts a single call into
//! a thread of its own, and [`watched_call`] makes it on a target, with its progress shown.
//! [`hang`] is what the workers of a hung target leave, and [`silence_log`] the silences outside of
//! the measured time; [`disk_watch`] has those of disks that another process uses.

pub(crate) mod assemble;
pub(crate) mod block_calls;
mod cached_blocks;
pub(crate) mod calibrate;
pub(crate) mod disk_watch;
pub(crate) mod division;
pub(crate) mod error;
pub(crate) mod finish;
pub(crate) mod first_request;
pub(crate) mod hang;
pub(crate) mod in_memory;
pub(crate) mod layout;
pub(crate) mod limits;
pub(crate) mod prepare;
mod read_back;
pub(crate) mod select;
pub(crate) mod session;
pub(crate) mod silence_log;
pub(crate) mod spawn;
pub(crate) mod supervise;
mod thread;
pub(crate) mod totals;
pub mod watchdog;
pub(crate) mod watched_call;
pub(crate) mod workers;
