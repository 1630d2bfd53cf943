//! One workload or several together, from open targets to measurements: prepare, start the workers,
//! watch them, finish, assemble.

pub mod assemble;
pub mod calibrate;
pub mod descriptor;
pub mod error;
pub mod finish;
pub mod hang;
pub mod limits;
pub mod prepare;
pub mod select;
pub mod session;
pub mod spawn;
pub mod totals;
pub mod verify;
pub mod watchdog;
pub mod workers;
