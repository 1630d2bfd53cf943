//! One workload as a user describes it, by flags of `run` or by keys of a plan file: both have the
//! same names, parsers and checks.

mod axes;
mod fio_flags;
mod flags;
mod group;
mod latency_target;
mod limits;
mod parsers;
mod resolve;
mod resolve_context;
mod schedule;

pub(crate) use axes::{WORKLOADS_MAX, WorkloadAxes, refuse_repeated};
pub(crate) use fio_flags::FioFlags;
pub(crate) use flags::WorkloadFlags;
pub(crate) use group::{ResolvedGroup, resolve_group};
pub(crate) use latency_target::planned_search;
pub(crate) use limits::{part_of, sector_mismatch};
pub(crate) use parsers::{
    BLOCK_BYTES_MAX, BlockSize, BlockSplit, Bytes, Count, LatencyPercentile, Position, Rate,
    ReadShare, SpanBounds, SyncedWrites, Time, ValueError, parse_key,
};
pub(crate) use resolve::resolve;
pub(crate) use resolve_context::{Content, Contradiction, Memory, ResolveContext, Wording};
pub(crate) use schedule::{empty_schedule, limits_cut_by_time};
