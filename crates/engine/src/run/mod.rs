//! One workload or several together, from open targets to measurements: prepare, start the workers,
//! watch them, finish, assemble.

pub(crate) mod assemble;
pub(crate) mod block_calls;
pub(crate) mod calibrate;
pub(crate) mod error;
pub(crate) mod finish;
pub(crate) mod first_request;
pub(crate) mod hang;
pub(crate) mod in_memory;
pub(crate) mod layout;
pub(crate) mod limits;
pub(crate) mod prepare;
pub(crate) mod select;
pub(crate) mod session;
pub(crate) mod spawn;
pub(crate) mod supervise;
mod thread;
pub(crate) mod totals;
pub mod watchdog;
pub(crate) mod watched_call;
pub(crate) mod workers;
