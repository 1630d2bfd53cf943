//! One workload or several together, from open targets to measurements: prepare, start the workers,
//! watch them, finish, assemble.

pub mod assemble;
pub mod calibrate;
pub mod call_with_timeout;
pub mod error;
pub mod finish;
pub mod hang;
pub mod limits;
pub mod select;
pub mod session;
pub mod spawn;
pub mod verify;
pub mod workers;
