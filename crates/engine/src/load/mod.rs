//! The load: where each request goes, when it starts, how many may start, and what was written
//! where. Uses `io`; counts and times nothing.

pub mod budget;
pub mod generator;
pub mod pacer;
pub mod pattern;
pub mod read_batch;
pub mod slots;
pub mod write_journal;
