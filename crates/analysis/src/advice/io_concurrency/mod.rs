//! Advises how many requests PostgreSQL should keep in flight: effective_io_concurrency and
//! maintenance_io_concurrency.

mod from_check;
mod from_sweep;
mod setting;

pub(super) use from_check::advise_from_check;
pub(super) use from_sweep::advise_from_sweep;
