//! Parsers of the values of a workload's flags and keys: one per type, for flags and keys alike.
//! Independent of targets and of other values.

mod keys;
mod spans;
mod syntax;
mod values;

pub(crate) use keys::parse_key;
pub(crate) use spans::{OffsetDistribution, Position, SpanBounds, Zones};
pub(crate) use syntax::ValueError;
pub(crate) use values::{
    BLOCK_BYTES_MAX, BlockSize, BlockSplit, Bytes, Count, LatencyPercentile, Precision, Rate,
    ReadShare, SyncedWrites, Time, WorkloadName,
};

#[cfg(test)]
mod tests;
