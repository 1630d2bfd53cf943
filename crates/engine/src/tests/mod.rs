//! What tests of this crate and of others need.

#[cfg(test)]
pub(crate) mod loads;
#[cfg(test)]
pub(crate) mod sim_backend;
pub(crate) mod simulate;
#[cfg(test)]
mod transactions;
#[cfg(test)]
mod warmup;
