//! Finds the place of this process among those that a launcher started together, takes part in the
//! fences that the launcher offers, and bounds the error of the wall clock. This crate opens no
//! connection.
#![forbid(unsafe_code)]

pub mod launcher;
pub mod pmi;
pub mod wall;
