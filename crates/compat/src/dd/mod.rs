//! dd of the GNU coreutils, in the forms that are used to test disks.

mod args;
mod human;
mod operands;
mod print;
#[cfg(test)]
mod tests;

use crate::drop_in::{DropIn, ExitCodes};

/// The registry's line.
pub(crate) static DROP_IN: DropIn = DropIn {
    name: args::NAME,
    emulates: args::EMULATES,
    summary: "sequential writes to a file, or sequential reads of a file",
    native: "check",
    example: "if=/dev/zero of=bigfile bs=8k count=1000 conv=fsync",
    options: operands::OPERANDS,
    differences: operands::DIFFERENCES,
    exits: ExitCodes {
        usage: 1,
        target: 1,
        run: 1,
        signal: None,
    },
    start: args::start,
};
