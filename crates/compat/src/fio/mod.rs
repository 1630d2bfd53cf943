//! fio 3.33: job files and jobs on the command line, and the four forms of its output.

mod args;
mod counted_ops;
mod described;
mod entries;
mod frame;
mod iolog;
mod job_options;
mod json;
mod latency_figures;
mod logs;
mod normal;
mod option_help;
mod option_values;
mod print;
mod rates;
mod stats;
mod sync_counts;
mod terse;
#[cfg(test)]
mod tests;
pub mod values;

pub(crate) use args::DROP_IN;
pub use job_options::{
    FIO_OPTIONS, FioCondition, FioHandling, FioOption, fio_hint, fio_option, fio_similar,
};
pub use option_help::engine_has as fio_engine_has;
pub use option_values::fio_value_error;
