//! bonnie++ 2.00: its tests of one large file and of many small ones.

mod args;
mod names;
mod print;
#[cfg(test)]
mod tests;

pub(crate) use args::DROP_IN;
