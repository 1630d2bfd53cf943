//! One workload as a user describes it: as flags of `run` or as keys of a plan file, with the same
//! words, parsers and checks.

mod fio;
mod flags;
mod reach;
mod resolve;
mod together;
mod words;

pub use fio::answer as answer_to_fio;
pub use flags::WorkloadFlags;
pub use reach::{ended_by_time, out_of_reach};
pub use resolve::{Content, Contradiction, Ground, Memory, Wording, misfit, place, resolve};
pub use together::{Team, resolve_team};
pub use words::{Bytes, Count, Direction, Order, Part, Position, ReadShare, Rw, Time, written};
