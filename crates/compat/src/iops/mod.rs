//! iops of Benjamin Schweizer.

mod args;
mod print;
#[cfg(test)]
mod tests;

use crate::drop_in::{DropIn, ExitCodes};

/// The registry's line.
pub(crate) static DROP_IN: DropIn = DropIn {
    name: args::NAME,
    emulates: args::EMULATES,
    summary: "random reads at doubling block sizes",
    native: "sweep",
    example: "-n 4 -t 1 /dev/sda",
    options: args::OPTIONS,
    differences: args::DIFFERENCES,
    exits: ExitCodes {
        usage: 1,
        target: 1,
        run: 1,
        signal: Some(0),
    },
    start: args::start,
};
