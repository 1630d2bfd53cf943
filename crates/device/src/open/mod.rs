//! An admission becomes an open target: a scratch file of ours, what the user released for writing,
//! or what is only read. Every descriptor on which requests are measured comes from here.

pub(crate) mod direct_trial;
#[cfg(test)]
mod exchange_tests;
pub(crate) mod released;
mod reopen;
pub(crate) mod scratch;
pub(crate) mod target;
mod wipe;
mod write_hints;
