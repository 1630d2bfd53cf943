//! Simulates disks and names workloads for the tests of this crate. Tests of other crates use
//! [`simulate`], by the feature of the same name: they print records whose figures they know
//! exactly.

#[cfg(test)]
pub(crate) mod loads;
#[cfg(test)]
pub(crate) mod sim_backend;
pub(crate) mod simulate;
