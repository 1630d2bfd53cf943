//! iops of Benjamin Schweizer.

mod args;
mod print;
#[cfg(test)]
mod tests;

pub(crate) use args::DROP_IN;
