//! ioping 1.3.

mod args;
mod options;
mod print;
mod statistics;
mod suffix;
#[cfg(test)]
mod tests;

use crate::drop_in::{DropIn, ExitCodes};

/// The registry's line.
pub(crate) static DROP_IN: DropIn = DropIn {
    name: args::NAME,
    emulates: args::EMULATES,
    summary: "latency of single requests",
    native: "ping",
    example: "-c 5 .",
    options: options::OPTIONS,
    differences: options::DIFFERENCES,
    exits: ExitCodes {
        usage: 1,
        target: 2,
        run: 3,
        // It prints its statistics and ends well.
        signal: Some(0),
    },
    start: args::start,
};
