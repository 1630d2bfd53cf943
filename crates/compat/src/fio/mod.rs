//! fio 3.33: job files and jobs on the command line, and the four forms of its output.

mod args;
mod command_line;
mod disks;
mod form;
mod frame;
mod job_options;
mod json;
mod logs;
mod normal;
mod number;
mod options;
mod print;
mod stats;
mod terse;
#[cfg(test)]
mod tests;
pub mod values;

pub use job_options::{
    FIO_OPTIONS, FioCondition, FioHandling, FioOption, fio_hint, fio_option, fio_similar,
};

use crate::drop_in::{DropIn, ExitCodes};

/// The registry's line.
pub(crate) static DROP_IN: DropIn = DropIn {
    name: options::NAME,
    emulates: options::EMULATES,
    summary: "jobs from files and from the command line",
    native: "run",
    example: "--name=reads --rw=randread --size=16m",
    options: options::OPTIONS,
    differences: options::DIFFERENCES,
    usage: "",
    exits: ExitCodes {
        usage: 1,
        target: 1,
        run: 1,
        signal: Some(128),
    },
    start: args::start,
};
