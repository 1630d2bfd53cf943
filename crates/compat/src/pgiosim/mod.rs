//! pgiosim 0.5: random blocks of files, as an index scan reads them.

mod args;
mod options;
mod print;
#[cfg(test)]
mod tests;

use crate::drop_in::{DropIn, ExitCodes};

/// The registry's line.
pub(crate) static DROP_IN: DropIn = DropIn {
    name: options::NAME,
    emulates: options::EMULATES,
    summary: "random 8 KiB blocks of files, as an index scan reads them",
    native: "run",
    example: "-b 1G -t 4 /var/lib/postgresql/data/base/5/16384",
    options: options::OPTIONS,
    differences: options::DIFFERENCES,
    exits: ExitCodes {
        usage: 1,
        target: 1,
        run: 1,
        signal: Some(0),
    },
    start: args::start,
};
