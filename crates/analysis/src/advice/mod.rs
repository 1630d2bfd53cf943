//! Settings that follow from the figures of a run.

pub mod postgres;
