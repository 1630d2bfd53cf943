//! Latencies for github-action-benchmark's `customSmallerIsBetter`.

use crate::bigger_is_better::write_better;
use crate::format::Format;
use diskproof_model::comparison::Direction;

/// The format.
pub const FORMAT: Format = Format::new(
    ".smaller.json",
    "latencies for github-action-benchmark's customSmallerIsBetter",
    |record, out| write_better(record, Direction::Lower, out),
);
