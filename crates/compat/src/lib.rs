//! The command lines of well-known tools, carried out by our engine: one folder per tool, with its
//! arguments (argv to a plan) and its output (a result to the tool's own text), and one line in the
//! registry. Pure: opens nothing, measures nothing, reads no clock.
#![forbid(unsafe_code)]

mod command;
mod drop_in;
mod error;
mod figures;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod frozen_tests;
mod getopt;
mod jobs;
mod load;
mod number;
mod plan;
mod primes;
mod printer;
mod registry;
mod table;

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
pub use error::DropInError;
pub use fio::values as fio_values;
pub use fio::{
    FIO_OPTIONS, FioCondition, FioHandling, FioOption, fio_hint, fio_option, fio_similar,
};
pub use jobs::{
    DescribedJob, DescribedJobs, JobAction, JobOption, JobRequest, JobSource, JobWorkload,
    OptionsJob,
};
pub use load::{DropInLoad, LoadTarget, NextLoad, NextPrinter, PlanContext};
pub use primes::{PrimePrinter, PrimeRequest};
pub use printer::{ResultsSoFar, ToolFile, ToolPrinter, ToolResult, ToolText};
pub use registry::{drop_in_named, drop_ins};
