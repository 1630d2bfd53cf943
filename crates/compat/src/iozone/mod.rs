//! iozone 3: rates by size of the file and of the record.

mod args;
mod options;
mod pairs;
mod print;
#[cfg(test)]
mod tests;

use crate::drop_in::{DropIn, ExitCodes};

/// The registry's line.
pub(crate) static DROP_IN: DropIn = DropIn {
    name: options::NAME,
    emulates: options::EMULATES,
    summary: "reads and writes by size of the file and of the record",
    native: "sweep",
    example: "-a -R -n 1m -g 8m -i 0 -i 1 -i 2 -I",
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
