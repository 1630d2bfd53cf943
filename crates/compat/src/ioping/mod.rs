//! ioping 1.3.

mod args;
mod print;
mod statistics;
mod suffix;
#[cfg(test)]
mod tests;

pub(crate) use args::DROP_IN;
