//! The processes that a launcher started together: the place of this one among them, the fences
//! that the launcher offers, and the error of the wall clock. This crate opens no connection.
#![forbid(unsafe_code)]

pub mod launcher;
pub mod pmi;
pub mod wall;
