//! The command lines of well-known tools, carried out by our engine: one folder per tool, with its
//! arguments (argv to a plan) and its output (a result to the tool's own text), and one line in the
//! registry. Pure: opens nothing, measures nothing, reads no clock.
#![forbid(unsafe_code)]

mod c_format;
mod command;
mod drop_in;
mod figures;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod frozen_tests;
mod job_command;
mod jobs;
mod load;
mod plan;
mod printer;
mod tool_totals;

mod bonnie;
mod dd;
mod fio;
mod hdparm;
mod ioping;
mod iops;
mod iozone;
mod pg_test_fsync;
mod pgiosim;
mod sysbench;
mod zcav;

pub use drop_in::{DropIn, DropInOption, ExitCodes, PrintedText, Started, Treatment};
pub use fio::values as fio_values;
pub use fio::{
    FIO_OPTIONS, FioCondition, FioHandling, FioOption, fio_engine_has, fio_hint, fio_option,
    fio_similar, fio_value_error,
};
pub use job_command::{CommandTime, JobCommand};
pub use jobs::{
    DescribedJob, DescribedJobs, JobAction, JobOption, JobRequest, JobSource, JobWorkload,
    OptionsJob, SizeRange, StartFailure, WorkloadFile,
};
pub use load::{
    DropInLoad, LoadHead, LoadTarget, NextLoad, NextPrinter, PlanContext, PrimeRequest,
};
pub use printer::{
    DropInError, PrimePrinter, ResultsSoFar, ToolFile, ToolPrinter, ToolResult, ToolText,
};

use std::sync::LazyLock;

/// The drop-ins. Help, documentation, manual pages and links all read this list.
static DROP_INS: LazyLock<[&DropIn; 11]> = LazyLock::new(|| {
    [
        &pg_test_fsync::DROP_IN,
        &ioping::DROP_IN,
        &dd::DROP_IN,
        &hdparm::DROP_IN,
        &iops::DROP_IN,
        &zcav::DROP_IN,
        &sysbench::DROP_IN,
        &bonnie::DROP_IN,
        &pgiosim::DROP_IN,
        &iozone::DROP_IN,
        &fio::DROP_IN,
    ]
});

/// The drop-ins in the order of help and docs.
pub fn drop_ins() -> &'static [&'static DropIn] {
    &*DROP_INS
}

/// The drop-in of this command name.
pub fn drop_in_named(name: &str) -> Option<&'static DropIn> {
    DROP_INS
        .iter()
        .find(|drop_in| drop_in.name == name)
        .copied()
}
