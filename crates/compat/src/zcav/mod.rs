//! zcav of the bonnie++ suite.

mod args;
mod print;
#[cfg(test)]
mod tests;

pub(crate) use args::DROP_IN;
