//! What a run knows of the others that a launcher started with it: its place among them, the fences
//! that the launcher offers, and how well the wall clock is known. It opens no connection.
#![forbid(unsafe_code)]

pub mod launcher;
pub mod pmi;
pub mod wall;
