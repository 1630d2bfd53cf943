//! One workload or several together, from open targets to measurements: prepare, start the workers,
//! watch them, finish, assemble.

pub(crate) mod assemble;
mod block_calls;
pub(crate) mod calibrate;
pub(crate) mod counter_log;
pub(crate) mod descriptor;
pub(crate) mod error;
pub(crate) mod finish;
pub(crate) mod first_request;
pub(crate) mod hang;
pub(crate) mod limits;
pub(crate) mod prepare;
mod scheduling;
pub(crate) mod select;
pub(crate) mod session;
pub(crate) mod spawn;
pub(crate) mod totals;
pub(crate) mod verify;
pub mod watchdog;
pub(crate) mod workers;
