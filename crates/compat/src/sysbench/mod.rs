//! The tests fileio and cpu of sysbench 1.0.

mod args;
mod cpu;
mod modes;
mod print;
#[cfg(test)]
mod tests;

pub(crate) use args::DROP_IN;
