//! Reads one workload as a user describes it, by flags of `run` or by keys of a plan file: both
//! have the same names, parsers and checks.

mod flags;
mod group;
mod latency_target;
mod limits;
mod parsers;
mod resolve;

pub(crate) use diskproof_model::plan::WORKLOADS_MAX;
pub(crate) use flags::{FioFlags, WorkloadAxes, WorkloadFlags, refuse_repeated};
pub(crate) use group::{
    MemberError, ResolvedGroup, find_empty_schedule, limits_cut_by_time, resolve_group,
};
pub(crate) use latency_target::planned_search;
pub(crate) use limits::{
    Content, Memory, ResolveContext, Wording, part_of, sector_error, sector_mismatch,
};
pub(crate) use parsers::{
    BLOCK_BYTES_MAX, BlockSize, BlockSplit, Bytes, Count, Latency, LatencyPercentile, Position,
    Rate, ReadShare, SpanBounds, SyncedWrites, Time, ValueError, WorkloadName, parse_key,
    parse_listed_count, parse_listed_size, parse_time,
};
pub(crate) use resolve::resolve;
