//! What several tests of this crate need.

pub(crate) mod sim_backend;
