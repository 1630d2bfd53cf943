//! zcav of the bonnie++ suite.

mod args;
mod print;
#[cfg(test)]
mod tests;

use crate::drop_in::{DropIn, ExitCodes};

/// The registry's line.
pub(crate) static DROP_IN: DropIn = DropIn {
    name: args::NAME,
    emulates: args::EMULATES,
    summary: "transfer rate by position",
    native: "curve",
    example: "-f /dev/sda",
    options: args::OPTIONS,
    differences: args::DIFFERENCES,
    exits: ExitCodes {
        usage: 1,
        target: 1,
        run: 1,
        signal: None,
    },
    start: args::start,
};
