//! One workload as a user describes it, by flags of `run` or by keys of a plan file: both have the
//! same names, parsers and checks.

mod fio;
mod flags;
mod group;
mod limits;
mod parsers;
mod resolve;
mod resolve_context;
mod schedule;

pub use fio::answer as answer_to_fio;
pub use flags::WorkloadFlags;
pub use group::{ResolvedGroup, resolve_group};
pub use limits::{position_bytes, sector_mismatch};
pub use parsers::{
    Bytes, Count, Order, Position, ReadShare, Rw, RwDirection, SpanBounds, Time, parse_key,
};
pub use resolve::resolve;
pub use resolve_context::{Content, Contradiction, Memory, ResolveContext, Wording};
pub use schedule::{empty_schedule, limits_cut_by_time};
