//! bonnie++ 2.00: its tests of one large file.

mod args;
mod names;
mod print;
#[cfg(test)]
mod tests;

use crate::drop_in::{DropIn, ExitCodes};

/// The registry's line.
pub(crate) static DROP_IN: DropIn = DropIn {
    name: names::NAME,
    emulates: names::EMULATES,
    summary: "block writes, rewrites, block reads and seeks in a large file",
    native: "check",
    example: "-f -n 0 -s 300 -d .",
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
