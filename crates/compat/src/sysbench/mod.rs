//! The tests fileio and cpu of sysbench 1.0.

mod args;
mod cpu;
mod modes;
mod options;
mod print;
#[cfg(test)]
mod tests;

use crate::drop_in::{DropIn, ExitCodes};

/// The registry's line.
pub(crate) static DROP_IN: DropIn = DropIn {
    name: modes::NAME,
    emulates: modes::EMULATES,
    summary: "reads and writes of files (test fileio), primes (test cpu)",
    native: "run",
    example: "fileio --file-total-size=64M --file-test-mode=rndrd --time=2 run",
    options: options::OPTIONS,
    differences: options::DIFFERENCES,
    exits: ExitCodes {
        usage: 1,
        target: 1,
        run: 1,
        signal: None,
    },
    start: args::start,
};
