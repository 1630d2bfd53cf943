//! hdparm: its two timings.

mod args;
mod options;
mod print;
#[cfg(test)]
mod tests;

use crate::drop_in::{DropIn, ExitCodes};

/// The registry's line.
pub(crate) static DROP_IN: DropIn = DropIn {
    name: args::NAME,
    emulates: args::EMULATES,
    summary: "sequential reads of a device (-t) and of the page cache (-T)",
    native: "curve",
    example: "-tT /dev/sda",
    options: options::OPTIONS,
    differences: options::DIFFERENCES,
    exits: ExitCodes {
        usage: 22,
        target: 2,
        run: 5,
        signal: None,
    },
    start: args::start,
};
