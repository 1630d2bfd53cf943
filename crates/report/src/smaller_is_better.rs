//! Latencies for github-action-benchmark's `customSmallerIsBetter`.

use crate::bigger_is_better::write_better;
use crate::format::{Format, OutputFile, Requires};
use diskproof_model::comparison::Direction;
use std::io::Write;

/// The format.
pub const FORMAT: Format = Format {
    extension: ".smaller.json",
    description: "latencies for github-action-benchmark's customSmallerIsBetter",
    requires: Requires::Nothing,
    record: |record, path| {
        let write = move |out: &mut dyn Write| write_better(record, Direction::Lower, out);
        vec![OutputFile::new(path, write)]
    },
    comparison: None,
    identity: None,
};
